# SPDX-License-Identifier: BSD-3-Clause
"""Claim: fit --top-s auto takes the number of (N.39), from figures that fit, compare, encode and
evaluate give for halves of the rows.  It is the same on any number of ranks, and if resumed."""
import json
import os
import re
import tempfile

import h5py
import numpy as np

from tap import SOURCE, claim, done_testing, fails, need, ok, sagitta, same

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
DIGITS = 5.01e-5  # the log has four digits


def table(done):
    """{s: (pw_mcc, explained, f1 or None)}, and the number that was chosen."""
    rows = re.findall(r"choose  top-s (\d+): pw_mcc=([\d.]+) explained=([\d.]+)"
                      r"(?: label_f1=([\d.]+))?", done.stderr)
    chosen = re.findall(r"choose  --top-s (\d+): its atoms", done.stderr)
    return {int(s): (float(m), float(e), float(f) if f else None) for s, m, e, f in rows}, \
        int(chosen[0]) if chosen else None


def chosen_of(found):
    """The rule of (N.39), computed again."""
    least = min(1 - e for _, e, _ in found.values())
    most = max((f for *_, f in found.values() if f is not None), default=None)
    explains = {s for s, (_, e, _) in found.items() if 1 - e <= 1.2 * least}
    tells = {s for s, (*_, f) in found.items() if most is None or f >= most - 0.02}
    taken, *smaller = sorted(explains & tells or explains, reverse=True)
    for s in smaller:
        taken = s if found[s][0] > found[taken][0] + 0.03 else taken
    return taken


def measured(at, rows, labels, s, words, most):
    """The figures for a number of atoms per row, from other commands."""
    middle = len(rows) // 2
    middle -= middle % 4096 if middle >= 4096 else 0
    np.save(f"{at}/half0.npy", rows[:middle])
    np.save(f"{at}/half1.npy", rows[middle:])
    for half in 0, 1:
        need(sagitta("fit", "--rows", f"{at}/half{half}.npy", *words, "--top-s", s, "--encode-s",
                     most, "--holdout-share", 0, "--seed", half, "--output", f"{at}/f{half}",
                     "--force"), f"half {half}")
    pairs = json.loads(sagitta("compare", f"{at}/f0", f"{at}/f1", "--json").stdout)["pairs"]
    need(sagitta("encode", "--rows", f"{at}/half1.npy", "--dictionary", f"{at}/f0", "--output",
                 f"{at}/c", "--force"), "encode")
    with h5py.File(f"{at}/labels.h5", "w") as f:
        f["token"] = labels[middle:]
    done = sagitta("evaluate", "--rows", f"{at}/half1.npy", "--dictionary", f"{at}/f0", "--codes",
                   f"{at}/c", "--labels", f"{at}/labels.h5", "--json")
    one = json.loads(done.stdout)["evaluated"][0]
    return pairs["pw_mcc"], one["metrics"]["explained_variance"], one["label"]["f1"]


@claim("if rows have three atoms each, 3 is chosen from 12, 6, 3 and 1, also on more ranks and if "
       "resumed")
def check_planted(at):
    need(sagitta("synth", "--n-rows", 4000, "--atoms", 32, "--columns", 64, "--top-s", 3, "--noise",
                 0.05, "--output", at), "synth")
    words = ("fit", "--rows", f"{at}/rows.h5", "--atoms", 32, "--sweeps", 15)
    auto = (*words, "--top-s", "auto", "--encode-s", 12)
    done = sagitta(*auto, "--output", f"{at}/a")
    need(done, "auto")
    found, chosen = table(done)
    ok(list(found) == [12, 6, 3, 1] and chosen == 3 == chosen_of(found), f"{found} {chosen}")
    need(sagitta(*words, "--top-s", 3, "--encode-s", 12, "--output", f"{at}/b"), "three")
    same(f"{at}/a", f"{at}/b", "the fit of that number")
    done = sagitta(*auto, "--output", f"{at}/three", ranks=3)
    ok(table(done) == (found, chosen), "three ranks choose the same number")
    same(f"{at}/a", f"{at}/three", "three ranks")
    done = sagitta(*auto, "--output", f"{at}/a", "--resume")
    ok(done.returncode == 0 and table(done) == ({}, None), f"resumed: {done.stderr[-300:]}")
    same(f"{at}/a", f"{at}/b", "resumed")
    found, chosen = table(sagitta(*words, "--top-s", "auto", "--output", f"{at}/d"))
    ok(list(found) == [32, 16, 8, 4], f"auto alone tries parts of 32: {found}")
    with open(f"{at}/a/used.in", encoding="utf-8") as f:
        ok("top-s = 3" in f.read(), "used.in has the number")
    fails(sagitta(*words, "--top-s", 4, "--encode-s", 12, "--output", f"{at}/a", "--resume"), 65,
          ("--top-s 3", "--top-s 4"), "resumed with another number")


@claim("on real rows with labels the figures are those of other commands, and the choice follows "
       "the rule")
def check_real(at):
    with h5py.File(ROWS) as f:
        rows, labels = f["rows"][:3000].astype("f4"), f["token"][:3000]
    np.save(f"{at}/rows.npy", rows)
    with h5py.File(f"{at}/all.h5", "w") as f:
        f["token"] = labels
    words = ("--atoms", 48, "--sweeps", 2, "--rounds", 4)
    done = sagitta("fit", "--rows", f"{at}/rows.npy", *words, "--top-s", "auto", "--encode-s", 8,
                   "--labels", f"{at}/all.h5", "--output", f"{at}/auto")
    need(done, "auto")
    found, chosen = table(done)
    ok(list(found) == [8, 4, 2, 1] and chosen == chosen_of(found), f"{found} {chosen}")
    for s in 8, 2:
        want = measured(at, rows, labels, s, words, 8)
        ok(np.allclose(found[s], want, rtol=0, atol=DIGITS), f"{s}: {found[s]} {want}")


@claim("impossible requests are refused, and the message says what to do")
def check_refused(at):
    rng = np.random.default_rng(0)
    np.save(f"{at}/rows.npy", rng.standard_normal((60, 6)).astype("f4"))
    for atoms, more, code, said in (
            (20, ("--top-s", "auto", "--find", "codes"), 2,
             "'--top-s auto' chooses among parts of '--encode-s'"),
            (20, ("--top-s", "some"), 2, "'some' of 'top-s' is not a whole number"),
            (20, ("--top-s", 0), 2, "'top-s' is 0, not in 1 .. 256"),
            (20, ("--top-s", 257), 2, "'top-s' is 257, not in 1 .. 256"),
            (20, ("--labels", f"{at}/rows.npy"), 2, "'--labels' is for '--top-s auto'"),
            (20, ("--top-s", "auto", "--encode-s", 4, "--labels", f"{at}/rows.npy"), 65,
             "is no HDF5"),
            (31, ("--top-s", "auto", "--encode-s", 4, "--holdout-share", 0), 65,
             "on half of the 60 rows")):
        fails(sagitta("fit", "--rows", f"{at}/rows.npy", "--atoms", atoms, "--output", f"{at}/no",
                      *more), code, (said,), f"refused: {more}")


for check in check_planted, check_real, check_refused:
    with tempfile.TemporaryDirectory() as folder:
        check(folder)
done_testing()
