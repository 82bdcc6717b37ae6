/* SPDX-License-Identifier: Apache-2.0 */
/* cudaGetDriverEntryPoint: the application asks the driver through the runtime. */
#include "runtime.h"

/* Documented: without a flag the default stream is that of the form called. */
static cudaError_t entry_point(const char *symbol, void **pointer, unsigned int version,
                               unsigned long long flags, bool per_thread,
                               enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
    cudaError_t error = runtime_begin_bare();
    if (flags == cudaEnableDefault && per_thread)
        flags = cudaEnablePerThreadDefaultStream;
    if (error == cudaSuccess)
        error = CALL(cuGetProcAddress, symbol, pointer, (int)version, flags, &answer);
    if (error == cudaSuccess && status != NULL)
        *status = (enum cudaDriverEntryPointQueryResult)answer;
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(
    const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point(symbol, funcPtr, cudaVersion, flags, false, driverStatus);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(
    const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point(symbol, funcPtr, cudaVersion, flags, true, driverStatus);
}

cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **funcPtr,
                                              unsigned long long flags,
                                              enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point(symbol, funcPtr, RUNTIME_VERSION, flags, false, driverStatus);
}

cudaError_t CUDARTAPI
cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr, unsigned long long flags,
                             enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point(symbol, funcPtr, RUNTIME_VERSION, flags, true, driverStatus);
}
