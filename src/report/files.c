/* SPDX-License-Identifier: Apache-2.0 */
#include "report/files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const int own_signals[] = {SIGXFSZ, SIGPIPE};

void report_quiet_begin(struct report_quiet *quiet)
{
    sigset_t blocked;
    quiet->error_number = errno;
    /* open, write and their kin are cancellation points; CUDA calls are not, and a thread that is
     * cancelled inside one of ours would take a lock with it. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel_state);
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof own_signals / sizeof own_signals[0]; i++)
        sigaddset(&blocked, own_signals[i]);
    /* sigprocmask and not pthread_sigmask: on Linux they do the same to the calling thread, and the
     * latter's symbol version is newer than the oldest glibc that must load this. */
    sigprocmask(SIG_BLOCK, &blocked, &quiet->mask);
    sigpending(&quiet->pending);
}

void report_quiet_end(const struct report_quiet *quiet)
{
    for (size_t i = 0; i < sizeof own_signals / sizeof own_signals[0]; i++) {
        sigset_t pending, one;
        sigpending(&pending);
        if (!sigismember(&pending, own_signals[i]) || sigismember(&quiet->pending, own_signals[i]))
            continue;
        sigemptyset(&one);
        sigaddset(&one, own_signals[i]);
        while (sigtimedwait(&one, NULL, &(struct timespec){0, 0}) < 0 && errno == EINTR)
            ;
    }
    sigprocmask(SIG_SETMASK, &quiet->mask, NULL);
    pthread_setcancelstate(quiet->cancel_state, NULL);
    errno = quiet->error_number;
}

/* A program may run with its standard streams closed: what it prints must not land in our file. */
static int above_standard_streams(int descriptor)
{
    if (descriptor < 0 || descriptor > STDERR_FILENO)
        return descriptor;
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error_number = errno;
    close(descriptor);
    errno = error_number;
    return moved;
}

static bool numbered(const char *path, unsigned number, char *name, size_t size)
{
    int length = number == 0 ? snprintf(name, size, "%s", path)
                             : snprintf(name, size, "%s.%u", path, number);
    if (length >= 0 && (size_t)length < size)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

int report_file_create(const char *path, char *made, size_t size)
{
    char name[4096 + 8];
    for (unsigned number = 0; number < REPORT_FILE_TRIES; number++) {
        if (!numbered(path, number, name, sizeof name))
            return -1;
        if (made != NULL && strlen(name) >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                              S_IRUSR | S_IWUSR);
        if (descriptor >= 0) {
            if (made != NULL)
                memcpy(made, name, strlen(name) + 1);
            descriptor = above_standard_streams(descriptor);
            if (descriptor < 0)
                unlink(name);
            return descriptor;
        }
        if (errno != EEXIST && errno != ELOOP && errno != EINTR)
            return -1;
    }
    errno = EEXIST;
    return -1;
}

bool report_file_write(int descriptor, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        ssize_t written = write(descriptor, next, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            if (written == 0)
                errno = ENOSPC;
            return false;
        }
        next += written;
        size -= (size_t)written;
    }
    return true;
}

/* For file systems without hard links: the name is taken by an empty file of our own, and only that
 * is replaced. */
static bool publish_by_rename(const char *temporary, const char *name)
{
    int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                          S_IRUSR | S_IWUSR);
    if (descriptor < 0)
        return false;
    close(descriptor);
    if (rename(temporary, name) == 0)
        return true;
    int error_number = errno;
    unlink(name);
    errno = error_number;
    return false;
}

bool report_file_publish(const char *temporary, const char *path, char *made, size_t size)
{
    for (unsigned number = 0; number < REPORT_FILE_TRIES; number++) {
        if (!numbered(path, number, made, size))
            return false;
        /* link fails when the name exists in any form, a dangling symbolic link included, and a
         * reader sees the whole file or none. */
        if (link(temporary, made) == 0) {
            unlink(temporary);
            return true;
        }
        if (errno != EEXIST && errno != EINTR) {
            if (publish_by_rename(temporary, made))
                return true;
            if (errno != EEXIST && errno != ELOOP)
                return false;
        }
    }
    errno = EEXIST;
    return false;
}

bool report_path_absolute(const char *path, char *absolute, size_t size)
{
    size_t length = 0;
    if (path[0] == '\0')
        return false;
    if (path[0] != '/') {
        if (getcwd(absolute, size) == NULL || absolute[0] != '/')
            return false;
        length = strlen(absolute);
        if (length > 1 && length + 1 < size)
            absolute[length++] = '/';
    }
    if (length + strlen(path) >= size)
        return false;
    memcpy(absolute + length, path, strlen(path) + 1);
    return true;
}

static bool identify(int descriptor, const char *path, int flags,
                     struct report_file_identity *identity)
{
    /* statx: the plain fstat symbol is newer than the oldest glibc that must load this. */
    struct statx status;
    if (statx(descriptor, path, flags, STATX_INO, &status) != 0)
        return false;
    identity->device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    identity->inode = status.stx_ino;
    return true;
}

bool report_file_identify(int descriptor, struct report_file_identity *identity)
{
    return identify(descriptor, "", AT_EMPTY_PATH, identity);
}

bool report_path_identify(const char *path, struct report_file_identity *identity)
{
    return identify(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, identity);
}

bool report_file_same(const struct report_file_identity *one,
                      const struct report_file_identity *other)
{
    return one->device == other->device && one->inode == other->inode;
}
