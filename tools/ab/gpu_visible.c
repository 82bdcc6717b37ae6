/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_visible.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "memory.h"

/* All of them, in NVML's order. One that cannot be asked (of another user's container, say) is
 * left out. */
static struct gpu_device *all_devices(const struct nvml_library *nvml, size_t *count)
{
    struct gpu_device *devices;
    unsigned there = 0;

    *count = 0;
    if (nvml->count(&there) != NVML_LIBRARY_SUCCESS || there == 0) {
        return NULL;
    }
    devices = memory_allocate(there, sizeof *devices);
    for (unsigned i = 0; i < there; i++) {
        struct gpu_device *device = &devices[*count];

        if (nvml->by_index(i, &device->device) != NVML_LIBRARY_SUCCESS) {
            continue;
        }
        device->processes = device->device;
        device->index = i;
        if (nvml->name(device->device, device->name, sizeof device->name) != NVML_LIBRARY_SUCCESS) {
            snprintf(device->name, sizeof device->name, "GPU");
        }
        if (nvml->uuid(device->device, device->uuid, sizeof device->uuid) != NVML_LIBRARY_SUCCESS) {
            device->uuid[0] = '\0';
        }
        (*count)++;
    }
    if (*count == 0) {
        free(devices);
        return NULL;
    }
    return devices;
}

/* CUDA's order of devices is NVML's where the user asked for it, or where they are all alike. */
static bool same_order(const struct gpu_device *all, size_t count)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");

    if (order != NULL && strcmp(order, "PCI_BUS_ID") == 0) {
        return true;
    }
    for (size_t i = 1; i < count; i++) {
        if (strcmp(all[i].name, all[0].name) != 0) {
            return false;
        }
    }
    return true;
}

/* The only device whose UUID begins like text; NULL: none, or several. */
static const struct gpu_device *by_prefix(const struct gpu_device *all, size_t count,
                                          const char *text, size_t length)
{
    const struct gpu_device *found = NULL;

    for (size_t i = 0; i < count; i++) {
        if (length > strlen("GPU-") && strncasecmp(all[i].uuid, text, length) == 0) {
            if (found != NULL) {
                return NULL;
            }
            found = &all[i];
        }
    }
    return found;
}

/* A part of a GPU: MIG-UUID, or, before CUDA 11.4, MIG-GPU-UUID/INSTANCE/INSTANCE. */
static bool mig_part(const struct nvml_library *nvml, const struct gpu_device *all, size_t count,
                     const char *text, struct gpu_device *device)
{
    nvml_library_device part, parent;

    if (nvml->by_uuid == NULL || nvml->parent == NULL ||
        nvml->by_uuid(text, &part) != NVML_LIBRARY_SUCCESS ||
        nvml->parent(part, &parent) != NVML_LIBRARY_SUCCESS) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (all[i].device == parent) {
            *device = all[i];
            device->processes = part;
            snprintf(device->part, sizeof device->part, "%s", text);
            return true;
        }
    }
    return false;
}

enum word {
    WORD_FOUND,
    WORD_UNKNOWN, /* CUDA stops at the first that it does not understand */
    WORD_CANNOT_TELL,
};

static enum word read_word(const struct nvml_library *nvml, const struct gpu_device *all,
                           size_t count, const char *word, struct gpu_device *device)
{
    const struct gpu_device *found;
    char *end;
    long index;

    if (isdigit((unsigned char)word[0])) {
        index = strtol(word, &end, 10);
        if (*end != '\0' || index < 0 || (size_t)index >= count) {
            return WORD_UNKNOWN;
        }
        if (!same_order(all, count)) {
            return WORD_CANNOT_TELL;
        }
        *device = all[index];
        return WORD_FOUND;
    }
    if (strncmp(word, "MIG-", 4) == 0) {
        return mig_part(nvml, all, count, word, device) ? WORD_FOUND : WORD_CANNOT_TELL;
    }
    found = by_prefix(all, count, word, strlen(word));
    if (found == NULL) {
        return WORD_UNKNOWN;
    }
    *device = *found;
    return WORD_FOUND;
}

/* Cuts the next word off a list; NULL at its end. */
static char *next_word(char **list)
{
    char *word = strsep(list, ","), *end;

    if (word == NULL) {
        return NULL;
    }
    word += strspn(word, " \t");
    end = word + strlen(word);
    while (end > word && isspace((unsigned char)end[-1])) {
        *--end = '\0';
    }
    return word;
}

struct gpu_device *gpu_visible(const struct nvml_library *nvml, size_t *count, char *error,
                               size_t size)
{
    const char *variable = getenv("CUDA_VISIBLE_DEVICES");
    struct gpu_device *all, *devices = NULL;
    size_t all_count, capacity = 0;
    char *copy, *list, *word;

    *count = 0;
    all = all_devices(nvml, &all_count);
    if (all == NULL) {
        snprintf(error, size, "NVML finds no GPU");
        return NULL;
    }
    if (variable == NULL) {
        *count = all_count;
        return all;
    }
    copy = list = memory_copy(variable);
    while ((word = next_word(&list)) != NULL) {
        struct gpu_device device;
        enum word result = read_word(nvml, all, all_count, word, &device);

        if (result == WORD_CANNOT_TELL) {
            free(copy);
            free(devices);
            *count = all_count;
            return all;
        }
        if (result == WORD_UNKNOWN) {
            break;
        }
        devices = memory_grow(devices, *count, &capacity, sizeof *devices);
        devices[(*count)++] = device;
    }
    free(copy);
    free(all);
    if (*count == 0) {
        snprintf(error, size, "CUDA_VISIBLE_DEVICES='%s' allows no GPU that is there", variable);
    }
    return devices;
}
