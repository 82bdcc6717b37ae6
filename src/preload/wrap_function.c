/* SPDX-License-Identifier: Apache-2.0 */
/* The start; names of functions, the lifetimes of what holds them, and their attributes. */
#include "preload/wrap.h"

#include "decide/decide.h"
#include "decide/device.h"
#include "place/own.h"
#include "place/partition.h"

static void count(const struct preload_slot *slot)
{
    report_count_entry(preload_slot_entry(slot));
}

static CUresult initialise(const struct preload_slot *slot, const void *caller, unsigned flags)
{
    CUresult (*real)(unsigned) = wrap_real(slot);

    (void)caller;
    count(slot);
    return real(flags);
}

/* ---- names ---- */

static CUresult module_get_function(const struct preload_slot *slot, const void *caller,
                                    CUfunction *function, CUmodule module, const char *name)
{
    CUresult (*real)(CUfunction *, CUmodule, const char *) = wrap_real(slot);
    const CUresult result = real(function, module, name);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && function != NULL) {
        preload_look_for_unloads();
        decide_function_named(*function, name, module);
    }
    return result;
}

static CUresult library_get_kernel(const struct preload_slot *slot, const void *caller,
                                   CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult (*real)(CUkernel *, CUlibrary, const char *) = wrap_real(slot);
    const CUresult result = real(kernel, library, name);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && kernel != NULL) {
        preload_look_for_unloads();
        decide_function_named(*kernel, name, library);
    }
    return result;
}

static CUresult kernel_get_function(const struct preload_slot *slot, const void *caller,
                                    CUfunction *function, CUkernel kernel)
{
    CUresult (*real)(CUfunction *, CUkernel) = wrap_real(slot);
    const CUresult result = real(function, kernel);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS && function != NULL)
        decide_function_of_kernel(*function, kernel);
    return result;
}

/* ---- lifetimes: the registries forget before the handle can be given out again ---- */

static CUresult module_unload(const struct preload_slot *slot, const void *caller, CUmodule module)
{
    CUresult (*real)(CUmodule) = wrap_real(slot);

    (void)caller;
    count(slot);
    decide_container_gone(module);
    return real(module);
}

static CUresult library_unload(const struct preload_slot *slot, const void *caller,
                               CUlibrary library)
{
    CUresult (*real)(CUlibrary) = wrap_real(slot);

    (void)caller;
    count(slot);
    decide_container_gone(library);
    return real(library);
}

static CUresult context_destroy(const struct preload_slot *slot, const void *caller,
                                CUcontext context)
{
    CUresult (*real)(CUcontext) = wrap_real(slot);

    (void)caller;
    count(slot);
    decide_context_gone(context);
    place_context_gone(context);
    return real(context);
}

/* The partitions of the device are there before its first launch. */
static CUresult primary_context_retain(const struct preload_slot *slot, const void *caller,
                                       CUcontext *context, CUdevice device)
{
    CUresult (*real)(CUcontext *, CUdevice) = wrap_real(slot);
    const CUresult result = real(context, device);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS) {
        place_device_retained(device);
        place_device_active(device, __atomic_load_n(&report_control_now()->part.mode,
                                                    __ATOMIC_RELAXED) == POLICY_MODE_ENFORCE);
    }
    return result;
}

/* For decide_context_gone. NULL, so that graphs are forgotten too, where there is no other device.
 */
static CUcontext primary_of(CUdevice device)
{
    return decide_device_count() > 1 ? place_primary_context(device) : NULL;
}

/* False: no such device, and a call that does nothing. */
static bool exists(CUdevice device)
{
    unsigned flags;
    int active;

    return cuda_driver.cuDevicePrimaryCtxGetState == NULL ||
           cuda_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) !=
               CUDA_ERROR_INVALID_DEVICE;
}

static CUresult primary_context_reset(const struct preload_slot *slot, const void *caller,
                                      CUdevice device)
{
    CUresult (*real)(CUdevice) = wrap_real(slot);

    (void)caller;
    count(slot);
    if (exists(device) && !place_own_exist(device)) {
        const CUcontext context = primary_of(device);

        /* First what is on partitions, while it is known. */
        place_device_resetting(device);
        decide_context_gone(context);
    }
    return real(device);
}

/* Only the last release ends the context, and only the driver counts them: ask it afterwards. */
static CUresult primary_context_release(const struct preload_slot *slot, const void *caller,
                                        CUdevice device)
{
    CUresult (*real)(CUdevice) = wrap_real(slot);
    CUresult result;
    unsigned flags;
    int active = 1;

    (void)caller;
    count(slot);
    const CUcontext context = primary_of(device);
    place_device_releasing(device);
    result = real(device);
    if (result == CUDA_SUCCESS && cuda_driver.cuDevicePrimaryCtxGetState != NULL &&
        cuda_driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
        active == 0)
        decide_context_gone(context);
    return result;
}

/* The program's own. Their streams are met one by one. */
static CUresult green_context_create(const struct preload_slot *slot, const void *caller,
                                     void **context, void *description, CUdevice device,
                                     unsigned flags)
{
    CUresult (*real)(void **, void *, CUdevice, unsigned) = wrap_real(slot);
    const CUresult result = real(context, description, device, flags);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        place_green_made(*context, device);
    return result;
}

static CUresult green_context_destroy(const struct preload_slot *slot, const void *caller,
                                      void *context)
{
    CUresult (*real)(void *) = wrap_real(slot);

    (void)caller;
    count(slot);
    place_green_going(context);
    return real(context);
}

/* ---- attributes: what was asked of the driver about a function no longer holds ---- */

static CUresult function_set_attribute(const struct preload_slot *slot, const void *caller,
                                       CUfunction function, CUfunction_attribute attribute,
                                       int value)
{
    CUresult (*real)(CUfunction, CUfunction_attribute, int) = wrap_real(slot);
    const CUresult result = real(function, attribute, value);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        decide_function_attribute_set(function, (int)attribute, value, -1);
    return result;
}

static CUresult kernel_set_attribute(const struct preload_slot *slot, const void *caller,
                                     CUfunction_attribute attribute, int value, CUkernel kernel,
                                     CUdevice device)
{
    CUresult (*real)(CUfunction_attribute, int, CUkernel, CUdevice) = wrap_real(slot);
    const CUresult result = real(attribute, value, kernel, device);

    (void)caller;
    count(slot);
    if (result == CUDA_SUCCESS)
        decide_function_attribute_set(kernel, (int)attribute, value, device);
    return result;
}

static CUresult function_set_cache_config(const struct preload_slot *slot, const void *caller,
                                          CUfunction function, CUfunc_cache config)
{
    CUresult (*real)(CUfunction, CUfunc_cache) = wrap_real(slot);
    const CUresult result = real(function, config);

    (void)caller;
    count(slot);
    decide_function_changed(function);
    return result;
}

static CUresult kernel_set_cache_config(const struct preload_slot *slot, const void *caller,
                                        CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    CUresult (*real)(CUkernel, CUfunc_cache, CUdevice) = wrap_real(slot);
    const CUresult result = real(kernel, config, device);

    (void)caller;
    count(slot);
    decide_function_changed(kernel);
    return result;
}

static CUresult function_set_shared_memory_config(const struct preload_slot *slot,
                                                  const void *caller, CUfunction function,
                                                  CUsharedconfig config)
{
    CUresult (*real)(CUfunction, CUsharedconfig) = wrap_real(slot);
    const CUresult result = real(function, config);

    (void)caller;
    count(slot);
    decide_function_changed(function);
    return result;
}

static CUresult context_set_cache_config(const struct preload_slot *slot, const void *caller,
                                         CUfunc_cache config)
{
    CUresult (*real)(CUfunc_cache) = wrap_real(slot);
    const CUresult result = real(config);

    (void)caller;
    count(slot);
    decide_function_changed(NULL);
    return result;
}

#define START(symbol, base, version, variant, wrapper, parameters, arguments)                      \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#define NAME(symbol, base, version, variant, wrapper, parameters, arguments)                       \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#define LIFETIME(symbol, base, version, variant, wrapper, parameters, arguments)                   \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#define ATTRIBUTE(symbol, base, version, variant, wrapper, parameters, arguments)                  \
    WRAP_DRIVER(symbol, wrapper, parameters, arguments)
#include "preload/entries.def"
