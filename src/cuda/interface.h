/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_CUDA_INTERFACE_H
#define CUDAPOLICY_CUDA_INTERFACE_H

/*
 * Values and layouts of CUDA's binary interface that the oldest supported headers (12.0) do not
 * have. interface.c asserts at compile time that they agree with every header that has them.
 *
 * Sources: cuda.h of CUDA 12.0 to 13.5; the value lists of the driver API reference.
 */

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* CUlaunchAttributeID; named CU_LAUNCH_ATTRIBUTE_… in cuda.h. Since: 12.8, 12.3, 12.4, 12.5, 13.0,
 * 13.2, 13.2. */
enum {
    CUDA_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
    CUDA_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
    CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
    CUDA_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
    CUDA_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
    CUDA_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE = 17,
    CUDA_ATTRIBUTE_SHARED_MEMORY_MODE = 18,
};

/* CUlaunchAttribute as a whole: 72 bytes, the value at 8 (measured and asserted). Used instead of
 * the header's type so that every attribute can be written whatever the header knows. */
struct cuda_launch_attribute {
    uint32_t id;
    uint32_t padding;
    union {
        uint8_t bytes[64];
        struct {
            uint32_t x, y, z;
        } cluster_dim;
        struct {
            uint8_t default_domain, remote_domain;
        } mem_sync_domain_map;
        uint32_t
            number; /* domain, scheduling policy, carveout, nvlink, programmatic serialization */
        int32_t priority;
        struct {
            int32_t device_updatable;
            void *device_node; /* written by the driver */
        } device_updatable;
    } value;
};

/* CUlaunchConfig, 56 bytes: identical in every version since 11.8; the header's own type is used.
 */

/* CUDA_KERNEL_NODE_PARAMS_v2 (CUDA 12.0): 72 bytes. */
struct cuda_kernel_node_params {
    CUfunction function; /* or NULL and kernel */
    unsigned int grid_x, grid_y, grid_z;
    unsigned int block_x, block_y, block_z;
    unsigned int shared_memory;
    void **kernel_params;
    void **extra;
    CUkernel kernel;
    CUcontext context;
};

/* CUgraphNodeParams (CUDA 12.2): 256 bytes, type at 0, the union at 16. */
struct cuda_graph_node_params {
    uint32_t type; /* CUgraphNodeType */
    uint32_t reserved[3];
    union {
        struct cuda_kernel_node_params kernel; /* v3 is laid out as v2 */
        CUgraph child;                         /* of a child-graph node: the first member */
        struct {                               /* CUDA 12.3 */
            uint64_t handle;
            uint32_t kind, size;
            CUgraph *graphs; /* size of them, written by the driver */
        } conditional;
        uint8_t bytes[232];
    } node;
    uint64_t reserved_end;
};

/* CUgraphNodeType; named CU_GRAPH_NODE_TYPE_CONDITIONAL since 12.3. */
enum {
    CUDA_GRAPH_NODE_CONDITIONAL = 13,
};

/* CUgreenCtx and CUdevResourceDesc: pointers to what only the driver knows. CUDA 12.4. */
typedef struct cuda_green_context_state *cuda_green_context;
typedef struct cuda_resource_description_state *cuda_resource_description;

/* CUdevResource: 144 bytes in every version since 12.4; zero what is not filled in. */
struct cuda_device_resource {
    int32_t type; /* CUDA_RESOURCE_TYPE_ */
    uint8_t internal_padding[92];
    union {
        struct {
            uint32_t sm_count;
            uint32_t minimum_partition_size, coscheduled_alignment; /* 13.0 */
            uint32_t flags;                                         /* 13.1 */
            uint32_t locality_domain; /* 13.4; valid with CUDA_SM_GROUP_LOCALITY_DOMAIN */
        } sm;
        uint8_t bytes[40];
    } of;
    struct cuda_device_resource *next; /* before 13.1 inside the union's 48 bytes */
};

/* CU_DEV_SM_RESOURCE_GROUP_PARAMS (CUDA 13.1): 64 bytes. */
struct cuda_sm_group {
    uint32_t sm_count; /* in: wanted, 0: as many as there are; out: granted */
    uint32_t coscheduled_sm_count;
    uint32_t preferred_coscheduled_sm_count;
    uint32_t flags;           /* CUDA_SM_GROUP_ */
    uint32_t locality_domain; /* 13.4 */
    uint32_t reserved[11];
};

/* CUdevResourceType, CUdevSmResourceGroup_flags, CUdevSmResourceSplit_flags,
 * CUgreenCtxCreate_flags, CUdevice_attribute. Since 12.4; 13.1 and 13.4; 12.4; 12.4; 13.4. */
enum {
    CUDA_RESOURCE_TYPE_SM = 1,
    CUDA_SM_GROUP_BACKFILL = 1,
    CUDA_SM_GROUP_LOCALITY_DOMAIN = 2,
    CUDA_SM_SPLIT_IGNORE_COSCHEDULING = 1,
    CUDA_SM_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 2,
    CUDA_GREEN_CONTEXT_DEFAULT_STREAM = 1,
    CUDA_DEVICE_LOCALITY_DOMAIN_COUNT = 149,
    CUDA_DEVICE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT = 157,
};

/* CUresult values by name where the meaning matters to a fallback. */
enum {
    CUDA_RESULT_INVALID_VALUE = 1,
    CUDA_RESULT_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_RESULT_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_RESULT_NOT_SUPPORTED = 801,
    CUDA_RESULT_INVALID_CLUSTER_SIZE = 912,
    CUDA_RESULT_INVALID_RESOURCE_TYPE = 914,
    CUDA_RESULT_INVALID_RESOURCE_CONFIGURATION = 915,
};

#endif
