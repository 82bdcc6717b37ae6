/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress in both its forms: the real one answers first, with the same arguments; only a
 * pointer that it gave is ever replaced. */
#include "preload/wrap.h"

#include "report/log.h"
#include "report/report.h"

/* The log at its most talkative is also the record of what a libcudart asks for. */
static CUresult answer(const struct preload_slot *slot, const void *caller, const char *symbol,
                       void **function, int version, cuuint64_t flags, CUresult result)
{
    void *real = result == CUDA_SUCCESS && function != NULL ? *function : NULL;

    report_count_entry(preload_slot_entry(slot));
    if (symbol != NULL && real != NULL && !preload_library_at(caller)->is_driver)
        *function = preload_wrap_answer(symbol, version, flags, real);
    report_log(REPORT_LOG_DEBUG,
               "cuGetProcAddress symbol=%s version=%d flags=%llu answer=%s result=%d",
               symbol != NULL ? symbol : "(null)", version, (unsigned long long)flags,
               real == NULL        ? "null"
               : *function != real ? "wrapped"
                                   : "pointer",
               (int)result);
    return result;
}

static CUresult get_proc_address_v1(const struct preload_slot *slot, const void *caller,
                                    const char *symbol, void **function, int version,
                                    cuuint64_t flags)
{
    CUresult (*real)(const char *, void **, int, cuuint64_t) = wrap_real(slot);

    return answer(slot, caller, symbol, function, version, flags,
                  real(symbol, function, version, flags));
}

static CUresult get_proc_address_v2(const struct preload_slot *slot, const void *caller,
                                    const char *symbol, void **function, int version,
                                    cuuint64_t flags, int *status)
{
    CUresult (*real)(const char *, void **, int, cuuint64_t, int *) = wrap_real(slot);

    return answer(slot, caller, symbol, function, version, flags,
                  real(symbol, function, version, flags, status));
}

#define RESOLVER(symbol, base, version, variant, wrapper, parameters, arguments)                   \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#include "preload/entries.def"
