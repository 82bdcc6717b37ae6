/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration, start and end of the process.
 *
 * Nothing happens in a process that never asks for a CUDA function: the environment is read at the
 * first such request. The order then: environment, policy, decision engine, report. No loader call
 * is made here, and the one lock is a once that only this file waits on.
 */
#include "preload/preload.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decide/decide.h"
#include "decide/live.h"
#include "place/partition.h"
#include "policy/combine.h"
#include "policy/policy.h"
#include "preload/configuration.h"
#include "preload/control.h"
#include "preload/expect.h"
#include "preload/site.h"
#include "report/log.h"
#include "report/report.h"

enum {
    EXIT_STRICT = 78, /* EX_CONFIG of sysexits.h */
    STARTING = 3,     /* a state besides enum preload_state, while a thread decides */
    STATE_BITS = 8,   /* above them, while STARTING, the process that the thread belongs to */
};

static uint64_t state = PRELOAD_UNDECIDED; /* atomic */
static struct preload_configuration configuration;

struct decide_process preload_process_for_decisions(void)
{
    return (struct decide_process){
        .rank = configuration.rank.rank,
        .local_rank = configuration.rank.local_rank,
        .world_size = configuration.rank.world_size,
        .host = configuration.host,
    };
}

/* Rehearsal is not the real thing, and must not be taken for it. */
static void start_decisions(const struct policy *policy)
{
    const struct decide_process process = preload_process_for_decisions();

    place_start(policy, configuration.fake_domains, decide_partition_is_on);
    decide_live_options_set(&configuration.live);
    decide_start(policy, &process, configuration.mode);
    if (configuration.fake_domains == 0)
        return;
    report_log_once(REPORT_LOG_WARN,
                    "CUDAPOLICY_FAKE_LOCALITY_DOMAINS=%u: parts of each device stand for "
                    "locality domains; this is a rehearsal",
                    configuration.fake_domains);
    report_note("warning", "rehearsal: %u parts of each device stand for locality domains",
                configuration.fake_domains);
}

/* The user's place comes first: there the counters are kept while the process runs. */
static const char *report_path(void)
{
    if (configuration.report_path[0] != '\0')
        return configuration.report_path;
    return configuration.site_report_path[0] != '\0' ? configuration.site_report_path : NULL;
}

static const char *report_copy_path(void)
{
    const char *copy = configuration.site_report_path;

    if (configuration.report_path[0] == '\0' || copy[0] == '\0' ||
        strcmp(configuration.report_path, copy) == 0)
        return NULL;
    return copy;
}

static void start_report(const struct policy *policy)
{
    static const char *setting_names[POLICY_SETTING_COUNT];
    static const char *entry_names[PRELOAD_ENTRY_COUNT];
    static const char *const mode_names[] = {"enforce", "observe", "off"};
    struct report_rule_name *rules = calloc(policy->rule_count + 1, sizeof *rules);
    struct report_start start = {
        .path = report_path(),
        .unasked = configuration.report_path[0] == '\0',
        .setting_names = setting_names,
        .setting_count = POLICY_SETTING_COUNT,
        .rules = rules,
        .rule_count = rules != NULL ? policy->rule_count : 0,
        .entry_names = entry_names,
        .entry_count = PRELOAD_ENTRY_COUNT,
        .mode = (uint8_t)configuration.mode,
        .mode_names = mode_names,
        .mode_count = sizeof mode_names / sizeof mode_names[0],
    };

    for (unsigned i = 0; i < POLICY_SETTING_COUNT; i++)
        setting_names[i] = policy_setting_key((enum policy_setting)i);
    for (unsigned i = 0; i < PRELOAD_ENTRY_COUNT; i++)
        entry_names[i] = preload_entry_info[i].symbol;
    for (size_t i = 0; i < start.rule_count; i++)
        rules[i] = decide_rule_name(policy, &policy->rules[i]);
    report_start(&start);
    report_copy(report_copy_path());
    preload_configuration_facts(&configuration, policy);
}

/* The child has its own rank where its launcher gave it one, its own process id, and no counters.
 */
static void child_after_fork(void)
{
    const struct policy *policy = preload_control_policy();

    preload_control_after_fork();
    preload_resolve_after_fork();
    preload_configuration_in_child(&configuration);
    report_after_fork(report_path());
    report_copy(report_copy_path());
    start_decisions(policy);
    preload_facts_again();
    preload_configuration_facts(&configuration, policy);
    preload_expect_in_child();
}

static void start_log(void)
{
    static bool started;

    if (started)
        return;
    started = true;
    report_log_start(configuration.log_level,
                     configuration.log_path[0] != '\0' ? configuration.log_path : NULL);
}

/* Of a process that is left alone only who wants to know is told. */
static void start_log_for_information(void)
{
    if (configuration.log_level >= REPORT_LOG_INFO)
        start_log();
}

/* A user who asked for a mode is to know that it is another. One rank speaks for all. */
static void choose_mode(const struct policy *policy)
{
    const struct policy_mode_choice choice =
        policy_mode_choose(configuration.mode_given ? &configuration.asked_mode : NULL, policy);
    const bool asked =
        choice.source == POLICY_MODE_FROM_ENVIRONMENT || choice.source == POLICY_MODE_FROM_JOB;

    configuration.mode = choice.mode;
    if (choice.mode == choice.wanted)
        return;
    report_log(asked && configuration.rank.rank <= 0 ? REPORT_LOG_WARN : REPORT_LOG_INFO,
               "the mode is %s instead of %s: mode_ceiling in %s:%u", policy_mode_name(choice.mode),
               policy_mode_name(choice.wanted), policy->site->path,
               (unsigned)policy->site->mode_ceiling_place.line);
}

/* The policy that is to hold; NULL: the process is left alone. error: what is wrong with the job's.
 */
static const struct policy *start_policy(char *error, size_t size)
{
    struct policy *site, *policy;

    preload_configuration_read(&configuration);
    if (configuration.mode_given && configuration.asked_mode == POLICY_MODE_OFF)
        return NULL;
    site = preload_site_read(start_log, NULL, 0);
    if (site != NULL)
        preload_configuration_use_site(&configuration, site->site);
    if ((site != NULL && preload_site_leaves_alone(site, start_log_for_information)) ||
        (configuration.policy_path == NULL && configuration.report_path[0] == '\0' &&
         (site == NULL || !policy_site_asks(site)))) {
        policy_free(site);
        return NULL;
    }
    start_log();
    preload_configuration_complain(&configuration);
    policy = preload_policy_start(&configuration, site, error, size);
    if (configuration.strict && (error[0] != '\0' || configuration.has_errors))
        _exit(EXIT_STRICT);
    if (error[0] != '\0')
        report_log(REPORT_LOG_ERROR, policy == NULL ? "the program runs without a policy"
                                                    : "the program runs under the site's rules "
                                                      "alone");
    if (policy != NULL)
        choose_mode(policy);
    return policy != NULL && configuration.mode != POLICY_MODE_OFF ? policy : NULL;
}

static enum preload_state start(void)
{
    char error[512] = "";
    const struct policy *policy = start_policy(error, sizeof error);

    if (policy == NULL)
        return PRELOAD_PASSIVE;
    start_report(policy);
    if (error[0] != '\0')
        report_note("error", "the job's policy is not applied: %s", error);
    decide_library_of = preload_library;
    start_decisions(policy);
    preload_control_start(&configuration, policy);
    preload_expect_start(&configuration, policy);
    if (pthread_atfork(NULL, NULL, child_after_fork) != 0)
        report_log(REPORT_LOG_WARN, "no memory for the fork handler: children share one report");
    return PRELOAD_ACTIVE;
}

static uint64_t starting(void)
{
    return STARTING | (uint64_t)getpid() << STATE_BITS;
}

/* Whether this thread is the one to decide: the first to come by, or, in a child that was forked
 * while another thread of its parent decided, the first there, since nobody else is left to do it.
 */
static bool take_start(uint64_t *present)
{
    const bool forked = (*present & ((1 << STATE_BITS) - 1)) == STARTING && *present != starting();

    if (*present != PRELOAD_UNDECIDED && !forked)
        return false;
    if (!__atomic_compare_exchange_n(&state, present, starting(), false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return false;
    if (forked) {
        preload_resolve_after_fork();
        report_after_fork(NULL);
    }
    return true;
}

enum preload_state preload_process_state(void)
{
    uint64_t present = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    int saved_errno;

    if (__builtin_expect(present == PRELOAD_PASSIVE || present == PRELOAD_ACTIVE, 1))
        return (enum preload_state)present;
    while (!take_start(&present)) {
        /* Another thread decides; it needs no lock that this one may hold. */
        sched_yield();
        present = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
        if (present == PRELOAD_PASSIVE || present == PRELOAD_ACTIVE)
            return (enum preload_state)present;
    }
    saved_errno = errno;
    present = start();
    errno = saved_errno;
    __atomic_store_n(&state, present, __ATOMIC_RELEASE);
    return (enum preload_state)present;
}

void preload_not_attached(const char *reason)
{
    report_log_once(REPORT_LOG_ERROR, "not attached: %s", reason);
    report_note("error", "not attached: %s", reason);
    if (configuration.strict)
        _exit(EXIT_STRICT);
}

static int find_driver(struct dl_phdr_info *object, size_t size, void *found)
{
    const char *slash = strrchr(object->dlpi_name, '/');

    (void)size;
    if (strncmp(slash != NULL ? slash + 1 : object->dlpi_name, "libcuda.so", 10) == 0)
        *(bool *)found = true;
    return *(bool *)found ? 1 : 0;
}

/* A process that has the driver and never asked for one of the functions here launched nothing, or
 * was not reached: by a library that was loaded with RTLD_DEEPBIND. Only for who asks for such
 * detail. */
static void say_not_reached(void)
{
    bool found = false;

    dl_iterate_phdr(find_driver, &found);
    if (!found)
        return;
    preload_configuration_read(&configuration);
    if ((configuration.mode_given && configuration.asked_mode == POLICY_MODE_OFF) ||
        configuration.log_level < REPORT_LOG_INFO)
        return;
    start_log();
    report_log(REPORT_LOG_INFO, "libcuda is loaded, but none of its functions was asked for here: "
                                "nothing was launched, or it was not reached (RTLD_DEEPBIND)");
}

/* Among the last of the process's own code: no CUDA call. */
static __attribute__((destructor)) void process_ends(void)
{
    const uint64_t present = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

    if (present == PRELOAD_ACTIVE)
        report_finish();
    else if (present == PRELOAD_UNDECIDED)
        say_not_reached();
}
