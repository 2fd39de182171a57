# SPDX-License-Identifier: BSD-3-Clause
"""Arrow systems as NumPy arrays: functions that write them to systems.h5, read solutions, and
compute the errors of solutions."""
import os

import h5py
import numpy as np

ARRAYS = ("D_blocks", "B_blocks", "g_t", "hbb", "g_b")


class System:
    """h (n, d, d), b (n, d, k), g (n, d), c (k, k), g_b (k)."""

    def __init__(self, h, b, g, c, g_b):
        self.h, self.b, self.g, self.c, self.g_b = h, b, g, c, g_b
        self.n, self.d, self.k = b.shape

    def flat(self):
        """The blocks in the order of the file, column-major."""
        turned = (self.h.transpose(0, 2, 1), self.b.transpose(0, 2, 1), self.g, self.c.T, self.g_b)
        return [np.ravel(x) for x in turned]

    def ridged(self, ridge_t, ridge_b):
        return System(self.h + ridge_t * np.eye(self.d), self.b, self.g,
                      self.c + ridge_b * np.eye(self.k), self.g_b)

    def dense(self):
        """The whole symmetric matrix and minus the gradient."""
        rows = self.n * self.d
        a = np.zeros((rows + self.k,) * 2)
        for i in range(self.n):
            at = slice(i * self.d, (i + 1) * self.d)
            a[at, at] = self.h[i]
            a[at, rows:] = self.b[i]
        a[rows:, :rows] = a[:rows, rows:].T
        a[rows:, rows:] = self.c
        return a, -np.concatenate([self.g.ravel(), self.g_b])


def random_system(random, d, k, n):
    h = random.standard_normal((n, d, d))
    h = h @ h.transpose(0, 2, 1) + np.eye(d)
    c = random.standard_normal((k, k))
    c = c + c.T + (2.0 * n * d + 12 * k + 16) * np.eye(k)
    return System(h, random.standard_normal((n, d, k)), random.standard_normal((n, d)), c,
                  random.standard_normal(k))


def write(path, systems, atoms=None, changes=None, drop=()):
    """Write systems.  changes: {dataset: a function that changes its array}."""
    parts = {"atom": np.arange(len(systems), dtype="i4") if atoms is None else atoms,
             "color": np.zeros(len(systems), "i4"),
             "atom_offsets": np.cumsum([0] + [s.n for s in systems]).astype("i8"),
             "row_dims": np.array([s.d for s in systems], "i4"),
             "border_dims": np.array([s.k for s in systems], "i4")}
    flat = [s.flat() for s in systems]
    for i, name in enumerate(ARRAYS):
        parts[name] = np.concatenate([f[i] for f in flat] or [np.zeros(0)])
    for name, change in (changes or {}).items():
        parts[name] = change(parts[name])
    if os.path.exists(path):
        os.remove(path)  # a rank that was ended may hold the file's lock for a moment
    with h5py.File(path, "w") as f:
        for name, values in parts.items():
            if name not in drop:
                f["systems/" + name] = values


def solutions(path, systems):
    """A list of dictionaries, one with the solution of each system; its t is (n, d)."""
    with h5py.File(path) as f:
        whole = {name: f["solutions/" + name][...] for name in f["solutions"]}
    out, t, b = [], 0, 0
    for i, s in enumerate(systems):
        one = {name: v[i] for name, v in whole.items() if not name.startswith("delta")}
        one["t"] = whole["delta_t"][t:t + s.n * s.d].reshape(s.n, s.d)
        one["b"] = whole["delta_beta"][b:b + s.k]
        t, b = t + s.n * s.d, b + s.k
        out.append(one)
    return out


def backward_error(s, t, b):
    """The componentwise backward error of Oettli and Prager: the largest |A x - r|_i /
    (|A| |x| + |r|)_i over all rows, in extended precision.  It is the smallest change of every
    entry of A and r, each relative to itself, that makes x the solution."""
    wide = np.longdouble
    h, c, couplings, g, g_b = (m.astype(wide) for m in (s.h, s.c, s.b, s.g, s.g_b))
    t, b = t.astype(wide), b.astype(wide)

    def rows(h, c, couplings, g, g_b, t, b):
        return np.concatenate([
            (np.einsum("nij,nj->ni", h, t) + couplings @ b + g).ravel(),
            np.einsum("nik,ni->k", couplings, t) + c @ b + g_b])

    left = abs(rows(h, c, couplings, g, g_b, t, b))
    size = rows(*map(abs, (h, c, couplings, g, g_b, t, b)))
    return float((left[left > 0] / size[left > 0]).max(initial=0))


def moved(random, steps):
    """The steps, each with a relative change of 1e-12."""
    return steps * (1 + 1e-12 * random.choice((-1, 1), steps.shape))


def log_det(s):
    """log det by LAPACK: of the diagonal blocks, then of the Schur complement."""
    total = float(np.linalg.slogdet(s.h)[1].sum()) if s.n else 0.0
    if s.k == 0:
        return total
    reduced = np.einsum("nik,nij->kj", s.b, np.linalg.solve(s.h, s.b)) if s.n else 0
    return total + float(np.linalg.slogdet(s.c - reduced)[1])
