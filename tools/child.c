/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

/* Signals that a batch system, a user or a terminal sends to end or to steer a job. */
static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                                SIGALRM, SIGXCPU, SIGPWR,  SIGURG,  SIGIO};
enum {
    FORWARDED_COUNT = sizeof forwarded / sizeof forwarded[0],
};

struct signal_state {
    sigset_t waited, mask;
    struct sigaction child;
};

/* From here on the signals wait for wait_for_child, so that none is lost around the fork. */
static void hold_signals(struct signal_state *state)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};

    sigemptyset(&state->waited);
    sigaddset(&state->waited, SIGCHLD);
    for (int i = 0; i < FORWARDED_COUNT; i++) {
        sigaddset(&state->waited, forwarded[i]);
    }
    sigprocmask(SIG_BLOCK, &state->waited, &state->mask);
    /* Inherited as ignored, SIGCHLD would take the child's status away. */
    sigaction(SIGCHLD, &standard, &state->child);
}

/* In the child: dispositions and mask as we got them, then the program. Only async-signal-safe
 * calls. An error goes through the pipe, which a successful exec closes. */
static void execute(char **argv, char **environment, const struct signal_state *state, int pipe)
{
    int error;

    sigaction(SIGCHLD, &state->child, NULL);
    sigprocmask(SIG_SETMASK, &state->mask, NULL);
    execvpe(argv[0], argv, environment);
    error = errno;
    while (write(pipe, &error, sizeof error) < 0 && errno == EINTR) {
    }
    _exit(COMMAND_RUN_FAILED);
}

/* The error of the child's exec; 0 when it succeeded. */
static int exec_error(int pipe)
{
    int error = 0;
    ssize_t length;

    do {
        length = read(pipe, &error, sizeof error);
    } while (length < 0 && errno == EINTR);
    return length == sizeof error ? error : 0;
}

static int status_of(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        return COMMAND_RUN_SIGNAL + WTERMSIG(wait_status);
    }
    return WEXITSTATUS(wait_status);
}

/* Waits for the end of the child and passes signals on. What the kernel itself sent (a key at the
 * terminal, a hang-up) the whole process group got, the child included; it is not sent twice. */
static int wait_for_child(pid_t child, const struct signal_state *state)
{
    for (;;) {
        siginfo_t information;
        int number, status;
        pid_t ended = waitpid(child, &status, WNOHANG);

        if (ended == child) {
            return status_of(status);
        }
        if (ended < 0 && errno != EINTR) {
            command_error("cannot wait for the program: %s", strerror(errno));
            return COMMAND_RUN_FAILED;
        }
        number = sigwaitinfo(&state->waited, &information);
        if (number > 0 && number != SIGCHLD && information.si_code <= 0) {
            kill(child, number);
        }
    }
}

static int report_exec_error(const char *program, int error)
{
    bool missing = error == ENOENT;

    command_error("cannot run '%s': %s", program, strerror(error));
    return missing ? COMMAND_RUN_NOT_FOUND : COMMAND_RUN_CANNOT_EXECUTE;
}

int child_run(char **argv, char **environment, int *started)
{
    struct signal_state state;
    int ends[2], error, status;
    pid_t child;

    if (started != NULL) {
        *started = 0;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        command_error("cannot make a pipe: %s", strerror(errno));
        return COMMAND_RUN_FAILED;
    }
    hold_signals(&state);
    fflush(NULL);
    child = fork();
    if (child < 0) {
        command_error("cannot start a process: %s", strerror(errno));
        return COMMAND_RUN_FAILED;
    }
    if (child == 0) {
        execute(argv, environment, &state, ends[1]);
    }
    /* The summary may go to a pipe that nobody reads any more; the program's status matters more.
     */
    signal(SIGPIPE, SIG_IGN);
    close(ends[1]);
    error = exec_error(ends[0]);
    close(ends[0]);
    status = wait_for_child(child, &state);
    if (error != 0) {
        return report_exec_error(argv[0], error);
    }
    if (started != NULL) {
        *started = 1;
    }
    return status;
}
