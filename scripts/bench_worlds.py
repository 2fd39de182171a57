#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure what fits and autoencoders find in data with known features, for several numbers of codes
per row.

usage: scripts/bench_worlds.py [options] BUILD > worlds.jsonl

Data with known features are generated (`synth --kind world`): rows to fit, and unseen rows.  For
each method and each number of codes per row a line of JSON has these figures of the unseen rows:

  l0          codes per row
  f1          F1 of "the atom fires" against "its feature fires", mean of all atoms
  mcc         atoms and features are paired one to one: mean absolute cosine of the pairs
  uniqueness  number of features that are nearest to some atom, divided by the number of atoms
  explained   explained variance
  seconds     time of the fit, from file to dictionary

Methods: codes, stable and features are `fit --find ...`; stable fits with a quarter of the codes
per row.  topk, batch and nested are `train`.  topk has a fixed number of codes in each row; batch
has a fixed average; nested has a fixed average and nested widths (Matryoshka).
--picture draws F1 and explained variance against l0; it needs matplotlib."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

METHODS = ("codes", "stable", "features", "topk", "batch", "nested")


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("build", metavar="BUILD")
    add("--features", type=int, default=512, help="features of the world")
    add("--columns", type=int, default=64)
    add("--trees", type=int, default=0, help="trees, as in `synth --trees`; -1: none")
    add("--fit-rows", type=int, default=262144)
    add("--unseen-rows", type=int, default=16384)
    add("--atoms", type=int, default=128)
    add("--l0", default="1,2,3,4,5",
        help="codes per row; methods with a fixed number of codes round it")
    add("--methods", default=",".join(METHODS))
    add("--epochs", type=int, default=10, help="epochs of the autoencoders")
    add("--batch", type=int, default=1024, help="rows per step of the autoencoders")
    add("--lr", type=float, default=0.004, help="learning rate of the autoencoders")
    add("--sweeps", type=int, default=12, help="sweeps of fit --find codes")
    add("--device", default="auto")
    add("--picture", help="picture to write: FILE.png or FILE.svg")
    return flags.parse_args()


def run(o, *words):
    """Run a command, and return the JSON that it prints."""
    done = subprocess.run([os.path.join(o.build, "sagitta"), *map(str, words), "--json", "--quiet"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"sagitta {' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout)


def world_make(o, folder):
    for name, first, rows in (("fit", 0, o.fit_rows), ("unseen", o.fit_rows, o.unseen_rows)):
        run(o, "synth", "--kind", "world", "--atoms", o.features, "--columns", o.columns, "--trees",
            o.trees, "--first-row", first, "--n-rows", rows, "--output", f"{folder}/{name}")


def words_of(o, method, l0):
    """The words of the command that makes a dictionary."""
    whole = max(1, round(l0))
    if method in ("codes", "stable"):
        fitted = whole if method == "codes" else max(1, whole // 4)
        return ("fit", "--find", method, "--top-s", fitted, "--encode-s", whole, "--sweeps",
                o.sweeps)
    if method == "features":
        return "fit", "--find", "features", "--l0", l0
    words = ["train", "--batch", o.batch, "--epochs", o.epochs, "--lr", o.lr]
    words += ["--top-s", whole] if method == "topk" else ["--selection", "batch", "--l0", l0]
    if method == "nested":
        words += ["--nested", ",".join(str(o.atoms >> i) for i in (3, 2, 1, 0))]
    return words


def judged(o, folder, method, l0):
    at, begun = f"{folder}/{method}-{l0}", time.time()
    run(o, *words_of(o, method, l0), "--rows", f"{folder}/fit/rows.h5", "--atoms", o.atoms,
        "--device", o.device, "--output", at)
    seconds, unseen = time.time() - begun, f"{folder}/unseen/rows.h5"
    by = "--dictionary" if method in ("codes", "stable") else "--encoder"
    run(o, "encode", "--rows", unseen, by, at, "--output", f"{at}-codes")
    page = run(o, "evaluate", "--rows", unseen, "--dictionary", at, "--codes", f"{at}-codes",
               "--truth", f"{folder}/unseen")["evaluated"][0]
    line = {"method": method, "l0": page["metrics"]["l0"],
            **{name: page["truth"][name] for name in ("f1", "mcc", "uniqueness")},
            "explained": page["metrics"]["explained_variance"], "seconds": round(seconds, 1)}
    print(json.dumps(line), flush=True)
    return line


def picture(o, lines):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharex=True)
    for axis, name, title in zip(axes, ("f1", "explained"), ("F1", "explained variance")):
        for method in dict.fromkeys(line["method"] for line in lines):
            own = [line for line in lines if line["method"] == method]
            axis.plot([line["l0"] for line in own], [line[name] for line in own], ".-",
                      label=method)
        axis.set_xlabel("codes per row (L0)")
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(o.picture, dpi=110)


def main():
    o = options_read()
    with tempfile.TemporaryDirectory() as folder:
        world_make(o, folder)
        lines = [judged(o, folder, method, float(l0)) for method in o.methods.split(",")
                 for l0 in o.l0.split(",")]
    if o.picture:
        picture(o, lines)


if __name__ == "__main__":
    main()
