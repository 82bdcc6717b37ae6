/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nvcc's host code registers before main: fat binaries, kernels and variables by name. As seen
 * of the real runtime, a library is loaded and a kernel asked for by name at its first use.
 */
#include "runtime.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct binary {
    const void *content;
    CUlibrary library;
    bool gone;
};

struct symbol {
    struct symbol *next;
    struct binary *binary;
    const void *host;
    const char *name;
    bool variable;
    size_t size;
    CUkernel kernel;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *symbols[BUCKETS];

static size_t bucket(const void *host)
{
    return ((uintptr_t)host >> 4) % BUCKETS;
}

static void add(void **handle, const void *host, const char *name, bool variable, size_t size)
{
    struct symbol *symbol = calloc(1, sizeof(*symbol));
    if (symbol == NULL)
        abort();
    symbol->binary = (struct binary *)(void *)handle;
    symbol->host = host;
    symbol->name = name;
    symbol->variable = variable;
    symbol->size = size;
    pthread_mutex_lock(&lock);
    symbol->next = symbols[bucket(host)];
    symbols[bucket(host)] = symbol;
    pthread_mutex_unlock(&lock);
}

void **__cudaRegisterFatBinary(void *content)
{
    struct binary *binary = calloc(1, sizeof(*binary));
    if (binary == NULL)
        abort();
    binary->content = content;
    return (void **)(void *)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

/* Runs at exit, and when a library with kernels is closed. The binary stays marked, since symbols
 * may be asked for by threads that still run. */
void __cudaUnregisterFatBinary(void **handle)
{
    struct binary *binary = (struct binary *)(void *)handle;
    pthread_mutex_lock(&lock);
    CUlibrary library = binary->library;
    binary->library = NULL;
    binary->gone = true;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct symbol **at = &symbols[i]; *at != NULL;) {
            struct symbol *symbol = *at;
            if (symbol->binary == binary) {
                *at = symbol->next;
                free(symbol);
            } else {
                at = &symbol->next;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    if (library != NULL && driver.cuLibraryUnload != NULL)
        driver.cuLibraryUnload(library);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_dim,
                            dim3 *grid_dim, int *warp_size)
{
    (void)device;
    (void)thread_limit;
    (void)thread;
    (void)block;
    (void)block_dim;
    (void)grid_dim;
    (void)warp_size;
    add(handle, host, name, false, 0);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    (void)device;
    (void)external;
    (void)constant;
    (void)global;
    add(handle, host, name, true, size);
}

/* Managed variables are read on the host without a call: they get ordinary memory at once. */
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global)
{
    (void)handle;
    (void)device;
    (void)name;
    (void)external;
    (void)constant;
    (void)global;
    *host = calloc(1, size);
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 0;
}

static struct symbol *find(const void *host, bool variable)
{
    struct symbol *at = symbols[bucket(host)];
    while (at != NULL && (at->host != host || at->variable != variable))
        at = at->next;
    return at;
}

static cudaError_t load(struct binary *binary)
{
    if (binary->library != NULL)
        return cudaSuccess;
    return CALL(cuLibraryLoadData, &binary->library, binary->content, NULL, NULL, 0, NULL, NULL, 0);
}

/* Documented: a cudaKernel_t cast to a pointer is taken in place of a host function. */
static cudaError_t handle_kernel(const void *host, CUkernel *kernel)
{
    const char *name;
    CUkernel handle = (CUkernel)(uintptr_t)host;
    if (host == NULL || driver.cuKernelGetName == NULL ||
        driver.cuKernelGetName(&name, handle) != CUDA_SUCCESS)
        return cudaErrorInvalidDeviceFunction;
    *kernel = handle;
    return cudaSuccess;
}

cudaError_t registry_kernel(const void *host, CUkernel *kernel)
{
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&lock);
    struct symbol *symbol = find(host, false);
    if (symbol != NULL && symbol->kernel == NULL) {
        error = load(symbol->binary);
        if (error == cudaSuccess)
            error =
                CALL(cuLibraryGetKernel, &symbol->kernel, symbol->binary->library, symbol->name);
    }
    if (symbol != NULL && error == cudaSuccess)
        *kernel = symbol->kernel;
    pthread_mutex_unlock(&lock);
    return symbol == NULL ? handle_kernel(host, kernel) : error;
}

cudaError_t registry_variable(const void *host, CUdeviceptr *pointer, size_t *size)
{
    cudaError_t error = cudaErrorInvalidSymbol;
    pthread_mutex_lock(&lock);
    struct symbol *symbol = find(host, true);
    if (symbol != NULL) {
        size_t bytes;
        error = load(symbol->binary);
        if (error == cudaSuccess)
            error =
                CALL(cuLibraryGetGlobal, pointer, &bytes, symbol->binary->library, symbol->name);
        *size = symbol->size;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

const void *registry_host(CUkernel kernel, const char *name)
{
    const void *host = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BUCKETS && host == NULL; i++)
        for (struct symbol *at = symbols[i]; at != NULL; at = at->next)
            if (!at->variable &&
                (kernel != NULL ? at->kernel == kernel : strcmp(at->name, name) == 0)) {
                host = at->host;
                break;
            }
    pthread_mutex_unlock(&lock);
    return host;
}
