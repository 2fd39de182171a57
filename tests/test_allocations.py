# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if an allocation of the program fails, whichever it is, the command ends with 71 and one
message, or its result is unchanged.  The result of an earlier run stays as it is, and no unfinished
file is left.

One allocation after another fails.  Allocations are grouped by the two calls that lead to them,
over all commands, and the first one of each group fails.  With CHECK_FULL=1 the first one of each
call path from main fails, for each command.  With EVERY=1 every one fails, which takes an hour.
ONLY=encode,fit runs these cases only.  Allocations of libraries are left out: if theirs fail, MPI
and HDF5 end the program by themselves."""
import filecmp
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE
from jobs import FAULTS, environment
from mixer_data import make, write
from tap import BENCH, FULL, SAGITTA, claim, done_testing, ok, sagitta, skip_all

BESIDE = re.compile(r"(^|\.)(used|run)(\.failed)?\.(in|log|json)$")
CRASHES = signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE
SAE = next(f for f in FOLDERS if f.startswith("saelens") and "jump" in f)
EVERY = os.environ.get("EVERY", "0") not in ("", "0")
D = "--rows in/rows.h5 --dictionary in/start.h5"
S = D + " --supports in/supports.h5"
FIT = "fit --rows in/rows.h5 --atoms 8 --top-s 3 --sweeps 1"
# The commands; those that write also get --output out --force.
WRITERS = {
    "synth": "synth --n-rows 60 --atoms 12 --columns 16 --top-s 3 --start-cosine 0.8",
    "world": "synth --kind world --n-rows 80 --atoms 24 --columns 12",
    "systems": "synth --systems 5 --system-rows 16 --mixed --frame 2",
    "seed": "seed --rows in/rows.h5 --atoms 12 --center",
    "encode": f"encode {D} --top-s 3 --rounds 2",
    "deck": "encode in/encode.in --top-s 3",
    "npy": "encode --rows in/rows.npy --dictionary in/atoms.npy --top-s 3 --filter on",
    "shards": "encode --rows in/part-*.npy --dictionary in/start.h5 --top-s 3 --center",
    "part": f"encode {D} --top-s 3 --row-range 0:",
    "captured": "encode --capture in/capture.h5 --dictionary in/eye.npy --top-s 2",
    "encoder": "encode --encoder in/sae --rows in/wide.npy",
    "l0": f"encode {D} --l0 2.5 --codes nonnegative",
    "encoder-l0": "encode --encoder in/trained --rows in/rows.h5 --l0 2.5",
    "route": f"route {D} --top-s 3",
    "merge": "merge in/part.h5",
    "color": "color --supports in/supports.h5",
    "assemble": f"assemble {S} --directions 2",
    "solve": "solve --systems in/systems.h5 --escalate",
    "refit": f"refit {S} --sweeps 1",
    "reroute": f"refit {S} --sweeps 1 --reroute",
    "fit": FIT,
    "minibatch": f"{FIT} --minibatch 64",
    "max-norm": f"{FIT} --max-norm 8 --holdout in/held.npy",
    "atoms": f"{FIT} --update atoms --holdout in/held.npy",
    "features": "fit --rows in/rows.h5 --atoms 8 --find features --l0 3 --holdout in/held.npy",
    "detectors": f"{FIT} --detectors --holdout in/held.npy",
    "seeds": f"{FIT} --seeds 2 --holdout in/held.npy",
    "choose": FIT.replace("top-s 3", "top-s auto --encode-s 4") + " --holdout in/held.npy",
    "fires": "encode --rows in/rows.h5 --dictionary in/detectors --detect",
    "saves": f"encode {D} --top-s 3 --block 32 --save-seconds 1e-9",
    "train": "train --rows in/rows.h5 --holdout in/held.npy --atoms 12 --top-s 3 --epochs 1 "
             "--batch 50",
    "batch": "train --rows in/rows.h5 --holdout in/held.npy --atoms 12 --selection batch --l0 3 "
             "--nested 4,12 --epochs 1 --batch 50",
    "kept": "refit --rows in/rows.h5 --encoder in/trained --sweeps 1",
    "terminal": f"terminal {S} --directions 2 --cross 4",
    "slq": f"terminal {S} --directions 2 --evidence slq",
    "compare": "compare in/start.h5 in/dictionary.h5",
    "top": "top --supports in/supports.h5",
    "detect": f"detect {D} --codes in/supports.h5",
    "harvest": "harvest --capture in/capture.h5",
    "pack": "pack --capture in/prompts.h5",
    "attribute": "attribute --capture in/capture.h5 --dictionary in/eye.npy --supports "
                 "in/captured/supports.h5",
    "import": f"import {os.path.abspath(MADE)}/{SAE}",
    "export": "export in/sae --to saelens --rows in/wide.npy",
}
READERS = {
    "evaluate": f"evaluate {D} --codes in/supports.h5",
    "truth": "evaluate --rows in/world/rows.h5 --dictionary in/world/dictionary.h5 --codes "
             "in/world/supports.h5 --truth in/world",
    "labels": f"evaluate {D} --codes in/supports.h5 --labels in/tokens.h5:/token",
    "inspect": "inspect in",
    "inspect --atom": "inspect in/run --atom 2 --rows in/tokens.h5 --vocabulary in/words.txt",
    "inspect --tokens": "inspect in/run --atom 2 --tokens in/tokens.npy --vocabulary in/words.json",
    "verify": "verify in",
    "chosen": "verify in/chosen --rows in/rows.h5",
    "dense": "bench verify in/run",
    "diff": "diff in/supports.h5 in/supports.h5",
    "bench": "bench route --n-rows 20 --atoms 16 --columns 8 --repeats 1",
    "serve": "serve --dictionary in/start.h5 --listen live --max-seconds 0.05 --policy off",
    "serve-mixer": "serve --dictionary in/start.h5 --mixer in/mixer.h5 --listen live --max-seconds "
                   "0.05 --policy off",
    "dry": f"encode {D} --top-s 3 --dry-run",
    "help": "fit --help",
}


def program(words, where, **more):
    of = [BENCH, *words[1:]] if words[0] == "bench" else [SAGITTA, *words]
    return subprocess.run(of, cwd=where, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=100,
                          env=environment(CUDA_VISIBLE_DEVICES="-1", OMP_NUM_THREADS="1", **more))


def need(where, words, output):
    done = program([*words.split(), "--output", output], where)
    if not ok(done.returncode == 0, f"{words}: {done.returncode} {done.stderr[-300:]}"):
        sys.exit(1)


def captures_make(here, rng):
    for name, more in ("capture", {}), ("prompts", {"q_start": np.array([0, 20, 40])}):
        with h5py.File(f"{here}/in/{name}.h5", "w") as f:
            for key in "qkv":
                f[key] = rng.standard_normal((40, 2, 4)).astype("f4")
            for key, value in more.items():
                f[key] = value
                f["token"] = np.ones(40, np.int32)
            f.attrs["causal"] = 1
    np.save(f"{here}/in/eye.npy", np.eye(8, dtype="f4"))
    need(here, "encode --capture in/capture.h5 --dictionary in/eye.npy --top-s 2", "in/captured")


def inputs_make(here, seed):
    """Make everything that commands read, in here/in."""
    rng = np.random.default_rng(seed)
    need(here, f"synth --n-rows 150 --atoms 12 --columns 16 --top-s 3 --start-cosine 0.8 --noise "
         f"0.1 --seed {seed}", "in")
    need(here, f"synth --systems 6 --system-rows 12 --seed {seed}", "in")
    with h5py.File(f"{here}/in/rows.h5") as f, h5py.File(f"{here}/in/start.h5") as g:
        rows, atoms = f["rows"][:], g["atoms"][:]
    for name, values in {"rows": rows, "atoms": atoms, "held": rows[::3] + 1, "part-0": rows[:70],
                         "part-1": rows[70:]}.items():
        np.save(f"{here}/in/{name}.npy", values)
    need(here, f"encode {D} --top-s 3", "in/supports.h5")
    need(here, f"encode {D} --top-s 3 --row-range 0:", "in/part.h5")
    need(here, f"encode {D} --top-s 3", "in/run")
    shutil.copy(f"{here}/in/start.h5", f"{here}/in/run/dictionary.h5")
    need(here, "top --supports in/supports.h5", "in/run")
    need(here, WRITERS["world"], "in/world")
    need(here, "encode --rows in/world/rows.h5 --dictionary in/world/dictionary.h5 --top-s 3",
         "in/world/supports.h5")
    with h5py.File(f"{here}/in/tokens.h5", "w") as f:
        f["rows"], f["token"] = rows, np.arange(len(rows), dtype="i4") % 9
    np.save(f"{here}/in/tokens.npy", np.arange(150, dtype="u1") % 5)
    with open(f"{here}/in/words.json", "w", encoding="utf-8") as words:
        json.dump({"added_tokens": [{"id": 4, "content": "<end>"}],
                   "model": {"vocab": {"\u0120a": 0, "b": 1, "\u010a": 2, "\u00c3": 3}}}, words)
    with open(f"{here}/in/words.txt", "w") as words:
        words.writelines(f" word{i}\n" for i in range(9))
    captures_make(here, rng)
    need(here, WRITERS["import"], "in/sae")
    need(here, WRITERS["detectors"], "in/detectors")
    need(here, WRITERS["train"], "in/trained")
    need(here, WRITERS["l0"], "in/chosen")
    shutil.copy(f"{here}/in/start.h5", f"{here}/in/chosen/dictionary.h5")
    with h5py.File(f"{here}/in/sae/dictionary.h5") as f:
        np.save(f"{here}/in/wide.npy", rng.standard_normal((40, f["atoms"].shape[1])).astype("f4"))
    write(f"{here}/in/mixer.h5", make(rng, (2,), heads=2, key_heads=1, dv=8))
    with open(f"{here}/in/encode.in", "w") as deck:
        deck.write("rows = in/rows.h5\ndictionary = \"in/start.h5\"  # atoms\nthreads = 1\n")


def results_of(folder):
    """{path: bytes} of the results below a folder."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if not BESIDE.search(name):
                path = os.path.join(at, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder)] = f.read()
    return found


def difference(text, wanted):
    """The first line that differs; "" if none does."""
    lines = itertools.zip_longest(text.splitlines(), wanted.splitlines())
    return next((f"prints '{a}' for '{b}'" for a, b in lines if a != b), "")


class Case:
    def __init__(self, folder, name, words, writes):
        self.folder, self.name, self.writes = folder, name, writes
        self.states = []  # folders with states that a run may leave
        self.words = words.split() + (["--quiet", "--force", "--output", "out"] if writes else [])

    def place(self, n):
        """A folder for one run, with the inputs, and the result of an earlier run on other
        inputs."""
        where = f"{self.folder}/try/{self.name}-{n}"
        os.makedirs(where)
        os.symlink(f"{self.folder}/a/in", f"{where}/in")
        if self.writes and n != "new":
            shutil.copytree(self.old, f"{where}/out")
        return where

    def states_add(self):
        """Add the states that fit publishes during the run: the start, each sweep, and the last
        sweep before detectors and other seeds are added."""
        words = " ".join(self.words[:-3])
        for bare in {words, words.replace(" --detectors", "").replace(" --seeds 2", "")}:
            for line in {bare.replace("sweeps 1", "sweeps 0"), bare} - {words}:
                self.states.append(f"{self.folder}/old/{self.name}-state-{len(self.states)}")
                need(f"{self.folder}/a", line, self.states[-1])

    def prepare(self):
        """Run without a fault.  Keeps the result, and the numbers of the allocations with the calls
        that lead to them."""
        if self.writes:
            self.old = f"{self.folder}/old/{self.name}"
            need(f"{self.folder}/b", " ".join(self.words[:-3]), self.old)
            self.before = results_of(self.old)
            if "--sweeps" in self.words and self.words[0] == "fit":
                self.states_add()
        self.new = self.place("new")
        self.states.append(f"{self.new}/out")
        paths = f"{self.folder}/{self.name}.paths"
        done = program(self.words, self.new, LD_PRELOAD=FAULTS, FAULT="own-all:1000000000",
                       FAULT_PATHS=paths)
        ok(done.returncode == 0, f"{self.name}: {done.returncode} {done.stderr[-300:]}")
        self.said = done.stdout
        with open(paths) as f:
            self.ways = [line.split() for line in f]

    def is_new(self, path, name):
        """Is the file a result of this run, or a state that it published?  fit may have removed the
        codes of an earlier dictionary."""
        if self.words[0] == "fit" and name == "supports.h5" and not os.path.exists(path):
            return True
        for state in self.states:
            if not os.path.exists(path) or not os.path.exists(f"{state}/{name}"):
                if os.path.exists(path) == os.path.exists(f"{state}/{name}"):
                    return True
            elif not name.endswith(".h5"):
                return filecmp.cmp(path, f"{state}/{name}", shallow=False)
            elif program(["diff", path, f"{state}/{name}"], self.folder).returncode == 0:
                return True
        return False

    def judge(self, where, done):
        """The error of a run; "" if there is none."""
        messages = [line for line in done.stderr.splitlines() if line.startswith("sagitta")]
        if done.returncode not in (0, 71):
            return f"exit {done.returncode} {done.stderr[-200:]}"
        if done.returncode and len(messages) != 1:
            return f"says {done.stderr[-300:]}"
        if not self.writes:
            varies = done.returncode or self.name in ("bench", "dry", "help")
            return "" if varies else difference(done.stdout, self.said)
        there = results_of(f"{where}/out")
        for name in sorted(set(there) | set(self.before)):
            is_old = done.returncode and there.get(name) == self.before.get(name)
            if not is_old and not self.is_new(f"{where}/out/{name}", name):
                return f"exit {done.returncode}, and {name} is neither the old nor the new one"
        return ""

    def fail(self, n):
        """Let the n-th allocation fail."""
        where = self.place(n)
        done = program(self.words, where, LD_PRELOAD=FAULTS, FAULT=f"own-all:{n}")
        wrong = self.judge(where, done)
        shutil.rmtree(where)
        return done.returncode, wrong


def check(case, seen, pool):
    with claim(f"{case.name}: after an allocation that fails, files are old or new, and whole"):
        case.prepare()
        seen = set() if FULL else seen
        # two threads may have given allocations the same number
        numbers = sorted({int(n) for n, near, way in case.ways if EVERY or not (
            (way if FULL else near) in seen or seen.add(way if FULL else near))})
        ok(len(case.ways) > 3, f"{len(case.ways)} allocations")
        ends = list(pool.map(case.fail, numbers))
        for n, (_, wrong) in zip(numbers, ends):
            ok(not wrong, f"{' '.join(case.words)}: allocation {n}: {wrong}")
        shutil.rmtree(case.new)
    print(f"# {case.name}: {len(case.ways)} allocations, {len(numbers)} failed, "
          f"{sum(code == 71 for code, _ in ends)} ended it", flush=True)


def main():
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    cases = [*((name, words, True) for name, words in WRITERS.items()),
             *((name, words, False) for name, words in READERS.items())]
    only = os.environ.get("ONLY", "").split(",")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(3) as pool:
        for i, version in enumerate("ab"):
            os.makedirs(f"{folder}/{version}")
            inputs_make(f"{folder}/{version}", i)
        names = {case[0].split()[0] for case in cases}
        commands = {*sagitta("--list-options").stdout.split(), "bench"}
        used = {words.split()[0] for _, words, _ in cases}
        ok(used == commands, f"every command has its turn: {commands ^ used} {len(names)}")
        if "--with-zmq" in sagitta("serve", "--dictionary", "none.h5").stderr:
            cases = [case for case in cases if case[0][:5] != "serve"]  # this build has no ZeroMQ
        seen = set()
        for name, words, writes in cases:
            if only == [""] or name in only:
                check(Case(folder, name, words, writes), seen, pool)
    done_testing()


main()
