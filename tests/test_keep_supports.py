# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `refit --keep-supports` keeps the supports of an encoder bit for bit, solves for their
codes and moves all atoms, as NumPy and SciPy do.  Ranks, threads and interruptions change no byte.
dictionary.h5 has the encoder, so that `encode --encoder` gives other rows the encoder's supports,
with solved codes."""
import os
import shutil
import tempfile

import h5py
import numpy as np

from exchange_files import MADE, change
from tap import claim, done_testing, fails, gpu_present, need, ok, sagitta, same

BLOCK, N, M = 4096, 2 * 4096 + 77, 500
KINDS = {"relu": "learning_relu", "topk": "saelens_topk_rescaled", "jumprelu": "learning_jumprelu",
         "batchtopk": "learning_batchtopk"}


@claim("encoders of every kind are imported, also if some atoms are equal or some rows have no "
       "atoms")
def make(at):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((N + M, 16)).astype("f4")
    x[::50] *= 1e-3  # small rows: an encoder with a negative bias gives them no atoms
    np.save(f"{at}/x.npy", x[:N])
    np.save(f"{at}/y.npy", x[N:])

    def quiet(t):
        t["encoder.bias"][1][:] = -0.3
        t["bias"][1][:] = 0

    def equal(t):
        t["W_dec"][1][1:8:2] = t["W_dec"][1][0:8:2]

    for kind, name in (*KINDS.items(), ("quiet", "learning_relu")):
        shutil.copytree(f"{MADE}/{name}", f"{at}/{kind}-sae")
        os.remove(f"{at}/{kind}-sae/expected.safetensors")
        if kind in ("quiet", "jumprelu"):
            change(f"{at}/{kind}-sae", quiet if kind == "quiet" else equal)
        need(sagitta("import", f"{at}/{kind}-sae", "--output", f"{at}/{kind}"), kind)
        need(sagitta("encode", "--rows", f"{at}/x.npy", "--encoder", f"{at}/{kind}", "--output",
                     f"{at}/{kind}/own"), kind)


def refit(at, kind, out, *more, ranks=0):
    return sagitta("refit", "--rows", f"{at}/x.npy", "--encoder", f"{at}/{kind}", "--output",
                   f"{at}/{out}", *more, ranks=ranks)


def supports(path):
    with h5py.File(path) as f:
        g = f["supports"]
        return g["indptr"][:], g["indices"][:], g["data"][:], g["score"][:], dict(f.attrs)


def atoms_of(path):
    with h5py.File(path) as f:
        return f["atoms"][:].astype("f8"), f["mean"][:]


def codes_peer(x, atoms, start, indices, sign):
    from scipy.optimize import nnls
    codes = np.zeros(len(indices))
    for i in range(len(x)):
        s = indices[start[i]:start[i + 1]]
        if len(s):
            d = atoms[s].T
            codes[start[i]:start[i + 1]] = nnls(d, x[i])[0] if sign == "nonnegative" else \
                np.linalg.lstsq(d, x[i], rcond=None)[0]
    return codes


def atoms_peer(x, atoms, start, indices, codes):
    c = np.zeros((len(x), len(atoms)))
    c[np.repeat(np.arange(len(x)), np.diff(start)), indices] = codes
    gram, target, new = c.T @ c, c.T @ x, atoms.copy()
    for a in range(len(atoms)):
        if gram[a, a] > 0:
            new[a] = (target[a] - gram[a] @ new + gram[a, a] * new[a]) / gram[a, a]
    return new / np.linalg.norm(new, axis=1, keepdims=True)


def explained(x, atoms, start, indices, codes):
    c = np.zeros((len(x), len(atoms)))
    c[np.repeat(np.arange(len(x)), np.diff(start)), indices] = codes
    return 1 - ((x - c @ atoms) ** 2).sum() / ((x - x.mean(0)) ** 2).sum()


@claim("two sweeps are those of NumPy and SciPy; supports and scores keep every bit")
def check_peers(at):
    for kind, sign in (("relu", "nonnegative"), ("topk", "signed"), ("jumprelu", "nonnegative"),
                       ("quiet", "signed")):
        own = supports(f"{at}/{kind}/own/supports.h5")
        done = refit(at, kind, f"{kind}-2", "--sweeps", 2, "--codes", sign)
        need(done, kind)
        start, indices, codes, score, said = supports(f"{at}/{kind}-2/supports.h5")
        ok(all((a == b).all() for a, b in zip((start, indices, score), own[:2] + own[3:4])),
           f"{kind}: the supports and scores are the encoder's")
        ok(said["solved"] == 1 and said["sweeps"] == 2 and
           said.get("nonnegative", 0) == (sign == "nonnegative"), f"{kind}: {said}")
        atoms, mean = atoms_of(f"{at}/{kind}/dictionary.h5")
        x = (np.load(f"{at}/x.npy") - mean).astype("f4").astype("f8")
        got, _ = atoms_of(f"{at}/{kind}-2/dictionary.h5")
        with h5py.File(f"{at}/{kind}-2/dictionary.h5") as f:
            line = f["fit/history"][:]
        if kind == "topk":  # otherwise some codes are not unique, and atoms depend on them
            figures = []
            for sweep in range(3):
                peer = codes_peer(x, atoms, start, indices, sign)
                figures.append(explained(x, atoms, start, indices, peer))
                if sweep < 2:
                    atoms = atoms_peer(x, atoms, start, indices, peer).astype("f4").astype("f8")
            off = np.abs(got - atoms).max()
            ok(off < 1e-4, f"{kind}: atoms off by {off}")
            ok(np.abs(codes - peer).max() < 1e-3 * np.abs(peer).max(), f"{kind}: codes")
            ok(np.abs(line[:, 1] - figures).max() < 1e-5, f"{kind}: {line[:, 1]} {figures}")
        rows = np.arange(0, N, 10)
        picked = np.concatenate([np.arange(start[i], start[i + 1]) for i in rows]).astype(int)
        ends = np.concatenate([[0], np.cumsum(np.diff(start)[rows])])
        best = codes_peer(x[rows], got, ends, indices[picked], sign)
        figures = [explained(x[rows], got, ends, indices[picked], c) for c in (codes[picked], best)]
        ok(abs(figures[0] - figures[1]) < 1e-6, f"{kind}: codes are best: {figures}")
        mine = explained(x, got, start, indices, codes)
        ok(line[2, 1] > line[0, 1] and abs(line[2, 1] - mine) < 1e-6,
           f"{kind}: {line[:, 1]} {mine}")
        with h5py.File(f"{at}/{kind}/own/supports.h5") as f:
            ok(line[0, 1] > f["metrics"].attrs["explained_variance"], f"{kind}: solved codes gain")
        ok((np.diff(start) == 0).any() == (kind == "quiet"), f"{kind}: rows without atoms")
        ok(kind != "relu" or (np.diff(start) > 16).any(), "more atoms than columns")
        need(sagitta("verify", f"{at}/{kind}-2"), f"verify {kind}")
    ok((supports(f"{at}/relu-2/supports.h5")[2] == 0).any(), "codes of 0 stay in the support")


@claim("refit has the same bytes on 1, 2, 3 and 5 ranks, on any number of threads, and on a GPU if "
       "there is one")
def check_ranks(at):
    for kind, sign in (("relu", "nonnegative"), ("quiet", "signed")):
        for ranks, more in ((1, ()), (2, ("--threads", 2)), (3, ()), (5, ("--threads", 1))):
            need(refit(at, kind, "r", "--sweeps", 2, "--codes", sign, "--force", *more,
                       ranks=ranks), f"{kind}, {ranks} ranks")
            same(f"{at}/{kind}-2", f"{at}/r", f"{kind}, {ranks} ranks")
    if gpu_present():
        for kind, sign in (("relu", "nonnegative"), ("quiet", "signed"), ("topk", "signed")):
            need(refit(at, kind, "r", "--sweeps", 2, "--codes", sign, "--force", "--device",
                       "cuda"), f"{kind}, cuda")
            same(f"{at}/{kind}-2", f"{at}/r", f"{kind}, cuda")


@claim("a stopped run that is resumed, and a run from given supports, have the bytes of one run")
def check_resume(at):
    os.makedirs(f"{at}/stop")
    words = "--codes", "nonnegative", "--sweeps"
    open(f"{at}/stop/STOP", "w").close()
    need(refit(at, "relu", "stop", *words, 2), "stopped", 75)
    need(sagitta("verify", f"{at}/stop"), "what is left is whole")
    os.remove(f"{at}/stop/STOP")
    fails(refit(at, "relu", "stop", "--codes", "signed", "--sweeps", 2, "--resume"), 65,
          ["--codes"], "resumed for other codes")
    fails(refit(at, "quiet", "stop", *words, 2, "--resume"), 65, ["hash"], "another encoder")
    need(refit(at, "relu", "stop", *words, 2, "--resume", ranks=2), "resumed")
    same(f"{at}/relu-2", f"{at}/stop", "resumed")
    need(refit(at, "relu", "stop", *words, 2, "--resume"), "nothing is left")
    same(f"{at}/relu-2", f"{at}/stop", "nothing was left")
    os.remove(f"{at}/stop/supports.h5")
    need(refit(at, "relu", "stop", *words, 2, "--resume"), "supports again")
    same(f"{at}/relu-2", f"{at}/stop", "supports made again")
    given = ("refit", "--rows", f"{at}/x.npy", "--dictionary", f"{at}/relu", "--supports",
             f"{at}/relu/own", "--sweeps", 2, "--output", f"{at}/given")
    fails(sagitta(*given), 65, ["'--dictionary'", "--keep-supports"], "rows of differing length")
    need(sagitta(*given, "--keep-supports", ranks=2), "given supports")
    same(f"{at}/relu-2", f"{at}/given", "given supports")


@claim("encode gives rows the encoder's supports and solved codes; other commands read the "
       "dictionary")
def check_after(at):
    done = refit(at, "relu", "held", "--sweeps", 2, "--holdout", f"{at}/y.npy")
    need(done, "holdout")
    for rows, out in (("x", "again"), ("y", "other")):
        need(sagitta("encode", "--rows", f"{at}/{rows}.npy", "--encoder", f"{at}/held", "--output",
                     f"{at}/{out}.h5"), rows)
    a, b = supports(f"{at}/again.h5"), supports(f"{at}/held/supports.h5")
    ok(all((p == q).all() for p, q in zip(a[:4], b[:4])) and a[4]["solved"] == 1,
       "the same rows: the bits of the refit")
    done = sagitta("verify", f"{at}/held", "--rows", f"{at}/x.npy")
    ok(done.returncode == 0 and f"{N} of {N} rows" in done.stdout, f"{done.stdout} {done.stderr}")
    np.save(f"{at}/shuffled.npy", np.roll(np.load(f"{at}/x.npy"), 1, 0))
    fails(sagitta("verify", f"{at}/held", "--rows", f"{at}/shuffled.npy"), 65,
          ["row 0", "other atoms, scores or codes"], "other rows")
    fails(sagitta("verify", f"{at}/held", "--rows", f"{at}/y.npy"), 65, [f"{M} rows"], "fewer")
    with h5py.File(f"{at}/other.h5") as f, h5py.File(f"{at}/held/dictionary.h5") as d:
        said = d["fit/history"][2, 2]
        ok(f["metrics"].attrs["explained_variance"] == said, f"unseen: {said}")
        ok(d["encoder"].attrs["solved"] == 1, "the dictionary says so")
        ok(d["fit/history"][2, 2] > d["fit/history"][0, 2], "unseen rows gain")
    need(sagitta("encode", "--rows", f"{at}/y.npy", "--encoder", f"{at}/held", "--codes", "own",
                 "--output", f"{at}/own.h5"), "its own codes")
    ok("solved" not in supports(f"{at}/own.h5")[4], "own codes are not solved")
    need(sagitta("evaluate", "--rows", f"{at}/y.npy", "--dictionary", f"{at}/held", "--codes",
                 f"{at}/other.h5"), "evaluate")
    need(sagitta("inspect", f"{at}/held", "--atom", 3), "inspect")
    need(sagitta("export", f"{at}/held", "--to", "saelens", "--rows", f"{at}/y.npy", "--output",
                 f"{at}/export"), "export")
    need(sagitta("import", f"{at}/export", "--output", f"{at}/back"), "import")
    need(sagitta("encode", "--rows", f"{at}/y.npy", "--encoder", f"{at}/back", "--output",
                 f"{at}/back.h5"), "encode")
    ok((supports(f"{at}/back.h5")[1] == supports(f"{at}/other.h5")[1]).all(), "the same supports")
    need(refit(at, "held", "more", "--sweeps", 1), "a refit of a refit")
    need(refit(at, "topk", "rescaled", "--sweeps", 1), "an encoder with norms")
    need(sagitta("encode", "--rows", f"{at}/x.npy", "--encoder", f"{at}/rescaled", "--output",
                 f"{at}/rescaled.h5"), "encode")
    ok((supports(f"{at}/rescaled.h5")[1] == supports(f"{at}/topk/own/supports.h5")[1]).all(),
       "norms still multiply the scores")


@claim("impossible requests are refused")
def check_errors(at):
    need(sagitta("encode", "--rows", f"{at}/x.npy", "--dictionary", f"{at}/relu", "--codes",
                 "signed", "--top-s", 4, "--output", f"{at}/signed.h5"), "signed")
    for words, code, said in (
            (("--encoder", f"{at}/relu", "--reroute"), 2, ["'--reroute'", "leave it out"]),
            (("--encoder", f"{at}/relu", "--directions", 2), 2, ["'--directions'"]),
            (("--encoder", f"{at}/relu", "--dictionary", f"{at}/relu"), 2, ["'--dictionary'"]),
            (("--keep-supports",), 2, ["'--encoder'", "'--supports'"]),
            (("--keep-supports", "--dictionary", f"{at}/relu", "--supports", f"{at}/relu/own",
              "--holdout", f"{at}/y.npy"), 2, ["'--holdout' needs '--encoder'"]),
            (("--dictionary", f"{at}/relu", "--supports", f"{at}/relu/own", "--codes", "signed"), 2,
             ["'--codes' goes with '--keep-supports'"]),
            (("--keep-supports", "--dictionary", f"{at}/relu", "--supports", f"{at}/signed.h5",
              "--codes", "nonnegative"), 2, ["chosen for codes of either sign"]),
            (("--encoder", f"{at}/relu-sae"), 65, ["no dictionary.h5", "sagitta import"]),
            (("--keep-supports", "--dictionary", f"{at}/relu-2", "--supports", f"{at}/relu/own"),
             65, ["dictionary_hash"])):
        fails(sagitta("refit", "--rows", f"{at}/x.npy", "--sweeps", 1, "--output", f"{at}/e",
                      *words), code, said, words)
    bad = np.load(f"{at}/x.npy")
    bad[BLOCK + 5, 3] = np.nan
    np.save(f"{at}/bad.npy", bad)
    for ranks in 0, 2:
        fails(sagitta("refit", "--rows", f"{at}/bad.npy", "--encoder", f"{at}/relu", "--output",
                      f"{at}/e", ranks=ranks), 65, [f"row {BLOCK + 5}"], "a bad row")
    done = sagitta("refit", "--rows", f"{at}/x.npy", "--keep-supports", "--dictionary",
                   f"{at}/relu", "--supports", f"{at}/signed.h5", "--output", f"{at}/equal")
    need(done, "supports of no encoder, all of one length")
    with h5py.File(f"{at}/equal/supports.h5") as f, h5py.File(f"{at}/signed.h5") as g:
        ok((f["supports/indices"][:] == g["supports/indices"][:]).all() and
           "encoder" not in f.attrs, "they stay")
    need(sagitta("verify", f"{at}/equal"), "verify")
    done = refit(at, "relu", "e", "--dry-run")
    ok(done.returncode == 0 and "12 bytes for each code" in done.stdout, done.stdout)


with tempfile.TemporaryDirectory() as at:
    make(at)
    check_peers(at)
    check_ranks(at)
    check_resume(at)
    check_after(at)
    check_errors(at)
done_testing()
