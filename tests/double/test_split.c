/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting the SMs of a device: by count, and into groups of their own sizes. */
#include "test_green_support.h"

static int setup(void **state)
{
    (void)state;
    fresh_driver();
    recording_driver_configure("VERSION", "13010");
    return 0;
}

static void groups_are_taken_in_order_and_share_no_sm(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), parts[3], rest;
    struct cuda_sm_group groups[3] = {{.sm_count = 16, .coscheduled_sm_count = 8},
                                      {.sm_count = 40, .coscheduled_sm_count = 8},
                                      {.sm_count = 2, .coscheduled_sm_count = 2}};
    EXPECT(split(parts, 3, &all, &rest, groups));
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(&parts[i])->of.sm.sm_count, groups[i].sm_count);
    assert_int_equal(look(&parts[0])->of.sm.coscheduled_alignment, 8);
    assert_int_equal(look(&rest)->of.sm.sm_count, 132 - 58);
    const struct recording_call *calls[] = {placed(&parts[0], 1), placed(&parts[1], 1),
                                            placed(&parts[2], 1), placed(&rest, 1)};
    assert_sms(calls[0], 0, 15 + 0);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_true(disjoint(calls[i], calls[j]));
}

static void two_splits_of_the_same_device_overlap(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), one, two, counted;
    struct cuda_sm_group group = {.sm_count = 16, .coscheduled_sm_count = 8};
    unsigned int count = 1;
    EXPECT(split(&one, 1, &all, NULL, &group));
    EXPECT(split(&two, 1, &all, NULL, &group));
    EXPECT(cuDevSmResourceSplitByCount(&counted, &count, &all, NULL, 0, 16));
    const struct recording_call *first = placed(&one, 1);
    assert_false(disjoint(first, placed(&two, 1)));
    assert_false(disjoint(first, placed(&counted, 1)));
}

static void a_count_of_zero_discovers_what_is_left(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), parts[2], rest;
    struct cuda_sm_group groups[2] = {{.sm_count = 24, .coscheduled_sm_count = 8},
                                      {.sm_count = 0, .coscheduled_sm_count = 8}};
    EXPECT(split(NULL, 2, &all, NULL, groups));
    assert_int_equal(groups[1].sm_count, 96);
    groups[1].sm_count = 0;
    EXPECT(split(parts, 2, &all, &rest, groups));
    assert_int_equal(look(&parts[1])->of.sm.sm_count, 96);
    assert_int_equal(look(&rest)->of.sm.sm_count, 12);
    /* Nothing is left for a third group: that may be discovered, but not be a result. */
    struct cuda_sm_group three[3] = {groups[0], groups[1], {.coscheduled_sm_count = 16}};
    EXPECT(split(NULL, 3, &all, NULL, three));
    assert_int_equal(three[2].sm_count, 0);
    CUdevResource more[3];
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, split(more, 3, &all, NULL, three));
}

static void nothing_remains_of_a_whole_split(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), part, rest;
    struct cuda_sm_group group = {.coscheduled_sm_count = 2};
    EXPECT(split(&part, 1, &all, &rest, &group));
    assert_int_equal(group.sm_count, 132);
    assert_int_equal(look(&rest)->type, 0);
}

static void counts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        unsigned int count, coscheduled, flags;
        CUresult result;
    } cases[] = {
        {16, 8, 0, CUDA_SUCCESS},
        {3, 0, 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION},
        {12, 8, 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION},
        {12, 0, 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION}, /* 0 means 8 here */
        {12, 4, 0, CUDA_SUCCESS},
        {12, 8, CUDA_SM_GROUP_BACKFILL, CUDA_SUCCESS},
        {4, 8, CUDA_SM_GROUP_BACKFILL, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION},
        {134, 2, 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION},
        {128, 8, 0, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION}, /* only 15 groups of 8 */
        {128, 8, CUDA_SM_GROUP_BACKFILL, CUDA_SUCCESS},
        {32, 3, 0, CUDA_ERROR_INVALID_VALUE},
        {64, 64, 0, CUDA_ERROR_INVALID_VALUE},
        {16, 8, 8, CUDA_ERROR_INVALID_VALUE},
    };
    CUdevResource all = device_resource(), part;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cuda_sm_group group = {.sm_count = cases[i].count,
                                      .coscheduled_sm_count = cases[i].coscheduled,
                                      .flags = cases[i].flags};
        EXPECT_ERROR(cases[i].result, split(&part, 1, &all, NULL, &group));
        if (cases[i].result == CUDA_SUCCESS)
            assert_int_equal(look(&part)->of.sm.sm_count, cases[i].count);
    }
}

static void since_13_4_zero_coscheduled_leaves_the_count_free(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), part;
    struct cuda_sm_group group = {.sm_count = 12};
    recording_driver_configure("VERSION", "13040");
    EXPECT(split(&part, 1, &all, NULL, &group));
    assert_int_equal(look(&part)->of.sm.sm_count, 12);
    assert_int_equal(group.coscheduled_sm_count, 0);
    /* Discovery takes whole groups, unless the default is to be no restriction. */
    struct cuda_sm_group all_of_it = {.sm_count = 0};
    EXPECT(split(NULL, 1, &all, NULL, &all_of_it));
    assert_int_equal(all_of_it.sm_count, 120);
    recording_driver_configure("COSCHEDULED_DEFAULT", "2");
    all_of_it.sm_count = 0;
    EXPECT(split(NULL, 1, &all, NULL, &all_of_it));
    assert_int_equal(all_of_it.sm_count, 132);
}

static void words_that_are_reserved_have_to_be_zero(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), part;
    struct cuda_sm_group group = {.sm_count = 16, .locality_domain = 1};
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, split(&part, 1, &all, NULL, &group));
    group.locality_domain = 0;
    group.reserved[10] = 1;
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, split(&part, 1, &all, NULL, &group));
    group.reserved[10] = 0;
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuDevSmResourceSplit(&part, 1, &all, NULL, 1, (void *)&group));
    EXPECT(split(&part, 1, &all, NULL, &group));
}

static void only_what_was_queried_or_remained_can_be_split(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), part, rest, again, counted[4], counted_rest, green;
    struct cuda_sm_group group = {.sm_count = 24, .coscheduled_sm_count = 8};
    unsigned int count = 4;
    EXPECT(split(&part, 1, &all, &rest, &group));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, split(&again, 1, &part, NULL, &group));
    EXPECT(split(&again, 1, &rest, NULL, &group));
    assert_true(disjoint(placed(&part, 1), placed(&again, 1)));
    EXPECT(cuDevSmResourceSplitByCount(counted, &count, &all, &counted_rest, 0, 8));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 split(&again, 1, &counted[0], NULL, &group));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 split(&again, 1, &counted_rest, NULL, &group));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevSmResourceSplitByCount(counted, &count, &part, NULL, 0, 8));
    /* What a green context has is queried again and can be split. */
    EXPECT(cuGreenCtxGetDevResource(green_of(&part, 1), &green, CU_DEV_RESOURCE_TYPE_SM));
    struct cuda_sm_group inner = {.sm_count = 8, .coscheduled_sm_count = 8};
    EXPECT(split(&again, 1, &green, NULL, &inner));
    assert_false(disjoint(placed(&part, 1), placed(&again, 1)));
    memset(&all, 0, sizeof(all));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, split(&again, 1, &all, NULL, &group));
}

static void a_descriptor_takes_parts_of_one_split(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), one[3], two[3], rest, mixed[2];
    CUdevResourceDesc description;
    unsigned int count = 3;
    EXPECT(cuDevSmResourceSplitByCount(one, &count, &all, &rest, 0, 8));
    EXPECT(cuDevSmResourceSplitByCount(two, &count, &all, NULL, 0, 8));
    mixed[0] = one[0];
    mixed[1] = two[1];
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevResourceGenerateDesc(&description, mixed, 2));
    mixed[1] = one[2];
    EXPECT(cuDevResourceGenerateDesc(&description, mixed, 2));
    assert_int_equal(last_call("cuDevResourceGenerateDesc")->sms, 16);
    /* Other alignments do not go together, nor do groups and what remained of them. */
    mixed[1] = rest;
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevResourceGenerateDesc(&description, mixed, 2));
    struct cuda_sm_group groups[2] = {{.sm_count = 8, .coscheduled_sm_count = 8},
                                      {.sm_count = 8, .coscheduled_sm_count = 4}};
    EXPECT(split(mixed, 2, &all, NULL, groups));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevResourceGenerateDesc(&description, mixed, 2));
}

static void a_driver_of_13_0_looks_at_the_device_alone(void **state)
{
    (void)state;
    CUdevResource all, one[3], two[3], rest, mixed[2];
    CUdevResourceDesc description;
    unsigned int count = 3;
    recording_driver_configure("VERSION", "13000");
    recording_driver_configure("DEVICES", "2");
    all = device_resource();
    EXPECT(cuDevSmResourceSplitByCount(one, &count, &all, &rest, 0, 8));
    EXPECT(cuDevSmResourceSplitByCount(two, &count, &all, NULL, 0, 8));
    mixed[0] = one[0];
    mixed[1] = two[1];
    EXPECT(cuDevResourceGenerateDesc(&description, mixed, 2));
    mixed[1] = rest;
    EXPECT(cuDevResourceGenerateDesc(&description, mixed, 2));
    assert_int_equal(last_call("cuDevResourceGenerateDesc")->sms, 132 - 16);
    EXPECT(cuDeviceGetDevResource(1, &mixed[1], CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevResourceGenerateDesc(&description, mixed, 2));
    CUgreenCtx green;
    EXPECT(cuDevResourceGenerateDesc(&description, one, 1));
    EXPECT_ERROR(CUDA_ERROR_INVALID_DEVICE,
                 cuGreenCtxCreate(&green, description, 1, CU_GREEN_CTX_DEFAULT_STREAM));
}

/* What was seen: flags, SMs asked for, groups, SMs of each, SMs that remain. */
static void splits_by_count_are_as_on_the_h200(void **state)
{
    (void)state;
    static const unsigned int seen[][5] = {
        {0, 0, 15, 8, 12},  {0, 9, 8, 16, 4},     {0, 64, 2, 64, 4},   {0, 66, 1, 72, 60},
        {2, 18, 5, 24, 12}, {0, 120, 1, 120, 12}, {0, 125, 1, 128, 4}, {0, 132, 1, 132, 0},
        {1, 1, 66, 2, 0},   {1, 3, 33, 4, 0},     {1, 5, 22, 6, 0},    {4, 8, 15, 8, 12},
    };
    CUdevResource all = device_resource(), parts[70], rest;
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        unsigned int groups = 70, asked = 0;
        EXPECT(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, seen[i][0], seen[i][1]));
        assert_int_equal(groups, seen[i][2]);
        assert_int_equal(look(&parts[groups - 1])->of.sm.sm_count, seen[i][3]);
        assert_int_equal(look(&rest)->of.sm.sm_count, seen[i][4]);
        EXPECT(cuDevSmResourceSplitByCount(NULL, &asked, &all, NULL, seen[i][0], seen[i][1]));
        assert_int_equal(asked, groups);
    }
    unsigned int groups = 70;
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 133));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 3, 1));
    groups = 0;
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 8));
    groups = 2;
    EXPECT(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 8));
    assert_int_equal(look(&rest)->of.sm.sm_count, 116);
}

static void a_driver_of_12_4_describes_one_resource_alone(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), parts[2];
    CUdevResourceDesc description;
    unsigned int count = 2;
    recording_driver_configure("VERSION", "12040");
    EXPECT(cuDevSmResourceSplitByCount(parts, &count, &all, NULL, 0, 8));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&description, parts, 2));
    EXPECT(cuDevResourceGenerateDesc(&description, parts, 1));
    recording_driver_configure("VERSION", "12050");
    EXPECT(cuDevResourceGenerateDesc(&description, parts, 2));
}

static void fields_are_written_by_drivers_that_know_them(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        unsigned int alignment, flags, domain;
    } cases[] = {{"12090", 0, 0, 0}, {"13000", 8, 0, 0}, {"13010", 8, 1, 0}, {"13040", 8, 3, 0}};
    for (int i = 0; i < 4; i++) {
        CUdevResource part, all;
        recording_driver_configure("VERSION", cases[i].version);
        all = part = device_resource();
        if (i >= 2) {
            struct cuda_sm_group group = {.sm_count = 8, .flags = cases[i].flags};
            EXPECT(split(&part, 1, &all, NULL, &group));
        }
        assert_int_equal(look(&part)->of.sm.coscheduled_alignment, cases[i].alignment);
        assert_int_equal(look(&part)->of.sm.flags, cases[i].flags);
        assert_int_equal(look(&part)->of.sm.locality_domain, cases[i].domain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(groups_are_taken_in_order_and_share_no_sm, setup),
        cmocka_unit_test_setup(two_splits_of_the_same_device_overlap, setup),
        cmocka_unit_test_setup(a_count_of_zero_discovers_what_is_left, setup),
        cmocka_unit_test_setup(nothing_remains_of_a_whole_split, setup),
        cmocka_unit_test_setup(counts_that_do_not_fit_are_refused, setup),
        cmocka_unit_test_setup(since_13_4_zero_coscheduled_leaves_the_count_free, setup),
        cmocka_unit_test_setup(words_that_are_reserved_have_to_be_zero, setup),
        cmocka_unit_test_setup(only_what_was_queried_or_remained_can_be_split, setup),
        cmocka_unit_test_setup(a_descriptor_takes_parts_of_one_split, setup),
        cmocka_unit_test_setup(a_driver_of_13_0_looks_at_the_device_alone, setup),
        cmocka_unit_test_setup(splits_by_count_are_as_on_the_h200, setup),
        cmocka_unit_test_setup(a_driver_of_12_4_describes_one_resource_alone, setup),
        cmocka_unit_test_setup(fields_are_written_by_drivers_that_know_them, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
