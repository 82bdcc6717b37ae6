/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the Slurm plugin that need no Slurm, so that sanitizers see them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node_report.h"
#include "preload_list.h"
#include "request.h"
#include "settings.h"

#define LIBRARY "/lib/libcudapolicy.so"

static void assert_added(const char *list, const char *expected)
{
    char *result = slurm_preload_add(list, LIBRARY);

    assert_string_equal(result, expected);
    free(result);
}

static void assert_removed(const char *list, const char *expected)
{
    char *result = slurm_preload_remove(list);

    assert_string_equal(result, expected);
    free(result);
}

static void library_is_added_last_and_once(void **state)
{
    (void)state;
    assert_added(NULL, LIBRARY);
    assert_added("", LIBRARY);
    assert_added(" : ", LIBRARY);
    assert_added("a.so", "a.so:" LIBRARY);
    assert_added(" a.so::b.so ", "a.so:b.so:" LIBRARY);
    assert_added("/own/libcudapolicy.so:a.so", "/own/libcudapolicy.so:a.so");
    assert_added("libcudapolicy.so " LIBRARY ":a.so", "libcudapolicy.so:a.so");
    assert_added("/x/notlibcudapolicy.so", "/x/notlibcudapolicy.so:" LIBRARY);
}

static void every_copy_of_the_library_is_removed(void **state)
{
    (void)state;
    assert_removed(NULL, "");
    assert_removed(LIBRARY, "");
    assert_removed(LIBRARY " libcudapolicy.so", "");
    assert_removed("a.so:" LIBRARY ":b.so", "a.so:b.so");
    assert_removed("x/libcudapolicy.so.1", "x/libcudapolicy.so.1");
}

static void library_is_found_wherever_it_is(void **state)
{
    char *found = slurm_preload_find("a.so " LIBRARY ":b.so");

    (void)state;
    assert_string_equal(found, LIBRARY);
    free(found);
    assert_null(slurm_preload_find("a.so:b.so"));
    assert_null(slurm_preload_find(NULL));
}

static void settings_are_taken_and_the_first_mistake_is_told(void **state)
{
    char library[] = "library=/l.so", wrong[] = "library=l.so", unknown[] = "x",
         ceiling[] = "mode_ceiling=observe";
    char *arguments[] = {library, wrong, unknown, ceiling};
    char message[SLURM_MESSAGE_SIZE];
    struct slurm_settings settings;

    (void)state;
    assert_int_equal(slurm_settings_read(&settings, 1, arguments, message), 0);
    assert_string_equal(settings.library, "/l.so");
    assert_null(settings.default_policy);
    assert_int_equal(settings.mode_ceiling, POLICY_MODE_ENFORCE);
    assert_int_equal(slurm_settings_read(&settings, 4, arguments, message), -1);
    assert_string_equal(message, "library=l.so: not an absolute path");
    assert_int_equal(settings.mode_ceiling, POLICY_MODE_OBSERVE);
}

static void lower_of_two_modes_is_off_then_observe(void **state)
{
    static const enum policy_mode order[] = {POLICY_MODE_OFF, POLICY_MODE_OBSERVE,
                                             POLICY_MODE_ENFORCE};

    (void)state;
    for (size_t a = 0; a < 3; a++) {
        for (size_t b = 0; b < 3; b++) {
            assert_int_equal(policy_mode_lower(order[a], order[b]), order[a < b ? a : b]);
        }
    }
}

/* An environment of one variable. */
static const char *one_variable(void *environment, const char *name)
{
    const char *const *pair = environment;

    return strcmp(pair[0], name) == 0 ? pair[1] : NULL;
}

static void empty_variables_ask_for_nothing(void **state)
{
    const char *pair[] = {SLURM_REQUEST_POLICY, ""};
    char message[SLURM_MESSAGE_SIZE];
    struct slurm_request request;

    (void)state;
    assert_int_equal(slurm_request_read(&request, one_variable, pair, message), 0);
    assert_null(request.policy);
    pair[1] = "/p.ini";
    assert_int_equal(slurm_request_read(&request, one_variable, pair, message), 0);
    assert_string_equal(request.policy, "/p.ini");
}

static void wrong_mode_with_a_very_long_name_is_refused(void **state)
{
    char text[3 * SLURM_MESSAGE_SIZE], message[SLURM_MESSAGE_SIZE];
    const char *pair[] = {SLURM_REQUEST_MODE, text};
    struct slurm_request request;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(slurm_request_read(&request, one_variable, pair, message), -1);
}

static void options_go_before_variables_one_by_one(void **state)
{
    struct slurm_request request = {.policy = "a", .mode = "off"};
    const struct slurm_request none = {.no_policy = true}, report = {.report = "r"};

    (void)state;
    slurm_request_override(&request, &report);
    assert_string_equal(request.policy, "a");
    assert_string_equal(request.report, "r");
    slurm_request_override(&request, &none);
    assert_null(request.policy);
    assert_true(request.no_policy);
    assert_string_equal(request.mode, "off");
}

static const struct slurm_step step = {.job = 42, .node = 3, .name = "batch"};

static void a_path_that_ends_with_a_slash_is_a_folder_for_a_node(void **state)
{
    char message[SLURM_MESSAGE_SIZE];

    (void)state;
    assert_true(slurm_node_report_is_folder("/r/"));
    assert_false(slurm_node_report_is_folder("/r/%h-%p.json"));
    assert_false(slurm_node_report_is_folder(""));
    assert_false(slurm_node_report_is_folder(NULL));
    assert_int_equal(slurm_node_report_check("/r/%j/%h/%%p/", message), 0);
    assert_int_equal(slurm_node_report_check("/r/%p/", message), -1);
    assert_non_null(strstr(message, "cannot have %p in it"));
    assert_int_equal(slurm_node_report_check("/r/%%%r/", message), -1);
}

static void a_step_has_a_folder_of_its_own_on_each_node(void **state)
{
    char *path = slurm_node_report_path("/r/%j/100%%/", &step);
    char *template = slurm_node_report_template(path);

    (void)state;
    assert_ptr_equal(strstr(path, "/r/42/100%/42.batch-3-"), path);
    assert_ptr_equal(strstr(template, "/r/42/100%%/42.batch-3-"), template);
    assert_non_null(strstr(template, "/%h-%p.json"));
    free(template);
    free(path);
}

static void a_report_inherited_from_another_step_of_the_job_is_known(void **state)
{
    (void)state;
    assert_true(slurm_node_report_leads_into("/r/42.0-1-n/%h-%p.json", "/r/", &step));
    assert_true(slurm_node_report_leads_into("/a%%b/42.0-1-n/%h-%p.json", "/a%%b/", &step));
    assert_false(slurm_node_report_leads_into("/r/41.0-1-n/%h-%p.json", "/r/", &step));
    assert_false(slurm_node_report_leads_into("/r/mine.json", "/r/", &step));
    assert_false(slurm_node_report_leads_into("/mine/42.json", "/r/", &step));
    assert_false(slurm_node_report_leads_into(NULL, "/r/", &step));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_is_added_last_and_once),
        cmocka_unit_test(every_copy_of_the_library_is_removed),
        cmocka_unit_test(library_is_found_wherever_it_is),
        cmocka_unit_test(settings_are_taken_and_the_first_mistake_is_told),
        cmocka_unit_test(lower_of_two_modes_is_off_then_observe),
        cmocka_unit_test(empty_variables_ask_for_nothing),
        cmocka_unit_test(wrong_mode_with_a_very_long_name_is_refused),
        cmocka_unit_test(options_go_before_variables_one_by_one),
        cmocka_unit_test(a_path_that_ends_with_a_slash_is_a_folder_for_a_node),
        cmocka_unit_test(a_step_has_a_folder_of_its_own_on_each_node),
        cmocka_unit_test(a_report_inherited_from_another_step_of_the_job_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
