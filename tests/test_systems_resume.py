# SPDX-License-Identifier: BSD-3-Clause
"""Claim: assemble and solve that are stopped, by a signal, a file or a time limit, end with 75 and
keep the first systems.  Resumed on any number of ranks, also after a kill, they give the bytes of a
run that was never stopped.  A job with other options or inputs is not continued."""
import json
import os
import random
import re
import shutil
import signal
import tempfile

import h5py
import numpy as np

from jobs import FAULTS, faulty, job_end, job_start
from tap import FULL, claim, done_testing, fails, need, ok, sagitta, same, skip

N, P, K, D = 6000, 16, 120, 2
LARGE_N, LARGE_K = 40000, 400  # for jobs that run long enough to be stopped at any moment
TRIALS = 6 if FULL else 4
COMMANDS = {"assemble": "systems.h5", "solve": "solutions.h5"}
BATCH = {"assemble": (), "solve": ("--batch", 40)}


def systems_done(path):
    """The number of systems in a part; None if the file is complete, -1 if its arrays have another
    length."""
    with h5py.File(path) as f:
        if not f.attrs["kind"].endswith("_part"):
            return None
        lengths = {len(f[name]) for name in ("systems/atom", "solutions/status") if name in f}
        return int(f["part"].attrs["systems"]) if lengths == {f["part"].attrs["systems"]} else -1


def inputs_make(folder):
    """Make the inputs of both commands, and others of the same shapes."""
    def at(name):
        return f"{folder}/{name}"
    for seed, out in ((1, "a"), (2, "b")):
        need(sagitta("synth", "--n-rows", N, "--columns", P, "--atoms", K, "--frame", D, "--top-s",
                     3, "--seed", seed, "--output", at(out)), "synth")
        need(sagitta("encode", "--rows", at(out), "--dictionary", at(out), "--top-s", 3,
                     "--output", at(out)), "encode")
        need(sagitta("color", "--supports", at(out), "--output", at(out)), "color")
    with h5py.File(at("a/rows.h5")) as f:
        rows = f["rows"][...]
    rows[N // 2, 3] += 1
    np.save(at("rows.npy"), rows)
    for name, words in (("rho", ("--rows", at("a"), "--rho", 0.5)),
                        ("rows", ("--rows", at("rows.npy")))):
        need(sagitta("encode", "--dictionary", at("a"), "--top-s", 3, *words, "--output",
                     at(name)), "encode")
    with h5py.File(at("a/classes.h5")) as f, h5py.File(at("classes.h5"), "w") as g:
        for name in ("class_offsets", "class_atoms"):  # so that the first class comes last
            g[name] = f[name][...]
        starts, atoms = f["class_offsets"][...], f["class_atoms"][...]
        sizes = np.roll(np.diff(starts), -1)
        g["class_offsets"][...] = np.concatenate([[0], np.cumsum(sizes)])
        g["class_atoms"][...] = np.concatenate([atoms[starts[1]:], atoms[:starts[1]]])
    need(sagitta("assemble", *words_of(folder, "assemble"), "--output", at("a")), "assemble")
    with h5py.File(at("a/systems.h5")) as f:
        with h5py.File(at("changed.h5"), "w") as g:
            for name in f["systems"]:
                g[f"systems/{name}"] = f[f"systems/{name}"][...]
            g["systems/g_t"][0] += 1
    out = at("large")
    need(sagitta("synth", "--n-rows", LARGE_N, "--columns", P, "--atoms", LARGE_K, "--frame", 4,
                 "--top-s", 3, "--output", out), "synth")
    need(sagitta("encode", "--rows", out, "--dictionary", out, "--top-s", 3, "--output", out),
         "encode")
    need(sagitta("color", "--supports", out, "--output", out), "color")
    need(sagitta("assemble", *words_of(folder, "assemble", "large"), "--output", out), "assemble")
    need(sagitta("solve", *words_of(folder, "solve", "large"), "--output", out), "solve")


def words_of(folder, command, of="a", **changes):
    if command == "solve":
        words = {"systems": f"{folder}/{of}", "escalate": None}
    else:
        words = {name: f"{folder}/{of}" for name in ("rows", "dictionary", "supports", "classes")}
    return [w for key, value in {**words, **changes}.items()
            for w in (f"--{key}", *([] if value is None else [value]))]


def counted(done):
    """What the log says about all systems: their number, fingerprint and outcomes."""
    lines = re.sub(r"\[ *[0-9.]+\] ", "", done.stderr).splitlines()
    return [line for line in lines if re.match("ok |row|schur|not finite|escalated", line)] + \
        re.findall(r"systems=\d+ rows=\d+|failed=\d+|fingerprint=\w+", done.stderr)


@claim("a job stopped after every batch, and resumed on other ranks, has the bytes of one run")
def check_steps(folder):
    for command, name in COMMANDS.items():
        words, out, seen = words_of(folder, command), f"{folder}/steps-{command}", []
        os.makedirs(out)
        plain = sagitta(command, *words, "--output", f"{folder}/{command}.h5")
        need(plain, command)
        for step, (ranks, batch) in enumerate(((0, 1), (2, 900), (3, 300), (1, 0), (2, 77))):
            stop = f"{out}/STOP"
            if step < 4 and command == "assemble" or step < 3:
                open(stop, "w").close()
            elif os.path.exists(stop):
                os.remove(stop)
            batches = ("--batch", batch) if command == "solve" else ()
            done = sagitta(command, *words, *batches, "--resume", "--output", out, ranks=ranks)
            if done.returncode == 0:
                break
            fails(done, 75, ["stopped by", "STOP", "--resume"], f"{command}, step {step}")
            seen.append(systems_done(f"{out}/{name}"))
            need(sagitta("verify", f"{out}/{name}"), f"{command}: what is left is whole")
            with open(f"{out}/run.json", encoding="utf-8") as f:
                ok(json.load(f)["systems"] == seen[-1], f"{command}: run.json counts what is there")
            page = sagitta("inspect", f"{out}/{name}").stdout
            ok(f"a part: the first {seen[-1]} of {K} systems" in page, f"{command}: inspect")
        ok(done.returncode == 0 and len(seen) > 2 and 0 < seen[0] < seen[1] < seen[2],
           f"{command}: systems after each step: {seen} {done.stderr[-300:]}")
        same(f"{folder}/{command}.h5", f"{out}/{name}", command)
        ok(counted(done) == counted(plain) and len(counted(plain)) > 1,
           f"{command}: the log counts all: {counted(done)}, not {counted(plain)}")


@claim("--max-seconds stops; --resume without an earlier run begins; a complete result is left "
       "unchanged")
def check_limit(folder):
    for command, name in COMMANDS.items():
        words, out = words_of(folder, command), f"{folder}/limit-{command}"
        done = sagitta(command, *words, *BATCH[command], "--max-seconds", 1e-6, "--resume",
                       "--output", out, ranks=2)
        fails(done, 75, ["stopped by --max-seconds"], "a limit that is over")
        ok((systems_done(f"{out}/{name}") or 0) > 0, "a batch was done")
        need(sagitta(command, *words, "--max-seconds", 1000, "--resume", "--output", out),
             "resumed")
        same(f"{folder}/{command}.h5", f"{out}/{name}", "resumed")
        made = os.stat(f"{out}/{name}")
        for ranks in 0, 2:
            fails(sagitta(command, *words, "--resume", "--output", out, ranks=ranks), 0,
                  ["is complete: nothing is left to do"], "a whole is left as it is")
        ok(os.stat(f"{out}/{name}") == made, "a complete result is not written again")
        fails(sagitta(command, *words, "--output", out), 73, ["--force"], "nor replaced")
        need(sagitta(command, *words, "--force", "--output", out), "it is, with --force alone")


def check_changes(folder, command, changes):
    out, kept = f"{folder}/refused-{command}", f"{folder}/kept-{command}.h5"
    os.makedirs(out)
    open(f"{out}/STOP", "w").close()
    result = f"{out}/{COMMANDS[command]}"
    need(sagitta(command, *words_of(folder, command), *BATCH[command], "--output", out), "stopped",
         75)
    shutil.copy(result, kept)
    whole = f"{folder}/{command}.h5"  # check_steps made it
    for change, words in changes:
        for ranks in (0, 2):
            done = sagitta(command, *words_of(folder, command, **change), "--resume", "--output",
                           out, ranks=ranks)
            fails(done, 65, ["cannot resume", *words], f"{command}: {change}")
        done = sagitta(command, *words_of(folder, command, **change), "--resume", "--output", whole)
        fails(done, 65, ["cannot resume", *words, "--force"], f"{command}: {change}")
    same(kept, result, "nothing of it has changed")
    shutil.copy(whole, f"{folder}/unmarked.h5")
    with h5py.File(f"{folder}/unmarked.h5", "r+") as f:
        del f["inputs"].attrs["mark"]
    done = sagitta(command, *words_of(folder, command), "--resume", "--output",
                   f"{folder}/unmarked.h5")
    fails(done, 73, ["does not say what it was made from"], "without a mark")
    os.remove(f"{folder}/unmarked.h5")
    with open(result, "r+b") as f:
        f.truncate(5000)
    fails(sagitta(command, *words_of(folder, command), "--resume", "--output", out), 73,
          ["cannot resume"], f"{command}: damaged")
    return kept


@claim("a job that was begun with other options or inputs is not continued")
def check_refused(folder):
    def at(name):
        return f"{folder}/{name}"
    other = {name: at("b") for name in ("dictionary", "supports", "classes")}
    kept = check_changes(folder, "assemble", (
        ({"rows": at("rows.npy"), "supports": at("rows")},
         ["written with rows_hash", "this run has rows_hash"]),
        ({"rows": at("b"), **other}, ["rows_hash"]),
        ({"supports": at("rho")}, ["codes_hash"]),
        ({"classes": at("classes.h5")}, ["classes_hash"]),
        ({"directions": 2}, ["written with --directions 4, this run has --directions 2"])))
    fails(sagitta("solve", "--systems", kept, "--output", at("x")), 65,
          ["has some of the systems", "--resume"], "solve does not take it for all systems")
    check_changes(folder, "solve", (
        ({"systems": at("changed.h5")}, ["systems_mark"]),
        ({"ridge-t": 1}, ["written with --ridge-t 0", "this run has --ridge-t 1"]),
        ({"ridge-b": 1}, ["--ridge-b"])))
    words = [w for w in words_of(folder, "solve") if w != "--escalate"]
    out = at("plain-first")
    os.makedirs(out)
    open(f"{out}/STOP", "w").close()
    need(sagitta("solve", *words, *BATCH["solve"], "--output", out), "stopped", 75)
    fails(sagitta("solve", *words, "--escalate", "--resume", "--output", out), 65, ["--escalate"],
          "solve: --escalate")
    whole = ["--resume", "--output", at("solve.h5")]
    fails(sagitta("solve", *words, *whole), 65,
          ["written with --escalate, this run has no --escalate"], "complete")


@claim("a complete result with failed systems fails with --strict, too")
def check_strict(folder):
    need(sagitta("synth", "--systems", 20, "--output", f"{folder}/bad"), "synth")
    with h5py.File(f"{folder}/bad/systems.h5") as f, h5py.File(f"{folder}/poor.h5", "w") as g:
        for name in f["systems"]:
            g[f"systems/{name}"] = f[f"systems/{name}"][...]
        g["systems/D_blocks"][:] = -g["systems/D_blocks"][:]
    words = ["solve", "--systems", f"{folder}/poor.h5", "--output", f"{folder}/strict.h5"]
    need(sagitta(*words), "without --strict")
    need(sagitta(*words, "--resume"), "complete")
    for ranks in 0, 2:
        fails(sagitta(*words, "--resume", "--strict", ranks=ranks), 1,
              ["is complete", "20 of 20 systems failed"], "--strict")


# The files whose calls are counted, because the longest part of a run uses them.
OF = {"assemble": "*.tmp", "solve": "*/large/systems.h5"}


def calls_of(folder, command):
    """The number of calls for these files in a run that is not stopped."""
    return faulty("signal:100000000", command, *words_of(folder, command, "large"), "--output",
                  f"{folder}/counted", "--threads", 1, *BATCH[command], count=True, of=OF[command])


@claim("a job stopped by signals or killed at random moments, and resumed until done, has the "
       "bytes of one run")
def check_moments(folder):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    random.seed(int(os.environ.get("SEED", "11")))
    calls = {command: calls_of(folder, command) for command in COMMANDS}
    calls["assemble"] = calls["assemble"] * 2 // 5  # later calls read the result again
    ends = {75: 0, "killed": 0}
    for trial in range(TRIALS):
        command = ("assemble", "solve")[trial % 2]
        words, out = words_of(folder, command, "large"), f"{folder}/trial{trial}"
        result, code, runs = f"{out}/{COMMANDS[command]}", None, 0
        while runs < 8 and not (os.path.exists(result) and systems_done(result) is None):
            before = systems_done(result) if os.path.exists(result) else 0
            number = random.choice((signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT,
                                    signal.SIGKILL))
            at = random.randint(1, calls[command]) if runs < 6 else 100000000
            ranks = random.choice((0, 2, 3))
            of = {"FAULT_RANK": "0"} if ranks else {}
            job = job_start(command, *words, *BATCH[command], "--resume", "--threads", 1,
                            "--output", out, ranks=ranks, LD_PRELOAD=FAULTS, FAULT=f"signal:{at}",
                            FAULT_OF=OF[command], FAULT_SIGNAL=str(int(number)), **of)
            code, text = job_end(job, 60)
            runs += 1
            left = systems_done(result) if os.path.exists(result) else 0
            what = (f"trial {trial}, {command}, {number} at {at} on {ranks}: {code}, {left} "
                    f"systems after {before} {text[-300:]}")
            ok(left is None or (left > before if code == 75 else left == before), what)
            ends[75] += code == 75
            ends["killed"] += left is not None and code != 75
        same(f"{folder}/large/{COMMANDS[command]}", result, f"trial {trial}, {command}, {runs}")
    ok(ends[75] >= TRIALS - 1 and ends["killed"] > TRIALS // 4, f"how they ended: {ends}")
    print(f"# {ends}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with claim("inputs are made"):
            inputs_make(folder)
        for check in (check_steps, check_limit, check_refused, check_strict, check_moments):
            check(folder)
    done_testing()


main()
