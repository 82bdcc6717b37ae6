/* SPDX-License-Identifier: Apache-2.0 */

/* Partitions and the rules that use them: which partition a rule means, the unnamed ones, and what
 * is wrong with them together. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/hint.h"
#include "policy/parser.h"

/* ---- which partition is meant -----------------------------------------------------------------
 */

/* A partition whose name was refused is called "?", which no good name can be. */
static void report_duplicates(const struct policy_parser *parser)
{
    for (size_t i = 1; i < parser->partition_count; i++) {
        const struct policy_partition *second = &parser->partitions[i];

        for (size_t j = 0; j < i && strcmp(second->name, "?") != 0; j++) {
            const struct policy_partition *first = &parser->partitions[j];

            if (strcmp(first->name, second->name) == 0) {
                policy_diagnose(parser->diagnostics, POLICY_ERROR, second->place,
                                "second [partition %s]; the first is in line %u", first->name,
                                (unsigned)first->place.line);
                break;
            }
        }
    }
}

static struct policy_partition *find_name(const struct policy_parser *parser, const char *name)
{
    for (size_t i = 0; i < parser->partition_count; i++) {
        if (strcmp(parser->partitions[i].name, name) == 0) {
            return &parser->partitions[i];
        }
    }
    return NULL;
}

/* The first one from the index on. */
static struct policy_partition *find_domain(const struct policy_parser *parser, size_t from,
                                            uint32_t number)
{
    for (size_t i = from; i < parser->partition_count; i++) {
        struct policy_partition *partition = &parser->partitions[i];

        if (partition->kind == POLICY_PARTITION_LOCALITY_DOMAIN && partition->number == number) {
            return partition;
        }
    }
    return NULL;
}

static void report_name(const struct policy_parser *parser,
                        const struct policy_partition_reference *reference)
{
    const char *candidates[POLICY_PARTITION_LIMIT];
    struct policy_quotation quotation;
    struct policy_hint hint;

    for (size_t i = 0; i < parser->partition_count; i++) {
        candidates[i] = parser->partitions[i].name;
    }
    policy_diagnose(parser->diagnostics, POLICY_ERROR, reference->place,
                    "partition: there is no [partition %s] in this policy%s",
                    policy_quote(&quotation, reference->name, strlen(reference->name)),
                    policy_hint(&hint, reference->name, candidates, parser->partition_count));
}

/* Named partitions of one domain, on different devices: the rule has to say which. */
static void report_ambiguity(const struct policy_parser *parser,
                             const struct policy_partition_reference *reference,
                             const struct policy_partition *first,
                             const struct policy_partition *second)
{
    policy_diagnose(parser->diagnostics, POLICY_ERROR, reference->place,
                    "locality_domain: %u is [partition %s], line %u, and [partition %s], line %u; "
                    "name one of them",
                    (unsigned)reference->number, first->name, (unsigned)first->place.line,
                    second->name, (unsigned)second->place.line);
}

/* ---- unnamed partitions -----------------------------------------------------------------------
 */

static void add_unnamed(struct policy_parser *parser,
                        const struct policy_partition_reference *reference)
{
    struct policy_place place =
        parser->rules[reference->rule].settings[POLICY_SETTING_PARTITION].place;
    char name[32];
    int length = snprintf(name, sizeof name, "locality_domain=%u", (unsigned)reference->number);
    const char *copy = policy_arena_copy(&parser->arena, name, (size_t)length);

    if (copy == NULL) {
        parser->out_of_memory = true;
        return;
    }
    struct policy_partition *partition = policy_parser_add_partition(parser, place, place);
    if (partition != NULL) {
        *partition = (struct policy_partition){.name = copy,
                                               .kind = POLICY_PARTITION_LOCALITY_DOMAIN,
                                               .layer = parser->rules[reference->rule].layer,
                                               .number = reference->number,
                                               .place = place};
    }
}

static int compare_numbers(const void *left, const void *right)
{
    const struct policy_partition *first = left, *second = right;

    return first->number < second->number ? -1 : first->number > second->number;
}

/* One for each domain that a rule asks for and no section is. */
static void add_all_unnamed(struct policy_parser *parser)
{
    size_t named = parser->partition_count;

    for (size_t i = 0; i < parser->partition_reference_count; i++) {
        const struct policy_partition_reference *reference = &parser->partition_references[i];

        if (reference->name == NULL && find_domain(parser, 0, reference->number) == NULL) {
            add_unnamed(parser, reference);
        }
        if (parser->stopped || parser->out_of_memory) {
            return;
        }
    }
    if (parser->partition_count > named) {
        qsort(parser->partitions + named, parser->partition_count - named,
              sizeof *parser->partitions, compare_numbers);
    }
    for (size_t i = named; i < parser->partition_count; i++) {
        parser->partitions[i].index = (uint16_t)i;
        parser->partition_requests[i] = parser->partitions[i].place;
    }
}

/* ---- rules ------------------------------------------------------------------------------------
 */

static const struct policy_partition *find(const struct policy_parser *parser,
                                           const struct policy_partition_reference *reference)
{
    const struct policy_partition *found, *other = NULL;

    if (reference->name != NULL) {
        found = find_name(parser, reference->name);
        if (found == NULL && parser->diagnostics->error_count < POLICY_DIAGNOSTIC_LIMIT) {
            report_name(parser, reference);
        }
        return found;
    }
    found = find_domain(parser, 0, reference->number);
    if (found != NULL) {
        other = find_domain(parser, (size_t)found->index + 1, reference->number);
    }
    if (other != NULL) {
        report_ambiguity(parser, reference, found, other);
    }
    return other == NULL ? found : NULL;
}

static void check_cluster(const struct policy_rule *rule, enum policy_setting setting,
                          const struct policy_partition *partition,
                          struct policy_diagnostics *diagnostics)
{
    const struct policy_setting_value *cluster = &rule->settings[setting];
    char line[64];
    uint64_t blocks;

    if (cluster->action != POLICY_ACTION_SET) {
        return;
    }
    /* Their product is an int32_t: that was checked when the value was read. */
    blocks = (uint64_t)cluster->value.cluster_dim.x * cluster->value.cluster_dim.y *
             cluster->value.cluster_dim.z;
    policy_setting_line(setting, cluster, line, sizeof line);
    if (partition->backfill && blocks > 1) {
        policy_diagnose(diagnostics, POLICY_ERROR, cluster->place,
                        "%s on [partition %s], line %u, which has backfill = yes: SMs that are "
                        "not scheduled together hold no cluster",
                        line, partition->name, (unsigned)partition->place.line);
    } else if (partition->coscheduled_sm_count != 0 && blocks > partition->coscheduled_sm_count) {
        policy_diagnose(diagnostics, POLICY_ERROR, cluster->place,
                        "%s on [partition %s], line %u, which has coscheduled_sm_count = %u: the "
                        "%u blocks of a cluster need as many SMs that are scheduled together",
                        line, partition->name, (unsigned)partition->place.line,
                        (unsigned)partition->coscheduled_sm_count, (unsigned)blocks);
    }
}

static void settle(struct policy_parser *parser, bool *used)
{
    for (size_t i = 0; i < parser->partition_reference_count; i++) {
        const struct policy_partition_reference *reference = &parser->partition_references[i];
        struct policy_rule *rule = &parser->rules[reference->rule];
        const struct policy_partition *partition = find(parser, reference);

        if (partition != NULL) {
            used[partition->index] = true;
            rule->settings[POLICY_SETTING_PARTITION].value.partition = partition->index;
            rule->settings[POLICY_SETTING_PARTITION].partition_name = partition->name;
            check_cluster(rule, POLICY_SETTING_CLUSTER_DIM, partition, parser->diagnostics);
            check_cluster(rule, POLICY_SETTING_PREFERRED_CLUSTER_DIM, partition,
                          parser->diagnostics);
        }
    }
}

/* Whether some line of [tune] may send work there: those are read only after this. */
static bool may_be_tried(const struct policy_parser *parser, const char *name)
{
    for (size_t i = 0; i < parser->variation_text_count; i++) {
        if (strstr(parser->variation_texts[i].text, name) != NULL) {
            return true;
        }
    }
    return false;
}

static void warn_unused(const struct policy_parser *parser, const bool *used)
{
    for (size_t i = 0; i < parser->partition_count; i++) {
        if (!used[i] && !may_be_tried(parser, parser->partitions[i].name)) {
            policy_diagnose(parser->diagnostics, POLICY_WARNING, parser->partitions[i].place,
                            "no rule uses [partition %s]: its SMs are set aside for nothing",
                            parser->partitions[i].name);
        }
    }
}

void policy_relate_partitions(struct policy_parser *parser)
{
    bool used[POLICY_PARTITION_LIMIT] = {false};

    report_duplicates(parser);
    add_all_unnamed(parser);
    if (parser->stopped || parser->out_of_memory) {
        return;
    }
    settle(parser, used);
    policy_check_devices(parser);
    if (parser->diagnostics->error_count == parser->errors_before &&
        !parser->diagnostics->errors_only) {
        warn_unused(parser, used);
    }
}
