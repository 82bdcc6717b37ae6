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

/* The numbers, in the order of keys. */
enum { KEY_ARMS, KEY_SEED, KEY_SLICE, KEY_DROP, KEY_WARMUP, KEY_COUNT };

static const struct {
    const char *name;
    uint64_t least, most;
    const char *wanted;
} keys[KEY_COUNT] = {
    [KEY_ARMS] = {"arms", 2, POLICY_ARM_LIMIT, "from 2 to 16 arms can alternate"},
    [KEY_SEED] = {"seed", 0, UINT64_MAX, "a whole number below 2^64"},
    [KEY_SLICE] = {"slice", 2, INT32_MAX, "from 2 to 2147483647 steps"},
    [KEY_DROP] = {"drop", 0, INT32_MAX, "from 0 to 2147483647 steps"},
    [KEY_WARMUP] = {"warmup", 0, INT32_MAX, "from 0 to 2147483647 steps"},
};

_Static_assert((int)POLICY_ARM_LIMIT == 16, "as the message says");

static void take(struct decide_live_options *options, unsigned key, uint64_t number)
{
    switch (key) {
    case KEY_ARMS:
        options->arms = (unsigned)number;
        break;
    case KEY_SEED:
        options->seed = number;
        break;
    case KEY_SLICE:
        options->slice = (uint32_t)number;
        break;
    case KEY_DROP:
        options->drop = (uint32_t)number;
        break;
    default:
        options->warmup = (uint32_t)number;
        break;
    }
}

/* A word, key=number. Each once: of two numbers only one can have been meant. */
static bool read_word(const char *word, size_t length, struct decide_live_options *options,
                      bool *seen, char *error, size_t size)
{
    const int shown = (int)(length < 100 ? length : 100);
    for (unsigned key = 0; key < KEY_COUNT; key++) {
        const size_t name_length = strlen(keys[key].name);
        uint64_t number;
        if (length <= name_length || strncmp(word, keys[key].name, name_length) != 0 ||
            word[name_length] != '=')
            continue;
        if (seen[key]) {
            snprintf(error, size, "\"%.*s\": %s is there twice", shown, word, keys[key].name);
            return false;
        }
        if (!read_number(word + name_length + 1, length - name_length - 1, keys[key].most,
                         &number) ||
            number < keys[key].least) {
            snprintf(error, size, "\"%.*s\": %s", shown, word, keys[key].wanted);
            return false;
        }
        seen[key] = true;
        take(options, key, number);
        return true;
    }
    snprintf(error, size,
             "\"%.*s\" is none of arms=, seed=, slice=, drop=, warmup= and, as the last, step=",
             shown, word);
    return false;
}

static bool check(const struct decide_live_options *options, const bool *seen, bool step,
                  char *error, size_t size)
{
    for (unsigned key = KEY_ARMS; key <= KEY_SLICE; key++) {
        if (!seen[key]) {
            snprintf(error, size, "%s is missing: %s=N, %s", keys[key].name, keys[key].name,
                     keys[key].wanted);
            return false;
        }
    }
    if (options->drop >= options->slice)
        snprintf(error, size, "drop=%u leaves nothing of a slice of %u steps", options->drop,
                 options->slice);
    else if (!step)
        snprintf(error, size, "step is missing: step=graph or step=kernel:GLOB");
    else
        return true;
    return false;
}

bool decide_live_parse(const char *text, struct decide_live_options *options, char *error,
                       size_t size)
{
    bool step = false, seen[KEY_COUNT] = {false};
    *options = (struct decide_live_options){0};
    while (!step && *(text += strspn(text, " ")) != '\0') {
        const size_t length = strcspn(text, " ");
        if (strncmp(text, "step=", 5) == 0) {
            step = read_step(text + 5, options);
            if (!step) {
                snprintf(error, size,
                         "\"%.100s\": step=graph or step=kernel:GLOB, of up to 255 bytes, as the "
                         "last",
                         text);
                return false;
            }
        } else if (!read_word(text, length, options, seen, error, size)) {
            return false;
        }
        text += length;
    }
    return check(options, seen, step, error, size);
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
