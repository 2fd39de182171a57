# SPDX-License-Identifier: BSD-3-Clause
"""Claim: ranks, tiles, blocks, threads, instruction sets, the certified filter and GPUs change no
bit of what encode writes, for fixtures, real and planted rows, frames, duplicates, zero rows, K <
s, N < ranks and N = 0.  The fingerprints are those of every other build
(tests/expected/fingerprints)."""
import os
import re
import tempfile

import h5py
import numpy as np

from tap import FULL, SOURCE, claim, done_testing, gpu_present, ok, sagitta, skip

EXPECTED = os.path.join(SOURCE, "tests", "expected", "fingerprints")
ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")

# A cut is one division of the work.  CUTS have each value of each option at least once, and the
# extreme combinations.
CUTS = [
    dict(ranks=2, tile=64, block=77, threads=2, filter="on"),
    dict(ranks=3, tile=1000, block=4096, variant="baseline", filter="auto"),
    dict(ranks=5, tile=4096, variant="avx2", filter="on"),
    dict(ranks=8, tile=64, variant="avx512", filter="on"),
    dict(ranks=1, tile=1000, block=77, threads=2, variant="avx512"),
]
# Sanitizers are slow, and look for faults, not for wrong bits: fewer cuts.
SANITIZED = os.environ.get("SANITIZED")
if SANITIZED:
    CUTS = CUTS[:1]
if os.environ.get("CUTS") == "few":  # cuts that depend on the compiler, not on ranks
    CUTS = [CUTS[1], dict(ranks=1, variant="avx2", filter="on"), CUTS[4]]
# The same on GPUs.  Ranks share GPUs if there are fewer.
GPU_CUTS = [
    dict(ranks=1, device="cuda"),
    dict(ranks=1, device="cuda", filter="on"),
    dict(ranks=2, tile=64, block=77, device="cuda", filter="on"),
    dict(ranks=2, tile=64, block=77, device="cuda"),
    dict(ranks=4, tile=1000, device="cuda", filter="auto"),
]
ONE_ROW = dict(ranks=2, tile=1000, block=1, variant="avx2", filter="on")
TURN = 2  # number of cuts of each case, unless all are asked for; three cases run all CUTS


def expected():
    with open(EXPECTED) as f:
        return dict(line.split() for line in f if line.strip() and line[0] != "#")


class Case:
    """A data set with its options.  run() encodes it with one cut."""

    def __init__(self, folder, name, rows, dictionary, *options):
        self.folder, self.name = folder, name
        self.words = ["--rows", rows, "--dictionary", dictionary, *map(str, options)]

    def run(self, label, ranks=1, tile=None, block=None, threads=1, variant=None,
            device="cpu", filter="off"):
        out = os.path.join(self.folder, f"{self.name}-{label}.h5")
        words = ["encode", *self.words, "--output", out, "--threads", threads, "--device",
            device, "--filter", filter]
        for key, value in (("tile", tile), ("block", block), ("cpu-variant", variant)):
            words += [f"--{key}", value] if value else []
        done = sagitta(*words, ranks=ranks)
        mark = re.search(r"fingerprint=([0-9a-f]{16})", done.stderr)
        return out, done, mark and mark.group(1)


def check_case(case, cuts, want, found):
    base, done, mark = case.run("base", ranks=1)
    if not ok(done.returncode == 0 and mark, f"{case.name}: one rank"):
        print("#", done.stderr.replace("\n", "\n# "))
        return
    found[case.name] = mark
    if not SANITIZED:  # sanitizers get fewer rows
        ok(mark == want.get(case.name), f"{case.name}: fingerprint {mark} is that of other builds")
    for i, cut in enumerate(cuts):
        text = f"{case.name}: " + " ".join(f"{k}={v}" for k, v in cut.items())
        out, done, _ = case.run(i, **cut)
        if done.returncode == 69:
            skip(f"{text}: this processor lacks these instructions")
            continue
        same = sagitta("diff", base, out)
        if not ok(done.returncode == 0 and same.returncode == 0, text):
            print("#", (done.stderr + same.stdout + same.stderr).replace("\n", "\n# "))
        if os.path.exists(out):
            os.remove(out)


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        raise SystemExit(1)


def synth(folder, name, *words):
    out = os.path.join(folder, name)
    need(sagitta("synth", *words, "--output", out, ranks=1))
    return os.path.join(out, "rows.h5"), os.path.join(out, "dictionary.h5")


def odd_rows(folder):
    """Zero rows, equal rows, and a dictionary with exact duplicates and opposite atoms."""
    random = np.random.default_rng(7)
    atoms = random.standard_normal((300, 40)).astype(np.float32)
    atoms[150:200], atoms[200:250] = atoms[:50], -atoms[50:100]
    atoms /= np.sqrt(np.sum(atoms.astype(np.float64) ** 2, 1))[:, None].astype(np.float32)
    rows = random.standard_normal((203, 40)).astype(np.float32)
    rows[3], rows[77:99], rows[100:110] = 0, 0, rows[5]
    rows[120:140] = 3 * atoms[:20]
    paths = [os.path.join(folder, n) for n in ("odd-rows.npy", "odd-atoms.npy")]
    np.save(paths[0], rows)
    np.save(paths[1], atoms)
    return paths


def cases(folder):
    trig = synth(folder, "trig", "--kind", "trig")
    wide = synth(folder, "wide", "--kind", "trig", "--n-rows", 256, "--atoms",
        2048 if SANITIZED else 32768, "--columns", 64)
    yield Case(folder, "trig", *trig, "--top-s", 4), CUTS + [ONE_ROW]
    yield Case(folder, "trig-four-rounds", *trig, "--top-s", 4, "--rounds", 4), CUTS + [ONE_ROW]
    yield Case(folder, "trig-wide", *wide, "--top-s", 4, "--cosine-limit", 0), CUTS
    real = os.path.join(folder, "real.h5")
    need(sagitta("seed", "--rows", ROWS, "--atoms", 1024, "--center", "--output", real, ranks=2))
    rows = ROWS
    if SANITIZED:
        rows = os.path.join(folder, "real.npy")
        with h5py.File(ROWS) as f:
            np.save(rows, f["rows"][:500])
    yield Case(folder, "real", rows, real, "--top-s", 16), CUTS
    yield Case(folder, "real-four-rounds", rows, real, "--top-s", 16, "--rounds", 4), CUTS
    yield Case(folder, "real-rho", rows, real, "--top-s", 7, "--rounds", 3, "--rho", 0.5), CUTS[:2]
    yield Case(folder, "real-nonnegative", rows, real, "--top-s", 16, "--rounds", 4, "--rho", 0.1,
        "--codes", "nonnegative"), CUTS
    planted = synth(folder, "planted", "--n-rows", 300, "--atoms", 2048 if SANITIZED else 32768,
        "--columns", 64)
    yield Case(folder, "planted", *planted, "--cosine-limit", 0), CUTS
    frames = synth(folder, "frames", "--n-rows", 333, "--atoms", 500, "--columns", 32, "--frame", 3)
    yield Case(folder, "frames", *frames, "--top-s", 5), CUTS
    yield Case(folder, "frames-rounds", *frames, "--top-s", 5, "--rounds", 4), CUTS
    odd = odd_rows(folder)
    yield Case(folder, "odd", *odd, "--top-s", 12), CUTS + [ONE_ROW]
    yield Case(folder, "odd-rounds", *odd, "--top-s", 12, "--rounds", 12), CUTS
    yield Case(folder, "odd-nonnegative", *odd, "--top-s", 12, "--rounds", 12, "--codes",
        "nonnegative"), CUTS + [ONE_ROW]
    few = os.path.join(folder, "few.npy")
    np.save(few, np.load(odd[1])[:5])
    yield Case(folder, "fewer-atoms-than-s", odd[0], few, "--top-s", 12), CUTS
    for n in (0, 1, 3):
        path = os.path.join(folder, f"rows-{n}.npy")
        np.save(path, np.load(odd[0])[:n])
        yield Case(folder, f"rows-{n}", path, odd[1], "--top-s", 12, "--rounds", 2), CUTS


def main():
    want, found = expected(), {}
    with tempfile.TemporaryDirectory() as folder:
        gpu = GPU_CUTS if gpu_present() else []
        only_gpu = os.environ.get("CUTS") == "gpu"
        for i, (case, cuts) in enumerate(cases(folder)):
            if not (FULL or SANITIZED or os.environ.get("CUTS")):
                cuts = [CUTS[(TURN * i + j) % len(CUTS)] for j in range(TURN)] + cuts[len(CUTS):]
            with claim(f"{case.name}: any cut gives the bits of one rank and of other builds"):
                check_case(case, gpu if only_gpu else cuts + gpu, want, found)
    if os.environ.get("RECORD"):
        with open(EXPECTED, "w") as f:
            f.write("# encode of each data set of test_partition.py\n")
            f.writelines(f"{name} {mark}\n" for name, mark in found.items())
    done_testing()


main()
