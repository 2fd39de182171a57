# SPDX-License-Identifier: BSD-3-Clause
"""Claim: solve --device cuda writes the bytes of --device cpu, for any ranks and batches, also if
systems fail or are too large for the kernels of the GPU.  With little memory of the GPU they are
the same bytes, or the job ends with 71.  Without a GPU, cuda ends with 69 and auto is the CPU.  A
fault of CUDA ends the job with 69, or with 71 if page-locked memory is missing, and publishes
nothing."""
import json
import os
import re
import tempfile

import numpy as np

from arrow_files import random_system, write
from jobs import cuda_run, told
from tap import bench, claim, done_testing, gpu_present, ok, sagitta, skip_all

CALLS = [1, 2, 3, 4, 5, 6, 8, 10, 13]

# name: options of synth.  Each has few shapes, because up to three kernels are compiled for each
# form that systems of a shape take.
MADE = {
    "equal": ("--systems", 300, "--system-rows", 256, "--border", 8),
    "small": ("--systems", 2000, "--system-rows", 20, "--frame", 1, "--border", 4, "--lengths",
              "uniform"),
    "power": ("--systems", 60, "--system-rows", 600, "--border", 8, "--lengths", "power",
              "--indefinite", 0.2, "--ill", 0.2),
    "wide": ("--systems", 40, "--system-rows", 300, "--border", 32, "--indefinite", 0.1),
    "mixed": ("--systems", 200, "--system-rows", 70, "--frame", 2, "--border", 3, "--mixed",
              "--indefinite", 0.1),
}
OPTIONS = {"power": ("--escalate",), "wide": ("--ridge-t", 0.5, "--ridge-b", 2)}


def run(folder, out, systems, *words, ranks=1, **environment):
    """Run with the faulty CUDA library.  Returns the run, and the path of its result."""
    place = os.path.join(folder, out)
    return cuda_run(place, "solve", "--systems", systems, "--output", place, "--force", *words,
                    ranks=ranks, **environment), place


def equal(folder, name, out):
    return sagitta("diff", os.path.join(folder, f"{name}-cpu.h5"), out).returncode == 0


def data(folder):
    """Make files of systems, and solve each on the CPU.  Returns {name: path}."""
    paths = {}
    for name, words in MADE.items():
        sagitta("synth", *words, "--output", os.path.join(folder, name))
        paths[name] = os.path.join(folder, name, "systems.h5")
    random = np.random.default_rng(5)
    paths["beyond"] = os.path.join(folder, "beyond.h5")
    write(paths["beyond"], [random_system(random, 2, k, 50) for k in (3, 41, 3, 100, 3)])
    paths["none"] = os.path.join(folder, "none.h5")
    write(paths["none"], [])
    for name, path in paths.items():
        done, _ = run(folder, f"{name}-cpu.h5", path, "--device", "cpu", *OPTIONS.get(name, ()))
        told(ok(done.returncode == 0 and "device=cpu/" in done.stderr, f"{name}: the CPU's"), done)
    return paths


@claim("solve --device cuda writes the bytes of --device cpu")
def check_equal(folder, paths):
    for name, path in paths.items():
        for ranks, batch in ((1, 0), (1, 777), (2, 0), (3, 5000)):
            done, out = run(folder, "gpu.h5", path, "--device", "cuda", "--batch", batch,
                            *OPTIONS.get(name, ()), ranks=ranks)
            good = done.returncode == 0 and "device=cuda" in done.stderr and \
                equal(folder, name, out)
            told(ok(good, f"{name}: {ranks} ranks, batches of {batch} rows"), done)


@claim("the log counts the systems that the CPU had to solve")
def check_counts(folder, paths):
    done, _ = run(folder, "gpu.h5", paths["beyond"], "--device", "cuda")
    ok("GPU: 2 systems are beyond its kernels" in done.stderr,
       "two systems are beyond the GPU's kernels")
    done, _ = run(folder, "gpu.h5", paths["wide"], "--device", "cuda")
    failed = re.search(r"failed=(\d+)", done.stderr).group(1)
    ok(int(failed) > 0 and f"GPU: {failed} systems failed" in done.stderr, f"{failed} failed")
    ok(re.search(r"solve +\d.* cuda", done.stderr), "the table of phases names the device")
    done, _ = run(folder, "gpu.h5", paths["equal"], "--device", "auto")
    ok(done.returncode == 0 and "device=cpu" in done.stderr, "auto is the CPU for little work")


@claim("with less memory the job gives the CPU's bits, or ends with 71 and names the sizes")
def check_memory(folder, paths):
    ends = set()
    for kilobytes in (500, 2500, 5000, 9000, 100000):
        for name in ("power", "wide"):
            done, out = run(folder, "gpu.h5", paths[name], "--device", "cuda",
                            *OPTIONS.get(name, ()), CUDA_MEMORY=str(1000 * kilobytes))
            ends.add(done.returncode)
            good = equal(folder, name, out) if done.returncode == 0 else \
                done.returncode == 71 and "MB" in done.stderr
            told(ok(good, f"{name} in {kilobytes} kB: exit {done.returncode}"), done)
    ok(ends == {0, 71}, f"enough and too little memory were met: {ends}")


@claim("a CUDA call that fails ends the job with 69 or 71, and nothing is published")
def check_calls(folder, paths):
    for n in CALLS:
        done, out = run(folder, "fault.h5", paths["power"], "--device", "cuda", "--escalate",
                        FAULT_CUDA=f"call:{n}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("sagitta solve:")]
        if done.returncode == 0:
            ok(equal(folder, "power", out), f"call {n} is not reached")
        else:
            memory = done.returncode == 71 and "page-locked" in done.stderr
            ok((done.returncode == 69 or memory) and len(lines) == 1 and not os.path.exists(out),
               f"call {n} fails: exit {done.returncode}, {lines}")


@claim("in a benchmark ranks divide the systems")
def check_bench():
    words = "solve", "--device", "cuda", "--system-rows", 20, "--border", 3, "--json"
    for ranks in 1, 2, 3:
        done = bench(*words, "--systems", 7, "--repeats", 2, ranks=ranks)
        page = json.loads(done.stdout or "{}")
        line = page.get("lines", [{}])[0]
        ok(page.get("ranks") == ranks and line["systems"] == 7 and line["rows"] == 140 and
           line["declined"] == 0 and 0 < line["seconds"] < line["with_copies"],
           f"{ranks} ranks: exit {done.returncode}, {line}")
    done = bench(*words, "--systems", 2, ranks=3)
    ok(done.returncode == 2 and "more --systems" in done.stderr,
       f"two systems: {done.stderr[:300]}")


@claim("without a GPU --device cuda is refused, and --device auto takes the CPU")
def check_absent(folder, paths):
    done, out = run(folder, "absent.h5", paths["mixed"], "--device", "cuda",
                    CUDA_VISIBLE_DEVICES="-1")
    ok(done.returncode == 69 and not os.path.exists(out),
       f"--device cuda without a GPU: exit {done.returncode}, {done.stderr.strip()}")
    done, out = run(folder, "auto.h5", paths["mixed"], "--device", "auto",
                    CUDA_VISIBLE_DEVICES="-1")
    ok(done.returncode == 0 and equal(folder, "mixed", out), "--device auto without a GPU")
    done = sagitta("solve", "--systems", paths["equal"], "--device", "cuda", "--dry-run")
    ok(done.returncode == 0 and re.search(r"GPU +\d", done.stdout), "--dry-run says a GPU's part")
    done = sagitta("solve", "--systems", paths["equal"], "--device", "cpu", "--dry-run")
    ok(done.returncode == 0 and "GPU" not in done.stdout, "--dry-run without")


def main():
    if os.environ.get("SANITIZED"):
        return skip_all("a sanitizer must be preloaded first, so this test cannot preload a "
                        "library")
    with tempfile.TemporaryDirectory() as folder:
        with claim("the CPU's results, for comparison, are made"):
            paths = data(folder)
        check_absent(folder, paths)
        if gpu_present():
            check_equal(folder, paths)
            check_counts(folder, paths)
            check_memory(folder, paths)
            check_bench()
            check_calls(folder, paths)
    return done_testing()


main()
