# SPDX-License-Identifier: BSD-3-Clause
"""capture(): the output of a PyTorch module as rows to fit a dictionary to."""
import contextlib
import os
import typing
import weakref

import numpy as np
import torch

from . import arrays
from .errors import InputError
from .hints import Path
from .hooks import Hook, Module, applied, module_of, selected


def _unlink(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class Rows(Hook):
    """The rows of all passes through a module, (N, P) float32.  Use numpy.asarray(rows) or
    sagitta.fit(rows, ...).  With `output` the rows are written to that .npy file, which appears
    only when the block ends without an error.  In memory, each further `with` block adds rows; a
    file takes only one block.

    mask may be set before each pass: (..., T), True or 1 for rows to keep."""

    def __init__(self, model, module, mask=None, output=None):
        self.mask, self.shape, self._parts = mask, (0, 0), []
        self._file = self._gone = None
        self.output = None if output is None else os.fspath(output)
        if self.output is not None and not self.output.endswith(".npy"):
            raise InputError(f"output is '{self.output}': give a name that ends in .npy")
        # the model holds the hook, so the hook must not keep the rows alive
        own = weakref.ref(self)

        def hook(_, __, output):
            applied(output, own()._take)
        super().__init__(module_of(model, module), hook)

    def _take(self, x):
        """Keep the rows of one pass.  Numbers in a mask, as tokenizers give them, are read as
        booleans and not as positions."""
        mask = None if self.mask is None else torch.as_tensor(self.mask).bool().to(x.device)
        rows = x[selected(mask, x)].detach().to("cpu", torch.float32).numpy()
        n, p = self.shape
        if n and rows.shape[1] != p:
            raise InputError(f"a pass has {rows.shape[1]} columns, the first had {p}: give a "
                             "module whose outputs are alike")
        if self._file:
            self._file.write(np.ascontiguousarray(rows).data)
        else:
            self._parts.append(rows)
        self.shape = n + len(rows), rows.shape[1]
        return x

    def __enter__(self):
        if self._file:
            raise InputError(f"this capture has begun '{self.output}' before: for each block of "
                             "passes make another capture, with an output of its own")
        if self.output is not None:
            name = self.output + ".tmp"
            # removes the temporary file when this object is deleted, or Python ends
            self._gone = weakref.finalize(self, _unlink, name)
            self._file = open(name, "wb")
            self._file.write(bytes(arrays.HEAD))
        return super().__enter__()

    def _publish(self):
        self._file.seek(0)
        self._file.write(arrays.head_of("<f4", self.shape))
        self._file.close()
        os.replace(self._file.name, self.output)

    def __exit__(self, *error: typing.Any) -> None:
        super().__exit__(*error)
        if self._file and error[0] is None:
            self._publish()
        if self._file:
            self._file.close()
            self._gone()

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: typing.Any = None, copy: typing.Any = None) -> np.ndarray:
        if self.output is not None:
            return np.load(self.output)
        rows = np.concatenate(self._parts) if self._parts else np.zeros(self.shape, "f4")
        return rows if dtype is None else rows.astype(dtype)


def capture(model: torch.nn.Module, module: Module, mask: typing.Any = None,
            output: typing.Optional[Path] = None) -> Rows:
    """Keep the output of a module while a `with` block runs: `with capture(...) as rows`.

    mask: the rows to keep of each pass, such as an attention mask; rows.mask may be set before each
    pass.  output: the name of a .npy file, for more rows than fit into memory; it takes one block
    only."""
    return Rows(model, module, mask, output)
