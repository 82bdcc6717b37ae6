/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

int memory_failure_status = COMMAND_FAILURE;

static void *checked(void *memory)
{
    if (memory == NULL) {
        command_error("out of memory");
        exit(memory_failure_status);
    }
    return memory;
}

void *memory_allocate(size_t count, size_t size)
{
    return checked(calloc(count == 0 ? 1 : count, size));
}

void *memory_grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) {
        return array;
    }
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    return checked(reallocarray(array, *capacity, size));
}

char *memory_copy(const char *text)
{
    return checked(strdup(text));
}

char *memory_format(const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
    }
    va_end(arguments);
    return checked(text);
}
