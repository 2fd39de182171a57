# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in files that live in memory, which the program reads without a copy."""
import mmap
import os
import typing

import numpy as np

from .errors import InputError

HEAD = 128  # bytes of a .npy header, fixed so that the header can be written after the rows
FLOATS = ("f2", "f4", "f8")


def head_of(kind, shape):
    """The header of a .npy file, padded with blanks."""
    said = repr({"descr": np.dtype(kind).str, "fortran_order": False, "shape": tuple(shape)})
    text = said.encode().ljust(HEAD - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


class Memory(mmap.mmap):
    """A .npy file in memory, without a name; it disappears together with the last array in it."""

    def __new__(cls, size):
        file = os.fdopen(os.memfd_create("sagitta", os.MFD_CLOEXEC), "wb", 0)
        os.ftruncate(file.fileno(), size)
        memory = super().__new__(cls, file.fileno(), size)
        memory.file = file
        return memory


def empty(shape: typing.Sequence[int], dtype: typing.Any = "float32") -> np.ndarray:
    """An array (N, P) or (B, T, P) of zeros, to be filled with rows.  sagitta.fit() and other jobs
    read it in place, without a copy.  It must not change while a call reads it.

    >>> import sagitta
    >>> X = sagitta.empty((1000, 16))
    >>> X[:] = 1
    """
    shape, kind = tuple(int(n) for n in shape), np.dtype(dtype)
    if len(shape) not in (2, 3) or min(shape) < 0:
        raise InputError(f"the shape is {shape}: give (N, P), or (B, T, P)")
    if kind.str[1:] not in FLOATS or not kind.isnative:
        raise TypeError(f"rows are of {kind}: give float16, float32 or float64")
    rows = int(np.prod(shape[:-1]))
    memory = Memory(HEAD + rows * shape[-1] * kind.itemsize)
    memory[:HEAD] = head_of(kind, (rows, shape[-1]))
    return np.ndarray(shape, kind, memory, HEAD)


def memory_of(x):
    """The Memory whose rows are exactly x; None: x has to be copied (or is refused, if it is
    masked)."""
    if type(x) is not np.ndarray:
        return None
    whole = x
    while isinstance(whole, np.ndarray) and isinstance(whole.base, np.ndarray):
        whole = whole.base
    memory = getattr(whole, "base", None)
    if not isinstance(memory, Memory) or not x.flags.c_contiguous or x.ndim not in (2, 3):
        return None
    same = (x.nbytes, x.dtype, x.shape[-1]) == (whole.nbytes, whole.dtype, whole.shape[-1])
    return memory if same and x.nbytes == len(memory) - HEAD else None
