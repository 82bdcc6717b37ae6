/* SPDX-License-Identifier: Apache-2.0 */
/* The short way says what settling in full says, whatever attributes a launch brings. */
#include "test_decide_support.h"

#include "decide/attributes.h"
#include "decide/capture.h"
#include "decide/function.h"
#include "decide/settle.h"

static struct trial trial;

static uint64_t random_state;
static unsigned merged; /* launches that took the prepared way */

static unsigned random_below(unsigned limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(random_state >> 33) % limit;
}

/* What settling in full says. */
static void settle_in_full(struct decide_verdict *verdict, bool captured)
{
    const struct decide_asked asked = {
        .grid_blocks = trial.config.gridDimX,
        .block_threads = trial.config.blockDimX,
        .shared_memory = trial.config.sharedMemBytes,
        .captured = captured,
        .device = -1,
    };
    struct decide_known known =
        decide_function_find(trial.launch.function, trial.launch.library, false);
    struct decide_case at = {
        .launch = &trial.launch,
        .variant = known.variant,
        .serial = known.serial,
        .resolution = decide_resolve(known.variant->plan, &asked, NULL),
        .device = decide_device_class_of(0),
        .in_graph = captured,
    };
    decide_settle_scan(&at);
    decide_settle(&at);
    verdict->change = (at.set | at.removed) && decide_attributes_merge(&at, verdict);
    verdict->cell =
        decide_kernel_cell(at.variant, at.resolution, &at.results, at.from_stream, at.detail)
            ->number;
}

static void bring_random_attributes(void)
{
    static const uint32_t ids[] = {1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 14, 16, 31, 32, 1000};
    trial.config.numAttrs = 0;
    for (unsigned count = random_below(5); count; count--) {
        struct cuda_launch_attribute *own =
            add_own(&trial, ids[random_below(sizeof ids / sizeof *ids)], random_below(3));
        own->value.cluster_dim.y = own->value.cluster_dim.z = 1;
        if (own->id == 9)
            own->value.bytes[1] = (uint8_t)random_below(3);
    }
}

/* What was prepared, where it covers the launch, is what settling in full says. */
static void compare_prepared(const struct decide_verdict *full)
{
    const struct decide_prepared *prepared = decide_prepared_for(trial.launch.function);
    struct cuda_launch_attribute list[DECIDE_PREPARED_LIMIT];
    const struct cuda_launch_attribute *attributes = list;
    if (!prepared)
        return;
    unsigned count = decide_prepared_merge(prepared, &trial.config, list);
    if (trial.config.numAttrs == 0) {
        attributes = prepared->attributes;
        count = prepared->count;
    }
    if (count == 0)
        return;
    merged++;
    assert_true(full->change);
    assert_int_equal(count, full->config.numAttrs);
    assert_memory_equal(attributes, full->config.attrs, count * sizeof *attributes);
    assert_int_equal(prepared->count_offset,
                     offsetof(struct report_shard, launches[full->cell][REPORT_LAUNCH_EAGER]));
}

static void compare(bool captured)
{
    static struct decide_verdict full;
    settle_in_full(&full, captured);
    if (!captured && !trial.launch.cooperative)
        compare_prepared(&full);
    decide_trial(&trial);
    assert_int_equal(trial.verdict.change, full.change);
    assert_int_equal(trial.verdict.cell, full.cell);
    if (!full.change)
        return;
    assert_int_equal(trial.verdict.config.numAttrs, full.config.numAttrs);
    assert_memory_equal(trial.verdict.config.attrs, full.config.attrs,
                        full.config.numAttrs * sizeof full.attributes[0]);
}

static void compare_under(const char *policy, unsigned seed)
{
    struct fake_function function = fake_function_of("k");
    start_policy(policy);
    trial_of(&trial, &function);
    run_trial(&trial); /* clusters are accepted from here on */
    random_state = seed;
    for (int i = 0; i < 2000; i++) {
        bool captured = random_below(4) == 0;
        trial.launch.cooperative = random_below(4) == 0;
        trial.config.gridDimX = 60 + random_below(6);
        trial.config.hStream = (CUstream)0x1000;
        bring_random_attributes();
        if (captured)
            decide_capture_began((CUstream)0x1000, false);
        fake.capturing = captured;
        compare(captured);
        fake.capturing = false;
        if (captured)
            decide_capture_ended((CUstream)0x1000, false);
    }
}

static void values_that_replace(void **state)
{
    (void)state;
    merged = 0;
    compare_under("[kernel a]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 2\npriority = 1\n"
                  "cluster_scheduling = spread\nshared_memory_carveout = 2\n",
                  1);
    assert_true(merged > 100);
}

static void values_that_keep(void **state)
{
    (void)state;
    compare_under("[kernel a]\nshared_memory_carveout = 1\ncluster_scheduling = spread\n"
                  "mem_sync_domain = remote\npriority = 1\nwhen_set = keep\n",
                  2);
}

static void removals(void **state)
{
    (void)state;
    compare_under("[kernel a]\nmem_sync_domain = unset\npriority = unset\n"
                  "programmatic_serialization = unset\nnvlink_util_centric = yes\n"
                  "shared_memory_carveout = unset\ngraph_nodes = yes\n",
                  3);
}

static void removals_that_graphs_refuse(void **state)
{
    (void)state;
    compare_under("[kernel a]\nmem_sync_domain = unset\npriority = unset\n"
                  "programmatic_serialization = unset\n",
                  4);
}

static void clusters(void **state)
{
    (void)state;
    compare_under("[kernel a]\ncluster_dim = 2\nmem_sync_domain = remote\n", 5);
    compare_under("[kernel a]\ncluster_dim = 2\nwhen_set = replace\nunsafe_cluster = yes\n"
                  "graph_nodes = yes\n",
                  6);
    compare_under("[kernel a]\ncluster_dim = unset\nunsafe_cluster = yes\n", 7);
    compare_under("[kernel a]\ncluster_dim = leave\npriority = 2\n", 8);
}

static void rules_about_shapes(void **state)
{
    (void)state;
    compare_under("[kernel a]\ngrid_blocks = 60..61\nmem_sync_domain = remote\n"
                  "[kernel b]\ngrid_blocks = 62..63\npriority = 1\ncaptured = no\n"
                  "[kernel c]\ncluster_dim = 2\nmem_sync_domain = default\n",
                  11);
}

static void refusals(void **state)
{
    (void)state;
    fake.devices[0].domains = 1;
    compare_under("[kernel a]\nmem_sync_domain = remote\npriority = 1\n", 9);
    fake.devices[0].clusters = 0;
    compare_under("[kernel a]\ncluster_dim = 2\ncluster_scheduling = spread\n", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_that_replace),         TEST(values_that_keep), TEST(removals),
        TEST(removals_that_graphs_refuse), TEST(clusters),         TEST(refusals),
        TEST(rules_about_shapes),
    };
    return cmocka_run_group_tests_name("decide_recipe", tests, start_group, NULL);
}
