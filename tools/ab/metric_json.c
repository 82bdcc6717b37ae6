/* SPDX-License-Identifier: Apache-2.0 */

/* Metrics that stand in a JSON document: which document, which place in it, what is there. */

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expression.h"
#include "json_path.h"
#include "lines.h"
#include "memory.h"
#include "metric_parts.h"

enum {
    /* A document larger than this is no metric. Of longer output, the end is looked at. */
    DOCUMENT_LIMIT = 64 * 1024 * 1024,
    /* Where texts that begin like JSON turn out to be none, so many times the size of the output is
     * read in vain before it is given up. */
    TRIES_FACTOR = 2,
    QUOTE_WIDTH = 80,
};

/* ---- Which document ------------------------------------------------------------------------- */

/* "FILE:PATH", ":PATH" or "PATH". */
static const char *path_in(const char *definition, size_t *file_length)
{
    const char *colon = strchr(definition, ':');

    *file_length = colon == NULL ? 0 : (size_t)(colon - definition);
    return colon == NULL ? definition : colon + 1;
}

bool ab_json_check(const char *definition, char *error, size_t size)
{
    size_t file_length;
    const char *text = path_in(definition, &file_length);
    struct json_path path;

    if (!json_path_parse(&path, text, error, size)) {
        return false;
    }
    json_path_release(&path);
    return true;
}

char *ab_replace(char *text, const char *name, const char *value)
{
    char *found = strstr(text, name);

    while (found != NULL) {
        char *head = memory_format("%.*s%s", (int)(found - text), text, value);
        size_t length = strlen(head);
        char *all = memory_format("%s%s", head, found + strlen(name));

        free(head);
        free(text);
        text = all;
        found = strstr(text + length, name);
    }
    return text;
}

char *ab_place_of(const char *path, const struct ab_run_files *files)
{
    char block[24], position[24];
    char *text = path[0] == '/' || files->folder == NULL
                     ? memory_copy(path)
                     : memory_format("%s/%s", files->folder, path);

    snprintf(block, sizeof block, "%u", files->block);
    snprintf(position, sizeof position, "%u", files->position);
    text = ab_replace(text, "{arm}", files->arm == NULL ? "" : files->arm);
    text = ab_replace(text, "{block}", block);
    return ab_replace(text, "{position}", position);
}

/* The end of a file, DOCUMENT_LIMIT bytes at most, and a NUL behind it. */
struct text {
    char *bytes;
    size_t length;
    bool cut; /* there is more before it */
};

/* False with errno. */
static bool read_end(const char *path, struct text *text)
{
    int descriptor = ab_lines_descriptor(path);
    off_t size = descriptor < 0 ? -1 : lseek(descriptor, 0, SEEK_END);
    ssize_t got = 1;

    if (size < 0) {
        return false;
    }
    text->cut = size > DOCUMENT_LIMIT;
    text->length = 0;
    text->bytes = memory_allocate((text->cut ? DOCUMENT_LIMIT : (size_t)size) + 1, 1);
    lseek(descriptor, text->cut ? size - DOCUMENT_LIMIT : 0, SEEK_SET);
    size = text->cut ? DOCUMENT_LIMIT : size;
    while (text->length < (size_t)size && got != 0) {
        got = read(descriptor, text->bytes + text->length, (size_t)size - text->length);
        if (got < 0 && errno != EINTR) {
            break;
        }
        text->length += got > 0 ? (size_t)got : 0;
    }
    close(descriptor);
    return true;
}

static json_t *load_file(const char *path, char *error, size_t size)
{
    struct text text;
    json_error_t wrong;
    json_t *document = NULL;

    if (!read_end(path, &text)) {
        snprintf(error, size, "%s: %s", path,
                 errno == EINVAL ? "not a regular file" : strerror(errno));
        return NULL;
    }
    if (text.cut) {
        snprintf(error, size, "%s: larger than %d MiB", path, DOCUMENT_LIMIT / 1024 / 1024);
    } else if (text.length == 0) {
        snprintf(error, size, "%s: the file is empty", path);
    } else {
        document =
            json_loadb(text.bytes, text.length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &wrong);
        if (document == NULL) {
            char *reason = ab_quote(wrong.text, strlen(wrong.text), sizeof wrong.text);

            snprintf(error, size, "%s:%d:%d: no JSON: %s", path, wrong.line, wrong.column, reason);
            free(reason);
        }
    }
    free(text.bytes);
    return document;
}

static bool only_blanks(const char *text, size_t length)
{
    for (size_t i = 0; i < length && text[i] != '\n'; i++) {
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') {
            return false;
        }
    }
    return true;
}

/* Where the next line begins that could be the first one of an object or an array; length: none. */
static size_t next_start(const struct text *text, size_t from)
{
    while (from < text->length) {
        size_t first = from + strspn(text->bytes + from, " \t");
        const char *newline;

        if (text->bytes[first] == '{' || text->bytes[first] == '[') {
            return first;
        }
        newline = memchr(text->bytes + from, '\n', text->length - from);
        from = newline == NULL ? text->length : (size_t)(newline - text->bytes) + 1;
    }
    return text->length;
}

static size_t line_end(const struct text *text, size_t from)
{
    const char *newline = memchr(text->bytes + from, '\n', text->length - from);

    return newline == NULL ? text->length : (size_t)(newline - text->bytes) + 1;
}

/* The last object or array that has its lines for itself, among whatever else was printed. */
static json_t *find_last(const struct text *text, json_error_t *wrong)
{
    json_t *last = NULL, *document;
    size_t budget = text->length * TRIES_FACTOR + 1;
    size_t start = next_start(text, text->cut ? line_end(text, 0) : 0);
    json_error_t at;

    wrong->text[0] = '\0';
    while (start < text->length && budget > 0) {
        size_t left = text->length - start, used;

        document = json_loadb(text->bytes + start, left,
                              JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &at);
        used = at.position > 0 ? (size_t)at.position : 1;
        used = used > left ? left : used;
        if (document != NULL && only_blanks(text->bytes + start + used, left - used)) {
            json_decref(last);
            last = document;
            start = next_start(text, line_end(text, start + used));
            continue;
        }
        if (document == NULL) {
            *wrong = at;
        }
        json_decref(document);
        budget -= used < budget ? used : budget;
        start = next_start(text, line_end(text, start));
    }
    return last;
}

static json_t *load_output(const char *path, char *error, size_t size)
{
    struct text text;
    json_error_t wrong;
    json_t *document = NULL;
    bool found = path != NULL && read_end(path, &text);

    if (found) {
        /* The whole of it may be any value. */
        document = text.cut ? NULL
                            : json_loadb(text.bytes, text.length,
                                         JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &wrong);
        if (document == NULL) {
            document = find_last(&text, &wrong);
        }
        if (document == NULL && wrong.text[0] != '\0') {
            char *reason = ab_quote(wrong.text, strlen(wrong.text), sizeof wrong.text);

            snprintf(error, size,
                     "standard output holds no JSON object or array on lines of its own (the last "
                     "text that begins like one: %s)",
                     reason);
            free(reason);
        }
        free(text.bytes);
    } else {
        wrong.text[0] = '\0';
    }
    if (document == NULL && wrong.text[0] == '\0') {
        snprintf(error, size, "standard output holds no JSON object or array%s",
                 found && text.length > 0 ? " on lines of its own" : ": it is empty");
    }
    return document;
}

/* ---- What is there -------------------------------------------------------------------------- */

struct collection {
    struct ab_values *values;
    const char *document; /* for messages */
    char *error;
    size_t size;
};

static bool say_no_number(const struct collection *collection, const char *place,
                          const json_t *there)
{
    char *what = json_path_describe(there, QUOTE_WIDTH);

    snprintf(collection->error, collection->size, "%s: at %s there is %s, no number",
             collection->document, place[0] == '\0' ? "the top" : place, what);
    free(what);
    return false;
}

/* null stands for a value that is not there, as NaN does. */
static bool take_numbers(const struct collection *collection, const json_t *array, size_t rank,
                         const char *place)
{
    const json_t *element;
    size_t i;

    json_array_foreach(array, i, element)
    {
        if (json_is_number(element)) {
            ab_values_add_to(collection->values, rank, json_number_value(element));
        } else if (!json_is_null(element)) {
            char *deeper = memory_format("%s/%zu", place, i);

            say_no_number(collection, deeper, element);
            free(deeper);
            return false;
        }
    }
    return true;
}

static bool holds_arrays(const json_t *array)
{
    return json_is_array(json_array_get(array, 0));
}

/* A number, an array of numbers, or an array of such arrays, a rank each. first: numbers that are
 * no array's belong to this rank. */
static bool take(const struct collection *collection, const json_t *there, const char *place,
                 size_t *first)
{
    struct ab_values *values = collection->values;
    bool taken = true;

    if (json_is_number(there)) {
        *first = *first == SIZE_MAX ? ab_values_add_rank(values) : *first;
        ab_values_add_to(values, *first, json_number_value(there));
        return true;
    }
    if (!json_is_array(there)) {
        return say_no_number(collection, place, there);
    }
    if (!holds_arrays(there)) {
        return take_numbers(collection, there, ab_values_add_rank(values), place);
    }
    for (size_t i = 0; i < json_array_size(there) && taken; i++) {
        char *deeper = memory_format("%s/%zu", place, i);
        const json_t *element = json_array_get(there, i);

        taken = json_is_array(element)
                    ? take_numbers(collection, element, ab_values_add_rank(values), deeper)
                    : say_no_number(collection, deeper, element);
        free(deeper);
    }
    return taken;
}

static bool all_ranks_have_values(const struct collection *collection, const char *path)
{
    const struct ab_values *values = collection->values;

    for (size_t i = 0; i < values->rank_count; i++) {
        if (values->ranks[i].count == 0 && values->count < AB_VALUE_LIMIT) {
            snprintf(collection->error, collection->size,
                     "%s: at %s there is an array without numbers%s", collection->document, path,
                     values->count > 0 ? ", beside others" : "");
            return false;
        }
    }
    return true;
}

static bool collect(const struct collection *collection, const struct json_path *path,
                    const char *text, const json_t *document)
{
    struct json_places places = {0};
    size_t first = SIZE_MAX;
    bool taken;
    char reason[400];

    if (!json_path_find(path, document, &places, reason, sizeof reason)) {
        snprintf(collection->error, collection->size, "%s: %s", collection->document, reason);
        return false;
    }
    taken = true;
    for (size_t i = 0; i < places.count && taken; i++) {
        taken = json_is_null(places.found[i].value) && places.count > 1
                    ? true
                    : take(collection, places.found[i].value, places.found[i].name, &first);
    }
    json_places_release(&places);
    if (taken && collection->values->rank_count == 0) {
        snprintf(collection->error, collection->size, "%s: there is no number at %s",
                 collection->document, text);
        return false;
    }
    return taken && all_ranks_have_values(collection, text);
}

bool ab_json_values(const struct ab_metric *metric, const struct ab_run_files *files,
                    struct ab_values *values, char *error, size_t size)
{
    size_t file_length;
    const char *text = path_in(metric->definition, &file_length);
    char *file = memory_format("%.*s", (int)file_length, metric->definition);
    char *place = ab_place_of(file, files);
    struct collection collection = {values, file_length > 0 ? place : "standard output", error,
                                    size};
    struct json_path path;
    json_t *document = NULL;
    bool collected = false;

    if (json_path_parse(&path, text, error, size)) {
        document = file_length > 0 ? load_file(place, error, size)
                                   : load_output(files->output, error, size);
        collected = document != NULL && collect(&collection, &path, text, document);
        json_path_release(&path);
    }
    json_decref(document);
    free(place);
    free(file);
    return collected;
}
