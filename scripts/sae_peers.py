#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The autoencoders in PyTorch that scripts/bench_sae.py trains, and their files for `sagitta
import`."""
import json
import math
import os


class Peer:
    """A dictionary of unit atoms, and a bias that is subtracted from rows first.  Trained on scaled
    rows."""

    def __init__(self, torch, rows, o):
        self.torch, self.o = torch, o
        self.bias = rows.mean(0).clone().requires_grad_()
        atoms = torch.randn(o.atoms, rows.shape[1], device=rows.device)
        if o.start == "rows" or o.start == "best" and self.from_rows:
            picked = torch.randperm(len(rows), device=rows.device)[:o.atoms]
            atoms[:len(picked)] = rows[picked] - rows.mean(0)
        self.atoms = torch.nn.functional.normalize(atoms, dim=1).requires_grad_()
        self.idle = torch.zeros(o.atoms, dtype=torch.int64, device=rows.device)

    def used(self, chosen, codes):
        """Update idle: the number of rows since each atom was last used."""
        fired = self.torch.zeros_like(self.idle)
        fired.scatter_add_(0, chosen.reshape(-1), (codes.detach() != 0).long().reshape(-1))
        self.idle = self.torch.where(fired > 0, 0, self.idle + len(chosen))

    def dead(self):
        return self.idle >= self.o.dead_rows

    def dead_loss(self, scores, left):
        """--aux times the squared error of the residual as dead atoms describe it, divided by the
        square of the residual."""
        torch, dead = self.torch, self.dead()
        k = min(self.o.k_aux, int(dead.sum()))
        if not k:
            return 0.0
        top = torch.topk(scores.masked_fill(~dead, -math.inf), k, dim=1)
        codes = torch.zeros_like(scores).scatter(1, top.indices, torch.relu(top.values))
        return self.o.aux * ((codes @ self.atoms - left) ** 2).mean() / (left ** 2).mean()

    def before_step(self):
        """Remove the part of the gradient that would only change the lengths of atoms."""
        grad, atoms = self.atoms.grad, self.atoms.detach()
        grad -= (grad * atoms).sum(1, keepdim=True) * atoms

    def after_step(self):
        with self.torch.no_grad():
            self.atoms /= self.atoms.norm(dim=1, keepdim=True)


class TopK(Peer):
    from_rows = False

    def __init__(self, torch, rows, o):
        super().__init__(torch, rows, o)
        self.encoder = self.atoms.detach().clone().requires_grad_()
        self.shift = torch.zeros(o.atoms, device=rows.device).requires_grad_()

    def parameters(self):
        return [self.atoms, self.bias, self.encoder, self.shift]

    def describe(self, x):
        scores = (x - self.bias) @ self.encoder.T + self.shift
        top = self.torch.topk(scores, self.o.top_s, dim=1)
        codes = self.torch.relu(top.values)
        dense = self.torch.zeros_like(scores).scatter(1, top.indices, codes)
        return dense @ self.atoms + self.bias, top.indices, codes, scores

    def loss(self, x):
        y, chosen, codes, scores = self.describe(x)
        self.used(chosen, codes)
        return ((y - x) ** 2).mean() + self.dead_loss(scores, (x - y).detach())


class Pursuit(Peer):
    from_rows = True

    def parameters(self):
        return [self.atoms, self.bias]

    def describe(self, x):
        left = x - self.bias
        chosen, codes = [], []
        for _ in range(self.o.top_s):
            with self.torch.no_grad():
                best = (left @ self.atoms.T).argmax(1)
            atom = self.atoms[best]
            code = (left * atom).sum(1, keepdim=True)
            left = left - code * atom
            chosen.append(best)
            codes.append(code)
        return x - left, self.torch.stack(chosen, 1), self.torch.cat(codes, 1), None

    def loss(self, x):
        y, chosen, codes, _ = self.describe(x)
        self.used(chosen, codes)
        left = (x - y).detach()
        return ((y - x) ** 2).mean() + self.dead_loss(left @ self.atoms.T, left)


class BatchTopK(TopK):
    """The codes of a batch are its largest scores, --top-s per row on average.  The codes of an
    unseen row are its scores above a threshold: the running mean of each batch's least code."""

    def __init__(self, torch, rows, o):
        super().__init__(torch, rows, o)
        self.sum = self.weight = 0.0

    def threshold(self):
        return self.sum / self.weight if self.weight else 0.0

    def codes(self, x):
        torch = self.torch
        scores = (x - self.bias) @ self.encoder.T + self.shift
        if not torch.is_grad_enabled():
            return scores, scores * (scores > self.threshold())
        top = torch.topk(torch.relu(scores).flatten(), self.o.top_s * len(x))
        dense = torch.zeros_like(scores).flatten().scatter(0, top.indices, top.values)
        with torch.no_grad():
            least = top.values[-1].clamp(min=0)
            self.sum, self.weight = 0.999 * self.sum + least, 0.999 * self.weight + 1
        return scores, dense.view_as(scores)

    def describe(self, x):
        scores, codes = self.codes(x)
        return codes @ self.atoms + self.bias, None, codes, scores

    def loss(self, x):
        scores, codes = self.codes(x)
        fired = (codes.detach() > 0).any(0)
        self.idle = self.torch.where(fired, 0, self.idle + len(x))
        y, loss, begin = self.bias, 0.0, 0
        for end in self.o.nested:
            y = y + codes[:, begin:end] @ self.atoms[begin:end]
            loss, begin = loss + ((y - x) ** 2).mean(), end
        return loss + self.dead_loss(scores, (x - y).detach())


class Matryoshka(BatchTopK):
    """As BatchTopK; but for each width w of --nested the first w atoms alone also describe rows."""


PEERS = {"topk": (TopK, "TopK autoencoder"), "batchtopk": (BatchTopK, "BatchTopK autoencoder"),
         "matryoshka": (Matryoshka, "Matryoshka autoencoder"),
         "mp": (Pursuit, "matching-pursuit autoencoder")}


def tensors_write(path, values):
    """Write tensors as float32 to a safetensors file."""
    values = {name: value.detach().cpu().numpy().astype("<f4") for name, value in values.items()}
    header, end = {}, 0
    for name, value in values.items():
        header[name] = dict(dtype="F32", shape=value.shape, data_offsets=[end, end + value.nbytes])
        end += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for value in values.values():
            f.write(value.tobytes())


def save(peer, scale, folder):
    """Write the autoencoder, converted for rows that are not scaled.  TopK is written in the form
    of sparsify, the others in the form of SAELens."""
    os.makedirs(folder, exist_ok=True)
    k, p = peer.atoms.shape
    after, before = scale * peer.bias, scale * peer.shift
    if isinstance(peer, BatchTopK):
        threshold = peer.torch.full((k,), float(scale * peer.threshold()))
        tensors_write(os.path.join(folder, "sae_weights.safetensors"), {
            "W_dec": peer.atoms, "b_dec": after, "W_enc": peer.encoder.T.contiguous(),
            "b_enc": before, "threshold": threshold})
        config = dict(architecture="jumprelu", d_in=p, d_sae=k, dtype="float32",
                      apply_b_dec_to_input=True, normalize_activations="none", reshape_activations=
                      "none")
    else:
        tensors_write(os.path.join(folder, "sae.safetensors"), {
            "W_dec": peer.atoms, "b_dec": after, "encoder.bias": before,
            "encoder.weight": peer.encoder})
        config = dict(activation="topk", expansion_factor=-(-k // p), normalize_decoder=True,
                      num_latents=k, k=peer.o.top_s, multi_topk=False, skip_connection=False,
                      transcode=False, d_in=p)
    with open(os.path.join(folder, "cfg.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
