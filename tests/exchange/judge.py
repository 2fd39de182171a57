#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print the explained variance of the rows of rows.npy by the autoencoder in a folder.  The package
that made the autoencoder loads it and reconstructs the rows:
judge.py saelens|sparsify FOLDER rows.npy"""
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
