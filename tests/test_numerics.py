# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a result that a program with other bits began is not continued or merged.  --resume and
merge refuse it, say which program wrote it and what to do, and leave all files as they are."""
import hashlib
import os
import shutil
import tempfile

import h5py

from seal import reseal
from tap import claim, done_testing, ok, sagitta

WRITER, NUMERICS = "0.0.7", 8
OTHER = NUMERICS + 1


def mark(path, numerics):
    """Change a file so that a program with this number of numerics seems to have written it.  None:
    a program that is older than these numbers."""
    with h5py.File(path, "r+") as f:
        del f["run"].attrs["numerics"]
        if numerics is not None:
            f["run"].attrs["numerics"] = numerics
        f["run"].attrs["version"] = WRITER
        reseal(f)


def contents(folder):
    return {name: hashlib.sha256(open(os.path.join(folder, name), "rb").read()).hexdigest()
            for name in sorted(os.listdir(folder)) if name.endswith(".h5")}


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.data = self.at("data")
        self.need("synth", "--n-rows", 400, "--columns", 8, "--atoms", 12, "--output", self.data)
        self.rows = ["--rows", f"{self.data}/rows.h5"]
        self.words = [*self.rows, "--dictionary", f"{self.data}/dictionary.h5"]
        self.need("encode", *self.words, "--top-s", 3, "--output", self.data)
        self.need("assemble", *self.words, "--supports", self.data, "--output", self.data)
        self.fitted = [*self.words, "--supports", self.data]

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def need(self, *words):
        done = sagitta(*words)
        ok(done.returncode == 0, f"{words}: exit {done.returncode} {done.stderr[-300:]}")
        return done

    def refused(self, words, file, folder, advice):
        before = contents(folder)
        done = sagitta(*words)
        said = f"{file}' was written by Sagitta {WRITER}, revision "
        ok(done.returncode == 65 and said in done.stderr and advice in done.stderr,
           f"{words}: exit {done.returncode}: {done.stderr[-400:]}")
        ok(contents(folder) == before, f"{words}: its files stay")


@claim("--resume, of every command that has it, refuses a result with other numerics")
def check_resume(p):
    jobs = {
        ("encode", *p.words, "--top-s", 3): ["supports.h5"],
        ("route", *p.words, "--top-s", 3): ["supports.h5"],
        ("assemble", *p.fitted): ["systems.h5"],
        ("solve", "--systems", p.data): ["solutions.h5"],
        ("refit", *p.fitted, "--sweeps", 1): ["dictionary.h5"],
        ("fit", *p.rows, "--atoms", 4, "--top-s", 2, "--sweeps", 2): ["dictionary.h5", "state.h5"],
        ("train", *p.rows, "--atoms", 16, "--top-s", 2, "--steps", 20): ["dictionary.h5"],
    }
    for words, files in jobs.items():
        made = p.at(words[0])
        p.need(*words, "--output", made)
        for file in files:
            if not os.path.exists(f"{made}/{file}"):
                ok(file == "state.h5", f"{words[0]} wrote {file}")
                continue
            for numerics in None, OTHER + 0.0, OTHER, "text":
                place = shutil.copytree(made, p.at(f"{words[0]}-{file}-{numerics!r}"))
                mark(f"{place}/{file}", numerics)
                number = {None: "1", "text": "no number"}.get(numerics, str(OTHER))
                p.refused([*words, "--output", place, "--resume"], f"{place}/{file}", place,
                          f"(numerics {number}, here {NUMERICS}): resume with that version, or "
                          "begin again, with --force and not --resume")
        mark(f"{made}/{files[0]}", NUMERICS)  # the right number, as h5py stores an integer
        p.need(*words, "--output", made, "--resume")


@claim("--resume of fit refuses a part of its final encoding that has other numerics")
def check_fit_part(p):
    made, rows = p.at("fitted"), p.at("large")
    p.need("synth", "--n-rows", 3 * 4096, "--columns", 8, "--atoms", 12, "--output", rows)
    words = ["--rows", f"{rows}/rows.h5"]
    p.need("fit", *words, "--atoms", 4, "--top-s", 2, "--sweeps", 1, "--output", made)
    os.remove(f"{made}/supports.h5")
    done = sagitta("encode", *words, "--dictionary", made, "--top-s", 2, "--row-range", "0:4096",
                   "--output", f"{made}/supports.h5")
    ok(done.returncode == 0, done.stderr[-300:])
    mark(f"{made}/supports.h5", 1)
    p.refused(["fit", *words, "--atoms", 4, "--top-s", 2, "--sweeps", 1, "--output", made,
               "--resume"], f"{made}/supports.h5", made, "or begin again")


@claim("merge refuses a part with other numerics")
def check_merge(p):
    part = p.at("part.h5")
    p.need("encode", *p.words, "--top-s", 3, "--row-range", "0:", "--output", part)
    p.need("merge", part, "--output", p.at("merged"))
    mark(part, None)
    p.refused(["merge", part, "--output", p.at("out")], part, p.folder,
              f"(numerics 1, here {NUMERICS}): merge with that version, or make this part again")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with claim("rows and a dictionary are made by this program"):
            place = Place(folder)
        check_resume(place)
        check_fit_part(place)
        check_merge(place)
    done_testing()
