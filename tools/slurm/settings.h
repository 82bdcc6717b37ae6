/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_SETTINGS_H
#define CUDAPOLICY_TOOLS_SLURM_SETTINGS_H

/* What the site says: the arguments after the plugin's name in plugstack.conf. */

#include <stddef.h>

#include "policy/policy.h"

/* The strings are the arguments' own, and live as long as these. */
struct slurm_settings {
    const char *library;           /* libcudapolicy.so on the compute nodes */
    const char *command;           /* cudapolicy on the compute nodes */
    const char *default_policy;    /* of tasks for which none was asked; NULL: none */
    const char *reports;           /* report template of tasks that have none; NULL: no report */
    enum policy_mode mode_ceiling; /* tasks run in this mode, or a lower one */
};

enum {
    SLURM_MESSAGE_SIZE = 1024, /* a path or two, and what is wrong */
};

/*
 * Takes the arguments, "name=value" each. 0, or -1 with the mistake of the first wrong one in
 * message, of SLURM_MESSAGE_SIZE bytes; the others are taken then.
 */
int slurm_settings_read(struct slurm_settings *settings, int count, char *const arguments[],
                        char *message);

const char *slurm_mode_name(enum policy_mode mode);

#endif
