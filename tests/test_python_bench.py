# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta.torch.Dictionary is what SAEBench asks of an SAE of one's own: its members, shapes
and types hold, to() moves all of it, and SAEBench's own functions, where it is installed, find of
it what NumPy finds.

SAEBench asks for other versions of half of what is here, and works with these: pip install
--no-deps --target DIR sae-bench tabulate seaborn collectibles, and DIR in PYTHONPATH."""
import contextlib
import io
import os
import tempfile

from peer import peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok, sagitta as program, skip

peer_needed("torch", "numpy", "h5py")

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)  # libsagitta.so is beside it
import h5py  # noqa: E402, after a Python that has them was found
import numpy as np  # noqa: E402
import torch  # noqa: E402

from sagitta.torch import Dictionary  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
K, S, BATCH, LENGTH = 256, 8, 4, 32
HOOK = "blocks.3.hook_resid_post"
CLOSE = 1e-4  # relative: sums of float32 in another order


def close(a, b):
    return np.allclose(np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=CLOSE, atol=CLOSE)


@claim("its members are those of SAEBench's base class")
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


class Rows:
    """A model and a store of tokens at once, as far as SAEBench's functions ask: its activations
    are rows, whatever the tokens."""

    def __init__(self, x):
        self.x = x

    def get_batch_tokens(self, count):
        return torch.zeros(self.x.shape[:2], dtype=torch.int64)

    def run_with_cache(self, tokens, **rest):
        return None, {HOOK: self.x}


@claim("SAEBench's own functions take it")
def check_bench(run, x):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            from sae_bench.custom_saes.base_sae import BaseSAE
            from sae_bench.custom_saes.custom_sae_config import CustomSAEConfig
            from sae_bench.evals.core import main as core
            from sae_bench.sae_bench_utils import activation_collection, general_utils
    except ImportError as error:
        skip(f"SAEBench is not here: {error}")
        return
    p = x.shape[-1]
    d = Dictionary.open(run, cfg=CustomSAEConfig("made", p, K, 3, HOOK, context_size=LENGTH))
    name, sae, sparsity = general_utils.load_and_format_sae("sagitta", d, "cpu")
    ok(sae is d and name == "custom_sae" and sparsity is None, "load_and_format_sae")
    ok(BaseSAE.check_decoder_norms(d), "check_decoder_norms")
    ok(d.cfg.dtype == "float32" and d.cfg.to_dict()["d_sae"] == K, "its own cfg")

    rows = Rows(x)
    metrics, features = core.get_sparsity_and_variance_metrics(
        d, rows, rows, 1, True, True, True, True, BATCH, {})
    codes, y = (t.double().numpy() for t in (d.encode(x), d(x)))
    inputs, codes, y = x.numpy().reshape(-1, p), codes.reshape(-1, K), y.reshape(-1, p)
    rss = ((inputs - y) ** 2).sum(1)
    want = {
        "l0": (codes != 0).sum(1).mean(), "l1": codes.sum(1).mean(), "mse": rss.mean() / len(rss),
        "explained_variance_legacy": (1 - rss / ((inputs - inputs.mean(0)) ** 2).sum(1)).mean(),
        "cossim": ((inputs * y).sum(1) / np.linalg.norm(inputs, axis=1)
                   / np.linalg.norm(y, axis=1)).mean()}
    for name, value in want.items():
        ok(close(metrics[name], value), f"{name}: {metrics[name]}, NumPy {value}")
    ok(close(features["feature_density"], (codes > 0).mean(0)), "density")

    weights = core.get_featurewise_weight_based_metrics(d)
    ok(close(weights["encoder_decoder_cosine_sim"], np.ones(K)), "encoder and decoder are one")
    cosine = (d.W_dec @ d.W_dec.T).numpy() - 2 * np.eye(K)
    ok(close(weights["max_decoder_cosine_sim"], cosine.max(1)), "largest cosines")
    ok(close(weights["encoder_bias"], d.b_enc), "bias")
    meaned = activation_collection.get_sae_meaned_activations({"a": x}, d, 3)["a"]
    ok(close(meaned, codes.reshape(BATCH, LENGTH, K).mean(1)), "means of a sequence")


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
        check_bench(f"{folder}/run", x)
    done_testing()


main()
