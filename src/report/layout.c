/* SPDX-License-Identifier: Apache-2.0 */
#include "report/layout.h"

#include <string.h>

static const uint64_t region_offsets[REPORT_REGION_COUNT + 1] = {
    [REPORT_REGION_HEADER] = 0,
    [REPORT_REGION_STRINGS] = REPORT_OFFSET_STRINGS,
    [REPORT_REGION_RULES] = REPORT_OFFSET_RULES,
    [REPORT_REGION_KERNELS] = REPORT_OFFSET_KERNELS,
    [REPORT_REGION_CELLS] = REPORT_OFFSET_CELLS,
    [REPORT_REGION_STREAMS] = REPORT_OFFSET_STREAMS,
    [REPORT_REGION_FACTS] = REPORT_OFFSET_FACTS,
    [REPORT_REGION_NOTES] = REPORT_OFFSET_NOTES,
    [REPORT_REGION_STEPS] = REPORT_OFFSET_STEPS,
    [REPORT_REGION_SHARDS] = REPORT_OFFSET_SHARDS,
    [REPORT_REGION_COUNT] = REPORT_FILE_SIZE,
};

uint64_t report_region_offset(enum report_region region)
{
    return region_offsets[region];
}

uint64_t report_region_size(enum report_region region)
{
    return region_offsets[region + 1] - region_offsets[region];
}

static uint32_t hash_text(uint32_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    while (*text++ != '\0');
    return hash;
}

void report_layout_fill(struct report_layout *layout)
{
    memset(layout, 0, sizeof *layout);
    memcpy(&layout->magic, "CUDAPLCY", sizeof layout->magic);
    layout->version = REPORT_LAYOUT_VERSION;
    layout->vocabulary = 2166136261u;
    for (unsigned i = 0; i < REPORT_OUTCOME_COUNT; i++)
        layout->vocabulary = hash_text(layout->vocabulary, report_outcome_text(i));
    for (unsigned i = 0; i < REPORT_REASON_COUNT; i++)
        layout->vocabulary = hash_text(layout->vocabulary, report_reason_text(i));
    memcpy(layout->offsets, region_offsets, sizeof layout->offsets);
    layout->file_size = REPORT_FILE_SIZE;
    layout->shard_stride = REPORT_SHARD_STRIDE;
    const uint32_t limits[] = {REPORT_SETTING_LIMIT, REPORT_ENTRY_LIMIT, REPORT_KERNEL_LIMIT,
                               REPORT_CELL_LIMIT,    REPORT_SHARD_LIMIT, REPORT_LAUNCH_KIND_COUNT,
                               REPORT_STREAM_LIMIT,  REPORT_MODE_LIMIT,  REPORT_STEP_LIMIT};
    const uint32_t row_sizes[] = {sizeof(struct report_header),     sizeof(struct report_rule_row),
                                  sizeof(struct report_kernel_row), sizeof(struct report_cell_row),
                                  sizeof(struct report_stream_row), sizeof(struct report_fact_row),
                                  sizeof(struct report_note_row),   sizeof(struct report_shard),
                                  sizeof(struct report_step_row)};
    memcpy(layout->limits, limits, sizeof limits);
    memcpy(layout->row_sizes, row_sizes, sizeof row_sizes);
}
