/* SPDX-License-Identifier: Apache-2.0 */
#include "job_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

enum {
    BLOCK_SIZE = 256 * 1024,
    WORD_SIZE = 32, /* keys and the format, as far as they matter */
};

/* Where the scan of a document stands. */
struct scan {
    struct job_text *text;
    int64_t offset; /* of the next byte */
    int depth;      /* open brackets */
    bool in_string, escaped;
    bool is_value; /* in the outermost object, behind a colon */
    bool in_processes, seen_processes;
    bool is_job, failed, ended;
    char word[WORD_SIZE]; /* the string that is being read there, or was last */
    size_t word_length;
    char key[WORD_SIZE];
    int64_t part_start;
};

static void end_of_string(struct scan *scan)
{
    scan->in_string = false;
    if (scan->depth != 1) {
        return;
    }
    scan->word[scan->word_length] = '\0';
    if (scan->is_value) {
        scan->is_job = scan->is_job || (strcmp(scan->key, "format") == 0 &&
                                        strcmp(scan->word, "cudapolicy job") == 0);
    } else {
        memcpy(scan->key, scan->word, sizeof scan->key);
    }
}

static void take_in_string(struct scan *scan, char byte)
{
    if (scan->escaped) {
        scan->escaped = false;
    } else if (byte == '\\') {
        scan->escaped = true;
    } else if (byte == '"') {
        end_of_string(scan);
        return;
    }
    if (scan->depth == 1 && scan->word_length < WORD_SIZE - 1) {
        scan->word[scan->word_length++] = byte;
    }
}

static void open_bracket(struct scan *scan, char byte)
{
    if (scan->depth == 1 && byte == '[' && strcmp(scan->key, "processes") == 0) {
        scan->failed = scan->failed || scan->seen_processes;
        scan->in_processes = scan->seen_processes = true;
    } else if (scan->depth == 2 && scan->in_processes) {
        scan->failed = scan->failed || byte != '{';
        scan->part_start = scan->offset;
    }
    scan->depth++;
}

static void close_bracket(struct scan *scan)
{
    struct job_text *text = scan->text;

    scan->depth--;
    if (scan->depth == 2 && scan->in_processes) {
        text->parts = memory_grow(text->parts, text->count, &text->capacity, sizeof *text->parts);
        text->parts[text->count++] = (struct job_text_part){
            .offset = scan->part_start, .length = scan->offset + 1 - scan->part_start};
    } else if (scan->depth == 1) {
        scan->in_processes = false;
    } else if (scan->depth == 0) {
        scan->ended = true;
    }
    scan->failed = scan->failed || scan->depth < 0;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static void take(struct scan *scan, char byte)
{
    if (scan->in_string) {
        take_in_string(scan, byte);
        return;
    }
    if (is_blank(byte)) {
        return;
    }
    /* Among the reports stand commas only; what else there is, or behind the end, is a mistake. */
    if (scan->ended || (scan->depth == 2 && scan->in_processes && strchr(",{]", byte) == NULL)) {
        scan->failed = true;
    }
    switch (byte) {
    case '"':
        scan->in_string = true;
        scan->word_length = 0;
        break;
    case '{':
    case '[':
        open_bracket(scan, byte);
        break;
    case '}':
    case ']':
        close_bracket(scan);
        break;
    case ':':
        scan->is_value = scan->is_value || scan->depth == 1;
        break;
    case ',':
        scan->is_value = scan->is_value && scan->depth != 1;
        break;
    default:
        scan->failed = scan->failed || scan->depth == 0;
    }
}

bool job_text_split(const char *path, struct job_text *text)
{
    FILE *file = fopen(path, "re");
    char *block;
    struct scan scan = {.text = text};
    size_t length;

    *text = (struct job_text){0};
    if (file == NULL) {
        return false;
    }
    block = memory_allocate(BLOCK_SIZE, 1);
    while (!scan.failed && (length = fread_unlocked(block, 1, BLOCK_SIZE, file)) > 0) {
        for (size_t i = 0; i < length && !scan.failed; i++, scan.offset++) {
            take(&scan, block[i]);
        }
    }
    free(block);
    scan.failed = scan.failed || ferror(file) || !scan.ended || !scan.is_job;
    fclose(file);
    if (scan.failed) {
        job_text_release(text);
    }
    return !scan.failed;
}

char *job_text_read(const char *path, const struct job_text_part *part)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC), error_number;
    char *text = descriptor >= 0 ? malloc((size_t)part->length + 1) : NULL;
    int64_t length = 0;
    ssize_t got = 1;

    while (text != NULL && got > 0 && length < part->length) {
        got = pread(descriptor, text + length, (size_t)(part->length - length),
                    part->offset + length);
        length += got > 0 ? got : 0;
    }
    error_number = got == 0 ? ESTALE : errno;
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (text != NULL && length < part->length) {
        free(text);
        text = NULL;
        errno = error_number;
    }
    if (text != NULL) {
        text[length] = '\0';
    }
    return text;
}

void job_text_release(struct job_text *text)
{
    free(text->parts);
    *text = (struct job_text){0};
}
