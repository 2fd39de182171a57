# SPDX-License-Identifier: BSD-3-Clause
"""Claim: Dictionary and Encoder of the Python package compute in the calling process, and give the
bytes of `sagitta encode`, for any batches, threads and types.  Errors are exceptions with the
program's words.  The library exports only its own functions; it prints nothing, and ends no
process."""
import os
import pickle
import subprocess
import sys
import tempfile
import threading

import h5py
import numpy as np

from exchange_files import MADE, tensors
from peer import PACKAGE
from tap import SAGITTA, SOURCE, claim, done_testing, need, ok, peer_missing, raised
from tap import sagitta as program

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)

import sagitta  # noqa: E402, which is given its program

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(SAGITTA)), "libsagitta.so")
N, K = 700, 64
CALLS = {"sagitta_abi", "sagitta_message", "sagitta_open", "sagitta_encode", "sagitta_support",
         "sagitta_copied", "sagitta_close"}
KINDS = {"relu": "learning_relu", "topk": "saelens_topk_rescaled", "jumprelu": "learning_jumprelu",
         "batchtopk": "learning_batchtopk"}


def stored(path):
    """(start, atoms, codes) of a supports.h5, as they are stored."""
    with h5py.File(os.path.join(path, "supports.h5")) as f:
        return [f[f"supports/{name}"][:] for name in ("indptr", "indices", "data")]


def same(codes, path, what):
    """Has a csr_array, or CSR, the bytes of a result of the program?"""
    start, atoms, values = stored(path)
    ok(len(start) == len(codes.indptr) and (codes.indptr == start).all() and
       codes.indices.astype("i4").tobytes() == atoms.astype("i4").tobytes() and
       codes.data.tobytes() == values.tobytes(), what)


def joined(coder, x, step, **how):
    """The codes of x as one matrix, from calls with `step` rows each."""
    parts = [coder.encode(x[i:i + step], **how) for i in range(0, len(x), step)]
    starts = np.cumsum([0, *(len(part.data) for part in parts)])
    return sagitta.CSR(*(np.concatenate([getattr(part, name) for part in parts])
                         for name in ("data", "indices")),
                       np.concatenate([[0], *(part.indptr[1:] + first
                                              for part, first in zip(parts, starts))]), None)


@claim("dictionaries give the program's bytes for any rounds, signs, penalties, batches and "
       "threads")
def check_dictionary(at, x):
    need(program("fit", "--find", "codes", "--rows", f"{at}/x.npy", "--atoms", K, "--top-s", 8,
                 "--sweeps", 2, "--holdout-share", 0, "--output", f"{at}/fit"), "fit")
    d = sagitta.open(f"{at}/fit").dictionary
    same(d.encode(x), f"{at}/fit", "as it was fitted")
    for i, how in enumerate(({"rounds": 1}, {"rounds": 3, "rho": 0.5}, {"codes": "signed"},
                             {"codes": "signed", "rounds": 8, "rho": 0.1}, {"top_s": K},
                             {"top_s": 1, "codes": "nonnegative"})):
        words = [w for k, v in how.items() for w in (f"--{k.replace('_', '-')}", v)]
        need(program("encode", "--rows", f"{at}/x.npy", "--dictionary", f"{at}/fit", "--output",
                     f"{at}/d{i}", *words), words)
        same(d.encode(x, threads=2, **how), f"{at}/d{i}", f"{how}, all rows, two threads")
        same(joined(d, x, 7, threads=1, **how), f"{at}/d{i}", f"{how}, 7 rows at a time")
    same(joined(d, x, 1), f"{at}/fit", "one row at a time")
    atoms, codes = d.support(x)
    start, index, data = stored(f"{at}/fit")
    ok(atoms.tobytes() == index.astype("i4").tobytes() and codes.tobytes() == data.tobytes(),
       "supports")
    large = np.tile(x, (12, 1))  # more rows than the library takes at a time
    ok((d.support(large)[1] == np.tile(codes, (12, 1))).all(), f"{len(large)} rows")
    return d


@claim("rows may have any type, order and number of dimensions; rows in a tensor give codes in "
       "tensors")
def check_types(at, d, x):
    wide = x.astype("f8") * (1 + 1e-9)
    for name, rows in {"float16": x.astype("f2"), "float64": wide}.items():
        np.save(f"{at}/{name}.npy", rows)
        need(program("encode", "--rows", f"{at}/{name}.npy", "--dictionary", f"{at}/fit",
                     "--output", f"{at}/{name}"), name)
        same(d.encode(rows), f"{at}/{name}", name)
    fixed = x.copy()
    fixed.flags.writeable = False
    for name, rows in {"read-only": fixed, "three dimensions": x.reshape(7, 100, -1), "strided":
                       np.repeat(x, 2, 1)[:, ::2], "other order": np.asfortranarray(x),
                       "other bytes": x.astype(">f4"), "lists": x.tolist()}.items():
        same(d.encode(rows), f"{at}/fit", name)
    ok(d.encode(x.reshape(7, 100, -1), format="dense").shape == (7, 100, K) and
       d.support(x[0])[0].shape == (8,) and d.support(x[:0])[1].shape == (0, 8) and
       d.encode(x[:0]).shape == (0, K), "shapes")
    try:
        import torch
    except ImportError:
        peer_missing("PyTorch is not installed")
        return
    half = torch.from_numpy(x).to(torch.bfloat16)
    run = sagitta.encode(half, f"{at}/fit", progress=None)
    same(d.encode(half), run.path, "bfloat16")
    atoms, codes = d.support(half.reshape(7, 100, -1).requires_grad_())
    ok(type(atoms) is type(codes) is torch.Tensor and codes.shape == (7, 100, 8) and
       codes.numpy().tobytes() == run.codes.data.tobytes(), "tensors")
    ok(type(d.decode(d.encode(half, format="dense"))) is torch.Tensor, "decoded tensors")
    if torch.set_flush_denormal(True):  # for this thread and those that it starts, if possible
        torch.set_num_threads(3)
        torch.exp(torch.ones(1 << 20))
        same(d.encode(x, threads=3), f"{at}/fit", "subnormal numbers are flushed to zero")
        ok(torch.tensor([1e-40], dtype=torch.float32).mul(1.0).item() == 0, "and still are")
        torch.set_flush_denormal(False)


@claim("encoders of every kind give the program's bytes, for own codes, solved codes and rows "
       "without codes")
def check_encoders(at):
    for kind, name in KINDS.items():
        rows = np.vstack([tensors(f"{MADE}/{name}/expected.safetensors")["rows"][:300],
                          np.zeros((1, 16), "f4")])
        np.save(f"{at}/rows.npy", rows)
        need(program("import", f"{MADE}/{name}", "--output", f"{at}/{kind}"), kind)
        e = sagitta.Encoder.open(f"{at}/{kind}")
        for codes in ("auto", "nonnegative", "signed"):
            out = f"{at}/{kind}-{codes}"
            need(program("encode", "--rows", f"{at}/rows.npy", "--encoder", f"{at}/{kind}",
                         "--codes", codes, "--output", out), out)
            same(e.encode(rows, codes=codes, threads=2), out, f"{kind}, {codes}")
            same(joined(e, rows, 7, codes=codes), out, f"{kind}, {codes}, 7 rows at a time")
        lengths = np.diff(stored(f"{at}/{kind}-auto")[0])
        atoms, codes = e.support(rows)
        ok(atoms.shape == (len(rows), lengths.max()) and ((atoms >= 0).sum(1) == lengths).all() and
           (codes[atoms < 0] == 0).all(), f"{kind}: -1 where a row has fewer")


@claim("results of `fit --find features`, and detectors, give the program's bytes")
def check_features(at, x):
    need(program("fit", "--find", "features", "--rows", f"{at}/x.npy", "--holdout-share", 0.3,
                 "--atoms", 24, "--l0", 3, "--output", f"{at}/found"), "find")
    need(program("encode", "--rows", f"{at}/x.npy", "--encoder", f"{at}/found", "--output",
                 f"{at}/active"), "active")
    e = sagitta.open(f"{at}/found").encoder
    ok(e.kind == "active" and len(set(np.diff(stored(f"{at}/active")[0]))) > 2, "rows differ")
    same(e.encode(x, threads=2), f"{at}/active", "all rows")
    same(joined(e, x, 7), f"{at}/active", "7 rows at a time")
    copied = pickle.loads(pickle.dumps(e))
    same(copied.encode(x), f"{at}/active", "a copy by pickle")
    raised(sagitta.InputError, ["nonnegative", "leave out"], e.encode, x, codes="signed")
    need(program("detect", "--rows", f"{at}/x.npy", "--codes", f"{at}/active", "--dictionary",
                 f"{at}/found", "--output", f"{at}/detectors"), "detect")
    need(program("encode", "--rows", f"{at}/x.npy", "--encoder", f"{at}/detectors", "--output",
                 f"{at}/fires"), "fires")
    same(sagitta.Encoder.open(f"{at}/detectors").encode(x), f"{at}/fires", "detectors")


def said_by_program(at, name, rows, atoms):
    """The message with which the program refuses a dictionary or rows."""
    np.save(f"{at}/{name}-rows.npy", rows)
    np.save(f"{at}/{name}-atoms.npy", atoms)
    done = program("encode", "--rows", f"{at}/{name}-rows.npy", "--dictionary",
                   f"{at}/{name}-atoms.npy", "--top-s", 4, "--output", f"{at}/{name}")
    text = done.stderr.strip().split("sagitta encode: ")[-1]
    for file, word in (("rows", "x"), ("atoms", "atoms")):
        text = text.replace(f"{at}/{name}-{file}.npy", word)
    return done.returncode, text


@claim("errors have the program's words and its exit code")
def check_errors(at, d, x):
    eye, bad = np.eye(8, 4, dtype="f4")[:4], np.ones((3, 4), "f4")
    bad[1, 2] = np.nan
    long = eye.copy()
    long[2] *= 1.5
    huge = np.full((3, 4), 3e38, "f4")
    ones = np.full((4, 4), 0.5, "f4")
    for name, rows, atoms in (("nan", bad, eye), ("norm", bad[:1], long), ("score", huge, ones)):
        code, text = said_by_program(at, name, rows, atoms)
        try:
            sagitta.Dictionary.from_arrays(atoms, top_s=4).encode(rows)
            ok(False, f"{name}: nothing was said")
        except sagitta.InputError as error:
            ok(error.code == code and str(error) == text, f"{name}: {error}; {text}")
    wide = np.ones((2, 384))
    wide[1, 5] = 1e60
    raised(ValueError, ["row 1, column 5", "beyond float32"], d.encode, wide)
    raised(ValueError, ["(700, 5)", "384 columns"], d.encode, x[:, :5])
    raised(ValueError, ["give x.T"], d.encode, np.zeros((384, 7)))
    raised(TypeError, ["int64", "astype"], d.encode, np.zeros((2, 384), int))
    raised(ValueError, ["rho is -1"], d.encode, x, rho=-1.0)
    raised(ValueError, ["top_s is 0"], d.encode, x, top_s=0)
    raised(ValueError, ["rounds is -2"], d.encode, x, rounds=-2)
    raised(ValueError, ["threads is 0"], d.encode, x, threads=0)
    raised(ValueError, ["format"], d.encode, x, format="coo")
    raised(ValueError, ["signed"], d.encode, x, codes="own")
    raised(ValueError, ["64 atoms"], d.decode, np.zeros((2, 7)))
    raised(sagitta.Error, ["no encoder", "sagitta train"], sagitta.Encoder.open, f"{at}/fit")
    raised(sagitta.InputError, ["rho does not go"], sagitta.Encoder.open(f"{at}/relu").encode,
           np.zeros((1, 16)), rho=1.0)
    os.environ["SAGITTA_LIBRARY"] = f"{at}/x.npy"
    sagitta.library.library.cache_clear()
    raised(sagitta.Error, ["x.npy", "SAGITTA_LIBRARY"], d.encode, x[:0], threads=3)
    del os.environ["SAGITTA_LIBRARY"]
    sagitta.library.library.cache_clear()
    same(d.encode(x), f"{at}/fit", "after all of this")


@claim("a dictionary can be compared, pickled and decoded, and explains what the program says")
def check_value(at, d, x):
    again = sagitta.Dictionary.open(f"{at}/fit")
    other = sagitta.Dictionary.from_arrays(d.atoms, d.mean, top_s=d.top_s, rounds=d.rounds)
    ok(again == d and hash(again) == hash(d) and other != d and d != 3, "equality")
    same(pickle.loads(pickle.dumps(d)).encode(x), f"{at}/fit", "a copy by pickle")
    run = sagitta.open(f"{at}/fit")
    dense = d.encode(x, format="dense").astype("f8")
    rows = dense @ d.atoms + d.mean
    ok(np.abs(d.decode(d.encode(x)) - rows).max() < 1e-4 and
       np.abs(d.decode(dense.reshape(7, 100, K))[6, 99] - rows[699]).max() < 1e-4, "decoded")
    c = d.encode(x)
    plain = sagitta.CSR(c.data, c.indices, c.indptr, c.shape)  # what encode() returns without SciPy
    ok(np.abs(d.decode(plain) - rows).max() < 1e-4, "decoded, without SciPy")
    for rho in 0.1, 0.2, 0.3, 0.4, 0.5, 0.6:
        d.encode(x[:2], rho=rho)
    ok(len(d._handles.free) <= sagitta.library.WAITING, "handles that are kept")
    ok(abs(d.explained_variance(x.reshape(7, 100, -1)) - run.metrics["explained_variance"]) < 1e-6,
       "explained variance")
    ok((d.direction(3) == d.atoms[3]).all(), "a direction")
    ok(f"<td>{K} x {x.shape[1]}" in d._repr_html_() and "nonnegative" in d._repr_html_() and
       "not told" in sagitta.Dictionary.from_arrays(d.atoms)._repr_html_(), "in a notebook")
    for one in d, pickle.loads(pickle.dumps(d)), other:
        raised(ValueError, ["read-only"], one.atoms.__setitem__, 0, 0)
        raised(ValueError, ["read-only"], one.mean.__setitem__, 0, 0)
    e = sagitta.Encoder.open(f"{at}/relu")
    raised(ValueError, ["read-only"], e.arrays["weights"].__setitem__, 0, 0)


@claim("a file that save() wrote opens as the same dictionary, and the program takes it")
def check_save(at, d, x):
    d.save(f"{at}/saved.h5")
    again = sagitta.Dictionary.open(f"{at}/saved.h5")
    ok(again == d and "nonnegative codes" in repr(d) and f"of {K} x" in repr(d), f"{again}")
    same(again.encode(x), f"{at}/fit", "codes of a saved one")
    raised(sagitta.InputError, ["already exists", "overwrite=True"], d.save, f"{at}/saved.h5")
    raised(sagitta.InputError, ["does not end in .h5"], d.save, f"{at}/saved.npy")
    bare = sagitta.Dictionary.from_arrays(d.atoms, top_s=3)
    bare.save(f"{at}/saved.h5", overwrite=True)
    ok(sagitta.Dictionary.open(f"{at}/saved.h5") == bare, "another one in its place")
    ok(sorted(f for f in os.listdir(at) if "saved" in f) == ["saved.h5"], "nothing beside it")
    raised(OSError, [], d.save, f"{at}/none/saved.h5")
    raised(sagitta.Error, ["there is no"], sagitta.Dictionary.open, f"{at}/none.h5")
    run = sagitta.encode(x, d, progress=None)
    same(d.encode(x), run.path, "the program, by an object")


@claim("export writes what the program writes")
def check_export(at, d, x):
    d.save(f"{at}/d.h5")
    need(program("export", f"{at}/d.h5", "--to", "npy", "--output", f"{at}/npy"), "export")
    said = sagitta.export(d, f"{at}/npy2", to="npy")
    ok(all(np.array_equal(np.load(f"{at}/npy2/{name}"), np.load(f"{at}/npy/{name}"))
           for name in ("atoms.npy", "mean.npy")) and len(said) > 2, f"{said}")
    raised(sagitta.InputError, ["rows=", "force="], sagitta.export, d, f"{at}/sae", to="saelens")
    raised(TypeError, ["stable?"], sagitta.export, d, f"{at}/sae", stabel=0.9)


def placed(handle, x, s):
    """The arrays that sagitta_support() fills for x."""
    atoms, codes = np.full((len(x), s), -7, "i4"), np.full((len(x), s), np.nan, "f4")
    handle.support(len(x), x.ctypes.data, None, atoms.ctypes.data, codes.ctypes.data)
    return atoms, codes


@claim("supports that are written to the caller's memory, as for a GPU, are the same")
def check_placed(d, x):
    x = x.astype("f4")
    large, kept = np.tile(x, (12, 1)), x.copy()
    for how in {}, {"rounds": 3, "rho": 0.5}, {"codes": "signed", "rounds": 8}, {"top_s": 1}:
        options = dict(d._options(**{"top_s": None, "rounds": None, "codes": "auto", "rho": 0.0,
                                     **how}), threads=2)
        handle = sagitta.library.Handle(options)
        for rows in x, x[:1], x[:0], large:
            want, got = d.support(rows, **how), placed(handle, rows, options["top_s"])
            ok(all(a.tobytes() == b.tobytes() for a, b in zip(want, got)), f"{how}, {len(rows)}")
        ok(handle.copied() == (0, 0), "nothing goes to a GPU")
    ok((x == kept).all(), "the rows stay")
    bad = x[:5].copy()
    bad[3, 2] = np.inf
    raised(sagitta.InputError, ["row 3, column 2"], placed, handle, bad, 1)
    for device, words in ("tpu", ["give cpu or cuda"]), ("cuda", ["there is no GPU 99"]):
        try:
            sagitta.library.Handle(dict(options, device=device, gpu=99))
            ok(False, device)
        except sagitta.Error as error:
            ok(words[0] in str(error) or (device == "cuda" and error.code == 69), f"{error}")
    e = sagitta.Encoder(d, "relu", {"weights": d.atoms, "bias": np.zeros(K, "f4")}, {}, False)
    options = dict(e._options("own", 0.0), threads=1)
    raised(sagitta.InputError, ["sagitta_encode()"], placed, sagitta.library.Handle(options), x, 1)
    raised(sagitta.InputError, ["no handle of a GPU"], sagitta.library.Handle,
           dict(options, device="cuda"))


@claim("several threads at once, and a forked child of a process that has computed, give the same "
       "bytes")
def check_processes(at, d, x):
    found = {}
    workers = [threading.Thread(target=lambda i=i: found.update({i: d.encode(x, threads=2)}))
               for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for i in range(4):
        same(found[i], f"{at}/fit", f"thread {i}")
    child = os.fork()
    if not child:
        os._exit(0 if d.encode(x).data.tobytes() == found[0].data.tobytes() else 1)
    ok(os.waitpid(child, 0)[1] == 0, "a child of fork()")


@claim("the library exports only its functions, loads no MPI, HDF5 or CUDA, and prints nothing")
def check_library(at):
    shown = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True)
    ok({line.split()[-1] for line in shown.stdout.splitlines()} == CALLS, shown.stdout)
    code = (f"import sys; sys.path.insert(0, {os.path.abspath(PACKAGE)!r}); import numpy as np\n"
            "import sagitta.library as l\n"
            "one = {'k': 1, 'p': 1, 'top_s': 1, 'rounds': 1, 'threads': 1, 'atoms': [[1]]}\n"
            "h = l.Handle(one)\n"
            "assert h.encode(np.ones((2, 1), 'f4'))[3].tolist() == [1, 1]\n"
            "maps = open('/proc/self/maps').read()\n"
            "assert not any(word in maps for word in ('libmpi', 'libcuda', 'libnccl', 'libzmq'))\n"
            "needed = open(l.path_of(), 'rb').read()\n"
            "assert b'libhdf5' not in needed and b'libmpi' not in needed\n")
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True,
                          cwd=at, env=dict(os.environ, SAGITTA_LIBRARY=LIBRARY))
    ok(done.returncode == 0 and not done.stdout and not done.stderr, done.stdout + done.stderr)


with tempfile.TemporaryDirectory() as at:
    with h5py.File(os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")) as f:
        x = f["rows"][:N]
    np.save(f"{at}/x.npy", x)
    d = check_dictionary(at, x)
    check_types(at, d, x)
    check_encoders(at)
    check_features(at, x)
    check_errors(at, d, x)
    check_value(at, d, x)
    check_save(at, d, x)
    check_export(at, d, x)
    check_placed(d, x)
    check_processes(at, d, x)
    check_library(at)
done_testing()
