# SPDX-License-Identifier: BSD-3-Clause
"""Claim: while rank 0 works alone, other ranks take almost no processor time.  If a rank is stopped
then, the job ends with 76 within the deadline; if it is killed, the job ends too.  A read, write,
sync or rename that fails ends the job with 73 or 74, one that hangs with 74, and missing memory
with 71.  Each time there is one message, and published files are whole.  Without LAPACK only the
spectrum is missing.  If a routine of LAPACK fails, only the results that need it are missing."""
import ctypes
import os
import re
import signal
import subprocess
import tempfile
import time

import h5py
import numpy as np

import jobs
from tap import SAGITTA, claim, done_testing, ok, sagitta, skip


def made(folder, rows, atoms, columns, s):
    os.makedirs(folder)
    sagitta("synth", "--n-rows", rows, "--columns", columns, "--atoms", atoms, "--top-s", s,
            "--noise", 0.05, "--output", folder)
    inputs = ["--rows", f"{folder}/rows.h5", "--dictionary", f"{folder}/dictionary.h5"]
    done = sagitta("encode", *inputs, "--top-s", s, "--output", folder)
    if done.returncode:
        raise SystemExit(f"Bail out! {done.stderr}")
    return [*inputs, "--supports", f"{folder}/supports.h5", "--threads", "1"]


def seconds_used(pid):
    with open(f"/proc/{pid}/stat") as f:
        user, system = f.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def at_work(inputs, folder, *words):
    """Start two ranks, and wait until rank 0 is in its long work.  Returns mpirun, its output, and
    the processes by rank."""
    job = jobs.job_start("terminal", *inputs, *words, "--verbose", "--output", f"{folder}/out",
                         "--dump-artifact", f"{folder}/dump", ranks=2)
    said = []
    for line in job.stderr:
        said.append(line)
        if "duplicates done" in line:
            break
    return job, "".join(said), jobs.job_ranks(job)


def end(job, said, pids):
    code, more = jobs.job_end(job, 60)
    jobs.kill_all(pids)
    return code, said + more


def left(folder):
    """The results and temporary files in the folder."""
    out = os.listdir(f"{folder}/out") if os.path.isdir(f"{folder}/out") else []
    return [n for n in [*out, *os.listdir(folder)] if n.startswith(("terminal.", "dump"))]


@claim("a rank that stops or is killed ends the job, and nothing is left")
def lost_check(inputs, folder):
    for which, number, code in ((1, signal.SIGSTOP, 76), (0, signal.SIGSTOP, 76),
                                (1, signal.SIGKILL, None)):
        job, said, pids = at_work(inputs, folder, "--deadline", "5")
        before, begun = [seconds_used(pid) for pid in pids], time.time()
        if number == signal.SIGSTOP and which:
            time.sleep(2)
            used = [seconds_used(pid) - b for pid, b in zip(pids, before)]
            spent = time.time() - begun
            ok(used[1] < 0.1 * spent and used[1] < 0.2 * used[0],
               f"in {spent:.1f} s rank 0 uses {used[0]:.2f} s, rank 1 waits in {used[1]:.2f}")
        begun = time.time()
        os.kill(pids[which], number)
        got, said = end(job, said, pids)
        name, spent = signal.Signals(number).name, time.time() - begun
        good = got == code if code else got not in (0, None)
        ok(good and spent < 20 and "covariance done" not in said and not left(folder),
           f"rank {which} gets {name}: exit {got} after {spent:.1f} s, nothing is left")
        if code:
            ok(f"a sign of life of rank {which}" in said, "the silent rank is named")


def faulty(inputs, folder, fault, *words, of=None):
    """A run with a fault; of: only calls for this file fail.  Returns (exit code, message)."""
    code, said = jobs.faulty(fault, "terminal", *inputs, "--directions", 2, "--cross", 4, "--force",
                             "--output", f"{folder}/out", "--dump-artifact", f"{folder}/dump",
                             *words, of=of)
    return code, re.findall("sagitta terminal: (.*)", said)


def clear(folder):
    for name in ("out/terminal.h5", "dump", "dump.atoms"):
        if os.path.exists(f"{folder}/{name}"):
            os.remove(f"{folder}/{name}")


def calls_fail(inputs, folder, kind, codes, step=1, of=None):
    """Let one call after another fail, until the run succeeds.  Returns the number of calls for the
    file."""
    wrong, n = [], 1
    while True:
        clear(folder)
        code, told = faulty(inputs, folder, f"{kind}:{n}", of=of)
        files = left(folder)
        whole = "terminal.h5" not in files or sagitta(
            "verify", f"{folder}/out/terminal.h5").returncode == 0
        if code == 0:
            break
        early = kind == "read" and files  # no result before all inputs were read
        if code not in codes or len(told) != 1 or not whole or early or str(files).count(".tmp"):
            wrong.append((n, code, told, files))
        n += step
    ok(not wrong and n > 1 and sorted(files) == ["dump", "dump.atoms", "terminal.h5"],
       f"{kind} {of or ''}: calls 1 to {n} by {step} fail {wrong[:2]}")
    return n - 1


@claim("calls that fail end the job with their code and one message")
def faults_check(inputs, folder):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    calls_fail(inputs, folder, "write", (73, 74), 3)
    calls_fail(inputs, folder, "fsync", (74,))
    calls_fail(inputs, folder, "rename", (74,))
    with open(f"{folder}/dump", "w") as f:
        f.write("old")
    os.remove(f"{folder}/out/terminal.h5")
    code, _ = faulty(inputs, folder, "rename:1", of="dump.*.tmp")
    with open(f"{folder}/dump") as f:
        ok(code == 74 and f.read() == "old", "a dump that fails leaves the old one")
    code, _ = faulty(inputs, folder, "rename:1", of="dump.atoms.*.tmp")
    ok(code == 74 and "terminal.h5" not in left(folder),
       f"the dump's atoms fail: exit {code}, {left(folder)}")
    calls_fail(inputs, folder, "own-memory", (71,), 29)
    calls_fail(inputs, folder, "read", (74,), 9, of="/supports.h5")
    calls_fail(inputs, folder, "read", (74, 65), of="/dictionary.h5")
    last = calls_fail(inputs, folder, "read", (74,), of="/rows.npy")
    clear(folder)
    code, told = faulty(inputs, folder, f"stall:{last}", "--deadline", "3", of="/rows.npy")
    ok(code == 74 and "longer than the deadline of 3 seconds" in told[0] and not left(folder),
       f"the last read of rows hangs: exit {code}")


@claim("without LAPACK only the spectrum is missing")
def lapack_check(inputs, folder):
    """Empty files are found before the machine's libraries, and cannot be loaded."""
    os.mkdir(f"{folder}/libraries")
    for name in ("libopenblas.so.0", "liblapack.so.3"):
        open(f"{folder}/libraries/{name}", "w").close()
    for hidden in (0, 1):
        path = f"{folder}/libraries:{os.environ.get('LD_LIBRARY_PATH', '')}"
        environment = jobs.environment(**(dict(LD_LIBRARY_PATH=path) if hidden else {}))
        done = subprocess.run([SAGITTA, "terminal", *inputs, "--output",
                               f"{folder}/lapack{hidden}"], env=environment, text=True,
                              capture_output=True)
        if done.returncode:
            break
    ok(done.returncode == 0 and "no LAPACK found" in done.stderr
       and "install libopenblas0" in done.stderr,
       "without LAPACK the exit code is 0, and a message says so")
    files = [f"{folder}/lapack{hidden}/terminal.h5" for hidden in (0, 1)]
    with h5py.File(files[1]) as f:
        run = f["run/terminal"]
        ok("spectrum" not in run and "inertia" not in run.attrs and "no LAPACK" in
           run.attrs["lapack"], "the spectrum is missing, with the reason")
    ok(sagitta("diff", *files).returncode == 0, "all else has the same bits")
    page = sagitta("inspect", files[1]).stdout
    ok("no LAPACK found" in page and sagitta("verify", files[1]).returncode == 0,
       "inspect says so, and verify passes")


def lapack_path():
    """The library that the program would load, or None."""
    for name in ("libopenblas.so.0", "liblapack.so.3"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        with open("/proc/self/maps") as maps:
            return next(line.split()[-1] for line in maps if name[:-5] in line)
    return None


@claim("if LAPACK fails, only the results that need it are missing, and its info is reported")
def lapack_fails_check(inputs, folder):
    real = lapack_path()
    if os.environ.get("SANITIZED") or not real:
        skip("a sanitizer must be preloaded first, so this test cannot preload a library" if real
             else "there is no LAPACK")
        return
    os.mkdir(f"{folder}/failing")
    os.symlink(f"{os.path.dirname(jobs.FAULTS)}/fault_lapack.so",
               f"{folder}/failing/libopenblas.so.0")
    path = f"{folder}/failing:{os.environ.get('LD_LIBRARY_PATH', '')}"
    for routine, info, inertia, values in (("none", 0, 1, 1), ("dsytrf", -3, 0, 1),
                                           ("dsytrd", -3, 1, 0), ("dsterf", 22, 1, 0),
                                           ("dstemr", 22, 1, 1), ("dormtr", -3, 1, 1)):
        out = f"{folder}/fails_{routine}/terminal.h5"
        environment = jobs.environment(LD_LIBRARY_PATH=path, LAPACK_REAL=real,
                                       LAPACK_FAILS=f"{routine}_", LAPACK_INFO=str(info))
        done = subprocess.run([SAGITTA, "terminal", *inputs, "--weak", "0.9", "--output", out],
                              env=environment, text=True, capture_output=True)
        if not ok(done.returncode == 0, f"{routine} fails: exit {done.returncode}"):
            continue
        failed, vectors = routine != "none", routine in ("none", "dsytrf")
        with h5py.File(out) as f:
            run = f["run/terminal"]
            there = ("inertia" in run.attrs, "spectrum" in run, "identifiability" in run)
            ok(there == (inertia, values, vectors), f"{routine}: {there} are there")
            ok(run.attrs["lapack_info"] == info and
               (f"{routine} failed with info {info}" in run.attrs["lapack"]) == failed,
               f"{routine}: {run.attrs['lapack']}")
        ok(("is incomplete" in done.stderr) == failed
           and (f"{routine} failed" in sagitta("inspect", out).stdout) == failed
           and sagitta("verify", out).returncode == 0
           and sagitta("diff", out, f"{folder}/fails_none/terminal.h5").returncode == 0,
           f"{routine}: told, inspected, verified, the same bits")


def main():
    with tempfile.TemporaryDirectory() as folder:
        small = made(f"{folder}/small", 300, 24, 32, 3)
        with h5py.File(small[1]) as f:
            np.save(f"{folder}/small/rows.npy", f["rows"][:])
        faults_check(["--rows", f"{folder}/small/rows.npy", *small[2:]], folder)
        clear(folder)
        lapack_check(small, folder)
        lapack_fails_check(small, folder)
        lost_check(made(f"{folder}/large", 3000, 1300, 64, 4), folder)
    done_testing()


main()
