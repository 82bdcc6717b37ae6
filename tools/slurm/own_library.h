/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_SLURM_OWN_LIBRARY_H
#define CUDAPOLICY_SLURM_OWN_LIBRARY_H

/*
 * The path of libcudapolicy.so where plugstack.conf names none: seen from the plugin as it was
 * installed, so that an installed tree can be moved; else where the build was told to install it.
 * Constant after the first call; not to be freed.
 */
const char *slurm_own_library(void);

#endif
