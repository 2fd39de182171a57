# SPDX-License-Identifier: BSD-3-Clause
"""Fit dictionaries to arrays, `sagitta.fit(X, atoms=512)`, and open what Sagitta wrote,
`sagitta.open("run/")`.  With PyTorch, `sagitta.torch.Dictionary` describes activations as
`sagitta encode` does."""
from .calls import encode, evaluate, fit, refit, train
from .check import selftest
from .comparison import Comparison, compare
from .dictionary import CSR, Dictionary, Encoder
from .errors import (DeadAtoms, DenseAtoms, Error, FewHeldOut, FewRows, InputError, MassiveRows,
                     Minibatch, NegativeVariance, NoMean, NotConverged, Scale, TopS, Transposed,
                     Warning)
from .exports import export, to_saelens
from .features import Features
from .hints import Path
from .job import Interrupted
from .memory import empty
from .results import Run, explained_variance
from .trials import Survey, Trial, survey

__version__ = "0.1.0"
__all__ = ["CSR", "Comparison", "DeadAtoms", "DenseAtoms", "Dictionary", "Encoder", "Error",
           "Features", "FewHeldOut", "FewRows", "InputError", "Interrupted", "MassiveRows",
           "Minibatch", "NegativeVariance", "NoMean", "NotConverged", "Run", "Scale", "Survey",
           "TopS", "Transposed", "Trial", "Warning", "compare", "empty", "encode", "evaluate",
           "explained_variance", "export", "fit", "open", "refit", "selftest", "survey",
           "to_saelens", "train"]


# The name open is used as in tarfile.open; this module does not need the builtin.
def open(path: Path, check: bool = False) -> Run:
    """Open the result at path: the folder of a run, or one of its HDF5 files.

    check: compare the SHA-256 of every dataset that is read with the one stored in the file."""
    return Run(path, check)
