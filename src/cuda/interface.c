/* SPDX-License-Identifier: Apache-2.0 */
/* Compile-time proof that cuda/interface.h and driver.def agree with the CUDA headers at hand. Each
 * condition names the first version whose headers have what it asks about. */
#include "cuda/interface.h"

#include <cudaTypedefs.h>

_Static_assert(sizeof(struct cuda_launch_attribute) == 72, "CUlaunchAttribute");
_Static_assert(sizeof(struct cuda_launch_attribute) == sizeof(CUlaunchAttribute), "size");
_Static_assert(offsetof(struct cuda_launch_attribute, value) == offsetof(CUlaunchAttribute, value),
               "value");
#define SAME_VALUE_OFFSET(ours, theirs)                                                            \
    _Static_assert(offsetof(struct cuda_launch_attribute, value.ours) ==                           \
                       offsetof(CUlaunchAttribute, value.theirs),                                  \
                   #theirs)
SAME_VALUE_OFFSET(cluster_dim.x, clusterDim.x);
SAME_VALUE_OFFSET(cluster_dim.z, clusterDim.z);
SAME_VALUE_OFFSET(priority, priority);
SAME_VALUE_OFFSET(mem_sync_domain_map.default_domain, memSyncDomainMap.default_);
SAME_VALUE_OFFSET(mem_sync_domain_map.remote_domain, memSyncDomainMap.remote);
SAME_VALUE_OFFSET(number, memSyncDomain);
SAME_VALUE_OFFSET(number, clusterSchedulingPolicyPreference);
SAME_VALUE_OFFSET(number, programmaticStreamSerializationAllowed);
#if CUDA_VERSION >= 12040
SAME_VALUE_OFFSET(device_updatable.device_updatable, deviceUpdatableKernelNode.deviceUpdatable);
SAME_VALUE_OFFSET(device_updatable.device_node, deviceUpdatableKernelNode.devNode);
#endif
#if CUDA_VERSION >= 12050
SAME_VALUE_OFFSET(number, sharedMemCarveout);
#endif
#if CUDA_VERSION >= 12080
SAME_VALUE_OFFSET(cluster_dim.x, preferredClusterDim.x);
SAME_VALUE_OFFSET(cluster_dim.z, preferredClusterDim.z);
#endif
#if CUDA_VERSION >= 13000
SAME_VALUE_OFFSET(number, nvlinkUtilCentricScheduling);
#endif

_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "hStream");
_Static_assert(offsetof(CUlaunchConfig, attrs) == 40, "attrs");
_Static_assert(offsetof(CUlaunchConfig, numAttrs) == 48, "numAttrs");

_Static_assert(sizeof(struct cuda_kernel_node_params) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2),
               "size");
#define SAME_OFFSET(ours, theirs)                                                                  \
    _Static_assert(offsetof(struct cuda_kernel_node_params, ours) ==                               \
                       offsetof(CUDA_KERNEL_NODE_PARAMS_v2, theirs),                               \
                   #theirs)
SAME_OFFSET(function, func);
SAME_OFFSET(grid_x, gridDimX);
SAME_OFFSET(block_z, blockDimZ);
SAME_OFFSET(shared_memory, sharedMemBytes);
SAME_OFFSET(kernel_params, kernelParams);
SAME_OFFSET(extra, extra);
SAME_OFFSET(kernel, kern);
SAME_OFFSET(context, ctx);

#if CUDA_VERSION >= 12020
_Static_assert(sizeof(struct cuda_graph_node_params) == sizeof(CUgraphNodeParams), "size");
_Static_assert(offsetof(struct cuda_graph_node_params, node) == offsetof(CUgraphNodeParams, kernel),
               "kernel");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof(struct cuda_kernel_node_params) &&
                   offsetof(CUDA_KERNEL_NODE_PARAMS_v3, kern) ==
                       offsetof(struct cuda_kernel_node_params, kernel) &&
                   offsetof(CUDA_KERNEL_NODE_PARAMS_v3, ctx) ==
                       offsetof(struct cuda_kernel_node_params, context),
               "version 3 is laid out as version 2");
_Static_assert(offsetof(struct cuda_graph_node_params, node.child) ==
                   offsetof(CUgraphNodeParams, graph.graph),
               "child graph");
#endif
#if CUDA_VERSION >= 12030
_Static_assert((int)CUDA_GRAPH_NODE_CONDITIONAL == (int)CU_GRAPH_NODE_TYPE_CONDITIONAL, "type");
_Static_assert(offsetof(struct cuda_graph_node_params, node.conditional.size) ==
                       offsetof(CUgraphNodeParams, conditional.size) &&
                   offsetof(struct cuda_graph_node_params, node.conditional.graphs) ==
                       offsetof(CUgraphNodeParams, conditional.phGraph_out),
               "conditional node");
#endif

#define SAME_VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_VALUE(4, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_VALUE(8, CU_LAUNCH_ATTRIBUTE_PRIORITY);
SAME_VALUE(9, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
SAME_VALUE(10, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
SAME_VALUE(0, CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
SAME_VALUE(1, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
SAME_VALUE(CUDA_RESULT_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(CUDA_RESULT_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME_VALUE(CUDA_RESULT_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
SAME_VALUE(CUDA_RESULT_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(CUDA_RESULT_INVALID_CLUSTER_SIZE, CUDA_ERROR_INVALID_CLUSTER_SIZE);
#if CUDA_VERSION >= 12030
SAME_VALUE(CUDA_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
#endif
#if CUDA_VERSION >= 12040
SAME_VALUE(CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
           CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE);
#endif
#if CUDA_VERSION >= 12050
SAME_VALUE(CUDA_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
           CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
#endif
#if CUDA_VERSION >= 12080
SAME_VALUE(CUDA_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
           CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
#endif
#if CUDA_VERSION >= 13000
SAME_VALUE(CUDA_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
           CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
#endif
#if CUDA_VERSION >= 13020
SAME_VALUE(CUDA_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE,
           CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE);
SAME_VALUE(CUDA_ATTRIBUTE_SHARED_MEMORY_MODE, CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE);
#endif

#if CUDA_VERSION >= 12040
_Static_assert(sizeof(struct cuda_device_resource) == sizeof(CUdevResource) &&
                   sizeof(struct cuda_device_resource) == 144,
               "CUdevResource");
_Static_assert(offsetof(struct cuda_device_resource, of.sm.sm_count) ==
                   offsetof(CUdevResource, sm.smCount),
               "smCount");
SAME_VALUE(CUDA_RESOURCE_TYPE_SM, CU_DEV_RESOURCE_TYPE_SM);
SAME_VALUE(CUDA_GREEN_CONTEXT_DEFAULT_STREAM, CU_GREEN_CTX_DEFAULT_STREAM);
SAME_VALUE(CUDA_RESULT_INVALID_RESOURCE_TYPE, CUDA_ERROR_INVALID_RESOURCE_TYPE);
SAME_VALUE(CUDA_RESULT_INVALID_RESOURCE_CONFIGURATION, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
#endif
#if CUDA_VERSION >= 12050
SAME_VALUE(CUDA_SM_SPLIT_IGNORE_COSCHEDULING, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
SAME_VALUE(CUDA_SM_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
           CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
#endif
#if CUDA_VERSION >= 13000
_Static_assert(offsetof(struct cuda_device_resource, of.sm.minimum_partition_size) ==
                       offsetof(CUdevResource, sm.minSmPartitionSize) &&
                   offsetof(struct cuda_device_resource, of.sm.coscheduled_alignment) ==
                       offsetof(CUdevResource, sm.smCoscheduledAlignment),
               "partition size and alignment");
#endif
#if CUDA_VERSION >= 13010
#define SAME_PLACE(ours, theirs)                                                                   \
    _Static_assert(offsetof(struct cuda_sm_group, ours) ==                                         \
                       offsetof(CU_DEV_SM_RESOURCE_GROUP_PARAMS, theirs),                          \
                   #theirs)
_Static_assert(sizeof(struct cuda_sm_group) == sizeof(CU_DEV_SM_RESOURCE_GROUP_PARAMS) &&
                   sizeof(struct cuda_sm_group) == 64,
               "CU_DEV_SM_RESOURCE_GROUP_PARAMS");
SAME_PLACE(sm_count, smCount);
SAME_PLACE(coscheduled_sm_count, coscheduledSmCount);
SAME_PLACE(preferred_coscheduled_sm_count, preferredCoscheduledSmCount);
SAME_PLACE(flags, flags);
_Static_assert(offsetof(struct cuda_device_resource, of.sm.flags) ==
                       offsetof(CUdevResource, sm.flags) &&
                   offsetof(struct cuda_device_resource, next) ==
                       offsetof(CUdevResource, nextResource),
               "flags and next");
SAME_VALUE(CUDA_SM_GROUP_BACKFILL, CU_DEV_SM_RESOURCE_GROUP_BACKFILL);
#endif
#if CUDA_VERSION >= 13040
SAME_PLACE(locality_domain, localityDomainId);
_Static_assert(offsetof(struct cuda_device_resource, of.sm.locality_domain) ==
                   offsetof(CUdevResource, sm.localityDomainId),
               "localityDomainId");
SAME_VALUE(CUDA_SM_GROUP_LOCALITY_DOMAIN, CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID);
SAME_VALUE(CUDA_DEVICE_LOCALITY_DOMAIN_COUNT, CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT);
SAME_VALUE(CUDA_DEVICE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT,
           CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT);
#endif

/* The functions that the library asks the driver for exist in that version, by the newest headers
 * that every later one contains. */
#if CUDA_VERSION >= 13010
#define DRIVER(member, symbol, version, parameters)                                                \
    _Static_assert(sizeof(PFN_##member##_v##version) == sizeof(void *), symbol);
#include "cuda/driver.def"
#undef DRIVER
#endif
