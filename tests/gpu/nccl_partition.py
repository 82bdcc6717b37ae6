# SPDX-License-Identifier: Apache-2.0
"""Matrix products on one stream beside NCCL all-reduces on another, on two GPUs.

20 products of 4096 x 4096 bf16 matrices and 8 all-reduces of 128 MiB, at the same time and each
alone. Checks the products and the sums. Prints one JSON object (rank 0): medians in milliseconds of
"compute", "communication" (together), "compute_alone", "communication_alone", and "both", from the
first begin to the last end.
"""

import argparse
import json
import os
import statistics

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

PRODUCTS, REDUCTIONS, BYTES, REPETITIONS, WARM_UP = 20, 8, 128 << 20, 12, 3


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    torch.manual_seed(1)
    work, communication = torch.cuda.Stream(), torch.cuda.Stream()
    left, right = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    result = torch.empty_like(left)
    buffers = [torch.ones(BYTES // 4, device="cuda") for _ in range(REDUCTIONS)]
    torch.matmul(left, right, out=result)
    expected = result.clone()
    times = {}

    def once(compute, communicate):
        for buffer in buffers:
            buffer.fill_(rank + 1)
        result.zero_()
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        events = {name: torch.cuda.Event(enable_timing=True)
                  for name in ("begin", "computed", "start", "reduced")}
        with torch.cuda.stream(communication):
            events["start"].record()
            if communicate:
                for buffer in buffers:
                    dist.all_reduce(buffer)
            events["reduced"].record()
        with torch.cuda.stream(work):
            events["begin"].record()
            if compute:
                for _ in range(PRODUCTS):
                    torch.matmul(left, right, out=result)
            events["computed"].record()
        torch.cuda.synchronize()
        if communicate and not all(bool((buffer == 3).all()) for buffer in buffers):
            raise SystemExit("wrong sum")
        if compute and not torch.equal(result, expected):
            raise SystemExit("wrong product")
        took = {"compute": events["begin"].elapsed_time(events["computed"]),
                "communication": events["start"].elapsed_time(events["reduced"]),
                "both": max(events["start"].elapsed_time(events["computed"]),
                            events["start"].elapsed_time(events["reduced"]))}
        return took

    for repetition in range(-WARM_UP, REPETITIONS):
        together, computed, communicated = once(True, True), once(True, False), once(False, True)
        if repetition >= 0:
            for name, value in (("compute", together["compute"]),
                                ("communication", together["communication"]),
                                ("both", together["both"]),
                                ("compute_alone", computed["compute"]),
                                ("communication_alone", communicated["communication"])):
                times.setdefault(name, []).append(value)
    dist.barrier()
    torch.cuda.synchronize()
    if rank == 0:
        print(json.dumps({name: round(statistics.median(values), 3)
                          for name, values in times.items()}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=29511)
    mp.spawn(worker, (parser.parse_args().port,), nprocs=2)
