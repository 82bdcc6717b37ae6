/* SPDX-License-Identifier: Apache-2.0 */
/* Which stream rules hold for a stream, and what they do to it when it is created. */
#include "test_decide_stream_support.h"

#include <pthread.h>

/* ---- Settings at creation ---- */

static void settings_are_made_when_the_stream_is_created(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\nmem_sync_domain_map = 1 2\n");
    CUstream stream = program_creates("made.so");
    assert_int_equal(stream_has(stream, DOMAIN), 1);
    assert_int_equal(stream_has(stream, MAP), MAP_OF(1, 2));
    assert_stream_result("made.so", MEM_SYNC_DOMAIN, APPLIED, NONE);
    assert_stream_result("made.so", MEM_SYNC_DOMAIN_MAP, APPLIED, NONE);
    assert_stream_result("made.so", PRIORITY, NONE, NONE);
    const struct decide_stream *found = decide_stream_find(stream, false, NULL);
    assert_int_equal(found->kind, DECIDE_STREAM_CREATED);
    assert_int_equal(found->device, 0);
    assert_true(decide_stream_matched(found, 0));
    assert_false(found->profile->merges);
}

static void a_stream_that_no_rule_matches_is_left_alone(void **state)
{
    (void)state;
    support_begin("[stream s]\nlibrary = other.so\nmem_sync_domain = remote\n");
    recording_driver_forget();
    CUstream stream = program_creates("alone.so");
    assert_int_equal(recording_driver_call_count("cuStreamSetAttribute"), 0);
    assert_int_equal(recording_driver_call_count("cuStreamCreate"), 1);
    assert_int_equal(decide_stream_find(stream, false, NULL)->profile->number, 0);
}

static void the_first_matching_rule_wins_per_group(void **state)
{
    (void)state;
    support_begin("[stream a]\nmem_sync_domain = remote\n"
                  "[stream b]\nmem_sync_domain_map = 2 2\npriority = -3\n"
                  "[stream c]\npriority = -1\n");
    CUstream stream = program_creates("groups.so");
    assert_int_equal(stream_has(stream, DOMAIN), 1);
    assert_int_equal(stream_has(stream, MAP), MAP_OF(0, 1));
    assert_int_equal(stream_priority(stream), -3);
    const struct decide_stream *found = decide_stream_find(stream, false, NULL);
    assert_true(decide_stream_matched(found, 0));
    assert_true(decide_stream_matched(found, 1));
    assert_true(decide_stream_matched(found, 2));
}

static void final_ends_the_search(void **state)
{
    (void)state;
    support_begin("[stream a]\nmem_sync_domain = remote\nfinal = yes\n"
                  "[stream b]\npriority = -1\n");
    CUstream stream = program_creates("final.so");
    assert_int_equal(stream_priority(stream), 0);
    assert_false(decide_stream_matched(decide_stream_find(stream, false, NULL), 1));
}

static void leave_ends_the_search_of_its_group_and_sets_nothing(void **state)
{
    (void)state;
    support_begin("[stream a]\nlibrary = leave.so\nmem_sync_domain = leave\n"
                  "[stream b]\nmem_sync_domain = remote\n");
    CUstream stream = program_creates("leave.so");
    assert_int_equal(stream_has(stream, DOMAIN), 0);
    assert_stream_result("leave.so", MEM_SYNC_DOMAIN, KEPT, NONE);
    assert_int_equal(stream_has(program_creates("other.so"), DOMAIN), 1);
}

/* ---- Selectors ---- */

static bool is_selected(CUstream stream)
{
    return decide_stream_matched(decide_stream_find(stream, false, NULL), 0);
}

static void library_is_the_creating_caller(void **state)
{
    (void)state;
    support_begin("[stream s]\nlibrary = libnccl*\nlibrary = x.so\nnot_library = *debug*\n"
                  "mem_sync_domain = remote\n");
    assert_true(is_selected(program_creates("libnccl.so.2")));
    assert_true(is_selected(program_creates("x.so")));
    assert_false(is_selected(program_creates("libnccl-debug.so")));
    assert_false(is_selected(program_creates("y.so")));
    assert_false(is_selected(program_creates(NULL)));
}

static void created_priority_is_the_priority_asked_for(void **state)
{
    (void)state;
    support_begin("[stream s]\ncreated_priority = ..-1\npriority = 0\n");
    CUstream urgent = program_creates_with_priority("p.so", -2);
    assert_true(is_selected(urgent));
    assert_int_equal(stream_priority(urgent), 0);
    assert_false(is_selected(program_creates_with_priority("p.so", 0)));
    assert_false(is_selected(program_creates("p.so")));
}

static void flags_tell_blocking_streams_from_others(void **state)
{
    (void)state;
    support_begin("[stream s]\nflags = blocking\nmem_sync_domain = remote\n");
    assert_false(is_selected(program_creates("f.so")));
    assert_true(is_selected(
        program_creates_with(&(struct decide_stream_request){.flags = 0, .library = "f.so"})));
}

static void index_counts_the_streams_of_each_device(void **state)
{
    (void)state;
    CUcontext second;
    recording_driver_configure("DEVICES", "2");
    support_begin("[stream s]\nindex = 1\nmem_sync_domain = remote\n");
    assert_false(is_selected(program_creates("i.so")));
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT(cuCtxSetCurrent(second));
    assert_false(is_selected(program_creates("i.so")));
    CUstream other = program_creates("i.so");
    assert_true(is_selected(other));
    assert_int_equal(decide_stream_find(other, false, NULL)->device, 1);
    assert_int_equal(decide_stream_find(other, false, NULL)->index, 1);
}

static void a_creation_that_fails_uses_no_index(void **state)
{
    (void)state;
    CUstream stream;
    const struct decide_stream_request request = {.library = "n.so"};
    support_begin("[stream s]\nindex = 0\npriority = -4\n");
    recording_driver_configure("FAIL", "cuStreamCreate*:*=2");
    assert_int_equal(program_try_create(&stream, &request), CUDA_ERROR_OUT_OF_MEMORY);
    recording_driver_configure("FAIL", "");
    EXPECT(program_try_create(&stream, &request));
    assert_int_equal(decide_stream_find(stream, false, NULL)->index, 0);
    assert_int_equal(stream_priority(stream), -4);
    assert_int_equal(stream_priority(program_creates("n.so")), 0);
}

static void device_selects_by_the_current_device(void **state)
{
    (void)state;
    CUcontext second;
    recording_driver_configure("DEVICES", "2");
    support_begin("[stream s]\ndevice = 1\nmem_sync_domain = remote\n");
    assert_false(is_selected(program_creates("d.so")));
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT(cuCtxSetCurrent(second));
    assert_true(is_selected(program_creates("d.so")));
}

static void rules_for_other_ranks_and_hosts_are_dropped(void **state)
{
    (void)state;
    support_begin("[stream a]\nrank = 0..2\nmem_sync_domain = remote\n"
                  "[stream b]\nhost = other*\nmem_sync_domain = remote\n"
                  "[stream c]\nrank = 3\nhost = node*\nworld_size = 8\npriority = -1\n");
    CUstream stream = program_creates("r.so");
    assert_int_equal(stream_has(stream, DOMAIN), 0);
    assert_int_equal(stream_priority(stream), -1);
}

/* ---- Priority ---- */

static void priority_is_given_to_the_creating_call(void **state)
{
    (void)state;
    support_begin("[stream s]\npriority = -2\n");
    recording_driver_forget();
    CUstream stream = program_creates("without.so");
    assert_int_equal(recording_driver_call_count("cuStreamCreateWithPriority"), 1);
    assert_int_equal(recording_driver_call_count("cuStreamCreate"), 0);
    assert_int_equal(recording_driver_call_count("cuStreamSetAttribute"), 0);
    assert_int_equal(stream_priority(stream), -2);
    assert_stream_result("without.so", PRIORITY, APPLIED, NONE);
}

static void priority_is_clamped_as_cuda_does(void **state)
{
    (void)state;
    support_begin("[stream s]\npriority = -100\n");
    assert_int_equal(stream_priority(program_creates("clamp.so")), -5);
    assert_stream_result("clamp.so", PRIORITY, APPLIED, NONE);
    program_creates_with_priority("so.so", -7);
    assert_stream_result("so.so", PRIORITY, ALREADY_SO, NONE);
}

static void keep_leaves_a_priority_that_the_program_asked_for(void **state)
{
    (void)state;
    support_begin("[stream s]\npriority = -2\nwhen_set = keep\n");
    assert_int_equal(stream_priority(program_creates_with_priority("keep.so", -4)), -4);
    assert_stream_result("keep.so", PRIORITY, KEPT, OWN_VALUE);
    assert_int_equal(stream_priority(program_creates("nokeep.so")), -2);
    assert_stream_result("nokeep.so", PRIORITY, APPLIED, NONE);
}

static void a_refused_priority_leaves_the_programs_own(void **state)
{
    (void)state;
    support_begin("[stream s]\npriority = -2\n");
    recording_driver_configure("FAIL", "cuStreamCreateWithPriority:1=801");
    assert_int_equal(stream_priority(program_creates_with_priority("refused.so", -1)), -1);
    assert_stream_result("refused.so", PRIORITY, REFUSED, REFUSED_BY_DRIVER);
}

/* ---- What cannot be made ---- */

static void a_refused_setting_is_counted_and_the_others_are_made(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\nmem_sync_domain_map = 1 2\n");
    recording_driver_configure("FAIL", "cuStreamSetAttribute:1=999");
    CUstream stream = program_creates("driver.so");
    assert_int_equal(stream_has(stream, DOMAIN), 0);
    assert_int_equal(stream_has(stream, MAP), MAP_OF(1, 2));
    assert_stream_result("driver.so", MEM_SYNC_DOMAIN, REFUSED, REFUSED_BY_DRIVER);
    assert_stream_result("driver.so", MEM_SYNC_DOMAIN_MAP, APPLIED, NONE);
}

static void domains_are_refused_on_a_device_with_one(void **state)
{
    (void)state;
    recording_driver_configure("MEM_SYNC_DOMAINS", "1");
    support_begin("[stream s]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 0\n");
    recording_driver_forget();
    program_creates("one.so");
    assert_int_equal(recording_driver_call_count("cuStreamSetAttribute"), 0);
    assert_stream_result("one.so", MEM_SYNC_DOMAIN, REFUSED, ONE_DOMAIN);
    assert_stream_result("one.so", MEM_SYNC_DOMAIN_MAP, REFUSED, ONE_DOMAIN);
}

static void a_physical_domain_beyond_the_device_is_refused(void **state)
{
    (void)state;
    recording_driver_configure("MEM_SYNC_DOMAINS", "2");
    support_begin("[stream s]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 2\n");
    CUstream stream = program_creates("beyond.so");
    assert_int_equal(stream_has(stream, DOMAIN), 1);
    assert_int_equal(stream_has(stream, MAP), MAP_OF(0, 1));
    assert_stream_result("beyond.so", MEM_SYNC_DOMAIN_MAP, REFUSED, NO_SUCH_DOMAIN);
}

static void observing_sets_nothing_and_says_what_would_be(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\npriority = -2\n");
    report_control->part.mode = POLICY_MODE_OBSERVE;
    recording_driver_forget();
    CUstream stream = program_creates("observe.so");
    assert_int_equal(recording_driver_call_count("cuStreamSetAttribute"), 0);
    assert_int_equal(stream_priority(stream), 0);
    assert_stream_result("observe.so", MEM_SYNC_DOMAIN, APPLIED, OBSERVE);
    assert_stream_result("observe.so", PRIORITY, APPLIED, OBSERVE);
}

static void the_runtime_layer_without_a_driver_is_refused(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    cuda_driver.cuStreamSetAttribute = NULL;
    program_creates_with(
        &(struct decide_stream_request){.library = "runtime.so", .layer = DECIDE_LAYER_RUNTIME});
    assert_stream_result("runtime.so", MEM_SYNC_DOMAIN, REFUSED, RUNTIME_LAYER);
}

/* ---- Handles ---- */

static void a_handle_that_is_used_again_is_another_stream(void **state)
{
    (void)state;
    support_begin("[stream s]\nlibrary = first.so\nmem_sync_domain = remote\n");
    CUstream stream = program_creates("first.so");
    uint64_t serial = decide_stream_find(stream, false, NULL)->serial;
    assert_true(is_selected(stream));
    decide_stream_gone(stream);
    decide_stream_created(stream, &(struct decide_stream_request){.library = "second.so"});
    assert_false(is_selected(stream));
    assert_int_not_equal(decide_stream_find(stream, false, NULL)->serial, serial);
}

static void a_stream_not_seen_being_created_matches_no_rule(void **state)
{
    (void)state;
    CUstream stream;
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    EXPECT(cuStreamCreate(&stream, 0));
    const struct decide_stream *found = decide_stream_find(stream, false, NULL);
    assert_int_equal(found->kind, DECIDE_STREAM_UNKNOWN);
    assert_int_equal(found->device, 0);
    assert_false(decide_stream_matched(found, 0));
    assert_ptr_equal(found, decide_stream_find(stream, false, NULL));
    decide_stream_gone(stream);
}

static void nothing_is_asked_about_a_known_stream(void **state)
{
    (void)state;
    recording_driver_configure("DEVICES", "4");
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    CUstream stream = program_creates("known.so");
    recording_driver_forget();
    for (int i = 0; i < 100; i++)
        decide_stream_find(stream, false, "known.so");
    assert_int_equal(recording_driver_call_count(NULL), 0);
}

static void the_end_of_a_context_ends_its_streams_only(void **state)
{
    (void)state;
    CUcontext first, second;
    recording_driver_configure("DEVICES", "2");
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    EXPECT(cuCtxGetCurrent(&first));
    CUstream one = program_creates("c.so");
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1));
    EXPECT(cuCtxSetCurrent(second));
    CUstream other = program_creates("c.so");
    decide_stream_context_gone(first);
    assert_int_equal(decide_stream_find(one, false, NULL)->kind, DECIDE_STREAM_UNKNOWN);
    assert_int_equal(decide_stream_find(other, false, NULL)->kind, DECIDE_STREAM_CREATED);
    decide_stream_context_gone(NULL);
    assert_int_equal(decide_stream_find(other, false, NULL)->kind, DECIDE_STREAM_UNKNOWN);
}

#if CUDA_VERSION >= 12050
static void a_green_contexts_stream_is_on_its_device(void **state)
{
    (void)state;
    CUdevResource all, some;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream stream;
    unsigned groups = 1;
    recording_driver_configure("DEVICES", "2");
    support_begin("[stream s]\ndevice = 1\nmem_sync_domain = remote\n");
    EXPECT(cuDeviceGetDevResource(1, &all, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT(cuDevSmResourceSplitByCount(&some, &groups, &all, NULL, 0, 16));
    EXPECT(cuDevResourceGenerateDesc(&description, &some, 1));
    EXPECT(cuGreenCtxCreate(&green, description, 1, CU_GREEN_CTX_DEFAULT_STREAM));
    EXPECT(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    decide_stream_created(stream, &(struct decide_stream_request){.flags = CU_STREAM_NON_BLOCKING,
                                                                  .priority_given = true,
                                                                  .green = true,
                                                                  .library = "g.so"});
    assert_true(is_selected(stream));
    assert_int_equal(stream_has(stream, DOMAIN), 1);
}
#endif

/* ---- Failures and threads ---- */

static void no_failing_query_of_ours_changes_what_the_program_gets(void **state)
{
    (void)state;
    static const char *const names[] = {"cuCtxGetDevice",       "cuCtxGetCurrent",
                                        "cuStreamSetAttribute", "cuStreamGetPriority",
                                        "cuDeviceGetCount",     "cuDeviceGetAttribute",
                                        "cuDeviceGet",          "cuCtxGetStreamPriorityRange"};
    static const int codes[] = {1, 2, 201, 700, 999};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t j = 0; j < sizeof codes / sizeof *codes; j++) {
            char rule[64];
            CUstream stream;
            recording_driver_reset();
            recording_driver_configure("DEVICES", "2");
            support_begin("[stream s]\nmem_sync_domain = remote\npriority = -1\nindex = 0..7\n");
            snprintf(rule, sizeof rule, "%s:*=%d", names[i], codes[j]);
            recording_driver_configure("FAIL", rule);
            EXPECT(
                program_try_create(&stream, &(struct decide_stream_request){.library = "fail.so"}));
            decide_stream_find(stream, false, NULL);
            recording_driver_configure("FAIL", "");
            EXPECT(cuStreamSynchronize(stream));
            program_destroys(stream);
            support_teardown(NULL);
        }
    }
}

enum {
    THREADS = 16,
    ROUNDS = 200,
};

static CUcontext thread_context;

static void *create_and_find(void *unused)
{
    (void)unused;
    cuCtxSetCurrent(thread_context);
    for (int i = 0; i < ROUNDS; i++) {
        CUstream stream;
        const struct decide_stream_request request = {.library = i & 1 ? "t1.so" : "t2.so"};
        if (program_try_create(&stream, &request) != CUDA_SUCCESS)
            return (void *)1;
        const struct decide_stream *found = decide_stream_find(stream, false, NULL);
        if (found->library != request.library || decide_stream_matched(found, 0) != (i & 1))
            return (void *)2;
        decide_stream_find(NULL, true, "t1.so");
        decide_stream_gone(stream);
        if (cuStreamDestroy(stream) != CUDA_SUCCESS)
            return (void *)3;
    }
    return NULL;
}

static void threads_create_find_and_destroy_at_the_same_time(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    recording_driver_configure("KEEP", "0");
    support_begin("[stream s]\nlibrary = t1.so\nkind = created\nkind = per_thread\n"
                  "mem_sync_domain = remote\n");
    EXPECT(cuCtxGetCurrent(&thread_context));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, create_and_find, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        assert_null(failure);
    }
    assert_int_equal(decide_stream_find(program_creates("t1.so"), false, NULL)->index,
                     THREADS * ROUNDS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, support_setup, support_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(settings_are_made_when_the_stream_is_created),
        TEST(a_stream_that_no_rule_matches_is_left_alone),
        TEST(the_first_matching_rule_wins_per_group),
        TEST(final_ends_the_search),
        TEST(leave_ends_the_search_of_its_group_and_sets_nothing),
        TEST(library_is_the_creating_caller),
        TEST(created_priority_is_the_priority_asked_for),
        TEST(flags_tell_blocking_streams_from_others),
        TEST(index_counts_the_streams_of_each_device),
        TEST(a_creation_that_fails_uses_no_index),
        TEST(device_selects_by_the_current_device),
        TEST(rules_for_other_ranks_and_hosts_are_dropped),
        TEST(priority_is_given_to_the_creating_call),
        TEST(priority_is_clamped_as_cuda_does),
        TEST(keep_leaves_a_priority_that_the_program_asked_for),
        TEST(a_refused_priority_leaves_the_programs_own),
        TEST(a_refused_setting_is_counted_and_the_others_are_made),
        TEST(domains_are_refused_on_a_device_with_one),
        TEST(a_physical_domain_beyond_the_device_is_refused),
        TEST(observing_sets_nothing_and_says_what_would_be),
        TEST(the_runtime_layer_without_a_driver_is_refused),
        TEST(a_handle_that_is_used_again_is_another_stream),
        TEST(a_stream_not_seen_being_created_matches_no_rule),
        TEST(nothing_is_asked_about_a_known_stream),
        TEST(the_end_of_a_context_ends_its_streams_only),
#if CUDA_VERSION >= 12050
        TEST(a_green_contexts_stream_is_on_its_device),
#endif
        TEST(no_failing_query_of_ours_changes_what_the_program_gets),
        TEST(threads_create_find_and_destroy_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
