# SPDX-License-Identifier: BSD-3-Clause
"""Claim: refit, and fit --update atoms, stop inside a sweep, and continue there on another number
of ranks, repeatedly, to the bytes of a run that was never stopped.  After a kill they continue from
the last save.  A sweep.h5 of another run is refused, one of another sweep is ignored.  `verify`
accepts a sweep.h5, and it is removed when its sweep is published.  A fit whose sweeps are done
stops between two blocks of the rows that it encodes, and continues there."""
import os
import re
import shutil
import signal
import subprocess
import tempfile

import h5py
import numpy as np

from jobs import FAULTS, environment, job_end, job_start, wait_for
from seal import reseal
from tap import (FULL, SAGITTA, claim, done_testing, fails, gpu_present, later_wins, launch, need,
                 ok, sagitta, same, skip)

N, P, K = 2 * 4096 + 321, 24, 240  # few atoms per class: some hundred batches per sweep
LARGE_N, LARGE_P, LARGE_K = 6 * 4096, 64, 1500
RANKS = {"plain": [0, 3], "frames": [2, 0], "fit": [3, 0]}  # of each run; 0: no mpirun


class Case:
    """A command with its words, and the results of a run that is not stopped."""

    def __init__(self, folder, name, command, *words):
        self.folder, self.name, self.command = folder, name, command
        # a GPU that moves atoms one by one saves only whole sweeps
        self.words = [*words, "--device", "cpu"]
        self.whole = self.at("whole")
        need(self.run(self.whole), f"{name}, not stopped")
        ok(not os.path.exists(f"{self.whole}/sweep.h5"), f"{name}: sweep.h5 is left")

    def at(self, what):
        return os.path.join(self.folder, f"{self.name}-{what}")

    def run(self, out, *more, ranks=0):
        return sagitta(self.command, *later_wins(*self.words, *more), "--threads", 1, "--output",
                       out, ranks=ranks)

    def ask(self, out, *more, ranks=0, at="sweep.h5", takes=0):
        """Run again, and ask rank 0 to stop when it first saves an unfinished sweep, or writes the
        file `at`.  takes: a signal that a library takes for itself while MPI begins."""
        faults = {"LD_PRELOAD": FAULTS, "FAULT": "signal:1", "FAULT_OF": f"{at}.*.tmp",
                  "FAULT_RANK": "0", "FAULT_SIGNAL": str(int(signal.SIGUSR1))}
        words = [SAGITTA, self.command, *later_wins(*self.words, "--threads", 1, "--save-seconds",
                                                    1e-6, *more), "--output", out]
        if takes:
            faults["FAULT_TAKES"] = str(int(takes))
        start = launch(ranks)
        if ranks:  # mpirun itself must have no faults
            start += [part for name in faults for part in ("-x", f"{name}={faults[name]}")]
            faults = {}
        else:
            del faults["FAULT_RANK"]
        return subprocess.run([*start, *map(str, words)], text=True, capture_output=True,
                              timeout=300, env=environment(**faults))

    def same(self, out, what):
        for file in "dictionary.h5", "supports.h5":
            same(f"{self.whole}/{file}", f"{out}/{file}", f"{self.name}, {what}")
        ok(not os.path.exists(f"{out}/sweep.h5"), f"{self.name}, {what}: sweep.h5 is left")


def cases_make(folder):
    random = np.random.default_rng(31)
    np.save(f"{folder}/rows.npy", random.standard_normal((N, P)).astype("f4"))
    np.save(f"{folder}/held.npy", random.standard_normal((300, P)).astype("f4"))
    rows = ["--rows", f"{folder}/rows.npy"]
    cases = []
    for name, frame, coding, more in (
            ("plain", 1, [], []), ("held", 1, ["--rho", 0.1], ["--holdout", f"{folder}/held.npy"]),
            ("frames", 2, [], ["--directions", 3]),
            ("routed", 1, ["--codes", "nonnegative", "--rounds", 2], ["--reroute"])):
        if name == "held" and not FULL:
            continue
        start = f"{folder}/{name}"
        need(sagitta("seed", *rows, "--atoms", K, "--frame", frame, "--output", start), "seed")
        need(sagitta("encode", *rows, "--dictionary", start, "--top-s", 9 - frame, *coding,
                     "--output", start), "encode")
        cases.append(Case(folder, name, "refit", *rows, "--dictionary", start, "--supports", start,
                          "--sweeps", 2, *more))
    fits = ("fit", []), ("signed", ["--codes", "signed", "--uncentered", "--seed", 3])
    for name, more in fits if FULL else fits[:1]:
        cases.append(Case(folder, name, "fit", *rows, "--update", "atoms", "--atoms", K, "--top-s",
                          8, "--rounds", 1, "--sweeps", 2, "--tolerance", 0, *more))
    cases.append(Case(folder, "joint", "fit", *rows, "--update", "joint", "--atoms", 60, "--top-s",
                      4, "--sweeps", 2, "--tolerance", 0))
    return cases


def inside(out):
    """The number of finished sweeps, and of atoms that are done in the unfinished one."""
    with h5py.File(f"{out}/sweep.h5") as f:
        return f.attrs["sweeps"], f["sweep"].attrs["atoms_done"]


@claim("a job stopped inside sweeps again and again, on other ranks each time, has the bytes of "
       "one run")
def check_stops(case, ranks):
    out, seen, codes = case.at("steps"), [], []
    for n in (ranks * 8)[:8]:
        done = case.ask(out, "--resume", ranks=n)
        codes.append(done.returncode)
        if codes[-1] != 75:
            break
        if os.path.exists(f"{out}/sweep.h5"):
            seen.append(inside(out))
            need(sagitta("verify", f"{out}/sweep.h5"), "verify")
            need(sagitta("inspect", f"{out}/sweep.h5"), "inspect")
    ok(codes == [75] * (len(codes) - 1) + [0] and len(codes) > 2, f"{case.name}: {codes}")
    ok(len(seen) > 1 and seen == sorted(set(seen)) and {n for n, _ in seen} == {0, 1},
       f"{case.name}: {seen}")
    case.same(out, f"stopped inside sweeps, {seen}")


@claim("a job killed inside a sweep, and continued from a timed save, has the bytes of one run")
def check_killed(case):
    out = case.at("killed")
    job = job_start(case.command, *case.words, "--threads", 1, "--save-seconds", 1e-6, "--output",
                    out)
    ok(wait_for(f"{out}/sweep.h5"), f"{case.name}: a sweep in work is saved")
    job.kill()
    code, text = job_end(job, 40)
    ok(code == -signal.SIGKILL, f"{code} {text[-200:]}")
    done = case.run(out, "--resume", ranks=2)
    need(done, f"{case.name}, killed")
    ok("resumed inside sweep" in done.stderr or not re.search("sweep +2: ", done.stderr),
       f"{case.name}: {done.stderr[-600:]}")
    case.same(out, "killed")


@claim("--resume removes the sweep.h5 of a finished sweep, as a killed run leaves it, and no other")
def check_over(case):
    out, old = case.at("over"), case.at("over-sweep.h5")
    need(case.ask(out), f"{case.name}, inside a sweep", 75)
    ok(inside(out)[0] == 0, f"{case.name}: of sweep 1")
    shutil.copy(f"{out}/sweep.h5", old)
    for _ in range(12):
        if os.path.exists(f"{out}/sweep.h5") and inside(out)[0] == 1:
            break
        need(case.ask(out, "--resume"), f"{case.name}, inside a sweep", 75)
    need(case.run(out, "--sweeps", 1, "--resume"), f"{case.name}, one sweep")
    ok(os.path.exists(f"{out}/sweep.h5") and inside(out)[0] == 1, f"{case.name}: of sweep 2")
    need(case.run(out, "--resume"), f"{case.name}, both sweeps")
    case.same(out, "both sweeps")
    for ranks in 0, 2:
        shutil.copy(old, f"{out}/sweep.h5")
        need(case.run(out, "--resume", ranks=ranks), f"{case.name}, which is done")
        case.same(out, f"which is done, {ranks} ranks")
    other = case.at("over-other")
    more = ["--directions", 2] if case.command == "refit" else ["--seed", 8]
    need(case.ask(other, *more), f"{case.name}, another run", 75)
    shutil.copy(f"{other}/sweep.h5", f"{out}/sweep.h5")
    need(case.run(out, "--resume"), f"{case.name}, which is done")
    ok(os.path.exists(f"{out}/sweep.h5"), f"{case.name}: another run's is not its own to remove")


@claim("SIGUSR1 works although a library that MPI loads catches it, as LLVM does for OpenCL")
def check_taken(case):
    for ranks in 0, 2:
        out = case.at(f"taken-{ranks}")
        need(case.ask(out, ranks=ranks, takes=signal.SIGUSR1), f"{ranks} ranks", 75)
        ok(inside(out)[0] == 0, f"{ranks} ranks")


def stopped(case, what):
    out = case.at(what)
    shutil.rmtree(out, ignore_errors=True)
    need(case.ask(out), f"{case.name}, {what}", 75)
    ok(inside(out)[0] == 0, f"{case.name}, {what}")
    return out


@claim("a sweep of another run is refused, one of another sweep is ignored, and a cut file is "
       "found")
def check_refused(case):
    out = stopped(case, "refused")
    fails(case.run(out), 73, ["sweep.h5' already exists", "add --resume"] if case.command ==
          "refit" else ["add --resume"], "neither --resume nor --force")
    if case.command == "refit":
        fails(case.run(out, "--resume", "--directions", 2), 65, ["--directions 2"],
              "other directions")
        others = []
        for option in "--dictionary", "--supports":
            path = case.words[case.words.index(option) + 1]
            path = f"{path}/{option[2:]}.h5" if os.path.isdir(path) else path
            others += [option, shutil.copy(path, f"{case.folder}/centred-{option[2:]}.h5")]
            with h5py.File(others[-1], "r+") as f:
                f["mean"] = np.full(P, 0.25)
                reseal(f)
        fails(case.run(out, "--resume", *others), 65, ["mean_hash"], "another mean")
    kept = f"{case.folder}/kept.h5"
    shutil.copy(f"{out}/sweep.h5", kept)
    for what, change in (("of a run with other classes",
                          lambda f: f["sweep"].attrs.modify("classes_hash", 5)),
                         ("written with rows_hash 0000",
                          lambda f: f["run"].attrs.modify("identity", re.sub(
                              "rows_hash = ....", "rows_hash = 0000", f["run"].attrs["identity"]))),
                         ("does not say which job it is of",
                          lambda f: f["run"].attrs.__delitem__("identity")),
                         ("whose results differ in bits",
                          lambda f: f["run"].attrs.modify("numerics", 1.0))):
        with h5py.File(f"{out}/sweep.h5", "r+") as f:
            change(f)
            reseal(f)
        fails(case.run(out, "--resume", ranks=2), 65, [what], what)
        shutil.copy(kept, f"{out}/sweep.h5")
    with open(f"{out}/sweep.h5", "r+b") as f:
        f.truncate(os.path.getsize(kept) // 2)
    fails(case.run(out, "--resume", ranks=2), 65, ["sweep.h5"], "cut")
    shutil.copy(kept, f"{out}/sweep.h5")
    with h5py.File(f"{out}/sweep.h5", "r+") as f:
        f.attrs.modify("sweeps", 7)
        reseal(f)
    done = case.run(out, "--resume")
    need(done, "of another sweep")
    ok("resumed inside" not in done.stderr, done.stderr[-300:])
    case.same(out, "beside a sweep that is not its own")
    shutil.copy(kept, f"{out}/sweep.h5")
    need(case.run(out, "--force"), "--force")
    case.same(out, "begun again")


@claim("if a job with --force over another result stops in its first sweep, the message says how "
       "to continue")
def check_begun_over(case):
    out = case.at("begun-over")
    older = [f"{out}/dictionary.h5", f"{out}/supports.h5"]
    need(case.run(out, "--directions", 2), f"{case.name}, another run")
    kept = [open(file, "rb").read() for file in older]
    need(case.ask(out, "--force"), f"{case.name}, begun over it", 75)
    said = ["--directions", "or remove it", "begun over it"]
    fails(case.run(out, "--resume", ranks=2), 65, said, "the older result")
    ok(kept == [open(file, "rb").read() for file in older], "the older result is as it was")
    for file in older:
        os.remove(file)
    done = case.run(out, "--resume")
    need(done, f"{case.name}, the older result removed")
    ok("resumed inside sweep 1" in done.stderr, done.stderr[-300:])
    case.same(out, "begun over another result")


@claim("a job stopped inside a sweep on a CPU, and continued on a GPU, which repeats the sweep, "
       "has the same bytes")
def check_gpu(case):
    if not gpu_present():
        return skip("there is no GPU")
    out = stopped(case, "gpu")
    need(case.run(out, "--resume", "--device", "cuda"), f"{case.name}, on a GPU")
    case.same(out, "continued by a GPU")


@claim("--max-seconds stops inside a sweep, and every run gets further")
def check_seconds(case):
    out, places = case.at("seconds"), []
    for _ in range(12):
        done = case.run(out, "--resume", "--max-seconds", 1e-4)
        if done.returncode != 75:
            break
        places.append(inside(out) if os.path.exists(f"{out}/sweep.h5") else (len(places), 0))
    need(done, f"after {places}")
    ok(len(places) > 2 and len(set(places)) == len(places), f"{places}")
    case.same(out, "by --max-seconds")


def rows_of(path):
    with h5py.File(path) as f:
        return f.attrs["kind"], f["part"].attrs["rows"] if "part" in f else N


@claim("a job stopped while it encodes all rows, on other ranks each time, has the bytes of one "
       "run")
def check_encoding(case):
    out, seen = case.at("encoding"), []
    for ranks in 2, 0, 3:
        done = case.ask(out, "--resume", ranks=ranks, at="supports.h5")
        if done.returncode != 75:
            break
        ok(done.stderr.count("stopped by a signal: --resume") == 1, done.stderr[-300:])
        seen.append(rows_of(f"{out}/supports.h5"))
        need(sagitta("verify", f"{out}/supports.h5"), "verify")
        if len(seen) == 1:
            fails(case.run(out), 73, ["add --resume"], "neither --resume nor --force")
    need(done, f"{case.name}: {seen}")
    ok(1 <= len(seen) <= 2 and all(kind == "part" and 0 < n < N for kind, n in seen) and
       f"resume  after {seen[-1][1]} of {N} rows of" in done.stderr, f"{case.name}: {seen}")
    case.same(out, f"stopped while it encodes, {seen}")
    shutil.rmtree(out)
    need(case.ask(out, at="supports.h5"), f"{case.name}, with fewer sweeps", 75)
    three, killed = case.at("three"), case.at("between")
    shutil.copytree(out, killed)
    need(case.run(out, "--resume", "--sweeps", 3), "a sweep more: the part is of no use")
    need(case.run(three, "--sweeps", 3), "three sweeps")
    shutil.copy(f"{three}/dictionary.h5", killed)  # as if it was killed before the part was removed
    need(case.run(killed, "--resume", "--sweeps", 3), "the part of another dictionary")
    for file in "dictionary.h5", "supports.h5":
        same(f"{three}/{file}", f"{out}/{file}", "a sweep more")
        same(f"{three}/{file}", f"{killed}/{file}", "the part of another dictionary")


def coded_cases(folder):
    """Jobs in which routing and coding at the end of a sweep take seconds, and steps do not."""
    random = np.random.default_rng(37)
    atoms = random.standard_normal((LARGE_K, LARGE_P)).astype("f4")
    rows = atoms[random.integers(0, LARGE_K, LARGE_N)]
    for _ in range(3):
        rows += atoms[random.integers(0, LARGE_K, LARGE_N)]
    np.save(f"{folder}/large.npy", rows + random.standard_normal(rows.shape).astype("f4"))
    rows, start = ["--rows", f"{folder}/large.npy"], f"{folder}/coded"
    need(sagitta("seed", *rows, "--atoms", LARGE_K, "--output", start), "seed")
    need(sagitta("encode", *rows, "--dictionary", start, "--top-s", 8, "--rounds", 8, "--output",
                 start), "encode")
    return [Case(folder, "coded", "refit", *rows, "--dictionary", start, "--supports", start,
                 "--sweeps", 2, "--directions", 1, "--reroute"),
            *(Case(folder, f"coded-{update}", "fit", *rows, "--update", update, "--atoms", LARGE_K,
                   "--top-s", 8, "--rounds", 8, "--sweeps", 2, "--tolerance", 0)
              for update in (("atoms", "joint", "conjugate") if FULL else ()))]


@claim("a job stopped while rows are routed or coded at the end of a sweep stops soon, and "
       "continues to the same bytes")
def check_coded(case, ranks):
    out, seen, codes = case.at("steps"), [], []
    for n in ranks:  # sweep.h5 is first written when all steps are done, before rows are coded
        done = case.ask(out, "--resume", "--save-seconds", 10, ranks=n)
        codes.append(done.returncode)
        if codes[-1] != 75:
            break
        seen.append(inside(out))
        ok(f"saved   {seen[-1][1]} atoms of sweep {len(seen)}" in done.stderr and
           f"sweep   {len(seen)}: " not in done.stderr, f"{case.name}: {done.stderr[-300:]}")
    atoms = {n for _, n in seen}
    ok(codes == [75, 75, 0] and [n for n, _ in seen] == [0, 1] and min(atoms) > LARGE_K // 2,
       f"{case.name}: {codes} {seen} {done.stderr[-400:]}")
    case.same(out, f"stopped while rows are coded, {seen}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with claim("inputs are made, and runs end without a stop"):
            cases = cases_make(folder)
        of = {case.name: case for case in cases}
        if os.environ.get("SANITIZED"):
            skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        else:
            for case in cases[:-1]:
                check_stops(case, RANKS.get(case.name, [0]))
            check_taken(of["plain"])
            check_begun_over(of["plain"])
            for name in "plain", "fit":
                check_refused(of[name])
                check_over(of[name])
                check_gpu(of[name])
            for name in ("fit", "joint") if FULL else ("joint",):
                check_encoding(of[name])
            with claim("inputs are made whose rows take long to code, and runs end without a stop"):
                coded = coded_cases(folder)
            for case, ranks in zip(coded, ([2, 0, 3], [0, 2, 3], [2, 0, 3], [2, 0, 3])):
                check_coded(case, ranks)
        for name in "plain", "fit":
            check_killed(of[name])
        check_seconds(of["plain"])
    done_testing()


main()
