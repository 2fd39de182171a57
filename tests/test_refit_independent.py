# SPDX-License-Identifier: BSD-3-Clause
"""Claim: classes, systems and a whole sweep are those of NumPy code that follows the formulas, not
the program.  Colours come from a graph, gradients and curvature from finite differences of the
objective, and the sweep has its own order of operations."""
import os
import sys
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta

N, K, P, S, Q = 5000, 40, 12, 3, 3
RHO = 0.125
# A sweep has some hundred dependent steps in float64, with numbers of size 1.
SWEEP_TOLERANCE = 1e-6


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)


def prepare(folder):
    at = lambda name: os.path.join(folder, name)
    need(sagitta("synth", "--n-rows", N, "--atoms", K, "--columns", P, "--top-s", S, "--noise", 0.1,
                 "--start-cosine", 0.9, "--output", at("d")))
    rows, start = at("d/rows.h5"), at("d/start.h5")
    need(sagitta("encode", "--rows", rows, "--dictionary", start, "--top-s", S, "--rho", RHO,
                 "--output", at("e.h5")))
    words = ["--rows", rows, "--dictionary", start, "--supports", at("e.h5"), "--directions", Q]
    need(sagitta("color", "--supports", at("e.h5"), "--output", at("c.h5"), ranks=2))
    need(sagitta("assemble", *words, "--output", at("s.h5"), ranks=2))
    need(sagitta("refit", *words, "--output", at("r"), ranks=2))
    state = {}
    with h5py.File(rows) as f, h5py.File(start) as g, h5py.File(at("e.h5")) as h:
        state["x"] = f["rows"][...].astype(float)
        state["U"] = g["atoms"][...].astype(float)
        state["A"] = h["supports/indices"][...].reshape(-1, S)
        state["t"] = h["supports/data"][...].reshape(-1, S).astype(float)
    state["r"] = state["x"] - np.einsum("nj,njp->np", state["t"], state["U"][state["A"]])
    return state


def colors_of(A):
    """(N.6) on the graph."""
    graph = np.zeros((K, K), bool)
    for j in range(S):
        for l in range(S):
            graph[A[:, j], A[:, l]] = True
    size, color = np.bincount(A.ravel(), minlength=K), np.full(K, -1)
    for a in sorted(range(K), key=lambda a: (-size[a], a)):
        if size[a]:
            taken = set(color[np.flatnonzero(graph[a])])
            color[a] = next(c for c in range(K + 1) if c not in taken)
    return color


def directions(U, r, t):
    """The directions E of one atom (N.16 of doc/numerics.md), from the residuals r of its rows and
    its codes t.  The candidates are G = r' t, then M e = r' (r e) for each kept direction e.  They
    are made orthonormal by projections."""
    kept, candidates = [], [r.T @ t]
    while candidates and len(kept) < Q:
        v = candidates.pop(0)
        for _ in range(2):
            for b in [U, *kept]:
                v = v - b * (b @ v)
        kept.append(v / np.linalg.norm(v))
        candidates.append(r.T @ (r @ kept[-1]))
    return np.array(kept)


def objective(U, E, r, t, z):
    """Half the squared error of an atom's rows, plus the penalty, after codes change by z[:n] and
    the frame by E z[n:]."""
    n = len(t)
    e = r + np.outer(t, U) - np.outer(t + z[:n], U + z[n:] @ E)
    return 0.5 * np.sum(e * e) + 0.5 * RHO * np.sum((t + z[:n]) ** 2)


def differences(U, E, r, t):
    """The gradient and Hessian of the objective at 0, by central differences.  With Richardson's
    step the gradient of a polynomial of degree 4 is exact up to rounding."""
    m, h = len(t) + len(E), 1e-3
    f = lambda *steps: objective(U, E, r, t, sum((s * np.eye(m)[i] for i, s in steps), np.zeros(m)))
    g = np.array([(8 * (f((i, h)) - f((i, -h))) - f((i, 2 * h)) + f((i, -2 * h))) / (12 * h)
                  for i in range(m)])
    H = np.array([[(f((i, h), (j, h)) - f((i, h), (j, -h)) - f((i, -h), (j, h))
                    + f((i, -h), (j, -h))) / (4 * h * h) for j in range(m)] for i in range(m)])
    return g, H


def system_of(f, b):
    """The gradient and the dense Hessian of system b of the file (d = 1)."""
    s = f["systems"]
    n0, n1 = s["atom_offsets"][b : b + 2]
    k = int(s["border_dims"][b])
    k0 = int(np.sum(s["border_dims"][:b]))
    kk0 = int(np.sum(np.square(s["border_dims"][:b].astype(int))))
    b0 = int(np.sum(np.diff(s["atom_offsets"][: b + 1]) * s["border_dims"][:b]))
    n = n1 - n0
    H = np.zeros((n + k, n + k))
    H[:n, :n] = np.diag(s["D_blocks"][n0:n1])
    H[:n, n:] = s["B_blocks"][b0 : b0 + n * k].reshape(n, k)
    H[n:, :n] = H[:n, n:].T
    H[n:, n:] = s["hbb"][kk0 : kk0 + k * k].reshape(k, k)
    g = np.concatenate([s["g_t"][n0:n1], s["g_b"][k0 : k0 + k]])
    return s["row"][n0:n1], g, H


@claim("systems are those that finite differences of the error give")
def check_systems(folder, state):
    with h5py.File(os.path.join(folder, "s.h5")) as f:
        sizes = np.diff(f["systems/atom_offsets"][...])
        for b in np.argsort(sizes)[:3]:
            atom = int(f["systems/atom"][b])
            rows, g, H = system_of(f, b)
            where = np.argwhere(state["A"] == atom)
            ok(np.array_equal(rows, where[:, 0]), f"atom {atom}: its {len(rows)} rows")
            r, t = state["r"][rows], state["t"][rows, where[:, 1]]
            E = directions(state["U"][atom], r, t)
            few = np.arange(min(len(rows), 12))  # rows are independent, so a few are enough
            pick = np.concatenate([few, len(rows) + np.arange(Q)])
            want_g, want_H = differences(state["U"][atom], E, r[few], t[few])
            T = np.sum(t * t) - np.sum(t[few] ** 2)
            want_g[len(few) :] -= E @ (r.T @ t - r[few].T @ t[few])
            want_H[len(few) :, len(few) :] += T * (E @ E.T)
            error = np.abs(g[pick] - want_g).max(), np.abs(H[np.ix_(pick, pick)] - want_H).max()
            ok(error[0] < 1e-6 and error[1] < 1e-3 * max(1, np.abs(want_H).max()),
               f"atom {atom}: differences: gradient, Hessian to {error[0]:.1e}, {error[1]:.1e}")


def step(U, r, t):
    """A Newton step of one atom, with its rows eliminated.  Ridges are added until it is convex."""
    E = directions(U, r, t)
    H, B, g = U @ U + RHO, np.outer(t, E @ U) - r @ E.T, RHO * t - r @ U
    C, h = (E @ E.T) * (t @ t), -(r.T @ t) @ E.T
    before, unit, ridge = np.sum(r * r) + RHO * np.sum(t * t), np.abs(np.diag(C)).max(), 0
    for _ in range(23):
        rows = ridge * H / unit  # the same ridge in the unit of the rows
        Sx = C + ridge * np.eye(Q) - B.T @ B / (H + rows)
        if np.linalg.eigvalsh(Sx)[0] > 0:
            new = U + np.linalg.solve(Sx, B.T @ g / (H + rows) - h) @ E
            new /= np.linalg.norm(new)
            back = r + np.outer(t, U)
            code = back @ new / (new @ new + RHO)
            left = back - np.outer(code, new)
            if np.sum(left * left) + RHO * np.sum(code * code) <= before:
                return new, left, code
            first = 1e-3 * unit
        else:
            off = np.sum(np.abs(Sx), 1) - np.abs(np.diag(Sx))
            first = max(0, -np.min(np.diag(Sx) - off)) + 1e-3 * unit
        ridge = 10 * ridge if ridge else first
    return U, r, t


@claim("a sweep moves atoms as NumPy does")
def check_sweep(folder, state, color):
    U, r, t, A = (state[key].copy() for key in ("U", "r", "t", "A"))
    for c in range(color.max() + 1):
        for a in np.flatnonzero(color == c):
            rows, place = np.nonzero(A == a)
            U[a], r[rows], t[rows, place] = step(U[a], r[rows], t[rows, place])
    with h5py.File(os.path.join(folder, "r", "dictionary.h5")) as f:
        got, history = f["atoms"][...].astype(float), f["fit/history"][...]
    error = np.abs(U - got).max()
    ok(error < SWEEP_TOLERANCE, f"a sweep: {K} atoms to {error:.1e}, "
       f"{history[1, 7]:.0f} of them escalated")
    total = np.sum((state["x"] - state["x"].mean(0)) ** 2)
    before = 1 - np.sum(state["r"] ** 2) / total
    ok(abs(before - history[0, 1]) < 1e-9, f"explained variance before: {before:.6f}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        state = prepare(folder)
        color = colors_of(state["A"])
        with h5py.File(os.path.join(folder, "c.h5")) as f:
            ok(np.array_equal(f["color"][...], color), f"{color.max() + 1} classes as on the graph")
        check_systems(folder, state)
        check_sweep(folder, state, color)
    done_testing()


main()
