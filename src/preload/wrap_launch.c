/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. The stubs come here for every function that a rule may match, and while a stream
 * captures.
 *
 * A launch that is not changed is made by the very call that came, with its own arguments.
 */
#include "preload/wrap.h"

#include "decide/decide.h"

typedef CUresult (*launch_ex_function)(const CUlaunchConfig *, CUfunction, void **, void **);

struct launch_call {
    struct decide_launch launch;
    enum preload_entry entry;
    void **kernel_params, **extra;
    launch_ex_function launch_ex; /* the real cuLaunchKernelEx of the same variant */
    CUresult result;
    bool refused; /* the changed launch; the original is made in its place */
};

/* Decides, and makes the changed launch. False: the caller makes the original one, then calls
 * after_original. */
static bool make_changed(struct launch_call *call, struct decide_verdict *verdict)
{
    report_count_entry(call->entry);
    preload_driver_calls++;
    preload_gather_facts();
    decide_launch(&call->launch, verdict);
    if (!verdict->change)
        return false;
    if (__builtin_expect(call->launch_ex == NULL, 0)) { /* a driver before CUDA 11.8 */
        call->refused = decide_launch_refused(&call->launch, verdict, CUDA_ERROR_NOT_SUPPORTED);
        return false;
    }
    call->result =
        call->launch_ex(&verdict->config, call->launch.function, call->kernel_params, call->extra);
    if (call->result == CUDA_SUCCESS)
        decide_launch_accepted(&call->launch, verdict);
    else if ((call->refused = decide_launch_refused(&call->launch, verdict, call->result)))
        return false;
    report_count_launch(verdict->cell, verdict->kind, 1);
    if (__builtin_expect(verdict->kind == REPORT_LAUNCH_CAPTURED, 0) &&
        call->result == CUDA_SUCCESS)
        decide_captured(&call->launch, verdict);
    return true;
}

static inline CUresult after_original(const struct launch_call *call,
                                      struct decide_verdict *verdict, CUresult result)
{
    if (__builtin_expect(call->refused, 0))
        decide_launch_repeated(&call->launch, verdict, result);
    report_count_launch(verdict->cell, verdict->kind, 1);
    if (__builtin_expect(verdict->kind == REPORT_LAUNCH_CAPTURED, 0) && result == CUDA_SUCCESS)
        decide_captured(&call->launch, verdict);
    return result;
}

static inline launch_ex_function launch_ex_of(bool per_thread)
{
    return per_thread ? cuda_driver.cuLaunchKernelEx_ptsz : cuda_driver.cuLaunchKernelEx;
}

static inline __attribute__((always_inline)) CUresult
launch_kernel(enum preload_variant variant, const struct preload_slot *slot, const void *caller,
              CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_memory,
              CUstream stream, void **kernel_params, void **extra)
{
    CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void **, void **) = wrap_real(slot);
    const CUlaunchConfig config = {grid_x,  grid_y,        grid_z, block_x, block_y,
                                   block_z, shared_memory, stream, NULL,    0};
    struct decide_verdict verdict;
    struct launch_call call = {
        .launch = {.function = function,
                   .config = &config,
                   .caller = caller,
                   .per_thread_default = variant == PRELOAD_PTSZ},
        .entry = preload_slot_entry(slot),
        .kernel_params = kernel_params,
        .extra = extra,
        .launch_ex = launch_ex_of(variant == PRELOAD_PTSZ),
    };

    if (make_changed(&call, &verdict))
        return call.result;
    return after_original(&call, &verdict,
                          real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                               shared_memory, stream, kernel_params, extra));
}

static inline __attribute__((always_inline)) CUresult
launch_cooperative(enum preload_variant variant, const struct preload_slot *slot,
                   const void *caller, CUfunction function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared_memory, CUstream stream, void **kernel_params)
{
    CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void **) = wrap_real(slot);
    const CUlaunchConfig config = {grid_x,  grid_y,        grid_z, block_x, block_y,
                                   block_z, shared_memory, stream, NULL,    0};
    struct decide_verdict verdict;
    struct launch_call call = {
        .launch = {.function = function,
                   .config = &config,
                   .caller = caller,
                   .cooperative = true,
                   .per_thread_default = variant == PRELOAD_PTSZ},
        .entry = preload_slot_entry(slot),
        .kernel_params = kernel_params,
        .launch_ex = launch_ex_of(variant == PRELOAD_PTSZ),
    };

    if (make_changed(&call, &verdict))
        return call.result;
    return after_original(&call, &verdict,
                          real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                               shared_memory, stream, kernel_params));
}

static inline __attribute__((always_inline)) CUresult
launch_kernel_ex(enum preload_variant variant, const struct preload_slot *slot, const void *caller,
                 const CUlaunchConfig *config, CUfunction function, void **kernel_params,
                 void **extra)
{
    const launch_ex_function real = (launch_ex_function)wrap_real(slot);
    struct decide_verdict verdict;
    struct launch_call call = {
        .launch = {.function = function,
                   .config = config,
                   .caller = caller,
                   .per_thread_default = variant == PRELOAD_PTSZ},
        .entry = preload_slot_entry(slot),
        .kernel_params = kernel_params,
        .extra = extra,
        .launch_ex = real,
    };

    if (__builtin_expect(config == NULL, 0))
        return real(config, function, kernel_params, extra); /* the driver says what is wrong */
    if (make_changed(&call, &verdict))
        return call.result;
    return after_original(&call, &verdict, real(config, function, kernel_params, extra));
}

/* The variant is known where the function is made, so it costs nothing at a launch. */
#define PLAIN_launch_kernel(...) launch_kernel(PRELOAD_PLAIN, __VA_ARGS__)
#define PTSZ_launch_kernel(...) launch_kernel(PRELOAD_PTSZ, __VA_ARGS__)
#define PLAIN_launch_kernel_ex(...) launch_kernel_ex(PRELOAD_PLAIN, __VA_ARGS__)
#define PTSZ_launch_kernel_ex(...) launch_kernel_ex(PRELOAD_PTSZ, __VA_ARGS__)
#define PLAIN_launch_cooperative(...) launch_cooperative(PRELOAD_PLAIN, __VA_ARGS__)
#define PTSZ_launch_cooperative(...) launch_cooperative(PRELOAD_PTSZ, __VA_ARGS__)
#define LAUNCH(symbol, base, version, variant, handle, wrapper, parameters, arguments)             \
    WRAP_DRIVER(symbol, variant##_##wrapper, parameters, arguments)
#include "preload/entries.def"
