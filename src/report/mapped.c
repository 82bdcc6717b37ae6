/* SPDX-License-Identifier: Apache-2.0 */
#include "report/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/files.h"
#include "report/log.h"
#include "report/process.h"

enum {
    /* Disk blocks are asked for in steps of this size: a first sight seldom costs a system call. */
    RESERVE_STEP = 16384
};

unsigned char *report_image;
bool report_image_settled;
struct report_counts report_counts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool make_failed;
static bool file_backed; /* the file lies behind the image */
static bool detached;    /* but no more of it will be used */
static char json_path[PATH_MAX];
enum report_log_level report_image_trouble = REPORT_LOG_WARN;
static char file_path[PATH_MAX];
static struct report_file_identity file_identity;
static uint64_t reserved[REPORT_REGION_COUNT];

/* Shards are mapped one by one, when a thread needs one: together they would take four times the
 * address space of all the rest, which a process under RLIMIT_AS may need itself. Once mapped, a
 * shard stays where it is. */
static unsigned char *shards[REPORT_SHARD_LIMIT]; /* atomic */
static uint64_t shard_reserved[REPORT_SHARD_LIMIT];

enum { IMAGE_SIZE = REPORT_OFFSET_SHARDS };

static union report_control private_control;
/* Until report_start the control word is not the expected one: entry points go the long way. */
union report_control *report_control = &private_control;
uint64_t report_control_expected = UINT64_MAX;

void report_lock(void)
{
    pthread_mutex_lock(&lock);
}

void report_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

struct report_header *report_image_header(void)
{
    return (struct report_header *)(void *)report_image;
}

void *report_image_region(enum report_region region)
{
    return report_image + report_region_offset(region);
}

static uint64_t shard_offset(uint32_t shard)
{
    return REPORT_OFFSET_SHARDS + (uint64_t)shard * REPORT_SHARD_STRIDE;
}

struct report_shard *report_image_shard(uint32_t shard)
{
    return (struct report_shard *)(void *)__atomic_load_n(&shards[shard], __ATOMIC_ACQUIRE);
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static uint64_t page_size(void)
{
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (uint64_t)size : REPORT_LAYOUT_ALIGNMENT;
}

static void *map_private(void *address, uint64_t size)
{
    void *memory = mmap(
        address, size, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address == NULL ? 0 : MAP_FIXED), -1, 0);
    /* The image is touched here and there: huge pages would make megabytes of it. */
    if (memory != MAP_FAILED)
        madvise(memory, size, MADV_NOHUGEPAGE);
    return memory;
}

void report_image_path(const char *path)
{
    json_path[0] = '\0';
    if (path != NULL && !report_path_absolute(path, json_path, sizeof json_path)) {
        json_path[0] = '\0';
        report_log(report_image_trouble, "no report: the path %s is empty or too long", path);
    }
}

const char *report_image_json_path(void)
{
    return json_path[0] == '\0' ? NULL : json_path;
}

const char *report_image_file(void)
{
    return file_path[0] == '\0' ? NULL : file_path;
}

void report_image_publish(void)
{
    struct report_counts *seen = &report_image_header()->counts;
    __atomic_store_n(&seen->strings, report_counts.strings, __ATOMIC_RELEASE);
    const uint32_t *from = &report_counts.rules;
    uint32_t *to = &seen->rules;
    size_t words =
        (sizeof report_counts - offsetof(struct report_counts, rules)) / sizeof(uint32_t);
    for (size_t i = 0; i < words; i++)
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

/* Bytes in use at the beginning of a region other than the shards. */
static uint64_t used_bytes(enum report_region region)
{
    switch (region) {
    case REPORT_REGION_HEADER:
        return sizeof(struct report_header);
    case REPORT_REGION_STRINGS:
        return report_counts.strings;
    case REPORT_REGION_RULES:
        return report_counts.rules * sizeof(struct report_rule_row);
    case REPORT_REGION_KERNELS:
        return report_counts.kernels * sizeof(struct report_kernel_row);
    case REPORT_REGION_CELLS:
        return report_counts.cells * sizeof(struct report_cell_row);
    case REPORT_REGION_STREAMS:
        return report_counts.streams * sizeof(struct report_stream_row);
    case REPORT_REGION_FACTS:
        return report_counts.facts * sizeof(struct report_fact_row);
    case REPORT_REGION_NOTES:
        return report_counts.notes * sizeof(struct report_note_row);
    default:
        return 0;
    }
}

static bool write_at(int descriptor, const void *data, uint64_t size, uint64_t offset)
{
    const char *next = data;
    while (size > 0) {
        ssize_t written = pwrite(descriptor, next, size, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        next += written;
        offset += (uint64_t)written;
        size -= (uint64_t)written;
    }
    return true;
}

/* Asks the disk for blocks behind a range of the file that nobody has written to yet. Not
 * posix_fallocate: its substitute, where the file system cannot do it, reads and writes bytes back.
 */
static bool allocate_blocks(int descriptor, uint64_t offset, uint64_t size)
{
    static const char zeros[4096];
    int result;
    do
        result = fallocate(descriptor, 0, (off_t)offset, (off_t)size);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    for (uint64_t done = 0; done < size; done += sizeof zeros) {
        if (!write_at(descriptor, zeros, sizeof zeros, offset + done))
            return false;
    }
    return true;
}

/* The file, if it is still the one that was made; -1. The descriptor is not kept: programs close,
 * and reuse, numbers they do not know. */
static int open_own_file(void)
{
    struct report_file_identity identity;
    int descriptor = open(file_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor >= 0 && report_file_identify(descriptor, &identity) &&
        report_file_same(&identity, &file_identity))
        return descriptor;
    if (descriptor >= 0)
        close(descriptor);
    return -1;
}

static bool extend_file(uint64_t offset, uint64_t size)
{
    struct report_quiet quiet;
    report_quiet_begin(&quiet);
    int descriptor = open_own_file();
    bool extended = descriptor >= 0 && allocate_blocks(descriptor, offset, size);
    if (descriptor >= 0)
        close(descriptor);
    report_quiet_end(&quiet);
    return extended;
}

static void note_partial(void)
{
    if (detached)
        return;
    report_image_header()->partial = 1;
    report_log_once(REPORT_LOG_WARN,
                    "no room for counters in %s: the rest is kept in memory, and lost if this "
                    "process is killed",
                    file_path);
}

/* Makes a range that is mapped at memory, of whole pages never touched before, safe to touch. */
static bool secure(unsigned char *memory, uint64_t offset, uint64_t size)
{
    if (!detached && extend_file(offset, size))
        return true;
    note_partial();
    int error_number = errno;
    bool secured = map_private(memory, size) != MAP_FAILED;
    errno = error_number;
    return secured;
}

/* A piece of the file, and where it is mapped. */
struct piece {
    unsigned char *memory;
    uint64_t offset, size;
};

static bool reserve(const struct piece *piece, uint64_t *done, uint64_t bytes)
{
    if (bytes > piece->size)
        return false;
    if (bytes <= *done)
        return true;
    uint64_t target = round_up(round_up(bytes, RESERVE_STEP), page_size());
    if (target > piece->size)
        target = piece->size;
    if (file_backed && !secure(piece->memory + *done, piece->offset + *done, target - *done))
        return false;
    *done = target;
    return true;
}

bool report_image_reserve(enum report_region region, uint64_t bytes)
{
    struct piece piece = {report_image_region(region), report_region_offset(region),
                          report_region_size(region)};
    return reserve(&piece, &reserved[region], bytes);
}

/* Not yet safe to touch where a file is behind it. */
static void *map_file_shard(uint32_t shard)
{
    struct report_quiet quiet;
    report_quiet_begin(&quiet);
    int descriptor = open_own_file();
    void *memory = descriptor < 0 ? MAP_FAILED
                                  : mmap(NULL, REPORT_SHARD_STRIDE, PROT_READ | PROT_WRITE,
                                         MAP_SHARED, descriptor, (off_t)shard_offset(shard));
    if (descriptor >= 0)
        close(descriptor);
    report_quiet_end(&quiet);
    return memory;
}

static bool map_shard(uint32_t shard)
{
    if (shards[shard] != NULL)
        return true;
    int error_number = errno;
    void *memory = file_backed && !detached ? map_file_shard(shard) : MAP_FAILED;
    if (memory == MAP_FAILED) {
        memory = map_private(NULL, REPORT_SHARD_STRIDE);
        if (memory != MAP_FAILED && file_backed)
            note_partial();
    }
    errno = error_number;
    if (memory == MAP_FAILED)
        return false;
    __atomic_store_n(&shards[shard], memory, __ATOMIC_RELEASE);
    return true;
}

bool report_image_reserve_shard(uint32_t shard, uint64_t bytes)
{
    if (!map_shard(shard))
        return false;
    struct piece piece = {shards[shard], shard_offset(shard), REPORT_SHARD_STRIDE};
    return reserve(&piece, &shard_reserved[shard], bytes);
}

bool report_image_make(void)
{
    if (report_image != NULL)
        return true;
    if (make_failed)
        return false;
    int error_number = errno;
    void *memory = map_private(NULL, IMAGE_SIZE);
    bool made = memory != MAP_FAILED && map_shard(REPORT_SHARED_SHARD);
    if (!made && memory != MAP_FAILED)
        munmap(memory, IMAGE_SIZE);
    errno = error_number;
    if (!made) {
        make_failed = true;
        report_log(REPORT_LOG_WARN, "no report: no address space for the counters");
        return false;
    }
    struct report_header *header = memory;
    report_layout_fill(&header->layout);
    report_counts = (struct report_counts){.strings = 1};
    __atomic_store_n(&report_image, memory, __ATOMIC_RELEASE);
    report_image_publish();
    return true;
}

uint32_t report_image_add_text(const char *text)
{
    size_t size = strlen(text) + 1;
    uint64_t offset = report_counts.strings;
    if (size == 1 || !report_image_reserve(REPORT_REGION_STRINGS, offset + size))
        return 0;
    memcpy((char *)report_image_region(REPORT_REGION_STRINGS) + offset, text, size);
    __atomic_store_n(&report_counts.strings, offset + size, __ATOMIC_RELEASE);
    return (uint32_t)offset;
}

const char *report_image_text(uint32_t offset)
{
    /* The last string in use ends with a NUL, so that any offset below leads to one; unless another
     * process wrote to the file, which must not take this one with it. */
    static const char none[] = "";
    const char *strings = report_image_region(REPORT_REGION_STRINGS);
    if (offset == 0 || offset >= report_counts.strings ||
        memchr(strings + offset, '\0', report_counts.strings - offset) == NULL)
        return none;
    return strings + offset;
}

/* Copies what the image holds into the new file, after asking for the blocks. */
static bool fill_file(int descriptor)
{
    struct report_header header = *report_image_header();
    header.layout.magic = 0;
    for (int i = 0; i < REPORT_REGION_COUNT - 1; i++) {
        enum report_region region = (enum report_region)i;
        uint64_t bytes = used_bytes(region);
        reserved[region] = round_up(round_up(bytes, RESERVE_STEP), page_size());
        if (bytes == 0)
            continue;
        const void *from = i == REPORT_REGION_HEADER ? &header : report_image_region(region);
        if (!allocate_blocks(descriptor, report_region_offset(region), reserved[region]) ||
            !write_at(descriptor, from, bytes, report_region_offset(region)))
            return false;
    }
    uint64_t bytes = shard_reserved[REPORT_SHARED_SHARD];
    return bytes == 0 || (allocate_blocks(descriptor, shard_offset(REPORT_SHARED_SHARD), bytes) &&
                          write_at(descriptor, report_image_shard(REPORT_SHARED_SHARD), bytes,
                                   shard_offset(REPORT_SHARED_SHARD)));
}

/* Puts a new mapping in the place of another. It is made elsewhere first: one that fails at a fixed
 * address may leave a hole there. */
static bool exchange(void *fresh, void *place, uint64_t size)
{
    if (fresh == MAP_FAILED)
        return false;
    /* Not mremap(): communication libraries (UCX, which MPI loads) put their own in its place to
     * follow registered memory, and some of these lose the last argument. */
    if (syscall(SYS_mremap, fresh, size, size, (long)(MREMAP_MAYMOVE | MREMAP_FIXED), place) != -1)
        return true;
    munmap(fresh, size);
    return false;
}

static void *map_piece(int descriptor, uint64_t offset, uint64_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, (off_t)offset);
}

/* Of the shards only the shared one is there before the file. */
static bool map_file(int descriptor)
{
    void *shared = map_piece(descriptor, shard_offset(REPORT_SHARED_SHARD), REPORT_SHARD_STRIDE);
    if (shared == MAP_FAILED)
        return false;
    if (!exchange(map_piece(descriptor, 0, IMAGE_SIZE), report_image, IMAGE_SIZE)) {
        munmap(shared, REPORT_SHARD_STRIDE);
        return false;
    }
    if (!exchange(shared, shards[REPORT_SHARED_SHARD], REPORT_SHARD_STRIDE))
        report_image_header()->partial = 1;
    return true;
}

static bool attach(int descriptor)
{
    return ftruncate(descriptor, (off_t)REPORT_FILE_SIZE) == 0 &&
           report_file_identify(descriptor, &file_identity) && fill_file(descriptor) &&
           map_file(descriptor);
}

static void attach_file(void)
{
    char path[PATH_MAX + sizeof ".counters"];

    snprintf(path, sizeof path, "%s.counters", json_path);
    int descriptor = report_file_create(path, file_path, sizeof file_path);
    /* The word that the process used so far goes on in the file: no gate is lost, since its changes
     * take the lock that is held here. */
    report_image_header()->control.whole = private_control.whole;
    file_backed = descriptor >= 0 && attach(descriptor);
    if (file_backed) {
        struct report_header *header = report_image_header();
        __atomic_store_n(&report_control, &header->control, __ATOMIC_RELEASE);
        struct report_layout layout;
        report_layout_fill(&layout);
        __atomic_store_n(&header->layout.magic, layout.magic, __ATOMIC_RELEASE);
    } else {
        report_log(
            report_image_trouble,
            "counters cannot be kept in %s: %m; if this process is killed there is no report",
            path);
        if (descriptor >= 0)
            unlink(file_path);
        file_path[0] = '\0';
    }
    if (descriptor >= 0)
        close(descriptor);
}

/* The process's own particulars, and the file. Inside, the thread that holds the lock must not be
 * cancelled: reading and opening files are places where it could be. */
static void settle(void)
{
    struct report_header *header = report_image_header();
    struct report_quiet quiet;
    char host[256] = "";

    report_quiet_begin(&quiet);
    gethostname(host, sizeof host - 1);
    report_process_fill(&header->process);
    header->process.host = report_image_add_text(host);
    header->process.argv0 = report_image_add_text(program_invocation_name);
    report_image_publish();
    if (json_path[0] != '\0')
        attach_file();
    report_quiet_end(&quiet);
}

void report_image_settle(void)
{
    if (report_image_settled)
        return;
    if (report_image != NULL)
        settle();
    __atomic_store_n(&report_image_settled, true, __ATOMIC_RELEASE);
}

void report_image_remove_file(void)
{
    struct report_file_identity identity;
    if (file_path[0] != '\0' && report_path_identify(file_path, &identity) &&
        report_file_same(&identity, &file_identity))
        unlink(file_path);
    file_path[0] = '\0';
}

void report_image_detach(void)
{
    detached = true;
}

/* The tables, but not the counters, in memory of the child's own. */
static bool copy_after_fork(void)
{
    unsigned char *copy = map_private(NULL, IMAGE_SIZE);
    if (copy == MAP_FAILED)
        return false;
    for (int i = 0; i < REPORT_REGION_COUNT - 1; i++) {
        enum report_region region = (enum report_region)i;
        memcpy(copy + report_region_offset(region), report_image_region(region),
               used_bytes(region));
    }
    return exchange(copy, report_image, IMAGE_SIZE);
}

/* The shards held the parent's counts. The shared one stays where it is, empty and the child's own;
 * of the others the child's threads get new ones, with the child's file behind them. */
static bool empty_shards(void)
{
    for (uint32_t shard = 0; shard < REPORT_SHARED_SHARD; shard++) {
        if (shards[shard] != NULL)
            munmap(shards[shard], REPORT_SHARD_STRIDE);
        shards[shard] = NULL;
    }
    return exchange(map_private(NULL, REPORT_SHARD_STRIDE), shards[REPORT_SHARED_SHARD],
                    REPORT_SHARD_STRIDE);
}

static void forget_image(void)
{
    munmap(report_image, IMAGE_SIZE);
    munmap(shards[REPORT_SHARED_SHARD], REPORT_SHARD_STRIDE);
    shards[REPORT_SHARED_SHARD] = NULL;
    report_image = NULL;
}

void report_image_after_fork(void)
{
    /* Another thread of the parent may have held the lock; here is only this one. */
    pthread_mutex_init(&lock, NULL);
    private_control.whole = report_control->whole;
    __atomic_store_n(&report_control, &private_control, __ATOMIC_RELEASE);
    __atomic_store_n(&report_image_settled, false, __ATOMIC_RELEASE);
    file_path[0] = '\0';
    memset(reserved, 0, sizeof reserved);
    memset(shard_reserved, 0, sizeof shard_reserved);
    /* Not even the first rows were there yet: the child begins anew. */
    if (report_image != NULL && report_counts.kernels == 0)
        forget_image();
    if (report_image == NULL)
        return;
    report_counts.streams = 0;
    report_counts.shards = 0;
    memset(report_counts.overflow, 0, sizeof report_counts.overflow);
    if (!empty_shards() || !copy_after_fork()) {
        forget_image();
        make_failed = true;
        report_log(REPORT_LOG_WARN, "no report of a forked process: no address space for it");
    }
    file_backed = false;
    detached = false;
    if (report_image != NULL) {
        report_image_header()->partial = 0;
        report_image_publish();
    }
}
