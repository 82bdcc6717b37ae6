/* SPDX-License-Identifier: Apache-2.0 */
/* Old drivers: settings that they do not know are refused, and what they lack is not called. The
 * driver's version is asked once in a process, so each scenario runs in a child of its own. */
#include "test_decide_support.h"

#include "decide/function.h"

#include <sys/wait.h>
#include <unistd.h>

static struct trial trial;

/* cmocka's assertions jump back into the parent's list of tests; a child ends instead. */
#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void in_child(void (*scenario)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        scenario();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static struct report_result result(enum policy_setting setting)
{
    return result_of(&trial.verdict, setting);
}

static void launch_with_every_setting(int version)
{
    static struct fake_function function;
    function = fake_function_of("k");
    fake.version = version;
    fake.devices[0].major = 10;
    start_policy("[kernel a]\nmem_sync_domain = remote\nmem_sync_domain_map = 0 1\n"
                 "cluster_dim = 2\npreferred_cluster_dim = 4\ncluster_scheduling = spread\n"
                 "priority = 1\nshared_memory_carveout = 10\nnvlink_util_centric = yes\n");
    decide_trial(trial_of(&trial, &function));
}

static void expect_known(enum policy_setting setting, bool known)
{
    struct report_result found = result(setting);
    expect((found.reason != REPORT_REASON_DRIVER_TOO_OLD) == known);
    expect((found.outcome == REPORT_OUTCOME_APPLIED) == known);
}

static void expect_known_at(int version, const bool known[8])
{
    launch_with_every_setting(version);
    for (unsigned setting = 0; setting < 8; setting++)
        expect_known((enum policy_setting)setting, known[setting]);
}

static void at_11_8(void)
{
    expect_known_at(11080, (bool[]){false, false, true, false, true, true, false, false});
}

static void at_12_0(void)
{
    expect_known_at(12000, (bool[]){true, true, true, false, true, true, false, false});
}

static void at_12_5(void)
{
    expect_known_at(12050, (bool[]){true, true, true, false, true, true, true, false});
}

static void at_12_8(void)
{
    expect_known_at(12080, (bool[]){true, true, true, true, true, true, true, false});
}

static void at_13_0(void)
{
    expect_known_at(13000, (bool[]){true, true, true, true, true, true, true, true});
}

static void without_a_version(void)
{
    cuda_driver.cuDriverGetVersion = NULL;
    expect_known_at(0, (bool[]){true, true, true, true, true, true, true, true});
}

static void each_setting_is_known_from_its_version_on(void **state)
{
    (void)state;
    in_child(at_11_8);
    in_child(at_12_0);
    in_child(at_12_5);
    in_child(at_12_8);
    in_child(at_13_0);
}

static void a_driver_that_hides_its_version_is_taken_as_new(void **state)
{
    (void)state;
    in_child(without_a_version);
}

static void with_nothing_but_launches(void)
{
    memset(&cuda_driver, 0, sizeof cuda_driver);
    struct fake_function function = fake_function_of("k");
    start_policy("[kernel a]\nmem_sync_domain = remote\ncluster_dim = 2\npriority = 1\n");
    for (int round = 0; round < 5; round++) {
        decide_trial(trial_of(&trial, &function));
        expect(trial.verdict.change);
        expect(trial.verdict.config.numAttrs == 1);
        expect(result(POLICY_SETTING_MEM_SYNC_DOMAIN).reason == REPORT_REASON_DEVICE_UNKNOWN);
        expect(result(POLICY_SETTING_CLUSTER_DIM).reason == REPORT_REASON_DEVICE_UNKNOWN);
    }
}

static void a_driver_without_any_query_still_gets_what_needs_none(void **state)
{
    (void)state;
    in_child(with_nothing_but_launches);
}

/* ---- The child of a fork ---- */

static struct fake_function forked_function;
static const char forked_policy[] = "[kernel a]\nrank = 0\nmem_sync_domain = remote\n"
                                    "[kernel b]\nrank = 1\nmem_sync_domain = default\n";

static void with_another_rank(void)
{
    this_process.rank = 1;
    start_policy(forked_policy);
    decide_trial(trial_of(&trial, &forked_function));
    expect(result(POLICY_SETTING_MEM_SYNC_DOMAIN).rule == 1);
}

/* The locks of the engine are made anew: a thread that the child does not have may have held them.
 */
static void a_child_decides_by_its_own_rank(void **state)
{
    (void)state;
    forked_function = fake_function_of("k");
    this_process.rank = 0;
    start_policy(forked_policy);
    decide_trial(trial_of(&trial, &forked_function));
    assert_int_equal(result_of(&trial.verdict, POLICY_SETTING_MEM_SYNC_DOMAIN).rule, 0);
    handle_map_lock(&decide_functions);
    in_child(with_another_rank);
    handle_map_unlock(&decide_functions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_setting_is_known_from_its_version_on),
        TEST(a_driver_that_hides_its_version_is_taken_as_new),
        TEST(a_driver_without_any_query_still_gets_what_needs_none),
        TEST(a_child_decides_by_its_own_rank),
    };
    return cmocka_run_group_tests_name("decide_age", tests, start_group, NULL);
}
