# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta harvest` gives the rows and states of a gated delta net, close to those of
float64.  The bytes do not depend on ranks, blocks, threads and variants, nor on where sequences are
cut in time, within a call or between calls.  Slots are read as they were before the call.  Errors
of a capture are named before any work."""
import shutil
import tempfile

import h5py
import numpy as np

from mixer_data import make, normals, reference, write
from tap import FULL, claim, done_testing, fails, gpu_present, need, ok, sagitta, same

RANDOM = np.random.default_rng(3)
TOLERANCE = 1e-5  # relative to the largest magnitude of the rows, and of the states
MOVED = [(0, 0), (1, 3), (-1, 1), (2, -1)]  # input and output slots of four sequences


def harvest(capture, out, *words, **more):
    return sagitta("harvest", "--capture", capture, "--output", out, *words, "--force", **more)


def near(got, exact, what):
    most = np.abs(exact).max(initial=0)
    off = np.abs(got - exact).max(initial=0) / (most or 1)
    ok(got.shape == exact.shape and off <= TOLERANCE, f"{what}: off by {off:.2g}")


def results(out, kept):
    with h5py.File(f"{out}/rows.h5") as f:
        rows = f["rows"][:]
    if not kept:
        return rows, None, None
    with h5py.File(f"{out}/slots.h5") as f:
        return rows, f["state/s"][:], f["state/taps"][:] if "state/taps" in f else None


def compared(at, capture, what, *words, **more):
    """Harvest, and compare with float64: the rows, and the slots that are written.  Other slots
    must not change."""
    path, out = write(f"{at}/c.h5", capture), f"{at}/out"
    shutil.rmtree(out, ignore_errors=True)
    written = {i for i in capture[0].get("slot_out", ()) if i >= 0}
    if not need(harvest(path, out, *words, **more), what):
        return
    got, exact = results(out, written), reference(capture)
    near(got[0], exact[0], f"{what}, rows")
    for name, mine, its in zip(("s", "taps"), got[1:], exact[1:]):
        if mine is None:
            continue
        slots = sorted(written)
        near(mine[slots], its[slots], f"{what}, {name}")
        rest = sorted(set(range(len(mine))) - written)
        ok(np.array_equal(mine[rest].view(np.uint32),
                          capture[0][f"state/{name}"][rest].view(np.uint32)), f"{what}, slots stay")


@claim("rows and states are those of the recurrence in float64")
def values_check(at):
    for i, d in enumerate((8, 16, 32, 64, 128, 256) if FULL else (8, 33, 128)):
        for j in range(4 if FULL else 2):
            form = (i + j) % 4
            lengths = (7, 1, 0, 4096 if FULL and d <= 32 else 64 if d <= 64 else 9)
            compared(at, make(RANDOM, lengths, d=d, dv=d if form else d // 2 + 1,
                              key_heads=(2, 1, 4, 2)[form], by_column=form > 1,
                              width=0 if form == 3 else 4, slots=MOVED, pool=5,
                              head_map="tiled" if j else "grouped"), f"D {d}, form {form}")


@claim("rows are right for different widths of the convolution, with silu or a bias and without")
def conv_check(at):
    for width in range(2, 9) if FULL else (2, 3, 8):
        compared(at, make(RANDOM, (1, 3, 0, 20), width=width, bias=width % 2, slots=MOVED, pool=4,
                          d=5, dv=3, activation="silu" if width % 3 else "none",
                          scale=0.3, eps=1e-5), f"width {width}")
    compared(at, make(RANDOM, (3, 4), width=0, qk_norm="none", scale=0.01), "no norm")


@claim("a call reads every slot as it was before the call")
def slots_check(at):
    for name, slots in (("in place", [(0, 0), (1, 1), (2, 2), (3, 3)]),
                        ("all moved", [(0, 4), (1, 5), (2, 6), (3, 7)]), ("mixed", MOVED),
                        ("two swapped", [(0, 1), (1, 0), (-1, -1), (3, 2)]),
                        ("a cycle of three", [(0, 1), (1, 2), (2, 0), (-1, 3)]),
                        ("a chain", [(1, 2), (2, 3), (-1, 1), (5, 6)]),
                        ("one source twice", [(3, 3), (3, 5), (3, 6), (-1, -1)])):
        compared(at, make(RANDOM, slots=slots, pool=8), name)


@claim("tokens may be divided anywhere, within a call and between calls")
def cuts_check(at):
    whole = make(RANDOM, (64, 3, 20), slots=[(0, 0), (1, 1), (-1, 2)], pool=3)
    need(harvest(write(f"{at}/w.h5", whole), f"{at}/whole"), "whole")
    for block in (1, 7, 33):
        need(harvest(f"{at}/w.h5", f"{at}/cut", "--block", block), f"block {block}")
        for name in ("rows.h5", "slots.h5"):
            same(f"{at}/whole/{name}", f"{at}/cut/{name}", f"block {block}, {name}")
    objects, facts = whole
    rows = []
    for first, last in ((0, 1), (1, 30), (30, 64)):
        own = {name: x[first:last] if name in ("x", "g", "beta") else x
               for name, x in objects.items()}
        own |= {"q_start": np.array([0, last - first]), "slot_in": np.int32([0]),
                "slot_out": np.int32([0])}
        need(harvest(write(f"{at}/p.h5", (own, facts)), f"{at}/part"), f"tokens from {first} on")
        part = results(f"{at}/part", True)
        rows.append(part[0])
        objects = objects | {"state/s": part[1], "state/taps": part[2]}
    got = results(f"{at}/whole", True)
    ok(np.array_equal(np.concatenate(rows), got[0][:64]), "rows of three calls")
    ok(np.array_equal(part[1][0], got[1][0]) and np.array_equal(part[2][0], got[2][0]),
       "states and taps of three calls")


@claim("any ranks, blocks, threads and variants give the same bytes")
def partition_check(at):
    path = write(f"{at}/r.h5", make(RANDOM, (40, 1, 0, 9), heads=6, key_heads=3, slots=MOVED,
                                    pool=5, by_column=True, d=20, dv=12))
    need(harvest(path, f"{at}/one", "--threads", 1), "one rank")
    runs = [(2, ("--block", 11)), (3, ()), (0, ("--threads", 3, "--cpu-variant", "avx2"))]
    for ranks, words in runs + [(1, ()), (7, ("--block", 3))] * FULL:
        need(harvest(path, f"{at}/other", *words, ranks=ranks), f"{ranks} ranks {words}")
        for name in ("rows.h5", "slots.h5"):
            same(f"{at}/one/{name}", f"{at}/other/{name}", f"{ranks} ranks {words}, {name}")
    for name in ("rows.h5", "slots.h5"):
        need(sagitta("verify", f"{at}/one/{name}"), f"verify {name}")


@claim("16-bit floats are widened exactly; if slots are not kept, --output may be a file")
def types_check(at):
    objects, facts = make(RANDOM, width=0, lengths=(7,))
    short = {name: x.astype(np.float16) if name in "qkv" else x for name, x in objects.items()}
    wide = {name: x.astype(np.float32) if x.dtype == np.float16 else x for name, x in short.items()}
    need(harvest(write(f"{at}/s.h5", (short, facts)), f"{at}/short.h5"), "float16")
    need(harvest(write(f"{at}/l.h5", (wide, facts)), f"{at}/wide.h5", "--mixer", "gated-delta"),
         "float32")
    same(f"{at}/short.h5", f"{at}/wide.h5", "float16")


@claim("a GPU gives one and two ranks the same bytes; without a GPU the message says that there is "
       "none")
def gpu_check(at):
    path = write(f"{at}/g.h5", make(RANDOM, (40, 1, 0, 9), slots=MOVED, pool=5, d=32, dv=16))
    need(harvest(path, f"{at}/cpu", "--device", "cpu"), "a CPU")
    if not gpu_present():
        return fails(harvest(path, f"{at}/gpu", "--device", "cuda"), 69, ["CUDA"], "there is none")
    for ranks, words in (0, ()), (2, ()), (1, ("--block", 7)):
        need(harvest(path, f"{at}/gpu", "--device", "cuda", *words, ranks=ranks), f"{ranks} ranks")
        for name in ("rows.h5", "slots.h5"):
            same(f"{at}/cpu/{name}", f"{at}/gpu/{name}", f"{ranks} ranks {words}, {name}")
        with h5py.File(f"{at}/gpu/rows.h5") as f:
            ok("cuda" in str(f["run"].attrs["device"]), "the job ran on a GPU")
    return None


def changed(capture, more=(), less=(), **facts):
    objects = {name: x for name, x in capture[0].items() if name not in less} | dict(more)
    return objects, capture[1] | facts


@claim("errors of a capture are named")
def input_check(at):
    good = make(RANDOM, slots=MOVED, pool=5)
    f = good[0]
    value = {name: f[name].copy() for name in ("x", "g", "beta")}
    value["x"][3, 1], value["g"][4, 2], value["beta"][2, 1] = np.inf, 0.5, 2.5
    nan = f["state/s"].copy()
    nan[1] = np.nan
    cases = [
        ({"less": ["beta"]}, ["'/beta'"]), ({"less": ["g"]}, ["'/g'"]),
        ({"less": ["x"]}, ["neither '/x' nor '/q'"]), ({"less": ["conv"]}, ["no '/conv'"]),
        ({"more": {"q": f["x"]}}, ["both '/x' and '/q'"]),
        ({"more": {"conv": f["conv"][:, :1]}}, ["(64, 1)", "2 .. 8"]),
        ({"more": {"conv_bias": f["conv_bias"][1:]}}, ["63", "64"]),
        ({"key_heads": 3}, ["3 key heads and 4 heads"]),
        ({"key_heads": 5}, ["64 channels", "5 heads of 8"]),
        ({"key_columns": None}, ["key_columns"]),
        ({"key_columns": 300}, ["64 channels"]), ({"activation": "gelu"}, ["'gelu'", "silu"]),
        ({"activation": None}, ["activation", "silu"]), ({"qk_norm": "rms"}, ["'rms'", "l2"]),
        ({"head_map": None}, ["head_map", "tiled"]), ({"scale": np.nan}, ["scale"]),
        ({"mixer": "kda"}, ["'kda'"]), ({"eps": -1.0}, ["eps is -1"]),
        ({"more": {"g": f["g"][:, :3]}}, ["'/g' and '/beta'", "3 and 4"]),
        ({"more": {"g": np.repeat(f["g"][..., None], 5, 2)}}, ["5 decays", "8 columns"]),
        ({"more": {"x": f["x"][1:]}}, ["15 tokens", "14"]),
        ({"more": {"q_start": np.array([0, 5, 9])}}, ["'/q_start'", "9", "15"]),
        ({"more": {"slot_in": np.int32([0, 1])}}, ["2 slots", "4 sequences"]),
        ({"more": {"slot_out": np.int32([0, 0, 1, 2])}}, ["sequences 0 and 1", "slot 0"]),
        ({"more": {"slot_in": np.int32([0, 9, 1, 2])}}, ["sequence 1", "slot 9", "5"]),
        ({"less": ["state/s", "state/taps"]}, ["'/state/s'"]),
        ({"less": ["state/taps"]}, ["'/state/taps'"]),
        ({"more": {"state/s": f["state/s"][..., :3]}}, ["(5, 4, 8, 3)", "4, 8, 8"]),
        ({"more": {"x": value["x"]}}, ["value 1 of token 3", "'/x'"]),
        ({"more": {"g": value["g"]}}, ["value 2 of token 4", "'/g'", "0.5"]),
        ({"more": {"beta": value["beta"]}}, ["value 1 of token 2", "'/beta'", "2.5"]),
        ({"more": {"state/s": nan}}, ["row 5 of", "not finite in head 0"]),
    ]
    for how, words in cases:
        fails(harvest(write(f"{at}/b.h5", changed(good, **how)), f"{at}/bad"), 65, words, f"{how}")
    fails(harvest(write(f"{at}/b.h5", good), f"{at}/bad.h5"), 2, ["'--output'", "folder"], "a file")
    fails(harvest(f"{at}/b.h5", f"{at}/bad", "--mixer", "attention"), 65, ["gated-delta"], "mixer")
    with h5py.File(f"{at}/a.h5", "w") as attention:
        attention["q"] = attention["k"] = attention["v"] = normals(RANDOM, 3, 1, 4)
        attention.attrs["causal"] = 1
    fails(harvest(f"{at}/a.h5", f"{at}/bad", "--mixer", "gated-delta"), 65, ["attention"], "mixer")
    need(harvest(f"{at}/a.h5", f"{at}/attention"), "attention")


@claim("other commands refuse the capture, and take the rows that harvest makes of it")
def refused_check(at):
    path = write(f"{at}/e.h5", make(RANDOM, (40,), heads=2))
    need(harvest(path, f"{at}/e"), "harvest")
    fit = ("--atoms", 8, "--top-s", 2, "--sweeps", 1, "--holdout-share", 0, "--output", f"{at}/fit",
           "--force")
    need(sagitta("fit", "--rows", f"{at}/e/rows.h5", *fit), "fit")
    encode = ("--dictionary", f"{at}/fit", "--output", f"{at}/codes", "--force")
    need(sagitta("encode", "--rows", f"{at}/e/rows.h5", *encode), "encode")
    words = ["gated-delta", "`sagitta harvest`"]
    fails(sagitta("fit", "--capture", path, *fit), 65, words, "fit")
    fails(sagitta("encode", "--capture", path, *encode), 65, words, "encode")
    fails(sagitta("attribute", "--supports", f"{at}/codes", "--dictionary", f"{at}/fit",
                  "--capture", path, "--output", f"{at}/no"), 65, words, "attribute")
    fails(sagitta("pack", "--capture", path, "--output", f"{at}/no"), 65, words, "pack")


def main():
    with tempfile.TemporaryDirectory() as at:
        for check in (values_check, conv_check, slots_check, cuts_check, partition_check,
                      types_check, gpu_check, input_check, refused_check):
            check(at)
    done_testing()


if __name__ == "__main__":
    main()
