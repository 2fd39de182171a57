# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch tensors on a GPU: libsagitta encodes them there, and nothing is copied to the host.  It
reads and writes them in the order of the current CUDA stream."""
import warnings

from .arrays import columns_check, numpy_of
from .errors import Error, Warning
from .job import level_of_caller
from .library import SMALL, threads_of

DEVICE_FAILED, MEMORY_FAILED = 69, 71  # exit codes: no such device, or it failed; out of memory
REFUSED = {}  # for each GPU, by its number: why libsagitta cannot open it; None if it can
SAID = set()  # the GPUs for which the reason was already reported


def is_on_gpu(x):
    """Is x a tensor on an NVIDIA GPU?"""
    if not (hasattr(x, "detach") and getattr(x, "is_cuda", False)):
        return False
    import torch
    return torch.version.cuda is not None


def rows_of(x, columns):
    """(n, P) float32, from x (..., P)."""
    import torch
    numpy_of(torch.empty(0, dtype=x.dtype))  # refuses types other than floats
    columns_check(x.shape, columns)
    return x.detach().to(torch.float32).reshape(-1, columns).contiguous()


def place_of(x):
    """(handle options for the GPU of x, address of the current stream)."""
    import torch
    return {"device": "cuda", "gpu": x.device.index}, torch.cuda.current_stream().cuda_stream


def opens(handles, options, threads, is_said):
    """Can libsagitta compute on the GPU of these options?  If not, and is_said is true, warn once
    of the reason; a lack of memory is not reported."""
    number = options["gpu"]
    if number not in REFUSED:
        try:
            with handles.taken(options, threads, 0):
                REFUSED[number] = None
        except Error as error:
            # there may be enough memory later, when a model has freed some
            if error.code == MEMORY_FAILED:
                return False
            if error.code != DEVICE_FAILED:
                raise
            REFUSED[number] = str(error)
    if REFUSED[number] and is_said and number not in SAID:
        SAID.add(number)
        warnings.warn(Warning(f"rows on a GPU are copied through the host: {REFUSED[number]}"),
                      stacklevel=level_of_caller())
    return REFUSED[number] is None


def support(handles, options, threads, x, is_said=True):
    """(atoms, codes) of x (..., P), each (..., s) and on the GPU of x.  None: libsagitta cannot
    compute on that GPU now."""
    import torch
    with torch.cuda.device(x.device):  # restores the current device, which libsagitta changes
        place, stream = place_of(x)
        options = dict(options, **place)
        rows, s = rows_of(x, options["p"]), options["top_s"]
        # the threads do not depend on the number of rows, so that all calls share a handle
        threads = threads_of(threads, SMALL)
        if not opens(handles, options, threads, is_said):
            return None
        atoms = torch.empty(len(rows), s, dtype=torch.int32, device=x.device)
        codes = torch.empty(len(rows), s, dtype=torch.float32, device=x.device)
        with handles.taken(options, threads, len(rows)) as handle:
            handle.support(len(rows), rows.data_ptr(), stream, atoms.data_ptr(), codes.data_ptr())
    shape = *x.shape[:-1], s
    return atoms.reshape(shape), codes.reshape(shape)


def dense_of(atoms, codes, columns):
    """Dense codes (..., K) from supports and codes, each (..., s)."""
    out = codes.new_zeros(*codes.shape[:-1], columns)
    return out.scatter_(-1, atoms.long(), codes)
