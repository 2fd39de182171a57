# SPDX-License-Identifier: BSD-3-Clause
"""Claim: scripts/plot draws what a run's folder holds, one PNG each, and says what is missing."""
import os
import subprocess
import tempfile

import h5py
import numpy as np

from tap import SOURCE, done_testing, ok, sagitta, skip_all
from terminal_data import scaled_problem

PNG = b"\x89PNG\r\n\x1a\n"
NAMES = ("spectrum", "covariance", "explained_variance", "densities")


def plot(*words):
    return subprocess.run([f"{SOURCE}/scripts/plot", *words], capture_output=True, text=True)


def main():
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        skip_all("matplotlib is not installed")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/in")
        inputs = scaled_problem(f"{folder}/in", 1, 500, np.ones(12))
        run = f"{folder}/run"
        done = sagitta("encode", *inputs[:4], "--top-s", 3, "--output", f"{folder}/start")
        done = sagitta("refit", *inputs[:4], "--supports", f"{folder}/start/supports.h5",
                       "--sweeps", 2, "--output", run)
        ok(done.returncode == 0, f"refit {done.stderr[-200:] if done.returncode else ''}")
        sagitta("terminal", *inputs[:2], "--dictionary", f"{run}/dictionary.h5", "--supports",
                f"{run}/supports.h5", "--output", run)
        done = plot(run, f"{folder}/png")
        ok(done.returncode == 0, f"plot {done.stderr[-300:]}")
        for name in NAMES:
            path = f"{folder}/png/{name}.png"
            good = os.path.exists(path) and os.path.getsize(path) > 5000
            ok(good and open(path, "rb").read(8) == PNG, f"{name}.png")
        for size in (None, 3000):  # shapes that overflow, a file that ends early
            with open(f"{run}/terminal.h5", "r+b") as f:
                f.truncate(size or os.path.getsize(f.name))
            if size is None:
                with h5py.File(f"{run}/terminal.h5", "r+") as f:
                    del f["terminal/border"], f["run/terminal/spectrum"]
                    f.create_dataset("terminal/border", (3,), "i8")
                    f.create_dataset("run/terminal/spectrum", (2 ** 31, 2 ** 31), "f8",
                                     chunks=(1, 1))
            done = plot(run, f"{folder}/bad")
            ok(done.returncode == 1 and "Traceback" not in done.stderr and
               done.stderr.count("damaged or not a result") == 2 and
               "spectrum.png" not in os.listdir(f"{folder}/bad"), "a bad terminal.h5 is said")
        done = plot(f"{folder}/in", f"{folder}/less")
        ok(done.returncode == 1 and "no spectrum.png" in done.stdout, "what is missing is said")
        ok(plot().returncode == 2, "without a folder: exit 2")
    done_testing()


main()
