# SPDX-License-Identifier: BSD-3-Clause
"""Functions for jobs that tests stop, kill or let fail.  If an option is given twice, the later
value counts."""
import os
import re
import signal
import subprocess
import time

from tap import SAGITTA, later_wins, launch

TESTS = os.path.abspath(os.path.join(os.environ.get("builddir", "."), "tests"))
FAULTS = os.path.join(TESTS, "fault.so")
CUDA_FAULTS = os.path.join(TESTS, "fault_cuda.so")


def environment(**more):
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)


def job_start(*words, ranks=0, **more):
    """A job in the background: mpirun's process, with ranks = 0 the program's own; more: for its
    environment."""
    return subprocess.Popen([*launch(ranks), SAGITTA, *later_wins(*words)], text=True,
                            env=environment(**more), stderr=subprocess.PIPE)


def job_ranks(job):
    out = subprocess.run(["pgrep", "-P", str(job.pid), "sagitta"], capture_output=True, text=True)
    return sorted(int(pid) for pid in out.stdout.split())


def process_fact(pid, name):
    """A word of what the system says of a process; None where it is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            fact = re.search(rf"{name}:\s*(\w+)", f.read())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fact and fact[1]


def heeds(pid):
    """Does a process catch SIGUSR1?"""
    caught = process_fact(pid, "SigCgt")
    return caught and int(caught, 16) >> (signal.SIGUSR1 - 1) & 1


def job_ranks_alive(job):
    return [pid for pid in job_ranks(job) if process_fact(pid, "State") not in (None, "Z")]


def job_end(job, seconds):
    """Exit code, None when it had to be killed, and what was said."""
    try:
        text = job.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        job.kill()
        return None, job.communicate()[1]
    return job.returncode, text


def wait_until(happens):
    """Does it come true?  MPI may take long to start, where names of hosts are slow to find."""
    for _ in range(3000):
        if happens():
            return True
        time.sleep(0.02)
    return False


def wait_for(path):
    return wait_until(lambda: os.path.exists(path))


def temporaries(folder, name=""):
    """The temporary files of a result, or of all, that are in a folder."""
    return [os.path.join(folder, f) for f in (os.listdir(folder) if os.path.isdir(folder) else ())
            if f.startswith(name) and re.search(r"\.[0-9a-f]{16}\.tmp$", f)]


def wait_for_temporary(folder, name):
    """Is a job writing this result?"""
    return wait_until(lambda: temporaries(folder, name))


def signal_twice(job, number, pids):
    """The first asks a job to stop when it can, the second ends it; one may be enough."""
    for _ in range(2):
        for pid in pids if job.poll() is None else ():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        time.sleep(0.3)


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def faulty(fault, *words, count=False, of=None, gpu=False):
    """A run with a fault of tests/fault.c, of one file's calls alone if `of` is there, and without
    GPUs, unless gpu is there; (code, message).  count: instead of a failing call, how many calls of
    that kind a run makes."""
    more = dict(**({} if gpu else {"CUDA_VISIBLE_DEVICES": "-1"}),
                **({"FAULT_COUNT": "1"} if count else {}), **({"FAULT_OF": of} if of else {}))
    done = subprocess.run([SAGITTA, *later_wins(*words)], capture_output=True, text=True,
                          timeout=100, env=environment(LD_PRELOAD=FAULTS, FAULT=fault, **more))
    if not count:
        return done.returncode, done.stderr
    # MPI may start other programs, which tell their calls too.
    return max(int(text.split()[0]) for text in done.stderr.split("fault calls=")[1:])


def cuda_run(place, *words, ranks=1, **more):
    """A run with the faults of tests/fault_cuda.c, which `more` names, after `place` is removed;
    FAULT_BEHIND names further libraries to preload."""
    preload = " ".join(filter(None, [CUDA_FAULTS, os.environ.get("FAULT_BEHIND", "")]))
    command = [SAGITTA, *later_wins(*words)]
    if ranks > 1:  # mpirun itself is not to be preloaded
        command = [*launch(ranks), "-x", f"LD_PRELOAD={preload}", *command]
    else:
        more["LD_PRELOAD"] = preload
    if os.path.exists(place):
        os.remove(place)
    return subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env=environment(**more))


def told(good, done):
    """Show what a run said if it was not good."""
    if not good:
        print("#", (done.stdout + done.stderr).replace("\n", "\n# "))
    return good
