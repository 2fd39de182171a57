#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure how well a model still works when one layer's states are replaced by descriptions.

usage: faithfulness.py --model DIR --rows FILE --run RUN [options]

DIR has the config.json and model.safetensors of a BERT encoder, such as all-MiniLM-L6-v2.  FILE has
the states after --layer in /rows and the tokens in /token, in consecutive windows of --window
tokens, as input/README.md describes for the example rows.  RUN is the folder of a fit to such rows.
Each window goes through the model between the two special tokens, whose states are left unchanged.

For each later layer, and for the mean of the last layer, which is the sentence embedding, the
script prints the explained variance and the mean cosine between what the model computes with the
replaced states and without.  It does so once with the descriptions, and once with every row
replaced by the mean row, as a baseline.  Use rows that the fit has not seen: give --first."""
import argparse
import json
import os
import struct
import sys

import h5py
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))  # or installed
import sagitta  # noqa: E402, after the path is set
import sagitta.torch  # noqa: E402

TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
SAME = 0.01  # relative to the size of the states; rows in 16 bits differ from them by far less
BATCH = 16   # windows at a time


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("--model", required=True, help="folder with config.json and model.safetensors")
    add("--rows", required=True, help="HDF5 file with /rows and /token")
    add("--run", required=True, help="folder of a fit")
    add("--first", type=int, default=0, help="the first row to count, the beginning of a window")
    add("--layer", type=int, default=3, help="rows are the states after so many layers")
    add("--window", type=int, default=128)
    add("--begin", type=int, default=101, help="the token before a window")
    add("--end", type=int, default=102, help="the token after it")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return flags.parse_args()


def weights_read(path, device):
    """The tensors of a safetensors file in float32; prefixes of their names are dropped."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = bytearray(f.read())
    tensors = {}
    for name, at in header.items():
        if name == "__metadata__" or at["dtype"] not in TYPES:
            continue
        begin, end = at["data_offsets"]
        flat = torch.frombuffer(data[begin:end], dtype=TYPES[at["dtype"]])
        tensors[name.removeprefix("bert.")] = flat.reshape(at["shape"]).to(device, torch.float32)
    return tensors


class Encoder:
    """A BERT encoder that can be run layer by layer; states are (windows, tokens, columns)."""

    def __init__(self, folder, device):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            self.config = json.load(f)
        if self.config.get("hidden_act", "gelu") != "gelu":
            sys.exit(f"faithfulness: hidden_act is {self.config['hidden_act']}, only gelu is known")
        self.weights = weights_read(os.path.join(folder, "model.safetensors"), device)
        self.layers = self.config["num_hidden_layers"]

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.weights[name + ".weight"],
                                          self.weights[name + ".bias"])

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], self.weights[name + ".weight"], self.weights[name + ".bias"],
            self.config.get("layer_norm_eps", 1e-12))

    def embed(self, tokens):
        parts = self.weights
        x = parts["embeddings.word_embeddings.weight"][tokens]
        x = x + parts["embeddings.position_embeddings.weight"][:tokens.shape[1]]
        x = x + parts["embeddings.token_type_embeddings.weight"][0]
        return self.norm("embeddings.LayerNorm", x)

    def heads(self, i, x):
        """The queries, keys and values of a layer, each (windows, tokens, heads, columns)."""
        count = self.config["num_attention_heads"]
        split = (*x.shape[:2], count, x.shape[2] // count)
        return [self.linear(f"encoder.layer.{i}.attention.self.{part}", x).reshape(split)
                for part in ("query", "key", "value")]

    def layer(self, i, x):
        name = f"encoder.layer.{i}."
        q, k, v = (part.transpose(1, 2) for part in self.heads(i, x))
        mixed = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1]**0.5, -1) @ v
        mixed = mixed.transpose(1, 2).reshape(x.shape)
        x = self.norm(name + "attention.output.LayerNorm",
                      x + self.linear(name + "attention.output.dense", mixed))
        inner = torch.nn.functional.gelu(self.linear(name + "intermediate.dense", x))
        return self.norm(name + "output.LayerNorm", x + self.linear(name + "output.dense", inner))

    def run(self, x, first, last):
        """The states after layers first + 1 to last, computed from the states after layer first."""
        states = []
        for i in range(first, last):
            x = self.layer(i, x)
            states.append(x)
        return states


def outcomes(model, x, layer):
    """The states after a layer and after each later one, without special tokens, and the
    embeddings."""
    states = [x] + model.run(x, layer, model.layers)
    embeddings = torch.nn.functional.normalize(states[-1].mean(1), dim=1)
    return [s[:, 1:-1].flatten(0, 1).cpu() for s in states] + [embeddings.cpu()]


def windows_read(o):
    """The tokens (windows, window + 2), with the special tokens, and the rows (windows, window,
    columns)."""
    with h5py.File(o.rows) as f:
        if "token" not in f or o.first % o.window or len(f["token"]) - o.first < o.window:
            sys.exit(f"faithfulness: '{o.rows}' needs /token beside /rows, and --first has to be a "
                     f"multiple of {o.window} with a window behind it")
        count = (len(f["token"]) - o.first) // o.window
        part = slice(o.first, o.first + count * o.window)
        tokens = torch.from_numpy(f["token"][part].astype("i8")).reshape(count, o.window)
        rows = torch.from_numpy(f["rows"][part].astype("f4")).reshape(count, o.window, -1)
    ends = torch.full((count, 1), o.begin), torch.full((count, 1), o.end)
    return torch.cat([ends[0], tokens, ends[1]], dim=1), rows


def measure(model, d, tokens, layer):
    """Three lists of outcomes(): of the model's own states, of their descriptions, and of the mean
    row in place of each state."""
    kinds = [], [], []
    for some in tokens.to(d.device).split(BATCH):
        x = model.run(model.embed(some), 0, layer)[-1]
        described, mean = x.clone(), x.clone()
        described[:, 1:-1] = d(x[:, 1:-1])
        mean[:, 1:-1] = d.b_dec
        for kind, states in zip(kinds, (x, described, mean)):
            kind.append(outcomes(model, states, layer))
    return [[torch.cat(parts) for parts in zip(*kind)] for kind in kinds]


def compare(name, full, *others):
    figures = []
    for other in others:
        figures += [sagitta.explained_variance(full, other),
                    float(torch.nn.functional.cosine_similarity(full, other, dim=1).mean())]
    print(f"{name:<20}" + "".join(f"{figure:11.4f}" for figure in figures))


@torch.no_grad()
def main():
    o = options_read()
    model = Encoder(o.model, o.device)
    d = sagitta.torch.Dictionary.open(o.run).to(o.device)
    if not 0 < o.layer < model.layers:
        sys.exit(f"faithfulness: --layer is {o.layer}, the model has {model.layers}: give one "
                 "before the last")
    tokens, rows = windows_read(o)
    full, described, mean = measure(model, d, tokens, o.layer)
    rows = rows.flatten(0, 1)
    far = float((full[0] - rows).norm() / rows.norm())
    if not far <= SAME:
        sys.exit(f"faithfulness: the states after layer {o.layer} are {far:.3g} of their size away "
                 f"from the rows of '{o.rows}': give the model, layer and window they are of")
    print(f"{len(tokens)} windows, {len(rows)} rows, {far:.1e} of their size from the model's")
    print(f"{d.top_s} of {len(d.W_dec)} atoms a row, {d.rounds} rounds, {d.codes} codes\n")
    print(f"{'':<20}{'described':>11}{'':>11}{'mean row':>11}")
    print(f"{'':<20}" + f"{'variance':>11}{'cosine':>11}" * 2)
    names = [f"after layer {i}" for i in range(o.layer, model.layers + 1)]
    for name, *arrays in zip(names + ["sentence embedding"], full, described, mean):
        compare(name, *arrays)


if __name__ == "__main__":
    main()
