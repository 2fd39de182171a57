# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `encode --encoder --codes nonnegative|signed` keeps the supports of the encoder bit for
bit, and solves for their codes.  These codes are those of SciPy and NumPy, also if a row has more
atoms than columns.  Ranks, blocks, threads, parts and interruptions change no byte."""
import json
import os
import shutil
import tempfile

import h5py
import numpy as np

from exchange_files import MADE, change, settings_of
from tap import claim, done_testing, fails, gpu_present, need, ok, sagitta, same

BLOCK, N = 4096, 2 * 4096 + 77
KINDS = {"relu": "learning_relu", "topk": "saelens_topk_rescaled", "jumprelu": "learning_jumprelu",
         "batchtopk": "learning_batchtopk"}


@claim("encoders of every kind are imported, also if some atoms are equal")
def make(at):
    x = np.random.default_rng(5).standard_normal((N, 16)).astype("f4")
    x[7] = 0
    np.save(f"{at}/x.npy", x)

    def equal(t):
        w = t["W_dec"][1]
        w[1:8:2] = w[0:8:2]

    for kind, name in KINDS.items():
        shutil.copytree(f"{MADE}/{name}", f"{at}/{kind}-sae")
        os.remove(f"{at}/{kind}-sae/expected.safetensors")
        if kind == "jumprelu":
            change(f"{at}/{kind}-sae", equal)
        need(sagitta("import", f"{at}/{kind}-sae", "--output", f"{at}/{kind}"), kind)


def encode(at, kind, out, *more, ranks=0):
    return sagitta("encode", "--rows", f"{at}/x.npy", "--encoder", f"{at}/{kind}", "--output",
                   f"{at}/{out}", *more, ranks=ranks)


def supports(path):
    with h5py.File(path) as f:
        g = f["supports"]
        return g["indptr"][:], g["indices"][:], g["data"][:], g["score"][:], dict(f.attrs)


@claim("supports and scores are those of the encoder, codes are those of SciPy's nnls and NumPy's "
       "lstsq")
def check_peers(at):
    from scipy.optimize import nnls
    x = np.load(f"{at}/x.npy").astype("f8")
    for kind in KINDS:
        need(encode(at, kind, f"{kind}-own.h5", "--codes", "own"), kind)
        need(encode(at, kind, f"{kind}-auto.h5"), kind)
        same(f"{at}/{kind}-own.h5", f"{at}/{kind}-auto.h5", f"{kind}: its own by itself")
        own = supports(f"{at}/{kind}-own.h5")
        with h5py.File(f"{at}/{kind}/dictionary.h5") as f:
            atoms, mean = f["atoms"][:].astype("f8"), f["mean"][:]
        before = sagitta("evaluate", "--rows", f"{at}/x.npy", "--dictionary", f"{at}/{kind}",
                         "--codes", f"{at}/{kind}-own.h5")
        for sign in ("nonnegative", "signed"):
            out = f"{at}/{kind}-{sign}.h5"
            need(encode(at, kind, f"{kind}-{sign}.h5", "--codes", sign), f"{kind} {sign}")
            start, indices, codes, score, said = supports(out)
            ok(all((a == b).all() for a, b in zip((start, indices, score), own[:2] + own[3:4])),
               f"{kind} {sign}: the supports and scores are the encoder's")
            ok(said["solved"] == 1 and said["codes"] == 1 and
               said.get("nonnegative", 0) == (sign == "nonnegative"), f"{kind}: {said}")
            need(sagitta("verify", out), "verify")
            worst, sizes, zeros = 0, set(), 0
            for i in range(0, N, 29):
                s, c = indices[start[i]:start[i + 1]], codes[start[i]:start[i + 1]]
                d, row = atoms[s].T, (x[i] - mean).astype("f4").astype("f8")
                sizes.add(len(s))
                zeros += (c == 0).sum()
                if not len(s):
                    continue
                best = nnls(d, row)[0] if sign == "nonnegative" else np.linalg.lstsq(
                    d, row, rcond=None)[0]
                size = np.linalg.norm(row) + np.abs(c).sum()  # errors are relative to this
                worst = max(worst, (np.linalg.norm(row - d @ c) - np.linalg.norm(
                    row - d @ best)) / size, *([0] if sign == "signed" else -c))
                if len(s) <= 16 and np.linalg.cond(d) < 1e3:  # otherwise codes are not unique
                    worst = max(worst, np.abs(c - best).max() / max(1, np.abs(best).max()) - 1e-6)
            ok(worst < 1e-6, f"{kind} {sign}: off by {worst}, lengths {sorted(sizes)}")
            if kind == "relu":
                ok(len(sizes) > 5, f"rows of {sizes} atoms, of 16 columns")
            if kind == "jumprelu":
                ok(zeros > 0, "equal atoms: one of them is 0, and stays in the support")
            done = sagitta("evaluate", "--rows", f"{at}/x.npy", "--dictionary", f"{at}/{kind}",
                           "--codes", out)
            figure = [float(d.stdout.split("explained_variance")[1].split()[0])
                      for d in (before, done)]
            ok(figure[1] > figure[0], f"{kind} {sign}: {figure}")


@claim("encode has the same bytes on 1, 2, 3 and 5 ranks, any blocks and threads, and a GPU if "
       "there is one")
def check_ranks(at):
    gpu = gpu_present()
    for kind, sign in (("relu", "nonnegative"), ("jumprelu", "signed"), ("topk", "nonnegative")):
        more = "--codes", sign, "--force"
        for ranks, words in ((0, ("--block", 100)), (1, ("--threads", 3)), (2, ("--block", 4096)),
                             (3, ()), (5, ("--threads", 2)))[:None if kind == "relu" else 3]:
            need(encode(at, kind, "b.h5", *more, *words, ranks=ranks), f"{kind} {ranks}")
            same(f"{at}/{kind}-{sign}.h5", f"{at}/b.h5", f"{kind}, {ranks} ranks, {words}")
        if gpu:
            need(encode(at, kind, "b.h5", *more, "--device", "cuda"), f"{kind}, cuda")
            same(f"{at}/{kind}-{sign}.h5", f"{at}/b.h5", f"{kind}, cuda")


@claim("merged parts, and a stopped run that is resumed, have the bytes of one run")
def check_parts(at):
    sign = "--codes", "nonnegative"
    for ranks, span in enumerate((f"0:{BLOCK}", f"{BLOCK}:")):
        need(encode(at, "relu", "parts", *sign, "--row-range", span, ranks=ranks), span)
    parts = sorted(f"{at}/parts/{f}" for f in os.listdir(f"{at}/parts") if f.endswith(".h5"))
    need(sagitta("merge", *parts, "--output", f"{at}/merged.h5"), "merge")
    same(f"{at}/relu-nonnegative.h5", f"{at}/merged.h5", "merged")
    need(encode(at, "relu", "mixed", "--row-range", f"0:{BLOCK}"), "its own codes")
    other = f"{at}/mixed/" + next(f for f in os.listdir(f"{at}/mixed") if f.endswith(".h5"))
    fails(sagitta("merge", other, parts[1], "--output", f"{at}/m.h5"), 65, ["--codes"],
          "solved and own codes")
    os.makedirs(f"{at}/stop")
    open(f"{at}/stop/STOP", "w").close()
    need(encode(at, "relu", "stop/x.h5", *sign), "stopped", 75)
    os.remove(f"{at}/stop/STOP")
    fails(encode(at, "relu", "stop/x.h5", "--resume"), 65, ["--codes"], "resumed for other codes")
    need(encode(at, "relu", "stop/x.h5", *sign, "--resume", ranks=2), "resumed")
    same(f"{at}/relu-nonnegative.h5", f"{at}/stop/x.h5", "resumed")


@claim("impossible requests are refused")
def check_errors(at):
    fails(encode(at, "relu", "e.h5", "--rho", 0.1), 2, ["'--rho'", "'--codes nonnegative'"], "rho")
    fails(sagitta("encode", "--rows", f"{at}/x.npy", "--dictionary", f"{at}/relu", "--codes", "own",
                  "--output", f"{at}/e.h5"), 2, ["'--codes' is own", "'--encoder'"], "own")
    need(encode(at, "relu", "ridge.h5", "--rho", 0.5, "--codes", "signed"), "with a penalty")
    codes = [supports(f"{at}/{name}.h5")[2] for name in ("ridge", "relu-signed")]
    ok((codes[0] ** 2).sum() < 0.9 * (codes[1] ** 2).sum(), "a penalty makes codes smaller")
    folder, k = f"{at}/long-sae", 2100  # every atom is in all rows except one
    shutil.copytree(f"{at}/relu-sae", folder)
    with open(settings_of(folder)) as f:
        settings = json.load(f)
    settings["trainer"].update(activation_dim=4, dict_size=k)
    with open(settings_of(folder), "w") as f:
        json.dump(settings, f)
    w = np.random.default_rng(3).standard_normal((k, 4)).astype("f4")
    change(folder, lambda t: t.update({
        "encoder.weight": ("F32", w), "encoder.bias": ("F32", np.full(k, 1, "f4")),
        "decoder.weight": ("F32", w.T.copy()), "bias": ("F32", np.zeros(4, "f4"))}))
    need(sagitta("import", folder, "--output", f"{at}/long"), "import")
    rows = np.zeros((BLOCK + 9, 4), "f4")
    rows[:BLOCK + 3] = 100
    np.save(f"{at}/rows.npy", rows)
    for ranks in 0, 2:
        fails(sagitta("encode", "--rows", f"{at}/rows.npy", "--encoder", f"{at}/long", "--codes",
                      "signed", "--output", f"{at}/e.h5", ranks=ranks), 65,
              [f"row {BLOCK + 3} has 2100 atoms", "2048", "'--codes own'"], f"{ranks} ranks")


with tempfile.TemporaryDirectory() as at:
    make(at)
    check_peers(at)
    check_ranks(at)
    check_parts(at)
    check_errors(at)
done_testing()
