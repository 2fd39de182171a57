# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the memory and files that `fit` and `train` forecast with --dry-run are enough for the
job, and not much more.  A dry run reads no rows and does not look at the output; one of its ranks
prints the plan."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from jobs import environment
from tap import FULL, SAGITTA, SOURCE, claim, done_testing, launch, need, ok, sagitta, skip

REAL = os.path.join(SOURCE, "input/minilm-l3-kjv-8k.h5")
# The parts that take most memory of a job: rows, a Gram matrix, parts with sums, buffers of
# batches, weights.
JOBS = {
    "joint": ["fit", "--atoms", 1024, "--sweeps", 1, "--rounds", 2],
    "atoms": ["fit", "--atoms", 512, "--sweeps", 1, "--find", "codes", "--update", "atoms",
              "--rounds", 2],
    "parts": ["fit", "--atoms", 2048, "--sweeps", 1, "--minibatch", 1024, "--rounds", 1],
    "conjugate": ["fit", "--atoms", 1024, "--sweeps", 1, "--rounds", 2, "--update", "conjugate"],
    "seeds": ["fit", "--atoms", 1024, "--sweeps", 1, "--seeds", 2, "--detectors", "--rounds", 2],
    "features": ["fit", "--atoms", 256, "--find", "features", "--l0", 5],
    "train": ["train", "--atoms", 8192, "--steps", 1],
}
ENCODE = ["encode", "--top-s", 64]
LONG = () if FULL else ("features",)  # jobs left out, because they take tens of seconds
LEAST, MOST = 0.9, 1.3  # libraries take memory too, and some pages are never touched


def peak(words):
    """The peak memory of a process in bytes, and its exit code."""
    done = subprocess.Popen([SAGITTA, *map(str, words)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(done.pid, 0)
    return 1024 * usage.ru_maxrss, os.waitstatus_to_exitcode(status)


# Runs a program, and appends its peak memory in bytes to a file.
PEAK = [sys.executable, "-c", """import os, subprocess, sys
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
with open(sys.argv[1], "a") as f:
    f.write(f"{1024 * usage.ru_maxrss}\\n")
sys.exit(os.waitstatus_to_exitcode(status))"""]


def words_of(folder):
    """Options for half of the rows; with CHECK_FULL=1 for all."""
    rows = f"{folder}/half.npy"
    if not os.path.exists(rows):
        with h5py.File(REAL) as f:
            np.save(rows, f["rows"][:None if FULL else 4096])
    return ["--rows", rows, "--threads", 1, "--device", "cpu"]


def plan_of(job, ranks=0):
    """What a dry run prints."""
    done = sagitta(*job, "--dry-run", ranks=ranks)
    need(done, f"{job[0]} --dry-run")
    return done.stdout


def figure(plan, name):
    return 1e6 * float(re.search(rf"{name} +(?:up to |about )?([0-9.]+)", plan)[1])


@claim("the forecast of memory is enough for each job, and not much more")
def memory_check(folder):
    if os.environ.get("SANITIZED"):
        skip("sanitizers take memory of their own, which the forecast does not count")
        return
    for name, job in JOBS.items():
        if name in LONG:
            continue
        words, out = [*job, *words_of(folder)], f"{folder}/{name}"
        plan = plan_of(words)
        took, code = peak([*words, "--output", out])
        said = figure(plan, "memory")
        ok(code in (0, 75) and LEAST * took <= said <= MOST * took,
           f"{name}: {1e-6 * said:.0f} MB said, {1e-6 * took:.0f} taken, exit {code}")
        for file in sorted(f for f in os.listdir(out) if f.endswith(".h5")):
            has, told = os.path.getsize(f"{out}/{file}"), figure(plan, file)
            ok(has <= told, f"{name}: {file} has {1e-6 * has:.1f} MB, {1e-6 * told:.1f} said")


@claim("a dry run needs no output, looks at none, and writes nothing")
def nothing_check(folder):
    for job in (JOBS["joint"], JOBS["features"], JOBS["train"]):
        there = f"{folder}/none"
        plan = plan_of([*job, *words_of(folder)])
        again = plan_of([*job, *words_of(folder), "--output", there, "--resume"])
        drop = re.compile("^present.*$", re.M)
        ok(drop.sub("", plan) == drop.sub("", again) and not os.path.exists(there),
           f"{job[0]}: {again[-200:]}")


@claim("a dry run reads no row, even for a terabyte of rows that are a hole in a file")
def holes_check(folder):
    with open(f"{folder}/rows.npy", "wb") as f:
        head = {"descr": "<f2", "fortran_order": False, "shape": (1 << 30, 1024)}
        np.lib.format.write_array_header_1_0(f, head)
        f.truncate(f.tell() + (1 << 41))
    words = ["--rows", f"{folder}/rows.npy", "--atoms", 1 << 14, "--device", "cpu"]
    plan = plan_of(["fit", *words, "--minibatch", "none"], ranks=3)
    rank = re.search(r"up to (\d+) a rank", plan)
    ok(rank and abs(int(rank[1]) * 3 / (1 << 30) - 1) < 1e-3 and "less than is needed" in plan and
       plan.count("memory ") == 1, f"all rows: {plan}")
    plan = plan_of(["fit", *words, "--update", "joint"])
    parts = re.search(r"^parts +(\d+) of (\d+) rows.*do not fit", plan, re.M)
    rows = int(re.search(r"^rows +(\d+)", plan, re.M)[1])
    ok(parts and parts[2] == str(1 << 20) and int(parts[1]) == -(-rows // (1 << 20)),
       f"parts by shape: {plan}")
    plan = plan_of(["train", *words])
    ok(figure(plan, "memory") < 8e9, f"a training holds no more of more rows: {plan}")


@claim("ranks divide rows, so with more ranks each needs less memory")
def ranks_check(folder):
    few = ["fit", "--atoms", 64, "--sweeps", 1]
    many = f"{folder}/many.npy"  # more memory than lists and messages take
    np.lib.format.open_memmap(many, "w+", "f2", (1 << 17, 384))
    for name, job, rows in ("joint", few, many), ("features", JOBS["features"], REAL):
        words = [*job, "--rows", rows, "--threads", 1, "--device", "cpu"]
        one, three = (figure(plan_of(words, ranks), "fitting") for ranks in (1, 3))
        ok(three < one, f"{name}: {one} MB, {three} on three ranks")


def taken(folder, job, ranks):
    """The peak memory of the largest rank of a job, in bytes."""
    told = f"{folder}/peaks"
    need(subprocess.run([*launch(ranks), *PEAK, told, SAGITTA, *map(str, job)], capture_output=True,
                        text=True, env=environment(), timeout=300), job[0])
    with open(told) as f:
        took = max(map(int, f))
    os.remove(told)
    return took


@claim("the forecast for a rank of encode, which counts the program itself, is right on 1, 2 and 4 "
       "ranks")
def encode_check(folder):
    if os.environ.get("SANITIZED"):
        skip("sanitizers take memory of their own, which the forecast does not count")
        return
    atoms = np.random.default_rng(1).standard_normal((32768, 384)).astype("f4")
    np.save(f"{folder}/large.npy", atoms / np.linalg.norm(atoms, axis=1)[:, None])
    job = [*ENCODE, "--rows", REAL, "--dictionary", f"{folder}/large.npy", "--threads", 1,
           "--device", "cpu", "--cosine-limit", 0]
    for ranks in 1, 2, 4:
        said = figure(plan_of(job, ranks), "memory")
        took = taken(folder, [*job, "--output", f"{folder}/large-{ranks}"], ranks)
        ok(LEAST * took <= said <= MOST * took,
           f"{ranks} ranks: {1e-6 * said:.0f} MB said, {1e-6 * took:.0f} taken")


@claim("the plans of seven commands name memory needed, memory present and files, as text and as "
       "JSON")
def commands_check(folder):
    made = f"{folder}/made"
    need(sagitta("synth", "--n-rows", 8192, "--columns", 16, "--atoms", 32, "--top-s", 4,
                 "--output", made), "synth")
    words = ["--rows", f"{made}/rows.h5", "--dictionary", f"{made}/dictionary.h5", "--top-s", 4]
    need(sagitta("encode", *words, "--output", f"{folder}/codes"), "encode")
    need(sagitta("encode", *words, "--row-range", "0:", "--output", f"{folder}/parts"), "a part")
    need(sagitta("synth", "--systems", 10, "--output", f"{folder}/systems"), "systems")
    jobs = {"encode": words, "route": words,
            "solve": ["--systems", f"{folder}/systems/systems.h5"],
            "refit": [*words[:4], "--supports", f"{folder}/codes"],
            "fit": [*words[:2], "--atoms", 16], "train": [*words[:2], "--atoms", 16],
            "merge": [f"{folder}/parts/part-000000000000000.h5"]}
    for name, job in jobs.items():
        for ranks in 0, 2:
            plan = plan_of([name, *job], ranks)
            lines = {line.split()[0] for line in plan.splitlines() if line}
            ok(lines >= {"memory", "present", "disk"}, f"{name}, {ranks} ranks: {plan}")
            page = json.loads(plan_of([name, *job, "--json"], ranks))
            memory = page.get("memory_bytes") or page["rank_bytes"].get("most") or sum(
                page["rank_bytes"].values())
            ok(memory > 0 and page["present_bytes"] > memory and page["disk_bytes"] > 0,
               f"{name}, {ranks} ranks: {page}")


@claim("merge forecasts memory within a tenth and bytes within a twentieth, and --dry-run writes "
       "nothing")
def merge_check(folder):
    words = ["--rows", REAL, "--dictionary", f"{folder}/seed/dictionary.h5", "--top-s", 256,
             "--output", f"{folder}/of-merge"]
    need(sagitta("seed", "--rows", REAL, "--atoms", 2048, "--output", f"{folder}/seed"), "seed")
    need(sagitta("encode", *words, "--row-range", "0:"), "a part")
    job = ["merge", f"{folder}/of-merge/part-000000000000000.h5"]
    for ranks in 1, 2, 4:
        plan = plan_of(job, ranks)
        ok(not os.path.exists(f"{folder}/joined"), "nothing is written")
        took = taken(folder, [*job, "--output", f"{folder}/joined"], ranks)
        said = figure(plan, "memory")
        ok(abs(said / took - 1) < 0.1 or os.environ.get("SANITIZED"),
           f"{ranks} ranks: {1e-6 * said:.1f} MB said, {1e-6 * took:.1f} taken")
        has = os.path.getsize(f"{folder}/joined/supports.h5")
        ok(abs(figure(plan, "disk") / has - 1) < 0.05, f"{1e-6 * has} MB: {plan}")
        shutil.rmtree(f"{folder}/joined")


with tempfile.TemporaryDirectory() as place:
    memory_check(place)
    nothing_check(place)
    holes_check(place)
    ranks_check(place)
    encode_check(place)
    commands_check(place)
    merge_check(place)
done_testing()
