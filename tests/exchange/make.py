#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make tests/exchange/: tiny autoencoders as the packages themselves save them, and what their own
forward pass makes of a few rows.

Made with sae-lens 6.54.12, eai-sparsify 1.3.3, dictionary-learning 0.1.0 and PyTorch on a CPU:
    python3 tests/exchange/make.py tests/exchange
Each folder is what the package saves, but for ae.pt of dictionary_learning, which is a pickle: it
is converted as `sagitta import` says.  expected.safetensors beside it has rows, acts (the package's
encode, dense) and recon (its decode)."""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

P, K, TOP, ROWS = 16, 24, 4, 32


def rows_made():
    torch.manual_seed(1)
    return torch.randn(ROWS, P) + 0.5


def fill(model, norm):
    """Values that no initialisation has: decoders of other norms, encoders that are not tied."""
    torch.manual_seed(2)
    for name, value in model.named_parameters():
        value.data = (0.3 * torch.randn(value.shape)).to(value.dtype)
        if "threshold" in name:
            value.data = value.data.abs() * 0.5
    if norm:
        model.W_dec.data /= model.W_dec.data.norm(dim=-1, keepdim=True)


def expect(folder, model, dtype=torch.float32):
    with torch.no_grad():
        x = rows_made().to(dtype)
        acts = model.encode(x)
        if hasattr(acts, "top_acts"):
            acts = torch.zeros(ROWS, K, dtype=dtype).scatter_(1, acts.top_indices, acts.top_acts)
            recon = acts @ model.W_dec + model.b_dec
        else:
            recon = model.decode(acts)
    save_file({"rows": x.contiguous(), "acts": acts.contiguous(), "recon": recon.contiguous()},
              folder / "expected.safetensors")


def saelens(out):
    from sae_lens import (SAE, BatchTopKTrainingSAE, BatchTopKTrainingSAEConfig, JumpReLUSAEConfig,
                          StandardSAEConfig, TopKSAEConfig)
    from sae_lens.saes.matching_pursuit_sae import MatchingPursuitSAEConfig
    base = dict(d_in=P, d_sae=K)
    made = {
        "saelens_topk": (TopKSAEConfig(**base, k=TOP), 0),
        "saelens_topk_rescaled": (
            TopKSAEConfig(**base, k=TOP, rescale_acts_by_decoder_norm=True), 0),
        "saelens_jumprelu_bf16": (
            JumpReLUSAEConfig(**base, dtype="bfloat16", apply_b_dec_to_input=False), 0),
        "saelens_relu_f16": (StandardSAEConfig(**base, dtype="float16"), 0),
        "saelens_pursuit": (
            MatchingPursuitSAEConfig(**base, max_iterations=TOP, residual_threshold=0.0), 1),
    }
    for name, (config, norm) in made.items():
        sae = SAE.from_dict(config.to_dict())
        fill(sae, norm)
        sae.save_model(out / name)
        expect(out / name, sae, sae.dtype)
    training = BatchTopKTrainingSAE(BatchTopKTrainingSAEConfig(**base, k=TOP))
    fill(training, 0)
    training.topk_threshold = torch.tensor(0.3, dtype=training.topk_threshold.dtype)
    folder = out / "saelens_batchtopk"
    training.save_inference_model(folder)
    expect(folder, SAE.load_from_disk(folder))


def sparsify(out):
    from sparsify import SparseCoder, SparseCoderConfig
    for name, dtype in (("sparsify_topk", torch.float32), ("sparsify_topk_bf16", torch.bfloat16)):
        coder = SparseCoder(P, SparseCoderConfig(num_latents=K, k=TOP), dtype=dtype)
        torch.manual_seed(3)
        coder.encoder.bias.data = (0.3 * torch.randn(K)).to(dtype)
        coder.b_dec.data = (0.3 * torch.randn(P)).to(dtype)
        coder.encoder.weight.data = (0.3 * torch.randn(K, P)).to(dtype)
        coder.save_to_disk(out / name)
        expect(out / name, coder, dtype)


def dictionary_learning(out):
    from dictionary_learning.dictionary import AutoEncoder, AutoEncoderNew, JumpReluAutoEncoder
    from dictionary_learning.trainers.batch_top_k import BatchTopKSAE
    from dictionary_learning.trainers.top_k import AutoEncoderTopK
    made = {"learning_relu": AutoEncoder(P, K), "learning_new": AutoEncoderNew(P, K),
            "learning_topk": AutoEncoderTopK(P, K, TOP),
            "learning_jumprelu": JumpReluAutoEncoder(P, K),
            "learning_batchtopk": BatchTopKSAE(P, K, TOP)}
    for name, model in made.items():
        fill(model, 0)
        if name == "learning_batchtopk":
            model.threshold.fill_(0.3)
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        trainer = {"dict_class": type(model).__name__, "activation_dim": P, "dict_size": K}
        if hasattr(model, "k"):
            trainer["k"] = int(model.k)
        config = {"trainer": trainer, "buffer": {}}
        (folder / "config.json").write_text(json.dumps(config, indent=4))
        save_file({k: v.contiguous() for k, v in model.state_dict().items()},
                  folder / "ae.safetensors")
        expect(folder, model)


if __name__ == "__main__":
    for make in (saelens, sparsify, dictionary_learning):
        make(Path(sys.argv[1]))
