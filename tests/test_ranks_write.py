# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if each rank encodes its own rows, all ranks write the one result, and read again what
they wrote.  It has the bytes of one rank, also after stops, saves and kills.  A disk that fails any
rank, or loses a write, ends the job with 74 and leaves nothing.  If a rank does not see the file,
rank 0 writes, and the log says so."""
import glob
import os
import signal
import tempfile

import numpy as np

from jobs import FAULTS, job_end, job_ranks, job_start, temporaries, wait_until
from tap import FULL, claim, done_testing, fails, need, ok, sagitta, same, skip

BLOCK = 4096
N, P = 7 * BLOCK + 321, 16


def words_of(folder, *more, d=1):
    return ["--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/d{d}.h5", "--top-s", 4,
            "--threads", 1, *more]


def faulty(folder, name, fault, rank, of="*.tmp", ranks=3, command="encode"):
    job = job_start(command, *words_of(folder), "--grid", f"{ranks}x1", "--deadline", 20,
                    "--output", f"{folder}/{name}/x.h5", ranks=ranks, LD_PRELOAD=FAULTS,
                    FAULT=fault, FAULT_RANK=str(rank), FAULT_OF=of)
    return job_end(job, 60)


@claim("ranks that write together give the bytes of one rank, also for frames and scores")
def check_ranks(folder):
    for d, command in ((1, "encode"), (3, "encode"), (1, "route")):
        whole = f"{folder}/whole-{command}-{d}.h5"
        need(sagitta(command, *words_of(folder, d=d), "--output", whole), "one rank")
        for ranks in (2, 3, 7) if FULL or d > 1 else (2,):
            out = f"{folder}/ranks-{command}-{d}-{ranks}.h5"
            need(sagitta(command, *words_of(folder, "--grid", f"{ranks}x1", d=d), "--output", out,
                         ranks=ranks), f"{ranks} ranks")
            need(sagitta("verify", out), f"{ranks} ranks")
            same(whole, out, f"{command}, frames of {d}, {ranks} ranks")


@claim("a disk that fails a rank ends the job with 74, and nothing is left")
def check_disk(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    for fault, rank, said in (("write:1", 1, "cannot write '"), ("write:5", 2, "cannot write '"),
                              ("fsync:1", 1, "cannot write '"), ("push:2", 2, "cannot write '"),
                              ("read:2", 1, "cannot read '"),
                              ("lose:3", 2, "is not what was written"),
                              ("lose:5", 0, "is not what was written")):
        code, text = faulty(folder, "disk", fault, rank)
        ok(code == 74 and said in text and ".tmp'" in text, f"{fault} {rank}: {code} "
           f"{text[-300:]}")
        left = [f for f in os.listdir(f"{folder}/disk") if f.endswith((".h5", ".tmp", ".lock"))]
        ok(not left, f"{fault} {rank}: {left}")


@claim("an error found by the thread that checks during the writing ends the job with 74")
def check_beside(folder):
    """So many rows that each rank checks 16 MB before all are written."""
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    rows = f"{folder}/many"
    os.makedirs(rows)
    drawn = np.random.default_rng(6).standard_normal((40 * BLOCK, 4))
    np.save(f"{rows}/rows.npy", drawn.astype("f4"))
    need(sagitta("seed", "--rows", f"{rows}/rows.npy", "--atoms", 40, "--output", f"{rows}/d1.h5"),
         "seed")
    for fault, said in (("lose:3", "is not what was written"), ("fsync:1", "cannot write '"),
                        ("push:9", "cannot write '"), ("none:1", None)):
        job = job_start("route", "--rows", f"{rows}/rows.npy", "--dictionary", f"{rows}/d1.h5",
                        "--top-s", 32, "--threads", 1, "--block", BLOCK, "--grid", "2x1",
                        "--deadline", 60, "--output", f"{rows}/out/x.h5", ranks=2,
                        LD_PRELOAD=FAULTS, FAULT=fault, FAULT_RANK="1", FAULT_OF="*.tmp")
        code, text = job_end(job, 120)
        ok((code == 74 and said in text) if said else code == 0, f"{fault}: {code} {text[-300:]}")
        left = sorted(f for f in os.listdir(f"{rows}/out") if f.endswith((".h5", ".tmp")))
        ok(left == ([] if said else ["x.h5"]), f"{fault}: {left}")
    need(sagitta("verify", f"{rows}/out/x.h5"), "checked beside")


@claim("if a rank does not see the file, rank 0 writes all, and says so")
def check_missing(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    code, text = faulty(folder, "missing", "open:1", 2)
    ok(code == 0 and "rank 0 alone: 1 of 3 ranks do not see" in text, f"{code} {text[-300:]}")
    same(f"{folder}/whole-encode-1.h5", f"{folder}/missing/x.h5", "rank 0 wrote")


@claim("a job stopped after a block, or killed after a save, and resumed has the bytes of one run")
def check_stopped(folder):
    out, whole = f"{folder}/stopped", f"{folder}/whole-encode-1.h5"
    os.makedirs(out)
    to = ("--block", BLOCK, "--resume", "--output", f"{out}/x.h5")
    open(f"{out}/STOP", "w").close()
    for ranks in 2, 3:
        fails(sagitta("encode", *words_of(folder, "--grid", f"{ranks}x1", *to), ranks=ranks), 75,
              ["--resume"], f"stopped on {ranks}")
    os.remove(f"{out}/STOP")
    need(sagitta("encode", *words_of(folder, "--grid", "2x1", *to), ranks=2), "resumed")
    same(whole, f"{out}/x.h5", "stopped and resumed")
    words = words_of(folder, "--grid", "2x1", "--block", BLOCK, "--save-seconds", 1e-9, "--output",
                     f"{folder}/saves")
    need(sagitta("encode", *words, ranks=2), "saves")
    same(whole, f"{folder}/saves/supports.h5", "saved behind each turn")


@claim("a rank that is killed ends the job; resumed on another number of ranks, it has the bytes "
       "of one run")
def check_killed(folder):
    out = f"{folder}/killed"
    words = words_of(folder, "--block", BLOCK, "--save-seconds", 1e-9, "--rounds", 4)
    need(sagitta("encode", *words, "--output", f"{folder}/rounds.h5"), "one rank")
    job = job_start("encode", *words, "--grid", "2x1", "--output", out, ranks=2)
    wait_until(lambda: glob.glob(f"{out}/*.journal") or job.poll() is not None)
    for pid in job_ranks(job)[-1:]:
        os.kill(pid, signal.SIGKILL)
    code, _ = job_end(job, 60)
    for path in temporaries(out):
        os.remove(path)
    need(sagitta("encode", *words, "--grid", "3x1", "--resume", "--output", out, ranks=3),
         f"resumed after {code}")
    same(f"{folder}/rounds.h5", f"{out}/supports.h5", "killed and resumed")


with tempfile.TemporaryDirectory() as where:
    draw = np.random.default_rng(5)
    np.save(f"{where}/rows.npy", draw.standard_normal((N, P)).astype("f4"))
    need(sagitta("seed", "--rows", f"{where}/rows.npy", "--atoms", 40, "--output",
                 f"{where}/d1.h5"), "seed")
    need(sagitta("synth", "--n-rows", 10, "--columns", P, "--atoms", 12, "--frame", 3, "--output",
                 f"{where}/frames"), "frames")
    os.rename(f"{where}/frames/dictionary.h5", f"{where}/d3.h5")
    check_ranks(where)
    check_disk(where)
    check_beside(where)
    check_missing(where)
    check_stopped(where)
    check_killed(where)
done_testing()
