/* SPDX-License-Identifier: Apache-2.0 */
#include "report/counters.h"

#include <errno.h>
#include <stddef.h>

#include "report/mapped.h"
#include "report/report.h"
#include "report/tables.h"

enum {
    /* Counters are reserved for so many cells at least: one small page of them. */
    CELL_STEP = 128
};

_Thread_local struct report_shard *report_shard;

/* What a thread knows of its shard besides. */
static _Thread_local struct {
    bool shares;     /* counts into the shared shard, atomically */
    bool registered; /* its end is watched */
    bool ended;
    uint32_t number;
} thread;

static bool in_use[REPORT_SHARD_LIMIT];
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
    in_use[REPORT_SHARED_SHARD] = true;
    for (uint32_t number = 0; number < REPORT_SHARD_LIMIT; number++) {
        /* Those given back as well: the report reads them, and reading a page that a full tmpfs has
         * no room for kills like writing. */
        if ((in_use[number] || number < report_counts.shards) &&
            !report_image_reserve_shard(number, shard_bytes(target)))
            return false;
    }
    reserved_cells = target;
    return true;
}

/* At the end of a thread its shard is free for another. Counts that destructors which run later
 * make go to the shared shard: nothing would give a second claim back. */
static void give_back(void *unused)
{
    (void)unused;
    thread.ended = true;
    if (report_shard == NULL)
        return;
    report_shard = NULL;
    report_lock();
    in_use[thread.number] = false;
    report_unlock();
}

/* Not a key of pthread_key_create, whose symbol version is newer than the oldest glibc that must
 * load this; C++ runtimes use the same function for their thread-local destructors. It takes the
 * loader's lock, so none of ours may be held. */
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *dso_symbol);
extern void *__dso_handle __attribute__((visibility("hidden")));

/* A shard of the thread's own, the lowest that is free, so that few pages are ever touched; NULL
 * when there is none. */
static struct report_shard *claim(void)
{
    uint32_t number = 0;
    while (number < REPORT_SHARED_SHARD && in_use[number])
        number++;
    if (number == REPORT_SHARED_SHARD ||
        !report_image_reserve_shard(number, shard_bytes(reserved_cells)))
        return NULL;
    in_use[number] = true;
    thread.number = number;
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
    if (made && !thread.ended)
        shard = claim();
    report_unlock();
    return shard;
}

struct report_shard *report_thread_shard(void)
{
    if (report_shard != NULL)
        return report_shard;
    if (thread.shares)
        return shared_shard();
    int error_number = errno;
    if (!thread.registered) {
        thread.registered = true;
        __cxa_thread_atexit_impl(give_back, NULL, &__dso_handle);
    }
    struct report_shard *shard = first_launch();
    thread.shares = shard == NULL;
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
    thread.shares = false;
    for (uint32_t number = 0; number < REPORT_SHARD_LIMIT; number++)
        in_use[number] = false;
    uint32_t cells = reserved_cells;
    reserved_cells = 0;
    if (report_image != NULL && cells != 0)
        report_counters_reserve(cells);
}
