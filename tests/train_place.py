# SPDX-License-Identifier: BSD-3-Clause
"""A folder with rows of planted atoms, and training on these rows, for tests of `sagitta train`."""
import os

import h5py
import numpy as np

from tap import fails, later_wins, need, sagitta

COLUMNS, ATOMS = 12, 30


def rows_make(random, n):
    """Rows with some planted atoms, and a mean."""
    atoms = np.random.default_rng(1).standard_normal((ATOMS, COLUMNS))
    codes = random.random((n, ATOMS)) * (random.random((n, ATOMS)) < 0.1)
    noise = random.standard_normal((n, COLUMNS))
    return (40 * (codes @ atoms + 3 + 0.05 * noise)).astype("f4")  # their mean square is far from 1


class Place:
    more = []  # options of every training of these tests

    def __init__(self, folder):
        random = np.random.default_rng(5)
        self.folder = folder
        np.save(self.at("rows.npy"), rows_make(random, 3000))
        np.save(self.at("held.npy"), rows_make(random, 700))

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def words(self, out, *words):
        common = ["train", "--rows", self.at("rows.npy"), "--holdout", self.at("held.npy"),
                  "--atoms", ATOMS, "--top-s", 3, "--batch", 200, "--epochs", 4, "--dead-rows", 400,
                  "--lr", 0.01, "--threads", 1, "--output", self.at(out)]
        return later_wins(*common, *self.more, *words)

    def train(self, out, *words, ranks=0):
        return sagitta(*self.words(out, *words), ranks=ranks)

    def result(self, out):
        return self.at(out, "dictionary.h5")

    def history(self, out):
        with h5py.File(self.result(out)) as f:
            return f["train/history"][...]


def stopped_over(folder, run):
    """Stop a job that is to replace the result in a folder, then resume it."""
    stop = os.path.join(folder, "STOP")
    open(stop, "w").close()
    fails(run("--force"), 75, ["--resume"], "stopped before an older result is replaced")
    os.remove(stop)
    need(run("--force", "--resume"), "resumed beside an older result")
