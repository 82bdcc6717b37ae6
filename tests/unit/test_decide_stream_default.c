/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for the legacy and the per-thread stream. */
#include "test_decide_stream_support.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct decide_stream_setting *domain_of(const struct decide_stream *stream)
{
    return &stream->profile->settings[POLICY_SETTING_MEM_SYNC_DOMAIN];
}

static void handles_of_default_streams_are_told_apart(void **state)
{
    (void)state;
    support_begin("[stream l]\nkind = legacy\nmem_sync_domain = remote\n"
                  "[stream t]\nkind = per_thread\npriority = -1\n"
                  "[stream c]\nmem_sync_domain_map = 1 1\n");
    assert_true(decide_stream_merges_exist());
    const struct decide_stream *legacy = decide_stream_find(NULL, false, NULL);
    const struct decide_stream *per_thread = decide_stream_find(NULL, true, NULL);
    assert_int_equal(legacy->kind, DECIDE_STREAM_LEGACY);
    assert_int_equal(per_thread->kind, DECIDE_STREAM_PER_THREAD);
    assert_ptr_equal(decide_stream_find(CU_STREAM_LEGACY, true, NULL), legacy);
    assert_ptr_equal(decide_stream_find(CU_STREAM_PER_THREAD, false, NULL), per_thread);
    assert_true(legacy->profile->merges);
    assert_true(decide_stream_matched(legacy, 0));
    assert_false(decide_stream_matched(legacy, 1));
    assert_false(decide_stream_matched(legacy, 2));
    assert_int_equal(domain_of(legacy)->value->value.mem_sync_domain, 1);
    assert_null(domain_of(per_thread)->value);
    assert_int_equal(per_thread->profile->settings[POLICY_SETTING_PRIORITY].value->value.priority,
                     -1);
    assert_int_not_equal(legacy->serial, per_thread->serial);
}

static void without_a_rule_nothing_is_merged_or_asked(void **state)
{
    (void)state;
    recording_driver_configure("DEVICES", "4");
    support_begin("[stream c]\nmem_sync_domain = remote\n");
    assert_false(decide_stream_merges_exist());
    recording_driver_forget();
    assert_int_equal(decide_stream_find(NULL, false, "x.so")->profile->number, 0);
    assert_int_equal(decide_stream_find(NULL, true, "x.so")->profile->number, 0);
    assert_int_equal(recording_driver_call_count(NULL), 0);
}

static void the_library_of_a_default_stream_is_the_launching_caller(void **state)
{
    (void)state;
    static const char one[] = "libone.so", other[] = "libother.so";
    support_begin("[stream l]\nkind = legacy\nlibrary = libone*\nmem_sync_domain = remote\n");
    assert_true(decide_stream_find(NULL, false, one)->profile->merges);
    assert_false(decide_stream_find(NULL, false, other)->profile->merges);
    assert_false(decide_stream_find(NULL, false, NULL)->profile->merges);
    assert_ptr_equal(decide_stream_find(NULL, false, one), decide_stream_find(NULL, false, one));
    assert_int_equal(decide_stream_find(NULL, false, one)->serial,
                     decide_stream_find(NULL, false, other)->serial);
}

static void the_device_is_asked_only_where_a_rule_depends_on_it(void **state)
{
    (void)state;
    CUcontext second;
    recording_driver_configure("DEVICES", "2");
    support_begin("[stream l]\nkind = legacy\ndevice = 1\nnvlink_util_centric = yes\n"
                  "[stream t]\nkind = per_thread\npriority = -1\n");
    recording_driver_forget();
    assert_false(decide_stream_find(NULL, false, NULL)->profile->merges);
    assert_true(decide_stream_find(NULL, true, NULL)->profile->merges);
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT(cuCtxSetCurrent(second));
    assert_true(decide_stream_find(NULL, false, NULL)->profile->merges);
    assert_int_equal(decide_stream_find(NULL, false, NULL)->device, 1);
    recording_driver_forget();
    decide_stream_find(NULL, false, NULL);
    decide_stream_find(NULL, true, NULL);
    assert_int_equal(recording_driver_call_count(NULL), 1);
    assert_int_equal(recording_driver_call_count("cuCtxGetDevice"), 1);
}

static void one_device_is_not_asked_about(void **state)
{
    (void)state;
    support_begin("[stream l]\nkind = legacy\nmem_sync_domain = remote\n");
    decide_stream_find(NULL, false, NULL);
    recording_driver_forget();
    assert_true(decide_stream_find(NULL, false, NULL)->profile->merges);
    assert_int_equal(recording_driver_call_count(NULL), 0);
}

static void domains_of_default_streams_are_checked_against_the_device(void **state)
{
    (void)state;
    recording_driver_configure("MEM_SYNC_DOMAINS", "1");
    support_begin("[stream l]\nkind = legacy\nmem_sync_domain = remote\n");
    const struct decide_stream *legacy = decide_stream_find(NULL, false, NULL);
    assert_false(legacy->profile->merges);
    assert_null(domain_of(legacy)->value);
    assert_int_equal(domain_of(legacy)->result.outcome, REPORT_OUTCOME_REFUSED);
    assert_int_equal(domain_of(legacy)->result.reason, REPORT_REASON_ONE_DOMAIN);
}

static void what_the_program_set_on_the_legacy_stream_is_known(void **state)
{
    (void)state;
    CUcontext second;
    recording_driver_configure("DEVICES", "2");
    support_begin("[stream l]\nkind = legacy\npriority = -1\nwhen_set = keep\n");
    assert_int_equal(decide_stream_own(decide_stream_find(NULL, false, NULL)), 0);
    program_sets(NULL, PRIORITY, 0);
    assert_int_equal(decide_stream_own(decide_stream_find(NULL, false, NULL)), 1u << PRIORITY);
    assert_int_equal(decide_stream_own(decide_stream_find(NULL, true, NULL)), 0);
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT(cuCtxSetCurrent(second));
    assert_int_equal(decide_stream_own(decide_stream_find(NULL, false, NULL)), 0);
}

static void *own_of_another_thread(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)decide_stream_own(decide_stream_find(NULL, true, NULL));
}

static void what_the_program_set_on_a_per_thread_stream_is_that_threads(void **state)
{
    (void)state;
    pthread_t thread;
    void *own;
    support_begin("[stream t]\nkind = per_thread\nmem_sync_domain = remote\nwhen_set = keep\n");
    program_sets(CU_STREAM_PER_THREAD, DOMAIN, 0);
    assert_int_equal(decide_stream_own(decide_stream_find(NULL, true, NULL)), 1u << DOMAIN);
    assert_int_equal(pthread_create(&thread, NULL, own_of_another_thread, NULL), 0);
    pthread_join(thread, &own);
    assert_null(own);
}

static void a_child_after_fork_starts_over(void **state)
{
    (void)state;
    int status;
    static const char library[] = "libfork.so";
    support_begin("[stream l]\nkind = legacy\nkind = created\nrank = 3\nlibrary = libfork.so\n"
                  "mem_sync_domain = remote\n");
    CUstream stream = program_creates(library);
    assert_true(decide_stream_find(NULL, false, library)->profile->merges);
    pid_t child = fork();
    if (child == 0) {
        const struct decide_process process = {.rank = 4, .local_rank = 2, .world_size = 8};
        decide_start(support_policy, &process, POLICY_MODE_ENFORCE);
        bool started_over =
            !decide_stream_merges_exist() &&
            !decide_stream_find(NULL, false, library)->profile->merges &&
            decide_stream_find(stream, false, library)->kind == DECIDE_STREAM_UNKNOWN;
        _exit(started_over ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(decide_stream_find(NULL, false, library)->profile->merges);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, support_setup, support_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(handles_of_default_streams_are_told_apart),
        TEST(without_a_rule_nothing_is_merged_or_asked),
        TEST(the_library_of_a_default_stream_is_the_launching_caller),
        TEST(the_device_is_asked_only_where_a_rule_depends_on_it),
        TEST(one_device_is_not_asked_about),
        TEST(domains_of_default_streams_are_checked_against_the_device),
        TEST(what_the_program_set_on_the_legacy_stream_is_known),
        TEST(what_the_program_set_on_a_per_thread_stream_is_that_threads),
        TEST(a_child_after_fork_starts_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
