/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/mapped.h"

enum { TEXT_AT_LEAST = 32 * 1024 * 1024 };

/* Where a view comes from. A file is read and not mapped: one that is cut short meanwhile must not
 * kill the reader. */
struct source {
    const unsigned char *image; /* NULL: descriptor */
    int descriptor;
    bool truncated;
};

static void fetch_file(struct source *source, uint64_t offset, void *data, size_t size)
{
    char *next = data;
    while (size > 0) {
        ssize_t got = pread(source->descriptor, next, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        next += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    if (size > 0) {
        memset(next, 0, size);
        source->truncated = true;
    }
}

/* Rows and counters of the own image are changed by other threads meanwhile: word by word, so that
 * each number is one that was there. */
static void fetch_image(const unsigned char *from, void *data, size_t size)
{
    const uint64_t *word = (const uint64_t *)(const void *)from;
    uint64_t *to = data;
    for (size_t i = 0; i < size / sizeof *to; i++)
        to[i] = __atomic_load_n(&word[i], __ATOMIC_ACQUIRE);
}

/* size: a multiple of 8, and data aligned to 8. */
static void fetch(struct source *source, uint64_t offset, void *data, size_t size)
{
    if (source->image != NULL)
        fetch_image(source->image + offset, data, size);
    else
        fetch_file(source, offset, data, size);
}

static void *fetch_table(struct source *source, enum report_region region, size_t count,
                         size_t row_size)
{
    void *rows = calloc(count + 1, row_size);
    if (rows != NULL)
        fetch(source, report_region_offset(region), rows, count * row_size);
    return rows;
}

static char *fetch_strings(struct source *source, size_t size)
{
    char *strings = malloc(size + 1);
    if (strings == NULL)
        return NULL;
    if (source->image != NULL)
        memcpy(strings, source->image + REPORT_OFFSET_STRINGS, size);
    else
        fetch_file(source, REPORT_OFFSET_STRINGS, strings, size);
    strings[size] = '\0';
    return strings;
}

static void add_shard(struct source *source, struct report_view *view, uint32_t number,
                      struct report_shard *buffer)
{
    size_t cells = view->header.counts.cells;
    size_t size = offsetof(struct report_shard, launches) + cells * sizeof buffer->launches[0];
    const struct report_shard *shard = source->image != NULL ? report_image_shard(number) : NULL;
    if (source->image != NULL && shard == NULL)
        return;
    if (shard != NULL)
        fetch_image((const unsigned char *)shard, buffer, size);
    else
        fetch_file(source, REPORT_OFFSET_SHARDS + (uint64_t)number * REPORT_SHARD_STRIDE, buffer,
                   size);
    for (size_t entry = 0; entry < REPORT_ENTRY_LIMIT; entry++)
        view->entry_calls[entry] += buffer->entry_calls[entry];
    for (size_t cell = 0; cell < cells; cell++) {
        for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
            view->launches[cell][kind] += buffer->launches[cell][kind];
    }
}

static bool add_shards(struct source *source, struct report_view *view)
{
    struct report_shard *buffer = malloc(sizeof *buffer);
    view->launches = calloc(view->header.counts.cells + 1u, sizeof view->launches[0]);
    bool made = buffer != NULL && view->launches != NULL;
    if (made) {
        for (uint32_t number = 0; number < view->header.counts.shards; number++)
            add_shard(source, view, number, buffer);
        add_shard(source, view, REPORT_SHARED_SHARD, buffer);
    }
    free(buffer);
    return made;
}

static void cut(uint32_t *count, uint32_t limit)
{
    if (*count > limit)
        *count = limit;
}

static void cut_counts(struct report_counts *counts)
{
    if (counts->strings > REPORT_STRINGS_SIZE)
        counts->strings = REPORT_STRINGS_SIZE;
    cut(&counts->rules, REPORT_RULE_LIMIT);
    cut(&counts->kernels, REPORT_KERNEL_LIMIT);
    cut(&counts->cells, REPORT_CELL_LIMIT);
    cut(&counts->streams, REPORT_STREAM_LIMIT);
    cut(&counts->facts, REPORT_FACT_LIMIT);
    cut(&counts->notes, REPORT_NOTE_LIMIT);
    cut(&counts->settings, REPORT_SETTING_LIMIT);
    cut(&counts->entries, REPORT_ENTRY_LIMIT);
    cut(&counts->modes, REPORT_MODE_LIMIT);
    cut(&counts->shards, REPORT_SHARED_SHARD);
}

/* Tables after the counts, and strings after the tables: what the counts show was complete when
 * they were stored, and so was every string that a row names. */
static bool read_tables(struct source *source, struct report_view *view, char *error, size_t size)
{
    struct report_counts *counts = &view->header.counts;
    cut_counts(counts);
    view->rules = fetch_table(source, REPORT_REGION_RULES, counts->rules, sizeof view->rules[0]);
    view->kernels =
        fetch_table(source, REPORT_REGION_KERNELS, counts->kernels, sizeof view->kernels[0]);
    view->cells = fetch_table(source, REPORT_REGION_CELLS, counts->cells, sizeof view->cells[0]);
    view->streams =
        fetch_table(source, REPORT_REGION_STREAMS, counts->streams, sizeof view->streams[0]);
    view->facts = fetch_table(source, REPORT_REGION_FACTS, counts->facts, sizeof view->facts[0]);
    view->notes = fetch_table(source, REPORT_REGION_NOTES, counts->notes, sizeof view->notes[0]);
    view->step_count = view->header.steps < REPORT_STEP_LIMIT ? (size_t)view->header.steps
                                                              : (size_t)REPORT_STEP_LIMIT;
    view->steps = fetch_table(source, REPORT_REGION_STEPS, view->step_count, sizeof view->steps[0]);
    /* A fact's value may have been replaced by a newer string meanwhile. */
    fetch(source, offsetof(struct report_header, counts.strings), &counts->strings,
          sizeof counts->strings);
    cut_counts(counts);
    view->strings = fetch_strings(source, counts->strings);
    if (view->rules != NULL && view->kernels != NULL && view->cells != NULL &&
        view->streams != NULL && view->facts != NULL && view->notes != NULL &&
        view->steps != NULL && view->strings != NULL && add_shards(source, view)) {
        view->truncated = source->truncated;
        view->partial = source->image == NULL && view->header.partial != 0;
        /* Kernels' names stand in the report up to four times, rules' at each setting. */
        view->text_left = TEXT_AT_LEAST + 4 * counts->strings;
        return true;
    }
    report_view_free(view);
    snprintf(error, size, "out of memory");
    return false;
}

bool report_view_image(struct report_view *view, char *error, size_t size)
{
    memset(view, 0, sizeof *view);
    if (report_image == NULL) {
        snprintf(error, size, "nothing was counted");
        return false;
    }
    struct source source = {.image = report_image};
    fetch(&source, 0, &view->header, sizeof view->header);
    return read_tables(&source, view, error, size);
}

static bool understood(const struct report_layout *layout, const char *path, char *error,
                       size_t size)
{
    struct report_layout own;
    report_layout_fill(&own);
    if (memcmp(layout, &own, sizeof own) == 0)
        return true;
    if (layout->magic != own.magic)
        snprintf(error, size, "%s: not a counters' file", path);
    else if (layout->version != own.version)
        snprintf(error, size, "%s: layout version %u, this is version %u", path, layout->version,
                 own.version);
    else
        snprintf(error, size, "%s: made by another build of the library", path);
    return false;
}

static bool view_descriptor(struct report_view *view, int descriptor, const char *path, char *error,
                            size_t size)
{
    struct source source = {.descriptor = descriptor};
    struct statx status;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_TYPE, &status) != 0 ||
        !S_ISREG(status.stx_mode)) {
        snprintf(error, size, "%s: not a regular file", path);
        return false;
    }
    fetch(&source, 0, &view->header, sizeof view->header);
    if (source.truncated) {
        snprintf(error, size, "%s: not a counters' file (too short)", path);
        return false;
    }
    return understood(&view->header.layout, path, error, size) &&
           read_tables(&source, view, error, size);
}

bool report_view_file(struct report_view *view, const char *path, char *error, size_t size)
{
    memset(view, 0, sizeof *view);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        snprintf(error, size, "%s: %m", path);
        return false;
    }
    bool seen = view_descriptor(view, descriptor, path, error, size);
    close(descriptor);
    return seen;
}

void report_view_free(struct report_view *view)
{
    free(view->strings);
    free(view->rules);
    free(view->kernels);
    free(view->cells);
    free(view->streams);
    free(view->facts);
    free(view->notes);
    free(view->steps);
    free(view->launches);
    memset(view, 0, sizeof *view);
}

const char *report_view_text(struct report_view *view, uint32_t offset)
{
    const char *text = offset < view->header.counts.strings ? view->strings + offset : "";
    size_t length = strnlen(text, view->text_left);
    if (length < view->text_left) {
        view->text_left -= length;
        return text;
    }
    view->text_left = 0;
    view->truncated = true;
    return "";
}

uint64_t report_view_total(const struct report_view *view)
{
    uint64_t total = 0;
    for (uint32_t cell = 0; cell < view->header.counts.cells; cell++) {
        for (size_t kind = 0; kind < REPORT_LAUNCH_KIND_COUNT; kind++)
            total += view->launches[cell][kind];
    }
    return total;
}
