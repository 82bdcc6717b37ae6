/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_PROCESS_GROUP_H
#define CUDAPOLICY_TOOLS_AB_PROCESS_GROUP_H

/*
 * A command with all its processes: started in a process group of its own, ended as a whole when
 * its time is over or the user wants to end, and nothing of it left when it is over.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_group {
    char **argv, **environment;
    int output, errors; /* descriptors for its standard output and standard error */
    double time_limit;  /* seconds; 0: none */
    /* What is to be done meanwhile: tick every interval milliseconds, unless that is 0. start and
     * tick may be NULL. */
    int interval;
    void (*start)(void *context, pid_t group);
    void (*tick)(void *context);
    void *context;
    bool timed;     /* its time matters: where it is suspended (Ctrl-Z), it is ended */
    bool keep_left; /* what the first process leaves behind goes on */
};

struct process_group_end {
    int error;          /* of exec: it never ran; 0 */
    int wait_status;    /* as wait gives it, of the first process */
    int64_t start_time; /* nanoseconds since 1970 */
    double seconds;     /* until the first process ended */
    bool timed_out, interrupted, suspended;
};

/* Runs it to its end. Standard input is empty. Processes that the first one leaves behind, in
 * whichever group or session they are by then, have a second to end on their own. They, and all
 * processes where the command is ended, get SIGTERM, and SIGKILL five seconds later. False when
 * nothing could be started, with a message printed. */
bool process_group_run(const struct process_group *group, struct process_group_end *end);

/* From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT (those that are not ignored) end a command that
 * runs, the second one at once, and whoever asks is told. Otherwise they do nothing. */
void process_group_catch_signals(void);
bool process_group_interrupted(void);

#endif
