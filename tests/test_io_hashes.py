# SPDX-License-Identifier: BSD-3-Clause
"""Claim: every dataset and text of every kind of file has a hash, and hashlib computes the same
one.  verify and readers refuse data that were changed or lost, even if HDF5's checksums do not show
it."""
import os
import random
import shutil
import signal
import subprocess
import tempfile

from tap import claim, done_testing, ok, peer_missing_all, sagitta

try:
    import h5py
    import numpy as np
    from seal import older, reseal, wrong_seals
except ImportError as error:
    peer_missing_all(str(error))

TRIES, SEED = 7, 5  # TRIES: damaged copies of a file of each kind
VERSION_110 = ("v110", "v110")


def files_make(folder):
    """A small file of each kind."""
    jobs = [("synth", "--n-rows", 4000, "--columns", 80, "--atoms", 24, "--top-s", 3),
            ("encode", "--top-s", 3), ("color",), ("assemble",), ("solve",),
            ("terminal", "--directions", 1, "--cross", 5), ("refit", "--sweeps", 1)]
    inputs = {"encode": ("rows", "dictionary"), "color": ("supports",), "solve": ("systems",),
              **{name: ("rows", "dictionary", "supports") for name in
                 ("assemble", "terminal", "refit")}}
    for name, *words in jobs:
        for word in inputs.get(name, ()):
            words += [f"--{word}", f"{folder}/{word}.h5"]
        out = f"{folder}/refit" if name == "refit" else folder
        done = sagitta(name, *words, "--output", out)
        if done.returncode:
            raise SystemExit(f"Bail out! {name}: {done.stderr}")
    names = ("rows", "dictionary", "supports", "classes", "systems", "solutions", "terminal")
    return [f"{folder}/{name}.h5" for name in names], [f"{folder}/refit/dictionary.h5",
                                                       f"{folder}/refit/supports.h5"]


@claim("hashlib gives the hashes of every dataset and of the attributes in and outside /run")
def check_hashes(paths):
    for path in paths:
        wrong = wrong_seals(path)
        ok(not wrong, f"{os.path.basename(path)}: {wrong}")


def verify(path):
    done = sagitta("verify", path)
    return done.returncode, done.stderr.strip()


def changed(path, change, hashed=False):
    copy = path + ".changed"
    shutil.copy(path, copy)
    with h5py.File(copy, "r+", libver=VERSION_110) as f:
        change(f)
        if hashed:
            reseal(f)
    return copy


def turn(f, name):
    """Flip the lowest bit of the value in the middle, which keeps its range and type."""
    values = f[name][()]
    flat = values.reshape(-1).view("u1")
    flat[flat.size // 2 // values.itemsize * values.itemsize] ^= 1
    f[name][()] = values


@claim("any value, text or hash that was changed is refused")
def check_changes(paths):
    supports = paths[2]
    changes = [("rows.h5", "rows", "'/rows'"), ("rows.h5", "hashes/rows", "'/hashes'"),
               ("terminal.h5", "run/terminal/spectrum", "SHA-256"),
               ("terminal.h5", "terminal/covariance_blocks", "SHA-256"),
               ("solutions.h5", "solutions/delta_t", "SHA-256")]
    for name, data, words in changes:
        path = os.path.join(os.path.dirname(supports), name)
        code, text = verify(changed(path, lambda f, data=data: turn(f, data)))
        ok(code == 65 and words in text and "not what was written" in text, text)
    attributes = [("outside", lambda f: f["metrics"].attrs.__setitem__("fvu_formula", "x")),
                  ("in /run", lambda f: f["run"].attrs.__setitem__("host", "x")),
                  ("'attributes_sha256'",
                   lambda f: f["run"].attrs.__delitem__("attributes_sha256")),
                  ("outside", lambda f: f["metrics"].attrs.__setitem__("l0", np.float64(2.5))),
                  ("'sha256_tree'",
                   lambda f: f["supports/data"].attrs.__delitem__("sha256_tree")),
                  ("'zero_chunks'", lambda f: f["mean" if "mean" in f else "supports/data"]
                      .attrs.__delitem__("zero_chunks"))]
    for words, change in attributes:
        code, text = verify(changed(supports, change))
        ok(code == 65 and words in text, text)
    lost = changed(paths[0], lambda f: (f.__delitem__("rows"), f.create_dataset(
        "rows", (4000, 80), "f4", chunks=(3276, 80), fletcher32=True)), hashed=True)
    code, text = verify(lost)
    ok(code == 65 and "stores 0 of 1280000 bytes" in text, text)
    done = sagitta("diff", paths[0], lost)
    ok(done.returncode == 65 and "not stored as it was written" in done.stderr, done.stderr.strip())
    ok(verify(changed(supports, lambda f: None, hashed=True))[0] == 0, "right hashes are accepted")
    ok(verify(changed(supports, lambda f: f.create_dataset("mine", data=np.ones(3))))[0] == 0,
       "a dataset that is not Sagitta's needs no hash")


@claim("files of older formats, without hashes or with one of all values, are verified and read")
def check_older(paths):
    for version in (1, 2, 3):
        for path in paths:
            code, text = verify(changed(path, lambda f, version=version: older(f, version)))
            ok(code == 0, f"{version}: {os.path.basename(path)} {text}")
        old = changed(paths[2], lambda f, version=version: older(f, version))
        ok(version < 2 or not wrong_seals(old), f"{version}: {wrong_seals(old)}")
        done = sagitta("color", "--supports", old, "--output", f"{old}.{version}.h5")
        ok(done.returncode == 0, f"{version}: it is read {done.stderr.strip()}")
        done = sagitta("diff", paths[2], old)
        ok("format_version" in done.stdout and done.returncode == 1, f"{version}: {done.stdout}")

        def spoiled(f, version=version):
            older(f, version)
            turn(f, "supports/data")
        code, text = verify(changed(paths[2], spoiled))
        ok(version < 2 or code == 65, f"{version}: {text}")
    code, text = verify(changed(paths[0], lambda f: f.attrs.__setitem__("format_version", 5)))
    ok(code == 65 and "reads 1 to 4: use the Sagitta" in text, text)


def holes(path, whole, chooser):
    """Replace ranges of a file by zeros: whole chunks with the bytes around them, and the end of
    the file, as an interrupted download leaves a file of full size."""
    chunks = []
    with h5py.File(path) as f:
        f.visititems(lambda name, entry: chunks.extend(
            (f"/{name}", c.byte_offset, c.byte_offset + c.size)
            for c in map(entry.id.get_chunk_info, range(entry.id.get_num_chunks())))
            if isinstance(entry, h5py.Dataset) else None)
    chunks = [c for c in chunks if whole[c[1]:c[2]].strip(b"\0")]
    chosen = chooser.sample(chunks, min(len(chunks), TRIES - 2))
    while len(chosen) < TRIES - 2:
        chosen.append(chooser.choice(chunks))
    name, first, end = chooser.choice(chunks)
    page = (f"pages around {name}", first // 512 * 512, -(-end // 512) * 512)
    size = os.path.getsize(path)
    return [*chosen, page, ("the end", chooser.randrange(size // 2, size - 600), size)]


@claim("holes, lost writes and files that were cut are refused")
def check_holes(paths):
    chooser, tries = random.Random(SEED), 0
    for path in paths:
        with open(path, "rb") as f:
            whole = f.read()
        for name, first, end in holes(path, whole, chooser):
            copy = path + ".hole"
            with open(copy, "wb") as f:
                f.write(whole[:first])
                f.truncate(end)
                f.seek(end)
                f.write(whole[end:])
            code, text = verify(copy)
            tries += 1
            ok(code == 65, f"{os.path.basename(path)}, {name}, {first} to {end}: {code} {text}")
    ok(tries == 49, f"{tries} holes")


def walk(group, all_of_it):
    """Read all objects and attributes of a file.  all_of_it: also read indices of HDF5 that are not
    needed to read the values."""
    for entry in group.values():
        for name in entry.attrs:
            str(entry.attrs[name])
        if isinstance(entry, h5py.Group):
            walk(entry, False)
    if all_of_it:
        group.visititems(lambda name, entry: None)


def is_hidden(path):
    """Can all values be read, but not all indices?  This runs in a child process, because HDF5 may
    crash or hang."""
    child = os.fork()
    if child == 0:
        step = 1
        signal.alarm(20)
        try:
            with h5py.File(path) as f:
                walk(f, False)
                step = 2
                walk(f, True)
                step = 0
        finally:
            os._exit(step)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


@claim("a damaged index that Sagitta does not need is refused, since other programs read it")
def check_indices(folder):
    small, copy, found = f"{folder}/small", f"{folder}/flip.h5", 0
    sagitta("synth", "--n-rows", 20, "--columns", 8, "--atoms", 6, "--top-s", 2, "--output", small)
    sagitta("encode", "--rows", f"{small}/rows.h5", "--dictionary", f"{small}/dictionary.h5",
            "--top-s", 2, "--output", small)
    with open(f"{small}/supports.h5", "rb") as f:
        whole = bytearray(f.read())
    for at in range(0, len(whole), 31):
        whole[at] ^= 4
        with open(copy, "wb") as f:
            f.write(whole)
        whole[at] ^= 4
        if is_hidden(copy):
            found += 1
            code, text = verify(copy)
            ok(code == 65, f"byte {at}: {code} {text}")
    ok(found > 3, f"{found} bytes")


@claim("readers refuse a chunk of zeros in place of a stored one, and changed data")
def check_readers(folder, paths):
    rows, dictionary, supports = ("--rows", paths[0]), ("--dictionary", paths[1]), paths[2]
    jobs = {"rows": ("seed", "--atoms", 8), "dictionary": ("encode", "--top-s", 3, *rows),
            "supports": ("color",), "systems": ("solve",),
            "classes": ("refit", "--sweeps", 1, *rows, *dictionary, "--supports", supports)}
    datasets = {"rows": "rows", "dictionary": "atoms", "supports": "supports/indices",
                "classes": "color", "systems": "systems/D_blocks"}
    for kind, words in jobs.items():
        path = next(path for path in paths if path.endswith(f"/{kind}.h5"))
        bad = changed(path, lambda f, kind=kind: f[datasets[kind]].id.write_direct_chunk(
            (0,) * f[datasets[kind]].ndim,
            bytes(f[datasets[kind]].id.get_chunk_info(0).size)))
        done = sagitta(*words, f"--{kind}", bad, "--output", f"{folder}/out")
        ok(done.returncode == 65 and "is zero, and none was written so" in done.stderr,
           f"{kind}: {done.returncode} {done.stderr.strip()[-150:]}")
    # Commands that stream data leave the check of their hash to verify.  Atoms are read whole, so
    # their hash is checked here.
    bad = changed(paths[1], lambda f: turn(f, "atoms"))
    # one of the ranks and threads checks the hash
    for ranks, threads in (None, 1), (None, 3), (2, 1), (2, 4):
        done = sagitta(*jobs["dictionary"], "--dictionary", bad, "--threads", threads,
                       "--output", f"{folder}/out", **(dict(ranks=ranks) if ranks else {}))
        ok(done.returncode == 65 and "is not what was written" in done.stderr,
           f"{ranks} ranks, {threads} threads: {done.returncode} {done.stderr.strip()[-300:]}")


with tempfile.TemporaryDirectory() as where:
    made, fitted = files_make(where)
    check_hashes(made + fitted)
    check_changes(made)
    check_older(made)
    check_holes(made)
    check_indices(where)
    check_readers(where, made)
done_testing()
