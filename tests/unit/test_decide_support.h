/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_DECIDE_SUPPORT_H
#define CUDAPOLICY_TEST_DECIDE_SUPPORT_H

/*
 * The decision engine without a driver: cuda_driver is filled with functions that answer from the
 * tables below and count how often they were asked. Policies are given as text.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver.h"
#include "decide/decide.h"
#include "decide/launch.h"
#include "policy/diagnostics.h"
#include "report/mapped.h"
#include "report/report.h"

enum {
    FAKE_DEVICES = 4,
    INVALID_HANDLE = 400,
};

/* A handle is the address of one of these. */
struct fake_function {
    const char *name; /* NULL: the driver does not say */
    bool kernel;      /* a CUkernel; else a CUfunction */
    void *container;
    struct fake_function *function; /* of a kernel; NULL: cuKernelGetFunction fails */
    int must_be_set, required[3], non_portable;
    int blocks_per_processor, active_clusters, largest_cluster;
    CUresult active_clusters_result;
};

struct fake_device {
    int domains, clusters, processors, major, minor;
    unsigned char uuid[16];
    const char *pci;
};

static struct {
    int version;
    int device_count;
    struct fake_device devices[FAKE_DEVICES];
    int current_device;
    CUcontext context;
    CUresult name_result; /* of the name functions, when not CUDA_SUCCESS */
    int names, attributes, occupancies, current_devices, counts; /* calls */
    bool capturing, many_threads;
    CUlaunchConfig occupancy_config; /* of the last question */
    struct cuda_launch_attribute occupancy_attribute;
} fake;

static inline void fake_asked(int *calls)
{
    __atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);
}

static inline CUresult fake_version(int *version)
{
    *version = fake.version;
    return CUDA_SUCCESS;
}

static inline CUresult fake_count(int *count)
{
    fake_asked(&fake.counts);
    *count = fake.device_count;
    return fake.device_count ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static inline CUresult fake_device_get(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

static inline CUresult fake_device_attribute(int *value, CUdevice_attribute attribute,
                                             CUdevice device)
{
    const struct fake_device *about = &fake.devices[device];
    int answers[] = {about->domains, about->clusters, about->processors, about->major,
                     about->minor};
    int ids[] = {126, 120, 16, 75, 76};
    for (int i = 0; i < 5; i++)
        if ((int)attribute == ids[i]) {
            *value = answers[i];
            return answers[i] < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static inline CUresult fake_uuid(CUuuid *uuid, CUdevice device)
{
    memcpy(uuid->bytes, fake.devices[device].uuid, 16);
    return CUDA_SUCCESS;
}

static inline CUresult fake_pci(char *text, int size, CUdevice device)
{
    if (!fake.devices[device].pci)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(text, (size_t)size, "%s", fake.devices[device].pci);
    return CUDA_SUCCESS;
}

static inline CUresult fake_current_device(CUdevice *device)
{
    fake_asked(&fake.current_devices);
    *device = fake.current_device;
    return CUDA_SUCCESS;
}

static inline CUresult fake_current_context(CUcontext *context)
{
    *context = fake.context;
    return CUDA_SUCCESS;
}

static inline CUresult fake_name(const char **name, const struct fake_function *function,
                                 bool kernel)
{
    fake_asked(&fake.names);
    if (fake.name_result != CUDA_SUCCESS)
        return fake.name_result;
    if (function->kernel != kernel)
        return (CUresult)INVALID_HANDLE;
    *name = function->name;
    return function->name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static inline CUresult fake_function_name(const char **name, CUfunction function)
{
    return fake_name(name, (const struct fake_function *)function, false);
}

static inline CUresult fake_kernel_name(const char **name, CUkernel kernel)
{
    return fake_name(name, (const struct fake_function *)kernel, true);
}

static inline CUresult fake_function_module(CUmodule *module, CUfunction function)
{
    *module = ((struct fake_function *)function)->container;
    return CUDA_SUCCESS;
}

static inline CUresult fake_kernel_library(CUlibrary *library, CUkernel kernel)
{
    *library = ((struct fake_function *)kernel)->container;
    return CUDA_SUCCESS;
}

static inline CUresult fake_kernel_function(CUfunction *function, CUkernel kernel)
{
    struct fake_function *about = (struct fake_function *)kernel;
    if (!about->kernel || !about->function)
        return (CUresult)INVALID_HANDLE;
    *function = (CUfunction)about->function;
    return CUDA_SUCCESS;
}

static inline CUresult fake_function_attribute(int *value, CUfunction_attribute attribute,
                                               CUfunction function)
{
    const struct fake_function *about = (struct fake_function *)function;
    fake_asked(&fake.attributes);
    if (about->kernel)
        return (CUresult)INVALID_HANDLE;
    *value = 0;
    if ((int)attribute == 10)
        *value = about->must_be_set;
    else if ((int)attribute >= 11 && (int)attribute <= 13)
        *value = about->required[(int)attribute - 11];
    else if ((int)attribute == 14)
        *value = about->non_portable;
    return CUDA_SUCCESS;
}

static inline CUresult fake_blocks(int *blocks, CUfunction function, int threads, size_t shared)
{
    (void)threads;
    (void)shared;
    fake_asked(&fake.occupancies);
    *blocks = ((struct fake_function *)function)->blocks_per_processor;
    return CUDA_SUCCESS;
}

static inline CUresult fake_largest_cluster(int *size, CUfunction function,
                                            const CUlaunchConfig *config)
{
    (void)config;
    fake_asked(&fake.occupancies);
    *size = ((struct fake_function *)function)->largest_cluster;
    return CUDA_SUCCESS;
}

static inline CUresult fake_active_clusters(int *clusters, CUfunction function,
                                            const CUlaunchConfig *config)
{
    const struct fake_function *about = (struct fake_function *)function;
    fake_asked(&fake.occupancies);
    if (!fake.many_threads) {
        fake.occupancy_config = *config;
        fake.occupancy_attribute =
            *(const struct cuda_launch_attribute *)(const void *)config->attrs;
    }
    *clusters = about->active_clusters;
    return about->active_clusters_result;
}

static inline CUresult fake_is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = fake.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static inline CUresult fake_set_attribute(CUstream stream, CUstreamAttrID attribute,
                                          const CUstreamAttrValue *value)
{
    (void)stream;
    (void)attribute;
    (void)value;
    return CUDA_SUCCESS;
}

/* One H200, driver 13.0. */
static inline void fake_driver_reset(void)
{
    assert_int_equal(report_control->part.gate, 0); /* no test leaves a capture behind */
    memset(&fake, 0, sizeof fake);
    fake.version = 13000;
    fake.device_count = 1;
    fake.context = (CUcontext)&fake;
    for (int i = 0; i < FAKE_DEVICES; i++)
        fake.devices[i] = (struct fake_device){4, 1, 132, 9, 0, {(unsigned char)(0xa0 + i)}, NULL};
    memset(&cuda_driver, 0, sizeof cuda_driver);
    cuda_driver.cuDriverGetVersion = fake_version;
    cuda_driver.cuDeviceGetCount = fake_count;
    cuda_driver.cuDeviceGet = fake_device_get;
    cuda_driver.cuDeviceGetAttribute = fake_device_attribute;
    cuda_driver.cuDeviceGetUuid = fake_uuid;
    cuda_driver.cuDeviceGetPCIBusId = fake_pci;
    cuda_driver.cuCtxGetDevice = fake_current_device;
    cuda_driver.cuCtxGetCurrent = fake_current_context;
    cuda_driver.cuFuncGetName = fake_function_name;
    cuda_driver.cuKernelGetName = fake_kernel_name;
    cuda_driver.cuFuncGetModule = fake_function_module;
    cuda_driver.cuKernelGetLibrary = fake_kernel_library;
    cuda_driver.cuKernelGetFunction = fake_kernel_function;
    cuda_driver.cuFuncGetAttribute = fake_function_attribute;
    cuda_driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = fake_blocks;
    cuda_driver.cuOccupancyMaxPotentialClusterSize = fake_largest_cluster;
    cuda_driver.cuOccupancyMaxActiveClusters = fake_active_clusters;
    cuda_driver.cuStreamIsCapturing = fake_is_capturing;
    cuda_driver.cuStreamSetAttribute = fake_set_attribute;
}

/* A function that clusters of 8 fit into. */
static inline struct fake_function fake_function_of(const char *name)
{
    return (struct fake_function){.name = name,
                                  .container = &fake.version,
                                  .blocks_per_processor = 16,
                                  .active_clusters = 256,
                                  .largest_cluster = 8};
}

/* ---- The engine -------------------------------------------------------------------------------
 */

static struct decide_process this_process = {-1, -1, -1, NULL};

static inline void start_report(void)
{
    static const char *settings[POLICY_SETTING_COUNT];
    static struct report_rule_name rules[4096];
    for (unsigned i = 0; i < POLICY_SETTING_COUNT; i++)
        settings[i] = policy_setting_key((enum policy_setting)i);
    for (unsigned i = 0; i < 4096; i++)
        rules[i] = (struct report_rule_name){"kernel", "rule", i};
    struct report_start start = {.setting_names = settings,
                                 .setting_count = POLICY_SETTING_COUNT,
                                 .rules = rules,
                                 .rule_count = 4096};
    report_start(&start);
}

/* The engine keeps its policy, and what it made of earlier ones is kept too. */
static inline void keep_policy(struct policy *policy)
{
    static struct kept {
        struct policy *policy;
        struct kept *next;
    } * first;
    struct kept *kept = malloc(sizeof *kept);
    assert_non_null(kept);
    *kept = (struct kept){policy, first};
    first = kept;
}

/* The policy with the rules in text; "[policy] version = 1" is added. */
static inline struct policy *parse_policy(const char *text)
{
    size_t size = strlen(text) + 64;
    char *whole = malloc(size);
    assert_non_null(whole);
    int length = snprintf(whole, size, "[policy]\nversion = 1\n%s", text);
    struct policy_diagnostics diagnostics;
    policy_diagnostics_init(&diagnostics);
    struct policy *policy = policy_parse(whole, (size_t)length, "test", &diagnostics);
    if (!policy)
        policy_diagnostics_print(&diagnostics, stderr);
    assert_non_null(policy);
    keep_policy(policy);
    policy_diagnostics_release(&diagnostics);
    free(whole);
    return policy;
}

static inline void start_parsed(const struct policy *policy)
{
    report_control->part.mode = POLICY_MODE_ENFORCE;
    decide_start(policy, &this_process, POLICY_MODE_ENFORCE);
}

static inline void start_policy(const char *text)
{
    start_parsed(parse_policy(text));
}

/* A launch of 64 x 1 x 1 blocks of 128 threads into the stream. */
struct trial {
    CUlaunchConfig config;
    struct decide_launch launch;
    struct cuda_launch_attribute own[40];
    struct decide_verdict verdict;
};

static inline struct trial *trial_of(struct trial *trial, struct fake_function *function)
{
    memset(trial, 0, sizeof *trial);
    memset(&trial->verdict, 0xa5, sizeof trial->verdict);
    trial->config = (CUlaunchConfig){.gridDimX = 64,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 128,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .attrs = (CUlaunchAttribute *)(void *)trial->own};
    trial->launch = (struct decide_launch){
        .function = (CUfunction)function, .config = &trial->config, .layer = DECIDE_LAYER_DRIVER};
    return trial;
}

static inline struct cuda_launch_attribute *add_own(struct trial *trial, uint32_t id,
                                                    uint32_t number)
{
    struct cuda_launch_attribute *own = &trial->own[trial->config.numAttrs++];
    own->id = id;
    own->value.number = number;
    return own;
}

static inline void add_own_cluster(struct trial *trial, uint32_t id, uint32_t x, uint32_t y,
                                   uint32_t z)
{
    struct cuda_launch_attribute *own = add_own(trial, id, x);
    own->value.cluster_dim.y = y;
    own->value.cluster_dim.z = z;
}

static inline const struct decide_verdict *decide_trial(struct trial *trial)
{
    memset(&trial->verdict, 0xa5, sizeof trial->verdict);
    decide_launch(&trial->launch, &trial->verdict);
    return &trial->verdict;
}

/* Decides and accepts the launch, as a driver would that has nothing against it. */
static inline const struct decide_verdict *run_trial(struct trial *trial)
{
    decide_trial(trial);
    decide_launch_accepted(&trial->launch, &trial->verdict);
    return &trial->verdict;
}

/* The last attribute with the id in the changed launch; NULL: none. */
static inline const struct cuda_launch_attribute *given(const struct decide_verdict *verdict,
                                                        uint32_t id)
{
    const struct cuda_launch_attribute *found = NULL;
    const struct cuda_launch_attribute *list = (const void *)verdict->config.attrs;
    assert_true(verdict->change);
    for (unsigned i = 0; i < verdict->config.numAttrs; i++)
        if (list[i].id == id)
            found = &list[i];
    return found;
}

static inline struct report_result result_of(const struct decide_verdict *verdict,
                                             enum policy_setting setting)
{
    const struct report_cell_row *cells = report_image_region(REPORT_REGION_CELLS);
    assert_int_not_equal(verdict->cell, 0);
    return cells[verdict->cell].results[setting];
}

#define assert_result(verdict, setting, wanted_outcome, wanted_reason)                             \
    do {                                                                                           \
        struct report_result result_ = result_of(verdict, POLICY_SETTING_##setting);               \
        assert_string_equal(report_outcome_text(result_.outcome),                                  \
                            report_outcome_text(REPORT_OUTCOME_##wanted_outcome));                 \
        assert_string_equal(report_reason_text(result_.reason),                                    \
                            report_reason_text(REPORT_REASON_##wanted_reason));                    \
    } while (0)

/* The kernel that a cell counts for. */
static inline const char *kernel_of(const struct decide_verdict *verdict)
{
    const struct report_cell_row *cells = report_image_region(REPORT_REGION_CELLS);
    const struct report_kernel_row *kernels = report_image_region(REPORT_REGION_KERNELS);
    return report_image_text(kernels[cells[verdict->cell].kernel].mangled);
}

static inline int fresh_driver(void **state)
{
    (void)state;
    fake_driver_reset();
    this_process = (struct decide_process){-1, -1, -1, NULL};
    return 0;
}

static inline int start_group(void **state)
{
    start_report();
    report_thread_shard();
    return fresh_driver(state);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh_driver)

#endif
