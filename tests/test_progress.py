# SPDX-License-Identifier: BSD-3-Clause
"""Claim: on a terminal, progress is that of the whole job, also if an earlier run is continued, and
refit names the sweep.  --max-seconds ends refit and train at a point from which --resume
continues."""
import json
import os
import pty
import re
import subprocess
import tempfile

import numpy as np

from jobs import environment
from tap import SAGITTA, claim, done_testing, need, ok, sagitta, same

BLOCK, N, P = 4096, 20480, 256


def watched(*words):
    """The progress lines (what, done, total, percent) of a job whose stderr is a terminal."""
    own, its = pty.openpty()
    job = subprocess.Popen([SAGITTA, *map(str, words)], stderr=its, env=environment())
    os.close(its)
    text = b""
    try:
        while part := os.read(own, 65536):
            text += part
    except OSError:  # the other side was closed
        pass
    os.close(own)
    ok(job.wait() == 0, f"{words[0]}: {text[-300:]}")
    return [(what.split(), int(done), int(total), int(percent)) for what, done, total, percent in
            re.findall(r"\r([a-z][a-z0-9 :]*?) +(\d+) of (\d+) \w+ \((\d+) %\)", text.decode())]


@claim("a resumed encode counts all rows")
def check_encode(at):
    slow = ["--rows", f"{at}/rows.npy", "--dictionary", f"{at}/d", "--top-s", 32, "--rounds", 8,
            "--filter", "off", "--threads", 1, "--block", 256, "--output", f"{at}/codes"]
    done = sagitta("encode", *slow, "--max-seconds", 1e-4)
    ok(done.returncode == 75, done.stderr[-300:])
    lines = watched("encode", *slow, "--resume")
    ok(lines, "progress lines are printed")
    before = BLOCK
    for what, rows, total, percent in lines:
        ok(what == ["encode"] and before <= rows <= total == N and percent == round(100 * rows / N),
           f"{what} {rows} of {total}, {percent} %")
        before = rows


@claim("--progress-fd gets the progress, the warnings and the log, as lines of JSON")
def check_events(at):
    words = ["--rows", f"{at}/rows.npy", "--atoms", 32, "--top-s", 4, "--sweeps", 2, "--quiet"]
    ours, its = os.pipe()
    job = subprocess.Popen([SAGITTA, "fit", *map(str, words), "--output", f"{at}/events",
                            "--progress-fd", str(its)], pass_fds=(its,), env=environment(),
                           stderr=subprocess.PIPE, text=True)
    os.close(its)
    with open(ours, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    said = job.communicate()[1]
    ok(job.returncode == 0 and not said.count("{"), said[-300:])
    kinds = {event["event"] for event in events}
    ok(kinds >= {"progress", "log"} and kinds <= {"progress", "log", "warning"}, f"{kinds}")
    last = {event["what"]: event for event in events if event["event"] == "progress"}
    ok(last and all(event["done"] == event["total"] for event in last.values()), f"{last}")
    with open(f"{at}/events/used.in", encoding="utf-8") as f:
        ok("progress-fd" not in f.read(), "used.in can be run again")
    two = sagitta("fit", *words, "--output", f"{at}/events2", "--progress-fd", 2, ranks=2)
    found = [line for line in two.stderr.split("\n") if line.startswith('{ "event"')]
    ok(two.returncode == 0 and len(found) > 4 and all(map(json.loads, found)), "of two ranks")
    same(f"{at}/events", f"{at}/events2", "no bit depends on it")
    for number, words_of in ((999, "'--progress-fd 999' is not open for writing"), (1, "not in 2")):
        done = sagitta("fit", *words, "--output", f"{at}/none", "--progress-fd", number)
        ok(done.returncode == 2 and words_of in done.stderr, done.stderr)


@claim("training shows progress between two looks at the held-out rows, also if resumed")
def check_train(at):
    words = ["--rows", f"{at}/rows.npy", "--atoms", 1024, "--top-s", 9, "--batch", 300, "--steps",
             269, "--holdout-share", 0, "--threads", 1, "--device", "cpu", "--output",
             f"{at}/train"]
    done = sagitta("train", *words, "--max-seconds", 1e-4)
    ok(done.returncode == 75, done.stderr[-300:])
    lines, before = watched("train", *words, "--resume"), 16 * 300
    ok(lines, "progress lines are printed")
    for what, rows, total, percent in lines:
        ok(what == ["train"] and before <= rows <= total == 3 * N + 62 * 300 and
           percent == round(100 * rows / total), f"{what} {rows} of {total}, {percent} %")
        before = rows


@claim("a refit's progress names the sweep")
def check_refit(at):
    lines = watched("refit", "--rows", f"{at}/rows.npy", "--dictionary", f"{at}/d", "--supports",
                    f"{at}/codes", "--sweeps", 2, "--directions", 16, "--threads", 1, "--device",
                    "cpu", "--output", f"{at}/refit")
    of = {what[1] for what, *_ in lines if what[0] == "sweep" and what[2:] == ["of", "2:"]}
    ok(of and of <= {"1", "2"}, f"{lines[:4]}")


@claim("--max-seconds ends refit after some atoms and train after some steps, and --resume "
       "continues")
def check_limit(at):
    jobs = {"refit": ["--rows", f"{at}/rows.npy", "--dictionary", f"{at}/d", "--supports",
                      f"{at}/codes", "--sweeps", 2],
            "train": ["--rows", f"{at}/rows.npy", "--atoms", 32, "--top-s", 4, "--steps", 60]}
    for name, words in jobs.items():
        out = f"{at}/{name}-parts"
        need(sagitta(name, *words, "--output", f"{at}/{name}-whole"), name)
        codes = []
        while len(codes) < 9 and (not codes or codes[-1] == 75):
            limit = [] if len(codes) > 3 and name == "refit" else ["--max-seconds", 1e-4]
            done = sagitta(name, *words, "--output", out, "--resume", *limit,
                           ranks=len(codes) % 2 + 1)
            codes.append(done.returncode)
            ok(codes[-1] == 0 or "stopped by --max-seconds" in done.stderr, done.stderr[-300:])
        ok(codes == [75] * (len(codes) - 1) + [0] and len(codes) > 1, f"{name}: {codes}")
        same(f"{at}/{name}-whole/dictionary.h5", f"{out}/dictionary.h5", name)


def main():
    with tempfile.TemporaryDirectory() as at:
        rows = np.random.default_rng(5).standard_normal((N, P)).astype("f4")
        np.save(f"{at}/rows.npy", rows)
        need(sagitta("seed", "--rows", f"{at}/rows.npy", "--atoms", 2048, "--output", f"{at}/d"),
             "seed")
        check_events(at)
        check_encode(at)
        check_train(at)
        check_refit(at)
        check_limit(at)
    done_testing()


main()
