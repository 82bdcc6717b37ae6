/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_SETTLE_H
#define CUDAPOLICY_DECIDE_SETTLE_H

/*
 * From a resolution to outcomes: what becomes of each setting at one launch.
 *
 * Precedence, as in CUDA: a kernel rule's value; else the program's own launch attribute; else the
 * value of a default stream's rule. `leave` in a kernel rule leaves the program's attribute and the
 * stream's value alike; `unset` takes the program's attribute away, and the stream's value then
 * holds.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cuda/interface.h"
#include "decide/decide.h"
#include "decide/device.h"
#include "decide/kernel.h"
#include "decide/rules.h"

/* One launch while it is decided. */
struct decide_case {
    const struct decide_launch *launch;
    struct decide_variant *variant;
    uint64_t serial; /* of the function, as a key of cluster shapes */
    int arm;         /* of a live comparison, or DECIDE_ARM_NONE */
    const struct decide_resolution *resolution;
    const struct decide_device_class *device; /* NULL: not known, or no setting depends on it */
    const struct decide_stream *stream;       /* NULL: not known, or not needed */
    bool in_graph;                            /* capturing, or a node */
    bool observe;

    /* The program's attributes: which, and the last one of each. */
    uint32_t present; /* 1 << id */
    uint8_t last[32];

    /* What is to be done. */
    union decide_results results;
    uint32_t from_stream; /* 1 << enum policy_setting: result and value are the stream rule's */
    uint32_t set;         /* 1 << enum policy_setting: replaced or appended */
    uint32_t removed;     /* 1 << launch attribute id */
    uint32_t detail;      /* error code behind a REFUSED_BY_DRIVER */
    struct decide_shape *shapes[DECIDE_CASE_SHAPES];
    uint32_t shape_uses[DECIDE_CASE_SHAPES];

    /* Where the launch will run: a partition, or NULL for where it came; why a rule's cannot be
     * had. */
    const struct place_partition *target;
    enum report_reason target_reason;
    const struct place_partition *move; /* where it is to be moved, NULL: nowhere */
};

/* Why a kernel rule's value cannot be made, as far as neither the launch's own attributes nor its
 * shape matter; NONE: it can. Sets detail. Launch path. */
enum report_reason decide_settle_check(struct decide_case *at, enum policy_setting setting,
                                       const struct decide_choice *choice);

/* The same for a value from a default stream's rule. */
enum report_reason decide_settle_check_stream(struct decide_case *at, enum policy_setting setting);

/* Fills present and last. Launch path. */
void decide_settle_scan(struct decide_case *at);

/* Fills the results of all settings of the resolution. Launch path; see decide_launch. */
void decide_settle(struct decide_case *at);

static inline const struct cuda_launch_attribute *decide_case_own(const struct decide_case *at,
                                                                  unsigned id)
{
    const struct cuda_launch_attribute *own = (const void *)at->launch->config->attrs;
    return at->present >> id & 1 ? &own[at->last[id]] : NULL;
}

#endif
