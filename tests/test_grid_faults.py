# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if one rank of a grid lacks memory that it needs, all ranks end with its message and 71,
and nothing is published.  Whichever allocation fails, nothing hangs or crashes."""
import os
import random
import re
import tempfile

import numpy as np

from jobs import FAULTS, job_end, job_ranks, job_start, kill_all, temporaries, wait_until
from tap import claim, done_testing, ok, skip_all

N, P, K, RANKS = 9000, 24, 90, 3
NEVER = 100000000


def encode(folder, *words, rank, n=NEVER, **more):
    job = job_start("encode", "--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/atoms.npy",
                    "--normalize", "--top-s", 6, "--threads", 1, "--device", "cpu", "--block", 700,
                    "--deadline", 20, "--force", "--output", f"{folder}/run", *words, ranks=RANKS,
                    LD_PRELOAD=FAULTS, FAULT=f"own-memory:{n}", FAULT_RANK=str(rank), **more)
    wait_until(lambda: job.poll() is not None or len(job_ranks(job)) == RANKS)
    pids = job_ranks(job)
    code, text = job_end(job, 60)
    if code is None:  # it hangs
        kill_all(pids)
    return code, text


def calls(folder, *words, rank):
    code, text = encode(folder, *words, rank=rank, FAULT_COUNT="1")
    ok(code == 0, f"without a fault: {code} {text[-300:]}")
    os.remove(f"{folder}/run/supports.h5")
    return max(int(n) for n in re.findall(r"fault calls=(\d+)", text))


def check_rounds(folder, rounds, tries):
    words, seen = ("--grid", f"1x{RANKS}", "--rounds", rounds), set()
    with claim(f"{rounds} rounds: if an allocation fails on one rank, all ranks end with its "
               "message"):
        most = {rank: calls(folder, *words, rank=rank) for rank in range(RANKS)}
        for turn in range(tries):
            rank = turn % RANKS
            n = random.randint(1, most[rank])
            code, text = encode(folder, *words, rank=rank, n=n)
            said = re.findall(r"^(?:rank \d: )?sagitta encode: .*", text, re.M)
            left = temporaries(f"{folder}/run", "supports.h5")
            for path in temporaries(f"{folder}/run"):
                os.remove(path)
            there = os.path.exists(f"{folder}/run/supports.h5")
            if code == 0 and there:  # the memory was not essential, such as a copy of some atoms
                os.remove(f"{folder}/run/supports.h5")
                continue
            ok(code == 71 and len(said) == 1 and not there and not left,
               f"rank {rank}, call {n} of {most[rank]}: exit {code}, {said}, {left} {text[-300:]}")
            seen.update(said)
        ok(len(seen) > 2, f"{len(seen)} messages of {tries} faults: {sorted(seen)[:5]}")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    random.seed(int(os.environ.get("SEED", "19")))
    with tempfile.TemporaryDirectory() as folder:
        values = np.random.default_rng(3)
        np.save(f"{folder}/rows.npy", values.standard_normal((N, P)).astype("f4"))
        np.save(f"{folder}/atoms.npy", values.standard_normal((K, P)).astype("f4"))
        for rounds, tries in ((1, 21), (3, 21)):
            check_rounds(folder, rounds, tries)
    done_testing()


main()
