# SPDX-License-Identifier: BSD-3-Clause
"""The inputs of the program: files by their names, and arrays through files in memory.

An array that is not in a file yet is copied once, as .npy, to a file without a name in memory
(memfd).  The program opens that file as /proc/PID/fd/N.  The kernel frees it when this process
ends, even if the process is killed."""
import contextlib
import glob
import logging
import mmap
import os
import tempfile

import numpy as np

from .errors import InputError
from .memory import HEAD, head_of, memory_of

CHUNK = 1 << 24  # bytes copied at a time
log = logging.getLogger("sagitta")
ENDINGS = ".h5", ".npy", ".safetensors"


def is_path(value):
    return isinstance(value, (str, os.PathLike))


def is_files(value):
    """Is the value a path, or a list of paths?"""
    return is_path(value) or (isinstance(value, (list, tuple)) and len(value) > 0 and
                              all(is_path(one) for one in value))


def of_folder(path):
    """For a folder of shards, return a pattern that matches them.  Return any other path as it
    is."""
    path = os.fspath(path)
    if not os.path.isdir(path):
        return path
    found = [end for end in ENDINGS if glob.glob(os.path.join(glob.escape(path), "*" + end))]
    if len(found) != 1:
        raise ValueError(f"the folder '{path}' has files that end in {' and '.join(found)}: name "
                         "those to read" if found else f"the folder '{path}' has no file that ends "
                         f"in {', '.join(ENDINGS)}: give the folder that has")
    return os.path.join(path, "*" + found[0])


def unmasked(x):
    """The array, or an error if some of it is masked: NumPy would return the hidden values as
    ordinary numbers."""
    if np.ma.is_masked(x):
        raise InputError("some rows are masked, and have no value: leave out these rows, such as "
                         "X[~X.mask.any(-1)].data")
    return x


def untraced(x):
    """x, or an error if JAX is tracing it, since it has no values then."""
    if any(kind.__name__ == "Tracer" and kind.__module__.startswith("jax")
           for kind in type(x).__mro__):
        raise TypeError("an array is traced by JAX, as in jit, grad or vmap, and has no values: "
                        "compute outside of these, or in jax.pure_callback()")
    return x


def numpy_of(x):
    """Real numbers (..., P) as a NumPy array on the host, copied only if needed."""
    untraced(x)
    if hasattr(x, "detach"):  # a tensor of PyTorch, which may be bfloat16, a type unknown to NumPy
        x = x.detach().cpu()
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x
        x = x.numpy()
    elif hasattr(x, "__cuda_array_interface__") and hasattr(x, "get"):
        x = x.get()
    elif hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        x = np.from_dlpack(x)
    array = np.asarray(unmasked(x))
    if array.dtype.name == "bfloat16":  # an array of JAX
        array = array.astype("f4")
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(f"rows are of {array.dtype}: give real numbers as floats, such as "
                        "X.astype('float32')")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def columns_check(shape, columns):
    """Check that rows x of this shape have as many columns as the atoms."""
    if not shape or shape[-1] != columns:
        mend = "give x.T" if len(shape) == 2 and shape[0] == columns else \
            "give activations of the place that the dictionary was fitted to"
        raise InputError(f"x has shape {tuple(shape)}, atoms have {columns} columns: {mend}")


def is_on_gpu(x):
    return getattr(getattr(x, "device", None), "type", "") == "cuda" or \
        hasattr(x, "__cuda_array_interface__")


def rows_of(x):
    """(N, P) from an array (N, P) or (B, T, P).  Tensors and arrays on a GPU are not converted to
    NumPy here, but later, part by part."""
    array = x.detach() if hasattr(x, "detach") else x if is_on_gpu(x) else numpy_of(x)
    if array.ndim not in (2, 3):
        raise ValueError(f"X has shape {tuple(array.shape)}: give rows (N, P), or (B, T, P), which "
                         "are B T rows")
    return array if array.ndim == 2 else array.reshape(-1, array.shape[2])


def all_write(file, data):
    """Write all of the data: one write() of Linux writes at most 2 GB."""
    view = memoryview(data).cast("B")
    while len(view):
        view = view[os.write(file, view[:CHUNK]):]


@contextlib.contextmanager
def spooling(folder):
    """For a block that writes a generator's rows to a file in this folder: turn an OSError into an
    InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"rows that are given once are written to a file in '{folder}' first: "
                         f"{error.strerror}: name a folder with room for them by spool=") from error


class Inputs(contextlib.ExitStack):
    """The temporary files of one job, most of them without a name.  They disappear when this object
    is closed."""

    def __init__(self, spool=None):
        super().__init__()
        self.spool = spool
        self.shown = {}  # the name to show in messages, for each name of a file

    def _name(self, file, shown):
        name = f"/proc/{os.getpid()}/fd/{file}"
        self.shown[name] = shown
        return name

    def _memory(self):
        """A new file in memory, without a name, which disappears when this object is closed or
        deleted."""
        memory = os.fdopen(os.memfd_create("sagitta", os.MFD_CLOEXEC), "wb", 0)
        return self.enter_context(memory).fileno()

    def array(self, array, mask=None, shown="X"):
        """Write an array (N, ...), or only the rows that a mask selects, to a file in memory.
        Returns the name under which the program reads the file."""
        kept = len(array) if mask is None else int(np.count_nonzero(mask))
        file, kind = self._memory(), numpy_of(array[:0]).dtype
        all_write(file, head_of(kind, (kept, *array.shape[1:])))
        row = max(1, kind.itemsize * int(np.prod(array.shape[1:])))
        step = max(1, CHUNK // row)
        if is_on_gpu(array):
            log.info("%s is on a GPU: %d rows are copied through the host, %d bytes at a time",
                     shown, len(array), step * row)
        for first in range(0, len(array), step):
            part = numpy_of(array[first:first + step])
            part = part if mask is None else part[mask[first:first + step]]
            if part.size:
                all_write(file, np.ascontiguousarray(part))
        return self._name(file, shown)

    def dictionary(self, d, shown):
        """The name of a file with a sagitta.Dictionary.  It is an ordinary temporary file, because
        HDF5 cannot open one without a name."""
        folder = self.enter_context(tempfile.TemporaryDirectory(prefix="sagitta-"))
        name = os.path.join(folder, "dictionary.h5")
        d.write(name)
        self.shown[name] = shown
        return name

    def batches(self, batches):
        """Write the rows of a generator or a loader to a file without a name in the folder spool=,
        because a fit reads its rows several times.  Returns the name under which the program reads
        the file."""
        folder = tempfile.gettempdir() if self.spool is None else os.fspath(self.spool)
        with spooling(folder):
            file = self.enter_context(tempfile.TemporaryFile(dir=folder)).fileno()
        log.info("X gives its rows once, a job reads them several times: they go to a file without "
                 "a name in '%s' (spool=)", folder)
        os.lseek(file, HEAD, os.SEEK_SET)
        count, like = 0, None
        for batch in batches:
            rows = numpy_of(rows_of(batch))
            like = rows if like is None else like
            if rows.dtype != like.dtype or rows.shape[1] != like.shape[1]:
                raise ValueError(f"a batch has {rows.shape[1]} columns of {rows.dtype}, the first "
                                 f"one {like.shape[1]} of {like.dtype}: give all of one kind")
            if rows.size:
                with spooling(folder):
                    all_write(file, np.ascontiguousarray(rows))
            count += len(rows)
        if like is None:
            raise ValueError("X has no batch: a generator gives its rows once, give a new one")
        with spooling(folder):
            os.pwrite(file, head_of(like.dtype, (count, like.shape[1])), 0)
        log.info("X had %d rows of %d columns, %d bytes in '%s'", count, like.shape[1],
                 os.lseek(file, 0, os.SEEK_CUR), folder)
        return self._name(file, "X")

    def rows(self, x, mask=None):
        """The names under which the program reads the rows x, which are files, an array, an HDF5
        dataset of h5py, or batches of arrays."""
        if is_files(x):
            if mask is not None:
                raise TypeError("mask= is of rows of an array: open the file, or use max_norm=")
            return [of_folder(one) for one in (x if isinstance(x, (list, tuple)) else [x])]
        named = None if mask is not None else name_of(x)
        if named:
            return [named]
        memory = None if mask is not None else memory_of(x)
        if memory is not None:
            return [self._name(memory.file.fileno(), "X")]
        if mask is None and not is_array(x) and hasattr(x, "__iter__"):
            return [self.batches(x)]
        array = rows_of(x)
        return [self.array(array, None if mask is None else mask_of(mask, len(array)))]


def mask_of(mask, n):
    """The mask (N,) of rows to read, as an array of booleans."""
    mask = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask).reshape(-1)
    if mask.dtype != bool or len(mask) != n:
        raise ValueError(f"mask has {len(mask)} entries of {mask.dtype}, X has {n} rows: give True "
                         "or False for each")
    return mask


def is_array(x):
    """Does x hold its numbers?  A generator does not."""
    return any(hasattr(x, name) for name in ("__array__", "__dlpack__", "detach")) or \
        isinstance(x, (list, tuple, memoryview, bytearray))


def name_of(x):
    """The name under which the program can read x in its file, if x is a whole dataset that h5py
    has open only for reading, or a whole .npy file that NumPy has mapped.  Otherwise None: x has to
    be copied."""
    if type(x).__module__.startswith("h5py.") and hasattr(x, "file") and x.ndim == 2:
        return f"{x.file.filename}:{x.name}" if x.file.mode == "r" else None
    if isinstance(x, np.memmap) and isinstance(x.base, mmap.mmap) and x.mode != "c" and x.filename:
        name = os.fspath(x.filename)
        if name.endswith(".npy"):
            whole = np.load(name, mmap_mode="r")
            same = (whole.shape, whole.dtype, whole.offset, whole.strides) == \
                (x.shape, x.dtype, x.offset, x.strides)
            return name if same and x.ndim == 2 and x.flags.c_contiguous else None
    return None
