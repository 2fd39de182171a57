# SPDX-License-Identifier: BSD-3-Clause
"""Claim: inputs of color, assemble and refit that are bad, or do not belong together, are refused
with their exit code and one message that names the place, on one rank and on three, and nothing is
published.  A job that does not fit in memory is refused in the same way.  A dry run says what the
job needs, and does nothing."""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from tap import SAGITTA, claim, done_testing, ok, sagitta, skip

N, K, P, S = 60, 12, 8, 3


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)


class Folder:
    def __init__(self, path):
        self.path = path
        for name, words in (("good", ()), ("frames", ("--frame", 2))):
            need(sagitta("synth", "--n-rows", N, "--atoms", K, "--columns", P, "--top-s", S, *words,
                         "--output", self.at(name)))
            need(sagitta("encode", *self.inputs(name)[:4], "--top-s", S, "--output",
                         self.at(name + ".h5")))
        need(sagitta("route", *self.inputs("good")[:4], "--top-s", S, "--output",
                     self.at("scores.h5")))
        need(sagitta("color", "--supports", self.at("good.h5"), "--output", self.at("classes.h5")))

    def at(self, name):
        return os.path.join(self.path, name)

    def inputs(self, name, supports=None):
        data = self.at(name)
        return ["--rows", os.path.join(data, "rows.h5"), "--dictionary",
                os.path.join(data, "dictionary.h5"), "--supports",
                self.at((supports or name) + ".h5")]

    def changed(self, source, name, change):
        """A copy of a file after change(h5py file)."""
        shutil.copy(self.at(source), self.at(name))
        with h5py.File(self.at(name), "r+") as g:
            change(g)
        return self.at(name)


def refused(f, text, code, words, *options, commands=("assemble", "refit"), ranks=(0,)):
    """Each command refuses the inputs on its own; the last command also on these numbers of
    ranks."""
    for command, n in [(c, 0) for c in commands] + [(commands[-1], n) for n in ranks if n]:
        out = f.at("out")
        done = sagitta(command, *options, "--output", out, ranks=n)
        told = [l for l in done.stderr.splitlines() if f"sagitta {command}: " in l]
        good = done.returncode == code and len(told) == 1 and all(w in told[0] for w in words)
        good = good and not any(name.endswith((".h5", ".tmp")) for name in
                                (os.listdir(out) if os.path.isdir(out) else ()))
        if not ok(good, f"{command}: {text}, {n} ranks: exit {done.returncode}"):
            print("#", done.stderr.replace("\n", "\n# "))
        shutil.rmtree(out, ignore_errors=True)


def put(path, place, value):
    def change(g):
        array = g[path][...]
        array[place] = value
        del g[path]
        g[path] = array
    return change


def replace(g, path, values):
    del g[path]
    g[path] = values


@claim("bad supports are refused, and the place is named")
def check_supports(f):
    bad = lambda name, *how: ["--supports", f.changed("good.h5", name, put(*how))]

    def both(text, words, pair, **more):
        refused(f, text, 65, words, *pair, commands=("color",))
        refused(f, text, 65, words, *f.inputs("good")[:4], *pair, commands=("refit",), **more)

    both("an atom out of range", ["row 7", "99"], bad("b1.h5", "supports/indices", 7 * S + 1, 99),
         ranks=(3,))
    with h5py.File(f.at("good.h5")) as h:
        first = h["supports/indices"][5 * S]
    both("an atom twice in a row", ["row 5", "twice"],
         bad("b2.h5", "supports/indices", 5 * S + 2, first))
    both("offsets that fall", ["row 9", "fall"], bad("b3.h5", "supports/indptr", 10, 3))
    both("offsets beyond the end", ["ends at entry"], bad("b4.h5", "supports/indptr", N, 999))
    refused(f, "a code that is not finite", 65, ["row 20", "code"], *f.inputs("good")[:4],
            *bad("b5.h5", "supports/data", 20 * S, np.nan), ranks=(3,))
    refused(f, "rows of different lengths", 65, ["row 30", "has 2 atoms"], *f.inputs("good")[:4],
            *bad("b6.h5", "supports/indptr", 31, 31 * S - 1))
    refused(f, "no such group", 65, ["no group '/x'"], *f.inputs("good")[:4], "--supports",
            f.at("good.h5:/x"))
    refused(f, "a missing file", 74, ["cannot open"], "--supports", f.at("none.h5"),
            commands=("color",))


@claim("inputs that do not belong together are refused")
def check_pairs(f):
    rows, good = f.inputs("good")[:2], f.inputs("good")
    np.save(f.at("few.npy"), np.zeros((N - 1, P), np.float32))
    np.save(f.at("narrow.npy"), np.zeros((N, P - 1), np.float32))
    np.save(f.at("more.npy"), np.eye(P, dtype=np.float32)[np.arange(K + 1) % P])
    refused(f, "supports of other rows", 65, [f"{N} rows", f"{N - 1} rows"], "--rows",
            f.at("few.npy"), *good[2:], ranks=(3,))
    refused(f, "rows and atoms of other widths", 65, ["7 columns", "have 8"], "--rows",
            f.at("narrow.npy"), *good[2:])
    refused(f, "supports of other atoms", 65, [f"about {K} atoms", f"has {K + 1}"], *rows,
            "--dictionary", f.at("more.npy"), *good[4:])
    refused(f, "codes of atoms for frames", 65, ["1 codes an atom", "frames of 2"], *rows,
            *f.inputs("frames")[2:4], *good[4:])
    refused(f, "scores, no codes", 65, ["no codes"], *f.inputs("good", "scores"))
    mean = np.full(P, 0.5)
    dictionary = f.changed("good/dictionary.h5", "mean.h5",
                           lambda g: g.create_dataset("mean", data=mean))
    refused(f, "a mean that the codes lack", 65, ["brings a mean"], *rows, "--dictionary",
            dictionary, *good[4:])
    refused(f, "atoms not of unit norm", 65, ["atom 3", "norm"], *rows, "--dictionary",
            f.changed("good/dictionary.h5", "long.h5", put("atoms", 3, 1)), *good[4:])
    refused(f, "no rows named", 2, ["'--rows' is missing"], *good[2:])


@claim("bad classes are refused")
def check_classes(f):
    good = f.inputs("good")
    with h5py.File(f.at("good.h5")) as h:
        a, b = sorted(h["supports/indices"][: 2].tolist())

    def lists(name, start, atoms):
        with h5py.File(f.at(name), "w") as g:
            g["class_offsets"] = np.array(start, np.int64)
            g["class_atoms"] = np.array(atoms, np.int32)
        return ["--classes", f.at(name)]

    others = [c for c in range(K) if c not in (a, b)]
    refused(f, "a class whose atoms overlap", 65, ["row 0", str(a), str(b), "class 0"], *good,
            *lists("c1.h5", [0, 2, *range(3, K + 1)], [a, b, *others]), ranks=(3,))
    refused(f, "an atom in no class", 65, ["in no class"], *good,
            *lists("c2.h5", list(range(K)), [c for c in range(K) if c != a]))
    refused(f, "an atom twice", 65, ["atom 0 is twice"], *good,
            *lists("c3.h5", list(range(K + 2)), [*range(K), 0]))
    refused(f, "an atom out of range", 65, [f"atom {K}"], *good,
            *lists("c4.h5", list(range(K + 1)), [*range(1, K + 1)]))
    refused(f, "class offsets that fall", 65, ["falls"], *good,
            *lists("c5.h5", [0, 5, 3, K], range(K)), ranks=(3,))
    refused(f, "class offsets beyond the end", 65, ["ends with"], *good,
            *lists("c6.h5", [0, K + 4], range(K)))
    refused(f, "class offsets that overflow", 65, ["falls"], *good,
            *lists("c8.h5", [0, 2**62, 2**63 - 1, -(2**62)], range(K)))
    refused(f, "no class at all", 65, ["does not begin with 0"], *good,
            *lists("c9.h5", [], range(K)))
    refused(f, "classes of text", 65, ["not a vector"], *good, "--classes",
            f.changed("classes.h5", "c10.h5", lambda g: replace(g, "class_atoms", [["x"]])))
    refused(f, "colours that differ from the lists", 65, ["'/color'"], *good, "--classes",
            f.changed("classes.h5", "c7.h5", put("color", 2, 0)
                      if h5py.File(f.at("classes.h5"))["color"][2] else put("color", 2, 1)))
    refused(f, "classes and --reroute", 2, ["--reroute"], *good, "--classes", f.at("classes.h5"),
            "--reroute", commands=("refit",))
    refused(f, "directions out of range", 2, ["directions"], *good, "--directions", 65)


@claim("results are not replaced, and are resumed only with the same options and inputs")
def check_output(f):
    good, out = f.inputs("good"), f.at("r")
    need(sagitta("refit", *good, "--output", out))
    done = sagitta("refit", *good, "--output", out)
    ok(done.returncode == 73 and "--force" in done.stderr, "results that are there: exit 73")
    done = sagitta("refit", *good, "--output", out, "--resume", "--directions", 2)
    ok(done.returncode == 65 and "--directions 4" in done.stderr, "resumed otherwise: exit 65")
    done = sagitta("refit", *good, "--output", out, "--resume")
    ok(done.returncode == 0 and "nothing is left" in done.stderr, "resumed with nothing left to do")
    need(sagitta("refit", *good, "--output", out, "--resume", "--sweeps", 2))
    kept = shutil.copy(f"{out}/supports.h5", f.at("kept.h5"))
    done = sagitta("refit", *good, "--output", out, "--resume")
    ok(done.returncode == 2 and "has 2 sweeps" in done.stderr and "asks for 1" in done.stderr,
       f"fewer sweeps than are done: exit {done.returncode}")
    for ranks in (0, 2):
        with open(f"{out}/supports.h5", "r+b") as cut:
            cut.truncate(os.path.getsize(kept) // 2)
        again = ("refit", *good, "--output", out, "--resume", "--sweeps", 2)
        done = sagitta(*again, ranks=ranks)
        ok(done.returncode == 65 and "remove it, and it is made again" in done.stderr,
           f"supports that are cut: exit {done.returncode} {done.stderr[-200:]}")
        os.remove(f"{out}/supports.h5")
        need(sagitta(*again, ranks=ranks))
        same = sagitta("diff", f"{out}/supports.h5", kept).returncode == 0
        ok(same, f"{ranks} ranks: they are made again")
    os.remove(f"{out}/dictionary.h5")
    done = sagitta(*again)
    ok(done.returncode == 73 and f"'{out}/dictionary.h5' is missing" in done.stderr,
       f"no dictionary to go on from: exit {done.returncode} {done.stderr[-200:]}")
    fit = ["fit", *good[:2], "--atoms", 4, "--top-s", 2, "--sweeps", 2, "--minibatch", 16,
           "--holdout-share", 0, "--output", f.at("fit")]
    need(sagitta(*fit))
    os.remove(f.at("fit/dictionary.h5"))
    done = sagitta(*fit, "--resume")
    ok(done.returncode == 73 and f"'{f.at('fit')}/dictionary.h5' is missing" in done.stderr,
       f"nor of a fit: exit {done.returncode} {done.stderr[-200:]}")
    done = sagitta("refit", *good, "--output", f.at("x.h5"))
    ok(done.returncode == 2 and "folder" in done.stderr, "a file as output: exit 2")


@claim("a dry run says what is needed; a job that does not fit in memory is refused")
def check_plans(f):
    """--dry-run, and a file of rows that is a hole, larger than the memory of a process."""
    for command in ("assemble", "refit"):
        done = sagitta(command, *f.inputs("good"), "--dry-run", "--output", f.at("dry"))
        told = [w in done.stdout for w in (f"{N} x {P}", f"{N * S} atoms", "memory", "disk")]
        ok(done.returncode == 0 and all(told) and not os.path.exists(f.at("dry")),
           f"{command} --dry-run: {done.stderr or done.stdout.splitlines()[3]}")
        done = sagitta(command, *f.inputs("good")[:4], *f.inputs("frames")[4:], "--dry-run")
        ok(done.returncode == 65 and "codes an atom" in done.stderr, f"{command}: it checks shapes")
        done = sagitta(command, *f.inputs("good"), "--classes", f.at("classes.h5"), "--dry-run")
        ok("classes 0.0" in done.stdout and "colouring" not in done.stdout,
           f"{command} --classes --dry-run: nothing is coloured")
    if os.environ.get("SANITIZED"):
        return skip("sanitizers reserve terabytes of addresses, which a limit would not allow")
    check_memory(f)
    check_colouring(f)
    check_sweep_end(f)


def check_memory(f):
    words, limit = holes(f, 1 << 19, 512), 1 << 30
    done = limited(limit, "refit", *words, "--threads", 1, "--output", f.at("big"))
    ok(done.returncode == 71 and "bytes are needed (rows" in done.stderr
       and "are present" in done.stderr, f"more than memory: exit {done.returncode} "
       + done.stderr.strip()[-200:])


def check_colouring(f):
    """A problem that fits in memory, but can be neither read nor coloured: many rows of one column
    with one atom each.  Colouring needs less memory than reading, unless the dictionary has far
    more atoms than a row."""
    n = 1 << 24
    words, limit = holes(f, n, 1), 2 << 30
    plan = limited(limit, "refit", *words, "--threads", 1, "--dry-run").stdout
    figure = lambda name: 1e6 * float(re.search(rf"{name} +([0-9.]+)", plan)[1])
    held = sum(map(figure, ("a rank: rows", ", supports", ", atoms")))
    read, color, empty = figure("reading"), figure("classes"), limit - figure("present")
    ok(0 < color < read, f"{read / 1e6:.0f} MB to read, {color / 1e6:.0f} to colour")
    for command, less, more in (("refit", held, held + read), ("color", 0, color + 4 * n)):
        between = int(empty + (less + more) / 2)
        inputs = words if command == "refit" else words[-2:]
        done = limited(between, command, *inputs, "--output", f.at("big"))
        told = re.search(r"(\d+) bytes are needed .*colour.* (\d+) are present", done.stderr)
        ok(done.returncode == 71 and told and int(told[1]) > int(told[2])
           and abs(int(told[1]) - more) < 1e6,
           f"{command}: more than memory to colour: {done.stderr.strip()[-260:]}")


def check_sweep_end(f):
    """A problem that can be read, but leaves no memory for the end of a sweep: a large
    dictionary."""
    words, limit = holes(f, 64, 4096, 8192), 2 << 30
    plan = limited(limit, "refit", *words, "--threads", 1, "--dry-run").stdout
    figure = lambda name: 1e6 * float(re.search(rf"{name} +([0-9.]+)", plan)[1])
    held = sum(map(figure, ("a rank: rows", ", supports", ", atoms")))
    less, more = max(map(figure, ("reading", "classes", "a batch"))), figure("a sweep's end")
    between = int(limit - figure("present") + held + (less + more) / 2)
    done = limited(between, "refit", *words, "--threads", 1, "--output", f.at("big"))
    told = re.search(r"(\d+) bytes are needed .*a sweep's end.* (\d+) are present", done.stderr)
    ok(less < more and done.returncode == 71 and told and int(told[1]) > int(told[2]),
       f"refit: more than memory for a sweep's end: {done.stderr.strip()[-300:]}")


def holes(f, n, p, k=1):
    """Options for files that are holes: n rows, k atoms, and supports with one atom per row."""
    for name, shape, kind in (("rows", (n, p), "f2"), ("atoms", (k, p), "f4")):
        with h5py.File(f.at(name + "-big.h5"), "w") as g:
            g.create_dataset(name, shape, kind)
    with h5py.File(f.at("supports-big.h5"), "w") as g:
        g.create_dataset("supports/indptr", (n + 1,), "i8")
        g.create_dataset("supports/indices", (n,), "i4")
        g.create_dataset("supports/data", (n,), "f4")
        g["supports"].attrs["shape"] = [n, k]
    return [w for name in ("rows", "atoms", "supports") for w in
            ("--" + name.replace("atoms", "dictionary"), f.at(name + "-big.h5"))]


def limited(limit, *words):
    cap = lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return subprocess.run([SAGITTA, *map(str, words)], capture_output=True, text=True,
                          preexec_fn=cap, timeout=100)


def main():
    with tempfile.TemporaryDirectory() as path:
        f = Folder(path)
        check_supports(f)
        check_pairs(f)
        check_classes(f)
        check_output(f)
        check_plans(f)
    done_testing()


main()
