# SPDX-License-Identifier: BSD-3-Clause
"""Claim: SAEBench's own functions find for a dictionary what NumPy finds.  Its core evaluation runs
on a dictionary, and on its export to SAELens, in a model of two layers with random weights.  What
it prints for a model whose states are replaced is what sagitta.torch.replace() gives.

SAEBench requires other versions of half of the packages in scripts/peers.txt, but works with
these."""
import json
import os
import random
import tempfile
import warnings

from peer import peer_needed_full
from tap import SAGITTA, SOURCE, claim, done_testing, ok, sagitta as program

os.environ.update(SAGITTA_PROGRAM=os.path.abspath(SAGITTA), HF_HUB_OFFLINE="1")
cache = tempfile.TemporaryDirectory()
os.environ["HF_HOME"] = os.environ["HF_DATASETS_CACHE"] = cache.name
peer_needed_full("sae_bench.evals.core.main", "torch", "transformer_lens", "h5py")

import h5py  # noqa: E402, after a Python that has them was found
import numpy as np  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformer_lens  # noqa: E402
import transformers  # noqa: E402
from sae_bench.custom_saes.base_sae import BaseSAE  # noqa: E402
from sae_bench.custom_saes.custom_sae_config import CustomSAEConfig  # noqa: E402
from sae_bench.evals.core import main as core  # noqa: E402
from sae_bench.sae_bench_utils import activation_collection, general_utils  # noqa: E402

import sagitta  # noqa: E402
from sagitta.torch import Dictionary, capture, replace  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
K, S, BATCH, LENGTH = 256, 8, 4, 32
HOOK = "blocks.3.hook_resid_post"
CLOSE = 1e-4  # relative: float32 sums in another order
SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
WORDS = [f"w{i}" for i in range(60)]
WIDTH, BATCHES, PLACE = 16, 2, "blocks.0.hook_resid_post"


def close(a, b):
    return np.allclose(np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=CLOSE, atol=CLOSE)


class Rows:
    """A model and a store of tokens in one, as far as SAEBench needs them.  Its activations are
    rows, for any tokens."""

    def __init__(self, x):
        self.x = x

    def get_batch_tokens(self, count):
        return torch.zeros(self.x.shape[:2], dtype=torch.int64)

    def run_with_cache(self, tokens, **rest):
        return None, {HOOK: self.x}


@claim("SAEBench's own functions take the dictionary")
def check_bench(run, x):
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


def tokenizer_made(at):
    """Make a tokenizer whose tokens are words.  TransformerLens reads it from a folder."""
    model = tokenizers.models.WordLevel({w: i for i, w in enumerate(SPECIAL + WORDS)}, "<unk>")
    own = tokenizers.Tokenizer(model)
    own.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=own, **{f"{name[1:-1]}_token": name for name in SPECIAL}
    ).save_pretrained(f"{at}/tokenizer")
    return transformers.AutoTokenizer.from_pretrained(f"{at}/tokenizer")


def model_made(at):
    """Make a model with random weights, and texts for it, in a folder."""
    torch.manual_seed(0)
    draw = random.Random(0)
    os.makedirs(f"{at}/texts")
    with open(f"{at}/texts/train.jsonl", "w", encoding="utf-8") as f:
        for _ in range(200):
            text = " ".join(draw.choices(WORDS, k=100))
            f.write(json.dumps({"text": text}) + "\n")
    return transformer_lens.HookedTransformer(transformer_lens.HookedTransformerConfig(
        n_layers=2, d_model=WIDTH, n_ctx=LENGTH, d_head=8, n_heads=2, d_mlp=32, act_fn="relu",
        d_vocab=len(SPECIAL + WORDS), device="cpu", seed=0), tokenizer=tokenizer_made(at))


class Store(core.ActivationsStore):
    """Notes the tokens that SAEBench reads."""
    seen = []

    def get_batch_tokens(self, *rest, **more):
        tokens = super().get_batch_tokens(*rest, **more)
        self.seen.append(tokens)
        return tokens


def evaluated(at, name, sae, model):
    """The figures of the core evaluation, and the tokens that it read.  It finds a pretrained model
    by name; here it gets this model instead."""
    Store.seen = []
    kept = core.HookedTransformer.from_pretrained_no_processing, core.ActivationsStore
    core.HookedTransformer.from_pretrained_no_processing = staticmethod(lambda *_, **__: model)
    core.ActivationsStore = Store
    try:
        found = core.multiple_evals(
            [(name, sae)], BATCHES, BATCHES, BATCH, compute_featurewise_density_statistics=True,
            compute_featurewise_weight_based_metrics=True, dataset=f"{at}/texts",
            context_size=LENGTH, output_folder=f"{at}/{name}", device="cpu")
    finally:
        core.HookedTransformer.from_pretrained_no_processing, core.ActivationsStore = kept
    ok(len(found) == 1 and len(Store.seen) >= 2 * BATCHES and
       len(os.listdir(f"{at}/{name}")) == 1, f"{name}: {found}")
    return found[0]["metrics"], Store.seen[-2 * BATCHES:]


def loss_of(model, tokens, seen):
    """The losses of the tokens that are counted."""
    return model(tokens, return_type="loss", loss_per_token=True)[seen[:, :-1]]


@torch.no_grad()
def check_metrics(name, metrics, seen, model, d):
    """SAEBench's figures of a dictionary.  In the first batches states are replaced; the others are
    only described."""
    special = torch.tensor([model.tokenizer.convert_tokens_to_ids(one) for one in SPECIAL[:3]])
    counted = [~torch.isin(tokens, special) for tokens in seen]
    first = list(zip(seen, counted))[:BATCHES]
    plain = torch.cat([loss_of(model, *one) for one in first]).mean()
    with replace(model, PLACE, d):
        replaced = torch.cat([loss_of(model, *one) for one in first]).mean()
    said = metrics["model_performance_preservation"]
    ok(close(said["ce_loss_without_sae"], plain) and close(said["ce_loss_with_sae"], replaced) and
       said["ce_loss_with_ablation"] != said["ce_loss_with_sae"],
       f"{name}: losses {said}, {plain}, {replaced}")
    with capture(model, PLACE) as rows:
        for tokens, mask in zip(seen[BATCHES:], counted[BATCHES:]):
            rows.mask = mask
            model(tokens)
    x = torch.from_numpy(np.asarray(rows))
    codes = d.encode(x)
    l0, alive = (codes != 0).sum(1).double().mean(), (codes > 0).any(0).double().mean()
    ok(close(metrics["sparsity"]["l0"], l0) and
       close(metrics["sparsity"]["l1"], codes.abs().sum(1).double().mean()),
       f"{name}: {metrics['sparsity']}, l0 {l0}")
    ok(close(metrics["misc_metrics"]["frac_alive"], alive), f"{name}: alive {alive}")
    sizes = [int(mask.sum()) for mask in counted[BATCHES:]]
    parts = zip(x.split(sizes), d.decode(codes).split(sizes))
    each = torch.cat([1 - (rows - made).square().sum(1) / (rows - rows.mean(0)).square().sum(1)
                      for rows, made in parts])
    # SAEBench's newer explained_variance is no share of the variance
    quality = metrics["reconstruction_quality"]
    ok(close(quality["explained_variance_legacy"], each.mean()), f"{name}: {each.mean()} {quality}")
    behaviour = metrics["model_behavior_preservation"]
    ok(behaviour["kl_div_with_sae"] < 0.1 * behaviour["kl_div_with_ablation"],
       f"{name}: {behaviour}")


@claim("SAEBench's core evaluation runs, and its figures for replaced states are right")
def check_core(at):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class will change in TransformerLens 4
        model = model_made(at)
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(len(SPECIAL), len(SPECIAL + WORDS), (256, LENGTH), generator=draw)
    with capture(model, PLACE) as rows, torch.no_grad():
        model(ids)
    run = sagitta.fit(np.asarray(rows), atoms=64, top_s=4, find="codes", sweeps=3, rounds=4,
                      progress=None)
    d = Dictionary.open(run, cfg=CustomSAEConfig("made", WIDTH, 64, 0, PLACE, context_size=LENGTH))
    check_metrics("own", *evaluated(at, "own", d, model), model, d)
    sae = run.to_saelens(np.asarray(rows)[:512], progress=None, force=True)
    for name, value in {"model_name": "made", "hook_name": PLACE, "prepend_bos": True,
                        "context_size": LENGTH}.items():
        setattr(sae.cfg.metadata, name, value)  # files of rows do not contain it
    check_metrics("export", *evaluated(at, "export", sae, model), model, AsOurs(sae))


class AsOurs(torch.nn.Module):
    """An SAE of SAELens, with the methods of a dictionary."""

    def __init__(self, sae):
        super().__init__()
        self.sae, self.W_dec = sae, sae.W_dec
        self.encode, self.decode = sae.encode, sae.decode

    def support(self, x):
        raise NotImplementedError

    def forward(self, x):
        return self.decode(self.encode(x))


def main():
    torch.set_num_threads(min(4, os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as at:
        rows = h5py.File(ROWS)["rows"][:2048]
        np.save(f"{at}/rows.npy", rows)
        done = program("fit", "--rows", f"{at}/rows.npy", "--atoms", K, "--top-s", S,
                       "--sweeps", 1, "--output", f"{at}/run")
        ok(done.returncode == 0, f"a dictionary was fitted {done.stderr[-200:] * done.returncode}")
        x = torch.from_numpy(rows[:BATCH * LENGTH].astype("f4")).reshape(BATCH, LENGTH, -1)
        check_bench(f"{at}/run", x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_core(at)
    done_testing()


main()
