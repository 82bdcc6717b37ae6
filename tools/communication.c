/* SPDX-License-Identifier: Apache-2.0 */
#include "communication.h"

#include <string.h>

#include "memory.h"

/* Words in the names of kernels that move data between GPUs, in lower case. */
static const char *const words[] = {
    "nccl",           "nvshmem",       "all_reduce", "allreduce", "all_gather",       "allgather",
    "reduce_scatter", "reducescatter", "all_to_all", "alltoall",  "broadcast_kernel", "sendrecv",
    "cross_device",   "symm_mem",      "multimem",
};

/* Beginnings of names that whole families of kernels have and no other. */
static const char *const families[] = {
    "ncclDevKernel_",
    "ncclKernel_",
    "ncclSymDevKernel_",
    "ncclSymkDevKernel_",
};

bool communication_named(const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasestr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

char *communication_escape(const char *name)
{
    char *pattern = memory_allocate(strlen(name) * 2 + 1, 1), *end = pattern;

    for (; *name != '\0'; name++) {
        if (strchr("*?[]\\", *name) != NULL) {
            *end++ = '\\';
        }
        *end++ = *name;
    }
    return pattern;
}

char *communication_pattern(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strncmp(name, families[i], strlen(families[i])) == 0) {
            return memory_format("%s*", families[i]);
        }
    }
    return communication_escape(name);
}
