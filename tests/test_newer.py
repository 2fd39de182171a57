# SPDX-License-Identifier: BSD-3-Clause
"""Claim: every reader refuses a file of a newer format version, and names both versions and what
can read the file.  inspect shows it with a warning."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from seal import reseal
from tap import SOURCE, bench, claim, done_testing, ok, peer_missing, sagitta

WRITER = "7.8.9"
SAID = "has format version 5, and this program, Sagitta ", " reads 1 to 4: use the Sagitta that " \
    f"wrote it, {WRITER}, or a newer one"


def renew(path):
    """Change a file so that a newer program seems to have written it, with valid hashes."""
    with h5py.File(path, "r+") as f:
        f.attrs["format_version"] = np.int64(5)
        f["run"].attrs["version"] = WRITER
        reseal(f)
    return path


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        data = self.at("data")
        self.need("synth", "--n-rows", 400, "--columns", 8, "--atoms", 12, "--output", data)
        words = ["--rows", f"{data}/rows.h5", "--dictionary", f"{data}/dictionary.h5"]
        self.need("encode", *words, "--top-s", 3, "--output", data)
        self.need("encode", *words, "--top-s", 3, "--row-range", "0:", "--output",
                  f"{data}/part.h5")
        self.need("color", "--supports", data, "--output", data)
        self.need("assemble", *words, "--supports", data, "--output", data)
        self.need("solve", "--systems", data, "--output", data)
        self.need("terminal", *words, "--supports", data, "--output", data)
        self.need("top", "--supports", data, "--output", data)
        self.need("compare", *words[2:], "--other", words[3], "--output", data)
        self.old = {name[:-3]: f"{data}/{name}" for name in os.listdir(data)
                    if name.endswith(".h5")}
        self.new = {name: renew(shutil.copy(path, self.at(f"new-{name}.h5")))
                    for name, path in self.old.items()}

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def need(self, *words):
        done = sagitta(*words)
        ok(done.returncode == 0, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
        return done

    def out(self):
        self.count += 1
        return ["--output", self.at(f"out{self.count}")]

    def refused(self, path, *words, ranks=0, code=65, run=sagitta):
        done = run(*words, ranks=ranks)
        ok(done.returncode == code and f"'{path}' {SAID[0]}" in done.stderr and
           SAID[1] in done.stderr, f"{words}: exit {done.returncode} {done.stderr[-400:]}")
        if "--output" in words and "--resume" not in words:
            place = words[words.index("--output") + 1]
            found = os.listdir(place) if os.path.isdir(place) else []
            ok(not [name for name in found if name.endswith(".h5")], f"{words}: {found}")


@claim("commands refuse a newer file, whichever of their inputs it is")
def check_commands(p):
    old, new = p.old, p.new
    inputs = {"rows": "--rows", "dictionary": "--dictionary", "supports": "--supports",
              "classes": "--classes", "systems": "--systems"}
    fits = ("rows", "dictionary", "supports", "classes")
    jobs = {("encode", "--top-s", 3): fits[:2], ("route", "--top-s", 3): fits[:2],
            ("encode", "--top-s", 3, "--dry-run"): fits[:2], ("refit",): fits,
            ("assemble",): fits, ("terminal",): fits[:3], ("color",): ("supports",),
            ("top",): ("supports",), ("solve",): ("systems",), ("seed", "--atoms", 4): ("rows",),
            ("fit", "--atoms", 4, "--top-s", 2, "--sweeps", 1): ("rows",)}
    for words, needs in jobs.items():
        for name in needs:
            given = [w for n in needs for w in (inputs[n], (new if n == name else old)[n])]
            p.refused(new[name], *words, *given, *p.out())
    p.refused(new["rows"], "route", "--atoms", 16, "--n-rows", 16, "--rows", new["rows"], run=bench)
    fit = ["fit", "--rows", old["rows"], "--atoms", 4, "--top-s", 2, "--sweeps", 1]
    p.refused(new["rows"], *fit, "--holdout", new["rows"], *p.out())
    refit = ["refit", "--rows", old["rows"], "--dictionary", old["dictionary"], "--supports",
             old["supports"]]
    p.refused(new["rows"], *refit, "--holdout", new["rows"], *p.out())
    for pair in ((old, new), (new, old)):
        p.refused(new["dictionary"], "compare", pair[0]["dictionary"], pair[1]["dictionary"])
    p.refused(new["part"], "merge", new["part"], *p.out())
    given = {"--rows": "rows", "--dictionary": "dictionary", "--codes": "supports"}
    for changed in given:
        words = [w for option, name in given.items()
                 for w in (option, (new if option == changed else old)[name])]
        p.refused(new[given[changed]], "evaluate", *words)
    p.refused(new["dictionary"], "export", new["dictionary"], "--to", "npy", *p.out())
    p.refused(new["rows"], "export", old["dictionary"], "--to", "saelens", "--top-s", 3, "--rows",
              new["rows"], *p.out())
    p.refused(new["rows"], "encode", "--rows", new["rows"], "--dictionary", old["dictionary"],
              "--top-s", 3, *p.out(), ranks=2)


@claim("newer shards, sources of a virtual dataset, folders and tokens are refused, too")
def check_ways(p):
    words = ["encode", "--dictionary", p.old["dictionary"], "--top-s", 3]
    p.refused(p.new["rows"], *words, "--rows", p.old["rows"], "--rows", p.new["rows"], *p.out())
    virtual = p.at("virtual.h5")
    layout = h5py.VirtualLayout(shape=(800, 8), dtype="f4")
    for i, name in enumerate((p.old["rows"], p.new["rows"])):
        layout[400 * i:400 * i + 400] = h5py.VirtualSource(os.path.relpath(name, p.folder), "rows",
                                                           shape=(400, 8))
    with h5py.File(virtual, "w") as f:
        f.create_virtual_dataset("rows", layout)
    p.refused(p.new["rows"], *words, "--rows", virtual, *p.out())
    for name in "dictionary", "supports":
        run = p.at("run-" + name)
        os.makedirs(run)
        for file in "dictionary", "supports":
            shutil.copy((p.new if file == name else p.old)[file], f"{run}/{file}.h5")
        p.refused(f"{run}/{name}.h5", "inspect", run, "--atom", 1)
    with h5py.File(p.new["rows"], "r+") as f:
        f["token"] = np.zeros(400, "i4")
    run = p.at("run")
    os.makedirs(run)
    for file in "dictionary", "supports":
        shutil.copy(p.old[file], f"{run}/{file}.h5")
    p.refused(p.new["rows"], "inspect", run, "--atom", 1, "--rows", p.new["rows"])


@claim("verify and diff refuse every kind of newer file; inspect shows the file, with a warning")
def check_kinds(p):
    for name, path in p.new.items():
        p.refused(path, "verify", path)
        p.refused(path, "diff", p.old[name], path)
        p.refused(path, "diff", path, p.old[name])
        done = sagitta("inspect", path)
        ok(done.returncode == 0 and f"warning: '{path}' {SAID[0]}" in done.stderr and
           SAID[1] in done.stderr and "format version 5" in done.stdout,
           f"{name}: {done.returncode} {done.stderr}")
        ok(sagitta("inspect", p.old[name]).stderr == "", f"{name}: no warning for an older one")
        ok("least determined" not in done.stdout and "/atoms" in done.stdout or
           name != "dictionary", f"{name}: its datasets")
        done = sagitta("inspect", path, "--json")
        page = json.loads(done.stdout)["files"][0]
        ok(page["newer"] and page["format_version"] == 5 and SAID[0] in done.stderr, f"{page}")
    page = json.loads(sagitta("verify", p.new["top"], "--json").stdout)["files"][0]
    ok(not page["whole"] and SAID[0] in page["fault"], f"{page}")


@claim("a resumed run refuses what a newer program left, and leaves it unchanged")
def check_resumed(p):
    rows = ["--rows", p.old["rows"]]
    fit = ["fit", *rows, "--atoms", 6, "--top-s", 2]
    refit = ["refit", *rows, "--dictionary", p.old["dictionary"], "--supports", p.old["supports"]]
    for name, words in ("fit", fit), ("refit", refit):
        for file in "dictionary", "supports":
            out = p.at(f"{name}-{file}")
            p.need(*words, "--sweeps", 2, "--output", out)
            path = renew(f"{out}/{file}.h5")
            with open(path, "rb") as f:
                before = f.read()
            if (name, file) != ("fit", "supports"):  # fit does not read supports.h5
                p.refused(path, *words, "--sweeps", 4, "--resume", "--output", out)
                with open(path, "rb") as f:
                    ok(f.read() == before, f"{name}: '{file}.h5' is left")
    encode = ["encode", *rows, "--dictionary", p.old["dictionary"], "--top-s", 3]
    out = p.at("encoded")
    os.makedirs(out)
    path = shutil.copy(p.new["part"], f"{out}/supports.h5")
    p.refused(path, *encode, "--resume", "--output", out, code=73)


@claim("the Python package and the scripts refuse newer files, too")
def check_scripts(p):
    def refused(*words):
        environment = dict(os.environ, PYTHONPATH=os.path.join(SOURCE, "scripts", "python"))
        done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True,
                              env=environment)
        ok(done.returncode != 0 and "format version" in done.stderr and "Traceback" not in
           done.stderr.split("\n")[0] * (words[0] != "-c"), f"{words}: {done.stderr[-300:]}")

    code = "import sagitta, sys; sagitta.open(sys.argv[1])"
    for name in "supports", "dictionary":
        refused("-c", code, p.new[name])
        refused(os.path.join(SOURCE, "scripts", "report"), p.at("run-" + name))
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            peer_missing("python3-matplotlib is not installed")
            continue
        refused(os.path.join(SOURCE, "scripts", "plot"), p.at("run-" + name), p.at("plots"))
    page = p.at("run", "run.json")
    with open(page, "w", encoding="utf-8") as f:
        f.write('{\n"format_version": 9}\n')
    refused("-c", "import sagitta, sys; sagitta.open(sys.argv[1]).page", p.at("run"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with claim("a file of every kind, and a newer copy of each, are made"):
            place = Place(folder)
        check_commands(place)
        check_ways(place)
        check_kinds(place)
        check_resumed(place)
        check_scripts(place)
    done_testing()
