/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a copy of the library is, for those who find one: strings(1) and what(1) print it, and
 * `cudapolicy show` for the copy that it would preload.
 */

#define TEXT_OF(value) #value
#define TEXT_OF_VALUE(value) TEXT_OF(value)

#include <cuda.h>

#if defined(__x86_64__)
#define ARCHITECTURE "x86-64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "?"
#endif

/* Nothing refers to it. */
__attribute__((used)) static const char preload_version[] =
    "@(#)cudapolicy " CUDAPOLICY_VERSION " (" ARCHITECTURE
    ", CUDA_VERSION " TEXT_OF_VALUE(CUDA_VERSION) ")";
