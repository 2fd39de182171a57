# SPDX-License-Identifier: BSD-3-Clause
"""survey(): how many atoms to learn, and how many per row, judged by fits to a sample of the
rows."""
import dataclasses
import itertools
import numbers
import statistics
import time
import typing
import warnings

import numpy as np

from . import calls, plots
from .arrays import is_files, is_path, numpy_of
from .comparison import compare
from .errors import InputError, Warning
from .hints import Axes, Rows
from .job import level_of_caller
from .late import h5py

WINDOW = 128        # consecutive rows that stay together, as in the rows that fits hold out
# how much more a trial may leave unexplained than the best one does, relative to it (N.39)
UNEXPLAINED = 0.2
GAIN = 0.03         # in agreement of seeds; a larger gain outweighs explained variance (N.39)
COLUMNS = ("atoms", "top_s", "explained_variance", "pw_mcc", "dead", "dense", "rows_each",
           "seconds")


@dataclasses.dataclass(frozen=True)
class Trial:
    """The fits of one size, one for each seed.  The numbers are means over these fits."""
    atoms: int
    top_s: int
    explained_variance: float  # of held-out rows, described with max(top_s) atoms in every trial
    pw_mcc: float              # mean cosine of the pairs of atoms of two seeds
    dead: float                # share of the atoms that occur in no row
    dense: float               # share of the atoms that occur in more than half of the rows
    rows_each: float           # fitted rows per atom
    seconds: float             # of one fit


class Survey(typing.List[Trial]):
    """The trials; .best is the one to take, and .why explains the choice in words."""

    def __init__(self, trials: typing.Iterable[Trial]) -> None:
        super().__init__(trials)
        self.best: Trial
        self.why: str
        self.best, self.why = _chosen(self)

    def __repr__(self):
        return "\n".join([" ".join(f"{name:>18}" for name in COLUMNS),
                          *(" ".join(f"{getattr(one, name):18.6g}" for name in COLUMNS)
                            for one in self), self.why])

    def _repr_html_(self):
        rows = ["".join(f"<th>{name}" for name in COLUMNS),
                *("".join(f"<td>{getattr(one, name):.4g}" for name in COLUMNS) for one in self)]
        return f"<table><tr>{'<tr>'.join(rows)}</table><p>{self.why}"

    def plot(self, ax: Axes = None) -> Axes:
        """Plot the explained variance against the agreement of the seeds; returns the Axes."""
        return plots.trials(self, ax)


def _chosen(trials):
    """Apply the rule of (N.39).  Of the trials that explain nearly as much as the best, take the
    one whose seeds agree best, if its agreement is larger by enough."""
    most = max(trials, key=lambda one: one.explained_variance)
    left = (1 + UNEXPLAINED) * (1 - most.explained_variance)
    good = sorted((one for one in trials if 1 - one.explained_variance <= left),
                  key=lambda one: -one.explained_variance)
    best = good[0]
    for one in good[1:]:
        best = one if one.pw_mcc > best.pw_mcc + GAIN else best
    why = (f"take {best.atoms} atoms, {best.top_s} a row: seeds agree by {best.pw_mcc:.3f}, and "
           f"it explains {best.explained_variance:.3f} of unseen rows; ")
    why += "no other explains more" if best is most else (
        f"{most.atoms} atoms, {most.top_s} a row explain {most.explained_variance:.3f}, and agree "
        f"by {most.pw_mcc:.3f}")
    if best.dead > 0.1:
        why += f"; {100 * best.dead:.0f} % of its atoms are in no row, so fewer may do"
    return best, why


def _windows(x, rows):
    """At most `rows` rows of x, in evenly spaced windows."""
    n = len(x)
    if n <= rows:
        return numpy_of(x[:])
    count = max(1, rows // WINDOW)
    starts = np.arange(count) * (n // WINDOW) // count * WINDOW
    return np.concatenate([numpy_of(x[i:i + WINDOW]) for i in starts])


def _sample(x, rows):
    """A sample, in memory, of rows given as for sagitta.fit()."""
    if is_path(x):
        name, _, inner = str(x).partition(":/")
        if name.endswith(".npy"):
            return _windows(np.load(name, mmap_mode="r"), rows)
        if h5py.is_hdf5(name):
            with h5py.File(name, "r") as f:
                return _windows(f[inner or "rows"], rows)
    if is_files(x) or not hasattr(x, "shape"):
        raise InputError("survey() takes an array, a .npy or 'file.h5:/path': it fits a sample of "
                         "the rows several times")
    return _windows(x.reshape(-1, x.shape[-1]) if len(x.shape) > 2 else x, rows)


def _fitted(x, options):
    """(run, seconds) of a fit; its warnings are not shown, but kept in the run."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Warning)
        run = calls.fit(x, **options)
    return run, time.perf_counter() - begun


def _check(options):
    """Before the first fit, refuse options of fit() with which trials could not be compared."""
    for name in "seed", "encode_s":
        if name in options:
            raise TypeError(f"survey() chooses {name}: leave it out")
    for name in "output", "resume", "force":
        if name in options:
            raise TypeError(
                "survey() makes a fit of each size and seed, and output, resume and force are for "
                f"one folder, which each fit would take from the one before: leave {name} out, and "
                "give output to fit() with the atoms and top_s of .best")
    held_out = options.get("holdout")
    is_share = held_out is None or isinstance(held_out, numbers.Real)  # otherwise it is rows
    if is_share and options.get("holdout_share", held_out) == 0:
        raise InputError("survey() compares trials by rows held out, and there are none: leave "
                         "holdout and holdout_share out, or give holdout=0.1, or such rows")


def _trial(x, options, seeds, caught):
    done = [_fitted(x, {**options, "seed": seed}) for seed in seeds]
    runs = [run for run, _ in done]
    for run in runs:
        caught += run.warnings
    mean = statistics.fmean
    unseen = [run.page["unseen_encoded"] for run in runs]
    return Trial(options["atoms"], options["top_s"],
                 mean(u if u is not None else run.page["unseen"] for u, run in zip(unseen, runs)),
                 mean(compare(a, b, progress=None).pw_mcc
                      for a, b in itertools.combinations(runs, 2)),
                 mean(float((run.density == 0).mean()) for run in runs),
                 mean(float((run.density > len(x) / 2).mean()) for run in runs),
                 mean(run.page["rows"] / options["atoms"] for run in runs),
                 mean(seconds for _, seconds in done))


def survey(X: Rows, atoms: typing.Sequence[int] = (512, 1024),
           top_s: typing.Sequence[int] = (4, 8, 16), seeds: typing.Sequence[int] = (0, 1),
           rows: int = 65536, **options: typing.Any) -> Survey:
    """Fit every combination of `atoms`, `top_s` (atoms per row) and seed to at most `rows` rows,
    and recommend one pair of atoms and top_s: among those that explain unseen rows nearly as well
    as the best, the one on whose atoms the seeds agree best.  In every trial unseen rows are
    described with max(top_s) atoms each, so that trials can be compared.

    X: an array (N, P) or (B, T, P), a .npy or 'file.h5:/path'.  options: those of sagitta.fit(),
    except for output, resume and force, since no fit is kept.  Returns a Survey, which is a list of
    Trials with .best, .why and .plot().

    >>> import numpy as np, sagitta, warnings
    >>> warnings.simplefilter("ignore")
    >>> X = np.random.default_rng(0).standard_normal((1500, 8))
    >>> sagitta.survey(X, atoms=[16], top_s=[1, 2], sweeps=2, progress=None).best.atoms
    16
    """
    atoms, top_s, seeds = ([int(one) for one in values] for values in (atoms, top_s, seeds))
    if len(set(seeds)) < 2 or not atoms or not top_s:
        raise InputError(f"atoms are {atoms}, top_s {top_s}, seeds {seeds}: give one of each, and "
                         "two seeds or more, since a single seed says little")
    _check(options)
    x, caught = _sample(X, rows), []
    trials = [_trial(x, {**options, "atoms": k, "top_s": s, "encode_s": max(top_s)}, seeds, caught)
              for k in atoms for s in top_s]
    for one in {type(one): one for one in reversed(caught)}.values():
        warnings.warn(one, stacklevel=level_of_caller())
    return Survey(trials)
