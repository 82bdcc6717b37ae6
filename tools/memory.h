/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_MEMORY_H
#define CUDAPOLICY_TOOLS_MEMORY_H

/* Memory for the command. A command-line tool that runs out of memory has nothing better to do than
 * say so and end, so none of these returns NULL. Never used inside a program under a policy. */

#include <stddef.h>

/* The status with which the command ends when memory runs out; COMMAND_FAILURE at first. */
extern int memory_failure_status;

/* count elements of size bytes, zeroed; to be freed with free. */
void *memory_allocate(size_t count, size_t size);

/* Makes room for one more element in an array of *count elements with room for *capacity. Returns
 * the array, perhaps at another address. */
void *memory_grow(void *array, size_t count, size_t *capacity, size_t size);

char *memory_copy(const char *text);
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
