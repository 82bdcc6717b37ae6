/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form of a policy, and that reading it gives the same policy again. */
#include "test_policy_same.h"
#include "test_policy_support.h"

#include "policy/print.h"
#include "policy/vocabulary.h"

/* What policy_print writes; the caller frees it. */
static char *printed(const struct policy *policy)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    assert_non_null(stream);
    policy_print(stream, policy);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static struct policy *parse(const char *text)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_parse(text, strlen(text), "test.ini", &diagnostics);

    if (policy == NULL) {
        fail_msg("%s\n%s", diagnostics_text(&diagnostics), text);
    }
    policy_diagnostics_release(&diagnostics);
    return policy;
}

static void expect_printed(const char *text, const char *expected)
{
    struct policy *policy = parse(text);
    char *canonical = printed(policy);

    assert_string_equal(canonical, expected);
    free(canonical);
    policy_free(policy);
}

static void canonical_form_has_keys_in_the_order_of_the_vocabulary(void **state)
{
    (void)state;
    expect_printed("[policy]\nmode=observe\nversion=1\n"
                   "[kernel k]\nfinal = yes\nwhen_set = keep\nphysical_domain = 2\n"
                   "mem_sync_domain = remote\nrank = 1,3..4\nlibrary = l\nname = a ; comment\n"
                   "name = \"b\"\n[stream s]\npriority = -1\nflags = blocking\n",
                   "[policy]\nversion = 1\nmode = observe\n\n"
                   "[kernel k]\nname = a\nname = b\nlibrary = l\nrank = 1\nrank = 3..4\n"
                   "mem_sync_domain = remote\nmem_sync_domain_map = 2 2\nwhen_set = keep\n"
                   "final = yes\n\n"
                   "[stream s]\nflags = blocking\nkind = created\npriority = -1\n");
}

static void values_are_written_in_their_shortest_form(void **state)
{
    (void)state;
    expect_printed(
        POLICY_HEADER
        "[kernel k]\nname = x\ncluster_dim = 2,1,1\npreferred_cluster_dim = 4 2 1\n"
        "shared_memory_carveout = 100\ngrid_blocks = 5..5, ..9223372036854775807\ndevice = 3B:00\n"
        "device = GPU-8932F937-\n"
        "[kernel l]\nname = y\ncluster_dim = 1,1,2\nshared_memory_carveout = 7\n",
        "[policy]\nversion = 1\nmode = enforce\n\n"
        "[kernel k]\nname = x\ngrid_blocks = 5\ngrid_blocks = ..9223372036854775807\ndevice = "
        "0000:3b:00.0\n"
        "device = GPU-8932f937\ncluster_dim = 2\npreferred_cluster_dim = 4,2\n"
        "shared_memory_carveout = max_shared\n\n"
        "[kernel l]\nname = y\ncluster_dim = 1,1,2\nshared_memory_carveout = 7%\n");
}

static void what_is_varied_is_written_with_its_kind(void **state)
{
    (void)state;
    expect_printed(POLICY_HEADER "[tune]\nvary=k.name=a,b  c\nvary=\"k.library=x, #y\"\n"
                                 "[kernel k]\npriority = 0\n",
                   "[policy]\nversion = 1\nmode = enforce\n\n[kernel k]\npriority = 0\n\n"
                   "[tune]\nvary = kernel k.name = a, b  c\n"
                   "vary = \"kernel k.library = x, #y\"\n");
}

static void variables_and_conditions_are_written_one_a_line(void **state)
{
    (void)state;
    expect_printed(POLICY_HEADER "[env replace]\nB=2\n[env]\nA=\" x \"\nC=a;b\n"
                                 "[expect]\nrule k:launches>1,kept=0\n"
                                 "[kernel k]\npriority = 0\n",
                   "[policy]\nversion = 1\nmode = enforce\n\n[kernel k]\npriority = 0\n\n"
                   "[env]\nA = \" x \"\nC = a;b\n\n[env replace]\nB = 2\n\n"
                   "[expect]\nkernel k: launches > 1\nkernel k: kept = 0\n");
}

static void settings_have_a_text(void **state)
{
    struct policy_setting_value value = {.action = POLICY_ACTION_SET};
    char text[64], small[4];

    (void)state;
    value.value.mem_sync_domain = POLICY_MEM_SYNC_DOMAIN_REMOTE;
    assert_string_equal(
        policy_setting_text(POLICY_SETTING_MEM_SYNC_DOMAIN, &value, text, sizeof text), "remote");
    assert_string_equal(
        policy_setting_text(POLICY_SETTING_MEM_SYNC_DOMAIN, &value, small, sizeof small), "rem");
    value.value.nvlink_util_centric = true;
    assert_string_equal(
        policy_setting_text(POLICY_SETTING_NVLINK_UTIL_CENTRIC, &value, text, sizeof text), "yes");
    value.value.shared_memory_carveout = 0;
    assert_string_equal(
        policy_setting_text(POLICY_SETTING_SHARED_MEMORY_CARVEOUT, &value, text, sizeof text),
        "max_l1");
    value.action = POLICY_ACTION_LEAVE;
    assert_string_equal(policy_setting_text(POLICY_SETTING_PRIORITY, &value, text, sizeof text),
                        "leave");
    value.action = POLICY_ACTION_UNSET;
    assert_string_equal(policy_setting_text(POLICY_SETTING_PRIORITY, &value, text, sizeof text),
                        "unset");
    value.action = POLICY_ACTION_ABSENT;
    assert_string_equal(policy_setting_text(POLICY_SETTING_PRIORITY, &value, text, sizeof text),
                        "");
}

static void line_that_was_just_short_enough_stays_so(void **state)
{
    size_t pattern = 65536 - strlen("name=");
    char *text = malloc(70000);

    (void)state;
    assert_non_null(text);
    size_t length = (size_t)snprintf(text, 70000, "%s[kernel k]\npriority=1\nname=", POLICY_HEADER);
    memset(text + length, 'a', pattern);
    text[length + pattern] = '\0';
    struct policy *policy = parse(text);
    char *canonical = printed(policy);
    struct policy *again = parse(canonical);
    assert_true(same_policy(policy, again));
    policy_free(again);
    free(canonical);
    policy_free(policy);
    free(text);
}

/* ---- the property: what was printed is read as the same policy ---------------------------------
 */

static uint64_t random_state;

/* A number below limit; the same sequence in each run. */
static unsigned random_below(unsigned limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % limit;
}

static const char *random_of(const char *const *texts, size_t count)
{
    return texts[random_below((unsigned)count)];
}

#define RANDOM_OF(texts) random_of(texts, sizeof(texts) / sizeof((texts)[0]))

static const char *random_value(const struct policy_key_entry *key)
{
    static const char *const globs[] = {
        "a*",  "\"  b ; c \"", "x[a-z]#1", "at::native::*", "\"\"\"q\"", "operator\"\"_k",
        "\\*", "caf\xc3\xa9",  "\"# x\"",  "a;b",           "\"a ; b\"", "=:[]x]"};
    static const char *const ranges[] = {"1", "1..4", "..9", "7..", "1,2,5..6", "..7 , 9.."};
    static const char *const devices[] = {"0..3", "GPU-8932f937-d7", "3b:00.0", "1,GPU-ab,ff:1f"};
    static const char *const maps[] = {"0 1", "255,0", "3 3", "unset", "leave"};
    static const char *const physical[] = {"0", "255", "leave"};
    static const char *const clusters[] = {"2", "2,1", "2 3 4", "leave"};
    static const char *const integers[] = {"0", "-5", "2147483647", "-2147483648", "leave"};
    static const char *const carveouts[] = {"default", "max_l1", "33%", "100", "unset"};
    static const char *const removals[] = {"leave", "unset"};
    static const char *const partitions[] = {"base", "p0", "p1", "leave"};
    static const char *const domains[] = {"0", "1", "255"};
    static const char *const counts[] = {"rest", "16", "10%", "3 %", "1"};
    static const char *const evens[] = {"2", "8", "32"};
    size_t count;
    const struct policy_word_entry *words = policy_vocabulary_words(&count);

    switch (key->kind) {
    case POLICY_VALUE_GLOB:
        return RANDOM_OF(globs);
    case POLICY_VALUE_RANGES:
        return RANDOM_OF(ranges);
    case POLICY_VALUE_DEVICES:
        return RANDOM_OF(devices);
    case POLICY_VALUE_DOMAIN_MAP:
        return RANDOM_OF(maps);
    case POLICY_VALUE_PHYSICAL_DOMAIN:
        return RANDOM_OF(physical);
    case POLICY_VALUE_CLUSTER:
        return RANDOM_OF(clusters);
    case POLICY_VALUE_INTEGER:
        return RANDOM_OF(integers);
    case POLICY_VALUE_CARVEOUT:
        return RANDOM_OF(carveouts);
    case POLICY_VALUE_REMOVAL:
        return RANDOM_OF(removals);
    case POLICY_VALUE_RULE_NAME:
        return "base";
    case POLICY_VALUE_PARTITION_NAME:
        return RANDOM_OF(partitions);
    case POLICY_VALUE_LOCALITY_DOMAIN:
        return RANDOM_OF(domains);
    case POLICY_VALUE_SM_COUNT:
        return RANDOM_OF(counts);
    case POLICY_VALUE_EVEN:
        return RANDOM_OF(evens);
    default:
        for (;;) {
            const struct policy_word_entry *word = &words[random_below((unsigned)count)];

            if (word->list == key->words) {
                return word->text;
            }
        }
    }
}

static void write_random_keys(FILE *stream, enum policy_section section)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);

    for (size_t i = 0; i < count; i++) {
        unsigned times = (keys[i].sections & 1u << section) != 0 ? random_below(3) : 0;

        for (unsigned j = 0; j < times && (j == 0 || keys[i].repeatable); j++) {
            fprintf(stream, "%s = %s\n", keys[i].text, random_value(&keys[i]));
        }
    }
}

/* A random rule; it may contradict itself. */
static void write_random_rule(FILE *stream, unsigned number)
{
    enum policy_section section = random_below(2) ? POLICY_SECTION_STREAM : POLICY_SECTION_KERNEL;

    fprintf(stream, "[%s r%u]\n", section == POLICY_SECTION_STREAM ? "stream" : "kernel", number);
    write_random_keys(stream, section);
}

/* Up to two partitions; they may contradict each other. */
static void write_random_partitions(FILE *stream)
{
    unsigned count = random_below(3);

    for (unsigned i = 0; i < count; i++) {
        fprintf(stream, "[partition p%u]\n", i);
        write_random_keys(stream, POLICY_SECTION_PARTITION);
    }
}

static void write_random_tune(FILE *stream)
{
    static const char *const lines[] = {
        "vary = base.priority = 0, -1",
        "vary = partition base.sm_count = 16,rest",
        "vary = \"r1.library = a # b, \"\"q\"\", c\"",
        "vary = r1.priority = 3,leave",
        "vary = r1.partition = base, leave",
    };

    fputs("[tune]\n", stream);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (random_below(2)) {
            fprintf(stream, "%s\n", lines[i]);
        }
    }
}

static void write_random_terms(FILE *stream)
{
    static const char *const lines[] = {
        "[env]\nA = \" \"\" ; \"\n", "[env replace]\nB = x ; c\nC = \"\"\n",
        "[expect]\nstream base: streams != 2, kept<5\nrule r1: launches >= 1\n"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        fputs(random_below(2) ? lines[i] : "", stream);
    }
}

static void printed_policy_is_read_as_the_same_policy(void **state)
{
    unsigned good = 0;

    (void)state;
    random_state = 88172645463325252u;
    for (unsigned i = 0; i < 30000; i++) {
        struct policy_diagnostics diagnostics = {0};
        char *text = NULL;
        size_t length = 0;
        FILE *stream = open_memstream(&text, &length);

        assert_non_null(stream);
        fprintf(stream, "%s[stream base]\n[partition base]\nsm_count = 8\n", POLICY_HEADER);
        write_random_partitions(stream);
        write_random_rule(stream, 1);
        if (random_below(2)) {
            write_random_tune(stream);
        }
        write_random_terms(stream);
        assert_int_equal(fclose(stream), 0);
        struct policy *policy = policy_parse(text, length, "test.ini", &diagnostics);
        if (policy != NULL) {
            char *canonical = printed(policy);
            struct policy *again = parse(canonical);
            char *twice = printed(again);

            good++;
            if (!same_policy(policy, again)) {
                fail_msg("not the same:\n%s\n%s", text, canonical);
            }
            assert_string_equal(canonical, twice);
            free(twice);
            policy_free(again);
            free(canonical);
        }
        policy_free(policy);
        policy_diagnostics_release(&diagnostics);
        free(text);
    }
    /* Rules that contradict themselves are refused, but many have to remain. */
    assert_true(good > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_form_has_keys_in_the_order_of_the_vocabulary),
        cmocka_unit_test(values_are_written_in_their_shortest_form),
        cmocka_unit_test(what_is_varied_is_written_with_its_kind),
        cmocka_unit_test(variables_and_conditions_are_written_one_a_line),
        cmocka_unit_test(settings_have_a_text),
        cmocka_unit_test(line_that_was_just_short_enough_stays_so),
        cmocka_unit_test(printed_policy_is_read_as_the_same_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
