/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* All of standard input, or a little more than a policy may have: the parser refuses that. */
static char *read_standard_input(size_t *length)
{
    size_t capacity = 0;
    char *text = NULL;

    *length = 0;
    do {
        text = memory_grow(text, *length, &capacity, 1);
        *length += fread(text + *length, 1, capacity - *length, stdin);
    } while (!feof(stdin) && !ferror(stdin) && *length <= POLICY_FILE_LIMIT);
    return text;
}

static struct policy *load_standard_input(struct policy_diagnostics *diagnostics)
{
    struct policy *policy = NULL;
    size_t length;
    char *text;

    errno = 0;
    text = read_standard_input(&length);
    if (ferror(stdin)) {
        diagnostics->file = memory_copy("<stdin>");
        diagnostics->unreadable = true;
        policy_diagnose(diagnostics, POLICY_ERROR, (struct policy_place){0}, "cannot be read: %s",
                        strerror(errno));
    } else {
        policy = policy_parse(text, length, "<stdin>", diagnostics);
    }
    free(text);
    return policy;
}

struct policy *policy_input_load(const char *file, struct policy_diagnostics *diagnostics)
{
    if (strcmp(file, "-") == 0) {
        return load_standard_input(diagnostics);
    }
    return policy_load(file, diagnostics);
}

struct policy *policy_input_require(const char *file, bool warnings, bool *unreadable)
{
    struct policy_diagnostics diagnostics;
    struct policy *policy;

    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = !warnings;
    policy = policy_input_load(file, &diagnostics);
    policy_diagnostics_print(&diagnostics, stderr);
    if (unreadable != NULL) {
        *unreadable = diagnostics.unreadable;
    }
    policy_diagnostics_release(&diagnostics);
    return policy;
}
