/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the recording driver. One lock guards everything; call_begin takes it and call_end gives
 * it back, so the functions declared here run with the lock held unless said otherwise.
 */
#ifndef RECORDING_DRIVER_INTERNAL_H
#define RECORDING_DRIVER_INTERNAL_H

/* Makes cuda.h declare every exported variant under its own name, so that the compiler checks each
 * definition here against NVIDIA's prototype. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
/* Everything that cuda.h declares is exported; the rest of the library is built hidden. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "../recording_driver.h"
#include "multiprocessor.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES_MAX 16
#define FUNCTION_ATTRIBUTES 16
#define ATTRIBUTE_IDS 32 /* ids that an attribute_set can hold; the known ones end at 18 */

/* Attributes younger than the oldest headers this is built with. */
#define ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION 11
#define ATTRIBUTE_SHARED_MEMORY_CARVEOUT 14
#define ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING 16
#define ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE 17
#define ATTRIBUTE_SHARED_MEMORY_MODE 18

/* --- configuration.c --------------------------------------------------------------------- */

struct configuration {
    int version; /* as cuDriverGetVersion answers */
    int devices;
    int multiprocessors; /* per device */
    int usable;          /* of them by this process, as under MPS; 0: all */
    struct sizes
        gpcs; /* SMs of each graphics processing cluster; none: as multiprocessor.c has it */
    struct sizes locality;      /* SMs of each locality domain; none: the device is one */
    int domain_multiprocessors; /* device attribute 157; 0: the smallest domain's */
    int coscheduled; /* SMs of a group of cuDevSmResourceSplit when 0 is asked for; 0: see there */
    int capability_major, capability_minor;
    int domains;     /* memory-synchronization domains */
    int cluster_max; /* largest cluster with the non-portable permission */
    int priority_least, priority_greatest;
    int partition_minimum, partition_alignment; /* SMs of the smallest green context; its step */
    int unknown_name_result;                    /* of cuGetProcAddress */
    bool distinct_pointers;
    bool call_out;
    bool keep;         /* calls are kept in memory */
    bool in_turn;      /* threads that wait to call are served in the order in which they came */
    bool fork_refused; /* a forked child is "not initialized", as with the real driver */
    char log[4096];    /* path, or empty */
    char hide[2048];   /* names that cuGetProcAddress does not find */
    char skip[2048];   /* names that are not recorded */
};

extern struct configuration configuration;

/* True when calls must be recorded or may have to fail: the launch path looks at nothing else. */
extern atomic_bool driver_watched;

void configuration_load(void);
int configuration_set(const char *key, const char *value);
/* Whether `name` stands in a comma-separated list. */
bool configuration_lists(const char *list, const char *name);
void configuration_refresh(void);

/* Shows and hides exported names as the configuration has it (entry.c, hide.c). */
void entry_hide(void);
void hide_apply(size_t count, void *(*function)(size_t index), bool (*wanted)(size_t index));

/* --- failure.c --------------------------------------------------------------------------- */

int failure_configure(const char *rules);
bool failure_wanted(void);
void failure_restart(void);
/* Result that the next call of this name has to return; CUDA_SUCCESS to go on. */
CUresult failure_next(const char *name, bool resolved);

/* --- object.c ---------------------------------------------------------------------------- */

enum object_kind {
    OBJECT_CONTEXT,
    OBJECT_MODULE,
    OBJECT_LIBRARY,
    OBJECT_KERNEL,
    OBJECT_FUNCTION,
    OBJECT_STREAM,
    OBJECT_DEFAULT_STREAM,
    OBJECT_EVENT,
    OBJECT_GRAPH,
    OBJECT_NODE,
    OBJECT_EXECUTABLE,
    OBJECT_GREEN_CONTEXT,
    OBJECT_DESCRIPTION,
    OBJECT_KINDS,
};

/* First member of every handle's structure. */
struct object {
    bool live;
    unsigned int ordinal;     /* counts up from 1 per kind and is never used again */
    struct object *free_next; /* while dead */
};

/*
 * A new zeroed object, or NULL when the arena of its kind is full. Addresses are reused at once and
 * last-in first-out: real stream and function handles were seen to come back in the next creation.
 */
void *object_new(enum object_kind kind);
void object_free(enum object_kind kind, void *object);
/* Whether a handle is a live object of that kind; any pointer value may be asked. Needs no lock. */
bool object_is(enum object_kind kind, const void *handle);
/* The same for an object that may have been destroyed since. */
bool object_was(enum object_kind kind, const void *handle);
/* Walks the live objects of a kind: pass NULL first; returns NULL at the end. */
void *object_next(enum object_kind kind, const void *previous);
size_t object_live(enum object_kind kind);
const char *object_kind_name(enum object_kind kind);
void object_reset(void);
/* Frees everything, as if the driver had just been loaded (reset.c). */
void driver_reset(void);

/* --- attribute sets (attribute.c) ---------------------------------------------------------- */

struct attribute_set {
    uint32_t present; /* bit per id */
    CUlaunchAttributeValue value[ATTRIBUTE_IDS];
};

bool attribute_known(unsigned int id);
bool attribute_on_stream(unsigned int id);
bool attribute_on_node(unsigned int id);
bool attribute_told_by_node(unsigned int id);
void attribute_put(struct attribute_set *set, unsigned int id, const CUlaunchAttributeValue *value);
void attribute_remove(struct attribute_set *set, unsigned int id);
bool attribute_has(const struct attribute_set *set, unsigned int id);
/* Adds what is in `from`, which wins. */
void attribute_merge(struct attribute_set *set, const struct attribute_set *from);
/* The value to report for an attribute that nobody set. */
void attribute_default(unsigned int id, CUlaunchAttributeValue *value);
/* CUDA_ERROR_INVALID_VALUE for values no launch, node or stream accepts; clamps a priority. */
CUresult attribute_check(unsigned int id, CUlaunchAttributeValue *value);
void attribute_list(const struct attribute_set *set, struct recording_attributes *list);

/* --- devices and contexts ------------------------------------------------------------------ */

struct CUctx_st {
    struct object object;
    int device;
    bool primary;
    unsigned int flags;
    /* Primary contexts: retain count, those of green contexts included; launches read it unlocked.
     */
    _Atomic int retained;
    bool stuck;                      /* active without being retained (context.c) */
    CUgreenCtx green;                /* the context of a green context */
    CUstream legacy;                 /* its NULL stream */
    unsigned int capturing_blocking; /* blocking streams of it that capture now */
    unsigned int capturing;          /* any stream of it that captures now */
};

/* The calling thread's current context or NULL. Needs no lock. */
CUcontext context_current(void);
bool context_is(CUcontext context);
/* Not destroyed, and of a primary one: active. Needs no lock. */
bool context_alive(CUcontext context);
/* The current context if work can be done in it, else why not. */
CUresult context_usable(CUcontext *context);
/* Gives up one hold on a primary context. */
void context_unretain(CUcontext context);
/* Context whose functions may run in `context`: for a green one the device's primary. */
CUcontext context_root(CUcontext context);
void context_destroy(CUcontext context);
CUcontext context_primary(int device);
CUcontext context_new(int device);
void context_reset(void);
void memory_reset(void);
/* True after cuInit, in this process. Needs no lock. */
bool driver_initialized(void);
bool device_is(CUdevice device);
/* The SMs that kernels of the context run on. */
struct sm_set context_sms(CUcontext context);
/* Calls back into the process as the WSL2 driver does (entry.c); without the lock. */
void driver_call_out(void);

/* --- modules, libraries, kernels, functions ------------------------------------------------ */

#define PARAMETERS_MAX 32

/* What one kernel in an image is like, whichever handles it has. */
struct kernel_code {
    struct kernel_code *next; /* in its image */
    char *name;
    unsigned int cluster[3]; /* compile-time cluster; 0 where there is none */
    bool cluster_must_be_set;
    int attributes[FUNCTION_ATTRIBUTES];
    int parameter_count; /* -1 unknown */
    unsigned int parameter_size[PARAMETERS_MAX];
};

#define GLOBAL_BYTES (1 << 20) /* more than any variable of the programs in the tests */

struct image_global {
    struct image_global *next;
    char *name;
    char memory[GLOBAL_BYTES];
};

struct image {
    struct kernel_code *kernels;
    struct image_global *globals;
    bool on_demand; /* content is unknown: any name that is asked for exists */
};

struct CUmod_st {
    struct object object;
    CUcontext context;
    CUlibrary library; /* the library it came from, or NULL */
    CUmodule next_in_library;
    struct image *image;
    CUfunction functions; /* made so far, newest first */
};

struct CUlib_st {
    struct object object;
    struct image *image;
    CUmodule modules; /* one per context that used it */
    CUkernel kernels; /* made so far, newest first */
};

struct CUkern_st {
    struct object object;
    CUlibrary library;
    CUkernel next_in_library;
    struct kernel_code *code;
    _Atomic int attributes[DEVICES_MAX][FUNCTION_ATTRIBUTES]; /* launches read them unlocked */
};

struct CUfunc_st {
    struct object object;
    CUmodule module;
    CUfunction next_in_module;
    CUkernel kernel; /* the kernel it came from, or NULL */
    CUcontext context;
    struct kernel_code *code;
    /* Attributes set on the function itself beat the kernel's. Launches read them unlocked. */
    _Atomic uint32_t own;
    _Atomic int attributes[FUNCTION_ATTRIBUTES];
    unsigned int block[3], shared; /* state of the ancient cuFuncSetBlockShape family */
};

/* A function handle as launches take it: CUfunction, or CUkernel cast to it. */
struct launchable {
    CUfunction function; /* NULL for a kernel */
    CUkernel kernel;     /* NULL for a function */
    struct kernel_code *code;
};

struct image *image_parse(const void *data);
void image_free(struct image *image);
struct kernel_code *image_find(struct image *image, const char *name);

/* Where a variable of the image lies, the same in every context. */
CUresult memory_global(struct image *image, const char *name, CUdeviceptr *pointer, size_t *bytes);

/* False when the handle is neither. Needs no lock. */
bool launchable_of(CUfunction handle, struct launchable *launchable);
/* False once its module, library or context is gone. */
bool launchable_lives(const struct launchable *launchable);
CUcontext launchable_context(const struct launchable *launchable);
int launchable_attribute(const struct launchable *launchable, int device, int attribute);
bool function_attribute_settable(int attribute);
CUmodule module_new(CUcontext context, CUlibrary library, struct image *image);
void module_free(CUmodule module);
void module_context_gone(CUcontext context);
/* The function of that kernel in a module: always the same handle; NULL when out of memory. */
CUfunction module_function(CUmodule module, struct kernel_code *code, CUkernel kernel);
CUmodule library_module(CUlibrary library, CUcontext context);
void library_free(CUlibrary library);
CUkernel library_kernel(CUlibrary library, struct kernel_code *code);
CUfunction kernel_function(CUkernel kernel, CUcontext context);

/* --- streams, capture, events -------------------------------------------------------------- */

enum stream_kind { STREAM_CREATED, STREAM_LEGACY, STREAM_PER_THREAD };

struct node_list {
    CUgraphNode *nodes;
    size_t count, capacity;
};

struct capture {
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    CUstreamCaptureStatus status;
    unsigned long long id;
    unsigned int thread;
    bool own_graph; /* made for this capture, not the application's (BeginCaptureToGraph) */
    unsigned int references; /* streams in it */
};

struct CUstream_st {
    struct object object;
    enum stream_kind kind;
    CUcontext context;
    CUgreenCtx green;
    bool orphan; /* its green context was destroyed */
    unsigned int flags;
    int priority;
    unsigned int thread; /* of a per-thread stream */
    struct attribute_set attributes;
    struct capture *capture;
    struct node_list tail; /* nodes that the next captured one depends on */
};

struct CUevent_st {
    struct object object;
    CUcontext context;
    unsigned int flags;
    unsigned int recorded;
    unsigned long long capture_id; /* recorded while capturing: the capture's id and its nodes */
    struct node_list nodes;
};

/*
 * The stream that a handle means: NULL is `standard` (CU_STREAM_LEGACY or CU_STREAM_PER_THREAD).
 * Returns NULL for what is no stream. With `may_create` false, NULL also when the thread's stream
 * does not exist yet, and then no lock is needed.
 */
CUstream stream_of(CUstream handle, CUstream standard, bool may_create);
CUresult stream_new(CUcontext context, unsigned int flags, int priority, CUgreenCtx green,
                    CUstream *stream);
void stream_free(CUstream stream);
void stream_context_gone(CUcontext context);
/* The green context is destroyed; documented: every later call on its streams is refused. */
void stream_orphan(CUgreenCtx green);
/* Why stream_of found no stream: the error for the caller. */
CUresult stream_refusal(CUstream handle);
const char *stream_name(CUstream stream, char *text, size_t size);

bool node_list_add(struct node_list *list, CUgraphNode node);
void node_list_clear(struct node_list *list);
bool node_list_copy(struct node_list *to, const struct node_list *from);

/* CUDA_SUCCESS, or why work may not be put in the stream now (900, 901, 906). */
CUresult capture_check(CUstream stream);
/* For questions that only concern the legacy stream while a blocking stream captures. */
CUresult capture_check_legacy(CUstream stream);
/* For calls that a capturing stream does not permit: 900, and the capture is invalid afterwards. */
CUresult capture_check_idle(CUstream stream);
/* A node in the graph that the stream captures into; the stream then depends on it alone. */
CUresult capture_node(CUstream stream, CUgraphNodeType type, CUgraphNode *node);
void capture_invalidate(CUstream stream);
/* Of every stream of this context, not of the device's other ones. */
void capture_invalidate_context(CUcontext context);
void capture_leave(CUstream stream);
CUresult capture_join(CUstream stream, CUevent event);
void capture_event(CUstream stream, CUevent event);
CUresult capture_start(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                       const CUgraphNode *dependencies, size_t count);
CUresult capture_finish(CUstream stream, CUgraph *graph);
CUstreamCaptureMode capture_exchange_mode(CUstreamCaptureMode mode);
/* CUDA_SUCCESS, or 900 when the call is one that captures of this thread's view prohibit. */
CUresult capture_unsafe_call(void);

/* --- green contexts ------------------------------------------------------------------------ */

/* What a resource says of its SMs beside their number (resource.h). */
struct resource_shape {
    uint32_t minimum, alignment, flags, domain;
};

struct CUgreenCtx_st {
    struct object object;
    int device;
    struct sm_set sms;
    struct sm_set grouped; /* those of them that are co-scheduled by more than 2 */
    unsigned int together; /* largest cluster that they can run */
    struct resource_shape shape;
    CUcontext context; /* made by cuCtxFromGreenCtx or by the first stream; always there */
};

struct CUdevResourceDesc_st {
    struct object object;
    int device;
    struct sm_set sms, grouped;
    unsigned int together;
    struct resource_shape shape;
};

/* --- launches ------------------------------------------------------------------------------ */

struct launch {
    CUfunction handle;
    struct launchable what;
    unsigned int grid[3], block[3], shared;
    CUstream stream_handle;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned int attribute_count;
    bool cooperative;
    void **parameters;
    void **extra;
};

/*
 * Checks everything but capture state. `base` are the attributes below the launch's own (stream, or
 * node), or NULL; `result` receives what the kernel would run with and may be NULL.
 */
CUresult launch_check(const struct launch *launch, CUcontext context,
                      const struct attribute_set *base, struct attribute_set *result);

unsigned int occupancy_blocks(const struct launchable *what, int device, unsigned int threads,
                              size_t shared);
/* Blocks that are resident at once, without clusters. */
unsigned int occupancy_resident(const struct launchable *what, CUcontext context,
                                unsigned int threads, size_t shared);
unsigned int occupancy_clusters(const struct launchable *what, CUcontext context,
                                unsigned int threads, size_t shared, unsigned int size);

/* --- graphs -------------------------------------------------------------------------------- */

struct kernel_node {
    struct launchable what;
    CUfunction func; /* as given, and what is read back */
    CUkernel kern;
    CUcontext context;
    unsigned int grid[3], block[3], shared;
    void **parameters;
    void **extra;
    bool captured; /* made by a launch into a capturing stream */
    void *storage; /* what the two point to when the arguments' sizes are known: our own copy */
    struct attribute_set attributes;
};

/* A copy, or with `source` NULL a fill with `width` bytes of `value`. */
struct transfer {
    void *target;
    const void *source;
    size_t size;
    unsigned int value, width;
};

void transfer_run(const struct transfer *transfer);

struct CUgraph_st {
    struct object object;
    CUgraphNode first, last; /* in creation order */
    size_t count;
    CUgraphNode owner; /* the child-graph node that owns it, or NULL */
};

enum {
    NODE_CONDITIONAL = 13, /* CU_GRAPH_NODE_TYPE_CONDITIONAL of 12.3 */
    NODE_BODIES = 2,
};

struct CUgraphNode_st {
    struct object object;
    CUgraph graph;
    CUgraphNode next, previous;
    CUgraphNodeType type;
    struct node_list dependencies;
    CUgraphNode original; /* in the graph this was cloned from */
    unsigned int original_ordinal;
    bool disabled; /* in an executable graph */
    struct kernel_node kernel;
    struct transfer transfer;
    CUgraph child;
    CUgraph bodies[NODE_BODIES]; /* of a conditional node; NULL behind the last one */
    CUhostFn host;
    void *host_data;
    CUevent event; /* of event nodes */
};

struct CUgraphExec_st {
    struct object object;
    CUgraph graph; /* a private clone */
    unsigned long long flags;
};

CUgraph graph_new(void);
void graph_free(CUgraph graph);
/* Appends a node; NULL when out of memory. */
CUgraphNode graph_add(CUgraph graph, CUgraphNodeType type, const CUgraphNode *dependencies,
                      size_t count);
void graph_remove(CUgraphNode node);
/* A copy whose nodes know their originals. */
CUgraph graph_clone(CUgraph graph);
/* The node of a clone that was made from `original`, or NULL. */
CUgraphNode graph_find_clone(CUgraph clone, CUgraphNode original);
bool graph_has_all(CUgraph graph, const CUgraphNode *nodes, size_t count);
/* Begins a call about one node of a given kind (-1: any) and judges it. */
struct call graph_node_call(const char *name, CUgraphNode node, int type);
/* Begins a call about the counterpart of a graph's node in an executable graph. */
struct call graph_counterpart_call(const char *name, CUgraphExec executable, CUgraphNode original,
                                   CUgraphNode *node);
void call_kernel_node(struct call *call, const struct kernel_node *kernel);

/* Takes grid, arguments and function of a launch; checks them with the attributes that the node
 * has. On an error the node is as before. */
CUresult kernel_node_set(struct kernel_node *kernel, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
/* The same, and refused when the kernel would then run in another context than this. */
CUresult kernel_node_set_within(struct kernel_node *kernel,
                                const CUDA_KERNEL_NODE_PARAMS_v2 *params, CUcontext context);
CUresult kernel_node_check(const struct kernel_node *kernel);
/* A cooperative grid that is not resident at once. Measured on a partition: such a node is
 * instantiated and launched without an error and never ends. */
bool kernel_node_hangs(const struct kernel_node *kernel);
void kernel_node_copy_arguments(struct kernel_node *kernel);
void kernel_node_free(struct kernel_node *kernel);

/* --- calls (record.c) ---------------------------------------------------------------------- */

struct text {
    char *data;
    size_t length, capacity;
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_attribute(struct text *text, unsigned int id, const CUlaunchAttributeValue *value);

/* One call on its way. `record` is NULL when nobody watches. */
struct call {
    const char *name;
    CUresult result; /* not CUDA_SUCCESS: return it, without any effect */
    struct recording_call *record;
    struct text details;
    struct call_node *nodes, *last_node; /* kernel nodes that a graph launch runs */
};

/* Takes the lock, counts the call and asks whether it has to fail. */
struct call call_begin(const char *name);
/* The same for the few functions that work before cuInit. */
struct call call_begin_early(const char *name);
/* Appends `key=value` text to the line; cheap when nobody watches. */
void call_add(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
void call_stream(struct call *call, CUstream handle, CUstream stream);
void call_function(struct call *call, const void *handle);
void call_object(struct call *call, const char *key, enum object_kind kind, const void *handle);
void call_context(struct call *call, CUcontext context);
/* sms=16 sm_set=0-15 */
void call_sms(struct call *call, const struct sm_set *sms);
/* Context, green context and SMs that a kernel runs in. */
void call_place(struct call *call, CUcontext context);
void call_launch(struct call *call, const struct launch *launch);
/* One more line after that of the call, named "node". */
void call_node(struct call *call, const struct CUgraphExec_st *executable, CUgraphNode node);
void call_effective(struct call *call, const struct attribute_set *attributes);
/* Writes the record, gives the lock back and returns `result`. */
CUresult call_end(struct call *call, CUresult result);

void driver_lock(void);
void driver_unlock(void);
unsigned int thread_ordinal(void);
void record_forget(void);
void record_reopen(void);

/* Set by the thunks in front of resolved pointers (entry.c), consumed by call_begin. */
extern __thread unsigned char driver_resolved;

#endif
