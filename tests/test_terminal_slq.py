# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the estimate of log|S| without S is within four of its standard errors on 20 problems of a
condition up to 1e4, the same on any number of ranks and with any workspace, and says so when its
steps ran out or S is not positive definite."""
import re
import tempfile

import h5py
import numpy as np

from tap import SOURCE, done_testing, ok, sagitta
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


def problems_check(folder):
    worst = condition = 0
    for seed in range(20):
        inputs = made(folder, seed, 400, 24, 1.7)
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
        worst = max(worst, abs(got["log_det_border"] - wanted) / got["standard_error"])
    ok(100 < condition <= CONDITION, f"borders of {borders}, condition up to {condition:.3g}")
    ok(worst <= ERRORS, f"20 estimates are within {worst:.3g} standard errors")
    return inputs


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


def ends_check(folder):
    inputs = made(folder, 1, 1200, 140, 5)
    done = terminal(*inputs, "--evidence", "slq", "--strict", "--output", f"{folder}/long")
    got = slq(f"{folder}/long")
    ok(done.returncode == 1 and "still moves" in done.stderr and got["steps"] == 512
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
       and np.isnan(got["log_det_border"]), "S that is not positive definite is said")


def main():
    with tempfile.TemporaryDirectory() as folder:
        inputs = problems_check(folder)
        ways_check(inputs, folder)
        ends_check(folder)
    done_testing()


main()
