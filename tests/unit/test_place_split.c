/* SPDX-License-Identifier: Apache-2.0 */

/* Dividing a device's SMs: by count (before CUDA 13.1) and what both ways share. */

#include "test_place_split_support.h"

#define TEST(name) cmocka_unit_test_teardown(name, forget_split)

/* ---- Numbers of SMs -------------------------------------------------------------------------- */

static void a_count_is_rounded_up_to_whole_groups(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(12));
    assert_int_equal(split->sms, 132);
    assert_int_equal(split->grants[0].requested, 12);
    assert_granted(split, 0, 16);
    assert_int_equal(split->grants[0].resource_count, 2);
    assert_int_equal(split->grants[0].coscheduled, 8);
    assert_false(split->grouped);
}

static void a_count_of_whole_groups_is_exact(void **state)
{
    (void)state;
    fake_h200(13000);
    assert_granted(SPLIT(sm_count(16)), 0, 16);
    assert_granted(SPLIT(sm_count(1)), 0, 8);
    assert_granted(SPLIT(sm_count(120)), 0, 120);
}

static void rest_gets_the_other_groups_and_the_remainder(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(rest(), sm_count(24));
    assert_granted(split, 0, 108);
    assert_int_equal(split->grants[0].resource_count, 13);
    assert_int_equal(split->grants[0].requested, 0);
    assert_int_equal(split->grants[0].coscheduled, 8);
    assert_granted(split, 1, 24);
    assert_int_equal(split->grants[1].resource_count, 3);
}

static void rest_alone_is_the_whole_device(void **state)
{
    (void)state;
    fake_h200(13000);
    assert_granted(SPLIT(rest()), 0, 132);
}

static void rest_of_the_remainder_alone_promises_no_cluster(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(120), rest());
    assert_granted(split, 0, 120);
    assert_granted(split, 1, 12);
    assert_int_equal(split->grants[1].coscheduled, 0);
}

static void only_the_first_rest_gets_what_is_left(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(32), rest(), rest());
    assert_granted(split, 1, 100);
    assert_refused(split, 2, REPORT_REASON_NOT_ENOUGH_SMS);
}

static void two_halves_fit(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(percent(50), percent(50));
    assert_int_equal(split->grants[0].requested, 66);
    assert_int_equal(split->grants[1].requested, 66);
    assert_granted(split, 0, 64);
    assert_granted(split, 1, 68);
    assert_int_equal(SPLIT(percent(5))->grants[0].requested, 7); /* 6.6 */
}

static void shares_of_a_whole_fit(void **state)
{
    (void)state;
    static const uint32_t shares[][4] = {{75, 25}, {25, 75}, {33, 33, 34},    {10, 20, 30, 40},
                                         {95, 5},  {100},    {25, 25, 25, 25}};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        struct policy_partition list[4];
        size_t count = 0;

        fake_h200(13000);
        while (count < 4 && shares[i][count] != 0) {
            list[count] = percent(shares[i][count]);
            count++;
        }
        const struct place_split *split = split_of(list, count);
        for (size_t p = 0; p < count; p++)
            assert_int_equal(split->grants[p].reason, REPORT_REASON_NONE);
    }
}

static void a_share_of_less_than_a_group_is_a_group(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(percent(1));
    assert_int_equal(split->grants[0].requested, 1);
    assert_granted(split, 0, 8);
}

static void the_remainder_goes_where_more_fit_with_it(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(12), sm_count(120));
    assert_granted(split, 0, 12);
    assert_int_equal(split->grants[0].coscheduled, 0);
    assert_granted(split, 1, 120);
    split = SPLIT(sm_count(132));
    assert_granted(split, 0, 132);
}

static void the_remainder_stays_unused_when_all_fit(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(60), sm_count(50));
    assert_granted(split, 0, 64);
    assert_granted(split, 1, 56);
}

static void partitions_that_do_not_fit_are_refused_alone(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(100), sm_count(100), sm_count(16));
    assert_granted(split, 0, 104);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_int_equal(split->grants[1].requested, 100);
    assert_granted(split, 2, 16);
}

static void more_than_the_device_has_is_refused(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(133), sm_count(UINT32_MAX), sm_count(8));
    assert_refused(split, 0, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_granted(split, 2, 8);
}

static void a_smaller_co_scheduled_count_divides_the_device_finely(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = SPLIT(sm_count(12), together(sm_count(10), 2));
    assert_int_equal(fake.flags, CUDA_SM_SPLIT_IGNORE_COSCHEDULING);
    assert_granted(split, 0, 12);
    assert_granted(split, 1, 10);
    /* One flag for all of them: the other partition has lost its clusters, and is told so. */
    assert_int_equal(split->grants[0].coscheduled, 2);
    SPLIT(sm_count(12), together(sm_count(16), 8), together(sm_count(16), 16));
    assert_int_equal(fake.flags, 0);
}

static void one_split_serves_all(void **state)
{
    (void)state;
    fake_h200(13000);
    SPLIT(sm_count(8), sm_count(8), percent(20), rest());
    /* Once to count the groups, once to have them. */
    assert_int_equal(fake.counted, 2);
}

static void a_policy_without_partitions_asks_for_no_split(void **state)
{
    (void)state;
    fake_h200(13000);
    const struct place_split *split = split_of(NULL, 0);
    assert_int_equal(fake.counted, 0);
    assert_int_equal(split->sms, 132);
    assert_int_equal(split->minimum, 8);
    assert_int_equal(split->alignment, 8);
    assert_int_equal(split->domains, 1);
    assert_int_equal(split->domain_sms[0], 132);
    assert_int_equal(split->outside_domains, 0);
}

/* ---- Devices --------------------------------------------------------------------------------- */

static bool only_counts(const struct policy_partition *partition, void *context)
{
    assert_ptr_equal(context, &fake);
    return partition->kind == POLICY_PARTITION_SM_COUNT;
}

static void partitions_of_other_devices_take_nothing(void **state)
{
    (void)state;
    fake_h200(13000);
    selected = only_counts;
    const struct place_split *split = SPLIT(percent(100), sm_count(120), rest());
    assert_refused(split, 0, REPORT_REASON_NO_PARTITION);
    assert_granted(split, 1, 120);
    assert_refused(split, 2, REPORT_REASON_NO_PARTITION);
    split = SPLIT(percent(100), rest());
    assert_int_equal(fake.counted, 2);
    assert_refused(split, 0, REPORT_REASON_NO_PARTITION);
}

static void the_resource_says_how_many_sms_there_are(void **state)
{
    (void)state;
    fake_driver(13000, 9);
    fake_add_cluster(16, FAKE_NO_DOMAIN); /* as in a part of a divided GPU */
    fake_add_cluster(10, FAKE_NO_DOMAIN);
    const struct place_split *split = SPLIT(percent(50), rest());
    assert_int_equal(split->sms, 26);
    assert_int_equal(split->grants[0].requested, 13);
    assert_granted(split, 0, 8);
    assert_granted(split, 1, 18);
}

static void a_device_smaller_than_a_group_has_no_partition(void **state)
{
    (void)state;
    fake_driver(13000, 9);
    fake_add_cluster(6, FAKE_NO_DOMAIN);
    assert_refused(SPLIT(sm_count(2)), 0, REPORT_REASON_NOT_ENOUGH_SMS);
}

static void limits_come_from_the_resource_or_the_architecture(void **state)
{
    static const struct {
        int version, major;
        unsigned minimum, alignment;
    } cases[] = {{12040, 5, 0, 0}, {12040, 6, 1, 1},  {12040, 7, 2, 2}, {12040, 8, 4, 2},
                 {12040, 9, 8, 8}, {12080, 10, 8, 8}, {13000, 8, 6, 6}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_driver(cases[i].version, cases[i].major);
        fake_add_cluster(72, FAKE_NO_DOMAIN);
        fake.minimum = fake.alignment = 6;
        const struct place_split *split = split_of(NULL, 0);
        assert_int_equal(split->minimum, cases[i].minimum);
        assert_int_equal(split->alignment, cases[i].alignment);
    }
}

static void sixty_four_partitions_are_a_group_each_while_there_are_any(void **state)
{
    struct policy_partition list[POLICY_PARTITION_LIMIT];
    (void)state;
    for (int version = 13000; version <= 13010; version += 10) {
        fake_h200(version);
        for (size_t i = 0; i < POLICY_PARTITION_LIMIT; i++)
            list[i] = sm_count(8);
        const struct place_split *split = split_of(list, POLICY_PARTITION_LIMIT);
        unsigned made = 0;
        for (size_t i = 0; i < POLICY_PARTITION_LIMIT; i++) {
            made += split->grants[i].reason == REPORT_REASON_NONE;
            if (split->grants[i].reason != REPORT_REASON_NONE)
                assert_refused(split, i, REPORT_REASON_NOT_ENOUGH_SMS);
        }
        assert_int_equal(made, 16); /* 15 groups, and the remainder of 12 */
    }
}

/* ---- Old drivers, and failures --------------------------------------------------------------- */

static void without_a_function_the_driver_is_too_old(void **state)
{
    (void)state;
    for (int missing = 0; missing < 6; missing++) {
        fake_h200(12040);
        if (missing == 0)
            cuda_driver.cuDeviceGetDevResource = NULL;
        else if (missing == 1)
            cuda_driver.cuDevSmResourceSplitByCount = NULL;
        else if (missing == 2)
            cuda_driver.cuDevResourceGenerateDesc = NULL;
        else if (missing == 3)
            cuda_driver.cuGreenCtxCreate = NULL;
        else if (missing == 4)
            cuda_driver.cuCtxFromGreenCtx = NULL;
        else
            cuda_driver.cuGreenCtxStreamCreate = NULL;
        const struct place_split *split = SPLIT(sm_count(8), percent(50));
        assert_refused(split, 0, REPORT_REASON_DRIVER_TOO_OLD);
        assert_refused(split, 1, REPORT_REASON_DRIVER_TOO_OLD);
        assert_int_equal(split->grants[1].requested, 66);
        assert_int_equal(split->sms, 132);
        assert_int_equal(split->domains, 1);
        assert_null(split->failed);
    }
}

static void a_driver_without_any_function_is_no_crash(void **state)
{
    (void)state;
    fake_h200(12040);
    memset(&cuda_driver, 0, sizeof cuda_driver);
    const struct place_split *split = SPLIT(sm_count(8), domain(0), rest());
    for (size_t i = 0; i < 3; i++)
        assert_refused(split, i, REPORT_REASON_DRIVER_TOO_OLD);
    assert_int_equal(split->sms, 0);
    assert_null(split->failed);
    assert_false(place_split_possible());
}

static void a_driver_with_the_newer_split_alone_will_do(void **state)
{
    (void)state;
    fake_h200(13010);
    cuda_driver.cuDevSmResourceSplitByCount = NULL;
    assert_granted(SPLIT(sm_count(16)), 0, 16);
    /* Parts that stand for domains cannot be made with it. */
    fake_domains = 2;
    assert_refused(SPLIT(domain(0)), 0, REPORT_REASON_NO_LOCALITY_DOMAINS);
}

static void each_call_that_fails_refuses_with_its_result(void **state)
{
    static const struct {
        const char *name;
        unsigned call;
    } calls[] = {{"cuDeviceGetDevResource", 0},
                 {"cuDevSmResourceSplitByCount", 1},
                 {"cuDevSmResourceSplitByCount", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        fake_h200(13000);
        fake_fail(calls[i].name, calls[i].call, 999);
        const struct place_split *split = SPLIT(sm_count(8), rest());
        assert_refused(split, 0, REPORT_REASON_QUERY_FAILED);
        assert_refused(split, 1, REPORT_REASON_QUERY_FAILED);
        assert_int_equal(split->grants[1].result, 999);
        assert_string_equal(split->failed, calls[i].name);
        assert_int_equal(split->result, 999);
        fake_h200(13000);
        fake_fail(calls[i].name, calls[i].call, CUDA_RESULT_INVALID_RESOURCE_CONFIGURATION);
        split = SPLIT(sm_count(8), rest());
        assert_refused(split, 0, REPORT_REASON_REFUSED_BY_DRIVER);
        assert_int_equal(split->grants[0].result, 915);
    }
}

static void a_version_or_capability_that_is_not_told_costs_the_limits_only(void **state)
{
    (void)state;
    fake_h200(13000);
    fake_fail("cuDriverGetVersion", 0, 3);
    const struct place_split *split = SPLIT(sm_count(8));
    assert_granted(split, 0, 8);
    assert_int_equal(split->minimum, 8); /* by the architecture */
    assert_string_equal(split->failed, "cuDriverGetVersion");
    fake_h200(12040);
    fake_fail("cuDeviceGetAttribute", 0, 3);
    split = SPLIT(sm_count(8));
    assert_granted(split, 0, 8);
    assert_int_equal(split->minimum, 0);
    assert_string_equal(split->failed, "cuDeviceGetAttribute");
    assert_int_equal(split->result, 3);
}

/* ---- Pretended domains ----------------------------------------------------------------------- */

static void without_domains_a_domain_is_refused(void **state)
{
    (void)state;
    for (int version = 13000; version <= 13040; version += 10) {
        fake_h200(version);
        const struct place_split *split = SPLIT(domain(0), domain(1), sm_count(8));
        assert_refused(split, 0, REPORT_REASON_NO_LOCALITY_DOMAINS);
        assert_refused(split, 1, REPORT_REASON_NO_LOCALITY_DOMAINS);
        assert_granted(split, 2, 8);
        assert_false(split->fake);
    }
}

static void pretended_domains_are_about_equal_and_cover_the_device(void **state)
{
    (void)state;
    for (int version = 12050; version <= 13040; version += 10) {
        fake_h200(version);
        fake_domains = 2;
        const struct place_split *split = SPLIT(domain(0), domain(1));
        assert_true(split->fake);
        assert_int_equal(split->domains, 2);
        assert_int_equal(split->domain_sms[0], 64);
        assert_int_equal(split->domain_sms[1], 68);
        assert_int_equal(split->outside_domains, 0);
        assert_granted(split, 0, 64);
        assert_granted(split, 1, 68);
    }
    fake_h200(13000);
    fake_domains = 4;
    const struct place_split *split = SPLIT(domain(3), domain(1), domain(0), domain(2));
    assert_granted(split, 0, 36);
    assert_granted(split, 1, 32);
    assert_granted(split, 2, 32);
    assert_granted(split, 3, 32);
}

static void pretended_domains_are_told_without_any_partition(void **state)
{
    (void)state;
    fake_h200(13000);
    fake_domains = 2;
    const struct place_split *split = split_of(NULL, 0);
    assert_int_equal(split->domains, 2);
    assert_int_equal(split->domain_sms[1], 68);
}

static void there_are_no_more_pretended_domains_than_groups(void **state)
{
    (void)state;
    fake_h200(13000);
    fake_domains = 32;
    const struct place_split *split = SPLIT(domain(14), domain(15), domain(32));
    assert_int_equal(split->domains, 15);
    assert_granted(split, 0, 20); /* a group and the remainder */
    assert_refused(split, 1, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
    assert_refused(split, 2, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
    for (unsigned i = 0; i < 15; i++)
        assert_true(split->domain_sms[i] >= 8);
    fake_driver(13000, 9);
    fake_add_cluster(8, FAKE_NO_DOMAIN);
    split = SPLIT(domain(0), domain(1));
    assert_int_equal(split->domains, 1);
    assert_refused(split, 1, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
}

static void pretended_domains_and_counts_are_met_in_order(void **state)
{
    (void)state;
    fake_h200(13000);
    fake_domains = 2;
    const struct place_split *split = SPLIT(sm_count(16), domain(0), domain(0), rest(), domain(1));
    assert_granted(split, 0, 16);
    assert_granted(split, 1, 48); /* what is left of the domain */
    assert_refused(split, 2, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_refused(split, 3, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_granted(split, 4, 68);
}

static void a_number_of_pretended_domains_is_read(void **state)
{
    (void)state;
    assert_int_equal(place_fake_domains_parse(NULL), 0);
    assert_int_equal(place_fake_domains_parse(""), 0);
    assert_int_equal(place_fake_domains_parse("0"), 0);
    assert_int_equal(place_fake_domains_parse("2"), 2);
    assert_int_equal(place_fake_domains_parse("32"), 32);
    static const char *const wrong[] = {"1",  "33",  "-1",  " 2",  "2 ",
                                        "+2", "two", "0x2", "2.0", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(place_fake_domains_parse(wrong[i]), -1);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int allocations_left = -1; /* -1: as many as wanted */

void *__real_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);

static bool out_of_memory(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return out_of_memory() ? NULL : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
    return out_of_memory() ? NULL : __real_malloc(size);
}

static void without_memory_there_is_no_split(void **state)
{
    struct policy_partition list[] = {sm_count(8), rest()};
    struct policy policy = {.partition_count = 2, .partitions = list};
    (void)state;
    list[1].index = 1;
    for (int version = 13000; version <= 13010; version += 10) {
        for (int allocation = 0; allocation < 4; allocation++) {
            fake_h200(version);
            allocations_left = allocation;
            struct place_split *split = place_split_make(&policy, FAKE_DEVICE, 0, NULL, NULL);
            allocations_left = -1;
            assert_null(split);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_count_is_rounded_up_to_whole_groups),
        TEST(a_count_of_whole_groups_is_exact),
        TEST(rest_gets_the_other_groups_and_the_remainder),
        TEST(rest_alone_is_the_whole_device),
        TEST(rest_of_the_remainder_alone_promises_no_cluster),
        TEST(only_the_first_rest_gets_what_is_left),
        TEST(two_halves_fit),
        TEST(shares_of_a_whole_fit),
        TEST(a_share_of_less_than_a_group_is_a_group),
        TEST(the_remainder_goes_where_more_fit_with_it),
        TEST(the_remainder_stays_unused_when_all_fit),
        TEST(partitions_that_do_not_fit_are_refused_alone),
        TEST(more_than_the_device_has_is_refused),
        TEST(a_smaller_co_scheduled_count_divides_the_device_finely),
        TEST(one_split_serves_all),
        TEST(a_policy_without_partitions_asks_for_no_split),
        TEST(partitions_of_other_devices_take_nothing),
        TEST(the_resource_says_how_many_sms_there_are),
        TEST(a_device_smaller_than_a_group_has_no_partition),
        TEST(limits_come_from_the_resource_or_the_architecture),
        TEST(sixty_four_partitions_are_a_group_each_while_there_are_any),
        TEST(without_a_function_the_driver_is_too_old),
        TEST(a_driver_without_any_function_is_no_crash),
        TEST(a_driver_with_the_newer_split_alone_will_do),
        TEST(each_call_that_fails_refuses_with_its_result),
        TEST(a_version_or_capability_that_is_not_told_costs_the_limits_only),
        TEST(without_domains_a_domain_is_refused),
        TEST(pretended_domains_are_about_equal_and_cover_the_device),
        TEST(pretended_domains_are_told_without_any_partition),
        TEST(there_are_no_more_pretended_domains_than_groups),
        TEST(pretended_domains_and_counts_are_met_in_order),
        TEST(a_number_of_pretended_domains_is_read),
        TEST(without_memory_there_is_no_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
