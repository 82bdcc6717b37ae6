/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's functions of a program that is linked with it. Weak: no runtime has all of the
 * table. */
#include "runtime.h"

#include <string.h>

#define RUNTIME(symbol, variant, wrapper, parameters, arguments)                                   \
    extern int linked_##symbol(void) __asm__(#symbol) __attribute__((weak));
#define HELPER(symbol) extern int linked_##symbol(void) __asm__(#symbol);
#include "preload/entries.def"
#include "runtime_helpers.def"

static const struct {
    const char *symbol;
    void *function;
} linked[] = {
#define RUNTIME(symbol, variant, wrapper, parameters, arguments) {#symbol, (void *)linked_##symbol},
#define HELPER(symbol) {#symbol, (void *)linked_##symbol},
#include "preload/entries.def"
#include "runtime_helpers.def"
};

void *runtime_linked(const char *symbol)
{
    for (size_t i = 0; i < sizeof linked / sizeof linked[0]; i++)
        if (strcmp(linked[i].symbol, symbol) == 0)
            return linked[i].function;
    return NULL;
}
