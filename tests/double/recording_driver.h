/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording driver: a libcuda.so.1 of our own that executes nothing and remembers everything.
 * This header is what a test sees of it beside <cuda.h>. Include <cuda.h> first or let this header
 * do it. All functions are exported by the double's libcuda.so.1: link with it, or look them up by
 * dlsym. None of them is part of CUDA.
 */
#ifndef RECORDING_DRIVER_H
#define RECORDING_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* More attributes than any launch has; a launch with more is recorded up to here. */
#define RECORDING_ATTRIBUTES_MAX 40

/* Words of a set of SMs, which has one bit an SM. */
#define RECORDING_SM_WORDS 4

/* Which kind of function handle a call carried. */
enum recording_handle {
    RECORDING_HANDLE_NONE,     /* the call has no function argument, or the handle was not ours */
    RECORDING_HANDLE_FUNCTION, /* a CUfunction */
    RECORDING_HANDLE_KERNEL,   /* a CUkernel, passed as such or cast to CUfunction */
};

/* How a launch passed its arguments. */
enum recording_arguments {
    RECORDING_ARGUMENTS_NONE,
    RECORDING_ARGUMENTS_KERNEL_PARAMS,
    RECORDING_ARGUMENTS_EXTRA,
    RECORDING_ARGUMENTS_BOTH,
};

/* A list of launch attributes, each id at most once. */
struct recording_attributes {
    unsigned int count;
    CUlaunchAttribute list[RECORDING_ATTRIBUTES_MAX];
};

/* One call that reached the driver. Strings live until the record is reset or forgotten. */
struct recording_call {
    const char *name;    /* exported symbol that was reached: "cuLaunchKernelEx_ptsz" */
    const char *text;    /* the line as it stands in the log, without the line feed */
    CUresult result;     /* what the caller got */
    bool injected;       /* the result came from FAIL, the call had no effect */
    bool resolved;       /* reached through a cuGetProcAddress pointer (DISTINCT_POINTERS) */
    unsigned int thread; /* 1 for the first thread that called the driver, and so on */
    const char *kernel;  /* kernel name of a launch or of a kernel node, else NULL */
    enum recording_handle handle;
    const void *function;      /* the handle itself */
    CUstream stream;           /* the handle as it was passed */
    const char *stream_name;   /* "stream#3", "legacy", "per_thread", or NULL */
    CUcontext context;         /* that a launch or a kernel node runs in, else NULL */
    const void *green_context; /* the green context (CUgreenCtx) which that is, or NULL */
    unsigned int sms; /* SMs that it runs on; those of a resource, descriptor or green context */
    unsigned long long sm_set[RECORDING_SM_WORDS]; /* their numbers, a bit each */
    unsigned int grid[3];                          /* blocks */
    unsigned int block[3];                         /* threads */
    unsigned int shared;                           /* dynamic bytes */
    enum recording_arguments arguments;
    bool capturing;               /* the stream was capturing when the call came in */
    unsigned int attribute_count; /* as the caller passed them, in order, */
    CUlaunchAttribute attributes[RECORDING_ATTRIBUTES_MAX]; /* duplicates included */
    struct recording_attributes effective; /* what the kernel runs with: stream, launch, kernel */
};

/*
 * Destroys every object, forgets the record, reads the configuration from the environment again
 * and keeps calls in memory from now on. Handles from before are invalid afterwards, so a process
 * that also runs a CUDA runtime should use recording_driver_forget instead.
 */
void recording_driver_reset(void);

/* Forgets the calls recorded in memory, restarts the counters of FAIL; objects stay. */
void recording_driver_forget(void);

/*
 * Sets one configuration value; key as in the environment without the RECORDING_DRIVER_ prefix
 * (the list is in README.md). Returns 0, or -1 when the key is unknown or the value cannot be read.
 */
int recording_driver_configure(const char *key, const char *value);

/* Writes a line "note=TEXT thread=N" to the log, in its place among the calls; memory keeps none.
 */
void recording_driver_note(const char *text);

/* Number of recorded calls of this exact name; NULL counts all. */
size_t recording_driver_call_count(const char *name);

/* The index-th recorded call (0 is the oldest), or NULL. */
const struct recording_call *recording_driver_call(size_t index);

/* The index-th recorded call of this exact name, or NULL. */
const struct recording_call *recording_driver_call_named(const char *name, size_t index);

/* Number of live objects of one kind ("stream", "graph", "event", ...; README.md), to find leaks.
 */
size_t recording_driver_live(const char *kind);

/* Value of an attribute in such a list, or NULL when it is not in there. */
const CUlaunchAttributeValue *recording_attribute(const struct recording_attributes *attributes,
                                                  unsigned int id);

#ifdef __cplusplus
}
#endif

#endif
