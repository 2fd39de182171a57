# SPDX-License-Identifier: BSD-3-Clause
"""Claim: max_decoder_cosine of encode, route, merge, refit and fit is the largest |cosine| of two
atoms, whether codes have signs or not, on any ranks, with the filter and without."""
import os
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, need, ok, sagitta

N, K, P, BLOCK = 5000, 30, 12, 4096
NONNEGATIVE = "--codes", "nonnegative"


def unit(a):
    return (a / np.linalg.norm(a, axis=-1, keepdims=True)).astype("f4")


def inputs_make(folder):
    """Atoms of which the nearest pair is nearly opposite, and rows that are sums of some atoms."""
    random = np.random.default_rng(8)
    atoms = unit(random.standard_normal((K, P)))
    atoms[29] = unit(-atoms[4] + 0.01 * random.standard_normal(P))
    codes = random.uniform(0, 2, (N, K)) * (random.random((N, K)) < 0.1)
    np.save(f"{folder}/rows.npy", (codes @ atoms).astype("f4"))
    np.save(f"{folder}/atoms.npy", atoms)
    return atoms


def largest(atoms):
    """The largest |cosine|, and the largest cosine.  The test needs an opposite pair as the nearest
    one, to see the sign."""
    cosine = atoms.astype("f8") @ atoms.astype("f8").T - np.eye(len(atoms))
    return abs(cosine).max(), cosine.max()


def found(path):
    with h5py.File(path) as f:
        return float(f["metrics"].attrs["max_decoder_cosine"])


def check(path, atoms, what):
    size, _ = largest(atoms)
    ok(abs(found(path) - size) < 1e-6, f"{what}: {found(path):.6f} is NumPy's {size:.6f}")


@claim("encode and route store the largest cosine, for each sign, any rounds, filter and ranks")
def check_encode(folder, words, atoms):
    size, signed = largest(atoms)
    ok(size > signed + 0.01, f"the pair is opposite: {size:.4f}, with its sign {signed:.4f}")
    jobs = [("encode", (), 0), ("encode", NONNEGATIVE, 0), ("encode", NONNEGATIVE, 3),
            ("encode", (*NONNEGATIVE, "--rounds", 2, "--filter", "on"), 2),
            ("encode", (*NONNEGATIVE, "--filter", "off", "--tile", 4), 1),
            ("encode", (*NONNEGATIVE, "--grid", "2x1"), 2), ("route", NONNEGATIVE, 2)]
    for i, (command, options, ranks) in enumerate(jobs):
        need(sagitta(command, *words, *options, "--output", f"{folder}/{i}", ranks=ranks), command)
        check(f"{folder}/{i}/supports.h5", atoms, f"{command} {options}, {ranks} ranks")


@claim("merged parts have the largest cosine")
def check_merge(folder, words, atoms):
    for first, end in (0, BLOCK), (BLOCK, N):
        need(sagitta("encode", *words, *NONNEGATIVE, "--row-range", f"{first}:{end}", "--output",
                     f"{folder}/{first}.h5"), "part")
    need(sagitta("merge", f"{folder}/0.h5", f"{folder}/{BLOCK}.h5", "--output",
                 f"{folder}/merged"), "merge")
    check(f"{folder}/merged/supports.h5", atoms, "merge")


@claim("refit and fit store the largest cosine of their final atoms")
def check_fits(folder, words, atoms):
    need(sagitta("encode", *words, *NONNEGATIVE, "--output", f"{folder}/codes"), "encode")
    need(sagitta("refit", *words[:4], "--supports", f"{folder}/codes", "--sweeps", 1, "--output",
                 f"{folder}/refit"), "refit")
    need(sagitta("fit", "--rows", f"{folder}/rows.npy", "--atoms", K, "--top-s", 3, "--sweeps", 1,
                 *NONNEGATIVE, "--holdout-share", 0, "--output", f"{folder}/fit"), "fit")
    for name in "refit", "fit":
        with h5py.File(f"{folder}/{name}/dictionary.h5") as f:
            fitted = f["atoms"][...].reshape(K, P)
        size, signed = largest(fitted)
        ok(size > signed + 0.001, f"{name}: the pair is opposite: {size:.4f}, {signed:.4f}")
        check(os.path.join(folder, name, "supports.h5"), fitted, name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        atoms = inputs_make(folder)
        words = ["--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/atoms.npy",
                 "--top-s", 3]
        check_encode(folder, words, atoms)
        check_merge(folder, words, atoms)
        check_fits(folder, words, atoms)
    done_testing()
