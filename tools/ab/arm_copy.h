/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_ARM_COPY_H
#define CUDAPOLICY_TOOLS_AB_ARM_COPY_H

/* The arms' policies as they were at the start, in the experiment's folder: they are what runs
 * read, so that a file that is edited meanwhile makes no two arms of one. */

#include <stdbool.h>

#include "experiment.h"

/* Makes the copies, or finds those of an experiment that is continued. False after a message, also
 * where a file was changed since its arm was read. */
bool arm_copy_make(struct ab_experiment *experiment, const char *folder);

/* Says which files are not what they were. */
void arm_copy_tell_changes(const struct ab_experiment *experiment);

void arm_copy_remove(const struct ab_experiment *experiment, const char *folder);

/* Whether the policy in a file is the one with this SHA-256, in hexadecimal. */
bool arm_copy_is(const char *path, const char *sha256);

#endif
