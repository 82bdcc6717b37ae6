/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the forms of a kernel's name, and matching against them. The input is the mangled
 * name; behind a zero byte, a pattern may follow.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decide/kernel_name.h"
#include "policy/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process where it can be seen which property does not hold. */
static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* A pattern that matches exactly `text`. */
static char *escaped(const char *text)
{
    char *pattern = malloc(2 * strlen(text) + 1);
    char *end = pattern;

    if (pattern == NULL) {
        exit(0);
    }
    for (; *text != '\0'; text++) {
        *end++ = '\\';
        *end++ = *text;
    }
    *end = '\0';
    return pattern;
}

static void check_form(const struct kernel_name *name, enum policy_name_form form, const char *text,
                       const char *pattern)
{
    char *exact = escaped(text);

    must(kernel_name_matches(name, form, exact));
    must(kernel_name_matches(name, form, "*"));
    must(!glob_matches(pattern, text) || kernel_name_matches(name, form, pattern));
    free(exact);
}

static void check_name(const char *mangled, const char *pattern)
{
    struct kernel_name name;

    if (!kernel_name_make(mangled, &name)) {
        return; /* no memory */
    }
    must(strcmp(name.mangled, mangled) == 0);
    must(name.demangled || name.signature == name.mangled || name.name == name.mangled);
    must(name.last_component >= name.name && name.last_component <= name.name + strlen(name.name));
    must(name.last_component == name.name || name.last_component[-1] == ':');
    check_form(&name, POLICY_NAME_FORM_NAME, name.name, pattern);
    check_form(&name, POLICY_NAME_FORM_SIGNATURE, name.signature, pattern);
    check_form(&name, POLICY_NAME_FORM_MANGLED, name.mangled, pattern);
    kernel_name_release(&name);
    must(name.mangled == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 4);
    size_t length;

    if (text == NULL) {
        return 0;
    }
    memcpy(text, "_Z", 2);
    if (size > 0) {
        memcpy(text + 2, data, size);
    }
    memset(text + 2 + size, 0, 2); /* ends the name, and the pattern when there is none */
    length = strlen(text + 2);
    glob_error(text + 2 + length + 1, NULL);
    check_name(text + 2, text + 2 + length + 1);
    check_name(text, text + 2 + length + 1);
    free(text);
    return 0;
}
