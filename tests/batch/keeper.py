# SPDX-License-Identifier: Apache-2.0
"""A process that keeps a family of daemons in hand.

At the end of its orders, however it comes (the test ended, failed, or was killed), everything that
descends from it is killed, also what made itself a session of its own, and the folder is removed.
Orphans come back to it (PR_SET_CHILD_SUBREAPER), so none is missed.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def children(parent):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                # The name in parentheses may hold anything.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != b"Z":
            found.append(int(entry))
    return found


def end_family():
    while True:
        for child in children(os.getpid()):
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        # What a killed child leaves behind becomes ours before its end is told.
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def keep(folder, orders, answers):
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for line in orders:
        order = json.loads(line)
        with open(os.path.join(folder, "daemons.log"), "ab") as log:
            subprocess.Popen(order["arguments"], env=order["environment"], cwd=folder, stdout=log,
                             stderr=log, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        answers.write(b"started\n")
        answers.flush()
    end_family()
    if os.environ.get("CUDAPOLICY_TEST_KEEP") != "1":
        shutil.rmtree(folder, ignore_errors=True)


class Keeper:
    """The process; forked, since whoever runs the tests may not be allowed to execute Python again."""

    def __init__(self, folder):
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            status = 1
            try:
                # Out of the group that is killed when a test takes too long.
                os.setsid()
                os.close(self.orders)
                os.close(self.answers)
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 0)
                os.dup2(null, 1)
                with os.fdopen(orders, "rb") as file, os.fdopen(answers, "wb") as answer:
                    keep(folder, file, answer)
                status = 0
            finally:
                os._exit(status)
        os.close(orders)
        os.close(answers)
        self.orders = os.fdopen(self.orders, "wb")
        self.answers = os.fdopen(self.answers, "rb")

    def start(self, arguments, environment):
        """Starts a daemon; False when it cannot be executed."""
        order = {"arguments": arguments, "environment": environment}
        self.orders.write(json.dumps(order).encode() + b"\n")
        self.orders.flush()
        return self.answers.readline() != b""

    def stop(self):
        self.orders.close()
        self.answers.close()
        os.waitpid(self.process, 0)
