# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows of harvest are within 1e-6 max|v| (1 + max|s| / 8) of float64, and logarithms within
(1e-6 + 1e-7 |lse|) (1 + max|s| / 8), for every type of capture and widths of heads that GPUs take,
with CHECK_FULL=1 every one."""
import tempfile

import numpy as np

from capture_files import TYPES, capture_write, harvested, of_type, starts, wide
from tap import FULL, claim, done_testing, need, ok, sagitta

N, H, H_KV = 600, 4, 2
RANDOM = np.random.default_rng(7)


def exact(q, k, v, causal):
    """Rows, logarithms and the largest |s|, of float64."""
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
    """No terms of a score cancel."""
    return RANDOM.random(shape, "f4")


# Scores of sizes at which the errors of chains are the largest beside the bounds.
SEQUENCES = [(normal, 1), (normal, 3), (normal, 10), (positive, 1), (positive, 8)]


def harvest(at, arrays, causal, what):
    path = capture_write(f"{at}/c.h5", {**dict(zip("qkv", arrays)),
                                        "q_start": starts([N] * len(SEQUENCES))}, causal=causal)
    need(sagitta("harvest", "--capture", path, "--output", f"{at}/rows.h5", "--force", "--quiet"),
         what)
    return (x.view(np.float32).astype("f8") for x in harvested(f"{at}/rows.h5"))


def errors(q, k, v, causal, z, lse):
    """The largest ones of rows and logarithms of a sequence, in units of the bounds."""
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


def main():
    with tempfile.TemporaryDirectory() as at:
        for d in (16, 64, 96, 128, 192, 256) if FULL else (16, 96, 256):
            with claim(f"heads of {d} columns: within the bounds"):
                width_check(at, d)
    done_testing()


main()
