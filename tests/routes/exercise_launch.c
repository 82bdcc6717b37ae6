/* SPDX-License-Identifier: Apache-2.0 */
/* One launch by each function, on the default stream, whose meaning tells the variants apart. */
#include "matrix.h"

exercise_function exercise_initialise, exercise_launch_kernel, exercise_launch_cooperative,
    exercise_launch_kernel_ex, exercise_get_proc_address_v1, exercise_get_proc_address_v2;

#define SHAPE 2, 1, 1, 64, 1, 1, 16

/* Every launch function takes either kind of handle. */
static CUfunction handle_of(const struct row *row)
{
    return row->version % 2000 == 0 ? fixture.function : (CUfunction)(void *)fixture.kernel;
}

static const char *result_problem(CUresult result)
{
    return result == CUDA_SUCCESS ? NULL : problem("the program got %d", (int)result);
}

const char *exercise_initialise(const struct row *row, void *function)
{
    CUresult (*initialise)(unsigned) = function;

    (void)row;
    return result_problem(initialise(0));
}

const char *exercise_launch_kernel(const struct row *row, void *function)
{
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CUstream, void **, void **) = function;
    void *pointer = NULL;
    void *arguments[] = {&pointer};

    return result_problem(launch(handle_of(row), SHAPE, NULL, arguments, NULL));
}

const char *exercise_launch_cooperative(const struct row *row, void *function)
{
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CUstream, void **) = function;
    void *pointer = NULL;
    void *arguments[] = {&pointer};
    const char *wrong = result_problem(launch(handle_of(row), SHAPE, NULL, arguments));
    const struct recording_call *call;
    const CUlaunchAttributeValue *cooperative;

    if (wrong != NULL || !enforced)
        return wrong;
    call = recording.call_named(row->per_thread ? "cuLaunchKernelEx_ptsz" : "cuLaunchKernelEx", 0);
    if (call == NULL)
        return "no launch with attributes";
    cooperative = effective_attribute(&call->effective, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
    return cooperative != NULL && cooperative->cooperative == 1 ? NULL
                                                                : "the launch is not cooperative";
}

const char *exercise_launch_kernel_ex(const struct row *row, void *function)
{
    CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **) = function;
    const CUlaunchConfig config = {SHAPE, NULL, NULL, 0};
    void *pointer = NULL;
    size_t size = sizeof pointer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &pointer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    const char *wrong = result_problem(launch(&config, handle_of(row), NULL, extra));
    const struct recording_call *call;

    if (wrong != NULL)
        return wrong;
    call = recording.call_named(row->symbol, 0);
    return call != NULL && call->arguments == RECORDING_ARGUMENTS_EXTRA
               ? NULL
               : "the arguments did not come in extra";
}

/* ---- the resolver -----------------------------------------------------------------------------
 */

static const char *answer_problem(CUresult result, void *const *function)
{
    if (result != CUDA_SUCCESS)
        return result_problem(result);
    if (*function == NULL)
        return "no answer";
    if (enforced && *function == raw("cuLaunchKernel"))
        return "the answer is not wrapped";
    return NULL;
}

const char *exercise_get_proc_address_v1(const struct row *row, void *function)
{
    CUresult (*resolve)(const char *, void **, int, cuuint64_t) = function;
    void *found = NULL;

    (void)row;
    return answer_problem(resolve("cuLaunchKernel", &found, 4000, 0), &found);
}

const char *exercise_get_proc_address_v2(const struct row *row, void *function)
{
    CUresult (*resolve)(const char *, void **, int, cuuint64_t, int *) = function;
    void *found = NULL;
    int status = -1;
    const char *wrong = answer_problem(resolve("cuLaunchKernel", &found, 4000, 0, &status), &found);

    (void)row;
    return wrong == NULL && status != 0 ? "the status is not success" : wrong;
}
