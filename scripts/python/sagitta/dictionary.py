# SPDX-License-Identifier: BSD-3-Clause
"""Dictionaries and the encoders that belong to them: from rows to codes and back, in this process.

An argument x is rows (..., P) as for sagitta.fit(), of float16, bfloat16, float32 or float64.
Results have the same leading dimensions, except for codes of format="csr", which have one
row for each row of x.  Other results are PyTorch tensors on the device of x if x is a tensor,
arrays of x's own library if that follows the array API, and otherwise NumPy arrays.  If libsagitta
can compute on the GPU of a tensor, a Dictionary encodes the tensor there, and copies only the codes
of format="csr" to the host.  An Encoder copies the rows to the CPU, and the codes back.

Codes have the same bits as those of `sagitta encode`, for any number of rows at a time and any
number of threads."""
import contextlib
import dataclasses
import functools
import os
import typing

import numpy as np

from . import gpu
from .arrays import columns_check, numpy_of
from .errors import Error, InputError
from .hints import Array, Figures, Path
from .late import h5py
from .library import Handles

KINDS = ("auto", "signed", "nonnegative")


class CSR(typing.NamedTuple):
    """A sparse matrix for use without SciPy: row i has the codes data[indptr[i]:indptr[i + 1]]."""
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: typing.Tuple[int, int]

    def dense(self) -> np.ndarray:
        array = np.zeros(self.shape, self.data.dtype)
        array[np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices] = self.data
        return array


def like(x, array):
    """Convert a NumPy array to the kind of x: a PyTorch tensor, or an array of x's library if it
    follows the array API."""
    if isinstance(x, np.ndarray):
        return array
    if hasattr(x, "detach"):
        import torch
        return torch.from_numpy(array).to(x.device)
    if not hasattr(x, "__array_namespace__"):
        return array
    asarray, device = x.__array_namespace__().asarray, getattr(x, "device", None)
    try:
        return asarray(array, device=device)
    # for example because the columns of x are divided among several devices
    except (TypeError, ValueError):
        return asarray(array)


def rows_of(x, columns):
    """(n, P) float32, from x (..., P)."""
    array = numpy_of(x)
    columns_check(array.shape, columns)
    with np.errstate(over="ignore"):  # the library reports which value is too large
        return np.ascontiguousarray(array, np.float32).reshape(-1, columns)


def padded(start, atoms, codes, least):
    """Atoms and codes as (n, s) arrays, where s is the largest number of entries in a row, but at
    least `least`; shorter rows are filled with -1 and 0."""
    lengths = np.diff(start)
    most = max(least, int(lengths.max(initial=0)))
    used = np.arange(most) < lengths[:, None]
    wide = np.full(used.shape, -1, np.int32), np.zeros(used.shape, np.float32)
    wide[0][used], wide[1][used] = atoms, codes
    return wide


def fixed(arrays):
    """Make the arrays read-only, since the library uses them in place and keeps values derived from
    them."""
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False


class Coder:
    """The common part of dictionaries and encoders.  _options() gives the options for encoding, and
    _arrays() the arrays that libsagitta uses in place."""

    def __post_init__(self):
        fixed(self._arrays())

    def __setstate__(self, state):
        self.__dict__.update(state)
        fixed(self._arrays())

    @functools.cached_property
    def _handles(self):
        return Handles()

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_handles"}

    def _csr(self, x, options, threads):
        rows = rows_of(x, options["p"])
        return self._handles.encode(options, threads, rows)

    def _on_gpu(self, x, options, threads):
        """(atoms, codes) of a tensor on a GPU, if libsagitta can use that GPU; else None.  Always
        None for an Encoder."""
        has_encoder = "encoder" in options
        return None if has_encoder or not gpu.is_on_gpu(x) else \
            gpu.support(self._handles, options, threads, x)

    def _support(self, x, options, threads):
        found = self._on_gpu(x, options, threads)
        if found:
            return found
        start, atoms, _, codes = self._csr(x, options, threads)
        return tuple(like(x, array.reshape(*np.shape(x)[:-1], array.shape[1]))
                     for array in padded(start, atoms, codes, options.get("top_s", 0)))

    def _encode(self, x, options, threads, format):
        if format not in ("csr", "dense"):
            raise InputError(f"format is {format!r}: give 'csr' or 'dense'")
        found = self._on_gpu(x, options, threads)
        if found and format == "dense":
            return gpu.dense_of(*found, options["k"])
        if found:
            atoms, codes = (array.cpu().numpy().reshape(-1) for array in found)
            start = np.arange(0, len(atoms) + 1, options["top_s"])
        else:
            start, atoms, _, codes = self._csr(x, options, threads)
        shape = len(start) - 1, options["k"]
        if format == "dense":
            dense = CSR(codes, atoms, start, shape).dense()
            return like(x, dense.reshape(*np.shape(x)[:-1], shape[1]))
        try:
            from scipy.sparse import csr_array
        except ImportError:
            return CSR(codes, atoms, start, shape)
        return csr_array((codes, atoms, start), shape=shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Dictionary(Coder):
    """Atoms, and the options for encoding with them.  An option that the file of the dictionary
    does not have is None.  The arrays are read-only.

    >>> import numpy as np, sagitta
    >>> d = sagitta.Dictionary.from_arrays(np.eye(4, 3, dtype="f4")[:3], top_s=1)
    >>> d.encode(np.array([[1.0, 3.0, 2.0]]), format="dense")
    array([[0., 3., 0.]], dtype=float32)
    """
    atoms: np.ndarray  # (K, P) or (K, d, P), f32
    mean: typing.Optional[np.ndarray]  # (P,), f64: subtracted from rows
    nonnegative: bool
    rounds: typing.Optional[int]
    top_s: typing.Optional[int]
    attributes: Figures

    def _arrays(self):
        return self.atoms, self.mean

    @classmethod
    def open(cls, path: Path) -> "Dictionary":
        """Open the dictionary of a run's folder, a dictionary.h5, or a file that save() wrote."""
        from .results import Run, saved_dictionary
        found = saved_dictionary(path)
        return Run(path).dictionary if found is None else cls(*found)

    def write(self, path: Path) -> None:
        """Write HDF5 that `--dictionary` of every command reads.  save() also checks the name, and
        leaves no incomplete file."""
        with h5py.File(path, "w") as f:
            f["atoms"] = self.atoms
            if self.mean is not None:
                f["mean"] = self.mean
            numbers = {"nonnegative": int(self.nonnegative), "rounds": self.rounds,
                       "top_s": self.top_s, "median_norm": self.attributes.get("median_norm")}
            f.attrs.update({name: value for name, value in numbers.items() if value})

    def save(self, path: Path, overwrite: bool = False) -> None:
        """Write a file ending in .h5, for open() and for `--dictionary` of the program.  It has the
        atoms, the mean and the encoding options, but no other results of the run."""
        path = os.fspath(path)
        if not path.endswith(".h5"):
            raise InputError(f"'{path}' does not end in .h5: give a name that does")
        if os.path.exists(path) and not overwrite:
            raise InputError(f"'{path}' already exists: give another name, or overwrite=True")
        new = f"{path}.{os.getpid()}.tmp"
        try:
            self.write(new)
            os.replace(new, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)

    @classmethod
    def from_arrays(cls, atoms: Array, mean: Array = None, *, nonnegative: bool = False,
                    top_s: typing.Optional[int] = None,
                    rounds: typing.Optional[int] = None) -> "Dictionary":
        """Make a dictionary of atoms (K, P), each of length 1, and the mean (P,) to subtract from
        rows."""
        atoms = np.array(numpy_of(atoms), np.float32)
        if atoms.ndim != 2:
            raise InputError(f"atoms have shape {atoms.shape}: give (K, P)")
        if mean is not None:
            mean = np.array(numpy_of(mean), np.float64)
            if mean.shape != atoms.shape[1:]:
                raise InputError(f"the mean has shape {mean.shape}, atoms have {atoms.shape[1]} "
                                 "columns: give one number a column")
        return cls(atoms, mean, bool(nonnegative), rounds, top_s, {})

    def __eq__(self, other):
        if not isinstance(other, Dictionary):
            return NotImplemented
        means = [np.zeros(0) if d.mean is None else d.mean for d in (self, other)]
        return (self.nonnegative, self.rounds, self.top_s) == \
            (other.nonnegative, other.rounds, other.top_s) and np.array_equal(*means) and \
            np.array_equal(self.atoms, other.atoms)

    def __hash__(self):
        return hash((self.atoms.shape, self.atoms[:1].tobytes()))

    def _options(self, top_s, rounds, codes, rho):
        if self.atoms.ndim != 2:
            raise Error(f"atoms have shape {self.atoms.shape}: frames are described by "
                        "sagitta.encode()")
        if codes not in KINDS:
            raise InputError(f"codes are {codes!r}: give one of {', '.join(KINDS)}")
        k, p = self.atoms.shape
        top_s = min((self.top_s or 32) if top_s is None else top_s, k)
        rounds = (self.rounds or 1) if rounds is None else rounds
        for name, value in ("top_s", top_s), ("rounds", rounds):
            if value < 1:
                raise InputError(f"{name} is {value}: give 1 or more, or None, as it was fitted")
        return {"atoms": self.atoms, "mean": self.mean, "k": k, "p": p, "top_s": top_s,
                "rounds": min(rounds, top_s), "rho": rho,
                "nonnegative": self.nonnegative if codes == "auto" else codes == "nonnegative"}

    def support(self, x: Array, *, top_s: typing.Optional[int] = None,
                rounds: typing.Optional[int] = None, codes: str = "auto", rho: float = 0.0,
                threads: typing.Optional[int] = None) -> typing.Tuple[Array, Array]:
        """(atoms, codes), each (..., s), in the order in which the atoms were chosen; where a row
        has fewer entries, -1 and 0.  Options as for `sagitta encode --dictionary`; None: as in the
        fit."""
        return self._support(x, self._options(top_s, rounds, codes, rho), threads)

    def encode(self, x: Array, *, format: str = "csr", top_s: typing.Optional[int] = None,
               rounds: typing.Optional[int] = None, codes: str = "auto", rho: float = 0.0,
               threads: typing.Optional[int] = None) -> typing.Any:
        """The codes.  "csr": a csr_array (n, K), with all dimensions but the last flattened and
        atoms in the order in which they were chosen; "dense": (..., K)."""
        return self._encode(x, self._options(top_s, rounds, codes, rho), threads, format)

    def decode(self, codes: typing.Any) -> Array:
        """The rows (..., P) that the codes describe, mean included; codes are (..., K), or sparse
        (n, K)."""
        if self.atoms.ndim != 2:
            raise Error(f"atoms have shape {self.atoms.shape}: frames have no decode()")
        if isinstance(codes, CSR):  # from encode() without SciPy
            codes = codes.dense()
        is_sparse = hasattr(codes, "tocsr")
        array = codes if is_sparse else numpy_of(codes)
        if array.shape[-1] != len(self.atoms):
            raise InputError(f"codes have shape {array.shape}, there are {len(self.atoms)} atoms: "
                             "give what encode() returns, (..., K)")
        rows = np.asarray(array @ self.atoms)
        rows = rows if self.mean is None else rows + self.mean.astype(rows.dtype)
        return rows if is_sparse else like(codes, rows)

    def explained_variance(self, x: Array, **options: typing.Any) -> float:
        """The share of the variance of rows x (..., P) that their codes explain; options as for
        encode()."""
        from .results import explained_variance
        rows = rows_of(x, self.atoms.shape[-1])
        return explained_variance(rows, self.decode(self.encode(rows, **options)))

    def direction(self, atom: int) -> np.ndarray:
        """One atom, (P,), of length 1."""
        return self.atoms[atom]

    def to_torch(self, **options: typing.Any) -> typing.Any:
        """Convert to a sagitta.torch.Dictionary; options are passed to it."""
        from .torch import Dictionary as Module
        return Module.of(self, **options)

    def to_saelens(self, rows: Array = None, **options: typing.Any) -> typing.Any:
        """Convert to an SAE of SAELens; rows: used to judge it.  See sagitta.to_saelens()."""
        from .exports import to_saelens
        return to_saelens(self, rows, **options)

    def _repr_html_(self):
        known = {"atoms": " x ".join(map(str, self.atoms.shape)),
                 "mean": "none" if self.mean is None else f"{len(self.mean)} numbers",
                 "codes": "nonnegative" if self.nonnegative else "signed",
                 "atoms a row": self.top_s, "rounds": self.rounds}
        rows = (f"<tr><th>{name}<td>{'not told' if value is None else value}"
                for name, value in known.items())
        return f"<table>{''.join(rows)}</table>"

    def __repr__(self):
        mean = "no mean" if self.mean is None else "a mean"
        return (f"Dictionary of {' x '.join(map(str, self.atoms.shape))} atoms, {mean}, "
                f"{'nonnegative' if self.nonnegative else 'signed'} codes, top_s={self.top_s}, "
                f"rounds={self.rounds}")


@dataclasses.dataclass(frozen=True, eq=False)
class Encoder(Coder):
    """An encoder that `sagitta train`, `import`, `detect` or `fit --find features` stored beside a
    dictionary; doc/formats.md explains its contents under /encoder."""
    dictionary: Dictionary
    kind: str
    arrays: typing.Dict[str, np.ndarray]  # arrays and numbers: members of struct sagitta_options
    numbers: Figures
    solved: bool

    def _arrays(self):
        return self.arrays.values()

    @classmethod
    def open(cls, path: Path) -> "Encoder":
        """Open the encoder of a run's folder or a dictionary.h5."""
        from .results import Run
        return Run(path).encoder

    def _options(self, codes, rho):
        kinds = ("auto", "own", *KINDS[1:])
        if codes not in kinds:
            raise InputError(f"codes are {codes!r}: give one of {', '.join(kinds)}")
        d = self.dictionary
        solves = self.solved if codes == "auto" else codes != "own"
        return {"atoms": d.atoms, "mean": d.mean, "k": len(d.atoms), "p": d.atoms.shape[-1],
                "encoder": self.kind, "solves": solves, "rho": rho,
                "nonnegative": d.nonnegative if codes == "auto" else codes == "nonnegative",
                **self.arrays, **self.numbers}

    def support(self, x: Array, *, codes: str = "auto", rho: float = 0.0,
                threads: typing.Optional[int] = None) -> typing.Tuple[Array, Array]:
        """(atoms, codes), each (..., s), where s is the largest number of atoms in a row of x;
        shorter rows are filled with -1 and 0.  Options as for `sagitta encode --encoder`."""
        return self._support(x, self._options(codes, rho), threads)

    def encode(self, x: Array, *, format: str = "csr", codes: str = "auto", rho: float = 0.0,
               threads: typing.Optional[int] = None) -> typing.Any:
        """The codes: "csr": a csr_array (n, K); "dense": (..., K)."""
        return self._encode(x, self._options(codes, rho), threads, format)
