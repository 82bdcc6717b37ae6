# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one's own: munged, slurmctld and two slurmd in a private folder, on the loopback interface.

The configuration of the machine is neither read nor touched. Works as root and as an ordinary user.
"""

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time

import keeper

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("srun", "sbatch", "salloc", "sinfo", "scontrol")
# A client that waits for ever, for a node that is not well, fails here.
TIME_LIMIT = 40
START_LIMIT = 20

CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost({address})
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
{communication}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
SlurmdTimeout=300
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=2
GresTypes=gpu
NodeName=n1 NodeHostname=localhost NodeAddr={address} Port={ports[1]} CPUs=4 RealMemory=100 Gres=gpu:2
NodeName=n2 NodeHostname=localhost NodeAddr={address} Port={ports[2]} CPUs=4 RealMemory=100 Gres=gpu:2
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=10 State=UP
PlugStackConfig={folder}/plugstack.conf
{more}
"""


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")


def missing():
    """What a cluster would need and is not here, or None."""
    absent = [program for program in DAEMONS + CLIENTS if find(program) is None]
    return ", ".join(absent) + " not installed" if absent else None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def resolves(host, flags):
    try:
        return socket.getaddrinfo(host, "80", socket.AF_INET, socket.SOCK_STREAM, 0, flags)[0][4][0]
    except OSError:
        return ""


def addresses():
    """How the daemons are to listen, and where they are then found.

    Told to keep to one address they take that of the host's name, which may be another one than
    127.0.0.1, on another interface, or none at all; then they listen on all. On a host that has the
    loopback interface alone nothing resolves the way Slurm asks for IPv4 (AI_ADDRCONFIG); there it is
    let look for both.
    """
    both = not resolves(None, socket.AI_ADDRCONFIG | socket.AI_PASSIVE)
    address = resolves(socket.gethostname(), 0)
    if not address.startswith("127."):
        return "EnableIPv6" if both else "", "127.0.0.1"
    return "NoCtldInAddrAny," + ("EnableIPv6" if both else "NoInAddrAny"), address


class Result:
    def __init__(self, arguments, status, stdout, stderr):
        self.arguments, self.status = arguments, status
        self.stdout, self.stderr = stdout, stderr

    def __repr__(self):
        return (f"{' '.join(self.arguments)}\nstatus {self.status}\n--- standard output\n{self.stdout}"
                f"--- standard error\n{self.stderr}---")


class Cluster:
    def __init__(self, folder, more=""):
        """folder is removed at the end. more: further lines of slurm.conf."""
        self.folder, self.more = folder, more
        self.keeper = None

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def plugstack(self, text):
        """The plugins, from the next launch on: clients and steps read it again each time."""
        temporary = self.write("plugstack.new", text)
        os.rename(temporary, self.path("plugstack.conf"))

    def start(self):
        for name in ("munge", "state"):
            os.mkdir(self.path(name), 0o755)
        ports = free_ports(3)
        communication, address = addresses()
        if communication:
            communication = "CommunicationParameters=" + communication
        user = pwd.getpwuid(os.getuid()).pw_name
        self.write("slurm.conf", CONFIGURATION.format(folder=self.folder, ports=ports, user=user,
                                                      communication=communication,
                                                      address=address, more=self.more))
        # Character devices that are everywhere; nothing opens them.
        self.write("gres.conf", "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")
        self.plugstack("")
        with open(self.path("munge", "key"), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(secrets.token_bytes(128))
        self.keeper = keeper.Keeper(self.folder)
        munge = self.path("munge")
        self.daemon("munged", "--foreground", "--force", f"--key-file={munge}/key",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                    f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--num-threads=2")
        self.wait_for("munged", lambda: os.path.exists(self.path("munge", "socket")))
        self.daemon("slurmctld", "-D", "-c")
        for node in ("n1", "n2"):
            self.daemon("slurmd", "-D", "-N", node)
        self.wait_for("two idle nodes", self.idle)

    def daemon(self, program, *arguments):
        if not self.keeper.start([find(program), *arguments], self.environment()):
            raise RuntimeError(f"{program} did not start:\n{self.logs()}")

    def stop(self):
        if self.keeper is not None:
            self.keeper.stop()
            self.keeper = None

    def wait_for(self, what, ready):
        """Polls, since nothing tells: the limit only ends a test that has failed."""
        end = time.monotonic() + START_LIMIT
        while not ready():
            if time.monotonic() > end:
                raise RuntimeError(f"waited for {what} in vain:\n{self.logs()}")
            time.sleep(0.02)

    def nodes(self):
        return self.client("sinfo", "-h", "-N", "-o", "%T").stdout.split()

    def idle(self):
        return self.nodes() == ["idle", "idle"]

    def logs(self):
        text = ""
        for name in ("daemons.log", "slurmctld.log", "slurmd-n1.log", "slurmd-n2.log"):
            try:
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    text += f"--- {name}\n" + "".join(file.readlines()[-30:])
            except OSError:
                pass
        return text

    def environment(self, changes=None):
        kept = ("PATH", "HOME", "LANG", "TMPDIR", "CUDAPOLICY_TEST_KEEP")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment["SLURM_CONF"] = self.path("slurm.conf")
        environment.update(changes or {})
        return {name: value for name, value in environment.items() if value is not None}

    def client(self, program, *arguments, env=None, cwd=None, user=None, stdin=""):
        """Runs one of Slurm's clients to its end. user: (uid, gid), for root only."""
        def prepare():
            if user is not None:
                os.setgroups([])
                os.setgid(user[1])
                os.setuid(user[0])
            keeper.die_with_parent()

        command = [find(program), *arguments]
        process = subprocess.Popen(command, env=self.environment(env), cwd=cwd or self.folder,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, preexec_fn=prepare)
        try:
            out, err = process.communicate(stdin.encode(), TIME_LIMIT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nended after {TIME_LIMIT} s\n{self.logs()}".encode()
        return Result([program, *arguments], process.returncode, out.decode(), err.decode())

    def job(self, number):
        """The job's record, once it has ended: of an array, its first task that is still running."""
        states = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED")
        records = []

        def ended():
            records[:] = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in
                          self.client("scontrol", "show", "job", "-o", str(number)).stdout.splitlines()]
            return records and all(record["JobState"] not in states for record in records)

        self.wait_for(f"the end of job {number}", ended)
        return records
