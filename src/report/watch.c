/* SPDX-License-Identifier: Apache-2.0 */
#include "report/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/layout.h"

enum {
    ROWS = 64, /* of a table, read at once */
    TEXT_LIMIT = 1024 * 1024,
    TEXT_STEP = 512,
};

/* The header without its tables of names. */
enum { HEAD_SIZE = offsetof(struct report_header, setting_names) };

struct report_watch {
    int descriptor;
    struct report_watch_wanted wanted;
    struct stat status;
    struct report_header header; /* as last read */
    uint32_t kernels, cells;     /* rows seen */
    unsigned char kernel_wanted[REPORT_KERNEL_LIMIT];
    size_t cell_count;
    uint32_t *wanted_cells; /* ascending */
    bool entry_wanted[REPORT_ENTRY_LIMIT];
    uint32_t first_entry, last_entry; /* of those wanted; first > last: none */
    uint64_t *buffer;
    size_t buffer_size;
};

static bool read_at(int descriptor, uint64_t offset, void *data, size_t size)
{
    char *next = data;
    while (size > 0) {
        ssize_t got = pread(descriptor, next, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        next += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

static bool same_layout(const struct report_layout *layout)
{
    struct report_layout own;
    report_layout_fill(&own);
    return memcmp(layout, &own, sizeof own) == 0;
}

static void cut(uint32_t *count, uint32_t limit)
{
    if (*count > limit)
        *count = limit;
}

static bool read_head(struct report_watch *watch)
{
    struct report_counts *counts = &watch->header.counts;
    if (!read_at(watch->descriptor, 0, &watch->header, HEAD_SIZE) ||
        !same_layout(&watch->header.layout))
        return false;
    if (counts->strings > REPORT_STRINGS_SIZE)
        counts->strings = REPORT_STRINGS_SIZE;
    cut(&counts->kernels, REPORT_KERNEL_LIMIT);
    cut(&counts->cells, REPORT_CELL_LIMIT);
    cut(&counts->entries, REPORT_ENTRY_LIMIT);
    cut(&counts->shards, REPORT_SHARED_SHARD);
    return true;
}

/* The string at an offset, to be freed; NULL when there is none. */
static char *read_text(const struct report_watch *watch, uint32_t offset)
{
    uint64_t end = watch->header.counts.strings;
    char *text = NULL;
    for (size_t length = 0; offset + length < end && length < TEXT_LIMIT; length += TEXT_STEP) {
        uint64_t left = end - offset - length;
        size_t step = left < TEXT_STEP ? (size_t)left : TEXT_STEP;
        char *longer = realloc(text, length + step + 1);
        if (longer == NULL)
            break;
        text = longer;
        if (!read_at(watch->descriptor, REPORT_OFFSET_STRINGS + offset + length, text + length,
                     step))
            break;
        text[length + step] = '\0';
        if (memchr(text + length, '\0', step) != NULL || step == left)
            return text;
    }
    free(text);
    return NULL;
}

static bool reserve_buffer(struct report_watch *watch, size_t size)
{
    if (size <= watch->buffer_size)
        return true;
    uint64_t *larger = realloc(watch->buffer, size);
    if (larger == NULL)
        return false;
    watch->buffer = larger;
    watch->buffer_size = size;
    return true;
}

/* ---- First sights --------------------------------------------------------------------------- */

static bool entry_is_wanted(const struct report_watch *watch, uint32_t name)
{
    char *text = read_text(watch, name);
    bool is = false;
    for (size_t i = 0; text != NULL && watch->wanted.entries[i] != NULL && !is; i++)
        is = strcmp(text, watch->wanted.entries[i]) == 0;
    free(text);
    return is;
}

/* Entry points have their names before the file has its own. */
static bool find_entries(struct report_watch *watch)
{
    uint32_t names[REPORT_ENTRY_LIMIT];
    watch->first_entry = 1;
    watch->last_entry = 0;
    if (watch->wanted.entries == NULL)
        return true;
    if (!read_at(watch->descriptor, offsetof(struct report_header, entry_names), names,
                 sizeof names))
        return false;
    for (uint32_t entry = 0; entry < watch->header.counts.entries; entry++) {
        watch->entry_wanted[entry] = names[entry] != 0 && entry_is_wanted(watch, names[entry]);
        if (!watch->entry_wanted[entry])
            continue;
        if (watch->first_entry > watch->last_entry)
            watch->first_entry = entry;
        watch->last_entry = entry;
    }
    return true;
}

static bool find_kernels(struct report_watch *watch)
{
    struct report_kernel_row rows[ROWS];
    while (watch->kernels < watch->header.counts.kernels) {
        uint32_t left = watch->header.counts.kernels - watch->kernels;
        uint32_t count = left < ROWS ? left : ROWS;
        if (!read_at(watch->descriptor,
                     REPORT_OFFSET_KERNELS + (uint64_t)watch->kernels * sizeof rows[0], rows,
                     count * sizeof rows[0]))
            return false;
        for (uint32_t i = 0; i < count; i++) {
            char *mangled = read_text(watch, rows[i].mangled);
            watch->kernel_wanted[watch->kernels++] =
                mangled != NULL && watch->wanted.kernel(mangled, watch->wanted.context);
            free(mangled);
        }
    }
    return true;
}

static bool add_cell(struct report_watch *watch, uint32_t cell)
{
    if (watch->wanted_cells == NULL)
        watch->wanted_cells = calloc(REPORT_CELL_LIMIT, sizeof watch->wanted_cells[0]);
    if (watch->wanted_cells == NULL)
        return false;
    watch->wanted_cells[watch->cell_count++] = cell;
    return true;
}

/* A cell may be newer than the counts that were read, and its kernel with it: then the next reading
 * finds both. */
static bool find_cells(struct report_watch *watch)
{
    struct report_cell_row rows[ROWS];
    while (watch->cells < watch->header.counts.cells) {
        uint32_t left = watch->header.counts.cells - watch->cells;
        uint32_t count = left < ROWS ? left : ROWS;
        if (!read_at(watch->descriptor,
                     REPORT_OFFSET_CELLS + (uint64_t)watch->cells * sizeof rows[0], rows,
                     count * sizeof rows[0]))
            return false;
        for (uint32_t i = 0; i < count; i++) {
            if (rows[i].kernel >= watch->kernels)
                return true;
            if (watch->kernel_wanted[rows[i].kernel] && !add_cell(watch, watch->cells))
                return false;
            watch->cells++;
        }
    }
    return true;
}

/* ---- Counts --------------------------------------------------------------------------------- */

static bool add_launches(struct report_watch *watch, uint64_t shard, uint64_t *count)
{
    enum { CELL_SIZE = sizeof((struct report_shard *)0)->launches[0] };
    uint32_t first = watch->wanted_cells[0];
    uint32_t last = watch->wanted_cells[watch->cell_count - 1];
    size_t size = (size_t)(last - first + 1) * CELL_SIZE;
    if (!reserve_buffer(watch, size) ||
        !read_at(watch->descriptor,
                 shard + offsetof(struct report_shard, launches) + (uint64_t)first * CELL_SIZE,
                 watch->buffer, size))
        return false;
    for (size_t i = 0; i < watch->cell_count; i++) {
        const uint64_t *cell =
            watch->buffer + (size_t)(watch->wanted_cells[i] - first) * REPORT_LAUNCH_KIND_COUNT;
        *count += cell[REPORT_LAUNCH_EAGER] + cell[REPORT_LAUNCH_REPLAYED];
    }
    return true;
}

static bool add_entries(const struct report_watch *watch, uint64_t shard, uint64_t *count)
{
    uint64_t calls[REPORT_ENTRY_LIMIT];
    uint32_t first = watch->first_entry;
    if (!read_at(watch->descriptor,
                 shard + offsetof(struct report_shard, entry_calls) + first * sizeof calls[0],
                 calls, (watch->last_entry - first + 1) * sizeof calls[0]))
        return false;
    for (uint32_t entry = first; entry <= watch->last_entry; entry++)
        *count += watch->entry_wanted[entry] ? calls[entry - first] : 0;
    return true;
}

static bool add_shard(struct report_watch *watch, uint32_t number, uint64_t *count)
{
    uint64_t shard = REPORT_OFFSET_SHARDS + (uint64_t)number * REPORT_SHARD_STRIDE;
    return (watch->cell_count == 0 || add_launches(watch, shard, count)) &&
           (watch->first_entry > watch->last_entry || add_entries(watch, shard, count));
}

bool report_watch_read(struct report_watch *watch, uint64_t *count)
{
    uint64_t sum = 0;
    if (!read_head(watch))
        return false;
    if (watch->wanted.kernel != NULL && (!find_kernels(watch) || !find_cells(watch)))
        return false;
    for (uint32_t number = 0; number < watch->header.counts.shards; number++) {
        if (!add_shard(watch, number, &sum))
            return false;
    }
    if (!add_shard(watch, REPORT_SHARED_SHARD, &sum))
        return false;
    *count = sum;
    return true;
}

/* ---- The file ------------------------------------------------------------------------------- */

/* The magic is stored last: without it, the file is not made yet. */
static enum report_watch_state understand(struct report_watch *watch, const char *path, char *error,
                                          size_t size)
{
    struct report_layout layout = {0}, own;
    report_layout_fill(&own);
    if (!read_at(watch->descriptor, 0, &layout, sizeof layout) || layout.magic == 0)
        return REPORT_WATCH_EARLY;
    if (layout.magic != own.magic)
        snprintf(error, size, "%s: not a counters' file", path);
    else if (layout.version != own.version)
        snprintf(error, size, "%s: layout version %u, this is version %u", path, layout.version,
                 own.version);
    else if (memcmp(&layout, &own, sizeof own) != 0)
        snprintf(error, size, "%s: made by another build of the library", path);
    else
        return read_head(watch) && find_entries(watch) ? REPORT_WATCH_READY : REPORT_WATCH_EARLY;
    return REPORT_WATCH_NEVER;
}

static enum report_watch_state open_file(struct report_watch *watch, const char *path, char *error,
                                         size_t size)
{
    watch->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (watch->descriptor < 0)
        return REPORT_WATCH_EARLY;
    if (fstat(watch->descriptor, &watch->status) != 0 || !S_ISREG(watch->status.st_mode)) {
        snprintf(error, size, "%s: not a regular file", path);
        return REPORT_WATCH_NEVER;
    }
    return understand(watch, path, error, size);
}

enum report_watch_state report_watch_open(struct report_watch **watch, const char *path,
                                          const struct report_watch_wanted *wanted, char *error,
                                          size_t size)
{
    *watch = calloc(1, sizeof **watch);
    if (*watch == NULL)
        return REPORT_WATCH_EARLY;
    (*watch)->wanted = *wanted;
    enum report_watch_state state = open_file(*watch, path, error, size);
    if (state != REPORT_WATCH_READY) {
        report_watch_close(*watch);
        *watch = NULL;
    }
    return state;
}

uint32_t report_watch_pid(const struct report_watch *watch)
{
    return watch->header.process.pid;
}

uint64_t report_watch_device(const struct report_watch *watch)
{
    return watch->status.st_dev;
}

uint64_t report_watch_inode(const struct report_watch *watch)
{
    return watch->status.st_ino;
}

bool report_watch_removed(const struct report_watch *watch)
{
    struct stat status;
    return fstat(watch->descriptor, &status) == 0 && status.st_nlink == 0;
}

void report_watch_close(struct report_watch *watch)
{
    if (watch->descriptor >= 0)
        close(watch->descriptor);
    free(watch->wanted_cells);
    free(watch->buffer);
    free(watch);
}
