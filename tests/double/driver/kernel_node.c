/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel nodes: their parameters and attributes. */
#include "driver.h"
#include "newer.h"
#include <stdlib.h>
#include <string.h>

void kernel_node_free(struct kernel_node *kernel)
{
    free(kernel->storage);
    kernel->storage = NULL;
}

/* Copies kernelParams as far as the arguments' sizes are known. */
static void copy_parameters(struct kernel_node *kernel)
{
    const struct kernel_code *code = kernel->what.code;
    if (code->parameter_count <= 0)
        return;
    size_t count = (size_t)code->parameter_count;
    size_t size = count * sizeof(void *);
    for (size_t i = 0; i < count; i++)
        size += (code->parameter_size[i] + 15u) & ~15u;
    void **pointers = malloc(size);
    if (pointers == NULL)
        abort();
    char *data = (char *)(pointers + count);
    for (size_t i = 0; i < count; i++) {
        memcpy(data, kernel->parameters[i], code->parameter_size[i]);
        pointers[i] = data;
        data += (code->parameter_size[i] + 15u) & ~15u;
    }
    kernel->storage = pointers;
    kernel->parameters = pointers;
}

struct extra_copy {
    void *list[5];
    size_t size;
    char data[];
};

static void copy_extra(struct kernel_node *kernel)
{
    const void *data = NULL;
    size_t size = 0;
    for (void **at = kernel->extra; at[0] != CU_LAUNCH_PARAM_END; at += 2) {
        if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            data = at[1];
        else if (at[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(const size_t *)at[1];
        else
            return;
    }
    struct extra_copy *copy = malloc(sizeof(*copy) + size);
    if (copy == NULL)
        abort();
    copy->size = size;
    if (size != 0 && data != NULL)
        memcpy(copy->data, data, size);
    copy->list[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    copy->list[1] = copy->data;
    copy->list[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    copy->list[3] = &copy->size;
    copy->list[4] = CU_LAUNCH_PARAM_END;
    kernel->storage = copy;
    kernel->extra = copy->list;
}

/* Documented: the arguments are copied, and the caller's may go. */
void kernel_node_copy_arguments(struct kernel_node *kernel)
{
    kernel->storage = NULL;
    if (kernel->parameters != NULL)
        copy_parameters(kernel);
    else if (kernel->extra != NULL)
        copy_extra(kernel);
}

static struct launch node_launch(const struct kernel_node *kernel)
{
    struct launch launch = {
        .what = kernel->what,
        .grid = {kernel->grid[0], kernel->grid[1], kernel->grid[2]},
        .block = {kernel->block[0], kernel->block[1], kernel->block[2]},
        .shared = kernel->shared,
        .parameters = kernel->parameters,
        .extra = kernel->extra,
    };
    return launch;
}

/* Assumed: the error for a kernel that is gone.
 * A cooperative grid is not measured against the SMs: see kernel_node_hangs. */
CUresult kernel_node_check(const struct kernel_node *kernel)
{
    struct attribute_set attributes = kernel->attributes;
    struct launch launch = node_launch(kernel);
    if (!context_is(kernel->context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!launchable_lives(&kernel->what))
        return CUDA_ERROR_INVALID_HANDLE;
    attribute_remove(&attributes, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    return launch_check(&launch, kernel->context, &attributes, NULL);
}

bool kernel_node_hangs(const struct kernel_node *kernel)
{
    struct launch launch = node_launch(kernel);
    return context_is(kernel->context) && launchable_lives(&kernel->what) &&
           launch_check(&launch, kernel->context, &kernel->attributes, NULL) ==
               CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

/*
 * Which function, and in which context. Measured: with `func` both others are ignored and the
 * context is the current one if that is a green one of the function's device, else the function's;
 * with `func` NULL, `kern` and `ctx` count, and no `ctx` is the current one. A kernel cast to a
 * function is refused here, unlike in launches (400).
 */
static CUresult set_function(struct kernel_node *kernel, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    CUcontext current = context_current();
    kernel->func = params->func;
    kernel->kern = params->func == NULL ? params->kern : NULL;
    CUfunction handle = params->func == NULL ? (CUfunction)(void *)params->kern : params->func;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!launchable_of(handle, &kernel->what) ||
        (params->func == NULL) != (kernel->what.kernel != NULL))
        return CUDA_ERROR_INVALID_HANDLE;
    CUcontext context = params->ctx != NULL ? params->ctx : current;
    if (params->func != NULL) {
        context = kernel->what.function->context;
        if (current != NULL && context_is(current) && context_root(current) == context)
            context = current;
    }
    if (context == NULL || !context_is(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    kernel->context = context;
    return CUDA_SUCCESS;
}

CUresult kernel_node_set_within(struct kernel_node *kernel,
                                const CUDA_KERNEL_NODE_PARAMS_v2 *params, CUcontext context)
{
    struct kernel_node next = *kernel;
    CUresult result = set_function(&next, params);
    if (result == CUDA_SUCCESS && context != NULL && next.context != context)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    next.grid[0] = params->gridDimX;
    next.grid[1] = params->gridDimY;
    next.grid[2] = params->gridDimZ;
    next.block[0] = params->blockDimX;
    next.block[1] = params->blockDimY;
    next.block[2] = params->blockDimZ;
    next.shared = params->sharedMemBytes;
    next.parameters = params->kernelParams;
    next.extra = params->extra;
    result = kernel_node_check(&next);
    if (result != CUDA_SUCCESS)
        return result;
    /* The old copy goes last: the new arguments may be what was read back from it. */
    void *old = kernel->storage;
    kernel_node_copy_arguments(&next);
    free(old);
    *kernel = next;
    return CUDA_SUCCESS;
}

CUresult kernel_node_set(struct kernel_node *kernel, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    return kernel_node_set_within(kernel, params, NULL);
}

static void get(const struct kernel_node *kernel, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    memset(params, 0, sizeof(*params));
    /* Measured: of a kernel its function is told, too, so that a node that is set to what was read
     * moves to another context. */
    params->func = kernel->func;
    if (params->func == NULL && context_is(kernel->context))
        params->func = kernel_function(kernel->kern, kernel->context);
    params->gridDimX = kernel->grid[0];
    params->gridDimY = kernel->grid[1];
    params->gridDimZ = kernel->grid[2];
    params->blockDimX = kernel->block[0];
    params->blockDimY = kernel->block[1];
    params->blockDimZ = kernel->block[2];
    params->sharedMemBytes = kernel->shared;
    params->kernelParams = kernel->parameters;
    params->extra = kernel->extra;
    params->kern = kernel->kern;
    params->ctx = kernel->context;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    struct call call = graph_node_call(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    if (call.result == CUDA_SUCCESS && params == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        CUDA_KERNEL_NODE_PARAMS_v2 full;
        get(&hNode->kernel, &full);
        memcpy(params, &full, sizeof(*params));
    }
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode hNode,
                                               CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
    struct call call = graph_node_call(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    if (call.result == CUDA_SUCCESS && nodeParams == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS)
        get(&hNode->kernel, nodeParams);
    return call_end(&call, call.result);
}

/* Of kernel nodes alone: the parameters of others are not kept. */
CUresult CUDAAPI cuGraphNodeGetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    struct call call = graph_node_call(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    if (call.result == CUDA_SUCCESS && nodeParams == NULL)
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        CUDA_KERNEL_NODE_PARAMS_v2 full;
        memset(nodeParams, 0, sizeof(*nodeParams));
        nodeParams->type = CU_GRAPH_NODE_TYPE_KERNEL;
        get(&hNode->kernel, &full);
        memcpy(&nodeParams->kernel, &full, sizeof(full));
    }
    return call_end(&call, call.result);
}

static CUresult set_params(const char *name, CUgraphNode node,
                           const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct call call = graph_node_call(name, node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (call.result == CUDA_SUCCESS)
        call.result = kernel_node_set(&node->kernel, params);
    if (call.result == CUDA_SUCCESS)
        call_kernel_node(&call, &node->kernel);
    return call_end(&call, call.result);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    memset(&params, 0, sizeof(params));
    if (nodeParams != NULL)
        memcpy(&params, nodeParams, sizeof(*nodeParams));
    return set_params(__func__, hNode, &params);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                               const CUDA_KERNEL_NODE_PARAMS_v2 *nodeParams)
{
    static const CUDA_KERNEL_NODE_PARAMS_v2 nothing;
    return set_params(__func__, hNode, nodeParams == NULL ? &nothing : nodeParams);
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                               CUkernelNodeAttrValue *value_out)
{
    struct call call = graph_node_call(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    call_add(&call, "id=%d", (int)attr);
    if (call.result == CUDA_SUCCESS &&
        (value_out == NULL || !attribute_told_by_node((unsigned int)attr)))
        call.result = CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS) {
        attribute_default((unsigned int)attr, value_out);
        /* Measured: captured nodes tell "spread", explicit ones "default". */
        if (attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE &&
            hNode->kernel.captured)
            value_out->clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
        if (attribute_has(&hNode->kernel.attributes, (unsigned int)attr))
            *value_out = hNode->kernel.attributes.value[attr];
    }
    return call_end(&call, call.result);
}

/*
 * Measured: a cluster of {0,0,0} takes the node's cluster away; one that does not fit the grid is
 * refused when it is set, and the node stays as it was; so is a carveout of -1, though it is the
 * default of a launch.
 */
static CUresult set_attribute(struct kernel_node *kernel, unsigned int id,
                              CUlaunchAttributeValue value)
{
    struct attribute_set before = kernel->attributes;
    int number;
    memcpy(&number, &value, sizeof(number));
    if (id == ATTRIBUTE_SHARED_MEMORY_CARVEOUT && number < 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = attribute_check(id, &value);
    if (result != CUDA_SUCCESS)
        return result;
    attribute_put(&kernel->attributes, id, &value);
    if (id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && id != ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
        return CUDA_SUCCESS;
    if (value.clusterDim.x == 0 && value.clusterDim.y == 0 && value.clusterDim.z == 0)
        attribute_remove(&kernel->attributes, id);
    result = kernel_node_check(kernel);
    if (result != CUDA_SUCCESS)
        kernel->attributes = before;
    return result;
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                               const CUkernelNodeAttrValue *value)
{
    struct call call = graph_node_call(__func__, hNode, CU_GRAPH_NODE_TYPE_KERNEL);
    if (call.record != NULL && value != NULL) {
        text_add(&call.details, " attribute=");
        text_attribute(&call.details, (unsigned int)attr, value);
        call.record->attribute_count = 1;
        call.record->attributes[0].id = attr;
        call.record->attributes[0].value = *value;
    }
    CUresult result = call.result;
    if (result == CUDA_SUCCESS && (value == NULL || !attribute_on_node((unsigned int)attr)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = set_attribute(&hNode->kernel, (unsigned int)attr, *value);
    return call_end(&call, result);
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    struct call call = graph_node_call(__func__, dst, CU_GRAPH_NODE_TYPE_KERNEL);
    call_object(&call, "from", OBJECT_NODE, src);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS &&
        (!object_is(OBJECT_NODE, src) || src->type != CU_GRAPH_NODE_TYPE_KERNEL))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct attribute_set before = dst->kernel.attributes;
        dst->kernel.attributes = src->kernel.attributes;
        /* Assumed: refused as when one attribute is set. */
        result = kernel_node_check(&dst->kernel);
        if (result != CUDA_SUCCESS)
            dst->kernel.attributes = before;
    }
    return call_end(&call, result);
}
