/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/recipe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decide/device.h"
#include "decide/launch.h"
#include "decide/setting.h"
#include "decide/stream.h"

enum {
    RECIPES_OF_A_KERNEL = 64, /* launches of further kinds are settled in full */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void decide_recipe_start(void)
{
    pthread_mutex_init(&mutex, NULL);
}

/* ---- Writing
 * ------------------------------------------------------------------------------------- */

/* After the setting's result is written. result: where the launch has another value than ours. */
static void watch(struct decide_recipe *recipe, enum policy_setting setting,
                  const struct cuda_launch_attribute *ours, enum decide_own_action action,
                  uint8_t result)
{
    unsigned id = decide_settings[setting].attribute;
    recipe->watch |= 1u << id;
    recipe->setting_of[id] = (uint8_t)setting;
    recipe->own[setting].action = (uint8_t)action;
    recipe->own[setting].ours = ours;
    union decide_results same = {.words = {0, 0}}, other = {.words = {0, 0}};
    same.of[setting] = recipe->results.of[setting] ^ DECIDE_ALREADY_SO;
    other.of[setting] = recipe->results.of[setting] ^ result;
    memcpy(recipe->own[setting].same, same.words, sizeof same.words);
    memcpy(recipe->own[setting].other, other.words, sizeof other.words);
}

static void append(struct decide_recipe *recipe, unsigned setting,
                   const struct cuda_launch_attribute *attribute)
{
    recipe->append_setting[recipe->count] = (uint8_t)setting;
    recipe->append[recipe->count++] = *attribute;
}

static void note_keep(struct decide_recipe *recipe, enum policy_setting setting,
                      const struct decide_choice *choice)
{
    if (choice->value->when_set == POLICY_WHEN_SET_KEEP && decide_settings[setting].on_streams)
        recipe->stream_keeps |= 1u << decide_settings[setting].attribute;
}

static void write_set(struct decide_recipe *recipe, struct decide_case *at,
                      enum policy_setting setting, const struct decide_choice *choice)
{
    bool keep = choice->value->when_set == POLICY_WHEN_SET_KEEP;
    enum report_reason reason = decide_settle_check(at, setting, choice);
    if (reason != REPORT_REASON_NONE) {
        recipe->results.of[setting] = DECIDE_REFUSED(reason);
        watch(recipe, setting, &choice->attribute, DECIDE_OWN_KEEP,
              keep ? DECIDE_KEPT(REPORT_REASON_OWN_VALUE) : DECIDE_REFUSED(reason));
    } else {
        recipe->results.of[setting] = DECIDE_APPLIED;
        recipe->set |= 1u << setting;
        append(recipe, setting, &choice->attribute);
        note_keep(recipe, setting, choice);
        if (keep)
            watch(recipe, setting, &choice->attribute, DECIDE_OWN_KEEP,
                  DECIDE_KEPT(REPORT_REASON_OWN_VALUE));
        else
            watch(recipe, setting, &choice->attribute, DECIDE_OWN_REPLACE, DECIDE_APPLIED);
    }
    if (setting == POLICY_SETTING_CLUSTER_DIM) {
        const union policy_value *value = &choice->value->value;
        recipe->cluster = reason == REPORT_REASON_NONE;
        recipe->cluster_x = value->cluster_dim.x;
        recipe->cluster_y = value->cluster_dim.y;
        recipe->cluster_z = value->cluster_dim.z;
        recipe->cluster_words[0] = decide_shape_word_cluster(recipe->cluster_x, recipe->cluster_y);
        recipe->cluster_words[1] =
            decide_shape_word_device(recipe->cluster_z, DECIDE_SHAPE_CLUSTER, at->device);
        recipe->general |=
            1u << CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION | 1u << CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    }
}

static void write_removal(struct decide_recipe *recipe, const struct decide_case *at,
                          enum policy_setting setting, const struct decide_choice *choice)
{
    bool serialization = setting == POLICY_SETTING_PROGRAMMATIC_SERIALIZATION;
    recipe->results.of[setting] = DECIDE_ALREADY_SO;
    watch(recipe, setting, &choice->attribute,
          serialization ? DECIDE_OWN_REMOVE_NON_ZERO : DECIDE_OWN_REMOVE, DECIDE_APPLIED);
    if (setting == POLICY_SETTING_CLUSTER_DIM ||
        (at->in_graph && !serialization && !choice->graph_nodes))
        recipe->general |= 1u << decide_settings[setting].attribute;
}

/* False: launches with this setting have no recipe. */
static bool write_kernel(struct decide_recipe *recipe, struct decide_case *at,
                         enum policy_setting setting)
{
    const struct decide_choice *choice = &at->resolution->choices[setting];
    switch (choice->value->action) {
    case POLICY_ACTION_SET:
        /* A preferred cluster depends on the cluster that the launch ends up with. */
        if (setting == POLICY_SETTING_PREFERRED_CLUSTER_DIM &&
            decide_settle_check(at, setting, choice) == REPORT_REASON_NONE)
            return false;
        write_set(recipe, at, setting, choice);
        return true;
    case POLICY_ACTION_UNSET:
        write_removal(recipe, at, setting, choice);
        return true;
    case POLICY_ACTION_LEAVE:
    case POLICY_ACTION_ABSENT:
        break;
    }
    recipe->results.of[setting] = DECIDE_LEFT;
    return true;
}

static void write_stream(struct decide_recipe *recipe, struct decide_case *at,
                         enum policy_setting setting)
{
    const struct decide_stream_setting *merged = &at->resolution->profile->settings[setting];
    const struct decide_choice *choice = &at->resolution->stream_choices[setting];
    recipe->from_stream |= 1u << setting;
    if (merged->result.outcome != REPORT_OUTCOME_APPLIED) {
        recipe->results.of[setting] = DECIDE_RESULT(merged->result.outcome, merged->result.reason);
        return;
    }
    enum report_reason reason = decide_settle_check_stream(at, setting);
    note_keep(recipe, setting, choice);
    recipe->results.of[setting] = reason ? DECIDE_REFUSED(reason) : DECIDE_APPLIED;
    watch(recipe, setting, &choice->attribute, DECIDE_OWN_KEEP,
          DECIDE_KEPT(REPORT_REASON_OWN_VALUE));
    if (reason)
        return;
    recipe->set |= 1u << setting;
    append(recipe, setting, &choice->attribute);
}

static bool write(struct decide_recipe *recipe, struct decide_case *at)
{
    static const struct cuda_launch_attribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                             .value = {.number = 1}};
    const struct decide_resolution *resolution = at->resolution;
    if ((resolution->kernel_settings & resolution->stream_settings) || resolution->places ||
        (resolution->stream_settings >> POLICY_SETTING_PARTITION & 1))
        return false;
    at->detail = 0;
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        if ((resolution->kernel_settings >> setting & 1) && !write_kernel(recipe, at, setting))
            return false;
        if (resolution->stream_settings >> setting & 1)
            write_stream(recipe, at, setting);
    }
    if (at->launch->cooperative)
        append(recipe, POLICY_SETTING_COUNT, &cooperative);
    recipe->detail = at->detail;
    recipe->careful = recipe->cluster || recipe->stream_keeps;
    /* Rare ones, which the short way would have to take special care of. */
    if (recipe->watch)
        recipe->general |= 1u << CUDA_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    if (recipe->watch && at->launch->cooperative)
        recipe->general |= 1u << CU_LAUNCH_ATTRIBUTE_COOPERATIVE | recipe->watch;
    return true;
}

static void prepare(struct decide_recipe *recipe)
{
    recipe->prepared = (struct decide_prepared){
        .attributes = recipe->append,
        .count = recipe->careful || recipe->set == 0 ? 0 : recipe->count,
        .special = recipe->watch | recipe->general,
        .count_offset =
            offsetof(struct report_shard, launches) +
            sizeof(uint64_t) *
                ((uint64_t)recipe->cell->number * REPORT_LAUNCH_KIND_COUNT + REPORT_LAUNCH_EAGER),
    };
}

static struct decide_recipe *recipe_new(const struct decide_case *at)
{
    struct decide_case scratch = *at;
    struct decide_recipe *recipe =
        calloc(1, sizeof *recipe + (POLICY_SETTING_COUNT + 1) * sizeof recipe->append[0]);
    if (!recipe)
        return NULL;
    recipe->resolution = at->resolution;
    recipe->device = at->device;
    recipe->condition = decide_recipe_condition(at->launch, at->in_graph);
    recipe->refused = atomic_load_explicit(&at->variant->refused, memory_order_relaxed);
    if (write(recipe, &scratch)) {
        recipe->cell = decide_kernel_cell(at->variant, at->resolution, &recipe->results,
                                          recipe->from_stream, recipe->detail);
        prepare(recipe);
        return recipe;
    }
    free(recipe);
    return NULL;
}

/* ---- Finding
 * ------------------------------------------------------------------------------------- */

static const struct decide_recipe *find(const struct decide_recipe *from,
                                        const struct decide_case *at)
{
    uint32_t condition = decide_recipe_condition(at->launch, at->in_graph);
    uint32_t refused = atomic_load_explicit(&at->variant->refused, memory_order_relaxed);
    while (from && (from->resolution != at->resolution || from->device != at->device ||
                    from->condition != condition || from->refused != refused))
        from = from->next;
    return from;
}

/* Nothing but what a kernel's rules ask about has to be looked at to see that the recipe is the
 * right one for a launch through the driver layer that is not captured. (Launches into default
 * streams, where their rules have settings, do not come here.) */
static bool is_plain(const struct decide_recipe *recipe)
{
    return recipe->condition == 0 && !recipe->resolution->profile &&
           (!recipe->resolution->by_device ||
            (recipe->device && recipe->device == atomic_load(&decide_device_uniform)));
}

void decide_recipe_keep_shaped(const struct decide_recipe *recipe, struct decide_variant *variant,
                               const CUlaunchConfig *config, int arm)
{
    const unsigned shape = DECIDE_NEED_SHAPE | DECIDE_NEED_CAPTURED | DECIDE_NEED_ARM;
    uint64_t blocks, threads_and_memory, threads = (uint64_t)config->blockDimX * config->blockDimY;
    if (variant->plan->needs == 0 || (variant->plan->needs & ~shape) || !is_plain(recipe) ||
        arm < 0 || variant->step || threads > UINT32_MAX || threads * config->blockDimZ >= 1u << 24)
        return;
    decide_recipe_shape(variant, config, (uint64_t)arm, &blocks, &threads_and_memory);
    struct decide_shaped *slot = &variant->shaped[decide_recipe_slot(blocks, threads_and_memory)];
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    /* Another thread is at it: then not now. */
    if ((sequence & 1) || !atomic_compare_exchange_strong(&slot->sequence, &sequence, sequence + 1))
        return;
    atomic_store_explicit(&slot->blocks, blocks, memory_order_release);
    atomic_store_explicit(&slot->threads_and_memory, threads_and_memory, memory_order_release);
    atomic_store_explicit(&slot->recipe, recipe, memory_order_release);
    atomic_store_explicit(&slot->sequence, sequence + 2, memory_order_release);
}

/* Also of a recipe that a refusal took away and that holds again. */
static void keep_plain(struct decide_variant *variant, const struct decide_recipe *recipe)
{
    if (variant->plan->needs != 0 || variant->step || !is_plain(recipe))
        return;
    /* A refusal at this moment takes it away again, before or after. */
    atomic_store(&variant->plain, recipe);
    if (atomic_load(&variant->refused) != recipe->refused)
        atomic_store(&variant->plain, NULL);
}

/* Locked. */
static void enter(struct decide_variant *variant, struct decide_recipe *recipe)
{
    recipe->next = atomic_load_explicit(&variant->recipes, memory_order_relaxed);
    atomic_store_explicit(&variant->recipes, recipe, memory_order_release);
    atomic_fetch_add_explicit(&variant->recipe_count, 1, memory_order_relaxed);
    keep_plain(variant, recipe);
}

const struct decide_recipe *decide_recipe_of(const struct decide_case *at)
{
    struct decide_variant *variant = at->variant;
    const struct decide_recipe *recipe =
        find(atomic_load_explicit(&variant->recipes, memory_order_acquire), at);
    if (recipe && !atomic_load_explicit(&variant->plain, memory_order_relaxed))
        keep_plain(variant, recipe);
    if (recipe ||
        atomic_load_explicit(&variant->recipe_count, memory_order_relaxed) >= RECIPES_OF_A_KERNEL)
        return recipe;
    struct decide_recipe *fresh = recipe_new(at);
    if (!fresh)
        return NULL;
    pthread_mutex_lock(&mutex);
    recipe = find(atomic_load_explicit(&variant->recipes, memory_order_relaxed), at);
    if (!recipe) {
        enter(variant, fresh);
        recipe = fresh;
    }
    pthread_mutex_unlock(&mutex);
    if (recipe != fresh)
        free(fresh);
    return recipe;
}

/* ---- Following
 * ----------------------------------------------------------------------------------- */

/* The shape of the launch, when it is the one seen last and the launch may have the recipe's
 * cluster, wherever it goes; NULL: settle in full. */
static inline struct decide_shape *shape_of(const struct decide_recipe *recipe,
                                            struct decide_variant *variant, uint64_t serial,
                                            const CUlaunchConfig *config, uint32_t *use)
{
    struct decide_shape *shape = atomic_load_explicit(&variant->recent_shape, memory_order_acquire);
    if (!shape || !serial)
        return NULL;
    *use = handle_entry_use(shape);
    uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    bool same =
        atomic_load_explicit(&shape->key[0], memory_order_acquire) == serial &&
        atomic_load_explicit(&shape->key[1], memory_order_acquire) ==
            ((uint64_t)config->blockDimX << 32 | config->blockDimY) &&
        atomic_load_explicit(&shape->key[2], memory_order_acquire) ==
            ((uint64_t)config->blockDimZ << 32 | config->sharedMemBytes) &&
        atomic_load_explicit(&shape->key[3], memory_order_acquire) == recipe->cluster_words[0] &&
        atomic_load_explicit(&shape->key[4], memory_order_acquire) == recipe->cluster_words[1];
    if (!same || blocks > atomic_load_explicit(&shape->blocks_with, memory_order_acquire) ||
        config->gridDimX % recipe->cluster_x || config->gridDimY % recipe->cluster_y ||
        config->gridDimZ % recipe->cluster_z ||
        atomic_load_explicit(&shape->state, memory_order_acquire) !=
            ((uint64_t)*use << 32 | DECIDE_SHAPE_ACCEPTED) ||
        handle_entry_use(shape) != *use)
        return NULL;
    return shape;
}

/* The launch while its own attributes are taken over. */
struct taking {
    struct cuda_launch_attribute *to;
    uint64_t results[2];
    uint32_t set;  /* settings still to be appended */
    uint32_t seen; /* attributes in watch */
    bool changed;
};

/* What becomes of an attribute that a setting is about. False: settle in full. */
static inline bool take_watched(const struct decide_recipe *recipe,
                                const struct cuda_launch_attribute *own, struct taking *taking)
{
    unsigned setting = recipe->setting_of[own->id];
    uint32_t bit = 1u << own->id;
    if ((recipe->general | taking->seen) & bit)
        return false;
    taking->seen |= bit;
    taking->set &= ~(1u << setting);
    const uint64_t *change = recipe->own[setting].other;
    unsigned action = recipe->own[setting].action;
    if (action >= DECIDE_OWN_REMOVE) {
        if (action == DECIDE_OWN_REMOVE || own->value.number != 0) {
            taking->results[0] ^= change[0];
            taking->results[1] ^= change[1];
            taking->changed = true;
            return true;
        }
        *taking->to++ = *own;
        return true;
    }
    const struct cuda_launch_attribute *ours = recipe->own[setting].ours;
    if (decide_setting_same(&decide_settings[setting], own, ours)) {
        change = recipe->own[setting].same;
    } else if (action == DECIDE_OWN_REPLACE) {
        own = ours;
        taking->changed = true;
    }
    taking->results[0] ^= change[0];
    taking->results[1] ^= change[1];
    *taking->to++ = *own;
    return true;
}

/* Where the launch has attributes that a setting is about. */
static inline __attribute__((always_inline)) bool follow_watched(const struct decide_recipe *recipe,
                                                                 struct decide_variant *variant,
                                                                 const struct decide_launch *launch,
                                                                 struct decide_verdict *verdict)
{
    const CUlaunchConfig *config = launch->config;
    const struct cuda_launch_attribute *own = (const void *)config->attrs;
    const struct cuda_launch_attribute *end = own + config->numAttrs;
    const uint32_t special = recipe->watch | recipe->general;
    struct taking taking = {.to = verdict->attributes,
                            .results = {recipe->results.words[0], recipe->results.words[1]},
                            .set = recipe->set};
    for (; own < end; own++) {
        if (own->id >= 32 || !(special >> own->id & 1))
            *taking.to++ = *own;
        else if (!take_watched(recipe, own, &taking))
            return false;
    }
    const union decide_results results = {.words = {taking.results[0], taking.results[1]}};
    const struct decide_cell *cell = decide_kernel_cell(variant, recipe->resolution, &results,
                                                        recipe->from_stream, recipe->detail);
    verdict->cell = cell->number;
    verdict->change = taking.changed || taking.set;
    if (!verdict->change)
        return true;
    for (unsigned i = 0; taking.set && i < recipe->count; i++)
        if (taking.set >> recipe->append_setting[i] & 1)
            *taking.to++ = recipe->append[i];
    decide_recipe_finish(recipe, cell, variant, launch, verdict, verdict->attributes,
                         (unsigned)(taking.to - verdict->attributes));
    return true;
}

/* Where it has none of these: they are copied, ours follow. */
static __attribute__((noinline)) void follow_others(const struct decide_recipe *recipe,
                                                    struct decide_variant *variant,
                                                    const struct decide_launch *launch,
                                                    struct decide_verdict *verdict)
{
    const CUlaunchConfig *config = launch->config;
    const struct cuda_launch_attribute *from = (const void *)config->attrs;
    struct cuda_launch_attribute *to = verdict->attributes;
    verdict->cell = recipe->cell->number;
    verdict->change = recipe->set != 0;
    if (!recipe->set)
        return;
    for (unsigned left = config->numAttrs; left; left--)
        *to++ = *from++;
    from = recipe->append;
    unsigned left = recipe->count;
    do
        *to++ = *from++;
    while (--left);
    decide_recipe_finish(recipe, recipe->cell, variant, launch, verdict, verdict->attributes,
                         config->numAttrs + recipe->count);
}

enum way {
    WAY_OTHERS,
    WAY_WATCHED,
    WAY_FULL,
};

static inline __attribute__((always_inline)) enum way way_of(const struct decide_recipe *recipe,
                                                             const CUlaunchConfig *config)
{
    const struct cuda_launch_attribute *own = (const void *)config->attrs;
    const uint32_t special = recipe->watch | recipe->general;
    unsigned left = config->numAttrs;
    if (!left || !special)
        return WAY_OTHERS;
    if (!own || left > DECIDE_ATTRIBUTE_LIMIT - (unsigned)recipe->count)
        return WAY_FULL;
    do {
        uint32_t id = (own++)->id;
        if (id < 32 && (special >> id & 1))
            return WAY_WATCHED;
    } while (--left);
    return WAY_OTHERS;
}

static inline bool take_shape(const struct decide_recipe *recipe, struct decide_variant *variant,
                              uint64_t serial, const struct decide_launch *launch,
                              struct decide_verdict *verdict)
{
    verdict->internal.shapes[0] =
        shape_of(recipe, variant, serial, launch->config, &verdict->internal.shape_uses[0]);
    return verdict->internal.shapes[0] != NULL;
}

bool decide_recipe_follow(const struct decide_recipe *recipe, struct decide_variant *variant,
                          uint64_t serial, const struct decide_launch *launch,
                          struct decide_verdict *verdict)
{
    if (recipe->cluster && !take_shape(recipe, variant, serial, launch, verdict))
        return false;
    switch (way_of(recipe, launch->config)) {
    case WAY_OTHERS:
        follow_others(recipe, variant, launch, verdict);
        return true;
    case WAY_WATCHED:
        return follow_watched(recipe, variant, launch, verdict);
    case WAY_FULL:
        break;
    }
    return false;
}

static __attribute__((noinline)) void launch_watched(const struct decide_recipe *recipe,
                                                     struct decide_variant *variant,
                                                     const struct decide_launch *launch,
                                                     struct decide_verdict *verdict)
{
    if (!follow_watched(recipe, variant, launch, verdict))
        decide_launch_in_full(launch, verdict);
}

static bool stream_owns(const struct decide_variant *variant, const struct decide_launch *launch,
                        uint32_t attributes)
{
    const struct decide_stream *stream =
        decide_stream_find_by(variant->kernel->set, launch->config->hStream,
                              launch->per_thread_default, decide_launch_library(launch));
    return (decide_stream_own(stream) & attributes) != 0;
}

static __attribute__((noinline)) void launch_carefully(const struct decide_recipe *recipe,
                                                       struct decide_variant *variant,
                                                       uint64_t serial,
                                                       const struct decide_launch *launch,
                                                       struct decide_verdict *verdict)
{
    enum way way = way_of(recipe, launch->config);
    if ((recipe->stream_keeps && stream_owns(variant, launch, recipe->stream_keeps)) ||
        (recipe->cluster && !take_shape(recipe, variant, serial, launch, verdict)))
        way = WAY_FULL;
    if (way == WAY_OTHERS && launch->config->numAttrs == 0 && recipe->set) {
        verdict->cell = recipe->cell->number;
        verdict->change = true;
        decide_recipe_finish(recipe, recipe->cell, variant, launch, verdict, recipe->append,
                             recipe->count);
    } else if (way == WAY_OTHERS) {
        follow_others(recipe, variant, launch, verdict);
    } else if (way == WAY_WATCHED) {
        launch_watched(recipe, variant, launch, verdict);
    } else {
        decide_launch_in_full(launch, verdict);
    }
}

/* All calls are tail calls: a frame here would cost as much as the rest. */
void decide_recipe_launch(const struct decide_recipe *recipe, struct decide_variant *variant,
                          uint64_t serial, const struct decide_launch *launch,
                          struct decide_verdict *verdict)
{
    if (recipe->careful) {
        launch_carefully(recipe, variant, serial, launch, verdict);
        return;
    }
    switch (way_of(recipe, launch->config)) {
    case WAY_OTHERS:
        follow_others(recipe, variant, launch, verdict);
        break;
    case WAY_WATCHED:
        launch_watched(recipe, variant, launch, verdict);
        break;
    case WAY_FULL:
        decide_launch_in_full(launch, verdict);
        break;
    }
}
