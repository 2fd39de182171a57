# SPDX-License-Identifier: BSD-3-Clause
"""Claim: synth --kind world makes rows that are sums of the features of truth.h5.  How often
features fire follows the statistics of (N.31).  The bytes are the same on any number of ranks and
for any block."""
import os
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta


class World:
    """The files of one run of synth."""

    def __init__(self, folder, name, *words, ranks=0):
        self.path = os.path.join(folder, name)
        self.done = sagitta("synth", "--kind", "world", "--output", self.path, *words, ranks=ranks)
        if self.done.returncode:
            print("#", self.done.stderr.replace("\n", "\n# "))
            return
        with h5py.File(os.path.join(self.path, "truth.h5")) as f:
            self.truth = {name: f["truth"][name][...] for name in f["truth"]}
        with h5py.File(os.path.join(self.path, "rows.h5")) as f:
            self.rows = f["rows"][...]
        with h5py.File(os.path.join(self.path, "dictionary.h5")) as f:
            self.atoms = f["atoms"][...]
        self.row = np.repeat(np.arange(len(self.rows)), np.diff(self.truth["indptr"]))
        self.fires = np.zeros((len(self.rows), len(self.atoms)), np.float32)
        self.fires[self.row, self.truth["indices"]] = self.truth["data"]

    def equals(self, other):
        return (self.rows.tobytes() == other.rows.tobytes()
                and self.truth.keys() == other.truth.keys()
                and all(v.tobytes() == other.truth[k].tobytes() for k, v in self.truth.items()))


@claim("any ranks and blocks give the same bytes; rows that are made alone are those of the whole "
       "world")
def check_cuts(folder):
    words = ["--atoms", 200, "--columns", 24, "--trees", 2, "--n-rows", 150, "--seed", 3]
    base = World(folder, "base", *words)
    ok(base.done.returncode == 0 and np.array_equal(base.atoms, base.truth["features"]),
       "dictionary.h5 has the features")
    for ranks, block in ((2, 0), (3, 7), (5, 1)):
        other = World(folder, f"cut-{ranks}", *words, "--block", block, ranks=ranks)
        ok(other.equals(base), f"{ranks} ranks, blocks of {block}")
    later = World(folder, "later", *words[:-4], "--seed", 3, "--n-rows", 50, "--first-row", 100)
    ok(np.array_equal(later.rows, base.rows[100:])
       and np.array_equal(later.fires, base.fires[100:]), "rows 100 to 149 by themselves")
    other = World(folder, "other", *words[:-1], 4)
    ok(not np.isin(other.rows, base.rows).any(), "another seed, another world")
    for name in ("rows.h5", "dictionary.h5", "truth.h5"):
        ok(sagitta("verify", os.path.join(base.path, name)).returncode == 0, f"verify {name}")


@claim("each row is the bias plus the sum of its features")
def check_sums(folder):
    w = World(folder, "sums", "--atoms", 512, "--n-rows", 300)
    rows, vectors = np.tile(w.truth["bias"], (300, 1)), w.atoms.astype(np.float64)
    for i, atom, code in zip(w.row, w.truth["indices"], w.truth["data"].astype(np.float64)):
        rows[i] += code * vectors[atom]
    ok(np.array_equal(rows.astype(np.float32), w.rows), "to the bit, features ascending")
    ok(abs(np.linalg.norm(w.truth["bias"]) - 0.5) < 1e-12, "the bias has norm 0.5")
    ok(np.abs(np.linalg.norm(w.atoms, axis=1) - 1).max() < 1e-6, "features have norm 1")


@claim("features fire as often as they should, children with their parents and one at a time per "
       "parent")
def check_statistics(folder):
    n = 30000
    w = World(folder, "large", "--atoms", 2048, "--n-rows", n, ranks=2)
    often, parent = (w.fires > 0).mean(0), w.truth["parent"]
    p = w.truth["probability"]
    zipf = (np.arange(1, 2049)**-0.5 - 2048**-0.5) / (1 - 2048**-0.5)
    ok(np.abs(p - (5e-4 + (0.3 - 5e-4) * zipf)).max() < 1e-12, "probabilities follow Zipf")
    alone = parent < 0
    ok((np.abs(often - p) < 5 * np.sqrt(p / n) + 1e-6)[alone].mean() > 0.995,
       "features without a parent fire with their probability")
    ok((~alone).sum() == 16 * 84 and (parent[16:1360] >= 0).all(),
       "there are 16 trees of 85 features")
    child = np.flatnonzero(~alone)
    ok(((w.fires[:, child] > 0) <= (w.fires[:, parent[child]] > 0)).all(),
       "a child fires only with its parent")
    siblings = (w.fires[:, 16:1360] > 0).reshape(n, -1, 4).sum(2)
    ok(siblings.max() == 1 and siblings.sum() > n / 2,
       "a child never fires together with a sibling")
    sizes = np.array([w.fires[w.fires[:, a] > 0, a].mean() for a in range(16)])
    ok(np.abs(sizes - (5 - np.arange(16) / 2047)).max() < 0.1, "magnitudes have their means")
    first = w.fires[:, 0] > 0
    both = first & (w.fires[:, 16] > 0)
    scale = np.corrcoef(w.fires[both, 0], w.fires[both, 16])[0, 1]
    ok(both.sum() > 100 and scale > 0.2, f"a child grows with its parent: {scale:.2f}")
    overlaps = w.atoms.astype(np.float64) @ w.atoms.T
    np.fill_diagonal(overlaps, 0)
    # the least mean square of the overlaps of 2,048 unit vectors in 128 columns (Welch 1974)
    bound = (2048 / 128 - 1) / 2047
    ok((overlaps**2).sum() / (2048 * 2047) < 1.001 * bound, "squared overlaps are least")
    z = (w.fires[:, :16] > 0).astype(float)
    c = np.corrcoef(z.T)[np.triu_indices(16, 1)]
    ok(0.01 < np.sqrt((c**2).mean()) < 0.1, "firing is correlated, weakly")


@claim("impossible data are refused")
def check_refused(folder):
    path = os.path.join(folder, "refused")
    for words, code, text in (
            (["--atoms", 512, "--trees", 7], 2,
             "'--trees' is 7, whose 595 features are more than the 512 of '--atoms': at most 6 "
             "fit; lower '--trees' (-1: none), or raise '--atoms'"),
            (["--atoms", 500], 2, "'--columns' is missing"),
            (["--least", 0.5], 2, "'--least' is 0.5"),
            (["--least", 0], 2, "'--least' is 0"),
            (["--top-s", 4], 2, "'--top-s' says nothing about '--kind world'"),
            (["--noise", 0.5], 2, "'--noise' says nothing about '--kind world'")):
        done = sagitta("synth", "--kind", "world", "--output", path, *words, ranks=2)
        if not ok(done.returncode == code and done.stderr.count(text) == 1
                  and not os.path.exists(path), f"refused: {text}"):
            print("#", done.stderr.replace("\n", "\n# "))
    for words, text in ((["--trees", 2], "'--trees' says nothing about '--kind planted'"),
                        (["--kind", "trig", "--first-row", 2], "'--first-row' says nothing about")):
        done = sagitta("synth", "--output", path, *words)
        ok(done.returncode == 2 and text in done.stderr, f"refused: {text}")
    dry = sagitta("synth", "--kind", "world", "--output", path, "--dry-run")
    ok(dry.returncode == 0 and "16384 features" in dry.stdout and not os.path.exists(path),
       "a dry run")


@claim("worlds of one feature, of one column and without trees are made")
def check_corners(folder):
    one = World(folder, "one", "--atoms", 1, "--columns", 1, "--n-rows", 3)
    ok(one.done.returncode == 0 and abs(one.atoms[0, 0]) == 1, "one feature of one column")
    few = World(folder, "few", "--atoms", 8, "--columns", 16, "--trees", -1, "--n-rows", 40)
    ok((few.truth["parent"] == -1).all(), "no trees")
    gram = few.atoms.astype(np.float64) @ few.atoms.T
    ok(np.abs(gram - np.eye(8)).max() < 0.05, "few features are nearly orthogonal")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_cuts(folder)
        check_sums(folder)
        check_statistics(folder)
        check_refused(folder)
        check_corners(folder)
    done_testing()


main()
