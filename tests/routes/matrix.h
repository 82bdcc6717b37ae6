/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROUTES_MATRIX_H
#define ROUTES_MATRIX_H

/*
 * The route matrix: every row of the table of entry points, called through one route, on the
 * recording driver. What the program prints, one line a row, is read by test_matrix.py.
 */

/* All versions of every function under their own names. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "recording_driver.h"

enum category {
    CATEGORY_START,
    CATEGORY_LAUNCH,
    CATEGORY_STREAM,
    CATEGORY_QUERY,
    CATEGORY_CAPTURE,
    CATEGORY_NODE,
    CATEGORY_EXECUTABLE,
    CATEGORY_NAME,
    CATEGORY_LIFETIME,
    CATEGORY_ATTRIBUTE,
    CATEGORY_RESOLVER,
};

struct row;

/* Makes one call of the row's function with arguments that are right. What is wrong with what came
 * of it, or NULL. */
typedef const char *exercise_function(const struct row *row, void *function);

struct row {
    const char *symbol, *base;
    int version;
    bool per_thread;
    enum category category;
    exercise_function *exercise; /* NULL: nobody has written it */
};

extern const struct row rows[];
extern const size_t row_count;

/* Whether a policy is enforced: every kernel and every created stream in the remote domain, and
 * created streams with a priority of -1. Else everything must be as the program asked. */
extern bool enforced;

/* ---- the driver, past every wrapper (driver.c) ------------------------------------------------
 */

/* The C library's own dlsym, whatever is preloaded. */
extern void *(*raw_dlsym)(void *handle, const char *name);
void raw_dlsym_find(void);

/* The handle of libcuda, for the raw look-ups. */
extern void *driver_handle;

/* The driver's own function; ends the program when there is none. */
void *raw(const char *symbol);

#define RAW(symbol) ((__typeof__(&symbol))raw(#symbol))

/* The recording driver's interface, looked up so that a program need not be linked with it. */
extern struct recording {
    __typeof__(&recording_driver_forget) forget;
    __typeof__(&recording_driver_call_count) call_count;
    __typeof__(&recording_driver_call) call;
    __typeof__(&recording_driver_call_named) call_named;
} recording;

void driver_start(int dlopen_flags);

/* What exercises work on; made with raw calls, so that no wrapper is counted for it, but for the
 * names of the kernels, which drivers before 12.3 do not tell. */
struct fixture {
    CUcontext context;
    CUmodule module;
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUstream stream;
    CUgraph graph; /* with one kernel node */
    CUgraphNode node;
};
extern struct fixture fixture;

/* Makes everything anew; nothing old is destroyed, so that no handle of it is used again. */
void fixture_make(void);

/* A stream and a node that the library knows: made through its wrappers. */
CUstream covered_stream(void);
CUgraphNode covered_node(void);

/* A green context of 16 SMs, and what one is made of; NULL with headers before 12.4, whose driver
 * has none. While there is one, the driver resets no primary context: green_context_end. */
void *green_description(void);
void *green_context(void);
void green_context_end(void *context);

/* Fails the program when a raw call does. */
void check(CUresult result, const char *what);
#define CHECK(call) check((call), #call)

/* "…", formatted; the text stays until the next call. */
const char *problem(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The value of an attribute of a kernel node and of a stream, asked of the driver itself. */
CUlaunchAttributeValue node_attribute(CUgraphNode node, CUlaunchAttributeID id);
CUlaunchAttributeValue stream_attribute(CUstream stream, CUlaunchAttributeID id);

/* An attribute among those that a launch ran with, or NULL. */
const CUlaunchAttributeValue *effective_attribute(const struct recording_attributes *attributes,
                                                  unsigned int id);

/* What is wrong with the domain of a node or stream that the policy covers. */
const char *node_problem(CUgraphNode node);
const char *stream_problem(CUstream stream);

/* ---- routes (find*.c) -------------------------------------------------------------------------
 */

/* A row's function by one route. */
typedef void *find_function(const struct row *row);

struct route {
    const char *name;
    find_function *find;
    int dlopen_flags;                        /* how libcuda is loaded first */
    bool (*leads_to)(const struct row *row); /* NULL: to every row */
};

extern const struct route routes_by_symbol[];
/* In programs that are linked accordingly: */
extern const struct route routes_linked[] __attribute__((weak));
extern const struct route routes_by_runtime[] __attribute__((weak));

#endif
