# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta pack` stores equal prefixes once.  harvest gives the same rows from the pool as
from the captures.  Prefixes with equal tokens but different keys and values are not shared."""
import os
import tempfile

import h5py
import numpy as np

from capture_files import of_type
from seal import wrong_seals
from tap import claim, done_testing, fails, need, ok, sagitta, same

H, H_KV, D = 4, 2, 8
RANDOM = np.random.default_rng(3)
PROMPT = RANDOM.integers(0, 50, 70)
# For each sequence: its length, and the number of tokens of PROMPT with which it begins.
LENGTHS = [(100, 70), (100, 70), (64, 64), (90, 40), (7, 0), (0, 0), (130, 33)]


def sequences():
    """Tokens of sequences, and keys and values that depend on all tokens up to their position, as
    in a model."""
    for n, alike in LENGTHS:
        tokens = np.concatenate([PROMPT[:alike], RANDOM.integers(50, 99, n - alike)])
        state = np.cumsum(np.sin((tokens + 1) * np.arange(1, n + 1)))
        wave = np.sin(state[:, None] * np.arange(1, 2 * H_KV * D + 1)).astype(np.float32)
        yield tokens.astype(np.int32), *(x.reshape(n, H_KV, D) for x in np.split(wave, 2, axis=1))


TOKEN, K, V = (np.concatenate(x) for x in zip(*sequences()))
START = np.concatenate([[0], np.cumsum([n for n, _ in LENGTHS])])
Q = RANDOM.standard_normal((len(K), H, D)).astype(np.float32)


def capture(path, first=0, end=len(LENGTHS), k=K, causal=1, **left_out):
    part = slice(START[first], START[end])
    with h5py.File(path, "w") as f:
        for name, x in dict(q=Q, k=k, v=V, token=TOKEN).items():
            if name not in left_out:
                f[name] = x[part]
        f["q_start"] = START[first:end + 1] - START[first]
        f.attrs["causal"] = causal
    return path


def pack(captures, out, *words):
    options = [word for path in captures for word in ("--capture", path)]
    return sagitta("pack", *options, "--output", out, "--force", *words)


def blocks_used(path):
    with h5py.File(path) as f:
        table = f["kv/table"][:]
        return table, len(f["kv/k"])


@claim("equal prefixes are stored once, and the pool gives the same rows")
def check_shared(at):
    capture(f"{at}/all.h5")
    halves = [capture(f"{at}/a.h5", 0, 3), capture(f"{at}/b.h5", 3)]
    need(sagitta("harvest", "--capture", f"{at}/all.h5", "--output", f"{at}/rows.h5"), "plain")
    for size in (1, 16, 48, 1000):
        need(pack(halves, f"{at}/packed", "--size", size), f"size {size}")
        table, blocks = blocks_used(f"{at}/packed/capture.h5")
        shared = [alike // size for _, alike in LENGTHS]
        needed = [-(-n // size) for n, _ in LENGTHS]
        # The first sequence stores the prompt; the third one has only the prompt.
        ok(blocks == 1 + sum(needed) - sum(shared[1:]), f"size {size}: {blocks} blocks")
        for s in range(1, len(LENGTHS)):
            ok(np.array_equal(table[0, :shared[s]], table[s, :shared[s]]) and
               np.all((table[s] >= 0) == (np.arange(table.shape[1]) < needed[s])) and
               len(set(table[0]) & set(table[s]) - {-1}) == shared[s], f"size {size}, {s}: {table}")
        need(sagitta("harvest", "--capture", f"{at}/packed", "--output", f"{at}/p.h5", "--force"),
             "harvest")
        same(f"{at}/rows.h5", f"{at}/p.h5", f"size {size}")
        with h5py.File(f"{at}/packed/capture.h5") as f:
            ok(np.array_equal(f["token"][:], TOKEN), f"size {size}: tokens")
    need(sagitta("verify", f"{at}/packed/capture.h5"), "verify")
    need(sagitta("inspect", f"{at}/packed/capture.h5"), "inspect")
    need(pack([f"{at}/packed"], f"{at}/again", "--size", 1000), "a pool is packed again")
    same(f"{at}/packed/capture.h5", f"{at}/again/capture.h5", "and is what it was")


@claim("blocks with equal tokens and different keys are not shared")
def check_unlike(at):
    k = K.copy()
    k[START[1] + 20, 1, 3] *= 1 + 2.0 ** -23
    done = pack([capture(f"{at}/k.h5", k=k)], f"{at}/k")
    need(done, "pack")
    table, _ = blocks_used(f"{at}/k/capture.h5")
    ok(table[0, 0] == table[1, 0] and table[0, 1] != table[1, 1] and "1 prefixes" in done.stderr,
       f"{table[:2]} {done.stderr[-300:]}")
    need(sagitta("harvest", "--capture", f"{at}/k.h5", "--output", f"{at}/k1.h5"), "plain")
    need(sagitta("harvest", "--capture", f"{at}/k", "--output", f"{at}/k2.h5"), "pool")
    same(f"{at}/k1.h5", f"{at}/k2.h5", "rows")


@claim("captures that cannot be packed are refused")
def check_refused(at):
    capture(f"{at}/all.h5")
    fails(pack([capture(f"{at}/x.h5", token=0)], f"{at}/no"), 65, ["no '/token'", "int32"], "token")
    fails(pack([f"{at}/all.h5", capture(f"{at}/x.h5", causal=0)], f"{at}/no"), 65,
          ["differ in causal", "pack them apart"], "causal")
    with h5py.File(f"{at}/packed/capture.h5", "r+") as f:
        del f["token"]
    fails(pack([f"{at}/packed"], f"{at}/no"), 65, ["no '/token'"], "a pool")
    with h5py.File(capture(f"{at}/x.h5"), "r+") as f:
        del f["token"]
        f["token"] = TOKEN[:-1]
    fails(pack([f"{at}/x.h5"], f"{at}/no"), 65, ["'/token'", "one for each position"], "short")
    fails(sagitta("pack", "--output", f"{at}/no"), 2, ["--capture"], "none")
    with h5py.File(f"{at}/wide.h5", "w") as f:
        f["q"] = f["k"] = f["v"] = np.ones((2, 64, 256), np.float32)
        f["token"], f.attrs["causal"] = np.zeros(2, np.int32), 1
    fails(pack([f"{at}/wide.h5"], f"{at}/no", "--size", 65536), 2, ["4.3 GB", "lower '--size'"],
          "large blocks")
    ok(not os.path.exists(f"{at}/no/capture.h5"), "nothing is left")


@claim("if a serial command is started by several processes at once, it says that it is serial")
def check_serial(at):
    done = sagitta("pack", "--capture", capture(f"{at}/all.h5"), "--output", f"{at}/two", ranks=2)
    ok(done.returncode and "sagitta pack: this command is serial, and was started 2 times" in
       done.stderr, f"{done.returncode} {done.stderr[-600:]}")
    done = sagitta("pack", "--capture", f"{at}/all.h5", "--output", f"{at}/two")
    ok(done.returncode == 73 and "serial" not in done.stderr, f"{done.stderr[-300:]}")


@claim("if a capture is given as rows, the message names harvest")
def check_rows(at):
    capture(f"{at}/all.h5")
    need(pack([f"{at}/all.h5"], f"{at}/packed"), "pack")
    for path in f"{at}/all.h5", f"{at}/packed/capture.h5":
        for words in (("fit", "--capture", f"{at}/all.h5", "--atoms", 9, "--holdout", path),
                      ("fit", "--rows", path, "--atoms", 9), ("seed", "--rows", path, "--atoms", 9),
                      ("encode", "--dictionary", f"{at}/none.h5", "--rows", path)):
            fails(sagitta(*words, "--output", f"{at}/no"), 65,
                  ["no dataset '/rows'", "is a capture", f"`sagitta harvest --capture {path}`",
                   "'--capture'"], f"{words}")
    done = sagitta("encode", "--dictionary", path, "--capture", path, "--output", f"{at}/no")
    fails(done, 65, ["no dataset '/atoms'"], "a capture in the place of atoms")
    ok("harvest" not in done.stderr, f"{done.stderr[-300:]}")


def typed(path, kinds, first=0, end=len(LENGTHS), k=K):
    capture(path, first, end, k=k)
    with h5py.File(path, "r+") as f:
        for name, kind in kinds.items():
            values = of_type(f[name][:], kind)
            del f[name]
            f[name] = values
            if kind == "bfloat16":
                f[name].attrs["dtype"] = kind
    return path


def stored(path, name):
    with h5py.File(path) as f:
        return f[name].attrs.get("dtype", f[name].dtype.name)


@claim("the pool keeps the type that all captures have")
def check_types(at):
    sizes = {}
    for kind in "float32", "float16", "bfloat16":
        kinds = dict.fromkeys("qkv", kind)
        typed(f"{at}/all.h5", kinds)
        parts = typed(f"{at}/x.h5", kinds, 0, 3), typed(f"{at}/y.h5", kinds, 3)
        done = pack(parts, f"{at}/p")
        need(done, kind)
        path = f"{at}/p/capture.h5"
        ok({stored(path, name) for name in ("q", "kv/k", "kv/v")} == {kind}, f"{kind} stays")
        need(sagitta("verify", path), f"verify {kind}")
        ok(not wrong_seals(path), f"{kind}: seals")
        need(sagitta("harvest", "--capture", f"{at}/all.h5", "--output", f"{at}/r1.h5", "--force"),
             "plain")
        need(sagitta("harvest", "--capture", f"{at}/p", "--output", f"{at}/r2.h5", "--force"),
             "pool")
        same(f"{at}/r1.h5", f"{at}/r2.h5", f"rows of {kind}")
        width = {"float32": 4}.get(kind, 2) * H_KV * 2 * D
        _, blocks = blocks_used(path)
        all_of, kept = START[-1] * width, (blocks - 1) * 16 * width
        ok(f"saved   {1e-6 * (all_of - kept):.1f} of {1e-6 * all_of:.1f} MB" in done.stderr,
           done.stderr[-300:])
        with h5py.File(path) as f:
            sizes[kind] = sum(f[name].id.get_storage_size() for name in ("q", "kv/k", "kv/v"))
    ok(sizes["float16"] == sizes["bfloat16"] < 0.55 * sizes["float32"] and
       sizes["float32"] < 2 * sum(x.nbytes for x in (Q, K, V)), f"{sizes}")
    for kinds, want in (({"k": "float16"}, ["float32", "float16", "float32"]),
                        (dict(q="float16", v="bfloat16"), ["float16", "float32", "bfloat16"])):
        need(pack([typed(f"{at}/x.h5", kinds)], f"{at}/p"), f"{kinds}")
        ok([stored(f"{at}/p/capture.h5", name) for name in ("q", "kv/k", "kv/v")] == want,
           f"{kinds} gives {want}")
    need(pack([typed(f"{at}/x.h5", {"k": "float16"}, 0, 3), capture(f"{at}/y.h5", 3)],
              f"{at}/p"), "a mixture")
    ok(stored(f"{at}/p/capture.h5", "kv/k") == "float32", "a mixture is float32")


@claim("every float16 and bfloat16 keeps its bits; each NaN becomes the same NaN")
def check_bits(at):
    bits = np.arange(1 << 16, dtype=np.uint16).reshape(-1, H_KV, D)
    n = len(bits)
    for kind, infinity, one in ("float16", 0x7c00, 0x7e00), ("bfloat16", 0x7f80, 0x7fc0):
        with h5py.File(f"{at}/b.h5", "w") as f:
            for name in "kv":
                f[name] = bits.view(np.float16) if kind == "float16" else bits
                if kind == "bfloat16":
                    f[name].attrs["dtype"] = kind
            f["q"] = np.zeros((1, H, D), np.float32)
            f["token"] = np.arange(n, dtype=np.int32)
            f.attrs["causal"] = 1
        need(pack([f"{at}/b.h5"], f"{at}/b"), kind)
        with h5py.File(f"{at}/b/capture.h5") as f:
            found = f["kv/k"][1:].reshape(-1, H_KV, D)[:n].view(np.uint16)
        is_nan = (bits & 0x7fff) > infinity
        ok(np.array_equal(found[~is_nan], bits[~is_nan]), f"{kind}: numbers")
        ok(set(found[is_nan]) == {one}, f"{kind}: NaN is {set(found[is_nan])}")


def huge(path, positions):
    """A capture whose keys and values are holes in the file."""
    f = h5py.h5f.create(path.encode())
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    create.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    for name in b"k", b"v":
        space = h5py.h5s.create_simple((positions, 64, 1024))
        h5py.h5d.create(f, name, h5py.h5t.IEEE_F32LE, space, create)
    f.close()
    with h5py.File(path, "r+") as f:
        f["q"] = np.zeros((1, 64, 1024), np.float32)
        f["token"] = np.zeros(positions, np.int32)
        f.attrs["causal"] = 1


@claim("a disk without space for the longest sequence is reported before any work")
def check_space(at):
    disk = os.statvfs(at)
    free, cell = disk.f_bavail * disk.f_frsize, 2 * 64 * 1024 * 4
    huge(f"{at}/h.h5", free // cell + 1000)
    done = pack([f"{at}/h.h5"], f"{at}/h")
    fails(done, 73, ["bytes free", "the result needs"], "float32")
    need_bytes = float(done.stderr.split("the result needs ")[1].split()[0])
    ok(free < need_bytes < free * 1.01 + 3e9, f"{need_bytes} of {free}")
    ok(not os.path.exists(f"{at}/h/capture.h5"), "nothing is left")
    os.remove(f"{at}/h.h5")


@claim("a pool whose table has an entry beyond the pool is found")
def check_verify(at):
    need(pack([capture(f"{at}/all.h5")], f"{at}/packed"), "pack")
    with h5py.File(f"{at}/packed/capture.h5", "r+") as f:
        blocks = len(f["kv/k"])
        f["kv/table"][2, 1] = blocks
    fails(sagitta("harvest", "--capture", f"{at}/packed", "--output", f"{at}/p2.h5"), 65,
          ["'/kv/table'"], "harvest")
    fails(sagitta("verify", f"{at}/packed/capture.h5"), 65, ["/kv/table"], "verify")


with tempfile.TemporaryDirectory() as main:
    check_shared(main)
    check_unlike(main)
    check_refused(main)
    check_verify(main)
    check_serial(main)
    check_rows(main)
    check_types(main)
    check_bits(main)
    check_space(main)
done_testing()
