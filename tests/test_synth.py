# SPDX-License-Identifier: BSD-3-Clause
"""Claim: synth makes what it promises: the bytes of the fixtures, rows that are their planted sums,
noise of the given size, and starts at the given cosine.  They are the same on any number of ranks
and for any block."""
import hashlib
import os
import re
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, later_wins, ok, sagitta

# SHA-256 of the little-endian f32 values of the fixture (doc/numerics.md): rows, atoms.
FIXTURE = {
    (512, 4096, 48): ("a2657f0cfa484259308a5da8d8c44092a766db8b717138d784a127a2a21d2ce9",
                      "97b0a350680e9f300a41ec6e0ba275792b868cc00196392476214cd27703be10"),
    (256, 32768, 64): ("044027a03f5f3521c2eefaf9fac382dccad5020714ebcd8d2be10361ee815f34",
                       "e6873ac396ef1f467b48461493d00af52b0eb1aacc172777d487b9f086783106"),
}


class Data:
    """The files of one run of synth."""

    def __init__(self, folder, name, *words, ranks=0):
        self.place = os.path.join(folder, name)
        self.done = sagitta("synth", "--output", self.place, *words, ranks=ranks)
        if self.done.returncode:
            print("#", self.done.stderr.replace("\n", "\n# "))
        self.marks = re.findall(r"fingerprint=([0-9a-f]{16})", self.done.stderr)
        self.values = {}
        for file, paths in (("rows", ("rows", "planted/atoms", "planted/codes")),
                            ("dictionary", ("atoms",)), ("start", ("atoms",))):
            path = os.path.join(self.place, file + ".h5")
            if os.path.exists(path):
                with h5py.File(path) as f:
                    self.values.update({f"{file}/{p}": f[p][...] for p in paths if p in f})

    def __getitem__(self, name):
        return self.values[name]

    def equals(self, other):
        return (self.marks == other.marks and self.values.keys() == other.values.keys()
                and all(v.tobytes() == other[k].tobytes() for k, v in self.values.items()))


def sums(data):
    """The planted sum of each row: one float64 chain over atoms and their vectors."""
    chosen, codes = data["rows/planted/atoms"], data["rows/planted/codes"].astype(np.float64)
    atoms = data["dictionary/atoms"].astype(np.float64)
    if atoms.ndim == 2:
        atoms, codes = atoms[:, None], codes[:, :, None]
    total = np.zeros((len(chosen), atoms.shape[2]))
    for j in range(chosen.shape[1]):
        for m in range(atoms.shape[1]):
            total = total + codes[:, j, m, None] * atoms[chosen[:, j], m]
    return total


@claim("the fixtures have the bytes that are recorded")
def check_fixture(folder):
    for (n, k, p), want in FIXTURE.items():
        words = ["--kind", "trig", "--n-rows", n, "--atoms", k, "--columns", p]
        data = Data(folder, f"trig-{k}", *words, ranks=2)
        got = tuple(hashlib.sha256(data[v].astype("<f4").tobytes()).hexdigest()
                    for v in ("rows/rows", "dictionary/atoms"))
        if not ok(got == want, f"the bytes of the fixture of {k} atoms"):
            print("#", got)
        c = np.arange(p)
        x = 0.9 * np.sin(0.013 * (31 * np.arange(n)[:, None] + 17 * c))
        d = np.cos(0.011 * (7 * np.arange(k)[:, None] + 5 * c))
        d /= np.linalg.norm(d, axis=1)[:, None]
        ok(np.abs(x - data["rows/rows"]).max() < 6e-8, "rows are sines to a rounding")
        ok(np.abs(d - data["dictionary/atoms"]).max() < 6e-8, "atoms are cosines to two roundings")
    plain = Data(folder, "trig", "--kind", "trig")
    ok(plain["rows/rows"].shape == (512, 48) and plain["dictionary/atoms"].shape == (4096, 48),
       "the small fixture is the default")


def check_cuts(folder, label, *words):
    base = Data(folder, label, *words, ranks=1)
    ok(base.done.returncode == 0 and len(base.marks) >= 2, f"{label}: one rank")
    for ranks, block in ((2, 0), (3, 7), (5, 64), (1, 1)):
        other = Data(folder, f"{label}-{ranks}-{block}", *words, "--block", block, ranks=ranks)
        ok(other.equals(base), f"{label}: {ranks} ranks, blocks of {block}")
    return base


@claim("rows are planted sums of orthonormal frames, for any ranks and blocks")
def check_planted(folder, d):
    data = check_cuts(folder, f"frames-{d}", "--n-rows", 200, "--atoms", 60, "--columns", 24,
        "--frame",
                      d, "--noise", 0, "--start-cosine", 0.8, "--top-s", 5, "--seed", 11)
    ok(data["dictionary/atoms"].shape == ((60, 24) if d == 1 else (60, d, 24)),
        "shape of the atoms")
    ok(np.array_equal(sums(data).astype(np.float32), data["rows/rows"]),
        "rows are the planted sums")
    frames = data["dictionary/atoms"].reshape(60, d, 24).astype(np.float64)
    start = data["start/atoms"].reshape(60, d, 24).astype(np.float64)
    for name, f in (("planted", frames), ("start", start)):
        error = np.abs(np.einsum("kmp,knp->kmn", f, f) - np.eye(d)).max()
        ok(error < 1e-6, f"{name} vectors are orthonormal to {error:.1e}")
    cosines = np.einsum("kmp,knp->kmn", frames, start)
    ok(np.abs(cosines - 0.8 * np.eye(d)).max() < 1e-6, "the start has the cosine, frame by frame")
    chosen = data["rows/planted/atoms"]
    ok(all(len(set(row)) == 5 for row in chosen) and chosen.min() >= 0 and chosen.max() < 60,
       "five distinct atoms a row")


@claim("noise, codes and atoms have the statistics that were asked for")
def check_statistics(folder):
    n, k, p, s, sigma = 20000, 200, 40, 6, 0.25
    data = Data(folder, "large", "--n-rows", n, "--atoms", k, "--columns", p, "--top-s", s,
        "--noise",
                sigma, ranks=2)
    noise = (data["rows/rows"] - sums(data)) / sigma
    count = noise.size
    ok(abs(noise.mean()) < 5 / count**0.5, f"noise has mean {noise.mean():.1e}")
    ok(abs(noise.var() - 1) < 5 * (2 / count)**0.5, f"noise has variance {noise.var():.4f}")
    ok(abs((noise**4).mean() - 2.9) < 0.05, "noise has the kurtosis of twelve uniforms, 2.9")
    ok(abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 5 / n**0.5, "columns are independent")
    ok(abs(np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]) < 5 / n**0.5, "rows are independent")
    codes = data["rows/planted/codes"]
    ok(np.abs(codes).min() >= 0.5 and np.abs(codes).max() < 1.5, "codes have a size of 0.5 to 1.5")
    ok(abs(np.sign(codes).mean()) < 5 / codes.size**0.5 and abs(np.abs(codes).mean() - 1) < 0.005,
       "codes have both signs equally often")
    often = np.bincount(data["rows/planted/atoms"].ravel(), minlength=k) / (n * s / k)
    ok(np.abs(often - 1).max() < 5 / (n * s / k)**0.5, "atoms are chosen alike")
    pairs = np.corrcoef(data["rows/planted/atoms"].T)[np.triu_indices(s, 1)]
    ok(np.abs(pairs).max() < 0.05, "atoms are chosen independently")
    inner = data["dictionary/atoms"] @ data["dictionary/atoms"].T
    rms = np.sqrt((inner[np.triu_indices(k, 1)]**2).mean())
    ok(abs(rms * p**0.5 - 1) < 0.03, "atoms point anywhere")
    short = Data(folder, "short", "--n-rows", 50, "--atoms", k, "--columns", p, "--top-s", s,
        "--noise",
                 sigma)
    ok(np.array_equal(short["rows/rows"], data["rows/rows"][:50]), "a row does not depend on N")
    other = Data(folder, "other", "--n-rows", 50, "--atoms", k, "--columns", p, "--seed", 1)
    ok(not np.isin(other["rows/rows"], short["rows/rows"]).any(), "another seed, other rows")


@claim("--frequencies zipf chooses each octave of atoms about as often")
def check_zipf(folder):
    n, k, s = 20000, 511, 4
    data = Data(folder, "zipf", "--n-rows", n, "--atoms", k, "--columns", 8, "--top-s", s,
                "--frequencies", "zipf")
    often = np.bincount(data["rows/planted/atoms"].ravel(), minlength=k)
    octaves = [often[2**e - 1:2**(e + 1) - 1].sum() / (n * s) for e in range(2, 9)]
    ok(min(octaves) > 0.08 and max(octaves) < 0.14, "octaves of atoms are chosen alike")
    chosen = np.sort(data["rows/planted/atoms"], 1)
    ok((np.diff(chosen, axis=1) > 0).all(), "atoms of a row are distinct")
    all_of = Data(folder, "all", "--n-rows", 9, "--atoms", 6, "--columns", 8, "--top-s", 6,
                  "--frequencies", "zipf")
    ok((np.sort(all_of["rows/planted/atoms"], 1) == np.arange(6)).all(), "all atoms, each once")


@claim("data of one atom or one column are made, and a start at cosine 1 is the dictionary")
def check_corners(folder):
    few = check_cuts(folder, "few", "--n-rows", 2, "--atoms", 1, "--columns", 1, "--top-s", 1)
    ok(np.abs(few["dictionary/atoms"]) == 1, "one atom of one column")
    full = Data(folder, "full", "--n-rows", 3, "--atoms", 4, "--columns", 2, "--frame", 2,
        "--top-s", 4,
                "--start-cosine", 1)
    ok(np.array_equal(full["start/atoms"], full["dictionary/atoms"]), "a start at cosine 1")


@claim("impossible data are refused, and results are not replaced")
def check_refused(folder):
    place = os.path.join(folder, "refused")
    for words, code, text in (
            (["--top-s", 9, "--atoms", 8], 2, "'--top-s' is 9, more than the 8 atoms"),
            (["--frame", 4, "--columns", 3], 2, "'--frame' is 4, more than the 3 columns"),
            (["--frame", 4, "--columns", 7, "--start-cosine", 0.5], 2, "needs at least 8 columns"),
            (["--start-cosine", 1.5], 2, "start-cosine"),
            (["--kind", "cosine"], 2, "kind"),
            (["--kind", "trig", "--noise", 0.1], 2, "'--noise' says nothing about"),
            (["--kind", "trig", "--start-cosine", 0.1], 2, "'--start-cosine' says nothing about"),
            (["--kind", "trig", "--frame", 2], 2, "'--frame' says nothing about"),
            (["--output", place + ".h5"], 2, "give a folder")):
        done = sagitta(*later_wins("synth", "--output", place, *words), ranks=2)
        good = done.returncode == code and done.stderr.count(text) == 1
        if not ok(good and not os.path.exists(place), f"refused: {text}"):
            print("#", done.stderr.replace("\n", "\n# "))
    dry = sagitta("synth", "--output", place, "--dry-run", "--start-cosine", 0.5)
    ok(dry.returncode == 0 and "start.h5" in dry.stdout and not os.path.exists(place), "a dry run")
    data = Data(folder, "twice", "--n-rows", 5)
    os.remove(os.path.join(data.place, "rows.h5"))
    for words, code in (([], 73), (["--force"], 0)):
        done = sagitta("synth", os.path.join(data.place, "used.in"), *words)
        ok(done.returncode == code, f"a dictionary already exists: exit {done.returncode}")
    for name in ("rows.h5", "dictionary.h5"):
        ok(sagitta("verify", os.path.join(data.place, name)).returncode == 0, f"verify {name}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_fixture(folder)
        for d in (1, 3):
            check_planted(folder, d)
        check_statistics(folder)
        check_zipf(folder)
        check_corners(folder)
        check_refused(folder)
    done_testing()


main()
