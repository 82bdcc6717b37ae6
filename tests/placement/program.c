/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that does what a script says, and goes on whatever its calls answer.
 *
 * usage: placement_driver SCRIPT RESULTS (placement_runtime likewise)
 *
 * The first line of a script is "turns N" or "free N": N threads, whose calls are made one after
 * the other in the script's order, or each thread's own in order and those of different threads at
 * once. Then a line a call, "THREAD OPERATION ARGUMENTS" (operations[] below). In the recording
 * driver's record each call stands between two notes, "begin:LINE:OPERATION:STREAM" and "end:LINE".
 * A stream that the program made is sN/G, the G-th in its place; default streams are legacy/DEVICE
 * and per_thread/THREAD/DEVICE. With "free", notes "acquire:NAME" and "release:NAME" say how
 * threads wait for each other.
 */
#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording_driver.h"

enum {
    LINES = 4096,
    WORDS = 6,
    WORD = 24,
    PLACES = 64, /* of streams, events, graphs, executables, mutexes, kept dependencies */
    THREADS = 16,
    NODES = 64,
};

const char *const api_kernel_names[API_KERNELS] = {"to_side", "to_main", "eager_side",
                                                   "with_domain", "plain"};

struct line {
    unsigned number, thread, count;
    char words[WORDS][WORD]; /* the operation first */
};

static struct line lines[LINES];
static unsigned line_count, thread_count;
static bool free_running;
static FILE *results;
static const char *results_path;

static struct {
    CUstream stream;
    unsigned generation;
} streams[PLACES];
static CUevent events[PLACES];
static CUgraph graphs[PLACES];
static CUgraphExec executables[PLACES];
static pthread_mutex_t mutexes[PLACES];
static struct {
    CUgraphNode nodes[NODES];
    size_t count;
} kept[PLACES];
static atomic_uint host_calls;

/* Turns, and the start of other threads. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned turn;
static bool together;
static pthread_t threads[THREADS];

static _Thread_local unsigned self;
static _Thread_local int device;

static __typeof__(&recording_driver_note) driver_note;
static __typeof__(&recording_driver_live) driver_live;

static __attribute__((noreturn)) void give_up(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(2);
}

static __attribute__((format(printf, 1, 2))) void note(const char *format, ...)
{
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    driver_note(text);
}

/* ---- The words of a line -----------------------------------------------------------------------
 */

static unsigned number_of(const char *word)
{
    char *end;
    unsigned long number = strtoul(word, &end, 10);
    if (end == word || *end != '\0')
        give_up(word);
    return (unsigned)number;
}

static unsigned place_of(const char *word)
{
    unsigned place = number_of(word + 1);
    if (place >= PLACES)
        give_up(word);
    return place;
}

/* The stream of a word, and its name for the record. */
static struct api_stream stream_of(const char *word, char *name, size_t size)
{
    bool null = strcmp(word, "null") == 0, null_ptsz = strcmp(word, "null_ptsz") == 0;
    if (null || strcmp(word, "legacy") == 0) {
        snprintf(name, size, "legacy/%d", device);
        return (struct api_stream){null ? NULL : CU_STREAM_LEGACY, false};
    }
    if (null_ptsz || strcmp(word, "per_thread") == 0) {
        snprintf(name, size, "per_thread/%u/%d", self, device);
        return (struct api_stream){null_ptsz ? NULL : CU_STREAM_PER_THREAD, null_ptsz};
    }
    unsigned place = place_of(word);
    snprintf(name, size, "s%u/%u", place, streams[place].generation);
    return (struct api_stream){streams[place].stream, false};
}

static int kernel_of(const char *word)
{
    int kernel = 0;
    while (kernel < API_KERNELS && strcmp(word, api_kernel_names[kernel]) != 0)
        kernel++;
    if (kernel == API_KERNELS)
        give_up(word);
    return kernel;
}

/* ---- Operations --------------------------------------------------------------------------------
 */

/* What an operation works on: the line, and the stream where one is named. */
struct call {
    const struct line *line;
    struct api_stream stream;
    char told[64];
};

static const char *word(const struct call *call, unsigned index)
{
    if (index >= call->line->count)
        give_up("a word is missing");
    return call->line->words[index];
}

static bool has(const struct call *call, unsigned index)
{
    return index < call->line->count;
}

static void CUDA_CB count_host(void *data)
{
    (void)data;
    atomic_fetch_add(&host_calls, 1);
}

static int do_retain(struct call *call)
{
    device = (int)number_of(word(call, 1));
    return api_retain(device);
}

static int do_device(struct call *call)
{
    device = (int)number_of(word(call, 1));
    return api_device(device);
}

static int do_release(struct call *call)
{
    return api_release((int)number_of(word(call, 1)));
}

static int do_reset(struct call *call)
{
    return api_reset((int)number_of(word(call, 1)));
}

static int do_stream(struct call *call)
{
    CUstream *stream = &streams[place_of(word(call, 1))].stream;
    return api_stream_create(stream, number_of(word(call, 2)),
                             has(call, 3) ? -(int)number_of(word(call, 3)) : 0);
}

static int do_destroy(struct call *call)
{
    return api_stream_destroy(call->stream.handle);
}

static int do_priority(struct call *call)
{
    return api_stream_priority(call->stream, -(int)number_of(word(call, 2)));
}

static int do_event(struct call *call)
{
    return api_event_create(&events[place_of(word(call, 1))]);
}

static int do_event_destroy(struct call *call)
{
    return api_event_destroy(events[place_of(word(call, 1))]);
}

static int do_launch(struct call *call)
{
    enum api_launch form = API_LAUNCH_KERNEL;
    if (has(call, 3))
        form = strcmp(word(call, 3), "ex") == 0 ? API_LAUNCH_EX : API_LAUNCH_COOPERATIVE;
    return api_launch(device, kernel_of(word(call, 2)), form, call->line->number, call->stream);
}

static int do_copy(struct call *call)
{
    return api_copy(call->stream);
}

static int do_copy_now(struct call *call)
{
    return api_copy_now(call->stream.per_thread);
}

static int do_set(struct call *call)
{
    return api_set(call->stream);
}

static int do_host(struct call *call)
{
    return api_host(call->stream, count_host, NULL);
}

static int do_record(struct call *call)
{
    return api_record(events[place_of(word(call, 2))], call->stream);
}

static int do_wait(struct call *call)
{
    return api_wait(call->stream, events[place_of(word(call, 2))]);
}

static int do_synchronize(struct call *call)
{
    return api_synchronize(call->stream);
}

static int do_synchronize_event(struct call *call)
{
    return api_synchronize_event(events[place_of(word(call, 1))]);
}

static int do_synchronize_context(struct call *call)
{
    (void)call;
    return api_synchronize_context();
}

static int do_begin(struct call *call)
{
    return api_begin(call->stream, (int)number_of(word(call, 2)));
}

static int do_end(struct call *call)
{
    return api_end(call->stream, &graphs[place_of(word(call, 2))]);
}

static int do_mode(struct call *call)
{
    return api_mode((int)number_of(word(call, 1)));
}

static int capture_of(struct call *call, const CUgraphNode **nodes, size_t *count)
{
    int status = 0;
    *nodes = NULL;
    *count = 0;
    int result = api_capture(call->stream, &status, nodes, count);
    snprintf(call->told, sizeof call->told, "status %d nodes %zu", status, *count);
    return result;
}

static int do_ask(struct call *call)
{
    const CUgraphNode *nodes;
    size_t count;
    return capture_of(call, &nodes, &count);
}

/* What the stream depends on now, for later. */
static int do_keep(struct call *call)
{
    const CUgraphNode *nodes;
    size_t count, place = place_of(word(call, 2));
    int result = capture_of(call, &nodes, &count);
    kept[place].count = count < NODES ? count : NODES;
    if (kept[place].count != 0)
        memcpy(kept[place].nodes, nodes, kept[place].count * sizeof *nodes);
    return result;
}

static int do_depend(struct call *call)
{
    unsigned place = place_of(word(call, 2));
    unsigned flags = strcmp(word(call, 3), "set") == 0 ? CU_STREAM_SET_CAPTURE_DEPENDENCIES
                                                       : CU_STREAM_ADD_CAPTURE_DEPENDENCIES;
    return api_depend(call->stream, kept[place].nodes, kept[place].count, flags);
}

static int do_instantiate(struct call *call)
{
    return api_instantiate(&executables[place_of(word(call, 1))], graphs[place_of(word(call, 2))]);
}

static int do_update(struct call *call)
{
    int what = -1;
    int result =
        api_update(executables[place_of(word(call, 1))], graphs[place_of(word(call, 2))], &what);
    snprintf(call->told, sizeof call->told, "update %d", what);
    return result;
}

static int do_graph(struct call *call)
{
    return api_graph_launch(executables[place_of(word(call, 2))], call->stream);
}

static int do_graph_destroy(struct call *call)
{
    return api_graph_destroy(graphs[place_of(word(call, 1))]);
}

static int do_executable_destroy(struct call *call)
{
    return api_executable_destroy(executables[place_of(word(call, 1))]);
}

/* Stream first: the first argument names the stream of the call. */
static const struct {
    const char *name;
    int (*function)(struct call *);
    bool stream_first;
} operations[] = {
    {"retain", do_retain, false},    /* DEVICE */
    {"device", do_device, false},    /* DEVICE */
    {"release", do_release, false},  /* DEVICE */
    {"reset", do_reset, false},      /* DEVICE */
    {"stream", do_stream, true},     /* sN FLAGS [-PRIORITY] */
    {"destroy", do_destroy, true},   /* STREAM */
    {"priority", do_priority, true}, /* STREAM -PRIORITY */
    {"event", do_event, false},      /* eN */
    {"event_destroy", do_event_destroy, false},
    {"launch", do_launch, true},           /* STREAM KERNEL [ex | cooperative] */
    {"copy", do_copy, true},               /* STREAM */
    {"copy_now", do_copy_now, true},       /* null or null_ptsz */
    {"set", do_set, true},                 /* STREAM */
    {"host", do_host, true},               /* STREAM */
    {"record", do_record, true},           /* STREAM eN */
    {"wait", do_wait, true},               /* STREAM eN */
    {"synchronize", do_synchronize, true}, /* STREAM */
    {"synchronize_event", do_synchronize_event, false},
    {"synchronize_context", do_synchronize_context, false},
    {"begin", do_begin, true},              /* STREAM MODE */
    {"end", do_end, true},                  /* STREAM gN */
    {"mode", do_mode, false},               /* MODE */
    {"ask", do_ask, true},                  /* STREAM */
    {"keep", do_keep, true},                /* STREAM kN: its dependencies */
    {"depend", do_depend, true},            /* STREAM kN set | add: on what was kept */
    {"instantiate", do_instantiate, false}, /* xN gN */
    {"update", do_update, false},           /* xN gN */
    {"graph", do_graph, true},              /* STREAM xN */
    {"graph_destroy", do_graph_destroy, false},
    {"executable_destroy", do_executable_destroy, false},
};

static void perform(const struct line *line)
{
    char stream[WORD + 24] = "-";
    struct call call = {.line = line};
    size_t index = 0;
    while (strcmp(operations[index].name, line->words[0]) != 0)
        if (++index == sizeof operations / sizeof *operations)
            give_up(line->words[0]);
    if (operations[index].function == do_stream)
        streams[place_of(line->words[1])].generation++;
    if (operations[index].stream_first)
        call.stream = stream_of(line->words[1], stream, sizeof stream);
    note("begin:%u:%s:%s", line->number, line->words[0], stream);
    int result = operations[index].function(&call);
    note("end:%u", line->number);
    fprintf(results, "%u %s %d %s\n", line->number, line->words[0], result, call.told);
}

/* ---- Threads -----------------------------------------------------------------------------------
 */

static void wait_for_turn(unsigned index)
{
    pthread_mutex_lock(&mutex);
    while (turn != index)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void end_turn(unsigned next)
{
    pthread_mutex_lock(&mutex);
    turn = next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void start_others(void)
{
    note("release:start");
    pthread_mutex_lock(&mutex);
    together = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void join_others(void)
{
    for (unsigned i = 1; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    note("acquire:end");
}

static void tell_live(void)
{
    static const char *const kinds[] = {"module", "library", "stream",     "event",
                                        "graph",  "node",    "executable", "green_context"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        fprintf(results, "live %s %zu\n", kinds[i], driver_live(kinds[i]));
    fprintf(results, "host functions %u\n", atomic_load(&host_calls));
}

/* The child makes the next calls alone, and ends; its parent goes on behind them. */
static unsigned fork_here(const struct line *line, unsigned index)
{
    unsigned count = number_of(line->words[1]);
    int status;
    fflush(results);
    pid_t child = fork();
    if (child == 0) {
        char path[4096];
        snprintf(path, sizeof path, "%s-child", results_path);
        results = fopen(path, "w");
        if (results == NULL)
            _exit(3);
        for (unsigned i = 1; i <= count; i++)
            perform(&lines[index + i]);
        tell_live();
        fflush(results);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        give_up("the child did not end well");
    return index + count;
}

static unsigned run_line(unsigned index)
{
    const struct line *line = &lines[index];
    const char *operation = line->words[0];
    if (strcmp(operation, "together") == 0) {
        start_others();
    } else if (strcmp(operation, "join") == 0) {
        join_others();
    } else if (strcmp(operation, "lock") == 0) {
        pthread_mutex_lock(&mutexes[place_of(line->words[1])]);
        note("acquire:%s", line->words[1]);
    } else if (strcmp(operation, "unlock") == 0) {
        note("release:%s", line->words[1]);
        pthread_mutex_unlock(&mutexes[place_of(line->words[1])]);
    } else if (strcmp(operation, "fork") == 0) {
        return fork_here(line, index);
    } else {
        perform(line);
    }
    return index;
}

static void run_lines(void)
{
    for (unsigned i = 0; i < line_count; i++) {
        if (lines[i].thread != self)
            continue;
        if (!free_running)
            wait_for_turn(i);
        i = run_line(i);
        if (!free_running)
            end_turn(i + 1);
    }
}

static void *work(void *data)
{
    self = (unsigned)(uintptr_t)data;
    if (free_running) {
        pthread_mutex_lock(&mutex);
        while (!together)
            pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
        note("acquire:start");
    }
    run_lines();
    if (free_running)
        note("release:end");
    return NULL;
}

/* ---- Start -------------------------------------------------------------------------------------
 */

static void read_script(const char *path)
{
    char text[256], mode[8];
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL ||
        sscanf(text, "%7s %u", mode, &thread_count) != 2 || thread_count == 0 ||
        thread_count > THREADS)
        give_up(path);
    free_running = strcmp(mode, "free") == 0;
    for (unsigned number = 2; fgets(text, sizeof text, file) != NULL; number++) {
        struct line *line = &lines[line_count++];
        char *rest = text, *at;
        if (line_count == LINES)
            give_up("too many lines");
        line->number = number;
        line->thread = number_of(strtok_r(rest, " \n", &rest));
        while ((at = strtok_r(rest, " \n", &rest)) != NULL && line->count < WORDS)
            snprintf(line->words[line->count++], WORD, "%s", at);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        give_up("usage: SCRIPT RESULTS");
    read_script(argv[1]);
    results_path = argv[2];
    results = fopen(results_path, "w");
    if (results == NULL)
        give_up(results_path);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL)
        give_up(dlerror());
    driver_note = (__typeof__(driver_note))dlsym(driver, "recording_driver_note");
    driver_live = (__typeof__(driver_live))dlsym(driver, "recording_driver_live");
    if (driver_note == NULL || driver_live == NULL)
        give_up("not the recording driver");
    for (unsigned i = 0; i < PLACES; i++)
        pthread_mutex_init(&mutexes[i], NULL);
    for (unsigned i = 1; i < thread_count; i++)
        pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
    run_lines();
    if (!free_running)
        for (unsigned i = 1; i < thread_count; i++)
            pthread_join(threads[i], NULL);
    tell_live();
    return fclose(results) == 0 ? 0 : 1;
}
