# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta train --selection batch` writes the same bytes on any number of ranks and
threads, resumed or not, on CPUs and GPUs.  Every command takes its encoder, which gives rows
different numbers of codes.  Wrong requests are refused."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from seal import reseal
from tap import SOURCE, claim, done_testing, fails, gpu_present, need, ok, sagitta, same
from train_place import ATOMS, Place, rows_make


@claim("ranks and threads change no byte, nor does a stop")
def check_ranks(p):
    need(p.train("one"), "one rank")
    need(sagitta("verify", p.result("one")), "verify")
    for ranks, threads in (2, 1), (3, 2), (5, 1), (0, 3):
        out = f"r{ranks}t{threads}"
        need(p.train(out, "--threads", threads, ranks=ranks), out)
        same(p.result("one"), p.result(out), out)
    os.mkdir(p.at("stop"))
    open(p.at("stop", "STOP"), "w").close()
    fails(p.train("stop"), 75, ["--resume"], "stopped before the first step")
    os.remove(p.at("stop", "STOP"))
    part = p.words("stop", "--resume", "--max-seconds", 1e-9)
    fails(sagitta(*part, ranks=2), 75, ["--resume"], "stopped after some steps")
    need(sagitta("verify", p.at("stop", "state.h5")), "verify a state")
    with h5py.File(p.at("stop", "state.h5")) as f:
        ok(f["train/threshold"][1] > 0, "a state has its threshold")
    fails(p.train("stop", "--resume", "--l0", 2), 65, ["--l0 2.5", "--l0 2;"], "another number")
    fails(p.train("stop", "--resume", "--selection", "row", "--l0", 0), 65,
          ["--selection batch", "--selection row"], "another selection")
    need(p.train("stop", "--resume", ranks=3), "resumed")
    same(p.result("one"), p.result("stop"), "resumed")


@claim("nested widths give the same bytes on any number of ranks, resumed or not")
def check_nested(p):
    row = ["--selection", "row", "--l0", 0]
    for name, words in ("nest", ["--nested", "4,11,30"]), ("nestrow", ["--nested", "1,30", *row]):
        need(p.train(name, *words), name)
        for ranks, threads in (2, 1), (3, 2), (5, 1):
            out = f"{name}{ranks}"
            need(p.train(out, "--threads", threads, *words, ranks=ranks), out)
            same(p.result(name), p.result(out), out)
        part = p.words(name + "part", *words, "--max-seconds", 1e-9)
        fails(sagitta(*part), 75, ["--resume"], "stopped after some steps")
        fails(p.train(name + "part", *words, "--nested", "5,30", "--resume"), 65,
              ["has --nested 5,30"], "other widths")
        need(p.train(name + "part", *words, "--resume", ranks=2), "resumed")
        same(p.result(name), p.result(name + "part"), "resumed")
    ok(p.history("nest")[-1, 1] > 0.4, f"{p.history('nest')}")
    need(p.train("whole", "--nested", 30), "one width")
    with h5py.File(p.result("one")) as f, h5py.File(p.result("whole")) as g:
        ok((f["atoms"][...] == g["atoms"][...]).all(), "one width is none")


@claim("a learned bias before the encoder gives the same bytes, and encode subtracts it")
def check_learned(p):
    words = ["--pre-bias", "learned", "--nested", "8,30"]
    need(p.train("learned", *words), "one rank")
    for ranks, threads in (2, 1), (3, 2), (5, 1):
        out = f"learned{ranks}"
        need(p.train(out, "--threads", threads, *words, ranks=ranks), out)
        same(p.result("learned"), p.result(out), out)
    for more in [], ["--uncentered"]:
        whole, part = "bias" + "".join(more), "part" + "".join(more)
        need(p.train(whole, *words, *more), whole)
        fails(p.train(part, *words, *more, "--max-seconds", 1e-9), 75, ["--resume"], "stopped")
        need(sagitta("verify", p.at(part, "state.h5")), "verify a state")
        need(p.train(part, *words, *more, "--resume", ranks=2), "resumed")
        same(p.result(whole), p.result(part), "resumed")
        need(sagitta("encode", "--rows", p.at("held.npy"), "--encoder", p.at(whole), "--output",
                     p.at(whole, "codes.h5")), "encode")
        with h5py.File(p.at(whole, "codes.h5")) as f:
            said = f["metrics"].attrs["explained_variance"]
        ok(said == p.history(whole)[-1, 2] and said > 0.1, f"{said} {p.history(whole)[-1]}")
    with h5py.File(p.result("one")) as f, h5py.File(p.result("learned")) as g:
        moved = np.abs(f["mean"][...] - g["mean"][...])
        ok(0 < moved.min() and moved.max() < 60, f"the mean moved by {moved}")
    need(p.train("on", "--pre-bias", "learned", "--start", p.at("learned"), "--atoms", 0), "on")
    ok(p.history("on")[0, 2] == p.history("learned")[-1, 2], f"{p.history('on')}")


@claim("the history has the explained variance, and run.json the number of codes of unseen rows")
def check_told(p):
    done = p.train("told", "--epochs", 20, "--json")
    need(done, "--json")
    told, lines = json.loads(done.stdout), p.history("told")
    ok(np.isnan(lines[0, 2]) and lines[-1, 2] > 0.6 > lines[1, 2], f"{lines[:, 2]}")
    ok(told["l0_target"] == 2.5 and abs(told["l0"] - 2.5) < 0.25 and "top_s" not in told, f"{told}")
    ok(told["lines"][0]["l0"] is None and told["lines"][-1]["l0"] == told["l0"], f"{told['lines']}")
    with h5py.File(p.result("told")) as f:
        threshold = f["encoder/threshold"][...]
        ok((threshold == threshold[0]).all() and threshold[0] > 0, f"{threshold}")


@claim("encode, evaluate, inspect and merge take rows of any number of codes")
def check_used(p):
    need(sagitta("encode", "--rows", p.at("held.npy"), "--encoder", p.at("told"), "--output",
                 p.at("codes")), "encode")
    with h5py.File(p.at("codes", "supports.h5")) as f, h5py.File(p.result("told")) as g:
        metrics = dict(f["metrics"].attrs)
        counts, codes = np.diff(f["supports/indptr"][...]), f["supports/data"][...]
        ok(counts.min() == 0 and counts.max() > 5, f"{counts.min()} to {counts.max()} codes")
        ok(codes.min() > g["encoder/threshold"][0], "codes are above the threshold")
    with open(p.at("told", "run.json")) as f:
        told = json.load(f)
    ok(metrics["explained_variance"] == told["unseen"] and metrics["l0"] == told["l0"],
       f"{metrics} {told}")
    need(sagitta("verify", p.at("codes", "supports.h5")), "verify")
    done = sagitta("evaluate", "--rows", p.at("held.npy"), "--dictionary", p.at("told"), "--codes",
                   p.at("codes"), "--json")
    need(done, "evaluate")
    evaluated = json.loads(done.stdout)["evaluated"][0]["metrics"]
    ok(evaluated["explained_variance"] == told["unseen"] and evaluated["l0"] == told["l0"],
       done.stdout)
    for what in p.result("told"), p.at("codes", "supports.h5"):
        done = sagitta("inspect", what)
        need(done, "inspect")
    ok("l0" in done.stdout, done.stdout)
    shutil.copy(p.result("told"), p.at("codes"))
    need(sagitta("inspect", p.at("codes"), "--atom", 3), "inspect an atom")
    done = subprocess.run([sys.executable, f"{SOURCE}/scripts/report", p.at("told"), "--codes",
                           p.at("codes"), "--output", p.at("page.html")], capture_output=True,
                          text=True)
    need(done, "the page")
    with open(p.at("page.html"), encoding="utf-8") as f:
        page = f.read()
    ok("by the batchtopk encoder" in page and f"<b>{told['l0']:.3g}</b>" in page, page[:2000])
    random = np.random.default_rng(6)
    np.save(p.at("many.npy"), rows_make(random, 5000))
    words = ["encode", "--rows", p.at("many.npy"), "--encoder", p.at("told")]
    need(sagitta(*words, "--output", p.at("whole.h5"), ranks=2), "all rows")
    parts = []
    for part in "0:4096", "4096:5000":
        parts.append(p.at(f"part{part[:1]}.h5"))
        need(sagitta(*words, "--row-range", part, "--output", parts[-1]), part)
    need(sagitta("merge", *parts, "--output", p.at("merged.h5")), "merge")
    same(p.at("whole.h5"), p.at("merged.h5"), "merged")


@claim("export writes a jumprelu of SAELens, which import reads; other programs are refused")
def check_exchanged(p):
    done = sagitta("export", p.at("told"), "--to", "saelens", "--rows", p.at("held.npy"),
                   "--output", p.at("lens"))
    need(done, "export")
    with open(p.at("told", "run.json")) as f:
        ok(f"saelens={json.load(f)['unseen']:.6f}" in done.stderr, done.stderr)
    with open(p.at("lens", "cfg.json")) as f:
        settings = json.load(f)
    ok(settings["architecture"] == "jumprelu" and settings["apply_b_dec_to_input"], f"{settings}")
    need(sagitta("import", p.at("lens"), "--output", p.at("back")), "import")
    with h5py.File(p.result("told")) as f, h5py.File(p.result("back")) as g:
        for name in "atoms", "encoder/weights", "encoder/bias", "encoder/threshold":
            ok((f[name][...] == g[name][...]).all(), name)
    fails(sagitta("export", p.at("told"), "--to", "sparsify", "--output", p.at("no")), 65,
          ["kind topk", "--to saelens"], "sparsify has no thresholds")
    need(sagitta("export", p.at("told"), "--to", "safetensors", "--output", p.at("plain")), "atoms")


@claim("a start from an encoder with a threshold takes it; encoders of other kinds are refused")
def check_start(p):
    done = p.train("again", "--start", p.at("told"), "--atoms", 0)
    need(done, "--start")
    ok("mean and encoder of" in done.stderr, done.stderr[:600])
    ok(p.history("again")[0, 2] == p.history("told")[-1, 2], f"{p.history('again')}")
    need(p.train("again3", "--start", p.at("told"), "--atoms", 0, ranks=3), "three ranks")
    same(p.result("again"), p.result("again3"), "--start, three ranks")
    done = p.train("rows", "--start", p.at("told"), "--atoms", 0, "--selection", "row", "--l0", 0)
    need(done, "--selection row")
    ok("is not taken" in done.stderr and "here are topk" in done.stderr, done.stderr[:900])
    done = p.train("uneven", "--start", p.at("rows"), "--atoms", 0)
    ok("is not taken" in done.stderr and "here are batchtopk" in done.stderr, done.stderr[:900])
    shutil.copy(p.result("told"), p.at("uneven.h5"))
    with h5py.File(p.at("uneven.h5"), "r+") as f:
        f["encoder/threshold"][3] *= 2
        reseal(f)
    done = p.train("uneven2", "--start", p.at("uneven.h5"), "--atoms", 0)
    ok("is not taken" in done.stderr, f"thresholds that differ: {done.stderr[:900]}")
    need(p.train("fixed", "--fixed-dictionary", p.at("told"), "--atoms", 0), "--fixed-dictionary")


@claim("impossible requests are refused, and the message says what to do")
def check_refused(p):
    for code, said, words in (
            (2, [f"'--l0' is {ATOMS + 0.5}", "lower it"], ["--l0", ATOMS + 0.5]),
            (2, ["batches of 200", "raise one"], ["--l0", 0.004]),
            (2, ["--selection batch", "--top-s"], ["--selection", "row"]),
            (2, ["'--epochs' of 1"], ["--epochs", 0]),
            (2, ["the last size has to be 30"], ["--nested", "4,11"]),
            (2, ["11 follows 11", "rise"], ["--nested", "11,11,30"]),
            (2, ["4 follows 11", "rise"], ["--nested", "11,4,30"]),
            (2, ["commas", "128,512,30"], ["--nested", "4;30"]),
            (2, ["commas"], ["--nested", "4,,30"]), (2, ["commas"], ["--nested", "4,30,"]),
            (2, ["commas"], ["--nested", "-4,30"]), (2, ["commas"], ["--nested", "0,30"]),
            (2, ["commas"], ["--nested", "4, 30"]), (2, ["empty"], ["--nested", ""]),
            (2, ["more than 16"], ["--nested", ",".join(map(str, [*range(1, 17), 30]))]),
            (2, ["mean|learned"], ["--pre-bias", "both"]),
            (2, ["row|batch"], ["--selection", "sometimes"]),
            (2, ["l0"], ["--l0", -1])):
        fails(p.train("refused", *words), code, said, f"{words}")
    done = p.train("default", "--l0", 0)
    ok(done.returncode == 0 and "l0=3 " in done.stderr, f"as --top-s says: {done.stderr[-500:]}")
    need(p.train("all", "--l0", ATOMS, "--epochs", 1), "all that are positive")
    done = p.train("large", "--atoms", 4000, "--epochs", 1)
    ok(done.returncode == 0 and " an atom: other rows" in done.stderr and
       "give 40000 rows" in done.stderr, f"few rows: {done.stderr[:500]}")
    need(p.train("few", "--l0", 0.005, "--epochs", 1), "one code a batch")
    with h5py.File(p.result("all")) as f:
        ok((f["encoder/threshold"][...] == 0).all(), "all positive scores are codes")


@claim("GPUs write the bytes of CPUs, on any number of ranks, stopped on one and resumed on the "
       "other")
def check_gpu(p):
    if not gpu_present():
        return
    row, nested = ["--selection", "row", "--l0", 0], ["--nested", "4,11,30"]
    learned = ["--pre-bias", "learned"]
    for i, words in enumerate(([], nested, [*nested, *row], learned, [*learned, *nested],
                               [*learned, *row], ["--l0", 0.005], ["--l0", ATOMS])):
        words = [*words, "--epochs", 2]
        need(p.train(f"cpu{i}", *words, "--device", "cpu"), f"{words}")
        for ranks in 0, 2, 3:
            out = f"gpu{i}r{ranks}"
            need(p.train(out, *words, "--device", "cuda", ranks=ranks), out)
            same(p.result(f"cpu{i}"), p.result(out), f"{words}, {ranks} ranks")
    words = [*learned, *nested, "--epochs", 2]
    for here, there in ("cpu", "cuda"), ("cuda", "cpu"):
        out = "from" + here
        fails(p.train(out, *words, "--device", here, "--max-seconds", 1e-9), 75, ["--resume"], out)
        need(p.train(out, *words, "--device", there, "--resume", ranks=2), out)
        same(p.result("cpu4"), p.result(out), f"begun on {here}")
    for ranks in 0, 2:
        need(p.train(f"unit{ranks}", *words, "--precision", "bf16", ranks=ranks), f"{ranks} ranks")
    same(p.result("unit0"), p.result("unit2"), "scores of the matrix unit")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Place.more = ["--selection", "batch", "--l0", 2.5]
        place = Place(folder)
        check_ranks(place)
        check_nested(place)
        check_learned(place)
        check_told(place)
        check_used(place)
        check_exchanged(place)
        check_start(place)
        check_refused(place)
        check_gpu(place)
    done_testing()
