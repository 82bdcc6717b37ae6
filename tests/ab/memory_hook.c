/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stands in for mremap() as UCX does in programs that speak MPI: with four arguments, so that one
 * to a fixed address goes wherever the fifth register points. Here it ends the program.
 */

#include <stddef.h>
#include <stdlib.h>

void *mremap(void *address, size_t size, size_t wanted, int flags);

void *mremap(void *address, size_t size, size_t wanted, int flags)
{
    (void)address, (void)size, (void)wanted, (void)flags;
    abort();
}
