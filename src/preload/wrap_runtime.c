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

#include "decide/decide.h"
#include "report/log.h"

_Thread_local unsigned preload_driver_calls;

typedef int runtime_result; /* cudaError_t */

enum attachment {
    NOT_KNOWN,
    NOT_ATTACHED,
};

typedef runtime_result (*launch_ex_function)(const CUlaunchConfig *, const void *, void **);

/* Of the libcudart behind a slot; set once, before its slot is marked. */
struct runtime {
    launch_ex_function launch_ex, launch_ex_ptsz;
    runtime_result (*function_name)(const char **name, const void *function); /* since 12.3 */
    enum attachment attachment;
};
static struct runtime runtimes[PRELOAD_ENTRY_COUNT][PRELOAD_SLOTS];

static struct runtime *runtime_of(const struct preload_slot *slot)
{
    return &runtimes[preload_slot_entry(slot)][(slot - &preload_slots[0][0]) % PRELOAD_SLOTS];
}

static bool not_attached(const struct preload_slot *slot)
{
    return __atomic_load_n(&runtime_of(slot)->attachment, __ATOMIC_ACQUIRE) == NOT_ATTACHED;
}

/* Nothing more to learn: the stub jumps to the real function. */
static void stop_watching(const struct preload_slot *slot)
{
    __atomic_store_n(
        &preload_slots[preload_slot_entry(slot)][(slot - &preload_slots[0][0]) % PRELOAD_SLOTS]
             .target,
        wrap_real(slot), __ATOMIC_RELEASE);
}

static void police(const struct preload_slot *slot)
{
    struct runtime *runtime = runtime_of(slot);
    Dl_info information;
    struct link_map *map = NULL;
    void *handle = NULL;

    if (dladdr1(wrap_real(slot), &information, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL)
        handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != NULL) {
        runtime->launch_ex = (launch_ex_function)preload_next_symbol(handle, "cudaLaunchKernelExC");
        runtime->launch_ex_ptsz =
            (launch_ex_function)preload_next_symbol(handle, "cudaLaunchKernelExC_ptsz");
        runtime->function_name =
            (runtime_result(*)(const char **, const void *))preload_next_symbol(handle,
                                                                                "cudaFuncGetName");
        dlclose(handle);
    }
    __atomic_store_n(&runtime->attachment, NOT_ATTACHED, __ATOMIC_RELEASE);
    report_note("warning",
                "%s: its launches do not pass through the driver functions that are wrapped; "
                "only settings that cannot be refused are made",
                map != NULL ? map->l_name : "libcudart");
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
    else if (result == 0 && !not_attached(slot))
        police(slot);
}

static bool per_thread(const struct preload_slot *slot)
{
    return preload_entry_info[preload_slot_entry(slot)].variant == PRELOAD_PTSZ;
}

/* Decides a launch that no driver wrapper sees. False: make it as it came. */
static bool make_changed(const struct preload_slot *slot, const CUlaunchConfig *config,
                         const void *function, void **arguments, bool cooperative,
                         runtime_result *result)
{
    const struct runtime *runtime = runtime_of(slot);
    const bool ptsz = per_thread(slot);
    const launch_ex_function launch_ex = ptsz ? runtime->launch_ex_ptsz : runtime->launch_ex;
    struct decide_verdict verdict;
    struct decide_launch launch = {
        .function = (CUfunction)(uintptr_t)function,
        .config = config,
        .cooperative = cooperative,
        .per_thread_default = ptsz,
        .layer = DECIDE_LAYER_RUNTIME,
        .library = preload_library_at(preload_runtime_caller)->name,
    };
    const char *name = NULL;

    if (runtime->function_name == NULL || runtime->function_name(&name, function) != 0)
        name = NULL;
    decide_function_named((void *)(uintptr_t)function, name != NULL ? name : "(unknown)", NULL);
    decide_launch(&launch, &verdict);
    report_count_entry(preload_slot_entry(slot));
    report_count_launch(verdict.cell, verdict.kind, 1);
    if (!verdict.change || launch_ex == NULL)
        return false;
    *result = launch_ex(&verdict.config, function, arguments);
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
        const CUlaunchConfig config = {
            grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared_memory,
            stream, NULL,   0};

        if (shared_memory <= UINT32_MAX &&
            make_changed(slot, &config, function, arguments, cooperative, &result))
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

/* cudaLaunchConfig_t has the layout of CUlaunchConfig, but for a shared memory size of 64 bits. */
static runtime_result runtime_launch_ex(const struct preload_slot *slot, const void *caller,
                                        const CUlaunchConfig *config, const void *function,
                                        void **arguments)
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

/* A stream that no driver wrapper saw being created. */
static runtime_result stream_created(const struct preload_slot *slot, unsigned before,
                                     runtime_result result, CUstream *stream, unsigned flags,
                                     int priority, bool priority_given)
{
    const struct decide_stream_request request = {
        .flags = flags,
        .priority = priority,
        .priority_given = priority_given,
        .library = preload_library_at(preload_runtime_caller)->name,
        .layer = DECIDE_LAYER_RUNTIME,
    };

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
    return stream_created(slot, before, real(stream), stream, 0, 0, false);
}

static runtime_result runtime_stream_create_with_flags(const struct preload_slot *slot,
                                                       const void *caller, CUstream *stream,
                                                       unsigned flags)
{
    runtime_result (*real)(CUstream *, unsigned) = wrap_real(slot);
    const unsigned before = begin_watching();

    (void)caller;
    return stream_created(slot, before, real(stream, flags), stream, flags, 0, false);
}

static runtime_result runtime_stream_create_with_priority(const struct preload_slot *slot,
                                                          const void *caller, CUstream *stream,
                                                          unsigned flags, int priority)
{
    runtime_result (*real)(CUstream *, unsigned, int) = wrap_real(slot);
    const unsigned before = begin_watching();

    (void)caller;
    return stream_created(slot, before, real(stream, flags, priority), stream, flags, priority,
                          true);
}

/* Nodes: only the caller matters, and the stub has noted it. */
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

#define RUNTIME(symbol, variant, wrapper, parameters, arguments)                                   \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 0)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 1)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 2)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 3)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 4)                           \
    WRAP_SLOT(symbol, runtime_result, wrapper, parameters, arguments, 5)
#include "preload/entries.def"
