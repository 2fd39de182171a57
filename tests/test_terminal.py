# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the terminal pass has the numbers of NumPy, whether S is positive definite or not.  The
bits are the same for any number of ranks, threads and panels, and for every build
(tests/expected/terminal).  The memory that it forecasts is enough."""
import os
import re
import tempfile

import h5py
import numpy as np

from tap import SOURCE, claim, done_testing, ok, sagitta, skip
from terminal_data import scaled_problem, synthetic_problem, terminal

REAL = f"{SOURCE}/input/minilm-l3-kjv-8k.h5"
COVARIANCE = 1e-10  # relative, if cond(S) is below 1e4


def state_read(inputs):
    rows, atoms, supports = inputs[1::2]
    with h5py.File(rows) as f:
        x = f["rows"][:].astype(float)
    with h5py.File(atoms) as f:
        u = f["atoms"][:].astype(float)
        if "mean" in f:
            x = (x - f["mean"][:]).astype(np.float32).astype(float)
    with h5py.File(supports) as f:
        s = f["supports"]
        indices = s["indices"][:].reshape(len(x), -1)
        codes = (s["codes"] if "codes" in s else s["data"])[:]
    u = u[:, None, :] if u.ndim == 2 else u
    return x, u, indices, codes.astype(float).reshape(*indices.shape, u.shape[1])


def directions(u, r, t, q):
    """The orthogonalised candidates of an atom: [kept, P]."""
    kept, candidates = [], list((r.T @ t).T)
    made_of = 0
    while len(kept) < q and candidates:
        e = candidates.pop(0)
        norm = np.linalg.norm(e)
        for _ in range(2):
            for v in [*u, *kept]:
                e = e - (v @ e) / (v @ v) * v
        if norm > 0 and np.linalg.norm(e) > 2.0 ** -40 * norm:
            kept.append(e / np.linalg.norm(e))
        if not candidates and made_of < len(kept):
            candidates.append(r.T @ (r @ kept[made_of]))
            made_of += 1
    return np.array(kept).reshape(-1, r.shape[1])


def joint(inputs, q, is_free=lambda codes: np.ones(codes.shape[:2], bool)):
    """S, the log det of the rows and RSS, from whole matrices.  Codes that are free are
    unknowns."""
    x, u, indices, codes = state_read(inputs)
    free = is_free(codes)
    k, d, _ = u.shape
    r = x - np.einsum("ijm,ijmp->ip", codes, u[indices])
    e = []
    for a in range(k):
        i, j = np.nonzero(indices == a)
        e.append(directions(u[a], r[i], codes[i, j], q))
    border = np.concatenate([[0], np.cumsum([len(v) * d for v in e])])
    s = np.zeros((border[-1], border[-1]))
    log_det = 0
    for i, support in enumerate(indices):
        support, t = support[free[i]], codes[i][free[i]].ravel()
        vectors = u[support].reshape(-1, u.shape[2])
        h = vectors @ vectors.T
        at = np.concatenate([np.arange(border[a], border[a + 1]) for a in support])
        wide = np.concatenate([np.repeat(e[a], d, axis=0) for a in support])
        owner = np.concatenate([j * d + np.tile(np.arange(d), len(e[a]))
                                for j, a in enumerate(support)])
        t = t[owner]
        b = vectors @ wide.T * t
        b[owner, np.arange(len(at))] -= wide @ r[i]
        c = wide @ wide.T * np.outer(t, t)
        # C couples every two borders of the row's atoms, for any two vectors of their frames
        s[np.ix_(at, at)] += c - b.T @ np.linalg.solve(h, b)
        log_det += np.linalg.slogdet(h)[1]
    return s, log_det, (r ** 2).sum(), border, x.size, free.sum() * d


@claim("the terminal pass computes the numbers that NumPy does")
def independent_check(inputs, path, name, q, *is_free):
    s, rows, rss, border, values, codes = joint(inputs, q, *is_free)
    with h5py.File(path) as f:
        t, run = f["terminal"], f["run/terminal"]
        n = len(s)
        sign, log_det = np.linalg.slogdet(s)
        condition = np.linalg.cond(s)
        ok(condition < 1e4 and sign > 0, f"{name}: border {n}, condition {condition:.3g}")
        limit = 1e-13 * max(1, abs(log_det)) + 2.0 ** -52 * n + 1e-12 * condition
        ok(abs(t.attrs["log_det_border"] - log_det) <= limit,
           f"{name}: log|S| {t.attrs['log_det_border']:.15g}, NumPy's {log_det:.15g}")
        ok(abs(t.attrs["log_det_rows"] - rows) <= 1e-12 * abs(rows) + 1e-9, f"{name}: log|H_i|")
        ok(abs(t.attrs["half_log_det"] - (rows + log_det) / 2) <= limit + 1e-9, f"{name}: half")
        phi = rss / (values - codes - n)
        ok(abs(t.attrs["phi"] - phi) <= 1e-12 * phi, f"{name}: phi {phi:.6g}")
        inverse = phi * np.linalg.inv(s)
        ok(np.array_equal(t["border"][:], border), f"{name}: borders of each atom")
        worst = 0
        for a in range(len(border) - 1):
            own = slice(border[a], border[a + 1])
            m = border[a + 1] - border[a]
            block = t["covariance_blocks"][a][:m, :m]
            worst = max(worst, abs(block - inverse[own, own]).max() / abs(inverse).max())
        ok(worst <= COVARIANCE, f"{name}: covariance of atoms, off by {worst:.2g}")
        strengths = {}
        for a in range(len(border) - 1):
            for b in range(a + 1, len(border) - 1):
                block = inverse[border[a]:border[a + 1], border[b]:border[b + 1]]
                strengths[a, b] = np.linalg.norm(block)
        best = sorted(strengths.values(), reverse=True)[:len(t["cross_pair"])]
        given = t["cross_strength"][:]
        ok(len(given) == 20 and np.allclose(given, best, rtol=1e-8), f"{name}: strongest pairs")
        ok(np.allclose([strengths[tuple(p)] for p in t["cross_pair"][:]], given, rtol=1e-8),
           f"{name}: and which they are")
        if "spectrum" in run:
            values = np.linalg.eigvalsh(s)
            ok(np.allclose(run["spectrum"][:], values, rtol=1e-9, atol=1e-12 * values[-1])
               and list(run.attrs["inertia"]) == [n, 0, 0], f"{name}: spectrum and inertia")


def fingerprint(done):
    return re.search("fingerprint=([0-9a-f]{16})", done.stderr)[1]


@claim("any ranks, threads and panels give the bits of one rank and of other builds")
def partition_check(inputs, folder, name, *words):
    """The bits of one rank, which are those of every other build (tests/expected/terminal)."""
    base = terminal(*inputs, *words, "--output", f"{folder}/one")
    with open(f"{SOURCE}/tests/expected/terminal") as f:
        expected = dict(line.split() for line in f if line[0] != "#")
    ok(fingerprint(base) == expected[name], f"{name}: fingerprint {fingerprint(base)}")
    with h5py.File(f"{folder}/one/terminal.h5") as f:
        ok(np.isfinite(f["terminal"].attrs["half_log_det"]) and "cross_blocks" in f["terminal"],
           f"{name}: S of {f['terminal'].attrs['n_border']} borders is positive definite")
    ways = ((2, "--threads", 1, "--panel", 8), (4, "--threads", 1, "--panel", 24),
            (1, "--threads", 2, "--panel", 512, "--cpu-variant", "avx2"),
            (1, "--threads", 1, "--panel", 64, "--workspace", 40))
    few = os.environ.get("SANITIZED") or os.environ.get("CUTS") == "few"
    for ranks, *way in (ways[0], ways[2]) if few else ways:
        done = terminal(*inputs, *words, *way, "--output", f"{folder}/way", ranks=ranks)
        diff = sagitta("diff", f"{folder}/one/terminal.h5", f"{folder}/way/terminal.h5")
        wrong = (diff.stdout or done.stderr[-200:]) if diff.returncode else ""
        ok(done.returncode == 0 and diff.returncode == 0,
           f"{name}: {ranks} ranks, {' '.join(map(str, way))} {wrong}")


@claim("an S that is not positive definite is described as by NumPy")
def indefinite_check(inputs, folder, q):
    """An S that is not positive definite is described as NumPy's eigenvalues say."""
    s, _, _, border, _, _ = joint(inputs, q)
    done = terminal(*inputs, "--directions", q, "--output", f"{folder}/bad", "--strict")
    values, vectors = np.linalg.eigh(s)
    with h5py.File(f"{folder}/bad/terminal.h5") as f:
        t, run = f["terminal"], f["run/terminal"]
        wanted = [(values > 0).sum(), (values < 0).sum(), 0]
        ok(list(run.attrs["inertia"]) == wanted and wanted[1] > 5, f"inertia {wanted} is NumPy's")
        bad = t.attrs["bad_pivot"]
        ok(np.linalg.eigvalsh(s[:bad, :bad]).min(initial=1) > 0 and
           np.linalg.eigvalsh(s[:bad + 1, :bad + 1]).min() <= 0, f"pivot {bad} is the first")
        ok(np.isnan(t.attrs["half_log_det"]) and np.isnan(t.attrs["log_det_border"])
           and "covariance_blocks" not in t, "log dets are NaN, there is no covariance")
        weak = run["identifiability"]
        count = (values <= 1e-8 * abs(values).max()).sum()
        shares = np.add.reduceat(vectors[:, :count] ** 2, border[:-1], axis=0)
        atoms, share = weak["atoms"][:], weak["share"][:]
        ok(run.attrs["weak_directions"] == count and
           np.allclose(weak["eigenvalue"][:], values[:count], atol=1e-10 * abs(values).max()) and
           np.allclose(share, np.sort(shares, axis=0)[::-1][:8].T, atol=1e-6) and
           np.allclose(shares[atoms, np.arange(count)[:, None]], share, atol=1e-6),
           f"{count} directions, and the atoms that carry them")
    ok(done.returncode == 1 and "not positive definite" in done.stderr, "--strict: exit 1")
    page = sagitta("inspect", f"{folder}/bad/terminal.h5").stdout
    lowest = page[page.index("atoms and their shares"):].splitlines()[1].split()
    ok("not positive definite" in page and np.isclose(float(lowest[1]), values[0], rtol=1e-5)
       and int(lowest[2]) == atoms[0, 0], f"inspect says so: {' '.join(lowest)}")


@claim("the memory that --dry-run forecasts is enough, and not much more")
def memory_check(inputs, folder):
    """The memory that --dry-run says is enough, and at most four times what the pass takes."""
    words = [*inputs, "--threads", "1", "--workspace", "16"]
    with h5py.File(inputs[1]) as rows, h5py.File(inputs[5]) as supports:
        n, p = rows["rows"].shape
        entries = len(supports["supports/indices"])
    plan = terminal(*words, "--dry-run", ranks=2).stdout
    each, total = (float(re.search(f"{name} +([0-9.]+) MB", plan)[1])
                   for name in ("directions", "memory"))
    ok(each >= 1e-6 * (n * p * 12 + entries * 24) / 2 and total >= 2 * each,
       f"directions: {each} MB on each of two ranks, {total} in all")
    said = float(re.search("memory +([0-9.]+) MB", terminal(*words, "--dry-run").stdout)[1])
    text = terminal(*words, "--output", f"{folder}/peak").stderr
    most, before = map(float, re.search("peak_memory +([0-9.]+) MB, ([0-9.]+)", text).groups())
    took = most - before
    if os.environ.get("SANITIZED"):
        skip("sanitizers take memory of their own, which the forecast does not count")
    else:
        ok(took <= said <= 4 * took, f"memory: {said:.0f} MB said, {took:.0f} taken")


def real_check(folder):
    dictionary, start, fit = (f"{folder}/{name}" for name in ("d/dictionary.h5", "e", "fit"))
    sagitta("seed", "--rows", REAL, "--atoms", 48, "--center", "--output", f"{folder}/d")
    sagitta("encode", "--rows", REAL, "--dictionary", dictionary, "--top-s", 2, "--output", start)
    inputs = ["--rows", REAL, "--dictionary", dictionary, "--supports", f"{start}/supports.h5"]
    sagitta("refit", *inputs, "--sweeps", 8, "--output", fit)
    indefinite_check(inputs, folder, 3)
    inputs[3], inputs[5] = f"{fit}/dictionary.h5", f"{fit}/supports.h5"
    partition_check(inputs, folder, "real", "--directions", 3, "--cross", 20)
    independent_check(inputs, f"{folder}/one/terminal.h5", "real", 3)
    memory_check(inputs, folder)


def nonnegative_problem(folder):
    """A fit of nonnegative codes, some of which are 0."""
    random = np.random.default_rng(12)
    atoms = random.standard_normal((10, 20))
    codes = np.zeros((400, 10))
    for row in codes:
        row[random.choice(10, 4, replace=False)] = random.uniform(0.05, 1.5, 4)
    atoms /= np.linalg.norm(atoms, axis=1)[:, None]
    start = atoms + 0.02 * random.standard_normal(atoms.shape)
    inputs = [word for name in ("rows", "dictionary", "supports")
              for word in (f"--{name}", f"{folder}/{name}.h5")]
    rows = codes @ atoms + 0.3 * random.standard_normal((400, 20))
    with h5py.File(inputs[1], "w") as f:
        f["rows"] = (np.round(1024 * rows) / 1024).astype("f4")  # equal with any BLAS
    with h5py.File(inputs[3], "w") as f:
        f["atoms"] = (start / np.linalg.norm(start, axis=1)[:, None]).astype("f4")
    for words in (["encode", *inputs[:4], "--top-s", 4, "--codes", "nonnegative", "--output",
                   inputs[5]], ["refit", *inputs, "--sweeps", 40, "--output", f"{folder}/fit"]):
        done = sagitta(*words)
        ok(done.returncode == 0, f"{words[0]}: {done.stderr[-200:]}")
    inputs[3], inputs[5] = f"{folder}/fit/dictionary.h5", f"{folder}/fit/supports.h5"
    return inputs


def nonnegative_check(folder):
    """Codes at their bound 0 are no unknowns.  NumPy solves the system without them."""
    with claim("a fit of nonnegative codes is made, with some codes at 0"):
        inputs = nonnegative_problem(folder)
        codes = state_read(inputs)[3]
        zeros = (codes == 0).sum()
        ok(20 < zeros < 0.3 * codes.size, f"{zeros} of {codes.size} codes are 0")
    partition_check(inputs, folder, "nonnegative", "--cross", 20, "--directions", 2)
    independent_check(inputs, f"{folder}/one/terminal.h5", "nonnegative", 2,
                      lambda codes: codes[:, :, 0] > 0)
    estimate_check(inputs, folder)


@claim("the estimate, too, has no unknowns for codes at their bound")
def estimate_check(inputs, folder):
    with h5py.File(f"{folder}/one/terminal.h5") as f:
        exact = dict(f["terminal"].attrs)
    done = terminal(*inputs, "--directions", 2, "--evidence", "slq", "--output", f"{folder}/slq")
    with h5py.File(f"{folder}/slq/terminal.h5") as f:
        got, slq = dict(f["terminal"].attrs), dict(f["run/terminal/slq"].attrs)
    off = slq["log_det_border"] - exact["log_det_border"]
    ok(done.returncode == 0 and abs(off) < 4 * slq["standard_error"] + 1e-9,
       f"log|S| is off by {off:.2g}, its standard error is {slq['standard_error']:.2g}")
    ok(all(got[name] == exact[name] for name in ("log_det_rows", "phi", "n_codes")),
       "rows, phi and the count of codes are those of the exact pass")


@claim("directions that are not determined are named")
def weak_check(folder):
    """Atom 5 has tiny codes.  Its directions are not determined, and it is named."""
    scale = np.ones(12)
    scale[5] = 1e-6
    inputs = scaled_problem(folder, 1, 600, scale)
    done = terminal(*inputs, "--output", f"{folder}/weak")
    with h5py.File(f"{folder}/weak/terminal.h5") as f:
        run = f["run/terminal"]
        values, atoms = (run[f"identifiability/{name}"][:] for name in ("eigenvalue", "atoms"))
        ok(done.returncode == 0 and run.attrs["weak_directions"] == 4 and (atoms[:, 0] == 5).all()
           and run["identifiability/share"][:, 0].min() > 0.99 and np.isfinite(values).all(),
           f"undetermined: {run.attrs['weak_directions']}, carried by {atoms[:, 0]}")
        top = np.nanmax(np.einsum("kii->k", np.nan_to_num(f["terminal/covariance_blocks"][:])))
        block = f["terminal/covariance_blocks"][5]
        ok(np.trace(block) == top, "the named direction has the largest covariance")
    page = sagitta("inspect", f"{folder}/weak/terminal.h5").stdout
    ok(page[page.index("least determined"):].splitlines()[1].split()[0] == "5", "inspect: first")


def main():
    with tempfile.TemporaryDirectory() as folder:
        plain = synthetic_problem(folder, "plain", "--n-rows", 2500, "--columns", 40, "--atoms",
                                  140, "--top-s", 3, "--noise", 0.05)
        partition_check(plain, folder, "planted", "--cross", 20, "--directions", 4)
        independent_check(plain, f"{folder}/one/terminal.h5", "planted", 4)  # two panels of atoms
        frames = synthetic_problem(folder, "frames", "--n-rows", 1500, "--columns", 40, "--atoms",
                                   16, "--frame", 2, "--top-s", 3, "--noise", 0.05)
        partition_check(frames, folder, "frames", "--cross", 20, "--directions", 2)
        independent_check(frames, f"{folder}/one/terminal.h5", "frames", 2)
        real_check(folder)
        weak_check(folder)
    with tempfile.TemporaryDirectory() as folder:
        nonnegative_check(folder)
    done_testing()


if __name__ == "__main__":
    main()
