# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta fit --find features` writes the same bytes on any number of ranks and threads,
resumed or not.  With its thresholds `encode --encoder` gives rows the codes that NumPy and SciPy
find.  Other commands take the result.  Wrong requests are refused."""
import json
import os
import shutil
import tempfile

import h5py
import numpy as np

from jobs import job_end, job_start, wait_until
from tap import (claim, done_testing, fails, gpu_present, later_wins, need, ok, peer_missing,
                 sagitta, same)
from train_place import Place, rows_make, stopped_over


class Finding(Place):
    def words(self, out, *words):
        return later_wins("fit", "--find", "features", "--rows", self.at("rows.npy"), "--holdout",
                          self.at("held.npy"), "--atoms", 24, "--l0", 2.5, "--threads", 1,
                          "--output", self.at(out), *words)

    def run(self, out, *words, ranks=0):
        return sagitta(*self.words(out, *words), ranks=ranks)


@claim("numbers of ranks and threads change no byte, nor does a stop")
def check_ranks(p):
    p.one = p.run("one", "--json")
    need(p.one, "one rank")
    for name in "dictionary.h5", "supports.h5":
        need(sagitta("verify", p.at("one", name)), "verify")
    for ranks, threads in (2, 1), (3, 2), (5, 1):
        out = f"r{ranks}"
        need(p.run(out, "--threads", threads, ranks=ranks), out)
        for name in "dictionary.h5", "supports.h5":
            same(p.at("one", name), p.at(out, name), out)
    os.mkdir(p.at("stop"))
    open(p.at("stop", "STOP"), "w").close()
    fails(p.run("stop"), 75, ["--resume"], "stopped before the first update")
    os.remove(p.at("stop", "STOP"))
    part = p.words("stop", "--resume", "--max-seconds", 1e-9)
    fails(sagitta(*part, ranks=2), 75, ["--resume"], "stopped again")
    need(sagitta("verify", p.at("stop", "state.h5")), "verify a state")
    fails(p.run("stop", "--resume", "--seed", 3), 65, ["--seed 0", "--seed 3"], "another seed")
    need(p.run("stop", "--resume", ranks=3), "resumed")
    for name in "dictionary.h5", "supports.h5":
        same(p.at("one", name), p.at("stop", name), "resumed")
    need(p.run("stop", "--resume"), "complete")
    same(p.at("one", "supports.h5"), p.at("stop", "supports.h5"), "complete")
    need(p.run("over", "--rows", p.at("held.npy"), "--holdout", p.at("rows.npy")), "of other rows")
    stopped_over(p.at("over"), lambda *words: p.run("over", *words))
    for name in "dictionary.h5", "supports.h5":
        same(p.at("one", name), p.at("over", name), "resumed beside an older result")


@claim("the state is saved every --save-seconds, also within an update of several batches")
def check_saved(p):
    np.save(p.at("many.npy"), rows_make(np.random.default_rng(2), 33000))
    job = job_start(*p.words("saved", "--rows", p.at("many.npy"), "--atoms", 512, "--save-seconds",
                             0))
    wait_until(lambda: os.path.exists(p.at("saved", "state.h5")) or job.poll() is not None)
    is_running, there = job.poll() is None, os.path.exists(p.at("saved", "state.h5"))
    job.kill()
    text = job_end(job, 10)[1]
    ok(is_running and there, f"no state before the end, or {text[-300:]}")


@claim("rows times a power of two give the same atoms bit for bit, and codes times that power")
def check_units(p):
    need(p.run("unit-0"), "as they are")
    for power in -61, 1, 40:
        for name in "rows", "held":
            np.save(p.at(f"{name}{power}.npy"), np.ldexp(np.load(p.at(f"{name}.npy")), power))
        out = f"unit{power}"
        need(p.run(out, "--rows", p.at(f"rows{power}.npy"), "--holdout",
                   p.at(f"held{power}.npy")), out)
        atoms, codes = [], []
        for name in "unit-0", out:
            with h5py.File(p.at(name, "dictionary.h5")) as f:
                atoms.append(f["atoms"][:])
            with h5py.File(p.at(name, "supports.h5")) as f:
                codes.append(f["supports/data"][:])
        ok(np.array_equal(*atoms), f"atoms of rows times 2^{power}")
        ok(np.array_equal(np.ldexp(codes[0], power), codes[1]), f"codes, 2^{power}")


def solve(nnls, d, y, active):
    codes = np.zeros(len(d))
    codes[active] = nnls(d[active].T, y)[0] if active.any() else 0
    return codes


@claim("thresholds give unseen rows the active atoms and codes that NumPy and SciPy find")
def check_numpy(p):
    try:
        from scipy.optimize import nnls
    except ImportError:
        peer_missing("SciPy is not installed")
        return
    need(sagitta("encode", "--rows", p.at("held.npy"), "--encoder", p.at("one"), "--output",
                 p.at("codes")), "encode")
    with h5py.File(p.at("one", "dictionary.h5")) as f:
        d, mean = f["atoms"][...].astype("f8"), f["mean"][...]
        cuts, floor = f["encoder/cuts"][...], f["encoder"].attrs["floor"]
    with h5py.File(p.at("codes", "supports.h5")) as f:
        s = f["supports"]
        start, index, data = s["indptr"][...], s["indices"][...], s["data"][...]
    rows, equal, worst = np.load(p.at("held.npy")).astype("f8") - mean, 0, 0.0
    for i, y in enumerate(rows):
        codes = np.zeros(len(d))
        for cut in cuts:
            left = y - codes @ d
            h, s = d @ left, left @ left
            score = (h + codes) / np.sqrt(np.maximum(s + 2 * codes * h + codes ** 2, 0) + floor)
            codes = solve(nnls, d, y, score > cut)
        own = np.zeros(len(d))
        own[index[start[i]:start[i + 1]]] = data[start[i]:start[i + 1]]
        if ((own > 0) == (codes > 0)).all():
            equal += 1
            worst = max(worst, np.abs(own - codes).max() / max(codes.max(), 1))
    ok(equal >= 0.995 * len(rows), f"{equal} of {len(rows)} rows have the same atoms")
    ok(worst < 1e-4, f"codes differ by {worst}")  # float32 scores, and codes solved in float64


@claim("at the end more is explained, and more atoms are active, than at the start; run.json has "
       "this")
def check_told(p):
    told = json.loads(p.one.stdout)
    lines = told["lines"]
    ok(told["find"] == "features" and told["l0_target"] == 2.5, f"{told}")
    # 24 of 30 atoms in 12 columns: many are too close to each other for both to be kept
    ok(lines[-1]["atoms"] == 24 and lines[-1]["unseen"] > 0.7, f"{lines}")
    ok(lines[0]["unseen"] < lines[-1]["unseen"] and abs(lines[-1]["unseen_l0"] - 2.5) < 0.5,
       f"{lines}")
    ok(abs(told["metrics"]["l0"] - 2.5) < 0.5, f"{told['metrics']}")


@claim("other commands take atoms, codes and thresholds")
def check_used(p):
    one = p.at("one")
    rows = ["--rows", p.at("rows.npy")]
    need(sagitta("inspect", p.at("one", "dictionary.h5")), "inspect")
    need(sagitta("evaluate", *rows, "--dictionary", one, "--codes", one), "evaluate")
    need(sagitta("compare", one, p.at("r2"), "--output", p.at("compared")), "compare")
    need(sagitta("detect", *rows, "--dictionary", one, "--codes", one, "--output",
                 p.at("detected")), "detect")
    need(sagitta("top", "--supports", one, "--output", p.at("top")), "top")
    need(sagitta("encode", *rows, "--dictionary", one, "--output", p.at("routed")), "encode")
    with h5py.File(p.at("routed", "supports.h5")) as f:
        routed = f["metrics"].attrs["explained_variance"]
    with h5py.File(p.at("one", "supports.h5")) as f:
        own = f["metrics"].attrs["explained_variance"]
    ok(own - 0.1 < routed < 1, f"by matching pursuit {routed}, by thresholds {own}")


@claim("verify computes codes again from the thresholds, also with --l0, and finds wrong ones")
def check_verified(p):
    done = sagitta("verify", p.at("one"), "--rows", p.at("rows.npy"))
    need(done, "verify")
    ok("3000 of 3000 rows: atoms, scores and codes" in done.stdout, done.stdout)
    for out, words in ("by-l0", ["--l0", 1.5]), ("by-own", []):
        os.mkdir(p.at(out))
        shutil.copy(p.at("one", "dictionary.h5"), p.at(out))
        need(sagitta("encode", "--rows", p.at("held.npy"), "--encoder", p.at("one"), *words,
                     "--output", p.at(out, "supports.h5")), "encode")
        need(sagitta("verify", p.at(out), "--rows", p.at("held.npy")), f"verify {out}")
    np.save(p.at("changed.npy"), 1.01 * np.load(p.at("held.npy")))
    for out in "by-l0", "by-own":
        fails(sagitta("verify", p.at(out), "--rows", p.at("changed.npy")), 65,
              ["row ", "other atoms, scores or codes"], f"{out}, changed rows")


@claim("export writes an encoder for other programs, and says how much its codes explain")
def check_exported(p):
    rows = ["--rows", p.at("held.npy")]
    done = sagitta("export", p.at("one"), "--to", "saelens", *rows, "--output", p.at("sae"))
    need(done, "export")
    told = json.loads(open(p.at("sae", "run.json")).read())
    with h5py.File(p.at("by-own", "supports.h5")) as f:
        own = f["metrics"].attrs["explained_variance"]
    ok(f"sagitta={own:.6f}" in done.stderr and "by=matching pursuit" in done.stderr, done.stderr)
    ok(json.load(open(p.at("sae", "cfg.json")))["architecture"] == "matching_pursuit", f"{told}")
    need(sagitta("import", p.at("sae"), "--output", p.at("back")), "import")
    with h5py.File(p.at("back", "dictionary.h5")) as a, \
            h5py.File(p.at("one", "dictionary.h5")) as b:
        ok((a["atoms"][...] == b["atoms"][...]).all(), "the atoms come back")
    need(sagitta("encode", *rows, "--dictionary", p.at("back"), "--output", p.at("back")), "encode")
    fails(sagitta("export", p.at("one"), "--to", "sparsify", *rows, "--output", p.at("x")), 65,
          ["tied encoder", "'--to saelens'"], "sparsify")


@claim("wrong requests are refused, and the message says what to do")
def check_refused(p):
    fails(p.run("x", "--l0", 0), 2, ["'--l0' is missing"], "no number")
    fails(p.run("x", "--l0", 25), 2, ["'--l0' is 25", "24 atoms", "lower it"], "more than atoms")
    fails(p.run("x", "--l0", 101, "--atoms", 200), 2, ["'--l0' is 101", "at most 100"], "too many")
    fails(p.run("x", "--l0", 1e-6), 2, ["'--l0' is 1e-06", "raise it"], "none")
    fails(p.run("x", "--atoms", 4000), 65, ["3000 rows", "4000 atoms"], "too few rows")
    for words in (["--top-s", 3], ["--sweeps", 2], ["--codes", "signed"], ["--minibatch", 500],
                  ["--update", "joint"], ["--rho", 1], ["--encode-s", 40], ["--seeds", 2],
                  ["--rounds", 2], ["--detectors"]):
        fails(p.run("x", *words), 2, [f"'{words[0]}' does not go with '--find features'",
                                      "leave it out"], words[0])
    fails(sagitta("fit", "--rows", p.at("rows.npy"), "--atoms", 24, "--l0", 2, "--output",
                  p.at("x")), 2, ["'--l0'", "'--find features'"], "a number alone")
    np.save(p.at("equal.npy"), np.ones((500, 12), "f4"))
    fails(sagitta("fit", "--find", "features", "--rows", p.at("equal.npy"), "--atoms", 4, "--l0",
                  1, "--output", p.at("x")), 65, ["do not vary"], "equal rows")
    fails(sagitta("encode", "--rows", p.at("held.npy"), "--encoder", p.at("one"), "--codes",
                  "signed", "--output", p.at("x")), 2, ["leave '--codes' out"], "signed")


@claim("a GPU gives the same bytes, also if a CPU began the job or continues it")
def check_gpu(p):
    if not gpu_present():
        return
    need(p.run("gpu", "--device", "cuda"), "a GPU")
    for name in "dictionary.h5", "supports.h5":
        same(p.at("one", name), p.at("gpu", name), "a GPU")
    for here, there in ("cpu", "cuda"), ("cuda", "cpu"):
        out = "from" + here
        fails(p.run(out, "--device", here, "--max-seconds", 1e-9), 75, ["--resume"], out)
        need(p.run(out, "--device", there, "--resume", ranks=2), out)
        same(p.at("one", "dictionary.h5"), p.at(out, "dictionary.h5"), f"begun on {here}")
    for words in [], ["--l0", 2]:
        for device in "cpu", "cuda":
            need(sagitta("encode", "--rows", p.at("held.npy"), "--encoder", p.at("one"), *words,
                         "--device", device, "--force", "--output", p.at(device)), device)
        same(p.at("cpu", "supports.h5"), p.at("cuda", "supports.h5"), f"encode {words}")


with tempfile.TemporaryDirectory() as folder:
    PLACE = Finding(folder)
    for check in (check_ranks, check_saved, check_units, check_numpy, check_told, check_used,
                  check_verified, check_exported, check_gpu, check_refused):
        check(PLACE)
done_testing()
