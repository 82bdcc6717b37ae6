/* SPDX-License-Identifier: Apache-2.0 */
#include "opened.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "memory.h"

static const char driver_name[] = "libcuda.so.1";

/* Where distributions, containers' tool kits, WSL and NixOS have the driver. Asking the loader
 * would run the driver's own code in this process. */
static const char *const driver_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/cuda/compat",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
};

static void watch(struct opened *opened, const char *path, enum opened_file file)
{
    size_t room = sizeof opened->watches / sizeof opened->watches[0];
    int number;

    if ((size_t)opened->watched == room) {
        return;
    }
    /* Once is enough, and does not cost the programs of a long job anything. */
    number = inotify_add_watch(opened->events, path, IN_OPEN | IN_ONESHOT);
    if (number >= 0) {
        opened->watches[opened->watched++] = (struct opened_watch){number, file};
    } else if (file != OPENED_DRIVER) {
        opened->known = false;
    }
}

static void watch_driver(struct opened *opened, const char *folder)
{
    char *path = memory_format("%s/%s", folder, driver_name);

    watch(opened, path, OPENED_DRIVER);
    free(path);
}

/* The loader takes the first it finds, which is not the system's where the user names another. */
static void watch_drivers(struct opened *opened)
{
    const char *variable = getenv("LD_LIBRARY_PATH");
    char *folders = memory_copy(variable != NULL ? variable : ""), *folder, *rest = NULL;
    int before = opened->watched;

    for (folder = strtok_r(folders, ":;", &rest); folder != NULL;
         folder = strtok_r(NULL, ":;", &rest)) {
        watch_driver(opened, folder);
    }
    for (size_t i = 0;
         i < sizeof driver_folders / sizeof driver_folders[0] && opened->watched == before; i++) {
        watch_driver(opened, driver_folders[i]);
    }
    free(folders);
}

void opened_begin(struct opened *opened, const char *library, const char *policy)
{
    *opened = (struct opened){.events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    if (opened->events < 0) {
        return;
    }
    opened->known = true;
    watch(opened, library, OPENED_LIBRARY);
    watch(opened, policy, OPENED_POLICY);
    watch_drivers(opened);
}

static void note(struct opened *opened, const struct inotify_event *event)
{
    for (int i = 0; i < opened->watched && (event->mask & IN_OPEN) != 0; i++) {
        if (opened->watches[i].number == event->wd) {
            opened->seen[opened->watches[i].file] = true;
        }
    }
}

void opened_end(struct opened *opened)
{
    union {
        struct inotify_event event; /* for its alignment */
        char bytes[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    } buffer;
    ssize_t length;

    if (opened->events < 0) {
        return;
    }
    while ((length = read(opened->events, &buffer, sizeof buffer)) > 0) {
        for (ssize_t place = 0; place < length;) {
            struct inotify_event event;

            memcpy(&event, buffer.bytes + place, sizeof event);
            note(opened, &event);
            place += (ssize_t)(sizeof event + event.len);
        }
    }
    close(opened->events);
    opened->events = -1;
}
