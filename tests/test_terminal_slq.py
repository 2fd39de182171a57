# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the estimate of log|S| without S is within four of its standard errors on five problems
with condition numbers up to 1e4, with CHECK_FULL=1 on 20.  It is the same on any number of ranks
and with any workspace.  It says if it has too few steps, or if S is not positive definite."""
import os
import re
import tempfile

import h5py
import numpy as np

from tap import FULL, SOURCE, claim, done_testing, ok, sagitta
from terminal_data import scaled_problem

ERRORS = 4
CONDITION = 1e4


def made(folder, seed, n, k, decades):
    return scaled_problem(folder, seed, n, 10.0 ** (-decades * np.arange(k) / (k - 1)))


def terminal(*words, ranks=0):
    threads = [] if "--threads" in words else ["--threads", 1]
    return sagitta("terminal", *words, *threads, "--force", ranks=ranks)


def slq(folder):
    with h5py.File(f"{folder}/terminal.h5") as f:
        assert np.isnan(f["terminal"].attrs["log_det_border"])
        return dict(f["run/terminal/slq"].attrs)


@claim("the estimate is within four standard errors of the exact value")
def problems_check(folder):
    apart, condition, steps = [], 0, []
    for seed in range(20) if FULL else range(3, 20, 4):
        inputs = made(folder, seed, 500, 60, 1 + 0.03 * seed)
        exact = terminal(*inputs, "--cross", 0, "--output", f"{folder}/exact")
        done = terminal(*inputs, "--evidence", "slq", "--output", f"{folder}/slq")
        if exact.returncode or done.returncode:
            ok(0, f"seed {seed}: {exact.stderr[-200:]} {done.stderr[-200:]}")
            return inputs
        with h5py.File(f"{folder}/exact/terminal.h5") as f:
            wanted = f["terminal"].attrs["log_det_border"]
            condition = max(condition, f["run/terminal"].attrs["condition"])
            borders = f["terminal"].attrs["n_border"]
        got = slq(f"{folder}/slq")
        apart.append((got["log_det_border"] - wanted) / got["standard_error"])
        steps.append(got["steps"])
        if not got["converged"]:
            ok(0, f"seed {seed}: {got}")
    ok(1000 < condition <= CONDITION and max(steps) < borders,
       f"borders of {borders}, condition up to {condition:.3g}, {min(steps)} to {max(steps)} steps")
    size, mean, spread = len(apart), np.mean(apart), np.sqrt(np.mean(np.square(apart)))
    ok(np.abs(apart).max() <= ERRORS,
       f"{size} estimates are within {np.abs(apart).max():.3g} standard errors")
    ok(abs(mean) * size ** 0.5 <= ERRORS and 0.3 < spread < 2,
       f"estimates are {mean:.2g} standard errors off on average, {spread:.2g} root mean square")
    return inputs


@claim("any ranks, threads, instruction sets and workspace give the same estimate")
def ways_check(inputs, folder):
    wanted = slq(f"{folder}/slq")
    for ranks, way in ((2, []), (4, ["--threads", 2]), (0, ["--cpu-variant", "avx2"])):
        done = terminal(*inputs, "--evidence", "slq", *way, "--output", f"{folder}/way",
                        ranks=ranks)
        ok(done.returncode == 0 and slq(f"{folder}/way") == wanted,
           f"the same with {ranks} ranks {' '.join(map(str, way))}")
    inputs = made(folder, 3, 3000, 24, 1)
    reads = []
    for name, way in (("kept", []), ("streamed", ["--workspace", 12])):
        done = terminal(*inputs, "--evidence", "slq", *way, "--output", f"{folder}/{name}")
        reads.append(int(re.search(r"\] read +(\d+)", done.stderr)[1]))
    ok(slq(f"{folder}/kept") == slq(f"{folder}/streamed") and reads[1] > 10 * reads[0],
       f"rows read once or in every pass, {reads[0]} and {reads[1]} times")
    done = terminal(*inputs, "--evidence", "slq", "--workspace", 6, "--output", f"{folder}/no")
    ok(done.returncode == 2 and "--workspace" in done.stderr, f"too little: {done.stderr[-90:]}")


@claim("too few steps, and an S that is not positive definite, are reported")
def ends_check(folder):
    inputs = made(folder, 1, 1200, 140, 5)
    way = ["--evidence", "slq", "--strict", "--threads", 2, "--output", f"{folder}/long"]
    ends = ((["--workspace", 24], 128, "no more steps"), ([], 512, "still moves"))
    for more, steps, text in ends[:1] if os.environ.get("SANITIZED") else ends:
        done = terminal(*inputs, *way, *more)
        got = slq(f"{folder}/long")
        ok(done.returncode == 1 and text in done.stderr and got["steps"] == steps
           and not got["converged"], f"steps that ran out are said: {got}")
    real = f"{SOURCE}/input/minilm-l3-kjv-8k.h5"
    sagitta("seed", "--rows", real, "--atoms", 48, "--center", "--output", f"{folder}/d")
    dictionary = f"{folder}/d/dictionary.h5"
    sagitta("encode", "--rows", real, "--dictionary", dictionary, "--top-s", 4, "--output",
            f"{folder}/e")
    done = terminal("--rows", real, "--dictionary", dictionary, "--supports",
                    f"{folder}/e/supports.h5", "--evidence", "slq", "--output", f"{folder}/bad")
    got = slq(f"{folder}/bad")
    ok(done.returncode == 0 and "not positive" in done.stderr and got["failed_probe"] >= 0
       and np.isnan(got["log_det_border"]), "a message says that S is not positive definite")


def main():
    with tempfile.TemporaryDirectory() as folder:
        inputs = problems_check(folder)
        ways_check(inputs, folder)
        ends_check(folder)
    done_testing()


main()
