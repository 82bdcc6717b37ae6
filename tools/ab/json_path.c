/* SPDX-License-Identifier: Apache-2.0 */
#include "json_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"
#include "memory.h"
#include "printable.h"

enum {
    QUOTE_WIDTH = 80,
    STEP_LIMIT = 100,
    /* Places that [*] may lead to. */
    PLACE_LIMIT = 2000000,
    KEYS_SHOWN = 6,
    DESCRIPTION_WIDTH = 120,
};

/* ---- Parsing -------------------------------------------------------------------------------- */

static bool refuse(const char *text, const char *at, const char *reason, char *error, size_t size)
{
    char *quoted = ab_quote(text, strlen(text), QUOTE_WIDTH);

    snprintf(error, size, "the JSON path '%s' is wrong at offset %zu: %s", quoted,
             (size_t)(at - text), reason);
    free(quoted);
    return false;
}

static void add_step(struct json_path *path, enum json_step_kind kind, const char *key,
                     size_t length)
{
    path->steps = memory_grow(path->steps, path->count, &path->capacity, sizeof *path->steps);
    path->steps[path->count++] = (struct json_step){kind, memory_format("%.*s", (int)length, key)};
}

/* ~1 is a slash in a key, ~0 a tilde. */
static void unescape(char *key)
{
    char *to = key;

    for (const char *from = key; *from != '\0'; from++) {
        if (*from == '~') {
            from++;
            *to++ = *from == '1' ? '/' : '~';
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static bool parse_pointer(struct json_path *path, const char *text, char *error, size_t size)
{
    const char *next = text;

    while (*next == '/' && path->count < STEP_LIMIT) {
        size_t length = strcspn(++next, "/");

        for (size_t i = 0; i < length; i++) {
            if (next[i] == '~' && next[i + 1] != '0' && next[i + 1] != '1') {
                return refuse(text, next + i, "'~' stands before 0 (a '~') or 1 (a '/') only",
                              error, size);
            }
        }
        add_step(path, JSON_STEP_KEY, next, length);
        unescape(path->steps[path->count - 1].key);
        next += length;
    }
    return *next == '\0' || refuse(text, next, "too deep", error, size);
}

/* "[3]" or "[*]" at *next. */
static bool parse_bracket(struct json_path *path, const char *text, const char **next, char *error,
                          size_t size)
{
    const char *inside = *next + 1;
    size_t digits = strspn(inside, "0123456789");

    if (inside[0] == '*' && inside[1] == ']') {
        add_step(path, JSON_STEP_ALL, "*", 1);
        *next = inside + 2;
        return true;
    }
    if (digits == 0 || digits > 9 || inside[digits] != ']') {
        return refuse(text, *next,
                      "in brackets there is a number, [0], or [*]; other keys can be written as a "
                      "JSON pointer, /a/b",
                      error, size);
    }
    add_step(path, JSON_STEP_INDEX, inside, digits);
    *next = inside + digits + 1;
    return true;
}

static bool parse_dotted(struct json_path *path, const char *text, char *error, size_t size)
{
    const char *next = text + (text[0] == '.');
    bool key_wanted = *next != '\0' && *next != '[';

    while ((*next != '\0' || key_wanted) && path->count < STEP_LIMIT) {
        if (!key_wanted && *next == '[') {
            if (!parse_bracket(path, text, &next, error, size)) {
                return false;
            }
        } else if (!key_wanted && *next == '.') {
            next++;
            key_wanted = true;
        } else if (key_wanted) {
            size_t length = strcspn(next, ".[");

            if (length == 0 || memchr(next, ']', length) != NULL) {
                return refuse(text, next, length == 0 ? "a key is missing" : "']' without a '['",
                              error, size);
            }
            add_step(path, JSON_STEP_KEY, next, length);
            next += length;
            key_wanted = false;
        } else {
            return refuse(text, next, "'.' or '[' is expected", error, size);
        }
    }
    return *next == '\0' || refuse(text, next, "too deep", error, size);
}

bool json_path_parse(struct json_path *path, const char *text, char *error, size_t size)
{
    bool parsed;

    *path = (struct json_path){0};
    if (text[0] == '\0') {
        snprintf(error, size, "the JSON path is empty: '.' is the document itself");
        return false;
    }
    parsed = text[0] == '/' ? parse_pointer(path, text, error, size)
                            : parse_dotted(path, text, error, size);
    if (!parsed) {
        json_path_release(path);
    }
    return parsed;
}

void json_path_release(struct json_path *path)
{
    for (size_t i = 0; i < path->count; i++) {
        free(path->steps[i].key);
    }
    free(path->steps);
    *path = (struct json_path){0};
}

/* ---- Describing ----------------------------------------------------------------------------- */

static char *describe_object(const json_t *object)
{
    size_t shown = 0;
    const char *key;
    json_t *value;
    char *text = memory_copy("");

    /* The macro wants an object it may change, and does not. */
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        char *longer = shown == KEYS_SHOWN
                           ? memory_format("%s, ...", text)
                           : memory_format("%s%s\"%s\"", text, shown > 0 ? ", " : "", key);

        free(text);
        text = longer;
        if (shown++ == KEYS_SHOWN) {
            break;
        }
    }
    return text;
}

static char *describe(const json_t *value)
{
    char *inside, *text;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        inside = describe_object(value);
        text = json_object_size(value) == 0 ? memory_copy("an empty object")
                                            : memory_format("an object with %s", inside);
        free(inside);
        return text;
    case JSON_ARRAY:
        return json_array_size(value) == 0
                   ? memory_copy("an empty array")
                   : memory_format("an array of %zu", json_array_size(value));
    case JSON_STRING:
        return memory_format("the text \"%s\"", json_string_value(value));
    case JSON_INTEGER:
    case JSON_REAL:
        return memory_format("the number %.15g", json_number_value(value));
    default:
        return memory_copy(json_is_null(value) ? "null" : json_is_true(value) ? "true" : "false");
    }
}

char *json_path_describe(const json_t *value, size_t width)
{
    char *text = describe(value);
    char *quoted = ab_quote(text, strlen(text), width);

    free(text);
    return quoted;
}

/* ---- Finding -------------------------------------------------------------------------------- */

static void add_place(struct json_places *places, const json_t *value, const char *parent,
                      const char *key)
{
    places->found =
        memory_grow(places->found, places->count, &places->capacity, sizeof *places->found);
    places->found[places->count++] = (struct json_place){
        value, key == NULL ? memory_copy("") : memory_format("%s/%s", parent, key)};
}

void json_places_release(struct json_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        free(places->found[i].name);
    }
    free(places->found);
    *places = (struct json_places){0};
}

static bool is_index(const char *key)
{
    size_t length = strlen(key);

    return length > 0 && length <= 9 && strspn(key, "0123456789") == length &&
           (key[0] != '0' || length == 1);
}

static const json_t *step_into(const struct json_step *step, const json_t *value)
{
    if (json_is_array(value) && (step->kind == JSON_STEP_INDEX || is_index(step->key))) {
        return json_array_get(value, strtoul(step->key, NULL, 10));
    }
    return step->kind == JSON_STEP_KEY ? json_object_get(value, step->key) : NULL;
}

static void step_into_all(const struct json_place *place, struct json_places *places)
{
    const char *key;
    json_t *member;
    size_t i;
    char number[24];

    json_array_foreach(place->value, i, member)
    {
        snprintf(number, sizeof number, "%zu", i);
        add_place(places, member, place->name, number);
    }
    json_object_foreach((json_t *)(uintptr_t)place->value, key, member)
    {
        add_place(places, member, place->name, key);
    }
}

static bool say_lost(const struct json_place *place, const struct json_step *step, char *error,
                     size_t size)
{
    char *what = json_path_describe(place->value, DESCRIPTION_WIDTH);
    char *name = ab_quote(place->name, strlen(place->name), QUOTE_WIDTH);
    char *key = ab_quote(step->key, strlen(step->key), QUOTE_WIDTH);

    snprintf(error, size, "no '%s' at %s: there is %s", key, name[0] == '\0' ? "the top" : name,
             what);
    free(what);
    free(name);
    free(key);
    return false;
}

/* All places that one step leads to from those before. */
static bool step_from(const struct json_places *from, const struct json_step *step,
                      struct json_places *to, char *error, size_t size)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct json_place *place = &from->found[i];
        const json_t *next;

        if (to->count > PLACE_LIMIT) {
            snprintf(error, size, "[*] leads to more than %d places", PLACE_LIMIT);
            return false;
        }
        if (step->kind == JSON_STEP_ALL &&
            (json_is_array(place->value) || json_is_object(place->value))) {
            step_into_all(place, to);
            continue;
        }
        next = step_into(step, place->value);
        if (next == NULL) {
            return say_lost(place, step, error, size);
        }
        add_place(to, next, place->name, step->key);
    }
    return true;
}

bool json_path_find(const struct json_path *path, const json_t *document,
                    struct json_places *places, char *error, size_t size)
{
    bool found = true;

    *places = (struct json_places){0};
    add_place(places, document, "", NULL);
    for (size_t i = 0; i < path->count && found; i++) {
        struct json_places next = {0};

        found = step_from(places, &path->steps[i], &next, error, size);
        json_places_release(places);
        *places = next;
    }
    if (!found) {
        json_places_release(places);
    }
    return found;
}
