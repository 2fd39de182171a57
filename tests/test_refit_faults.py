# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if something fails or stops in refit and assemble, published files are whole.  A stopped
rank ends the job with 76, and a killed rank ends it too; a rank without memory ends it with 71.  A
refit that was killed continues between any two sweeps, on another number of ranks, with the bits of
an uninterrupted one.  If a GPU takes the steps, a failed write during the next sweep ends the job
too."""
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time

from jobs import FAULTS as LIBRARY
from jobs import (faulty, job_end, job_ranks, job_start, kill_all, temporaries, wait_for,
                  wait_for_temporary)
from tap import claim, done_testing, gpu_present, ok, sagitta, skip

SWEEPS, KILLS = 12, 3
FILES = ("dictionary.h5", "supports.h5")
# kind of call: (number of calls that are tried, spread evenly over a run; exit codes).  One call
# fails in each try.  For read all later calls fail too, because HDF5 tries again.
FAULTS = {"write": (4, (74, 73)), "read": (2, (74, 65)), "fsync": (2, (74,)),
          "rename": (2, (74, 73)), "own-memory": (6, (71,))}


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)


class Data:
    def __init__(self, folder, name, n, k, p, top_s):
        self.folder = os.path.join(folder, name)
        rows, start, codes = (self.at(f) for f in ("rows.h5", "start.h5", "codes.h5"))
        need(sagitta("synth", "--n-rows", n, "--atoms", k, "--columns", p, "--top-s", top_s,
                     "--start-cosine", 0.8, "--noise", 0.1, "--output", self.folder))
        need(sagitta("encode", "--rows", rows, "--dictionary", start, "--top-s", top_s,
                     "--output", codes))
        self.words = ["--rows", rows, "--dictionary", start, "--supports", codes, "--threads", 1]

    def at(self, name):
        return os.path.join(self.folder, name)


def whole(*paths):
    return all(sagitta("verify", path).returncode == 0 for path in paths if os.path.exists(path))


def same(a, b):
    return sagitta("diff", a, b).returncode == 0


def spared(kind, text):
    """Was it a call for the log, which may be incomplete, or for run.json?"""
    return kind == "write" or "not of the last run" in text


@claim("calls that fail in refit leave files that can be resumed")
def check_refit_faults(data):
    """The second sweep fails; then the run is resumed."""
    one, two, out = data.at("one"), data.at("two"), data.at("out")
    need(sagitta("refit", *data.words, "--output", one))
    need(sagitta("refit", *data.words, "--sweeps", 2, "--output", two))
    words = ["refit", *data.words, "--sweeps", 2, "--resume", "--output", out]

    def copy():
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(one, out)

    for kind, (trials, codes) in FAULTS.items():
        copy()
        begin = faulty(f"{kind}:1000000000", *words, "--dry-run", count=True)
        calls = faulty(f"{kind}:1000000000", *words, count=True) - begin
        wrong = []
        for i in range(trials):
            n = begin + 1 + i * (calls - 1) // max(1, trials - 1)
            copy()
            code, text = faulty(f"{kind}:{n}" + "+" * (kind == "read"), *words)
            left = [f for f in os.listdir(out) if f.endswith(".tmp")]
            good = code in codes and not left
            if code == 0 and spared(kind, text):
                good = all(same(os.path.join(out, f), os.path.join(two, f)) for f in FILES)
            again = sagitta(*words)
            good = good and again.returncode == 0
            good = good and all(same(os.path.join(out, f), os.path.join(two, f)) for f in FILES)
            wrong += [] if good else [(n, code, left, again.returncode, text[-200:])]
        ok(not wrong and calls > 0, f"refit: {trials} of {calls} {kind} calls fail: {wrong}")


@claim("sweeps of a GPU are written during the next ones, in order, and a failure ends the job")
def check_beside(data):
    if not gpu_present():
        return
    straight, out = data.at("cpu"), data.at("gpu")
    words = ["refit", *data.words, "--reroute", "--directions", 1, "--sweeps", 5]
    need(sagitta(*words, "--output", straight))
    words += ["--device", "cuda", "--output", out]
    need(sagitta(*words))
    ok(all(same(os.path.join(out, f), os.path.join(straight, f)) for f in FILES), "the CPU's bits")
    for kind in ("write", "fsync", "rename"):
        shutil.rmtree(out)
        calls = faulty(f"{kind}:1000000000", *words, count=True, of=".tmp", gpu=True)
        wrong = []
        for n in (calls // 3, calls // 2, calls - 3):
            shutil.rmtree(out)
            code, text = faulty(f"{kind}:{n}", *words, of=".tmp", gpu=True)
            left = [f for f in os.listdir(out) if f.endswith(".tmp")]
            good = code in (73, 74) and not left
            good = good and whole(*(os.path.join(out, f) for f in FILES))
            again = sagitta(*words, "--resume")
            good = good and again.returncode == 0
            good = good and all(same(os.path.join(out, f), os.path.join(straight, f))
                                for f in FILES)
            wrong += [] if good else [(n, code, left, again.returncode, text[-200:])]
        # A sweep that ends before the files of an earlier sweep are written may get no files.  So
        # the number of calls varies.
        ok(not wrong and calls > 3, f"of {calls} {kind} calls some fail: {wrong}")


@claim("calls that fail in assemble publish nothing broken")
def check_assemble_faults(data):
    good, out = data.at("systems.h5"), data.at("out.h5")
    folder = os.path.dirname(out)
    need(sagitta("assemble", *data.words, "--output", good))
    words = ["assemble", *data.words, "--output", out]
    for kind, (trials, codes) in FAULTS.items():
        begin = faulty(f"{kind}:1000000000", *words, "--dry-run", count=True)
        calls = faulty(f"{kind}:1000000000", *words, count=True) - begin
        wrong = []
        os.remove(out)
        for i in range((trials + 1) // 2):
            n = begin + 1 + i * (calls - 1) // max(1, (trials + 1) // 2 - 1)
            code, text = faulty(f"{kind}:{n}" + "+" * (kind == "read"), *words)
            clean = code in codes and not temporaries(folder, "out.h5")
            # A late call failed: the last sync, or one for the log or run.json.
            if os.path.exists(out):
                clean = (code == 0 and spared(kind, text) or kind == "fsync") and same(out, good)
                os.unlink(out)
            wrong += [] if clean else [(n, code, text[-200:])]
        ok(not wrong and calls > 0, f"assemble: of {calls} {kind} calls some fail: {wrong}")


@claim("a rank that lacks memory ends the job with 71, while the other continues to the next "
       "exchange")
def check_rank(data):
    out, draw = data.at("rank"), random.Random(8)
    words = ["refit", *data.words, "--deadline", 20, "--output", out, "--force"]

    def run(n, **more):
        return job_end(job_start(*words, ranks=2, LD_PRELOAD=LIBRARY, FAULT_RANK="1",
                                 FAULT=f"own-memory:{n}", **more), 60)
    code, text = run(1000000000, FAULT_COUNT="1")
    calls = max(map(int, re.findall(r"fault calls=(\d+)", text)), default=0)
    ok(code == 0 and calls, f"without one: {code} {text[-300:]}")
    for n in (draw.randint(calls // 2, calls) for _ in range(8)):  # mostly in the sweep
        code, text = run(n)
        ok(code == 71 and "Segmentation" not in text, f"call {n} of {calls}: {code} {text[-300:]}")


def check_stops(data, command, at_work, ends, *more):
    """Of three ranks at work one is stopped or killed."""
    out = data.at("stopped")
    for number, which in ends:
        shutil.rmtree(out, ignore_errors=True)
        job = job_start(command, *data.words, *more, "--deadline", 5, "--output", out, ranks=3)
        begun_work, pids = at_work(out), job_ranks(job)
        begun = time.time()
        if len(pids) == 3:
            os.kill(pids[which], number)
        code, text = job_end(job, 40)
        spent = time.time() - begun
        silent = "a sign of life of rank" in text
        good = code == 76 and silent if number == signal.SIGSTOP else code not in (0, None)
        results = [os.path.join(out, f) for f in (*FILES, "systems.h5")]
        good = good and whole(*results) and not os.path.exists(results[2])
        if not ok(begun_work and good and spent < 20, f"{command}: rank {which} gets "
                  f"{signal.Signals(number).name}: exit {code} after {spent:.1f} s"):
            print("#", text.replace("\n", "\n# "))
        kill_all(pids)


@claim("a refit that is asked to stop ends with 75 after a sweep, and can be resumed")
def check_asked(data):
    straight, out = data.at("asked-not"), data.at("asked")
    words = ["refit", *data.words, "--sweeps", 4]
    need(sagitta(*words, "--output", straight))
    calls = faulty("signal:1000000000", *words, "--output", out, count=True, of=".tmp")
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGUSR1))
    shutil.rmtree(out)
    code, text = faulty(f"signal:{calls // 2}", *words, "--output", out, of=".tmp")
    ok(code == 75 and "stopped by a signal: --resume" in text and
       whole(*(os.path.join(out, f) for f in FILES)), f"exit {code} {text[-300:]}")
    stopped = [("resumed", [out, "--resume"], 0), ("fresh", [data.at("asked-fresh")], 1)]
    for name, (folder, *more), sweeps in stopped:
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, "STOP"), "w").close()
        done = sagitta(*words, *more, "--output", folder)
        lines = [l for l in done.stderr.splitlines() if "] sweep   " in l]
        ok(done.returncode == 75 and "/STOP'" in done.stderr and len(lines) == sweeps,
           f"a file STOP, {name}: exit {done.returncode} {done.stderr[-300:]}")
        os.remove(os.path.join(folder, "STOP"))
    done = sagitta(*words, "--resume", "--output", out)
    ok(done.returncode == 0, f"resumed: exit {done.returncode} {done.stderr[-300:]}")
    ok(all(same(os.path.join(out, f), os.path.join(straight, f)) for f in FILES), "other bits")


def check_kills(data):
    """Kill the run at many moments, and resume it on other numbers of ranks."""
    straight, out = data.at("straight"), data.at("killed")
    words = ["refit", *data.words, "--sweeps", SWEEPS]
    need(sagitta(*words, "--output", straight))
    moments, broken, ended = random.Random(3), [], []
    for i in range(KILLS):
        job = job_start(*words, "--resume", "--output", out)
        wait_for(os.path.join(out, "dictionary.h5"))  # from here on it can be resumed
        time.sleep(moments.uniform(0, 0.3) if i == 0 else moments.uniform(0.4, 1))
        job.kill()
        ended.append(job_end(job, 40)[0])
        broken += [] if whole(*(os.path.join(out, f) for f in FILES)) else [i]
    ok(not broken, f"after {KILLS} kills ({ended}) files are whole or absent {broken}")
    done = sagitta(*words, "--resume", "--output", out, ranks=3)
    resumed = [l.strip() for l in done.stderr.splitlines() if "resumed after" in l]
    equal = all(same(os.path.join(out, f), os.path.join(straight, f)) for f in FILES)
    ok(done.returncode == 0 and resumed and equal,
       f"a resumed run on three ranks: {resumed} the same bits")


def main():
    with tempfile.TemporaryDirectory() as folder:
        small = Data(folder, "small", 300, 24, 8, 3)
        if os.environ.get("SANITIZED"):
            skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        else:
            check_refit_faults(small)
            check_beside(small)
            check_assemble_faults(small)
            check_asked(small)
            check_rank(Data(folder, "two", 4096 + 300, 24, 8, 3))
        # If ranks share cores, each class of atoms takes long, because it waits for every rank.  So
        # sanitizers get few classes.
        sizes = (128, 16, 3) if os.environ.get("SANITIZED") else (512, 32, 8)
        large = Data(folder, "large", 3 * 4096, *sizes)
        check_stops(large, "refit", lambda out: wait_for(f"{out}/dictionary.h5"),
                    ((signal.SIGSTOP, 1), (signal.SIGKILL, 2)), "--sweeps", 100000)
        check_stops(large, "assemble", lambda out: wait_for_temporary(out, "systems.h5"),
                    ((signal.SIGSTOP, 0),), "--directions", 30)
        check_kills(large)
    done_testing()


main()
