# SPDX-License-Identifier: BSD-3-Clause
"""Claim: for every command that can be resumed, options have the effect that `sagitta --describe`
gives.  A stopped job is resumed with another value of each option.  With effect "bits" it is
refused (65), with the name and both values, and the option changes the bytes of a new job.  With
effect "run" the bytes are those of one run.  Inputs are compared by contents, not by names."""
import json
import os
import shutil
import tempfile

import h5py
import numpy as np

from tap import FULL, claim, done_testing, need, ok, sagitta

N, P, K, BLOCK = 6000, 8, 40, 4096
# Options for which no other value is tried: they name the place of the result, ask for none, ask
# for other output, limit or stop the job, belong to --top-s auto, which is a number here, or to
# --row-range, which makes no part here (tests/test_join.py).
LEFT_OUT = {"output", "join", "resume", "dry-run", "rates", "deadline", "kernels", "labels"}
# Values to try, if the next number or word would be refused or would mean the same.
VALUES = {"minibatch": 1500, "row-range": f"0:{BLOCK}", "grid": "1x1", "device": "cpu",
          "cpu-variant": "baseline", "precision": "bf16", "cosine-limit": 5, "atoms": 39,
          "every": 7, "aux-atoms": 1, "rounds": 2, "lr": 0.05, "l0": 2.5, "relaxation": 1.25,
          "update": "atoms", "revive-share": 0, "twin-cosine": 1, "warm-up": 0.25, "decay": 0.25,
          "save-seconds": 0, "progress-fd": 2,
          "holdout-share": 0.2, "ridge-t": 1, "ridge-b": 1, "dead-rows": 300,
          "block": 900, "batch": 90, "nested": "20,40",
          "encode-s": 5, "top-s": 2, "codes": "nonnegative", "max-norm": 1.1}
# Options of effect bits that need not change the bits of a small job, with the reason.
SILENT = {"find": "what goes with one of its values does not go with the other",
          "uncentered": "the start brings a mean, or rows have one that is 0",
          "detect": "it is --encoder of the same file from then on, which has its own jobs"}
DESCRIBED = {c["name"]: c for c in json.loads(sagitta("--describe").stdout)["commands"]}


class Job:
    """A command, its options and inputs.  inputs: for each option, another name of the same
    contents, and other contents.  without: options that would disable others."""

    def __init__(self, name, command, results, given, inputs, without=()):
        self.name, self.command, self.results = name, command, results
        self.given, self.inputs, self.without = given, inputs, LEFT_OUT | set(without)

    def run(self, out, change=None, *more):
        """Run with the options of the job, except those in `change`; None: an option is not
        given."""
        words = []
        for key, value in {**self.given, **(change or {})}.items():
            words += [] if value is None else [f"--{key}"] if value is True else \
                [f"--{key}={value}"]
        place = f"{out}/{self.results[0]}" if self.command == "encode" else out  # parts have names
        return sagitta(self.command, *words, f"--output={place}", *more)

    def differs(self, a, b):
        """The first result that differs between two folders; None if all are equal."""
        for name in self.results:
            done = sagitta("diff", f"{a}/{name}", f"{b}/{name}")
            if done.returncode:
                return f"{name}: {done.stdout[:300]} {done.stderr[:300]}"
        return None


def other_value(job, option):
    """A value of an option that differs from that of the job; None: not given."""
    key, now = option["name"], job.given.get(option["name"], option["default"])
    if option["type"] == "flag":
        return None if now else True
    if key in VALUES and str(VALUES[key]) != str(now):
        return VALUES[key]
    if option["choices"]:
        return next(c for c in reversed(option["choices"]) if c != now)
    if option["type"] in ("integer", "real"):
        return next(v for v in ((now or 0) + 1, (now or 0) / 2) if v <= option["max"])
    raise AssertionError(f"{job.command}: VALUES has nothing for --{key}")


def shown(key, value):
    """An option as a message prints it.  Reals that are whole have no point."""
    if value is True or value is None:
        return f"--{key}" if value else f"no --{key}"
    return f"--{key} {value:g}" if isinstance(value, float) else f"--{key} {value}"


def contents(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".h5"):
            with open(f"{folder}/{name}", "rb") as f:
                found[name] = f.read()
    return found


def resumed(job, stopped, out, change):
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(stopped, out)
    return job.run(out, change, "--resume")


def bits_try(job, place, option, refused):
    """Try an option that may change bits.  It must be refused with 65 and both values, unless it
    has no effect in this job."""
    key, value = option["name"], other_value(job, option)
    change, out = {key: value}, f"{place}/try"
    shutil.rmtree(out, ignore_errors=True)
    fresh = job.run(out, change)
    if fresh.returncode == 2 or fresh.returncode == 69:
        return  # the value does not fit this job, or this machine
    need(fresh, f"{job.name}: {shown(key, value)}")
    changes = job.differs(f"{place}/plain", out)
    done = resumed(job, f"{place}/stopped", out, change)
    if done.returncode == 0 and not changes:
        ok(not job.differs(f"{place}/plain", out), f"{job.name}: --{key}, which says nothing here")
        return
    said = done.stderr.splitlines()[-1] if done.stderr else ""
    good = done.returncode == 65 and f"--{key}" in said and shown(key, value) in done.stderr
    ok(good, f"{job.name}: {shown(key, value)} changes bits: exit {done.returncode} "
       f"{done.stderr[-400:]}")
    if key in job.given and job.given[key] is not True:
        ok(f"--{key} {job.given[key]}" in done.stderr, f"{job.name}: --{key}: both values: {said}")
    ok(contents(f"{place}/stopped") == contents(out), f"{job.name}: --{key}: nothing is changed")
    if good and (changes or key in SILENT):
        refused.add(key)


def run_try(job, place, options):
    """Try options that change no bit, or that only end the job."""
    change = {o["name"]: other_value(job, o) for o in options}
    what = " ".join(shown(*pair) for pair in change.items())
    done = resumed(job, f"{place}/stopped", f"{place}/try", change)
    ok(done.returncode == 0, f"{job.name}: {what}: exit {done.returncode} {done.stderr[-400:]}")
    if options[0]["effect"] == "run":
        differs = job.differs(f"{place}/plain", f"{place}/try")
        ok(not differs, f"{job.name}: {what}: marked as changing no bit: {differs}")


def input_try(job, place, key, refused):
    copy, other = job.inputs[key]
    done = resumed(job, f"{place}/stopped", f"{place}/try", {key: copy})
    ok(done.returncode == 0 and not job.differs(f"{place}/plain", f"{place}/try"),
       f"{job.name}: --{key} of another name: exit {done.returncode} {done.stderr[-400:]}")
    done = resumed(job, f"{place}/stopped", f"{place}/try", {key: other})
    ok(done.returncode == 65, f"{job.name}: --{key}, of other contents: exit {done.returncode} "
       f"{done.stderr[-400:]}")
    refused.add(key)


def job_try(job, folder, refused):
    place = f"{folder}/{job.name}"
    os.makedirs(f"{place}/stopped")
    need(job.run(f"{place}/plain"), f"{job.name}, plain")
    open(f"{place}/stopped/STOP", "w").close()
    need(job.run(f"{place}/stopped"), f"{job.name}, stopped", 75)
    os.remove(f"{place}/stopped/STOP")
    done = resumed(job, f"{place}/stopped", f"{place}/try", {})
    ok(done.returncode == 0 and not job.differs(f"{place}/plain", f"{place}/try"),
       f"{job.name}: resumed: exit {done.returncode} {done.stderr[-400:]}")
    options = [o for o in DESCRIBED[job.command]["options"] if o["name"] not in job.without]
    for option in options:
        if option["name"] in refused and not FULL:
            continue  # another job has tried it
        if option["name"] in job.inputs:
            input_try(job, place, option["name"], refused)
        elif option["effect"] == "bits" and not option["input"]:
            bits_try(job, place, option, refused)
    for effect in "run", "extent":
        those = [o for o in options if o["effect"] == effect and o["name"] != "max-seconds"]
        for few in [[o] for o in those] if FULL else [those] if those else []:
            run_try(job, place, few)


def older_try(job, folder, missing, said):
    """A job is not resumed from a file without these attributes of /run, as older programs left
    it."""
    place = f"{folder}/{job.name}"
    out = f"{place}/older"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(f"{place}/stopped", out)
    for name in os.listdir(out):
        if name.endswith(".h5"):
            with h5py.File(f"{out}/{name}", "r+") as f:
                for key in missing:
                    del f["run"].attrs[key]
                f.attrs["format_version"] = np.int64(1)  # its hashes are not compared
    done = job.run(out, {}, "--resume")
    ok(done.returncode == 65 and "was written by " in done.stderr and said in done.stderr,
       f"{job.name}: exit {done.returncode} {done.stderr[-400:]}")


def all_try(folder, command, jobs):
    refused = set()
    with claim(f"{command}: options of effect bits are refused, others change no byte"):
        for job in jobs:
            job_try(job, folder, refused)
        wanted = {o["name"] for o in DESCRIBED[command]["options"] if o["effect"] == "bits" and
                  (not o["input"] or any(o["name"] in job.inputs for job in jobs))}
        never = wanted - refused - set(SILENT) - {"precision"}
        ok(not never, f"{command}: marked as changing bits, and no job shows it: {sorted(never)}")
    with claim(f"{command}: a job that an older program stopped is refused, with the version"):
        older_try(jobs[0], folder, ["identity"], "format 1, and does not say which job it is of")
        older_try(jobs[0], folder, ["identity", "numerics"], "(numerics 1, here ")


def made(folder):
    """Make the inputs of all commands: each under two names, and others of the same shapes."""
    def at(name):
        return f"{folder}/{name}"
    for seed, out in (1, "a"), (2, "b"):
        need(sagitta("synth", "--n-rows", N, "--columns", P, "--atoms", K, "--top-s", 3, "--seed",
                     seed, "--noise", 0.1, "--output", at(out)), "synth")
        need(sagitta("encode", "--rows", at(out), "--dictionary", at(out), "--top-s", 3,
                     "--output", at(out)), "encode")
        need(sagitta("encode", "--rows", at(out), "--dictionary", at(out), "--top-s", 3, "--codes",
                     "nonnegative", "--output", at(f"{out}/positive.h5")), "encode")
        need(sagitta("color", "--supports", at(out), "--output", at(out)), "color")
        need(sagitta("assemble", "--rows", at(out), "--dictionary", at(out), "--supports", at(out),
                     "--classes", at(out), "--output", at(out)), "assemble")
    need(sagitta("synth", "--n-rows", 700, "--columns", P, "--atoms", K, "--top-s", 3, "--seed", 3,
                 "--output", at("held")), "synth")
    shutil.copytree(at("a"), at("copy"))
    shutil.copytree(at("held"), at("held-copy"))
    return at


def jobs_of(at):
    rows = {"rows": at("a/rows.h5")}
    other = {"rows": (at("copy/rows.h5"), at("b/rows.h5"))}
    start = {name: at(f"a/{name}.h5") for name in ("rows", "dictionary", "supports")}
    starts = {name: (at(f"copy/{name}.h5"), at(f"b/{name}.h5")) for name in start}
    held = {"holdout": at("held/rows.h5")}
    helds = {"holdout": (at("held-copy/rows.h5"), at("b/rows.h5"))}
    both = ["dictionary.h5", "supports.h5"]
    fit = {**rows, "atoms": 40, "top-s": 3, "rounds": 3, "rho": 0.1, "sweeps": 3, "tolerance": 0,
           "seed": 0, "codes": "signed", "twin-cosine": 0.6}
    train = {**rows, **held, "atoms": 40, "top-s": 3, "batch": 60, "steps": 30, "seed": 0,
             "aux-atoms": 8, "dead-rows": 120, "aux-weight": 0.5, "every": 10}
    return {
        "encode": [Job("encode", "encode", ["supports.h5"],
                       {**rows, "dictionary": at("a/dictionary.h5"), "top-s": 3, "rounds": 2,
                        "rho": 0.5, "block": BLOCK},
                       {**other, "dictionary": starts["dictionary"]}),
                   Job("encode-l0", "encode", ["supports.h5"],
                       {**rows, "dictionary": at("a/dictionary.h5"), "codes": "nonnegative",
                        "l0": 3, "block": BLOCK}, {}, ["codes", "grid"])],
        "solve": [Job("solve", "solve", ["solutions.h5"],
                      {"systems": at("a/systems.h5"), "ridge-t": 0.5, "batch": 40},
                      {"systems": (at("copy/systems.h5"), at("b/systems.h5"))})],
        "assemble": [Job("assemble", "assemble", ["systems.h5"],
                         {**start, "classes": at("a/classes.h5"), "directions": 2}, starts)],
        "refit": [Job("refit", "refit", both, {**start, **held, "sweeps": 2, "directions": 2},
                      {**starts, **helds}),
                  Job("refit-keep", "refit", both,
                      {**start, "supports": at("a/positive.h5"), "codes": "nonnegative",
                       "sweeps": 2, "keep-supports": True},
                      {**starts, "supports": (at("copy/positive.h5"), at("b/positive.h5"))}),
                  Job("refit-kept", "refit", both, {**start, "sweeps": 2, "keep-supports": True},
                      {})],
        "fit": [Job("fit-joint", "fit", both, {**fit, "update": "joint", "passes": 2}, other),
                Job("fit-conjugate", "fit", both, {**fit, "update": "conjugate", "passes": 2},
                    other),
                Job("fit-atoms", "fit", both, {**fit, **held, "update": "atoms", "directions": 1},
                    {**other, **helds}),
                Job("fit-find", "fit", both, {**rows, **held, "find": "features", "atoms": 8,
                                              "l0": 3, "seed": 0}, {},
                    ["tolerance", "sweeps"])],
        "train": [Job("train", "train", ["dictionary.h5"], train, {**other, **helds}),
                  Job("train-epochs", "train", ["dictionary.h5"],
                      {**train, "steps": 0, "epochs": 1, "selection": "batch", "l0": 3,
                       "holdout": None, "holdout-share": 0.1}, {}, ["steps"])]}


with tempfile.TemporaryDirectory() as main:
    with claim("inputs are made"):
        AT = made(main)
    for what, tried in jobs_of(AT).items():
        all_try(main, what, tried)
done_testing()
