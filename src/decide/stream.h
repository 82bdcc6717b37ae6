/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_DECIDE_STREAM_H
#define CUDAPOLICY_DECIDE_STREAM_H

/*
 * The streams of the process, as the launch path needs them: which stream rules a stream matched,
 * and which settings of a rule for a default stream are to be merged into its launches.
 *
 * Created streams get their settings once, from the driver, when they are created; nothing is merged
 * into their launches. The legacy and the per-thread stream exist before anybody can set anything, in
 * every context, so the settings of their rules travel with each launch instead.
 *
 * A stream that we did not see being created matches no stream rule: its index and the priority asked
 * for are unknown, and settings made at its first launch would come at a time when the program does
 * not expect its stream to change.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide/decide.h"
#include "policy/policy.h"
#include "report/report.h"

enum decide_stream_kind {
    DECIDE_STREAM_CREATED,
    DECIDE_STREAM_LEGACY,
    DECIDE_STREAM_PER_THREAD,
    DECIDE_STREAM_UNKNOWN, /* a handle whose creation we did not see */
};

/* One setting that stream rules give a stream. */
struct decide_stream_setting {
    /* rule and, for what is known beforehand: APPLIED (make it, or merge it), REFUSED with the reason
     * (one domain, no such domain), NONE when no rule gives it or the rule says `leave` */
    struct report_result result;
    const struct policy_setting_value *value; /* NULL: no rule gives it */
};

/*
 * What stream rules say about streams alike. Shared by all of them, immutable, never freed, so its
 * address or its number may be the key of a cache.
 */
struct decide_stream_profile {
    uint32_t number;       /* 0: no rule matched */
    bool merges;           /* at least one setting is to be merged into launches (default streams) */
    uint16_t rule_count;   /* stream rules that the stream matched, in file order, */
    const uint16_t *rules; /* by index into policy.rules */
    struct decide_stream_setting settings[POLICY_SETTING_COUNT];
};

struct decide_stream {
    const struct decide_stream_profile *profile; /* never NULL */
    uint64_t serial; /* never used twice, while handles are; one number for the per-thread streams of
                        all threads, and for the legacy streams of all contexts of a device */
    CUcontext context;       /* NULL: not known, or a default stream */
    int device;              /* ordinal; -1: not known, or not asked since no stream rule needs it */
    uint8_t kind;            /* enum decide_stream_kind */
    bool priority_given;     /* the program asked for a priority */
    unsigned flags;          /* CU_STREAM_NON_BLOCKING or 0 */
    int priority;            /* asked for by the program; 0 where it did not */
    int64_t index;           /* order of creation on its device, from 0; -1: not known */
    const char *library;     /* of the creating call, or of the launch for a default stream */
    struct decide_stream *next_free; /* of the registry */
    uint64_t handle;
    uint32_t own; /* atomic; see decide_stream_own */
};

/*
 * The stream that a launch goes to. NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD name the default
 * streams (NULL by per_thread_default). library: the caller of the launch, for rules about default
 * streams; interned, NULL when not known. Never NULL.
 *
 * Launch path: no lock, no allocation, no query, except: cuCtxGetDevice for a default stream when a
 * stream rule about that stream depends on the device and several are visible; and at the first sight
 * of an unknown stream, or of a (device, library) on a default one.
 */
const struct decide_stream *decide_stream_find(CUstream stream, bool per_thread_default,
                                               const char *library);

/* True when the stream matched this stream rule (index into policy.rules). Launch path. */
static inline bool decide_stream_matched(const struct decide_stream *stream, uint16_t rule)
{
    for (uint16_t i = 0; i < stream->profile->rule_count; i++)
        if (stream->profile->rules[i] == rule)
            return true;
    return false;
}

/*
 * The launch attributes that the program set on the stream itself, bit 1 << id. For default streams:
 * a setting of the stream's rule with when_set = keep is not merged into a launch when its bit stands
 * here. (And no stream setting is merged where the launch carries that attribute itself: launch
 * attributes beat stream attributes.) Launch path.
 */
uint32_t decide_stream_own(const struct decide_stream *stream);

/* The launch attribute by which a setting is made on a stream; -1: not a setting of streams. */
int decide_stream_attribute_of(enum policy_setting setting);

/* True when a rule for legacy or per-thread streams exists, or a kernel rule may ask which stream rule
 * a stream matched: otherwise no launch depends on its stream. Constant after the start. */
bool decide_stream_rules_exist(void);

/* Forgets every stream and compiles the rules of the policy given to decide_start: called from there,
 * also in the child after fork, when no other thread exists. */
void decide_stream_start(const struct policy *policy, const struct decide_process *process,
                         enum policy_mode mode);

/* Before a context ends: forgets its streams; NULL: all of them. */
void decide_stream_context_gone(CUcontext context);

#endif
