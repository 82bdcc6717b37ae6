/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a context, and settings of it that change nothing here. */
#include "driver.h"

/* Begins a call that needs a current context and an output. */
static struct call query_call(const char *name, const void *output)
{
    struct call call = call_begin(name);
    if (call.result == CUDA_SUCCESS && context_current() == NULL)
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && output == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    return call;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
    struct call call = query_call(__func__, flags);
    if (call.result == CUDA_SUCCESS)
        *flags = context_current()->flags;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct call call = call_begin(__func__);
    CUcontext context = ctx == NULL ? context_current() : ctx;
    if (call.result == CUDA_SUCCESS && !context_is(context))
        call.result = object_was(OBJECT_CONTEXT, context) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                          : CUDA_ERROR_INVALID_CONTEXT;
    if (call.result == CUDA_SUCCESS && ctxId == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        *ctxId = context->object.ordinal;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct call call = query_call(__func__, version);
    (void)ctx;
    if (call.result == CUDA_SUCCESS)
        *version = 3020;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct call call = query_call(__func__, &configuration);
    if (call.result == CUDA_SUCCESS && leastPriority != NULL)
        *leastPriority = configuration.priority_least;
    if (call.result == CUDA_SUCCESS && greatestPriority != NULL)
        *greatestPriority = configuration.priority_greatest;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct call call = query_call(__func__, &configuration);
    call_add(&call, "config=%d", (int)config);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct call call = query_call(__func__, pconfig);
    if (call.result == CUDA_SUCCESS)
        *pconfig = CU_FUNC_CACHE_PREFER_NONE;
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct call call = query_call(__func__, &configuration);
    call_add(&call, "limit=%d value=%zu", (int)limit, value);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct call call = query_call(__func__, pvalue);
    (void)limit;
    if (call.result == CUDA_SUCCESS)
        *pvalue = 0;
    return call_end(&call, call.result);
}
