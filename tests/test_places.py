# SPDX-License-Identifier: BSD-3-Clause
"""Claim: an output never replaces an input, another output or, without --force, an existing file.
Links are not followed.  A run does not remove files that it did not make.  used.in and run.log
belong to the run whose result is there; those of a failed run have other names."""
import os
import shutil
import signal
import tempfile

import h5py
import numpy as np

from jobs import (faulty, job_end, job_start, signal_twice, temporaries, wait_for,
                  wait_for_temporary)
from tap import claim, done_testing, ok, sagitta, skip

PAIR = ("run.log", "used.in")
PAGE = "run.json"
FAILED = ("run.failed.log", "used.failed.in")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def tree(folder):
    """{file: its bytes, or the target of a link} of a folder."""
    return {f: os.readlink(f"{folder}/{f}") if os.path.islink(f"{folder}/{f}") else
            read(f"{folder}/{f}") for f in sorted(os.listdir(folder))}


class Data:
    """Files of every kind, made once.  bad.h5 has a row that is not finite."""

    def __init__(self, folder):
        self.folder = folder
        self.need("synth", "--n-rows", 400, "--atoms", 24, "--columns", 8, "--top-s", 2, "--noise",
                  0.1, "--start-cosine", 0.8, "--output", folder)
        fit = self.words("rows", dictionary="start")
        self.need("encode", *fit, "--top-s", 2, "--output", self.at("supports.h5"))
        self.need("color", *self.words("supports"), "--output", self.at("classes.h5"))
        self.need("assemble", *fit, *self.words("supports"), "--output", self.at("systems.h5"))
        shutil.copy(self.at("rows.h5"), self.at("bad.h5"))
        with h5py.File(self.at("bad.h5"), "r+") as f:
            rows = f["rows"][:]
            del f["rows"]
            rows[399, 3] = np.nan
            f["rows"] = rows

    def at(self, name):
        return os.path.join(self.folder, name)

    def words(self, *names, **files):
        return [w for key, name in (*zip(names, names), *files.items())
                for w in (f"--{key}", self.at(f"{name}.h5"))]

    def encode(self, place, *words, rows="rows.h5"):
        return ["encode", "--rows", self.at(rows), *self.words(dictionary="start"), "--top-s", 2,
                "--output", self.at(place), *words]

    def need(self, *words):
        done = sagitta(*words)
        if done.returncode:
            raise SystemExit(f"Bail out! {done.stderr}")
        return done


@claim("no output of a command replaces an input")
def check_inputs(data):
    fit = dict(rows="rows", dictionary="start", supports="supports")
    commands = {"encode": dict(rows="rows", dictionary="start"), "seed": dict(rows="rows"),
                "color": dict(supports="supports"), "solve": dict(systems="systems"),
                "assemble": dict(fit, classes="classes"), "terminal": fit}
    before, wrong = tree(data.folder), []
    for command, inputs in commands.items():
        more = ["--atoms", 2] if command == "seed" else []
        for name in inputs.values():
            done = sagitta(command, *data.words(**inputs), *more, "--force", "--output",
                           data.at(f"{name}.h5"))
            if done.returncode != 73 or "would replace an input" not in done.stderr:
                wrong.append((command, name, done.returncode, done.stderr[-100:]))
    ok(not wrong and tree(data.folder) == before, f"results as inputs: {wrong}")
    os.mkdir(data.at("in"))
    for name, source in (("dictionary.h5", "start"), ("supports.h5", "supports"),
                         *((name, "rows") for name in (*PAIR, *FAILED))):
        shutil.copy(data.at(f"{source}.h5"), data.at(f"in/{name}"))
        key = "rows" if source == "rows" else name[:-3]
        done = sagitta("refit", *data.words(**{k: v for k, v in fit.items() if k != key}),
                       f"--{key}", data.at(f"in/{name}"), "--force", "--output", data.at("in"))
        ok(done.returncode == 73 and f"{name}' would replace an input" in done.stderr and
           os.listdir(data.at("in")) == [name], f"refit's {key} called {name}: {done.returncode}")
        os.remove(data.at(f"in/{name}"))
    for name, place in (*((name, "in") for name in FAILED),
                        *((f"x.{name}", "in/x.h5") for name in FAILED)):
        shutil.copy(data.at("bad.h5"), data.at(f"in/{name}"))
        done = sagitta(*data.encode(place, rows=f"in/{name}"))
        ok(done.returncode == 73 and f"{name}' would replace an input" in done.stderr and
           read(data.at(f"in/{name}")) == read(data.at("bad.h5")) and
           os.listdir(data.at("in")) == [name], f"bad rows called {name}: {done.returncode}")
        os.remove(data.at(f"in/{name}"))
    deck = data.at("deck.h5")
    with open(deck, "w") as f:
        f.write("top-s = 2\n")
    done = sagitta(*data.encode("deck.h5", deck, "--force"))
    ok(done.returncode == 73 and "the deck" in done.stderr, "a result in place of the deck")
    for name in FAILED:
        deck = data.at(f"in/{name}")
        with open(deck, "w") as f:
            f.write("top-s = 2  # mine\n")
        done = sagitta("encode", deck, *data.words(rows="bad", dictionary="start"), "--output",
                       data.at("in"))
        ok(done.returncode == 73 and "give the deck another name" in done.stderr and
           b"# mine" in read(deck) and os.listdir(data.at("in")) == [name],
           f"the deck {name}: exit {done.returncode} {done.stderr[-200:]}")
        os.remove(deck)


@claim("a dump replaces no input, output or result")
def check_dump(data):
    words = ["terminal", *data.words("rows", "supports", dictionary="start"), "--directions", 1,
             "--spectrum", "none", "--output", data.at("t"), "--force"]
    inputs = data.words("supports", dictionary="start")
    os.mkdir(data.at("t"))
    shutil.copy(data.at("classes.h5"), data.at("t/bytes"))
    shutil.copy(data.at("rows.h5"), data.at("plain.atoms"))
    rows = read(data.at("plain.atoms"))
    for path in ("rows.h5", "classes.h5", "t/terminal.h5", "t/run.log", "t/../t/used.in",
                 "t/.terminal.h5.lock"):
        done = sagitta(*words, "--dump-artifact", data.at(path))
        ok(done.returncode == 73 and "pass for a result" in done.stderr,
           f"{path}: exit {done.returncode}")
    for path in "plain.atoms", "plain":
        done = sagitta("terminal", "--rows", data.at("plain.atoms"), *inputs, "--force", "--output",
                       data.at("t"), "--dump-artifact", data.at(path))
        ok(done.returncode == 73 and "would replace an input" in done.stderr and
           read(data.at("plain.atoms")) == rows, f"{path}: exit {done.returncode}")
    done = sagitta(*words[:-1], "--dump-artifact", data.at("t/bytes"))
    ok(done.returncode == 73 and "--force" in done.stderr,
       "without --force an existing file is refused")
    ok(os.listdir(data.at("t")) == ["bytes"], f"no log is begun {os.listdir(data.at('t'))}")


@claim("links are not followed, and a run removes only what it made")
def check_links(data):
    place = data.at("links")
    os.mkdir(place)
    with open(data.at("precious"), "w") as f:
        f.write("precious")
    for name in ("supports.h5", PAGE, *PAIR, *FAILED):
        os.symlink("../precious", f"{place}/{name}")
    for rows, code in (("rows.h5", 0), ("bad.h5", 65)):
        done = sagitta(*data.encode("links", "--force", rows=rows))
        ok(done.returncode == code and read(data.at("precious")) == b"precious",
           f"exit {done.returncode}, what the links name is as it was")
    links = [f for f in sorted(os.listdir(place)) if os.path.islink(f"{place}/{f}")]
    ok(not links and sorted(os.listdir(place)) == sorted(("supports.h5", PAGE, *PAIR, *FAILED)),
       "files took their places")
    os.mkdir(data.at("named"))
    for rows, code in (("bad.h5", 65), ("rows.h5", 0)):
        for name in "named/supports.h5.tmp", "named/supports.h5.0123456789abcdef.tmp":
            shutil.copy(data.at(rows), data.at(name))
            done = sagitta(*data.encode("named", "--force", rows=name))
            ok(done.returncode == code and read(data.at(name)) == read(data.at(rows)),
               f"an input called {name} survives exit {done.returncode}")


@claim("used.in and run.log belong to the result; those of a failed run are beside them")
def check_pair(data):
    place = data.at("pair")
    failed = sagitta(*data.encode("pair", rows="bad.h5"))
    ok(failed.returncode == 65 and sorted(os.listdir(place)) == sorted(FAILED) and
       b"failed: " in read(f"{place}/run.failed.log"), f"nothing was there: {os.listdir(place)}")
    data.need(*data.encode("pair"))
    good = tree(place)
    ok(sorted(good) == sorted(("supports.h5", PAGE, *PAIR, *FAILED)),
       "the next run has its own used.in and run.log")
    failed = sagitta(*data.encode("pair", "--force", "--rho", 1, rows="bad.h5"))
    ok(failed.returncode == 65 and all(read(f"{place}/{f}") == good[f]
                                       for f in ("supports.h5", PAGE, *PAIR)),
       "a failed run leaves the four files of the earlier run")
    ok(b"rho = 1" in read(f"{place}/used.failed.in") and len(os.listdir(place)) == 6,
       "a failed run writes its own pair beside them")
    data.need(*data.encode("pair", "--force", "--rho", 2))
    ok(b"rho = 2" in read(f"{place}/used.in") and b"wrote" in read(f"{place}/run.log") and
       len(os.listdir(place)) == 6, "a run that succeeds replaces all of them")


@claim("if used.in and run.log cannot be renamed after their result, the run warns and ends with 0")
def check_pair_faults(data):
    if os.environ.get("SANITIZED"):
        skip("a sanitizer must be preloaded first, so this test cannot preload a library")
        return
    place, three = data.at("pair"), ("supports.h5", "used.in", "run.log")
    for n, fails in enumerate(three, 1):
        before = tree(place)
        code, text = faulty(f"rename:{n}", *data.encode("pair", "--force", "--rho", 2 + n))
        now = tree(place)
        new = [f for f in three if now[f] != before[f]]
        want = [f for f in three if f != fails] if n > 1 else []
        ok(code == (0 if n > 1 else 74) and new == want and len(now) == 6 and
           f"/{fails}'" in text and ("warning: cannot rename" in text) == (n > 1),
           f"rename {n}: exit {code}, new are {new} of {sorted(now)} {text[-300:]}")


@claim("the log of a running job can be read; a stopped job leaves it")
def check_progress(data):
    words = ["refit", *data.words("rows", "supports", dictionary="start")]
    data.need("synth", "--n-rows", 3000, "--atoms", 4096, "--output", data.at("large"))
    long = ["encode", "--rows", data.at("large/rows.h5"), "--dictionary",
            data.at("large/dictionary.h5"), "--top-s", 64, "--rounds", 64, "--threads", 1]
    place, good = data.at("pair"), tree(data.at("pair"))
    job = job_start(*long, "--output", data.at("slow"))
    ok(wait_for(data.at("slow/run.log")) and wait_for(data.at("slow/used.in")),
       "a new log has its name at once")
    signal_twice(job, signal.SIGTERM, [job.pid])
    code, _ = job_end(job, 40)
    ok(code == -signal.SIGTERM and sorted(os.listdir(data.at("slow"))) == sorted(FAILED),
       f"the log of a run that a signal ended: {os.listdir(data.at('slow'))}")
    job = job_start(*long, "--force", "--output", place)
    ok(wait_for_temporary(place, "supports.h5") and wait_for_temporary(place, "run.log"),
       "beside an older log a new one has a temporary name")
    signal_twice(job, signal.SIGTERM, [job.pid])
    code, text = job_end(job, 40)
    now = tree(place)
    ok(code == -signal.SIGTERM and f"{place}/run.log." in text and not temporaries(place) and
       all(now[f] == good[f] for f in ("supports.h5", *PAIR)),
       f"the message names the log: {text[:90]}")
    data.need(*words, "--output", data.at("fit"))
    first = read(data.at("fit/run.log"))
    data.need(*words, "--sweeps", 2, "--resume", "--output", data.at("fit"))
    log = read(data.at("fit/run.log"))
    ok(log.startswith(first) and b"resumed after sweep 1" in log[len(first):] and
       b"sweeps = 2" in read(data.at("fit/used.in")), "a resumed run continues the log")
    before = tree(data.at("fit"))
    data.need(*words, "--sweeps", 2, "--resume", "--output", data.at("fit"))
    after = tree(data.at("fit"))
    ok(after["run.log"].startswith(before.pop("run.log")) and
       b"nothing is left to do" in after.pop("run.log") and after == before,
       "a run with nothing left to do leaves the other files")


def main():
    with tempfile.TemporaryDirectory() as folder:
        data = Data(folder)
        for check in (check_inputs, check_dump, check_links, check_pair, check_pair_faults,
                      check_progress):
            check(data)
    done_testing()


main()
