/* SPDX-License-Identifier: Apache-2.0 */
#include "application.h"

#include <stdio.h>
#include <string.h>

/* One that was made past the preloaded library. */
static void launch_on_unseen_stream(struct application *application)
{
    CUstream stream = NULL;
    CALL_PAST_PRELOAD(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < KERNEL_COUNT; i++)
        if (i != DELTA)
            launch_plain(application->functions[i], 8, stream);
    CALL(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    launch_plain(application->functions[ALPHA], 8, stream);
    CALL(cuStreamDestroy_v2, stream);
}

static void work(struct application *application)
{
    application_load(application);
    application_create_streams(application);
    application_launch(application, application->streams[NON_BLOCKING]);
    application_set_stream_attributes(application);
    application_launch(application, application->streams[URGENT]);
    for (int i = 0; i < STREAM_COUNT; i++)
        launch_plain(application->functions[ALPHA], 8, application->streams[i]);
    application_launch_on_default_streams(application);
    application_set_function_attributes(application);
    application_capture(application);
    application_capture_badly(application);
    launch_on_unseen_stream(application);
    application_build_graphs(application);
    application_destroy_streams(application);
    application_unload(application);
}

static void use_another_context(struct application *application)
{
    CUcontext other = NULL;
    int devices = 1;
    CALL(cuDeviceGetCount, &devices);
    CALL(cuCtxCreate_v2, &other, 0, devices - 1);
    application_load(application);
    CALL(cuStreamCreate, &application->streams[NON_BLOCKING], CU_STREAM_NON_BLOCKING);
    launch_plain(application->functions[ALPHA], 8, application->streams[NON_BLOCKING]);
    launch_plain((CUfunction)(void *)application->kernels[0], 8, NULL);
    launch_on_unseen_stream(application);
    CALL(cuCtxDestroy_v2, other);
    CALL(cuCtxSetCurrent, application->context);
    launch_plain(application->functions[ALPHA], 8, application->streams[NON_BLOCKING]);
    launch_plain((CUfunction)(void *)application->kernels[0], 8, NULL);
    CALL(cuLibraryUnload, application->library);
}

/* Everything twice: handles come back, and what was learned the first time is used. */
int main(int argc, char **argv)
{
    struct application application;
    if (argc != 3) {
        fprintf(stderr, "usage: %s symbols|resolver RESULTS\n", argv[0]);
        return 2;
    }
    memset(&application, 0, sizeof application);
    calls_start(strcmp(argv[1], "resolver") == 0, argv[2]);
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &application.context, 0);
    CALL(cuCtxSetCurrent, application.context);
    work(&application);
    CALL(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_NONE);
    work(&application);
    use_another_context(&application);
    CALL(cuDevicePrimaryCtxRelease_v2, 0);
    calls_finish();
    return 0;
}
