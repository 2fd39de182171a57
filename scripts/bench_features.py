#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure how much variance dictionaries explain, and how well their atoms predict labels.
Fits with different numbers of atoms per row are compared with autoencoders in PyTorch.  All encode
with the same number of atoms per row.

usage: scripts/bench_features.py --rows FILE [options] BUILD > features.jsonl

FILE is HDF5, with /rows and /token.  Its first --fit-rows rows are fitted; the other rows are
unseen.  BUILD is the folder with the program.  Two seeds are fitted for each number of --top-s, and
for each autoencoder.  One line of JSON has the figures of the first seed; pw_mcc and above compare
both seeds:

  explained      explained variance of the unseen rows, with --encode-s atoms per row
  pw_mcc, above  the atoms of both seeds are paired one to one: mean cosine of the pairs, and share
                 of the pairs with a cosine above 0.9
  label          F1 for the tokens of unseen rows, predicted from an atom's code and a threshold
                 (N.33)
  detector       as label, but from the score of an atom's detector, or of the autoencoder's encoder
  seconds        time of the first fit, from file to dictionary

A table of these figures is printed to standard error."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import h5py

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("name", "l0", "explained", "pw_mcc", "above", "label", "detector", "seconds")


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("build", metavar="BUILD")
    add("--rows", required=True, help="FILE.h5 that has /rows and /token")
    add("--fit-rows", type=int, default=24576)
    add("--atoms", type=int, default=1024)
    add("--top-s", default="16,8,4", help="atoms per row of each fit; '': no fit")
    add("--encode-s", type=int, default=16, help="atoms per row of the judged codes")
    add("--sweeps", type=int, default=40)
    add("--detect-l0", type=float, default=0, help="train an encoder with so many atoms per row "
        "as detectors; 0: use the detectors of `sagitta detect`")
    add("--detect-epochs", type=int, default=2, help="epochs of training the detectors")
    add("--peers", default="topk,batchtopk,matryoshka", help="autoencoders (bench_sae.py)")
    add("--epochs", type=int, default=51, help="epochs of the autoencoders; 0: none")
    add("--batch", type=int, default=256, help="rows per step of the autoencoders and detectors")
    add("--lr", type=float, default=0, help="learning rate; 0: 0.128 / sqrt(atoms)")
    add("--device", default="auto", help="device of sagitta")
    add("--torch-device", default="cuda", help="device of the autoencoders")
    return flags.parse_args()


def rows_split(o, folder):
    """Write the fitted rows to fit.h5, and the others to unseen.h5."""
    with h5py.File(o.rows) as f:
        for name, part in (("fit", slice(0, o.fit_rows)), ("unseen", slice(o.fit_rows, None))):
            with h5py.File(f"{folder}/{name}.h5", "w", libver=("earliest", "v110")) as out:
                out["rows"], out["token"] = f["rows"][part], f["token"][part].astype("i4")


def run(o, *words, seconds=None):
    """Run a command, and return the JSON that it prints."""
    begun = time.time()
    done = subprocess.run([os.path.join(o.build, "sagitta"), *map(str, words), "--json", "--quiet"],
                          capture_output=True, text=True, check=False)
    if seconds is not None:
        seconds.append(time.time() - begun)
    if done.returncode:
        sys.exit(f"sagitta {' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout)


def judged(o, folder, dictionary, codes, encoder):
    """Evaluate the unseen rows, and return the figures."""
    page = run(o, "evaluate", "--rows", f"{folder}/unseen.h5", "--dictionary", dictionary,
               "--codes", codes, "--labels", f"{folder}/unseen.h5", "--encoder", encoder)
    one = page["evaluated"][0]
    return {"l0": one["metrics"]["l0"], "explained": one["metrics"]["explained_variance"],
            "label": one["label"]["f1"], "detector": page["encoder"]["label_f1"]}


def shown(o, folder, name, first, other, codes, encoder, seconds):
    pairs = run(o, "compare", first, other)["pairs"]
    line = {"name": name, "atoms": o.atoms, **judged(o, folder, first, codes, encoder),
            "pw_mcc": pairs["pw_mcc"], "above": pairs["above_09"], "seconds": seconds}
    print(json.dumps(line), flush=True)
    return line


def fits(o, folder, top_s):
    seconds, at = [], f"{folder}/fit{top_s}"
    for seed in (0, 1):
        run(o, "fit", "--rows", f"{folder}/fit.h5", "--atoms", o.atoms, "--top-s", top_s,
            "--encode-s", max(o.encode_s, top_s), "--sweeps", o.sweeps, "--seed", seed, "--device",
            o.device, "--output", f"{at}-{seed}", seconds=seconds)
    run(o, "encode", "--rows", f"{folder}/unseen.h5", "--dictionary", f"{at}-0", "--output",
        f"{at}-codes")
    if o.detect_l0:
        run(o, "train", "--rows", f"{folder}/fit.h5", "--fixed-dictionary", f"{at}-0",
            "--selection", "batch", "--l0", o.detect_l0, "--batch", o.batch, "--epochs",
            o.detect_epochs, "--device", o.device, "--output", f"{at}-detectors")
    else:
        run(o, "detect", "--rows", f"{folder}/fit.h5", "--dictionary", f"{at}-0", "--codes",
            f"{at}-0", "--output", f"{at}-detectors")
    return shown(o, folder, f"fit {top_s} @{max(o.encode_s, top_s)}", f"{at}-0", f"{at}-1",
                 f"{at}-codes", f"{at}-detectors", seconds[0])


def autoencoder(o, folder, peer):
    seconds, at = [], f"{folder}/{peer}"
    for seed in (0, 1):
        begun = time.time()
        subprocess.run([sys.executable, f"{HERE}/bench_sae.py", "--rows", o.rows, "--fit-rows",
                        str(o.fit_rows), "--atoms", str(o.atoms), "--top-s", str(o.encode_s),
                        "--peer", peer, "--epochs", str(o.epochs), "--every", str(o.epochs),
                        "--batch", str(o.batch), "--lr", str(o.lr), "--seed", str(seed), "--device",
                        o.torch_device, "--save", f"{at}-{seed}"],
                       check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.time() - begun)
        run(o, "import", f"{at}-{seed}", "--output", f"{at}-{seed}-dictionary")
    run(o, "encode", "--rows", f"{folder}/unseen.h5", "--encoder", f"{at}-0-dictionary", "--output",
        f"{at}-codes")
    return shown(o, folder, f"{peer} {o.encode_s}", f"{at}-0-dictionary", f"{at}-1-dictionary",
                 f"{at}-codes", f"{at}-0-dictionary", seconds[0])


def main():
    o = options_read()
    with tempfile.TemporaryDirectory() as folder:
        rows_split(o, folder)
        lines = [fits(o, folder, int(s)) for s in o.top_s.split(",") if s]
        if o.epochs:
            lines += [autoencoder(o, folder, peer) for peer in o.peers.split(",")]
    print("".join(f"{c:>12}" for c in COLUMNS), file=sys.stderr)
    for line in lines:
        print("".join(f"{v:>12.4f}" if isinstance(v, float) else f"{v:>12}"
                      for v in (line[c] for c in COLUMNS)), file=sys.stderr)


if __name__ == "__main__":
    main()
