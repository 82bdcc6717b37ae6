/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_RESULTS_H
#define CUDAPOLICY_TOOLS_RESULTS_H

/*
 * What one or several processes did, read from their reports and merged: kernels by mangled name
 * and library, rules by section and name. Counts are added, extents widened.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/kernel_name.h"

enum results_kind {
    RESULTS_EAGER,
    RESULTS_CAPTURED,
    RESULTS_NODE,
    RESULTS_REPLAYED,
    RESULTS_KIND_COUNT
};

/* No count or sum of counts is more: what no program reaches, and a few of them can be added. */
#define RESULTS_COUNT_LIMIT (INT64_C(1) << 53)

struct results_launches {
    int64_t total;
    int64_t kinds[RESULTS_KIND_COUNT];
};

/* Why something was refused, and how often. */
struct results_refusals {
    size_t count, capacity;
    struct {
        const char *reason;
        int64_t times;
    } * items;
};

struct results_outcomes {
    int64_t applied, already_so, kept;
    struct results_refusals refused;
};

/* One program image of a process: exec makes another of the same process. Strings, here and below,
 * belong to the results. */
struct results_process {
    const char *host, *argv0, *mode;
    const char *start, *end; /* when it started and ended, as the report writes it; "": not known */
    int64_t pid, start_ticks;
    size_t number; /* the same for all images of the process */
    int64_t image; /* which of the programs that it executed one after the other; later: greater */
    bool complete; /* it ended in good order, and nothing is missing */
    bool ended;    /* it ended in good order */
    bool partial;  /* some counts were lost */
    bool running;  /* it had not ended when its counters were read */
    const char *policy_path, *policy_sha256; /* "": not known */
    json_t *document;                        /* where they are kept, else NULL */
};

/* Tables of a report that can be full. */
enum results_table {
    RESULTS_TABLE_KERNELS,
    RESULTS_TABLE_CELLS,
    RESULTS_TABLE_STREAMS,
    RESULTS_TABLE_FACTS,
    RESULTS_TABLE_NOTES,
    RESULTS_TABLE_COUNT
};
extern const char *const results_table_keys[RESULTS_TABLE_COUNT];

struct results_extent {
    int64_t least, most;
};

struct results_kernel {
    const char *mangled, *name, *signature, *library;
    bool demangled;
    struct results_launches launches;
    bool shapes_known;
    struct results_extent grid_blocks, block_threads, shared_memory;
    struct kernel_name *forms; /* see results_kernel_name */
};

struct results_rule {
    const char *section, *name;
    const char *layer; /* "": of the job's own policy */
    int64_t line;
    struct results_launches launches;
    struct results_outcomes launch_outcomes;
    int64_t streams;
    struct results_outcomes stream_outcomes;
    size_t kernel_count, kernel_capacity;
    size_t *kernels; /* indices of those that had a setting of this rule */
};

struct results_stream {
    const char *library, *kind, *rule; /* rule "": none */
    int64_t device, flags, priority;
    int64_t count;
};

/* Launches for which no rule had a setting, of kernels of this name. */
struct results_unmatched {
    const char *name, *library;
    int64_t launches;
};

struct results_note {
    const char *severity, *text;
    int64_t count;
};

struct results {
    bool keep_documents; /* set before the first report is added: the processes' documents stay, and
                            with them memory for all of them */
    size_t process_count, process_capacity; /* images */
    struct results_process *processes;
    size_t kernel_count, kernel_capacity;
    struct results_kernel *kernels;
    size_t rule_count, rule_capacity;
    struct results_rule *rules;
    size_t stream_count, stream_capacity;
    struct results_stream *streams;
    size_t unmatched_count, unmatched_capacity;
    struct results_unmatched *unmatched;
    size_t note_count, note_capacity;
    struct results_note *notes;
    struct results_launches launches;
    int64_t overflow[RESULTS_TABLE_COUNT]; /* entries that found their table full */
    size_t number_count, number_capacity;  /* processes, whatever each executed */
    int64_t *newest_images;                /* by number */
    size_t last_count, last_capacity;
    size_t *last_kernels; /* places of the kernels of the report added last, in its order */
    json_t *index;        /* where things that are already there stand, by their keys */
    json_t *texts;        /* its keys are the strings */
};

/* Adds the report of one process. The document is checked to be one. False with the reason in
 * *error. A process that is already there is not added again. */
bool results_add(struct results *results, json_t *document, const char **error);

/* results_files.c. Adds the reports in a file: of a process, of a job (run --report), or the
 * counters of a process that was killed or still runs; or all reports in a folder and the folders
 * in it. False after messages on stderr; in folders, files that are no reports are passed over. */
bool results_load(struct results *results, const char *path);

/* Where the reports go that a file or folder holds. */
struct results_sink {
    bool (*add)(void *data, json_t *document, const char **error); /* as results_add does */
    /* Called when that returned true, with the file that holds the document; NULL: not wanted. */
    void (*added)(void *data, const json_t *document, const char *path);
    void *data;
};

/* The same for a sink of one's own. */
bool results_load_into(const struct results_sink *sink, const char *path);

/* Where the kernel, or the rule, stands; SIZE_MAX when it is not there. */
size_t results_find_kernel(const struct results *results, const char *mangled, const char *library);
size_t results_find_rule(const struct results *results, const char *section, const char *name,
                         const char *layer);

/* "SECTION NAME", and the layer where the rule is not of the job's own policy, which may have one
 * of the same name. To be freed. */
char *results_rule_title(const struct results_rule *rule);

/* Adds a count out of a report, however damaged: the sum ends at the limit, and nothing negative is
 * added. */
void results_add_count(int64_t *sum, int64_t count);

/* The text, as a string that lasts as long as the results do: the same one for the same text. */
const char *results_keep(struct results *results, const char *text);

/* Whether the process went on as another program, which the results have too. */
bool results_was_replaced(const struct results *results, const struct results_process *process);

/* All forms of a kernel's name, made at the first call. The name belongs to the kernel. */
const struct kernel_name *results_kernel_name(const struct results_kernel *kernel);

void results_release(struct results *results);

/* The text, number or element of a document, "" , 0 or NULL when it is missing or something else.
 */
const char *results_text(const json_t *object, const char *key);
int64_t results_number(const json_t *object, const char *key);

#endif
