/* SPDX-License-Identifier: Apache-2.0 */

/* Which variables a policy may set, and which ones are well known. */

#include "policy/environment.h"

#include <string.h>

#include "policy/suggest.h"

/* ---- what a policy must not set ------------------------------------------------------------- */

static const char loader[] = "it says what code the loader puts into a program";
static const char code[] = "it puts other code into a program, or into those that it starts";
static const char search[] = "it says where programs and files are looked for";
static const char own[] = "it is cudapolicy's own; give it in the environment";
static const char place[] = "it says which process of the job this one is, and one policy is for "
                            "all of them";
static const char devices[] = "which devices a process has is for its launcher to say; [env] may "
                              "give a value where there is none";

/* A name that ends in * stands for all that begin like it. */
static const struct {
    const char *name, *reason;
} refused[] = {
    {"LD_*", loader},
    {"GLIBC_TUNABLES", loader},
    {"GCONV_PATH", loader},
    {"LOCPATH", search},
    {"NLSPATH", search},
    {"MALLOC_TRACE", code},
    {"CUDAPOLICY_*", own},
    {"CUDA_INJECTION32_PATH", code},
    {"CUDA_INJECTION64_PATH", code},
    {"NVTX_INJECTION32_PATH", code},
    {"NVTX_INJECTION64_PATH", code},
    {"BASH_ENV", code},
    {"BASH_FUNC_*", code},
    {"BASHOPTS", code},
    {"ENV", code},
    {"IFS", code},
    {"PS4", code},
    {"SHELLOPTS", code},
    {"JAVA_TOOL_OPTIONS", code},
    {"_JAVA_OPTIONS", code},
    {"NODE_OPTIONS", code},
    {"PERL5DB", code},
    {"PERL5OPT", code},
    {"PYTHONHOME", code},
    {"PYTHONINSPECT", code},
    {"PYTHONSTARTUP", code},
    {"RUBYOPT", code},
    {"CDPATH", search},
    {"CLASSPATH", search},
    {"HOME", search},
    {"NODE_PATH", search},
    {"PATH", search},
    {"PERL5LIB", search},
    {"PERLLIB", search},
    {"PWD", search},
    {"PYTHONPATH", search},
    {"RUBYLIB", search},
    {"SHELL", search},
    {"TMPDIR", search},
    {"LOCAL_RANK", place},
    {"LOCAL_WORLD_SIZE", place},
    {"RANK", place},
    {"WORLD_SIZE", place},
    {"OMPI_COMM_WORLD_*", place},
    {"PMIX_*", place},
    {"PMI_*", place},
    {"SLURM_*", place},
};

static bool stands_for(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);

    if (pattern[length - 1] == '*') {
        return strncmp(name, pattern, length - 1) == 0;
    }
    return strcmp(name, pattern) == 0;
}

const char *policy_variable_fault(const char *name, bool replace)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (stands_for(refused[i].name, name)) {
            return refused[i].reason;
        }
    }
    if (replace && (strcmp(name, "CUDA_VISIBLE_DEVICES") == 0 ||
                    strcmp(name, "NVIDIA_VISIBLE_DEVICES") == 0)) {
        return devices;
    }
    return NULL;
}

/* ---- well-known names ----------------------------------------------------------------------- */

/* As the CUDA programming guide and the NCCL user guide document them. */
static const char *const known[] = {
    "CUDA_AUTO_BOOST",
    "CUDA_BINARY_LOADER_THREAD_COUNT",
    "CUDA_CACHE_DISABLE",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_CACHE_PATH",
    "CUDA_COREDUMP_FILE",
    "CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_MAX_COPY_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION",
    "CUDA_DISABLE_JIT",
    "CUDA_DISABLE_PERF_BOOST",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "CUDA_ENABLE_CRC_CHECK",
    "CUDA_FORCE_JIT",
    "CUDA_FORCE_PRELOAD_LIBRARIES",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_GRAPHS_USE_NODE_PRIORITY",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_LOG_FILE",
    "CUDA_MANAGED_FORCE_DEVICE_ALLOC",
    "CUDA_MODULE_DATA_LOADING",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_CLIENT_PRIORITY",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUBLASLT_WORKSPACE_SIZE",
    "NCCL_ALGO",
    "NCCL_ALLOC_P2P_NET_LL_BUFFERS",
    "NCCL_BUFFSIZE",
    "NCCL_CGA_CLUSTER_SIZE",
    "NCCL_CHECKS_DISABLE",
    "NCCL_CHECK_POINTERS",
    "NCCL_COLLNET_ENABLE",
    "NCCL_COLLNET_NODE_THRESHOLD",
    "NCCL_COMM_BLOCKING",
    "NCCL_COMM_ID",
    "NCCL_COMM_SPLIT_SHARE_RESOURCES",
    "NCCL_CONF_FILE",
    "NCCL_CROSS_NIC",
    "NCCL_CTA_POLICY",
    "NCCL_CUMEM_ENABLE",
    "NCCL_CUMEM_HOST_ENABLE",
    "NCCL_DEBUG",
    "NCCL_DEBUG_FILE",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_DMABUF_ENABLE",
    "NCCL_GRAPH_DUMP_FILE",
    "NCCL_GRAPH_DUMP_FILE_RANK",
    "NCCL_GRAPH_FILE",
    "NCCL_GRAPH_MIXING_SUPPORT",
    "NCCL_GRAPH_REGISTER",
    "NCCL_HOSTID",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_ADDR_RANGE",
    "NCCL_IB_AR_THRESHOLD",
    "NCCL_IB_CUDA_SUPPORT",
    "NCCL_IB_DISABLE",
    "NCCL_IB_ECE_ENABLE",
    "NCCL_IB_FIFO_TC",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_MERGE_NICS",
    "NCCL_IB_MERGE_VFS",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_RETURN_ASYNC_EVENTS",
    "NCCL_IB_ROCE_VERSION_NUM",
    "NCCL_IB_SL",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_TC",
    "NCCL_IB_TIMEOUT",
    "NCCL_IB_USE_INLINE",
    "NCCL_IGNORE_CPU_AFFINITY",
    "NCCL_IGNORE_DISABLED_P2P",
    "NCCL_LAUNCH_MODE",
    "NCCL_LAUNCH_ORDER_IMPLICIT",
    "NCCL_LOCAL_REGISTER",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MAX_NRINGS",
    "NCCL_MAX_P2P_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MIN_NRINGS",
    "NCCL_MIN_P2P_NCHANNELS",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NCHANNELS_PER_NET_PEER",
    "NCCL_NET",
    "NCCL_NET_DISABLE_INTRA",
    "NCCL_NET_FORCE_FLUSH",
    "NCCL_NET_GDR_C2C",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
    "NCCL_NET_MERGE_LEVEL",
    "NCCL_NET_OVERHEAD",
    "NCCL_NET_PLUGIN",
    "NCCL_NET_SHARED_BUFFERS",
    "NCCL_NET_SHARED_COMMS",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_NTHREADS",
    "NCCL_NVLSTREE_MAX_CHUNKSIZE",
    "NCCL_NVLS_CHUNKSIZE",
    "NCCL_NVLS_ENABLE",
    "NCCL_NVLS_NCHANNELS",
    "NCCL_OOB_NET_ENABLE",
    "NCCL_OOB_NET_IFNAME",
    "NCCL_P2P_DIRECT_DISABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_P2P_NVL_CHUNKSIZE",
    "NCCL_P2P_PCI_CHUNKSIZE",
    "NCCL_P2P_USE_CUDA_MEMCPY",
    "NCCL_PROFILER_PLUGIN",
    "NCCL_PROTO",
    "NCCL_PXN_DISABLE",
    "NCCL_P2P_PXN_LEVEL",
    "NCCL_RAS_ADDR",
    "NCCL_RAS_ENABLE",
    "NCCL_RAS_TIMEOUT_FACTOR",
    "NCCL_RINGS",
    "NCCL_RUNTIME_CONNECT",
    "NCCL_SET_STACK_SIZE",
    "NCCL_SET_THREAD_NAME",
    "NCCL_SHM_DISABLE",
    "NCCL_SHM_USE_CUDA_MEMCPY",
    "NCCL_SINGLE_PROC_MEM_REG_ENABLE",
    "NCCL_SINGLE_RING_THRESHOLD",
    "NCCL_SOCKET_FAMILY",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "NCCL_SOCKET_POLL_TIMEOUT_MSEC",
    "NCCL_SOCKET_RETRY_CNT",
    "NCCL_SOCKET_RETRY_SLEEP_MSEC",
    "NCCL_SYM_CTAS",
    "NCCL_SYM_KERNEL",
    "NCCL_THREAD_THRESHOLDS",
    "NCCL_TOPO_DUMP_FILE",
    "NCCL_TOPO_FILE",
    "NCCL_TREE_THRESHOLD",
    "NCCL_TUNER_PLUGIN",
    "NCCL_UID_STAGGER_RATE",
    "NCCL_UID_STAGGER_THRESHOLD",
    "NCCL_WIN_ENABLE",
    "NCCL_WIN_STRIDE",
    "NCCL_WORK_ARGS_BYTES",
    "NCCL_WORK_FIFO_BYTES",
};

static char upper(char character)
{
    return character >= 'a' && character <= 'z' ? (char)(character - 'a' + 'A') : character;
}

static bool same_but_for_case(const char *left, const char *right)
{
    while (*left != '\0' && upper(*left) == *right) {
        left++;
        right++;
    }
    return *left == '\0' && *right == '\0';
}

/* Two edits in a long name are a slip. In a short one they make another name, which may well exist:
 * the list is not complete. */
static size_t edits_of_a_slip(const char *name)
{
    enum { LONG_NAME = 14 };

    return strlen(name) >= LONG_NAME ? 2 : 1;
}

const char *policy_variable_meant(const char *name)
{
    const size_t length = strlen(name), limit = edits_of_a_slip(name);
    const char *nearest = NULL;
    size_t least = limit + 1;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t other = strlen(known[i]);
        size_t edits;

        if (strcmp(name, known[i]) == 0) {
            return NULL;
        }
        if (other + limit < length || length + limit < other) {
            continue;
        }
        edits = same_but_for_case(name, known[i]) ? 0 : suggest_distance(name, known[i]);
        if (edits < least) {
            least = edits;
            nearest = known[i];
        }
    }
    return nearest;
}
