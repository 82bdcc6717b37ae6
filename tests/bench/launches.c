/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes launches for tools/bench, which counts the instructions of two runs that differ only in how
 * many launches they make.
 *
 * usage: bench_launches ROUTE COUNT [OPTION]...
 *   ROUTE             kernel (cuLaunchKernel) or ex (cuLaunchKernelEx)
 *   --attribute NAME  an attribute of the program's own (ex), in this order: domain, priority,
 *                     scheduling, carveout, map
 *   --stream          a created stream instead of the default one
 *   --moved           each on another stream, between two events: what the library does itself
 *   --threads N       COUNT launches from each of N threads; prints nanoseconds a launch
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/interface.h"

enum {
    ATTRIBUTE_LIMIT = 8,
    THREAD_LIMIT = 64,
};

static CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, CUstream, void **, void **);
static CUresult (*record)(CUevent, CUstream);
static CUresult (*wait)(CUstream, CUevent, unsigned);
static CUresult (*launch_ex)(const CUlaunchConfig *, CUfunction, void **, void **);
static CUresult (*set_current)(CUcontext);

static CUcontext context;
static CUfunction function;
static CUstream stream, side;
static CUevent event;
static struct cuda_launch_attribute attributes[ATTRIBUTE_LIMIT];
static unsigned attribute_count;
static bool ex;
static long count;
static pthread_barrier_t barrier;

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);

    if (found == NULL) {
        fprintf(stderr, "bench_launches: %s\n", dlerror());
        exit(2);
    }
    return found;
}

static void check(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "bench_launches: %s: %d\n", what, (int)result);
        exit(2);
    }
}

static void add_attribute(const char *name)
{
    static const struct {
        const char *name;
        uint32_t id, value;
    } known[] = {
        {"domain", CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 1},
        {"priority", CU_LAUNCH_ATTRIBUTE_PRIORITY, 0},
        {"scheduling", CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 1},
        {"carveout", CUDA_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50},
        {"map", CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 0x0100},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0 && attribute_count < ATTRIBUTE_LIMIT) {
            attributes[attribute_count].id = known[i].id;
            attributes[attribute_count++].value.number = known[i].value;
            return;
        }
    }
    fprintf(stderr, "bench_launches: attribute %s\n", name);
    exit(2);
}

static void launch(long launches)
{
    float *data = NULL, factor = 1;
    void *arguments[] = {&data, &factor};
    CUlaunchConfig config = {.gridDimX = 4,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 128,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .attrs = (CUlaunchAttribute *)attributes,
                             .numAttrs = attribute_count};

    for (long i = 0; i < launches && side != NULL; i++)
        if (record(event, stream) != CUDA_SUCCESS || wait(side, event, 0) != CUDA_SUCCESS ||
            launch_kernel(function, 4, 1, 1, 128, 1, 1, 0, side, arguments, NULL) != CUDA_SUCCESS ||
            record(event, side) != CUDA_SUCCESS || wait(stream, event, 0) != CUDA_SUCCESS)
            abort();
    for (long i = 0; i < launches && side == NULL; i++)
        if ((ex ? launch_ex(&config, function, arguments, NULL)
                : launch_kernel(function, 4, 1, 1, 128, 1, 1, 0, stream, arguments, NULL)) !=
            CUDA_SUCCESS)
            abort();
}

static void *thread_main(void *unused)
{
    check(set_current(context), "cuCtxSetCurrent");
    launch(10);
    pthread_barrier_wait(&barrier);
    launch(count);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void run_threads(unsigned threads)
{
    pthread_t thread[THREAD_LIMIT];
    struct timespec begin, end;

    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, thread_main, NULL) != 0)
            abort();
    pthread_barrier_wait(&barrier);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pthread_barrier_wait(&barrier);
    clock_gettime(CLOCK_MONOTONIC, &end);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%.1f\n",
           ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
               (double)(count * threads));
}

int main(int argc, char **argv)
{
    CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice);
    CUresult (*load)(CUmodule *, const void *);
    CUresult (*get)(CUfunction *, CUmodule, const char *);
    CUresult (*create)(CUstream *, unsigned);
    CUresult (*create_event)(CUevent *, unsigned);
    unsigned threads = 0;
    CUmodule module;
    void *handle;

    if (argc < 3)
        return 64;
    ex = strcmp(argv[1], "ex") == 0;
    count = atol(argv[2]);
    handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == NULL) {
        fprintf(stderr, "bench_launches: %s\n", dlerror());
        return 2;
    }
    init = symbol(handle, "cuInit");
    retain = symbol(handle, "cuDevicePrimaryCtxRetain");
    set_current = symbol(handle, "cuCtxSetCurrent");
    load = symbol(handle, "cuModuleLoadData");
    get = symbol(handle, "cuModuleGetFunction");
    create = symbol(handle, "cuStreamCreate");
    create_event = symbol(handle, "cuEventCreate");
    record = symbol(handle, "cuEventRecord");
    wait = symbol(handle, "cuStreamWaitEvent");
    launch_kernel = symbol(handle, "cuLaunchKernel");
    launch_ex = symbol(handle, "cuLaunchKernelEx");

    check(init(0), "cuInit");
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(set_current(context), "cuCtxSetCurrent");
    check(load(&module, "kernel _Z4axpyPff params=8,4\n"), "cuModuleLoadData");
    check(get(&function, module, "_Z4axpyPff"), "cuModuleGetFunction");
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--stream") == 0)
            check(create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        else if (strcmp(argv[i], "--moved") == 0) {
            check(create(&side, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
            check(create_event(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        } else if (strcmp(argv[i], "--attribute") == 0 && i + 1 < argc)
            add_attribute(argv[++i]);
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = (unsigned)atoi(argv[++i]);
        else
            return 64;
    }
    if (threads == 0)
        launch(count);
    else if (threads <= THREAD_LIMIT)
        run_threads(threads);
    return 0;
}
