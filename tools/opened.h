/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_OPENED_H
#define CUDAPOLICY_TOOLS_OPENED_H

/*
 * Which files were opened while a job ran, as the kernel tells (inotify). A process that never asks
 * for CUDA leaves no trace of its own, but so it is known how far the preload came. Only this host
 * is seen, and whoever opens the files there: that one was not opened is certain, that the job
 * opened it is not.
 */

#include <stdbool.h>

enum opened_file {
    OPENED_LIBRARY, /* by the loader of each process that preloads it */
    OPENED_POLICY,  /* by the library, in a process that asks for a CUDA function */
    OPENED_DRIVER,  /* libcuda.so.1, where it is looked for, by whoever loads it */
    OPENED_FILE_COUNT,
};

struct opened {
    bool known;                   /* the files were watched */
    bool seen[OPENED_FILE_COUNT]; /* and these were opened */
    bool inner_run;               /* set by the caller: see nested.h */
    /* Of opened.c. */
    int events, watched;
    struct opened_watch {
        int number;
        enum opened_file file;
    } watches[32];
};

/* Begins to watch; what is opened from here on counts. */
void opened_begin(struct opened *opened, const char *library, const char *policy);

/* Ends it. */
void opened_end(struct opened *opened);

#endif
