/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver accepts as a kernel launch, and with which error it refuses the rest. */
#include "driver.h"
#include <string.h>

/* What the attributes ask for. */
struct demand {
    const CUlaunchAttributeValue *cluster;
    const CUlaunchAttributeValue *preferred;
    bool cooperative;
};

static void demand_add(struct demand *demand, unsigned int id, const CUlaunchAttributeValue *value)
{
    /* Measured: of the same id twice in one launch the last one wins. */
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        demand->cluster = value;
    else if (id == ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
        demand->preferred = value;
    else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        demand->cooperative = value->cooperative != 0;
}

static CUresult check_attributes(const struct launch *launch, struct demand *demand)
{
    if (launch->attribute_count != 0 && launch->attributes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < launch->attribute_count; i++) {
        CUlaunchAttributeValue *value = &launch->attributes[i].value;
        unsigned int id = (unsigned int)launch->attributes[i].id;
        /* Measured: an unknown id is an invalid value. Documented: the synchronization policy is
         * for streams alone. */
        if (!attribute_known(id) || id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
            return CUDA_ERROR_INVALID_VALUE;
        CUlaunchAttributeValue copy = *value; /* a clamped priority is not written back */
        CUresult result = attribute_check(id, &copy);
        if (result != CUDA_SUCCESS)
            return result;
        demand_add(demand, id, value);
    }
    return CUDA_SUCCESS;
}

static bool divides(const unsigned int *cluster, const unsigned int *grid)
{
    return cluster[0] != 0 && cluster[1] != 0 && cluster[2] != 0 && grid[0] % cluster[0] == 0 &&
           grid[1] % cluster[1] == 0 && grid[2] % cluster[2] == 0;
}

static void required_cluster(const struct launchable *what, int device, unsigned int *cluster)
{
    for (int i = 0; i < 3; i++)
        cluster[i] = (unsigned int)launchable_attribute(
            what, device, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i);
}

/* The cluster of this launch; all zero without one. */
static CUresult find_cluster(const struct launch *launch, int device, const struct demand *demand,
                             unsigned int *cluster)
{
    required_cluster(&launch->what, device, cluster);
    if (demand->cluster != NULL) {
        unsigned int asked[3] = {demand->cluster->clusterDim.x, demand->cluster->clusterDim.y,
                                 demand->cluster->clusterDim.z};
        /* Measured: another size than the kernel was compiled for is refused, the same is not. */
        if (cluster[0] != 0 && memcmp(cluster, asked, sizeof(asked)) != 0)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        memcpy(cluster, asked, sizeof(asked));
        if (asked[0] == 0 || asked[1] == 0 || asked[2] == 0)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    /* Documented at the attribute: such a kernel must be given a cluster size. */
    if (cluster[0] == 0 && launchable_attribute(&launch->what, device,
                                                CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}

static CUresult check_preferred(const struct launch *launch, const unsigned int *cluster,
                                const CUlaunchAttributeValue *value)
{
    /* Both structures lie alike; older headers lack the second name. */
    unsigned int preferred[3] = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
    /* Measured: refused on compute capability 9.0. */
    if (configuration.capability_major < 10)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    /* Documented: divides the grid, is a multiple of the cluster, and equal to it in z. */
    if (cluster[0] == 0 || !divides(preferred, launch->grid) || preferred[2] != cluster[2] ||
        preferred[0] % cluster[0] != 0 || preferred[1] % cluster[1] != 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}

static CUresult check_cluster(const struct launch *launch, CUcontext context,
                              const struct demand *demand, unsigned int *cluster)
{
    CUresult result = find_cluster(launch, context->device, demand, cluster);
    if (result != CUDA_SUCCESS)
        return result;
    if (demand->preferred != NULL) {
        result = check_preferred(launch, cluster, demand->preferred);
        if (result != CUDA_SUCCESS)
            return result;
    }
    if (cluster[0] == 0)
        return CUDA_SUCCESS;
    unsigned int size = cluster[0] * cluster[1] * cluster[2];
    if (size > 1 && configuration.capability_major < 9)
        return CUDA_ERROR_NOT_SUPPORTED; /* assumed: no such device was measured */
    /* Measured: an indivisible grid is refused. */
    if (!divides(cluster, launch->grid))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    /* Measured: more than 8 blocks need the function's permission. */
    bool wide = launchable_attribute(&launch->what, context->device,
                                     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0;
    if (size > (wide ? (unsigned int)configuration.cluster_max : 8))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}

static CUresult check_shape(const struct launch *launch, int device)
{
    size_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->grid[i] == 0 || launch->block[i] == 0)
            return CUDA_ERROR_INVALID_VALUE;
        threads *= launch->block[i];
    }
    /* Documented: limits of the function and of the device. */
    const struct launchable *what = &launch->what;
    int most = launchable_attribute(what, device, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    int shared =
        launchable_attribute(what, device, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    if (threads > (size_t)most || launch->shared > (unsigned int)shared)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->parameters != NULL && launch->extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult check_residency(const struct launch *launch, CUcontext context, bool cooperative,
                                const unsigned int *cluster)
{
    unsigned int threads = launch->block[0] * launch->block[1] * launch->block[2];
    unsigned int blocks = occupancy_blocks(&launch->what, context->device, threads, launch->shared);
    /* Documented: a block that does not fit on an SM. */
    if (blocks == 0)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    size_t resident = occupancy_resident(&launch->what, context, threads, launch->shared);
    if (cluster[0] != 0) {
        unsigned int size = cluster[0] * cluster[1] * cluster[2];
        resident = (size_t)size *
                   occupancy_clusters(&launch->what, context, threads, launch->shared, size);
    }
    /* Measured on partitions: a cluster that fits nowhere. */
    if (resident == 0)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    /* Documented: all blocks of a cooperative launch must be resident together; measured, with a
     * cluster and on a partition, too. */
    size_t grid = (size_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (cooperative && grid > resident)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

static void collect(const struct launch *launch, const struct attribute_set *base,
                    const unsigned int *cluster, bool cooperative, struct attribute_set *result)
{
    CUlaunchAttributeValue value;
    memset(result, 0, sizeof(*result));
    /* Measured: what the launch says beats what its stream says, attribute by attribute. */
    if (base != NULL)
        attribute_merge(result, base);
    for (unsigned int i = 0; i < launch->attribute_count; i++) {
        unsigned int id = (unsigned int)launch->attributes[i].id;
        value = launch->attributes[i].value;
        attribute_check(id, &value);
        if (id != CU_LAUNCH_ATTRIBUTE_IGNORE)
            attribute_put(result, id, &value);
    }
    memset(&value, 0, sizeof(value));
    if (cluster[0] != 0) {
        value.clusterDim.x = cluster[0];
        value.clusterDim.y = cluster[1];
        value.clusterDim.z = cluster[2];
        attribute_put(result, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
    }
    if (cooperative) {
        memset(&value, 0, sizeof(value));
        value.cooperative = 1;
        attribute_put(result, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
    }
}

CUresult launch_check(const struct launch *launch, CUcontext context,
                      const struct attribute_set *base, struct attribute_set *result)
{
    struct demand demand = {NULL, NULL, false};
    unsigned int cluster[3];
    CUresult status = check_shape(launch, context->device);
    if (base != NULL)
        for (unsigned int id = 0; id < ATTRIBUTE_IDS; id++)
            if (attribute_has(base, id))
                demand_add(&demand, id, &base->value[id]);
    if (status == CUDA_SUCCESS)
        status = check_attributes(launch, &demand);
    if (status == CUDA_SUCCESS)
        status = check_cluster(launch, context, &demand, cluster);
    bool cooperative = launch->cooperative || demand.cooperative;
    if (status == CUDA_SUCCESS)
        status = check_residency(launch, context, cooperative, cluster);
    if (status == CUDA_SUCCESS && result != NULL)
        collect(launch, base, cluster, cooperative, result);
    return status;
}
