/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_RECIPE_H
#define CUDAPOLICY_DECIDE_RECIPE_H

/*
 * Launches decided in advance: the outcome of a resolution for one kernel and one kind of launch,
 * as far as it does not depend on the launch's own attributes and grid; and what each attribute of
 * its own changes about it. What a recipe does not cover is settled in full (settle.c), and so is
 * everything while observing.
 *
 * Recipes are immutable and never freed; a kernel has a few.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cuda/interface.h"
#include "decide/cluster.h"
#include "decide/decide.h"
#include "decide/kernel.h"
#include "decide/settle.h"

/* The kind of launch. */
enum decide_condition {
    DECIDE_CONDITION_GRAPH = 1,       /* capturing, or a node */
    DECIDE_CONDITION_RUNTIME = 2,     /* DECIDE_LAYER_RUNTIME */
    DECIDE_CONDITION_COOPERATIVE = 4, /* by cuLaunchCooperativeKernel */
};

/* What becomes of a setting where the launch has the attribute itself. */
enum decide_own_action {
    DECIDE_OWN_REPLACE,         /* by the rule's value */
    DECIDE_OWN_KEEP,            /* it stays */
    DECIDE_OWN_REMOVE,          /* taken away */
    DECIDE_OWN_REMOVE_NON_ZERO, /* taken away unless it is 0 */
};

struct decide_recipe {
    struct decide_prepared prepared; /* first: the address of one is the address of the other */

    /* The key. */
    const struct decide_resolution *resolution;
    const struct decide_device_class *device; /* NULL where no setting depends on it */
    uint32_t condition;
    uint32_t refused; /* struct decide_variant.refused */

    uint32_t watch;   /* 1 << id: attributes of the launch's own that change the outcome, */
    uint32_t general; /* and those with which the launch is settled in full */
    uint32_t set;     /* 1 << enum policy_setting: to be appended */
    /* Attributes that a rule leaves as they are where the program set them on the stream: the
     * recipe is for streams where it did not. */
    uint32_t stream_keeps;
    uint8_t count; /* of attributes to append */
    bool careful;  /* cluster, or stream_keeps */
    bool cluster;  /* among what is set is a cluster, whose shape and grid are to be checked: */
    uint64_t cluster_words[2]; /* of the shape's key */
    uint32_t cluster_x, cluster_y, cluster_z;
    uint8_t setting_of[32]; /* by attribute id in watch */
    struct {
        uint8_t action; /* enum decide_own_action */
        /* Turn the results below into those with the attribute: our value, or another one. */
        uint64_t same[2], other[2];
        const struct cuda_launch_attribute *ours;
    } own[POLICY_SETTING_COUNT];

    /* Without attributes of its own. */
    const struct decide_cell *cell;
    uint32_t from_stream;
    uint32_t detail;
    union decide_results results;

    const struct decide_recipe *next;
    uint8_t append_setting[DECIDE_ATTRIBUTE_LIMIT]; /* POLICY_SETTING_COUNT: the cooperative flag */
    struct cuda_launch_attribute append[];
};

/* The recipe for the case: variant, resolution, device and launch are filled in. Makes it when
 * there is none yet; NULL where the case has none. Launch path: locks when it makes one. */
const struct decide_recipe *decide_recipe_of(const struct decide_case *at);

/* Follows the recipe; false: settle the launch in full. serial: of the function. stream_keeps has
 * been looked at. Launch path. */
bool decide_recipe_follow(const struct decide_recipe *recipe, struct decide_variant *variant,
                          uint64_t serial, const struct decide_launch *launch,
                          struct decide_verdict *verdict);

/* Follows the recipe, else calls decide_launch_in_full. Launch path. */
void decide_recipe_launch(const struct decide_recipe *recipe, struct decide_variant *variant,
                          uint64_t serial, const struct decide_launch *launch,
                          struct decide_verdict *verdict);

/* What the selectors grid_blocks, block_threads, shared_memory and arm look at. The arm lies above
 * the threads, of which no launch has 2^24 in a block. */
static inline void decide_recipe_shape(const struct decide_variant *variant,
                                       const CUlaunchConfig *config, uint64_t arm, uint64_t *blocks,
                                       uint64_t *threads_and_memory)
{
    *blocks =
        variant->by_shape & ((uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ);
    *threads_and_memory =
        (variant->by_shape &
         ((uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ << 32 |
          config->sharedMemBytes)) ^
        arm << 56;
}

static inline unsigned decide_recipe_slot(uint64_t blocks, uint64_t threads_and_memory)
{
    return (blocks ^ threads_and_memory >> 37 ^ threads_and_memory >> 56) % DECIDE_SHAPED_SLOTS;
}

/* Keeps the recipe as that of launches of this shape in this arm, if nothing else about a launch
 * has to be looked at to see that it is the right one. Launch path. */
void decide_recipe_keep_shaped(const struct decide_recipe *recipe, struct decide_variant *variant,
                               const CUlaunchConfig *config, int arm);

/* The recipe kept for launches of this shape in the present arm; NULL: none. Launch path. */
static inline const struct decide_recipe *decide_recipe_shaped(const struct decide_variant *variant,
                                                               const CUlaunchConfig *config)
{
    const uint64_t arm = __atomic_load_n(&report_control_now()->part.arm, __ATOMIC_RELAXED);
    uint64_t blocks, threads_and_memory;
    decide_recipe_shape(variant, config, arm, &blocks, &threads_and_memory);
    const struct decide_shaped *slot =
        &variant->shaped[decide_recipe_slot(blocks, threads_and_memory)];
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);
    bool same =
        atomic_load_explicit(&slot->blocks, memory_order_acquire) == blocks &&
        atomic_load_explicit(&slot->threads_and_memory, memory_order_acquire) == threads_and_memory;
    const struct decide_recipe *recipe = atomic_load_explicit(&slot->recipe, memory_order_acquire);
    if (!same || !recipe || (sequence & 1) ||
        atomic_load_explicit(&slot->sequence, memory_order_acquire) != sequence ||
        recipe->refused != atomic_load_explicit(&variant->refused, memory_order_relaxed))
        return NULL;
    return recipe;
}

/* Writes what remains of the verdict of a changed launch. */
static inline void
decide_recipe_finish(const struct decide_recipe *recipe, const struct decide_cell *cell,
                     struct decide_variant *variant, const struct decide_launch *launch,
                     struct decide_verdict *verdict, const struct cuda_launch_attribute *attributes,
                     unsigned count)
{
    /* cuLaunchKernelEx does not take them as const, but writes only into output attributes, of
     * which there is none here. */
    union {
        const struct cuda_launch_attribute *ours;
        CUlaunchAttribute *theirs;
    } pointer = {.ours = attributes};
    verdict->config = *launch->config;
    /* For nodes and captures the array is where the graph's half of the engine looks for it. */
    if (verdict->kind != REPORT_LAUNCH_EAGER && attributes != verdict->attributes) {
        memcpy(verdict->attributes, attributes, count * sizeof *attributes);
        pointer.ours = verdict->attributes;
    }
    verdict->config.attrs = pointer.theirs;
    verdict->config.numAttrs = count;
    verdict->output_index[0] = -1;
    verdict->move.partition = NULL;
    verdict->internal.variant = variant;
    verdict->internal.cell = cell;
    verdict->internal.remember = false; /* a cluster was accepted before */
    verdict->internal.has_shapes = recipe->cluster;
    if (recipe->cluster)
        verdict->internal.shapes[DECIDE_SHAPE_OF_PREFERRED] =
            verdict->internal.shapes[DECIDE_SHAPE_OF_PLACE] = NULL;
}

/* Makes the lock anew. No other thread may exist. */
void decide_recipe_start(void);

static inline uint32_t decide_recipe_condition(const struct decide_launch *launch, bool in_graph)
{
    return (uint32_t)in_graph | (uint32_t)(launch->layer == DECIDE_LAYER_RUNTIME) << 1 |
           (uint32_t)launch->cooperative << 2;
}

#endif
