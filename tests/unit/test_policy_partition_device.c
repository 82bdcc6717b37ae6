/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that share a device: which exclude each other, and which together are too much. */
#include "test_policy_support.h"

struct partition {
    const char *request, *device; /* NULL: every device */
};

/* Partitions a, b, … of three or four lines each, all of them used. The line of the last request.
 */
static unsigned write_partitions(char *body, size_t size, const struct partition *partitions,
                                 size_t count)
{
    size_t length = 0;
    unsigned line = 0, request = 0;

    for (size_t i = 0; i < count; i++) {
        const char *device = partitions[i].device;

        length += (size_t)snprintf(body + length, size - length, "[partition %c]\n%s%s%s%s\n",
                                   (char)('a' + i), device != NULL ? "device = " : "",
                                   device != NULL ? device : "", device != NULL ? "\n" : "",
                                   partitions[i].request);
        line += device != NULL ? 3 : 2;
        request = line;
    }
    for (size_t i = 0; i < count; i++) {
        length +=
            (size_t)snprintf(body + length, size - length,
                             "[stream s%zu]\nindex = %zu\npartition = %c\n", i, i, (char)('a' + i));
    }
    assert_true(length < size);
    return request;
}

static void expect_together(const struct partition *partitions, size_t count, const char *message)
{
    char body[4000];
    unsigned line = write_partitions(body, sizeof body, partitions, count);

    if (message == NULL) {
        policy_free(expect_clean(body));
    } else {
        expect_error(body, line, 1, message);
    }
}

#define TOGETHER(message, ...)                                                                     \
    expect_together((const struct partition[]){__VA_ARGS__},                                       \
                    sizeof((const struct partition[]){__VA_ARGS__}) / sizeof(struct partition),    \
                    message)

/* ---- pairs ---------------------------------------------------------------------------------- */

static void one_device_has_one_rest(void **state)
{
    static const char message[] =
        "sm_count = rest is also [partition a], line 3, and both may be on one device";

    (void)state;
    TOGETHER(message, {"sm_count = rest", NULL}, {"sm_count = rest", NULL});
    TOGETHER(message, {"sm_count = rest", NULL}, {"sm_count = rest", "1"});
    TOGETHER(message, {"sm_count = rest", "0..3"}, {"sm_count = rest", "5, 2..2"});
    TOGETHER(NULL, {"sm_count = rest", "0..3"}, {"sm_count = rest", "4.."});
    TOGETHER(NULL, {"sm_count = rest", "0"}, {"sm_count = 8", "0"}, {"sm_count = rest", "1"});
}

static void one_device_has_a_locality_domain_once(void **state)
{
    static const char message[] =
        "locality_domain = 1 is also [partition a], line 3, and both may be on one device";

    (void)state;
    TOGETHER(message, {"locality_domain = 1", NULL}, {"locality_domain = 1", NULL});
    TOGETHER(message, {"locality_domain = 1", "0,1"}, {"locality_domain = 1", "1,2"});
    TOGETHER(NULL, {"locality_domain = 1", "0"}, {"locality_domain = 1", "1"});
    TOGETHER(NULL, {"locality_domain = 0", NULL}, {"locality_domain = 1", NULL},
             {"sm_count = 8", NULL}, {"sm_count = rest", NULL});
}

static void devices_are_compared_in_each_form(void **state)
{
    static const char message[] =
        "sm_count = rest is also [partition a], line 3, and both may be on one device";

    (void)state;
    TOGETHER(message, {"sm_count = rest", "GPU-8932f937"},
             {"sm_count = rest", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"});
    TOGETHER(message, {"sm_count = rest", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"},
             {"sm_count = rest", "GPU-8932f937"});
    TOGETHER(NULL, {"sm_count = rest", "GPU-8932f937"}, {"sm_count = rest", "GPU-8932f938"});
    TOGETHER(message, {"sm_count = rest", "3b:00.0"}, {"sm_count = rest", "0000:3b:00"});
    TOGETHER(NULL, {"sm_count = rest", "3b:00.0"}, {"sm_count = rest", "0001:3b:00"});
    TOGETHER(NULL, {"sm_count = rest", "3b:00.0"}, {"sm_count = rest", "3c:00.0"});
    TOGETHER(NULL, {"sm_count = rest", "3b:00.0"}, {"sm_count = rest", "3b:01.0"});
}

static void devices_in_different_forms_may_be_the_same(void **state)
{
    static const char message[] =
        "sm_count = rest is also [partition a], line 3, and both may be on one device";

    (void)state;
    TOGETHER(message, {"sm_count = rest", "0"}, {"sm_count = rest", "GPU-8932f937"});
    TOGETHER(message, {"sm_count = rest", "3b:00.0"}, {"sm_count = rest", "GPU-8932f937"});
}

/* ---- sums ----------------------------------------------------------------------------------- */

static void percentages_of_a_device_are_a_hundred_at_most(void **state)
{
    (void)state;
    TOGETHER("with [partition c] the partitions of one device need 101% of its SMs",
             {"sm_count = 50%", NULL}, {"sm_count = 50%", NULL}, {"sm_count = 1%", NULL});
    TOGETHER("with [partition b] the partitions of one device need 110% of its SMs",
             {"sm_count = 50%", NULL}, {"sm_count = 60%", "7"});
    TOGETHER(NULL, {"sm_count = 50%", NULL}, {"sm_count = 50%", NULL});
    TOGETHER(NULL, {"sm_count = 100%", "0"}, {"sm_count = 100%", "1"});
}

static void counts_of_a_device_are_not_more_than_any_has(void **state)
{
    (void)state;
    TOGETHER("with [partition b] the partitions of one device need 1025 SMs; no device has more "
             "than 1024",
             {"sm_count = 1000", NULL}, {"sm_count = 25", NULL});
    TOGETHER("with [partition b] the partitions of one device need 1025 SMs; no device has more "
             "than 1024",
             {"sm_count = 1024", "0"}, {"locality_domain = 3", "0"});
    TOGETHER(NULL, {"sm_count = 1000", NULL}, {"sm_count = 24", NULL});
    TOGETHER(NULL, {"sm_count = 1024", "0"}, {"sm_count = 1024", "1"});
}

static void percentages_leave_room_for_the_others(void **state)
{
    (void)state;
    TOGETHER("with [partition b] the partitions of one device need 100% of its SMs and 1 SM, which "
             "no device has",
             {"sm_count = 100%", NULL}, {"sm_count = rest", NULL});
    TOGETHER("with [partition c] the partitions of one device need 100% of its SMs and 1 SM, which "
             "no device has",
             {"sm_count = 40%", NULL}, {"locality_domain = 0", NULL}, {"sm_count = 60%", NULL});
    TOGETHER("with [partition b] the partitions of one device need 50% of its SMs and 513 SMs, "
             "which no device has",
             {"sm_count = 50%", NULL}, {"sm_count = 513", NULL});
    TOGETHER(NULL, {"sm_count = 50%", NULL}, {"sm_count = 512", NULL});
    TOGETHER(NULL, {"sm_count = 99%", NULL}, {"sm_count = rest", NULL});
}

static void sums_are_made_for_each_device(void **state)
{
    (void)state;
    /* Pairs of these share a device, all three do not. */
    TOGETHER(NULL, {"sm_count = 50%", "0,1"}, {"sm_count = 50%", "1,2"}, {"sm_count = 50%", "2,0"});
    TOGETHER("with [partition c] the partitions of one device need 150% of its SMs",
             {"sm_count = 50%", "0..2"}, {"sm_count = 50%", "2..4"}, {"sm_count = 50%", "2"});
    TOGETHER("with [partition c] the partitions of one device need 120% of its SMs",
             {"sm_count = 40%", "GPU-89"}, {"sm_count = 40%", "GPU-8932f937"},
             {"sm_count = 40%", "GPU-8932"});
    TOGETHER(NULL, {"sm_count = 60%", "GPU-8932f937"}, {"sm_count = 60%", "GPU-8932f938"});
    TOGETHER(NULL, {"sm_count = 40%", "GPU-89"}, {"sm_count = 40%", "GPU-8932"},
             {"sm_count = 40%", "GPU-8933"});
    TOGETHER("with [partition b] the partitions of one device need 120% of its SMs",
             {"sm_count = 60%", "3b:00.0"}, {"sm_count = 60%", "3b:00.0"});
    /* What a device is called in another form is not known, so nothing is certain. */
    TOGETHER(NULL, {"sm_count = 60%", "0"}, {"sm_count = 60%", "GPU-8932f937"});
}

/* A partition is reported once, on however many devices it is too much. */
static void partition_that_is_too_much_is_reported_once(void **state)
{
    (void)state;
    TOGETHER("with [partition b] the partitions of one device need 120% of its SMs",
             {"sm_count = 60%", "0,1,2"}, {"sm_count = 60%", "2,1,0"});
}

static void unnamed_partitions_count_too(void **state)
{
    (void)state;
    expect_error("[partition a]\nsm_count = 100%\n[stream s]\nindex = 0\npartition = a\n"
                 "[stream t]\nindex = 1\nlocality_domain = 0\n",
                 8, 1,
                 "with [partition locality_domain=0] the partitions of one device need 100% of its "
                 "SMs and 1 SM, which no device has");
    /* They come by their number, each with the place of its rule. */
    expect_error("[partition a]\nsm_count = 100%\n[stream s]\nindex = 0\npartition = a\n"
                 "[stream t]\nindex = 1\nlocality_domain = 5\n"
                 "[stream u]\nindex = 2\nlocality_domain = 2\n",
                 11, 1,
                 "with [partition locality_domain=2] the partitions of one device need 100% of its "
                 "SMs and 1 SM, which no device has");
}

/* Long lists are compared up to a bound: without it the test would run into its time limit. */
static void long_lists_of_devices_do_not_hold_up_a_start(void **state)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_non_null(stream);
    fputs(POLICY_HEADER, stream);
    for (unsigned i = 0; i < 2; i++) {
        fprintf(stream, "[partition p%u]\nsm_count = rest\n", i);
        for (unsigned j = 0; j < 300000; j++) {
            fprintf(stream, "device = %u\n", 2 * j + i);
        }
        fprintf(stream, "[stream s%u]\nindex = %u\npartition = p%u\n", i, i, i);
    }
    assert_int_equal(fclose(stream), 0);
    struct policy *policy = policy_parse(text, length, "test.ini", &diagnostics);
    assert_non_null(policy);
    assert_int_equal(policy->partitions[1].device.count, 300000);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_has_one_rest),
        cmocka_unit_test(one_device_has_a_locality_domain_once),
        cmocka_unit_test(devices_are_compared_in_each_form),
        cmocka_unit_test(devices_in_different_forms_may_be_the_same),
        cmocka_unit_test(percentages_of_a_device_are_a_hundred_at_most),
        cmocka_unit_test(counts_of_a_device_are_not_more_than_any_has),
        cmocka_unit_test(percentages_leave_room_for_the_others),
        cmocka_unit_test(sums_are_made_for_each_device),
        cmocka_unit_test(partition_that_is_too_much_is_reported_once),
        cmocka_unit_test(unnamed_partitions_count_too),
        cmocka_unit_test(long_lists_of_devices_do_not_hold_up_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
