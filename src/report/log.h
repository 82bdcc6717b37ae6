/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_LOG_H
#define CUDAPOLICY_REPORT_LOG_H

/*
 * Messages to a person: stderr, or the file that CUDAPOLICY_LOG_FILE names. Never stdout.
 * One write(2) a message, "cudapolicy(pid): level: message", no lock, no allocation, errno kept.
 * Not for the launch path; report_log_once is for places that many launches may reach.
 */

#include <stdbool.h>

enum report_log_level {
    REPORT_LOG_ERROR,
    REPORT_LOG_WARN,
    REPORT_LOG_INFO,
    REPORT_LOG_DEBUG,
};

/* Sets level and destination. file: a path whose %h %p %j %r are already expanded, or NULL for
 * stderr. Opened with O_EXCL and O_NOFOLLOW, mode 0600, a suffix on collision; when it cannot be
 * opened, stderr stays and a warning says so. Call once, before the first message. */
void report_log_start(enum report_log_level level, const char *file);

/* Parses "error", "warn", "info" or "debug". */
bool report_log_level_parse(const char *text, enum report_log_level *level);

/* True when a message of this level would be written: for texts that cost something to make. */
bool report_log_enabled(enum report_log_level level);

void report_log(enum report_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* At most once for each call site and process. */
#define report_log_once(level, ...)                                                                \
    do {                                                                                           \
        static bool said_;                                                                         \
        if (!__atomic_exchange_n(&said_, true, __ATOMIC_RELAXED))                                  \
            report_log((level), __VA_ARGS__);                                                      \
    } while (0)

#endif
