/* SPDX-License-Identifier: Apache-2.0 */
/* Shadowed rules: reported when, and only when, it is proved that they can never apply. */
#include "test_policy_support.h"

#include "policy/glob.h"
#include "policy/parser.h"

/* The rules of body with neither error nor warning. */
static void expect_no_shadow(const char *body)
{
    policy_free(expect_clean(body));
}

/* An earlier rule a and a later rule b of one kind with these selectors, and one setting. */
static char *two_rules(const char *section, const char *earlier, const char *later)
{
    static char body[1000];

    snprintf(body, sizeof body, "[%s a]\npriority = 1\n%s\n[%s b]\npriority = 2\n%s\n", section,
             earlier, section, later);
    return body;
}

static void expect_shadowed(const char *section, const char *earlier, const char *later)
{
    struct policy_diagnostics diagnostics = {0};
    char text[1200], message[200];

    snprintf(text, sizeof text, "%s%s", POLICY_HEADER, two_rules(section, earlier, later));
    snprintf(
        message, sizeof message,
        "[%s b] can never apply: [%s a] in line 3 matches all that this rule matches and comes "
        "first with the same settings",
        section, section);
    struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);
    assert_non_null(policy);
    if (diagnostics.count != 1 || strcmp(diagnostics.items[0].message, message) != 0) {
        fail_msg("\"%s\" before \"%s\": %s", earlier, later, diagnostics_text(&diagnostics));
    }
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
}

static void expect_open(const char *section, const char *earlier, const char *later)
{
    expect_no_shadow(two_rules(section, earlier, later));
}

static void catch_all_shadows_every_later_rule(void **state)
{
    (void)state;
    expect_shadowed("kernel", "", "");
    expect_shadowed("kernel", "",
                    "name = x\ngrid_blocks = 1\nlibrary = y\nrank = 0\ncaptured = no");
    expect_shadowed("stream", "", "created_priority = ..-1\nflags = blocking\nindex = 3");
    expect_open("kernel", "name = x", "");
    expect_open("stream", "index = 0", "");
}

static void identical_selectors_shadow(void **state)
{
    (void)state;
    expect_shadowed("kernel",
                    "name = x*y\nnot_name = z\ngrid_blocks = 1..4, 7\nhost = h?\ndevice = 0",
                    "name = x*y\nnot_name = z\ngrid_blocks = 7, 1..4\nhost = h?\ndevice = 0");
    expect_shadowed("stream", "created_priority = -1\nlibrary = l*\nkind = created",
                    "created_priority = -1\nlibrary = l*");
}

static void broader_pattern_shadows(void **state)
{
    (void)state;
    expect_shadowed("kernel", "name = nccl*", "name = ncclDevKernel_*");
    expect_shadowed("kernel", "name = nccl*", "name = ncclDevKernel_AllReduce\nname = nccl");
    expect_shadowed("kernel", "name = *", "name = a*b*c?[x]");
    expect_shadowed("kernel", "name = a?c", "name = abc\nname = a[xy]c\nname = a?c\nname = a\\*c");
    expect_shadowed("kernel", "name = [a-c]x", "name = bx");
    expect_shadowed("kernel", "name = [a-c]x", "name = [a-c]x");
    expect_shadowed("kernel", "name = *b*", "name = abc");
    expect_shadowed("kernel", "name = a*c*e", "name = abcde");
    expect_shadowed("kernel", "name = a\\bc", "name = abc");
    expect_open("kernel", "name = ncclDevKernel_*", "name = nccl*");
    expect_open("kernel", "name = a?c", "name = a*c");
    expect_open("kernel", "name = [a-c]x", "name = ?x");
    expect_open("kernel", "name = [a-c]x", "name = dx");
    expect_open("kernel", "name = [a-c]x", "name = [a-b]x"); /* true, but not proved */
    expect_open("kernel", "name = abc", "name = ab*");
    expect_open("kernel", "name = ab", "name = abc");
    expect_open("kernel", "name = abc", "name = ab");
    expect_open("kernel", "name = a\\*c", "name = a*c");
}

/* A pattern without :: also matches the last component of a name; one with :: does not. */
static void last_components_are_taken_into_account(void **state)
{
    (void)state;
    expect_shadowed("kernel", "name = *copy", "name = at::native::copy");
    expect_shadowed("kernel", "name = at::*", "name = at::native::*");
    expect_open("kernel", "name = *::*", "name = ?*");
    expect_open("kernel", "name = [a::]*", "name = ab*");
    expect_open("kernel", "name = c*", "name = a::copy"); /* true, but not proved */
    expect_shadowed("kernel", "name_form = signature\nname = *", "name_form = signature\nname = f");
}

static void other_forms_of_the_name_are_not_compared(void **state)
{
    (void)state;
    expect_open("kernel", "name = *x*\nname_form = signature", "name = x");
    expect_open("kernel", "not_name = x", "name = y\nname_form = mangled");
    expect_shadowed("kernel", "grid_blocks = 1",
                    "grid_blocks = 1\nname = _Zx\nname_form = mangled");
}

static void exclusions_are_compared_the_other_way_round(void **state)
{
    (void)state;
    expect_shadowed("kernel", "name = *\nnot_name = abc", "name = *\nnot_name = a*");
    expect_shadowed("kernel", "not_library = abc", "not_library = a*\nnot_library = b");
    expect_open("kernel", "name = *\nnot_name = a*", "name = *\nnot_name = abc");
    expect_open("kernel", "not_library = abc", "library = x");
    expect_shadowed("kernel", "", "not_library = x\nnot_name = y");
}

static void broader_ranges_shadow(void **state)
{
    (void)state;
    expect_shadowed("kernel", "grid_blocks = 1..8", "grid_blocks = 2..3, 8");
    expect_shadowed("kernel", "grid_blocks = ..8", "grid_blocks = 1..8");
    expect_shadowed("kernel", "rank = 0.., 5", "rank = 3");
    expect_open("kernel", "grid_blocks = 1..8", "grid_blocks = 2..9");
    expect_open("kernel", "grid_blocks = 1..", "grid_blocks = ..4");
    expect_open("kernel", "rank = 0..", "");
    expect_open("kernel", "grid_blocks = 1..2, 3..4", "grid_blocks = 1..4"); /* not proved */
}

static void devices_are_compared_within_their_form(void **state)
{
    (void)state;
    expect_shadowed("kernel", "device = 0..3", "device = 1");
    expect_shadowed("kernel", "device = GPU-8932f937", "device = GPU-8932f937-d7");
    expect_shadowed("stream", "device = 3b:00.0", "device = 0000:3B:00");
    expect_open("kernel", "device = GPU-8932f937-d7", "device = GPU-8932f937");
    expect_open("kernel", "device = GPU-893200", "device = GPU-8932");
    expect_open("kernel", "device = 0", "device = 3b:00.0");
    expect_open("kernel", "device = 3b:00.0", "device = 3c:00.0");
}

static void words_are_compared(void **state)
{
    (void)state;
    expect_shadowed("kernel", "captured = yes", "captured = yes");
    expect_open("kernel", "captured = yes", "captured = no");
    expect_open("kernel", "captured = yes", "");
    expect_shadowed("stream", "kind = created\nkind = legacy", "kind = legacy");
    expect_open("stream", "", "kind = legacy");
    expect_open("stream", "kind = legacy", "kind = legacy\nkind = per_thread");
    expect_open("stream", "flags = blocking", "flags = non_blocking");
}

static void streams_of_a_rule_are_compared_by_name(void **state)
{
    (void)state;
    expect_no_shadow("[stream s]\n[stream t]\n[kernel a]\nstream = s\npriority = 1\n"
                     "[kernel b]\nstream = s\nstream = t\npriority = 1\n");
    expect_warning("[stream s]\n[stream t]\n[kernel a]\nstream = s\nstream = t\npriority = 1\n"
                   "[kernel b]\nstream = t\npriority = 1\n",
                   7, 1,
                   "[kernel b] can never apply: [kernel a] in line 5 matches all that this rule "
                   "matches and comes first with the same settings");
}

static void rules_of_one_arm_do_not_shadow_those_of_another(void **state)
{
    (void)state;
    expect_open("kernel", "arm = 0", "arm = 1");
    expect_open("kernel", "arm = 0", "");
    expect_shadowed("kernel", "arm = 0..2", "arm = 1");
    expect_shadowed("kernel", "", "arm = 1");
}

/* The n-th stream is that of the rule's own kernels: another rule's numbers are others. */
static void launch_streams_are_not_compared(void **state)
{
    (void)state;
    expect_open("kernel", "launch_stream = 0", "launch_stream = 0");
    expect_shadowed("kernel", "", "launch_stream = 0");
}

static void rules_of_other_sections_do_not_shadow(void **state)
{
    (void)state;
    expect_no_shadow("[stream a]\npriority = 1\nfinal = yes\n[kernel b]\npriority = 1\n");
}

static void settings_shadow_within_their_group(void **state)
{
    (void)state;
    expect_no_shadow("[kernel a]\npriority = 1\n[kernel b]\nmem_sync_domain = default\n");
    expect_warning("[kernel a]\nmem_sync_domain = default\n[kernel b]\nphysical_domain = 0\n", 3, 1,
                   "[kernel b] can never apply: [kernel a] in line 3 matches all that this rule "
                   "matches and comes first with the same settings");
    expect_warning(
        "[kernel a]\ncluster_scheduling = spread\n[kernel b]\nname = x\ncluster_dim = 2\n", 3, 1,
        "[kernel b] can never apply: [kernel a] in line 3 matches all that this rule "
        "matches and comes first with the same settings");
    expect_warning("[kernel a]\npriority = leave\n[kernel b]\npriority = 1\n", 3, 1,
                   "[kernel b] can never apply: [kernel a] in line 3 matches all that this rule "
                   "matches and comes first with the same settings");
}

static void single_settings_are_reported_when_others_of_the_rule_apply(void **state)
{
    (void)state;
    expect_warning("[kernel a]\npriority = 1\n[kernel b]\nname = x\npriority = 2\n"
                   "mem_sync_domain = default\n",
                   5, 1,
                   "priority of [kernel b] can never apply: [kernel a] in line 3 matches all that "
                   "this rule matches and comes first");
}

static void several_rules_together_may_take_all_settings(void **state)
{
    static const char text[] = POLICY_HEADER "[kernel a]\npriority = 1\n"
                                             "[kernel b]\nnvlink_util_centric = yes\n"
                                             "[kernel c]\nname = x\npriority = 2\n"
                                             "nvlink_util_centric = no\n";
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);
    assert_non_null(policy);
    assert_int_equal(diagnostics.count, 2);
    assert_string_equal(diagnostics.items[0].message,
                        "priority of [kernel c] can never apply: [kernel a] in line 3 matches all "
                        "that this rule matches and comes first");
    assert_string_equal(diagnostics.items[1].message,
                        "nvlink_util_centric of [kernel c] can never apply: [kernel b] in line 5 "
                        "matches all that this rule matches and comes first");
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
}

static void final_rule_shadows_whatever_its_settings_are(void **state)
{
    static const char message[] =
        "[kernel b] can never apply: [kernel a] in line 3 matches all that "
        "this rule matches and is final";

    (void)state;
    expect_warning("[kernel a]\nname = x*\nfinal = yes\n[kernel b]\nname = xy\npriority = 1\n", 4,
                   1, message);
    expect_warning("[kernel a]\nname = x*\nfinal = yes\n[kernel b]\nname = xy\nfinal = yes\n", 4, 1,
                   message);
    expect_no_shadow("[kernel a]\nname = x*\nfinal = yes\n[kernel b]\npriority = 1\n");
    expect_no_shadow("[kernel a]\nname = x*\nfinal = no\n priority = 1\n[kernel b]\nname = xy\n"
                     "nvlink_util_centric = yes\n");
}

static void policy_of_many_rules_is_checked_in_bounded_time(void **state)
{
    size_t size = 1 << 22, length;
    char *text = malloc(size);
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    assert_non_null(text);
    length = (size_t)snprintf(text, size, "%s", POLICY_HEADER);
    /* Each pattern is a case in which a star has to be retried at every byte. */
    for (int i = 0; i < 20000; i++) {
        length +=
            (size_t)snprintf(text + length, size - length,
                             "[kernel k%d]\nname = *%.60sb%d*\nname = %.60s\npriority = 1\n", i,
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i,
                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    }
    struct policy *policy = policy_parse(text, length, "test.ini", &diagnostics);
    assert_non_null(policy);
    assert_int_equal(policy->rule_count, 20000);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    free(text);
}

/* ---- the proof itself, against matching ---------------------------------------------------------
 */

static uint64_t random_state = 88172645463325252u;

static unsigned random_below(unsigned limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % limit;
}

static void random_pattern(char *pattern)
{
    static const char *const elements[] = {"a",    "b",   "*",      "*",   "?",   "::",   "[ab]",
                                           "[!a]", "\\a", "[a-b:]", "\\*", "[:]", "[a::]"};
    unsigned count = random_below(5);

    pattern[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        strcat(pattern, elements[random_below(sizeof elements / sizeof elements[0])]);
    }
}

/* As decisions match a kernel's name: whole, or by its last component for patterns without ::. */
static bool matches_name(const char *pattern, const char *name)
{
    const char *last = name;

    for (const char *colons = strstr(name, "::"); colons != NULL; colons = strstr(last, "::")) {
        last = colons + 2;
    }
    return glob_matches(pattern, name) ||
           (strstr(pattern, "::") == NULL && glob_matches(pattern, last));
}

/* All texts of up to five bytes over a, b, * and :. */
static bool next_text(char *text)
{
    static const char bytes[] = "ab*:";

    for (size_t i = 0; i < 5; i++) {
        const char *byte = text[i] != '\0' ? strchr(bytes, text[i]) + 1 : bytes;

        if (*byte != '\0') {
            text[i] = *byte;
            return true;
        }
        text[i] = bytes[0];
    }
    return false;
}

static void pattern_is_covered_only_if_all_that_it_matches_is_matched(void **state)
{
    unsigned covered_count = 0;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        char pattern[64], covered[64], text[6] = "";
        size_t steps = 10000, name_steps = 10000;

        random_pattern(pattern);
        random_pattern(covered);
        bool covers = policy_pattern_covers(pattern, covered, false, &steps);
        bool covers_name = policy_pattern_covers(pattern, covered, true, &name_steps);
        covered_count += covers;
        if (!covers && !covers_name) {
            continue;
        }
        do {
            if ((covers && glob_matches(covered, text) && !glob_matches(pattern, text)) ||
                (covers_name && matches_name(covered, text) && !matches_name(pattern, text))) {
                fail_msg("\"%s\" does not cover \"%s\": \"%s\"", pattern, covered, text);
            }
        } while (next_text(text));
    }
    assert_true(covered_count > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(catch_all_shadows_every_later_rule),
        cmocka_unit_test(identical_selectors_shadow),
        cmocka_unit_test(broader_pattern_shadows),
        cmocka_unit_test(last_components_are_taken_into_account),
        cmocka_unit_test(other_forms_of_the_name_are_not_compared),
        cmocka_unit_test(exclusions_are_compared_the_other_way_round),
        cmocka_unit_test(broader_ranges_shadow),
        cmocka_unit_test(devices_are_compared_within_their_form),
        cmocka_unit_test(words_are_compared),
        cmocka_unit_test(streams_of_a_rule_are_compared_by_name),
        cmocka_unit_test(rules_of_one_arm_do_not_shadow_those_of_another),
        cmocka_unit_test(launch_streams_are_not_compared),
        cmocka_unit_test(rules_of_other_sections_do_not_shadow),
        cmocka_unit_test(settings_shadow_within_their_group),
        cmocka_unit_test(single_settings_are_reported_when_others_of_the_rule_apply),
        cmocka_unit_test(several_rules_together_may_take_all_settings),
        cmocka_unit_test(final_rule_shadows_whatever_its_settings_are),
        cmocka_unit_test(policy_of_many_rules_is_checked_in_bounded_time),
        cmocka_unit_test(pattern_is_covered_only_if_all_that_it_matches_is_matched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
