# SPDX-License-Identifier: BSD-3-Clause
"""Claim: damage that the program once did not notice in tests/soak_faults is refused by verify and
by the command that reads the file.  The damage is made again in new files."""
import glob
import os
import shutil
import tempfile

import h5py

from jobs import faulty
from tap import claim, done_testing, ok, sagitta, skip


def need(*words):
    done = sagitta(*words)
    if done.returncode:
        raise SystemExit(f"Bail out! {done.stderr}")


def make(folder, seed):
    """Make files of every kind whose damage once passed.  Two seeds give the same layout."""
    need("synth", "--n-rows", 150, "--atoms", 12, "--columns", 16, "--top-s", 3, "--noise", 0.1,
         "--start-cosine", 0.8, "--seed", seed, "--output", folder)
    inputs = ["--rows", f"{folder}/rows.h5", "--dictionary", f"{folder}/start.h5"]
    need("encode", *inputs, "--top-s", 3, "--output", folder)
    need("color", "--supports", f"{folder}/supports.h5", "--output", folder)
    need("assemble", *inputs, "--supports", f"{folder}/supports.h5", "--output", folder)
    need("refit", *inputs, "--supports", f"{folder}/supports.h5", "--output", f"{folder}/refit")


def chunk(path, name):
    """The first and the last byte of a dataset's only chunk, with its checksum."""
    with h5py.File(path) as f:
        info = f[name].id.get_chunk_info(0)
    return info.byte_offset, info.byte_offset + info.size


def zero(content, path, older, name):
    begin, end = chunk(path, name)
    content[begin:end] = bytes(end - begin)


def swap(content, path, older, name, other):
    (a, b), (c, d) = chunk(path, name), chunk(path, other)
    content[a:b], content[c:d] = content[c:d], content[a:b]


def stale(content, path, older, name):
    begin, end = chunk(path, name)
    with open(older, "rb") as f:
        content[begin:end] = f.read()[begin:end]


def heap(content, path, older):
    """Change a size in HDF5's heap of texts.  HDF5 crashed on this."""
    content[content.index(b"GCOL") + 8] ^= 16


SUPPORTS = "--rows rows.h5 --dictionary start.h5 --supports supports.h5"
CRAFTED = (  # file, damage, what is damaged, the command that reads it
    ("rows.h5", zero, ("rows",), "encode --top-s 3 --rows rows.h5 --dictionary start.h5"),
    ("rows.h5", stale, ("rows",), ""),  # only verify checks rows and systems: doc/formats.md
    ("rows.h5", zero, ("planted/codes",), ""),
    ("rows.h5", stale, ("planted/atoms",), ""),
    ("start.h5", stale, ("atoms",), "route --top-s 3 --rows rows.h5 --dictionary start.h5"),
    ("supports.h5", swap, ("supports/data", "supports/score"), f"terminal {SUPPORTS}"),
    ("supports.h5", stale, ("supports/indices",), "color --supports supports.h5"),
    ("supports.h5", heap, (), ""),
    ("classes.h5", stale, ("color",), f"assemble --classes classes.h5 {SUPPORTS}"),
    ("classes.h5", zero, ("class_offsets",), f"refit --classes classes.h5 {SUPPORTS}"),
    ("systems.h5", stale, ("systems/g_t",), ""),
    ("systems.h5", zero, ("systems/g_t",), "solve --systems systems.h5"),
    ("systems.h5", zero, ("systems/color",), ""),
    ("refit/dictionary.h5", swap, ("fit/log_det_mantissa", "fit/log_det_hessian"), ""),
)


def craft(a, b, place, name, damage, of):
    """Copy the folder a, and damage a file of the copy."""
    shutil.copytree(a, place)
    with open(f"{a}/{name}", "rb") as f:
        content = bytearray(f.read())
    damage(content, f"{a}/{name}", f"{b}/{name}", *of)
    with open(f"{place}/{name}", "wb") as f:
        f.write(content)


@claim("crafted files are refused by verify and by the commands that read them")
def check_crafted(folder):
    for i, (name, damage, of, words) in enumerate(CRAFTED):
        place = f"{folder}/{i}"
        craft(f"{folder}/a", f"{folder}/b", place, name, damage, of)
        verify = sagitta("verify", f"{place}/{name}")
        what = f"{damage.__name__} {' '.join(of)} of {name}"
        ok(verify.returncode == 65, f"{what}: verify: exit {verify.returncode}")
        if words:
            done = sagitta(*[f"{place}/{w}" if w.endswith(".h5") else w for w in words.split()],
                           "--output", f"{place}/out")
            ok(done.returncode == 65 and not glob.glob(f"{place}/out/*.h5*"),
               f"{what}: exit {done.returncode} {done.stderr[-200:]}")


@claim("if all renames from the second on fail, no temporary file is left")
def check_renames(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    for n in 1, 2, 3:
        out = f"{folder}/renamed-{n}"
        code, text = faulty(f"rename:{n}+", "encode", "--rows", f"{folder}/a/rows.h5",
                            "--dictionary", f"{folder}/a/start.h5", "--top-s", 3, "--output", out)
        left = [f for f in os.listdir(out) if f.endswith(".tmp")] if os.path.isdir(out) else []
        ok(code in (0, 73, 74) and not left, f"rename {n}: exit {code}, {left} {text[-200:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        make(f"{folder}/a", 0)
        make(f"{folder}/b", 1)
        check_crafted(folder)
        check_renames(folder)
    done_testing()


main()
