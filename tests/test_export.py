# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta export` writes every bit of what was imported.  What it says about the explained
variance of other programs, on rows that no fit saw, is what these programs compute.  An export that
would explain little is refused."""
import json
import os
import re
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE, raw, tensors
from tap import SOURCE, claim, done_testing, ok, peer_missing, sagitta

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
DIGITS = 1e-6  # rounding of figures in the log
HAS = "import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"


def need(done, what):
    return ok(done.returncode == 0, f"{what}: {done.stderr[-500:]}")


def variance(rows, made):
    rows, made = rows.astype("f8"), made.astype("f8")
    return 1 - ((rows - made)**2).sum() / ((rows - rows.mean(0))**2).sum()


def judged(done):
    """The explained variance of Sagitta, and of the other program, from the log."""
    found = re.search(r"judged .* sagitta=(\S+) \w+=(\S+)", done.stderr)
    return (float(found[1]), float(found[2])) if found else (None, None)


@claim("an imported autoencoder is exported with its bytes; the log has the variance of its "
       "package")
def check_back(at):
    for name in FOLDERS:
        program = name.split("_")[0]
        need(sagitta("import", f"{MADE}/{name}", "--output", f"{at}/{name}"), name)
        if program == "learning":
            continue
        made = tensors(f"{MADE}/{name}/expected.safetensors")
        np.save(f"{at}/{name}.npy", made["rows"])
        out = f"{at}/{name}/out"
        done = sagitta("export", f"{at}/{name}", "--to", program, "--rows", f"{at}/{name}.npy",
                       "--output", out)
        need(done, f"{name} goes back")
        for file in os.listdir(f"{MADE}/{name}"):
            if not file.startswith("expected"):
                pair = [open(f"{d}/{file}", "rb").read() for d in (out, f"{MADE}/{name}")]
                ok(pair[0] == pair[1], f"{name}: {file} has its bytes")
        error = abs(judged(done)[1] - variance(made["rows"], made["recon"]))
        ok(error < (0.01 if "f16" in name else 2e-6), f"{name}: variance is off by {error}")


@claim("autoencoders are converted to SAELens without a changed bit, and to sparsify if it has "
       "such encoders")
def check_across(at):
    for name in FOLDERS:
        if not name.startswith("learning"):
            continue
        out = f"{at}/{name}/saelens"
        need(sagitta("export", f"{at}/{name}", "--to", "saelens", "--output", out), name)
        done = sagitta("import", out, "--output", f"{at}/{name}/again.h5")
        need(done, f"{name} again")
        with h5py.File(f"{at}/{name}/dictionary.h5") as a, h5py.File(f"{at}/{name}/again.h5") as b:
            for key in ("atoms", "mean", "encoder/weights", "encoder/bias", "encoder/threshold"):
                same = (key in a) == (key in b) and (key not in a or
                                                     a[key][:].tobytes() == b[key][:].tobytes())
                ok(same, f"{name}: {key}")
            same = [f["encoder"].attrs["centered"] for f in (a, b)]
            ok(same[0] == same[1], f"{name}: centered")
    done = sagitta("export", f"{at}/learning_topk", "--to", "sparsify", "--output", f"{at}/s")
    need(done, "topk to sparsify")
    done = sagitta("export", f"{at}/learning_relu", "--to", "sparsify", "--output", f"{at}/t")
    ok(done.returncode == 65 and "use '--to saelens'" in done.stderr, f"relu: {done.stderr}")


def mean_of(at):
    with h5py.File(f"{at}/seed/dictionary.h5") as f:
        return f["mean"][:]


def check_means(at, mean):
    """A mean of another type, and one that is not finite."""
    with open(f"{at}/seed/st/dictionary.safetensors", "rb") as f:
        text = f.read()
    for old, new, words in ((b'mean":{"dtype":"F64"', b'mean":{"dtype":"I64"', "vector of 384 F64"),
                            (mean[5].tobytes(), b"\xff" * 8, "column 5 of the mean")):
        with open(f"{at}/bad.safetensors", "wb") as f:
            f.write(text.replace(old, new))
        done = sagitta("encode", "--rows", ROWS, "--dictionary", f"{at}/bad.safetensors",
                       "--output", f"{at}/bad.h5")
        ok(done.returncode == 65 and words in done.stderr, f"{words}: {done.stderr[-300:]}")


@claim("safetensors and .npy have the bits of the dictionary, and are read like it")
def check_plain(at):
    need(sagitta("seed", "--rows", ROWS, "--atoms", 40, "--center", "--output", f"{at}/seed"),
         "seed")
    frames = sagitta("seed", "--rows", ROWS, "--atoms", 9, "--frame", 2, "--output", f"{at}/frames")
    need(frames, "frames")
    for name in ("seed", "frames"):
        need(sagitta("export", f"{at}/{name}", "--output", f"{at}/{name}/st"), "safetensors")
        need(sagitta("export", f"{at}/{name}/dictionary.h5", "--to", "npy", "--output",
                     f"{at}/{name}/np"), "npy")
        with h5py.File(f"{at}/{name}/dictionary.h5") as f:
            atoms = f["atoms"][:]
            mean = f["mean"][:] if "mean" in f else None
        kept = raw(f"{at}/{name}/st/dictionary.safetensors")
        ok(kept["atoms"][1].tobytes() == atoms.tobytes() and
           kept["atoms"][1].shape == atoms.shape, f"{name}: safetensors")
        ok(np.load(f"{at}/{name}/np/atoms.npy").tobytes() == atoms.tobytes(), f"{name}: npy")
        if mean is None:
            ok(not os.path.exists(f"{at}/{name}/np/mean.npy") and "mean" not in kept,
               "an export without a mean has none")
        else:
            ok(np.load(f"{at}/{name}/np/mean.npy").tobytes() == mean.tobytes() ==
               kept["mean"][1].tobytes(), "the mean in float64")
        hashes = []
        for source in ("dictionary.h5", "st/dictionary.safetensors", "np/atoms.npy"):
            out = f"{at}/{name}.codes.h5"
            need(sagitta("encode", "--rows", ROWS, "--row-range", "0:4096", "--dictionary",
                         f"{at}/{name}/{source}", "--top-s", 2, "--output", out, "--force"), source)
            with h5py.File(out) as f:
                hashes.append(f["inputs"].attrs["dictionary_hash"])
            if source == "dictionary.h5":
                os.rename(out, f"{at}/{name}.own.h5")
            elif mean is None or not source.endswith(".npy"):  # a .npy has no mean
                done = sagitta("diff", f"{at}/{name}.own.h5", out)
                ok(done.returncode == 0, f"{name}: codes by {source}: {done.stdout[-300:]}")
        ok(len(set(hashes)) == 1, f"{name}: hashes {hashes}")
    check_means(at, mean_of(at))
    done = sagitta("export", f"{at}/frames", "--to", "saelens", "--output", f"{at}/x")
    ok(done.returncode == 65 and "frames of 2 vectors" in done.stderr, f"frames: {done.stderr}")


def encoded(at, rows):
    """The explained variance of rows, from the result of encode."""
    done = sagitta("encode", "--rows", f"{at}/{rows}.npy", "--dictionary", f"{at}/fit", "--output",
                   f"{at}/{rows}-codes", "--force")
    need(done, f"encode {rows}")
    with h5py.File(f"{at}/{rows}-codes/supports.h5") as f:
        return f["metrics"].attrs["explained_variance"]


@claim("an export that would explain little is refused, and errors say what to do")
def check_refusals(at):
    cut, end = (1024, 1536) if os.environ.get("SANITIZED") else (6144, 8192)
    with h5py.File(ROWS) as f:
        np.save(f"{at}/fitted.npy", f["rows"][:cut])
        np.save(f"{at}/unseen.npy", f["rows"][cut:end])
    fit = sagitta("fit", "--find", "codes", "--rows", f"{at}/fitted.npy", "--atoms", 256, "--top-s",
                  16, "--sweeps", 2, "--output", f"{at}/fit")
    need(fit, "fit")
    rows = ("--rows", f"{at}/unseen.npy")
    done = sagitta("export", f"{at}/fit", "--to", "sparsify", *rows, "--output", f"{at}/p")
    own, other = judged(done)
    seen, unseen = encoded(at, "fitted"), encoded(at, "unseen")
    ok(abs(own - unseen) < DIGITS and unseen < seen - 0.02,
       f"judged by unseen rows: {own} is {unseen}, of fitted rows it would be {seen}")
    ok(done.returncode == 65 and "--force" in done.stderr and other < own - 0.5,
       f"tied: {done.stderr}")
    ok(not os.path.exists(f"{at}/p/sae.safetensors"), "nothing is written")
    done = sagitta("export", f"{at}/fit", "--to", "sparsify", *rows, "--output", f"{at}/p",
                   "--force")
    ok(done.returncode == 0 and "explain little" in done.stderr, f"forced: {done.stderr}")
    for form in ("saelens", "sparsify"):
        done = sagitta("export", f"{at}/fit", "--to", form, "--output", f"{at}/q")
        ok(done.returncode == 65 and "give rows with '--rows'" in done.stderr, f"{form}: no rows")
    done = sagitta("export", f"{at}/fit", "--to", "saelens", *rows, "--output", f"{at}/mp")
    own, other = judged(done)
    ok(done.returncode == 0 and own - 0.1 < other < own, f"pursuit: {own} {other}")
    config = json.load(open(f"{at}/mp/cfg.json"))
    ok(config["architecture"] == "matching_pursuit" and config["max_iterations"] == 16, str(config))
    done = sagitta("export", f"{at}/mp/used.in", "--output", f"{at}/mp2", "--threads", 2)
    need(done, "used.in")
    same = [open(f"{at}/{d}/sae_weights.safetensors", "rb").read() for d in ("mp", "mp2")]
    ok(same[0] == same[1] and judged(done) == (own, other), "used.in repeats it")
    done = sagitta("export", f"{at}/fit", "--to", "saelens", *rows, "--output", f"{at}/mp")
    ok(done.returncode == 73 and "--force" in done.stderr,
       f"an existing result is refused: {done.stderr}")
    need(sagitta("seed", "--rows", ROWS, "--atoms", 8, "--output", f"{at}/bare"), "seed")
    for words, code, said in (
            ((f"{at}/bare", "--to", "saelens"), 2, "'--top-s' is missing"),
            ((f"{at}/fit", "--to", "saelens", "--rows", f"{at}/fit/dictionary.h5:/fit/history"), 65,
             "has 8 columns, the atoms"),
            ((), 2, "the dictionary is missing"),
            ((f"{at}/none.h5",), 74, "cannot open")):
        done = sagitta("export", *words, "--output", f"{at}/y")
        ok(done.returncode == code and said in done.stderr, f"{words}: {done.stderr}")
    done = sagitta("export", f"{at}/fit", "--output", f"{at}/y.h5")
    ok(done.returncode == 2 and "has to be a folder" in done.stderr, f"a file: {done.stderr}")
    return own, other


@claim("--stable writes the atoms that another fit found again, and says which")
def check_stable(at):
    fit, other = f"{at}/fit", f"{at}/fit-1"
    need(sagitta("fit", "--find", "codes", "--rows", f"{at}/fitted.npy", "--atoms", 256, "--top-s",
                 16, "--sweeps", 2, "--seed", 1, "--output", other), "another seed")
    for a, b, out in (fit, other, "compared"), (other, fit, "turned"):
        need(sagitta("compare", a, b, "--output", f"{at}/{out}"), out)
    with h5py.File(f"{at}/compared/comparison.h5") as f:
        cosine = f["pairs/cosine"][:].astype("f8")
    least = float(np.sort(cosine)[-40])  # with this threshold, 40 atoms are stable
    words = ("--comparison", f"{at}/compared", "--stable", repr(least))
    done = sagitta("export", fit, *words, "--output", f"{at}/st", "--json")
    need(done, "stable")
    numbers = json.load(open(f"{at}/st/run.json"))["numbers"]
    ok(numbers == np.flatnonzero(cosine >= least).tolist() and len(numbers) == 40, f"{numbers}")
    ok(json.loads(done.stdout)["numbers"] == numbers and "atoms=40 of=256" in done.stderr, "told")
    with h5py.File(f"{fit}/dictionary.h5") as f:
        kept = f["atoms"][:][numbers]
    ok(raw(f"{at}/st/dictionary.safetensors")["atoms"][1].tobytes() == kept.tobytes(), "bits")
    done = sagitta("seed", "--rows", f"{at}/fitted.npy", "--atoms", 256, "--output", f"{at}/third")
    need(done, "a third dictionary")
    need(sagitta("compare", fit, f"{at}/third", "--output", f"{at}/compared-3"), "of it")
    with h5py.File(f"{at}/compared-3/comparison.h5") as f:
        third = f["pairs/cosine"][:].astype("f8")
    done = sagitta("export", fit, "--comparison", f"{at}/compared-3", *words, "--output",
                   f"{at}/st3", "--json")
    both = np.flatnonzero(np.maximum(cosine, third) >= least).tolist()
    ok(json.loads(done.stdout)["numbers"] == both, f"the larger of two: {done.stderr}")
    need(sagitta("export", f"{at}/st3/used.in", "--output", f"{at}/st4"), "used.in")
    ok(json.load(open(f"{at}/st4/run.json"))["numbers"] == both, "used.in repeats it")
    rows = ("--rows", f"{at}/unseen.npy")
    done = sagitta("export", fit, *words, "--to", "saelens", *rows, "--force", "--output",
                   f"{at}/st-sae")
    need(done, "saelens")
    codes = sagitta("encode", *rows, "--dictionary", f"{at}/st/dictionary.safetensors", "--top-s",
                    16, "--codes", "nonnegative", "--rounds", 8, "--output",
                    f"{at}/st-codes", "--json")
    need(codes, "codes of the stable atoms")
    error = abs(json.loads(codes.stdout)["metrics"]["explained_variance"] - judged(done)[0])
    ok(error < DIGITS, f"judged by the stable atoms alone: off by {error}")
    for more, code, said in (
            (words[:2], 2, "'--comparison' is for '--stable'"),
            (words[2:], 65, "does not say how stable its atoms are: fit with '--seeds 3'"),
            (("--comparison", f"{at}/turned", *words[2:]), 65, "compares another dictionary than"),
            (("--comparison", f"{at}/fit/dictionary.h5", *words[2:]), 65, "/pairs/cosine"),
            (("--comparison", f"{at}/fitted.npy", *words[2:]), 65, "is not the comparison.h5"),
            ((*words[:2], "--stable", 1), 65, "the largest is")):
        done = sagitta("export", fit, *more, "--output", f"{at}/y")
        ok(done.returncode == code and said in done.stderr, f"{more}: {done.stderr}")
    done = sagitta("export", f"{at}/seed", *words, "--output", f"{at}/y")
    ok(done.returncode == 65 and "of 256 atoms, and this one has 40" in done.stderr, done.stderr)
    done = sagitta("export", f"{at}/{FOLDERS[0]}", *words, "--output", f"{at}/y")
    ok(done.returncode == 65 and "an encoder of its own" in done.stderr, done.stderr)


@claim("the packages load what is written, and compute what the log says, to 1e-6")
def check_packages(at):
    python = os.environ.get("PEER_PYTHON", sys.executable)
    np.save(f"{at}/rows.npy", np.load(f"{at}/unseen.npy").astype("f4"))
    for form, package in (("saelens", "sae_lens"), ("sparsify", "sparsify")):
        there = subprocess.run([python, "-c", HAS, "torch", package], capture_output=True)
        if there.returncode:
            peer_missing(f"{python} has no {package}: let PEER_PYTHON name a Python that has it")
            continue
        done = sagitta("export", f"{at}/fit", "--to", form, "--rows", f"{at}/rows.npy", "--force",
                       "--output", f"{at}/{form}_judged")
        need(done, form)
        theirs = subprocess.run([python, f"{SOURCE}/tests/exchange/judge.py", form,
                                 f"{at}/{form}_judged", f"{at}/rows.npy"], capture_output=True,
                                text=True)
        if need(theirs, f"{form} loads it"):
            error = abs(float(theirs.stdout.split()[-1]) - judged(done)[1])
            ok(error < 1e-6 * max(1, abs(judged(done)[1])), f"{form}: off by {error}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_back(folder)
        check_across(folder)
        check_plain(folder)
        check_refusals(folder)
        check_stable(folder)
        check_packages(folder)
    done_testing()
