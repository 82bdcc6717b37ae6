/* SPDX-License-Identifier: Apache-2.0 */
#include "report/counters.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/mapped.h"
#include "report/report.h"
#include "report/tables.h"

enum {
    /* Counters are reserved for so many cells at least: one small page of them. */
    CELL_STEP = 128
};

_Thread_local struct report_shard *report_shard;

/* The calling thread counts into the shared shard, atomically. */
static _Thread_local bool shares;

/* By shard: the thread that counts into it, 0 when nobody ever did. */
static pid_t owners[REPORT_SHARD_LIMIT];
static uint32_t reserved_cells;

/* Serves when there is no address space for an image: threads have somewhere to count. Nobody reads
 * it. */
static struct report_shard unread_shard;

static struct report_shard *shared_shard(void)
{
    return report_image == NULL ? &unread_shard : report_image_shard(REPORT_SHARED_SHARD);
}

static uint64_t shard_bytes(uint32_t cells)
{
    return offsetof(struct report_shard, launches) +
           cells * sizeof((struct report_shard *)0)->launches[0];
}

bool report_counters_reserve(uint32_t cells)
{
    uint32_t target = reserved_cells == 0 ? CELL_STEP : reserved_cells;
    if (cells <= reserved_cells)
        return true;
    while (target < cells)
        target *= 2;
    if (target > REPORT_CELL_LIMIT)
        target = REPORT_CELL_LIMIT;
    for (uint32_t number = 0; number < report_counts.shards; number++) {
        if (!report_image_reserve_shard(number, shard_bytes(target)))
            return false;
    }
    if (!report_image_reserve_shard(REPORT_SHARED_SHARD, shard_bytes(target)))
        return false;
    reserved_cells = target;
    return true;
}

/*
 * Whether a thread of this process has ended. Asked when another one needs a shard, because every
 * way to be told of the end has a price: a key's destructor is a symbol newer than the oldest glibc
 * that must load this, and __cxa_thread_atexit_impl waits for the loader's lock, whose holder may
 * be a constructor that waits for this thread. A number that was given to a new thread meanwhile
 * reads as alive, which costs a shard and no count.
 */
static bool has_ended(pid_t thread)
{
    return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

/* A shard of the thread's own, the lowest that is free, so that few pages are ever touched; NULL
 * when there is none. */
static struct report_shard *claim(void)
{
    pid_t self = (pid_t)syscall(SYS_gettid);
    uint32_t number = 0;
    while (number < REPORT_SHARED_SHARD && owners[number] != 0 && owners[number] != self &&
           !has_ended(owners[number]))
        number++;
    if (number == REPORT_SHARED_SHARD ||
        !report_image_reserve_shard(number, shard_bytes(reserved_cells)))
        return NULL;
    owners[number] = self;
    if (report_counts.shards <= number)
        report_counts.shards = number + 1;
    report_image_publish();
    return report_image_shard(number);
}

/* The first launch of a thread, perhaps of the process. */
static struct report_shard *first_launch(void)
{
    struct report_shard *shard = NULL;
    report_lock();
    bool made = report_tables_make();
    report_image_settle();
    if (made)
        shard = claim();
    report_unlock();
    return shard;
}

struct report_shard *report_thread_shard(void)
{
    if (report_shard != NULL)
        return report_shard;
    if (shares)
        return shared_shard();
    int error_number = errno;
    struct report_shard *shard = first_launch();
    shares = shard == NULL;
    report_shard = shard;
    errno = error_number;
    return shard == NULL ? shared_shard() : shard;
}

void report_count_launch_shared(uint32_t cell, enum report_launch_kind kind, uint64_t count)
{
    struct report_shard *shard = report_thread_shard();
    if (report_shard == NULL)
        __atomic_fetch_add(&shard->launches[cell][kind], count, __ATOMIC_RELAXED);
    else
        report_count_launch(cell, kind, count);
}

/* A process that makes calls but launches nothing has no file: calls of a thread that launched
 * nothing yet do not claim a shard. */
void report_count_entry_shared(uint32_t entry)
{
    if (__atomic_load_n(&report_image_settled, __ATOMIC_ACQUIRE)) {
        __atomic_fetch_add(&shared_shard()->entry_calls[entry], 1, __ATOMIC_RELAXED);
        return;
    }
    int error_number = errno;
    report_lock();
    report_tables_make();
    __atomic_fetch_add(&shared_shard()->entry_calls[entry], 1, __ATOMIC_RELAXED);
    report_unlock();
    errno = error_number;
}

static void change_gate(uint32_t change)
{
    report_lock();
    uint32_t *gate = &report_control->part.gate;
    uint32_t value = __atomic_load_n(gate, __ATOMIC_RELAXED);
    if (value + change != UINT32_MAX)
        __atomic_store_n(gate, value + change, __ATOMIC_SEQ_CST);
    report_unlock();
}

void report_gate_raise(void)
{
    change_gate(1);
}

void report_gate_lower(void)
{
    change_gate(UINT32_MAX);
}

void report_counters_after_fork(void)
{
    report_shard = NULL;
    shares = false;
    memset(owners, 0, sizeof owners);
    uint32_t cells = reserved_cells;
    reserved_cells = 0;
    if (report_image != NULL && cells != 0)
        report_counters_reserve(cells);
}
