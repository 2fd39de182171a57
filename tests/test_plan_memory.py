# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the memory that --dry-run prints is within a tenth of the peak of the largest rank, for
jobs whose data are larger than the program, on 1, 2 and 4 ranks.  Memory that the ranks of a node
share counts once.

ONLY names jobs to try, on all these numbers of ranks:
  ONLY=refit make check TESTS=tests/test_plan_memory.py"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from jobs import environment
from tap import FULL, SAGITTA, claim, done_testing, launch, need, ok, sagitta, skip_all

# Runs a program, and appends two peaks in bytes to a file: of its memory, and of its shared memory,
# which is sampled.
PEAK = [sys.executable, "-c", """import os, sys, time
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
shared = 0
while True:
    pid, status, usage = os.wait4(child, os.WNOHANG)
    if pid:
        break
    try:
        with open(f"/proc/{child}/status") as f:
            for line in f:
                if line.startswith("RssShmem:"):
                    shared = max(shared, 1024 * int(line.split()[1]))
    except (FileNotFoundError, ProcessLookupError):
        pass
    time.sleep(0.02)
with open(sys.argv[1], "a") as f:
    f.write(f"{1024 * usage.ru_maxrss} {shared}\\n")
sys.exit(os.waitstatus_to_exitcode(status))"""]
RANKS = 1, 2, 4
ONLY = os.environ.get("ONLY", "")  # jobs whose names have this text, on all RANKS
LEAST, MOST = 0.9, 1.1


def rows_write(path, n, p):
    """Write rows in float16.  If there are many values, some rows are repeated."""
    few = np.random.default_rng(n + p).standard_normal((n if n * p <= 1 << 23 else 4096, p))
    rows = np.lib.format.open_memmap(path, "w+", "f2", (n, p))
    for i in range(0, n, len(few)):
        rows[i:i + len(few)] = few[:n - i]
    return path


def atoms_write(path, k, p):
    atoms = np.random.default_rng(k + p).standard_normal((k, p), dtype="f4")
    np.save(path, atoms / np.linalg.norm(atoms, axis=1)[:, None])
    return path


class Files:
    """Inputs, made once each."""

    def __init__(self, folder):
        self.folder = folder

    def at(self, name, make):
        path = f"{self.folder}/{name}"
        if not os.path.exists(path):
            make(path)
        return path

    def rows(self, n, p):
        return self.at(f"rows-{n}-{p}.npy", lambda path: rows_write(path, n, p))

    def atoms(self, k, p):
        return self.at(f"atoms-{k}-{p}.npy", lambda path: atoms_write(path, k, p))

    def systems(self, *words):
        folder = self.at("systems" + "-".join(map(str, words)), lambda path: need(
            sagitta("synth", *words, "--output", path), "systems"))
        return f"{folder}/systems.h5"

    def encoded(self, n, p, k, s, *words):
        """The supports of rows, or of a part of them."""
        return self.at(f"codes-{n}-{p}-{k}-{s}{len(words)}", lambda path: need(
            sagitta("encode", "--rows", self.rows(n, p), "--dictionary", self.atoms(k, p),
                    "--top-s", s, "--cosine-limit", 0, "--output", path, *words), "encode"))


def encode(n, p, k, *words, command="encode"):
    return lambda f, ranks: [command, "--rows", f.rows(n, p), "--dictionary", f.atoms(k, p),
                             "--cosine-limit", 0, *words]


def solve(*words):
    return lambda f, ranks: ["solve", "--systems", f.systems(*words)]


def refit(n, p, k, s, *words):
    return lambda f, ranks: ["refit", "--rows", f.rows(n * ranks, p), "--dictionary",
                             f.atoms(k, p), "--supports", f.encoded(n * ranks, p, k, s),
                             "--sweeps", 1, "--cosine-limit", 0, *words]


def refit_held(n, p, k, s, held):
    return lambda f, ranks: [*refit(n, p, k, s)(f, ranks), "--holdout", f.rows(held, p)]


FIT = ["--find", "codes", "--top-s", 8, "--rounds", 1, "--sweeps", 1]


def fit(n, p, *words, command="fit"):
    return lambda f, ranks: [command, "--rows", f.rows(n * ranks, p), *words]


def train(n, p, *words):
    return fit(n, p, *words, command="train")


def merge(n, p, k, s):
    return lambda f, ranks: ["merge", f.encoded(n, p, k, s, "--row-range", "0:") +
                             "/part-000000000000000.h5"]


# Jobs, and the numbers of ranks that are tried without CHECK_FULL.
JOBS = {
    "encode, a dictionary": (encode(4096, 1024, 65536, "--top-s", 16), (2,)),
    "encode, fetched atoms": (encode(16384, 2048, 16384, "--top-s", 64, "--grid", "1x"), ()),
    "encode, long blocks": (encode(65536, 512, 2048, "--top-s", 64, "--block", 16384), (2,)),
    "encode, rounds": (encode(16384, 1024, 8192, "--top-s", 8, "--rounds", 2), ()),
    "route": (encode(4096, 1024, 65536, "--top-s", 16, command="route"), ()),
    "solve": (solve("--systems", 4096, "--system-rows", 512, "--frame", 4), (2,)),
    "solve, few": (solve("--systems", 20, "--system-rows", 131072, "--frame", 4), ()),
    "refit": (refit(32768, 1024, 512, 8), ()),
    "refit, held out": (refit_held(32768, 1024, 512, 8, 8192), (1,)),
    "fit, joint": (fit(32768, 1024, "--atoms", 512, "--update", "joint", *FIT), (2,)),
    "fit, atoms": (fit(32768, 1024, "--atoms", 256, "--update", "atoms", *FIT), ()),
    "fit, many atoms": (fit(16384, 128, "--atoms", 8192, "--update", "joint", *FIT), ()),
    "fit, parts": (fit(32768, 512, "--atoms", 4096, "--minibatch", 16384, *FIT), (1,)),
    "fit, features": (fit(16384, 512, "--atoms", 512, "--find", "features", "--l0", 8), ()),
    "train": (train(8192, 1024, "--atoms", 16384, "--steps", 8, "--save-seconds", 1), (1,)),
    "train, batches": (train(32768, 1024, "--atoms", 2048, "--steps", 2, "--batch", 16384), ()),
    "merge": (merge(65536, 64, 2048, 256), (2,)),
}


def taken(folder, job, ranks):
    """The peak memory of the largest rank in bytes; shared memory counts once."""
    told = f"{folder}/peaks"
    done = subprocess.run([*launch(ranks), *PEAK, told, SAGITTA, *map(str, job)],
                          capture_output=True, text=True, env=environment(), timeout=600)
    ok(done.returncode in (0, 75), f"{job[0]}: {done.returncode} {done.stderr[-400:]}")
    with open(told) as f:
        peaks = [tuple(map(int, line.split())) for line in f]
    os.remove(told)
    return max(all_of - shared * (ranks - 1) // ranks for all_of, shared in peaks)


def said(job, ranks):
    done = sagitta(*job, "--dry-run", "--json", ranks=ranks)
    need(done, f"{job[0]} --dry-run")
    page = json.loads(done.stdout)
    parts = page.get("rank_bytes", {})
    return page.get("memory_bytes") or parts.get("most") or sum(parts.values()), parts


@claim("the forecast of memory is within a tenth of what the largest rank takes")
def jobs_check(folder):
    files = Files(folder)
    for name, (words, few) in JOBS.items():
        for ranks in RANKS if FULL or ONLY else few:
            if ONLY not in name and ONLY:
                continue
            job = [f"1x{ranks}" if word == "1x" else word for word in words(files, ranks)]
            if job[0] != "merge":
                job += ["--threads", 1, "--device", "cpu"]
            told, parts = said(job, ranks)
            took = taken(folder, [*job, "--output", f"{folder}/out"], ranks)
            shutil.rmtree(f"{folder}/out", ignore_errors=True)
            text = (f"{name}, {ranks} ranks: {1e-6 * told:.0f} MB said, {1e-6 * took:.0f} taken, "
                    f"ratio {told / took:.3f}")
            print(f"# {text} {parts if ONLY else ''}", flush=True)
            ok(LEAST <= told / took <= MOST, text)


def main():
    if os.environ.get("SANITIZED"):
        skip_all("sanitizers take memory of their own, which the forecast does not count")
    with tempfile.TemporaryDirectory() as folder:
        jobs_check(folder)
    done_testing()


main()
