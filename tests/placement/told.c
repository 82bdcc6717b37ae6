/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: placement_told SCRIPT RESULTS
 *
 * Runs the lines of a script (operations[] below, and those of told_stream.c and told_graph.c),
 * goes on whatever a call answers, and writes for each line its result and what the call told. With
 * the library preloaded and without it the two files have to be the same.
 */
#include "told.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/policy.h"
#include "recording_driver.h"
#include "report/report.h"

/* "wide" needs clusters of 4, "huge" fits 1 block on an SM. */
const char *const told_kernels[TOLD_KERNELS] = {"to_side", "to_main", "plain", "eager", "clustered",
                                                "unsafe",  "wide",    "huge",  "spread"};
static const char image[] = "kernel to_side params=4\n"
                            "kernel to_main params=4\n"
                            "kernel plain params=4\n"
                            "kernel eager params=4\n"
                            "kernel clustered params=4\n"
                            "kernel unsafe params=4\n"
                            "kernel wide params=4 cluster=4,1,1\n"
                            "kernel huge params=4 static_shared=120000\n"
                            "kernel spread params=4\n";

enum { LINES = 256, DEVICES = 2 };

CUcontext told_contexts[TOLD_PLACES];
CUstream told_streams[TOLD_PLACES];
CUgraph told_graphs[TOLD_PLACES];
CUgraphNode told_nodes[TOLD_PLACES];
CUgraphExec told_executables[TOLD_PLACES];

static struct told_line lines[LINES];
static unsigned line_count;
static FILE *results;
static char said[1024];
static void *driver;

/* Contexts that modules were loaded in. */
static struct {
    CUcontext context;
    CUmodule module;
    CUfunction functions[TOLD_KERNELS];
} loaded[TOLD_PLACES];
static unsigned loaded_count;
static CUlibrary library;
static CUkernel kernels[TOLD_KERNELS];
static CUevent completion;

void told_give_up(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(2);
}

/* ---- The words of a line ---- */

const char *told_word(const struct told_line *line, unsigned index)
{
    if (index >= line->count)
        told_give_up("a word is missing");
    return line->words[index];
}

long told_number(const char *word)
{
    char *end;
    long number = strtol(word, &end, 0);
    if (end == word || *end != '\0')
        told_give_up(word);
    return number;
}

unsigned told_place(const char *word)
{
    long place = told_number(word + 1);
    if (place < 0 || place >= TOLD_PLACES)
        told_give_up(word);
    return (unsigned)place;
}

const char *told_text(const struct told_line *line, const char *key)
{
    size_t length = strlen(key);
    for (unsigned i = 1; i < line->count; i++)
        if (strncmp(line->words[i], key, length) == 0 && line->words[i][length] == '=')
            return line->words[i] + length + 1;
    return NULL;
}

long told_option(const struct told_line *line, const char *key, long otherwise)
{
    const char *text = told_text(line, key);
    return text == NULL ? otherwise : told_number(text);
}

void told_three(const struct told_line *line, const char *key, unsigned three[3], unsigned first)
{
    const char *text = told_text(line, key);
    three[0] = first;
    three[1] = three[2] = 1;
    if (text != NULL && sscanf(text, "%u/%u/%u", &three[0], &three[1], &three[2]) < 1)
        told_give_up(text);
}

/* ---- What is written down ---- */

void told_say(const char *format, ...)
{
    size_t length = strlen(said);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said + length, sizeof said - length, format, arguments);
    va_end(arguments);
}

const char *told_context_name(CUcontext context)
{
    static char text[8][24];
    static unsigned next;
    if (context == NULL)
        return "none";
    for (unsigned i = 0; i < TOLD_PLACES; i++)
        if (told_contexts[i] == context) {
            next = (next + 1) % 8;
            snprintf(text[next], sizeof text[next], "c%u", i);
            return text[next];
        }
    return "another";
}

const char *told_function_name(CUfunction function)
{
    static char text[8][48];
    static unsigned next;
    if (function == NULL)
        return "none";
    for (unsigned i = 0; i < loaded_count; i++)
        for (unsigned j = 0; j < TOLD_KERNELS; j++)
            if (loaded[i].functions[j] == function) {
                next = (next + 1) % 8;
                snprintf(text[next], sizeof text[next], "%s@%s", told_kernels[j],
                         told_context_name(loaded[i].context));
                return text[next];
            }
    for (unsigned j = 0; j < TOLD_KERNELS; j++) {
        CUfunction here;
        if (kernels[j] != NULL && cuKernelGetFunction(&here, kernels[j]) == CUDA_SUCCESS &&
            here == function) {
            next = (next + 1) % 8;
            snprintf(text[next], sizeof text[next], "%s of the library", told_kernels[j]);
            return text[next];
        }
    }
    return "another";
}

const char *told_kernel_name(CUkernel kernel)
{
    if (kernel == NULL)
        return "none";
    for (unsigned j = 0; j < TOLD_KERNELS; j++)
        if (kernels[j] == kernel)
            return told_kernels[j];
    return "another";
}

void *told_symbol(const char *name)
{
    return dlsym(driver, name);
}

void *told_runtime_symbol(const char *name)
{
    static void *runtime;
    if (runtime == NULL)
        runtime = dlopen("libcudart.so.13", RTLD_NOW);
    return runtime == NULL ? NULL : dlsym(runtime, name);
}

struct told_kernel told_kernel(const char *name)
{
    struct told_kernel found = {NULL, NULL};
    CUcontext current = NULL;
    unsigned number = 0;
    while (number < TOLD_KERNELS && strcmp(name, told_kernels[number]) != 0)
        number++;
    if (number == TOLD_KERNELS)
        told_give_up(name);
    cuCtxGetCurrent(&current);
    found.kernel = kernels[number];
    for (unsigned i = 0; i < loaded_count; i++)
        if (loaded[i].context == current)
            found.function = loaded[i].functions[number];
    return found;
}

CUstream told_stream(const char *word)
{
    if (strcmp(word, "null") == 0)
        return NULL;
    if (strcmp(word, "legacy") == 0)
        return CU_STREAM_LEGACY;
    if (strcmp(word, "per_thread") == 0)
        return CU_STREAM_PER_THREAD;
    return told_streams[told_place(word)];
}

void **told_arguments(void)
{
    static unsigned number = 7;
    static void *arguments[] = {&number};
    return arguments;
}

/* ---- Contexts and kernels ---- */

/* retain cN DEVICE: a primary context */
static int do_retain(const struct told_line *line)
{
    return (int)cuDevicePrimaryCtxRetain(&told_contexts[told_place(told_word(line, 1))],
                                         (int)told_number(told_word(line, 2)));
}

/* create_context cN DEVICE: becomes current */
static int do_create_context(const struct told_line *line)
{
    return (int)cuCtxCreate_v2(&told_contexts[told_place(told_word(line, 1))], 0,
                               (int)told_number(told_word(line, 2)));
}

/* current cN, or none */
static int do_current(const struct told_line *line)
{
    const char *word = told_word(line, 1);
    bool none = strcmp(word, "none") == 0;
    return (int)cuCtxSetCurrent(none ? NULL : told_contexts[told_place(word)]);
}

/* load: the kernels, into the current context */
static int do_load(const struct told_line *line)
{
    unsigned place = 0;
    CUcontext current = NULL;
    CUmodule module;
    (void)line;
    CUresult result = cuCtxGetCurrent(&current);
    while (place < loaded_count && loaded[place].context != current)
        place++;
    if (library == NULL && result == CUDA_SUCCESS) {
        result = cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
        for (unsigned j = 0; j < TOLD_KERNELS && result == CUDA_SUCCESS; j++)
            result = cuLibraryGetKernel(&kernels[j], library, told_kernels[j]);
    }
    if (result == CUDA_SUCCESS)
        result = cuModuleLoadData(&module, image);
    if (result != CUDA_SUCCESS)
        return (int)result;
    if (place == loaded_count)
        loaded_count++;
    loaded[place].context = current;
    loaded[place].module = module;
    for (unsigned j = 0; j < TOLD_KERNELS && result == CUDA_SUCCESS; j++)
        result = cuModuleGetFunction(&loaded[place].functions[j], module, told_kernels[j]);
    return (int)result;
}

/* unload: the module of the current context */
static int do_unload(const struct told_line *line)
{
    CUcontext current = NULL;
    (void)line;
    cuCtxGetCurrent(&current);
    for (unsigned i = 0; i < loaded_count; i++)
        if (loaded[i].context == current) {
            CUresult result = cuModuleUnload(loaded[i].module);
            memset(&loaded[i], 0, sizeof loaded[i]);
            return (int)result;
        }
    return -2;
}

static int do_unload_library(const struct told_line *line)
{
    (void)line;
    CUresult result = cuLibraryUnload(library);
    library = NULL;
    memset(kernels, 0, sizeof kernels);
    return (int)result;
}

/* release DEVICE, reset DEVICE, destroy_context cN */
static int do_release(const struct told_line *line)
{
    return (int)cuDevicePrimaryCtxRelease_v2((int)told_number(told_word(line, 1)));
}

static int do_reset(const struct told_line *line)
{
    return (int)cuDevicePrimaryCtxReset_v2((int)told_number(told_word(line, 1)));
}

static int do_destroy_context(const struct told_line *line)
{
    return (int)cuCtxDestroy_v2(told_contexts[told_place(told_word(line, 1))]);
}

/* state DEVICE: whether the primary context is active */
static int do_state(const struct told_line *line)
{
    unsigned flags = 0;
    int active = -1;
    int result =
        (int)cuDevicePrimaryCtxGetState((int)told_number(told_word(line, 1)), &flags, &active);
    told_say("active %d", active);
    return result;
}

static int do_who(const struct told_line *line)
{
    CUcontext current = NULL;
    (void)line;
    int result = (int)cuCtxGetCurrent(&current);
    told_say("%s", told_context_name(current));
    return result;
}

/* ---- Launches ---- */

static unsigned add_attributes(const struct told_line *line, CUlaunchAttribute *list)
{
    unsigned count = 0, cluster[3];
    memset(list, 0, TOLD_WORDS * sizeof *list);
    if (told_text(line, "cluster") != NULL) {
        told_three(line, "cluster", cluster, 1);
        list[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        list[count].value.clusterDim.x = cluster[0];
        list[count].value.clusterDim.y = cluster[1];
        list[count++].value.clusterDim.z = cluster[2];
    }
    if (told_text(line, "cooperative") != NULL) {
        list[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        list[count++].value.cooperative = (int)told_option(line, "cooperative", 0);
    }
    if (told_text(line, "serialization") != NULL) {
        list[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        list[count++].value.programmaticStreamSerializationAllowed =
            (int)told_option(line, "serialization", 0);
    }
    if (told_text(line, "completion") != NULL) {
        if (completion == NULL)
            cuEventCreate(&completion, CU_EVENT_DISABLE_TIMING);
        list[count].id = (CUlaunchAttributeID)12;
        memcpy(&list[count++].value, &completion, sizeof completion);
    }
    if (told_text(line, "updatable") != NULL) {
        list[count].id = (CUlaunchAttributeID)13;
        list[count++].value.pad[0] = (char)told_option(line, "updatable", 1);
    }
    return count;
}

/* launch STREAM KERNEL [grid=] [block=] [form=plain|ex|cooperative|kernel] [ptsz=1] [attributes] */
static int do_launch(const struct told_line *line)
{
    struct told_kernel kernel = told_kernel(told_word(line, 2));
    const char *form = told_text(line, "form");
    CUstream stream = told_stream(told_word(line, 1));
    bool per_thread = told_option(line, "ptsz", 0) != 0;
    CUlaunchAttribute list[TOLD_WORDS];
    unsigned grid[3], block[3], count = add_attributes(line, list);
    told_three(line, "grid", grid, 4);
    told_three(line, "block", block, 64);
    CUfunction function = kernel.function;
    if (form != NULL && strcmp(form, "kernel") == 0)
        function = (CUfunction)(void *)kernel.kernel;
    if (form != NULL && strcmp(form, "cooperative") == 0)
        return (int)(per_thread ? cuLaunchCooperativeKernel_ptsz : cuLaunchCooperativeKernel)(
            function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, stream,
            told_arguments());
    if (count == 0 && (form == NULL || strcmp(form, "ex") != 0))
        return (int)(per_thread ? cuLaunchKernel_ptsz : cuLaunchKernel)(
            function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, stream,
            told_arguments(), NULL);
    CUlaunchConfig config = {grid[0],  grid[1], grid[2], block[0], block[1],
                             block[2], 0,       stream,  list,     count};
    return (int)(per_thread ? cuLaunchKernelEx_ptsz : cuLaunchKernelEx)(&config, function,
                                                                        told_arguments(), NULL);
}

/* ---- The process ---- */

static void tell_live(void)
{
    static const char *const kinds[] = {"context", "stream",        "event",     "graph",
                                        "node",    "green_context", "executable"};
    __typeof__(&recording_driver_live) live =
        (__typeof__(live))told_symbol("recording_driver_live");
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        told_say("%s %zu ", kinds[i], live(kinds[i]));
}

static int do_live(const struct told_line *line)
{
    (void)line;
    tell_live();
    return 0;
}

static int do_note(const struct told_line *line)
{
    __typeof__(&recording_driver_note) note =
        (__typeof__(note))told_symbol("recording_driver_note");
    note(told_word(line, 1));
    return 0;
}

/* mode observe, enforce or off: as the cudapolicy command sets it in a running process; nothing
 * without the library. */
static int do_mode(const struct told_line *line)
{
    const char *report = getenv("CUDAPOLICY_REPORT"), *name = told_word(line, 1);
    char path[4096], error[256];
    int mode = strcmp(name, "observe") == 0   ? POLICY_MODE_OBSERVE
               : strcmp(name, "enforce") == 0 ? POLICY_MODE_ENFORCE
                                              : POLICY_MODE_OFF;
    if (report == NULL)
        return 0;
    snprintf(path, sizeof path, "%s.counters", report);
    if (!report_counters_set_mode(path, (uint8_t)mode, error, sizeof error))
        told_give_up(error);
    return 0;
}

static void run_line(const struct told_line *line);

/* fork COUNT: the next lines are done by a child, to whose end the parent waits */
static unsigned fork_here(unsigned index)
{
    unsigned count = (unsigned)told_number(told_word(&lines[index], 1));
    int status;
    fflush(results);
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 1; i <= count; i++)
            run_line(&lines[index + i]);
        fflush(results);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        told_give_up("the child did not end well");
    return index + count;
}

static const struct {
    const char *name;
    int (*function)(const struct told_line *line);
} operations[] = {
    {"retain", do_retain},
    {"create_context", do_create_context},
    {"current", do_current},
    {"load", do_load},
    {"unload", do_unload},
    {"unload_library", do_unload_library},
    {"release", do_release},
    {"reset", do_reset},
    {"destroy_context", do_destroy_context},
    {"state", do_state},
    {"who", do_who},
    {"launch", do_launch},
    {"live", do_live},
    {"note", do_note},
    {"mode", do_mode},
};

static int perform(const struct told_line *line)
{
    for (unsigned i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(line->words[0], operations[i].name) == 0)
            return operations[i].function(line);
    int result = told_do_stream(line);
    if (result == -1)
        result = told_do_graph(line);
    if (result == -1)
        told_give_up(line->words[0]);
    return result;
}

static void run_line(const struct told_line *line)
{
    said[0] = '\0';
    int result = perform(line);
    fprintf(results, "%u %s: %d%s%s\n", line->number, line->words[0], result,
            said[0] != '\0' ? ", " : "", said);
}

static void read_script(const char *path)
{
    char text[512];
    FILE *file = fopen(path, "r");
    if (file == NULL)
        told_give_up(path);
    for (unsigned number = 1; fgets(text, sizeof text, file) != NULL; number++) {
        struct told_line *line = &lines[line_count++];
        char *rest = text, *at;
        if (line_count == LINES)
            told_give_up("too many lines");
        line->number = number;
        while ((at = strtok_r(rest, " \n", &rest)) != NULL && line->count < TOLD_WORDS)
            snprintf(line->words[line->count++], sizeof line->words[0], "%s", at);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        told_give_up("usage: SCRIPT RESULTS");
    read_script(argv[1]);
    results = fopen(argv[2], "w");
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (results == NULL || driver == NULL)
        told_give_up(argv[2]);
    if (cuInit(0) != CUDA_SUCCESS)
        told_give_up("cuInit");
    for (unsigned i = 0; i < line_count; i++) {
        if (strcmp(lines[i].words[0], "fork") == 0)
            i = fork_here(i);
        else
            run_line(&lines[i]);
    }
    return fclose(results) == 0 ? 0 : 1;
}
