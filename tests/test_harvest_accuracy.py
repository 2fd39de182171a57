# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows of harvest differ from float64 by at most 1e-6 max|v| (1 + max|s| / 8), and
logarithms by at most (1e-6 + 1e-7 |lse|) (1 + max|s| / 8), with values v, scores s and logarithms
lse.  This holds for every type of capture and heads of 3 widths, with CHECK_FULL=1 of 6.  If
products of a score cancel, the errors are within bounds that count the sizes of the products.  A
warning says how large they may be."""
import os
import tempfile

import numpy as np

from capture_files import TYPES, capture_write, harvested, of_type, pool_make, starts, wide
from tap import FULL, claim, done_testing, need, ok, sagitta

N, H, H_KV = 600, 4, 2
RANDOM = np.random.default_rng(7)


def exact(q, k, v, causal):
    """Rows, logarithms and the largest |s|, in float64."""
    q, k, v = (wide(x).astype("f8") for x in (q, k, v))
    n, _, d = q.shape
    z, lse, most = np.zeros((n, H, v.shape[2])), np.zeros((n, H)), 0
    seen = np.tri(n, dtype=bool) if causal else np.ones((n, n), bool)
    for h in range(H):
        s = q[:, h] @ k[:, h // (H // H_KV)].T / np.sqrt(d)
        most = max(most, np.abs(s[seen]).max())
        s[~seen] = -np.inf
        top = s.max(axis=1, keepdims=True)
        p = np.exp(s - top)
        total = p.sum(axis=1)
        z[:, h] = p @ v[:, h // (H // H_KV)] / total[:, None]
        lse[:, h] = np.log(total) + top[:, 0]
    return z, lse, most


def normal(shape):
    return RANDOM.standard_normal(shape, "f4")


def positive(shape):
    """Numbers of one sign, so that no terms of a score cancel."""
    return RANDOM.random(shape, "f4")


# Scores of the sizes at which errors are largest relative to the bounds.
SEQUENCES = [(normal, 1), (normal, 3), (normal, 10), (positive, 1), (positive, 8)]


def harvest(at, arrays, causal, what):
    path = capture_write(f"{at}/c.h5", {**dict(zip("qkv", arrays)),
                                        "q_start": starts([N] * len(SEQUENCES))}, causal=causal)
    need(sagitta("harvest", "--capture", path, "--output", f"{at}/rows.h5", "--force", "--quiet"),
         what)
    return (x.view(np.float32).astype("f8") for x in harvested(f"{at}/rows.h5"))


def errors(q, k, v, causal, z, lse):
    """The largest error of rows, and of logarithms, of a sequence, in units of the bounds."""
    want, log, most = exact(q, k, v, causal)
    values, grown = np.abs(wide(v)).max(), 1 + most / 8
    return [np.abs(z.reshape(want.shape) - want).max() / (1e-6 * values * grown),
            (np.abs(lse - log) / ((1e-6 + 1e-7 * np.abs(log)) * grown)).max()]


def width_check(at, d):
    worst = [0, 0]
    for kind, causal in [("float32", 0), *((kind, 1) for kind in TYPES)]:
        parts = [(size * draw((N, H, d)), draw((N, H_KV, d)), normal((N, H_KV, d)))
                 for draw, size in SEQUENCES]
        arrays = [of_type(np.concatenate(x), kind) for x in zip(*parts)]
        what = f"D {d}, {kind}, causal {causal}"
        z, lse = harvest(at, arrays, causal, what)
        for i, (draw, size) in enumerate(SEQUENCES):
            its = slice(i * N, (i + 1) * N)
            found = errors(*(x[its] for x in arrays), causal, z[its], lse[its])
            worst = np.maximum(worst, found)
            ok(max(found) <= 1, f"{what}, {draw.__name__}, size {size}: rows {found[0]:.3f}, "
               f"lse {found[1]:.3f} of the bounds")
    print(f"# D {d}: rows at most {worst[0]:.3f}, lse {worst[1]:.3f} of the bounds", flush=True)


def cancelling(kind, size, d):
    """Queries and keys of two halves.  The products of one half, of about size**2, have the
    opposite sign of those of the other half, and nearly cancel them."""
    q, k = size * normal((N, H, d)), size * normal((N, H_KV, d))
    q[:, :, d // 2:], k[:, :, d // 2:] = q[:, :, :d // 2], -k[:, :, :d // 2]
    k[:, :, d // 2:] += 1e-3 * normal((N, H_KV, d - d // 2)) / size
    return [of_type(x, kind) for x in (q, k, normal((N, H_KV, d)))]


def terms_most(q, k, causal):
    """The largest value of scale sum |q_c k_c|, in float64."""
    q, k = (abs(wide(x).astype("f8")) for x in (q, k))
    group = H // H_KV
    return max((np.where(np.tri(N) > 0, q[:, h] @ k[:, h // group].T, 0) if causal else
                q[:, h] @ k[:, h // group].T).max() for h in range(H)) / np.sqrt(q.shape[2])


@claim("if products cancel, errors are within those bounds of (N.27) that count sizes, and far "
       "beyond the other bounds")
def cancelling_check(at):
    beyond = 0
    for d, kind, size, causal in ((16, "float32", 100, 1), (128, "float32", 100, 0),
                                  (128, "float16", 30, 1), (256, "bfloat16", 100, 1),
                                  (256, "float32", 10, 1)):
        arrays = cancelling(kind, size, d)
        path = capture_write(f"{at}/c.h5", dict(zip("qkv", arrays)), causal=causal)
        need(sagitta("harvest", "--capture", path, "--output", f"{at}/rows.h5", "--force"), kind)
        z, lse = (x.view(np.float32).astype("f8") for x in harvested(f"{at}/rows.h5"))
        want, log, most = exact(*arrays, causal)
        values, more = abs(wide(arrays[2])).max(), terms_most(*arrays[:2], causal)
        more *= (min(d, 128) + -(-d // 128)) * 2.0**-24
        off = abs(lse - log).max()
        simple = (1e-6 + 1e-7 * abs(log).max()) * (1 + most / 8)
        beyond = max(beyond, off / simple)
        ok(off <= simple + more,
           f"D {d}, {kind}: lse off by {off:.1e}, at most {simple + more:.1e}")
        off = abs(z.reshape(want.shape) - want).max()
        most = values * (1e-6 * (1 + most / 8) + 2 * min(1, np.expm1(2 * more)))
        ok(off <= most, f"D {d}, {kind}: rows off by {off:.1e}, at most {most:.1e}")
    ok(beyond > 50, f"without what cancels the bound is broken by {beyond:.0f}")


@claim("harvest, encode, fit and attribute warn of large terms in every kind of capture, without "
       "counting spare cells")
def warning_check(at):
    said, words = "terms of scores may reach", ("--top-s", 2, "--output")
    large, small = cancelling("float32", 100, 64), [normal((N, x, 64)) for x in (H, H_KV, H_KV)]
    half = [of_type(x, "bfloat16") for x in large]
    atoms = normal((8, H * 64))
    np.save(f"{at}/atoms.npy", atoms / np.linalg.norm(atoms, axis=1, keepdims=True))

    def warns(wanted, path, *more, ranks=0):
        out = f"{at}/{os.path.basename(path)}-out"
        jobs = [("harvest", "--capture", path, "--output", f"{out}/h", *more)]
        if not more:
            jobs += [("encode", "--capture", path, "--dictionary", f"{at}/atoms.npy", *words,
                      f"{out}/e"), ("fit", "--capture", path, "--atoms", 4, "--sweeps", 1, *words,
                      f"{out}/f"), ("attribute", "--supports", f"{out}/e", "--dictionary",
                      f"{at}/atoms.npy", "--capture", path, "--output", f"{out}/a")]
        for job in jobs:
            done = sagitta(*job, "--force", ranks=ranks)
            ok(done.returncode == 0 and done.stderr.count(said) == wanted,
               f"{job[0]} {path}: {done.returncode} {done.stderr[-300:]}")

    for name, (q, k, v), wanted in (("large", large, 1), ("half", half, 1), ("small", small, 0)):
        path = capture_write(f"{at}/{name}.h5", {"q": q, "k": k, "v": v})
        warns(wanted, path)
        warns(wanted, path, "--cut", "positions", ranks=2)
        pool = pool_make(RANDOM, k, v, [N], 16)
        used = {b: min(16, N - 16 * i) for i, b in enumerate(pool["kv/table"][0])}
        for b in range(len(pool["kv/k"])):
            pool["kv/k"][b, used.get(b, 0):] = of_type(np.array([1e9], "f4"), q.dtype.name if
                                                       q.dtype != np.uint16 else "bfloat16")
        warns(wanted, capture_write(f"{at}/{name}-pool.h5", {"q": q, **pool}), "--threads", 1)


def main():
    with tempfile.TemporaryDirectory() as at:
        for d in (16, 64, 96, 128, 192, 256) if FULL else (16, 96, 256):
            with claim(f"heads of {d} columns: errors of rows and lse are within the bounds"):
                width_check(at, d)
        cancelling_check(at)
        warning_check(at)
    done_testing()


main()
