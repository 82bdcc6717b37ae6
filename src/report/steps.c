/* SPDX-License-Identifier: Apache-2.0 */
#include "report/steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "report/mapped.h"
#include "report/report.h"
#include "report/tables.h"

enum {
    /* Rows are reserved in steps of this size: one system call for so many steps. */
    ROWS_STEP = 4096
};

static uint64_t rows_reserved; /* atomic */
static bool rows_ended;        /* atomic: no more can be had */
static uint64_t latest_order;  /* of report_arm_set, under the lock */

static int64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Locked. Between the two stores they differ, and launches take the long way. */
static void set_arm(uint8_t arm)
{
    union report_control expected = {.whole = report_control_expected};
    expected.part.arm = arm;
    __atomic_store_n(&report_control->part.arm, arm, __ATOMIC_RELAXED);
    __atomic_store_n(&report_control_expected, expected.whole, __ATOMIC_RELEASE);
}

void report_live(const struct report_live *live)
{
    int error_number = errno;
    report_lock();
    if (report_tables_make()) {
        report_image_header()->live = *live;
        /* Steps of several hosts can be told to be side by side or one after the other. */
        report_image_header()->live.clock = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
        report_image_header()->steps = 0;
    }
    latest_order = 0;
    set_arm(0);
    report_unlock();
    errno = error_number;
}

static __attribute__((noinline)) bool reserve_rows(uint64_t number)
{
    uint64_t rows = (number / ROWS_STEP + 1) * ROWS_STEP;
    int error_number = errno;
    report_lock();
    bool reserved =
        report_image != NULL &&
        report_image_reserve(REPORT_REGION_STEPS, rows * sizeof(struct report_step_row));
    if (reserved && rows > rows_reserved)
        __atomic_store_n(&rows_reserved, rows, __ATOMIC_RELEASE);
    if (!reserved)
        __atomic_store_n(&rows_ended, true, __ATOMIC_RELAXED);
    report_unlock();
    errno = error_number;
    return reserved;
}

void report_step(uint64_t number, uint32_t slice, uint8_t arm)
{
    const int64_t time = now(CLOCK_MONOTONIC);
    /* The image is where it stays once this thread has a shard. */
    if (report_shard == NULL)
        report_thread_shard();
    if (report_image == NULL)
        return;
    uint64_t *steps = &report_image_header()->steps;
    if (number < REPORT_STEP_LIMIT && !__atomic_load_n(&rows_ended, __ATOMIC_RELAXED) &&
        (number < __atomic_load_n(&rows_reserved, __ATOMIC_ACQUIRE) || reserve_rows(number))) {
        struct report_step_row *row =
            (struct report_step_row *)(void *)(report_image + REPORT_OFFSET_STEPS) + number;
        __atomic_store_n(&row->slice, slice, __ATOMIC_RELAXED);
        __atomic_store_n(&row->arm, arm, __ATOMIC_RELAXED);
        __atomic_store_n(&row->time, time, __ATOMIC_RELEASE);
    }
    uint64_t seen = __atomic_load_n(steps, __ATOMIC_RELAXED);
    while (seen < number + 1 && !__atomic_compare_exchange_n(steps, &seen, number + 1, true,
                                                             __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

void report_arm_set(uint64_t order, uint8_t arm)
{
    report_lock();
    if (order > latest_order) {
        latest_order = order;
        set_arm(arm);
    }
    report_unlock();
}

void report_steps_after_fork(void)
{
    rows_reserved = 0;
    rows_ended = false;
    if (report_image != NULL)
        report_image_header()->steps = 0;
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

/* From the step `drop` of the slice that begins at first to the next slice's first. */
static double slice_seconds(const struct report_live *live, const struct report_step_row *rows,
                            size_t row_count, const struct report_slice *slice)
{
    uint64_t from = slice->first + live->drop, to = slice->first + live->slice;
    if (slice->steps != live->slice || live->drop >= live->slice || to >= row_count ||
        rows[from].time == 0 || rows[to].time == 0 || rows[to].time < rows[from].time)
        return NAN;
    return (double)(rows[to].time - rows[from].time) * 1e-9;
}

struct report_slice *report_slices(const struct report_live *live,
                                   const struct report_step_row *rows, size_t row_count,
                                   size_t *count)
{
    struct report_slice *slices = NULL;
    size_t number = 0, capacity = 0;
    *count = 0;
    for (size_t i = 0; i < row_count; i++) {
        if (rows[i].time == 0 || rows[i].slice == REPORT_SLICE_NONE)
            continue;
        if (number != 0 && slices[number - 1].number == rows[i].slice) {
            slices[number - 1].steps = i + 1 - slices[number - 1].first;
            continue;
        }
        if (number == capacity) {
            capacity = capacity == 0 ? 64 : capacity * 2;
            struct report_slice *larger = realloc(slices, capacity * sizeof *larger);
            if (larger == NULL) {
                free(slices);
                return NULL;
            }
            slices = larger;
        }
        slices[number++] = (struct report_slice){
            .number = rows[i].slice, .arm = rows[i].arm, .first = i, .steps = 1};
    }
    for (size_t i = 0; i < number; i++)
        slices[i].seconds = slice_seconds(live, rows, row_count, &slices[i]);
    *count = number;
    return slices;
}
