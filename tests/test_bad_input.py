# SPDX-License-Identifier: BSD-3-Clause
"""Claim: every bad input is refused with its exit code and one message that names the place.  Code
and message are the same on one rank and on three, and nothing is published."""
import os
import shutil
import subprocess
import tempfile

import h5py
import numpy as np

import jobs
from tap import SAGITTA, claim, done_testing, later_wins, launch, ok, sagitta, skip

N, K, P = 40, 20, 16


def good_arrays():
    random = np.random.default_rng(2)
    rows = random.standard_normal((N, P)).astype(np.float32)
    atoms = random.standard_normal((K, P))
    return rows, (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype(np.float32)


class Folder:
    def __init__(self, path):
        self.path = path
        self.rows, self.atoms = good_arrays()
        with h5py.File(self.at("good.h5"), "w") as f:
            f["rows"], f["atoms"] = self.rows, self.atoms
            f["line"], f["text"] = self.rows[0], np.array([[b"a", b"b"]])
            f["counts"], f["empty"] = self.rows.astype(np.int32), self.rows[:, :0]
            f["narrow"], f["cube"] = self.rows[:, :9], np.zeros((2, 9, 16), np.float32)
            f["shear"] = np.stack([self.atoms[:8], self.atoms[8:16]], 1)

    def at(self, name):
        return os.path.join(self.path, name)

    def save(self, name, array):
        np.save(self.at(name), array)
        return self.at(name)

    def changed(self, name, array, place, value):
        array = array.copy()
        array[place] = value
        return self.save(name, array)


def refused(f, text, code, words, rows=None, dictionary=None, options=()):
    rows, dictionary = rows or f.at("good.h5"), dictionary or f.at("good.h5")
    for ranks in (0, 3):
        out = f.at("out")
        command = later_wins("encode", "--rows", rows, "--dictionary", dictionary, "--output", out,
                             "--top-s", 3, "--tile", 4, "--block", 12, *options)
        done = sagitta(*command, ranks=ranks)
        told = [line for line in done.stderr.splitlines() if "sagitta encode: " in line]
        good = done.returncode == code and len(told) == 1 and all(w in told[0] for w in words)
        good = good and not os.path.exists(os.path.join(out, "supports.h5"))
        if not ok(good, f"{text}, {ranks} ranks: exit {done.returncode}"):
            print("#", done.stderr.replace("\n", "\n# "))


@claim("files that cannot be read are refused, on one rank and on three")
def check_files(f):
    refused(f, "missing file", 74, ["cannot open", "none.h5"], rows=f.at("none.h5"))
    refused(f, "missing .npy", 74, ["cannot open", "none.npy"], rows=f.at("none.npy"))
    refused(f, "missing dataset", 65, ["nothing", "rows"], rows=f.at("good.h5:/nothing"))
    refused(f, "missing dictionary", 74, ["cannot open", "none.h5"], dictionary=f.at("none.h5"))
    with open(f.at("text.h5"), "w") as out:
        out.write("not HDF5\n" * 99)
    refused(f, "not HDF5", 65, ["text.h5"], rows=f.at("text.h5"))
    with open(f.at("good.h5"), "rb") as whole, open(f.at("half.h5"), "wb") as half:
        half.write(whole.read()[:3000])
    refused(f, "truncated HDF5", 65, ["half.h5"], rows=f.at("half.h5"))
    path = f.save("half.npy", f.rows)
    os.truncate(path, os.path.getsize(path) - 4)
    refused(f, "truncated .npy", 65, ["half.npy"], rows=path)


@claim("a wrong checksum is refused")
def check_checksum(f):
    path = f.at("flipped.h5")
    with h5py.File(path, "w") as h:
        h.create_dataset("rows", data=f.rows, chunks=(10, P), fletcher32=True)
    raw = bytearray(open(path, "rb").read())
    at = raw.find(f.rows[20:30].tobytes())
    raw[at + 5] ^= 16
    open(path, "wb").write(raw)
    refused(f, "wrong checksum", 65, ["flipped.h5"], rows=path)


@claim("wrong shapes and types are refused")
def check_shapes(f):
    for name in ("line", "cube"):
        refused(f, f"rows of wrong rank: {name}", 65, [name], rows=f.at(f"good.h5:/{name}"))
    for name in ("text", "counts"):
        refused(f, f"rows of wrong type: {name}", 65, [name], rows=f.at(f"good.h5:/{name}"))
    refused(f, "no columns", 65, ["empty"], rows=f.at("good.h5:/empty"))
    refused(f, "P differs", 65, ["9", "16"], rows=f.at("good.h5:/narrow"))
    refused(f, "dictionary of wrong rank", 65, ["line"], dictionary=f.at("good.h5:/line"))
    refused(f, "too wide a frame", 65, ["cube"], dictionary=f.at("good.h5:/cube"))
    refused(f, "frames not orthonormal", 65, ["frame", "cosine"], dictionary=f.at("good.h5:/shear"))
    refused(f, "no atoms", 65, ["0 atoms"], dictionary=f.save("none.npy", f.atoms[:0]))
    refused(f, "Fortran order", 65, ["order"],
            rows=f.save("fortran.npy", np.asfortranarray(f.rows)))
    refused(f, ".npy of integers", 65, ["i4"], rows=f.save("ints.npy", f.rows.astype(np.int32)))


@claim("wrong values are refused, with their place")
def check_values(f):
    rows = f.changed("nan.npy", f.rows, ([37, 25], [3, 4]), np.nan)
    refused(f, "NaN in rows", 65, ["row 25", "column 4"], rows=rows)
    rows = f.changed("inf.npy", f.rows, (11, 15), np.inf)
    refused(f, "infinity in rows", 65, ["row 11", "column 15"], rows=rows)
    rows = f.save("wide.npy", np.where(np.arange(N)[:, None] == 7, 1e300,
        f.rows.astype(np.float64)))
    refused(f, "f64 beyond f32", 65, ["row 7"], rows=rows)
    rows = f.changed("huge.npy", f.rows, (slice(30, 32),), 3e38)
    refused(f, "score overflows", 65, ["row 30", "atom"], rows=rows)
    atoms = f.changed("atom.npy", f.atoms, ([17, 9], [1, 1]), np.nan)
    refused(f, "NaN in atoms", 65, ["atom 9"], dictionary=atoms)
    atoms = f.changed("norm.npy", f.atoms, ([13, 6],), 0.5)
    refused(f, "not of unit norm", 65, ["atom 6", "norm", "--normalize"], dictionary=atoms)
    atoms = f.changed("zero.npy", f.atoms, 6, 0)
    refused(f, "a zero atom", 65, ["atom 6"], dictionary=atoms, options=["--normalize"])


@claim("usage errors exit with 2")
def check_usage(f):
    refused(f, "top-s 0", 2, ["top-s"], options=["--top-s", 0])
    refused(f, "top-s too large", 2, ["top-s", "256"], options=["--top-s", 300])
    refused(f, "not a number", 2, ["tile"], options=["--tile", "many"])
    refused(f, "negative rho", 2, ["rho"], options=["--rho", "-1"])
    refused(f, "unknown option", 2, ["--top-z", "--top-s"], options=["--top-z", 3])
    refused(f, "unknown variant", 2, ["cpu-variant"], options=["--cpu-variant", "mmx"])
    refused(f, "a variant without filter", 69, ["filter", "baseline"],
            options=["--filter", "on", "--cpu-variant", "baseline"])
    with open(f.at("bad.in"), "w") as deck:
        deck.write("# a deck\ntop-s = 4\ntopp-s = 3\n")
    refused(f, "unknown deck key", 2, ["bad.in:3", "topp-s", "top-s"], options=[f.at("bad.in")])
    with open(f.at("range.in"), "w") as deck:
        deck.write("top-s = 4000\n")
    refused(f, "deck value out of range", 2, ["range.in:1", "top-s"], options=[f.at("range.in")])
    refused(f, "missing deck", 74, ["cannot open", "no.in"], options=[f.at("no.in")])
    for name, value in ("mean.h5", 0.0), ("nan.h5", np.nan):
        with h5py.File(f.at(name), "w") as h:
            h["atoms"], h["mean"] = f.atoms, np.full(P, value)
    refused(f, "center twice", 2, ["--center"], dictionary=f.at("mean.h5"), options=["--center"])
    refused(f, "mean not finite", 65, ["mean"], dictionary=f.at("nan.h5"))


@claim("places that cannot take a result are refused")
def check_output(f):
    words = ["encode", "--rows", f.at("good.h5"), "--dictionary", f.at("good.h5"), "--top-s", 3]
    first = sagitta(*words, "--output", f.at("result"), ranks=2)
    again = sagitta(*words, "--output", f.at("result"), ranks=2)
    force = sagitta(*words, "--output", f.at("result"), "--force", ranks=2)
    ok((first.returncode, again.returncode, force.returncode) == (0, 73, 0),
       f"an existing result is kept: {first.returncode} {again.returncode} {force.returncode}, "
       f"{first.stderr[-800:]}")
    ok("--force" in again.stderr, "the message says how to replace the result")
    below = sagitta(*words, "--output", f.at("good.h5") + "/sub/dir", ranks=2)
    ok(below.returncode == 73, f"a folder below a file: exit {below.returncode}")
    many = sagitta(*later_wins(*words, "--top-s", 100), "--output", f.at("many"), ranks=2)
    ok(many.returncode == 0 and "20 atoms" in many.stderr,
       "--top-s above the number of atoms gives a warning")


def supports_file(path, shape, density=None):
    """Write 3 entries in each of 4,000 rows, with any shape as its attribute."""
    with h5py.File(path, "w") as h:
        g = h.create_group("supports")
        g.attrs["encoding-type"], g.attrs["encoding-version"] = "csr_matrix", "0.1.0"
        g.attrs["shape"] = np.array(shape)
        g["indptr"], g["data"] = np.arange(0, 12001, 3), np.ones(12000, np.float32)
        g["indices"] = np.tile(np.arange(3, dtype=np.int32), 4000)
        if density is not None:
            h.create_dataset("metrics/density", (shape[1],), np.int64, chunks=(1 << 16,),
                             compression="gzip")
            h["metrics/density"][:density] = 1
    return path


@claim("sizes that are larger than the stored data are refused before memory is allocated for them")
def check_sizes(f):
    path = f.at("supports.h5")
    for shape, density, code, words in (
            ((4000, 300000000), None, 65, "300000000 atoms"),
            ((4000, 300000000), 10, 65, "300000000 atoms"),
            ((4000, 1 << 20), None, 0, ""),
            ((4000, 1 << 21), 1 << 21, 0, ""),
            ((2 ** 63 - 1, 20), None, 65, "9223372036854775807 rows"),
            ((4000, 2 ** 31), None, 65, "2147483648 atoms")):
        supports_file(path, shape, density)
        done = sagitta("color", "--supports", path, "--force", "--output", f.at("colors"))
        ok(done.returncode == code and words in done.stderr,
           f"shape {shape}, density {density}: exit {done.returncode} {done.stderr[-200:]}")
        if code and shape[1] < 2 ** 31:
            done = sagitta("verify", path)
            ok(done.returncode == 65, f"verify of {shape}: exit {done.returncode}")


def harmless(*words, code=0):
    """The command must end with this code, and print nothing that controls a terminal."""
    done = sagitta(*words)
    bad = [c for c in done.stdout + done.stderr if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f"
                                                                 or c == "\u202e")]
    ok(done.returncode == code and not bad and "evil" in done.stdout + done.stderr,
       f"{words[0]}: exit {done.returncode}, prints {bad}")
    return done


@claim("names and texts of files cannot control the terminal")
def check_escapes(f):
    evil = "evil\x1b[31m\x9b1m\u202e\r\x7f"
    path, other = f.at(f"{evil}.h5"), f.at(f"{evil}2.h5")
    for name in (path, other):
        with h5py.File(name, "w") as h:
            h[f"rows {evil}"] = f.rows * (1 if name == path else 2)
            h[f"link {evil}"] = h5py.SoftLink(f"/to {evil}")
            h[f"far {evil}"] = h5py.ExternalLink(f"{evil}.h5", f"/to {evil}")
            h.attrs[f"name {evil}"] = f"{evil}\n{evil}\n"
            h[f"rows {evil}"].attrs["value"] = evil
    harmless("inspect", path)
    harmless("verify", path)
    harmless("diff", path, other, code=1)
    text = f.at("evil\x9b1m\u202e\r2.h5")  # a name that a deck may have
    os.link(path, text)
    for name, code in ((path, 2), (text, 65), (text + "no", 74)):
        harmless("encode", "--rows", name, "--dictionary", name, "--top-s", 3, "--output",
                 f.at("o"), code=code)
    harmless(f"{evil}", code=2)
    harmless("encode", f"--{evil}", code=2)
    harmless("encode", "--rows", f.at("good.h5"), "--dictionary", f.at("good.h5"), "--top-s", 3,
             "--output", f.at(evil), code=2)
    refused(f, "an output without a name", 2, ["no name"], options=["--output", f.at(".h5")])
    refused(f, "a value of two lines", 2, ["lines"], options=["--output", f.at("a\nforce = yes")])


@claim("a name is refused if used.in cannot contain it")
def check_names(f):
    for name, code in ((b"bell\x07", 2), (b"escape\x1b[1m", 2), (b"delete\x7f", 2),
                       (b"stray\x80", 2), (b"latin\xe9t\xe9", 0), (b"\xff", 0),
                       (b"tab\t and\rreturn ", 0), ("\u00fc\u4e00".encode(), 0),
                       (b'"quotes" # \t', 0)):
        path, out = os.fsdecode(f.at("").encode() + name + b".npy"), f.at("named")
        np.save(path, f.rows)
        words = ["encode", "--rows", path, "--dictionary", f.at("good.h5"), "--top-s", "3",
                 "--output", out]
        done = subprocess.run([SAGITTA, *words], capture_output=True, timeout=300)
        ok(done.returncode == code and (code == 0 or b"'rows' is" in done.stderr),
           f"{name}: exit {done.returncode} {done.stderr[-200:]}")
        if done.returncode == 0:
            done = subprocess.run([SAGITTA, "encode", f"{out}/used.in", "--force"],
                                  capture_output=True, timeout=300)
            ok(done.returncode == 0,
               f"{name}: used.in gives exit {done.returncode} {done.stderr[-200:]}")
            shutil.rmtree(out)
        os.remove(path)


@claim("too small stacks and impossible stack sizes are refused, and if a library ends the "
       "program, this is reported")
def check_stacks(f):
    if os.environ.get("SANITIZED"):
        skip("sanitizers need more than the limits of this test allow")
        return
    words = ["encode", "--rows", f.at("good.h5"), "--dictionary", f.at("good.h5"), "--top-s", "3",
             "--threads", "2", "--force", "--output", f.at("out")]
    small = "limited to 64 kB, 256 are needed"
    for ranks, limit, more, code, told in (
            (0, "-s 64", {}, 71, small), (0, "-Ss 64", {}, 0, "wrote"),
            # Libraries that MPI loads crash with such a small stack, so the program checks it
            # before MPI starts.
            (0, "-s 64", {"OMPI_MCA_pml": "none"}, 71, small),
            (2, "-s $((8192 >> 7 * OMPI_COMM_WORLD_RANK))", {}, 71, "rank 1: sagitta encode: the "),
            (0, "-c 0", {"OMP_STACKSIZE": "9999G"}, 2, "OMP_STACKSIZE is '9999G'"),
            (0, "-c 0", {"OMP_STACKSIZE": "16K"}, 2, "OMP_STACKSIZE is '16K'"),
            (0, "-c 0", {"OMP_STACKSIZE": "8 m"}, 0, "wrote"),
            (0, "-c 0", {"OMP_STACKSIZE": "300"}, 0, "wrote"),
            (0, "-v 700000", {"OMP_STACKSIZE": "1G"}, 71, "a library ended the program")):
        done = subprocess.run(
            [*launch(ranks), "bash", "-c", f'ulimit {limit}; exec "$0" "$@"', SAGITTA, *words],
            env=jobs.environment(**more), capture_output=True, text=True, timeout=300)
        # LLVM's OpenMP prints the message itself, and aborts.
        is_llvm = code == 71 and done.returncode == -6 and "OMP: Error" in done.stderr
        ok((done.returncode == code and done.stderr.count(told) == 1) or is_llvm,
           f"{ranks} ranks, ulimit {limit}, {more}: exit {done.returncode} {done.stderr[-150:]}")


@claim("a stack limit that may be raised is raised for threads too, such as fit's writer")
def check_threads_stack(f):
    if os.environ.get("SANITIZED"):
        skip("sanitizers need more than the limits of this test allow")
        return
    done = subprocess.run(
        ["bash", "-c", 'ulimit -Ss 64; exec "$0" "$@"', SAGITTA, "fit", "--rows", f.at("good.h5"),
         "--atoms", "8", "--top-s", "3", "--sweeps", "1", "--holdout-share", "0", "--quiet",
         "--output", f.at("fit")],
        env=jobs.environment(), capture_output=True, text=True, timeout=300)
    ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-150:]}")


def main():
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path)
        check_files(folder)
        check_checksum(folder)
        check_shapes(folder)
        check_values(folder)
        check_usage(folder)
        check_output(folder)
        check_sizes(folder)
        check_escapes(folder)
        check_names(folder)
        check_stacks(folder)
        check_threads_stack(folder)
    done_testing()


main()
