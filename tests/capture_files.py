# SPDX-License-Identifier: BSD-3-Clause
"""Captures for tests of harvest: plain captures, and pools whose spare cells hold NaN and
infinity."""
import h5py
import numpy as np

TYPES = ("float32", "float16", "bfloat16")


def starts(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def of_type(x, name):
    """float32 numbers converted to a type; bfloat16 as its bits."""
    return (x.view(np.uint32) >> 16).astype(np.uint16) if name == "bfloat16" else x.astype(name)


def wide(x):
    """Numbers of a capture as float32."""
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else x.astype("f4")


def capture_write(path, arrays, **facts):
    """Write a capture.  arrays: {name: array}; names in a pool are kv/k and so on.  facts: its
    attributes; the capture is causal unless they say otherwise."""
    with h5py.File(path, "w") as f:
        for name, values in arrays.items():
            f[name] = values
            if values.dtype == np.uint16:
                f[name].attrs["dtype"] = "bfloat16"
        for name, value in {"causal": 1, **facts}.items():
            f.attrs[name] = value
    return path


def junk(random, shape, dtype):
    """An array of NaN and infinities."""
    if dtype == np.uint16:
        return random.choice(np.array([0x7FC0, 0x7F80, 0xFF80], np.uint16), shape)
    return random.choice(np.array([np.nan, np.inf, -np.inf], dtype), shape)


def pool_make(random, k, v, lengths, size, order=None, spare=3):
    """The keys and values [positions][heads][columns] of sequences, in blocks of a pool.  Blocks
    are in the given order, or in a random one.  Every cell without a position holds NaN or an
    infinity."""
    needed = [-(-n // size) for n in lengths]
    first, blocks = starts(lengths), sum(needed) + spare
    order = iter(random.permutation(blocks) if order is None else order)
    pools = [junk(random, (blocks, size, *x.shape[1:]), x.dtype) for x in (k, v)]
    table = np.full((len(lengths), max(needed)), -1, np.int32)
    for s, n in enumerate(lengths):
        for b in range(needed[s]):
            block = table[s, b] = next(order)
            count = min(size, n - b * size)
            for pool, x in zip(pools, (k, v)):
                pool[block, :count] = x[first[s] + b * size:][:count]
    return {"kv/k": pools[0], "kv/v": pools[1], "kv/table": table,
            "kv/length": np.array(lengths, np.int64)}


def harvested(path):
    """The bits of the rows of a result, and of the logarithms of their softmax sums."""
    with h5py.File(path) as f:
        return f["rows"][:].view(np.uint32), f["lse"][:].view(np.uint32)
