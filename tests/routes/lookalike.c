/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose names begin as CUDA's do, or have them in the middle. */
#define LOOKALIKE(name)                                                                            \
    __attribute__((visibility("default"))) int name(void);                                         \
    int name(void)                                                                                 \
    {                                                                                              \
        return 1;                                                                                  \
    }

LOOKALIKE(cudnnCreate)
LOOKALIKE(cublasCreate_v2)
LOOKALIKE(cuptiSubscribe)
LOOKALIKE(cuLaunchKernelLater)
LOOKALIKE(cuLaunch)
LOOKALIKE(cudaLaunchKernelLater)
LOOKALIKE(__cudaLaunchKernelLater)
LOOKALIKE(my_cuLaunchKernel)
LOOKALIKE(cu)
