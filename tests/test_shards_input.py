# SPDX-License-Identifier: BSD-3-Clause
"""Claim: --rows reads patterns, lists, safetensors and virtual datasets as their formats say.  If
one of many files is wrong, the message has its name."""
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from io_tool import tool
from shard_files import P, safetensors, values_made
from tap import claim, done_testing, need, ok, peer_missing, sagitta, same


def is_read(name, expected, what):
    with tempfile.NamedTemporaryFile() as out:
        done = tool("rows", name, out.name)
        words = done.stdout.split()
        good = done.returncode == 0 and [int(words[0]), int(words[1])] == list(expected.shape) and \
            np.array_equal(np.fromfile(out.name, "u4").reshape(expected.shape), expected.view("u4"))
    ok(good, f"{what}: {done.stderr}")


def is_refused(name, code, words, what):
    with tempfile.NamedTemporaryFile() as out:
        done = tool("rows", name, out.name, memory=2 << 30)
    ok(done.returncode == code and all(w in done.stderr for w in words),
       f"{what}: {done.returncode} {done.stderr.strip()}")


def order_told(*words):
    """The warning of a run about the order of files; "" if there is none."""
    done = sagitta(*words)
    need(done, words)
    return "".join(line for line in done.stderr.splitlines() if "order of their bytes" in line)


@claim("if names sort by bytes in another order than by their numbers, a warning names both orders")
def check_order(folder, values):
    for names, before in ((["p1", "p2", "p10"], ("p10", "p2")), (["p01", "p02", "p10"], None),
                          (["a9-b1", "a9-b2", "a10-b1"], ("a10-b1", "a9-b1")),
                          (["a1-9", "a1-10"], ("a1-10", "a1-9")),
                          (["l2-p1", "l2-p2", "l11-p1"], ("l11-p1", "l2-p1")),
                          (["9/x", "10/x"], ("10/x", "9/x")), (["10ab", "9cd"], None),
                          (["2024-9", "2024-09b", "x10", "y2"], None), (["1", "01x"], None),
                          (["99999999999999999999", "100000000000000000000"],
                           ("100000000000000000000", "99999999999999999999"))):
        d = tempfile.mkdtemp(dir=folder)
        for i, name in enumerate(names):
            os.makedirs(os.path.dirname(f"{d}/{name}"), exist_ok=True)
            np.save(f"{d}/{name}.npy", values[40 * i:40 * i + 40])
        depth = "*/*" if "/" in names[0] else "*"
        told = order_told("seed", "--rows", f"{d}/{depth}.npy", "--atoms", 4, "--output",
                          f"{d}/out")
        places = [told.find(f"{name}.npy'") for name in before or ()]
        ok(0 <= places[0] < places[1] if before else not told, f"{names}: {told}")
        with open(f"{d}/out/run.log", encoding="utf-8") as f:
            ok((told[12:] in f.read()) == bool(told) or not told, "run.log has the warning")
        with open(f"{d}/list", "w", encoding="utf-8") as f:
            f.writelines(f"{name}.npy\n" for name in names)
        told = order_told("seed", "--rows", f"@{d}/list", "--atoms", 4, "--output", f"{d}/own")
        ok(not told, f"{names}, in a list: {told}")


@claim("if a pattern leaves out numbers between others, a warning names the files beside them")
def check_gaps(folder, values):
    for numbers, beside in (((1, 2, 4, 5), (2, 4)), ((0, 1000, 2000, 4000), (2000, 4000)),
                            ((8, 9, 10, 12), (10, 12)), ((0, 980, 2011), None), ((3, 7), None),
                            ((0, 64, 128, 192), None), ((1, 2, 3), None), ((1, 3, 5), None)):
        d = tempfile.mkdtemp(dir=folder)
        for i, number in enumerate(numbers):
            np.save(f"{d}/p{number:04}-x.npy", values[40 * i:40 * i + 40])
        with open(f"{d}/list", "w", encoding="utf-8") as f:
            f.writelines(f"p{number:04}-x.npy\n" for number in numbers)
        for rows in f"{d}/*.npy", f"@{d}/list":
            done = sagitta("seed", "--rows", rows, "--atoms", 4, "--force", "--output", f"{d}/out")
            need(done, rows)
            told = [line for line in done.stderr.splitlines() if "is followed by" in line]
            words = [f"'p{n:04}-x.npy'" for n in beside or () if "*" in rows]
            ok(len(told) == (len(words) > 0) and all(w in told[0] for w in words),
               f"{numbers}, {rows}: {done.stderr}")


@claim("for a folder of shards, or a pattern without quotes, the message says what to type")
def check_typed(folder, values):
    d = tempfile.mkdtemp(dir=folder)
    for end in "npy", "safetensors", "h5":
        os.makedirs(f"{d}/{end}")
        for i in range(3):
            name = f"{d}/{end}/{i}.{end}"
            if end == "npy":
                np.save(name, values[:9])
            elif end == "h5":
                with h5py.File(name, "w") as f:
                    f["rows"] = values[:9]
            else:
                safetensors(name, {"a": ("F32", values[:9]), "b": ("F32", values[:9])})
        for command in ("seed", "--atoms", 3), ("fit", "--atoms", 3), ("train", "--atoms", 3):
            done = sagitta(*command, "--rows", f"{d}/{end}/", "--output", f"{d}/out")
            ok(done.returncode == 74 and f"all 3 are '{d}/{end}/*.{end}', in quotes" in done.stderr,
               f"{command}, {end}: {done.stderr}")
        names = [f"{d}/{end}/{i}.{end}" for i in range(3)]
        for option in "--rows", "--holdout":
            done = sagitta("fit", option, *names, "--atoms", 3, "--output", f"{d}/out")
            ok(done.returncode == 2 and f"{option} '{d}/{end}/*.{end}'" in done.stderr and
               "in quotes" in done.stderr, f"three files: {done.stderr}")
            done = sagitta("fit", option, *names[:2], "--atoms", 3, "--output", f"{d}/out")
            ok(done.returncode == 2 and "a pattern in quotes" in done.stderr,
               f"two files, one taken for a deck: {done.stderr}")
    done = sagitta("seed", "--rows", f"{d}/safetensors/*.safetensors", "--atoms", 3, "--output",
                   f"{d}/out")
    ok(done.returncode == 65 and ":NAME" in done.stderr, f"several tensors: {done.stderr}")
    need(sagitta("seed", "--rows", f"{d}/safetensors/*.safetensors:b", "--atoms", 3, "--output",
                 f"{d}/out"), "one tensor of each")


@claim("patterns and lists name the right files in the right order, and errors in them are named")
def check_names(folder, values):
    d = f"{folder}/names"
    os.makedirs(f"{d}/B")
    order = ["B/x", "a-10", "a-2", "a[1]", "b", "\u00e4"]  # in the order of bytes
    for i, name in enumerate(order):
        with h5py.File(f"{d}/{name}.h5", "w") as f:
            f["rows"] = values[10 * i:10 * i + 10]
            f["x/y"] = values[10 * i:10 * i + 10] + 1
    is_read(f"{d}/*.h5", values[10:60], "a pattern, sorted by bytes")
    is_read(f"{d}/*.h5:/x/y", values[10:60] + 1, "a pattern and a path")
    is_read(f"{d}/a-?*.h5", values[10:30], "another pattern")
    is_read(f"{d}/a[1].h5", values[30:40], "a name that is a file is no pattern")
    with open(f"{d}/list", "w") as f:
        f.write("\ufeffb.h5  # first\na-*.h5:/x/y\n#a[1].h5\nB/x.h5\n")
    is_read(f"@{d}/list", np.concatenate([values[40:50], values[10:30] + 1, values[:10]]),
            "a list of names and patterns")
    is_refused(f"{d}/z*.h5", 74, ["no file matches", "z*.h5'", "correct the pattern"], "no match")
    for text, code, words in (
            ("b.h5\nnone.h5\n", 74, ["none.h5': No such file", "shard 2 of 2, by line 2 of"]),
            ("b.h5\nn*.h5\n", 74, ["no file matches", "/bad"]),
            ("# nothing\n", 65, ["names no files"]), ("", 65, ["names no files"]),
            ("@list\n", 65, ["line 1", "names another list"]),
            ("b.h5\nb.h5\n", 65, ["are there twice"]),
            ("b.h5\n./b.h5\n", 65, ["are there twice"]),
            ("b.h5\n\x01\n", 65, ["line 2", "is not text"]),
            ("b.h5\nodd.npy\n", 65, ["5 columns", "24", "shard 2 of 2"]),
            ("b.h5\nline.npy\n", 65, ["1 dimensions", "shard 2 of 2"])):
        np.save(f"{d}/odd.npy", np.zeros((3, 5), "f4"))
        np.save(f"{d}/line.npy", np.zeros(3, "f4"))
        with open(f"{d}/bad", "w") as f:
            f.write(text)
        is_refused(f"@{d}/bad", code, words, f"a list: {text!r}")
    is_refused(f"@{d}/b.h5", 65, ["is not text"], "a list that is data")
    is_refused(f"@{d}/missing", 74, ["No such file"], "a list that is not there")
    bad = values[:20].copy()
    bad[7, 3] = np.nan
    np.save(f"{d}/bad.npy", bad)
    done = sagitta("seed", "--rows", f"{d}/b.h5", "--rows", f"{d}/bad.npy", "--atoms", 2,
                   "--output", f"{d}/seed")
    ok(done.returncode == 65 and "row 17, column 3 is nan: it is row 7 of" in done.stderr and
       "bad.npy" in done.stderr, f"a bad value is told by both its rows: {done.stderr}")
    os.link(f"{d}/b.h5", f"{d}/supports.h5")
    done = sagitta("encode", "--rows", f"{d}/a-2.h5", "--rows", f"{d}/b.h5", "--dictionary",
                   f"{folder}/whole", "--force", "--output", d)
    ok(done.returncode == 73 and "would replace an input" in done.stderr,
       f"no shard is replaced by a result: {done.stderr}")
    done = sagitta("encode", "--rows", f"@{d}/list", "--dictionary", f"{folder}/whole", "--force",
                   "--output", f"{d}/x.h5")
    os.rename(f"{d}/list", f"{d}/y.h5")
    done = sagitta("encode", "--rows", f"@{d}/y.h5", "--dictionary", f"{folder}/whole", "--force",
                   "--output", f"{d}/y.h5")
    ok(done.returncode == 73 and "would replace an input" in done.stderr,
       f"nor is a list: {done.stderr}")


@claim("files of the package safetensors are read")
def check_package(folder, values):
    python = os.environ.get("PEER_PYTHON", sys.executable)
    np.save(f"{folder}/package.npy", values)
    code = ("import sys, numpy as np; from safetensors.numpy import save_file; "
            "values = np.load(sys.argv[1])\n"
            "save_file({'rows': values, 'f2': values.astype('f2'), 'n': np.arange(3)}, "
            "sys.argv[2], metadata={'format': 'np', '\u00e4\"': '\\\\\\n'})")
    done = subprocess.run([python, "-c", code, f"{folder}/package.npy",
                           f"{folder}/package.safetensors"], capture_output=True, text=True)
    if done.returncode:
        peer_missing(f"{python} has no usable package safetensors: {done.stderr[-200:]}")
        return
    is_read(f"{folder}/package.safetensors", values, "rows")
    is_read(f"{folder}/package.safetensors:f2", values, "float16")


@claim("a header of safetensors is read strictly, and sizes in it are checked")
def check_safetensors(folder, values):
    path = f"{folder}/t.safetensors"
    few = values[:4]
    good = {"dtype": "F32", "shape": [4, P], "data_offsets": [0, few.nbytes]}

    def header(entry=good, name="rows", **more):
        return json.dumps({name: {**entry, **more}}).encode()

    safetensors(path, {"rows": ("F32", few)}, header(name="r\u00f6ws\U0001f600\n\"") + b"  ")
    is_read(path, few, "escapes, pairs, and blanks at the end")
    text = header()
    safetensors(path, {"rows": ("F32", few)}, text[:-1] + b', "__metadata__": {"a": "b"}}')
    is_read(path, few, "metadata")
    safetensors(path, {"rows": ("F64", few.astype("f8"))})
    is_read(path, few, "float64")
    refused = [
        (65, "an unknown key", ["each once"], header(extra=1)),
        (65, "a missing key", ["each once"], b'{"rows": {"dtype": "F32"}}'),
        (65, "a key twice", ["each once"], text.replace(b'"shape"', b'"dtype": "F32", "shape"')),
        (65, "a tensor twice", ["twice"], text[:-1] + b", " + text[1:]),
        (65, "metadata that are numbers", ["a text is missing"],
         text[:-1] + b', "__metadata__": {"a": 1}}'),
        (65, "a type that is not read", ["type I32"], header(dtype="I32")),
        (65, "a negative size", ["a number is expected"], header(shape=[-4, P])),
        (65, "a size with a fraction", ["does not end"], header(shape=[4.0, P])),
        (65, "zeros in front", ["a number is expected"], text.replace(b"[4,", b"[04,")),
        (65, "a huge size", ["its shape wants"], header(shape=[10**17, P])),
        (65, "a size beyond 64 bits", ["a number is expected"], header(shape=[10**30, P])),
        (65, "nine dimensions", ["too long"], header(shape=[1] * 9)),
        (65, "three dimensions", ["3 dimensions"], header(shape=[2, 2, P])),
        (65, "data that begin late", ["begins at byte 4"],
         header(data_offsets=[4, few.nbytes + 4])),
        (65, "data that end late", ["truncated"],
         header(shape=[5, P], data_offsets=[0, few.nbytes + 4 * P])),
        (65, "data that end early", ["384"], header(shape=[3, P], data_offsets=[0, 12 * P])),
        (65, "an end before the begin", ["a begin and an end"], header(data_offsets=[4, 0])),
        (65, "text behind the end", ["behind its end"], text + b"x"),
        (65, "a zero byte", ["not text"], text + b"\0"),
        (65, "no end", ["does not end"], text[:-1]),
        (65, "an end inside", ["damaged at byte"], text[:30]),
        (65, "no object", ["brace"], b"[]" + b" " * 20),
        (65, "no tensors", ["has no tensors"], b"{}" + b" " * 20),
        (65, "bytes that are not UTF-8", ["not UTF-8"], text.replace(b"rows", b"r\xffws")),
        (65, "a control character", ["not UTF-8"], text.replace(b"rows", b"r\nws")),
        (65, "an unknown escape", ["escape"], text.replace(b"rows", b"r\\ows")),
        (65, "half of a pair", ["half of a pair"], text.replace(b"rows", b"r\\ud800ws")),
        (65, "an escape of zero", ["escape"], text.replace(b"rows", b"r\\u0000ws")),
    ]
    for code, what, words, text_ in refused:
        empty = {} if what == "no tensors" else {"rows": ("F32", few)}
        safetensors(path, empty, text_)
        is_refused(path, code, words, what)
    for length, words in ((1 << 62, ["no safetensors"]), (99 * 10**6, ["truncated"]),
                          (0, ["no safetensors"]), (2**64 - 1, ["no safetensors"])):
        safetensors(path, {"rows": ("F32", few)}, length=length)
        is_refused(path, 65, words, f"a header of {length} bytes")
    with open(path, "wb") as f:
        f.write(b"\1\0\0")
    is_refused(path, 65, ["truncated"], "three bytes")
    safetensors(path, {"a": ("F32", few), "b": ("F32", few)})
    is_refused(path, 65, ["several tensors, 'a', 'b'", "NAME"], "several, and no name")
    is_refused(f"{path}:c", 65, ["no tensor 'c'", "'a', 'b'"], "a name that is not there")
    is_read(f"{path}:b", few, "one of several")
    done = sagitta("inspect", path)
    title, blank, head, *lines = done.stdout.splitlines() + [""] * 3
    ok(done.returncode == 0 and "safetensors file, " in title and not blank and
       head.split() == ["tensor", "shape", "type"] and
       "as --rows 4 rows of 24 columns" in lines[0], f"inspect shows them: {done.stdout}")
    atoms = np.eye(8, P, dtype="f4")
    safetensors(path, {"atoms": ("F32", atoms)})
    done = sagitta("encode", "--rows", f"{folder}/one.npy", "--dictionary", path, "--top-s", 2,
                   "--output", f"{folder}/tensors")
    ok(done.returncode == 0, f"a dictionary may be one too: {done.stderr}")


@claim("the sources of a virtual dataset are read; they must exist, in its folder or below")
def check_virtual(folder, values):
    d = f"{folder}/virtual"
    os.makedirs(f"{d}/below/deep")
    few = values[:60]
    places = [f"{d}/below/a.h5", f"{d}/below/deep/b.h5", f"{d}/c.h5"]
    for i, place in enumerate(places):
        with h5py.File(place, "w") as f:
            f["x"] = few[20 * i:20 * i + 20]

    def virtual(name, changes=None, names=None, kind="f4", rows=60):
        layout = h5py.VirtualLayout((rows, P), kind)
        for i, place in enumerate(names or places):
            if changes and i in changes:
                changes[i](layout, place)
            else:
                source = h5py.VirtualSource(os.path.relpath(place, d), "x", (20, P))
                layout[20 * i:20 * i + 20] = source
        with h5py.File(f"{d}/{name}.h5", "w", libver="v110") as f:
            f.create_virtual_dataset("rows", layout, fillvalue=0)
        return f"{d}/{name}.h5"

    is_read(virtual("good"), few, "sources of any depth")

    def inside(layout, place):
        source = h5py.VirtualSource(os.path.relpath(place, d), "x", (20, P))
        layout[20:33], layout[33:40] = source[7:20], source[:7]

    is_read(virtual("inside", {1: inside}), np.concatenate([few[:20], few[27:40], few[20:27],
                                                            few[40:]]), "runs of rows of a source")
    is_read(virtual("whole", names=[os.path.abspath(p) for p in places]), few, "whole names")
    need(sagitta("seed", "--rows", virtual("job"), "--atoms", 9, "--output", f"{d}/seed", ranks=2),
         "a job reads it")
    np.save(f"{d}/plain.npy", few)
    need(sagitta("seed", "--rows", f"{d}/plain.npy", "--atoms", 9, "--output", f"{d}/plain"), "one")
    same(f"{d}/seed", f"{d}/plain", "with the bits of one file")
    os.rename(places[1], f"{d}/gone")
    is_refused(f"{d}/good.h5", 74, ["deep/b.h5", "a source of the virtual", "No such file"],
               "a source that is missing, which HDF5 would read as zeros")
    os.rename(f"{d}/gone", places[1])
    with h5py.File(f"{folder}/outside.h5", "w") as f:
        f["x"] = few[:20]
    is_refused(virtual("out", names=[places[0], f"{folder}/outside.h5", places[2]]), 65,
               ["not in the folder"], "a source outside")
    os.symlink(f"{folder}/outside.h5", f"{d}/link.h5")
    is_refused(virtual("link", names=[places[0], f"{d}/link.h5", places[2]]), 65,
               ["not in the folder"], "a source that leads outside")
    is_refused(virtual("hole", {1: lambda layout, place: None}), 65, ["row 20", "no source"],
               "rows without a source")

    def columns(layout, place):
        source = h5py.VirtualSource(os.path.relpath(place, d), "x", (20, P))
        layout[20:40, :P // 2] = source[:, :P // 2]

    def twice(layout, place):
        source = h5py.VirtualSource(os.path.relpath(place, d), "x", (20, P))
        layout[10:30] = source

    is_refused(virtual("columns", {1: columns}), 65, ["not a run of whole rows"], "half of a row")
    is_refused(virtual("twice", {1: twice}), 65, ["row 10", "more than one"], "rows of two sources")
    is_refused(virtual("type", kind="f8"), 65, ["float32", "float64"], "another type")

    def beyond(layout, place):
        source = h5py.VirtualSource(os.path.relpath(place, d), "x", (40, P))
        layout[20:40] = source[15:35]

    is_refused(virtual("beyond", {1: beyond}), 65, ["20 rows", "up to 35"], "rows beyond the end")
    own = virtual("self", names=[places[0], f"{d}/self.h5", places[2]])
    is_refused(own, 65, ["no dataset '/x'"], "itself")


def main():
    values = values_made()
    with tempfile.TemporaryDirectory() as folder:
        with claim("one file of rows, and a dictionary of it, are made"):
            np.save(f"{folder}/one.npy", values)
            need(sagitta("seed", "--rows", f"{folder}/one.npy", "--atoms", 40, "--output",
                         f"{folder}/whole"), "seed")
        for check in (check_names, check_order, check_gaps, check_typed, check_package,
                      check_safetensors, check_virtual):
            check(folder, values)
    done_testing()


main()
