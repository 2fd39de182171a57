# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the numbers of a capture may have any type that holds them exactly.  Numbers that are not
allowed are refused, and the message has the number."""
import os
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, fails, need, ok, sagitta, same

H, H_KV, D, N = 4, 2, 8, 40
RANDOM = np.random.default_rng(7)
ARRAYS = {"q": RANDOM.standard_normal((N, H, D)).astype(np.float32),
          "k": RANDOM.standard_normal((N, H_KV, D)).astype(np.float32),
          "v": RANDOM.standard_normal((N, H_KV, D)).astype(np.float32)}


def capture(path, arrays=None, **facts):
    with h5py.File(path, "w") as f:
        for name, x in {**ARRAYS, **(arrays or {})}.items():
            f[name] = x
        f.attrs.update({"causal": 1, **facts})
    return path


def harvest(at, rows, arrays=None, **facts):
    return sagitta("harvest", "--capture", capture(f"{at}/c.h5", arrays, **facts),
                   "--output", f"{at}/{rows}.h5", "--force")


@claim("numbers of a capture may have any type that holds them exactly")
def check_taken(at):
    plain = {"causal": 1, "window": 4, "scale": 2.0, "softcap": 30.0}
    need(harvest(at, "plain", **plain), "plain")
    for name, values in {
            "causal": [True, np.True_, np.uint8(1), 1.0, np.float32(1), [1]],
            "window": [4.0, np.float16(4), np.uint64(4), np.int8(4)],
            "scale": [2, np.float16(2), np.uint16(2), np.float32(2), [2.0]],
            "softcap": [30, np.int64(30), np.float32(30), np.float16(30)]}.items():
        for value in values:
            need(harvest(at, "other", **{**plain, name: value}), f"{name} {value!r}")
            same(f"{at}/plain.h5", f"{at}/other.h5", f"{name} {type(value)}")
    need(harvest(at, "plain", causal=0, softcap=0.0), "not causal")
    need(harvest(at, "other", causal=False, softcap=False, window=0.0), "False")
    same(f"{at}/plain.h5", f"{at}/other.h5", "False")
    need(harvest(at, "wide", window=2 ** 62), "a window of 2^62")


@claim("numbers that are not allowed, and names that other programs use, are refused")
def check_refused(at):
    for facts, words in [
            ({"soft_cap": 5.0}, ["'soft_cap'", "call the attribute 'softcap'"]),
            ({"sliding_window": 4}, ["'sliding_window'", "'window'"]),
            ({"window": 4.5}, ["'window'", "4.5", "no number of positions"]),
            ({"window": np.nan}, ["'window'", "nan"]),
            ({"window": np.inf}, ["'window'", "inf"]),
            ({"window": -4.0}, ["'window'", "-4"]),
            ({"causal": 0.5}, ["'causal'", "0.5, not 0 or 1"]),
            ({"causal": 2.0}, ["'causal'", "2, not 0 or 1"]),
            ({"causal": "yes"}, ["'causal'", "not one number"]),
            ({"causal": [1, 1]}, ["'causal'", "not one number"]),
            ({"scale": np.nan}, ["'scale'", "nan"]),
            ({"scale": False}, ["'scale'", "0, not positive"]),
            ({"scale": 1 + 2j}, ["'scale'", "not one number"]),
            ({"softcap": np.inf}, ["'softcap'", "inf"]),
            ({"softcap": np.nan}, ["'softcap'", "nan"]),
            ({"softcap": -1}, ["'softcap'", "-1"])]:
        fails(harvest(at, "bad", **facts), 65, words, f"{facts}")
    ok(not os.path.exists(f"{at}/bad.h5"), "no result is left")


@claim("a scale or a softcap that float32 cannot hold is refused")
def check_range(at):
    for scale, softcap, words in [
            (1e-42, 1e5, ["'scale'", "1e-42", "'softcap' 100000", "are 0 and"]),
            (0.25, 1e-300, ["0.25", "1e-300", "are inf and 0"]),
            (1e300, 1e300, ["'softcap'", "1e+300", "are 1 and inf"]),
            (1e-60, 1e-60, ["'softcap'", "1e-60", "are 1 and 0 in float32"]),
            (1e300, 0, ["'scale'", "1e+300", "and inf in float32"]),
            (1e-300, 0, ["'scale'", "1e-300", "and 0 in float32"])]:
        fails(harvest(at, "bad", scale=scale, softcap=softcap), 65, words, f"{scale} {softcap}")
    for scale, softcap in (1e-42, 0), (1e-42, 1e-3), (0.25, 1e30):
        need(harvest(at, "good", scale=scale, softcap=softcap), f"{scale} {softcap}")


@claim("bits of bfloat16 without the attribute dtype are refused, and the message names the "
       "attribute")
def check_bits(at):
    bits = (ARRAYS["k"].view(np.uint32) >> 16).astype(np.uint16)
    for values in bits, bits.astype(np.int64):
        fails(harvest(at, "bad", {"k": values}), 65,
              ["'/k'", "holds integers", "store float16", 'dtype = "bfloat16"'], values.dtype)


with tempfile.TemporaryDirectory() as main:
    check_taken(main)
    check_refused(main)
    check_range(main)
    check_bits(main)
done_testing()
