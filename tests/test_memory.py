# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a rows file four times as large as the memory that a rank may have encodes within it; and
a fit whose rows do not fit names a --minibatch that does."""
import os
import re
import resource
import subprocess
import tempfile

import numpy as np

from tap import SAGITTA, claim, done_testing, later_wins, ok, sagitta, skip_all

LIMIT = 700 << 20  # of address space, of which an empty rank takes 224 MB
P = 512


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def rows_write(path):
    """A float16 file of four limits, mostly a hole: a few random rows at both ends."""
    rows = 4 * LIMIT // (2 * P)
    random = np.random.default_rng(1).standard_normal((64, P)).astype(np.float16)
    header = np.lib.format.header_data_from_array_1_0(random)
    header["shape"] = (rows, P)
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, header)
        start = f.tell()
        f.write(random.tobytes())
        f.seek(start + (rows - 64) * P * 2)
        f.write(random.tobytes())
    return rows


def fit(folder, room, *words, ranks=0):
    """A fit with so much address space for each process, of which arenas of threads take none."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    os.environ["MALLOC_ARENA_MAX"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
    try:
        return sagitta(*later_wins("fit", "--rows", f"{folder}/fit.npy", "--atoms", 64, "--top-s",
                                   4, "--rounds", 1, "--sweeps", 1, "--holdout-share", 0.01,
                                   "--threads", 1, "--device", "cpu", "--output", f"{folder}/fit",
                                   "--force", *words), ranks=ranks)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        del os.environ["MALLOC_ARENA_MAX"]


@claim("a fit whose rows do not fit in memory names a --minibatch that does, before it reads any")
def check_fit(folder):
    rows = np.random.default_rng(2).standard_normal((2048, 256)).astype(np.float16)
    np.save(f"{folder}/fit.npy", np.tile(rows, (96, 1)))
    for ranks, update in (0, "atoms"), (2, "auto"):
        probe = fit(folder, LIMIT, ranks=ranks)
        present = re.search(r"(\d+) are present", probe.stderr)
        if not ok(probe.returncode == 71 and present, f"a limit of {LIMIT}: {probe.stderr[-900:]}"):
            return
        room = LIMIT - int(present[1]) + (230 << 20)  # beside what an empty rank takes
        done = fit(folder, room, "--update", update, ranks=ranks)
        named = re.search(r"'--update joint --minibatch (\d+)' holds so many", done.stderr)
        if not ok(done.returncode == 71 and named and "mean    rows" not in done.stderr,
                  f"{update}, {ranks} ranks: exit {done.returncode} {done.stderr[-900:]}"):
            continue
        part = int(named[1])
        words = ["--update", "joint", "--minibatch"]
        done = fit(folder, room, *words, part, ranks=ranks)
        ok(done.returncode == 0, f"--minibatch {part}: {done.returncode} {done.stderr[-900:]}")
        done = fit(folder, room, *words, 16 * part, ranks=ranks)
        ok(done.returncode == 71 and f"--minibatch {part}'" in done.stderr,
           f"--minibatch {16 * part}: {done.returncode} {done.stderr[-900:]}")
    done = fit(folder, room, "--atoms", 5000)
    ok(done.returncode == 71 and "no '--minibatch' fits either" in done.stderr,
       f"exit {done.returncode} {done.stderr[-900:]}")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("address sanitizers reserve terabytes of address space")
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_write(f"{folder}/rows.npy")
        size = os.path.getsize(f"{folder}/rows.npy")
        ok(size >= 4 * LIMIT, f"{rows} rows, {size >> 20} MB, limit {LIMIT >> 20} MB")
        np.save(f"{folder}/atoms.npy", np.eye(8, P, dtype=np.float32))
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        done = subprocess.run(
            [SAGITTA, "encode", "--rows", f"{folder}/rows.npy", "--dictionary",
                f"{folder}/atoms.npy",
             "--top-s", "1", "--threads", "1", "--output", f"{folder}/run"],
            capture_output=True, text=True, env=environment, preexec_fn=limited)
        ok(done.returncode == 0,
            f"exit {done.returncode} {done.stderr[-300:] if done.returncode else ''}")
        small = subprocess.run(
            [SAGITTA, "encode", "--rows", f"{folder}/rows.npy", "--dictionary",
                f"{folder}/atoms.npy",
             "--top-s", "8", "--block", "1000000", "--output", f"{folder}/large"],
            capture_output=True, text=True, env=environment, preexec_fn=limited)
        ok(small.returncode == 71 and "bytes are needed (dictionary" in small.stderr
           and "are present for each rank" in small.stderr,
           f"a block that does not fit is refused: exit {small.returncode}")
        ok(not os.path.exists(f"{folder}/large"), "before anything is read or written")
        check_fit(folder)
    done_testing()


main()
