# SPDX-License-Identifier: BSD-3-Clause
"""Claim: where every rank has a GPU each has all rows, codes its share and takes the steps of all
atoms, and the dictionary and the supports are those of a CPU, also when one goes on with what the
other left; a rank that fails ends all."""
import os
import tempfile

from jobs import cuda_run
from tap import claim, done_testing, gpu_present, ok, sagitta, skip_all

TOGETHER = "every rank has all"
WORDS = ["--atoms", 300, "--top-s", 6, "--tolerance", 0, "--update", "atoms", "--twin-cosine", 0.8]


def fit(folder, out, *words, sweeps=4, ranks=None, **environment):
    place = os.path.join(folder, out)
    return cuda_run(os.path.join(place, "none"), "fit", "--rows", f"{folder}/rows.h5",
                    *WORDS, "--sweeps", sweeps, "--output", place, *words, ranks=ranks or 1,
                    **environment)


def equal(folder, one, other):
    return all(sagitta("diff", f"{folder}/{one}/{name}.h5", f"{folder}/{other}/{name}.h5")
               .returncode == 0 for name in ("dictionary", "supports"))


@claim("one, two and three ranks with GPUs give the bits of a CPU")
def check_ranks(folder):
    for codes in "signed", "nonnegative":
        done = fit(folder, "cpu-" + codes, "--codes", codes, "--device", "cpu")
        ok(done.returncode == 0, f"the CPU's answer: {done.stderr[-300:]}")
        for ranks in 1, 2, 3:
            out = f"gpu-{codes}-{ranks}"
            done = fit(folder, out, "--codes", codes, "--device", "cuda", ranks=ranks)
            ok(done.returncode == 0 and (TOGETHER in done.stderr) == (ranks > 1),
               f"{ranks} ranks, {codes}: exit {done.returncode} {done.stderr[-600:]}")
            ok(equal(folder, "cpu-" + codes, out), f"{ranks} ranks, {codes}: the CPU's bits")


@claim("a fit goes on from ranks with GPUs to a CPU and back")
def check_resume(folder):
    for out, devices in ("there", ("cuda", "cpu")), ("back", ("cpu", "cuda")):
        for sweeps, device in zip((2, 4), devices):
            done = fit(folder, out, "--codes", "signed", "--device", device, "--resume",
                       sweeps=sweeps, ranks=2)
            ok(done.returncode == 0, f"{out}, {sweeps} sweeps, {device}: {done.stderr[-600:]}")
        ok(equal(folder, "cpu-signed", out), f"{out}: the bits of one run")


@claim("a CUDA call that fails on one of two ranks ends both with 69, nothing published")
def check_faults(folder):
    met = 0
    for n in 60, 100, 150, 200, 300, 500:
        for rank in "01":
            out = f"fault-{n}-{rank}"
            done = fit(folder, out, "--codes", "signed", "--device", "cuda", ranks=2,
                       FAULT_CUDA=f"call:{n}", FAULT_RANK=rank)
            made = os.path.exists(f"{folder}/{out}/supports.h5")
            ok(done.returncode in (0, 69) and made == (done.returncode == 0),
               f"rank {rank}, call {n} fails: exit {done.returncode} {done.stderr[-600:]}")
            met += done.returncode == 69
    ok(met >= 8, f"{met} of 12 jobs met the call that fails")


def main():
    if os.environ.get("SANITIZED"):
        return skip_all("the sanitizers come first among what is preloaded")
    with tempfile.TemporaryDirectory() as folder:
        sagitta("synth", "--n-rows", 14000, "--atoms", 300, "--columns", 64, "--top-s", 6,
                "--output", folder)
        if gpu_present():
            check_ranks(folder)
            check_resume(folder)
            check_faults(folder)
    done_testing()


main()
