/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_REPORT_JSON_H
#define CUDAPOLICY_REPORT_JSON_H

/*
 * A view as JSON, schema version 1: docs/report-format.md says what each member means.
 *
 * The library is jansson: small, kept for fifteen years and packaged everywhere, it keeps the order
 * of members, refuses text that is not UTF-8 instead of writing it, and its static archive links
 * into a shared object that needs libc alone, without a symbol newer than glibc 2.14. (json-c links
 * as well, but writes invalid UTF-8 as it comes.)
 *
 * Functions that return a json_t return a new reference, or NULL when memory ran out; jansson's own
 * functions take such a NULL as a failure of theirs, so that only the last one of a chain is
 * checked.
 */

#include <jansson.h>

#include "report/view.h"

enum {
    REPORT_JSON_SCHEMA = 1,
    REPORT_JSON_SLICE_LIMIT = 20000, /* slices of a live comparison; later ones are counted only */
};

json_t *report_json(struct report_view *view);

/* Text of any bytes: those that are not UTF-8 become \xNN, four characters each. */
json_t *report_json_text(const char *text);

/* A count, cut to what JSON readers take as an integer (2^63 - 1). */
json_t *report_json_count(uint64_t count);

/* The string of a view at an offset. */
json_t *report_json_view_text(struct report_view *view, uint32_t offset);

/* Appends to an array, which is given back: NULL, and the array freed, when either is NULL. */
json_t *report_json_append(json_t *array, json_t *element);

#endif
