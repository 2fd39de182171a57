# SPDX-License-Identifier: BSD-3-Clause
"""Claim: some steps of `sagitta train` are those of NumPy in float64, with the formulas (N.43) to
(N.47) of doc/numerics.md.  The gradients of these formulas are those of the loss by finite
differences."""
import math
import os
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, need, ok, sagitta
from train_place import COLUMNS, rows_make

ROWS, ATOMS, STEPS, RATE, AUX = 300, 24, 12, 1e-3, 0.5
BETA1, BETA2, TINY = 0.9, 0.999, 1e-8
PARTS = "decoder", "encoder", "bias", "offset"


class Peer:
    """An autoencoder in float64.  Every step uses all rows."""

    def __init__(self, x, atoms, nested=None, l0=0.0, s=4, aux=0, dead_rows=ROWS,
                 learns=False):
        self.scale = -math.floor(np.frexp((x.astype("f8") ** 2).mean())[1] / 2)
        self.x = x.astype("f8") * 2.0 ** self.scale
        self.w = {"decoder": atoms.astype("f8"), "encoder": atoms.astype("f8"),
                  "bias": np.zeros(len(atoms)), "offset": np.zeros(x.shape[1])}
        self.learns = learns
        self.moments = {part: [np.zeros_like(w), np.zeros_like(w)] for part, w in self.w.items()}
        self.ends = nested or [len(atoms)]
        self.l0, self.s, self.aux, self.dead_rows = l0, s, aux, dead_rows
        self.idle = np.zeros(len(atoms), int)
        self.sum = self.weight = 0.0
        self.had_dead = 0

    def scores(self):
        return self.rows() @ self.w["encoder"].T + self.w["bias"]

    def rows(self):
        return self.x - self.w["offset"]

    def chosen(self, h, most):
        """The mask of the largest positive scores of each row."""
        order = np.argsort(-h, axis=1, kind="stable")
        mask = np.zeros(h.shape, bool)
        np.put_along_axis(mask, order[:, :most], True, 1)
        return mask & (h > 0)

    def active(self, h):
        if not self.l0:
            return self.chosen(h, self.s)
        most = math.floor(self.l0 * len(h))
        order = np.argsort(-h, axis=None, kind="stable")[:most]
        mask = np.zeros(h.size, bool)
        mask[order] = True
        mask = mask.reshape(h.shape) & (h > 0)
        last = h.ravel()[order[-1]] if mask.sum() == most else 0.0
        self.sum, self.weight = 0.99 * self.sum + 0.01 * last, 0.99 * self.weight + 0.01
        return mask

    def loss(self, mask, dead, left):
        """The loss of codes at these places.  left: the errors of the rows, which dead atoms are to
        describe; gradients take them as constants."""
        codes, total = np.where(mask, self.scores(), 0), 0.0
        for end in self.ends:
            e = codes[:, :end] @ self.w["decoder"][:end] - self.rows()
            total += (e ** 2).mean()
        if dead is not None:
            y = np.where(dead, self.scores(), 0) @ self.w["decoder"]
            total += AUX * ((y + left) ** 2).sum() / (left ** 2).sum()
        return total

    def gradients(self, mask, dead, left):
        codes = np.where(mask, self.scores(), 0)
        out = {part: np.zeros_like(w) for part, w in self.w.items()}
        for end in self.ends:
            e = codes[:, :end] @ self.w["decoder"][:end] - self.rows()
            out["offset"] += 2 / e.size * e.sum(0)
            part = mask.copy()
            part[:, end:] = False
            self.add(out, codes, part, 2 / e.size * e)
        if dead is not None:
            codes = np.where(dead, self.scores(), 0)
            e = codes @ self.w["decoder"] + left
            self.add(out, codes, dead, 2 * AUX / (left ** 2).sum() * e)
        return out

    def add(self, out, codes, mask, g):
        slopes = np.where(mask, g @ self.w["decoder"].T, 0)
        out["decoder"] += np.where(mask, codes, 0).T @ g
        out["encoder"] += slopes.T @ self.rows()
        out["offset"] -= slopes.sum(0) @ self.w["encoder"]
        out["bias"] += slopes.sum(0)

    def places(self):
        h = self.scores()
        mask, dead = self.active(h), None
        left = np.where(mask, h, 0) @ self.w["decoder"] - self.rows()
        is_dead = self.idle >= self.dead_rows
        if self.aux and is_dead.any():
            dead = self.chosen(np.where(is_dead, h, 0), self.aux)
            self.had_dead += 1
        self.idle = np.where(mask.any(0), 0, self.idle + len(h))
        return mask, dead, left

    def step(self, t, steps):
        gradients = self.gradients(*self.places())
        share = min(1, t / max(1, 0.1 * steps), (steps - t + 1) / max(1, 0.5 * steps))
        d = self.w["decoder"]
        g = gradients["decoder"]
        gradients["decoder"] = g - (g * d).sum(1, keepdims=True) * d
        for part, w in self.w.items():
            if part == "offset" and not self.learns:
                continue
            m, v = self.moments[part]
            m += (1 - BETA1) * (gradients[part] - m)
            v += (1 - BETA2) * (gradients[part] ** 2 - v)
            w -= (RATE * share / (1 - BETA1 ** t) * m) / (np.sqrt(v / (1 - BETA2 ** t)) + TINY)
        d /= np.linalg.norm(d, axis=1, keepdims=True)


KINDS = {"row": ({"s": 4}, ["--top-s", 4]),
         "batch": ({"l0": 3.5}, ["--selection", "batch", "--l0", 3.5]),
         "nested": ({"s": 4, "nested": [3, 10, 24]}, ["--top-s", 4, "--nested", "3,10,24"]),
         "both": ({"l0": 2.5, "nested": [1, 8, 24]},
                  ["--selection", "batch", "--l0", 2.5, "--nested", "1,8,24"]),
         "learned": ({"s": 4, "learns": True}, ["--top-s", 4, "--pre-bias", "learned"]),
         "all": ({"l0": 2.5, "nested": [3, 24], "aux": 3, "learns": True},
                 ["--selection", "batch", "--l0", 2.5, "--nested", "3,24", "--pre-bias", "learned",
                  "--aux-atoms", 3]),
         "dead": ({"l0": 0.3, "aux": 2, "nested": [8, 24]},
                  ["--selection", "batch", "--l0", 0.3, "--nested", "8,24", "--aux-atoms", 2])}


def made(at):
    random = np.random.default_rng(3)
    rows = rows_make(random, ROWS) - np.float32(120)
    atoms = random.standard_normal((ATOMS, COLUMNS)).astype("f4")
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    np.save(os.path.join(at, "rows.npy"), rows)
    np.save(os.path.join(at, "atoms.npy"), atoms)
    return rows, atoms


@claim("the gradients of the formulas are those of the loss, by finite differences")
def check_gradients(at):
    rows, atoms = made(at)
    random = np.random.default_rng(4)
    for kind, (options, _) in KINDS.items():
        peer = Peer(rows, atoms, **options)
        for t in range(1, 4):
            peer.step(t, STEPS)
        places = peer.places()
        gradients = peer.gradients(*places)
        for part in PARTS:
            w, h = peer.w[part], 1e-5
            way = random.standard_normal(w.shape)
            w += h * way
            above = peer.loss(*places)
            w -= 2 * h * way
            slope = (above - peer.loss(*places)) / (2 * h)
            w += h * way
            wanted = (gradients[part] * way).sum()
            ok(abs(slope - wanted) < 1e-6 * max(abs(slope), 1e-2),
               f"{kind}, {part}: {slope} {wanted}")


@claim("steps of `train` are those of NumPy, up to float32 rounding")
def check_steps(at):
    rows, atoms = made(at)
    for kind, (options, words) in KINDS.items():
        peer = Peer(rows, atoms, **options)
        for t in range(1, STEPS + 1):
            peer.step(t, STEPS)
        out = os.path.join(at, kind)
        words = ["--aux-atoms", 0, *words] if "--aux-atoms" not in words else words
        done = sagitta("train", "--rows", f"{at}/rows.npy", "--start", f"{at}/atoms.npy",
                       "--uncentered", "--batch", ROWS, "--steps", STEPS, "--lr", RATE, "--warm-up",
                       0.1, "--decay", 0.5, "--dead-rows", ROWS, "--aux-weight", AUX,
                       "--holdout-share", 0, "--device", "cpu", *words, "--output", out)
        if not need(done, kind):
            continue
        with h5py.File(f"{out}/dictionary.h5") as f:
            mine = {"decoder": f["atoms"][...], "encoder": f["encoder/weights"][...],
                    "bias": f["encoder/bias"][...] * 2.0 ** peer.scale}
            mine["offset"] = f["mean"][...] * 2.0 ** peer.scale if peer.learns else 0
            threshold = f["encoder/threshold"][0] if peer.l0 else 0
        for part in PARTS if peer.learns else PARTS[:3]:
            off = np.abs(mine[part] - peer.w[part])
            moved = np.abs(peer.w[part] - (atoms if part.endswith("coder") else 0)).mean()
            ok(off.max() < 0.02 * moved, f"{kind}, {part}: off by {off.max()}, moved by {moved}")
        if peer.l0:
            wanted = peer.sum / peer.weight / 2.0 ** peer.scale
            ok(abs(threshold - wanted) < 1e-5 * wanted, f"{kind}: {threshold} {wanted}")
        ok(kind != "dead" or peer.had_dead > 3, f"{kind}: {peer.had_dead} steps with dead atoms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check_gradients(folder)
        check_steps(folder)
    done_testing()
