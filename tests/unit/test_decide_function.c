/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by handle: their names, what is kept about them, and when it is forgotten. */
#include "test_decide_support.h"

#include "decide/function.h"
#include "decide/pass.h"

static struct trial trial;

#define RULE "[kernel a]\nname = matched\nmem_sync_domain = remote\n"

static bool matches(struct fake_function *function)
{
    return decide_trial(trial_of(&trial, function))->change;
}

static const struct decide_pass_entry *pass_of(const void *function)
{
    uint64_t handle = (uintptr_t)function;
    const struct decide_pass_entry *entry =
        &decide_pass_table[handle * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS)];
    return entry->handle == handle ? entry : NULL;
}

/* ---- Names ---- */

static void the_driver_is_asked_for_the_name_of_a_function_once(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("matched");
    start_policy(RULE);
    assert_true(matches(&function));
    int names = fake.names;
    assert_true(names > 0);
    for (int i = 0; i < 10; i++)
        assert_true(matches(&function));
    assert_int_equal(fake.names, names);
}

static void a_kernel_handle_has_its_name_too(void **state)
{
    (void)state;
    struct fake_function kernel = fake_function_of("matched");
    kernel.kernel = true;
    start_policy(RULE);
    assert_true(matches(&kernel));
}

static void a_name_that_was_told_serves_drivers_that_do_not_say_it(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("not asked");
    cuda_driver.cuFuncGetName = NULL;
    cuda_driver.cuKernelGetName = NULL;
    start_policy(RULE);
    decide_function_named(&function, "matched", &fake);
    assert_true(matches(&function));
    assert_string_equal(kernel_of(&trial.verdict), "matched");
}

static void the_string_of_the_driver_is_copied(void **state)
{
    (void)state;
    char name[] = "matched";
    struct fake_function function = fake_function_of(NULL);
    start_policy(RULE);
    decide_function_named(&function, name, &fake);
    memset(name, 'x', sizeof name - 1);
    assert_true(matches(&function));
}

static void what_the_driver_says_beats_what_was_told(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("matched");
    start_policy(RULE);
    decide_function_named(&function, "of an earlier life of the handle", &fake);
    assert_true(matches(&function));
    int names = fake.names;
    assert_true(matches(&function));
    assert_int_equal(fake.names, names);
}

static void a_function_made_from_a_kernel_has_the_kernels_name(void **state)
{
    (void)state;
    struct fake_function kernel = fake_function_of("k"), function = fake_function_of("f");
    cuda_driver.cuFuncGetName = NULL;
    cuda_driver.cuKernelGetName = NULL;
    start_policy(RULE);
    decide_function_named(&kernel, "matched", &fake);
    decide_function_of_kernel((CUfunction)&function, (CUkernel)&kernel);
    assert_true(matches(&function));
    /* It goes with the kernel's library. */
    decide_container_gone(&fake);
    assert_false(matches(&function));
}

static void a_function_made_from_an_unknown_kernel_is_asked_about(void **state)
{
    (void)state;
    struct fake_function kernel = fake_function_of("matched"), function = fake_function_of(NULL);
    kernel.kernel = true;
    start_policy(RULE);
    decide_function_of_kernel((CUfunction)&function, (CUkernel)&kernel);
    assert_true(matches(&function));
}

static void a_function_without_any_name_is_counted_as_unknown(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of(NULL);
    start_policy(RULE);
    assert_false(matches(&function));
    assert_string_equal(kernel_of(&trial.verdict), "(unknown)");
    fake.name_result = CUDA_ERROR_DEINITIALIZED;
    struct fake_function other = fake_function_of("matched");
    assert_false(matches(&other));
}

static CUresult always_matched(const char **name, CUkernel kernel)
{
    (void)kernel;
    *name = "matched";
    return CUDA_SUCCESS;
}

/* As when memory is short: the map refuses this handle. Its name must be given up once only. */
static void a_function_that_cannot_be_kept_is_matched_all_the_same(void **state)
{
    (void)state;
    void *function = (void *)UINTPTR_MAX;
    start_policy(RULE);
    cuda_driver.cuKernelGetName = always_matched;
    cuda_driver.cuKernelGetLibrary = NULL;
    for (int i = 0; i < 3; i++) {
        struct decide_known known = decide_function_meet(function, NULL, false);
        assert_non_null(known.variant);
        assert_int_equal(known.serial, 0);
    }
}

static void no_function_at_all_is_left_for_the_driver_to_refuse(void **state)
{
    (void)state;
    start_policy("[kernel a]\nmem_sync_domain = remote\n");
    assert_false(matches(NULL));
    assert_int_equal(trial.verdict.cell, 0);
    decide_function_named(NULL, "x", NULL);
    decide_function_named(&trial, NULL, NULL);
    decide_function_of_kernel(NULL, NULL);
    decide_function_attribute_set(NULL, 1, 1, -1);
}

static void a_host_symbol_is_never_shown_to_the_driver(void **state)
{
    (void)state;
    struct fake_function symbol = fake_function_of("not asked");
    start_policy(RULE);
    trial_of(&trial, &symbol);
    trial.launch.layer = DECIDE_LAYER_RUNTIME;
    assert_false(decide_trial(&trial)->change);
    decide_function_named(&symbol, "matched", NULL);
    assert_true(decide_trial(&trial)->change);
    decide_container_gone(&fake); /* an unrelated module */
    decide_context_gone(NULL);
    assert_true(decide_trial(&trial)->change);
    assert_int_equal(fake.names, 0);
    assert_int_equal(fake.attributes, 0);
}

/* ---- Ends ---- */

static void a_handle_used_again_is_another_function(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("matched");
    int module, next;
    start_policy(RULE);
    decide_function_named(&function, "matched", &module);
    assert_true(matches(&function));
    decide_container_gone(&module);
    function.name = "other";
    decide_function_named(&function, "other", &next);
    assert_false(matches(&function));
    decide_container_gone(&next);
    function.name = "matched"; /* nobody told this time */
    assert_true(matches(&function));
}

static void a_new_name_replaces_an_old_one_whose_end_was_not_seen(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of(NULL);
    start_policy(RULE);
    decide_function_named(&function, "matched", &fake);
    assert_true(matches(&function));
    decide_function_named(&function, "other", &fake);
    assert_false(matches(&function));
    decide_function_named(&function, "matched", &trial);
    assert_true(matches(&function));
}

static void functions_of_other_containers_stay(void **state)
{
    (void)state;
    struct fake_function one = fake_function_of("matched"), two = fake_function_of("matched");
    int module_one, module_two;
    one.container = &module_one;
    two.container = &module_two;
    start_policy(RULE);
    decide_function_named(&one, "matched", &module_one);
    decide_function_named(&two, "matched", &module_two);
    assert_true(matches(&one));
    assert_true(matches(&two));
    int names = fake.names;
    decide_container_gone(&module_one);
    assert_true(matches(&two));
    assert_int_equal(fake.names, names);
    assert_true(matches(&one)); /* asked again */
    assert_true(fake.names > names);
}

static void a_library_takes_the_functions_of_its_modules_along(void **state)
{
    (void)state;
    int library, module;
    struct fake_function function = fake_function_of("matched");
    struct fake_function kernel = fake_function_of("matched");
    kernel.kernel = true;
    function.container = &module; /* made from the library: nobody tells */
    start_policy(RULE);
    decide_function_named(&function, "matched", &module);
    decide_function_named(&kernel, "matched", &trial); /* of another library */
    assert_true(matches(&function));
    assert_true(matches(&kernel));
    function.name = kernel.name = "other";
    decide_container_gone(&library);
    assert_false(matches(&function));
    assert_true(matches(&kernel));
}

static void what_was_not_told_is_forgotten_at_any_unloading(void **state)
{
    (void)state;
    int module;
    struct fake_function function = fake_function_of("matched"), told = fake_function_of("told");
    told.container = &module; /* known as a module, which takes nothing else along */
    start_policy(RULE);
    decide_function_named(&told, "told", &module);
    assert_false(matches(&told));
    assert_true(matches(&function));
    function.name = "other";
    decide_container_gone(&module);
    assert_false(matches(&function));
}

static void functions_go_with_their_context_and_kernels_stay(void **state)
{
    (void)state;
    int module, library, other;
    struct fake_function function = fake_function_of("matched");
    struct fake_function kernel = fake_function_of("matched");
    kernel.kernel = true;
    start_policy(RULE);
    decide_function_named(&function, "matched", &module);
    decide_function_named(&kernel, "matched", &library);
    assert_true(matches(&function));
    assert_true(matches(&kernel));
    function.name = kernel.name = "other";
    decide_context_gone((CUcontext)&other);
    assert_true(matches(&function));
    assert_true(matches(&kernel));
    decide_context_gone(fake.context);
    assert_false(matches(&function));
    assert_true(matches(&kernel)); /* lives on, and so does its name */
    decide_context_gone(NULL);
    assert_true(matches(&kernel));
}

/* ---- The stubs' table ---- */

static void a_function_that_no_rule_can_match_is_entered_for_the_stubs(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("other");
    start_policy(RULE);
    assert_null(pass_of(&function));
    assert_false(matches(&function));
    const struct decide_pass_entry *entry = pass_of(&function);
    assert_non_null(entry);
    assert_int_equal(
        entry->count_offset,
        offsetof(struct report_shard, launches[trial.verdict.cell][REPORT_LAUNCH_EAGER]));
    assert_result(&trial.verdict, MEM_SYNC_DOMAIN, NONE, NONE);
}

static void a_function_that_a_rule_may_match_is_not_entered(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("matched");
    start_policy("[kernel a]\nname = matched\ngrid_blocks = 1\nmem_sync_domain = remote\n");
    assert_false(matches(&function));
    assert_null(pass_of(&function));
    start_policy("[kernel a]\nname = matched\nlibrary = libx.so\nmem_sync_domain = remote\n");
    assert_false(matches(&function));
    assert_null(pass_of(&function));
    start_policy("[kernel a]\nname = matched\nmem_sync_domain = leave\n");
    assert_false(matches(&function));
    assert_null(pass_of(&function));
}

static void nothing_is_entered_while_default_streams_have_settings(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("other");
    start_policy("[stream l]\nkind = legacy\nmem_sync_domain = remote\n");
    decide_trial(trial_of(&trial, &function));
    assert_null(pass_of(&function));
}

static void the_stubs_forget_a_function_that_goes(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("other");
    int module;
    start_policy(RULE);
    for (int end = 0; end < 4; end++) {
        decide_function_named(&function, "other", &module);
        assert_false(matches(&function));
        assert_non_null(pass_of(&function));
        if (end == 0)
            decide_container_gone(&module);
        else if (end == 1)
            decide_context_gone(fake.context);
        else if (end == 2)
            decide_function_named(&function, "matched", &module);
        else
            start_policy(RULE);
        assert_null(pass_of(&function));
    }
}

static void a_collision_keeps_the_first_function(void **state)
{
    (void)state;
    start_policy(RULE);
    uint64_t first = 0x1000, second = first;
    do
        second += 64;
    while (second * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS) !=
           first * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS));
    decide_pass_enter((void *)(uintptr_t)first, 5);
    decide_pass_enter((void *)(uintptr_t)second, 6);
    assert_non_null(pass_of((void *)(uintptr_t)first));
    assert_null(pass_of((void *)(uintptr_t)second));
    decide_pass_leave((void *)(uintptr_t)second);
    assert_non_null(pass_of((void *)(uintptr_t)first));
    decide_pass_leave((void *)(uintptr_t)first);
    assert_null(pass_of((void *)(uintptr_t)first));
}

/* ---- Changes ---- */

static int occupancies_after(void (*change)(void *), void *function)
{
    int before = fake.occupancies;
    change(function);
    run_trial(&trial);
    return fake.occupancies - before;
}

static void set_shared_memory(void *function)
{
    decide_function_attribute_set(function, 8, 65536, -1);
}

static void set_more_shared_memory(void *function)
{
    decide_function_attribute_set(function, 8, 98304, -1);
}

static void set_shared_memory_on_device_1(void *function)
{
    decide_function_attribute_set(function, 8, 98304, 1);
}

static void set_an_unknown_attribute(void *function)
{
    decide_function_attribute_set(function, 99, 1, -1);
}

static void a_changed_function_is_asked_about_again(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("gemm");
    start_policy("[kernel a]\ncluster_dim = 2\n");
    run_trial(trial_of(&trial, &function));
    assert_true(occupancies_after(decide_function_changed, &function) > 0);
    assert_true(occupancies_after(decide_function_changed, NULL) > 0);
    assert_true(occupancies_after(set_shared_memory, &function) > 0);
    assert_true(occupancies_after(set_more_shared_memory, &function) > 0);
    assert_true(occupancies_after(set_shared_memory_on_device_1, &function) > 0);
    assert_true(occupancies_after(set_an_unknown_attribute, &function) > 0);
}

static void an_attribute_set_to_the_same_value_changes_nothing(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("gemm");
    start_policy("[kernel a]\ncluster_dim = 2\n");
    run_trial(trial_of(&trial, &function));
    set_shared_memory(&function);
    run_trial(&trial);
    assert_int_equal(occupancies_after(set_shared_memory, &function), 0);
    set_more_shared_memory(&function);
    assert_true(occupancies_after(set_shared_memory, &function) > 0);
}

static void a_kernel_and_its_functions_change_together(void **state)
{
    (void)state;
    struct fake_function function = fake_function_of("gemm");
    struct fake_function kernel = {.name = "gemm", .kernel = true, .function = &function};
    struct fake_function unrelated = fake_function_of("other");
    start_policy("[kernel a]\ncluster_dim = 2\n");
    decide_function_named(&kernel, "gemm", &fake);
    decide_function_of_kernel((CUfunction)&function, (CUkernel)&kernel);
    run_trial(trial_of(&trial, &unrelated));
    run_trial(trial_of(&trial, &kernel));
    assert_true(occupancies_after(set_shared_memory, &function) > 0);
    trial_of(&trial, &unrelated);
    assert_int_equal(occupancies_after(set_more_shared_memory, &function), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_driver_is_asked_for_the_name_of_a_function_once),
        TEST(a_kernel_handle_has_its_name_too),
        TEST(a_name_that_was_told_serves_drivers_that_do_not_say_it),
        TEST(the_string_of_the_driver_is_copied),
        TEST(what_the_driver_says_beats_what_was_told),
        TEST(a_function_made_from_a_kernel_has_the_kernels_name),
        TEST(a_function_made_from_an_unknown_kernel_is_asked_about),
        TEST(a_function_without_any_name_is_counted_as_unknown),
        TEST(a_function_that_cannot_be_kept_is_matched_all_the_same),
        TEST(no_function_at_all_is_left_for_the_driver_to_refuse),
        TEST(a_host_symbol_is_never_shown_to_the_driver),
        TEST(a_handle_used_again_is_another_function),
        TEST(a_new_name_replaces_an_old_one_whose_end_was_not_seen),
        TEST(functions_of_other_containers_stay),
        TEST(a_library_takes_the_functions_of_its_modules_along),
        TEST(what_was_not_told_is_forgotten_at_any_unloading),
        TEST(functions_go_with_their_context_and_kernels_stay),
        TEST(a_function_that_no_rule_can_match_is_entered_for_the_stubs),
        TEST(a_function_that_a_rule_may_match_is_not_entered),
        TEST(nothing_is_entered_while_default_streams_have_settings),
        TEST(the_stubs_forget_a_function_that_goes),
        TEST(a_collision_keeps_the_first_function),
        TEST(a_changed_function_is_asked_about_again),
        TEST(an_attribute_set_to_the_same_value_changes_nothing),
        TEST(a_kernel_and_its_functions_change_together),
    };
    return cmocka_run_group_tests_name("decide_function", tests, start_group, NULL);
}
