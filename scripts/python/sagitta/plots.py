# SPDX-License-Identifier: BSD-3-Clause
"""Plots of runs and comparisons; matplotlib is imported by the first of them."""
import numpy as np

from .errors import Error

BINS = 60


def axes(ax):
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise Error(f"there is no matplotlib: {error}: install it, or give ax=") from error
    return pyplot.subplots()[1]


def history(columns, ax=None):
    """Plot the explained variance, given the columns of a history by name."""
    ax = axes(ax)
    at, fitted = ("sweep", "fitted rows") if "sweep" in columns else ("step", "batches")
    for name, label, style in (("explained_variance", fitted, "o-"),
                               ("explained_variance_held_out", "held-out rows", "s--")):
        if name in columns and np.isfinite(columns[name]).any():
            ax.plot(columns[at], columns[name], style, label=label)
    ax.set(xlabel=at, ylabel="explained variance")
    ax.legend()
    return ax


def density(counts, rows, ax=None):
    """Plot a histogram of the share of the rows in which each atom occurs."""
    ax = axes(ax)
    part = np.asarray(counts) / max(1, rows)
    alive = part[part > 0]
    least = np.log10(alive.min()) if len(alive) else -1.0
    ax.hist(alive, bins=np.logspace(least - 0.05, 0, BINS))
    ax.set(xscale="log", xlabel="part of the rows that the atom is in", ylabel="atoms",
           title=f"{len(part)} atoms, {int((part == 0).sum())} in no row")
    return ax


def cosines(values, title, ax=None):
    """Plot a histogram of the cosines of pairs of atoms."""
    ax = axes(ax)
    ax.hist(values, bins=np.linspace(min(0.0, *values), 1.0, BINS))
    ax.set(xlabel="cosine of an atom and its pair", ylabel="atoms", title=title)
    return ax


def trials(survey, ax=None):
    """Plot the agreement of two seeds against the explained variance, one mark per trial."""
    ax = axes(ax)
    for atoms in dict.fromkeys(one.atoms for one in survey):
        some = [one for one in survey if one.atoms == atoms]
        x, y = ([getattr(one, name) for one in some] for name in ("pw_mcc", "explained_variance"))
        ax.plot(x, y, "o-", label=f"{atoms} atoms")
        for one in some:
            ax.annotate(str(one.top_s), (one.pw_mcc, one.explained_variance))
    ax.set(xlabel="mean cosine of the pairs of two seeds", ylabel="explained variance",
           title="atoms per row, beside each mark")
    ax.legend()
    return ax
