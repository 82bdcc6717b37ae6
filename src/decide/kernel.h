/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_KERNEL_H
#define CUDAPOLICY_DECIDE_KERNEL_H

/*
 * Kernels by name, and what is decided for them once: the plan, the kernel's number in the report
 * and the cells that its launches are counted in.
 *
 * A kernel is what the report calls one: a mangled name. It outlives the modules that hold it, so
 * that a module loaded again finds everything decided, and a reader never follows a dead pointer:
 * kernels are never freed. A program that makes up a new name for each of its kernels pays with the
 * length of the name and some 300 bytes for each.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "decide/rules.h"
#include "report/report.h"

/*
 * The outcome of one setting in a byte. Few outcomes have a reason, so two bits tell those apart
 * and the others stand among the reasons of 0: NONE 0, ALREADY_SO 1, KEPT 64 + reason, REFUSED 128
 * + reason, APPLIED 192 + reason.
 */
#define DECIDE_RESULT(outcome, reason)                                                             \
    ((uint8_t)((outcome) == REPORT_OUTCOME_NONE         ? 0                                        \
               : (outcome) == REPORT_OUTCOME_ALREADY_SO ? 1                                        \
               : (outcome) == REPORT_OUTCOME_KEPT       ? 64 + (reason)                            \
               : (outcome) == REPORT_OUTCOME_REFUSED    ? 128 + (reason)                           \
                                                        : 192 + (reason)))
_Static_assert(REPORT_REASON_COUNT <= 64 && REPORT_OUTCOME_COUNT == 5, "results fit a byte");

static inline uint8_t decide_result_outcome(uint8_t result)
{
    static const uint8_t outcomes[] = {REPORT_OUTCOME_NONE, REPORT_OUTCOME_KEPT,
                                       REPORT_OUTCOME_REFUSED, REPORT_OUTCOME_APPLIED};
    return result == 1 ? (uint8_t)REPORT_OUTCOME_ALREADY_SO : outcomes[result >> 6];
}

static inline uint8_t decide_result_reason(uint8_t result)
{
    return result == 1 ? (uint8_t)REPORT_REASON_NONE : (uint8_t)(result & 63);
}

#define DECIDE_APPLIED DECIDE_RESULT(REPORT_OUTCOME_APPLIED, REPORT_REASON_NONE)
#define DECIDE_ALREADY_SO DECIDE_RESULT(REPORT_OUTCOME_ALREADY_SO, REPORT_REASON_NONE)
#define DECIDE_LEFT                                                                                \
    DECIDE_RESULT(REPORT_OUTCOME_KEPT, REPORT_REASON_NONE) /* the rule says leave                  \
                                                            */
#define DECIDE_KEPT(reason) DECIDE_RESULT(REPORT_OUTCOME_KEPT, reason)
#define DECIDE_REFUSED(reason) DECIDE_RESULT(REPORT_OUTCOME_REFUSED, reason)

/* The outcomes of all settings of a launch. */
union decide_results {
    uint8_t of[REPORT_SETTING_LIMIT]; /* by enum policy_setting */
    uint64_t words[2];
};
_Static_assert((int)POLICY_SETTING_COUNT <= (int)REPORT_SETTING_LIMIT,
               "every setting has a result");

/* Which rule each result came from is told by the resolution and a bit a setting. */
struct decide_cell {
    union decide_results results;
    const struct decide_resolution *resolution;
    uint32_t from_stream; /* 1 << enum policy_setting: the result is that of a stream rule */
    uint32_t detail;      /* error code of the driver, or 0 */
    uint32_t number;      /* in the report */
    const struct decide_cell *next;
};

struct decide_kernel;
struct decide_recipe;
struct decide_shape;

enum {
    DECIDE_SHAPED_SLOTS = 8, /* a power of two */
};

/* A recipe by the numbers that the selectors grid_blocks, block_threads, shared_memory and arm ask
 * about. A sequence lock: odd while it is written. */
struct decide_shaped {
    _Atomic uint32_t sequence;
    _Atomic uint64_t blocks;
    _Atomic uint64_t threads_and_memory;
    _Atomic(const struct decide_recipe *) recipe;
};

/* A kernel as one library launches it. */
struct decide_variant {
    struct decide_kernel *kernel;
    struct decide_plan *plan;
    const char *library; /* interned; NULL: not known */
    bool any_library;    /* no rule asks about the library: this variant serves all callers */
    bool merges, places; /* of the kernel's rule set: its streams have to be looked at */
    bool step;           /* its launches begin steps of a live comparison: always the long way */
    uint32_t number;     /* of the kernel in the report */
    _Atomic uint32_t
        refused; /* 1 << enum policy_setting: the driver refused it, do not try again */
    _Atomic uint32_t refused_result; /* the error code */
    _Atomic(const struct decide_cell *) cells;
    _Atomic(const struct decide_recipe *) recipes;
    /* The recipe of launches through the driver layer that are not captured, where neither rules
     * nor device have to be looked at; NULL: find it the long way. */
    _Atomic(const struct decide_recipe *) plain;
    /* The same where the rules ask about nothing but the launch's shape and arm; by_shape: all ones
     * where they ask about the shape, else 0. */
    uint64_t by_shape;
    struct decide_shaped shaped[DECIDE_SHAPED_SLOTS];
    _Atomic(struct decide_shape *) recent_shape; /* of the launch that got a cluster last */
    _Atomic uint32_t cell_count;
    _Atomic uint32_t recipe_count;
    struct decide_variant *next;
};

struct decide_kernel {
    const struct decide_rule_set *set; /* whose rules are the candidates */
    uint64_t hash;
    char *mangled; /* NULL: the kernel of all functions whose name is not known */
    bool by_library;
    bool step; /* see struct decide_variant */
    _Atomic(struct decide_variant *) variants;
    uint16_t candidate_count; /* rules whose name and not_name hold, in file order */
    struct decide_rule **candidates;
    struct decide_kernel *next;
};

/* Forgets all kernels; those who hold one keep it. No other thread may exist. */
void decide_kernel_start(void);

/* The kernel of a name under the rules in force, made at first sight; NULL name: that of the
 * nameless. NULL when memory is short. Locks, allocates, demangles. */
struct decide_kernel *decide_kernel_of(const char *mangled);

/* Whether the rules that decided about it are no longer in force. */
static inline bool decide_variant_is_old(const struct decide_variant *variant)
{
    return variant->kernel->set != decide_rule_set_now();
}

/* The kernel for a caller's library, made (and entered in the report) at first sight. NULL when
 * memory is short. Locks at first sight only. */
struct decide_variant *decide_kernel_variant(struct decide_kernel *kernel, const char *library);

/* The same, NULL where it has not been made yet. Launch path. */
static inline struct decide_variant *decide_kernel_variant_known(const struct decide_kernel *kernel,
                                                                 const char *library)
{
    struct decide_variant *variant = atomic_load_explicit(&kernel->variants, memory_order_acquire);
    while (variant && !variant->any_library && variant->library != library)
        variant = variant->next;
    return variant;
}

/* The cell for a launch of the variant that came out like this, made when it is the first; never
 * NULL. Locks. */
const struct decide_cell *decide_kernel_new_cell(struct decide_variant *variant,
                                                 const struct decide_resolution *resolution,
                                                 const union decide_results *results,
                                                 uint32_t from_stream, uint32_t detail);

/* The same. Launch path: locks at the first sight of a combination only. */
static inline const struct decide_cell *
decide_kernel_cell(struct decide_variant *variant, const struct decide_resolution *resolution,
                   const union decide_results *results, uint32_t from_stream, uint32_t detail)
{
    const struct decide_cell *cell = atomic_load_explicit(&variant->cells, memory_order_acquire);
    for (; cell; cell = cell->next)
        if (cell->results.words[0] == results->words[0] &&
            cell->results.words[1] == results->words[1] && cell->resolution == resolution &&
            cell->from_stream == from_stream && cell->detail == detail)
            return cell;
    return decide_kernel_new_cell(variant, resolution, results, from_stream, detail);
}

#endif
