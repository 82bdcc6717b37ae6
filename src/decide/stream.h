/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_STREAM_H
#define CUDAPOLICY_DECIDE_STREAM_H

/*
 * The streams of the process, as the launch path needs them: which stream rules a stream matched,
 * and which settings of a rule for a default stream are to be merged into its launches.
 *
 * Created streams get their settings once, from the driver, when they are created; nothing is
 * merged into their launches. The legacy and the per-thread stream exist in every context before
 * anybody can set anything, so the settings of their rules travel with each launch instead.
 *
 * A stream that we did not see being created matches no stream rule: its index and the priority
 * asked for are unknown, and settings made at its first launch would come at a time when the
 * program does not expect its stream to change.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/decide.h"
#include "decide/handle_map.h"
#include "decide/rule_set.h"
#include "place/move.h"
#include "place/partition.h"
#include "policy/policy.h"
#include "report/report.h"

enum decide_stream_kind {
    DECIDE_STREAM_CREATED,
    DECIDE_STREAM_LEGACY,
    DECIDE_STREAM_PER_THREAD,
    DECIDE_STREAM_UNKNOWN, /* a handle whose creation we did not see */
};

/* The settings of streams, each of whose values fits 32 bits. */
enum decide_stream_slot {
    DECIDE_STREAM_SLOT_DOMAIN,
    DECIDE_STREAM_SLOT_MAP,
    DECIDE_STREAM_SLOT_PRIORITY,
    DECIDE_STREAM_SLOT_NVLINK,
    DECIDE_STREAM_SLOTS,
};

/* One setting that stream rules give a stream. */
struct decide_stream_setting {
    /* What is known before anything is set: APPLIED (to be made, or merged), REFUSED with its
     * reason (one domain, no such domain), KEPT for `leave`, NONE when no rule gives it. */
    struct report_result result;
    const struct policy_setting_value *value; /* NULL unless APPLIED */
};

/*
 * What stream rules say about streams alike. Shared by all of them, immutable, never freed, so its
 * address or its number may be part of a cache's key.
 */
struct decide_stream_profile {
    uint32_t number;       /* 0: no rule matched */
    bool merges;           /* some setting is to be merged into launches; default streams only */
    uint16_t rule_count;   /* stream rules that the stream matched, in file order, */
    const uint16_t *rules; /* by number */
    struct decide_stream_setting settings[POLICY_SETTING_COUNT];
    /* The partition alone, for launches on streams that are there; NULL: no rule names one. */
    const struct decide_stream_profile *placement;
    struct decide_stream_profile *next; /* of the list of all */
};

struct decide_stream {
    struct handle_entry base;
    const struct decide_stream_profile *profile; /* never NULL */
    /* Never used twice, while handles are. The legacy streams of a device have one number, and so
     * have its per-thread streams. */
    uint64_t serial;
    CUcontext context;   /* current at the creation; NULL: not known, or a default stream */
    const char *library; /* of the creating call, or of the launch for a default stream */
    int64_t index;       /* order of creation on its device, from 0; -1: not known */
    int device;          /* ordinal; -1: not known, or not asked since no stream rule needs it */
    int priority;        /* asked for by the program; 0 where it did not ask */
    unsigned flags;      /* asked for at the creation */
    /* The partition that the stream was made on; NULL: where the program wanted it. */
    const struct place_partition *partition;
    struct place_sides sides; /* of launches that are moved elsewhere */
    uint8_t kind;             /* enum decide_stream_kind */
    bool priority_given;
    _Atomic uint32_t own; /* see decide_stream_own */
    /* Under the registry's lock, by enum decide_stream_slot: what the program itself wants (what it
     * set last, else what a new stream has), and a bit where the driver holds a rule's value. */
    uint32_t program[DECIDE_STREAM_SLOTS];
    uint8_t injected;
};

/*
 * The stream that a launch goes to. NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD name the
 * default streams (NULL by per_thread_default). library: the caller of the launch, for rules about
 * default streams; interned, NULL when not known. Never NULL.
 *
 * Launch path: no lock, no allocation, no query, except: cuCtxGetDevice for a default stream when a
 * stream rule about such a stream depends on the device and several are visible; and at the first
 * sight of an unknown stream, or of a (device, library) on a default one.
 */
const struct decide_stream *decide_stream_find(CUstream stream, bool per_thread_default,
                                               const char *library);

/* The same, where rules about default streams are those of a certain set. */
const struct decide_stream *decide_stream_find_by(const struct decide_rule_set *set,
                                                  CUstream stream, bool per_thread_default,
                                                  const char *library);

/* The partition that the stream was made on; NULL: none. Launch path. */
const struct place_partition *decide_stream_partition(CUstream stream);

/* True when the stream matched the stream rule of this number. Launch path. */
static inline bool decide_stream_matched(const struct decide_stream *stream, uint16_t rule)
{
    for (uint16_t i = 0; i < stream->profile->rule_count; i++)
        if (stream->profile->rules[i] == rule)
            return true;
    return false;
}

/*
 * The launch attributes that the program set on the stream itself, bit 1 << id. A setting of a
 * default stream's rule with when_set = keep is not merged into a launch while its bit stands here.
 * (Nor is any stream setting where the launch carries that attribute itself: launch attributes beat
 * stream attributes.) Launch path.
 */
uint32_t decide_stream_own(const struct decide_stream *stream);

/* The rule that put a stream on its partition; NULL: the stream is on none. Launch path. */
const struct policy_rule *decide_stream_placing_rule(const struct decide_stream *stream);

/* The launch attribute by which a setting is made on a stream; -1: not a setting of streams. */
int decide_stream_attribute_of(enum policy_setting setting);

/* True when a launch may get settings from the rule of a default stream: then no function may be
 * passed without looking at its launch's stream. Launch path. */
bool decide_stream_merges_exist(void);

/* Forgets every stream: called from decide_start, also in the child after fork, when no other
 * thread exists. */
void decide_stream_start(void);

/* Before the partitions of a device go, and its primary context after them: destroys the streams
 * that are on one, as the end of that context would have done with those that the program asked
 * for. A stream that outlives its green context cannot be destroyed any more (measured). */
void decide_stream_ending(int device);

/* Before a context ends: forgets its streams; NULL: all of them. */
void decide_stream_context_gone(CUcontext context);

#endif
