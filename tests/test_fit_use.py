# SPDX-License-Identifier: BSD-3-Clause
"""Claim: encode takes atoms per row and rounds from the job that made its dictionary, and logs
both.  inspect says what a .npy file is and whether it can be used, and what can be done with other
files.  scripts/bench_sae.py computes explained variance as Sagitta does."""
import importlib.util
import os
import re
import shutil
import sys
import tempfile

import h5py
import numpy as np

from seal import reseal
from tap import SOURCE, claim, done_testing, ok, sagitta


class Place:
    def __init__(self, folder):
        random = np.random.default_rng(11)
        self.folder, self.rows = folder, random.standard_normal((700, 9)).astype("f4") + 2
        np.save(self.at("rows.npy"), self.rows)
        self.need("fit", "--find", "codes", "--rows", self.at("rows.npy"), "--atoms", 40,
                  "--top-s", 3, "--rounds", 2, "--sweeps", 2, "--output", self.at("fit"))

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def need(self, *words):
        done = sagitta(*words)
        ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
        return done.stderr

    def encode(self, out, *words, dictionary="fit"):
        """top-s and rounds, from the log and from the file."""
        text = self.need("encode", "--rows", self.at("rows.npy"), "--dictionary",
                         self.at(dictionary), "--output", self.at(out), "--force", *words)
        with h5py.File(self.at(out, "supports.h5")) as f:
            numbers = int(f.attrs["top_s"]), int(f.attrs["rounds"])
        said = re.search(r"numbers (.*)", text)
        return said[1] if said else None, numbers, text


@claim("encode takes atoms per row and rounds from the fit, unless they are given")
def check_encode(place):
    asked, numbers, _ = place.encode("asked", "--top-s", 3, "--rounds", 2)
    ok(asked is None and numbers == (3, 2), f"both are asked for: {asked} {numbers}")
    fitted = "as the dictionary was fitted"
    said, numbers, text = place.encode("taken")
    ok(numbers == (3, 2) and said == f"top-s 3: {fitted}; rounds 2: {fitted}" and
       "warning" not in text, f"neither: {said} {numbers}")
    done = sagitta("diff", place.at("asked"), place.at("taken"))
    ok(done.returncode == 0, f"the same bytes {done.stdout[-200:]}")
    with open(place.at("taken", "used.in"), encoding="utf-8") as f:
        deck = f.read()
    ok("top-s" not in deck and "rounds" not in deck,
       "used.in leaves atoms per row and rounds open, too")
    place.need("encode", place.at("taken", "used.in"), "--output", place.at("again"))
    done = sagitta("diff", place.at("asked"), place.at("again"))
    ok(done.returncode == 0, f"used.in repeats the run {done.stdout[-200:]}")
    for words, want in ((["--top-s", 5], (5, 2)), (["--top-s", 1], (1, 1)),
                        (["--rounds", 3], (3, 3)), (["--rounds", 1], (3, 1))):
        said, numbers, text = place.encode("other", *words)
        by = fitted if words != ["--top-s", 1] else "the dictionary was fitted with more"
        ok(numbers == want and "as asked" in said and by in said and
           ("was fitted with 2 rounds" in text) == (words == ["--rounds", 1]), f"{words}: {said}")


@claim("if a dictionary lacks these numbers, encode takes 32 atoms and one round; refit stores "
       "them, too")
def check_silent(place):
    with h5py.File(place.at("fit", "dictionary.h5")) as f:
        np.save(place.at("atoms.npy"), f["atoms"][...])
    said, numbers, _ = place.encode("bare", dictionary="atoms.npy")
    ok(numbers == (32, 1) and said.count("the dictionary does not say") == 2, f"{said} {numbers}")
    os.mkdir(place.at("old"))
    shutil.copy(place.at("fit", "dictionary.h5"), place.at("old"))
    with h5py.File(place.at("old", "dictionary.h5"), "r+") as f:
        del f.attrs["top_s"]
        reseal(f)
    said, numbers, _ = place.encode("older", dictionary="old")
    ok(numbers == (32, 2), f"an older one has its rounds alone: {said} {numbers}")
    place.need("refit", "--rows", place.at("rows.npy"), "--dictionary", place.at("fit"),
               "--supports", place.at("taken"), "--sweeps", 1, "--output", place.at("refit"))
    said, numbers, _ = place.encode("refitted", dictionary="refit")
    ok(numbers == (3, 2), f"of a refit: {said} {numbers}")
    place.need("refit", "--rows", place.at("rows.npy"), "--dictionary", place.at("fit"),
               "--supports", place.at("taken"), "--sweeps", 2, "--resume", "--output",
               place.at("refit"))
    said, numbers, _ = place.encode("refitted", dictionary="refit")
    ok(numbers == (3, 2), f"of a resumed one: {said} {numbers}")


def page_of(path):
    done = sagitta("inspect", path)
    rows = re.findall(r"^  (\S+(?: \S+)*)  +(\S.*)$", done.stdout, re.M)
    return done, dict(rows)


@claim("inspect shows shape, type and norms of a .npy file")
def check_npy(place):
    path, rows = place.at("page.npy"), place.rows
    norms = np.linalg.norm(rows.astype("f8"), axis=1)
    for kind, name in (("<f4", "float32"), ("<f2", "float16"), (">f8", "float64")):
        np.save(path, rows.astype(kind))
        done, page = page_of(path)
        ok(done.returncode == 0 and page["shape"] == "700 x 9" and page["type"] == name and
           page["meaning"] == "as --rows 700 rows of 9 columns" and
           page["finite"] == "yes, every value", f"{kind}: {done.stdout} {done.stderr}")
    np.save(path, rows)
    done, page = page_of(path)
    ok(page["row 0"] == " ".join("%.6g" % v for v in rows[0, :6]) + " ..." and
       page["norms of rows"] == "%.6g to %.6g" % (norms.min(), norms.max()), f"{page}")
    bad = np.tile(rows, (200, 1))  # several blocks
    bad[120000, 5] = np.inf
    bad[130001, 0] = np.nan
    np.save(path, bad)
    done, page = page_of(path)
    ok(done.returncode == 0 and page["finite"].startswith(
        "no: 2 values are not, the first in row 120000, column 5"), f"{page}")
    for array, shape, meaning in (
            (np.ones((4, 2, 3)), "4 x 2 x 3", "as --dictionary 4 frames of 2 vectors of 3 columns"),
            (np.ones(5), "5", "neither rows nor"), (np.ones(()), "0 dimensions", "neither"),
            (np.ones((2, 2, 2, 2)), "4 dimensions", "neither"),
            (np.ones((0, 3)), "0 x 3", "0 rows"),
            (np.ones((3, 0)), "3 x 0", "3 rows of 0 columns")):
        np.save(path, array)
        done, page = page_of(path)
        ok(done.returncode == 0 and page["shape"] == shape and meaning in page["meaning"],
           f"{shape}: {done.stdout} {done.stderr}")
    for array, told in ((np.asfortranarray(rows), "is in Fortran order"),
                        (np.arange(6).reshape(2, 3), "holds values of type <i8")):
        np.save(path, array)
        done, _ = page_of(path)
        ok(done.returncode == 65 and told in done.stderr, f"{told}: {done.stderr}")
    np.save(path, rows)
    os.truncate(path, os.path.getsize(path) - 1)
    done, _ = page_of(path)
    ok(done.returncode == 65 and "is truncated" in done.stderr, f"cut: {done.stderr}")


@claim("for files that have nothing to show, inspect says what to do with them")
def check_hints(place):
    with h5py.File(place.at("empty.h5"), "w") as f:
        f.create_group("nothing")
    done, _ = page_of(place.at("empty.h5"))
    ok(done.returncode == 0 and "no datasets in it" in done.stdout, f"empty: {done.stdout}")
    with h5py.File(place.at("foreign.h5"), "w") as f:
        f["layer/3"] = place.rows
    done, _ = page_of(place.at("foreign.h5"))
    ok(done.returncode == 0 and f"as {place.at('foreign.h5')}:/PATH" in done.stdout,
       f"foreign: {done.stdout}")
    done, _ = page_of(place.at("fit", "dictionary.h5"))
    ok(":/PATH" not in done.stdout and "top_s" in done.stdout,
       "inspect gives no such advice for a file of Sagitta")
    with open(place.at("x.pt"), "wb") as f:
        f.write(b"PK\3\4" + b"x" * 100)
    done, _ = page_of(place.at("x.pt"))
    ok(done.returncode == 65 and "is a PyTorch file" in done.stderr and "convert it" in done.stderr,
       f"another program's: {done.stderr}")


@claim("bench_sae.py and Sagitta compute the same explained variance")
def check_peer(place):
    sys.path.append(os.path.join(SOURCE, "scripts"))  # its imports are there
    spec = importlib.util.spec_from_file_location("bench_sae",
                                                  os.path.join(SOURCE, "scripts/bench_sae.py"))
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    place.encode("peer", "--top-s", 3)
    with h5py.File(place.at("peer", "supports.h5")) as f:
        g = f["supports"]
        said, mean = f["metrics"].attrs["explained_variance"], f["mean"][...]
        codes = np.zeros(g.attrs["shape"])
        codes[np.repeat(np.arange(700), 3), g["indices"][...]] = g["data"][...]
    with h5py.File(place.at("fit", "dictionary.h5")) as f:
        atoms = f["atoms"][...].astype("f8")
    rows = bench.rows_read(place.at("rows.npy")).astype("f8")
    rss = ((rows - mean - codes @ atoms) ** 2).sum()
    got = bench.explained(rss, rows)
    # Sagitta rounds the centered rows to float32.
    ok(abs(got - said) < 1e-6 and 0.1 < said < 0.999, f"{got} and {said}")
    steps = [bench.share_of(i, 100, 0.1, 0.5) for i in range(100)]
    ok(steps[0] == 0.1 and max(steps) == 1 == steps[9] == steps[50] and
       abs(steps[99] - 0.02) < 1e-12, "the peer's learning rate warms up and decays")


with tempfile.TemporaryDirectory() as main:
    made = Place(main)
    check_encode(made)
    check_silent(made)
    check_npy(made)
    check_hints(made)
    check_peer(made)
done_testing()
