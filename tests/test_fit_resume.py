# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a fit that was stopped, or killed at any call for a file, and is resumed on another number
of ranks gives the bytes of one run, for every update and by parts.  Rows, options and files of
another fit are refused."""
import hashlib
import json
import os
import shutil
import signal
import tempfile

import h5py
import numpy as np

from jobs import faulty
from seal import reseal
from tap import FULL, claim, done_testing, later_wins, ok, sagitta, skip

KINDS = {
    "joint": ["--update", "joint", "--uncentered"],
    "mean": ["--update", "joint"],
    "atoms": ["--update", "atoms", "--codes", "signed", "--uncentered"],
    "parts": ["--minibatch", 1500, "--uncentered"],
    "conjugate": ["--update", "conjugate", "--uncentered"],
    "weights": ["--update", "conjugate", "--minibatch", 1500, "--uncentered"],
    "one part": ["--minibatch", 5000, "--uncentered"],  # more rows than the file has
}


class Place:
    def __init__(self, folder):
        random = np.random.default_rng(5)
        self.folder, self.rows = folder, random.standard_normal((3000, 12)).astype("f4")
        self.rows[:, 0] += 8  # all rows have a common part, so that some atoms are never used
        np.save(self.at("rows.npy"), self.rows)
        np.save(self.at("held.npy"), self.rows[:200])

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def fit(self, out, kind, sweeps, *words, ranks=0, rows="rows.npy"):
        return sagitta(*self.words(out, kind, sweeps, *words, rows=rows), ranks=ranks)

    def words(self, out, kind, sweeps, *words, rows="rows.npy"):
        words = ["fit", "--rows", self.at(rows), "--atoms", 800, "--top-s", 3, "--rounds", 1,
                 "--tolerance", 0, "--holdout", self.at("held.npy"), "--sweeps", sweeps,
                 "--output", self.at(out), *KINDS[kind], *words]
        return later_wins(*words)

    def begin(self, out, kind, sweeps):
        done = self.fit(out, kind, sweeps)
        ok(done.returncode == 0, f"{kind}, {sweeps} sweeps: exit {done.returncode} "
           f"{done.stderr[-300:]}")
        return self.at(out)

    def copy(self, out, name):
        shutil.rmtree(self.at(name), ignore_errors=True)
        shutil.copytree(self.at(out), self.at(name))
        return self.at(name)

    def same(self, one, two, text):
        for name in "dictionary.h5", "supports.h5":
            done = sagitta("diff", self.at(one, name), self.at(two, name))
            ok(done.returncode == 0, f"{text}, {name}: {done.stdout[-300:]} {done.stderr[-200:]}")


@claim("a fit in two runs gives the bytes of one run, on any number of ranks")
def check_same(place, kind):
    place.begin(f"{kind}-5", kind, 5)
    place.begin(f"{kind}-2", kind, 2)
    with h5py.File(place.at(f"{kind}-5", "dictionary.h5")) as f:
        revived = f["fit/history"][:, 4].sum()
    ok(revived > 0 or kind == "mean", f"{kind}: {revived} atoms were revived")
    for ranks, words in ((0, []), (3, ["--threads", 1])):
        place.copy(f"{kind}-2", "resumed")
        done = place.fit("resumed", kind, 5, "--resume", *words, ranks=ranks)
        ok(done.returncode == 0 and "resume  after sweep " in done.stderr,
           f"{kind}, {ranks} ranks: exit {done.returncode} {done.stderr[-300:]}")
        place.same(f"{kind}-5", "resumed", f"{kind}, {ranks} ranks")
    place.copy(f"{kind}-5", "resumed")
    done = place.fit("resumed", kind, 5, "--resume")
    ok(done.returncode == 0 and "no sweep is left of --sweeps" in done.stderr,
       f"{kind}, nothing left to do: {done.stderr[-300:]}")
    place.same(f"{kind}-5", "resumed", f"{kind}, nothing left to do")
    done = place.fit(f"{kind}-anew", kind, 2, "--resume")
    ok(done.returncode == 0, f"{kind}, nothing to resume: {done.stderr[-300:]}")
    place.same(f"{kind}-2", f"{kind}-anew", f"{kind}, nothing to resume")


@claim("a run that is killed at any call for a file can be resumed")
def check_killed(place, kind):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    out = f"{kind}-killed"
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGKILL))
    calls = faulty("signal:1000000000", *place.words(out, kind, 5), count=True, of=".tmp")
    for part in range(1, 8) if FULL else (2, 6):
        n = calls * part // 8
        shutil.rmtree(place.at(out))
        code, text = faulty(f"signal:{n}", *place.words(out, kind, 5), of=".tmp")
        ok(code == -signal.SIGKILL, f"call {n} of {calls}: exit {code} {text[-300:]}")
        done = place.fit(out, kind, 5, "--resume")
        ok(done.returncode == 0, f"killed at call {n} of {calls}: {done.stderr[-300:]}")
        place.same(f"{kind}-5", out, f"killed at call {n} of {calls}")
    return None


@claim("a run that is asked to stop ends with 75 after a sweep, and can be resumed")
def check_asked(place, kind):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    out = f"{kind}-asked"
    calls = faulty("signal:1000000000", *place.words(out, kind, 5), count=True, of=".tmp")
    moments = (6, signal.SIGUSR1), (5, signal.SIGTERM), (4, signal.SIGINT)
    for part, number in moments if FULL or kind == "joint" else moments[:1]:
        os.environ["FAULT_SIGNAL"] = str(int(number))
        shutil.rmtree(place.at(out))
        n = calls // part  # most calls are for the last sweeps and the supports
        code, text = faulty(f"signal:{n}", *place.words(out, kind, 5), of=".tmp")
        left = [name for name in os.listdir(place.at(out)) if name.endswith(".tmp")]
        ok(code == 75 and "stopped by a signal: --resume" in text and not left,
           f"signal {number} at call {n} of {calls}: exit {code} {left} {text[-300:]}")
        done = place.fit(out, kind, 5, "--resume")
        ok(done.returncode == 0, f"asked at call {n} of {calls}: {done.stderr[-300:]}")
        place.same(f"{kind}-5", out, f"asked at call {n} of {calls}")
    shutil.rmtree(place.at(out))
    os.mkdir(place.at(out))
    open(place.at(out, "STOP"), "w").close()
    done = place.fit(out, kind, 5, ranks=2)
    made = sorted(name for name in os.listdir(place.at(out)) if name.endswith(".h5"))
    ok(done.returncode == 75 and "/STOP': remove it, and --resume" in done.stderr and
       "sweep   0" in done.stderr and "sweep   1" not in done.stderr and "supports.h5" not in made,
       f"a file STOP: exit {done.returncode} {made} {done.stderr[-400:]}")
    os.remove(place.at(out, "STOP"))
    done = place.fit(out, kind, 5, "--resume", ranks=2)
    ok(done.returncode == 0, f"after STOP: {done.stderr[-300:]}")
    place.same(f"{kind}-5", out, "after STOP")
    return None


@claim("after the best sweep a fit is resumed from the last state, which must exist")
def check_past(place):
    random = np.random.default_rng(9)
    np.save(place.at("few.npy"), random.standard_normal((60, 12)).astype("f4"))
    words = ["--rows", place.at("few.npy"), "--holdout", place.at("held.npy"), "--atoms", 50,
             "--top-s", 6, "--tolerance", 0, "--update", "joint"]
    sagitta("fit", *words, "--sweeps", 6, "--output", place.at("over"))
    with h5py.File(place.at("over", "dictionary.h5")) as f:
        best, lines = f.attrs["best_sweep"], f["fit/history"][:]
    ok(best == np.argmax(lines[:, 2]) < 6 and len(lines) == 7 and
       os.path.exists(place.at("over", "state.h5")),
       f"sweep {best} of {len(lines) - 1} was the best, and the last one is kept")
    sagitta("fit", *words, "--sweeps", 4, "--output", place.at("over-4"))
    done = sagitta("fit", *words, "--sweeps", 6, "--output", place.at("over-4"), "--resume")
    ok(done.returncode == 0, f"past the best sweep: {done.stderr[-300:]}")
    place.same("over", "over-4", "past the best sweep")
    os.remove(place.at("over-4", "state.h5"))
    done = sagitta("fit", *words, "--sweeps", 8, "--output", place.at("over-4"), "--resume")
    ok(done.returncode == 65 and "is missing" in done.stderr,
       f"without the last state: exit {done.returncode} {done.stderr[-300:]}")


@claim("if the last sweep is not the best, two states are kept, otherwise one; with parts always "
       "two")
def check_states(place):
    np.save(place.at("wavy.npy"), np.random.default_rng(3).standard_normal((300, 12)).astype("f4"))
    words = ["--rows", place.at("wavy.npy"), "--holdout", place.at("held.npy"), "--atoms", 50,
             "--top-s", 4, "--tolerance", 0, "--update", "joint", "--rho", 4, "--relaxation", 1.9,
             "--output", place.at("wavy"), "--force"]
    for parts, more, most in (1, [], 5), (2, ["--minibatch", 150], 2):
        found = set()
        for passes in range(most + 1):
            done = sagitta("fit", *words, *more, "--sweeps", passes)
            ok(done.returncode == 0, f"{parts} parts, {passes}: {done.stderr[-300:]}")
            last, there = passes * parts, os.path.exists(place.at("wavy", "state.h5"))
            with h5py.File(place.at("wavy", "dictionary.h5")) as f:
                best = np.argmax(f["fit/history"][:, 2])
                ok(f.attrs["best_sweep"] == best and f.attrs["sweeps"] == last, f"{dict(f.attrs)}")
            ok(there == (best < last or parts > 1), f"{parts} parts, {last}, best {best}: {there}")
            if there:
                with h5py.File(place.at("wavy", "state.h5")) as f:
                    ok(f.attrs["sweeps"] == last, f"state.h5 has {f.attrs['sweeps']}, not {last}")
            found.add((passes, bool(best < last)))
        ok(parts > 1 or {(1, True), (2, False), (4, True), (5, False)} <= found, f"{found}")


@claim("a fit that is resumed at its last part, which is short, gives the bytes of one run")
def check_short_part(place):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    words = place.words("short", "parts", 2, "--minibatch", 2900, "--twin-cosine", 0.5)
    done = sagitta(*words)
    with h5py.File(place.at("short", "dictionary.h5")) as f:
        revived = f["fit/history"][2:, 4]
        ok(done.returncode == 0 and np.any(revived > 0), f"{revived} {done.stderr[-300:]}")
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGUSR1))
    words = [*words, "--force"]
    words[words.index("--output") + 1] = place.at("went on")
    calls = faulty("signal:1000000000", *words, count=True, of="state.h5.*.tmp")
    # The job writes five states.  The signal comes at a call for the second one, or later.
    for call in range(calls // 5 + 1, calls, max(calls // 20, 1)):
        code, text = faulty(f"signal:{call}", *words, of="state.h5.*.tmp")
        with h5py.File(place.at("went on", "state.h5")) as f:
            sweeps = int(f.attrs["sweeps"])
        if code == 75 and sweeps in (1, 3):
            break
    ok(code == 75 and sweeps in (1, 3), f"exit {code} {sweeps} {text[-300:]}")
    words.remove("--force")
    done = sagitta(*words, "--resume")
    ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}")
    place.same("short", "went on", "from the short part on")
    return None


@claim("a complete fit keeps its detectors if encoding its rows again is stopped")
def check_complete(place):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    random = np.random.default_rng(3)
    for name, n in ("unseen.npy", 200), ("long.npy", 9000):
        np.save(place.at(name), random.standard_normal((n, 12)).astype("f4"))
    words = ["fit", "--rows", place.at("long.npy"), "--holdout", place.at("unseen.npy"), "--atoms",
             50, "--top-s", 4, "--tolerance", 0, "--update", "joint", "--rho", 30, "--relaxation",
             1.9, "--detectors", "--sweeps", 3, "--device", "cpu", "--output", place.at("done")]
    done = sagitta(*words)
    with h5py.File(place.at("done", "dictionary.h5")) as f:
        best, last = f.attrs["best_sweep"], f.attrs["sweeps"]
        ok("encoder" in f and best < last, f"sweep {best} of {last}: {done.stderr[-300:]}")
    place.copy("done", "again")
    words[-1] = place.at("again")
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGUSR1))
    code, text = faulty("signal:1", *words, "--resume", of="supports.h5.*.tmp")
    with h5py.File(place.at("again", "supports.h5")) as f:
        ok(code == 75 and f.attrs["kind"] == "part", f"exit {code} {text[-300:]}")
    for command in ["inspect"], ["color", "--output", place.at("classes"), "--supports"]:
        done = sagitta(*command, place.at("again", "supports.h5"))
        ok("--resume makes the other rows" in done.stdout + done.stderr and
           "merge" not in done.stdout + done.stderr, f"{command}: {done.stdout} {done.stderr}")
    done = sagitta("diff", place.at("done", "dictionary.h5"), place.at("again", "dictionary.h5"))
    ok(done.returncode == 0, f"stopped: {done.stdout[-300:]} {done.stderr[-200:]}")
    done = sagitta(*words, "--resume")
    ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}")
    place.same("done", "again", "gone on with")
    return None


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).digest()


# What run.json has only when a fit has ended.
OF_THE_END = {"encode_s", "fingerprint", "metrics", "unseen_encoded"}


def run_json(folder):
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as f:
        return json.load(f)


@claim("saving the final encoding changes no byte, and a kill loses only what was not yet saved")
def check_saved(place, words, ranks):
    out, often = place.at("often"), ["--save-seconds", 1e-9]
    shutil.rmtree(out, ignore_errors=True)
    done = sagitta(*words, "--output", place.at("plain"), "--force")
    ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}")
    done = sagitta(*words, "--output", out, *often, ranks=ranks)
    saves = done.stderr.count("] saved   ")
    ok(done.returncode == 0 and saves >= 2, f"exit {done.returncode} {done.stderr[-600:]}")
    place.same("plain", "often", f"saved by {ranks} ranks")
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    words = [*words, "--output", out, *often]
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGKILL))
    shutil.rmtree(out)
    calls = faulty("signal:1000000000", *words, count=True, of="supports.h5.*.tmp")
    shutil.rmtree(out)
    code, text = faulty(f"signal:{calls}", *words, of="supports.h5.*.tmp")
    with h5py.File(place.at(out, "supports.h5")) as f:
        ok(code == -signal.SIGKILL and f.attrs["kind"] == "part", f"exit {code} {text[-300:]}")
    missing = set(run_json(place.at("plain"))) - set(run_json(out))
    ok(missing <= OF_THE_END, f"run.json lacks {missing}")
    done = sagitta(*words, "--resume", ranks=ranks)
    ok(done.returncode == 0 and "resume  after 24576 of 26000 rows" in done.stderr,
       f"exit {done.returncode} {done.stderr[-600:]}")
    place.same("plain", "often", f"killed, resumed by {ranks} ranks")
    whole = digest(place.at(out, "supports.h5"))
    code, text = faulty("signal:60", *words, "--resume", of="supports.h5.*.tmp")
    ok(code == -signal.SIGKILL and digest(place.at(out, "supports.h5")) == whole,
       f"a complete fit was resumed and killed: exit {code} {text[-300:]}")
    # From the n-th look at the disk on there is no room; one n is the look before the encoding.
    for n in range(1, 12):
        shutil.rmtree(out)
        code, text = faulty(f"full:{n}", *words, "--save-seconds", 300)
        if code == 0 and "saves   none: the disk has no room" in text:
            break
    ok(n < 11, f"a full disk: exit {code} {text[-600:]}")
    place.same("plain", "often", "without saves")
    return None


def check_saves(place):
    random = np.random.default_rng(3)
    np.save(place.at("saves.npy"), random.standard_normal((26000, 12)).astype("f4"))
    words = ["fit", "--rows", place.at("saves.npy"), "--atoms", 50, "--device", "cpu"]
    check_saved(place, [*words, "--find", "codes", "--top-s", 4, "--sweeps", 2], 2)
    check_saved(place, [*words, "--find", "features", "--l0", 2.5], 3)


@claim("a fit that replaces another one and is killed leaves no supports of the other's atoms")
def check_replaced(place):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    words = [*place.words("replaced", "joint", 5), "--force", "--rho", 0.2]
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGKILL))
    out = place.copy("joint-2", "replaced")
    calls = faulty("signal:1000000000", *words, count=True, of=".tmp")
    out = place.copy("joint-2", "replaced")
    code, text = faulty(f"signal:{calls // 2}", *words, of=".tmp")
    left = sorted(f for f in os.listdir(out) if f.endswith(".h5"))
    ok(code == -signal.SIGKILL and "dictionary.h5" in left and "supports.h5" not in left,
       f"exit {code} {left} {text[-200:]}")
    done = place.fit("replaced", "joint", 5, "--resume", "--rho", 0.2)
    ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}")
    return None


@claim("rows, options and files of another fit are refused, and nothing is changed")
def check_refused(place):
    rows = place.rows.copy()
    rows[2999, 5] += 1
    np.save(place.at("other.npy"), rows)
    np.save(place.at("fewer.npy"), place.rows[:-1])
    rows = place.rows.copy()
    rows[1500:] += 1  # the part that is not in memory after two passes
    np.save(place.at("part.npy"), rows)
    held = place.rows[:200].copy()
    held[7, 7] += 1
    np.save(place.at("held2.npy"), held)
    cases = (
        ("other rows", "mean", [], dict(rows="other.npy"), "the fitted rows of"),
        ("other rows, not centred", "joint", [], dict(rows="other.npy"), "begun with other rows"),
        ("fewer rows", "joint", [], dict(rows="fewer.npy"), "rows_shape 2999 x 12"),
        ("fewer rows, by parts", "parts", [], dict(rows="fewer.npy"), "rows_shape 2999 x 12"),
        ("another part", "parts", [], dict(rows="part.npy"), "written with rows_sample"),
        ("another rho", "joint", ["--rho", 0.2], {},
         "written with --rho 0.1, this run has --rho 0.2"),
        ("a larger tolerance", "joint", ["--tolerance", 1], {}, "ends after sweep 5, and"),
        ("another seed", "joint", ["--seed", 4], {}, "--seed 0, this run has --seed 4"),
        ("other parts", "parts", ["--minibatch", 800], {},
         "--minibatch 1500, this run has --minibatch 800"),
    )
    for text, kind, words, more, told in cases:
        begun = place.begin("joint-7", kind, 7) if "tolerance" in text else f"{kind}-2"
        place.copy(begun, "refused")
        done = place.fit("refused", kind, 8, "--resume", *words, **more)
        ok(done.returncode == 65 and told in done.stderr,
           f"{text}: exit {done.returncode} {done.stderr[-400:]}")
        place.same(begun, "refused", text)
    out = place.copy("joint-2", "refused")
    shutil.copy(place.at("parts-2", "state.h5"), out)
    done = place.fit("refused", "joint", 4, "--resume")
    ok(done.returncode == 65 and "state.h5': written with --minibatch" in done.stderr,
       f"the state of other options: exit {done.returncode} {done.stderr[-300:]}")
    place.copy("parts-2", "refused")
    with h5py.File(place.at("refused", "state.h5"), "r+") as f:
        f["fit/history"][1, 2] += 1e-9
        reseal(f)
    done = place.fit("refused", "parts", 4, "--resume")
    ok(done.returncode == 65 and "are not of one fit" in done.stderr,
       f"the state of another fit: exit {done.returncode} {done.stderr[-300:]}")
    place.copy("joint-2", "refused")
    with h5py.File(place.at("refused", "dictionary.h5"), "r+") as f:
        f["fit/history"][1, 3] = np.nan  # dead atoms
        reseal(f)
    done = place.fit("refused", "joint", 4, "--resume")
    ok(done.returncode == 65 and "has a count that is no integer" in done.stderr,
       f"a count that is NaN: exit {done.returncode} {done.stderr[-300:]}")
    shutil.copy(place.at("held2.npy"), place.at("held.npy"))
    place.copy("joint-2", "refused")
    done = place.fit("refused", "joint", 4, "--resume")
    ok(done.returncode == 65 and "judged by other rows than this one: held_out_hash" in done.stderr,
       f"other rows to judge by: exit {done.returncode} {done.stderr[-300:]}")


with tempfile.TemporaryDirectory() as main:
    made = Place(main)
    for name in list(KINDS):
        check_same(made, name)
    for name in "joint", "parts":
        check_killed(made, name)
        check_asked(made, name)
    check_past(made)
    check_states(made)
    check_short_part(made)
    check_complete(made)
    check_saves(made)
    check_replaced(made)
    check_refused(made)
done_testing()
