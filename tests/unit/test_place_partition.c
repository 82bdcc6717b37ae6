/* SPDX-License-Identifier: Apache-2.0 */
/* When partitions are made and when they go, and what others see of them. */
#include "test_place_support.h"

/* ---- Making ------------------------------------------------------------------------------------
 */

static void partitions_wait_for_the_primary_context(void **state)
{
    (void)state;
    assert_true(place_wanted());
    assert_null(place_primary_context(0));
    place_device_active(0, true);
    assert_int_equal(fake.made[FAKE_GREEN], 0);
    assert_reason(0, SIDE, NO_PARTITION);
    assert_reason(0, PLACE_WHOLE_DEVICE, NO_PARTITION);
    program_retains(0);
    assert_int_equal(fake.live[FAKE_GREEN], 2);
    assert_reason(0, SIDE, NONE);
    assert_reason(0, MAIN, NONE);
    assert_reason(0, PLACE_WHOLE_DEVICE, NONE);
    assert_ptr_equal(place_primary_context(0), &fake.primary[0]);
    assert_int_equal(fake.misuses, 0);
}

static void partitions_say_what_they_are(void **state)
{
    (void)state;
    program_retains(2);
    const struct place_partition *side = place_partition_find(2, SIDE);
    const struct place_partition *rest = place_partition_find(2, MAIN);
    const struct place_partition *whole = place_partition_find(2, PLACE_WHOLE_DEVICE);
    assert_int_equal(side->device, 2);
    assert_int_equal(side->index, SIDE);
    assert_int_equal(side->sms, 16);
    assert_int_equal(rest->sms, FAKE_SMS - 16);
    assert_int_equal(whole->sms, FAKE_SMS);
    assert_int_equal(whole->index, PLACE_WHOLE_DEVICE);
    assert_true(side->green && rest->green && side->green != rest->green && !whole->green);
    assert_true(side->probe && rest->probe && !whole->probe);
    assert_ptr_equal(whole->context, &fake.primary[2]);
    assert_ptr_equal(place_partition_of_context(side->context), side);
    assert_ptr_equal(place_partition_of_context(rest->context), rest);
    assert_null(place_partition_of_context(whole->context));
    assert_null(place_partition_of_context(NULL));
    assert_int_not_equal(atomic_load(&side->generation), 0);
    assert_int_equal(atomic_load(&side->generation), atomic_load(&whole->generation));
}

static void hold_on_the_primary_context_is_as_before(void **state)
{
    (void)state;
    fake_current = (CUcontext)&fake.objects[7];
    fake.retains[0] = 1;
    place_device_active(0, true);
    assert_int_equal(fake.retains[0], 1 + 2); /* the program's, the green contexts' */
    assert_ptr_equal(fake_current, &fake.objects[7]);
}

static void later_sights_ask_nothing(void **state)
{
    (void)state;
    program_retains(0);
    forget_calls();
    for (int i = 0; i < 1000; i++)
        place_device_active(0, true);
    assert_int_equal(fake.calls, 0);
    assert_int_equal(fake.made[FAKE_GREEN], 2);
}

static void observing_makes_nothing_and_tells_what_would_be(void **state)
{
    (void)state;
    fake.retains[0] = 1;
    place_device_active(0, false);
    assert_int_equal(fake.made[FAKE_GREEN], 0);
    assert_int_equal(fake.made[FAKE_STREAM], 0);
    assert_int_equal(fake.retains[0], 1);
    assert_reason(0, SIDE, NONE);
    assert_int_equal(place_partition_find(0, SIDE)->sms, 16);
    assert_null(place_partition_find(0, SIDE)->green);
    forget_calls();
    place_device_active(0, false);
    assert_int_equal(fake.calls, 0);
    place_device_active(0, true); /* the mode was changed */
    assert_int_equal(fake.live[FAKE_GREEN], 2);
    assert_non_null(place_partition_find(0, SIDE)->green);
}

static void policy_without_partitions_asks_nothing(void **state)
{
    (void)state;
    start_with("[policy]\nversion = 1\n", NULL);
    assert_false(place_wanted());
    program_retains(0);
    program_releases(0);
    place_device_resetting(0);
    assert_int_equal(fake.calls, 0);
    assert_reason(0, 0, NO_PARTITION);
}

static void devices_out_of_range_have_no_partitions(void **state)
{
    (void)state;
    int numbers[] = {-1, PLACE_DEVICE_LIMIT, 100000};
    for (int i = 0; i < 3; i++) {
        place_device_retained(numbers[i]);
        place_device_active(numbers[i], true);
        place_device_releasing(numbers[i]);
        place_device_resetting(numbers[i]);
        assert_reason(numbers[i], SIDE, NO_PARTITION);
        assert_null(place_primary_context(numbers[i]));
    }
    program_retains(0);
    assert_reason(0, PLACE_WHOLE_DEVICE + 1, NO_PARTITION);
    assert_reason(0, 5, NO_PARTITION);
}

static bool only_main_or_device_1(const struct policy_partition *partition, int device)
{
    return partition->index == MAIN || device == 1;
}

static void partitions_are_where_they_are_selected(void **state)
{
    (void)state;
    start_with(SUPPORT_POLICY, only_main_or_device_1);
    program_retains(0);
    program_retains(1);
    assert_reason(0, SIDE, NO_PARTITION);
    assert_reason(0, MAIN, NONE);
    assert_reason(1, SIDE, NONE);
    assert_int_equal(place_partition_find(0, MAIN)->sms, FAKE_SMS);
}

/* ---- Failures ----------------------------------------------------------------------------------
 */

static void failing_call_costs_its_partition_alone(void **state)
{
    program_retains(0);
    int calls = fake.calls;
    assert_true(calls > 12);
    for (int number = 1; number <= calls; number++) {
        fresh(state);
        fail_call(number, CUDA_ERROR_INVALID_DEVICE);
        program_retains(0);
        if (!fake.failed)
            continue; /* one that cannot fail */
        bool question = strstr(fake.failed, "State") != NULL;
        unsigned made = fake.live[FAKE_GREEN];
        assert_int_equal(made, (partition_reason(0, SIDE) == REPORT_REASON_NONE) +
                                   (partition_reason(0, MAIN) == REPORT_REASON_NONE));
        if (strncmp(fake.failed, "cuGreenCtx", 10) == 0 || strstr(fake.failed, "FromGreen") ||
            strstr(fake.failed, "Desc"))
            assert_int_equal(made, 1);
        else
            assert_int_equal(made, 0);
        assert_int_equal(fake.live[FAKE_STREAM], made);
        /* What failed is settled; only an unanswered question is asked again. */
        forget_calls();
        place_device_active(0, true);
        assert_int_equal(fake.calls != 0, question);
        program_releases(0);
        assert_int_equal(fake.live[FAKE_GREEN], 0);
        assert_int_equal(fake.live[FAKE_STREAM], 0);
        assert_int_equal(fake.retains[0], 0);
        assert_int_equal(fake.misuses, 0);
    }
}

static void refusal_has_its_reason(void **state)
{
    const struct {
        CUresult result;
        enum report_reason reason;
    } cases[] = {{CUDA_ERROR_OUT_OF_MEMORY, REPORT_REASON_OUT_OF_MEMORY},
                 {CUDA_ERROR_NOT_SUPPORTED, REPORT_REASON_REFUSED_BY_DRIVER}};
    program_retains(0);
    int at = 1;
    while (strcmp(fake.call[at - 1].name, "cuGreenCtxCreate") != 0)
        at++;
    for (int i = 0; i < 2; i++) {
        fresh(state);
        fail_call(at, cases[i].result);
        program_retains(0);
        assert_int_equal(partition_reason(0, SIDE), cases[i].reason);
        assert_reason(0, MAIN, NONE);
        assert_reason(0, PLACE_WHOLE_DEVICE, NONE);
    }
}

static void old_driver_has_no_partitions(void **state)
{
    (void)state;
    cuda_driver.cuGreenCtxStreamCreate = NULL; /* 12.4 */
    program_retains(0);
    assert_reason(0, SIDE, DRIVER_TOO_OLD);
    assert_reason(0, PLACE_WHOLE_DEVICE, NONE);
    assert_int_equal(place_partition_stream(place_partition_find(0, SIDE), 0, &(CUstream){NULL}),
                     CUDA_ERROR_CONTEXT_IS_DESTROYED);
    program_releases(0);
    assert_int_equal(fake.misuses, 0);
}

static void capture_elsewhere_is_no_obstacle(void **state)
{
    (void)state;
    fake.captures_globally = true;
    fake_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    program_retains(0);
    assert_reason(0, SIDE, NONE);
    assert_int_equal(fake_mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static void what_a_capture_refuses_is_tried_again(void **state)
{
    (void)state;
    cuda_driver.cuThreadExchangeStreamCaptureMode = NULL;
    program_retains(0);
    int at = fake.calls; /* the last: the second partition's */
    fresh(state);
    fail_call(at, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    program_retains(0);
    assert_int_equal(fake.made[FAKE_GREEN], 2);
    assert_int_equal(fake.live[FAKE_GREEN], 0);
    assert_int_equal(fake.live[FAKE_STREAM], 0);
    assert_reason(0, SIDE, NO_PARTITION);
    place_device_active(0, true);
    assert_reason(0, SIDE, NONE);
    assert_reason(0, MAIN, NONE);
    assert_int_equal(fake.live[FAKE_GREEN], 2);
}

/* ---- Ends --------------------------------------------------------------------------------------
 */

static void last_release_ends_the_partitions(void **state)
{
    (void)state;
    program_retains(0);
    program_retains(0);
    program_releases(0);
    assert_reason(0, SIDE, NONE);
    uint32_t generation = atomic_load(&place_partition_find(0, SIDE)->generation);
    forget_calls();
    program_releases(0);
    assert_string_equal(names_of_calls(),
                        "cuStreamDestroy cuGreenCtxDestroy cuStreamDestroy cuGreenCtxDestroy ");
    assert_int_equal(fake.retains[0], 0);
    assert_int_equal(fake.live[FAKE_GREEN], 0);
    assert_reason(0, SIDE, NO_PARTITION);
    assert_reason(0, PLACE_WHOLE_DEVICE, NO_PARTITION);
    assert_null(place_primary_context(0));
    assert_true(atomic_load(&place_partition_find(0, SIDE)->generation) > generation);
    assert_int_equal(fake.misuses, 0);
}

static void release_that_nobody_retained_ends_nothing(void **state)
{
    (void)state;
    fake.retains[0] = 2; /* by a way that is not seen */
    place_device_active(0, true);
    program_releases(0);
    assert_reason(0, SIDE, NONE);
    /* Nor does it count against what is seen later. */
    program_retains(0);
    program_releases(0);
    assert_reason(0, SIDE, NO_PARTITION);
    assert_int_equal(fake.retains[0], 1);
}

static void reset_ends_the_partitions_and_they_come_back(void **state)
{
    (void)state;
    uint32_t last = 0;
    const struct place_partition *side = NULL;
    for (int round = 0; round < 5; round++) {
        if (round == 0)
            program_retains(0);
        else
            place_device_active(0, true);
        assert_true(!side || side == place_partition_find(0, SIDE));
        side = place_partition_find(0, SIDE);
        assert_reason(0, SIDE, NONE);
        assert_true(atomic_load(&side->generation) > last);
        last = atomic_load(&side->generation);
        place_device_resetting(0);
        assert_int_equal(fake.live[FAKE_GREEN], 0);
        assert_reason(0, SIDE, NO_PARTITION);
        assert_true(atomic_load(&side->generation) > last);
        last = atomic_load(&side->generation);
    }
    /* The program still holds the context: a reset does not release it. */
    place_device_active(0, true);
    program_releases(0);
    assert_int_equal(fake.live[FAKE_GREEN], 0);
    assert_int_equal(fake.retains[0], 0);
    assert_int_equal(fake.misuses, 0);
}

static void devices_end_one_by_one(void **state)
{
    (void)state;
    for (int device = 0; device < FAKE_DEVICES; device++)
        program_retains(device);
    place_device_resetting(1);
    program_releases(3);
    assert_reason(0, SIDE, NONE);
    assert_reason(1, SIDE, NO_PARTITION);
    assert_reason(2, SIDE, NONE);
    assert_reason(3, SIDE, NO_PARTITION);
}

static void context_destroyed_by_name_takes_its_partition(void **state)
{
    (void)state;
    program_retains(0);
    const struct place_partition *side = place_partition_find(0, SIDE);
    CUcontext context = side->context;
    place_context_gone(NULL);
    place_context_gone((CUcontext)&fake.objects[9]);
    place_context_gone(place_primary_context(0));
    assert_reason(0, SIDE, NONE);
    uint32_t generation = atomic_load(&side->generation);
    place_context_gone(context);
    assert_reason(0, SIDE, NO_PARTITION);
    assert_reason(0, MAIN, NONE);
    assert_true(atomic_load(&side->generation) > generation);
    assert_null(place_partition_of_context(context));
    place_context_gone(context);
    place_device_resetting(0);
    assert_int_equal(fake.live[FAKE_GREEN], 1); /* not ours any more */
    assert_int_equal(fake.live[FAKE_STREAM], 0);
    assert_int_equal(fake.misuses, 0);
    place_device_active(0, true);
    assert_reason(0, SIDE, NONE);
}

/* ---- Streams -----------------------------------------------------------------------------------
 */

static void streams_are_made_on_partitions(void **state)
{
    (void)state;
    CUstream stream;
    program_retains(0);
    for (unsigned index = SIDE; index <= MAIN; index++) {
        const struct place_partition *partition = place_partition_find(0, index);
        assert_int_equal(place_partition_stream(partition, -2, &stream), CUDA_SUCCESS);
        assert_ptr_equal(((struct fake_object *)stream)->green, partition->green);
        assert_int_equal(((struct fake_object *)stream)->priority, -2);
    }
    assert_int_equal(
        place_partition_stream(place_partition_find(0, PLACE_WHOLE_DEVICE), -1, &stream),
        CUDA_SUCCESS);
    assert_null(((struct fake_object *)stream)->green);
    assert_int_not_equal(place_partition_stream(place_partition_find(0, 7), 0, &stream),
                         CUDA_SUCCESS);
    assert_int_not_equal(place_partition_stream(place_partition_find(-1, 0), 0, &stream),
                         CUDA_SUCCESS);
    fail_call(1, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(place_partition_stream(place_partition_find(0, SIDE), 0, &stream),
                     CUDA_ERROR_INVALID_VALUE);
}

/* ---- The report --------------------------------------------------------------------------------
 */

static const char *fact(const char *section, const char *key)
{
    const struct report_fact_row *rows = report_image_region(REPORT_REGION_FACTS);
    for (uint32_t i = 0; i < report_counts.facts; i++)
        if (strcmp(report_image_text(rows[i].section), section) == 0 &&
            strcmp(report_image_text(rows[i].key), key) == 0)
            return report_image_text(rows[i].value);
    return "(none)";
}

static void report_says_what_became_of_partitions(void **state)
{
    (void)state;
    start_with("[policy]\nversion = 1\n"
               "[partition some]\nsm_count = 20\n"
               "[partition part]\nsm_count = 25%\n"
               "[partition near]\nlocality_domain = 1\n"
               "[kernel a]\nname = a\npartition = some\n"
               "[kernel b]\nname = b\npartition = part\n"
               "[kernel c]\nname = c\npartition = near\n",
               NULL);
    program_retains(1);
    assert_string_equal(fact("partition.some.1", "requested"), "20");
    assert_string_equal(fact("partition.some.1", "granted"), "24");
    assert_string_equal(fact("partition.some.1", "reason"), "");
    assert_string_equal(fact("partition.part.1", "requested"), "25% (33)");
    assert_string_equal(fact("partition.near.1", "requested"), "locality domain 1");
    assert_string_equal(fact("partition.near.1", "granted"), "0");
    assert_string_not_equal(fact("partition.near.1", "reason"), "");
}

static void report_is_silent_where_nothing_was_selected(void **state)
{
    (void)state;
    start_with("[policy]\nversion = 1\n[partition only]\nsm_count = rest\n"
               "[partition other]\nsm_count = 8\n"
               "[kernel k]\nname = k*\npartition = only\n[kernel l]\nname = l\npartition = other\n",
               only_main_or_device_1);
    program_retains(0);
    assert_string_equal(fact("partition.only.0", "granted"), "(none)");
    assert_string_equal(fact("partition.other.0", "granted"), "8");
}

/* What is written to stderr meanwhile goes into a file; the number of its lines. */
static int lines_of_log(void (*body)(void))
{
    FILE *file = tmpfile();
    int saved = dup(2), lines = 0, character;
    assert_non_null(file);
    dup2(fileno(file), 2);
    body();
    dup2(saved, 2);
    close(saved);
    rewind(file);
    while ((character = fgetc(file)) != EOF)
        lines += character == '\n';
    fclose(file);
    return lines;
}

static void fail_again_and_again(void)
{
    cuda_driver.cuGreenCtxCreate = NULL;
    for (int i = 0; i < 3; i++) {
        program_retains(0);
        program_retains(1);
        place_device_resetting(0);
        place_device_resetting(1);
    }
}

static void log_names_each_failure_once(void **state)
{
    (void)state;
    assert_int_equal(lines_of_log(fail_again_and_again), 2 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(partitions_wait_for_the_primary_context),
        TEST(partitions_say_what_they_are),
        TEST(hold_on_the_primary_context_is_as_before),
        TEST(later_sights_ask_nothing),
        TEST(observing_makes_nothing_and_tells_what_would_be),
        TEST(policy_without_partitions_asks_nothing),
        TEST(devices_out_of_range_have_no_partitions),
        TEST(partitions_are_where_they_are_selected),
        TEST(failing_call_costs_its_partition_alone),
        TEST(refusal_has_its_reason),
        TEST(old_driver_has_no_partitions),
        TEST(capture_elsewhere_is_no_obstacle),
        TEST(what_a_capture_refuses_is_tried_again),
        TEST(last_release_ends_the_partitions),
        TEST(release_that_nobody_retained_ends_nothing),
        TEST(reset_ends_the_partitions_and_they_come_back),
        TEST(devices_end_one_by_one),
        TEST(context_destroyed_by_name_takes_its_partition),
        TEST(streams_are_made_on_partitions),
        TEST(report_says_what_became_of_partitions),
        TEST(report_is_silent_where_nothing_was_selected),
        TEST(log_names_each_failure_once),
    };
    return cmocka_run_group_tests(tests, start_group, end_group);
}
