# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a rows file four times as large as the memory that a rank may have encodes within it."""
import os
import resource
import subprocess
import tempfile

import numpy as np

from tap import SAGITTA, done_testing, ok, skip_all

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
    done_testing()


main()
