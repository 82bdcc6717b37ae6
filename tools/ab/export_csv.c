/* SPDX-License-Identifier: Apache-2.0 */
#include "export_formats.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Columns are separated by commas, lines end with CR LF, and what holds either or a quotation mark
 * is quoted. */
static void write_field(FILE *stream, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', stream);
        }
        fputc(*text, stream);
    }
    fputc('"', stream);
}

static void write_text(FILE *stream, const char *text)
{
    fputc(',', stream);
    if (text != NULL) {
        write_field(stream, text);
    }
}

/* Nothing where there is no number; else all of its digits. */
static void write_number(FILE *stream, double number)
{
    fputc(',', stream);
    if (isfinite(number)) {
        fprintf(stream, "%.17g", number);
    }
}

static void write_count(FILE *stream, bool known, int64_t count)
{
    fputc(',', stream);
    if (known) {
        fprintf(stream, "%" PRId64, count);
    }
}

static void write_flags(FILE *stream, const struct ab_run_gpu *gpu)
{
    static const enum ab_gpu_flag flags[] = {AB_GPU_THROTTLED_THERMAL, AB_GPU_THROTTLED_POWER,
                                             AB_GPU_THROTTLED_OTHER, AB_GPU_OTHER_PROCESSES,
                                             AB_GPU_CLOCKS_CHANGED};

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        write_count(stream, gpu->known, (gpu->flags & flags[i]) != 0);
    }
}

static void write_heading(const struct ab_experiment *experiment, FILE *stream)
{
    static const char *const values[] = {"", ".values", ".warm_up", ".autocorrelation"};

    fputs("run,block,position,warm_up,arm,role,outcome,status,message,start_time_ns,seconds,"
          "throttled_thermal,throttled_power,throttled_other,other_processes,clocks_changed,"
          "sm_clock_mhz,temperature_celsius,power_watts,processes,launches,applied,already_so,"
          "kept,refused,rules,rules_matched",
          stream);
    if (experiment->live != NULL) {
        fputs(",live_run", stream);
    }
    for (size_t metric = 0; metric < experiment->metric_count; metric++) {
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            char name[512];

            snprintf(name, sizeof name, "%s%s", experiment->metrics[metric].name, values[i]);
            write_text(stream, name);
        }
    }
    fputs("\r\n", stream);
}

static void write_run(const struct ab_experiment *experiment, size_t number, FILE *stream)
{
    static const char *const roles[] = {"baseline", "repeat", "cost", "candidate"};
    const struct ab_run *run = &experiment->runs[number];
    const struct ab_run_policy *policy = &run->policy;

    fprintf(stream, "%zu,%" PRIu32 ",%" PRIu32 ",%d", number, run->block, run->position,
            run->warm_up);
    write_text(stream, experiment->arms[run->arm].name);
    write_text(stream, roles[experiment->arms[run->arm].role]);
    write_text(stream, ab_outcome_names[run->outcome]);
    write_count(stream, true, run->status);
    write_text(stream, run->message);
    write_count(stream, true, run->start_time);
    write_number(stream, run->seconds);
    write_flags(stream, &run->gpu);
    write_number(stream, run->gpu.known ? run->gpu.sm_clock_mhz : NAN);
    write_number(stream, run->gpu.known ? run->gpu.temperature_celsius : NAN);
    write_number(stream, run->gpu.known ? run->gpu.power_watts : NAN);
    write_count(stream, policy->known, policy->processes);
    write_count(stream, policy->known, policy->launches);
    write_count(stream, policy->known, policy->applied);
    write_count(stream, policy->known, policy->already_so);
    write_count(stream, policy->known, policy->kept);
    write_count(stream, policy->known, policy->refused);
    write_count(stream, policy->known, policy->rules);
    write_count(stream, policy->known, policy->rules_matched);
    if (experiment->live != NULL) {
        write_count(stream, true, run->live_run);
    }
    for (size_t metric = 0; metric < experiment->metric_count; metric++) {
        const struct ab_run_value *value = &run->values[metric];

        write_number(stream, value->value);
        write_count(stream, true, value->count);
        write_count(stream, true, value->warm_up);
        write_number(stream, value->autocorrelation);
    }
    fputs("\r\n", stream);
}

void ab_export_csv(const struct ab_experiment *experiment, FILE *stream)
{
    write_heading(experiment, stream);
    for (size_t i = 0; i < experiment->run_count; i++) {
        write_run(experiment, i, stream);
    }
}
