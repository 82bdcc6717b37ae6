/* SPDX-License-Identifier: Apache-2.0 */

/* Dividing a device's SMs into groups of their own kind, from CUDA 13.1 on, and by locality domain,
 * from CUDA 13.4 on. */

#include "test_place_split_support.h"

#define TEST(name) cmocka_unit_test_teardown(name, forget_split)

/* ---- Groups ---------------------------------------------------------------------------------- */

static void each_partition_is_one_group(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(sm_count(12), rest(), percent(25));
    assert_true(split->grouped);
    assert_int_equal(fake.grouped, 1);
    assert_int_equal(fake.counted, 0);
    assert_granted(split, 0, 16);
    assert_int_equal(split->grants[0].requested, 12);
    assert_int_equal(split->grants[0].coscheduled, 8);
    assert_granted(split, 1, 84);
    assert_int_equal(split->grants[1].coscheduled, 0); /* the remainder promises nothing */
    assert_int_equal(split->grants[2].requested, 33);
    assert_granted(split, 2, 32);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(split->grants[i].resource_count, 1);
}

static void rest_alone_is_the_whole_device(void **state)
{
    (void)state;
    fake_h200(13010);
    assert_granted(SPLIT(rest()), 0, 132);
    assert_int_equal(fake.grouped, 0);
}

static void rest_of_co_scheduled_sms_is_a_group(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(together(rest(), 8), sm_count(16));
    assert_granted(split, 0, 104); /* not the 12 that fit no group of 8 */
    assert_int_equal(split->grants[0].coscheduled, 8);
    assert_granted(split, 1, 16);
    split = SPLIT(backfilled(together(rest(), 8)), sm_count(16));
    assert_granted(split, 0, 116);
}

static void a_second_rest_is_refused(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(sm_count(32), rest(), rest(), together(rest(), 2));
    assert_granted(split, 1, 100);
    assert_refused(split, 2, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_refused(split, 3, REPORT_REASON_NOT_ENOUGH_SMS);
}

static void rest_of_nothing_is_refused(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(together(sm_count(132), 2), rest());
    assert_granted(split, 0, 132);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
}

static void a_group_has_its_own_granularity(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split =
        SPLIT(together(sm_count(9), 2), together(sm_count(17), 16), sm_count(9));
    assert_granted(split, 0, 10);
    assert_int_equal(split->grants[0].coscheduled, 2);
    assert_granted(split, 1, 32);
    assert_int_equal(split->grants[1].coscheduled, 16);
    assert_granted(split, 2, 16);
}

static void an_odd_co_scheduled_count_is_a_multiple_and_even(void **state)
{
    (void)state;
    fake_h200(13010);
    assert_granted(SPLIT(together(sm_count(7), 3)), 0, 12);
}

static void a_backfilled_group_is_as_large_as_asked(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split =
        SPLIT(backfilled(sm_count(11)), backfilled(percent(50)), backfilled(sm_count(2)));
    assert_granted(split, 0, 12);
    assert_granted(split, 1, 66);
    assert_granted(split, 2, 8); /* one co-scheduled group at least */
}

static void two_halves_fit(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(percent(50), percent(50));
    assert_granted(split, 0, 64);
    assert_granted(split, 1, 68);
}

static void the_remainder_goes_where_all_fit_with_it(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(sm_count(12), sm_count(120));
    assert_granted(split, 0, 12);
    assert_granted(split, 1, 120);
    split = SPLIT(sm_count(132));
    assert_granted(split, 0, 132);
}

/* ---- One that fails does not take the others with it ----------------------------------------- */

static void an_impossible_partition_is_found_and_refused_alone(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split =
        SPLIT(sm_count(16), together(sm_count(32), 32), sm_count(24), rest());
    assert_granted(split, 0, 16);
    assert_refused(split, 1, REPORT_REASON_REFUSED_BY_DRIVER);
    assert_int_equal(split->grants[1].result, 915);
    assert_granted(split, 2, 24);
    assert_granted(split, 3, 92);
    assert_null(split->failed);
}

static void several_impossible_partitions_are_each_found(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split =
        SPLIT(together(sm_count(20), 20), sm_count(8), together(sm_count(64), 64));
    assert_refused(split, 0, REPORT_REASON_REFUSED_BY_DRIVER);
    assert_granted(split, 1, 8);
    assert_refused(split, 2, REPORT_REASON_REFUSED_BY_DRIVER);
    assert_int_equal(split->grants[2].result, 1); /* what the driver said of this one */
}

static void what_does_not_fit_beside_the_others_is_refused_in_order(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(sm_count(80), sm_count(80), sm_count(16), rest());
    assert_granted(split, 0, 80);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_int_equal(split->grants[1].result, 915);
    assert_granted(split, 2, 16);
    assert_granted(split, 3, 36);
}

static void the_remainder_serves_one_that_does_not_fit(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(sm_count(112), sm_count(100), sm_count(10));
    assert_granted(split, 0, 112);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_granted(split, 2, 20); /* 16 in groups are not left, 20 SMs are */
    assert_int_equal(split->grants[2].result, 0);
}

static void the_remainder_is_no_co_scheduled_group(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(together(sm_count(120), 8), together(sm_count(8), 8));
    assert_granted(split, 0, 120);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
    split = SPLIT(sm_count(120), together(sm_count(8), 8));
    assert_granted(split, 0, 124); /* this one says nothing of groups */
    assert_granted(split, 1, 8);
}

static void a_driver_that_does_not_answer_is_not_asked_again(void **state)
{
    (void)state;
    fake_h200(13010);
    fake_fail("cuDevSmResourceSplit", 0, 3);
    const struct place_split *split = SPLIT(sm_count(8), sm_count(16), rest());
    for (size_t i = 0; i < 3; i++) {
        assert_refused(split, i, REPORT_REASON_QUERY_FAILED);
        assert_int_equal(split->grants[i].result, 3);
    }
    assert_int_equal(fake.grouped, 1);
    assert_string_equal(split->failed, "cuDevSmResourceSplit");
}

static void a_driver_that_refuses_everything_is_believed(void **state)
{
    (void)state;
    fake_h200(13010);
    fake_fail("cuDevSmResourceSplit", 0, 801);
    const struct place_split *split = SPLIT(sm_count(8), sm_count(16));
    for (size_t i = 0; i < 2; i++) {
        assert_refused(split, i, REPORT_REASON_REFUSED_BY_DRIVER);
        assert_int_equal(split->grants[i].result, 801);
    }
}

static void a_refused_partition_is_not_the_whole_device_instead(void **state)
{
    (void)state;
    fake_h200(13010);
    fake_fail("cuDevSmResourceSplit", 0, 915);
    assert_refused(SPLIT(sm_count(8)), 0, REPORT_REASON_REFUSED_BY_DRIVER);
    assert_refused(SPLIT(percent(50)), 0, REPORT_REASON_REFUSED_BY_DRIVER);
}

static void what_is_left_over_is_not_given_where_sms_are_not_scarce(void **state)
{
    (void)state;
    fake_h200(13010);
    fake.group_limit = 1;
    const struct place_split *split = SPLIT(sm_count(16), sm_count(24));
    assert_granted(split, 0, 16);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_int_equal(split->grants[1].result, 1);
}

static void more_than_the_device_has_is_refused(void **state)
{
    (void)state;
    fake_h200(13010);
    const struct place_split *split = SPLIT(sm_count(133), sm_count(UINT32_MAX), sm_count(8));
    assert_refused(split, 0, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_refused(split, 1, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_granted(split, 2, 8);
    assert_int_equal(fake.grouped, 1);
}

static void an_answer_that_fails_once_costs_no_partition(void **state)
{
    (void)state;
    fake_h200(13010);
    fake_fail("cuDevSmResourceSplit", 1, 915);
    const struct place_split *split = SPLIT(sm_count(8), sm_count(16));
    assert_granted(split, 0, 8);
    assert_granted(split, 1, 16);
}

static void whichever_question_fails_no_sm_is_in_two_partitions(void **state)
{
    (void)state;
    /* Each time another one; split_of checks what holds of every split. */
    for (unsigned call = 1; call < 20; call++) {
        for (int result = 915; result != 0; result = result == 915 ? 999 : 0) {
            fake_h200(13010);
            fake_fail("cuDevSmResourceSplit", call, result);
            SPLIT(sm_count(80), percent(50), sm_count(16), sm_count(60), together(sm_count(32), 32),
                  percent(3));
        }
    }
}

static void without_a_function_the_driver_is_too_old(void **state)
{
    (void)state;
    fake_h200(13010);
    cuda_driver.cuGreenCtxStreamCreate = NULL;
    assert_refused(SPLIT(sm_count(8)), 0, REPORT_REASON_DRIVER_TOO_OLD);
    assert_int_equal(fake.grouped, 0);
}

/* ---- Locality domains ------------------------------------------------------------------------ */

static void domains_need_not_cover_the_device(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    const struct place_split *split = SPLIT(domain(1), domain(0));
    assert_int_equal(split->sms, 148);
    assert_int_equal(split->domains, 2);
    assert_false(split->fake);
    assert_int_equal(split->domain_sms[0], 70);
    assert_int_equal(split->domain_sms[1], 70);
    assert_int_equal(split->outside_domains, 8);
    assert_granted(split, 0, 70);
    assert_granted(split, 1, 70);
    assert_int_equal(split->grants[0].requested, 0);
    for (unsigned sm = 0; sm < 148; sm++)
        assert_int_equal(fake_set_of(split->grants[0].resources)->has[sm], fake.domain_of[sm] == 1);
}

static void sms_outside_the_domains_are_rest(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    const struct place_split *split = SPLIT(domain(0), domain(1), rest());
    assert_granted(split, 2, 8);
    split = SPLIT(domain(0), rest());
    assert_granted(split, 1, 78);
}

static void domains_may_differ(void **state)
{
    (void)state;
    fake_two_domains(80, 52, 0);
    const struct place_split *split = SPLIT(domain(0), domain(1));
    assert_int_equal(split->domain_sms[0], 80);
    assert_int_equal(split->domain_sms[1], 52);
    assert_int_equal(split->outside_domains, 0);
    assert_granted(split, 0, 80);
    assert_granted(split, 1, 52);
}

static void one_domain_is_none(void **state)
{
    (void)state;
    fake_h200(13040);
    const struct place_split *split = SPLIT(domain(0), sm_count(8));
    assert_int_equal(split->domains, 1);
    assert_int_equal(split->domain_sms[0], 132);
    assert_refused(split, 0, REPORT_REASON_NO_LOCALITY_DOMAINS);
    assert_granted(split, 1, 8);
}

static void before_13_4_no_driver_is_asked_for_domains(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    fake.version = 13030;
    const struct place_split *split = SPLIT(domain(0));
    assert_refused(split, 0, REPORT_REASON_NO_LOCALITY_DOMAINS);
    assert_int_equal(fake.attributes, 0);
}

static void a_domain_that_is_not_there_is_refused(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    const struct place_split *split = SPLIT(domain(2), domain(255), domain(1));
    assert_refused(split, 0, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
    assert_refused(split, 1, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
    assert_granted(split, 2, 70);
}

static void the_devices_own_domains_are_preferred_to_pretended_ones(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    fake_domains = 4;
    const struct place_split *split = SPLIT(domain(0), domain(3));
    assert_false(split->fake);
    assert_granted(split, 0, 70);
    assert_refused(split, 1, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
}

static void a_domain_in_co_scheduled_groups_may_be_smaller_than_the_domain(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    const struct place_split *split = SPLIT(together(domain(0), 8), domain(1));
    assert_granted(split, 0, 64); /* three clusters of 18 SMs, and 16 */
    assert_int_equal(split->grants[0].coscheduled, 8);
    assert_int_equal(split->domain_sms[0], 70);
    split = SPLIT(backfilled(together(domain(0), 8)), backfilled(domain(1)));
    assert_granted(split, 0, 70);
    assert_granted(split, 1, 70);
}

static void a_domain_is_known_as_a_whole_where_less_of_it_is_granted(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    fake.localized_coscheduled = true;
    const struct place_split *split =
        SPLIT(domain(0), backfilled(domain(1)), together(domain(0), 2));
    assert_int_equal(split->domain_sms[0], 70);
    assert_int_equal(split->outside_domains, 8);
    assert_granted(split, 0, 64);
    assert_granted(split, 1, 70);
    assert_granted(split, 2, 6);
}

static void domains_and_counts_are_met_in_order(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    const struct place_split *split = SPLIT(sm_count(16), domain(0), domain(0), domain(1));
    assert_granted(split, 0, 16);
    assert_granted(split, 1, 54); /* what is left of it */
    assert_refused(split, 2, REPORT_REASON_NOT_ENOUGH_SMS);
    assert_granted(split, 3, 70);
    split = SPLIT(domain(0), domain(1), sm_count(16));
    assert_granted(split, 0, 70);
    assert_granted(split, 1, 70);
    assert_refused(split, 2, REPORT_REASON_NOT_ENOUGH_SMS);
}

static void domains_that_cannot_be_discovered_have_the_attributes_size(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    fake_fail("cuDevSmResourceSplit", 1, 999);
    const struct place_split *split = SPLIT(domain(0), domain(1));
    assert_int_equal(split->domain_sms[0], 70);
    assert_int_equal(split->domain_sms[1], 70);
    assert_int_equal(split->outside_domains, 8);
    assert_granted(split, 0, 70);
    assert_null(split->failed);
}

static void the_number_of_domains_that_is_not_told_refuses_domains_only(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    fake_fail("cuDeviceGetAttribute", 1, 999);
    const struct place_split *split = SPLIT(domain(0), sm_count(8));
    assert_refused(split, 0, REPORT_REASON_QUERY_FAILED);
    assert_int_equal(split->grants[0].result, 999);
    assert_granted(split, 1, 8);
    assert_string_equal(split->failed, "cuDeviceGetAttribute");
    fake_two_domains(70, 70, 8);
    fake_fail("cuDriverGetVersion", 0, 3);
    split = SPLIT(domain(0), sm_count(8));
    assert_refused(split, 0, REPORT_REASON_QUERY_FAILED);
    assert_int_equal(split->grants[0].result, 3);
    assert_granted(split, 1, 8);
}

static void without_the_newer_split_a_domain_cannot_be_made(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    cuda_driver.cuDevSmResourceSplit = NULL;
    const struct place_split *split = SPLIT(domain(0), sm_count(8));
    assert_refused(split, 0, REPORT_REASON_DRIVER_TOO_OLD);
    assert_granted(split, 1, 8);
    assert_int_equal(split->domain_sms[0], 70);
}

static void more_domains_than_are_kept_are_no_overrun(void **state)
{
    (void)state;
    fake_two_domains(70, 70, 8);
    fake.domains = 200;
    const struct place_split *split = SPLIT(domain(31), domain(32), domain(199), domain(0));
    assert_refused(split, 0, REPORT_REASON_REFUSED_BY_DRIVER); /* it has no SM */
    assert_refused(split, 1, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
    assert_refused(split, 2, REPORT_REASON_NO_SUCH_LOCALITY_DOMAIN);
    assert_granted(split, 3, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_partition_is_one_group),
        TEST(rest_alone_is_the_whole_device),
        TEST(rest_of_co_scheduled_sms_is_a_group),
        TEST(a_second_rest_is_refused),
        TEST(rest_of_nothing_is_refused),
        TEST(a_group_has_its_own_granularity),
        TEST(an_odd_co_scheduled_count_is_a_multiple_and_even),
        TEST(a_backfilled_group_is_as_large_as_asked),
        TEST(two_halves_fit),
        TEST(the_remainder_goes_where_all_fit_with_it),
        TEST(an_impossible_partition_is_found_and_refused_alone),
        TEST(several_impossible_partitions_are_each_found),
        TEST(what_does_not_fit_beside_the_others_is_refused_in_order),
        TEST(the_remainder_serves_one_that_does_not_fit),
        TEST(the_remainder_is_no_co_scheduled_group),
        TEST(a_driver_that_does_not_answer_is_not_asked_again),
        TEST(a_driver_that_refuses_everything_is_believed),
        TEST(a_refused_partition_is_not_the_whole_device_instead),
        TEST(what_is_left_over_is_not_given_where_sms_are_not_scarce),
        TEST(more_than_the_device_has_is_refused),
        TEST(an_answer_that_fails_once_costs_no_partition),
        TEST(whichever_question_fails_no_sm_is_in_two_partitions),
        TEST(without_a_function_the_driver_is_too_old),
        TEST(domains_need_not_cover_the_device),
        TEST(sms_outside_the_domains_are_rest),
        TEST(domains_may_differ),
        TEST(one_domain_is_none),
        TEST(before_13_4_no_driver_is_asked_for_domains),
        TEST(a_domain_that_is_not_there_is_refused),
        TEST(the_devices_own_domains_are_preferred_to_pretended_ones),
        TEST(a_domain_in_co_scheduled_groups_may_be_smaller_than_the_domain),
        TEST(a_domain_is_known_as_a_whole_where_less_of_it_is_granted),
        TEST(domains_and_counts_are_met_in_order),
        TEST(domains_that_cannot_be_discovered_have_the_attributes_size),
        TEST(the_number_of_domains_that_is_not_told_refuses_domains_only),
        TEST(without_the_newer_split_a_domain_cannot_be_made),
        TEST(more_domains_than_are_kept_are_no_overrun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
