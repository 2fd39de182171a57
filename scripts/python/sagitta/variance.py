# SPDX-License-Identifier: BSD-3-Clause
"""The share of the variance of rows that a description explains."""
import numpy as np

from .arrays import unmasked, untraced
from .errors import Error
from .hints import Array


def wide(name, values):
    """Real numbers as a float64 array, from a list, an array, or a PyTorch tensor of any type, on
    any device, with a gradient or without."""
    unmasked(untraced(values))
    try:
        if hasattr(values, "detach"):  # tensors that NumPy cannot read directly
            values = values.detach().cpu()
            values = values if values.is_complex() else values.double()
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("they are complex")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise Error(f"{name} are no real numbers: {error}: give an array or a tensor") from error


def explained_variance(rows: Array, described: Array) -> float:
    """1 - RSS / TSS, with TSS about the column means of these rows (section 7 of doc/numerics.md).
    Arrays or tensors (..., P), with at least 2 dimensions."""
    rows, described = wide("rows", rows), wide("descriptions", described)
    if rows.shape != described.shape:
        raise Error(f"rows are {rows.shape}, their description is {described.shape}: "
                    "give both for the same rows")
    if rows.ndim < 2:
        raise Error(f"rows have shape {rows.shape}: give (N, P), one row as (1, P)")
    shape = (int(np.prod(rows.shape[:-1])), rows.shape[-1])
    if 0 in shape:
        raise Error(f"rows have shape {rows.shape}: there is nothing to explain, give some rows")
    rows, described = rows.reshape(shape), described.reshape(shape)
    deviation, error = rows - rows.mean(0), rows - described
    with np.errstate(invalid="ignore"):  # the result for rows that are not finite is NaN
        _, power = np.frexp(np.abs(deviation).max())
    # scaling by a power of two rounds nothing
    deviation, error = np.ldexp(deviation, -power), np.ldexp(error, -power)
    total = (deviation ** 2).sum()
    return float(1 - (error ** 2).sum() / total) if total > 0 else float("nan")
