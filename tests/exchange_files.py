# SPDX-License-Identifier: BSD-3-Clause
"""Autoencoders of other programs, for the tests of import, export and encode --encoder.  The
folders are those that these programs wrote (tests/exchange/make.py).  They are read here without
these programs."""
import json
import os
import struct

import numpy as np

from shard_files import safetensors
from tap import SOURCE

MADE = os.path.join(SOURCE, "tests", "exchange")
FOLDERS = sorted(f for f in os.listdir(MADE) if os.path.isdir(os.path.join(MADE, f))
                 and os.path.exists(os.path.join(MADE, f, "expected.safetensors")))
TYPES = {"F32": "f4", "F16": "f2", "BF16": "u2", "F64": "f8", "I32": "i4", "I64": "i8"}


def raw(path):
    """{name: (dtype, values as they are stored)}."""
    with open(path, "rb") as f:
        text = f.read()
    length = struct.unpack("<Q", text[:8])[0]
    header = json.loads(text[8:8 + length])
    header.pop("__metadata__", None)
    values = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values[name] = entry["dtype"], np.frombuffer(
            text[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
    return values


def widen(dtype, values):
    return (values.astype("u4") << 16).view("f4") if dtype == "BF16" else values.astype("f4")


def tensors(path):
    """{name: float32 values} of the tensors that have floats."""
    return {n: widen(*v) for n, v in raw(path).items() if v[0][0] != "I"}


def weights_of(folder):
    return next(os.path.join(folder, f) for f in sorted(os.listdir(folder))
                if f.endswith(".safetensors") and not f.startswith("expected"))


def settings_of(folder):
    return next(os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".json"))


def change(folder, edit):
    """Write the weights of a folder again.  edit changes {name: (dtype, values)}."""
    path = weights_of(folder)
    values = raw(path)
    edit(values)
    safetensors(path, {n: v for n, v in values.items()})


def straight(folder):
    """decoder, mean, weights, bias and threshold of a folder in float32, with one row per atom;
    None for parts that it does not have."""
    t = tensors(weights_of(folder))
    decoder = t["W_dec"] if "W_dec" in t else t["decoder.weight"].T
    mean = next(t[n] for n in ("b_dec", "bias", "decoder.bias") if n in t)
    weights = t["W_enc"].T if "W_enc" in t else t.get("encoder.weight")
    bias = t.get("b_enc", t.get("encoder.bias"))
    return decoder, mean, weights, bias, t.get("threshold")
