/* SPDX-License-Identifier: Apache-2.0 */

/* A policy file to text in memory, safely: inside a program that did not ask for it. */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "policy/parser.h"

#ifndef PIPEFS_MAGIC
#define PIPEFS_MAGIC 0x50495045
#endif

enum {
    READ_SIZE = 64 * 1024,
    PIPE_PATIENCE_MS = 10 * 1000, /* between two pieces of a pipe */
};

static const struct policy_place whole_file = {0, 0};

/* Not strerror(): it translates into the program's language, and may allocate and read files to do
 * so. */
static const char *error_text(int error)
{
    switch (error) {
    case ENOENT:
        return "no such file";
    case EACCES:
    case EPERM:
        return "permission denied";
    case ENOTDIR:
        return "a part of the path is not a directory";
    case EISDIR:
        return "it is a directory";
    case ELOOP:
        return "too many symbolic links";
    case ENAMETOOLONG:
        return "the name is too long";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case ENXIO:
    case ENODEV:
        return "it is a socket or a device without a driver";
    case EIO:
        return "input or output error";
    case ENOMEM:
        return "out of memory";
    default:
        return NULL;
    }
}

void policy_diagnose_errno(struct policy_diagnostics *diagnostics, const char *what, int error)
{
    const char *text = error_text(error);

    if (text != NULL) {
        policy_diagnose(diagnostics, POLICY_ERROR, whole_file, "%s: %s", what, text);
    } else {
        policy_diagnose(diagnostics, POLICY_ERROR, whole_file, "%s: error %d", what, error);
    }
}

/* A pipe without a name, such as a shell makes for <(command), ends by itself when its writer does;
 * a FIFO in the file system may never have a writer. */
static bool is_anonymous_pipe(int file)
{
    struct statfs file_system;

    return fstatfs(file, &file_system) == 0 && file_system.f_type == PIPEFS_MAGIC;
}

static bool kind_is_good(int file, struct policy_diagnostics *diagnostics)
{
    struct statx status;
    const char *kind;

    /* statx() and not fstat(), whose symbol needs glibc 2.33 when it was built on such a system. */
    if (statx(file, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &status) != 0) {
        /* A container may forbid it; reading will tell. */
        return true;
    }
    switch (status.stx_mode & S_IFMT) {
    case S_IFREG:
        if (status.stx_size > POLICY_FILE_LIMIT) {
            policy_diagnose(diagnostics, POLICY_ERROR, whole_file,
                            "the file has %llu bytes; a policy has at most %d",
                            (unsigned long long)status.stx_size, (int)POLICY_FILE_LIMIT);
            return false;
        }
        return true;
    case S_IFIFO:
        if (is_anonymous_pipe(file)) {
            return true;
        }
        kind = "FIFO";
        break;
    case S_IFDIR:
        kind = "directory";
        break;
    case S_IFCHR:
    case S_IFBLK:
        kind = "device";
        break;
    default:
        kind = "socket or something else";
        break;
    }
    policy_diagnose(diagnostics, POLICY_ERROR, whole_file, "it is a %s, not a policy file", kind);
    return false;
}

/* Waits until there is something to read from a pipe that was opened without blocking. */
static bool wait_for_pipe(int file, struct policy_diagnostics *diagnostics)
{
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    int ready;

    do {
        ready = poll(&wanted, 1, PIPE_PATIENCE_MS);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        policy_diagnose(diagnostics, POLICY_ERROR, whole_file,
                        "nothing came through the pipe for %d seconds", PIPE_PATIENCE_MS / 1000);
    } else if (ready < 0) {
        policy_diagnose_errno(diagnostics, "cannot wait for the pipe", errno);
    }
    return ready > 0;
}

/* Bytes read, 0 at the end, -1 after an error that is reported. */
static ssize_t read_piece(int file, char *buffer, size_t size,
                          struct policy_diagnostics *diagnostics)
{
    for (;;) {
        ssize_t count = read(file, buffer, size);

        if (count >= 0) {
            return count;
        }
        if (errno == EAGAIN) {
            if (!wait_for_pipe(file, diagnostics)) {
                return -1;
            }
        } else if (errno != EINTR) {
            policy_diagnose_errno(diagnostics, "cannot read the file", errno);
            return -1;
        }
    }
}

/* The whole file in memory that the caller frees; NULL after an error. */
char *policy_read_file(int file, size_t limit, size_t *length,
                       struct policy_diagnostics *diagnostics)
{
    char *text = NULL;
    size_t used = 0, capacity = 0;

    for (;;) {
        if (capacity - used < READ_SIZE) {
            char *larger = realloc(text, capacity + capacity / 2 + 2 * READ_SIZE);

            if (larger == NULL) {
                policy_diagnose_errno(diagnostics, "cannot read the file", ENOMEM);
                break;
            }
            text = larger;
            capacity = capacity + capacity / 2 + 2 * READ_SIZE;
        }
        ssize_t count = read_piece(file, text + used, READ_SIZE, diagnostics);
        if (count < 0) {
            break;
        }
        if (count == 0) {
            *length = used;
            return text;
        }
        used += (size_t)count;
        if (used > limit) {
            policy_diagnose(diagnostics, POLICY_ERROR, whole_file,
                            "the file goes on after %zu bytes; a policy has no more than that",
                            limit);
            break;
        }
    }
    free(text);
    return NULL;
}

static int open_file(const char *path)
{
    int file;

    do {
        /* Without blocking, so that a FIFO without a writer cannot stop the program. */
        file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    } while (file < 0 && errno == EINTR);
    return file;
}

struct policy *policy_load_with(policy_parse_function *parse, const char *path,
                                struct policy_diagnostics *diagnostics)
{
    struct policy *policy = NULL;
    size_t length = 0;
    char *text = NULL;
    int programs_errno = errno;

    if (diagnostics->file == NULL) {
        diagnostics->file = strdup(path);
    }
    int file = open_file(path);
    if (file < 0) {
        policy_diagnose_errno(diagnostics, "cannot open the policy", errno);
        diagnostics->unreadable = true;
        errno = programs_errno;
        return NULL;
    }
    if (kind_is_good(file, diagnostics)) {
        text = policy_read_file(file, POLICY_FILE_LIMIT, &length, diagnostics);
    }
    close(file);
    diagnostics->unreadable = text == NULL;
    if (text != NULL) {
        policy = parse(text, length, path, diagnostics);
        free(text);
    }
    errno = programs_errno;
    return policy;
}

struct policy *policy_load(const char *path, struct policy_diagnostics *diagnostics)
{
    return policy_load_with(policy_parse, path, diagnostics);
}
