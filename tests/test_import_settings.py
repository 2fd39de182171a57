# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta import` reads the settings of other programs as these do, whatever their form in
JSON, or refuses them by name.  Unknown settings are reported."""
import json
import os
import shutil
import tempfile

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE, change, settings_of, straight, tensors
from tap import claim, done_testing, need, ok, sagitta
from test_import import bits, encode, refused



def made(at, name, text=None, edit=None, **values):
    """A copy of a program's folder with changed settings, or with the settings `text`, and edited
    tensors."""
    folder = tempfile.mkdtemp(dir=at)
    shutil.copytree(f"{MADE}/{name}", folder, dirs_exist_ok=True)
    os.remove(f"{folder}/expected.safetensors")
    path = settings_of(folder)
    said = json.load(open(path))
    for key, value in values.items():
        owner = said["trainer"] if key in ("norm_factor",) else said
        owner[key] = value
    with open(path, "w") as f:
        f.write(text(json.dumps(said)) if text else json.dumps(said))
    if edit:
        change(folder, edit)
    return folder


def imported(folder, what):
    """Import a folder.  Returns the path of the dictionary, and the messages."""
    done = sagitta("import", folder, "--output", f"{folder}.h5")
    need(done, what)
    return f"{folder}.h5", done.stderr


def scaler(folder, text):
    with open(f"{folder}/activation_scaler.json", "w") as f:
        f.write(text)
    return folder


AVERAGE = {"normalize_activations": "expected_average_only_in"}


@claim("the factor of activations is folded into every class, and export writes what was folded")
def check_factor(at):
    factor = 0.05
    for name in ("saelens_relu_f16", "saelens_topk", "saelens_topk_rescaled", "saelens_batchtopk",
                 "saelens_jumprelu_bf16"):
        folder = scaler(made(at, name, **AVERAGE), f'{{"scaling_factor": {factor}}}')
        plain, _ = imported(made(at, name), name)
        path, said = imported(folder, f"{name} with a factor")
        ok("activations times 0.05" in said, f"{name}: the log says so: {said}")
        x = tensors(f"{MADE}/{name}/expected.safetensors")["rows"]
        with h5py.File(plain) as f:  # codes of 0.05 x, and the reconstruction divided by 0.05
            want = (encode(f, x) @ f["atoms"][:] + f["mean"][:]) / factor
        with h5py.File(path) as f:
            have = encode(f, (x / np.float32(factor)).astype("f4")) @ f["atoms"][:] + f["mean"][:]
            ok(f["encoder"].attrs["dtype"] == "F32", f"{name}: kept in float32")
        error = abs(have - want).max() / abs(want).max()
        ok(error < 1e-5, f"{name}: reconstructions are off by {error}")
        need(sagitta("export", path, "--to", "saelens", "--output", f"{folder}-out"), "export")
        again, said = imported(f"{folder}-out", "what was exported")
        ok("warning" not in said, f"{name}: no word of what was folded: {said}")
        with h5py.File(path) as f, h5py.File(again) as g:
            ok(bits(f["atoms"][:], g["atoms"][:]) and
               bits(f["encoder/weights"][:], g["encoder/weights"][:]) and
               np.array_equal(f["mean"][:], g["mean"][:]), f"{name}: export gives it back")
    folder = scaler(made(at, "saelens_topk", architecture="gated", **AVERAGE),
                    '{"scaling_factor": 0.05}')
    path, _ = imported(folder, "a class whose decoder alone is imported")
    with h5py.File(path) as f:
        error = abs(f["mean"][:] - straight(folder)[1].astype("f8") / factor).max()
        ok(error < 1e-6, f"its mean is that of activations: {error}")


@claim("a factor that is missing, or contradicts the settings, is refused by name")
def check_no_factor(at):
    word = ["normalize_activations"]
    for way in ("expected_average_only_in", True):
        refused(made(at, "saelens_topk", normalize_activations=way), word + ["scaling_factor"],
                f"no file of the factor, {way}")
    for text, words in (("{}", word), ('{"scaling_factor": null}', word),
                        ('{"scaling_factor": 0}', ["scaling_factor"]),
                        ('{"scaling_factor": -2}', ["scaling_factor"]),
                        ('{"scaling_factor": NaN}', ["scaling_factor"]),
                        ('{"scaling_factor": "x"}', ["scaling_factor"]),
                        ('{"scaling_factor": [2]}', ["scaling_factor"]),
                        ('{"scaling_factor": 2, "scaling_factor": 3}', ["'scaling_factor' twice"]),
                        ("5", ["damaged"])):
        refused(scaler(made(at, "saelens_topk", **AVERAGE), text), words, f"a factor {text}")
    refused(scaler(made(at, "saelens_topk"), '{"scaling_factor": 2}'), word, "a factor of none")
    refused(scaler(made(at, "saelens_pursuit", **AVERAGE), '{"scaling_factor": 2}'),
            ["matching pursuit"], "a factor of matching pursuit")
    for way in ("constant_norm_rescale", "layer_norm", "constant_scalar_rescale", ["none"], 3):
        refused(made(at, "saelens_topk", normalize_activations=way), word, f"normalised {way}")
    for way, text in ((None, None), (False, None), ("none", '{"scaling_factor": null}'),
                      ("none", '{"scaling_factor": 1.0}'), ("expected_average_only_in",
                                                            '{"scaling_factor": 1}')):
        folder = made(at, "saelens_topk", normalize_activations=way)
        path, _ = imported(scaler(folder, text) if text else folder, f"{way}, {text}")
        with h5py.File(path) as f:
            ok(bits(f["encoder/weights"][:], straight(folder)[2]), f"{way}, {text}: the bits")


@claim("an activation function is relu, or topk where the class has it; any other is refused")
def check_functions(at):
    for key in ("activation_fn", "activation_fn_str"):
        for name in ("saelens_relu_f16", "saelens_topk", "saelens_batchtopk"):
            for function in ("tanh-relu", "softplus", "gelu", "jumprelu", "ReLU", "", 3, ["relu"],
                             {"name": "relu"}):
                refused(made(at, name, **{key: function}), ["activation_fn"],
                        f"{name}: {key} {function}")
        refused(made(at, "saelens_topk", **{key: "relu"}), ["activation_fn relu", "topk"],
                "a topk of relu")
        refused(made(at, "saelens_batchtopk", **{key: "topk"}), ["activation_fn topk", "jumprelu"],
                "a jumprelu of topk")
        imported(made(at, "saelens_batchtopk", **{key: "relu"}), "a jumprelu of relu")
        path, said = imported(made(at, "saelens_topk", **{key: "topk"}), "a topk of topk")
        with h5py.File(path) as f:
            ok(f["encoder"].attrs["kind"] == "topk" and f["encoder"].attrs["top"] == 4 and
               "warning" not in said, f"a class topk needs no function beside its k: {said}")
        path, _ = imported(made(at, "saelens_relu_f16", **{key: "topk", "activation_fn_kwargs": {
            "k": 3}}), f"{key} topk")
        with h5py.File(path) as f:
            ok(f["encoder"].attrs["kind"] == "topk" and f["encoder"].attrs["top"] == 3, key)
    refused(made(at, "saelens_topk", activation_fn="topk", activation_fn_str="relu"),
            ["activation_fn topk", "activation_fn_str relu"], "two functions")
    refused(made(at, "saelens_topk", activation_fn_kwargs={"k": 3}), ["k 4", "kwargs.k 3"],
            "two numbers of codes")
    refused(made(at, "sparsify_topk", signed=True), ["signed"], "codes of either sign")
    for name, key, value, out in (("sparsify_topk", "activation", "groupmax", "decoder alone"),
                                  ("saelens_topk", "architecture", "temporal", "decoder alone")):
        _, said = imported(made(at, name, **{key: value}), f"{key} {value}")
        ok(out in said, f"{key} {value}: {said}")


@claim("encoders that predict something other than their rows are refused, of any program")
def check_transcoders(at):
    word = ["predicts other values"]

    def skip(t):
        t["W_skip"] = t["W_dec"]

    def factors(t):
        t["scaling_factor"] = "F32", np.full(24, 2, "f4")
    for name in ("transcoder", "skip_transcoder", "jumprelu_transcoder", "JumpReLU-Transcoder",
                 "crosscoder"):
        refused(made(at, "saelens_topk", architecture=name), word, name)
    for dict_class in ("Transcoder", "CrossCoder", "TopKTranscoder"):
        folder = made(at, "learning_topk", lambda t, c=dict_class: t.replace("AutoEncoderTopK", c))
        refused(folder, word, dict_class)
    refused(made(at, "saelens_topk", d_out=17), word + ["d_out 17"], "another width")
    imported(made(at, "saelens_topk", d_out=16), "the same width")
    refused(made(at, "saelens_topk", hook_name="a", hook_name_out="b"), word, "another place")
    refused(made(at, "saelens_topk", metadata={"hook_name": "a", "hook_name_out": "b"}), word,
            "another place in metadata")
    refused(made(at, "learning_topk", buffer={"io": "in_and_out"}), word, "rows of two places")
    imported(made(at, "learning_topk", buffer={"io": "out"}), "rows of one place")
    for name in ("saelens_topk", "sparsify_topk", "saelens_relu_f16", "saelens_pursuit"):
        refused(made(at, name, edit=skip), ["'W_skip'", *word], f"{name} with a skip")
    refused(made(at, "saelens_topk", edit=factors), ["'scaling_factor'"], "factors of codes")
    refused(made(at, "saelens_topk", edit=skip, architecture="own"), ["'W_skip'"], "of no class")
    refused(made(at, "learning_topk", edit=lambda t: t.update(k=("I64", np.full((), 5, "i8")))),
            ["k 4", "'k'", " 5"], "another k beside the weights")
    imported(made(at, "learning_topk", edit=lambda t: t.update(
        k=("I32", np.full((), 4, "i4")), threshold=("F32", np.full((), -1, "f4")))),
        "what AutoEncoderTopK keeps beside its weights")


@claim("a name may occur once, in one object, and a dot in it has no meaning")
def check_names(at):
    def also(text):
        return lambda whole: whole[:-1] + ", " + text + "}"
    for name, text, key in (("saelens_topk", '"k": 5', "'k'"), ("saelens_topk", '"k": 4', "'k'"),
                            ("saelens_topk", '"\\u006b": 5', "'k'"),
                            ("saelens_topk", '"metadata": {}', "'metadata'"),
                            ("saelens_topk", '"a": {"b": {"c": 1, "c": 2}}', "'a.b.c'"),
                            ("saelens_topk", '"a": [1, {"b": 1, "b": []}]', "'a[1].b'"),
                            ("learning_topk", '"trainer": {"k": 5}', "'trainer'"),
                            ("sparsify_topk", '"transcode": false', "'transcode'")):
        refused(made(at, name, also(text)), [f"{key} twice", "keep the right one"],
                f"{name}: {text}")
    for name, old, new, words in (
            ("saelens_topk", '"k"', '"activation_fn_kwargs.k"', ["has no 'k'"]),
            ("saelens_topk", '"k": 4', '"": {"k": 4}', ["has no 'k'"]),
            ("saelens_topk", '"k": 4', '"x": [{"k": 4}]', ["has no 'k'"]),
            ("learning_topk", '"k"', '"K"', ["has no 'trainer.k'"]),
            ("learning_topk", '"trainer": {"dict_class"',
             '"trainer.dict_class": 1, "trainer": {"x"', ["has no 'trainer.dict_class'"])):
        refused(made(at, name, lambda t, old=old, new=new: t.replace(old, new)), words, new)
    for inside in "sae", "cfg":
        refused(made(at, "saelens_topk", lambda t, i=inside: f'{{"{i}": {t}}}'),
                ["none of architecture, d_in and d_sae", "write"], f"inside of {inside}")
    refused(made(at, "saelens_topk", lambda t: t.replace('"architecture"', '"arch"')),
            ["says k", "no architecture", "add the architecture"], "k without an architecture")
    refused(made(at, "learning_topk", lambda t: t.replace('"k": 4', '"l": 4')[:-1] +
                 ', "trainer.k": 4}'), ["has no 'trainer.k'"], "a dot outside of its object")
    path = f"{at}/notes.safetensors"
    text = (b'{"__metadata__": {"a": "1", "b": "2", "a": "1"}, "atoms": {"dtype": "F32", '
            b'"shape": [1, 1], "data_offsets": [0, 4]}}')
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + np.ones(1, "f4").tobytes())
    done = sagitta("encode", "--rows", path, "--dictionary", path, "--output", f"{at}/x.h5")
    ok(done.returncode == 65 and "__metadata__ has 'a' twice" in done.stderr, done.stderr)


@claim("a boolean is true or false, 1 or 0; null is false, and any other value is refused")
def check_booleans(at):
    for value, says in ((True, 1), (1, 1), (False, 0), (0, 0), (None, 0)):
        path, _ = imported(made(at, "saelens_topk", apply_b_dec_to_input=value), f"{value}")
        with h5py.File(path) as f:
            ok(f["encoder"].attrs["centered"] == says, f"apply_b_dec_to_input {value}")
        path, _ = imported(made(at, "saelens_topk", rescale_acts_by_decoder_norm=value), f"{value}")
        with h5py.File(path) as f:
            ok(f["encoder"].attrs["rescaled"] == says, f"rescale_acts_by_decoder_norm {value}")
        for name, key in (("sparsify_topk", "transcode"), ("sparsify_topk", "skip_connection"),
                          ("saelens_topk", "finetuning_scaling_factor"),
                          ("sparsify_topk", "signed"), ("saelens_topk", "is_transcoder")):
            if says:
                refused(made(at, name, **{key: value}), [key], f"{key} {value}")
            else:
                imported(made(at, name, **{key: value}), f"{key} {value}")
    for value in ("true", "yes", "false", "", 2, -1, 1.0, [True], {}):
        for name, key in (("sparsify_topk", "transcode"), ("saelens_topk", "apply_b_dec_to_input"),
                          ("saelens_topk", "finetuning_scaling_factor"),
                          ("saelens_topk", "rescale_acts_by_decoder_norm")):
            refused(made(at, name, **{key: value}), [key, "true or false"], f"{key} {value!r}")


@claim("an unknown setting gives a warning, unless it only concerns training")
def check_unknown(at):
    for name in FOLDERS:
        _, said = imported(made(at, name), name)
        ok("warning" not in said, f"{name}: {said}")
    for name, key, value in (("saelens_topk", "input_scale", 2), ("saelens_topk", "dropout", 0.5),
                             ("sparsify_topk", "scaling_factor", 0.05),
                             ("sparsify_topk", "gate", [1, 2]), ("sparsify_topk", "act", True),
                             ("learning_topk", "norm_factor", 20.5),
                             ("saelens_topk", "activation_fn_kwargs", {"postact": "abs"}),
                             ("saelens_topk", "inner", {"deep": {"factor": 3}})):
        _, said = imported(made(at, name, **{key: value}), f"{key} {value}")
        ok("warning" in said and key in said and "not known here" in said, f"{key}: {said}")
    for value in (None, False, "none", {}):
        _, said = imported(made(at, "saelens_topk", own=value), f"own {value}")
        ok("warning" not in said, f"what is off: {value}: {said}")
    older = dict(
        model_name="gpt2-small", hook_name="blocks.3.hook_z", hook_layer=3, hook_head_index=None,
        activation_fn_str="relu", activation_fn_kwargs={}, finetuning_scaling_factor=False,
        context_size=128, prepend_bos=True, dataset_path="x", dataset_trust_remote_code=True,
        sae_lens_training_version="3.1", neuronpedia_id="gpt2/3", lr=4e-4, l1_coefficient=2,
        adam_beta1=0.9, seqpos_slice=[None], model_from_pretrained_kwargs={"center": True},
        b_dec_init_method="zeros", noise_scale=0, seed=42, reshape_activations="hook_z")
    _, said = imported(made(at, "saelens_relu_f16", **older), "an older folder")
    ok("warning" not in said, f"an older folder: {said}")
    refused(made(at, "saelens_topk", reshape_activations="flat"), ["reshape_activations flat"],
            "another shape")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        check_factor(at)
        check_no_factor(at)
        check_functions(at)
        check_transcoders(at)
        check_names(at)
        check_booleans(at)
        check_unknown(at)
    done_testing()
