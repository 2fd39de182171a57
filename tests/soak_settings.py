# SPDX-License-Identifier: BSD-3-Clause
"""Folders of SAELens, sparsify and dictionary_learning with one change in their settings or
tensors, for tests/soak_faults.  If import accepts such a folder without a message, it must compute
what those programs compute from it.  Of two equal names in JSON the last one counts, as for
json.loads()."""
import json
import os
import shutil

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE, change, settings_of, straight, tensors, weights_of
from soak_try import HARMLESS, REFUSED, WRONG

AGREE = 1e-4  # of explained variance: sums of float32 in two orders
USED = [name for name in FOLDERS if "pursuit" not in name]
VALUES = (True, False, 0, 1, 2, 3, 4, -1, 2.5, None, "none", "true", "yes", "relu", "topk",
          "softplus", "", [], [1], {}, {"k": 3}, 16, 17, 24, "standard", "transcoder")
NAMES = ("k", "signed", "transcode", "skip_connection", "apply_b_dec_to_input", "d_out", "scale",
         "normalize_activations", "activation_fn", "activation_fn_str", "activation_fn_kwargs",
         "finetuning_scaling_factor", "rescale_acts_by_decoder_norm", "architecture", "activation",
         "input_scale", "is_transcoder", "reshape_activations", "dict_class", "activation_dim")
OFF = "signed", "transcode", "skip_connection", "finetuning_scaling_factor", "is_transcoder"


def changed(t, text, said):
    """Change one thing in the settings.  Returns the new text, and the name that was changed."""
    owner = said["trainer"] if "trainer" in said and t.random.random() < 0.7 else said
    way = t.random.choice(("set", "add", "drop", "twice", "dot"))
    key = t.random.choice(NAMES if way == "add" else sorted(owner))
    value = t.random.choice(VALUES)
    t.say(f"{way} {key} {json.dumps(value)}")
    if way == "twice":
        return f'{text.rstrip()[:-1]}, {json.dumps(key)}: {json.dumps(value)}}}', key
    if way == "drop":
        del owner[key]
    elif way == "dot":
        owner["a." + key] = owner.pop(key)
    else:
        owner[key] = value
    return json.dumps(said), "a\\." + key if way == "dot" else key


def largest(scores, k):
    order = np.argsort(-scores, 1, kind="stable")[:, :k]
    kept = np.zeros_like(scores)
    np.put_along_axis(kept, order, np.take_along_axis(scores, order, 1), 1)
    return kept


def lens_class(said):
    """(class, k) as SAELens reads the settings; None if import must not accept them without a
    message."""
    names = {str(said[n]) for n in ("activation_fn", "activation_fn_str")
             if said.get(n) is not None}
    own, inner = said.get("architecture"), said.get("activation_fn_kwargs")
    own = "standard" if own is None else own
    if len(names) > 1 or not names <= {"relu", "topk"}:
        return None
    k = inner.get("k") if isinstance(inner, dict) else None
    if names == {"topk"}:
        k = said.get("k") if own == "topk" and k is None else k  # topk needs no name
        return ("topk", k) if own in ("standard", "topk") and said.get("k", k) == k else None
    is_torn = own == "topk" and (names == {"relu"} or (k is not None and k != said.get("k")))
    return None if is_torn else (own, said.get("k"))


def described(name, said, folder):
    """The explained variance of the rows, as the other program computes it; None if that program
    computes something else."""
    decoder, mean, weights, bias, threshold = (
        None if a is None else a.astype("f8") for a in straight(folder))
    x = tensors(f"{MADE}/{name}/expected.safetensors")["rows"].astype("f8")
    centered, rescaled, kind, k = True, False, None, None
    if any(said.get(n) for n in OFF) or said.get("d_out") not in (None, 16):
        return None
    if name.startswith("saelens"):
        found = lens_class(said)
        if not found or said.get("normalize_activations") not in (None, False, "none") or \
                said.get("reshape_activations") not in (None, "none", "hook_z"):
            return None
        kind, k = found
        centered = bool(said.get("apply_b_dec_to_input", True))
    elif name.startswith("sparsify"):
        kind, k = said.get("activation") or "topk", said.get("k")
    else:
        trainer = said.get("trainer")
        trainer = trainer if isinstance(trainer, dict) else {}
        kind, k = trainer.get("dict_class"), trainer.get("k")
        centered = kind in ("AutoEncoder", "AutoEncoderTopK", "BatchTopKSAE")
    rescaled = bool(said.get("rescale_acts_by_decoder_norm"))
    known = ("standard", "AutoEncoder", "AutoEncoderNew", "topk", "AutoEncoderTopK", "jumprelu",
             "BatchTopKSAE", "JumpReluAutoEncoder")
    if kind not in known:
        return None
    norm = np.linalg.norm(decoder, axis=1) if rescaled else 1
    codes = np.maximum(((x - mean if centered else x) @ weights.T + bias) * norm, 0)
    if kind in ("topk", "AutoEncoderTopK"):
        if type(k) is not int or not 1 <= k <= 24 or (kind == "topk" and threshold is not None):
            return None
        codes = largest(codes, k)
    elif kind in ("jumprelu", "BatchTopKSAE", "JumpReluAutoEncoder"):
        if threshold is None:
            return None
        codes = np.where(codes > threshold, codes, 0)
    elif threshold is not None:
        return None
    total = ((x - x.mean(0)) ** 2).sum()
    return 1 - ((x - codes / norm @ decoder - mean) ** 2).sum() / total


def tensor_change(t, folder):
    """Add a tensor that no class has."""
    name = t.random.choice(("W_skip", "scaling_factor", "gate", "b_dec_out"))
    t.say(f"add the tensor {name}")

    def edit(values):
        values[name] = next((dtype, 2 * v) for dtype, v in values.values() if dtype[0] != "I")
    change(folder, edit)
    return name


def settings(t):
    name, folder, wanted = t.random.choice(USED), t.at("in/sae"), None
    t.say(name)
    shutil.copytree(f"{MADE}/{name}", folder)
    os.remove(f"{folder}/expected.safetensors")
    path = settings_of(folder)
    with open(path) as f:
        text = f.read()
    if t.random.random() < 0.1:
        key = tensor_change(t, folder)
    else:
        text, key = changed(t, text, json.loads(text))
        with open(path, "w") as f:
            f.write(text)
        wanted = described(name, json.loads(text), folder)
    for file in (path, weights_of(folder)):
        t.guard(os.path.relpath(file, t.folder))
    out, codes = t.at("out/dictionary.h5"), t.at("out/supports.h5")
    done = t.run(["import", folder, "--output", out])
    if done.code == 65 and done.messages == 1 and not os.path.exists(out):
        return t.find(REFUSED)
    if done.code:
        return t.find(WRONG, f"import: {done.told()}")
    if "warning" in done.text and (key in done.text or "decoder alone" in done.text):
        return t.find(REFUSED, "by a warning")
    np.save(t.at("in/rows.npy"), tensors(f"{MADE}/{name}/expected.safetensors")["rows"])
    done = t.run(["encode", "--rows", t.at("in/rows.npy"), "--encoder", out, "--output", codes])
    if done.code or wanted is None:
        return t.find(WRONG, f"imported without a message, NumPy: {wanted}, encode: {done.told()}")
    with h5py.File(codes) as f:
        have = float(f["metrics"].attrs["explained_variance"])
    if abs(have - wanted) > AGREE:
        return t.find(WRONG, f"explained variance is {have}, NumPy computes {wanted}")
    return t.find(HARMLESS)
