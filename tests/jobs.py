# SPDX-License-Identifier: BSD-3-Clause
"""Functions for jobs that tests stop, kill or let fail.  If a test gives an option twice, the later
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
    """Start a job in the background.  Returns the process of mpirun; with ranks = 0, of the
    program.  more: for its environment."""
    return subprocess.Popen([*launch(ranks), SAGITTA, *later_wins(*words)], text=True,
                            env=environment(**more), stderr=subprocess.PIPE)


def job_ranks(job):
    out = subprocess.run(["pgrep", "-P", str(job.pid), "sagitta"], capture_output=True, text=True)
    return sorted(int(pid) for pid in out.stdout.split())


def process_fact(pid, name):
    """A word of /proc/PID/status; None if the process is gone."""
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
    """The exit code, or None if the job had to be killed; and its messages."""
    try:
        text = job.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        job.kill()
        return None, job.communicate()[1]
    return job.returncode, text


def wait_until(happens):
    """Wait until happens() is true; False after a minute.  MPI may take long to start if names of
    hosts are slow to find."""
    for _ in range(3000):
        if happens():
            return True
        time.sleep(0.02)
    return False


def wait_for(path):
    return wait_until(lambda: os.path.exists(path))


def temporaries(folder, name=""):
    """The temporary files in a folder, of one result or of all."""
    return [os.path.join(folder, f) for f in (os.listdir(folder) if os.path.isdir(folder) else ())
            if f.startswith(name) and re.search(r"\.[0-9a-f]{16}\.tmp$", f)]


def wait_for_temporary(folder, name):
    """Is a job writing this result?"""
    return wait_until(lambda: temporaries(folder, name))


def signal_twice(job, number, pids):
    """Send a signal twice.  The first asks a job to stop when it can, the second ends it.  One may
    be enough."""
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
    """Run with a fault of tests/fault.c.  of: only calls for this file fail.  gpu: do not hide the
    GPUs.  Returns (code, message).  count: let no call fail, and return how many calls of this kind
    a run makes."""
    more = dict(**({} if gpu else {"CUDA_VISIBLE_DEVICES": "-1"}),
                **({"FAULT_COUNT": "1"} if count else {}), **({"FAULT_OF": of} if of else {}))
    done = subprocess.run([SAGITTA, *later_wins(*words)], capture_output=True, text=True,
                          timeout=100, env=environment(LD_PRELOAD=FAULTS, FAULT=fault, **more))
    if not count:
        return done.returncode, done.stderr
    # MPI may start other programs, which print their counts too.
    return max(int(text.split()[0]) for text in done.stderr.split("fault calls=")[1:])


def cuda_run(place, *words, ranks=1, **more):
    """Remove `place`, then run with the faults of tests/fault_cuda.c that `more` names.
    FAULT_BEHIND names further libraries to preload."""
    preload = " ".join(filter(None, [CUDA_FAULTS, os.environ.get("FAULT_BEHIND", "")]))
    command = [SAGITTA, *later_wins(*words)]
    if ranks > 1:  # mpirun itself must not have the library
        command = [*launch(ranks), "-x", f"LD_PRELOAD={preload}", *command]
    else:
        more["LD_PRELOAD"] = preload
    if os.path.exists(place):
        os.remove(place)
    return subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env=environment(**more))


def told(good, done):
    """Print the output of a run if it was not good."""
    if not good:
        print("#", (done.stdout + done.stderr).replace("\n", "\n# "))
    return good
