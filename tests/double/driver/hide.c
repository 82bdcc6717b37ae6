/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes exported names disappear from dlsym, for drivers that are older than a function or lack it:
 * the loader passes over symbols whose value is zero, so the value in our own dynamic symbol table
 * is set to zero and back. What was bound before keeps working.
 */
#include "driver.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct hidden {
    ElfW(Sym) * symbol;
    ElfW(Addr) value;
};

static struct hidden *all;

static void write_value(ElfW(Sym) * symbol, ElfW(Addr) value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)symbol & ~(page - 1);
    size_t size = (uintptr_t)(symbol + 1) - start;
    if (mprotect((void *)start, size, PROT_READ | PROT_WRITE) != 0)
        abort();
    symbol->st_value = value;
    mprotect((void *)start, size, PROT_READ);
}

/* Runs at load without the lock, and with it when the configuration changes. */
void hide_apply(size_t count, void *(*function)(size_t index), bool (*wanted)(size_t index))
{
    if (all == NULL) {
        all = calloc(count, sizeof(*all));
        if (all == NULL)
            abort();
    }
    for (size_t i = 0; i < count; i++) {
        bool hide = !wanted(i);
        if (hide && all[i].symbol == NULL) {
            Dl_info information;
            ElfW(Sym) *symbol = NULL;
            if (dladdr1(function(i), &information, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
                symbol == NULL)
                abort();
            all[i].symbol = symbol;
            all[i].value = symbol->st_value;
        }
        if (all[i].symbol != NULL)
            write_value(all[i].symbol, hide ? 0 : all[i].value);
    }
}
