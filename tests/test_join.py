# SPDX-License-Identifier: BSD-3-Clause
"""Claim: jobs that encode ranges of rows in one file (--join), at once or one after another, on any
ranks, killed and resumed, give the bytes of one job; so does `merge` of their folder, killed at any
call and repeated.  merge reads at most two chunks of each range and array.  Ranges are refused if
they overlap, are done or missing, have other inputs or options, or end within a segment of the
file; the message says what to type.  Journals of another file, files that were cut, and jobs that
begin while merge works are refused too."""
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import h5py
import numpy as np

from jobs import FAULTS, environment, job_end, job_ranks, job_start, wait_for, wait_until
from tap import FULL, SAGITTA, claim, done_testing, fails, later_wins, need, ok, sagitta, same, skip

BLOCK = 4096
N, P = 12 * BLOCK + 321, 16
CUT = (0, 2 * BLOCK, 3 * BLOCK, 8 * BLOCK, N)
LOCKED = "*.*[kl]"  # *.lock and *.journal
KILLS = 60 if FULL else 4
PRELOADS = not os.environ.get("SANITIZED")
NONE = "a sanitizer must be preloaded first, so this test cannot preload a library"


def words_of(folder, *more):
    return later_wins("--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/d.h5", "--top-s",
                      4, "--threads", 1, "--block", BLOCK, *more)


def range_of(folder, out, first, end, *more):
    return words_of(folder, "--join", "--row-range", f"{first}:{end}", *more, "--output", out)


def joined(folder, out, first, end, *more, ranks=0, command="encode"):
    return sagitta(command, *range_of(folder, out, first, end, *more), ranks=ranks)


def all_joined(folder, out, *more, cut=CUT, command="encode"):
    for first, end in zip(cut, cut[1:]):
        need(joined(folder, out, first, end, *more, command=command), f"{out} {first}:{end}")


def done(job, what):
    need(job, what)
    return job


def left(out):
    return sorted(os.path.basename(f) for f in glob.glob(f"{out}/*.h5.*"))


def base_of(path):
    """The offset in the file of the first chunk of /supports."""
    with h5py.File(path) as f:
        return min(d.id.get_chunk_info(0).byte_offset for d in f["supports"].values())


def equal(a, b, what):
    same(a, b, what)
    with open(a, "rb") as one, open(b, "rb") as two:
        one.seek(base_of(a))
        two.seek(base_of(a))
        ok(one.read() == two.read(), f"{what}: the bytes behind what HDF5 keeps")
    need(sagitta("verify", b), what)


def whole_of(folder, name, command="encode", *more):
    whole = f"{folder}/whole-{name}.h5"
    if not os.path.exists(whole):
        need(sagitta(command, *words_of(folder, *more), "--output", whole), name)
    return whole


@claim("jobs that encode ranges at once, on any ranks and in any order, give the bytes of one job")
def check_equal(folder):
    jobs = {"encode": ("encode",), "route": ("route",), "center": ("encode", "--center"),
            "rounds": ("encode", "--rounds", 2, "--rho", 0.3),
            "frames": ("encode", "--dictionary", f"{folder}/d3.h5"),
            "nonnegative": ("encode", "--codes", "nonnegative", "--normalize"),
            "zeros": ("encode", "--rows", f"{folder}/zeros.npy")}
    for i, (name, (command, *more)) in enumerate(jobs.items()):
        out, whole = f"{folder}/equal-{name}", whole_of(folder, name, command, *more)
        started = [job_start(command, *range_of(folder, out, first, end, *more), ranks=ranks)
                   for ranks, first, end in zip((0, 2, 3, 1), CUT, CUT[1:])]
        for job in started:
            code, text = job_end(job, 120)
            ok(code == 0 and "`sagitta merge`" in text, f"{name}: {code} {text[-600:]}")
        ok(len(left(out)) == len(CUT), f"{name}: {left(out)}")
        plan = done(sagitta("merge", out, "--dry-run"), name)
        ok("up to 0.0 MB" in plan.stdout, f"{name}: {plan.stdout}")
        need(sagitta("merge", out, ranks=i % 3), name)
        ok(not left(out), f"{name}: {left(out)}")
        equal(whole, f"{out}/supports.h5", name)
    for cut in ((0, N), [*range(0, N, BLOCK), N]):
        out = f"{folder}/equal-{len(cut)}"
        all_joined(folder, out, cut=cut)
        need(sagitta("merge", out, "--rows", f"{folder}/rows.npy", "--output", out), f"{cut}")
        equal(whole_of(folder, "encode"), f"{out}/supports.h5", f"{cut}")


@claim("merge of 8 ranges reads at most two chunks of each array of a range, and writes no row")
def check_reads(folder):
    if not shutil.which("strace"):
        skip("strace is not installed")
        return
    out, told = f"{folder}/reads", f"{folder}/calls"
    all_joined(folder, out, cut=(*range(0, 8 * BLOCK, BLOCK), N))
    traced = subprocess.run(["strace", "-f", "-y", "-o", told, "-e",
                           "trace=read,readv,pread64,preadv,preadv2,write,pwrite64,pwritev,mmap,"
                           "copy_file_range,sendfile", SAGITTA, "merge", out],
                          env=environment(), capture_output=True, text=True)
    if "ptrace" in traced.stderr and traced.returncode:
        skip("ptrace is not allowed here")
        return
    ok(traced.returncode == 0, traced.stderr[-600:])
    equal(whole_of(folder, "encode"), f"{out}/supports.h5", "traced")
    base, ends, reads = base_of(f"{out}/supports.h5"), [], 0
    with open(told) as f:
        for line in f:
            call = re.match(r"\d+ +(\w+)\(\d+<[^>]*supports[.]h5[^>]*(growing|h5)>.*"
                            r", (\d+)\) += (\d+)$", line)
            if call:
                ok(call[1] in ("pread64", "pwrite64"), line)
                end = int(call[3]) + int(call[4])
                is_row = call[1] == "pread64" and int(call[3]) >= base
                reads += is_row
                ends += [] if is_row else [end]
            else:
                ok("growing>" not in line, line)
    ok(len(ends) > 100 and max(ends) <= base, f"{len(ends)} calls, up to {max(ends)} of {base}")
    ok(0 < reads <= 8 * 3 * 2, f"{reads} chunks are read")


@claim("jobs that are killed, and resumed on other ranks, give the same bytes")
def check_kills(folder):
    draw, took = random.Random(3), 1.0
    for trial in range(KILLS):
        out, kills = f"{folder}/kill{trial}", 0
        for first, end in zip(CUT, CUT[1:]):
            for ranks in (2, 1, 3, 0) * 20:
                begun, lock = time.time(), f"{out}/.part-{first:015d}.h5.lock"
                if os.path.exists(lock):
                    os.remove(lock)
                job = job_start("encode", *range_of(folder, out, first, end, "--resume", "--rounds",
                                                    2, "--save-seconds", 1e-9), ranks=ranks)
                wait_until(lambda: os.path.exists(lock) or job.poll() is not None)
                time.sleep(draw.uniform(0, took))
                pids = (job_ranks(job) if ranks else [job.pid]) if job.poll() is None else []
                if kills < 12:
                    for pid in draw.sample(pids, draw.choice((1, len(pids)))) if pids else ():
                        try:
                            os.kill(pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                code, text = job_end(job, 60)
                if code == 0:
                    took = min(took, time.time() - begun)
                    break
                kills += 1
                ok(code is not None and code not in (2, 65, 73), f"{code}: {text[-600:]}")
        need(sagitta("merge", out), f"trial {trial}")
        equal(whole_of(folder, "rounds2", "encode", "--rounds", 2), f"{out}/supports.h5",
              f"trial {trial}, {kills} kills")
        shutil.rmtree(out)


@claim("merge that is killed at calls for its files, and repeated on other ranks, gives the same "
       "bytes")
def check_merge_kills(folder):
    if not PRELOADS:
        skip(NONE)
        return
    whole, made, calls, killed = whole_of(folder, "encode"), f"{folder}/made", 1, 0
    all_joined(folder, made)
    for of, step in (("*supports.h5*.growing", 1 if FULL else 17), ("*.journal", 1 if FULL else 7),
                     ("*supports.h5", 1 if FULL else 2)):
        calls = 1
        while True:
            out = f"{folder}/merge-call"
            shutil.copytree(made, out)
            code, text = job_end(job_start("merge", out, LD_PRELOAD=FAULTS, FAULT=f"signal:{calls}",
                                           FAULT_SIGNAL="9", FAULT_OF=of), 60)
            if code == 0:
                break
            killed += 1
            need(sagitta("merge", out, ranks=killed % 3), f"{of} {calls}: {text[-300:]}")
            ok(not left(out), f"{of} {calls}: {left(out)}")
            equal(whole, f"{out}/supports.h5", f"{of} {calls}")
            shutil.rmtree(out)
            calls += step
        equal(whole, f"{out}/supports.h5", f"{of}: {calls} calls are more than there are")
        shutil.rmtree(out)
    ok(killed > 15, f"{killed}")
    for fault, of in (("write:20", "*.growing"), ("fsync:1", "*.growing"),
                      ("rename:1", "*.growing"), ("read:2", "*.growing"), ("read:9", "*.growing"),
                      ("read:5", "*.journal")):
        out = f"{folder}/merge-fails"
        shutil.copytree(made, out)
        code, text = job_end(job_start("merge", out, LD_PRELOAD=FAULTS, FAULT=fault, FAULT_OF=of),
                             60)
        ok(code == 74, f"{fault} {of}: {code} {text[-300:]}")
        need(sagitta("merge", out), f"{fault} {of}")
        equal(whole, f"{out}/supports.h5", f"{fault} {of}")
        shutil.rmtree(out)
    # as if merge had named the result, and was killed before it removed the journals
    shutil.copytree(made, f"{folder}/merge-left")
    need(sagitta("merge", f"{folder}/merge-left"), "before")
    for path in glob.glob(f"{made}/*.journal"):
        shutil.copy(path, f"{folder}/merge-left")
    fails(joined(folder, f"{folder}/merge-left", 0, 2 * BLOCK), 73, ["with all rows"], "a range")
    fails(sagitta("encode", *words_of(folder, "--force", "--output", f"{folder}/merge-left")), 73,
          ["--join", "`sagitta merge`"], "the whole")
    said = done(sagitta("merge", f"{folder}/merge-left", ranks=2), "again")
    ok("published already" in said.stderr and not left(f"{folder}/merge-left"), said.stderr)
    fails(sagitta("merge", f"{folder}/merge-left"), 73, ["already exists", "nothing is left"],
          "nothing left")
    fails(sagitta("merge", folder), 65, ["no ranges", "part-*.h5"], "nothing at all")


@claim("ranges are refused if they have other options or inputs, overlap, are done, or belong to "
       "a running job")
def check_refused(folder):
    out = f"{folder}/refused"
    need(joined(folder, out, 2 * BLOCK, 4 * BLOCK), "first")
    for said, more in (("top-s 4, this run has --top-s 3", ["--top-s", 3]),
                       ("rho 0, this run has --rho 1", ["--rho", 1]),
                       ("atoms_shape 40 x 1, this run has atoms_shape 41 x 1",
                        ["--dictionary", f"{folder}/d41.h5"]),
                       ("rows_shape", ["--rows", f"{folder}/short.npy"]),
                       ("rows_sample", ["--rows", f"{folder}/zeros.npy"]),
                       ("is not the dictionary", ["--dictionary", f"{folder}/other.h5"])):
        fails(joined(folder, out, 0, 2 * BLOCK, *more), 65, [said], said)
        fails(joined(folder, out, 0, 2 * BLOCK, *more, ranks=2), 65, [said], said)
    fails(joined(folder, out, 2 * BLOCK, 4 * BLOCK, "--resume", "--dictionary",
                 f"{folder}/other.h5"), 65, ["dictionary"], "resumed with another")
    for first, end in ((0, 3 * BLOCK), (3 * BLOCK, 4 * BLOCK), (0, N)):
        fails(joined(folder, out, first, end, ranks=2), 73,
              [f"rows {2 * BLOCK} to {4 * BLOCK - 1}", f"--row-range {2 * BLOCK}:{4 * BLOCK}",
               "overlap"], f"{first}:{end}")
    fails(joined(folder, out, 2 * BLOCK, 4 * BLOCK), 73,
          [f"rows {2 * BLOCK} to {4 * BLOCK - 1} are done already", "--resume", "--force"], "done")
    said = done(joined(folder, out, 2 * BLOCK, 4 * BLOCK, "--resume"), "done, with --resume")
    ok("nothing is left to do" in said.stderr, said.stderr[-600:])
    need(joined(folder, out, 2 * BLOCK, 4 * BLOCK, "--force", ranks=2), "done, with --force")
    ok(len(left(out)) == 2, f"{left(out)}")
    for said, words in ((f"rows 0 to {2 * BLOCK - 1} are in no range", ["merge", out]),
                        (f"--row-range 0:{2 * BLOCK}", ["merge", out])):
        fails(sagitta(*words), 65, [said], said)
        fails(sagitta(*words, ranks=2), 65, [said], said)
    for command in (["encode", *words_of(folder)], ["encode", *words_of(folder, "--force")],
                    ["encode", *words_of(folder, "--resume", "--grid", "2x1")]):
        fails(sagitta(*command, "--output", out, ranks=2), 73,
              ["--join", "`sagitta merge`", "remove it"], command[-1])
    growing = glob.glob(f"{out}/*.growing")[0]
    for name in (growing, glob.glob(f"{out}/*.journal")[0]):
        said = done(sagitta("inspect", name), name)
        ok(f"{2 * BLOCK} of " in said.stdout and "top-s = 4" in said.stdout, said.stdout)
        fails(sagitta("verify", name), 65, ["sagitta inspect"], name)
    need(joined(folder, out, 0, 2 * BLOCK), "the beginning")
    fails(sagitta("merge", out), 65, [f"--join --row-range {4 * BLOCK}:{N}"], "the end is missing")
    os.makedirs(f"{out}/stop")
    open(f"{out}/stop/STOP", "w").close()
    fails(joined(folder, f"{out}/stop", 0, N), 75, ["--resume"], "stopped")
    fails(sagitta("merge", f"{out}/stop"), 65, ["are not done", f"--row-range 0:{N}", "--resume"],
          "stopped")
    os.remove(f"{out}/stop/STOP")
    fails(joined(folder, f"{out}/stop", 0, N), 73, ["of a job that stopped", "--resume"], "stopped")
    need(joined(folder, f"{out}/stop", 0, N, "--resume"), "stopped")
    need(sagitta("merge", f"{out}/stop"), "stopped")
    equal(whole_of(folder, "encode"), f"{out}/stop/supports.h5", "stopped")
    need(joined(folder, out, 4 * BLOCK, N, "--rows", f"{folder}/forged.npy"), "rows of no sample")
    fails(sagitta("merge", out, "--rows", f"{folder}/rows.npy"), 65, ["not all of the rows"],
          "other rows")
    need(joined(folder, out, 4 * BLOCK, N, "--force"), "the right ones")
    need(sagitta("merge", out, "--rows", f"{folder}/rows.npy"), "all")
    equal(whole_of(folder, "encode"), f"{out}/supports.h5", "after all")
    fails(joined(folder, out, 0, 2 * BLOCK), 73, ["with all rows"], "after all")


@claim("if ranges that began at once have different dictionaries, this is found when they are "
       "published")
def check_dictionaries(folder):
    out = f"{folder}/dictionaries"
    need(joined(folder, out, 0, 2 * BLOCK), "one")
    journal, = glob.glob(f"{out}/*.journal")
    os.rename(journal, f"{folder}/kept")
    need(joined(folder, out, 2 * BLOCK, N, "--dictionary", f"{folder}/other.h5"), "other")
    os.rename(f"{folder}/kept", journal)
    fails(sagitta("merge", out), 65, ["dictionary_hash"], "both")
    need(joined(folder, out, 2 * BLOCK, N, "--force"), "again")
    need(sagitta("merge", out), "both")
    equal(whole_of(folder, "encode"), f"{out}/supports.h5", "both")


@claim("ranges with a wrong end, and options that do not go with --join, are refused before any "
       "work")
def check_usage(folder):
    out = f"{folder}/usage"
    need(sagitta("train", "--rows", f"{folder}/few.npy", "--atoms", 12, "--top-s", 2, "--steps", 1,
                 "--batch", 50, "--holdout-share", 0, "--output", f"{folder}/trained"), "encoder")
    for said, more in (("the nearest is 0:4096", ["--row-range", "0:4000"]),
                       ("without '--row-range'", []),
                       ("give the folder", ["--row-range", "0:4096", "--output", "x.h5"]),
                       ("does not go with '--l0'", ["--row-range", "0:4096", "--l0", 3, "--codes",
                                                    "nonnegative"]),
                       ("does not go with '--encoder'", ["--row-range", "0:4096", "--encoder",
                                                         f"{folder}/trained/dictionary.h5"])):
        words = words_of(folder, "--join", "--output", out, *more)
        for option in {"--l0": ["--top-s"], "--encoder": ["--top-s", "--dictionary"]}.get(
                more[2] if len(more) > 2 else "", []):
            words = [w for i, w in enumerate(words) if option not in (w, words[i - 1])]
        fails(sagitta("encode", *words), 2, [said], said)
    fails(sagitta("encode", *words_of(folder, "--join", "--row-range", "0:100", "--rows",
                                      f"{folder}/few.npy", "--output", out)), 2, ["one segment"],
          "few rows")
    ok(not os.path.exists(out), "nothing is made")
    for words in ([out], [folder], ["--parts", folder]):
        fails(sagitta("merge", *words), 2 if words == [out] else 65, [], f"{words}")
    rows, n = f"{folder}/many.npy", 4096 * BLOCK + 5
    np.lib.format.open_memmap(rows, "w+", "f2", (n, 1))
    np.save(f"{folder}/one.npy", np.ones((1, 1), "f4"))
    words = ["--rows", rows, "--dictionary", f"{folder}/one.npy", "--top-s", 1, "--join"]
    for given, nearest in ((f"0:{3 * BLOCK}", f"0:{4 * BLOCK}"), (f"{BLOCK}:", f"{2 * BLOCK}:{n}"),
                           (f"{6 * BLOCK}:{9 * BLOCK}", f"{6 * BLOCK}:{10 * BLOCK}")):
        fails(sagitta("encode", *words, "--row-range", given, "--dry-run"), 2,
              [f"the nearest is {nearest}", f"a multiple of {2 * BLOCK}"], given)
    plan = done(sagitta("encode", *words, "--row-range", f"0:{4 * BLOCK}", "--dry-run"), "plan")
    ok(f"{2 * BLOCK} rows" in plan.stdout, plan.stdout)


@claim("while a job runs, the same range, an overlapping one and merge are refused, also without "
       "locks")
def check_work(folder):
    if not PRELOADS:
        skip(NONE)
        return
    for name, first, end in (("range", 0, 4 * BLOCK), ("overlap", 2 * BLOCK, 6 * BLOCK)):
        out, gate = f"{folder}/work-{name}", f"{folder}/gate-{name}"
        job = job_start("encode", *range_of(folder, out, 0, 4 * BLOCK), LD_PRELOAD=FAULTS,
                        FAULT="gate:12", FAULT_GATE=gate, FAULT_OF="*.growing")
        wait_for(gate)
        fails(joined(folder, out, first, end), 73, ["another run is writing here"
                                                    if name == "range" else "overlap"], name)
        fails(sagitta("merge", out), 73, ["a job is at work on rows 0 to"], "merge")
        need(joined(folder, out, 6 * BLOCK, N), "a range beside it")
        os.remove(gate)
        ok(job_end(job, 60)[0] == 0, "the job itself")
        need(joined(folder, out, 4 * BLOCK, 6 * BLOCK), "the rest")
        need(sagitta("merge", out), name)
        equal(whole_of(folder, "encode"), f"{out}/supports.h5", name)
    out = f"{folder}/work-left"  # a job that recorded nothing does not block others
    code, text = job_end(job_start("encode", *range_of(folder, out, 0, 4 * BLOCK),
                                   LD_PRELOAD=FAULTS, FAULT="signal:12", FAULT_OF="*.growing"), 60)
    ok(code == -signal.SIGKILL and len(left(out)) == 2, f"{code} {left(out)} {text[-300:]}")
    fails(sagitta("merge", out), 65, [f"--row-range 0:{4 * BLOCK}"], "nothing is recorded")
    need(joined(folder, out, 0, 4 * BLOCK, "--resume"), "it is done")
    code, text = job_end(job_start("encode", *range_of(folder, out, 0, 4 * BLOCK, "--force"),
                                   LD_PRELOAD=FAULTS, FAULT="signal:12", FAULT_OF="*.growing"), 60)
    ok(code == -signal.SIGKILL, f"{code} {text[-300:]}")
    fails(sagitta("merge", out), 65, [f"--row-range 0:{4 * BLOCK}"], "--force gives up the record")
    for fault, code in (("lock:1+", 73), ("none:1", 0)):
        is_code, text = job_end(job_start("encode", *range_of(folder, out, 0, 6 * BLOCK),
                                          LD_PRELOAD=FAULTS, FAULT=fault, FAULT_OF=LOCKED), 60)
        ok(is_code == code, f"{fault}: {is_code} {text[-600:]}")
        ok(code == 0 or "if no job is at work there, remove it" in text, f"{fault}: {text[-600:]}")
    is_code, text = job_end(job_start("encode", *range_of(folder, out, 6 * BLOCK, N),
                                      LD_PRELOAD=FAULTS, FAULT="lock:1+"), 60)
    ok(is_code == 0 and "is without a lock" in text, f"no locks: {is_code} {text[-600:]}")
    is_code, text = job_end(job_start("merge", out, LD_PRELOAD=FAULTS, FAULT="lock:1+"), 60)
    ok(is_code == 0 and "is without a lock" in text, f"no locks: {is_code} {text[-600:]}")
    equal(whole_of(folder, "encode"), f"{out}/supports.h5", "no locks")


@claim("if a disk is full or fails, the job ends with 73 or 74, and recorded rows stay")
def check_disks(folder):
    if not PRELOADS:
        skip(NONE)
        return
    out = f"{folder}/disks"
    need(joined(folder, out, 2 * BLOCK, N), "the end")
    for fault, of, code in (("room:1", "*.growing", 73), ("write:5", "*.growing", 74),
                            ("lose:5", "*.growing", 74), ("fsync:1", "*.growing", 74),
                            ("write:3", "*.journal", 74), ("fsync:1", "*.journal", 74),
                            ("read:4", "*.growing", 74)):
        is_code, text = job_end(job_start("encode", *range_of(folder, out, 0, 2 * BLOCK),
                                          LD_PRELOAD=FAULTS, FAULT=fault, FAULT_OF=of), 60)
        ok(is_code in (code, 73), f"{fault} {of}: {is_code} {text[-400:]}")
        fails(sagitta("merge", out), 65, [f"--row-range 0:{2 * BLOCK}"], f"{fault} {of}")
    need(joined(folder, out, 0, 2 * BLOCK), "then")
    need(sagitta("merge", out), "then")
    equal(whole_of(folder, "encode"), f"{out}/supports.h5", "then")


@claim("journals and growing files that are damaged or lost are refused, or encoded again")
def check_damage(folder):
    made = f"{folder}/damage"
    all_joined(folder, made)
    for name, code, said in (("growing", 65, "has lost its growing file"),
                             ("cut", 65, "rows end at byte"), ("record", 65, "are in no range"),
                             ("two", 73, "other options or inputs"), ("renamed", 65, "other rows"),
                             ("overlap", 65, "other rows"), ("result", 73, "already exists")):
        out = f"{folder}/damage-{name}"
        shutil.copytree(made, out)
        growing, journal = glob.glob(f"{out}/*.growing")[0], glob.glob(f"{out}/*.0-*.journal")[0]
        if name == "growing":
            os.remove(growing)
        elif name == "cut":
            os.truncate(growing, os.path.getsize(growing) // 2)
        elif name == "record":
            os.truncate(journal, os.path.getsize(journal) // 2)
        elif name == "two":
            shutil.copy(journal, f"{out}/supports.h5.0123456789abcdef.0-{2 * BLOCK}.journal")
        elif name == "renamed":
            os.rename(journal, journal.replace(f".0-{2 * BLOCK}.", f".0-{BLOCK}."))
        elif name == "overlap":
            shutil.copy(journal, journal.replace(f".0-{2 * BLOCK}.", f".0-{3 * BLOCK}."))
        else:
            shutil.copy(whole_of(folder, "encode"), f"{out}/supports.h5")
        fails(sagitta("merge", out), code, [said], name)
        if name == "record":
            need(joined(folder, out, 0, 2 * BLOCK), "again")
            need(sagitta("merge", out), "again")
            equal(whole_of(folder, "encode"), f"{out}/supports.h5", "again")


@claim("a job that begins while merge works is refused, and the published result does not change")
def check_merge_at_work(folder):
    if not PRELOADS:
        skip(NONE)
        return
    whole, made, gate = whole_of(folder, "encode"), f"{folder}/at-work", f"{folder}/gate-at-work"
    all_joined(folder, made)
    for call, more in ((8, "--resume"), (236, "--resume"), (236, "--force"), (60, "--force")):
        out = f"{folder}/at-work-{call}{more}"
        shutil.copytree(made, out)
        merge = job_start("merge", out, LD_PRELOAD=FAULTS, FAULT=f"gate:{call}", FAULT_GATE=gate,
                          FAULT_OF="*.growing")
        ok(wait_until(lambda: os.path.exists(gate) or merge.poll() is not None) is None or
           os.path.exists(gate), f"{call}: merge works")
        fails(joined(folder, out, 0, 2 * BLOCK, more), 73, ["another run is writing here"], more)
        fails(joined(folder, out, 0, BLOCK, more), 73, [], "a range without a journal")
        os.remove(gate)
        code, text = job_end(merge, 60)
        ok(code == 0 and not left(out), f"{call} {more}: {code} {text[-600:]}")
        equal(whole, f"{out}/supports.h5", f"{call} {more}")
    for call in (1, 2, 3, 9):
        out = f"{folder}/at-job-{call}"
        shutil.copytree(made, out)
        job = job_start("encode", *range_of(folder, out, 0, 2 * BLOCK, "--force"),
                        LD_PRELOAD=FAULTS, FAULT=f"gate:{call}", FAULT_GATE=gate,
                        FAULT_OF="*.growing")
        wait_for(gate)
        fails(sagitta("merge", out), 73, ["locked"], f"{call}")
        os.remove(gate)
        code, text = job_end(job, 60)
        ok(code == 0, f"{call}: {code} {text[-600:]}")
        need(sagitta("merge", f"{out}/", "--output", out), f"{call}")  # the same folder
        equal(whole, f"{out}/supports.h5", f"{call}")


@claim("jobs and merge refuse journals of another growing file, or of one that was cut")
def check_lost(folder):
    made, other, begun = f"{folder}/lost", f"{folder}/theirs", f"{folder}/begun"
    last, end, gone = (8 * BLOCK, N), "not what was recorded", "has lost its growing file"
    all_joined(folder, made)
    all_joined(folder, other, "--dictionary", f"{folder}/other.h5")
    need(joined(folder, begun, 2 * BLOCK, 3 * BLOCK), "one range")
    grows, = (os.path.basename(f) for f in glob.glob(f"{made}/*.growing"))
    for name in ("gone", "cut", "other", "made anew"):
        out = f"{folder}/lost-{name}"
        shutil.copytree(made, out)
        path = f"{out}/{grows}"
        if name == "gone":
            os.remove(path)
        elif name == "cut":
            size = os.path.getsize(path)
            os.truncate(path, size - size // 8)
            os.truncate(path, size)
        else:
            shutil.copy(f"{other if name == 'other' else begun}/{grows}", path)
        said = {"gone": gone, "cut": end}.get(name, "another file")
        fails(joined(folder, out, *last, "--resume"), 65, [said], f"{name}: a done range")
        fails(sagitta("merge", out), 65, [said], f"{name}: merge")
        fails(sagitta("merge", out, ranks=2), 65, [said], f"{name}: merge")
        if name == "cut":
            continue
        before = left(out)
        fails(joined(folder, out, *last, "--force"), 65, [said], f"{name}: again")
        os.remove(glob.glob(f"{out}/*.0-*.journal")[0])
        fails(joined(folder, out, 0, 2 * BLOCK), 65, [said], f"{name}: without journal")
        ok(len(left(out)) == len(before) - 1, f"{name}: {left(out)}")
        fails(sagitta("merge", out), 65, [], f"{name}: merge")
    if not PRELOADS:
        skip(NONE)
        return
    for of in ("growing", "journal"):
        out, gate = f"{folder}/lost-work-{of}", f"{folder}/gate-lost"
        job = job_start("encode", *range_of(folder, out, 0, 2 * BLOCK), LD_PRELOAD=FAULTS,
                        FAULT="gate:8", FAULT_GATE=gate, FAULT_OF="*.growing")
        wait_for(gate)
        os.remove(glob.glob(f"{out}/*.{of}")[0])
        if of == "growing":
            need(joined(folder, out, 2 * BLOCK, N), "another makes it anew")
        os.remove(gate)
        code, text = job_end(job, 60)
        ok(code == 74 and "was removed or replaced" in text, f"{of}: {code} {text[-600:]}")
        fails(sagitta("merge", out), 65, [], of)


@claim("jobs that begin at once do not take each other's growing file for a file of all rows")
def check_begin(folder):
    if not PRELOADS:
        skip(NONE)
        return
    for call in range(1, 9):
        out, gate = f"{folder}/begin{call}", f"{folder}/gate-begin"
        job = job_start("encode", *range_of(folder, out, 0, 2 * BLOCK), LD_PRELOAD=FAULTS,
                        FAULT=f"gate:{call}", FAULT_GATE=gate, FAULT_OF="*.growing*")
        wait_for(gate)
        need(joined(folder, out, 2 * BLOCK, N), f"{call}: the other one")
        os.remove(gate)
        code, text = job_end(job, 60)
        ok(code == 0, f"{call}: {code} {text[-600:]}")
        need(sagitta("merge", out), f"{call}")
        equal(whole_of(folder, "encode"), f"{out}/supports.h5", f"{call}")


@claim("a job that fails before it records anything leaves nothing that makes others fail")
def check_leaves(folder):
    if not PRELOADS:
        skip(NONE)
        return
    out, gate = f"{folder}/leaves", f"{folder}/gate-leaves"
    other = range_of(folder, out, 0, 2 * BLOCK, "--rho", 0.5)
    for fault in ("room:1", "write:2"):
        code, text = job_end(job_start("encode", *other, LD_PRELOAD=FAULTS, FAULT=fault,
                                       FAULT_OF="*.growing"), 60)
        ok(code in (73, 74) and not left(out), f"{fault}: {code} {left(out)} {text[-600:]}")
    code, text = job_end(job_start("encode", *other, LD_PRELOAD=FAULTS, FAULT="signal:8",
                                   FAULT_OF="*.growing"), 60)
    for journal in glob.glob(f"{out}/*.journal"):
        os.remove(journal)
    ok(code == -signal.SIGKILL and len(left(out)) == 1, f"{code} {left(out)}")
    need(joined(folder, out, 2 * BLOCK, N), "of other options, beside a file without journals")
    for path in glob.glob(f"{out}/*.growing"):
        ranges = [[2 * BLOCK, N - 2 * BLOCK]] if glob.glob(f"{path[:-8]}.*.journal") else []
        said = done(sagitta("inspect", path), path)
        ok(said.stdout.count("are recorded") == len(ranges), f"{ranges}: {said.stdout}")
        page = json.loads(done(sagitta("inspect", path, "--json"), path).stdout)["files"][0]
        ok([[r["first_row"], r["rows_done"]] for r in page["ranges"]] == ranges, f"{page}")
    os.remove(f"{out}/{[f for f in left(out) if f.endswith('growing')][0]}")
    shutil.rmtree(out)
    for call, of in ((1, "*.growing"), (2, "*.growing"), (1, "*.journal"), (2, "*.journal")):
        job = job_start("encode", *other, LD_PRELOAD=FAULTS, FAULT=f"gate:{call}", FAULT_GATE=gate,
                        FAULT_OF=of)
        wait_for(gate)
        beside = joined(folder, out, 2 * BLOCK, N)
        ok(beside.returncode in (0, 65, 73), f"{call} {of}: {beside.stderr[-600:]}")
        os.remove(gate)
        code, text = job_end(job, 60)
        ok(code in (0, 65, 73) and (code == 0) != (beside.returncode == 0),
           f"{call} {of}: {code}, {beside.returncode} {text[-600:]}")
        rest = (2 * BLOCK, N, "--rho", 0.5) if code == 0 else (0, 2 * BLOCK)
        need(joined(folder, out, *rest), f"{call} {of}: the rest")
        need(sagitta("merge", out), f"{call} {of}")
        ok(not left(out), f"{call} {of}: {left(out)}")
        shutil.rmtree(out)


with tempfile.TemporaryDirectory() as where:
    values_drawn = np.random.default_rng(5).standard_normal((N, P)).astype("f4")
    np.save(f"{where}/rows.npy", values_drawn)
    np.save(f"{where}/short.npy", values_drawn[:-1])
    np.save(f"{where}/few.npy", values_drawn[:100])
    forged = values_drawn.copy()
    forged[7 * BLOCK + 3, 1] += 1  # in a row of no sample
    np.save(f"{where}/forged.npy", forged)
    values_drawn[BLOCK:5 * BLOCK] = 0
    np.save(f"{where}/zeros.npy", values_drawn)
    for file_name, atoms, seed in (("d", 40, 0), ("other", 40, 1), ("d41", 41, 0)):
        need(sagitta("seed", "--rows", f"{where}/rows.npy", "--atoms", atoms, "--seed", seed,
                     "--output", f"{where}/{file_name}.h5"), file_name)
    need(sagitta("synth", "--n-rows", 10, "--columns", P, "--atoms", 12, "--frame", 3, "--output",
                 f"{where}/frames"), "frames")
    os.rename(f"{where}/frames/dictionary.h5", f"{where}/d3.h5")
    check_equal(where)
    check_reads(where)
    check_kills(where)
    check_merge_kills(where)
    check_refused(where)
    check_dictionaries(where)
    check_usage(where)
    check_work(where)
    check_disks(where)
    check_damage(where)
    check_merge_at_work(where)
    check_lost(where)
    check_begin(where)
    check_leaves(where)
done_testing()
