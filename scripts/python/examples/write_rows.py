#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make rows from a model: its states after a layer, one row per token, without special tokens.

usage: write_rows.py --model DIR --output FILE [options]

DIR has the config.json and the model.safetensors, in float32, of a BERT encoder such as
all-MiniLM-L6-v2.  The tokens are the 32,768 of the example rows (input/README.md); --first and
--count select some of them.  Windows of --window tokens go through the model between its two
special tokens, computed by NumPy in float32.  FILE is a new HDF5 file with /rows in float16, /token
and /window.  Needs NumPy, SciPy and h5py."""
import argparse
import json
import os
import struct
import sys

import h5py
import numpy as np
from scipy.special import erf

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = os.path.join(HERE, "..", "..", "..", "input", "minilm-l3-kjv-tokens.npy")
BATCH = 16  # windows at a time


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("--model", required=True, help="folder with config.json and model.safetensors")
    add("--output", required=True, help="the rows, a new HDF5 file")
    add("--tokens", default=TOKENS, help="a .npy file with an integer for each token")
    add("--first", type=int, default=0, help="the first token, the beginning of a window")
    add("--count", type=int, help="so many tokens, whole windows; else all that follow")
    add("--layer", type=int, default=3, help="rows are the states after so many layers")
    add("--window", type=int, default=128)
    add("--begin", type=int, default=101, help="the token before a window")
    add("--end", type=int, default=102, help="the token after it")
    return flags.parse_args()


def weights_read(path):
    """The float32 tensors of a safetensors file; prefixes of their names are dropped."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    tensors = {}
    for name, at in header.items():
        if name != "__metadata__" and at["dtype"] == "F32":
            begin, end = at["data_offsets"]
            tensors[name.removeprefix("bert.")] = np.frombuffer(
                data[begin:end], "<f4").reshape(at["shape"])
    return tensors


class Encoder:
    """A BERT encoder that can be run layer by layer; states are (windows, tokens, columns)."""

    def __init__(self, folder):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            self.config = json.load(f)
        if self.config.get("hidden_act", "gelu") != "gelu":
            sys.exit(f"write_rows: hidden_act is {self.config['hidden_act']}, only gelu is known")
        self.weights = weights_read(os.path.join(folder, "model.safetensors"))

    def linear(self, name, x):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(
            self.config.get("layer_norm_eps", 1e-12)))
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def embed(self, tokens):
        x = self.weights["embeddings.word_embeddings.weight"][tokens]
        x = x + self.weights["embeddings.position_embeddings.weight"][:tokens.shape[1]]
        x = x + self.weights["embeddings.token_type_embeddings.weight"][0]
        return self.norm("embeddings.LayerNorm", x)

    def heads(self, name, x):
        """The queries, keys and values, each (windows, heads, tokens, columns)."""
        count = self.config["num_attention_heads"]
        return [self.linear(f"{name}attention.self.{part}", x)
                .reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")]

    @staticmethod
    def mix(q, k, v):
        """The values weighted by the softmax of the scores."""
        scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(q.shape[-1]))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return scores @ v

    def attend(self, name, x):
        return self.mix(*self.heads(name, x)).transpose(0, 2, 1, 3).reshape(x.shape)

    def layer(self, i, x):
        name = f"encoder.layer.{i}."
        x = self.norm(name + "attention.output.LayerNorm",
                      x + self.linear(name + "attention.output.dense", self.attend(name, x)))
        inner = self.linear(name + "intermediate.dense", x)
        inner *= np.float32(0.5) * (1 + erf(inner / np.float32(np.sqrt(2))))
        return self.norm(name + "output.LayerNorm", x + self.linear(name + "output.dense", inner))


def tokens_read(o):
    """The tokens (windows, window + 2), with the special tokens."""
    tokens = np.load(o.tokens).astype("i8")
    count = len(tokens) - o.first if o.count is None else o.count
    if o.first % o.window or count % o.window or not 0 < count <= len(tokens) - o.first:
        sys.exit(f"write_rows: '{o.tokens}' has {len(tokens)} tokens: --first and --count have to "
                 f"be multiples of {o.window} within them")
    windows = tokens[o.first:o.first + count].reshape(-1, o.window)
    ends = [np.full((len(windows), 1), end) for end in (o.begin, o.end)]
    return np.concatenate([ends[0], windows, ends[1]], axis=1)


def file_write(path, o, tokens, rows):
    first = o.first // o.window
    arrays = {"rows": rows.astype("f2"), "token": tokens[:, 1:-1].reshape(-1).astype("i4"),
              "window": np.repeat(np.arange(first, first + len(tokens), dtype="i4"), o.window)}
    with h5py.File(path, "x", libver=("earliest", "v110")) as f:  # readable by HDF5 1.10 and later
        for name, part in arrays.items():
            chunk = (min(1024, len(part)),) + part.shape[1:]
            f.create_dataset(name, data=part, chunks=chunk, fletcher32=True, track_times=False)


def main():
    o = options_read()
    model, tokens = Encoder(o.model), tokens_read(o)
    if not 0 < o.layer <= model.config["num_hidden_layers"]:
        sys.exit(f"write_rows: --layer is {o.layer}, the model has "
                 f"{model.config['num_hidden_layers']}")
    rows = []
    for at in range(0, len(tokens), BATCH):
        x = model.embed(tokens[at:at + BATCH])
        for i in range(o.layer):
            x = model.layer(i, x)
        rows.append(x[:, 1:-1].reshape(-1, x.shape[-1]))
    rows = np.concatenate(rows)
    file_write(o.output, o, tokens, rows)
    print(f"{o.output}: {rows.shape[0]} rows of {rows.shape[1]}, mean norm "
          f"{np.linalg.norm(rows, axis=1).mean():.4f}")


if __name__ == "__main__":
    main()
