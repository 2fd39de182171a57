# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a detector of detect is the atom times the inverse square root of the covariance.  The
threshold for its scores has the best F1 in finding the codes that fire.  Codes fire if they are
above /threshold of the file, which separates large codes from small ones.  The bits are the same on
any number of ranks and threads.  encode, export, evaluate and inspect take detectors.  Inputs that
do not belong together are refused."""
import json
import os
import resource
import tempfile

import h5py
import numpy as np

from tap import SOURCE, claim, done_testing, fails, ok, sagitta

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
NEXT = os.path.join(SOURCE, "input", "minilm-l3-kjv-next.h5")

NEVER = np.finfo("f4").max


def run(*words, **more):
    done = sagitta(*words, **more)
    ok(done.returncode == 0, f"{words[0]}: {done.stderr[-400:]}")
    return done


def dense(path):
    with h5py.File(path) as f:
        g = f["supports"]
        n, k = g.attrs["shape"]
        codes = np.zeros((n, k), np.float32)
        row = np.repeat(np.arange(n), np.diff(g["indptr"][:]))
        codes[row, g["indices"][:]] = g["data"][:]
    return codes


class Detectors:
    def __init__(self, folder):
        with h5py.File(os.path.join(folder, "dictionary.h5")) as f:
            self.atoms, self.mean = f["atoms"][:], f["mean"][:] if "mean" in f else None
            self.weights = f["encoder/weights"][:]
            self.threshold = f["encoder/threshold"][:]
            self.bias = f["encoder/bias"][:]
            self.firing = f["threshold"][:]


def centered(path, mean):
    if path.endswith(".npy"):
        rows = np.load(path)
    else:
        with h5py.File(path) as f:
            rows = f["rows"][:].astype(np.float32)
    return rows if mean is None else (rows.astype("f8") - mean).astype(np.float32)


def whitened(x, atoms):
    """The detectors, with NumPy's eigh."""
    s = x.astype("f8").T @ x.astype("f8") / len(x)
    values, vectors = np.linalg.eigh(s)
    values = np.maximum(values, 1e-4 * values.max())
    return atoms.astype("f8") @ (vectors / np.sqrt(values)) @ vectors.T


def chains(x, weights):
    """The scores in float32: one product and one sum at a time."""
    out = np.zeros((len(x), len(weights)), np.float32)
    for c in range(x.shape[1]):
        out += x[:, c, None] * weights[None, :, c]
    return out


def best_threshold(scores, fires):
    """(threshold, F1) by brute force.  Of equal F1 the larger threshold is taken; if no row fires,
    it is the largest number."""
    best, most = NEVER, 0.0
    for t in np.unique(scores[fires & (scores > 0)])[::-1]:
        said = scores >= t
        value = 2 * (said & fires).sum() / (said.sum() + fires.sum())
        if value > most:
            best, most = np.nextafter(np.float32(t), np.float32(-np.inf)), value
    return best, most


def firing_threshold(codes):
    """The largest code that does not fire.  The m largest codes fire, with S as their sum: of all
    m, the one with the largest S^5 / m^3 is taken."""
    c = np.sort(codes[codes > 0].astype("f8"))[::-1]
    best, most = 0.0, 0.0
    for m in np.flatnonzero(np.append(c[1:] < c[:-1], True)[:len(c)]) + 1:
        s = np.cumsum(c[:m])[-1]
        value = s * s * s * s * s / (float(m) * float(m) * float(m))
        if value > most:
            best, most = c[m] if m < len(c) else 0.0, value
    return best


def check_values(folder, rows, codes, sample=None, chosen=False):
    d = Detectors(folder)
    x = centered(rows, d.mean)
    want = whitened(x, d.atoms)
    error = np.abs(d.weights - want).max() / np.abs(want).max()
    ok(error < 1e-6, f"{folder}: detectors are NumPy's to {error:.1e}")
    if sample is not None:
        x, codes = x[sample], codes[sample]
    scores = chains(x, d.weights)
    firing = [0 if chosen else firing_threshold(codes[:, a]) for a in range(len(d.atoms))]
    ok(np.array_equal(d.firing, np.float32(firing)), f"{folder}: codes that fire {d.firing[:5]}")
    fires = codes > d.firing
    # the threshold is about 0.6 times the mean of the codes above it
    for a in range(len(d.atoms) if not chosen else 0):
        large = codes[fires[:, a], a].astype("f8")
        rest = codes[(codes[:, a] > 0) & ~fires[:, a], a]
        ok(not len(large) or (large.min() > 0.5 * large.mean() and
                              (not len(rest) or rest.max() < 0.7 * large.mean())),
           f"{folder}: atom {a}, {len(large)} and {len(rest)} codes")
    found = [best_threshold(scores[:, a], fires[:, a]) for a in range(len(d.atoms))]
    ok(np.array_equal(d.threshold, np.float32([t for t, _ in found])), f"{folder}: thresholds")
    ok((d.bias == 0).all(), f"{folder}: no bias")
    told = fires.any(0)
    ok(np.array_equal(told, (codes > 0).any(0)), f"{folder}: an atom with codes fires somewhere")
    return d, np.mean([f for (_, f), t in zip(found, told) if t])


@claim("on real rows detectors and thresholds are those of NumPy, on 1, 2, 3 and 5 ranks")
def check_real(at):
    run("seed", "--rows", ROWS, "--atoms", 40, "--center", "--output", f"{at}/d")
    run("encode", "--rows", ROWS, "--dictionary", f"{at}/d", "--top-s", 3, "--codes",
        "nonnegative", "--output", f"{at}/a")
    words = ("detect", "--rows", ROWS, "--dictionary", f"{at}/d", "--codes", f"{at}/a")
    done = run(*words, "--output", f"{at}/one", "--json")
    d, mean_f1 = check_values(f"{at}/one", ROWS, dense(f"{at}/a/supports.h5"))
    said = json.loads(done.stdout) if done.stdout else {}
    ok(abs(said.get("mean_f1", 0) - mean_f1) < 1e-12, f"mean F1 {mean_f1}: {said}")
    for ranks, threads in ((1, 3), (2, 1), (3, 1), (5, 1)):
        run(*words, "--output", f"{at}/{ranks}", "--threads", threads, ranks=ranks)
        ok(run("diff", f"{at}/one", f"{at}/{ranks}").stdout == "", f"{ranks} ranks")
    ok(run("verify", f"{at}/one").returncode == 0, "verify")
    run("encode", "--rows", NEXT, "--encoder", f"{at}/one", "--output", f"{at}/fires")
    scores = chains(centered(NEXT, d.mean), d.weights)
    ok(np.array_equal(dense(f"{at}/fires/supports.h5"),
                      np.where(scores > d.threshold, scores, 0)),
       "encode with detectors gives the codes that fire")
    run("export", f"{at}/one", "--to", "saelens", "--output", f"{at}/sae")
    ok(os.path.exists(f"{at}/sae/cfg.json") and
       json.load(open(f"{at}/sae/cfg.json"))["architecture"] == "jumprelu",
       "export writes a JumpReLU")
    run("import", f"{at}/sae", "--output", f"{at}/back")
    run("encode", "--rows", NEXT, "--encoder", f"{at}/back", "--output", f"{at}/again")
    a, b = dense(f"{at}/fires/supports.h5"), dense(f"{at}/again/supports.h5")
    ok(((a > 0) == (b > 0)).mean() > 0.9999, "import of the export gives the detectors back")


@claim("after a fit, encode with the dictionary solves as many codes per row as before; detectors "
       "have no such limit")
def check_fit(at):
    run("fit", "--rows", NEXT, "--atoms", 30, "--top-s", 2, "--encode-s", 5, "--sweeps", 1,
        "--output", f"{at}/f")
    run("detect", "--rows", NEXT, "--dictionary", f"{at}/f", "--codes", f"{at}/f", "--output",
        f"{at}/d")
    for name in "fd":
        run("encode", "--rows", NEXT, "--dictionary", f"{at}/{name}", "--output", f"{at}/{name}5")
    a, b = dense(f"{at}/f5/supports.h5"), dense(f"{at}/d5/supports.h5")
    ok(np.array_equal(a, b) and (a > 0).sum(1).max() == 5,
       "both dictionaries give the same five codes per row")
    run("encode", "--rows", NEXT, "--dictionary", f"{at}/f", "--l0", 2, "--output", f"{at}/chosen")
    run("detect", "--rows", NEXT, "--dictionary", f"{at}/f", "--codes", f"{at}/chosen", "--output",
        f"{at}/all")
    d, _ = check_values(f"{at}/all", NEXT, dense(f"{at}/chosen/supports.h5"), chosen=True)
    ok(not d.firing.any(), f"codes that thresholds chose fire where they are: {d.firing}")
    d = Detectors(f"{at}/d")
    run("encode", "--rows", NEXT, "--encoder", f"{at}/d", "--output", f"{at}/fires")
    scores = chains(centered(NEXT, d.mean), d.weights)
    ok(np.array_equal(dense(f"{at}/fires/supports.h5"),
                      np.where(scores > d.threshold, scores, 0)), "all that fire")


@claim("fit --detectors and encode --detect give what detect and encode --encoder give")
def check_own(at):
    words = ("fit", "--rows", NEXT, "--atoms", 30, "--top-s", 2, "--encode-s", 5, "--sweeps", 1,
             "--detectors")
    run(*words, "--seeds", 2, "--output", f"{at}/f")
    run("detect", "--rows", NEXT, "--dictionary", f"{at}/f", "--codes", f"{at}/f", "--output",
        f"{at}/d")
    own, other = Detectors(f"{at}/f"), Detectors(f"{at}/d")
    ok(own.weights.tobytes() == other.weights.tobytes() and
       own.threshold.tobytes() == other.threshold.tobytes(),
       "fit --detectors makes the detectors of detect")
    run(*words, "--seeds", 2, "--output", f"{at}/three", ranks=3)
    ok(run("diff", f"{at}/f", f"{at}/three").stdout == "", "three ranks")
    run(*words, "--seeds", 2, "--output", f"{at}/three", "--resume")
    ok(run("diff", f"{at}/f", f"{at}/three").stdout == "",
       "a complete fit that is resumed keeps its detectors")
    os.remove(f"{at}/three/supports.h5")
    run(*words, "--seeds", 2, "--output", f"{at}/three", "--resume")
    ok(run("diff", f"{at}/f", f"{at}/three").stdout == "",
       "a fit resumed without its codes has the same detectors")
    fails(sagitta(*[w for w in words if w != "--detectors"], "--seeds", 2, "--output",
                  f"{at}/three", "--resume"), 65, ("--detectors",), "resumed without detectors")
    run("encode", "--rows", NEXT, "--encoder", f"{at}/f", "--output", f"{at}/fires")
    run("encode", "--rows", NEXT, "--dictionary", f"{at}/f", "--detect", "--output", f"{at}/own")
    ok(run("diff", f"{at}/fires", f"{at}/own").stdout == "",
       "encode --detect has the codes of --encoder")
    run("encode", f"{at}/own/used.in", "--output", f"{at}/again")
    ok(run("diff", f"{at}/fires", f"{at}/again").stdout == "", "used.in repeats encode --detect")
    run("encode", "--rows", NEXT, "--dictionary", f"{at}/f", "--output", f"{at}/solved")
    ok(np.array_equal(dense(f"{at}/solved/supports.h5"), dense(f"{at}/f/supports.h5")),
       "without --detect encode solves codes")
    run("train", "--rows", NEXT, "--atoms", 20, "--top-s", 2, "--epochs", 1, "--output", f"{at}/t")
    for more, text in ((("--dictionary", f"{at}/t"), "has no detectors, which '--detect' takes"),
                       (("--encoder", f"{at}/f"), "does not go with '--encoder'"),
                       ((), "'--dictionary' is missing"),
                       (("--dictionary", f"{at}/f", "--top-s", 3), "'--top-s' does not go")):
        fails(sagitta("encode", "--rows", NEXT, "--detect", *more, "--output", f"{at}/no"), 2,
              (text,), f"refused: {more}")


@claim("if memory is too small, this is reported before any work")
def check_memory(at):
    rng = np.random.default_rng(2)
    p, limit = 4096, 900 << 20  # a P x P matrix of float64 takes 134 MB, and there are seven
    np.save(f"{at}/rows.npy", rng.normal(size=(40, p)).astype("f4"))
    run("seed", "--rows", f"{at}/rows.npy", "--atoms", 4, "--output", f"{at}/s")
    run("encode", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/s", "--top-s", 2, "--codes",
        "nonnegative", "--output", f"{at}/a")
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        for words in (("detect", "--dictionary", f"{at}/s", "--codes", f"{at}/a"),
                      ("fit", "--atoms", 4, "--top-s", 2, "--detectors", "--holdout-share", 0)):
            done = sagitta(*words, "--rows", f"{at}/rows.npy", "--threads", 1, "--output",
                           f"{at}/{words[0]}")
            fails(done, 71, ("detectors of 4 atoms and 4096 columns take", "are present"), words[0])
            ok("covariance" not in done.stderr and "sweep" not in done.stderr,
               "the message comes before any work")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@claim("if only a sample of the rows sets the thresholds, it has sum blocks from all parts of the "
       "rows")
def check_sample(at):
    rng = np.random.default_rng(3)
    n = 4096 * 19 + 5
    atoms = rng.normal(size=(5, 6)).astype("f4")
    atoms /= np.linalg.norm(atoms, axis=1)[:, None]
    np.save(f"{at}/atoms.npy", atoms)
    codes = (rng.random((n, 5)) < 0.1) * rng.random((n, 5))
    np.save(f"{at}/rows.npy", (codes @ atoms + 0.1 * rng.normal(size=(n, 6))).astype("f4"))
    run("encode", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy", "--top-s", 2,
        "--codes", "nonnegative", "--output", f"{at}/a")
    words = ("detect", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy", "--codes",
             f"{at}/a")
    run(*words, "--output", f"{at}/one")
    run(*words, "--output", f"{at}/two", ranks=3)
    ok(run("diff", f"{at}/one", f"{at}/two").stdout == "", "three ranks")
    chosen = [i * 20 // 16 for i in range(16)]
    sample = np.concatenate([np.arange(b * 4096, min((b + 1) * 4096, n)) for b in chosen])
    check_values(f"{at}/one", f"{at}/rows.npy", dense(f"{at}/a/supports.h5"), sample)


def codes_write(path, values):
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        where = [np.nonzero(r)[0] for r in values]
        g["indptr"] = np.cumsum([0] + [len(w) for w in where])
        g["indices"] = np.concatenate(where).astype("i4")
        g["data"] = np.concatenate([values[i, w] for i, w in enumerate(where)])
        g.attrs["shape"] = values.shape


@claim("few rows, an atom that never fires and a column of zeros give right detectors")
def check_corners(at):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(9, 4)).astype("f4")
    rows[:, 3] = 0
    np.save(f"{at}/rows.npy", rows)
    np.save(f"{at}/atoms.npy", np.eye(4, dtype="f4"))
    codes = np.maximum(rows, 0)
    codes[:, 2] = 0
    words = ("detect", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy", "--codes",
             f"{at}/codes.h5", "--force", "--output", f"{at}/d")
    codes_write(f"{at}/codes.h5", codes)
    run(*words, ranks=3)
    d, _ = check_values(f"{at}/d", f"{at}/rows.npy", codes)
    ok((d.threshold[2:] == NEVER).all() and (d.threshold[:2] < NEVER).all(), f"{d.threshold}")
    run("verify", f"{at}/d")
    codes[:] = 0  # equal codes, one code, equal codes on both sides of the cut, no code
    codes[2:7, 0], codes[4, 1], codes[:8, 2] = 0.25, 3, [4, 1, 4, 1, 4, 1, 1, 4]
    codes_write(f"{at}/codes.h5", codes)
    run(*words)
    d, _ = check_values(f"{at}/d", f"{at}/rows.npy", codes)
    ok(d.firing.tolist() == [0, 0, 1, 0], f"{d.firing}")


@claim("inspect --atom shows how often an atom fires, and verify checks that thresholds are "
       "possible")
def check_inspect(at):
    run("fit", "--rows", NEXT, "--atoms", 20, "--top-s", 2, "--encode-s", 5, "--sweeps", 1,
        "--detectors", "--output", f"{at}/f")
    d, codes = Detectors(f"{at}/f"), dense(f"{at}/f/supports.h5")
    fires = (codes > d.firing).sum(0)
    ok((d.firing > 0).any() and (fires < (codes > 0).sum(0)).any(),
       "some codes are below the thresholds")
    for a in range(0, 20, 6):
        said = json.loads(run("inspect", f"{at}/f", "--atom", a, "--json").stdout)
        ok(said["fires"] == fires[a] and np.float32(said["threshold"]) == d.firing[a], f"{said}")
        text = run("inspect", f"{at}/f", "--atom", a).stdout
        ok(f"\nfires       {fires[a]} of {len(codes)} rows, {100 * fires[a] / len(codes):.4g} %: "
           f"those with a code above {d.firing[a]:.4g}\n" in text, text)
    for value in (-1.0, np.inf, np.nan):
        with h5py.File(f"{at}/f/dictionary.h5", "r+") as f:
            f["threshold"][3] = value
        for done in (sagitta("inspect", f"{at}/f", "--atom", 3), sagitta("verify", f"{at}/f")):
            fails(done, 65, ("dictionary.h5'",), f"a threshold of {value}")
    with h5py.File(f"{at}/f/dictionary.h5", "r+") as f:
        del f["threshold"]
    said = json.loads(run("inspect", f"{at}/f", "--atom", 3, "--json").stdout)
    ok("fires" not in said and "threshold" not in said,
       "without thresholds inspect says nothing of firing")
    with h5py.File(f"{at}/f/dictionary.h5", "r+") as f:
        f["threshold"] = np.zeros(19, "f4")
    fails(sagitta("inspect", f"{at}/f", "--atom", 3), 65, ("'/threshold'", "of 20 atoms"), "19")


def f1(hits, said, true):
    return 2 * hits / (said + true) if hits else 0.0


@claim("evaluate --encoder probes all scores, as brute force does")
def check_probing(at):
    rng = np.random.default_rng(6)
    n, k, p = 240, 21, 8
    rows = rng.integers(-3, 4, (n, p)).astype("f4")
    labels = (rows[:, 0] + 3).astype("i4") + rng.integers(0, 2, n).astype("i4")
    np.save(f"{at}/rows.npy", rows)
    with h5py.File(f"{at}/y.h5", "w") as f:
        f["token"] = labels
    np.save(f"{at}/atoms.npy", rng.integers(-1, 2, (k, p)).astype("f4"))
    run("encode", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy", "--normalize",
        "--top-s", 2, "--codes", "nonnegative", "--output", f"{at}/a")
    atoms = np.load(f"{at}/atoms.npy")
    np.save(f"{at}/unit.npy", atoms / np.linalg.norm(atoms, axis=1, keepdims=True))
    run("detect", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/unit.npy", "--codes",
        f"{at}/a", "--output", f"{at}/d")
    d = Detectors(f"{at}/d")
    scores, half = chains(rows, d.weights), n // 2
    values, counts = np.unique(labels, return_counts=True)
    judged = []
    for label in values:
        y, best = labels == label, (0.0, 0, 0.0)
        for a in range(k):
            s = scores[:half, a]
            for t in np.unique(s)[::-1]:
                value = f1((y[:half] & (s >= t)).sum(), (s >= t).sum(), y[:half].sum())
                best = max(best, (value, -a, t), key=lambda b: b[:2])
        said = scores[half:, -best[1]] >= best[2]
        judged.append(f1((said & y[half:]).sum(), said.sum(), y[half:].sum()))
    words = ("evaluate", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/unit.npy", "--codes",
             f"{at}/a", "--labels", f"{at}/y.h5", "--encoder", f"{at}/d")
    got = json.loads(run(*words, "--json").stdout)["encoder"]
    ok(abs(got["label_f1"] - np.mean(judged)) < 1e-12, f"{got} {np.mean(judged)}")
    again = json.loads(run(*words, "--json", "--threads", 3).stdout)["encoder"]
    ok(got == again, "three threads")
    fails(sagitta(*words[:7], "--encoder", f"{at}/d"), 2, ("give '--labels' too",), "no labels")
    fails(sagitta(*words[:9], "--encoder", f"{at}/unit.npy"), 65, ("has no encoder",), "no encoder")


@claim("inputs that do not belong together are refused")
def check_refused(at):
    rng = np.random.default_rng(1)
    np.save(f"{at}/rows.npy", rng.normal(size=(20, 4)).astype("f4"))
    np.save(f"{at}/other.npy", rng.normal(size=(20, 4)).astype("f4"))
    np.save(f"{at}/few.npy", rng.normal(size=(19, 4)).astype("f4"))
    np.save(f"{at}/wide.npy", rng.normal(size=(20, 5)).astype("f4"))
    np.save(f"{at}/same.npy", np.zeros((20, 4), "f4"))
    np.save(f"{at}/atoms.npy", np.eye(4, dtype="f4"))
    np.save(f"{at}/three.npy", np.eye(4, dtype="f4")[:3])
    np.save(f"{at}/frames.npy", np.zeros((4, 2, 4), "f4") + np.eye(2, 4, dtype="f4"))
    for name in ("rows", "same"):
        run("encode", "--rows", f"{at}/{name}.npy", "--dictionary", f"{at}/atoms.npy", "--top-s", 2,
            "--output", f"{at}/{name}")
    np.save(f"{at}/long.npy", 2 * np.eye(4, dtype="f4"))
    np.save(f"{at}/tiny.npy", (np.load(f"{at}/rows.npy") * 1e-39).astype("f4"))
    run("encode", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/long.npy", "--normalize",
        "--top-s", 2, "--output", f"{at}/long")
    run("encode", "--rows", f"{at}/tiny.npy", "--dictionary", f"{at}/atoms.npy", "--top-s", 2,
        "--output", f"{at}/tiny")
    run("route", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy", "--top-s", 2,
        "--output", f"{at}/routed")
    for rows, atoms, codes, code, text in (
            ("few", "atoms", "rows", 65, "has 19: give the rows that were encoded"),
            ("wide", "atoms", "rows", 65, "columns"),
            ("other", "atoms", "rows", 65, "rows"),
            ("rows", "three", "rows", 65, "give the dictionary of these codes"),
            ("rows", "frames", "rows", 65, "detectors are of atoms that are one vector each"),
            ("same", "atoms", "same", 65, "all rows are the same"),
            ("rows", "long", "long", 65, "norm"),
            ("tiny", "atoms", "tiny", 65, "is not finite in float32"),
            ("rows", "atoms", "routed", 65, "has scores and no codes")):
        for ranks in (0, 2):
            done = sagitta("detect", "--rows", f"{at}/{rows}.npy", "--dictionary",
                           f"{at}/{atoms}.npy", "--codes", f"{at}/{codes}", "--output", f"{at}/o",
                           ranks=ranks)
            fails(done, code, (text,), f"{rows}, {atoms}, {codes}")
        ok(not os.path.exists(f"{at}/o/dictionary.h5"), "nothing is left")
    for left in ("--rows", "--dictionary", "--codes", "--output"):
        words = {"--rows": f"{at}/rows.npy", "--dictionary": f"{at}/atoms.npy", "--codes":
                 f"{at}/rows", "--output": f"{at}/o"}
        del words[left]
        done = sagitta("detect", *[w for pair in words.items() for w in pair])
        fails(done, 2, (f"'{left}' is missing",), f"no {left}")


def main():
    for check in (check_real, check_fit, check_own, check_memory, check_sample, check_corners,
                  check_inspect, check_probing, check_refused):
        with tempfile.TemporaryDirectory() as at:
            check(at)
    done_testing()


main()
