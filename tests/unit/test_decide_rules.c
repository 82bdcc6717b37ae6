/* SPDX-License-Identifier: Apache-2.0 */
/* Which rules a launch meets: names, callers, shapes, streams, devices, ranks; which of them wins.
 */
#include "test_decide_support.h"

/* The rule behind a setting's outcome, or -1. Rules are numbered from 0 in the order of the text.
 */
static int rule_of(const struct decide_verdict *verdict, enum policy_setting setting)
{
    struct report_result result = result_of(verdict, setting);
    return result.rule == REPORT_RULE_NONE ? -1 : result.rule;
}

#define DOMAIN_RULE(trial) rule_of(decide_trial(trial), POLICY_SETTING_MEM_SYNC_DOMAIN)
#define PRIORITY_RULE(trial) rule_of(decide_trial(trial), POLICY_SETTING_PRIORITY)

static struct trial trial;

static void the_first_matching_rule_wins(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("kernel_a");
    start_policy("[kernel a]\nname = kernel_*\nmem_sync_domain = remote\n"
                 "[kernel b]\nname = kernel_a\nmem_sync_domain = default\n");
    trial_of(&trial, &function);
    assert_int_equal(DOMAIN_RULE(&trial), 0);
    assert_int_equal(given(&trial.verdict, 10)->value.number, 1);
}

static void a_later_rule_gives_the_groups_that_earlier_ones_leave_open(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nname = k\nmem_sync_domain = remote\n"
                 "[kernel b]\nname = k\npriority = -2\n");
    trial_of(&trial, &function);
    assert_int_equal(DOMAIN_RULE(&trial), 0);
    assert_int_equal(PRIORITY_RULE(&trial), 1);
    assert_int_equal(given(&trial.verdict, 8)->value.priority, -2);
}

static void a_domain_never_pairs_with_another_rules_map(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nname = k\nmem_sync_domain = remote\n"
                 "[kernel b]\nname = k\nmem_sync_domain_map = 0 2\n");
    trial_of(&trial, &function);
    assert_int_equal(DOMAIN_RULE(&trial), 0);
    assert_null(given(&trial.verdict, 9));
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN_MAP, NONE, NONE);
}

static void leave_ends_the_search_of_its_group(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nname = k\nmem_sync_domain = leave\n"
                 "[kernel b]\nname = k\nmem_sync_domain = remote\npriority = 1\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_null(given(verdict, 10));
    assert_non_null(given(verdict, 8));
    assert_result(verdict, MEM_SYNC_DOMAIN, KEPT, NONE);
    assert_int_equal(rule_of(verdict, POLICY_SETTING_MEM_SYNC_DOMAIN), 0);
}

static void final_ends_the_search_of_every_group(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nname = k\nmem_sync_domain = remote\nfinal = yes\n"
                 "[kernel b]\nname = k\npriority = 1\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_non_null(given(verdict, 10));
    assert_null(given(verdict, 8));
}

static void a_final_rule_that_does_not_match_ends_nothing(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nname = k\ngrid_blocks = 1..4\nmem_sync_domain = remote\nfinal = yes\n"
                 "[kernel b]\nname = k\nmem_sync_domain = default\npriority = 1\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_int_equal(rule_of(verdict, POLICY_SETTING_MEM_SYNC_DOMAIN), 1);
    assert_non_null(given(verdict, 8));
    trial.config.gridDimX = 4;
    verdict = decide_trial(&trial);
    assert_int_equal(rule_of(verdict, POLICY_SETTING_MEM_SYNC_DOMAIN), 0);
    assert_null(given(verdict, 8));
}

static void a_final_rule_ends_the_search_even_where_it_gives_nothing(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nname = k\nmem_sync_domain = remote\n"
                 "[kernel b]\ngrid_blocks = 1..4\nmem_sync_domain = default\nfinal = yes\n"
                 "[kernel c]\npriority = 1\n");
    trial_of(&trial, &function);
    assert_int_equal(PRIORITY_RULE(&trial), 2);
    trial.config.gridDimX = 4;
    assert_int_equal(PRIORITY_RULE(&trial), -1);
    assert_int_equal(DOMAIN_RULE(&trial), 0);
}

static void a_name_is_matched_in_the_form_that_the_rule_says(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("_ZN2at6native4copyIfEEvPT_i");
    start_policy("[kernel m]\nname = at::native::copy\nname_form = mangled\npriority = 1\n"
                 "[kernel n]\nname = at::native::copy\nmem_sync_domain = remote\n"
                 "[kernel s]\nname = *copy<float>*\nname_form = signature\nshared_memory_carveout "
                 "= 50\n");
    const struct decide_verdict *verdict = decide_trial(trial_of(&trial, &function));
    assert_result(verdict, PRIORITY, NONE, NONE);
    assert_result(verdict, MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_result(verdict, SHARED_MEMORY_CARVEOUT, APPLIED, NONE);
}

static void not_name_excludes_a_kernel(void **state)
{
    (void)state;
    struct fake_function in = fake_function_of("copy_a"), out = fake_function_of("copy_b");
    start_policy("[kernel a]\nname = copy_*\nnot_name = *_b\nmem_sync_domain = remote\n");
    assert_int_equal(DOMAIN_RULE(trial_of(&trial, &in)), 0);
    assert_int_equal(DOMAIN_RULE(trial_of(&trial, &out)), -1);
}

static void a_function_without_a_name_meets_only_rules_without_names(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of(NULL);
    start_policy("[kernel a]\nname = *\nmem_sync_domain = remote\n"
                 "[kernel b]\nnot_name = x\nmem_sync_domain = remote\n"
                 "[kernel c]\npriority = 1\n");
    trial_of(&trial, &function);
    assert_int_equal(DOMAIN_RULE(&trial), -1);
    assert_int_equal(PRIORITY_RULE(&trial), 2);
}

static void a_kernel_is_told_apart_by_the_library_that_launches_it(void **state)
{
    (void)state;
    static const char nccl[] = "libnccl.so.2", torch[] = "libtorch_cuda.so";
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nlibrary = libnccl.so*\nmem_sync_domain = remote\n"
                 "[kernel b]\nnot_library = libnccl.so*\npriority = 1\n");
    trial_of(&trial, &function);
    for (int round = 0; round < 2; round++) {
        trial.launch.library = nccl;
        assert_int_equal(DOMAIN_RULE(&trial), 0);
        assert_int_equal(PRIORITY_RULE(&trial), -1);
        trial.launch.library = torch;
        assert_int_equal(DOMAIN_RULE(&trial), -1);
        assert_int_equal(PRIORITY_RULE(&trial), 1);
        trial.launch.library = NULL; /* not known: no library by name, and none excluded */
        assert_int_equal(DOMAIN_RULE(&trial), -1);
        assert_int_equal(PRIORITY_RULE(&trial), 1);
    }
}

static void shapes_select_launches(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\ngrid_blocks = 1..4, 100\nmem_sync_domain = remote\n"
                 "[kernel b]\nblock_threads = 256..\nmem_sync_domain = remote\n"
                 "[kernel c]\nshared_memory = ..1024\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    trial.config.sharedMemBytes = 2048;
    assert_int_equal(DOMAIN_RULE(&trial), -1);
    trial.config.sharedMemBytes = 1024;
    assert_int_equal(DOMAIN_RULE(&trial), 2);
    trial.config.blockDimY = 2;
    assert_int_equal(DOMAIN_RULE(&trial), 1);
    trial.config.gridDimX = 10;
    trial.config.gridDimZ = 10;
    assert_int_equal(DOMAIN_RULE(&trial), 0);
}

static void captured_selects_launches(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    CUstream stream = (CUstream)0x1000;
    start_policy("[kernel a]\ncaptured = yes\nmem_sync_domain = remote\n"
                 "[kernel b]\ncaptured = no\nmem_sync_domain = remote\n");
    trial_of(&trial, &function);
    trial.config.hStream = stream;
    assert_int_equal(DOMAIN_RULE(&trial), 1);
    decide_capture_began(stream, false);
    fake.capturing = true;
    assert_int_equal(DOMAIN_RULE(&trial), 0);
    assert_int_equal(trial.verdict.kind, REPORT_LAUNCH_CAPTURED);
    fake.capturing = false; /* another stream */
    assert_int_equal(DOMAIN_RULE(&trial), 1);
    decide_capture_ended(stream, false);
    assert_int_equal(DOMAIN_RULE(&trial), 1);
    assert_int_equal(trial.verdict.kind, REPORT_LAUNCH_EAGER);
}

static void a_device_is_selected_by_index_uuid_or_address(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    fake.device_count = 4;
    fake.devices[2].pci = "0000:3B:00.0";
    start_policy("[kernel a]\ndevice = 1\nmem_sync_domain = remote\n"
                 "[kernel b]\ndevice = 0000:3b:00.0\nmem_sync_domain = remote\n"
                 "[kernel c]\ndevice = GPU-a3000000-0000-0000-0000-000000000000\n"
                 "mem_sync_domain = remote\n");
    trial_of(&trial, &function);
    int expected[] = {-1, 0, 1, 2};
    for (int device = 0; device < 4; device++) {
        fake.current_device = device;
        assert_int_equal(DOMAIN_RULE(&trial), expected[device]);
    }
}

static void the_device_is_not_asked_for_when_only_one_is_visible(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\ndevice = 0\nmem_sync_domain = remote\n");
    assert_int_equal(DOMAIN_RULE(trial_of(&trial, &function)), 0);
    assert_int_equal(fake.current_devices, 0);
}

static void the_device_of_a_created_stream_is_known_without_asking(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    struct decide_stream_request request = {.flags = CU_STREAM_NON_BLOCKING};
    fake.device_count = 2;
    start_policy("[stream s]\ndevice = 1\npriority = 0\n"
                 "[kernel a]\ndevice = 1\nmem_sync_domain = remote\n");
    fake.current_device = 1;
    decide_stream_created((CUstream)0x2000, &request);
    fake.current_device = 0;
    trial_of(&trial, &function);
    trial.config.hStream = (CUstream)0x2000;
    assert_int_equal(DOMAIN_RULE(&trial), 1);
    int asked = fake.current_devices;
    assert_int_equal(DOMAIN_RULE(&trial), 1);
    assert_int_equal(fake.current_devices, asked);
}

static void a_stream_is_selected_by_its_rule(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    struct decide_stream_request low = {.priority_given = true, .priority = 0},
                                 high = {.priority_given = true, .priority = -3};
    start_policy("[stream urgent]\ncreated_priority = ..-1\npriority = leave\n"
                 "[kernel a]\nstream = urgent\nmem_sync_domain = remote\n");
    decide_stream_created((CUstream)0x3000, &low);
    decide_stream_created((CUstream)0x4000, &high);
    trial_of(&trial, &function);
    trial.config.hStream = (CUstream)0x3000;
    assert_int_equal(DOMAIN_RULE(&trial), -1);
    trial.config.hStream = (CUstream)0x4000;
    assert_int_equal(DOMAIN_RULE(&trial), 1);
    trial.config.hStream = (CUstream)0x5000; /* its creation was not seen */
    assert_int_equal(DOMAIN_RULE(&trial), -1);
}

static void launch_stream_counts_the_streams_of_a_rule_from_zero(void **state)
{
    (void)state;
    struct fake_function small = fake_function_of("small"), large = fake_function_of("large");
    start_policy("[kernel second]\nname = small\nlaunch_stream = 1\nmem_sync_domain = remote\n");
    CUstream streams[] = {(CUstream)0x6000, (CUstream)0x7000, (CUstream)0x8000};
    struct decide_stream_request request = {0};
    for (int i = 0; i < 3; i++)
        decide_stream_created(streams[i], &request);
    /* Launches of kernels that the rule does not match do not count. */
    trial_of(&trial, &large)->config.hStream = streams[2];
    assert_int_equal(DOMAIN_RULE(&trial), -1);
    trial_of(&trial, &small);
    int expected[] = {-1, 0, -1};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            trial.config.hStream = streams[i];
            assert_int_equal(DOMAIN_RULE(&trial), expected[i]);
        }
}

static void a_stream_counts_for_launch_stream_only_where_the_rule_holds_otherwise(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\ngrid_blocks = 1\nlaunch_stream = 0\nmem_sync_domain = remote\n");
    struct decide_stream_request request = {0};
    decide_stream_created((CUstream)0x6000, &request);
    decide_stream_created((CUstream)0x7000, &request);
    trial_of(&trial, &function);
    trial.config.hStream = (CUstream)0x6000;
    assert_int_equal(DOMAIN_RULE(&trial), -1); /* 64 blocks */
    trial.config.gridDimX = 1;
    trial.config.hStream = (CUstream)0x7000;
    assert_int_equal(DOMAIN_RULE(&trial), 0);
    trial.config.hStream = (CUstream)0x6000;
    assert_int_equal(DOMAIN_RULE(&trial), -1);
}

static void a_stream_created_anew_at_the_same_address_counts_anew(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nlaunch_stream = 1\nmem_sync_domain = remote\n");
    struct decide_stream_request request = {0};
    trial_of(&trial, &function);
    trial.config.hStream = (CUstream)0x6000;
    decide_stream_created(trial.config.hStream, &request);
    assert_int_equal(DOMAIN_RULE(&trial), -1);
    decide_stream_gone(trial.config.hStream);
    decide_stream_created(trial.config.hStream, &request);
    assert_int_equal(DOMAIN_RULE(&trial), 0);
}

static void streams_beyond_the_table_count_as_late(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel late]\nlaunch_stream = 1000..\nmem_sync_domain = remote\n");
    struct decide_stream_request request = {0};
    trial_of(&trial, &function);
    for (uintptr_t i = 1; i <= 400; i++) {
        trial.config.hStream = (CUstream)(0x10000 + i * 64);
        decide_stream_created(trial.config.hStream, &request);
        assert_int_equal(DOMAIN_RULE(&trial), i <= 256 ? -1 : 0);
    }
}

static void rules_for_other_ranks_and_hosts_are_dropped(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("k");
    this_process = (struct decide_process){2, 0, 8, "node7"};
    start_policy(
        "[kernel a]\nrank = 0\nmem_sync_domain = remote\n"
        "[kernel b]\nrank = 2\nhost = node8\nmem_sync_domain = remote\n"
        "[kernel c]\nworld_size = ..4\nmem_sync_domain = remote\n"
        "[kernel d]\nrank = 1..3\nlocal_rank = 0\nhost = node*\nmem_sync_domain = remote\n");
    assert_int_equal(DOMAIN_RULE(trial_of(&trial, &function)), 3);
    this_process = (struct decide_process){-1, -1, -1, NULL};
    start_policy("[kernel a]\nrank = ..100\nmem_sync_domain = remote\n"
                 "[kernel b]\nhost = *\nmem_sync_domain = remote\n");
    assert_int_equal(DOMAIN_RULE(trial_of(&trial, &function)), -1);
}

static void a_thousand_rules_leave_one_candidate(void **state)
{
    (void)state;
    char *text = malloc(200 * 1000), *end = text;
    struct fake_function function = fake_function_of("kernel_777");
    for (int i = 0; i < 1000; i++)
        end += sprintf(end, "[kernel r%d]\nname = kernel_%d\nmem_sync_domain = remote\n", i, i);
    start_policy(text);
    assert_int_equal(DOMAIN_RULE(trial_of(&trial, &function)), 777);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_matching_rule_wins),
        TEST(a_later_rule_gives_the_groups_that_earlier_ones_leave_open),
        TEST(a_domain_never_pairs_with_another_rules_map),
        TEST(leave_ends_the_search_of_its_group),
        TEST(final_ends_the_search_of_every_group),
        TEST(a_final_rule_that_does_not_match_ends_nothing),
        TEST(a_final_rule_ends_the_search_even_where_it_gives_nothing),
        TEST(a_name_is_matched_in_the_form_that_the_rule_says),
        TEST(not_name_excludes_a_kernel),
        TEST(a_function_without_a_name_meets_only_rules_without_names),
        TEST(a_kernel_is_told_apart_by_the_library_that_launches_it),
        TEST(shapes_select_launches),
        TEST(captured_selects_launches),
        TEST(a_device_is_selected_by_index_uuid_or_address),
        TEST(the_device_is_not_asked_for_when_only_one_is_visible),
        TEST(the_device_of_a_created_stream_is_known_without_asking),
        TEST(a_stream_is_selected_by_its_rule),
        TEST(launch_stream_counts_the_streams_of_a_rule_from_zero),
        TEST(a_stream_counts_for_launch_stream_only_where_the_rule_holds_otherwise),
        TEST(a_stream_created_anew_at_the_same_address_counts_anew),
        TEST(streams_beyond_the_table_count_as_late),
        TEST(rules_for_other_ranks_and_hosts_are_dropped),
        TEST(a_thousand_rules_leave_one_candidate),
    };
    return cmocka_run_group_tests_name("decide_rules", tests, start_group, NULL);
}
