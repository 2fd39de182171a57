# SPDX-License-Identifier: BSD-3-Clause
"""Claim: h5py, SciPy, AnnData and h5dump read our files.  inspect, verify and diff work on any HDF5
file.  They name what is not as the format requires.  On hostile files they end soon, and never
crash."""
import os
import shutil
import subprocess
import tempfile

from io_tool import tool
from tap import claim, done_testing, ok, peer_missing, peer_missing_all

try:
    import h5py
    import numpy as np
    from seal import reseal, wrong_seals
except ImportError as error:
    peer_missing_all(str(error))

N, K, S, D = 200, 40, 6, 2
MEMORY = 2 << 30  # bytes of address space, for hostile files
THREADS = (1, 3)  # of verify


@claim("h5py, scipy, anndata and h5dump read our files")
def check_independent_readers(path):
    with h5py.File(path) as f:
        ok(f.attrs["format"] == "sagitta" and f.attrs["kind"] == "supports" and
           f.attrs["format_version"] == 4 and f.attrs["top_s"] == S and f.attrs["rounds"] == 3,
           "h5py: root attributes")
        bad = []
        f.visititems(lambda name, o: bad.append(name) if isinstance(o, h5py.Dataset) and not (
            o.chunks and o.fletcher32 and o.dtype.byteorder in "<=") else None)
        ok(not bad, f"h5py: every dataset is chunked, checked and little-endian {bad}")
        codes, data = f["supports/codes"][:], f["supports/data"][:]
        norms = np.sqrt((codes.astype("f8") ** 2).sum(1)).astype("f4")
        ok(codes.shape == (N * S, D) and np.allclose(abs(data), norms, rtol=1e-6),
           "h5py: data is the norm of the codes")
        ok(f["run"].attrs["host"] == "a host" and f["run"].attrs["ranks"] == 3, "h5py: provenance")
        formula = f["metrics"].attrs["fvu_formula"]
        ok("RSS / TSS" in formula and f["metrics/density"].attrs["formula"], "h5py: formulas")
        density = np.bincount(f["supports/indices"][:], minlength=K)
        ok(np.array_equal(f["metrics/density"][:], density), "h5py: density")
        parts = [f["supports"][name][:] for name in ("data", "indices", "indptr")]
    try:
        import scipy.sparse
        matrix = scipy.sparse.csr_matrix(tuple(parts), shape=(N, K))
        matrix.check_format(full_check=True)
        ok(matrix.nnz == N * S, "scipy: a CSR matrix")
    except ImportError as error:
        peer_missing(str(error))
        return
    try:
        try:
            from anndata.io import read_elem
        except ImportError:
            from anndata.experimental import read_elem
        with h5py.File(path) as f:
            ok((read_elem(f["supports"]) != matrix).nnz == 0, "anndata: the same matrix")
    except ImportError as error:
        peer_missing(str(error))
    if not shutil.which("h5dump"):
        peer_missing("h5dump is not installed")
        return
    dump = subprocess.run(["h5dump", "-p", path], capture_output=True, text=True, check=False)
    ok(dump.returncode == 0 and "FLETCHER32" in dump.stdout and "csr_matrix" in dump.stdout,
       "h5dump prints it")


def changed(path, change, hashed=True):
    """A copy of the file after change(h5py file), with the hashes of its new contents."""
    copy = path + ".changed"
    shutil.copy(path, copy)
    with h5py.File(copy, "r+", libver=("v110", "v110")) as f:
        change(f)
        if hashed:
            reseal(f)
    return copy


def replace(f, name, values):
    attributes = dict(f[name].attrs)
    del f[name]
    f.create_dataset(name, data=values, chunks=True, fletcher32=True)
    f[name].attrs.update(attributes)


def put(name, index, value):
    return lambda f: f[name].__setitem__(index, value)


def attribute(name, key, value):
    return lambda f: f[name].attrs.__setitem__(key, value)


def cast(name, kind):
    return lambda f: replace(f, name, f[name][:].astype(kind))


def remove(name):
    return lambda f: f.__delitem__(name)


def lengthen(name, count):
    return lambda f: replace(f, name, np.concatenate([f[name][:], f[name][:count]]))


@claim("a link out of the file is never followed, wherever it is in a path; a link inside the "
       "file is")
def check_links(folder):
    with h5py.File(f"{folder}/target.h5", "w") as f:
        f["rows"] = f["g/rows"] = np.ones((5, 2), "f4")
    os.mkfifo(f"{folder}/pipe.h5")
    with h5py.File(f"{folder}/link.h5", "w") as f:
        f["rows"] = h5py.ExternalLink(f"{folder}/target.h5", "/rows")
        f["g"] = h5py.ExternalLink(f"{folder}/target.h5", "/g")
        f["pipe"] = h5py.ExternalLink(f"{folder}/pipe.h5", "/g")
        f["deep/g"] = h5py.SoftLink("/g")
        f["loop"] = h5py.SoftLink("/loop/rows")
        for name in ("rows", "g", "pipe", "nowhere"):
            f["soft-" + name] = h5py.SoftLink("/" + name)
        f["in/more/rows"] = np.ones((5, 2), "f4")
        f["inside"] = h5py.SoftLink("/in/more")
        f["atoms"] = np.eye(2, dtype="f4")
        f["mean"] = h5py.SoftLink("/rows")
    for path in ("rows", "g/rows", "pipe/rows", "deep/g/rows", "soft-rows", "soft-g/rows",
                 "soft-pipe/rows", "soft-nowhere", "soft-nowhere/rows", "loop", "loop/rows"):
        done = tool("rows", f"{folder}/link.h5:/{path}", f"{folder}/out", memory=MEMORY)
        ok(done.returncode == 65 and " link " in done.stderr, f"/{path}: {done.stderr.strip()}")
    done = tool("dictionary", f"{folder}/link.h5:/atoms", f"{folder}/out")
    ok(done.returncode == 65 and "'/mean'" in done.stderr, f"nor is a mean: {done.stderr.strip()}")
    done = tool("rows", f"{folder}/link.h5:/inside/rows", f"{folder}/out")
    ok(done.returncode == 0, f"a link inside the file is followed {done.stderr.strip()}")
    done = tool("rows", f"{folder}/pipe.h5", f"{folder}/out")
    ok(done.returncode == 74 and "not a regular file" in done.stderr, done.stderr.strip())


def check_promises(path, promises):
    name = os.path.basename(path)
    with claim(f"{name} is accepted by verify; an error is refused, and named by diff"):
        for threads in THREADS:
            done = tool("verify", path, threads=threads)
            ok(done.returncode == 0, f"{name} is verified {done.stderr.strip()}")
        for words, change in promises:
            copy = changed(path, change)
            done = tool("verify", copy)
            message = done.stderr.strip()
            told = tool("diff", path, copy)
            ok(done.returncode == 65 and words in message and told.returncode == 1 and told.stdout,
               f"refused: {message}; diff: {told.stdout.strip()}")
            for threads in THREADS[1:]:
                ok(tool("verify", copy, threads=threads).stderr.strip() == message,
                   f"{threads} threads say the same: {message}")


SUPPORTS = [
    ("offsets fall", put("supports/indptr", 5, 2 * S)),
    ("begins with", put("supports/indptr", 0, 1)),
    ("entries, top-s", put("supports/indptr", N, N * S - 1)),
    ("nnz", lengthen("supports/indices", 3)),
    ("N = ", lengthen("supports/indptr", 1)),
    ("is not in 0 ..", put("supports/indices", 7, K)),
    ("is not in 0 ..", put("supports/indices", 8, -1)),
    ("twice", lambda f: f["supports/indices"].__setitem__(1, f["supports/indices"][0])),
    ("selection order", put("supports/score", 1, 99)),
    ("is nan", put("supports/codes", (3, 1), np.nan)),
    ("has value inf", put("supports/data", 3, np.inf)),
    ("its codes give", put("supports/data", 4, 9)),
    ("supports give", put("metrics/density", 3, 0)),
    ("supports give", put("metrics/density_histogram", 0, 0)),
    ("int32, not int64", cast("supports/indptr", "i4")),
    ("int64, not int32", cast("supports/indices", "i8")),
    ("float64, not float32", cast("supports/data", "f8")),
    ("no '/supports/score'", remove("supports/score")),
    ("/supports/codes' is missing", remove("supports/codes")),
    ("K = ", lambda f: f["supports"].attrs.__setitem__("shape", [N, K + 1])),
    ("csr_matrix", attribute("supports", "encoding-type", "csc_matrix")),
    ("0.1.0", attribute("supports", "encoding-version", "0.1.1")),
    ("is 'sagittb', not 'sagitta'", attribute("/", "format", "sagittb")),
    ("kind", attribute("/", "kind", "support")),
    ("out of range", attribute("/", "rounds", S + 1)),
    ("out of range", attribute("/", "rho", -1.0)),
    ("'fvu' is -1", attribute("metrics", "fvu", -1.0)),
    ("'explained_variance'", attribute("metrics", "explained_variance", 0.9)),
    ("'l0'", attribute("metrics", "l0", 3.0)),
    ("dead_atoms", attribute("metrics", "dead_atoms", 0)),
    ("NaN of other bits", attribute("metrics", "mean_cosine", -np.float64("nan"))),
    ("mean_cosine", attribute("metrics", "mean_cosine", 1.5)),
    ("fvu_formula", attribute("metrics", "fvu_formula", "RSS")),
    ("column 1 of '/mean'", put("mean", 1, np.nan)),
]
ROWS = [("row 3, column 1", put("rows", (3, 1), np.inf)), ("float64", cast("rows", "f8")),
        ("no '/rows'", remove("rows"))]
DICTIONARY = [("has norm 2", put("atoms", (4, 0, 4), 2.0)),
              ("is nan", put("atoms", (5, 1, 2), np.nan)),
              ("cosine", lambda f: f["atoms"].__setitem__((2, 1), f["atoms"][2, 0])),
              ("P = ", lengthen("mean", 1))]


def same_atom(at, other):
    return lambda f: f["supports/indices"].__setitem__(at, f["supports/indices"][other])


@claim("a row of 150,000 entries between short ones is verified, and an atom twice in it found")
def check_long_row(folder):
    long, name = 150000, f"{folder}/ragged.h5"
    for other in (None, long + 2):  # None, or the last entry of the long row, which repeats an atom
        atoms = np.r_[0:3, 7:long + 7, 0:4].astype("i4")
        if other:
            atoms[other] = atoms[3]
        with h5py.File(name, "w") as f:
            group = f.create_group("supports")
            group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0",
                                "shape": [4, long + 7]})
            group["indptr"] = np.array([0, 3, 3, 3 + long, 7 + long], "i8")
            group["indices"], group["data"] = atoms, np.ones(len(atoms), "f4")
        for threads in THREADS:
            done = tool("verify", name, threads=threads)
            ok(done.returncode == (65 if other else 0) and
               (not other or "row 2 has atom 7 twice" in done.stderr),
               f"{threads} threads: {done.stderr.strip()}")


def check_far_places(folder):
    """A fault is found in any block of an array, not only in the first one."""
    tool("supports", f"{folder}/many.h5", 50, 9000, 3, 1, 0, 1, 50)
    check_promises(f"{folder}/many.h5", [("entry 8999 of", put("metrics/density", 8999, 1))])
    tool("supports", f"{folder}/thick.h5", 5000, 200, 40, 1, 0, 1, 500)
    check_promises(f"{folder}/thick.h5", [
        ("row 4999 has atom", same_atom(4999 * 40, 4999 * 40 + 39)),
        ("row 2457 has atom", same_atom(2457 * 40, 2457 * 40 + 39)),
        ("row 700 has atom", lambda f: (same_atom(28001, 28000)(f), same_atom(80001, 80000)(f))),
        ("supports give", put("metrics/density", 3, 0))])
    check_long_row(folder)
    tool("make-rows", f"{folder}/long.h5", 2000, 300, 64)
    check_promises(f"{folder}/long.h5", [("row 1999, column 299",
                                          put("rows", (1999, 299), np.nan))])
    tool("make-dictionary", f"{folder}/wide.h5", 70, 1, 9000)
    check_promises(f"{folder}/wide.h5", [("column 8999 of '/mean'", put("mean", 8999, np.inf)),
                                         ("atom 69", put("atoms", (69, 0), 1))])


def check_text_heap(path):
    """The heap of texts has no checksum.  Sizes in it may lead out of it, or back to an earlier
    place."""
    copy = path + ".heap"
    with open(path, "rb") as f:
        whole = f.read()
    heap = whole.find(b"GCOL")
    bad = []
    # The collection, and an object that is skipped on the way to the texts that are read.
    for object_ in (heap, whole.find(b"1 - RSS / TSS") - 16):
        for size in (1 << 64) - 16, (1 << 64) - 32, 1 << 63, 1 << 32, 4096, 0:
            data = bytearray(whole)
            data[object_ + 8:object_ + 16] = size.to_bytes(8, "little")
            with open(copy, "wb") as f:
                f.write(data)
            done = tool("verify", copy)
            if done.returncode != 65 and (done.returncode or tool("diff", path, copy).returncode):
                bad.append((size, done.returncode, done.stderr))
    ok(heap > 0 and not bad, f"damaged sizes in the text heap are refused or harmless {bad}")


@claim("diff names every difference, except for /run and how data are stored")
def check_diff(folder, path):
    same = changed(path, lambda f: (f["run"].attrs.__setitem__("host", "b"),
        f["run"].create_group("x")))
    done = tool("diff", path, same)
    ok(done.returncode == 0 and not done.stdout, "/run does not count")
    done = tool("diff", path, changed(path, lambda f: f.create_group("running")))
    ok(done.returncode == 1 and "'/running' is only in" in done.stdout, "/running does")

    def repacked(f):
        values = f["supports/codes"][:]
        del f["supports/codes"]
        f["supports/codes"] = values
    ok(tool("diff", path, changed(path, repacked)).returncode == 0, "storage does not count")
    for words, change in (("only in", remove("mean")),
                          ("only in", lambda f: f.create_group("more")),
                          ("@note' is only in", attribute("supports", "note", 1)),
                          ("of type", cast("mean", "f4")), ("shape", lengthen("mean", 1)),
                          ("is csr_matrix in", attribute("supports", "encoding-type", "csr")),
                          ("another kind", lambda f: (f.__delitem__("mean"),
                              f.create_group("mean")))):
        done = tool("diff", path, changed(path, change))
        ok(done.returncode == 1 and words in done.stdout, f"told: {done.stdout.strip()}")
    a, b = f"{folder}/a.h5", f"{folder}/b.h5"
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001], "u8").view("f8")
    pairs = [("zero", 0.0, -0.0), ("nan", nans[0], nans[1]), ("text", ["x", "y"], ["x", "z"]),
             ("rank", np.zeros(6), np.zeros((6, 1))), ("null", 0.0, h5py.Empty("f8")),
             ("bytes", np.array([b"ab"]), np.array([b"ac"])), ("whole", 3, 4),
             ("table", np.array([(1, 2.0)], [("i", "i4"), ("x", "f8")]),
              np.array([(1, 2.5)], [("i", "i4"), ("x", "f8")])),
             ("deep", np.zeros((2,) * 9), np.eye(2, 256).reshape((2,) * 9))]
    for name, one, other in pairs:
        for path_, value in ((a, one), (b, other)):
            with h5py.File(path_, "w") as f:
                f["same"] = 1.5
                f[name] = value
        done = tool("diff", a, b)
        ok(done.returncode == 1 and f"'/{name}'" in done.stdout and
           tool("diff", a, a).returncode == 0,
           f"told: {done.stdout.strip()[:120]}")
    large = np.arange(3000000, dtype="f8").reshape(3000, 1000)
    for path_ in (a, b):
        with h5py.File(path_, "w") as f:
            f["x"] = large
        large[2999, 998] = -1
    done = tool("diff", a, b)
    ok("[2999, 998] is 2999998 in" in done.stdout, f"the place is told: {done.stdout.strip()[:90]}")


def hostile_files(folder):
    """A list of (name, words of the refusal or '', writer)."""
    def cycle(f):
        below = f.create_group("a/b")
        below["up"] = f["a"]
        f["a/root"] = f["/"]
        f["soft"] = h5py.SoftLink("/soft")
        f["dangling"] = h5py.SoftLink("/nowhere")
        f["outside"] = h5py.ExternalLink(f"{folder}/secret.h5", "/rows")

    def bush(f):
        below = f.create_group("g0")
        for level in range(1, 40):
            above = f.create_group(f"h{level}")
            above["left"], above["right"] = below, below
            below = above

    def tower(f):
        group = f
        for _ in range(3000):
            group = group.create_group("g")

    def sparse(f):
        f.create_dataset("rows", (1 << 40, 1 << 10), "f4", chunks=(1024, 1024))

    def virtual(f):
        layout = h5py.VirtualLayout((5, 2), "f4")
        layout[:] = h5py.VirtualSource("/etc/passwd", "rows", (5, 2))
        f.create_virtual_dataset("rows", layout)

    def external(f):
        f.create_dataset("rows", (5, 2), "f4", external=[(f"{folder}/secret.h5", 0, 40)])

    def weird(f):
        f["lists"] = h5py.Empty("f4")
        f.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))[1] = [1, 2]
        f.create_dataset("texts", (3,), h5py.string_dtype())[1] = "x\x1b[31m"
        f["enum"] = np.zeros(3, h5py.enum_dtype({"A": 0}))
        f["refs"] = np.array([f["enum"].ref], h5py.ref_dtype)
        f["odd"] = np.zeros((2, 2), np.dtype([("a", "f2"), ("b", "S3"), ("c", "i8", (2,))]))
        f["type"] = np.dtype("f8")
        f["complex"] = np.zeros(3, "c16")
        f["long"] = np.zeros(3, "V5000")
        f.attrs["many"] = np.arange(100)
        f.attrs["texts"] = ["a", "b"]
    return [("cycle", "", cycle), ("bush", "", bush), ("tower", "deeper than", tower),
            ("sparse", "claims", sparse), ("virtual", "not followed", virtual),
            ("external", "other files", external), ("weird", "", weird)]


@claim("with hostile files commands end soon, and never crash")
def check_hostile(folder):
    with h5py.File(f"{folder}/secret.h5", "w") as f:
        f["rows"] = np.ones((5, 2), "f4")
    for name, words, write in hostile_files(folder):
        path = f"{folder}/{name}.h5"
        with h5py.File(path, "w", libver=("v110", "v110")) as f:
            write(f)
        for verb, *more in (("inspect",), ("verify",), ("diff", path), ("rows", f"{folder}/out")):
            done = tool(verb, path, *more, memory=MEMORY)
            told = done.stdout if verb == "inspect" and done.returncode == 0 else done.stderr
            good = done.returncode in ((65,) if words and told == done.stderr else (0, 65))
            good = good and (words in told or "no dataset" in told)
            ok(good, f"{name}, {verb}: {done.returncode} {done.stderr.strip()[:100]}")
    page = tool("inspect", f"{folder}/cycle.h5").stdout
    ok("/outside" in page and "not followed" in page, "links are shown")
    page = tool("inspect", f"{folder}/weird.h5").stdout
    ok("/ragged" in page and "variable-length" in page and "\x1b" not in page,
        "odd types are shown")


@claim("inspect shows the metrics, datasets and texts of a file")
def check_inspect(path):
    page = tool("inspect", path).stdout
    ok(all(words in page for words in ("sagitta supports, format version 4", "explained_variance",
                                       "/supports/indices", "1200", "float32", "#####", "a host")),
       "a page about supports")
    page = tool("inspect", changed(path, attribute("run", "host", "a = 1\n\n# B\nb = 2\n"))).stdout
    ok("\n  host                        \n    a = 1\n    # B\n    b = 2\n  ranks " in page,
       "a text of several lines is shown in lines")


with tempfile.TemporaryDirectory() as where:
    supports = f"{where}/supports.h5"
    ok(tool("supports", supports, N, K, S, D, 1, 3, 33).returncode == 0, "a file with supports of "
                                                                         "frames is made")
    check_independent_readers(supports)
    check_inspect(supports)
    check_promises(supports, SUPPORTS)
    plain = f"{where}/plain.h5"
    tool("supports", plain, N, K, S, 1, 0, 1, 33)
    check_promises(plain, [("is not its score", put("supports/data", 2, 7)),
                           ("selection order", lambda f: (f["supports/score"].__setitem__(1, .75),
                                                          f["supports/data"].__setitem__(1, .75),
                                                          f["supports/indices"].__setitem__(0, 2),

                                   f["supports/indices"].__setitem__(2, 0)))])
    tool("make-rows", f"{where}/rows.h5", 20, 3, 5)
    check_promises(f"{where}/rows.h5", ROWS)
    tool("make-dictionary", f"{where}/dictionary.h5", 9, 2, 5)
    check_promises(f"{where}/dictionary.h5", DICTIONARY)
    check_far_places(where)
    check_text_heap(supports)
    check_diff(where, supports)
    check_hostile(where)
    check_links(where)
done_testing()
