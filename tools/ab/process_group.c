/* SPDX-License-Identifier: Apache-2.0 */
#include "process_group.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum {
    ENDING_COUNT = sizeof ending / sizeof ending[0],
    /* Milliseconds. */
    GRACE_ALONE = 1000, /* for what is left to end on its own: reports are written at the end */
    GRACE_TERM = 5000,  /* between SIGTERM and SIGKILL */
    GRACE_KILL = 10000, /* until a process that SIGKILL does not end is given up */
    AGAIN = 1000,
    POLL = 10,
};

static struct {
    sigset_t waited; /* SIGCHLD, SIGTSTP, and those of ending that were not ignored */
    sigset_t mask;   /* as we got it */
    struct sigaction child, pipe;
    bool caught;
    int interruptions;
} signals;

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int64_t milliseconds(int64_t number)
{
    return number * 1000000;
}

static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void hold_signals(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};

    if (signals.caught) {
        return;
    }
    signals.caught = true;
    sigemptyset(&signals.waited);
    sigaddset(&signals.waited, SIGCHLD);
    if (!is_ignored(SIGTSTP)) {
        sigaddset(&signals.waited, SIGTSTP);
    }
    for (int i = 0; i < ENDING_COUNT; i++) {
        /* Of nohup, and of a shell's background jobs. */
        if (!is_ignored(ending[i])) {
            sigaddset(&signals.waited, ending[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &signals.waited, &signals.mask);
    /* Inherited as ignored, SIGCHLD would take the children's statuses away. */
    sigaction(SIGCHLD, &standard, &signals.child);
    sigaction(SIGPIPE, &ignored, &signals.pipe);
    /* Processes whose parents have ended become our children, also those that left the group, as
     * the workers of some launchers do: so they are found. */
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
}

void process_group_catch_signals(void)
{
    hold_signals();
    signals.interruptions = 0;
}

static bool is_ending(int number)
{
    for (int i = 0; i < ENDING_COUNT; i++) {
        if (number == ending[i]) {
            return true;
        }
    }
    return false;
}

/* The next signal, waiting at most so many nanoseconds (negative: however long); 0: none came. */
static int next_signal(int64_t longest)
{
    struct timespec timeout = {.tv_sec = longest / 1000000000, .tv_nsec = longest % 1000000000};
    int number = sigtimedwait(&signals.waited, NULL, longest < 0 ? NULL : &timeout);

    if (number > 0 && is_ending(number)) {
        signals.interruptions++;
    }
    return number > 0 ? number : 0;
}

bool process_group_interrupted(void)
{
    int number;

    while (signals.caught && (number = next_signal(0)) != 0) {
        if (number == SIGTSTP) {
            raise(SIGSTOP);
        }
    }
    return signals.interruptions > 0;
}

/* ---- Children ---- */

struct children {
    size_t count, capacity;
    pid_t *pids;
};

static bool children_have(const struct children *children, pid_t pid)
{
    for (size_t i = 0; i < children->count; i++) {
        if (children->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

/* Our children, but for those in others. */
static void list_children(struct children *children, const struct children *others)
{
    char path[64];
    FILE *file;
    int pid;

    children->count = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        if (others == NULL || !children_have(others, pid)) {
            children->pids = memory_grow(children->pids, children->count, &children->capacity,
                                         sizeof *children->pids);
            children->pids[children->count++] = pid;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* Takes the statuses of children that have ended; whether any goes on, or anything in the group. */
static bool any_left(pid_t group, const struct children *others, struct children *left)
{
    size_t kept = 0;

    list_children(left, others);
    for (size_t i = 0; i < left->count; i++) {
        if (waitpid(left->pids[i], NULL, WNOHANG) == 0) {
            left->pids[kept++] = left->pids[i];
        }
    }
    left->count = kept;
    return kept > 0 || kill(-group, 0) == 0;
}

static void send(pid_t group, const struct children *left, int number)
{
    kill(-group, number);
    for (size_t i = 0; i < left->count; i++) {
        kill(left->pids[i], number);
    }
    if (number == SIGTERM) {
        /* What is stopped would not see it. */
        kill(-group, SIGCONT);
        for (size_t i = 0; i < left->count; i++) {
            kill(left->pids[i], SIGCONT);
        }
    }
}

/* Waits for the end of what is left, so many milliseconds; with a signal, sent again now and then
 * since ended processes leave their own children to us. */
static bool wait_for_left(pid_t group, const struct children *others, int number, int longest)
{
    int64_t deadline = now() + milliseconds(longest), next_send = number != 0 ? 0 : INT64_MAX;
    int before = signals.interruptions;
    struct children left = {0};
    bool any;

    while ((any = any_left(group, others, &left)) && now() < deadline &&
           (number == SIGKILL || signals.interruptions == before)) {
        if (now() >= next_send) {
            send(group, &left, number);
            next_send = now() + milliseconds(number == SIGKILL ? POLL : AGAIN);
        }
        next_signal(milliseconds(POLL));
    }
    free(left.pids);
    return !any;
}

static void end_left(pid_t group, const struct children *others, bool at_once)
{
    if (!at_once && wait_for_left(group, others, 0, GRACE_ALONE)) {
        return;
    }
    if (signals.interruptions < 2 && wait_for_left(group, others, SIGTERM, GRACE_TERM)) {
        return;
    }
    if (!wait_for_left(group, others, SIGKILL, GRACE_KILL)) {
        command_error("processes of the command do not end though they were killed; they may "
                      "disturb the runs that follow");
    }
}

/* ---- The command ---- */

/* In the child: only async-signal-safe calls. An error goes through the pipe, which a successful
 * exec closes. */
static void execute(const struct process_group *group, int input, int pipe, pid_t parent)
{
    int error;

    setpgid(0, 0);
    /* Should we be killed, the command is not to go on alone. */
    prctl(PR_SET_PDEATHSIG, (long)SIGTERM, 0L, 0L, 0L);
    if (getppid() == parent && dup2(input, STDIN_FILENO) >= 0 &&
        dup2(group->output, STDOUT_FILENO) >= 0 && dup2(group->errors, STDERR_FILENO) >= 0) {
        sigaction(SIGCHLD, &signals.child, NULL);
        sigaction(SIGPIPE, &signals.pipe, NULL);
        sigprocmask(SIG_SETMASK, &signals.mask, NULL);
        execvpe(group->argv[0], group->argv, group->environment);
    }
    error = errno;
    while (write(pipe, &error, sizeof error) < 0 && errno == EINTR) {
    }
    _exit(COMMAND_RUN_FAILED);
}

static int exec_error(int pipe)
{
    int error = 0;
    ssize_t length;

    do {
        length = read(pipe, &error, sizeof error);
    } while (length < 0 && errno == EINTR);
    return length == sizeof error ? error : 0;
}

static pid_t start(const struct process_group *group, struct process_group_end *end)
{
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC), ends[2];
    pid_t parent = getpid(), child = -1;

    if (input >= 0 && pipe2(ends, O_CLOEXEC) == 0) {
        fflush(NULL);
        child = fork();
        if (child == 0) {
            execute(group, input, ends[1], parent);
        }
        close(ends[1]);
        if (child > 0) {
            /* Also here: whichever is first, the group is there when we go on. */
            setpgid(child, child);
            end->error = exec_error(ends[0]);
        }
        close(ends[0]);
    }
    if (child < 0) {
        command_error("cannot start a process: %s", strerror(errno));
    }
    if (input >= 0) {
        close(input);
    }
    return child;
}

enum stage { RUNNING, TERMINATED, KILLED };

struct waiting {
    enum stage stage;
    int64_t limit, next_tick, kill_time; /* CLOCK_MONOTONIC; INT64_MAX: never */
    int interruptions;                   /* of which we know */
};

static void terminate(pid_t child, struct waiting *waiting)
{
    const struct children none = {0};

    if (waiting->stage == RUNNING) {
        waiting->stage = TERMINATED;
        waiting->kill_time = now() + milliseconds(GRACE_TERM);
        send(child, &none, SIGTERM);
    }
}

static void kill_group(pid_t child, struct waiting *waiting)
{
    if (waiting->stage != KILLED) {
        waiting->stage = KILLED;
        waiting->kill_time = INT64_MAX;
        kill(-child, SIGKILL);
    }
}

/* The whole group stops with us, and goes on with us. */
static void suspend(const struct process_group *group, pid_t child, struct process_group_end *end,
                    struct waiting *waiting)
{
    kill(-child, SIGSTOP);
    raise(SIGSTOP);
    kill(-child, SIGCONT);
    end->suspended = true;
    if (group->timed) {
        terminate(child, waiting);
    }
}

static void take_signal(const struct process_group *group, int number, pid_t child,
                        struct process_group_end *end, struct waiting *waiting)
{
    if (number == SIGTSTP) {
        suspend(group, child, end, waiting);
    } else if (is_ending(number)) {
        end->interrupted = true;
        if (signals.interruptions > 1 || number == SIGQUIT) {
            kill_group(child, waiting);
        } else {
            terminate(child, waiting);
        }
    }
}

static void take_time(const struct process_group *group, pid_t child, struct process_group_end *end,
                      struct waiting *waiting)
{
    int64_t time = now();

    if (time >= waiting->next_tick) {
        group->tick(group->context);
        waiting->next_tick = now() + milliseconds(group->interval);
    }
    if (waiting->stage == RUNNING && time >= waiting->limit) {
        end->timed_out = true;
        terminate(child, waiting);
    }
    if (time >= waiting->kill_time) {
        kill_group(child, waiting);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How long to wait for a signal: negative, however long. */
static int64_t until_next(const struct waiting *waiting)
{
    int64_t next = least(waiting->next_tick, waiting->kill_time), time = now();

    if (waiting->stage == RUNNING) {
        next = least(next, waiting->limit);
    }
    if (next == INT64_MAX) {
        return -1;
    }
    return next > time ? next - time : 0;
}

static void wait_for_end(const struct process_group *group, pid_t child, int64_t started,
                         struct process_group_end *end)
{
    struct waiting waiting = {.limit = INT64_MAX, .next_tick = INT64_MAX, .kill_time = INT64_MAX};
    pid_t ended;

    if (group->time_limit > 0 && group->time_limit < 1e9) {
        waiting.limit = started + (int64_t)(group->time_limit * 1e9);
    }
    if (group->interval > 0 && group->tick != NULL) {
        waiting.next_tick = started;
    }
    while ((ended = waitpid(child, &end->wait_status, WNOHANG)) == 0) {
        take_signal(group, next_signal(until_next(&waiting)), child, end, &waiting);
        take_time(group, child, end, &waiting);
    }
    end->seconds = (double)(now() - started) / 1e9;
    if (ended < 0) {
        end->wait_status = COMMAND_RUN_FAILED << 8;
    }
}

bool process_group_run(const struct process_group *group, struct process_group_end *end)
{
    struct children others = {0};
    struct timespec time;
    int64_t started;
    pid_t child;

    *end = (struct process_group_end){0};
    hold_signals();
    /* What somebody else started, a server of --prepare for example, stays. */
    list_children(&others, NULL);
    clock_gettime(CLOCK_REALTIME, &time);
    end->start_time = time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
    started = now();
    child = start(group, end);
    if (child > 0) {
        if (end->error == 0 && group->start != NULL) {
            group->start(group->context, child);
        }
        wait_for_end(group, child, started, end);
        if (!group->keep_left) {
            end_left(child, &others, end->timed_out || end->interrupted || end->suspended);
        }
    }
    free(others.pids);
    return child > 0;
}
