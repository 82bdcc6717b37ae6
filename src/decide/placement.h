/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_PLACEMENT_H
#define CUDAPOLICY_DECIDE_PLACEMENT_H

/*
 * Where launches and streams run: the setting `partition`.
 *
 * A launch that a kernel rule gives a partition is moved there (place/move.h). A launch on a stream
 * that was created on a partition stays there, unless it would not be safe: a cooperative grid that
 * does not fit, a grid that would no longer be co-resident, a cluster that does not fit, a capture
 * whose rule does not say graph_nodes. Such a launch is moved to the whole device.
 */

#include "decide/settle.h"

/* Whether the program can have the partition of a rule on the device: the partition is there, or
 * why not. Launch path. */
enum report_reason decide_placement_partition(int device, const struct policy_setting_value *value,
                                              const struct place_partition **partition);

/* Before the other settings: at->target, where the launch would go, so that clusters are checked
 * against it, and at->target_reason. Launch path; asks for the current context where the stream is
 * a default one. */
void decide_placement_begin(struct decide_case *at);

/* The result of the setting in a kernel rule, after the others; sets at->move. Launch path: queries
 * at the first sight of a shape. */
uint8_t decide_placement_settle(struct decide_case *at, const struct decide_choice *choice);

/* The same for a launch on a stream with a partition, where no kernel rule has the setting: choice
 * is the stream rule's. Launch path as above. */
uint8_t decide_placement_settle_stream(struct decide_case *at, const struct decide_choice *choice);

/* For a launch on a stream with a partition that the setting, as settled, does not move: while the
 * policy is not enforced, and where a kernel rule's setting is refused or leaves it. Sets at->move
 * to the whole device when it may not stay, else to NULL. Launch path as above. */
void decide_placement_guard(struct decide_case *at);

/* Whether a launch, as a node, may run on a partition: NONE, or why it is not to. Queries at the
 * first sight of a shape. */
enum report_reason decide_placement_fits(const struct decide_launch *launch,
                                         const struct place_partition *partition,
                                         bool unsafe_residency);

/* What place_move_begin needs, for the launch that is moved. Launch path. */
void decide_placement_finish(const struct decide_case *at, struct decide_verdict *verdict);

/* After the stream's attributes changed: its side streams get the same. Not for the launch path. */
void decide_placement_mirror(CUstream stream, bool per_thread_default);

#endif
