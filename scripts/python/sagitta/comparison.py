# SPDX-License-Identifier: BSD-3-Clause
"""Two dictionaries side by side, by `sagitta compare`: compare(a, b)."""
import dataclasses
import json
import os
import tempfile
import typing

import numpy as np

from . import plots
from .arrays import is_path, numpy_of
from .dictionary import Dictionary
from .errors import Error
from .hints import Array, Axes
from .job import Job
from .late import h5py
from .program import option_of, words_of
from .results import Run


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """How near the atoms of a dictionary a are to those of b, paired one to one (numerics.md,
    N.22p).  most_frequent and least_frequent: means of the quarters of a's atoms that rows have
    most and least often; None where nothing says how often."""
    pw_mcc: float    # mean cosine of the pairs
    above_07: float  # share of the pairs
    above_09: float
    most_frequent: typing.Optional[float]
    least_frequent: typing.Optional[float]
    match: np.ndarray           # (K,), i32: the atom of b that is paired; -1: none
    cosine: np.ndarray          # (K,), f32: their cosine; 0: there is no pair
    nearest: np.ndarray         # (K,), i32: the nearest atom of b, which others may share
    nearest_cosine: np.ndarray  # (K,), f32

    def __repr__(self):
        return (f"{len(self.match)} atoms: mean cosine of pairs (PW-MCC) {self.pw_mcc:.4f}, "
                f"{100 * self.above_07:.3g} % above 0.7, {100 * self.above_09:.3g} % above 0.9")

    def plot(self, ax: Axes = None) -> Axes:
        """A histogram of the cosines of pairs; returns the Axes."""
        return plots.cosines(self.cosine[self.match >= 0], repr(self), ax)


def _file_of(d, folder, name):
    """What names a dictionary to the program: that of a Run or a path, else a file of its own."""
    if isinstance(d, Run):
        return d.path
    if is_path(d):
        return os.fspath(d)
    path = os.path.join(folder, name + ".h5")
    if isinstance(d, Dictionary):
        d.write(path)
        return path
    with h5py.File(path, "w") as f:
        f["atoms"] = numpy_of(d)
    return path


def compare(a: Array, b: Array, **options: typing.Any) -> Comparison:
    """How near the atoms of a are to those of b, each a Run, its folder, a dictionary.h5, a
    sagitta.Dictionary, or atoms (K, P) of length 1; options: `sagitta compare --help`.

    Where both are for nonnegative codes a cosine counts with its sign, else by its size.  Returns a
    Comparison.

    >>> import numpy as np, sagitta
    >>> sagitta.compare(np.eye(4, dtype="f4"), -np.eye(4, dtype="f4")[::-1])
    4 atoms: mean cosine of pairs (PW-MCC) 1.0000, 100 % above 0.7, 100 % above 0.9
    """
    run = {name: options.pop(name) for name in ("ranks", "progress", "verbose") if name in options}
    words = [word for name, value in options.items()
             for word in words_of(option_of("compare", name), value)]
    with tempfile.TemporaryDirectory(prefix="sagitta-") as folder:
        out = os.path.join(folder, "comparison.h5")
        files = [_file_of(a, folder, "a"), _file_of(b, folder, "b")]
        names = {os.path.join(folder, name + ".h5"): name for name in "ab"}
        job = Job("compare", [*words, f"--dictionary={files[0]}", f"--other={files[1]}",
                              f"--output={out}"], names, **run)
        pairs = json.loads(job.run(None)).get("pairs")
        if pairs is None:
            raise Error("compare() says how atoms pair: leave pairs='no' out")
        with h5py.File(out) as f:
            found = {name: f[place][:] for name, place in (
                ("match", "pairs/match"), ("cosine", "pairs/cosine"),
                ("nearest", "first/nearest"), ("nearest_cosine", "first/cosine"))}
    return Comparison(*(pairs[name] for name in ("pw_mcc", "above_07", "above_09")),
                      pairs["most_frequent_quarter"], pairs["least_frequent_quarter"], **found)
