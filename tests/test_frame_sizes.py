# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows times a power of two have the same supports, of frames as long as squares of scores
are in the range of float32; rows that are too small for that are counted in a warning, single ones
too, and rows that are too large are refused by number."""
import re
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta

N, K, P = 300, 20, 16
RANDOM = np.random.default_rng(6)
ROWS = RANDOM.standard_normal((N, P)).astype("f4")
FRAMES = np.linalg.qr(RANDOM.standard_normal((K, P, 2)))[0].transpose(0, 2, 1).astype("f4")


def encode(folder, rows, atoms, *words, ranks=0):
    """(the run, supports, rows that were warned of)"""
    np.save(f"{folder}/rows.npy", rows)
    np.save(f"{folder}/atoms.npy", np.ascontiguousarray(atoms))
    done = sagitta("encode", "--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/atoms.npy",
                   "--top-s", 3, "--output", f"{folder}/out", "--force", *words, ranks=ranks)
    said = re.search(r"(\d+) rows are so small that the gates", done.stderr)
    supports = None
    if done.returncode == 0:
        with h5py.File(f"{folder}/out/supports.h5") as f:
            supports = f["supports/indices"][:].reshape(-1, 3)
    return done, supports, int(said[1]) if said else 0


@claim("supports are those of the rows as they are")
def check_scaled(folder):
    for atoms, powers in (FRAMES, (-50, -20, 20, 60)), (FRAMES[:, 0], (-100, -80, 80)):
        _, want, said = encode(folder, ROWS, atoms)
        ok(said == 0, "ordinary rows have no warning")
        for power in powers:
            done, got, said = encode(folder, np.ldexp(ROWS, power), atoms, "--rounds", 1)
            ok(np.array_equal(got, want) and said == 0,
               f"{atoms.shape}, 2^{power}: {done.returncode} {said}")


@claim("small rows of frames are warned of, each, on any ranks; rows of zeros are not")
def check_small(folder):
    for rows, wanted in ((np.ldexp(ROWS, -80), N), (np.zeros_like(ROWS), 0)):
        for ranks in 0, 2:
            done, _, said = encode(folder, rows, FRAMES, ranks=ranks)
            ok(done.returncode == 0 and said == wanted, f"{said} of {wanted} {done.stderr[-200:]}")
    few = ROWS.copy()
    few[[5, 77, 299]] = np.ldexp(few[[5, 77, 299]], -90)
    few[100] = 0
    _, want, _ = encode(folder, ROWS, FRAMES, "--rounds", 3)
    _, got, said = encode(folder, few, FRAMES, "--rounds", 3)
    same = (want == got).all(1)
    ok(said == 3 and same.sum() >= N - 4 and same[[0, 6, 298]].all(), f"3 rows of {N}: {said}")


@claim("rows whose gates are beyond float32 are refused")
def check_large(folder):
    rows = ROWS.copy()
    rows[41] = np.ldexp(rows[41], 70)
    done, _, _ = encode(folder, rows, FRAMES)
    ok(done.returncode == 65 and "row 41" in done.stderr, done.stderr[-300:])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        check_scaled(place)
        check_small(place)
        check_large(place)
    done_testing()
