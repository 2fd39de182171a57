# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the package in scripts/python opens a run, and gives what its files hold, with SciPy and
without.  A damaged, foreign or unfinished file is refused with advice.  pip installs the
package."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

from peer import PACKAGE
from tap import SAGITTA, SOURCE, claim, done_testing, ok, peer_missing, sagitta as program

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)  # libsagitta is beside it

import sagitta  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
K, S = 64, 4


def run_made(folder):
    """Fit 2,048 real rows.  Returns the folder of the run."""
    np.save(f"{folder}/rows.npy", h5py.File(ROWS)["rows"][:2048])
    done = program("fit", "--find", "codes", "--rows", f"{folder}/rows.npy", "--atoms", K,
                   "--top-s", S, "--sweeps", 3, "--output", f"{folder}/run")
    if done.returncode:
        print("#", done.stderr)
        sys.exit(1)
    return f"{folder}/run"


@claim("codes, dictionary, metrics and history are what the files hold")
def check_values(run):
    got = sagitta.open(run)
    with h5py.File(f"{run}/supports.h5") as f:
        group = f["supports"]
        for matrix, name in ((got.codes, "data"), (got.scores, "score")):
            for part, stored in ((matrix.data, name), (matrix.indices, "indices"),
                                 (matrix.indptr, "indptr")):
                ok(np.array_equal(part, group[stored][:]), f"/supports/{stored}")
            ok(matrix.shape == (2048, K), f"shape {matrix.shape}")
        attributes = f["metrics"].attrs
        ok(len(got.metrics) > 8, f"{len(got.metrics)} metrics")
        for name, value in got.metrics.items():
            ok(value == attributes[name] or np.isnan(value), name)
            ok(got.formulas[name] == attributes[name + "_formula"], f"the formula of {name}")
        ok(np.array_equal(got.density, f["metrics/density"][:]), "densities")
    with h5py.File(f"{run}/dictionary.h5") as f:
        d = got.dictionary
        ok(np.array_equal(d.atoms, f["atoms"][:]), "atoms")
        ok(np.array_equal(d.mean, f["mean"][:]), "the mean")
        ok(d.nonnegative and d.top_s == S and d.rounds == f.attrs["rounds"],
           "the dictionary has the options of encode")
        table = f["fit/history"][:]
        ok(list(got.history["sweep"]) == list(range(len(table))),
           "the history has a line per sweep")
        for column, values in zip(got.history, table.T):
            ok(np.array_equal(got.history[column], values, equal_nan=True), column)
    ok("fit" in got.page["command"], "run.json")
    x = np.load(f"{os.path.dirname(run)}/rows.npy").astype("f8")
    described = got.codes @ d.atoms.astype("f8") + d.mean
    far = abs(sagitta.explained_variance(x, described) - got.metrics["explained_variance"])
    ok(far < 1e-6, f"explained variance, {far:.1e} away")


@claim("a file of a run opens like its folder")
def check_files(run):
    ok(sagitta.open(f"{run}/supports.h5").codes.nnz == 2048 * S, "supports.h5")
    ok(len(sagitta.open(f"{run}/dictionary.h5").dictionary.atoms) == K, "dictionary.h5")
    shutil.copytree(run, f"{run}-longer")
    program("fit", "--find", "codes", "--rows", f"{os.path.dirname(run)}/rows.npy", "--atoms", K,
            "--top-s", S, "--sweeps", 5, "--output", f"{run}-longer", "--force")
    os.rename(f"{run}-longer/dictionary.h5", f"{run}-longer/state.h5")
    shutil.copy(f"{run}/dictionary.h5", f"{run}-longer")
    ok(len(sagitta.open(f"{run}-longer").history["sweep"]) == 6, "state.h5 has more sweeps")


@claim("the history of a training is that of its steps, also of an unfinished one")
def check_train(folder):
    run = f"{folder}/sae"
    done = program("train", "--rows", f"{folder}/rows.npy", "--atoms", K, "--top-s", S, "--epochs",
                   2, "--output", run)
    ok(done.returncode == 0, done.stderr[-300:])
    with h5py.File(f"{run}/dictionary.h5") as f:
        table = f["train/history"][:]
    os.mkdir(f"{folder}/begun")
    shutil.copy(f"{run}/dictionary.h5", f"{folder}/begun/state.h5")
    for path in run, f"{run}/dictionary.h5", f"{folder}/begun":
        got = sagitta.open(path, check=True).history
        ok(list(got) == ["step", "explained_variance", "explained_variance_held_out", "dead"] and
           np.array_equal(np.array(list(got.values())).T, table, equal_nan=True), f"{path}: {got}")
    ok(sagitta.open(run).page["lines"][-1]["step"] == table[-1, 0], "run.json")


@claim("the top rows of every atom are those of a plain loop")
def check_top_rows(folder, run):
    for kind in "signed", "nonnegative":
        program("encode", "--rows", f"{folder}/rows.npy", "--dictionary", f"{run}/dictionary.h5",
                "--top-s", 16, "--rounds", 1, "--codes", kind, "--output", f"{folder}/{kind}")
    for name, count in ("signed", 2048), ("nonnegative", 2048), ("signed", 7):
        got = sagitta.open(f"{folder}/{name}")
        dense = got.codes.toarray()
        ok((dense < 0).any() if name == "signed" else (got.codes.data == 0).any(), name)
        for atom in range(K):
            rows, codes = got.top_rows(atom, count)
            order = np.lexsort((range(2048), -abs(dense[:, atom])))[:count]
            want = [i for i in order if dense[i, atom]]
            ok(list(rows) == want and list(codes) == list(dense[want, atom]), f"atom {atom}")


@claim("without SciPy codes are a tuple of arrays")
def check_without_scipy(run):
    code = ("import sys; sys.modules['scipy'] = sys.modules['scipy.sparse'] = None\n"
            f"sys.path.insert(0, {PACKAGE!r}); sys.dont_write_bytecode = True\n"
            f"import sagitta; run = sagitta.open({run!r}); c = run.codes\n"
            "print(type(c).__name__, len(c.data), c.shape, run.top_rows(3, 2)[0].tolist())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    want = f"CSR {2048 * S} (2048, {K}) {sagitta.open(run).top_rows(3, 2)[0].tolist()}"
    ok(done.stdout.strip() == want, f"{done.stdout}{done.stderr[-300:]}")


def refused(words, call):
    """Does call() raise sagitta.Error with all these words?"""
    try:
        call()
    except sagitta.Error as error:
        ok(all(word in str(error) for word in words), f"{words}: {error}")
    else:
        ok(False, f"{words}: nothing was said")


@claim("files that cannot be used are refused, and the message says what to do")
def check_errors(folder, run):
    refused(["there is no", "--output"], lambda: sagitta.open(f"{folder}/nothing"))
    os.mkdir(f"{folder}/empty")
    refused(["has no supports.h5"], lambda: sagitta.open(f"{folder}/empty"))
    refused(["cannot be read as HDF5", "a result of"], lambda: sagitta.open(f"{folder}/rows.npy"))
    os.makedirs(f"{folder}/above")
    shutil.copytree(run, f"{folder}/above/run")
    refused([f"such as '{folder}/above/run'"], lambda: sagitta.open(f"{folder}/above"))
    shutil.copy(f"{run}/supports.h5", f"{folder}/short.h5")
    os.truncate(f"{folder}/short.h5", 3000)
    refused(["truncated", "copy or make it again"], lambda: sagitta.open(f"{folder}/short.h5"))
    with h5py.File(f"{folder}/nameless.h5", "w") as f:
        f.attrs["format"] = "sagitta"
    refused(["no format version", "damaged"], lambda: sagitta.open(f"{folder}/nameless.h5"))
    refused(["not written by Sagitta", "supports.h5"], lambda: sagitta.open(ROWS))
    with tempfile.TemporaryDirectory() as at:
        sagitta.Dictionary.from_arrays(np.eye(3)).save(f"{at}/d.h5")
        refused(["sagitta.Dictionary.open()"], lambda: sagitta.open(f"{at}/d.h5"))
    refused(["no /atoms", "dictionary.h5"], lambda: sagitta.open(f"{run}/supports.h5").dictionary)
    refused(["no /supports"], lambda: sagitta.open(f"{run}/dictionary.h5").codes)
    refused(["no frames"], lambda: sagitta.open(run).frame_codes)
    refused(["0 to 63"], lambda: sagitta.open(run).top_rows(64))
    refused(["0 to 63"], lambda: sagitta.open(run).top_rows(-1))
    refused(["1.5", "0 to 63"], lambda: sagitta.open(run).top_rows(1.5))
    refused(["same rows"], lambda: sagitta.explained_variance(np.ones((3, 2)), np.ones((2, 2))))
    done = program("encode", "--rows", ROWS, "--row-range", "0:4096", "--dictionary",
                   f"{run}/dictionary.h5", "--output", f"{folder}/part.h5")
    ok(done.returncode == 0, f"a part was made: {done.stderr[-200:] if done.returncode else ''}")
    refused(["sagitta merge"], lambda: sagitta.open(f"{folder}/part.h5"))
    shutil.copy(f"{run}/dictionary.h5", f"{folder}/newer.h5")
    with h5py.File(f"{folder}/newer.h5", "r+") as f:
        f.attrs["format_version"] = 99
    refused(["version 99"], lambda: sagitta.open(f"{folder}/newer.h5"))


@claim("check=True accepts a whole file, and finds a changed value")
def check_hashes(folder, run):
    whole = sagitta.open(run, check=True)
    ok(whole.codes.nnz and len(whole.dictionary.atoms) == K and len(whole.density) == K, "whole")
    shutil.copy(f"{run}/dictionary.h5", f"{folder}/other.h5")
    with h5py.File(f"{folder}/other.h5", "r+") as f:
        f["atoms"][5, 3] += 1
    ok(len(sagitta.open(f"{folder}/other.h5").dictionary.atoms) == K, "unseen without check")
    refused(["SHA-256"], lambda: sagitta.open(f"{folder}/other.h5", check=True).dictionary)


@claim("explained variance takes arrays of any dimensions and types, about the means of columns")
def check_variance():
    random = np.random.default_rng(4)
    x = random.normal(size=(6, 5, 4, 3)) + 5 * random.normal(size=(5, 4, 3))
    y = x + random.normal(size=x.shape)
    flat = x.reshape(-1, 3)
    want = 1 - ((x - y)**2).sum() / ((flat - flat.mean(0))**2).sum()
    for shape in (6, 5, 4, 3), (120, 3), (30, 4, 3), (1, 120, 3):
        got = sagitta.explained_variance(x.reshape(shape), y.reshape(shape))
        ok(abs(got - want) < 1e-12, f"{shape}: {got}, not {want}")
    whole = [[1, 2], [3, 5]], [[1, 2], [3, 4]]
    ok(sagitta.explained_variance(*whole) == 1 - 1 / 6.5, "lists of whole numbers")
    half = np.array(whole, "f2")
    ok(sagitta.explained_variance(*half) == 1 - 1 / 6.5, "float16")
    ok(np.isnan(sagitta.explained_variance(np.ones((3, 2, 2)), np.ones((3, 2, 2)))), "equal rows")
    for unit in 1e-200, 1e200:
        ok(abs(sagitta.explained_variance(unit * x, unit * y) - want) < 1e-12, f"unit {unit}")
    refused(["(0, 3)", "some rows"], lambda: sagitta.explained_variance(x[:0, 0, 0], y[:0, 0, 0]))
    masked = np.ma.masked_greater(x, 5)
    refused(["masked", "leave out"], lambda: sagitta.explained_variance(masked, y))
    whole_mask = np.ma.masked_greater(x, 1e9)  # the mask hides no value
    ok(abs(sagitta.explained_variance(whole_mask, y) - want) < 1e-12, "an empty mask")
    refused(["(3,)", "(1, P)"], lambda: sagitta.explained_variance(np.ones(3), np.ones(3)))
    twisted = np.ones((2, 2), "c16")
    refused(["complex", "array"], lambda: sagitta.explained_variance(twisted, half[0]))
    refused(["rows are no real"], lambda: sagitta.explained_variance([["a", "b"]], half[0]))


@claim("indices and their starts may have any integer type")
def check_whole(folder, run):
    want = sagitta.open(run)
    for kind in "i8", "u8", "u4", ">i8":
        os.makedirs(f"{folder}/{kind}")
        shutil.copy(f"{run}/supports.h5", f"{folder}/{kind}")
        with h5py.File(f"{folder}/{kind}/supports.h5", "r+") as f:
            for name in "indices", "indptr":
                values = f[f"supports/{name}"][:]
                del f[f"supports/{name}"]
                f[f"supports/{name}"] = values.astype(kind)
        got = sagitta.open(f"{folder}/{kind}")
        ok(np.array_equal(got.codes.toarray(), want.codes.toarray()), f"codes of {kind}")
        for atom in range(0, K, 7):
            ok(all(np.array_equal(a, b) for a, b in zip(got.top_rows(atom), want.top_rows(atom))),
               f"top rows of {kind}")


IMPORTED = """
import sys
sys.path.insert(0, sys.argv[1])
import sagitta
print([m for m in ("torch", "h5py", "matplotlib", "scipy", "sklearn") if m in sys.modules])
"""
QUICK = 1e-4  # seconds for a row with 64 atoms, three times what it takes


@claim("the package imports only NumPy, and describes a row in a tenth of a millisecond")
def check_quick():
    done = subprocess.run([sys.executable, "-B", "-c", IMPORTED, os.path.abspath(PACKAGE)],
                          capture_output=True, text=True)
    ok(done.stdout.strip() == "[]", f"imported with it: {done.stdout}{done.stderr}")
    d = sagitta.Dictionary.from_arrays(np.eye(64, dtype="f4"), top_s=4)
    row, times = np.arange(64, dtype="f4")[None], []
    for _ in range(300):
        begun = time.perf_counter()
        d.support(row)
        times.append(time.perf_counter() - begun)
    ok(min(times) < QUICK, f"a row takes {min(times)} s")


@claim("pip installs the package")
def check_package(folder):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
           "--no-build-isolation", "--target", f"{folder}/site", f"{folder}/package"]
    needed = ("import setuptools, pip\ntry: import setuptools.command.bdist_wheel\n"
              "except ImportError: import wheel")
    if subprocess.run([sys.executable, "-c", needed], capture_output=True).returncode:
        peer_missing("pip, setuptools or wheel is not installed")
        return
    shutil.copytree(PACKAGE, f"{folder}/package", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "u+w", f"{folder}/package"], check=True)
    done = subprocess.run(pip, capture_output=True, text=True)
    ok(done.returncode == 0, f"pip: {done.stderr[-300:]}")
    for name in map(os.path.basename, glob.glob(f"{PACKAGE}/sagitta/*.py")):
        ok(os.path.exists(f"{folder}/site/sagitta/{name}"), f"{name} is installed")
    environment = {**os.environ, "PYTHONPATH": f"{folder}/site"}
    done = subprocess.run([sys.executable, "-c", "import sagitta; print(sagitta.__file__)"],
                          cwd="/", env=environment, capture_output=True, text=True)
    ok(done.stdout.startswith(f"{folder}/site"),
       f"the package is imported from there: {done.stdout}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        run = run_made(folder)
        check_values(run)
        check_files(run)
        check_train(folder)
        check_top_rows(folder, run)
        check_without_scipy(run)
        check_errors(folder, run)
        check_hashes(folder, run)
        check_variance()
        check_quick()
        check_whole(folder, run)
        check_package(folder)
    done_testing()


main()
