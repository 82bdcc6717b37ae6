/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that no compiler writes: each ends soon, within its stack and its memory, and is reported
 * rather than guessed. Without the checks of src/decide/name_tree.c, most of these tests crash or
 * do not end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "decide/kernel_name.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void name_that_is_no_mangled_name_stands_for_itself_and_is_reported(void **state)
{
    static const char *const names[] = {
        "_Z",     "_Zebra",    "_Z3ab",         "_Z3fooi$abc",
        "_Z1fPU", "_ZN3fooE_", "_Z4000000000f", "_ZS_",
        "_Z1fT_", "_Z1fvE",    "_Z1f\001",      "__nv_static_20__5dfc5b90_4_t_cu_c_k__Zebra",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct kernel_name name;

        assert_true(kernel_name_make(names[i], &name));
        if (name.demangled) {
            fail_msg("%s was taken for %s", names[i], name.signature);
        }
        assert_string_equal(name.mangled, names[i]);
        assert_string_equal(name.signature, names[i]);
        if (strcmp(names[i], "_Z1fT_") == 0) { /* only its parameter refers to nothing */
            assert_string_equal(name.name, "f");
        } else {
            assert_string_equal(name.name, names[i]);
            assert_string_equal(name.last_component, names[i]);
        }
        kernel_name_release(&name);
    }
}

/* begin, then middle repeated, then end. */
static char *repeated(const char *begin, const char *middle, size_t times, const char *end)
{
    size_t begin_length = strlen(begin);
    size_t middle_length = strlen(middle);
    char *text = malloc(begin_length + middle_length * times + strlen(end) + 1);
    char *cursor = text;

    assert_non_null(text);
    memcpy(cursor, begin, begin_length);
    cursor += begin_length;
    for (size_t i = 0; i < times; i++) {
        memcpy(cursor, middle, middle_length);
        cursor += middle_length;
    }
    memcpy(cursor, end, strlen(end) + 1);
    return text;
}

/* Must come back, not demangled; `expected` is the name, NULL: the mangled name. Frees it. */
static void check_refused(char *mangled, const char *expected)
{
    struct kernel_name name;

    assert_true(kernel_name_make(mangled, &name));
    if (name.demangled) {
        fail_msg("%.100s... was demangled", mangled);
    }
    assert_string_equal(name.mangled, mangled);
    assert_string_equal(name.signature, mangled);
    assert_string_equal(name.name, expected != NULL ? expected : mangled);
    kernel_name_release(&name);
    free(mangled);
}

static void name_as_long_as_a_mebibyte_is_not_demangled(void **state)
{
    (void)state;
    check_refused(repeated("_ZN", "1a", 512 * 1024, "Ev"), NULL);
    check_refused(repeated("_Z1f", "P", 1024 * 1024, "i"), NULL);
    check_refused(repeated("_Z1f", "P", 64 * 1024, "i"), NULL);
}

static void deep_recursion_stays_within_its_stack(void **state)
{
    enum { DEEP = 60000 };

    (void)state;
    check_refused(repeated("_Z1f", "P", DEEP, "i"), "f");
    check_refused(repeated("_Z1f", "KP", DEEP / 2, "i"), "f");
    check_refused(repeated("_Z1f", "A_", DEEP / 2, "i"), "f");
    check_refused(repeated("_Z1f", "B1a", DEEP / 3, "v"), "f");
    check_refused(repeated("_Z1f", "F", DEEP, "i"), NULL);
    check_refused(repeated("_Z1f", "PFiA_", DEEP / 5, "i"), NULL);
    check_refused(repeated("_Z1fI", "I", DEEP, "i"), NULL);
    check_refused(repeated("_Z", "Z", DEEP, "1fv"), NULL);
    check_refused(repeated("_Z1fIX", "ng", DEEP / 2, "T_"), NULL);
    check_refused(repeated("_Z1fIX", "LZ", DEEP / 2, "1fv"), NULL);
    check_refused(repeated("_Z1f", "M", DEEP, "i"), NULL);
    check_refused(repeated("_Z1f", "DO", DEEP / 2, "i"), NULL);
    check_refused(repeated("_Z1f", "UlUl", DEEP / 4, "v"), NULL);
}

static void name_without_parameters_may_have_any_number_of_scopes(void **state)
{
    enum { SCOPES = 20000 };
    char *mangled = repeated("_ZN", "1a", SCOPES, "E");
    char *expected = repeated("a", "::a", SCOPES - 1, "");

    (void)state;
    check_refused(mangled, expected); /* the signature nests deeper than libiberty prints */
    free(expected);
}

/* f(A, A<A, A>, A<that, that>, ...): each parameter is twice as long as the one before it. */
static char *doubling_name(void)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *mangled = repeated("_Z1f1AS_IS_S_E", "S_IS0_S0_E", 30, "");
    char *parameter = mangled + strlen("_Z1f1AS_IS_S_E");

    for (size_t i = 0; i < 30; i++) {
        parameter[10 * i + 4] = digits[i];
        parameter[10 * i + 7] = digits[i];
    }
    return mangled;
}

static void signature_that_would_fill_the_memory_is_given_up(void **state)
{
    (void)state;
    check_refused(doubling_name(), "f"); /* 2^32 bytes */
}

static void name_that_takes_exponential_time_to_parse_is_not_parsed(void **state)
{
    char *begin = repeated("_ZN1Acv", "T_I", 200, "i");
    char *mangled = repeated(begin, "E", 200, "Ev");

    (void)state;
    free(begin);
    check_refused(mangled, NULL);
}

/* Dp A<A<A<i, i>, that>, that>...: the same type twice at each level, the second time by reference.
 */
static char *shared_pattern(void)
{
    enum { LEVELS = 60 };
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *mangled = repeated("_Z1fI1AEvDp", "S0_I", LEVELS, "S0_IiiE");
    char *whole = repeated(mangled, "S??_E", LEVELS, "");
    char *end = whole + strlen(mangled);

    free(mangled);
    for (size_t level = 1; level <= LEVELS; level++) { /* S1_ ... SZ_, S10_ ... */
        *end++ = 'S';
        if (level >= 36) {
            *end++ = digits[level / 36];
        }
        *end++ = digits[level % 36];
        *end++ = '_';
        *end++ = 'E';
    }
    *end = '\0';
    return whole;
}

static void name_that_takes_exponential_time_to_print_is_not_printed(void **state)
{
    (void)state;
    /* The pack of an expansion is looked for in both operands of each ++, which are the same one.
     */
    check_refused(repeated("_Z1fIiEDTsp", "pp", 1000, "T_EDpT_"), "f");
    check_refused(repeated("_Z1fIiEvDpDT", "pp", 1000, "fp_E"), "f");
    /* And in all of a type, however often it refers to the same part. */
    check_refused(shared_pattern(), "f");
    /* Packs in packs are walked, and print nothing. */
    check_refused(repeated("_Z1fIJJiiEJiiEEEvDpT_", "", 0, ""), "f");
}

static void tree_that_would_crash_the_printer_is_not_printed(void **state)
{
    /* On each of these, c++filt of binutils 2.40 dies of SIGSEGV. */
    static const char *const names[] = {
        "_Z1fZ1gvEUlDTsZT_EE_",
        "_Z1fIZ1gvEUlDTsZT_EE_EvT_",
#ifdef HAVE_DEMANGLE_TEMPLATE_HEAD /* elsewhere the parser knows no such lambda */
        "_Z1fFZ1gvEUlTyTyPFvT_EE_T_E",
        "_Z1fFZ1gvEUlTyTyPFvT_EE_PFvT_EE",
#endif
    };

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        check_refused(repeated(names[i], "", 0, ""), "f");
    }
}

static void arrays_of_the_printer_stay_within_its_stack(void **state)
{
    /* In lists of less than the 1,024 elements that it prints at all. */
    char *templates = repeated("J", "1AIiE", 900, "E");
    char *references = repeated("PFv", "RT_", 900, "E");
    char *begin = repeated("_Z1fI", templates, 3, "Ev");

    (void)state;
    check_refused(repeated(begin, references, 3, ""), "f"); /* 100 MB of them */
    free(begin);
    free(templates);
    free(references);
}

static void name_is_known_where_the_signature_nests_too_deep(void **state)
{
    (void)state;
    check_refused(repeated("_ZN2ns1kIJ", "Lb1E", 1100, "EEEvv"), "ns::k");
}

static void name_is_not_guessed_where_it_depends_on_what_is_left_out(void **state)
{
    struct kernel_name name;

    (void)state;
    /* The type of the second conversion operator is the parameter of the first: prints, but only
     * together with the arguments of the first. No compiler writes this. */
    assert_true(kernel_name_make("_ZZN1ScvRT_IiEEvEN1LcvS1_IiEEv", &name));
    assert_false(name.demangled);
    assert_string_equal(name.name, name.mangled);
    assert_string_equal(name.signature, "S::operator int&<int>()::L::operator int&<int>()");
    kernel_name_release(&name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_that_is_no_mangled_name_stands_for_itself_and_is_reported),
        cmocka_unit_test(name_as_long_as_a_mebibyte_is_not_demangled),
        cmocka_unit_test(deep_recursion_stays_within_its_stack),
        cmocka_unit_test(name_without_parameters_may_have_any_number_of_scopes),
        cmocka_unit_test(signature_that_would_fill_the_memory_is_given_up),
        cmocka_unit_test(name_that_takes_exponential_time_to_parse_is_not_parsed),
        cmocka_unit_test(name_that_takes_exponential_time_to_print_is_not_printed),
        cmocka_unit_test(tree_that_would_crash_the_printer_is_not_printed),
        cmocka_unit_test(arrays_of_the_printer_stay_within_its_stack),
        cmocka_unit_test(name_is_known_where_the_signature_nests_too_deep),
        cmocka_unit_test(name_is_not_guessed_where_it_depends_on_what_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
