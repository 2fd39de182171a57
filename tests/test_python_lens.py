# SPDX-License-Identifier: BSD-3-Clause
"""Claim: SAELens takes what to_saelens() gives, of a dictionary and of a run, and finds codes by
matching pursuit that explain what the log of the export says."""
import os
import tempfile

from peer import peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, need, ok, sagitta as program

peer_needed("sae_lens", "torch", "h5py")

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)  # libsagitta.so is beside it
import h5py  # noqa: E402, after a Python that has them was found
import numpy as np  # noqa: E402
import sae_lens  # noqa: E402
import torch  # noqa: E402

import sagitta  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")


@claim("SAELens takes it, and its codes explain as much")
def check_lens(run, rows):
    d = sagitta.Dictionary.open(run)
    for one in d, sagitta.open(run):
        sae = one.to_saelens(rows, progress=None)
        ok(isinstance(sae, sae_lens.SAE), f"{type(sae)}")
        with torch.no_grad():
            codes = sae.encode(rows)
            made = sae.decode(codes)
        own = d.explained_variance(rows)
        theirs = sagitta.explained_variance(rows, made)
        ok(own - 0.1 < theirs <= own + 1e-4, f"explained {theirs}, Sagitta {own}")
        at_most = int((codes != 0).sum(1).max())
        ok(0 < at_most <= d.top_s, f"{at_most} atoms a row")


with tempfile.TemporaryDirectory() as folder:
    with h5py.File(ROWS) as f:
        fitted = f["rows"][:2048].astype("f4")
    np.save(f"{folder}/rows.npy", fitted)
    need(program("fit", "--rows", f"{folder}/rows.npy", "--atoms", 256, "--top-s", 8, "--sweeps", 1,
                 "--output", f"{folder}/run"), "fit")
    check_lens(f"{folder}/run", torch.from_numpy(fitted[:128]))
done_testing()
