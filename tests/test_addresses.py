# SPDX-License-Identifier: BSD-3-Clause
"""Claim: in a supports.h5 with more rows than a sum block, the shape determines the place of each
chunk, as src/io/h5/slabs.h computes it.  All other data come before the first chunk.  From there on
the bytes are equal on any number of ranks."""
import tempfile

import h5py

from tap import FULL, claim, done_testing, ok, sagitta

ROWS, BLOCK = 8200, 4096


def arrays_of(f):
    """For each array of the slabs: its name, and the bytes and entries of a row."""
    s, d = int(f.attrs["top_s"]), int(f.attrs["frame"])
    codes = [("codes", 4 * s * d, s)] if "codes" in f["supports"] else []
    return [(name, 4 * s, s) for name in ("indices", "score", "data")] + codes + [("indptr", 8, 1)]


def log2(n):
    return max(1, n).bit_length() - 1


def addresses(rows, sizes, base):
    """{(array, chunk): (place, size)}."""
    c = [min(BLOCK, 1 << log2((1 << 20) // e)) for e in sizes]
    slab = sum(BLOCK // n * (n * e + 4) for n, e in zip(c, sizes))
    most = next(j for j in range(64) if slab << j >= 128 << 20)
    j = min(most, log2(-(-rows // BLOCK) // 2048))
    segment = -(-(slab << j) // 65536) * 65536

    def at(a, i):
        k = BLOCK // c[a]
        b = i // k
        before = sum(BLOCK // n * (n * e + 4) for n, e in zip(c[:a], sizes))
        return (base + (b >> j) * segment + b % (1 << j) * slab + before +
                i % k * (c[a] * sizes[a] + 4), c[a] * sizes[a] + 4)
    return c, at


def chunks_check(path):
    """Check the places of all chunks.  Returns the place of the first one."""
    with h5py.File(path) as f:
        n, arrays = int(f["supports"].attrs["shape"][0]), arrays_of(f)
        base = f["supports/indices"].id.get_chunk_info(0).byte_offset
        c, at = addresses(n, [e for _, e, _ in arrays], base)
        wrong, count = [], 0
        for a, (name, _, entries) in enumerate(arrays):
            data = f["supports/" + name]
            ok(data.chunks[0] == c[a] * entries, f"{path}: /supports/{name} {data.chunks} {c[a]}")
            for i in range(data.id.get_num_chunks()):
                info = data.id.get_chunk_info(i)
                wanted = at(a, info.chunk_offset[0] // data.chunks[0])
                wrong += [] if (info.byte_offset, info.size) == wanted else [(name, i)]
                count += 1
        kept = []
        f.visititems(lambda name, o: kept.append(o) if isinstance(o, h5py.Dataset) and
                     not name.startswith("supports/") else None)
        beyond = [o.name for o in kept for i in range(o.id.get_num_chunks())
                  if o.id.get_chunk_info(i).byte_offset >= base]
        ok(not wrong and count >= len(arrays) * (n // BLOCK), f"{path}: {wrong} of {count} chunks")
        ok(base % 65536 == 0 and not beyond, f"{path}: base {base}, {beyond} behind it")
        return base


def encode(folder, name, *words, ranks=None):
    path = f"{folder}/{name}.h5"
    more = dict(ranks=ranks) if ranks else {}
    done = sagitta("encode", "--rows", f"{folder}/rows.h5", *words, "--output", path, **more)
    ok(done.returncode == 0, f"{name}: {done.stderr[-300:]}")
    return path


@claim("the chunks of any shape are where slabs.h puts them, in a result and in a part")
def check_shapes(folder):
    atoms = ("--dictionary", f"{folder}/dictionary.h5")
    for s in (1, 5, 24) if FULL else (5, 24):
        chunks_check(encode(folder, f"s{s}", *atoms, "--top-s", s))
    chunks_check(encode(folder, "part", *atoms, "--top-s", 3, "--row-range", f"0:{2 * BLOCK}"))
    done = sagitta("synth", "--n-rows", 10, "--columns", 16, "--atoms", 12, "--frame", 3,
                   "--output", f"{folder}/frames")
    ok(done.returncode == 0, done.stderr)
    chunks_check(encode(folder, "frames", "--dictionary", f"{folder}/frames/dictionary.h5",
                        "--top-s", 4))


@claim("from its first chunk on, a file has the same bytes on any number of ranks")
def check_ranks(folder):
    words = ("--dictionary", f"{folder}/dictionary.h5", "--top-s", 5)
    one = f"{folder}/s5.h5"
    for ranks in (2, 3) if FULL else (3,):
        other = encode(folder, f"on{ranks}", *words, ranks=ranks)
        base = chunks_check(other)
        with open(one, "rb") as f, open(other, "rb") as g:
            a, b = f.read(), g.read()
        ok(a[base:] == b[base:] and len(a) > base, f"{ranks} ranks")


with tempfile.TemporaryDirectory() as where:
    sagitta("synth", "--n-rows", ROWS, "--columns", 16, "--atoms", 40, "--top-s", 5, "--output",
            where)
    check_shapes(where)
    check_ranks(where)
done_testing()
