/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_LIVE_H
#define CUDAPOLICY_DECIDE_LIVE_H

/*
 * Live comparisons: arms that alternate inside one process, by step.
 *
 * A step begins at each launch of the step kernel, or at each launch of a graph. Steps come in
 * slices, slices in blocks; in each block every arm has one slice, in an order that depends on
 * nothing but the seed and the block's number. So ranks that make the same steps are in the same
 * arm without a word between them. The arm changes with the first launch of a slice; launches that
 * other threads make at that moment may still go by the arm before.
 *
 * The arm stands in the control word. Rules with the selector `arm` ask for it at each launch; what
 * they decide is kept by arm, so that a switch is paid for once by each kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DECIDE_ARM_NONE = -1, /* of nodes in a graph, which is launched in many arms */
};

enum decide_live_step {
    DECIDE_LIVE_STEP_KERNEL,
    DECIDE_LIVE_STEP_GRAPH,
};

struct decide_live_options {
    unsigned arms; /* 0: no live comparison */
    uint64_t seed;
    uint32_t slice;  /* steps of a slice */
    uint32_t drop;   /* steps at the beginning of a slice that do not count; below slice */
    uint32_t warmup; /* steps before the first slice, in arm 0 */
    enum decide_live_step step;
    char kernel[256]; /* name glob, as in a policy */
};

/*
 * Reads the text of CUDAPOLICY_LIVE: words apart by blanks, arms=N seed=N slice=N [drop=N]
 * [warmup=N], each once, and step=graph or step=kernel:GLOB, which comes last and takes the rest of the text.
 * False with a message in error[size]. Not for the launch path.
 */
bool decide_live_parse(const char *text, struct decide_live_options *options, char *error,
                       size_t size);

/* The order of the arms in a block: order[arms] is a permutation, drawn by SplitMix64 and
 * Fisher-Yates, each as likely as any other. arms: at most POLICY_ARM_LIMIT. */
void decide_live_order(uint64_t seed, uint64_t block, unsigned arms, uint8_t *order);

/* Before decide_start, once; options are copied, NULL or arms 0: none. */
void decide_live_options_set(const struct decide_live_options *options);

/* The arms; 0: no live comparison. Launch path. */
extern unsigned decide_live_arms __attribute__((visibility("hidden")));
/* Launches of graphs begin steps. Launch path. */
extern bool decide_live_graph_steps __attribute__((visibility("hidden")));

/* For decide_start, also in the child after fork: steps begin anew. */
void decide_live_start(void);

/* Whether launches of the kernel begin steps; at first sight of a kernel. */
struct kernel_name;
bool decide_live_is_step(const struct kernel_name *name);

/* A step begins: enters it in the report, and switches the arm where a slice begins. Launch path:
 * no lock but at switches. */
void decide_live_begin_step(void);

#endif
