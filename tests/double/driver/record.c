/* SPDX-License-Identifier: Apache-2.0 */
/* The record: each call becomes one line and, when kept, one struct recording_call. */
#include "driver.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;
static bool forked;      /* in a child made by fork, where it is said on each line */
static bool fork_broken; /* in a child of a process that had called cuInit */

static struct recording_call **kept;
static size_t kept_count, kept_capacity;

static atomic_uint threads;
static __thread unsigned int this_thread;
__thread unsigned char driver_resolved;

/* With IN_TURN the lock goes to the thread that waits longest; otherwise a thread that calls again
 * at once mostly has it again, and calls of several threads hardly ever come between each other. */
static bool in_turn;
static atomic_uint next_turn, turn;

void driver_lock(void)
{
    if (in_turn) {
        unsigned int mine = atomic_fetch_add(&next_turn, 1);
        while (atomic_load(&turn) != mine)
            sched_yield();
    }
    pthread_mutex_lock(&lock);
}

void driver_unlock(void)
{
    pthread_mutex_unlock(&lock);
    if (in_turn)
        atomic_fetch_add(&turn, 1);
}

unsigned int thread_ordinal(void)
{
    if (this_thread == 0)
        this_thread = atomic_fetch_add(&threads, 1) + 1;
    return this_thread;
}

static void fork_child(void)
{
    forked = true;
    if (driver_initialized())
        fork_broken = true;
    driver_unlock();
    atomic_store(&turn, atomic_load(&next_turn)); /* those who waited are not here */
}

__attribute__((constructor)) static void record_start(void)
{
    configuration_load();
    in_turn = configuration.in_turn;
    /* What orders this before every call: the loader's own lock does, too, which the thread
     * sanitizer does not see. */
    driver_lock();
    driver_unlock();
    /* The child must not inherit a lock that some other thread of its parent held. */
    pthread_atfork(driver_lock, driver_unlock, fork_child);
}

/* The log is appended to, so that several processes of one test can share it. */
void record_reopen(void)
{
    if (log_file >= 0)
        close(log_file);
    log_file = -1;
    if (configuration.log[0] != '\0')
        log_file = open(configuration.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

static void record_free(struct recording_call *record)
{
    free((void *)(uintptr_t)record->text);
    free((void *)(uintptr_t)record->kernel);
    free((void *)(uintptr_t)record->stream_name);
    free(record);
}

void record_forget(void)
{
    for (size_t i = 0; i < kept_count; i++)
        record_free(kept[i]);
    kept_count = 0;
}

static void record_keep(struct recording_call *record)
{
    if (kept_count == kept_capacity) {
        size_t capacity = kept_capacity == 0 ? 256 : 2 * kept_capacity;
        struct recording_call **more = realloc(kept, capacity * sizeof(struct recording_call *));
        if (more == NULL)
            abort();
        kept = more;
        kept_capacity = capacity;
    }
    kept[kept_count++] = record;
}

static void record_write(const struct text *line)
{
    size_t done = 0;
    while (log_file >= 0 && done < line->length) {
        ssize_t wrote = write(log_file, line->data + done, line->length - done);
        if (wrote < 0 && errno != EINTR)
            return;
        if (wrote > 0)
            done += (size_t)wrote;
    }
}

static struct call begin(const char *name, bool early)
{
    struct call call = {.name = name, .result = CUDA_SUCCESS, .record = NULL};
    unsigned int thread = thread_ordinal();
    driver_lock();
    bool resolved = driver_resolved != 0;
    driver_resolved = 0;
    if (atomic_load_explicit(&driver_watched, memory_order_relaxed) &&
        !configuration_lists(configuration.skip, name)) {
        call.record = calloc(1, sizeof(*call.record));
        if (call.record == NULL)
            abort();
        call.record->name = name;
        call.record->thread = thread;
        call.record->resolved = resolved;
    }
    call.result = failure_next(name, resolved);
    if (call.result != CUDA_SUCCESS && call.record != NULL)
        call.record->injected = true;
    /* Seen with the real driver: no call works in a child whose parent had called cuInit. */
    if (call.result == CUDA_SUCCESS && fork_broken && configuration.fork_refused)
        call.result = CUDA_ERROR_NOT_INITIALIZED;
    if (call.result == CUDA_SUCCESS && !early && !driver_initialized())
        call.result = CUDA_ERROR_NOT_INITIALIZED;
    return call;
}

struct call call_begin(const char *name)
{
    return begin(name, false);
}

struct call call_begin_early(const char *name)
{
    return begin(name, true);
}

struct call_node {
    struct call_node *next;
    struct recording_call *record;
};

static void finish(struct recording_call *record, struct text *line)
{
    record_write(line);
    line->data[--line->length] = '\0';
    record->text = line->data;
    if (configuration.keep)
        record_keep(record);
    else
        record_free(record);
}

void call_node(struct call *call, const struct CUgraphExec_st *executable, CUgraphNode node)
{
    if (call->record == NULL)
        return;
    struct recording_call *record = calloc(1, sizeof(*record));
    struct call_node *entry = calloc(1, sizeof(*entry));
    if (record == NULL || entry == NULL)
        abort();
    record->name = "node";
    record->thread = call->record->thread;
    /* A call of its own, so that the same functions describe it. */
    struct call part = {.name = "node", .record = record};
    call_object(&part, "executable", OBJECT_EXECUTABLE, executable);
    call_kernel_node(&part, &node->kernel);
    if (kernel_node_hangs(&node->kernel))
        call_add(&part, "hangs=1");
    record->text = part.details.data;
    entry->record = record;
    if (call->last_node == NULL)
        call->nodes = entry;
    else
        call->last_node->next = entry;
    call->last_node = entry;
}

static void finish_nodes(struct call *call)
{
    unsigned int index = 0;
    while (call->nodes != NULL) {
        struct call_node *entry = call->nodes;
        struct text line = {NULL, 0, 0};
        call->nodes = entry->next;
        text_add(&line, "node=%u%s\n", ++index, entry->record->text);
        free((void *)(uintptr_t)entry->record->text);
        finish(entry->record, &line);
        free(entry);
    }
}

CUresult call_end(struct call *call, CUresult result)
{
    struct recording_call *record = call->record;
    if (record == NULL) {
        driver_unlock();
        return result;
    }
    record->result = result;
    struct text line = {NULL, 0, 0};
    text_add(&line, "call=%s", call->name);
    if (call->details.length != 0)
        text_add(&line, "%s", call->details.data);
    text_add(&line, " thread=%u", record->thread);
    if (configuration.distinct_pointers)
        text_add(&line, " route=%s", record->resolved ? "resolved" : "exported");
    if (forked)
        text_add(&line, " process=child");
    if (record->injected)
        text_add(&line, " injected=1");
    text_add(&line, " result=%d\n", (int)result);
    finish(record, &line);
    free(call->details.data);
    finish_nodes(call);
    driver_unlock();
    return result;
}

/* --- what tests call ------------------------------------------------------------------------- */

#define EXPORT __attribute__((visibility("default")))

EXPORT void recording_driver_reset(void)
{
    driver_lock();
    driver_reset();
    record_forget();
    configuration_load();
    configuration.keep = true;
    configuration_refresh();
    driver_unlock();
}

EXPORT void recording_driver_forget(void)
{
    driver_lock();
    record_forget();
    failure_restart();
    driver_unlock();
}

EXPORT void recording_driver_note(const char *text)
{
    struct text line = {NULL, 0, 0};
    unsigned int thread = thread_ordinal();
    driver_lock();
    text_add(&line, "note=%s thread=%u%s\n", text, thread, forked ? " process=child" : "");
    record_write(&line);
    driver_unlock();
    free(line.data);
}

EXPORT int recording_driver_configure(const char *key, const char *value)
{
    driver_lock();
    int status = configuration_set(key, value);
    driver_unlock();
    return status;
}

static bool named(const struct recording_call *record, const char *name)
{
    return name == NULL || strcmp(record->name, name) == 0;
}

EXPORT size_t recording_driver_call_count(const char *name)
{
    size_t count = 0;
    driver_lock();
    for (size_t i = 0; i < kept_count; i++)
        count += named(kept[i], name);
    driver_unlock();
    return count;
}

EXPORT const struct recording_call *recording_driver_call_named(const char *name, size_t index)
{
    const struct recording_call *found = NULL;
    driver_lock();
    for (size_t i = 0; i < kept_count && found == NULL; i++)
        if (named(kept[i], name) && index-- == 0)
            found = kept[i];
    driver_unlock();
    return found;
}

EXPORT const struct recording_call *recording_driver_call(size_t index)
{
    return recording_driver_call_named(NULL, index);
}

EXPORT size_t recording_driver_live(const char *kind)
{
    size_t count = 0;
    driver_lock();
    for (int i = 0; i < OBJECT_KINDS; i++)
        if (strcmp(object_kind_name(i), kind) == 0)
            count = object_live(i);
    driver_unlock();
    return count;
}

EXPORT const CUlaunchAttributeValue *
recording_attribute(const struct recording_attributes *attributes, unsigned int id)
{
    for (unsigned int i = 0; i < attributes->count; i++)
        if ((unsigned int)attributes->list[i].id == id)
            return &attributes->list[i].value;
    return NULL;
}
