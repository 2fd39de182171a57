# SPDX-License-Identifier: BSD-3-Clause
"""Claim: for every atom, top writes the rows in which its codes are largest by magnitude, with ties
and frames as in (N.23).  The lists are the same on any number of ranks, and memory does not grow
with the rows.  Files without codes are refused."""
import os
import shutil
import tempfile

import h5py
import numpy as np

from seal import reseal, wrong_seals
from tap import SAGITTA, claim, done_testing, ok, sagitta, skip

N, K = 9000, 60


def csr_write(path, indptr, indices, data, k, codes=None):
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        g.attrs["shape"] = np.array([len(indptr) - 1, k], "i8")
        g["indptr"], g["indices"], g["data"] = indptr, indices, data
        if codes is not None:
            g["codes"] = codes


def csr_make(rng, n, k, most):
    """Rows of any length, some without atoms.  No row has the last atom.  Many codes tie."""
    lengths = rng.integers(0, most + 1, n)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype("i8")
    indices = np.concatenate([rng.permutation(k - 1)[:m] for m in lengths]).astype("i4")
    data = rng.integers(-9, 10, len(indices)).astype("f4") / 8
    return indptr, indices, data


def strongest(indptr, indices, data, k, r):
    """(N.23) by a sort of all entries."""
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    rows, codes = np.full((k, r), -1, "i8"), np.zeros((k, r), "f4")
    for atom in range(k):
        mine = np.flatnonzero((indices == atom) & (data != 0))
        mine = mine[np.lexsort((row[mine], -np.abs(data[mine])))][:r]
        rows[atom, :len(mine)], codes[atom, :len(mine)] = row[mine], data[mine]
    return rows, codes


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.csr = csr_make(np.random.default_rng(3), N, K, 12)
        csr_write(self.at("codes.h5"), *self.csr, K)

    def at(self, name):
        return os.path.join(self.folder, name)

    def top(self, name, out, *words, ranks=0, code=0, said=""):
        done = sagitta("top", "--supports", self.at(name), "--output", self.at(out), "--force",
                       *words, ranks=ranks)
        ok(done.returncode == code and said in done.stderr,
           f"{name} {words}: exit {done.returncode} {done.stderr.strip()[-300:]}")
        return self.at(out)

    def same(self, path, wanted, what):
        with h5py.File(path) as f:
            rows, codes = wanted
            ok((f["top/row"][:] == rows).all(), f"{what}: rows")
            ok(f["top/code"][:].tobytes() == codes.tobytes(), f"{what}: codes")


@claim("the lists are those of a sort, on any number of ranks")
def check_values(p):
    for r, ranks in ((1, 0), (10, 0), (1024, 0), (10, 3), (700, 3)):
        path = p.top("codes.h5", "top.h5", "--rows", r, ranks=ranks)
        wanted = strongest(*p.csr, K, r)
        p.same(path, wanted, f"{r} rows, {ranks} ranks")
        ok((wanted[0][-1] == -1).all() and not wrong_seals(path), "an atom in no row")
    a = p.top("codes.h5", "one.h5")
    for ranks in 1, 4:
        b = p.top("codes.h5", "more.h5", ranks=ranks)
        ok(sagitta("diff", a, b).returncode == 0, f"{ranks} ranks give the bits of one")


@claim("for frames the lists are ordered by the signed norms of codes")
def check_frames(p):
    indptr, indices, _ = p.csr
    codes = np.random.default_rng(4).integers(-3, 4, (len(indices), 2)).astype("f4")
    norm = np.sqrt((codes.astype("f8") ** 2).sum(axis=1)).astype("f4")
    big = codes[np.arange(len(codes)), np.abs(codes).argmax(axis=1)]
    summary = np.where(big < 0, -norm, norm)
    csr_write(p.at("frames.h5"), indptr, indices, summary, K, codes)
    p.same(p.top("frames.h5", "top.h5", ranks=2), strongest(indptr, indices, summary, K, 10),
           "frames")


@claim("the hashes of the supports are those that other commands store")
def check_hashes(p):
    data = p.at("data")
    words = ["--rows", f"{data}/rows.h5", "--dictionary", f"{data}/dictionary.h5"]
    for done in (sagitta("synth", "--n-rows", 500, "--atoms", 24, "--columns", 8, "--top-s", 3,
                         "--output", data),
                 sagitta("encode", *words, "--top-s", 3, "--output", data),
                 sagitta("assemble", *words, "--supports", data, "--output", data)):
        ok(done.returncode == 0, done.stderr[-300:])
    with h5py.File(p.top("data", "top.h5", ranks=3)) as f, h5py.File(f"{data}/systems.h5") as g:
        for name in "supports_hash", "codes_hash":
            ok(f["inputs"].attrs[name] == g["inputs"].attrs[name], name)


def aside(make):
    """Call make() in a child process.  A process that is forked inherits the peak of its parent, so
    the parent must stay small."""
    pid = os.fork()
    if pid == 0:
        make()
        os._exit(0)
    ok(os.waitpid(pid, 0)[1] == 0, "a file is made")


def many_write(path, n):
    rng = np.random.default_rng(5)
    indices = (rng.integers(0, K - 4, (n, 1)) + np.arange(4)).astype("i4").ravel()
    csr_write(path, np.arange(n + 1, dtype="i8") * 4, indices, rng.random(4 * n, "f4"), K)


def peak(path, out):
    """The peak memory of a run in bytes."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.execv(SAGITTA, [SAGITTA, "top", "--supports", path, "--output", out, "--force"])
    _, status, usage = os.wait4(pid, 0)
    ok(status == 0, f"{path}: status {status}")
    return usage.ru_maxrss * 1024


@claim("memory does not grow with the rows")
def check_memory(p):
    rng, sizes = np.random.default_rng(5), {}
    for n in 100_000, 1_600_000:
        aside(lambda: many_write(p.at("many.h5"), n))
        sizes[n] = peak(p.at("many.h5"), p.at("top.h5"))
    grown = sizes[1_600_000] - sizes[100_000]
    if os.environ.get("SANITIZED"):
        skip("sanitizers keep memory that was freed, so its growth cannot be checked")
    else:
        ok(grown < 4e6, f"{grown} bytes more for 1.5 million rows of 40 bytes more: {sizes}")
    wide = 300_000  # such long rows are read a few at a time
    indptr = np.arange(21, dtype="i8") * wide
    data = rng.integers(1, 100, 20 * wide).astype("f4")
    csr_write(p.at("wide.h5"), indptr, np.tile(np.arange(wide, dtype="i4"), 20), data, wide)
    with h5py.File(p.top("wide.h5", "top.h5", "--rows", 2)) as f:
        first = data.reshape(20, wide).argmax(axis=0)
        ok((f["top/row"][:, 0] == first).all(), "rows of 300,000 atoms")


@claim("files without lists are refused")
def check_refused(p):
    words = ["--rows", p.at("data/rows.h5"), "--dictionary", p.at("data/dictionary.h5")]
    done = sagitta("route", *words, "--top-s", 3, "--output", p.at("routed.h5"))
    ok(done.returncode == 0, done.stderr)
    p.top("routed.h5", "no.h5", code=65, said="make codes with `sagitta encode`")
    indptr, indices, data = p.csr
    full = int(np.flatnonzero(np.diff(indptr) > 1)[-1])
    for value, said in ((indices[indptr[full] + 1], "twice"), (K, "is not in 0 .. 59")):
        bad = indices.copy()
        bad[indptr[full]] = value
        csr_write(p.at("bad.h5"), indptr, bad, data, K)
        p.top("bad.h5", "no.h5", ranks=2, code=65, said=f"row {full} of")
        p.top("bad.h5", "no.h5", code=65, said=said)
    p.top("codes.h5", "no.h5", "--rows", 0, code=2)
    p.top("none.h5", "no.h5", code=74, said="cannot open")
    done = sagitta("top", "--output", p.at("no.h5"))
    ok(done.returncode == 2 and "'--supports' is missing" in done.stderr, done.stderr)
    p.top("codes.h5", "codes.h5", code=73)
    ok(not os.path.exists(p.at("no.h5")), "nothing is published")


@claim("verify checks ranges and order even if the hashes are right")
def check_verify(p):
    good = p.top("codes.h5", "good.h5")
    ok(sagitta("verify", good).returncode == 0, "whole")
    for name, at, value, said in (("row", (2, 1), N, "is not in"), ("code", (2, 1), 0, "the code"),
                                  ("row", (2, 0), 8999, "weaker"), ("code", (2, 9), 2, "weaker")):
        path = shutil.copy(good, p.at("spoilt.h5"))
        with h5py.File(path, "r+") as f:
            f[f"top/{name}"][at] = value
            reseal(f)
        done = sagitta("verify", path)
        ok(done.returncode == 65 and said in done.stderr, f"{name} {at}: {done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    place = Place(folder)
    check_values(place)
    check_frames(place)
    check_hashes(place)
    check_memory(place)
    check_refused(place)
    check_verify(place)
done_testing()
