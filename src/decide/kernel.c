/* SPDX-License-Identifier: Apache-2.0 */
#include "decide/kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decide/kernel_name.h"
#include "decide/live.h"
#include "decide/selectors.h"

enum {
    BUCKETS = 4096, /* a power of two */
    /* Combinations of outcomes that one kernel is counted in; later ones share the report's cell 0,
     * which means "(others)". Far more than there are reasons. */
    CELLS_OF_A_VARIANT = 256,
};

static struct decide_kernel *buckets[BUCKETS];
static struct decide_kernel *nameless; /* one a rule set */
static struct decide_kernel *earlier;  /* of earlier starts: somebody may still hold them */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void retire(struct decide_kernel *kernel)
{
    while (kernel) {
        struct decide_kernel *next = kernel->next;
        kernel->next = earlier;
        earlier = kernel;
        kernel = next;
    }
}

void decide_kernel_start(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (size_t i = 0; i < BUCKETS; i++) {
        retire(buckets[i]);
        buckets[i] = NULL;
    }
    retire(nameless);
    nameless = NULL;
}

/* ---- Names -------------------------------------------------------------------------------------
 */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static bool find_candidates(struct decide_kernel *kernel, const struct kernel_name *name)
{
    size_t count = kernel->set->rule_count;
    struct decide_rule **candidates = malloc((count ? count : 1) * sizeof *candidates);
    if (!candidates)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct decide_rule *rule = &kernel->set->rules[i];
        if (!decide_selectors_hold_name(&rule->rule->selectors, name))
            continue;
        candidates[kernel->candidate_count++] = rule;
        kernel->by_library |= rule->by_library;
    }
    struct decide_rule **fitting = realloc(
        candidates, (kernel->candidate_count ? kernel->candidate_count : 1) * sizeof *candidates);
    kernel->candidates = fitting ? fitting : candidates;
    return true;
}

static struct decide_kernel *kernel_new(const struct decide_rule_set *set, const char *mangled)
{
    struct kernel_name name = {0};
    struct decide_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    bool made = true;
    kernel->set = set;
    if (mangled) {
        kernel->hash = hash_of(mangled);
        kernel->mangled = strdup(mangled);
        made = kernel->mangled && kernel_name_make(mangled, &name);
    }
    made = made && find_candidates(kernel, mangled ? &name : NULL);
    kernel->step = made && mangled && decide_live_is_step(&name);
    kernel_name_release(&name);
    if (made)
        return kernel;
    free(kernel->mangled);
    free(kernel);
    return NULL;
}

static void kernel_free(struct decide_kernel *kernel)
{
    free(kernel->candidates);
    free(kernel->mangled);
    free(kernel);
}

static struct decide_kernel **bucket_of(const char *mangled, uint64_t hash)
{
    return mangled ? &buckets[hash & (BUCKETS - 1)] : &nameless;
}

static bool is(const struct decide_kernel *kernel, const struct decide_rule_set *set,
               const char *mangled, uint64_t hash)
{
    return kernel->set == set && kernel->hash == hash &&
           (!mangled || strcmp(kernel->mangled, mangled) == 0);
}

/* Locked. */
static struct decide_kernel *search(const struct decide_rule_set *set, const char *mangled,
                                    uint64_t hash)
{
    struct decide_kernel *kernel = *bucket_of(mangled, hash);
    while (kernel && !is(kernel, set, mangled, hash))
        kernel = kernel->next;
    return kernel;
}

struct decide_kernel *decide_kernel_of(const char *mangled)
{
    const struct decide_rule_set *set = decide_rule_set_now();
    uint64_t hash = mangled ? hash_of(mangled) : 0;
    pthread_mutex_lock(&mutex);
    struct decide_kernel *kernel = search(set, mangled, hash);
    pthread_mutex_unlock(&mutex);
    if (kernel)
        return kernel;
    /* Demangling takes long and needs no lock; of two threads that make the same kernel one wins.
     */
    struct decide_kernel *fresh = kernel_new(set, mangled);
    if (!fresh)
        return NULL;
    pthread_mutex_lock(&mutex);
    kernel = search(set, mangled, hash);
    if (!kernel) {
        kernel = fresh;
        struct decide_kernel **place = bucket_of(mangled, hash);
        kernel->next = *place;
        *place = kernel;
    }
    pthread_mutex_unlock(&mutex);
    if (kernel != fresh)
        kernel_free(fresh);
    return kernel;
}

/* ---- Variants ----------------------------------------------------------------------------------
 */

static struct decide_plan *plan_for(const struct decide_kernel *kernel, const char *library)
{
    if (!kernel->by_library)
        return decide_plan_of(kernel->candidates, kernel->candidate_count);
    struct decide_rule **rules =
        malloc((kernel->candidate_count ? kernel->candidate_count : 1u) * sizeof *rules);
    if (!rules)
        return decide_plan_of(NULL, 0);
    size_t count = 0;
    for (uint16_t i = 0; i < kernel->candidate_count; i++)
        if (decide_selectors_hold_library(&kernel->candidates[i]->rule->selectors, library))
            rules[count++] = kernel->candidates[i];
    struct decide_plan *plan = decide_plan_of(rules, count);
    free(rules);
    return plan;
}

static uint32_t report_number(const struct decide_kernel *kernel, const char *library)
{
    struct kernel_name name = {0};
    struct report_kernel_info info = {.mangled = "(unknown)",
                                      .name = "(unknown)",
                                      .signature = "(unknown)",
                                      .library = library ? library : ""};
    if (kernel->mangled && kernel_name_make(kernel->mangled, &name)) {
        info.mangled = name.mangled;
        info.name = name.name;
        info.signature = name.signature;
        info.demangled = name.demangled;
    } else if (kernel->mangled) {
        info.mangled = info.name = info.signature = kernel->mangled;
    }
    uint32_t number = report_kernel(&info);
    kernel_name_release(&name);
    return number;
}

struct decide_variant *decide_kernel_variant(struct decide_kernel *kernel, const char *library)
{
    struct decide_variant *variant = decide_kernel_variant_known(kernel, library);
    if (variant)
        return variant;
    struct decide_variant *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return NULL;
    fresh->kernel = kernel;
    fresh->library = library;
    fresh->any_library = !kernel->by_library;
    fresh->merges = kernel->set->needs.merges;
    fresh->places = kernel->set->places;
    fresh->plan = plan_for(kernel, library);
    fresh->step = kernel->step;
    fresh->by_shape = fresh->plan->needs & DECIDE_NEED_SHAPE ? UINT64_MAX : 0;
    fresh->number = report_number(kernel, library);
    pthread_mutex_lock(&mutex);
    variant = decide_kernel_variant_known(kernel, library);
    if (!variant) {
        variant = fresh;
        fresh->next = atomic_load_explicit(&kernel->variants, memory_order_relaxed);
        atomic_store_explicit(&kernel->variants, fresh, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    if (variant != fresh)
        free(fresh);
    return variant;
}

/* ---- Cells -------------------------------------------------------------------------------------
 */

/* Cell 0 of the report. */
static const struct decide_cell others;

static const struct decide_cell *find_cell(const struct decide_cell *from,
                                           const struct decide_cell *like)
{
    while (from && !(from->results.words[0] == like->results.words[0] &&
                     from->results.words[1] == like->results.words[1] &&
                     from->resolution == like->resolution &&
                     from->from_stream == like->from_stream && from->detail == like->detail))
        from = from->next;
    return from;
}

static uint32_t cell_number(const struct decide_variant *variant, const struct decide_cell *cell)
{
    struct report_result results[REPORT_SETTING_LIMIT];
    for (unsigned setting = 0; setting < POLICY_SETTING_COUNT; setting++) {
        const struct decide_choice *choice = cell->from_stream & 1u << setting
                                                 ? &cell->resolution->stream_choices[setting]
                                                 : &cell->resolution->choices[setting];
        results[setting].outcome = decide_result_outcome(cell->results.of[setting]);
        results[setting].reason = decide_result_reason(cell->results.of[setting]);
        results[setting].rule = results[setting].outcome == REPORT_OUTCOME_NONE
                                    ? (uint16_t)REPORT_RULE_NONE
                                    : choice->rule;
    }
    return report_cell(variant->number, results, cell->detail);
}

const struct decide_cell *decide_kernel_new_cell(struct decide_variant *variant,
                                                 const struct decide_resolution *resolution,
                                                 const union decide_results *results,
                                                 uint32_t from_stream, uint32_t detail)
{
    if (atomic_load_explicit(&variant->cell_count, memory_order_relaxed) >= CELLS_OF_A_VARIANT)
        return &others;
    struct decide_cell *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return &others;
    *fresh = (struct decide_cell){.results = *results,
                                  .resolution = resolution,
                                  .from_stream = from_stream,
                                  .detail = detail};
    fresh->number = cell_number(variant, fresh);
    pthread_mutex_lock(&mutex);
    const struct decide_cell *first = atomic_load_explicit(&variant->cells, memory_order_relaxed);
    const struct decide_cell *cell = find_cell(first, fresh);
    if (!cell) {
        cell = fresh;
        fresh->next = first;
        atomic_store_explicit(&variant->cells, fresh, memory_order_release);
        atomic_fetch_add_explicit(&variant->cell_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&mutex);
    if (cell != fresh)
        free(fresh);
    return cell;
}
