/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TEST_PLACE_SUPPORT_H
#define CUDAPOLICY_TEST_PLACE_SUPPORT_H

/* A program with partitions and moved launches, on a driver that is not there. */

#include "test_place_driver.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "place/move.h"
#include "place/partition.h"
#include "place/side.h"
#include "policy/diagnostics.h"
#include "policy/policy.h"
#include "report/mapped.h"
#include "report/report.h"

enum {
    SIDE = 0, /* indexes in SUPPORT_POLICY */
    MAIN = 1,
    THREADS = 32,
};

/* ---- The program -------------------------------------------------------------------------------
 */

static struct policy *support_policy;

static inline struct policy *parse(const char *text)
{
    struct policy_diagnostics diagnostics;
    policy_diagnostics_init(&diagnostics);
    struct policy *policy = policy_parse(text, strlen(text), "test", &diagnostics);
    if (!policy)
        policy_diagnostics_print(&diagnostics, stderr);
    assert_non_null(policy);
    policy_diagnostics_release(&diagnostics);
    return policy;
}

/* Where the tests' own account begins again. */
static inline void forget_calls(void)
{
    atomic_store(&fake.calls, 0);
}

/* The call that comes as the number-th from now on, from 1, fails. */
static inline void fail_call(int number, CUresult result)
{
    fake.fail_at = fake.calls + number - 1;
    fake.fail_with = result;
    fake.failed = NULL;
}

/* run is called in each call of that name from now on. */
static inline void call_back_during(const char *name, void (*run)(void))
{
    fake.during = name;
    fake.run = run;
}

static inline void program_retains(int device)
{
    atomic_fetch_add(&fake.retains[device], 1);
    fake_current = (CUcontext)&fake.primary[device];
    place_device_retained(device);
    place_device_active(device, true);
}

static inline void program_releases(int device)
{
    place_device_releasing(device);
    atomic_fetch_sub(&fake.retains[device], 1);
}

static inline CUstream program_stream(int device, int priority)
{
    struct fake_object *stream = fake_new(FAKE_STREAM, device);
    stream->priority = priority;
    return (CUstream)stream;
}

static inline void program_destroys(CUstream stream)
{
    assert_int_equal(fake_destroy((void *)stream, FAKE_STREAM), CUDA_SUCCESS);
}

static inline unsigned partition_reason(int device, unsigned index)
{
    return atomic_load(&place_partition_find(device, index)->reason);
}

#define assert_reason(device, index, expected)                                                     \
    assert_string_equal(report_reason_text(partition_reason(device, index)),                       \
                        report_reason_text(REPORT_REASON_##expected))

/* The calls since forget_calls by name, with a space behind each. */
static inline const char *names_of_calls(void)
{
    static char text[FAKE_CALLS * 40];
    text[0] = '\0';
    size_t length = 0;
    for (int i = 0; i < fake.calls && i < FAKE_CALLS; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s ", fake.call[i].name);
    return text;
}

#define SUPPORT_POLICY                                                                             \
    "[policy]\nversion = 1\n"                                                                      \
    "[partition side]\nsm_count = 16\n"                                                            \
    "[partition main]\nsm_count = rest\n"                                                          \
    "[kernel k]\nname = k*\npartition = side\n"                                                    \
    "[kernel l]\nname = l*\npartition = main\n"

static inline void start_with(const char *text,
                              bool (*selected)(const struct policy_partition *, int))
{
    struct policy *policy = parse(text);
    place_start(policy, 0, selected);
    if (support_policy)
        policy_free(support_policy);
    support_policy = policy;
}

static inline int fresh(void **state)
{
    (void)state;
    int objects = atomic_load(&fake.object_count);
    memset(fake.objects, 0, (size_t)objects * sizeof fake.objects[0]);
    memset((char *)&fake + sizeof fake.objects, 0, sizeof fake - sizeof fake.objects);
    fake_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    fake_current = (CUcontext)&fake.primary[0];
    fake_driver_fill();
    start_with(SUPPORT_POLICY, NULL);
    return 0;
}

static inline int start_group(void **state)
{
    static const char *settings[POLICY_SETTING_COUNT];
    for (unsigned i = 0; i < POLICY_SETTING_COUNT; i++)
        settings[i] = policy_setting_key((enum policy_setting)i);
    report_start(
        &(struct report_start){.setting_names = settings, .setting_count = POLICY_SETTING_COUNT});
    return fresh(state);
}

static inline int end_group(void **state)
{
    (void)state;
    place_start(NULL, 0, NULL);
    policy_free(support_policy);
    return 0;
}

/* Runs in a child; fails unless it leaves by _exit(0). */
static inline void assert_child_succeeds(void (*body)(void))
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(30); /* a deadlock is a failure */
        body();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define expect_in_child(condition)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* ---- Launches ---------------------------------------------------------------------------------
 */

/* One launch as the preload layer makes it, into a stream or moved; the stream that it went to. */
struct launch {
    CUstream stream;
    struct place_sides *sides;
    const struct place_partition *partition;
    bool capturing, fails;
    enum report_reason reason;
    CUresult joined;
    CUstream went_to;
};

/* A kernel's node depends on what its stream depends on. */
static inline void fake_launch(CUstream stream)
{
    struct fake_object *about = fake_stream_of(stream);
    if (about && about->capturing) {
        fake.edges[fake.node_count] = about->nodes;
        about->nodes = UINT64_C(1) << fake.node_count++;
    }
}

static inline struct launch launch(struct launch launch)
{
    struct place_move move;
    launch.went_to = launch.stream;
    launch.reason =
        place_move_begin(&move, launch.sides, launch.stream, launch.partition, launch.capturing);
    if (launch.reason == REPORT_REASON_NONE)
        launch.went_to = move.side;
    if (!launch.fails)
        fake_launch(launch.went_to);
    if (launch.reason == REPORT_REASON_NONE)
        launch.joined = place_move_end(&move, !launch.fails);
    return launch;
}

static inline struct launch launch_moved(CUstream stream, struct place_sides *sides, int device,
                                         unsigned index)
{
    return launch((struct launch){
        .stream = stream, .sides = sides, .partition = place_partition_find(device, index)});
}

static inline int length_of(struct place_sides *sides)
{
    int length = 0;
    for (struct place_side *side = sides->first; side; side = side->next)
        length++;
    return length;
}

#define assert_call(number, expected_name, expected_first, expected_second)                        \
    do {                                                                                           \
        assert_string_equal(fake.call[number].name, expected_name);                                \
        assert_ptr_equal(fake.call[number].first, expected_first);                                 \
        assert_ptr_equal(fake.call[number].second, expected_second);                               \
    } while (0)

static inline void assert_moved(struct launch made)
{
    assert_string_equal(report_reason_text(made.reason), "");
    assert_int_equal(made.joined, CUDA_SUCCESS);
}

/* The last release; what the library had made is gone with it. */
static inline const char *end_all(int device)
{
    program_releases(device);
    if (fake.live[FAKE_GREEN] || fake.live[FAKE_EVENT] || fake.misuses)
        return "leaked or misused";
    return "clean";
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

#endif
