# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if a GPU takes the steps of refit, sweeps are computed while a state is published.  Sweeps
that end meanwhile are not published, except the last one, the one after which the job is asked to
stop, and one for which --save-seconds have passed, which waits.  Whatever then ends the run, its
files are those of one sweep, with a line for each sweep, and --resume gives the bytes of a run that
was never stopped."""
import os
import re
import shutil
import signal
import tempfile
import time

import h5py

from jobs import FAULTS, faulty, job_end, job_start, temporaries, wait_until
from tap import claim, done_testing, gpu_present, ok, sagitta, skip_all

FILES, ALL, MANY = ("dictionary.h5", "supports.h5"), 12, 100000


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        raise SystemExit(1)


class Place:
    def __init__(self, folder):
        self.folder, self.gate = folder, os.path.join(folder, "gate")
        need(sagitta("synth", "--n-rows", 400, "--atoms", 32, "--columns", 8, "--top-s", 3,
                     "--start-cosine", 0.8, "--noise", 0.1, "--output", folder))
        inputs = ["--rows", self.at("rows.h5"), "--dictionary", self.at("start.h5")]
        need(sagitta("encode", *inputs, "--top-s", 3, "--output", self.at("codes.h5")))
        self.inputs = [*inputs, "--supports", self.at("codes.h5")]

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def words(self, out, sweeps, *words):
        return ["refit", *self.inputs, "--reroute", "--directions", 1, "--device", "cuda",
                "--sweeps", sweeps, "--output", self.at(out), *words]

    def held_up(self, out, sweeps, part, *words):
        """A refit that waits while it publishes a dictionary.  part: 1.5 for the second dictionary,
        less than 1 for the first one."""
        calls = faulty("gate:1000000000", *self.words(out, 1), count=True, gpu=True,
                       of="dictionary.h5.*.tmp")
        shutil.rmtree(self.at(out))
        job = job_start(*self.words(out, sweeps, *words), LD_PRELOAD=FAULTS, FAULT_GATE=self.gate,
                        FAULT=f"gate:{int(calls * part)}", FAULT_OF="dictionary.h5.*.tmp")
        ok(wait_until(lambda: os.path.exists(self.gate)), f"{out} publishes")
        return job

    def there(self, out):
        """The number of sweeps of dictionary.h5; -1: there is none."""
        path = self.at(out, "dictionary.h5")
        if not os.path.exists(path):
            return -1
        with h5py.File(path) as f:
            lines = f["fit/history"][:, 0]
            ok(list(lines) == list(range(len(lines))), f"{out}: a line for each of {len(lines)}")
            return len(lines) - 1

    def done(self, out):
        """The number of sweeps in the log."""
        with open(self.at(out, "run.log")) as f:
            return max(map(int, re.findall(r"\] sweep +(\d+): explained", f.read())), default=0)

    def goes_on(self, out, sweeps, text):
        """Resume the run for a few more sweeps."""
        done = sagitta(*self.words(out, sweeps, "--resume"))
        ok(done.returncode == 0, f"{text}: exit {done.returncode} {done.stderr[-300:]}")
        self.is_straight(out, sweeps, text)

    def is_straight(self, out, sweeps, text):
        straight = self.at("straight")
        need(sagitta(*self.words("straight", sweeps, "--force")))
        for name in FILES:
            done = sagitta("diff", os.path.join(straight, name), self.at(out, name))
            ok(done.returncode == 0, f"{text}, {name}: {done.stdout[-300:]} {done.stderr[-200:]}")


@claim("all other sweeps are computed while a state is published, and the last one is published")
def check_all(place):
    job = place.held_up("all", ALL, 0.5)
    ok(wait_until(lambda: place.done("all") == ALL), "all sweeps are done")
    time.sleep(0.2)
    ok(job.poll() is None and place.there("all") == -1, "no sweep is published yet")
    os.remove(place.gate)
    code, text = job_end(job, 60)
    ok(code == 0 and place.there("all") == ALL, f"exit {code}: the last one is there {text[-300:]}")
    place.is_straight("all", ALL, "sweeps left out")


@claim("a refit that is asked to stop while it publishes then publishes the last sweep that is "
       "done")
def check_stop(place):
    job = place.held_up("stop", MANY, 1.5)
    before = place.there("stop")
    ok(wait_until(lambda: place.done("stop") > before + 2), f"sweep {before} is there, others done")
    job.send_signal(signal.SIGUSR1)
    ok(wait_until(lambda: "stopped by a signal" in open(place.at("stop", "run.log")).read()),
       "no other sweep begins")
    last = place.done("stop")
    ok(job.poll() is None and place.there("stop") == before,
       "the refit waits for the state that it publishes")
    os.remove(place.gate)
    code, text = job_end(job, 60)
    ok(code == 75 and place.there("stop") == last and not temporaries(place.at("stop")),
       f"exit {code}: sweep {place.there('stop')} of {last} {text[-300:]}")
    place.goes_on("stop", last + 3, "asked to stop")


@claim("a refit that is killed while it publishes continues from the state before")
def check_kill(place):
    job = place.held_up("kill", MANY, 1.5)
    before = place.there("kill")
    ok(wait_until(lambda: place.done("kill") > before + 2), f"sweep {before} is there, others done")
    job.kill()
    code = job_end(job, 60)[0]
    os.remove(place.gate)
    ok(code == -signal.SIGKILL and place.there("kill") == before, f"exit {code}")
    place.goes_on("kill", before + 5, "killed")


@claim("if the published state is as old as --save-seconds says, a sweep waits until it can be "
       "published")
def check_seconds(place):
    job = place.held_up("seconds", ALL, 1.5, "--save-seconds", 1e-6)
    before = place.there("seconds")
    ok(wait_until(lambda: place.done("seconds") == before + 2), f"sweep {before + 2} is done")
    time.sleep(0.5)
    ok(place.done("seconds") == before + 2, f"sweep {before + 3} is not")
    os.remove(place.gate)
    code, text = job_end(job, 60)
    ok(code == 0 and place.there("seconds") == ALL, f"exit {code} {text[-300:]}")


with tempfile.TemporaryDirectory() as main:
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    if gpu_present():
        made = Place(main)
        check_all(made)
        check_stop(made)
        check_kill(made)
        check_seconds(made)
done_testing()
