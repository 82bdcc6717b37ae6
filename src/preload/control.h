/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_PRELOAD_CONTROL_H
#define CUDAPOLICY_PRELOAD_CONTROL_H

/*
 * What another process asks of this one through the control word (report.h): another mode, or that
 * the policy be read again.
 *
 * The mode is in the word itself, where every launch sees it. What takes more than that is done by
 * one thread, on its way to a launch, a graph launch or a new stream; the others go on by the rules
 * that they have.
 */

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"
#include "preload/configuration.h"
#include "report/report.h"

enum {
    /* Of a process: what it decided by earlier policies is kept. */
    PRELOAD_RELOAD_LIMIT = 100,
};

/* The generation of the control word that was acted on. Atomic. */
extern uint16_t preload_control_seen __attribute__((visibility("hidden")));

void preload_control_act(void);

/* Before a launch is decided, on every way but the shortest, which notices that the word changed:
 * two loads. */
static inline void preload_control_look(void)
{
    const uint64_t word = __atomic_load_n(&report_control_now()->whole, __ATOMIC_RELAXED);
    const union report_control control = {.whole = word};

    if (__builtin_expect(
            control.part.generation != __atomic_load_n(&preload_control_seen, __ATOMIC_RELAXED), 0))
        preload_control_act();
}

/* Once, when the process's policy is in force; both stay this file's. */
void preload_control_start(struct preload_configuration *configuration,
                           const struct policy *policy);

/* The policy that is in force. */
const struct policy *preload_control_policy(void);

/* In the child after fork, before anything else here. */
void preload_control_after_fork(void);

/* process.c: what the selectors about the process are asked about. */
struct decide_process preload_process_for_decisions(void);

#endif
