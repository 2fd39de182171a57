# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a file of rows four times as large as a rank's memory is encoded within that memory.  A
fit whose rows do not fit into memory takes parts whose size follows from its shape.  It gives the
bytes of a fit with --minibatch of this size, on any number of ranks and in any memory.  A fit with
too little memory is refused, and the message names parts that fit, if there are any."""
import json
import os
import re
import resource
import subprocess
import tempfile

import numpy as np

from tap import FULL, SAGITTA, claim, done_testing, later_wins, ok, sagitta, skip_all

LIMIT = 500 << 20  # bytes of address space, of which a rank without data takes 224 MB
FIT_LIMIT = 390 << 20  # bytes, as LIMIT; there is room for only some of the rows of a fit
FIT_ROWS, FIT_ATOMS, FIT_S = 1 << 19, 64, 4
PART = 1 << 16  # the least power of 4, 65,536 or more, with FIT_S PART >= 256 FIT_ATOMS
# For each number of ranks: MB for the data of a rank, enough for a part, but not for all rows.
ROOMS = {0: (95, 270), 2: (150, 230), 3: (130, 180), 7: (80,)}
GIVEN = ["--minibatch", PART]
P = 512


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def rows_write(path):
    """Write a float16 file with four times LIMIT bytes.  It is mostly a hole, with a few random
    rows at both ends."""
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
    """A fit with this limit of address space for each process.  Arenas of threads take none of
    it."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    os.environ["MALLOC_ARENA_MAX"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
    try:
        return sagitta(*later_wins("fit", "--rows", f"{folder}/fit.npy", "--atoms", FIT_ATOMS,
                                   "--top-s", FIT_S, "--encode-s", FIT_S,
                                   "--rounds", 1, "--sweeps", 1, "--holdout-share", 0.01,
                                   "--threads", 1, "--device", "cpu", "--output", f"{folder}/fit",
                                   "--force", *words), ranks=ranks)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        del os.environ["MALLOC_ARENA_MAX"]


def empty_find(folder, ranks):
    """The address space that a rank without data takes, or None."""
    limit = FIT_LIMIT if ranks < 3 else 340 << 20
    probe = fit(folder, limit, "--minibatch", "none", ranks=ranks)
    present = re.search(r"(\d+) are present", probe.stderr)
    ok(probe.returncode == 71 and present, f"a limit of {limit}: {probe.stderr[-900:]}")
    return present and limit - int(present[1])


def room_find(folder, ranks):
    empty = empty_find(folder, ranks)
    return empty and empty + (ROOMS[ranks][0] << 20)


@claim("a fit without parts, whose rows do not fit in memory, names parts that fit before it "
       "reads any rows")
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
    ok(done.returncode == 71 and "no '--minibatch' fits either" in done.stderr and
       "takes parts" not in done.stderr,  # a part would have more rows than there are
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


@claim("a fit whose rows do not fit takes parts that follow from its shape; the bytes are those "
       "of the same --minibatch, for two sizes of memory and any number of ranks")
def check_taken(folder):
    done = fit(folder, resource.RLIM_INFINITY, *GIVEN, "--output", f"{folder}/given")
    ok(done.returncode == 0 and "parts  " not in done.stderr and
       run_facts(f"{folder}/given") == (PART, "option", str(PART)), done.stderr[-900:])
    for ranks in (0, 2, 3, 7) if FULL else (0, 7):
        empty = empty_find(folder, ranks)
        for room in ROOMS[ranks] if empty else ():
            case = f"{ranks} ranks, {room} MB"
            done = fit(folder, empty + (room << 20), "--output", f"{folder}/own", ranks=ranks)
            ok(done.returncode == 0 and "are present" in done.stderr and
               f"parts   --minibatch {PART}, by the numbers of atoms" in done.stderr and
               f"so the fit takes parts of {PART}, by --atoms" in done.stderr,
               f"{case}: exit {done.returncode} {done.stderr[-900:]}")
            ok(run_facts(f"{folder}/own") == (PART, "shape", str(PART)), f"{case}: its facts")
            same(folder, "own", "given", case)


@claim("with enough memory a new fit has one part; a resumed fit keeps the number of parts that it "
       "began with")
def check_resumed(folder):
    done = fit(folder, resource.RLIM_INFINITY, "--output", f"{folder}/own", "--sweeps", 2,
               "--resume")
    ok(done.returncode == 0 and f"parts   --minibatch {PART}, by the earlier run" in done.stderr
       and run_facts(f"{folder}/own") == (PART, "earlier run", str(PART)),
       f"resumed: {done.stderr[-900:]}")
    done = fit(folder, resource.RLIM_INFINITY, *GIVEN, "--output", f"{folder}/given", "--sweeps", 2)
    ok(done.returncode == 0, done.stderr[-900:])
    same(folder, "own", "given", "resumed")
    done = fit(folder, resource.RLIM_INFINITY, "--sweeps", 0)
    ok(done.returncode == 0 and "parts  " not in done.stderr and
       run_facts(f"{folder}/fit") == (0, "memory", "0"), f"all rows fit: {done.stderr[-900:]}")
    done = fit(folder, resource.RLIM_INFINITY, "--minibatch", "some")
    ok(done.returncode == 2 and "'--minibatch' is 'some'" in done.stderr, done.stderr[-300:])


def taken_and_there(text):
    found = re.search(r"^sagitta fit: (\d+) bytes are needed .* (\d+) are present", text, re.M)
    return [int(found[1]), int(found[2])] if found else [0, 0]


@claim("the plan names the parts; more codes per atom make more of them; parts that do not fit "
       "are refused with their size, and smaller ones that fit are named")
def check_shape(folder):
    empty = empty_find(folder, 0)
    if not empty:
        return
    room = empty + (ROOMS[0][0] << 20)
    for words, part in ([], PART), (["--atoms", 1025], PART << 2), (["--atoms", 1024], PART):
        done = fit(folder, room, *words, "--dry-run")
        ok(done.returncode == 0 and re.search(rf"^parts +\d of {part} rows: a sweep takes one "
                                              "part, since all rows do not fit", done.stdout, re.M),
           f"{words}: exit {done.returncode} {done.stdout[-900:]} {done.stderr[-300:]}")
    small = "no '--minibatch' fits either", "'--update joint --minibatch 4096' holds so many"
    for words, room, said in ([], 50, small[0]), (["--atoms", 1025], 90, small[1]):
        done = fit(folder, empty + (room << 20), *words, "--output", f"{folder}/refused")
        needed, present = taken_and_there(done.stderr)
        ok(done.returncode == 71 and needed > present > 0 and said in done.stderr and
           "mean    rows" not in done.stderr and
           not os.path.exists(f"{folder}/refused/dictionary.h5"),
           f"{words}: exit {done.returncode} {done.stderr[-900:]}")


def check_fit(folder):
    rows = np.random.default_rng(2).standard_normal((2048, 128)).astype(np.float16)
    np.save(f"{folder}/fit.npy", np.tile(rows, (FIT_ROWS // 2048, 1)))
    check_refused(folder)
    check_taken(folder)
    check_resumed(folder)
    check_shape(folder)


def main():
    if os.environ.get("SANITIZED"):
        skip_all("sanitizers reserve terabytes of addresses, which a limit would not allow")
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_write(f"{folder}/rows.npy")
        size = os.path.getsize(f"{folder}/rows.npy")
        ok(size >= 4 * LIMIT, f"{rows} rows, {size >> 20} MB, limit {LIMIT >> 20} MB")
        np.save(f"{folder}/atoms.npy", np.eye(8, P, dtype=np.float32))
        # arenas of threads reserve address space, which is not memory
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
        ok(not os.path.exists(f"{folder}/large"),
           "the message comes before anything is read or written")
        check_fit(folder)
    done_testing()


if __name__ == "__main__":
    main()
