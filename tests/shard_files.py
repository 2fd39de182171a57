# SPDX-License-Identifier: BSD-3-Clause
"""Rows in files of every format that is read, for the tests of shards."""
import json
import os
import struct

import h5py
import numpy as np

N, P = 5003, 24  # N is a prime number, so no multiple of a block or of a number of ranks


def safetensors(path, tensors, header=None, tail=b"", length=None):
    """Write a file of safetensors with {name: (dtype, array)}, or with a given header."""
    at, entries, data = 0, {}, b""
    for name, (dtype, values) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": list(values.shape),
                         "data_offsets": [at, at + values.nbytes]}
        data += values.tobytes()
        at += values.nbytes
    text = header if header is not None else json.dumps(entries).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text) if length is None else length) + text + data + tail)


def brain(values):
    """The bits of values that bfloat16 holds exactly."""
    return (values.view("u4") >> 16).astype("u2")


def values_made():
    """Values that float16 and bfloat16 hold exactly."""
    random = np.random.default_rng(5)
    return (random.integers(-128, 128, (N, P)) / 32).astype("f4")


def cuts_of(sizes):
    at = 0
    for size in sizes:
        yield at, at + size
        at += size


def shard_write(folder, i, part):
    """Write one shard, in one of the formats.  Returns its name for --rows."""
    kind = i % 6
    path = f"{folder}/s{i:03d}"
    if kind == 0:
        np.save(f"{path}.npy", part)
        return f"{path}.npy"
    if kind == 1:
        with h5py.File(f"{path}.h5", "w") as f:
            f.create_dataset("deep/x", data=part.astype("f8"), chunks=(1, P), compression="gzip")
        return f"{path}.h5:/deep/x"
    if kind == 2:
        safetensors(f"{path}.safetensors", {"rows": ("F32", part)})
        return f"{path}.safetensors"
    if kind == 3:
        other = np.zeros(3, "f4")
        safetensors(f"{path}.safetensors", {"a": ("F32", other), "x": ("F16", part.astype("f2")),
                                            "b": ("I32", other)})
        return f"{path}.safetensors:x"
    if kind == 4:
        safetensors(f"{path}.safetensors", {"only": ("BF16", brain(part))})
        return f"{path}.safetensors"
    np.save(f"{path}.npy", part.astype(">f2"))
    return f"{path}.npy"


def shards_write(folder, values, sizes):
    os.makedirs(folder)
    return [shard_write(folder, i, values[a:b]) for i, (a, b) in enumerate(cuts_of(sizes))]
