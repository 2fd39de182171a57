# SPDX-License-Identifier: BSD-3-Clause
"""Claim: encode, route, solve, assemble, refit, fit and train can be ended at random moments, by
SIGUSR1 to mpirun, a file STOP, --max-seconds, or SIGKILL to a rank.  If they then continue on
another number of ranks, they give the bytes of a run that was never stopped.  So do parts of rows
that are merged.

STOPS is the number of stops of each command (default 1), SEED the seed of random choices, and ONLY
names cases:
  STOPS=20 SEED=3 ONLY='refit fit-atoms' make check TESTS=tests/test_stops.py
Without ONLY some of the commands run, with CHECK_FULL=1 all."""
import os
import random
import signal
import tempfile
import time

import numpy as np

from jobs import heeds, job_end, job_ranks, job_ranks_alive, job_start, temporaries, wait_until
from tap import FULL, claim, done_testing, later_wins, need, ok, sagitta, same

BLOCK, P, K = 4096, 48, 320
N = 9 * BLOCK + 321
FEW = BLOCK + 321  # rows for commands that take long for each row
STOPS, SEED = int(os.environ.get("STOPS", "1")), int(os.environ.get("SEED", "1"))
MEANS = "signal", "file", "seconds", "kill"
SOME = "solve", "refit", "fit-atoms", "train", "parts"  # one of each kind of job
# Exit codes if mpirun gets the signal before its program has begun: mpirun or the program has died.
DIED = {-signal.SIGUSR1, 128 + signal.SIGUSR1, -signal.SIGPIPE}


class Case:
    """A command, its results, and a run that is not stopped."""

    def __init__(self, folder, name, command, words, ends_well=False):
        self.folder, self.name, self.command = folder, name, command
        self.words, self.ends_well = later_wins(*words, "--threads", 1), ends_well
        self.whole = f"{folder}/{name}-whole"
        need(self.run(self.whole), f"{name}, not stopped")
        self.results = results_of(self.whole)
        begun = time.monotonic()
        need(self.run(f"{folder}/{name}-timed", ranks=2), f"{name}, not stopped, on two ranks")
        self.seconds = time.monotonic() - begun
        self.same(f"{folder}/{name}-timed", "two ranks")

    def run(self, out, ranks=0):
        return sagitta(self.command, *self.words, "--output", out, ranks=ranks)

    def same(self, out, what):
        made = results_of(out)
        ok(made and made == self.results, f"{self.name}, {what}: {made}, not {self.results}")
        for name in self.results:
            same(f"{self.whole}/{name}", f"{out}/{name}", f"{self.name}, {what}")

    def start(self, out, ranks, *more):
        quick = {"OMPI_MCA_odls_base_sigkill_timeout": "0"} if random.random() < 0.7 else {}
        return job_start(self.command, *self.words, "--resume", *more, "--output", out,
                         ranks=ranks, **quick)

    def stop(self, out, did):
        """Start or resume a run, and end it at some moment.  Returns whether it was ended."""
        means, ranks = random.choice(MEANS), random.randint(1, 4)
        moment = random.uniform(0.1, 1) * self.seconds
        did.append(f"{means} on {ranks} at {moment:.2f} s")
        limit = ["--max-seconds", f"{moment:.3f}"] if means == "seconds" else []
        job = self.start(out, ranks, *limit)
        if means != "seconds":
            end_wait(job, moment)
        if means == "kill":  # kill needs a running rank
            wait_until(lambda: job.poll() is not None or job_ranks(job))
        pids = job_ranks(job)
        began = len(pids) == ranks and all(map(heeds, pids))
        if means == "signal" and job.poll() is None:
            job.send_signal(signal.SIGUSR1)
        elif means == "file":
            os.makedirs(out, exist_ok=True)
            open(f"{out}/STOP", "w").close()
        elif means == "kill":
            kill_one(pids)
        code, text = killed_end(job) if means == "kill" else job_end(job, 120)
        did[-1] += f": {code}"
        if os.path.exists(f"{out}/STOP"):
            os.remove(f"{out}/STOP")
        self.judge(out, means, code, text, did, began)
        stopped = code != 0 or (means == "seconds" and self.ends_well)
        if not stopped:
            self.seconds *= 0.6  # the machine was slower when the whole job was timed
        return stopped

    def judge(self, out, means, code, text, did, began):
        told = f"{self.name}: {did} {(text or '')[-400:]}"
        if means == "kill":
            ok(code is not None, told)
            return
        early = means == "signal" and code in DIED and not began
        ok(early or code in (0, 75), told)
        ok(code != 75 or "--resume continues the job" in text, told)
        ok(early or any("kill" in one for one in did) or not temporaries(out),
           f"{told} {temporaries(out)}")

    def check(self):
        """Stop runs, each one to three times, until there are enough stops."""
        stops, tries = 0, 0
        while stops < STOPS and tries < 3 * STOPS + 8:
            out, did, wanted = f"{self.folder}/{self.name}-{tries}", [], random.randint(1, 3)
            while wanted > 0 and self.stop(out, did):
                stops, wanted = stops + 1, wanted - 1
            ranks = random.randint(1, 4)
            code, text = job_end(self.start(out, ranks), 120)
            told = f"{self.name}: {did}, then {ranks} ranks: {code}"
            ok(code == 0, f"{told} {(text or '')[-600:]}")
            self.same(out, told)
            tries += 1
            if os.environ.get("VERBOSE"):
                print(f"# {told}", flush=True)
        ok(stops >= STOPS, f"{self.name}: {stops} stops of {STOPS}")
        print(f"# {self.name}: {stops} stops in {tries} jobs of {self.seconds:.1f} s")


def results_of(out):
    return sorted(f for f in os.listdir(out) if f.endswith(".h5"))


def end_wait(job, seconds):
    """Wait for this time, or until the job ends."""
    until = time.monotonic() + seconds
    while job.poll() is None and time.monotonic() < until:
        time.sleep(0.005)


def kill_one(pids):
    try:
        if pids:
            os.kill(random.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        pass


def killed_end(job):
    """The end of a job of which a rank was killed.  If the rank gets no warning first, mpirun of
    Open MPI 4.1 may wait for itself for ever after all ranks have ended.  Then the code is 137."""
    if wait_until(lambda: job.poll() is not None) or job_ranks_alive(job):
        return job_end(job, 60)
    print("# mpirun waits, and all its ranks have ended", flush=True)
    return 128 + signal.SIGKILL, job_end(job, 1)[1]


def inputs_make(folder):
    draw = np.random.default_rng(23)
    atoms = draw.standard_normal((K, P)).astype("f4")
    rows = 0.3 * draw.standard_normal((N, P)).astype("f4")
    for _ in range(4):
        rows += atoms[draw.integers(0, K, N)]
    np.save(f"{folder}/rows.npy", rows)
    np.save(f"{folder}/few.npy", rows[:FEW])
    np.save(f"{folder}/held.npy", rows[-700:])
    few = ["--rows", f"{folder}/few.npy"]
    need(sagitta("seed", *few, "--atoms", K, "--output", f"{folder}/a"), "seed")
    need(sagitta("encode", *few, "--dictionary", f"{folder}/a", "--top-s", 8, "--output",
                 f"{folder}/a"), "encode")
    large = ["--rows", f"{folder}/b", "--dictionary", f"{folder}/b"]  # several batches of systems
    need(sagitta("synth", "--n-rows", 40000, "--columns", 16, "--atoms", 400, "--frame", 4,
                 "--top-s", 3, "--output", f"{folder}/b"), "synth")
    need(sagitta("encode", *large, "--top-s", 3, "--output", f"{folder}/b"), "encode")
    need(sagitta("color", "--supports", f"{folder}/b", "--output", f"{folder}/b"), "color")
    need(sagitta("assemble", *large, "--supports", f"{folder}/b", "--classes", f"{folder}/b",
                 "--output", f"{folder}/b"), "assemble")


def jobs_of(folder):
    """{name: (command, words, does --max-seconds end it well?)}."""
    rows, few = ["--rows", f"{folder}/rows.npy"], ["--rows", f"{folder}/few.npy"]
    atoms, b = ["--dictionary", f"{folder}/a"], f"{folder}/b"
    of_a = [*few, *atoms, "--supports", f"{folder}/a"]
    coding = [*rows, *atoms, "--top-s", 24, "--block", BLOCK, "--filter", "off"]
    saved = ["--save-seconds", 0.05]  # for runs that are killed
    fit = [*few, "--top-s", 8, "--tolerance", 0]
    return {
        "encode": ("encode", [*coding, "--rounds", 6]),
        "route": ("route", [*coding, "--block", 1024]),
        "solve": ("solve", ["--systems", b, "--batch", 20]),
        "assemble": ("assemble", ["--rows", b, "--dictionary", b, "--supports", b, "--classes", b]),
        "refit": ("refit", [*of_a, *saved, "--sweeps", 4, "--holdout", f"{folder}/held.npy"]),
        "reroute": ("refit", [*of_a, *saved, "--sweeps", 4, "--reroute"]),
        "fit-atoms": ("fit", [*fit, *saved, "--atoms", K, "--update", "atoms", "--rounds", 1,
                              "--directions", 4, "--sweeps", 9], True),
        "fit-joint": ("fit", [*fit, "--atoms", 200, "--update", "joint", "--sweeps", 12], True),
        "fit-parts": ("fit", [*fit, "--atoms", 100, "--minibatch", 1024, "--sweeps", 4], True),
        "train": ("train", [*few, "--atoms", K, "--top-s", 8, "--batch", 256, "--steps", 300])}


def check_parts(folder):
    """Parts of the rows, each of them stopped, and a merge that is killed."""
    whole = Case(folder, "whole", *jobs_of(folder)["encode"])
    words, parts = jobs_of(folder)["encode"][1], []
    middle = random.randint(2, 4)
    cuts = [middle, random.randint(middle + 2, N // BLOCK - 2)]
    for first, end in zip([0, *cuts], [*cuts, None]):
        cut = f"{first * BLOCK}:{'' if end is None else end * BLOCK}"
        name = f"part-{first}"
        part = Case(folder, name, "encode", [*words, "--row-range", cut])
        part.check()
        parts += [f"{folder}/{name}-0/{f}" for f in part.results]
    out, words = f"{folder}/merged", ["merge", *random.sample(parts, len(parts)), "--force"]
    for _ in range(STOPS):
        job = job_start(*words, "--output", out)
        end_wait(job, random.uniform(0, 0.4))
        job.kill()
        job_end(job, 60)
    need(sagitta(*words, "--output", out), "merge")
    whole.same(out, f"merged of {cuts}")


def main():
    random.seed(SEED)
    print(f"# SEED={SEED} STOPS={STOPS}")
    with tempfile.TemporaryDirectory() as folder:
        with claim("inputs are made"):
            inputs_make(folder)
        jobs = jobs_of(folder)
        some = [*jobs, "parts"] if FULL else SOME
        for name in os.environ.get("ONLY", "").split() or some:
            with claim(f"{name}: ended at random moments and continued, it has the bytes of one "
                       "run"):
                if name == "parts":
                    check_parts(folder)
                else:
                    Case(folder, name, *jobs[name]).check()
    done_testing()


main()
