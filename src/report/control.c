/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/layout.h"
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

static void change_mode(union report_control *control, uint8_t mode)
{
    uint32_t *half = (uint32_t *)(void *)control;
    union outside_half seen = {.whole = __atomic_load_n(half, __ATOMIC_RELAXED)}, wanted;
    do {
        wanted = seen;
        wanted.part.mode = mode;
        wanted.part.generation++;
    } while (!__atomic_compare_exchange_n(half, &seen.whole, wanted.whole, false, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

bool report_counters_set_mode(const char *counters_path, uint8_t mode, char *error, size_t size)
{
    struct report_view view;
    /* Read as a report would be: a file that is not what it should be is not written to. */
    if (!report_view_file(&view, counters_path, error, size))
        return false;
    bool whole = !view.truncated, ended = view.header.process.end_time != 0;
    report_view_free(&view);
    if (!whole || ended) {
        snprintf(error, size, "%s: %s", counters_path,
                 ended ? "the process has ended" : "the file is damaged");
        return false;
    }
    int descriptor = open(counters_path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    void *memory = descriptor < 0 ? MAP_FAILED
                                  : mmap(NULL, sizeof(struct report_header), PROT_READ | PROT_WRITE,
                                         MAP_SHARED, descriptor, 0);
    int error_number = errno;
    if (descriptor >= 0)
        close(descriptor);
    if (memory == MAP_FAILED) {
        errno = error_number;
        snprintf(error, size, "%s: %m", counters_path);
        return false;
    }
    change_mode(&((struct report_header *)memory)->control, mode);
    munmap(memory, sizeof(struct report_header));
    return true;
}
