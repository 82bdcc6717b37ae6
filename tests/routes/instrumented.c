/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as instrument.c watches them: between MPI_Init and MPI_Finalize it reads the file of
 * its first argument twice and launches as many kernels as its second argument says. What stands
 * for MPI is a library of its own (INSTRUMENTED_MPI), since a preload finds the next function only
 * in one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int MPI_Init(int *count, char ***arguments);
int MPI_Finalize(void);

#ifdef INSTRUMENTED_MPI

__attribute__((visibility("default"))) int MPI_Init(int *count, char ***arguments)
{
    return count == NULL || arguments == NULL;
}

__attribute__((visibility("default"))) int MPI_Finalize(void)
{
    return puts("finalized") < 0;
}

#else

#include "program.h"

static void read_file(const char *path)
{
    int file = open(path, O_RDONLY);
    char bytes[16];

    if (file < 0 || read(file, bytes, sizeof bytes) != sizeof bytes ||
        read(file, bytes, sizeof bytes) != sizeof bytes) {
        perror(path);
        exit(5);
    }
    close(file);
}

int main(int argc, char **argv)
{
    if (argc != 3 || MPI_Init(&argc, &argv) != 0)
        return 2;
    program_load();
    program_start();
    for (int i = 1; i <= atoi(argv[2]); i++) {
        read_file(argv[1]);
        program_launch((unsigned)i);
    }
    return MPI_Finalize();
}

#endif
