# SPDX-License-Identifier: BSD-3-Clause
"""Claim: files that `sagitta serve` encodes beside requests have the results of `sagitta encode`,
for every policy and any requests.  If a server is stopped or killed, it leaves parts, from which a
server or encode continues to the same results.  A file that fails is named, and the others are
encoded."""
import os
import signal
import tempfile
import threading
import time

import h5py
import numpy as np

from live_server import Served, finished, need_zmq
from tap import FULL, SOURCE, claim, done_testing, ok, sagitta

live = need_zmq()
REAL = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
STEPS = ["--step-rows", 512, "--live-rows", 64, "--quantum", 64]
# Many small steps, so that files are still being encoded when the server is ended.
SMALL = ["--step-rows", 64, "--live-rows", 64, "--policy", "off"]
TINY = ["--step-rows", 4, "--live-rows", 4, "--policy", "off"]
# Small steps while a client waits, with pieces that have several sum blocks.
LARGE = ["--step-rows", 9000, "--policy", "static", "--budget", 64, "--linger-ms", 1e6]


def need(*words):
    done = sagitta(*words)
    ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")


class Work:
    """Some files, a dictionary, and the results of encode."""

    def __init__(self, folder, name, sizes, *words):
        self.folder, self.words, self.n = f"{folder}/{name}", words, len(sizes)
        os.mkdir(self.folder)
        with h5py.File(words[1] if name == "real" else f"{folder}/data/rows.h5") as f:
            rows = f["rows"][:].astype("f4")
        self.words = words[2:] if name == "real" else words
        self.rows, at = rows, 0
        for i, n in enumerate(sizes):
            with h5py.File(f"{self.folder}/rows{i}.h5", "w") as g:
                g["rows"] = rows[at:at + n]
            at += n
            need("encode", "--rows", f"{self.folder}/rows{i}.h5", *self.words, "--output",
                 f"{self.folder}/want{i}")

    def list(self, name):
        """Write a list.  Outputs are alternately folders and files."""
        with open(f"{self.folder}/{name}.txt", "w") as f:
            f.write("# files of a test\n\n")
            for i in range(self.n):
                f.write(f"  {self.folder}/rows{i}.h5\t{self.output(name, i)}  # one\n")
        return f"{self.folder}/{name}.txt"

    def output(self, name, i):
        return f"{self.folder}/{name}{i}" + (".h5" if i % 2 else "")

    def result(self, name, i):
        return self.output(name, i) + ("" if i % 2 else "/supports.h5")

    def compare(self, name, what):
        for i in range(self.n):
            done = sagitta("diff", self.result(name, i), f"{self.folder}/want{i}/supports.h5")
            ok(done.returncode == 0, f"{what}, file {i}: {done.stdout[-300:]} {done.stderr[-300:]}")


def ask(path, rows, seed, ends):
    rng = np.random.default_rng(seed)
    with live.connect(path) as server:
        while not ends.is_set():
            bulk = bool(rng.random() < 0.3)
            n = int(rng.integers(1, 300 if bulk else 65))
            server.encode(rows[rng.integers(0, len(rows), n)], bulk=bulk)


def check_bits(folder, work, policy):
    name = "-".join(map(str, policy)).replace("--", "")
    with claim(f"{os.path.basename(work.folder)}, {' '.join(map(str, policy))}: "
               "the bytes of encode"):
        words = [*work.words, *STEPS, *policy, "--backlog", work.list(name), "--verbose"]
        with Served(folder, *words) as served, live.connect(served.path) as server:
            ends = threading.Event()
            threads = [threading.Thread(target=ask, args=(served.path, work.rows, s, ends))
                       for s in range(2)]
            for t in threads:
                t.start()
            status = finished(server)
            ends.set()
            for t in threads:
                t.join()
            code, _, text = served.end()
        ok(status["files"]["done"] == work.n and status["files"]["failed"] == 0, f"{status}")
        ok(status["live_requests"] > 0, f"requests were answered meanwhile: {status}")
        ok(code == 0, f"the server ends with {code}: {text[-500:]}")
        ok(text.count("for files of the backlog") == 2, "pieces are made once, for all files")
        work.compare(name, "whole")


def rows_done(server, rows, seconds=20):
    """Wait until the server has done this number of rows of files, or all."""
    end = time.time() + seconds
    while time.time() < end:
        files = server.status()["files"]
        if files["rows"] >= rows or files["done"] == files["all"] > 0:
            return
        time.sleep(0.002)


def part_rows(path):
    try:
        with h5py.File(path) as f:
            return int(f["part"].attrs["rows"]) if "part" in f else -1
    except OSError:
        return 0  # there is no file


@claim("stopped at any moment, the server leaves parts, from which it or encode continues to the "
       "same results")
def check_stop(folder, work):
    rng, parts = np.random.default_rng(7), 0
    for n in range(12):
        if n >= 4 and parts > 3 and not FULL:
            break  # on a busy machine files may be done before the stop: then try more
        name, left, runs = f"stop{n}", True, 0
        words = [*work.words, *(LARGE if n % 2 else SMALL), "--backlog", work.list(name),
                 "--resume"]
        while left and runs < 3:
            with Served(folder, *words) as served:
                with live.connect(served.path) as server:
                    server.encode(work.rows[:1])
                    rows_done(server, int(rng.integers(1, 30000)))
                code, _, text = served.end(signal.SIGTERM if runs % 2 else signal.SIGUSR1)
            counts = [part_rows(work.result(name, i)) for i in range(work.n)]
            left = any(c >= 0 for c in counts)
            ok(code == (75 if left else 0), f"rows {counts}: exit {code} {text[-300:]}")
            ok(all(c <= 0 or c % 4096 == 0 for c in counts), f"whole sum blocks: {counts}")
            parts += sum(c > 0 for c in counts)
            runs += 1
        if n // 2 % 2:
            for i in range(work.n):
                need("encode", "--rows", f"{work.folder}/rows{i}.h5", *work.words, "--output",
                     work.output(name, i), "--resume")
        else:
            with Served(folder, *words) as served, live.connect(served.path) as server:
                finished(server)
                code, _, text = served.end()
                ok(code == 0, f"resumed: {code} {text[-300:]}")
        work.compare(name, f"stopped {runs} times")
    ok(parts > 3, f"{parts} parts were gone on with")


@claim("a killed server leaves what was saved, and the next one continues from there to the same "
       "results")
def check_kill(folder, work):
    words = [*work.words, *TINY, "--backlog", work.list("kill"), "--resume", "--save-seconds", 0.02]
    saved, kills = 0, 0
    while saved >= 0 and kills < 3:
        with Served(folder, *words) as served:
            for _ in range(2):  # wait for two saves
                rows, end = saved, time.time() + 20
                while rows == saved and rows >= 0 and time.time() < end:
                    time.sleep(0.002)
                    rows = part_rows(work.result("kill", 0))
                ok(rows == -1 or rows > saved, f"{rows} rows were saved, after {saved}")
                saved = rows
            served.end(signal.SIGKILL)
        kills += 1
    ok(kills > 1, f"the server was killed {kills} times")
    with Served(folder, *words) as served, live.connect(served.path) as server:
        status = finished(server)
        code, _, text = served.end()
    ok(code == 0 and status["files"]["done"] == work.n, f"{code} {status} {text[-500:]}")
    done = sagitta("encode", "--rows", f"{work.folder}/rows0.h5", *work.words, "--output",
                   work.output("kill", 0), "--resume")
    ok("complete: nothing is left" in done.stderr, f"encode finds it complete: {done.stderr}")
    work.compare("kill", "killed")


@claim("a file that fails is named with its line, the other files are encoded, and the exit code "
       "shows it")
def check_fail(folder, work):
    bad = work.rows[:5000].copy()
    with h5py.File(f"{folder}/nan.h5", "w") as f:
        bad[4500, 3] = np.nan
        f["rows"] = bad
    with h5py.File(f"{folder}/huge.h5", "w") as f:
        bad[4500, 3] = 1e38
        f["rows"] = bad
    with open(f"{folder}/fail.txt", "w") as f:
        f.write(f"{folder}/nan.h5 {folder}/fail0\n{folder}/huge.h5 {folder}/fail1.h5\n"
                f"{work.folder}/rows0.h5 {work.output('fail', 0)}\n")
    words = [*work.words, *STEPS, "--backlog", f"{folder}/fail.txt"]
    with Served(folder, *words) as served, live.connect(served.path) as server:
        files = finished(server)["files"]
        ok(files["done"] == 1 and files["failed"] == 2 and files["all"] == 3, f"{files}")
        ok(server.encode(work.rows[:3]).count.shape == (3,), "the server still serves clients")
        code, _, text = served.end()
    ok(code == 65 and "line 1 of" in text and "nan.h5:/rows' is nan" in text, text[-900:])
    ok("line 2 of" in text and "has the norm 1e+38, above 1e+37" in text, text[-900:])
    ok("2 of the 3 files of" in text, text[-500:])
    ok(not os.path.exists(f"{folder}/fail0/supports.h5"),
       "the folder has no file that looks like a result")
    ok([n for n in os.listdir(folder) if n.startswith(("fail1.h5", ".fail1.h5."))] == [],
       f"nothing is left of it: {os.listdir(folder)}")
    done = sagitta("diff", work.result("fail", 0), f"{work.folder}/want0/supports.h5")
    ok(done.returncode == 0, f"the third is as encode's: {done.stdout[-300:]}")


@claim("a part of a stopped encode blocks a file, also with --resume; --force replaces it")
def check_left(folder, work):
    out = f"{folder}/left"
    os.mkdir(out)
    left = [f"{out}/supports.h5.0123456789abcdef.{end}" for end in ("growing", "journal")]
    for path in left:
        open(path, "w").close()
    with open(f"{folder}/left.txt", "w") as f:
        f.write(f"{work.folder}/rows0.h5 {out}\n")
    words = [*work.words, *STEPS, "--backlog", f"{folder}/left.txt"]
    for more in [], ["--resume"], ["--force"]:
        with Served(folder, *words, *more) as served, live.connect(served.path) as server:
            files = finished(server)["files"]
            code, _, text = served.end()
        there = [os.path.exists(path) for path in (*left, f"{out}/supports.h5")]
        if more == ["--force"]:
            ok(code == 0 and there == [False, False, True], f"{more}: {code} {there} {text[-500:]}")
        else:
            ok(code == 73 and files["failed"] == 1 and "of a job that stopped" in text and
               there == [True, True, False], f"{more}: {code} {files} {there} {text[-500:]}")
    done = sagitta("diff", f"{out}/supports.h5", f"{work.folder}/want0/supports.h5")
    ok(done.returncode == 0, f"the result has the bytes of encode: {done.stdout[-300:]}")


def data_size(server):
    """KiB of memory that the process can write, whether it was touched or not."""
    with open(f"/proc/{server.job.pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmData")).split()[1])


@claim("files that fail while they are encoded leave no memory allocated")
def check_memory(folder, work):
    bad = work.rows[:1].copy()
    bad[0, 3] = np.nan
    with h5py.File(f"{folder}/first.h5", "w") as f:
        f["rows"] = bad
    sizes = []
    for n in 20, 420:
        with open(f"{folder}/many.txt", "w") as f:
            f.writelines(f"{folder}/first.h5 {folder}/many/{i}.h5\n" for i in range(n))
        words = [*work.words, *STEPS, "--backlog", f"{folder}/many.txt"]
        with Served(folder, *words) as served, live.connect(served.path) as server:
            ok(finished(server)["files"]["failed"] == n, "all files of the list fail")
            sizes.append(data_size(served))
            served.end()
    ok(sizes[1] - sizes[0] < 2000, f"KiB after 20 and 420 files that failed: {sizes}")


@claim("for complete results serve gives the warnings that encode gives")
def check_advice(folder, work):
    names, seen = [], set()
    for name, times in ("far", 20), ("near", 1):
        names.append(f"{folder}/{name}.h5")
        with h5py.File(names[-1], "w") as f:
            f["rows"] = (work.rows[:4200] + np.float32(2)) * np.float32(times)
    need("fit", "--rows", names[1], "--atoms", 30, "--top-s", 4, "--sweeps", 1, "--output",
         f"{folder}/fitted")
    with h5py.File(f"{folder}/bare.h5", "w") as g, h5py.File(f"{folder}/fitted/dictionary.h5") as f:
        g["atoms"] = f["atoms"][:]
    for dictionary in f"{folder}/fitted", f"{folder}/bare.h5":
        with open(f"{folder}/advice.txt", "w") as f:
            f.writelines(f"{name} {name[:-3]}-{os.path.basename(dictionary)}\n" for name in names)
        words = ["--dictionary", dictionary, "--top-s", 4]
        with Served(folder, *words, *STEPS, "--backlog", f"{folder}/advice.txt") as served:
            with live.connect(served.path) as server:
                finished(server)
            _, _, log = served.end()
        for name in names:
            done = sagitta("encode", "--rows", name, *words, "--force", "--output", f"{folder}/one")
            said = log.split(f"wrote   {name[:-3]}-")[1].split("wrote  ")[0]
            for text in "the median norm", "brings no mean", "are massive", "is -":
                ok((text in done.stderr) == (text in said), f"{name}, {text}: {done.stderr} {said}")
                seen.update([text] if text in said else [])
    ok({"the median norm", "brings no mean"} <= seen, f"these are warned of: {seen}")


@claim("wrong lists, and existing results, are refused before any work")
def check_lists(folder, work, other):
    os.symlink(folder, f"{folder}/l")
    rows, there = f"{work.folder}/rows0.h5", f"{work.folder}/want0"
    cases = ((65, "is no pair", f"{rows}\n"), (65, "is no pair", f"{rows} a b\n"),
             (65, "names no files", "# none\n"),
             (65, "lines 1 and 3 of", f"{rows} {folder}/a\n\n{rows} {folder}/a\n"),
             *((65, "have one output", f"{rows} {folder}/a\n{rows} {path}\n") for path in
               (f"{folder}/a/", f"{folder}/./a", f"{folder}/a/b/../supports.h5", f"{folder}/l/a",
                f"{folder}/no/../a/supports.h5", os.path.relpath(f"{folder}/a"))),
             (74, "line 1 of", f"{folder}/none.h5 {folder}/a\n"),
             (65, "columns", f"{other.folder}/rows0.h5 {folder}/a\n"),
             (73, "already exists: --resume keeps", f"{rows} {there}\n"))
    for code, text, content in cases:
        with open(f"{folder}/bad.txt", "w") as f:
            f.write(content)
        done = sagitta("serve", *work.words, "--listen", f"{folder}/b", "--backlog",
                       f"{folder}/bad.txt", "--max-seconds", 2)
        ok(done.returncode == code and text in done.stderr,
           f"{content}: {done.returncode} {done.stderr[-300:]}")
    done = sagitta("serve", *work.words, "--listen", f"{folder}/b", "--backlog", f"{folder}/no.txt")
    ok(done.returncode == 74 and "no.txt" in done.stderr, f"no list: {done.stderr[-300:]}")
    os.link(rows, f"{folder}/same.h5")
    inputs = rows, work.words[1], f"{folder}/list.h5", f"{folder}/same.h5"
    for output in inputs:
        with open(f"{folder}/list.h5", "w") as f:
            f.write(f"{rows} {folder}/a\n{rows} {output}\n")
        before = [open(name, "rb").read() for name in inputs]
        done = sagitta("serve", *work.words, "--listen", f"{folder}/b", "--backlog",
                       f"{folder}/list.h5", "--force", "--max-seconds", 2)
        ok(done.returncode == 73 and "would replace an input" in done.stderr,
           f"{output}: {done.returncode} {done.stderr[-300:]}")
        ok(before == [open(name, "rb").read() for name in inputs], f"inputs stay: {output}")
    with open(f"{folder}/bad.txt", "w") as f:
        f.write(f"{rows} {there}\n")
    for words, code, text in ((("--normalize",), 65, "--normalize"), ((), 0, "complete"),
                              (("--force",), 0, "wrote")):
        with Served(folder, *work.words, *words, "--backlog", f"{folder}/bad.txt", "--resume") as s:
            with live.connect(s.path) as server:
                finished(server)
            got, _, log = s.end()
        ok(got == code and text in log, f"resumed with {words}: {got} {log[-500:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        need("synth", "--n-rows", 40000, "--columns", 20, "--atoms", 50, "--output",
             f"{folder}/data")
        need("seed", "--rows", f"{folder}/data/rows.h5", "--atoms", 30, "--frame", 3, "--output",
             f"{folder}/frames.h5")
        with h5py.File(REAL) as f, h5py.File(f"{folder}/few.h5", "w") as g:
            g["rows"] = f["rows"][:4500]
        need("seed", "--rows", f"{folder}/few.h5", "--atoms", 100, "--center", "--output",
             f"{folder}/start.h5")
        synth = Work(folder, "synth", [9000, 4096, 0, 1, 3000], "--dictionary",
                     f"{folder}/data/dictionary.h5", "--top-s", 9, "--rho", 0.1)
        frames = Work(folder, "frames", [30000, 100], "--dictionary", f"{folder}/frames.h5",
                      "--top-s", 4, "--rounds", 2)
        real = Work(folder, "real", [4400], "--rows", f"{folder}/few.h5", "--dictionary",
                    f"{folder}/start.h5", "--top-s", 6, "--rounds", 6, "--codes", "nonnegative")
        for policy in (["--policy", "off"], ["--policy", "static", "--budget", 100],
                       ["--policy", "dynamic", "--target", 150, "--file-period", 3]):
            check_bits(folder, synth, policy)
        for work in frames, real:
            check_bits(folder, work, ["--policy", "dynamic", "--target", 9999])
        slow = Work(folder, "slow", [33000, 4200], "--dictionary", f"{folder}/frames.h5", "--top-s",
                    4, "--rounds", 4)
        check_stop(folder, slow)
        check_kill(folder, slow)
        check_fail(folder, synth)
        check_left(folder, synth)
        check_memory(folder, real)
        check_advice(folder, real)
        check_lists(folder, synth, real)
    done_testing()


main()
