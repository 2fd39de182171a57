# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows in many files, whatever their formats and sizes, give the bits of the same rows in
one file, on any number of ranks; and what is wrong with a shard is said with its name."""
import json
import os
import struct
import subprocess
import tempfile

import h5py
import numpy as np

from io_tool import tool
from jobs import environment
from tap import SAGITTA, claim, done_testing, ok, sagitta, skip

N, P = 5003, 24  # N is no multiple of a sum block, of a block, or of a number of ranks


def safetensors(path, tensors, header=None, tail=b"", length=None):
    """The file by hand: {name: (dtype, array)}; or with a header that is given."""
    at, entries, data = 0, {}, b""
    for name, (dtype, values) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": list(values.shape),
                         "data_offsets": [at, at + values.nbytes]}
        data += values.tobytes()
        at += values.nbytes
    text = header if header is not None else json.dumps(entries).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text) if length is None else length) + text + data + tail)


def brain(values):
    """The bits of bfloat16 values that float32 values are exactly."""
    return (values.view("u4") >> 16).astype("u2")


def values_made():
    """Values that float16 and bfloat16 hold exactly."""
    random = np.random.default_rng(5)
    return (random.integers(-128, 128, (N, P)) / 32).astype("f4")


def cuts_of(sizes):
    at = 0
    for size in sizes:
        yield at, at + size
        at += size


def shard_write(folder, i, part):
    """One shard, in a format of its own; its name as --rows has it."""
    kind = i % 6
    path = f"{folder}/s{i:03d}"
    if kind == 0:
        np.save(f"{path}.npy", part)
        return f"{path}.npy"
    if kind == 1:
        with h5py.File(f"{path}.h5", "w") as f:
            f.create_dataset("deep/x", data=part.astype("f8"), chunks=(1, P), compression="gzip")
        return f"{path}.h5:/deep/x"
    if kind == 2:
        safetensors(f"{path}.safetensors", {"rows": ("F32", part)})
        return f"{path}.safetensors"
    if kind == 3:
        other = np.zeros(3, "f4")
        safetensors(f"{path}.safetensors", {"a": ("F32", other), "x": ("F16", part.astype("f2")),
                                            "b": ("I32", other)})
        return f"{path}.safetensors:x"
    if kind == 4:
        safetensors(f"{path}.safetensors", {"only": ("BF16", brain(part))})
        return f"{path}.safetensors"
    np.save(f"{path}.npy", part.astype(">f2"))
    return f"{path}.npy"


def shards_write(folder, values, sizes):
    os.makedirs(folder)
    return [shard_write(folder, i, values[a:b]) for i, (a, b) in enumerate(cuts_of(sizes))]


def need(done, what):
    ok(done.returncode == 0, f"{what}: {done.stderr[-300:]}")


def same(a, b, what):
    done = sagitta("diff", a, b)
    ok(done.returncode == 0 and not done.stdout, f"{what}: {done.stdout}{done.stderr}")


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


@claim("patterns and lists: what they name, in which order, and what is wrong with them")
def check_names(folder, values):
    d = f"{folder}/names"
    os.makedirs(f"{d}/B")
    order = ["B/x", "a-10", "a-2", "a[1]", "b", "\u00e4"]  # by bytes
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


@claim("the package of safetensors writes what is read")
def check_package(folder, values):
    try:
        from safetensors.numpy import save_file
    except ImportError:
        skip("the Python package safetensors is not installed")
        return
    save_file({"rows": values, "f2": values.astype("f2"), "n": np.arange(3)},
              f"{folder}/package.safetensors", metadata={"format": "np", "\u00e4\"": "\\\n"})
    is_read(f"{folder}/package.safetensors", values, "rows")
    is_read(f"{folder}/package.safetensors:f2", values, "float16")


@claim("a header of safetensors is read strictly, and no size in it is believed")
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
    ok(done.returncode == 0 and "safetensors file" in done.stdout and
       "as --rows 4 rows of 24 columns" in done.stdout, f"inspect shows them: {done.stdout}")
    atoms = np.eye(8, P, dtype="f4")
    safetensors(path, {"atoms": ("F32", atoms)})
    done = sagitta("encode", "--rows", f"{folder}/one.npy", "--dictionary", path, "--top-s", 2,
                   "--output", f"{folder}/tensors")
    ok(done.returncode == 0, f"a dictionary may be one too: {done.stderr}")


@claim("a virtual dataset stands for its sources, which have to be there, and below its folder")
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
    for target in (f"{folder}/one.npy", f"{folder}/outside.h5"):
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


def rank_sees(folder):
    """Ranks whose shards differ: one has another file, or one more."""
    text = f'cd x$OMPI_COMM_WORLD_RANK && exec {os.path.abspath(SAGITTA)} seed "$@"'
    words = [*os.environ.get("MPIEXEC", "mpirun").split(), "--oversubscribe", "--bind-to", "none",
             "-n", "2", "sh", "-c", text, "sh", "--rows", "*.npy", "--atoms", "2",
             "--output", "out"]
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
        for check in (check_bits, check_others, check_names, check_package, check_safetensors,
                      check_virtual, check_agreement, check_many):
            check(folder, values)
    done_testing()


main()
