# SPDX-License-Identifier: BSD-3-Clause
"""Claim: random acts on results that grow in a file of their own (tests/soak_growing.py) leave
nothing wrong, hung or lost.  If one of these three is planted, it is found."""
import os
import shutil
import subprocess
import sys
import tempfile

import h5py

import soak_growing
from jobs import environment
from soak_growing import Data, Life, Soak, options_read
from tap import FULL, claim, done_testing, ok, skip_all

ACTS = 500 if FULL else 20


@claim("random acts leave nothing wrong, hung or lost")
def check_acts():
    soak = Soak(options_read(["--tries", str(ACTS), "--seed", "3"])).run()
    soak.table_print()
    ok(sum(soak.kinds.values()) == ACTS, f"{soak.kinds}")
    ok(not soak.bad, f"{soak.bad[:2]}")


def life_of(folder, name, joins):
    """A new life.  joins: its result is made by jobs of ranges, otherwise by one job."""
    life = Life(Data(f"{folder}/{name}", 20), options_read(["--seed", "1"]), name)
    life.joins, life.setting, life.cut = joins, "plain", [0, 4 * soak_growing.BLOCK, soak_growing.N]
    life.result = f"{life.out}/{'supports' if joins else 'x'}.h5"
    return life


def judged(life, work, plant, before=None):
    before = life.recorded() if before is None else before
    code, text = life.end(life.start(work, 0))
    plant(life)
    life.judge(before, work, code, text, {0})
    return [outcome for outcome, _ in life.bad]


def byte_change(life):
    """Change a byte of a row in the middle of the result."""
    with h5py.File(life.result) as f:
        at = f["supports/data"].id.get_chunk_info(3).byte_offset + 5
    with open(life.result, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1]))


@claim("soak_growing finds planted faults: other bytes, a missing result or record, a hang")
def check_planted(folder):
    for name, joins, plant, found in (
            ("none", False, lambda life: None, []),
            ("bytes", False, byte_change, ["wrong", "wrong"]),
            ("result", False, lambda life: os.remove(life.result), ["wrong"]),
            ("record", True, lambda life: [os.remove(f"{life.out}/{n}")
                                           for n in life.recorded()], ["wrong"])):
        os.makedirs(f"{folder}/{name}")
        life = life_of(folder, name, joins)
        work = life.range_work(*life.cut[:2]) if joins else life.whole_work()
        is_found = judged(life, work, plant)
        ok(is_found[:len(found)] == found and bool(is_found) == bool(found), f"{name}: {life.bad}")
    life.bad = []
    done = judged(life, life.range_work(*life.cut[:2]), lambda life: None)
    ok(not done and life.recorded(), f"a range: {life.bad}")
    path = f"{life.out}/{next(iter(life.recorded()))}"
    shutil.move(path, f"{folder}/record")
    judged(life, life.range_work(*life.cut[1:]), lambda life: None,
           {os.path.basename(path): soak_growing.BLOCK})
    ok([o for o, _ in life.bad] == ["lost"], f"{life.bad}")
    life.bad, life.data.patience = [], 0.01
    judged(life, life.range_work(*life.cut[:2]), lambda life: None)
    ok(life.bad and life.bad[0][0] == "hung", f"{life.bad}")


WRITER = """import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for at in map(int, sys.argv[2:]):
    os.pwrite(file, b"x", at)
    print(flush=True)
    sys.stdin.readline()"""


def writer(path, *places):
    return subprocess.Popen([sys.executable, "-c", WRITER, path, *map(str, places)], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            env=environment(LD_PRELOAD=soak_growing.PAGES, WHOLE_IN=path))


def step(process):
    """Wait for the next write of the process."""
    return process.stdout.readline()


@claim("a file system that writes whole pages loses data of two writers in one page, and no job "
       "depends on this")
def check_pages(folder):
    for other, is_there in ((100, False), (1 << 16, True)):
        path = f"{folder}/pages-{other}"
        one = writer(path, 0, 200)
        step(one)
        two = writer(path, other)
        step(two)
        two.communicate("\n")
        one.stdin.write("\n")
        one.stdin.flush()
        step(one)
        one.communicate("\n")
        with open(path, "rb") as f:
            data = f.read()
        ok(data[0:1] == data[200:201] == b"x" and (data[other:other + 1] == b"x") == is_there,
           f"byte {other} is {data[other:other + 1]}")
    os.makedirs(f"{folder}/pages")
    life = life_of(folder, "pages", False)
    code, text = life.end(life.start(life.whole_work(), 3, WHOLE_IN=life.out,
                                     LD_PRELOAD=soak_growing.PAGES))
    ok(code == 0, f"{code} {text[-600:]}")
    ok(life.result_check(code, life.whole_work(), text) and not life.bad, f"{life.bad}")


def main():
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    check_acts()
    with tempfile.TemporaryDirectory() as folder:
        check_planted(folder)
        check_pages(folder)
    done_testing()


main()
