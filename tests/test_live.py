# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta serve` replies with what `sagitta encode` writes for the same rows, bit for bit,
to live and bulk requests, with every --policy, whatever else is served.  Rows come from NumPy and
PyTorch, in f32, f16 and bf16.  A request may ask for the first entries of each row, or for watched
atoms."""
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from bert_model import WINDOW, WORDS, model_made
from live_server import Served, clients_run, need_zmq
from tap import FULL, SOURCE, claim, done_testing, ok, peer_missing, sagitta

live = need_zmq()
REAL = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
POLICIES = [["--policy", "off"], ["--policy", "static", "--budget", 100],
            ["--policy", "dynamic", "--target", 150], ["--policy", "dynamic", "--target", 9999],
            ["--policy", "dynamic", "--quantum", 512]]
STEPS = ["--step-rows", 512, "--live-rows", 64, "--quantum", 64]


class Case:
    """Rows, and their results of encode."""

    def __init__(self, folder, rows, dictionary, *words):
        self.words = ["--dictionary", dictionary, *words]
        need("encode", "--rows", rows, *self.words, "--output", f"{folder}/supports.h5", "--force")
        with h5py.File(rows) as f, h5py.File(f"{folder}/supports.h5") as g:
            self.rows = f["rows"][:].astype("f4")
            n = len(self.rows)
            self.atoms = g["supports/indices"][:].reshape(n, -1).astype("i4")
            self.score = g["supports/score"][:].reshape(self.atoms.shape)
            codes = g["supports/codes"] if "supports/codes" in g else g["supports/data"]
            self.codes = codes[:].reshape(*self.atoms.shape, *codes.shape[1:])


def need(*words):
    done = sagitta(*words)
    ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")


def cases_make(folder):
    few, data, frames = f"{folder}/few.h5", f"{folder}/data", f"{folder}/frames.h5"
    with h5py.File(REAL) as f, h5py.File(few, "w") as g:
        g["rows"] = f["rows"][:1500]
    need("synth", "--n-rows", 1500, "--columns", 20, "--atoms", 50, "--output", data)
    need("seed", "--rows", few, "--atoms", 200, "--center", "--output", f"{folder}/start.h5")
    need("seed", "--rows", f"{data}/rows.h5", "--atoms", 30, "--frame", 3, "--output", frames)
    return [Case(folder, few, f"{folder}/start.h5", "--top-s", 6, "--rounds", 6, "--codes",
                 "nonnegative"),
            Case(folder, f"{data}/rows.h5", f"{data}/dictionary.h5", "--top-s", 9, "--rho", 0.1),
            Case(folder, f"{data}/rows.h5", frames, "--top-s", 4, "--rounds", 2)]


def same(codes, case, at):
    return (np.array_equal(codes.atoms, case.atoms[at]) and
            codes.codes.tobytes() == case.codes[at].tobytes() and
            codes.scores.tobytes() == case.score[at].tobytes() and
            bool((codes.count == case.atoms.shape[1]).all()))


def client_run(path, case, seed, wrong):
    """Send requests of all sizes in random order, live and bulk, with many waiting at a time."""
    rng = np.random.default_rng(seed)
    asked = []
    with live.connect(path) as server:
        for _ in range(25):
            bulk = bool(rng.random() < 0.3)
            n = int(rng.integers(0, 700 if bulk else 65))
            at = rng.integers(0, len(case.rows), n)
            asked.append((server.submit(case.rows[at], scores=True, bulk=bulk), at))
        for i, (future, at) in enumerate(asked):
            if not same(future.result(60), case, at):
                wrong.append((seed, i, len(at)))


def check_bits(folder, cases):
    for i, case in enumerate(cases):
        for policy in POLICIES if i == 0 or FULL else POLICIES[2:3]:
            words = [*case.words, *STEPS, *policy]
            if "--quantum" in policy:
                words = [*case.words, *STEPS[:-2], *policy]
            name = " ".join(map(str, policy))
            with claim(f"case {i}, {name}: replies to 4 clients have the bits of encode"):
                with Served(folder, *words, threads=1 + i % 2) as served:
                    wrong = clients_run(4, client_run, served.path, case)
                    with live.connect(served.path) as server:
                        status = server.status()
                    code, _, text = served.end()
                ok(not wrong, f"wrong replies (client, request, rows): {wrong[:5]}")
                ok(status["live_requests"] + status["bulk_requests"] == 100, f"all: {status}")
                ok(code == 0, f"the server ends with {code}: {text[-300:]}")


@claim("a request may have the first entries of each row, or those that are watched")
def check_entries(served, case):
    at, s = np.arange(40), case.atoms.shape[1]
    with live.connect(served.path) as server:
        few = server.encode(case.rows[at], top=2)
        ok(np.array_equal(few.atoms, case.atoms[at, :2]), "top=2: atoms")
        ok(few.codes.tobytes() == case.codes[at, :2].tobytes() and few.scores is None, "codes")
        all_of = server.encode(case.rows[at], top=999)
        ok(all_of.atoms.shape == (40, s), f"top beyond the support: {all_of.atoms.shape}")
        one = server.encode(case.rows[7])
        ok(np.array_equal(one.atoms, case.atoms[7]) and one.count == s, "one row is one row")
        try:
            server.encode(case.rows[at], watched=True)
            ok(False, "nothing is watched, and there was a reply")
        except live.Refused as error:
            ok(error.reason == "bad" and "send kind 5 first" in str(error), str(error))
        atoms = np.unique(case.atoms[at[:3], 1])
        server.watch(atoms)
        seen = server.encode(case.rows[at], watched=True, scores=True)
        ok(seen.atoms.shape == (40, len(atoms)),
           f"a reply is as wide as what is watched: {seen.atoms.shape}")
        for i in at:
            want = [j for j in range(s) if case.atoms[i, j] in atoms]
            n = len(want)
            ok(seen.count[i] == n and np.array_equal(seen.atoms[i, :n], case.atoms[i, want]) and
               seen.codes[i, :n].tobytes() == case.codes[i, want].tobytes() and
               (seen.atoms[i, n:] == -1).all() and not seen.codes[i, n:].view("u4").any() and
               not seen.scores[i, n:].view("u4").any(), f"row {i}: {seen.atoms[i]}")


@claim("rows in half precision get the reply of float32 rows with the same values")
def check_types(served, case):
    half = case.rows[:30].astype("f2")
    with live.connect(served.path) as server:
        a, b = server.encode(half), server.encode(half.astype("f4"))
        ok(a.atoms.tobytes() == b.atoms.tobytes() and a.codes.tobytes() == b.codes.tobytes(), "f16")
        for order in ">f2", ">f4":
            c = server.encode(half.astype(order))
            ok(a.atoms.tobytes() == c.atoms.tobytes() and a.codes.tobytes() == c.codes.tobytes(),
               f"the other order of bytes, {order}")
        try:
            server.encode(case.rows[:3].astype("f8"))
            ok(False, "float64 was taken")
        except TypeError as error:
            ok("float64" in str(error), str(error))
        for shape in (3, 5), (case.rows.shape[1] + 1,), ():
            try:
                server.encode(np.zeros(shape, "f4"))
                ok(False, f"rows of shape {shape} were taken")
            except ValueError as error:
                ok("columns" in str(error), str(error))
        try:
            server.encode(np.zeros((65, server.columns), "f4"))
            ok(False, "a long live request was taken")
        except ValueError as error:
            ok("bulk=True" in str(error), str(error))
        try:
            import torch
        except ImportError:
            return peer_missing("PyTorch is not installed")
        for dtype in torch.float32, torch.float16, torch.bfloat16:
            rows = torch.tensor(case.rows[:30]).to(dtype)
            a, b = server.encode(rows), server.encode(rows.to(torch.float32).numpy())
            ok(a.codes.tobytes() == b.codes.tobytes(), f"{dtype}")


@claim("watch_features.py prints the strongest atoms of a model's states, token by token")
def check_example(folder):
    model_made(folder)
    tokens = np.random.default_rng(2).integers(3, WORDS, 3 * WINDOW)
    np.save(f"{folder}/tokens.npy", tokens)
    with open(f"{folder}/words.txt", "w") as f:
        f.writelines(f"word{i}\n" for i in range(WORDS))
    examples = os.path.join(SOURCE, "scripts", "python", "examples")
    words = ["--model", folder, "--tokens", f"{folder}/tokens.npy", "--window", WINDOW, "--begin",
             1, "--end", 2, "--layer", 2]

    def example(name, *more):
        done = subprocess.run([sys.executable, f"{examples}/{name}.py", *map(str, [*words, *more])],
                              capture_output=True, text=True, timeout=60)
        ok(done.returncode == 0, f"{name}: {done.stderr[-300:]}")
        return done.stdout.splitlines()
    example("write_rows", "--output", f"{folder}/states.h5")
    need("seed", "--rows", f"{folder}/states.h5", "--atoms", 16, "--output", f"{folder}/a.h5")
    need("encode", "--rows", f"{folder}/states.h5", "--dictionary", f"{folder}/a.h5", "--top-s", 4,
         "--output", f"{folder}/states-codes.h5")
    with h5py.File(f"{folder}/states-codes.h5") as f:
        atoms = f["supports/indices"][:].reshape(-1, 4)
    with Served(folder, "--dictionary", f"{folder}/a.h5", "--top-s", 4) as served:
        shown = ["--words", f"{folder}/words.txt", "--listen", served.path]
        lines = [line.split() for line in example("watch_features", "--top", 2, *shown)]
        ok([line[0] for line in lines] == [f"word{t}" for t in tokens], "a line for each token")
        found = np.array([[int(w.split(":")[0]) for w in line[1:]] for line in lines])
        near = (found == atoms[:, :2]).mean()  # the file has float16 states, the server got float32
        ok(found.shape == (len(tokens), 2) and near > 0.9, f"atoms as of the file: {near}")
        one = int(atoms[0, 0])
        lines = example("watch_features", "--watch", one, *shown)
        near = len(lines) - int((atoms == one).any(axis=1).sum())
        ok(lines and abs(near) < 3 and all(f" {one}:" in line for line in lines), f"{lines[:3]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with claim("results of encode, for comparison, are made"):
            cases = cases_make(folder)
        check_bits(folder, cases)
        with Served(folder, *cases[1].words, *STEPS) as served:
            check_entries(served, cases[1])
            check_types(served, cases[1])
        check_example(folder)
    done_testing()


main()
