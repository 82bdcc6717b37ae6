/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_LAYOUT_H
#define CUDAPOLICY_REPORT_LAYOUT_H

/*
 * The counters' file, byte by byte. It is sized once and sparse, so that it never moves in memory;
 * regions begin at multiples of the largest page size in use, so that each can be given disk
 * blocks, or private memory, without touching its neighbours.
 *
 * Every table only grows, and an entry is complete before the count that makes it visible is stored
 * with release semantics: whoever reads the file, at whatever moment its process died, can trust
 * the entries below the counts. Strings are named by their offset into the string region; offset 0
 * is the empty string.
 */

#include <stdint.h>

#include "report/report.h"

enum {
    REPORT_LAYOUT_VERSION = 4, /* raised with every change of what follows */
    REPORT_LAYOUT_ALIGNMENT = 65536,
    REPORT_STRINGS_SIZE = 32 * 1024 * 1024,
    REPORT_RULE_LIMIT = REPORT_RULE_NONE,
    REPORT_STREAM_LIMIT = 1024,
    REPORT_FACT_LIMIT = 1024,
    REPORT_NOTE_LIMIT = 1024,
    REPORT_MODE_LIMIT = 8,
    REPORT_SHARED_SHARD = REPORT_SHARD_LIMIT - 1
};

enum report_region {
    REPORT_REGION_HEADER,
    REPORT_REGION_STRINGS,
    REPORT_REGION_RULES,
    REPORT_REGION_KERNELS,
    REPORT_REGION_CELLS,
    REPORT_REGION_STREAMS,
    REPORT_REGION_FACTS,
    REPORT_REGION_NOTES,
    REPORT_REGION_STEPS,
    REPORT_REGION_SHARDS,
    REPORT_REGION_COUNT
};

/* Tables whose overflow is counted. */
enum report_table {
    REPORT_TABLE_KERNELS,
    REPORT_TABLE_CELLS,
    REPORT_TABLE_STREAMS,
    REPORT_TABLE_FACTS,
    REPORT_TABLE_NOTES,
    REPORT_TABLE_COUNT
};

struct report_rule_row {
    uint32_t section, name; /* strings */
    uint32_t line;
    uint32_t layer; /* string; "": the job's */
    uint32_t file;  /* string */
    uint32_t reserved;
};

struct report_kernel_row {
    uint32_t mangled, name, signature, library; /* strings */
    uint32_t demangled;
    uint32_t block_threads_least, block_threads_most;
    uint32_t shared_memory_least, shared_memory_most;
    uint32_t reserved;
    uint64_t grid_blocks_least, grid_blocks_most; /* least > most: no shape was seen */
};

struct report_cell_row {
    uint32_t kernel, detail;
    struct report_result results[REPORT_SETTING_LIMIT];
};

struct report_stream_row {
    uint32_t library, kind; /* strings */
    int32_t device;
    uint32_t flags;
    int32_t priority;
    uint32_t rule;
    struct report_result results[REPORT_SETTING_LIMIT];
    uint64_t count;
};

struct report_fact_row {
    uint32_t section, key; /* strings */
    uint32_t value;        /* string; replaced as a whole */
    uint32_t reserved;
};

struct report_note_row {
    uint32_t severity, text; /* strings */
    int64_t time;            /* of the first; nanoseconds since 1970 */
    uint64_t count;
};

/* A step of a live comparison; its number is that of the row. */
struct report_step_row {
    int64_t time; /* nanoseconds, CLOCK_MONOTONIC, of its first launch; stored last; 0: not there */
    uint32_t slice; /* REPORT_SLICE_NONE: of the warm-up */
    uint8_t arm, reserved[3];
};

/* All that must be equal for a reader to understand a file: compared as bytes. */
struct report_layout {
    uint64_t magic; /* "CUDAPLCY"; stored last */
    uint32_t version;
    uint32_t vocabulary; /* a hash of outcome.def: rows hold its numbers */
    uint64_t file_size;
    uint64_t offsets[REPORT_REGION_COUNT];
    uint64_t shard_stride;
    uint32_t limits[10];
    uint32_t row_sizes[10];
};

struct report_counts {
    uint64_t strings; /* bytes in use */
    uint32_t rules, kernels, cells, streams, facts, notes;
    uint32_t settings, entries, modes;
    uint32_t shards; /* shards below this number were in use at some time, besides the shared one */
    uint32_t overflow[REPORT_TABLE_COUNT]; /* entries that found their table full */
    uint32_t reserved;
};

struct report_process {
    uint32_t pid, reserved;
    uint64_t start_ticks;   /* field 22 of /proc/pid/stat: with the boot, tells pids apart */
    uint64_t pid_namespace; /* in which pid holds; 0: not known */
    int64_t start_time;     /* nanoseconds since 1970 */
    int64_t image;          /* nanoseconds since the boot, of the first launch: tells the programs
                               apart that one process executed one after the other */
    int64_t end_time;       /* 0: did not end in good order (yet) */
    char boot_id[40];
    uint32_t host, argv0; /* strings */
};

struct report_header {
    struct report_layout layout;
    struct report_process process;
    uint32_t
        partial; /* some pages could not be had from the disk: their counts died with the process */
    _Alignas(64) union report_control control;
    struct report_exchange exchange;
    _Alignas(64) struct report_counts counts;
    _Alignas(64) uint64_t steps; /* of a live comparison, in all; rows there may be fewer */
    struct report_live live;
    uint32_t setting_names[REPORT_SETTING_LIMIT]; /* strings, as the next two */
    uint32_t mode_names[REPORT_MODE_LIMIT];
    uint32_t entry_names[REPORT_ENTRY_LIMIT];
};

_Static_assert(sizeof(union report_control) == 8, "the control word is one word");
_Static_assert(sizeof(struct report_result) == 4, "results are compared as bytes");
_Static_assert(sizeof(struct report_header) <= REPORT_LAYOUT_ALIGNMENT, "header in its region");
_Static_assert(sizeof(struct report_header) % 8 == 0 && sizeof(struct report_rule_row) % 8 == 0 &&
                   sizeof(struct report_kernel_row) % 8 == 0 &&
                   sizeof(struct report_cell_row) % 8 == 0 &&
                   sizeof(struct report_stream_row) % 8 == 0 &&
                   sizeof(struct report_fact_row) % 8 == 0 &&
                   sizeof(struct report_note_row) % 8 == 0 &&
                   sizeof(struct report_step_row) == 16 && sizeof(struct report_shard) % 8 == 0,
               "rows are read word by word");

#define REPORT_ALIGNED(size)                                                                       \
    (((size) + REPORT_LAYOUT_ALIGNMENT - 1) / REPORT_LAYOUT_ALIGNMENT * REPORT_LAYOUT_ALIGNMENT)
#define REPORT_TABLE_SIZE(limit, row) (int)REPORT_ALIGNED((limit) * sizeof(struct row))

/* Where the regions begin, in the order of enum report_region. */
enum {
    REPORT_OFFSET_STRINGS = REPORT_LAYOUT_ALIGNMENT,
    REPORT_OFFSET_RULES = REPORT_OFFSET_STRINGS + REPORT_ALIGNED(REPORT_STRINGS_SIZE),
    REPORT_OFFSET_KERNELS =
        REPORT_OFFSET_RULES + REPORT_TABLE_SIZE(REPORT_RULE_LIMIT, report_rule_row),
    REPORT_OFFSET_CELLS =
        REPORT_OFFSET_KERNELS + REPORT_TABLE_SIZE(REPORT_KERNEL_LIMIT, report_kernel_row),
    REPORT_OFFSET_STREAMS =
        REPORT_OFFSET_CELLS + REPORT_TABLE_SIZE(REPORT_CELL_LIMIT, report_cell_row),
    REPORT_OFFSET_FACTS =
        REPORT_OFFSET_STREAMS + REPORT_TABLE_SIZE(REPORT_STREAM_LIMIT, report_stream_row),
    REPORT_OFFSET_NOTES =
        REPORT_OFFSET_FACTS + REPORT_TABLE_SIZE(REPORT_FACT_LIMIT, report_fact_row),
    REPORT_OFFSET_STEPS =
        REPORT_OFFSET_NOTES + REPORT_TABLE_SIZE(REPORT_NOTE_LIMIT, report_note_row),
    REPORT_OFFSET_SHARDS =
        REPORT_OFFSET_STEPS + REPORT_TABLE_SIZE(REPORT_STEP_LIMIT, report_step_row),
    REPORT_SHARD_STRIDE = REPORT_TABLE_SIZE(1, report_shard),
    REPORT_FILE_SIZE = REPORT_OFFSET_SHARDS + REPORT_SHARD_LIMIT * REPORT_SHARD_STRIDE
};

/* The layout of this build; the magic included. Allocates nothing, takes no lock. */
void report_layout_fill(struct report_layout *layout);

/* Offset and size of a region, in a file of this build. */
uint64_t report_region_offset(enum report_region region);
uint64_t report_region_size(enum report_region region);

#endif
