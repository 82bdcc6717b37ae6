/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_DEVICE_H
#define CUDAPOLICY_DECIDE_DEVICE_H

/*
 * What is known of the devices that the process sees. Asked of the driver once, at the first
 * question after the program initialised it; constant afterwards.
 *
 * Devices alike in every fact that a decision depends on form a class. Most machines have one, so a
 * launch seldom needs to know its device.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "policy/policy.h"

enum {
    DECIDE_DEVICE_LIMIT = 64, /* further devices are not known */
};

/* -1: the driver did not answer. */
struct decide_device_class {
    uint8_t number; /* from 0 */
    int domains;    /* memory-synchronization domains, 1 on devices without them */
    int clusters;   /* 1: clusters can be launched */
    int processors; /* SMs */
    int major;      /* compute capability */
    int minor;
};

/* Forgets all. policy says whether UUIDs and PCI addresses will be asked for; may be NULL. No other
 * thread may exist. */
void decide_device_start(const struct policy *policy);

/* Devices are asked anew where the selectors of a further policy name them by what was not asked
 * before. Other threads may be reading. */
void decide_device_add_forms(const struct policy *policy);

/* Number of devices, 0: not known. The first call queries. Launch path afterwards. */
int decide_device_count(void);

/* The device of the calling thread's current context, -1: not known. No query when there is only
 * one device. Launch path where the design allows cuCtxGetDevice. */
int decide_device_current(void);

/* The class of a device; NULL when it is not known. Launch path. */
const struct decide_device_class *decide_device_class_of(int device);

/* The class of all devices when there is only one class; NULL before the first question, and when
 * there are several. Launch path. */
extern _Atomic(const struct decide_device_class *) decide_device_uniform
    __attribute__((visibility("hidden")));

/* Memory-synchronization domains of a device; -1: the driver did not answer, or no such device. */
int decide_device_domains(int device);

/* True when the device is one of those listed. Not for the launch path; see decide_device_mask. */
bool decide_device_is(const struct policy_devices *devices, int device);

/* The devices listed, bit 1 << ordinal. Queries at the first question. */
uint64_t decide_device_mask(const struct policy_devices *devices);

#endif
