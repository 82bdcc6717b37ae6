/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about devices and libraries for the report, gathered when the process first launches a
 * kernel or creates a stream: before that CUDA may not be initialised, and at exit no CUDA call is
 * made.
 */
#include "preload/preload.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "cuda/driver.h"
#include "preload/configuration.h"
#include "report/report.h"

enum {
    REFUSALS_LIMIT = 16,
};

bool preload_facts_wanted = true; /* atomic */

static void device_facts(int index)
{
    char section[32], text[64];
    CUuuid uuid;
    CUdevice device;
    int value;

    if (cuda_driver.cuDeviceGet == NULL || cuda_driver.cuDeviceGet(&device, index) != CUDA_SUCCESS)
        return;
    snprintf(section, sizeof section, "gpu%d", index);
    if (cuda_driver.cuDeviceGetName != NULL &&
        cuda_driver.cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS)
        report_fact(section, "name", "%s", text);
    if (cuda_driver.cuDeviceGetPCIBusId != NULL &&
        cuda_driver.cuDeviceGetPCIBusId(text, sizeof text, device) == CUDA_SUCCESS)
        report_fact(section, "pci", "%s", text);
    if (cuda_driver.cuDeviceGetUuid != NULL &&
        cuda_driver.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
        const unsigned char *b = (const unsigned char *)uuid.bytes;

        report_fact(section, "uuid",
                    "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                    b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                    b[13], b[14], b[15]);
    }
    if (cuda_driver.cuDeviceGetAttribute != NULL &&
        cuda_driver.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                         device) == CUDA_SUCCESS)
        report_fact(section, "multiprocessors", "%d", value);
    if (cuda_driver.cuDeviceGetAttribute != NULL &&
        cuda_driver.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT,
                                         device) == CUDA_SUCCESS)
        report_fact(section, "memory_sync_domains", "%d", value);
}

static bool is_of_interest(const char *name)
{
    static const char *const beginnings[] = {"libcuda.so", "libcudart.so", "libnccl.so",
                                             "libnccl-net"};

    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* The build-id is the note of type NT_GNU_BUILD_ID (elf(5)). */
static void build_id(const struct dl_phdr_info *object, char *text, size_t size)
{
    text[0] = '\0';
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        const char *at = (const char *)(object->dlpi_addr + header->p_vaddr);
        const char *end = at + header->p_memsz;

        if (header->p_type != PT_NOTE)
            continue;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const unsigned char *id =
                (const unsigned char *)(note + 1) + ((note->n_namesz + 3) & ~3U);

            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                memcmp(note + 1, "GNU", 4) == 0) {
                for (unsigned byte = 0; byte < note->n_descsz && 2 * byte + 2 < size; byte++)
                    snprintf(text + 2 * byte, 3, "%02x", id[byte]);
                return;
            }
            at = (const char *)id + ((note->n_descsz + 3) & ~3U);
        }
    }
}

/* Called by the loader with its lock held: only copies. */
struct found {
    unsigned count;
    struct {
        char path[256], id[64];
    } libraries[16];
};

static int note_library(struct dl_phdr_info *object, size_t size, void *data)
{
    struct found *found = data;
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : object->dlpi_name;

    (void)size;
    if (!is_of_interest(name) ||
        found->count == sizeof found->libraries / sizeof found->libraries[0])
        return 0;
    snprintf(found->libraries[found->count].path, sizeof found->libraries[0].path, "%s",
             object->dlpi_name);
    build_id(object, found->libraries[found->count].id, sizeof found->libraries[0].id);
    found->count++;
    return 0;
}

/* Whether the driver answers: before the program's cuInit it does not. */
static bool is_initialised(void)
{
    int count;

    return cuda_driver.cuDeviceGetCount != NULL &&
           cuda_driver.cuDeviceGetCount(&count) == CUDA_SUCCESS;
}

static void gather(void)
{
    struct found found = {0};
    int count = 0;
    const int version = cuda_driver_version();

    if (version != 0)
        report_fact("driver", "version", "%d", version);
    if (cuda_driver.cuDeviceGetCount != NULL &&
        cuda_driver.cuDeviceGetCount(&count) == CUDA_SUCCESS)
        for (int index = 0; index < count; index++)
            device_facts(index);
    dl_iterate_phdr(note_library, &found);
    for (unsigned i = 0; i < found.count; i++)
        report_fact("libraries", found.libraries[i].path, "%s", found.libraries[i].id);
}

void preload_gather_facts_now(void)
{
    static unsigned refusals;

    if (!__atomic_exchange_n(&preload_facts_wanted, false, __ATOMIC_RELAXED))
        return;
    /* A driver that never answers is not asked at every launch. */
    if (!is_initialised() && __atomic_add_fetch(&refusals, 1, __ATOMIC_RELAXED) < REFUSALS_LIMIT)
        preload_facts_again();
    else
        gather();
}

void preload_facts_again(void)
{
    __atomic_store_n(&preload_facts_wanted, true, __ATOMIC_RELAXED);
}
