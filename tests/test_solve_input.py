# SPDX-License-Identifier: BSD-3-Clause
"""Claim: systems that contradict themselves, and damaged files, are refused before any work, with
one message that names the place, and nothing is published.  Files of other programs work as they
are."""
import os
import re
import resource
import subprocess
import tempfile

import h5py
import numpy as np

from arrow_files import ARRAYS, backward_error, random_system, solutions, write
from tap import SAGITTA, claim, done_testing, ok, sagitta, skip

CUTS, FLIPS = 3, 6  # test_io_hostile tries more of them, without the program


def refused(folder, text, words, code=65, ranks=0):
    out = os.path.join(folder, "out")
    done = sagitta("solve", "--systems", os.path.join(folder, "s.h5"), "--output", out, ranks=ranks)
    said = [line for line in done.stderr.splitlines() if "sagitta solve: " in line]
    good = done.returncode == code and len(said) == 1 and all(w in said[0] for w in words)
    if not ok(good and not os.path.exists(out + "/solutions.h5"), f"{text}: {''.join(said)[-90:]}"):
        print("#", done.stderr.replace("\n", "\n# "))


def set_at(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array
    return change


@claim("systems that contradict themselves are refused")
def check_contents(folder, systems):
    path = os.path.join(folder, "s.h5")

    def bad(text, words, ranks=0, **changes):
        write(path, systems, changes=changes)
        refused(folder, text, words, ranks=ranks)

    bad("offsets fall", ["fall from 14 to 3", "system 2"], ranks=3, atom_offsets=set_at(3, 3))
    bad("offsets do not begin at 0", ["begin at row 1"], atom_offsets=set_at(0, 1))
    bad("offsets end too early", ["D_blocks", "entries"], atom_offsets=set_at(4, 24))
    bad("d is 0", ["system 1", "row blocks of 0"], row_dims=set_at(1, 0))
    bad("d is negative", ["row blocks of -2"], row_dims=set_at(1, -2))
    bad("d is too large", ["row blocks of 9", "1 to 8"], row_dims=set_at(3, 9))
    bad("k is negative", ["system 0", "border of -1"], ranks=2, border_dims=set_at(0, -1))
    bad("k is too large", ["border of 1025", "0 to 1024"], border_dims=set_at(0, 1025))
    bad("an atom twice", ["atom 2 twice"], ranks=2, atom=set_at(0, 2))
    bad("a negative atom", ["lists atom -5"], atom=set_at(0, -5))
    bad("sizes that overflow", ["more numbers than can be counted"],
        atom_offsets=set_at(slice(1, None), 2**61))
    for name in ("D_blocks", "B_blocks", "g_t", "hbb", "g_b"):
        bad(f"{name} is short", [name, "entries"], **{name: lambda a: a[:-1]})
    bad("integers", ["g_t", "of int64: save it as float64"], g_t=lambda a: a.astype("i8"))
    bad("halves", ["hbb", "of float16: save it as float64"], hbb=lambda a: a.astype("f2"))
    bad("a matrix", ["hbb", "2 dimensions"], hbb=lambda a: a[None])
    bad("fewer dimensions than systems", ["row_dims", "3 entries, not 4"], row_dims=lambda a: a[:3])
    bad("no offsets", ["atom_offsets", "empty"], atom_offsets=lambda a: a[:0])
    write(path, systems, drop=("hbb",))
    refused(folder, "no border", ["no dataset '/systems/hbb'"])
    write(path, systems)
    with h5py.File(path, "a") as f:
        f["systems/row"] = np.arange(3)
    refused(folder, "rows of another length", ["/systems/row", "3 entries, not 25"])
    os.unlink(path)
    refused(folder, "no file", ["cannot open"], 74, ranks=3)


@claim("usage errors exit with 2")
def check_options(folder):
    path = os.path.join(folder, "s.h5")
    for words, told in ((("--systems", path), "'--output' is missing"),
                        (("--output", folder), "'--systems' is missing"),
                        (("--systems", path, "--output", folder, "--ridge-t", "-1"), "ridge-t"),
                        (("--systems", path, "--output", folder, "--ridge-b", "nan"), "ridge-b")):
        done = sagitta("solve", *words)
        ok(done.returncode == 2 and told in done.stderr, f"exit 2: {told}")


@claim("damaged files are refused or harmless")
def check_damage(folder, systems):
    """Damage our own files, which have checksums: cut them anywhere, or flip a bit.  The program
    must never crash."""
    made = os.path.join(folder, "made")
    sagitta("synth", "--systems", 30, "--system-rows", 20, "--output", made)
    with open(os.path.join(made, "systems.h5"), "rb") as f:
        whole = f.read()
    path, out = os.path.join(folder, "s.h5"), os.path.join(folder, "damaged")
    random = np.random.default_rng(1)
    bad = 0
    for cut in np.linspace(0, len(whole) - 1, CUTS).astype(int):
        with open(path, "wb") as f:
            f.write(whole[:cut])
        bad += sagitta("solve", "--systems", path, "--output", out).returncode not in (65, 74)
    ok(bad == 0, f"{CUTS} truncated files are refused")
    sagitta("solve", "--systems", os.path.join(made, "systems.h5"), "--output", made)
    silent = crashed = 0
    for _ in range(FLIPS):
        at = int(random.integers(len(whole)))
        with open(path, "wb") as f:
            f.write(whole[:at] + bytes([whole[at] ^ 1 << int(random.integers(8))]) + whole[at + 1:])
        code = sagitta("solve", "--systems", path, "--output", out, "--force").returncode
        crashed += code not in (0, 65, 74)
        if code == 0:
            silent += sagitta("diff", out + "/solutions.h5", made + "/solutions.h5").returncode != 0
    ok(crashed == 0 and silent == 0, f"{FLIPS} flipped bits: refused, or without effect")


@claim("foreign files work as they are")
def check_foreign(folder, systems):
    path = os.path.join(folder, "s.h5")
    write(path, systems, drop=("color",), changes={"row_dims": lambda a: a.astype("i2")})
    done = sagitta("solve", "--systems", path, "--output", folder + "/foreign")
    found = solutions(folder + "/foreign/solutions.h5", systems) if not done.returncode else []
    worst = max([backward_error(s, one["t"], one["b"]) for s, one in zip(systems, found)] or [1])
    ok(worst < 4e-15, f"another program's file, without colours or rows: {worst:.1e}"
       + done.stderr[-100:] * bool(done.returncode))
    write(path, [])
    done = sagitta("solve", "--systems", path, "--output", folder + "/empty", ranks=2)
    ok(done.returncode == 0 and sagitta("verify", folder + "/empty/solutions.h5").returncode == 0,
       "no systems at all" + done.stderr * bool(done.returncode))


@claim("a system that does not fit in memory is refused before it is read")
def check_memory(folder):
    """A file with a hole that is larger than the memory of the process."""
    if os.environ.get("SANITIZED"):
        return skip("sanitizers reserve terabytes of addresses, which a limit would not allow")
    n, d, k, limit = 30000, 8, 1024, 1 << 30
    path = os.path.join(folder, "large.h5")
    with h5py.File(path, "w") as f:
        for name, value in (("atom", 0), ("color", 0), ("row_dims", d), ("border_dims", k)):
            f["systems/" + name] = np.array([value], "i4")
        f["systems/atom_offsets"] = np.array([0, n], "i8")
        stored = h5py.h5p.create(h5py.h5p.DATASET_CREATE)  # as a hole
        stored.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        stored.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        for name, count in zip(ARRAYS, (n * d * d, n * d * k, n * d, k * k, k)):
            h5py.h5d.create(f["systems"].id, name.encode(), h5py.h5t.NATIVE_DOUBLE,
                            h5py.h5s.create_simple((count,)), stored)
    cap = lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    done = subprocess.run([SAGITTA, "solve", "--systems", path, "--threads", "1", "--output",
                           folder + "/large"], capture_output=True, text=True, preexec_fn=cap)
    told = re.search(r"(\d+) bytes are needed .* (\d+) are present for each rank", done.stderr)
    ok(done.returncode == 71 and told and int(told[1]) > 2 * 8 * n * d * k > int(told[2])
       and not os.path.exists(folder + "/large/solutions.h5"),
       f"exit {done.returncode} {done.stderr.strip()[-240:]}")


def main():
    random = np.random.default_rng(1)
    systems = [random_system(random, d, k, n) for d, k, n in
               ((2, 3, 7), (1, 5, 7), (3, 2, 0), (2, 4, 11))]
    with tempfile.TemporaryDirectory() as folder:
        check_contents(folder, systems)
        check_options(folder)
        check_foreign(folder, systems)
        check_damage(folder, systems)
        check_memory(folder)
    done_testing()


main()
