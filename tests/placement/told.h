/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_TOLD_H
#define PLACEMENT_TOLD_H

/*
 * A program that does what a script says, one call after the other, and writes down all that it is
 * told: told.c. Objects are named by a letter and a number: cN contexts, sN streams, gN graphs, nN
 * nodes, xN executable graphs.
 */

/* All versions of every function under their own names. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    TOLD_PLACES = 32, /* of each kind of object */
    TOLD_WORDS = 16,
    TOLD_KERNELS = 9,
};

/* The words of a line: the operation, objects and values, then options "key=value". */
struct told_line {
    unsigned number, count;
    char words[TOLD_WORDS][40];
};

/* A kernel in a context: its function there, and the kernel of the library. */
struct told_kernel {
    CUfunction function; /* of a module of its own in the context */
    CUkernel kernel;     /* of a library that every context has */
};

extern const char *const told_kernels[TOLD_KERNELS];
extern CUcontext told_contexts[TOLD_PLACES];
extern CUstream told_streams[TOLD_PLACES];
extern CUgraph told_graphs[TOLD_PLACES];
extern CUgraphNode told_nodes[TOLD_PLACES];
extern CUgraphExec told_executables[TOLD_PLACES];

/* ---- The words of a line ---- */

__attribute__((noreturn)) void told_give_up(const char *what);
const char *told_word(const struct told_line *line, unsigned index);
long told_number(const char *word);
/* N of "sN". */
unsigned told_place(const char *word);
/* The value of an option; NULL or the given number where it is not there. */
const char *told_text(const struct told_line *line, const char *key);
long told_option(const struct told_line *line, const char *key, long otherwise);
/* X, Y and Z of "X/Y/Z"; what is not there is one, and with no option all are. */
void told_three(const struct told_line *line, const char *key, unsigned three[3], unsigned first);

/* ---- What is written down ---- */

/* Adds to what the line's call was told. */
__attribute__((format(printf, 1, 2))) void told_say(const char *format, ...);
/* A handle by what the program knows it as. */
const char *told_context_name(CUcontext context);
const char *told_function_name(CUfunction function);
const char *told_kernel_name(CUkernel kernel);

/* A function of the driver, or NULL: looked up by its symbol, so that the program runs on drivers
 * and with headers that do not have it. */
void *told_symbol(const char *name);
/* A function of libcudart, loaded at the first use. */
void *told_runtime_symbol(const char *name);

struct told_kernel told_kernel(const char *name);
/* The stream of a word: sN, null, legacy or per_thread. */
CUstream told_stream(const char *word);
/* An argument for every kernel. */
void **told_arguments(void);

/* ---- Operations, by the first word of a line; -1: no such operation ---- */

int told_do_stream(const struct told_line *line);
int told_do_graph(const struct told_line *line);

#endif
