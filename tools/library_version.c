/* SPDX-License-Identifier: Apache-2.0 */
#include "library_version.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

enum {
    LONGEST = 200,
};

/* As in src/preload/version.c; what(1) knows the beginning. */
static const char mark[] = "@(#)";
static const char name[] = "cudapolicy ";

static char *version_in(const char *bytes, size_t size)
{
    const char *at = bytes, *end = bytes + size;

    while ((at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1)) != NULL) {
        size_t length;

        at += sizeof mark - 1;
        length = strnlen(at, (size_t)(end - at));
        if (length > sizeof name - 1 && length <= LONGEST && at + length < end &&
            memcmp(at, name, sizeof name - 1) == 0) {
            return memory_copy(at);
        }
    }
    return NULL;
}

char *library_version_read(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char *version = NULL;
    struct stat status;

    if (descriptor < 0) {
        return NULL;
    }
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        size_t size = (size_t)status.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);

        if (bytes != MAP_FAILED) {
            version = version_in(bytes, size);
            munmap(bytes, size);
        }
    }
    close(descriptor);
    return version;
}
