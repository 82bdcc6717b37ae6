/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_FILES_H
#define CUDAPOLICY_REPORT_FILES_H

/*
 * Making files inside somebody else's process: nothing is overwritten, no link is followed, no
 * signal or cancellation reaches the program because of what we wrote, and its standard streams'
 * numbers are never taken. Not for the launch path.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What report_quiet_begin found, for report_quiet_end. */
struct report_quiet {
    sigset_t mask, pending;
    int cancel_state, error_number;
};

/* Between the two, SIGXFSZ (a file grew past RLIMIT_FSIZE) and SIGPIPE (nobody reads the other end)
 * that this thread's own writing raises are taken away, the thread cannot be cancelled, and errno
 * is restored at the end. Signals that were pending before stay pending. May be nested. */
void report_quiet_begin(struct report_quiet *quiet);
void report_quiet_end(const struct report_quiet *quiet);

enum {
    REPORT_FILE_TRIES = 1000 /* the path itself and the suffixes .1 to .999 */
};

/* Creates a file that was not there: path, or path.1, path.2, … while the name is taken, mode 0600,
 * O_EXCL and O_NOFOLLOW, close on exec. Returns the descriptor, above 2, and the name in made[size]
 * (made may be NULL); -1 with errno otherwise. */
int report_file_create(const char *path, char *made, size_t size);

/* Writes everything, through interruptions and short writes. False with errno. */
bool report_file_write(int descriptor, const void *data, size_t size);

/* Gives the finished file `temporary` its name: path, or path.1, path.2, … while the name is taken;
 * `temporary` is gone afterwards. Never replaces a file. False with errno (`temporary` stays). */
bool report_file_publish(const char *temporary, const char *path, char *made, size_t size);

/* path as an absolute one, so that a later chdir does not move it. False when it does not fit or
 * the working directory is unknown. Allocates nothing, takes no lock. */
bool report_path_absolute(const char *path, char *absolute, size_t size);

/* Which file a descriptor or a name (its last component not followed) stands for. */
struct report_file_identity {
    uint64_t device, inode;
};
bool report_file_identify(int descriptor, struct report_file_identity *identity);
bool report_path_identify(const char *path, struct report_file_identity *identity);
bool report_file_same(const struct report_file_identity *one,
                      const struct report_file_identity *other);

#endif
