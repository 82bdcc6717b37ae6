/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/layout.h"
#include "report/mapped.h"
#include "report/process.h"
#include "report/view.h"

/* Mode and generation change together; the gate beside them is the process's own. */
union outside_half {
    uint32_t whole;
    struct {
        uint8_t mode, arm;
        uint16_t generation;
    } part;
};

_Static_assert(offsetof(union report_control, part.gate) == sizeof(union outside_half),
               "the halves do not overlap");

static void change(union report_control *control, const uint8_t *mode)
{
    uint32_t *half = (uint32_t *)(void *)control;
    union outside_half seen = {.whole = __atomic_load_n(half, __ATOMIC_RELAXED)}, wanted;
    do {
        wanted = seen;
        if (mode != NULL)
            wanted.part.mode = *mode;
        wanted.part.generation++;
    } while (!__atomic_compare_exchange_n(half, &seen.whole, wanted.whole, false, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

/* The header of a running process's file, to be unmapped; NULL with a message. */
static struct report_header *map_header(const char *counters_path, char *error, size_t size)
{
    struct report_view view;
    /* Read as a report would be: a file that is not what it should be is not written to. */
    if (!report_view_file(&view, counters_path, error, size))
        return NULL;
    bool whole = !view.truncated, ended = view.header.process.end_time != 0;
    report_view_free(&view);
    if (!whole || ended) {
        snprintf(error, size, "%s: %s", counters_path,
                 ended ? "the process has ended" : "the file is damaged");
        return NULL;
    }
    int descriptor = open(counters_path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    void *memory = descriptor < 0 ? MAP_FAILED
                                  : mmap(NULL, sizeof(struct report_header), PROT_READ | PROT_WRITE,
                                         MAP_SHARED, descriptor, 0);
    int error_number = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (memory != MAP_FAILED)
        return memory;
    errno = error_number;
    snprintf(error, size, "%s: %m", counters_path);
    return NULL;
}

bool report_counters_set_mode(const char *counters_path, uint8_t mode, char *error, size_t size)
{
    struct report_header *header = map_header(counters_path, error, size);
    if (header == NULL)
        return false;
    __atomic_fetch_add(&header->exchange.mode_changes, 1, __ATOMIC_RELAXED);
    change(&header->control, &mode);
    munmap(header, sizeof *header);
    return true;
}

bool report_counters_reload(const char *counters_path, uint32_t *wanted, char *error, size_t size)
{
    struct report_header *header = map_header(counters_path, error, size);
    if (header == NULL)
        return false;
    *wanted = __atomic_add_fetch(&header->exchange.reload_wanted, 1, __ATOMIC_RELAXED);
    change(&header->control, NULL);
    munmap(header, sizeof *header);
    return true;
}

bool report_counters_answer(const char *counters_path, struct report_exchange *exchange,
                            bool *ended)
{
    struct report_header header;
    int descriptor = open(counters_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool whole = descriptor >= 0 && pread(descriptor, &header, sizeof header, 0) == sizeof header;
    if (descriptor >= 0)
        close(descriptor);
    *ended = whole && header.process.end_time != 0;
    if (!whole || *ended)
        return false;
    *exchange = header.exchange;
    return true;
}

/* ---- In the process ----------------------------------------------------------------------------
 */

void report_control_expect(union report_control word)
{
    word.part.gate = 0;
    /* report_arm_set may have come in between: the arm is that of the present word. */
    report_lock();
    word.part.arm = __atomic_load_n(&report_control_now()->part.arm, __ATOMIC_RELAXED);
    __atomic_store_n(&report_control_expected, word.whole, __ATOMIC_RELEASE);
    report_unlock();
}

void report_exchange_read(struct report_exchange *exchange)
{
    *exchange = (struct report_exchange){0};
    report_lock();
    if (report_image != NULL) {
        const struct report_exchange *shared = &report_image_header()->exchange;
        exchange->mode_changes = __atomic_load_n(&shared->mode_changes, __ATOMIC_ACQUIRE);
        exchange->reload_wanted = __atomic_load_n(&shared->reload_wanted, __ATOMIC_ACQUIRE);
        exchange->reload_answered = __atomic_load_n(&shared->reload_answered, __ATOMIC_ACQUIRE);
    }
    report_unlock();
}

void report_exchange_answer(uint32_t reload_wanted, enum report_reload outcome)
{
    report_lock();
    if (report_image != NULL) {
        struct report_exchange *shared = &report_image_header()->exchange;
        __atomic_store_n(&shared->reload_outcome, (uint32_t)outcome, __ATOMIC_RELAXED);
        __atomic_store_n(&shared->reload_time, report_time(), __ATOMIC_RELAXED);
        __atomic_store_n(&shared->reload_answered, reload_wanted, __ATOMIC_RELEASE);
    }
    report_unlock();
}

void report_exchange_acted(uint16_t generation)
{
    report_lock();
    if (report_image != NULL)
        __atomic_store_n(&report_image_header()->exchange.generation, generation, __ATOMIC_RELEASE);
    report_unlock();
}

union report_control report_control_lower_mode(uint8_t mode)
{
    union report_control *control = report_control_now();
    change(control, &mode);
    return (union report_control){.whole = __atomic_load_n(&control->whole, __ATOMIC_ACQUIRE)};
}

bool report_control_set_mode(uint8_t mode)
{
    struct report_exchange exchange;
    report_exchange_read(&exchange);
    if (exchange.mode_changes != 0)
        return false;
    change(report_control_now(), &mode);
    return true;
}
