# SPDX-License-Identifier: BSD-3-Clause
"""Claim: refit finds planted atoms.  With supports that are routed once, two sweeps find them from
a cosine of 0.9 and of 0.8; with --reroute, five sweeps find them from 0.7.  Frames of two vectors
from 0.8 are found in two sweeps: 128 of them with supports that are routed once, 256 with
--reroute.  With supports that are routed once, 256 frames that are moved at random are found in two
sweeps if routing has four rounds, or if codes have any direction and sizes of 0.3 to 1.5.  With one
round and other codes a part of them is found.  On real rows explained variance never falls by more
than 1e-9, and is within 0.005 of the figures of a prototype in NumPy."""
import os
import sys
import tempfile

import h5py
import numpy as np

from tap import FULL, SOURCE, claim, done_testing, ok, sagitta, skip_all

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
FOUND, SHARE = 0.99, 0.95  # least |cosine| of a found atom; least share of atoms that are found
SLACK = 1e-9  # rounding of the state at the end of a sweep
NOISE = 0.01
# Shares of 256 frames that are found if routing has one round, and codes are 0.5 to 1.5 on each
# vector: wrong supports hinder refit.  The limits are below the least shares of six seeds, 37.5 and
# 77.3 %.  They are there to show a fault, and are no goals.
EVEN_SHARE, RANDOM_SHARE = 0.35, 0.7  # if the start has equal principal cosines; if it is random
# Norms of a frame's code, which has any direction.  They were chosen by trial: with 0.75 to 1.5,
# 77 % of the frames are found.
SIZES = 0.3, 1.5
# The figures of the prototype, which drew other atoms, and the largest difference from them.
FIVE_SWEEPS, REROUTED, NEAR = 0.869, 0.878, 0.005


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)


def refit(folder, name, rows, dictionary, top_s, *words, rounds=1):
    """Encode once from the start, then refit.  Returns the new atoms and the history."""
    supports, out = os.path.join(folder, name + ".h5"), os.path.join(folder, name)
    need(sagitta("encode", "--rows", rows, "--dictionary", dictionary, "--top-s", top_s,
                 "--rounds", rounds, "--output", supports))
    need(sagitta("refit", "--rows", rows, "--dictionary", dictionary, "--supports", supports,
                 "--output", out, *words, ranks=2))
    with h5py.File(os.path.join(out, "dictionary.h5")) as f:
        return f["atoms"][...].astype(np.float64), f["fit/history"][...]


def principal_cosines(a, b):
    """The smallest principal cosine of each pair of frames, or |cosine| of unit atoms."""
    if a.ndim == 2:
        return np.abs(np.sum(a * b, 1))
    return np.linalg.svd(np.einsum("kmp,klp->kml", a, b), compute_uv=False)[:, -1]


def synth(data, atoms, frame, cosine):
    """Write planted rows, and a start with this cosine, to a new folder.  Returns the planted
    atoms."""
    need(sagitta("synth", "--n-rows", 20000, "--columns", 64, "--atoms", atoms, "--top-s", 4,
                 "--noise", NOISE, "--frame", frame, "--start-cosine", cosine, "--output", data))
    with h5py.File(os.path.join(data, "dictionary.h5")) as f:
        return f["atoms"][...].astype(np.float64)


def found_check(atoms, truth, share, text):
    found = np.mean(principal_cosines(atoms, truth) > FOUND)
    ok(found >= share, f"{text}: {100 * found:.1f} % found, at least {100 * share:.0f} %")


def planted_check(folder, cosine, sweeps, *words, frame=1, atoms=256):
    name = f"planted-{atoms}-{frame}-{cosine}"
    data = os.path.join(folder, name + "-data")
    truth = synth(data, atoms, frame, cosine)
    found, _ = refit(folder, name, os.path.join(data, "rows.h5"), os.path.join(data, "start.h5"), 4,
                     "--sweeps", sweeps, *words)
    found_check(found, truth, SHARE, " ".join(
        [f"{atoms} frames of {frame} from cosine {cosine}, {sweeps} sweeps", *words]))


def orthonormal(frames):
    return np.swapaxes(np.linalg.qr(np.swapaxes(frames, 1, 2))[0], 1, 2)


def random_start(truth, cosine, rng):
    """Move each frame at random, until its smallest principal cosine is the given one."""
    step = rng.standard_normal(truth.shape)
    low, high = np.zeros((len(truth), 1, 1)), np.ones((len(truth), 1, 1))
    for _ in range(40):
        size = (low + high) / 2
        cosines = principal_cosines(orthonormal(truth + size * step), truth)
        near = cosines[:, None, None] > cosine
        low, high = np.where(near, size, low), np.where(near, high, size)
    return orthonormal(truth + low * step)


def random_rows(truth, chosen, rng):
    """Rows of the chosen frames.  Codes have any direction, and a size in SIZES."""
    codes = rng.standard_normal((*chosen.shape, truth.shape[1]))
    codes /= np.linalg.norm(codes, axis=2, keepdims=True)
    codes *= rng.uniform(*SIZES, (*chosen.shape, 1))
    rows = np.einsum("njm,njmp->np", codes, truth[chosen], optimize=True)
    return rows + NOISE * rng.standard_normal(rows.shape)


def random_check(folder):
    """256 frames of two vectors from 0.8, two sweeps, supports that are routed once: four kinds of
    data."""
    data = os.path.join(folder, "random-data")
    truth = synth(data, 256, 2, 0.8)
    rows, start, random, sizes = (os.path.join(data, name + ".h5")
                                  for name in ("rows", "start", "random", "sizes"))
    rng = np.random.default_rng(1)
    with h5py.File(random, "w") as f:
        f["atoms"] = random_start(truth, 0.8, rng).astype(np.float32)
    with h5py.File(rows) as f, h5py.File(sizes, "w") as g:
        g["rows"] = random_rows(truth, f["planted/atoms"][...], rng).astype(np.float32)
    for name, x, atoms, rounds, share, text in (
            ("even", rows, start, 1, EVEN_SHARE, "all principal cosines 0.8"),
            ("random", rows, random, 1, RANDOM_SHARE, "the smallest 0.8"),
            ("rounds", rows, random, 4, SHARE, "the smallest 0.8, four rounds"),
            ("sizes", sizes, random, 1, SHARE, "the smallest 0.8, codes of any direction")):
        found, _ = refit(folder, name, x, atoms, 4, "--sweeps", 2, rounds=rounds)
        found_check(found, truth, share, f"256 frames of 2, {text}")


def real_check(folder):
    real = os.path.join(folder, "real.h5")
    need(sagitta("seed", "--rows", ROWS, "--atoms", 1024, "--center", "--output", real))
    for top_s in (4, 16, 32) if FULL else (16,):
        _, history = refit(folder, f"real-{top_s}", ROWS, real, top_s, "--sweeps", 5)
        ev = history[:, 1]
        ok(np.all(np.diff(ev) > -SLACK), f"real rows, top-s {top_s}: explained variance "
           + " ".join(f"{v:.4f}" for v in ev))
        if top_s == 16:
            ok(abs(ev[5] - FIVE_SWEEPS) < NEAR, f"after five sweeps {ev[5]:.4f}, {FIVE_SWEEPS}")
    _, history = refit(folder, "real-r", ROWS, real, 16, "--sweeps", 5, "--reroute")
    ok(abs(history[5, 1] - REROUTED) < NEAR, f"rerouted {history[5, 1]:.4f}, {REROUTED}")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("sanitizers are too slow for this test, which is about quality")
    with tempfile.TemporaryDirectory() as folder:
        planted_check(folder, 0.9, 2)
        planted_check(folder, 0.8, 2)
        planted_check(folder, 0.7, 5, "--reroute")
        planted_check(folder, 0.8, 2, frame=2, atoms=128)
        planted_check(folder, 0.8, 2, "--reroute", frame=2)
        random_check(folder)
        real_check(folder)
    done_testing()


main()
