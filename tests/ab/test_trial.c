/* SPDX-License-Identifier: Apache-2.0 */

/* One run of a shell command: what became of it, and what is replaced in words. What an arm with
 * the preload gets is tested with the command (test_ab.py). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "metric.h"
#include "process_group.h"
#include "trial.h"

struct fixture {
    struct ab_experiment experiment;
    struct ab_trial_options options;
    char folder[64];
};

static int set_up(void **state)
{
    struct fixture *fixture = memory_allocate(1, sizeof *fixture);
    struct ab_experiment *experiment = &fixture->experiment;

    strcpy(fixture->folder, "/tmp/cudapolicy-test-XXXXXX");
    if (mkdtemp(fixture->folder) == NULL) {
        return -1;
    }
    fixture->options.folder = fixture->folder;
    experiment->arm_count = 1;
    experiment->arms = memory_allocate(1, sizeof *experiment->arms);
    experiment->arms[0] = (struct ab_arm){.name = memory_copy("none")};
    experiment->metric_count = 1;
    experiment->metrics = memory_allocate(1, sizeof *experiment->metrics);
    ab_metric_wall(&experiment->metrics[0]);
    experiment->metrics[0].primary = true;
    *state = fixture;
    ab_trial_catch_signals();
    return ab_trial_make_folders(&fixture->options) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char *remove_all = memory_format("rm -r %s", fixture->folder);
    int status = system(remove_all);

    free(remove_all);
    ab_experiment_release(&fixture->experiment);
    free(fixture);
    return status;
}

static void set_command(struct fixture *fixture, const char *shell)
{
    fixture->experiment.command = memory_allocate(4, sizeof(char *));
    fixture->experiment.command[0] = memory_copy("/bin/sh");
    fixture->experiment.command[1] = memory_copy("-c");
    fixture->experiment.command[2] = memory_copy(shell);
}

static const struct ab_run *make(struct fixture *fixture, const char *shell)
{
    struct ab_run *run = ab_experiment_add_run(&fixture->experiment);

    set_command(fixture, shell);
    run->block = 4;
    run->position = 2;
    assert_true(ab_trial_run(&fixture->experiment, &fixture->options, run));
    return run;
}

static void assert_expanded(struct fixture *fixture, const struct ab_run *run, const char *text,
                            const char *expected)
{
    char *expanded = ab_trial_expand(text, &fixture->experiment, run, "/f");

    assert_string_equal(expanded, expected);
    free(expanded);
}

static void names_in_braces_are_replaced_and_all_other_braces_stay(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run *run = ab_experiment_add_run(&fixture->experiment);

    run->block = 4;
    run->position = 2;
    assert_expanded(fixture, run, "", "");
    assert_expanded(fixture, run, "{arm}{block}{position}{run}{folder}", "none424-2/f");
    assert_expanded(fixture, run, "{{arm}} {{{arm}}}", "{arm} {{arm}}");
    assert_expanded(fixture, run, "{\"a\":{\"b\":{}}} {Arm} {arm {arms} }{ {",
                    "{\"a\":{\"b\":{}}} "
                    "{Arm} {arm {arms} "
                    "}{ {");
    run->warm_up = true;
    assert_expanded(fixture, run, "{run}", "w4-2");
    ab_experiment_drop_run(&fixture->experiment);
}

static void a_run_that_goes_well_has_a_time_and_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    const struct ab_run *run = make(fixture, "echo words");
    char *folder = ab_trial_folder(&fixture->experiment, &fixture->options, run);

    assert_int_equal(run->outcome, AB_OK);
    assert_true(run->seconds > 0 && run->seconds < 60);
    assert_true(run->values[0].value == run->seconds);
    assert_true(run->start_time > INT64_C(1700000000000000000));
    assert_false(run->policy.known);
    assert_int_equal(access(folder, F_OK), -1);
    free(folder);
}

static void an_exit_status_is_told(void **state)
{
    const struct ab_run *run = make(*state, "exit 7");

    assert_int_equal(run->outcome, AB_EXITED);
    assert_int_equal(run->status, 7);
    assert_string_equal(run->message, "exit status 7");
    assert_true(isnan(run->values[0].value));
}

static void a_signal_is_told(void **state)
{
    const struct ab_run *run = make(*state, "kill -SEGV $$");

    assert_int_equal(run->outcome, AB_SIGNALLED);
    assert_int_equal(run->status, SIGSEGV);
    assert_string_equal(run->message, "ended by signal 11 (Segmentation fault)");
}

static void a_program_that_is_not_there_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run *run = ab_experiment_add_run(&fixture->experiment);

    set_command(fixture, "");
    free(fixture->experiment.command[0]);
    fixture->experiment.command[0] = memory_copy("/none/such");
    assert_true(ab_trial_run(&fixture->experiment, &fixture->options, run));
    assert_int_equal(run->outcome, AB_EXITED);
    assert_int_equal(run->status, 127);
    assert_string_equal(run->message, "cannot be executed: No such file or directory");
}

static void a_time_limit_ends_all_processes_of_a_run(void **state)
{
    struct fixture *fixture = *state;
    const struct ab_run *run;

    fixture->options.time_limit = 0.2;
    run = make(fixture, "sleep 1000 & sleep 1000");
    assert_int_equal(run->outcome, AB_TIMED_OUT);
    assert_string_equal(run->message, "no end after 0.2 s");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_signal_to_us_ends_the_run_and_is_told_once(void **state)
{
    struct fixture *fixture = *state;
    const struct ab_run *run;

    assert_false(ab_trial_interrupted());
    run = make(fixture, "kill -TERM $PPID; exec sleep 1000");
    assert_int_equal(run->outcome, AB_INTERRUPTED);
    assert_true(ab_trial_interrupted());
    ab_trial_catch_signals();
    assert_false(ab_trial_interrupted());
}

static void a_signal_between_runs_is_not_lost(void **state)
{
    (void)state;
    assert_false(ab_trial_interrupted());
    raise(SIGINT);
    assert_true(ab_trial_interrupted());
    ab_trial_catch_signals();
}

static void the_command_has_the_signals_of_a_fresh_process(void **state)
{
    const struct ab_run *run = make(*state, "grep -E 'SigBlk|SigIgn' /proc/self/status >&2; "
                                            "grep -qE 'SigBlk:\\s+0+$' /proc/self/status");

    assert_int_equal(run->outcome, AB_OK);
}

static void cleanup_runs_also_after_a_run_that_failed(void **state)
{
    struct fixture *fixture = *state;
    char *marker = memory_format("%s/cleaned", fixture->folder);
    char *cleanup = memory_format("touch %s", marker);

    fixture->options.cleanup = cleanup;
    make(fixture, "exit 1");
    assert_int_equal(access(marker, F_OK), 0);
    free(cleanup);
    free(marker);
}

static void a_prepare_that_fails_makes_no_run(void **state)
{
    struct fixture *fixture = *state;
    struct ab_run *run = ab_experiment_add_run(&fixture->experiment);

    set_command(fixture, "touch made");
    fixture->options.prepare = "exit 1";
    assert_false(ab_trial_run(&fixture->experiment, &fixture->options, run));
    assert_int_equal(run->start_time, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(names_in_braces_are_replaced_and_all_other_braces_stay),
        TEST(a_run_that_goes_well_has_a_time_and_leaves_nothing),
        TEST(an_exit_status_is_told),
        TEST(a_signal_is_told),
        TEST(a_program_that_is_not_there_is_told),
        TEST(a_time_limit_ends_all_processes_of_a_run),
        TEST(a_signal_to_us_ends_the_run_and_is_told_once),
        TEST(a_signal_between_runs_is_not_lost),
        TEST(the_command_has_the_signals_of_a_fresh_process),
        TEST(cleanup_runs_also_after_a_run_that_failed),
        TEST(a_prepare_that_fails_makes_no_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
