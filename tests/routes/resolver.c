/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks cuGetProcAddress for every name of the table, and for some that are not in it, at many
 * versions and with all flags, and compares with what the driver itself answers: the same result,
 * the same status, and another pointer only where the driver's own is the function of a row of the
 * table.
 *
 * usage: resolver v1|v2
 */
#include "matrix.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef CUresult resolver_v1(const char *, void **, int, cuuint64_t);
typedef CUresult resolver_v2(const char *, void **, int, cuuint64_t, int *);

struct answer {
    CUresult result;
    void *function;
    int status;
};

bool enforced;

static const struct {
    const char *symbol, *base;
    int version;
    int flags;
} table[] = {
#define PLAIN 0
#define PTSZ 2
#define DRIVER(symbol, base, version, variant, wrapper, parameters, arguments)                     \
    {#symbol, base, version, variant},
#include "preload/entries.def"
};

enum {
    ROWS = sizeof table / sizeof table[0],
};

static bool first_form;

static struct answer ask(void *resolver, const char *name, int version, cuuint64_t flags)
{
    struct answer answer = {.function = (void *)1, .status = -1};

    if (first_form)
        answer.result = ((resolver_v1 *)resolver)(name, &answer.function, version, flags);
    else
        answer.result =
            ((resolver_v2 *)resolver)(name, &answer.function, version, flags, &answer.status);
    return answer;
}

/* The row whose function the driver answered, preferring the variant that was asked for. */
static int row_of(const char *name, const void *function, cuuint64_t flags)
{
    int found = -1;

    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].base, name) == 0 && function != NULL &&
            raw_dlsym(driver_handle, table[i].symbol) == function &&
            (found < 0 || (table[i].flags == 2) == (flags == 2)))
            found = i;
    return found;
}

/* One question. The wrapper of a row must be the same as dlsym gives for the row's symbol. */
static int compare(void *wrapped, void *own, const char *name, int version, cuuint64_t flags)
{
    const struct answer theirs = ask(own, name, version, flags);
    const struct answer ours = ask(wrapped, name, version, flags);
    const int row = theirs.result == CUDA_SUCCESS ? row_of(name, theirs.function, flags) : -1;
    const void *wanted =
        row >= 0 ? dlsym(driver_handle, table[row].symbol) : (const void *)theirs.function;

    if (ours.result == theirs.result && ours.status == theirs.status && ours.function == wanted &&
        (row < 0 || ours.function != theirs.function))
        return 0;
    printf("%s, version %d, flags %d: result %d and %d, status %d and %d, %s\n", name, version,
           (int)flags, (int)ours.result, (int)theirs.result, ours.status, theirs.status,
           ours.function == wanted ? "the right pointer" : "another pointer");
    return 1;
}

/* A recording driver built with headers before 12.5 answers for it without having it. */
static bool is_missing(const char *base)
{
    return CUDA_VERSION < 12050 && strcmp(base, "cuGreenCtxStreamCreate") == 0;
}

int main(int argc, char **argv)
{
    static const char *const others[] = {"cuInit",
                                         "cuMemAlloc",
                                         "cuLaunch",
                                         "cuLaunchHostFunc",
                                         "cuNoSuch",
                                         "cuLaunchKernel_ptsz",
                                         "",
                                         "cudnnCreate",
                                         "cuStreamGetAttribute"};
    static const int versions[] = {1000,  2000,  3020,  4000,  5050,  7000,  9000,  10000,
                                   10010, 10020, 11000, 11030, 11060, 12000, 12020, 12030,
                                   12050, 13000, 13030, 13040, 13050, 13060, 99000, -1};
    void *own, *wrapped;
    int wrong = 0, asked = 0;

    first_form = argc > 1 && strcmp(argv[1], "v1") == 0;
    driver_start(RTLD_NOW | RTLD_LOCAL);
    own = raw(first_form ? "cuGetProcAddress" : "cuGetProcAddress_v2");
    wrapped = dlsym(driver_handle, first_form ? "cuGetProcAddress" : "cuGetProcAddress_v2");
    if (wrapped == own) {
        printf("the resolver is not wrapped\n");
        return 1;
    }
    for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
        for (cuuint64_t flags = 0; flags < 4; flags++) {
            for (int i = 0; i < ROWS; i++, asked++)
                wrong += is_missing(table[i].base)
                             ? 0
                             : compare(wrapped, own, table[i].base, versions[v], flags);
            for (size_t i = 0; i < sizeof others / sizeof others[0]; i++, asked++)
                wrong += compare(wrapped, own, others[i], versions[v], flags);
        }
    printf("%d questions\n", asked);
    return wrong > 0;
}
