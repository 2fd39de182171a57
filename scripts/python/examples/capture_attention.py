#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Save the queries, keys and values of one layer of a model, for `sagitta harvest`.

usage: capture_attention.py --model DIR --output CAPTURE [options]
       capture_attention.py --check ROWS --output CAPTURE

DIR has the config.json and model.safetensors of a BERT encoder.  The tokens are those of the
example rows, as in write_rows.py.  Each sequence of the capture is a special token of the model, a
window of tokens and another special token; attention within it is not causal.  The capture is a new
HDF5 file.  It also stores the output of the model's own attention as /context; --check reports how
far ROWS, made by `sagitta harvest`, differ from /context, and needs no model.  Needs NumPy, SciPy
and h5py."""
import argparse
import os
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from write_rows import BATCH, TOKENS, Encoder, tokens_read  # noqa: E402, after the path is set


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("--model", help="folder with config.json and model.safetensors")
    add("--output", required=True, help="the capture")
    add("--check", help="rows.h5 of `sagitta harvest`: say how far they are from the model's")
    add("--layer", type=int, default=3, help="of the model, counted from 0")
    add("--tokens", default=TOKENS, help="a .npy file with an integer for each token")
    add("--first", type=int, default=0, help="the first token, the beginning of a window")
    add("--count", type=int, help="so many tokens, whole windows; else all that follow")
    add("--window", type=int, default=128)
    add("--begin", type=int, default=101, help="the token before a window")
    add("--end", type=int, default=102, help="the token after it")
    o = flags.parse_args()
    if not o.model and not o.check:
        flags.error("--model or --check is needed")
    return o


def parts_find(model, tokens, layer):
    """The queries, keys, values and contexts of the windows, each (positions, heads, columns)."""
    parts = []
    for at in range(0, len(tokens), BATCH):
        x = model.embed(tokens[at:at + BATCH])
        for i in range(layer):
            x = model.layer(i, x)
        heads = model.heads(f"encoder.layer.{layer}.", x)
        parts.append([p.transpose(0, 2, 1, 3).reshape(-1, p.shape[1], p.shape[3])
                      for p in (*heads, model.mix(*heads))])
    return [np.concatenate(p) for p in zip(*parts)]


def capture_write(path, tokens, parts):
    arrays = dict(zip(["q", "k", "v", "context"], parts))
    arrays |= {"q_start": np.arange(len(tokens) + 1) * tokens.shape[1],
               "token": tokens.reshape(-1).astype("i4")}
    with h5py.File(path, "x", libver=("earliest", "v110")) as f:  # readable by HDF5 1.10 and later
        for name, part in arrays.items():
            chunk = (min(tokens.shape[1], len(part)),) + part.shape[1:]
            f.create_dataset(name, data=part, chunks=chunk, fletcher32=True, track_times=False)
        f.attrs["causal"] = 0


def check(rows_path, path):
    with h5py.File(path) as f, h5py.File(rows_path) as g:
        rows, want = g["rows"][:], f["context"][:]
    if rows.shape != (len(want), want[0].size):
        sys.exit(f"capture_attention: '{rows_path}' has rows {rows.shape}, '{path}' contexts "
                 f"{want.shape}")
    far = np.abs(rows - want.reshape(rows.shape)).max() / np.abs(want).max()
    print(f"{len(rows)} rows, at most {far:.2g} of the largest value from the model's own")


def main():
    o = options_read()
    if o.check:
        check(o.check, o.output)
        return
    model, tokens = Encoder(o.model), tokens_read(o)
    if not 0 <= o.layer < model.config["num_hidden_layers"]:
        sys.exit(f"capture_attention: --layer is {o.layer}, the model has "
                 f"{model.config['num_hidden_layers']}")
    capture_write(o.output, tokens, parts_find(model, tokens, o.layer))


main()
