# SPDX-License-Identifier: BSD-3-Clause
"""Claim: scripts/python/examples/faithfulness.py reads a BERT encoder, replaces the states of a
layer, and finds what PyTorch's own layers find.  A dictionary that describes the states completely
changes nothing.  Rows of another layer are refused; with the word "figures" this is left out."""
import json
import os
import struct
import subprocess
import sys
import tempfile

from peer import PACKAGE, peer_needed
from tap import SAGITTA, claim, done_testing, ok, sagitta as program

peer_needed("torch", "numpy", "h5py")

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)  # libsagitta.so is beside it
import h5py  # noqa: E402, after a Python that has them was found
import numpy as np  # noqa: E402
import torch  # noqa: E402

import sagitta.torch  # noqa: E402

P, HEADS, INNER, LAYERS, WORDS, WINDOW, WINDOWS, LAYER = 32, 4, 64, 4, 60, 16, 40, 2
AGREE = 2e-4  # for figures printed with four digits, and float32 sums in another order
# The name of a part in PyTorch's layer: its name in a file of BERT's weights.
PARTS = {"self_attn.out_proj": "attention.output.dense", "linear1": "intermediate.dense",
         "linear2": "output.dense", "norm1": "attention.output.LayerNorm",
         "norm2": "output.LayerNorm"}


def safetensors_write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, t in tensors.items():
        size = t.numel() * 4
        header[name] = dict(dtype="F32", shape=list(t.shape), data_offsets=[at, at + size])
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.detach().contiguous().numpy().tobytes())


def model_made(folder):
    """Write a random encoder of PyTorch's layers as BERT.  Returns (embeddings, layers)."""
    torch.manual_seed(0)
    layers = [torch.nn.TransformerEncoderLayer(P, HEADS, INNER, 0.0, "gelu", 1e-12, True).eval()
              for _ in range(LAYERS)]
    table = {"embeddings.word_embeddings.weight": torch.randn(WORDS, P),
             "embeddings.position_embeddings.weight": torch.randn(64, P),
             "embeddings.token_type_embeddings.weight": torch.randn(2, P),
             "embeddings.LayerNorm.weight": torch.rand(P) + 0.5,
             "embeddings.LayerNorm.bias": torch.randn(P)}
    tensors = dict(table)
    for i, layer in enumerate(layers):
        for parameter in layer.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        for kind in "weight", "bias":
            parts = getattr(layer.self_attn, "in_proj_" + kind).chunk(3)
            for name, part in zip(("query", "key", "value"), parts):
                tensors[f"encoder.layer.{i}.attention.self.{name}.{kind}"] = part
            for ours, theirs in PARTS.items():
                part = layer.get_submodule(ours)
                tensors[f"encoder.layer.{i}.{theirs}.{kind}"] = getattr(part, kind)
    safetensors_write(f"{folder}/model.safetensors", tensors)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as f:
        json.dump(dict(num_hidden_layers=LAYERS, num_attention_heads=HEADS, hidden_act="gelu",
                       layer_norm_eps=1e-12), f)
    return table, layers


def embedded(table, tokens):
    x = table["embeddings.word_embeddings.weight"][tokens]
    x = x + table["embeddings.position_embeddings.weight"][:tokens.shape[1]]
    x = x + table["embeddings.token_type_embeddings.weight"][0]
    return torch.nn.functional.layer_norm(x, (P,), table["embeddings.LayerNorm.weight"],
                                          table["embeddings.LayerNorm.bias"], 1e-12)


def figures_of(full, other):
    full, other = full.double(), other.double()
    variance = 1 - ((full - other) ** 2).sum() / ((full - full.mean(0)) ** 2).sum()
    cosine = (full * other).sum(1) / (full.norm(dim=1) * other.norm(dim=1))
    return [float(variance), float(cosine.mean())]


def expected(layers, x, described, mean):
    """The expected lines of four figures, for states after each layer from LAYER on, and for
    embeddings."""
    kinds = [x, described, mean]
    lines = [[k[:, 1:-1].flatten(0, 1) for k in kinds]]
    for layer in layers[LAYER:]:
        kinds = [layer(k) for k in kinds]
        lines.append([k[:, 1:-1].flatten(0, 1) for k in kinds])
    lines.append([torch.nn.functional.normalize(k.mean(1), dim=1) for k in kinds])
    return [figures_of(a, b) + figures_of(a, c) for a, b, c in lines]


def example(folder, run, *words):
    done = subprocess.run([sys.executable, "-B", f"{PACKAGE}/examples/faithfulness.py", "--model",
                           folder, "--rows", f"{folder}/rows.h5", "--run", f"{folder}/{run}",
                           "--layer", str(LAYER), "--window", str(WINDOW), "--begin", "1",
                           "--end", "2", "--device", "cpu", *words], capture_output=True, text=True)
    lines = [line.split()[-4:] for line in done.stdout.splitlines()
             if line.startswith(("after layer", "sentence"))]
    return done, np.array(lines, float) if done.returncode == 0 else None


@claim("rows of another layer, and rows that are no whole windows, are refused")
def refusals_check(folder):
    for words, said in ((["--layer", "1"], "give the model, layer and window"),
                        (["--layer", str(LAYERS)], "before the last"),
                        (["--first", "5"], "a multiple of 16"),
                        (["--first", str(WINDOW * WINDOWS)], "a window behind it")):
        done, _ = example(folder, "some", *words)
        ok(done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr,
           f"{words}: {done.stderr[-200:]}")


@torch.no_grad()
def main():
    if hasattr(torch.backends, "mha"):  # of PyTorch 2
        torch.backends.mha.set_fastpath_enabled(False)  # the plain formulas
    with tempfile.TemporaryDirectory() as folder:
        table, layers = model_made(folder)
        tokens = torch.randint(3, WORDS, (WINDOWS, WINDOW))
        ends = torch.full((WINDOWS, 1), 1), torch.full((WINDOWS, 1), 2)
        x = embedded(table, torch.cat([ends[0], tokens, ends[1]], 1))
        for layer in layers[:LAYER]:
            x = layer(x)
        with h5py.File(f"{folder}/rows.h5", "w") as f:
            f["rows"] = x[:, 1:-1].flatten(0, 1).numpy()
            f["token"] = tokens.flatten().numpy().astype("i4")
        for name, s in ("some", 4), ("all", P):
            done = program("fit", "--rows", f"{folder}/rows.h5", "--atoms", 64, "--top-s", s,
                           "--codes", "signed", "--rho", 0, "--sweeps", 1, "--holdout-share", 0,
                           "--output", f"{folder}/{name}")
            ok(done.returncode == 0, f"a fit, {s} a row {done.stderr[-200:] * done.returncode}")
        with claim("the figures are those of PyTorch's layers"):
            d = sagitta.torch.Dictionary.open(f"{folder}/some")
            for first in 0, 10:
                done, got = example(folder, "some", "--first", str(first * WINDOW))
                part = x[first:]
                described, mean = part.clone(), part.clone()
                described[:, 1:-1], mean[:, 1:-1] = d(part[:, 1:-1]), d.b_dec
                want = np.array(expected(layers, part, described, mean))
                if ok(got is not None and got.shape == want.shape, done.stderr[-300:]):
                    far = abs(got - want).max()
                    ok(far <= AGREE, f"from window {first}: {far:.1e} away\n{got}\n{want}")
            ok(0 < want[0, 0] < 0.999 and want[-1, 0] > want[-1, 2] + 0.1, "something is lost")
        with claim("a dictionary that describes the states completely changes nothing"):
            done, got = example(folder, "all")
            ok(got is not None and abs(got[:, :2] - 1).max() <= AGREE, f"{got} {done.stderr}")
        if "figures" not in sys.argv:  # of no version of PyTorch
            refusals_check(folder)
    done_testing()


main()
