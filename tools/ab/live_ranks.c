/* SPDX-License-Identifier: Apache-2.0 */
#include "live_ranks.h"

#include <stdlib.h>

static bool side_by_side(const struct ab_live_sequence *a, const struct ab_live_sequence *b)
{
    int64_t from, to, shorter;

    if (a->process == b->process) {
        return false; /* images of one process follow each other, whatever clocks say */
    }
    if (!a->timed || !b->timed) {
        return true;
    }
    from = a->begin > b->begin ? a->begin : b->begin;
    to = a->end < b->end ? a->end : b->end;
    shorter = a->end - a->begin < b->end - b->begin ? a->end - a->begin : b->end - b->begin;
    /* Half: a rank that goes on as another program overlaps the others' former one for a moment. */
    return to >= from && to - from >= shorter / 2;
}

static int by_begin(const void *first, const void *second)
{
    const struct ab_live_sequence *a = first, *b = second;

    if (a->timed && b->timed && a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    if (a->process == b->process && a->image != b->image) {
        return a->image < b->image ? -1 : 1;
    }
    return a->process < b->process ? -1 : a->process > b->process;
}

/* Every sequence that hangs together with the one at first gets its part. */
static void spread(struct ab_live_sequence *sequences, size_t count, size_t first, size_t part)
{
    bool any = true;

    sequences[first].part = part;
    while (any) {
        any = false;
        for (size_t i = 0; i < count; i++) {
            if (sequences[i].part != SIZE_MAX) {
                continue;
            }
            for (size_t other = 0; other < count; other++) {
                if (sequences[other].part == part &&
                    side_by_side(&sequences[i], &sequences[other])) {
                    sequences[i].part = part;
                    any = true;
                    break;
                }
            }
        }
    }
}

static bool same_place(const struct ab_live_sequence *a, const struct ab_live_sequence *b)
{
    return a->process == b->process || (a->rank >= 0 && a->rank == b->rank);
}

static void leave_out(struct ab_live_sequence *sequences, size_t count, size_t which,
                      uint64_t least, struct ab_live_parts *parts)
{
    struct ab_live_sequence *here = &sequences[which];
    bool shared = false, longer = false;

    for (size_t i = 0; i < count; i++) {
        const struct ab_live_sequence *other = &sequences[i];

        if (i == which || other->part != here->part) {
            continue;
        }
        shared |= same_place(here, other) &&
                  (other->steps > here->steps || (other->steps == here->steps && i < which));
        longer |= other->steps >= least;
    }
    here->left_out = shared || (longer && here->steps < least);
    parts->shared_rank += shared;
    parts->too_short += !shared && here->left_out;
}

void ab_live_arrange(struct ab_live_sequence *sequences, size_t count, uint64_t least,
                     struct ab_live_parts *parts)
{
    *parts = (struct ab_live_parts){0};
    if (count == 0) {
        return;
    }
    qsort(sequences, count, sizeof *sequences, by_begin);
    for (size_t i = 0; i < count; i++) {
        sequences[i].part = SIZE_MAX;
        sequences[i].left_out = false;
    }
    for (size_t i = 0; i < count; i++) {
        if (sequences[i].part == SIZE_MAX) {
            spread(sequences, count, i, parts->count++);
        }
    }
    for (size_t i = 0; i < count; i++) {
        leave_out(sequences, count, i, least, parts);
    }
}
