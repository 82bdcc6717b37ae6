# SPDX-License-Identifier: Apache-2.0
"""Short kernels in a CUDA graph beside NCCL all-reduces, on two GPUs, many times.

400 element-wise kernels, captured once, run on one stream while 8 all-reduces of 128 MiB run on
another. This process imports PyTorch, uses no CUDA itself, and forks two ranks for each line of
standard input; it answers each with one line. A run so costs no import, and whatever is preloaded
here is preloaded in the ranks.

A line is a JSON object:
  domain       the value of NCCL_MEM_SYNC_DOMAIN
  rounds       array of arrays of parts (see PARTS): each round renews these parts first
  replays      of the graph in each round, after some to warm up
  alone        true: without the all-reduces
The answer is {"ranks": [{"pid", "seconds", "rounds": [[milliseconds of the graph, ...], ...],
"covered"}, ...]}, or {"error": text}. "seconds" is how long CUDA, NCCL and the rounds took;
"covered" is how many of the replays had ended before the all-reduces did.

Every all-reduce's sums are checked. A rank that fails or takes too long is killed, and so is the
other. Ranks stay in this process's group: who kills that leaves nothing behind.
"""

import json
import multiprocessing
import multiprocessing.connection
import os
import random
import sys
import tempfile
import time

import torch
import torch.distributed as dist

KERNELS, REDUCTIONS, BYTES, WARM_UP = 400, 8, 128 << 20, 3
LIMIT = 60  # seconds for a run
PARTS = ("data", "graph", "buffers", "streams", "group")


class Rank:
    def __init__(self, rank, store):
        self.rank = rank
        dist.init_process_group("nccl", store=store, rank=rank, world_size=2,
                                device_id=torch.device("cuda", rank))
        self.group = dist.group.WORLD
        self.kept = []  # what was renewed is not freed: the new one lies elsewhere
        self.random = random.Random(os.getpid())
        self.renew(set(PARTS) - {"group"})

    def renew(self, parts):
        torch.cuda.synchronize()
        if "streams" in parts:
            self.work, self.communication = torch.cuda.Stream(), torch.cuda.Stream()
        if "data" in parts:
            self.kept.append(torch.empty(self.random.randrange(1, 64) << 20, dtype=torch.uint8,
                                         device="cuda"))
            self.data = torch.zeros(64 * 1024, device="cuda")
        if "buffers" in parts:
            self.buffers = [torch.ones(BYTES // 4, device="cuda") for _ in range(REDUCTIONS)]
        if "group" in parts:
            self.group = dist.new_group([0, 1])
        if parts & {"data", "graph"}:
            self.capture()
        self.kept.append((self.data, self.buffers, self.graph, self.group))
        dist.all_reduce(torch.ones(1, device="cuda"), group=self.group)
        torch.cuda.synchronize()

    def capture(self):
        with torch.cuda.stream(self.work):
            self.data.add_(1)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            self.graph.capture_begin(capture_error_mode="thread_local")
            for _ in range(KERNELS):
                self.data.add_(1)
            self.graph.capture_end()

    def replay(self, alone):
        """Milliseconds of the graph, and of the graph's begin to the all-reduces' end."""
        for buffer in self.buffers:
            buffer.fill_(self.rank + 1)
        torch.cuda.synchronize()
        dist.barrier(group=self.group)
        torch.cuda.synchronize()
        begin, end, reduced = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        with torch.cuda.stream(self.communication):
            if not alone:
                for buffer in self.buffers:
                    dist.all_reduce(buffer, group=self.group)
            reduced.record()
        with torch.cuda.stream(self.work):
            begin.record()
            self.graph.replay()
            end.record()
        torch.cuda.synchronize()
        if not alone and not all(bool((buffer == 3).all()) for buffer in self.buffers):
            raise ValueError("wrong sum")
        return begin.elapsed_time(end), begin.elapsed_time(reduced)


def measure(rank, command, store_path):
    clock = [time.monotonic()]
    torch.cuda.set_device(rank)
    torch.cuda.synchronize()
    clock.append(time.monotonic())
    pair = Rank(rank, dist.FileStore(store_path, 2))
    clock.append(time.monotonic())
    rounds, covered = [], 0
    for parts in command["rounds"]:
        pair.renew(set(parts))
        times = [pair.replay(command.get("alone", False))
                 for _ in range(WARM_UP + command["replays"])][WARM_UP:]
        rounds.append([round(graph, 4) for graph, _ in times])
        covered += sum(graph < reduced for graph, reduced in times)
    clock.append(time.monotonic())
    return {"pid": os.getpid(), "rounds": rounds, "covered": covered,
            "seconds": [round(b - a, 2) for a, b in zip(clock, clock[1:])]}


def rank_process(rank, command, store_path, connection):
    try:
        os.environ["NCCL_MEM_SYNC_DOMAIN"] = command["domain"]
        connection.send(measure(rank, command, store_path))
        connection.recv()  # the other rank may still read this one's memory
    except BaseException as reason:
        connection.send(f"rank {rank}: {type(reason).__name__}: {reason}")
    finally:
        # Communicators and streams end with the process: there is nothing to be put in order.
        os._exit(0)


def run(command):
    context = multiprocessing.get_context("fork")
    deadline = time.monotonic() + LIMIT
    ranks = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for rank in range(2):
                ours, theirs = context.Pipe()
                process = context.Process(target=rank_process,
                                          args=(rank, command, f"{folder}/store", theirs))
                process.start()
                theirs.close()
                ranks.append((process, ours))
            answers = {}
            while len(answers) < 2:
                waiting = [ours for _, ours in ranks if ours not in answers]
                ready = multiprocessing.connection.wait(waiting, deadline - time.monotonic())
                if not ready:
                    raise TimeoutError(f"no answer within {LIMIT} s")
                for ours in ready:
                    answers[ours] = ours.recv()
                    if isinstance(answers[ours], str):
                        raise RuntimeError(answers[ours])
            for _, ours in ranks:
                ours.send(None)
            for process, _ in ranks:
                process.join(max(0, deadline - time.monotonic()))
            return {"ranks": [answers[ours] for _, ours in ranks]}
        except (EOFError, OSError, RuntimeError) as reason:
            return {"error": f"{type(reason).__name__}: {reason}"}
        finally:
            for process, ours in ranks:
                process.kill()
                process.join()
                ours.close()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
