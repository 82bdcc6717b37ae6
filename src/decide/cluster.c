/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/cluster.h"

#include <string.h>

#include "cuda/driver.h"
#include "cuda/interface.h"
#include "decide/function.h"

enum {
    PORTABLE_CLUSTER_SIZE = 8, /* guaranteed on every device with clusters; cuda.h, attribute 14 */
    /* CUfunction_attribute; since CUDA 11.8. */
    ATTRIBUTE_MUST_BE_SET = 10,
    ATTRIBUTE_REQUIRED_WIDTH = 11,
    ATTRIBUTE_NON_PORTABLE = 14,
};

static struct handle_map shapes = HANDLE_MAP_INITIALISER(struct decide_shape);

void decide_cluster_start(void)
{
    handle_map_after_fork(&shapes);
}

/* ---- Keys ---------------------------------------------------------------------------------------
 */

struct key {
    uint64_t words[DECIDE_SHAPE_KEY_WORDS];
};

/* A partition that was made anew is another one. */
static inline uint64_t word_partition(const struct place_partition *partition)
{
    return partition ? (uint64_t)atomic_load_explicit(&partition->generation, memory_order_relaxed)
                               << 32 |
                           (uint32_t)(partition->device << 8) | (partition->index + 1u)
                     : 0;
}

static inline struct key key_of(const struct decide_cluster_question *question)
{
    const CUlaunchConfig *config = question->config;
    return (struct key){
        .words = {
            question->serial,
            (uint64_t)config->blockDimX << 32 | config->blockDimY,
            (uint64_t)config->blockDimZ << 32 | config->sharedMemBytes,
            decide_shape_word_cluster(question->x, question->y),
            decide_shape_word_device(question->z, question->purpose, question->device),
            word_partition(question->partition),
        }};
}

static uint64_t hash_of(const struct key *key)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < DECIDE_SHAPE_KEY_WORDS; i++) {
        hash = (hash ^ key->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    /* Not one of the two handles that cannot be keys. */
    return (hash | 2) & ~UINT64_C(1);
}

static inline bool has_key(const struct decide_shape *shape, const struct key *key)
{
    for (unsigned i = 0; i < DECIDE_SHAPE_KEY_WORDS; i++)
        if (atomic_load_explicit(&shape->key[i], memory_order_acquire) != key->words[i])
            return false;
    return true;
}

static struct decide_shape *find(const struct key *key, uint32_t *use)
{
    struct decide_shape *shape = handle_map_find(&shapes, hash_of(key));
    if (!shape)
        return NULL;
    *use = handle_entry_use(shape);
    return has_key(shape, key) ? shape : NULL;
}

/* ---- Asking the driver ----------------------------------------------------------------------- */

struct facts {
    enum report_reason reason;
    uint64_t blocks_before, blocks_with;
    uint32_t required[3];
};

static bool function_attribute(CUfunction function, int attribute, uint32_t *value)
{
    int answer = 0;
    if (!cuda_driver.cuFuncGetAttribute ||
        cuda_driver.cuFuncGetAttribute(&answer, (CUfunction_attribute)attribute, function) !=
            CUDA_SUCCESS)
        return false;
    *value = (uint32_t)answer;
    return true;
}

/* The launch's configuration with the cluster as its only attribute. The grid is one cluster, as
 * the occupancy of a shape does not depend on it, and the launch's own may not be divisible. */
static CUlaunchConfig one_cluster(const struct decide_cluster_question *question,
                                  const uint32_t cluster[3],
                                  struct cuda_launch_attribute *attribute)
{
    CUlaunchConfig config = *question->config;
    memset(attribute, 0, sizeof *attribute);
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.cluster_dim.x = config.gridDimX = cluster[0];
    attribute->value.cluster_dim.y = config.gridDimY = cluster[1];
    attribute->value.cluster_dim.z = config.gridDimZ = cluster[2];
    config.attrs = (CUlaunchAttribute *)(void *)attribute;
    config.numAttrs = 1;
    if (question->partition)
        config.hStream = question->partition->probe;
    return config;
}

static enum report_reason ask_blocks(const struct decide_cluster_question *question,
                                     CUfunction function, uint64_t *blocks_of_a_processor)
{
    const CUlaunchConfig *config = question->config;
    uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    int blocks = 0;
    if (!cuda_driver.cuOccupancyMaxActiveBlocksPerMultiprocessor || !question->device ||
        question->device->processors < 0 || threads > INT32_MAX ||
        cuda_driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, function, (int)threads, config->sharedMemBytes) != CUDA_SUCCESS)
        return REPORT_REASON_QUERY_FAILED;
    *blocks_of_a_processor = (uint64_t)blocks;
    return REPORT_REASON_NONE;
}

static enum report_reason ask_occupancy(const struct decide_cluster_question *question,
                                        CUfunction function, struct facts *facts)
{
    struct cuda_launch_attribute attribute;
    const uint32_t cluster[3] = {question->x, question->y, question->z};
    CUlaunchConfig config = one_cluster(question, cluster, &attribute);
    uint64_t size = (uint64_t)question->x * question->y * question->z, blocks;
    int largest = 0, clusters = 0;
    if (!cuda_driver.cuOccupancyMaxPotentialClusterSize ||
        !cuda_driver.cuOccupancyMaxActiveClusters)
        return REPORT_REASON_QUERY_FAILED;
    CUresult result = cuda_driver.cuOccupancyMaxPotentialClusterSize(&largest, function, &config);
    if (result != CUDA_SUCCESS)
        return REPORT_REASON_QUERY_FAILED;
    if ((uint64_t)largest < size)
        return REPORT_REASON_CLUSTER_TOO_LARGE;
    result = cuda_driver.cuOccupancyMaxActiveClusters(&clusters, function, &config);
    if ((int)result == CUDA_RESULT_INVALID_CLUSTER_SIZE)
        return REPORT_REASON_CLUSTER_TOO_LARGE;
    if (result != CUDA_SUCCESS)
        return REPORT_REASON_QUERY_FAILED;
    if (clusters < 1)
        return REPORT_REASON_NO_CLUSTER_FITS;
    if (ask_blocks(question, function, &blocks) != REPORT_REASON_NONE)
        return REPORT_REASON_QUERY_FAILED;
    facts->blocks_before = blocks * (uint64_t)question->device->processors;
    facts->blocks_with = (uint64_t)clusters * size;
    return REPORT_REASON_NONE;
}

/* How many blocks run at once on the whole device, and how many where the launch is to go. */
static enum report_reason ask_placed(const struct decide_cluster_question *question,
                                     CUfunction function, struct facts *facts)
{
    struct cuda_launch_attribute attribute;
    uint32_t cluster[3] = {question->x, question->y, question->z};
    uint64_t blocks;
    int before = 0, with = 0;
    if (!cluster[0])
        memcpy(cluster, facts->required, sizeof cluster);
    if (!cluster[0]) {
        if (ask_blocks(question, function, &blocks) != REPORT_REASON_NONE)
            return REPORT_REASON_QUERY_FAILED;
        facts->blocks_before = blocks * (uint64_t)question->device->processors;
        facts->blocks_with = blocks * question->partition->sms;
        return REPORT_REASON_NONE;
    }
    CUlaunchConfig config = one_cluster(question, cluster, &attribute);
    if (!cuda_driver.cuOccupancyMaxActiveClusters)
        return REPORT_REASON_QUERY_FAILED;
    CUresult result = cuda_driver.cuOccupancyMaxActiveClusters(&with, function, &config);
    if ((int)result == CUDA_RESULT_INVALID_CLUSTER_SIZE || (result == CUDA_SUCCESS && with < 1))
        return REPORT_REASON_NO_CLUSTER_FITS;
    config.hStream = NULL;
    if (result != CUDA_SUCCESS ||
        cuda_driver.cuOccupancyMaxActiveClusters(&before, function, &config) != CUDA_SUCCESS)
        return REPORT_REASON_QUERY_FAILED;
    blocks = (uint64_t)cluster[0] * cluster[1] * cluster[2];
    facts->blocks_before = (uint64_t)before * blocks;
    facts->blocks_with = (uint64_t)with * blocks;
    return REPORT_REASON_NONE;
}

static enum report_reason ask_function(const struct decide_cluster_question *question,
                                       struct facts *facts)
{
    uint32_t must_be_set = 0, non_portable = 0;
    CUfunction function = decide_function_to_ask(question->function);
    if (!function)
        return REPORT_REASON_FUNCTION_UNKNOWN;
    if (!function_attribute(function, ATTRIBUTE_MUST_BE_SET, &must_be_set) ||
        !function_attribute(function, ATTRIBUTE_NON_PORTABLE, &non_portable))
        return REPORT_REASON_QUERY_FAILED;
    for (int i = 0; i < 3; i++)
        if (!function_attribute(function, ATTRIBUTE_REQUIRED_WIDTH + i, &facts->required[i]))
            return REPORT_REASON_QUERY_FAILED;
    if (question->purpose == DECIDE_SHAPE_PREFERRED)
        return REPORT_REASON_NONE;
    if (question->purpose == DECIDE_SHAPE_PLACED)
        return ask_placed(question, function, facts);
    if (must_be_set || facts->required[0])
        return REPORT_REASON_COMPILE_TIME_CLUSTER;
    if (question->purpose == DECIDE_SHAPE_REMOVAL)
        return REPORT_REASON_NONE;
    if ((uint64_t)question->x * question->y * question->z > PORTABLE_CLUSTER_SIZE && !non_portable)
        return REPORT_REASON_CLUSTER_TOO_LARGE;
    return ask_occupancy(question, function, facts);
}

/* ---- Keeping --------------------------------------------------------------------------------- */

static uint64_t serial_of(const struct decide_shape *shape)
{
    return atomic_load_explicit(&shape->key[0], memory_order_relaxed);
}

/* Locked. Makes room when the function has its share of shapes already. */
static void limit(uint64_t serial)
{
    unsigned count = 0;
    struct decide_shape *shape, *victim = NULL;
    for (size_t i = 0; (shape = handle_map_next(&shapes, &i));)
        if (serial_of(shape) == serial) {
            victim = shape;
            count++;
        }
    if (count >= DECIDE_SHAPES_OF_A_FUNCTION)
        handle_map_remove(&shapes,
                          atomic_load_explicit(&victim->base.handle, memory_order_relaxed));
}

static struct decide_shape *keep(const struct decide_cluster_question *question,
                                 const struct key *key, const struct facts *facts, uint32_t *use)
{
    if (!question->serial || !decide_function_keeps_shapes(question->function, question->serial))
        return NULL;
    handle_map_lock(&shapes);
    struct decide_shape *shape = find(key, use);
    if (!shape) {
        limit(question->serial);
        shape = handle_map_new(&shapes);
        if (shape) {
            for (unsigned i = 0; i < DECIDE_SHAPE_KEY_WORDS; i++)
                atomic_store_explicit(&shape->key[i], key->words[i], memory_order_release);
            atomic_store_explicit(&shape->reason, facts->reason, memory_order_release);
            atomic_store_explicit(&shape->blocks_before, facts->blocks_before,
                                  memory_order_release);
            atomic_store_explicit(&shape->blocks_with, facts->blocks_with, memory_order_release);
            for (unsigned i = 0; i < 3; i++)
                atomic_store_explicit(&shape->required[i], facts->required[i],
                                      memory_order_release);
            if (!handle_map_insert(&shapes, shape, hash_of(key)))
                shape = NULL;
            else
                *use = handle_entry_use(shape);
        }
    }
    handle_map_unlock(&shapes);
    return shape;
}

void decide_shapes_drop(uint64_t serial)
{
    struct decide_shape *shape;
    handle_map_lock(&shapes);
    for (size_t i = 0; (shape = handle_map_next(&shapes, &i));)
        if (serial_of(shape) == serial)
            handle_map_remove(&shapes,
                              atomic_load_explicit(&shape->base.handle, memory_order_relaxed));
    handle_map_unlock(&shapes);
}

size_t decide_shapes_count(void)
{
    handle_map_lock(&shapes);
    size_t count = handle_map_count(&shapes);
    handle_map_unlock(&shapes);
    return count;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static bool some_context_is_current(void)
{
    CUcontext context = NULL;
    return !cuda_driver.cuCtxGetCurrent || cuda_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
           context;
}

/* The shape with its facts, asked now when it is new. */
static struct decide_shape *look_up(const struct decide_cluster_question *question,
                                    struct facts *facts, uint32_t *use)
{
    struct key key = key_of(question);
    struct decide_shape *shape = find(&key, use);
    if (!shape) {
        memset(facts, 0, sizeof *facts);
        bool unasked = question->in_graph && question->purpose != DECIDE_SHAPE_PLACED;
        facts->reason = unasked ? REPORT_REASON_CAPTURE_UNPROVEN : ask_function(question, facts);
        /* Without a current context there is no function of a kernel; later there may be one. */
        unasked |= facts->reason == REPORT_REASON_FUNCTION_UNKNOWN && !some_context_is_current();
        return unasked ? NULL : keep(question, &key, facts, use);
    }
    facts->reason = atomic_load_explicit(&shape->reason, memory_order_acquire);
    facts->blocks_before = atomic_load_explicit(&shape->blocks_before, memory_order_acquire);
    facts->blocks_with = atomic_load_explicit(&shape->blocks_with, memory_order_acquire);
    for (unsigned i = 0; i < 3; i++)
        facts->required[i] =
            (uint32_t)atomic_load_explicit(&shape->required[i], memory_order_acquire);
    return shape;
}

static bool divides(const struct decide_cluster_question *question)
{
    const CUlaunchConfig *config = question->config;
    return config->gridDimX % question->x == 0 && config->gridDimY % question->y == 0 &&
           config->gridDimZ % question->z == 0;
}

/* Kernels whose whole grid runs at once may wait for each other's blocks: it must stay so. */
static enum report_reason check_residency(const struct decide_cluster_question *question,
                                          const struct facts *facts)
{
    const CUlaunchConfig *config = question->config;
    uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    if (blocks <= facts->blocks_with)
        return REPORT_REASON_NONE;
    if (question->cooperative)
        return REPORT_REASON_COOPERATIVE_CAPACITY;
    if (question->unsafe_residency)
        return REPORT_REASON_NONE;
    return blocks <= facts->blocks_before ? REPORT_REASON_NOT_CO_RESIDENT : REPORT_REASON_NONE;
}

static enum report_reason check_grid(const struct decide_cluster_question *question,
                                     const struct facts *facts)
{
    if (question->purpose == DECIDE_SHAPE_REMOVAL)
        return REPORT_REASON_NONE;
    if (question->purpose == DECIDE_SHAPE_PLACED)
        return check_residency(question, facts);
    if (!divides(question))
        return REPORT_REASON_GRID_NOT_DIVISIBLE;
    return question->purpose == DECIDE_SHAPE_CLUSTER ? check_residency(question, facts)
                                                     : REPORT_REASON_NONE;
}

static enum decide_shape_state state_of(struct decide_shape *shape, uint32_t use)
{
    uint64_t state = shape ? atomic_load_explicit(&shape->state, memory_order_acquire) : 0;
    return state >> 32 == use ? (enum decide_shape_state)(uint32_t)state : DECIDE_SHAPE_ASKED;
}

static void note(struct decide_shape *shape, uint32_t use, enum decide_shape_state state)
{
    if (!shape)
        return;
    uint64_t now = atomic_load_explicit(&shape->state, memory_order_acquire);
    if (handle_entry_use(shape) == use)
        atomic_compare_exchange_strong(&shape->state, &now, (uint64_t)use << 32 | state);
}

/* Without a cluster, nothing but too many blocks for a cooperative launch can be refused. */
static bool needs_proof(const struct decide_cluster_question *question, const struct facts *facts)
{
    return question->in_graph && (question->purpose != DECIDE_SHAPE_PLACED || question->x != 0 ||
                                  facts->required[0] != 0);
}

static enum report_reason check_state(const struct decide_cluster_question *question,
                                      const struct facts *facts,
                                      struct decide_cluster_answer *answer)
{
    enum decide_shape_state state = state_of(answer->shape, answer->use);
    if (state == DECIDE_SHAPE_REFUSED) {
        answer->result = atomic_load_explicit(&answer->shape->result, memory_order_acquire);
        return REPORT_REASON_REFUSED_BY_DRIVER;
    }
    if (needs_proof(question, facts) && state != DECIDE_SHAPE_ACCEPTED &&
        !(question->observe && state == DECIDE_SHAPE_OBSERVED))
        return REPORT_REASON_CAPTURE_UNPROVEN;
    return REPORT_REASON_NONE;
}

void decide_cluster_ask(const struct decide_cluster_question *question,
                        struct decide_cluster_answer *answer)
{
    struct facts facts;
    *answer = (struct decide_cluster_answer){0};
    answer->shape = look_up(question, &facts, &answer->use);
    answer->reason = facts.reason;
    if (!answer->reason)
        answer->reason = check_grid(question, &facts);
    if (!answer->reason)
        answer->reason = check_state(question, &facts, answer);
    /* The shape may have become another one's while it was read: then nothing is known of it. */
    if (answer->shape && handle_entry_use(answer->shape) != answer->use) {
        answer->shape = NULL;
        answer->reason = REPORT_REASON_QUERY_FAILED;
    }
    if (!answer->reason && question->observe &&
        state_of(answer->shape, answer->use) == DECIDE_SHAPE_ASKED)
        note(answer->shape, answer->use, DECIDE_SHAPE_OBSERVED);
}

bool decide_cluster_required(const struct decide_cluster_question *question, uint32_t required[3])
{
    struct facts facts;
    uint32_t use = 0;
    const struct decide_shape *shape = look_up(question, &facts, &use);
    memcpy(required, facts.required, sizeof facts.required);
    return required[0] != 0 && (!shape || handle_entry_use(shape) == use);
}

/* ---- What became of launches ----------------------------------------------------------------- */

void decide_shape_accepted(struct decide_shape *shape, uint32_t use)
{
    if (state_of(shape, use) != DECIDE_SHAPE_ACCEPTED)
        note(shape, use, DECIDE_SHAPE_ACCEPTED);
}

void decide_shape_refused(struct decide_shape *shape, uint32_t use, uint32_t result)
{
    if (shape && handle_entry_use(shape) == use)
        atomic_store_explicit(&shape->result, result, memory_order_release);
    note(shape, use, DECIDE_SHAPE_REFUSED);
}

void decide_shape_not_refused(struct decide_shape *shape, uint32_t use)
{
    note(shape, use, DECIDE_SHAPE_ASKED);
}
