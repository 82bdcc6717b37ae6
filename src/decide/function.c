/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/function.h"

#include <stdlib.h>
#include <string.h>

#include "decide/cluster.h"
#include "decide/function_query.h"
#include "decide/pass.h"
#include "decide/prepared.h"
#include "decide/stream.h"
#include "decide/stream_rules.h"

struct handle_map decide_functions = HANDLE_MAP_INITIALISER(struct decide_function);

static _Atomic uint64_t serials;

static uint64_t new_serial(void)
{
    return atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
}

void decide_function_start(void)
{
    handle_map_after_fork(&decide_functions);
    decide_pass_start();
    decide_prepared_start();
}

/* ---- Entries; all locked ------------------------------------------------------------------------
 */

static struct decide_function *entry_of(void *function)
{
    return handle_map_find(&decide_functions, (uintptr_t)function);
}

static void forget_shapes(struct decide_function *entry)
{
    if (entry->shapes)
        decide_shapes_drop(atomic_load_explicit(&entry->serial, memory_order_relaxed));
    entry->shapes = false;
}

static void renew(struct decide_function *entry)
{
    forget_shapes(entry);
    atomic_store_explicit(&entry->serial, new_serial(), memory_order_release);
}

static void forget(struct decide_function *entry)
{
    uint64_t handle = atomic_load_explicit(&entry->base.handle, memory_order_relaxed);
    decide_pass_leave((void *)(uintptr_t)handle);
    decide_prepared_leave((void *)(uintptr_t)handle);
    forget_shapes(entry);
    free(entry->mangled);
    entry->mangled = NULL;
    handle_map_remove(&decide_functions, handle);
}

/* A new entry in place of what the handle was before. Takes over the name. */
static struct decide_function *enter(void *function, char *mangled, void *container)
{
    struct decide_function *entry = entry_of(function);
    if (entry)
        forget(entry);
    entry = handle_map_new(&decide_functions);
    if (!entry) {
        free(mangled);
        return NULL;
    }
    entry->mangled = mangled;
    entry->container = container;
    atomic_store_explicit(&entry->serial, new_serial(), memory_order_release);
    if (handle_map_insert(&decide_functions, entry, (uintptr_t)function))
        return entry;
    free(mangled);
    entry->mangled = NULL;
    return NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- Names --------------------------------------------------------------------------------------
 */

void decide_function_named(void *function, const char *mangled, void *container)
{
    if (!function || !mangled)
        return;
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(function);
    /* Programs ask for the same function again and again: what is known of it stays. */
    if (!entry || entry->container != container || !same_text(entry->mangled, mangled)) {
        char *copy = strdup(mangled);
        entry = copy ? enter(function, copy, container) : NULL;
    }
    if (entry)
        entry->told = true;
    handle_map_unlock(&decide_functions);
}

void decide_function_of_kernel(CUfunction function, CUkernel kernel)
{
    struct decide_answer answer = {0};
    if (!function || !kernel)
        return;
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(kernel);
    if (entry && entry->mangled) {
        answer.mangled = strdup(entry->mangled);
        answer.container = entry->container;
    }
    handle_map_unlock(&decide_functions);
    if (!answer.mangled)
        decide_function_ask(kernel, &answer);
    CUcontext context = decide_function_ask_context();

    handle_map_lock(&decide_functions);
    entry = entry_of(function);
    if (!answer.mangled) {
        if (entry)
            forget(entry);
    } else if (entry && entry->kind == DECIDE_FUNCTION_LOADED && entry->context == context &&
               entry->container == answer.container && same_text(entry->mangled, answer.mangled)) {
        entry->kernel = kernel;
        free(answer.mangled);
    } else if ((entry = enter(function, answer.mangled, answer.container))) {
        entry->told = true;
        entry->kind = DECIDE_FUNCTION_LOADED;
        entry->context = context;
        entry->kernel = kernel;
    }
    handle_map_unlock(&decide_functions);
}

CUkernel decide_function_kernel_of(void *function)
{
    CUkernel kernel = NULL;
    handle_map_lock(&decide_functions);
    const struct decide_function *entry = entry_of(function);
    if (entry)
        kernel = entry->kind == DECIDE_FUNCTION_KERNEL ? (CUkernel)function : entry->kernel;
    handle_map_unlock(&decide_functions);
    return kernel;
}

/* ---- The first sight ----------------------------------------------------------------------------
 */

/* No rule can match the kernel whatever the launch is like and whoever makes it. */
static bool may_pass(const struct decide_variant *variant, bool symbol)
{
    return !symbol && variant->any_library && variant->plan->count == 0 && !variant->step &&
           !variant->merges && !variant->places;
}

static uint32_t cell_of_nothing(struct decide_variant *variant)
{
    const struct decide_asked nothing_asked = {.device = -1};
    const union decide_results nothing = {.words = {0, 0}};
    return decide_kernel_cell(variant, decide_resolve(variant->plan, &nothing_asked, NULL),
                              &nothing, 0, 0)
        ->number;
}

/* Keeps what was found out about a function. told: the name that its entry had when the driver was
 * asked. The serial of its entry, 0 when it could not be kept. */
static uint64_t keep(void *function, const char *told, struct decide_answer *answer,
                     struct decide_variant *variant, bool symbol)
{
    uint32_t cell = may_pass(variant, symbol) ? cell_of_nothing(variant) : 0;
    uint64_t serial = 0;
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(function);
    if (entry && !same_text(entry->mangled, told)) {
        /* Another thread named the handle anew in the meantime. */
        handle_map_unlock(&decide_functions);
        return 0;
    }
    if (!entry || !same_text(told, answer->mangled)) {
        entry = enter(function, answer->mangled, answer->container);
        answer->mangled = NULL;
    }
    if (entry) {
        if (answer->kind != DECIDE_FUNCTION_UNKNOWN)
            entry->kind = (uint8_t)answer->kind;
        entry->context = answer->context;
        if (!entry->container)
            entry->container = answer->container;
        entry->in_module = answer->kind == DECIDE_FUNCTION_LOADED && answer->container &&
                           entry->container == answer->container;
        serial = atomic_load_explicit(&entry->serial, memory_order_relaxed);
        /* The rules may have been exchanged meanwhile: this launch is still decided by the old. */
        if (!decide_variant_is_old(variant)) {
            atomic_store_explicit(&entry->variant, variant, memory_order_release);
            if (may_pass(variant, symbol))
                decide_pass_enter(function, cell);
        }
    }
    handle_map_unlock(&decide_functions);
    return serial;
}

/* The name that was told, copied. */
static char *told_name(void *function)
{
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(function);
    char *mangled = entry && entry->mangled ? strdup(entry->mangled) : NULL;
    handle_map_unlock(&decide_functions);
    return mangled;
}

/* Another caller of a function that is known. No lock, unless the caller is new to the kernel. */
static bool meet_known(void *function, const char *library, struct decide_known *known)
{
    struct decide_function *entry = entry_of(function);
    if (!entry)
        return false;
    uint32_t use = handle_entry_use(entry);
    uint64_t handle = atomic_load_explicit(&entry->base.handle, memory_order_acquire);
    known->serial = atomic_load_explicit(&entry->serial, memory_order_acquire);
    struct decide_variant *variant = atomic_load_explicit(&entry->variant, memory_order_acquire);
    if (!variant || handle != (uintptr_t)function || handle_entry_use(entry) != use)
        return false;
    known->variant = decide_kernel_variant(variant->kernel, library);
    return known->variant != NULL;
}

struct decide_known decide_function_meet(void *function, const char *library, bool symbol)
{
    struct decide_known known = {0};
    if (!function || meet_known(function, library, &known))
        return known;
    char *told = told_name(function);
    struct decide_answer answer = {.mangled = told ? strdup(told) : NULL};
    if (symbol)
        answer.kind = DECIDE_FUNCTION_SYMBOL;
    else
        decide_function_ask(function, &answer);
    struct decide_kernel *kernel = decide_kernel_of(answer.mangled);
    known.variant = kernel ? decide_kernel_variant(kernel, library) : NULL;
    known.serial = known.variant ? keep(function, told, &answer, known.variant, symbol) : 0;
    free(answer.mangled);
    free(told);
    return known;
}

/* Under the lock, and only a function that has an entry: what ends the entry takes it out again. */
void decide_function_prepare(void *function, struct decide_variant *variant)
{
    if (variant->merges || variant->places)
        return;
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(function);
    if (entry && atomic_load_explicit(&entry->variant, memory_order_relaxed) == variant)
        decide_prepared_enter(function,
                              (const struct decide_prepared *const *)(uintptr_t)&variant->plain);
    handle_map_unlock(&decide_functions);
}

/* What was decided about them by other rules; what the driver said about them stays. */
void decide_function_forget_decisions(void)
{
    struct decide_function *entry;
    handle_map_lock(&decide_functions);
    for (size_t i = 0; (entry = handle_map_next(&decide_functions, &i));) {
        uint64_t handle = atomic_load_explicit(&entry->base.handle, memory_order_relaxed);
        decide_pass_suspend((void *)(uintptr_t)handle);
        decide_prepared_leave((void *)(uintptr_t)handle);
        atomic_store_explicit(&entry->variant, NULL, memory_order_release);
    }
    handle_map_unlock(&decide_functions);
}

/* ---- Changes and ends ---------------------------------------------------------------------------
 */

/* A function and the kernel that it was made from share their attributes: all of one name. */
static void renew_named(const char *mangled)
{
    struct decide_function *entry;
    for (size_t i = 0; (entry = handle_map_next(&decide_functions, &i));)
        if (!mangled || same_text(entry->mangled, mangled))
            renew(entry);
}

void decide_function_changed(void *function)
{
    handle_map_lock(&decide_functions);
    struct decide_function *entry = function ? entry_of(function) : NULL;
    renew_named(entry ? entry->mangled : NULL);
    handle_map_unlock(&decide_functions);
}

/* Whether the program set the value before; notes it. */
static bool set_before(struct decide_function *entry, int attribute, int value, int device)
{
    uint64_t bit = UINT64_C(1) << (device & 63);
    if (entry->attributes[attribute].devices && entry->attributes[attribute].value != value)
        entry->attributes[attribute].devices = 0;
    bool before = entry->attributes[attribute].devices & bit;
    entry->attributes[attribute].value = value;
    entry->attributes[attribute].devices |= bit;
    return before;
}

void decide_function_attribute_set(void *function, int attribute, int value, int device)
{
    if (!function || attribute < 0 || attribute >= DECIDE_FUNCTION_ATTRIBUTES) {
        decide_function_changed(function);
        return;
    }
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(function);
    if (!entry)
        renew_named(NULL);
    else if (!set_before(entry, attribute, value, device))
        renew_named(entry->mangled);
    handle_map_unlock(&decide_functions);
}

/* Locked. */
static bool is_module(const void *container)
{
    struct decide_function *entry;
    for (size_t i = 0; (entry = handle_map_next(&decide_functions, &i));)
        if (entry->in_module && entry->container == container)
            return true;
    return false;
}

/*
 * Whether an entry ends with a container. What was not told can be asked again, so it is not kept
 * over any unloading. A library takes modules along that were made from it, without our being told
 * which; so unless the container is known as a module, no function stays that lives in one, if only
 * the driver can be asked for its name again.
 */
static bool ends_with(const struct decide_function *entry, const void *container, bool module)
{
    if (entry->kind == DECIDE_FUNCTION_SYMBOL)
        return false;
    if (!entry->told || !container || entry->container == container)
        return true;
    return !module && entry->kind == DECIDE_FUNCTION_LOADED && cuda_driver.cuFuncGetName;
}

void decide_container_gone(void *container)
{
    struct decide_function *entry;
    handle_map_lock(&decide_functions);
    bool module = is_module(container);
    for (size_t i = 0; (entry = handle_map_next(&decide_functions, &i));)
        if (ends_with(entry, container, module))
            forget(entry);
    handle_map_unlock(&decide_functions);
}

static bool goes_with(const struct decide_function *entry, CUcontext context)
{
    switch ((enum decide_function_kind)entry->kind) {
    case DECIDE_FUNCTION_LOADED:
        return !context || !entry->context || entry->context == context;
    case DECIDE_FUNCTION_UNKNOWN:
        /* Its name may be had from the driver again, if it is a kernel that lives on. */
        return cuda_driver.cuKernelGetName != NULL;
    case DECIDE_FUNCTION_KERNEL:
    case DECIDE_FUNCTION_SYMBOL:
        break;
    }
    return false;
}

void decide_function_context_gone(CUcontext context)
{
    struct decide_function *entry;
    handle_map_lock(&decide_functions);
    for (size_t i = 0; (entry = handle_map_next(&decide_functions, &i));) {
        if (goes_with(entry, context))
            forget(entry);
        else
            renew(entry);
    }
    handle_map_unlock(&decide_functions);
}

/* ---- For the cluster checks ------------------------------------------------------------------ */

bool decide_function_keeps_shapes(void *function, uint64_t serial)
{
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(function);
    bool same = entry && atomic_load_explicit(&entry->serial, memory_order_relaxed) == serial;
    if (same)
        entry->shapes = true;
    handle_map_unlock(&decide_functions);
    return same;
}

CUfunction decide_function_to_ask(void *function)
{
    handle_map_lock(&decide_functions);
    struct decide_function *entry = entry_of(function);
    enum decide_function_kind kind = entry ? entry->kind : DECIDE_FUNCTION_UNKNOWN;
    handle_map_unlock(&decide_functions);
    return decide_function_resolve(function, kind);
}
