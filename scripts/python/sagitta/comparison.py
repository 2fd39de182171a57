# SPDX-License-Identifier: BSD-3-Clause
"""compare(a, b): compare two dictionaries, by `sagitta compare`."""
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
    """How close the atoms of dictionary a are to those of b, paired one to one (N.22p of
    doc/numerics.md).  most_frequent is the mean cosine over the quarter of a's atoms that occur in
    the most rows, least_frequent that over the quarter that occur in the fewest; None if the
    frequencies are not known."""
    pw_mcc: float    # mean cosine of the pairs
    above_07: float  # share of the pairs with a cosine above 0.7
    above_09: float
    most_frequent: typing.Optional[float]
    least_frequent: typing.Optional[float]
    match: np.ndarray           # (K,), i32: the atom of b that each atom is paired with; -1: none
    cosine: np.ndarray          # (K,), f32: the cosine of the two atoms; 0: not paired
    nearest: np.ndarray         # (K,), i32: the nearest atom of b, which several atoms may share
    nearest_cosine: np.ndarray  # (K,), f32

    def __repr__(self):
        return (f"{len(self.match)} atoms: mean cosine of pairs (PW-MCC) {self.pw_mcc:.4f}, "
                f"{100 * self.above_07:.3g} % above 0.7, {100 * self.above_09:.3g} % above 0.9")

    def plot(self, ax: Axes = None) -> Axes:
        """Plot a histogram of the cosines of the pairs; returns the Axes."""
        return plots.cosines(self.cosine[self.match >= 0], repr(self), ax)


def _file_of(d, folder, name):
    """The path of the dictionary for the program.  A Run and a path have one; anything else is
    written to a file in the folder."""
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
    """Compare the atoms of a with those of b.  Each is a Run, its folder, a dictionary.h5, a
    sagitta.Dictionary, or atoms (K, P) of length 1.  options: `sagitta compare --help`.

    If both are for nonnegative codes, cosines keep their sign; otherwise their absolute values are
    compared.  Returns a Comparison.

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
