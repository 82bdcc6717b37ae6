/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with several threads. */
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 64,
};

static pthread_barrier_t together;
static atomic_uint launches;

/* Each thread finds the functions for itself, at the same moment as all others, and launches. */
static void *first_call(void *unused)
{
    struct program_driver mine;
    void *pointer = NULL;
    void *arguments[] = {&pointer};
    CUcontext context;
    CUmodule module;
    CUfunction function;

    (void)unused;
    pthread_barrier_wait(&together);
    program_find(&mine);
    CHECK(mine.cuInit(0));
    CHECK(mine.cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(mine.cuCtxSetCurrent(context));
    CHECK(mine.cuModuleLoadData(&module, "kernel program params=8\n"));
    CHECK(mine.cuModuleGetFunction(&function, module, "program"));
    CHECK(mine.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    return NULL;
}

/* first: 64 threads make the first calls of the process together. */
static int first(int argc, char **argv)
{
    pthread_t threads[THREADS];

    (void)argc;
    (void)argv;
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, first_call, NULL) != 0)
            return 5;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static void *launch_until_the_end(void *unused)
{
    CUcontext context;
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    (void)unused;
    if (cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cu.cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return NULL;
    /* Whatever the driver answers while the process ends: none of that is checked. */
    for (;;) {
        cu.cuLaunchKernel(program_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
        atomic_fetch_add(&launches, 1);
    }
    return NULL;
}

/* exit: main returns while four threads launch. */
static int exit_amid(int argc, char **argv)
{
    pthread_t thread;

    (void)argc;
    (void)argv;
    program_load();
    program_start();
    for (int i = 0; i < 4; i++)
        if (pthread_create(&thread, NULL, launch_until_the_end, NULL) != 0)
            return 5;
    while (atomic_load(&launches) < 1000)
        ;
    return 0;
}

/* fork-amid N: children are forked while two threads launch; each child launches, too. */
static int fork_amid(int argc, char **argv)
{
    const int children = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t thread;

    program_load();
    program_start();
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, launch_until_the_end, NULL) != 0)
            return 5;
    for (int i = 0; i < children; i++) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            program_launch(7);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 6;
    }
    return 0;
}

/* ---- a constructor under dlopen, while another thread is in the first look-up -----------------
 */

static const char *constructor_library;

static void *load_library(void *unused)
{
    void (*wait)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "threads_wait_for_look_up");
    void (*done)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "threads_constructor_done");

    (void)unused;
    wait();
    if (dlopen(constructor_library, RTLD_NOW) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(5);
    }
    done();
    return NULL;
}

/* constructor LIBRARY: threads.c, preloaded behind the library, holds this thread in its first
 * look-up until the other thread, in the library's constructor, has made a launch of its own (or
 * waits). */
static int constructor(int argc, char **argv)
{
    pthread_t thread;

    if (argc < 2)
        return 64;
    constructor_library = argv[1];
    if (pthread_create(&thread, NULL, load_library, NULL) != 0)
        return 5;
    program_load();
    program_start();
    program_launch(1);
    pthread_join(thread, NULL);
    return 0;
}

/* fork-in-start: threads.c holds another thread where it reads the configuration; meanwhile this
 * one forks, and the child looks functions up and launches. */
static void *look_up(void *unused)
{
    (void)unused;
    program_load();
    return NULL;
}

static int fork_in_start(int argc, char **argv)
{
    void (*wait)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "threads_wait_for_look_up");
    void (*done)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "threads_constructor_done");
    pthread_t thread;
    pid_t child;
    int status;

    (void)argc;
    (void)argv;
    if (pthread_create(&thread, NULL, look_up, NULL) != 0)
        return 5;
    wait();
    child = fork();
    if (child == 0) {
        program_load();
        program_start();
        program_launch(2);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 6;
    done();
    pthread_join(thread, NULL);
    program_start();
    program_launch(1);
    return 0;
}

const struct program_scenario scenarios_of_threads[] = {
    {"first", first},
    {"exit", exit_amid},
    {"fork-amid", fork_amid},
    {"constructor", constructor},
    {"fork-in-start", fork_in_start},
    {NULL, NULL},
};
