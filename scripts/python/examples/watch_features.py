#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print the strongest atoms of a model's states, token by token, from a running `sagitta serve`.

usage: watch_features.py --model DIR [options]

The model and the tokens are those of write_rows.py.  The states after a layer are sent to the
server window by window, as the model computes them.  Each line shows a token, then its atoms with
their codes.  With --watch, only these atoms are shown, and only tokens at which one of them fires.
Needs NumPy, SciPy, h5py and pyzmq."""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from write_rows import TOKENS, Encoder, tokens_read  # noqa: E402, after the path is set

import sagitta.live  # noqa: E402

WORDS = os.path.join(os.path.dirname(TOKENS), "minilm-l3-kjv-words.txt")


def options_read():
    flags = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add = flags.add_argument
    add("--model", required=True, help="folder with config.json and model.safetensors")
    add("--listen", help="the address of the server, if it was given one")
    add("--keys", help="a folder with server.pub and client.secret, where it has keys")
    add("--top", type=int, default=3, help="atoms of a token")
    add("--watch", help="these atoms alone, as in 17,42")
    add("--layer", type=int, default=3, help="rows are the states after so many layers")
    add("--tokens", default=TOKENS, help="a .npy file with an integer for each token")
    add("--words", default=WORDS, help="a text file with a line for each integer")
    add("--first", type=int, default=0, help="the first token, the beginning of a window")
    add("--count", type=int, help="so many tokens, whole windows; else all that follow")
    add("--window", type=int, default=128)
    add("--begin", type=int, default=101, help="the token before a window")
    add("--end", type=int, default=102, help="the token after it")
    return flags.parse_args()


def states(model, layer, window):
    x = model.embed(window[None])
    for i in range(layer):
        x = model.layer(i, x)
    return x[0, 1:-1]


def main():
    o = options_read()
    model, tokens = Encoder(o.model), tokens_read(o)
    with open(o.words, encoding="utf-8") as f:
        words = f.read().split("\n")
    with sagitta.live.connect(o.listen, keys=o.keys) as server:
        if o.watch:
            server.watch([int(atom) for atom in o.watch.split(",")])
        for window in tokens:
            seen = server.encode(states(model, o.layer, window), watched=bool(o.watch),
                                 top=0 if o.watch else o.top)
            for token, n, atoms, codes in zip(window[1:-1], seen.count, seen.atoms, seen.codes):
                if n or not o.watch:
                    print(words[token], *(f"{a}:{c:.4g}" for a, c in zip(atoms[:n], codes[:n])))


if __name__ == "__main__":
    main()
