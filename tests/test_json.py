# SPDX-License-Identifier: BSD-3-Clause
"""Claim: with --json every command prints one object and nothing else.  It has what the printed
page, the log and the files have.  Exit codes are those without --json."""
import json
import math
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from exchange_files import FOLDERS, MADE
from tap import SOURCE, bench, claim, done_testing, later_wins, ok, sagitta

SANITIZED = os.environ.get("SANITIZED")
HEAD = ["format", "format_version", "command", "version", "revision"]


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.pages = []
        data, self.run, self.fit = self.at("data"), self.at("run"), self.at("fit")
        self.rows, self.dictionary = f"{data}/rows.h5", f"{data}/dictionary.h5"
        for words in (["synth", "--n-rows", 500, "--columns", 12, "--atoms", 20, "--output", data],
                      ["encode", "--rows", self.rows, "--dictionary", self.dictionary, "--top-s", 3,
                       "--output", self.run],
                      ["fit", "--find", "codes", "--rows", self.rows, "--atoms", 12, "--top-s", 3,
                       "--sweeps", 2, "--output", self.fit]):
            self.need(*words)
        shutil.copy(self.dictionary, self.run)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def need(self, *words, code=0, run=sagitta):
        done = run(*words)
        ok(done.returncode == code, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
        return done

    def tell(self, *words, code=0, ranks=0, run=sagitta):
        """The object that a command prints with --json.  It prints nothing else, and no NaN."""
        done = run(*words, "--json", ranks=ranks)
        ok(done.returncode == code, f"{words[0]}: exit {done.returncode} {done.stderr[-300:]}")
        ok("\n{" not in "\n" + done.stderr, f"{words[0]}: the log has no JSON")
        page = json.loads(done.stdout, parse_constant=lambda word: 1 / 0)
        ok(list(page)[:5] == HEAD and page["format"] == "sagitta facts" and
           page["format_version"] == 1 and page["command"] == words[0], f"{words[0]}: {page}")
        self.pages.append(page)
        return page, done.stderr


def same(told, value):
    """Is this JSON the value of an attribute?"""
    if isinstance(told, list):
        return len(told) == len(value) and all(map(same, told, value))
    if isinstance(value, (bytes, str)):
        return told == (value.decode() if isinstance(value, bytes) else value)
    return math.isnan(value) if told is None else told == value


def attributes_of(path):
    """{object: {name: value}} as h5py reads them, without hashes of contents."""
    found = {}
    with h5py.File(path) as f:
        objects = [("/", f)]
        f.visititems(lambda name, o: objects.append(("/" + name, o)))
        for name, o in objects:
            values = {k: v for k, v in o.attrs.items() if k not in ("sha256_tree", "zero_chunks",
                                                                    "attributes_sha256")}
            if values:
                found[name] = values
    return found


def file_check(entry, path):
    """The entry of an HDF5 file must have everything that h5py reads from it."""
    found = attributes_of(path)
    ok(entry["file"] == path and entry["bytes"] == os.path.getsize(path), f"{path}: head")
    ok(sorted(entry["attributes"]) == sorted(found), f"{path}: {list(entry['attributes'])}")
    for name, told in entry["attributes"].items():
        ok(sorted(told) == sorted(found[name]), f"{path}: {name} {list(told)}")
        for key, value in told.items():
            real = found[name][key]
            if key.endswith("_hash"):
                ok(value == f"{int(real) % 2 ** 64:016x}", f"{path}: {key}")
            else:
                ok(same(value, real), f"{path}: {name} {key} {value} {real}")
    sets = {}
    with h5py.File(path) as f:
        f.visititems(lambda n, o: sets.update({"/" + n: o.shape}) if hasattr(o, "shape") else None)
        ok({d["path"]: tuple(d["shape"]) for d in entry["datasets"]} == sets, f"{path}: datasets")
        ok(all(d["type"] == str(f[d["path"]].dtype) for d in entry["datasets"]), f"{path}: types")


def attribution_make(p):
    with h5py.File(p.at("attended.h5"), "w") as f:
        f["q"] = f["k"] = f["v"] = np.ones((5, 2, 6), np.float32)
        f.attrs["causal"] = 1
    np.save(p.at("eye.npy"), np.eye(12, dtype="f4"))
    words = ["--capture", p.at("attended.h5"), "--dictionary", p.at("eye.npy")]
    p.need("encode", *words, "--top-s", 2, "--output", p.at("attended"))
    p.need("attribute", *words, "--supports", p.at("attended"), "--output",
           p.run + "/attribution.h5")


@claim("inspect of a folder prints for every kind of file what h5py reads, and what the page "
       "prints")
def check_inspect(p):
    run = ["--rows", p.rows, "--dictionary", p.dictionary, "--supports", p.run]
    p.need("color", "--supports", p.run, "--output", p.run + "/classes.h5")
    p.need("assemble", *run, "--output", p.run + "/systems.h5")
    p.need("solve", "--systems", p.run + "/systems.h5", "--output", p.run + "/solutions.h5")
    p.need("terminal", *run[:2], "--dictionary", p.fit, "--supports", p.fit, "--output",
           p.run + "/terminal.h5")
    p.need("compare", p.dictionary, p.dictionary, "--output", p.run + "/comparison.h5")
    p.need("top", "--supports", p.run, "--output", p.run + "/top.h5")
    p.need("encode", *run[:4], "--top-s", 3, "--row-range", "0:", "--output", p.run + "/part.h5")
    attribution_make(p)
    shutil.copy(p.rows, p.run)
    files = p.tell("inspect", p.run)[0]["files"]
    kinds = ["attribution", "classes", "comparison", "dictionary", "part", "rows", "solutions",
             "supports", "systems", "terminal", "top"]
    ok([f["kind"] for f in files] == kinds, f"{[f['kind'] for f in files]}")
    ok([f["file"] for f in files] == sorted(f["file"] for f in files), "in the order of names")
    for entry in files:
        file_check(entry, entry["file"])
        text = p.need("inspect", entry["file"]).stdout
        ok(f"sagitta {entry['kind']}, format version {entry['format_version']}, " in text, "head")
        ok(all(re.search(rf"^  {d['path']} .*{re.escape(d.get('meaning', ''))}$", text, re.M)
               for d in entry["datasets"]), f"{entry['kind']}: lines of datasets")
    os.remove(p.run + "/attribution.h5")  # other claims use the run without it
    term = next(f for f in files if f["kind"] == "terminal")
    text = p.need("inspect", p.run + "/terminal.h5").stdout
    for key, line in (("least_determined", "  {atom:<28} {deviation:18.6g}"),
                      ("couplings", "  {a:<28} {strength:18.6g}")):
        lines = [line.format(a="%d and %d" % tuple(e.get("atoms", (0, 0))), **e) for e in term[key]]
        ok(lines and "\n".join(lines) in text, f"{key}: {lines} {text[-900:]}")


@claim("inspect of .npy, safetensors and foreign HDF5 prints values unchanged, and NaN as null")
def check_foreign(p):
    rows = np.arange(12, dtype="f4").reshape(3, 4)
    rows[1, 2], rows[2, 0] = np.nan, np.inf
    np.save(p.at("a.npy"), rows)
    entry = p.tell("inspect", p.at("a.npy"))[0]["files"][0]
    ok((entry["type"], entry["values"], entry["shape"]) == ("npy", "float32", [3, 4]), f"{entry}")
    ok(entry["not_finite"] == 2 and entry["first_not_finite"] == [1, 2], "not finite")
    ok(entry["row_0"] == [0, 1, 2, 3] and entry["least_norm"] == math.sqrt(14), f"{entry}")
    np.save(p.at("a.npy"), np.zeros((2, 2, 2, 2, 2), "f8"))
    entry = p.tell("inspect", p.at("a.npy"))[0]["files"][0]
    ok(entry["shape"] is None and entry["dimensions"] == 5 and "row_0" not in entry, f"{entry}")
    name = next(f for f in FOLDERS if f.startswith("saelens"))
    path = f"{MADE}/{name}/sae_weights.safetensors"
    entry = p.tell("inspect", path)[0]["files"][0]
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    header.pop("__metadata__", None)
    ok({t["name"]: (t["values"], t["shape"]) for t in entry["tensors"]} ==
       {n: (t["dtype"], t["shape"]) for n, t in header.items()}, f"{entry}")
    path = p.at("foreign.h5")
    with h5py.File(path, "w") as f:
        f["a"] = np.zeros((2, 3), ">f8")
        f["there"] = h5py.SoftLink("/a")
        f["a"].attrs["many"] = np.arange(20.) / 3
        f["a"].attrs["strange"] = ["a\"b\\\n\x01", "ä€"]
        f.attrs.update(none=np.nan, empty=h5py.Empty("f4"), whole=2 ** 62 + 1, some_hash="text")
    entry = p.tell("inspect", path)[0]["files"][0]
    told = entry["attributes"]
    ok("kind" not in entry and entry["links"] == [{"path": "/there", "target": "/a"}], f"{entry}")
    ok(told["/a"]["many"] == list(np.arange(20.) / 3), "all values, bit for bit")
    ok(told["/a"]["strange"] == ["a\"b\\\n\x01", "ä€"], f"texts {told['/a']['strange']}")
    ok(told["/"] == {"none": None, "empty": None, "whole": 2 ** 62 + 1, "some_hash": "text"},
       f"{told['/']}")


@claim("verify names the fault and keeps its exit codes")
def check_verify(p):
    files = p.tell("verify", p.run)[0]["files"]
    ok(len(files) == 10 and all(f["whole"] and f["fault"] is None for f in files), f"{files}")
    dense = p.tell("verify", p.run, run=bench)[0]
    ok(dense["equal"] and dense["dense"][0]["of"] == p.run, f"{dense}")
    text = p.need("verify", p.run).stdout
    ok("\n\n".join("\n".join(f["checks"]) for f in files) + "\n" == text, "checks are the lines")
    broken = p.at("broken")
    os.makedirs(broken)
    for name in ("classes", "supports", "top"):
        shutil.copy(f"{p.run}/{name}.h5", broken)
    with h5py.File(f"{broken}/supports.h5", "r+") as f:
        f["supports/data"][5] += 1
    page, log = p.tell("verify", broken, code=65)
    ok([f["whole"] for f in page["files"]] == [True, False], f"{page['files']}")
    ok(page["files"][1]["fault"] in log, f"{page['files'][1]['fault']} {log}")
    for words, code in (([p.at("none.h5")], 74), ([p.at("data/none")], 74)):
        done = sagitta("verify", *words, "--json")
        ok(done.returncode == code and not done.stdout, f"{words}: {done.returncode}")
    os.makedirs(p.at("empty"))
    for command in "verify", "inspect":
        done = sagitta(command, p.at("empty"), "--json")
        ok(done.returncode == 65 and not done.stdout, f"{command} of an empty folder")


@claim("diff names the first difference of every kind, and exits as without --json")
def check_diff(p):
    one, two = p.at("one.h5"), p.at("two.h5")
    ok(p.tell("diff", p.run, p.run)[0]["difference"] is None, "none")
    page = p.tell("diff", p.run, p.at("broken"), code=1)[0]
    ok(not page["equal"] and page["difference"] ==
       {"what": "only", "object": "comparison.h5", "in": p.run}, f"{page}")

    def made(path, change):
        with h5py.File(path, "w") as f:
            f["a"] = np.arange(6.).reshape(2, 3)
            f["a"].attrs["note"] = "one"
            f["link"] = h5py.SoftLink("/a")
            change(f)

    def value(f):
        f["a"][1, 2] = np.nan

    def link(f):
        del f["link"]
        f["link"] = h5py.SoftLink("/b")

    def kind(f):
        del f["link"]
        f.create_group("link")

    def replaced(data):
        def change(f):
            del f["a"]
            f["a"] = data
            f["a"].attrs["note"] = "one"
        return change

    cases = [(value, {"what": "value", "object": "/a", "index": [1, 2], "first": 5,
                      "second": None}),
             (lambda f: f["a"].attrs.modify("note", "two"),
              {"what": "value", "object": "/a @note", "index": [], "first": "one",
               "second": "two"}),
             (lambda f: f.create_group("b"), {"what": "only", "object": "/b", "in": two}),
             (lambda f: f["a"].attrs.update(x=1), {"what": "only", "object": "/a @x", "in": two}),
             (link, {"what": "link", "object": "/link", "first": "/a", "second": "/b"}),
             (kind, {"what": "kind", "object": "/link", "first": "soft link",
                     "second": "group"}),
             (replaced(np.arange(6.)), {"what": "shape", "object": "/a", "first": "2 x 3",
                                        "second": "6"}),
             (replaced(np.zeros((2, 3), "f4")), {"what": "type", "object": "/a",
                                                 "first": "float64", "second": "float32"})]
    made(one, lambda f: None)
    for change, wanted in cases:
        made(two, change)
        page = p.tell("diff", one, two, code=1)[0]
        ok(page["difference"] == {"files": [one, two], **wanted}, f"{page['difference']} {wanted}")
        ok(wanted["object"].split(" ")[0] in p.need("diff", one, two, code=1).stdout, "the line")
    done = sagitta("diff", one, p.at("none.h5"), "--json")
    ok(done.returncode == 74 and not done.stdout, "a file that is missing")


def numbers_of(line):
    return {k: v for k, v in re.findall(r"(\w+)=(\S+)", line)}


@claim("jobs print what their log and run.json have, and the place of their result")
def check_jobs(p):
    words = ["--rows", p.rows, "--dictionary", p.dictionary]
    supports = [*words, "--supports", p.run]
    systems = ["--systems", p.run + "/systems.h5"]
    part = ["encode", *words, "--top-s", 3, "--row-range"]
    p.need(*part, "0:", "--output", p.at("p.h5"))
    with h5py.File(p.at("capture.h5"), "w") as f:
        f["q"] = f["k"] = f["v"] = np.ones((30, 2, 4), np.float32)
        f.attrs["causal"] = 0
    with h5py.File(p.at("prompts.h5"), "w") as f:
        f["q"] = f["k"] = f["v"] = np.ones((60, 2, 4), np.float32)
        f["token"], f["q_start"] = np.ones(60, np.int32), np.array([0, 30, 60])
        f.attrs["causal"] = 1
    done, _ = p.tell("pack", "--capture", p.at("prompts.h5"), "--output", p.at("packed"))
    ok(done["shared"] == 1 and done["blocks"] == 3 and done["saved_bytes"] == 768, f"{done}")
    captured = ["--capture", p.at("capture.h5")]
    np.save(p.at("small.npy"), np.eye(8, dtype="f4"))
    small = ["--dictionary", p.at("small.npy")]
    p.need("encode", *captured, *small, "--top-s", 2, "--output", p.at("captured"))
    jobs = {"attribute": [*captured, *small, "--supports", p.at("captured")],
            "encode": [*words, "--top-s", 3], "route": [*words, "--top-s", 3],
            "seed": [*words[:2], "--atoms", 5], "color": supports[4:], "top": supports[4:],
            "assemble": supports, "solve": systems, "terminal": supports,
            "harvest": captured,
            "refit": [*supports, "--sweeps", 1], "merge": [p.at("p.h5")],
            "fit": [*words[:2], "--atoms", 9, "--top-s", 2, "--sweeps", 2],
            "train": [*words[:2], "--atoms", 9, "--top-s", 2, "--epochs", 2]}
    differ = {"held_out": "held_rows"}
    left = {"ranks", "device", "seconds", "threads", "sweeps", "read", "error"}
    for name, options in jobs.items():
        out = p.at("job-" + name)
        page, log = p.tell(name, *options, "--output", out)
        line = numbers_of(re.search(rf"\] {name} .*fingerprint=.*", log)[0])
        for key, value in line.items():
            key = differ.get(key, key)
            found = page.get(key, page.get(key + "_atoms"))
            ok(key in left or str(found) == value, f"{name}: {key} {found} {value}")
        ok(os.path.isfile(page["result"]) and page["result"].startswith(out), f"{page['result']}")
        with open(out + "/run.json", encoding="utf-8") as f:
            run = json.load(f)
        ok(all(run[key] == value for key, value in page.items()
               if key not in HEAD + ["result", "seconds"]), f"{name}: run.json")
        ok(page["seconds"] > 0 and isinstance(page["phases"], list), f"{name}: {list(page)}")
    page, _ = p.tell("color", *supports[4:], "--output", p.at("c2"), ranks=2)
    with h5py.File(p.at("c2/classes.h5")) as f:
        sizes = np.diff(f["class_offsets"][:])
    ok(page["classes"] == len(sizes) and sum(s["classes"] for s in page["sizes"]) == len(sizes) and
       sum(s["atoms"] for s in page["sizes"]) == sizes.sum(), f"color: {page['sizes']}")
    ok(all(s["classes"] == ((sizes >= s["least"]) & (sizes <= s["largest"])).sum()
           for s in page["sizes"]), "its bins")
    page, _ = p.tell("synth", "--n-rows", 7, "--columns", 5, "--start-cosine", 0.5, "--output",
                     p.at("s"))
    for name in "rows", "dictionary", "start":
        with h5py.File(page[name + "_file"]["file"]) as f:
            shape = f["rows" if name == "rows" else "atoms"].shape
        ok(page[name + "_file"]["columns"] == shape[-1] == 5, f"synth: {page}")
    page, _ = p.tell("synth", "--systems", 6, "--output", p.at("y"))
    ok(page["systems"] == 6 and page["result"] == p.at("y/systems.h5"), f"systems: {page}")
    done = sagitta("color", *supports[4:], "--output", p.at("c2"), "--json")
    ok(done.returncode == 73 and not done.stdout, "a failure prints nothing")


@claim("terminal, solve and refit print figures that their files have")
def check_figures(p):
    drawn = ["--rows", p.rows, "--dictionary", p.dictionary, "--supports", p.run]
    fitted = [*drawn[:2], "--dictionary", p.fit, "--supports", p.fit]
    for words in drawn, fitted, [*fitted, "--evidence", "slq"]:
        more = "slq" in words
        page, _ = p.tell("terminal", *words, "--output", p.at("figures"), "--force")
        with h5py.File(p.at("figures/terminal.h5")) as f:
            there = dict(f["terminal"].attrs) | dict(f["run/terminal"].attrs)
            slq = dict(f["run/terminal/slq"].attrs) if more else {}
        ok(all(same(page[key], there[key]) for key in
               ("half_log_det", "log_det_rows", "phi", "artifact_sha256", "bad_pivot")), "evidence")
        ok(same(page["log_det_border"], (slq or there)["log_det_border"]), "border")
        ok(more or (page["half_log_det"] is None) == (words == drawn),
           f"{words}: {page['half_log_det']}")
        ok(page["inertia"] == [int(i) for i in there.get("inertia", [])], f"{page['inertia']}")
    page, _ = p.tell("solve", "--systems", p.run + "/systems.h5", "--output", p.at("solved"))
    with h5py.File(p.at("solved/solutions.h5")) as f:
        good = int((f["solutions/status"][:] == 0).sum())
    ok(page["outcomes"][0]["systems"] == good and page["failed"] == page["systems"] - good -
       sum(o["systems"] for o in page["outcomes"][1:] if "empty" in o["outcome"]), f"{page}")


@claim("import, export and evaluate print their findings")
def check_exchange(p):
    name = next(f for f in FOLDERS if f.startswith("saelens") and "jump" in f)
    page, log = p.tell("import", f"{MADE}/{name}", "--output", p.at("sae"))
    line = numbers_of(re.search(r"import .*", log)[0])
    ok(all(str(page[key]) == line[key] for key in ("program", "architecture", "atoms", "columns",
                                                   "dtype", "encoder", "top")), f"{page} {line}")
    ok(f"{page['least_norm']:.6g}..{page['largest_norm']:.6g}" == line["norms"], line["norms"])
    with h5py.File(p.at("sae/dictionary.h5")) as f:
        ok(page["scaled"] == ("decoder" in f["encoder"]) and page["atoms"] == len(f["atoms"]),
           f"{page}")
        columns = f["atoms"].shape[1]
    rng = np.random.default_rng(1)
    np.save(p.at("x.npy"), rng.standard_normal((50, columns)).astype("f4"))
    page, log = p.tell("export", p.at("sae"), "--to", "saelens", "--rows", p.at("x.npy"),
                       "--output", p.at("back"))
    line = numbers_of(re.search(r"judged .*", log)[0])
    ok(f"{page['judged']['sagitta']:.6f}" == line["sagitta"] and
       f"{page['judged']['explained_variance']:.6f}" == line["saelens"] and
       f"{page['judged']['l0']:.2f}" == line["l0"] and page["as_imported"], f"{page} {line}")
    ok(os.path.isfile(page["result"]) and os.path.isfile(p.at("back", page["beside"])), "files")
    page, _ = p.tell("export", p.dictionary, "--to", "npy", "--output", p.at("npy"))
    ok(page["beside"] is None and "judged" not in page and page["to"] == "npy", f"{page}")
    words = ["evaluate", "--rows", p.rows, "--dictionary", p.dictionary, "--codes", p.run,
             "--codes", p.at("job-encode")]
    page, _ = p.tell(*words)
    with h5py.File(p.run + "/supports.h5") as f:
        own = dict(f["metrics"].attrs)
    text = p.need(*words).stdout
    ok(len(page["evaluated"]) == 2 and page["evaluated"][0]["codes"].startswith(p.run), f"{page}")
    for e in page["evaluated"]:
        ok(e["metrics"]["max_decoder_cosine"] is None, "what was not computed is null")
        for key, value in e["metrics"].items():
            ok(value is None or same(value, own[key]), f"{key}: {value} {own[key]}")
            ok(value is None or re.search(rf"^{key} +{value:.9g} +", text, re.M), f"{key} {text}")


@claim("every plan of --dry-run has its figures in whole numbers")
def check_plans(p):
    words = ["--rows", p.rows, "--dictionary", p.dictionary]
    supports = [*words, "--supports", p.run]
    plans = {"encode": [*words, "--top-s", 3], "refit": supports, "assemble": supports,
             "terminal": supports, "solve": ["--systems", p.run + "/systems.h5"],
             "synth": ["--n-rows", 1000], "merge": [p.at("p.h5")],
             "fit": ["--rows", p.rows, "--atoms", 12, "--top-s", 3],
             "train": ["--rows", p.rows, "--atoms", 12, "--top-s", 3]}
    for name, options in plans.items():
        page, _ = p.tell(name, *options, "--dry-run", ranks=2 if name == "encode" else 0)
        text = p.need(name, *options, "--dry-run").stdout
        for line, key in (("disk ", "disk_bytes"), ("rows.h5", "rows_bytes")):
            found = re.search(rf"^{line} +([\d.]+) MB", text, re.M)
            ok((found is None) == (key not in page) and
               (not found or found[1] == f"{1e-6 * page[key]:.1f}"), f"{name}: {key} {text}")
        whole = page["rank_bytes"] if "rank_bytes" in page else page
        found = re.search(r"^memory .*?([\d.]+) MB", text, re.M)[1]
        memory = whole.get("most", whole.get("memory_bytes", sum(
            v for v in whole.values() if isinstance(v, int))))
        # the memory line of these commands also counts a second rank and the program
        free = name in ("encode", "merge")
        # With sanitizers a program is larger than plans assume, and its size varies.
        near = os.environ.get("SANITIZED") and abs(float(found) - 1e-6 * memory) < 16
        ok(free or near or found == f"{1e-6 * memory:.1f}", f"{name}: {memory} {text}")
    page, _ = p.tell("fit", "--rows", p.rows, "--atoms", 12, "--find", "features", "--l0", 2,
                     "--dry-run")
    ok(page["update"] == "features" and page["rank_bytes"]["most"] > 0, f"{page}")
    page, _ = p.tell("synth", "--systems", 9, "--dry-run")
    ok(page["systems"] == 9 and page["systems_bytes"] > 0, f"{page}")


@claim("--json of a benchmark prints the lines of its table")
def check_bench(p):
    small = ["--repeats", 2]
    shape = ["--n-rows", 64, "--atoms", 256, "--columns", 16]
    os.mkdir(p.at("written"))
    write = ["--n-rows", 9000, "--atoms", 64, "--top-s", 4, "--output", p.at("written")]
    for words, names in ((["route", *shape], "random data"),
                         (["update", *shape, "--top-s", 4], "descent"),
                         (["dense", *shape], "gradient"), (["train", *shape, "--top-s", 4], "step"),
                         (["terminal", "--schur", 64], "factor"),
                         (["harvest", "--positions", 100, "--heads", 2], "contiguous"),
                         (["mixer", "--streams", 2, "--heads", 16], "call"),
                         (["write", *write], "result"),
                         (["solve", "--systems", 20, "--system-rows", 8], None),
                         (["solve", "--systems", 5, "--system-rows", 35, "--frame", 1], None)):
        page, _ = p.tell(*words, *small, run=bench)
        ok(page["benchmark"] == words[0] and page["repeats"] == 2, f"{page}")
        text = p.need(*words, *small, run=bench).stdout
        for line in page["lines"]:
            ok(line["seconds"] > 0 and re.search(
                rf"^ *{line['name'] if names else line['border']} ", text, re.M), f"{line} {text}")
        ok(names is None or names in [line["name"] for line in page["lines"]], f"{page['lines']}")
    few = ["--n-rows", 64, "--atoms", 256, "--columns", 16, "--streams", 2, "--seconds", 0.3]
    if "--with-zmq" not in bench("serve", *few, "--json").stderr:  # otherwise there is no ZeroMQ
        page, _ = p.tell("serve", *few, run=bench)
        lines = {line["name"]: line for line in page["lines"]}
        ok(list(lines) == ["encode", "alone", "off", "static", "dynamic", "unwatched"], f"{page}")
        ok(all(lines[name]["requests"] > 0 and lines[name]["lost"] == 0 and
               0 < lines[name]["p50_ms"] <= lines[name]["p99_ms"] <= lines[name]["max_ms"]
               for name in ("alone", "off", "static", "dynamic")), f"{page}")
        ok(all(lines[name]["backlog_rows_per_second"] > 0 for name in lines if name != "alone"),
           f"{page}")
    page = json.loads(bench("train", *shape, "--top-s", 4, "--json", ranks=2).stdout)
    ok(page["ranks"] == 2 and page["lines"], f"two ranks tell one page: {page}")
    page = json.loads(bench("write", *write, *small, "--json", ranks=3).stdout)
    ok(page["ranks"] == 3 and page["bytes"] >= 9000 * 4 * 12 and not os.listdir(p.at("written")),
       f"three ranks write one result, which is removed: {page}")
    page = json.loads(bench("write", *write, "--repeats", 1, "--json", ranks=2).stdout)
    took = {line["name"]: line["seconds"] for line in page["lines"]}
    slower = max(("plain", "hash"), key=took.get)
    ok(page["limit"] == slower and not os.listdir(p.at("written")) and
       abs(page["share_of_limit"] * took["result"] / took[slower] - 1) < 1e-4,
       f"the share is of what takes longer: {page}")
    for change, code, text in ((["--output", p.at("nowhere")], 73, "nowhere"),
                               (["--n-rows", 4096], 2, "more than 4096 rows"),
                               (["--atoms", 3], 2, "4 of 3 atoms")):
        done = bench(*later_wins("write", *write, *change), ranks=2)
        ok(done.returncode == code and text in done.stderr, f"{change}: {done.stderr[:300]}")
    if not SANITIZED:  # with sanitizers the rates take over five minutes
        page, _ = p.tell("rates", "--output", p.at("written"), "--repeats", 1, run=bench)
        ok(page["rates"] and not os.listdir(p.at("written")), f"{page}")
    done = bench("write", *shape)
    ok(done.returncode == 2 and "'--output' is missing" in done.stderr, f"{done.stderr[:300]}")
    with open(p.at("written/bench-write.h5"), "w"):
        done = bench("write", *write)
    ok(done.returncode == 73 and "already exists" in done.stderr, f"{done.stderr[:300]}")
    done = bench("nothing", "--json")
    ok(done.returncode == 2 and not done.stdout, f"an unknown benchmark: {done}")
    for what, more in (("route", "without mpirun"),
                       ("solve", "without mpirun, or add --device cuda")):
        done = bench(what, "--json", ranks=2)
        ok(done.returncode == 2 and not done.stdout and more in done.stderr,
           f"bench {what} on two ranks: exit {done.returncode}, {done.stderr[:300]}")


def shape_of(told):
    """Names, and the first items of lists.  Names in some objects are those of files, atoms or
    phases."""
    if isinstance(told, dict):
        free = ("attributes", "inputs", "metrics", "checks", "filter", "codes")
        return {k: k if k in free or v is None else shape_of(v) for k, v in told.items()
                if k not in HEAD[:2] + HEAD[3:]}
    if isinstance(told, list):
        return [shape_of(told[0])] if told and isinstance(told[0], dict) else "list"
    return "value"


def fits(example, page):
    """Does an example have the entries of a page?  In one of them a list may be empty, and a value
    null."""
    if isinstance(example, dict) and isinstance(page, dict):
        return sorted(example) == sorted(page) and all(fits(example[k], page[k]) for k in page)
    if isinstance(example, list) and isinstance(page, list):
        return fits(example[0], page[0])
    return "list" in (example, page) or not isinstance(page, (dict, list)) and \
        not isinstance(example, (dict, list))


# Entries that every job, or every benchmark, has.  The documents show them only in their first
# example of a job, and of a benchmark.
OF_JOBS = {"device": "cpu", "inputs": {}, "seconds": 0, "stopped": False, "phases": []}
OF_BENCHMARKS = {"repeats": 5, "threads": 1, "device": "cpu"}


def completed(example):
    """An example with the entries that its page leaves out."""
    if "result" in example and "phases" not in example:
        return {**example, **OF_JOBS}
    if "benchmark" in example and "repeats" not in example:
        return {**example, **OF_BENCHMARKS}
    return example


@claim("doc/json.md has an example of every command, with the entries that it prints")
def check_documents(p):
    with open(os.path.join(SOURCE, "doc", "json.md"), encoding="utf-8") as f:
        text = f.read()
    p.tell("inspect", p.fit, "--atom", 3)
    p.tell("synth", "--n-rows", 7, "--output", p.at("plain"))
    p.tell("fit", "--find", "features", "--rows", p.rows, "--atoms", 12, "--l0", 2.5, "--output",
           p.at("features"))
    p.tell("compare", p.dictionary, p.dictionary)
    p.tell("detect", "--rows", p.rows, "--dictionary", p.dictionary, "--codes", p.run, "--output",
           p.at("detect"))
    served = "--with-zmq" not in sagitta("serve", "--dictionary", "none.h5").stderr
    if served:  # otherwise this build has no ZeroMQ
        p.tell("serve", "--dictionary", p.dictionary, "--listen", p.at("live"), "--max-seconds",
               0.1)
    p.tell("diff", p.run + "/dictionary.h5", p.fit + "/dictionary.h5", code=1)
    examples = re.findall(r"^`(sagitta|sagitta-bench) (\w+)([^\n]*) --json`\n\n"
                          r"```json\n(.*?)\n```$", text, re.M | re.S)
    ok(text.count("```json") == len(examples) > 25, f"{len(examples)} examples")
    for _, command, words, example in examples:
        wanted = shape_of({"command": command, **completed(json.loads(example))})
        pages = [shape_of(page) for page in p.pages if page["command"] == command]
        left_out = command == "serve" and not served or command == "rates" and SANITIZED
        ok(any(fits(wanted, page) for page in pages) or left_out,
           f"{command}{words}: {wanted} {pages[:3]}")
    listed = sagitta("--list-options").stdout.split()
    told = {command for program, command, *_ in examples if program == "sagitta"}
    ok(set(listed) == told | {"route"}, f"{set(listed) ^ told}")  # route is like encode
    measured = {command for program, command, *_ in examples if program == "sagitta-bench"}
    ok(measured == set(bench("--list-options").stdout.split()), f"{measured}")
    ok(all("--json" in sagitta("--list-options", name).stdout for name in listed), "an option")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with claim("rows, a dictionary and supports are made"):
            place = Place(folder)
        check_inspect(place)
        check_foreign(place)
        check_verify(place)
        check_diff(place)
        check_jobs(place)
        check_figures(place)
        check_exchange(place)
        check_plans(place)
        check_bench(place)
        check_documents(place)
    done_testing()
