/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_OUTPUT_FILE_H
#define CUDAPOLICY_TOOLS_OUTPUT_FILE_H

/* A file that a command writes at its end, claimed before it begins. */

#include <stdbool.h>
#include <stdio.h>

struct output_file {
    FILE *stream; /* NULL: none */
    const char *path;
    bool made; /* the file was not there before */
    bool kept; /* it is a regular file that was: what it holds goes when the output is written */
};

/* Makes the file, so that a mistyped name costs no run. One that is there is refused unless force
 * is true; what is no regular file (/dev/null, a pipe) is written to either way. What an old file
 * holds stays until output_file_begin. False after a message on stderr. */
bool output_file_open(struct output_file *file, const char *path, bool force);

/* Before the first byte is written: drops what the file held. */
void output_file_begin(struct output_file *file);

/* Closes it; false after a message, when not all could be written. */
bool output_file_close(struct output_file *file);

/* Closes it because there is nothing to write: a file that was made is removed, another stays as it
 * was. */
void output_file_abandon(struct output_file *file);

#endif
