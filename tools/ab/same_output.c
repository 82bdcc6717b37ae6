/* SPDX-License-Identifier: Apache-2.0 */
#include "same_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compare_text.h"
#include "expression.h"
#include "lines.h"
#include "memory.h"
#include "metric_parts.h"

enum {
    LINE_LIMIT = 4 * 1024 * 1024, /* a file with longer lines is no text */
    COPY_SIZE = 64 * 1024,
    QUOTE_WIDTH = 60,
    QUOTE_BEFORE = 24, /* bytes shown before the difference */
};

struct ab_same_output {
    char *file;    /* NULL: */
    char *pattern; /* matched with standard output */
    struct ab_expression expression;
    struct ab_tolerance tolerance;
    FILE *reference; /* the file, or a line a match; NULL: none yet */
    bool reference_is_text;
};

/* ---- Making --------------------------------------------------------------------------------- */

struct ab_same_output *ab_same_output_new(const char *definition, double relative, double absolute,
                                          char *error, size_t size)
{
    size_t length = strlen(definition);
    struct ab_same_output *same = memory_allocate(1, sizeof *same);

    same->tolerance = (struct ab_tolerance){relative, absolute};
    if (length == 0) {
        snprintf(error, size, "neither a file nor a /REGEX/");
    } else if (!(relative >= 0 && absolute >= 0 && isfinite(relative) && isfinite(absolute))) {
        snprintf(error, size, "a tolerance is a number from 0 on");
    } else if (length < 2 || definition[0] != '/' || definition[length - 1] != '/') {
        same->file = memory_copy(definition);
        return same;
    } else {
        same->pattern = memory_format("%.*s", (int)length - 2, definition + 1);
        if (ab_expression_compile(&same->expression, same->pattern, error, size)) {
            return same;
        }
        free(same->pattern);
    }
    free(same);
    return NULL;
}

void ab_same_output_free(struct ab_same_output *same)
{
    if (same == NULL) {
        return;
    }
    if (same->pattern != NULL) {
        ab_expression_free(&same->expression);
    }
    if (same->reference != NULL) {
        fclose(same->reference);
    }
    free(same->file);
    free(same->pattern);
    free(same);
}

/* ---- Lines of both sides -------------------------------------------------------------------- */

/* What is compared, one after the other: lines of a file, or matches in lines. */
struct source {
    struct ab_lines lines;
    struct ab_expression *expression; /* NULL: the lines themselves */
    const char *text;
    size_t length;
    char *failure; /* why it cannot go on; NULL: the end, or none yet */
};

static bool next_match(struct source *source)
{
    char error[512] = "";

    while (ab_lines_next(&source->lines)) {
        enum ab_match match = ab_expression_match(source->expression, source->lines.line,
                                                  source->lines.length, error, sizeof error);

        if (match == AB_MATCH_FAILED) {
            source->failure = memory_copy(error);
            return false;
        }
        if (match == AB_MATCH_YES && ab_expression_group(source->expression, 0, source->lines.line,
                                                         &source->text, &source->length)) {
            return true;
        }
    }
    return false;
}

static bool next(struct source *source)
{
    bool some;

    if (source->expression != NULL) {
        some = next_match(source);
    } else {
        some = ab_lines_next(&source->lines);
        source->text = source->lines.line;
        source->length = source->lines.length;
    }
    if (!some && source->lines.failed && source->failure == NULL) {
        source->failure = memory_format("cannot be read: %s", strerror(errno));
    }
    return some;
}

static void close_source(struct source *source)
{
    ab_lines_close(&source->lines);
    free(source->failure);
}

static void open_reference(const struct ab_same_output *same, struct source *source)
{
    int descriptor = dup(fileno(same->reference));

    *source = (struct source){0};
    ab_lines_from(&source->lines, descriptor, AB_LINES_RAW, LINE_LIMIT);
}

/* ---- Comparing lines ------------------------------------------------------------------------ */

/* The text around a place. */
static char *quote_around(const char *text, size_t length, size_t at)
{
    size_t from = at > QUOTE_BEFORE ? at - QUOTE_BEFORE : 0;
    size_t left;
    char *part, *quoted;

    while (from > 0 && from < length && ((unsigned char)text[from] & 0xc0) == 0x80) {
        from--;
    }
    left = length - from < QUOTE_WIDTH ? length - from : QUOTE_WIDTH;
    part = ab_quote(text + from, left, SIZE_MAX);
    quoted =
        memory_format("%s%s%s", from > 0 ? "..." : "", part, from + left < length ? "..." : "");
    free(part);
    return quoted;
}

static void say_difference(const struct ab_same_output *same, const struct source *reference,
                           const struct source *source, const struct ab_text_difference *difference,
                           char *error, size_t size)
{
    char *was = quote_around(reference->text, reference->length, difference->first);
    char *is = quote_around(source->text, source->length, difference->second);
    char numbers[160] = "";

    if (difference->numbers) {
        double by = fabs(difference->second_number - difference->first_number);
        double allowed =
            same->tolerance.absolute + same->tolerance.relative * fabs(difference->first_number);

        snprintf(numbers, sizeof numbers,
                 ": %.10g instead of %.10g, a difference of %.3g where %.3g is allowed",
                 difference->second_number, difference->first_number, by,
                 isnan(allowed) ? 0 : allowed);
    }
    snprintf(error, size, "line %" PRId64 ": '%s', in the baseline '%s'%s", source->lines.number,
             is, was, numbers);
    free(was);
    free(is);
}

static void say_more(const struct source *longer, bool in_reference, int64_t line, char *error,
                     size_t size)
{
    char *text = quote_around(longer->text, longer->length, 0);

    if (in_reference) {
        snprintf(error, size, "ends behind line %" PRId64 ", where the baseline has '%s'", line,
                 text);
    } else {
        snprintf(error, size, "line %" PRId64 ": '%s', where the baseline has nothing more", line,
                 text);
    }
    free(text);
}

static enum ab_same compare(const struct ab_same_output *same, struct source *reference,
                            struct source *source, char *error, size_t size)
{
    int64_t items = 0, last = 0;

    while (true) {
        bool was = next(reference), is = next(source);
        struct ab_text_difference difference;

        if (source->failure != NULL || reference->failure != NULL) {
            snprintf(error, size, "%s",
                     source->failure != NULL ? source->failure : reference->failure);
            return AB_SAME_NO_OUTPUT;
        }
        if (!was && !is) {
            return AB_SAME;
        }
        if (!is && items == 0 && same->pattern != NULL) {
            snprintf(error, size, "no line of standard output matches '%s'", same->pattern);
            return AB_SAME_NO_OUTPUT;
        }
        if (!was || !is) {
            say_more(was ? reference : source, was, was ? last : source->lines.number, error, size);
            return AB_DIFFERENT;
        }
        if (!ab_text_same(reference->text, reference->length, source->text, source->length,
                          &same->tolerance, &difference)) {
            say_difference(same, reference, source, &difference, error, size);
            return AB_DIFFERENT;
        }
        items++;
        last = source->lines.number;
    }
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

/* Reads up to size bytes; fewer at the end of the file. */
static size_t read_some(int descriptor, char *buffer, size_t size)
{
    size_t length = 0;

    while (length < size) {
        ssize_t got = read(descriptor, buffer + length, size - length);

        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        length += got > 0 ? (size_t)got : 0;
    }
    return length;
}

/* Without NULs, in lines that are not endless. */
static bool is_text(int descriptor)
{
    char buffer[COPY_SIZE];
    size_t line = 0, length;

    lseek(descriptor, 0, SEEK_SET);
    while ((length = read_some(descriptor, buffer, sizeof buffer)) > 0) {
        const char *newline = memchr(buffer, '\n', length);

        if (memchr(buffer, '\0', length) != NULL) {
            return false;
        }
        line += newline == NULL ? length : (size_t)(newline - buffer);
        if (line > LINE_LIMIT) {
            return false;
        }
        newline = memrchr(buffer, '\n', length);
        line = newline == NULL ? line : length - (size_t)(newline - buffer) - 1;
    }
    return true;
}

static enum ab_same compare_bytes(int reference, int descriptor, char *error, size_t size)
{
    char was[COPY_SIZE], is[COPY_SIZE];
    uint64_t offset = 0;
    size_t was_length, is_length, at, both;

    lseek(reference, 0, SEEK_SET);
    lseek(descriptor, 0, SEEK_SET);
    do {
        was_length = read_some(reference, was, sizeof was);
        is_length = read_some(descriptor, is, sizeof is);
        both = was_length < is_length ? was_length : is_length;
        at = 0;
        while (at < both && was[at] == is[at]) {
            at++;
        }
        offset += at;
    } while (at == was_length && at == is_length && at > 0);
    if (at < both) {
        snprintf(error, size, "the byte at offset %" PRIu64 " is 0x%02x, in the baseline 0x%02x",
                 offset, (unsigned char)is[at], (unsigned char)was[at]);
        return AB_DIFFERENT;
    }
    if (was_length != is_length) {
        snprintf(error, size,
                 is_length < was_length
                     ? "shorter than in the baseline: the file ends after %" PRIu64 " bytes"
                     : "longer than in the baseline, where the file ends after %" PRIu64 " bytes",
                 offset);
        return AB_DIFFERENT;
    }
    return AB_SAME;
}

/* ---- References ----------------------------------------------------------------------------- */

static bool new_reference(struct ab_same_output *same, char *error, size_t size)
{
    if (same->reference != NULL) {
        fclose(same->reference);
    }
    same->reference = tmpfile();
    if (same->reference == NULL) {
        snprintf(error, size, "no temporary file for the baseline's output: %s", strerror(errno));
    }
    return same->reference != NULL;
}

static void forget_reference(struct ab_same_output *same)
{
    fclose(same->reference);
    same->reference = NULL;
}

/* What was written so far has to be all there, or it is none. */
static enum ab_same keep_reference(struct ab_same_output *same, char *error, size_t size)
{
    if (fflush(same->reference) == 0 && ferror(same->reference) == 0) {
        return AB_SAME;
    }
    snprintf(error, size, "the baseline's output cannot be kept: %s", strerror(errno));
    forget_reference(same);
    return AB_SAME_NO_OUTPUT;
}

static enum ab_same take_matches(struct ab_same_output *same, struct source *source, char *error,
                                 size_t size)
{
    bool some = false;

    if (!new_reference(same, error, size)) {
        return AB_SAME_NO_OUTPUT;
    }
    while (next(source)) {
        some = true;
        fwrite(source->text, 1, source->length, same->reference);
        fputc('\n', same->reference);
    }
    if (source->failure != NULL) {
        snprintf(error, size, "%s", source->failure);
    } else if (!some) {
        snprintf(error, size, "no line of standard output matches '%s'", same->pattern);
    } else {
        return keep_reference(same, error, size);
    }
    forget_reference(same);
    return AB_SAME_NO_OUTPUT;
}

static enum ab_same take_file(struct ab_same_output *same, int descriptor, char *error, size_t size)
{
    char buffer[COPY_SIZE];
    size_t length;

    if (!new_reference(same, error, size)) {
        return AB_SAME_NO_OUTPUT;
    }
    lseek(descriptor, 0, SEEK_SET);
    while ((length = read_some(descriptor, buffer, sizeof buffer)) > 0) {
        fwrite(buffer, 1, length, same->reference);
    }
    same->reference_is_text = is_text(descriptor);
    return keep_reference(same, error, size);
}

/* ---- Checking ------------------------------------------------------------------------------- */

static enum ab_same check_matches(struct ab_same_output *same, const char *output, bool take,
                                  char *error, size_t size)
{
    struct source source = {.expression = &same->expression}, reference;
    enum ab_same result;

    if (!ab_lines_open(&source.lines, output, AB_LINES_TERMINAL, AB_EXPRESSION_LINE)) {
        snprintf(error, size, "standard output (%s): %s", output, strerror(errno));
        return AB_SAME_NO_OUTPUT;
    }
    if (take) {
        result = take_matches(same, &source, error, size);
    } else {
        open_reference(same, &reference);
        result = compare(same, &reference, &source, error, size);
        close_source(&reference);
    }
    close_source(&source);
    return result;
}

/* Closes the descriptor. */
static enum ab_same compare_file(const struct ab_same_output *same, int descriptor, char *error,
                                 size_t size)
{
    struct source source = {0}, reference;
    enum ab_same result;

    if (same->reference_is_text && is_text(descriptor)) {
        ab_lines_from(&source.lines, descriptor, AB_LINES_RAW, LINE_LIMIT);
        open_reference(same, &reference);
        result = compare(same, &reference, &source, error, size);
        close_source(&reference);
        close_source(&source);
        return result;
    }
    if (same->tolerance.relative > 0 || same->tolerance.absolute > 0) {
        snprintf(error, size, "is no text: there are no numbers to compare with a tolerance");
        result = AB_SAME_NO_OUTPUT;
    } else {
        result = compare_bytes(fileno(same->reference), descriptor, error, size);
    }
    close(descriptor);
    return result;
}

/* One second after the epoch: no file that a run writes has this time of change. */
static const struct timespec mark = {.tv_sec = 1};

static bool is_marked(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 && status.st_mtim.tv_sec == mark.tv_sec &&
           status.st_mtim.tv_nsec == mark.tv_nsec;
}

static char *path_of_file(const struct ab_same_output *same, const char *folder, const char *arm)
{
    char *path = same->file[0] == '/' || folder == NULL
                     ? memory_copy(same->file)
                     : memory_format("%s/%s", folder, same->file);

    return ab_replace(path, "{arm}", arm);
}

void ab_same_output_before(struct ab_same_output *same, const char *folder, const char *arm)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, mark};
    struct stat status;
    char *path;

    if (same->file == NULL) {
        return;
    }
    path = path_of_file(same, folder, arm);
    /* Where it is somebody else's, nothing can be told. */
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
        (void)utimensat(AT_FDCWD, path, times, 0);
    }
    free(path);
}

static enum ab_same check_file(struct ab_same_output *same, const char *path, bool take,
                               char *error, size_t size)
{
    int descriptor = ab_lines_descriptor(path);
    enum ab_same result;

    if (descriptor < 0) {
        snprintf(error, size, "%s", errno == EINVAL ? "not a regular file" : strerror(errno));
        return AB_SAME_NO_OUTPUT;
    }
    if (is_marked(descriptor)) {
        close(descriptor);
        snprintf(error, size, "left by an earlier run; this one did not write it");
        return AB_SAME_NO_OUTPUT;
    }
    if (!take) {
        return compare_file(same, descriptor, error, size);
    }
    result = take_file(same, descriptor, error, size);
    close(descriptor);
    return result;
}

enum ab_same ab_same_output_check(struct ab_same_output *same, const char *output,
                                  const char *folder, const char *arm, bool reference, char *error,
                                  size_t size)
{
    char *path, *message;
    enum ab_same result;
    char text[768] = "";

    if (!reference && same->reference == NULL) {
        snprintf(error, size, "the baseline left nothing to compare with");
        return AB_SAME_NO_OUTPUT;
    }
    if (same->file == NULL) {
        return check_matches(same, output, reference, error, size);
    }
    path = path_of_file(same, folder, arm);
    result = check_file(same, path, reference, text, sizeof text);
    message = memory_format("%s: %s", path, text);
    if (result != AB_SAME) {
        snprintf(error, size, "%s", message);
    }
    free(message);
    free(path);
    return result;
}
