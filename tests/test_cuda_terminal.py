# SPDX-License-Identifier: BSD-3-Clause
"""Claim: terminal --device cuda writes the bytes of --device cpu, for frames, several ranks, small
workspaces and an S that is not positive definite.  --dry-run prints the memory of a GPU that is
enough.  With less, the job ends with 71 before any work, and names the sizes.  Without a GPU, cuda
ends with 69 and auto is the CPU.  A fault of CUDA ends the job with 69, or with 71 if page-locked
memory is missing, and publishes nothing."""
import os
import re
import tempfile

from jobs import cuda_run, told
from tap import claim, done_testing, gpu_present, ok, sagitta, skip_all

CALLS = [1, 2, 3, 4, 5, 7, 9, 12, 16, 20]

# name: options of synth, and options of the pass.
MADE = {
    "plain": (("--n-rows", 900, "--columns", 24, "--atoms", 41, "--top-s", 3, "--noise", 0.05),
              ("--directions", 3, "--cross", 50)),
    "frames": (("--n-rows", 700, "--columns", 20, "--atoms", 13, "--frame", 2, "--top-s", 2,
                "--noise", 0.05), ("--directions", 2, "--cross", 5)),
    "indefinite": (("--n-rows", 200, "--columns", 16, "--atoms", 30, "--top-s", 3, "--noise", 0.5,
                    "--start-cosine", 0.4), ("--directions", 4,)),
}


def run(folder, out, name, *words, ranks=1, **environment):
    """Run with the faulty CUDA library.  Returns the run, and the path of its result."""
    place, at = os.path.join(folder, out), os.path.join(folder, name)
    dictionary = "start.h5" if name == "indefinite" else "dictionary.h5"
    return cuda_run(place, "terminal", "--rows", f"{at}/rows.h5", "--dictionary",
                    f"{at}/{dictionary}", "--supports", f"{at}/supports.h5", "--spectrum",
                    "inertia", "--output", place, "--force", *MADE[name][1], *words, ranks=ranks,
                    **environment), place


def equal(folder, name, out):
    return sagitta("diff", os.path.join(folder, f"{name}-cpu.h5"), out).returncode == 0


def data(folder):
    for name, (words, _) in MADE.items():
        at = os.path.join(folder, name)
        sagitta("synth", *words, "--output", at)
        dictionary = "start.h5" if name == "indefinite" else "dictionary.h5"
        sagitta("encode", "--rows", f"{at}/rows.h5", "--dictionary", f"{at}/{dictionary}",
                "--top-s", words[words.index("--top-s") + 1], "--output", f"{at}/supports.h5")
        done, _ = run(folder, f"{name}-cpu.h5", name, "--device", "cpu")
        bad = "not positive definite" in done.stderr
        told(ok(done.returncode == 0 and "device=cpu/" in done.stderr and
                bad == (name == "indefinite"), f"{name}: the CPU's"), done)


@claim("terminal --device cuda writes the bytes of --device cpu")
def check_equal(folder):
    for name in MADE:
        for ranks, words in ((1, ()), (1, ("--workspace", 5, "--threads", 1)), (2, ())):
            done, out = run(folder, "gpu.h5", name, "--device", "cuda", *words, ranks=ranks)
            good = done.returncode == 0 and "device=cuda/" in done.stderr and \
                re.search(r"factor +\d.* cuda", done.stderr) and equal(folder, name, out)
            told(ok(good, f"{name}: {ranks} ranks, {words}"), done)
    done, _ = run(folder, "gpu.h5", "plain", "--device", "auto")
    ok(done.returncode == 0 and "device=cpu" in done.stderr, "auto is the CPU for little work")


def planned(folder, name, *words):
    """The limit of the GPU's memory that leaves what --dry-run says, after a 32nd of the limit is
    kept free."""
    done, _ = run(folder, "plan.h5", name, "--device", "cuda", "--dry-run", *words)
    said = re.search(r"GPU +([0-9.]+) MB", done.stdout)
    told(ok(done.returncode == 0 and said, f"{name}: --dry-run says a GPU's part"), done)
    return 1e6 * float(said[1]) * 32 / 31


@claim("the forecast of the GPU's memory is enough; with less the job ends with 71 before any work")
def check_memory(folder):
    for name in MADE:
        said = planned(folder, name, "--workspace", 5, "--threads", 1)
        for part in (1.01, 0.97, 0.3):
            done, out = run(folder, "gpu.h5", name, "--device", "cuda", "--workspace", 5,
                            "--threads", 1,
                            CUDA_MEMORY=str(int(part * said + 2e5 * (part > 1))))
            if part > 1:
                good = done.returncode == 0 and equal(folder, name, out)
            else:
                good = done.returncode == 71 and not os.path.exists(out) and \
                    re.search(r"needs \d+ bytes on the GPU of rank 0 .* \d+ are free", done.stderr)
            told(ok(good, f"{name} with {part} of it: exit {done.returncode}"), done)


@claim("a CUDA call that fails ends the job with 69 or 71, and nothing is published")
def check_calls(folder):
    for n in CALLS:
        done, out = run(folder, "fault.h5", "plain", "--device", "cuda", FAULT_CUDA=f"call:{n}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("sagitta terminal:")]
        if done.returncode == 0:
            ok(equal(folder, "plain", out), f"call {n} is not reached")
        else:
            memory = done.returncode == 71 and "page-locked" in done.stderr
            ok((done.returncode == 69 or memory) and len(lines) == 1 and not os.path.exists(out),
               f"call {n} fails: exit {done.returncode}, {lines}")


@claim("without a GPU --device cuda is refused, and --device auto takes the CPU")
def check_absent(folder):
    done, out = run(folder, "absent.h5", "plain", "--device", "cuda", CUDA_VISIBLE_DEVICES="-1")
    ok(done.returncode == 69 and not os.path.exists(out),
       f"--device cuda without a GPU: exit {done.returncode}, {done.stderr.strip()}")
    done, out = run(folder, "auto.h5", "plain", "--device", "auto", CUDA_VISIBLE_DEVICES="-1")
    ok(done.returncode == 0 and equal(folder, "plain", out), "--device auto without a GPU")
    planned(folder, "plain")
    done, _ = run(folder, "plan.h5", "plain", "--device", "cpu", "--dry-run")
    ok(done.returncode == 0 and "GPU" not in done.stdout, "--dry-run without")
    done, _ = run(folder, "slq.h5", "plain", "--device", "cuda", "--evidence", "slq")
    ok(done.returncode == 2 and "CPUs alone" in done.stderr, "an estimate on a GPU is refused")


def main():
    if os.environ.get("SANITIZED"):
        return skip_all("a sanitizer must be preloaded first, so this test cannot preload a "
                        "library")
    with tempfile.TemporaryDirectory() as folder:
        with claim("the CPU's results, for comparison, are made"):
            data(folder)
        check_absent(folder)
        if gpu_present():
            check_equal(folder)
            check_memory(folder)
            check_calls(folder)
    return done_testing()


main()
