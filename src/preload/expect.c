/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/expect.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decide/expect.h"
#include "policy/environment.h"
#include "policy/expect.h"
#include "report/json.h"
#include "report/log.h"
#include "report/report.h"

static const struct preload_configuration *configuration;
static const struct policy *first;  /* whose [env] the process may have been started with */
static const struct policy *policy; /* atomic */

/* ---- [env] --------------------------------------------------------------------------------------
 */

/* Whether the variable is as the policy wants it; what became of it goes into the report. */
static bool note_variable(const struct policy_variable *variable)
{
    const char *present = secure_getenv(variable->name);
    const bool observing = configuration->mode != POLICY_MODE_ENFORCE;

    switch (policy_variable_state(variable, present)) {
    case POLICY_VARIABLE_APPLIED:
        report_fact("env", variable->name, "applied");
        return true;
    case POLICY_VARIABLE_KEPT:
        report_fact("env", variable->name, "kept: %s", present);
        return true;
    case POLICY_VARIABLE_MISSING:
        report_fact("env", variable->name, "missing%s", observing ? ", since observing" : "");
        return observing;
    case POLICY_VARIABLE_NOT_REPLACED:
        report_fact("env", variable->name, "not replaced%s: %s",
                    observing ? ", since observing" : "", present);
        return observing;
    }
    return true;
}

/* The names of those that are not as wanted; their number. */
static size_t note_variables(char *names, size_t size)
{
    size_t length = 0, count = 0;

    names[0] = '\0';
    for (size_t i = 0; i < first->variable_count; i++) {
        if (note_variable(&first->variables[i]))
            continue;
        if (length < size)
            length += (size_t)snprintf(names + length, size - length, "%s%s", count > 0 ? ", " : "",
                                       first->variables[i].name);
        count++;
    }
    return count;
}

/* All ranks of a job mostly have one environment: one of them says it. */
static void check_variables(void)
{
    char names[512];
    const size_t count = note_variables(names, sizeof names);

    if (count == 0)
        return;
    report_log(configuration->rank.rank > 0 ? REPORT_LOG_INFO : REPORT_LOG_WARN,
               "[env] of the policy was not applied: %s %s not as it says. Variables have to be "
               "set before the program starts: by cudapolicy run, the Slurm plugin or yourself",
               names, count == 1 ? "is" : "are");
    report_note("warning", "[env] of the policy was not applied: %s", names);
}

/* ---- [expect] -----------------------------------------------------------------------------------
 */

static void say_broken(const struct policy *expecting, const struct policy_expectation *expectation,
                       int64_t count)
{
    const struct preload_rank *rank = &configuration->rank;
    char condition[POLICY_EXPECTATION_TEXT_SIZE], who[64] = "";

    if (rank->source != NULL && rank->rank >= 0)
        snprintf(who, sizeof who, "rank %lld: ", (long long)rank->rank);
    report_log(REPORT_LOG_WARN, "%sexpectation broken: %s, and it was %lld (%s:%u)", who,
               policy_expectation_text(expecting, expectation, condition, sizeof condition),
               (long long)count, expecting->path, (unsigned)expectation->place.line);
}

/* At the end of the process, with its finished report. */
static void judge(json_t *report)
{
    const struct policy *expecting = __atomic_load_n(&policy, __ATOMIC_ACQUIRE);
    json_t *judgements = json_array();

    for (size_t i = 0; i < expecting->expectation_count; i++) {
        const struct policy_expectation *expectation = &expecting->expectations[i];
        const struct decide_judgement judgement =
            decide_expect_judge(expecting, expectation, report);

        json_array_append_new(judgements, decide_expect_json(expecting, expectation, &judgement));
        if (judgement.asked && !judgement.held)
            say_broken(expecting, expectation, judgement.count);
    }
    json_object_set_new(report, "expectations", judgements);
}

static void expect(const struct policy *now)
{
    __atomic_store_n(&policy, now, __ATOMIC_RELEASE);
    report_completing(now->expectation_count > 0 ? judge : NULL);
}

/* ---- Both ---------------------------------------------------------------------------------------
 */

void preload_expect_start(const struct preload_configuration *given, const struct policy *started)
{
    configuration = given;
    first = started;
    check_variables();
    expect(started);
}

void preload_expect_in_child(void)
{
    char names[512];

    note_variables(names, sizeof names);
}

bool preload_expect_reloaded(const struct policy *fresh)
{
    const bool differs = !policy_variables_same(fresh, first);

    expect(fresh);
    report_fact("policy", "needs_restart", "%s",
                differs ? "[env] is not as it was when the program was started" : "");
    return differs;
}
