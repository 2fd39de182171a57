# SPDX-License-Identifier: BSD-3-Clause
"""Claim: encode and route that are stopped, by a signal, a file or a time limit, end with 75 and
leave a part.  If they are killed, they leave what --save-seconds saved last.  A stopped or killed
job that is resumed on any number of ranks gives the bytes of a run that was never stopped.  Saving
changes no byte.  A job with other options or inputs is not continued, and a complete one is left as
it is."""
import os
import random
import shutil
import signal
import tempfile
import time

import h5py
import numpy as np

from jobs import job_end, job_ranks, job_start, temporaries, wait_until
from tap import FULL, claim, done_testing, fails, later_wins, need, ok, sagitta, same

BLOCK = 4096
N, P = 6 * BLOCK + 321, 16
TRIALS = 8 if FULL else 3


def rows_done(path):
    with h5py.File(path) as f:
        return int(f["supports"].attrs["shape"][0]) if f.attrs["kind"] == "part" else None


def inputs_make(folder):
    values = np.random.default_rng(3).standard_normal((N, P)).astype("f4")
    np.save(f"{folder}/rows.npy", values)
    np.save(f"{folder}/grown.npy", np.concatenate([values, values[:5]]))
    values[N // 64 * 9, 1] += 1
    np.save(f"{folder}/changed.npy", values)
    values[N // 64 * 9, 1] -= 1
    values[2 * BLOCK + 7, 1] += 1
    np.save(f"{folder}/other.npy", values)
    values[2 * BLOCK + 7, 1] -= 1
    for name, row in ("done", 2000), ("early", 7):  # both in the first block, and in no sample
        values[row, 1] += 1
        np.save(f"{folder}/{name}.npy", values)
        values[row, 1] -= 1
    for seed in (0, 1):
        need(sagitta("seed", "--rows", f"{folder}/rows.npy", "--atoms", 64, "--seed", seed,
                     "--output", f"{folder}/d{seed}"), "seed")


def words_of(folder, **changes):
    words = {"rows": f"{folder}/rows.npy", "dictionary": f"{folder}/d0", "top-s": 4, **changes}
    return [w for key, value in words.items() for w in (f"--{key}", value)]


@claim("a job stopped after every block, and resumed on other numbers of ranks, has the bytes of "
       "one run")
def check_steps(folder):
    jobs = {"encode": ("encode", words_of(folder, rounds=2)), "route": ("route", words_of(folder)),
            "center": ("encode", [*words_of(folder), "--center"]),
            "range": ("encode", [*words_of(folder), "--row-range", f"{BLOCK}:{5 * BLOCK}"])}
    for name, (command, words) in jobs.items():
        need(sagitta(command, *words, "--output", f"{folder}/{name}.h5"), name)
        out = f"{folder}/{name}-steps"
        os.makedirs(out)
        result, seen = f"{out}/x.h5", []
        for step, block in enumerate((1000, 4096, 5000, 8192, 77, 0)):
            last = step == 5
            if not last:
                open(f"{out}/STOP", "w").close()
            elif os.path.exists(f"{out}/STOP"):
                os.remove(f"{out}/STOP")
            ranks = (0, 2, 3, 1, 2, 3)[step]
            done = sagitta(command, *words, "--resume", "--block", block, "--output", result,
                           "--grid", f"1x{ranks or 1}", ranks=ranks)
            rows = rows_done(result)
            seen.append(rows)
            if done.returncode == 0:
                break
            fails(done, 75, ["stopped by", "STOP", "--resume"], f"{name}, step {step}")
            need(sagitta("verify", result), f"{name}: what is left is whole")
        ok(done.returncode == 0 and len(seen) > 2 and seen[0] == BLOCK and
           seen[1] == 2 * BLOCK, f"{name}: rows after each step: {seen} {done.stderr[-300:]}")
        same(f"{folder}/{name}.h5", result, name)


@claim("--max-seconds stops a job; files of an earlier run do not make it fail")
def check_limit(folder):
    words = words_of(folder)
    out = f"{folder}/limit.h5"
    done = sagitta("encode", *words, "--max-seconds", 1e-6, "--resume", "--output", out, "--grid",
                   "1x2", ranks=2)
    fails(done, 75, ["stopped by --max-seconds"], "a limit that is over")
    ok(rows_done(out) == BLOCK, "a block was done")
    need(sagitta("encode", *words, "--max-seconds", 1000, "--resume", "--output", out), "resumed")
    need(sagitta("encode", *words, "--output", f"{folder}/plain.h5"), "plain")
    same(f"{folder}/plain.h5", out, "resumed")
    fails(sagitta("encode", *words, "--output", out), 73, ["--force"], "a whole is not replaced")
    need(sagitta("encode", *words, "--force", "--output", out), "only --force replaces a result")


def left_alone(name, path, words, code, said, ranks=0):
    """A run with --resume finds a complete result: it ends with this code and message, and changes
    no file."""
    folder = os.path.dirname(path)
    before = {f: (os.stat(f"{folder}/{f}").st_mtime_ns, os.stat(f"{folder}/{f}").st_size)
              for f in os.listdir(folder) if not f.endswith(".lock")}
    fails(sagitta(*words, "--resume", ranks=ranks), code, said, name)
    after = {f: (os.stat(f"{folder}/{f}").st_mtime_ns, os.stat(f"{folder}/{f}").st_size)
             for f in os.listdir(folder) if not f.endswith(".lock")}
    ok(before == after, f"{name}: {before} {after}")


def saved_count(out):
    with open(f"{out}/run.log") as f:
        return sum("] saved " in line for line in f)


@claim("a run that saves after every sum block has the bytes of one that saves nothing")
def check_saves(folder):
    need(sagitta("train", "--rows", f"{folder}/rows.npy", "--fixed-dictionary", f"{folder}/d0",
                 "--uncentered", "--top-s", 3, "--steps", 3, "--output", f"{folder}/own"), "train")
    own = ["--rows", f"{folder}/rows.npy", "--encoder", f"{folder}/own"]
    frames = [*words_of(folder), "--row-range", f"{BLOCK}:{5 * BLOCK}"]
    for i, (command, words, saves) in enumerate((
            ("encode", [*words_of(folder, rounds=2), "--center"], 6),
            ("route", words_of(folder), 6), ("encode", own, 6), ("encode", frames, 3))):
        plain, out = f"{folder}/plain{i}.h5", f"{folder}/saves{i}"
        need(sagitta(command, *words, "--save-seconds", 0, "--output", plain), "plain")
        for ranks in (0, 3) if i == 0 or FULL else (0,):
            grid = [] if "--encoder" in words else ["--grid", f"1x{ranks or 1}"]
            done = sagitta(command, *words, "--block", 1000, "--save-seconds", 1e-9, "--force",
                           *grid, "--output", out, ranks=ranks)
            need(done, f"saves {i}")
            name = "part-000000000004096.h5" if words is frames else "supports.h5"
            same(plain, f"{out}/{name}", f"saves {i} on {ranks}")
            log = f"{out}/part-000000000004096.h5" if words is frames else out
            if words is not frames:
                ok(saved_count(log) == saves, f"{saved_count(log)} saves, {saves} are right")


@claim("after SIGKILL a job continues from what was saved, to the bytes of one run")
def check_killed(folder):
    words, plain = words_of(folder, rounds=4), f"{folder}/kept-plain.h5"
    need(sagitta("encode", *words, "--output", plain), "plain")
    for trial, ranks in enumerate((0, 2, 3) if FULL else (0, 2)):
        out = f"{folder}/killed{trial}"
        result, to = f"{out}/supports.h5", ["--save-seconds", 1e-9, "--output", out]
        job = job_start("encode", *words, "--block", 256, "--grid", f"1x{ranks or 1}", *to,
                        ranks=ranks)
        wait_until(lambda: os.path.exists(result) or job.poll() is not None)
        for pid in job_ranks(job)[-1:] if ranks else [job.pid]:
            os.kill(pid, signal.SIGKILL)
        job_end(job, 60)
        rows = rows_done(result)
        ok(rows and rows % BLOCK == 0 and rows < N, f"{rows} rows were saved")
        need(sagitta("verify", result), "what was saved is whole")
        fails(sagitta("encode", *words, "--output", out), 73, ["--resume"],
              "without --force a result is not replaced")
        done = sagitta("encode", *words, "--resume", "--output", out, ranks=3 - trial)
        need(done, "resumed")
        ok(f"resume  after {rows} of {N} rows" in done.stderr,
           f"the killed job continues: {done.stderr[:400]}")
        same(plain, result, f"killed, on {ranks} and then {3 - trial} ranks")


@claim("a complete result of the same job is left unchanged, with exit code 0; one of another job "
       "is refused")
def check_complete(folder):
    for steps in (3, 4):
        need(sagitta("train", "--rows", f"{folder}/rows.npy", "--fixed-dictionary", f"{folder}/d0",
                     "--uncentered", "--top-s", 3, "--steps", steps, "--output",
                     f"{folder}/own{steps}"), "train")
    own = ["--rows", f"{folder}/rows.npy", "--encoder", f"{folder}/own3"]
    jobs = {"encode": ("encode", words_of(folder, rounds=2)), "route": ("route", words_of(folder)),
            "center": ("encode", [*words_of(folder), "--center"]), "own": ("encode", own),
            "first": ("encode", [*words_of(folder), "--row-range", f"0:{2 * BLOCK}"]),
            "range": ("encode", [*words_of(folder), "--row-range", f"{BLOCK}:{5 * BLOCK}"])}
    changes = {"all_rows_hash": {"rows": f"{folder}/changed.npy"}, "--top-s": {"top-s": 3},
               "dictionary_hash": {"dictionary": f"{folder}/d1"}, "--codes": {
                   "codes": "nonnegative"}, "--rounds": {"rounds": 3},
               "--cosine-limit": {"cosine-limit": 5}}
    for name, (command, words) in jobs.items():
        out = f"{folder}/complete-{name}"
        need(sagitta(command, *words, "--output", out), name)
        path = next(f"{out}/{f}" for f in os.listdir(out) if f.endswith(".h5"))
        to = ["--output", out]
        for ranks in 0, 3:
            left_alone(name, path, [command, *words, "--block", 900, *to], 0,
                       ["is complete: nothing is left to do"], ranks)
        if name == "range":  # a row in no sample, and one that only the shifts depend on
            del changes["all_rows_hash"]
            changes["rows_terms"] = {"rows": f"{folder}/other.npy"}
            changes["shift_hash"] = {"rows": f"{folder}/early.npy"}
        for said, change in changes.items() if name in ("encode", "route", "range") else ():
            if name == "range" and said == "--cosine-limit":  # an option that parts record
                continue
            given = [w for key, value in change.items() for w in (f"--{key}", value)]
            if command == "encode" or said != "--rounds":
                left_alone(f"{name}: {said}", path, [command, *later_wins(*words, *given), *to],
                           65, ["cannot resume", said, "--force"])
    to = ["--output", f"{folder}/complete-encode"]
    path = f"{to[1]}/supports.h5"
    for name, words in ("encode", words_of(folder, rounds=2)), ("route", words_of(folder)):
        at = f"{folder}/complete-{name}"
        left_alone(f"{name}: rows that have grown", f"{at}/supports.h5",
                   [name, *later_wins(*words, "--rows", f"{folder}/grown.npy"), "--output", at],
                   65, [f"written with rows_shape {N} x {P}", f"rows_shape {N + 5} x {P}"])
    for said, words in (("--rho", ["encode", *words_of(folder, rounds=2, rho=1)]),
                        ("--center", ["encode", *words_of(folder, rounds=2), "--center"]),
                        ("--rounds", ["route", *words_of(folder)])):
        left_alone(said, path, [*words, *to], 65, ["cannot resume", said])
    left_alone("another encoder", f"{folder}/complete-own/supports.h5",
               ["encode", *later_wins(*own, "--encoder", f"{folder}/own4"), "--output",
                f"{folder}/complete-own"], 65, ["encoder_hash"])
    refit = f"{folder}/refit"
    need(sagitta("refit", "--rows", f"{folder}/rows.npy", "--dictionary", f"{folder}/d0",
                 "--supports", to[1], "--sweeps", 1, "--output", refit), "refit")
    left_alone("refit", f"{refit}/supports.h5",
               ["encode", *later_wins(*words_of(folder, rounds=2), "--dictionary", refit),
                "--output", refit], 73, ["is no part", "--force"])
    left_alone("range", path, ["encode", *jobs["range"][1], "--output", path], 65,
               ["no --row-range, this run has --row-range 4096:"])
    need(sagitta("encode", *words_of(folder, rounds=2), "--resume", "--json", *to), "--json")
    need(sagitta("encode", *words_of(folder), "--resume", "--force", *to), "with --force too", 65)
    with open(path, "r+b") as f:
        f.seek(os.path.getsize(path) // 2)
        f.write(b"damaged")
    left_alone("damaged", path, ["encode", *words_of(folder, rounds=2), *to], 73,
               ["cannot resume"])


@claim("a job that was begun with other options or inputs is not continued")
def check_refused(folder):
    out = f"{folder}/refused"
    os.makedirs(out)
    open(f"{out}/STOP", "w").close()
    need(sagitta("encode", *words_of(folder), "--output", out), "stopped", 75)
    kept = f"{folder}/kept.h5"
    shutil.copy(f"{out}/supports.h5", kept)
    for change, words in (({"rows": f"{folder}/changed.npy"}, ["rows_sample"]),
                          ({"dictionary": f"{folder}/d1"}, ["is not the dictionary"]),
                          ({"top-s": 3}, ["--top-s"]), ({"rounds": 2}, ["--rounds"]),
                          ({"rho": 1}, ["--rho"]), ({"codes": "nonnegative"}, ["--codes"]),
                          ({"cosine-limit": 5}, ["--cosine-limit"])):
        for ranks in (0, 2) if "dictionary" in change else (0,):
            done = sagitta("encode", *words_of(folder, **change), "--resume", "--output", out,
                           ranks=ranks)
            fails(done, 65, words, str(change))
    for ranks in (0, 3):
        done = sagitta("encode", *words_of(folder, rows=f"{folder}/done.npy"), "--resume",
                       "--output", out, ranks=ranks)
        fails(done, 65, ["reads the 4096 rows again", "rows_terms"], f"a row that is done, {ranks}")
    part = [*words_of(folder), "--block", BLOCK, "--row-range", f"{BLOCK}:", "--resume", "--output",
            f"{folder}/refused-part"]
    os.makedirs(part[-1])
    open(f"{part[-1]}/STOP", "w").close()
    need(sagitta("encode", *part), "a part, stopped", 75)
    os.remove(f"{part[-1]}/STOP")
    fails(sagitta("encode", *later_wins(*part, "--rows", f"{folder}/early.npy")), 65,
          ["shift_hash"], "a row before the part")
    need(sagitta("encode", *part), "a part, gone on with")
    fails(sagitta("route", *words_of(folder), "--resume", "--output", out), 65,
          ["this run has no --"], "route")
    fails(sagitta("encode", *words_of(folder), "--center", "--resume", "--output", out), 65,
          ["--center"], "--center")
    same(kept, f"{out}/supports.h5", "nothing of it has changed")
    fails(sagitta("color", "--supports", out, "--output", f"{folder}/c.h5"), 65, ["is a part"],
          "an unfinished file is not taken for supports")
    need(sagitta("encode", *words_of(folder), "--row-range", f"{BLOCK}:", "--output",
                 f"{folder}/rest.h5"), "the rest")
    fails(sagitta("merge", kept, f"{folder}/rest.h5", "--output", f"{folder}/m.h5"), 65,
          ["kept.h5' was stopped before its decoder cosine was found"],
          "an unfinished file is not taken for a complete part")
    with open(f"{out}/supports.h5", "r+b") as f:
        f.truncate(5000)
    fails(sagitta("encode", *words_of(folder), "--resume", "--output", out), 73,
          ["cannot resume"], "damaged")


@claim("a job stopped by signals at random moments, and resumed until it is done, has the bytes of "
       "one run")
def check_moments(folder):
    random.seed(7)
    words = words_of(folder, rounds=4)
    need(sagitta("encode", *words, "--output", f"{folder}/moments.h5"), "plain")
    stopped = 0
    for trial in range(TRIALS):
        out = f"{folder}/trial{trial}"
        code, runs = 75, 0
        while code == 75 and runs < 20:
            ranks = random.choice((0, 2, 3))
            grid = f"1x{ranks or 1}" if runs < 3 else "auto"  # with auto a job can stop less often
            job = job_start("encode", *words, "--resume", "--block", 512, "--output", out,
                            "--grid", grid, ranks=ranks)
            wait_until(lambda: temporaries(out, "supports.h5") or job.poll() is not None)
            time.sleep(random.random() * 0.1)
            if job.poll() is None and runs < 6:
                for pid in (job_ranks(job) if ranks else [job.pid])[:1]:
                    try:
                        os.kill(pid, random.choice((signal.SIGUSR1, signal.SIGTERM)))
                    except ProcessLookupError:
                        pass
            code, text = job_end(job, 60)
            runs += 1
            stopped += code == 75
        # A SIGTERM that comes when the result is complete ends the program by the signal.
        ok(code in (0, 143, -signal.SIGTERM), f"trial {trial}: {code} {text[-300:]}")
        same(f"{folder}/moments.h5", f"{out}/supports.h5", f"trial {trial}")
    ok(stopped >= TRIALS / 2, f"{stopped} of these runs were stopped")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with claim("inputs are made"):
            inputs_make(folder)
        for check in (check_steps, check_limit, check_saves, check_killed, check_complete,
                      check_refused, check_moments):
            check(folder)
    done_testing()


main()
