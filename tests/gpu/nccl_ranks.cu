/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks, one GPU each, that compute beside NCCL's collectives: a program for comparisons, which
 * starts in about two seconds. NCCL and cuBLAS are taken from libraries found at run time, by the
 * names in NCCL_LIBRARY and CUBLAS_LIBRARY or the usual ones.
 *
 *   nccl_ranks short ITERATIONS   a CUDA graph of 400 short kernels beside 8 all-reduces of 128 MiB
 *   nccl_ranks gemm ITERATIONS    20 products of 4096 x 4096 bf16 matrices beside the same
 *   nccl_ranks two ITERATIONS     two communicators, each in a CUDA graph: 100 all-reduces of 32
 * KiB beside 8 of 128 MiB
 *
 * Each rank prints a line an iteration: "rank R iteration I compute MS communication MS". With
 * `two` the small all-reduces are what is called compute. Sums are checked in the end: a last line
 * a rank says "rank R sums right". Each iteration begins when both ranks have come to it. Ends with
 * status 1 when anything fails, and neither rank outlives the other.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            std::fprintf(stderr, "error %s:%d %s\n", __FILE__, __LINE__,                           \
                         cudaGetErrorString(error_));                                              \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "error %s:%d not so: %s\n", __FILE__, __LINE__, #condition);      \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

enum {
    SHORT_KERNELS = 400,
    PRODUCTS = 20,
    SIZE = 4096, /* of a matrix */
    LARGE_REDUCTIONS = 8,
    SMALL_REDUCTIONS = 100,
    WARM_UP = 3,
};
static const size_t large_elements = (128u << 20) / sizeof(float);
static const size_t small_elements = (32u << 10) / sizeof(float);

/* ---- NCCL and cuBLAS, as far as they are needed here (nccl.h, cublas_api.h) -------------------
 */

struct nccl_unique_id {
    char bytes[128];
};
typedef struct nccl_communicator *nccl_communicator_t;
enum { NCCL_FLOAT = 7, NCCL_SUM = 0 };
static int (*nccl_get_unique_id)(nccl_unique_id *);
static int (*nccl_init_rank)(nccl_communicator_t *, int, nccl_unique_id, int);
static int (*nccl_all_reduce)(const void *, void *, size_t, int, int, nccl_communicator_t,
                              cudaStream_t);

typedef struct cublas_context *cublas_handle_t;
enum { CUBLAS_COMPUTE_FLOAT = 68, CUBLAS_DEFAULT_ALGORITHM = -1 };
static int (*cublas_create)(cublas_handle_t *);
static int (*cublas_set_stream)(cublas_handle_t, cudaStream_t);
static int (*cublas_gemm)(cublas_handle_t, int, int, int, int, int, const void *, const void *,
                          cudaDataType, int, const void *, cudaDataType, int, const void *, void *,
                          cudaDataType, int, int, int);

static void *open_library(const char *variable, const std::vector<const char *> &names)
{
    const char *given = std::getenv(variable);
    if (given != nullptr && given[0] != '\0') {
        if (void *library = dlopen(given, RTLD_NOW))
            return library;
        std::fprintf(stderr, "error: %s\n", dlerror());
        _exit(1);
    }
    for (const char *name : names)
        if (void *library = dlopen(name, RTLD_NOW))
            return library;
    std::fprintf(stderr, "error: no %s; set %s\n", names[0], variable);
    _exit(1);
}

template <typename Function> static void find(void *library, const char *name, Function *function)
{
    *function = (Function)dlsym(library, name);
    REQUIRE(*function != nullptr);
}

static void open_nccl()
{
    void *library = open_library("NCCL_LIBRARY", {"libnccl.so.2"});
    find(library, "ncclGetUniqueId", &nccl_get_unique_id);
    find(library, "ncclCommInitRank", &nccl_init_rank);
    find(library, "ncclAllReduce", &nccl_all_reduce);
}

static void open_cublas()
{
    void *library =
        open_library("CUBLAS_LIBRARY", {"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
    find(library, "cublasCreate_v2", &cublas_create);
    find(library, "cublasSetStream_v2", &cublas_set_stream);
    find(library, "cublasGemmEx", &cublas_gemm);
}

/* ---- The two ranks ----------------------------------------------------------------------------
 */

/* Bytes between the ranks: rank 0 writes to_one and reads to_zero. */
struct pipe_ends {
    int write_end, read_end;
};

static void send_bytes(const pipe_ends &other, const void *bytes, size_t size)
{
    REQUIRE(write(other.write_end, bytes, size) == (ssize_t)size);
}

static void receive_bytes(const pipe_ends &other, void *bytes, size_t size)
{
    REQUIRE(read(other.read_end, bytes, size) == (ssize_t)size);
}

static void meet(const pipe_ends &other)
{
    char byte = 1;
    send_bytes(other, &byte, 1);
    receive_bytes(other, &byte, 1);
}

static nccl_communicator_t communicator(int rank, const pipe_ends &other)
{
    nccl_unique_id id;
    nccl_communicator_t made;
    if (rank == 0) {
        REQUIRE(nccl_get_unique_id(&id) == 0);
        send_bytes(other, &id, sizeof id);
    } else {
        receive_bytes(other, &id, sizeof id);
    }
    REQUIRE(nccl_init_rank(&made, 2, id, rank) == 0);
    return made;
}

/* ---- What they do -----------------------------------------------------------------------------
 */

__global__ void short_kernel(float *data)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f;
}

__global__ void fill(float *data, size_t count, float value)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        data[i] = value;
}

__global__ void count_others(const float *data, size_t count, float value,
                             unsigned long long *others)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        if (data[i] != value)
            atomicAdd(others, 1ull);
}

struct work {
    int rank;
    pipe_ends other;
    cudaStream_t compute, communication;
    nccl_communicator_t large, small;
    std::vector<float *> buffers;
    float *small_buffer, *data;
    __nv_bfloat16 *a, *b, *c;
    cublas_handle_t cublas;
    cudaGraphExec_t compute_graph, communication_graph; /* null: launched one by one */
};

static void reduce_large(work &it)
{
    for (float *buffer : it.buffers)
        REQUIRE(nccl_all_reduce(buffer, buffer, large_elements, NCCL_FLOAT, NCCL_SUM, it.large,
                                it.communication) == 0);
}

static void reduce_small(work &it)
{
    for (int i = 0; i < SMALL_REDUCTIONS; i++)
        REQUIRE(nccl_all_reduce(it.small_buffer, it.small_buffer, small_elements, NCCL_FLOAT,
                                NCCL_SUM, it.small, it.compute) == 0);
}

static void run_short(work &it)
{
    for (int i = 0; i < SHORT_KERNELS; i++)
        short_kernel<<<256, 256, 0, it.compute>>>(it.data);
}

static void run_products(work &it)
{
    const float one = 1, zero = 0;
    for (int i = 0; i < PRODUCTS; i++)
        REQUIRE(cublas_gemm(it.cublas, 0, 0, SIZE, SIZE, SIZE, &one, it.a, CUDA_R_16BF, SIZE, it.b,
                            CUDA_R_16BF, SIZE, &zero, it.c, CUDA_R_16BF, SIZE, CUBLAS_COMPUTE_FLOAT,
                            CUBLAS_DEFAULT_ALGORITHM) == 0);
}

typedef void (*part)(work &);

static cudaGraphExec_t captured(work &it, cudaStream_t stream, part body)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    body(it);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    return executable;
}

static void set_up(work &it, const std::string &what)
{
    CHECK(cudaSetDevice(it.rank));
    CHECK(cudaStreamCreateWithFlags(&it.compute, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&it.communication, cudaStreamNonBlocking));
    it.large = communicator(it.rank, it.other);
    for (int i = 0; i < LARGE_REDUCTIONS; i++) {
        it.buffers.push_back(nullptr);
        CHECK(cudaMalloc(&it.buffers.back(), large_elements * sizeof(float)));
    }
    CHECK(cudaMalloc(&it.data, 256 * 256 * sizeof(float)));
    CHECK(cudaMemset(it.data, 0, 256 * 256 * sizeof(float)));
    it.compute_graph = it.communication_graph = nullptr;
    if (what == "gemm") {
        const size_t bytes = (size_t)SIZE * SIZE * sizeof(__nv_bfloat16);
        open_cublas();
        CHECK(cudaMalloc(&it.a, bytes));
        CHECK(cudaMalloc(&it.b, bytes));
        CHECK(cudaMalloc(&it.c, bytes));
        CHECK(cudaMemset(it.a, 0, bytes));
        CHECK(cudaMemset(it.b, 0, bytes));
        REQUIRE(cublas_create(&it.cublas) == 0 && cublas_set_stream(it.cublas, it.compute) == 0);
    } else if (what == "two") {
        it.small = communicator(it.rank, it.other);
        CHECK(cudaMalloc(&it.small_buffer, small_elements * sizeof(float)));
        fill<<<8, 256, 0, it.compute>>>(it.small_buffer, small_elements, 0);
    }
    /* Both have connected, and everything is loaded, before anything is captured or timed. */
    reduce_large(it);
    if (what == "two")
        reduce_small(it);
    short_kernel<<<256, 256, 0, it.compute>>>(it.data);
    CHECK(cudaDeviceSynchronize());
    meet(it.other);
    if (what == "short")
        it.compute_graph = captured(it, it.compute, run_short);
    if (what == "two") {
        it.compute_graph = captured(it, it.compute, reduce_small);
        it.communication_graph = captured(it, it.communication, reduce_large);
    }
}

static void iterate(work &it, int iteration)
{
    float compute, communication;
    cudaEvent_t begin, end, reduced;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventCreate(&reduced));
    for (float *buffer : it.buffers)
        fill<<<512, 256, 0, it.communication>>>(buffer, large_elements, (float)(it.rank + 1));
    CHECK(cudaDeviceSynchronize());
    meet(it.other);
    if (it.communication_graph)
        CHECK(cudaGraphLaunch(it.communication_graph, it.communication));
    else
        reduce_large(it);
    CHECK(cudaEventRecord(reduced, it.communication));
    CHECK(cudaEventRecord(begin, it.compute));
    if (it.compute_graph)
        CHECK(cudaGraphLaunch(it.compute_graph, it.compute));
    else
        run_products(it);
    CHECK(cudaEventRecord(end, it.compute));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventElapsedTime(&compute, begin, end));
    CHECK(cudaEventElapsedTime(&communication, begin, reduced));
    if (iteration >= 0)
        std::printf("rank %d iteration %d compute %.4f communication %.4f\n", it.rank, iteration,
                    compute, communication);
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaEventDestroy(reduced));
}

static void check_sums(work &it)
{
    unsigned long long *others, count;
    CHECK(cudaMalloc(&others, sizeof *others));
    CHECK(cudaMemset(others, 0, sizeof *others));
    for (float *buffer : it.buffers)
        count_others<<<512, 256>>>(buffer, large_elements, 3, others);
    CHECK(cudaMemcpy(&count, others, sizeof count, cudaMemcpyDeviceToHost));
    REQUIRE(count == 0);
    std::printf("rank %d sums right\n", it.rank);
}

static void run_rank(int rank, pipe_ends other, const std::string &what, int iterations)
{
    work it = {};
    it.rank = rank;
    it.other = other;
    open_nccl();
    set_up(it, what);
    for (int i = -WARM_UP; i < iterations; i++)
        iterate(it, i);
    check_sums(it);
    std::fflush(stdout);
    meet(other); /* the other rank may still read this one's memory */
}

int main(int argc, char **argv)
{
    const std::string what = argc > 1 ? argv[1] : "";
    const int iterations = argc > 2 ? std::atoi(argv[2]) : 20;
    int to_one[2], to_zero[2], status, failed = 0;
    pid_t ranks[2];

    if (what != "short" && what != "gemm" && what != "two") {
        std::fprintf(stderr, "usage: nccl_ranks short|gemm|two [ITERATIONS]\n");
        return 64;
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    REQUIRE(pipe(to_one) == 0 && pipe(to_zero) == 0);
    for (int rank = 0; rank < 2; rank++) {
        ranks[rank] = fork();
        REQUIRE(ranks[rank] >= 0);
        if (ranks[rank] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("RANK", rank == 0 ? "0" : "1", 1);
            setenv("LOCAL_RANK", rank == 0 ? "0" : "1", 1);
            setenv("WORLD_SIZE", "2", 1);
            run_rank(rank,
                     rank == 0 ? pipe_ends{to_one[1], to_zero[0]}
                               : pipe_ends{to_zero[1], to_one[0]},
                     what, iterations);
            std::exit(0); /* reports are written at a process's end in good order */
        }
    }
    for (int ended = 0; ended < 2; ended++) {
        pid_t pid = wait(&status);
        if (status != 0) {
            failed = 1;
            kill(ranks[pid == ranks[0]], SIGKILL);
        }
    }
    return failed;
}
