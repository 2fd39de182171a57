# SPDX-License-Identifier: BSD-3-Clause
"""Claim: common mistakes with import, export, evaluate, encode, inspect, compare, top, the page of
a run and the Python package are refused, and the message says how to repair them: a wrong folder, a
missing key, a transposed matrix, another number of columns, or norms that are not 1.  Lines of
Python in a message do what it says."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from exchange_files import MADE
from tap import SOURCE, claim, done_testing, ok, peer_missing, sagitta

sys.path.insert(0, os.path.join(SOURCE, "scripts", "python"))
sys.dont_write_bytecode = True
import sagitta as package  # noqa: E402, after the path to it

N, K, P = 60, 12, 8


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.need("synth", "--n-rows", N, "--columns", P, "--atoms", K, "--output", self.at("data"))
        self.rows, self.dictionary = self.at("data/rows.h5"), self.at("data/dictionary.h5")
        self.need("encode", "--rows", self.rows, "--dictionary", self.dictionary, "--top-s", 3,
                  "--output", self.at("codes"))
        with h5py.File(self.dictionary) as f:
            self.atoms = f["atoms"][:]
        with h5py.File(self.rows) as f:
            self.x = f["rows"][:]
        with h5py.File(self.at("codes/supports.h5")) as f:
            g = f["supports"]
            self.dense = np.zeros((N, K), "f4")
            row = np.repeat(np.arange(N), np.diff(g["indptr"][:]))
            self.dense[row, g["indices"][:]] = g["data"][:]
        os.makedirs(self.at("empty"))

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def need(self, *words):
        done = sagitta(*words)
        ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
        return done

    def array(self, name, values):
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        np.save(self.at(name), values)
        return self.at(name)

    def whole(self):
        """A folder with codes and their dictionary."""
        if not os.path.isdir(self.at("whole")):
            shutil.copytree(self.at("codes"), self.at("whole"))
            shutil.copy(self.dictionary, self.at("whole"))
        return self.at("whole")

    def csr(self, name, dense, leave=(), shape=True, group="supports", kind="i4"):
        rows = [np.nonzero(r)[0] for r in dense]
        parts = {"indptr": np.cumsum([0] + [len(r) for r in rows]),
                 "indices": np.concatenate(rows).astype(kind),
                 "data": np.concatenate([dense[i, r] for i, r in enumerate(rows)])}
        with h5py.File(self.at(name), "w") as f:
            g = f.create_group(group)
            for key, values in parts.items():
                if key not in leave:
                    g[key] = values
            if shape:
                g.attrs["shape"] = dense.shape
        return self.at(name)

    def refused(self, said, *words, code=65):
        out = self.at("out")
        has_output = words[0] not in ("evaluate", "inspect", "compare")
        done = sagitta(*words, *(["--output", out] if has_output else []))
        message = done.stderr.splitlines()[-1] if done.stderr else ""
        ok(done.returncode == code and all(part in message for part in said),
           f"{words}: exit {done.returncode}, {said}: {message}")
        found = os.listdir(out) if os.path.isdir(out) else []
        ok(not [f for f in found if not f.endswith((".in", ".log", ".lock"))], f"{words}: {found}")
        shutil.rmtree(out, ignore_errors=True)
        return message

    def encode(self, said, rows=None, dictionary=None, code=65):
        self.refused(said, "encode", "--rows", rows or self.rows, "--dictionary",
                     dictionary or self.dictionary, "--top-s", 3, code=code)

    def evaluate(self, said, rows=None, dictionary=None, codes=None, code=65):
        return self.refused(said, "evaluate", "--rows", rows or self.rows, "--dictionary",
                            dictionary or self.dictionary, "--codes", codes or self.at("codes"),
                            code=code)


@claim("if a folder is wrong, the message says what it has, and which file is wanted")
def check_folders(p):
    empty, codes = p.at("empty"), p.at("codes")
    p.encode([f"cannot open '{empty}/rows.h5'", "nothing in it", "name the file"], rows=empty,
             code=74)
    said = [f"cannot open '{codes}/dictionary.h5'", "run.json, run.log, supports.h5, used.in",
            "the folder that has it"]
    p.encode(said, dictionary=codes, code=74)
    p.evaluate(said, dictionary=codes, code=74)
    p.refused(said, "export", codes, "--to", "npy", code=74)
    p.evaluate([f"'{p.at('data')}/supports.h5'", "dictionary.h5, rows.h5"], codes=p.at("data"),
               code=74)
    for i in range(20):
        open(p.at("empty", f"shard-{i:02d}.h5"), "w").close()
    p.encode(["shard-00.h5, ", "shard-07.h5, ...", "name the file"], rows=empty, code=74)
    p.encode(["No such file"], rows=p.at("none.h5"), code=74)
    p.refused(["no folder of an autoencoder", "nothing of that name"], "import", p.at("none"))
    p.refused(["no folder of an autoencoder", "SAELens has cfg.json"], "import", codes)
    p.refused(["but a file", "give the folder"], "import", f"{MADE}/saelens_topk/cfg.json")
    p.refused(["an atom's page needs a folder", "fit", "copy the dictionary.h5"], "inspect", codes,
              "--atom", 1, code=74)
    p.refused(["an atom's page needs a folder", "copy the supports.h5"], "inspect", p.at("data"),
              "--atom", 1, code=74)
    p.refused(["is a file: give its folder"], "inspect", f"{codes}/supports.h5", "--atom", 1,
              code=2)
    p.refused(["leave ':/rows' out"], "inspect", f"{p.rows}:/rows", code=2)
    p.array("no/in.npy", p.x)
    p.refused(["the one that --output named"], "inspect", p.at("no"))
    p.refused([f"cannot open '{codes}/dictionary.h5'", "the folder that has it"], "compare", codes,
              p.dictionary, code=74)
    p.refused([f"'{p.at('data')}/supports.h5'", "the folder that has it"], "top", "--supports",
              p.at("data"), code=74)
    p.refused(["a folder, and folders are named by an option", f"--rows {codes}"], "top", codes,
              code=74)
    p.refused(["data are named by an option"], "encode", p.rows, code=2)
    p.refused(["has no dictionary.h5", f"`sagitta import {MADE}/saelens_topk"], "encode", "--rows",
              p.rows, "--encoder", f"{MADE}/saelens_topk")
    p.refused(["weights alone", "`sagitta import FOLDER"], "encode", "--rows", p.rows, "--encoder",
              f"{MADE}/saelens_topk/sae_weights.safetensors")
    done = sagitta("export", p.at("data"), "--to", "npy")
    ok(done.returncode == 2 and "'--output' is missing: a folder, as in" in done.stderr,
       f"export without a place: {done.stderr}")


@claim("if a dataset or group is missing, the message names what the file has, or another file")
def check_keys(p):
    p.encode(["no dataset '/activations'", "'/rows' (60 x 8 float32)", ":/PATH"],
             rows=p.rows + ":/activations")
    p.encode(["no dataset '/atoms'", "'/rows' (60 x 8 float32)"], dictionary=p.rows)
    p.refused(["no dataset '/atoms'", ":/PATH"], "export", p.rows, "--to", "npy")
    for words in (["encode", "--rows", p.rows, "--dictionary", p.at("codes/supports.h5")],
                  ["encode", "--rows", p.rows, "--encoder", p.at("codes/supports.h5")],
                  ["compare", p.at("codes/supports.h5"), p.dictionary]):
        p.refused(["no dataset '/atoms'", "the file that has it, such as dictionary.h5"], *words)
    p.refused(["no dataset '/atoms'", "'/rows' (60 x 8 float32)"], "compare", p.rows, p.dictionary)
    p.refused(["has no encoder", "`sagitta train`", "`sagitta import`", "--dictionary"], "encode",
              "--rows", p.rows, "--encoder", p.dictionary)
    p.refused(["no group '/supports'", "the supports.h5 of `sagitta encode`"], "top", "--supports",
              p.dictionary)
    p.refused(["no HDF5 file", "save them as a CSR matrix"], "top", "--supports",
              p.array("x.npy", p.x))
    p.evaluate(["no group '/supports'", "give the supports.h5 of `sagitta encode`"],
               codes=p.dictionary)
    p.evaluate(["no group '/other'", "codes in '/supports'", "name it as"],
               codes=p.at("codes/supports.h5:/other"))
    p.evaluate(["no group '/supports'", "codes in '/a/b'", "name it as"],
               codes=p.csr("other.h5", p.dense, group="a/b"))
    p.evaluate(["no attribute 'shape'", ".attrs[\"shape\"] = (ROWS, ATOMS)"],
               codes=p.csr("shape.h5", p.dense, shape=False))
    for key in "indptr", "indices", "data":
        p.evaluate([f"no '/supports/{key}'", "save them as a CSR matrix"],
                   codes=p.csr("key.h5", p.dense, leave=[key]))


@claim("if a matrix is transposed, the message says so")
def check_transposed(p):
    turned = p.array("turned.npy", np.ascontiguousarray(p.atoms.T))
    said = ["has 8 columns, the atoms of", "have 12", "transposed", "atoms.T"]
    p.encode(said, dictionary=turned)
    p.evaluate(said, dictionary=turned)
    for words in (turned, p.dictionary), (p.dictionary, turned):
        p.refused(["is one transposed?", "that one as atoms.T"], "compare", *words)
    rows = p.array("rows.T.npy", np.ascontiguousarray(p.x.T[:, :P + 1]))  # P rows
    p.encode(["rows transposed", "rows.T"], rows=rows)
    p.evaluate(["rows transposed", "rows.T"], rows=rows)
    p.refused(["rows transposed", "rows.T"], "export", p.dictionary, "--to", "saelens", "--top-s",
              3, "--rows", rows)
    p.evaluate(["codes of 12 rows and 60 atoms", "transposed", ".tocsr()"],
               codes=p.csr("turned.h5", p.dense.T))
    with h5py.File(p.csr("csc.h5", p.dense), "r+") as f:
        f["supports"].attrs["encoding-type"] = "csc_matrix"
    p.evaluate(["CSC matrix", "tocsr()"], codes=p.at("csc.h5"))


@claim("if numbers of columns, rows or atoms do not fit, the message says which file to give")
def check_shapes(p):
    wide = p.array("wide.npy", np.ones((N, P + 1), "f4"))
    said = ["has 9 columns, the atoms of", "give activations of the place"]
    p.encode(said, rows=wide)
    p.evaluate(said, rows=wide)
    p.refused(said, "export", p.dictionary, "--to", "saelens", "--top-s", 3, "--rows", wide)
    p.refused(["8 columns", "of 9", "dictionaries of the same activations"], "compare",
              p.dictionary, p.array("9.npy", np.eye(9, dtype="f4")[:5]))
    p.need("import", f"{MADE}/saelens_topk", "--output", p.at("imported"))
    p.refused(["has 8 columns, the atoms of", "have 16", "give activations"], "encode", "--rows",
              p.rows, "--encoder", p.at("imported"))
    p.refused([f"no atom {K}", f"0 to {K - 1}"], "inspect", p.whole(), "--atom", K)
    p.evaluate(["give the rows that were encoded"], rows=p.array("few.npy", p.x[:9]))
    p.evaluate(["give the decoder of these codes"], dictionary=p.array("9.npy", p.atoms[:9]))
    p.encode(["1 dimensions", "x.reshape(-1, COLUMNS)"], rows=p.array("one.npy", p.x[0]))
    p.encode(["3 dimensions", "x.reshape(-1, COLUMNS)"],
             rows=p.array("batch.npy", p.x.reshape(6, 10, P)))
    p.encode(["<i4", "astype('f4')"], rows=p.array("int.npy", p.x.astype("i4")))


@claim("atoms whose norm is not 1, and values that are not finite, are named, with what to do")
def check_values(p):
    scaled = p.array("scaled.npy", 3 * p.atoms)
    said = ["atom 0", "has norm 3, not 1", "a row each", "--normalize of encode, route and compare"]
    p.encode(said, dictionary=scaled)
    p.refused(said, "export", scaled, "--to", "npy")
    p.refused(said, "compare", scaled, p.dictionary)
    p.need("encode", "--rows", p.rows, "--dictionary", scaled, "--top-s", 3, "--normalize",
           "--output", p.at("mended"))
    bad = p.x.copy()
    bad[7, 2] = np.nan
    bad = p.array("nan.npy", bad)
    p.encode(["row 7, column 2", "is nan", "leave such rows out"], rows=bad)
    p.evaluate(["row 7", "leave such rows out"], rows=bad)
    bad = p.x.astype("f8")
    bad[7, 2] = 1e39
    bad = p.array("large.npy", bad)
    p.encode(["row 7, column 2", "is inf, or beyond float32", "leave such rows out"], rows=bad)
    codes = shutil.copy(p.at("codes/supports.h5"), p.at("far.h5"))
    with h5py.File(codes, "r+") as f:
        if "mean" in f:
            del f["mean"]
        f["mean"] = np.where(np.arange(p.x.shape[1]) == 2, -1e39, 0.0)
    p.evaluate(["column 2 of the mean of", "far.h5", "no mean of rows of float32"], codes=codes)


def raised(said, call):
    try:
        call()
    except package.Error as error:
        ok(all(part in str(error) for part in said), f"{said}: {error}")
    else:
        ok(False, f"{said}: nothing was said")


@claim("the Python package says which file to open")
def check_package(p):
    raised(["there is no", "--output named"], lambda: package.open(p.at("none")))
    raised(["give the folder"], lambda: package.open(p.at("empty")))
    codes, data = package.open(p.at("codes")), package.open(p.at("data"))
    raised(["no /atoms", "dictionary.h5", "--dictionary of"], lambda: codes.dictionary)
    raised(["no /supports", "supports.h5", "`sagitta encode`"], lambda: data.codes)
    raised(["no /fit/history", "of a `sagitta fit`"], lambda: data.history)
    raised([f"0 to {K - 1}"], lambda: codes.top_rows(K))
    for count in -1, "3":
        raised(["how many rows"], lambda c=count: codes.top_rows(1, c))
    raised(["for the same rows"], lambda: package.explained_variance(p.x, p.x.T))


@claim("scripts/report says what to do, too")
def check_report(p):
    whole = p.whole()
    for said, *words in (("there is none: give the one that --output named", p.at("none")),
                         ("it is a file: give its folder", p.at("codes/supports.h5")),
                         ("copy its dictionary.h5 beside", p.at("codes")),
                         ("give the file of the rows that were encoded", whole, "--rows", "none"),
                         ("has no tokens: they are its '/token'", whole, "--rows", p.rows),
                         ("give their file by '--rows'", whole, "--vocabulary", p.rows)):
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "report"), *words],
                              capture_output=True, text=True)
        ok(done.returncode == 1 and said in done.stderr and
           not os.path.exists(f"{whole}/report.html"), f"{words}: {done.stderr}")


@claim("a weight that is not finite is named, with its file")
def check_import(p):
    folder = shutil.copytree(f"{MADE}/saelens_topk", p.at("broken"))
    path = f"{folder}/sae_weights.safetensors"
    with open(path, "rb") as f:
        data = bytearray(f.read())
    data[-4:] = np.float32(np.nan).tobytes()
    with open(path, "wb") as f:
        f.write(data)
    p.refused(["of '" + path + "' has nan at row", "earlier checkpoint"], "import", folder)


@claim("the lines of Python that messages give do what they say")
def check_lines(p):
    try:
        import scipy.sparse
    except ImportError:
        peer_missing("python3-scipy is not installed")
        return
    dense = p.array("dense.npy", p.dense)
    packed = p.at("packed.npz")
    scipy.sparse.save_npz(packed, scipy.sparse.csc_matrix(p.dense))
    with h5py.File(p.at("array.h5"), "w") as f:
        f["supports"] = p.dense
    for path, reader in ((dense, f'numpy.load("{dense}")'), (packed, f's.load_npz("{packed}")'),
                         (p.at("array.h5"), f'h5py.File("{p.at("array.h5")}")["supports"][:]')):
        message = p.evaluate(["save them as a CSR matrix", "where CODES reads yours"], codes=path)
        if path != p.at("array.h5"):
            ok(reader in message, f"{path}: {message}")
        new = p.at("new.h5")
        line = re.search(r"python3 -c '(.*?)'", message)[1]
        line = line.replace("CODES", reader).replace("NEW.h5", new)
        done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
        ok(done.returncode == 0, f"{path}: {line} {done.stderr}")
        words = ["evaluate", "--rows", p.rows, "--dictionary", p.dictionary, "--codes"]
        own, theirs = (p.need(*words, codes).stdout.splitlines()[1:]
                       for codes in (p.at("codes"), new))
        ok(own[:4] == theirs[:4], f"{path}: {own} {theirs}")
    message = p.evaluate(["no attribute 'shape'"], codes=p.csr("shape.h5", p.dense, shape=False))
    line = re.search(r"in Python (.*)", message)[1].replace("(ROWS, ATOMS)", f"({N}, {K})")
    subprocess.run([sys.executable, "-c", "import h5py; " + line], check=True)
    p.need("evaluate", "--rows", p.rows, "--dictionary", p.dictionary, "--codes", p.at("shape.h5"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with claim("rows, a dictionary and codes are made"):
            place = Place(folder)
        check_folders(place)
        check_keys(place)
        check_transposed(place)
        check_shapes(place)
        check_values(place)
        check_import(place)
        check_package(place)
        check_report(place)
        check_lines(place)
    done_testing()
