# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows in many files, whatever their formats and sizes, give the bits of the same rows in
one file, on any number of ranks, and each of these files counts as an input."""
import os
import subprocess
import tempfile

import numpy as np

from jobs import environment
from shard_files import N, shards_write, values_made
from tap import SAGITTA, claim, done_testing, launch, need, ok, sagitta, same


def rows_of(names):
    return [word for name in names for word in ("--rows", name)]


def list_write(path, names):
    """A list of names relative to its folder, with all that a list may have."""
    folder = os.path.dirname(path)
    with open(path, "w") as f:
        f.write("# shards\r\n\n")
        for name in names:
            f.write(f"  {os.path.relpath(name, folder)}\t # and why\r\n")


def jobs_run(folder, name, rows, ranks, whole=None):
    """Seed, encode, route and fit; with `whole` their results have to be those."""
    out = f"{folder}/{name}"
    need(sagitta("seed", *rows, "--atoms", 40, "--center", "--output", out, ranks=ranks), "seed")
    need(sagitta("encode", *rows, "--dictionary", out, "--top-s", 4, "--rounds", 2, "--block", 777,
                 "--output", f"{out}/encode", ranks=ranks), "encode")
    need(sagitta("route", *rows, "--dictionary", out, "--top-s", 4, "--output", f"{out}/route",
                 ranks=ranks), "route")
    need(sagitta("fit", *rows, "--atoms", 24, "--top-s", 4, "--sweeps", 2, "--output", f"{out}/fit",
                 ranks=ranks), "fit")
    for part in ("", "encode", "route", "fit") if whole else ():
        same(f"{whole}/{part}", f"{out}/{part}", f"{name}: {part or 'seed'}")
    return out


@claim("shards of any size and format give the bits of one file, on any number of ranks")
def check_bits(folder, values):
    np.save(f"{folder}/one.npy", values)
    whole = jobs_run(folder, "whole", ["--rows", f"{folder}/one.npy"], 1)
    uneven = [1, 1, 7, 4095, 0, 2, 300, 500]
    names = shards_write(f"{folder}/uneven", values, [*uneven, N - sum(uneven)])
    list_write(f"{folder}/list.txt", names)
    jobs_run(folder, "several", rows_of(names), 1, whole)
    jobs_run(folder, "listed", ["--rows", f"@{folder}/list.txt"], 3, whole)
    ones = [1] * 97 + [N - 97]
    names = shards_write(f"{folder}/ones", values, ones)
    jobs_run(folder, "single", rows_of(names), 2, whole)
    again = f"{folder}/several/encode/used.in"
    need(sagitta("encode", again, "--output", f"{folder}/again"), "used.in repeats the run")
    same(f"{folder}/again", f"{whole}/encode", "and gives the same bits")
    need(sagitta("encode", again, "--rows", f"{folder}/one.npy", "--output", f"{folder}/won"),
         "the command line wins over the deck's several rows")
    same(f"{folder}/won", f"{whole}/encode", "and gives the bits of its own")


@claim("refit, assemble and rows to judge by take shards too")
def check_others(folder, values):
    names = shards_write(f"{folder}/refit", values, [3000, N - 3000])
    held = shards_write(f"{folder}/held", values[:700], [1, 699])
    np.save(f"{folder}/held.npy", values[:700])
    results = []
    for rows, holdout in ((["--rows", f"{folder}/one.npy"], ["--holdout", f"{folder}/held.npy"]),
                          (rows_of(names), [w for h in held for w in ("--holdout", h)])):
        out = f"{folder}/others{len(results)}"
        fit = [*rows, "--dictionary", f"{folder}/whole", "--supports",
               f"{folder}/whole/encode/supports.h5"]
        need(sagitta("assemble", *fit, "--output", out), "assemble")
        need(sagitta("refit", *fit, *holdout, "--sweeps", 1, "--output", f"{out}/refit"), "refit")
        need(sagitta("fit", *rows, *holdout, "--atoms", 16, "--top-s", 3, "--sweeps", 1,
                     "--output", f"{out}/fit"), "fit with rows to judge by")
        results.append(out)
    for part in ("", "refit", "fit"):
        same(f"{results[0]}/{part}", f"{results[1]}/{part}", part or "assemble")
    done = sagitta("fit", *rows_of(names), "--holdout", names[1], "--atoms", 8, "--output",
                   f"{folder}/seen")
    ok(done.returncode == 2 and "not unseen" in done.stderr,
       f"a shard that is fitted is not unseen: {done.stderr}")


def rank_sees(folder):
    """Ranks whose shards differ: one has another file, or one more."""
    text = f'cd x$OMPI_COMM_WORLD_RANK && exec {os.path.abspath(SAGITTA)} seed "$@"'
    words = [*launch(2), "sh", "-c", text, "sh", "--rows", "*.npy", "--atoms", "2", "--output",
             "out"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, cwd=folder,
                          env=environment(OMPI_MCA_odls_base_sigkill_timeout="0"))
    return done.returncode, done.stderr


@claim("each shard counts: ranks that see others are told so")
def check_agreement(folder, values):
    for rank in (0, 1):
        os.makedirs(f"{folder}/x{rank}")
        for i in range(20):
            path = f"{folder}/x{rank}/{i:02d}.npy"
            np.save(path, values[i * 10:i * 10 + 10])
            os.utime(path, (1000, 1000))
    path = f"{folder}/x1/13.npy"
    changed = values[130:140].copy()
    changed[9, 2] += 1
    np.save(path, changed)
    os.utime(path, (1000, 1000))
    code, text = rank_sees(folder)
    ok(code == 65 and "rank 1 sees another '13.npy' than rank 0" in text, f"another: {code} {text}")
    np.save(path, values[130:140])
    os.utime(path, (1000, 1000))
    np.save(f"{folder}/x1/20.npy", values[200:210])
    code, text = rank_sees(folder)
    ok(code == 65 and "rank 1 sees other inputs than rank 0: 21 inputs, not 20" in text,
       f"one more: {code} {text}")


@claim("a thousand shards")
def check_many(folder, values):
    os.makedirs(f"{folder}/many")
    for i in range(1100):
        np.save(f"{folder}/many/{i:04d}.npy", values[3 * i:3 * i + 3])
    need(sagitta("seed", "--rows", f"{folder}/many/*.npy", "--atoms", 9, "--output",
                 f"{folder}/many-seed", ranks=2), "more files than are let be open at first")
    np.save(f"{folder}/few.npy", values[:3300])
    need(sagitta("seed", "--rows", f"{folder}/few.npy", "--atoms", 9, "--output",
                 f"{folder}/few-seed"), "one file")
    same(f"{folder}/many-seed", f"{folder}/few-seed", "have the same bits")


def main():
    values = values_made()
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_bits, check_others, check_agreement, check_many):
            check(folder, values)
    done_testing()


main()
