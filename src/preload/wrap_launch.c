/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. The stubs come here for every function that a rule may match, and while a stream
 * captures.
 *
 * A launch that is not changed is made by the very call that came, with its own arguments.
 */
#include "preload/wrap.h"

#include "decide/decide.h"
#include "preload/control.h"

typedef CUresult (*launch_ex_function)(const CUlaunchConfig *, CUfunction, void **, void **);

/* How the program launched. */
enum launch_form {
    LAUNCH_KERNEL,
    LAUNCH_COOPERATIVE,
    LAUNCH_EX,
};

struct launch_call {
    struct decide_launch launch;
    void **kernel_params, **extra;
    void *real;                   /* what the program called */
    launch_ex_function launch_ex; /* the real cuLaunchKernelEx of the same variant */
    enum launch_form form;
    enum preload_entry entry;
    bool tried; /* the shortest way was, and failed with result */
    CUresult result;
};

/* The launch as the program made it: the very function, with the same arguments. */
static CUresult call_original(const struct launch_call *call)
{
    const CUlaunchConfig *config = call->launch.config;

    switch (call->form) {
    case LAUNCH_KERNEL: {
        CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, CUstream, void **, void **) = call->real;

        return real(call->launch.function, config->gridDimX, config->gridDimY, config->gridDimZ,
                    config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
                    config->hStream, call->kernel_params, call->extra);
    }
    case LAUNCH_COOPERATIVE: {
        CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, CUstream, void **) = call->real;

        return real(call->launch.function, config->gridDimX, config->gridDimY, config->gridDimZ,
                    config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
                    config->hStream, call->kernel_params);
    }
    case LAUNCH_EX:
    default:
        return ((launch_ex_function)call->real)(config, call->launch.function, call->kernel_params,
                                                call->extra);
    }
}

static CUresult call_changed(const struct launch_call *call, const struct decide_verdict *verdict)
{
    if (call->tried)
        return call->result;
    if (call->launch_ex == NULL) /* a driver before CUDA 11.8 */
        return CUDA_ERROR_NOT_SUPPORTED;
    return call->launch_ex(&verdict->config, call->launch.function, call->kernel_params,
                           call->extra);
}

/*
 * The launch on a side stream, between what its own stream had before and what comes after. Where
 * the way there cannot be made, nothing has happened yet and it stays on its own. A join that fails
 * is the launch's failure, since what the program launches next could overtake it; *made says then
 * that the kernel runs nevertheless.
 */
static CUresult call_moved(const struct launch_call *call, struct decide_verdict *verdict,
                           bool *made)
{
    struct place_move move;
    CUresult result, joined;
    const enum report_reason reason =
        verdict->move.sides == NULL
            ? REPORT_REASON_OUT_OF_MEMORY
            : place_move_begin(&move, verdict->move.sides, verdict->move.stream,
                               verdict->move.partition, verdict->kind == REPORT_LAUNCH_CAPTURED);

    if (reason != REPORT_REASON_NONE) {
        decide_launch_not_moved(verdict, reason);
        return call_changed(call, verdict);
    }
    verdict->config.hStream = move.side;
    result = call_changed(call, verdict);
    joined = place_move_end(&move, result == CUDA_SUCCESS);
    *made = result == CUDA_SUCCESS;
    return *made ? joined : result;
}

/* Decides, launches and counts. */
static __attribute__((noinline)) CUresult launch(const struct launch_call *call)
{
    struct decide_verdict verdict;
    CUresult result;
    bool made = false;

    if (!call->tried)
        report_count_entry(call->entry);
    preload_driver_calls++;
    preload_gather_facts();
    preload_control_look();
    decide_launch(&call->launch, &verdict);
    if (!verdict.change) {
        result = call_original(call);
        if (result == CUDA_SUCCESS)
            decide_launch_accepted(&call->launch, &verdict);
    } else {
        result = verdict.move.partition != NULL ? call_moved(call, &verdict, &made)
                                                : call_changed(call, &verdict);
        if (result == CUDA_SUCCESS) {
            decide_launch_accepted(&call->launch, &verdict);
        } else if (!made && decide_launch_refused(&call->launch, &verdict, result)) {
            result = call_original(call);
            decide_launch_repeated(&call->launch, &verdict, result);
        }
    }
    report_count_launch(verdict.cell, verdict.kind, 1);
    if (__builtin_expect(verdict.kind == REPORT_LAUNCH_CAPTURED, 0) && result == CUDA_SUCCESS)
        decide_captured(&call->launch, &verdict);
    return result;
}

/* The shortest way: what to add was decided before. config is a copy, or the wrapper's own. True:
 * the launch is made. Afterwards call->tried says whether it was tried. */
static inline __attribute__((always_inline)) bool launch_prepared(struct launch_call *call,
                                                                  CUlaunchConfig config)
{
    const struct decide_prepared *prepared = decide_prepared_for(call->launch.function);
    struct report_shard *shard = report_shard;
    struct cuda_launch_attribute list[DECIDE_PREPARED_LIMIT];

    if (prepared == NULL || shard == NULL || call->launch_ex == NULL)
        return false;
    if (config.numAttrs == 0) {
        config.attrs = (CUlaunchAttribute *)(uintptr_t)prepared->attributes;
        config.numAttrs = prepared->count;
    } else {
        config.numAttrs = decide_prepared_merge(prepared, &config, list);
        if (config.numAttrs == 0)
            return false;
        config.attrs = (CUlaunchAttribute *)(void *)list;
    }
    report_count_entry(call->entry);
    call->result =
        call->launch_ex(&config, call->launch.function, call->kernel_params, call->extra);
    call->tried = true;
    if (__builtin_expect(call->result != CUDA_SUCCESS, 0))
        return false;
    report_count_at(shard, prepared->count_offset);
    return true;
}

static inline launch_ex_function launch_ex_of(enum preload_variant variant)
{
    return variant == PRELOAD_PTSZ ? cuda_driver.cuLaunchKernelEx_ptsz
                                   : cuda_driver.cuLaunchKernelEx;
}

static inline __attribute__((always_inline)) CUresult
launch_kernel(enum preload_variant variant, const struct preload_slot *slot, const void *caller,
              CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_memory,
              CUstream stream, void **kernel_params, void **extra)
{
    const CUlaunchConfig config = {grid_x,  grid_y,        grid_z, block_x, block_y,
                                   block_z, shared_memory, stream, NULL,    0};
    struct launch_call call = {
        .launch = {.function = function,
                   .config = &config,
                   .caller = caller,
                   .per_thread_default = variant == PRELOAD_PTSZ},
        .kernel_params = kernel_params,
        .extra = extra,
        .real = wrap_real(slot),
        .launch_ex = launch_ex_of(variant),
        .form = LAUNCH_KERNEL,
        .entry = preload_slot_entry(slot),
    };

    return launch_prepared(&call, config) ? CUDA_SUCCESS : launch(&call);
}

static inline __attribute__((always_inline)) CUresult
launch_cooperative(enum preload_variant variant, const struct preload_slot *slot,
                   const void *caller, CUfunction function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared_memory, CUstream stream, void **kernel_params)
{
    const CUlaunchConfig config = {grid_x,  grid_y,        grid_z, block_x, block_y,
                                   block_z, shared_memory, stream, NULL,    0};
    const struct launch_call call = {
        .launch = {.function = function,
                   .config = &config,
                   .caller = caller,
                   .cooperative = true,
                   .per_thread_default = variant == PRELOAD_PTSZ},
        .kernel_params = kernel_params,
        .real = wrap_real(slot),
        .launch_ex = launch_ex_of(variant),
        .form = LAUNCH_COOPERATIVE,
        .entry = preload_slot_entry(slot),
    };

    return launch(&call);
}

static inline __attribute__((always_inline)) CUresult
launch_kernel_ex(enum preload_variant variant, const struct preload_slot *slot, const void *caller,
                 const CUlaunchConfig *config, CUfunction function, void **kernel_params,
                 void **extra)
{
    struct launch_call call = {
        .launch = {.function = function,
                   .config = config,
                   .caller = caller,
                   .per_thread_default = variant == PRELOAD_PTSZ},
        .kernel_params = kernel_params,
        .extra = extra,
        .real = wrap_real(slot),
        .launch_ex = (launch_ex_function)wrap_real(slot),
        .form = LAUNCH_EX,
        .entry = preload_slot_entry(slot),
    };

    if (__builtin_expect(config == NULL, 0)) {
        report_count_entry(call.entry);
        return call_original(&call); /* the driver says what is wrong */
    }
    if (launch_prepared(&call, *config))
        return CUDA_SUCCESS;
    return launch(&call);
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
