# SPDX-License-Identifier: BSD-3-Clause
"""Claim: on several ranks `sagitta serve` gives the replies and files of `encode`, bit for bit, for
every policy.  A replay on another number of ranks has the same fingerprints.  A server that is
stopped leaves parts, from which another number of ranks continues to the same results."""
import os
import signal
import tempfile
import time

import h5py
import numpy as np

from live_server import Served, clients_run, finished, need_zmq, other_replies
from tap import FULL, SOURCE, claim, done_testing, launch, ok, sagitta

live = need_zmq()
REAL = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
ROWS = 5000
# Small steps; the last of them have fewer rows than ranks.
STEPS = ["--step-rows", 512, "--live-rows", 256, "--quantum", 64, "--linger-ms", 20]
POLICIES = {"off": ["--policy", "off"], "static": ["--policy", "static", "--budget", 256],
            "dynamic": ["--policy", "dynamic", "--target", 300]}


def need(*words, **more):
    done = sagitta(*words, **more)
    ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
    return done


class Case:
    """Rows, and their results of encode on one rank."""

    def __init__(self, folder, *words):
        self.words, self.folder = words, folder
        os.mkdir(folder)
        with h5py.File(REAL) as f, h5py.File(f"{folder}/rows.h5", "w") as g:
            self.rows = f["rows"][:ROWS].astype("f4")
            g["rows"] = self.rows
        need("encode", "--rows", f"{folder}/rows.h5", *words, "--output", f"{folder}/want.h5")
        with h5py.File(f"{folder}/want.h5") as f:
            self.atoms = f["supports/indices"][:].reshape(ROWS, -1).astype("i4")
            self.codes = f["supports/data"][:].reshape(self.atoms.shape)
            self.score = f["supports/score"][:].reshape(self.atoms.shape)

    def list(self, name):
        with open(f"{self.folder}/{name}.txt", "w") as f:
            f.write(f"{self.folder}/rows.h5 {self.folder}/{name}.h5\n")
        return f"{self.folder}/{name}.txt"


def client_run(path, case, seed, wrong):
    """Send a part of all rows in random order, in requests of 1 to 256 rows."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(ROWS)[:600]
    asked = []
    with live.connect(path, timeout=60) as server:
        while len(rows):
            at, rows = np.split(rows, [int(rng.integers(1, 257))])
            bulk = bool(rng.random() < 0.5)
            asked.append((server.submit(case.rows[at], scores=True, bulk=bulk), at))
        wrong.extend((seed, n) for n in other_replies(asked, case))


def check_policy(case, name, ranks):
    with claim(f"{ranks} ranks, {name}: replies to 8 clients and a file are those of encode"):
        at = f"{case.folder}/{name}{ranks}"
        words = [*case.words, *STEPS, *POLICIES[name], "--backlog", case.list(f"{name}{ranks}"),
                 "--ledger", at, "--record"]
        with Served(case.folder, *words, before=launch(ranks)) as served:
            wrong = clients_run(8, client_run, served.path, case)
            with live.connect(served.path) as server:
                finished(server)
            code, _, text = served.end(signal.SIGUSR1)
        ok(code == 0, f"the server ends with {code}: {text[-500:]}")
        ok(not wrong, f"wrong replies (client, rows): {wrong[:5]}")
        need("diff", f"{at}.h5", f"{case.folder}/want.h5")
        need("verify", f"{at}/ledger.h5")
        need("serve", *case.words, "--replay", at, ranks=5 - ranks)


@claim("a stopped server leaves a part, from which another number of ranks continues to the same "
       "result")
def check_stop(case):
    words = [*case.words, "--step-rows", 8, "--live-rows", 8, "--policy", "off", "--backlog",
             case.list("stop"), "--resume"]
    with Served(case.folder, *words, before=launch(2)) as served:
        with live.connect(served.path) as server:
            end = time.time() + 60
            while server.status()["files"]["rows"] < 500 and time.time() < end:
                time.sleep(0.002)
        code, _, text = served.end(signal.SIGUSR1)
    ok(code == 75, f"the server ends with {code}: {text[-500:]}")
    with Served(case.folder, *words, before=launch(3)) as served:
        with live.connect(served.path) as server:
            finished(server)
        code, _, text = served.end(signal.SIGUSR1)
    ok(code == 0, f"the server ends with {code}: {text[-500:]}")
    need("diff", f"{case.folder}/stop.h5", f"{case.folder}/want.h5")


def main():
    with tempfile.TemporaryDirectory() as folder:
        need("seed", "--rows", REAL, "--atoms", 300, "--center", "--output", f"{folder}/start.h5")
        words = ["--dictionary", f"{folder}/start.h5", "--top-s", 8]
        plain = Case(f"{folder}/plain", *words)
        rounds = Case(f"{folder}/rounds", *words, "--rounds", 4)
        for ranks in 2, 3:
            for name in POLICIES if FULL else list(POLICIES)[ranks - 2:]:
                check_policy(plain if name != "off" else rounds, name, ranks)
        check_stop(plain)
    done_testing()


main()
