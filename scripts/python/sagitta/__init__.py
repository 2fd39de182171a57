# SPDX-License-Identifier: BSD-3-Clause
"""Open what Sagitta wrote: `sagitta.open("run/")`.  With PyTorch, `sagitta.torch.Dictionary`
describes activations as `sagitta encode` does."""
from .results import CSR, Dictionary, Error, Run, explained_variance

__version__ = "0.1.0"
__all__ = ["CSR", "Dictionary", "Error", "Run", "explained_variance", "open"]


def open(path, check=False):  # as in h5py.File, tarfile.open and others; hides none that is needed
    """The result at path: the folder of a run, or one of its HDF5 files.

    check: compare the SHA-256 of every dataset that is read with what the file says of it."""
    return Run(path, check)
