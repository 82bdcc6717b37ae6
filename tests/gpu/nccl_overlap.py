# SPDX-License-Identifier: Apache-2.0
"""Short kernels in a CUDA graph beside NCCL all-reduces, on two GPUs.

400 element-wise kernels, captured once, run on one stream while 8 all-reduces of 128 MiB run on
another. Prints the median milliseconds of the graph over 30 repetitions (rank 0), and checks the
all-reduce's sums. "--alone" leaves the communication out.
"""

import argparse
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

KERNELS, REDUCTIONS, BYTES, REPETITIONS = 400, 8, 128 << 20, 30


def worker(rank, world, port, alone):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world,
                            device_id=torch.device("cuda", rank))
    data = torch.zeros(64 * 1024, device="cuda")
    buffers = [torch.ones(BYTES // 4, device="cuda") for _ in range(REDUCTIONS)]
    work, communication = torch.cuda.Stream(), torch.cuda.Stream()

    with torch.cuda.stream(work):
        for _ in range(3):
            data.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=work):
        for _ in range(KERNELS):
            data.add_(1)
    times = []
    for repetition in range(-5, REPETITIONS):
        for buffer in buffers:
            buffer.fill_(rank + 1)
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if not alone:
            with torch.cuda.stream(communication):
                for buffer in buffers:
                    dist.all_reduce(buffer)
        with torch.cuda.stream(work):
            begin.record()
            graph.replay()
            end.record()
        torch.cuda.synchronize()
        if repetition >= 0:
            times.append(begin.elapsed_time(end))
        if not alone and not all(bool((b == 3).all()) for b in buffers):
            print("wrong sum", file=sys.stderr)
            os._exit(1)
    if rank == 0:
        print(f"{statistics.median(times):.4f}", flush=True)
    del graph
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--port", type=int, default=29511)
    arguments = parser.parse_args()
    mp.spawn(worker, (2, arguments.port, arguments.alone), nprocs=2)
