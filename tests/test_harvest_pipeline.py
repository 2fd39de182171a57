# SPDX-License-Identifier: BSD-3-Clause
"""Claim: harvest, encode and attribute give one digest, of rows, codes and sources, on 1, 2 and 3
ranks, from a plain capture, from a pool in a random order and from what `sagitta pack` makes."""
import hashlib
import os
import tempfile

import h5py
import numpy as np

from capture_files import TYPES, capture_write, of_type, pool_make, starts
from tap import claim, done_testing, need, ok, sagitta

H, H_KV, D, DV, ATOMS = 6, 2, 16, 8, 40
PROMPT = 150  # positions that most sequences have in common
LENGTHS = [(400, PROMPT), (1100, PROMPT), (1, 0), (150, PROMPT), (17, 0), (257, PROMPT), (16, 16)]
RANDOM = np.random.default_rng(31)


def sequences(kind):
    """Queries, keys, values and tokens; keys and values of a common prefix are equal."""
    prompt = [RANDOM.standard_normal((PROMPT, H_KV, n), "f4") for n in (D, DV)]
    words = RANDOM.integers(0, 50, PROMPT)
    parts = []
    for n, alike in LENGTHS:
        own = [RANDOM.standard_normal((n - alike, H_KV, w), "f4") for w in (D, DV)]
        parts.append([*(np.concatenate([a[:alike], b]) for a, b in zip(prompt, own)),
                      np.concatenate([words[:alike], RANDOM.integers(50, 99, n - alike)])])
    k, v, token = (np.concatenate(x) for x in zip(*parts))
    q = 2 * RANDOM.standard_normal((len(k), H, D), "f4")
    return *(of_type(x, kind) for x in (q, k, v)), token.astype(np.int32)


def captures_write(at, kind):
    """The same keys and values three times; the paths."""
    q, k, v, token = sequences(kind)
    lengths = [n for n, _ in LENGTHS]
    begin = {"q": q, "q_start": starts(lengths)}
    plain = capture_write(f"{at}/plain.h5", {**begin, "k": k, "v": v, "token": token})
    paged = capture_write(f"{at}/paged.h5", {**begin, **pool_make(RANDOM, k, v, lengths, 16)})
    done = sagitta("pack", "--capture", plain, "--size", 32, "--output", f"{at}/packed", "--force")
    need(done, "pack")
    with h5py.File(f"{at}/packed/capture.h5") as f:
        blocks, needed = len(f["kv/k"]), sum(-(-n // 32) for n in lengths)
        ok(blocks < needed, f"{kind}: {blocks} blocks of {needed} without sharing")
    return plain, paged, f"{at}/packed"


def digest_of(*paths):
    """Of all arrays: names, shapes and bytes."""
    digest = hashlib.sha256()
    for path in paths:
        with h5py.File(path) as f:
            names = []
            f.visititems(lambda name, x: names.append(name) if hasattr(x, "dtype") else None)
            for name in sorted(names):
                x = f[name][()]
                digest.update(f"{name} {x.shape} {x.dtype}".encode() + x.tobytes())
    return digest.hexdigest()


def pipeline(at, capture, ranks):
    """harvest -> encode -> attribute, each on so many ranks; the digest of all that they make."""
    out = f"{capture}-{ranks}"
    rows, run, sources = f"{out}-rows.h5", f"{out}-run", f"{out}-sources.h5"
    dictionary = ("--dictionary", f"{at}/dictionary.h5")
    for words in (("harvest", "--capture", capture, "--output", rows),
                  ("encode", "--rows", rows, *dictionary, "--center", "--top-s", 4, "--output",
                   run),
                  ("attribute", "--capture", capture, "--supports", run, *dictionary, "--top", 7,
                   "--output", sources)):
        done = sagitta(*words, "--threads", 1, "--device", "cpu", "--quiet", "--force", ranks=ranks)
        if not need(done, f"{os.path.basename(out)} {words[0]}"):
            return out
    return digest_of(rows, f"{run}/supports.h5", sources)


def check(at, kind):
    """Every capture on every number of ranks; of short types three of them."""
    captures = captures_write(at, kind)
    jobs = [(at, path, ranks) for i, path in enumerate(captures) for ranks in (1, 2, 3)
            if kind == "float32" or ranks == i + 1]
    found = [pipeline(*job) for job in jobs]
    told = [(os.path.basename(path), ranks, d[:9]) for (_, path, ranks), d in zip(jobs, found)]
    ok(len(set(found)) == 1, f"{kind}: {told}")
    return found[0]


def main():
    with tempfile.TemporaryDirectory() as at:
        atoms = RANDOM.standard_normal((ATOMS, H * DV))
        with h5py.File(f"{at}/dictionary.h5", "w") as f:
            f["atoms"] = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")
        with claim("one digest of all three, on 1, 2, 3 ranks; plain, paged, packed"):
            digests = {check(at, kind) for kind in TYPES}
            ok(len(digests) == len(TYPES), "other numbers have another digest")
    done_testing()


main()
