/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_LIVE_RANKS_H
#define CUDAPOLICY_TOOLS_AB_LIVE_RANKS_H

/*
 * Which processes of a run made its steps side by side. Each program image has a sequence of steps
 * of its own, which begins with step 0: also the one that a process goes on with after exec, and
 * the child that it forks. Only sequences that ran at the same time are those of parallel ranks,
 * of which each makes the same steps; others come one after the other, and each has its own blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ab_live_sequence {
    int64_t begin, end; /* when its first and its last step began: nanoseconds since 1970 */
    bool timed;         /* these are known; else it counts as at the same time as any other */
    size_t process;     /* the same for all images of a process */
    int64_t image;      /* of the process: later is greater */
    int64_t rank;       /* as its launcher said; -1: not known */
    uint64_t steps;
    size_t index; /* the caller's own */
    /* Of ab_live_arrange. */
    size_t part;
    bool left_out; /* counts nowhere */
};

/* What ab_live_arrange found. */
struct ab_live_parts {
    size_t count;
    size_t shared_rank; /* left out: another sequence of its part, of more steps, has its rank, or
                           is of the same process */
    size_t too_short; /* left out: fewer steps than a block has, where others of its part have more
                       */
};

/*
 * Sorts the sequences into parts, numbered as they began: those in one part ran side by side, which
 * is said of two where they share at least half of the time of the shorter one, and of all that
 * hang together by this. A part has one sequence of a rank and of a process at most: that with most
 * steps. least: steps without which a sequence has no block.
 */
void ab_live_arrange(struct ab_live_sequence *sequences, size_t count, uint64_t least,
                     struct ab_live_parts *parts);

#endif
