# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the ranks of a node hold the lists of a joint fit, and the Gram rows that they exchange,
only once.  The bytes are those of ranks that each hold their own copy, and of one rank; also by
parts, when sums are forgotten, saved and restored, and on several nodes.  --dry-run counts shared
memory once.  If memory cannot be shared, each rank has its own copy, or with --share yes the job
ends with 71."""
import os
import re
import shutil
import sys
import tempfile

import h5py
import numpy as np

from jobs import TESTS, job_end, job_start
from tap import SAGITTA, SOURCE, claim, done_testing, ok, sagitta, skip

LIBRARY = os.path.join(TESTS, "fault_window.so")
FILES = ("dictionary.h5", "supports.h5")
# Atoms that are alike are replaced in most sweeps; then the sums forget these atoms.
PARTS = ["--minibatch", 1024, "--twin-cosine", 0.5]


def rows_make(folder):
    with h5py.File(os.path.join(SOURCE, "input/minilm-l3-kjv-8k.h5")) as f:
        np.save(f"{folder}/rows.npy", f["rows"][:5000])
    return ["fit", "--rows", f"{folder}/rows.npy", "--atoms", 90, "--top-s", 4, "--rounds", 2,
            "--sweeps", 2, "--tolerance", 0, "--update", "joint", "--threads", 1, "--device", "cpu"]


def fit(words, out, ranks, *more, code=0, **world):
    got, text = job_end(job_start(*words, "--output", out, *more, ranks=ranks, **world), 100)
    ok(got == code, f"{os.path.basename(out)}: exit {got} {text[-300:]}")
    return text


def same(a, b, names=FILES):
    for name in names:
        done = sagitta("diff", f"{a}/{name}", f"{b}/{name}")
        ok(done.returncode == 0, f"{os.path.basename(b)}: {name}: {done.stdout[:200]}")


@claim("whether a node shares the lists or each rank has them, the bytes are those of one rank")
def check_bytes(folder, words):
    fit(words, f"{folder}/one", 1)
    for ranks, share in ((3, "yes"), (3, "no"), (4, "auto")):
        out = f"{folder}/{share}"
        fit(words, out, ranks, "--share", share)
        same(f"{folder}/one", out)


@claim("with parts, a fit that replaces atoms has the bytes of one rank, also if other numbers of "
       "ranks resume it")
def check_parts(folder, words):
    text = fit([*words, *PARTS], f"{folder}/parts", 1)
    revived = re.findall(r"revived (\d+)", text)
    ok(sum(map(int, revived)) > 5, f"atoms are replaced: {revived}")
    begun = f"{folder}/begun"
    once = [*words, *PARTS]
    once[once.index("--sweeps") + 1] = 1
    fit(once, begun, 3, "--share", "yes")
    for ranks, share in ((2, "yes"), (3, "no")):
        out = f"{folder}/parts-{share}"
        shutil.copytree(begun, out)
        fit([*words, *PARTS], out, ranks, "--share", share, "--resume")
        same(f"{folder}/parts", out, (*FILES, "state.h5"))


@claim("ranks of three nodes, each of which has the lists once, give the bytes of one rank")
def check_nodes(folder, words):
    nodes = {"LD_PRELOAD": LIBRARY, "NODE_RANKS": "2"}
    fit([*words, *PARTS], f"{folder}/nodes", 5, "--share", "yes", **nodes)
    same(f"{folder}/parts", f"{folder}/nodes", (*FILES, "state.h5"))


@claim("--dry-run counts shared memory once per node")
def check_plan(words):
    words = [*words, "--minibatch", 1024, "--dry-run"]
    words[words.index("--atoms") + 1] = 3000
    figures = {}
    for share in ("yes", "no"):
        done = sagitta(*words, "--share", share, ranks=4)
        figures[share] = float(re.search(r"an update ([\d.]+)", done.stdout)[1])
        told = re.search(r"^shared +6.2 MB once per node", done.stdout, re.M)
        ok(done.returncode == 0 and (share == "yes") == (told is not None), done.stdout)
    # Without sharing each rank has the lists, of 0.033 MB, and two rounds of the Gram matrix, of
    # 6.144 MB each.  With sharing the four ranks have the lists and one round together.
    less = 2 * 6.144 + 0.033 - (6.144 + 0.033) / 4
    ok(abs(figures["no"] - figures["yes"] - less) < 0.2, f"{less} MB less: {figures}")


@claim("if memory cannot be shared, each rank has its own copy, or the job is refused")
def check_faults(folder, words):
    for fault, share, code, said in (("room", "auto", 0, ""), ("room", "yes", 71, "are free"),
                                     ("window", "auto", 0, ""), ("page", "auto", 0, ""),
                                     ("window", "yes", 71, "--share no")):
        world = {"LD_PRELOAD": LIBRARY, "FAULT_WINDOW": fault}
        out = f"{folder}/{fault}-{share}"
        text = fit(words, out, 2, "--share", share, code=code, **world)
        ok(said in text, f"{fault} {share}: {text[-300:]}")
        if code == 0:
            same(f"{folder}/one", out)
        else:
            ok(not os.path.exists(f"{out}/dictionary.h5"), f"{fault}: nothing is left")


PEAK = """import os, subprocess, sys
rank = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(rank.pid, 0)
sys.stderr.write(f"peak of {os.environ['OMPI_COMM_WORLD_RANK']}: {usage.ru_maxrss}\\n")
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak(words):
    """The peak memory of rank 1 of two, in MB."""
    done = sagitta(*words, ranks=2, program=(sys.executable, "-c", PEAK, SAGITTA))
    found = re.search(r"peak of 1: (\d+)", done.stderr)
    ok(done.returncode == 0 and found, f"{words}: exit {done.returncode} {done.stderr[-200:]}")
    return float(found[1]) / 1024


@claim("with parts, a resumed run takes no more memory per rank than a new one")
def check_resumed(folder, words):
    if os.environ.get("SANITIZED"):
        skip("sanitizers take memory of their own, so the memory of two runs cannot be compared")
        return
    out = f"{folder}/large"
    words = [*words, "--minibatch", 4096, "--output", out, "--resume"]
    for name, value in (("--atoms", 2000), ("--sweeps", 1), ("--rounds", 1)):
        words[words.index(name) + 1] = value
    begins = peak(words)
    words[words.index("--sweeps") + 1] = 2
    resumed = peak(words)
    ok(resumed < begins + 16, f"{resumed} MB, {begins} where it began; 32 of the Gram matrix")


with tempfile.TemporaryDirectory() as place:
    job = rows_make(place)
    check_bytes(place, job)
    check_parts(place, job)
    check_nodes(place, job)
    check_plan(job)
    check_faults(place, job)
    check_resumed(place, job)
done_testing()
