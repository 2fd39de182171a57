# SPDX-License-Identifier: BSD-3-Clause
"""Claim: harvest reads paged pools of any block size, order, type and number of sequences, with NaN
and infinity in every spare cell, and gives the bits of plain captures.  The order of positions in a
table changes bits; the order of blocks in the pool does not.  Decodes of one query each give the
bits of a prefill."""
import os
import tempfile

import numpy as np

from capture_files import TYPES, capture_write, harvested, of_type, pool_make, starts
from tap import FULL, claim, done_testing, need, ok, sagitta

LENGTHS = [1, 15, 16, 17, 255, 256, 257, 1000, 4096]
STREAMS = [[n] for n in LENGTHS] + [(2 * LENGTHS)[i:i + 4] for i in (0, 4, 7)] + [
    [LENGTHS[(5 * i + i // 9) % 9] for i in range(32)]]
H, H_KV, D, DV = 4, 2, 16, 24
RANDOM = np.random.default_rng(21)


def harvest(path, *words, ranks=0):
    out = f"{path}-rows.h5"
    done = sagitta("harvest", "--capture", path, "--output", out, "--force", "--quiet", "--threads",
                   1, "--device", "cpu", *words, ranks=ranks)
    good = need(done, f"{os.path.basename(path)} {words} {ranks} ranks")
    return harvested(out) if good else (np.zeros(0, "u4"), np.zeros(0, "u4"))


def same_bits(one, two, what):
    return ok(all(np.array_equal(a, b) for a, b in zip(one, two)), what)


class Sequences:
    """Sequences of these lengths: some last queries of each, and keys and values of a type."""

    def __init__(self, lengths, kind, queries=3):
        self.lengths = lengths
        self.q_start = starts([min(queries, n) for n in lengths])
        self.kv_start = starts(lengths)
        self.q = self.random(self.q_start[-1], H, D, kind, 2)
        self.k = self.random(self.kv_start[-1], H_KV, D, kind)
        self.v = self.random(self.kv_start[-1], H_KV, DV, kind)

    @staticmethod
    def random(n, heads, columns, kind, size=1):
        return of_type(size * RANDOM.standard_normal((n, heads, columns), "f4"), kind)

    def plain(self, path, **facts):
        return capture_write(path, {"q": self.q, "k": self.k, "v": self.v, "q_start": self.q_start,
                                    "kv_start": self.kv_start}, **facts)

    def paged(self, path, size, order=None, change=None, **facts):
        """Write a paged capture.  change: a function that changes the arrays of the pool in
        place."""
        pool = pool_make(RANDOM, self.k, self.v, self.lengths, size, order)
        if change:
            change(pool)
        return capture_write(path, {"q": self.q, "q_start": self.q_start, **pool}, **facts)


@claim("1, 4 and 32 sequences of 1 .. 4,096 positions, blocks of 16 and 32 in any order, every "
       "type, spare cells not finite: a pool gives the bits of a plain capture")
def paged_check(at):
    paths = []
    for i, lengths in enumerate(STREAMS):
        for kind in TYPES if FULL or len(lengths) > 1 else [list(TYPES)[i % 3]]:
            s, name = Sequences(lengths, kind), f"{at}/{i}-{kind}"
            paths.append([s.plain(name), *(s.paged(f"{name}-{size}", size) for size in (16, 32))])
    all_of = [harvest(path) for path in sum(paths, [])]
    for i, group in enumerate(paths):
        for j in (1, 2):
            same_bits(all_of[3 * i], all_of[3 * i + j], group[j])
    ok(all(np.isfinite(z.view("f4")).all() for z, _ in all_of), "all rows are finite")
    return paths[-3:]


@claim("ranks that divide queries or positions of 32 sequences of any type give the bits of one "
       "rank")
def ranks_check(ragged):
    for plain, _, paged in ragged:
        want = harvest(plain)
        for ranks in (1, 2, 3, 5) if FULL else (2, 5):
            cut = "positions" if ranks % 2 else "queries"
            same_bits(want, harvest(paged, "--cut", cut, ranks=ranks),
                      f"{os.path.basename(paged)}, {ranks} ranks, --cut {cut}")


@claim("a pool whose table is in order gives the bits of the plain capture")
def identity_check(at):
    for size in (16, 32, 64):
        s = Sequences([1000, 16, 257, 1], "float32", queries=100)
        path = s.paged(f"{at}/identity", size, order=range(999))
        same_bits(harvest(s.plain(f"{at}/none")), harvest(path), f"blocks of {size}")


@claim("positions in another order give other bits, although softmax does not depend on the order")
def order_check(at):
    for n, size, pairs in ((256, 16, [(0, 1)]), (256, 16, [(2, 13)]), (4096, 32, [(0, 127)])):
        s = Sequences([n], "float32", queries=200)
        want = harvest(s.plain(f"{at}/ordered", causal=0))

        def swap(pool):
            for a, b in pairs:
                pool["kv/table"][0, [a, b]] = pool["kv/table"][0, [b, a]]

        got = harvest(s.paged(f"{at}/swapped", size, change=swap, causal=0))
        share = np.mean(want[0] != got[0])
        near = np.abs(want[0].view("f4") - got[0].view("f4")).max()
        ok(share > 0.1 and near < 1e-5, f"{n} positions, blocks {pairs}: {share:.2f} of the bits, "
           f"off by {near:.2g}")


@claim("1 .. 128 queries at a time give the same bits")
def tiles_check(at):
    s = Sequences([1000, 257, 1, 300], "float16", queries=130)
    want, path = harvest(s.plain(f"{at}/at-once")), s.paged(f"{at}/tiles", 16)
    for block in (1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128):
        same_bits(want, harvest(path, "--block", block), f"{block} at a time")


@claim("N decodes of one query, from one pool that they share, give the bits of a prefill of N")
def decode_check(at):
    """Query i of a prefill is the last query of a sequence of i + 1 positions in the same
    blocks."""
    for n, size, kind in ((4096, 16, "float16"), (300, 32, "bfloat16"), (257, 64, "float32")):
        s = Sequences([n], kind, queries=n)
        want = harvest(s.plain(f"{at}/prefill"))
        pool = pool_make(RANDOM, s.k, s.v, [n], size)
        used = np.arange(len(pool["kv/table"][0])) * size < np.arange(1, n + 1)[:, None]
        pool["kv/table"] = np.where(used, pool["kv/table"], -1).astype(np.int32)
        pool["kv/length"] = np.arange(1, n + 1)
        path = capture_write(f"{at}/decode", {"q": s.q, "q_start": np.arange(n + 1), **pool})
        for ranks, words in ((0, ()), (0, ("--block", 1)), (2, ("--block", 7))):
            same_bits(want, harvest(path, *words, ranks=ranks), f"{n} of {kind}, {ranks} {words}")


def main():
    with tempfile.TemporaryDirectory() as at:
        ragged = paged_check(at)
        ranks_check(ragged)
        identity_check(at)
        order_check(at)
        tiles_check(at)
        decode_check(at)
    done_testing()


main()
