/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A site's file, found without trusting anybody but root and the owner: the path is walked from /,
 * folder by folder, symbolic links included, and each part is looked at after it was opened. What
 * nobody else can write to nobody else can exchange, so the walk cannot be led elsewhere while it
 * goes on.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/parser.h"
#include "policy/site.h"

enum {
    LINK_LIMIT = 40, /* symbolic links on the way, as the kernel has it */
};

/* In the heap: the thread that asks may have a small stack. */
struct walk {
    const struct policy_site_place *place;
    struct policy_diagnostics *diagnostics;
    int folder;  /* that was reached */
    bool shared; /* others may make files there */
    unsigned links;
    bool absent;
    char reached[PATH_MAX];  /* the folder's name, for messages */
    char rest[2 * PATH_MAX]; /* what is still to be walked */
    char part[NAME_MAX + 2]; /* that is walked now */
    char name[PATH_MAX];     /* its whole name, for messages */
    char target[PATH_MAX];   /* of a symbolic link */
    char longer[2 * PATH_MAX];
};

static void refuse(const struct walk *walk, const char *what, const char *why)
{
    policy_diagnose(walk->diagnostics, POLICY_ERROR, (struct policy_place){0}, "refused: %s %s",
                    what, why);
}

/* A file that is not there is no mistake. */
static void refuse_errno(struct walk *walk, const char *what, int error)
{
    char *text = NULL;

    walk->absent = error == ENOENT;
    if (!walk->absent && asprintf(&text, "refused: %s", what) >= 0) {
        policy_diagnose_errno(walk->diagnostics, text, error);
        free(text);
    }
}

/* ---- who may write there -------------------------------------------------------------------- */

static bool is_owner(const struct walk *walk, uid_t user)
{
    return user == 0 || user == walk->place->owner;
}

/* statx() and not fstat(), whose symbol needs glibc 2.33 when it was built on such a system. */
static bool get_status(struct walk *walk, int file, const char *name, struct statx *status)
{
    if (statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, status) == 0) {
        return true;
    }
    refuse(walk, name, "cannot be looked at");
    return false;
}

/* Access control lists show here too: their mask is what the group's bits are. */
static bool is_open_to_others(const struct statx *status)
{
    return (status->stx_mode & (S_IWGRP | S_IWOTH)) != 0;
}

static bool owner_is_good(const struct walk *walk, const struct statx *status, const char *name)
{
    char why[64];

    if (is_owner(walk, status->stx_uid)) {
        return true;
    }
    snprintf(why, sizeof why, "belongs to user %lu, not to root", (unsigned long)status->stx_uid);
    refuse(walk, name, why);
    return false;
}

/* With the sticky bit, others can make files in the folder, but not take away the owner's. */
static bool folder_is_good(struct walk *walk, const struct statx *status, const char *name)
{
    if (!owner_is_good(walk, status, name)) {
        return false;
    }
    walk->shared = is_open_to_others(status);
    if (walk->shared && (status->stx_mode & S_ISVTX) == 0) {
        refuse(walk, name, "is a folder that others than its owner may write to");
        return false;
    }
    return true;
}

static bool file_is_good(const struct walk *walk, const struct statx *status, const char *name)
{
    if (!S_ISREG(status->stx_mode)) {
        refuse(walk, name, "is not a regular file");
        return false;
    }
    if (!owner_is_good(walk, status, name)) {
        return false;
    }
    if (is_open_to_others(status)) {
        refuse(walk, name, "may be written to by others than its owner");
        return false;
    }
    /* Anybody may have made another name for a file of root's there, which is not this file. */
    if (walk->shared && status->stx_nlink != 1) {
        refuse(walk, name, "has several names, and others may make names in its folder");
        return false;
    }
    if (status->stx_size > POLICY_SITE_FILE_LIMIT) {
        refuse(walk, name, "is larger than 1 MiB");
        return false;
    }
    return true;
}

/* ---- the walk ------------------------------------------------------------------------------- */

/* "/etc" and "cudapolicy" to "/etc/cudapolicy", shortened where it is too long. */
static void join(struct walk *walk)
{
    const char *separator = strcmp(walk->reached, "/") == 0 ? "" : "/";

    if (snprintf(walk->name, sizeof walk->name, "%s%s%s", walk->reached, separator, walk->part) >=
        (int)sizeof walk->name) {
        memcpy(walk->name + sizeof walk->name - 4, "...", 4);
    }
}

/* Takes the next part of the path away; "" at its end. */
static void next_part(struct walk *walk)
{
    size_t start = strspn(walk->rest, "/"), length = strcspn(walk->rest + start, "/");
    /* No name is longer; the kernel will say so. */
    size_t kept = length < sizeof walk->part ? length : sizeof walk->part - 1;

    memcpy(walk->part, walk->rest + start, kept);
    walk->part[kept] = '\0';
    memmove(walk->rest, walk->rest + start + length, strlen(walk->rest + start + length) + 1);
}

static bool enter(struct walk *walk, int folder, const char *name)
{
    struct statx status;

    if (!get_status(walk, folder, name, &status) || !folder_is_good(walk, &status, name)) {
        close(folder);
        return false;
    }
    if (walk->folder >= 0) {
        close(walk->folder);
    }
    walk->folder = folder;
    memcpy(walk->reached, name, strlen(name) + 1);
    return true;
}

static bool enter_root(struct walk *walk)
{
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0) {
        refuse_errno(walk, "/", errno);
        return false;
    }
    return enter(walk, root, "/");
}

/* The link's text comes before what is still to be walked. */
static bool follow(struct walk *walk, int link)
{
    ssize_t length = readlinkat(link, "", walk->target, sizeof walk->target - 1);
    int longer;

    if (length <= 0) {
        refuse(walk, walk->name, "is a symbolic link that cannot be read");
        return false;
    }
    walk->target[length] = '\0';
    if (++walk->links > LINK_LIMIT) {
        refuse_errno(walk, walk->name, ELOOP);
        return false;
    }
    longer = snprintf(walk->longer, sizeof walk->longer, "%s/%s", walk->target, walk->rest);
    if (longer >= (int)sizeof walk->longer) {
        refuse_errno(walk, walk->name, ENAMETOOLONG);
        return false;
    }
    memcpy(walk->rest, walk->longer, (size_t)longer + 1);
    return walk->target[0] != '/' || enter_root(walk);
}

/* A folder or a symbolic link on the way; anything else is an error. */
static bool pass(struct walk *walk)
{
    int file = openat(walk->folder, walk->part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct statx status;
    bool passed;

    if (file < 0) {
        refuse_errno(walk, walk->name, errno);
        return false;
    }
    if (!get_status(walk, file, walk->name, &status)) {
        close(file);
        return false;
    }
    if (S_ISDIR(status.stx_mode)) {
        return enter(walk, file, walk->name);
    }
    if (S_ISLNK(status.stx_mode)) {
        passed = owner_is_good(walk, &status, walk->name) && follow(walk, file);
    } else {
        refuse_errno(walk, walk->name, ENOTDIR);
        passed = false;
    }
    close(file);
    return passed;
}

static bool is_last(const struct walk *walk)
{
    return walk->rest[strspn(walk->rest, "/")] == '\0' && strcmp(walk->part, "..") != 0;
}

/* Opens the last part to be read. -1 after an error, or with *link when it is a symbolic link. */
static int open_last(struct walk *walk, bool *link)
{
    /* Without blocking, so that a FIFO cannot stop the program; it is refused then. */
    int file =
        openat(walk->folder, walk->part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct statx status;

    *link = file < 0 && errno == ELOOP;
    if (file < 0 && !*link) {
        refuse_errno(walk, walk->name, errno);
    }
    if (file >= 0 && (!get_status(walk, file, walk->name, &status) ||
                      !file_is_good(walk, &status, walk->name))) {
        close(file);
        return -1;
    }
    return file;
}

static int walk_to_end(struct walk *walk)
{
    bool link = true;
    int file;

    for (;;) {
        next_part(walk);
        if (walk->part[0] == '\0') {
            refuse(walk, walk->reached, "is not a regular file");
            return -1;
        }
        if (strcmp(walk->part, ".") == 0) {
            continue;
        }
        join(walk);
        if (is_last(walk) && ((file = open_last(walk, &link)) >= 0 || !link)) {
            return file;
        }
        if (!pass(walk)) {
            return -1;
        }
    }
}

static int open_safely(struct walk *walk)
{
    const char *path = walk->place->path;
    int file;

    if (path[0] != '/' || strlen(path) >= PATH_MAX) {
        refuse(walk, path, "is not an absolute path");
        return -1;
    }
    memcpy(walk->rest, path, strlen(path) + 1);
    file = enter_root(walk) ? walk_to_end(walk) : -1;
    if (walk->folder >= 0) {
        close(walk->folder);
    }
    return file;
}

static char *read_safely(const struct policy_site_place *place, size_t *length, bool *absent,
                         struct policy_diagnostics *diagnostics)
{
    struct walk *walk = calloc(1, sizeof *walk);
    char *text = NULL;
    int file;

    *absent = false;
    if (walk == NULL) {
        policy_diagnose_errno(diagnostics, "cannot be read", ENOMEM);
        return NULL;
    }
    walk->place = place;
    walk->diagnostics = diagnostics;
    walk->folder = -1;
    file = open_safely(walk);
    if (file >= 0) {
        text = policy_read_file(file, POLICY_SITE_FILE_LIMIT, length, diagnostics);
        close(file);
    }
    *absent = walk->absent;
    free(walk);
    return text;
}

char *policy_site_read(const struct policy_site_place *place, size_t *length, bool *absent,
                       struct policy_diagnostics *diagnostics)
{
    int programs_errno = errno;
    char *text = NULL;

    *absent = true;
    if (place->path[0] != '\0') {
        text = read_safely(place, length, absent, diagnostics);
    }
    errno = programs_errno;
    return text;
}
