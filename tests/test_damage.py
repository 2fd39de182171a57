# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if a file has damaged chunks, `verify` names them: in every dataset each run of
neighbouring damaged chunks, by its first and last entry.  For supports it also names the rows of
these entries.  It names no undamaged chunk."""
import json
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta

CHUNK = 50  # entries
N, K = 300, 40


def supports_make(path):
    """Write rows of any length, also empty ones, as another program does."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 9, N)
    lengths[:3] = 0
    start = np.concatenate([[0], np.cumsum(lengths)]).astype("i8")
    atoms = np.concatenate([rng.permutation(K)[:m] for m in lengths]).astype("i4")
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        g.attrs["shape"] = np.array([N, K])
        g.attrs["encoding-type"], g.attrs["encoding-version"] = "csr_matrix", "0.1.0"
        for name, values in (("indptr", start), ("indices", atoms),
                             ("data", rng.random(len(atoms)).astype("f4") + 1)):
            g.create_dataset(name, data=values, chunks=(CHUNK,), fletcher32=True)
        f.create_dataset("packed", data=np.arange(400.0), chunks=(64,), compression="gzip",
                         fletcher32=True)
        f.create_dataset("table", data=np.ones((90, 7)), chunks=(8, 7), fletcher32=True)
    return start


def broken(path, damage, change):
    """A copy in which a chunk of each (dataset, number) is changed."""
    out = path + ".bad.h5"
    shutil.copy(path, out)
    with h5py.File(path) as f:
        places = [f[name].id.get_chunk_info(number) for name, number in damage]
    with open(out, "r+b") as f:
        for place in places:
            f.seek(place.byte_offset)
            old = f.read(place.size)
            f.seek(place.byte_offset)
            f.write(change(old))
    return out


def flip(old):
    at = len(old) // 3
    return old[:at] + bytes([old[at] ^ 16]) + old[at + 1:]


def found(path):
    done = sagitta("verify", path)
    lines = re.findall(r"^damaged +(/\S+)  (?:entries (\d+) to (\d+) of (\d+)"
                       r"(?:, rows (\d+) to (\d+))?|and more)$", done.stdout, re.M)
    return done, [(name, *(int(x) for x in rest if x)) for name, *rest in lines]


def wanted(start, shape, damage):
    """The runs of damaged chunks, for each dataset."""
    runs = []
    for name, number in sorted(damage):
        size, n = shape[name]
        if runs and runs[-1][0] == "/" + name and runs[-1][2] == number * size - 1:
            runs[-1][2] = min((number + 1) * size, n) - 1
        else:
            runs.append(["/" + name, number * size, min((number + 1) * size, n) - 1, n])
    for run in runs:
        if run[0] in ("/supports/data", "/supports/indices"):
            run += [int(np.searchsorted(start, e, "right")) - 1 for e in run[1:3]]
    return [tuple(r) for r in runs]


@claim("verify names every run of damaged chunks, by entries and rows, and no whole chunk")
def check_runs(folder):
    path = f"{folder}/of_another.h5"
    start = supports_make(path)
    with h5py.File(path) as f:
        shape = {name: (f[name].chunks[0], f[name].shape[0]) for name in
                 ("supports/indptr", "supports/indices", "supports/data", "packed", "table")}
    done, runs = found(path)
    ok(done.returncode == 0 and not runs, f"whole: {done.stderr}")
    last = (shape["supports/data"][1] - 1) // CHUNK
    for damage in ([("supports/data", 0)], [("supports/indices", last)], [("table", 11)],
                   [("supports/data", 3), ("supports/data", 4), ("supports/data", 6),
                    ("supports/indices", 6), ("table", 0)], [("packed", 2)],
                   [("supports/indptr", 5), ("table", 3)]):
        done, runs = found(broken(path, damage, flip))
        want = wanted(start, shape, damage)
        ok(done.returncode == 65 and runs == want, f"{damage}: {runs}, not {want} {done.stderr}")
        units = sum(-(-shape[name][1] // shape[name][0]) for name, _ in {d[0]: d for d in damage}
                    .values())
        said = re.search(r"that are not what was written: (\d+) of (\d+), first entries (\d+) to",
                         done.stderr)
        ok(said and tuple(map(int, said.groups())) == (len(damage), units, want[0][1]) and
           f"of '{want[0][0]}'" in done.stderr, f"{damage}: {done.stderr}")
    page = json.loads(sagitta("verify", broken(path, [("table", 1)], flip), "--json").stdout)
    ok("first entries 8 to 15 of 90" in json.dumps(page), f"--json: {page}")


@claim("in Sagitta's own files verify finds a flipped bit, a lost chunk and a changed value, on "
       "any number of threads")
def check_ours(folder):
    sagitta("synth", "--n-rows", 20000, "--columns", 8, "--atoms", 64, "--top-s", 16, "--output",
            folder)
    path = f"{folder}/supports.h5"
    done = sagitta("encode", "--rows", f"{folder}/rows.h5", "--dictionary",
                   f"{folder}/dictionary.h5", "--top-s", 16, "--output", path)
    with h5py.File(path) as f:
        size, n = f["supports/data"].chunks[0], f["supports/data"].shape[0]
    ok(done.returncode == 0 and n == 320000 and n > size, f"{n} {size} {done.stderr}")
    row, end = size // 16, min(2 * size, n)
    def sound(old):
        """A chunk with another value, whose checksum is right."""
        values = np.frombuffer(old, "<f4")[:-1].copy()
        values[7] += 1
        with h5py.File(f"{folder}/sound.h5", "w") as f:
            f.create_dataset("x", data=values, chunks=values.shape, fletcher32=True)
            return f["x"].id.read_direct_chunk((0,))[1]
    for change in (flip, lambda old: bytes(len(old)), sound):
        for threads in ("1", "4"):
            os.environ["OMP_NUM_THREADS"] = threads
            done, runs = found(broken(path, [("supports/data", 1)], change))
            ok(done.returncode == 65 and
               runs == [("/supports/data", size, end - 1, n, row, end // 16 - 1)],
               f"{runs} {done.stderr}")


with tempfile.TemporaryDirectory() as place:
    check_runs(place)
    check_ours(place)
done_testing()
