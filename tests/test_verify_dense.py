# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta-bench verify compares the sparse operations of training with dense products, bit
for bit, on built-in shapes and on the codes of a fit and of an encoder, with any threads and
instruction sets.  Inputs without sparse codes are refused."""
import json
import os
import tempfile

import h5py
import numpy as np

from tap import bench, claim, done_testing, fails, gpu_present, need, ok, sagitta

VARIANTS = ("baseline", "avx2", "avx512vl", "avx512")
N, P, K, S = 1400, 24, 60, 5


def page_of(*words, code=0):
    done = bench("verify", "--json", *words)
    need(done, f"verify {words}", code)
    return json.loads(done.stdout)


def outputs_of(case):
    return {o["operation"]: o["outputs"] for o in case["operations"]}


def entries_of(folder):
    with h5py.File(f"{folder}/supports.h5") as f:
        return len(f["supports/indices"])


@claim("verify of built-in shapes finds no fault, with any threads and instructions")
def check_built_in():
    plain = bench("verify")
    need(plain, "built-in shapes")
    lines = plain.stdout.splitlines()
    told = [line.split(None, 1)[0] for line in lines[1:5]]
    ok(told == ["dense", "forward", "back", "gradient"] and
       all(" 0 of " in l for l in lines if l.split()[0] in told[1:]), plain.stdout[:400])
    for words in [("--threads", 1), ("--threads", 5)] + [("--cpu-variant", v) for v in VARIANTS]:
        probe = bench("verify", "--json", *words)
        if probe.returncode == 69:
            continue
        page = page_of(*words)
        ok(page["equal"] and len(page["dense"]) >= 8 and page["device"] == "cpu" and
           all(o["differ"] == 0 < o["outputs"] for c in page["dense"] for o in c["operations"]),
           f"{words}: {page}")
        rows = {c["rows"] for c in page["dense"]}
        ok({1024, 1025} <= rows and max(rows) > 2048, f"rows around chunks of gradients {rows}")
    quiet = bench("verify", "--quiet")
    ok(quiet.returncode == 0 and not quiet.stdout, f"--quiet: {quiet.stdout[:200]}")


@claim("codes of fits, signed and not, and of an encoder are verified, with the rows and without")
def check_folders(at):
    rows = np.random.default_rng(3).standard_normal((N, P)).astype("f4")
    np.save(at("rows.npy"), rows)
    common = ["--rows", at("rows.npy"), "--top-s", S]
    for kind in "signed", "nonnegative":
        need(sagitta("fit", *common, "--atoms", K, "--codes", kind, "--sweeps", 2, "--output",
                     at(kind)), kind)
    need(sagitta("train", *common, "--atoms", K, "--batch", 256, "--steps", 3, "--output",
                 at("sae")), "train")
    need(sagitta("encode", "--rows", at("rows.npy"), "--encoder", at("sae"), "--output",
                 at("coded")), "encode --encoder")
    for name in "signed", "nonnegative", "coded":
        for words in [], ["--rows", at("rows.npy")]:
            if name == "coded":  # a folder with codes of an encoder does not have its dictionary
                words = [*words, "--dictionary", at("sae")]
            page = page_of(at(name), *words)
            case, entries = page["dense"][0], entries_of(at(name))
            ok(page["equal"] and len(page["dense"]) == 1 and case["rows"] == N and
               case["codes"] == entries and outputs_of(case) ==
               {"forward": N * P, "back": entries, "gradient": K * P}, f"{name} {words}: {page}")


@claim("results of train and import are verified, with the codes that their encoder finds for rows")
def check_encoders(at):
    need(sagitta("train", "--rows", at("rows.npy"), "--atoms", K, "--top-s", S, "--uncentered",
                 "--batch", 256, "--steps", 2, "--output", at("plain")), "train --uncentered")
    need(sagitta("export", at("sae"), "--to", "saelens", "--rows", at("rows.npy"), "--output",
                 at("lens")), "export")
    need(sagitta("import", at("lens"), "--output", at("back")), "import")
    for name in "sae", "plain", "back":
        out = at(name + "-codes")
        need(sagitta("encode", "--rows", at("rows.npy"), "--encoder", at(name), "--output", out),
             f"encode --encoder {name}")
        for words in [], ["--threads", 3], ["--cpu-variant", "baseline"]:
            case = page_of(at(name), "--rows", at("rows.npy"), *words)["dense"][0]
            coded = page_of(out, "--rows", at("rows.npy"), "--dictionary", at(name))["dense"][0]
            ok({**case, "of": 0} == {**coded, "of": 0} and case["codes"] == entries_of(out) and
               case["rows"] == N, f"{name} {words}: {case} {coded}")


@claim("inputs without sparse codes, or of other shapes, are refused")
def check_refused(at):
    fails(sagitta("verify"), 2, ["'FILE' is missing"], "nothing")
    fails(sagitta("verify", at("signed"), "--rows", at("rows.npy")), 2, ["supports of an encoder"],
          "rows of other supports")
    fails(bench("verify", "--rows", at("rows.npy")), 2, ["name the folder"], "no folder")
    fails(bench("verify", at("signed", "supports.h5")), 2, ["is a file"], "a file")
    fails(bench("verify", "--dictionary", at("sae")), 2, ["name the folder"], "no folder")
    fails(bench("verify", at("sae")), 2, ["give '--rows'"], "no codes and no rows")
    fails(bench("verify", at("coded")), 2, ["give '--dictionary'"], "no atoms")
    fails(bench("verify", at("coded"), "--dictionary", at("signed")), 65,
          ["another dictionary"], "other atoms")
    os.makedirs(at("mixed"))
    os.link(at("coded", "supports.h5"), at("mixed", "supports.h5"))
    os.link(at("signed", "dictionary.h5"), at("mixed", "dictionary.h5"))
    fails(bench("verify", at("mixed")), 65, ["another dictionary"], "a mixed folder")
    need(sagitta("seed", "--rows", at("rows.npy"), "--atoms", K, "--output", at("seeded")), "seed")
    fails(bench("verify", at("seeded"), "--rows", at("rows.npy")), 65, ["encoder"],
          "no encoder")
    np.save(at("few.npy"), np.ones((7, P), "f4"))
    fails(bench("verify", at("signed"), "--rows", at("few.npy")), 65,
          ["7 rows", f"{N} rows"], "other rows")
    need(sagitta("route", "--rows", at("rows.npy"), "--dictionary", at("signed"), "--top-s", 3,
                 "--output", at("routed")), "route")
    os.link(at("signed", "dictionary.h5"), at("routed", "dictionary.h5"))
    fails(bench("verify", at("routed")), 65, ["scores, not codes"], "scores")


@claim("on a GPU verify finds the same")
def check_gpu(at):
    if not gpu_present():
        return
    for words in [], *([at(name), "--rows", at("rows.npy")] for name in ("signed", "sae")):
        page = page_of("--device", "cuda", *words)
        ok(page["equal"] and page["device"] == "cuda", f"{words}: {page}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        def at(*names):
            return os.path.join(folder, *names)

        check_built_in()
        check_folders(at)
        check_encoders(at)
        check_refused(at)
        check_gpu(at)
    done_testing()


main()
