# SPDX-License-Identifier: BSD-3-Clause
"""Claim: results name their inputs by hashes of contents, which do not depend on ranks and file
layouts.  Commands refuse codes of other rows or of another dictionary.  refit is only resumed with
the options with which it began.  It never takes supports that do not belong to its dictionary."""
import os
import shutil
import sys
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta

N, K, P, S = 300, 24, 8, 3
FILES = ("dictionary.h5", "supports.h5")


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)
    return done


class Data:
    """Rows, the same and other rows in other files, two dictionaries, and supports of each."""

    def __init__(self, folder):
        self.folder = folder
        for seed in (1, 2):
            need(sagitta("synth", "--n-rows", N, "--atoms", K, "--columns", P, "--top-s", S,
                         "--seed", seed, "--start-cosine", 0.8, "--noise", 0.1, "--output",
                         self.at(f"d{seed}")))
        self.rows, self.start = self.at("d1/rows.h5"), self.at("d1/start.h5")
        self.other_rows, self.other_start = self.at("d2/rows.h5"), self.at("d2/start.h5")
        self.codes = self.encode("codes.h5")
        self.words = self.fit()

    def at(self, name):
        return os.path.join(self.folder, name)

    def encode(self, name, *more, rows=None, start=None, ranks=0):
        need(sagitta("encode", "--rows", rows or self.rows, "--dictionary", start or self.start,
                     "--top-s", S, *more, "--output", self.at(name), "--force", ranks=ranks))
        return self.at(name)

    def fit(self, rows=None, start=None, codes=None):
        return ["--rows", rows or self.rows, "--dictionary", start or self.start, "--supports",
                codes or self.codes, "--threads", 1]

    def refit(self, name, sweeps, *more, words=None, ranks=0):
        need(sagitta("refit", *(words or self.words), "--sweeps", sweeps, *more, "--output",
                     self.at(name), ranks=ranks))
        return self.at(name)

    def copy(self, source, name):
        shutil.rmtree(self.at(name), ignore_errors=True)
        shutil.copytree(self.at(source), self.at(name))
        return self.at(name)


def hashes(path, group="inputs"):
    with h5py.File(path) as f:
        found = f[group].attrs.items() if group in f else ()
        return {name.removesuffix("_hash"): int(v) for name, v in found}


def same(a, b):
    return sagitta("diff", a, b).returncode == 0


def content(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in FILES}


@claim("hashes depend on contents, not on ranks, types or layouts")
def check_hashes(d):
    one = hashes(d.codes)
    ok(sorted(one) == ["dictionary", "rows"] and all(one.values()), f"encode says {one}")
    with h5py.File(d.rows) as f, h5py.File(d.start) as g:
        rows, atoms = f["rows"][...], g["atoms"][...]
    np.save(d.at("rows.npy"), rows)
    np.save(d.at("atoms.npy"), atoms)
    with h5py.File(d.at("wide.h5"), "w") as f:
        f.create_dataset("rows", data=rows.astype(np.float64), chunks=(7, 3), compression="gzip")
    for text, more in (("3 ranks", dict(ranks=3)),
                       ("npy", dict(rows=d.at("rows.npy"), start=d.at("atoms.npy"))),
                       ("float64", dict(rows=d.at("wide.h5"), ranks=2))):
        ok(hashes(d.encode("again.h5", "--tile", 5, "--block", 64, **more)) == one, text)
    rows[N - 1, P - 1] = np.nextafter(rows[N - 1, P - 1], np.float32(9))
    np.save(d.at("last.npy"), rows)
    two = hashes(d.encode("again.h5", rows=d.at("last.npy")))
    ok(two["rows"] != one["rows"] and two["dictionary"] == one["dictionary"], "one bit of a row")
    rows[[0, 1]] = rows[[1, 0]]
    np.save(d.at("swap.npy"), rows)
    ok(hashes(d.encode("again.h5", rows=d.at("swap.npy")))["rows"] not in
       (one["rows"], two["rows"]), "two rows in the other order")
    shown = need(sagitta("inspect", d.codes)).stdout
    ok(f"{one['rows'] % 2**64:016x}" in shown, "inspect shows them as logs and messages do")


@claim("every result names its inputs")
def check_results(d):
    out = d.refit("fit", 2)
    for name, kind in (("systems", "assemble"), ("terminal", "terminal")):
        need(sagitta(kind, *d.words, "--output", d.at(name + ".h5"), ranks=2))
    need(sagitta("color", "--supports", d.codes, "--output", d.at("classes.h5")))
    need(sagitta("solve", "--systems", d.at("systems.h5"), "--output", d.at("solutions.h5")))
    begun = hashes(os.path.join(out, "dictionary.h5"))
    ok(sorted(begun) == ["classes", "codes", "dictionary", "rows", "supports"], f"refit: {begun}")
    inputs = {name: begun[name] for name in ("codes", "dictionary", "rows", "supports")}
    for name in ("systems", "terminal", "solutions"):
        found = hashes(d.at(name + ".h5"))
        has_mark = found.pop("mark", None) is not None  # --resume finds complete results by it
        ok(found == inputs and has_mark == (name != "terminal"), f"{name}: {found} {has_mark}")
    ok(hashes(d.at("classes.h5")) == {"supports": begun["supports"]}, "classes")
    pair = [hashes(os.path.join(out, name), "contents") for name in FILES]
    of = hashes(os.path.join(out, "supports.h5"))
    ok(pair[0] == {**pair[1], "dictionary": of["dictionary"]},
       "both files of a sweep have the same hashes of contents")
    fit = d.fit(start=os.path.join(out, FILES[0]), codes=os.path.join(out, FILES[1]))
    again = d.refit("more", 1, words=fit, ranks=2)
    ok(hashes(os.path.join(again, "dictionary.h5"))["codes"] == pair[1]["codes"],
       "a dataset has the same hash inside the file and as an input")


@claim("codes of other rows or of another dictionary are refused")
def check_pairs(d):
    for command in ("assemble", "refit", "terminal"):
        for text, words, names in (
                ("rows", d.fit(rows=d.other_rows), ["other rows", d.other_rows, "codes.h5"]),
                ("dictionary", d.fit(start=d.other_start),
                 ["another dictionary", d.other_start, "codes.h5"])):
            for ranks in (0, 2) if command == "terminal" else (0,):
                done = sagitta(command, *words, "--output", d.at("refused"), ranks=ranks)
                told = [l for l in done.stderr.splitlines() if f"sagitta {command}: " in l]
                ok(done.returncode == 65 and len(told) == 1 and all(n in told[0] for n in names),
                   f"{command} with other {text}: exit {done.returncode} {told}")


@claim("pairs that belong together pass")
def check_legitimate(d):
    fit = d.refit("fit-2", 1)
    pair = d.fit(start=os.path.join(fit, FILES[0]), codes=os.path.join(fit, FILES[1]))
    with h5py.File(d.start) as f, h5py.File(d.at("foreign.h5"), "w") as g:
        np.save(d.at("long.npy"), f["atoms"][...] * np.float32(1.00003))
        np.save(d.at("double.npy"), f["atoms"][...] * np.float32(2))
        with h5py.File(d.codes) as h:
            for name in ("indptr", "indices", "data", "score"):
                g["supports/" + name] = h["supports/" + name][...]
            g["supports"].attrs["shape"] = [N, K]
    with h5py.File(d.at("mean.h5"), "w") as g, h5py.File(d.start) as f, h5py.File(d.rows) as h:
        g["atoms"] = f["atoms"][...]
        g["mean"] = h["rows"][...].mean(0, dtype=np.float64)
    centred = d.refit("fit-3", 1, words=d.fit(codes=d.encode("centred.h5", "--center")))
    scaled = d.encode("scaled.h5", "--normalize", start=d.at("long.npy"))
    doubled = d.encode("doubled.h5", "--normalize", start=d.at("double.npy"))
    brought = d.encode("brought.h5", start=d.at("mean.h5"))
    for text, words in (
            ("what refit wrote", pair),
            ("--center", d.fit(codes=d.at("centred.h5"))),
            ("what refit wrote after --center",
             d.fit(start=os.path.join(centred, FILES[0]), codes=os.path.join(centred, FILES[1]))),
            ("--normalize", d.fit(start=d.at("long.npy"), codes=scaled)),
            ("--normalize, and the dictionary scaled elsewhere", d.fit(codes=doubled)),
            ("a dictionary with its mean", d.fit(start=d.at("mean.h5"), codes=brought)),
            ("the mean from the supports alone", d.fit(codes=brought)),
            ("foreign supports of anything", d.fit(rows=d.other_rows, codes=d.at("foreign.h5")))):
        for command in ("refit", "terminal"):
            done = sagitta(command, *words, "--output", d.at("passed"), "--force")
            ok(done.returncode == 0, f"{command}, {text}: exit {done.returncode} "
               + done.stderr[-200:])


@claim("refit is not resumed with other options, and nothing is overwritten")
def check_resume(d):
    out = d.refit("begun", 2)
    before = content(out)
    with h5py.File(d.codes) as f:
        data = f["supports/data"][...]
    changed = shutil.copy(d.codes, d.at("changed.h5"))
    with h5py.File(changed, "r+") as f:
        del f["supports/data"]
        f["supports/data"] = np.where(np.arange(N * S) == 7, data * np.float32(1.001), data)
    rho = shutil.copy(d.codes, d.at("rho.h5"))
    with h5py.File(rho, "r+") as f:
        f.attrs["rho"] = 0.25
    signs = shutil.copy(d.codes, d.at("signs.h5"))
    with h5py.File(signs, "r+") as f:
        f.attrs["nonnegative"] = 1
    other = d.encode("other.h5", rows=d.other_rows)
    other_start = d.encode("other-start.h5", start=d.other_start)
    wide = d.encode("wide-s.h5", "--rounds", 3)
    need(sagitta("color", "--supports", d.codes, "--output", d.at("classes.h5"), "--force"))
    with h5py.File(d.at("classes.h5")) as f, h5py.File(d.at("single.h5"), "w") as g:
        placed = np.sort(f["class_atoms"][...])
        g["class_atoms"], g["class_offsets"] = placed, np.arange(len(placed) + 1)
    cases = (
        ("other rows", 65, "rows_hash", d.fit(rows=d.other_rows, codes=other), ()),
        ("another dictionary", 65, "dictionary_hash",
         d.fit(start=d.other_start, codes=other_start), ()),
        ("other supports", 65, "supports_hash", d.fit(codes=wide), ()),
        ("another code", 65, "codes_hash", d.fit(codes=changed), ()),
        ("another rho", 65, "supports_rho 0.25", d.fit(codes=rho), ()),
        ("codes without signs", 65, "codes_sign any", d.fit(codes=signs), ()),
        ("other classes", 65, "other classes", d.words, ("--classes", d.at("single.h5"))),
        ("other directions", 65, "--directions 2", d.words, ("--directions", 2)),
        ("--reroute", 65, "no --reroute, this run has --reroute", d.words, ("--reroute",)),
        ("another limit", 65, "--cosine-limit 65536", d.words, ("--cosine-limit", 7)))
    for text, code, word, words, more in cases:
        # Two sweeps are done: of three, one is left; of two, none.
        for ranks, sweeps in ((0, 3), (0, 2), *([(3, 3)] if text == "other rows" else [])):
            done = sagitta("refit", *words, *more, "--sweeps", sweeps, "--resume", "--output", out,
                           ranks=ranks)
            told = [l for l in done.stderr.splitlines() if "sagitta refit: " in l]
            good = done.returncode == code and len(told) == 1 and word in told[0]
            ok(good and content(out) == before,
               f"{text}, {ranks} ranks, {sweeps} sweeps: exit {done.returncode} {told}, "
               f"{'as' if content(out) == before else 'not as'} before")
            for name, data in before.items():
                with open(os.path.join(out, name), "wb") as f:
                    f.write(data)
    np.save(d.at("rows.npy"), h5py.File(d.rows)["rows"][...])
    done = sagitta("refit", *d.fit(rows=d.at("rows.npy")), "--sweeps", 3, "--resume", "--output",
                   out, "--classes", d.at("classes.h5"), "--filter", "on")
    straight = d.refit("three", 3)
    ok(done.returncode == 0 and all(same(os.path.join(out, f), os.path.join(straight, f))
                                    for f in FILES), "the same rows in another file: resumed")


@claim("supports of another dictionary are computed again, whatever they were made from")
def check_supports(d):
    other_codes = d.encode("codes-rho.h5", "--rho", 0.5)
    for more in ((), ("--reroute",)):
        name = "r" if more else "s"
        runs = [d.refit(f"{name}{sweeps}", sweeps, *more) for sweeps in (1, 2, 3)]
        stale = d.refit(f"{name}-other", 2, *more, words=d.fit(codes=other_codes))
        for text, supports, sweeps in (
                ("one sweep behind", runs[0], 2), ("a sweep ahead", runs[2], 3),
                ("of another run", stale, 3), ("missing", None, 3), ("encode's", d.codes, 3)):
            out = d.copy(f"{name}2", "mended")
            path = os.path.join(out, "supports.h5")
            if supports:
                shutil.copy(supports if supports.endswith(".h5") else
                            os.path.join(supports, "supports.h5"), path)
            else:
                os.unlink(path)
            done = sagitta("refit", *d.words, *more, "--sweeps", sweeps, "--resume", "--output",
                           out, ranks=2 if sweeps == 2 else 0)
            want = runs[sweeps - 1]
            good = all(same(os.path.join(out, f), os.path.join(want, f)) for f in FILES)
            warned = "made again" in done.stderr
            ok(done.returncode == 0 and good and warned == (supports is not None),
               f"{' '.join(more)} {text}, to sweep {sweeps}: exit {done.returncode}, "
               f"{'the' if good else 'other'} bits, {done.stderr[-300:]}")
    out = d.copy("s2", "mended")
    with h5py.File(os.path.join(out, "supports.h5"), "r+") as f:
        f["supports/data"][5] *= 2
    done = sagitta("refit", *d.words, "--sweeps", 3, "--resume", "--output", out)
    ok(done.returncode == 65 and "is not what was written" in done.stderr,
       f"damaged codes: {done.stderr[-300:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        d = Data(folder)
        check_hashes(d)
        check_results(d)
        check_pairs(d)
        check_legitimate(d)
        check_resume(d)
        check_supports(d)
    done_testing()


main()
