# SPDX-License-Identifier: BSD-3-Clause
"""Claim: scripts/python/examples/write_rows.py writes the states of a BERT encoder, token by token,
as its formulas give them in float64.  Its tokens are those of the rows of input/.  From the
captures of capture_attention.py, also from the one in input/, `harvest` computes the model's own
attention."""
import math
import os
import subprocess
import sys
import tempfile

from peer import PACKAGE, peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok

peer_needed("numpy", "h5py", "scipy")

import h5py  # noqa: E402, after a Python that has them was found
import numpy as np  # noqa: E402

from bert_model import HEADS, LAYERS, P, WINDOW, WORDS, model_made  # noqa: E402

WINDOWS = 20
NEAR = 2e-3  # of states of size 1 that are rounded to float16
CLOSE = 2e-6  # of the largest value: float32 sums of a row in two orders


def norm(w, name, x):
    return [(v - v.mean()) / v.std() * w[name + ".weight"] + w[name + ".bias"] for v in x]


def linear(w, name, v):
    return w[name + ".weight"] @ v + w[name + ".bias"]


def layer(w, at, x):
    """The states after a layer, from a list of those before it: one token and one head at a
    time."""
    q, k, v = ([linear(w, f"{at}attention.self.{n}", t) for t in x]
               for n in ("query", "key", "value"))
    size, mixed = P // HEADS, []
    for own in q:
        heads = []
        for h in range(0, P, size):
            part = slice(h, h + size)
            scores = np.exp([own[part] @ other[part] / math.sqrt(size) for other in k])
            heads.append(sum(s * t[part] for s, t in zip(scores / scores.sum(), v)))
        mixed.append(np.concatenate(heads))
    x = norm(w, at + "attention.output.LayerNorm",
             [t + linear(w, at + "attention.output.dense", m) for t, m in zip(x, mixed)])
    inner = [[0.5 * u * (1 + math.erf(u / math.sqrt(2))) for u in
              linear(w, at + "intermediate.dense", t)] for t in x]
    return norm(w, at + "output.LayerNorm",
                [t + linear(w, at + "output.dense", np.array(i)) for t, i in zip(x, inner)])


def states(w, window, layers):
    x = norm(w, "embeddings.LayerNorm",
             [w["embeddings.word_embeddings.weight"][t] +
              w["embeddings.position_embeddings.weight"][i] +
              w["embeddings.token_type_embeddings.weight"][0]
              for i, t in enumerate([1, *window, 2])])
    for i in range(layers):
        x = layer(w, f"encoder.layer.{i}.", x)
    return x[1:-1]


def example(name, *words):
    return subprocess.run([sys.executable, "-B", f"{PACKAGE}/examples/{name}", *words],
                          capture_output=True, text=True)


def write(folder, name, *words, program="write_rows.py"):
    return example(program, "--model", folder, "--tokens", f"{folder}/tokens.npy", "--window",
                   str(WINDOW), "--begin", "1", "--end", "2", "--output", f"{folder}/{name}",
                   *words)


def harvest_check(name, capture, folder):
    """`harvest` gives the output of the model's own attention, and --check prints the
    difference."""
    rows = f"{folder}/{name}/rows.h5"
    done = subprocess.run([SAGITTA, "harvest", "--capture", capture, "--output",
                           os.path.dirname(rows)], capture_output=True, text=True)
    if not ok(done.returncode == 0, f"{name}: {done.stderr[-300:]}"):
        return
    with h5py.File(capture) as f, h5py.File(rows) as g:
        want = f["context"][:].reshape(len(f["context"]), -1)
        far = np.abs(g["rows"][:] - want).max() / np.abs(want).max()
    ok(far < CLOSE, f"{name}: {far} away")
    done = example("capture_attention.py", "--check", rows, "--output", capture)
    ok(done.returncode == 0 and f"{len(want)} rows, at most {far:.2g} of" in done.stdout,
       f"{name}: {done.stdout}{done.stderr[-300:]}")


@claim("the rows are the states after a layer")
def check_rows(folder):
    weights = model_made(folder)
    tokens = np.random.default_rng(1).integers(3, WORDS, (WINDOWS, WINDOW))
    np.save(f"{folder}/tokens.npy", tokens.reshape(-1).astype("<u2"))
    for name, layers, first, count in ("all", 2, 0, WINDOWS), ("some", 1, 3, 5), ("rest", 2, 17, 3):
        words = ["--layer", layers, "--first", first * WINDOW]
        words += ["--count", count * WINDOW] if name != "rest" else []
        done = write(folder, name, *map(str, words))
        if not ok(done.returncode == 0, f"{name}: {done.stderr[-300:]}"):
            continue
        part = tokens[first:first + count]
        want = np.concatenate([states(weights, window, layers) for window in part])
        with h5py.File(f"{folder}/{name}") as f:
            far = np.abs(f["rows"][:] - want).max()
            ok(f["rows"].dtype == "f2" and far < NEAR * np.abs(want).max(), f"{name}: {far} away")
            ok(np.array_equal(f["token"][:], part.reshape(-1)) and
               f["window"][0] == first and f["window"][-1] == first + count - 1, f"{name}: tokens")
    for words in ["--first", "5"], ["--count", "999999"], ["--layer", "3"]:
        done = write(folder, "bad", *words)
        ok(done.returncode == 1 and "write_rows: " in done.stderr and
           not os.path.exists(f"{folder}/bad"), f"{words}: {done.stderr[-300:]}")
    ok(write(folder, "all").returncode != 0, "a file that is there is left")


@claim("harvest of a capture is the model's own attention")
def check_capture(folder):
    tokens = np.load(f"{folder}/tokens.npy")[:3 * WINDOW].reshape(3, WINDOW)
    done = write(folder, "capture", "--layer", "1", "--count", str(tokens.size),
                 program="capture_attention.py")
    if ok(done.returncode == 0, done.stderr[-300:]):
        with h5py.File(f"{folder}/capture") as f:
            ok(np.array_equal(f["token"][:].reshape(3, -1)[:, 1:-1], tokens), "tokens")
        harvest_check("made", f"{folder}/capture", folder)
    done = write(folder, "bad", "--layer", "2", program="capture_attention.py")
    ok(done.returncode == 1 and "capture_attention: " in done.stderr and
       not os.path.exists(f"{folder}/bad"), f"--layer 2: {done.stderr[-300:]}")
    capture = os.path.join(SOURCE, "input", "minilm-l3-kjv-attention.h5")
    harvest_check("ours", capture, folder)
    done = example("capture_attention.py", "--check", f"{folder}/made/rows.h5", "--output", capture)
    ok(done.returncode == 1 and "has rows" in done.stderr, f"other rows: {done.stderr[-300:]}")


@claim("the tokens are those of the rows of input/")
def check_tokens():
    tokens = np.load(os.path.join(SOURCE, "input", "minilm-l3-kjv-tokens.npy"))
    at = 0
    for name in "8k", "next":
        with h5py.File(os.path.join(SOURCE, "input", f"minilm-l3-kjv-{name}.h5")) as f:
            part = f["token"][:]
            ok(np.array_equal(tokens[at:at + len(part)], part) and len(f["rows"]) == len(part),
               name)
            at += len(part)
    ok(at == 10240 and len(tokens) == 32768, f"{at} of {len(tokens)}")
    with h5py.File(os.path.join(SOURCE, "input", "minilm-l3-kjv-attention.h5")) as f:
        ok(np.array_equal(f["token"][:].reshape(2, 130)[:, 1:-1].reshape(-1), tokens[:256]),
           "tokens of the capture")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as main:
        check_rows(main)
        check_capture(main)
    check_tokens()
    done_testing()
