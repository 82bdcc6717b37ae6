/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "printable.h"
#include "table.h"
#include "unmatched.h"

enum {
    /* Rows of lists whose length the program decides, unless everything is asked for. */
    SUMMARY_ROWS = 10,
};

bool summary_has_matched(const struct results_rule *rule)
{
    return rule->launches.total > 0 || rule->streams > 0;
}

const struct policy_rule *summary_policy_rule(const struct policy *policy,
                                              const struct results_rule *rule)
{
    bool is_stream = strcmp(rule->section, "stream") == 0;

    for (size_t i = 0; policy != NULL && i < policy->rule_count; i++) {
        const struct policy_rule *candidate = &policy->rules[i];

        const char *layer =
            candidate->layer != POLICY_LAYER_JOB ? policy_layer_name(candidate->layer) : "";

        if (strcmp(candidate->name, rule->name) == 0 && strcmp(layer, rule->layer) == 0 &&
            (candidate->section == POLICY_SECTION_STREAM) == is_stream) {
            return candidate;
        }
    }
    return NULL;
}

/* The one mode of all processes; "" when they differ. */
static const char *common_mode(const struct results *results)
{
    const char *mode = results->process_count > 0 ? results->processes[0].mode : "";

    for (size_t i = 1; i < results->process_count; i++) {
        if (strcmp(results->processes[i].mode, mode) != 0) {
            return "";
        }
    }
    return mode;
}

/* ---- Text ---------------------------------------------------------------------------------------
 */

void summary_print_head(const struct results *results, FILE *stream)
{
    static const char *const words[RESULTS_KIND_COUNT] = {"eager", "captured", "added to graphs",
                                                          "replayed"};
    const char *separator = "", *mode = common_mode(results);
    struct printable_count count;

    fprintf(stream, "cudapolicy: %s launch%s of %zu kernel%s in %zu process%s",
            printable_count(&count, results->launches.total),
            results->launches.total == 1 ? "" : "es", results->kernel_count,
            results->kernel_count == 1 ? "" : "s", results->number_count,
            results->number_count == 1 ? "" : "es");
    for (int kind = 0; kind < RESULTS_KIND_COUNT; kind++) {
        if (results->launches.kinds[kind] > 0) {
            fprintf(stream, "%s%s %s", separator[0] == '\0' ? " (" : separator,
                    printable_count(&count, results->launches.kinds[kind]), words[kind]);
            separator = ", ";
        }
    }
    fprintf(stream, "%s", separator[0] == '\0' ? "" : ")");
    if (strcmp(mode, "observe") == 0) {
        fprintf(stream, "; observed, nothing was changed");
    }
    fputc('\n', stream);
}

/* "8 (grid not divisible by the cluster), 4 (graph)". A launch of which two settings were refused
 * for different reasons counts for both, so there is no sum to show. */
static char *refused_text(const struct results_refusals *refused)
{
    char *text = memory_copy("");

    for (size_t i = 0; i < refused->count; i++) {
        struct printable_count count;
        char *longer = memory_format("%s%s%s (%s)", text, i > 0 ? ", " : "",
                                     printable_count(&count, refused->items[i].times),
                                     refused->items[i].reason);

        free(text);
        text = longer;
    }
    if (refused->count == 0) {
        free(text);
        return memory_copy("0");
    }
    return text;
}

static void add_row(struct table *table, const struct results_rule *rule, const char *kernels,
                    const char *seen, const struct results_outcomes *outcomes)
{
    char *refused = refused_text(&outcomes->refused), *title = results_rule_title(rule);

    table_cell(table, "%s", title);
    free(title);
    table_cell(table, "%s", kernels);
    table_cell(table, "%s", seen);
    table_count(table, outcomes->applied);
    table_count(table, outcomes->already_so);
    table_count(table, outcomes->kept);
    table_cell(table, "%s", refused);
    free(refused);
}

static void add_rule_rows(struct table *table, const struct results_rule *rule)
{
    struct printable_count count;
    char *kernels = memory_format("%s", printable_count(&count, (int64_t)rule->kernel_count));
    char *launches = memory_format("%s", printable_count(&count, rule->launches.total));
    char *streams = memory_format("%s stream%s", printable_count(&count, rule->streams),
                                  rule->streams == 1 ? "" : "s");

    if (rule->streams > 0) {
        add_row(table, rule, "-", streams, &rule->stream_outcomes);
    }
    if (rule->launches.total > 0) {
        add_row(table, rule, kernels, launches, &rule->launch_outcomes);
    }
    free(kernels);
    free(launches);
    free(streams);
}

static void print_rules(const struct results *results, const struct summary_options *options,
                        FILE *stream)
{
    struct table *table = table_new();
    bool observed = strcmp(common_mode(results), "observe") == 0;

    table_column(table, "rule", TABLE_LEFT, true);
    table_column(table, "kernels", TABLE_RIGHT, false);
    table_column(table, "launches", TABLE_RIGHT, false);
    table_column(table, observed ? "would apply" : "applied", TABLE_RIGHT, false);
    table_column(table, "already so", TABLE_RIGHT, false);
    table_column(table, "kept", TABLE_RIGHT, false);
    table_column(table, "refused", TABLE_LEFT, false);
    for (size_t i = 0; i < results->rule_count; i++) {
        if (summary_has_matched(&results->rules[i])) {
            add_rule_rows(table, &results->rules[i]);
        }
    }
    if (table_rows(table) > 0) {
        table_print(table, stream, options->wide, "");
    }
    table_free(table);
}

static void print_nearest(const struct unmatched *unmatched, FILE *stream)
{
    for (size_t i = 0; i < unmatched->nearest_count; i++) {
        const struct unmatched_kernel *kernel = &unmatched->nearest[i];
        char *text = printable_copy(kernel->text);
        char *shown = printable_shorten(text, 90);

        if (kernel->matches) {
            fprintf(stream, "  with name_form = %s it would match %s\n", kernel->form, shown);
        } else {
            fprintf(stream, "  near: %s\n", shown);
        }
        free(shown);
        free(text);
    }
}

static void print_unmatched_rules(const struct results *results, const struct policy *policy,
                                  FILE *stream)
{
    size_t count = 0;

    for (size_t i = 0; i < results->rule_count; i++) {
        const struct results_rule *rule = &results->rules[i];
        struct unmatched unmatched;
        char *name, *reason;

        /* That a site's rule matches nothing is no news to its users. */
        if (summary_has_matched(rule) || rule->layer[0] != '\0') {
            continue;
        }
        unmatched_explain(summary_policy_rule(policy, rule), results, count++ < UNMATCHED_RULES,
                          &unmatched);
        name = printable_copy(rule->name);
        reason = printable_copy(unmatched.reason);
        fprintf(stream, "[%s %s] in line %lld matched nothing: %s\n", rule->section, name,
                (long long)rule->line, reason);
        print_nearest(&unmatched, stream);
        free(name);
        free(reason);
        unmatched_release(&unmatched);
    }
}

static int most_first(const void *one_place, const void *other_place)
{
    const struct results_kernel *one = *(const struct results_kernel *const *)one_place;
    const struct results_kernel *other = *(const struct results_kernel *const *)other_place;

    if (one->launches.total != other->launches.total) {
        return one->launches.total < other->launches.total ? 1 : -1;
    }
    return strcmp(one->mangled, other->mangled);
}

const struct results_kernel **summary_sorted_kernels(const struct results *results)
{
    const struct results_kernel **sorted =
        memory_allocate(results->kernel_count, sizeof(struct results_kernel *));

    for (size_t i = 0; i < results->kernel_count; i++) {
        sorted[i] = &results->kernels[i];
    }
    qsort(sorted, results->kernel_count, sizeof *sorted, most_first);
    return sorted;
}

static void extent_cell(struct table *table, const struct results_kernel *kernel,
                        const struct results_extent *extent)
{
    if (!kernel->shapes_known) {
        table_cell(table, "-");
    } else if (extent->least == extent->most) {
        table_count(table, extent->least);
    } else {
        struct printable_count least, most;

        table_cell(table, "%s..%s", printable_count(&least, extent->least),
                   printable_count(&most, extent->most));
    }
}

void summary_print_kernels(const struct results *results, const struct summary_options *options,
                           FILE *stream)
{
    const struct results_kernel **sorted = summary_sorted_kernels(results);
    struct table *table = table_new();
    size_t unnoted = 0;

    table_column(table, "kernel", TABLE_LEFT, true);
    table_column(table, "library", TABLE_LEFT, true);
    table_column(table, "launches", TABLE_RIGHT, false);
    table_column(table, "blocks", TABLE_RIGHT, false);
    table_column(table, "threads", TABLE_RIGHT, false);
    table_column(table, "shared bytes", TABLE_RIGHT, false);
    for (size_t i = 0; i < results->kernel_count; i++) {
        table_cell(table, "%s", sorted[i]->name);
        table_cell(table, "%s", sorted[i]->library[0] != '\0' ? sorted[i]->library : "?");
        table_count(table, sorted[i]->launches.total);
        unnoted += !sorted[i]->shapes_known;
        extent_cell(table, sorted[i], &sorted[i]->grid_blocks);
        extent_cell(table, sorted[i], &sorted[i]->block_threads);
        extent_cell(table, sorted[i], &sorted[i]->shared_memory);
    }
    if (table_rows(table) > 0) {
        table_print(table, stream, options->wide, "");
    }
    if (unnoted > 0 && strcmp(common_mode(results), "observe") != 0) {
        fputs("-: shapes are not noted in enforce mode; --mode observe and record note them\n",
              stream);
    }
    table_free(table);
    free(sorted);
}

static void print_untouched(const struct results *results, FILE *stream)
{
    struct printable_count count;
    int64_t launches = 0;

    for (size_t i = 0; i < results->unmatched_count; i++) {
        launches += results->unmatched[i].launches;
    }
    if (launches > 0 && results->rule_count > 0) {
        fprintf(stream, "no rule had a setting for %s launches of %zu kernel%s\n",
                printable_count(&count, launches), results->unmatched_count,
                results->unmatched_count == 1 ? "" : "s");
    }
}

static void print_notes(const struct results *results, const struct summary_options *options,
                        FILE *stream)
{
    size_t shown = results->note_count;

    if (!options->wide && shown > SUMMARY_ROWS) {
        shown = SUMMARY_ROWS;
    }
    for (size_t i = 0; i < shown; i++) {
        char *text = printable_copy(results->notes[i].text);

        fprintf(stream, "%s: %s\n", results->notes[i].severity, text);
        free(text);
    }
    if (shown < results->note_count) {
        fprintf(stream, "%zu more notes: see the report, or --wide\n", results->note_count - shown);
    }
}

/* What is to be said of how a process ended; NULL for nothing. */
static const char *ending(const struct results *results, const struct results_process *process)
{
    if (process->ended) {
        return NULL;
    }
    if (results_was_replaced(results, process)) {
        return "went on as another program: its numbers are complete up to then";
    }
    if (process->running) {
        return "still runs: its numbers so far are included";
    }
    return process->partial ? "did not end in good order"
                            : "did not end in good order: its numbers are complete up to its end";
}

static void print_process(const struct results_process *process, const char *text, FILE *stream)
{
    char *argv0 = printable_copy(process->argv0);

    fprintf(stream, "process %lld (%s) %s\n", (long long)process->pid, argv0, text);
    free(argv0);
}

static void print_unfinished(const struct results *results, const struct summary_options *options,
                             FILE *stream)
{
    size_t shown = 0, more = 0;

    for (size_t i = 0; i < results->process_count; i++) {
        const struct results_process *process = &results->processes[i];
        const char *text = ending(results, process);

        if (text == NULL && !process->partial) {
            continue;
        }
        if (shown == SUMMARY_ROWS && !options->wide) {
            more++;
            continue;
        }
        shown++;
        if (text != NULL) {
            print_process(process, text, stream);
        }
        if (process->partial) {
            print_process(process,
                          "has lost counts: its disk was full, or its file is damaged; the numbers "
                          "above are too low",
                          stream);
        }
    }
    if (more > 0) {
        fprintf(stream, "%zu more such process%s: see --wide\n", more, more == 1 ? "" : "es");
    }
}

/* Where a process had more to report than a report holds. */
static void print_overflow(const struct results *results, FILE *stream)
{
    static const char *const texts[RESULTS_TABLE_COUNT] = {
        [RESULTS_TABLE_KERNELS] = "kernels: launches of those that came later count for (others)",
        [RESULTS_TABLE_CELLS] =
            ("combinations of kernel and outcome: launches of those that came later count for "
             "(others)"),
        [RESULTS_TABLE_STREAMS] = "streams: those that came later are missing",
        [RESULTS_TABLE_FACTS] = "facts: those that came later are missing",
        [RESULTS_TABLE_NOTES] = "notes: those that came later are missing",
    };

    for (int table = 0; table < RESULTS_TABLE_COUNT; table++) {
        if (results->overflow[table] > 0) {
            fprintf(stream, "a report has no room for more %s\n", texts[table]);
        }
    }
}

void summary_print(const struct results *results, const struct policy *policy,
                   const struct summary_options *options, FILE *stream)
{
    summary_print_head(results, stream);
    print_rules(results, options, stream);
    print_untouched(results, stream);
    print_unmatched_rules(results, policy, stream);
    if (options->kernels) {
        summary_print_kernels(results, options, stream);
    }
    print_unfinished(results, options, stream);
    print_overflow(results, stream);
    print_notes(results, options, stream);
}
