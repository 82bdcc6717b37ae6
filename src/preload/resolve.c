/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of real pointers, and what cuGetProcAddress is answered with. */
#include "preload/preload.h"

#include <dlfcn.h>
#include <string.h>

#include "cuda/driver.h"
#include "report/log.h"
#include "report/report.h"

enum {
    PER_THREAD_DEFAULT_STREAM = 2, /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
};

struct learned {
    struct cuda_driver driver;
    void *canonical[PRELOAD_ENTRY_COUNT];
};

static struct {
    bool taken; /* a lock around the copy below; nothing is called while it is held */
    bool done;
    void *canonical[PRELOAD_ENTRY_COUNT];
} driver;

/* The four-argument form of CUDA 11.3 to 11.8, as the five-argument one. */
static CUresult (*first_form)(const char *, void **, int, cuuint64_t);

static CUresult resolve_by_first_form(const char *symbol, void **function, int version,
                                      cuuint64_t flags, int *status)
{
    *status = 0;
    return first_form(symbol, function, version, flags);
}

static cuda_get_proc_address resolver_of(void *handle)
{
    void *second = preload_next_symbol(handle, "cuGetProcAddress_v2");
    void *first;

    if (second != NULL && !preload_is_export(second))
        return (cuda_get_proc_address)second;
    first = preload_next_symbol(handle, "cuGetProcAddress");
    if (first == NULL || preload_is_export(first))
        return NULL;
    __atomic_store_n(&first_form, (CUresult(*)(const char *, void **, int, cuuint64_t))first,
                     __ATOMIC_RELEASE);
    return resolve_by_first_form;
}

static cuda_get_proc_address resolver_of_loaded(void)
{
    cuda_get_proc_address resolver = resolver_of(RTLD_NEXT);
    void *handle;

    if (resolver != NULL)
        return resolver;
    handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    resolver = resolver_of(handle);
    dlclose(handle);
    return resolver;
}

static void learn(struct learned *learned, cuda_get_proc_address resolve)
{
    for (unsigned entry = 1; entry < PRELOAD_ENTRY_COUNT; entry++) {
        const struct preload_entry_info *info = &preload_entry_info[entry];
        void *function = NULL;
        int status = 0;

        if (!info->runtime &&
            resolve(info->base, &function, info->version,
                    info->variant == PRELOAD_PTSZ ? PER_THREAD_DEFAULT_STREAM : 0,
                    &status) == CUDA_SUCCESS &&
            status == 0)
            learned->canonical[entry] = function;
    }
}

/* Two threads may learn at once: each asks for itself, since asking may need a lock that the other
 * holds, and the first to end publishes. */
bool preload_learn_driver(void *handle)
{
    struct learned learned = {0};
    cuda_get_proc_address resolve;

    if (__atomic_load_n(&driver.done, __ATOMIC_ACQUIRE))
        return true;
    resolve = handle != NULL ? resolver_of(handle) : NULL;
    if (resolve == NULL)
        resolve = resolver_of_loaded();
    dlerror(); /* of look-ups that failed: the program must not take it for an error of its own */
    if (resolve == NULL || !cuda_driver_fill(&learned.driver, resolve))
        return false;
    learn(&learned, resolve);
    preload_keep_loaded((const void *)learned.driver.cuDriverGetVersion);

    while (__atomic_exchange_n(&driver.taken, true, __ATOMIC_ACQUIRE))
        ;
    if (!driver.done) {
        cuda_driver = learned.driver;
        memcpy(driver.canonical, learned.canonical, sizeof driver.canonical);
        __atomic_store_n(&driver.done, true, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&driver.taken, false, __ATOMIC_RELEASE);
    return true;
}

/* The parent's thread that published is not there to give the lock back. */
void preload_resolve_after_fork(void)
{
    __atomic_store_n(&driver.taken, false, __ATOMIC_RELEASE);
}

void *preload_canonical(enum preload_entry entry)
{
    return __atomic_load_n(&driver.done, __ATOMIC_ACQUIRE) ? driver.canonical[entry] : NULL;
}

static bool is_stub(enum preload_entry entry, const void *function)
{
    for (unsigned slot = 0; slot < PRELOAD_SLOTS; slot++)
        if (preload_stubs[entry][slot] == function)
            return true;
    return false;
}

void *preload_wrap(enum preload_entry entry, void *real)
{
    if (is_stub(entry, real))
        return real;
    for (unsigned index = 0; index < PRELOAD_DYNAMIC_SLOTS; index++) {
        struct preload_slot *slot = &preload_slots[entry][index];
        void *present = __atomic_load_n(&slot->real, __ATOMIC_ACQUIRE);

        if (present == NULL && __atomic_compare_exchange_n(&slot->real, &present, real, false,
                                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            present = real;
            if (preload_entry_info[entry]
                    .runtime) /* the driver was seen to when it was learned from */
                preload_keep_loaded(real);
        }
        if (present == real)
            return preload_stubs[entry][index];
    }
    report_note("warning", "%s: more than %d different functions of this name; one is not reached",
                preload_entry_info[entry].symbol, PRELOAD_DYNAMIC_SLOTS);
    return real;
}

/* Of two variants with one pointer, the one that was asked for. */
static bool fits_better(enum preload_entry candidate, enum preload_entry best, int version,
                        cuuint64_t flags)
{
    const struct preload_entry_info *a = &preload_entry_info[candidate];
    const struct preload_entry_info *b = &preload_entry_info[best];
    const enum preload_variant asked =
        (flags & PER_THREAD_DEFAULT_STREAM) != 0 ? PRELOAD_PTSZ : PRELOAD_PLAIN;

    if ((a->variant == asked) != (b->variant == asked))
        return a->variant == asked;
    if ((a->version <= version) != (b->version <= version))
        return a->version <= version;
    return a->version > b->version;
}

void *preload_wrap_answer(const char *base, int version, cuuint64_t flags, void *real)
{
    enum preload_entry best = PRELOAD_ENTRY_NONE;
    bool known = false;

    for (unsigned index = 1; index < PRELOAD_ENTRY_COUNT; index++) {
        const enum preload_entry entry = (enum preload_entry)index;

        if (preload_entry_info[entry].base == NULL ||
            strcmp(preload_entry_info[entry].base, base) != 0)
            continue;
        known = true;
        if (driver.canonical[entry] == real &&
            (best == PRELOAD_ENTRY_NONE || fits_better(entry, best, version, flags)))
            best = entry;
    }
    if (best != PRELOAD_ENTRY_NONE)
        return preload_wrap(best, real);
    if (known)
        report_note("warning",
                    "%s, version %d, flags %llu: a variant that is not known; not reached", base,
                    version, (unsigned long long)flags);
    return real;
}
