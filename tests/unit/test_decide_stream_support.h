/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of streams, captures and graphs share: the recording driver as the real one, the
 * calls of a program as the preload layer would make them, and the report's rows.
 */
#ifndef CUDAPOLICY_TEST_DECIDE_STREAM_SUPPORT_H
#define CUDAPOLICY_TEST_DECIDE_STREAM_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording_driver.h"

#include "decide/capture.h"
#include "decide/decide.h"
#include "decide/stream.h"
#include "policy/policy.h"
#include "report/mapped.h"
#include "report/report.h"

#define EXPECT(call) assert_int_equal((call), CUDA_SUCCESS)

enum {
    SUPPORT_RULES = 16,
};

static struct policy *support_policy;

static inline void support_report(void)
{
    static const char *settings[POLICY_SETTING_COUNT];
    static struct report_rule_name rules[SUPPORT_RULES];
    static bool started;
    if (started)
        return;
    started = true;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++)
        settings[setting] = policy_setting_key(setting);
    for (unsigned rule = 0; rule < SUPPORT_RULES; rule++)
        rules[rule] = (struct report_rule_name){"kernel", "rule", rule};
    const struct report_start start = {
        .setting_names = settings,
        .setting_count = POLICY_SETTING_COUNT,
        .rules = rules,
        .rule_count = SUPPORT_RULES,
        .mode = POLICY_MODE_ENFORCE,
    };
    report_start(&start);
    report_thread_shard();
}

/* A driver with a current context, and the policy made of rules (without [policy]). The driver's
 * configuration has been set. */
static inline void support_begin(const char *rules)
{
    const struct decide_process process = {
        .rank = 3, .local_rank = 1, .world_size = 8, .host = "node7"};
    struct policy_diagnostics diagnostics = {0};
    char text[4096];
    CUcontext context;
    support_report();
    EXPECT(cuInit(0));
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT(cuCtxSetCurrent(context));
    assert_true(cuda_driver_fill(&cuda_driver, (cuda_get_proc_address)cuGetProcAddress));
    snprintf(text, sizeof text, "[policy]\nversion = 1\n%s", rules);
    support_policy = policy_parse(text, strlen(text), "test", &diagnostics);
    if (!support_policy || diagnostics.error_count)
        policy_diagnostics_print(&diagnostics, stderr);
    assert_non_null(support_policy);
    policy_diagnostics_release(&diagnostics);
    report_control->part.mode = POLICY_MODE_ENFORCE;
    decide_start(support_policy, &process, POLICY_MODE_ENFORCE);
}

static inline int support_setup(void **state)
{
    (void)state;
    recording_driver_reset();
    return 0;
}

static inline int support_teardown(void **state)
{
    (void)state;
    recording_driver_configure("FAIL", "");
    const struct decide_process process = {.rank = -1, .local_rank = -1, .world_size = -1};
    decide_context_gone(NULL);
    decide_start(NULL, &process, POLICY_MODE_ENFORCE);
    policy_free(support_policy);
    support_policy = NULL;
    return 0;
}

/* ---- Streams of the program ---- */

static inline CUresult program_try_create(CUstream *stream,
                                          const struct decide_stream_request *request)
{
    int priority = decide_stream_priority(request);
    CUresult result = request->priority_given || priority != request->priority
                          ? cuStreamCreateWithPriority(stream, request->flags, priority)
                          : cuStreamCreate(stream, request->flags);
    if (result != CUDA_SUCCESS && priority != request->priority)
        result = request->priority_given
                     ? cuStreamCreateWithPriority(stream, request->flags, request->priority)
                     : cuStreamCreate(stream, request->flags);
    if (result == CUDA_SUCCESS)
        decide_stream_created(*stream, request);
    return result;
}

static inline CUstream program_creates_with(const struct decide_stream_request *request)
{
    CUstream stream;
    EXPECT(program_try_create(&stream, request));
    return stream;
}

static inline CUstream program_creates(const char *library)
{
    return program_creates_with(
        &(struct decide_stream_request){.flags = CU_STREAM_NON_BLOCKING, .library = library});
}

static inline CUstream program_creates_with_priority(const char *library, int priority)
{
    return program_creates_with(&(struct decide_stream_request){.flags = CU_STREAM_NON_BLOCKING,
                                                                .priority = priority,
                                                                .priority_given = true,
                                                                .library = library});
}

static inline void program_destroys(CUstream stream)
{
    decide_stream_gone(stream);
    EXPECT(cuStreamDestroy(stream));
}

static inline void program_sets(CUstream stream, int attribute, uint32_t word)
{
    CUstreamAttrValue value;
    memset(&value, 0, sizeof value);
    memcpy(&value, &word, sizeof word);
    EXPECT(cuStreamSetAttribute(stream, (CUstreamAttrID)attribute, &value));
    decide_stream_attribute_set(stream, false, attribute);
}

static inline void program_copies(CUstream destination, CUstream source)
{
    EXPECT(cuStreamCopyAttributes(destination, source));
    decide_stream_attributes_copied(destination, source, false);
}

/* ---- What the driver holds ---- */

enum {
    DOMAIN = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    MAP = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    PRIORITY = CU_LAUNCH_ATTRIBUTE_PRIORITY,
};

/* A map as a word: physical domain of the default in the low byte, of the remote one above. */
#define MAP_OF(standard, remote) ((standard) | (remote) << 8)

static inline uint32_t stream_has(CUstream stream, int attribute)
{
    CUstreamAttrValue value;
    uint32_t word;
    memset(&value, 0, sizeof value);
    EXPECT(cuStreamGetAttribute(stream, (CUstreamAttrID)attribute, &value));
    memcpy(&word, &value, sizeof word);
    return attribute == MAP ? word & 0xffff : word;
}

static inline int stream_priority(CUstream stream)
{
    int priority;
    EXPECT(cuStreamGetPriority(stream, &priority));
    return priority;
}

/* ---- The report ---- */

/* The row of streams of a library, which each test names differently. */
static inline const struct report_stream_row *stream_row(const char *library)
{
    const struct report_stream_row *rows = report_image_region(REPORT_REGION_STREAMS);
    const struct report_stream_row *found = NULL;
    report_lock();
    for (uint32_t i = 0; i < report_counts.streams; i++)
        if (strcmp(report_image_text(rows[i].library), library) == 0)
            found = &rows[i];
    report_unlock();
    assert_non_null(found);
    return found;
}

static inline void assert_result(const struct report_result *result, enum report_outcome outcome,
                                 enum report_reason reason)
{
    assert_string_equal(report_outcome_text(result->outcome), report_outcome_text(outcome));
    assert_string_equal(report_reason_text(result->reason), report_reason_text(reason));
}

#define assert_stream_result(library, setting, outcome, reason)                                    \
    assert_result(&stream_row(library)->results[POLICY_SETTING_##setting],                         \
                  REPORT_OUTCOME_##outcome, REPORT_REASON_##reason)

static inline uint32_t gate(void)
{
    return __atomic_load_n(&report_control->part.gate, __ATOMIC_RELAXED);
}

#endif
