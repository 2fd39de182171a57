# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a job that stops says within how many seconds, and ends by then, also where files are
written and read at 20 MB/s (tests/slow.c): encode that grows one file or makes a part, solve, fit
of all rows, of parts and atom by atom, refit, train, and the pass for the mean.

TIMES says how often each is stopped:
  TIMES=50 make check TESTS=tests/test_stop_time.py"""
import os
import random
import re
import tempfile
import time

import numpy as np

from jobs import job_start
from tap import FULL, claim, done_testing, need, ok, sagitta, skip_all

SLOW = os.path.join(os.environ["builddir"], "tests/slow.so")
RATE = 20e6  # bytes a second of a process
TIMES = int(os.environ.get("TIMES", 3 if FULL else 1))
SOME = "growing", "part", "train"
P, K = 256, 1024
ONLY = os.environ.get("ONLY")  # jobs that have this in their names


def stopped(folder, words, ranks, after):
    """Said, taken, and the exit code of a job that is asked to stop so long after its start; it may
    have ended before."""
    out = f"{folder}/out"
    job = job_start(*words, "--threads", 1, "--output", out, "--force", ranks=ranks,
                    LD_PRELOAD=SLOW, SLOW_OF=folder, SLOW_WRITE=str(RATE), SLOW_READ=str(RATE))
    time.sleep(after)
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/STOP", "w"):
        pass
    said, at, text = None, 0, ""
    for line in job.stderr:
        text += line
        if found := re.search(r"stops   within (\d+) s", line):
            said, at = float(found[1]), time.monotonic()
    code = job.wait(timeout=120)
    took = time.monotonic() - at
    os.remove(f"{out}/STOP")
    return said, took, code, text


def jobs_of(folder):
    rows, atoms = ["--rows", f"{folder}/rows.npy"], ["--dictionary", f"{folder}/atoms.npy"]
    coding = [*rows, *atoms, "--top-s", 128, "--device", "cpu", "--block", 4096]
    fit = ["fit", *rows, "--find", "codes", "--top-s", 8, "--rounds", 1, "--device", "cpu",
           "--tolerance", 0, "--save-seconds", 1, "--atoms"]
    return {
        "growing": (["encode", *coding, "--grid", "2x1"], 2, 6),
        "part": (["encode", *coding], 1, 6),
        "mean": (["encode", *coding, "--center"], 2, 2),
        "solve": (["solve", "--systems", f"{folder}/systems", "--batch", 2000], 2, 4),
        "fit, joint": ([*fit, 256, "--sweeps", 50], 2, 8),
        "fit, parts": ([*fit, 1024, "--sweeps", 50, "--minibatch", 4096], 2, 5),
        "fit, atoms": ([*fit, 64, "--sweeps", 50, "--update", "atoms"], 1, 8),
        "train": (["train", *rows, "--atoms", 4096, "--steps", 100000, "--device", "cpu"], 2, 6)}


def inputs_make(folder):
    draw = np.random.default_rng(5)
    np.save(f"{folder}/rows.npy", draw.standard_normal((98304, P)).astype("f2"))
    atoms = draw.standard_normal((K, P)).astype("f4")
    np.save(f"{folder}/atoms.npy", atoms / np.linalg.norm(atoms, axis=1)[:, None])
    need(sagitta("synth", "--systems", 1000, "--system-rows", 1000, "--output",
                 f"{folder}/systems"), "systems")


@claim("a job that stops ends within the seconds that it says")
def stops_check(folder):
    inputs_make(folder)
    random.seed(int(os.environ.get("SEED", "1")))
    for name, (words, ranks, latest) in jobs_of(folder).items():
        if not (FULL or name in SOME) if ONLY is None else ONLY not in name:
            continue
        stops = 0
        for _ in range(3 * TIMES):
            said, took, code, text = stopped(folder, words, ranks, random.uniform(1, latest))
            if code == 0 or stops == TIMES:
                continue
            told = f"{name}: {took:.1f} s of {said}, exit {code}"
            print(f"# {told}", flush=True)
            ok(code == 75 and said is not None and took <= said, f"{told} {text[-500:]}")
            stops += 1
            if stops == TIMES:
                break
        ok(stops == TIMES, f"{name}: {stops} stops")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("the sanitizers come first among what is preloaded")
    with tempfile.TemporaryDirectory() as folder:
        stops_check(folder)
    done_testing()


main()
