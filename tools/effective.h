/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_EFFECTIVE_H
#define CUDAPOLICY_TOOLS_EFFECTIVE_H

/* All that would hold for a program that is started here under the preload, and where each value
 * comes from: the environment, the job's policy, the site's file, or the library itself. */

#include <stdbool.h>

struct effective_options {
    const char *policy; /* NULL: as CUDAPOLICY_FILE says */
    const char *site;   /* a file in the place of this machine's; NULL: that */
    bool no_site;
    bool wide, json;
};

/* Prints it on stdout. False after errors of a file, with messages on stderr; what holds without
 * that file is printed all the same. */
bool effective_print(const struct effective_options *options);

#endif
