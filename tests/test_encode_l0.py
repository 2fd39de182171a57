# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `encode --l0` keeps the largest scores of all rows, so that rows have the given number of
codes on average.  A sort in NumPy puts the same scores first.  Ranks, threads, blocks, stops and
parts change no byte.  `verify`, `merge` and `inspect` accept the result.  Impossible requests are
refused, with advice."""
import os
import shutil
import tempfile
import time

import h5py
import numpy as np

from jobs import FAULTS, job_start
from tap import claim, done_testing, fails, later_wins, need, ok, sagitta, same, skip
from train_place import Place

ATOMS = 30


class Chosen(Place):
    def make(self):
        """Write rows, some of which are equal, and four dictionaries."""
        rows = np.load(self.at("rows.npy"))
        rows = np.concatenate([rows, rows, rows[::-1]])[:8700]
        rows[200:500] = rows[3]
        np.save(self.at("many.npy"), rows)
        need(self.train("batch", "--selection", "batch", "--l0", 3, "--epochs", 2), "train")
        need(sagitta("fit", "--find", "features", "--rows", self.at("many.npy"), "--atoms", ATOMS,
                     "--l0", 2.5, "--output", self.at("found")), "fit --find features")
        fit = ["fit", "--rows", self.at("many.npy"), "--atoms", ATOMS, "--top-s", 3, "--sweeps", 2]
        need(sagitta(*fit, "--detectors", "--output", self.at("plain")), "fit")
        need(sagitta(*fit, "--codes", "signed", "--output", self.at("signed")), "fit signed")

    def encode(self, out, *words, ranks=0):
        return sagitta(*later_wins("encode", "--rows", self.at("many.npy"), "--threads", 1,
                                   "--output", self.at(out), *words), ranks=ranks)

    def read(self, out):
        with h5py.File(self.at(out, "supports.h5")) as f:
            s = f["supports"]
            start = s["indptr"][...]
            rows = np.repeat(np.arange(len(start) - 1), np.diff(start))
            cut = {k: v[...] for k, v in f["cut"].items()}
            return rows, s["indices"][...], s["score"][...], s["data"][...], cut


@claim("the largest scores get codes; of equal scores those of the first rows and atoms")
def check_largest(p):
    batch = ["--encoder", p.at("batch")]
    need(p.encode("all", *batch, "--l0", ATOMS), "all")
    rows, atoms, score, data, cut = p.read("all")
    ok(score.min() > 0 and cut["least"][0] == 0, "with a large --l0 all positive scores get codes")
    order = np.lexsort((atoms, rows, -score))
    tied = np.where(np.bincount(np.unique(score, return_inverse=True)[1]) > 100)[0]
    ok(len(tied) > 1, "some scores occur many times")
    value = np.unique(score)[tied[-1]]
    middle = np.sum(score > value) + 57  # only some of the equal scores are kept
    for count in middle, 8700 * 2, 1, 8700 * 5 + 1:
        need(p.encode("some", *batch, "--l0", (count + 0.5) / 8700, "--force"), f"{count}")
        r, a, s, d, cut = p.read("some")
        keep = np.sort(order[:count])
        good = len(r) == count and (r == rows[keep]).all() and (a == atoms[keep]).all() and \
            (s == score[keep]).all() and (d == data[keep]).all()
        ok(good, f"{count} codes, the cut {cut}")
        need(sagitta("verify", p.at("some", "supports.h5")), "verify")
    need(p.encode("solved", *batch, "--codes", "nonnegative", "--l0", 2), "solved")
    ok(len(p.read("solved")[0]) == 2 * 8700, "codes are solved for the active atoms")


@claim("numbers of ranks, threads and blocks, stops and parts change no byte")
def check_bytes(p):
    for name, words in (("found", ["--encoder", p.at("found")]),
                        ("batch", ["--encoder", p.at("batch")]),
                        ("plain", ["--dictionary", p.at("plain"), "--rho", 0.01])):
        words += ["--l0", 1.7]
        one = p.at(f"{name}-1", "supports.h5")
        need(p.encode(f"{name}-1", *words), name)
        ok(abs(len(p.read(f"{name}-1")[0]) / 8700 - 1.7) < 0.01, f"{name}: so many codes")
        need(sagitta("verify", one), "verify")
        for ranks, more in (5 if name == "found" else 2, []), (0, ["--threads", 3, "--block", 77]):
            shutil.rmtree(p.at("other"), ignore_errors=True)
            need(p.encode("other", *words, *more, ranks=ranks), f"{name} {ranks} {more}")
            same(one, p.at("other", "supports.h5"), f"{name}, {ranks} ranks {more}")
        stop = [*words, "--max-seconds", 1e-9, "--block", 4096]
        fails(p.encode("stopped", *stop, "--force"), 75, ["--resume"], "stopped")
        fails(p.encode("stopped", *words, "--l0", 2, "--resume"), 65, ["--l0 1.7"], "another")
        need(p.encode("stopped", *words, "--resume", ranks=2 if name == "plain" else 0), "resumed")
        same(one, p.at("stopped", "supports.h5"), f"{name}, resumed")
        need(p.encode("stopped", *words, "--resume"), "complete")
        shutil.rmtree(p.at("stopped"))
        for first, end in (0, 4096), (4096, 8700):
            need(p.encode("parts", *words, "--row-range", f"{first}:{end}"), "a part")
        parts = [p.at("parts", f"part-{first:015d}.h5") for first in (0, 4096)]
        need(sagitta("verify", parts[1]), "verify a part")
        shutil.rmtree(p.at("merged"), ignore_errors=True)
        need(sagitta("merge", *parts, "--output", p.at("merged")), "merge")
        same(one, p.at("merged", "supports.h5"), f"{name}, merged")
        shutil.rmtree(p.at("parts"))


@claim("a result of fit --find features serves as its own encoder, and --normalize makes atoms "
       "unit vectors")
def check_takes(p):
    need(p.encode("dictionary", "--dictionary", p.at("found"), "--l0", 1.7), "--dictionary")
    same(p.at("found-1", "supports.h5"), p.at("dictionary", "supports.h5"), "--dictionary")
    with h5py.File(p.at("plain", "dictionary.h5")) as f:
        atoms, mean = f["atoms"][...], f["mean"][...]
    for name, factor in ("unit", 1), ("double", 2):
        with h5py.File(p.at(name + ".h5"), "w") as f:
            f["atoms"], f["mean"] = factor * atoms, mean
        need(p.encode(name, "--dictionary", p.at(name + ".h5"), "--normalize", "--codes",
                      "nonnegative", "--l0", 1.7), name)
    for a, b in zip(p.read("unit"), p.read("double")):
        ok(str(a) == str(b) if isinstance(a, dict) else np.array_equal(a, b), "scaled atoms")


@claim("if rows change between two passes, this is reported")
def check_changed(p):
    words = ["--rows", p.at("changing.npy"), "--encoder", p.at("batch"), "--l0", 1.7]
    shutil.copy(p.at("many.npy"), p.at("changing.npy"))
    fails(p.encode("changed", *words, "--max-seconds", 1e-9, "--block", 4096), 75, ["--resume"],
          "stopped")
    need(p.encode("parts", *words, "--row-range", "0:4096"), "a part")
    rows = np.load(p.at("changing.npy"))
    rows[8001] *= 1.5
    np.save(p.at("changing.npy"), rows)
    fails(p.encode("changed", *words, "--resume"), 65, ["have changed since '--l0'", "--force"],
          "other rows")
    need(p.encode("parts", *words, "--row-range", "4096:8700"), "the other part")
    parts = [p.at("parts", f"part-{first:015d}.h5") for first in (0, 4096)]
    fails(sagitta("merge", *parts, "--output", p.at("x")), 65, ["have changed since '--l0'"],
          "parts of other rows")


@claim("a stop during the search for the cut saves nothing, and --resume searches again")
def check_counting(p):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    rng = np.random.default_rng(9)
    rows, atoms = rng.normal(size=(6000, 128)), rng.normal(size=(9, 128))
    np.save(p.at("wide.npy"), rows.astype("f4"))
    np.save(p.at("nine.npy"), atoms.astype("f4"))
    words = ["encode", "--rows", p.at("wide.npy"), "--dictionary", p.at("nine.npy"), "--normalize",
             "--codes", "nonnegative", "--l0", 1.3, "--threads", 1, "--block", 64]
    need(sagitta(*words, "--output", p.at("whole")), "whole")
    out = ["--output", p.at("counting")]
    # After the pass for the hash, a piece takes 0.3 s to read, which is longer than a stop may wait
    # in all.
    job = job_start(*words, *out, LD_PRELOAD=FAULTS, FAULT="linger:110+", FAULT_OF="wide.npy")
    while "looked through first" not in (line := job.stderr.readline()) and line:
        pass
    time.sleep(1)
    job.terminate()
    said = job.communicate(timeout=60)[1]
    ok(job.returncode == 75 and "while the cut of '--l0' was looked for" in said and
       "--resume" in said, f"stopped: {job.returncode} {said[-300:]}")
    ok(not os.path.exists(p.at("counting", "supports.h5")), "nothing is published")
    need(sagitta(*words, *out, "--resume", ranks=2), "resumed")
    same(p.at("whole", "supports.h5"), p.at("counting", "supports.h5"), "resumed")


@claim("verify --rows computes codes of active atoms again, and finds wrong ones")
def check_verified(p):
    many, plain = p.at("many.npy"), p.at("plain", "dictionary.h5")
    with h5py.File(plain) as f, h5py.File(p.at("bare.h5"), "w") as g:
        g["atoms"] = f["atoms"][...]
    for name, atoms, words in (("ridge", plain, ["--rho", 0.3]), ("detected", plain, []),
                               ("centred", p.at("bare.h5"), ["--center", "--codes",
                                                             "nonnegative"])):
        need(p.encode(name, "--dictionary", atoms, "--l0", 1.7, *words), name)
        shutil.copy(atoms, p.at(name, "dictionary.h5"))
        done = sagitta("verify", p.at(name), "--rows", many)
        need(done, f"verify {name}")
        ok("8700 of 8700 rows: atoms, scores and codes" in done.stdout, done.stdout[-200:])
    rows = np.load(many)
    rows[7] *= 1.01
    np.save(p.at("changed.npy"), rows)
    for name in "ridge", "centred":
        fails(sagitta("verify", p.at(name), "--rows", p.at("changed.npy")), 65,
              ["row 7 ", "other atoms, scores or codes"], name)
    shutil.copy(p.at("double.h5"), p.at("double", "dictionary.h5"))
    fails(sagitta("verify", p.at("double"), "--rows", many), 2, ["--normalize"], "scaled atoms")


@claim("impossible requests are refused, and the message says what to do")
def check_refused(p):
    found, plain = ["--encoder", p.at("found")], ["--dictionary", p.at("plain")]
    for words, code, said in (
            ([*found, "--l0", 31], 2, ["'--l0' is 31", "30 atoms", "at most"]),
            ([*plain, "--l0", 30.5], 2, ["'--l0' is 30.5", "30 atoms"]),
            ([*found, "--l0", 1e-4], 2, ["'--l0' is 0.0001", "8700 rows", "0.000115 or more"]),
            ([*found, "--l0", -1], 2, ["'l0' is -1"]),
            ([*found, "--l0", "many"], 2, ["'l0' is not a number"]),
            ([*plain, "--l0", 2, "--top-s", 3], 2, ["'--top-s'", "'--l0'", "leave one"]),
            ([*plain, "--l0", 2, "--rounds", 3], 2, ["'--rounds'", "'--l0'", "leave one"]),
            ([*plain, "--l0", 2, "--grid", "1x1"], 2, ["'--grid'", "'--l0'", "leave it out"]),
            ([*plain, "--l0", 2, "--codes", "signed"], 2, ["'--l0'", "negative"]),
            (["--dictionary", p.at("signed"), "--l0", 2], 2, ["'--codes nonnegative'"]),
            ([*plain, "--l0", 2, "--detect"], 2, ["'--detect'", "threshold", "leave one"]),
            (["--encoder", p.at("plain"), "--l0", 2], 2, ["threshold of its own", "--dictionary"])):
        fails(p.encode("x", *words), code, said, " ".join(map(str, words[1:])))
    np.save(p.at("empty.npy"), np.zeros((0, 12), "f4"))
    np.save(p.at("equal.npy"), np.ones((500, 12), "f4"))
    fails(p.encode("x", "--rows", p.at("empty.npy"), *found, "--l0", 2), 65, ["no rows"], "no rows")
    with h5py.File(p.at("unit.h5"), "r+") as f:
        del f["mean"]
    fails(p.encode("x", "--rows", p.at("equal.npy"), "--dictionary", p.at("unit.h5"), "--codes",
                   "nonnegative", "--center", "--l0", 2), 65, ["all equal"], "equal rows")


with tempfile.TemporaryDirectory() as FOLDER:
    PLACE = Chosen(FOLDER)
    PLACE.make()
    for check in (check_largest, check_bytes, check_takes, check_changed, check_counting,
                  check_verified, check_refused):
        check(PLACE)
done_testing()
