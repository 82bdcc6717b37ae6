/* SPDX-License-Identifier: Apache-2.0 */
#include "suggest_rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "communication.h"
#include "memory.h"
#include "policy/print.h"
#include "printable.h"
#include "summary.h"

enum {
    COMMENT_WIDTH = 98, /* of a comment's text */
    /* A grid is small beside one with so many times its blocks. */
    SMALL_FACTOR = 4,
    SM_GRANULARITY = 8, /* devices of compute capability 9.0 and later grant SMs by this many */
    PARTITION_SM_LIMIT = 64,
    STREAM_NON_BLOCKING = 1, /* CU_STREAM_NON_BLOCKING */
    URGENT = -5,             /* CUDA clamps it to the most urgent priority that there is */
};

struct findings {
    const struct results_kernel **kernels; /* most launches first */
    size_t communication_count, other_count;
    int64_t communication_launches, other_launches;
    bool in_graphs;                   /* some of the communication kernels are nodes of graphs */
    bool shapes_known;                /* of some communication kernel */
    int64_t least_grid, large_grid;   /* of communication kernels */
    int64_t small_grid;               /* largest one known to be small beside the large one; 0 */
    int64_t streams, non_blocking;    /* created ones; a mean over processes, rounded down */
    const struct results_stream *row; /* the fewest created streams of a kind, of several kinds */
    size_t row_count;                 /* kinds of created streams */
    const struct results_stream *first_row;
};

/* ---- what is there -------------------------------------------------------------------------- */

static bool is_communication(const struct results_kernel *kernel)
{
    return communication_named(kernel->name);
}

static void find_small_grids(struct findings *findings, const struct results *results)
{
    for (size_t i = 0; i < results->kernel_count; i++) {
        const struct results_kernel *kernel = findings->kernels[i];
        const int64_t grids[] = {kernel->grid_blocks.least, kernel->grid_blocks.most};

        for (size_t j = 0; j < 2 && is_communication(kernel) && kernel->shapes_known; j++) {
            if (grids[j] <= findings->large_grid / SMALL_FACTOR &&
                grids[j] > findings->small_grid) {
                findings->small_grid = grids[j];
            }
        }
    }
}

static void find_kernels(struct findings *findings, const struct results *results)
{
    findings->kernels = summary_sorted_kernels(results);
    for (size_t i = 0; i < results->kernel_count; i++) {
        const struct results_kernel *kernel = findings->kernels[i];

        if (!is_communication(kernel)) {
            findings->other_count++;
            findings->other_launches += kernel->launches.total;
            continue;
        }
        findings->communication_count++;
        findings->communication_launches += kernel->launches.total;
        findings->in_graphs |= kernel->launches.kinds[RESULTS_EAGER] < kernel->launches.total;
        if (!kernel->shapes_known) {
            continue;
        }
        if (!findings->shapes_known || kernel->grid_blocks.least < findings->least_grid) {
            findings->least_grid = kernel->grid_blocks.least;
        }
        if (!findings->shapes_known || kernel->grid_blocks.most > findings->large_grid) {
            findings->large_grid = kernel->grid_blocks.most;
        }
        findings->shapes_known = true;
    }
    find_small_grids(findings, results);
}

static void find_streams(struct findings *findings, const struct results *results,
                         int64_t processes)
{
    for (size_t i = 0; i < results->stream_count; i++) {
        const struct results_stream *row = &results->streams[i];

        if (strcmp(row->kind, "created") != 0) {
            continue;
        }
        findings->streams += row->count;
        findings->non_blocking += (row->flags & STREAM_NON_BLOCKING) != 0 ? row->count : 0;
        findings->row_count++;
        findings->first_row = findings->first_row == NULL ? row : findings->first_row;
        if (findings->row == NULL || row->count < findings->row->count) {
            findings->row = row;
        }
    }
    findings->streams /= processes > 0 ? processes : 1;
    findings->non_blocking /= processes > 0 ? processes : 1;
}

/* Whether kernels of a process can run at the same time at all: on two streams that it made, or on
 * one beside a default stream with which it is not ordered. */
static bool can_overlap(const struct findings *findings)
{
    return findings->streams >= 2 || findings->non_blocking >= 1;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A comment, broken into lines between words. */
static void comment(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void comment(FILE *stream, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    size_t column = 0;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = memory_copy("");
    }
    va_end(arguments);
    for (const char *word = text; *word != '\0';) {
        size_t length = strcspn(word, " ");

        if (column > 0 && column + 1 + length > COMMENT_WIDTH) {
            fputc('\n', stream);
            column = 0;
        }
        fputs(column == 0 ? "# " : " ", stream);
        fwrite(word, 1, length, stream);
        column += length + 1;
        word += length;
        word += strspn(word, " ");
    }
    fputc('\n', stream);
    free(text);
}

static void print_key(FILE *stream, const char *key, const char *value)
{
    fprintf(stream, "%s = ", key);
    policy_text_print(stream, value);
    fputc('\n', stream);
}

/* name = PATTERN of all communication kernels, each once. */
static void print_names(const struct findings *findings, const struct results *results,
                        FILE *stream)
{
    char **patterns = NULL;
    size_t count = 0, capacity = 0;

    for (size_t i = 0; i < results->kernel_count; i++) {
        char *pattern;
        size_t place = 0;

        if (!is_communication(findings->kernels[i])) {
            continue;
        }
        pattern = communication_pattern(findings->kernels[i]->name);
        while (place < count && strcmp(patterns[place], pattern) != 0) {
            place++;
        }
        if (place < count) {
            free(pattern);
            continue;
        }
        patterns = memory_grow(patterns, count, &capacity, sizeof *patterns);
        patterns[count++] = pattern;
        print_key(stream, "name", pattern);
    }
    for (size_t i = 0; i < count; i++) {
        free(patterns[i]);
    }
    free(patterns);
}

static void print_head(const struct findings *findings, const struct results *results,
                       int64_t processes, FILE *stream)
{
    comment(stream,
            "What a record of %" PRId64 " process%s suggests to try. A record holds which kernels "
            "were launched, by which library, how often and in which grids, and which streams "
            "were created; not which kernel ran on which stream, nor what ran at the same time, "
            "nor what the program itself sets. So these are guesses; measure them:",
            processes, processes == 1 ? "" : "es");
    fputs("#   cudapolicy tune --each -p THIS-FILE -o BEST-FILE -- PROGRAM\n", stream);
    comment(stream, "--each tries one suggestion at a time; without it, all combinations are "
                    "tried. As it stands, this policy changes nothing.");
    if (results->rule_count > 0) {
        comment(stream,
                "The record was made under a policy with %zu rules. It may hide what the program "
                "would do without; record it again without one.",
                results->rule_count);
    }
    comment(stream,
            "Seen: %zu communication kernels with %" PRId64 " launches, %zu others with %" PRId64
            "; %" PRId64 " created streams a process.",
            findings->communication_count, findings->communication_launches, findings->other_count,
            findings->other_launches, findings->streams);
    fputs("[policy]\nversion = 1\n", stream);
}

/* ---- communication kernels ------------------------------------------------------------------ */

/* Which suggestions the findings carry. */
struct plan {
    bool domain, small, priority, partition;
    int64_t partition_sms;
};

static struct plan plan_of(const struct findings *findings)
{
    struct plan plan = {0};

    if (findings->communication_count == 0 || !can_overlap(findings)) {
        return plan;
    }
    plan.domain = findings->other_count > 0;
    plan.priority = findings->other_count > 0;
    plan.small = findings->small_grid > 0;
    plan.partition_sms =
        (findings->large_grid + SM_GRANULARITY - 1) / SM_GRANULARITY * SM_GRANULARITY;
    plan.partition = findings->other_count > 0 && findings->shapes_known &&
                     plan.partition_sms <= PARTITION_SM_LIMIT;
    return plan;
}

static void print_communication_rules(const struct findings *findings,
                                      const struct results *results, const struct plan *plan,
                                      FILE *stream)
{
    if (plan->partition) {
        fprintf(stream, "\n[partition communication]\nsm_count = %" PRId64 "\n",
                plan->partition_sms);
    }
    if (plan->small) {
        fputs("\n[kernel small-communication]\n", stream);
        print_names(findings, results, stream);
        fprintf(stream, "grid_blocks = ..%" PRId64 "\nphysical_domain = leave\n",
                findings->small_grid);
    }
    if (!plan->domain) {
        return;
    }
    fputs("\n[kernel communication]\n", stream);
    print_names(findings, results, stream);
    fputs("mem_sync_domain = leave\npriority = leave\n", stream);
    fputs(plan->partition ? "partition = leave\n" : "", stream);
    if (findings->in_graphs) {
        comment(stream, "Some of these launches were captured or replayed. Without this, priority "
                        "and partition do not go into graphs; with it, a later update of a graph "
                        "may fail.");
        fputs("graph_nodes = yes\n", stream);
    }
}

static size_t print_communication_lines(const struct findings *findings, const struct plan *plan,
                                        FILE *stream)
{
    size_t count = 0;

    if (plan->domain) {
        count++;
        comment(stream,
                "Communication kernels were launched beside others, in a process whose kernels can "
                "run at the same time. In one domain, the end of each kernel waits for the writes "
                "of all. 'leave' is what the program sets itself; NCCL, for one, sets remote.");
        fputs("vary = communication.mem_sync_domain = leave, remote, default\n", stream);
    }
    if (plan->small) {
        count++;
        comment(stream,
                "Communication kernels had grids from %" PRId64 " to %" PRId64
                " blocks: perhaps those of several communicators, whose small collectives wait "
                "for the writes of large ones in one domain. The record does not tell "
                "communicators apart; grids of %" PRId64
                " blocks and fewer are taken for small. 'leave' also keeps the rule below away "
                "from them. Domain 2 needs a GPU with three or more.",
                findings->least_grid, findings->large_grid, findings->small_grid);
        fputs("vary = small-communication.physical_domain = leave, 1, 2\n", stream);
    }
    if (plan->priority) {
        count++;
        comment(stream, "Several streams: where kernels of two of them compete for SMs, a more "
                        "urgent priority lets blocks of communication kernels start first.");
        fprintf(stream, "vary = communication.priority = leave, %d\n", (int)URGENT);
    }
    if (plan->partition) {
        count++;
        comment(stream,
                "SMs that communication kernels need not share: as many as the largest of their "
                "grids has blocks (%" PRId64 "), rounded up. Each launch that is sent there costs "
                "about two launches more.",
                findings->large_grid);
        fputs("vary = communication.partition = leave, communication\n", stream);
    }
    return count;
}

/* ---- streams alone -------------------------------------------------------------------------- */

static void print_stream_rule(const struct findings *findings, FILE *stream)
{
    const struct results_stream *row =
        findings->row_count > 1 ? findings->row : findings->first_row;
    bool non_blocking = (row->flags & STREAM_NON_BLOCKING) != 0;

    if (non_blocking) {
        fputs("\n[partition side]\nsm_count = 25%\n", stream);
    }
    fputs("\n[stream side]\n", stream);
    if (row->library[0] != '\0') {
        char *pattern = communication_escape(row->library);

        print_key(stream, "library", pattern);
        free(pattern);
    }
    if (findings->row_count > 1) {
        fprintf(stream, "created_priority = %" PRId64 "\n", row->priority);
        fprintf(stream, "flags = %s\n", non_blocking ? "non_blocking" : "blocking");
    } else {
        fputs("index = 0\n", stream);
    }
    fputs("priority = leave\n", stream);
    fputs(non_blocking ? "partition = leave\n" : "", stream);
}

static size_t print_stream_lines(const struct findings *findings, FILE *stream)
{
    const struct results_stream *row =
        findings->row_count > 1 ? findings->row : findings->first_row;

    if (findings->row_count > 1) {
        comment(stream,
                "Several streams, of different kinds: those of the rule are the fewest of a kind "
                "(%" PRId64 " in all processes). Where their kernels compete with others for SMs, "
                "a priority decides whose blocks start first.",
                row->count);
    } else {
        comment(stream, "Several streams, all alike: the rule takes the first that is created, "
                        "since nothing in the record tells them apart. Where kernels compete for "
                        "SMs, a priority decides whose blocks start first.");
    }
    fprintf(stream, "vary = side.priority = leave, %d\n", (int)URGENT);
    if ((row->flags & STREAM_NON_BLOCKING) == 0) {
        return 1;
    }
    comment(stream, "Or a part of the SMs: work of these streams then leaves the others to the "
                    "rest. A quarter is a place to begin, no finding.");
    fputs("vary = side.partition = leave, side\n", stream);
    return 2;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static char *why_nothing(const struct findings *findings, const struct results *results)
{
    if (results->kernel_count == 0) {
        return memory_copy("the record has no kernel launch");
    }
    if (!can_overlap(findings)) {
        return memory_format("the record has %" PRId64
                             " created stream%s a process and so no sign that kernels run "
                             "at the same time, which all that could be suggested is about",
                             findings->streams, findings->streams == 1 ? "" : "s");
    }
    return memory_copy("all kernels are communication kernels, and their grids do not differ");
}

size_t suggest_rules(const struct results *results, int64_t processes, FILE *stream, char **reason)
{
    struct findings findings = {0};
    struct plan plan;
    bool streams_alone;
    size_t count = 0;

    *reason = NULL;
    find_kernels(&findings, results);
    find_streams(&findings, results, processes);
    plan = plan_of(&findings);
    streams_alone =
        findings.communication_count == 0 && findings.other_count > 0 && findings.streams >= 2;
    if (!plan.domain && !plan.small && !streams_alone) {
        *reason = why_nothing(&findings, results);
        free(findings.kernels);
        return 0;
    }
    print_head(&findings, results, processes, stream);
    if (streams_alone) {
        print_stream_rule(&findings, stream);
    } else {
        print_communication_rules(&findings, results, &plan, stream);
    }
    fputs("\n[tune]\n", stream);
    if (streams_alone) {
        count += print_stream_lines(&findings, stream);
    } else {
        count += print_communication_lines(&findings, &plan, stream);
    }
    free(findings.kernels);
    return count;
}
