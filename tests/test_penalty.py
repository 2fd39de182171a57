# SPDX-License-Identifier: BSD-3-Clause
"""Claim: with a penalty rho the codes minimise 1/2 |x - sum c_j d_j|^2 + 1/2 rho |c|^2, as NumPy
and SciPy find, also for nearly equal atoms, more atoms than columns, frames and rounds.  Equal
atoms share a code.  With no penalty, or one below 2^-30, the first of them has the whole code, and
the terminal pass does not count the others."""
import tempfile

import h5py
import numpy as np
import scipy.optimize

from tap import claim, done_testing, need, ok, sagitta

N, P = 60, 12
SLACK = 1e-6  # relative, of the objective: codes are rounded to float32
RANDOM = np.random.default_rng(4)


def unit(a):
    return (a / np.linalg.norm(a, axis=-1, keepdims=True)).astype("f4")


def atoms_make(kind):
    """[K][d][P]: the vectors of each atom."""
    a = RANDOM.standard_normal((8, P))
    if kind == "twins":
        a[3], a[6], a[7] = a[0], a[0], -a[1]
    elif kind == "near":
        a[5] = a[2] + 1e-7 * RANDOM.standard_normal(P)
    elif kind == "many":
        a = RANDOM.standard_normal((20, P))
    elif kind == "frames":
        a = np.linalg.qr(RANDOM.standard_normal((6, P, 2)))[0].transpose(0, 2, 1)
        a[4], a[5] = a[1], a[2][::-1]
    return unit(a if a.ndim == 3 else a[:, None])


def supports(path, d):
    with h5py.File(path) as f:
        s = f["supports"]
        index = s["indices"][:].reshape(N, -1)
        codes = (s["codes"] if "codes" in s else s["data"])[:]
    return index, codes.astype("f8").reshape(N, -1)


def objective(x, vectors, codes, rho):
    return ((x - codes @ vectors) ** 2).sum() / 2 + rho * (codes ** 2).sum() / 2


def least(x, vectors, rho, nonnegative):
    """The least objective: by the normal equations with rho, or for c >= 0 by nnls with the matrix
    [D; sqrt(rho) I]."""
    m = len(vectors)
    if not nonnegative:
        return objective(x, vectors, np.linalg.solve(vectors @ vectors.T + rho * np.eye(m),
                                                     vectors @ x), rho)
    wide = np.concatenate([vectors.T, np.sqrt(rho) * np.eye(m)])
    return objective(x, vectors, scipy.optimize.nnls(wide, np.concatenate([x, np.zeros(m)]))[0],
                     rho)


def encode(folder, atoms, *words):
    """Encode rows that are sums of atoms.  Returns (rows, supports, codes)."""
    k, d, _ = atoms.shape
    x = (RANDOM.uniform(0.5, 2, (N, k * d)) @ atoms.reshape(-1, P)
         + 0.1 * RANDOM.standard_normal((N, P))).astype("f4")
    np.save(f"{folder}/rows.npy", x)
    with h5py.File(f"{folder}/atoms.h5", "w") as f:
        f["atoms"] = atoms[:, 0] if d == 1 else atoms
    need(sagitta("encode", "--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/atoms.h5",
                 "--output", f"{folder}/out", "--force", *words), f"encode {words}")
    return (x.astype("f8"), *supports(f"{folder}/out/supports.h5", d))


def check(folder, kind, rho, codes, rounds):
    atoms = atoms_make(kind)
    k, what = len(atoms), f"{kind}, rho {rho:g}, {codes} codes, {rounds} rounds"
    x, index, found = encode(folder, atoms, "--rho", rho, "--codes", codes, "--rounds", rounds,
                             "--top-s", k)
    vectors = atoms.astype("f8")[index].reshape(N, -1, P)
    have = [objective(*row, rho) for row in zip(x, vectors, found)]
    want = [least(a, v, rho, codes == "nonnegative") for a, v in zip(x, vectors)]
    worst = max(a / b - 1 for a, b in zip(have, want))
    ok(worst < SLACK, f"{what}: {worst:.1e} above the minimum")
    return index, found


@claim("signed and nonnegative codes minimise the penalised error")
def minimum_check(folder):
    for kind in "plain", "twins", "near", "many":
        for rho in 1, 0.01, 1e-6:
            for codes in "signed", "nonnegative":
                check(folder, kind, rho, codes, 1)
        check(folder, kind, 0.1, "signed", 4)
    for rounds in 1, 3:
        check(folder, "frames", 0.5, "signed", rounds)


@claim("equal atoms share a code; with a penalty below 2^-30, or none, the first atom has all of "
       "it")
def share_check(folder):
    index, found = check(folder, "twins", 0.5, "signed", 1)
    first, second = (np.take_along_axis(found, np.argmax(index == a, 1)[:, None], 1)
                     for a in (0, 3))
    ok(np.allclose(first, second, rtol=1e-5) and (first != 0).all(),
       "atoms 0 and 3 have equal codes")
    for rho in 1e-12, 0:
        _, index, found = encode(folder, atoms_make("twins"), "--rho", rho, "--top-s", 8)
        at = np.sort([np.argmax(index == a, 1) for a in (0, 3, 6)], 0)
        of = [np.take_along_axis(found, place[:, None], 1) for place in at]
        ok((of[0] != 0).all() and (of[1] == 0).all() and (of[2] == 0).all() and
           abs(found).max() < 100, f"rho {rho:g}: the first has all of it")


@claim("the terminal pass counts the codes that are kept, and its rows are NumPy's")
def terminal_check(folder):
    for rho, dropped in (0.5, 0), (1e-12, 3 * N):
        atoms = atoms_make("twins")
        encode(folder, atoms, "--rho", rho, "--top-s", 8)
        need(sagitta("terminal", "--rows", f"{folder}/rows.npy", "--dictionary",
                     f"{folder}/atoms.h5", "--supports", f"{folder}/out", "--directions", 1,
                     "--output", f"{folder}/end", "--force"), "terminal")
        with h5py.File(f"{folder}/end/terminal.h5") as f:
            have = dict(f["terminal"].attrs)
        ok(have["n_codes"] == 8 * N - dropped, f"rho {rho:g}: {have['n_codes']} of {8 * N} codes")
        if dropped:
            continue
        v = atoms[:, 0].astype("f8")
        want = N * np.linalg.slogdet(v @ v.T + rho * np.eye(8))[1]
        ok(abs(have["log_det_rows"] - want) < 1e-9 * abs(want),
           f"log|H_i|: {have['log_det_rows']:.9g}, NumPy's {want:.9g}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        minimum_check(place)
        share_check(place)
        terminal_check(place)
    done_testing()
