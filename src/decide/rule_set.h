/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_RULE_SET_H
#define CUDAPOLICY_DECIDE_RULE_SET_H

/*
 * The rules of one policy as this process uses them, and which such set is in force.
 *
 * A running process may be given another policy (decide_reload). Whatever is decided in advance -
 * kernels, plans, recipes, default streams' profiles - belongs to one set and names it, so a launch
 * that has found its kernel goes on with that kernel's set to its end: never a mixture. Sets are
 * immutable and never freed.
 *
 * Rules are named by number, in the report and as keys of caches. The rules of the first policy are
 * numbered as they stand there; those of a later one get numbers that no other rule ever had, but
 * for rules that say the same as an earlier one, which keep that one's.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/decide.h"
#include "policy/policy.h"

enum {
    DECIDE_STREAM_KINDS = 3, /* created, legacy, per thread: enum decide_stream_kind */
};

/* What the stream rules of a set need to know. */
struct decide_stream_needs {
    bool priority;   /* some rule for created streams sets a priority */
    bool merges;     /* some rule for default streams has a setting */
    bool partitions; /* some rule for created streams names a partition */
    struct {
        bool ruled; /* some rule matches streams of this kind */
        bool device, library;
    } kind[DECIDE_STREAM_KINDS];
};

struct decide_rule;

struct decide_rule_set {
    const struct decide_rule_set *earlier;
    /* Rules whose rank, local_rank, world_size and host hold in this process, in file order. */
    size_t rule_count, stream_rule_count;
    struct decide_rule *rules; /* of kernels */
    const struct policy_rule **stream_rules;
    struct decide_stream_needs needs;
    bool places; /* streams may be on a partition: by a rule of this set, or of an earlier one */
};

extern _Atomic(const struct decide_rule_set *) decide_rule_set_current
    __attribute__((visibility("hidden")));

/* The set in force; never NULL. Launch path. */
static inline const struct decide_rule_set *decide_rule_set_now(void)
{
    return atomic_load_explicit(&decide_rule_set_current, memory_order_acquire);
}

/* The same for streams that are created: those follow when launches have. A launch by earlier rules
 * would not know that its stream is on a partition. */
extern _Atomic(const struct decide_rule_set *) decide_rule_set_streams
    __attribute__((visibility("hidden")));
static inline const struct decide_rule_set *decide_rule_set_for_streams(void)
{
    return atomic_load_explicit(&decide_rule_set_streams, memory_order_acquire);
}

/* Puts the policy's rules in force, with the numbers that they have; mode off: but the stream
 * rules. With no rules, and a note in the report, when memory is short. No other thread may exist.
 */
void decide_rule_set_start(const struct policy *policy, const struct decide_process *process,
                           enum policy_mode mode);

/* Numbers the policy's rules: those that say the same as a rule numbered before get its number,
 * the others new ones, and a row each in the report. False when there are not enough numbers. */
bool decide_rule_set_number(struct policy *policy);

/* Makes a set of numbered rules; NULL when memory is short. */
struct decide_rule_set *decide_rule_set_make(const struct policy *policy,
                                             const struct decide_process *process,
                                             enum policy_mode mode);

/* Puts a set in force; every decision made in advance by another one is forgotten. Locks. */
void decide_rule_set_enforce(struct decide_rule_set *set);

/* Any rule that was in force since the start, by its number; NULL: it was before. Launch path. */
const struct policy_rule *decide_rule_numbered(uint16_t number);

/* How many numbers are in use. */
size_t decide_rule_numbers(void);

#endif
