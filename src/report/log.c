/* SPDX-License-Identifier: Apache-2.0 */
#include "report/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/files.h"

enum {
    /* A message is built on the caller's stack, which may be a thread's small one. */
    MESSAGE_SIZE = 4096
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const level_words[] = {"error", "warning", "info", "debug"};

static struct {
    enum report_log_level level;
    int descriptor;
    struct report_file_identity identity;
    char path[PATH_MAX];
} destination = {.level = REPORT_LOG_WARN, .descriptor = STDERR_FILENO};

bool report_log_level_parse(const char *text, enum report_log_level *level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level = (enum report_log_level)i;
            return true;
        }
    }
    return false;
}

bool report_log_enabled(enum report_log_level level)
{
    return level <= destination.level;
}

void report_log_start(enum report_log_level level, const char *file)
{
    char path[PATH_MAX];
    struct report_quiet quiet;

    destination.level = level;
    if (file == NULL)
        return;
    report_quiet_begin(&quiet);
    int descriptor = -1;
    if (!report_path_absolute(file, path, sizeof path))
        errno = ENAMETOOLONG;
    else
        descriptor = report_file_create(path, destination.path, sizeof destination.path);
    int error_number = errno;
    if (descriptor >= 0 && report_file_identify(descriptor, &destination.identity)) {
        fcntl(descriptor, F_SETFL, O_APPEND);
        destination.descriptor = descriptor;
    } else {
        if (descriptor >= 0)
            close(descriptor);
        errno = error_number;
        report_log(REPORT_LOG_WARN, "log file %s cannot be made: %m; messages go to stderr", file);
    }
    report_quiet_end(&quiet);
}

/* Programs close descriptors they did not open, and reuse the numbers: what stands behind ours is
 * looked at before each message, and the file is opened again by name when it is another one. */
static int open_destination(bool *close_it)
{
    struct report_file_identity identity;
    *close_it = false;
    if (destination.descriptor == STDERR_FILENO)
        return STDERR_FILENO;
    if (report_file_identify(destination.descriptor, &identity) &&
        report_file_same(&identity, &destination.identity))
        return destination.descriptor;
    int descriptor =
        open(destination.path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    if (descriptor > STDERR_FILENO && report_file_identify(descriptor, &identity) &&
        report_file_same(&identity, &destination.identity)) {
        *close_it = true;
        return descriptor;
    }
    if (descriptor >= 0)
        close(descriptor);
    return STDERR_FILENO;
}

/* Texts come from kernels' names and policy files: what would drive a terminal or pretend to be a
 * second message is made visible instead. */
static void replace_control_characters(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte == 0x7f)
            text[i] = byte == '\t' ? ' ' : '?';
    }
}

void report_log(enum report_log_level level, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    struct report_quiet quiet;
    va_list arguments;

    if (!report_log_enabled(level) || (unsigned)level > REPORT_LOG_DEBUG)
        return;
    int error_number = errno; /* for %m */
    int start = snprintf(message, sizeof message, "cudapolicy(%ld): %s: ", (long)getpid(),
                         level_words[level]);
    errno = error_number;
    va_start(arguments, format);
    int length = vsnprintf(message + start, sizeof message - 1 - (size_t)start, format, arguments);
    va_end(arguments);
    errno = error_number;
    if (length < 0)
        return;
    size_t size = (size_t)start + (size_t)length;
    if (size > sizeof message - 2) {
        size = sizeof message - 2;
        memcpy(message + size - 3, "...", 3);
    }
    replace_control_characters(message, size);
    message[size++] = '\n';

    report_quiet_begin(&quiet);
    bool close_it;
    int descriptor = open_destination(&close_it);
    report_file_write(descriptor, message, size);
    if (close_it)
        close(descriptor);
    report_quiet_end(&quiet);
}
