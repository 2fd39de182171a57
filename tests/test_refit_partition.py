# SPDX-License-Identifier: BSD-3-Clause
"""Claim: ranks, threads and instruction sets change no bit of what color, assemble and refit write.
The order of atoms in a class file changes none either.  Two sweeps that are resumed for three more
give the bytes of five, also if the run was stopped between its two files.  The fingerprints are
those of every other build (tests/expected/refit)."""
import itertools
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from tap import FULL, SOURCE, claim, done_testing, ok, sagitta, skip

EXPECTED = os.path.join(SOURCE, "tests", "expected", "refit")
ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
# A cut is one division of the work.
CUTS = [dict(ranks=2), dict(ranks=3, variant="avx2"),
        dict(ranks=5, variant="avx512"), dict(ranks=1, threads=2)]
# Sanitizers are slow, and look for faults, not for wrong bits: fewer cuts.
SANITIZED = os.environ.get("SANITIZED")
if SANITIZED:
    CUTS = CUTS[:1]
if os.environ.get("CUTS") == "few":  # cuts that depend on the compiler, not on ranks
    CUTS = [dict(ranks=2, variant="avx2"), dict(ranks=1, variant="avx512")]
TURNS = itertools.cycle(CUTS)  # if not all are run, each is run in turn


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        raise SystemExit(1)
    return done


def same(text, a, b):
    done = sagitta("diff", a, b)
    if not ok(done.returncode == 0, text):
        print("#", (done.stdout + done.stderr).replace("\n", "\n# "))


class Case:
    """Rows, a dictionary and supports.  run() runs a command on them with one cut.  Returns its
    output, the process, and the fingerprint."""

    def __init__(self, folder, name, rows, dictionary, *options):
        self.folder, self.name, self.options = folder, name, options
        self.supports = self.at("encoded.h5")
        need(sagitta("encode", "--rows", rows, "--dictionary", dictionary, "--output",
                     self.supports, *options, ranks=2))
        self.words = ["--rows", rows, "--dictionary", dictionary, "--supports", self.supports]

    def at(self, name):
        return os.path.join(self.folder, f"{self.name}-{name}")

    def run(self, command, label, *more, ranks=1, threads=1, variant=None):
        out = self.at(label)
        words = [command, *self.words, *more, "--output", out, "--threads", threads]
        words += ["--cpu-variant", variant] if variant else []
        done = sagitta(*words, ranks=ranks)
        mark = re.search(r"fingerprint=([0-9a-f]{16})", done.stderr)
        return out, done, mark and mark.group(1)


def cuts_check(case, command, files, base, *more):
    for i, cut in enumerate(CUTS if FULL else itertools.islice(TURNS, min(2, len(CUTS)))):
        text = f"{case.name}: {command} " + " ".join(f"{k}={v}" for k, v in cut.items())
        out, done, _ = case.run(command, f"{command}-{i}", *more, **cut)
        if done.returncode == 69:
            skip(f"{text}: this processor lacks these instructions")
            continue
        if not ok(done.returncode == 0, f"{text}: exit {done.returncode}"):
            print("#", done.stderr.replace("\n", "\n# "))
            continue
        for name in files:
            same(f"{text}: {name}", os.path.join(base, name), os.path.join(out, name))
        shutil.rmtree(out)


def classes_check(case):
    """color on one rank and on three, and a class file with its atoms in another order."""
    one, three, shuffled = case.at("classes.h5"), case.at("classes-3.h5"), case.at("shuffled.h5")
    for ranks, out in ((1, one), (3, three)):
        need(sagitta("color", "--supports", case.supports, "--output", out, ranks=ranks))
    same(f"{case.name}: color on three ranks", one, three)
    random = np.random.default_rng(3)
    with h5py.File(one) as f, h5py.File(shuffled, "w") as g:
        start, atoms = f["class_offsets"][...], f["class_atoms"][...]
        for a, b in zip(start[:-1], start[1:]):
            random.shuffle(atoms[a:b])
        g["class_offsets"], g["class_atoms"] = start, atoms
    return one, shuffled


def mark_check(name, mark, want):
    if not SANITIZED:  # sanitizers get fewer rows
        ok(mark == want.get(name), f"{name}: fingerprint {mark} is that of other builds")


def case_check(case, want, found, *more):
    base, done, mark = case.run("refit", "refit", "--sweeps", 2, *more)
    need(done)
    found[case.name] = mark
    mark_check(case.name, mark, want)
    files = ("dictionary.h5", "supports.h5")
    cuts_check(case, "refit", files, base, "--sweeps", 2, *more)
    for name in files:
        ok(sagitta("verify", os.path.join(base, name)).returncode == 0, f"{case.name}: {name}")
    return base


def assemble_check(case, want, found):
    base, done, mark = case.run("assemble", "assemble", "--directions", 3)
    need(done)
    found[case.name + "-systems"] = mark
    mark_check(case.name + "-systems", mark, want)
    cuts_check(case, "assemble", ("systems.h5",), base, "--directions", 3)
    ok(sagitta("verify", os.path.join(base, "systems.h5")).returncode == 0, "systems.h5 is valid")
    done = need(sagitta("solve", "--systems", os.path.join(base, "systems.h5"), "--escalate",
                        "--output", base))
    mark = found[case.name + "-solutions"] = re.search(r"fingerprint=([0-9a-f]{16})",
                                                       done.stderr).group(1)
    mark_check(case.name + "-solutions", mark, want)
    _, shuffled = classes_check(case)
    out, done, _ = case.run("assemble", "assemble-s", "--directions", 3, "--classes", shuffled)
    need(done)
    same(f"{case.name}: assemble, shuffled classes", os.path.join(base, "systems.h5"),
         os.path.join(out, "systems.h5"))


def columns_check(case, kept):
    """More directions are asked for than there can be.  kept: the dimension of each border."""
    outs = [case.run("assemble", f"full-{n}", "--directions", 30, ranks=n)[0] for n in (1, 3)]
    one, three = (os.path.join(out, "systems.h5") for out in outs)
    same(f"{case.name}: more directions than columns", one, three)
    with h5py.File(one) as f:
        borders, last = f["systems/border_dims"][...], f["systems/B_blocks"][-1]
        ok((borders == kept).all() and last != 0, f"borders of {borders.min()} to {borders.max()}")
    ok(sagitta("verify", one).returncode == 0, "systems.h5 is valid")


def resume_check(case, base, *more):
    """Five sweeps at once; two, then three more on three ranks and with the filter; and a run that
    was stopped between its two files."""
    filtered = ["--filter", "on"] if "--reroute" in more else []
    straight, done, _ = case.run("refit", "five", "--sweeps", 5, *more, ranks=2)
    need(done)
    two = case.at("two")
    shutil.copytree(base, two)
    _, done, _ = case.run("refit", "two", "--sweeps", 5, "--resume", *more, *filtered, ranks=3)
    need(done)
    behind = case.at("behind")
    shutil.copytree(base, behind)
    shutil.copy(os.path.join(straight, "dictionary.h5"), behind)
    with h5py.File(os.path.join(behind, "dictionary.h5")) as f:
        ok(f["fit/history"].shape == (6, 8), f"{case.name}: a line for the start and each sweep")
    _, done, _ = case.run("refit", "behind", "--sweeps", 5, "--resume", *more)
    ok(done.returncode == 0 and "made again" in done.stderr, "files sweeps apart: made again")
    same(f"{case.name}: files sweeps apart", os.path.join(straight, "supports.h5"),
         os.path.join(behind, "supports.h5"))
    one = case.at("one")
    _, done, _ = case.run("refit", "one", "--sweeps", 1, *more)
    need(done)
    shutil.copy(os.path.join(base, "dictionary.h5"), one)  # of sweep 2; supports of sweep 1
    _, done, _ = case.run("refit", "one", "--sweeps", 2, "--resume", *more, ranks=2)
    ok(done.returncode == 0, f"{case.name}: stopped between its files, resumed")
    for name in ("dictionary.h5", "supports.h5"):
        same(f"{case.name}: resumed {name}", os.path.join(straight, name), os.path.join(two, name))
        same(f"{case.name}: mended {name}", os.path.join(base, name), os.path.join(one, name))


def planted(folder, name, *words):
    out = os.path.join(folder, name)
    need(sagitta("synth", *words, "--start-cosine", 0.8, "--output", out))
    return os.path.join(out, "rows.h5"), os.path.join(out, "start.h5")


def main():
    with open(EXPECTED) as f:
        want = dict(line.split() for line in f if line.strip() and line[0] != "#")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        real, rows = os.path.join(folder, "real.h5"), ROWS
        if SANITIZED:
            rows = os.path.join(folder, "rows.npy")
            with h5py.File(ROWS) as f:
                np.save(rows, f["rows"][:1500])
        need(sagitta("seed", "--rows", rows, "--atoms", 256, "--center", "--output", real))
        case = Case(folder, "real", rows, real, "--top-s", 5, "--rounds", 2)
        with claim("real: refit with any cut gives the bits of one rank and of other builds"):
            case_check(case, want, found)
        with claim("real: assemble and solve with any cut do so too; the order in a class does not "
                   "matter"):
            assemble_check(case, want, found)
        rerouted = Case(folder, "rerouted", rows, real, "--top-s", 5, "--rounds", 2)
        with claim("rerouted: refit with any cut gives the bits of one rank and of other builds"):
            base = case_check(rerouted, want, found, "--reroute")
        with claim("rerouted: resumed sweeps have the bits of one run"):
            resume_check(rerouted, base, "--reroute")
        frames = planted(folder, "frames", "--n-rows", 9000, "--atoms", 90, "--columns", 24,
                         "--frame", 3, "--top-s", 3)
        case = Case(folder, "frames-rho", *frames, "--top-s", 3, "--rho", 0.25)
        with claim("frames-rho: refit with any cut gives the bits of one rank and of other builds"):
            case_check(case, want, found)
        with claim("frames-rho: assemble and solve with any cut do so too; the order in a class "
                   "does not matter"):
            assemble_check(case, want, found)
        with claim("frames-rho: if more directions are asked for than columns allow, borders have "
                   "all that exist"):
            columns_check(case, 3 * (24 - 3))
    if os.environ.get("RECORD"):
        with open(EXPECTED, "w") as f:
            f.write("# refit, assemble and solve of each data set of test_refit_partition.py\n")
            f.writelines(f"{name} {mark}\n" for name, mark in found.items())
    done_testing()


main()
