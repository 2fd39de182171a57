# SPDX-License-Identifier: BSD-3-Clause
"""Atoms of a run together with the tokens that its rows belong to: at which tokens and in which
words each atom is strongest."""
import dataclasses
import functools
import numbers
import os
import typing

import numpy as np

from . import calls, feature_page
from .arrays import is_path, numpy_of
from .dictionary import Dictionary
from .errors import Error, InputError
from .hints import Array, Pair, Path
from .late import h5py
from .results import Run
from .words import Words

BINS = 30  # of the histogram of codes
PIECE = 1 << 20  # numbers of a matrix that are converted to f64 at a time


@dataclasses.dataclass(frozen=True)
class Example:
    """A row in which an atom occurs: its code, the text of its token, and the texts before and
    after."""
    row: int
    code: float
    token: str
    before: str
    after: str

    def __str__(self):
        return f"{self.row:8} {self.code:9.4g}  {self.before}[{self.token}]{self.after}".replace(
            "\n", "\\n")


def _products(matrix, vector):
    """matrix @ vector in f64, a few rows at a time, since a converted copy of the whole matrix may
    not fit into memory."""
    step, vector = max(1, PIECE // matrix.shape[1]), vector.astype("f8")
    out = np.empty(len(matrix))
    for i in range(0, len(matrix), step):
        out[i:i + step] = matrix[i:i + step].astype("f8") @ vector
    return out


def _vector(what, values, n, path=""):
    """(N,) whole numbers, from an array, a .npy, or a dataset 'file.h5:/path'."""
    if is_path(values):
        path = os.fspath(values)
        name, _, inner = path.partition(":/")
        try:
            if name.endswith(".npy"):
                values = np.load(name, mmap_mode="r")
            else:
                with h5py.File(name, "r") as f:
                    values = f[inner or what][:]
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"'{path}' has no {what}s to read: {error}: give a .npy or "
                             "'file.h5:/path'") from error
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values).reshape(-1)
    if array.dtype.kind not in "iu" or len(array) != n:
        raise InputError(f"{what}s{' of ' + repr(path) if path else ''} are {len(array)} of "
                         f"{array.dtype}, the codes are of {n} rows: give a whole number for each")
    return array


def _own_rows(run):
    """The first file of the rows that a run was made from, if it is HDF5; else None."""
    try:
        named = run.page["options"].get("rows") or ""
    except Error:
        return None
    name = (named[0] if isinstance(named, list) else named).partition(":/")[0]
    # the temporary file of an array, which is gone; another file may have its name by now
    if name.startswith("/proc/"):
        return None
    return name if h5py.is_hdf5(name) else None


class Features:
    """The features of a run of fit() or encode(): F[17] is atom 17; F.search("river"),
    F.for_row(3).

    tokens: a whole number for each row, as an array, a .npy, or 'file.h5:/path'; None: /token of
    the file of rows, with /window as documents.  tokenizer: a tokenizer.json, a vocab.json, a list
    of words, or an object with convert_ids_to_tokens(); None: tokens are shown as numbers.
    documents: a whole number for each row; contexts do not reach across a change of it.  labels: a
    dict with a text for each atom.  unembedding: (V, P), of the model whose residual stream the
    rows are from; F[17].raises() then returns the tokens whose logits the atom raises most.  Tokens
    beyond the vocabulary, which some models have as padding, are shown as numbers."""

    def __init__(self, run: typing.Union[Run, Path], tokens: Array = None,
                 tokenizer: typing.Any = None, documents: Array = None,
                 labels: typing.Optional[typing.Mapping[int, str]] = None,
                 unembedding: Array = None) -> None:
        self.run = run = run if isinstance(run, Run) else Run(run)
        self.codes, self.labels = run.codes, dict(labels or {})
        n = self.codes.shape[0]
        if tokens is None:
            tokens, documents = self._find(run, documents)
        self.tokens = _vector("token", tokens, n)
        self.documents = None if documents is None else _vector("document", documents, n)
        self.vocabulary = Words(tokenizer)
        self.words = self.vocabulary.of(self.tokens)
        self.unembedding = None if unembedding is None else self._checked(numpy_of(unembedding))

    def _checked(self, unembedding):
        """The unembedding (V, P), checked against the atoms."""
        if self.atoms is None:
            raise InputError("unembedding= is for a run whose dictionary is there: give the run of "
                             "fit(), or keep the dictionary where it was")
        p = self.atoms.shape[1]
        if unembedding.ndim != 2 or unembedding.shape[1] != p:
            mend = "give unembedding.T" if unembedding.shape[:1] == (p,) else \
                "give the (V, P) of the model that the rows are of"
            raise InputError(f"unembedding has shape {unembedding.shape}, atoms have {p} columns: "
                             f"{mend}")
        return unembedding

    @functools.cached_property
    def _made_of(self):
        """The path of the dictionary that the codes were made with, or the object itself; or
        None."""
        try:
            return calls.dictionary_of(self.run)
        except (Error, OSError):
            return None

    @functools.cached_property
    def atoms(self) -> typing.Optional[np.ndarray]:
        """(K, P); None for frames, or if the dictionary no longer exists."""
        made = self._made_of
        try:
            made = Dictionary.open(made) if is_path(made) else made
        except (Error, OSError):
            return None
        atoms = getattr(made, "atoms", made)
        return atoms if atoms is not None and atoms.ndim == 2 else None

    @functools.cached_property
    def stability(self) -> typing.Optional[np.ndarray]:
        """(K,), as Run.stability, which may be None."""
        try:
            return Run(self._made_of).stability if is_path(self._made_of) else None
        except Error:  # a file of Dictionary.save(), or one that no longer exists
            return None

    @staticmethod
    def _find(run, documents):
        path = _own_rows(run)
        if path:
            with h5py.File(path, "r") as f:
                if "token" in f:
                    own = f["window"][:] if documents is None and "window" in f else documents
                    return f["token"][:], own
        raise InputError("the rows of this run have no tokens beside them: give tokens=, a whole "
                         "number for each row")

    def __len__(self) -> int:
        return self.codes.shape[1]

    def __getitem__(self, atom: int) -> "Feature":
        if not isinstance(atom, numbers.Integral) or not 0 <= atom < len(self):
            raise IndexError(f"there is no atom {atom!r}: they are 0 to {len(self) - 1}")
        return Feature(self, int(atom))

    def entries(self, atom: int) -> Pair:
        """(rows, codes) of an atom's codes that are not 0, sorted by falling magnitude, and for
        equal magnitudes by row number."""
        order, starts, row_of = self.run._by_atom
        places = order[starts[atom]:starts[atom + 1]]
        rows, codes = row_of[places], self.codes.data[places]
        best = np.argsort(-np.abs(codes), kind="stable")
        best = best[codes[best] != 0]
        return rows[best], codes[best]

    def text(self, first: int, end: int) -> str:
        return "".join(self.words[int(i)] for i in self.tokens[first:end])

    def example(self, row: int, code: float, context: int) -> Example:
        first, end = max(0, row - context), min(len(self.tokens), row + context + 1)
        if self.documents is not None:
            other = np.flatnonzero(self.documents[first:end] != self.documents[row]) + first
            first = max([first, *(other[other < row] + 1)])
            end = min([end, *other[other > row]])
        return Example(int(row), float(code), self.text(row, row + 1), self.text(first, row),
                       self.text(row + 1, end))

    def search(self, word: str, n: int = 10) -> typing.List["Feature"]:
        """The atoms, n at most, with the largest shares of this word in the sum of the magnitudes
        of their codes.  Case and surrounding blanks do not matter."""
        wanted = str(word).strip().casefold()
        found = [i for i, text in self.words.items() if text.strip().casefold() == wanted]
        order, starts, row_of = self.run._by_atom
        sizes = np.abs(self.codes.data.astype("f8"))
        here = np.where(np.isin(self.tokens, found)[row_of], sizes, 0)
        all_of, of_word = (np.bincount(self.codes.indices, weights, len(self))
                           for weights in (sizes, here))
        part = np.divide(of_word, all_of, out=np.zeros(len(self)), where=all_of > 0)
        best = np.argsort(-part, kind="stable")[:n]
        return [self[int(atom)] for atom in best if part[atom] > 0]

    def for_row(self, row: int) -> typing.List[typing.Tuple["Feature", float]]:
        """(feature, code) for each atom of a row, by falling magnitude."""
        if not isinstance(row, numbers.Integral) or not 0 <= row < len(self.tokens):
            raise IndexError(f"there is no row {row!r}: they are 0 to {len(self.tokens) - 1}")
        part = slice(self.codes.indptr[row], self.codes.indptr[row + 1])
        atoms, codes = self.codes.indices[part], self.codes.data[part]
        best = np.argsort(-np.abs(codes), kind="stable")
        return [(self[int(atoms[i])], float(codes[i])) for i in best if codes[i] != 0]

    def save_html(self, path: Path, atoms: typing.Optional[typing.Iterable[int]] = None) -> None:
        """Write an HTML page of these atoms; None: of the 64 atoms that occur in the most rows."""
        if atoms is None:
            counts = np.bincount(self.codes.indices[self.codes.data != 0], minlength=len(self))
            atoms = np.argsort(-counts, kind="stable")[:64]
        with open(path, "w", encoding="utf-8") as f:
            f.write("<!DOCTYPE html><meta charset='utf-8'><title>features</title>" +
                    feature_page.STYLE)
            f.writelines(self[int(atom)].page() for atom in atoms)


class Feature:
    """An atom: .atom, its number; .label; .rows, the number of rows that it occurs in; .share, the
    same as a share of all rows; and its methods."""

    def __init__(self, features: Features, atom: int) -> None:
        self.features, self.atom, self.label = features, atom, features.labels.get(atom)
        self._entries = features.entries(atom)
        self.rows = len(self._entries[0])
        self.share = self.rows / max(1, features.codes.shape[0])

    def top(self, n: int = 10, context: int = 8,
            quantile: typing.Optional[float] = None) -> typing.List[Example]:
        """Examples by falling magnitude, each with up to `context` tokens of its document on both
        sides.  quantile: begin just below this quantile of the magnitudes, for example 0.5."""
        rows, codes = self._entries
        if quantile is not None and not 0 <= quantile <= 1:
            raise InputError(f"quantile is {quantile!r}: give 0 to 1")
        first = 0 if quantile is None else int((1 - quantile) * max(0, len(rows) - 1))
        return [self.features.example(row, code, context)
                for row, code in zip(rows[first:first + n], codes[first:first + n])]

    def _head(self):
        label = f", {self.label}" if self.label else ""
        return f"atom {self.atom}{label}: {self.rows} rows, {100 * self.share:.3g} % of all"

    def __repr__(self):
        return "\n".join([self._head(), *map(str, self.top())])

    def histogram(self, bins: typing.Any = BINS) -> Pair:
        """(counts, edges) of its codes, as from np.histogram."""
        return np.histogram(self._entries[1], bins)

    def words(self, n: int = 3) -> typing.List[typing.Tuple[str, float]]:
        """(word, share) for the tokens with the largest shares in the sum of the magnitudes of its
        codes."""
        rows, codes = self._entries
        tokens, place = np.unique(self.features.tokens[rows], return_inverse=True)
        parts = np.bincount(place, np.abs(codes.astype("f8")), len(tokens))
        best = np.argsort(-parts, kind="stable")[:n]
        return [(self.features.words[int(tokens[i])], float(parts[i] / parts.sum())) for i in best]

    def nearest(self, n: int = 4) -> typing.List[typing.Tuple["Feature", float]]:
        """(feature, cosine) for the atoms closest to it, by falling magnitude of the cosine; empty
        for frames, or if the dictionary no longer exists."""
        atoms = self.features.atoms
        if atoms is None:
            return []
        cosines = _products(atoms, atoms[self.atom])
        best = np.argsort(-np.abs(cosines), kind="stable")
        return [(self.features[int(i)], float(cosines[i])) for i in best if i != self.atom][:n]

    @property
    def stability(self) -> typing.Optional[float]:
        """Its cosine with the atom that it is paired with in the fit of another seed; of several
        other seeds, the largest cosine.  None if fit() had no seeds=2 or more."""
        found = self.features.stability
        return None if found is None else float(found[self.atom])

    def raises(self, n: int = 8) -> typing.List[typing.Tuple[str, float]]:
        """(word, how much a code of 1 adds to its logit) for the tokens that the atom raises most;
        empty without unembedding=."""
        matrix = self.features.unembedding
        if matrix is None:
            return []
        logits = _products(matrix, self.features.atoms[self.atom])
        best = np.argsort(-logits, kind="stable")[:n]
        words = self.features.vocabulary.of(best, beyond=True)
        return [(words[int(i)], float(logits[i])) for i in best]

    def _repr_html_(self):
        return feature_page.STYLE + self.page()

    def page(self) -> str:
        """The HTML that a notebook shows, without its style."""
        return feature_page.page_of(self, self._head())
