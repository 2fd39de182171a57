#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer of `sagitta bench route` on a GPU: PyTorch's X @ D.T and topk of the magnitudes, for the
same shapes.  Prints a table: shape, number type, milliseconds (median of 5 after a warm-up)."""
import statistics

import torch

SHAPES = [(16384, 32768, 64, 4), (16384, 32768, 768, 32), (16384, 131072, 768, 32),
    (8192, 16384, 384, 32)]
CHUNK = 1 << 29  # scores at a time


def types():
    """Name, number type, may products be rounded to tf32?"""
    yield "fp32", torch.float32, False
    yield "tf32", torch.float32, True
    yield "bf16", torch.bfloat16, False


def route(rows, atoms, top_s):
    step = max(1, CHUNK // len(atoms))
    parts = [torch.topk((rows[i:i + step] @ atoms.T).abs(), top_s, dim=1)
        for i in range(0, len(rows), step)]
    return torch.cat([p.indices for p in parts])


def milliseconds(work):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def main():
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'N':>7} {'K':>7} {'P':>5} {'s':>3}  type       ms")
    for n, k, p, s in SHAPES:
        torch.manual_seed(1)
        rows = torch.randn(n, p, device="cuda")
        atoms = torch.nn.functional.normalize(torch.randn(k, p, device="cuda"), dim=1)
        for name, dtype, rounded in types():
            torch.backends.cuda.matmul.allow_tf32 = rounded
            x, d = rows.to(dtype), atoms.to(dtype)
            route(x, d, s)
            times = [milliseconds(lambda x=x, d=d, s=s: route(x, d, s)) for _ in range(5)]
            print(f"{n:7} {k:7} {p:5} {s:3}  {name}  {statistics.median(times):8.2f}", flush=True)


main()
