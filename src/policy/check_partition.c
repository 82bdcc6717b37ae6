/* SPDX-License-Identifier: Apache-2.0 */

/* What can be said of one partition by itself, and of the partition of one rule. */

#include "policy/parser.h"

/* ---- [partition] ---------------------------------------------------------------------------- */

static void check_request(const struct policy_rule_builder *builder,
                          struct policy_diagnostics *diagnostics)
{
    bool by_count = policy_key_given(builder, POLICY_KEY_SM_COUNT);
    bool by_domain = policy_key_given(builder, POLICY_KEY_DOMAIN_NUMBER);

    if (by_count && by_domain) {
        policy_diagnose(diagnostics, POLICY_ERROR,
                        policy_later_place(builder, POLICY_KEY_SM_COUNT, POLICY_KEY_DOMAIN_NUMBER),
                        "sm_count and locality_domain in one partition: it is a number of SMs or "
                        "a locality domain");
    }
    if (!by_count && !by_domain) {
        policy_diagnose(diagnostics, POLICY_ERROR, builder->partition.place,
                        "[partition %s] needs sm_count or locality_domain",
                        builder->partition.name);
    }
}

/* CUDA makes no group of SMs that is smaller than what is scheduled together in it. */
static void check_coscheduled(const struct policy_rule_builder *builder,
                              struct policy_diagnostics *diagnostics)
{
    const struct policy_partition *partition = &builder->partition;

    if (partition->kind == POLICY_PARTITION_SM_COUNT && partition->number != 0 &&
        partition->number < partition->coscheduled_sm_count) {
        policy_diagnose(
            diagnostics, POLICY_ERROR,
            policy_later_place(builder, POLICY_KEY_SM_COUNT, POLICY_KEY_COSCHEDULED_SM_COUNT),
            "coscheduled_sm_count = %u is more than sm_count = %u",
            (unsigned)partition->coscheduled_sm_count, (unsigned)partition->number);
    }
}

void policy_check_partition(const struct policy_rule_builder *builder,
                            struct policy_diagnostics *diagnostics)
{
    check_request(builder, diagnostics);
    check_coscheduled(builder, diagnostics);
}

/* ---- rules ---------------------------------------------------------------------------------- */

static enum policy_key partition_key(const struct policy_rule_builder *builder)
{
    return policy_key_given(builder, POLICY_KEY_PARTITION) ? POLICY_KEY_PARTITION
                                                           : POLICY_KEY_LOCALITY_DOMAIN;
}

static const char *key_text(enum policy_key key)
{
    size_t count;

    return policy_vocabulary(&count)[key].text;
}

static void check_one_name(const struct policy_rule_builder *builder,
                           struct policy_diagnostics *diagnostics)
{
    if (policy_key_given(builder, POLICY_KEY_PARTITION) &&
        policy_key_given(builder, POLICY_KEY_LOCALITY_DOMAIN)) {
        policy_diagnose(
            diagnostics, POLICY_ERROR,
            policy_later_place(builder, POLICY_KEY_PARTITION, POLICY_KEY_LOCALITY_DOMAIN),
            "partition and locality_domain in one rule: both say the partition; locality_domain "
            "= N is short for a partition that is this domain");
    }
}

/* A stream comes to a partition when it is created there. */
static void check_default_stream(const struct policy_rule_builder *builder,
                                 struct policy_diagnostics *diagnostics)
{
    unsigned kinds = builder->rule.selectors.kinds;
    enum policy_key key = partition_key(builder);
    struct policy_place place = policy_later_place(builder, POLICY_KEY_KIND, key);

    if ((kinds & POLICY_STREAM_KIND_LEGACY) != 0) {
        policy_diagnose(diagnostics, POLICY_ERROR, place,
                        "%s together with kind = legacy: the program does not create that stream, "
                        "so it cannot be created elsewhere; a [kernel] rule with allow_legacy = "
                        "yes can send its kernels there",
                        key_text(key));
    } else if ((kinds & POLICY_STREAM_KIND_PER_THREAD) != 0) {
        policy_diagnose(diagnostics, POLICY_ERROR, place,
                        "%s together with kind = per_thread: the program does not create that "
                        "stream, so it cannot be created elsewhere; a [kernel] rule can send its "
                        "kernels there",
                        key_text(key));
    }
}

/* Streams of a partition are non-blocking. */
static void check_blocking(const struct policy_rule_builder *builder,
                           struct policy_diagnostics *diagnostics)
{
    enum policy_stream_flags flags = builder->rule.selectors.flags;
    enum policy_key key = partition_key(builder);

    if (flags == POLICY_STREAM_FLAGS_BLOCKING && !builder->rule.allow_blocking) {
        policy_diagnose(diagnostics, POLICY_ERROR,
                        policy_later_place(builder, POLICY_KEY_FLAGS, key),
                        "%s together with flags = blocking: on a partition a stream loses its "
                        "order with the legacy NULL stream, which the program may rely on; this "
                        "needs allow_blocking = yes",
                        key_text(key));
    }
    if (flags == POLICY_STREAM_FLAGS_NON_BLOCKING && builder->rule.allow_blocking) {
        policy_diagnose(diagnostics, POLICY_ERROR,
                        policy_later_place(builder, POLICY_KEY_FLAGS, POLICY_KEY_ALLOW_BLOCKING),
                        "allow_blocking = yes together with flags = non_blocking: the rule "
                        "matches no blocking stream");
    }
}

/* Every launch would wait on two events. Rules that select by library, stream or shape mean what
 * they select. */
static void warn_catch_all(const struct policy_rule_builder *builder,
                           struct policy_diagnostics *diagnostics)
{
    static const enum policy_key narrowing[] = {POLICY_KEY_LIBRARY,       POLICY_KEY_STREAM,
                                                POLICY_KEY_LAUNCH_STREAM, POLICY_KEY_GRID_BLOCKS,
                                                POLICY_KEY_BLOCK_THREADS, POLICY_KEY_SHARED_MEMORY};

    if (!policy_matches_any_name(&builder->rule.selectors.name)) {
        return;
    }
    for (size_t i = 0; i < sizeof narrowing / sizeof narrowing[0]; i++) {
        if (policy_key_given(builder, narrowing[i])) {
            return;
        }
    }
    policy_diagnose(diagnostics, POLICY_WARNING,
                    builder->rule.settings[POLICY_SETTING_PARTITION].place,
                    "%s in a rule that does not name its kernels: every launch pays for being "
                    "sent there and waited for; a [stream] rule moves streams without that cost",
                    key_text(partition_key(builder)));
}

static void warn_modifiers(const struct policy_rule_builder *builder,
                           struct policy_diagnostics *diagnostics)
{
    const struct policy_rule *rule = &builder->rule;
    const struct {
        enum policy_key key;
        bool yes;
    } modifiers[] = {
        {POLICY_KEY_UNSAFE_RESIDENCY, rule->unsafe_residency},
        {POLICY_KEY_ALLOW_BLOCKING, rule->allow_blocking},
        {POLICY_KEY_ALLOW_LEGACY, rule->allow_legacy},
    };

    for (size_t i = 0; i < sizeof modifiers / sizeof modifiers[0]; i++) {
        if (modifiers[i].yes) {
            policy_diagnose(diagnostics, POLICY_WARNING, builder->key_place[modifiers[i].key],
                            "%s = yes has no effect without partition or locality_domain",
                            key_text(modifiers[i].key));
        }
    }
}

void policy_check_rule_partition(const struct policy_rule_builder *builder,
                                 struct policy_diagnostics *diagnostics)
{
    check_one_name(builder, diagnostics);
    if (builder->rule.settings[POLICY_SETTING_PARTITION].action != POLICY_ACTION_SET) {
        warn_modifiers(builder, diagnostics);
    } else if (builder->rule.section == POLICY_SECTION_STREAM) {
        check_default_stream(builder, diagnostics);
        check_blocking(builder, diagnostics);
    } else {
        warn_catch_all(builder, diagnostics);
    }
}
