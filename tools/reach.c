/* SPDX-License-Identifier: Apache-2.0 */
#include "reach.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "memory.h"
#include "program_file.h"

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

/* Why nothing is preloaded into a program of this file; NULL when something is. To be freed. */
static char *file_reason(const struct program_file *file)
{
    switch (file->kind) {
    case PROGRAM_PRIVILEGED:
        return memory_format("'%s' is set-user-ID or set-group-ID, or has capabilities, so nothing "
                             "is preloaded, and what it starts does not get LD_PRELOAD",
                             file->path);
    case PROGRAM_STATIC:
        return memory_format("'%s' is linked statically, so nothing is preloaded, unless into "
                             "programs that it starts",
                             file->path);
    case PROGRAM_OTHER_MACHINE:
        return memory_format("'%s' is for another machine than libcudapolicy.so, so nothing is "
                             "preloaded, unless into programs that it starts",
                             file->path);
    case PROGRAM_MUSL:
        return memory_format("'%s' is for musl (%s), and cannot start with libcudapolicy.so, which "
                             "is for glibc",
                             file->path, file->interpreter);
    default:
        return NULL;
    }
}

static char *program_reason(const char *program, enum program_kind *kind)
{
    struct program_file file;
    char *reason;

    program_file_read(&file, program);
    reason = file_reason(&file);
    *kind = file.kind;
    program_file_release(&file);
    return reason;
}

bool reach_check(const char *program, bool quiet)
{
    enum program_kind kind;
    char *reason = program_reason(program, &kind);

    if (kind == PROGRAM_MUSL) {
        command_error("%s; it was not started", reason);
    } else if (reason != NULL && !quiet) {
        command_error("%s", reason);
    }
    free(reason);
    return kind != PROGRAM_MUSL;
}

static const char lost[] =
    "LD_PRELOAD was lost on the way to the program, it seems (env -i, sudo, ssh, a module, a "
    "container): the CUDA driver was loaded on this host, but not asked for a function by way of "
    "the library. Or it was loaded with RTLD_DEEPBIND or dlmopen";

/* What is known of what the program started; NULL for nothing. */
static const char *opened_reason(const struct opened *opened)
{
    if (opened != NULL && opened->inner_run) {
        return "cudapolicy run was started again inside, and tells of what it starts itself";
    }
    if (opened != NULL && opened->known && opened->seen[OPENED_DRIVER] &&
        !opened->seen[OPENED_POLICY]) {
        return lost;
    }
    return NULL;
}

/* What is said when nothing else is known. */
static const char *last_reason(const struct opened *opened)
{
    if (opened != NULL && opened->known && !opened->seen[OPENED_LIBRARY]) {
        return "no process on this host loaded libcudapolicy.so";
    }
    if (opened != NULL && opened->known && !opened->seen[OPENED_POLICY]) {
        return "no process with the library asked for a function of the CUDA driver on this host";
    }
    return "it launched none, or only where a preload does not reach: children that are "
           "set-user-ID or linked statically, libraries loaded with RTLD_DEEPBIND or dlmopen, "
           "graphs made before; or its report could not be written, as where a container lacks the "
           "folder";
}

char *reach_explain(const char *program, const struct opened *opened)
{
    enum program_kind kind;
    char *of_program = program_reason(program, &kind);
    const char *known = opened_reason(opened);

    /* A launcher may be linked statically; of what one with privileges starts nothing is reached.
     */
    if (known != NULL && kind != PROGRAM_PRIVILEGED) {
        free(of_program);
        return memory_copy(known);
    }
    if (of_program != NULL) {
        return of_program;
    }
    if (!has_driver()) {
        return memory_copy("there is no CUDA driver (libcuda.so.1 cannot be loaded)");
    }
    if (!has_gpu()) {
        return memory_copy("probably there is no GPU (neither /dev/nvidia0 nor /dev/dxg)");
    }
    return memory_copy(last_reason(opened));
}
