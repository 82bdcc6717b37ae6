/* SPDX-License-Identifier: Apache-2.0 */
/* A site's file and a job's policy as one. */
#include "test_policy_support.h"

#include "policy/combine.h"
#include "policy/expect.h"
#include "policy/site.h"

static struct policy *site_of(const char *body)
{
    struct policy_diagnostics diagnostics = {0};
    char text[4096];
    int length = snprintf(text, sizeof text, "%s%s", POLICY_HEADER, body);
    struct policy *site = policy_site_parse(text, (size_t)length, "site.ini", &diagnostics);

    if (site == NULL) {
        fail_msg("%s", diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    return site;
}

static struct policy *job_of(const char *body)
{
    struct policy_diagnostics diagnostics = {.errors_only = true};
    char text[4096];
    int length = snprintf(text, sizeof text, "%s%s", POLICY_HEADER, body);
    struct policy *job = policy_parse(text, (size_t)length, "job.ini", &diagnostics);

    if (job == NULL) {
        fail_msg("%s", diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    return job;
}

static struct policy *combined(const char *site, const char *job)
{
    struct policy_diagnostics diagnostics = {.errors_only = true};
    struct policy *policy = policy_combine(site_of(site), job_of(job), &diagnostics);

    if (policy == NULL || diagnostics.count != 0) {
        fail_msg("%s", diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    return policy;
}

static void expect_conflict(const char *site_body, const char *job_body, unsigned line,
                            const char *message)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *site = site_of(site_body), *job = job_of(job_body);
    struct policy *policy = policy_combine(site, job, &diagnostics);

    assert_string_equal(diagnostics.file, "job.ini");
    if (policy != NULL || diagnostics.error_count != 1 || diagnostics.items[0].place.line != line ||
        strcmp(diagnostics.items[0].message, message) != 0) {
        fail_msg("expected %u: %s\n\tgot %s", line, message, diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    policy_free(site);
    policy_free(job);
}

#define RULE(name) "[kernel " name "]\npriority = 0\n"

static void locked_rules_come_first_and_defaults_last(void **state)
{
    static const char *const names[] = {"l1", "l2", "j1", "d1", "d2"};
    struct policy *policy = combined(
        "[locked]\n" RULE("l1") RULE("l2") "[defaults]\n" RULE("d1") RULE("d2"), RULE("j1"));

    (void)state;
    assert_int_equal(policy->rule_count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(policy->rules[i].name, names[i]);
        assert_int_equal(policy->rules[i].index, i);
    }
    assert_int_equal(policy->rules[2].layer, POLICY_LAYER_JOB);
    assert_string_equal(policy_layer_path(policy, policy->rules[0].layer), "site.ini");
    assert_string_equal(policy_layer_path(policy, policy->rules[2].layer), "job.ini");
    policy_free(policy);
}

static void path_digest_and_variations_are_the_jobs(void **state)
{
    struct policy *job = job_of(RULE("k") "[tune]\nvary = k.priority = 0, 1\n");
    struct policy *policy = combined("[locked]\n", RULE("k") "[tune]\nvary = k.priority = 0, 1\n");

    (void)state;
    assert_string_equal(policy->path, "job.ini");
    assert_memory_equal(policy->sha256, job->sha256, sizeof job->sha256);
    assert_memory_not_equal(policy->site->sha256, job->sha256, sizeof job->sha256);
    assert_int_equal(policy->variation_count, 1);
    policy_free(job);
    policy_free(policy);
}

static void rules_of_one_name_in_both_files_are_no_mistake(void **state)
{
    struct policy *policy = combined("[defaults]\n" RULE("k"), RULE("k"));

    (void)state;
    assert_int_equal(policy->rule_count, 2);
    policy_free(policy);
}

static const struct policy_rule *expected_rule(const struct policy *policy, size_t condition)
{
    return &policy->rules[policy->expectations[condition].rule];
}

static void expectations_stay_with_the_rules_of_the_job(void **state)
{
    static const char job[] = RULE("a") "[stream a]\npriority = 0\n" RULE(
        "b") "[expect]\nkernel a: launches >= 1\nstream a: streams >= 1\n"
             "rule b: refused = 0\n";
    static const char *const sites[] = {
        "[locked]\n",
        "[locked]\n" RULE("a"),
        "[locked]\n" RULE("b") "[stream a]\npriority = 0\n" RULE("a") "[defaults]\n" RULE("c"),
        "[defaults]\n" RULE("a") RULE("b"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        struct policy *policy = combined(sites[i], job);

        assert_int_equal(policy->expectation_count, 3);
        for (size_t condition = 0; condition < 3; condition++) {
            const struct policy_rule *rule = expected_rule(policy, condition);

            assert_int_equal(rule->layer, POLICY_LAYER_JOB);
            assert_string_equal(rule->name, condition == 2 ? "b" : "a");
            assert_int_equal(rule->section,
                             condition == 1 ? POLICY_SECTION_STREAM : POLICY_SECTION_KERNEL);
        }
        policy_free(policy);
    }
}

static void variables_are_the_jobs(void **state)
{
    struct policy *policy = combined("[locked]\n" RULE("l"), "[env]\nA_B = 1\n" RULE("j"));

    (void)state;
    assert_int_equal(policy->variable_count, 1);
    assert_string_equal(policy->variables[0].name, "A_B");
    assert_string_equal(policy->variables[0].value, "1");
    policy_free(policy);
}

static const struct policy_partition *partition_of(const struct policy *policy, size_t rule)
{
    const struct policy_setting_value *value =
        &policy->rules[rule].settings[POLICY_SETTING_PARTITION];
    const struct policy_partition *partition = &policy->partitions[value->value.partition];

    assert_int_equal(value->action, POLICY_ACTION_SET);
    assert_ptr_equal(value->partition_name, partition->name);
    assert_int_equal(partition->index, value->value.partition);
    return partition;
}

static void rule_keeps_the_partition_of_its_own_file(void **state)
{
    struct policy *policy =
        combined("[locked]\n[kernel l]\npartition = p\n[defaults]\n[partition p]\nsm_count = 8\n",
                 "[partition p]\nsm_count = 16\n[kernel j]\npartition = p\n");

    (void)state;
    assert_int_equal(policy->partition_count, 2);
    assert_int_equal(partition_of(policy, 0)->number, 8);
    assert_int_equal(partition_of(policy, 0)->layer, POLICY_LAYER_DEFAULTS);
    assert_int_equal(partition_of(policy, 1)->number, 16);
    policy_free(policy);
}

static void locality_domain_is_one_partition_for_both(void **state)
{
    struct policy *policy =
        combined("[locked]\n[kernel l]\nlocality_domain = 1\n[kernel m]\nlocality_domain = 0\n",
                 "[kernel j]\nlocality_domain = 1\n[kernel k]\nlocality_domain = 2\n");

    (void)state;
    assert_int_equal(policy->partition_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(policy->partitions[i].number, i);
    }
    assert_ptr_equal(partition_of(policy, 0), partition_of(policy, 2));
    policy_free(policy);
}

static void unnamed_domain_is_the_other_files_named_one(void **state)
{
    struct policy *policy =
        combined("[locked]\n[partition left]\nlocality_domain = 0\n[kernel l]\npartition = left\n",
                 "[kernel j]\nlocality_domain = 0\n");

    (void)state;
    assert_int_equal(policy->partition_count, 1);
    assert_string_equal(partition_of(policy, 1)->name, "left");
    policy_free(policy);
}

static void partitions_that_exclude_each_other_are_the_jobs_mistake(void **state)
{
    (void)state;
    expect_conflict("[defaults]\n[partition a]\nsm_count = rest\n",
                    "[partition b]\nsm_count = rest\n", 3,
                    "sm_count = rest is also [partition a], line 4 of the site's file, and both "
                    "may be on one device");
    expect_conflict("[defaults]\n[partition a]\nlocality_domain = 1\n",
                    "[partition b]\nlocality_domain = 1\n", 3,
                    "locality_domain = 1 is also [partition a], line 4 of the site's file, and "
                    "both may be on one device");
    expect_conflict("[defaults]\n[partition a]\nsm_count = 60%\n",
                    "[partition b]\nsm_count = 50%\n", 3,
                    "with [partition b] the partitions of one device need 110% of its SMs");
}

static void domain_on_several_devices_has_to_be_named(void **state)
{
    (void)state;
    expect_conflict("[locked]\n[partition a]\nlocality_domain = 0\ndevice = 0\n"
                    "[partition b]\nlocality_domain = 0\ndevice = 1\n",
                    "[kernel j]\nlocality_domain = 0\n", 4,
                    "locality_domain: 0, which this rule asks for, is [partition a] and "
                    "[partition b], each on some devices");
}

static void expect_combine_warning(const char *site, const char *job, unsigned line,
                                   const char *message)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_combine(site_of(site), job_of(job), &diagnostics);

    assert_non_null(policy);
    if (diagnostics.warning_count != 1 || diagnostics.items[0].place.line != line ||
        strcmp(diagnostics.items[0].message, message) != 0) {
        fail_msg("expected %u: %s\n\tgot %s", line, message, diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    policy_free(policy);
}

static void rules_that_locked_ones_take_everything_from_are_warned_of(void **state)
{
    (void)state;
    expect_combine_warning("[locked]\n" RULE("l"), "[kernel j]\nname = a\npriority = 1\n", 3,
                           "[kernel j] can never apply: [kernel l] in line 4 of the site's file "
                           "matches all that this rule matches and comes first with the same "
                           "settings");
    expect_combine_warning("[locked]\n" RULE("l"),
                           "[kernel j]\npriority = 1\nmem_sync_domain = default\n", 4,
                           "priority of [kernel j] can never apply: [kernel l] in line 4 of the "
                           "site's file matches all that this rule matches and comes first");
}

static void defaults_are_there_to_be_taken_from(void **state)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_combine(
        site_of("[locked]\n[kernel l]\nname = l\npriority = 0\n[defaults]\n" RULE("d")),
        job_of(RULE("j")), &diagnostics);

    (void)state;
    assert_non_null(policy);
    assert_int_equal(diagnostics.count, 0);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
}

/* ---- the mode ----------------------------------------------------------------------------------
 */

static void expect_mode(const char *site, const char *job, const enum policy_mode *environment,
                        enum policy_mode mode, enum policy_mode_source source)
{
    struct policy *policy = combined(site, job);
    struct policy_mode_choice choice = policy_mode_choose(environment, policy);

    assert_int_equal(choice.mode, mode);
    assert_int_equal(choice.source, source);
    policy_free(policy);
}

static void environment_job_site_and_enforce_say_the_mode_in_this_order(void **state)
{
    const enum policy_mode off = POLICY_MODE_OFF;

    (void)state;
    expect_mode("", "", NULL, POLICY_MODE_ENFORCE, POLICY_MODE_BUILT_IN);
    expect_mode("[site]\nmode = observe\n", "", NULL, POLICY_MODE_OBSERVE, POLICY_MODE_FROM_SITE);
    expect_mode("[site]\nmode = observe\n", "mode = enforce\n", NULL, POLICY_MODE_ENFORCE,
                POLICY_MODE_FROM_JOB);
    expect_mode("[site]\nmode = observe\n", "mode = enforce\n", &off, POLICY_MODE_OFF,
                POLICY_MODE_FROM_ENVIRONMENT);
}

static void ceiling_lowers_whatever_said_the_mode(void **state)
{
    const enum policy_mode enforce = POLICY_MODE_ENFORCE, off = POLICY_MODE_OFF;

    (void)state;
    expect_mode("[site]\nmode_ceiling = observe\n", "", NULL, POLICY_MODE_OBSERVE,
                POLICY_MODE_BUILT_IN);
    expect_mode("[site]\nmode_ceiling = observe\n", "mode = enforce\n", &enforce,
                POLICY_MODE_OBSERVE, POLICY_MODE_FROM_ENVIRONMENT);
    expect_mode("[site]\nmode_ceiling = observe\n", "", &off, POLICY_MODE_OFF,
                POLICY_MODE_FROM_ENVIRONMENT);
    expect_mode("[site]\nmode = enforce\nmode_ceiling = off\n", "", NULL, POLICY_MODE_OFF,
                POLICY_MODE_FROM_SITE);
}

static void without_a_site_the_job_says_the_mode(void **state)
{
    struct policy *job = job_of("mode = observe\n");

    (void)state;
    assert_int_equal(policy_mode_choose(NULL, job).mode, POLICY_MODE_OBSERVE);
    policy_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locked_rules_come_first_and_defaults_last),
        cmocka_unit_test(path_digest_and_variations_are_the_jobs),
        cmocka_unit_test(rules_of_one_name_in_both_files_are_no_mistake),
        cmocka_unit_test(expectations_stay_with_the_rules_of_the_job),
        cmocka_unit_test(variables_are_the_jobs),
        cmocka_unit_test(rule_keeps_the_partition_of_its_own_file),
        cmocka_unit_test(locality_domain_is_one_partition_for_both),
        cmocka_unit_test(unnamed_domain_is_the_other_files_named_one),
        cmocka_unit_test(partitions_that_exclude_each_other_are_the_jobs_mistake),
        cmocka_unit_test(rules_that_locked_ones_take_everything_from_are_warned_of),
        cmocka_unit_test(defaults_are_there_to_be_taken_from),
        cmocka_unit_test(domain_on_several_devices_has_to_be_named),
        cmocka_unit_test(environment_job_site_and_enforce_say_the_mode_in_this_order),
        cmocka_unit_test(ceiling_lowers_whatever_said_the_mode),
        cmocka_unit_test(without_a_site_the_job_says_the_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
