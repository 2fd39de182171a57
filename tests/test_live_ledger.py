# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the ledger of `sagitta serve` says which rows each step took, so that `verify` can plan
every step again.  `verify` finds a number that was changed by its hash; if the hash was computed
again, it finds it by the plan, to which only fingerprints do not belong.  `serve --replay` computes
the recorded rows in the recorded steps, and finds a reply with another fingerprint."""
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from live_server import Served, clients_run, need_zmq
from seal import reseal
from tap import claim, done_testing, ok, sagitta, skip

live = need_zmq()
P, K, S = 20, 50, 5
STEPS = ["--step-rows", 256, "--live-rows", 64, "--quantum", 32, "--linger-ms", 5]
POLICIES = {"off": ["--policy", "off"], "static": ["--policy", "static", "--budget", 48],
            "dynamic": ["--policy", "dynamic", "--target", 100, "--job-cap", 40]}


def need(*words):
    done = sagitta(*words)
    ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
    return done


def client_run(path, rows, seed, told):
    """Append (rows, reason) of each request to told.  reason: None if it has a result."""
    rng = np.random.default_rng(seed)
    asked = []
    with live.connect(path) as server:
        for i in range(30):
            bulk = bool(rng.random() < 0.4)
            n = int(rng.integers(0, 600 if bulk else 65))
            x = rows[rng.integers(0, len(rows), n)]
            asked.append((x, server.submit(x, bulk=bulk, deadline=1e-6 if i % 10 == 9 else None)))
            if i % 10 == 4:
                server.cancel(asked[-1][1])
        for x, future in asked:
            try:
                future.result(120)
                told.append((x, None))
            except live.Refused as error:
                told.append((x, error.reason))


def record(folder, name, words):
    """Record a ledger with three clients and a file of the backlog, in folder/name.  Returns what
    the clients were told."""
    with h5py.File(f"{folder}/data/rows.h5") as f:
        rows = f["rows"][:].astype("f4")
    with open(f"{folder}/jobs.txt", "w") as f:
        f.write("".join(f"{folder}/data/rows.h5 {folder}/out-{name}{i}\n" for i in range(2)))
    with Served(folder, *words, "--backlog", f"{folder}/jobs.txt", "--ledger", f"{folder}/{name}",
                "--record") as served:
        told = clients_run(3, client_run, served.path, rows)
        code, _, text = served.end()
    ok(code in (0, 75), f"the server ends with {code}: {text[-400:]}")
    return told


def rows_known(folder, told):
    """Are the recorded rows those that were sent?  Each answered request has a line, in any
    order."""
    with h5py.File(f"{folder}/ledger.h5") as f, h5py.File(f"{folder}/live.h5") as g:
        requests, rows = f["run/requests"][:], g["rows"][:]
    ends = np.cumsum(requests[:, 3])
    ok(len(rows) == ends[-1], f"{len(rows)} rows of {ends[-1]}")
    there = sorted(rows[e - n:e].tobytes() for n, e, s in
                   zip(requests[:, 3], ends, requests[:, 8]) if s == 0)
    sent = sorted(x.tobytes() for x, reason in told if reason is None)
    ok(there == sent, f"{len(there)} recorded requests with results, {len(sent)} were answered")
    late = sum(reason == "late" for _, reason in told)
    ok(np.sum(requests[:, 8] == 3) == late, f"{late} were late")


def check_policy(folder, name, words):
    with claim(f"{name}: the ledger is as planned, and its rows give the same replies again"):
        told = record(folder, name, [*words, *STEPS, *POLICIES[name]])
        rows_known(f"{folder}/{name}", told)
        done = need("verify", f"{folder}/{name}/ledger.h5")
        ok("planned again" in done.stdout, done.stdout[-300:])
        with h5py.File(f"{folder}/{name}/ledger.h5") as f:
            parts = f["run/admitted"][:]
        ok((parts[:, 1] >= 0).any() and (parts[:, 2] > 0).any(),
           "the ledger has requests and files")
        done = need("serve", *words, "--replay", f"{folder}/{name}", "--threads", 2)
        ok(" 0 of them other" in done.stderr, done.stderr[-300:])


def changed(folder, table, line, column, by, sealed=True):
    """Run verify on a copy of the ledger with one number changed.  sealed: hashes are computed
    again, so that they fit."""
    shutil.copytree(f"{folder}/dynamic", f"{folder}/changed", dirs_exist_ok=True)
    with h5py.File(f"{folder}/changed/ledger.h5", "r+") as f:
        data = f[f"run/{table}"]
        line = line(data[:], f) if callable(line) else line
        data[line, column] += by
        if sealed:
            reseal(f)
    return sagitta("verify", f"{folder}/changed/ledger.h5")


def served_line(requests, kind, rows):
    good = (requests[:, 2] == kind) & (requests[:, 3] > rows) & (requests[:, 8] == 0)
    return int(np.nonzero(good)[0][0])


def bulk_line(requests, _):
    """The line of a bulk request of many rows that has results."""
    return served_line(requests, 1, 100)


def live_line(requests, _):
    return served_line(requests, 0, 9)


def at_once_line(requests, f):
    """The line of a request that was admitted in the first step that knew it."""
    parts = f["run/admitted"][:]
    parts = parts[parts[:, 1] >= 0]
    return int(next(r for step, r in parts[:, :2] if requests[r, 6] == step))


def in_step(parts, _):
    """A line with rows of a request after the first steps."""
    return int(np.nonzero((parts[:, 1] >= 0) & (parts[:, 0] > 2))[0][0])


PLANNED = [
    ("steps", 3, 0, "step 3: the number is 4, and 3 by its plan"),
    ("steps", 3, 4, "step 3: the rows of live requests is"),
    ("steps", 3, 5, "step 3: the target is"),
    ("steps", 3, 6, "step 3: the rows for jobs is"),
    ("steps", 3, 7, "step 3: the cap of a job is"),
    ("steps", 3, 3, "step 3: "),
    ("admitted", in_step, 0, "step "),
    ("admitted", in_step, 1, "of request "),
    ("admitted", in_step, 2, "of request "),
    ("admitted", in_step, 3, "from row "),
    ("admitted", in_step, 4, "rows of request "),
    ("requests", live_line, 3, "step "),
    ("requests", live_line, 7, ""),
    ("requests", live_line, 2, "step "),
    ("requests", bulk_line, 3, "request"),
    ("requests", at_once_line, 6, ""),  # the first error found depends on other requests
]


@claim("a changed number is found by its hash, or, if the hash fits, by the plan")
def check_changed(folder):
    for table, columns in ("steps", 9), ("admitted", 5), ("requests", 10):
        for column in range(columns):
            done = changed(folder, table, 2, column, 1, sealed=False)
            ok(done.returncode == 65 and f"/run/{table}" in done.stderr,
               f"{table}, column {column}: {done.returncode} {done.stderr[-200:]}")
    for table, line, column, text in PLANNED:
        done = changed(folder, table, line, column, 1)
        ok(done.returncode == 65 and text in done.stderr,
           f"{table}, column {column}, sealed: {done.returncode} {done.stderr[-300:]}")


@claim("rows that are recorded twice, or missing, are named with their step")
def check_lines(folder):
    for keep in (lambda n, i: sorted([*range(n), i]), lambda n, i: [j for j in range(n) if j != i]):
        shutil.copytree(f"{folder}/dynamic", f"{folder}/changed", dirs_exist_ok=True)
        with h5py.File(f"{folder}/changed/ledger.h5", "r+") as f:
            parts, said = f["run/admitted"][:], dict(f["run/admitted"].attrs)
            i = in_step(parts, None)
            del f["run/admitted"]
            data = f.create_dataset("run/admitted", data=parts[keep(len(parts), i)], chunks=True,
                                    track_times=False)
            for key, value in said.items():
                data.attrs[key] = value
            reseal(f)
        done = sagitta("verify", f"{folder}/changed/ledger.h5")
        ok(done.returncode == 65 and f"step {parts[i][0]}" in done.stderr,
           f"{done.returncode} {done.stderr[-300:]}")


@claim("a replay finds a wrong reply, and refuses another dictionary or other options")
def check_replay(folder, words):
    done = changed(folder, "requests", bulk_line, 9, 1)
    ok(done.returncode == 0, f"fingerprints alone are no part of the plan: {done.stderr[-200:]}")
    done = sagitta("serve", *words, "--replay", f"{folder}/changed")
    ok(done.returncode == 1 and "the first of them request" in done.stderr, done.stderr[-300:])
    shutil.copy(f"{folder}/off/live.h5", f"{folder}/changed/live.h5")
    done = sagitta("serve", *words, "--replay", f"{folder}/changed")
    ok(done.returncode in (1, 65), f"other rows: {done.returncode} {done.stderr[-300:]}")
    os.remove(f"{folder}/changed/live.h5")
    done = sagitta("serve", *words, "--replay", f"{folder}/changed")
    ok(done.returncode == 65 and "serve --record" in done.stderr, done.stderr[-300:])
    done = sagitta("serve", *words[:2], "--top-s", S - 1, "--replay", f"{folder}/dynamic")
    ok(done.returncode == 65 and "top-s" in done.stderr, f"{done.returncode} {done.stderr[-300:]}")
    need("synth", "--n-rows", 10, "--columns", P, "--atoms", K, "--seed", 9, "--output",
         f"{folder}/other")
    done = sagitta("serve", "--dictionary", f"{folder}/other/dictionary.h5", *words[2:],
                   "--replay", f"{folder}/dynamic")
    ok(done.returncode == 65 and "dictionary" in done.stderr, done.stderr[-300:])
    for more, text in ((["--record"], "'--ledger'"),
                       (["--replay", "x", "--ledger", "y"], "--ledger")):
        done = sagitta("serve", *words, *more)
        ok(done.returncode == 2 and text in done.stderr, f"{more}: {done.stderr[-300:]}")


@claim("a bulk request that is cancelled during its computation has rows in the steps before that, "
       "and no results")
def check_cancelled(folder, words):
    few = ["--step-rows", 16, "--live-rows", 16, "--policy", "off", "--ledger", f"{folder}/gone"]
    with Served(folder, *words, *few) as served:
        with live.connect(served.path) as server:
            future = server.submit(np.ones((60000, P), "f4"), bulk=True)
            while not server.status()["bulk_rows"]:
                pass
            server.cancel(future)
            try:
                ok(not future.result(120), "the cancelled request has results")
            except live.Refused as error:
                ok(error.reason == "cancelled", f"{error}")
            ok(bool(server.encode(np.ones((40, P), "f4"), bulk=True)), "the next one has results")
        code, _, text = served.end()
    ok(code == 0, f"{code}: {text[-400:]}")
    ran = re.search(r"device=(\w+)/(.+) dictionary=", text)
    with h5py.File(f"{folder}/gone/ledger.h5") as f:
        parts, run = f["run/admitted"][:], dict(f["run"].attrs)
    rows = parts[parts[:, 1] == 0][:, 4].sum()
    ok(0 < rows < 60000, f"{rows} rows of it were admitted")
    ok(str(run["threads"]) and str(np.str_(run["device"])) == f"{ran[1]} {ran[2]}", f"{run}")
    need("verify", f"{folder}/gone/ledger.h5")


@claim("a full ledger ends with a whole step, reports this, and is as planned")
def check_full(folder, words):
    words = [*words, *STEPS, "--policy", "static", "--ledger", f"{folder}/full"]
    with Served(folder, *words, "--record", "--ledger-mib", 1) as served:
        with live.connect(served.path) as server:
            for _ in range(20):
                server.encode(np.ones((2000, P), "f4"), bulk=True)
        code, _, text = served.end()
    ok(code == 0 and "more steps are not in it" in text, f"{code}: {text[-400:]}")
    for name in "ledger", "live":
        need("verify", f"{folder}/full/{name}.h5")
    done = sagitta("serve", *words, "--max-seconds", 0.1, "--listen", f"{folder}/again")
    ok(done.returncode == 73, f"a ledger is not replaced: {done.returncode}")


def grown(served, bulk):
    """The MiB by which a server grows with many rows: its peak, minus its peak before."""
    before = served.memory("VmHWM")
    with live.connect(served.path) as server:
        for _ in range(20):
            server.encode(np.ones((bulk, P), "f4"), bulk=True)
    return served.memory("VmHWM") - before


@claim("a ledger that grows to its limit takes no more memory than that")
def check_limit(folder, words):
    if os.environ.get("SANITIZED"):
        skip("sanitizers keep memory that was freed, so its growth cannot be checked")
        return
    bulk, most = 65536, 40  # 20 requests have 5 MiB of rows each; the ledger has `most` MiB
    words = [*words, "--policy", "off", "--bulk-rows", bulk]
    with Served(folder, *words) as served:
        without = grown(served, bulk)
    with Served(folder, *words, "--ledger", f"{folder}/limit", "--record", "--ledger-mib",
                most) as served:
        growth = grown(served, bulk)
    ok(growth > without + most / 2, f"rows are kept: {growth}, without them {without}")
    ok(growth < without + most + 16,
       f"the server grows by {growth} MiB, without a ledger by {without}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        need("synth", "--n-rows", 9000, "--columns", P, "--atoms", K, "--output", f"{folder}/data")
        words = ["--dictionary", f"{folder}/data/dictionary.h5", "--top-s", S]
        for name in POLICIES:
            check_policy(folder, name, words)
        check_changed(folder)
        check_lines(folder)
        check_replay(folder, words)
        check_cancelled(folder, words)
        check_full(folder, words)
        check_limit(folder, words)
    done_testing()


main()
