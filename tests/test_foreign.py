# SPDX-License-Identifier: BSD-3-Clause
"""Claim: files of other programs are read, with any names and integer types.  If HDF5 cannot read a
file here, the message says why and what to do."""
import os
import re
import tempfile

import h5py
import numpy as np

from shard_files import safetensors
from tap import OLD, claim, done_testing, fails, need, ok, sagitta, same

N, P, K = 300, 12, 30
NEWER = ["a newer HDF5", "libver=('earliest', 'v110')", "h5repack --high=2"]


def problem(at):
    random = np.random.default_rng(8)
    atoms = random.standard_normal((K, P))
    atoms = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")
    codes = np.zeros((N, K))
    for row in codes:
        row[random.choice(K, 3, replace=False)] = random.uniform(1, 2, 3)
    rows = (codes @ atoms).astype("f4")
    np.save(f"{at}/rows.npy", rows)
    np.save(f"{at}/atoms.npy", atoms)
    with h5py.File(f"{at}/fit.h5", "w", libver=OLD) as f:
        f["atoms"] = atoms
    return rows, atoms, codes.astype("f4")


def encode(at, rows, out="o.h5", *words, dictionary="atoms.npy"):
    return sagitta("encode", "--rows", rows, "--dictionary", f"{at}/{dictionary}", "--top-s", 3,
                   "--output", f"{at}/{out}", "--force", *words)


@claim("a colon belongs to a file's name if such a file exists, otherwise it begins a name inside "
       "a file")
def check_colons(at, rows, atoms):
    need(encode(at, f"{at}/rows.npy", "whole.h5"), "the rows themselves")
    os.makedirs(f"{at}/a:b")
    for path in (f"{at}/layers.safetensors", f"{at}/a:b/x:1.safetensors"):
        safetensors(path, {"blocks.3:hook:resid": ("F32", rows), "blocks.4:/x": ("F32", rows[::2]),
                           "0": ("F32", atoms), "a:": ("F32", rows[:5])})
        for end in ("safetensors", "?afetensors"):
            name = f"{path[:-11]}{end}:blocks.3:hook:resid"
            need(encode(at, name), name)
            same(f"{at}/o.h5", f"{at}/whole.h5", name)
            need(encode(at, f"{at}/rows.npy", "o.h5", dictionary=f"{path[len(at) + 1:]}:0"), path)
            same(f"{at}/o.h5", f"{at}/whole.h5", f"atoms of {path}")
        fails(encode(at, f"{path}:blocks.3:no"), 65, ["no tensor 'blocks.3:no'", "hook:resid"],
              "a tensor that is not there")
    with h5py.File(f"{at}/colon.h5", "w", libver=OLD) as f:
        f["layer:/3/resid:post"] = rows
    for name in ("/layer:/3/resid:post", "layer:/3/resid:post"):
        need(encode(at, f"{at}/colon.h5:{name}"), name)
        same(f"{at}/o.h5", f"{at}/whole.h5", name)
    fails(sagitta("inspect", f"{at}/colon.h5:layer:/3"), 2, ["whole files", "':layer:/3' out"],
          "inspect of a part")


def filtered(path, name, values, number, mask=0):
    """Write a dataset with the filter `number`, which h5py does not apply.  If bit 0 of the mask is
    set, the chunk says that the filter was skipped."""
    with h5py.File(path, "a", libver=OLD) as f:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk(values.shape)
        made.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (1,))
        parent = f.require_group(os.path.dirname(name)) if "/" in name else f
        d = h5py.h5d.create(parent.id, os.path.basename(name).encode(), h5py.h5t.py_create(
            values.dtype), h5py.h5s.create_simple(values.shape), made)
        d.write_direct_chunk((0,) * values.ndim, values.tobytes(), mask)


@claim("a missing HDF5 filter is reported with its name and number, and what to do")
def check_filters(at, rows, atoms):
    for number, name in ((32000, "LZF (32000)"), (32001, "Blosc (32001)"), (307, "bzip2 (307)"),
                         (32015, "Zstandard (32015)"), (31000, "of that number (31000)")):
        path = f"{at}/f{number}.h5"
        filtered(path, "rows", rows, number)
        filtered(path, "atoms", atoms, number)
        words = [f"filter {name}", "h5repack -f GZIP=4", "HDF5_PLUGIN_PATH", "HDF5 "]
        fails(encode(at, path), 65, ["'/rows'", *words], f"rows of {number}")
        fails(encode(at, f"{at}/rows.npy", dictionary=f"f{number}.h5"), 65, ["'/atoms'", *words],
              f"atoms of {number}")
        fails(sagitta("verify", path), 65, words, f"verify of {number}")
    with h5py.File(f"{at}/lzf.h5", "w", libver=OLD) as f:
        f.create_dataset("rows", data=np.tile(rows[:2], (N, 1)), chunks=(50, P),
                         compression="lzf", fletcher32=True)
    fails(encode(at, f"{at}/lzf.h5"), 65, ["LZF (32000)"], "LZF of h5py")
    csr(f"{at}/packed.h5", np.ones((N, K), "f4"))
    with h5py.File(f"{at}/packed.h5", "r+") as f:
        data = f["supports/data"][:]
        del f["supports/data"]
    filtered(f"{at}/packed.h5", "supports/data", data, 32004)
    fails(sagitta("evaluate", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy",
                  "--codes", f"{at}/packed.h5"), 65, ["LZ4 (32004)", "data"], "codes")
    filtered(f"{at}/skipped.h5", "rows", rows, 32000, mask=1)
    need(encode(at, f"{at}/skipped.h5"), "a filter that no chunk went through")
    same(f"{at}/o.h5", f"{at}/whole.h5", "and the rows are those")


def patched(path, out, pattern, byte, value):
    """Change one byte that the pattern finds: the version of an HDF5 structure."""
    with open(path, "rb") as f:
        whole = bytearray(f.read())
    found = re.search(pattern, whole, re.S)
    if ok(found, f"{pattern}: there is one"):
        whole[found.start() + byte] = value
    with open(out, "wb") as f:
        f.write(whole)


@claim("if this HDF5 does not know a version, the message says that a newer HDF5 wrote the file")
def check_newer(at, rows):
    with h5py.File(f"{at}/old.h5", "w", libver=OLD) as f:
        f.create_dataset("rows", data=rows, chunks=(50, P), compression="gzip")
    need(encode(at, f"{at}/old.h5"), "as it is")
    head = rb"..[\x00-\x07]\x00\x00\x00"
    for what, pattern, byte, value in (
            ("superblock", rb"\x89HDF\r\n\x1a\n", 8, 9),
            ("layout", rb"\x08\x00" + head + rb"\x03\x02\x03", 8, 5),
            ("fill value", rb"\x05\x00" + head + rb"[\x01-\x03]", 8, 9),
            ("datatype", rb"\x03\x00" + head + rb"\x11", 8, 0x61),
            ("datatype of a new class", rb"\x03\x00" + head + rb"\x11", 8, 0x1b),
            ("dataspace", rb"\x01\x00" + head + rb"\x01\x02", 8, 7),
            ("filters", rb"\x0b\x00" + head + rb"\x01\x01", 8, 6)):
        patched(f"{at}/old.h5", f"{at}/new.h5", pattern, byte, value)
        done = encode(at, f"{at}/new.h5")
        fails(done, 65, NEWER, what)
        ok("copy it again" not in done.stderr, f"{what}: it is not called damaged alone")


@claim("if a program is writing a file, the message says so")
def check_open(at, rows):
    for swmr in (True, False):
        with h5py.File(f"{at}/open.h5", "w", libver="v110") as f:
            f.create_dataset("rows", data=rows, chunks=(50, P), maxshape=(None, P))
            if swmr:
                f.swmr_mode = True
            f.flush()
            with open(f"{at}/open.h5", "rb") as whole, open(f"{at}/copy.h5", "wb") as copy:
                copy.write(whole.read())
            done = encode(at, f"{at}/open.h5")
            fails(done, 65 if swmr else 74, ["a program", "close it there"],
                  f"it is open, SWMR {swmr}")
        done = encode(at, f"{at}/copy.h5")
        fails(done, 65, ["a program is writing it", "h5clear -s"], f"a copy, SWMR {swmr}")
        ok("damaged" not in done.stderr, "the message does not call the file damaged")
        need(encode(at, f"{at}/open.h5"), "it is closed")


def csr(path, dense, indices="i4", indptr="i8", shape="i8"):
    start = np.cumsum([0, *(dense != 0).sum(1)])
    with h5py.File(path, "w", libver=OLD) as f:
        g = f.create_group("supports")
        g.attrs["shape"] = np.array(dense.shape, shape)
        g["indptr"], g["indices"] = start.astype(indptr), np.nonzero(dense)[1].astype(indices)
        g["data"] = dense[dense != 0]


def uses(at, path, out):
    """Run commands that take codes.  Returns {name: run}."""
    data = ("--rows", f"{at}/rows.npy", "--dictionary", f"{at}/atoms.npy")
    end = ("--force", "--output", f"{at}/{out}")
    return {"evaluate": sagitta("evaluate", *data, "--codes", path),
            "color": sagitta("color", "--supports", path, *end),
            "refit": sagitta("refit", *data, "--supports", path, "--sweeps", 1, *end),
            "terminal": sagitta("terminal", *data, "--supports", path, *end),
            "top": sagitta("top", "--supports", path, *end)}


@claim("indices and their starts may have any integer type; an index that is no atom is named")
def check_whole(at, codes):
    path = f"{at}/codes.h5"
    csr(path, codes)
    made = uses(at, path, "i4")
    lines = made["evaluate"].stdout
    for verb, done in made.items():
        ok(done.returncode == 0, f"{verb}: {done.returncode} {done.stderr[-300:]}")
    for types in (("i8", "i8", "i8"), ("u8", "u8", "u8"), ("u4", "u4", "u4"), (">i8", ">i8", ">i8"),
                  ("u2", "i4", "i4"), ("i8", "i4", "u8"), ("i1", "u2", "i8")):
        csr(path, codes, *types)
        for verb, done in uses(at, path, "any").items():
            ok(done.returncode == made[verb].returncode, f"{verb} of {types}: {done.stderr[-300:]}")
            ok(verb != "evaluate" or done.stdout == lines, f"evaluate of {types}: {done.stdout}")
    for kind, value, word in (("i8", 2**40, str(2**40)), ("i8", -2**33, str(-2**33)),
                              ("u8", 2**64 - 1, str(2**63 - 1)), ("i8", 2**31, str(2**31)),
                              ("u8", K, str(K)), ("i8", -1, "-1")):
        csr(path, codes, kind)
        with h5py.File(path, "r+") as f:
            f["supports/indices"][7] = value
        for verb, done in uses(at, path, "any").items():
            fails(done, 65, [word], f"{verb} of atom {value}")
    csr(path, codes)
    with h5py.File(path, "r+") as f:  # a row may have any order, as in a product of two matrices
        for name in ("indices", "data"):
            f[f"supports/{name}"][:2] = f[f"supports/{name}"][:2][::-1]
    for verb, done in uses(at, path, "any").items():
        if verb == "refit":
            fails(done, 65, ["row 0 of", "behind atom", "sort_indices()"], "refit of another order")
        else:
            ok(done.returncode == 0, f"{verb} of another order: {done.stderr[-300:]}")
    for name in ("indices", "indptr"):
        csr(path, codes, **{name: "f8"})
        fails(uses(at, path, "any")["evaluate"], 65, [name, "whole numbers", 'astype("i8")'],
              f"{name} of floats")


def python2(path, values, order="False"):
    shape = ", ".join(f"{n}L" for n in values.shape) + ("," if values.ndim == 1 else "")
    head = f"{{'descr': '<f4', 'fortran_order': {order}, 'shape': ({shape}), }}".encode()
    head += b" " * (-(11 + len(head)) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + values.tobytes())


@claim("a .npy file with a second array after the first is refused; other bytes after it are not")
def check_single(at, rows):
    with open(f"{at}/several.npy", "wb") as f:
        np.save(f, rows[:9])
        np.save(f, rows[9:])
    for name, what in ("several", "several arrays"), ("padded", ""):
        if not what:
            np.save(f"{at}/padded.npy", rows)
            with open(f"{at}/padded.npy", "ab") as f:
                f.write(bytes(100))
        done = sagitta("encode", "--rows", f"{at}/{name}.npy", "--dictionary", f"{at}/atoms.npy",
                       "--top-s", 2, "--force", "--output", f"{at}/single.h5")
        ok(done.returncode == (65 if what else 0) and what in done.stderr, f"{name}: {done.stderr}")


@claim("headers that Python 2 wrote are read as NumPy reads them; wrong headers of a similar form "
       "are refused")
def check_python2(at, rows, atoms):
    python2(f"{at}/two.npy", rows)
    need(encode(at, f"{at}/two.npy"), "rows")
    same(f"{at}/o.h5", f"{at}/whole.h5", "rows of Python 2")
    python2(f"{at}/two-atoms.npy", atoms)
    need(encode(at, f"{at}/rows.npy", dictionary="two-atoms.npy"), "atoms")
    with open(f"{at}/two.npy", "rb") as f:
        whole = f.read()
    for text in (b"(30LL, 12L)", b"(L, 12L)", b"(300l, 12)", b"(300L 12L)"):
        with open(f"{at}/bad.npy", "wb") as f:
            f.write(re.sub(rb"\(300L, 12L\)", text, whole))
        done = encode(at, f"{at}/bad.npy")
        ok(done.returncode == 65 and ("shape" in done.stderr or "dictionary" in done.stderr),
           f"{text}: {done.returncode} {done.stderr[-200:]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        rows, atoms, codes = problem(at)
        check_colons(at, rows, atoms)
        check_filters(at, rows, atoms)
        check_newer(at, rows)
        check_open(at, rows)
        check_whole(at, codes)
        check_single(at, rows)
        check_python2(at, rows, atoms)
    done_testing()
