# SPDX-License-Identifier: BSD-3-Clause
"""Claim: parts that --row-range made, with any ranges, ranks and files, merge into the bytes of one
job for all rows, including metrics.  A file that is no part of the whole is refused by its name."""
import os
import shutil
import subprocess
import tempfile

import h5py
import numpy as np

from jobs import environment
from tap import SAGITTA, claim, done_testing, fails, launch, need, ok, sagitta, skip

BLOCK = 4096
N, P = 5 * BLOCK + 1234, 16
CUTS = ([0, N], [0, BLOCK, N], [0, 3 * BLOCK, 5 * BLOCK, N], [*range(0, N, BLOCK), N],
        [0, 2 * BLOCK, 3 * BLOCK, N])
SLOW = os.path.join(os.environ["builddir"], "tests/slow.so")
TEXTS = 600000  # bytes that HDF5 reads again for texts, for any size of the file
# Supports of one length, frames, scores only, and rows of any length.
ONCE = {"codes": ("encode", "--rows", "{}/rows.npy", "--dictionary", "{}/d", "--top-s", "16"),
        "frames": ("encode", "--rows", "{}/rows.npy", "--dictionary", "{}/frames.h5", "--top-s",
                   "8", "--center"),
        "scores": ("route", "--rows", "{}/rows.npy", "--dictionary", "{}/d", "--top-s", "16"),
        "active": ("encode", "--rows", "{}/rows.npy", "--dictionary", "{}/d", "--l0", "16",
                   "--codes", "nonnegative")}


def dump(path):
    """The stored bytes of every dataset, and every attribute except those of /run."""
    found = {}

    def visit(name, thing):
        if name.startswith("run"):
            return
        found[name, "@"] = {k: np.asarray(v).tobytes() for k, v in thing.attrs.items()}
        if isinstance(thing, h5py.Dataset):
            chunks = [thing.id.read_direct_chunk(thing.id.get_chunk_info(i).chunk_offset)[1]
                      for i in range(thing.id.get_num_chunks())]
            found[name] = thing.shape, thing.dtype.str, thing.chunks, chunks

    with h5py.File(path) as f:
        f.visititems(visit)
    return found


def is_same(a, b, what):
    done = sagitta("diff", a, b)
    ok(done.returncode == 0 and not done.stdout, f"{what}: {done.stdout}{done.stderr}")
    ok(dump(a) == dump(b), f"{what}: the datasets' bytes")


class Job:
    """An encoding with its options, as a whole and in parts."""

    def __init__(self, folder, name, command, *options):
        self.folder, self.command, self.options = f"{folder}/{name}", command, options
        self.whole = f"{self.folder}/whole/supports.h5"
        need(sagitta(command, *options, "--output", f"{self.folder}/whole"), f"{name}: whole")

    def part(self, first, end, *more, output=None, ranks=0):
        return sagitta(self.command, *self.options, "--row-range", f"{first}:{end}", *more,
                       "--output", output or f"{self.folder}/parts", ranks=ranks)

    def merge(self, *parts, output, ranks=0):
        return sagitta("merge", *parts, "--output", f"{self.folder}/{output}", ranks=ranks)

    def parts(self, cut, ranks=0, folder="parts"):
        names = []
        for i, (first, end) in enumerate(zip(cut, cut[1:])):
            need(self.part(first, "" if end == N and i % 2 else end, "--block", 1000 * (i + 1),
                           output=f"{self.folder}/{folder}", ranks=ranks), f"part {first}:{end}")
            names.append(f"{self.folder}/{folder}/part-{first:015d}.h5")
        return names

    def check(self, cut, name, ranks=0):
        parts = self.parts(cut, ranks, name)
        need(self.merge(*reversed(parts), output=f"{name}.h5", ranks=ranks), f"merge {name}")
        is_same(self.whole, f"{self.folder}/{name}.h5", f"{self.command} {self.options[4:]} {cut}")
        return parts


def inputs_make(folder):
    random = np.random.default_rng(3)
    values = (random.standard_normal((N, P)) + random.standard_normal(P)).astype("f4")
    np.save(f"{folder}/rows.npy", values)
    np.save(f"{folder}/short.npy", values[:BLOCK + 5])
    changed = values.copy()
    changed[N // 64 * 3, 0] += 1
    np.save(f"{folder}/changed.npy", changed)
    begun = values.copy()
    begun[5] += 1
    np.save(f"{folder}/begun.npy", begun)
    atoms = random.standard_normal((40, P)).astype("f4")
    np.save(f"{folder}/scaled.npy", atoms)
    with h5py.File(f"{folder}/frames.h5", "w") as f:
        frames = np.linalg.qr(random.standard_normal((20, P, 2)))[0].transpose(0, 2, 1)
        f["atoms"] = np.ascontiguousarray(frames.astype("f4"))
    need(sagitta("seed", "--rows", f"{folder}/rows.npy", "--atoms", 40, "--center", "--output",
                 f"{folder}/d"), "seed")
    need(sagitta("seed", "--rows", f"{folder}/rows.npy", "--atoms", 40, "--seed", 1, "--center",
                 "--output", f"{folder}/e"), "another seed")


@claim("merged parts have the bytes of one job")
def check_bytes(folder):
    rows, plain = ["--rows", f"{folder}/rows.npy"], ["--dictionary", f"{folder}/d"]
    jobs = {
        "encode": ("encode", *rows, *plain, "--top-s", 4, "--rounds", 2),
        "route": ("route", *rows, *plain, "--top-s", 3),
        "nonnegative": ("encode", *rows, *plain, "--top-s", 4, "--codes", "nonnegative", "--rho",
                        0.1, "--cosine-limit", 39),
        "frames": ("encode", *rows, "--dictionary", f"{folder}/frames.h5", "--top-s", 2,
                   "--center"),
        "scaled": ("encode", *rows, "--dictionary", f"{folder}/scaled.npy", "--normalize",
                   "--top-s", 3),
        "short": ("encode", "--rows", f"{folder}/short.npy", *plain, "--top-s", 3),
    }
    for i, (name, (command, *options)) in enumerate(jobs.items()):
        job = Job(folder, name, command, *options)
        if name == "short":
            parts = [job.part(*cut) for cut in ((0, BLOCK), (BLOCK, ""))]
            need(parts[0], "a part"), need(parts[1], "a part of five rows")
            need(job.merge(f"{job.folder}/parts/*.h5", output="merged.h5"), "merge a pattern")
            is_same(job.whole, f"{job.folder}/merged.h5", "five rows behind a block")
            continue
        for number, cut in enumerate(CUTS if name == "encode" else CUTS[1 + i % 4:][:1]):
            job.check(cut, f"cut{number}", ranks=(0, 1, 2, 3, 2)[number])


@claim("a part is marked as a part, and is not taken for the whole")
def check_part(folder):
    job = Job(folder, "one", "encode", "--rows", f"{folder}/rows.npy", "--dictionary",
              f"{folder}/d", "--top-s", 2)
    part = job.parts(CUTS[2])[1]
    need(sagitta("verify", part), "verify")
    done = sagitta("inspect", part)
    ok(f"a part: rows {3 * BLOCK} to {5 * BLOCK - 1} of {N}; `sagitta merge`" in done.stdout,
       f"inspect: {done.stdout}")
    fails(sagitta("color", "--supports", part, "--output", f"{folder}/color"), 65,
          ["is a part of an encoding", "sagitta merge"], "color refuses it")
    with h5py.File(part) as f:
        said = f["part"].attrs
        ok(f["supports"].attrs["shape"][0] == 2 * BLOCK and said["first_row"] == 3 * BLOCK and
           said["rows_total"] == N, "a part has the numbers of its rows")
    for names in (["--row-range", "5:9"], ["--row-range", "0:5000"], ["--row-range", "100000:"],
                  ["--row-range", "x"], ["--row-range", "0:5:6"], ["--row-range", ":4096"]):
        done = sagitta("encode", *job.options, *names, "--output", f"{folder}/bad")
        words = {"5:9": ["nearest is 0:4096"], "0:5000": ["nearest is 0:4096"],
                 "100000:": [f"has {N} rows"]}.get(names[1], ["FIRST:END"])
        fails(done, 2, words, f"{names}")
    need(job.part(5 * BLOCK, 8 * BLOCK, output=f"{folder}/last.h5"), "an end beyond the last row")
    fails(job.part(5 * BLOCK, N - 1), 2, [f"nearest is {5 * BLOCK}:{N}"],
          "an end before the last row")


@claim("files that are no part of the whole are refused by name")
def check_refused(folder):
    rows = ["--rows", f"{folder}/rows.npy"]
    job = Job(folder, "good", "encode", *rows, "--dictionary", f"{folder}/d", "--top-s", 2)
    a, b, c = job.parts(CUTS[2])

    def refused(names, words, what, code=65):
        fails(job.merge(*names, output="bad.h5"), code, words, what)
        ok(not os.path.exists(f"{job.folder}/bad.h5"), f"{what}: no result")

    refused([a, c], [f"rows {3 * BLOCK} to {5 * BLOCK - 1} of {N} are in none",
                     f"--row-range {3 * BLOCK}:{5 * BLOCK}"], "a gap")
    refused([b, c], [f"rows 0 to {3 * BLOCK - 1}"], "no beginning")
    refused([a, b], [f"to {N - 1} of"], "no end")
    folder_of_a = os.path.dirname(a)
    refused([folder_of_a + "/"], [f"'{folder_of_a}/part-*.h5'"], "a folder of parts", 74)
    refused([a, b, b, c], ["overlap", f"both have row {3 * BLOCK}"], "one twice")
    need(job.part(2 * BLOCK, 5 * BLOCK, output=f"{job.folder}/wide.h5"), "an overlapping part")
    refused([a, f"{job.folder}/wide.h5", c], ["wide.h5' overlap"], "an overlap")
    refused([], ["the parts are missing"], "no parts", 2)
    refused([f"{folder}/nothing/*.h5"], ["no file matches"], "no file", 74)
    refused([a, b, f"{folder}/none.h5"], ["none.h5"], "a missing file", 74)
    refused([a, job.whole], ["whole/supports.h5' is no part"], "a whole")
    refused([a, f"{folder}/rows.npy"], ["rows.npy"], "rows")
    others = {"dictionary_hash": (["--dictionary", f"{folder}/e"], {}),
              "rows_sample": ([], {"--rows": f"{folder}/changed.npy"}),
              "shift_hash": ([], {"--rows": f"{folder}/begun.npy"}),
              "--top-s": (["--top-s", 3], {}), "--rounds": (["--rounds", 2], {}),
              "--rho": (["--rho", 1], {}), "--codes": (["--codes", "nonnegative"], {}),
              "--cosine-limit": (["--cosine-limit", 7], {})}
    for what, (options, change) in others.items():
        words = {"--rows": rows[1], "--dictionary": f"{folder}/d", "--top-s": 2, **change}
        words.update(zip(options[::2], options[1::2]))
        other = f"{job.folder}/other.h5"
        need(sagitta("encode", *[w for pair in words.items() for w in pair], "--row-range",
                     f"{3 * BLOCK}:{5 * BLOCK}", "--force", "--output", other), what)
        refused([a, other, c], ["other.h5' does not belong to", what], what)
    need(sagitta("route", *rows, "--dictionary", f"{folder}/d", "--top-s", 2, "--row-range",
                 f"{3 * BLOCK}:{5 * BLOCK}", "--force", "--output", other), "route")
    refused([a, other, c], ["other.h5' does not belong to", "result_has scores alone"],
            "scores alone")
    bad = f"{job.folder}/bad-part.h5"
    for place in ("supports/data", "part/sums", "metrics/density"):
        shutil.copy(b, bad)
        with h5py.File(bad, "r+") as f:
            values = f[place][...]
            values.flat[-1] += 1
            f[place][...] = values
        refused([a, bad, c], [place], f"a changed {place}")
    shutil.copy(b, bad)
    with h5py.File(bad, "r+") as f:
        f["part"].attrs["first_row"] = 0
    refused([bad, b, c], ["bad-part.h5"], "a changed number")
    with open(b, "rb") as f:
        whole = f.read()
    with open(bad, "wb") as f:
        f.write(whole[:len(whole) * 2 // 3])
    refused([a, bad, c], ["bad-part.h5"], "half a part")
    done = sagitta("merge", a, b, c, "--force", "--output", a)
    fails(done, 73, ["would replace an input"], "a part is not replaced")


@claim("files that differ in rows that no part read give a warning; with --rows their parts are "
       "refused")
def check_unread(folder):
    rows, differing = f"{folder}/rows.npy", f"{folder}/differing.npy"
    values = np.load(rows)
    values[[BLOCK + 700, 4 * BLOCK + 9]] += 1  # neither the first rows nor rows of the sample of 64
    np.save(differing, values)
    for command in "encode", "route":
        job = Job(folder, f"unread-{command}", command, "--rows", rows, "--dictionary",
                  f"{folder}/d", "--top-s", 2)
        a, b = job.parts([0, 3 * BLOCK, N])
        job.options = ["--rows", differing, *job.options[2:]]
        need(job.part(3 * BLOCK, N, output=f"{job.folder}/other.h5"), "a part of the other")
        other = f"{job.folder}/other.h5"
        for names, told in (([a, b], False), ([a, other], True)):
            done = job.merge(*names, "--force", output="merged.h5")
            need(done, f"{command}: {names}")
            ok(("differ in size or time" in done.stderr) == told, f"{names}: {done.stderr}")
        for name in rows, differing:
            for ranks in 0, 2:
                fails(job.merge(a, other, "--rows", name, output="bad.h5", ranks=ranks), 65,
                      ["not all of the rows of", os.path.basename(name)], f"--rows {name}")
        done = job.merge(a, b, "--rows", rows, output="good.h5", ranks=2)
        need(done, "--rows of the same")
        ok("differ" not in done.stderr, done.stderr)
        is_same(job.whole, f"{job.folder}/good.h5", "with --rows")
        copy = shutil.copy(rows, f"{folder}/copy.npy")  # the copy has another time
        job.options = ["--rows", copy, *job.options[2:]]
        need(job.part(3 * BLOCK, N, output=f"{job.folder}/copy.h5"), "a part of a copy")
        done = job.merge(a, f"{job.folder}/copy.h5", "--rows", copy, output="of-copy.h5")
        need(done, "a copy")
        ok("differ" not in done.stderr, f"--rows settles it: {done.stderr}")
        fails(job.merge(a, b, "--rows", f"{folder}/short.npy", output="bad.h5"), 65,
              [f"{BLOCK + 5} rows of {P} columns"], "--rows of another size")


@claim("a deck repeats a merge, and parts from shards are parts of the same whole")
def check_repeat(folder):
    rows = np.load(f"{folder}/rows.npy")
    for i, (first, end) in enumerate(((0, 17), (17, 9000), (9000, N))):
        np.save(f"{folder}/shard{i}.npy", rows[first:end])
    job = Job(folder, "again", "encode", "--rows", f"{folder}/rows.npy", "--dictionary",
              f"{folder}/d", "--top-s", 2)
    first = job.parts([0, BLOCK])
    job.options = ["--rows", f"{folder}/shard*.npy", *job.options[2:]]
    rest = job.parts([BLOCK, 3 * BLOCK, N], ranks=2)
    need(sagitta("merge", *first, *rest, "--output", f"{job.folder}/m"), "merge")
    is_same(job.whole, f"{job.folder}/m/supports.h5", "rows from one file and from shards")
    need(sagitta("merge", f"{job.folder}/m/used.in", "--output", f"{job.folder}/n"), "used.in")
    is_same(job.whole, f"{job.folder}/n/supports.h5", "a deck")
    with open(f"{job.folder}/list", "w") as f:
        f.write("".join(f"parts/{os.path.basename(name)}\n" for name in (*rest, *first)))
    need(sagitta("merge", f"@{job.folder}/list", "--output", f"{job.folder}/l"), "a list of parts")
    is_same(job.whole, f"{job.folder}/l/supports.h5", "a list")


@claim("parts are read once, however many ranks there are")
def check_once(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    for name, options in ONCE.items():
        job = Job(folder, f"once-{name}", *(w.format(folder) for w in options))
        parts = job.parts(CUTS[2])
        size = sum(map(os.path.getsize, parts))
        for ranks in 1, 3:
            told = f"{job.folder}/told"
            words = [*launch(ranks), "-x", f"LD_PRELOAD={SLOW}", SAGITTA, "merge", *parts,
                     "--force", "--output", f"{job.folder}/once.h5"]
            need(subprocess.run(words, capture_output=True, text=True, timeout=100,
                                env=environment(SLOW_OF="/parts/part-", SLOW_TOLD=told)), "merge")
            with open(told) as f:
                read = sum(int(line.split()[1]) for line in f)
            os.remove(told)
            ok(size / 2 < read <= 1.05 * size + len(parts) * TEXTS,
               f"{name}, {ranks} ranks: {read} of {size} bytes")
            is_same(job.whole, f"{job.folder}/once.h5", f"{name}, {ranks} ranks")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with claim("inputs are made"):
            inputs_make(folder)
        for check in (check_bytes, check_part, check_refused, check_unread, check_repeat,
                      check_once):
            check(folder)
    done_testing()


main()
