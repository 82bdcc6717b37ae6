/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STRESS_APPLICATION_H
#define STRESS_APPLICATION_H

/*
 * A program that uses the driver in all the ways that a policy reaches, always the same, whatever
 * its calls answer: what goes wrong is written down, and the program goes on.
 */

#include "calls.h"

enum {
    KERNEL_COUNT = 6,
    STREAM_COUNT = 4,
};

struct application {
    CUcontext context;
    CUmodule module;
    CUlibrary library;
    CUfunction functions[KERNEL_COUNT]; /* alpha … zeta */
    CUkernel kernels[2];                /* kappa, lambda */
    CUfunction of_kernel, of_other;     /* of kappa, of lambda */
    CUstream streams[STREAM_COUNT];     /* blocking, non-blocking, with a priority, green */
    CUgreenCtx green;
};

enum { ALPHA, BETA, GAMMA, DELTA, EPSILON, ZETA };
enum { BLOCKING, NON_BLOCKING, URGENT, GREEN };

/* application_module.c */
void application_load(struct application *application);
void application_unload(struct application *application);
void application_set_function_attributes(struct application *application);

/* application_launch.c */
void application_launch(struct application *application, CUstream stream);
void application_launch_on_default_streams(struct application *application);
/* One launch, without any attribute. */
CUresult launch_plain(CUfunction function, unsigned blocks, CUstream stream);
/* With a domain of its own. */
CUresult launch_with_domain(CUfunction function, unsigned blocks, CUstream stream);

/* application_stream.c */
void application_create_streams(struct application *application);
void application_set_stream_attributes(struct application *application);
void application_destroy_streams(struct application *application);

/* application_capture.c */
void application_capture(struct application *application);
void application_capture_badly(struct application *application);

/* application_graph.c */
void application_build_graphs(struct application *application);

#endif
