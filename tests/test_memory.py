# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a rows file four times as large as a rank's memory is encoded within that memory.  A fit
whose rows do not fit into memory chooses parts that do, with the bytes of the same --minibatch; if
it may not choose parts, it names some."""
import json
import os
import re
import resource
import subprocess
import tempfile

import numpy as np

from tap import FULL, SAGITTA, claim, done_testing, later_wins, ok, sagitta, skip_all

LIMIT = 500 << 20  # of address space, of which an empty rank takes 224 MB
FIT_LIMIT = 390 << 20  # and some of the rows of a fit the rest
P = 512


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def rows_write(path):
    """A float16 file of four limits, mostly a hole: a few random rows at both ends."""
    rows = 4 * LIMIT // (2 * P)
    random = np.random.default_rng(1).standard_normal((64, P)).astype(np.float16)
    header = np.lib.format.header_data_from_array_1_0(random)
    header["shape"] = (rows, P)
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, header)
        start = f.tell()
        f.write(random.tobytes())
        f.seek(start + (rows - 64) * P * 2)
        f.write(random.tobytes())
    return rows


def fit(folder, room, *words, ranks=0):
    """A fit with so much address space for each process, of which arenas of threads take none."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    os.environ["MALLOC_ARENA_MAX"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
    try:
        return sagitta(*later_wins("fit", "--rows", f"{folder}/fit.npy", "--atoms", 64, "--top-s",
                                   4, "--rounds", 1, "--sweeps", 1, "--holdout-share", 0.01,
                                   "--threads", 1, "--device", "cpu", "--output", f"{folder}/fit",
                                   "--force", *words), ranks=ranks)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        del os.environ["MALLOC_ARENA_MAX"]


def room_find(folder, ranks):
    """Address space in which some of the rows fit beside what an empty rank takes, or None."""
    limit, left = (FIT_LIMIT, 150 << 20) if ranks < 3 else (340 << 20, 130 << 20)
    probe = fit(folder, limit, "--minibatch", "none", ranks=ranks)
    present = re.search(r"(\d+) are present", probe.stderr)
    ok(probe.returncode == 71 and present, f"a limit of {limit}: {probe.stderr[-900:]}")
    return present and limit - int(present[1]) + left


@claim("a fit that is to take no parts, and whose rows do not fit in memory, names parts that do, "
       "before it reads any")
def check_refused(folder):
    cases = (0, "auto", "none"), (0, "atoms", "auto"), (2, "auto", "0")
    for ranks, update, parts in cases if FULL else cases[1:]:
        room = room_find(folder, ranks)
        if not room:
            return
        done = fit(folder, room, "--update", update, "--minibatch", parts, ranks=ranks)
        named = re.search(r"'--update joint --minibatch (\d+)' holds so many", done.stderr)
        if not ok(done.returncode == 71 and named and "mean    rows" not in done.stderr,
                  f"{update}, {ranks} ranks: exit {done.returncode} {done.stderr[-900:]}"):
            continue
        part = int(named[1])
        words = ["--update", "joint", "--minibatch"]
        done = fit(folder, room, *words, part, ranks=ranks)
        ok(done.returncode == 0, f"--minibatch {part}: {done.returncode} {done.stderr[-900:]}")
        done = fit(folder, room, *words, 16 * part, ranks=ranks)
        ok(done.returncode == 71 and f"--minibatch {part}'" in done.stderr,
           f"--minibatch {16 * part}: {done.returncode} {done.stderr[-900:]}")
    done = fit(folder, room, "--atoms", 5000)
    ok(done.returncode == 71 and "no '--minibatch' fits either" in done.stderr,
       f"exit {done.returncode} {done.stderr[-900:]}")


def run_facts(folder):
    with open(f"{folder}/run.json", encoding="utf-8") as f:
        page = json.load(f)
    with open(f"{folder}/used.in", encoding="utf-8") as f:
        deck = dict(line.rstrip("\n").split(" = ", 1) for line in f if " = " in line)
    return page["minibatch"], page["minibatch_from"], deck["minibatch"]


def same(folder, one, two, text):
    for name in "dictionary.h5", "state.h5", "supports.h5":
        done = sagitta("diff", f"{folder}/{one}/{name}", f"{folder}/{two}/{name}")
        ok(done.returncode == 0, f"{text}, {name}: {done.stdout[-300:]} {done.stderr[-300:]}")


@claim("a fit whose rows do not fit takes parts by itself: the bytes are those of the same "
       "--minibatch given, on any number of ranks, and a resumed run keeps to them")
def check_taken(folder):
    for ranks in (0, 2, 3) if FULL else (2,):
        room, own = room_find(folder, ranks), f"own-{ranks}"
        if not room:
            return
        done = fit(folder, room, "--output", f"{folder}/{own}", ranks=ranks)
        said = re.search(r"parts   --minibatch (\d+), by the memory at hand", done.stderr)
        if not ok(done.returncode == 0 and said and "which memory chose" in done.stderr and
                  "are present" in done.stderr, f"{ranks} ranks: {done.stderr[-900:]}"):
            continue
        part = int(said[1])
        ok(run_facts(f"{folder}/{own}") == (part, "memory", str(part)) and
           bin(part).count("1") == 1 and bin(part).count("0") % 2 == 1,
           f"{ranks} ranks: {run_facts(f'{folder}/{own}')}, a power of 4")
        given = [*("--minibatch", part, "--output", f"{folder}/given")]
        done = fit(folder, resource.RLIM_INFINITY, *given)
        ok(done.returncode == 0 and "by the memory" not in done.stderr and
           run_facts(f"{folder}/given") == (part, "option", str(part)),
           f"--minibatch {part}: {done.stderr[-900:]}")
        same(folder, own, "given", f"{ranks} ranks, parts of {part}")
        if ranks != 2:
            continue
        # With all memory: a run anew has one part, a resumed one those that it began with.
        done = fit(folder, resource.RLIM_INFINITY, "--output", f"{folder}/{own}", "--resume",
                   "--sweeps", 2)
        ok(done.returncode == 0 and f"parts   --minibatch {part}, by the earlier run" in done.stderr
           and run_facts(f"{folder}/{own}") == (part, "earlier run", str(part)),
           f"resumed: {done.stderr[-900:]}")
        done = fit(folder, resource.RLIM_INFINITY, *given, "--sweeps", 2, "--resume")
        ok(done.returncode == 0, f"resumed, --minibatch {part}: {done.stderr[-900:]}")
        same(folder, own, "given", f"{ranks} ranks, resumed")
    done = fit(folder, resource.RLIM_INFINITY, "--sweeps", 0)
    ok(done.returncode == 0 and "parts  " not in done.stderr and
       run_facts(f"{folder}/fit") == (0, "memory", "0"), f"all rows fit: {done.stderr[-900:]}")
    done = fit(folder, resource.RLIM_INFINITY, "--minibatch", "some")
    ok(done.returncode == 2 and "'--minibatch' is 'some'" in done.stderr, done.stderr[-300:])


def check_fit(folder):
    rows = np.random.default_rng(2).standard_normal((2048, 256)).astype(np.float16)
    np.save(f"{folder}/fit.npy", np.tile(rows, (96, 1)))
    check_refused(folder)
    check_taken(folder)


def main():
    if os.environ.get("SANITIZED"):
        skip_all("address sanitizers reserve terabytes of address space")
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_write(f"{folder}/rows.npy")
        size = os.path.getsize(f"{folder}/rows.npy")
        ok(size >= 4 * LIMIT, f"{rows} rows, {size >> 20} MB, limit {LIMIT >> 20} MB")
        np.save(f"{folder}/atoms.npy", np.eye(8, P, dtype=np.float32))
        # address space that arenas of threads reserve is no memory
        environment = dict(os.environ, OMP_NUM_THREADS="1", MALLOC_ARENA_MAX="1")
        done = subprocess.run(
            [SAGITTA, "encode", "--rows", f"{folder}/rows.npy", "--dictionary",
                f"{folder}/atoms.npy",
             "--top-s", "1", "--threads", "1", "--output", f"{folder}/run"],
            capture_output=True, text=True, env=environment, preexec_fn=limited)
        ok(done.returncode == 0,
            f"exit {done.returncode} {done.stderr[-300:] if done.returncode else ''}")
        small = subprocess.run(
            [SAGITTA, "encode", "--rows", f"{folder}/rows.npy", "--dictionary",
                f"{folder}/atoms.npy",
             "--top-s", "8", "--block", "1000000", "--output", f"{folder}/large"],
            capture_output=True, text=True, env=environment, preexec_fn=limited)
        ok(small.returncode == 71 and "bytes are needed (dictionary" in small.stderr
           and "are present for each rank" in small.stderr,
           f"a block that does not fit is refused: exit {small.returncode}")
        ok(not os.path.exists(f"{folder}/large"), "before anything is read or written")
        check_fit(folder)
    done_testing()


main()
