# SPDX-License-Identifier: BSD-3-Clause
"""Types of arguments and results, for type checkers such as mypy."""
import os
import typing

import numpy as np

Path = typing.Union[str, "os.PathLike[str]"]
Rows = typing.Any  # rows as for sagitta.fit(): an array of any library, files, or batches
Array = typing.Any  # an array of NumPy, or of the library of the argument
Axes = typing.Any  # Axes of matplotlib
Codes = typing.Any  # a sparse matrix of SciPy, or a sagitta.CSR without SciPy
Figures = typing.Dict[str, typing.Any]
Pair = typing.Tuple[np.ndarray, np.ndarray]
