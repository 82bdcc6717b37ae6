/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    GPU_PROCESS_DEPTH = 64, /* a longer line of ancestors is not followed */
};

/* State, parent and process group from /proc; false when there is no such process. */
static bool read_process(pid_t pid, char *state, pid_t *parent, pid_t *group)
{
    char path[64], text[1024];
    const char *end;
    ssize_t size;
    int file, parent_read, group_read;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    /* The program's name stands in parentheses and may hold any character, these included. */
    end = strrchr(text, ')');
    if (end == NULL || sscanf(end + 1, " %c %d %d", state, &parent_read, &group_read) != 3) {
        return false;
    }
    *parent = parent_read;
    *group = group_read;
    return true;
}

bool gpu_process_is_other(pid_t pid, pid_t process_group)
{
    pid_t parent, group;
    char state;

    if (pid <= 0 || !read_process(pid, &state, &parent, &group) || state == 'Z' || state == 'X') {
        return false;
    }
    for (int depth = 0; depth < GPU_PROCESS_DEPTH; depth++) {
        if (group == process_group || pid == process_group || pid == getpid() ||
            parent == getpid()) {
            return false;
        }
        pid = parent;
        if (pid <= 1 || !read_process(pid, &state, &parent, &group)) {
            return true;
        }
    }
    return true;
}
