/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_POLICY_H
#define CUDAPOLICY_POLICY_POLICY_H

/*
 * A policy: the rules that a policy file states, checked and ready to be matched.
 *
 * Nothing in this directory knows CUDA or calls it. A policy is read once, before the first launch,
 * and never changes afterwards, so every function that only reads one may be called from any thread
 * and, where its comment says so, on the launch path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/diagnostics.h"

enum policy_mode {
    POLICY_MODE_ENFORCE, /* decide, apply, report */
    POLICY_MODE_OBSERVE, /* decide and report what would be applied; change nothing */
    POLICY_MODE_OFF,     /* as if not preloaded (environment only, never from a file) */
};

/* Which spelling of a kernel's name a pattern is matched against. */
enum policy_name_form {
    POLICY_NAME_FORM_NAME,      /* qualified name, no template arguments, no parameters */
    POLICY_NAME_FORM_SIGNATURE, /* the whole demangled name */
    POLICY_NAME_FORM_MANGLED,   /* as the driver knows it */
};

enum policy_section {
    POLICY_SECTION_POLICY,
    POLICY_SECTION_PARTITION,
    POLICY_SECTION_STREAM,
    POLICY_SECTION_KERNEL,
    POLICY_SECTION_TUNE,
    POLICY_SECTION_ENV,
    POLICY_SECTION_EXPECT,
    POLICY_SECTION_SITE,
    POLICY_SECTION_LOCKED,
    POLICY_SECTION_DEFAULTS,
};

/* Where a rule or a partition was written, and so when it is read: the site's locked ones, the
 * job's, the site's defaults. Names are unique within the job's file and within the site's. */
enum policy_layer {
    POLICY_LAYER_JOB,
    POLICY_LAYER_LOCKED,
    POLICY_LAYER_DEFAULTS,
    POLICY_LAYER_COUNT,
};

/* A selector with a yes/no answer, or not given. */
enum policy_choice {
    POLICY_CHOICE_ANY,
    POLICY_CHOICE_NO,
    POLICY_CHOICE_YES,
};

enum policy_stream_flags {
    POLICY_STREAM_FLAGS_ANY,
    POLICY_STREAM_FLAGS_BLOCKING,
    POLICY_STREAM_FLAGS_NON_BLOCKING,
};

/* Bits: a stream rule may name several kinds. */
enum policy_stream_kind {
    POLICY_STREAM_KIND_CREATED = 1,
    POLICY_STREAM_KIND_LEGACY = 2,
    POLICY_STREAM_KIND_PER_THREAD = 4,
};

/* Settings, in the order in which reports list them. POLICY_SETTING_MEM_SYNC_DOMAIN_MAP is both the
 * key mem_sync_domain_map and the key physical_domain (the same number twice);
 * POLICY_SETTING_PARTITION both the key partition and the key locality_domain (an unnamed partition
 * of that domain). */
enum policy_setting {
    POLICY_SETTING_MEM_SYNC_DOMAIN,
    POLICY_SETTING_MEM_SYNC_DOMAIN_MAP,
    POLICY_SETTING_CLUSTER_DIM,
    POLICY_SETTING_PREFERRED_CLUSTER_DIM,
    POLICY_SETTING_CLUSTER_SCHEDULING,
    POLICY_SETTING_PRIORITY,
    POLICY_SETTING_SHARED_MEMORY_CARVEOUT,
    POLICY_SETTING_NVLINK_UTIL_CENTRIC,
    POLICY_SETTING_PROGRAMMATIC_SERIALIZATION,
    POLICY_SETTING_PARTITION,
    POLICY_SETTING_COUNT,
};

/* Settings of one group are taken from one rule: the first that has any of them. */
enum policy_group {
    POLICY_GROUP_MEM_SYNC,
    POLICY_GROUP_CLUSTER,
    POLICY_GROUP_PRIORITY,
    POLICY_GROUP_SHARED_MEMORY_CARVEOUT,
    POLICY_GROUP_NVLINK_UTIL_CENTRIC,
    POLICY_GROUP_PROGRAMMATIC_SERIALIZATION,
    POLICY_GROUP_PARTITION,
    POLICY_GROUP_COUNT,
};

enum policy_action {
    POLICY_ACTION_ABSENT, /* the rule does not have this setting */
    POLICY_ACTION_SET,
    POLICY_ACTION_UNSET, /* take the application's own attribute away */
    POLICY_ACTION_LEAVE, /* end the search; the application's own value stays */
};

enum policy_when_set {
    POLICY_WHEN_SET_REPLACE,
    POLICY_WHEN_SET_KEEP,
};

enum policy_mem_sync_domain {
    POLICY_MEM_SYNC_DOMAIN_DEFAULT = 0,
    POLICY_MEM_SYNC_DOMAIN_REMOTE = 1,
};

enum policy_cluster_scheduling {
    POLICY_CLUSTER_SCHEDULING_DEFAULT = 0,
    POLICY_CLUSTER_SCHEDULING_SPREAD = 1,
    POLICY_CLUSTER_SCHEDULING_LOAD_BALANCING = 2,
};

/* Values are those of CUDA where CUDA has one (CUclusterSchedulingPolicy, CUlaunchMemSyncDomain,
 * CUshared_carveout); src/cuda asserts that. */
union policy_value {
    enum policy_mem_sync_domain mem_sync_domain;
    struct {
        uint8_t default_domain; /* physical domain of launches in the default logical domain */
        uint8_t remote_domain;
    } mem_sync_domain_map;
    struct {
        uint32_t x, y, z; /* blocks, each at least 1 */
    } cluster_dim;        /* and preferred_cluster_dim */
    enum policy_cluster_scheduling cluster_scheduling;
    int32_t priority;               /* lower is more urgent; clamped by CUDA */
    int32_t shared_memory_carveout; /* -1 default, 0 max_l1, 100 max_shared, else a percentage */
    bool nvlink_util_centric;
    uint16_t partition; /* index into policy.partitions */
};

struct policy_setting_value {
    enum policy_action action;
    enum policy_when_set when_set; /* the rule's own, else the default of the setting */
    union policy_value value;
    const char *partition_name; /* of a partition that is set: policy_partition.name */
    struct policy_place place;  /* where the key stands */
};

struct policy_range {
    int64_t low, high; /* inclusive; INT64_MIN and INT64_MAX where open */
};

/* A list of ranges, ORed. count 0: the selector is not given. */
struct policy_ranges {
    size_t count;
    const struct policy_range *ranges;
};

/* A list of patterns, ORed. count 0: the selector is not given. */
struct policy_globs {
    size_t count;
    const char *const *patterns;
};

enum policy_device_form {
    POLICY_DEVICE_INDEX, /* as the process numbers its devices */
    POLICY_DEVICE_UUID,  /* 16 bytes, or the first bytes_known of them */
    POLICY_DEVICE_PCI,
};

struct policy_device {
    enum policy_device_form form;
    struct policy_range index;
    struct {
        uint8_t bytes[16];
        uint8_t bytes_known; /* a UUID may be given by its beginning, as nvidia-smi allows */
    } uuid;
    struct {
        uint32_t domain;
        uint8_t bus, device;
    } pci;
};

struct policy_devices {
    size_t count;
    const struct policy_device *devices;
};

struct policy_selectors {
    /* kernels */
    struct policy_globs name, not_name;
    enum policy_name_form name_form;
    struct policy_globs stream; /* names of stream rules, exact */
    struct policy_ranges launch_stream, grid_blocks, block_threads, shared_memory;
    struct policy_ranges arm; /* of a live comparison */
    enum policy_choice captured;
    /* streams */
    struct policy_ranges created_priority, index;
    enum policy_stream_flags flags;
    unsigned kinds; /* policy_stream_kind bits; a stream rule that names none has CREATED */
    /* both */
    struct policy_globs library, not_library, host;
    struct policy_devices device;
    struct policy_ranges rank, local_rank, world_size;
};

/* What a partition asks for. */
enum policy_partition_kind {
    POLICY_PARTITION_SM_COUNT,        /* number SMs; the device grants at least as many */
    POLICY_PARTITION_SM_PERCENT,      /* number per cent of the device's SMs */
    POLICY_PARTITION_SM_REST,         /* what the other partitions of the device leave */
    POLICY_PARTITION_LOCALITY_DOMAIN, /* the SMs of the locality domain of that number */
};

/* A named part of a device's SMs. The partitions of a device are disjoint; one that is alone may be
 * any part of it. */
struct policy_partition {
    uint16_t index; /* position in policy.partitions */
    enum policy_layer layer;
    const char *name; /* unique in its file; of an unnamed one "locality_domain=N" */
    bool named;       /* it has a section; else a rule's locality_domain made it */
    enum policy_partition_kind kind;
    uint32_t number;               /* see the kinds */
    uint32_t coscheduled_sm_count; /* SMs scheduled together, which bounds clusters; 0: the device's
                                      own */
    bool backfill;                 /* SMs that fit no co-scheduled group may be used, too */
    struct policy_devices device;  /* count 0: every device */
    struct policy_place place;     /* of its section, or of the rule's key */
};

struct policy_rule {
    enum policy_section section; /* POLICY_SECTION_STREAM or POLICY_SECTION_KERNEL */
    uint16_t index;              /* position in policy.rules */
    enum policy_layer layer;
    const char *name; /* unique within its kind of section, in its file */
    struct policy_place place;
    struct policy_selectors selectors;
    struct policy_setting_value settings[POLICY_SETTING_COUNT];
    bool final;
    bool graph_nodes;
    bool unsafe_cluster;
    bool unsafe_residency; /* partition: grids may lose their co-residency */
    bool allow_blocking;   /* partition: blocking streams may become non-blocking ones */
    bool allow_legacy;     /* partition: kernels of the legacy NULL stream may be moved */
};

/* A line of [tune]: a key of a rule or a partition, and the values that `cudapolicy tune` tries for
 * it. Each of them may stand there as far as that can be told of the key by itself. */
struct policy_variation {
    enum policy_section section; /* of the rule or partition */
    const char *name, *key;
    size_t value_count; /* at least 2, no two of them the same text */
    const char *const *values;
    struct policy_place place; /* of the line's value */
};

/* A line of [env]: a variable that has to be in the environment before the program starts. */
struct policy_variable {
    const char *name, *value;
    bool replace; /* from [env replace]: also where the user set another value */
    struct policy_place place;
};

/* What an expectation counts, as a report has it of a rule. */
enum policy_quantity {
    POLICY_QUANTITY_LAUNCHES,
    POLICY_QUANTITY_EAGER,
    POLICY_QUANTITY_CAPTURED,
    POLICY_QUANTITY_NODE,
    POLICY_QUANTITY_REPLAYED,
    POLICY_QUANTITY_KERNELS,
    POLICY_QUANTITY_STREAMS,
    POLICY_QUANTITY_APPLIED,
    POLICY_QUANTITY_ALREADY_SO,
    POLICY_QUANTITY_KEPT,
    POLICY_QUANTITY_REFUSED,
    POLICY_QUANTITY_COUNT,
};

enum policy_comparison {
    POLICY_COMPARISON_EQUAL,
    POLICY_COMPARISON_NOT_EQUAL,
    POLICY_COMPARISON_LESS,
    POLICY_COMPARISON_AT_MOST,
    POLICY_COMPARISON_MORE,
    POLICY_COMPARISON_AT_LEAST,
};

/* A condition of [expect], about one rule. */
struct policy_expectation {
    uint16_t rule; /* position in policy.rules */
    enum policy_quantity quantity;
    enum policy_comparison comparison;
    int64_t number; /* not negative */
    struct policy_place place;
};
struct policy_site;

struct policy {
    int version;
    enum policy_mode mode;
    bool mode_given;                /* in the file; else it is the default */
    struct policy_place mode_place; /* where */
    const struct policy_site *site; /* of a site's file, or of the one that the policy was combined
                                       with (combine.h); NULL: none */
    const char *path;               /* as given; "-" or a label for text that came from no file */
    size_t rule_count;
    const struct policy_rule *rules; /* reading order; kernel and stream rules together */
    size_t partition_count;
    const struct policy_partition
        *partitions; /* named ones in reading order, then unnamed ones by number */
    size_t variation_count;
    const struct policy_variation *variations; /* file order; they change nothing by themselves */
    size_t variable_count;
    const struct policy_variable *variables; /* file order; no name twice */
    size_t expectation_count;
    const struct policy_expectation *expectations; /* file order */
    uint8_t sha256[32];                            /* of the file's bytes */
};

enum {
    POLICY_PARTITION_LIMIT = 64, /* of a policy */
    /* SMs of a device. The largest so far have about 150; several times that leaves room for those
     * to come, while a number beyond it can only be a mistake. */
    POLICY_SM_LIMIT = 1024,
    POLICY_COSCHEDULED_SM_LIMIT = 32,    /* CUDA's own, of compute capability 9.0 and later */
    POLICY_LOCALITY_DOMAIN_LIMIT = 256,  /* CUDA keeps their numbers in a byte */
    POLICY_ARM_LIMIT = 16,               /* arms of a live comparison */
    POLICY_VARIATION_LIMIT = 64,         /* lines of [tune] */
    POLICY_VARIATION_VALUE_LIMIT = 256,  /* values of one of them */
    POLICY_VARIABLE_LIMIT = 256,         /* lines of [env] */
    POLICY_VARIABLE_NAME_LIMIT = 127,    /* bytes of a variable's name, */
    POLICY_VARIABLE_VALUE_LIMIT = 4000,  /* and of its value */
    POLICY_EXPECTATION_LIMIT = 1024,     /* conditions of [expect] */
    POLICY_RULE_LIMIT = 65534,           /* rule indices fit 16 bits, with one value for "none" */
    POLICY_FILE_LIMIT = 16 * 1024 * 1024 /* bytes */
};

/*
 * Reads a policy file, all of it, and checks it. Returns the policy, or NULL when there is at least
 * one error; warnings alone do not fail. Every mistake found is added to diagnostics, in file
 * order. path may name a regular file or be a pipe that ends; a directory, a device or a file
 * larger than POLICY_FILE_LIMIT is an error. A FIFO is opened without blocking and refused. Keeps
 * errno, writes nothing itself. Not on the launch path. The caller frees the policy with
 * policy_free.
 */
struct policy *policy_load(const char *path, struct policy_diagnostics *diagnostics);

/* The same for text in memory; label stands where the file name would in diagnostics. */
struct policy *policy_parse(const char *text, size_t length, const char *label,
                            struct policy_diagnostics *diagnostics);

void policy_free(struct policy *policy);

/* "job", "site locked" or "site defaults". Any thread. */
const char *policy_layer_name(enum policy_layer layer);

/* Whether both were written in the same file. Any thread. */
bool policy_layers_share_file(enum policy_layer left, enum policy_layer right);

/* The file that has what stands in this layer of the policy. */
const char *policy_layer_path(const struct policy *policy, enum policy_layer layer);

/* The group of a setting; the setting's key as the policy language spells it; its value as the
 * policy language would write it, of a partition its name (into text, always terminated, returns
 * text). Any thread; the first two may be used on the launch path. */
enum policy_group policy_setting_group(enum policy_setting setting);
const char *policy_setting_key(enum policy_setting setting);
const char *policy_setting_text(enum policy_setting setting,
                                const struct policy_setting_value *value, char *text, size_t size);

/* The setting as a line of the policy language, "key = value": like the last two, but an unnamed
 * partition is "locality_domain = N". Any thread. */
const char *policy_setting_line(enum policy_setting setting,
                                const struct policy_setting_value *value, char *text, size_t size);

/* What the partition asks for as a line of the policy language, like "sm_count = 25%". Any thread.
 */
const char *policy_partition_line(const struct policy_partition *partition, char *text,
                                  size_t size);

/* True when ranges are not given, or one of them holds value. May be used on the launch path. */
bool policy_ranges_hold(const struct policy_ranges *ranges, int64_t value);

/* Mode by its name ("enforce", "observe", "off"); false when text is none of them. */
bool policy_mode_parse(const char *text, enum policy_mode *mode);
const char *policy_mode_name(enum policy_mode mode);

/* The lower of two: off, observe, enforce. */
enum policy_mode policy_mode_lower(enum policy_mode left, enum policy_mode right);

#endif
