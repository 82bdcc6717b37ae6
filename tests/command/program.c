/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program for tests of the command: it finds the driver as Triton does, by dlopen and dlsym, and
 * does what its arguments say, one after the other:
 *
 *   stream PRIORITY         creates a non-blocking stream, used by the launches that follow
 *   launch NAME COUNT GRID  launches the kernel with this mangled name COUNT times, GRID blocks
 * each fork                    goes on in a child; the parent waits for it and ends as it did
 *   exec                    goes on in a new image of this program, in the same process
 *   detach                  goes on in a child; the parent ends with 0 at the child's "release"
 *   release                 lets the parent of a "detach" end
 *   thread                  goes on in another thread; the first one ends
 *   say TEXT                prints TEXT on standard output
 *   wait                    waits for a byte on standard input, or its end
 *   abort                   ends by SIGABRT, without any code of its own
 *   exit STATUS             ends with STATUS
 */

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static CUstream stream;
static CUmodule module;
static CUcontext context;

static void *driver_function(const char *name)
{
    static void *driver;
    void *function;

    if (driver == NULL) {
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    function = driver != NULL ? dlsym(driver, name) : NULL;
    if (function == NULL) {
        fprintf(stderr, "program: %s\n", dlerror());
        exit(99);
    }
    return function;
}

static void check(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "program: %s: error %d\n", call, (int)result);
        exit(98);
    }
}

#define CALL(symbol, type, ...)                                                                    \
    check(((CUresult(*) type)driver_function(symbol))(__VA_ARGS__), symbol)

static void start(void)
{
    static bool started;

    if (started) {
        return;
    }
    started = true;
    CALL("cuInit", (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice), &context, 0);
    CALL("cuCtxSetCurrent", (CUcontext), context);
    CALL("cuModuleLoadData", (CUmodule *, const void *), &module, "any kernel");
}

static void launch(const char *name, long count, unsigned grid)
{
    CUfunction function;

    start();
    CALL("cuModuleGetFunction", (CUfunction *, CUmodule, const char *), &function, module, name);
    for (long i = 0; i < count; i++) {
        CALL("cuLaunchKernel",
             (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
              CUstream, void **, void **),
             function, grid, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
    }
}

static void make_stream(int priority)
{
    start();
    CALL("cuStreamCreateWithPriority", (CUstream *, unsigned, int), &stream, CU_STREAM_NON_BLOCKING,
         priority);
}

static int released[2];

/* Until every holder of the other end is gone, or the child wrote. */
static void wait_for_release(void)
{
    char byte;

    close(released[1]);
    if (read(released[0], &byte, 1) < 0) {
        exit(94);
    }
}

static void release(void)
{
    if (write(released[1], "", 1) != 1) {
        exit(94);
    }
}

static void go_on_in_child(bool wait_for_it)
{
    pid_t child;
    int status;

    if (pipe(released) != 0 || (child = fork()) < 0) {
        exit(97);
    }
    if (child == 0) {
        return;
    }
    if (!wait_for_it) {
        wait_for_release();
        exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        exit(128 + WTERMSIG(status));
    }
    exit(WEXITSTATUS(status));
}

static int steps(int argc, char **argv);

static struct {
    int argc;
    char **argv;
} rest;

static void *go_on(void *unused)
{
    (void)unused;
    if (context != NULL) {
        CALL("cuCtxSetCurrent", (CUcontext), context);
    }
    exit(steps(rest.argc, rest.argv));
}

static void go_on_in_thread(int argc, char **argv)
{
    pthread_t thread;

    rest.argc = argc;
    rest.argv = argv;
    if (pthread_create(&thread, NULL, go_on, NULL) != 0) {
        exit(92);
    }
    pthread_exit(NULL);
}

int main(int argc, char **argv)
{
    return steps(argc, argv);
}

/* argv[0] is passed over. */
static int steps(int argc, char **argv)
{
    char byte;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "stream") == 0 && i + 1 < argc) {
            make_stream(atoi(argv[++i]));
        } else if (strcmp(argv[i], "launch") == 0 && i + 3 < argc) {
            launch(argv[i + 1], atol(argv[i + 2]), (unsigned)atoi(argv[i + 3]));
            i += 3;
        } else if (strcmp(argv[i], "fork") == 0) {
            go_on_in_child(true);
        } else if (strcmp(argv[i], "exec") == 0) {
            argv[i] = argv[0];
            execv("/proc/self/exe", argv + i);
            return 93;
        } else if (strcmp(argv[i], "thread") == 0) {
            go_on_in_thread(argc - i, argv + i);
        } else if (strcmp(argv[i], "detach") == 0) {
            go_on_in_child(false);
        } else if (strcmp(argv[i], "release") == 0) {
            release();
        } else if (strcmp(argv[i], "say") == 0 && i + 1 < argc) {
            puts(argv[++i]);
            fflush(stdout);
        } else if (strcmp(argv[i], "wait") == 0) {
            if (read(STDIN_FILENO, &byte, 1) < 0) {
                return 96;
            }
        } else if (strcmp(argv[i], "abort") == 0) {
            abort();
        } else if (strcmp(argv[i], "exit") == 0 && i + 1 < argc) {
            return atoi(argv[++i]);
        } else {
            fprintf(stderr, "program: what is '%s'?\n", argv[i]);
            return 95;
        }
    }
    return 0;
}
