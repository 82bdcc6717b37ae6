/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_RULES_H
#define CUDAPOLICY_DECIDE_RULES_H

/*
 * The kernel rules of the policy, prepared so that a launch looks at as few of them as can be.
 *
 * Three steps, each cached by the one who takes it:
 *   1. a kernel's name and its caller's library -> the rules that may hold: a plan (once a kernel);
 *   2. a plan and the launch's shape, device, stream … -> which rule each group of settings comes
 *      from: a resolution. A plan whose rules ask nothing about the launch has just one;
 *   3. a resolution -> the attributes of the launch (settle.c).
 * Plans and resolutions are shared, immutable and never freed: there are as many as the policy
 * makes different ones.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/interface.h"
#include "decide/decide.h"
#include "decide/rule_set.h"
#include "decide/stream.h"
#include "policy/policy.h"

/* What a rule asks about a launch. */
enum decide_need {
    DECIDE_NEED_SHAPE = 1,    /* grid_blocks, block_threads, shared_memory */
    DECIDE_NEED_CAPTURED = 2, /* captured */
    DECIDE_NEED_DEVICE = 4,   /* device */
    DECIDE_NEED_STREAM = 8,   /* stream */
    DECIDE_NEED_ORDER = 16,   /* launch_stream */
    DECIDE_NEED_ARM = 32,     /* arm */
};

struct decide_rule {
    const struct policy_rule *rule;
    unsigned needs;        /* enum decide_need, ORed */
    unsigned groups;       /* of its settings, 1 << enum policy_group */
    bool by_library;       /* library or not_library is given */
    uint16_t stream_count; /* the stream rules that `stream` names, by number */
    const uint16_t *streams;
    _Atomic uint64_t devices; /* that `device` names, bit 1 << ordinal; valid once devices_known */
    atomic_bool devices_known;
};

/* Where one setting of a launch comes from. */
struct decide_choice {
    const struct policy_setting_value *value; /* NULL: no kernel rule has it */
    uint16_t rule;                            /* its number, or REPORT_RULE_NONE */
    bool graph_nodes, unsafe_cluster, unsafe_residency, allow_legacy;
    struct cuda_launch_attribute attribute; /* of a value that is set */
};

struct decide_resolution {
    uint16_t picks[POLICY_GROUP_COUNT]; /* kernel rule of each group, or REPORT_RULE_NONE */
    const struct decide_stream_profile *profile; /* settings to be merged from a default stream's
                                                    rule, or NULL */
    uint32_t kernel_settings; /* 1 << enum policy_setting: chosen by kernel rules, */
    uint32_t stream_settings; /* and by the profile */
    bool keeps;               /* some choice leaves what the program set on the stream */
    bool by_device;           /* some choice depends on what the device can */
    bool places;              /* a kernel rule chose a partition */
    struct decide_choice choices[POLICY_SETTING_COUNT];
    struct decide_choice stream_choices[POLICY_SETTING_COUNT];
    struct decide_resolution *next;
};

struct decide_plan {
    unsigned needs; /* of its rules together; 0: the resolution is always the same */
    uint16_t count;
    _Atomic(const struct decide_resolution *) recent; /* the first one where needs is 0 */
    struct decide_plan *next;
    struct decide_rule *rules[];
};

/* What of a launch the rules are asked about. */
struct decide_asked {
    uint64_t grid_blocks;
    uint32_t block_threads, shared_memory;
    bool captured;
    bool node;                          /* no stream: stream and launch_stream never match */
    int device;                         /* -1: not known */
    int arm;                            /* DECIDE_ARM_NONE: none */
    const struct decide_stream *stream; /* NULL where no rule needs it */
};

/* Makes the locks anew. No other thread may exist. */
void decide_rules_start(void);

/* Fills in the kernel rules of a set: drops those whose rank, local_rank, world_size or host cannot
 * match, those with an arm where there is no live comparison, and prepares the others. False when
 * memory is short. */
bool decide_rules_make(struct decide_rule_set *set, const struct policy *policy,
                       const struct decide_process *process);

/* The plan of these rules, in file order; those that cannot come to anything are left out. The
 * empty plan when memory is short. Locks. */
struct decide_plan *decide_plan_of(struct decide_rule *const *rules, size_t count);

/* The resolution in which no rule says anything. Launch path. */
const struct decide_resolution *decide_resolution_none(void);

/* Forgets all resolutions; see decide_rules_start. */
void decide_resolve_start(void);

/* What holds for a launch. Launch path: no lock and no allocation unless the outcome is new to the
 * policy; the first question about devices queries. profile: to be merged, or NULL. Never NULL. */
const struct decide_resolution *decide_resolve(struct decide_plan *plan,
                                               const struct decide_asked *asked,
                                               const struct decide_stream_profile *profile);

#endif
