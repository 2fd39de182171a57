# SPDX-License-Identifier: BSD-3-Clause
"""Claim: fit --seeds finds how close each atom is to its pair in the fits of other seeds, as SciPy
pairs them.  The bytes are the same on any number of ranks, and if resumed after any seed.  inspect,
export, detect and verify know the result, and options that contradict each other are refused."""
import json
import os
import shutil
import signal
import tempfile

import h5py
import numpy as np

from jobs import faulty
from seal import reseal
from tap import claim, done_testing, fails, later_wins, need, ok, peer_missing, sagitta, same, skip

try:
    from scipy.optimize import linear_sum_assignment
except ImportError:
    linear_sum_assignment = None

K, COLUMNS, SLACK = 40, 24, 1e-6  # SLACK: float32 sums, which NumPy rounds in another way


class Place:
    def __init__(self, folder):
        self.folder = folder
        for name, first, n in (("fit", 0, 2500), ("unseen", 2500, 600)):
            need(sagitta("synth", "--kind", "world", "--atoms", 90, "--columns", COLUMNS, "--trees",
                         1, "--n-rows", n, "--first-row", first, "--output", self.at(name)), name)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def words(self, out, *words):
        return later_wins("fit", "--rows", self.at("fit/rows.h5"), "--holdout",
                          self.at("unseen/rows.h5"), "--atoms", K, "--top-s", 3, "--sweeps", 4,
                          "--seed", 5, "--output", self.at(out), *words)

    def fit(self, out, *words, ranks=0):
        return sagitta(*self.words(out, *words), ranks=ranks)


def read(path, *names):
    with h5py.File(path) as f:
        return [f[name][:] if name in f else None for name in names]


def paired(a, b, nonnegative):
    """The cosine of each atom of a and its pair in b, by SciPy."""
    cosine = a.astype("f8") @ b.T.astype("f8")
    cosine = cosine if nonnegative else np.abs(cosine)
    rows, columns = linear_sum_assignment(-cosine)
    return cosine[rows, columns]


@claim("the stability of an atom is its largest cosine with a paired atom in the fit of another "
       "seed")
def check_values(p):
    for codes in "nonnegative", "signed":
        done = p.fit(codes, "--codes", codes, "--seeds", 3, "--json")
        need(done, codes)
        need(p.fit(f"{codes}-one", "--codes", codes), "one seed")
        atoms, cosine, stability = read(p.at(codes, "dictionary.h5"), "atoms", "seeds/cosine",
                                        "stability")
        one, = read(p.at(f"{codes}-one/dictionary.h5"), "atoms")
        ok(one.tobytes() == atoms.tobytes(), f"{codes}: the first seed's atoms are written")
        ok(cosine.shape == (2, K) and np.array_equal(stability, cosine.max(0)), "the largest")
        pairs = []
        for i, seed in enumerate((6, 7)):
            need(p.fit(f"{codes}-{seed}", "--codes", codes, "--seed", seed), f"seed {seed}")
            need(sagitta("compare", p.at(codes), p.at(f"{codes}-{seed}"), "--output",
                         p.at(f"{codes}-c{seed}"), "--json"), "compare")
            own, = read(p.at(f"{codes}-c{seed}/comparison.h5"), "pairs/cosine")
            ok(own.tobytes() == cosine[i].tobytes(), f"{codes}, seed {seed}: as compare says")
            if linear_sum_assignment:
                other, = read(p.at(f"{codes}-{seed}/dictionary.h5"), "atoms")
                off = abs(paired(atoms, other, codes == "nonnegative") - cosine[i]).max()
                ok(off < SLACK, f"{codes}, seed {seed}: SciPy's pairs, off by {off}")
            with h5py.File(p.at(f"{codes}-c{seed}/comparison.h5")) as f:
                pairs.append(dict(f["pairs"].attrs))
        told = json.loads(done.stdout)["stability"]
        for key, name in (("pw_mcc", "mean_cosine"), ("above_07", "above_07"),
                          ("above_09", "above_09"), ("most_frequent_quarter",) * 2,
                          ("least_frequent_quarter",) * 2):
            ok(told[key] == (pairs[0][name] + pairs[1][name]) / 2, f"{codes}: {key} {told[key]}")
        for key, bound in (("atoms_above_07", 0.7), ("atoms_above_09", 0.9)):
            ok(told[key] == (stability.astype("f8") > bound).mean(), f"{codes}: {key} {told[key]}")
        ok(told["other_seeds"] == 2, "two others")
        ok(f"{told['pw_mcc']:.6g}, of pairs above 0.7" in done.stderr, "the log has the stability")
        if not linear_sum_assignment:
            peer_missing("SciPy is not installed")


@claim("the bytes are the same on 2, 3 and 5 ranks and on three threads, also in parts")
def check_ranks(p):
    for ranks in 2, 3, 5:
        need(p.fit("ranks", "--seeds", 3, "--force", ranks=ranks), f"{ranks} ranks")
        same(p.at("nonnegative"), p.at("ranks"), f"{ranks} ranks")
    need(p.fit("ranks", "--seeds", 3, "--threads", 3, "--force"), "threads")
    same(p.at("nonnegative"), p.at("ranks"), "three threads")
    for out, ranks in (("parts", 0), ("parts-3", 3)):
        need(p.fit(out, "--seeds", 2, "--minibatch", 1000, "--sweeps", 2, ranks=ranks), "by parts")
    same(p.at("parts"), p.at("parts-3"), "by parts")


def former(p, out, done):
    """Make what a run leaves that was stopped after this number of other seeds."""
    shutil.rmtree(p.at(out), ignore_errors=True)
    shutil.copytree(p.at("nonnegative"), p.at(out))
    os.remove(p.at(out, "supports.h5"))
    with h5py.File(p.at(out, "dictionary.h5"), "r+") as f:
        cosine, attrs = f["seeds/cosine"][:done], dict(f["seeds"].attrs)
        del f["stability"], f["seeds"]
        if done:
            f["seeds/cosine"] = cosine
            for name, value in attrs.items():
                f["seeds"].attrs[name] = value
        reseal(f)


@claim("a job stopped after any seed or elsewhere, and resumed on other ranks, has the bytes of "
       "one run")
def check_resumed(p):
    for done, ranks in ((0, 0), (1, 0), (1, 3)):
        former(p, "again", done)
        run = p.fit("again", "--seeds", 3, "--resume", ranks=ranks)
        need(run, f"behind {done}")
        ok(("resume  after 1 of 2 other seeds" in run.stderr) == (done == 1) and
           ("seed 6, sweep" in run.stderr) == (done == 0), f"behind {done}: {run.stderr[-600:]}")
        same(p.at("nonnegative"), p.at("again"), f"behind {done}, {ranks} ranks")
    run = p.fit("again", "--seeds", 3, "--resume")
    need(run, "nothing is left")
    ok("seed 6, sweep" not in run.stderr, "no seed is fitted again")
    same(p.at("nonnegative"), p.at("again"), "nothing is left")
    former(p, "again", 1)
    fails(p.fit("again", "--seeds", 2, "--resume"), 65, ("--seeds 3", "--seeds 2"), "other seeds")
    run = p.fit("again", "--seeds", 3, "--resume", "--tolerance", 0.5)
    ok(run.returncode == 65 or "resume  after 1 of 2" not in run.stderr, "other extents")
    former(p, "again", 1)
    need(p.fit("again", "--seeds", 3, "--sweeps", 6, "--resume"), "more sweeps")
    need(p.fit("six", "--seeds", 3, "--sweeps", 6), "six sweeps")
    same(p.at("six"), p.at("again"), "more sweeps of all seeds")


@claim("a signal stops the fit of another seed; it continues after the last seed that ended")
def check_signal(p):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    words = p.words("asked", "--seeds", 3)
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGUSR1))
    calls = faulty("signal:1000000000", *words, count=True, of=".tmp")
    said = ""
    for n in range(calls, 0, -max(1, calls // 12)):
        shutil.rmtree(p.at("asked"))
        code, text = faulty(f"signal:{n}", *words, of=".tmp")
        if code == 0:
            continue  # the last writing, after all seeds
        ok(code == 75 and "--resume cont" in text, f"call {n} of {calls}: {code} {text[-300:]}")
        run = p.fit("asked", "--seeds", 3, "--resume")
        need(run, f"call {n} of {calls}")
        said += run.stderr
        same(p.at("nonnegative"), p.at("asked"), f"call {n} of {calls}")
        if "resume  after 1 of 2" in said:
            break
    ok("resume  after 1 of 2" in said, f"stopped behind the first: {said[-600:]}")
    return None


@claim("inspect, export, detect and verify handle stability; refit drops it")
def check_used(p):
    fit = p.at("nonnegative")
    cosine, stability = read(f"{fit}/dictionary.h5", "seeds/cosine", "stability")
    text = sagitta("inspect", f"{fit}/dictionary.h5").stdout
    ok(f"by 2 other seeds: PW-MCC {cosine.astype('f8').mean():.4f}" in text, text[-800:])
    told = json.loads(sagitta("inspect", f"{fit}/dictionary.h5", "--json").stdout)
    told = told[0] if isinstance(told, list) else told.get("files", [told])[0]
    ok(told["stability"]["atoms_above_07"] == (stability > 0.7).mean(), f"{told.get('stability')}")
    text = sagitta("inspect", fit, "--atom", 3).stdout
    ok(f"{stability[3]:.4f}, the largest cosine with its pair in 2 other seeds: "
       f"{cosine[0, 3]:.4f}, {cosine[1, 3]:.4f}" in text, text)
    least = float(np.sort(stability.astype("f8"))[-9])
    done = sagitta("export", fit, "--stable", repr(least), "--output", p.at("stable"), "--json")
    need(done, "export")
    ok(json.loads(done.stdout)["numbers"] == np.flatnonzero(stability >= least).tolist(), "export")
    fails(sagitta("export", p.at("nonnegative-one"), "--stable", 0.9, "--output", p.at("no")), 65,
          ("does not say how stable its atoms are: fit with '--seeds 3'",), "without")
    need(sagitta("detect", "--rows", p.at("fit/rows.h5"), "--dictionary", fit, "--codes", fit,
                 "--output", p.at("detectors")), "detect")
    kept = read(p.at("detectors/dictionary.h5"), "seeds/cosine", "stability")
    ok(np.array_equal(kept[0], cosine) and np.array_equal(kept[1], stability),
       "detect keeps the stability")
    need(sagitta("refit", "--rows", p.at("fit/rows.h5"), "--dictionary", fit, "--supports", fit,
                 "--sweeps", 1, "--output", p.at("refitted")), "refit")
    ok(read(p.at("refitted/dictionary.h5"), "stability") == [None], "other atoms have no stability")
    for change, said in (("stability", "the stability is"), ("seeds/cosine", "the cosine is")):
        shutil.copy(f"{fit}/dictionary.h5", p.at("bad.h5"))
        with h5py.File(p.at("bad.h5"), "r+") as f:
            f[change][..., 7] = 0.5 if change == "stability" else 1.5
            reseal(f)
        fails(sagitta("verify", p.at("bad.h5")), 65, (said,), f"verify: {change}")


@claim("impossible requests are refused")
def check_refused(p):
    for count, said in ((0, "'seeds' is 0, not in 1 .. 1000"), (1001, "not in 1 .. 1000"),
                        ("many", "'many' of 'seeds' is not a whole number")):
        fails(p.fit("no", "--seeds", count), 2, (said,), f"refused: {count}")
    need(p.fit("one", "--seeds", 1), "one seed")
    same(p.at("nonnegative-one"), p.at("one"), "one seed is the default")


with tempfile.TemporaryDirectory() as folder_:
    with claim("rows of a world are made"):
        place = Place(folder_)
    for check in (check_values, check_ranks, check_resumed, check_signal, check_used,
                  check_refused):
        check(place)
done_testing()
