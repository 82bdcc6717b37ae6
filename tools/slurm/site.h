/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_SLURM_SITE_H
#define CUDAPOLICY_TOOLS_SLURM_SITE_H

/* The site's file as this host has it, for tasks that may run in a container, whose /etc is the
 * image's. */

#include <stdbool.h>

#include "check_file.h"

struct policy;

struct slurm_site {
    char *variable; /* for CUDAPOLICY_SITE; NULL: there is no file, or none that can be used */
    struct policy *policy; /* NULL as well then */
    bool asks; /* tasks have something to do for the site, whether their user asks or not */
};

/* Reads it; lines of complaint where it is there and cannot be used. To be released. */
void slurm_site_read(struct slurm_site *site, slurm_complain *complain);

void slurm_site_release(struct slurm_site *site);

#endif
