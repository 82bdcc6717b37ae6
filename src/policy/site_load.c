/* SPDX-License-Identifier: Apache-2.0 */

/* A site's file from the host's disk, or from the variable that carries it into a container. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/parser.h"
#include "policy/site.h"

static const char from_variable[] = "site (from CUDAPOLICY_SITE)";

/* ---- CUDAPOLICY_SITE ------------------------------------------------------------------------ */

static bool needs_escape(unsigned char byte)
{
    return byte < 0x20 || byte == '%' || byte == 0x7f;
}

char *policy_site_encode(const char *text, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";
    char *encoded = length < SIZE_MAX / 3 ? malloc(3 * length + 1) : NULL, *end = encoded;

    for (size_t i = 0; encoded != NULL && i < length; i++) {
        unsigned char byte = (unsigned char)text[i];

        if (needs_escape(byte)) {
            *end++ = '%';
            *end++ = digits[byte >> 4];
            *end++ = digits[byte & 15];
        } else {
            *end++ = text[i];
        }
    }
    if (encoded != NULL) {
        *end = '\0';
    }
    return encoded;
}

/* 0 to 15; 16 for no digit. */
static unsigned digit(char character)
{
    if (character >= '0' && character <= '9') {
        return (unsigned)(character - '0');
    }
    character |= 0x20;
    return character >= 'a' && character <= 'f' ? (unsigned)(character - 'a') + 10 : 16;
}

static void refuse(struct policy_diagnostics *diagnostics, const char *why)
{
    policy_diagnose(diagnostics, POLICY_ERROR, (struct policy_place){0}, "refused: the value %s",
                    why);
}

char *policy_site_decode(const char *variable, size_t *length,
                         struct policy_diagnostics *diagnostics)
{
    char *text, *end;

    if (strlen(variable) > POLICY_SITE_VARIABLE_LIMIT) {
        refuse(diagnostics, "has more than 64 KiB");
        return NULL;
    }
    text = end = malloc(strlen(variable) + 1);
    if (text == NULL) {
        refuse(diagnostics, "does not fit into memory");
        return NULL;
    }
    for (; *variable != '\0'; variable++) {
        unsigned high, low;

        if (*variable != '%') {
            *end++ = *variable;
            continue;
        }
        high = digit(variable[1]);
        low = high < 16 ? digit(variable[2]) : 16;
        if (low == 16) {
            refuse(diagnostics, "has a % without two hexadecimal digits");
            free(text);
            return NULL;
        }
        *end++ = (char)(high << 4 | low);
        variable += 2;
    }
    *length = (size_t)(end - text);
    return text;
}

/* ---- either --------------------------------------------------------------------------------- */

static struct policy *load_variable(const char *variable, struct policy_diagnostics *diagnostics)
{
    size_t length = 0;
    char *text;
    struct policy *policy = NULL;

    if (diagnostics->file == NULL) {
        diagnostics->file = strdup(from_variable);
    }
    text = policy_site_decode(variable, &length, diagnostics);
    if (text != NULL) {
        policy = policy_site_parse(text, length, from_variable, diagnostics);
    }
    free(text);
    return policy;
}

static void name_file(struct policy_diagnostics *diagnostics, const char *path)
{
    char *name = NULL;

    if (diagnostics->file == NULL && asprintf(&name, "site %s", path) >= 0) {
        diagnostics->file = name;
    }
}

struct policy *policy_site_load(const struct policy_site_place *place, const char *variable,
                                bool *absent, struct policy_diagnostics *diagnostics)
{
    int programs_errno = errno;
    size_t length = 0;
    char *text = policy_site_read(place, &length, absent, diagnostics);
    struct policy *policy = NULL;

    if (text != NULL) {
        name_file(diagnostics, place->path);
        policy = policy_site_parse(text, length, place->path, diagnostics);
        free(text);
    } else if (!*absent) {
        name_file(diagnostics, place->path);
    } else if (variable != NULL && variable[0] != '\0' && place->path[0] != '\0') {
        *absent = false;
        policy = load_variable(variable, diagnostics);
    }
    errno = programs_errno;
    return policy;
}

struct policy *policy_site_load_file(const char *path, struct policy_diagnostics *diagnostics)
{
    return policy_load_with(policy_site_parse, path, diagnostics);
}
