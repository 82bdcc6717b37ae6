/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_state.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_process.h"
#include "gpu_visible.h"
#include "memory.h"
#include "nvml_library.h"

/* How far the mean clock of a run may be from the experiment's median. */
static const double gpu_state_clock_tolerance = 0.03;

struct gpu_mean {
    double sum;
    size_t count;
};

struct gpu_state {
    struct nvml_library nvml;
    size_t device_count;
    struct gpu_device *devices;
    bool *lost; /* by device: it no longer answers, and is not asked again */
    /* Of the run. */
    pid_t process_group;
    unsigned flags;
    bool known;
    struct gpu_mean clock, temperature, power;
};

struct gpu_state *gpu_state_open(char *error, size_t size)
{
    struct gpu_state *state = memory_allocate(1, sizeof *state);

    if (!nvml_library_open(&state->nvml, error, size)) {
        free(state);
        return NULL;
    }
    state->devices = gpu_visible(&state->nvml, &state->device_count, error, size);
    if (state->device_count == 0) {
        gpu_state_close(state);
        return NULL;
    }
    state->lost = memory_allocate(state->device_count, sizeof *state->lost);
    return state;
}

char *gpu_state_describe(const struct gpu_state *state)
{
    const struct nvml_library *nvml = &state->nvml;
    char *text = memory_copy("");

    for (size_t i = 0; i < state->device_count; i++) {
        const struct gpu_device *device = &state->devices[i];
        char clocks[48] = "", limit[48] = "";
        unsigned number;
        char *longer;

        if (nvml->clock_most != NULL && nvml->clock_most(device->device, NVML_LIBRARY_CLOCK_SM,
                                                         &number) == NVML_LIBRARY_SUCCESS) {
            snprintf(clocks, sizeof clocks, ", SM clock up to %u MHz", number);
        }
        if (nvml->power_limit != NULL &&
            nvml->power_limit(device->device, &number) == NVML_LIBRARY_SUCCESS) {
            snprintf(limit, sizeof limit, ", power limit %.0f W", number / 1000.0);
        }
        longer = memory_format("%s%sGPU %u: %s, %s%s%s%s%s", text, i > 0 ? "\n" : "", device->index,
                               device->name, device->uuid, device->part[0] != '\0' ? ", part " : "",
                               device->part, clocks, limit);
        free(text);
        text = longer;
    }
    return text;
}

void gpu_state_begin(struct gpu_state *state, pid_t process_group)
{
    state->process_group = process_group;
    state->flags = 0;
    state->known = false;
    state->clock = state->temperature = state->power = (struct gpu_mean){0};
}

/* An idle GPU is slow because nothing is asked of it, and clocks that somebody set are what was
 * asked for: neither is throttling. */
static unsigned flags_of(unsigned long long reasons)
{
    unsigned flags = 0;

    if ((reasons & (NVML_LIBRARY_SW_THERMAL | NVML_LIBRARY_HW_THERMAL)) != 0) {
        flags |= AB_GPU_THROTTLED_THERMAL;
    }
    if ((reasons & NVML_LIBRARY_SW_POWER_CAP) != 0) {
        flags |= AB_GPU_THROTTLED_POWER;
    }
    if ((reasons & NVML_LIBRARY_HW_POWER_BRAKE) != 0 ||
        ((reasons & NVML_LIBRARY_HW_SLOWDOWN) != 0 && (reasons & NVML_LIBRARY_HW_THERMAL) == 0)) {
        flags |= AB_GPU_THROTTLED_OTHER;
    }
    return flags;
}

static void add(struct gpu_mean *mean, double value)
{
    mean->sum += value;
    mean->count++;
}

/* Takes note of a result; true: what was asked for is there. */
static bool answered(struct gpu_state *state, size_t device, int result)
{
    if (result == NVML_LIBRARY_GPU_IS_LOST) {
        state->lost[device] = true;
    }
    if (result != NVML_LIBRARY_SUCCESS) {
        return false;
    }
    state->known = true;
    return true;
}

/* Clocks count while the GPU works: those of an idle one say nothing about the run. */
static void sample_clocks(struct gpu_state *state, size_t index)
{
    const struct nvml_library *nvml = &state->nvml;
    nvml_library_device device = state->devices[index].device;
    unsigned long long reasons = 0;
    unsigned number;

    if (nvml->reasons != NULL && answered(state, index, nvml->reasons(device, &reasons))) {
        if ((reasons & NVML_LIBRARY_GPU_IDLE) != 0) {
            return;
        }
        state->flags |= flags_of(reasons);
    }
    if (nvml->clock != NULL && !state->lost[index] &&
        answered(state, index, nvml->clock(device, NVML_LIBRARY_CLOCK_SM, &number))) {
        add(&state->clock, number);
    }
}

static void sample_processes(struct gpu_state *state, size_t index)
{
    unsigned *pids;
    size_t count;

    if (!nvml_library_pids(&state->nvml, state->devices[index].processes, &pids, &count)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (gpu_process_is_other((pid_t)pids[i], state->process_group)) {
            state->flags |= AB_GPU_OTHER_PROCESSES;
        }
    }
    free(pids);
}

void gpu_state_sample(struct gpu_state *state)
{
    const struct nvml_library *nvml = &state->nvml;

    for (size_t i = 0; i < state->device_count; i++) {
        nvml_library_device device = state->devices[i].device;
        unsigned number;

        if (!state->lost[i]) {
            sample_clocks(state, i);
        }
        if (!state->lost[i] && nvml->temperature != NULL &&
            answered(state, i, nvml->temperature(device, NVML_LIBRARY_TEMPERATURE_GPU, &number))) {
            add(&state->temperature, number);
        }
        if (!state->lost[i] && nvml->power != NULL &&
            answered(state, i, nvml->power(device, &number))) {
            add(&state->power, number / 1000.0);
        }
        if (!state->lost[i]) {
            sample_processes(state, i);
        }
    }
}

static double mean_of(const struct gpu_mean *mean)
{
    return mean->count == 0 ? NAN : mean->sum / (double)mean->count;
}

void gpu_state_end(struct gpu_state *state, struct ab_run_gpu *gpu)
{
    *gpu = (struct ab_run_gpu){
        .known = state->known,
        .flags = state->flags,
        .sm_clock_mhz = mean_of(&state->clock),
        .temperature_celsius = mean_of(&state->temperature),
        .power_watts = mean_of(&state->power),
    };
}

void gpu_state_close(struct gpu_state *state)
{
    if (state == NULL) {
        return;
    }
    nvml_library_close(&state->nvml);
    free(state->devices);
    free(state->lost);
    free(state);
}

static bool has_clock(const struct ab_run *run)
{
    return run->gpu.known && !run->warm_up && isfinite(run->gpu.sm_clock_mhz);
}

void gpu_state_mark_clocks(struct ab_experiment *experiment)
{
    double *clocks = memory_allocate(experiment->run_count + 1, sizeof *clocks);
    size_t count = 0;
    double median;

    for (size_t i = 0; i < experiment->run_count; i++) {
        if (has_clock(&experiment->runs[i])) {
            clocks[count++] = experiment->runs[i].gpu.sm_clock_mhz;
        }
    }
    gsl_sort(clocks, 1, count);
    median = count == 0 ? NAN : gsl_stats_median_from_sorted_data(clocks, 1, count);
    free(clocks);
    for (size_t i = 0; i < experiment->run_count; i++) {
        struct ab_run *run = &experiment->runs[i];

        run->gpu.flags &= ~(unsigned)AB_GPU_CLOCKS_CHANGED;
        if (has_clock(run) &&
            fabs(run->gpu.sm_clock_mhz - median) > gpu_state_clock_tolerance * median) {
            run->gpu.flags |= AB_GPU_CLOCKS_CHANGED;
        }
    }
}
