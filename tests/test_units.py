# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the unit of the rows changes only results that have this unit.  If rows are multiplied by
a power of two, refit and fit --update atoms give the same atoms, bit for bit, even if steps need
ridges."""
import os
import sys
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta

N, P, K, S = 300, 24, 24, 4


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def planted(random, frame):
    """(rows, a start that is far from the planted atoms)."""
    atoms = unit(random.standard_normal((K, frame, P)))
    codes = np.zeros((N, K, frame))
    for row in codes:
        row[random.choice(K, S, replace=False)] = random.uniform(0.5, 1.5, (S, frame))
    rows = np.einsum("nkm,kmp->np", codes, atoms) + 0.2 * random.standard_normal((N, P))
    start = atoms + 0.5 * unit(random.standard_normal(atoms.shape)) * P ** 0.5 / 2
    start = np.linalg.qr(start.transpose(0, 2, 1))[0].transpose(0, 2, 1)
    return rows.astype("f4"), (start if frame > 1 else unit(start[:, 0])).astype("f4")


def fitted(place):
    """The results without a unit, the scores and codes, and the number of steps that needed
    ridges."""
    with h5py.File(os.path.join(place, "dictionary.h5")) as f:
        history = f["fit/history"][...]
        free = [f["atoms"][...].tobytes(), history[:, :7].tobytes()]
        if "ridge" in f["fit"]:
            free.append(f["fit/ridge"][...].tobytes())
    with h5py.File(os.path.join(place, "supports.h5")) as f:
        free.append(f["supports/indices"][...].tobytes())
        codes = f["supports/codes" if "codes" in f["supports"] else "supports/data"][...]
        return free, f["supports/score"][...], codes, int(history[:, 7].sum())


def refit(place, rows, start, words):
    encode = [w for w in words if w != "--reroute"]
    need(sagitta("encode", "--rows", rows, "--dictionary", start, "--top-s", S, "--output",
                 place + "-e", *encode))
    need(sagitta("refit", "--rows", rows, "--dictionary", start, "--supports", place + "-e",
                 "--sweeps", 2, "--output", place, *(w for w in words if w == "--reroute")))


def fit(place, rows, _, words):
    need(sagitta("fit", "--rows", rows, "--atoms", K, "--top-s", S, "--update",
                 "atoms", "--sweeps", 2, "--output", place, *words))


@claim("results keep their bits if rows are scaled by powers of two, also for steps that need "
       "ridges")
def check_steps(folder):
    random = np.random.default_rng(17)
    for text, frame, command, *words in (
            ("refit", 1, refit), ("refit of frames", 2, refit, "--reroute"),
            ("refit, a penalty", 1, refit, "--rho", 0.1),
            ("refit, nonnegative", 1, refit, "--codes", "nonnegative"), ("fit", 1, fit)):
        rows, start = planted(random, frame)
        np.save(os.path.join(folder, "start.npy"), start)
        wanted = None
        for power in (0, 8, -80):
            path, place = (os.path.join(folder, f"{text}{power}{end}") for end in (".npy", ""))
            np.save(path, rows * np.float32(2.0**power))
            command(place, path, os.path.join(folder, "start.npy"), words)
            free, *measured, ridges = fitted(place)
            back = free, [np.ldexp(x, -power).tobytes() for x in measured]
            wanted = wanted or back
            ok(back == wanted, f"{text} of rows times 2^{power}: {ridges} steps with ridges")
        ok(ridges > 0 or command == fit, f"{text}: steps needed ridges")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_steps(folder)
    done_testing()


main()
