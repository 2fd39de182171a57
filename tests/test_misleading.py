# SPDX-License-Identifier: BSD-3-Clause
"""Claim: input that is valid but may mislead gives a warning with its numbers; input without such
problems gives none."""
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from capture_files import pool_make
from shard_files import safetensors
from tap import claim, done_testing, fails, need, ok, sagitta

N, HELD, K, P, S = 2000, 1400, 24, 12, 3


def planted(random, n=N, p=P, k=K, s=S):
    """(rows, atoms): rows are sums of s unit atoms with positive codes, and a little noise."""
    atoms = random.standard_normal((k, p))
    atoms = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")
    codes = np.zeros((n, k))
    for row in codes:
        row[random.choice(k, s, replace=False)] = random.uniform(0.5, 2, s)
    return (codes @ atoms + 0.02 * random.standard_normal((n, p))).astype("f4"), atoms


class Folder:
    def __init__(self, path):
        self.path, self.random = path, np.random.default_rng(7)
        rows, self.atoms = planted(self.random, N + HELD)
        self.rows = rows[:N]
        self.save("rows", self.rows)
        self.save("held", rows[N:])
        self.save("atoms", self.atoms)

    def save(self, name, array):
        np.save(f"{self.path}/{name}.npy", array)
        return f"{self.path}/{name}.npy"

    def save_codes(self):
        """Write the codes of the rows."""
        done = sagitta("encode", "--rows", self.at("rows.npy"), "--dictionary",
                       self.at("atoms.npy"), "--top-s", S, "--force", "--output", self.at("codes"))
        need(done, "codes")
        return self.at("codes/supports.h5")

    def at(self, name):
        return os.path.join(self.path, name)

    def run(self, command, *words, ranks=0):
        """The warnings of a run, which must succeed."""
        words = words if command == "evaluate" else [*words, "--force", "--output", self.at("out")]
        done = sagitta(command, *words, ranks=ranks)
        need(done, f"{command} {words}")
        return [line for line in done.stderr.splitlines() if "warning" in line]

    def fit(self, rows, *words, ranks=0):
        return self.run("fit", "--rows", rows, "--atoms", K, "--top-s", S, "--sweeps", 1, *words,
                        ranks=ranks)

    def encode(self, rows, *words, ranks=0, dictionary=None):
        dictionary = dictionary or self.at("atoms.npy")
        return self.run("encode", "--rows", rows, "--dictionary", dictionary, "--top-s", S, *words,
                        ranks=ranks)


def told(warnings, *words):
    """Does one of the warnings have all these words?"""
    return any(all(w in line for w in words) for line in warnings)


def explained(f, name="out/supports.h5"):
    with h5py.File(f.at(name)) as file:
        return file["metrics"].attrs["explained_variance"]


@claim("faultless rows give no warning, whatever the command")
def check_faultless(f):
    rows, held, atoms = f.at("rows.npy"), f.at("held.npy"), f.at("atoms.npy")
    for command, *words in (
            ("fit", "--atoms", K, "--top-s", S, "--sweeps", 1, "--holdout", held),
            ("train", "--atoms", K, "--top-s", S, "--epochs", 20, "--holdout", held),
            ("seed", "--atoms", K), ("route", "--dictionary", atoms, "--top-s", S),
            ("encode", "--dictionary", atoms, "--top-s", S)):
        warnings = f.run(command, "--rows", rows, *words)
        ok(not warnings, f"{command}: {warnings}")
    codes = f.save_codes()
    for command, *words in (
            ("evaluate", "--codes", codes),
            ("refit", "--supports", codes, "--sweeps", 1, "--holdout", held)):
        warnings = f.run(command, "--rows", rows, "--dictionary", atoms, *words)
        ok(not warnings, f"{command}: {warnings}")


@claim("rows that may be transposed, of which there are fewer than columns, give a warning, in any "
       "format")
def check_transposed(f):
    upright, _ = planted(f.random, 310, 300, 320)
    turned = np.ascontiguousarray(upright.T)
    safetensors(f.at("turned.safetensors"), {"rows": ("F32", turned)})
    with h5py.File(f.at("turned.h5"), "w") as file:
        file["rows"] = turned
    for rows in (f.save("turned", turned), f.at("turned.safetensors"), f.at("turned.h5")):
        for command, *words in (("fit", "--sweeps", 1), ("train", "--batch", 64), ("seed",)):
            warnings = f.run(command, "--rows", rows, "--atoms", 8, *words)
            ok(told(warnings, "300 rows of 310 columns", "transposed"),
               f"{command} {rows}: {warnings}")
    warnings = f.run("seed", "--rows", f.save("square", upright[:300]), "--atoms", 8)
    ok(not warnings, f"as many rows as columns: {warnings}")
    for command in ("fit", "train"):
        done = sagitta(command, "--rows", f.save("few", turned[:40]), "--atoms", 8, "--output",
                       f.at("none"))
        fails(done, 65, ["40 rows", "hold out", "transposed"], f"{command}, few rows")


def unwritten_cases(f):
    """name: (layout and fill value of a dataset of rows, ranges that are written, words of the
    warning).  A 0 among the ranges: zeros are written to rows 300 to 899."""
    half = P // 2
    return {"end": ({"chunks": (64, P)}, [np.s_[:700]], "1296 of the 2000 rows", "704 to 1999"),
            "hole": ({"chunks": (50, P)}, [np.s_[:300], np.s_[450:]], "150 of", "300 to 449"),
            "fill": ({"chunks": (100, P), "fillvalue": 7}, [np.s_[:1999]], "", ""),
            "filled": ({"chunks": (100, P), "fillvalue": 7}, [np.s_[100:]], "100 of", "0 to 99"),
            "columns": ({"chunks": (500, half)}, [np.s_[:, :half], np.s_[:500, half:]], "1500 of",
                        "500 to 1999"),
            "gzip": ({"chunks": (300, P), "compression": "gzip"}, [np.s_[:1500]], "500 of",
                     "1500 to 1999"),
            "sums": ({"chunks": (300, P), "fletcher32": True}, [np.s_[:1500]], "500 of", "1500"),
            "all": ({"chunks": (300, P)}, [], "2000 of", "0 to 1999"),
            "run": ({}, [], "2000 of", "0 to 1999"), "whole": ({}, [np.s_[:]], "", ""),
            "chunks": ({"chunks": (300, P)}, [np.s_[:]], "", ""),
            "zeros": ({"chunks": (300, P)}, [np.s_[:], 0], "", "")}


@claim("a warning counts entries that were never written, but not zeros that were")
def check_unwritten(f):
    def told_of(path):
        warnings = f.run("seed", "--rows", path, "--atoms", 3)
        return [line for line in warnings if "never written" in line]

    for name, (layout, written, count, place) in unwritten_cases(f).items():
        path = f.at(f"unwritten-{name}.h5")
        with h5py.File(path, "w", libver=("earliest", "v110")) as file:
            d = file.create_dataset("rows", (N, P), "f4", **layout)
            for part in written:
                d[part if part != 0 else np.s_[300:900]] = 0 if part == 0 else f.rows[part]
        if name in ("all", "run"):  # seed would find no rows to draw
            continue
        warnings = told_of(path)
        ok(told(warnings, count, place) if count else not warnings, f"{name}: {warnings}")
        ok(len(warnings) <= 1, f"{name}, once: {warnings}")
    for name in "all", "run":
        warnings = f.encode(f.at(f"unwritten-{name}.h5"))
        ok(told(warnings, "2000 of the 2000 rows", "0 to 1999"), f"{name}: {warnings}")
    with h5py.File(f.at("sources.h5"), "w", libver=("earliest", "v110")) as file:
        layout = h5py.VirtualLayout((2 * N, P), "f4")
        for i, name in enumerate(("hole", "chunks")):
            layout[N * i:N * (i + 1)] = h5py.VirtualSource(f"unwritten-{name}.h5", "rows", (N, P))
        file.create_virtual_dataset("rows", layout)
    warnings = told_of(f.at("sources.h5"))
    ok(told(warnings, "unwritten-hole.h5", "150 of"), f"a source of a virtual one: {warnings}")


@claim("unwritten entries of means, codes and captures are counted, too; blocks of a pool may be "
       "empty")
def check_unwritten_inputs(f):
    def partly(file, name, values, rows, count):
        d = file.create_dataset(name, values.shape, values.dtype,
                                chunks=(rows, *values.shape[1:]))
        d[:count] = values[:count]
        return d

    old = ("earliest", "v110")
    with h5py.File(f.at("mean.h5"), "w", libver=old) as file:
        file["atoms"] = f.atoms
        file.create_dataset("mean", (P,), "f8", chunks=(P,))
    warnings = f.encode(f.at("rows.npy"), dictionary=f.at("mean.h5"))
    ok(told(warnings, "mean.h5:/mean", "never written"), f"a mean: {warnings}")
    random, n = np.random.default_rng(5), 96
    q, k, v = (random.standard_normal((n, 1, 8)).astype("f4") for _ in range(3))
    for name in "q", "k", "v":
        with h5py.File(f.at("capture.h5"), "w", libver=old) as file:
            for other, values in ("q", q), ("k", k), ("v", v):
                partly(file, other, values, 32, 64 if other == name else n)
            file.attrs["causal"] = 1
        warnings = f.run("harvest", "--capture", f.at("capture.h5"))
        ok(told(warnings, f"capture.h5:/{name}'", "32 of the 96", "64 to 95"),
           f"{name}: {warnings}")
    pool = pool_make(random, k, v, [n], 16, order=range(9))
    with h5py.File(f.at("pool.h5"), "w", libver=old) as file:
        file["q"], file.attrs["causal"] = q, 1
        for name, values in pool.items():
            partly(file, name, values, 1, 6)
    warnings = f.run("harvest", "--capture", f.at("pool.h5"))
    ok(not told(warnings, "never written"), f"blocks of a pool: {warnings}")


@claim("fit, train, encode and route warn of more codes per row than there are atoms")
def check_top_s(f):
    rows, few = f.at("rows.npy"), f.save("few", f.atoms[:5])
    for command, *words in (
            ("fit", "--atoms", 5, "--sweeps", 1, "--holdout-share", 0),
            ("train", "--atoms", 5, "--epochs", 1), ("encode", "--dictionary", few),
            ("route", "--dictionary", few)):
        for top in (6, 5):
            warnings = f.run(command, "--rows", rows, "--top-s", top, *words)
            is_told = told(warnings, "top-s is 6", "5 atoms")
            ok(is_told == (top == 6), f"{command} {top}: {warnings}")
    warnings = f.run("fit", "--rows", rows, "--atoms", 5, "--top-s", 2, "--encode-s", 6, "--sweeps",
                     1, "--holdout-share", 0)
    ok(told(warnings, "top-s is 6", "5 atoms"), f"fit --encode-s: {warnings}")
    warnings = f.run("train", "--rows", rows, "--atoms", 12, "--selection", "batch", "--l0", S,
                     "--epochs", 1)
    ok(not told(warnings, "top-s"), f"codes of a batch have no --top-s: {warnings}")


@claim("an explained variance below 0 is reported with its value, for all rows and for unseen ones")
def check_below_zero(f):
    away = f.save("away", f.rows + np.linspace(3, 6, P, dtype="f4"))
    rows, held = f.at("rows.npy"), f.at("held.npy")
    with h5py.File(f.at("elsewhere.h5"), "w") as file:
        file["atoms"], file["mean"] = f.atoms, np.full(P, 5.0)
    for ranks in (0, 2):
        warnings = f.encode(rows, dictionary=f.at("elsewhere.h5"), ranks=ranks)
        ok(told(warnings, f"these rows is {explained(f):.6g}, below 0"), f"encode: {warnings}")
    codes = f.at("out/supports.h5")
    warnings = f.run("evaluate", "--rows", rows, "--dictionary", f.at("elsewhere.h5"), "--codes",
                     codes)
    ok(told(warnings, "below 0", "supports.h5"), f"evaluate: {warnings}")
    warnings = f.fit(rows, "--holdout", away)
    ok(told(warnings, "the unseen rows is -", "below 0"), f"fit: {warnings}")
    codes = f.save_codes()
    warnings = f.run("refit", "--rows", rows, "--dictionary", f.at("atoms.npy"), "--supports",
                     codes, "--holdout", away)
    ok(told(warnings, "the unseen rows is -", "below 0"), f"refit: {warnings}")
    warnings = f.run("train", "--rows", rows, "--atoms", K, "--holdout", away)
    ok(told(warnings, "of the unseen rows"), f"train: {warnings}")


@claim("rows of float64 that are equal in float32 give a warning, if others are not equal")
def check_equal(f):
    words = ("--dictionary", f.at("atoms.npy"), "--top-s", S)
    for name, rows, is_told in (("far", 1e10 + f.rows, 1), ("tiny", 1e-50 * f.rows, 1),
                                ("near", 10 + f.rows, 0), ("one", f.rows[:1], 0),
                                ("zeros", 0 * f.rows, 1)):
        warnings = f.run("encode", "--rows", f.save(name, rows.astype("f8")), *words, "--center")
        ok(told(warnings, "these rows are all equal as float32") == is_told, f"{name}: {warnings}")
        warnings = f.run("evaluate", "--rows", f.at(f"{name}.npy"), *words[:2], "--codes",
                         f.at("out/supports.h5"))
        ok(told(warnings, "are all equal as float32") == is_told, f"{name}: {warnings}")


def massive_of(f, share, times, name="massive", n=N):
    """Write n rows, with a vector added to a share of them that is `times` as long as the rows'
    median norm.  Returns (path, rows in float64, numbers of the changed rows)."""
    rows = np.resize(f.rows, (n, P))
    at = f.random.choice(n, max(1, round(share * n)), replace=False)
    direction = f.random.standard_normal(P)
    direction *= np.median(np.linalg.norm(f.rows, axis=1)) / np.linalg.norm(direction)
    rows[at] = times * direction + rows[at]
    return f.save(name, rows.astype("f4")), rows.astype("f4").astype("f8"), at


def share_told(warnings):
    """(massive rows, all rows, their share) of the first such warning; None if there is none."""
    for line in warnings:
        found = re.search(r", (\d+) of (\d+) are massive.* with ([\d.e-]+) of all squares", line)
        if found:
            return int(found[1]), int(found[2]), float(found[3])
    return None


@claim("a warning says how many rows are massive, and their share of the squares, as NumPy "
       "computes them")
def check_massive(f):
    for share, times, is_told in ((0.01, 300, 1), (0.01, 20, 1), (0.08, 40, 1), (1 / N, 2000, 1),
                                  (0.001, 60, 1), (0.05, 12, 1), (0.05, 5, 0), (0.01, 3, 0),
                                  (0.5, 300, 0), (1, 300, 0)):
        path, rows, at = massive_of(f, share, times)
        warnings = f.encode(path)
        square = (rows ** 2).sum(1)
        want = (len(at), N, square[at].sum() / square.sum())
        found = share_told(warnings)
        ok((found is not None and found[:2] == want[:2] and abs(found[2] - want[2]) < 1e-4)
           if is_told else found is None, f"{share} of {times} times: {found} {want}")


@claim("commands report massive rows, also held-out ones, on any number of ranks and in parts")
def check_massive_commands(f):
    path, _, at = massive_of(f, 0.02, 100)
    codes = f.at("out/supports.h5")
    several, _, several_at = massive_of(f, 0.01, 50, "several", 9000)
    alone = share_told(f.encode(several))
    ok(alone and alone[:2] == (len(several_at), 9000), f"one rank: {alone}")
    for words in (["--grid", "1x3"], ["--grid", "3x1"], ["--center"]):
        found = share_told(f.encode(several, *words, ranks=3))
        ok(found and (found == alone or words == ["--center"]), f"3 ranks, {words}: {found}")
    f.encode(path)
    words = ("--rows", path, "--dictionary", f.at("atoms.npy"))
    ok(share_told(f.run("evaluate", *words, "--codes", codes)), "evaluate")
    supports = shutil.copy(codes, f.at("codes-of-massive.h5"))
    for ranks in 0, 2:
        ok(share_told(f.run("refit", *words, "--supports", supports, ranks=ranks)), "refit")
    ok(share_told(f.run("refit", "--rows", f.at("rows.npy"), "--dictionary", f.at("atoms.npy"),
                        "--supports", f.save_codes(), "--holdout", path)),
       "refit warns of massive held-out rows")
    need(sagitta("train", "--rows", f.at("rows.npy"), "--atoms", K, "--top-s", S, "--epochs", 1,
                 "--force", "--output", f.at("trained")), "train")
    for ranks in 0, 2:
        warnings = f.run("refit", "--rows", path, "--encoder", f.at("trained"), "--sweeps", 1,
                         "--holdout", several, ranks=ranks)
        ok(told(warnings, "of these rows, ", f"{len(at)} of {N} are massive") and told(
            warnings, "of the held-out rows, "), f"refit of an encoder's supports: {warnings}")
    warnings = f.run("refit", *words, "--supports", supports, "--keep-supports")
    ok(share_told(warnings), "kept supports")
    ok(share_told(f.run("encode", "--rows", path, "--encoder", f.at("trained"))), "an encoder")
    learn = ("--atoms", K, "--top-s", S)
    for command, more in (("fit", ("--sweeps", 1)), ("train", ("--epochs", 1))):
        for ranks in 0, 2:
            warnings = f.run(command, "--rows", several, *learn, *more, ranks=ranks)
            ok(share_told(warnings), f"{command}: {warnings}")
        warnings = f.run(command, "--rows", f.at("rows.npy"), *learn, *more, "--holdout", path)
        ok(told(warnings, "of the held-out rows, ", f"{len(at)} of {N} are massive"),
           f"{command}, held-out rows: {warnings}")
    ok(share_told(f.run("seed", "--rows", path, "--atoms", K, "--center")), "seed")
    parts = []
    for span in "0:4096", "4096:8192", "8192:":
        parts.append(f.at(f"part-{span.replace(':', '-')}.h5"))
        need(sagitta("encode", "--rows", several, "--dictionary", f.at("atoms.npy"), "--top-s", S,
                     "--row-range", span, "--output", parts[-1]), span)
    ok(share_told(f.run("merge", *parts)) == alone, "merge")


@claim("a job reports massive rows once, however many fits it makes")
def check_massive_once(f):
    path, _, at = massive_of(f, 0.02, 100, "once", 4 * N)
    ordinary = f.save("once-ordinary", np.resize(f.rows, (4 * N, P)))

    def check(words, rows, ranks=0, what="these rows"):
        warnings = f.run("fit", "--rows", rows, "--atoms", 8, "--threads", 1, *words, ranks=ranks)
        massive = [w for w in warnings if "massive" in w]
        ok(len(massive) == 1 and f"of {what}, {len(at)} of {4 * N}" in massive[0],
           f"{words}: {massive}")

    none = ("--sweeps", 1, "--holdout-share", 0, "--top-s")
    for words in ((*none, 4, "--seeds", 2), (*none, "auto", "--encode-s", 4),
                  (*none, 4, "--uncentered")):
        check(words, path)
    check((*none, "auto", "--encode-s", 2), path, 2)
    for words in ("--sweeps", 1, "--top-s", 2), ("--find", "features", "--l0", 2):
        check((*words, "--holdout", path), ordinary, what="the held-out rows")


@claim("a missing mean is reported with its share of the squares, if little is explained")
def check_mean(f):
    for add, is_told in ((4, 1), (1, 1), (-0.9, 1), (0, 0)):
        away = f.save("away", (f.rows + np.linspace(0.8, 1.2, P) * add).astype("f4"))
        rows = np.load(away).astype("f8")
        share = (rows.mean(0) ** 2).sum() * N / (rows ** 2).sum()
        for command in "encode", "route":
            warnings = f.run(command, "--rows", away, "--dictionary", f.at("atoms.npy"), "--top-s",
                             S)
            line = [w for w in warnings if "brings no mean" in w]
            ok(bool(line) == bool(is_told), f"{command}, {add}: {warnings}")
            if line and command == "encode":
                found = float(re.search(r"has ([\d.]+) of their squares", line[0])[1])
                ok(abs(found - share) < 1e-3 and "--center" in line[0], f"{found}, not {share}")
    away = f.save("away", f.rows + np.float32(2))
    f.encode(away)
    words = ("--rows", away, "--dictionary", f.at("atoms.npy"))
    codes = shutil.copy(f.at("out/supports.h5"), f.at("codes-of-away.h5"))
    ok(told(f.run("evaluate", *words, "--codes", codes), "brings no mean"), "evaluate")
    for more in [], ["--keep-supports"]:
        warnings = f.run("refit", *words, "--supports", codes, "--sweeps", 1, *more)
        ok(told(warnings, "brings no mean"), f"refit {more}: {warnings}")
    ok(not told(f.encode(away, "--center"), "mean"), "--center")
    tensors = f.at("atoms.safetensors")
    safetensors(tensors, {"atoms": ("F32", f.atoms)})
    with h5py.File(f.at("atoms.h5"), "w") as file:
        file["atoms"] = f.atoms
    for dictionary in tensors, f.at("atoms.h5"):
        ok(told(f.encode(away, dictionary=dictionary), "brings no mean"), dictionary)
    f.fit(away, "--uncentered", "--holdout", f.at("held.npy"))
    shutil.copytree(f.at("out"), f.at("uncentered"))
    ok(not told(f.encode(away, dictionary=f.at("uncentered")), "brings no mean"),
       "a dictionary that was fitted without one")


@claim("too few rows per atom give a warning that names both remedies; ten rows per atom give none")
def check_few_rows(f):
    rows = f.at("rows.npy")
    for command, *words in (("fit", "--sweeps", 1), ("train", "--epochs", 1),
                            ("fit", "--find", "features", "--l0", 2)):
        for atoms in 201, 200:
            warnings = f.run(command, "--rows", rows, "--holdout", f.at("held.npy"), "--atoms",
                             atoms, *words, ranks=2 if command == "fit" else 0)
            is_told = told(warnings, "2000 rows are 9.95 an atom", "2010 rows", "--atoms 200")
            ok(is_told == (atoms == 201) and told(warnings, "an atom:") == is_told,
               f"{command} {atoms}: {warnings}")


@claim("a fit whose last sweep still gains says how much, if it had at least five sweeps")
def check_converged(f):
    rows, held = f.at("rows.npy"), f.at("held.npy")

    def lines():
        with h5py.File(f.at("out/dictionary.h5")) as file:
            return file["fit/history"][:, 2]

    for sweeps, tolerance, is_told in ((5, 1e-4, 1), (4, 1e-4, 0), (5, 0, 0), (5, 0.9, 0)):
        warnings = f.run("fit", "--rows", rows, "--holdout", held, "--atoms", K, "--top-s", S,
                         "--sweeps", sweeps, "--tolerance", tolerance)
        gain = re.search(r"sweep 5 was the last.* gained ([\d.e-]+) of", " ".join(warnings))
        ok(bool(gain) == is_told, f"{sweeps} sweeps, tolerance {tolerance}: {warnings}")
        if gain:
            found = lines()
            want = found.max() - found[0]
            ok(abs(float(gain[1]) - want) < 1e-2 * want, f"{gain[1]}, not {want}")


@claim("atoms in no row give a warning for learned dictionaries, atoms in most rows for any "
       "dictionary")
def check_density(f):
    turned = f.save("turned", np.concatenate([f.rows, -f.rows]))  # one atom describes both
    for atoms, is_told in (2800, 1), (200, 0):
        warnings = f.run("fit", "--rows", turned, "--atoms", atoms, "--top-s", 1, "--sweeps", 0,
                         "--codes", "signed", "--uncentered", "--holdout", f.at("held.npy"))
        with h5py.File(f.at("out/supports.h5")) as file:
            dead = int(file["metrics"].attrs["dead_atoms"])
        ok((dead > atoms / 10) == is_told and
           told(warnings, f"{dead} of {atoms} atoms are in no row") == is_told,
           f"{dead} of {atoms}: {warnings}")

    for atoms, last, rows in (1000, 200, 200), (1000, 0, N), (24, 0, N):
        warnings = f.run("train", "--rows", f.at("rows.npy"), "--atoms", atoms, "--top-s", 1,
                         "--epochs", 3, "--aux-atoms", 0, "--dead-rows", last, "--holdout",
                         f.at("held.npy"))
        dead = [w for w in warnings if f" of {atoms} atoms were in none" in w]
        ok(len(dead) == (atoms > 24) and not told(warnings, "sweeps") and
           (not dead or f"in none of the last {rows} rows: give more --epochs" in dead[0]),
           f"train, {atoms} atoms: {warnings}")

    def encode(s):
        return f.run("encode", "--rows", f.at("offset.npy"), "--dictionary", f.at("atoms.npy"),
                     "--top-s", s)

    for share in 0.4, 0.6:
        rows = f.rows.copy()
        rows[:round(share * N)] += 40 * f.atoms[5]
        f.save("offset", rows)
        warnings = encode(2)
        ok(told(warnings, " of 24 atoms are in more than half of these rows") == (share == 0.6),
           f"{share}: {warnings}")
    warnings = encode(3)
    ok(not told(warnings, "in more than half"), f"where an atom is in many rows: {warnings}")


@claim("rows whose median norm is far from that of the fit give a warning")
def check_scale(f):
    held = np.load(f.at("held.npy")).astype("f8")
    f.fit(f.at("rows.npy"), "--holdout", f.at("held.npy"))
    fitted = shutil.copytree(f.at("out"), f.at("fitted"))
    with h5py.File(f"{fitted}/dictionary.h5") as file:
        mean, norm = file["mean"][:], file.attrs["median_norm"]
    want = np.median(np.linalg.norm(f.rows - mean, axis=1))
    ok(norm <= want * 1.01 and norm >= want / 1.07, f"the file says {norm}, NumPy {want}")
    for times, is_told in ((2, 0), (3.5, 1), (20, 1), (0.5, 0), (0.2, 1)):
        path = f.save("scaled", (mean + (held - mean) * times).astype("f4"))
        for ranks in (0, 2):
            warnings = f.encode(path, dictionary=fitted, ranks=ranks)
            ok(told(warnings, "the median norm of these rows is", f"was {norm:.3g}") == is_told,
               f"{times} times, {ranks} ranks: {warnings}")
        codes = shutil.copy(f.at("out/supports.h5"), f.at("codes-scaled.h5"))
        warnings = f.run("evaluate", "--rows", path, "--dictionary", fitted, "--codes", codes)
        ok(told(warnings, "the median norm") == is_told, f"evaluate, {times}: {warnings}")
    few = f.save("few-scaled", (mean + (held[:9] - mean) * 20).astype("f4"))
    ok(not told(f.encode(few, dictionary=fitted), "median norm"), "nine rows give no warning")
    for value in 0.0, -1.0, np.nan, np.inf:
        with h5py.File(f"{fitted}/dictionary.h5", "r+") as file:
            file.attrs["median_norm"] = value
        fails(sagitta("encode", "--rows", few, "--dictionary", fitted, "--force", "--output",
                      f.at("out")), 65, ["median_norm", f"{value:g}"], f"it says {value}")


def main():
    with tempfile.TemporaryDirectory() as path:
        f = Folder(path)
        check_faultless(f)
        check_transposed(f)
        check_unwritten(f)
        check_unwritten_inputs(f)
        check_top_s(f)
        check_below_zero(f)
        check_equal(f)
        check_massive(f)
        check_massive_commands(f)
        check_massive_once(f)
        check_mean(f)
        check_few_rows(f)
        check_converged(f)
        check_density(f)
        check_scale(f)
    done_testing()


main()
