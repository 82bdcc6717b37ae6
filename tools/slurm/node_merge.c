/* SPDX-License-Identifier: Apache-2.0 */

/* The program that makes one report of many, run from within Slurm's step daemon. That one has many
 * threads: between fork and exec there are system calls alone. */

#include "node_report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "settings.h"

enum {
    STATUS_NOT_USER = 125, /* of the child, before it executes the command */
    STATUS_NOT_FOUND = 127,
};

/* The wrappers of the C library would have the other threads follow, which the child does not have.
 */
static bool become(const struct slurm_user *user)
{
    if (geteuid() != 0) {
        return geteuid() == user->user;
    }
    return syscall(SYS_setgroups, user->group_count, user->groups) == 0 &&
           syscall(SYS_setresgid, user->group, user->group, user->group) == 0 &&
           syscall(SYS_setresuid, user->user, user->user, user->user) == 0;
}

static _Noreturn void run_command(char *const arguments[], const char *folder,
                                  const struct slurm_user *user, int output)
{
    char *const environment[] = {(char[]){"PATH=/usr/bin:/bin"}, (char[]){"LC_ALL=C.UTF-8"}, NULL};
    sigset_t none;
    int null;

    if (!become(user)) {
        _exit(STATUS_NOT_USER);
    }
    /* Empty, or never made: nothing is to be merged. */
    if (rmdir(folder) == 0 || errno == ENOENT || errno == ENOTDIR) {
        _exit(0);
    }
    null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    execve(arguments[0], arguments, environment);
    _exit(STATUS_NOT_FOUND);
}

static int milliseconds_left(const struct timespec *end)
{
    struct timespec now;
    long long left;

    clock_gettime(CLOCK_MONOTONIC, &now);
    left = (end->tv_sec - now.tv_sec) * 1000LL + (end->tv_nsec - now.tv_nsec) / 1000000;
    return left > 0 ? (int)left : 0;
}

/* Reads what the command has to say until it closes its end or the time is over; then false. */
static bool listen_to(int input, char *text, size_t size)
{
    struct timespec end;
    size_t length = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += SLURM_NODE_REPORT_SECONDS;
    for (;;) {
        struct pollfd wanted = {.fd = input, .events = POLLIN};
        char block[256];
        ssize_t got;

        if (poll(&wanted, 1, milliseconds_left(&end)) == 0) {
            return false;
        }
        got = read(input, block, sizeof block);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
            break;
        }
        for (ssize_t i = 0; i < got && length + 1 < size; i++) {
            text[length++] = block[i];
        }
    }
    text[length] = '\0';
    return true;
}

/* It goes to the log of the node's daemon, and the names in it are the user's. */
static void complain_printably(char *line, void (*complain)(const char *line))
{
    for (char *next = line; *next != '\0'; next++) {
        if ((unsigned char)*next < ' ' || (unsigned char)*next >= 0x7f) {
            *next = '?';
        }
    }
    complain(line);
}

static void tell(const char *command, const char *path, int status, char *text,
                 void (*complain)(const char *line))
{
    char line[SLURM_MESSAGE_SIZE];

    for (char *next = text, *end; next != NULL && *next != '\0'; next = end) {
        end = strchr(next, '\n');
        if (end != NULL) {
            *end++ = '\0';
        }
        complain_printably(next, complain);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOT_FOUND) {
        snprintf(line, sizeof line, "cannot execute '%s'", command);
        complain_printably(line, complain);
    }
    snprintf(line, sizeof line, "the reports in '%s' were not merged", path);
    complain_printably(line, complain);
}

static void watch(pid_t child, int input, const char *command, const char *path,
                  void (*complain)(const char *line))
{
    char text[2048] = "";
    int status = 0;

    if (!listen_to(input, text, sizeof text)) {
        kill(child, SIGKILL);
        snprintf(text, sizeof text, "it took more than %d seconds", SLURM_NODE_REPORT_SECONDS);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
        tell(command, path, status, text, complain);
    }
}

void slurm_node_report_merge(const char *command, const char *path, const struct slurm_user *user,
                             void (*complain)(const char *line))
{
    char *file = NULL;
    int ends[2];
    pid_t child;

    if (asprintf(&file, "%s.json", path) < 0) {
        return;
    }
    if (pipe2(ends, O_CLOEXEC) == 0) {
        /* execve's arguments are not changed, whatever their type says. */
        char *const arguments[] = {
            (char *)(uintptr_t)command, (char[]){"report"}, (char[]){"--merge"},     file,
            (char[]){"--remove"},       (char[]){"--"},     (char *)(uintptr_t)path, NULL};

        child = fork();
        if (child == 0) {
            run_command(arguments, path, user, ends[1]);
        }
        close(ends[1]);
        if (child > 0) {
            watch(child, ends[0], command, path, complain);
        }
        close(ends[0]);
    }
    free(file);
}
