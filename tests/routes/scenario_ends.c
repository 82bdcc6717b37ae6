/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios of how processes begin and end. */
#include "program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool launch_in_destructor;

static __attribute__((destructor)) void last(void)
{
    if (launch_in_destructor)
        program_launch(9);
}

static void at_exit(void)
{
    program_launch(8);
}

/* end HOW: three launches, then the end. */
static int end(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";

    program_load();
    program_start();
    for (unsigned i = 1; i <= 3; i++)
        program_launch(i);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "exec") == 0) {
        execl("/proc/self/exe", "program", "launch", "2", (char *)NULL);
        return 5;
    }
    if (strcmp(how, "destructor") == 0) {
        atexit(at_exit);
        launch_in_destructor = true;
    }
    return 0;
}

static int wait_for(pid_t child)
{
    int status;

    if (child < 0 || waitpid(child, &status, 0) != child)
        return 6;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 7;
}

/* fork WHEN: the child launches 2 and 3, the parent 1 and 4; forked before cuInit or after a
 * launch. */
static int fork_and_launch(int argc, char **argv)
{
    const bool before = argc > 1 && strcmp(argv[1], "before") == 0;
    pid_t child;

    program_load();
    if (!before) {
        program_start();
        program_launch(1);
    }
    fflush(stdout);
    child = fork();
    if (child == 0) {
        if (before)
            program_start();
        program_launch(2);
        program_launch(3);
        exit(0);
    }
    if (before) {
        program_start();
        program_launch(1);
    }
    program_launch(4);
    return wait_for(child);
}

/* fork-idle: the child launches nothing and leaves by exit. */
static int fork_idle(int argc, char **argv)
{
    pid_t child;

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    program_launch(1);
    child = fork();
    if (child == 0)
        exit(0);
    return wait_for(child);
}

/* spawn: a launch, then a program by posix_spawn and one by vfork, which launch 2 each. */
static int spawn(int argc, char **argv)
{
    char name[] = "program", scenario[] = "launch", count[] = "2";
    char *const arguments[] = {name, scenario, count, NULL};
    pid_t child;
    int status;

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    program_launch(1);
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
        return 5;
    status = wait_for(child);
    child = vfork();
    if (child == 0) {
        execve("/proc/self/exe", arguments, environ);
        _exit(8);
    }
    return status != 0 ? status : wait_for(child);
}

/* descriptors: after a launch, what is open and how many threads there are. */
static int descriptors(int argc, char **argv)
{
    char link[64], target[256];

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    program_launch(1);
    for (int descriptor = 3; descriptor < 64; descriptor++) {
        ssize_t length;

        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        length = readlink(link, target, sizeof target - 1);
        if (length > 0)
            printf("%.*s %s\n", (int)length, target,
                   (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0 ? "cloexec" : "inherited");
    }
    return 0;
}

const struct program_scenario scenarios_of_ends[] = {
    {"end", end},     {"fork", fork_and_launch},    {"fork-idle", fork_idle},
    {"spawn", spawn}, {"descriptors", descriptors}, {NULL, NULL},
};
