/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_JOB_TEXT_H
#define CUDAPOLICY_TOOLS_JOB_TEXT_H

/*
 * The document of a job holds the report of every process, and can be far larger than memory would
 * like once parsed. Where it holds them, as bytes of the file, is found without parsing it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job_text_part {
    int64_t offset, length;
};

struct job_text {
    size_t count, capacity;
    struct job_text_part *parts; /* one for each object in "processes" */
};

/* False, with nothing to release, where the file is no such document, or none that is whole: then
 * it is for the parser to say what is wrong. */
bool job_text_split(const char *path, struct job_text *text);

/* The bytes of a part, with a NUL behind them; to be freed. NULL with errno. */
char *job_text_read(const char *path, const struct job_text_part *part);

void job_text_release(struct job_text *text);

#endif
