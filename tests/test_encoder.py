# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta encode --encoder` gives the same supports, on every row, as the packages that
made the autoencoders.  The bytes do not depend on ranks, blocks, threads, parts and interruptions.
Commands that read codes accept the codes of an encoder, or say what to do.  Options that make no
sense with --encoder are refused."""
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE, change, settings_of, tensors
from seal import reseal, wrong_seals
from tap import claim, done_testing, fails, gpu_present, need, ok, sagitta, same

BLOCK = 4096
N = 3 * BLOCK + 77
OWN = [f for f in FOLDERS if "pursuit" not in f]
KINDS = {"relu": "learning_relu", "topk": "saelens_topk_rescaled", "jumprelu": "learning_jumprelu",
         "batchtopk": "learning_batchtopk", "tie": "sparsify_topk"}


def fingerprint(done):
    return re.search("fingerprint=([0-9a-f]{16})", done.stderr)[1]


def dense(path):
    """Codes and scores of all rows, NaN where an atom is not in the support."""
    with h5py.File(path) as f:
        g = f["supports"]
        row = np.repeat(np.arange(g.attrs["shape"][0]), np.diff(g["indptr"][:]))
        codes, scores = (np.full(g.attrs["shape"], np.nan, "f4") for _ in range(2))
        codes[row, g["indices"][:]], scores[row, g["indices"][:]] = g["data"][:], g["score"][:]
    return codes, scores


@claim("supports and codes are those of the forward pass of the encoder's own package")
def check_packages(at):
    for name in OWN:
        made = tensors(f"{MADE}/{name}/expected.safetensors")
        np.save(f"{at}/rows.npy", made["rows"])
        need(sagitta("import", f"{MADE}/{name}", "--output", f"{at}/{name}"), name)
        done = sagitta("encode", "--rows", f"{at}/rows.npy", "--encoder", f"{at}/{name}",
                       "--output", f"{at}/{name}/own")
        if not need(done, name):
            continue
        with h5py.File(f"{at}/{name}/dictionary.h5") as f:
            e = f["encoder"]
            norm = e["norm"][:] if "norm" in e and not e.attrs["rescaled"] else np.float32(1)
            kind = e.attrs["kind"]
        codes, _ = dense(f"{at}/{name}/own/supports.h5")
        acts = made["acts"] * norm
        equal = ((codes > 0) == (acts > 0)).all(1).sum()
        ok(equal == len(acts), f"{name}: the supports of {equal} of {len(acts)} rows")
        error = np.abs(np.nan_to_num(codes) - acts).max() / acts.max()
        ok(error < (0.02 if "bf16" in name else 2e-3 if "f16" in name else 2e-6),
           f"{name}: codes are off by {error}")
        ok(f"encoder={kind} l0={(acts > 0).sum(1).mean():.4g}" in done.stderr, done.stderr)
        need(sagitta("verify", f"{at}/{name}/own"), f"{name} verifies")
        with h5py.File(f"{at}/{name}/own/supports.h5") as f:
            ok(f.attrs["encoder"] == kind and f.attrs["nonnegative"] == 1 and
               f["metrics"].attrs["l0"] == (acts > 0).sum(1).mean(), f"{name}: attributes")


@claim("encoders of every kind are imported")
def kinds_make(at):
    """Make dictionaries of every kind.  In one of them each atom is there twice, so that scores
    tie."""
    x = np.random.default_rng(5).standard_normal((N, 16)).astype("f4")
    x[7] = 0
    np.save(f"{at}/x.npy", x)

    def twins(t):
        w = t["encoder.weight"][1]
        t["encoder.bias"][1][1::2] = t["encoder.bias"][1][::2]
        w[1::2] = w[::2]

    for kind, name in KINDS.items():
        shutil.copytree(f"{MADE}/{name}", f"{at}/{kind}-sae")
        os.remove(f"{at}/{kind}-sae/expected.safetensors")
        if kind == "tie":
            change(f"{at}/{kind}-sae", twins)
        need(sagitta("import", f"{at}/{kind}-sae", "--output", f"{at}/{kind}"), kind)


def encode(at, kind, out, *more, ranks=0):
    return sagitta("encode", "--rows", f"{at}/x.npy", "--encoder", f"{at}/{kind}", "--output",
                   f"{at}/{out}", *more, ranks=ranks)


@claim("encode has the same bytes on 1, 2, 3 and 5 ranks, with any blocks and threads")
def check_ranks(at):
    for kind in KINDS:
        first = encode(at, kind, f"{kind}.h5", "--threads", 1)
        need(first, kind)
        for ranks, more in ((0, ("--block", 100)), (0, ("--block", 5000, "--threads", 7)), (1, ()),
                            (2, ("--block", 4096)), (3, ("--threads", 2)), (5, ("--block", 9000))):
            done = encode(at, kind, f"{kind}-b.h5", "--force", *more, ranks=ranks)
            need(done, f"{kind}, {ranks} ranks, {more}")
            same(f"{at}/{kind}.h5", f"{at}/{kind}-b.h5", f"{kind}, {ranks} ranks, {more}")
            ok(fingerprint(done) == fingerprint(first), f"{kind}: fingerprints")
    codes, scores = dense(f"{at}/tie.h5")
    ok(not (np.isnan(codes[:, ::2]) & ~np.isnan(codes[:, 1::2])).any(),
       "of equal scores the smaller atom is chosen")
    ok((~np.isnan(scores)).sum(1).max() == 4 and np.nanmin(scores) > 0, "four atoms, none at 0")


@claim("a GPU gives the same bytes; without a GPU the message says that there is none")
def check_gpu(at):
    done = encode(at, "relu", "auto.h5", "--device", "auto")
    need(done, "auto")
    ok("device=cpu/" in done.stderr, "--device auto takes the CPU for a small job")
    if not gpu_present():
        fails(encode(at, "relu", "none.h5", "--device", "cuda"), 69, ["CUDA"], "there is none")
        return
    for kind in KINDS:
        for more in ((), ("--block", 1000), ("--block", 5000, "--threads", 3)):
            done = encode(at, kind, f"{kind}-g.h5", "--force", "--device", "cuda", *more)
            need(done, f"{kind}, cuda, {more}")
            same(f"{at}/{kind}.h5", f"{at}/{kind}-g.h5", f"{kind}, cuda, {more}")
            ok("device=cuda" in done.stderr, f"{kind}: it was a GPU")
        need(encode(at, kind, f"{kind}-g2.h5", "--device", "cuda", ranks=2), f"{kind}, 2 ranks")
        same(f"{at}/{kind}.h5", f"{at}/{kind}-g2.h5", f"{kind}, cuda, 2 ranks")
    x = np.load(f"{at}/x.npy")
    x[2 * BLOCK + 9] = 3e38
    np.save(f"{at}/bad.npy", x)
    fails(sagitta("encode", "--rows", f"{at}/bad.npy", "--encoder", f"{at}/relu", "--output",
                  f"{at}/none.h5", "--device", "cuda"), 65, [f"row {2 * BLOCK + 9}"], "a bad row")


@claim("merged parts, and a stopped run that is resumed, have the bytes of one run")
def check_parts(at):
    for kind in ("relu", "topk"):
        for i, (first, end) in enumerate(((0, BLOCK), (BLOCK, 3 * BLOCK), (3 * BLOCK, ""))):
            need(encode(at, kind, f"{kind}-parts", "--row-range", f"{first}:{end}", ranks=i),
                 "a part")
        parts = sorted(f"{at}/{kind}-parts/{f}" for f in os.listdir(f"{at}/{kind}-parts")
                       if f.endswith(".h5"))
        need(sagitta("verify", parts[1]), "a part verifies")
        need(sagitta("merge", *parts, "--output", f"{at}/{kind}-merged.h5"), "merge")
        same(f"{at}/{kind}.h5", f"{at}/{kind}-merged.h5", f"{kind} merged")
        os.makedirs(f"{at}/{kind}-stop")
        out = f"{kind}-stop/x.h5"
        for ranks in (1, 2):
            open(f"{at}/{kind}-stop/STOP", "w").close()
            fails(encode(at, kind, out, "--resume", ranks=ranks), 75, ["--resume"], "stopped")
            need(sagitta("verify", f"{at}/{out}"), "what is left is whole")
        os.remove(f"{at}/{kind}-stop/STOP")
        need(encode(at, kind, out, "--resume", ranks=3), "resumed")
        same(f"{at}/{kind}.h5", f"{at}/{out}", f"{kind} resumed")
    need(encode(at, "tie", "other", "--row-range", f"0:{BLOCK}"), "another encoder")
    fails(sagitta("merge", f"{at}/other/part-{0:015d}.h5", *parts[1:], "--output",
                  f"{at}/x.h5"), 65, ["does not belong"], "parts of two encoders")
    os.makedirs(f"{at}/changed")
    open(f"{at}/changed/STOP", "w").close()
    need(encode(at, "relu", "changed/x.h5", "--block", BLOCK), "stopped", 75)
    os.remove(f"{at}/changed/STOP")
    shutil.copy(f"{at}/relu/dictionary.h5", f"{at}/changed/dictionary.h5")
    folder = f"{at}/changed/sae"
    shutil.copytree(f"{at}/relu-sae", folder)

    def bias(t):
        t["encoder.bias"][1][3] += 1

    change(folder, bias)
    need(sagitta("import", folder, "--output", f"{at}/relu-other"), "another bias")
    fails(encode(at, "relu-other", "changed/x.h5", "--resume"), 65, ["encoder", "begun with"],
          "the encoder changed")
    fails(encode(at, "topk", "changed/x.h5", "--resume"), 65,
          ["--top-s 24, this run has --top-s 4"], "another kind")


@claim("blocks whose rows have no code: on any ranks, merged or resumed, the bytes are those of "
       "one run")
def check_silent(at):
    x = np.load(f"{at}/x.npy")
    loud = np.full(N, 1, "f4")
    loud[BLOCK + 9:BLOCK + 99] = 1e6  # other rows have no score above the threshold
    np.save(f"{at}/silent.npy", x * loud[:, None])
    shutil.copytree(f"{at}/relu-sae", f"{at}/silent-sae")

    def bias(t):
        t["encoder.bias"][1][:] = -1e4

    change(f"{at}/silent-sae", bias)
    need(sagitta("import", f"{at}/silent-sae", "--output", f"{at}/silent"), "import")
    rows = "--rows", f"{at}/silent.npy", "--encoder", f"{at}/silent", "--output"
    need(sagitta("encode", *rows, f"{at}/silent.h5", "--block", N), "one block")
    with h5py.File(f"{at}/silent.h5") as f:
        row = np.flatnonzero(np.diff(f["supports/indptr"][:]))
        ok(len(row) > 50 and BLOCK + 9 <= row[0] and row[-1] < BLOCK + 99, f"{row[:4]} {len(row)}")
    for ranks in 1, 2, 5:
        need(sagitta("encode", *rows, f"{at}/s.h5", "--force", "--block", 64, ranks=ranks),
             f"{ranks} ranks")
        same(f"{at}/silent.h5", f"{at}/s.h5", f"{ranks} ranks")
    os.makedirs(f"{at}/silent-stop")
    open(f"{at}/silent-stop/STOP", "w").close()
    need(sagitta("encode", *rows, f"{at}/silent-stop/x.h5", "--resume", "--block", 64), "stop", 75)
    os.remove(f"{at}/silent-stop/STOP")
    need(sagitta("encode", *rows, f"{at}/silent-stop/x.h5", "--resume"), "resumed")
    same(f"{at}/silent.h5", f"{at}/silent-stop/x.h5", "resumed")
    for span in f"0:{BLOCK}", f"{BLOCK}:":
        need(sagitta("encode", *rows, f"{at}/silent-parts", "--row-range", span), span)
    need(sagitta("merge", *sorted(f"{at}/silent-parts/{f}" for f in os.listdir(
        f"{at}/silent-parts") if f.endswith(".h5")), "--output", f"{at}/s.h5", "--force"), "merge")
    same(f"{at}/silent.h5", f"{at}/s.h5", "merged")


@claim("commands that read codes accept those of encoders; commands that need equally many per row "
       "say what to do")
def check_readers(at):
    rows = "--rows", f"{at}/x.npy"
    for kind in KINDS:
        done = sagitta("evaluate", *rows, "--dictionary", f"{at}/{kind}", "--codes",
                       f"{at}/{kind}.h5")
        need(done, f"evaluate {kind}")
        said = dict(line.split() for line in done.stdout.splitlines()[1:])
        with h5py.File(f"{at}/{kind}.h5") as f:
            for name, value in said.items():
                ok(f"{f['metrics'].attrs[name]:.9g}" == value, f"evaluate {kind}: {name}")
    os.makedirs(f"{at}/run")
    shutil.copy(f"{at}/relu.h5", f"{at}/run/supports.h5")
    shutil.copy(f"{at}/relu/dictionary.h5", f"{at}/run/dictionary.h5")
    done = sagitta("inspect", f"{at}/relu.h5")
    ok(done.returncode == 0 and "encoder" in done.stdout and "relu" in done.stdout, done.stdout)
    need(sagitta("color", "--supports", f"{at}/run", "--output", f"{at}/c.h5"), "color")
    need(sagitta("top", "--supports", f"{at}/run", "--output", f"{at}/t.h5"), "top")
    need(sagitta("inspect", f"{at}/run", "--atom", 3), "inspect --atom")
    for command, more in (("refit", ("--sweeps", 1)), ("assemble", ("--classes", f"{at}/c.h5")),
                          ("terminal", ())):
        done = sagitta(command, *rows, "--dictionary", f"{at}/run", "--supports", f"{at}/run",
                       *more, "--output", f"{at}/{command}")
        fails(done, 65, ["encoder, relu", "'--dictionary' instead of '--encoder'"], command)
    x = np.load(f"{at}/x.npy")
    with h5py.File(f"{at}/topk.h5") as f:
        full = np.diff(f["supports/indptr"][:]) == 4
    ok(full.sum() > BLOCK, "most rows have all four codes")
    np.save(f"{at}/full.npy", x[full])
    need(sagitta("encode", "--rows", f"{at}/full.npy", "--encoder", f"{at}/topk", "--output",
                 f"{at}/full.h5"), "rows of one length")
    need(sagitta("refit", "--rows", f"{at}/full.npy", "--dictionary", f"{at}/topk", "--supports",
                 f"{at}/full.h5", "--sweeps", 1, "--output", f"{at}/refit"), "their refit")


@claim("verify refuses codes that no encoder gives")
def check_promises(at):
    def swap(f, name):
        row = int(np.nonzero(np.diff(f["supports/indptr"][:]) > 1)[0][-1])
        first = f["supports/indptr"][row]
        values = f[f"supports/{name}"]
        values[first], values[first + 1] = values[first + 1], values[first]

    def swap_all(f):
        for name in ("indices", "data", "score"):
            swap(f, name)

    def larger(f):
        f["supports/score"][f["supports/indptr"][BLOCK] + 1] = 99

    def attribute(name, value):
        return lambda f: f.attrs.__setitem__(name, value)

    def end(f):
        f["supports/indptr"][N] -= 1

    for kind, change, said in (
            ("relu", swap_all, "is behind atom"), ("topk", swap_all, "not in selection order"),
            ("topk", larger, "not in selection order"), ("relu", end, "'/supports/indptr' ends"),
            ("topk", attribute("top_s", 3), "entries, top-s is 3"),
            ("relu", attribute("encoder", "gated"), "encoder 'gated', which is not known")):
        ok(not wrong_seals(f"{at}/{kind}.h5"), f"{kind}: the hashes are right")
        copy = f"{at}/changed.h5"
        shutil.copy(f"{at}/{kind}.h5", copy)
        with h5py.File(copy, "r+", libver=("v110", "v110")) as f:
            change(f)
            reseal(f)
        done = sagitta("verify", copy)
        fails(done, 65, [said], f"{kind}, {said}")


@claim("options that make no sense with an encoder, and files without one, are refused")
def check_errors(at):
    for words, said in ((("--dictionary", f"{at}/relu"), "--dictionary"), (("--top-s", 3), "--top"),
                        (("--rounds", 2), "--rounds"), (("--normalize",), "--normalize"),
                        (("--center",), "--center"), (("--grid", "1x1"), "--grid")):
        fails(encode(at, "relu", "e.h5", *words), 2, [f"'{said}", "'--encoder'", "leave it out"],
              f"{words}")
    need(sagitta("seed", "--rows", f"{at}/x.npy", "--atoms", 24, "--output", f"{at}/seed"), "seed")
    fails(encode(at, "seed", "e.h5"), 65, ["no encoder", "sagitta import", "--dictionary"], "seed")
    np.save(f"{at}/atoms.npy", np.eye(16, dtype="f4"))
    fails(encode(at, "atoms.npy", "e.h5"), 65, ["no encoder", "sagitta import"], "an array")
    fails(encode(at, "relu-sae", "e.h5"), 65, ["no dictionary.h5", "sagitta import"], "a folder")
    fails(encode(at, "none.h5", "e.h5"), 74, ["none.h5"], "no file")
    need(sagitta("import", f"{MADE}/saelens_pursuit", "--output", f"{at}/pursuit"), "pursuit")
    fails(encode(at, "pursuit", "e.h5"), 65, ["matching_pursuit", "'--dictionary'"], "pursuit")
    np.save(f"{at}/wide.npy", np.ones((3, 17), "f4"))
    fails(sagitta("encode", "--rows", f"{at}/wide.npy", "--encoder", f"{at}/relu", "--output",
                  f"{at}/e.h5"), 65, ["17 columns", "have 16"], "columns")
    for row, value in ((5, np.nan), (BLOCK + 5, np.inf), (2 * BLOCK, 3e38)):
        x = np.load(f"{at}/x.npy")
        x[row] = value
        np.save(f"{at}/bad.npy", x)
        for ranks in (0, 3):
            done = sagitta("encode", "--rows", f"{at}/bad.npy", "--encoder", f"{at}/relu",
                           "--output", f"{at}/e.h5", ranks=ranks)
            fails(done, 65, [f"row {row}"], f"row {row} is {value}, {ranks} ranks")
    for name, edit, said in (("bias", np.nan, "/encoder/bias"), ("weights", np.inf, "/encoder/we"),
                             ("threshold", np.nan, "is nan"), ("threshold", -np.inf, "is -inf")):
        shutil.copy(f"{at}/jumprelu/dictionary.h5", f"{at}/damaged.h5")
        with h5py.File(f"{at}/damaged.h5", "r+") as f:
            f.attrs["format"] = "other"
            values = f["encoder"][name][:]
            values[7] = edit
            del f["encoder"][name]
            f["encoder"][name] = values
        fails(encode(at, "damaged.h5", "e.h5"), 65, [said], f"{name} is {edit}")
    done = encode(at, "relu", "e.h5", "--dry-run", ranks=2)
    ok(done.returncode == 0 and "each with all atoms" in done.stdout and
       "12 bytes for each code" in done.stdout and not os.path.exists(f"{at}/e.h5"), done.stdout)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_packages(folder)
        kinds_make(folder)
        check_ranks(folder)
        check_gpu(folder)
        check_parts(folder)
        check_silent(folder)
        check_readers(folder)
        check_promises(folder)
        check_errors(folder)
    done_testing()
