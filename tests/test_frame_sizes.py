# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows of any size have the supports that float64 gives, also for frames, which are ordered
by squares of scores.  This holds if all rows are multiplied by a power of two, if rows of very
different sizes are together, and for small residuals of later rounds.  A score beyond float32 is
refused with its row.  If squares of a row's scores are too small for float32, a warning names the
row."""
import re
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, gpu_present, ok, sagitta

N, K, P, S = 300, 20, 16, 3
RANDOM = np.random.default_rng(6)
ROWS = RANDOM.standard_normal((N, P)).astype("f4")
FRAMES = np.linalg.qr(RANDOM.standard_normal((K, P, 2)))[0].transpose(0, 2, 1).astype("f4")
ROUNDING = 1e-5  # of scores, relative to the norm of the row: 2 P roundings to float32


def encode(folder, rows, atoms, *words, ranks=0):
    """(the run, supports, scores, rows that were warned of)"""
    np.save(f"{folder}/rows.npy", rows)
    np.save(f"{folder}/atoms.npy", np.ascontiguousarray(atoms))
    done = sagitta("encode", "--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/atoms.npy",
                   "--top-s", S, "--output", f"{folder}/out", "--force", *words, ranks=ranks)
    said = re.search(r"(\d+) rows have codes, but what their frames see", done.stderr)
    supports = scores = None
    if done.returncode == 0:
        with h5py.File(f"{folder}/out/supports.h5") as f:
            supports, scores = (f[f"supports/{name}"][:].reshape(-1, S)
                                for name in ("indices", "score"))
    return done, supports, scores, int(said[1]) if said else 0


def wanted(rows, frames, rounds):
    """The supports and scores in float64, where no score is out of range."""
    supports, scores = (np.zeros((len(rows), S), t) for t in ("i4", "f8"))
    for i, x in enumerate(rows.astype("f8")):
        left, have = x, 0
        for now in ((r + 1) * S // rounds for r in range(rounds)):
            score = np.sqrt((np.einsum("kmp,p->km", frames.astype("f8"), left)**2).sum(1))
            score[supports[i, :have]] = -1
            best = np.argsort(-score, kind="stable")[:now - have]
            supports[i, have:now], scores[i, have:now], have = best, score[best], now
            vectors = frames[supports[i, :now]].reshape(-1, P).T.astype("f8")
            left = x - vectors @ np.linalg.lstsq(vectors, x, rcond=None)[0]
    return supports, scores


def equals(got, want, rows):
    """Are supports those of `want`, and scores too, up to the roundings of a row?"""
    size = np.maximum(np.linalg.norm(rows.astype("f8"), axis=1), 1e-300)[:, None]
    unit = np.maximum(ROUNDING * size, 2.0**-149)
    return np.array_equal(got[0], want[0]) and (abs(got[1] - want[1]) <= unit).all()


def devices():
    return (("--device", "cpu"), ("--device", "cuda")) if gpu_present() else (("--device", "cpu"),)


@claim("supports are those of float64, for rows times any power of two")
def check_scaled(folder, on):
    for rounds in 1, 3:
        _, first, scores, said = encode(folder, ROWS, FRAMES, "--rounds", rounds, *on)
        ok(said == 0 and equals((first, scores), wanted(ROWS, FRAMES, rounds), ROWS),
           f"ordinary rows, {rounds} rounds")
        for power in (-100, -80, -41, -38, 20, 54, 62, 90, 120):
            rows = np.ldexp(ROWS, power)
            done, got, found, said = encode(folder, rows, FRAMES, "--rounds", rounds, *on)
            ok(done.returncode == 0 and said == 0 and np.array_equal(got, first)
               and np.array_equal(found, np.ldexp(scores, power)),
               f"2^{power}, {rounds} rounds: {done.stderr[-200:] if done.returncode else said}")
    rows = np.ldexp(ROWS, -140)  # subnormal numbers with about 9 bits, which float64 holds exactly
    done, got, found, said = encode(folder, rows, FRAMES, *on)
    ok(said == 0 and equals((got, found), wanted(rows, FRAMES, 1), rows), "subnormal rows")
    for power in (-100, -80, 80):
        _, want, _, _ = encode(folder, ROWS, FRAMES[:, 0], *on)
        _, got, _, _ = encode(folder, np.ldexp(ROWS, power), FRAMES[:, 0], *on)
        ok(np.array_equal(got, want), f"atoms of one vector, 2^{power}")


@claim("rows of very different sizes have the supports of float64, on any ranks, with the filter "
       "and without")
def check_mixed(folder, on):
    rows = np.ldexp(ROWS, RANDOM.integers(-118, 119, (N, 1)).astype("i4"))
    rows[100] = 0
    for rounds in 1, 3:
        want, base = wanted(rows, FRAMES, rounds), None
        for ranks, *words in ((0,), (0, "--filter", "off"), (2,), (3, "--tile", 7, "--block", 64)):
            done, got, found, said = encode(folder, rows, FRAMES, "--rounds", rounds, *words, *on,
                                            ranks=ranks)
            ok(done.returncode == 0 and said == 0 and equals((got, found), want, rows),
               f"{ranks} ranks {words}, {rounds} rounds: {said} {done.stderr[-200:]}")
            with open(f"{folder}/out/supports.h5", "rb") as f:
                base = base or (got.tobytes(), found.tobytes())
                ok(f.read(4) and base == (got.tobytes(), found.tobytes()), "the same bits")


@claim("in later rounds residuals of 2^-60 of their rows keep the order of scores")
def check_residuals(folder, on):
    """Frames have disjoint columns.  A row is a vector of one frame, plus 2^-70 times parts in
    other frames."""
    frames = np.zeros((K, 2, 2 * K), "f4")
    frames[np.arange(K), 0, 2 * np.arange(K)] = frames[np.arange(K), 1, 2 * np.arange(K) + 1] = 1
    order = np.array([RANDOM.permutation(K)[:S] for _ in range(60)])
    rows = np.zeros((60, 2 * K), "f4")
    for row, (a, b, c) in zip(rows, order):
        row[2 * a], row[2 * b], row[2 * c + 1] = 1, 2.0**-70, 1.5 * 2.0**-71
    done, got, found, said = encode(folder, rows, frames, "--rounds", S, *on)
    ok(done.returncode == 0 and said == 0 and np.array_equal(got, order), f"{got[0]} {order[0]}")
    ok((found == [1, 2.0**-70, 1.5 * 2.0**-71]).all(), f"scores {found[0]}")


@claim("rows of which frames describe only a part of 2^-80 get a warning; rows of zeros do not")
def check_unseen(folder, on):
    frames = np.concatenate([np.zeros((K, 2, 1), "f4"), FRAMES], 2)
    rows = np.concatenate([np.zeros((N, 1), "f4"), ROWS], 1)
    rows[100] = 0
    rows[[5, 77, 299], 1:] = np.ldexp(rows[[5, 77, 299], 1:], -90)
    rows[[5, 77, 299], 0] = 1
    for ranks in 0, 2:
        done, _, _, said = encode(folder, rows, frames, *on, ranks=ranks)
        ok(done.returncode == 0 and said == 3, f"{said} of 3 {done.stderr[-200:]}")


@claim("rows whose scores exceed float32 are refused; rows whose scores nearly do are not")
def check_large(folder, on):
    rows = ROWS.copy()
    rows[41] = 0.9 * np.finfo("f4").max * FRAMES[3, 0] / abs(FRAMES[3, 0]).max()
    done, _, _, _ = encode(folder, rows, FRAMES, *on)
    ok(done.returncode == 65 and "row 41" in done.stderr, done.stderr[-300:])
    rows[41] = 0.99 * np.finfo("f4").max * FRAMES[3, 0]
    done, got, found, said = encode(folder, rows, FRAMES, *on)
    want = wanted(rows, FRAMES, 1)
    ok(done.returncode == 0 and said == 0 and equals((got, found), want, rows)
       and got[41, 0] == 3, f"{done.stderr[-300:]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for device in devices():
            for check in check_scaled, check_mixed, check_residuals, check_unseen, check_large:
                check(place, device)
    done_testing()
