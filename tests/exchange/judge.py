#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The explained variance of rows.npy by an autoencoder's folder, as its own package loads it and
computes it: judge.py saelens|sparsify FOLDER rows.npy"""
import os
import sys

import numpy as np
import torch

os.environ["SPARSIFY_DISABLE_TRITON"] = "1"  # on a CPU
program, folder, rows = sys.argv[1:]
x = torch.from_numpy(np.load(rows))
with torch.no_grad():
    if program == "saelens":
        from sae_lens import SAE
        made = SAE.load_from_disk(folder)(x)
    else:
        from sparsify import SparseCoder
        made = SparseCoder.load_from_disk(folder)(x).sae_out
x, made = x.double(), made.double()
print(float(1 - ((x - made) ** 2).sum() / ((x - x.mean(0)) ** 2).sum()))
