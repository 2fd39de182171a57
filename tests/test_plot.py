# SPDX-License-Identifier: BSD-3-Clause
"""Claim: scripts/plot draws what a run's folder holds, one PNG each with its curve in it, and says
what is missing."""
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from tap import SOURCE, done_testing, ok, sagitta, skip_all
from terminal_data import scaled_problem

# The colour that the data have: the first of the cycle, or a correlation of 1.
BLUE, ONE = (0.122, 0.467, 0.706), (0.02, 0.188, 0.38)
COLORS = {"spectrum": BLUE, "covariance": ONE, "explained_variance": BLUE, "densities": BLUE}
SPREAD = 0.4  # of the picture's width or height; a sample in a legend has less than 0.1


def plot(*words):
    return subprocess.run([sys.executable, f"{SOURCE}/scripts/plot", *words], capture_output=True,
                          text=True)


def spread(path, color):
    """How far pixels of this colour reach, as a part of the picture's width or height."""
    from matplotlib import image
    pixels = image.imread(path)[:, :, :3]
    places = np.argwhere(abs(pixels - color).max(axis=2) < 0.02)
    return (np.ptp(places, axis=0) / pixels.shape[:2]).max() if len(places) else 0


def blank(path):
    """A picture as those of scripts/plot, with axes and a legend, but without data."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 5.2), constrained_layout=True)
    axes.plot([], [], "o-", label="fitted rows")
    axes.set(xlabel="sweep", ylabel="explained variance", title="Explained variance a sweep")
    axes.legend()
    figure.savefig(path, dpi=140)
    return path


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
        for name, color in COLORS.items():
            path = f"{folder}/png/{name}.png"
            reach = spread(path, color) if os.path.exists(path) else -1
            ok(reach > SPREAD, f"{name}.png has its data, {reach:.2f} of the picture wide or high")
        reach = max(spread(blank(f"{folder}/blank.png"), color) for color in COLORS.values())
        ok(reach < SPREAD, f"a picture without data would not pass, {reach:.2f}")
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
