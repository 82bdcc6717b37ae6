/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_SLURM_INSTALLED_BESIDE_H
#define CUDAPOLICY_SLURM_INSTALLED_BESIDE_H

/*
 * What was installed with the plugin, where plugstack.conf names no other: seen from the plugin as it
 * was installed, so that an installed tree can be moved; else where the build was told to install it.
 * Constant after the first call; not to be freed.
 */

/* The path of libcudapolicy.so. */
const char *slurm_own_library(void);

/* The path of the cudapolicy command. */
const char *slurm_own_command(void);

#endif
