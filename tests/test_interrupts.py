# SPDX-License-Identifier: BSD-3-Clause
"""Claim: signals that interrupt calls for files change nothing, for every kind of file that is read
or written.  Signals that end a program leave no temporary file, even if a library handled them
before.  If the system does not start a thread, the command ends with 71 and names the limit."""
import os
import resource
import signal
import subprocess
import tempfile

import h5py
import numpy as np

from jobs import FAULTS, environment
from tap import SAGITTA, claim, done_testing, ok, same, skip_all

LIMIT = 12345  # processes and threads; the message must name this number
TEXT = "a text " * 400  # longer than one read of HDF5's heap of texts


def inputs_make(folder):
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((200, 8)).astype("f4")
    atoms = rng.standard_normal((12, 8))
    atoms = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")
    np.save(f"{folder}/rows.npy", rows)
    np.save(f"{folder}/atoms.npy", atoms)
    with h5py.File(f"{folder}/rows.h5", "w") as f:
        f["rows"] = rows
        f["token"] = np.arange(200, dtype="i4") % 5
        f["rows"].attrs["short"], f["rows"].attrs["long"] = "as h5py writes it", TEXT
        f.attrs["many"] = ["one", "two", TEXT]
    with open(f"{folder}/job.in", "w") as deck:
        deck.write(f"dictionary = {folder}/atoms.npy\ntop-s = 3\nthreads = 1\n")


def run(words, limit=None, **more):
    """Run the program.  limit: the number of the user's processes and threads; None: no limit."""
    def less():
        if limit:
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
    return subprocess.run([SAGITTA, *map(str, words)], text=True, capture_output=True, timeout=60,
                          preexec_fn=less, env=environment(CUDA_VISIBLE_DEVICES="-1", **more))


def interrupted(folder, words):
    """Run while every second call for a file of the folder fails with EINTR."""
    return run(words, LD_PRELOAD=FAULTS, FAULT="interrupt:1", FAULT_IN=folder, FAULT_COUNT="1")


@claim("every second call for a file is interrupted, and nothing changes")
def check_interrupted(folder):
    cases = [(f"encode {folder}/job.in --rows {folder}/rows.{end}", "supports.h5")
             for end in ("h5", "npy")]
    cases += [(f"fit --rows {folder}/rows.h5 --atoms 8 --top-s 3 --sweeps 1 --threads 1",
               "dictionary.h5"),
              (f"encode {folder}/job.in --rows {folder}/rows.h5 --row-range 0:", None)]
    for i, (words, result) in enumerate(cases):
        places = [f"{folder}/{how}-{i}" + ("" if result else ".h5") for how in ("plain", "often")]
        done = [run([*words.split(), "--output", places[0]]),
                interrupted(folder, [*words.split(), "--output", places[1]])]
        for d in done:
            ok(d.returncode == 0, f"{words}: {d.returncode} {d.stderr[-300:]}")
        calls = done[1].stderr.split("fault calls=")
        ok(len(calls) > 1 and int(calls[-1].split()[0]) > 20, f"{words}: {calls[1:]} calls")
        same(*(f"{p}/{result}" if result else p for p in places), words)
    for words in (["inspect", f"{folder}/rows.h5"], ["verify", f"{folder}/plain-0"],
                  ["diff", f"{folder}/rows.h5", f"{folder}/rows.h5"]):
        plain, often = run(words), interrupted(folder, words)
        ok(plain.returncode == often.returncode == 0 and plain.stdout == often.stdout,
           f"{words}: {often.returncode} {often.stderr[-300:]}")
    ok(TEXT[:40] in run(["inspect", f"{folder}/rows.h5"]).stdout, "inspect shows the texts")


@claim("if a thread cannot be started, the command ends with 71, and the message names the limit")
def check_threads(folder):
    words = ["encode", f"{folder}/job.in", "--rows", f"{folder}/rows.h5", "--force", "--threads", 2,
             "--output", f"{folder}/threads"]
    ended, n = 0, 1
    while n < 100:
        done = run(words, LIMIT, LD_PRELOAD=FAULTS, FAULT=f"own-thread:{n}", FAULT_COUNT="1")
        calls = int(done.stderr.split("fault calls=")[-1].split()[0]) if "fault calls" in \
            done.stderr else n
        if calls < n:
            break
        n += 1
        if done.returncode == 0:  # a thread that only helps a loop is not needed
            continue
        ended += 1
        ok(done.returncode == 71 and f"{LIMIT} by ulimit -u" in done.stderr and "thread" in
           done.stderr, f"thread {n - 1}: {done.returncode} {done.stderr[-400:]}")
    ok(ended > 1 and n > 2, f"{ended} of {n - 1} threads end it")
    done = run(words, LIMIT, LD_PRELOAD=FAULTS, FAULT="omp-thread:1")
    ok(done.returncode == 71 and f"{LIMIT} by ulimit -u" in done.stderr,
       f"OpenMP: {done.returncode} {done.stderr[-400:]}")
    done = run(["--version"], LIMIT, LD_PRELOAD=FAULTS, FAULT="own-thread:1")
    ok(done.returncode == 71 and "watchdog" in done.stderr, f"{done.returncode} {done.stderr}")


@claim("a signal that MPI's libraries have caught ends the program, and leaves nothing behind")
def check_taken(folder):
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        for taken in 0, int(number):
            for call in 1, 3, 9, 25:
                out = f"{folder}/taken-{number}-{taken}-{call}"
                fault = dict(LD_PRELOAD=FAULTS, FAULT=f"signal:{call}", FAULT_OF=".tmp",
                             FAULT_SIGNAL=str(int(number)), **(
                                 {"FAULT_TAKES": str(taken)} if taken else {}))
                done = run(["seed", "--rows", f"{folder}/rows.h5", "--atoms", 4, "--output", out],
                           **fault)
                left = [f for f in os.listdir(out) if f.endswith(".tmp")] if os.path.isdir(out) \
                    else []
                ok(done.returncode == -number and not left,
                   f"signal {number}, taken {taken}, call {call}: {done.returncode}, left {left}")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    with tempfile.TemporaryDirectory() as folder:
        inputs_make(folder)
        check_interrupted(folder)
        check_taken(folder)
        check_threads(folder)
    done_testing()


main()
