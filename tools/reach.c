/* SPDX-License-Identifier: Apache-2.0 */
#include "reach.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

char *reach_find_program(const char *program)
{
    const char *variable = getenv("PATH");
    char *path, *folder, *rest = NULL, *found = NULL;

    if (strchr(program, '/') != NULL) {
        return memory_copy(program);
    }
    path = memory_copy(variable != NULL ? variable : "/bin:/usr/bin");
    for (folder = strtok_r(path, ":", &rest); folder != NULL && found == NULL;
         folder = strtok_r(NULL, ":", &rest)) {
        found = memory_format("%s/%s", folder, program);
        if (access(found, X_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    free(path);
    return found;
}

/* Whether an ELF program names no program interpreter: then no loader runs, and nothing is
 * preloaded. */
static bool is_static(const char *path)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    FILE *file = fopen(path, "re");
    bool is_program, interpreted = false;

    if (file == NULL) {
        return false;
    }
    is_program = fread(&header, sizeof header, 1, file) == 1 &&
                 memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                 header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_phentsize == sizeof segment;
    if (is_program && fseek(file, (long)header.e_phoff, SEEK_SET) == 0) {
        for (int i = 0; i < header.e_phnum && fread(&segment, sizeof segment, 1, file) == 1; i++) {
            interpreted = interpreted || segment.p_type == PT_INTERP;
        }
    }
    fclose(file);
    return is_program && !interpreted;
}

static bool raises_privileges(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0;
}

/* Asked of the loader, with our own search path, and without initialising the driver. */
static bool has_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

    if (driver == NULL) {
        return false;
    }
    dlclose(driver);
    return true;
}

static bool has_gpu(void)
{
    glob_t devices;
    bool found = glob("/dev/nvidia[0-9]*", 0, NULL, &devices) == 0;

    globfree(&devices);
    /* WSL has no such files; its GPUs are behind this one. */
    return found || access("/dev/dxg", F_OK) == 0;
}

char *reach_explain(const char *program)
{
    char *path = reach_find_program(program);
    char *text;

    if (path != NULL && raises_privileges(path)) {
        text = memory_format("'%s' is set-user-ID or set-group-ID, so nothing is preloaded", path);
    } else if (path != NULL && is_static(path)) {
        text = memory_format("'%s' is linked statically, so nothing is preloaded", path);
    } else if (!has_driver()) {
        text = memory_copy("there is no CUDA driver (libcuda.so.1 cannot be loaded)");
    } else if (!has_gpu()) {
        text = memory_copy("probably there is no GPU (neither /dev/nvidia0 nor /dev/dxg)");
    } else {
        text =
            memory_copy("it launched none, or only where a preload does not reach: children that "
                        "are set-user-ID or linked statically, libraries loaded with "
                        "RTLD_DEEPBIND or dlmopen, graphs made before");
    }
    free(path);
    return text;
}
