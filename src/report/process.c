/* SPDX-License-Identifier: Apache-2.0 */
#include "report/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static size_t read_small_file(const char *path, char *text, size_t size)
{
    size_t length = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
        ssize_t got;
        while (length < size - 1 &&
               ((got = read(descriptor, text + length, size - 1 - length)) > 0 ||
                (got < 0 && errno == EINTR)))
            length += got > 0 ? (size_t)got : 0;
        close(descriptor);
    }
    text[length] = '\0';
    return length;
}

/* Not strtoull: with newer headers that is a symbol which older C libraries do not have. */
static uint64_t decimal(const char *text)
{
    uint64_t value = 0;
    while (*text >= '0' && *text <= '9')
        value = value * 10 + (uint64_t)(*text++ - '0');
    return value;
}

/* The fields of /proc/…/stat that are asked about here. */
struct process_fields {
    char state;
    uint64_t parent, threads, start_ticks;
};

static struct process_fields read_fields(const char *path)
{
    struct process_fields fields = {0};
    char text[1024];
    if (read_small_file(path, text, sizeof text) == 0)
        return fields;
    /* The second field is a name in parentheses that may hold spaces and parentheses itself. */
    const char *field = strrchr(text, ')');
    for (int number = 3; field != NULL && number <= 22; number++) {
        field = strchr(field, ' ');
        if (field == NULL)
            break;
        field++;
        if (number == 3)
            fields.state = *field;
        else if (number == 4)
            fields.parent = decimal(field);
        else if (number == 20)
            fields.threads = decimal(field);
        else if (number == 22)
            fields.start_ticks = decimal(field);
    }
    return fields;
}

static void read_boot_id(char *boot_id, size_t size)
{
    size_t length = read_small_file("/proc/sys/kernel/random/boot_id", boot_id, size);
    if (length > 0 && boot_id[length - 1] == '\n')
        boot_id[length - 1] = '\0';
}

static uint64_t pid_namespace(void)
{
    char text[64];
    ssize_t length = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *number = strchr(text, '[');
    return number == NULL ? 0 : decimal(number + 1);
}

int64_t report_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t since_boot(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_BOOTTIME, &now) == 0 ? (int64_t)now.tv_sec * 1000000000 + now.tv_nsec
                                                    : 0;
}

/* When the process began, not when its first kernel did. */
static int64_t start_time(uint64_t ticks)
{
    int64_t now = since_boot();
    long ticks_per_second = sysconf(_SC_CLK_TCK);
    if (ticks == 0 || ticks_per_second <= 0 || now == 0)
        return report_time();
    int64_t running = now - (int64_t)(ticks * (1000000000u / (uint64_t)ticks_per_second));
    return report_time() - (running > 0 ? running : 0);
}

void report_process_fill(struct report_process *process)
{
    process->pid = (uint32_t)getpid();
    process->start_ticks = read_fields("/proc/self/stat").start_ticks;
    process->pid_namespace = pid_namespace();
    process->start_time = start_time(process->start_ticks);
    process->image = since_boot();
    process->end_time = 0;
    memset(process->boot_id, 0, sizeof process->boot_id);
    read_boot_id(process->boot_id, sizeof process->boot_id);
}

void report_process_ancestors(char *text, size_t size)
{
    uint64_t pid = read_fields("/proc/self/stat").parent;
    size_t length = 0;
    text[0] = '\0';
    while (pid > 1) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
        const struct process_fields fields = read_fields(path);
        if (fields.start_ticks == 0)
            return;
        int wanted = snprintf(text + length, size - length, "%s%llu@%llu", length > 0 ? " " : "",
                              (unsigned long long)pid, (unsigned long long)fields.start_ticks);
        if (wanted < 0 || (size_t)wanted >= size - length) {
            text[length] = '\0';
            return;
        }
        length += (size_t)wanted;
        pid = fields.parent;
    }
}

bool report_process_running(const struct report_process *process, bool *known)
{
    char boot_id[sizeof process->boot_id], path[64];
    read_boot_id(boot_id, sizeof boot_id);
    *known = boot_id[0] != '\0' && strncmp(boot_id, process->boot_id, sizeof boot_id) == 0 &&
             process->pid_namespace != 0 && process->pid_namespace == pid_namespace() &&
             process->start_ticks != 0;
    if (!*known)
        return false;
    snprintf(path, sizeof path, "/proc/%u/stat", process->pid);
    const struct process_fields fields = read_fields(path);
    /* Over, and only waiting to be asked for its status; with threads left, its first one alone is.
     */
    if ((fields.state == 'Z' || fields.state == 'X') && fields.threads < 2)
        return false;
    return fields.start_ticks == process->start_ticks;
}
