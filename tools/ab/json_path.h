/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_AB_JSON_PATH_H
#define CUDAPOLICY_TOOLS_AB_JSON_PATH_H

/*
 * Places in a JSON document: a pointer (RFC 6901), "/runs/0/time", or the same as most people write
 * it, "runs[0].time" or "runs.0.time", where [*] stands for all elements of an array and all
 * members of an object. "." is the document itself; a '.' before the first key changes nothing.
 * Keys with dots or brackets in them need a pointer.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum json_step_kind {
    JSON_STEP_KEY,   /* a member, or where there is an array, the element with this number */
    JSON_STEP_INDEX, /* an element of an array */
    JSON_STEP_ALL,
};

struct json_step {
    enum json_step_kind kind;
    char *key; /* digits for an index */
};

struct json_path {
    size_t count, capacity;
    struct json_step *steps;
};

/* False with a message in error[size] that shows the place, and nothing to release. */
bool json_path_parse(struct json_path *path, const char *text, char *error, size_t size);
void json_path_release(struct json_path *path);

struct json_place {
    const json_t *value; /* the document's */
    char *name;          /* as a pointer */
};

struct json_places {
    size_t count, capacity;
    struct json_place *found;
};

/* Finds what is there. False with a message in error[size] that tells how far it led and what was
 * there, and nothing to release. */
bool json_path_find(const struct json_path *path, const json_t *document,
                    struct json_places *places, char *error, size_t size);
void json_places_release(struct json_places *places);

/* "an object with \"a\", \"b\", ...", "the text \"x\"": to be freed. */
char *json_path_describe(const json_t *value, size_t width);

#endif
