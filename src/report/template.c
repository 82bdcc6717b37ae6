/* SPDX-License-Identifier: Apache-2.0 */
#include "report/template.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct output {
    char *text;
    size_t size, length;
    bool full;
};

static void append(struct output *output, char character)
{
    if (output->length + 1 >= output->size)
        output->full = true;
    else
        output->text[output->length++] = character;
}

/* Not isalnum: its answer depends on the program's locale. */
static bool harmless(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || strchr("-_.+@:", character) != NULL;
}

static void append_value(struct output *output, const char *value)
{
    for (size_t i = 0; value[i] != '\0'; i++)
        append(output, harmless(value[i]) && (i > 0 || value[i] != '.') ? value[i] : '_');
}

static const char *or_else(const char *value, const char *otherwise)
{
    return value == NULL || value[0] == '\0' ? otherwise : value;
}

/* False when there is no such directive. */
static bool append_directive(struct output *output, char directive,
                             const struct report_template_values *values)
{
    char buffer[256] = "";
    switch (directive) {
    case '%':
        append(output, '%');
        return true;
    case 'h':
        if (or_else(values->host, NULL) == NULL && gethostname(buffer, sizeof buffer - 1) != 0)
            buffer[0] = '\0';
        append_value(output, or_else(values->host, or_else(buffer, "nohost")));
        return true;
    case 'p':
        snprintf(buffer, sizeof buffer, "%ld", values->pid != 0 ? values->pid : (long)getpid());
        append_value(output, buffer);
        return true;
    case 'j':
        append_value(output, or_else(values->job, "nojob"));
        return true;
    case 'r':
        append_value(output, or_else(values->rank, "norank"));
        return true;
    default:
        return false;
    }
}

bool report_expand_template(const char *text, const struct report_template_values *values,
                            char *out, size_t size, char *error, size_t error_size)
{
    struct output output = {.text = out, .size = size};
    const char *wrong = text[0] == '\0' ? "is empty" : NULL;
    for (const char *next = text; *next != '\0' && wrong == NULL; next++) {
        if (*next != '%')
            append(&output, *next);
        else if (next[1] == '\0')
            wrong = "ends with a single % (%% stands for it)";
        else if (!append_directive(&output, *++next, values))
            wrong = "has a % that is none of %h (host), %p (pid), %j (job), %r (rank) and %%";
    }
    if (wrong == NULL && output.full)
        wrong = "is too long";
    if (size > 0)
        out[wrong == NULL ? output.length : 0] = '\0';
    if (wrong != NULL)
        snprintf(error, error_size, "the path template '%s' %s", text, wrong);
    return wrong == NULL;
}
