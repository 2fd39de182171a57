# SPDX-License-Identifier: BSD-3-Clause
"""Dictionaries of AnnData objects: fit(adata) stores codes and atoms in it, as scanpy's tools
do."""
import typing

from . import calls
from .errors import InputError
from .results import Run

BATCH = 4096  # rows of a sparse matrix that are made dense at a time


def _matrix(adata, layer, obsm):
    if layer is not None and obsm is not None:
        raise InputError(f"layer is {layer!r} and obsm is {obsm!r}: give one of them, or neither "
                         "for X")
    name, of = (layer, adata.layers) if layer is not None else (obsm, adata.obsm)
    if name is None and adata.X is None:
        raise InputError("X of adata is None: give layer= or obsm=, of layers "
                         f"{list(adata.layers)} and obsm {list(adata.obsm)}")
    if name is None:
        return adata.X
    if name not in of:
        what = "layer" if layer is not None else "obsm"
        raise InputError(f"there is no {what} {name!r}: give one of {', '.join(map(repr, of))}")
    return of[name]


def _dense(part):
    return part.toarray() if hasattr(part, "toarray") else part


def _rows(matrix):
    """The matrix in a form that sagitta.fit() takes.  A sparse matrix, in memory or in a file, is
    made dense part by part."""
    if hasattr(matrix, "to_numpy"):  # a data frame
        return matrix.to_numpy()
    if not hasattr(matrix[:1], "toarray"):
        return matrix
    return (_dense(matrix[i:i + BATCH]) for i in range(0, matrix.shape[0], BATCH))


def fit(adata: typing.Any, *, layer: typing.Optional[str] = None, obsm: typing.Optional[str] = None,
        key_added: str = "sagitta", **options: typing.Any) -> Run:
    """Learn a dictionary of the rows of an AnnData and store it there: obsm["X_sagitta"] gets the
    codes (N, K), sparse; varm["sagitta"] the atoms (P, K); and uns["sagitta"] the mean
    (if rows are centred), the metrics, layer, obsm, top_s, rounds and nonnegative.

    layer: take the rows from this layer.  obsm: take the rows from this entry of obsm; the atoms
    are then stored in uns.  With neither, the rows are X.  key_added: a name to use in place of
    sagitta.  options: as for sagitta.fit(), except mask.
    Returns the Run."""
    from scipy.sparse import csr_matrix
    if options.get("mask") is not None:
        raise TypeError("mask= leaves out rows, and an AnnData has codes of all: give adata[mask]")
    if adata.is_view and adata.isbacked:
        raise InputError("adata is a view of a file that is open, which can keep no result: give "
                         "adata.to_memory(), and keep that")
    matrix = _matrix(adata, layer, obsm)
    run = calls.fit(_rows(matrix), **options)
    d, codes = run.dictionary, csr_matrix(run.codes)
    codes.sort_indices()
    said = {"params": {"layer": layer or "", "obsm": obsm or ""}, "top_s": int(d.top_s or 0),
            "rounds": int(d.rounds or 0), "nonnegative": bool(d.nonnegative),
            "metrics": {name: float(value) for name, value in run.metrics.items()}}
    if d.mean is not None:
        said["mean"] = d.mean.copy()
    adata.obsm[f"X_{key_added}"] = codes
    if obsm is None:
        adata.varm[key_added] = d.atoms.T.copy()
    else:
        said["atoms"] = d.atoms.T.copy()
    adata.uns[key_added] = said
    return run
