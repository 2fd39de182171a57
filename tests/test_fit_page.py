# SPDX-License-Identifier: BSD-3-Clause
"""Claim: run.json has what history, supports and log of a fit have, with any characters in names.
It belongs to the run whose results are beside it, and can be read at any time.  It replaces no
input, and nothing that a link names."""
import json
import math
import os
import re
import shutil
import signal
import tempfile

import h5py
import numpy as np

from jobs import faulty, temporaries
from tap import claim, done_testing, later_wins, ok, sagitta, skip

OF_HISTORY = ("sweep", "fitted", "unseen", "dead", "revived", "accepted", "rejected", "escalated")
ODD = 'a "b"\t\\n\u00fc\u2028'  # quotes, a tab, a backslash, a letter and a line end of Unicode


class Place:
    def __init__(self, folder):
        random = np.random.default_rng(7)
        self.folder, self.rows = folder, random.standard_normal((1500, 10)).astype("f4")
        np.save(self.at("rows.npy"), self.rows)
        bad = self.rows.copy()
        bad[1400, 3] = np.nan
        np.save(self.at("bad.npy"), bad)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def words(self, out, sweeps, *words):
        return later_wins("fit", "--rows", self.at("rows.npy"), "--find", "codes", "--atoms", 60,
                          "--top-s", 3, "--rounds", 2, "--tolerance", 0, "--sweeps", sweeps,
                          "--output", self.at(out), *words)

    def fit(self, out, sweeps, *words, ranks=0):
        done = sagitta(*self.words(out, sweeps, *words), ranks=ranks)
        ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}")
        return done.stderr, self.page(out)

    def page(self, out):
        with open(self.at(out, "run.json"), "rb") as f:
            return json.loads(f.read().decode("utf-8"))


def same(page, value):
    """null stands for NaN; all other numbers must have the same bits."""
    return math.isnan(value) if page is None else page == value


def check_history(page, path, text):
    with h5py.File(path) as f:
        history, attributes = f["fit/history"][...], dict(f.attrs)
        hashes = [int(f[group].attrs["rows_hash"]) % 2 ** 64 if group in f else 0
                  for group in ("inputs", "held_out")]
    lines = page["sweeps"]
    ok(len(lines) == len(history) and all(
        same(line[name], value) for line, row in zip(lines, history)
        for name, value in zip(OF_HISTORY, row)), f"{text}: every number of the history")
    ok(page["best_sweep"] == attributes["best_sweep"] and page["rounds"] == attributes["rounds"] and
       page["top_s"] == attributes["top_s"], f"{text}: the root attributes")
    best = lines[page["best_sweep"]]
    ok(page["unseen"] == best["unseen"] and page["fitted"] == best["fitted"], f"{text}: the best")
    inputs = [page["inputs"].get(name, {"rows_hash": "0" * 16}) for name in ("rows", "held_out")]
    ok([i["rows_hash"] for i in inputs] == [f"{hash:016x}" for hash in hashes],
       f"{text}: hashes of the rows")


def deck_of(path):
    with open(path, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(" = ", 1) for line in f if " = " in line)


def deck_text(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "%.17g" % value if isinstance(value, float) else str(value)


@claim("run.json has what history, metrics, options and log have")
def check_same(place):
    log, page = place.fit("one", 4, "--update", "joint", ranks=2)
    check_history(page, place.at("one", "dictionary.h5"), "dictionary.h5")
    with h5py.File(place.at("one", "supports.h5")) as f:
        metrics = f["metrics"].attrs
        ok(all(same(value, metrics[name]) for name, value in page["metrics"].items()) and
           len(page["metrics"]) >= 10, "the metrics of supports.h5")
    said = dict(re.findall(r"(\w+)=(\S+)", re.search(r"fit     .*", log)[0]))
    ok(said["rows"] == str(page["rows"]) and said["held_out"] == str(page["held_rows"]) and
       said["fingerprint"] == page["fingerprint"] and said["seconds"] == f"{page['seconds']:.2f}"
       and said["ranks"] == str(page["ranks"]) == "2", f"the log's last lines {said}")
    shown = re.findall(r"sweep +(\d+): unseen (\S+), fitted (\S+), dead (\d+), revived (\d+), "
                       r"largest move ([^\s,]+)", log)
    told = [(str(l["sweep"]), f"{l['unseen']:.6f}", f"{l['fitted']:.6f}", str(l["dead"]),
             str(l["revived"]), f"{l['move']:.2g}") for l in page["sweeps"]]
    ok(shown == told and len(told) == 5, f"the log's lines {shown} {told}")
    seconds = [line["seconds"] for line in page["sweeps"]]
    ok(seconds == sorted(seconds) and 0 < seconds[0] and seconds[-1] <= page["seconds"], "times")
    deck = deck_of(place.at("one", "used.in"))
    options = {name: deck_text(value) for name, value in page["options"].items()}
    ok(options == deck, f"the options of used.in {options} {deck}")
    ok(page["update"] == "joint" and page["device"] == "cpu" and page["variant"] and
       page["end"] == "sweeps" and page["codes"] == "nonnegative" and page["atoms"] == 60 and
       page["command"].startswith("sagitta fit --rows"), "run.json has the other entries")
    ok({"update", "route", "wait", "write"} <= {p["name"] for p in page["phases"]} and
       [s["rank"] for s in page["seats"]] == [0, 1], "phases, and seats of ranks")


@claim("a resumed run has all sweeps; null stands for figures without held-out rows or of rows "
       "that do not vary")
def check_more(place):
    place.fit("two", 2, "--update", "joint")
    _, page = place.fit("two", 4, "--update", "joint", "--resume")
    whole = place.page("one")
    unknown = [(l["seconds"], l["move"]) == (None, None) for l in page["sweeps"]]
    ok(unknown == [True] * 3 + [False] * 2, f"times and moves of its own sweeps alone {unknown}")
    bare = [[{k: v for k, v in l.items() if k not in ("seconds", "move")} for l in p["sweeps"]]
            for p in (page, whole)]
    ok(bare[0] == bare[1] and page["fingerprint"] == whole["fingerprint"],
       "a resumed run has the numbers of one run")
    check_history(page, place.at("two", "dictionary.h5"), "resumed")
    _, again = place.fit("two", 4, "--update", "joint", "--resume")
    ok(len(again["sweeps"]) == 5 and again["end"] == "sweeps" and
       again["metrics"] == page["metrics"], "nothing left to do")
    _, page = place.fit("none", 2, "--holdout-share", 0)
    check_history(page, place.at("none", "dictionary.h5"), "no held-out rows")
    ok(page["held_rows"] == 0 and page["unseen"] is None and "held_out" not in page["inputs"] and
       page["sweeps"][0]["unseen"] is None, "no held-out rows")
    rows = np.ones((128, 4), "f4")
    rows[:64] = place.rows[:64, :4]
    np.save(place.at("part.npy"), rows)
    _, page = place.fit("part", 2, "--rows", place.at("part.npy"), "--atoms", 1, "--top-s", 1,
                        "--holdout-share", 0, "--uncentered", "--minibatch", 64)
    ok(None in [l["fitted"] for l in page["sweeps"]], "a part of equal rows")
    check_history(page, place.at("part", "dictionary.h5"), "parts")


@claim("names with quotes, control characters and any letters are kept")
def check_names(place):
    odd = place.at(ODD + ".npy")
    shutil.copy(place.at("rows.npy"), odd)
    out = 'out "c\\" \u00e4'
    _, page = place.fit(out, 1, "--rows", odd, "--holdout", place.at("rows.npy"))
    ok(page["inputs"]["rows"]["name"] == odd == page["options"]["rows"] and
       page["inputs"]["held_out"]["name"] == place.at("rows.npy") and
       page["options"]["output"] == place.at(out) and odd in page["command"], str(page["inputs"]))


@claim("no input and no target of a link is replaced, and a failed run leaves the earlier run.json")
def check_places(place):
    os.mkdir(place.at("in"))
    with h5py.File(place.at("in", "run.json"), "w") as f:
        f["rows"] = place.rows
    before = open(place.at("in", "run.json"), "rb").read()
    done = sagitta(*place.words("in", 1, "--rows", place.at("in", "run.json"), "--force"))
    ok(done.returncode == 73 and "run.json' would replace an input" in done.stderr and
       os.listdir(place.at("in")) == ["run.json"] and
       open(place.at("in", "run.json"), "rb").read() == before, f"{done.stderr[-300:]}")
    with open(place.at("precious"), "w") as f:
        f.write("precious")
    os.mkdir(place.at("link"))
    os.symlink("../precious", place.at("link", "run.json"))
    place.fit("link", 1)
    ok(not os.path.islink(place.at("link", "run.json")) and
       open(place.at("precious")).read() == "precious", "a link is replaced")
    os.makedirs(place.at("folder", "run.json"))
    done = sagitta(*place.words("folder", 1))
    ok(done.returncode == 73 and "it is a folder" in done.stderr, f"{done.stderr[-300:]}")
    page = place.page("one")
    done = sagitta(*place.words("one", 4, "--rows", place.at("bad.npy"), "--force"))
    ok(done.returncode == 65 and place.page("one") == page and not temporaries(place.at("one")),
       f"exit {done.returncode} {done.stderr[-200:]}")


@claim("a stopped run has its sweeps so far; if run.json cannot be written, there is a warning")
def check_stopped(place):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    os.environ["FAULT_SIGNAL"] = str(int(signal.SIGKILL))
    words = place.words("stopped", 4)
    calls = faulty("signal:1000000000", *words, count=True, of=".tmp")
    shutil.rmtree(place.at("stopped"))
    faulty(f"signal:{calls // 2}", *words, of=".tmp")
    page, there = place.page("stopped"), []
    for name in "dictionary.h5", "state.h5":
        if os.path.exists(place.at("stopped", name)):
            with h5py.File(place.at("stopped", name)) as f:
                there.append(f.attrs["sweeps"])
    ok(page["device"] == "cpu" and page["variant"] and page["phases"] == [], "what computes")
    ok(page["end"] is None and "metrics" not in page and
       max(there) - 1 <= len(page["sweeps"]) - 1 <= max(there) < 4,
       f"{len(page['sweeps']) - 1} sweeps, files have {there}")
    for fault in "write:1+", "fsync:1+", "rename:1+", "open:1+":
        shutil.rmtree(place.at("stopped"))
        code, text = faulty(fault, *words, of="run.json.*.tmp")
        ok(code == 0 and text.count("not of the last sweep") == 6 and
           not temporaries(place.at("stopped")) and
           not os.path.exists(place.at("stopped", "run.json")), f"{fault}: exit {code} "
           f"{text[-300:]}")
        done = sagitta("diff", place.at("stopped", "dictionary.h5"),
                       place.at("stopped-not", "dictionary.h5"))
        ok(done.returncode == 0, f"{fault}: the results are the same {done.stdout[-200:]}")
    return None


with tempfile.TemporaryDirectory() as main:
    made = Place(main)
    check_same(made)
    check_more(made)
    check_names(made)
    check_places(made)
    made.fit("stopped-not", 4)
    check_stopped(made)
done_testing()
