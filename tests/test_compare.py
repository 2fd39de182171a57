# SPDX-License-Identifier: BSD-3-Clause
"""Claim: compare finds the nearest atom of the other dictionary for each atom, with ties and signs
as in (N.22).  It pairs atoms as SciPy does.  The bytes are the same on any number of ranks and
threads.  Dictionaries that cannot be compared are refused, and the message says what to do."""
import json
import os
import shutil
import tempfile

import h5py
import numpy as np

from seal import reseal, wrong_seals
from tap import claim, done_testing, ok, peer_missing, sagitta

try:
    from scipy.optimize import linear_sum_assignment
except ImportError:
    linear_sum_assignment = None

P = 24
ABOVE = 0.9


def unit(rng, k):
    atoms = rng.standard_normal((k, P))
    return (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")


def scores(a, b):
    """(N.1) for all pairs: every product and every sum is rounded."""
    acc = np.zeros((len(a), len(b)), "f4")
    for c in range(P):
        acc = acc + a[:, None, c] * b[None, :, c]
    return acc


def partners(a, b, nonnegative):
    """(N.22) in plain NumPy: argmax takes the first of equal values."""
    s = scores(a, b)
    if nonnegative:
        s = np.maximum(s, np.float32(0))
    nearest = np.abs(s).argmax(axis=1).astype("i4")
    return nearest, s[np.arange(len(a)), nearest]


def chain(cosine):
    total = 0.0
    for value in np.abs(cosine.astype("f8")):
        total += value
    return total / len(cosine)


def pair_scores(a, b, nonnegative):
    """(N.22p): the float32 values by which pairs are chosen."""
    return scores(a, b) if nonnegative else np.abs(scores(a, b))


def integers(s):
    """The whole numbers that (N.22a) makes of scores."""
    return np.rint(np.ldexp(s.astype("f8"), 40 - np.frexp(np.abs(s).max())[1])).astype("i8")


def chain_mean(values):
    total = 0.0
    for value in values.astype("f8"):
        total += value
    return total / len(values) if len(values) else np.nan


class Place:
    def __init__(self, folder):
        rng = np.random.default_rng(7)
        self.folder = folder
        self.a, self.b = unit(rng, 1500), unit(rng, 37)
        self.b[5] = self.a[3]  # an equal atom; b[9] is equal, too, and the lower number wins
        self.b[9] = self.a[3]
        self.b[11] = -self.a[1400]  # the nearest atom only if signs do not count
        self.b[20] = self.a[1499]
        # a copy of the atom of b whose nearest atom in a is farthest away
        self.b[36] = self.b[abs(scores(self.b, self.a)).max(axis=1).argmin()]
        for name, atoms in ("a", self.a), ("b", self.b):
            for sign in "signed", "nonnegative":
                with h5py.File(self.at(f"{name}-{sign}.h5"), "w") as f:
                    f["atoms"] = atoms
                    if sign == "nonnegative":
                        f.attrs["nonnegative"] = np.int64(1)

    def at(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words, ranks=0, code=0, said=""):
        done = sagitta("compare", *words, ranks=ranks)
        ok(done.returncode == code and said in done.stderr,
           f"{words}: exit {done.returncode} {done.stderr.strip()[-300:]}")
        return done


def side_check(f, name, a, b, nonnegative):
    nearest, cosine = partners(a, b, nonnegative)
    group = f[name]
    ok((group["nearest"][:] == nearest).all(), f"{name}: nearest")
    ok(group["cosine"][:].tobytes() == cosine.astype("f4").tobytes(), f"{name}: bits of cosines")
    ok(group.attrs["mean_max_cosine"] == chain(cosine), f"{name}: mean_max_cosine")
    ok(group.attrs["matched"] == (np.abs(cosine) > ABOVE).sum(), f"{name}: matched")
    return nearest, cosine


@claim("partners, means and counts are those of NumPy's plain loops")
def check_values(p):
    for sign in "signed", "nonnegative":
        nonnegative = sign == "nonnegative"
        p.run(p.at(f"a-{sign}.h5"), p.at(f"b-{sign}.h5"), "--output", p.at(sign))
        with h5py.File(p.at(f"{sign}/comparison.h5")) as f:
            first, cosine = side_check(f, "first", p.a, p.b, nonnegative)
            second, _ = side_check(f, "second", p.b, p.a, nonnegative)
            ok(first[3] == 5 and second[9] == 3, "of equal atoms the lower one is nearest")
            ok((abs(cosine[1400]) > ABOVE) != nonnegative, f"{sign}: the atom turned round")
            mutual = sum(second[first[i]] == i and abs(cosine[i]) > ABOVE for i in range(len(p.a)))
            ok(f.attrs["mutual"] == mutual == (2 if nonnegative else 3), f"mutual {mutual}")
    p.run(p.at("b-signed.h5"), p.at("a-signed.h5"), "--output", p.at("turned"))
    with h5py.File(p.at("turned/comparison.h5")) as f:
        ok(f.attrs["mutual"] == 3 < f["first"].attrs["matched"],
           "the other dictionary has the same mutual partners")
    p.run(p.at("a-signed.h5"), p.at("b-nonnegative.h5"), "--output", p.at("mixed"))
    ok(sagitta("diff", p.at("mixed"), p.at("signed")).returncode == 0,
       "signs count only where both dictionaries say so")


@claim("any numbers of ranks and threads and any loops give the same bits")
def check_partition(p):
    words = p.at("a-signed.h5"), p.at("b-signed.h5"), "--output"
    for ranks, more in ((1, []), (3, []), (0, ["--threads", 1]), (0, ["--threads", 3]),
                        (2, ["--threads", 1, "--cpu-variant", "baseline"])):
        p.run(*words, p.at("again"), "--force", *more, ranks=ranks)
        done = sagitta("diff", p.at("signed"), p.at("again"))
        ok(done.returncode == 0, f"ranks {ranks} {more}: {done.stdout}")
    p.run(p.at("signed/used.in"), "--force")
    ok(sagitta("diff", p.at("signed"), p.at("again")).returncode == 0, "used.in repeats the run")


def pairs_check(f, name, a, b, nonnegative):
    """Returns the columns of the rows that have a pair, and the cosines of these pairs."""
    s, match = pair_scores(a, b, nonnegative), f["pairs/match"][:]
    rows = np.flatnonzero(match >= 0)
    cosine = s[rows, match[rows]]
    ok(len(rows) == min(s.shape) == len(set(match[rows])), f"{name}: one to one")
    ok(f["pairs/cosine"][:][rows].tobytes() == cosine.tobytes(), f"{name}: bits of cosines")
    at = f["pairs"].attrs
    ok(at["mean_cosine"] == chain_mean(cosine), f"{name}: {at['mean_cosine']}")
    ok(at["above_07"] == np.mean(cosine.astype("f8") > 0.7) and
       at["above_09"] == np.mean(cosine.astype("f8") > 0.9), f"{name}: shares")
    q = integers(s)
    best = linear_sum_assignment(q.astype("f8"), maximize=True)
    ok(q[best].sum() == q[rows, match[rows]].sum(), f"{name}: the sum of SciPy")
    return match


@claim("pairs have SciPy's sum, and of several such assignments the first is taken")
def check_pairs(p):
    if linear_sum_assignment is None:
        peer_missing("SciPy is not installed")
        return
    for sign, a, b in (("signed", p.a, p.b), ("nonnegative", p.a, p.b), ("turned", p.b, p.a)):
        with h5py.File(p.at(f"{sign}/comparison.h5")) as f:
            match = pairs_check(f, sign, a, b, sign == "nonnegative")
        ok((match[5] == 3) if sign == "turned" else (match[3] == 5), f"{sign}: the first of equals")
    rng = np.random.default_rng(4)
    for k, l in (1, 1), (1, 90), (600, 600), (90, 600):
        a, b = unit(rng, k), unit(rng, l)
        np.save(p.at("some.npy"), a), np.save(p.at("others.npy"), b)
        p.run(p.at("some.npy"), p.at("others.npy"), "--output", p.at("random"), "--force")
        with h5py.File(p.at("random/comparison.h5")) as f:
            match = pairs_check(f, f"{k} x {l}", a, b, False)
        best = linear_sum_assignment(pair_scores(a, b, False).astype("f8"), maximize=True)[1]
        ok((match == best).all(), f"{k} x {l}: the pairs of SciPy")
    p.run(p.at("some.npy"), p.at("others.npy"), "--output", p.at("random"), "--force", "--pairs",
          "no")
    with h5py.File(p.at("random/comparison.h5")) as f:
        ok("pairs" not in f, "--pairs no leaves the pairs out")
    ok("pairs" not in json.loads(p.run(p.at("some.npy"), p.at("others.npy"), "--json", "--pairs",
                                       "no").stdout),
       "with --pairs no the JSON object has no pairs")


@claim("the means of two quarters are those of the most frequent and the least frequent atoms")
def check_quarters(p):
    os.mkdir(p.at("run"))
    shutil.copy(p.at("a-signed.h5"), p.at("run/dictionary.h5"))
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((3000, P)) * np.linspace(0.2, 2, P)
    np.save(p.at("rows.npy"), rows.astype("f4"))
    done = sagitta("encode", "--rows", p.at("rows.npy"), "--dictionary", p.at("run"), "--top-s", 3,
                   "--output", p.at("run"))
    ok(done.returncode == 0, done.stderr)
    for other, atoms in ("b", p.b), ("a", p.a):
        done = p.run(p.at("run"), p.at(f"{other}-signed.h5"), "--output", p.at("quarters"),
                     "--force", ranks=2)
        with h5py.File(p.at("run/supports.h5")) as f:
            density = f["metrics/density"][:]
        with h5py.File(p.at("quarters/comparison.h5")) as g:
            match, cosine = g["pairs/match"][:], g["pairs/cosine"][:]
            at = dict(g["pairs"].attrs)
            ok((g["pairs/density"][:] == density).all() and len(set(density)) > 4, "density")
        order = np.argsort(-density, kind="stable")
        for name, part in (("most", order[:375]), ("least", order[-375:])):
            mean = chain_mean(cosine[[i for i in part if match[i] >= 0]])
            ok(at[f"{name}_frequent_quarter"] == mean, f"{other}: {name} frequent {mean}")
        ok(f"{at['most_frequent_quarter']:.6f}" in done.stdout, done.stdout)
    ok(sagitta("verify", p.at("quarters")).returncode == 0, "verified")
    turned = p.run(p.at("a-signed.h5"), p.at("run"))
    ok("no quarters by frequency" in turned.stdout,
       "the quarters are those of the first dictionary")
    shutil.copy(p.at("b-signed.h5"), p.at("run/dictionary.h5"))
    p.run(p.at("run"), p.at("a-signed.h5"))
    with h5py.File(p.at("run/dictionary.h5"), "r+") as f:
        del f["atoms"]
        f["atoms"] = p.a[::-1]
    ok("no quarters" in p.run(p.at("run"), p.at("b-signed.h5"), ranks=2,
                              said="is of another dictionary").stdout, "counts of other atoms")


@claim("the page has the figures, and lists atoms without a near partner first")
def check_page(p):
    text = p.run(p.at("b-signed.h5"), p.at("a-signed.h5")).stdout
    _, cosine = partners(p.b, p.a, False)
    alone = [a for a in np.argsort(np.abs(cosine), kind="stable") if abs(cosine[a]) <= ABOVE]
    ok(f"{chain(cosine):.6f}" in text, "mean_max_cosine")
    ok(f"{len(alone)} of A have no cosine above {ABOVE:g}: " +
       ", ".join(f"{a} ({cosine[a]:.3f})" for a in alone[:8]) + ", ..." in text, text)
    page = json.loads(p.run(p.at("b-signed.h5"), p.at("a-signed.h5"), "--json", ranks=2).stdout)
    first = page["first"]
    ok(page["command"] == "compare" and page["mutual"] == 3 and page["above"] == ABOVE and
       page["nonnegative"] is False and first["mean_max_cosine"] == chain(cosine) and
       first["atoms"] == len(p.b) and page["second"]["matched"] == 3, f"{str(page)[:300]}")
    with h5py.File(p.at("turned/comparison.h5")) as f:
        at = f["pairs"].attrs
        ok(page["pairs"] == {"count": len(p.b), "pw_mcc": at["mean_cosine"],
                             "above_07": at["above_07"], "above_09": at["above_09"],
                             "most_frequent_quarter": None, "least_frequent_quarter": None},
           f"{page['pairs']}")
        ok(f"{at['mean_cosine']:.6f}" in text and "no quarters by frequency" in text, text)
    ok([(e["atom"], e["cosine"]) for e in first["alone"]] ==
       [(a, float(cosine[a])) for a in sorted(alone)], "all that are alone")
    text = p.run(p.at("a-signed.h5"), p.at("a-signed.h5")).stdout
    ok("have no cosine" not in text and "1.0000     1.0000" in text, "a dictionary with itself")


@claim("dictionaries that cannot be compared are refused, and the message says what to do")
def check_refused(p):
    np.save(p.at("wide.npy"), unit(np.random.default_rng(1), 4)[:, :8])
    np.save(p.at("long.npy"), 2 * p.b)
    np.save(p.at("frames.npy"), np.eye(P, dtype="f4").reshape(P // 2, 2, P))
    good = p.at("b-signed.h5")
    p.run(good, code=2, said="sagitta compare A B")
    p.run(good, good, "--other", good, code=2, said="is given beside '--other'")
    p.run(good, p.at("wide.npy"), code=65, said="of 24 columns, ")
    p.run(good, p.at("long.npy"), code=65, said="as --normalize of")
    p.run(good, p.at("frames.npy"), code=65, said="frames of 2 vectors")
    p.run(good, p.at("none.h5"), code=74, said="cannot open")
    p.run(good, p.at("long.npy"), "--normalize", ranks=2)
    p.run(good, p.at("long.npy"), "--output", good, "--force", code=73)


@claim("verify computes the figures of a file again even if its hashes are right")
def check_verify(p):
    good = p.at("signed/comparison.h5")
    ok(sagitta("verify", good).returncode == 0 and not wrong_seals(good), "whole")
    for object_name, name, value, said in (
            ("second", "nearest", 5000, "is not in 0 .. 1499"), ("first", "cosine", 1.5, "is 1.5"),
            ("first", "cosine", 0.95, "its cosines give"), ("/", "mutual", 2, "its lists give 3"),
            ("second", "matched", 3, "its cosines give"),
            ("pairs", "match", 37, "is not in 0 .. 36"), ("pairs", "match", 5, "the same match, 5"),
            ("pairs", "match", -1, "has 36 pairs of 1500 and 37"),
            ("pairs", "cosine", 1.5, "is 1.5"), ("pairs", "cosine", 0.25, "says mean_cosine"),
            ("pairs", "above_09", 0.5, "says above_09")):
        path = shutil.copy(good, p.at("spoilt.h5"))
        with h5py.File(path, "r+") as f:
            entry = f[object_name]
            if object_name == "pairs" and name in ("match", "cosine"):
                entry[name][entry["match"][:].argmax() if value != 5 else 4] = value
            elif name in ("nearest", "cosine"):
                entry[name][2] = value
            else:
                entry.attrs.modify(name, type(entry.attrs[name])(value))
            reseal(f)
        done = sagitta("verify", path)
        ok(done.returncode == 65 and said in done.stderr, f"{object_name} {name}: {done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    place = Place(folder)
    check_values(place)
    check_pairs(place)
    check_quarters(place)
    check_partition(place)
    check_page(place)
    check_refused(place)
    check_verify(place)
done_testing()
