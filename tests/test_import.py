# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta import` reads the folders that SAELens, sparsify and dictionary_learning save,
with every bit, and what it stores computes what they do; what is wrong with a folder is said with
its mend."""
import json
import os
import shutil
import tempfile

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE, change, settings_of, straight, tensors
from tap import claim, done_testing, ok, sagitta


def bits(a, b):
    return a.shape == b.shape and np.array_equal(np.ascontiguousarray(a).view("u4"),
                                                 np.ascontiguousarray(b).view("u4"))


def encode(f, rows):
    """(N.24) in NumPy: dense codes of rows, of the unit atoms."""
    e = f["encoder"]
    x = rows - f["mean"][:].astype("f4") if e.attrs["centered"] else rows
    norm = e["norm"][:] if "norm" in e else np.float32(1)
    scores = x @ e["weights"][:].T + e["bias"][:]
    if e.attrs["rescaled"]:
        scores = scores * norm
    keep = scores > (np.maximum(e["threshold"][:], 0) if "threshold" in e else 0)
    if e.attrs["kind"] == "topk":
        order = np.argsort(-scores, axis=1, kind="stable")[:, :e.attrs["top"]]
        chosen = np.zeros(scores.shape, bool)
        np.put_along_axis(chosen, order, True, axis=1)
        keep &= chosen
    return np.where(keep, scores if e.attrs["rescaled"] else scores * norm, 0)


@claim("every folder keeps its bits, and computes what the program that made it computes")
def check_made(at):
    ok(len(FOLDERS) >= 13, f"folders: {FOLDERS}")
    for name in FOLDERS:
        folder, out = f"{MADE}/{name}", f"{at}/{name}.h5"
        done = sagitta("import", folder, "--output", out)
        ok(done.returncode == 0 and "import  program=" in done.stderr, f"{name}: {done.stderr}")
        ok(sagitta("verify", out).returncode == 0, f"{name} verifies")
        decoder, mean, weights, bias, threshold = straight(folder)
        made = tensors(f"{folder}/expected.safetensors")
        exact = 0.02 if "bf16" in name else 2e-3 if "f16" in name else 2e-6
        with h5py.File(out) as f:
            e, atoms = f["encoder"], f["atoms"][:]
            ok(bits(e["decoder"][:] if "decoder" in e else atoms, decoder), f"{name}: decoder")
            ok(np.array_equal(f["mean"][:], mean.astype("f8")), f"{name}: mean")
            norms = np.linalg.norm(atoms.astype("f8"), axis=1)
            ok(abs(norms - 1).max() < 1e-4, f"{name}: unit atoms")
            ok(e.attrs["settings"] == open(settings_of(folder)).read(), f"{name}: settings")
            if "pursuit" in name:
                ok("kind" not in e.attrs and f.attrs["rounds"] == f.attrs["top_s"] == 4, name)
                continue
            ok(bits(e["weights"][:], weights) and bits(e["bias"][:], bias), f"{name}: values")
            has = e.attrs["kind"] in ("jumprelu", "batchtopk")
            ok(("threshold" in e) == has, f"{name}: kind")
            if "threshold" in e:
                same = e["threshold"][:].view("u4") == threshold.view("u4")
                ok(np.all(same), f"{name}: thresholds")
            if "decoder" in e:
                ok(np.abs(atoms * e["norm"][:][:, None] - decoder).max() < 1e-6, f"{name}: norms")
            recon = encode(f, made["rows"]) @ atoms + f["mean"][:]
        error = np.abs(recon - made["recon"]).max() / np.abs(made["recon"]).max()
        ok(error < exact, f"{name}: reconstructions are off by {error}")


@claim("used.in repeats an import, and encode takes what it says")
def check_repeats(at):
    done = sagitta("import", f"{MADE}/saelens_topk", "--output", f"{at}/a")
    ok(done.returncode == 0, done.stderr)
    done = sagitta("import", f"{at}/a/used.in", "--output", f"{at}/b")
    ok(done.returncode == 0, done.stderr)
    ok(not sagitta("diff", f"{at}/a", f"{at}/b").stdout, "the same bytes")
    rows = tensors(f"{MADE}/saelens_topk/expected.safetensors")["rows"]
    np.save(f"{at}/rows.npy", rows)
    done = sagitta("encode", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/a", "--output",
                   f"{at}/codes")
    ok(done.returncode == 0 and "top-s 4: as the dictionary was fitted" in done.stderr, done.stderr)
    with h5py.File(f"{at}/codes/supports.h5") as f:
        ok(f.attrs["nonnegative"] == 1, "its codes are nonnegative")


def refused(folder, words, what):
    out = f"{folder}.h5"
    done = sagitta("import", folder, "--output", out)
    ok(done.returncode in (2, 65) and all(w in done.stderr for w in words) and
       not os.path.exists(out), f"{what}: {done.returncode} {done.stderr}")


@claim("what is wrong with a folder is said with its mend")
def check_errors(at):
    def fresh(name):
        folder = tempfile.mkdtemp(dir=at)
        shutil.copytree(f"{MADE}/{name}", folder, dirs_exist_ok=True)
        os.remove(f"{folder}/expected.safetensors")
        return folder

    def settings(folder, **values):
        path = settings_of(folder)
        text = dict(json.load(open(path)), **values)
        json.dump(text, open(path, "w"))

    empty = tempfile.mkdtemp(dir=at)
    refused(empty, ["no folder of an autoencoder", "sae_weights.safetensors"], "an empty folder")
    refused(f"{at}/none", ["no folder of an autoencoder"], "no folder")
    shutil.copytree(f"{MADE}/sparsify_topk", f"{empty}/layers.6")
    refused(empty, ["several autoencoders", "name the folder of one", "layers.6"], "a folder above")
    for name, words in (("ae.pt", ["pickle", "torch.load", "ae.safetensors"]),
                        ("params.npz", ["NumPy archive", "numpy.load", "sae_weights.safetensors"])):
        folder = tempfile.mkdtemp(dir=at)
        open(f"{folder}/{name}", "w").close()
        refused(folder, words, name)
    folder = fresh("saelens_topk")
    os.remove(f"{folder}/cfg.json")
    refused(folder, ["no 'cfg.json' beside it", "copy it there"], "no settings")

    def edited(name, edit, words, what):
        folder = fresh(name)
        change(folder, edit)
        refused(folder, words, what)

    def turn(key):
        def edit(t):
            t[key] = t[key][0], np.ascontiguousarray(t[key][1].T)
        return edit

    def cast(dtype, numpy_type):
        def edit(t):
            t["W_dec"] = dtype, t["W_dec"][1].astype(numpy_type)
        return edit

    def value(key, index, number):
        def edit(t):
            t[key][1][index] = number
        return edit

    edited("saelens_topk", lambda t: t.pop("W_enc"), ["has no 'W_enc'", "W_dec, b_dec, b_enc"],
           "a tensor that is missing")
    edited("saelens_topk", turn("W_dec"), ["'W_dec'", "16 x 24", "24 x 16", "transposed", "W.T"],
           "a transposed decoder")
    edited("saelens_topk", turn("W_enc"), ["'W_enc'", "transposed"], "a transposed encoder")
    edited("learning_topk", turn("decoder.weight"), ["'decoder.weight'", "transposed"],
           "a transposed decoder of a linear layer")
    edited("saelens_topk", lambda t: t.update(b_dec=("F32", t["b_dec"][1][:7])),
           ["16 columns", "'b_dec' has 7", "not of one autoencoder"], "another P")
    edited("saelens_topk", lambda t: t.update(b_enc=("F32", t["b_enc"][1][:7])),
           ["'b_enc'", "7 entries", "wants 24"], "another K")
    edited("saelens_topk", cast("F64", "f8"), ["float64", "save it as float32"], "float64")
    edited("saelens_topk", cast("F16", "f2"), ["others of F16", "save all in one type"], "types")
    edited("saelens_topk", value("W_dec", 5, 0), ["atom 5", "no direction", "bias"], "a zero atom")
    edited("saelens_topk", value("W_dec", (5, 3), np.nan), ["row 5", "decoder"], "a NaN")
    edited("saelens_topk", value("b_enc", 5, np.inf), ["encoder's bias"], "an infinity")
    for name, values, words in (
            ("saelens_topk", {"d_in": 17}, ["says d_in 17", "have 16"]),
            ("sparsify_topk", {"num_latents": 99}, ["says num_latents 99", "have 24"]),
            ("saelens_topk", {"normalize_activations": "layer_norm"}, ["layer_norm", "normalise"]),
            ("saelens_topk", {"k": None}, ["has no 'k'"]),
            ("saelens_topk", {"k": "many"}, ["'k'", "'many', not a number"]),
            ("sparsify_topk", {"transcode": True}, ["transcode", "predicts other values"]),
            ("sparsify_topk", {"skip_connection": True}, ["skip_connection", "without one"])):
        folder = fresh(name)
        settings(folder, **values)
        refused(folder, words, f"settings {values}")
    for text in ('{"a": ', '{"a": 1} x', '[1]', '{"a": {"b": 1}', '{"a" 1}', ''):
        folder = fresh("saelens_topk")
        open(f"{folder}/cfg.json", "w").write(text)
        refused(folder, ["cfg.json", "damaged"], f"settings {text!r}")
    folder = fresh("saelens_topk")
    open(f"{folder}/cfg.json", "w").write('{"a": ' * 30 + "1" + "}" * 30)
    refused(folder, ["nested too deeply"], "settings without an end")
    folder = fresh("saelens_topk")
    settings(folder, architecture="gated")
    done = sagitta("import", folder, "--output", f"{folder}/x.h5")
    ok(done.returncode == 0 and "its decoder alone" in done.stderr, f"gated: {done.stderr}")
    with h5py.File(f"{folder}/x.h5") as f:
        ok("kind" not in f["encoder"].attrs and "weights" not in f["encoder"], "and nothing else")
    done = sagitta("import", "--output", f"{at}/x.h5")
    ok(done.returncode == 2 and "folder is missing" in done.stderr, "no folder named")
    done = sagitta("import", folder, "--output", f"{folder}/x.h5")
    ok(done.returncode == 73 and "--force" in done.stderr, f"a result is there: {done.stderr}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        check_made(at)
        check_repeats(at)
        check_errors(at)
    done_testing()
