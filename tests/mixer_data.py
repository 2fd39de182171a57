# SPDX-License-Identifier: BSD-3-Clause
"""Captures of gated delta nets for tests, with their rows and states.  These are computed in
float64 by plain loops over sequences, tokens and heads."""
import h5py
import numpy as np


def starts(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def normals(random, *shape, size=1.0):
    return (size * random.standard_normal(shape)).astype(np.float32)


def make(random, lengths=(5, 1, 0, 9), heads=4, key_heads=2, d=8, dv=8, width=4, slots=None,
         by_column=False, bias=True, pool=0, **facts):
    """The objects and attributes of a capture.  slots: the input and output slot of each
    sequence."""
    n, c = sum(lengths), 2 * key_heads * d + heads * dv
    objects = {"q_start": starts(lengths),
               "g": -np.abs(normals(random, n, heads, *([d] if by_column else []), size=0.3)),
               "beta": random.random((n, heads)).astype(np.float32)}
    if width:
        objects["x"] = normals(random, n, c)
        objects["conv"] = normals(random, c, width, size=0.5)
        if bias:
            objects["conv_bias"] = normals(random, c, size=0.2)
    else:
        for name, h, w in (("q", key_heads, d), ("k", key_heads, d), ("v", heads, dv)):
            objects[name] = normals(random, n, h, w)
    if pool:
        objects["state/s"] = normals(random, pool, heads, dv, d, size=0.5)
        if width:
            objects["state/taps"] = normals(random, pool, c, width - 1)
        unread = sorted(set(range(pool)) - {i for i, _ in slots})
        objects["state/s"][unread] = np.nan
    if slots:
        objects["slot_in"], objects["slot_out"] = np.array(slots, np.int32).T
    attributes = {"mixer": "gated-delta", "qk_norm": "l2", "head_map": "grouped"}
    if width:
        attributes |= {"activation": "silu", "key_heads": key_heads, "key_columns": d}
    return objects, attributes | facts


def write(path, capture):
    objects, attributes = capture
    with h5py.File(path, "w") as f:
        for name, values in objects.items():
            f[name] = values
        for name, value in attributes.items():
            if value is not None:
                f.attrs[name] = value
    return path


def tokens(f, facts, s, taps):
    """The slice of a sequence's tokens; q, k and v of these after convolution and norm; and the
    taps: the last inputs of the convolution, which the next tokens of the sequence need."""
    part = slice(f["q_start"][s], f["q_start"][s + 1])
    heads = f["beta"].shape[1]
    if "x" in f:
        width = f["conv"].shape[1]
        x = np.concatenate([taps.T, f["x"][part].astype(np.float64)])
        y = np.array([(x[t:t + width].T * f["conv"]).sum(1) for t in range(len(x) - width + 1)])
        y = y.reshape(-1, x.shape[1]) + f.get("conv_bias", 0)
        y = y / (1 + np.exp(-y)) if facts["activation"] == "silu" else y
        key, d = facts["key_heads"], facts["key_columns"]
        q, k, v = np.split(y, [key * d, 2 * key * d], axis=1)
        q, k = q.reshape(-1, key, d), k.reshape(-1, key, d)
        v = v.reshape(-1, heads, v.shape[1] // heads)
        taps = x[len(x) - width + 1:].T
    else:
        q, k, v = (f[name][part].astype(np.float64) for name in "qkv")
    if facts["qk_norm"] == "l2":
        q, k = (u / np.sqrt((u * u).sum(2, keepdims=True) + facts.get("eps", 1e-6)) for u in (q, k))
    q = q * facts.get("scale", q.shape[2] ** -0.5)
    h, key = np.arange(heads), q.shape[1]
    of = h % key if facts.get("head_map") == "tiled" else h // (heads // key)
    return part, q[:, of], k[:, of], v, taps


def reference(capture):
    """In float64: rows (N, heads dv), and the pool of states and taps after all sequences."""
    f, facts = capture
    pool, pool_taps = f.get("state/s"), f.get("state/taps")
    after = [None if a is None else a.astype(np.float64) for a in (pool, pool_taps)]
    rows, none = [], np.full(len(f["q_start"]) - 1, -1)
    for s, (slot, to) in enumerate(zip(f.get("slot_in", none), f.get("slot_out", none))):
        taps = np.zeros((f["x"].shape[1], f["conv"].shape[1] - 1)) if "x" in f else None
        if slot >= 0 and taps is not None:
            taps = pool_taps[slot].astype(np.float64)
        part, q, k, v, taps = tokens(f, facts, s, taps)
        state = (pool[slot] if slot >= 0 else np.zeros((v.shape[1], v.shape[2], k.shape[2]))
                 ).astype(np.float64)
        for t, (g, beta) in enumerate(zip(f["g"][part], f["beta"][part])):
            g = g.reshape(len(g), -1).astype(np.float64)
            for h in range(len(state)):
                state[h] *= np.exp(g[h])
                delta = beta[h] * (v[t, h] - state[h] @ k[t, h])
                state[h] += np.outer(delta, k[t, h])
            rows.append(np.einsum("hji,hi->hj", state, q[t]).ravel())
        if to >= 0:
            after[0][to] = state
            if taps is not None:
                after[1][to] = taps
    return np.array(rows), *after
