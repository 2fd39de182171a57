# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the terminal pass names a dictionary by the hash that hashlib computes, for any order and
signs of atoms, and dumps the hashed bytes.  Bad inputs and places, too little memory and results of
other shapes are refused with their message."""
import hashlib
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta
from terminal_data import synthetic_problem, terminal


def atom_text(frame):
    values = frame.ravel().copy()
    best = len(values) - 1 - np.argmax(np.abs(values[::-1]))
    values = (-values if values[best] < 0 else values) + np.float32(0)
    return f"{frame.shape[0]}|{frame.shape[1]}|".encode() + values.astype("<f4").tobytes()


def hash_of(atoms):
    atoms = atoms[:, None, :] if atoms.ndim == 2 else atoms
    digests = sorted(hashlib.sha256(atom_text(a)).digest() for a in atoms)
    return hashlib.sha256(b"sagitta-dictionary-artifact-v1\n" + b"".join(digests)).hexdigest()


@claim("the hash of supports is hashlib's, for any order of atoms and any signs")
def hash_check(inputs, folder, path):
    with h5py.File(inputs[3]) as f:
        atoms = f["atoms"][:]
    with h5py.File(path) as f:
        stored = f["terminal"].attrs["artifact_sha256"]
    ok(stored == hash_of(atoms), f"artifact {stored[:12]} is hashlib's")
    terminal(*inputs, "--directions", 1, "--spectrum", "none", "--output", f"{folder}/dump",
             "--dump-artifact", f"{folder}/bytes")
    with open(f"{folder}/bytes", "rb") as f:
        ok(hashlib.sha256(f.read()).hexdigest() == stored, "the dump is what was hashed")
    with open(f"{folder}/bytes.atoms", "rb") as f:
        ok(f.read() == b"".join(atom_text(a.reshape(-1, atoms.shape[-1])) for a in atoms),
           "the atoms' texts too")
    order = np.random.default_rng(1).permutation(len(atoms))
    ok(hash_of(-atoms[order]) == stored, "(order and sign leave NumPy's hash alone)")
    changed = atoms.copy()
    changed[3, 5] = np.nextafter(changed[3, 5], np.float32(2))
    # of equal largest magnitudes the last one decides the sign; -0 is hashed as 0
    ties = np.full_like(atoms, -0.0)
    for i, atom in enumerate(ties):
        atom[i], atom[i + 1] = np.sqrt([0.5, 0.5]) * [[1, -1], [-1, 1], [-1, -1]][i % 3]
    for name, new, same in (("order", atoms[order], 1), ("sign", atoms * -1, 1),
                            ("one bit", changed, 0), ("everything", ties, 0)):
        with h5py.File(f"{folder}/other.h5", "w") as f:
            f["atoms"] = new
        with h5py.File(inputs[5]) as f, h5py.File(f"{folder}/turned.h5", "w") as out:
            f.copy("supports", out)
            if name == "order":
                place = np.argsort(order).astype(np.int32)
                out["supports/indices"][:] = place[f["supports/indices"][:]]
        done = terminal("--rows", inputs[1], "--dictionary", f"{folder}/other.h5", "--supports",
                        f"{folder}/turned.h5", "--directions", 1, "--spectrum", "none",
                        "--output", f"{folder}/other")
        with h5py.File(f"{folder}/other/terminal.h5") as f:
            got = f["terminal"].attrs["artifact_sha256"]
        ok(done.returncode == 0 and (got == stored) == bool(same) and got == hash_of(new),
           f"{name} changed: the hash {'stays' if same else 'changes'}")


@claim("bad inputs and places are refused with their message")
def failures_check(inputs, folder):
    done = terminal(*inputs, "--output", f"{folder}/f", "--memory-limit", 1)
    said = re.search(r"needs (\d+) bytes on the machine of rank 0 .* (\d+) are", done.stderr)
    ok(done.returncode == 71 and said and int(said[1]) > int(said[2]) == 1 << 20 and
       not os.path.exists(f"{folder}/f/terminal.h5"), f"memory: {done.stderr.strip()[-160:]}")
    least = re.search(r"a smaller --workspace, of (\d+) MiB at least", done.stderr)
    done = terminal(*inputs, "--output", f"{folder}/f", "--memory-limit", 500, "--workspace",
                    least[1] if least else 1)
    ok(done.returncode == 0, f"with the workspace that the message names: {done.stderr[-300:]}")
    shutil.rmtree(f"{folder}/f")
    done = terminal(*inputs, "--output", f"{folder}/f", "--workspace", 1)
    ok(done.returncode == 2 and "--workspace" in done.stderr, "a workspace without room")
    with h5py.File(inputs[5]) as f, h5py.File(f"{folder}/bad.h5", "w") as out:
        f.copy("supports", out)
        out["supports/data"][17] = np.nan
    done = terminal(*inputs[:4], "--supports", f"{folder}/bad.h5", "--output", f"{folder}/f")
    ok(done.returncode == 65 and "row 5" in done.stderr, f"a NaN code: {done.stderr.strip()}")
    with h5py.File(f"{folder}/empty.h5", "w") as out:
        out["atoms"] = np.zeros((0, 32), np.float32)
    done = terminal(*inputs[:2], "--dictionary", f"{folder}/empty.h5", *inputs[4:], "--output",
                    f"{folder}/f")
    ok(done.returncode == 65 and "0 atoms" in done.stderr, f"no atoms: {done.stderr.strip()}")
    with h5py.File(inputs[3]) as f, h5py.File(f"{folder}/twice.h5", "w") as out:
        out["atoms"] = f["atoms"][:]
        out["atoms"][7] = -out["atoms"][2]
    done = terminal(*inputs[:2], "--dictionary", f"{folder}/twice.h5", *inputs[4:], "--output",
                    f"{folder}/f")
    ok(done.returncode == 65 and "another dictionary" in done.stderr, "codes of another dictionary")
    with h5py.File(inputs[5]) as f, h5py.File(f"{folder}/plain.h5", "w") as out:
        f.copy("supports", out)  # the copy names no inputs
    done = terminal(*inputs[:2], "--dictionary", f"{folder}/twice.h5", "--supports",
                    f"{folder}/plain.h5", "--output", f"{folder}/f")
    ok(done.returncode == 0 and "near duplicates: 2 and 7" in done.stderr,
       "atoms that are nearly equal are named")
    ok(not os.path.exists(f"{folder}/f/bytes"), "no dump is written unless it is asked for")
    with h5py.File(inputs[5]) as f, h5py.File(f"{folder}/ragged.h5", "w") as out:
        f.copy("supports", out)
        for name in ("indices", "data"):
            del out[f"supports/{name}"]
            out[f"supports/{name}"] = f[f"supports/{name}"][:-1]
        del out["supports/score"]
        out["supports/indptr"][-1] -= 1
    done = terminal(*inputs[:4], "--supports", f"{folder}/ragged.h5", "--output", f"{folder}/f")
    ok(done.returncode == 65 and "every row is to have as many atoms" in done.stderr,
       f"a row with fewer atoms: {done.stderr.strip()[-100:]}")
    done = terminal(*inputs, "--output", inputs[3])
    ok(done.returncode == 73 and "would replace an input" in done.stderr, "an input as the result")
    for place in ("nowhere/bytes", "bytes"):
        done = sagitta("terminal", *inputs, "--output", f"{folder}/g", "--dump-artifact",
                       f"{folder}/{place}")
        ok(done.returncode == 73 and place in done.stderr and
           not os.path.exists(f"{folder}/g/terminal.h5"), f"no dump to {place}, before the work")


@claim("results of other shapes are refused, with the array's name")
def shapes_check(folder, path):
    """Arrays of other shapes and sizes are refused with the name of the object."""
    changes = (("border", (3,), "i8"), ("border", (2 ** 62,), "i8"),
               ("covariance_blocks", (24, 2 ** 31, 2 ** 31), "f8"),
               ("covariance_blocks", (24, 2, 3), "f8"), ("cross_pair", (20, 3), "i4"),
               ("cross_strength", (19,), "f8"), ("cross_blocks", (2 ** 40, 2, 2), "f8"))
    for name, shape, kind in changes:
        shutil.copy(path, f"{folder}/shape.h5")
        with h5py.File(f"{folder}/shape.h5", "r+") as f:
            del f[f"terminal/{name}"]
            f.create_dataset(f"terminal/{name}", shape, kind, chunks=(1,) * len(shape))
        codes = [sagitta(*words, f"{folder}/shape.h5") for words in
                 (("verify",), ("inspect",), ("diff", path))]
        ok(codes[0].returncode in (1, 65) and name in codes[0].stderr + codes[0].stdout and
           codes[1].returncode in (0, 65) and codes[2].returncode in (1, 65),
           f"{name} {shape}: {[done.returncode for done in codes]} {codes[0].stderr.strip()[-90:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        plain = synthetic_problem(folder, "plain", "--n-rows", 1500, "--columns", 32, "--atoms", 24,
                                  "--top-s", 3, "--noise", 0.05)
        path = f"{folder}/t/terminal.h5"
        terminal(*plain, "--directions", 2, "--cross", 20, "--output", f"{folder}/t")
        page = sagitta("inspect", path).stdout
        ok(all(w in page for w in ("half_log_det", "least determined", "strongest couplings",
                                   "artifact")), "the page of inspect")
        ok(sagitta("verify", path).returncode == 0, "verify")
        hash_check(plain, folder, path)
        failures_check(plain, folder)
        shapes_check(folder, path)
        done = terminal(*plain, "--dry-run")
        ok(done.returncode == 0 and "border" in done.stdout, "--dry-run")
    done_testing()


main()
