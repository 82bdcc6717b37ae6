/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios of what a program calls, and with what. */
#include "program.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recording_driver.h"

/* launch N: N launches, of 1 block, 2 blocks, … */
static int launch(int argc, char **argv)
{
    const unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1;

    program_load();
    program_start();
    for (unsigned i = 1; i <= count; i++)
        program_launch(i);
    return 0;
}

/* default: the launch function that RTLD_DEFAULT gives, three times. */
static int launch_by_default(int argc, char **argv)
{
    void *found;

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    found = dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    if (found == NULL)
        return 1;
    *(void **)&cu.cuLaunchKernel = found;
    for (unsigned i = 1; i <= 3; i++)
        program_launch(i);
    return 0;
}

/* nothing: a program that never asks for CUDA, but for other symbols. */
static int nothing(int argc, char **argv)
{
    void *library = dlopen("libm.so.6", RTLD_NOW);

    (void)argc;
    (void)argv;
    return library != NULL && dlsym(library, "cos") != NULL &&
                   dlsym(RTLD_DEFAULT, "malloc") != NULL && dlsym(library, "no_such_name") == NULL
               ? 0
               : 1;
}

/* init: asks for CUDA, but launches nothing and creates no stream. */
static int init(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    program_load();
    CHECK(cu.cuInit(0));
    return 0;
}

/* attributes: six attributes of the program's own and arguments in extra, both in memory that
 * cannot be written. */
static int attributes(int argc, char **argv)
{
    static const CUlaunchAttributeID ids[] = {
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        CU_LAUNCH_ATTRIBUTE_PRIORITY,
    };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct {
        CUlaunchAttribute attributes[sizeof ids / sizeof ids[0]];
        CUlaunchConfig config;
        void *extra[5];
        size_t size;
        void *pointer;
    } *all = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)argc;
    (void)argv;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        all->attributes[i].id = ids[i];
    all->attributes[0].value.clusterDim.x = 2;
    all->attributes[0].value.clusterDim.y = all->attributes[0].value.clusterDim.z = 1;
    all->attributes[1].value.clusterSchedulingPolicyPreference =
        CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    all->attributes[3].value.memSyncDomainMap.remote = 1;
    all->config =
        (CUlaunchConfig){4, 1, 1, 32, 1, 1, 0, NULL, all->attributes, sizeof ids / sizeof ids[0]};
    all->size = sizeof all->pointer;
    all->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    all->extra[1] = &all->pointer;
    all->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    all->extra[3] = &all->size;
    all->extra[4] = CU_LAUNCH_PARAM_END;
    mprotect(all, page, PROT_READ);
    program_load();
    program_start();
    CHECK(cu.cuLaunchKernelEx(&all->config, program_kernel, NULL, all->extra));
    return 0;
}

/* capture: a launch that is captured in global mode, on a second stream that joined; the graph's
 * node must be there. */
static int capture(int argc, char **argv)
{
    CUstream stream;
    CUgraph graph;
    size_t count = 0;
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < 2; round++) {
        CHECK(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CHECK(cu.cuLaunchKernel(program_kernel, 7, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
        CHECK(cu.cuStreamEndCapture(stream, &graph));
        CHECK(cu.cuGraphGetNodes(graph, NULL, &count));
        if (count != 1)
            return 1;
    }
    return 0;
}

/* modules: two modules with a kernel of the same name, unloaded and loaded again; every function
 * handle may come back for another kernel. */
static int modules(int argc, char **argv)
{
    static const char *const images[] = {"kernel program params=8\n", "kernel other params=8\n"};
    static const char *const names[] = {"program", "other"};
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;

    program_load();
    program_start();
    for (int round = 0; round < rounds; round++) {
        const int which = round % 2;

        CHECK(cu.cuModuleUnload(program_module));
        CHECK(cu.cuModuleLoadData(&program_module, images[which]));
        CHECK(cu.cuModuleGetFunction(&program_kernel, program_module, names[which]));
        program_launch((unsigned)which + 1);
    }
    return 0;
}

/* context: the current context before and after launches and a stream. */
static int context(int argc, char **argv)
{
    CUcontext before, after;
    CUstream stream;

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    CHECK(cu.cuCtxGetCurrent(&before));
    program_launch(1);
    CHECK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cu.cuStreamDestroy_v2(stream));
    program_launch(2);
    CHECK(cu.cuCtxGetCurrent(&after));
    return before == after ? 0 : 1;
}

/* environment: the process changes its own environment after the first look-up. */
static int environment(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    program_load();
    setenv("CUDAPOLICY_MODE", "off", 1);
    setenv("CUDAPOLICY_FILE", "/nonexistent", 1);
    program_start();
    program_launch(1);
    return 0;
}

/* null: wrong calls; each prints what it answered. */
static int null(int argc, char **argv)
{
    const CUlaunchConfig broken = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 1};
    CUfunction function;

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    printf("%d\n", (int)cu.cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    printf("%d\n", (int)cu.cuLaunchKernelEx(NULL, program_kernel, NULL, NULL));
    printf("%d\n", (int)cu.cuLaunchKernelEx(&broken, program_kernel, NULL, NULL));
    printf("%d\n", (int)cu.cuStreamCreate(NULL, 0));
    printf("%d\n", (int)cu.cuStreamDestroy_v2(NULL));
    printf("%d\n", (int)cu.cuStreamEndCapture(NULL, NULL));
    printf("%d\n", (int)cu.cuModuleGetFunction(NULL, program_module, "program"));
    printf("%d\n", (int)cu.cuModuleGetFunction(&function, program_module, NULL));
    printf("%d\n", (int)cu.cuModuleGetFunction(&function, NULL, "program"));
    printf("%d\n", (int)cu.cuModuleUnload(NULL));
    printf("%d\n", (int)cu.cuGetProcAddress_v2(NULL, NULL, 12000, 0, NULL));
    printf("%d\n", (int)cu.cuGetProcAddress_v2("cuInit", NULL, 12000, 0, NULL));
    printf("%d\n", (int)cu.cuGetProcAddress_v2("cuLaunchKernel", NULL, 12000, 0, NULL));
    return 0;
}

/* early: a stream and a launch before cuInit. */
static int early(int argc, char **argv)
{
    CUstream stream;

    (void)argc;
    (void)argv;
    program_load();
    printf("%d\n", (int)cu.cuStreamCreate(&stream, 0));
    printf("%d\n", (int)cu.cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    program_start();
    program_launch(1);
    return 0;
}

/* future: asks for variants that only a later driver has (future.c). */
static int future(int argc, char **argv)
{
    CUresult (*launch_of_the_future)(void);
    void *function = NULL;
    CUdriverProcAddressQueryResult status;

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    CHECK(cu.cuGetProcAddress_v2("cuLaunchKernel", &function, 13060, 0, &status));
    *(void **)&launch_of_the_future = function;
    CHECK(launch_of_the_future());
    CHECK(cu.cuGetProcAddress_v2("cuStreamCreate", &function, 13060, 0, &status));
    CHECK(cu.cuGetProcAddress_v2("cuLaunchKernel", &function, 13000, 0, &status));
    program_launch(1);
    return 0;
}

/* sites: launches from 4,096 places of the code, twice; the counting library (count.c) counts in
 * the second round only. */
#define SITE CHECK(cu.cuLaunchKernelEx(&config, program_kernel, arguments, NULL));
#define SITES4 SITE SITE SITE SITE
#define SITES16 SITES4 SITES4 SITES4 SITES4
#define SITES64 SITES16 SITES16 SITES16 SITES16
#define SITES_FUNCTION(name)                                                                       \
    static __attribute__((noinline)) void name(void)                                               \
    {                                                                                              \
        const CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};                       \
        void *pointer = NULL;                                                                      \
        void *arguments[] = {&pointer};                                                            \
        SITES64 SITES64 SITES64 SITES64                                                            \
    }
SITES_FUNCTION(sites0)
SITES_FUNCTION(sites1)
SITES_FUNCTION(sites2)
SITES_FUNCTION(sites3)
SITES_FUNCTION(sites4)
SITES_FUNCTION(sites5)
SITES_FUNCTION(sites6)
SITES_FUNCTION(sites7)
SITES_FUNCTION(sites8)
SITES_FUNCTION(sites9)
SITES_FUNCTION(sites10)
SITES_FUNCTION(sites11)
SITES_FUNCTION(sites12)
SITES_FUNCTION(sites13)
SITES_FUNCTION(sites14)
SITES_FUNCTION(sites15)

static int sites(int argc, char **argv)
{
    static void (*const all[])(void) = {sites0,  sites1,  sites2,  sites3, sites4,  sites5,
                                        sites6,  sites7,  sites8,  sites9, sites10, sites11,
                                        sites12, sites13, sites14, sites15};
    void (*from_here)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "count_from_here");
    void (*to_here)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "count_to_here");

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    for (int round = 0; round < 2; round++) {
        if (round == 1 && from_here != NULL)
            from_here();
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            all[i]();
    }
    if (to_here != NULL)
        to_here();
    return 0;
}

/* errno: a launch, its errno untouched. */
static int keeps_errno(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    errno = 77;
    program_load();
    if (errno != 77)
        return 1;
    program_start();
    errno = 77;
    program_launch(1);
    return errno == 77 ? 0 : 2;
}

const struct program_scenario scenarios_of_calls[] = {
    {"launch", launch},
    {"default", launch_by_default},
    {"nothing", nothing},
    {"init", init},
    {"attributes", attributes},
    {"capture", capture},
    {"modules", modules},
    {"context", context},
    {"environment", environment},
    {"null", null},
    {"early", early},
    {"future", future},
    {"sites", sites},
    {"errno", keeps_errno},
    {NULL, NULL},
};
