# SPDX-License-Identifier: BSD-3-Clause
"""Claim: fit and train with --max-norm give the bytes that they give if NumPy leaves out the rows,
on any number of ranks and resumed.  They print how many rows are left out.  They refuse to resume
with another multiple, and refuse data of which no row is left."""
import json
import os
import re
import tempfile

import numpy as np

from tap import claim, done_testing, fails, need, ok, sagitta, same

N, P, BLOCK = 5000, 12, 4096


def squares_of(rows, shift):
    return ((rows.astype("f8") - shift) ** 2).sum(1)


def bound_of(rows, multiple):
    """(column medians of the first rows, squared norm from which on rows are left out):
    doc/numerics.md, section 7."""
    shift = np.sort(rows[:1024], 0)[(min(len(rows), 1024) - 1) // 2].astype("f8")
    square = squares_of(rows, shift)
    square = np.sort(square[square > 0])
    median = square[(len(square) + 1) // 2 - 1]
    part, power = np.frexp(median)  # part is in 0.5 .. 1; an octave has eight bins
    return shift, multiple ** 2 * np.floor(16 * part) / 16 * 2.0 ** power


class Folder:
    def __init__(self, path):
        self.path = path
        random = np.random.default_rng(5)
        rows = random.standard_normal((N, P)) + 3
        rows *= np.exp(0.4 * random.standard_normal((N, 1)))
        massive = random.choice(N, 60, replace=False)
        rows[massive[:50]] = 300 * random.standard_normal(P) + random.standard_normal((50, P))
        # rows to leave out at both ends, and on both sides of a block's end
        rows[[0, 1, 2, BLOCK - 1, BLOCK, N - 2, N - 1]] = 1e4
        rows[7] = 0
        held = random.standard_normal((700, P)) + 3
        held[::100] *= 1000
        self.rows, self.held = rows.astype("f4"), held.astype("f4")
        self.save("rows", self.rows)
        self.save("held", self.held)

    def at(self, name):
        return os.path.join(self.path, name)

    def save(self, name, array):
        np.save(self.at(name + ".npy"), array)
        return self.at(name + ".npy")

    def kept(self, name, rows, multiple):
        """The rows that are kept, and the number of the others."""
        shift, bound = bound_of(self.rows, multiple)
        keep = squares_of(rows, shift) < bound
        return self.save(name, rows[keep]), int((~keep).sum())


JOBS = {"fit": ["--atoms", 16, "--top-s", 3, "--sweeps", 2],
        "train": ["--atoms", 16, "--top-s", 3, "--steps", 6, "--batch", 200]}


def judge(f, command, multiple, holdout, ranks):
    rows, out = f.kept("few", f.rows, multiple)
    more = []
    if holdout:
        held, out_held = f.kept("few-held", f.held, multiple)
        out, more = out + out_held, ["--holdout"]
    plain, given = f.at(f"plain-{command}"), f.at("given")
    if ranks == 0:
        need(sagitta(command, *JOBS[command], "--rows", rows, *more, *([held] if more else []),
                     "--force", "--output", plain), "plain")
    done = sagitta(command, *JOBS[command], "--rows", f.at("rows.npy"), *more,
                   *([f.at("held.npy")] if more else []), "--max-norm", multiple, "--force",
                   "--output", given, ranks=ranks)
    need(done, "--max-norm")
    what = f"{command}, {multiple}, {holdout}, {ranks} ranks"
    same(f"{plain}/dictionary.h5", f"{given}/dictionary.h5", what)
    with open(f"{given}/run.json") as page:
        said = json.load(page)["left_out_rows"]
    with open(f"{given}/run.log") as log:
        counts = [int(n) for n in re.findall(r"left out (\d+) of", log.read())]
    ok(said == out and sum(counts) == out and len(counts) == 1 + holdout,
       f"{what}: {said}, {counts} rows, {out} are right")


@claim("fit and train write the dictionary of the rows that --max-norm keeps, and print the number "
       "of the others")
def check_bytes(f):
    for multiple in 8, 1.7:
        for ranks in 0, 3:
            judge(f, "fit", multiple, multiple == 8, ranks)
            judge(f, "train", multiple, multiple != 8, ranks)
    ok(f.kept("x", f.rows, 8)[1] >= 57 and f.kept("x", f.rows, 1.7)[1] > 100,
       "some rows were left out")


@claim("fit --resume continues only with the same multiple; all rows have codes")
def check_resume(f):
    words = ["fit", *JOBS["fit"][:-2], "--rows", f.at("rows.npy"), "--max-norm", 8]
    need(sagitta(*words, "--sweeps", 3, "--output", f.at("three")), "three sweeps")
    need(sagitta(*words, "--sweeps", 1, "--output", f.at("on")), "one")
    fails(sagitta(*words[:-1], 9, "--sweeps", 3, "--resume", "--output", f.at("on")), 65,
          ["--max-norm 8", "--max-norm 9"], "another multiple")
    need(sagitta(*words, "--sweeps", 3, "--resume", "--output", f.at("on"), ranks=2), "resumed")
    for name in "dictionary.h5", "supports.h5":
        same(f.at(f"three/{name}"), f.at(f"on/{name}"), name)
    done = sagitta("inspect", f.at("on/supports.h5"))
    ok(str(N) in done.stdout, "all rows have codes")


@claim("a multiple that leaves no row is refused")
def check_refused(f):
    words = ["fit", *JOBS["fit"], "--output", f.at("no"), "--rows", f.at("rows.npy")]
    for multiple in 1, 0.5:
        fails(sagitta(*words, "--max-norm", multiple), 2, ["median row", "more than 1"], multiple)
    large = f.save("large", 1e6 * f.held)
    fails(sagitta(*words, "--max-norm", 8, "--holdout", large), 65,
          ["no row of", "raise '--max-norm'"], "all of --holdout")
    bad = f.rows.copy()
    bad[BLOCK + 3, 2] = np.nan
    fails(sagitta(*words[:-1], f.save("bad", bad), "--max-norm", 8), 65, [f"row {BLOCK + 3}"],
          "not a number")
    fails(sagitta(*words[:-1], f.save("bad", bad), "--max-norm", 8, ranks=3), 65,
          [f"row {BLOCK + 3}"], "not a number, on ranks")
    zeros = f.save("zeros", np.zeros((600, P), "f4"))
    fails(sagitta(*words[:-1], zeros, "--max-norm", 8), 65, ["left out 0 of 600", "other rows"],
          "zeros are all rows there are")


def main():
    with tempfile.TemporaryDirectory() as path:
        f = Folder(path)
        check_bytes(f)
        check_resume(f)
        check_refused(f)
    done_testing()


main()
