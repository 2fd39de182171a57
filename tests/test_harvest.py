# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta harvest` gives the rows of softmax attention, from contiguous keys and values and
from any paged pool of them.  The bytes do not depend on ranks, blocks, threads and variants.
Errors of a capture are named before any work."""
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

from jobs import cuda_run
from tap import claim, done_testing, fails, gpu_present, need, ok, peer_missing, sagitta, same, skip

SEQUENCES = [(5, 5), (130, 130), (1, 1), (0, 7), (64, 200), (40, 1200), (3, 2)]
H, H_KV, D, DV = 6, 2, 24, 20
RANDOM = np.random.default_rng(5)


def starts(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


Q_START, KV_START = (starts([s[i] for s in SEQUENCES]) for i in (0, 1))
Q = RANDOM.standard_normal((Q_START[-1], H, D)).astype(np.float32)
K = RANDOM.standard_normal((KV_START[-1], H_KV, D)).astype(np.float32)
V = RANDOM.standard_normal((KV_START[-1], H_KV, DV)).astype(np.float32)


def bfloat16(x):
    """The upper bits of x, as bfloat16."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def capture(path, q=Q, k=K, v=V, q_start=Q_START, kv_start=KV_START, pool=None, more=(), **facts):
    with h5py.File(path, "w") as f:
        for name, values in dict(q=q, k=k, v=v, q_start=q_start, kv_start=kv_start).items():
            if values is None or (pool and name in ("k", "v", "kv_start")):
                continue
            f[name] = values
            if values.dtype == np.uint16:
                f[name].attrs["dtype"] = "bfloat16"
        for name, values in (pool or {}).items():
            f[f"kv/{name}"] = values
        for name, value in {"causal": 1, **facts}.items():
            if value is not None:
                f.attrs[name] = value
        for name, values in dict(more).items():
            f[name] = values
    return path


def pool_make(size, spare=3):
    """K and V in blocks of a pool in a random order.  Cells without a position are NaN."""
    needed = [-(-n // size) for _, n in SEQUENCES]
    blocks = sum(needed) + spare
    order = iter(RANDOM.permutation(blocks))
    k = np.full((blocks, size, H_KV, D), np.nan, np.float32)
    v = np.full((blocks, size, H_KV, DV), np.nan, np.float32)
    table = np.full((len(SEQUENCES), max(needed) + 1), -1, np.int32)
    for s, (_, n) in enumerate(SEQUENCES):
        for b in range(needed[s]):
            block = table[s, b] = next(order)
            part = slice(KV_START[s] + b * size, KV_START[s] + min((b + 1) * size, n))
            k[block, :part.stop - part.start] = K[part]
            v[block, :part.stop - part.start] = V[part]
    return dict(k=k, v=v, table=table, length=np.array([n for _, n in SEQUENCES], np.int64))


def attention(q, k, v, causal=1, window=0, scale=None, softcap=0):
    """The attention of one sequence in float64."""
    n_q, n_kv = len(q), len(k)
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, H // H_KV, axis=1) for x in (k, v))
    s = np.einsum("ihd,jhd->ihj", q, k) * (scale or D ** -0.5)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    at = np.arange(n_q)[:, None] + n_kv - n_q - np.arange(n_kv)[None]
    seen = np.ones((n_q, n_kv), bool)
    if causal:
        seen &= at >= 0
    if window:
        seen &= np.abs(at) < window
    s[~np.broadcast_to(seen[:, None], s.shape)] = -np.inf
    most = np.max(s, axis=2, initial=-1e300)[..., None]
    p = np.exp(s - most)
    total = p.sum(axis=2)
    with np.errstate(all="ignore"):
        out = np.einsum("ihj,jhd->ihd", p, v) / total[..., None]
        return np.nan_to_num(out), np.where(total > 0, np.log(total) + most[..., 0], -np.inf)


def harvest(path, out, *words, **more):
    return sagitta("harvest", "--capture", path, "--output", out, *words, "--force", **more)


def results(path):
    with h5py.File(path) as f:
        return f["rows"][:], f["lse"][:]


@claim("rows and lse are those of attention in float64")
def values_check(at):
    for facts in ({}, {"causal": 0}, {"window": 70}, {"causal": 0, "window": 9, "scale": 0.4},
                  {"softcap": 2.0}):
        capture(f"{at}/c.h5", **facts)
        need(harvest(f"{at}/c.h5", f"{at}/v.h5"), f"{facts}")
        rows, lse = results(f"{at}/v.h5")
        for s, (n_q, n_kv) in enumerate(SEQUENCES):
            mine, its = (slice(x[s], x[s + 1]) for x in (Q_START, KV_START))
            z, l = attention(Q[mine], K[its], V[its], **facts)
            ok(np.abs(rows[mine].reshape(z.shape) - z).max(initial=0) < 4e-6 and
               np.array_equal(np.isinf(lse[mine]), np.isinf(l)) and
               np.abs(lse[mine][np.isfinite(l)] - l[np.isfinite(l)]).max(initial=0) < 4e-6,
               f"{facts}, {n_q} queries of {n_kv}")


@claim("rows differ little from those of PyTorch's attention")
def torch_check(at):
    try:
        import torch
    except ImportError:
        return peer_missing("PyTorch is not installed")
    q, k, v = (RANDOM.standard_normal((300, H, D)).astype(np.float32) for _ in range(3))
    capture(f"{at}/t.h5", q, k, v, None, None)
    need(harvest(f"{at}/t.h5", f"{at}/t-rows.h5"), "harvest")
    turned = (torch.from_numpy(x).transpose(0, 1) for x in (q, k, v))
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        return skip(f"PyTorch {torch.__version__} has no attention of its own")
    z = torch.nn.functional.scaled_dot_product_attention(*turned, is_causal=True).transpose(0, 1)
    ok(np.abs(results(f"{at}/t-rows.h5")[0] - z.reshape(300, -1).numpy()).max() < 4e-6, "rows")


@claim("any ranks, blocks, threads and variants give the same bytes")
def partition_check(at):
    capture(f"{at}/c.h5")
    need(harvest(f"{at}/c.h5", f"{at}/one.h5", "--threads", 1), "one rank")
    for i, (ranks, words) in enumerate([(3, ()), (2, ("--block", 37)), (0, ("--block", 1)),
                                        (0, ("--threads", 3)), (0, ("--cpu-variant", "avx2"))]):
        done = harvest(f"{at}/c.h5", f"{at}/{i}.h5", *words, ranks=ranks)
        if "lacks the instructions" in done.stderr:
            continue
        need(done, f"{ranks} ranks {words}")
        same(f"{at}/one.h5", f"{at}/{i}.h5", f"{ranks} ranks {words}")
    need(sagitta("verify", f"{at}/one.h5"), "verify")


LONG = [(2, 3000), (1, 5000), (0, 5), (4, 1024), (3, 2049), (2, 1), (1, 64)]


def told(done):
    return re.findall(r" (?:blind|fingerprint)=(\w+)", done.stderr)


def long_arrays():
    """Queries, keys and values of a few queries over long sequences, and where the sequences
    begin."""
    random = np.random.default_rng(8)
    q_start, kv_start = (starts([s[i] for s in LONG]) for i in (0, 1))
    q = 2 * random.standard_normal((q_start[-1], H, D)).astype(np.float32)
    k = 2 * random.standard_normal((kv_start[-1], H_KV, D)).astype(np.float32)
    v = random.standard_normal((kv_start[-1], H_KV, DV)).astype(np.float32)
    return q, k, v, q_start, kv_start


LONG_FACTS = ({}, {"causal": 0}, {"window": 1500}, {"causal": 0, "window": 7, "softcap": 3.0})


@claim("ranks that divide positions give the bytes of ranks that divide queries")
def cut_check(at):
    q, k, v, q_start, kv_start = long_arrays()
    for facts in LONG_FACTS:
        path = capture(f"{at}/l.h5", q, k, v, q_start, kv_start, **facts)
        done = harvest(path, f"{at}/l-one.h5", "--cut", "queries", ranks=3)
        need(done, f"{facts}")
        ok(" cut=queries " in done.stderr, done.stderr[-300:])
        said = told(done)
        for ranks, words in ((0, ()), (1, ("--block", 3)), (2, ()), (3, ("--block", 1)), (5, ())):
            done = harvest(path, f"{at}/l-cut.h5", "--cut", "positions", *words, ranks=ranks)
            need(done, f"{facts} {ranks} {words}")
            same(f"{at}/l-one.h5", f"{at}/l-cut.h5", f"{facts} {ranks} ranks {words}")
            ok(told(done) == said, f"{said} {done.stderr[-300:]}")
    done = harvest(capture(path, q, k, v, q_start, kv_start), f"{at}/l-auto.h5", ranks=2)
    ok(" cut=positions " in done.stderr, f"few queries: {done.stderr[-300:]}")
    done = harvest(capture(f"{at}/c.h5"), f"{at}/c-auto.h5", ranks=2)
    ok(" cut=queries " in done.stderr, f"many queries: {done.stderr[-300:]}")
    for ranks in 1, 3:
        need(harvest(f"{at}/c.h5", f"{at}/c-cut.h5", "--cut", "positions", ranks=ranks), "many")
        same(f"{at}/c-auto.h5", f"{at}/c-cut.h5", f"many queries, {ranks} ranks")
    k[kv_start[1] + 4000, 1, 3] = np.nan
    capture(f"{at}/n.h5", q, k, v, q_start, kv_start)
    for ranks in 0, 3:
        fails(harvest(f"{at}/n.h5", f"{at}/no.h5", "--cut", "positions", ranks=ranks), 65,
              ["row 2 ", "query 0 of sequence 1", "head 3"], "a row that is not finite")


@claim("a paged pool, its blocks in any order, gives the bits of contiguous keys and values")
def pools_check(at):
    need(harvest(capture(f"{at}/c.h5", window=300), f"{at}/plain.h5"), "plain")
    for size in (1, 16, 24, 64, 300):
        capture(f"{at}/p.h5", pool=pool_make(size), window=300)
        need(harvest(f"{at}/p.h5", f"{at}/paged.h5", ranks=2 if size == 24 else 0), f"{size}")
        same(f"{at}/plain.h5", f"{at}/paged.h5", f"blocks of {size}")


@claim("float16 and bfloat16 are widened exactly")
def types_check(at):
    half = [x.astype(np.float16) for x in (Q, K, V)]
    brain = [bfloat16(x) for x in (Q, K, V)]
    for name, short, wide in (
            ("float16", half, [x.astype(np.float32) for x in half]),
            ("bfloat16", brain, [(x.astype(np.uint32) << 16).view(np.float32) for x in brain])):
        need(harvest(capture(f"{at}/s.h5", *short), f"{at}/short.h5"), name)
        need(harvest(capture(f"{at}/w.h5", *wide), f"{at}/wide.h5"), name)
        same(f"{at}/short.h5", f"{at}/wide.h5", name)


@claim("before the positions that queries see, a table may repeat a block")
def window_check(at):
    first = np.array([max(n - 1, 0) for _, n in SEQUENCES])
    starts = np.arange(len(SEQUENCES) + 1)
    # one query for each sequence, at its last position
    last = dict(q=Q[:len(SEQUENCES)], q_start=starts, window=40)
    pool = pool_make(16)
    need(harvest(capture(f"{at}/p.h5", **last, pool=pool), f"{at}/p-rows.h5"), "its own blocks")
    table = pool["table"].copy()
    for s, position in enumerate(first):
        table[s, :max(position - 39, 0) // 16] = table[s, 0]
    ok(np.any(table != pool["table"]), "tables name blocks more than once")
    path = capture(f"{at}/s.h5", **last, pool={**pool, "table": table})
    need(harvest(path, f"{at}/s-rows.h5"), "one block for what no query sees")
    same(f"{at}/p-rows.h5", f"{at}/s-rows.h5", "rows")


@claim("numbers of a capture may be integers, booleans and whole floats")
def numbers_check(at):
    facts = dict(window=70, scale=1.0, softcap=30.0)
    need(harvest(capture(f"{at}/n.h5", **facts), f"{at}/n-rows.h5"), "as they are")
    for how in (dict(causal=True, scale=1, softcap=30), dict(window=70.0, causal=1.0),
                dict(window=np.uint8(70), scale=np.float32(1), softcap=np.int16(30))):
        need(harvest(capture(f"{at}/m.h5", **{**facts, **how}), f"{at}/m-rows.h5"), f"{how}")
        same(f"{at}/n-rows.h5", f"{at}/m-rows.h5", f"{how}")


@claim("fit and encode take the rows, and compute the same ones with --capture")
def rows_check(at):
    need(harvest(capture(f"{at}/c.h5"), f"{at}/rows.h5"), "harvest")
    rows, own = ("--rows", f"{at}/rows.h5"), ("--capture", f"{at}/c.h5")
    fit = ("--atoms", 16, "--top-s", 3, "--sweeps", 2, "--output")
    need(sagitta("fit", *rows, *fit, f"{at}/fit"), "fit --rows")
    need(sagitta("fit", *own, *fit, f"{at}/own"), "fit --capture")
    few = capture(f"{at}/few.h5", Q[:100], K[:130], V[:130], starts([100]), starts([130]))
    need(harvest(few, f"{at}/few-rows.h5"), "harvest")
    for source, asked in (("--rows", f"{at}/few-rows.h5"), ("--capture", few)):
        done = sagitta("fit", source, asked, "--holdout-share", 0, "--force", *fit, f"{at}/few-fit")
        ok(done.returncode == 0 and ("are they transposed?" in done.stderr) == (source == "--rows"),
           f"100 rows of {H * DV} columns, {source}: {done.stderr[-300:]}")
    encode = ("--dictionary", f"{at}/fit/dictionary.h5", "--output")
    need(sagitta("encode", *rows, *encode, f"{at}/run"), "encode --rows")
    for ranks in (0, 2):
        need(sagitta("encode", *own, *encode, f"{at}/run{ranks}", ranks=ranks), "encode --capture")
        same(f"{at}/run/supports.h5", f"{at}/run{ranks}/supports.h5", f"encode, {ranks} ranks")
        fails(sagitta("encode", *own, *encode, f"{at}/run", "--resume", ranks=ranks), 0,
              ["is complete: nothing is left to do"], "encode --capture, complete")
    for name in ("dictionary.h5", "supports.h5"):
        same(f"{at}/fit/{name}", f"{at}/own/{name}", f"fit, {name}")
    fails(sagitta("encode", *rows, *own, *encode, f"{at}/no"), 2, ["--rows", "--capture"], "both")
    fails(sagitta("encode", *encode, f"{at}/no"), 2, ["--rows", "--capture"], "none")


def side_by_side(run, items):
    """run(item) for each item, several at a time, because most of the time goes to starts and to
    compilers for the GPU."""
    with ThreadPoolExecutor(6) as pool:
        return list(pool.map(run, items))


def cases_check(runs_of, cases):
    """Run several versions of each case, one after another.  All must give the bytes of the first.
    runs_of(case) yields (what, result, process)."""
    for runs in side_by_side(lambda case: list(runs_of(case)), cases):
        for what, out, done in runs:
            if need(done, what) and out != runs[0][1]:
                same(runs[0][1], out, what)


@claim("a GPU gives the same bytes; without a GPU the message says that there is none")
def gpu_check(at):
    path = capture(f"{at}/c.h5")
    if not gpu_present():
        fails(harvest(path, f"{at}/none.h5", "--device", "cuda"), 69, ["CUDA"], "there is none")
        return False
    gpu_captures_check(at)
    wide = [RANDOM.standard_normal((40, H, 300)).astype(np.float32) for _ in range(3)]
    capture(f"{at}/x.h5", *wide, None, None)
    fails(harvest(f"{at}/x.h5", f"{at}/x-rows.h5", "--device", "cuda"), 69, ["300", "256"], "wide")
    return True


def put_bytes(run):
    """How many bytes rank 0 of a run copied to its GPU."""
    with h5py.File(f"{run}/supports.h5") as f:
        return int(f["run"].attrs["bytes_to_device"])


ROUTED = {"plain": ("encode",), "rounds": ("encode", "--rounds", 2, "--block", 48),
          "route": ("route", "--block", 100), "grid": ("encode", "--grid", "1x2")}


@claim("rows of a capture stay on the GPU that routes them, and give the same codes")
def gpu_encode_check(at):
    path = capture(f"{at}/e.h5")
    need(harvest(path, f"{at}/e-rows.h5"), "rows")
    begin = ("--dictionary", f"{at}/fit/dictionary.h5", "--top-s", 3, "--force")
    sources = (("cpu", "--capture", path), ("cuda", "--rows", f"{at}/e-rows.h5"),
               ("cuda", "--capture", path))

    def routed(what):
        for device, name, source in sources:
            out = f"{at}/e-{what}-{device}{name}"
            done = sagitta(*ROUTED[what], *begin, name, source, "--device", device, "--output", out,
                           ranks=2 if what == "grid" else 0)
            yield f"{what}, {name}, {device}", f"{out}/supports.h5", done

    cases_check(routed, ROUTED)
    for what in ROUTED:
        stay = put_bytes(f"{at}/e-{what}-cuda--rows") - put_bytes(f"{at}/e-{what}-cuda--capture")
        ok(what == "grid" or stay == Q.shape[0] * H * V.shape[2] * 4,
           f"{what}: {stay} bytes are not copied")
    k = K.copy()
    k[KV_START[1] + 100, 1, 3] = np.nan
    for device in ("cpu", "cuda"):
        fails(sagitta("encode", *begin, "--capture", capture(f"{at}/n.h5", k=k), "--device", device,
                      "--output", f"{at}/e-none"), 65, ["row 105 ", "query 100 of sequence 1"],
              f"a row that is not finite, {device}")


def gpu_captures_check(at):
    """Plain captures and pools of every type, with odd sizes of heads, on one rank and on two."""
    odd = [x[:, :, :23 if x is not V else 17] for x in (Q, K, V)]
    one = [odd[0], odd[1][:, :1], odd[2][:, :1]]
    cases = {
        "plain": {}, "window": dict(window=70), "full": dict(causal=0), "cap": dict(softcap=2.0),
        "pool": dict(pool=pool_make(16), window=300), "pool-24": dict(pool=pool_make(24)),
        "float16": dict(zip("qkv", (x.astype(np.float16) for x in (Q, K, V)))),
        "bfloat16": dict(zip("qkv", map(bfloat16, (Q, K, V)))),
        "odd": dict(zip("qkv", (x.astype(np.float16) for x in one))),
        "mixed": dict(v=V.astype(np.float16)),
    }
    for what, change in cases.items():
        capture(f"{at}/g-{what}.h5", **change)

    def harvested(what):
        for i, (device, ranks, words) in enumerate((("cpu", 0, ()), ("cuda", 0, ()),
                                                    ("cuda", 2, ("--block", 50)))):
            out = f"{at}/g-{what}-{i}.h5"
            done = harvest(f"{at}/g-{what}.h5", out, "--device", device, *words, ranks=ranks)
            done.returncode = done.returncode or f"device={device}" not in done.stderr
            yield f"{what}, {device}, {ranks} ranks", out, done

    cases_check(harvested, cases)
    k = K.copy()
    k[KV_START[1] + 100, 1, 3] = np.nan
    fails(harvest(capture(f"{at}/n.h5", k=k), f"{at}/n-rows.h5", "--device", "cuda"), 65,
          ["row 105 ", "query 100 of sequence 1", "head 3"], "a row that is not finite")


@claim("ranks with GPUs that divide positions, and pieces of a capture that does not fit on a "
       "GPU, give the same bytes")
def gpu_pieces_check(at):
    for i, facts in enumerate(LONG_FACTS):
        capture(f"{at}/l{i}.h5", *long_arrays(), **facts)

    def harvested(i):
        path = f"{at}/l{i}.h5"
        out = f"{at}/l{i}-cpu.h5"
        done = harvest(path, out, "--device", "cpu", "--cut", "queries")
        yield f"{LONG_FACTS[i]}, cpu", out, done
        for ranks, words in ((0, ()), (2, ()), (3, ("--block", 1))):
            out = f"{at}/l{i}-cuda-{ranks}.h5"
            done = harvest(path, out, "--device", "cuda", "--cut", "positions", *words, ranks=ranks)
            done.returncode = done.returncode or "cut=positions device=cuda" not in done.stderr
            yield f"{LONG_FACTS[i]} {ranks} {words}", out, done
        for size in 4000000, 2500000:
            out = f"{at}/l{i}-{size}.h5"
            done = cuda_run(out, "harvest", "--device", "cuda", "--capture", path, "--output", out,
                            "--force", CUDA_MEMORY=str(size))
            is_cut = "keys and values come in pieces" in done.stderr
            done.returncode = done.returncode or not is_cut
            yield f"{LONG_FACTS[i]}, {size} bytes", out, done

    cases_check(harvested, range(len(LONG_FACTS)))
    done = cuda_run(f"{at}/no.h5", "harvest", "--device", "cuda", "--capture", f"{at}/l0.h5",
                    "--output", f"{at}/no.h5", "--force", CUDA_MEMORY="300000")
    fails(done, 71, ["MB"], "too little for a shard")


@claim("errors of a capture are named before any work")
def refused_check(at):
    pool = pool_make(16)
    far, short, junk = (pool["table"].copy() for _ in range(3))
    far[5, 2], short[5, 3], junk[0, 1] = 999, -1, 0
    lengths = pool["length"].copy()
    lengths[1] = 100000
    twice = pool["table"].copy()
    twice[5, 2] = twice[5, 0]
    fallen = Q_START.copy()
    fallen[2] = 0
    bad = {
        "no q": (dict(q=None), ["no '/q'"]),
        "no causal": (dict(causal=None), ["causal", "f.attrs"]),
        "causal": (dict(causal=3), ["'causal'", "3"]),
        "window": (dict(window=-4), ["'window'", "-4"]),
        "scale": (dict(scale=0.0), ["'scale'"]),
        "softcap": (dict(softcap=-1.0), ["'softcap'"]),
        "type": (dict(q=Q.astype(np.float64)), ["'/q'", "float64", "store float16"]),
        "rank": (dict(q=Q.reshape(len(Q), -1)), ["'/q'", "2 dimensions"]),
        "D": (dict(k=K[:, :, :-1]), ["'/q'", "24", "23"]),
        "heads": (dict(q=Q[:, :5]), ["5 heads", "does not divide"]),
        "k and v": (dict(v=V[:-1]), ["'/k' and '/v'", "dimension 0"]),
        "q_start": (dict(q_start=Q_START[:-1]), ["'/q_start'", "from 0 to"]),
        "falls": (dict(q_start=fallen), ["falls at entry 2"]),
        "sequences": (dict(q_start=None), ["'/kv_start'", "sequences"]),
        "kv_start": (dict(kv_start=None), ["add '/kv_start'"]),
        "both": (dict(more={"kv/k": K}), ["both '/k'"]),
        "far": (dict(pool={**pool, "table": far}), ["entry (5, 2)", "999"]),
        "short": (dict(pool={**pool, "table": short}), ["entry (5, 3)", "-1"]),
        "fraction": (dict(causal=0.5), ["'causal'", "0.5"]),
        "half a window": (dict(window=4.5), ["'window'", "4.5"]),
        "text": (dict(scale="small"), ["'scale'", "not one number"]),
        "NaN": (dict(softcap=np.nan), ["'softcap'", "nan"]),
        "vanishing cap": (dict(scale=1e-42, softcap=1e5), ["'softcap'", "in float32"]),
        "huge cap": (dict(softcap=1e300), ["'softcap'", "1e+300"]),
        "small scale": (dict(scale=1e-60), ["'scale'", "in float32"]),
        "no mark": (dict(k=K.astype(np.int32)), ["'/k'", "dtype = "]),
        "twice": (dict(pool={**pool, "table": twice}),
                  ["entries (5, 0) and (5, 2)", "has a block once"]),
        "no block": (dict(pool={**pool, "k": pool["k"][:0], "v": pool["v"][:0]}), ["no blocks"]),
        "junk": (dict(pool={**pool, "table": junk}), ["entry (0, 1)", "write -1"]),
        "length": (dict(pool={**pool, "length": lengths}), ["100000", "sequence 1"]),
    }
    for what, (change, words) in bad.items():
        done = harvest(capture(f"{at}/b.h5", **change), f"{at}/bad.h5")
        fails(done, 65, words, what)
    ok(not os.path.exists(f"{at}/bad.h5"), "no result is left")
    fails(sagitta("harvest", "--output", f"{at}/bad.h5"), 2, ["--capture"], "no capture")
    fails(harvest(f"{at}/none.h5", f"{at}/bad.h5"), 74, ["none.h5"], "no file")


@claim("a row that is not finite ends the job, and is named")
def finite_check(at):
    k = K.copy()
    k[KV_START[1] + 100, 1, 3] = np.nan
    for ranks in (0, 2):
        done = harvest(capture(f"{at}/n.h5", k=k), f"{at}/n-rows.h5", ranks=ranks)
        fails(done, 65, ["row 105 ", "query 100 of sequence 1", "head 3"], f"{ranks} ranks")


def main():
    with tempfile.TemporaryDirectory() as at:
        torch_check(at)
        if sys.argv[1:] == ["torch"]:  # for another PyTorch: the checks below do not use it
            done_testing()
        values_check(at)
        partition_check(at)
        cut_check(at)
        pools_check(at)
        types_check(at)
        numbers_check(at)
        window_check(at)
        rows_check(at)
        if gpu_check(at):
            gpu_pieces_check(at)
            gpu_encode_check(at)
        refused_check(at)
        finite_check(at)
    done_testing()


main()
