/* SPDX-License-Identifier: Apache-2.0 */

/* Experiments in memory. As JSON: experiment_json.c. */

#include "experiment.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "metric.h"

const char *const ab_outcome_names[AB_OUTCOME_COUNT] = {
    [AB_OK] = "ok",
    [AB_EXITED] = "exited",
    [AB_SIGNALLED] = "signalled",
    [AB_TIMED_OUT] = "timed out",
    [AB_CHECK_FAILED] = "check failed",
    [AB_OUTPUT_DIFFERS] = "output differs",
    [AB_METRIC_MISSING] = "metric missing",
    [AB_NOT_ATTACHED] = "not attached",
    [AB_INTERRUPTED] = "interrupted",
};

static char *utc_time(void)
{
    time_t now = time(NULL);
    struct tm broken;
    char text[32];

    gmtime_r(&now, &broken);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &broken);
    return memory_copy(text);
}

static char *host_name(void)
{
    char name[HOST_NAME_MAX + 1] = "";

    gethostname(name, sizeof name - 1);
    return memory_copy(name);
}

void ab_experiment_begin(struct ab_experiment *experiment, char *const *command)
{
    size_t count = 0;

    while (command[count] != NULL) {
        count++;
    }
    experiment->command = memory_allocate(count + 1, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        experiment->command[i] = memory_copy(command[i]);
    }
    experiment->started = utc_time();
    experiment->host = host_name();
}

struct ab_run *ab_experiment_add_run(struct ab_experiment *experiment)
{
    struct ab_run *run;

    experiment->runs = memory_grow(experiment->runs, experiment->run_count,
                                   &experiment->run_capacity, sizeof *experiment->runs);
    run = &experiment->runs[experiment->run_count++];
    *run = (struct ab_run){
        .seconds = NAN,
        .gpu = {.sm_clock_mhz = NAN, .temperature_celsius = NAN, .power_watts = NAN},
        .values = memory_allocate(experiment->metric_count, sizeof *run->values),
    };
    for (size_t i = 0; i < experiment->metric_count; i++) {
        run->values[i] = (struct ab_run_value){.value = NAN, .autocorrelation = NAN};
    }
    return run;
}

void ab_experiment_drop_run(struct ab_experiment *experiment)
{
    struct ab_run *run = &experiment->runs[--experiment->run_count];

    free(run->message);
    free(run->values);
}

static void release_arm(struct ab_arm *arm)
{
    free(arm->name);
    free(arm->policy);
    free(arm->policy_sha256);
    free(arm->policy_copy);
}

void ab_experiment_release(struct ab_experiment *experiment)
{
    while (experiment->run_count > 0) {
        ab_experiment_drop_run(experiment);
    }
    free(experiment->runs);
    for (size_t i = 0; i < experiment->arm_count; i++) {
        release_arm(&experiment->arms[i]);
    }
    free(experiment->arms);
    for (size_t i = 0; i < experiment->metric_count; i++) {
        ab_metric_release(&experiment->metrics[i]);
    }
    free(experiment->metrics);
    for (char **word = experiment->command; word != NULL && *word != NULL; word++) {
        free(*word);
    }
    free(experiment->command);
    free(experiment->started);
    free(experiment->host);
    free(experiment->gpus);
    json_decref(experiment->options);
    *experiment = (struct ab_experiment){0};
}
