/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload as batch jobs have them for watching input and output: it has open, open64, read,
 * MPI_Init, MPI_Finalize and cuLaunchKernel of its own, finds the next of each by dlsym(RTLD_NEXT)
 * when it is first called, sets itself up in MPI_Init, and writes its log, by its own open, in
 * MPI_Finalize. The log has the paths that were opened for reading and the counts of the others.
 */
/* With it, open would be another name of open64 here. */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int MPI_Init(int *count, char ***arguments);
EXPORTED int MPI_Finalize(void);

enum {
    LOG_SIZE = 1 << 16,
};

static unsigned reads, launches;
static bool on;
static char paths[LOG_SIZE];
static _Thread_local int depth;

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL) {
        fprintf(stderr, "instrument: no next %s\n", name);
        abort();
    }
    return found;
}

#define NEXT(function) ((__typeof__(&(function)))next(#function))

static void note_path(const char *path)
{
    size_t used = strlen(paths);

    if (on && depth == 0)
        snprintf(paths + used, sizeof paths - used, "open %s\n", path);
}

static mode_t mode_of(int flags, va_list *more)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(*more, mode_t) : 0;
}

EXPORTED int open(const char *path, int flags, ...)
{
    static __typeof__(&open) real;
    va_list more;
    mode_t mode;

    va_start(more, flags);
    mode = mode_of(flags, &more);
    va_end(more);
    if (real == NULL)
        real = NEXT(open);
    note_path(path);
    return real(path, flags, mode);
}

EXPORTED int open64(const char *path, int flags, ...)
{
    static __typeof__(&open64) real;
    va_list more;
    mode_t mode;

    va_start(more, flags);
    mode = mode_of(flags, &more);
    va_end(more);
    if (real == NULL)
        real = NEXT(open64);
    note_path(path);
    return real(path, flags, mode);
}

EXPORTED ssize_t read(int file, void *buffer, size_t size)
{
    static __typeof__(&read) real;

    if (real == NULL)
        real = NEXT(read);
    reads += on && depth == 0;
    return real(file, buffer, size);
}

EXPORTED CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                 void **parameters, void **extra)
{
    static __typeof__(&cuLaunchKernel) real;

    if (real == NULL)
        real = NEXT(cuLaunchKernel);
    launches += on;
    return real(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}

EXPORTED int MPI_Init(int *count, char ***arguments)
{
    int result;

    depth++;
    result = NEXT(MPI_Init)(count, arguments);
    depth--;
    on = true;
    return result;
}

static void write_log(void)
{
    int file;

    depth++;
    file = open(getenv("INSTRUMENT_LOG"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dprintf(file, "%sreads %u\nlaunches %u\n", paths, reads, launches) < 0)
        abort();
    close(file);
    depth--;
}

EXPORTED int MPI_Finalize(void)
{
    write_log();
    on = false;
    return NEXT(MPI_Finalize)();
}
