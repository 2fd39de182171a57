# SPDX-License-Identifier: BSD-3-Clause
"""Claim: without a GPU --device cuda ends with 69.  A fault of a GPU ends the job with 69, or with
71 if page-locked memory is missing, and with one message, also if only one of two ranks has it.
The job then publishes nothing, and never tries the CPU.  Ranks with and without a GPU give the bits
of the CPU.  If the GPU's memory is short, smaller pieces give the same bits; if even these do not
fit, the job ends with 71 and names the sizes."""
import itertools
import os
import re
import subprocess
import tempfile

import h5py

from jobs import cuda_run, environment
from tap import SAGITTA, claim, done_testing, gpu_present, launch, ok, sagitta, skip_all

CALLS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 110, 120, 130, 140, 150]


def run(folder, out, *options, ranks=1, **environment):
    return cuda_run(f"{folder}/{out}", "encode", "--rows", f"{folder}/rows.h5", "--dictionary",
                    f"{folder}/dictionary.h5", "--top-s", 8, "--rounds", 2, "--cosine-limit", 0,
                    "--output", f"{folder}/{out}", "--force", *options, ranks=ranks,
                    **environment)


def equal(folder, out):
    return sagitta("diff", f"{folder}/cpu.h5", f"{folder}/{out}").returncode == 0


@claim("a CUDA call that fails ends the job with 69 or 71, and nothing is published")
def check_calls(folder):
    for n in CALLS:
        done = run(folder, "fault.h5", "--device", "cuda", FAULT_CUDA=f"call:{n}")
        there = os.path.exists(f"{folder}/fault.h5")
        if done.returncode == 0:
            ok(there and equal(folder, "fault.h5"), f"call {n} is not reached")
            continue
        lines = [line for line in done.stderr.splitlines() if line.startswith("sagitta encode:")]
        memory = done.returncode == 71 and "page-locked" in done.stderr
        ok((done.returncode == 69 or memory) and len(lines) == 1 and not there,
            f"call {n} fails: exit {done.returncode}, {lines}")


@claim("a CUDA call that fails on one of two ranks ends both with 69 or 71, nothing published")
def check_one_rank(folder):
    for grid in ("1x2", "2x1"):
        failed = 0
        for n, rank in itertools.product((5, 21, 55, 89, 120, 150), "01"):
            done = run(folder, "fault.h5", "--device", "cuda", "--grid", grid, ranks=2,
                FAULT_CUDA=f"call:{n}", FAULT_RANK=rank)
            there = os.path.exists(f"{folder}/fault.h5")
            good = there and equal(folder, "fault.h5") if done.returncode == 0 else not there
            memory = done.returncode == 71 and "page-locked" in done.stderr
            failed += done.returncode == 69
            ok(good and (done.returncode in (0, 69) or memory),
                f"grid {grid}, rank {rank}, call {n} fails: exit {done.returncode}")
        ok(failed >= 6, f"grid {grid}: {failed} of 12 jobs met the call that fails")


@claim("ranks with a GPU and ranks without one together give the bits of the CPU")
def check_mixed(folder):
    """A job with so many multiply-adds that `auto` takes a GPU if there is one."""
    sagitta("synth", "--n-rows", 120000, "--atoms", 20000, "--columns", 128, "--output", folder)
    words = ["encode", "--rows", f"{folder}/rows.h5", "--dictionary", f"{folder}/dictionary.h5",
        "--top-s", 8, "--cosine-limit", 0, "--force", "--output"]
    alone = sagitta(*words, f"{folder}/cpu.h5", "--device", "cpu")
    ok(alone.returncode == 0, f"the CPU's answer: {alone.stderr[-300:]}")
    for grid, without in itertools.product(("1x2", "2x1"), (0, 1)):
        rank = [SAGITTA, *map(str, words), f"{folder}/mixed.h5", "--device", "auto", "--grid",
            grid]
        blind = ["env", "CUDA_VISIBLE_DEVICES=-1"]
        ranks = [rank, rank]
        ranks[without] = blind + rank
        done = subprocess.run([*launch(1), *ranks[0], ":", "-n", "1", *ranks[1]],
            capture_output=True, text=True, timeout=200, env=environment())
        took = re.search(rf"rank {1 - without} on .*: GPU", done.stderr + done.stdout)
        ok(done.returncode == 0 and took,
            f"grid {grid}, rank {without} has no GPU: exit {done.returncode}, {done.stderr[-900:]}")
        ok(equal(folder, "mixed.h5"), f"grid {grid}, rank {without} has no GPU: the CPU's bits")


@claim("after a failed allocation the job works in pieces and gives the same bits, or ends with 71")
def check_allocations(folder):
    for n in range(1, 21):
        done = run(folder, "fault.h5", "--device", "cuda", FAULT_CUDA=f"memory:{n}")
        there = os.path.exists(f"{folder}/fault.h5")
        good = equal(folder, "fault.h5") if done.returncode == 0 else done.returncode == 71
        ok(good and there == (done.returncode == 0),
            f"allocation {n} fails: exit {done.returncode}")


@claim("with any amount of GPU memory the job gives the CPU's bits, or ends with 71 and names the "
       "sizes")
def check_memory(folder, how):
    """An automatic filter is given up first.  A filter that was asked for is used in smaller and
    smaller windows."""
    ends = set()
    for megabytes in (1, 6, 8, 10, 12, 13, 14, 15, 16, 18, 20, 24, 28, 36, 100):
        done = run(folder, "short.h5", "--device", "cuda", "--block", "128", "--filter", how,
            CUDA_MEMORY=str(1000000 * megabytes))
        if "no certified filter" in done.stderr:
            ends.add("given up")
        if "come from the host" in done.stderr:
            ends.add("fetched")
        if done.returncode == 0:
            ends.add("pieces" if "at a time" in done.stderr else "whole")
            ok(equal(folder, "short.h5"), f"{how}: {megabytes} MB give the bits of the CPU")
        else:
            ends.add(done.returncode)
            ok(done.returncode == 71 and "MB" in done.stderr, f"{megabytes} MB: exit 71, numbers")
    want = {"pieces", "whole", "fetched", 71} | ({"given up"} if how == "auto" else set())
    ok(ends == want, f"{how}: too little, little and enough memory were met: {ends}")


@claim("two ranks share the memory of one GPU, whether it has room for both, for one or for none")
def check_shares(folder):
    """Two ranks, each with its part of the atoms, use the memory of one GPU.  It has room for both
    parts, for one, or for none."""
    seen = set()
    for megabytes in (1, 4, 8, 10, 12, 13, 14, 15, 16, 18, 20, 24, 60):
        counter = f"{folder}/used"
        if os.path.exists(counter):
            os.remove(counter)
        done = run(folder, "shares.h5", "--device", "cuda", "--block", "128", "--filter", "off",
            ranks=2, CUDA_MEMORY=str(1000000 * megabytes), CUDA_MEMORY_FILE=counter,
            CUDA_VISIBLE_DEVICES="0")
        hosts = done.stderr.count("come from the host")
        seen.add(done.returncode or ["device", "one host", "host"][hosts])
        print(f"# {megabytes} MB: exit {done.returncode}, {hosts} from the host, "
            f"{done.stderr.count('at a time')} times less at a time")
        good = equal(folder, "shares.h5") if done.returncode == 0 else done.returncode == 71
        ok(good, f"two ranks with {megabytes} MB: exit {done.returncode}")
    ok({71, "host", "device"} <= seen, f"shares that fit once and twice were met: {seen}")


@claim("if the filter is given up during the job, no bit changes")
def check_left(folder):
    """A filter that is given up in the middle of a job also frees its copy of the atoms."""
    with h5py.File(f"{folder}/rows.h5", "r+") as file:
        rows = file["rows"]
        rows[600:] = 0  # rows of zeros are routed directly, not through the filter
    first = run(folder, "cpu.h5", "--block", "256", "--device", "cpu")
    done = run(folder, "left.h5", "--block", "256", "--device", "cuda", "--verbose")
    ok(first.returncode == 0 and "not used any more" in done.stderr,
       "the filter was given up during the job")
    ok(equal(folder, "left.h5"), "giving up the filter changes no bit")


@claim("if memory is short, codes of many atoms are computed for fewer rows at a time")
def check_states(folder):
    """Codes of rows with 80 atoms each need extra memory.  If it is short, fewer rows are solved at
    a time."""
    sagitta("synth", "--n-rows", 300, "--atoms", 200, "--columns", 64, "--output", folder)
    once = ["--top-s", "80", "--rounds", "1", "--filter", "off"]
    ok(run(folder, "cpu.h5", *once, "--device", "cpu").returncode == 0,
       "the CPU computes the codes to compare with")
    seen = False
    for megabytes in (4, 6, 8, 10, 12, 14, 16, 20, 30):
        done = run(folder, "short.h5", *once, "--device", "cuda",
            CUDA_MEMORY=str(1000000 * megabytes))
        seen |= done.returncode == 0 and "codes of" in done.stderr
        good = equal(folder, "short.h5") if done.returncode == 0 else done.returncode == 71
        ok(good, f"codes in {megabytes} MB: exit {done.returncode}")
    ok(seen, "codes were made of some rows at a time")


@claim("an imported encoder, too, gives the CPU's bits with any amount of GPU memory, or ends with "
       "71")
def check_encoder(folder):
    """Encode with two kinds of encoders, made from the dictionary's atoms.  If memory is short, the
    GPU takes some of the atoms at a time."""
    sagitta("export", f"{folder}/dictionary.h5", "--to", "sparsify", "--top-s", 8, "--force",
        "--output", f"{folder}/sae")
    sagitta("import", f"{folder}/sae", "--output", f"{folder}/topk")
    with h5py.File(f"{folder}/topk/dictionary.h5") as file, \
            h5py.File(f"{folder}/relu.h5", "w", libver=("v110", "v110")) as out:
        for name in ("atoms", "mean"):
            if name in file:
                out[name] = file[name][:]
        file.copy("encoder", out)
        out["encoder"].attrs["kind"] = "relu"
    for encoder in ("topk", "relu.h5"):
        ends = set()
        def encode(*words, **environment):
            return cuda_run(f"{folder}/own.h5", "encode", "--rows", f"{folder}/rows.h5",
                "--encoder", f"{folder}/{encoder}", "--cosine-limit", 0, "--output",
                f"{folder}/own.h5", *words, **environment)
        first = encode("--device", "cpu")
        ok(first.returncode == 0, f"{encoder}: the CPU's answer: {first.stderr[-300:]}")
        os.replace(f"{folder}/own.h5", f"{folder}/cpu-own.h5")
        for megabytes in (1, 4, 8, 12, 16, 20, 24, 32, 40, 60, 80, 120, 200):
            done = encode("--device", "cuda", "--filter", "off",
                CUDA_MEMORY=str(1000000 * megabytes))
            if done.returncode == 0:
                ends.add("pieces" if "atoms at a time" in done.stderr else "whole")
                same = sagitta("diff", f"{folder}/cpu-own.h5", f"{folder}/own.h5")
                ok(same.returncode == 0, f"{encoder}: {megabytes} MB give the bits of the CPU")
            else:
                ends.add(done.returncode)
                ok(done.returncode == 71 and "MB" in done.stderr, f"{megabytes} MB: exit 71")
        ok(ends == {"pieces", "whole", 71}, f"{encoder}: too little, little and enough: {ends}")


@claim("without a GPU --device cuda is refused, and --device auto takes the CPU")
def check_absent(folder):
    """On a machine without a GPU, cuda is refused and auto is the CPU."""
    done = run(folder, "absent.h5", "--device", "cuda", CUDA_VISIBLE_DEVICES="-1")
    ok(done.returncode == 69 and not os.path.exists(f"{folder}/absent.h5"),
        f"--device cuda without a GPU: exit {done.returncode}, {done.stderr.strip()}")
    done = run(folder, "auto.h5", "--device", "auto", CUDA_VISIBLE_DEVICES="-1")
    ok(done.returncode == 0 and "device=cpu" in done.stderr and equal(folder, "auto.h5"),
        "--device auto without a GPU is the CPU")


def main():
    if os.environ.get("SANITIZED"):
        return skip_all("a sanitizer must be preloaded first, so this test cannot preload a "
                        "library")
    with tempfile.TemporaryDirectory() as folder:
        sagitta("synth", "--n-rows", 300, "--atoms", 20000, "--columns", 64, "--output", folder)
        done = run(folder, "cpu.h5", "--device", "cpu")
        ok(done.returncode == 0, "the CPU computes the codes to compare with")
        check_absent(folder)
        if gpu_present():
            check_calls(folder)
            check_one_rank(folder)
            check_allocations(folder)
            for how in ("off", "on", "auto"):
                check_memory(folder, how)
            check_shares(folder)
            check_encoder(folder)
            for check in (check_states, check_mixed):
                with tempfile.TemporaryDirectory() as other:
                    check(other)
            with tempfile.TemporaryDirectory() as other:
                sagitta("synth", "--n-rows", 2000, "--atoms", 20000, "--columns", 64, "--output",
                    other)
                check_left(other)
    done_testing()


main()
