# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a fit by parts reads the next part while it uses the present one, from files of any
format.  A bad row is named as in a fit that does not read ahead."""
import json
import os
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, later_wins, need, ok, sagitta, same

SLOW = os.path.join(os.environ["builddir"], "tests/slow.so")
N, P, PART = 40960, 128, 8192
RATE = 8e6  # bytes per second of a file of rows
FIT = ["--atoms", 512, "--top-s", 8, "--find", "codes", "--update", "joint",
       "--holdout-share", 0.01, "--minibatch", PART, "--sweeps", 1, "--threads", 1,
       "--device", "cpu", "--force"]


def fit(rows, output, *words, ranks=0, slow=False):
    more = {"LD_PRELOAD": SLOW, "SLOW_OF": os.path.basename(rows), "SLOW_READ": str(RATE)}
    os.environ.update(more if slow else {})
    try:
        return sagitta(*later_wins("fit", "--rows", rows, "--output", output, *FIT, *words),
                       ranks=ranks)
    finally:
        for name in more if slow else ():
            del os.environ[name]


def waited(folder):
    """Seconds that the fit waited for parts."""
    with open(f"{folder}/run.json", encoding="utf-8") as f:
        return sum(phase["most"] for phase in json.load(f)["phases"] if phase["name"] == "read")


@claim("with a slow file a fit waits for less than half of the time of reading, and has the bytes "
       "of a fast file")
def check_slow(folder):
    need(fit(f"{folder}/rows.npy", f"{folder}/fast"), "a fast file")
    for name in "rows.npy", "rows.h5":
        need(fit(f"{folder}/{name}", f"{folder}/slow", slow=True), name)
        seconds, reading = waited(f"{folder}/slow"), N * P * 2 / RATE
        ok(seconds < reading / 2, f"{name}: waited {seconds} s, to read takes {reading} s")
        same(f"{folder}/fast/state.h5", f"{folder}/slow/state.h5", name)


@claim("a row that is not finite is named, also on several ranks")
def check_bad(folder):
    rows = np.load(f"{folder}/rows.npy")
    rows[3 * PART + 4200, 5] = np.nan
    np.save(f"{folder}/bad.npy", rows)
    for ranks in 0, 3:
        done = fit(f"{folder}/bad.npy", f"{folder}/bad", "--uncentered", "--holdout-share", 0,
                   ranks=ranks)
        ok(done.returncode == 65 and f"row {3 * PART + 4200}" in done.stderr and
           "sweep   2" in done.stderr,
           f"{ranks} ranks: exit {done.returncode} {done.stderr[-600:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        random = np.random.default_rng(1)
        atoms = random.standard_normal((512, P))
        codes = random.random((N, 512)) * (random.random((N, 512)) < 0.02)
        rows = (codes @ atoms + 0.1 * random.standard_normal((N, P))).astype(np.float16)
        np.save(f"{folder}/rows.npy", rows)
        with h5py.File(f"{folder}/rows.h5", "w") as f:
            f["rows"] = rows
        check_slow(folder)
        check_bad(folder)
    done_testing()


if __name__ == "__main__":
    main()
