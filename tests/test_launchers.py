# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if several processes were started together but MPI knows of only one, each ends with 2 and
says how to start them, and none writes a result.  A single process of an allocation or of a job
step runs."""
import os
import subprocess
import tempfile

import numpy as np

from jobs import environment
from tap import BENCH, SAGITTA, claim, done_testing, ok, sagitta

STEP = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_ID": "0"}
SERIAL = "inspect", "verify", "diff", "import", "pack"  # without MPI
LAUNCHERS = (STEP, {"PMI_SIZE": "4"}, {"OMPI_COMM_WORLD_SIZE": "4"}, {"JSM_NAMESPACE_SIZE": "4"},
             {"MV2_COMM_WORLD_SIZE": "4"})
TOLD = "started 4 processes", "MPI knows of 1", "srun --mpi=pmix"


def process(words, program=SAGITTA, **more):
    return subprocess.Popen([program, *map(str, words)], text=True, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, env=environment(**more))


def encode(folder, out):
    return ("encode", "--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/atoms.npy",
            "--top-s", 2, "--threads", 1, "--force", "--output", f"{folder}/{out}")


def check_refused(folder, name, words, more, program=SAGITTA):
    job = process(words, program, **more)
    text = job.communicate(timeout=60)[1]
    ok(job.returncode == 2 and all(word in text for word in TOLD) and len(text.splitlines()) < 3,
       f"{name} {sorted(more)[0]}: exit {job.returncode}, {text}")


@claim("tasks of srun that MPI does not know of end at once, without a result")
def check_step(folder):
    own = [tempfile.mkdtemp(dir=folder) for _ in range(4)]  # Open MPI may fail to share a new one
    jobs = [process(encode(folder, "srun"), **STEP, SLURM_PROCID=str(i), TMPDIR=own[i])
            for i in range(4)]
    for i, job in enumerate(jobs):
        text = job.communicate(timeout=60)[1]
        ok(job.returncode == 2 and "srun started 4" in text, f"task {i}: {job.returncode} {text}")
    ok(not os.path.exists(f"{folder}/srun"), "nothing is written")


@claim("every command with MPI refuses to run as separate processes, whichever launcher starts "
       "them")
def check_commands(folder):
    names = sagitta("--list-options").stdout.split()
    ok(len(names) > 20, f"{len(names)} commands")
    for name in names:
        if name in SERIAL:
            continue
        words = [name] if name in ("evaluate", "serve") else [name, "--output", f"{folder}/{name}"]
        check_refused(folder, name, words, STEP)
        ok(not os.path.exists(f"{folder}/{name}"), f"{name} writes nothing")
    check_refused(folder, "bench", ["route", "--n-rows", 8, "--atoms", 8, "--columns", 4], STEP,
                  program=BENCH)
    for more in LAUNCHERS:
        check_refused(folder, "encode", encode(folder, "other"), more)


@claim("a single process in an allocation or in a step runs, and so does mpirun in a step")
def check_alone(folder):
    alone = ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
             {**STEP, "SLURM_STEP_NUM_TASKS": "1"})
    for i, more in enumerate(alone):
        job = process(encode(folder, f"alone-{i}"), **more)
        text = job.communicate(timeout=60)[1]
        ok(job.returncode == 0, f"{sorted(more)}: {job.returncode} {text}")
    os.environ.update(STEP)
    done = sagitta(*encode(folder, "inside"), ranks=2)
    ok(done.returncode == 0, f"mpirun in a step: {done.returncode} {done.stderr[-400:]}")


def main():
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/rows.npy", rng.standard_normal((60, 8)).astype("f4"))
        atoms = rng.standard_normal((12, 8))
        np.save(f"{folder}/atoms.npy",
                (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4"))
        check_step(folder)
        check_commands(folder)
        check_alone(folder)
    done_testing()


main()
