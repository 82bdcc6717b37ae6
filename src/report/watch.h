/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_WATCH_H
#define CUDAPOLICY_REPORT_WATCH_H

/*
 * A counters' file read again and again while its process runs, a few counters of it only: what
 * costs a handful of system calls. For the command-line tool; allocates.
 *
 * The file is read, not mapped: one that is cut short must not kill the reader. It is kept open, so
 * that the last counts can be read after its process ended in good order and removed it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report_watch;

/* What is counted: launches, eager or replayed in graphs, of some kernels, and calls of some entry
 * points. */
struct report_watch_wanted {
    /* Whether a kernel is one of them; asked once for each. NULL: none is. */
    bool (*kernel)(const char *mangled, void *context);
    void *context;
    const char *const *entries; /* their names, ended by NULL; NULL: none */
};

enum report_watch_state {
    REPORT_WATCH_READY,
    REPORT_WATCH_EARLY, /* the file is being made, or gone: perhaps later */
    REPORT_WATCH_NEVER, /* no counters' file, or one of another build: message in error[size] */
};

/* Opens the file; *watch is to be closed when the answer is REPORT_WATCH_READY. wanted is copied,
 * what it points to has to outlive the watch. */
enum report_watch_state report_watch_open(struct report_watch **watch, const char *path,
                                          const struct report_watch_wanted *wanted, char *error,
                                          size_t size);

/* All launches and calls so far, those before the opening too. False when the file cannot be read
 * any more as what it was. */
bool report_watch_read(struct report_watch *watch, uint64_t *count);

/* Of the process, as it knew it. */
uint32_t report_watch_pid(const struct report_watch *watch);

/* Which file it is: a name may stand for another one later. */
uint64_t report_watch_device(const struct report_watch *watch);
uint64_t report_watch_inode(const struct report_watch *watch);

/* Whether the file has no name any more: its process ended in good order. */
bool report_watch_removed(const struct report_watch *watch);

void report_watch_close(struct report_watch *watch);

#endif
