# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a stopped rank ends the job with 76 within the deadline.  A killed rank ends the job too,
and nothing unfinished is published.  After kills at random moments a later run works.  A signal
leaves no temporary file.  A disk that fails or hangs ends the job with 74.  If the job fails for
another reason while a read goes on, it ends with the code of that reason.  Late threads change no
bit.  Two runs cannot write the same result at once.

If there are GPUs, ranks are stopped and killed on them too, with one GPU per rank if there are
enough.  With CUTS=gpu only the part with GPUs is run."""
import os
import random
import re
import signal
import subprocess
import tempfile
import time

import numpy as np

from jobs import (faulty, job_end, job_ranks, job_start, kill_all, signal_twice, temporaries,
                  wait_for_temporary)
from tap import FULL, claim, done_testing, gpu_present, ok, sagitta, skip

KILLS, PAIRS = (50, 8) if FULL else (10, 4)


def start(folder, ranks, *words, place=None):
    """Start a job that runs for a long time.  Returns the process of mpirun; with ranks = 0, of the
    program."""
    return job_start("encode", "--rows", f"{folder}/rows.h5", "--dictionary",
                     f"{folder}/dictionary.h5", "--top-s", 32, "--rounds", 32, "--force",
                     "--output", place or f"{folder}/run", *words, ranks=ranks)


def is_at_work(folder):
    return wait_for_temporary(f"{folder}/run", "supports.h5")


def clean(folder):
    """Remove what a killed job leaves."""
    for path in temporaries(f"{folder}/run"):
        os.remove(path)


def published(folder):
    return os.path.exists(f"{folder}/run/supports.h5")


def check_stopped(folder, which, ranks=3, *words):
    job = start(folder, ranks, "--deadline", 5, *words)
    at_work = is_at_work(folder)
    pids = job_ranks(job)
    time.sleep(0.5)
    begun = time.time()
    os.kill(pids[which], signal.SIGSTOP)
    code, text = job_end(job, 40)
    spent = time.time() - begun
    ok(at_work and code == 76 and spent < 15,
       f"rank {which} stopped: exit {code} after {spent:.1f} s")
    ok("a sign of life of rank" in text and not published(folder), "the silent rank is named")
    kill_all(pids)


def check_killed(folder, ranks=3, *words):
    job = start(folder, ranks, "--deadline", 20, *words)
    at_work = is_at_work(folder)
    time.sleep(0.5)
    os.kill(job_ranks(job)[1], signal.SIGKILL)
    code, _ = job_end(job, 40)
    ok(at_work and code not in (0, None) and not published(folder),
        f"rank 1 killed: exit {code}, nothing published")


@claim("after kills at random moments a result is whole or absent, and a later run works")
def check_random_kills(folder):
    moments, broken = random.Random(3), []
    for i in range(KILLS):
        job = start(folder, 0, "--rounds", 2, "--top-s", 4)
        time.sleep(moments.uniform(0.05, 0.6))
        job.kill()
        job_end(job, 40)
        if published(folder) and sagitta("verify", f"{folder}/run/supports.h5").returncode:
            broken.append(i)
    ok(not broken, f"after {KILLS} kills a result is whole or absent {broken}")
    job = start(folder, 2, "--rounds", 2, "--top-s", 4)
    code, text = job_end(job, 100)
    ok(code == 0 and published(folder), f"a later run works: exit {code}")


@claim("signals end the job and leave no temporary file")
def check_signals(folder):
    """SIGINT and the signals of batch systems, sent twice: the process dies of them, and its
    temporary file is removed.  All ranks get them at once, as from Slurm.  mpirun would kill them
    20 ms after its own SIGTERM, which may be too early on a busy machine."""
    for ranks, number in ((0, signal.SIGINT), (0, signal.SIGTERM), (0, signal.SIGHUP),
                          (2, signal.SIGTERM)):
        job = start(folder, ranks)
        begun = is_at_work(folder)
        signal_twice(job, number, job_ranks(job) if ranks else (job.pid,))
        code, _ = job_end(job, 40)
        left = temporaries(f"{folder}/run") + [f for f in os.listdir(f"{folder}/run")
                                               if f.endswith(".lock")]
        good = code == -number if ranks == 0 else code not in (0, None)
        ok(begun and good and not left and not published(folder),
           f"{signal.Signals(number).name}, {ranks} ranks: exit {code}, nothing left")


def spellings(folder):
    """One result, written in several ways."""
    if not os.path.islink(f"{folder}/link"):
        os.symlink("run", f"{folder}/link")
    return [f"{folder}/run", f"{folder}/run/supports.h5", f"{folder}/link/",
            f"{folder}/link/../run/supports.h5"]


@claim("two runs cannot write one result at once, however its name is written")
def check_two_runs(folder):
    """Run without HDF5's locks, as on file systems on which they are turned off."""
    os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
    first = start(folder, 0)
    begun = is_at_work(folder)
    before = sorted(os.listdir(f"{folder}/run"))
    for place in spellings(folder):
        code, text = job_end(start(folder, 0, "--rounds", 1, place=place), 40)
        ok(begun and code == 73 and "another run is writing here" in text,
           f"a second run in {place[len(folder) + 1:]}: exit {code}")
    ok(sorted(os.listdir(f"{folder}/run")) == before and temporaries(f"{folder}/run"),
       "the second job leaves the first one's files unchanged")
    first.kill()
    job_end(first, 40)
    left = temporaries(f"{folder}/run")
    code, text = job_end(start(folder, 0, "--rounds", 1, "--top-s", 4), 100)
    ok(code == 0 and published(folder),
       f"after the end of the first job the place is free: exit {code}")
    ok(left and all(path in text and "left from a run that was killed" in text and
                    os.path.exists(path) for path in map(os.path.realpath, left)),
       "the file that a killed job left is named, and stays")
    clean(folder)
    os.rename(f"{folder}/run/supports.h5", f"{folder}/alone.h5")
    bad = [found for i in range(PAIRS) if (found := pair_run(folder, i))]
    ok(not bad, f"of {PAIRS} pairs at once one or both are done, and right: {bad}")
    os.remove(f"{folder}/run/supports.h5")
    del os.environ["HDF5_USE_FILE_LOCKING"]


def pair_run(folder, i):
    """Start two runs at once.  Returns what is wrong after them; None if nothing is."""
    names = spellings(folder)
    jobs = [start(folder, 0, "--rounds", 1, "--top-s", 4, place=name)
            for name in (names[i % 4], names[(i + 1) % 4])]
    codes = [job_end(job, 100)[0] for job in jobs]
    same = sagitta("diff", f"{folder}/alone.h5", f"{folder}/run/supports.h5").returncode == 0
    litter = [f for f in os.listdir(f"{folder}/run") if f.endswith((".tmp", ".lock"))]
    good = same and not litter and sorted(codes)[0] == 0 and sorted(codes)[1] in (0, 73)
    return None if good else (codes, same, litter)


def faulty_encode(folder, fault, *words):
    """A run in which a read of the rows fails or hangs.  Returns (code, message, seconds)."""
    begun = time.time()
    done = faulty(fault, "encode", "--rows", f"{folder}/rows.npy", "--dictionary",
                  f"{folder}/atoms.npy", "--top-s", 2, "--block", 8, "--output", f"{folder}/run",
                  "--force", *words)
    return *done, time.time() - begun


@claim("a disk that fails or hangs ends the job; late threads change no bit")
def check_disk(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    np.save(f"{folder}/rows.npy", np.random.default_rng(5).standard_normal((4000, 8)).astype("f4"))
    np.save(f"{folder}/atoms.npy", np.vstack([np.eye(8), np.full((1, 8), 8 ** -0.5)]).astype("f4"))
    clean = faulty_encode(folder, "read:1000000")
    ok(clean[0] == 0 and published(folder), f"without a fault: exit {clean[0]}")
    os.remove(f"{folder}/run/supports.h5")
    for n in 300, 400, 450:
        code, text, _ = faulty_encode(folder, f"read:{n}")
        ok(code == 74 and "rows.npy': Input/output error" in text and not published(folder),
           f"read {n} fails: exit {code} {text.splitlines()[-1][-90:] if text else ''}")
    code, text, spent = faulty_encode(folder, "stall:400", "--deadline", "3")
    ok(code == 74 and "longer than the deadline of 3 seconds" in text and spent < 15 and
       not published(folder), f"a read hangs: exit {code} after {spent:.1f} s")
    check_late(folder)
    os.remove(f"{folder}/run/supports.h5")
    code, text, _ = faulty_encode(folder, "linger:1+", "--dictionary", f"{folder}/rows.npy",
                                  "--normalize", "--device", "cuda")
    ok(code == 69 and not published(folder),
       f"no device is there while the dictionary is read: exit {code}")
    rows = np.load(f"{folder}/rows.npy")
    rows[2000] = 3e38  # a score overflows while the rows of the next block are being read
    np.save(f"{folder}/rows.npy", rows)
    for fault, what in (("linger:1+", "a read goes on"), ("late:1+", "all threads are late")):
        code, text, _ = faulty_encode(folder, fault, "--block", "1000", "--rounds", "1")
        ok(code == 65 and "row 2000" in text, f"a run fails while {what}: exit {code}")


@claim("a run that fails before its reader has begun names the reason")
def check_ahead(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    rows = np.random.default_rng(5).standard_normal((9000, 5)).astype("f4")
    rows[100, 3] = np.nan  # the next piece is read before this row is checked
    np.save(f"{folder}/spoilt.npy", rows)
    for words in [], ["--center"]:
        code, text = faulty("wake:1+", "seed", "--rows", f"{folder}/spoilt.npy", "--atoms", 5,
                            "--output", f"{folder}/spoilt", *words)
        ok(code == 65 and "row 100, column 3" in text, f"{words}: exit {code} {text[-300:]}")


def check_late(folder):
    """Background work ends much later than routing."""
    result, in_time = f"{folder}/run/supports.h5", f"{folder}/in-time.h5"
    for rounds in 1, 2:
        words = "--block", "800", "--rounds", rounds
        faulty_encode(folder, "none:1", *words)
        os.rename(result, in_time)
        code, text, spent = faulty_encode(folder, "late:1+", *words)
        same = sagitta("diff", in_time, result)
        waited = re.search(r" waited +\d+ +([\d.]+)", text)
        ok(code == 0 and same.returncode == 0 and waited and float(waited[1]) > 0.1,
           f"{rounds} rounds, threads are late: exit {code} after {spent:.1f} s {same.stdout}")


@claim("on GPUs a rank that stops or is killed ends the job")
def check_gpus(folder):
    """Ranks use NCCL if each has its own GPU, and the host's memory if they share one."""
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")
    ranks = gpus if gpus in (2, 3) else 3
    words = ranks, "--device", "cuda", "--block", 64
    for check, *more in ((check_stopped, 1), (check_stopped, 0), (check_killed,)):
        check(folder, *more, *words)
        clean(folder)


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = sagitta("synth", "--n-rows", 6000, "--atoms", 4096, "--columns", 256, "--output",
            folder)
        ok(done.returncode == 0, "rows and a dictionary")
        if gpu_present():
            check_gpus(folder)
        if os.environ.get("CUTS") == "gpu":
            return done_testing()
        for check, *more in ((check_stopped, 1), (check_stopped, 0), (check_killed,)):
            check(folder, *more)
            clean(folder)
        check_signals(folder)
        check_two_runs(folder)
        check_disk(folder)
        check_ahead(folder)
        check_random_kills(folder)
    done_testing()


main()
