/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_DEVICES_H
#define CUDAPOLICY_TOOLS_DEVICES_H

/* The GPUs of this machine, asked of the driver, which is loaded at run time: the command works on
 * machines without one. */

#include <stdbool.h>
#include <stddef.h>

struct device {
    char name[128], uuid[48], pci[32];
    int compute_major, compute_minor;
    int multiprocessors;
    int mem_sync_domains; /* physical memory-synchronization domains; 1: they cannot be told apart
                           */
    bool clusters;        /* thread block clusters */
};

struct devices {
    char *absent;       /* a sentence: why there are no devices to show; NULL when there are */
    int driver_version; /* 13000 for CUDA 13.0; 0: no driver */
    size_t count;
    struct device *list;
};

/* Loads and initialises the driver, and fills cuda_driver where there are devices. */
void devices_read(struct devices *devices);

void devices_release(struct devices *devices);

#endif
