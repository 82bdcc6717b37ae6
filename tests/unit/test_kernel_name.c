/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of a kernel's name: what they are, on which stacks, and how patterns match them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decide/kernel_name.h"
#include "skip.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct forms {
    const char *mangled, *signature, *name, *last_component;
};

static const struct forms known[] = {
#define KERNEL_NAME(mangled, signature, name, last) {mangled, signature, name, last},
#define KERNEL_NAME_LONG(mangled, length, begin, end, name)
#include "kernel_names.def"
#undef KERNEL_NAME
#undef KERNEL_NAME_LONG
};

static const struct {
    const char *mangled;
    size_t signature_length;
    const char *signature_begin, *signature_end, *name;
} long_names[] = {
#define KERNEL_NAME(mangled, signature, name, last)
#define KERNEL_NAME_LONG(mangled, length, begin, end, name) {mangled, length, begin, end, name},
#include "kernel_names.def"
#undef KERNEL_NAME
#undef KERNEL_NAME_LONG
};

/* Whether the forms of known[index] come out right; does not use cmocka, so runs on any thread. */
static bool is_right(size_t index)
{
    const struct forms *expected = &known[index];
    struct kernel_name name;
    bool right;

    if (!kernel_name_make(expected->mangled, &name)) {
        return false;
    }
    right = name.demangled && strcmp(name.mangled, expected->mangled) == 0 &&
            strcmp(name.signature, expected->signature) == 0 &&
            strcmp(name.name, expected->name) == 0 &&
            strcmp(name.last_component, expected->last_component) == 0;
    kernel_name_release(&name);
    return right;
}

static bool long_name_is_right(size_t index)
{
    const char *begin = long_names[index].signature_begin;
    const char *end = long_names[index].signature_end;
    struct kernel_name name;
    size_t length;
    bool right;

    if (strlen(long_names[index].mangled) < 4000 ||
        !kernel_name_make(long_names[index].mangled, &name)) {
        return false;
    }
    length = strlen(name.signature);
    right = name.demangled && length == long_names[index].signature_length &&
            strncmp(name.signature, begin, strlen(begin)) == 0 &&
            strcmp(name.signature + length - strlen(end), end) == 0 &&
            strcmp(name.name, long_names[index].name) == 0;
    kernel_name_release(&name);
    return right;
}

static bool all_are_right(void)
{
    for (size_t i = 0; i < COUNT(known); i++) {
        if (!is_right(i)) {
            return false;
        }
    }
    for (size_t i = 0; i < COUNT(long_names); i++) {
        if (!long_name_is_right(i)) {
            return false;
        }
    }
    return true;
}

static void every_form_of_a_known_name_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct kernel_name name;

        assert_true(kernel_name_make(known[i].mangled, &name));
        assert_string_equal(name.mangled, known[i].mangled);
        assert_string_equal(name.signature, known[i].signature);
        assert_string_equal(name.name, known[i].name);
        assert_string_equal(name.last_component, known[i].last_component);
        assert_true(name.demangled);
        kernel_name_release(&name);
    }
}

static void name_of_more_than_4000_bytes_is_demangled(void **state)
{
    (void)state;
    assert_int_equal(COUNT(long_names), 1);
    assert_true(long_name_is_right(0));
}

static void *check_all(void *result)
{
    *(bool *)result = all_are_right();
    return NULL;
}

static void names_are_right_on_a_thread_with_a_64_kib_stack(void **state)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool right = false;

    (void)state;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 64 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attributes, check_all, &right), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_true(right);
}

static void names_are_right_on_many_threads_at_once(void **state)
{
    pthread_t threads[8];
    bool right[COUNT(threads)] = {false};

    (void)state;
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, check_all, &right[i]), 0);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(right[i]);
    }
}

static void empty_name_has_empty_forms(void **state)
{
    struct kernel_name name;

    (void)state;
    assert_true(kernel_name_make("", &name));
    assert_string_equal(name.signature, "");
    assert_string_equal(name.name, "");
    assert_string_equal(name.last_component, "");
    assert_true(kernel_name_matches(&name, POLICY_NAME_FORM_NAME, "*"));
    assert_false(kernel_name_matches(&name, POLICY_NAME_FORM_NAME, "?"));
    kernel_name_release(&name);
}

/* ---- Matching ----------------------------------------------------------------------------------
 */

static void pattern_is_matched_against_the_form_asked_for(void **state)
{
    static const char copy[] =
        "_ZN2at6native4copyIfEEvPT_i";       /* at::native::copy<float>(float*, int) */
    static const char index[] = "_ZN1SixEi"; /* S::operator[](int) */
    static const char convert[] = "_ZNK1ScvSt6vectorIiSaIiEEEv";
    static const char lambda[] = "_ZZ4mainENKUlvE_clEv";
    static const struct {
        const char *mangled;
        enum policy_name_form form;
        const char *glob;
        bool matches;
    } cases[] = {
        {copy, POLICY_NAME_FORM_NAME, "at::native::copy", true},
        {copy, POLICY_NAME_FORM_NAME, "at::*copy", true},
        {copy, POLICY_NAME_FORM_NAME, "copy", true},
        {copy, POLICY_NAME_FORM_NAME, "c*", true},
        {copy, POLICY_NAME_FORM_NAME, "at*", true},
        {copy, POLICY_NAME_FORM_NAME, "native", false},
        {copy, POLICY_NAME_FORM_NAME, "native::copy", false},
        {copy, POLICY_NAME_FORM_NAME, "*::copy", true},
        {copy, POLICY_NAME_FORM_NAME, "::copy", false},
        {copy, POLICY_NAME_FORM_NAME, "*float*", false},
        {copy, POLICY_NAME_FORM_NAME, "void*", false},
        {copy, POLICY_NAME_FORM_NAME, "_Z*", false},
        {copy, POLICY_NAME_FORM_SIGNATURE, "void at::native::copy<float>(float\\*, int)", true},
        {copy, POLICY_NAME_FORM_SIGNATURE, "*<float>*", true},
        {copy, POLICY_NAME_FORM_SIGNATURE, "at::native::copy", false},
        {copy, POLICY_NAME_FORM_SIGNATURE, "copy", false},
        {copy, POLICY_NAME_FORM_MANGLED, "_ZN2at6native4copyI*", true},
        {copy, POLICY_NAME_FORM_MANGLED, "copy", false},
        {index, POLICY_NAME_FORM_NAME, "operator\\[\\]", true},
        {index, POLICY_NAME_FORM_NAME, "S::operator\\[]", true},
        {index, POLICY_NAME_FORM_NAME, "operator[]", false},
        {convert, POLICY_NAME_FORM_NAME, "operator std*", true},
        {convert, POLICY_NAME_FORM_NAME, "operator std::*", false},
        {convert, POLICY_NAME_FORM_NAME, "vector*", false},
        {lambda, POLICY_NAME_FORM_NAME, "operator()", true},
        {lambda, POLICY_NAME_FORM_NAME, "main::{lambda()#1}::*", true},
        {"c_kernel", POLICY_NAME_FORM_NAME, "c_*", true},
        {"c_kernel", POLICY_NAME_FORM_SIGNATURE, "c_*", true},
        {"c_kernel", POLICY_NAME_FORM_MANGLED, "c_*", true},
        {"_Z1f$bad", POLICY_NAME_FORM_NAME, "_Z1f$bad", true},
        {"_Z1f$bad", POLICY_NAME_FORM_SIGNATURE, "_Z1f*", true},
        {"_Z1f$bad", POLICY_NAME_FORM_NAME, "f", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kernel_name name;

        assert_true(kernel_name_make(cases[i].mangled, &name));
        if (kernel_name_matches(&name, cases[i].form, cases[i].glob) != cases[i].matches) {
            fail_msg("\"%s\" on %s should %smatch", cases[i].glob, name.signature,
                     cases[i].matches ? "" : "not ");
        }
        kernel_name_release(&name);
    }
}

/* ---- What the process notices ------------------------------------------------------------------
 */

static void errno_is_kept(void **state)
{
    struct kernel_name name;

    (void)state;
    errno = EXDEV;
    assert_true(kernel_name_make(known[0].mangled, &name));
    assert_int_equal(errno, EXDEV);
    kernel_name_release(&name);
}

static void released_name_is_empty_and_may_be_released_again(void **state)
{
    struct kernel_name name;

    (void)state;
    assert_true(kernel_name_make(known[0].mangled, &name));
    kernel_name_release(&name);
    assert_null(name.mangled);
    assert_null(name.name);
    kernel_name_release(&name);
}

/* The status of a child that runs the function. */
static int in_child(int (*function)(void))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        _exit(function());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static int make_without_memory(void)
{
    struct rlimit limit = {.rlim_cur = 0, .rlim_max = 0};
    struct kernel_name name;

    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        return 1;
    }
    errno = EXDEV;
    if (kernel_name_make(known[0].mangled, &name)) {
        return 2;
    }
    return name.mangled == NULL && !name.demangled && errno == EXDEV ? 0 : 3;
}

static void lack_of_memory_is_told_and_leaves_nothing(void **state)
{
    (void)state;
#ifdef SANITIZED
    skip_because("the sanitizers need the memory themselves");
#endif
    assert_int_equal(in_child(make_without_memory), 0);
}

static atomic_bool stop;

static void *demangle_until_stopped(void *result)
{
    bool right = true;

    while (!atomic_load(&stop) && right) {
        right = long_name_is_right(0);
    }
    *(bool *)result = right;
    return NULL;
}

static int check_all_in_child(void)
{
    return all_are_right() ? 0 : 1;
}

static void child_forked_while_others_demangle_demangles_too(void **state)
{
    pthread_t threads[2];
    bool right[COUNT(threads)];

    (void)state;
#ifdef SANITIZED
    skip_because("a fork beside other threads is not supported by the sanitizers");
#endif
    atomic_store(&stop, false);
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, demangle_until_stopped, &right[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(in_child(check_all_in_child), 0);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(right[i]);
    }
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    volatile char frame[8192]; /* as much as a careless handler uses */

    (void)number;
    frame[0] = 1;
    frame[sizeof frame - 1] = frame[0];
    signals++;
}

static void signals_that_arrive_on_the_private_stack_do_no_harm(void **state)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct sigaction before;
    struct itimerval often = {.it_interval.tv_usec = 50, .it_value.tv_usec = 50};
    struct itimerval never = {.it_value.tv_usec = 0};

    (void)state;
    signals = 0;
    assert_int_equal(sigaction(SIGPROF, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_PROF, &often, NULL), 0);
    for (int i = 0; i < 100000 && signals < 20; i++) {
        assert_true(long_name_is_right(0));
    }
    assert_int_equal(setitimer(ITIMER_PROF, &never, NULL), 0);
    assert_int_equal(sigaction(SIGPROF, &before, NULL), 0);
    assert_true(signals >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_known_name_is_right),
        cmocka_unit_test(name_of_more_than_4000_bytes_is_demangled),
        cmocka_unit_test(names_are_right_on_a_thread_with_a_64_kib_stack),
        cmocka_unit_test(names_are_right_on_many_threads_at_once),
        cmocka_unit_test(empty_name_has_empty_forms),
        cmocka_unit_test(pattern_is_matched_against_the_form_asked_for),
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(released_name_is_empty_and_may_be_released_again),
        cmocka_unit_test(lack_of_memory_is_told_and_leaves_nothing),
        cmocka_unit_test(child_forked_while_others_demangle_demangles_too),
        cmocka_unit_test(signals_that_arrive_on_the_private_stack_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
