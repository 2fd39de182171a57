#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Save the inputs of a gated delta net of a hybrid model, for `sagitta harvest`.

usage: capture_mixer.py --output CAPTURE [--model NAME] [options]
       capture_mixer.py --check ROWS --output CAPTURE

NAME is a Qwen3-Next model, or its folder, that Hugging Face transformers can load; without it the
model is a tiny one with random weights.  Each window of tokens is one sequence of the capture.
Tokens are given to the model one at a time, since transformers starts from an empty state whenever
it is given several at once.  The capture is a new HDF5 file.  It also stores the output of the
model's own layer, before norm, gate and projection, as /context; --check reports how far ROWS, made
by `sagitta harvest`, differ from /context, and needs only NumPy and h5py.  Otherwise PyTorch and
transformers are needed."""
import argparse
import os
import sys

import h5py
import numpy as np


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("--output", required=True, help="the capture")
    add("--check", help="rows.h5 of `sagitta harvest`: say how far they are from the model's")
    add("--model", help="a name or folder for from_pretrained()")
    add("--layer", type=int, default=0, help="of the gated delta nets of the model, from 0")
    add("--tokens", help="a .npy file with an integer for each token; else random ones")
    add("--count", type=int, default=4096, help="so many tokens, whole windows")
    add("--window", type=int, default=128)
    add("--seed", type=int, default=0, help="of the random model and tokens")
    return flags.parse_args()


def tiny_model():
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM
    return Qwen3NextForCausalLM(Qwen3NextConfig(
        vocab_size=1024, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"], mlp_only_layers=[0, 1],
        num_attention_heads=2, num_key_value_heads=1, head_dim=32, linear_num_key_heads=2,
        linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=16))


def model_load(o):
    import torch
    torch.manual_seed(o.seed)
    if o.model:
        from transformers import AutoModelForCausalLM
        return AutoModelForCausalLM.from_pretrained(o.model).eval()
    return tiny_model().eval()


def layer_find(model, number):
    layers = [m for m in model.modules() if hasattr(m, "A_log") and hasattr(m, "in_proj_qkvz")]
    if number >= len(layers):
        sys.exit(f"capture_mixer: --layer is {number}, the model has {len(layers)} gated delta "
                 "nets as those of Qwen3-Next")
    return layers[number]


def tokens_read(o, model):
    size = model.config.vocab_size
    if o.tokens:
        tokens = np.load(o.tokens)[:o.count].astype(np.int64)
    else:
        tokens = np.random.default_rng(o.seed).integers(size, size=o.count)
    windows = len(tokens) // o.window
    if not windows or tokens.max() >= size:
        sys.exit(f"capture_mixer: {len(tokens)} tokens up to {tokens.max(initial=0)}, for windows "
                 f"of {o.window} and a vocabulary of {size}")
    return tokens[:windows * o.window].reshape(windows, o.window)


def layer_watch(layer):
    """Hooks that keep the inputs and outputs of the layer's projections and of its norm at each
    call."""
    kept = {"qkvz": [], "ba": [], "out": []}
    layer.in_proj_qkvz.register_forward_hook(lambda _, x, y: kept["qkvz"].append(y))
    layer.in_proj_ba.register_forward_hook(lambda _, x, y: kept["ba"].append(y))
    layer.norm.register_forward_pre_hook(lambda _, x: kept["out"].append(x[0]))
    return kept


def objects_find(model, layer, windows):
    """The datasets of a capture, for these windows one after another."""
    import torch
    from torch.nn.functional import softplus
    kept, cache = layer_watch(layer), None
    with torch.no_grad():
        for token in torch.from_numpy(windows).T:
            cache = model(token[:, None], past_key_values=cache, use_cache=True).past_key_values
        qkvz, ba = torch.cat(kept["qkvz"], dim=1), torch.cat(kept["ba"], dim=1)
        q, k, v, _, b, a = layer.fix_query_key_value_ordering(qkvz, ba)
        out = torch.stack([x.reshape(len(windows), -1) for x in kept["out"]], dim=1)
        g = -layer.A_log.float().exp() * softplus(a.float() + layer.dt_bias)
        parts = {"x": torch.cat([u.flatten(2) for u in (q, k, v)], dim=2), "g": g,
                 "beta": b.sigmoid(), "context": out}
        parts = {name: x.reshape(-1, x.shape[2]) for name, x in parts.items()}
        parts["conv"] = layer.conv1d.weight.squeeze(1)
        if layer.conv1d.bias is not None:
            parts["conv_bias"] = layer.conv1d.bias
    objects = {name: x.detach().float().numpy() for name, x in parts.items()}
    return objects | {"q_start": np.arange(len(windows) + 1) * windows.shape[1]}


def capture_write(path, layer, objects):
    facts = {"mixer": "gated-delta", "key_heads": layer.num_k_heads,
             "key_columns": layer.head_k_dim, "activation": layer.activation, "qk_norm": "l2",
             "head_map": "grouped"}
    with h5py.File(path, "x", libver=("earliest", "v110")) as f:  # readable by HDF5 1.10 and later
        for name, part in objects.items():
            f.create_dataset(name, data=part, chunks=part.shape, fletcher32=True,
                             track_times=False)
        for name, value in facts.items():
            f.attrs[name] = value


def check(rows_path, path):
    with h5py.File(path) as f, h5py.File(rows_path) as g:
        rows, want = g["rows"][:], f["context"][:]
    if rows.shape != want.shape:
        sys.exit(f"capture_mixer: '{rows_path}' has rows {rows.shape}, '{path}' contexts "
                 f"{want.shape}")
    far = np.abs(rows - want).max() / np.abs(want).max()
    print(f"{len(rows)} rows, at most {far:.2g} of the largest value from the model's own")


def main():
    o = options_read()
    if o.check:
        check(o.check, o.output)
        return
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    model = model_load(o)
    layer = layer_find(model, o.layer)
    capture_write(o.output, layer, objects_find(model, layer, tokens_read(o, model)))


main()
