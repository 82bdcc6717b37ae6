/* SPDX-License-Identifier: Apache-2.0 */
#include "environment.h"

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

void environment_set(struct environment *environment, const char *name, const char *value)
{
    size_t length = strlen(name), kept = 0;

    environment->count--; /* the NULL */
    for (size_t i = 0; i < environment->count; i++) {
        char *variable = environment->variables[i];

        if (strncmp(variable, name, length) == 0 && variable[length] == '=') {
            free(variable);
        } else {
            environment->variables[kept++] = variable;
        }
    }
    environment->count = kept;
    append(environment, memory_format("%s=%s", name, value));
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
