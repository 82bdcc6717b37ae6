/* SPDX-License-Identifier: Apache-2.0 */

/* What can be said of one rule by itself: contradictions, and what cannot have an effect. */

#include <string.h>

#include "policy/parser.h"

enum {
    COVER_STEP_LIMIT = 100 * 1000, /* for one rule; beyond it nothing is proved */
};

bool policy_key_given(const struct policy_rule_builder *builder, enum policy_key key)
{
    return builder->key_place[key].line != 0;
}

static enum policy_action action(const struct policy_rule_builder *builder,
                                 enum policy_setting setting)
{
    return builder->rule.settings[setting].action;
}

static struct policy_place setting_place(const struct policy_rule_builder *builder,
                                         enum policy_setting setting)
{
    return builder->rule.settings[setting].place;
}

struct policy_place policy_later_place(const struct policy_rule_builder *builder,
                                       enum policy_key left, enum policy_key right)
{
    struct policy_place first = builder->key_place[left], second = builder->key_place[right];

    return second.line > first.line ? second : first;
}

/* ---- contradictions: errors ----------------------------------------------------------------- */

static void check_domains(const struct policy_rule_builder *builder,
                          struct policy_diagnostics *diagnostics)
{
    if (policy_key_given(builder, POLICY_KEY_MEM_SYNC_DOMAIN_MAP) &&
        policy_key_given(builder, POLICY_KEY_PHYSICAL_DOMAIN)) {
        policy_diagnose(
            diagnostics, POLICY_ERROR,
            policy_later_place(builder, POLICY_KEY_MEM_SYNC_DOMAIN_MAP, POLICY_KEY_PHYSICAL_DOMAIN),
            "mem_sync_domain_map and physical_domain in one rule: both set the map; "
            "physical_domain = N is short for mem_sync_domain_map = N N");
    }
}

static void check_preferred_cluster(const struct policy_rule_builder *builder,
                                    struct policy_diagnostics *diagnostics)
{
    const struct policy_setting_value *cluster =
        &builder->rule.settings[POLICY_SETTING_CLUSTER_DIM];
    const struct policy_setting_value *preferred =
        &builder->rule.settings[POLICY_SETTING_PREFERRED_CLUSTER_DIM];
    char cluster_text[48], preferred_text[48];

    if (preferred->action != POLICY_ACTION_SET) {
        return;
    }
    if (cluster->action == POLICY_ACTION_UNSET) {
        policy_diagnose(diagnostics, POLICY_ERROR, preferred->place,
                        "preferred_cluster_dim together with cluster_dim = unset: a preferred "
                        "cluster needs a cluster");
    }
    if (cluster->action != POLICY_ACTION_SET) {
        return;
    }
    policy_setting_text(POLICY_SETTING_CLUSTER_DIM, cluster, cluster_text, sizeof cluster_text);
    policy_setting_text(POLICY_SETTING_PREFERRED_CLUSTER_DIM, preferred, preferred_text,
                        sizeof preferred_text);
    if (preferred->value.cluster_dim.z != cluster->value.cluster_dim.z) {
        policy_diagnose(diagnostics, POLICY_ERROR, preferred->place,
                        "preferred_cluster_dim = %s has another z than cluster_dim = %s",
                        preferred_text, cluster_text);
    } else if (preferred->value.cluster_dim.x % cluster->value.cluster_dim.x != 0 ||
               preferred->value.cluster_dim.y % cluster->value.cluster_dim.y != 0) {
        policy_diagnose(diagnostics, POLICY_ERROR, preferred->place,
                        "preferred_cluster_dim = %s is not a multiple of cluster_dim = %s",
                        preferred_text, cluster_text);
    }
}

/* A rule that sets a cluster where the program set one itself. */
static bool replaces_cluster(const struct policy_rule_builder *builder)
{
    bool sets = action(builder, POLICY_SETTING_CLUSTER_DIM) == POLICY_ACTION_SET ||
                action(builder, POLICY_SETTING_PREFERRED_CLUSTER_DIM) == POLICY_ACTION_SET;

    return sets && policy_key_given(builder, POLICY_KEY_WHEN_SET) &&
           builder->when_set == POLICY_WHEN_SET_REPLACE;
}

static bool removes_cluster(const struct policy_rule_builder *builder)
{
    return action(builder, POLICY_SETTING_CLUSTER_DIM) == POLICY_ACTION_UNSET;
}

static void check_unsafe_cluster(const struct policy_rule_builder *builder,
                                 struct policy_diagnostics *diagnostics)
{
    if (builder->rule.unsafe_cluster) {
        return;
    }
    if (replaces_cluster(builder)) {
        policy_diagnose(diagnostics, POLICY_ERROR, builder->key_place[POLICY_KEY_WHEN_SET],
                        "when_set = replace in a rule with a cluster replaces the program's own "
                        "cluster, which its kernel may rely on; this needs unsafe_cluster = yes");
    }
    if (removes_cluster(builder)) {
        policy_diagnose(
            diagnostics, POLICY_ERROR, setting_place(builder, POLICY_SETTING_CLUSTER_DIM),
            "cluster_dim = unset takes away the program's own cluster, which its kernel "
            "may rely on; this needs unsafe_cluster = yes");
    }
}

static void check_when_set(const struct policy_rule_builder *builder,
                           struct policy_diagnostics *diagnostics)
{
    if (!policy_key_given(builder, POLICY_KEY_WHEN_SET) ||
        builder->when_set != POLICY_WHEN_SET_KEEP) {
        return;
    }
    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if (builder->rule.settings[setting].action == POLICY_ACTION_UNSET) {
            policy_diagnose(diagnostics, POLICY_ERROR, builder->rule.settings[setting].place,
                            "%s = unset together with when_set = keep: the program's own value "
                            "cannot be taken away and kept",
                            policy_setting_key((enum policy_setting)setting));
        }
    }
}

static void check_captured(const struct policy_rule_builder *builder,
                           struct policy_diagnostics *diagnostics)
{
    if (builder->rule.graph_nodes && builder->rule.selectors.captured == POLICY_CHOICE_NO) {
        policy_diagnose(diagnostics, POLICY_ERROR,
                        policy_later_place(builder, POLICY_KEY_CAPTURED, POLICY_KEY_GRAPH_NODES),
                        "graph_nodes = yes together with captured = no: the rule matches no graph "
                        "node");
    }
}

/* Partitions are made once, and what is on one stays ordered there. */
static void check_arm(const struct policy_rule_builder *builder,
                      struct policy_diagnostics *diagnostics)
{
    const struct policy_setting_value *partition =
        &builder->rule.settings[POLICY_SETTING_PARTITION];

    if (builder->rule.selectors.arm.count != 0 && partition->action == POLICY_ACTION_SET) {
        policy_diagnose(diagnostics, POLICY_ERROR, partition->place,
                        "a partition together with arm: launches that go to a partition and back "
                        "within one run would wait for each other; this needs process arms "
                        "(cudapolicy ab without --live)");
    }
}

/* The default streams are not created, so nothing is known of how they were. */
static void check_stream_kind(const struct policy_rule_builder *builder,
                              struct policy_diagnostics *diagnostics)
{
    static const enum policy_key of_creation[] = {POLICY_KEY_CREATED_PRIORITY, POLICY_KEY_FLAGS,
                                                  POLICY_KEY_INDEX};
    unsigned kinds = builder->rule.selectors.kinds;

    if ((kinds & ~(unsigned)POLICY_STREAM_KIND_CREATED) == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof of_creation / sizeof of_creation[0]; i++) {
        if (policy_key_given(builder, of_creation[i])) {
            size_t count;

            policy_diagnose(diagnostics, POLICY_ERROR,
                            policy_later_place(builder, POLICY_KEY_KIND, of_creation[i]),
                            "%s together with kind = %s: the program does not create that stream",
                            policy_vocabulary(&count)[of_creation[i]].text,
                            (kinds & POLICY_STREAM_KIND_LEGACY) != 0 ? "legacy" : "per_thread");
        }
    }
}

/* ---- no effect, or too much: warnings ------------------------------------------------------- */

static bool has_setting_key(const struct policy_rule_builder *builder)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);

    for (size_t i = 0; i < count; i++) {
        if (keys[i].role == POLICY_ROLE_SETTING && policy_key_given(builder, keys[i].key)) {
            return true;
        }
    }
    return false;
}

/* Stream rules without settings may still be there for their name: see relate.c. */
static void warn_no_setting(const struct policy_rule_builder *builder,
                            struct policy_diagnostics *diagnostics)
{
    const struct policy_rule *rule = &builder->rule;

    if (rule->section == POLICY_SECTION_KERNEL && !has_setting_key(builder) && !rule->final) {
        policy_diagnose(diagnostics, POLICY_WARNING, rule->place,
                        "[kernel %s] has no setting, so it changes nothing", rule->name);
    }
}

static void warn_modifiers(const struct policy_rule_builder *builder,
                           struct policy_diagnostics *diagnostics)
{
    bool sets = false, beyond_mem_sync = false;

    for (int setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        const enum policy_action action_of = builder->rule.settings[setting].action;

        /* A partition is no attribute that the program could have set. */
        sets = sets || (action_of == POLICY_ACTION_SET && setting != POLICY_SETTING_PARTITION);
        if (policy_setting_group((enum policy_setting)setting) != POLICY_GROUP_MEM_SYNC) {
            beyond_mem_sync = beyond_mem_sync || action_of != POLICY_ACTION_ABSENT;
        }
    }
    if (policy_key_given(builder, POLICY_KEY_WHEN_SET) && has_setting_key(builder) && !sets) {
        policy_diagnose(diagnostics, POLICY_WARNING, builder->key_place[POLICY_KEY_WHEN_SET],
                        "when_set has no effect: the rule has only %s",
                        action(builder, POLICY_SETTING_PARTITION) == POLICY_ACTION_SET
                            ? "a partition, which no program sets as an attribute"
                            : "leave and unset");
    }
    if (builder->rule.graph_nodes && !beyond_mem_sync) {
        policy_diagnose(diagnostics, POLICY_WARNING, builder->key_place[POLICY_KEY_GRAPH_NODES],
                        "graph_nodes = yes has no effect: the rule has no setting but "
                        "memory-synchronization ones, which graphs take anyway");
    }
    if (builder->rule.unsafe_cluster && !replaces_cluster(builder) && !removes_cluster(builder)) {
        policy_diagnose(diagnostics, POLICY_WARNING, builder->key_place[POLICY_KEY_UNSAFE_CLUSTER],
                        "unsafe_cluster = yes has no effect without when_set = replace or "
                        "cluster_dim = unset");
    }
}

/* A launch that the rule puts into one logical domain never looks at the map's other entry. Said
 * only where that entry differs from the driver's own (0 for default, 1 for remote), and only of
 * kernel rules: on a stream, launches with a domain of their own use the other entry. */
static void warn_unused_map_entry(const struct policy_rule_builder *builder,
                                  struct policy_diagnostics *diagnostics)
{
    const struct policy_setting_value *domain =
        &builder->rule.settings[POLICY_SETTING_MEM_SYNC_DOMAIN];
    const struct policy_setting_value *map =
        &builder->rule.settings[POLICY_SETTING_MEM_SYNC_DOMAIN_MAP];

    if (builder->rule.section != POLICY_SECTION_KERNEL || domain->action != POLICY_ACTION_SET ||
        map->action != POLICY_ACTION_SET || domain->when_set == POLICY_WHEN_SET_KEEP ||
        policy_key_given(builder, POLICY_KEY_PHYSICAL_DOMAIN)) {
        return;
    }
    unsigned default_domain = map->value.mem_sync_domain_map.default_domain;
    unsigned remote_domain = map->value.mem_sync_domain_map.remote_domain;
    if (domain->value.mem_sync_domain == POLICY_MEM_SYNC_DOMAIN_REMOTE && default_domain != 0) {
        policy_diagnose(
            diagnostics, POLICY_WARNING, map->place,
            "the map's entry for default, %u, is never used: the rule's launches are in "
            "remote",
            default_domain);
    }
    if (domain->value.mem_sync_domain == POLICY_MEM_SYNC_DOMAIN_DEFAULT && remote_domain != 1) {
        policy_diagnose(diagnostics, POLICY_WARNING, map->place,
                        "the map's entry for remote, %u, is never used: the rule's launches are in "
                        "default",
                        remote_domain);
    }
}

bool policy_matches_any_name(const struct policy_globs *names)
{
    for (size_t i = 0; i < names->count; i++) {
        if (policy_glob_is_everything(names->patterns[i])) {
            return true;
        }
    }
    return names->count == 0;
}

static void warn_cluster_on_catch_all(const struct policy_rule_builder *builder,
                                      struct policy_diagnostics *diagnostics)
{
    static const enum policy_setting clusters[] = {POLICY_SETTING_CLUSTER_DIM,
                                                   POLICY_SETTING_PREFERRED_CLUSTER_DIM};

    for (size_t i = 0; i < sizeof clusters / sizeof clusters[0]; i++) {
        if (action(builder, clusters[i]) == POLICY_ACTION_SET &&
            policy_matches_any_name(&builder->rule.selectors.name)) {
            policy_diagnose(diagnostics, POLICY_WARNING, setting_place(builder, clusters[i]),
                            "%s in a rule that does not name its kernels: a cluster helps the "
                            "kernels that it was chosen for and slows others down",
                            policy_setting_key(clusters[i]));
            return;
        }
    }
}

/* All that one of the patterns matches is excluded. */
static bool all_excluded(const struct policy_globs *patterns, const struct policy_globs *excluded,
                         bool is_name)
{
    size_t steps = COVER_STEP_LIMIT;

    for (size_t i = 0; i < patterns->count; i++) {
        bool found = false;

        for (size_t j = 0; j < excluded->count && !found && steps != 0; j++) {
            found = policy_pattern_covers(excluded->patterns[j], patterns->patterns[i], is_name,
                                          &steps);
        }
        if (!found) {
            return false;
        }
    }
    return patterns->count != 0;
}

static void warn_never_matches(const struct policy_rule_builder *builder,
                               struct policy_diagnostics *diagnostics)
{
    const struct policy_selectors *selectors = &builder->rule.selectors;

    if (all_excluded(&selectors->name, &selectors->not_name,
                     selectors->name_form == POLICY_NAME_FORM_NAME)) {
        policy_diagnose(diagnostics, POLICY_WARNING, builder->key_place[POLICY_KEY_NOT_NAME],
                        "the rule can never match: not_name excludes all that name selects");
    }
    if (all_excluded(&selectors->library, &selectors->not_library, false)) {
        policy_diagnose(diagnostics, POLICY_WARNING, builder->key_place[POLICY_KEY_NOT_LIBRARY],
                        "the rule can never match: not_library excludes all that library selects");
    }
}

/* Patterns that show that their writer had another form of the name in mind. */
static void warn_name_patterns(const struct policy_globs *patterns, struct policy_place place,
                               struct policy_diagnostics *diagnostics)
{
    struct policy_quotation quotation;

    for (size_t i = 0; i < patterns->count; i++) {
        const char *pattern = patterns->patterns[i];

        policy_quote(&quotation, pattern, strlen(pattern));
        if (strncmp(pattern, "_Z", 2) == 0) {
            policy_diagnose(diagnostics, POLICY_WARNING, place,
                            "\"%s\" looks like a mangled name, which needs name_form = mangled",
                            quotation.text);
        } else if (strchr(pattern, '<') != NULL) {
            policy_diagnose(diagnostics, POLICY_WARNING, place,
                            "\"%s\" has template arguments, which names have only with name_form = "
                            "signature",
                            quotation.text);
        }
    }
}

static void warn_library_patterns(const struct policy_globs *patterns, struct policy_place place,
                                  struct policy_diagnostics *diagnostics)
{
    struct policy_quotation quotation;

    for (size_t i = 0; i < patterns->count; i++) {
        const char *pattern = patterns->patterns[i];

        if (strchr(pattern, '/') != NULL) {
            policy_diagnose(diagnostics, POLICY_WARNING, place,
                            "\"%s\" has a /, but libraries are matched by their base name",
                            policy_quote(&quotation, pattern, strlen(pattern)));
        }
    }
}

static void warn_patterns(const struct policy_rule_builder *builder,
                          struct policy_diagnostics *diagnostics)
{
    const struct policy_selectors *selectors = &builder->rule.selectors;
    const struct policy_place *places = builder->key_place;

    if (policy_key_given(builder, POLICY_KEY_NAME_FORM) &&
        !policy_key_given(builder, POLICY_KEY_NAME) &&
        !policy_key_given(builder, POLICY_KEY_NOT_NAME)) {
        policy_diagnose(diagnostics, POLICY_WARNING, places[POLICY_KEY_NAME_FORM],
                        "name_form has no effect without name or not_name");
    }
    if (selectors->name_form == POLICY_NAME_FORM_NAME) {
        warn_name_patterns(&selectors->name, places[POLICY_KEY_NAME], diagnostics);
        warn_name_patterns(&selectors->not_name, places[POLICY_KEY_NOT_NAME], diagnostics);
    }
    warn_library_patterns(&selectors->library, places[POLICY_KEY_LIBRARY], diagnostics);
    warn_library_patterns(&selectors->not_library, places[POLICY_KEY_NOT_LIBRARY], diagnostics);
}

void policy_check_rule(struct policy_rule_builder *builder, struct policy_diagnostics *diagnostics)
{
    check_domains(builder, diagnostics);
    check_preferred_cluster(builder, diagnostics);
    check_unsafe_cluster(builder, diagnostics);
    check_when_set(builder, diagnostics);
    check_captured(builder, diagnostics);
    check_arm(builder, diagnostics);
    check_stream_kind(builder, diagnostics);
    policy_check_rule_partition(builder, diagnostics);
    if (diagnostics->error_count != builder->errors_before) {
        return;
    }
    warn_no_setting(builder, diagnostics);
    warn_modifiers(builder, diagnostics);
    warn_unused_map_entry(builder, diagnostics);
    warn_cluster_on_catch_all(builder, diagnostics);
    warn_never_matches(builder, diagnostics);
    warn_patterns(builder, diagnostics);
}
