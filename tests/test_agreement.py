# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a deck that only rank 0 can read gives the bits of one rank.  If ranks are given different
options, or see different files under the same names, every parallel command ends with 65, and the
message names the rank and the difference.  If the file of one rank changes, all ranks end with
74."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from jobs import FAULTS, environment
from tap import SAGITTA, claim, done_testing, launch, ok, sagitta, skip

PROGRAM = os.path.abspath(SAGITTA)
# The other ranks wait up to 20 s for the rank that prints the message to abort the job.  After the
# abort, mpirun kills them at once.
AT_ONCE = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}
DECK = "rows = d/rows.h5\ndictionary = d/dictionary.h5\ntop-s = 4\n"
FIT = ["--rows", "rows.h5", "--dictionary", "dictionary.h5", "--supports", "supports.h5"]
# For each command: its options, and some inputs.  It is run once for each of these inputs, with
# another file for rank 1.
COMMANDS = {
    "encode": (["--rows", "rows.h5", "--dictionary", "dictionary.h5", "--top-s", 4],
               ("rows.h5", "dictionary.h5")),
    "encode --l0 2": (["--rows", "rows.h5", "--dictionary", "dictionary.h5", "--codes",
                       "nonnegative"], ("rows.h5", "dictionary.h5")),
    "route": (["--rows", "rows.h5", "--dictionary", "dictionary.h5"], ("dictionary.h5",)),
    "seed": (["--rows", "rows.h5", "--atoms", 8], ("rows.h5",)),
    "harvest": (["--capture", "capture.h5"], ("capture.h5",)),
    "attribute": (["--supports", "supports.h5", "--dictionary", "dictionary.h5", "--capture",
                   "capture.h5"], ("supports.h5", "dictionary.h5", "capture.h5")),
    "color": (["--supports", "supports.h5"], ("supports.h5",)),
    "assemble": ([*FIT, "--classes", "classes.h5"], ("supports.h5",)),
    "refit": ([*FIT, "--classes", "classes.h5"], ("rows.h5", "classes.h5")),
    "refit --dry-run": (FIT, ("rows.h5",)),
    "encode --dry-run": (["--rows", "rows.h5", "--dictionary", "dictionary.h5"], ("rows.h5",)),
    "solve": (["--systems", "systems.h5"], ("systems.h5",)),
    "top": (["--supports", "supports.h5"], ("supports.h5",)),
    "compare": (["--dictionary", "dictionary.h5", "--other", "dictionary.h5"], ("dictionary.h5",)),
    "detect": (["--rows", "rows.h5", "--dictionary", "dictionary.h5", "--codes", "supports.h5"],
               ("rows.h5", "dictionary.h5", "supports.h5")),
    "terminal": (FIT, ("dictionary.h5",)),
}


def mpirun(*parts, folder, deck=None):
    """Start ranks with different words; each part is (ranks, words...).  Returns (code,
    message)."""
    words = []
    for ranks, *rest in parts:
        words += [":", "-n", str(ranks)] if words else launch(ranks)
        words += map(str, rest)
    done = subprocess.run(words, input=deck or "", capture_output=True, text=True, timeout=100,
                          cwd=folder, env=environment(**AT_ONCE))
    return done.returncode, done.stderr


def seen(folder, command, *words):
    """Run two ranks, each in its own folder."""
    text = f'cd x$OMPI_COMM_WORLD_RANK && exec "$0" {command} "$@"'
    return mpirun((2, "sh", "-c", text, PROGRAM, *words), folder=folder)


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)


def make(folder):
    d = f"{folder}/d"
    fit = [word if str(word).startswith("--") else f"{d}/{word}" for word in FIT]
    need(sagitta("synth", "--n-rows", 300, "--atoms", 24, "--columns", 16, "--top-s", 4,
                 "--noise", 0.1, "--output", d))
    need(sagitta("encode", *fit[:4], "--top-s", 4, "--output", f"{d}/supports.h5"))
    need(sagitta("color", "--supports", f"{d}/supports.h5", "--output", f"{d}/classes.h5"))
    need(sagitta("assemble", *fit, "--output", f"{d}/systems.h5"))
    with h5py.File(f"{d}/capture.h5", "w") as f:
        f["q"] = f["k"] = f["v"] = np.ones((30, 2, 4), np.float32)
        f.attrs["causal"] = 1
    for rank in range(2):
        shutil.copytree(d, f"{folder}/x{rank}")  # keeps the times of files


def byte_change(path, at):
    """Change a byte of a file, and keep its time."""
    facts = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@claim("every rank gets a deck that is on standard input")
def check_stdin(folder):
    need(sagitta("encode", "--rows", f"{folder}/d/rows.h5", "--dictionary",
                 f"{folder}/d/dictionary.h5", "--top-s", 4, "--output", f"{folder}/one.h5"))
    code, text = mpirun((2, PROGRAM, "encode", "/dev/stdin", "--output", "two.h5"), folder=folder,
                        deck=DECK)
    same = sagitta("diff", f"{folder}/one.h5", f"{folder}/two.h5").returncode
    ok(code == 0 and same == 0, f"two ranks, deck on stdin: exit {code}, diff {same} {text[-200:]}")
    code, text = mpirun((2, PROGRAM, "encode", "/dev/stdin", "--output", "no.h5"), folder=folder,
                        deck="top-z = 3\n")
    ok(code == 2 and "/dev/stdin:1" in text and text.count("sagitta encode:") == 1,
       f"faults of the deck are told once: exit {code} {text[-200:]}")


@claim("ranks with different options are refused")
def check_told(folder):
    deck = f"{folder}/a.in"
    for name in (deck, f"{folder}/b.in"):
        with open(name, "w") as file:
            file.write(DECK)
    base = ["encode", deck, "--output", "told.h5"]
    for other, said in (([*base, "--top-s", 2], "given another 'top-s' than rank 0: '2', not '4'"),
                        ([*base, "--kernels", "x"], "given 'kernels', rank 0 was not"),
                        ([*base, "--dry-run"], "given another 'dry-run'"),
                        (["route", *base[1:]], "given another 'command'"),
                        (["encode", f"{folder}/b.in", *base[2:]], "given another 'deck'"),
                        (["encode", *base[2:]], "not given 'deck', rank 0 was")):
        code, text = mpirun((2, PROGRAM, *base), (1, PROGRAM, *other), folder=folder)
        ok(code == 65 and f"rank 2 was {said}" in text and text.count("sagitta encode: ") == 1,
           f"{other}: exit {code} {text[-300:]}")
    ok(not os.path.exists(f"{folder}/told.h5"), "nothing is published")
    code, text = mpirun((1, PROGRAM, *base, "--threads", 1), (1, PROGRAM, *base, "--threads", 2),
                        folder=folder)
    ok(code == 0, f"threads may differ: exit {code} {text[-200:]}")


@claim("commands refuse ranks that see different files under one name")
def check_seen(folder):
    out = f"{folder}/seen"
    for command, (words, inputs) in COMMANDS.items():
        for name in inputs:
            path = f"{folder}/x1/{name}"
            with open(path, "ab") as file:
                file.write(b"x")
            code, text = seen(folder, command, *words, "--output", out)
            left = os.listdir(out) if os.path.isdir(out) else []
            ok(code == 65 and f"rank 1 sees another '{name}' than rank 0: " in text and
               not [file for file in left if ".h5" in file],
               f"{command}, another {name}: exit {code}, left {left} {text[-300:]}")
            shutil.copy2(f"{folder}/x0/{name}", path)
    code, text = seen(folder, "encode", *COMMANDS["encode"][0], "--output", f"{folder}/good")
    ok(code == 0, f"copies with their times are equal: exit {code} {text[-300:]}")


@claim("ranks compare the times and the first and last bytes of their files")
def check_marks(folder):
    words = [*COMMANDS["encode"][0], "--output", f"{folder}/marks"]
    path = f"{folder}/x1/rows.h5"

    def refused(how, what):
        code, text = seen(folder, "encode", *words)
        ok(code == 65 and "'rows.h5'" in text and what in text, f"{how}: exit {code} {text[-300:]}")
        shutil.copy2(f"{folder}/x0/rows.h5", path)

    os.utime(path, (1e9, 1e9))
    refused("another time", "modified 2001-09-09T01:46:40Z, not")
    byte_change(path, 3000)
    refused("another byte at the begin", "first 65536 bytes differ")
    byte_change(path, os.path.getsize(path) - 1)
    refused("another last byte", "65536 bytes differ")


@claim("an input that changes under rank 1 alone ends the job")
def check_change(folder):
    """The input changes at the last read, whose number comes from a run without a fault."""
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    shell = 'cd x$OMPI_COMM_WORLD_RANK; [ $OMPI_COMM_WORLD_RANK = 0 ] || export LD_PRELOAD=$1 ' \
            'FAULT=append:$2 FAULT_COUNT=1 FAULT_OF=rows.h5; out=$3; shift 3; ' \
            'exec "$0" "$@" --output $out'
    words = ["seed", "--atoms", 8, "--rows", "rows.h5"]

    def run(call, out):
        return mpirun((2, "sh", "-c", shell, PROGRAM, FAULTS, call, f"../{out}", *words),
                      folder=folder)
    code, text = run(1000000000, "whole")
    calls = max(map(int, re.findall(r"fault calls=(\d+)", text)), default=0)
    ok(code == 0 and calls > 2, f"without a fault: exit {code}, {calls} reads {text[-300:]}")
    code, text = run(calls, "one")
    left = os.listdir(f"{folder}/one") if os.path.isdir(f"{folder}/one") else []
    ok(code == 74 and "sagitta seed: 'rows.h5' changed while it was read: it had" in text and
       not [file for file in left if ".h5" in file], f"exit {code}, left {left} {text[-300:]}")
    return None


with tempfile.TemporaryDirectory() as main:
    make(main)
    check_stdin(main)
    check_told(main)
    check_seen(main)
    check_marks(main)
    check_change(main)
done_testing()
