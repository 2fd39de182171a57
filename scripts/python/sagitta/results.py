# SPDX-License-Identifier: BSD-3-Clause
"""The files of a run as arrays; doc/formats.md describes their contents.

A file is open only while something is being read from it; what was read is kept in memory."""
import functools
import hashlib
import json
import numbers
import os
import typing

import numpy as np

from . import plots
from .dictionary import CSR, Dictionary, Encoder
from .errors import Error, InputError  # noqa: F401, other modules import them from here
from .hints import Axes, Codes, Figures, Pair, Path, Rows
from .late import h5py
from .variance import explained_variance  # noqa: F401

VERSIONS = (1, 2, 3, 4)  # the values of format_version that this module can read
PAGE_VERSION = 1  # the version of run.json
# the files of a folder that may hold each object, in the order in which they are searched
HOLDERS = {
    "supports": ("supports.h5",),
    "metrics": ("supports.h5",),
    "atoms": ("dictionary.h5",),
    "fit/history": ("dictionary.h5", "state.h5"),
    "train/history": ("dictionary.h5", "state.h5"),
}

MAKERS = {  # which commands write each object, for messages
    "supports": "a `sagitta fit` or `sagitta encode`",
    "metrics": "a `sagitta fit` or `sagitta encode`",
    "atoms": "a `sagitta fit`, or what --dictionary of `sagitta encode` named",
    "fit/history": "a `sagitta fit`, or /train/history of a `sagitta train`",
    "train/history": "a `sagitta train`",
}


def plain(value):
    """An attribute of HDF5 as a plain value of Python."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def attributes_of(group):
    return {name: plain(value) for name, value in group.attrs.items()}


def checked(f, path):
    """The open file, if Sagitta wrote it and it is complete; else an error."""
    if plain(f.attrs.get("format", "")) != "sagitta":
        raise Error(f"'{path}' has atoms and no run: open it by sagitta.Dictionary.open()"
                    if "atoms" in f and "format" not in f.attrs else
                    f"'{path}' was not written by Sagitta: give the folder of a run, or one of its "
                    "files such as supports.h5 or dictionary.h5")
    if "format_version" not in f.attrs:
        raise Error(f"'{path}' has no format version: it is damaged, copy or make it again")
    version = plain(f.attrs["format_version"])
    if version not in VERSIONS:
        raise Error(f"'{path}' has format version {version}, this package knows {VERSIONS[-1]}: "
                    "install the package that belongs to the program")
    if plain(f.attrs.get("kind", "")).split("_")[-1] == "part":
        raise Error(f"'{path}' is a part of a result: finish the run with --resume, or join all "
                    "parts of an encoding with `sagitta merge`")
    return f


def root_of(leaves):
    """The root of a hash tree, as in RFC 6962, from the hashes of its leaves."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256().digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def hash_of(array, rows):
    """The SHA-256 of an array's bytes, or if rows is not None, the root of the hash tree whose
    leaves are the chunks of `rows` rows."""
    if rows is None:
        return hashlib.sha256(array.tobytes()).hexdigest()
    return root_of([hashlib.sha256(b"\0" + array[i:i + rows].tobytes()).digest()
                    for i in range(0, len(array) if array.size else 0, rows)]).hex()


def array_of(f, name, check=False):
    data = f[name]
    array = data[...]
    if check:
        said = plain(data.attrs.get("sha256_tree", data.attrs.get("sha256", "")))
        little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
        rows = data.chunks[0] if "sha256_tree" in data.attrs and data.chunks else None
        if hash_of(little, rows) != said:
            raise Error(f"/{name} of '{f.filename}' is not what was written: its SHA-256 is "
                        "another; make it again")
    return array


def saved_dictionary(path):
    """The arguments of a Dictionary, from a file that Dictionary.save() wrote, or from any HDF5
    file with /atoms that no job of Sagitta wrote.  None: the path is something else."""
    if os.path.isdir(path) or not h5py.is_hdf5(path):
        return None
    with h5py.File(path, "r") as f:
        if "format" in f.attrs or "atoms" not in f:
            return None
        said = attributes_of(f)
        return (f["atoms"][...].astype(np.float32), f["mean"][...] if "mean" in f else None,
                bool(said.get("nonnegative", 0)), said.get("rounds"), said.get("top_s"), said)


class Run:
    """The results of a run: codes, dictionary, metrics, history.  Made by sagitta.open()."""

    def __init__(self, path: Path, check: bool = False) -> None:
        self.path, self.check = os.fspath(path), check
        # warnings: of the call that made the run; given: the dictionary, if it was an object
        self.warnings, self.given = [], None
        if not os.path.exists(self.path):
            raise Error(f"there is no '{self.path}': give the folder that --output named")
        if not os.path.isdir(self.path):
            with self._file(self.path):
                pass
        elif not any(os.path.exists(self._name(file)) for files in HOLDERS.values()
                     for file in files):
            raise Error(f"'{self.path}' has no supports.h5, dictionary.h5 or state.h5: give the "
                        f"folder that --output named{self._inner()}")

    def __repr__(self):
        return f"sagitta.open({self.path!r})"

    def _name(self, file):
        return os.path.join(self.path, file)

    def _inner(self):
        """The end of a message that names a folder within this one that has a result; or ""."""
        for name in sorted(os.listdir(self.path)):
            if any(os.path.exists(self._name(os.path.join(name, file)))
                   for files in HOLDERS.values() for file in files):
                return f", such as '{self._name(name)}'"
        return ""

    def _file(self, path):
        try:
            f = h5py.File(path, "r")
        except OSError as error:
            raise Error(f"'{path}' cannot be read as HDF5: {error}: give a result of Sagitta's, "
                        "and if it is one, copy or make it again") from error
        try:
            return checked(f, path)
        except Exception:
            f.close()
            raise

    def _found(self, what):
        """(length of the history, file) for each file that has the object."""
        whole = os.path.isdir(self.path)
        files = [self._name(file) for file in HOLDERS[what]] if whole else [self.path]
        found = []
        for path in filter(os.path.exists, files):
            with self._file(path) as f:
                if what in f:
                    found.append((len(f[what]) if what.endswith("history") else 0, path))
        return found

    def _holder(self, what):
        """The open file that has the object; of several files, the one with the longest history."""
        found = self._found(what)
        if not found:
            raise Error(f"'{self.path}' has no /{what}: it is in {' or '.join(HOLDERS[what])} of "
                        f"{MAKERS[what]}; open that")
        return self._file(max(found, key=lambda pair: pair[0])[1])

    def _csr(self, name):
        with self._holder("supports") as f:
            group = f["supports"]
            if name not in group:
                raise Error(f"'{f.filename}' has no /supports/{name}")
            parts = [array_of(f, f"supports/{part}", self.check)
                     for part in (name, "indices", "indptr")]
            shape = tuple(int(n) for n in group.attrs["shape"])
        try:
            from scipy.sparse import csr_matrix
        except ImportError:
            return CSR(*parts, shape)
        return csr_matrix(tuple(parts), shape=shape)

    @functools.cached_property
    def codes(self) -> Codes:
        """N x K: the code of each atom in each row.  For frames: signed norms; for `route`:
        scores."""
        return self._csr("data")

    @functools.cached_property
    def scores(self) -> Codes:
        """N x K: the score (N.1) of each atom in the round that chose it."""
        return self._csr("score")

    @functools.cached_property
    def frame_codes(self) -> np.ndarray:
        """(number of entries of `codes`, d): the d numbers of the code of a frame in a row."""
        with self._holder("supports") as f:
            if "supports/codes" not in f:
                raise Error(f"'{f.filename}' has no frames: its codes are in `codes`")
            return array_of(f, "supports/codes", self.check)

    @functools.cached_property
    def dictionary(self) -> Dictionary:
        with self._holder("atoms") as f:
            said = attributes_of(f)
            mean = array_of(f, "mean", self.check) if "mean" in f else None
            return Dictionary(array_of(f, "atoms", self.check), mean,
                              bool(said.get("nonnegative", 0)), said.get("rounds"),
                              said.get("top_s"), said)

    def to_saelens(self, rows: Rows = None, **options: typing.Any) -> typing.Any:
        """Convert to an SAE of SAELens, with the encoder of the run if it has one; see
        sagitta.to_saelens()."""
        from .exports import to_saelens
        return to_saelens(self, rows, **options)

    @functools.cached_property
    def encoder(self) -> Encoder:
        """The encoder beside the dictionary, written by `sagitta train`, `import`, `detect` or `fit
        --find features`."""
        with self._holder("atoms") as f:
            if "kind" not in f.get("encoder", f).attrs or "encoder" not in f:
                raise Error(f"'{f.filename}' has no encoder: `sagitta train` makes a dictionary "
                            "that has one, and `sagitta import` of an autoencoder's folder")
            group, said = f["encoder"], attributes_of(f["encoder"])
            arrays = {name: array_of(f, f"encoder/{name}", self.check)
                      for name in ("weights", "bias", "threshold", "norm", "cuts")
                      if name in group}
            numbers = {name: said[name] for name in ("top", "centered", "rescaled", "relative",
                                                     "floor") if name in said}
            if "cuts" in arrays:
                numbers["n_cuts"] = len(arrays["cuts"])
            return Encoder(self.dictionary, said["kind"], arrays, numbers, "solved" in said)

    @functools.cached_property
    def _said_of_metrics(self):
        with self._holder("metrics") as f:
            return attributes_of(f["metrics"])

    @property
    def metrics(self) -> Figures:
        """The metrics in supports.h5, by name (section 7 of doc/numerics.md)."""
        said = self._said_of_metrics
        return {name: value for name, value in said.items() if name + "_formula" in said}

    @property
    def formulas(self) -> typing.Dict[str, str]:
        end = "_formula"
        return {name[:-len(end)]: value for name, value in self._said_of_metrics.items()
                if name.endswith(end)}

    @functools.cached_property
    def density(self) -> np.ndarray:
        """(K,): for each atom, the number of rows that have it in their support."""
        with self._holder("metrics") as f:
            return array_of(f, "metrics/density", self.check)

    @functools.cached_property
    def stability(self) -> typing.Optional[np.ndarray]:
        """(K,): the cosine of each atom with the atom that it is paired with in the fit of another
        seed; of several other seeds, the largest cosine.  None if fit() had no seeds=2 or more."""
        with self._holder("atoms") as f:
            return array_of(f, "stability", self.check) if "stability" in f else None

    @functools.cached_property
    def history(self) -> typing.Dict[str, np.ndarray]:
        """The columns of /fit/history by name, with an entry for the start and for each sweep.  For
        `train`, the columns of /train/history, with an entry for the start and for each evaluation
        of the held-out rows."""
        what = "train/history" if self._found("train/history") else "fit/history"
        with self._holder(what) as f:
            names = plain(f[what].attrs["columns"]).split(",")
            return dict(zip(names, array_of(f, what, self.check).T))

    def plot_history(self, ax: Axes = None) -> Axes:
        """Plot the explained variance after each sweep or step; returns the Axes."""
        return plots.history(self.history, ax)

    def plot_density(self, ax: Axes = None) -> Axes:
        """Plot a histogram of the share of the rows in which each atom occurs; returns the Axes."""
        return plots.density(self.density, self.codes.shape[0], ax)

    @functools.cached_property
    def page(self) -> Figures:
        """The contents of run.json, such as options, libraries, phases, and the host and cores of
        each rank."""
        folder = self.path if os.path.isdir(self.path) else os.path.dirname(self.path)
        try:
            with open(os.path.join(folder, "run.json"), encoding="utf-8") as f:
                page = json.load(f)
        except (OSError, ValueError) as error:
            raise Error(f"there is no run.json to read in '{folder}': {error}") from error
        version = page.get("format_version", 1)
        if version > PAGE_VERSION:
            raise Error(f"run.json in '{folder}' has format version {version}, this package knows "
                        f"{PAGE_VERSION}: install the package that belongs to the program")
        return page

    @functools.cached_property
    def _by_atom(self):
        """The positions of the entries sorted by atom, where each atom's entries begin, and the row
        of each entry."""
        codes = self.codes
        order = np.argsort(codes.indices, kind="stable")
        starts = np.searchsorted(codes.indices[order], np.arange(codes.shape[1] + 1))
        return order, starts, np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))

    def top_rows(self, atom: int, count: int = 10) -> Pair:
        """(rows, codes): the rows in which the atom's code has the largest magnitude, sorted by
        falling magnitude, and for equal magnitudes by row number.  Codes of 0 do not count."""
        k = self.codes.shape[1]
        if not isinstance(atom, numbers.Integral) or not 0 <= atom < k:
            raise Error(f"there is no atom {atom!r}: they are 0 to {k - 1}")
        if not isinstance(count, numbers.Integral) or count < 0:
            raise Error(f"count is {count!r}: give how many rows")
        order, starts, row_of = self._by_atom
        places = order[starts[atom]:starts[atom + 1]]
        rows, codes = row_of[places], self.codes.data[places]
        best = np.argsort(-np.abs(codes), kind="stable")[:count]
        best = best[codes[best] != 0]
        return rows[best], codes[best]
