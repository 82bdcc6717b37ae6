# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch, Triton and CUDA graph work with fixed seeds and prints a digest of every result.

The digests must be the same without the preload, with an empty policy, while observing, and under a
memory-synchronization policy. Argument: nothing. One line a result: "NAME DIGEST", last "total DIGEST".
"""

import hashlib

import torch
import triton
import triton.language as tl


@triton.jit
def triton_scale(x, y, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.load(x + offsets, mask=mask) * factor, mask=mask)


def digest(tensor):
    data = tensor.detach().contiguous().cpu().view(torch.uint8).numpy().tobytes()
    return hashlib.sha256(data).hexdigest()[:16]


def main():
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    results = {}

    a = torch.randn(1024, 1024, device="cuda")
    b = torch.randn(1024, 1024, device="cuda", dtype=torch.float32)
    results["matmul"] = a @ b
    results["half_matmul"] = a.bfloat16() @ b.bfloat16()
    results["softmax"] = torch.softmax(a, dim=1)
    results["sort"] = a.flatten().sort().values
    results["layer_norm"] = torch.nn.functional.layer_norm(a, (1024,))

    y = torch.empty_like(a)
    triton_scale[(a.numel() // 1024,)](a, y, a.numel(), 1.5, BLOCK=1024)
    results["triton"] = y

    side = torch.cuda.Stream(priority=-1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        results["side_stream"] = torch.sin(a) * 2 + 1
    torch.cuda.current_stream().wait_stream(side)

    static = a.clone()
    with torch.cuda.stream(side):
        for _ in range(2):
            out = torch.relu(static @ b) + 1
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = torch.relu(static @ b) + 1
        triton_scale[(out.numel() // 1024,)](out, y, out.numel(), 0.5, BLOCK=1024)
    for step in range(3):
        static.copy_(a * (step + 1))
        graph.replay()
    torch.cuda.synchronize()
    results["graph"] = out
    results["graph_triton"] = y

    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, targets = torch.randn(128, 256).cuda(), torch.randint(0, 10, (128,)).cuda()
    for _ in range(10):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    results["training"] = torch.cat([p.flatten() for p in model.parameters()])

    torch.cuda.synchronize()
    total = hashlib.sha256()
    for name, tensor in results.items():
        value = digest(tensor)
        total.update(value.encode())
        print(name, value)
    print("total", total.hexdigest()[:16])


main()
