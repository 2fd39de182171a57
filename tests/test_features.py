# SPDX-License-Identifier: BSD-3-Clause
"""Claim: evaluate --truth and --labels give what NumPy and scikit-learn compute from the same
codes.  fit --encode-s encodes with more atoms per row than it fits with.  Inputs that do not belong
together are refused."""
import json
import os
import tempfile

import h5py
import numpy as np
from scipy.optimize import linear_sum_assignment

from tap import SOURCE, claim, done_testing, fails, ok, peer_missing, sagitta

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
NEXT = os.path.join(SOURCE, "input", "minilm-l3-kjv-next.h5")


def dense(path, group="supports"):
    """A CSR matrix of a file, dense."""
    with h5py.File(path) as f:
        g = f[group]
        n, k = g.attrs["shape"]
        codes = np.zeros((n, k), np.float32)
        row = np.repeat(np.arange(n), np.diff(g["indptr"][:]))
        codes[row, g["indices"][:]] = g["data"][:]
    return codes


def write_csr(path, codes):
    rows = [np.nonzero(r)[0] for r in codes]
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        g["indptr"] = np.cumsum([0] + [len(r) for r in rows])
        g["indices"] = np.concatenate(rows).astype("i4")
        g["data"] = np.concatenate([codes[i, r] for i, r in enumerate(rows)]).astype("f4")
        g.attrs["shape"] = codes.shape


def run(*words):
    done = sagitta(*words)
    ok(done.returncode == 0, f"{words[0]}: {done.stderr[-400:]}")


def evaluated(*words):
    done = sagitta("evaluate", *words, "--json")
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        return None
    return json.loads(done.stdout)["evaluated"]


def recovery(codes, atoms, features, fires):
    """F1, precision, recall, uniqueness, true L0 and MCC, by NumPy and SciPy."""
    cosines = np.abs(atoms.astype("f8") @ features.T.astype("f8"))
    nearest = cosines.argmax(1)
    said, true = codes != 0, (fires > 0)[:, nearest]
    both = (said & true).sum(0)
    rows, columns = linear_sum_assignment(-cosines)
    zero = np.zeros(len(both))
    precision = np.divide(both, said.sum(0), out=zero.copy(), where=both > 0)
    recall = np.divide(both, true.sum(0), out=zero.copy(), where=both > 0)
    f1 = np.divide(2 * both, said.sum(0) + true.sum(0), out=zero.copy(), where=both > 0)
    return {"f1": f1.mean(), "precision": precision.mean(), "recall": recall.mean(),
            "uniqueness": len(set(nearest)) / len(nearest), "l0": (fires > 0).sum(1).mean(),
            "mcc": cosines[rows, columns].mean()}


@claim("--truth: F1, precision, recall and uniqueness are NumPy's")
def check_truth(at):
    for name, first, n in (("fit", 0, 2000), ("unseen", 2000, 700)):
        run("synth", "--kind", "world", "--atoms", 200, "--columns", 24, "--trees", 2,
                     "--n-rows", n, "--first-row", first, "--output", f"{at}/{name}")
    run("fit", "--rows", f"{at}/fit/rows.h5", "--atoms", 40, "--top-s", 3, "--sweeps", 3,
                 "--output", f"{at}/d")
    run("encode", "--rows", f"{at}/unseen/rows.h5", "--dictionary", f"{at}/d",
                 "--output", f"{at}/a")
    run("encode", "--rows", f"{at}/unseen/rows.h5", "--dictionary", f"{at}/d",
                 "--top-s", 6, "--codes", "signed", "--output", f"{at}/b")
    with h5py.File(f"{at}/d/dictionary.h5") as f:
        atoms = f["atoms"][:]
    with h5py.File(f"{at}/unseen/truth.h5") as f:
        features = f["truth/features"][:]
    fires = dense(f"{at}/unseen/truth.h5", "truth")
    words = ("--rows", f"{at}/unseen/rows.h5", "--dictionary", f"{at}/d", "--codes", f"{at}/a",
             "--codes", f"{at}/b", "--truth")
    got = evaluated(*words, f"{at}/unseen")
    for one, name in zip(got, "ab"):
        want = recovery(dense(f"{at}/{name}/supports.h5"), atoms, features, fires)
        for key, value in want.items():
            seen, bound = one["truth"][key], 1e-6 if key == "mcc" else 1e-12
            ok(abs(seen - value) < bound, f"{name}: {key} {seen} {value}")
    ok(got == evaluated(*words, f"{at}/unseen/truth.h5", "--threads", 3), "a file, three threads")
    run("synth", "--kind", "world", "--atoms", 200, "--columns", 24, "--trees", 2, "--n-rows", 700,
        "--output", f"{at}/others")
    fails(sagitta("evaluate", *words, f"{at}/others"), 65, ("rows_hash",), "the truth of others")
    itself = evaluated("--rows", f"{at}/unseen/rows.h5", "--dictionary",
                       f"{at}/unseen/truth.h5:/truth/features", "--codes",
                       f"{at}/unseen/truth.h5:/truth", "--truth", f"{at}/unseen")
    often = (fires > 0).any(0).mean()
    ok(abs(itself[0]["truth"]["f1"] - often) < 1e-12 and itself[0]["truth"]["uniqueness"] == 1,
       "the truth finds itself, but for features that do not fire")
    text = sagitta("evaluate", *words, f"{at}/unseen").stdout
    ok(f"{got[0]['truth']['f1']:.9g}" in text and "truth_f1" in text, "the text has the same")


def f1(hits, said, true):
    return 2 * hits / (said + true) if hits else 0.0


def probed(codes, labels):
    """By brute force: the two mean F1 of (N.33), with a threshold and by firing; the labels that
    are probed; and for each label the atoms with the best F1 in the first half of the rows."""
    n, half = len(labels), len(labels) // 2
    values, counts = np.unique(labels[labels >= 0], return_counts=True)
    chosen = values[np.lexsort((values, -counts))][:300]
    best_of, means = [], []
    for label in chosen:
        y = labels == label
        true = [y[:half].sum(), y[half:].sum()]
        tried, fired = [], []
        for a in range(codes.shape[1]):
            c = codes[:half, a]
            for t in np.unique(c[c > 0])[::-1]:
                hits = (y[:half] & (c >= t)).sum()
                tried.append((-f1(hits, (c >= t).sum(), true[0]), a, -t))
            fired.append((-f1((y[:half] & (c > 0)).sum(), (c > 0).sum(), true[0]), a))
        order, atoms = sorted(x for x in tried if x[0] < 0), []
        for _, a, _ in order:
            if a not in atoms:
                atoms.append(a)
        best_of.append(atoms[:5])
        later = codes[half:]
        scores = [0.0, 0.0]
        if order:
            _, a, t = order[0]
            said = later[:, a] >= -t
            scores[0] = f1((y[half:] & said).sum(), said.sum(), true[1])
            a = min(fired)[1]
            said = later[:, a] > 0
            scores[1] = f1((y[half:] & said).sum(), said.sum(), true[1])
        means.append(scores)
    return np.mean(means, 0) if means else (None, None), chosen, best_of


def shifted(labels, by):
    out = np.full(len(labels), -1)
    at = np.arange(len(labels)) + by
    inside = (at >= 0) & (at < len(labels))
    out[inside] = labels[at[inside]]
    return out


def check_series(got, codes, labels, name):
    for key, by in (("label", 0), ("label_before", -1), ("label_behind", 1)):
        (threshold, fires), chosen, _ = probed(codes, shifted(labels, by))
        ok(got[key]["labels"] == len(chosen), f"{name}, {key}: {len(chosen)} labels")
        for what, value in (("f1", threshold), ("f1_fires", fires)):
            seen = got[key][what]
            good = seen is None if value is None else abs(seen - value) < 1e-12
            ok(good, f"{name}, {key}: {what} {seen} {value}")


@claim("--labels: single atoms and thresholds are those of brute force, also with ties and gaps")
def check_labels(at):
    rng = np.random.default_rng(5)
    for n, k, kinds in ((301, 7, 12), (2, 3, 2), (1, 2, 1), (64, 1, 400)):
        labels = rng.integers(0, kinds, n)
        codes = rng.integers(-2, 5, (n, k)).astype("f4") * (rng.random((n, k)) < 0.4)
        codes[:, 0] = np.where(labels == 0, 3, 0)
        if n > 2 and k > 1:
            codes[:, 1] = 0
        write_csr(f"{at}/codes.h5", codes)
        np.save(f"{at}/rows.npy", rng.normal(size=(n, 5)).astype("f4"))
        np.save(f"{at}/atoms.npy", rng.normal(size=(k, 5)).astype("f4"))
        with h5py.File(f"{at}/labels.h5", "w") as f:
            f["y"] = labels.astype("i4")
        got = evaluated("--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy", "--codes",
                        f"{at}/codes.h5", "--labels", f"{at}/labels.h5:/y")
        check_series(got[0], codes, labels, f"{n} rows")


@claim("--labels: regressions on the best atoms are scikit-learn's, on real tokens")
def check_logistic(at):
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        peer_missing("scikit-learn is not installed")
        return
    run("seed", "--rows", ROWS, "--atoms", 60, "--center", "--output", f"{at}/d")
    run("encode", "--rows", NEXT, "--dictionary", f"{at}/d", "--top-s", 6, "--codes",
                 "nonnegative", "--output", f"{at}/a")
    words = ("--rows", NEXT, "--dictionary", f"{at}/d", "--codes", f"{at}/a", "--labels", NEXT)
    got = evaluated(*words)[0]["label"]
    codes = dense(f"{at}/a/supports.h5")
    with h5py.File(NEXT) as f:
        labels = f["token"][:]
    (threshold, _), chosen, best = probed(codes, labels)
    ok(abs(got["f1"] - threshold) < 1e-12, f"thresholds: {got['f1']}")
    half = len(labels) // 2
    for k in (1, 2, 5):
        scores = []
        for label, atoms in zip(chosen, best):
            y, x = labels == label, codes[:, atoms[:k]]
            said = np.zeros(len(y) - half, bool)
            if atoms and y[:half].any():
                model = LogisticRegression(tol=1e-8, max_iter=1000).fit(x[:half], y[:half])
                said = model.predict(x[half:])
            scores.append(f1((said & y[half:]).sum(), said.sum(), y[half:].sum()))
        ours = got[f"f1_logistic_{k}"]
        ok(abs(ours - np.mean(scores)) < 1e-3, f"{k} atoms: {ours} {np.mean(scores)}")
    ok(evaluated(*words, "--threads", 3)[0]["label"] == got, "three threads")


@claim("fit --encode-s keeps the atoms and gives more codes per row; encode takes this number from "
       "the fit")
def check_encode_s(at):
    words = ("fit", "--rows", ROWS, "--holdout", NEXT, "--atoms", 40, "--top-s", 2, "--sweeps", 2)
    run(*words, "--output", f"{at}/plain")
    run(*words, "--encode-s", 9, "--output", f"{at}/more")
    done = sagitta(*words, "--encode-s", 9, "--output", f"{at}/three", "--json", ranks=3)
    ok(sagitta("diff", f"{at}/more", f"{at}/three").returncode == 0, "three ranks")
    page = json.loads(done.stdout)
    with h5py.File(f"{at}/plain/dictionary.h5") as a, h5py.File(f"{at}/more/dictionary.h5") as b:
        ok(a["atoms"][:].tobytes() == b["atoms"][:].tobytes(), "the same atoms")
        ok((b.attrs["top_s"], b.attrs["rounds"]) == (9, 8), "what encode takes")
    run("encode", "--rows", ROWS, "--dictionary", f"{at}/more", "--output", f"{at}/again")
    run("encode", "--rows", NEXT, "--dictionary", f"{at}/more", "--output", f"{at}/next")
    ok(np.array_equal(dense(f"{at}/more/supports.h5"), dense(f"{at}/again/supports.h5")),
       "supports.h5 is what encode gives")
    with h5py.File(f"{at}/next/supports.h5") as f:
        explained = f["metrics"].attrs["explained_variance"]
    ok(page["unseen_encoded"] == explained and page["encode_s"] == 9 and page["top_s"] == 2,
       f"unseen rows with nine atoms: {page['unseen_encoded']} {explained}")
    fails(sagitta(*words, "--encode-s", 1, "--output", f"{at}/few"), 2,
          ("'--encode-s' is 1, less than the 2 of '--top-s'",), "fewer than fitted")
    run(*words, "--encode-s", 9, "--output", f"{at}/more", "--resume")
    fails(sagitta(*words, "--encode-s", 8, "--output", f"{at}/more", "--resume"), 65,
          ("--encode-s 9", "--encode-s 8"), "resumed with another number")
    fails(sagitta(*words, "--encode-s", 9, "--rounds", 4, "--output", f"{at}/more", "--resume"), 65,
          ("--rounds 8", "--rounds 4"), "resumed with other rounds of encoding")


@claim("inputs that do not belong together are refused")
def check_refused(at):
    rng = np.random.default_rng(1)
    np.save(f"{at}/rows.npy", rng.normal(size=(20, 24)).astype("f4"))
    np.save(f"{at}/atoms.npy", rng.normal(size=(3, 24)).astype("f4"))
    write_csr(f"{at}/codes.h5", np.ones((20, 3), "f4"))
    for name, words in (("rows", ("--columns", 24, "--n-rows", 19)),
                        ("columns", ("--columns", 23, "--n-rows", 20))):
        run("synth", "--kind", "world", "--atoms", 90, "--trees", 1, *words, "--output",
                     f"{at}/{name}")
    with h5py.File(f"{at}/y.h5", "w") as f:
        f["short"] = np.zeros(19, "i4")
        f["below"] = np.array([0] * 7 + [-5] + [0] * 12, "i8")
        f["real"] = np.zeros(20, "f4")
        f["wide"] = np.zeros((20, 2), "i4")
        f["hashes"] = np.uint64(2**63) + np.arange(20, dtype="u8")
    words = ("evaluate", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy", "--codes",
             f"{at}/codes.h5")
    for more, code, text in (
            (("--truth", f"{at}/rows"), 65, "is of 19 rows, "),
            (("--truth", f"{at}/columns"), 65, "has 23 columns, "),
            (("--truth", f"{at}/nothing"), 74, "nothing"),
            (("--truth", f"{at}/y.h5"), 65, "/truth"),
            (("--labels", f"{at}/y.h5:/short"), 65, "has 19 labels, "),
            (("--labels", f"{at}/y.h5:/below"), 65, "has the label -5 in row 7"),
            (("--labels", f"{at}/y.h5:/real"), 65, "labels are whole numbers"),
            (("--labels", f"{at}/y.h5:/wide"), 65, "has 2 dimensions"),
            (("--labels", f"{at}/y.h5:/hashes"), 65, "number labels from 0"),
            (("--labels", f"{at}/y.h5"), 65, "/token"),
            (("--labels", f"{at}/rows.npy"), 65, "is no HDF5 file")):
        fails(sagitta(*words, *more), code, (text,), f"refused: {more}")


def main():
    for check in (check_truth, check_labels, check_logistic, check_encode_s, check_refused):
        with tempfile.TemporaryDirectory() as at:
            check(at)
    done_testing()


main()
