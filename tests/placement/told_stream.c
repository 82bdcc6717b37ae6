/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: made, asked about, captured. */
#include "told.h"

#include <stdint.h>
#include <string.h>

/* stream sN FLAGS [priority=] */
static int do_stream(const struct told_line *line)
{
    CUstream *stream = &told_streams[told_place(told_word(line, 1))];
    unsigned flags = (unsigned)told_number(told_word(line, 2));
    if (told_text(line, "priority") == NULL)
        return (int)cuStreamCreate(stream, flags);
    return (int)cuStreamCreateWithPriority(stream, flags, (int)told_option(line, "priority", 0));
}

/* runtime_stream sN FLAGS: by libcudart */
static int do_runtime_stream(const struct told_line *line)
{
    int (*create)(CUstream *, unsigned) =
        (int (*)(CUstream *, unsigned))told_runtime_symbol("cudaStreamCreateWithFlags");
    if (create == NULL)
        told_give_up("no runtime");
    return create(&told_streams[told_place(told_word(line, 1))],
                  (unsigned)told_number(told_word(line, 2)));
}

static int do_no_stream(const struct told_line *line)
{
    (void)line;
    return (int)cuStreamCreate(NULL, CU_STREAM_NON_BLOCKING);
}

/* Of the program's own; the latest. */
static void *own_green;

/* green_destroy */
static int do_green_destroy(const struct told_line *line)
{
    int (*destroy)(void *) = (int (*)(void *))told_symbol("cuGreenCtxDestroy");
    (void)line;
    return destroy == NULL ? -2 : destroy(own_green);
}

/* green_stream sN SMS: of a green context of the program's own */
static int do_green_stream(const struct told_line *line)
{
    /* CUdevResource, 144 bytes in every version. */
    struct {
        uint64_t words[18];
    } all, part, rest;
    int (*resource)(int, void *, int) =
        (int (*)(int, void *, int))told_symbol("cuDeviceGetDevResource");
    int (*split)(void *, unsigned *, const void *, void *, unsigned, unsigned) =
        (int (*)(void *, unsigned *, const void *, void *, unsigned, unsigned))told_symbol(
            "cuDevSmResourceSplitByCount");
    int (*describe)(void **, void *, unsigned) =
        (int (*)(void **, void *, unsigned))told_symbol("cuDevResourceGenerateDesc");
    int (*create)(void **, void *, int, unsigned) =
        (int (*)(void **, void *, int, unsigned))told_symbol("cuGreenCtxCreate");
    int (*context)(CUcontext *, void *) =
        (int (*)(CUcontext *, void *))told_symbol("cuCtxFromGreenCtx");
    int (*stream)(CUstream *, void *, unsigned, int) =
        (int (*)(CUstream *, void *, unsigned, int))told_symbol("cuGreenCtxStreamCreate");
    void *description = NULL;
    unsigned groups = 1;
    memset(&all, 0, sizeof all);
    if (resource == NULL || stream == NULL)
        return -2;
    int result = resource(0, &all, 1);
    if (result == 0)
        result = split(&part, &groups, &all, &rest, 0, (unsigned)told_number(told_word(line, 2)));
    if (result == 0)
        result = describe(&description, &part, 1);
    if (result == 0)
        result = create(&own_green, description, 0, 1);
    if (result == 0)
        result = context(&told_contexts[TOLD_PLACES - 1], own_green);
    return result != 0 ? result
                       : stream(&told_streams[told_place(told_word(line, 1))], own_green,
                                CU_STREAM_NON_BLOCKING, 0);
}

static int do_destroy(const struct told_line *line)
{
    return (int)cuStreamDestroy_v2(told_stream(told_word(line, 1)));
}

/* ---- What a program can ask ---- */

static void ask_contexts(CUstream stream, const char *form)
{
    char name[64] = "cuStreamGetCtx_v2";
    CUcontext context = NULL;
    void *green = &green;
    int (*both)(CUstream, CUcontext *, void **);
    int (*first)(CUstream, CUcontext *);
    strcat(name, form);
    both = (int (*)(CUstream, CUcontext *, void **))told_symbol(name);
    strcpy(name, "cuStreamGetCtx");
    strcat(name, form);
    first = (int (*)(CUstream, CUcontext *))told_symbol(name);
    int result = first(stream, &context);
    told_say("context%s %d %s, ", form, result, told_context_name(context));
    if (both == NULL)
        return;
    context = NULL;
    result = both(stream, &context, &green);
    told_say("contexts%s %d %s %s, ", form, result, told_context_name(context),
             green == NULL ? "none" : "green");
    green = &green;
    result = both(stream, NULL, &green);
    told_say("%d %s, ", result, green == NULL ? "none" : "green");
    context = NULL;
    result = both(stream, &context, NULL);
    told_say("%d %s, ", result, told_context_name(context));
}

static void ask_resource(CUstream stream, const char *form)
{
    char name[64] = "cuStreamGetDevResource";
    uint32_t resource[36];
    int (*ask)(CUstream, void *, int);
    strcat(name, form);
    ask = (int (*)(CUstream, void *, int))told_symbol(name);
    if (ask == NULL)
        return;
    for (int type = 1; type <= 10000; type *= 10000) {
        memset(resource, 0, sizeof resource);
        int result = ask(stream, resource, type);
        told_say("resource%s %d %u, ", form, result, type == 1 ? resource[24] : 0);
    }
}

#define ASK_NUMBER(type, what, symbol)                                                             \
    do {                                                                                           \
        type number_ = (type)-7;                                                                   \
        int (*ask_)(CUstream, type *) = (int (*)(CUstream, type *))told_symbol(symbol);            \
        if (ask_ != NULL) {                                                                        \
            int result_ = ask_(stream, &number_);                                                  \
            told_say(what " %d %d, ", result_, (int)number_);                                      \
        }                                                                                          \
    } while (0)

#define ASK_RUNTIME(type, what, symbol)                                                            \
    do {                                                                                           \
        type number_ = (type)-7;                                                                   \
        int (*ask_)(CUstream, type *) = (int (*)(CUstream, type *))told_runtime_symbol(symbol);    \
        if (ask_ != NULL) {                                                                        \
            int result_ = ask_(stream, &number_);                                                  \
            told_say(what " %d %d, ", result_, (int)number_);                                      \
        }                                                                                          \
    } while (0)

/* Two questions have to have one answer, that of no other stream. */
static void ask_id(CUstream stream)
{
    unsigned long long one = 0, other = 1, of_others;
    int result = (int)cuStreamGetId(stream, &one), same = 1;
    cuStreamGetId_ptsz(stream, &other);
    for (unsigned i = 0; i < TOLD_PLACES; i++)
        if (told_streams[i] != NULL && told_streams[i] != stream &&
            cuStreamGetId(told_streams[i], &of_others) == CUDA_SUCCESS && of_others == one)
            same = 2;
    told_say("id %d %s, ", result, one != other ? "unsteady" : same == 2 ? "shared" : "own");
}

/* about sN [runtime=1] */
static int do_about(const struct told_line *line)
{
    CUstream stream = told_stream(told_word(line, 1));
    ask_contexts(stream, "");
    ask_contexts(stream, "_ptsz");
    ASK_NUMBER(unsigned, "flags", "cuStreamGetFlags");
    ASK_NUMBER(unsigned, "flags", "cuStreamGetFlags_ptsz");
    ASK_NUMBER(int, "priority", "cuStreamGetPriority");
    ASK_NUMBER(int, "priority", "cuStreamGetPriority_ptsz");
    ASK_NUMBER(int, "device", "cuStreamGetDevice");
    ASK_NUMBER(int, "device", "cuStreamGetDevice_ptsz");
    ask_resource(stream, "");
    ask_resource(stream, "_ptsz");
    ask_id(stream);
    void *green = &green;
    int (*ask)(CUstream, void **) = (int (*)(CUstream, void **))told_symbol("cuStreamGetGreenCtx");
    if (ask != NULL) {
        int result = ask(stream, &green);
        told_say("green context %d %s, ", result, green == NULL ? "none" : "green");
    }
    if (told_option(line, "runtime", 0) != 0) {
        ASK_RUNTIME(unsigned, "runtime's flags", "cudaStreamGetFlags");
        ASK_RUNTIME(unsigned, "runtime's flags", "cudaStreamGetFlags_ptsz");
        ASK_RUNTIME(int, "runtime's priority", "cudaStreamGetPriority");
        ASK_RUNTIME(int, "runtime's device", "cudaStreamGetDevice");
    }
    return (int)cuStreamQuery(stream);
}

/* ask_nothing sN: without anywhere to put the answer */
static int do_ask_nothing(const struct told_line *line)
{
    CUstream stream = told_stream(told_word(line, 1));
    told_say("%d %d", (int)cuStreamGetCtx(stream, NULL), (int)cuStreamGetFlags(stream, NULL));
    return 0;
}

/* ---- Attributes ---- */

/* set sN ID VALUE; get sN ID; copy_attributes TO FROM [ptsz=1] */
static int do_set(const struct told_line *line)
{
    CUstreamAttrValue value;
    int number = (int)told_number(told_word(line, 3));
    memset(&value, 0, sizeof value);
    memcpy(&value, &number, sizeof number);
    return (int)cuStreamSetAttribute(told_stream(told_word(line, 1)),
                                     (CUstreamAttrID)told_number(told_word(line, 2)), &value);
}

static int do_get(const struct told_line *line)
{
    CUstreamAttrValue value;
    int number;
    memset(&value, 0, sizeof value);
    int result = (int)cuStreamGetAttribute(told_stream(told_word(line, 1)),
                                           (CUstreamAttrID)told_number(told_word(line, 2)), &value);
    memcpy(&number, &value, sizeof number);
    told_say("%d", number);
    return result;
}

static int do_copy_attributes(const struct told_line *line)
{
    CUstream to = told_stream(told_word(line, 1)), from = told_stream(told_word(line, 2));
    return (int)(told_option(line, "ptsz", 0) != 0 ? cuStreamCopyAttributes_ptsz(to, from)
                                                   : cuStreamCopyAttributes(to, from));
}

/* ---- Captures ---- */

/* begin STREAM; begin_to STREAM gN; end STREAM gN */
static int do_begin(const struct told_line *line)
{
    return (int)cuStreamBeginCapture_v2(told_stream(told_word(line, 1)),
                                        CU_STREAM_CAPTURE_MODE_RELAXED);
}

static int do_begin_to(const struct told_line *line)
{
    int (*begin)(CUstream, CUgraph, const CUgraphNode *, const void *, size_t, int) =
        (int (*)(CUstream, CUgraph, const CUgraphNode *, const void *, size_t, int))told_symbol(
            "cuStreamBeginCaptureToGraph");
    if (begin == NULL)
        return -2;
    return begin(told_stream(told_word(line, 1)), told_graphs[told_place(told_word(line, 2))], NULL,
                 NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED);
}

static int do_end(const struct told_line *line)
{
    return (int)cuStreamEndCapture(told_stream(told_word(line, 1)),
                                   &told_graphs[told_place(told_word(line, 2))]);
}

/* latest STREAM nN: the node that the stream's next one depends on */
static int do_latest(const struct told_line *line)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *nodes = NULL;
    size_t count = 0;
    int result = (int)cuStreamGetCaptureInfo_v2(told_stream(told_word(line, 1)), &status, &id,
                                                &graph, &nodes, &count);
    told_say("status %d, nodes %zu", (int)status, count);
    if (result == 0 && count == 1)
        told_nodes[told_place(told_word(line, 2))] = nodes[0];
    return result;
}

int told_do_stream(const struct told_line *line)
{
    static const struct {
        const char *name;
        int (*function)(const struct told_line *line);
    } operations[] = {
        {"stream", do_stream},
        {"runtime_stream", do_runtime_stream},
        {"no_stream", do_no_stream},
        {"green_stream", do_green_stream},
        {"green_destroy", do_green_destroy},
        {"destroy", do_destroy},
        {"about", do_about},
        {"ask_nothing", do_ask_nothing},
        {"set", do_set},
        {"get", do_get},
        {"copy_attributes", do_copy_attributes},
        {"begin", do_begin},
        {"begin_to", do_begin_to},
        {"end", do_end},
        {"latest", do_latest},
    };
    for (unsigned i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(line->words[0], operations[i].name) == 0)
            return operations[i].function(line);
    return -1;
}
