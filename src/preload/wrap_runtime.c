/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of libcudart. Their stubs note the caller; that is all they are for while the driver's
 * wrappers see what libcudart does. The first calls are watched to find out. A libcudart whose
 * launch went through without a driver wrapper seeing it is not attached: from then on its launches
 * and streams are decided here, with the settings that cannot be refused.
 */
#include "preload/wrap.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "decide/decide.h"
#include "preload/control.h"
#include "report/log.h"

_Thread_local unsigned preload_driver_calls;

typedef int runtime_result; /* cudaError_t */

/* cudaLaunchConfig_t: as CUlaunchConfig, but for a shared memory size of 64 bits, of which the
 * driver's structure has the upper half as padding. */
struct runtime_config {
    struct preload_dim3 grid, block;
    size_t shared_memory;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
};
_Static_assert(sizeof(struct runtime_config) == sizeof(CUlaunchConfig), "size");
_Static_assert(offsetof(struct runtime_config, shared_memory) ==
                   offsetof(CUlaunchConfig, sharedMemBytes),
               "shared memory");
_Static_assert(offsetof(struct runtime_config, stream) == offsetof(CUlaunchConfig, hStream),
               "stream");
_Static_assert(offsetof(struct runtime_config, attributes) == offsetof(CUlaunchConfig, attrs) &&
                   offsetof(struct runtime_config, attribute_count) ==
                       offsetof(CUlaunchConfig, numAttrs),
               "attributes");

typedef runtime_result (*launch_ex_function)(const struct runtime_config *, const void *, void **);

enum {
    RUNTIME_LIMIT = 8, /* copies of libcudart; further ones are never policed here */
    NAMED_BITS = 8,
};

/* One loaded libcudart. Its functions are set before not_attached is. */
struct runtime {
    const struct link_map *map; /* NULL: unused */
    launch_ex_function launch_ex, launch_ex_ptsz;
    runtime_result (*function_name)(const char **name, const void *function); /* since 12.3 */
    bool not_attached;
};
static struct runtime runtimes[RUNTIME_LIMIT];

/* Of each slot; found at its first call. */
static struct runtime *runtime_of_slot[PRELOAD_ENTRY_COUNT][PRELOAD_SLOTS];
static struct runtime no_runtime;

/* ---- which libcudart --------------------------------------------------------------------------
 */

static size_t index_of(const struct preload_slot *slot)
{
    return (size_t)(slot - &preload_slots[0][0]) % PRELOAD_SLOTS;
}

static struct runtime *find_runtime(const void *function)
{
    Dl_info information;
    struct link_map *map = NULL;

    if (dladdr1(function, &information, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return &no_runtime;
    for (size_t i = 0; i < RUNTIME_LIMIT; i++) {
        const struct link_map *present = NULL;

        if (__atomic_compare_exchange_n(&runtimes[i].map, &present, map, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            present == map)
            return &runtimes[i];
    }
    return &no_runtime;
}

static struct runtime *runtime_of(const struct preload_slot *slot)
{
    struct runtime **kept = &runtime_of_slot[preload_slot_entry(slot)][index_of(slot)];
    struct runtime *runtime = __atomic_load_n(kept, __ATOMIC_ACQUIRE);

    if (runtime == NULL) {
        runtime = find_runtime(wrap_real(slot));
        __atomic_store_n(kept, runtime, __ATOMIC_RELEASE);
    }
    return runtime;
}

static bool not_attached(const struct preload_slot *slot)
{
    return __atomic_load_n(&runtime_of(slot)->not_attached, __ATOMIC_ACQUIRE);
}

/* Nothing more to learn: the stub jumps to the real function. */
static void stop_watching(const struct preload_slot *slot)
{
    __atomic_store_n(&preload_slots[preload_slot_entry(slot)][index_of(slot)].target,
                     wrap_real(slot), __ATOMIC_RELEASE);
}

/* Two threads may do this at once, with the same result. */
static void police(struct runtime *runtime)
{
    void *handle = runtime->map != NULL
                       ? dlopen(runtime->map->l_name[0] != '\0' ? runtime->map->l_name : NULL,
                                RTLD_LAZY | RTLD_NOLOAD)
                       : NULL;

    if (handle == NULL)
        return;
    runtime->launch_ex = (launch_ex_function)preload_next_symbol(handle, "cudaLaunchKernelExC");
    runtime->launch_ex_ptsz =
        (launch_ex_function)preload_next_symbol(handle, "cudaLaunchKernelExC_ptsz");
    runtime->function_name = (runtime_result(*)(const char **, const void *))preload_next_symbol(
        handle, "cudaFuncGetName");
    dlclose(handle);
    /* What a device can is asked of the driver all the same; without one nothing is known. */
    preload_learn_driver(NULL);
    __atomic_store_n(&runtime->not_attached, true, __ATOMIC_RELEASE);
    report_note("warning",
                "%s: its launches do not pass through the driver functions that are wrapped; "
                "only settings that cannot be refused are made",
                runtime->map->l_name);
    report_log_once(REPORT_LOG_WARN, "a libcudart is not attached at the driver; see the report");
}

/* While a call is watched, the driver's stubs take the long way, which raises preload_driver_calls.
 */
static unsigned begin_watching(void)
{
    report_gate_raise();
    return preload_driver_calls;
}

static void end_watching(const struct preload_slot *slot, unsigned before, runtime_result result)
{
    report_gate_lower();
    if (preload_driver_calls != before)
        stop_watching(slot);
    else if (result == 0)
        police(runtime_of(slot));
}

/* ---- launches ---------------------------------------------------------------------------------
 */

/* <<<>>> of CUDA 13 passes a kernel's handle, every other call the host's address of the kernel. */
static const char *name_of(const struct preload_slot *slot, const struct runtime *runtime,
                           const void *function)
{
    const enum preload_entry entry = preload_slot_entry(slot);
    const char *name = NULL;

    if (entry == ENTRY___cudaLaunchKernel || entry == ENTRY___cudaLaunchKernel_ptsz) {
        if (cuda_driver.cuKernelGetName == NULL ||
            cuda_driver.cuKernelGetName(&name, (CUkernel)(uintptr_t)function) != CUDA_SUCCESS)
            name = NULL;
    } else if (runtime->function_name == NULL || runtime->function_name(&name, function) != 0) {
        name = NULL;
    }
    return name != NULL ? name : "(unknown)";
}

/* Names a function when it is first seen. Another function at the same address, after a library was
 * unloaded, keeps the name of the first as long as it stays in here. */
static void name_function(const struct preload_slot *slot, const struct runtime *runtime,
                          const void *function)
{
    static const void *named[1 << NAMED_BITS];
    const void **place =
        &named[(uint64_t)(uintptr_t)function * UINT64_C(0x9e3779b97f4a7c15) >> (64 - NAMED_BITS)];

    if (__atomic_load_n(place, __ATOMIC_ACQUIRE) == function)
        return;
    decide_function_named((void *)(uintptr_t)function, name_of(slot, runtime, function), NULL);
    __atomic_store_n(place, function, __ATOMIC_RELEASE);
}

/* Decides a launch that no driver wrapper sees. False: make it as it came. */
static bool make_changed(const struct preload_slot *slot, const struct runtime_config *asked,
                         const void *function, void **arguments, bool cooperative,
                         runtime_result *result)
{
    const struct runtime *runtime = runtime_of(slot);
    const launch_ex_function launch_ex =
        wrap_per_thread(slot) ? runtime->launch_ex_ptsz : runtime->launch_ex;
    struct runtime_config changed = *asked;
    struct decide_verdict verdict;
    CUlaunchConfig config;
    const struct decide_launch launch = {
        .function = (CUfunction)(uintptr_t)function,
        .config = &config,
        .cooperative = cooperative,
        .per_thread_default = wrap_per_thread(slot),
        .layer = DECIDE_LAYER_RUNTIME,
        .library = preload_library_at(preload_runtime_caller)->name,
    };

    if (asked->shared_memory > UINT32_MAX)
        return false; /* no device has that much: it is for the runtime to say so */
    memcpy(&config, asked, sizeof config);
    preload_control_look();
    name_function(slot, runtime, function);
    decide_launch(&launch, &verdict);
    report_count_entry(preload_slot_entry(slot));
    report_count_launch(verdict.cell, verdict.kind, 1);
    if (!verdict.change || launch_ex == NULL)
        return false;
    changed.attributes = verdict.config.attrs;
    changed.attribute_count = verdict.config.numAttrs;
    *result = launch_ex(&changed, function, arguments);
    return true;
}

static runtime_result runtime_launch_any(const struct preload_slot *slot, const void *function,
                                         struct preload_dim3 grid, struct preload_dim3 block,
                                         void **arguments, size_t shared_memory, CUstream stream,
                                         bool cooperative)
{
    runtime_result (*real)(const void *, struct preload_dim3, struct preload_dim3, void **, size_t,
                           CUstream) = wrap_real(slot);
    runtime_result result;
    unsigned before;

    if (not_attached(slot)) {
        const struct runtime_config config = {grid, block, shared_memory, stream, NULL, 0};

        if (make_changed(slot, &config, function, arguments, cooperative, &result))
            return result;
        return real(function, grid, block, arguments, shared_memory, stream);
    }
    before = begin_watching();
    result = real(function, grid, block, arguments, shared_memory, stream);
    end_watching(slot, before, result);
    return result;
}

static runtime_result runtime_launch(const struct preload_slot *slot, const void *caller,
                                     const void *function, struct preload_dim3 grid,
                                     struct preload_dim3 block, void **arguments,
                                     size_t shared_memory, CUstream stream)
{
    (void)caller;
    return runtime_launch_any(slot, function, grid, block, arguments, shared_memory, stream, false);
}

static runtime_result runtime_launch_cooperative(const struct preload_slot *slot,
                                                 const void *caller, const void *function,
                                                 struct preload_dim3 grid,
                                                 struct preload_dim3 block, void **arguments,
                                                 size_t shared_memory, CUstream stream)
{
    (void)caller;
    return runtime_launch_any(slot, function, grid, block, arguments, shared_memory, stream, true);
}

static runtime_result runtime_launch_ex(const struct preload_slot *slot, const void *caller,
                                        const void *config, const void *function, void **arguments)
{
    const launch_ex_function real = (launch_ex_function)wrap_real(slot);
    runtime_result result;
    unsigned before;

    (void)caller;
    if (not_attached(slot)) {
        if (config != NULL && make_changed(slot, config, function, arguments, false, &result))
            return result;
        return real(config, function, arguments);
    }
    before = begin_watching();
    result = real(config, function, arguments);
    end_watching(slot, before, result);
    return result;
}

/* ---- streams ----------------------------------------------------------------------------------
 */

/* After a call that creates a stream: where no driver wrapper saw it, the stream gets its settings
 * here, but for the priority, which is given at creation. */
static runtime_result stream_created(const struct preload_slot *slot, unsigned before,
                                     runtime_result result, CUstream *stream,
                                     struct decide_stream_request request)
{
    request.library = preload_library_at(preload_runtime_caller)->name;
    request.layer = DECIDE_LAYER_RUNTIME;
    request.rules = decide_rules_in_force();
    end_watching(slot, before, result);
    if (not_attached(slot) && result == 0)
        decide_stream_created(*stream, &request);
    return result;
}

static runtime_result runtime_stream_create(const struct preload_slot *slot, const void *caller,
                                            CUstream *stream)
{
    runtime_result (*real)(CUstream *) = wrap_real(slot);
    const unsigned before = begin_watching();

    (void)caller;
    return stream_created(slot, before, real(stream), stream, (struct decide_stream_request){0});
}

static runtime_result runtime_stream_create_with_flags(const struct preload_slot *slot,
                                                       const void *caller, CUstream *stream,
                                                       unsigned flags)
{
    runtime_result (*real)(CUstream *, unsigned) = wrap_real(slot);
    const unsigned before = begin_watching();

    (void)caller;
    return stream_created(slot, before, real(stream, flags), stream,
                          (struct decide_stream_request){.flags = flags});
}

static runtime_result runtime_stream_create_with_priority(const struct preload_slot *slot,
                                                          const void *caller, CUstream *stream,
                                                          unsigned flags, int priority)
{
    runtime_result (*real)(CUstream *, unsigned, int) = wrap_real(slot);
    const unsigned before = begin_watching();

    (void)caller;
    return stream_created(slot, before, real(stream, flags, priority), stream,
                          (struct decide_stream_request){
                              .flags = flags, .priority = priority, .priority_given = true});
}

/* cudaExecutionCtxStreamCreate (CUDA 13.1): on an execution context, which is a green one. */
static runtime_result runtime_stream_create_green(const struct preload_slot *slot,
                                                  const void *caller, CUstream *stream,
                                                  void *context, unsigned flags, int priority)
{
    runtime_result (*real)(CUstream *, void *, unsigned, int) = wrap_real(slot);
    const unsigned before = begin_watching();

    (void)caller;
    return stream_created(
        slot, before, real(stream, context, flags, priority), stream,
        (struct decide_stream_request){
            .flags = flags, .priority = priority, .priority_given = true, .green = true});
}

/* ---- nodes: only the caller matters, and the stub has noted it --------------------------------
 */

static runtime_result runtime_add_kernel_node(const struct preload_slot *slot, const void *caller,
                                              void *node, void *graph, const void *dependencies,
                                              size_t count, const void *parameters)
{
    runtime_result (*real)(void *, void *, const void *, size_t, const void *) = wrap_real(slot);

    (void)caller;
    stop_watching(slot);
    return real(node, graph, dependencies, count, parameters);
}

/* Five arguments before CUDA 13, six since: a register that is not used is passed on. */
static runtime_result runtime_add_node(const struct preload_slot *slot, const void *caller,
                                       void *node, void *graph, const void *dependencies,
                                       const void *edges, size_t count, void *parameters)
{
    runtime_result (*real)(void *, void *, const void *, const void *, size_t, void *) =
        wrap_real(slot);

    (void)caller;
    stop_watching(slot);
    return real(node, graph, dependencies, edges, count, parameters);
}

static runtime_result runtime_kernel_node_set_params(const struct preload_slot *slot,
                                                     const void *caller, void *node,
                                                     const void *parameters)
{
    runtime_result (*real)(void *, const void *) = wrap_real(slot);

    (void)caller;
    stop_watching(slot);
    return real(node, parameters);
}

static runtime_result runtime_node_set_params(const struct preload_slot *slot, const void *caller,
                                              void *node, void *parameters)
{
    return runtime_kernel_node_set_params(slot, caller, node, parameters);
}

#define RUNTIME(symbol, variant, wrapper, parameters, arguments)                                   \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 0)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 1)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 2)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 3)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 4)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 5)
#include "preload/entries.def"
