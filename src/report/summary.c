/* SPDX-License-Identifier: Apache-2.0 */
#include "report/summary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"

enum {
    COLUMN_COUNT = 7, /* rule, kernels, launches, applied, already so, kept, refused */
    CELL_SIZE = 512
};

struct row {
    char cells[COLUMN_COUNT][CELL_SIZE];
};

static const char *const titles[COLUMN_COUNT] = {"rule",       "kernels", "launches", "applied",
                                                 "already so", "kept",    "refused"};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static int64_t count_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Names come from a file and go to a terminal: control characters do not. UTF-8 is kept whole. */
static void copy_clean(char *to, size_t size, const char *from)
{
    size_t length = 0;
    while (*from != '\0' && length + 1 < size) {
        unsigned char byte = (unsigned char)*from++;
        to[length++] = byte < 0x20 || byte == 0x7f ? '?' : (char)byte;
    }
    if (*from != '\0') { /* cut: not inside a sequence, and visibly */
        length = size > 4 ? size - 4 : 0;
        while (length > 0 && ((unsigned char)to[length] & 0xc0) == 0x80)
            length--;
        memcpy(to + length, "...", size > 4 ? 3 : 0);
        length += size > 4 ? 3 : 0;
    }
    to[length] = '\0';
}

static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* 1234567 as 1,234,567. */
static void format_count(char *text, size_t size, int64_t count)
{
    char digits[32];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)count), to = 0;
    for (size_t i = 0; i < length && to + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = '\0';
}

static void append_text(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);
    copy_clean(text + length, size - length, more);
}

/* "100 (grid not divisible by the cluster), 3 (graph)"; "0" when nothing was refused. */
static void format_refused(char *text, size_t size, const json_t *refused)
{
    const char *reason;
    json_t *value;
    bool first = true;
    text[0] = '\0';
    /* The macro takes a plain pointer although it changes nothing. */
    for (void *member = json_object_iter((json_t *)(uintptr_t)refused); member != NULL;
         member = json_object_iter_next((json_t *)(uintptr_t)refused, member)) {
        char number[32];
        reason = json_object_iter_key(member);
        value = json_object_iter_value(member);
        format_count(number, sizeof number, json_integer_value(value));
        append_text(text, size, first ? "" : ", ");
        append_text(text, size, number);
        append_text(text, size, " (");
        append_text(text, size, reason);
        append_text(text, size, ")");
        first = false;
    }
    if (first)
        snprintf(text, size, "0");
}

static void format_name(struct row *row, const json_t *rule)
{
    copy_clean(row->cells[0], CELL_SIZE, text_of(rule, "section"));
    append_text(row->cells[0], CELL_SIZE, " ");
    append_text(row->cells[0], CELL_SIZE, text_of(rule, "name"));
}

/* What became of launches, or of streams: the columns from "applied" on. */
static void format_fates(struct row *row, const json_t *object)
{
    format_count(row->cells[3], CELL_SIZE, count_of(object, "applied"));
    format_count(row->cells[4], CELL_SIZE, count_of(object, "already_so"));
    format_count(row->cells[5], CELL_SIZE, count_of(object, "kept"));
    format_refused(row->cells[6], CELL_SIZE, json_object_get(object, "refused"));
}

static void format_launches(struct row *row, const json_t *rule)
{
    format_name(row, rule);
    format_count(row->cells[1], CELL_SIZE, count_of(rule, "kernels"));
    format_count(row->cells[2], CELL_SIZE, count_of(rule, "launches"));
    format_fates(row, rule);
}

static void format_streams(struct row *row, const json_t *rule)
{
    const json_t *streams = json_object_get(rule, "on_streams");
    int64_t count = count_of(streams, "streams");
    format_name(row, rule);
    snprintf(row->cells[1], CELL_SIZE, "-");
    format_count(row->cells[2], CELL_SIZE, count);
    append_text(row->cells[2], CELL_SIZE, count == 1 ? " stream" : " streams");
    format_fates(row, streams);
}

static void print_row(FILE *stream, const struct row *row, const size_t widths[COLUMN_COUNT])
{
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        int padding = (int)(widths[column] - width_of(row->cells[column]));
        if (column == 0)
            fprintf(stream, "  %s%*s", row->cells[column], padding, "");
        else if (column < COLUMN_COUNT - 1)
            fprintf(stream, "  %*s%s", padding, "", row->cells[column]);
        else
            fprintf(stream, "  %s\n", row->cells[column]);
    }
}

/* One row for launches, one for streams; neither for a rule that matched nothing. */
static size_t format_rule(struct row *rows, const json_t *rule)
{
    size_t count = 0;
    if (count_of(rule, "launches") != 0)
        format_launches(&rows[count++], rule);
    if (count_of(json_object_get(rule, "on_streams"), "streams") != 0)
        format_streams(&rows[count++], rule);
    return count;
}

static bool print_table(const json_t *rules, FILE *stream)
{
    size_t count = 1, widths[COLUMN_COUNT] = {0};
    struct row *rows = calloc(2 * json_array_size(rules) + 1, sizeof *rows);
    if (rows == NULL)
        return false;
    for (size_t column = 0; column < COLUMN_COUNT; column++)
        snprintf(rows[0].cells[column], CELL_SIZE, "%s", titles[column]);
    for (size_t i = 0; i < json_array_size(rules); i++)
        count += format_rule(&rows[count], json_array_get(rules, i));
    for (size_t i = 0; i < count; i++) {
        for (size_t column = 0; column < COLUMN_COUNT; column++) {
            size_t width = width_of(rows[i].cells[column]);
            if (width > widths[column])
                widths[column] = width;
        }
    }
    for (size_t i = 0; i < count && count > 1; i++)
        print_row(stream, &rows[i], widths);
    free(rows);
    return true;
}

static void print_unused(const json_t *report, const json_t *rules, FILE *stream,
                         report_summary_hint hint, void *context)
{
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        char name[CELL_SIZE], section[CELL_SIZE], text[4096], clean[4096];
        if (json_is_true(json_object_get(rule, "matched")))
            continue;
        copy_clean(name, sizeof name, text_of(rule, "name"));
        copy_clean(section, sizeof section, text_of(rule, "section"));
        fprintf(stream, "  matched nothing: %s %s (line %lld)", section, name,
                (long long)count_of(rule, "line"));
        if (hint != NULL && hint(report, rule, text, sizeof text, context)) {
            copy_clean(clean, sizeof clean, text);
            fprintf(stream, "; %s", clean);
        }
        fputc('\n', stream);
    }
}

static const char *state_of(const json_t *report)
{
    if (json_is_true(json_object_get(report, "complete")))
        return "";
    if (json_is_true(json_object_get(json_object_get(report, "process"), "running")))
        return " (still running)";
    return " (incomplete: the process did not end in good order)";
}

static void print_counted(FILE *stream, int64_t count, const char *one, const char *many)
{
    char text[32];
    format_count(text, sizeof text, count);
    fprintf(stream, "%s %s", text, count == 1 ? one : many);
}

static void print_head(const json_t *report, FILE *stream)
{
    const json_t *process = json_object_get(report, "process");
    char host[CELL_SIZE], program[CELL_SIZE], mode[CELL_SIZE];
    copy_clean(host, sizeof host, text_of(process, "host"));
    copy_clean(program, sizeof program, text_of(process, "argv0"));
    copy_clean(mode, sizeof mode, text_of(report, "mode"));
    fprintf(stream, "cudapolicy: %s (pid %lld on %s), mode %s: ", program,
            (long long)count_of(process, "pid"), host, mode);
    print_counted(stream, count_of(report, "launches"), "launch", "launches");
    fputs(" of ", stream);
    print_counted(stream, (int64_t)json_array_size(json_object_get(report, "kernels")), "kernel",
                  "kernels");
    fprintf(stream, "%s\n", state_of(report));
}

bool report_summary_print(const json_t *report, FILE *stream, report_summary_hint hint,
                          void *context)
{
    const json_t *rules = json_object_get(report, "rules");
    print_head(report, stream);
    if (!print_table(rules, stream))
        return false;
    print_unused(report, rules, stream, hint, context);
    return fflush(stream) == 0 && !ferror(stream);
}

json_t *report_load(const char *path, char *error, size_t size)
{
    json_error_t place;
    json_t *report = json_load_file(path, 0, &place);
    if (report == NULL) {
        if (place.line > 0)
            snprintf(error, size, "%s:%d:%d: %s", path, place.line, place.column, place.text);
        else
            snprintf(error, size, "%s: %s", path, place.text);
        return NULL;
    }
    int64_t schema = count_of(report, "schema");
    if (strcmp(text_of(report, "format"), "cudapolicy report") != 0)
        snprintf(error, size, "%s: not a report of cudapolicy", path);
    else if (schema != REPORT_JSON_SCHEMA)
        snprintf(error, size, "%s: report of schema %lld, this is schema %d", path,
                 (long long)schema, REPORT_JSON_SCHEMA);
    else
        return report;
    json_decref(report);
    return NULL;
}
