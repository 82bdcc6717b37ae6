# SPDX-License-Identifier: Apache-2.0
"""A rank of a torchrun job: products on its own GPU, their sum over all ranks by NCCL. Prints what its
environment has of CUDA_DEVICE_MAX_CONNECTIONS, and the sum."""

import os

import torch
import torch.distributed

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
torch.manual_seed(torch.distributed.get_rank())
matrix = torch.randn(1024, 1024, device="cuda")
for _ in range(20):
    matrix = torch.tanh(matrix @ matrix / 16)
total = matrix.abs().sum()
torch.distributed.all_reduce(total)
torch.cuda.synchronize()
print(f"rank {torch.distributed.get_rank()} of {torch.distributed.get_world_size()}: connections "
      f"{os.environ.get('CUDA_DEVICE_MAX_CONNECTIONS')}, sum {total.item():.6g}", flush=True)
torch.distributed.destroy_process_group()
