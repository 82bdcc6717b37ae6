/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum {
    PROCESSES_COMPARED = 64, /* of one rank: each with each other */
};

/* The images of one process are one here. */
struct member {
    const struct results_process *first; /* its first image there is */
    const char *end;                     /* "": not known */
    const char *ancestors;
    bool running;
};

/* Whether `ancestor` is among the processes that `text` lists. */
static bool lists(const char *text, const struct results_process *ancestor)
{
    char *wanted =
        memory_format("%lld@%lld", (long long)ancestor->pid, (long long)ancestor->start_ticks);
    size_t length = strlen(wanted);
    bool found = false;

    for (const char *word = text; word != NULL && !found; word = strchr(word, ' ')) {
        word += *word == ' ';
        found = strncmp(word, wanted, length) == 0 && (word[length] == ' ' || word[length] == '\0');
    }
    free(wanted);
    return found;
}

static bool descends(const struct member *one, const struct member *other)
{
    return strcmp(one->first->host, other->first->host) == 0 && lists(one->ancestors, other->first);
}

/* Whether both ran at one moment. A process that was killed has no end in its report: then it is
 * not known, unless they ran on two hosts, where a rank cannot go on. */
static bool overlap(const struct member *one, const struct member *other)
{
    const struct member *earlier =
        strcmp(one->first->start, other->first->start) <= 0 ? one : other;
    const struct member *later = earlier == one ? other : one;

    if (earlier->running) {
        return true;
    }
    if (earlier->end[0] == '\0') {
        return strcmp(one->first->host, other->first->host) != 0;
    }
    return strcmp(later->first->start, earlier->end) < 0;
}

static size_t collect(const struct ranks *ranks, const struct results *results, size_t from,
                      size_t to, struct member *members)
{
    size_t count = 0;

    for (size_t i = from; i < to; i++) {
        const struct results_process *process = &results->processes[ranks->processes[i].process];
        size_t at = 0;

        if (ranks->processes[i].ancestors == NULL) {
            continue; /* an older library's report: it cannot be told */
        }
        while (at < count && members[at].first->number != process->number) {
            at++;
        }
        if (at == count && count == PROCESSES_COMPARED) {
            continue;
        }
        if (at == count) {
            members[count++] = (struct member){
                .first = process, .end = process->end, .ancestors = ranks->processes[i].ancestors};
        } else if (process->end[0] != '\0') {
            members[at].end = process->end;
        }
        members[at].running =
            members[at].running || (process->running && !results_was_replaced(results, process));
    }
    return count;
}

/* Leaves those that descend from none of the others: a child of a rank has its rank by right. */
static size_t keep_heads(struct member *members, size_t count)
{
    bool child[PROCESSES_COMPARED] = {false};
    size_t heads = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t other = 0; other < count && !child[i]; other++) {
            child[i] = other != i && descends(&members[i], &members[other]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!child[i]) {
            members[heads++] = members[i];
        }
    }
    return heads;
}

static void look_at_rank(const struct ranks *ranks, const struct results *results, size_t from,
                         size_t to, struct rank_comparison *comparison)
{
    struct member members[PROCESSES_COMPARED];
    size_t count = keep_heads(members, collect(ranks, results, from, to, members));

    for (size_t i = 0; i < count; i++) {
        for (size_t other = i + 1; other < count; other++) {
            const struct results_process *a = members[i].first, *b = members[other].first;
            int64_t rank = ranks->processes[from].rank;

            if (!overlap(&members[i], &members[other])) {
                continue;
            }
            rank_set_add(
                &rank_comparison_find(
                     comparison, RANK_FINDING_DUPLICATE,
                     memory_format("processes %lld (%s) on %s and %lld (%s) on %s, at the same "
                                   "time, are both rank %lld",
                                   (long long)a->pid, a->argv0, a->host, (long long)b->pid,
                                   b->argv0, b->host, (long long)rank))
                     ->ranks,
                rank);
            return; /* one a rank says it */
        }
    }
}

void ranks_find_duplicates(const struct ranks *ranks, const struct results *results,
                           struct rank_comparison *comparison)
{
    for (size_t from = 0, to; from < ranks->process_count; from = to) {
        to = from + 1;
        while (to < ranks->process_count &&
               ranks->processes[to].rank == ranks->processes[from].rank) {
            to++;
        }
        if (to - from > 1) {
            look_at_rank(ranks, results, from, to, comparison);
        }
    }
}
