/* SPDX-License-Identifier: Apache-2.0 */
/* A site's file: its sections, who may have written it, and the variable that carries it. */
#include "skip.h"
#include "test_policy_support.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/site.h"

/* ---- the sections ------------------------------------------------------------------------------
 */

static struct policy *parse_site(const char *body, struct policy_diagnostics *diagnostics)
{
    char text[4096];
    int length = snprintf(text, sizeof text, "%s%s", POLICY_HEADER, body);

    return policy_site_parse(text, (size_t)length, "site.ini", diagnostics);
}

static struct policy *expect_site(const char *body)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *site = parse_site(body, &diagnostics);

    if (site == NULL || diagnostics.count != 0) {
        fail_msg("expected no diagnostics, got %s", diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
    return site;
}

static void expect_site_error(const char *body, unsigned line, const char *message)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *site = parse_site(body, &diagnostics);

    if (site != NULL || diagnostics.error_count != 1 ||
        diagnostics.items[0].place.line != POLICY_HEADER_LINES + line ||
        strcmp(diagnostics.items[0].message, message) != 0) {
        fail_msg("expected %u: %s\n\tgot %s", POLICY_HEADER_LINES + line, message,
                 diagnostics_text(&diagnostics));
    }
    policy_diagnostics_release(&diagnostics);
}

static void what_a_site_does_not_say_has_a_default(void **state)
{
    struct policy *site = expect_site("");

    (void)state;
    assert_string_equal(site->site->path, "site.ini");
    assert_memory_equal(site->site->sha256, site->sha256, sizeof site->sha256);
    assert_false(site->site->mode_given);
    assert_int_equal(site->site->mode_ceiling, POLICY_MODE_ENFORCE);
    assert_null(site->site->reports);
    assert_true(site->site->exclude_defaults);
    assert_false(policy_site_asks(site));
    policy_free(site);
}

static void keys_of_a_site_are_read(void **state)
{
    struct policy *policy = expect_site("[site]\nmode = observe\nmode_ceiling = off\n"
                                        "reports = /r/%j.json\nexclude = a*\nexclude = b\n"
                                        "exclude_defaults = no\n");
    const struct policy_site *site = policy->site;

    (void)state;
    assert_true(site->mode_given);
    assert_int_equal(site->mode, POLICY_MODE_OBSERVE);
    assert_int_equal(site->mode_place.line, 4);
    assert_int_equal(site->mode_ceiling, POLICY_MODE_OFF);
    assert_int_equal(site->mode_ceiling_place.line, 5);
    assert_string_equal(site->reports, "/r/%j.json");
    assert_int_equal(site->exclude.count, 2);
    assert_int_equal(site->exclude_places[1].line, 8);
    assert_false(site->exclude_defaults);
    assert_true(policy_site_asks(policy));
    policy_free(policy);
}

static void rules_and_partitions_belong_to_the_marker_before_them(void **state)
{
    struct policy *site =
        expect_site("[locked]\n[kernel a]\nname = a\npriority = 0\n[partition p]\n"
                    "sm_count = 8\n[defaults]\n[stream a]\npartition = p\n"
                    "[kernel b]\nname = b\nlocality_domain = 1\n");

    (void)state;
    assert_int_equal(site->rule_count, 3);
    assert_int_equal(site->rules[0].layer, POLICY_LAYER_LOCKED);
    assert_int_equal(site->rules[1].layer, POLICY_LAYER_DEFAULTS);
    assert_int_equal(site->partitions[0].layer, POLICY_LAYER_LOCKED);
    assert_int_equal(site->partitions[1].layer, POLICY_LAYER_DEFAULTS);
    policy_free(site);
}

static void rule_before_the_markers_is_an_error(void **state)
{
    (void)state;
    expect_site_error("[kernel k]\npriority = 0\n", 1,
                      "[kernel] stands before [locked] and [defaults]: one of them has to say "
                      "whether it is read before the job's policy or after it");
    expect_site_error("[site]\n[partition p]\nsm_count = 8\n[locked]\n", 2,
                      "[partition] stands before [locked] and [defaults]: one of them has to say "
                      "whether it is read before the job's policy or after it");
}

static void markers_stand_once_and_in_the_order_of_reading(void **state)
{
    (void)state;
    expect_site_error("[locked]\n[locked]\n", 2, "second [locked]; the first is in line 3");
    expect_site_error("[defaults]\n[defaults]\n", 2, "second [defaults]; the first is in line 3");
    expect_site_error("[site]\n[site]\n", 2, "second [site]; the first is in line 3");
    expect_site_error("[defaults]\n[locked]\n", 2,
                      "[locked] has to stand before [defaults], which is in line 3: its rules are "
                      "read first");
    expect_site_error("[locked kernels]\n", 1, "[locked] takes no name");
    expect_site_error("[locked]\nname = x\n", 2, "name cannot stand in [locked], only in [kernel]");
}

static void sections_belong_into_their_kind_of_file(void **state)
{
    (void)state;
    expect_error("[site]\nmode = off\n", 1, 1,
                 "[site] belongs into the site's file, not into the policy of a job");
    expect_error("[locked]\n", 1, 1,
                 "[locked] belongs into the site's file, not into the policy of a job");
    expect_error("[defaults]\n", 1, 1,
                 "[defaults] belongs into the site's file, not into the policy of a job");
    expect_site_error("[tune]\n", 1,
                      "[tune] belongs into the policy of a job, not into the site's file");
    expect_site_error("mode = observe\n", 1, "the mode of a site's file stands in [site]");
}

static void wrong_values_of_a_site_are_errors(void **state)
{
    (void)state;
    expect_site_error("[site]\nmode_ceiling = on\n", 2,
                      "mode_ceiling: \"on\" is not enforce, observe or off");
    expect_site_error("[site]\nreports = r.json\n", 2,
                      "reports: it is an absolute path: programs run in many folders");
    expect_site_error("[site]\nexclude = /bin/sh\n", 2,
                      "exclude: it is compared with the base name of the executable, without "
                      "folders");
    expect_site_error("[site]\nexclude = [a\n", 2,
                      "exclude: '[' without a closing ']' (write \\[ for the character itself)");
    expect_site_error("[site]\nmode = off\nmode = off\n", 3,
                      "mode is given twice; the first is in line 4");
}

static void names_of_the_file_are_unique_over_both_markers(void **state)
{
    (void)state;
    expect_site_error("[locked]\n[kernel a]\nname = x\npriority = 0\n[defaults]\n[kernel a]\n"
                      "name = y\npriority = 0\n",
                      6, "second [kernel a]; the first is in line 4");
}

/* ---- executables -------------------------------------------------------------------------------
 */

static void executables_are_left_alone_by_pattern(void **state)
{
    struct policy *policy = expect_site("[site]\nexclude = my-*\n");
    struct policy_place place;

    (void)state;
    assert_string_equal(policy_site_excludes(policy->site, "my-tool", &place), "my-*");
    assert_int_equal(place.line, 4);
    assert_string_equal(policy_site_excludes(policy->site, "bash", &place), "bash");
    assert_int_equal(place.line, 0);
    assert_null(policy_site_excludes(policy->site, "python3.11", NULL));
    assert_null(policy_site_excludes(policy->site, "all_reduce_perf", NULL));
    policy_free(policy);
}

static void built_in_patterns_are_patterns(void **state)
{
    size_t count;
    const char *const *patterns = policy_site_default_excludes(&count);

    (void)state;
    assert_true(count > 10);
    for (size_t i = 0; i < count; i++) {
        char body[128];

        snprintf(body, sizeof body, "[site]\nexclude = %s\n", patterns[i]);
        policy_free(expect_site(body));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(patterns[i], patterns[j]);
        }
    }
}

/* ---- the variable ------------------------------------------------------------------------------
 */

static void text_goes_through_the_variable_unchanged(void **state)
{
    static const char text[] = "[policy]\r\nversion = 1\t; 100% \x7f\xc3\xa4\n\n# end";
    struct policy_diagnostics diagnostics = {0};
    char *encoded = policy_site_encode(text, sizeof text - 1), *decoded;
    size_t length = 0;

    (void)state;
    assert_non_null(encoded);
    for (const char *byte = encoded; *byte != '\0'; byte++) {
        assert_true((unsigned char)*byte >= 0x20 && *byte != 0x7f);
    }
    decoded = policy_site_decode(encoded, &length, &diagnostics);
    assert_non_null(decoded);
    assert_int_equal(length, sizeof text - 1);
    assert_memory_equal(decoded, text, length);
    free(encoded);
    free(decoded);
}

static void value_that_nobody_encoded_is_refused(void **state)
{
    static const char *const values[] = {"%", "%4", "%4g", "a%", "%%41"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct policy_diagnostics diagnostics = {0};
        size_t length;

        assert_null(policy_site_decode(values[i], &length, &diagnostics));
        assert_int_equal(diagnostics.error_count, 1);
        policy_diagnostics_release(&diagnostics);
    }
}

/* ---- the file ----------------------------------------------------------------------------------
 */

static char folder[PATH_MAX];

static int make_folder(void **state)
{
    const char *parent = getenv("TMPDIR");
    char made[PATH_MAX];

    (void)state;
    umask(022);
    snprintf(made, sizeof made, "%s/policy-site-XXXXXX",
             parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    return mkdtemp(made) == NULL || realpath(made, folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    char command[PATH_MAX + 16];

    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX + 64];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *make_file(const char *name, const char *text)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0644), 0);
    return path;
}

static const char *make_subfolder(const char *name, mode_t mode)
{
    const char *path = path_of(name);

    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static struct policy_site_place place_of(const char *path)
{
    return (struct policy_site_place){.path = path, .owner = geteuid()};
}

static void expect_read(const char *path, const char *text)
{
    struct policy_site_place place = place_of(path);
    struct policy_diagnostics diagnostics = {0};
    size_t length = 0;
    bool absent = true;
    char *found;

    errno = 77;
    found = policy_site_read(&place, &length, &absent, &diagnostics);
    if (found == NULL) {
        fail_msg("%s was not read: %s", path, diagnostics_text(&diagnostics));
    }
    assert_int_equal(errno, 77);
    assert_false(absent);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(found, text, length);
    free(found);
}

/* message: with %s for the folder of the test. */
static void expect_refused_at(struct policy_site_place place, const char *message)
{
    struct policy_diagnostics diagnostics = {0};
    char wanted[2 * PATH_MAX];
    size_t length = 0;
    bool absent = true;

    snprintf(wanted, sizeof wanted, message, folder);
    assert_null(policy_site_read(&place, &length, &absent, &diagnostics));
    assert_false(absent);
    assert_int_equal(diagnostics.error_count, 1);
    assert_string_equal(diagnostics.items[0].message, wanted);
    policy_diagnostics_release(&diagnostics);
}

static void expect_refused(const char *path, const char *message)
{
    expect_refused_at(place_of(path), message);
}

static void expect_absent(const char *path)
{
    struct policy_site_place place = place_of(path);
    struct policy_diagnostics diagnostics = {0};
    size_t length = 0;
    bool absent = false;

    assert_null(policy_site_read(&place, &length, &absent, &diagnostics));
    assert_true(absent);
    assert_int_equal(diagnostics.count, 0);
}

static void file_is_read_through_folders_and_links_that_are_the_owners(void **state)
{
    (void)state;
    make_subfolder("real", 0755);
    make_file("real/site.ini", "text");
    expect_read(path_of("real/site.ini"), "text");
    expect_read(path_of("real//.//../real/site.ini"), "text");
    assert_int_equal(symlink("real", path_of("relative")), 0);
    expect_read(path_of("relative/site.ini"), "text");
    assert_int_equal(symlink(path_of("real/site.ini"), path_of("absolute")), 0);
    expect_read(path_of("absolute"), "text");
    assert_int_equal(symlink("relative/../real/site.ini", path_of("around")), 0);
    expect_read(path_of("around"), "text");
}

static void what_is_not_there_is_absent(void **state)
{
    (void)state;
    expect_absent(path_of("none"));
    expect_absent(path_of("none/site.ini"));
    assert_int_equal(symlink("none", path_of("dangling")), 0);
    expect_absent(path_of("dangling"));
    expect_absent("");
}

static void writable_file_is_refused(void **state)
{
    (void)state;
    chmod(make_file("group", ""), 0664);
    expect_refused(path_of("group"),
                   "refused: %s/group may be written to by others than its owner");
    chmod(make_file("others", ""), 0602);
    expect_refused(path_of("others"),
                   "refused: %s/others may be written to by others than its owner");
}

static void writable_folder_is_refused_wherever_it_is_on_the_way(void **state)
{
    (void)state;
    make_subfolder("open", 0755);
    make_subfolder("open/inner", 0755);
    make_file("open/inner/site.ini", "text");
    assert_int_equal(symlink("open/inner/site.ini", path_of("to-open")), 0);
    expect_read(path_of("to-open"), "text");
    chmod(path_of("open"), 0775);
    expect_refused(path_of("open/inner/site.ini"),
                   "refused: %s/open is a folder that others than its owner may write to");
    expect_refused(path_of("to-open"),
                   "refused: %s/open is a folder that others than its owner may write to");
    /* Through it and out again: who may write there may exchange what .. is a part of. */
    make_file("outside.ini", "text");
    expect_refused(path_of("open/inner/../../outside.ini"),
                   "refused: %s/open is a folder that others than its owner may write to");
    chmod(path_of("open"), 01777);
    expect_read(path_of("open/inner/site.ini"), "text");
}

static void second_name_in_a_shared_folder_is_refused(void **state)
{
    (void)state;
    make_subfolder("sticky", 01777);
    make_file("first.ini", "text");
    assert_int_equal(link(path_of("first.ini"), path_of("sticky/second.ini")), 0);
    expect_refused(path_of("sticky/second.ini"),
                   "refused: %s/sticky/second.ini has several names, and others may make names in "
                   "its folder");
    expect_read(path_of("first.ini"), "text");
}

static void what_is_no_regular_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path_of("fifo"), 0644), 0);
    expect_refused(path_of("fifo"), "refused: %s/fifo is not a regular file");
    make_subfolder("folder", 0755);
    expect_refused(path_of("folder"), "refused: %s/folder is not a regular file");
    expect_refused(path_of("folder/."), "refused: %s/folder is not a regular file");
    expect_refused(path_of("folder/.."), "refused: %s/folder/.. is not a regular file");
    make_file("file", "");
    expect_refused(path_of("file/site.ini"),
                   "refused: %s/file: a part of the path is not a directory");
    expect_refused("/", "refused: / is not a regular file");
    expect_refused("site.ini", "refused: site.ini is not an absolute path");
}

static void links_that_go_round_are_refused(void **state)
{
    (void)state;
    assert_int_equal(symlink("loop", path_of("loop")), 0);
    expect_refused(path_of("loop"), "refused: %s/loop: too many symbolic links");
    expect_refused(path_of("loop/site.ini"), "refused: %s/loop: too many symbolic links");
}

static void large_file_is_refused(void **state)
{
    (void)state;
    make_file("large", "");
    assert_int_equal(truncate(path_of("large"), POLICY_SITE_FILE_LIMIT + 1), 0);
    expect_refused(path_of("large"), "refused: %s/large is larger than 1 MiB");
}

static void other_owners_are_refused_file_folder_and_link(void **state)
{
    struct policy_site_place place = {.owner = 0};
    char link[PATH_MAX + 64];

    (void)state;
    if (geteuid() != 0) {
        skip_because("only root can make files of others");
    }
    make_subfolder("theirs", 0755);
    make_file("theirs/site.ini", "text");
    assert_int_equal(symlink("theirs/site.ini", path_of("link")), 0);
    snprintf(link, sizeof link, "%s", path_of("link"));
    place.path = link;
    assert_int_equal(lchown(path_of("link"), 4321, 0), 0);
    expect_refused_at(place, "refused: %s/link belongs to user 4321, not to root");
    assert_int_equal(lchown(path_of("link"), 0, 0), 0);
    assert_int_equal(lchown(path_of("theirs"), 4321, 0), 0);
    expect_refused_at(place, "refused: %s/theirs belongs to user 4321, not to root");
    assert_int_equal(lchown(path_of("theirs"), 0, 0), 0);
    assert_int_equal(lchown(path_of("theirs/site.ini"), 4321, 0), 0);
    expect_refused_at(place, "refused: %s/theirs/site.ini belongs to user 4321, not to root");
}

/* ---- a race ------------------------------------------------------------------------------------
 */

static atomic_bool racing;

/* Another user exchanges, again and again, his own good-looking file for a link to the owner's, and
 * back. Here both are the test's own, told apart by the sticky folder and a mode. */
static void *exchange(void *unused)
{
    char bad[PATH_MAX + 64], good[PATH_MAX + 64], name[PATH_MAX + 64];

    (void)unused;
    snprintf(bad, sizeof bad, "%s/race/bad", folder);
    snprintf(good, sizeof good, "%s/race/good", folder);
    snprintf(name, sizeof name, "%s/race/site.ini", folder);
    while (atomic_load(&racing)) {
        unlink(name);
        if (link(bad, name) != 0) {
            break;
        }
        unlink(name);
        if (symlink(good, name) != 0) {
            break;
        }
    }
    return NULL;
}

static void file_that_is_exchanged_meanwhile_is_never_the_bad_one(void **state)
{
    struct policy_site_place place = place_of("");
    char name[PATH_MAX + 64];
    pthread_t thread;

    (void)state;
    make_subfolder("race", 0755);
    make_file("race/good", "good");
    chmod(make_file("race/bad", "bad"), 0666);
    snprintf(name, sizeof name, "%s/race/site.ini", folder);
    place.path = name;
    atomic_store(&racing, true);
    assert_int_equal(pthread_create(&thread, NULL, exchange, NULL), 0);
    for (int i = 0; i < 3000; i++) {
        struct policy_diagnostics diagnostics = {0};
        size_t length = 0;
        bool absent;
        char *text = policy_site_read(&place, &length, &absent, &diagnostics);

        if (text != NULL) {
            assert_int_equal(length, 4);
            assert_memory_equal(text, "good", 4);
        }
        free(text);
        policy_diagnostics_release(&diagnostics);
    }
    atomic_store(&racing, false);
    pthread_join(thread, NULL);
}

/* ---- either ------------------------------------------------------------------------------------
 */

static struct policy *load(const char *path, const char *variable, bool *absent,
                           struct policy_diagnostics *diagnostics)
{
    struct policy_site_place place = place_of(path);

    *diagnostics = (struct policy_diagnostics){0};
    return policy_site_load(&place, variable, absent, diagnostics);
}

static void variable_holds_only_where_there_is_no_file(void **state)
{
    static const char variable[] = "[policy]%0Aversion = 1%0A[site]%0Amode = off%0A";
    struct policy_diagnostics diagnostics;
    struct policy *policy;
    bool absent;

    (void)state;
    policy = load(path_of("none"), variable, &absent, &diagnostics);
    assert_non_null(policy);
    assert_string_equal(policy->site->path, "site (from CUDAPOLICY_SITE)");
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);

    make_file("either.ini", POLICY_HEADER);
    policy = load(path_of("either.ini"), variable, &absent, &diagnostics);
    assert_non_null(policy);
    assert_string_equal(policy->site->path, path_of("either.ini"));
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);

    chmod(path_of("either.ini"), 0666);
    assert_null(load(path_of("either.ini"), variable, &absent, &diagnostics));
    assert_false(absent);
    assert_int_equal(diagnostics.error_count, 1);
    assert_int_equal(strncmp(diagnostics.file, "site /", 6), 0);
    policy_diagnostics_release(&diagnostics);

    assert_null(load(path_of("none"), "", &absent, &diagnostics));
    assert_true(absent);
    assert_null(load("", variable, &absent, &diagnostics)); /* built without a site layer */
    assert_true(absent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_site_does_not_say_has_a_default),
        cmocka_unit_test(keys_of_a_site_are_read),
        cmocka_unit_test(rules_and_partitions_belong_to_the_marker_before_them),
        cmocka_unit_test(rule_before_the_markers_is_an_error),
        cmocka_unit_test(markers_stand_once_and_in_the_order_of_reading),
        cmocka_unit_test(sections_belong_into_their_kind_of_file),
        cmocka_unit_test(wrong_values_of_a_site_are_errors),
        cmocka_unit_test(names_of_the_file_are_unique_over_both_markers),
        cmocka_unit_test(executables_are_left_alone_by_pattern),
        cmocka_unit_test(built_in_patterns_are_patterns),
        cmocka_unit_test(text_goes_through_the_variable_unchanged),
        cmocka_unit_test(value_that_nobody_encoded_is_refused),
        cmocka_unit_test(file_is_read_through_folders_and_links_that_are_the_owners),
        cmocka_unit_test(what_is_not_there_is_absent),
        cmocka_unit_test(writable_file_is_refused),
        cmocka_unit_test(writable_folder_is_refused_wherever_it_is_on_the_way),
        cmocka_unit_test(second_name_in_a_shared_folder_is_refused),
        cmocka_unit_test(what_is_no_regular_file_is_refused),
        cmocka_unit_test(links_that_go_round_are_refused),
        cmocka_unit_test(large_file_is_refused),
        cmocka_unit_test(other_owners_are_refused_file_folder_and_link),
        cmocka_unit_test(file_that_is_exchanged_meanwhile_is_never_the_bad_one),
        cmocka_unit_test(variable_holds_only_where_there_is_no_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
