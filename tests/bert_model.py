# SPDX-License-Identifier: BSD-3-Clause
"""Writes the files of a small BERT encoder with random weights."""
import json
import struct

import numpy as np

P, HEADS, INNER, WORDS, WINDOW, LAYERS = 12, 3, 20, 40, 8, 2


def model_made(folder):
    """Write a file of random weights; returns the weights."""
    random = np.random.default_rng(0)
    sizes = {"query": (P, P), "key": (P, P), "value": (P, P)}
    shapes = {"embeddings.word_embeddings.weight": (WORDS, P),
              "embeddings.position_embeddings.weight": (WINDOW + 2, P),
              "embeddings.token_type_embeddings.weight": (2, P)}
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        parts = {at + f"attention.self.{n}": s for n, s in sizes.items()}
        parts |= {at + "attention.output.dense": (P, P), at + "intermediate.dense": (INNER, P),
                  at + "output.dense": (P, INNER)}
        for name, shape in parts.items():
            shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
        for name in "attention.output.LayerNorm", "output.LayerNorm":
            shapes |= {at + name + ".weight": (P,), at + name + ".bias": (P,)}
    shapes |= {f"embeddings.LayerNorm.{n}": (P,) for n in ("weight", "bias")}
    weights = {n: random.standard_normal(s).astype("<f4") * 0.5 for n, s in shapes.items()}
    header, begin = {}, 0
    for name, w in weights.items():
        header["bert." + name] = dict(dtype="F32", shape=w.shape,
                                      data_offsets=[begin, begin + w.nbytes])
        begin += w.nbytes
    text = json.dumps(header).encode()
    with open(f"{folder}/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(w.tobytes() for w in
                                                               weights.values()))
    with open(f"{folder}/config.json", "w", encoding="utf-8") as f:
        json.dump(dict(num_hidden_layers=LAYERS, num_attention_heads=HEADS, hidden_act="gelu"), f)
    return {n: w.astype("f8") for n, w in weights.items()}
