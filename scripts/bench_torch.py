#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's X @ D.T and topk of the magnitudes beside `sagitta bench route`, on one GPU and in one
process: scripts/bench_torch.py [BUILD], where `make sagitta sagitta.so` made both; with one more
word, `terminal`, PyTorch's Cholesky factor in f64, its solve of unit vectors and the product of the
result with itself beside `sagitta bench terminal`.

For each shape: milliseconds (median of 5 after a warm-up; sagitta's as it measures them) and, for
PyTorch, how many rows have another support than `sagitta route` gives for the same data."""
import ctypes
import os
import re
import statistics
import subprocess
import sys
import tempfile

import torch

REAL = os.path.join(os.path.dirname(__file__), "../input/minilm-l3-kjv-8k.h5")
# Rows, atoms, columns, atoms a row, a file of rows (else random ones).
SHAPES = [(16384, 32768, 64, 4, None), (16384, 32768, 768, 32, None),
    (16384, 131072, 768, 32, None), (16384, 32768, 4096, 32, None), (16384, 16384, 384, 32, None),
    (8192, 16384, 384, 32, REAL)]
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


def sagitta_support(program, rows, atoms, top_s):
    """Sorted atoms of each row, exact."""
    import h5py
    with tempfile.TemporaryDirectory() as folder:
        at = {name: os.path.join(folder, name + ".h5") for name in ("rows", "atoms", "out")}
        for name, array in (("rows", rows), ("atoms", atoms)):
            with h5py.File(at[name], "w") as f:
                f[name] = array.cpu().numpy()
        subprocess.run([program, "route", "--rows", at["rows"], "--dictionary", at["atoms"],
            "--top-s", str(top_s), "--device", "cuda", "--cosine-limit", "0", "--quiet",
            "--output", at["out"]], check=True)
        with h5py.File(at["out"]) as f:
            support = torch.from_numpy(f["supports/indices"][()]).reshape(len(rows), top_s)
    return support.sort(dim=1).values.cuda()


def main_of(library):
    """What the program's main prints, called in this process with some words."""
    loaded, libc = ctypes.CDLL(library), ctypes.CDLL(None)

    def call(*words):
        words = [b"sagitta", *(str(word).encode() for word in words)]
        kept = os.dup(1)
        with tempfile.TemporaryFile() as out:
            sys.stdout.flush()
            os.dup2(out.fileno(), 1)
            try:
                status = loaded.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words))
                libc.fflush(None)
            finally:
                os.dup2(kept, 1)
                os.close(kept)
            if status:
                raise SystemExit(f"{b' '.join(words).decode()} ended with {status}")
            out.seek(0)
            return out.read().decode()

    return call


def sagitta_milliseconds(call, n, k, p, s, file):
    """Direct and certified."""
    done = call("bench", "route", "--device", "cuda", "--n-rows", n, "--atoms", k, "--columns", p,
        "--top-s", s, "--repeats", 5, *(["--rows", file] if file else []))
    return [1e3 * float(re.search(rf"^{name} +([0-9.]+)", done, re.M).group(1))
        for name in (("given rows", "given certified") if file else
            ("random data", "random certified"))]


def data_make(n, k, p, file):
    """Rows and atoms, which are made of the rows of a file as `sagitta bench route` makes them: the
    rows themselves, then sums of two."""
    torch.manual_seed(1)
    if not file:
        return torch.randn(n, p, device="cuda"), torch.randn(k, p, device="cuda")
    import h5py
    with h5py.File(file) as f:
        rows = torch.from_numpy(f["rows"][:n]).cuda().float()
    own = rows[torch.arange(k, device="cuda") % n]
    return rows, own + rows[torch.randint(n, (k, 1), device="cuda")[:, 0]] * (
        torch.arange(k, device="cuda")[:, None] >= n)


def shape_run(program, call, n, k, p, s, file):
    rows, atoms = data_make(n, k, p, file)
    atoms = torch.nn.functional.normalize(atoms, dim=1)
    exact = sagitta_support(program, rows, atoms, s) if program else None
    line = f"{n:7} {k:7} {p:5} {s:3}"
    for _, dtype, rounded in types():
        torch.backends.cuda.matmul.allow_tf32 = rounded
        x, d = rows.to(dtype), atoms.to(dtype)
        found = route(x, d, s).sort(dim=1).values
        ms = statistics.median(milliseconds(lambda: route(x, d, s)) for _ in range(5))
        wrong = int((found != exact).any(dim=1).sum()) if program else -1
        line += f" {ms:8.2f} {wrong:6}"
    del rows, atoms, x, d
    torch.cuda.empty_cache()
    if program:
        direct, certified = sagitta_milliseconds(call, n, k, p, s, file)
        line += f" {direct:8.2f} {certified:9.2f} {certified / ms:8.2f}"
    print(line + (" real rows" if file else ""), flush=True)


def terminal_run(call, n):
    """Factor, inverse of the factor, and product: milliseconds of PyTorch and of sagitta."""
    torch.manual_seed(1)
    s = torch.rand(n, n, device="cuda", dtype=torch.float64) - 0.5
    s.diagonal().fill_(n)
    unit = torch.eye(n, device="cuda", dtype=torch.float64)
    factor = torch.linalg.cholesky_ex(s).L
    inverse = torch.linalg.solve_triangular(factor, unit, upper=False)
    work = (lambda: torch.linalg.cholesky_ex(s).L,
        lambda: torch.linalg.solve_triangular(factor, unit, upper=False),
        lambda: inverse.T @ inverse)
    line = f"{n:7}"
    peers = [statistics.median(milliseconds(w) for _ in range(5)) for w in work]
    del s, unit, factor, inverse, work
    torch.cuda.empty_cache()
    words = ("bench", "terminal", "--device", "cuda", "--schur", n, "--repeats", 5)
    done = call(*words) if call else ""
    for name, peer in zip(("factor", "inverse", "covariance"), peers):
        own = re.search(rf"^{name} +([0-9.]+)", done, re.M)
        line += f" {peer:10.2f}"
        line += f" {float(own[1]):8.2f} {float(own[1]) / peer:8.2f}" if own else ""
    print(line, flush=True)


def terminal(call):
    print(f"{'n':>7}" + "".join(f" {name:>10}" + (f" {'sagitta':>8} {'of it':>8}" if call else "")
        for name in ("cholesky", "solve", "product")))
    for n in (4096, 8192, 16384):
        terminal_run(call, n)


def main():
    program = os.path.join(os.path.abspath(sys.argv[1]), "sagitta") if len(sys.argv) > 1 else None
    call = main_of(program + ".so") if program else None
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    if "terminal" in sys.argv[2:]:
        return terminal(call)
    print(f"{'N':>7} {'K':>7} {'P':>5} {'s':>3}" + "".join(
        f" {name + ' ms':>8} {'wrong':>6}" for name, _, _ in types()) +
        (f" {'direct':>8} {'certified':>9} {'of bf16':>8}" if program else ""))
    for shape in SHAPES:
        shape_run(program, call, *shape)


main()
