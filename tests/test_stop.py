# SPDX-License-Identifier: BSD-3-Clause
"""Claim: SIGUSR1 stops every command that can stop, at any time, with 75 and a line that says how
to continue.  The same command without --resume is refused and mentions it.  Rank 0 removes
unfinished files before any rank ends.  A SIGTERM that comes before there is anything to save ends
the job."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

import numpy as np

from jobs import (FAULTS, faulty, heeds, job_end, job_ranks, job_ranks_alive, job_start, wait_for,
                  wait_until)
from tap import SAGITTA, claim, done_testing, fails, need, ok, sagitta, same, skip

N, P = 4 * 4096, 16
READS = range(9, 24)  # calls for a file of rows; one of them is for the mean


class Jobs:
    """For each command a job: its words, the input that it opens first, and its results."""

    def __init__(self, folder):
        self.folder, a = folder, f"{folder}/a"
        np.save(f"{folder}/rows.npy", np.random.default_rng(2).standard_normal((N, P)).astype("f4"))
        rows = ["--rows", f"{folder}/rows.npy"]
        need(sagitta("seed", *rows, "--atoms", 64, "--output", a), "seed")
        need(sagitta("encode", *rows, "--dictionary", a, "--top-s", 3, "--output", a), "encode")
        need(sagitta("color", "--supports", a, "--output", a), "color")
        of_a = [*rows, "--dictionary", a, "--supports", a]
        need(sagitta("assemble", *of_a, "--classes", a, "--output", a), "assemble")
        encode = [*rows, "--dictionary", a, "--top-s", 3, "--block", 4096]
        supports, trained = ["supports.h5"], ["dictionary.h5"]
        learned = trained + supports
        self.all = {
            "encode": (encode, "rows.npy", supports),
            "route": (encode, "rows.npy", supports),
            "fit": ([*rows, "--atoms", 40, "--top-s", 3, "--sweeps", 3], "rows.npy", learned),
            "train": ([*rows, "--atoms", 40, "--top-s", 3, "--batch", 200], "rows.npy", trained),
            "refit": ([*of_a, "--sweeps", 2], "rows.npy", learned),
            "assemble": ([*of_a, "--classes", a], "rows.npy", ["systems.h5"]),
            "solve": (["--systems", a, "--batch", 20], "systems.h5", ["solutions.h5"]),
        }
        for command, (words, _, _) in self.all.items():
            need(sagitta(command, *words, "--output", self.at(command)), command)

    def at(self, name):
        return f"{self.folder}/{name}"

    def same(self, command, out, what):
        for name in self.all[command][2]:
            same(f"{self.at(command)}/{name}", f"{out}/{name}", what)


def signalled(number, command, *words, of):
    """Send the job the signal at its first call for this file."""
    os.environ["FAULT_SIGNAL"] = str(int(number))
    return faulty("signal:1", command, *words, of=of)


@claim("a job asked to stop while it opens inputs ends with 75 and a line to type, and resumes to "
       "the same bytes")
def check_first(jobs):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    for command, (words, first, _) in jobs.all.items():
        for number in signal.SIGUSR1, signal.SIGUSR2:
            out = jobs.at(f"first-{command}")
            shutil.rmtree(out, ignore_errors=True)
            code, text = signalled(number, command, *words, "--quiet", "--output", out, of=first)
            typed = re.findall(r", as by: (sagitta .*)", text)
            ok(code == 75 and len(text.splitlines()) == 1 and
               typed == [f"sagitta {command} {out}/used.in --resume"], f"{command}: {code} {text}")
        fails(sagitta(command, *words, "--output", out), 73,
              ["of a job that stopped: add --resume", "or --force"], f"{command}, not resumed")
        for line in typed:
            done = subprocess.run([SAGITTA, *shlex.split(line)[1:]], capture_output=True, text=True)
            need(done, line)
        jobs.same(command, out, f"{command}, asked at once")
        done = sagitta(command, *words, "--output", out)
        fails(done, 73, ["add --force to replace it"], f"{command}: there already")
        ok("--resume" not in done.stderr, f"{command}, which is done: {done.stderr}")
    return None


@claim("a job that is asked to stop through mpirun, at its start or at work, ends with 75")
def check_mpirun(jobs):
    words, _, _ = jobs.all["encode"]
    for moment in "start", "work":
        out = jobs.at(f"mpirun-{moment}")
        size = 3 if moment == "start" else 40  # so large that it works for seconds
        more = ["--rounds", size, "--top-s", size, "--output", out]
        job = job_start("encode", *words, *more, ranks=2)
        ok(wait_until(lambda: len(pids := job_ranks(job)) == 2 and all(map(heeds, pids))),
           "both ranks have begun")
        if moment == "work":
            wait_until(lambda: os.path.exists(f"{out}/run.log"))
        job.send_signal(signal.SIGUSR1)
        code, text = job_end(job, 60)
        ok(code == 75 and "as by: sagitta encode" in text, f"{moment}: {code} {text[-300:]}")


@claim("no rank ends before rank 0 has removed unfinished files, since mpirun then kills the "
       "others")
def check_last(jobs):
    """Rank 0 is held for a second while it removes its files at the end."""
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    held = []
    for command, (words, _, _) in jobs.all.items():
        out = jobs.at(f"last-{command}")
        gate, of = f"{out}-gate", f"/last-{command}/.*.lock"  # not the locks of MPI
        os.makedirs(out)
        open(f"{out}/STOP", "w").close()
        words = [command, *words, "--output", out, "--resume"]
        calls = faulty("gate:1000000000", *words, count=True, of=of)
        job = job_start(*words, ranks=2, LD_PRELOAD=FAULTS, FAULT=f"gate:{calls}", FAULT_OF=of,
                        FAULT_GATE=gate, FAULT_RANK="0")
        held.append((command, out, gate, job))
    for command, _, gate, _ in held:
        ok(wait_for(gate), f"{command} is held up")
    time.sleep(1)
    for command, out, gate, job in held:
        ok(len(job_ranks_alive(job)) == 2, f"{command}: a rank has ended")
        if os.path.exists(gate):
            os.remove(gate)
        code, text = job_end(job, 60)
        left = [name for name in os.listdir(out) if name.endswith((".tmp", ".lock"))]
        ok(code == 75 and not left, f"{command}: {code} {left} {text[-300:]}")
    return None


@claim("SIGTERM and SIGINT end a job that has nothing to save; SIGUSR1 ends a command that cannot "
       "stop")
def check_ends(jobs):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    for command, (words, first, results) in jobs.all.items():
        for number in signal.SIGTERM, signal.SIGINT:
            out = jobs.at(f"ends-{command}")
            code, text = signalled(number, command, *words, "--output", out, of=first)
            left = [name for name in results if os.path.exists(f"{out}/{name}")]
            ok(code == -number and not left, f"{command}: {code} {left} {text[-300:]}")
    code, text = signalled(signal.SIGUSR1, "seed", "--rows", jobs.at("rows.npy"), "--atoms", 4,
                           "--output", jobs.at("ends-seed"), of="rows.npy")
    ok(code == -signal.SIGUSR1, f"seed: {code} {text[-300:]}")
    return None


@claim("a complete part of some rows is not resumed, nor is a damaged file")
def check_whole(jobs):
    words, _, _ = jobs.all["encode"]
    words = ["encode", *words, "--row-range", "0:4096", "--output", jobs.at("range")]
    need(sagitta(*words), "a part")
    done = sagitta(*words)
    fails(done, 73, ["add --force to replace it"], "a part that is whole")
    ok("--resume" not in done.stderr, done.stderr)
    for name in "supports.h5", "dictionary.h5", "systems.h5", "solutions.h5":
        os.makedirs(jobs.at("damaged"), exist_ok=True)
        with open(f"{jobs.at('damaged')}/{name}", "w") as f:
            f.write("no result")
    for command, (words, _, _) in jobs.all.items():
        done = sagitta(command, *words, "--output", jobs.at("damaged"))
        fails(done, 73, ["already exists: add --force"], f"{command}, a damaged file")


def held_stop(words, out, gate, read, by):
    """Hold a job for a second at a read of its rows, and ask it to stop then."""
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    job = job_start(*words, "--output", out, LD_PRELOAD=FAULTS, FAULT=f"gate:{read}",
                    FAULT_OF="many.npy", FAULT_GATE=gate)
    ok(wait_for(gate), f"{words[0]} reads its rows")
    time.sleep(1)
    if by == "signal":
        os.kill(job.pid, signal.SIGUSR1)
    else:
        open(f"{out}/STOP", "w").close()
    os.remove(gate)
    return job_end(job, 100)


@claim("a job that is asked to stop while it takes the mean of its rows ends with 75")
def check_mean(jobs):
    """The job waits a second at a read of the first rows.  So it expects that all rows take
    minutes."""
    many, gate = jobs.at("many.npy"), jobs.at("gate")
    np.save(many, np.random.default_rng(3).random((100 * 4096, 4), "f4"))
    np.save(jobs.at("few.npy"), np.eye(4, dtype="f4"))
    rows = ["--rows", many, "--threads", 1]
    cases = {"fit": ["--atoms", 3, "--top-s", 1, "--sweeps", 1],
             "encode": ["--center", "--dictionary", jobs.at("few.npy"), "--top-s", 1]}
    for command, words in cases.items():
        words, out = [command, *rows, *words], jobs.at(f"mean-{command}")
        for by in "signal", "file":
            for read in READS:
                code, text = held_stop(words, out, gate, read, by)
                if "while the mean of the rows was taken" in text:
                    break
            ok(code == 75 and "while the mean of the rows was taken" in text,
               f"{command}, {by}: {code} {text[-300:]}")
            left = [f for f in os.listdir(out) if f.endswith((".h5", ".tmp"))]
            ok(not left, f"{command}, {by}: {left}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with claim("inputs are made, and jobs run without a stop"):
            jobs = Jobs(folder)
        for check in check_first, check_mpirun, check_last, check_ends, check_whole, \
                check_mean:
            check(jobs)
    done_testing()


main()
