/* SPDX-License-Identifier: Apache-2.0 */

/* What a record suggests to try: from reports that are made up. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "communication.h"
#include "policy/policy.h"
#include "results.h"
#include "suggest_rules.h"

struct suggestion {
    size_t count;
    char *text, *reason;
    struct policy *policy;
};

static char *kernel(const char *name, int launches, int captured, int least, int most)
{
    char *text = NULL;
    char shapes[200] = "null";

    if (most > 0) {
        snprintf(shapes, sizeof shapes,
                 "{\"grid_blocks\": [%d, %d], \"block_threads\": [512, 512], "
                 "\"shared_memory\": [0, 0]}",
                 least, most);
    }
    assert_true(asprintf(&text,
                         "{\"name\": \"%s\", \"signature\": \"%s()\", \"mangled\": \"_Z%s\", "
                         "\"library\": \"lib.so\", \"demangled\": true, \"launches\": %d, "
                         "\"launches_by_kind\": {\"eager\": %d, \"captured\": %d, \"node\": 0, "
                         "\"replayed\": 0}, \"shapes\": %s, \"settings\": []}",
                         name, name, name, launches, launches - captured, captured, shapes) > 0);
    return text;
}

static char *streams(const char *library, int count, int flags, int priority)
{
    char *text = NULL;

    assert_true(asprintf(&text,
                         "{\"library\": \"%s\", \"kind\": \"created\", \"device\": 0, \"flags\": "
                         "%d, \"priority\": %d, \"rule\": null, \"count\": %d, \"settings\": []}",
                         library, flags, priority, count) > 0);
    return text;
}

/* The suggestion of a report with these kernels and streams, each list ended by NULL; its text is a
 * policy without errors and, if it is one, changes nothing. */
static struct suggestion suggest(char *const *kernels, char *const *rows, int64_t processes)
{
    struct suggestion suggestion = {0};
    struct policy_diagnostics diagnostics = {0};
    struct results results = {0};
    json_t *document =
        json_pack("{s:s, s:i, s:b, s:s, s:{s:s, s:i}}", "format", "cudapolicy report", "schema", 1,
                  "complete", 1, "mode", "observe", "process", "host", "h", "pid", 1);
    json_t *list = json_array();
    const char *error = NULL;
    size_t length;
    FILE *stream = open_memstream(&suggestion.text, &length);

    for (size_t i = 0; kernels[i] != NULL; i++) {
        json_array_append_new(list, json_loads(kernels[i], 0, NULL));
        free(kernels[i]);
    }
    json_object_set_new(document, "kernels", list);
    list = json_array();
    for (size_t i = 0; rows[i] != NULL; i++) {
        json_array_append_new(list, json_loads(rows[i], 0, NULL));
        free(rows[i]);
    }
    json_object_set_new(document, "streams", list);
    assert_true(results_add(&results, document, &error));
    suggestion.count = suggest_rules(&results, processes, stream, &suggestion.reason);
    fclose(stream);
    assert_true((suggestion.count == 0) == (suggestion.reason != NULL));
    assert_true((suggestion.count == 0) == (length == 0));
    if (suggestion.count > 0) {
        suggestion.policy = policy_parse(suggestion.text, length, "suggestion", &diagnostics);
        if (suggestion.policy == NULL) {
            policy_diagnostics_print(&diagnostics, stderr);
        }
        assert_non_null(suggestion.policy);
        assert_int_equal(suggestion.policy->variation_count, suggestion.count);
        policy_diagnostics_release(&diagnostics);
    }
    results_release(&results);
    json_decref(document);
    return suggestion;
}

static void release(struct suggestion *suggestion)
{
    policy_free(suggestion->policy);
    free(suggestion->text);
    free(suggestion->reason);
}

static void expect_nothing(struct suggestion suggestion, const char *reason)
{
    assert_int_equal(suggestion.count, 0);
    if (strstr(suggestion.reason, reason) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", suggestion.reason, reason);
    }
    release(&suggestion);
}

static bool varies(const struct suggestion *suggestion, const char *name, const char *key)
{
    for (size_t i = 0; i < suggestion->policy->variation_count; i++) {
        const struct policy_variation *variation = &suggestion->policy->variations[i];

        if (strcmp(variation->name, name) == 0 && strcmp(variation->key, key) == 0) {
            return true;
        }
    }
    return false;
}

static void communication_beside_others_may_get_a_domain_a_priority_and_sms(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 10, 0, 24, 24),
                             kernel("ncclDevKernel_AllGather", 5, 0, 24, 24),
                             kernel("gemm", 100, 0, 500, 500), NULL};
    char *const rows[] = {streams("libtorch.so", 4, 1, 0), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);

    (void)state;
    assert_int_equal(suggestion.count, 3);
    assert_true(varies(&suggestion, "communication", "mem_sync_domain"));
    assert_true(varies(&suggestion, "communication", "priority"));
    assert_true(varies(&suggestion, "communication", "partition"));
    assert_int_equal(suggestion.policy->rule_count, 1);
    /* One pattern for the family. */
    assert_int_equal(suggestion.policy->rules[0].selectors.name.count, 1);
    assert_string_equal(suggestion.policy->rules[0].selectors.name.patterns[0], "ncclDevKernel_*");
    assert_int_equal(suggestion.policy->partitions[0].number, 24);
    assert_false(suggestion.policy->rules[0].graph_nodes);
    release(&suggestion);
}

static void suggestion_changes_nothing_as_it_stands(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 10, 2, 1, 24),
                             kernel("gemm", 100, 0, 500, 500), NULL};
    char *const rows[] = {streams("libtorch.so", 4, 1, 0), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);

    (void)state;
    for (size_t i = 0; i < suggestion.policy->rule_count; i++) {
        for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
            assert_int_not_equal(suggestion.policy->rules[i].settings[setting].action,
                                 POLICY_ACTION_SET);
            assert_int_not_equal(suggestion.policy->rules[i].settings[setting].action,
                                 POLICY_ACTION_UNSET);
        }
    }
    release(&suggestion);
}

static void small_grids_beside_large_ones_may_get_a_domain_of_their_own(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 11, 0, 2, 4),
                             kernel("my_all_gather[x]", 10, 0, 16, 24),
                             kernel("gemm", 100, 0, 500, 500), NULL};
    char *const rows[] = {streams("libtorch.so", 4, 1, 0), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);
    const struct policy_rule *rule = &suggestion.policy->rules[0];

    (void)state;
    assert_true(varies(&suggestion, "small-communication", "physical_domain"));
    assert_string_equal(rule->name, "small-communication");
    assert_int_equal(rule->selectors.grid_blocks.count, 1);
    assert_int_equal(rule->selectors.grid_blocks.ranges[0].high, 4);
    assert_int_equal(rule->selectors.name.count, 2);
    assert_string_equal(rule->selectors.name.patterns[1], "my_all_gather\\[x\\]");
    assert_non_null(strstr(suggestion.text, "The record does not tell"));
    release(&suggestion);
}

static void grids_that_are_alike_are_one_communicator(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 10, 0, 8, 24),
                             kernel("gemm", 100, 0, 500, 500), NULL};
    char *const rows[] = {streams("libtorch.so", 4, 1, 0), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);

    (void)state;
    assert_false(varies(&suggestion, "small-communication", "physical_domain"));
    assert_int_equal(suggestion.policy->rule_count, 1);
    release(&suggestion);
}

static void communication_alone_is_about_communicators_only(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 10, 0, 1, 24), NULL};
    char *const rows[] = {streams("libtorch.so", 2, 1, 0), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);

    (void)state;
    assert_int_equal(suggestion.count, 1);
    assert_true(varies(&suggestion, "small-communication", "physical_domain"));
    release(&suggestion);
}

static void graphs_need_graph_nodes(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 10, 10, 24, 24),
                             kernel("gemm", 100, 0, 500, 500), NULL};
    char *const rows[] = {streams("libtorch.so", 4, 1, 0), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);

    (void)state;
    assert_true(suggestion.policy->rules[0].graph_nodes);
    release(&suggestion);
}

static void grids_that_are_unknown_or_too_large_get_no_partition(void **state)
{
    char *const unknown[] = {kernel("ncclDevKernel_AllReduce", 10, 0, 0, 0),
                             kernel("gemm", 100, 0, 0, 0), NULL};
    char *const large[] = {kernel("all_reduce_everything", 10, 0, 4000, 4000),
                           kernel("gemm", 100, 0, 500, 500), NULL};
    char *const rows[] = {streams("libtorch.so", 4, 1, 0), NULL};
    char *const other_rows[] = {streams("libtorch.so", 4, 1, 0), NULL};
    struct suggestion suggestion = suggest(unknown, rows, 1);

    (void)state;
    assert_int_equal(suggestion.count, 2);
    assert_int_equal(suggestion.policy->partition_count, 0);
    release(&suggestion);
    suggestion = suggest(large, other_rows, 1);
    assert_int_equal(suggestion.count, 2);
    assert_int_equal(suggestion.policy->partition_count, 0);
    release(&suggestion);
}

static void kernels_on_one_stream_have_nothing_to_gain(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 10, 0, 1, 24),
                             kernel("gemm", 100, 0, 500, 500), NULL};
    char *const none[] = {NULL};
    char *const others[] = {kernel("ncclDevKernel_AllReduce", 10, 0, 1, 24),
                            kernel("gemm", 100, 0, 500, 500), NULL};
    /* One blocking stream a process is ordered with the default one. */
    char *const rows[] = {streams("libtorch.so", 8, 0, 0), NULL};

    (void)state;
    expect_nothing(suggest(kernels, none, 1), "0 created streams a process");
    expect_nothing(suggest(others, rows, 8), "1 created stream a process");
}

static void record_without_launches_says_so(void **state)
{
    char *const kernels[] = {NULL};
    char *const rows[] = {streams("libtorch.so", 8, 1, 0), NULL};

    (void)state;
    expect_nothing(suggest(kernels, rows, 1), "no kernel launch");
}

static void communication_alone_in_one_size_has_nothing_to_gain(void **state)
{
    char *const kernels[] = {kernel("ncclDevKernel_AllReduce", 10, 0, 24, 24), NULL};
    char *const rows[] = {streams("libtorch.so", 8, 1, 0), NULL};

    (void)state;
    expect_nothing(suggest(kernels, rows, 1), "their grids do not differ");
}

static void streams_without_communication_may_get_a_priority(void **state)
{
    char *const kernels[] = {kernel("prefill", 10, 0, 500, 500), kernel("decode", 90, 0, 4, 4),
                             NULL};
    char *const rows[] = {streams("libbig.so", 6, 1, 0), streams("libsmall.so.2", 2, 0, -1), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);
    const struct policy_rule *rule = &suggestion.policy->rules[0];

    (void)state;
    assert_int_equal(suggestion.count, 1);
    assert_true(varies(&suggestion, "side", "priority"));
    assert_int_equal(rule->section, POLICY_SECTION_STREAM);
    assert_string_equal(rule->selectors.library.patterns[0], "libsmall.so.2");
    assert_int_equal(rule->selectors.created_priority.ranges[0].low, -1);
    assert_int_equal(rule->selectors.flags, POLICY_STREAM_FLAGS_BLOCKING);
    release(&suggestion);
}

static void streams_that_are_alike_are_told_apart_by_their_order(void **state)
{
    char *const kernels[] = {kernel("prefill", 10, 0, 500, 500), NULL};
    char *const rows[] = {streams("", 2, 1, 0), NULL};
    struct suggestion suggestion = suggest(kernels, rows, 1);

    (void)state;
    assert_int_equal(suggestion.count, 2);
    assert_true(varies(&suggestion, "side", "partition"));
    assert_int_equal(suggestion.policy->rules[0].selectors.index.count, 1);
    assert_int_equal(suggestion.policy->rules[0].selectors.library.count, 0);
    assert_non_null(strstr(suggestion.text, "all alike"));
    release(&suggestion);
}

static void names_of_communication_are_known(void **state)
{
    (void)state;
    assert_true(communication_named("ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
    assert_true(communication_named("vllm::cross_device_reduce_1stage"));
    assert_true(communication_named("nvshmemi_transfer"));
    assert_true(communication_named("Multimem_Reduce"));
    assert_false(communication_named("at::native::reduce_kernel"));
    assert_false(communication_named("gemm"));
}

/* ---- files ---------------------------------------------------------------------------------- */

static void inventory_of_record_is_read_like_a_report(void **state)
{
    static const char inventory[] =
        "{\"format\": \"cudapolicy inventory\", \"schema\": 1, \"processes\": 4, \"launches\": 30, "
        "\"kernels\": [{\"name\": \"k\", \"signature\": \"k()\", \"mangled\": \"_Z1k\", "
        "\"library\": \"l\", \"launches\": 30, \"launches_by_kind\": {\"eager\": 30, \"captured\": "
        "0, \"node\": 0, \"replayed\": 0}, \"grid_blocks\": [2, 8], \"block_threads\": [1, 1], "
        "\"shared_memory\": [0, 0]}, {\"name\": \"n\", \"signature\": \"n\", \"mangled\": \"n\", "
        "\"library\": \"l\", \"launches\": 1, \"launches_by_kind\": {\"eager\": 1}, "
        "\"grid_blocks\": null, \"block_threads\": null, \"shared_memory\": null}], "
        "\"libraries\": [], \"streams\": [{\"library\": \"l\", \"kind\": \"created\", \"device\": "
        "0, \"flags\": 1, \"priority\": 0, \"rule\": null, \"count\": 12}]}";
    char path[] = "/tmp/test-suggest-XXXXXX";
    int file = mkstemp(path);
    struct results results = {0};
    int64_t processes = 0;

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, inventory, strlen(inventory)), strlen(inventory));
    close(file);
    assert_true(suggest_rules_load(&results, path, &processes));
    unlink(path);
    assert_int_equal(processes, 4);
    assert_int_equal(results.kernel_count, 2);
    assert_string_equal(results.kernels[0].name, "k");
    assert_true(results.kernels[0].shapes_known);
    assert_int_equal(results.kernels[0].grid_blocks.most, 8);
    assert_false(results.kernels[1].shapes_known);
    assert_int_equal(results.stream_count, 1);
    assert_int_equal(results.streams[0].count, 12);
    results_release(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communication_beside_others_may_get_a_domain_a_priority_and_sms),
        cmocka_unit_test(suggestion_changes_nothing_as_it_stands),
        cmocka_unit_test(small_grids_beside_large_ones_may_get_a_domain_of_their_own),
        cmocka_unit_test(grids_that_are_alike_are_one_communicator),
        cmocka_unit_test(communication_alone_is_about_communicators_only),
        cmocka_unit_test(graphs_need_graph_nodes),
        cmocka_unit_test(grids_that_are_unknown_or_too_large_get_no_partition),
        cmocka_unit_test(kernels_on_one_stream_have_nothing_to_gain),
        cmocka_unit_test(record_without_launches_says_so),
        cmocka_unit_test(communication_alone_in_one_size_has_nothing_to_gain),
        cmocka_unit_test(streams_without_communication_may_get_a_priority),
        cmocka_unit_test(streams_that_are_alike_are_told_apart_by_their_order),
        cmocka_unit_test(names_of_communication_are_known),
        cmocka_unit_test(inventory_of_record_is_read_like_a_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
