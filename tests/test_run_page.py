# SPDX-License-Identifier: BSD-3-Clause
"""Claim: run.json of every command has the options, figures and results of its run.  It belongs to
the run that published last, a failed run never writes a result into it, and if it cannot be written
the result is published all the same."""
import json
import os
import re
import tempfile

import h5py

from jobs import faulty, temporaries
from tap import claim, done_testing, ok, sagitta, skip


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.need("synth", "--n-rows", 400, "--atoms", 24, "--columns", 8, "--top-s", 3,
                  "--output", self.at("data"))
        self.data = {name: self.at("data", name + ".h5") for name in ("rows", "dictionary")}
        words = ["--rows", self.data["rows"], "--dictionary", self.data["dictionary"]]
        supports = ["--supports", self.at("encode/supports.h5")]
        self.jobs = {  # (words, result)
            "synth": (["synth", "--n-rows", 9], "rows"),
            "seed": (["seed", *words[:2], "--atoms", 5], "dictionary"),
            "encode": (["encode", *words, "--top-s", 3], "supports"),
            "route": (["route", *words, "--top-s", 3], "supports"),
            "color": (["color", *supports], "classes"),
            "assemble": (["assemble", *words, *supports], "systems"),
            "solve": (["solve", "--systems", self.at("assemble/systems.h5")], "solutions"),
            "refit": (["refit", *words, *supports, "--sweeps", 2], "dictionary"),
            "terminal": (["terminal", *words, *supports], "terminal"),
            "top": (["top", *supports], "top"),
            "compare": (["compare", *words[2:], "--other", words[3]], "comparison"),
        }

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def need(self, *words):
        done = sagitta(*words)
        ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
        return done.stderr

    def page(self, *names):
        with open(self.at(*names), encoding="utf-8") as f:
            return json.load(f)


def hashes_of(path):
    """The hashes of the inputs of a result, from its file.  `mark`, a hash of options, is left
    out."""
    with h5py.File(path) as f:
        found = dict(f["inputs"].attrs) if "inputs" in f else {}
    found.pop("mark", None)
    return {name: f"{int(value) % 2 ** 64:016x}" for name, value in found.items()}


def metrics_of(path):
    if not os.path.exists(path):
        return {}
    with h5py.File(path) as f:
        return dict(f["metrics"].attrs)


def deck_of(path):
    with open(path, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(" = ", 1) for line in f if " = " in line)


def deck_text(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "%.17g" % value if isinstance(value, float) else str(value)


def phases_of(log):
    """The fields of each line of the log's table of phases: name, calls, then times."""
    lines = log[log.find("phase       calls"):].splitlines()[1:]
    found = [re.match(r"\[ *[\d.]+\] (\w+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)", l) for l in lines]
    return [m.groups() for m in found[:next((i for i, m in enumerate(found) if not m), None)]]


@claim("run.json has what options, log and result have")
def check_all(place):
    for name, (words, result) in place.jobs.items():
        log = place.need(*words, "--output", place.at(name))
        page, path = place.page(name, "run.json"), place.at(name, result + ".h5")
        with h5py.File(path) as f:
            facts = dict(f["run"].attrs)
        metrics = metrics_of(place.at(name, "supports.h5"))
        ok(page["format"] == "sagitta run" and all(
            page[key] == facts[key] for key in ("version", "revision", "command", "host",
                                                "started")), f"{name}: /run")
        options = {key: deck_text(value) for key, value in page["options"].items()}
        ok(options == deck_of(place.at(name, "used.in")), f"{name}: used.in {options}")
        ok(page["inputs"] == hashes_of(path), f"{name}: inputs {page['inputs']}")
        ok(page["device"] == facts["device"] and page["ranks"] == len(page["seats"]) == 1 and
           page["seats"][0]["host"] == facts["host"], f"{name}: where it ran {page['device']}")
        ok(all(value is None or value == metrics[key]
               for key, value in page.get("metrics", {}).items()) and
           (len(page.get("metrics", {})) > 3 or name not in ("encode", "route")),
           f"{name}: metrics {page.get('metrics')}")
        told = [(p["name"], str(p["calls"]), *(f"{p[k]:.3f}" for k in ("least", "mean", "most")))
                for p in page["phases"]]
        ok(told == phases_of(log) and (told or name not in ("encode", "refit")),
           f"{name}: phases {told} {phases_of(log)}")
        ok(not page["stopped"] and page["seconds"] > 0, f"{name}: its end")


@claim("run.json says how many ranks ran, and which job of a batch system")
def check_ranks(place):
    words = place.jobs["encode"][0]
    os.environ.update(SLURM_JOB_ID="17", SLURM_ARRAY_JOB_ID="16", SLURM_ARRAY_TASK_ID="3",
                      SLURM_RESTART_COUNT="1")
    done = sagitta(*words, "--output", place.at("ranks.h5"), "--threads", 1, ranks=3)
    for name in [key for key in os.environ if key.startswith("SLURM_")]:
        del os.environ[name]
    page = place.page("ranks.run.json")
    ok(done.returncode == 0 and page["job"] == "16_3 restart 1" and
       "; job 16_3 restart 1" in done.stderr, f"job {page['job']} {done.stderr[:300]}")
    ok([(s["rank"], s["threads"]) for s in page["seats"]] == [(0, 1), (1, 1), (2, 1)] and
       all(re.fullmatch(r"[\d,-]+", s["cores"]) for s in page["seats"]), f"{page['seats']}")
    version = sagitta("--version").stdout
    ok(all(f"  {value}\n" in version for value in page["libraries"].values()) and
       page["libraries"]["mpi"] in done.stderr, f"{page['libraries']} {version}")


@claim("a run that fails, or has nothing to do, leaves the earlier page; if the page cannot be "
       "written, there is a warning")
def check_faults(place):
    words = [*place.jobs["encode"][0], "--force", "--output", place.at("encode")]
    before = place.page("encode", "run.json")
    done = sagitta(*words, "--top-s", 30)
    ok(done.returncode != 0 and place.page("encode", "run.json") == before,
       f"exit {done.returncode} {done.stderr[-200:]}")
    refit = [*place.jobs["refit"][0], "--output", place.at("refit")]
    last = place.page("refit", "run.json")
    place.need(*refit, "--resume")
    ok(place.page("refit", "run.json") == last, "nothing left to do")
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    for fault in "write:1+", "fsync:1+", "rename:1+", "open:1+":
        code, text = faulty(fault, *words, "--rho", 2, of="run.json.*.tmp")
        ok(code == 0 and text.count("not of the last run") == 1 and
           not temporaries(place.at("encode")) and place.page("encode", "run.json") == before,
           f"{fault}: exit {code} {text[-300:]}")
    place.need(*words)
    os.mkdir(place.at("folder"))
    os.mkdir(place.at("folder", "run.json"))
    done = sagitta(*place.jobs["encode"][0], "--output", place.at("folder"))
    ok(done.returncode == 73 and "it is a folder" in done.stderr, f"{done.stderr[-300:]}")
    return None


with tempfile.TemporaryDirectory() as main:
    made = Place(main)
    check_all(made)
    check_ranks(made)
    check_faults(made)
done_testing()
