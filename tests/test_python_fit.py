# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta.fit, train, encode, refit and evaluate of arrays, files and generators give the
bytes of the same commands in a shell.  Their warnings and errors are the program's, in terms of
Python.  Ctrl-C stops a job, and resume continues it.  An exception leaves no process and no
file."""
import contextlib
import doctest
import gc
import glob
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import h5py
import numpy as np

from peer import PACKAGE
from shard_files import safetensors
from tap import FULL, SAGITTA, SOURCE, claim, done_testing, need, ok, peer_missing
from tap import sagitta as program

os.environ.update(SAGITTA_PROGRAM=os.path.abspath(SAGITTA), OMPI_ALLOW_RUN_AS_ROOT="1",
                  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

import sagitta  # noqa: E402, which is given its program

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
OWN_FOLDER = os.path.dirname(sagitta.__file__)
HOLDING = "job.py", "calls.py", "arrays.py"  # modules that hold processes and files
N, K = 1024, 48
HOW = {"atoms": K, "top_s": 4, "sweeps": 2}
WORDS = [w for k, v in HOW.items() for w in (f"--{k.replace('_', '-')}", v)]
SHARED = tempfile.TemporaryDirectory(prefix="shared-")  # /dev/shm of ranks
os.environ["OMPI_MCA_btl_vader_backing_directory"] = SHARED.name
tempfile.tempdir = SHARED.name + "/own"  # also for folders of runs
os.mkdir(tempfile.tempdir)
LONG = {"atoms": 300, "top_s": 16, "tolerance": 0, "sweeps": 12, "threads": 1, "update": "atoms"}


def same(a, b, what):
    """Are two results, folders or Runs, equal?  The arguments keep Runs alive."""
    done = program("diff", getattr(a, "path", a), getattr(b, "path", b))
    ok(done.returncode == 0 and not done.stdout, f"{what}: {done.stdout}{done.stderr}")


def raised(kind, words, call, *rest, **more):
    """Does call() raise exactly this class, with these words?"""
    try:
        call(*rest, **more)
    except kind as error:
        return ok(type(error) is kind and all(w in str(error) for w in words), f"{words}: {error}")
    except BaseException as error:  # noqa: B036, which is what is looked for
        return ok(False, f"{words}: {type(error).__name__} {error}")
    return ok(False, f"{words}: nothing was said")


def sources(at, x):
    """{name: rows} in every form that is taken."""
    with h5py.File(f"{at}/s.h5", "w") as f:
        f["a/rows"] = x
    os.makedirs(f"{at}/shards")
    for i in range(12):
        np.save(f"{at}/shards/part{i:02}.npy", x[i * 90:(i + 1) * 90])
    np.save(f"{at}/x.npy", x)
    np.save(f"{at}/zeros.npy", np.zeros_like(x))
    private = np.load(f"{at}/zeros.npy", mmap_mode="c")
    private[:] = x  # a private map: the file does not change
    found = {"array": x, "three dimensions": x.reshape(4, N // 4, -1), "other order":
             np.asfortranarray(x), "generator": (x[i:i + 100] for i in range(0, N, 100)),
             "list of batches": iter([x[:1000].reshape(10, 100, -1), x[1000:]]),
             "memmap": np.load(f"{at}/x.npy", mmap_mode="r"), "part of a memmap":
             np.load(f"{at}/x.npy", mmap_mode="r")[:], "path": f"{at}/x.npy",
             "memmap with changes of its own": private,
             "path in a file": f"{at}/s.h5:/a/rows", "folder": f"{at}/shards",
             "h5py, reading": h5py.File(f"{at}/s.h5")["a/rows"],
             "empty, filled": filled(x, x.shape),
             "empty, of documents": filled(x, (2, len(x) // 2, x.shape[1])),
             "some of empty": filled(np.vstack([x, x]), (2 * len(x), x.shape[1]))[:len(x)]}
    safetensors(f"{at}/x.safetensors", {"rows": ("F32", x.astype("f4"))})
    found["safetensors"] = f"{at}/x.safetensors"
    try:
        import torch
        found["tensor"] = torch.from_numpy(x).requires_grad_()
    except ImportError:
        peer_missing("PyTorch is not installed")
    return found


class OnGpu:
    """An array like those of CuPy: get() copies it to the host."""
    __cuda_array_interface__ = {}

    def __init__(self, x):
        self.own, self.ndim, self.shape, self.copied = x, x.ndim, x.shape, []

    def __len__(self):
        return len(self.own)

    def __getitem__(self, part):
        found = OnGpu(self.own[part])
        found.copied = self.copied
        return found

    def get(self):
        self.copied.append(len(self.own))
        return self.own


@contextlib.contextmanager
def logged():
    """Collect what the package logs."""
    said, handler, log = [], logging.Handler(), logging.getLogger("sagitta")
    handler.emit = lambda record: said.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield said
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


@claim("rows of a GPU are copied to the host part by part, and verbose=1 says so")
def check_on_gpu(at, x):
    rows = OnGpu(x)
    sagitta.arrays.CHUNK, kept = 400 * x.itemsize * x.shape[1], sagitta.arrays.CHUNK
    with logged() as said:
        same(f"{at}/shell", sagitta.fit(rows, verbose=1, **HOW), "on a GPU")
    sagitta.arrays.CHUNK = kept
    ok(max(rows.copied) == 400 and sum(rows.copied) == len(x), f"{rows.copied}")
    ok(any(f"X is on a GPU: {len(x)} rows are copied through the host" in line
           for line in said), f"{said}")


def parts(x):
    yield from (x[i:i + 100] for i in range(0, len(x), 100))


SMALL_FILES = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, sagitta
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
sagitta.fit((np.ones((90, 90)) for i in range(9)), atoms=2, spool=sys.argv[2])
"""


@claim("rows of a generator are written to a file in spool=, which is logged; an impossible "
       "folder is refused")
def check_spool(at, x):
    os.mkdir(f"{at}/spool")
    seen = []

    def watched():
        for part in parts(x):
            yield part
            files = map(os.path.realpath, glob.glob("/proc/self/fd/*"))
            seen.append(sum(file.startswith(f"{at}/spool/") for file in files))
    with logged() as said:
        run = sagitta.fit(watched(), spool=f"{at}/spool", verbose=1, **HOW)
    same(f"{at}/shell", run, "a generator")
    ok(set(seen) == {1} and not os.listdir(f"{at}/spool"), f"the one file is removed: {seen}")
    size = 128 + x.nbytes
    ok(f"'{at}/spool' (spool=)" in said[0] and
       f"X had {len(x)} rows of {x.shape[1]} columns, {size} bytes in '{at}/spool'" in said,
       f"{said[:3]}")
    with logged() as said:
        sagitta.fit(parts(x), verbose=1, **HOW)
    ok(f"in '{tempfile.gettempdir()}' (spool=)" in said[0], f"without spool=: {said[:1]}")
    with logged() as said:
        sagitta.fit(x, verbose=1, **HOW)
    ok(not any("spool" in line for line in said), f"an array: {said}")
    raised(sagitta.InputError, [f"'{at}/none'", "No such file", "by spool="], sagitta.fit,
           parts(x), spool=f"{at}/none", **HOW)
    raised(FileNotFoundError, ["missing"], sagitta.fit,
           (open(f"{at}/missing") for _ in range(3)), spool=f"{at}/spool", **HOW)
    done = subprocess.run([sys.executable, "-B", "-c", SMALL_FILES, PACKAGE, f"{at}/spool"],
                          capture_output=True, text=True)
    ok("InputError" in done.stderr and "File too large: name a folder" in done.stderr and
       not os.listdir(f"{at}/spool"), f"no room: {done.stderr[-300:]}")


def filled(x, shape):
    rows = sagitta.empty(shape, x.dtype)
    rows.reshape(-1, x.shape[1])[:] = x
    return rows


@claim("arrays of sagitta.empty() are read without a copy, if they are whole")
def check_empty(x):
    rows = filled(x, x.shape)
    for part, is_whole in ((rows, True), (rows.reshape(2, -1, x.shape[1]), True),
                           (rows[:-1], False), (rows[:, ::2], False),
                           (rows.reshape(-1, 2 * x.shape[1]), False), (rows.copy(), False),
                           (rows.view("i4"), False), (x, False),
                           (np.ma.array(rows, mask=rows > 0), False), (None, False)):
        ok((sagitta.arrays.memory_of(part) is not None) == is_whole, f"{type(part)} {part}")
    with sagitta.arrays.Inputs() as inputs:
        name, = inputs.rows(rows)
        rows[3, 4] = 7
        ok(np.load(name)[3, 4] == 7 and (np.load(name) == rows).all() and
           inputs.shown[name] == "X", "no copy")
    opened = len(os.listdir("/proc/self/fd"))
    del rows, part
    ok(len(os.listdir("/proc/self/fd")) < opened, "the array's file is closed with it")
    hidden = np.ma.array(filled(x, x.shape), mask=False)
    hidden.mask[: len(x) // 2] = True
    raised(sagitta.InputError, ["mask"], sagitta.fit, hidden, **HOW)
    raised(sagitta.InputError, ["(N, P)"], sagitta.empty, (3,))
    raised(TypeError, ["int32", "float32"], sagitta.empty, (3, 4), "i4")


@claim("every kind of rows gives the bytes of the same command in a shell")
def check_sources(at, x):
    np.save(f"{at}/shell.npy", x)
    need(program("fit", "--rows", f"{at}/shell.npy", *WORDS, "--output", f"{at}/shell"), "shell")
    for name, rows in sources(at, x).items():
        same(f"{at}/shell", sagitta.fit(rows, **HOW), name)
    same(f"{at}/shell", sagitta.fit(x, ranks=2, output=f"{at}/two", **HOW), "two ranks")
    padded = np.concatenate([x, x[:50] * np.nan])
    same(f"{at}/shell", sagitta.fit(padded, mask=np.arange(N + 50) < N, **HOW), "a mask")
    half = x.astype("f2")
    np.save(f"{at}/half.npy", half)
    need(program("fit", "--rows", f"{at}/half.npy", *WORDS, "--output", f"{at}/half"), "float16")
    same(f"{at}/half", sagitta.fit(half, **HOW), "float16")


@claim("train, encode, refit and evaluate give the program's results too")
def check_calls(at, x):
    run = sagitta.open(f"{at}/shell")
    rows = ["--rows", f"{at}/shell.npy"]
    need(program("encode", *rows, "--dictionary", f"{at}/shell", "--top-s", 6, "--output",
                 f"{at}/codes"), "encode")
    made = sagitta.encode(x, run, top_s=6)
    same(f"{at}/codes", made, "encode")
    atoms = sagitta.encode(x - run.dictionary.mean, run.dictionary.atoms, top_s=6, rounds=8)
    ok(atoms.codes.shape == (N, K), "atoms as an array")
    need(program("refit", *rows, "--dictionary", f"{at}/shell", "--supports", f"{at}/codes",
                 "--sweeps", 1, "--output", f"{at}/refit"), "refit")
    same(f"{at}/refit", sagitta.refit(x, made, sweeps=1), "refit")
    need(program("train", *rows, "--atoms", K, "--top-s", 4, "--steps", 3, "--output",
                 f"{at}/train"), "train")
    same(f"{at}/train", sagitta.train(x, atoms=K, top_s=4, steps=3), "train")
    facts = sagitta.evaluate(x, made)
    ok(facts["explained_variance"] == made.metrics["explained_variance"] and 5 < facts["l0"] <= 6,
       f"evaluate: {facts}")
    d = sagitta.Dictionary.open(f"{at}/shell")
    turned = d.atoms[::-1].copy()
    for given, file in (d, "kept.h5"), (turned, "turned.h5"):
        codes = sagitta.encode(x, given, top_s=6)
        where = sagitta.open(codes.path)  # this Run does not know the object `given`
        kept = given if given is d else sagitta.Dictionary.from_arrays(given)
        kept.save(f"{at}/{file}")
        facts = sagitta.evaluate(x, codes)
        ok(facts["explained_variance"] == codes.metrics["explained_variance"], f"{file} is known")
        for one in given, f"{at}/{file}":
            again = sagitta.evaluate(x, where, dictionary=one)
            ok(again["explained_variance"] == facts["explained_variance"], f"{type(one)} is given")
        same(sagitta.refit(x, codes, sweeps=1),
             sagitta.refit(x, where, sweeps=1, dictionary=given), f"refit of {file}")
        raised(sagitta.Error, ["give it as dictionary="], sagitta.evaluate, x, where)
        raised(sagitta.Error, ["give it as dictionary="], sagitta.refit, x, where)
        raised(sagitta.InputError, [], sagitta.evaluate, x, codes, dictionary=d.atoms[::2])
    ok(sagitta.evaluate(x, made, dictionary=run)["l0"] == made.metrics["l0"], "a Run as keyword")
    held = sagitta.fit(x[:800], holdout=x[800:], **HOW)
    ok(held.page["options"]["holdout"].startswith("/proc/"), "rows to judge by")


@claim("keywords are the options that --describe lists")
def check_options(x):
    from sagitta.program import OWN, option_of, options_of, words_of
    for command in "fit", "train", "encode", "refit", "evaluate":
        for name, option in options_of(command).items():
            if name in OWN:
                raised(TypeError, [], option_of, command, name.replace("-", "_"))
                continue
            ok(option_of(command, name.replace("-", "_")) is option, f"{command} {name}")
            value = {"flag": True, "integer": 7, "real": 0.1}.get(option["type"], "w")
            want = f"--{name}" + ("" if value is True else f"={value}")
            ok(words_of(option, value) == [want] and words_of(option, None) == [], want)
    raised(TypeError, ["fit() has no option top_z", "top_s?"], sagitta.fit, x, atoms=8, top_z=3)
    raised(TypeError, ["sweeps is 2.5", "whole"], sagitta.fit, x, atoms=8, sweeps=2.5)
    raised(TypeError, ["sweeps is True"], sagitta.fit, x, atoms=8, sweeps=True)
    raised(TypeError, ["rho is '1'", "a number"], sagitta.fit, x, atoms=8, rho="1")
    raised(TypeError, ["uncentered is 1", "True or False"], sagitta.fit, x, atoms=8, uncentered=1)
    raised(TypeError, ["progress is 3"], sagitta.fit, x, atoms=8, progress=3)


@claim("values that are no rows are refused, and the program's errors are in terms of Python")
def check_errors(at, x):
    raised(TypeError, ["int64", "astype"], sagitta.fit, np.ones((9, 3), int), atoms=2)
    raised(TypeError, ["complex"], sagitta.fit, np.ones((9, 3), complex), atoms=2)
    raised(ValueError, ["(9,)", "(N, P)"], sagitta.fit, np.ones(9), atoms=2)
    raised(ValueError, ["no batch"], sagitta.fit, iter([]), atoms=2)
    raised(ValueError, ["a batch has 3 columns"], sagitta.fit, iter([x[:9], x[:9, :3]]), atoms=2)
    raised(ValueError, ["mask has 5"], sagitta.fit, x, atoms=2, mask=np.ones(5, bool))
    raised(TypeError, ["mask="], sagitta.fit, f"{at}/x.npy", atoms=2, mask=np.ones(N, bool))
    raised(TypeError, ["output="], sagitta.fit, x, atoms=2, resume=True)
    raised(sagitta.InputError, ["masked", "leave out"], sagitta.fit, np.ma.masked_less(x, 0),
           atoms=2)
    bad = x.copy()
    bad[7, 5] = np.nan
    raised(sagitta.InputError, ["row 7", "X"], sagitta.fit, bad, atoms=2)
    raised(sagitta.InputError, ["X has 90 rows", "give holdout=FILE, or holdout_share=0"],
           sagitta.fit, x[:90], **HOW)
    raised(sagitta.InputError, ["'atoms' is 0"], sagitta.fit, x, atoms=0)
    raised(sagitta.Error, ["there is no"], sagitta.refit, x, f"{at}/nothing")
    ok(issubclass(sagitta.InputError, ValueError) and issubclass(sagitta.InputError,
                                                                 sagitta.Error),
       "InputError is a ValueError and an Error")


@claim("warnings of the program are warnings of Python, once per job, with their class")
def check_warnings(x):
    massive = x.copy()
    massive[::100] *= 300
    for kind, words, rows, more in (
            (sagitta.MassiveRows, ["massive", "max_norm=8"], massive, {}),
            (sagitta.Transposed, ["X has 300 rows of 384 columns"], x[:300], {}),
            (sagitta.TopS, ["top-s is 9, there are 5 atoms"], x, {"atoms": 5, "top_s": 9}),
            (sagitta.FewRows, ["give 3000 rows, or atoms=8"], x, {"atoms": 300}),
            (sagitta.NotConverged, ["give more sweeps=, and resume="], x, {"sweeps": 5}),
            (sagitta.FewHeldOut, ["holdout="], x, {})):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = sagitta.fit(rows, **{**HOW, **more})
        own = [w for w in caught if w.category is kind]
        ok(len(own) == 1 and own[0].filename == __file__ and
           all(word in str(own[0].message) for word in words), f"{kind.__name__}: {own}")
        ok(any(isinstance(w, kind) for w in run.warnings), f"{kind.__name__}: of the run")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sagitta.encode(x + 100, x[:9] / np.linalg.norm(x[:9], axis=1)[:, None], top_s=2,
                       normalize=True)
    ok([w.category for w in caught].count(sagitta.NoMean) == 1, f"no mean: {caught}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        far = run.dictionary.mean + (x.astype("f8") - run.dictionary.mean) * 5
        again = sagitta.encode(far, run)
    kinds = [w.category for w in caught]
    ok(kinds == [sagitta.Scale] and "median norm" in str(again.warnings), f"scale: {caught}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sagitta.encode(0.3 * x, run)
        sagitta.train(x, atoms=K, top_s=4, steps=1, lr=1.0)
    kinds = [w.category for w in caught]
    ok(kinds.count(sagitta.NegativeVariance) == 2, f"another layer, a large rate: {caught}")
    turned = np.concatenate([x, -x])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sagitta.fit(turned, atoms=1500, top_s=1, sweeps=0, codes="signed", uncentered=True,
                    holdout=0)
        sagitta.encode(turned + x[:1] * 9, x[:50], top_s=1, normalize=True)
    kinds = {w.category for w in caught}
    ok(kinds >= {sagitta.DeadAtoms, sagitta.DenseAtoms}, f"dead and dense: {caught}")


def left():
    """Things that a job might leave: children, descriptors, files of ranks in memory, folders."""
    with open(f"/proc/self/task/{threading.get_native_id()}/children", encoding="ascii") as f:
        children = f.read()
    return (children, sorted(os.listdir("/proc/self/fd")), sorted(os.listdir(SHARED.name)),
            sorted(glob.glob(os.path.join(tempfile.gettempdir(), "sagitta-*"))))


class Cut(Exception):
    """The exception that a test raises."""


def cut_at(count):
    def progress(event):
        nonlocal count
        count -= 1
        if count <= 0:
            raise Cut
    return progress


def batches(x):
    yield x[:100]
    raise Cut


@claim("an exception at any step leaves no process and no file")
def check_cut(at, x):
    before = left()
    for count in 1, 2, 5:
        raised(Cut, [], sagitta.fit, x, progress=cut_at(count), **LONG)
        ok(left() == before, f"progress {count}: {before} {left()}")
        raised(Cut, [], sagitta.fit, x, progress=cut_at(count), ranks=2, **LONG)
        ok(left() == before, f"progress {count}, two ranks: {before} {left()}")
    raised(Cut, [], sagitta.fit, batches(x), **HOW)
    ok(left() == before, f"a generator: {left()}")
    raised(sagitta.Error, [], sagitta.fit, x, output="/proc/nothing/here", **HOW)
    raised(sagitta.InputError, [], sagitta.fit, x[:0], **HOW)
    ok(left() == before, f"the program refuses: {left()}")
    os.environ["SAGITTA_PROGRAM"] = f"{at}/nothing"
    raised(sagitta.Error, ["SAGITTA_PROGRAM"], sagitta.fit, x, **HOW)
    os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)
    kept, os.environ["MPIEXEC"] = os.environ.get("MPIEXEC"), f"{at}/none --bind-to none"
    raised(sagitta.Error, [f"MPIEXEC names '{at}/none'"], sagitta.fit, x, ranks=2, **HOW)
    os.environ.pop("MPIEXEC")
    os.environ.update({} if kept is None else {"MPIEXEC": kept})
    ok(left() == before, f"no program: {left()}")


def cut_at_line(place, kind, passed):
    """A trace that raises once, at this line of the package.  passed: all lines that were
    reached."""
    def line(frame, event, arg):
        here = os.path.basename(frame.f_code.co_filename), frame.f_lineno
        if event == "line" and here not in passed:
            passed.append(here)
            if here == place:
                raise kind
        return line

    def call(frame, event, arg):
        return line if os.path.dirname(frame.f_code.co_filename) == OWN_FOLDER else None
    return call


def cut_fit(make, place, kind):
    """Run a fit that raises at one line.  Returns the lines that it passed."""
    passed, rows = [], make()
    sys.settrace(cut_at_line(place, kind, passed))
    try:
        sagitta.fit(rows, atoms=4, top_s=1, sweeps=1, holdout=0, progress=lambda event: None)
    except sagitta.Interrupted as stop:  # its folder stays
        shutil.rmtree(stop.output, ignore_errors=True)
    except kind:
        pass
    finally:
        sys.settrace(None)
    return passed


@claim("an exception at any line of the package leaves no process and no file of a fit")
def check_lines(x):
    x = x[:60, :4]
    known = set()
    for make in (lambda: x), (lambda: iter([x[:20], x[20:]])):  # an iterator is spooled to a file
        lines = cut_fit(make, None, Cut)
        gc.collect()  # objects of earlier tests
        before = left()
        ok(len(lines) > 150, f"{len(lines)} lines")
        lines = [place for place in lines if place not in known and (FULL or place[0] in HOLDING)]
        ok(len(lines) > 9, f"{len(lines)} that are new")
        known.update(lines)
        for i, place in enumerate(lines):
            for kind in (Cut, KeyboardInterrupt) if FULL else (Cut, KeyboardInterrupt)[i % 2:][:1]:
                ok(place in cut_fit(make, place, kind), f"{place} was not reached")
                gc.collect()
                ok(left() == before, f"{place}, {kind.__name__}: {before} {left()}")


@claim("Ctrl-C stops a job, and resume=True continues to the same bytes; without output= the "
       "folder is kept")
def check_interrupt(at, x):
    whole = sagitta.fit(x, **LONG)
    for output in f"{at}/cut", None:
        began = left()

        def press(event):
            os.kill(os.getpid(), signal.SIGINT)
        try:
            sagitta.fit(x, output=output, progress=press_once(press), **LONG)
            ok(False, "it was not interrupted")
            continue
        except sagitta.Interrupted as stop:
            ok(isinstance(stop, KeyboardInterrupt) and os.path.isdir(stop.output) and
               f"output={stop.output!r}, resume=True" in str(stop), f"the message says how: {stop}")
            place = stop.output
        ok(left()[:3] == began[:3], f"nothing else is left: {left()}")
        same(whole, sagitta.fit(x, output=place, resume=True, **LONG), "resumed")
        if output is None:
            subprocess.run(["rm", "-r", place], check=True)


def press_once(press):
    """For progress=: call press() at the first event after a sweep began."""
    pressed = []

    def progress(event):
        if not pressed and event["what"] not in ("mean", "norms"):
            pressed.append(1)
            press(event)
    return progress


KILLED = """
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import numpy as np, sagitta
print("begun", flush=True)
sagitta.fit(np.load(sys.argv[2]), output=sys.argv[3], atoms=600, top_s=16, tolerance=0,
            sweeps=5000, threads=1, progress=lambda event: print(event["what"], flush=True))
"""


@claim("a job whose Python is killed ends by itself, and can be resumed")
def check_killed(at):
    done = subprocess.Popen([sys.executable, "-c", KILLED, PACKAGE, f"{at}/x.npy", f"{at}/killed"],
                            stdout=subprocess.PIPE, text=True)
    for line in done.stdout:
        if line.strip() not in ("begun", "mean", "norms"):
            break
    with open(f"/proc/{done.pid}/task/{done.pid}/children", encoding="ascii") as f:
        child = int(f.read().split()[0])
    done.kill()
    done.wait()
    done.stdout.close()
    for _ in range(100):
        with contextlib.suppress(ProcessLookupError):
            if open(f"/proc/{child}/stat").read().split(") ")[1][0] == "Z":
                break
        if not os.path.exists(f"/proc/{child}"):
            break
        time.sleep(0.1)
    else:
        ok(False, "the job is still there after 10 s")
        os.kill(child, signal.SIGKILL)
    with open(f"{at}/killed/run.log", encoding="utf-8") as f:
        log = f.read()
    ok("the end of the program that started it" in log, f"the message says why: {log[-300:]}")


@claim("the example of the docstring runs")
def check_docstring():
    with warnings.catch_warnings():
        done = doctest.testmod(sagitta.calls)
    ok(done.attempted > 3 and not done.failed, f"{done}")


def main():
    x = h5py.File(ROWS)["rows"][:N]
    with tempfile.TemporaryDirectory() as at:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_empty(x)
            check_sources(at, x)
            check_on_gpu(at, x)
            check_spool(at, x)
            check_calls(at, x)
            check_options(x)
            check_errors(at, x)
            check_cut(at, x)
            check_lines(x)
            check_interrupt(at, x)
        check_warnings(x)
        check_killed(at)
        check_docstring()
    done_testing()


if __name__ == "__main__":
    main()
