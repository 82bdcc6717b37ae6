/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Not in the headers of CUDA 12.0 under every name; values of CUdevice_attribute. */
    ATTRIBUTE_CLUSTER_LAUNCH = 120,
    ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT = 126,
    ATTEMPTS = 3, /* questions to a driver that does not say how many devices there are */
};

struct device {
    uint8_t class_number;
    bool uuid_known, pci_known;
    uint8_t uuid[16];
    unsigned pci_domain, pci_bus, pci_device;
};

struct devices {
    int count;
    unsigned class_count;
    struct device list[DECIDE_DEVICE_LIMIT];
    struct decide_device_class classes[DECIDE_DEVICE_LIMIT];
};

_Atomic(const struct decide_device_class *) decide_device_uniform;

static _Atomic(struct devices *) known;
static atomic_int attempts;
static atomic_bool ask_uuid, ask_pci;

/* ---- Asking -------------------------------------------------------------------------------------
 */

static int ask_attribute(int attribute, CUdevice device)
{
    int value = -1;
    if (!cuda_driver.cuDeviceGetAttribute ||
        cuda_driver.cuDeviceGetAttribute(&value, (CUdevice_attribute)attribute, device) !=
            CUDA_SUCCESS)
        return -1;
    return value;
}

static void ask_identity(struct device *device, CUdevice handle)
{
    CUuuid uuid;
    char address[32] = "";
    if (ask_uuid && cuda_driver.cuDeviceGetUuid &&
        cuda_driver.cuDeviceGetUuid(&uuid, handle) == CUDA_SUCCESS) {
        memcpy(device->uuid, uuid.bytes, sizeof device->uuid);
        device->uuid_known = true;
    }
    if (ask_pci && cuda_driver.cuDeviceGetPCIBusId &&
        cuda_driver.cuDeviceGetPCIBusId(address, sizeof address, handle) == CUDA_SUCCESS)
        device->pci_known = sscanf(address, "%x:%x:%x", &device->pci_domain, &device->pci_bus,
                                   &device->pci_device) == 3;
}

static bool same_class(const struct decide_device_class *a, const struct decide_device_class *b)
{
    return a->domains == b->domains && a->clusters == b->clusters &&
           a->processors == b->processors && a->major == b->major && a->minor == b->minor;
}

static void ask_device(struct devices *devices, int ordinal)
{
    struct device *device = &devices->list[ordinal];
    struct decide_device_class facts = {
        .domains = -1, .clusters = -1, .processors = -1, .major = -1, .minor = -1};
    CUdevice handle;
    if (cuda_driver.cuDeviceGet && cuda_driver.cuDeviceGet(&handle, ordinal) == CUDA_SUCCESS) {
        facts.domains = ask_attribute(ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, handle);
        facts.clusters = ask_attribute(ATTRIBUTE_CLUSTER_LAUNCH, handle);
        facts.processors = ask_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle);
        facts.major = ask_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle);
        facts.minor = ask_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle);
        ask_identity(device, handle);
    }
    unsigned number = 0;
    while (number < devices->class_count && !same_class(&devices->classes[number], &facts))
        number++;
    if (number == devices->class_count) {
        facts.number = (uint8_t)number;
        devices->classes[devices->class_count++] = facts;
    }
    device->class_number = (uint8_t)number;
}

static struct devices *ask(void)
{
    int count = 0;
    bool answered = cuda_driver.cuDeviceGetCount &&
                    cuda_driver.cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0;
    /* A program whose driver keeps silent is not asked about at each of its launches. */
    if (!answered && atomic_fetch_add(&attempts, 1) + 1 < ATTEMPTS)
        return NULL;
    struct devices *devices = calloc(1, sizeof *devices);
    if (!devices || !answered)
        return devices;
    devices->count = count < DECIDE_DEVICE_LIMIT ? count : DECIDE_DEVICE_LIMIT;
    for (int i = 0; i < devices->count; i++)
        ask_device(devices, i);
    return devices;
}

/* Threads may ask at the same time; all but one throw their answers away. No lock is held while the
 * driver is asked. */
static const struct devices *devices_known(void)
{
    struct devices *devices = atomic_load_explicit(&known, memory_order_acquire);
    if (devices)
        return devices;
    devices = ask();
    if (!devices)
        return NULL;
    struct devices *first = NULL;
    if (!atomic_compare_exchange_strong(&known, &first, devices)) {
        free(devices);
        return first;
    }
    if (devices->class_count == 1)
        atomic_store_explicit(&decide_device_uniform, &devices->classes[0], memory_order_release);
    return devices;
}

/* ---- Answers ------------------------------------------------------------------------------------
 */

static void note_forms(const struct policy_devices *selector)
{
    for (size_t i = 0; i < selector->count; i++) {
        if (selector->devices[i].form == POLICY_DEVICE_UUID)
            ask_uuid = true;
        if (selector->devices[i].form == POLICY_DEVICE_PCI)
            ask_pci = true;
    }
}

void decide_device_start(const struct policy *policy)
{
    atomic_store(&decide_device_uniform, NULL);
    free(atomic_exchange(&known, NULL));
    atomic_store(&attempts, 0);
    ask_uuid = ask_pci = false;
    for (size_t i = 0; policy && i < policy->rule_count; i++)
        note_forms(&policy->rules[i].selectors.device);
    for (size_t i = 0; policy && i < policy->partition_count; i++)
        note_forms(&policy->partitions[i].device);
}

/* Other threads may be reading what was known, so that is not freed: it happens at most twice. */
void decide_device_add_forms(const struct policy *policy)
{
    const bool uuid = ask_uuid, pci = ask_pci;
    for (size_t i = 0; i < policy->rule_count; i++)
        note_forms(&policy->rules[i].selectors.device);
    if (uuid != ask_uuid || pci != ask_pci)
        atomic_store(&known, NULL);
}

int decide_device_count(void)
{
    const struct devices *devices = devices_known();
    return devices ? devices->count : 0;
}

int decide_device_current(void)
{
    const struct devices *devices = devices_known();
    CUdevice device;
    if (devices && devices->count == 1)
        return 0;
    /* CUdevice is the ordinal, as cuDeviceGet's documentation has it. */
    if (!cuda_driver.cuCtxGetDevice || cuda_driver.cuCtxGetDevice(&device) != CUDA_SUCCESS)
        return -1;
    return device;
}

const struct decide_device_class *decide_device_class_of(int device)
{
    const struct devices *devices = devices_known();
    if (!devices || device < 0 || device >= devices->count)
        return NULL;
    return &devices->classes[devices->list[device].class_number];
}

int decide_device_domains(int device)
{
    const struct decide_device_class *facts = decide_device_class_of(device);
    return facts ? facts->domains : -1;
}

static bool is(const struct policy_device *wanted, const struct device *device, int ordinal)
{
    switch (wanted->form) {
    case POLICY_DEVICE_INDEX:
        return ordinal >= wanted->index.low && ordinal <= wanted->index.high;
    case POLICY_DEVICE_UUID:
        return device->uuid_known &&
               memcmp(device->uuid, wanted->uuid.bytes, wanted->uuid.bytes_known) == 0;
    case POLICY_DEVICE_PCI:
        return device->pci_known && device->pci_domain == wanted->pci.domain &&
               device->pci_bus == wanted->pci.bus && device->pci_device == wanted->pci.device;
    }
    return false;
}

bool decide_device_is(const struct policy_devices *selector, int device)
{
    const struct devices *devices = devices_known();
    if (!devices || device < 0 || device >= devices->count)
        return false;
    for (size_t i = 0; i < selector->count; i++)
        if (is(&selector->devices[i], &devices->list[device], device))
            return true;
    return false;
}

uint64_t decide_device_mask(const struct policy_devices *selector)
{
    uint64_t mask = 0;
    for (int device = 0; device < decide_device_count(); device++)
        if (decide_device_is(selector, device))
            mask |= UINT64_C(1) << device;
    return mask;
}
