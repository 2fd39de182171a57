# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are on a GPU, tensors of PyTorch: libsagitta describes them there, and the host sees
none of them.  What it reads and writes is in the order of the current stream."""
import warnings

from .arrays import columns_check, numpy_of
from .errors import Error, Warning
from .job import level_of_caller
from .library import SMALL, threads_of

DEVICE_FAILED, MEMORY_FAILED = 69, 71  # exit codes: no such device, or it failed; no memory
REFUSED = {}  # number of a GPU that libsagitta cannot open: what it said
SAID = set()  # of which this was said


def is_on_gpu(x):
    """Is it a tensor on a GPU of NVIDIA's?"""
    if not (hasattr(x, "detach") and getattr(x, "is_cuda", False)):
        return False
    import torch
    return torch.version.cuda is not None


def rows_of(x, columns):
    """(n, P) of x (..., P), float32."""
    import torch
    numpy_of(torch.empty(0, dtype=x.dtype))  # refuses what are no floats
    columns_check(x.shape, columns)
    return x.detach().to(torch.float32).reshape(-1, columns).contiguous()


def place_of(x):
    """(options of a handle for the GPU of x, address of the stream that x is in the order of)."""
    import torch
    return {"device": "cuda", "gpu": x.device.index}, torch.cuda.current_stream().cuda_stream


def opens(handles, options, threads, is_said):
    """Can libsagitta compute on the GPU of the options?  Where it cannot it is said once why, if it
    is to be said."""
    number = options["gpu"]
    if number not in REFUSED:
        try:
            with handles.taken(options, threads, 0):
                REFUSED[number] = None
        except Error as error:
            if error.code == MEMORY_FAILED:  # a model may leave room later
                return False
            if error.code != DEVICE_FAILED:
                raise
            REFUSED[number] = str(error)
    if REFUSED[number] and is_said and number not in SAID:
        SAID.add(number)
        warnings.warn(Warning(f"rows of a GPU go by the host: {REFUSED[number]}"),
                      stacklevel=level_of_caller())
    return REFUSED[number] is None


def support(handles, options, threads, x, is_said=True):
    """(atoms, codes) of x (..., P), (..., s) each and beside x; None: libsagitta computes on no GPU
    here."""
    import torch
    with torch.cuda.device(x.device):  # which libsagitta makes that of this thread
        place, stream = place_of(x)
        options = dict(options, **place)
        rows, s = rows_of(x, options["p"]), options["top_s"]
        threads = threads_of(threads, SMALL)  # of any number of rows, which have one handle
        if not opens(handles, options, threads, is_said):
            return None
        atoms = torch.empty(len(rows), s, dtype=torch.int32, device=x.device)
        codes = torch.empty(len(rows), s, dtype=torch.float32, device=x.device)
        with handles.taken(options, threads, len(rows)) as handle:
            handle.support(len(rows), rows.data_ptr(), stream, atoms.data_ptr(), codes.data_ptr())
    shape = *x.shape[:-1], s
    return atoms.reshape(shape), codes.reshape(shape)


def dense_of(atoms, codes, columns):
    """(..., K) of supports and codes, (..., s) each."""
    out = codes.new_zeros(*codes.shape[:-1], columns)
    return out.scatter_(-1, atoms.long(), codes)
