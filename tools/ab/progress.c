/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

char *progress_duration(double seconds)
{
    if (seconds < 99.5) {
        return memory_format("%.0f s", ceil(seconds));
    }
    if (seconds < 99.5 * 60) {
        return memory_format("%.0f min", ceil(seconds / 60));
    }
    return memory_format("%.1f h", seconds / 3600);
}

void progress_start(struct progress *progress, const char *label, bool quiet)
{
    const char *terminal = getenv("TERM");

    *progress = (struct progress){
        .quiet = quiet,
        .terminal = isatty(STDERR_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0,
        .label = label,
        .started = now(),
    };
}

void progress_clear(struct progress *progress)
{
    if (progress->shown) {
        fputs("\r\033[K", stderr);
        progress->shown = false;
    }
}

static uint32_t last_block(const struct ab_experiment *experiment)
{
    return experiment->plan.looks[experiment->plan.look_count - 1];
}

/* Where every block of the plan is made; from how long runs took so far, with all around them.
 * To be freed; "" before there is a run to tell from. */
static char *time_left(const struct progress *progress, const struct ab_experiment *experiment,
                       const struct ab_run *run, bool run_is_over)
{
    double blocks = (double)last_block(experiment) - run->block;
    double each = (double)(now() - progress->started) / 1e9 / (double)progress->made, runs;
    char *duration, *text;

    if (progress->made == 0) {
        return memory_copy("");
    }
    if (run->warm_up) {
        blocks += experiment->plan.warm_up_blocks;
    }
    runs = blocks * (double)experiment->arm_count - run->position - run_is_over;
    duration = progress_duration(each * runs);
    text =
        memory_format(", %s%s left", experiment->plan.look_count > 1 ? "at most " : "", duration);
    free(duration);
    return text;
}

static char *where(const struct ab_experiment *experiment, const struct ab_run *run)
{
    if (run->warm_up) {
        return memory_format("warm-up block %u of %u", run->block + 1,
                             experiment->plan.warm_up_blocks);
    }
    return memory_format("block %u of %s%u", run->block + 1,
                         experiment->plan.look_count > 1 ? "at most " : "", last_block(experiment));
}

static char *failures(const struct progress *progress)
{
    if (progress->failed == 0) {
        return memory_copy("");
    }
    return memory_format(", %zu run%s failed", progress->failed, progress->failed == 1 ? "" : "s");
}

void progress_run(struct progress *progress, const struct ab_experiment *experiment,
                  const struct ab_run *run)
{
    char *place, *left, *failed;

    if (progress->quiet || !progress->terminal) {
        return;
    }
    place = where(experiment, run);
    left = time_left(progress, experiment, run, false);
    failed = failures(progress);
    progress_clear(progress);
    fprintf(stderr, "%s%s, run %u of %zu%s%s", progress->label, place, run->position + 1,
            experiment->arm_count, failed, left);
    fflush(stderr);
    progress->shown = true;
    free(place);
    free(left);
    free(failed);
}

void progress_made(struct progress *progress, const struct ab_run *run)
{
    progress->made++;
    progress->failed += run->outcome != AB_OK;
}

void progress_block(struct progress *progress, const struct ab_experiment *experiment,
                    const struct ab_run *run)
{
    char *place, *left, *failed;

    if (progress->quiet || progress->terminal) {
        return;
    }
    place = where(experiment, run);
    left = time_left(progress, experiment, run, true);
    failed = failures(progress);
    fprintf(stderr, "cudapolicy: %s%s done%s%s\n", progress->label, place, failed, left);
    free(place);
    free(left);
    free(failed);
}
