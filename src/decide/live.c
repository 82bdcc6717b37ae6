/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/live.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "decide/kernel_name.h"
#include "policy/policy.h"
#include "report/report.h"

static struct decide_live_options chosen;
static _Atomic uint64_t steps;

unsigned decide_live_arms;
bool decide_live_graph_steps;

_Static_assert((int)POLICY_ARM_LIMIT == (int)REPORT_ARM_LIMIT, "every arm fits the report");

/* ---- The schedule ------------------------------------------------------------------------------
 */

/* SplitMix64: a step of the state, and its output function. */
static const uint64_t golden_gamma = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t draw(uint64_t *state)
{
    *state += golden_gamma;
    return mix(*state);
}

/* Below bound, each as likely as any other: numbers behind the last whole multiple of bound are
 * drawn again. */
static unsigned draw_below(uint64_t *state, unsigned bound)
{
    const uint64_t end = UINT64_MAX - UINT64_MAX % bound;
    uint64_t value = draw(state);
    while (value >= end)
        value = draw(state);
    return (unsigned)(value % bound);
}

void decide_live_order(uint64_t seed, uint64_t block, unsigned arms, uint8_t *order)
{
    uint64_t state = mix(mix(seed + golden_gamma) + block);
    for (unsigned i = 0; i < arms; i++)
        order[i] = (uint8_t)i;
    for (unsigned i = arms; i > 1; i--) {
        const unsigned other = draw_below(&state, i);
        const uint8_t arm = order[i - 1];
        order[i - 1] = order[other];
        order[other] = arm;
    }
}

/* ---- Options -----------------------------------------------------------------------------------
 */

/* Not strtoull(): its symbol needs a newer libc on new systems. */
static bool read_number(const char *text, size_t length, uint64_t most, uint64_t *number)
{
    uint64_t result = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(result, 10, &result) ||
            __builtin_add_overflow(result, (uint64_t)(text[i] - '0'), &result))
            return false;
    }
    *number = result;
    return length != 0 && result <= most;
}

static bool read_step(const char *value, struct decide_live_options *options)
{
    static const char kernel[] = "kernel:";
    const char *glob = value + strlen(kernel);
    options->step = DECIDE_LIVE_STEP_GRAPH;
    if (strcmp(value, "graph") == 0)
        return true;
    if (strncmp(value, kernel, strlen(kernel)) != 0 || glob[0] == '\0' ||
        strlen(glob) >= sizeof options->kernel)
        return false;
    options->step = DECIDE_LIVE_STEP_KERNEL;
    memcpy(options->kernel, glob, strlen(glob) + 1);
    return true;
}

static bool read_word(const char *word, size_t length, struct decide_live_options *options)
{
    static const struct {
        const char *key;
        uint64_t most;
    } keys[] = {{"arms=", POLICY_ARM_LIMIT},
                {"seed=", UINT64_MAX},
                {"slice=", INT32_MAX},
                {"drop=", INT32_MAX},
                {"warmup=", INT32_MAX}};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const size_t key_length = strlen(keys[i].key);
        uint64_t number;
        if (length < key_length || strncmp(word, keys[i].key, key_length) != 0)
            continue;
        if (!read_number(word + key_length, length - key_length, keys[i].most, &number))
            return false;
        switch (i) {
        case 0:
            options->arms = (unsigned)number;
            break;
        case 1:
            options->seed = number;
            break;
        case 2:
            options->slice = (uint32_t)number;
            break;
        case 3:
            options->drop = (uint32_t)number;
            break;
        default:
            options->warmup = (uint32_t)number;
            break;
        }
        return true;
    }
    return false;
}

static bool check(const struct decide_live_options *options, bool step, char *error, size_t size)
{
    if (options->arms < 2)
        snprintf(error, size, "arms: it takes at least 2");
    else if (options->slice < 2)
        snprintf(error, size, "slice: it takes at least 2 steps");
    else if (options->drop >= options->slice)
        snprintf(error, size, "drop: all steps of a slice are dropped");
    else if (!step)
        snprintf(error, size, "step is missing: step=graph or step=kernel:GLOB");
    else
        return true;
    return false;
}

bool decide_live_parse(const char *text, struct decide_live_options *options, char *error,
                       size_t size)
{
    bool step = false;
    *options = (struct decide_live_options){0};
    while (!step && *(text += strspn(text, " ")) != '\0') {
        const size_t length = strcspn(text, " ");
        if (strncmp(text, "step=", 5) == 0) {
            step = read_step(text + 5, options);
            if (!step) {
                snprintf(error, size, "\"%.100s\": step=graph or step=kernel:GLOB", text);
                return false;
            }
        } else if (!read_word(text, length, options)) {
            snprintf(error, size, "\"%.*s\" is not understood", (int)(length < 100 ? length : 100),
                     text);
            return false;
        }
        text += length;
    }
    return check(options, step, error, size);
}

/* ---- Steps -------------------------------------------------------------------------------------
 */

void decide_live_options_set(const struct decide_live_options *options)
{
    chosen = options ? *options : (struct decide_live_options){0};
}

static void say(void)
{
    const struct report_live live = {.seed = chosen.seed,
                                     .arms = chosen.arms,
                                     .slice = chosen.slice,
                                     .drop = chosen.drop,
                                     .warm_up = chosen.warmup};
    report_live(&live);
    report_fact("live", "arms", "%u", chosen.arms);
    report_fact("live", "seed", "%llu", (unsigned long long)chosen.seed);
    report_fact("live", "slice", "%u", chosen.slice);
    report_fact("live", "drop", "%u", chosen.drop);
    report_fact("live", "warm_up", "%u", chosen.warmup);
    report_fact("live", "step", "%s%s",
                chosen.step == DECIDE_LIVE_STEP_GRAPH ? "graph" : "kernel:", chosen.kernel);
}

void decide_live_start(void)
{
    decide_live_arms = chosen.arms;
    decide_live_graph_steps = chosen.arms && chosen.step == DECIDE_LIVE_STEP_GRAPH;
    atomic_store_explicit(&steps, 0, memory_order_relaxed);
    if (chosen.arms)
        say();
}

bool decide_live_is_step(const struct kernel_name *name)
{
    return decide_live_arms && chosen.step == DECIDE_LIVE_STEP_KERNEL &&
           kernel_name_matches(name, POLICY_NAME_FORM_NAME, chosen.kernel);
}

static uint8_t arm_of(uint64_t slice)
{
    uint8_t order[POLICY_ARM_LIMIT];
    decide_live_order(chosen.seed, slice / chosen.arms, chosen.arms, order);
    return order[slice % chosen.arms];
}

void decide_live_begin_step(void)
{
    const uint64_t number = atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
    if (number < chosen.warmup) {
        report_step(number, REPORT_SLICE_NONE, 0);
        return;
    }
    const uint64_t slice = (number - chosen.warmup) / chosen.slice;
    const uint8_t arm = arm_of(slice);
    if ((number - chosen.warmup) % chosen.slice == 0)
        report_arm_set(slice + 1, arm);
    report_step(number, slice < REPORT_SLICE_NONE ? (uint32_t)slice : REPORT_SLICE_NONE - 1, arm);
}
