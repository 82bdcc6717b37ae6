/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_TUNE_FOLDER_H
#define CUDAPOLICY_TOOLS_TUNE_TUNE_FOLDER_H

/*
 * The folder of a search: the policy and its candidates as they were at the start, the plan, and a
 * folder for each stage. What is run is what lies there, so that an edited policy changes nothing,
 * and a search can be continued.
 */

#include <stdbool.h>
#include <stddef.h>

#include "search.h"

struct tune_folder {
    char *path;
    bool ours;    /* made for this search alone, to be removed when nobody needs it */
    char **files; /* of the candidates, absolute */
    size_t count;
};

/* given: of --folder, or with resume of --resume; NULL: one in $TMPDIR. False after a message. */
bool tune_folder_make(struct tune_folder *folder, const char *given, bool resume);

/* Writes the policy and the candidates; with resume, finds them as they are. False after a message,
 * also where they are other ones. */
bool tune_folder_fill(struct tune_folder *folder, const char *text, size_t length,
                      const struct space *space, bool resume);

/* Writes what is planned; of a search that is continued (search->resume), compares it, and takes
 * the seed from it where search->plan.seed is 0. False after a message. */
bool tune_folder_plan(const struct tune_folder *folder, struct search *search);

void tune_folder_remove(const struct tune_folder *folder);
void tune_folder_release(struct tune_folder *folder);

#endif
