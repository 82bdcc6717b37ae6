/* SPDX-License-Identifier: Apache-2.0 */
#include "run_options.h"

#include <fcntl.h>
#include <sha256.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json_output.h"
#include "memory.h"
#include "policy/policy.h"
#include "policy/site.h"
#include "printable.h"
#include "site_input.h"

static const char digest_key[] = "library_sha256", site_key[] = "site_sha256";

enum {
    VALUE_WIDTH = 120,
};

/* ---- To JSON ---- */

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL) {
        json_object_set_new(object, key, json_output_string(text));
    }
}

/* A library that was built again is another one, wherever it lies. */
static json_t *digest_of(const char *path)
{
    unsigned char bytes[65536];
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char text[2 * SHA256_DIGEST_LENGTH + 1];
    SHA2_CTX context;
    ssize_t length = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC);

    SHA256Init(&context);
    while (file >= 0 && (length = read(file, bytes, sizeof bytes)) > 0) {
        SHA256Update(&context, bytes, (size_t)length);
    }
    if (file >= 0) {
        close(file);
    }
    if (length < 0) {
        return json_null();
    }
    SHA256Final(digest, &context);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    return json_string(text);
}

/* All arms but none are under the site's rules. What is wrong with its file was said with the arms.
 */
static void set_site(json_t *object)
{
    struct policy *site = site_input_load_quietly();
    char text[2 * sizeof site->site->sha256 + 1];

    if (site == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof site->site->sha256; i++) {
        snprintf(text + 2 * i, 3, "%02x", site->site->sha256[i]);
    }
    set_text(object, site_key, text);
    policy_free(site);
}

json_t *run_options_json(const struct ab_options *options, const char *library)
{
    json_t *object = json_object(), *variables = json_array();
    char *directory = realpath(".", NULL);

    set_text(object, "directory", directory);
    free(directory);
    set_text(object, "--prepare", options->prepare);
    set_text(object, "--cleanup", options->cleanup);
    set_text(object, "--check", options->check);
    set_text(object, "--same-output", options->same_output);
    if (options->relative > 0 || options->absolute > 0) {
        json_object_set_new(object, "--tolerance",
                            json_pack("[f, f]", options->relative, options->absolute));
    }
    if (options->time_limit > 0 || options->no_time_limit) {
        json_object_set_new(object, "--timeout", json_real(options->time_limit));
    }
    for (size_t i = 0; i < options->variable_count; i++) {
        json_array_append_new(variables, json_output_string(options->variables[i]));
    }
    if (json_array_size(variables) > 0) {
        json_object_set(object, "--env", variables);
    }
    json_decref(variables);
    set_text(object, "--library", library);
    json_object_set_new(object, digest_key, digest_of(library));
    set_site(object);
    return object;
}

/* ---- In words ---- */

static char *value_text(const json_t *value)
{
    char *joined, *number;

    if (json_is_string(value)) {
        return memory_copy(json_string_value(value));
    }
    if (json_is_boolean(value)) {
        return memory_copy(json_is_true(value) ? "yes" : "no");
    }
    if (json_is_number(value)) {
        return memory_format("%.9g", json_number_value(value));
    }
    joined = memory_copy("");
    for (size_t i = 0; i < json_array_size(value); i++) {
        char *longer;

        number = value_text(json_array_get(value, i));
        longer = memory_format("%s%s%s", joined, i > 0 ? ", " : "", number);
        free(joined);
        free(number);
        joined = longer;
    }
    return joined;
}

char *run_options_text(const json_t *value)
{
    char *whole, *printable, *text;

    if (value == NULL || json_is_null(value)) {
        return memory_copy("not given");
    }
    whole = value_text(value);
    printable = printable_copy(whole);
    text = printable_shorten(printable, VALUE_WIDTH);
    free(whole);
    free(printable);
    return text;
}

char *run_options_pair(const json_t *now, const json_t *then)
{
    char *texts[] = {run_options_text(now), run_options_text(then)};
    char *pair = memory_format("%s; then: %s", texts[0], texts[1]);

    free(texts[0]);
    free(texts[1]);
    return pair;
}

static void append_difference(char **all, const char *name, const json_t *now, const json_t *then)
{
    char *pair = run_options_pair(now, then), *longer;

    longer = memory_format("%s%s%s (%s)", *all != NULL ? *all : "", *all != NULL ? ", " : "", name,
                           pair);
    free(pair);
    free(*all);
    *all = longer;
}

char *run_options_keys(const json_t *now, const json_t *then)
{
    char *all = NULL;
    const char *key;
    json_t *value;

    /* Both were written by this command, so that they have the same keys. */
    json_object_foreach((json_t *)(uintptr_t)now, key, value)
    {
        const json_t *other = json_object_get(then, key);

        if (!json_equal(value, other)) {
            append_difference(&all, key, value, other);
        }
    }
    return all;
}

/* Of the library, what the file says counts, not where it lies. */
static void compare_libraries(char **all, const json_t *now, const json_t *then)
{
    if (!json_equal(json_object_get(now, digest_key), json_object_get(then, digest_key))) {
        append_difference(all, "another libcudapolicy.so", json_object_get(now, "--library"),
                          json_object_get(then, "--library"));
    }
}

char *run_options_difference(const json_t *now, const json_t *then)
{
    static const struct {
        const char *key, *name;
    } options[] = {{"directory", "another working directory"},
                   {"--prepare", "--prepare"},
                   {"--cleanup", "--cleanup"},
                   {"--check", "--check"},
                   {"--same-output", "--same-output"},
                   {"--tolerance", "--tolerance"},
                   {"--timeout", "--timeout"},
                   {"--env", "--env"},
                   {site_key, "another file of the site's"}};
    char *all = NULL;

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const json_t *value = json_object_get(now, options[i].key);
        const json_t *other = json_object_get(then, options[i].key);

        if (value != other && (value == NULL || other == NULL || !json_equal(value, other))) {
            append_difference(&all, options[i].name, value, other);
        }
    }
    compare_libraries(&all, now, then);
    return all;
}
