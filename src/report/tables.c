/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/counters.h"
#include "report/mapped.h"
#include "report/process.h"
#include "report/report.h"

enum {
    KERNEL_SLOTS = 2 * REPORT_KERNEL_LIMIT,
    CELL_SLOTS = 2 * REPORT_CELL_LIMIT,
    SHARED_TEXTS = 64,
    TEXT_SIZE = 4096
};

static struct report_start start_values;

/* Open addressing: number of the row, 0 for an empty slot (row 0 of both tables is never looked
 * up). Private to the process, under the lock. */
static uint16_t kernel_slots[KERNEL_SLOTS];
static uint16_t cell_slots[CELL_SLOTS];
static bool slots_stale;

/* Offsets of short strings that many rows share. */
static uint32_t shared_texts[SHARED_TEXTS];
static size_t shared_text_count;

/* A row is complete before its count is raised, for readers of the file and for a child that was
 * forked by another thread at any moment. */
static void advance(uint32_t *count)
{
    __atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
    report_image_publish();
}

static void overflow(enum report_table table)
{
    if (report_counts.overflow[table] != UINT32_MAX)
        report_counts.overflow[table]++;
    report_image_publish();
}

static uint32_t add_shared_text(const char *text)
{
    for (size_t i = 0; i < shared_text_count; i++) {
        if (strcmp(report_image_text(shared_texts[i]), text) == 0)
            return shared_texts[i];
    }
    uint32_t offset = report_image_add_text(text);
    if (offset != 0 && shared_text_count < SHARED_TEXTS)
        shared_texts[shared_text_count++] = offset;
    return offset;
}

static struct report_kernel_row *kernel_row(uint32_t kernel)
{
    return (struct report_kernel_row *)(void *)(report_image + REPORT_OFFSET_KERNELS) + kernel;
}

static struct report_cell_row *cell_row(uint32_t cell)
{
    return (struct report_cell_row *)(void *)(report_image + REPORT_OFFSET_CELLS) + cell;
}

static void forget_shape(struct report_kernel_row *row)
{
    row->grid_blocks_least = UINT64_MAX;
    row->block_threads_least = row->shared_memory_least = UINT32_MAX;
    row->grid_blocks_most = 0;
    row->block_threads_most = row->shared_memory_most = 0;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static uint64_t kernel_hash(const char *mangled, const char *library)
{
    uint64_t hash = hash_bytes(14695981039346656037u, mangled, strlen(mangled) + 1);
    return hash_bytes(hash, library, strlen(library));
}

static uint64_t cell_hash(const struct report_cell_row *row)
{
    return hash_bytes(14695981039346656037u, row, sizeof *row);
}

static uint16_t *free_slot(uint16_t *slots, size_t count, uint64_t hash)
{
    size_t slot = hash % count;
    while (slots[slot] != 0)
        slot = (slot + 1) % count;
    return &slots[slot];
}

/* The slots of a forked child may have been caught half changed. */
static void refresh_slots(void)
{
    if (!slots_stale)
        return;
    slots_stale = false;
    memset(kernel_slots, 0, sizeof kernel_slots);
    memset(cell_slots, 0, sizeof cell_slots);
    for (uint32_t kernel = 1; kernel < report_counts.kernels; kernel++) {
        const struct report_kernel_row *row = kernel_row(kernel);
        uint64_t hash =
            kernel_hash(report_image_text(row->mangled), report_image_text(row->library));
        *free_slot(kernel_slots, KERNEL_SLOTS, hash) = (uint16_t)kernel;
    }
    for (uint32_t cell = 1; cell < report_counts.cells; cell++)
        *free_slot(cell_slots, CELL_SLOTS, cell_hash(cell_row(cell))) = (uint16_t)cell;
}

static struct report_rule_row rule_row(const struct report_rule_name *rule)
{
    return (struct report_rule_row){
        .section = add_shared_text(rule->section),
        .name = report_image_add_text(rule->name),
        .line = rule->line,
        .layer = rule->layer == NULL ? 0 : add_shared_text(rule->layer),
        .file = rule->file == NULL ? 0 : add_shared_text(rule->file),
    };
}

static void add_rules(void)
{
    struct report_rule_row *rows = report_image_region(REPORT_REGION_RULES);
    size_t count = start_values.rule_count;
    if (count > REPORT_RULE_LIMIT)
        count = REPORT_RULE_LIMIT;
    if (!report_image_reserve(REPORT_REGION_RULES, count * sizeof *rows))
        return;
    for (size_t i = 0; i < count; i++)
        rows[i] = rule_row(&start_values.rules[i]);
    report_counts.rules = (uint32_t)count;
}

static bool enter_rule(uint32_t number, const struct report_rule_name *rule)
{
    struct report_rule_row *rows = report_image_region(REPORT_REGION_RULES);
    if (number != report_counts.rules) /* it has one, or there was no memory for the first ones */
        return true;
    if (number >= REPORT_RULE_LIMIT ||
        !report_image_reserve(REPORT_REGION_RULES, (number + 1) * sizeof *rows))
        return false;
    rows[number] = rule_row(rule);
    advance(&report_counts.rules);
    return true;
}

static uint32_t add_names(uint32_t *offsets, size_t limit, const char *const *names, size_t count)
{
    if (names == NULL)
        return 0;
    if (count > limit)
        count = limit;
    for (size_t i = 0; i < count; i++)
        offsets[i] = names[i] == NULL ? 0 : report_image_add_text(names[i]);
    return (uint32_t)count;
}

bool report_tables_make(void)
{
    if (report_image != NULL)
        return true;
    if (!report_image_make())
        return false;
    struct report_header *header = report_image_header();
    const struct report_start *start = &start_values;
    report_counts.settings = add_names(header->setting_names, REPORT_SETTING_LIMIT,
                                       start->setting_names, start->setting_count);
    report_counts.modes =
        add_names(header->mode_names, REPORT_MODE_LIMIT, start->mode_names, start->mode_count);
    report_counts.entries =
        add_names(header->entry_names, REPORT_ENTRY_LIMIT, start->entry_names, start->entry_count);
    add_rules();
    report_image_reserve(REPORT_REGION_HEADER, sizeof *header);
    report_image_reserve(REPORT_REGION_KERNELS, sizeof(struct report_kernel_row));
    report_image_reserve(REPORT_REGION_CELLS, sizeof(struct report_cell_row));
    report_counters_reserve(1);
    struct report_kernel_row *others = kernel_row(0);
    others->mangled = others->name = others->signature = report_image_add_text("(others)");
    forget_shape(others);
    for (size_t i = 0; i < REPORT_SETTING_LIMIT; i++)
        cell_row(0)->results[i].rule = REPORT_RULE_NONE;
    report_counts.cells = 1;
    /* A child that is forked before this makes its tables itself. */
    __atomic_store_n(&report_counts.kernels, 1, __ATOMIC_RELEASE);
    report_image_publish();
    return true;
}

void report_start(const struct report_start *start)
{
    report_lock();
    start_values = *start;
    report_image_path(start->path);
    report_image_trouble = start->unasked ? REPORT_LOG_INFO : REPORT_LOG_WARN;
    report_control->part.mode = start->mode;
    union report_control expected = {.part.mode = start->mode};
    __atomic_store_n(&report_control_expected, expected.whole, __ATOMIC_RELEASE);
    report_unlock();
}

bool report_rule(uint32_t number, const struct report_rule_name *rule)
{
    int error_number = errno;
    report_lock();
    bool entered = !report_tables_make() || enter_rule(number, rule);
    report_unlock();
    errno = error_number;
    return entered;
}

static uint32_t enter_kernel(const struct report_kernel_info *info)
{
    uint32_t number = report_counts.kernels;
    if (number == REPORT_KERNEL_LIMIT ||
        !report_image_reserve(REPORT_REGION_KERNELS, (number + 1) * sizeof *kernel_row(0)))
        return 0;
    struct report_kernel_row *row = kernel_row(number);
    row->mangled = report_image_add_text(info->mangled);
    if (row->mangled == 0)
        return 0;
    row->name =
        strcmp(info->name, info->mangled) == 0 ? row->mangled : report_image_add_text(info->name);
    row->signature = strcmp(info->signature, info->mangled) == 0
                         ? row->mangled
                         : report_image_add_text(info->signature);
    row->library = add_shared_text(info->library);
    row->demangled = info->demangled;
    forget_shape(row);
    advance(&report_counts.kernels);
    return number;
}

static uint32_t find_kernel(const struct report_kernel_info *info)
{
    refresh_slots();
    size_t slot = kernel_hash(info->mangled, info->library) % KERNEL_SLOTS;
    for (; kernel_slots[slot] != 0; slot = (slot + 1) % KERNEL_SLOTS) {
        const struct report_kernel_row *row = kernel_row(kernel_slots[slot]);
        if (strcmp(report_image_text(row->mangled), info->mangled) == 0 &&
            strcmp(report_image_text(row->library), info->library) == 0)
            return kernel_slots[slot];
    }
    uint32_t kernel = enter_kernel(info);
    if (kernel == 0)
        overflow(REPORT_TABLE_KERNELS);
    else
        kernel_slots[slot] = (uint16_t)kernel;
    return kernel;
}

uint32_t report_kernel(const struct report_kernel_info *info)
{
    int error_number = errno;
    report_lock();
    uint32_t kernel = report_tables_make() ? find_kernel(info) : 0;
    report_unlock();
    errno = error_number;
    return kernel;
}

/* Moves an extent to value while value lies beyond it (is `than` it). */
#define WIDEN(extent, than, value)                                                                 \
    do {                                                                                           \
        __typeof__(extent) seen_ = __atomic_load_n(&(extent), __ATOMIC_RELAXED);                   \
        while ((value)than seen_ &&                                                                \
               !__atomic_compare_exchange_n(&(extent), &seen_, (value), true, __ATOMIC_RELAXED,    \
                                            __ATOMIC_RELAXED))                                     \
            ;                                                                                      \
    } while (0)

static __attribute__((noinline)) void widen(struct report_kernel_row *row, uint64_t grid_blocks,
                                            uint32_t block_threads, uint32_t shared_memory)
{
    WIDEN(row->grid_blocks_least, <, grid_blocks);
    WIDEN(row->grid_blocks_most, >, grid_blocks);
    WIDEN(row->block_threads_least, <, block_threads);
    WIDEN(row->block_threads_most, >, block_threads);
    WIDEN(row->shared_memory_least, <, shared_memory);
    WIDEN(row->shared_memory_most, >, shared_memory);
}

#define WITHIN(extent, value)                                                                      \
    ((value) >= __atomic_load_n(&row->extent##_least, __ATOMIC_RELAXED) &&                         \
     (value) <= __atomic_load_n(&row->extent##_most, __ATOMIC_RELAXED))

static __attribute__((noinline)) void widen_before_settled(uint32_t kernel, uint64_t grid_blocks,
                                                           uint32_t block_threads,
                                                           uint32_t shared_memory)
{
    int error_number = errno;
    report_lock();
    if (report_tables_make() && kernel < report_counts.kernels)
        widen(kernel_row(kernel), grid_blocks, block_threads, shared_memory);
    report_unlock();
    errno = error_number;
}

/* Nearly always the shape was seen before: six comparisons and no store. */
void report_kernel_shape(uint32_t kernel, uint64_t grid_blocks, uint32_t block_threads,
                         uint32_t shared_memory)
{
    if (__builtin_expect(!__atomic_load_n(&report_image_settled, __ATOMIC_ACQUIRE), 0)) {
        widen_before_settled(kernel, grid_blocks, block_threads, shared_memory);
        return;
    }
    if (kernel >= REPORT_KERNEL_LIMIT || report_image == NULL)
        return;
    struct report_kernel_row *row = kernel_row(kernel);
    if (!WITHIN(grid_blocks, grid_blocks) || !WITHIN(block_threads, block_threads) ||
        !WITHIN(shared_memory, shared_memory))
        widen(row, grid_blocks, block_threads, shared_memory);
}

static uint32_t enter_cell(const struct report_cell_row *row)
{
    uint32_t number = report_counts.cells;
    if (number == REPORT_CELL_LIMIT ||
        !report_image_reserve(REPORT_REGION_CELLS, (number + 1) * sizeof *row) ||
        !report_counters_reserve(number + 1))
        return 0;
    *cell_row(number) = *row;
    advance(&report_counts.cells);
    return number;
}

static void copy_results(struct report_result *to, const struct report_result *from)
{
    for (size_t i = 0; i < REPORT_SETTING_LIMIT; i++) {
        if (from != NULL && i < start_values.setting_count)
            to[i] = from[i];
        else
            to[i] = (struct report_result){.rule = REPORT_RULE_NONE};
    }
}

uint32_t report_cell(uint32_t kernel, const struct report_result *results, uint32_t detail)
{
    struct report_cell_row wanted = {.kernel = kernel, .detail = detail};
    uint32_t cell = 0;
    int error_number = errno;
    copy_results(wanted.results, results);
    report_lock();
    if (report_tables_make() && kernel < report_counts.kernels) {
        refresh_slots();
        size_t slot = cell_hash(&wanted) % CELL_SLOTS;
        while (cell_slots[slot] != 0 &&
               memcmp(cell_row(cell_slots[slot]), &wanted, sizeof wanted) != 0)
            slot = (slot + 1) % CELL_SLOTS;
        cell = cell_slots[slot] != 0 ? cell_slots[slot] : enter_cell(&wanted);
        if (cell == 0)
            overflow(REPORT_TABLE_CELLS);
        else
            cell_slots[slot] = (uint16_t)cell;
    }
    report_unlock();
    errno = error_number;
    return cell;
}

static bool streams_alike(const struct report_stream_row *one,
                          const struct report_stream_row *other)
{
    return memcmp(one, other, offsetof(struct report_stream_row, count)) == 0;
}

static void enter_stream(const struct report_stream_info *info)
{
    struct report_stream_row *rows = report_image_region(REPORT_REGION_STREAMS);
    struct report_stream_row wanted = {.library = add_shared_text(info->library),
                                       .kind = add_shared_text(info->kind),
                                       .device = info->device,
                                       .flags = info->flags,
                                       .priority = info->priority,
                                       .rule = info->rule,
                                       .count = 1};
    copy_results(wanted.results, info->results);
    uint32_t number = report_counts.streams;
    for (uint32_t i = 0; i < number; i++) {
        if (streams_alike(&rows[i], &wanted)) {
            __atomic_fetch_add(&rows[i].count, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    if (number == REPORT_STREAM_LIMIT ||
        !report_image_reserve(REPORT_REGION_STREAMS, (number + 1) * sizeof wanted)) {
        overflow(REPORT_TABLE_STREAMS);
        return;
    }
    rows[number] = wanted;
    advance(&report_counts.streams);
}

void report_stream(const struct report_stream_info *info)
{
    int error_number = errno;
    report_lock();
    if (report_tables_make())
        enter_stream(info);
    report_unlock();
    errno = error_number;
}

static void enter_fact(const char *section, const char *key, const char *value)
{
    struct report_fact_row *rows = report_image_region(REPORT_REGION_FACTS);
    uint32_t number = report_counts.facts;
    for (uint32_t i = 0; i < number; i++) {
        if (strcmp(report_image_text(rows[i].key), key) != 0 ||
            strcmp(report_image_text(rows[i].section), section) != 0)
            continue;
        if (strcmp(report_image_text(rows[i].value), value) != 0) {
            uint32_t offset = report_image_add_text(value);
            report_image_publish();
            __atomic_store_n(&rows[i].value, offset, __ATOMIC_RELEASE);
        }
        return;
    }
    if (number == REPORT_FACT_LIMIT ||
        !report_image_reserve(REPORT_REGION_FACTS, (number + 1) * sizeof *rows)) {
        overflow(REPORT_TABLE_FACTS);
        return;
    }
    rows[number] = (struct report_fact_row){.section = add_shared_text(section),
                                            .key = report_image_add_text(key),
                                            .value = report_image_add_text(value)};
    advance(&report_counts.facts);
}

static void enter_note(const char *severity, const char *text)
{
    struct report_note_row *rows = report_image_region(REPORT_REGION_NOTES);
    uint32_t number = report_counts.notes;
    for (uint32_t i = 0; i < number; i++) {
        if (strcmp(report_image_text(rows[i].text), text) == 0 &&
            strcmp(report_image_text(rows[i].severity), severity) == 0) {
            __atomic_fetch_add(&rows[i].count, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    if (number == REPORT_NOTE_LIMIT ||
        !report_image_reserve(REPORT_REGION_NOTES, (number + 1) * sizeof *rows)) {
        overflow(REPORT_TABLE_NOTES);
        return;
    }
    rows[number] = (struct report_note_row){.severity = add_shared_text(severity),
                                            .text = report_image_add_text(text),
                                            .time = report_time(),
                                            .count = 1};
    advance(&report_counts.notes);
}

/* Formats into text[TEXT_SIZE]; what does not fit ends in "...". */
static void format_text(char *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void format_text(char *text, const char *format, va_list arguments)
{
    int length = vsnprintf(text, TEXT_SIZE, format, arguments);
    if (length < 0)
        text[0] = '\0';
    else if (length >= TEXT_SIZE)
        memcpy(text + TEXT_SIZE - 4, "...", 4);
}

void report_fact(const char *section, const char *key, const char *format, ...)
{
    char value[TEXT_SIZE];
    va_list arguments;
    int error_number = errno;
    va_start(arguments, format);
    format_text(value, format, arguments);
    va_end(arguments);
    report_lock();
    if (report_tables_make())
        enter_fact(section, key, value);
    report_unlock();
    errno = error_number;
}

void report_note(const char *severity, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    int error_number = errno;
    va_start(arguments, format);
    format_text(text, format, arguments);
    va_end(arguments);
    report_lock();
    if (report_tables_make())
        enter_note(severity, text);
    report_unlock();
    errno = error_number;
}

void report_tables_after_fork(void)
{
    slots_stale = true;
    if (report_image == NULL) {
        shared_text_count = 0;
        return;
    }
    for (uint32_t kernel = 0; kernel < report_counts.kernels; kernel++)
        forget_shape(kernel_row(kernel));
}
