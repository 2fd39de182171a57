# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if a call hangs, or a rank stops, at any moment of a job, the job ends with 74 or 76
within the deadline and two seconds, with one message.  It leaves nothing unfinished, unless the
disk hangs for good.  A step of the wall clock and a suspension of the whole job change nothing.  A
limit of file size is an error.  It is no error if the reader of a pipe goes away."""
import os
import resource
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from jobs import (FAULTS, environment, job_end, job_ranks, job_start, kill_all,
                  wait_for_temporary)
from tap import FULL, SAGITTA, claim, done_testing, launch, ok, sagitta, skip_all

DEADLINE = 3  # seconds, in which MPI must start on a busy machine
SLACK = 3  # seconds beyond the deadline and two seconds, for mpirun to end on a busy machine
STALLS = 10  # moments of a run at which the disk hangs
SLOW = f"longer than the deadline of {DEADLINE} seconds"


def inputs_make(folder):
    """Rows and a dictionary, as HDF5 and as .npy; a deck; and a job that takes some seconds."""
    rng = np.random.default_rng(5)
    np.save(f"{folder}/rows.npy", rng.standard_normal((500, 8)).astype("f4"))
    for name, rows, atoms, columns in ("small", 500, 64, 8), ("long", 3000, 4096, 256):
        done = sagitta("synth", "--n-rows", rows, "--atoms", atoms, "--columns", columns,
            "--output", f"{folder}/{name}")
        ok(done.returncode == 0, f"{name} rows and a dictionary")
    with open(f"{folder}/deck.in", "w") as deck:
        deck.write(f"rows = {folder}/small/rows.h5\n")


def encode(folder, out, *words, rows="small/rows.h5"):
    return ["encode", "--rows", f"{folder}/{rows}", "--dictionary",
            f"{folder}/small/dictionary.h5", "--top-s", 2, "--output", f"{folder}/{out}", *words]


def left(folder, out):
    """The unfinished files of a run, and its result."""
    there = os.listdir(f"{folder}/{out}") if os.path.isdir(f"{folder}/{out}") else []
    beside = "run.log", "used.in", "run.json", "run.failed.log", "used.failed.in"
    return [name for name in there if name not in beside]


def run(words, ranks=0, timeout=40, **more):
    """Returns the exit code, or None if it hung; the program's messages; and the seconds since the
    fault."""
    start = launch(ranks)
    if ranks:
        start += [part for name in more for part in ("-x", name)]
    job = subprocess.Popen([*start, SAGITTA, *map(str, words)], text=True,
                           env=environment(CUDA_VISIBLE_DEVICES="-1", **more),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text = job.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        job.kill()
        return None, [], timeout
    ended = time.monotonic()
    if job.returncode == 1:  # this code is from mpirun or a library, not from the program
        print("#", text.replace("\n", "\n# "), flush=True)
    said = [line for line in text.splitlines() if "sagitta " in line and ": " in line]
    begun = [float(part.split()[0]) for part in text.split("fault at ")[1:]]
    return job.returncode, said, ended - min(begun, default=ended)


def hung(words, ranks=0, **more):
    return run(words, ranks, LD_PRELOAD=FAULTS, **more)


def check_end(what, done, code, message):
    got, said, spent = done
    ok(got == code and spent < DEADLINE + 2 + SLACK and len(said) == 1 and message in said[0],
       f"{what}: exit {got}, {spent:.1f} s after the fault, {said}")
    return spent


def stalls_tell(times):
    print(f"# the slowest end {max(times):.1f} s after the fault, the deadline is {DEADLINE} s",
          flush=True)


@claim("a call that hangs ends the job with 74, whichever call it is")
def check_calls(folder, pool):
    cases = (("stall-stat:1", "rows.h5"), ("stall-open:1", "rows.h5"), ("stall:1", "rows.h5"),
             ("stall-close:1", "rows.h5"), ("stall:4", "dictionary.h5"), ("stall:9", "rows.npy"),
             ("stall-open:1", "rows.npy"), ("stall-open:1", "supports.h5.*.tmp"),
             ("stall-write:1", "supports.h5.*.tmp"), ("stall-write:5", "supports.h5.*.tmp"),
             ("stall:1", "supports.h5.*.tmp"), ("stall-fsync:1", "supports.h5.*.tmp"),
             ("stall-rename:1", "supports.h5.*.tmp"), ("stall-close:1", "supports.h5.*.tmp"),
             ("stall-open:1", "used.in.*.tmp"), ("stall-flush:2", "run.log"),
             ("stall-open:1", "deck.in"))

    def one(i):
        fault, of = cases[i]
        words = encode(folder, f"call-{i}", "--deadline", DEADLINE, "--block", 64,
                       rows="rows.npy" if of == "rows.npy" else "small/rows.h5")
        if of == "deck.in":
            words.insert(1, f"{folder}/deck.in")
        return hung(words, FAULT=fault, FAULT_OF=of)

    times = []
    for i, done in enumerate(pool.map(one, range(len(cases)))):
        times.append(check_end(cases[i], done, 74, SLOW))
        there = left(folder, f"call-{i}")
        whole = cases[i] == ("stall-close:1", "rows.h5")  # inputs are closed last
        ok(not there or (whole and there == ["supports.h5"]), f"{cases[i]} leaves {there}")
    stalls_tell(times)


@claim("a disk that hangs for good from some moment on ends the job with 74")
def check_moments(folder, pool):
    """From the n-th call on, every call for the folder hangs.  Unfinished files may stay, because
    their removal hangs too."""
    words = encode(folder, "count", "--block", 64)
    seen = subprocess.run([SAGITTA, *map(str, words)], capture_output=True, text=True,
                          env=environment(LD_PRELOAD=FAULTS, FAULT="stall-any:1000000",
                                          FAULT_IN=folder, FAULT_COUNT="1"))
    calls = int(seen.stderr.split("fault calls=")[1].split()[0])
    ok(calls > 50, f"{calls} calls")
    moments = [1 + i * (calls - 1) // (STALLS - 1) for i in range(STALLS)]

    def one(n):
        return hung(encode(folder, f"moment-{n}", "--deadline", DEADLINE, "--block", 64),
                    FAULT=f"stall-any:{n}+", FAULT_IN=folder)

    times = [check_end(f"call {n}", done, 74, SLOW)
             for n, done in zip(moments, pool.map(one, moments))]
    stalls_tell(times)


@claim("calls that hang end verify, inspect, diff and other jobs, too")
def check_commands(folder, pool):
    small, out = f"{folder}/small", f"{folder}/count/supports.h5"
    looks = [((command, *[small] * n), f"stall-stat:{k}", of)
             for command, n in (("verify", 1), ("inspect", 1), ("diff", 2))
             for k in (1, 3) for of in (small, f"{small}/rows.h5")]
    cases = (*looks, (("verify", out), "stall:1", out), (("verify", out), "stall:9", out),
             (("inspect", out), "stall-open:1", out), (("diff", out, out), "stall:6", out),
             (("seed", "--rows", f"{small}/rows.h5", "--atoms", 8, "--output", f"{folder}/s"),
              "stall:5", "rows.h5"),
             (("refit", "--rows", f"{small}/rows.h5", "--dictionary", f"{small}/dictionary.h5",
               "--supports", out, "--output", f"{folder}/f"), "stall-write:2",
              "dictionary.h5.*.tmp"))
    done = pool.map(lambda case: hung([*case[0], "--deadline", DEADLINE], FAULT=case[1],
                                      FAULT_OF=case[2]), cases)
    for case, end in zip(cases, done):
        check_end(f"{case[0][0]} {case[1]}", end, 74, SLOW)


@claim("a rank that stops while MPI starts, connects or ends the ranks ends the job with 76")
def check_mpi(folder, pool):
    """There is one message, also if another rank than the stopped one prints it."""
    cases = [(fault, rank) for fault in ("stop-init", "stop-dup", "stop-finalize")
             for rank in (0, 1)]

    def one(case):
        fault, rank = case
        return hung(encode(folder, f"{fault}-{rank}", "--deadline", DEADLINE, "--quiet"), ranks=2,
                    FAULT=f"{fault}:1", FAULT_RANK=str(rank))

    for (fault, rank), done in zip(cases, pool.map(one, cases)):
        check_end(f"{fault} of rank {rank}", done, 76, SLOW)
        there = left(folder, f"{fault}-{rank}")
        ok(there == (["supports.h5"] if fault == "stop-finalize" else []), f"left: {there}")


@claim("a SIGTERM that comes while MPI begins takes effect when MPI has begun")
def check_begin(folder):
    """If a process ends while MPI_Init still runs, mpirun does not always notice.  So SIGTERM waits
    until MPI_Init has returned."""
    for ranks, code in (0, -signal.SIGTERM), (2, 128 + signal.SIGTERM):
        more = dict(FAULT="term-init:1", LD_PRELOAD=FAULTS,
                    **({"FAULT_RANK": "1"} if ranks else {}))
        words = [SAGITTA, *map(str, encode(folder, "begin"))]
        start = launch(ranks) + [part for name in more if ranks for part in ("-x", name)]
        done = subprocess.run([*start, *words], text=True, env=environment(**more), timeout=60,
                              capture_output=True)
        ok(done.returncode == code and "MPI has begun" in done.stderr,
           f"{ranks} ranks: exit {done.returncode}, {done.stderr}")
        ok(not left(folder, "begin"), "no file is left")


@claim("a rank that stops, or is killed, in MPI_Finalize or after it ends the job")
def check_end_of_job(folder, pool):
    """In most cases the other ranks have already ended.  The stopped rank is woken, prints the
    message itself, and ends."""
    moments = (1, 3000, 10000, 30000) if FULL else (1, 10000)
    cases = [(f"{how}-inside:{n}", rank) for how in ("stop", "kill") for n in moments
             for rank in (0, 1)] + [("stop-exit:1", rank) for rank in (0, 1)]

    def one(case):
        fault, rank = case
        return hung(encode(folder, f"{fault}-{rank}", "--deadline", DEADLINE, "--quiet"), ranks=2,
                    FAULT=fault, FAULT_RANK=str(rank))

    for (fault, rank), done in zip(cases, pool.map(one, cases)):
        if "kill" in fault:
            got, said, spent = done
            ok(got not in (0, None) and spent < DEADLINE + 2 + SLACK, f"{fault} {rank}: {done}")
        else:
            check_end(f"{fault} of rank {rank}", done, 76, SLOW)
        there = left(folder, f"{fault}-{rank}")
        ok(there == ["supports.h5"], f"{fault} of rank {rank} leaves {there}")


def long_job(folder, out, rounds):
    return ["encode", "--rows", f"{folder}/long/rows.h5", "--dictionary",
            f"{folder}/long/dictionary.h5", "--top-s", max(16, rounds), "--rounds", rounds,
            "--threads", 1, "--deadline", DEADLINE, "--quiet", "--output", f"{folder}/{out}"]


def seconds_of(path):
    """The last time in a run's log."""
    with open(path) as log:
        return float(log.read().splitlines()[-1].split("]")[0].strip("[ "))


@claim("a step of the wall clock by a day, on one rank only, changes nothing")
def check_clock(folder, job):
    code, said, _ = job.result()
    length = seconds_of(f"{folder}/leap/run.log") if code == 0 else 0
    ok(code == 0 and DEADLINE < length < 1000, f"exit {code}, {length:.1f} s by the log, {said}")


def suspend(folder):
    """Stop all ranks of a job for a while.  Returns whether they were at work, the exit code, and
    the messages."""
    job = job_start(*long_job(folder, "pause", 2), ranks=2)
    begun = wait_for_temporary(f"{folder}/pause", "supports.h5")
    pids = job_ranks(job)
    for number in signal.SIGSTOP, signal.SIGCONT:
        for pid in pids:
            os.kill(pid, number)
        time.sleep(DEADLINE + 2)
    code, text = job_end(job, 300)
    kill_all(pids)
    return begun and len(pids) == 2, code, text


@claim("a job that is suspended for longer than the deadline continues afterwards")
def check_suspended(job):
    at_work, code, text = job.result()
    ok(at_work and code == 0, f"exit {code}, {text}")


@claim("a file that is not allowed to grow ends the job with 74")
def check_limit(folder):
    for kib in 4, 8:
        words = encode(folder, f"limit-{kib}", "--quiet")
        done = subprocess.run([SAGITTA, *map(str, words)], capture_output=True, text=True,
                              env=environment(), preexec_fn=lambda: resource.setrlimit(
                                  resource.RLIMIT_FSIZE, (kib * 1024, kib * 1024)))
        there = left(folder, f"limit-{kib}")
        ok(done.returncode == 74 and "File too large" in done.stderr and not there,
           f"{kib} KiB: exit {done.returncode} {done.stderr} {there}")


@claim("a reader that goes away is no failure, and closed streams do not damage a result")
def check_pipes(folder):
    out = f"{folder}/count/supports.h5"
    for words, dies in ((("inspect", out), True), (("diff", out, f"{folder}/small/rows.h5"), True),
                        (("--help",), True), (("encode", "--help"), True),
                        (encode(folder, "dry", "--dry-run", "--quiet"), True),
                        (encode(folder, "gone"), False)):
        reader, writer = os.pipe()
        os.close(reader)
        stream = {"stdout": writer} if dies else {"stdout": writer, "stderr": writer}
        job = subprocess.Popen([SAGITTA, *map(str, words)], env=environment(),
                               **{"stderr": subprocess.PIPE, **stream})
        os.close(writer)
        said = job.communicate(timeout=60)[1]
        want = -signal.SIGPIPE if dies else 0
        ok(job.returncode == want and not said, f"{words[:1]}: exit {job.returncode}, {said}")
    words = " ".join(map(str, [SAGITTA, *encode(folder, "closed")]))
    done = subprocess.run(["sh", "-c", f"{words} <&- >&- 2>&-"], env=environment())
    ok(done.returncode == 0, f"closed streams: exit {done.returncode}")
    for name in "gone", "closed":
        same = sagitta("diff", out, f"{folder}/{name}/supports.h5")
        whole = sagitta("verify", f"{folder}/{name}/supports.h5")
        ok(same.returncode == 0 and whole.returncode == 0, f"{name}: {same.stdout}{whole.stderr}")
    ok(not left(folder, "dry"), "a dry run leaves nothing")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(12) as pool:
        inputs_make(folder)
        leap = pool.submit(hung, long_job(folder, "leap", 96), ranks=2, timeout=300,
                           FAULT="jump:100", FAULT_RANK="1")
        pause = pool.submit(suspend, folder)
        check_moments(folder, pool)
        check_calls(folder, pool)
        check_commands(folder, pool)
        check_mpi(folder, pool)
        check_begin(folder)
        check_end_of_job(folder, pool)
        check_clock(folder, leap)
        check_suspended(pause)
        check_limit(folder)
        check_pipes(folder)
    done_testing()


main()
