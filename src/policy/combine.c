/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/combine.h"

#include <stdlib.h>
#include <string.h>

#include "policy/parser.h"

/* The partitions of one of the two policies in the combined list. */
struct part {
    const struct policy *policy;
    uint16_t moved_to[POLICY_PARTITION_LIMIT]; /* by index in the policy */
};

struct combination {
    struct policy_diagnostics *diagnostics;
    struct policy_owned *owned;
    struct policy_partition *partitions;
    size_t partition_count;
    struct policy_expectation *expectations;
    struct part site, job;
};

static const struct policy_place whole_file = {0, 0};

static bool out_of_memory(struct combination *combination)
{
    policy_diagnose(combination->diagnostics, POLICY_ERROR, whole_file,
                    "out of memory while the policy is combined with the site's");
    return false;
}

/* ---- partitions ----------------------------------------------------------------------------- */

static void add_partition(struct combination *combination, struct part *part,
                          const struct policy_partition *partition)
{
    struct policy_partition *added = &combination->partitions[combination->partition_count];

    *added = *partition;
    added->index = (uint16_t)combination->partition_count++;
    part->moved_to[partition->index] = added->index;
}

static void add_named(struct combination *combination, struct part *part, enum policy_layer layer)
{
    for (size_t i = 0; i < part->policy->partition_count; i++) {
        const struct policy_partition *partition = &part->policy->partitions[i];

        if (partition->named && partition->layer == layer) {
            add_partition(combination, part, partition);
        }
    }
}

/* The partition that is this locality domain already; *second when another is it too, on other
 * devices. */
static const struct policy_partition *find_domain(const struct combination *combination,
                                                  uint32_t number,
                                                  const struct policy_partition **second)
{
    const struct policy_partition *found = NULL;

    *second = NULL;
    for (size_t i = 0; i < combination->partition_count; i++) {
        const struct policy_partition *partition = &combination->partitions[i];

        if (partition->kind != POLICY_PARTITION_LOCALITY_DOMAIN || partition->number != number) {
            continue;
        }
        if (found == NULL) {
            found = partition;
        } else {
            *second = partition;
        }
    }
    return found;
}

static void report_ambiguity(struct combination *combination,
                             const struct policy_partition *partition,
                             const struct policy_partition *first,
                             const struct policy_partition *second)
{
    bool of_job = partition->layer == POLICY_LAYER_JOB;

    policy_diagnose(combination->diagnostics, POLICY_ERROR, of_job ? partition->place : whole_file,
                    "locality_domain: %u, which %s asks for, is [partition %s] and [partition %s], "
                    "each on some devices",
                    (unsigned)partition->number, of_job ? "this rule" : "a rule of the site's file",
                    first->name, second->name);
}

static int compare_domains(const void *left, const void *right)
{
    const struct policy_partition *const *first = left, *const *second = right;

    return (*first)->number < (*second)->number ? -1 : (*first)->number > (*second)->number;
}

/* An unnamed one means the domain, whoever else has it. */
static void settle_unnamed(struct combination *combination, struct part *part,
                           const struct policy_partition *partition)
{
    const struct policy_partition *second;
    const struct policy_partition *found = find_domain(combination, partition->number, &second);

    if (found == NULL) {
        add_partition(combination, part, partition);
        return;
    }
    part->moved_to[partition->index] = found->index;
    if (second != NULL) {
        report_ambiguity(combination, partition, found, second);
    }
}

static void add_unnamed(struct combination *combination)
{
    struct part *const parts[] = {&combination->site, &combination->job};
    const struct policy_partition *unnamed[2 * POLICY_PARTITION_LIMIT];
    size_t count = 0;

    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < parts[p]->policy->partition_count; i++) {
            if (!parts[p]->policy->partitions[i].named) {
                unnamed[count++] = &parts[p]->policy->partitions[i];
            }
        }
    }
    qsort(unnamed, count, sizeof *unnamed, compare_domains);
    for (size_t i = 0; i < count; i++) {
        settle_unnamed(combination, parts[unnamed[i]->layer == POLICY_LAYER_JOB ? 1 : 0],
                       unnamed[i]);
    }
}

/* The checks report the later of two partitions, which is to be the job's. */
static bool check_partitions(struct combination *combination)
{
    struct policy_place *requests = calloc(combination->partition_count + 1, sizeof *requests);
    struct policy_partition *sorted = calloc(combination->partition_count + 1, sizeof *sorted);
    struct policy_parser parser = {.diagnostics = combination->diagnostics,
                                   .partitions = sorted,
                                   .partition_requests = requests};
    bool made = requests != NULL && sorted != NULL;

    for (int of_job = 0; made && of_job <= 1; of_job++) {
        for (size_t i = 0; i < combination->partition_count; i++) {
            if ((combination->partitions[i].layer == POLICY_LAYER_JOB) == (of_job == 1)) {
                requests[parser.partition_count] = combination->partitions[i].place;
                sorted[parser.partition_count++] = combination->partitions[i];
            }
        }
    }
    if (made) {
        policy_check_devices(&parser);
    }
    free(requests);
    free(sorted);
    return made || out_of_memory(combination);
}

static bool combine_partitions(struct combination *combination)
{
    size_t count =
        combination->site.policy->partition_count + combination->job.policy->partition_count;

    combination->partitions = policy_arena_allocate(&combination->owned->arena,
                                                    (count + 1) * sizeof *combination->partitions);
    if (combination->partitions == NULL) {
        return out_of_memory(combination);
    }
    add_named(combination, &combination->site, POLICY_LAYER_LOCKED);
    add_named(combination, &combination->job, POLICY_LAYER_JOB);
    add_named(combination, &combination->site, POLICY_LAYER_DEFAULTS);
    add_unnamed(combination);
    if (combination->partition_count > POLICY_PARTITION_LIMIT) {
        policy_diagnose(combination->diagnostics, POLICY_ERROR, whole_file,
                        "with the site's this policy has %zu partitions; at most %d are allowed",
                        combination->partition_count, (int)POLICY_PARTITION_LIMIT);
        return true;
    }
    return check_partitions(combination);
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void add_rules(struct combination *combination, const struct part *part,
                      enum policy_layer layer, size_t *count)
{
    for (size_t i = 0; i < part->policy->rule_count; i++) {
        const struct policy_rule *from = &part->policy->rules[i];
        struct policy_rule *rule = &combination->owned->rules[*count];
        struct policy_setting_value *partition = &rule->settings[POLICY_SETTING_PARTITION];

        if (from->layer != layer) {
            continue;
        }
        *rule = *from;
        rule->index = (uint16_t)(*count)++;
        if (partition->action == POLICY_ACTION_SET) {
            partition->value.partition = part->moved_to[partition->value.partition];
            partition->partition_name = combination->partitions[partition->value.partition].name;
        }
    }
}

static bool combine_rules(struct combination *combination)
{
    size_t count = combination->site.policy->rule_count + combination->job.policy->rule_count;
    size_t added = 0;

    if (count > POLICY_RULE_LIMIT) {
        policy_diagnose(combination->diagnostics, POLICY_ERROR, whole_file,
                        "with the site's this policy has %zu rules; at most %d are allowed", count,
                        (int)POLICY_RULE_LIMIT);
        return true;
    }
    combination->owned->rules = calloc(count + 1, sizeof *combination->owned->rules);
    if (combination->owned->rules == NULL) {
        return out_of_memory(combination);
    }
    add_rules(combination, &combination->site, POLICY_LAYER_LOCKED, &added);
    add_rules(combination, &combination->job, POLICY_LAYER_JOB, &added);
    add_rules(combination, &combination->site, POLICY_LAYER_DEFAULTS, &added);
    return true;
}

/* Conditions are about rules of their own file, which have other positions now. */
static bool combine_expectations(struct combination *combination)
{
    const struct policy *job = combination->job.policy;
    struct policy_expectation *moved;
    size_t locked = 0;

    moved = policy_arena_allocate(&combination->owned->arena,
                                  (job->expectation_count + 1) * sizeof *moved);
    if (moved == NULL) {
        return out_of_memory(combination);
    }
    while (combination->owned->rules[locked].name != NULL &&
           combination->owned->rules[locked].layer == POLICY_LAYER_LOCKED) {
        locked++;
    }
    for (size_t i = 0; i < job->expectation_count; i++) {
        moved[i] = job->expectations[i];
        moved[i].rule = (uint16_t)(moved[i].rule + locked);
    }
    combination->expectations = moved;
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void finish(struct combination *combination, struct policy *site, struct policy *job)
{
    struct policy_owned *owned = combination->owned;

    owned->policy = *job;
    owned->policy.site = site->site;
    owned->policy.rules = owned->rules;
    owned->policy.rule_count = site->rule_count + job->rule_count;
    owned->policy.expectations = combination->expectations;
    owned->policy.partitions = combination->partitions;
    owned->policy.partition_count = combination->partition_count;
    owned->parts[0] = site;
    owned->parts[1] = job;
}

struct policy *policy_combine(struct policy *site, struct policy *job,
                              struct policy_diagnostics *diagnostics)
{
    struct combination combination = {.diagnostics = diagnostics,
                                      .site.policy = site,
                                      .job.policy = job,
                                      .owned = calloc(1, sizeof(struct policy_owned))};
    size_t errors = diagnostics->error_count;

    if (diagnostics->file == NULL) {
        diagnostics->file = strdup(job->path);
    }
    if (combination.owned == NULL) {
        out_of_memory(&combination);
        return NULL;
    }
    if (combine_partitions(&combination) && diagnostics->error_count == errors &&
        combine_rules(&combination) && diagnostics->error_count == errors &&
        combine_expectations(&combination)) {
        finish(&combination, site, job);
        if (!diagnostics->errors_only) {
            policy_check_shadows_of_site(combination.owned->rules,
                                         combination.owned->policy.rule_count, diagnostics);
        }
        return &combination.owned->policy;
    }
    policy_free(&combination.owned->policy);
    policy_diagnostics_sort(diagnostics);
    return NULL;
}

/* ---- the mode ------------------------------------------------------------------------------- */

struct policy_mode_choice policy_mode_choose(const enum policy_mode *environment,
                                             const struct policy *policy)
{
    const struct policy_site *site = policy->site;
    struct policy_mode_choice choice = {.wanted = POLICY_MODE_ENFORCE,
                                        .source = POLICY_MODE_BUILT_IN};

    if (environment != NULL) {
        choice = (struct policy_mode_choice){.wanted = *environment,
                                             .source = POLICY_MODE_FROM_ENVIRONMENT};
    } else if (policy->mode_given) {
        choice =
            (struct policy_mode_choice){.wanted = policy->mode, .source = POLICY_MODE_FROM_JOB};
    } else if (site != NULL && site->mode_given) {
        choice = (struct policy_mode_choice){.wanted = site->mode, .source = POLICY_MODE_FROM_SITE};
    }
    choice.mode =
        site != NULL ? policy_mode_lower(choice.wanted, site->mode_ceiling) : choice.wanted;
    return choice;
}
