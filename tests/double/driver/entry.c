/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress, from the one table of functions. Documented in cuda.h: the newest variant that
 * is not newer than the version asked for; per-thread variants only with their flag, and the legacy
 * one where there is no per-thread variant; a version above the driver's own is an invalid value
 * (also measured); a name that is not there succeeds with a null pointer (measured for "").
 */
#include "driver.h"
#include "newer.h"
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum variant { VARIANT_PLAIN, VARIANT_PER_THREAD };

struct function {
    const char *name;   /* what is asked for */
    const char *symbol; /* what is exported */
    int version;
    enum variant variant;
    void *exported;
    void *distinct; /* another address of the same function */
};

/* Each entry's signature is the one that cudaTypedefs.h gives for this name and version. */
#define CHECK(symbol, type)                                                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), type),                        \
                   #symbol " does not have the signature of " #type);
#define PLAIN(name, version, symbol) CHECK(symbol, PFN_##name##_v##version)
#define PTSZ(name, version, symbol) CHECK(symbol, PFN_##name##_v##version##_ptsz)
#define PTDS(name, version, symbol) CHECK(symbol, PFN_##name##_v##version##_ptds)
#include "functions.def"
#undef PLAIN
#undef PTSZ
#undef PTDS

/*
 * A second address for each function, as real drivers may have: it notes that the call came by a
 * resolved pointer and jumps on with all registers as they were.
 */
#if defined(__x86_64__)
#define JUMP(symbol)                                                                               \
    "movq driver_resolved@GOTTPOFF(%rip), %rax\n"                                                  \
    "movb $1, %fs:(%rax)\n"                                                                        \
    "jmp " #symbol "@PLT\n"
#elif defined(__aarch64__)
#define JUMP(symbol)                                                                               \
    "adrp x16, :gottprel:driver_resolved\n"                                                        \
    "ldr x16, [x16, :gottprel_lo12:driver_resolved]\n"                                             \
    "mrs x17, tpidr_el0\n"                                                                         \
    "add x16, x16, x17\n"                                                                          \
    "mov w17, #1\n"                                                                                \
    "strb w17, [x16]\n"                                                                            \
    "b " #symbol "\n"
#else
#error "no thunk for this architecture"
#endif
#define PLAIN(name, version, symbol)                                                               \
    __asm__(".pushsection .text\n"                                                                 \
            ".globl resolved_" #symbol "\n"                                                        \
            ".hidden resolved_" #symbol "\n"                                                       \
            ".type resolved_" #symbol ", %function\n"                                              \
            "resolved_" #symbol ":\n" JUMP(symbol) ".popsection\n");                               \
    extern char resolved_##symbol[];
#define PTSZ PLAIN
#define PTDS PLAIN
#include "functions.def"
#undef PLAIN
#undef PTSZ
#undef PTDS

#define ENTRY(name, version, symbol, variant)                                                      \
    {#name, #symbol, version, variant, (void *)symbol, resolved_##symbol},
#define PLAIN(name, version, symbol) ENTRY(name, version, symbol, VARIANT_PLAIN)
#define PTSZ(name, version, symbol) ENTRY(name, version, symbol, VARIANT_PER_THREAD)
#define PTDS(name, version, symbol) ENTRY(name, version, symbol, VARIANT_PER_THREAD)
static const struct function functions[] = {
#include "functions.def"
};

#define FUNCTION_COUNT (sizeof(functions) / sizeof(functions[0]))

/* What runtimes ask for and real drivers have, while no test calls it. */
static const struct {
    const char *name;
    int version;
} absent[] = {
#include "absent.inc"
};

#define ABSENT_COUNT (sizeof(absent) / sizeof(absent[0]))

/* Stands in for each of them; it takes no notice of its arguments. */
static CUresult not_supported(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* The linker binds every name inside this library except cuGetProcAddress_v2 (exports.list), which
 * CALL_OUT calls through the PLT; the table must hold our own definition all the same. */
extern __typeof__(cuGetProcAddress_v2) own_cuGetProcAddress_v2
    __attribute__((alias("cuGetProcAddress_v2"), visibility("hidden")));

static const struct function *newest(const char *name, int version, enum variant variant,
                                     bool *known)
{
    const struct function *best = NULL;
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        const struct function *function = &functions[i];
        if (strcmp(function->name, name) != 0 || function->version > configuration.version)
            continue;
        *known = true;
        if (function->variant == variant && function->version <= version &&
            (best == NULL || function->version > best->version))
            best = function;
    }
    return best;
}

/* Whether a real driver has a variant newer than `than` that we lack. */
static bool is_absent(const char *name, int version, int than)
{
    for (size_t i = 0; i < ABSENT_COUNT; i++)
        if (absent[i].version > than && absent[i].version <= version &&
            absent[i].version <= configuration.version && strcmp(absent[i].name, name) == 0)
            return true;
    return false;
}

/* Our own one, whatever a preloaded library puts in front of cuGetProcAddress_v2. */
static void *exported_function(size_t index)
{
    if (strcmp(functions[index].symbol, "cuGetProcAddress_v2") == 0)
        return (void *)own_cuGetProcAddress_v2;
    return functions[index].exported;
}

static bool has_function(size_t index)
{
    const struct function *function = &functions[index];
    return function->version <= configuration.version &&
           !configuration_lists(configuration.hide, function->name);
}

void entry_hide(void)
{
    hide_apply(FUNCTION_COUNT, exported_function, has_function);
}

static void *function_pointer(const struct function *function)
{
    if (strcmp(function->symbol, "cuGetProcAddress_v2") == 0)
        return (void *)own_cuGetProcAddress_v2;
    return configuration.distinct_pointers ? function->distinct : function->exported;
}

static CUresult resolve(struct call *call, const char *name, void **pointer, int version,
                        cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    const cuuint64_t both =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (name == NULL || pointer == NULL || version > configuration.version || (flags & ~both) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    const struct function *found = NULL;
    if (!configuration_lists(configuration.hide, name)) {
        if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0)
            found = newest(name, version, VARIANT_PER_THREAD, &known);
        if (found == NULL)
            found = newest(name, version, VARIANT_PLAIN, &known);
    }
    bool stub = !configuration_lists(configuration.hide, name) &&
                is_absent(name, version, found == NULL ? 0 : found->version);
    *pointer = stub ? (void *)not_supported : NULL;
    if (!stub && found != NULL)
        *pointer = function_pointer(found);
    CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
    if (*pointer == NULL)
        answer = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                       : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (status != NULL)
        *status = answer;
    const char *text = found == NULL ? "null" : found->symbol;
    call_add(call, "answer=%s status=%d", stub ? "stub" : text, (int)answer);
    return *pointer != NULL || name[0] == '\0' ? CUDA_SUCCESS
                                               : (CUresult)configuration.unknown_name_result;
}

static void call_question(struct call *call, const char *symbol, int version, cuuint64_t flags)
{
    call_add(call, "symbol=%s version=%d flags=%llu", symbol == NULL ? "null" : symbol, version,
             (unsigned long long)flags);
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    struct call call = call_begin_early(__func__);
    call_question(&call, symbol, cudaVersion, flags);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS)
        result = resolve(&call, symbol, pfn, cudaVersion, flags, symbolStatus);
    return call_end(&call, result);
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    struct call call = call_begin_early(__func__);
    call_question(&call, symbol, cudaVersion, flags);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS)
        result = resolve(&call, symbol, pfn, cudaVersion, flags, NULL);
    return call_end(&call, result);
}

/* The tables behind this are private to NVIDIA's driver: there are none here. */
CUresult CUDAAPI cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    struct call call = call_begin_early(__func__);
    CUresult result = call.result;
    if (result == CUDA_SUCCESS) {
        if (ppExportTable != NULL)
            *ppExportTable = NULL;
        result = pExportTableId == NULL || ppExportTable == NULL ? CUDA_ERROR_INVALID_VALUE
                                                                 : CUDA_ERROR_NOT_FOUND;
    }
    return call_end(&call, result);
}

/*
 * libcuda on WSL2 looks up and calls "cuInit" by dlsym from inside its own cuInit, and exported
 * names of a preloaded library stand in front of its PLT calls. Done here on request, without the
 * lock. A result other than our own address is what an interposer answered: it is called, as the
 * real one would do, once.
 */
void driver_call_out(void)
{
    static __thread bool inside;
    if (inside)
        return;
    inside = true;
    void *pointer;
    cuGetProcAddress_v2("cuInit", &pointer, configuration.version, 0, NULL);
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    CUresult(CUDAAPI * init)(unsigned int);
    *(void **)&init = dlsym(self == NULL ? RTLD_DEFAULT : self, "cuInit");
    if (init != NULL)
        init(0);
    if (self != NULL)
        dlclose(self);
    inside = false;
}
