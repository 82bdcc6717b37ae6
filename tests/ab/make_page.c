/* SPDX-License-Identifier: Apache-2.0 */

/* make_page FILE ARMS BLOCKS [live]: writes the example experiment, or with "live" one whose arms
 * alternate inside five runs of so many blocks each, in the format of the file's suffix. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"
#include "export.h"
#include "live_view.h"
#include "memory.h"

enum { RUNS = 5 };

/* Between 0 and 1, always the same for the same number. */
static double noise(uint64_t number)
{
    number = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(number >> 40) / (double)(1 << 24);
}

static void make_runs(struct ab_live_run *runs, size_t arms, size_t blocks)
{
    for (size_t i = 0; i < RUNS; i++) {
        runs[i] = (struct ab_live_run){
            .ranks = 8,
            .parts = 1,
            .steps = (int64_t)(blocks * arms * 20 + 40),
            .steps_most = (int64_t)(blocks * arms * 20 + 40),
            .block_count = blocks,
            .blocks = memory_allocate(blocks * arms, sizeof(double)),
            .gpu = {.known = true,
                    .flags = i == 3 ? AB_GPU_THROTTLED_POWER : 0,
                    .sm_clock_mhz = 1980,
                    .temperature_celsius = 41,
                    .power_watts = 412},
        };
        for (size_t block = 0; block < blocks; block++) {
            for (size_t arm = 0; arm < arms; arm++) {
                /* Every process has a mode of its own; the second arm is faster. */
                runs[i].blocks[block * arms + arm] =
                    0.002 * (i % 2 ? 1.4 : 1) * (arm == 1 ? 0.9 : 1) *
                    (1 + 0.04 * noise((i * blocks + block) * arms + arm));
            }
        }
    }
}

static void export_live(const struct example *example, unsigned blocks, enum ab_format format,
                        FILE *stream)
{
    const struct ab_live_plan plan = {
        .seed = 7, .slice = 20, .drop = 5, .warm_up = 40, .alpha = 0.05, .margin = 0.01};
    const size_t arms = example->experiment.arm_count;
    struct ab_live_comparison *comparisons = memory_allocate(arms, sizeof *comparisons);
    struct ab_live_run runs[RUNS];
    struct ab_live_view view;

    make_runs(runs, arms, blocks);
    ab_live_compare(comparisons, &example->experiment, runs, RUNS, &plan);
    ab_live_view_make(&view, comparisons, &example->experiment, runs, RUNS, &plan, AB_LIVE_SHOWN);
    ab_export(&view.experiment, &view.analysis, format, stream);
    ab_live_view_release(&view);
    for (size_t i = 0; i < RUNS; i++) {
        ab_live_run_release(&runs[i]);
    }
    free(comparisons);
}

int main(int argc, char **argv)
{
    struct example example;
    enum ab_format format;
    unsigned blocks;
    FILE *stream;

    if (argc < 4 || argc > 5 || !ab_format_of(argv[1], &format)) {
        fprintf(stderr, "usage: make_page FILE ARMS BLOCKS [live]\n");
        return 64;
    }
    stream = fopen(argv[1], "w");
    if (stream == NULL) {
        perror(argv[1]);
        return 1;
    }
    blocks = (unsigned)atoi(argv[3]);
    example_make(&example, (unsigned)atoi(argv[2]), argc == 5 ? 10 : blocks);
    if (argc == 5) {
        export_live(&example, blocks, format, stream);
    } else {
        ab_export(&example.experiment, &example.analysis, format, stream);
    }
    example_release(&example);
    return fclose(stream) == 0 ? 0 : 1;
}
