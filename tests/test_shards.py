# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows in many files, of any formats and sizes, give the bits of the same rows in one file,
on any number of ranks, and each file counts as an input.  If there are many shards, each is opened
by one rank first, which tells the others its shape.  Later a rank opens only the shards that it
reads, and has a limited number of them open at a time."""
import collections
import ctypes
import os
import struct
import subprocess
import tempfile

import numpy as np

from jobs import environment, faulty
from shard_files import N, shards_write, values_made
from tap import FULL, SAGITTA, claim, done_testing, launch, need, ok, sagitta, same


def rows_of(names):
    return [word for name in names for word in ("--rows", name)]


def list_write(path, names):
    """Write a list with paths relative to its folder, in every form that a list may have."""
    folder = os.path.dirname(path)
    with open(path, "w") as f:
        f.write("# shards\r\n\n")
        for name in names:
            f.write(f"  {os.path.relpath(name, folder)}\t # and why\r\n")


def jobs_run(folder, name, rows, ranks, whole=None):
    """Run seed, encode, route and fit.  If `whole` is given, the results must be equal to these."""
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


@claim("refit, assemble and held-out rows take shards too")
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
    """Run ranks that see different shards: one has another file, or one more."""
    text = f'cd x$OMPI_COMM_WORLD_RANK && exec {os.path.abspath(SAGITTA)} seed "$@"'
    words = [*launch(2), "sh", "-c", text, "sh", "--rows", "*.npy", "--atoms", "2", "--output",
             "out"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, cwd=folder,
                          env=environment(OMPI_MCA_odls_base_sigkill_timeout="0"))
    return done.returncode, done.stderr


@claim("each shard counts as an input: ranks that see different ones are refused")
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


MANY = 600  # shards of 16 rows: 24 columns, three sum blocks


class Opens:
    """Counts how often each file of a folder is opened, with inotify."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None)
        self.queue = libc.inotify_init1(os.O_NONBLOCK)
        libc.inotify_add_watch(self.queue, os.fsencode(folder), 0x20)

    def count(self):
        found = collections.Counter()
        while True:
            try:
                events = os.read(self.queue, 1 << 20)
            except BlockingIOError:
                os.close(self.queue)
                return found
            at = 0
            while at < len(events):
                length, = struct.unpack_from("I", events, at + 12)
                name = events[at + 16:at + 16 + length].rstrip(b"\0")
                found.update([name.decode()] if name else [])  # no name: the folder
                at += 16 + length


@claim("each of many shards is opened at most twice, and at most 64 are open at a time")
def check_many(folder, values):
    rows = np.tile(values, (2, 1))[:16 * MANY]
    np.save(f"{folder}/few.npy", rows)
    os.makedirs(f"{folder}/many")
    for i in range(MANY):
        np.save(f"{folder}/many/{i:04d}.npy", rows[16 * i:16 * i + 16])
    words = ["--dictionary", f"{folder}/whole", "--top-s", 4, "--output"]
    need(sagitta("encode", "--rows", f"{folder}/few.npy", *words, f"{folder}/few"), "one file")
    ranks = 16 if FULL else 3
    opens = Opens(f"{folder}/many")
    need(sagitta("encode", "--rows", f"{folder}/many/*.npy", *words, f"{folder}/many-encode",
                 ranks=ranks), "many files")
    found = opens.count()
    ok(len(found) == MANY and max(found.values()) <= 2,
       f"{ranks} ranks open {len(found)} of {MANY}, each at most {max(found.values())} times")
    same(f"{folder}/many-encode", f"{folder}/few", "have the same bits")
    text = f"ulimit -n 150 && exec {os.path.abspath(SAGITTA)} \"$@\""
    done = subprocess.run(["sh", "-c", text, "sh", "encode", "--rows", f"{folder}/many/*.npy",
                           *map(str, words), f"{folder}/limited"], env=environment(),
                          capture_output=True, text=True, timeout=100)
    ok(done.returncode == 0, f"150 files may be open: {done.stderr[-300:]}")
    same(f"{folder}/limited", f"{folder}/few", "have the same bits")


@claim("with many shards, ranks that see different ones, and files that change, end the job")
def check_many_agreement(folder, values):
    for rank in (0, 1):
        os.makedirs(f"{folder}/y/x{rank}")
        for i in range(80):
            path = f"{folder}/y/x{rank}/{i:02d}.npy"
            np.save(path, values[:5] + i if i < 40 else values[:15] + i)
            os.utime(path, (1000, 1000))
    path = f"{folder}/y/x1/45.npy"  # rank 1 surveys this file, and rank 0 reads half of all rows
    changed = values[:15] + 45
    changed[9, 2] += 1
    np.save(path, changed)
    os.utime(path, (1000, 1000))
    code, text = rank_sees(f"{folder}/y")
    ok(code == 65 and "rank 0 sees another '45.npy' than rank 1" in text, f"another: {code} {text}")
    os.remove(path)
    code, text = rank_sees(f"{folder}/y")
    ok(code == 65 and "rank 1 sees other inputs than rank 0: 79 inputs, not 80" in text,
       f"one less: {code} {text}")
    np.save(path, np.zeros((10, 23), "f4"))
    code, text = rank_sees(f"{folder}/y")
    ok(code == 65 and "'45.npy' has 23 columns" in text and "(shard 46 of 80" in text,
       f"other columns: {code} {text}")
    whole, out = f"{folder}/y/x0/45.npy", f"{folder}/y/out"
    words = ["fit", "--rows", f"{folder}/y/x0/*.npy", "--atoms", 4, "--top-s", 2, "--sweeps", 2,
             "--minibatch", 64, "--update", "joint", "--output", out, "--force"]
    calls, wrong = faulty("read:1000000000", *words, count=True, of="45.npy"), []
    for change in ("spoil", "append") if not FULL else ("cut", "spoil", "forge", "append"):
        for n in range(1, calls + 1, 1 if FULL else 5):
            np.save(whole, values[:15] + 45)
            code, text = faulty(f"{change}:{n}", *words, of="45.npy")
            if code != 74 or "changed" not in text:
                wrong.append((change, n, code, text[-200:]))
    ok(calls > 5 and not wrong, f"a file that changes at some of its {calls} reads: {wrong}")


def main():
    values = values_made()
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_bits, check_others, check_agreement, check_many,
                      check_many_agreement):
            check(folder, values)
    done_testing()


main()
