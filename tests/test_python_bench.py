# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta.torch.Dictionary has what SAEBench needs of an SAE: its members, shapes and types,
and a to() that moves all of it.  tests/test_saebench.py runs SAEBench itself."""
import os
import tempfile

from peer import peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok, sagitta as program

peer_needed("torch", "numpy", "h5py")

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)  # libsagitta.so is beside it
import h5py  # noqa: E402, after a Python that has them was found
import numpy as np  # noqa: E402
import torch  # noqa: E402

from sagitta.torch import Dictionary  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
K, S, BATCH, LENGTH = 256, 8, 4, 32
CLOSE = 1e-4  # relative, and absolute near 0: sums of float32 in another order


def close(a, b):
    return np.allclose(np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=CLOSE, atol=CLOSE)


@claim("the module has the members of SAEBench's base class")
def check_members(run, x):
    d = Dictionary.open(run)
    p = x.shape[-1]
    shapes = {"W_dec": (K, p), "W_enc": (p, K), "b_dec": (p,), "b_enc": (K,)}
    for dtype in torch.float32, torch.float64, torch.bfloat16:
        same = d.to(dtype=dtype, device="cpu")
        ok(same is d and d.dtype == dtype and d.device.type == "cpu", f"to({dtype})")
        for name, shape in shapes.items():
            value = getattr(d, name)
            ok(tuple(value.shape) == shape and value.dtype == dtype and value.device == d.device,
               f"{name} {tuple(value.shape)} {value.dtype}")
        said = d.cfg.to_dict()
        ok(said == {"d_in": p, "d_sae": K, "dtype": str(dtype)[6:], "device": "cpu"}, f"{said}")
        codes = d.encode(x.to(dtype))
        ok(codes.shape == (BATCH, LENGTH, K) and codes.dtype == dtype, f"codes {codes.shape}")
        y = d.decode(codes)
        ok(y.shape == x.shape and y.dtype == dtype and torch.equal(d(x.to(dtype)), y), "decode")
        ok(d.W_dec.data.norm(dim=1).sub(1).abs().max() < 0.01, "norms")
    d = Dictionary.open(run)
    scores = (x - d.mean).double() @ d.W_dec.double().T
    ok(close(x @ d.W_enc + d.b_enc, scores), "W_enc and b_enc give the scores of a round")
    own = type("Own", (), {"dtype": "float32", "device": None, "d_in": 5})()
    d = Dictionary.open(run, cfg=own).double()
    ok((own.dtype, own.device, own.d_in, own.d_sae) == ("float32", "cpu", 5, K),
       "what a cfg says stays")


def main():
    torch.set_num_threads(min(4, os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as folder:
        rows = h5py.File(ROWS)["rows"][:2048]
        np.save(f"{folder}/rows.npy", rows)
        done = program("fit", "--rows", f"{folder}/rows.npy", "--atoms", K, "--top-s", S,
                       "--sweeps", 1, "--output", f"{folder}/run")
        ok(done.returncode == 0, f"a dictionary was fitted {done.stderr[-200:] * done.returncode}")
        x = torch.from_numpy(rows[:BATCH * LENGTH].astype("f4")).reshape(BATCH, LENGTH, -1)
        check_members(f"{folder}/run", x)
    done_testing()


main()
