# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta evaluate` prints for given codes what `encode` prints for its own; for codes of
other programs it prints what NumPy computes from them and the rows.  Inputs that do not belong
together are refused."""
import os
import tempfile

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE, straight, tensors
from tap import SOURCE, claim, done_testing, fails, need, ok, sagitta

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")


def columns(done):
    """{metric: [number of each column]}."""
    lines = [line.split() for line in done.stdout.splitlines()]
    return {w[0]: [float(x) for x in w[1:]] for w in lines if w[0] != "codes" and len(w[0]) < 22
            and w[0][0] != "/"}


def csr(path, dense):
    """Write dense codes as a CSR matrix of SciPy.  Columns descend, which is allowed."""
    rows = [np.nonzero(r)[0][::-1] for r in dense]
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        g["indptr"] = np.cumsum([0] + [len(r) for r in rows])
        g["indices"] = np.concatenate(rows).astype("i4")
        g["data"] = np.concatenate([dense[i, r] for i, r in enumerate(rows)]).astype("f4")
        g.attrs["shape"] = dense.shape


@claim("codes of other programs explain what those programs' reconstructions do, for decoders of "
       "any norm")
def check_others(at):
    for name in FOLDERS:
        made = tensors(f"{MADE}/{name}/expected.safetensors")
        decoder, mean, *_ = straight(f"{MADE}/{name}")
        acts, x = made["acts"], made["rows"].astype("f8")
        if "rescaled" in name:
            acts = acts / np.linalg.norm(decoder, axis=1)
        csr(f"{at}/codes.h5", acts)
        np.save(f"{at}/rows.npy", made["rows"])
        with h5py.File(f"{at}/decoder.h5", "w") as f:
            f["atoms"] = decoder
            f["mean"] = mean.astype("f8")
        words = ("--rows", f"{at}/rows.npy", "--dictionary", f"{at}/decoder.h5", "--codes",
                 f"{at}/codes.h5")
        done = sagitta("evaluate", *words)
        if not ok(done.returncode == 0, f"{name}: {done.stderr}"):
            continue
        m = columns(done)
        ev = 1 - ((x - made["recon"])**2).sum() / ((x - x.mean(0))**2).sum()
        error = abs(m["explained_variance"][0] - ev)
        ok(error < (0.1 if "bf16" in name else 0.01 if "f16" in name else 2e-6), f"{name}: {error}")
        ok(abs(m["l0"][0] - (acts != 0).sum(1).mean()) < 1e-9, f"{name}: l0")
        ok(m["dead_atoms"][0] == (~(acts != 0).any(0)).sum(), f"{name}: dead atoms")


@claim("for the codes of encode evaluate prints what encode prints, for several results and any "
       "threads")
def check_own(at):
    ok(sagitta("seed", "--rows", ROWS, "--atoms", 50, "--center", "--output", f"{at}/d").returncode
       == 0, "seed")
    for name, more in (("a", ()), ("b", ("--rounds", 3, "--codes", "nonnegative"))):
        done = sagitta("encode", "--rows", ROWS, "--dictionary", f"{at}/d", "--top-s", 6,
                       "--output", f"{at}/{name}", *more)
        ok(done.returncode == 0, done.stderr)
    words = ("evaluate", "--rows", ROWS, "--dictionary", f"{at}/d", "--codes", f"{at}/a",
             "--codes", f"{at}/b")
    done = sagitta(*words, "--threads", 1)
    m = columns(done)
    ok(len(m) == 10, f"{done.stdout} {done.stderr}")
    for i, name in enumerate("ab"):
        with h5py.File(f"{at}/{name}/supports.h5") as f:
            for key, values in m.items():
                ok(f"{f['metrics'].attrs[key]:.9g}" == f"{values[i]:.9g}", f"{name}: {key}")
    ok(sagitta(*words, "--threads", 3).stdout == done.stdout, "three threads")
    with h5py.File(f"{at}/d/dictionary.h5") as f:
        np.save(f"{at}/bare.npy", f["atoms"][:])
    need(sagitta("encode", "--rows", ROWS, "--dictionary", f"{at}/bare.npy", "--top-s", 6,
                 "--center", "--output", f"{at}/centred"), "encode --center")
    bare = sagitta("evaluate", "--rows", ROWS, "--dictionary", f"{at}/bare.npy", "--codes",
                   f"{at}/centred")
    with h5py.File(f"{at}/centred/supports.h5") as f:
        ev = f["metrics"].attrs["explained_variance"]
        ok(f"{ev:.9g}" == f"{columns(bare)['explained_variance'][0]:.9g}", "a mean beside codes")
    need(sagitta("encode", "--rows", ROWS, "--dictionary", f"{at}/bare.npy", "--top-s", 6,
                 "--output", f"{at}/plain"), "encode without a mean")
    words = "evaluate", "--rows", ROWS, "--codes", f"{at}/plain", "--dictionary"
    need(sagitta(*words, f"{at}/bare.npy"), "without a mean")
    fails(sagitta(*words, f"{at}/d"), 65, ["were solved without one"], "a mean that codes lack")


@claim("inputs that do not belong together are refused, and the message says what to do")
def check_errors(at):
    rows, d, codes = ("--rows", ROWS), ("--dictionary", f"{at}/d"), ("--codes", f"{at}/a")
    done = sagitta("route", *rows, *d, "--top-s", 2, "--output", f"{at}/route")
    ok(done.returncode == 0, done.stderr)
    with h5py.File(f"{at}/wide.h5", "w") as f:
        f["atoms"] = np.ones((50, 7), "f4")
    with h5py.File(f"{at}/few.h5", "w") as f:
        f["atoms"] = np.ones((3, 384), "f4")
    with h5py.File(f"{at}/d/dictionary.h5") as f, h5py.File(f"{at}/other.h5", "w") as other:
        for name in "atoms", "mean":
            other[name] = f[name][:]
        other["atoms"][7] = f["atoms"][8]
    with h5py.File(ROWS) as f:
        rows_of = f["rows"][:]
    np.save(f"{at}/same.npy", rows_of)
    np.save(f"{at}/turned.npy", rows_of[::-1])
    bad = np.zeros((8192, 50), "f4")
    bad[5, 3] = np.nan
    csr(f"{at}/bad.h5", bad)
    for words, code, said in (
            ((*d, *codes), 2, "'--rows' is missing"), ((*rows, *codes), 2, "'--dictionary' is"),
            ((*rows, *d), 2, "'--codes' is missing"),
            ((*rows, *d, "--codes", f"{at}/route"), 65, "scores and no codes"),
            ((*d, *codes, "--rows", f"{at}/rows384.npy"), 65, "give the rows that were encoded"),
            ((*rows, *codes, "--dictionary", f"{at}/few.h5"), 65, "give the decoder of these"),
            ((*rows, *codes, "--dictionary", f"{at}/wide.h5"), 65, "the atoms of"),
            ((*rows, *d, "--codes", f"{at}/bad.h5"), 65, "row 5"),
            ((*rows, *codes, "--dictionary", f"{at}/other.h5"), 65, "another dictionary than"),
            ((*d, *codes, "--rows", f"{at}/turned.npy"), 65, "other rows than"),
            ((*d, *codes, "--rows", f"{at}/same.npy"), 0, ""),
            ((*rows, *d, *codes * 5), 2, "more than 4 times")):
        np.save(f"{at}/rows384.npy", np.ones((9, 384), "f4"))
        done = sagitta("evaluate", *words)
        ok(done.returncode == code and said in done.stderr, f"{said}: {done.returncode} "
           f"{done.stderr}")
    done = sagitta("evaluate", *rows, *d, *codes, ranks=2)
    ok(done.returncode == 2 and "one rank" in done.stderr, f"two ranks: {done.stderr}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_others(folder)
        check_own(folder)
        check_errors(folder)
    done_testing()
