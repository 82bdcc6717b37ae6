/* SPDX-License-Identifier: Apache-2.0 */
/* What the program itself does to the attributes of streams that rules speak about. */
#include "test_decide_stream_support.h"

static void replace_sets_the_rules_value_again(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\npriority = -2\n");
    CUstream stream = program_creates("p.so");
    program_sets(stream, DOMAIN, 0);
    assert_int_equal(stream_has(stream, DOMAIN), 1);
    program_sets(stream, PRIORITY, (uint32_t)-4);
    assert_int_equal(stream_priority(stream), -2);
    program_sets(stream, MAP, MAP_OF(2, 3));
    assert_int_equal(stream_has(stream, MAP), MAP_OF(2, 3));
    assert_int_equal(decide_stream_own(decide_stream_find(stream, false, NULL)),
                     1u << DOMAIN | 1u << PRIORITY | 1u << MAP);
}

static void keep_leaves_what_the_program_set(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\nwhen_set = keep\n");
    CUstream stream = program_creates("p.so");
    assert_int_equal(stream_has(stream, DOMAIN), 1);
    program_sets(stream, DOMAIN, 0);
    assert_int_equal(stream_has(stream, DOMAIN), 0);
}

static void the_same_value_is_not_set_twice(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    CUstream stream = program_creates("p.so");
    recording_driver_forget();
    program_sets(stream, DOMAIN, 1);
    assert_int_equal(recording_driver_call_count("cuStreamSetAttribute"), 1);
}

static void observing_leaves_what_the_program_set(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    CUstream stream = program_creates("p.so");
    report_control->part.mode = POLICY_MODE_OBSERVE;
    program_sets(stream, DOMAIN, 0);
    assert_int_equal(stream_has(stream, DOMAIN), 0);
}

static void a_failing_second_set_leaves_the_programs_value(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    CUstream stream = program_creates("p.so");
    recording_driver_forget();
    recording_driver_configure("FAIL", "cuStreamSetAttribute:2=1");
    program_sets(stream, DOMAIN, 0);
    assert_int_equal(stream_has(stream, DOMAIN), 0);
}

/* ---- Copies ---- */

static void a_copy_does_not_carry_a_rules_setting_along(void **state)
{
    (void)state;
    support_begin("[stream s]\nlibrary = ruled.so\nmem_sync_domain = remote\n"
                  "mem_sync_domain_map = 2 3\npriority = -3\n");
    CUstream ruled = program_creates("ruled.so"), plain = program_creates("plain.so");
    program_copies(plain, ruled);
    assert_int_equal(stream_has(plain, DOMAIN), 0);
    assert_int_equal(stream_has(plain, MAP), MAP_OF(0, 1));
    assert_int_equal(stream_priority(plain), 0);
    assert_int_equal(stream_has(ruled, DOMAIN), 1);
}

static void a_copy_carries_along_what_the_program_set(void **state)
{
    (void)state;
    support_begin("[stream s]\nlibrary = ruled.so\nmem_sync_domain = default\n"
                  "mem_sync_domain_map = 2 3\n");
    CUstream ruled = program_creates("ruled.so"), plain = program_creates("plain.so");
    program_sets(ruled, DOMAIN, 1);
    program_sets(ruled, MAP, MAP_OF(1, 1));
    assert_int_equal(stream_has(ruled, DOMAIN), 0);
    program_copies(plain, ruled);
    assert_int_equal(stream_has(plain, DOMAIN), 1);
    assert_int_equal(stream_has(plain, MAP), MAP_OF(1, 1));
}

static void a_copy_onto_a_ruled_stream_follows_when_set(void **state)
{
    (void)state;
    support_begin("[stream a]\nlibrary = replace.so\nmem_sync_domain = remote\n"
                  "[stream b]\nlibrary = keep.so\nmem_sync_domain = remote\nwhen_set = keep\n");
    CUstream replace = program_creates("replace.so"), keep = program_creates("keep.so");
    CUstream untouched = program_creates("plain.so"), touched = program_creates("plain.so");
    program_copies(replace, untouched);
    program_copies(keep, untouched);
    assert_int_equal(stream_has(replace, DOMAIN), 1);
    assert_int_equal(stream_has(keep, DOMAIN), 1); /* the program set nothing on either */
    program_sets(touched, DOMAIN, 0);
    program_copies(replace, touched);
    program_copies(keep, touched);
    assert_int_equal(stream_has(replace, DOMAIN), 1);
    assert_int_equal(stream_has(keep, DOMAIN), 0);
}

static void a_copy_between_streams_of_one_rule_keeps_both(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    CUstream one = program_creates("p.so"), other = program_creates("p.so");
    program_copies(other, one);
    assert_int_equal(stream_has(other, DOMAIN), 1);
    /* and it is still known to be the rule's value, not the program's */
    report_control->part.mode = POLICY_MODE_OBSERVE;
    EXPECT(cuStreamCreate(&one, 0));
    decide_stream_created(one, &(struct decide_stream_request){.library = "late.so"});
    program_copies(one, other);
    assert_int_equal(stream_has(one, DOMAIN), 0);
}

static void a_copy_onto_a_default_stream_does_not_carry_a_rules_setting_along(void **state)
{
    (void)state;
    support_begin("[stream s]\nmem_sync_domain = remote\n");
    CUstream ruled = program_creates("p.so");
    program_copies(NULL, ruled);
    assert_int_equal(stream_has(CU_STREAM_LEGACY, DOMAIN), 0);
}

static void a_copy_from_an_unknown_stream_is_taken_as_it_is(void **state)
{
    (void)state;
    CUstream unknown;
    CUstreamAttrValue value;
    support_begin("[stream s]\nlibrary = keep.so\nmem_sync_domain = default\nwhen_set = keep\n");
    EXPECT(cuStreamCreate(&unknown, 0));
    memset(&value, 0, sizeof value);
    value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    EXPECT(cuStreamSetAttribute(unknown, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
    CUstream keep = program_creates("keep.so");
    program_copies(keep, unknown);
    assert_int_equal(stream_has(keep, DOMAIN), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, support_setup, support_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replace_sets_the_rules_value_again),
        TEST(keep_leaves_what_the_program_set),
        TEST(the_same_value_is_not_set_twice),
        TEST(observing_leaves_what_the_program_set),
        TEST(a_failing_second_set_leaves_the_programs_value),
        TEST(a_copy_does_not_carry_a_rules_setting_along),
        TEST(a_copy_carries_along_what_the_program_set),
        TEST(a_copy_onto_a_ruled_stream_follows_when_set),
        TEST(a_copy_between_streams_of_one_rule_keeps_both),
        TEST(a_copy_onto_a_default_stream_does_not_carry_a_rules_setting_along),
        TEST(a_copy_from_an_unknown_stream_is_taken_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
