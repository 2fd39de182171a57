# SPDX-License-Identifier: BSD-3-Clause
"""Problems for the tests of the terminal pass, as other programs would write them."""
import h5py
import numpy as np

from tap import sagitta


def scaled_problem(folder, seed, n, scale):
    """A problem with random atoms, in files of other programs.  scale: the size of each atom's
    codes; S grows with its square.  Returns the inputs of the terminal pass."""
    random = np.random.default_rng(seed)
    k, p, s = len(scale), 48, 3
    atoms = random.standard_normal((k, p))
    atoms = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype(np.float32)
    indices = np.array([random.choice(k, s, replace=False) for _ in range(n)], np.int32)
    codes = random.uniform(0.5, 1.5, (n, s)) * random.choice([-1, 1], (n, s)) * scale[indices]
    codes = codes.astype(np.float32)
    noise = 1e-3 * scale[indices].min(axis=1)[:, None] * random.standard_normal((n, p))
    rows = np.einsum("ij,ijp->ip", codes.astype(float), atoms[indices]) + noise
    with h5py.File(f"{folder}/rows.h5", "w") as f:
        f["rows"] = rows.astype(np.float32)
    with h5py.File(f"{folder}/dictionary.h5", "w") as f:
        f["atoms"] = atoms
    with h5py.File(f"{folder}/supports.h5", "w") as f:
        g = f.create_group("supports")
        g.attrs["encoding-type"], g.attrs["encoding-version"] = "csr_matrix", "0.1.0"
        g.attrs["shape"] = np.array([n, k])
        g["indptr"] = np.arange(0, n * s + 1, s)
        g["indices"], g["data"] = indices.ravel(), codes.ravel()
    return [word for name in ("rows", "dictionary", "supports")
            for word in (f"--{name}", f"{folder}/{name}.h5")]


def synthetic_problem(folder, name, *words):
    """A planted problem, encoded with its own dictionary.  Returns the inputs of the terminal
    pass."""
    place = f"{folder}/{name}"
    sagitta("synth", *words, "--output", place)
    done = sagitta("encode", "--rows", f"{place}/rows.h5", "--dictionary",
                   f"{place}/dictionary.h5", "--top-s", 3, "--output", place)
    if done.returncode:
        raise SystemExit(f"Bail out! {done.stderr}")
    return ["--rows", f"{place}/rows.h5", "--dictionary", f"{place}/dictionary.h5",
            "--supports", f"{place}/supports.h5"]


def terminal(*words, ranks=0, **more):
    return sagitta("terminal", *words, "--force", ranks=ranks, **more)
