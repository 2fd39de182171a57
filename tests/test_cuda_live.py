# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta serve --device cuda` replies to live and bulk requests with what encode writes on
CPUs, while it also encodes a file of the backlog.  The result of that file is encode's.  This holds
with and without waiting clients.  A replay has the same bits."""
import os
import tempfile

import h5py
import numpy as np

from live_server import Served, clients_run, finished, need_zmq, other_replies
from tap import SOURCE, claim, done_testing, gpu_present, ok, sagitta

live = need_zmq()
REAL = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
POLICIES = [["--policy", "off"], ["--policy", "static", "--budget", 100],
            ["--policy", "dynamic", "--target", 600]]


def need(*words):
    done = sagitta(*words)
    ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")


class Case:
    """Rows, and their results of encode on a CPU."""

    def __init__(self, folder, *words):
        self.words, self.want = words, f"{folder}/want.h5"
        need("encode", "--rows", REAL, *words, "--device", "cpu", "--output", self.want)
        with h5py.File(REAL) as f, h5py.File(self.want) as g:
            self.rows = f["rows"][:].astype("f4")
            self.atoms = g["supports/indices"][:].reshape(len(self.rows), -1).astype("i4")
            self.codes = g["supports/data"][:].reshape(self.atoms.shape)
            self.score = g["supports/score"][:].reshape(self.atoms.shape)


def client_run(path, case, seed, wrong):
    rng = np.random.default_rng(seed)
    with live.connect(path, timeout=60) as server:
        asked = []
        for _ in range(40):
            bulk = bool(rng.random() < 0.3)
            at = rng.integers(0, len(case.rows), int(rng.integers(1, 2000 if bulk else 65)))
            asked.append((server.submit(case.rows[at], scores=True, bulk=bulk), at))
        wrong.extend((seed, n) for n in other_replies(asked, case))


def check_policy(folder, case, i, policy):
    with claim(f"{' '.join(map(str, policy))}: replies and a file have the bits of encode"):
        with open(f"{folder}/jobs.txt", "w") as f:
            f.write(f"{REAL} {folder}/got{i}.h5\n")
        words = [*case.words, "--device", "cuda", "--step-rows", 1024, "--linger-ms", 20, *policy,
                 "--backlog", f"{folder}/jobs.txt", "--ledger", f"{folder}/ledger{i}", "--record"]
        with Served(folder, *words, threads=2) as served:
            wrong = clients_run(3, client_run, served.path, case)
            with live.connect(served.path) as server:
                finished(server)
            code, _, text = served.end()
        ok(code == 0 and not wrong, f"exit {code}, wrong replies {wrong[:5]}: {text[-300:]}")
        need("diff", f"{folder}/got{i}.h5", case.want)
        need("verify", f"{folder}/ledger{i}/ledger.h5")
        for device in "cpu", "cuda":
            need("serve", *case.words, "--device", device, "--replay", f"{folder}/ledger{i}")


def main():
    if not gpu_present():
        done_testing()
        return
    with tempfile.TemporaryDirectory() as folder:
        need("seed", "--rows", REAL, "--atoms", 2000, "--center", "--output", f"{folder}/start.h5")
        for rounds in 1, 4:
            case_folder = f"{folder}/rounds{rounds}"
            os.mkdir(case_folder)
            case = Case(case_folder, "--dictionary", f"{folder}/start.h5", "--top-s", 16,
                        "--rounds", rounds)
            for i, policy in enumerate(POLICIES if rounds == 1 else POLICIES[2:]):
                check_policy(case_folder, case, i, policy)
    done_testing()


main()
