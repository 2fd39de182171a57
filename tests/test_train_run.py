# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta train` writes the same bytes on any number of ranks and threads, also if it is
stopped, killed and resumed.  encode, evaluate and export take what it writes.  Wrong requests are
refused."""
import json
import os
import shutil
import signal
import tempfile
import time

import h5py
import numpy as np

from jobs import faulty, job_end, job_ranks, job_start
from seal import reseal
from tap import (FULL, claim, done_testing, fails, gpu_present, later_wins, need, ok, sagitta, same,
                 skip)
from train_place import ATOMS, Place, stopped_over


@claim("ranks and threads change no byte")
def check_ranks(p):
    need(p.train("one"), "one rank")
    need(sagitta("verify", p.result("one")), "verify")
    cuts = (2, 1), (5, 1), (0, 3), (3, 1), (0, 2)
    for ranks, threads in cuts if FULL else cuts[:3]:
        out = f"r{ranks}t{threads}"
        need(p.train(out, "--threads", threads, ranks=ranks), out)
        same(p.result("one"), p.result(out), out)
    lines = p.history("one")
    ok(len(lines) == 5 and lines[-1, 0] == 60 and lines[-1, 2] > 0.5 > lines[0, 2], f"{lines}")
    ok(np.isnan(lines[0, 1]) and lines[-1, 1] > 0.5, f"{lines[:, 1]}")
    ok(not os.path.exists(p.at("one", "state.h5")), "the state is gone")
    done = p.train("other", "--seed", 1)
    ok(done.returncode == 0 and sagitta("diff", p.result("one"), p.result("other")).returncode == 1,
       "another seed is another start")


@claim("a run that was asked to stop ends with 75, and continues on other ranks")
def check_stopped(p):
    os.mkdir(p.at("stop"))
    open(p.at("stop", "STOP"), "w").close()
    done = p.train("stop", ranks=2)
    fails(done, 75, ["stopped", "--resume"], "STOP")
    need(sagitta("verify", p.at("stop", "state.h5")), "verify a state")
    done = sagitta("export", p.at("stop", "state.h5"), "--output", p.at("early"))
    need(done, "export a state")
    ok("warning: " in done.stderr and "has not ended" in done.stderr and
       "--resume" in done.stderr, done.stderr[-400:])
    os.remove(p.at("stop", "STOP"))
    fails(p.train("stop", "--resume", "--top-s", 4), 65,
          ["written with --top-s 3, this run has --top-s 4"], "other options")
    fails(p.train("stop", "--resume", "--rows", p.at("held.npy"), "--holdout", p.at("rows.npy")),
          65, ["other rows"], "other rows")
    fails(p.train("stop"), 73, ["state.h5"], "without --resume")
    done = p.train("stop", "--resume", ranks=3)
    need(done, "resumed")
    ok("after step 0 " in done.stderr, done.stderr[-300:])
    same(p.result("one"), p.result("stop"), "resumed")
    done = p.train("stop", "--resume")
    need(done, "nothing is left to do")
    ok("is complete" in done.stderr, done.stderr[-300:])
    rows = np.load(p.at("rows.npy"))
    rows[2000, 5] += 1
    np.save(p.at("other.npy"), rows)
    for ranks in 0, 2:
        fails(p.train("stop", "--resume", "--rows", p.at("other.npy"), ranks=ranks), 65,
              ["is complete", "made of other rows"], "complete, of other rows")
    fails(p.train("stop", "--resume", "--holdout", p.at("other.npy")), 65, ["judged by other rows"],
          "complete, judged by others")
    fails(p.train("stop", "--resume", "--seed", 3), 65, ["--seed 0", "--seed 3"], "another seed")
    words = p.words("share", "--holdout-share", 0.2)
    at = words.index("--holdout")
    del words[at:at + 2]
    need(sagitta(*words), "with --holdout-share")
    need(sagitta(*words, "--resume", ranks=2), "with --holdout-share, complete")
    need(p.train("anew", "--resume"), "nothing to go on from")
    same(p.result("one"), p.result("anew"), "begun anew")
    need(p.train("over", "--rows", p.at("other.npy")), "a result of other rows")
    stopped_over(p.at("over"), lambda *words: p.train("over", *words))
    same(p.result("one"), p.result("over"), "resumed beside an older result")


@claim("an unfinished run is resumed only with the same held-out rows")
def check_held(p):
    none, share, held = ["--holdout-share", 0], ["--holdout-share", 0.1], ["--holdout",
                                                                          p.at("held.npy")]
    np.save(p.at("held2.npy"), 2 * np.load(p.at("held.npy")))
    kinds = {"none": none, "share": share, "held": held, "held2": ["--holdout", p.at("held2.npy")],
             "both": held + share}
    words = p.words("judged")
    at = words.index("--holdout")
    del words[at:at + 2]
    for begun in "none", "share", "held":
        shutil.rmtree(p.at("judged"), ignore_errors=True)
        os.mkdir(p.at("judged"))
        open(p.at("judged", "STOP"), "w").close()
        fails(sagitta(*words, *kinds[begun]), 75, ["stopped"], begun)
        os.remove(p.at("judged", "STOP"))
        for other in kinds:
            if other != begun and {other, begun} != {"held", "both"}:
                done = sagitta(*words, *kinds[other], "--resume", ranks=2 * (other == "none"))
                said = ("judged by other rows" if other == "held2" and begun == "held" else
                        "--holdout-share 0" if "share" in (begun, other) or "none" not in
                        (begun, other) else "held_out_rows")
                ok(done.returncode == 65 and said in done.stderr,
                   f"{begun}, then {other}: {done.returncode} {done.stderr[-300:]}")
        need(sagitta(*words, *kinds["both" if begun == "held" else begun], "--resume"), begun)


@claim("a stop waits for one step, not for many, if steps are long")
def check_long_steps(p):
    rows = np.random.default_rng(7).standard_normal((4096, 128)).astype("f4")
    np.save(p.at("long-rows.npy"), rows)
    words = ["train", "--rows", p.at("long-rows.npy"), "--atoms", 4096, "--top-s", 16, "--batch",
             2048, "--steps", 40000, "--holdout-share", 0, "--threads", 1, "--device", "cpu",
             "--output", p.at("slow")]
    done = sagitta(*words, "--max-seconds", 0.01)
    fails(done, 75, ["stopped by --max-seconds"], "--max-seconds")
    with h5py.File(p.at("slow", "state.h5")) as f:
        steps = f["train/history"].attrs["steps"]
    ok(1 <= steps < 16, f"stopped after {steps} steps")
    job = job_start(*words, "--resume", ranks=2)
    for line in job.stderr:
        if "resume  after" in line:
            break
    time.sleep(0.5)
    os.kill(job_ranks(job)[1], signal.SIGUSR1)  # mpirun would pass it on at another time
    code, text = job_end(job, 60)
    ok(code == 75 and "stopped by a signal" in text, f"{code} {text[-300:]}")
    with h5py.File(p.at("slow", "state.h5")) as f:
        more = f["train/history"].attrs["steps"] - steps
    ok(0 <= more < 16, f"{more} steps after the first {steps}")


@claim("a run that is stopped or killed at any call for a file continues from its last state")
def check_killed(p):
    if os.environ.get("SANITIZED"):
        return skip("a sanitizer must be preloaded first, so this test cannot preload a library")
    words = p.words("killed", "--every", 7, "--save-seconds", 0)
    need(sagitta(*p.words("seven", "--every", 7)), "a line every seven steps")
    calls = faulty("signal:1000000000", *words, count=True, of=".tmp")
    for part, number in (2, signal.SIGKILL), (5, signal.SIGKILL), (7, signal.SIGKILL), (
            3, signal.SIGTERM):
        os.environ["FAULT_SIGNAL"] = str(int(number))
        shutil.rmtree(p.at("killed"), ignore_errors=True)
        code, text = faulty(f"signal:{calls * part // 8}", *words, of=".tmp")
        ok(code == (75 if number == signal.SIGTERM else -number), f"{part}: {code} {text[-300:]}")
        with h5py.File(p.at("killed", "state.h5")) as f, open(p.at("killed", "run.json")) as g:
            page, steps = json.load(g), f["train/history"][-1, 0]
            last = page["lines"][-1]
            ok(page["end"] is None and last["step"] <= min(page["steps"], steps) and
               page["atoms"] == ATOMS and last["unseen"] == page["unseen"], f"{part}: {page}")
        done = sagitta(*later_wins(*words, "--resume"), ranks=2 if part == 5 else 0)
        need(done, f"killed at {part} of 8")
        ok("resume  after step" in done.stderr or part == 0, f"{part}: {done.stderr[-400:]}")
        same(p.result("seven"), p.result("killed"), f"killed at {part} of 8")
    return None


@claim("encode, evaluate and export take the result, and give unseen rows train's figures")
def check_used(p):
    need(sagitta("encode", "--rows", p.at("held.npy"), "--encoder", p.at("one"), "--output",
                 p.at("codes")), "encode")
    with h5py.File(p.at("codes", "supports.h5")) as f:
        said = f["metrics"].attrs["explained_variance"]
        ok(f["supports/data"][...].min() > 0, "codes are positive")
    ok(said == p.history("one")[-1, 2], f"{said} {p.history('one')[-1]}")
    done = sagitta("evaluate", "--rows", p.at("held.npy"), "--dictionary", p.at("one"), "--codes",
                   p.at("codes"), "--json")
    need(done, "evaluate")
    metrics = json.loads(done.stdout)["evaluated"][0]["metrics"]
    ok(metrics["explained_variance"] == said, done.stdout)
    for to in "saelens", "sparsify", "safetensors":
        done = sagitta("export", p.at("one"), "--to", to, "--rows", p.at("held.npy"), "--output",
                       p.at(to))
        need(done, to)
        ok("has not ended" not in done.stderr, done.stderr[-300:])
    need(sagitta("import", p.at("saelens"), "--output", p.at("back")), "import")
    with h5py.File(p.result("one")) as f, h5py.File(p.result("back")) as g:
        for name in "atoms", "encoder/weights", "encoder/bias":
            ok((f[name][...] == g[name][...]).all(), name)


@claim("--fixed-dictionary trains an encoder for fixed atoms; after --start the atoms move")
def check_start(p):
    need(sagitta("fit", "--rows", p.at("rows.npy"), "--holdout", p.at("held.npy"), "--atoms", ATOMS,
                 "--top-s", 3, "--sweeps", 5, "--output", p.at("fit")), "fit")
    with h5py.File(p.result("fit")) as f:
        atoms, mean = f["atoms"][...], f["mean"][...]
    for option in "--fixed-dictionary", "--start":
        out = option.strip("-")
        words = [w for w in p.words(out, option, p.at("fit"))]
        at = words.index("--atoms")
        del words[at:at + 2]
        need(sagitta(*words), option)
        need(sagitta(*later_wins(*words, "--output", p.at(out + "3")), ranks=3), option)
        same(p.result(out), p.result(out + "3"), f"{option}, 3 ranks")
        lines = p.history(out)
        with h5py.File(p.result(out)) as f:
            stayed = (f["atoms"][...] == atoms).all()
            ok(stayed == (option == "--fixed-dictionary"), f"{option}: {stayed}")
            ok((f["mean"][...] == mean).all(), f"{option}: the mean")
        ok(lines[-1, 2] > lines[0, 2] + 0.02, f"{option}: {lines[:, 2]}")


@claim("a start from a trained dictionary takes its encoder; other starts are reported")
def check_start_trained(p):
    words = p.words("again", "--start", p.at("one"), "--lr", 0.002)
    at = words.index("--atoms")
    del words[at:at + 2]
    for option, out in ("--start", "again"), ("--fixed-dictionary", "still"):
        words[words.index("--start") if "--start" in words else words.index(option)] = option
        done = sagitta(*later_wins(*words, "--output", p.at(out)))
        need(done, option)
        ok("mean and encoder of" in done.stderr and "tied" not in done.stderr, done.stderr[:600])
        lines, before = p.history(out), p.history("one")
        ok(lines[0, 2] == before[-1, 2] and lines[-1, 2] > 0.5, f"{option}: {lines[:, 2]}")
        need(sagitta(*later_wins(*words, "--output", p.at(out + "2")), ranks=2), option)
        same(p.result(out), p.result(out + "2"), f"{option}, 2 ranks")
    with h5py.File(p.result("one")) as f:
        atoms, mean = f["atoms"][...], f["mean"][...]
    with h5py.File(p.at("bare.h5"), "w") as f:
        f["atoms"], f["mean"] = atoms, mean
    np.save(p.at("bare.npy"), atoms)
    shutil.copy(p.result("one"), p.at("uncentred.h5"))
    with h5py.File(p.at("uncentred.h5"), "r+") as f:
        f["encoder"].attrs.modify("centered", 0)
    for name, said, unsaid, more in (
            ("bare.h5", ["start   atoms and mean of", "begins tied"], "brings no mean", []),
            ("bare.npy", ["begins tied", "brings no mean: rows are not centred"], "not taken", []),
            ("bare.npy", ["begins tied"], "brings no mean", ["--uncentered"]),
            ("back", ["atoms, mean and encoder of"], "is not taken", []),
            ("uncentred.h5", ["begins tied", "the encoder of", "is not taken"], "no mean", [])):
        done = p.train("from", "--start", p.at(name), "--atoms", 0, "--force", *more)
        need(done, name)
        ok(all(s in done.stderr for s in said) and unsaid not in done.stderr,
           f"{name}: {done.stderr[:700]}")
    os.mkdir(p.at("kept"))
    open(p.at("kept", "STOP"), "w").close()
    fails(p.train("kept", "--start", p.at("one"), "--atoms", 0), 75, ["stopped"], "stopped")
    os.remove(p.at("kept", "STOP"))
    fails(p.train("kept", "--start", p.at("bare.h5"), "--atoms", 0, "--resume"), 65,
          ["start_hash"],
          "resumed with the atoms alone")
    shutil.copy(p.result("one"), p.at("shifted.h5"))
    with h5py.File(p.at("shifted.h5"), "r+") as f:
        f["mean"][3] += 0.5
        reseal(f)
    fails(p.train("kept", "--start", p.at("shifted.h5"), "--atoms", 0, "--resume"), 65,
          ["start_hash"],
          "resumed with another mean")
    need(p.train("kept", "--start", p.at("one"), "--atoms", 0, "--resume"), "resumed with the same")
    fails(p.train("kept", "--start", p.at("shifted.h5"), "--atoms", 0, "--resume"), 65,
          ["start_hash"],
          "complete, another mean")


@claim("impossible requests are refused, and the message says what to do")
def check_refused(p):
    few, bad, flat = np.load(p.at("rows.npy"))[:100], np.load(p.at("rows.npy")), np.zeros((900, 12))
    bad[1234, 5] = np.nan
    for name, rows in ("few", few), ("bad", bad), ("flat", flat.astype("f4")):
        np.save(p.at(name + ".npy"), rows)
    np.save(p.at("ones.npy"), np.ones((900, 12), "f4"))
    np.save(p.at("wide.npy"), np.eye(13, dtype="f4"))
    np.save(p.at("long.npy"), 2 * np.eye(12, dtype="f4"))
    rows = {name: ["--rows", p.at(name + ".npy")] for name in ("few", "bad", "wide")}
    atoms = {name: ["--start", p.at(name + ".npy"), "--atoms", 0] for name in ("wide", "long")}
    for code, said, words in (
            (65, ["100 rows", "--batch"], rows["few"]), (65, ["row 1234", "column 5"], rows["bad"]),
            (65, ["12 columns"], rows["wide"]), (65, ["columns"], atoms["wide"]),
            (65, ["norm"], atoms["long"]), (2, ["'--atoms' is missing"], ["--atoms", 0]),
            (2, ["not both"], ["--start", "a", "--fixed-dictionary", "b"]),
            (2, ["leave it out"], ["--start", p.at("one"), "--atoms", 7]),
            (2, ["brings a mean"], ["--start", p.at("one"), "--atoms", 0, "--uncentered"]),
            (65, ["held-out rows of", "do not vary"], ["--holdout", p.at("flat.npy")]),
            (65, ["flat.npy", "nothing to learn"], ["--rows", p.at("flat.npy")]),
            (65, ["ones.npy", "nothing to learn"], ["--rows", p.at("ones.npy"), "--uncentered"]),
            (65, ["smaller '--lr'"], ["--lr", 1e38, "--batch", 20]),
            (71, ["lower --atoms"], ["--atoms", 1 << 28]),
            (69, ["bf16", "'--precision f32'"], ["--precision", "bf16", "--device", "cpu"]),
            (2, ["f32|bf16|f16|tf32"], ["--precision", "fp8"]),
            (2, ["the results are a folder"], ["--output", p.at("x.h5")]),
            (73, ["dictionary.h5"], ["--output", p.at("one")])):
        fails(p.train("refused", *words), code, said, f"{words}")
    fails(p.train("refused", *rows["bad"], ranks=2), 65, ["row 1234", "column 5"], "two ranks")
    fails(p.train("refused", "--rows", p.at("ones.npy"), ranks=2), 65, ["nothing to learn"], "ones")
    halves = np.repeat(np.float32([1, 2]), 450)[:, None] * np.ones(12, "f4")  # one half per rank
    np.save(p.at("halves.npy"), halves)
    need(p.train("halves", "--rows", p.at("halves.npy"), ranks=2), "two rows that differ")


@claim("too long steps, and more atoms per row than the dictionary has, give a warning; other runs "
       "give none")
def check_warned(p):
    told = "no atoms at all explain 0: lower --lr"
    for words, said in (
            (["--lr", 100], [told, "of the unseen rows", "which is 100,"]),
            (["--lr", 100, "--holdout-share", 0], [told, "of the last rows"]),
            (["--top-s", ATOMS + 1], [f"top-s is {ATOMS + 1}, there are {ATOMS} atoms: each row"]),
            (["--top-s", ATOMS], []), (["--lr", 100, "--epochs", 0], [])):
        run = p.words("warned", "--force", *words)
        if "--holdout-share" in words:
            at = run.index("--holdout")
            del run[at:at + 2]
        done = sagitta(*run, ranks=2)
        warned = sum(w in done.stderr for w in ("no atoms at all", "top-s is"))
        ok(done.returncode == 0 and all(done.stderr.count(w) == 1 for w in said) and
           warned == bool(said), f"{words}: {done.returncode} {done.stderr[-700:]}")


@claim("GPUs write the bytes of CPUs, on any number of ranks")
def check_gpu(p):
    if not gpu_present():
        return
    for ranks in 0, 2:
        need(p.train(f"gpu{ranks}", "--device", "cuda", ranks=ranks), f"{ranks} ranks")
        same(p.result("one"), p.result(f"gpu{ranks}"), f"{ranks} ranks")


@claim("scores computed by a matrix unit give the same bytes on any number of ranks, also resumed")
def check_units(p):
    if not gpu_present():
        return skip("there is no GPU")
    for precision in "bf16", "f16", "tf32":
        words = ["--precision", precision, "--batch", 512]
        need(p.train(precision, *words), precision)
        need(p.train(precision + "2", *words, ranks=2), f"{precision}, two ranks")
        same(p.result(precision), p.result(precision + "2"), precision)
        ok(p.history(precision)[-1, 2] > 0.5, f"{precision}: {p.history(precision)[-1]}")
    os.mkdir(p.at("half"))
    open(p.at("half", "STOP"), "w").close()
    fails(p.train("half", *words), 75, ["--resume"], "stopped")
    os.remove(p.at("half", "STOP"))
    fails(p.train("half", *words, "--resume", "--precision", "f32"), 65,
          ["--precision tf32", "--precision f32"], "f32")
    with h5py.File(p.at("half", "state.h5"), "r+") as f:
        history = f["train/history"].attrs
        unit = history["matrix_unit"]
        history["matrix_unit"] = unit ^ 2
    fails(p.train("half", *words, "--resume"), 69, ["the same kind"], "another unit")
    with h5py.File(p.at("half", "state.h5"), "r+") as f:
        f["train/history"].attrs["matrix_unit"] = unit
    need(p.train("half", *words, "--resume", ranks=2), "resumed")
    same(p.result(precision), p.result("half"), "resumed")
    return None


@claim("run.json and --json have the figures, also without held-out rows")
def check_told(p):
    done = p.train("told", "--json", "--uncentered")
    need(done, "--json")
    page, line = json.loads(done.stdout), p.history("told")[-1]
    with open(p.at("told", "run.json")) as f:
        written = json.load(f)
    for j in page, written:
        ok(j["unseen"] == line[2] and j["batches"] == line[1] and j["steps"] == 60 and
           j["atoms"] == ATOMS and j["end"] == "steps" and j["rows"] == 3000, f"{j}")
    with h5py.File(p.result("told")) as f:
        ok("mean" not in f, "no mean")
    words = p.words("alone", "--holdout-share", 0)
    at = words.index("--holdout")
    del words[at:at + 2]
    done = sagitta(*words)
    need(done, "nothing is held out")
    ok("no rows were held out" in done.stderr and np.isnan(p.history("alone")[-1, 2]),
       done.stderr[-300:])


with tempfile.TemporaryDirectory() as folder:
    place = Place(folder)
    check_ranks(place)
    check_stopped(place)
    check_held(place)
    check_long_steps(place)
    check_killed(place)
    check_used(place)
    check_start(place)
    check_start_trained(place)
    check_refused(place)
    check_told(place)
    check_warned(place)
    check_gpu(place)
    check_units(place)
done_testing()
