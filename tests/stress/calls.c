/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording_driver.h"
#include "report/layout.h"

enum {
    SYMBOLS = 256,
    PER_THREAD = 2, /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
};

static void *driver;
static FILE *results;
static unsigned number;
static bool past; /* the next call goes past the preloaded library */
static __typeof__(&recording_driver_note) note;
static __typeof__(&recording_driver_live) live;
static __typeof__(&cuGetProcAddress_v2) resolver;

static struct {
    const char *symbol;
    void *function;
} found[SYMBOLS];

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, dlerror());
    exit(2);
}

void calls_start(bool by_resolver, const char *path)
{
    results = fopen(path, "w");
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (results == NULL || driver == NULL)
        give_up(path);
    note = (__typeof__(note))dlsym(driver, "recording_driver_note");
    live = (__typeof__(live))dlsym(driver, "recording_driver_live");
    if (note == NULL || live == NULL)
        give_up("not the recording driver");
    if (by_resolver)
        resolver = (__typeof__(resolver))dlsym(driver, "cuGetProcAddress_v2");
}

/* ---- Look-ups ---------------------------------------------------------------------------------
 */

static const struct {
    const char *symbol, *base;
    int version, flags;
} functions[] = {
#define PLAIN(base, version, symbol) {#symbol, #base, version, 0},
#define PTSZ(base, version, symbol) {#symbol, #base, version, PER_THREAD},
#define PTDS PTSZ
#include "driver/functions.def"
};

static void *resolve(const char *symbol)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].symbol, symbol) == 0 &&
            resolver(functions[i].base, &function, functions[i].version,
                     (cuuint64_t)functions[i].flags, &status) == CUDA_SUCCESS)
            return function;
    return NULL;
}

void *calls_find(const char *symbol)
{
    unsigned i = 0;
    while (i < SYMBOLS && found[i].symbol != NULL && strcmp(found[i].symbol, symbol) != 0)
        i++;
    if (i == SYMBOLS)
        give_up("too many functions");
    if (found[i].symbol == NULL) {
        found[i].symbol = symbol;
        found[i].function = resolver != NULL ? resolve(symbol) : dlsym(driver, symbol);
    }
    return found[i].function;
}

void *calls_find_past_preload(const char *symbol)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    void *(*c_library_dlsym)(void *, const char *) = NULL;
    void *c_library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; i < 3 && c_library_dlsym == NULL && c_library != NULL; i++)
        c_library_dlsym = (void *(*)(void *, const char *))dlvsym(c_library, "dlsym", versions[i]);
    if (c_library_dlsym == NULL)
        give_up("dlsym");
    dlclose(c_library);
    past = true;
    return c_library_dlsym(driver, symbol);
}

/* ---- Writing down -----------------------------------------------------------------------------
 */

void calls_begin(const char *symbol)
{
    char text[160];
    snprintf(text, sizeof text, "begin:%u:%s:%s", ++number, symbol, past ? "past" : "through");
    note(text);
    past = false;
}

CUresult calls_end(const char *symbol, CUresult result)
{
    char text[32];
    snprintf(text, sizeof text, "end:%u", number);
    note(text);
    fprintf(results, "%u %s %d\n", number, symbol, (int)result);
    return result;
}

void calls_tell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(results, "%u tells ", number);
    vfprintf(results, format, arguments);
    fputc('\n', results);
    va_end(arguments);
}

/* From the file in which the library counts. */
static void tell_gate(void)
{
    const char *report = getenv("CUDAPOLICY_REPORT");
    struct report_header header;
    char path[4096];
    if (report == NULL)
        return;
    snprintf(path, sizeof path, "%s.counters", report);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, &header, sizeof header) != (ssize_t)sizeof header)
        fprintf(results, "# no gate\n");
    else
        fprintf(results, "# gate %u\n", header.control.part.gate);
    if (file >= 0)
        close(file);
}

void calls_finish(void)
{
    static const char *const kinds[] = {"context",  "module",     "library",       "kernel",
                                        "function", "stream",     "event",         "graph",
                                        "node",     "executable", "green_context", "description"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        calls_tell("live %s %zu", kinds[i], live(kinds[i]));
    tell_gate();
    if (fclose(results) != 0)
        give_up("results");
}
