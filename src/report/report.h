/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_REPORT_H
#define CUDAPOLICY_REPORT_REPORT_H

/*
 * What a process did, kept where it survives the process: a file mapped shared, one for each
 * process that launched a kernel. It holds the names of kernels and rules, a table of cells, the
 * counters of each cell sharded by thread, streams, routes, facts about the process, and the
 * control word.
 *
 * A cell stands for one kernel together with one set of outcomes, so that a launch raises exactly
 * one counter whatever happened to its settings. Cells are made when a combination is first seen.
 *
 * This module knows neither policies nor CUDA: settings, rules and entry points are numbers here,
 * whose names the caller gives at the start.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/outcome.h"

enum {
    REPORT_SETTING_LIMIT = 16,
    REPORT_RULE_NONE = 0xffff,
    REPORT_ENTRY_LIMIT = 512,    /* entry points */
    REPORT_KERNEL_LIMIT = 8192,  /* further kernels share kernel 0, "(others)" */
    REPORT_CELL_LIMIT = 16384,   /* further cells share cell 0 */
    REPORT_SHARD_LIMIT = 256,    /* threads beyond share the last shard, with atomic increments */
    REPORT_STEP_LIMIT = 1 << 19, /* of a live comparison; later ones are counted only */
    REPORT_ARM_LIMIT = 16,
};

/* How a launch came about. */
enum report_launch_kind {
    REPORT_LAUNCH_EAGER,
    REPORT_LAUNCH_CAPTURED, /* became a node of a graph */
    REPORT_LAUNCH_NODE,     /* a node added or changed explicitly */
    REPORT_LAUNCH_REPLAYED, /* graph launches times nodes */
    REPORT_LAUNCH_KIND_COUNT
};

/* One thread's counters, in the mapped file. The layout is read by the assembly of the entry stubs.
 */
struct report_shard {
    uint64_t entry_calls[REPORT_ENTRY_LIMIT];
    uint64_t launches[REPORT_CELL_LIMIT][REPORT_LAUNCH_KIND_COUNT];
};

/* The calling thread's shard: NULL until report_thread_shard() was called in this thread, and again
 * after fork. */
extern _Thread_local struct report_shard *report_shard
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The control word, shared with other processes through the mapped file; also the gate of the entry
 * stubs, which take their short way only while *report_control equals report_control_expected. */
union report_control {
    uint64_t whole;
    struct {
        uint8_t mode; /* enum policy_mode of the process; written by the controlling process */
        uint8_t arm;  /* of a live comparison, else 0; written by the process itself */
        uint16_t generation; /* raised with every change from outside */
        uint32_t gate;       /* raised by the process itself while every launch must be looked at */
    } part;
};
/* Never NULL: points to a private word before the file is mapped and in a process without one. */
extern union report_control *report_control __attribute__((visibility("hidden")));
extern uint64_t report_control_expected __attribute__((visibility("hidden")));

/* Changes with the arm, and with the mode. Launch path. */
static inline uint64_t report_control_expected_now(void)
{
    return __atomic_load_n(&report_control_expected, __ATOMIC_RELAXED);
}

/* The word that is in use now. Launch path. */
static inline union report_control *report_control_now(void)
{
    return __atomic_load_n(&report_control, __ATOMIC_ACQUIRE);
}

/* Short ways may be taken again while the word is as it was just read, whatever the arm. Locks. */
void report_control_expect(union report_control word);

/* What others ask of the process beside the word, and what it answers: in the mapped file. */
enum report_reload {
    REPORT_RELOAD_NONE,
    REPORT_RELOAD_DONE,
    REPORT_RELOAD_REFUSED, /* the policy before stays */
};
struct report_exchange {
    uint32_t mode_changes;    /* by others: how often they set the mode */
    uint32_t reload_wanted;   /* by others: how often they asked for the policy to be read again */
    uint32_t reload_answered; /* by the process: the reload_wanted that the rest is about */
    uint32_t reload_outcome;  /* enum report_reload */
    uint32_t generation;      /* of the control word: the last one that the process acted on */
    uint32_t reserved;
    int64_t reload_time; /* nanoseconds since 1970 */
};

/* What others ask now. Any thread. */
void report_exchange_read(struct report_exchange *exchange);
/* The answer. Locks. */
void report_exchange_answer(uint32_t reload_wanted, enum report_reload outcome);
/* The process acted on all that this generation of the control word stands for. Locks. */
void report_exchange_acted(uint16_t generation);

/* Sets the mode, unless others set it before. False: they did. Locks. */
bool report_control_set_mode(uint8_t mode);

/* Sets the mode whatever others did, and returns the word as it is then. */
union report_control report_control_lower_mode(uint8_t mode);

/* Adds 1 to (or takes 1 from) the gate. Any thread. */
void report_gate_raise(void);
void report_gate_lower(void);

struct report_rule_name {
    const char *section; /* "kernel" or "stream" */
    const char *name;
    uint32_t line;
    const char *layer; /* "" or NULL: the job's own policy */
    const char *file;  /* NULL: not known */
};

struct report_start {
    const char *path; /* of the JSON report, templates expanded; NULL: counters are kept in private
                         memory and no report is written */
    bool unasked; /* the user does not wait for it: trouble with the file is said to who wants to
                     know (REPORT_LOG_INFO), and is no warning */
    const char *const *setting_names;
    size_t setting_count;
    const struct report_rule_name *rules;
    size_t rule_count;
    const char *const *entry_names;
    size_t entry_count;
    uint8_t mode;
    const char *const *mode_names; /* at most 8, by mode; NULL: the report gives the number */
    size_t mode_count;
};

/* Remembers what the report will be about; makes no file. The arrays must outlive the process's use
 * of this module. Called once, before any other function here. */
void report_start(const struct report_start *start);

/* Another place where the report is written, too, whatever becomes of the first; NULL: none. Only a
 * process that ends in good order writes there. Before the first launch; in the child after fork,
 * again. Allocates nothing. */
void report_copy(const char *path);

/* Enters a further rule; number: how many there were before it. False when the table is full. A
 * report that could not enter the first ones has none of this either. Locks. */
bool report_rule(uint32_t number, const struct report_rule_name *rule);

/* The shard of the calling thread; at the first call of the process the file is created and mapped
 * (path + ".counters", O_EXCL, O_NOFOLLOW, 0600, with a suffix on collision), at the first call of
 * a thread a shard is claimed. Never NULL: when no file can be made, private memory serves and a
 * warning is given once; when not even that, a static shard serves that nobody reads. The shard
 * of a thread that has ended is used again, its counts stay.
 * Allocates and locks at these first calls only; afterwards it may be called on the launch path. */
struct report_shard *report_thread_shard(void);

/* For threads without a shard of their own (yet): what the next two call. */
void report_count_launch_shared(uint32_t cell, enum report_launch_kind kind, uint64_t count);
void report_count_entry_shared(uint32_t entry);

/* Adds launches to a cell, below REPORT_CELL_LIMIT. Launch path: one increment, or one atomic
 * increment for threads that share. Only its thread writes to a shard, others read it at any time.
 */
static inline void report_count_launch(uint32_t cell, enum report_launch_kind kind, uint64_t count)
{
    struct report_shard *shard = report_shard;
    if (__builtin_expect(shard == NULL, 0)) {
        report_count_launch_shared(cell, kind, count);
        return;
    }
    uint64_t *counter = &shard->launches[cell][kind];
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + count, __ATOMIC_RELAXED);
}

/* Adds a launch to the counter that stands so many bytes behind the start of the calling thread's
 * shard. Launch path. */
static inline void report_count_at(struct report_shard *shard, size_t offset)
{
    uint64_t *counter = (uint64_t *)(void *)((char *)shard + offset);
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Adds a call of an entry point, below REPORT_ENTRY_LIMIT. Launch path as above; a thread that has
 * launched nothing yet counts atomically and makes no file. */
static inline void report_count_entry(uint32_t entry)
{
    struct report_shard *shard = report_shard;
    if (__builtin_expect(shard == NULL, 0)) {
        report_count_entry_shared(entry);
        return;
    }
    uint64_t *counter = &shard->entry_calls[entry];
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* ---- Live comparisons ---- */

#define REPORT_SLICE_NONE UINT32_MAX

/* How arms alternate; for readers of the report. */
struct report_live {
    uint64_t seed;
    uint32_t arms;        /* 0: no live comparison */
    uint32_t slice, drop; /* steps of a slice, and those at its beginning that do not count */
    uint32_t warm_up;     /* steps before the first slice */
    int64_t clock;        /* nanoseconds: CLOCK_REALTIME less CLOCK_MONOTONIC; of report_live */
};

/* Notes it for the report and begins with no step, in arm 0. Locks; makes no file. No other thread
 * may be launching. */
void report_live(const struct report_live *live);

/*
 * A step begins, the number-th of the process from 0: enters it with the time it is now. Launch
 * path: no lock and no allocation, but for the first step of a thread that has launched nothing
 * yet, and one in several thousand, which reserves the rows of the next.
 */
void report_step(uint64_t number, uint32_t slice, uint8_t arm);

/* The arm from now on, in the control word and in what the short ways expect of it; only when order
 * is larger than 0 and than at every call since report_live, so that a thread that comes late
 * changes nothing. Launches that other threads make at this moment may still go by the arm before.
 * Locks: the switches between slices only. */
void report_arm_set(uint64_t order, uint8_t arm);

struct report_kernel_info {
    const char *mangled, *name, *signature; /* copied; name and signature may equal mangled */
    const char *library;                    /* base name of the caller; "" when not known */
    bool demangled;
};

/* Enters a kernel, or finds it: the number of the kernel with this mangled name and library. 0 when
 * the table is full. Locks; at the first sight of a function only. */
uint32_t report_kernel(const struct report_kernel_info *info);

/* Widens the extent of launches seen of a kernel. Launch path (relaxed atomics). */
void report_kernel_shape(uint32_t kernel, uint64_t grid_blocks, uint32_t block_threads,
                         uint32_t shared_memory);

struct report_result {
    uint8_t outcome; /* enum report_outcome */
    uint8_t reason;  /* enum report_reason */
    uint16_t rule;   /* index into report_start.rules, or REPORT_RULE_NONE */
};

/* Enters a cell, or finds it: results has setting_count entries. detail: an error code of the
 * driver behind REFUSED_BY_DRIVER, else 0. 0 when the table is full. Locks; callers remember the
 * number. */
uint32_t report_cell(uint32_t kernel, const struct report_result *results, uint32_t detail);

/* A stream that was created (or the legacy or per-thread one): one row a stream rule or library,
 * not one a stream: streams alike are counted together. Locks; stream creation is not the launch
 * path. */
struct report_stream_info {
    const char *library;
    const char *kind; /* "created", "legacy", "per_thread" */
    int device;       /* -1: not known */
    unsigned flags;
    int priority;
    uint16_t rule;
    const struct report_result *results; /* setting_count entries */
};
void report_stream(const struct report_stream_info *info);

/* A fact about the process, "driver", "version" = "13000". Replaces an earlier value of the same
 * section and key. Locks. */
void report_fact(const char *section, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A message that belongs in the report (diagnostics of the policy, "not attached", …). Locks. */
void report_note(const char *severity, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What report_finish calls with the JSON (of jansson) before it writes it, also where none is
 * written because no path is known: the last that can be added to it and said of it. NULL: nothing.
 * Any thread. */
struct json_t;
void report_completing(void (*complete)(struct json_t *report));

/* Writes the JSON and removes the counters' file. At the end of the process; makes no CUDA call. A
 * process that never launched writes nothing. Safe to call more than once. */
void report_finish(void);

/* Where the report was written, suffix included, and where the counters are meanwhile; NULL when
 * they are nowhere. Not for the launch path. */
const char *report_written_path(void);
const char *report_counters_path(void);

/* In the child after fork: starts over with a report of its own. path as in report_start (expanded
 * anew). Allocates nothing, takes no lock that a thread of the parent may have held. */
void report_after_fork(const char *path);

/* Changes the mode of a running process through its counters' file, and raises the generation; the
 * process takes it up at its next launch. False with a message in error[size] when the file is none
 * or its process ended in good order. For the command-line tool. */
bool report_counters_set_mode(const char *counters_path, uint8_t mode, char *error, size_t size);

/* Asks the process to read its policy again, at its next launch, and raises the generation; *wanted
 * is what report_exchange.reload_answered will be then. As above. */
bool report_counters_reload(const char *counters_path, uint32_t *wanted, char *error, size_t size);

/* What a running process answered so far. False where the file cannot be read, or *ended: its
 * process ended in good order. For the command-line tool. */
bool report_counters_answer(const char *counters_path, struct report_exchange *exchange,
                            bool *ended);

/* Reads a counters' file (of a live, ended or killed process) and writes its JSON to stream; false
 * with a message in error[size] when it is not one. For the command-line tool. */
bool report_counters_to_json(const char *counters_path, FILE *stream, char *error, size_t size);

#endif
