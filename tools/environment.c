/* SPDX-License-Identifier: Apache-2.0 */
#include "environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

static void append(struct environment *environment, char *variable)
{
    environment->variables = memory_grow(environment->variables, environment->count,
                                         &environment->capacity, sizeof(char *));
    environment->variables[environment->count++] = variable;
}

void environment_copy(struct environment *environment)
{
    *environment = (struct environment){0};
    for (char **variable = environ; *variable != NULL; variable++) {
        append(environment, memory_copy(*variable));
    }
    append(environment, NULL);
}

/* Takes away the variables that begin with text, up to '=' where whole is true. */
static void take_away(struct environment *environment, const char *text, bool whole)
{
    size_t length = strlen(text), kept = 0;

    environment->count--; /* the NULL */
    for (size_t i = 0; i < environment->count; i++) {
        char *variable = environment->variables[i];

        if (strncmp(variable, text, length) == 0 && (!whole || variable[length] == '=')) {
            free(variable);
        } else {
            environment->variables[kept++] = variable;
        }
    }
    environment->count = kept;
}

/* Of several, the first one counts, as for getenv. */
const char *environment_get(const struct environment *environment, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i + 1 < environment->count; i++) {
        const char *variable = environment->variables[i];

        if (strncmp(variable, name, length) == 0 && variable[length] == '=') {
            return variable + length + 1;
        }
    }
    return NULL;
}

void environment_set(struct environment *environment, const char *name, const char *value)
{
    take_away(environment, name, true);
    append(environment, memory_format("%s=%s", name, value));
    append(environment, NULL);
}

void environment_unset(struct environment *environment, const char *name)
{
    take_away(environment, name, true);
    append(environment, NULL);
}

void environment_unset_all(struct environment *environment, const char *prefix)
{
    take_away(environment, prefix, false);
    append(environment, NULL);
}

void environment_release(struct environment *environment)
{
    for (size_t i = 0; i + 1 < environment->count; i++) {
        free(environment->variables[i]);
    }
    free(environment->variables);
    *environment = (struct environment){0};
}
