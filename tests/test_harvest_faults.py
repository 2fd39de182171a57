# SPDX-License-Identifier: BSD-3-Clause
"""Claim: in harvest and attribute a stopped rank ends the job with 76 within the deadline, and a
killed rank ends it too.  If memory is short, the job ends with 71 and names the bytes.  A failed
call of a GPU ends it with 69.  If the GPU's memory is short, pieces give the same bits.  No result
is published; only a rank 0 that is stopped or killed may leave a temporary file."""
import os
import re
import resource
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

from capture_files import capture_write, starts
from jobs import (cuda_run, faulty, job_end, job_ranks, job_start, kill_all, temporaries,
                  wait_for_temporary)
from tap import claim, done_testing, gpu_present, later_wins, need, ok, sagitta, same, skip

N, FEW, H, D, ATOMS, S = 14000, 90, 4, 32, 64, 32
LONG = 5000  # positions that each of the few queries of a capture sees
LARGE = 1 << 20  # queries of a block, or number of atoms
COMMANDS, DEADLINE, RANKS, TRIES = ("harvest", "attribute"), 4, 3, 10
LIMIT = 700 << 20  # bytes of address space, of which a rank without data takes 224 MB
RANDOM = np.random.default_rng(41)


def supports_write(path, n, k=ATOMS):
    """Write codes of another program, without scores: S atoms per row."""
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        g.attrs["shape"] = np.array([n, k], "i8")
        g["indptr"] = starts([S] * n)
        g["indices"] = np.argsort(RANDOM.random((n, ATOMS)))[:, :S].astype("i4").ravel()
        g["data"] = np.ones(n * S, "f4")


class Place:
    """A folder with captures and codes of many rows, which take long, and of few rows."""

    def __init__(self, folder):
        self.folder = folder
        atoms = RANDOM.standard_normal((ATOMS, H * D))
        with h5py.File(self.at("dictionary.h5"), "w") as f:
            f["atoms"] = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")
        for n in (N, FEW):
            arrays = (RANDOM.standard_normal((n, H, D), "f4").astype("f2") for _ in "qkv")
            capture_write(self.at(f"capture-{n}.h5"), dict(zip("qkv", arrays)))
            supports_write(self.at(f"codes-{n}.h5"), n)
        arrays = (np.ones((N, heads, D), "f2") for heads in (8 * H, 1, 1))
        capture_write(self.at("capture-long.h5"), dict(zip("qkv", arrays)), causal=0)

    def at(self, name):
        return os.path.join(self.folder, name)

    def words(self, command, n, *more):
        codes = ("--supports", self.at(f"codes-{n}.h5"), "--dictionary", self.at("dictionary.h5"))
        return [command, "--capture", self.at(f"capture-{n}.h5"), "--output", self.out(command),
                "--threads", 1, "--device", "cpu", "--quiet",
                *(codes if command == "attribute" else ()), *more]

    def out(self, command):
        return self.at(f"{command}.h5")

    def left(self, command):
        """Remove the files of a job's result.  Returns their names."""
        names = [f for f in os.listdir(self.folder) if f.startswith(f"{command}.h5")]
        for name in names:
            os.remove(self.at(name))
        return names


def ended(p, command, number, which):
    """Send a signal to one of three ranks at work.  Returns whether they were at work, code,
    message, seconds, and the files that are left."""
    words = p.words(command, N, "--deadline", DEADLINE, "--block", 300)
    if command == "harvest":  # without long sequences it would end too soon
        words += ["--capture", p.at("capture-long.h5")]
    job = job_start(*words, ranks=RANKS)
    at_work = wait_for_temporary(p.folder, f"{command}.h5")
    time.sleep(0.5)
    pids, begun = job_ranks(job), time.time()
    at_work = at_work and len(pids) == RANKS and bool(temporaries(p.folder, f"{command}.h5"))
    if at_work:
        os.kill(pids[which], number)
    code, text = job_end(job, 40)
    kill_all(pids)
    return at_work, code, text, time.time() - begun, p.left(command)


def all_ended(p, number):
    """Run both commands at the same time, and send a signal to rank 0, then in other runs to rank
    1."""
    with ThreadPoolExecutor(len(COMMANDS)) as pool:
        for which in (0, 1):
            done = pool.map(lambda command: ended(p, command, number, which), COMMANDS)
            for command, (at_work, code, text, spent, left) in zip(COMMANDS, done):
                what = f"{command}, rank {which}: exit {code} after {spent:.1f} s {text[-300:]}"
                ok(at_work and spent < DEADLINE + 5, what)
                ok(is_unfinished(left), f"{what} {left}")
                yield code, text, what


def is_unfinished(left):
    """A temporary file may stay if rank 0, which writes it, is stopped or killed, or if mpirun
    kills it as soon as another rank has ended (doc/reliability.md)."""
    return len(left) <= 1 and all(name.endswith(".tmp") for name in left)


@claim("a rank that stops ends the job with 76 within the deadline, and is named")
def stopped_check(p):
    for code, text, what in all_ended(p, signal.SIGSTOP):
        ok(code == 76 and "a sign of life of rank" in text, what)


@claim("a rank that is killed ends the job, and nothing is published")
def killed_check(p):
    for code, _, what in all_ended(p, signal.SIGKILL):
        ok(code not in (0, None), what)


@claim("an allocation that fails ends the job with 71, most with its size, and leaves nothing")
def allocations_check(p):
    for command in COMMANDS:
        words = p.words(command, FEW)
        calls = faulty("own-memory:1000000000", *words, count=True)
        os.rename(p.out(command), p.at("whole.h5"))
        sizes = 0
        for i in range(TRIES):
            n = 1 + i * (calls - 1) // (TRIES - 1)
            code, text = faulty(f"own-memory:{n}", *words)
            if code == 0:  # memory that is not essential
                same(p.at("whole.h5"), p.out(command), f"{command}, call {n} of {calls}")
                p.left(command)
                continue
            left, sizes = p.left(command), sizes + bool(re.search(r"cannot allocate \d+ ", text))
            ok(code == 71 and "alloca" in text and not left,
               f"{command}, call {n} of {calls}: exit {code} {text[-300:]} {left}")
        ok(sizes > TRIES // 2, f"{command}: {sizes} sizes are named, of {calls} calls")


@claim("if HDF5 lacks memory for a capture, the command ends with 71, and does not call the file "
       "damaged")
def library_check(p):
    """HDF5 makes the last third of the allocations of a short command, for its file.  If one of
    them fails, HDF5 may crash."""
    words = ["inspect", p.at(f"capture-{FEW}.h5")]
    calls = faulty("memory:1000000000", *words, count=True)
    faults = [f"memory:{n}{more}" for n in range(calls * 2 // 3, calls, 9) for more in ("", "+")]
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda fault: faulty(fault, *words), faults))
    told = [(code, text) for code, text in ends if code in (65, 71)]
    wrong = [text for code, text in told if "damaged" in text or "alloc" not in text.lower()]
    opening = [code for code, text in told if f"cannot open '{words[1]}': " in text]
    ok(len(opening) > 2 and set(opening) == {71}, f"opening the file: {opening}")
    ok(not [text for _, text in ends if "damaged" in text], f"{wrong[:3]}")
    right = sum(code == 71 for code, _ in told)
    ok(right > 0.95 * len(told) > 50, f"71: {right} of {len(told)}: {wrong[:3]}")


def limited(*words, ranks):
    """A run with little address space for each process.  Arenas of threads take none of it."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    os.environ["MALLOC_ARENA_MAX"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, before[1]))
    try:
        return sagitta(*words, ranks=ranks)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        del os.environ["MALLOC_ARENA_MAX"]


@claim("if memory is short, the job ends with 71 on every rank, and names the bytes")
def memory_check(p):
    """Arrays that are holes in their files, with a block of many queries, or with many atoms."""
    with h5py.File(p.at(f"capture-{LARGE}.h5"), "w") as f:
        for name in "qkv":
            f.create_dataset(name, (LARGE, H, D), "f2", chunks=(1024, H, D))
        f.attrs["causal"] = 1
    with h5py.File(p.at("large.h5"), "w") as f:
        f.create_dataset("atoms", (LARGE, H * D), "f4", chunks=(64, H * D))
    supports_write(p.at("codes-large.h5"), FEW, LARGE)
    for ranks in (0, 2):
        done = limited(*p.words("harvest", LARGE, "--block", LARGE), ranks=ranks)
        left = p.left("harvest")
        ok(done.returncode == 71 and re.search(r"cannot allocate \d{9,} bytes", done.stderr) and
           not left, f"harvest, {ranks} ranks: {done.returncode} {done.stderr[-300:]} {left}")
        words = later_wins(*p.words("attribute", FEW), "--dictionary", p.at("large.h5"),
                           "--supports", p.at("codes-large.h5"))
        done = limited(*words, ranks=ranks)
        left = p.left("attribute")
        needed = f"{LARGE * H * D * 4} bytes are needed for the {LARGE} atoms"
        ok(done.returncode == 71 and needed in done.stderr and "are present" in done.stderr and
           not left, f"attribute, {ranks} ranks: {done.returncode} {done.stderr[-300:]} {left}")


def gpu_job(p, command, fault):
    """A job on a GPU with a fault (kind, n): the n-th call or allocation of CUDA fails, or for
    "bytes" the GPU has n bytes."""
    out = p.at(f"{command}-{fault[0]}-{fault[1]}.h5")
    environment = {"FAULT_CUDA": f"{fault[0]}:{fault[1]}"}
    if fault[0] == "bytes":
        environment = {"CUDA_MEMORY": str(fault[1])}
    words = later_wins(*p.words(command, FEW), "--capture", p.at("capture-few-long.h5"), "--device",
                       "cuda", "--output", out)
    done = cuda_run(out, *(word for word in words if word != "--quiet"), **environment)
    return done, out, "keys and values come in pieces" in done.stderr


def gpu_faults_check(p, command):
    """Try all faults, several at a time.  Returns the set of outcomes: the kind of a fault, and the
    exit code, or whether keys and values came in pieces."""
    want, ends = p.at(f"{command}-cpu.h5"), set()
    need(sagitta(*later_wins(*p.words(command, FEW), "--capture", p.at("capture-few-long.h5"),
                             "--output", want)), f"{command} on a CPU")
    faults = [("call", n) for n in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)]
    faults += [("memory", n) for n in range(1, 17)]
    faults += [("bytes", int(1e6 * size)) for size in (0.3, 1, 2, 3, 4, 5, 6, 8, 12, 30)]
    with ThreadPoolExecutor(6) as pool:
        jobs = pool.map(lambda fault: gpu_job(p, command, fault), faults)
    for (kind, n), (done, out, in_pieces) in zip(faults, jobs):
        code, what = done.returncode, f"{command}, {kind} {n}: {done.stderr[-300:]}"
        lines = [x for x in done.stderr.splitlines() if x.startswith(f"sagitta {command}:")]
        ends.add(f"{kind} {code or ('pieces' if in_pieces else 'whole')}")
        if code == 0:
            same(want, out, what)
            continue
        memory = code == 71 and ("MB" in done.stderr or "bytes" in done.stderr)
        ok((memory or (kind == "call" and code == 69)) and len(lines) == 1 and
           not os.path.exists(out), what)
    return ends


@claim("a failed call of a GPU ends the job with 69; after a failed allocation, or with less "
       "memory, pieces give the CPU's bits, or the job ends with 71 and names the sizes")
def gpu_check(p):
    if not gpu_present():
        return
    arrays = [RANDOM.standard_normal((n, H, D), "f4") for n in (FEW, LONG, LONG)]
    begin = {"q_start": starts([FEW]), "kv_start": starts([LONG])}
    capture_write(p.at("capture-few-long.h5"), {**dict(zip("qkv", arrays)), **begin})
    for command in COMMANDS:
        ends = gpu_faults_check(p, command)
        ok({"call 69", "memory pieces", "bytes pieces", "bytes whole", "bytes 71"} <= ends,
           f"{command}: faults, and too little, little and enough memory were met: {ends}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        p = Place(folder)
        stopped_check(p)
        killed_check(p)
        if os.environ.get("SANITIZED"):
            skip("sanitizers must be preloaded first, and reserve address space that this test "
                 "limits")
        else:
            allocations_check(p)
            library_check(p)
            memory_check(p)
            gpu_check(p)
    done_testing()


main()
