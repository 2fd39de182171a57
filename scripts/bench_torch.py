#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare PyTorch with sagitta-bench on one GPU.  Each comparison is a process of its own.

usage: scripts/bench_torch.py [BUILD [terminal | train | attention | mixer]]

BUILD is a folder in which `make sagitta sagitta-bench.so` was run.  The comparisons are, with
PyTorch's work before the colon and sagitta's after it:

  (no word)  X @ D.T and topk of the magnitudes: `sagitta-bench route`
  terminal   the Cholesky factor in f64, its inverse by a solve of unit vectors, and the product of
             the inverse with its transpose: `sagitta-bench terminal`
  train      products: `sagitta-bench dense`; a step of a TopK autoencoder: `sagitta-bench train`
  attention  scaled_dot_product_attention: `sagitta-bench harvest`
  mixer      fla's recurrent kernel of gated delta nets (fla-core in PYTHONPATH):
             `sagitta-bench mixer`

For each shape it prints milliseconds.  PyTorch's are the median of several runs after a warm-up;
sagitta's are those that sagitta-bench prints.  With BUILD it also prints, for PyTorch's routing,
the number of rows whose support differs from that of `sagitta route` for the same data."""
import ctypes
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile

import torch

REAL = os.path.join(os.path.dirname(__file__), "../input/minilm-l3-kjv-8k.h5")
# Rows, atoms, columns, atoms per row, a file of rows (None: random rows).
SHAPES = [(16384, 32768, 64, 4, None), (16384, 32768, 768, 32, None),
    (16384, 131072, 768, 32, None), (16384, 32768, 4096, 32, None), (16384, 16384, 384, 32, None),
    (8192, 16384, 384, 32, REAL)]
CHUNK = 1 << 29  # scores at a time


def types():
    """For each variant: name, number type, and whether products may be rounded to tf32."""
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
    """The exact support of each row, sorted."""
    import h5py
    with tempfile.TemporaryDirectory() as folder:
        at = {name: os.path.join(folder, name + ".h5") for name in ("rows", "atoms", "out")}
        for name, array in (("rows", rows), ("atoms", atoms)):
            with h5py.File(at[name], "w", libver=("earliest", "v110")) as f:
                f[name] = array.cpu().numpy()
        subprocess.run([program, "route", "--rows", at["rows"], "--dictionary", at["atoms"],
            "--top-s", str(top_s), "--device", "cuda", "--cosine-limit", "0", "--quiet",
            "--output", at["out"]], check=True)
        with h5py.File(at["out"]) as f:
            support = torch.from_numpy(f["supports/indices"][()]).reshape(len(rows), top_s)
    return support.sort(dim=1).values.cuda()


def call(library, *words):
    """Call the main function of sagitta-bench in this process with these words, and return what it
    prints.  This can be done only once in a process."""
    loaded, libc = ctypes.CDLL(library), ctypes.CDLL(None)
    words = [b"sagitta-bench", *(str(word).encode() for word in words)]
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


def apart(function, *arguments):
    """Call the function in a process of its own, because a process can start MPI only once."""
    process = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{function.__name__}{arguments} ended with {process.exitcode}")


def sagitta_milliseconds(library, n, k, p, s, file):
    """Milliseconds of direct and of certified routing."""
    done = call(library, "route", "--device", "cuda", "--n-rows", n, "--atoms", k,
        "--columns", p, "--top-s", s, "--repeats", 5, *(["--rows", file] if file else []))
    return [1e3 * float(re.search(rf"^{name} +([0-9.]+)", done, re.M).group(1))
        for name in (("given rows", "given certified") if file else
            ("random data", "random certified"))]


def data_make(n, k, p, file):
    """Rows and atoms.  With a file the atoms are made of its rows as `sagitta-bench route` makes
    them: first the rows themselves, then sums of two rows."""
    torch.manual_seed(1)
    if not file:
        return torch.randn(n, p, device="cuda"), torch.randn(k, p, device="cuda")
    import h5py
    with h5py.File(file) as f:
        rows = torch.from_numpy(f["rows"][:n]).cuda().float()
    own = rows[torch.arange(k, device="cuda") % n]
    return rows, own + rows[torch.randint(n, (k, 1), device="cuda")[:, 0]] * (
        torch.arange(k, device="cuda")[:, None] >= n)


def shape_run(program, n, k, p, s, file):
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
        direct, certified = sagitta_milliseconds(program + "-bench.so", n, k, p, s, file)
        line += f" {direct:8.2f} {certified:9.2f} {certified / ms:8.2f}"
    print(line + (" real rows" if file else ""), flush=True)


def terminal_run(library, n):
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
    words = ("terminal", "--device", "cuda", "--schur", n, "--repeats", 5)
    done = call(library, *words) if library else ""
    for name, peer in zip(("factor", "inverse", "covariance"), peers):
        own = re.search(rf"^{name} +([0-9.]+)", done, re.M)
        line += f" {peer:10.2f}"
        line += f" {float(own[1]):8.2f} {float(own[1]) / peer:8.2f}" if own else ""
    print(line, flush=True)


def terminal(library):
    own = f" {'sagitta':>8} {'ratio':>8}" if library else ""
    print(f"{'n':>7}" + "".join(f" {name:>10}{own}" for name in ("cholesky", "solve", "product")),
        flush=True)
    for n in (4096, 8192, 16384):
        apart(terminal_run, library, n)


def own_milliseconds(done, name):
    return float(re.search(rf"^{name} +([0-9.]+)", done, re.M)[1])


def dense_run(library, precision, is_stored, m, k, n):
    """Products of x[m][k] and W[n][k]: forward, backward and gradient.  PyTorch's operands and
    results have the short type in memory.  Sagitta's are f32 in memory and rounded in the kernel;
    or, with is_stored, all except the gradient have the short type in memory too."""
    short = {"bf16": torch.bfloat16, "f16": torch.float16}.get(precision, torch.float32)
    x, w, y = (torch.randn(*shape, device="cuda").to(short) for shape in ((m, k), (n, k), (m, n)))
    work = {"forward": lambda: x @ w.T, "back": lambda: y @ w, "gradient": lambda: y.T @ x}
    done = call(library, "dense", "--device", "cuda", "--n-rows", m, "--columns", k,
        "--atoms", n, "--precision", precision, *(["--stored"] if is_stored else []))
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    for name, what in work.items():
        milliseconds(what)
        peer = statistics.median(milliseconds(what) for _ in range(5))
        own = own_milliseconds(done, name)
        print(f"{precision:5} {'stored' if is_stored else '':6} {name:9} {m:6} {k:5} {n:6} "
            f"{peer:9.3f} {own:9.3f} {own / peer:6.2f}", flush=True)


class Step:
    """A step of Adam on a TopK autoencoder with unit atoms, as in scripts/bench_sae.py.  The
    decoder is a dense product, or a sum of the atoms of each row (embedding_bag)."""

    def __init__(self, m, p, k, s, is_sparse):
        self.x, self.s, self.is_sparse = torch.randn(m, p, device="cuda"), s, is_sparse
        self.encoder = torch.nn.functional.normalize(torch.randn(k, p, device="cuda"), dim=1)
        self.decoder, self.bias = self.encoder.clone(), torch.zeros(k, device="cuda")
        weights = [self.encoder, self.decoder, self.bias]
        for w in weights:
            w.requires_grad_(True)
        self.adam = torch.optim.Adam(weights, lr=1e-4, fused=True)

    def describe(self):
        scores = torch.nn.functional.linear(self.x, self.encoder, self.bias)
        codes, atoms = torch.topk(scores, self.s, dim=1)
        codes = torch.relu(codes)
        if self.is_sparse:
            return torch.nn.functional.embedding_bag(atoms, self.decoder, per_sample_weights=codes,
                mode="sum")
        return torch.zeros_like(scores).scatter(1, atoms, codes) @ self.decoder

    def run(self):
        loss = (self.describe() - self.x).pow(2).mean()
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        with torch.no_grad():
            g, d = self.decoder.grad, self.decoder
            g.sub_((g * d).sum(1, keepdim=True) * d)
            self.adam.step()
            d.div_(d.norm(dim=1, keepdim=True))


def step_run(library, precision, is_sparse, m, p, k, s):
    """Time a step.  In bf16 and f16 PyTorch uses autocast."""
    done = call(library, "train", "--device", "cuda", "--n-rows", m, "--columns", p,
        "--atoms", k, "--top-s", s, "--repeats", 9, "--precision", precision)
    own = own_milliseconds(done, "step")
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    short = {"bf16": torch.bfloat16, "f16": torch.float16}.get(precision)
    step = Step(m, p, k, s, is_sparse)
    with torch.autocast("cuda", dtype=short or torch.bfloat16, enabled=short is not None):
        for _ in range(3):
            step.run()
        peer = statistics.median(milliseconds(step.run) for _ in range(9))
    name = "sparse" if is_sparse else "dense"
    print(f"{precision:5} {name:9} {m:6} {p:5} {k:6} {s:3} {peer:9.3f} {own:9.3f} "
        f"{own / peer:6.2f}", flush=True)


def train(library):
    print("product         rows, inputs, outputs: PyTorch's ms, sagitta's ms, ratio", flush=True)
    for precision, is_stored in (("f32", 0), ("tf32", 0), ("bf16", 0), ("bf16", 1), ("f16", 0),
            ("f16", 1)):
        for shape in ((16384, 768, 32768), (2048, 768, 3072)):
            apart(dense_run, library, precision, is_stored, *shape)
    print("step            rows, columns, atoms, atoms per row: PyTorch's ms, sagitta's ms, ratio",
        flush=True)
    for precision, is_sparse in (("f32", 0), ("f32", 1), ("tf32", 0), ("bf16", 0), ("f16", 0)):
        apart(step_run, library, precision, is_sparse, 8192, 768, 32768, 32)
    for is_sparse in 0, 1:
        apart(step_run, library, "f32", is_sparse, 256, 384, 4096, 32)


def attention_run(library, cells, heads, kv_heads, columns, positions, queries, streams):
    """Causal attention of all positions, or of the last query only.  If PyTorch computes in a short
    type, its queries and results have that type too."""
    done = call(library, "harvest", "--device", "cuda", "--repeats", 9, "--heads", heads,
        "--kv-heads", kv_heads, "--head-columns", columns, "--positions", positions, "--queries",
        queries, "--streams", streams, "--cells", cells)
    own = own_milliseconds(done, "contiguous")
    line = f"{cells:5} {streams:3} {queries:6} {positions:6} {heads:3} {kv_heads:3} {columns:4}"
    for dtype in (torch.float32, torch.bfloat16) if cells == "f32" else (torch.float16,):
        q, k, v = (torch.randn(streams, h, n, columns, device="cuda").to(dtype)
            for h, n in ((heads, queries), (kv_heads, positions), (kv_heads, positions)))
        work = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v,
            is_causal=queries > 1, enable_gqa=kv_heads < heads)
        for _ in range(3):
            work()
        peer = statistics.median(milliseconds(work) for _ in range(9))
        name = str(dtype).split(".")[1]
        print(f"{line} {name:8} {peer:9.3f} {own:9.3f} {own / peer:6.2f}", flush=True)


def attention(library):
    print("type of cells, streams, queries, positions, heads, heads of keys, columns, "
        "PyTorch's type, PyTorch's ms, sagitta's ms, ratio", flush=True)
    for positions, columns in ((4096, 64), (8192, 64), (4096, 128), (8192, 128), (4096, 256),
                               (8192, 256)):
        apart(attention_run, library, "f32", 12, 12, columns, positions, positions, 1)
    for positions, streams, columns in ((4096, 32, 128), (4096, 4, 128), (65536, 1, 128),
                                        (4096, 32, 256)):
        apart(attention_run, library, "f16", 32, 8, columns, positions, 1, streams)


def mixer_run(library, streams, tokens, heads=32, key_heads=16, columns=128):
    """fla's kernel also computes the norms of q and k, and is launched as a CUDA graph.  Of
    sagitta's figures, `states` leaves out these norms; `call` includes them, and also the
    convolution."""
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule
    done = call(library, "mixer", "--device", "cuda", "--repeats", 9, "--heads", heads,
        "--key-heads", key_heads, "--head-columns", columns, "--streams", streams, "--tokens",
        tokens)
    sets = max(1, min(8, (1 << 30) // (streams * heads * columns * columns * 8)))
    torch.manual_seed(1)
    q, k, v = (torch.randn(streams, tokens, n, columns, device="cuda")
        for n in (key_heads, key_heads, heads))
    g = -0.1 * torch.rand(streams, tokens, heads, device="cuda")
    beta = torch.rand(streams, tokens, heads, device="cuda")
    states = [0.1 * torch.randn(streams, heads, columns, columns, device="cuda")
        for _ in range(sets)]

    def all_sets():
        for s in states:
            fused_recurrent_gated_delta_rule(q, k, v, g=g, beta=beta, initial_state=s,
                output_final_state=True, use_qk_l2norm_in_kernel=True)

    all_sets()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        all_sets()
    for _ in range(3):
        graph.replay()
    peer = statistics.median(milliseconds(graph.replay) for _ in range(9)) / sets
    line = f"{streams:4} {tokens:5} {heads:3} {key_heads:3} {columns:4} {peer:9.4f}"
    for name in ("states", "call"):
        own = own_milliseconds(done, name)
        line += f" {own:9.4f} {own / peer:6.2f}"
    print(line, flush=True)


def mixer(library):
    print("streams, tokens, heads, heads of keys, columns, fla's ms, sagitta's ms for the states, "
        "ratio, sagitta's ms for a call, ratio", flush=True)
    for shape in ((64, 1), (128, 1), (1, 4096), (64, 256)):
        apart(mixer_run, library, *shape)


def main():
    program = os.path.join(os.path.abspath(sys.argv[1]), "sagitta") if len(sys.argv) > 1 else None
    library = program + "-bench.so" if program else None
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    if "terminal" in sys.argv[2:]:
        return terminal(library)
    if "train" in sys.argv[2:]:
        return train(library)
    if "attention" in sys.argv[2:]:
        return attention(library)
    if "mixer" in sys.argv[2:]:
        return mixer(library)
    print(f"{'N':>7} {'K':>7} {'P':>5} {'s':>3}" + "".join(
        f" {name + ' ms':>8} {'wrong':>6}" for name, _, _ in types()) +
        (f" {'direct':>8} {'certified':>9} {'/ bf16':>8}" if program else ""), flush=True)
    for shape in SHAPES:
        apart(shape_run, program, *shape)


if __name__ == "__main__":
    main()
