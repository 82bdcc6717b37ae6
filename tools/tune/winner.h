/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_TUNE_WINNER_H
#define CUDAPOLICY_TOOLS_TUNE_WINNER_H

/* A policy that was found to help, with what shows it in comments at its top. */

#include <stdio.h>

#include "search.h"

struct winner_hardware {
    char *gpus;   /* "NVIDIA H200 (GPU-…), …"; NULL: not known */
    char *driver; /* NULL: not known */
};

/* What the reports in a folder say of the hardware; nothing where there is none. To be released. */
void winner_read_hardware(struct winner_hardware *hardware, const char *reports);
void winner_release_hardware(struct winner_hardware *hardware);

/* Writes the policy. Only of a result whose end is SEARCH_CONFIRMED. */
void winner_write(const struct search *search, const struct search_result *result,
                  const struct winner_hardware *hardware, FILE *stream);

/* The command as a shell would take it, in one printable line of at most so many bytes; to be
 * freed. */
char *winner_command_line(char *const *command, size_t limit);

#endif
