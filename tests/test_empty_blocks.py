# SPDX-License-Identifier: BSD-3-Clause
"""Claim: verify accepts codes in which blocks of rows have no atoms, at the beginning, in the
middle or at the end, with any number of threads.  It finds an atom that is twice in a row after
such a block."""
import os
import tempfile

from tap import claim, done_testing, ok, peer_missing_all, sagitta

try:
    import h5py
    import numpy as np
except ImportError as error:
    peer_missing_all(str(error))

BLOCK, ATOMS, EACH = 65536, 20, 3  # BLOCK: rows that verify checks together


def write(path, blocks, twice=None):
    """Write CSR codes.  blocks: whether the rows of each block have atoms.  twice: a row in which
    an atom is repeated."""
    lengths = np.repeat(np.array(blocks, "i8") * EACH, BLOCK)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    entry = np.arange(indptr[-1])
    indices = ((entry // EACH * 7 + entry % EACH) % ATOMS).astype("i4")
    if twice is not None:
        indices[indptr[twice] + 1] = indices[indptr[twice]]
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        g.attrs["encoding-type"], g.attrs["encoding-version"] = "csr_matrix", "0.1.0"
        g.attrs["shape"] = np.array([len(lengths), ATOMS], "i8")
        g["indptr"], g["indices"], g["data"] = indptr, indices, np.ones(len(indices), "f4")
    return path


def verify(path, threads):
    os.environ["OMP_NUM_THREADS"] = str(threads)
    done = sagitta("verify", path)
    del os.environ["OMP_NUM_THREADS"]
    return done.returncode, done.stderr[-200:]


@claim("blocks of rows without atoms are accepted, and an error in a later block is found")
def check(folder):
    for blocks in (1, 0, 1), (0, 1), (1, 0, 0), (0, 0), (1, 0, 0, 1, 1), (1, 1, 0, 1):
        path = write(f"{folder}/codes.h5", blocks)
        for threads in 1, 4:
            code, text = verify(path, threads)
            ok(code == 0, f"{blocks}, {threads} threads: exit {code} {text}")
    row = 2 * BLOCK + 70
    path = write(f"{folder}/twice.h5", (1, 0, 1), row)
    for threads in 1, 4:
        code, text = verify(path, threads)
        ok(code == 65 and f"row {row} has atom" in text, f"twice: exit {code} {text}")


with tempfile.TemporaryDirectory() as main:
    check(main)
done_testing()
