# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if every rank has a GPU, fit and refit give each rank all rows.  Each rank codes its share
of the rows.  In a class of few atoms each rank moves all atoms, in a class of many only its share
of them.  Dictionary and supports are those of a CPU, also if GPUs continue the job of a CPU, or a
CPU that of GPUs.  A rank that fails ends all ranks.  Without GPUs the ranks divide the rows."""
import os
import tempfile

import h5py
import numpy as np

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


@claim("ranks divide classes of many atoms, and give the bits of a CPU")
def check_shared(folder):
    words = ["--atoms", 1500, "--top-s", 2]
    done = fit(folder, "cpu-shared", *words, "--device", "cpu")
    ok(done.returncode == 0, f"the CPU's answer: {done.stderr[-300:]}")
    for ranks in 1, 2, 3:
        done = fit(folder, f"shared-{ranks}", *words, "--device", "cuda", ranks=ranks)
        ok(done.returncode == 0 and ("ranks share" in done.stderr) == (ranks > 1),
           f"{ranks} ranks: exit {done.returncode} {done.stderr[-600:]}")
        ok(equal(folder, "cpu-shared", f"shared-{ranks}"), f"{ranks} ranks: the CPU's bits")
    met = 0
    for n in 400, 700, 1000, 1300:
        for rank in "01":
            out = f"shared-fault-{n}-{rank}"
            done = fit(folder, out, *words, "--device", "cuda", ranks=2,
                       FAULT_CUDA=f"call:{n}", FAULT_RANK=rank)
            whole = done.returncode == 0 and equal(folder, "cpu-shared", out)
            ok(whole or done.returncode == 69,
               f"rank {rank}, call {n} fails: exit {done.returncode} {done.stderr[-600:]}")
            met += done.returncode == 69
    ok(met >= 4, f"{met} of 8 jobs met the call that fails")


@claim("a fit is continued from ranks with GPUs on a CPU, and the other way round")
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


def refit(folder, out, *words, sweeps=3, ranks=1, **environment):
    place = os.path.join(folder, out)
    return cuda_run(os.path.join(place, "none"), "refit", "--rows", f"{folder}/rows.h5",
                    "--dictionary", f"{folder}/start/dictionary.h5", "--supports",
                    f"{folder}/start/supports.h5", "--sweeps", sweeps, "--output", place, *words,
                    ranks=ranks, **environment)


REFITS = {
    "routed": ["--reroute", "--directions", 1, "--holdout", "{}/unseen.npy"],
    "kept": ["--directions", 2],
}


@claim("refit: one, two and three ranks with GPUs give the bits of a CPU, also resumed")
def check_refit(folder):
    done = sagitta("encode", "--rows", f"{folder}/rows.h5", "--dictionary",
                   f"{folder}/dictionary.h5", "--top-s", 6, "--rounds", 3, "--output",
                   f"{folder}/start")
    ok(done.returncode == 0, f"supports: {done.stderr[-300:]}")
    os.symlink(f"{folder}/dictionary.h5", f"{folder}/start/dictionary.h5")
    with h5py.File(f"{folder}/rows.h5") as f:
        np.save(f"{folder}/unseen.npy", f["rows"][:3000] * np.float32(1.5))
    for name, words in REFITS.items():
        words = [str(word).format(folder) for word in words]
        done = refit(folder, name, *words, "--device", "cpu", ranks=2)
        ok(done.returncode == 0 and TOGETHER not in done.stderr, f"CPU: {done.stderr[-600:]}")
        for ranks in 1, 2, 3:
            done = refit(folder, f"{name}-{ranks}", *words, "--device", "cuda", ranks=ranks)
            ok(done.returncode == 0 and (TOGETHER in done.stderr) == (ranks > 1),
               f"{name}, {ranks} ranks: exit {done.returncode} {done.stderr[-600:]}")
            ok(equal(folder, name, f"{name}-{ranks}"), f"{name}, {ranks} ranks: the CPU's bits")
        for out, devices in ("there", ("cuda", "cpu")), ("back", ("cpu", "cuda")):
            for sweeps, device in zip((1, 3), devices):
                done = refit(folder, f"{name}-{out}", *words, "--device", device, "--resume",
                             sweeps=sweeps, ranks=2)
                ok(done.returncode == 0, f"{name}, {sweeps} sweeps, {device}: {done.stderr[-600:]}")
            ok(equal(folder, name, f"{name}-{out}"), f"{name}, {out}: the bits of one run")


@claim("refit: a CUDA call that fails on one of two ranks ends both with 69")
def check_refit_faults(folder):
    met = 0
    words = [str(word).format(folder) for word in REFITS["routed"]]
    for n in 60, 150, 300, 500:
        for rank in "01":
            out = f"refit-fault-{n}-{rank}"
            done = refit(folder, out, *words, "--device", "cuda", ranks=2,
                         FAULT_CUDA=f"call:{n}", FAULT_RANK=rank)
            whole = done.returncode == 0 and equal(folder, "routed", out)
            ok(whole or done.returncode == 69,
               f"rank {rank}, call {n} fails: exit {done.returncode} {done.stderr[-600:]}")
            met += done.returncode == 69
    ok(met >= 5, f"{met} of 8 jobs met the call that fails")


@claim("without GPUs ranks divide the rows, for any amount of work")
def check_none(folder):
    at = f"{folder}/none"
    sagitta("synth", "--n-rows", 40000, "--atoms", 4000, "--columns", 64, "--top-s", 4, "--output",
            at)
    sagitta("encode", "--rows", f"{at}/rows.h5", "--dictionary", f"{at}/dictionary.h5", "--top-s",
            4, "--cosine-limit", 0, "--output", f"{at}/codes.h5")
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    done = sagitta("refit", "--rows", f"{at}/rows.h5", "--dictionary", f"{at}/dictionary.h5",
                   "--supports", f"{at}/codes.h5", "--reroute", "--sweeps", 1000, "--dry-run",
                   "--device", "auto", ranks=2)
    del os.environ["CUDA_VISIBLE_DEVICES"]
    if seen is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = seen
    ok(done.returncode == 0 and TOGETHER not in done.stderr and
       "up to 20480 a rank" in done.stdout, f"exit {done.returncode} {done.stdout} {done.stderr}")


def main():
    if os.environ.get("SANITIZED"):
        return skip_all("a sanitizer must be preloaded first, so this test cannot preload a "
                        "library")
    with tempfile.TemporaryDirectory() as folder:
        sagitta("synth", "--n-rows", 14000, "--atoms", 300, "--columns", 64, "--top-s", 6,
                "--output", folder)
        check_none(folder)
        if gpu_present():
            check_ranks(folder)
            check_shared(folder)
            check_resume(folder)
            check_faults(folder)
            check_refit(folder)
            check_refit_faults(folder)
    done_testing()


main()
