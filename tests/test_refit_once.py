# SPDX-License-Identifier: BSD-3-Clause
"""Claim: refit and assemble hold the atoms once per node, if the ranks of a node can share memory,
and the bytes are those of ranks with their own copies.  The log, run.json and --dry-run show what
is shared.  If memory cannot be shared, each rank holds the atoms and the log says why; or with
--share yes all ranks end with 71 and leave nothing."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from jobs import TESTS, job_end, job_ranks, job_start, kill_all, wait_for
from tap import FULL, SAGITTA, claim, done_testing, launch, ok, sagitta, skip

LIBRARY = os.path.join(TESTS, "fault_window.so")
FILES = {"refit": ("dictionary.h5", "supports.h5"), "assemble": ("systems.h5",)}
SANITIZED = os.environ.get("SANITIZED")


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        raise SystemExit(1)
    return done


class Data:
    """Planted frames, and their supports."""

    def __init__(self, folder, rows, columns, atoms, frame):
        self.folder = folder
        self.bytes = {"refit": atoms * frame * columns * (8 + 4),
                      "assemble": atoms * frame * columns * 8}
        need(sagitta("synth", "--n-rows", rows, "--columns", columns, "--atoms", atoms, "--frame",
                     frame, "--top-s", 3, "--start-cosine", 0.8, "--output", folder))
        self.words = ["--rows", self.at("rows.h5"), "--dictionary", self.at("start.h5")]
        need(sagitta("encode", *self.words, "--top-s", 3, "--output", self.at("encoded.h5")))
        self.words += ["--supports", self.at("encoded.h5"), "--threads", 1, "--deadline", 20]

    def at(self, name):
        return os.path.join(self.folder, name)


def same(command, a, b):
    return all(sagitta("diff", os.path.join(a, f), os.path.join(b, f)).returncode == 0
               for f in FILES[command])


def page_of(folder):
    with open(os.path.join(folder, "run.json")) as f:
        return json.load(f)


@claim("with shared atoms or without, any number of ranks gives the bytes of one rank")
def check_bytes(data):
    held = data.at("held.h5")
    need(sagitta("synth", "--n-rows", 500, "--columns", 24, "--atoms", 80, "--frame", 2, "--top-s",
                 3, "--seed", 7, "--output", data.at("held")))
    shutil.copy(os.path.join(data.at("held"), "rows.h5"), held)
    cases = {"plain": ["refit", "--sweeps", 2],
             "routed": ["refit", "--sweeps", 2, "--reroute", "--holdout", held],
             "systems": ["assemble", "--directions", 2]}
    for name, (command, *more) in cases.items():
        base, out = data.at(name), data.at(f"{name}-out")
        words = [command, *data.words, *more]
        need(sagitta(*words, "--output", base))
        ok(page_of(base)["shared_bytes"] == 0, f"{name}: one rank shares nothing")
        for ranks, share in ((2, "auto"), (3, "no"), (3, "yes"), (2, "no"))[:4 if FULL else 2]:
            done = sagitta(*words, "--share", share, "--output", out, "--force", ranks=ranks)
            text = f"{name}: {ranks} ranks, --share {share}"
            if not ok(done.returncode == 0, f"{text}: exit {done.returncode}"):
                print("#", done.stderr.replace("\n", "\n# "))
                continue
            ok(same(command, base, out), f"{text}: the same bytes")
            bytes_ = 0 if share == "no" else data.bytes[command]
            line = f"MB once per node, which its {ranks} ranks share"
            ok(page_of(out)["shared_bytes"] == bytes_ and (line in done.stderr) == (bytes_ > 0),
               f"{text}: {page_of(out)['shared_bytes']} shared, and the log says so")


@claim("the forecast counts shared memory once per node")
def check_forecast(data):
    words = ["refit", *data.words, "--dry-run"]
    plans = {}
    for share in ("no", "yes"):
        done = need(sagitta(*words, "--share", share, "--json", ranks=3))
        plans[share] = json.loads(done.stdout)
    once, each = plans["yes"], plans["no"]
    shared = data.bytes["refit"]
    ok(once["shared_bytes"] == shared and each["shared_bytes"] == 0, f"{once} {each}")
    spared = each["rank_bytes"]["most"] - once["rank_bytes"]["most"]
    part = shared - (shared + 2) // 3  # two thirds; the links of two arrays come on top
    ok(part <= spared <= part + 256, f"each of 3 ranks is spared {spared} bytes of {shared}")
    text = need(sagitta(*words, "--share", "yes", ranks=3)).stdout
    ok(re.search(rf"^shared +{1e-6 * shared:.1f} MB once per node", text, re.M), text)


def run(data, *more, share="auto", fault=None, rank=None, ranks=2):
    """A refit with a fault.  Returns the exit code, its messages, and seconds."""
    out, begun = data.at("fault"), time.time()
    shutil.rmtree(out, ignore_errors=True)
    world = {"LD_PRELOAD": LIBRARY, "FAULT_WINDOW": fault} if fault else {}
    if rank is not None:
        world["FAULT_RANK"] = str(rank)
    job = job_start("refit", *data.words, *more, "--share", share, "--output", out, ranks=ranks,
                    **world)
    code, text = job_end(job, 60)
    return code, text, time.time() - begun


def windows():
    return {f for f in os.listdir("/dev/shm") if f.startswith("osc_")}


@claim("if memory cannot be shared, each rank holds the atoms, or all ranks end with 71 and leave "
       "nothing")
def check_faults(data):
    base, there = data.at("plain"), windows()
    code, text, _ = run(data, "--sweeps", 2, fault="room", rank=0)
    ok(code == 0 and same("refit", base, data.at("fault")) and
       re.search(r"each rank holds the atoms itself.* bytes in '/dev/shm' are needed", text),
       f"no room: {code} {text[-400:]}")
    ok(page_of(data.at("fault"))["shared_bytes"] == 0, "then nothing is shared")
    faults = [("room", 0, "are needed, "), ("window", 0, "MPI cannot share"),
              ("window", 1, "MPI cannot share"), ("page", 0, "ends after 0 of"),
              ("page", 2, "ends after 0 of")]
    for fault, rank, said in faults:
        code, text, seconds = run(data, share="yes", fault=fault, rank=rank, ranks=3)
        ok(code == 71 and said in text and seconds < 15,
           f"{fault} on rank {rank}: exit {code} after {seconds:.1f} s")
        if code != 71:
            print("#", text.replace("\n", "\n# "))
    ok(windows() <= there, f"left behind: {windows() - there}")


@claim("each of two nodes has the atoms once, and a resumed sweep is sent to both")
def check_nodes(data):
    base, out = data.at("plain"), data.at("nodes")
    words = ["refit", *data.words, "--sweeps", 2, "--share", "yes", "--output", out]
    nodes = {"LD_PRELOAD": LIBRARY, "NODE_RANKS": "2"}
    code, text = job_end(job_start(*words, ranks=3, **nodes), 60)
    ok(code == 0 and same("refit", base, out) and "which its 2 ranks share" in text,
       f"three ranks: exit {code} {text[-300:]}")
    stops = inside = 0
    words += ["--resume"]
    shutil.rmtree(out)
    for _ in range(40):
        code, text = job_end(job_start(*words, "--max-seconds", "0.001", ranks=4, **nodes), 60)
        inside += "resumed inside sweep" in text
        if code != 75:
            break
        stops += 1
    ok(code == 0 and stops > 1 and inside > 0 and same("refit", base, out),
       f"stopped {stops} times, {inside} times inside a sweep: exit {code} {text[-300:]}")


@claim("a rank that is killed ends the others, and the shared memory is freed")
def check_kill(data):
    out, there = data.at("killed"), windows()
    job = job_start("refit", *data.words, "--sweeps", 100000, "--share", "yes", "--output", out,
                    ranks=2)
    begun, pids = wait_for(os.path.join(out, "dictionary.h5")), job_ranks(job)
    if len(pids) == 2:
        os.kill(pids[1], signal.SIGKILL)
    code, text = job_end(job, 40)
    ok(begun and len(pids) == 2 and code not in (0, None), f"exit {code} {text[-300:]}")
    kill_all(pids)
    ok(windows() <= there, f"left behind: {windows() - there}")


@claim("too small a /dev/shm causes no SIGBUS")
def check_small(folder):
    def inside(*words):
        """Run in a mount namespace with a /dev/shm of 24 MB, of which MPI takes some."""
        text = "mount -t tmpfs -o size=24m tmpfs /dev/shm && exec \"$@\""
        return subprocess.run(["unshare", "-m", "sh", "-c", text, "sh", *map(str, words)],
                              capture_output=True, text=True, timeout=100, check=False)
    if inside("true").returncode:
        skip("this user may not mount a small /dev/shm")
        return
    data = Data(folder, 4500, 1024, 2400, 1)
    refit = [SAGITTA, "refit", *data.words]
    code = inside(*launch(2), *refit, "--output", data.at("small")).returncode
    need(sagitta("refit", *data.words, "--output", data.at("plain")))
    ok(code == 0 and same("refit", data.at("plain"), data.at("small")), f"once a rank: exit {code}")
    done = inside(*launch(2), *refit, "--share", "yes", "--output", data.at("told"))
    ok(done.returncode == 71 and "bytes in '/dev/shm' are needed" in done.stderr,
       f"told to share: exit {done.returncode} {done.stderr[-300:]}")


def main():
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory() as folder:
        data = Data(os.path.join(folder, "data"), 9000, 24, 80, 2)
        check_bytes(data)
        check_forecast(data)
        if SANITIZED:
            skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        else:
            check_faults(data)
            check_nodes(data)
            check_kill(data)
            check_small(os.path.join(folder, "small"))
    done_testing()


main()
