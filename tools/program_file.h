/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_TOOLS_PROGRAM_FILE_H
#define CUDAPOLICY_TOOLS_PROGRAM_FILE_H

/* What becomes of a preload in a program, as its file tells. */

enum program_kind {
    PROGRAM_UNKNOWN,       /* not found, not readable, or of no kind known here */
    PROGRAM_PRELOADED,     /* glibc's loader will preload into it */
    PROGRAM_PRIVILEGED,    /* raises its privileges, for which loaders forget preloads */
    PROGRAM_STATIC,        /* no loader runs */
    PROGRAM_OTHER_MACHINE, /* its loader cannot load our library, and goes on without */
    PROGRAM_MUSL,          /* its loader tries to load our library, fails, and ends the process */
};

struct program_file {
    enum program_kind kind;
    char *path;        /* of the program, or of the interpreter that its "#!" leads to; or NULL */
    char *interpreter; /* its loader, or NULL */
};

/* The file that execvp would run; NULL when there is none. To be freed. */
char *program_file_find(const char *program);

/* Looks at the file that execvp would run as program. */
void program_file_read(struct program_file *file, const char *program);

void program_file_release(struct program_file *file);

#endif
