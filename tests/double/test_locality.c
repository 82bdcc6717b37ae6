/* SPDX-License-Identifier: Apache-2.0 */
/* Locality domains (CUDA 13.4), devices of which only a part may be used, and versions. */
#include "test_green_support.h"
#include <dlfcn.h>
#include <stdio.h>

enum { DOMAIN_COUNT = 149, DOMAIN_MULTIPROCESSORS = 157, DOMAIN_ANY = -1, SUPPLEMENTAL = 4 };

/* Two domains of 70 SMs, and 8 SMs of none: 0-69, 70-139, 140-147. */
static int setup(void **state)
{
    (void)state;
    fresh_driver();
    recording_driver_configure("VERSION", "13040");
    recording_driver_configure("SMS", "148");
    recording_driver_configure("LOCALITY_DOMAINS", "70,70");
    return 0;
}

static int attribute(int number)
{
    int value;
    EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)number, 0));
    return value;
}

static struct cuda_sm_group in_domain(unsigned int domain, unsigned int count,
                                      unsigned int coscheduled)
{
    struct cuda_sm_group group = {.sm_count = count,
                                  .coscheduled_sm_count = coscheduled,
                                  .flags = CUDA_SM_GROUP_LOCALITY_DOMAIN,
                                  .locality_domain = domain};
    return group;
}

static void domains_are_told_from_13_4_on(void **state)
{
    (void)state;
    int value;
    assert_int_equal(attribute(DOMAIN_COUNT), 2);
    assert_int_equal(attribute(DOMAIN_MULTIPROCESSORS), 70);
    recording_driver_configure("VERSION", "13030");
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuDeviceGetAttribute(&value, (CUdevice_attribute)DOMAIN_COUNT, 0));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE,
                 cuDeviceGetAttribute(&value, (CUdevice_attribute)DOMAIN_MULTIPROCESSORS, 0));
    CUdevResource all = device_resource(), part;
    struct cuda_sm_group group = in_domain(0, 16, 8);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, split(&part, 1, &all, NULL, &group));
    /* Without a configuration a 13.4 driver has one domain, the whole device. */
    recording_driver_configure("VERSION", "13040");
    recording_driver_configure("LOCALITY_DOMAINS", "");
    assert_int_equal(attribute(DOMAIN_COUNT), 1);
    assert_int_equal(attribute(DOMAIN_MULTIPROCESSORS), 148);
}

static void a_group_lies_in_the_domain_it_asks_for(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), parts[2], rest;
    struct cuda_sm_group groups[2] = {in_domain(1, 0, 2), in_domain(0, 0, 2)};
    EXPECT(split(parts, 2, &all, &rest, groups));
    assert_int_equal(groups[0].sm_count, 70);
    assert_int_equal(look(&parts[0])->of.sm.locality_domain, 1);
    assert_int_equal(look(&parts[0])->of.sm.flags, CUDA_SM_GROUP_LOCALITY_DOMAIN);
    assert_sms(placed(&parts[0], 1), 70, 139);
    assert_sms(placed(&parts[1], 1), 0, 69);
    assert_sms(placed(&rest, 1), 140, 147);
    groups[0] = in_domain(2, 16, 8);
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, split(parts, 1, &all, NULL, groups));
    /* Parts of two domains do not go into one descriptor. */
    CUdevResourceDesc description;
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 cuDevResourceGenerateDesc(&description, parts, 2));
}

static void groups_of_eight_do_not_fill_a_domain_of_seventy(void **state)
{
    (void)state;
    CUdevResource all = device_resource();
    struct cuda_sm_group group = in_domain(0, 0, 0);
    EXPECT(split(NULL, 1, &all, NULL, &group));
    assert_int_equal(group.sm_count, 64);
    group = in_domain(0, 0, 2);
    EXPECT(split(NULL, 1, &all, NULL, &group));
    assert_int_equal(group.sm_count, 70);
}

static void backfill_takes_sms_of_no_domain_before_those_of_another(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), part;
    struct cuda_sm_group group = in_domain(1, 76, 8);
    EXPECT_ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, split(&part, 1, &all, NULL, &group));
    group.flags |= CUDA_SM_GROUP_BACKFILL;
    EXPECT(split(&part, 1, &all, NULL, &group));
    assert_sms(placed(&part, 1), 70, 145);
    group.sm_count = 80;
    EXPECT(split(&part, 1, &all, NULL, &group));
    const struct recording_call *call = placed(&part, 1);
    assert_true(on_sm(call, 147) && on_sm(call, 0) && on_sm(call, 1) && !on_sm(call, 2));
}

static void uneven_domains_give_as_much_as_the_attribute_says(void **state)
{
    (void)state;
    CUdevResource all = device_resource();
    recording_driver_configure("LOCALITY_DOMAINS", "80,60");
    assert_int_equal(attribute(DOMAIN_MULTIPROCESSORS), 60);
    struct cuda_sm_group group = in_domain(0, 0, 2);
    EXPECT(split(NULL, 1, &all, NULL, &group));
    assert_int_equal(group.sm_count, 60);
    /* A number that is larger than a domain. */
    recording_driver_configure("LOCALITY_DOMAIN_SMS", "80");
    struct cuda_sm_group groups[2] = {in_domain(0, 0, 2), in_domain(1, 0, 2)};
    EXPECT(split(NULL, 2, &all, NULL, groups));
    assert_int_equal(groups[0].sm_count, 80);
    assert_int_equal(groups[1].sm_count, 60);
}

static void from_13_5_on_the_surplus_and_any_domain_can_be_asked_for(void **state)
{
    (void)state;
    CUdevResource all = device_resource();
    recording_driver_configure("LOCALITY_DOMAINS", "80,60");
    struct cuda_sm_group group = in_domain(0, 0, 2),
                         any = in_domain((unsigned int)DOMAIN_ANY, 0, 2);
    group.flags |= SUPPLEMENTAL;
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, split(NULL, 1, &all, NULL, &group));
    EXPECT_ERROR(CUDA_ERROR_INVALID_VALUE, split(NULL, 1, &all, NULL, &any));
    recording_driver_configure("VERSION", "13050");
    EXPECT(split(NULL, 1, &all, NULL, &group));
    assert_int_equal(group.sm_count, 80);
    EXPECT(split(NULL, 1, &all, NULL, &any));
    assert_int_equal(any.sm_count, 120);
}

static void a_process_may_have_fewer_sms_than_the_device(void **state)
{
    (void)state;
    CUfunction function = load_function("kernel k\n", "k");
    recording_driver_configure("USABLE_SMS", "100");
    CUdevResource all = device_resource();
    assert_int_equal(look(&all)->of.sm.sm_count, 100);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 148);
    struct cuda_sm_group groups[2] = {in_domain(0, 0, 2), in_domain(1, 0, 2)};
    EXPECT(split(NULL, 2, &all, NULL, groups));
    assert_int_equal(groups[0].sm_count, 70);
    assert_int_equal(groups[1].sm_count, 30);
    EXPECT(launch_plain(function, new_stream()));
    assert_sms(last_call("cuLaunchKernel"), 0, 99);
}

/* Which functions dlsym and cuGetProcAddress find at which version. */
static void functions_appear_with_their_versions(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int version;
    } cases[] = {
        {"cuDeviceGetDevResource", 12040},    {"cuDevSmResourceSplitByCount", 12040},
        {"cuDevResourceGenerateDesc", 12040}, {"cuGreenCtxCreate", 12040},
        {"cuStreamGetGreenCtx", 12040},       {"cuGreenCtxStreamCreate", 12050},
        {"cuGreenCtxGetId", 12090},           {"cuDevSmResourceSplit", 13010},
        {"cuStreamGetDevResource", 13010},
    };
    static const int versions[] = {12030, 12040, 12050, 12090, 13000, 13010, 13030, 13040};
    for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", versions[v]);
        recording_driver_configure("VERSION", text);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            void *pointer;
            bool there = cases[i].version <= versions[v];
            EXPECT(cuGetProcAddress_v2(cases[i].name, &pointer, versions[v], 0, NULL));
            assert_int_equal(pointer != NULL, there);
            assert_int_equal(dlsym(RTLD_DEFAULT, cases[i].name) != NULL, there);
        }
    }
    void *plain, *per_thread;
    EXPECT(cuGetProcAddress_v2("cuStreamGetDevResource", &plain, 13010, 0, NULL));
    EXPECT(cuGetProcAddress_v2("cuStreamGetDevResource", &per_thread, 13010,
                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    assert_ptr_not_equal(plain, per_thread);
    recording_driver_configure("HIDE", "cuDevSmResourceSplit");
    EXPECT(cuGetProcAddress_v2("cuDevSmResourceSplit", &plain, 13040, 0, NULL));
    assert_null(plain);
    assert_null(dlsym(RTLD_DEFAULT, "cuDevSmResourceSplit"));
}

static void each_of_them_can_be_made_to_fail(void **state)
{
    (void)state;
    CUdevResource all = device_resource(), part;
    CUdevResourceDesc description;
    CUgreenCtx green = eights(0, 1), other;
    CUstream stream = stream_in(green), another;
    CUcontext context;
    unsigned int count = 1;
    unsigned long long id;
    struct cuda_sm_group group = in_domain(0, 16, 8);
    EXPECT(cuDevResourceGenerateDesc(&description, &all, 1));
    size_t greens = recording_driver_live("green_context");
    recording_driver_configure("FAIL",
                               "cuDev*:*=801;cuGreen*:*=802;cuCtx*:*=803;cuStreamGet*:*=804");
    EXPECT_ERROR(801, cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_ERROR(801, cuDevSmResourceSplitByCount(&part, &count, &all, NULL, 0, 8));
    EXPECT_ERROR(801, split(&part, 1, &all, NULL, &group));
    EXPECT_ERROR(801, cuDevResourceGenerateDesc(&description, &all, 1));
    EXPECT_ERROR(802, cuGreenCtxCreate(&other, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    EXPECT_ERROR(802, cuGreenCtxStreamCreate(&another, green, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_ERROR(802, cuGreenCtxGetId(green, &id));
    EXPECT_ERROR(802, cuGreenCtxGetDevResource(green, &part, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_ERROR(802, cuGreenCtxDestroy(green));
    EXPECT_ERROR(803, cuCtxFromGreenCtx(&context, green));
    EXPECT_ERROR(803, cuCtxGetDevResource(NULL, &part, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_ERROR(804, cuStreamGetDevResource(stream, &part, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_ERROR(804, cuStreamGetDevResource_ptsz(stream, &part, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_ERROR(804, cuStreamGetGreenCtx(stream, &other));
    assert_int_equal(recording_driver_live("green_context"), greens);
    assert_true(last_call("cuDevSmResourceSplit")->injected);
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"70,", ",70", "0,70", "70;70", "x", "200,100"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(recording_driver_configure("LOCALITY_DOMAINS", wrong[i]), -1);
    assert_int_equal(recording_driver_configure("GPCS", "18,18"), 0);
    assert_int_equal(recording_driver_configure("SMS", "257"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(domains_are_told_from_13_4_on, setup),
        cmocka_unit_test_setup(a_group_lies_in_the_domain_it_asks_for, setup),
        cmocka_unit_test_setup(groups_of_eight_do_not_fill_a_domain_of_seventy, setup),
        cmocka_unit_test_setup(backfill_takes_sms_of_no_domain_before_those_of_another, setup),
        cmocka_unit_test_setup(uneven_domains_give_as_much_as_the_attribute_says, setup),
        cmocka_unit_test_setup(from_13_5_on_the_surplus_and_any_domain_can_be_asked_for, setup),
        cmocka_unit_test_setup(a_process_may_have_fewer_sms_than_the_device, setup),
        cmocka_unit_test_setup(functions_appear_with_their_versions, setup),
        cmocka_unit_test_setup(each_of_them_can_be_made_to_fail, setup),
        cmocka_unit_test_setup(settings_that_make_no_sense_are_refused, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
