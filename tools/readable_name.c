/* SPDX-License-Identifier: Apache-2.0 */
#include "readable_name.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

static const char anonymous[] = "(anonymous namespace)";

static bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* The first byte after a bracket that closes at the same depth; the end when it never closes.
 * Inside, all brackets count, but '>' only where '<' was opened: "->" and comparisons stand in
 * parentheses. */
static const char *skip_bracketed(const char *text)
{
    char stack[256];
    size_t depth = 0;

    for (; *text != '\0'; text++) {
        if (strchr("<({[", *text) != NULL) {
            if (depth == sizeof stack) {
                return text + strlen(text);
            }
            stack[depth++] = *text;
        } else if (strchr(")}]", *text) != NULL || (*text == '>' && text[-1] != '-')) {
            if (*text == '>' && stack[depth - 1] != '<') {
                continue;
            }
            depth--;
            if (depth == 0) {
                return text + 1;
            }
        }
    }
    return text;
}

char *readable_name_of_signature(const char *signature)
{
    char *name = memory_allocate(strlen(signature) + 1, 1), *end = name, *start = name;
    const char *text = signature;

    while (*text != '\0') {
        if (begins(text, anonymous)) {
            end = stpcpy(end, anonymous);
            text += strlen(anonymous);
        } else if (*text == '{') {
            /* A lambda is named by what stands in its braces. */
            const char *after = skip_bracketed(text);

            end = stpncpy(end, text, (size_t)(after - text));
            text = after;
        } else if (*text == '<') {
            text = skip_bracketed(text);
        } else if (*text == '(') {
            break;
        } else if (*text == ' ') {
            start = end; /* all before it was the return type */
            text++;
        } else {
            *end++ = *text++;
        }
    }
    *end = '\0';
    start = memory_copy(start);
    free(name);
    return start;
}

/* Whether there are parameters, which stand in parentheses that are not an unnamed namespace's. */
static bool has_parameters(const char *text)
{
    const char *parenthesis = text;

    while ((parenthesis = strchr(parenthesis, '(')) != NULL && begins(parenthesis, anonymous)) {
        parenthesis += strlen(anonymous);
    }
    return parenthesis != NULL;
}

/* Where the last component begins: after the last "::" outside braces and parentheses. */
static const char *last_component(const char *name)
{
    const char *last = name;

    for (const char *text = name; *text != '\0';) {
        if (*text == '{' || *text == '(') {
            text = skip_bracketed(text);
        } else if (begins(text, "::")) {
            text += 2;
            last = text;
        } else {
            text++;
        }
    }
    return last;
}

bool readable_name_fill(const char *text, struct match_facts *facts)
{
    bool mangled = begins(text, "_Z") || begins(text, "__nv_static_");
    char *name;
    size_t size;

    facts->form_known[POLICY_NAME_FORM_NAME] = true;
    facts->form_known[POLICY_NAME_FORM_SIGNATURE] = mangled || has_parameters(text);
    facts->form_known[POLICY_NAME_FORM_MANGLED] = mangled;
    if (mangled) {
        return kernel_name_make(text, &facts->name);
    }
    /* One allocation that begins at mangled, as kernel_name_release expects it. */
    name = readable_name_of_signature(text);
    size = strlen(text) + 1;
    facts->name.mangled = memory_allocate(size + strlen(name) + 1, 1);
    strcpy(facts->name.mangled, text);
    facts->name.signature = facts->name.mangled;
    facts->name.name = strcpy(facts->name.mangled + size, name);
    facts->name.last_component = last_component(facts->name.name);
    facts->name.demangled = true;
    free(name);
    return true;
}
