# SPDX-License-Identifier: BSD-3-Clause
"""Claim: SAELens takes what to_saelens() makes from a dictionary and from a run.  Its matching
pursuit finds codes that explain what the log of the export says.  For an encoder of `train` it
finds the codes of `sagitta encode`."""
import os
import tempfile
import warnings

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


@claim("SAELens takes the dictionary, and its codes explain nearly as much as Sagitta's")
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


TRAINED = {"a row's largest": {}, "by a threshold": {"selection": "batch", "l0": 8},
           "nested": {"nested": "64,256"},
           "nested, by a threshold": {"nested": "64,256", "selection": "batch", "l0": 8}}


@claim("codes of encoders that were trained are those of `sagitta encode --encoder`, to 1e-5")
def check_trained(at, fitted, rows):
    for i, (name, how) in enumerate(TRAINED.items()):
        run = sagitta.train(fitted, atoms=256, top_s=8, steps=40, progress=None, **how)
        made = sagitta.encode(rows, encoder=run, progress=None)
        sagitta.export(run, f"{at}/sae{i}", to="saelens", rows=rows, progress=None)
        sae = sae_lens.SAE.load_from_disk(f"{at}/sae{i}")
        with torch.no_grad():
            codes = sae.encode(rows)
            described = sae.decode(codes)
        own = torch.from_numpy(made.codes.toarray())
        far = float((codes - own).abs().max() / own.abs().max())
        off = sagitta.explained_variance(rows, described) - made.metrics["explained_variance"]
        ok(far < 1e-5 and abs(off) < 1e-5 and made.codes.nnz > 100,
           f"{name}, {type(sae).__name__}: codes are {far} off, what they explain {off}")


with tempfile.TemporaryDirectory() as folder:
    with h5py.File(ROWS) as f:
        fitted = f["rows"][:2048].astype("f4")
    np.save(f"{folder}/rows.npy", fitted)
    need(program("fit", "--rows", f"{folder}/rows.npy", "--atoms", 256, "--top-s", 8, "--sweeps", 1,
                 "--output", f"{folder}/run"), "fit")
    check_lens(f"{folder}/run", torch.from_numpy(fitted[:128]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are few rows
        check_trained(folder, fitted, torch.from_numpy(fitted[:128]))
done_testing()
