# SPDX-License-Identifier: BSD-3-Clause
"""Claim: scripts/bench_page makes doc/bench.md and the figures of README.md from doc/bench.tsv.
Every figure of that file has a machine, a revision and a command."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tap import SAGITTA, SOURCE, claim, done_testing, ok

SCRIPT = os.path.join(SOURCE, "scripts/bench_page")
PAGES = "doc/bench.tsv", "doc/bench.md", "README.md"
ROUNDED = 0.03  # ratios are medians of ratios, and have two or three digits
BUILD = os.path.dirname(SAGITTA)


def bench_page(root, *words):
    return subprocess.run([sys.executable, SCRIPT, "--root", root, *words], capture_output=True,
                          text=True)


def fields():
    """The fields of each line of doc/bench.tsv."""
    with open(os.path.join(SOURCE, PAGES[0]), encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]


@claim("both pages are those that are made from doc/bench.tsv")
def check_fresh():
    done = bench_page(SOURCE, "--check")
    ok(done.returncode == 0, done.stderr)


@claim("every figure has a machine, a revision and a command; its ratio is that of its figures")
def check_lanes():
    lines = fields()
    names = {kind: {line[1] for line in lines if line[0] == kind}
             for kind in ("machine", "question")}
    for line in lines:
        if line[0] != "lane":
            continue
        question, lane, value, unit, limit, _, ratio, machine, revision, command = line[1:11]
        ok(machine in names["machine"] and question in names["question"], f"{lane}: {machine}")
        ok(re.fullmatch("[0-9a-f]{7,40}", revision), f"{lane}: revision '{revision}'")
        ok(re.search(r"sagitta|scripts/|tests/", command), f"{lane}: command '{command}'")
        if not (ratio and limit):
            continue
        number, kind = ratio.split()
        of = float(value) / float(limit)
        of = 1 / of if unit in ("ms", "s", "MB", "sweeps") else of
        given = float(number) / (100 if kind == "%" else 1)
        ok(abs(given - of) <= ROUNDED * of, f"{lane}: {value} and {limit} are not {ratio}")


@claim("a page that was edited by hand, or is older than its data, is named with its line")
def check_edited():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "doc"))
        for page, old, new in (("doc/bench.md", "50.76", "60.76"), ("doc/bench.md", "\n", "\n\n"),
                               ("README.md", "123.4", "133.4"),
                               ("doc/bench.tsv", "28.39", "18.39")):
            for name in PAGES:
                shutil.copyfile(os.path.join(SOURCE, name), os.path.join(root, name))
            ok(bench_page(root, "--check").returncode == 0,
               "a copy of the page is as bench_page makes it")
            path = os.path.join(root, page)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace(old, new, 1))
            done = bench_page(root, "--check")
            ok(old in text and done.returncode == 1 and re.search(r"\.md:\d+: ", done.stderr),
               f"{page}: {done}")
            bench_page(root)
            ok(bench_page(root, "--check").returncode == 0, "a page that is made again is right")


@claim("a lane is measured again by its command, and the later of two lines counts")
def check_measure():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "doc"))
        shutil.copyfile(os.path.join(SOURCE, "README.md"), os.path.join(root, "README.md"))
        command = "sagitta-bench route --n-rows 64 --atoms 512 --columns 16 --repeats 1"
        data = ("machine\tM\tMy machine, here\nquestion\troute\tHow fast?\n"
                "lane\troute\tdirect\t1\tGMAC/s\t2\tpeak\t50 %\tM\t0000000\t" + command +
                "\trandom data/gmacs;peak/gmacs\n"
                "lane\troute\tthe same in ms\t1\tms\t\t\t\tM\t0000000\t" + command +
                "\trandom data/seconds\n")
        with open(os.path.join(root, PAGES[0]), "w", encoding="utf-8") as f:
            f.write(data)
        made = os.path.join(root, "new")
        done = bench_page(root, "--measure", BUILD, "--machine", "My machine", "--output", made)
        with open(made, encoding="utf-8") as f:
            lines = f.readlines()
        ok(done.returncode == 0 and len(lines) == 2, f"{done}")
        lane = lines[0].rstrip("\n").split("\t")
        ok(float(lane[3]) > 0 and float(lane[5]) > 0 and lane[9] != "0000000", f"{lane}")
        value, share = float(lane[3]) / float(lane[5]), float(lane[7].split()[0]) / 100
        # on a busy machine the share may be as small as 0.6 %, with one digit
        ok(abs(share - value) < ROUNDED * value + 6e-4, f"{lane}: share")
        with open(os.path.join(root, PAGES[0]), "a", encoding="utf-8") as f:
            f.writelines(lines)
        open(os.path.join(root, PAGES[1]), "w", encoding="utf-8").close()
        bench_page(root)
        with open(os.path.join(root, PAGES[1]), encoding="utf-8") as f:
            text = f.read()
        ok(f"| direct | {lane[3]} GMAC/s |" in text and text.count("| direct |") == 1, text[-300:])
        for words, why in ((("--machine", "other"), "no machine 'other'"),
                           (("--machine", "M", "--question", "none"), "0 lanes measured")):
            done = bench_page(root, "--measure", BUILD, "--output", made, *words)
            ok(done.returncode == 1 and why in done.stderr, f"{words}: {done}")


check_fresh()
check_lanes()
check_edited()
check_measure()
done_testing()
