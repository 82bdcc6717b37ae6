/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_API_H
#define PLACEMENT_API_H

/*
 * What scripts can do (program.c), through the driver (api_driver.c) or through the runtime
 * (api_runtime.c): a program is linked with one of the two. Results are those of the call, with
 * equal numbers in both.
 */

/* All versions of every function under their own names. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <stdbool.h>

enum {
    API_DEVICES = 2,
    API_KERNELS = 5,
};

extern const char *const api_kernel_names[API_KERNELS];

/* A stream as a call names it: NULL is one of the two default streams, by the form of the call. */
struct api_stream {
    CUstream handle;
    bool per_thread; /* the form that is called */
};

enum api_launch {
    API_LAUNCH_KERNEL,
    API_LAUNCH_EX,
    API_LAUNCH_COOPERATIVE,
};

/* The device's primary context becomes active, with the kernels loaded, and the thread's current
 * one. */
int api_retain(int device);
/* A thread's first call; later ones change its device. */
int api_device(int device);
int api_release(int device);
int api_reset(int device);

int api_stream_create(CUstream *stream, unsigned flags, int priority);
int api_stream_destroy(CUstream stream);
int api_stream_priority(struct api_stream stream, int priority);
int api_event_create(CUevent *event);
int api_event_destroy(CUevent event);

/* Kernel by number; serial becomes its first argument. */
int api_launch(int device, int kernel, enum api_launch form, unsigned serial,
               struct api_stream stream);
int api_copy(struct api_stream stream);
int api_copy_now(bool per_thread);
int api_set(struct api_stream stream);
int api_host(struct api_stream stream, CUhostFn function, void *data);

int api_record(CUevent event, struct api_stream stream);
int api_wait(struct api_stream stream, CUevent event);
int api_synchronize(struct api_stream stream);
int api_synchronize_event(CUevent event);
int api_synchronize_context(void);

int api_begin(struct api_stream stream, int mode);
int api_end(struct api_stream stream, CUgraph *graph);
int api_mode(int mode);
/* Status, and the nodes that the stream's next one depends on, which live as long as the capture
 * stays as it is. */
int api_capture(struct api_stream stream, int *status, const CUgraphNode **nodes, size_t *count);
int api_depend(struct api_stream stream, CUgraphNode *nodes, size_t count, unsigned flags);
int api_instantiate(CUgraphExec *executable, CUgraph graph);
int api_update(CUgraphExec executable, CUgraph graph, int *what);
int api_graph_launch(CUgraphExec executable, struct api_stream stream);
int api_graph_destroy(CUgraph graph);
int api_executable_destroy(CUgraphExec executable);

#endif
