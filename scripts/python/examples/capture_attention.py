#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keep the queries, keys and values of a layer of a model, for `sagitta harvest`.

usage: capture_attention.py --model DIR --rows FILE --output CAPTURE [options]

DIR has config.json and model.safetensors of a BERT encoder, such as all-MiniLM-L6-v2.  FILE has
tokens in /token, windows of --window of them that follow each other, as input/README.md says of
ours.  Each window, between its two special tokens, is a sequence of the capture, and attention in
it is not causal.  --check compares rows of `sagitta harvest` with what PyTorch makes of it."""
import argparse
import os
import sys

import h5py
import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from faithfulness import BATCH, Encoder, windows_read  # noqa: E402, after the path to it


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("--model", required=True, help="folder with config.json and model.safetensors")
    add("--rows", required=True, help="HDF5 file with /rows and /token")
    add("--output", required=True, help="the capture, a new HDF5 file")
    add("--check", help="rows.h5 of `sagitta harvest`: say how far they are from PyTorch's")
    add("--layer", type=int, default=3, help="of the model, counted from 0")
    add("--first", type=int, default=0, help="the first token, the beginning of a window")
    add("--window", type=int, default=128)
    add("--begin", type=int, default=101, help="the token before a window")
    add("--end", type=int, default=102, help="the token after it")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return flags.parse_args()


def heads_find(model, tokens, layer):
    """Queries, keys and values (windows, tokens, heads, columns)."""
    kept = []
    for some in tokens.split(BATCH):
        x = model.embed(some.to(model.device))
        for i in range(layer):
            x = model.layer(i, x)
        kept.append(torch.stack(model.heads(layer, x)).cpu())
    return torch.cat(kept, dim=1)


def capture_write(path, heads, tokens):
    windows, length = heads.shape[1:3]
    with h5py.File(path, "w") as f:
        for name, part in zip("qkv", heads):
            f[name] = part.flatten(0, 1).numpy()
        f["q_start"] = np.arange(windows + 1) * length
        f["token"] = tokens.flatten().numpy().astype("i4")
        f.attrs["causal"] = 0


def check(path, heads):
    q, k, v = (part.transpose(1, 2) for part in heads)
    z = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
    with h5py.File(path) as f:
        rows = torch.from_numpy(f["rows"][:])
    far = (rows - z.reshape(rows.shape)).abs().max() / z.abs().max()
    print(f"{len(rows)} rows, at most {float(far):.2g} of the largest value from PyTorch's")


@torch.no_grad()
def main():
    o = options_read()
    model = Encoder(o.model, o.device)
    model.device = o.device
    if not 0 <= o.layer < model.layers:
        sys.exit(f"capture_attention: --layer is {o.layer}, the model has {model.layers}")
    tokens = windows_read(o)[0]
    heads = heads_find(model, tokens, o.layer)
    if o.check:
        check(o.check, heads)
    else:
        capture_write(o.output, heads, tokens)


main()
