#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Train autoencoders in PyTorch, to compare them with `sagitta fit`.  Prints the
explained variance of unseen rows, and the seconds so far.

usage: scripts/bench_sae.py --rows FILE[:/NAME] [options] > peers.jsonl

topk  Gao et al. 2024 (arXiv 2406.04093): the codes of a row are its s largest scores, if positive.
      Atoms have unit norm, and the part of the gradient along an atom is removed.  First a bias is
      subtracted from rows.  Adam with linear warm-up and decay.  In an auxiliary loss dead atoms
      describe the residual.
batchtopk   Bussmann et al. 2024 (arXiv 2412.06410): the codes of a batch are its largest scores,
            --top-s per row on average.  The codes of an unseen row are its scores above a
            threshold: the running mean of each batch's least code.  Otherwise as topk.
matryoshka  Bussmann et al. 2025 (arXiv 2503.17547): as batchtopk; but for each width w of --nested
            the first w atoms alone must also describe the rows.
mp    matching pursuit (arXiv 2506.03093): s steps.  Each step takes the atom with the largest
      product with the residual.  Encoder and decoder are one dictionary of unit norm.  Trained as
      topk.

The first --fit-rows rows are fitted; the other rows are unseen.  Every --every epochs a line of
JSON is printed: name, epoch, seconds, training, since_start, unseen, l0 (codes per unseen row),
fitted, dead.  Explained variance is 1 - RSS / TSS, with TSS about the column means of the same rows
(doc/numerics.md, section 7).  `seconds` counts from the moment when the rows are on the device;
`training` is the same without the time for these lines; `since_start` counts from the start of the
process.

--save FOLDER writes the trained autoencoder for `sagitta import`.  The saved autoencoder takes rows
that are not scaled.  topk is saved in the form of sparsify (cfg.json, sae.safetensors); batchtopk
and matryoshka are saved in the form of SAELens, as a jumprelu."""
import time

START = time.perf_counter()  # before PyTorch, whose import takes seconds

import argparse  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402

from sae_peers import PEERS, Pursuit, save  # noqa: E402

BLOCK = 8192  # rows that are evaluated at a time


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("--rows", required=True, help="FILE.npy, or FILE.h5[:/NAME] (default /rows)")
    add("--fit-rows", type=int, default=24576, help="rows to train on; the others are unseen")
    add("--atoms", type=int, default=4096)
    add("--top-s", type=int, default=32)
    add("--peer", choices=(*PEERS, "both"), default="both")
    add("--epochs", type=int, default=51)
    add("--batch", type=int, default=256, help="rows per step")
    add("--lr", type=float, default=0, help="learning rate; 0: 0.128 / sqrt(atoms)")
    add("--warm-up", type=float, default=0.05,
        help="share of the steps, at the start, in which the learning rate rises")
    add("--decay", type=float, default=0.5,
        help="share of the steps, at the end, in which the learning rate falls")
    add("--k-aux", type=int, default=256, help="dead latents in the auxiliary loss; 0: none")
    add("--aux", type=float, default=1 / 32, help="weight of the auxiliary loss")
    add("--dead-rows", type=int, default=0, help="a latent is dead if none of so many rows "
        "used it; 0: the rows of an epoch")
    add("--start", choices=("best", "rows", "random"), default="best", help="atoms at the start; "
        "best: random, but rows for mp")
    add("--nested", default="", help="widths of matryoshka, such as 128,512,4096; the last is "
        "--atoms; default: a 32nd, an eighth and all of the atoms")
    add("--every", type=int, default=1, help="epochs between two printed lines")
    add("--seed", type=int, default=0)
    add("--device", default="cuda")
    add("--precision", choices=("fp32", "tf32"), default="tf32",
        help="precision of products on a GPU")
    add("--save", metavar="FOLDER", help="folder for the trained autoencoder; not for mp")
    return flags.parse_args()


def rows_read(name):
    """A float32 matrix from FILE.npy or FILE.h5[:/NAME]."""
    import numpy as np
    if name.endswith(".npy"):
        return np.load(name).astype("f4")
    import h5py
    file, _, path = name.partition(":")
    with h5py.File(file) as f:
        return f[path or "/rows"][...].astype("f4")


def explained(rss, rows):
    """1 - RSS / TSS, with TSS about the column means of these rows.  rows: float64, of NumPy or
    PyTorch."""
    return float(1 - rss / ((rows - rows.mean(0)) ** 2).sum())


def share_of(step, steps, warm_up, decay):
    """The factor of the learning rate at a step: it rises linearly from 0 to 1, stays at 1, and
    falls linearly to 0."""
    up = (step + 1) / max(1, warm_up * steps)
    down = (steps - step) / max(1, decay * steps)
    return min(1.0, up, down)


class Clock:
    """A clock.  `begun` is when it was made; `out` sums the seconds that leave_out() has taken."""

    def __init__(self, torch, device):
        self.wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
        self.wait()
        self.begun, self.out = time.perf_counter(), 0.0

    def now(self):
        self.wait()
        return time.perf_counter()

    def leave_out(self, work):
        begun = self.now()
        result = work()
        self.out += self.now() - begun
        return result


def judge(torch, peer, rows):
    """The explained variance, summed in float64, and the number of codes per row."""
    rss = torch.zeros((), dtype=torch.float64, device=rows.device)
    used = torch.zeros((), dtype=torch.int64, device=rows.device)
    with torch.no_grad():
        for at in range(0, len(rows), BLOCK):
            x = rows[at:at + BLOCK]
            y, _, codes, _ = peer.describe(x)
            rss += ((y.double() - x.double()) ** 2).sum()
            used += (codes != 0).sum()
    return explained(rss, rows.double()), int(used) / len(rows)


def line_print(name, epoch, clock, peer, fitted, unseen):
    at, out = clock.now(), clock.out

    def look():
        of_unseen, l0 = judge(peer.torch, peer, unseen) if len(unseen) else (None, None)
        return dict(unseen=of_unseen, l0=l0, fitted=judge(peer.torch, peer, fitted)[0],
                    dead=int(peer.dead().sum()))

    said = clock.leave_out(look)
    print(json.dumps(dict(name=name, epoch=epoch, seconds=at - clock.begun,
                          training=at - clock.begun - out, since_start=at - START, **said)),
          flush=True)


def train(torch, kind, name, fitted, unseen, o):
    clock = Clock(torch, o.device)
    torch.manual_seed(o.seed)
    scale = (fitted - fitted.mean(0)).square().mean().sqrt()  # the error of the mean row is then 1
    fitted, unseen = fitted / scale, unseen / scale
    peer = kind(torch, fitted, o)
    fused = dict(fused=True) if o.device.startswith("cuda") else {}
    # 0.008 was best for 256 atoms; the rate falls with the root of their number, as in Gao et al.
    lr = o.lr or 0.128 / math.sqrt(o.atoms)
    optimizer = torch.optim.Adam(peer.parameters(), lr=lr, betas=(0.9, 0.999), eps=1e-8, **fused)
    steps_each = math.ceil(len(fitted) / o.batch)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: share_of(
        step, o.epochs * steps_each, o.warm_up, o.decay))
    line_print(name, 0, clock, peer, fitted, unseen)
    for epoch in range(1, o.epochs + 1):
        for rows in torch.randperm(len(fitted), device=fitted.device).split(o.batch):
            optimizer.zero_grad(set_to_none=True)
            peer.loss(fitted[rows]).backward()
            peer.before_step()
            torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
            optimizer.step()
            peer.after_step()
            rate.step()
        if epoch % o.every == 0 or epoch == o.epochs:
            line_print(name, epoch, clock, peer, fitted, unseen)
    if o.save and kind is not Pursuit:
        save(peer, scale.item(), o.save)


def nested_of(o):
    """The widths w of --nested: the first w atoms must describe rows on their own."""
    if o.peer != "matryoshka":
        return [o.atoms]
    widths = [int(w) for w in o.nested.split(",")] if o.nested else [o.atoms // 32, o.atoms // 8,
                                                                     o.atoms]
    if widths[-1] != o.atoms or sorted(set(widths)) != widths or widths[0] < 1:
        sys.exit("bench_sae: the widths of --nested must rise and end at --atoms")
    return widths


def main():
    o = options_read()
    import torch
    rows = torch.from_numpy(rows_read(o.rows))
    o.fit_rows = min(o.fit_rows, len(rows))
    o.dead_rows = o.dead_rows or o.fit_rows
    if o.top_s > o.atoms:
        sys.exit("bench_sae: --top-s is larger than --atoms")
    if o.save and o.peer in ("mp", "both"):
        sys.exit("bench_sae: --save needs a --peer that is one autoencoder with an encoder")
    o.nested = nested_of(o)
    torch.backends.cuda.matmul.allow_tf32 = o.precision == "tf32"
    rows = rows.to(o.device)
    name = torch.cuda.get_device_name() if o.device.startswith("cuda") else "CPU"
    print(json.dumps(dict(setup=dict(vars(o), torch=torch.__version__, device_name=name,
                                     n_rows=len(rows), columns=rows.shape[1]))), flush=True)
    for key in ("topk", "mp") if o.peer == "both" else (o.peer,):
        kind, label = PEERS[key]
        train(torch, kind, label, rows[:o.fit_rows], rows[o.fit_rows:], o)


if __name__ == "__main__":
    main()
