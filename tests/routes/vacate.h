/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROUTES_VACATE_H
#define ROUTES_VACATE_H

/* After a library was closed: makes sure that it does not come back to the place where address was,
 * and that nobody can call what was there. Does nothing when the library is still there. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static inline void vacate(const void *address)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    mmap((void *)((uintptr_t)address & ~(page - 1)), page, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

#endif
