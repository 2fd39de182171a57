# SPDX-License-Identifier: BSD-3-Clause
"""Claim: harvest, encode and attribute give one digest of rows, codes and sources, for any number
of ranks and of queries at a time, on CPUs and GPUs.  It is the same for a plain capture, for one
whose keys and values are blocks of a pool, in any order, and for the pool that `sagitta pack`
makes.  Decodes of one query each give the digest of a prefill."""
import hashlib
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

from capture_files import TYPES, capture_write, of_type, pool_make, starts
from tap import FULL, claim, done_testing, gpu_present, need, ok, sagitta

H, H_KV, D, DV, ATOMS = 6, 2, 16, 8, 40
PROMPT = 150  # positions of a common beginning
LENGTHS = [400, 1100, 1, 150, 17, 257, 16]
EDGES = [1, 15, 16, 17, 255, 256, 257, 1000, 4096]
STREAMS = {"1 sequence": ("float16", [4096]), "4 sequences": ("bfloat16", [257, 1000, 4096, 1]),
           "32 sequences": ("float32", [EDGES[(5 * i + i // 9) % 9] for i in range(32)])}
RANDOM = np.random.default_rng(31)


class Arrays:
    """Queries, keys, values and tokens of sequences of these lengths, with this number of last
    queries each.  Most sequences begin with the same prompt, and have its keys, values and
    tokens."""

    def __init__(self, kind, lengths, queries):
        prompt = [RANDOM.standard_normal((PROMPT, H_KV, n), "f4") for n in (D, DV)]
        words = RANDOM.integers(0, 50, PROMPT)
        parts = []
        for i, n in enumerate(lengths):
            alike = min(n, PROMPT) if i % 3 != 2 else 0
            own = [RANDOM.standard_normal((n - alike, H_KV, w), "f4") for w in (D, DV)]
            parts.append([*(np.concatenate([a[:alike], b]) for a, b in zip(prompt, own)),
                          np.concatenate([words[:alike], RANDOM.integers(50, 99, n - alike)])])
        k, v, token = (np.concatenate(x) for x in zip(*parts))
        self.q_start = starts([min(n, queries) for n in lengths])
        q = 2 * RANDOM.standard_normal((self.q_start[-1], H, D), "f4")
        self.lengths, self.token = lengths, token.astype(np.int32)
        self.q, self.k, self.v = (of_type(x, kind) for x in (q, k, v))

    def plain(self, path, **more):
        return capture_write(path, {"q": self.q, "q_start": self.q_start, "k": self.k, "v": self.v,
                                    "kv_start": starts(self.lengths), **more})

    def paged(self, path, size, order=None):
        pool = pool_make(RANDOM, self.k, self.v, self.lengths, size, order)
        return capture_write(path, {"q": self.q, "q_start": self.q_start, **pool})

    def packed(self, path, size):
        """Write a pool in which sequences share blocks of the prompt."""
        plain = self.plain(f"{path}-tokens.h5", token=self.token)
        need(sagitta("pack", "--capture", plain, "--size", size, "--output", path, "--force"),
             "pack")
        with h5py.File(f"{path}/capture.h5") as f:
            blocks, needed = len(f["kv/k"]), sum(-(-n // size) for n in self.lengths)
            # `blocks` also counts block 0, which no sequence has; one sequence shares nothing.
            ok(blocks < needed or len(self.lengths) == 1,
               f"{path}: {blocks} blocks; without sharing {needed}")
        return path


def digest_of(*paths, but=()):
    """The digest of all arrays: their names, shapes and bytes."""
    digest = hashlib.sha256()
    for path in paths:
        with h5py.File(path) as f:
            names = []
            f.visititems(lambda name, x: names.append(name) if hasattr(x, "dtype") else None)
            for name in sorted(set(names) - set(but)):
                x = f[name][()]
                digest.update(f"{name} {x.shape} {x.dtype}".encode() + x.tobytes())
    return digest.hexdigest()


def pipeline(at, capture, ranks=0, device="cpu", block=0, but=()):
    """Run harvest, encode and attribute.  Returns the error, and the digest of all their
    results."""
    out = f"{capture}-{ranks}-{device}-{block}"
    rows, run, sources = f"{out}-rows.h5", f"{out}-run", f"{out}-sources.h5"
    dictionary = ("--dictionary", f"{at}/dictionary.h5")
    for words in (("harvest", "--capture", capture, "--output", rows),
                  ("encode", "--rows", rows, *dictionary, "--center", "--top-s", 4, "--output",
                   run),
                  ("attribute", "--capture", capture, "--supports", run, *dictionary, "--top", 7,
                   "--output", sources)):
        done = sagitta(*words, "--threads", 1, "--device", device, "--block", block, "--quiet",
                       "--force", ranks=ranks)
        if done.returncode:
            return f"{words[0]} of {os.path.basename(out)}: {done.stderr[-300:]}", out
    return "", digest_of(rows, f"{run}/supports.h5", sources, but=but)


def one_digest(at, what, jobs, **more):
    """Run jobs (capture, ranks, device, block).  All must have the same digest."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda job: pipeline(at, *job, **more), jobs))
    for wrong, _ in found:
        ok(not wrong, wrong)
    told = [(os.path.basename(job[0]), *job[1:], d[:9]) for job, (_, d) in zip(jobs, found)]
    ok(len({d for _, d in found}) == 1, f"{what}: {told}")
    return found[0][1]


@claim("plain, paged and packed captures of every type give one digest, on 1, 2 and 3 ranks")
def types_check(at):
    digests = set()
    for kind in TYPES:
        a = Arrays(kind, LENGTHS, 1 << 20)
        jobs = [(a.plain(f"{at}/plain-{kind}"), 1), (a.paged(f"{at}/paged-{kind}", 16), 2),
                (a.packed(f"{at}/packed-{kind}", 32), 3)]
        digests.add(one_digest(at, kind, jobs))
    ok(len(digests) == len(TYPES), "other numbers have another digest")


@claim("1, 4 and 32 sequences of 1 .. 4,096 positions; no table, a table in order, blocks of 16 "
       "and 32 in any order, shared blocks; 1, 2, 3, 5 ranks; 1 .. 128 queries at a time; each "
       "device")
def streams_check(at):
    has_gpu = gpu_present()
    for i, (what, (kind, lengths)) in enumerate(STREAMS.items()):
        a, name = Arrays(kind, lengths, 3 if i else 140), f"{at}/{i}"
        plain = a.plain(f"{name}-plain")
        pools = [a.paged(f"{name}-up", 16, range(1 << 20)), a.paged(f"{name}-16", 16),
                 a.paged(f"{name}-32", 32), a.packed(f"{name}-packed", 16)]
        jobs = [(plain, ranks) for ranks in ((1, 2, 3, 5) if FULL else (0, i + 2))]
        fewer = ((5, 0, 0, 0), (0, 3, 0, 0), (0, 0, 2, 0))[i]
        jobs += [(path, ranks) for path, ranks in zip(pools, (5, 3, 2, 1) if FULL else fewer)]
        blocks = (1, 7, 16, 65, 128)
        jobs += [(plain, 0, "cpu", block) for block in (blocks if FULL else blocks[i + 1:i + 3])]
        if has_gpu:
            jobs += [(path, j % 3, "cuda", (0, 1, 16, 33, 128)[j]) for j, path in
                     enumerate([plain, *pools])]
        one_digest(at, what, jobs)


@claim("single decodes from one pool give the digest of a prefill")
def decode_check(at):
    n = 300
    a = Arrays("float16", [n], n)
    pool = pool_make(RANDOM, a.k, a.v, [n], 16)
    used = np.arange(len(pool["kv/table"][0])) * 16 < np.arange(1, n + 1)[:, None]
    pool["kv/table"] = np.where(used, pool["kv/table"], -1).astype(np.int32)
    pool["kv/length"] = np.arange(1, n + 1)
    decodes = capture_write(f"{at}/decodes", {"q": a.q, "q_start": np.arange(n + 1), **pool})
    jobs = [(a.plain(f"{at}/prefill"), 0), (decodes, 0), (decodes, 2), (decodes, 0, "cpu", 1)]
    one_digest(at, "decodes", jobs, but=("attribution/sequence",))


def main():
    with tempfile.TemporaryDirectory() as at:
        atoms = RANDOM.standard_normal((ATOMS, H * DV))
        with h5py.File(f"{at}/dictionary.h5", "w") as f:
            f["atoms"] = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")
        types_check(at)
        streams_check(at)
        decode_check(at)
    done_testing()


main()
