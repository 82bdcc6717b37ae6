/* SPDX-License-Identifier: Apache-2.0 */
#include "place/move.h"

#include "place/side.h"
#include "place/thread.h"
#include "report/log.h"

/*
 * A wait holds for what its event stood for at the time of the call, and an event is recorded and
 * waited for in two calls of one thread one after the other. So a thread can use its events again
 * for its next launch, whatever became of this one, and for another device or stream, captured or
 * not. The two calls of a fork, or of a join, cannot be interrupted by another move of the same
 * thread: nothing of ours or of the program runs between them.
 */

enum {
    SET_CAPTURE_DEPENDENCIES = 1, /* CU_STREAM_SET_CAPTURE_DEPENDENCIES */
};

static enum report_reason find_side(struct place_sides *sides, CUstream stream,
                                    const struct place_partition *partition, uint32_t generation,
                                    CUstream *result)
{
    if (!sides)
        return REPORT_REASON_OUT_OF_MEMORY;
    struct place_side *side = place_side_find(sides, place_side_key(partition, generation));
    if (!side)
        return place_side_add(sides, stream, partition, generation, result);
    *result = atomic_load_explicit(&side->stream, memory_order_relaxed);
    if (*result)
        return REPORT_REASON_NONE;
    enum report_reason reason =
        (enum report_reason)atomic_load_explicit(&side->reason, memory_order_relaxed);
    return reason != REPORT_REASON_NONE ? reason : REPORT_REASON_NO_PARTITION;
}

enum report_reason place_move_begin(struct place_move *move, struct place_sides *sides,
                                    CUstream stream, const struct place_partition *partition,
                                    bool capturing)
{
    enum report_reason reason =
        (enum report_reason)atomic_load_explicit(&partition->reason, memory_order_acquire);
    uint32_t generation = atomic_load_explicit(&partition->generation, memory_order_acquire);
    if (reason != REPORT_REASON_NONE)
        return reason;
    move->stream = stream;
    move->capturing = capturing;
    reason = find_side(sides, stream, partition, generation, &move->side);
    if (reason == REPORT_REASON_NONE)
        reason = place_events_find(partition, generation, &move->fork, &move->join);
    if (reason != REPORT_REASON_NONE)
        return reason;
    if (cuda_driver.cuEventRecord(move->fork, stream) != CUDA_SUCCESS ||
        cuda_driver.cuStreamWaitEvent(move->side, move->fork, 0) != CUDA_SUCCESS)
        return REPORT_REASON_REFUSED_BY_DRIVER;
    return REPORT_REASON_NONE;
}

static CUresult set_dependencies(CUstream stream, CUgraphNode *nodes, size_t count)
{
    if (!cuda_driver.cuStreamUpdateCaptureDependencies)
        return CUDA_ERROR_NOT_SUPPORTED;
    return cuda_driver.cuStreamUpdateCaptureDependencies(stream, nodes, count,
                                                         SET_CAPTURE_DEPENDENCIES);
}

/*
 * After the join the stream depends on what it depended on before and on the kernel's node. The
 * node stands for all of it, and what follows a kernel in a stream depends on that alone.
 */
static CUresult depend_on_kernel(const struct place_move *move)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *nodes = NULL;
    size_t count = 0;
    if (!cuda_driver.cuStreamGetCaptureInfo)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result =
        cuda_driver.cuStreamGetCaptureInfo(move->side, &status, &id, &graph, &nodes, &count);
    if (result != CUDA_SUCCESS)
        return result;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraphNode kernel = nodes[0]; /* the driver's array ends with the next call */
    return set_dependencies(move->stream, &kernel, 1);
}

/*
 * The side stream stays in the capture, and is left with no dependencies. So at its next fork it
 * gets those of the program's stream and no others. And it is not found unjoined at the end where
 * the program took the kernel's node out of its stream's dependencies, as it may: nodes that are
 * taken out by this call need not be joined (documented; NCCL's streams do the same).
 *
 * If the driver does not take these calls, the events have ordered what they have to, with edges
 * more than needed; and where it did not take the events, these calls do. With neither the side
 * stream is left unjoined, and the program's capture ends with that error.
 */
static CUresult join_captured(const struct place_move *move, bool launched, CUresult joined)
{
    CUresult result = launched ? depend_on_kernel(move) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        joined = CUDA_SUCCESS;
    if (joined == CUDA_SUCCESS) {
        CUresult cleared = set_dependencies(move->side, NULL, 0);
        if (result == CUDA_SUCCESS)
            result = cleared;
    }
    if (result != CUDA_SUCCESS)
        report_log_once(REPORT_LOG_WARN,
                        "nodes of a captured graph have more dependencies than without partitions: "
                        "error %d",
                        (int)result);
    return joined;
}

CUresult place_move_end(struct place_move *move, bool launched)
{
    CUresult result = cuda_driver.cuEventRecord(move->join, move->side);
    if (result == CUDA_SUCCESS)
        result = cuda_driver.cuStreamWaitEvent(move->stream, move->join, 0);
    if (move->capturing)
        return join_captured(move, launched, result);
    /* What the program launches next could overtake the kernel: it is waited for here. */
    if (result != CUDA_SUCCESS && launched && cuda_driver.cuStreamSynchronize &&
        cuda_driver.cuStreamSynchronize(move->side) == CUDA_SUCCESS)
        result = CUDA_SUCCESS;
    return result;
}

void place_move_device_gone(int device)
{
    place_sides_gone(device, -1);
    place_events_gone(device);
}

void place_move_start(void)
{
    place_sides_start();
    place_threads_start();
}
