# SPDX-License-Identifier: BSD-3-Clause
"""Claim: rows and dictionaries that NumPy and h5py wrote, in any type, byte order and chunking, are
read with one rounding.  Files that cannot be read are refused, and the message says what to do."""
import os
import tempfile

from io_tool import tool
from tap import claim, done_testing, ok, peer_missing_all

try:
    import h5py
    import numpy as np
except ImportError as error:
    peer_missing_all(str(error))


def rows(name, folder):
    """Read rows with the tool.  Returns (status, message, values as read, words of the tool)."""
    out = f"{folder}/out"
    done = tool("rows", name, out)
    if done.returncode:
        return done.returncode, done.stderr.strip(), None, []
    words = done.stdout.split()
    return 0, "", np.fromfile(out, "u4").reshape(int(words[0]), int(words[1])), words


def is_read(name, expected, folder, claim):
    status, message, values, _ = rows(name, folder)
    good = status == 0 and values.shape == expected.shape
    ok(good and np.array_equal(values, expected.view("u4")), f"{claim} {message}")


def is_refused(name, code, words, folder, claim):
    status, message, _, _ = rows(name, folder)
    ok(status == code and all(w in message for w in words), f"{claim}: {status} {message}")


def awkward_doubles():
    """Ties, values beyond float32, subnormals, and pairs that two roundings would get wrong."""
    one = np.float64(1)
    special = [0.0, -0.0, np.inf, -np.inf, 1e300, -1e300, 3.4028235e38, 3.4028235677973366e38,
               1e-45, 7e-46, 7.006492321624085e-46, 1e-320, one + 2**-24, one + 2**-24 + 2**-52,
               one + 3 * 2**-24, 65504.0, 65519.99]
    random = np.random.default_rng(1).standard_normal(4000 - len(special))
    return np.concatenate([special, random]).reshape(1000, 4)


def half_patterns():
    bits = np.arange(65536, dtype="u2").reshape(-1, 64)
    wide = bits.view("f2").astype("f4")
    quiet = np.isnan(wide)
    # NaN keeps its payload, bit for bit; NumPy may set the quiet bit on the way
    manual = ((bits.astype("u4") & 0x8000) << 16) | 0x7F800000 | ((bits.astype("u4") & 0x3FF) << 13)
    return bits, np.where(quiet, manual, wide.view("u4")).astype("u4").view("f4")


@claim("values of each HDF5 type are read with one rounding, or the type is refused")
def check_hdf5_types(folder):
    doubles = awkward_doubles()
    with np.errstate(over="ignore"):
        singles = doubles.astype("f4")
    bits, wide = half_patterns()
    brain = (bits.astype("u4") << 16).view("f4")
    path = f"{folder}/types.h5"
    with h5py.File(path, "w") as f:
        for order in "<>":
            f[f"f8{order}"] = doubles.astype(order + "f8")
            f[f"f4{order}"] = singles.astype(order + "f4")
            halves = bits.view("f2")
            f[f"f2{order}"] = halves.astype(order + "f2") if order == ">" else halves
            f[f"u2{order}"] = bits.astype(order + "u2")
            f[f"u2{order}"].attrs["dtype"] = "bfloat16"
        kind = h5py.h5t.IEEE_F16LE.copy()
        kind.set_fields(15, 7, 8, 0, 7)
        kind.set_ebias(127)
        space = h5py.h5s.create_simple(bits.shape)
        data = h5py.h5d.create(f.id, b"custom", kind, space)
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, mtype=kind)
        f["plain"] = bits
        f["other"] = bits
        f["other"].attrs["dtype"] = "float16"
        f["cube"] = np.zeros((2, 3, 4), "f4")
        f["line"] = np.zeros(7, "f4")
        f["none"] = np.zeros((5, 0), "f4")
        f["empty"] = np.zeros((0, 5), "f4")
        f["text"] = np.array([[b"abc"]])
        for kind in ("i1", "u4", ">i2"):
            f[kind] = np.ones((2, 3), kind)
        f["group/inner"] = singles
    for order in "<>":
        is_read(f"{path}:/f8{order}", singles, folder, f"float64 {order}: one rounding")
        is_read(f"{path}:/f4{order}", singles, folder, f"float32 {order}")
        is_read(f"{path}:/f2{order}", wide, folder, f"float16 {order}: all 65,536 patterns")
        is_read(f"{path}:/u2{order}", brain, folder, f"bfloat16 in uint16 {order}")
    is_read(f"{path}:/custom", brain, folder, "bfloat16 as a float type of its own")
    is_read(f"{path}:/empty", np.zeros((0, 5), "f4"), folder, "no rows")
    is_read(f"{path}:/group/inner", singles, folder, "a dataset in a group")
    is_refused(f"{path}:/plain", 65, ["type uint16: save it", 'dtype = "bfloat16"'], folder,
               "uint16 that does not say bfloat16")
    is_refused(f"{path}:/other", 65, ['dtype = "bfloat16"'], folder, "uint16 that says float16")
    is_refused(f"{path}:/cube", 65, ["3 dimensions"], folder, "three dimensions")
    is_refused(f"{path}:/line", 65, ["1 dimensions"], folder, "one dimension")
    is_refused(f"{path}:/none", 65, ["0 columns"], folder, "no columns")
    is_refused(f"{path}:/text", 65, ["type text of 3 bytes: save it as float16"], folder, "texts")
    for kind, name in (("i1", "int8"), ("u4", "uint32"), (">i2", "int16 big-endian")):
        is_refused(f"{path}:/{kind}", 65, [f"type {name}: save it"], folder, f"integers {kind}")
    is_refused(f"{path}:/group", 65, ["group, not a dataset"], folder, "a group")
    is_refused(path, 65, ["no dataset '/rows'", "'/f4<' (1000 x 4 float32)"], folder,
               "a missing dataset: the 2-D ones are listed")
    is_refused(f"{folder}/none.h5", 74, ["No such file"], folder, "no such file")
    is_refused(folder, 74, ["cannot open", "/rows.h5"], folder, "a folder without the file")


@claim("HDF5 datasets of different layouts are read")
def check_layouts(folder):
    values = np.random.default_rng(2).standard_normal((3000, 40)).astype("f4")
    path = f"{folder}/layouts.h5"
    with h5py.File(path, "w") as f:
        f["contiguous"] = values
        f.create_dataset("one", data=values, chunks=values.shape)
        f.create_dataset("gzip", data=values, chunks=(7, 40), compression="gzip", shuffle=True)
        f.create_dataset("columns", data=values, chunks=(3000, 1), fletcher32=True)
        f.create_dataset("tiles", data=values, chunks=(999, 13), maxshape=(None, None))
        f.create_dataset("huge", data=values, chunks=(1 << 20, 40), maxshape=(None, 40),
                         compression="gzip", compression_opts=1)
        layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        layout.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((300, 40))
        data = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32LE, space, layout)
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values[:300]))
    for name in ("contiguous", "one", "gzip", "columns", "tiles", "huge"):
        is_read(f"{path}:/{name}", values, folder, f"layout: {name}")
    is_read(f"{path}:/compact", values[:300], folder, "layout: compact")


@claim("values that are read in several pieces are right")
def check_blocks(folder):
    """Reads whose values are converted in several pieces."""
    values = np.random.default_rng(4).standard_normal((1700, 700))
    with h5py.File(f"{folder}/blocks.h5", "w") as f:
        for kind in ("f2", "f4", "f8"):
            f[kind] = values.astype(kind)
    for kind in ("f2", "f4", "f8"):
        expected = values.astype(kind).astype("f4")
        is_read(f"{folder}/blocks.h5:/{kind}", expected, folder, f"many {kind}")
        np.save(f"{folder}/blocks.npy", values.astype(kind))
        is_read(f"{folder}/blocks.npy", expected, folder, f"many {kind}, npy")


@claim("names of files and datasets may contain colons")
def check_names(folder):
    values = np.ones((3, 2), "f4")
    odd = f"{folder}/a:/b"
    os.makedirs(odd)
    with h5py.File(f"{odd}/c.h5", "w") as f:
        f["rows"] = values
        f["x:y"] = 2 * values
    is_read(f"{odd}/c.h5", values, folder, "a colon and slash in the path")
    is_read(f"{odd}/c.h5:/rows", values, folder, "the last ':/' splits")
    is_read(f"{odd}/c.h5:/x:y", 2 * values, folder, "a colon in the dataset's name")


def npy(path, header, data, version=1):
    text = header.encode()
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY" + bytes([version, 0]) + length + text + data)


def check_headers(path, folder, values):
    """Headers of a 2 x 2 array: valid ones of other programs, and ones that are slightly wrong."""
    descr, order, shape = "'descr': '<f4'", "'fortran_order': False", "'shape': (2, 2)"
    for header in (f"{{{descr}, {order}, {shape}}}", f"{{{shape},{order},{descr},}}   ",
                   f"{{ {order} , {shape} , {descr} , }}  \n",
                   "{'descr':'<f4','fortran_order':False,'shape':( 2 ,2 , )}\n"):
        npy(path, header, values.tobytes())
        is_read(path, values, folder, f"npy header {header!r}")
    for header, words in (
            (f"{{{descr}, {order}, {shape}, 'shape': (1, 2), }}", ["'shape' twice"]),
            (f"{{{descr}, {descr}, {order}, {shape}, }}", ["'descr' twice"]),
            (f"{{{descr}, {order}, {shape}, 'more': 1, }}", ["'more'", "a key should be"]),
            (f"{{{descr}, 'more': {{{order}, {shape}}}, }}", ["a key should be"]),
            (f"{{{descr}, {order}x, {shape}, }}", ["behind the value of 'fortran_order'"]),
            (f"{{{descr}, 'fortran_order': false, {shape}, }}", ["neither True nor False"]),
            (f"{{{descr}, 'fortran_order': Truex, {shape}, }}", ["Fortran order"]),
            (f"{{{descr}, {order}, 'shape': (02, 2), }}", ["broken shape"]),
            (f"{{{descr}, {order}, 'shape': (+2, 2), }}", ["broken shape"]),
            (f"{{{descr}, {order}, 'shape': (2 2), }}", ["broken shape"]),
            (f"{{{descr}, {order}, 'shape': (2,, 2), }}", ["broken shape"]),
            (f"{{{descr}, {order}, 'shape': (,), }}", ["broken shape"]),
            (f"{{{descr}, {order}, 'shape': (4), }}", ["broken shape"]),
            (f"{{{descr}, {order}, 'shape': 4, }}", ["broken shape"]),
            (f"{{{descr}, {order}, {shape},, }}", ["a key should be"]),
            (f"{{, {descr}, {order}, {shape} }}", ["a key should be"]),
            (f"{{{descr} {order}, {shape} }}", ["behind the value of 'descr'"]),
            (f"{{'descr' '<f4', {order}, {shape} }}", ["no colon"]),
            (f"{{{descr}, {order}, {shape}, }} x\n", ["behind its dictionary"]),
            (f"{{{descr}, {order}, {shape}, }}\n\n", ["behind its dictionary"]),
            (f"{{{descr}, {order}, {shape}, }}}}\n", ["behind its dictionary"]),
            (f"{{{descr}, {order}, }}", ["no shape"]), (f"{{{shape}, {order}, }}", ["no descr"]),
            (f"{{{descr}, {shape}, }}", ["no fortran_order"]),
            ("{'descr': '<f4}", ["type"])):
        npy(path, header, values.tobytes())
        is_refused(path, 65, words, folder, f"npy header {header!r}")


@claim(".npy files of known types and layouts are read, others are refused")
def check_npy(folder):
    path = f"{folder}/x.npy"
    doubles = awkward_doubles()
    with np.errstate(over="ignore"):
        singles = doubles.astype("f4")
    bits, wide = half_patterns()
    for order in "<>":
        for kind, data, expected in (("f8", doubles, singles), ("f4", singles, singles)):
            np.save(path, data.astype(order + kind))
            is_read(path, expected, folder, f"npy {order}{kind}")
        raw = bits.astype(order + "u2").tobytes()
        npy(path, f"{{'descr': '{order}f2', 'fortran_order': False, 'shape': (1024, 64), }}\n", raw)
        is_read(path, wide, folder, f"npy {order}f2: all 65,536 patterns")
    for version in (1, 2, 3):
        with open(path, "wb") as f:
            np.lib.format.write_array(f, singles, version=(version, 0))
        is_read(path, singles, folder, f"npy version {version}")
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n"
    npy(path, header, singles[:1].tobytes(), 4)
    is_refused(path, 65, ["version 4"], folder, "npy version 4")
    for data, words in ((np.asfortranarray(singles), ["Fortran", "ascontiguousarray"]),
                        (np.ones((2, 2), "i4"), ["i4", "astype"]),
                        (singles.astype("c8"), ["c8", "astype"]),
                        (np.zeros((2, 2), [("a", "f4")]), ["astype"]),
                        (singles[0], ["1 dimensions"]), (singles[None], ["3 dimensions"]),
                        (np.float32(1), ["0 dimensions"]), (np.zeros((3, 0), "f4"), ["0 columns"])):
        np.save(path, data)
        is_refused(path, 65, words, folder, f"npy {data.dtype} {data.shape}")
    for header in ("{'descr': '<f4', 'shape': (2, 2), }",
        "{'descr': '<f4', 'fortran_order': False, }",
                   "{'fortran_order': False, 'shape': (2, 2), }", "no dictionary", "{", "{}",
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (2, }",
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -2), }",
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 9999999999999999999), }",
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 2), }",
                   "{'descr': '", "{'shape': (2"):
        npy(path, header, bytes(16))
        is_refused(path, 65, ["x.npy"], folder, f"npy header {header[:60]}")
    check_headers(path, folder, singles[:2, :2])
    np.save(path, singles)
    with open(path, "rb") as f:
        whole = f.read()
    bad = 0
    for size in [*range(0, 140), *range(140, len(whole), 997), len(whole) - 1]:
        with open(path, "wb") as f:
            f.write(whole[:size])
        status, message, _, _ = rows(path, folder)
        said = ("truncated" in message or "damaged" in message) if size else "is empty" in message
        bad += status != 65 or not said
    ok(bad == 0, f"npy cut short anywhere is refused, {bad} are not")
    with open(path, "wb") as f:
        f.write(whole[:-4])
    is_refused(path, 65, ["15996 bytes of values, its shape wants 16000"], folder, "npy cut short")
    with open(path, "wb") as f:
        f.write(b"\x89HDF\r\n\x1a\n" + whole)
    is_refused(path, 65, ["is an HDF5 file", "ends in .h5"], folder, "an HDF5 file named .npy")
    with open(path, "wb") as f:
        f.write(b"x,y\n1.25,2.5\n")
    is_refused(path, 65, ["not a NumPy file", "from HDF5, .npy"], folder, "a text named .npy")
    is_refused(f"{path}:/rows", 65, ["holds one array"], folder, "a dataset of a .npy file")


@claim("a file of another kind than its name suggests is not called damaged")
def check_kinds(folder):
    values = np.random.default_rng(5).standard_normal((4, 3)).astype("f4")
    np.save(f"{folder}/kind.npy", values)
    with h5py.File(f"{folder}/kind.h5", "w") as f:
        f["rows"] = values
    with h5py.File(f"{folder}/block.h5", "w", userblock_size=2048) as f:
        f["rows"] = values
    files = {end: open(f"{folder}/kind.{end}", "rb").read() for end in ("npy", "h5")}
    block = open(f"{folder}/block.h5", "rb").read()
    head = b'{"rows":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]}}'
    files["safetensors"] = len(head).to_bytes(8, "little") + head + values.tobytes()
    called = {"npy": "is a NumPy file", "h5": "is an HDF5 file",
              "safetensors": "is a safetensors file"}
    for end, data in files.items():
        for name in ("npy", "h5", "safetensors", "bin"):
            path = f"{folder}/other.{name}"
            with open(path, "wb") as f:
                f.write(data)
            if name == end or (name, end) == ("bin", "h5"):
                is_read(path, values, folder, f"{end} named .{name}")
            else:
                is_refused(path, 65, [called[end], f"if its name ends in .{end}"], folder,
                           f"{end} named .{name}")
    for name in ("npy", "h5", "safetensors"):
        path = f"{folder}/other.{name}"
        open(path, "wb").close()
        is_refused(path, 65, ["is empty: copy it again"], folder, f"an empty .{name}")
    for name, data, words in (
            ("h5", b"x,y\n" * 999, ["is not an HDF5 file", "HDF5, .npy and .safetensors"]),
            ("h5", files["h5"][:99], ["is damaged, cut, or still", "copy it again", "truncated"]),
            ("bin", b"x" * 2048 + block[2048:-1], ["is damaged, cut, or still being written: "
                                                   "copy it again"])):
        with open(f"{folder}/other.{name}", "wb") as f:
            f.write(data)
        is_refused(f"{folder}/other.{name}", 65, words, folder, f"{data[:9]} named .{name}")
    with open(f"{folder}/other.bin", "wb") as f:
        f.write(block)
    is_read(f"{folder}/other.bin", values, folder, "HDF5 behind a block of the user's")


def check_memory(folder):
    """Read 200 MB.  The memory must not grow with the number of rows."""
    path = f"{folder}/large.npy"
    peaks = []
    for count in (1000, 100000):
        np.lib.format.open_memmap(path, "w+", "f8", (count, 256)).flush()
        peaks.append(int(rows(path, folder)[3][3]))
        with h5py.File(f"{folder}/large.h5", "w") as f:
            f.create_dataset("rows", (count, 256), "f8", chunks=(500, 256), fillvalue=1.5,
                             compression="gzip", compression_opts=1)[:] = 1.5
        peaks.append(int(rows(f"{folder}/large.h5", folder)[3][3]))
    ok(peaks[2] < peaks[0] + 4e3 and peaks[3] < peaks[1] + 8e3,
       f"a hundred times the rows need no more memory: {peaks} kB")
    os.remove(path)


def dictionary(name, folder):
    done = tool("dictionary", name, f"{folder}/out")
    return done, open(f"{folder}/out", "rb").read() if done.returncode == 0 else b""


@claim("dictionaries are read or refused")
def check_dictionaries(folder):
    atoms = np.random.default_rng(3).standard_normal((6, 2, 5))
    path = f"{folder}/d.h5"

    def write(name="atoms", data=atoms, mean=None):
        with h5py.File(path, "w") as f:
            f[name] = data
            if mean is not None:
                f["mean"] = mean
    mean = np.arange(5) / 3
    write(mean=mean)
    done, values = dictionary(path, folder)
    ok(done.stdout == "6 2 5 1\n" and values == atoms.astype("f4").tobytes() + mean.tobytes(),
       "frames in f64, with a mean")
    write("other", atoms[:, 0])
    done, values = dictionary(f"{path}:/other", folder)
    ok(done.stdout == "6 1 5 0\n" and values == atoms[:, 0].astype("f4").tobytes(), "plain atoms")
    np.save(f"{folder}/d.npy", atoms)
    ok(dictionary(f"{folder}/d.npy", folder)[0].stdout == "6 2 5 0\n", "frames in .npy")
    for data, mean, words in ((np.zeros((2, 9, 5)), None, "9 vectors"),
                              (atoms[0, 0], None, "1 dim"),
                              (np.zeros((0, 5)), None, "0 atoms"),
                              (np.zeros((2, 0)), None, "0 col"),
                              (atoms, np.zeros(4), "'/mean'"), (atoms, np.zeros((5, 1)), "'/mean'"),
                              (atoms, np.array([0, 0, np.nan, 0, 0]), "column 2 of the mean"),
                              (atoms, np.array([0, 0, 0, -1e39, 0]), "column 3 of the mean"),
                              (atoms, np.zeros(5, "i4"), "'/mean'")):
        write(data=data, mean=mean)
        done, _ = dictionary(path, folder)
        ok(done.returncode == 65 and words in done.stderr, f"refused: {done.stderr.strip()}")


with tempfile.TemporaryDirectory() as where:
    check_hdf5_types(where)
    check_layouts(where)
    check_blocks(where)
    check_names(where)
    check_npy(where)
    check_kinds(where)
    if not os.environ.get("SANITIZED"):  # sanitizers keep freed memory for a while
        check_memory(where)
    check_dictionaries(where)
done_testing()
