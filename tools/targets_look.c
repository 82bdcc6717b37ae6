/* SPDX-License-Identifier: Apache-2.0 */
#include "targets_look.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "targets.h"

/* ---- The file that a process has mapped --------------------------------------------------------
 */

/* A line of /proc/PID/maps. */
struct mapping {
    unsigned long start, end;
    uint64_t inode;
    char *path; /* in the line */
};

static bool read_mapping(char *line, struct mapping *mapping)
{
    int path = 0;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%lx-%lx %*s %*s %*s %" SCNu64 " %n", &mapping->start, &mapping->end,
               &mapping->inode, &path) < 3 ||
        path == 0) {
        return false;
    }
    mapping->path = line + path;
    return true;
}

static bool is_file(const char *name, uint64_t inode)
{
    struct stat status;

    return stat(name, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode;
}

/* A name of the mapped file that works for us: as it is, as the process sees it from its own root,
 * or by the mapping itself where it was removed (for which one has to be root). */
static char *usable_name(long pid, const struct mapping *mapping)
{
    char *name = memory_copy(mapping->path);

    if (is_file(name, mapping->inode)) {
        return name;
    }
    free(name);
    name = memory_format("/proc/%ld/root%s", pid, mapping->path);
    if (is_file(name, mapping->inode)) {
        return name;
    }
    free(name);
    name = memory_format("/proc/%ld/map_files/%lx-%lx", pid, mapping->start, mapping->end);
    if (is_file(name, mapping->inode)) {
        return name;
    }
    free(name);
    return NULL;
}

/* Where a process's first thread has ended and others go on, only theirs can be read. */
static FILE *maps_of_threads(long pid)
{
    char *name = memory_format("/proc/%ld/task", pid);
    DIR *folder = opendir(name);
    FILE *file = NULL;
    struct dirent *entry;
    int first = EOF;

    free(name);
    while (folder != NULL && first == EOF && (entry = readdir(folder)) != NULL) {
        if (file != NULL) {
            fclose(file);
        }
        name = memory_format("/proc/%ld/task/%s/maps", pid, entry->d_name);
        file = fopen(name, "re");
        first = file != NULL ? getc(file) : EOF;
        free(name);
    }
    if (first != EOF) {
        ungetc(first, file);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return file;
}

/* NULL, with errno: they cannot be read. */
static FILE *open_maps(long pid)
{
    char *name = memory_format("/proc/%ld/maps", pid);
    FILE *file = fopen(name, "re");
    int first;

    free(name);
    if (file == NULL) {
        return NULL;
    }
    first = getc(file);
    if (first != EOF) {
        ungetc(first, file);
        return file;
    }
    fclose(file);
    return maps_of_threads(pid);
}

struct target_look target_look_at(long pid)
{
    char *line = NULL;
    FILE *file = open_maps(pid);
    struct target_look look = {.failed = file == NULL};
    size_t size = 0;

    while (file != NULL && look.counters == NULL && getline(&line, &size, file) > 0) {
        struct mapping mapping;

        if (!read_mapping(line, &mapping)) {
            continue;
        }
        look.preloaded |= strstr(mapping.path, "/libcudapolicy.so") != NULL;
        if (strstr(mapping.path, ".counters") != NULL) {
            look.counters = usable_name(pid, &mapping);
            look.unusable |= look.counters == NULL;
        }
    }
    if (file != NULL) {
        look.failed = ferror(file) != 0;
        fclose(file);
    }
    free(line);
    return look;
}

bool targets_may_use(long pid, const char *counters)
{
    char *name = memory_format("/proc/%ld/maps", pid), *line = NULL;
    FILE *file = fopen(name, "re");
    struct stat status;
    bool found = false, any = false, failed = file == NULL || stat(counters, &status) != 0;
    size_t size = 0;

    free(name);
    while (!failed && !found && getline(&line, &size, file) > 0) {
        struct mapping mapping;

        any = true;
        found = read_mapping(line, &mapping) && strstr(mapping.path, ".counters") != NULL &&
                mapping.inode == status.st_ino;
    }
    if (file != NULL) {
        failed |= ferror(file) != 0;
        fclose(file);
    }
    free(line);
    return found || failed || !any; /* none at all: its first thread has ended */
}

/* ---- Why a process has none --------------------------------------------------------------------
 */

/* The value of a variable at the process's start; NULL: not set, or it cannot be read. */
static char *variable_of(long pid, const char *variable)
{
    char *name = memory_format("/proc/%ld/environ", pid), *text = NULL, *value = NULL;
    FILE *file = fopen(name, "re");
    const size_t length = strlen(variable);
    size_t size = 0;

    free(name);
    while (file != NULL && value == NULL && getdelim(&text, &size, '\0', file) > 0) {
        if (strncmp(text, variable, length) == 0 && text[length] == '=') {
            value = memory_copy(text + length + 1);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    free(text);
    return value;
}

static char *explain_unreached(long pid, const struct target_look *look)
{
    char *mode = variable_of(pid, "CUDAPOLICY_MODE");
    char *report = variable_of(pid, "CUDAPOLICY_REPORT");
    const char *problem;

    if (look->unusable) {
        problem = "its counters' file was removed, or lies where only root can reach it";
    } else if (!look->preloaded) {
        problem = "it does not run under a policy: start it by 'cudapolicy run', or with "
                  "libcudapolicy.so in LD_PRELOAD";
    } else if (mode != NULL && strcmp(mode, "off") == 0) {
        problem = "it was started with CUDAPOLICY_MODE=off, and from that nothing leads back: "
                  "start it in observe or enforce";
    } else if (report == NULL || report[0] == '\0') {
        problem = "it has no counters' file, through which it could be reached: start it with "
                  "CUDAPOLICY_REPORT=FOLDER/%p.json";
    } else {
        problem = "it launched no kernel yet, or its policy has errors";
    }
    free(mode);
    free(report);
    return memory_copy(problem);
}

/* The field of /proc/PID/status behind this label, as "Uid:"; "" where it cannot be read. */
static void status_field(long pid, const char *label, char *value, size_t size)
{
    char *name = memory_format("/proc/%ld/status", pid), line[256];
    FILE *file = fopen(name, "re");
    const size_t length = strlen(label);

    free(name);
    value[0] = '\0';
    while (file != NULL && value[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, label, length) == 0) {
            snprintf(value, size, "%s", line + length + strspn(line + length, " \t"));
            value[strcspn(value, " \t\n")] = '\0';
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* Why we may not look at it. */
static char *explain_protected(long pid)
{
    char owner[32];
    const struct passwd *user;
    uid_t number;

    status_field(pid, "Uid:", owner, sizeof owner);
    number = (uid_t)strtoul(owner, NULL, 10);
    if (owner[0] == '\0' || number == geteuid()) {
        return memory_copy("its counters cannot be looked for: it is protected (it changed its "
                           "user, or lives in another user namespace), so that only root may");
    }
    user = getpwuid(number);
    return memory_format("it is another user's process, of %s%s: only that user, or root, can "
                         "tell it something",
                         user != NULL ? "" : "user ", user != NULL ? user->pw_name : owner);
}

char *target_explain_missing(long pid, const struct target_look *look)
{
    char state[8];

    status_field(pid, "State:", state, sizeof state);
    if (state[0] == '\0' && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
        return memory_copy("it has ended meanwhile");
    }
    if ((state[0] == 'Z' || state[0] == 'X') && !look->preloaded) {
        return memory_copy("it has ended, and its parent did not ask for its status yet (a "
                           "zombie): there is nothing to be told");
    }
    return look->failed ? explain_protected(pid) : explain_unreached(pid, look);
}
