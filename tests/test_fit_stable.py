#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Claim: by default fit finds stable atoms: it gives the bytes of --find codes with 8 atoms per
row, or the given --top-s, and with --encode-s four times as large.  Options that are given override
this, limits that apply are logged, and impossible values are refused.  tests/expected has what
--find codes computes."""
import json
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, fails, later_wins, need, ok, sagitta


class Place:
    def __init__(self, folder):
        self.folder = folder
        rng = np.random.default_rng(0)
        atoms = rng.standard_normal((60, 24))
        codes = rng.random((900, 60)) * (rng.random((900, 60)) < 0.1)
        np.save(self.at("rows.npy"), (codes @ atoms).astype("f4"))

    def at(self, name):
        return f"{self.folder}/{name}"

    def words(self, out, *words):
        return later_wins("fit", "--rows", self.at("rows.npy"), "--atoms", 40, "--sweeps", 1,
                          "--output", self.at(out), *words)

    def fit(self, out, *words, **more):
        done = sagitta(*self.words(out, "--json", *words), **more)
        need(done, out)
        return json.loads(done.stdout), done.stderr

    def same(self, a, b):
        """Are dictionary and supports equal, and the recorded options that decide their bits?"""
        done = sagitta("diff", self.at(a), self.at(b))
        told = []
        for name in a, b:
            with h5py.File(self.at(f"{name}/dictionary.h5")) as f:
                told.append(f["run"].attrs["identity"])
        return done.returncode == 0 and told[0] == told[1]


# Options of a fit, options that give the same bytes, and the numbers of atoms per row.
ALIKE = (
    ((), ("--top-s", 8, "--encode-s", 32), 8, 32),
    (("--top-s", 3), ("--top-s", 3, "--encode-s", 12), 3, 12),
    (("--encode-s", 20), ("--top-s", 8, "--encode-s", 20), 8, 20),
    (("--encode-s", 5), ("--top-s", 5, "--encode-s", 5), 5, 5),
    (("--top-s", 4, "--encode-s", 6), ("--top-s", 4, "--encode-s", 6), 4, 6),
    (("--top-s", 12), ("--top-s", 12, "--encode-s", 40), 12, 40),
)


@claim("the default, --find stable, is --find codes with fewer atoms per row in the fit than in "
       "the codes")
def check_alike(p):
    for words, codes, top_s, encode_s in ALIKE:
        page, _ = p.fit("stable", *words, "--force")
        ok((page["top_s"], page["encode_s"]) == (top_s, encode_s), f"{words}: {page}")
        ok(page["unseen_encoded"] is not None, f"{words}: the held-out rows are encoded so")
        p.fit("codes", "--find", "codes", *codes, "--force")
        ok(p.same("stable", "codes"), f"{words} is {codes}")
    page, _ = p.fit("plain", "--find", "codes")
    ok((page["top_s"], page["encode_s"], page["unseen_encoded"]) == (32, 32, None), f"{page}")
    p.fit("given", "--find", "codes", "--top-s", 32)
    ok(p.same("plain", "given"), "--find codes has 32 atoms per row")


@claim("the bytes are the same on three ranks, and if resumed with either set of options or by "
       "used.in")
def check_resumed(p):
    p.fit("one")
    p.fit("three", ranks=3)
    ok(p.same("one", "three"), "three ranks")
    p.fit("whole", "--sweeps", 3)
    p.fit("one", "--sweeps", 2, "--resume")
    p.fit("one", "--find", "codes", "--top-s", 8, "--encode-s", 32, "--sweeps", 3, "--resume")
    ok(p.same("one", "whole"), "resumed")
    need(sagitta("fit", p.at("one/used.in"), "--find", "stable", "--resume"), "used.in")
    fails(sagitta(*p.words("one", "--find", "codes", "--sweeps", 3, "--resume")), 65,
          ("--top-s 8", "--top-s 32"), "resumed as other codes")
    with open(p.at("deck.in"), "w", encoding="utf-8") as f:
        f.write(f"rows = {p.at('rows.npy')}\natoms = 40\nsweeps = 1\nencode-s = 20\n"
                f"output = {p.at('deck')}\n")
    need(sagitta("fit", p.at("deck.in")), "a deck")
    p.fit("encode", "--encode-s", 20)
    ok(p.same("deck", "encode"), "a deck")


@claim("the log names defaults that were chosen, and limits that applied")
def check_told(p):
    for words, said in (((), "top-s 8, to fit with; encode-s 32, to describe with: four times"),
                        (("--top-s", 12), "encode-s 40, to describe with: as many as --atoms"),
                        (("--top-s", 100, "--atoms", 300, "--codes", "signed"),
                         "encode-s 256, to describe with: as many as --atoms, and 256 at most")):
        ok(said in p.fit("told", *words, "--force")[1], f"{words}: '{said}'")
    for words, said in ((("--atoms", 5), "top-s is 8, there are 5 atoms: each row gets 5"),
                        (("--encode-s", 50), "top-s is 50, there are 40 atoms")):
        ok(said in p.fit("told", *words, "--force")[1], f"{words}: '{said}'")
    ok("numbers" not in p.fit("told", "--find", "codes", "--force")[1],
       "--find codes logs no numbers that it chose")
    fails(sagitta(*p.words("no", "--top-s", 3, "--encode-s", 2)), 2,
          ("'--encode-s' is 2, less than the 3 of '--top-s'",), "fewer than fitted")
    fails(sagitta(*p.words("no", "--find", "codes", "--encode-s", 16)), 2,
          ("'--encode-s' is 16, less than the 32 of '--top-s'",), "fewer than --find codes has")
    fails(sagitta(*p.words("no", "--find", "features", "--l0", 2, "--top-s", 8)), 2,
          ("'--top-s' does not go with '--find features'",), "features have no number a row")
    fails(sagitta(*p.words("no", "--find", "stables")), 2, ("stable", "codes", "features"),
          "no such thing to find")


if __name__ == "__main__":
    for check in check_alike, check_resumed, check_told:
        with tempfile.TemporaryDirectory() as main:
            check(Place(main))
    done_testing()
