/* SPDX-License-Identifier: Apache-2.0 */
#include "expectations.h"

#include <stdlib.h>
#include <string.h>

#include "decide/expect.h"
#include "json_output.h"
#include "memory.h"
#include "policy/expect.h"
#include "policy/print.h"
#include "printable.h"

enum {
    PROCESSES_NAMED = 8, /* in a line, unless all are asked for */
    RANKS_LIMIT = 1 << 24,
};

/* ---- Judging ------------------------------------------------------------------------------------
 */

/* What all images of one process counted together: it may have executed other programs. */
struct sum {
    const struct results_process *process; /* its first image that is asked; NULL: none */
    int64_t count;
};

static void add_images(struct sum *sums, const struct policy *policy,
                       const struct policy_expectation *expectation, const struct results *results)
{
    for (size_t i = 0; i < results->process_count; i++) {
        const struct results_process *process = &results->processes[i];
        const struct decide_judgement judgement =
            decide_expect_judge(policy, expectation, process->document);
        struct sum *sum = &sums[process->number];

        if (judgement.asked) {
            sum->process = sum->process != NULL ? sum->process : process;
            sum->count += judgement.count;
        }
    }
}

static void add_broken(struct expectation_result *result, const struct sum *sum)
{
    result->held = false;
    result->broken = memory_grow(result->broken, result->broken_count, &result->broken_capacity,
                                 sizeof *result->broken);
    result->broken[result->broken_count++] =
        (struct expectation_broken){.process = sum->process, .count = sum->count};
}

static const char *job_fact(const struct results_process *process, const char *key)
{
    return results_text(json_object_get(json_object_get(process->document, "facts"), "job"), key);
}

/* By rank; processes without one keep their order. */
static int by_rank(const void *left, const void *right)
{
    const struct expectation_broken *one = left, *other = right;
    const long long difference =
        atoll(job_fact(one->process, "rank")) - atoll(job_fact(other->process, "rank"));

    if (difference != 0) {
        return difference < 0 ? -1 : 1;
    }
    return one->process < other->process ? -1 : one->process > other->process;
}

static void judge(struct expectation_result *result, const struct policy *policy,
                  const struct policy_expectation *expectation, const struct results *results)
{
    struct sum *sums = memory_allocate(results->number_count + 1, sizeof *sums);

    *result = (struct expectation_result){.expectation = expectation, .held = true};
    add_images(sums, policy, expectation, results);
    for (size_t i = 0; i < results->number_count; i++) {
        if (sums[i].process == NULL) {
            continue;
        }
        result->asked++;
        if (!policy_expectation_holds(expectation, sums[i].count)) {
            add_broken(result, &sums[i]);
        }
    }
    if (result->broken_count > 1) {
        qsort(result->broken, result->broken_count, sizeof *result->broken, by_rank);
    }
    if (result->asked == 0) {
        result->held = policy_expectation_holds(expectation, 0);
    }
    free(sums);
}

/* How many ranks the job has, and how many of them have no report here. A command that is itself
 * started once for each rank sees one only, and says nothing of the others. */
static void count_ranks(struct expectations *expectations, const struct results *results)
{
    size_t world = 0, seen = 0;
    bool *is_seen;

    for (size_t i = 0; i < results->process_count; i++) {
        const char *source = job_fact(&results->processes[i], "rank_source");
        long long size = atoll(job_fact(&results->processes[i], "world_size"));

        if (source[0] == '\0' || getenv(source) != NULL || size < 0 || size > RANKS_LIMIT) {
            return;
        }
        world = (size_t)size > world ? (size_t)size : world;
    }
    is_seen = memory_allocate(world + 1, sizeof *is_seen);
    for (size_t i = 0; i < results->process_count; i++) {
        long long rank = atoll(job_fact(&results->processes[i], "rank"));

        if (rank >= 0 && (size_t)rank < world && !is_seen[rank]) {
            is_seen[rank] = true;
            seen++;
        }
    }
    free(is_seen);
    expectations->ranks = world;
    expectations->silent_ranks = world - seen;
}

void expectations_judge(struct expectations *expectations, const struct policy *policy,
                        const struct results *results)
{
    *expectations = (struct expectations){.policy = policy, .count = policy->expectation_count};
    expectations->results =
        memory_allocate(policy->expectation_count + 1, sizeof *expectations->results);
    for (size_t i = 0; i < policy->expectation_count; i++) {
        judge(&expectations->results[i], policy, &policy->expectations[i], results);
        expectations->broken += !expectations->results[i].held;
    }
    count_ranks(expectations, results);
    for (size_t i = 0; i < results->process_count; i++) {
        const struct results_process *process = &results->processes[i];

        expectations->unsure +=
            process->partial || (process->running && !results_was_replaced(results, process));
    }
}

void expectations_release(struct expectations *expectations)
{
    for (size_t i = 0; i < expectations->count; i++) {
        free(expectations->results[i].broken);
    }
    free(expectations->results);
    *expectations = (struct expectations){0};
}

/* ---- Output -------------------------------------------------------------------------------------
 */

/* The rank as the report has it; "": none. */
static const char *rank_of(const struct results_process *process)
{
    return job_fact(process, "rank");
}

static void print_process(const struct expectation_broken *broken, FILE *stream)
{
    const char *rank = rank_of(broken->process);
    char *host = printable_copy(broken->process->host), *number = printable_copy(rank);

    if (rank[0] != '\0') {
        fprintf(stream, "rank %s", number);
    } else {
        fprintf(stream, "process %lld on %s", (long long)broken->process->pid, host);
    }
    fprintf(stream, ": %lld", (long long)broken->count);
    free(number);
    free(host);
}

static void print_broken(const struct expectations *expectations,
                         const struct expectation_result *result, bool wide, FILE *stream)
{
    char text[POLICY_EXPECTATION_TEXT_SIZE];
    size_t named = result->broken_count;

    fprintf(stream, "expectation broken: %s, in line %u: ",
            policy_expectation_text(expectations->policy, result->expectation, text, sizeof text),
            (unsigned)result->expectation->place.line);
    if (result->asked == 0) {
        fputs("it is 0, since no process that this is about launched a kernel\n", stream);
        return;
    }
    if (result->asked == 1 && rank_of(result->broken[0].process)[0] == '\0') {
        fprintf(stream, "it was %lld\n", (long long)result->broken[0].count);
        return;
    }
    fprintf(stream, "in %zu of %zu process%s it was not so (", result->broken_count, result->asked,
            result->asked == 1 ? "" : "es");
    if (!wide && named > PROCESSES_NAMED) {
        named = PROCESSES_NAMED;
    }
    for (size_t i = 0; i < named; i++) {
        fputs(i > 0 ? ", " : "", stream);
        print_process(&result->broken[i], stream);
    }
    fputs(named < result->broken_count ? ", ...)\n" : ")\n", stream);
}

void expectations_print(const struct expectations *expectations, bool only_broken, bool wide,
                        FILE *stream)
{
    for (size_t i = 0; i < expectations->count; i++) {
        if (!expectations->results[i].held) {
            print_broken(expectations, &expectations->results[i], wide, stream);
        }
    }
    if (expectations->count > 0 && expectations->silent_ranks > 0) {
        fprintf(stream,
                "%zu of %zu ranks left no report here: nothing was expected of them. They launched "
                "no kernel, or ran on another host\n",
                expectations->silent_ranks, expectations->ranks);
    }
    if (expectations->count > 0 && expectations->broken == 0 && !only_broken) {
        fprintf(stream, "what the policy expects was so (%zu condition%s)\n", expectations->count,
                expectations->count == 1 ? "" : "s");
    }
}

static json_t *broken_json(const struct expectation_result *result)
{
    json_t *array = json_array();

    for (size_t i = 0; i < result->broken_count; i++) {
        const struct results_process *process = result->broken[i].process;
        const char *rank = rank_of(process);

        json_array_append_new(array, json_pack("{s:s, s:I, s:s?, s:I}", "host", process->host,
                                               "pid", (json_int_t)process->pid, "rank",
                                               rank[0] != '\0' ? rank : NULL, "count",
                                               (json_int_t)result->broken[i].count));
    }
    return array;
}

json_t *expectations_json(const struct expectations *expectations)
{
    json_t *array = json_array();

    for (size_t i = 0; i < expectations->count; i++) {
        const struct expectation_result *result = &expectations->results[i];
        const struct policy_expectation *expectation = result->expectation;
        const struct policy_rule *rule = &expectations->policy->rules[expectation->rule];

        json_array_append_new(
            array,
            json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:o}", "rule_section",
                      policy_section_text(rule->section), "rule", rule->name, "quantity",
                      policy_quantity_text(expectation->quantity), "comparison",
                      policy_comparison_text(expectation->comparison), "number",
                      (json_int_t)expectation->number, "line", (json_int_t)expectation->place.line,
                      "processes", (json_int_t)result->asked, "held", result->held, "broken",
                      broken_json(result)));
    }
    return array;
}
