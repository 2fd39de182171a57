# SPDX-License-Identifier: BSD-3-Clause
"""Codes of many rows at once in PyTorch, by formulas (N.5) and (N.5n) of doc/numerics.md.

g (n, M, M) and b (n, M), in float64, are the normal equations (N.4) of n rows with M vectors each.
A set of vectors is a boolean mask (n, M).  The formulas are those of src/model/codes.c; only the
order of summation is that of PyTorch's products."""
import torch

DROP = 2.0 ** -30   # a vector is dropped if its pivot is at most this share of its squared norm
# The limit of the search is TRIES joins per vector.  Without it sets could recur for ever, because
# rounding differs between batches.
TRIES = 8
SLOPE = 2.0 ** -40  # a slope of at most this share of its terms counts as rounding


def factor(g, inside, rho=0.0):
    """Cholesky factors of the systems of the sets, with rho added to the diagonal.  Vectors whose
    pivots are too small are dropped.  Returns the factors, and the sets without dropped vectors.
    Outside of its set a factor equals the unit matrix."""
    own = torch.diagonal(g, dim1=1, dim2=2)
    place = torch.arange(g.shape[1], device=g.device)
    while True:
        pairs = inside[:, :, None] & inside[:, None, :]
        system = torch.where(pairs, g, 0.0)
        system.diagonal(dim1=1, dim2=2).add_(torch.where(inside, rho, 1.0))
        l, info = torch.linalg.cholesky_ex(system)
        pivots = torch.diagonal(l, dim1=1, dim2=2) ** 2
        bad = inside & (~(pivots > DROP * own) | (info[:, None] == place + 1))
        first = torch.where(bad, place, g.shape[1]).min(1).values
        if not (first < g.shape[1]).any():
            return l, inside
        # the later pivots change without this vector, so all are checked again
        inside = inside & (place != first[:, None])


def solve(l, inside, b):
    b = torch.where(inside, b, 0.0)[:, :, None]
    return torch.where(inside, torch.cholesky_solve(b, l)[:, :, 0], 0.0)


def signed(g, b, rho):
    """The signed codes, by (N.5)."""
    return solve(*factor(g, torch.ones_like(b, dtype=torch.bool), rho), b)


def settle(g, b, rho, inside, x):
    """Move from x >= 0 towards the solution on the set, only as far as all entries stay at least 0.
    Entries that become 0 leave the set.  This repeats until x is the solution on the set and
    positive."""
    inside, x = inside.clone(), x.clone()
    rows = torch.arange(len(b), device=b.device)  # rows that are not settled yet
    while len(rows):
        l, now = factor(g[rows], inside[rows], rho)
        z, old = solve(l, now, b[rows]), x[rows]
        below = now & ~(z > 0)
        reach = torch.where(below & (old > 0), old / (old - z), 0.0)
        step = torch.where(below, reach, 1.0).min(1, keepdim=True).values
        now &= ~(below & ~(reach > step))
        blocked = below.any(1)
        moved = torch.clamp(old + step * (z - old), min=0.0)
        x[rows] = torch.where(now, torch.where(blocked[:, None], moved, z), 0.0)
        inside[rows] = now
        rows = rows[blocked]
    return inside, x


def nonnegative(g, b, rho):
    """The nonnegative codes, by (N.5n) with the active sets of Lawson and Hanson."""
    inside, x = settle(g, b, rho, factor(g, torch.ones_like(b, dtype=torch.bool))[1],
                       torch.zeros_like(b))
    refused = torch.zeros_like(inside)
    rows = torch.arange(len(b), device=b.device)  # rows whose sets another vector may still join
    for _ in range(TRIES * b.shape[1]):
        part = g[rows]
        used = torch.where(inside[rows], x[rows], 0.0)[:, :, None]
        slope = b[rows] - (part @ used)[:, :, 0]
        size = b[rows].abs() + (part.abs() @ used)[:, :, 0]
        wanted = ~inside[rows] & ~refused[rows] & (slope > SLOPE * size) & (slope > 0)
        going = wanted.any(1)
        if not going.any():
            break
        best = torch.where(wanted, slope, -torch.inf)[going].argmax(1, keepdim=True)
        rows = rows[going]
        try_inside, try_x = settle(g[rows], b[rows], rho,
                                   inside[rows].scatter(1, best, True), x[rows])
        better = ((b[rows] * try_x).sum(1) > (b[rows] * x[rows]).sum(1))[:, None]
        inside[rows] = torch.where(better, try_inside, inside[rows])
        x[rows] = torch.where(better, try_x, x[rows])
        refused[rows] = torch.where(better, False, refused[rows].scatter(1, best, True))
    return x
