# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a grid of ranks changes no byte of what encode and route write.  For 2, 3, 4, 6 and 8
ranks one grid each is tried in four rounds, with CHECK_FULL=1 every grid.  Some are also tried in
one round, with nonnegative codes, with fewer rows than a block, with rows that are no multiple of
anything, with shards of many rows and of one row, with parts that are merged, and with runs that
are stopped and resumed in other grids.  If each rank has all atoms, the filter finds as many
candidates as on one rank.  An impossible grid is refused."""
import os
import re
import tempfile

import numpy as np

from tap import FULL, SAGITTA, claim, done_testing, need, ok, sagitta, same, skip

BLOCK = 4096
N, P, K = 9 * BLOCK + 321, 12, 50
GRIDS = [f"{ranks // atoms}x{atoms}" for ranks in (2, 3, 4, 6, 8)
         for atoms in range(1, ranks + 1) if ranks % atoms == 0]


def size_of(grid):
    rows, atoms = map(int, grid.split("x"))
    return rows * atoms


def inputs_make(folder):
    random = np.random.default_rng(19)
    rows = random.standard_normal((N, P)).astype("f4")
    rows[BLOCK + 3], rows[-1] = 0, rows[5]
    atoms = random.standard_normal((K, P)).astype("f4")
    atoms[20:25] = atoms[:5]
    np.save(f"{folder}/rows.npy", rows)
    for n in (0, 1, 300, BLOCK + 1):
        np.save(f"{folder}/rows-{n}.npy", rows[:n])
    for i, at in enumerate(range(0, N, 5001)):
        np.save(f"{folder}/shard-{i}.npy", rows[at:at + 5001])
    np.save(f"{folder}/joined.npy", rows[:2 * BLOCK + 77])
    for i in range(40):  # the last one has rows of three sum blocks
        np.save(f"{folder}/single-{i:02}.npy", rows[i:i + 1] if i < 39 else rows[i:2 * BLOCK + 77])
    np.save(f"{folder}/atoms.npy", atoms)
    np.save(f"{folder}/frames.npy", np.linalg.qr(
        random.standard_normal((K, P, 3)))[0].transpose(0, 2, 1).astype("f4"))


def words_of(folder, rows="rows.npy", atoms="atoms.npy", **changes):
    words = {"rows": f"{folder}/{rows}", "dictionary": f"{folder}/{atoms}", "top-s": 5,
             "threads": 1, "device": "cpu", **changes}
    return ["--normalize", *(w for key, value in words.items() for w in (f"--{key}", value))]


def check_grids(folder, name, command, words, grids):
    base, out = f"{folder}/{name}.h5", f"{folder}/{name}-grid.h5"
    need(sagitta(command, *words, "--output", base), name)
    for i, grid in enumerate(grids):
        cut = [("--block", block) for block in (0, 77, 3 * BLOCK, 5000)][i % 4]
        each = [*words]
        if i % 2:  # so many threads that each rank reads all of its atoms
            each[each.index("--threads") + 1] = 4
        done = sagitta(command, *each, *cut, "--tile", (0, 7, 64)[i % 3], "--grid", grid,
                       "--force", "--output", out, ranks=size_of(grid))
        if need(done, f"{name} {grid}"):
            ok(re.search(rf"grid +{grid}: as asked", done.stderr), f"{grid} is in the log")
            same(base, out, f"{name} {grid} {cut}")


def check_bits(folder):
    grids = os.environ.get("GRIDS", "").split() or GRIDS  # for fewer grids during development
    each = ["1x2", "3x1", "2x2", "2x3", "4x2"]  # one grid each of 2, 3, 4, 6 and 8 ranks
    few = grids if FULL else each
    with claim("rounds: every grid gives the bytes of one rank"):
        check_grids(folder, "rounds", "encode", words_of(folder, rounds=4), few)
    more = {"encode": ("encode", words_of(folder, rounds=1)),
            "nonnegative": ("encode", words_of(folder, rounds=4, codes="nonnegative", rho=0.1)),
            "route": ("route", words_of(folder)),
            "frames": ("encode", words_of(folder, atoms="frames.npy", rounds=2)),
            "filter": ("encode", words_of(folder, filter="on")),
            "center": ("encode", [*words_of(folder), "--center"]),
            "shards": ("encode", words_of(folder, rows="shard-*.npy", rounds=2)),
            "single": ("encode", words_of(folder, rows="single-*.npy", rounds=4)),
            "singles": ("encode", words_of(folder, rows="single-[0-2]?.npy", rounds=1))}
    for n in (0, 1, 300, BLOCK + 1):
        more[f"rows-{n}"] = ("encode", words_of(folder, rows=f"rows-{n}.npy", rounds=4))
    for i, (name, (command, words)) in enumerate(more.items()):
        some = ["8x1", "1x3", "6x1", "1x4", "3x2", "4x1"][i % 3::3]
        if name == "encode":
            some = each if FULL else each[3:]
        few = "filter", "center", "rows-0", "rows-1", *(() if FULL else ("singles", "rows-300"))
        some = some[:1] if name in few else some
        with claim(f"{name}: grids give the bytes of one rank"):
            check_grids(folder, name, command, words, [g for g in some if g in grids])
            if name == "single":
                joined = f"{folder}/joined.h5"
                need(sagitta(command, *words_of(folder, rows="joined.npy", rounds=4), "--output",
                             joined), "rows of one file")
                same(joined, f"{folder}/single.h5", "shards of one row, and one file")


@claim("the largest cosine is found, whichever groups route its two atoms")
def check_cosine(folder):
    atoms = np.load(f"{folder}/atoms.npy")
    atoms[20:25] = atoms[25:30] * np.linspace(-1, 1, P, dtype="f4")
    atoms[23] = atoms[8] + 0.01 * atoms[9]  # the nearest pair, in tiles 1 and 3
    np.save(f"{folder}/pair.npy", atoms)
    words = [*words_of(folder, atoms="pair.npy", rows="rows-4097.npy"), "--tile", 7]
    need(sagitta("encode", *words, "--output", f"{folder}/pair.h5"), "one rank")
    for grid in ("2x1", "4x1", "2x2"):
        need(sagitta("encode", *words, "--grid", grid, "--force", "--output", f"{folder}/pair-2.h5",
                     ranks=size_of(grid)), grid)
        same(f"{folder}/pair.h5", f"{folder}/pair-2.h5", grid)


@claim("parts of rows that several grids made are merged to the bytes of one rank")
def check_parts(folder):
    words, parts = words_of(folder, rounds=2), []
    need(sagitta("encode", *words, "--output", f"{folder}/whole.h5"), "whole")
    for cut, grid in ((f"0:{3 * BLOCK}", "2x1"), (f"{3 * BLOCK}:{8 * BLOCK}", "3x2"),
                      (f"{8 * BLOCK}:{N}", "4x1")):
        parts.append(f"{folder}/part-{grid}.h5")
        need(sagitta("encode", *words, "--row-range", cut, "--grid", grid, "--output", parts[-1],
                     ranks=size_of(grid)), f"rows {cut} by {grid}")
    need(sagitta("merge", *parts, "--output", f"{folder}/merged.h5"), "merge")
    same(f"{folder}/whole.h5", f"{folder}/merged.h5", "merged")


@claim("a job stopped and resumed in other grids has the bytes of one rank")
def check_resume(folder):
    words, out = words_of(folder, rounds=2), f"{folder}/steps"
    need(sagitta("encode", *words, "--output", f"{folder}/never.h5"), "never stopped")
    os.makedirs(out)
    grids = ["2x1", "1x3", "2x2"]
    open(f"{out}/STOP", "w").close()
    for i, grid in enumerate(grids):
        if i == len(grids) - 1:
            os.remove(f"{out}/STOP")
        done = sagitta("encode", *words, "--resume", "--block", BLOCK, "--grid", grid, "--output",
                       f"{out}/x.h5", ranks=size_of(grid))
        need(done, grid, 75 if i < len(grids) - 1 else 0)
    same(f"{folder}/never.h5", f"{out}/x.h5", "resumed")


@claim("a bad row and a bad atom are named as one rank names them")
def check_errors(folder):
    rows, atoms = np.load(f"{folder}/rows.npy"), np.load(f"{folder}/atoms.npy")
    rows[2 * BLOCK + 7, 3] = rows[5 * BLOCK, 1] = np.inf
    np.save(f"{folder}/inf.npy", rows)
    rows = np.load(f"{folder}/rows.npy")
    # three rows that are refused; the message must name the first of them
    rows[50], rows[BLOCK + 9], rows[3 * BLOCK + 1] = 3e38, -3e38, 3e38
    np.save(f"{folder}/huge.npy", rows)
    atoms[31], atoms[44] = 0, np.nan
    np.save(f"{folder}/bad.npy", atoms)
    cases = (words_of(folder, rows="inf.npy"), words_of(folder, rows="huge.npy"),
             words_of(folder, rows="huge.npy", rounds=3), words_of(folder, atoms="bad.npy"))
    for i, words in enumerate(cases):
        want = sagitta("encode", *words, "--output", f"{folder}/bad.h5")
        text = [line for line in want.stderr.splitlines() if "sagitta" in line][-1]
        ok(want.returncode == 65, f"one rank: {text}")
        for grid in ("2x1", "1x3", "3x1", "2x2")[i % 2::2]:
            done = sagitta("encode", *words, "--grid", grid, "--output", f"{folder}/bad.h5",
                           ranks=size_of(grid))
            ok(done.returncode == 65 and done.stderr.count(text) == 1,
               f"{grid}: {done.returncode} {done.stderr[-300:]}, not {text}")


def candidates_of(done):
    found = re.search(r"candidates each: ([0-9.]+)", done.stderr)
    return found and float(found.group(1))


@claim("if each rank has all atoms, more ranks leave no more candidates after the filter")
def check_candidates(folder):
    words = ["--rows", f"{folder}/wide/rows.h5", "--dictionary", f"{folder}/wide/dictionary.h5",
             "--top-s", 8, "--filter", "on", "--device", "cpu", "--threads", 1, "--cosine-limit",
             0, "--verbose", "--force", "--output", f"{folder}/wide.h5"]
    need(sagitta("synth", "--n-rows", 4 * BLOCK, "--atoms", 600, "--columns", 64, "--output",
                 f"{folder}/wide"), "synth")
    counts = {}
    for grid in ("1x1", "2x1", "4x1", "1x4"):
        done = sagitta("route", *words, "--grid", grid, ranks=size_of(grid))
        need(done, grid)
        counts[grid] = candidates_of(done)
    if not counts["1x1"]:
        skip("the filter does not run on this processor")
        return
    one = counts["1x1"]
    ok(counts["2x1"] == one and counts["4x1"] == one and counts["1x4"] > one, str(counts))


@claim("an impossible grid is refused, and the message names a possible one")
def check_refused(folder):
    out = f"{folder}/refused.h5"
    for grid, ranks, words in (("2x2", 2, ["2x2", "for 4 ranks", "there are 2", "2x1, 1x2"]),
                               ("0x2", 2, ["0x2", "2x1, 1x2, or auto"]),
                               ("2", 2, ["two numbers"]), ("x", 2, ["two numbers"]),
                               ("-1x-2", 2, ["two numbers"]), ("2x1x1", 2, ["two numbers"]),
                               ("99999999999999x1", 2, ["two numbers"]), ("", 2, ["empty"]),
                               ("three", 1, ["two numbers", "1x1"]), ("2x1", 0, ["there are 1"])):
        done = sagitta("encode", *words_of(folder), "--grid", grid, "--output", out, ranks=ranks)
        ok(done.returncode == 2 and all(w in done.stderr for w in words),
           f"'{grid}' on {ranks}: {done.returncode} {done.stderr[-300:]}")
    ok(not os.path.exists(out), "nothing was written")


def dry(folder, grid, ranks):
    done = sagitta("encode", *words_of(folder), "--dry-run", "--grid", grid, ranks=ranks)
    need(done, f"{grid} --dry-run")
    return done


@claim("auto makes fewer groups if memory is short, and the log has the sizes")
def check_memory(folder):
    if os.environ.get("SANITIZED"):
        return skip("sanitizers reserve terabytes of addresses, which a limit would not allow")
    path = f"{folder}/large.npy"
    np.lib.format.open_memmap(path, "w+", "f4", (1 << 17, 2048)).flush()  # 1 GiB, a hole
    words = words_of(folder, atoms="large.npy", rows="wide.npy", filter="off")
    np.save(f"{folder}/wide.npy", np.zeros((4 * BLOCK, 2048), "f4"))
    limit = ["bash", "-c", 'ulimit -v "$0" && exec "$@"', str(2 << 20), SAGITTA]  # 2 GiB
    for ranks, grid in ((2, "1x2"), (4, "2x2")):
        done = sagitta("route", *words, "--dry-run", ranks=ranks, program=limit)
        need(done, f"--dry-run on {ranks}")
        why = "in more groups a rank would need 2[0-9]{9} of [12][0-9]{9} bytes"
        ok(re.search(f"grid +{grid}: {why}", done.stderr), f"{grid}: {done.stderr}")


@claim("auto makes as many groups as have memory for the dictionary, and rows; --dry-run shows "
       "this")
def check_auto(folder):
    done = dry(folder, "auto", 4)
    ok("4 groups of 1 rank, each" in done.stdout and "4x1: a rank holds the dict" in done.stderr,
       f"{done.stdout} {done.stderr}")
    done = dry(folder, "1x4", 4)
    ok("1 group of 4 ranks, each" in done.stdout and "1x4: as asked" in done.stderr,
       f"{done.stdout} {done.stderr}")
    few = sagitta("encode", *words_of(folder, rows="rows-4097.npy"), "--dry-run", ranks=6)
    ok("2 groups of 3 ranks" in few.stdout and "4097 rows are only 2" in few.stderr,
       f"{few.stdout} {few.stderr}")


@claim("a job for GPUs is planned on a machine without one, also for a dictionary with a mean")
def check_gpu_plan(folder):
    mean = f"{folder}/mean.h5"
    rows = ("--rows", f"{folder}/rows.npy")
    need(sagitta("seed", *rows, "--atoms", 8, "--center", "--output", mean), "seed --center")
    for ranks in (1, 2):
        plan = sagitta("encode", *rows, "--dictionary", mean, "--top-s", 2, "--device", "cuda",
                       "--dry-run", ranks=ranks)
        ok(need(plan, f"{ranks} ranks") and "memory " in plan.stdout, plan.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        inputs_make(folder)
        check_gpu_plan(folder)
        check_refused(folder)
        check_auto(folder)
        check_memory(folder)
        check_candidates(folder)
        check_errors(folder)
        check_cosine(folder)
        check_parts(folder)
        check_resume(folder)
        check_bits(folder)
    done_testing()


main()
