/* SPDX-License-Identifier: Apache-2.0 */

/* A live comparison as JSON, and its runs back from the journal. */

#include "live.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "export.h"
#include "json_output.h"
#include "live_view.h"
#include "memory.h"
#include "wording.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *arm_json(const struct ab_live_comparison *comparison, const struct ab_arm *arm)
{
    const struct ab_nested *nested = &comparison->nested;
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:o, s:o}", "name", arm->name, "role", ab_role_words[arm->role],
                  "blocks", (json_int_t)comparison->blocks, "mean", number(comparison->mean),
                  "deviation", number(comparison->deviation));

    if (arm->role == AB_ROLE_BASELINE) {
        return object;
    }
    json_object_set_new(object, "ratio", number(nested->ratio));
    json_object_set_new(object, "low", number(nested->low));
    json_object_set_new(object, "high", number(nested->high));
    json_object_set_new(object, "level", number(nested->level));
    json_object_set_new(object, "margin_low", number(comparison->margin_low));
    json_object_set_new(object, "margin_high", number(comparison->margin_high));
    json_object_set_new(object, "p", number(nested->p));
    json_object_set_new(object, "p_adjusted", number(comparison->p_adjusted));
    json_object_set_new(object, "these_processes_only", json_boolean(nested->these_processes_only));
    if (arm->role == AB_ROLE_CANDIDATE) {
        json_object_set_new(object, "verdict",
                            json_string(ab_live_verdict_names[comparison->verdict]));
    }
    return object;
}

/* ---- Runs ---- */

static json_t *policy_json(const struct ab_run_policy *policy)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "launches",
                     (json_int_t)policy->launches, "applied", (json_int_t)policy->applied,
                     "already_so", (json_int_t)policy->already_so, "kept", (json_int_t)policy->kept,
                     "refused", (json_int_t)policy->refused, "rules", (json_int_t)policy->rules,
                     "rules_matched", (json_int_t)policy->rules_matched);
}

static json_t *gpu_json(const struct ab_run_gpu *gpu)
{
    return !gpu->known ? json_null()
                       : json_pack("{s:I, s:o, s:o, s:o}", "flags", (json_int_t)gpu->flags,
                                   "sm_clock_mhz", number(gpu->sm_clock_mhz), "temperature_celsius",
                                   number(gpu->temperature_celsius), "power_watts",
                                   number(gpu->power_watts));
}

json_t *ab_live_run_json(const struct ab_live_run *run, size_t arms)
{
    json_t *blocks = json_array(), *places = json_array(), *policies = json_array();

    for (size_t block = 0; block < run->block_count; block++) {
        json_t *row = json_array();

        for (size_t arm = 0; arm < arms; arm++) {
            json_array_append_new(row, number(run->blocks[block * arms + arm]));
        }
        json_array_append_new(blocks, row);
        if (run->places != NULL) {
            json_array_append_new(places, json_pack("[I, I]", (json_int_t)run->places[block].part,
                                                    (json_int_t)run->places[block].block));
        }
    }
    for (size_t arm = 0; arm < arms && run->policies != NULL; arm++) {
        json_array_append_new(policies, policy_json(&run->policies[arm]));
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "ranks",
                     (json_int_t)run->ranks, "parts", (json_int_t)run->parts, "shared_rank",
                     (json_int_t)run->shared_rank, "too_short", (json_int_t)run->too_short, "steps",
                     (json_int_t)run->steps, "steps_most", (json_int_t)run->steps_most, "gpu",
                     gpu_json(&run->gpu), "places", places, "arms", policies, "blocks", blocks);
}

static int64_t count_of(const json_t *object, const char *key)
{
    const json_int_t value = json_integer_value(json_object_get(object, key));

    return value > 0 ? value : 0;
}

static void read_policy(struct ab_run_policy *policy, const json_t *object)
{
    *policy = (struct ab_run_policy){.known = true,
                                     .launches = count_of(object, "launches"),
                                     .applied = count_of(object, "applied"),
                                     .already_so = count_of(object, "already_so"),
                                     .kept = count_of(object, "kept"),
                                     .refused = count_of(object, "refused"),
                                     .rules = count_of(object, "rules"),
                                     .rules_matched = count_of(object, "rules_matched")};
}

static bool read_blocks(struct ab_live_run *run, const json_t *blocks, const json_t *places,
                        size_t arms)
{
    const size_t count = json_array_size(blocks);

    run->blocks = memory_allocate(count * arms + 1, sizeof *run->blocks);
    run->places = memory_allocate(count + 1, sizeof *run->places);
    for (size_t block = 0; block < count; block++) {
        const json_t *row = json_array_get(blocks, block), *place = json_array_get(places, block);

        for (size_t arm = 0; arm < arms; arm++) {
            const double seconds = json_number_value(json_array_get(row, arm));

            if (json_array_size(row) != arms || !(seconds > 0)) {
                return false;
            }
            run->blocks[block * arms + arm] = seconds;
        }
        run->places[block] =
            (struct ab_live_place){.part = (uint32_t)json_integer_value(json_array_get(place, 0)),
                                   .block = (uint32_t)json_integer_value(json_array_get(place, 1))};
    }
    run->block_count = count;
    return count > 0 && json_array_size(places) == count;
}

bool ab_live_run_from_json(struct ab_live_run *run, const json_t *document, size_t arms)
{
    const json_t *policies = json_object_get(document, "arms");

    *run = (struct ab_live_run){.ranks = (size_t)count_of(document, "ranks"),
                                .parts = (size_t)count_of(document, "parts"),
                                .shared_rank = (size_t)count_of(document, "shared_rank"),
                                .too_short = (size_t)count_of(document, "too_short"),
                                .steps = count_of(document, "steps"),
                                .steps_most = count_of(document, "steps_most")};
    if (!read_blocks(run, json_object_get(document, "blocks"), json_object_get(document, "places"),
                     arms) ||
        json_array_size(policies) != arms) {
        ab_live_run_release(run);
        return false;
    }
    run->policies = memory_allocate(arms, sizeof *run->policies);
    for (size_t arm = 0; arm < arms; arm++) {
        read_policy(&run->policies[arm], json_array_get(policies, arm));
    }
    return true;
}

/* ---- The comparison ---- */

/* What the view says in words, and how the experiment was made. */
static void add_words(json_t *document, const struct ab_live_comparison *comparisons,
                      const struct ab_experiment *experiment, const struct ab_live_run *runs,
                      size_t run_count, const struct ab_live_plan *plan)
{
    static const char *const keys[] = {"answer", "result", "exit_status", "winner", "warnings"};
    struct ab_live_view view;
    json_t *analysis, *head;

    ab_live_view_make(&view, comparisons, experiment, runs, run_count, plan, AB_LIVE_SHOWN);
    analysis = ab_analysis_json(&view.experiment, &view.analysis);
    head = ab_experiment_json(&view.experiment);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_object_set(document, keys[i], json_object_get(analysis, keys[i]));
    }
    json_object_set_new(document, "runs_failed", json_integer((json_int_t)view.design.runs_failed));
    json_object_set(document, "experiment", head);
    json_decref(head);
    json_decref(analysis);
    ab_live_view_release(&view);
}

json_t *ab_live_json(const struct ab_live_comparison *comparisons,
                     const struct ab_experiment *experiment, const struct ab_live_run *runs,
                     size_t run_count, const struct ab_live_plan *plan)
{
    char *seed = memory_format("%" PRIu64, plan->seed);
    json_t *arms = json_array(), *made = json_array(), *document;

    for (size_t arm = 0; arm < experiment->arm_count; arm++) {
        json_array_append_new(arms, arm_json(&comparisons[arm], &experiment->arms[arm]));
    }
    for (size_t i = 0; i < run_count; i++) {
        json_array_append_new(made, ab_live_run_json(&runs[i], experiment->arm_count));
    }
    document = json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:o, s:f, s:f, s:o, s:o}", "format",
                         "cudapolicy live comparison", "schema", 1, "seed", seed, "slice",
                         (json_int_t)plan->slice, "drop", (json_int_t)plan->drop, "warm_up",
                         (json_int_t)plan->warm_up, "step_kernel",
                         plan->step_kernel != NULL ? json_string(plan->step_kernel) : json_null(),
                         "alpha", plan->alpha, "margin", plan->margin, "arms", arms, "runs", made);
    add_words(document, comparisons, experiment, runs, run_count, plan);
    free(seed);
    return document;
}
