#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random acts on results that grow in a file of their own, whole or by ranges (--join, merge).
After each act it checks that nothing is wrong or hung, and that nothing recorded is lost.

  tests/soak_growing.py --tries 500 --seed 1       all kinds, in the shares of SHARES
  tests/soak_growing.py --only power --tries 50    one kind, and acts that complete a result
  tests/soak_growing.py --seed 1 --life 17         all acts on one result again

A life is the time of one result, from nothing to its end.  Each act runs one or two jobs, on
another number of ranks than the act before.  If an act happens at a call of a function, the seed
determines the call.  Acts at other moments depend on the clock.
  kill   SIGKILL of one rank, of all, or of the launcher, at a moment or at a call for a file
  power  data that were not synced are lost (tests/forget.c), at a moment or at a call
  stop   SIGUSR1 or a file STOP at a moment: the job ends within the seconds that it says
  full   no space is left from some write on, or a sync fails, or a write is lost
  disk   the folder is on a disk of some size
  two    two jobs at once: equal, with other options, with rows that overlap, or a merge
  copy   a copy of the folder replaces it; the copy may be made while a job runs
  clock  the wall clock is a day late or early, and files have other times
  locks  the file system has no locks (ENOLCK)
  pages  the file system writes back whole pages of 64 KiB (tests/whole_pages.c)
  ranks  nothing happens besides the change of the number of ranks
After each act it counts:
  wrong  exit 0 without the result, a result whose bytes are not those of one run, a code that is
         not documented for the act, a file left behind
  hung   a job that did not end within --patience seconds
  lost   rows that a valid record had before the act, and that neither a record nor the result has
         after it
It ends with a table, and with exit code 1 if something was wrong, hung or lost.  Needs h5py, numpy
and, for disk, the right to mount.  tests/test_soak_growing.py is a short run."""
import argparse
import collections
import glob
import hashlib
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
if __name__ == "__main__":
    os.environ.setdefault("builddir", "build")
    os.environ["builddir"] = os.path.abspath(os.environ["builddir"])

import h5py  # noqa: E402, after the path to the program
import numpy as np  # noqa: E402

from jobs import (FAULTS, environment, heeds, job_end, job_ranks, job_start,  # noqa: E402
                  temporaries, wait_until)
from tap import SAGITTA, later_wins, launch, sagitta  # noqa: E402

SHARES = {"kill": 40, "power": 8, "stop": 9, "full": 9, "disk": 4, "two": 9, "copy": 6, "clock": 5,
          "locks": 5, "pages": 4, "ranks": 5}
BLOCK = 4096
N, P, TOP_S = 12 * BLOCK + 321, 16, 4
PAGE = 1 << 16
FORGET = os.path.join(os.path.dirname(FAULTS), "forget.so")
PAGES = os.path.join(os.path.dirname(FAULTS), "whole_pages.so")
CUT = 40  # the signal of tests/forget.c
LONGEST = 12  # most acts of a life; then no more faults happen
SETTINGS = {"plain": ("encode",), "route": ("route",), "center": ("encode", "--center"),
            "rounds": ("encode", "--rounds", 2, "--rho", 0.3),
            "frames": ("encode", "--dictionary", "FRAMES"),
            "nonnegative": ("encode", "--codes", "nonnegative", "--normalize"),
            "zeros": ("encode", "--rows", "ZEROS")}


class Data:
    """Rows, dictionaries, and the results of uninterrupted runs."""

    def __init__(self, folder, patience):
        self.folder, self.patience, self.wholes = folder, patience, {}
        values = np.random.default_rng(5).standard_normal((N, P)).astype("f4")
        np.save(f"{folder}/rows.npy", values)
        values[BLOCK:5 * BLOCK] = 0
        np.save(f"{folder}/zeros.npy", values)
        self.must("seed", "--rows", f"{folder}/rows.npy", "--atoms", 40, "--output",
                  f"{folder}/d.h5")
        self.must("synth", "--n-rows", 10, "--columns", P, "--atoms", 12, "--frame", 3, "--output",
                  f"{folder}/frames")
        self.took = {"whole": 1, "range": 1, "merge": 1}  # seconds that a job works
        self.may_mount = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"],
                                        stderr=subprocess.DEVNULL).returncode == 0

    def measure(self, options):
        """Measure how long jobs work on this machine now."""
        life = Life(self, options, -1)
        for work in life.whole_work(), life.range_work(0, N):
            job = life.start(work, 2)
            life.works(job, work)
            code, text = life.end(job)
            if code:
                raise SystemExit(f"cannot prepare: {work.words}: {text}")
            self.took[work.kind] = time.time() - job.works
            if os.path.exists(life.result):
                os.remove(life.result)
        self.took["range"] /= 3
        self.took["merge"] = self.took["range"]
        shutil.rmtree(life.folder)

    @staticmethod
    def must(*words):
        done = sagitta(*words)
        if done.returncode:
            raise SystemExit(f"cannot prepare: {words}: {done.stderr}")

    def words(self, setting, rows=None):
        names = {"FRAMES": f"{self.folder}/frames/dictionary.h5",
                 "ZEROS": f"{self.folder}/zeros.npy"}
        command, *more = (names.get(w, w) for w in SETTINGS[setting])
        words = later_wins("--rows", f"{self.folder}/rows.npy", "--dictionary",
                           f"{self.folder}/d.h5", "--top-s", TOP_S, "--threads", 1, "--block",
                           BLOCK, *more)
        return [command, *(later_wins(*words, "--rows", rows) if rows else words)]

    def whole(self, setting):
        if setting not in self.wholes:
            path = f"{self.folder}/whole-{setting}.h5"
            self.must(*self.words(setting), "--output", path)
            self.wholes[setting] = path
        return self.wholes[setting]

    def rows_of(self, setting):
        return f"{self.folder}/{'zeros' if setting == 'zeros' else 'rows'}.npy"


def kind_of(path):
    with h5py.File(path) as f:
        return f.attrs["kind"] if "kind" in f.attrs else None


def rows_hash(path):
    """The hash of all bytes from the first chunk of rows on.  They are equal in all runs."""
    with h5py.File(path) as f:
        base = min(d.id.get_chunk_info(0).byte_offset for d in f["supports"].values())
    with open(path, "rb") as f:
        f.seek(base)
        return hashlib.sha256(f.read()).hexdigest()


def journal_rows(path):
    """The rows of the last valid record of a journal; 0 if there is none."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < PAGE:
        return 0
    arrays, most = struct.unpack_from("<qq", data, 24)
    if not 0 < arrays <= 4:
        return 0
    chunks, chunk_rows = (struct.unpack_from("<4q", data, at)[:arrays] for at in (48, 80))
    first = -(-(PAGE + 32 * sum(chunks)) // PAGE) * PAGE
    step = -(-(88 + most) // PAGE) * PAGE
    best = (0, 0)
    for at in first, first + step:
        if len(data) < at + 88:
            continue
        number, rows, size = struct.unpack_from("<3q", data, at)
        if not 0 < size <= most or len(data) < at + 88 + size:
            continue
        record = data[at:at + 56] + data[at + 88:at + 88 + size]
        leaves = hashlib.sha256()
        for a in range(arrays):
            begin = PAGE + 32 * sum(chunks[:a])
            leaves.update(data[begin:begin + 32 * -(-rows // chunk_rows[a])])
        if hashlib.sha256(record).digest() == data[at + 56:at + 88] and \
                leaves.digest() == data[at + 24:at + 56]:
            best = max(best, (number, rows))
    return best[1]


def part_rows(path):
    with h5py.File(path) as f:
        return int(f["part"].attrs["rows"])


class Work:
    """A job that may be run: its kind, its words, and the lock of its file."""

    def __init__(self, kind, words, lock, journal=None):
        self.kind, self.words, self.lock, self.journal = kind, words, lock, journal
        self.is_early = False


class Life:
    def __init__(self, data, options, number):
        self.data, self.options, self.number = data, options, number
        self.draw = random.Random(f"{options.seed} {number}")
        self.folder = f"{data.folder}/life{number}"
        self.out = f"{self.folder}/out"
        self.joins = self.draw.random() < 0.5
        self.setting = self.draw.choice(sorted(SETTINGS))
        self.result = f"{self.out}/{'supports' if self.joins else 'x'}.h5"
        self.rows = None  # this life's own copy of the rows
        at = sorted(self.draw.sample(range(1, N // BLOCK + 1), self.draw.randrange(1, 5)))
        self.cut = [0, *(BLOCK * i for i in at), N]
        self.ranks = -1
        self.is_torn = False  # a copy that was made while a job ran may be refused
        self.over, self.acts, self.did, self.bad, self.counts = False, 0, [], [], \
            collections.Counter()
        os.makedirs(self.out)

    def say(self, text):
        self.did.append(text)

    def find(self, outcome, text):
        self.bad.append((outcome, f"life {self.number}, {self.setting}, "
                         f"{'ranges' if self.joins else 'one piece'}: {' | '.join(self.did)}: "
                         f"{' / '.join(text.split(chr(10)))[-900:]}"))

    # What there is.

    def recorded(self):
        """{journal: rows that it has recorded}; {"part": rows} if the result is a part."""
        found = {}
        for path in glob.glob(f"{self.out}/*.journal"):
            found[os.path.basename(path)] = journal_rows(path)
        if not self.joins and os.path.exists(self.result):
            try:
                if kind_of(self.result) == "part":
                    found["part"] = part_rows(self.result)
            except OSError:
                pass
        return found

    def range_rows(self, first, end):
        return sum(rows for name, rows in self.recorded().items()
                   if name.endswith(f".{first}-{end}.journal"))

    def ranges_left(self):
        return [(a, b) for a, b in zip(self.cut, self.cut[1:]) if self.range_rows(a, b) < b - a]

    # Jobs.

    def range_work(self, first, end, *more):
        words = self.data.words(self.setting, self.rows)
        return Work("range", [*later_wins(*words, "--join", "--row-range", f"{first}:{end}",
                                          "--resume", "--save-seconds", 1e-9, *more, "--output",
                                          self.out)],
                    f"{self.out}/.part-{first:015d}.h5.lock", (first, end))

    def whole_work(self, *more):
        words = self.data.words(self.setting, self.rows)
        return Work("whole", [*later_wins(*words, "--resume", "--save-seconds", 1e-9, *more,
                                          "--output", self.result)],
                    f"{self.out}/.{os.path.basename(self.result)}.lock")

    def merge_work(self):
        return Work("merge", ["merge", self.out], f"{self.out}/.supports.h5.lock")

    def work(self):
        work = self.work_draw()
        work.is_early = work.kind == "merge" and bool(self.ranges_left())
        return work

    def work_draw(self):
        if not self.joins:
            return self.whole_work()
        left = self.ranges_left()
        if left and self.draw.random() < 0.95:
            return self.range_work(*self.draw.choice(left))
        return self.merge_work()

    def ranks_choose(self, work, most=4):
        """Choose another number of ranks than before."""
        of = [r for r in ((0, 1, 2, 3) if work.kind != "whole" else (1, 2, 2, 3, 3, 4))
              if r != self.ranks and r <= most]
        self.counts["others"] += self.ranks >= 0
        self.ranks = self.draw.choice(of)
        return self.ranks

    def command(self, work, ranks):
        grids = {2: ["2x1", "2x1", "1x2"], 3: ["3x1", "3x1", "1x3"],
                 4: ["4x1", "4x1", "2x2"]}.get(ranks, [f"{ranks}x1"])
        if work.kind == "merge" or not ranks:
            return work.words
        return [*work.words, "--grid", self.draw.choice(grids)]

    def start(self, work, ranks=None, **more):
        if ranks is None:
            ranks = self.ranks_choose(work)
        if os.path.exists(work.lock) and work.kind != "merge":
            os.remove(work.lock)
        job = job_start(*self.command(work, ranks), ranks=ranks, **more)
        job.count, job.begun = ranks, time.time()
        return job

    def pids(self, job):
        if job.poll() is not None:
            return []
        return job_ranks(job) if job.count else [job.pid]

    def works(self, job, work):
        """Wait until the job has begun to use its file."""
        wait_until(lambda: os.path.exists(work.lock) or job.poll() is not None)
        job.works = time.time()

    def moment(self, work):
        time.sleep(self.draw.uniform(0, self.draw.choice((0.2, 1))) * self.data.took[work.kind])

    def end(self, job, pids=()):
        """Wait for a job, and for its ranks, which may outlive a launcher that is killed.  Ranks
        that do not end are killed.  Returns (code, text)."""
        pids = pids or self.pids(job)
        code, text = job_end(job, self.data.patience)
        begun = time.time()
        while (left := [p for p in pids if os.path.exists(f"/proc/{p}") and is_alive(p)]):
            if time.time() - begun > self.data.patience:
                self.find("hung", f"ranks still run: {text}")
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                break
            time.sleep(0.05)
        if code is not None and code < 0:
            code = 128 - code
        return code, text

    # Judging.

    def judge(self, before, work, code, text, allowed, is_alone=True):
        """Check the files after an act."""
        if code is None:
            return self.find("hung", text)
        if self.is_torn:
            allowed = {*allowed, 65, 73, 74}
        if work.is_early and is_alone:  # merge is too early, and names what is missing
            allowed = {*allowed, 65} - {0}
        if code not in allowed or code in (139, 134, 135, 136):
            self.find("wrong", f"exit {code}, not {sorted(allowed)}: {text}")
        resumed = re.search(r"resume  after (\d+) of", text)
        name = next((n for n in before if work.kind == "whole" or (
            work.kind == "range" and n.endswith(".%d-%d.journal" % work.journal))), None)
        if is_alone and resumed and name and int(resumed[1]) < before[name]:
            self.find("lost", f"resumed after {resumed[1]} rows of {before[name]} recorded: {text}")
        if self.result_check(code, work, text):
            return self.end_life()
        now = self.recorded()
        most = {name: max(now.get(name, 0), *(now.values() if not self.joins else (0,)), 0)
                for name in before}
        for name, rows in before.items():
            if most[name] < rows and is_alone:
                self.find("lost", f"{name}: {rows} before, {now} now, exit {code}: {text}")
        if code == 0 and work.kind == "range":
            first, end = work.journal
            if self.range_rows(first, end) != end - first:
                self.find("wrong", f"exit 0, and {now}: {text}")
        if self.is_torn and code in (65, 73, 74):
            self.counts["copies refused"] += 1
            return self.end_life()
        return None

    def end_life(self):
        self.over = True

    def result_check(self, code, work, text):
        """Is there a result?  If so, it must be that of one run."""
        there = os.path.exists(self.result)
        if there:
            try:
                there = kind_of(self.result) != "part"
            except OSError as error:
                self.find("wrong", f"exit {code}, and no sound result: {error} {text}")
                return True
        if not there:
            if code == 0 and work.kind != "range":
                self.find("wrong", f"exit 0, but no result: {text}")
            return False
        whole = self.data.whole(self.setting)
        done = sagitta("diff", whole, self.result)
        if done.returncode or done.stdout or rows_hash(whole) != rows_hash(self.result):
            self.find("wrong", f"exit {code}, but other bytes: {done.stdout}{done.stderr} {text}")
        done = sagitta("verify", self.result)
        if done.returncode:
            self.find("wrong", f"exit {code}, but verify fails: {done.stderr} {text}")
        return True

    def litter_check(self, is_killed):
        for path in temporaries(self.out):
            if not is_killed:
                self.find("wrong", f"litter: {path}")
            os.remove(path)

    # Acts.

    def fault(self, **more):
        return dict(LD_PRELOAD=FAULTS, FAULT_IN=self.out, **more)

    def rank_of(self, ranks):
        return {"FAULT_RANK": str(self.draw.randrange(ranks))} if ranks else {}

    def kill(self):
        work, before, pids = self.work(), self.recorded(), []
        ranks = self.ranks_choose(work)
        if self.draw.random() < 0.5:
            n = int(2 ** self.draw.uniform(0, 8.5))
            of = self.draw.choice(("*.growing", "*.growing", "*.journal", "*"))
            self.say(f"kill {work.kind} on {ranks} at call {n} for {of}")
            job = self.start(work, ranks, **self.fault(FAULT=f"signal:{n}", FAULT_SIGNAL="9",
                                                       FAULT_OF=of, **self.rank_of(ranks)))
        else:
            who = self.draw.choice(("one", "all", "all", "launcher"))
            self.say(f"kill {work.kind} on {ranks}: {who}")
            job = self.start(work, ranks)
            self.works(job, work)
            self.moment(work)
            pids = self.pids(job)
            killed = [self.draw.choice(pids)] if who == "one" and pids else pids
            if who == "launcher" and ranks:
                killed = [job.pid] if job.poll() is None else []
            for pid in killed:
                kill(pid, signal.SIGKILL)
        code, text = self.end(job, pids)
        self.counts["kills"] += code != 0
        self.judge(before, work, code, text, {0, 76, 137, 1, 143} if ranks else {0, 137})
        self.litter_check(True)

    def power(self):
        work, before = self.work(), self.recorded()
        ranks = self.ranks_choose(work)
        more = dict(LD_PRELOAD=FORGET, FORGET_IN=self.out,
                    FORGET_SEED=str(self.draw.randrange(1 << 30)))
        if self.draw.random() < 0.6:
            n = int(2 ** self.draw.uniform(0, 7))
            self.say(f"power of {work.kind} on {ranks} at call {n}")
            if ranks:
                more["FORGET_RANK"] = str(self.draw.randrange(ranks))
            job = self.start(work, ranks, **more, FORGET_AT=str(n))
        else:
            self.say(f"power of {work.kind} on {ranks}")
            job = self.start(work, ranks, **more)
            self.works(job, work)
            self.moment(work)
            for pid in self.pids(job):
                kill(pid, CUT)
        code, text = self.end(job)
        self.counts["cuts"] += code != 0
        self.judge(before, work, code, text, {0, 76, 137, 1, 143} if ranks else {0, 137})
        self.litter_check(True)

    def stop(self):
        work, before = self.work(), self.recorded()
        job = self.start(work)
        how = self.draw.choice(("all", "one", "STOP"))
        self.say(f"stop {work.kind} on {job.count}: {how}")
        self.works(job, work)
        self.moment(work)
        pids = [pid for pid in self.pids(job) if heeds(pid)]
        stop_file = f"{self.out}/STOP"
        if how == "STOP":
            open(stop_file, "w").close()
        elif pids:
            for pid in pids if how == "all" else [self.draw.choice(pids)]:
                kill(pid, signal.SIGUSR1)
        begun = time.time()
        code, text = self.end(job)
        said = re.findall(r"stops   within (\d+) s", text)
        if said and time.time() - begun > float(said[-1]) + 3:
            self.find("wrong", f"{time.time() - begun:.1f} s of {said[-1]}: {text}")
        if os.path.exists(stop_file):
            os.remove(stop_file)
        self.counts["stops"] += code == 75
        self.judge(before, work, code, text, {0, 75})
        self.litter_check(False)

    def full(self):
        work, before = self.work(), self.recorded()
        ranks = self.ranks_choose(work)
        fault, of = self.draw.choice((
            ("write", "*"), ("write", "*.growing"), ("write", "*.journal"), ("fsync", "*.growing"),
            ("fsync", "*.journal"), ("lose", "*.growing"), ("room", "*"), ("rename", "*"),
            ("read", "*.growing"), ("close", "*")))
        n = int(2 ** self.draw.uniform(0, 6)) if fault in ("write", "lose", "read") else \
            self.draw.randrange(1, 6)
        lasts = "+" * (fault != "lose" and self.draw.random() < 0.5)
        self.say(f"{fault}:{n}{lasts} of {of}, {work.kind} on {ranks}")
        job = self.start(work, ranks, **self.fault(FAULT=f"{fault}:{n}{lasts}", FAULT_OF=of,
                                                   **self.rank_of(ranks)))
        code, text = self.end(job)
        self.counts["full"] += code != 0
        self.judge(before, work, code, text, {0, 73, 74})
        self.litter_check("MPI_ABORT" in text)

    def disk(self):
        work, before = self.work(), self.recorded()
        ranks = self.ranks_choose(work)
        room = int(self.draw.uniform(0, 1.3) * os.path.getsize(self.data.whole(self.setting)))
        held = sum(os.stat(f).st_blocks * 512 for f in glob.glob(f"{self.out}/*"))
        size = (held + room + PAGE) // 4096 * 4096
        self.say(f"disk with room for {room}, {work.kind} on {ranks}")
        script = """mkdir "$0.disk"; mount -t tmpfs -o size=$1 none "$0.disk" || exit 200
            cp -a "$0/." "$0.disk" || exit 201; mount --bind "$0.disk" "$0" || exit 202; shift
            "$@"; code=$?; umount "$0"; cp -a "$0.disk" "$0.kept"; umount "$0.disk"
            rm -rf "$0" "$0.disk"; mv "$0.kept" "$0"; exit $code"""
        job = subprocess.Popen(["unshare", "-rm", "sh", "-c", script, self.out, str(size),
                                *launch(ranks), SAGITTA, *later_wins(*self.command(work, ranks))],
                               text=True, env=environment(), stderr=subprocess.PIPE)
        code, text = job_end(job, self.data.patience)
        self.counts["disks"] += code != 0
        self.judge(before, work, code, text, {0, 73, 74})
        self.litter_check(False)

    def two(self):
        first, before, is_alone = self.work(), self.recorded(), True
        second, allowed, more, ways = first, ({0, 73}, {0, 73}), {}, ["same", "same", "unlocked"]
        if any(before.values()) and first.kind != "merge":
            ways.append("other")
        if first.kind == "range":
            ways += ["overlap", "beside", "merge"]
        way = self.draw.choice(ways)
        if first.is_early:
            allowed = ({65, 73},) * 2
        if way == "unlocked":
            more = self.fault(FAULT="lock:1+")
            allowed, is_alone = ({0, 73, 74, 65},) * 2, False
        elif way == "other":
            other = ["--rho", 0.7] if "route" != self.setting else ["--top-s", 3]
            second = self.range_work(*first.journal, *other) if self.joins else \
                self.whole_work(*other)
            allowed = {0, 73}, {65, 73}
        elif way == "overlap":
            a, b = first.journal
            c = a + BLOCK if b - a > BLOCK else max(0, a - BLOCK)
            d = b if c > a else b
            second = self.range_work(c, min(N, d + BLOCK if c == a + BLOCK and d < N else d))
            if second.journal == first.journal:
                second = self.merge_work()
            allowed = {0, 73}, {0, 73}
        elif way == "beside":
            second = self.range_work(*self.draw.choice(self.ranges_left()))
            allowed = ({0}, {0}) if second.journal != first.journal else allowed
        elif way == "merge":
            second, allowed = self.merge_work(), ({0, 73}, {0, 65, 73})
        ranks = self.ranks_choose(first), self.draw.choice((1, 2) if first.kind == "whole" else
                                                          (0, 0, 2))
        self.say(f"two {first.kind} on {ranks}: {way}")
        jobs = [self.start(first, ranks[0], **more)]
        time.sleep(self.draw.choice((0, self.draw.uniform(0, 0.5))))
        jobs.append(job_start(*self.command(second, ranks[1]), ranks=ranks[1], **more))
        jobs[1].count = ranks[1]
        ends = [self.end(job) for job in jobs]
        if way in ("same", "beside") and not first.is_early and all(code for code, _ in ends):
            self.find("wrong", f"both jobs are refused: {ends}")
        for (code, text), may, work in zip(ends, allowed, (first, second)):
            if not self.over:
                self.judge(before, work, code, text, may, is_alone=is_alone)
            elif code not in may:
                self.find("wrong", f"exit {code}, not {sorted(may)}: {text}")
        if way == "overlap" and second.kind == "range":
            self.overlap_drop(second)
        self.counts["refused one of two"] += any(code for code, _ in ends)
        self.litter_check(False)

    def overlap_drop(self, work):
        """Remove the job's journal, if there is one: the ranges of this life cover the rows of the
        job's range."""
        for path in glob.glob(f"{self.out}/*.{work.journal[0]}-{work.journal[1]}.journal"):
            os.remove(path)

    def copy(self):
        at_work = self.draw.random() < 0.6
        other, keeps = f"{self.folder}/copy{self.acts}", self.draw.random() < 0.5
        self.say(f"copy{' at work' * at_work}{' with times' * keeps}")
        job = work = None
        before = self.recorded()
        if at_work:
            work = self.work()
            job = self.start(work)
            self.works(job, work)
            self.moment(work)
        names = os.listdir(self.out)
        self.draw.shuffle(names)
        os.mkdir(other)
        for name in names:
            try:
                (shutil.copy2 if keeps else shutil.copy)(f"{self.out}/{name}", other)
            except FileNotFoundError:
                pass
        if at_work:
            code, text = self.end(job)
            self.judge(before, work, code, text, {0})
            self.over = False
        for path in temporaries(other):
            os.remove(path)
        shutil.rmtree(self.out)
        self.result = f"{other}/{os.path.basename(self.result)}"
        self.out = other
        self.is_torn = self.is_torn or at_work
        if os.path.exists(self.result) and not os.path.exists(f"{other}/STOP"):
            self.copied_check()
        if self.draw.random() < 0.3:
            self.rows = f"{self.folder}/rows{self.acts}.npy"
            shutil.copy(self.data.rows_of(self.setting), self.rows)
        self.counts["copies"] += 1

    def copied_check(self):
        """If the result in the copy is complete, check it, and end this life."""
        try:
            is_whole = kind_of(self.result) != "part"
        except OSError:
            is_whole = False
        if is_whole and self.result_check(0, self.merge_work(), "in a copy"):
            self.end_life()

    def clock(self):
        work, before = self.work(), self.recorded()
        now = time.time()
        for path in glob.glob(f"{self.out}/*") + [self.rows] * bool(self.rows):
            t = self.draw.choice((1, now - 86400, now + 86400))
            os.utime(path, (t, t))
        fault = self.draw.choice(("back", "back", "jump"))
        ranks = self.ranks_choose(work)
        n = int(2 ** self.draw.uniform(0, 9))
        who = self.rank_of(ranks) if self.draw.random() < 0.5 else {}
        self.say(f"clock {fault} at look {n}, {who} {work.kind} on {ranks}")
        code, text = self.end(self.start(work, ranks, LD_PRELOAD=FAULTS, FAULT=f"{fault}:{n}",
                                         **who))
        self.judge(before, work, code, text, {0})
        self.litter_check(False)

    def locks(self):
        work, before = self.work(), self.recorded()
        self.say(f"no locks, {work.kind} on")
        job = self.start(work, **self.fault(FAULT="lock:1+"))
        self.did[-1] += f" {job.count}"
        code, text = self.end(job)
        self.judge(before, work, code, text, {0})
        self.litter_check(False)

    def pages(self):
        work, before = self.work(), self.recorded()
        job = self.start(work, LD_PRELOAD=PAGES, WHOLE_IN=self.out)
        self.say(f"whole pages, {work.kind} on {job.count}")
        code, text = self.end(job)
        self.judge(before, work, code, text, {0})
        self.litter_check(False)

    def ranks_act(self):
        work, before = self.work(), self.recorded()
        job = self.start(work)
        self.say(f"{work.kind} on {job.count}")
        code, text = self.end(job)
        self.judge(before, work, code, text, {0})
        self.litter_check(False)

    def act(self):
        """One act of a random kind.  Returns its kind."""
        kinds = [k for k in SHARES if self.data.may_mount or k != "disk"]
        kind = self.draw.choices(kinds, [SHARES[k] for k in kinds])[0]
        if self.options.only and kind != "ranks":
            kind = self.options.only
        if self.acts >= LONGEST:
            kind = "ranks"
        self.acts += 1
        begun, found = time.time(), len(self.bad)
        (self.ranks_act if kind == "ranks" else getattr(self, kind))()
        if self.options.verbose:
            print(f"life {self.number} {kind} {time.time() - begun:.1f} s: {self.did[-1]}",
                  flush=True)
        if len(self.bad) > found:
            self.over = True
        return kind


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Soak:
    """Runs acts, and counts their outcomes."""

    def __init__(self, options):
        self.options, self.kinds = options, collections.Counter()
        self.bad, self.counts, self.lives, self.ended = [], collections.Counter(), 0, 0
        self.longest = collections.Counter()

    def life(self, data, number):
        life = Life(data, self.options, number)
        while not life.over and sum(self.kinds.values()) < self.options.tries:
            begun = time.time()
            kind = life.act()
            self.kinds[kind] += 1
            self.longest[kind] = max(self.longest[kind], time.time() - begun)
        self.lives += 1
        self.ended += life.over
        self.counts += life.counts
        for outcome, text in life.bad:
            print(f"{outcome}: --seed {self.options.seed} --life {number}: {text}", flush=True)
        self.bad += life.bad
        if life.bad and self.options.keep:
            shutil.copytree(life.folder, f"{self.options.keep}/{self.options.seed}-{number}",
                            dirs_exist_ok=True)
        shutil.rmtree(life.folder, ignore_errors=True)

    def run(self):
        with tempfile.TemporaryDirectory(prefix="soak-growing-") as folder:
            data = Data(folder, self.options.patience)
            data.measure(self.options)
            print(f"# seconds of work: {data.took}", flush=True)
            if self.options.life is not None:
                self.life(data, self.options.life)
            number = 0
            while self.options.life is None and sum(self.kinds.values()) < self.options.tries:
                self.life(data, number)
                number += 1
        return self

    def outcomes(self):
        return {name: sum(outcome == name for outcome, _ in self.bad)
                for name in ("wrong", "hung", "lost")}

    def table_print(self):
        print("\n| kind | acts | longest s |\n|---|---|---|")
        for kind in SHARES:
            if self.kinds[kind]:
                print(f"| {kind} | {self.kinds[kind]} | {self.longest[kind]:.1f} |")
        print(", ".join([f"{sum(self.kinds.values())} acts on {self.lives} results",
                         *(f"{count} {name}" for name, count in self.outcomes().items()),
                         *(f"{name}: {count}" for name, count in sorted(self.counts.items()))]),
              flush=True)


def options_read(words=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=500, metavar="ACTS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--life", type=int, help="run only this life")
    parser.add_argument("--only", choices=SHARES, metavar="KIND")
    parser.add_argument("--keep", metavar="FOLDER", help="folder for the results of wrong acts")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(words)


def main():
    soak = Soak(options_read()).run()
    soak.table_print()
    return any(soak.outcomes().values())


if __name__ == "__main__":
    sys.exit(main())
