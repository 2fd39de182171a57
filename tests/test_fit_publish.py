# SPDX-License-Identifier: BSD-3-Clause
"""Claim: while fit publishes the state of a sweep, it computes the next sweep, but no later one.
Whatever then ends the run, the files are those of one sweep, and --resume continues from them."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

import h5py
import numpy as np

from jobs import FAULTS, environment, faulty, job_end, temporaries, wait_until
from tap import SAGITTA, claim, done_testing, later_wins, ok, sagitta, skip_all

SWEEPS = 8


class Place:
    def __init__(self, folder):
        self.folder = folder
        rows = np.random.default_rng(5).standard_normal((2000, 12)).astype("f4")
        np.save(self.at("rows.npy"), rows)
        np.save(self.at("held.npy"), rows[-200:])
        np.save(self.at("few.npy"), rows[:60])

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def words(self, out, *words):
        return later_wins("fit", "--rows", self.at("rows.npy"), "--holdout", self.at("held.npy"),
                          "--atoms", 80, "--top-s", 3, "--tolerance", 0, "--update", "joint",
                          "--sweeps", SWEEPS, "--output", self.at(out), *words)

    def held_up(self, out, part, *words, of="dictionary.h5"):
        """Start a fit that waits at a call for this file while it publishes the file.  part: where
        this call is among all calls for the file, 0 to 1.  Returns the job, and the file that
        holds it up."""
        of, gate = f"{of}.*.tmp", self.at("gate")
        calls = faulty("gate:1000000000", *self.words(out, *words, "--force"), count=True, of=of)
        shutil.rmtree(self.at(out))
        job = subprocess.Popen(
            [SAGITTA, *self.words(out, *words)], stderr=subprocess.PIPE, text=True,
            env=environment(LD_PRELOAD=FAULTS, FAULT=f"gate:{int(calls * part)}", FAULT_GATE=gate,
                            FAULT_OF=of, CUDA_VISIBLE_DEVICES="-1"))
        ok(wait_until(lambda: os.path.exists(gate)), f"{out} publishes")
        return job, gate

    def sweep(self, *names):
        with h5py.File(self.at(*names)) as f:
            return int(f.attrs["sweeps"])

    def has_begun(self, out, sweep):
        with open(self.at(out, "run.log")) as f:
            return f" sweep {sweep:3d}:" in f.read()

    def goes_on(self, out, text):
        done = sagitta(*self.words(out, "--resume"))
        ok(done.returncode == 0, f"{text}: exit {done.returncode} {done.stderr[-300:]}")
        for name in "dictionary.h5", "supports.h5":
            done = sagitta("diff", self.at("straight", name), self.at(out, name))
            ok(done.returncode == 0, f"{text}, {name}: {done.stdout[-300:]} {done.stderr[-200:]}")


@claim("while a state is published, the next sweep is computed, and no later one")
def check_ahead(place):
    job, gate = place.held_up("ahead", 0.5)
    there = place.sweep("ahead", "dictionary.h5")
    ok(wait_until(lambda: place.has_begun("ahead", there + 2)),
       f"sweep {there} is there, {there + 1} is published, {there + 2} is computed")
    time.sleep(0.5)
    ok(place.sweep("ahead", "dictionary.h5") == there and not place.has_begun("ahead", there + 3),
       f"sweep {there + 3} is not")
    os.remove(gate)
    code, text = job_end(job, 60)
    ok(code == 0 and "write  " in text and "background" in text, f"exit {code} {text[-300:]}")
    place.goes_on("ahead", "nothing left to do")


@claim("a signal ends the fit while it publishes")
def check_ends(place):
    for number, code in (signal.SIGKILL, -signal.SIGKILL), (signal.SIGHUP, -signal.SIGHUP), \
                        (signal.SIGUSR1, 75):
        name = signal.Signals(number).name
        job, gate = place.held_up(name, 0.6)
        there = place.sweep(name, "dictionary.h5")
        job.send_signal(number)
        if code == 75:
            time.sleep(0.2)
            ok(job.poll() is None, "a fit that is asked to stop waits for its publication")
            os.remove(gate)
        found, text = job_end(job, 60)
        if code != 75:
            os.remove(gate)
        left, last = temporaries(place.at(name)), place.sweep(name, "dictionary.h5")
        ok(found == code and last in ([there] if code != 75 else [there + 1, there + 2])
           and (number == signal.SIGKILL or not left),
           f"{name}: exit {found}, of sweep {there} then {last}, {left} {text[-300:]}")
        place.goes_on(name, name)


@claim("the published state does not change, although the next sweep has moved the atoms")
def check_copied(place):
    words = ["--rows", place.at("few.npy"), "--atoms", 50, "--top-s", 6, "--relaxation", 1]
    for _ in range(20):  # the file exists only for a moment
        job, gate = place.held_up("moved", 0.6, *words, of="state.h5")
        state, kept = place.at("moved", "state.h5"), place.at("kept.h5")
        there, before = place.sweep("moved", "state.h5"), os.stat(state).st_ino
        ok(wait_until(lambda: place.has_begun("moved", there + 2)), "the next sweep computes")
        shutil.copy(place.at("moved", "dictionary.h5"), place.at("best.h5"))
        if os.path.exists(kept):
            os.remove(kept)
        os.remove(gate)
        while os.stat(state).st_ino == before:
            pass
        os.link(state, kept)
        ok(job_end(job, 60)[0] == 0, "the fit ends with 0")
        if place.sweep("kept.h5") == there + 1:
            break
    os.replace(place.at("moved", "dictionary.h5"), place.at("last.h5"))
    os.replace(place.at("best.h5"), place.at("moved", "dictionary.h5"))
    os.replace(kept, state)
    done = sagitta(*place.words("moved", *words, "--resume"))
    ok(done.returncode == 0 and f"resume  after sweep {there + 1} " in done.stderr,
       f"sweep {there + 1}: exit {done.returncode} {done.stderr[-300:]}")
    done = sagitta("diff", place.at("moved", "dictionary.h5"), place.at("last.h5"))
    ok(done.returncode == 0, f"{done.stdout[-300:]}")


with tempfile.TemporaryDirectory() as main:
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    made = Place(main)
    ok(sagitta(*made.words("straight")).returncode == 0, "a fit without a stop ends well")
    check_ahead(made)
    check_ends(made)
    check_copied(made)
done_testing()
