# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta import` reads the folders that SAELens, sparsify and dictionary_learning save,
and NumPy archives, bit for bit.  The stored encoder computes what these programs compute.  If
something is wrong with a folder, the message says how to repair it."""
import io
import json
import os
import shutil
import struct
import tempfile
import zlib

import h5py
import numpy as np

from exchange_files import (FOLDERS, MADE, change, raw, settings_of, straight, tensors,
                            weights_of)
from tap import claim, done_testing, ok, sagitta


def bits(a, b):
    return a.shape == b.shape and np.array_equal(np.ascontiguousarray(a).view("u4"),
                                                 np.ascontiguousarray(b).view("u4"))


def encode(f, rows):
    """(N.24) in NumPy: dense codes of rows for unit atoms."""
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


@claim("an infinite threshold is kept, and its atom has no codes")
def check_infinite(at):
    folder, codes = shutil.copytree(f"{MADE}/learning_jumprelu", f"{at}/infinite"), []
    for n in range(2):
        done = sagitta("import", folder, "--output", f"{at}/infinite{n}.h5")
        ok(done.returncode == 0, done.stderr)
        with h5py.File(f"{at}/infinite{n}.h5") as f:
            threshold, shape = f["encoder/threshold"][:], f["atoms"].shape
        np.save(f"{at}/x.npy", np.random.default_rng(1).standard_normal((50, shape[1]), dtype="f4"))
        done = sagitta("encode", "--encoder", f"{at}/infinite{n}.h5", "--rows", f"{at}/x.npy",
                       "--output", f"{at}/coded{n}.h5")
        ok(done.returncode == 0, done.stderr)
        with h5py.File(f"{at}/coded{n}.h5") as f:
            s = f["supports"]
            rows = np.repeat(np.arange(50), np.diff(s["indptr"][:]))
            codes.append(list(zip(rows, s["indices"][:], s["data"][:])))
        atom = codes[0][0][1]
        change(folder, lambda t: t["threshold"][1].__setitem__(atom, np.inf))
    ok(threshold[atom] == np.inf and np.isfinite(np.delete(threshold, atom)).all(), f"{threshold}")
    ok(codes[1] == [c for c in codes[0] if c[1] != atom] and codes[1],
       "other atoms keep their codes")


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
        ok(f.attrs["nonnegative"] == 1, "encode gives this dictionary nonnegative codes")


def archive(folder, values, write=np.savez):
    os.makedirs(folder, exist_ok=True)
    write(f"{folder}/params.npz", **values)
    return f"{folder}/params.npz"


@claim("NumPy archives give what safetensors give; those of Gemma Scope need no settings")
def check_archives(at):
    for name in FOLDERS:
        t = raw(weights_of(f"{MADE}/{name}"))
        if not name.startswith("learning"):
            continue
        folder = f"{at}/{name}-npz"
        os.makedirs(folder)
        shutil.copy(f"{MADE}/{name}/config.json", folder)
        np.savez(f"{folder}/ae.npz", steps=np.int64(7), **{n: v for n, (_, v) in t.items()})
        done = sagitta("import", folder, "--output", f"{folder}.h5")
        ok(done.returncode == 0, f"{name}: {done.stderr}")
        done = sagitta("diff", f"{folder}.h5", f"{at}/{name}.h5")
        ok(done.returncode == 0 and not done.stdout, f"{name}: {done.stdout}")
    random = np.random.default_rng(1)
    values = {n: random.standard_normal(shape).astype("f4") for n, shape in (
        ("W_enc", (16, 40)), ("W_dec", (40, 16)), ("b_enc", 40), ("b_dec", 16))}
    values["threshold"] = np.abs(random.standard_normal(40)).astype("f4")
    path = archive(f"{at}/gemma", values)
    done = sagitta("import", f"{at}/gemma", "--output", f"{at}/gemma.h5")
    ok(done.returncode == 0 and "program=gemma_scope" in done.stderr, done.stderr)
    ok(sagitta("verify", f"{at}/gemma.h5").returncode == 0, "verify passes the import")
    with h5py.File(f"{at}/gemma.h5") as f:
        e = f["encoder"]
        ok(bits(e["decoder"][:], values["W_dec"]) and bits(e["weights"][:], values["W_enc"].T) and
           bits(e["threshold"][:], values["threshold"]), "the bits of the archive")
        ok(e.attrs["kind"] == "jumprelu" and not e.attrs["centered"] and
           e.attrs["settings"] == "", "its encoder takes rows as they are")
        x = random.standard_normal((300, 16)).astype("f4")
        np.save(f"{at}/x.npy", x)
        made = encode(f, x)
        pre = x @ values["W_enc"] + values["b_enc"]
        acts = np.where(pre > values["threshold"], np.maximum(pre, 0), 0)
        ok(np.abs(made / e["norm"][:] - acts).max() < 1e-5,
           "the encoder's codes are those of its forward pass")
    done = sagitta("encode", "--rows", f"{at}/x.npy", "--encoder", f"{at}/gemma.h5", "--output",
                   f"{at}/gemma-codes.h5")
    ok(done.returncode == 0, done.stderr)
    with h5py.File(f"{at}/gemma-codes.h5") as f:
        counts = np.diff(f["supports/indptr"][:])
    ok(np.array_equal(counts, (acts > 0).sum(1)), "the numbers of its codes")
    done = sagitta("export", f"{at}/gemma.h5", "--to", "saelens", "--output", f"{at}/gemma-lens")
    ok(done.returncode == 0, done.stderr)
    large = f"{at}/wide"
    os.makedirs(large)
    with open(f"{large}/params.npz", "wb") as f:
        f.write(wide(values))
    with np.load(f"{large}/params.npz") as f:
        ok(all(bits(f[n], v) for n, v in values.items()), "NumPy reads the wide archive")
    done = sagitta("import", large, "--output", f"{at}/wide.h5")
    ok(done.returncode == 0, done.stderr)
    ok(not sagitta("diff", f"{at}/wide.h5", f"{at}/gemma.h5").stdout, "numbers of 64 bits")
    check_bad_archives(at, values, path)
    check_flips(at, wide(values))


def wide(values):
    """The archive in the form for sizes above 32 bits: all sizes have 64 bits."""
    body = directory = b""
    for name, value in values.items():
        file, text = f"{name}.npy".encode(), io.BytesIO()
        np.save(text, value)
        data = text.getvalue()
        extra = struct.pack("<HHQQQ", 1, 24, len(data), len(data), len(body))
        head = struct.pack("<5H3I", 45, 0, 0, 0, 0, zlib.crc32(data), 2**32 - 1, 2**32 - 1)
        directory += (b"PK\1\2\x2d\0" + head + struct.pack("<5HII", len(file), len(extra), 0, 0, 0,
                                                             0, 2**32 - 1) + file + extra)
        body += b"PK\3\4" + head + struct.pack("<HH", len(file), 0) + file + data
    end = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, len(values), len(values),
                      len(directory), len(body))
    locator = struct.pack("<IIQI", 0x07064b50, 0, len(body) + len(directory), 1)
    last = struct.pack("<I4HIIH", 0x06054b50, 0, 0, 2**16 - 1, 2**16 - 1, 2**32 - 1, 2**32 - 1, 0)
    return body + directory + end + locator + last


def check_bad_archives(at, values, path):
    def edited(what, words, **changes):
        folder = tempfile.mkdtemp(dir=at)
        archive(folder, {n: v for n, v in {**values, **changes}.items() if v is not None})
        refused(folder, words, what)

    def written(what, words, text):
        folder = tempfile.mkdtemp(dir=at)
        with open(f"{folder}/params.npz", "wb") as f:
            f.write(text)
        refused(folder, words, what)

    with open(path, "rb") as f:
        whole = f.read()
    folder = tempfile.mkdtemp(dir=at)
    archive(folder, values, np.savez_compressed)
    refused(folder, ["is compressed", "numpy.savez("], "a compressed archive")
    edited("no threshold", ["has no 'threshold'", "W_enc"], threshold=None)
    edited("whole numbers", ["no float", "F32"], W_enc=np.ones((16, 40), "i4"))
    edited("the other byte order", ["big-endian"], b_enc=values["b_enc"].astype(">f4"))
    edited("float64", ["float64", "float32"], W_dec=values["W_dec"].astype("f8"))
    edited("Fortran order", ["Fortran order"], W_dec=np.asfortranarray(values["W_dec"]))
    edited("a transposed encoder", ["transposed"], W_enc=values["W_enc"].T.copy())
    written("nothing", ["too short"], b"")
    written("zeros", ["no directory"], bytes(5000))
    written("bytes behind the end", ["no directory"], whole + b"x")
    for cut in range(1, len(whole), len(whole) // 40):
        written(f"the first {cut} bytes", ["damaged"], whole[:cut])
    twice = whole.replace(b"b_enc.npy", b"b_dec.npy")
    written("a name that is there twice", ["'b_dec' twice"], twice)
    at_data = whole.index(values["W_dec"].tobytes())
    written("a flipped bit", ["W_dec.npy", "its checksum is"],
            whole[:at_data] + bytes([whole[at_data] ^ 1]) + whole[at_data + 1:])
    check_flips(at, whole)


def check_flips(at, whole):
    """A flipped bit is refused, or it is in a byte without meaning."""
    random = np.random.default_rng(2)
    heads = [i for i in range(len(whole) - 4) if whole[i:i + 2] == b"PK"]
    for i in range(150):
        place = heads[i % len(heads)] + int(random.integers(60)) if i % 2 else int(
            random.integers(len(whole)))
        text = bytearray(whole)
        text[min(place, len(text) - 1)] ^= 1 << int(random.integers(8))
        folder = tempfile.mkdtemp(dir=at)
        with open(f"{folder}/params.npz", "wb") as f:
            f.write(text)
        done = sagitta("import", folder, "--output", f"{folder}.h5")
        same = done.returncode == 0 and not sagitta("diff", f"{folder}.h5",
                                                    f"{at}/gemma.h5").stdout
        ok(same or done.returncode == 65, f"bit {i} at {place}: {done.returncode} {done.stderr}")


def refused(folder, words, what):
    out = f"{folder}.h5"
    done = sagitta("import", folder, "--output", out)
    ok(done.returncode in (2, 65) and all(w in done.stderr for w in words) and
       not os.path.exists(out), f"{what}: {done.returncode} {done.stderr}")


@claim("an error in a folder is named, and the message says how to repair it")
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
    folder = tempfile.mkdtemp(dir=at)
    open(f"{folder}/ae.pt", "w").close()
    refused(folder, ["pickle", "torch.load", "ae.safetensors"], "a pickle")
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
    for number in np.nan, -np.inf:
        edited("learning_jumprelu", value("threshold", 5, number), ["thresholds"], f"{number}")
    for name, values, words in (
            ("saelens_topk", {"d_in": 17}, ["says d_in 17", "have 16"]),
            ("sparsify_topk", {"num_latents": 99}, ["says num_latents 99", "have 24"]),
            ("saelens_topk", {"normalize_activations": "layer_norm"}, ["layer_norm", "normalise"]),
            ("saelens_topk", {"k": None}, ["has no 'k'"]),
            ("saelens_topk", {"k": "many"}, ["'k'", "'many', not a whole number"]),
            ("sparsify_topk", {"k": 2.5}, ["'k'", "'2.5', not a whole number"]),
            ("sparsify_topk", {"k": -1}, ["'k'", "'-1', not a whole number from 0 on"]),
            ("sparsify_topk", {"k": 0}, ["'k' of", "is 0: a row has one code or more"]),
            ("sparsify_topk", {"k": 25}, ["'k' of", "is 25, and", "has 24 atoms"]),
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
        ok("kind" not in f["encoder"].attrs and "weights" not in f["encoder"],
           "the file has no other part of the encoder")
    done = sagitta("import", "--output", f"{at}/x.h5")
    ok(done.returncode == 2 and "folder is missing" in done.stderr,
       "a command without a folder is refused")
    done = sagitta("import", folder, "--output", f"{folder}/x.h5")
    ok(done.returncode == 73 and "--force" in done.stderr, f"a result is there: {done.stderr}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        check_made(at)
        check_infinite(at)
        check_repeats(at)
        check_archives(at)
        check_errors(at)
    done_testing()
