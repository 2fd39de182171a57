# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a result that all ranks write grows in its own file, with a journal.  Stopped, or killed
by SIGKILL at any moment, it is resumed in place on any ranks and grids without copies, and the
bytes are those of one run.  An incomplete record is ignored.  A damaged or missing file, or one of
another job, is refused.  Rows are read again only if their files changed."""
import glob
import hashlib
import json
import os
import random
import re
import shutil
import signal
import struct
import tempfile
import time

import h5py
import numpy as np

from jobs import FAULTS, job_end, job_ranks, job_start, temporaries, wait_until
from tap import FULL, claim, done_testing, fails, later_wins, need, ok, sagitta, same, skip

BLOCK = 4096
N, P = 12 * BLOCK + 321, 16
KILLS = 200 if FULL else 6
PAGE = 1 << 16


def words_of(folder, *more):
    return later_wins("--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/d.h5", "--top-s",
                      4, "--threads", 1, "--block", BLOCK, *more)


def left(out):
    """The journal and the growing file of an unfinished job."""
    journals, growing = glob.glob(f"{out}/*.journal"), glob.glob(f"{out}/*.growing")
    assert len(journals) <= 1 and len(growing) == len(journals), (journals, growing)
    return (journals[0], growing[0]) if journals else (None, None)


def stopped(folder, out, *more, ranks=2, command="encode"):
    """Run a job beside a file STOP, so that it stops as soon as it has something to save."""
    os.makedirs(out, exist_ok=True)
    open(f"{out}/STOP", "w").close()
    fails(sagitta(command, *words_of(folder, "--grid", f"{ranks}x1", *more, "--output",
                                     f"{out}/x.h5"), ranks=ranks), 75, ["--resume"], out)
    os.remove(f"{out}/STOP")
    return left(out)


def resumed(folder, out, *more, ranks=3, grid=None, command="encode"):
    return sagitta(command, *words_of(folder, "--grid", grid or f"{ranks}x1", *more, "--resume",
                                      "--output", f"{out}/x.h5"), ranks=ranks)


def places(path):
    """The places of a result's chunks, and their bytes."""
    with h5py.File(path) as f, open(path, "rb") as raw:
        data = raw.read()
        all_chunks = []
        for name, d in sorted(f["supports"].items()):
            for i in range(d.id.get_num_chunks()):
                c = d.id.get_chunk_info(i)
                bytes_of = data[c.byte_offset:c.byte_offset + c.size]
                all_chunks.append((name, i, c.byte_offset, hashlib.sha256(bytes_of).hexdigest()))
        return all_chunks, len(data)


def equal(a, b, what):
    same(a, b, what)
    ok(places(a) == places(b), f"{what}: chunks, where they are, and the length")
    need(sagitta("verify", b), what)


@claim("a job stopped again and again, and resumed on other ranks and grids, has one file and the "
       "bytes of one run")
def check_stops(folder):
    jobs = {"encode": ("encode", []), "route": ("route", []), "center": ("encode", ["--center"]),
            "rounds": ("encode", ["--rounds", 2]),
            "frames": ("encode", ["--dictionary", f"{folder}/d3.h5"]),
            "range": ("encode", ["--row-range", f"{BLOCK}:{11 * BLOCK}"]),
            "zeros": ("encode", ["--rows", f"{folder}/zeros.npy"])}
    for name, (command, more) in jobs.items():
        whole, out = f"{folder}/whole-{name}.h5", f"{folder}/stops-{name}"
        need(sagitta(command, *words_of(folder, *more), "--output", whole), name)
        growing = stopped(folder, out, *more, command=command)[1]
        ok(growing and not os.path.exists(f"{out}/x.h5"), f"{name}: {os.listdir(out)}")
        inode = os.stat(growing).st_ino
        open(f"{out}/STOP", "w").close()
        for ranks, grid in ((3, "3x1"), (1, "1x1"), (2, "1x2")):
            fails(resumed(folder, out, *more, ranks=ranks, grid=grid, command=command), 75,
                  ["--resume"], f"{name} {grid}")
            ok(left(out)[1] == growing, f"{name} {grid}: {os.listdir(out)}")
        os.remove(f"{out}/STOP")
        done = resumed(folder, out, *more, ranks=2, command=command)
        need(done, name)
        ok("are of these very files" in done.stderr, f"{name}: {done.stderr[-800:]}")
        ok(os.stat(f"{out}/x.h5").st_ino == inode, f"{name}: the file was copied")
        ok(left(out) == (None, None) and not temporaries(out), f"{name}: {os.listdir(out)}")
        equal(whole, f"{out}/x.h5", name)


@claim("a job killed at random moments, and resumed on other ranks, has the bytes of one run")
def check_kills(folder):
    whole, draw, kills = f"{folder}/whole-rounds.h5", random.Random(7), 0
    took, trial = 1.0, 0
    while kills < KILLS:
        out, trial = f"{folder}/kill{trial}", trial + 1
        for ranks in (2, 3, 1, 4) * 50:
            begun = time.time()
            more = ("--rounds", 2, "--save-seconds", 1e-9, "--resume", "--output", f"{out}/x.h5")
            job = job_start("encode", *words_of(folder, "--grid", f"{ranks}x1", *more),
                            ranks=ranks)
            wait_until(lambda: os.path.exists(f"{out}/.x.h5.lock") or job.poll() is not None)
            time.sleep(draw.uniform(0, took))
            pids = job_ranks(job)
            for pid in draw.sample(pids, draw.choice((1, len(pids)))) if pids else ():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            code, text = job_end(job, 60)
            for path in temporaries(out):
                os.remove(path)
            if code == 0:
                took = time.time() - begun
                break
            kills += 1
            ok(code is not None and code != 65 and code != 73, f"{code}: {text[-600:]}")
        equal(whole, f"{out}/x.h5", f"{kills} kills")
        shutil.rmtree(out)
    print(f"# {kills} kills, {trial} results")


@claim("a job killed at calls for its file, up to the last one before the renaming, has the same "
       "bytes when resumed")
def check_calls(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    step, calls, killed = 1 if FULL else 37, 1, 0
    words = words_of(folder, "--grid", "2x1", "--rounds", 2, "--resume")
    while True:
        out = f"{folder}/call{calls}"
        to = ["--output", f"{out}/x.h5"]
        stopped(folder, out, "--rounds", 2)
        code, text = job_end(job_start("encode", *words, *to, ranks=2, LD_PRELOAD=FAULTS,
                                       FAULT=f"signal:{calls}", FAULT_SIGNAL="9", FAULT_RANK="0",
                                       FAULT_OF="*.growing"), 60)
        if code == 0:
            break
        killed += 1
        ok(left(out)[0], f"{calls}: {code} {text[-300:]} {os.listdir(out)}")
        need(resumed(folder, out, "--rounds", 2, ranks=(1, 3)[killed % 2]), f"call {calls}")
        equal(f"{folder}/whole-rounds.h5", f"{out}/x.h5", f"call {calls}")
        shutil.rmtree(out)
        calls += step
    equal(f"{folder}/whole-rounds.h5", f"{out}/x.h5", f"{calls} calls are more than there are")
    ok(killed > 3, f"{killed} of {calls}")


def records(path):
    """Where the records of a journal begin."""
    with open(path, "rb") as f:
        head = f.read(40 + 4 * 16)
    arrays, most = struct.unpack_from("<qq", head, 24)
    chunks = struct.unpack_from("<4q", head, 40)[:arrays]
    first = -(-(PAGE + 32 * sum(chunks)) // PAGE) * PAGE
    step = -(-(88 + most) // PAGE) * PAGE
    return [first, first + step]


def record_head(path, at):
    with open(path, "rb") as f:
        f.seek(at)
        return struct.unpack("<3q", f.read(24))


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1]))


def twice_stopped(folder, out):
    """A growing result with two records."""
    stopped(folder, out)
    return stopped(folder, out, "--resume")


@claim("an incomplete record, or one with wrong hashes, is ignored; without an earlier record the "
       "job is refused")
def check_torn(folder):
    journal, growing = twice_stopped(folder, f"{folder}/torn")
    heads = [(record_head(journal, at), at) for at in records(journal)]
    (number, rows, size), newest = max(heads)
    ok(number == 2 and rows == 4 * BLOCK and min(heads)[0][1] == 2 * BLOCK, f"{heads}")
    for name, at in (("number", newest), ("rows", newest + 8), ("hash", newest + 60),
                     ("begin", newest + 90), ("end", newest + 88 + size - 1),
                     ("leaf", PAGE + 32 * 3)):
        out = f"{folder}/torn-{name}"
        shutil.copytree(f"{folder}/torn", out)
        flip(left(out)[0], at)
        done = resumed(folder, out)
        need(done, name)
        ok(f"after {2 * BLOCK} of {N} rows" in done.stderr, f"{name}: {done.stderr[-600:]}")
        equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", name)
    for name, at in (("both", min(heads)[1] + 90), ("head", 20)):
        out = f"{folder}/torn-{name}"
        shutil.copytree(f"{folder}/torn", out)
        for place in newest + 90, at:
            flip(left(out)[0], place)
        fails(resumed(folder, out), 73, ["cannot resume", "damaged", "--force"], name)
        fails(sagitta("inspect", left(out)[0]), 65, ["damaged"], name)
        fails(sagitta("inspect", left(out)[0], "--json"), 65, ["damaged"], f"{name}, --json")


@claim("if a record is forged and its hash is right, a comparison with the result of one run shows "
       "it")
def check_forged(folder):
    journal, _ = stopped(folder, f"{folder}/forged")
    at = next(a for a in records(journal) if record_head(journal, a)[0])
    number, rows, size = record_head(journal, at)
    with open(journal, "r+b") as f:
        f.seek(at)
        head, record = bytearray(f.read(88)), bytearray(f.read(size))
        sums = 8 * 36 + 8 * P  # the sums follow 36 numbers and the shift of P numbers
        value, = struct.unpack_from("<d", record, sums)
        struct.pack_into("<d", record, sums, value + 1)
        head[56:88] = hashlib.sha256(bytes(head[:56]) + bytes(record)).digest()
        f.seek(at)
        f.write(bytes(head + record))
    need(resumed(folder, f"{folder}/forged"), "its hash is right")
    done = sagitta("diff", f"{folder}/whole-encode.h5", f"{folder}/forged/x.h5")
    ok(done.returncode == 1 and "metrics" in done.stdout, f"{done.returncode} {done.stdout}")


@claim("files that are lost, damaged, of another job, or there already, are refused")
def check_refused(folder):
    out = f"{folder}/refused"
    journal, growing = stopped(folder, out)
    fails(sagitta("encode", *words_of(folder, "--output", f"{out}/x.h5")), 73,
          ["of a job that stopped", "--resume", "--force"], "neither --resume nor --force")
    for said, more in (("--top-s 4", ["--top-s", 3]), ("--rho 0", ["--rho", 1]),
                       ("dictionary_hash|is not the dictionary", ["--dictionary",
                                                                  f"{folder}/other.h5"]),
                       ("40 atoms of 1 vectors, this run has 41", ["--dictionary",
                                                                  f"{folder}/d41.h5"]),
                       ("rows_shape", ["--rows", f"{folder}/short.npy"]),
                       ("--row-range", ["--row-range", f"0:{8 * BLOCK}"])):
        done = resumed(folder, out, *more)
        ok(done.returncode == 65 and any(w in done.stderr for w in said.split("|")),
           f"{said}: {done.returncode} {done.stderr[-400:]}")
    for command in (["verify", growing], ["diff", growing, growing],
                    ["encode", *words_of(folder, "--rows", growing, "--output", f"{folder}/no.h5")],
                    ["merge", growing, "--output", f"{folder}/no.h5"]):
        fails(sagitta(*command), 65, ["grows", "sagitta inspect"], command[0])
    for name in journal, growing:
        done = sagitta("inspect", name)
        ok(done.returncode == 0 and f"{2 * BLOCK} of {N} rows are recorded" in done.stdout and
           "top-s = 4" in done.stdout, f"{name}: {done.stdout}{done.stderr}")
        page = json.loads(sagitta("inspect", name, "--json").stdout)["files"][0]
        ok([page[key] for key in ("rows", "rows_done", "rows_left", "first_row", "top_s")] ==
           [N, 2 * BLOCK, N - 2 * BLOCK, 0, 4] and page["id"] in name and len(page["id"]) == 16 and
           page["type"] in name and "top-s = 4" in page["identity"], f"{name}: {page}")
    for name, code, said in (("cut", 65, "rows end at byte"), ("chunk", 65, "what was recorded"),
                             ("journal", 73, "has lost its journal"), ("two", 73, "of two jobs")):
        other = f"{folder}/refused-{name}"
        shutil.copytree(out, other)
        its_journal, its_growing = left(other)
        if name == "cut":
            os.truncate(its_growing, os.path.getsize(its_growing) // 10)
        elif name == "chunk":
            with h5py.File(f"{folder}/whole-encode.h5") as f:
                flip(its_growing, f["supports/data"].id.get_chunk_info(1).byte_offset + 5)
        elif name == "journal":
            os.remove(its_journal)
        else:
            for path in its_journal, its_growing:
                end = path[path.rindex("."):]
                shutil.copy(path, f"{other}/x.h5.0123456789abcdef{end}")
        fails(resumed(folder, other), code, [said], name)
    need(sagitta("encode", *words_of(folder, "--force", "--output", f"{out}/x.h5")), "--force")
    ok(left(out) == (None, None), f"--force: {os.listdir(out)}")
    same(f"{folder}/whole-encode.h5", f"{out}/x.h5", "--force")


@claim("rows whose files changed are read again, and compared")
def check_changed(folder):
    for name, code in (("copy", 0), ("touch", 0), ("done", 65)):
        out, rows = f"{folder}/changed-{name}", f"{folder}/changed-{name}.npy"
        shutil.copy(f"{folder}/rows.npy", rows)
        stopped(folder, out, "--rows", rows)
        if name == "copy":
            shutil.copy2(rows, rows + "2")
            os.replace(rows + "2", rows)
        elif name == "touch":
            os.utime(rows, (1, 1))
        else:  # a value of a row that is done and in no sample
            values = np.load(rows, mmap_mode="r+")
            values[3000, 1] += 1
            values.flush()
            del values
        done = resumed(folder, out, "--rows", rows)
        ok(done.returncode == code and f"reads the {2 * BLOCK} rows again" in done.stderr,
           f"{name}: {done.returncode} {done.stderr[-600:]}")
        if code == 0:
            equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", name)
        else:
            ok("rows_terms" in done.stderr and left(out)[0], f"{name}: {done.stderr[-600:]}")


@claim("a part of an earlier run is copied to the growing file; only one job may do this at a time")
def check_before(folder):
    out = f"{folder}/part"
    os.makedirs(out)
    open(f"{out}/STOP", "w").close()
    fails(sagitta("encode", *words_of(folder, "--output", f"{out}/x.h5")), 75, ["--resume"], "part")
    ok(left(out) == (None, None) and os.path.exists(f"{out}/x.h5"), f"{os.listdir(out)}")
    fails(resumed(folder, out), 75, ["--resume"], "from the part")
    ok(left(out)[0] is not None, f"{os.listdir(out)}")
    os.remove(f"{out}/STOP")
    need(resumed(folder, out, ranks=2), "from the journal")
    equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", "a part, then a journal")
    job = job_start("encode", *words_of(folder, "--grid", "2x1", "--save-seconds", 1e-9, "--force",
                                        "--output", f"{out}/x.h5"), ranks=2)
    wait_until(lambda: glob.glob(f"{out}/*.growing") or job.poll() is not None)
    pids = job_ranks(job)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    fails(resumed(folder, out), 73, ["another run is writing here"], "two jobs")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    code, text = job_end(job, 60)
    ok(code == 0, f"{code} {text[-300:]}")
    equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", "the first of two")


@claim("too little space ends the job with 73 before any work; a disk that fails later leaves the "
       "record")
def check_room(folder):
    out = f"{folder}/room"
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    words = words_of(folder, "--grid", "2x1", "--save-seconds", 1e-9, "--output", f"{out}/x.h5")
    code, text = job_end(job_start("encode", *words, ranks=2, LD_PRELOAD=FAULTS, FAULT="room:1"),
                         60)
    ok(code == 73 and "bytes free, the result needs" in text and "route " not in text,
       f"{code} {text[-300:]}")
    ok(not glob.glob(f"{out}/*.h5*"), f"{os.listdir(out)}")
    for fault, of in (("write:2", "*.growing"), ("fsync:2", "*.growing"), ("lose:3", "*.growing"),
                      ("fsync:2", "*.journal"), ("write:9", "*.journal"),
                      ("rename:1", "*.growing")):
        rank = "0" if of == "*.journal" or fault == "rename:1" else "1"
        code, text = job_end(job_start("encode", *words, ranks=2, LD_PRELOAD=FAULTS, FAULT=fault,
                                       FAULT_RANK=rank, FAULT_OF=of), 60)
        ok(code == 74 and left(out)[0], f"{fault} {of}: {code} {text[-300:]} {os.listdir(out)}")
        need(resumed(folder, out), f"{fault} {of}")
        equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", f"{fault} {of}")
        shutil.rmtree(out)
    code, text = job_end(job_start("encode", *words, ranks=2, LD_PRELOAD=FAULTS, FAULT="fsync:1",
                                   FAULT_RANK="0", FAULT_OF="*.journal"), 60)
    ok(code == 74 and not glob.glob(f"{out}/*.h5*"), f"first: {code} {os.listdir(out)}")
    words = [*words, "--save-seconds", 300, "--resume"]
    rank_0 = dict(LD_PRELOAD=FAULTS, FAULT_RANK="0", FAULT_OF="*.growing")
    for kind in "write", "close":
        stopped(folder, out)
        calls = job_end(job_start("encode", *words, ranks=2, FAULT=f"{kind}:100000",
                                  FAULT_COUNT="1", **rank_0), 60)[1]
        calls = max(int(text.split()[0]) for text in calls.split("fault calls=")[1:])
        shutil.rmtree(out)
        # write: the last calls, because HDF5 keeps data until the end.  close: each time that a
        # written file is closed.
        for n in (calls, calls - 2, calls - 20) if kind == "write" else range(1, calls + 1):
            stopped(folder, out)
            code, text = job_end(job_start("encode", *words, ranks=2, FAULT=f"{kind}:{n}",
                                           **rank_0), 60)
            ok(code in ((74,) if kind == "write" else (73, 74)) and left(out)[0],
               f"{kind} {n} of {calls}: {code} {text[-300:]}")
            need(resumed(folder, out), f"{kind} {n} of {calls}")
            equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", f"{kind} {n} of {calls}")
            shutil.rmtree(out)


@claim("a file that cannot be read now ends the job with 74, and the record stays for a later run")
def check_looks(folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    out = f"{folder}/looks"
    for name in stopped(folder, out):  # each file is made unreadable in turn
        words = words_of(folder, "--output", f"{out}/x.h5")
        for more in (["--resume"], [], ["--force"]):
            for fault, of, said in (("look:1", os.path.basename(name), "Input/output error"),
                                    ("list:1", "/looks", "Permission denied"),
                                    ("entry:1", "/looks", "Input/output error")):
                code, text = job_end(job_start("encode", *words, *more, LD_PRELOAD=FAULTS,
                                               FAULT=fault, FAULT_OF=of), 60)
                ok(code == 74 and said in text, f"{fault} {of} {more}: {code} {text[-300:]}")
                ok(left(out)[0] and not os.path.exists(f"{out}/x.h5"), f"{os.listdir(out)}")
    need(resumed(folder, out), "later")
    equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", "later")


@claim("unfinished files block every command that writes their result; with --force they are "
       "replaced at the end")
def check_others(folder):
    parts, rows = [], f"{folder}/rows.npy"
    for i, rows_of in enumerate((f"0:{5 * BLOCK}", f"{5 * BLOCK}:")):
        parts.append(f"{folder}/others-{i}.h5")
        need(sagitta("encode", *words_of(folder, "--row-range", rows_of, "--output", parts[-1])),
             rows_of)
    stopped(folder, f"{folder}/others")
    fit = ["fit", "--rows", rows, "--atoms", 8, "--top-s", 2, "--sweeps", 1]
    for name, words in (("merge", ["merge", *parts]), ("fit", fit),
                        ("encode", ["encode", *words_of(folder)])):
        out = f"{folder}/others-{name}"
        os.makedirs(out)
        for path in left(f"{folder}/others"):
            file_name = os.path.basename(path).replace("x.h5", "supports.h5")
            shutil.copy(path, f"{out}/{file_name}")
        words = [*words, "--output", out]
        before = sorted(os.listdir(out))
        for more in ([], ["--resume"]) if name == "fit" else ([],):
            fails(sagitta(*words, *more), 73, ["of a job that stopped", "--resume", "--force"],
                  name)
            ok(set(before) <= set(os.listdir(out)) and not os.path.exists(f"{out}/supports.h5"),
               f"{name}: {os.listdir(out)}")
        need(sagitta(*words, "--force"), f"{name} --force")
        ok(left(out) == (None, None), f"{name} --force: {os.listdir(out)}")
        if name != "fit":
            same(f"{folder}/whole-encode.h5", f"{out}/supports.h5", name)


@claim("--force discards what is recorded only when something else takes its place")
def check_force(folder):
    out = f"{folder}/force"
    words = words_of(folder, "--output", f"{out}/x.h5", "--force")
    before = stopped(folder, out)
    fails(sagitta("encode", *later_wins(*words, "--dictionary", f"{folder}/short.npy")), 65, [],
          "no dictionary")
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    else:
        for fault, of, code in (("room:1", "", 73), ("fsync:1", "*.journal", 74),
                                ("write:1", "*.tmp", 74)):
            done = job_start("encode", *words, "--grid", "2x1", "--save-seconds", 1e-9, ranks=2,
                             LD_PRELOAD=FAULTS, FAULT=fault, FAULT_OF=of, FAULT_RANK="0")
            is_code, text = job_end(done, 60)
            ok(is_code == code and left(out) == before,
               f"{fault} {of}: {is_code} {text[-300:]} {os.listdir(out)}")
    need(resumed(folder, out), "what was recorded")
    equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", "what was recorded")
    for ranks in 2, 1:  # two ranks leave a file that grows, one rank leaves a part
        out = f"{folder}/force{ranks}"
        before = stopped(folder, out)
        after = stopped(folder, out, "--force", ranks=ranks)
        ok(before != after and (ranks == 1) == os.path.exists(f"{out}/x.h5"),
           f"{ranks} ranks: {before} {os.listdir(out)}")
        need(resumed(folder, out), f"{ranks} ranks")
        equal(f"{folder}/whole-encode.h5", f"{out}/x.h5", f"{ranks} ranks")


@claim("ranks check what they have written while they compute, so that a stop takes little time")
def check_beside(folder):
    for top_s, beside in ((4, 0), (64, BLOCK)):
        out = f"{folder}/beside{top_s}"
        words = words_of(folder, "--dictionary", f"{folder}/d64.h5", "--top-s", top_s, "--grid",
                         "2x1", "--output", f"{out}/x.h5")
        done = sagitta("route", *words, "--verbose", ranks=2)
        need(done, f"top-s {top_s}")
        told = re.search(r"checked (\d+) of (\d+) rows beside the writing", done.stderr)
        ok(told and int(told[1]) >= beside and (beside or told[1] == "0") and int(told[2]) == N,
           f"top-s {top_s}: {told and told[0]}")
    words = later_wins(*words, "--grid", "1x1", "--output", f"{folder}/beside.h5")
    need(sagitta("route", *words), "one rank")
    equal(f"{folder}/beside.h5", f"{out}/x.h5", "checked beside the work")
    out = f"{folder}/beside-stop"
    more = ["--dictionary", f"{folder}/d64.h5", "--top-s", 64]
    stopped(folder, out, *more, command="route")
    need(resumed(folder, out, *more, ranks=1, command="route"), "what is recorded is left alone")
    equal(f"{folder}/beside.h5", f"{out}/x.h5", "resumed on one rank")


with tempfile.TemporaryDirectory() as where:
    values_drawn = np.random.default_rng(5).standard_normal((N, P)).astype("f4")
    np.save(f"{where}/rows.npy", values_drawn)
    np.save(f"{where}/short.npy", values_drawn[:-1])
    values_drawn[BLOCK:5 * BLOCK] = 0
    np.save(f"{where}/zeros.npy", values_drawn)
    for file_name, atoms, seed in (("d", 40, 0), ("other", 40, 1), ("d41", 41, 0),
                                  ("d64", 64, 0)):
        need(sagitta("seed", "--rows", f"{where}/rows.npy", "--atoms", atoms, "--seed", seed,
                     "--output", f"{where}/{file_name}.h5"), file_name)
    need(sagitta("synth", "--n-rows", 10, "--columns", P, "--atoms", 12, "--frame", 3, "--output",
                 f"{where}/frames"), "frames")
    os.rename(f"{where}/frames/dictionary.h5", f"{where}/d3.h5")
    check_stops(where)
    check_kills(where)
    check_calls(where)
    check_torn(where)
    check_forged(where)
    check_refused(where)
    check_changed(where)
    check_before(where)
    check_room(where)
    check_looks(where)
    check_others(where)
    check_force(where)
    check_beside(where)
done_testing()
