/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_ARM_H
#define CUDAPOLICY_TOOLS_AB_ARM_H

/* Arms as the user names them: "none", "observe", a policy file, or NAME= before one of these. */

#include <stdbool.h>
#include <stddef.h>

#include "experiment.h"

struct arm_request {
    char *const *words; /* the first one is the baseline */
    size_t count;
    bool no_repeat; /* the baseline once only */
    bool warnings;  /* of the policies too */
};

enum arm_result {
    ARM_FINE,
    ARM_MISUSED, /* a word is wrong: the reason in error */
    ARM_UNFIT,   /* a policy that does not load: its errors are printed */
};

/* Fills in the experiment's arms: the words, then the baseline again, and observe where an arm is
 * none and none is observe. Every policy is read and checked. */
enum arm_result arm_add_all(struct ab_experiment *experiment, const struct arm_request *request,
                            char *error, size_t size);

#endif
