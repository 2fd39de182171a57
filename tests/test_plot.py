# SPDX-License-Identifier: BSD-3-Clause
"""Claim: scripts/plot draws the results in the folder of a run, one PNG for each, which shows its
data.  It prints what is missing.  plot_time and plot_live draw their inputs."""
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from tap import SOURCE, bench, done_testing, ok, peer_missing_all, sagitta
from terminal_data import scaled_problem

# The colour of the data: the first one of the cycle, or that of a correlation of 1.
BLUE, ONE = (0.122, 0.467, 0.706), (0.02, 0.188, 0.38)
ORANGE = (1.0, 0.498, 0.055)
COLORS = {"spectrum": BLUE, "covariance": ONE, "explained_variance": BLUE, "densities": BLUE}
SPREAD = 0.4  # share of the picture's width or height; a sample in a legend has less than 0.1


def plot(*words):
    return subprocess.run([sys.executable, f"{SOURCE}/scripts/plot", *words], capture_output=True,
                          text=True)


def spread(path, color):
    """The distance that pixels of this colour span, as a share of the picture's width or height."""
    from matplotlib import image
    pixels = image.imread(path)[:, :, :3]
    places = np.argwhere(abs(pixels - color).max(axis=2) < 0.02)
    return (np.ptp(places, axis=0) / pixels.shape[:2]).max() if len(places) else 0


def blank(path):
    """A picture like those of scripts/plot, with axes and a legend, but without data."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 5.2), constrained_layout=True)
    axes.plot([], [], "o-", label="fitted rows")
    axes.set(xlabel="sweep", ylabel="explained variance", title="Explained variance per sweep")
    axes.legend()
    figure.savefig(path, dpi=140)
    return path


def check_fit(folder, inputs):
    """For a fit there are two curves over its sweeps, and one over its seconds.  A sweep that only
    state.h5 has is drawn too."""
    run = f"{folder}/fit"
    words = ["fit", *inputs[:2], "--atoms", 16, "--top-s", 2, "--tolerance", 0, "--output", run]
    sagitta(*words, "--sweeps", 4)
    done = plot(run, f"{folder}/fitted")
    for color, name in ((BLUE, "fitted"), (ORANGE, "held-out")):
        reach = spread(f"{folder}/fitted/explained_variance.png", color)
        ok(done.returncode == 0 and reach > SPREAD,
           f"the curve of {name} rows of a fit is {reach:.2f} wide")
    os.rename(f"{run}/dictionary.h5", f"{run}/state.h5")
    sagitta(*words[:-1], f"{folder}/short", "--sweeps", 0)
    os.rename(f"{folder}/short/dictionary.h5", f"{run}/dictionary.h5")
    done = plot(run, f"{folder}/longer")
    reach = spread(f"{folder}/longer/explained_variance.png", ORANGE)
    ok(done.returncode == 0 and reach > SPREAD,
       f"sweeps that only state.h5 has are drawn, {reach:.2f} wide")
    lines = [dict(setup=dict(atoms=3))]
    lines += [dict(name="peer", seconds=i + 0.01, unseen=0.2 * i, fitted=0.3 * i) for i in range(4)]
    with open(f"{folder}/peers.jsonl", "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    draw = [sys.executable, f"{SOURCE}/scripts/plot_time"]
    for end in "png", "svg":
        done = subprocess.run([*draw, f"{folder}/time.{end}", f"ours={run}/run.json",
                               f"{folder}/peers.jsonl"], capture_output=True, text=True)
        ok(done.returncode == 0 and os.path.getsize(f"{folder}/time.{end}") > 5000,
           f"plot_time writes time.{end} {done.stderr[-300:]}")
    reach = [spread(f"{folder}/time.png", color) for color in (BLUE, ORANGE)]
    ok(min(reach) > SPREAD / 4, f"plot_time draws both curves over seconds, {reach} wide")
    done = subprocess.run([*draw, f"{folder}/time.png", f"{run}/used.in"], capture_output=True,
                          text=True)
    ok(done.returncode == 1 and "Traceback" not in done.stderr, "plot_time refuses a file that is "
                                                                "no run")


def check_train(folder, inputs):
    """For a training there are two curves over its steps, also from state.h5, and one over its
    seconds."""
    run = f"{folder}/sae"
    sagitta("train", *inputs[:2], "--atoms", 16, "--top-s", 2, "--batch", 64, "--epochs", 6,
            "--output", run)
    for turn in "dictionary.h5", "state.h5":
        os.rename(f"{run}/dictionary.h5", f"{run}/{turn}")
        done = plot(run, f"{folder}/{turn}-png")
        picture = f"{folder}/{turn}-png/explained_variance.png"
        reach = [spread(picture, color) if os.path.exists(picture) else -1
                 for color in (BLUE, ORANGE)]
        ok(done.returncode == 0 and min(reach) > SPREAD,
           f"the curves of {turn} of a training are {reach} wide")
    done = subprocess.run([sys.executable, f"{SOURCE}/scripts/plot_time", f"{folder}/train.png",
                           f"{run}/run.json"], capture_output=True, text=True)
    reach = spread(f"{folder}/train.png", BLUE) if not done.returncode else -1
    ok(reach > SPREAD / 4, f"a training over seconds is {reach} wide {done.stderr[-300:]}")


def bars(path, color):
    """The lengths in pixels of the bars of this colour, from the top."""
    from matplotlib import image
    is_bar = abs(image.imread(path)[:, :, :3] - color).max(axis=2) < 0.02
    lengths = np.concatenate([[0], is_bar.sum(axis=1), [0]])
    ends = np.flatnonzero(np.diff((lengths > 0).astype(int)))
    return [int(np.median(lengths[first + 1:last + 1])) for first, last in zip(*[iter(ends)] * 2)]


def check_live(folder):
    """Bars are as long as the figures of a run, markers are drawn, and a real run can be drawn."""
    draw = [sys.executable, f"{SOURCE}/scripts/plot_live"]
    rows = dict(alone=None, off=4000, static=1000, dynamic=3000, unwatched=2000, encode=500)
    waits = dict(alone=1, off=100, static=10, dynamic=20)
    said = dict(format="sagitta facts", format_version=1, benchmark="serve", device="cpu", rows=64,
                columns=8, atoms=16, top_s=2, streams=3, rate=5, lines=[
                    dict(name=name, backlog_rows_per_second=rows[name],
                         **{f"{key}_ms": waits[name] * factor if name in waits else None
                            for key, factor in (("p50", 1), ("p99", 2), ("max", 3))})
                    for name in sorted(rows)])
    def saved(name, **other):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
            json.dump({**said, **other}, f)
        return f"{folder}/{name}"
    done = subprocess.run([*draw, f"{folder}/live.png", f"a machine={saved('live.json')}"],
                          capture_output=True, text=True)
    drawn = bars(f"{folder}/live.png", ORANGE) if not done.returncode else []
    wanted = [n for n in rows.values() if n]
    ok(len(drawn) == len(wanted) and np.allclose(np.divide(drawn, max(drawn)), np.divide(
        wanted, max(wanted)), atol=0.02),
       f"bars {drawn} are in the ratios of {wanted} {done.stderr[-300:]}")
    reach = spread(f"{folder}/live.png", BLUE)
    ok(reach > SPREAD * 0.7, f"markers of 1 to 300 ms are {reach:.2f} wide")
    for name, other, words in (("new.json", dict(format_version=2), "format version 2"),
                               ("route.json", dict(benchmark="route"), "is not of"),
                               ("short.json", dict(lines=[]), "KeyError")):
        done = subprocess.run([*draw, f"{folder}/x.png", saved(name, **other)],
                              capture_output=True, text=True)
        ok(done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr and
           not os.path.exists(f"{folder}/x.png"), f"plot_live refuses {name}: {done.stderr[-300:]}")
    run = bench("serve", "--json", "--n-rows", 64, "--atoms", 64, "--columns", 8, "--top-s", 2,
                "--streams", 2, "--seconds", 0.2)
    if run.returncode == 69:
        return
    with open(f"{folder}/run.json", "w", encoding="utf-8") as f:
        f.write(run.stdout)
    done = subprocess.run([*draw, f"{folder}/run.svg", f"{folder}/run.json",
                           f"{folder}/live.json"], capture_output=True, text=True)
    ok(done.returncode == 0 and os.path.getsize(f"{folder}/run.svg") > 5000,
       f"a run of sagitta-bench serve is drawn, exit {run.returncode} {done.stderr[-300:]}")


def main():
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        peer_missing_all("matplotlib is not installed")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/in")
        inputs = scaled_problem(f"{folder}/in", 1, 500, np.ones(12))
        run = f"{folder}/run"
        done = sagitta("encode", *inputs[:4], "--top-s", 3, "--output", f"{folder}/start")
        done = sagitta("refit", *inputs[:4], "--supports", f"{folder}/start/supports.h5",
                       "--sweeps", 2, "--output", run)
        ok(done.returncode == 0, f"refit ends well {done.stderr[-200:] if done.returncode else ''}")
        sagitta("terminal", *inputs[:2], "--dictionary", f"{run}/dictionary.h5", "--supports",
                f"{run}/supports.h5", "--output", run)
        done = plot(run, f"{folder}/png")
        ok(done.returncode == 0, f"plot of a refit ends well {done.stderr[-300:]}")
        for name, color in COLORS.items():
            path = f"{folder}/png/{name}.png"
            reach = spread(path, color) if os.path.exists(path) else -1
            ok(reach > SPREAD, f"the data of {name}.png take {reach:.2f} of its width or height")
        reach = max(spread(blank(f"{folder}/blank.png"), color) for color in COLORS.values())
        ok(reach < SPREAD, f"a picture without data fails this check, with {reach:.2f}")
        for size in (None, 3000):  # shapes that overflow; a file that is cut
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
               "spectrum.png" not in os.listdir(f"{folder}/bad"), "plot names a damaged "
                                                                  "terminal.h5, and draws no "
                                                                  "spectrum")
        check_fit(folder, inputs)
        check_train(folder, inputs)
        check_live(folder)
        done = plot(f"{folder}/in", f"{folder}/less")
        ok(done.returncode == 1 and "no spectrum.png" in done.stdout, "plot says which pictures it "
                                                                      "cannot draw")
        ok(plot().returncode == 2, "without a folder plot exits with 2")
    done_testing()


main()
