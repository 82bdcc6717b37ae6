/* SPDX-License-Identifier: Apache-2.0 */

/* Experiments and runs as JSON, and back. */

#include "experiment.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_output.h"
#include "memory.h"

static const char format_name[] = "cudapolicy experiment";
enum {
    SCHEMA = 1,
};

static const char *const kinds[] = {"none", "observe", "policy", NULL};
static const char *const roles[] = {"baseline", "repeat", "cost", "candidate", NULL};
static const char *const directions[] = {"less", "more", NULL};
static const char *const sources[] = {"wall", "pattern", "json", "step", NULL};
static const char *const acrosses[] = {"max", "mean", "median", "min", "sum", NULL};
static const char *const claims[] = {"better", "no-difference", "none", NULL};

/* ---- To JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_output_string(text) : json_null();
}

/* JSON's integers have 63 bits here. */
static json_t *seed_json(uint64_t seed)
{
    char digits[24];

    if (seed <= INT64_MAX) {
        return json_integer((json_int_t)seed);
    }
    snprintf(digits, sizeof digits, "%" PRIu64, seed);
    return json_string(digits);
}

static json_t *plan_json(const struct ab_plan *plan)
{
    json_t *looks = json_array();

    for (size_t i = 0; i < plan->look_count; i++) {
        json_array_append_new(looks, json_integer(plan->looks[i]));
    }
    return json_pack("{s:o, s:I, s:o, s:s, s:o, s:o}", "seed", seed_json(plan->seed),
                     "warm_up_blocks", (json_int_t)plan->warm_up_blocks, "looks", looks, "claim",
                     claims[plan->claim], "alpha", number(plan->alpha), "margin",
                     number(plan->margin));
}

static json_t *arm_json(const struct ab_arm *arm)
{
    return json_pack("{s:o, s:s, s:s, s:o, s:o, s:b}", "name", json_output_string(arm->name),
                     "kind", kinds[arm->kind], "role", roles[arm->role], "policy",
                     text_or_null(arm->policy), "policy_sha256", text_or_null(arm->policy_sha256),
                     "sets_variables", arm->sets_variables);
}

static json_t *metric_json(const struct ab_metric *metric)
{
    return json_pack("{s:o, s:o, s:s, s:s, s:o, s:b, s:s, s:i}", "name",
                     json_output_string(metric->name), "unit", text_or_null(metric->unit),
                     "direction", directions[metric->direction], "source", sources[metric->source],
                     "definition", text_or_null(metric->definition), "primary", metric->primary,
                     "across", acrosses[metric->across], "skip", metric->skip);
}

static json_t *live_json(const struct ab_live_design *live)
{
    return json_pack("{s:o, s:I, s:I, s:I, s:I}", "step_kernel", text_or_null(live->step_kernel),
                     "slice", (json_int_t)live->slice, "drop", (json_int_t)live->drop, "warm_up",
                     (json_int_t)live->warm_up, "runs", (json_int_t)live->runs);
}

json_t *ab_experiment_json(const struct ab_experiment *experiment)
{
    json_t *command = json_array(), *arms = json_array(), *metrics = json_array(), *document;

    for (char **word = experiment->command; word != NULL && *word != NULL; word++) {
        json_array_append_new(command, json_output_string(*word));
    }
    for (size_t i = 0; i < experiment->arm_count; i++) {
        json_array_append_new(arms, arm_json(&experiment->arms[i]));
    }
    for (size_t i = 0; i < experiment->metric_count; i++) {
        json_array_append_new(metrics, metric_json(&experiment->metrics[i]));
    }
    document =
        json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:O?, s:o, s:o}", "format",
                  format_name, "schema", SCHEMA, "version", CUDAPOLICY_VERSION, "command", command,
                  "started", text_or_null(experiment->started), "host",
                  text_or_null(experiment->host), "gpus", text_or_null(experiment->gpus),
                  "interrupted", experiment->interrupted, "plan", plan_json(&experiment->plan),
                  "options", experiment->options, "arms", arms, "metrics", metrics);
    if (experiment->live != NULL) {
        json_object_set_new(document, "live", live_json(experiment->live));
    }
    return document;
}

static json_t *gpu_json(const struct ab_run_gpu *gpu)
{
    if (!gpu->known) {
        return json_null();
    }
    return json_pack("{s:I, s:o, s:o, s:o}", "flags", (json_int_t)gpu->flags, "sm_clock_mhz",
                     number(gpu->sm_clock_mhz), "temperature_celsius",
                     number(gpu->temperature_celsius), "power_watts", number(gpu->power_watts));
}

static json_t *policy_json(const struct ab_run_policy *policy)
{
    if (!policy->known) {
        return json_null();
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "processes",
                     (json_int_t)policy->processes, "launches", (json_int_t)policy->launches,
                     "applied", (json_int_t)policy->applied, "already_so",
                     (json_int_t)policy->already_so, "kept", (json_int_t)policy->kept, "refused",
                     (json_int_t)policy->refused, "rules", (json_int_t)policy->rules,
                     "rules_matched", (json_int_t)policy->rules_matched);
}

static json_t *value_json(const struct ab_run_value *value)
{
    return json_pack("{s:o, s:I, s:I, s:o}", "value", number(value->value), "count",
                     (json_int_t)value->count, "warm_up", (json_int_t)value->warm_up,
                     "autocorrelation", number(value->autocorrelation));
}

json_t *ab_run_json(const struct ab_experiment *experiment, const struct ab_run *run)
{
    json_t *values = json_object();

    for (size_t i = 0; i < experiment->metric_count; i++) {
        char *name = memory_copy(experiment->metrics[i].name);

        json_object_set_new(values, name, value_json(&run->values[i]));
        free(name);
    }
    return json_pack("{s:I, s:I, s:o, s:b, s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o}", "block",
                     (json_int_t)run->block, "position", (json_int_t)run->position, "arm",
                     json_output_string(experiment->arms[run->arm].name), "warm_up", run->warm_up,
                     "outcome", ab_outcome_names[run->outcome], "status", run->status, "start_time",
                     (json_int_t)run->start_time, "seconds", number(run->seconds), "message",
                     text_or_null(run->message), "gpu", gpu_json(&run->gpu), "policy",
                     policy_json(&run->policy), "values", values);
}

/* ---- From JSON ---- */

struct reader {
    char *error; /* of size bytes; "" as long as all is well */
    size_t size;
};

static void fail(struct reader *reader, const char *key, const char *fault)
{
    if (reader->error[0] == '\0') {
        snprintf(reader->error, reader->size, "\"%s\" %s", key, fault);
    }
}

static bool failed(const struct reader *reader)
{
    return reader->error[0] != '\0';
}

/* NaN where it is null. */
static double real_of(struct reader *reader, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_null(value)) {
        return NAN;
    }
    if (!json_is_number(value)) {
        fail(reader, key, "is no number");
        return NAN;
    }
    return json_number_value(value);
}

static int64_t integer_of(struct reader *reader, const json_t *object, const char *key,
                          int64_t least, int64_t most)
{
    const json_t *value = json_object_get(object, key);
    int64_t number_read = json_integer_value(value);

    if (!json_is_integer(value) || number_read < least || number_read > most) {
        fail(reader, key, "is no number in its range");
        return least;
    }
    return number_read;
}

static bool boolean_of(struct reader *reader, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_boolean(value)) {
        fail(reader, key, "is neither true nor false");
    }
    return json_is_true(value);
}

/* "" where it is missing; NULL where it is null. */
static char *text_of(struct reader *reader, const json_t *object, const char *key, bool may_be_null)
{
    const json_t *value = json_object_get(object, key);

    if (may_be_null && json_is_null(value)) {
        return NULL;
    }
    if (!json_is_string(value)) {
        fail(reader, key, "is no text");
        return memory_copy("");
    }
    return memory_copy(json_string_value(value));
}

/* The place of the text in names, which ends with NULL. */
static int name_of(struct reader *reader, const json_t *object, const char *key,
                   const char *const *names)
{
    const char *text = json_string_value(json_object_get(object, key));

    for (int i = 0; text != NULL && names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0) {
            return i;
        }
    }
    fail(reader, key, "is none of its values");
    return 0;
}

static json_t *array_of(struct reader *reader, const json_t *object, const char *key, size_t least)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_array(value) || json_array_size(value) < least) {
        fail(reader, key, "is no list, or too short");
        return NULL;
    }
    return value;
}

static void read_plan(struct reader *reader, const json_t *object, struct ab_plan *plan)
{
    const json_t *seed = json_object_get(object, "seed"), *looks;
    uint32_t before = 0;

    if (json_is_string(seed)) {
        plan->seed = strtoull(json_string_value(seed), NULL, 10);
    } else {
        plan->seed = (uint64_t)integer_of(reader, object, "seed", 0, INT64_MAX);
    }
    plan->warm_up_blocks = (uint32_t)integer_of(reader, object, "warm_up_blocks", 0, UINT32_MAX);
    plan->claim = (enum ab_claim)name_of(reader, object, "claim", claims);
    plan->alpha = real_of(reader, object, "alpha");
    plan->margin = real_of(reader, object, "margin");
    looks = array_of(reader, object, "looks", 1);
    plan->look_count = json_array_size(looks);
    if (plan->look_count > sizeof plan->looks / sizeof plan->looks[0]) {
        plan->look_count = 0;
        fail(reader, "looks", "is too long");
    }
    for (size_t i = 0; i < plan->look_count; i++) {
        json_int_t look = json_integer_value(json_array_get(looks, i));

        if (look <= before || look > UINT32_MAX) {
            fail(reader, "looks", "does not ascend");
            return;
        }
        plan->looks[i] = before = (uint32_t)look;
    }
}

static void read_arms(struct reader *reader, const json_t *document,
                      struct ab_experiment *experiment)
{
    json_t *array = array_of(reader, document, "arms", 1), *object;
    size_t i;

    experiment->arms = memory_allocate(json_array_size(array), sizeof *experiment->arms);
    json_array_foreach(array, i, object)
    {
        struct ab_arm *arm = &experiment->arms[experiment->arm_count++];

        arm->name = text_of(reader, object, "name", false);
        arm->kind = (enum ab_arm_kind)name_of(reader, object, "kind", kinds);
        arm->role = (enum ab_arm_role)name_of(reader, object, "role", roles);
        arm->policy = text_of(reader, object, "policy", true);
        arm->policy_sha256 = text_of(reader, object, "policy_sha256", true);
        arm->sets_variables = json_is_true(json_object_get(object, "sets_variables"));
        if ((arm->role == AB_ROLE_BASELINE) != (i == 0)) {
            fail(reader, "role", "is not baseline for the first arm alone");
        }
    }
}

static void read_metrics(struct reader *reader, const json_t *document,
                         struct ab_experiment *experiment)
{
    json_t *array = array_of(reader, document, "metrics", 1), *object;
    size_t i;

    experiment->metrics = memory_allocate(json_array_size(array), sizeof *experiment->metrics);
    json_array_foreach(array, i, object)
    {
        struct ab_metric *metric = &experiment->metrics[experiment->metric_count++];

        metric->name = text_of(reader, object, "name", false);
        metric->unit = text_of(reader, object, "unit", false);
        metric->direction = (enum ab_direction)name_of(reader, object, "direction", directions);
        metric->source = (enum ab_metric_source)name_of(reader, object, "source", sources);
        metric->definition = text_of(reader, object, "definition", true);
        metric->primary = boolean_of(reader, object, "primary");
        metric->across = (enum ab_across)name_of(reader, object, "across", acrosses);
        metric->skip = (int)integer_of(reader, object, "skip", -1, INT32_MAX);
        if (metric->primary != (i == 0)) {
            fail(reader, "primary", "is not true for the first metric alone");
        }
    }
}

/* Journals of earlier versions have none. */
static void read_options(struct reader *reader, json_t *object, struct ab_experiment *experiment)
{
    if (json_is_object(object)) {
        experiment->options = json_incref(object);
    } else if (object != NULL && !json_is_null(object)) {
        fail(reader, "options", "is no object");
    }
}

static void read_command(struct reader *reader, const json_t *document,
                         struct ab_experiment *experiment)
{
    json_t *array = array_of(reader, document, "command", 1), *word;
    size_t i;

    experiment->command = memory_allocate(json_array_size(array) + 1, sizeof(char *));
    json_array_foreach(array, i, word)
    {
        if (!json_is_string(word)) {
            fail(reader, "command", "has a word that is no text");
            return;
        }
        experiment->command[i] = memory_copy(json_string_value(word));
    }
}

bool ab_experiment_from_json(struct ab_experiment *experiment, const json_t *document, char *error,
                             size_t size)
{
    struct reader reader = {.error = error, .size = size};
    const char *format = json_string_value(json_object_get(document, "format"));

    error[0] = '\0';
    *experiment = (struct ab_experiment){0};
    if (format == NULL || strcmp(format, format_name) != 0) {
        snprintf(error, size, "this is no experiment of cudapolicy");
        return false;
    }
    if (json_integer_value(json_object_get(document, "schema")) != SCHEMA) {
        snprintf(error, size, "another version of cudapolicy wrote it");
        return false;
    }
    read_command(&reader, document, experiment);
    experiment->started = text_of(&reader, document, "started", true);
    experiment->host = text_of(&reader, document, "host", true);
    experiment->gpus = text_of(&reader, document, "gpus", true);
    experiment->interrupted = boolean_of(&reader, document, "interrupted");
    read_plan(&reader, json_object_get(document, "plan"), &experiment->plan);
    read_options(&reader, json_object_get(document, "options"), experiment);
    read_arms(&reader, document, experiment);
    read_metrics(&reader, document, experiment);
    if (failed(&reader)) {
        ab_experiment_release(experiment);
    }
    return !failed(&reader);
}

static void read_gpu(struct reader *reader, const json_t *object, struct ab_run_gpu *gpu)
{
    if (json_is_null(object)) {
        return;
    }
    gpu->known = true;
    gpu->flags = (unsigned)integer_of(reader, object, "flags", 0, UINT32_MAX);
    gpu->sm_clock_mhz = real_of(reader, object, "sm_clock_mhz");
    gpu->temperature_celsius = real_of(reader, object, "temperature_celsius");
    gpu->power_watts = real_of(reader, object, "power_watts");
}

static void read_policy(struct reader *reader, const json_t *object, struct ab_run_policy *policy)
{
    if (json_is_null(object)) {
        return;
    }
    policy->known = true;
    policy->processes = integer_of(reader, object, "processes", 0, INT64_MAX);
    policy->launches = integer_of(reader, object, "launches", 0, INT64_MAX);
    policy->applied = integer_of(reader, object, "applied", 0, INT64_MAX);
    policy->already_so = integer_of(reader, object, "already_so", 0, INT64_MAX);
    policy->kept = integer_of(reader, object, "kept", 0, INT64_MAX);
    policy->refused = integer_of(reader, object, "refused", 0, INT64_MAX);
    policy->rules = integer_of(reader, object, "rules", 0, INT64_MAX);
    policy->rules_matched = integer_of(reader, object, "rules_matched", 0, INT64_MAX);
}

static void read_values(struct reader *reader, const struct ab_experiment *experiment,
                        const json_t *object, struct ab_run *run)
{
    for (size_t i = 0; i < experiment->metric_count; i++) {
        const json_t *value = json_object_get(object, experiment->metrics[i].name);
        struct ab_run_value *read = &run->values[i];

        read->value = real_of(reader, value, "value");
        read->count = integer_of(reader, value, "count", 0, INT64_MAX);
        read->warm_up = integer_of(reader, value, "warm_up", 0, INT64_MAX);
        read->autocorrelation = real_of(reader, value, "autocorrelation");
    }
}

static uint32_t read_arm(struct reader *reader, const struct ab_experiment *experiment,
                         const json_t *document)
{
    const char *name = json_string_value(json_object_get(document, "arm"));

    for (size_t i = 0; name != NULL && i < experiment->arm_count; i++) {
        if (strcmp(experiment->arms[i].name, name) == 0) {
            return (uint32_t)i;
        }
    }
    fail(reader, "arm", "is no arm of the experiment");
    return 0;
}

bool ab_run_from_json(struct ab_experiment *experiment, const json_t *document, char *error,
                      size_t size)
{
    static const char *outcomes[AB_OUTCOME_COUNT + 1];
    struct reader reader = {.error = error, .size = size};
    struct ab_run *run = ab_experiment_add_run(experiment);

    error[0] = '\0';
    memcpy(outcomes, ab_outcome_names, sizeof ab_outcome_names);
    run->block = (uint32_t)integer_of(&reader, document, "block", 0, UINT32_MAX);
    run->position = (uint32_t)integer_of(&reader, document, "position", 0, UINT32_MAX);
    run->arm = read_arm(&reader, experiment, document);
    run->warm_up = boolean_of(&reader, document, "warm_up");
    run->outcome = (enum ab_outcome)name_of(&reader, document, "outcome", outcomes);
    run->status = (int)integer_of(&reader, document, "status", INT32_MIN, INT32_MAX);
    run->start_time = integer_of(&reader, document, "start_time", 0, INT64_MAX);
    run->seconds = real_of(&reader, document, "seconds");
    run->message = text_of(&reader, document, "message", true);
    read_gpu(&reader, json_object_get(document, "gpu"), &run->gpu);
    read_policy(&reader, json_object_get(document, "policy"), &run->policy);
    read_values(&reader, experiment, json_object_get(document, "values"), run);
    if (failed(&reader)) {
        ab_experiment_drop_run(experiment);
    }
    return !failed(&reader);
}
