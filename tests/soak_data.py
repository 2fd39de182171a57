# SPDX-License-Identifier: BSD-3-Clause
"""Small data of every kind for tests/soak_faults, the commands that read them, and the results of
these commands without a fault.

Everything is made twice, as a and b, from different numbers, but with the same names, shapes and
layouts.  b serves as an older version of a, or as the data of another job."""
import hashlib
import os
import re
import shutil
import signal
import subprocess

import h5py
import numpy as np

JOB = " --quiet --output out"
COMMANDS = {
    # name: words, results, and perhaps other commands.  While this one runs, it first publishes
    # what they would, and at its end its own results.
    "synth": ("synth --n-rows 60 --atoms 12 --columns 16 --top-s 3 --start-cosine 0.8",
              "rows.h5 dictionary.h5 start.h5"),
    "synth-world": ("synth --kind world --n-rows 80 --atoms 24 --columns 12",
                    "rows.h5 dictionary.h5 truth.h5"),
    "synth-systems": ("synth --systems 5 --system-rows 16 --mixed --frame 2", "systems.h5"),
    "seed": ("seed --rows in/rows.h5 --atoms 12 --center", "dictionary.h5"),
    "seed-many": ("seed --rows in/many.h5 --atoms 12 --center", "dictionary.h5"),
    "encode": ("encode --rows in/rows.h5 --dictionary in/start.h5 --top-s 3 --threads 1",
               "supports.h5"),
    "encode-rounds": ("encode --rows in/rows.h5 --dictionary in/start.h5 --top-s 4 --rounds 3 "
                      "--rho 0.1 --block 16 --tile 4 --threads 2", "supports.h5"),
    "encode-mean": ("encode --rows in/rows.h5 --dictionary in/seeded.h5 --top-s 2 --threads 1",
                    "supports.h5"),
    "encode-frames": ("encode --rows in/rows2.h5 --dictionary in/start2.h5 --top-s 2 --threads 1",
                      "supports.h5"),
    "encode-many": ("encode --rows in/many.h5 --dictionary in/start.h5 --top-s 2 --block 3000 "
                    "--threads 1", "supports.h5"),
    "encode-npy": ("encode --rows in/rows.npy --dictionary in/atoms.npy --top-s 3 --block 32 "
                   "--threads 1", "supports.h5"),
    "encode-plain": ("encode --rows in/plain.h5 --dictionary in/start.h5 --top-s 3 --block 32 "
                     "--threads 1", "supports.h5"),
    "encode-real": ("encode --rows in/real.h5 --dictionary in/atoms-real.h5 --top-s 4 --threads 1",
                    "supports.h5"),
    "encode-nonnegative": ("encode --rows in/rows.h5 --dictionary in/fitted.h5 --top-s 3 --rounds "
                           "2 --threads 1", "supports.h5"),
    "route": ("route --rows in/rows.h5 --dictionary in/start.h5 --top-s 3 --threads 1",
              "supports.h5"),
    "color": ("color --supports in/supports.h5", "classes.h5"),
    "color-routed": ("color --supports in/routed.h5", "classes.h5"),
    "assemble": ("assemble --rows in/rows.h5 --dictionary in/start.h5 --supports in/supports.h5 "
                 "--threads 1", "systems.h5"),
    "assemble-classes": ("assemble --rows in/rows.h5 --dictionary in/start.h5 --supports "
                         "in/supports.h5 --classes in/classes.h5 --threads 1", "systems.h5"),
    "assemble-frames": ("assemble --rows in/rows2.h5 --dictionary in/start2.h5 --supports "
                        "in/supports2.h5 --directions 2 --threads 1", "systems.h5"),
    "solve": ("solve --systems in/systems.h5 --threads 1", "solutions.h5"),
    "solve-mixed": ("solve --systems in/mixed.h5 --escalate --threads 1", "solutions.h5"),
    "refit": ("refit --rows in/rows.h5 --dictionary in/start.h5 --supports in/supports.h5 "
              "--sweeps 2 --threads 1", "dictionary.h5 supports.h5", "refit-1"),
    "refit-1": ("refit --rows in/rows.h5 --dictionary in/start.h5 --supports in/supports.h5 "
                "--sweeps 1 --threads 1", "dictionary.h5 supports.h5"),
    "refit-4": ("refit --rows in/rows.h5 --dictionary in/start.h5 --supports in/supports.h5 "
                "--sweeps 4 --threads 1", "dictionary.h5 supports.h5", "refit-1 refit refit-3"),
    "refit-3": ("refit --rows in/rows.h5 --dictionary in/start.h5 --supports in/supports.h5 "
                "--sweeps 3 --threads 1", "dictionary.h5 supports.h5", "refit-1 refit"),
    "refit-classes": ("refit --rows in/rows.h5 --dictionary in/start.h5 --supports "
                      "in/supports.h5 --classes in/classes.h5 --threads 1",
                      "dictionary.h5 supports.h5"),
    "refit-reroute": ("refit --rows in/rows.h5 --dictionary in/start.h5 --supports "
                      "in/supports.h5 --reroute --threads 1", "dictionary.h5 supports.h5"),
    "refit-frames": ("refit --rows in/rows2.h5 --dictionary in/start2.h5 --supports "
                     "in/supports2.h5 --directions 2 --threads 1", "dictionary.h5 supports.h5"),
    "fit": ("fit --rows in/rows.h5 --holdout in/held.h5 --atoms 8 --top-s 3 --rounds 2 --sweeps 2 "
            "--threads 1", "dictionary.h5 state.h5 supports.h5", "fit-0 fit-1"),
    "fit-1": ("fit --rows in/rows.h5 --holdout in/held.h5 --atoms 8 --top-s 3 --rounds 2 "
              "--sweeps 1 --threads 1", "dictionary.h5 state.h5 supports.h5", "fit-0"),
    "fit-0": ("fit --rows in/rows.h5 --holdout in/held.h5 --atoms 8 --top-s 3 --rounds 2 "
              "--sweeps 0 --threads 1", "dictionary.h5 state.h5 supports.h5"),
    "train": ("train --rows in/rows.h5 --holdout in/held.h5 --atoms 12 --top-s 3 --epochs 2 "
              "--batch 32 --threads 1", "dictionary.h5"),
    "detect": ("detect --rows in/rows.h5 --dictionary in/start.h5 --codes in/supports.h5 "
               "--threads 1", "dictionary.h5"),
    "top": ("top --supports in/supports.h5", "top.h5"),
    "compare": ("compare in/start.h5 in/dictionary.h5", "comparison.h5"),
    "harvest": ("harvest --capture in/capture.h5 --threads 1", "rows.h5"),
    "pack": ("pack --capture in/prompts.h5", "capture.h5"),
    "attribute": ("attribute --capture in/capture.h5 --dictionary in/eye.npy --supports "
                  "in/captured.h5 --threads 1", "attribution.h5"),
    "merge": ("merge in/part-0.h5 in/part-1.h5", "supports.h5"),
    "terminal": ("terminal --rows in/rows.h5 --dictionary in/start.h5 --supports in/supports.h5 "
                 "--directions 2 --cross 4 --threads 1", "terminal.h5"),
    "terminal-dump": ("terminal --rows in/rows.h5 --dictionary in/start.h5 --supports "
                      "in/supports.h5 --directions 2 --cross 4 --spectrum none --dump-artifact "
                      "out/dump --threads 1", "terminal.h5 dump dump.atoms"),
    "terminal-slq": ("terminal --rows in/rows.h5 --dictionary in/start.h5 --supports "
                     "in/supports.h5 --directions 2 --evidence slq --threads 1", "terminal.h5"),
    "terminal-frames": ("terminal --rows in/rows2.h5 --dictionary in/start2.h5 --supports "
                        "in/supports2.h5 --directions 1 --cross 4 --threads 1", "terminal.h5"),
}
SHOWN = "terminal.h5", "solutions.h5", "refitted.h5"  # only verify, inspect and diff read them
FOREIGN = ("rows.npy", "atoms.npy", "plain.h5", "real.h5", "atoms-real.h5", "capture.h5",
           "prompts.h5", "eye.npy")  # without checksums


class Command:
    def __init__(self, name, words, results, steps=""):
        self.name, self.words, self.results = name, (words + JOB).split(), results.split()
        self.inputs = sorted(set(re.findall(r"\bin/(\S+)", words)))
        self.steps = steps.split()
        # compare takes the number of rows of each atom from the supports beside its dictionary.
        self.beside = ["supports.h5"] if name == "compare" else []


class Data:
    """folder/a and folder/b have input files, and in done/COMMAND the results of each command."""

    def __init__(self, folder, program, environment):
        self.folder, self.program, self.environment = folder, program, environment
        self.commands = {name: Command(name, *row) for name, row in COMMANDS.items()}
        self.chunks, self.expected, self.seconds = {}, {}, {}
        for version in "ab":
            self.make(version)

    def at(self, version, name):
        return os.path.join(self.folder, version, name)

    def call(self, words, where):
        done = subprocess.run([self.program, *words.split()], cwd=where, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=100)
        if done.returncode:
            raise SystemExit(f"cannot prepare: {words}: {done.stderr}")

    def make(self, version):
        here, seed = os.path.join(self.folder, version), "ab".index(version)
        os.makedirs(f"{here}/in")
        for words in (
                f"synth --n-rows 150 --atoms 12 --columns 16 --top-s 3 --start-cosine 0.8 "
                f"--noise 0.1 --seed {seed} --output in",
                f"synth --n-rows 40000 --atoms 12 --columns 16 --top-s 3 --noise 0.1 "
                f"--seed {seed} --output many",
                f"synth --n-rows 50 --atoms 12 --columns 16 --top-s 3 --noise 0.1 "
                f"--seed {seed + 2} --output held",
                f"synth --n-rows 120 --atoms 6 --columns 12 --top-s 2 --frame 2 --noise 0.1 "
                f"--start-cosine 0.8 --seed {seed} --output two",
                f"synth --systems 6 --system-rows 12 --mixed --frame 2 --indefinite 0.2 "
                f"--seed {seed} --output mixed"):
            self.call(words + " --quiet", here)
        for old, new in (("many/rows", "many"), ("held/rows", "held"), ("two/rows", "rows2"),
                         ("two/start", "start2"), ("mixed/systems", "mixed")):
            os.rename(f"{here}/{old}.h5", f"{here}/in/{new}.h5")
        self.make_foreign(here, seed)
        self.make_captures(here, seed)
        for i, part in enumerate(("0:4096", "4096:")):
            self.call("encode --rows in/many.h5 --dictionary in/start.h5 --top-s 2 --threads 1 "
                      f"--row-range {part} --quiet --output in/part-{i}.h5", here)
        for name, new in (("seed", "seeded"), ("encode", "supports"), ("route", "routed"),
                          ("encode-frames", "supports2"), ("color", "classes"),
                          ("assemble", "systems"), ("solve", "solutions"),
                          ("terminal", "terminal"), ("refit", "refitted"),
                          ("fit", "fitted")):
            self.run(version, name)
            result = self.commands[name].results[0]
            shutil.copy(self.at(version, f"done/{name}/{result}"), f"{here}/in/{new}.h5")
        for name in self.commands:
            self.run(version, name)
        for name in os.listdir(f"{here}/in"):
            if name.endswith(".h5"):
                self.chunks[version, name] = chunks_of(f"{here}/in/{name}")

    def make_foreign(self, here, seed):
        with h5py.File(f"{here}/in/rows.h5") as f, h5py.File(f"{here}/in/start.h5") as g:
            rows, atoms = f["rows"][:], g["atoms"][:]
        np.save(f"{here}/in/rows.npy", rows)
        np.save(f"{here}/in/atoms.npy", atoms)
        with h5py.File(f"{here}/in/plain.h5", "w") as f:
            f["rows"] = rows
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "input")
        with h5py.File(f"{source}/minilm-l3-kjv-8k.h5") as f:
            real = f["rows"][2000 * seed:2000 * seed + 300]
        with h5py.File(f"{here}/in/real.h5", "w") as f:
            f["rows"] = real
        atoms = real[:64].astype(float)
        with h5py.File(f"{here}/in/atoms-real.h5", "w") as f:
            f["atoms"] = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")

    def make_captures(self, here, seed):
        rng = np.random.default_rng(seed)
        for name, more in ("capture", {}), ("prompts", {"q_start": np.array([0, 20, 40])}):
            with h5py.File(f"{here}/in/{name}.h5", "w") as f:
                for key in "qkv":
                    f[key] = rng.standard_normal((40, 2, 4)).astype("f4")
                for key, value in more.items():
                    f[key], f["token"] = value, np.arange(40, dtype="i4") % 20
                f.attrs["causal"] = 1
        np.save(f"{here}/in/eye.npy", np.roll(np.eye(8, dtype="f4"), seed, 1))
        self.call("encode --capture in/capture.h5 --dictionary in/eye.npy --top-s 2 --quiet "
                  "--output in/captured.h5", here)

    def run(self, version, name):
        """Run a command without a fault.  Its results are kept in done/."""
        here, command = os.path.join(self.folder, version), self.commands[name]
        if (version, name) in self.expected:
            return
        self.call(" ".join(command.words), here)
        os.makedirs(f"{here}/done", exist_ok=True)
        os.rename(f"{here}/out", f"{here}/done/{name}")
        self.expected[version, name] = results_of(f"{here}/done/{name}", command.results)

    def states(self, version, name):
        """The contents that each result may have while the command runs: those after its steps, and
        the last ones."""
        command = self.commands[name]
        return [self.expected[version, step] for step in (*command.steps, name)]


def chunks_of(path):
    """(offset, bytes) of every chunk of a file."""
    found = []

    def visit(_, item):
        if isinstance(item, h5py.Dataset) and item.chunks:
            for i in range(item.id.get_num_chunks()):
                info = item.id.get_chunk_info(i)
                found.append((info.byte_offset, info.size))
    with h5py.File(path) as f:
        f.visititems(visit)
    return sorted(found)


def bytes_of(value):
    value = np.asarray(value)
    content = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
    return value.dtype.str + str(value.shape) + hashlib.sha256(content).hexdigest()


def contents_read(path):
    """As contents_of(), in this process."""
    if not os.path.lexists(path):
        return None
    if not path.endswith(".h5"):
        with open(path, "rb") as f:
            return {"bytes": hashlib.sha256(f.read()).hexdigest()}
    found = {}

    def visit(name, item):
        found[name] = bytes_of(item[()]) if isinstance(item, h5py.Dataset) else "group"
        for key, value in item.attrs.items():
            if key != "attributes_sha256":  # only verify checks them
                found[f"{name}@{key}"] = bytes_of(value)
    try:
        with h5py.File(path) as f:
            visit("", f)
            for top in f:
                if top != "run":  # /run is not read
                    visit(top, f[top])
                    if isinstance(f[top], h5py.Group):
                        f[top].visititems(lambda name, item, at=top: visit(f"{at}/{name}", item))
    except Exception as error:  # any error of HDF5 for a damaged file
        return {"unreadable": str(error)[:80]}
    return found


def contents_of(path):
    """{object or attribute: contents} outside /run; the bytes of a file that is not HDF5; None if
    there is no file.  It runs in a separate process, because HDF5 may crash or hang on a damaged
    file."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(5)
        found = contents_read(path)
        with os.fdopen(writer, "w") as f:
            f.write(repr(found))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as f:
        text = f.read()
    return eval(text) if os.waitpid(child, 0)[1] == 0 and text else {"unreadable": "crash"}


def results_of(folder, names):
    return {name: contents_of(os.path.join(folder, name)) for name in names}


def difference(one, two):
    """The first difference of two contents, in words."""
    if one is None or two is None:
        return "one is missing"
    for content in one, two:
        if "unreadable" in content:
            return f"unreadable ({content['unreadable']})"
    for key in sorted(set(one) | set(two)):
        if one.get(key) != two.get(key):
            return key
    return ""
