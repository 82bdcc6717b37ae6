/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_DECIDE_H
#define CUDAPOLICY_DECIDE_DECIDE_H

/*
 * From rules to decisions: which settings hold for a launch, a stream or a graph node, whether they
 * may be injected, and how the launch looks with them.
 *
 * The wrappers of src/preload call in here and make the real calls; this module makes only the
 * queries listed in cuda/driver.def, and only where a comment says so.
 *
 * Registries are keyed by handle. Handles are reused by the driver at once, so each registry is
 * told when a handle ends *before* the real destroying call is made. Entries are type-stable:
 * reused, never freed, so that a reader on another thread never follows a dead pointer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "cuda/interface.h"
#include "place/move.h"
#include "place/partition.h"
#include "policy/policy.h"
#include "report/report.h"

struct decide_rule_set;

/* What is constant in a process, for the selectors rank, local_rank, world_size and host.
 * Unknown numbers are -1, and no range matches them. */
struct decide_process {
    int64_t rank, local_rank, world_size;
    const char *host;
};

/* Takes the policy (kept, never freed while the process runs). Once, before anything else here;
 * again in the child after fork with the child's own ranks. */
void decide_start(const struct policy *policy, const struct decide_process *process,
                  enum policy_mode mode);

/* What the report calls a rule of the policy. The strings are the policy's. */
struct report_rule_name decide_rule_name(const struct policy *policy,
                                         const struct policy_rule *rule);

/* The rules that decisions are made by now. */
const struct decide_rule_set *decide_rules_in_force(void);

/*
 * Exchanges the policy while other threads launch: the kernel rules for all launches, and nodes,
 * that begin afterwards; stream rules for streams that are created afterwards, and at once for the
 * default streams. A launch that is under way is decided by the old rules to its end. The
 * partitions must be those of the policy before. Policies are never freed: this one neither when it
 * returns false, with the reason in error[size], since its rules may have numbers; then everything
 * is as it was. Not for the launch path; locks, allocates, makes no call to the driver.
 * Process-wide memory grows with each: the caller limits their number.
 */
bool decide_reload(struct policy *policy, const struct policy *before,
                   const struct decide_process *process, char *error, size_t size);

/* Whether a partition of the policy exists on a device; for place_start. May query. */
bool decide_partition_is_on(const struct policy_partition *partition, int device);

/* ---- The launch path ---------------------------------------------------------------------------
 */

/*
 * The stubs' look-up: functions for which no rule can ever match. A direct-mapped table: slot
 * (handle * DECIDE_PASS_MULTIPLIER) >> (64 - DECIDE_PASS_BITS). An entry is written count first,
 * handle last (release), and only into an empty slot (handle 0); it is emptied when the function
 * goes. So it is read handle first (acquire on machines that reorder loads), count last: a reader
 * who finds its handle has that handle's count. Handle 0 is never looked up.
 */
struct decide_pass_entry {
    uint64_t handle;
    uint64_t
        count_offset; /* of the eager counter, in bytes from the start of struct report_shard */
};
enum {
    DECIDE_PASS_BITS = 12,
    DECIDE_PASS_SIZE = 1 << DECIDE_PASS_BITS,
};
#define DECIDE_PASS_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)
extern struct decide_pass_entry decide_pass_table[DECIDE_PASS_SIZE]
    __attribute__((visibility("hidden")));

/*
 * The shortest way of a changed launch: of functions whose launches all get the same attributes
 * while nothing about the launch, its stream or its device has to be looked at. Entries are written
 * and read as in decide_pass_table; where points to what holds for the function's kernel at
 * present.
 */
struct decide_prepared {
    const struct cuda_launch_attribute *attributes;
    uint32_t count;        /* 0: the long way */
    uint32_t special;      /* 1 << id: attributes with which a launch goes the long way */
    uint64_t count_offset; /* of the eager counter, as in decide_pass_entry */
};
struct decide_prepared_entry {
    uint64_t handle;
    const struct decide_prepared *const *where; /* atomic; *where may be NULL */
};
extern struct decide_prepared_entry decide_prepared_table[DECIDE_PASS_SIZE]
    __attribute__((visibility("hidden")));

/* What is prepared for an eager launch without attributes through the driver layer; NULL:
 * decide_launch. Launch path. */
static inline const struct decide_prepared *decide_prepared_for(CUfunction function)
{
    const uint64_t handle = (uintptr_t)function;
    const struct decide_prepared_entry *entry =
        &decide_prepared_table[handle * DECIDE_PASS_MULTIPLIER >> (64 - DECIDE_PASS_BITS)];
    const struct decide_prepared *const *where;
    const struct decide_prepared *prepared;

    if (__atomic_load_n(&entry->handle, __ATOMIC_ACQUIRE) != handle || handle == 0)
        return NULL;
    where = __atomic_load_n(&entry->where, __ATOMIC_ACQUIRE);
    /* The handle once more: the place may have become another function's in between. */
    if (__atomic_load_n(&entry->handle, __ATOMIC_ACQUIRE) != handle ||
        __atomic_load_n(&report_control_now()->whole, __ATOMIC_RELAXED) !=
            report_control_expected_now())
        return NULL;
    prepared = __atomic_load_n(where, __ATOMIC_ACQUIRE);
    return prepared != NULL && prepared->count != 0 ? prepared : NULL;
}

enum {
    DECIDE_PREPARED_LIMIT = 16, /* attributes of a launch made by decide_prepared_merge */
};

/* The same for a launch with attributes of its own: writes them and what was prepared to list,
 * which has DECIDE_PREPARED_LIMIT places, and returns their number; 0: decide_launch. Launch path.
 */
static inline unsigned decide_prepared_merge(const struct decide_prepared *prepared,
                                             const CUlaunchConfig *config,
                                             struct cuda_launch_attribute *list)
{
    const struct cuda_launch_attribute *own = (const void *)config->attrs;
    const unsigned count = config->numAttrs;
    struct cuda_launch_attribute *to = list;

    if (own == NULL || prepared->count >= DECIDE_PREPARED_LIMIT ||
        count > DECIDE_PREPARED_LIMIT - prepared->count)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        if (own[i].id < 32 && (prepared->special >> own[i].id & 1))
            return 0;
        *to++ = own[i];
    }
    for (unsigned i = 0; i < prepared->count; i++)
        *to++ = prepared->attributes[i];
    return count + prepared->count;
}

enum {
    DECIDE_ATTRIBUTE_LIMIT = 32, /* attributes of a changed launch; more: the original is made */
};

/* Shapes that a launch is about: of its cluster, its preferred cluster, its place. */
enum {
    DECIDE_SHAPE_OF_CLUSTER,
    DECIDE_SHAPE_OF_PREFERRED,
    DECIDE_SHAPE_OF_PLACE,
    DECIDE_CASE_SHAPES,
};

enum decide_layer {
    DECIDE_LAYER_DRIVER,
    DECIDE_LAYER_RUNTIME, /* a libcudart that no driver wrapper sees: only what cannot be refused */
};

/* A launch as the application made it. */
struct decide_launch {
    CUfunction
        function; /* a CUfunction, or a CUkernel cast to one; a host symbol in the runtime layer */
    const CUlaunchConfig *config; /* of a plain launch: attrs NULL, numAttrs 0 */
    bool cooperative; /* by cuLaunchCooperativeKernel; the config carries no attribute for it */
    bool per_thread_default; /* the _ptsz variant: stream NULL means the per-thread stream */
    enum decide_layer layer;
    const char *library; /* base name of the first caller outside libcudart; interned, constant
                            address; NULL when not known, or to be found from caller */
    const void *caller;  /* NULL, or an address for decide_library_of */
    CUcontext context;   /* of an explicit node: as its parameters have it, NULL: the current one */
    bool body;           /* of an explicit node: in the body of a conditional node */
};

/* Gives the library of a launch's caller: set before the first launch, by who fills in caller. Most
 * launches need no library, so it is not looked up for them. */
extern const char *(*decide_library_of)(const void *caller);

static inline const char *decide_launch_library(const struct decide_launch *launch)
{
    return launch->caller != NULL ? decide_library_of(launch->caller) : launch->library;
}

/* What to do with it. Lives on the caller's stack; holds the changed launch. */
struct decide_verdict {
    bool change;   /* make the launch with config below; else exactly as it came */
    uint32_t cell; /* to be counted if the launch is made as decided */
    enum report_launch_kind kind;
    CUlaunchConfig
        config; /* the application's with attributes of our own: those below, or, where kind
                   is EAGER, prepared ones that many launches share. Unused bytes are zero. */
    struct cuda_launch_attribute attributes[DECIDE_ATTRIBUTE_LIMIT];
    int8_t output_index[2]; /* the attribute that the driver writes into: index here, index in the
                               application's array; -1 where there is none */
    struct {                /* for decide_launch_refused and decide_launch_accepted */
        void *variant;
        const void *cell;
        bool remember;   /* decide_launch_accepted has something to do */
        bool has_shapes; /* the members that follow are set */
        void *shapes[DECIDE_CASE_SHAPES];
        uint32_t shape_uses[DECIDE_CASE_SHAPES];
        uint32_t blamed;
    } internal;
    struct { /* with change: the launch is to be moved, see place/move.h */
        const struct place_partition *partition; /* NULL: not moved, and the rest is not set */
        struct place_sides *sides;               /* NULL: memory is short */
        CUstream stream;
    } move;
};

/*
 * Decides one launch. Launch path: no lock, no allocation, no query, except at the first sight of a
 * function, of a shape that gets a cluster, or of an unknown stream; and cuCtxGetDevice when the
 * decision depends on the device, several are visible and the stream is a default one.
 * A cooperative launch that is changed carries CU_LAUNCH_ATTRIBUTE_COOPERATIVE in its attributes.
 */
void decide_launch(const struct decide_launch *launch, struct decide_verdict *verdict);

/*
 * The changed launch came back with result. True: result is one the change can have caused (1, 701,
 * 720, 801, 912) and nothing was launched, so make the launch again as it came and count
 * verdict->cell, which now says refused. The shape is remembered. False: result stands.
 */
bool decide_launch_refused(const struct decide_launch *launch, struct decide_verdict *verdict,
                           CUresult result);

/* The launch could not be moved and is to be made with its other changes only. Launch path. */
void decide_launch_not_moved(struct decide_verdict *verdict, enum report_reason reason);

/*
 * What became of the launch that was made as it came after decide_launch_refused. When it failed
 * too, the change was not to blame: what decide_launch_refused remembered is forgotten.
 */
void decide_launch_repeated(const struct decide_launch *launch, struct decide_verdict *verdict,
                            CUresult result);

/* The launch went through with the change: remembers accepted clusters (for captures) and copies
 * what the driver wrote into our attributes back to the application's array. Launch path. */
void decide_launch_remember(const struct decide_launch *launch, struct decide_verdict *verdict);
static inline void decide_launch_accepted(const struct decide_launch *launch,
                                          struct decide_verdict *verdict)
{
    if (verdict->internal.remember)
        decide_launch_remember(launch, verdict);
}

/* ---- Names and lifetimes of functions
 * ------------------------------------------------------------ */

/* A function handle got a name: cuModuleGetFunction, cuLibraryGetKernel, enumerations. The name is
 * copied. container: the CUmodule or CUlibrary, for decide_container_gone. Locks. */
void decide_function_named(void *function, const char *mangled, void *container);

/* cuKernelGetFunction: function is kernel on the current context. Locks. */
void decide_function_of_kernel(CUfunction function, CUkernel kernel);

/* The program set an attribute of a function (cuFuncSetAttribute, cuKernelSetAttribute): forgets
 * what was asked of the driver about it, unless the program set the same value before, as some
 * libraries do before each launch. device: of cuKernelSetAttribute, else -1. Locks. */
void decide_function_attribute_set(void *function, int attribute, int value, int device);

/* The same for other changes (cache configuration, shared-memory configuration). function NULL: of
 * every function. Locks. */
void decide_function_changed(void *function);

/* Before cuModuleUnload or cuLibraryUnload. */
void decide_container_gone(void *container);

/* Before a context is destroyed or a primary context reset: every CUfunction, stream and graph of
 * it may go. context NULL: not known which, forget all that a context owns. */
void decide_context_gone(CUcontext context);

/* ---- Streams ----------------------------------------------------------------------------------
 */

/* What a program asked for when it created a stream. */
/* Where a stream is to be made. */
struct decide_stream_place {
    const struct place_partition *partition; /* NULL: where the program wants it */
    enum report_reason reason;               /* why not on the partition that a rule names */
    uint32_t result;                         /* of the driver, with REFUSED_BY_DRIVER */
};

struct decide_stream_request {
    unsigned flags;
    int priority;        /* 0 where the call has none */
    bool priority_given; /* the call has one */
    bool green; /* by cuGreenCtxStreamCreate: on that context's device, not the current one */
    const char *library;
    enum decide_layer layer;
    struct decide_stream_place place; /* for decide_stream_created: what became of it */
    /* decide_rules_in_force() before the first question about the stream, so that all are answered
     * by the same policy; NULL: those in force at each question. */
    const struct decide_rule_set *rules;
};

/* A stream was created: finds its rule, makes the settings, enters it. Queries the current device;
 * calls cuStreamSetAttribute. Never changes the program's result. */
void decide_stream_created(CUstream stream, const struct decide_stream_request *request);

/*
 * The priority to create a stream with, when a stream rule sets one; else the request's own. A call
 * without a priority (cuStreamCreate) is to be made as cuStreamCreateWithPriority when the answer
 * is not 0, the default. Should the changed call fail, the original one is to be made: what the
 * stream then has is asked of the driver by decide_stream_created, to be called in the same thread.
 */
int decide_stream_priority(const struct decide_stream_request *request);

/*
 * The partition to create a stream on, when a stream rule names one: by place_partition_stream,
 * with decide_stream_priority's priority and always non-blocking. Should that fail, the stream is
 * to be created as the program asked, and place says so with REFUSED_BY_DRIVER. To be called before
 * decide_stream_created in the same thread. Asks for the current context and device; may make the
 * device's partitions.
 */
struct decide_stream_place decide_stream_place(const struct decide_stream_request *request);

/* What a program that asks about a stream made on a partition is to be told: what it would have
 * been told of the stream that it asked for. False: nothing of ours. Any of the pointers may be
 * NULL. */
bool decide_stream_asked(CUstream stream, CUcontext *context, unsigned *flags, int *device);

/* cuStreamCopyAttributes was refused with error 1. True: since one of the streams is on a
 * partition; the copy has been made otherwise, as it would have been of the streams that the
 * program asked for. */
bool decide_stream_copied_by_hand(CUstream destination, CUstream source, bool per_thread_default);

/* Before cuStreamDestroy. */
void decide_stream_gone(CUstream stream);

/* After the program's own successful cuStreamSetAttribute: notes that the program set it, and sets
 * the rule's value again where when_set is replace. -1: all, copied from a stream not known. */
void decide_stream_attribute_set(CUstream stream, bool per_thread_default, int attribute);

/* After a successful cuStreamCopyAttributes: the destination gets what the program itself had set
 * on the source, or what its own rule says, but never the settings of the source's rule. */
void decide_stream_attributes_copied(CUstream destination, CUstream source,
                                     bool per_thread_default);

/* ---- Captures and graphs
 * ------------------------------------------------------------------------- */

/* After a successful cuStreamBeginCapture…, and around cuStreamEndCapture. While any stream of the
 * process captures, the report's gate is raised and launches ask whether theirs does. */
void decide_capture_began(CUstream stream, bool per_thread_default);
void decide_capture_ended(CUstream stream, bool per_thread_default);

/* A captured launch went through: remembers which node it became, for counting replays. Queries the
 * stream's capture information (capture-safe). */
void decide_captured(const struct decide_launch *launch, const struct decide_verdict *verdict);

/* After a kernel node was added to a graph, or its parameters were set: applies the memory-sync
 * settings (and the others under graph_nodes) to the node. The result of the program's call stands.
 */
void decide_node_added(CUgraph graph, CUgraphNode node,
                       const struct cuda_kernel_node_params *parameters, const char *library);
void decide_node_changed(CUgraphNode node, const struct cuda_kernel_node_params *parameters,
                         const char *library);
/* What a program that reads the parameters of a node is to be told where the driver's answer is
 * about a partition of ours: changes function, kernel and context. False: nothing of ours. */
bool decide_node_told(CUgraphNode node, struct cuda_kernel_node_params *parameters);
/* The parameters with which the program's call about the node in an executable graph is to be made,
 * so that it stays on its partition, between decide_node_enter(*current) and decide_node_leave.
 * False: as given. */
bool decide_node_placed(CUgraphNode node, const struct cuda_kernel_node_params *given,
                        struct cuda_kernel_node_params *changed, CUcontext *current);
/* Makes a context current for some calls, and the one before again. NULL: nothing is to be done.
 * False: it cannot be made so, and nothing is to be left. */
bool decide_node_enter(CUcontext context);
void decide_node_leave(CUcontext context);
/* Before a graph is instantiated for launches by the device, which know no partitions: its nodes go
 * back to where the program had them. */
void decide_graph_for_device(CUgraph graph);
/* After the program itself set an attribute of a node; -1: all, copied from a node not known. */
void decide_node_attribute_set(CUgraphNode node, int attribute);
/* After cuGraphKernelNodeCopyAttributes: the destination has what the program would have copied,
 * and what its own kernel's rules say, but never the settings of the source's rules. */
void decide_node_attributes_copied(CUgraphNode destination, CUgraphNode source);
/*
 * The program's call about a node came back with result. True: a cluster that a rule gave to the
 * node can be the reason, and was taken away, so make the call again. After that, when no other
 * function here is told of the node: decide_node_decide_again.
 */
bool decide_node_give_back(CUgraphNode node, CUresult result);
void decide_node_decide_again(CUgraphNode node);
/* Before cuGraphDestroyNode and cuGraphDestroy. */
void decide_node_gone(CUgraphNode node);
void decide_graph_gone(CUgraph graph);
/* After cuGraphClone. */
void decide_graph_cloned(CUgraph clone, CUgraph original);
/* After cuGraphAddChildGraphNode: graph now has, in node, a copy of original (or original itself).
 */
void decide_child_graph_added(CUgraph graph, CUgraphNode node, CUgraph original);
/* graph, the body of a conditional node, ends with parent. */
void decide_graph_owned(CUgraph graph, CUgraph parent);

/* After an instantiation, an executable update, one node's update; before destruction; after a
 * launch that succeeded (launch path: counts replays, no lock, no allocation). A launch into a
 * stream that captures replays nothing: ask decide_stream_is_capturing (capture.h) before. */
void decide_graph_instantiated(CUgraphExec executable, CUgraph graph);
void decide_graph_updated(CUgraphExec executable, CUgraph graph);
void decide_graph_node_updated(CUgraphExec executable, CUgraphNode node,
                               const struct cuda_kernel_node_params *parameters);
void decide_graph_executable_gone(CUgraphExec executable);
void decide_graph_launched(CUgraphExec executable);

#endif
