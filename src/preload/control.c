/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/control.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "decide/decide.h"
#include "policy/combine.h"
#include "preload/expect.h"
#include "preload/site.h"
#include "report/files.h"
#include "report/log.h"

uint16_t preload_control_seen;

/* Held by the one thread that acts; the others do not wait. */
static bool acting; /* atomic */
static struct preload_configuration *configuration;
static const struct policy *policy; /* atomic */
static unsigned reloads;

/* A process that began by observing has its gate raised for that. */
static bool gate_raised;
static uint8_t mode; /* as acted on */

void preload_control_start(struct preload_configuration *given, const struct policy *first)
{
    configuration = given;
    __atomic_store_n(&policy, first, __ATOMIC_RELEASE);
    mode = (uint8_t)configuration->mode;
    if (configuration->mode == POLICY_MODE_OBSERVE) {
        report_gate_raise(); /* every launch is looked at */
        gate_raised = true;
    }
}

const struct policy *preload_control_policy(void)
{
    return __atomic_load_n(&policy, __ATOMIC_ACQUIRE);
}

void preload_control_after_fork(void)
{
    /* The thread that acted may be none of this process's: it acts anew. */
    if (__atomic_exchange_n(&acting, false, __ATOMIC_RELAXED))
        preload_control_seen--;
}

/* ---- Reading the policy again -------------------------------------------------------------------
 */

static void format_now(char *text, size_t size)
{
    const time_t now = time(NULL);
    struct tm utc;

    if (gmtime_r(&now, &utc) == NULL || strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        text[0] = '\0';
}

static void refuse(const char *error)
{
    char when[32];

    format_now(when, sizeof when);
    report_log(REPORT_LOG_ERROR, "the policy is not read again: %s", error);
    report_note("error", "policy not reloaded at %s: %s", when, error);
    report_fact("policy", "last_reload", "refused at %s: %s", when, error);
}

static void tell(const struct policy *fresh)
{
    const bool needs_restart = preload_expect_reloaded(fresh);
    char when[32];

    format_now(when, sizeof when);
    preload_configuration_policy_facts(configuration, fresh);
    report_log(needs_restart ? REPORT_LOG_WARN : REPORT_LOG_INFO, "policy reloaded from %s%s",
               fresh->path,
               needs_restart ? ", but for its [env], which needs a new start of the program" : "");
    report_note("info", "policy reloaded at %s%s", when,
                needs_restart ? ", but for its [env], which needs a new start of the program" : "");
    report_fact("policy", "last_reload", "done at %s", when);
    report_fact("policy", "reloads", "%u", reloads);
}

/* The mode of the file holds while neither the environment nor another process said one. */
static void adopt_mode(const struct policy *fresh)
{
    const enum policy_mode *asked = configuration->mode_given ? &configuration->asked_mode : NULL;
    const enum policy_mode now = policy_mode_choose(asked, fresh).mode;

    if (now != policy_mode_choose(asked, policy).mode)
        report_control_set_mode((uint8_t)now);
}

static bool reload(void)
{
    const struct decide_process process = preload_process_for_decisions();
    char error[1024] = "";
    struct policy *fresh = NULL;

    if (configuration->reload_path[0] == '\0' && policy->site == NULL)
        snprintf(error, sizeof error, "there is no policy file: CUDAPOLICY_FILE is not set");
    else if (reloads >= PRELOAD_RELOAD_LIMIT)
        snprintf(error, sizeof error, "it was read again %d times, and that is the limit",
                 (int)PRELOAD_RELOAD_LIMIT);
    else
        fresh = preload_policy_again(configuration, error, sizeof error);
    if (fresh == NULL || !decide_reload(fresh, policy, &process, error, sizeof error)) {
        refuse(error);
        return false;
    }
    reloads++;
    adopt_mode(fresh);
    __atomic_store_n(&policy, fresh, __ATOMIC_RELEASE);
    tell(fresh);
    return true;
}

/* ---- Acting ------------------------------------------------------------------------------------
 */

static void answer_reload(void)
{
    struct report_exchange exchange;

    report_exchange_read(&exchange);
    if (exchange.reload_wanted == exchange.reload_answered)
        return;
    report_exchange_answer(exchange.reload_wanted,
                           reload() ? REPORT_RELOAD_DONE : REPORT_RELOAD_REFUSED);
}

/* The report's mode is the last one, and its counts are of all. */
static void note_mode(uint8_t now)
{
    char when[32];

    if (now == mode)
        return;
    mode = now;
    format_now(when, sizeof when);
    report_log(REPORT_LOG_INFO, "the mode is now %s", policy_mode_name((enum policy_mode)now));
    report_note("info", "mode %s since %s%s", policy_mode_name((enum policy_mode)now), when,
                now == POLICY_MODE_OBSERVE
                    ? ": what was decided since is counted as applied, and was not"
                    : "");
}

/* No mode is above the site's ceiling, whoever set it. */
static union report_control lower_mode(union report_control word)
{
    const struct policy_site *site = preload_control_policy()->site;
    enum policy_mode lower = (enum policy_mode)word.part.mode;

    if (site != NULL)
        lower = policy_mode_lower(lower, site->mode_ceiling);
    if (lower == (enum policy_mode)word.part.mode)
        return word;
    report_log(REPORT_LOG_WARN, "the mode stays %s: mode_ceiling in %s:%u", policy_mode_name(lower),
               site->path, (unsigned)site->mode_ceiling_place.line);
    return report_control_lower_mode((uint8_t)lower);
}

/* While the mode is enforce, launches may take their short ways again. */
static void settle_word(union report_control word)
{
    note_mode(word.part.mode);
    if (word.part.mode == POLICY_MODE_ENFORCE) {
        if (gate_raised)
            report_gate_lower();
        gate_raised = false;
        report_control_expect(word);
    }
    report_exchange_acted(word.part.generation);
    __atomic_store_n(&preload_control_seen, word.part.generation, __ATOMIC_RELEASE);
}

void preload_control_act(void)
{
    struct report_quiet quiet;
    union report_control word;

    if (__atomic_exchange_n(&acting, true, __ATOMIC_ACQUIRE))
        return;
    report_quiet_begin(&quiet);
    word.whole = __atomic_load_n(&report_control_now()->whole, __ATOMIC_ACQUIRE);
    answer_reload();
    settle_word(lower_mode(word));
    report_quiet_end(&quiet);
    __atomic_store_n(&acting, false, __ATOMIC_RELEASE);
}
