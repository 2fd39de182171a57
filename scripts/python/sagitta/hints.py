# SPDX-License-Identifier: BSD-3-Clause
"""Types of arguments, for checkers such as mypy."""
import os
import typing

import numpy as np

Path = typing.Union[str, "os.PathLike[str]"]
Rows = typing.Any  # what sagitta.fit() takes: an array of any library, files, or batches
Array = typing.Any  # of NumPy, or of the library of what was given
Axes = typing.Any  # of matplotlib
Codes = typing.Any  # a sparse matrix of SciPy, or a sagitta.CSR without it
Figures = typing.Dict[str, typing.Any]
Pair = typing.Tuple[np.ndarray, np.ndarray]
