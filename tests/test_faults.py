# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a stopped rank ends the job with 76 within the deadline, a killed one ends it too, and
nothing half-done is published; after kills at random moments a later run works."""
import os
import random
import signal
import subprocess
import tempfile
import time

from tap import SAGITTA, done_testing, ok, sagitta

KILLS = 10 if os.environ.get("SANITIZED") else 50


def start(folder, ranks, *words):
    """A job that would run for long; returns mpirun's process, with ranks = 0 the program's own."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launch = [*os.environ.get("MPIEXEC", "mpirun").split(), "--oversubscribe", "--bind-to", "none",
              "-n", str(ranks)] if ranks else []
    command = [*launch, SAGITTA, "encode", "--rows", f"{folder}/rows.h5", "--dictionary",
               f"{folder}/dictionary.h5", "--top-s", "32", "--rounds", "32", "--force",
               "--output", f"{folder}/run", *map(str, words)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def children(job):
    out = subprocess.run(["pgrep", "-P", str(job.pid), "sagitta"], capture_output=True, text=True)
    return [int(pid) for pid in out.stdout.split()]


def wait_for_ranks(job, count):
    for _ in range(200):
        pids = children(job)
        if len(pids) == count:
            return pids
        time.sleep(0.02)
    return []


def end(job, seconds):
    try:
        text = job.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        job.kill()
        return None, job.communicate()[1]
    return job.returncode, text


def published(folder):
    return os.path.exists(f"{folder}/run/supports.h5")


def check_stopped(folder, which):
    job = start(folder, 3, "--deadline", 3)
    pids = wait_for_ranks(job, 3)
    time.sleep(1.0)
    begun = time.time()
    os.kill(pids[which], signal.SIGSTOP)
    code, text = end(job, 40)
    spent = time.time() - begun
    ok(code == 76 and spent < 15, f"rank {which} stopped: exit {code} after {spent:.1f} s")
    ok("heard nothing from rank" in text and not published(folder), "the silent rank is named")
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def check_killed(folder):
    job = start(folder, 3, "--deadline", 20)
    pids = wait_for_ranks(job, 3)
    time.sleep(0.7)
    os.kill(pids[1], signal.SIGKILL)
    code, _ = end(job, 40)
    ok(code not in (0, None) and not published(folder),
        f"rank 1 killed: exit {code}, nothing published")


def check_random_kills(folder):
    moments, broken = random.Random(3), []
    for i in range(KILLS):
        job = start(folder, 0, "--rounds", 2, "--top-s", 4)
        time.sleep(moments.uniform(0.05, 0.6))
        job.kill()
        end(job, 40)
        if published(folder) and sagitta("verify", f"{folder}/run/supports.h5").returncode:
            broken.append(i)
    ok(not broken, f"after {KILLS} kills a result is whole or absent {broken}")
    job = start(folder, 2, "--rounds", 2, "--top-s", 4)
    code, text = end(job, 100)
    ok(code == 0 and published(folder), f"a later run works: exit {code}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = sagitta("synth", "--n-rows", 6000, "--atoms", 4096, "--columns", 256, "--output",
            folder)
        ok(done.returncode == 0, "rows and a dictionary")
        check_stopped(folder, 1)
        check_stopped(folder, 0)
        check_killed(folder)
        check_random_kills(folder)
    done_testing()


main()
