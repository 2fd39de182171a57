# SPDX-License-Identifier: BSD-3-Clause
"""Claim: on real rows `sagitta encode --encoder` gives the supports that SAELens and sparsify find
with the same autoencoder.  Rows may differ if a score differs from the boundary only in its last
bits; they are counted.

Needs SAELens and sparsify, in the Python of the tests or in PEER_PYTHON."""
import os
import tempfile

from peer import peer_needed

os.environ["SPARSIFY_DISABLE_TRITON"] = "1"  # on a CPU
peer_needed("h5py", "numpy", "sae_lens", "sparsify", "torch")

# pylint: disable=wrong-import-position
import h5py
import numpy as np
import torch
from sae_lens import SAE, JumpReLUSAEConfig, StandardSAEConfig, TopKSAEConfig
from sparsify import SparseCoder, SparseCoderConfig

from tap import SOURCE, claim, done_testing, ok, sagitta

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
P, K, TOP, LEVEL = 384, 1024, 16, 2.0
TIE = 2e-6  # relative to a row's largest score: roundings of sums of 384 terms


def weights_make(x):
    """The weights of an autoencoder whose atoms are rows, with several norms."""
    generator = torch.Generator().manual_seed(1)
    mean = x.mean(0)
    atoms = x[torch.randperm(len(x), generator=generator)[:K]] - mean
    atoms = atoms / atoms.norm(dim=1, keepdim=True)
    bias = 0.5 * torch.randn(K, generator=generator) - 1
    norms = 0.5 + torch.rand(K, 1, generator=generator)
    return atoms.T.contiguous(), bias, atoms * norms, mean


def saelens(at, config, values):
    sae = SAE.from_dict(config.to_dict())
    sae.W_enc.data, sae.b_enc.data, sae.W_dec.data, sae.b_dec.data = (v.clone() for v in values)
    if hasattr(sae, "threshold"):
        sae.threshold.data = torch.full((K,), LEVEL)
    sae.save_model(at)
    return SAE.load_from_disk(at).encode


def sparsify(at, values):
    coder = SparseCoder(P, SparseCoderConfig(num_latents=K, k=TOP))
    coder.encoder.weight.data, coder.encoder.bias.data = values[0].T.contiguous(), values[1].clone()
    coder.W_dec.data, coder.b_dec.data = values[2].clone(), values[3].clone()
    coder.save_to_disk(at)
    coder = SparseCoder.load_from_disk(at)

    def encode(x):
        found = coder.encode(x)
        return torch.zeros(len(x), K).scatter_(1, found.top_indices, found.top_acts)

    return encode


def own_codes(at, name):
    """The codes of encode, scaled as the program that made the autoencoder scales them."""
    with h5py.File(f"{at}/{name}-own.h5") as f, h5py.File(f"{at}/{name}-d/dictionary.h5") as g:
        s, e = f["supports"], g["encoder"]
        codes = np.zeros(s.attrs["shape"], "f4")
        row = np.repeat(np.arange(len(codes)), np.diff(s["indptr"][:]))
        codes[row, s["indices"][:]] = s["data"][:]
        return codes / e["norm"][:] if "norm" in e and not e.attrs["rescaled"] else codes


def compare(at, name, x, encode, level):
    """level: scores above it are codes; for topk, the least code of each row."""
    done = sagitta("import", f"{at}/{name}", "--output", f"{at}/{name}-d")
    ok(done.returncode == 0, f"{name}: {done.stderr[-300:]}")
    done = sagitta("encode", "--rows", ROWS, "--encoder", f"{at}/{name}-d", "--output",
                   f"{at}/{name}-own.h5")
    ok(done.returncode == 0, f"{name}: {done.stderr[-300:]}")
    with torch.no_grad():
        theirs = encode(x).numpy()
    mine = own_codes(at, name)
    largest = theirs.max(1, keepdims=True)
    differ = (theirs > 0) != (mine > 0)
    if level is None:
        level = np.where(theirs > 0, theirs, np.inf).min(1, keepdims=True)
    ties = np.abs(np.maximum(theirs, mine) - level) <= TIE * largest
    equal = (~differ.any(1)).sum()
    print(f"# {name}: the supports of {equal} of {len(x)} rows are equal, {differ.sum()} codes of "
          "the others are at the boundary", flush=True)
    ok(not (differ & ~ties).any(), f"{name}: {(differ & ~ties).sum()} codes of one alone")
    ok(equal > 0.99 * len(x), f"{name}: {equal} rows are equal")
    off = (np.abs(theirs - mine) * ~differ / largest).max()
    ok(off < 1e-5, f"{name}: codes are off by {off}")


@claim("on real rows supports are those of SAELens and sparsify, except for scores at the boundary")
def check(at):
    with h5py.File(ROWS) as f:
        x = torch.from_numpy(f["rows"][:].astype("f4"))
    values = weights_make(x)
    base = {"d_in": P, "d_sae": K}
    kinds = {"topk": (TopKSAEConfig(**base, k=TOP), None),
             "rescaled": (TopKSAEConfig(**base, k=TOP, rescale_acts_by_decoder_norm=True), None),
             "relu": (StandardSAEConfig(**base), 0.0),
             "jumprelu": (JumpReLUSAEConfig(**base), LEVEL)}
    for name, (config, level) in kinds.items():
        compare(at, name, x, saelens(f"{at}/{name}", config, values), level)
    compare(at, "sparsify", x, sparsify(f"{at}/sparsify", values), None)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        check(folder)
    done_testing()
