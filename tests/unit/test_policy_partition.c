/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: their sections, the rules that use them, and what contradicts in them. Partitions of
 * one device: test_policy_partition_device.c. */
#include "test_policy_support.h"

/* ---- [partition] ---------------------------------------------------------------------------- */

static const struct policy_setting_value *setting(const struct policy *policy, size_t rule)
{
    return &policy->rules[rule].settings[POLICY_SETTING_PARTITION];
}

/* A policy with this partition `p`, which a rule uses. */
static struct policy *with_partition(const char *lines)
{
    char body[1000];

    snprintf(body, sizeof body, "[partition p]\n%s[kernel k]\nname = x\npartition = p\n", lines);
    struct policy *policy = expect_clean(body);
    assert_int_equal(policy->partition_count, 1);
    return policy;
}

static void expect_request(const char *lines, enum policy_partition_kind kind, unsigned number)
{
    struct policy *policy = with_partition(lines);

    assert_int_equal(policy->partitions[0].kind, kind);
    assert_int_equal(policy->partitions[0].number, number);
    policy_free(policy);
}

static void partition_asks_for_a_number_a_percentage_the_rest_or_a_domain(void **state)
{
    (void)state;
    expect_request("sm_count = 1\n", POLICY_PARTITION_SM_COUNT, 1);
    expect_request("sm_count = 1024\n", POLICY_PARTITION_SM_COUNT, POLICY_SM_LIMIT);
    expect_request("sm_count = 1%\n", POLICY_PARTITION_SM_PERCENT, 1);
    expect_request("sm_count = 100 %\n", POLICY_PARTITION_SM_PERCENT, 100);
    expect_request("sm_count = rest\n", POLICY_PARTITION_SM_REST, 0);
    expect_request("locality_domain = 0\n", POLICY_PARTITION_LOCALITY_DOMAIN, 0);
    expect_request("locality_domain = 255\n", POLICY_PARTITION_LOCALITY_DOMAIN, 255);
}

static void partition_has_a_name_a_place_and_what_it_does_not_say(void **state)
{
    struct policy *policy = with_partition("sm_count = 16\n");
    const struct policy_partition *partition = &policy->partitions[0];

    (void)state;
    assert_int_equal(partition->index, 0);
    assert_string_equal(partition->name, "p");
    assert_true(partition->named);
    assert_int_equal(partition->place.line, POLICY_HEADER_LINES + 1);
    assert_int_equal(partition->place.column, 1);
    assert_int_equal(partition->coscheduled_sm_count, 0);
    assert_false(partition->backfill);
    assert_int_equal(partition->device.count, 0);
    policy_free(policy);
}

static void partition_takes_all_its_keys(void **state)
{
    struct policy *policy = with_partition("device = 0..1, 3b:00.0\nbackfill = yes\n"
                                           "coscheduled_sm_count = 32\nsm_count = 64\n"
                                           "device = GPU-8932f937\n");
    const struct policy_partition *partition = &policy->partitions[0];

    (void)state;
    assert_int_equal(partition->number, 64);
    assert_int_equal(partition->coscheduled_sm_count, POLICY_COSCHEDULED_SM_LIMIT);
    assert_true(partition->backfill);
    assert_int_equal(partition->device.count, 3);
    assert_int_equal(partition->device.devices[0].index.high, 1);
    assert_int_equal(partition->device.devices[1].form, POLICY_DEVICE_PCI);
    assert_int_equal(partition->device.devices[2].form, POLICY_DEVICE_UUID);
    policy_free(policy);
    policy = with_partition("sm_count = 2\nbackfill = no\ncoscheduled_sm_count = 2\n");
    assert_false(policy->partitions[0].backfill);
    policy_free(policy);
}

static void sm_count_is_nothing_else(void **state)
{
    (void)state;
    expect_error("[partition p]\nsm_count = 0\n", 2, 12, "sm_count: 0 is out of range (1 to 1024)");
    expect_error("[partition p]\nsm_count = 1025\n", 2, 12,
                 "sm_count: 1025 is out of range (1 to 1024)");
    expect_error("[partition p]\nsm_count = -8\n", 2, 12,
                 "sm_count: -8 is out of range (1 to 1024)");
    expect_error("[partition p]\nsm_count = 99999999999999999999\n", 2, 12,
                 "sm_count: 99999999999999999999 is out of range (1 to 1024)");
    expect_error("[partition p]\nsm_count = 0%\n", 2, 12,
                 "sm_count: 0% is out of range (1% to 100%)");
    expect_error("[partition p]\nsm_count = 101 %\n", 2, 12,
                 "sm_count: 101 % is out of range (1% to 100%)");
    expect_error("[partition p]\nsm_count = 99999999999999999999%\n", 2, 12,
                 "sm_count: 99999999999999999999% is out of range (1% to 100%)");
    expect_error("[partition p]\nsm_count = %\n", 2, 12,
                 "sm_count: \"%\" is not a number of SMs, a percentage or rest");
    expect_error("[partition p]\nsm_count = 1.5%\n", 2, 12,
                 "sm_count: \"1.5%\" is not a number of SMs, a percentage or rest");
    expect_error("[partition p]\nsm_count = Rest\n", 2, 12,
                 "sm_count: \"Rest\" is not a number of SMs, a percentage or rest; did you mean "
                 "\"rest\"?");
    expect_error("[partition p]\nsm_count = leave\n", 2, 12,
                 "sm_count: \"leave\" is not a number of SMs, a percentage or rest");
}

static void other_values_of_a_partition_have_their_bounds(void **state)
{
    (void)state;
    expect_error("[partition p]\nlocality_domain = 256\n", 2, 19,
                 "locality_domain: 256 is out of range (0 to 255)");
    expect_error("[partition p]\nlocality_domain = near\n", 2, 19,
                 "locality_domain: \"near\" is not a whole number");
    expect_error("[partition p]\nsm_count = 64\ncoscheduled_sm_count = 0\n", 3, 24,
                 "coscheduled_sm_count: 0 is out of range (2 to 32)");
    expect_error("[partition p]\nsm_count = 64\ncoscheduled_sm_count = 34\n", 3, 24,
                 "coscheduled_sm_count: 34 is out of range (2 to 32)");
    expect_error("[partition p]\nsm_count = 64\ncoscheduled_sm_count = 7\n", 3, 24,
                 "coscheduled_sm_count: 7 is not an even number");
    expect_error("[partition p]\nsm_count = 64\nbackfill = on\n", 3, 12,
                 "backfill: \"on\" is not yes or no; did you mean \"yes\"?");
    expect_error("[partition p]\nsm_count = 64\ndevice = first\n", 3, 10,
                 "device: \"first\" is not a number or a range (3, 1..4, ..4 or 4..)");
}

static void partition_is_a_number_of_sms_or_a_domain(void **state)
{
    static const char both[] = "sm_count and locality_domain in one partition: it is a number of "
                               "SMs or a locality domain";

    (void)state;
    expect_error("[partition p]\nsm_count = 16\nlocality_domain = 1\n", 3, 1, both);
    expect_error("[partition p]\nlocality_domain = 1\nbackfill = no\n  sm_count = rest\n", 4, 3,
                 both);
    expect_error("[partition p]\nbackfill = yes\n", 1, 1,
                 "[partition p] needs sm_count or locality_domain");
    expect_error("[partition p]\n", 1, 1, "[partition p] needs sm_count or locality_domain");
}

static void partition_is_not_smaller_than_what_is_scheduled_together(void **state)
{
    static const char message[] = "coscheduled_sm_count = 16 is more than sm_count = 8";

    (void)state;
    expect_error("[partition p]\nsm_count = 8\ncoscheduled_sm_count = 16\n", 3, 1, message);
    expect_error("[partition p]\ncoscheduled_sm_count = 16\nsm_count = 8\n", 3, 1, message);
    policy_free(with_partition("sm_count = 16\ncoscheduled_sm_count = 16\n"));
    /* How many SMs these are only the device knows. */
    policy_free(with_partition("sm_count = 1%\ncoscheduled_sm_count = 32\n"));
    policy_free(with_partition("sm_count = rest\ncoscheduled_sm_count = 32\n"));
    policy_free(with_partition("locality_domain = 1\ncoscheduled_sm_count = 32\n"));
}

static void partition_has_a_name_of_its_own(void **state)
{
    (void)state;
    expect_error("[partition]\nsm_count = 16\n", 1, 2,
                 "[partition] needs a name, as in [partition example]");
    expect_error("[partition a b]\nsm_count = 16\n", 1, 13,
                 "the partition's name \"a b\" has something other than letters, digits and "
                 "_ - . : + @ /");
    expect_error("[partition leave]\nsm_count = 16\n", 1, 12,
                 "a partition cannot be called \"leave\": in a rule that word is no name");
    expect_error("[partition unset]\nsm_count = 16\n", 1, 12,
                 "a partition cannot be called \"unset\": in a rule that word is no name");
    expect_error("[partition p]\nsm_count = 8\n[stream p]\nindex = 0\npartition = p\n"
                 "[partition p]\nsm_count = 16\n",
                 6, 1, "second [partition p]; the first is in line 3");
    policy_free(expect_clean("[partition leaves]\nsm_count = 16\n[stream leaves]\nindex = 0\n"
                             "partition = leaves\n[kernel leaves]\nname = x\npriority = 1\n"
                             "[stream leave]\nindex = 1\npriority = 1\n"));
}

static void keys_stand_in_their_own_sections(void **state)
{
    (void)state;
    expect_error("[partition p]\nsm_count = 8\nname = x\n", 3, 1,
                 "name cannot stand in [partition], only in [kernel]");
    expect_error("[partition p]\nsm_count = 8\nmode = observe\n", 3, 1,
                 "mode cannot stand in [partition], only in [policy]");
    expect_error("[kernel k]\npriority = 1\nsm_count = 8\n", 3, 1,
                 "sm_count cannot stand in [kernel], only in [partition]");
    expect_error("locality_domain = 1\n", 1, 1,
                 "locality_domain cannot stand in [policy], only in [partition], [stream] or "
                 "[kernel]");
    expect_error("[partition p]\nsm_count = 8\nsm_counts = 8\n", 3, 1,
                 "unknown key \"sm_counts\" in [partition]; did you mean \"sm_count\"?");
    expect_error("[partition p]\nsm_count = 8\nsm_count = 8\n", 3, 1,
                 "sm_count is given twice; the first is in line 4");
    expect_error("[partitions p]\nsm_count = 8\n", 1, 2,
                 "unknown section \"partitions\"; did you mean \"partition\"?");
    expect_error("[stream s]\npriority = 1\nallow_legacy = yes\n", 3, 1,
                 "allow_legacy cannot stand in [stream], only in [kernel]");
    expect_error("[kernel k]\npriority = 1\nallow_blocking = yes\n", 3, 1,
                 "allow_blocking cannot stand in [kernel], only in [stream]");
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void rule_finds_its_partition_before_and_after_itself(void **state)
{
    struct policy *policy =
        expect_clean("[stream a]\nindex = 0\npartition = second\n[partition first]\nsm_count = 8\n"
                     "[kernel b]\nname = x\npartition = first\n[partition second]\n"
                     "sm_count = rest\n");

    (void)state;
    assert_int_equal(policy->rule_count, 2);
    assert_int_equal(policy->partition_count, 2);
    assert_string_equal(policy->partitions[0].name, "first");
    assert_int_equal(policy->partitions[1].index, 1);
    assert_int_equal(setting(policy, 0)->action, POLICY_ACTION_SET);
    assert_int_equal(setting(policy, 0)->value.partition, 1);
    assert_string_equal(setting(policy, 0)->partition_name, "second");
    assert_int_equal(setting(policy, 0)->place.line, POLICY_HEADER_LINES + 3);
    assert_int_equal(setting(policy, 1)->value.partition, 0);
    policy_free(policy);
}

static void partition_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    expect_error("[partition side]\nsm_count = 8\n[stream s]\nindex = 0\npartition = sied\n", 5, 13,
                 "partition: there is no [partition sied] in this policy; did you mean \"side\"?");
    expect_error("[kernel k]\nname = x\npartition = side\n", 3, 13,
                 "partition: there is no [partition side] in this policy");
    /* Other sections of the name are none. */
    expect_error("[stream side]\nindex = 1\npriority = 1\n[kernel k]\nname = x\npartition = side\n",
                 6, 13, "partition: there is no [partition side] in this policy");
}

static void domain_of_a_rule_is_an_unnamed_partition_shared_by_rules(void **state)
{
    struct policy *policy =
        expect_clean("[kernel a]\nname = a\nlocality_domain = 3\n[kernel b]\nname = b\n"
                     "locality_domain = 0\n[partition side]\nsm_count = 8\n[kernel c]\nname = c\n"
                     "locality_domain = 3\n[kernel d]\nname = d\npartition = side\n");

    (void)state;
    assert_int_equal(policy->partition_count, 3);
    assert_true(policy->partitions[0].named);
    for (unsigned i = 1; i < 3; i++) {
        const struct policy_partition *partition = &policy->partitions[i];

        assert_false(partition->named);
        assert_int_equal(partition->index, i);
        assert_int_equal(partition->kind, POLICY_PARTITION_LOCALITY_DOMAIN);
        assert_int_equal(partition->number, i == 1 ? 0 : 3);
        assert_string_equal(partition->name, i == 1 ? "locality_domain=0" : "locality_domain=3");
        assert_int_equal(partition->device.count, 0);
        assert_int_equal(partition->place.line, POLICY_HEADER_LINES + (i == 1 ? 6 : 3));
    }
    assert_int_equal(setting(policy, 0)->value.partition, 2);
    assert_int_equal(setting(policy, 1)->value.partition, 1);
    assert_int_equal(setting(policy, 2)->value.partition, 2);
    assert_string_equal(setting(policy, 2)->partition_name, "locality_domain=3");
    policy_free(policy);
}

static void domain_of_a_rule_is_the_named_partition_of_that_domain(void **state)
{
    struct policy *policy =
        expect_clean("[kernel a]\nname = a\nlocality_domain = 1\n[partition near]\n"
                     "locality_domain = 1\ncoscheduled_sm_count = 8\ndevice = 0\n");

    (void)state;
    assert_int_equal(policy->partition_count, 1);
    assert_int_equal(setting(policy, 0)->value.partition, 0);
    assert_string_equal(setting(policy, 0)->partition_name, "near");
    policy_free(policy);
}

static void domain_of_a_rule_that_has_several_partitions_is_an_error(void **state)
{
    static const char partitions[] = "[partition a]\nlocality_domain = 1\ndevice = 0\n"
                                     "[partition b]\nlocality_domain = 1\ndevice = 1\n"
                                     "[stream s]\nindex = 1\npartition = a\n"
                                     "[stream t]\nindex = 2\npartition = b\n";
    char body[1000];

    (void)state;
    policy_free(expect_clean(partitions));
    snprintf(body, sizeof body, "%s[stream u]\nindex = 3\nlocality_domain = 1\n", partitions);
    expect_error(body, 15, 19,
                 "locality_domain: 1 is [partition a], line 3, and [partition b], line 6; name one "
                 "of them");
}

static void partition_and_domain_exclude_each_other(void **state)
{
    static const char message[] = "partition and locality_domain in one rule: both say the "
                                  "partition; locality_domain = N is short for a partition that is "
                                  "this domain";

    (void)state;
    expect_error("[partition p]\nsm_count = 8\n[kernel k]\nname = x\npartition = p\n"
                 "locality_domain = 0\n",
                 6, 1, message);
    expect_error("[partition p]\nsm_count = 8\n[stream k]\nindex = 1\nlocality_domain = 0\n"
                 "partition = p\n",
                 6, 1, message);
    expect_error("[stream k]\nindex = 1\nlocality_domain = 0\npartition = leave\n", 4, 1, message);
}

static void partition_can_be_left_but_not_taken_away(void **state)
{
    struct policy *policy = expect_clean("[stream s]\nindex = 0\npartition = leave\n"
                                         "[kernel k]\nname = x\nlocality_domain = leave\n");

    (void)state;
    assert_int_equal(setting(policy, 0)->action, POLICY_ACTION_LEAVE);
    assert_int_equal(setting(policy, 1)->action, POLICY_ACTION_LEAVE);
    assert_int_equal(policy->partition_count, 0);
    policy_free(policy);
    expect_error("[kernel k]\nname = x\npartition = unset\n", 3, 13,
                 "partition: \"unset\" cannot stand here: a program has no partition that could be "
                 "taken away; leave ends the search");
    expect_error("[stream s]\nindex = 0\nlocality_domain = unset\n", 3, 19,
                 "locality_domain: \"unset\" cannot stand here: a program has no partition that "
                 "could be taken away; leave ends the search");
}

static void domain_of_a_rule_has_its_bounds(void **state)
{
    (void)state;
    expect_error("[kernel k]\nname = x\nlocality_domain = -1\n", 3, 19,
                 "locality_domain: -1 is out of range (0 to 255)");
    expect_error("[kernel k]\nname = x\nlocality_domain = p\n", 3, 19,
                 "locality_domain: \"p\" is not a whole number");
}

static void modifiers_of_partitions_are_read(void **state)
{
    struct policy *policy = expect_clean(
        "[partition p]\nsm_count = 8\n[stream s]\nindex = 0\npartition = p\n"
        "allow_blocking = yes\nunsafe_residency = yes\ngraph_nodes = yes\n"
        "[kernel k]\nname = x\npartition = p\nallow_legacy = yes\nunsafe_residency = yes\n"
        "graph_nodes = yes\n[kernel l]\nname = y\npartition = p\nallow_legacy = no\n");

    (void)state;
    assert_true(policy->rules[0].allow_blocking && policy->rules[0].unsafe_residency &&
                policy->rules[0].graph_nodes);
    assert_false(policy->rules[0].allow_legacy);
    assert_true(policy->rules[1].allow_legacy && policy->rules[1].unsafe_residency &&
                policy->rules[1].graph_nodes);
    assert_false(policy->rules[1].allow_blocking);
    assert_false(policy->rules[2].allow_legacy || policy->rules[2].unsafe_residency ||
                 policy->rules[2].graph_nodes);
    policy_free(policy);
}

/* ---- contradictions in rules ------------------------------------------------------------------
 */

static void default_streams_cannot_be_created_elsewhere(void **state)
{
    (void)state;
    expect_error("[stream s]\nkind = legacy\nlocality_domain = 0\n", 3, 1,
                 "locality_domain together with kind = legacy: the program does not create that "
                 "stream, so it cannot be created elsewhere; a [kernel] rule with allow_legacy = "
                 "yes can send its kernels there");
    expect_error("[partition p]\nsm_count = 8\n[stream s]\npartition = p\nkind = created\n"
                 "kind = per_thread\n",
                 5, 1,
                 "partition together with kind = per_thread: the program does not create that "
                 "stream, so it cannot be created elsewhere; a [kernel] rule can send its kernels "
                 "there");
    policy_free(expect_clean("[stream s]\nkind = legacy\npartition = leave\n"));
    policy_free(expect_clean("[stream s]\nkind = created\nlocality_domain = 0\n"));
}

static void blocking_streams_need_allow_blocking(void **state)
{
    (void)state;
    expect_error("[stream s]\nflags = blocking\nlocality_domain = 0\n", 3, 1,
                 "locality_domain together with flags = blocking: on a partition a stream loses "
                 "its order with the legacy NULL stream, which the program may rely on; this needs "
                 "allow_blocking = yes");
    expect_error("[stream s]\nlocality_domain = 0\nallow_blocking = yes\nflags = non_blocking\n", 4,
                 1,
                 "allow_blocking = yes together with flags = non_blocking: the rule matches no "
                 "blocking stream");
    policy_free(expect_clean("[stream s]\nflags = blocking\nlocality_domain = 0\n"
                             "allow_blocking = yes\n"));
    policy_free(expect_clean("[stream s]\nflags = non_blocking\nlocality_domain = 0\n"));
    policy_free(expect_clean("[stream s]\nlocality_domain = 0\nallow_blocking = yes\n"));
    policy_free(expect_clean("[stream s]\nflags = blocking\npartition = leave\n"));
}

static void cluster_does_not_go_to_a_backfilled_partition(void **state)
{
    (void)state;
    expect_error("[partition p]\nsm_count = 8\nbackfill = yes\n[kernel k]\nname = x\n"
                 "partition = p\ncluster_dim = 2\n",
                 7, 1,
                 "cluster_dim = 2 on [partition p], line 3, which has backfill = yes: SMs that are "
                 "not scheduled together hold no cluster");
    expect_error("[partition p]\nlocality_domain = 1\nbackfill = yes\n[kernel k]\nname = x\n"
                 "preferred_cluster_dim = 4\nlocality_domain = 1\n",
                 6, 1,
                 "preferred_cluster_dim = 4 on [partition p], line 3, which has backfill = yes: "
                 "SMs that are not scheduled together hold no cluster");
    policy_free(expect_clean("[partition p]\nsm_count = 8\nbackfill = yes\n[kernel k]\nname = x\n"
                             "partition = p\ncluster_dim = 1\n[kernel l]\nname = y\n"
                             "cluster_dim = 4\n[kernel m]\nname = z\ncluster_dim = leave\n"
                             "partition = p\n"));
}

static void cluster_is_not_larger_than_what_is_scheduled_together(void **state)
{
    (void)state;
    expect_error("[kernel k]\nname = x\npartition = p\ncluster_dim = 2,2,1\n[partition p]\n"
                 "sm_count = 8\ncoscheduled_sm_count = 2\n",
                 4, 1,
                 "cluster_dim = 2,2 on [partition p], line 7, which has coscheduled_sm_count = 2: "
                 "the 4 blocks of a cluster need as many SMs that are scheduled together");
    expect_error("[kernel k]\nname = x\npartition = p\ncluster_dim = 2\n"
                 "preferred_cluster_dim = 4\n[partition p]\nsm_count = 8\n"
                 "coscheduled_sm_count = 2\n",
                 5, 1,
                 "preferred_cluster_dim = 4 on [partition p], line 8, which has "
                 "coscheduled_sm_count = 2: the 4 blocks of a cluster need as many SMs that are "
                 "scheduled together");
    policy_free(expect_clean("[kernel k]\nname = x\npartition = p\ncluster_dim = 2,2,2\n"
                             "[partition p]\nsm_count = 8\ncoscheduled_sm_count = 8\n"));
    /* What the device's own is, the policy does not know. */
    policy_free(expect_clean("[kernel k]\nname = x\npartition = p\ncluster_dim = 16\n"
                             "[partition p]\nsm_count = 8\n"));
}

/* ---- warnings ------------------------------------------------------------------------------- */

static void modifier_without_a_partition_is_a_warning(void **state)
{
    (void)state;
    expect_warning("[stream s]\npriority = 1\nallow_blocking = yes\n", 3, 1,
                   "allow_blocking = yes has no effect without partition or locality_domain");
    expect_warning("[kernel k]\npriority = 1\nallow_legacy = yes\n", 3, 1,
                   "allow_legacy = yes has no effect without partition or locality_domain");
    expect_warning("[kernel k]\npartition = leave\nunsafe_residency = yes\n", 3, 1,
                   "unsafe_residency = yes has no effect without partition or locality_domain");
    expect_warning("[stream s]\nmem_sync_domain = default\ngraph_nodes = yes\n", 3, 1,
                   "graph_nodes = yes has no effect: the rule has no setting but "
                   "memory-synchronization ones, which graphs take anyway");
    policy_free(expect_clean("[kernel k]\npriority = 1\nallow_legacy = no\n"));
}

static void when_set_means_nothing_to_a_partition(void **state)
{
    (void)state;
    expect_warning("[stream s]\nlocality_domain = 0\nwhen_set = keep\n", 3, 1,
                   "when_set has no effect: the rule has only a partition, which no program sets "
                   "as an attribute");
    policy_free(expect_clean("[stream s]\nlocality_domain = 0\npriority = 1\nwhen_set = keep\n"));
}

static void partition_that_no_rule_uses_is_a_warning(void **state)
{
    (void)state;
    expect_warning("[partition used]\nsm_count = 8\n[partition idle]\nsm_count = 8\n"
                   "[stream s]\npartition = used\n",
                   3, 1, "no rule uses [partition idle]: its SMs are set aside for nothing");
    expect_warning("[partition idle]\nlocality_domain = 1\n[stream s]\npartition = leave\n", 1, 1,
                   "no rule uses [partition idle]: its SMs are set aside for nothing");
}

static void partition_on_a_catch_all_kernel_rule_is_a_warning(void **state)
{
    static const char message[] =
        "locality_domain in a rule that does not name its kernels: every launch pays for being "
        "sent there and waited for; a [stream] rule moves streams without that cost";
    static const char *const narrowing[] = {
        "name = x*",       "library = libx.so",      "stream = s",       "launch_stream = 1",
        "grid_blocks = 4", "block_threads = 32..64", "shared_memory = 0"};

    (void)state;
    expect_warning("[kernel k]\nlocality_domain = 0\n", 2, 1, message);
    expect_warning("[kernel k]\nname = y\nname = *\nrank = 0\ndevice = 1\nlocality_domain = 0\n", 6,
                   1, message);
    for (size_t i = 0; i < sizeof narrowing / sizeof narrowing[0]; i++) {
        char body[200];

        snprintf(body, sizeof body,
                 "[stream s]\nindex = 0\npriority = 0\n[kernel k]\n%s\n"
                 "locality_domain = 0\n",
                 narrowing[i]);
        policy_free(expect_clean(body));
    }
    policy_free(expect_clean("[stream s]\nlocality_domain = 0\n"));
    policy_free(expect_clean("[kernel k]\npartition = leave\n"));
}

static void partition_of_a_later_rule_is_shadowed_as_other_settings_are(void **state)
{
    (void)state;
    expect_warning("[partition p]\nsm_count = 8\n[kernel a]\nname = x*\npartition = p\n"
                   "[kernel b]\nname = xy\nlocality_domain = 1\npriority = 1\n",
                   8, 1,
                   "partition of [kernel b] can never apply: [kernel a] in line 5 matches all that "
                   "this rule matches and comes first");
}

static void errors_only_looks_for_no_warning(void **state)
{
    static const char text[] = POLICY_HEADER "[partition idle]\nsm_count = 8\n";
    struct policy_diagnostics diagnostics = {.errors_only = true};
    struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);

    (void)state;
    assert_non_null(policy);
    assert_int_equal(diagnostics.warning_count, 0);
    assert_int_equal(policy->rule_count, 0);
    assert_int_equal(policy->partition_count, 1);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
}

/* ---- limits and texts -------------------------------------------------------------------------
 */

/* A policy of so many named partitions and so many unnamed ones. */
static char *many(unsigned named, unsigned unnamed)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    assert_non_null(stream);
    for (unsigned i = 0; i < unnamed; i++) {
        fprintf(stream, "[stream u%u]\nindex = %u\nlocality_domain = %u\n", i, i, unnamed - i);
    }
    for (unsigned i = 0; i < named; i++) {
        fprintf(stream,
                "[partition p%u]\nsm_count = 1\n[stream s%u]\nindex = %u\npartition = p%u\n", i, i,
                100 + i, i);
    }
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void policy_has_as_many_partitions_as_there_is_room_for(void **state)
{
    char *text = many(34, 30);
    struct policy *policy = expect_clean(text);

    (void)state;
    assert_int_equal(policy->partition_count, POLICY_PARTITION_LIMIT);
    for (unsigned i = 0; i < POLICY_PARTITION_LIMIT; i++) {
        assert_int_equal(policy->partitions[i].index, i);
        assert_int_equal(policy->partitions[i].named, i < 34);
        assert_int_equal(policy->partitions[i].number, i < 34 ? 1 : i - 33);
    }
    assert_int_equal(setting(policy, 0)->value.partition, 63);
    policy_free(policy);
    free(text);
    text = many(35, 30);
    expect_error(text, 90, 1, "a policy has at most 64 partitions");
    free(text);
    text = many(70, 0);
    expect_error(text, 64 * 5 + 1, 1, "a policy has at most 64 partitions");
    free(text);
}

static void expect_line(const struct policy_setting_value *value, const char *line)
{
    char text[160];

    assert_string_equal(policy_setting_line(POLICY_SETTING_PARTITION, value, text, sizeof text),
                        line);
}

static void settings_and_partitions_have_their_line(void **state)
{
    struct policy_setting_value value = {.action = POLICY_ACTION_SET, .partition_name = "side"};
    struct policy_partition partition = {.number = 25};
    char text[160], small[6];

    (void)state;
    expect_line(&value, "partition = side");
    assert_string_equal(policy_setting_text(POLICY_SETTING_PARTITION, &value, small, sizeof small),
                        "side");
    value.partition_name = "locality_domain=12";
    expect_line(&value, "locality_domain = 12");
    assert_string_equal(policy_setting_text(POLICY_SETTING_PARTITION, &value, text, sizeof text),
                        "locality_domain=12");
    value = (struct policy_setting_value){.action = POLICY_ACTION_LEAVE};
    expect_line(&value, "partition = leave");
    value.action = POLICY_ACTION_SET;
    value.value.priority = -2;
    assert_string_equal(policy_setting_line(POLICY_SETTING_PRIORITY, &value, text, sizeof text),
                        "priority = -2");
    assert_string_equal(policy_partition_line(&partition, text, sizeof text), "sm_count = 25");
    assert_string_equal(policy_partition_line(&partition, small, sizeof small), "sm_co");
    partition.kind = POLICY_PARTITION_SM_PERCENT;
    assert_string_equal(policy_partition_line(&partition, text, sizeof text), "sm_count = 25%");
    partition.kind = POLICY_PARTITION_SM_REST;
    assert_string_equal(policy_partition_line(&partition, text, sizeof text), "sm_count = rest");
    partition.kind = POLICY_PARTITION_LOCALITY_DOMAIN;
    assert_string_equal(policy_partition_line(&partition, text, sizeof text),
                        "locality_domain = 25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partition_asks_for_a_number_a_percentage_the_rest_or_a_domain),
        cmocka_unit_test(partition_has_a_name_a_place_and_what_it_does_not_say),
        cmocka_unit_test(partition_takes_all_its_keys),
        cmocka_unit_test(sm_count_is_nothing_else),
        cmocka_unit_test(other_values_of_a_partition_have_their_bounds),
        cmocka_unit_test(partition_is_a_number_of_sms_or_a_domain),
        cmocka_unit_test(partition_is_not_smaller_than_what_is_scheduled_together),
        cmocka_unit_test(partition_has_a_name_of_its_own),
        cmocka_unit_test(keys_stand_in_their_own_sections),
        cmocka_unit_test(rule_finds_its_partition_before_and_after_itself),
        cmocka_unit_test(partition_that_is_not_there_is_an_error),
        cmocka_unit_test(domain_of_a_rule_is_an_unnamed_partition_shared_by_rules),
        cmocka_unit_test(domain_of_a_rule_is_the_named_partition_of_that_domain),
        cmocka_unit_test(domain_of_a_rule_that_has_several_partitions_is_an_error),
        cmocka_unit_test(partition_and_domain_exclude_each_other),
        cmocka_unit_test(partition_can_be_left_but_not_taken_away),
        cmocka_unit_test(domain_of_a_rule_has_its_bounds),
        cmocka_unit_test(modifiers_of_partitions_are_read),
        cmocka_unit_test(default_streams_cannot_be_created_elsewhere),
        cmocka_unit_test(blocking_streams_need_allow_blocking),
        cmocka_unit_test(cluster_does_not_go_to_a_backfilled_partition),
        cmocka_unit_test(cluster_is_not_larger_than_what_is_scheduled_together),
        cmocka_unit_test(modifier_without_a_partition_is_a_warning),
        cmocka_unit_test(when_set_means_nothing_to_a_partition),
        cmocka_unit_test(partition_that_no_rule_uses_is_a_warning),
        cmocka_unit_test(partition_on_a_catch_all_kernel_rule_is_a_warning),
        cmocka_unit_test(partition_of_a_later_rule_is_shadowed_as_other_settings_are),
        cmocka_unit_test(errors_only_looks_for_no_warning),
        cmocka_unit_test(policy_has_as_many_partitions_as_there_is_room_for),
        cmocka_unit_test(settings_and_partitions_have_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
