/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STRESS_CALLS_H
#define STRESS_CALLS_H

/*
 * Calls of a test program whose every result is written down, and which are told apart in the
 * recording driver's record: each stands between two notes there, "begin:N:SYMBOL:through" and
 * "end:N" ("past" for calls that go past a preloaded library). What else stands between them was
 * called by somebody on the way.
 */

/* All versions of every function under their own names. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdbool.h>

/* Loads the driver. by_resolver: functions come from cuGetProcAddress, else from dlsym. results:
 * the file for results. Ends the program when something is missing. */
void calls_start(bool by_resolver, const char *results);

/* A function under its exported name; NULL when the driver does not have it. */
void *calls_find(const char *symbol);

/* The driver's own function, past every preloaded library: as a library that is bound deeply has
 * it. */
void *calls_find_past_preload(const char *symbol);

void calls_begin(const char *symbol);
/* Writes the result down, and gives it back. */
CUresult calls_end(const char *symbol, CUresult result);

/* Writes down what else a call answered. */
void calls_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Live objects of the driver; how high the gate of the preloaded library is, if there is one. */
void calls_finish(void);

#define CALL_FUNCTION(symbol, find, ...)                                                           \
    ({                                                                                             \
        __typeof__(&symbol) function_ = (__typeof__(&symbol))find(#symbol);                        \
        calls_begin(#symbol);                                                                      \
        calls_end(#symbol, function_ == NULL ? CUDA_ERROR_NOT_FOUND : function_(__VA_ARGS__));     \
    })

/* A call of the driver; a missing function is a result, too. */
#define CALL(symbol, ...) CALL_FUNCTION(symbol, calls_find, __VA_ARGS__)
#define CALL_PAST_PRELOAD(symbol, ...) CALL_FUNCTION(symbol, calls_find_past_preload, __VA_ARGS__)

#endif
