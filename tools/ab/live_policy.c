/* SPDX-License-Identifier: Apache-2.0 */

/* The policy of a live comparison: the rules of all arms. */

#include "live.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "policy/parser.h"
#include "policy/policy.h"
#include "policy/print.h"
#include "policy_input.h"

static const char needs_process_arms[] = "this needs process arms: ab without --live";

struct writer {
    FILE *stream;
    const struct ab_arm *arm;
    int64_t number;
    const struct policy *policy;
    char *error;
    size_t size;
};

static bool refuse(const struct writer *writer, struct policy_place place, const char *reason)
{
    snprintf(writer->error, writer->size, "%s:%u:%u: %s; %s", writer->policy->path,
             (unsigned)place.line, (unsigned)place.column, reason, needs_process_arms);
    return false;
}

static bool has_settings(const struct policy_rule *rule)
{
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (rule->settings[setting].action != POLICY_ACTION_ABSENT) {
            return true;
        }
    }
    return false;
}

static char *named(const struct writer *writer, const char *name)
{
    char *arm = memory_copy(writer->arm->name), *both;
    bool changed = false;

    /* An arm may be called what no rule can: its number then tells it from others. */
    for (char *byte = arm; *byte != '\0'; byte++) {
        if (!isalnum((unsigned char)*byte) && strchr("._+-", *byte) == NULL) {
            *byte = '-';
            changed = true;
        }
    }
    both = changed ? memory_format("%s-%" PRId64 "/%s", arm, writer->number, name)
                   : memory_format("%s/%s", arm, name);
    free(arm);
    return both;
}

static bool write_rule(const struct writer *writer, const struct policy_rule *rule)
{
    const struct policy_range range = {writer->number, writer->number};
    const size_t count = rule->selectors.stream.count;
    char **streams = memory_allocate(count + 1, sizeof *streams);
    struct policy_rule copy = *rule;
    char *name = named(writer, rule->name);
    bool fits = strlen(name) <= POLICY_RULE_NAME_LIMIT;

    copy.name = name;
    for (size_t i = 0; i < count; i++) {
        streams[i] = named(writer, rule->selectors.stream.patterns[i]);
    }
    copy.selectors.stream.patterns = (const char *const *)streams;
    if (rule->section == POLICY_SECTION_KERNEL) {
        copy.selectors.arm = (struct policy_ranges){.count = 1, .ranges = &range};
    }
    if (fits) {
        fputc('\n', writer->stream);
        policy_rule_print(writer->stream, &copy);
    } else {
        snprintf(writer->error, writer->size,
                 "%s:%u: the rule's name with that of its arm, '%s', is "
                 "longer than %d bytes",
                 writer->policy->path, (unsigned)rule->place.line, name,
                 (int)POLICY_RULE_NAME_LIMIT);
    }
    for (size_t i = 0; i < count; i++) {
        free(streams[i]);
    }
    free(streams);
    free(name);
    return fits;
}

static bool write_arm(const struct writer *writer)
{
    const struct policy *policy = writer->policy;

    if (policy->mode != POLICY_MODE_ENFORCE) {
        return true; /* an arm that changes nothing has no rule */
    }
    if (policy->variable_count > 0) {
        return refuse(writer, policy->variables[0].place,
                      "[env] holds from the start of the program on, in all arms");
    }
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct policy_rule *rule = &policy->rules[i];

        if (rule->section == POLICY_SECTION_STREAM && has_settings(rule)) {
            return refuse(writer, rule->place,
                          "a stream gets its settings when it is created, and keeps them in all "
                          "arms");
        }
        if (rule->settings[POLICY_SETTING_PARTITION].action == POLICY_ACTION_SET) {
            return refuse(writer, rule->settings[POLICY_SETTING_PARTITION].place,
                          "a partition cannot change while a program runs");
        }
        if (rule->selectors.arm.count != 0) {
            snprintf(writer->error, writer->size,
                     "%s:%u: [kernel %s] has an arm already: a policy of a live comparison is no "
                     "arm of another one",
                     policy->path, (unsigned)rule->place.line, rule->name);
            return false;
        }
        if (!write_rule(writer, rule)) {
            return false;
        }
    }
    return true;
}

static bool add_arm(struct writer *writer)
{
    struct policy *policy;
    bool written;

    if (writer->arm->kind != AB_ARM_POLICY) {
        return true;
    }
    policy = policy_input_require(writer->arm->policy, false, NULL);
    if (policy == NULL) {
        snprintf(writer->error, writer->size, "the policy '%s' does not load", writer->arm->policy);
        return false;
    }
    writer->policy = policy;
    written = write_arm(writer);
    policy_free(policy);
    return written;
}

char *ab_live_policy(const struct ab_experiment *experiment, char *error, size_t size)
{
    char *text = NULL;
    size_t length = 0;
    struct writer writer = {.stream = open_memstream(&text, &length), .error = error, .size = size};
    bool written = writer.stream != NULL;

    if (experiment->arm_count > POLICY_ARM_LIMIT) {
        snprintf(error, size, "%zu arms, with the baseline again; at most %d can alternate",
                 experiment->arm_count, (int)POLICY_ARM_LIMIT);
        written = false;
    }
    if (written) {
        fputs("[policy]\nversion = 1\n", writer.stream);
    }
    for (size_t i = 0; i < experiment->arm_count && written; i++) {
        writer.arm = &experiment->arms[i];
        writer.number = (int64_t)i;
        written = add_arm(&writer);
    }
    if (writer.stream != NULL && fclose(writer.stream) != 0) {
        written = false;
    }
    if (!written) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Behind the arm's name comes "/", or "-", the number and "/" where the name has characters that no
 * rule can have: they are '-' then. */
bool ab_live_rule_is_of(const char *rule, const struct ab_arm *arm, size_t number)
{
    const size_t length = strlen(arm->name);
    const char *rest = rule + length;
    bool changed = false;

    for (size_t i = 0; i < length; i++) {
        if (rule[i] == arm->name[i] && rule[i] != '\0') {
            continue;
        }
        if (rule[i] != '-') {
            return false;
        }
        changed = true;
    }
    if (changed) {
        char *end;

        return rest[0] == '-' && strtoull(rest + 1, &end, 10) == number && *end == '/';
    }
    return rest[0] == '/';
}

char *ab_live_variable(const struct ab_live_plan *plan, size_t arms)
{
    return memory_format("arms=%zu seed=%" PRIu64 " slice=%" PRIu32 " drop=%" PRIu32
                         " warmup=%" PRIu32 " step=%s%s",
                         arms, plan->seed, plan->slice, plan->drop, plan->warm_up,
                         plan->step_kernel != NULL ? "kernel:" : "graph",
                         plan->step_kernel != NULL ? plan->step_kernel : "");
}
