# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a job that stops says within how many seconds, and ends by then, also if files are written
and read at 20 MB/s (tests/slow.c).  The jobs are encode into a growing file, a joined file or a
part; route, solve, assemble, and both kinds of refit; fit of all rows, of parts, atom by atom and
by features; train; and the pass for the mean.  Without CHECK_FULL=1, STOPS and ONLY three of them
run.

TIMES is the number of stops of each job.  If STOPS is given instead, it is the number of stops of
all jobs together, which are stopped in turn:
  STOPS=50 SEED=1 make check TESTS=tests/test_stop_time.py"""
import os
import random
import re
import shutil
import tempfile
import time

import numpy as np

from jobs import job_start
from tap import FULL, claim, done_testing, need, ok, sagitta, skip_all

SLOW = os.path.join(os.environ["builddir"], "tests/slow.so")
RATE = 20e6  # bytes per second of a process
TIMES = int(os.environ.get("TIMES", 3 if FULL else 1))
STOPS = int(os.environ.get("STOPS", 0))
SOME = "growing", "part", "train"
N, P, K = 98304, 256, 1024
ONLY = os.environ.get("ONLY")  # run only jobs whose names have this text


def stopped(folder, words, ranks, after):
    """Ask a job to stop `after` seconds after its start; it may have ended before.  The job then
    promises a number of seconds.  Returns this number, the seconds from the promise to the end, the
    exit code, the messages, and the seconds from the request to the promise."""
    out = f"{folder}/out"
    shutil.rmtree(out, ignore_errors=True)
    job = job_start(*words, "--threads", 1, "--output", out, ranks=ranks,
                    LD_PRELOAD=SLOW, SLOW_OF=folder, SLOW_WRITE=str(RATE), SLOW_READ=str(RATE))
    time.sleep(after)
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/STOP", "w"):
        pass
    said, text = None, ""
    at = asked = time.monotonic()
    for line in job.stderr:
        text += line
        if found := re.search(r"stops   within (\d+) s", line):
            said, at = float(found[1]), time.monotonic()
    code = job.wait(timeout=120)
    took = time.monotonic() - at
    os.remove(f"{out}/STOP")
    return said, took, code, text, at - asked


def jobs_of(folder):
    rows, atoms = ["--rows", f"{folder}/rows.npy"], ["--dictionary", f"{folder}/atoms.npy"]
    codes = ["--supports", f"{folder}/codes.h5"]
    coding = [*rows, *atoms, "--top-s", 128, "--device", "cpu", "--block", 4096]
    fit = ["fit", *rows, "--find", "codes", "--top-s", 8, "--rounds", 1, "--device", "cpu",
           "--tolerance", 0, "--save-seconds", 1, "--atoms"]
    return {
        "growing": (["encode", *coding, "--grid", "2x1"], 2, 6),
        "part": (["encode", *coding], 1, 6),
        "joined": (["encode", *coding, "--join", "--row-range", f"0:{N}"], 2, 6),
        "route": (["route", *coding], 2, 3),
        "mean": (["encode", *coding, "--center"], 2, 2),
        "refit": (["refit", *rows, *atoms, *codes, "--sweeps", 50], 2, 8),
        "refit, kept": (["refit", *rows, *atoms, *codes, "--sweeps", 50, "--keep-supports"], 2, 8),
        "assemble": (["assemble", *rows, *atoms, *codes], 2, 5),
        "fit, features": (["fit", *rows, "--find", "features", "--l0", 8, "--atoms", 256,
                           "--device", "cpu"], 2, 8),
        "solve": (["solve", "--systems", f"{folder}/systems", "--batch", 2000], 2, 4),
        "fit, joint": ([*fit, 256, "--sweeps", 50], 2, 8),
        "fit, parts": ([*fit, 1024, "--sweeps", 50, "--minibatch", 4096], 2, 5),
        "fit, atoms": ([*fit, 64, "--sweeps", 50, "--update", "atoms"], 1, 8),
        "train": (["train", *rows, "--atoms", 4096, "--steps", 100000, "--device", "cpu"], 2, 6)}


def inputs_make(folder):
    draw = np.random.default_rng(5)
    np.save(f"{folder}/rows.npy", draw.standard_normal((N, P)).astype("f2"))
    atoms = draw.standard_normal((K, P)).astype("f4")
    np.save(f"{folder}/atoms.npy", atoms / np.linalg.norm(atoms, axis=1)[:, None])
    need(sagitta("encode", "--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/atoms.npy",
                 "--top-s", 4, "--output", f"{folder}/codes.h5"), "codes")
    need(sagitta("synth", "--systems", 1000, "--system-rows", 1000, "--output",
                 f"{folder}/systems"), "systems")


def stop(folder, name, job):
    """Stop a job once, and check the time.  False if three jobs ended before they were asked.
    Beside other tests a job may get less of the machine than when it said the time: unless
    STOPS is set, a stop that is late is tried again."""
    words, ranks, latest = job
    for left in (2, 1, 0):
        said, took, code, text, late = stopped(folder, words, ranks, random.uniform(1, latest))
        if code == 0:
            continue
        told = f"{name}: {took:.1f} s of {said}, said after {late:.1f} s, exit {code}"
        print(f"# {told}", flush=True)
        if left and not STOPS and code == 75 and said is not None and took > said:
            continue
        ok(code == 75 and said is not None and took <= said, f"{told} {text[-500:]}")
        return True
    return False


@claim("a job that stops ends within the seconds that it says")
def stops_check(folder):
    inputs_make(folder)
    random.seed(int(os.environ.get("SEED", "1")))
    jobs = {name: job for name, job in jobs_of(folder).items()
            if ((FULL or STOPS or name in SOME) if ONLY is None else ONLY in name)}
    stops = dict.fromkeys(jobs, 0)
    for i in range(STOPS or TIMES * len(jobs)):
        name = list(jobs)[i % len(jobs)]
        stops[name] += stop(folder, name, jobs[name])
    print(f"# {sum(stops.values())} stops: {stops}", flush=True)
    ok(all(stops.values()), f"{stops}")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    with tempfile.TemporaryDirectory() as folder:
        stops_check(folder)
    done_testing()


main()
