# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta.compare gives the figures of the program, and SciPy's assignment.  The trials of
survey are the fits that it names, and its choice follows the rule.  Pictures show what the files
have."""
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings

import h5py
import numpy as np

from peer import PACKAGE
from tap import SAGITTA, SOURCE, claim, done_testing, need, ok, peer_missing, sagitta as program

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)

import sagitta  # noqa: E402, which is given its program
from sagitta.trials import WINDOW, _sample  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
N, K = 1500, 24
HOW = {"sweeps": 2, "progress": None}


def unit(random, k, p=16):
    atoms = random.standard_normal((k, p))
    return (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype("f4")


def raised(kind, words, call):
    try:
        call()
    except kind as error:
        return ok(all(w in str(error) for w in words), f"{words}: {error}")
    return ok(False, f"{words}: nothing was said")


@claim("compare gives the program's figures for runs, paths, dictionaries and arrays")
def check_compare(at, runs):
    a, b = runs
    done = program("compare", a.path, b.path, "--json", "--output", f"{at}/compared.h5")
    need(done, "compare")
    said = json.loads(done.stdout)["pairs"]
    found = sagitta.compare(a, b, progress=None)
    ok((found.pw_mcc, found.above_07, found.above_09, found.most_frequent, found.least_frequent)
       == tuple(said[name] for name in ("pw_mcc", "above_07", "above_09", "most_frequent_quarter",
                                        "least_frequent_quarter")), f"{found} {said}")
    with h5py.File(f"{at}/compared.h5") as f:
        for name, place in (("match", "pairs/match"), ("cosine", "pairs/cosine"),
                            ("nearest", "first/nearest"), ("nearest_cosine", "first/cosine")):
            ok(getattr(found, name).tobytes() == f[place][:].tobytes(), name)
    for one, other in ((a.path, f"{b.path}/dictionary.h5"), (a.dictionary, b), (a, b.dictionary)):
        again = sagitta.compare(one, other, progress=None)
        ok(again.pw_mcc == found.pw_mcc and again.match.tolist() == found.match.tolist(),
           f"{type(one)}, {type(other)}")
    ok(sagitta.compare(a.dictionary, b, progress=None).most_frequent is None, "no densities")
    plain = sagitta.compare(a.dictionary.atoms, -a.dictionary.atoms, progress=None)
    signed = dataclasses.replace(a.dictionary, atoms=-a.dictionary.atoms)
    ok(plain.above_09 == 1 and sagitta.compare(a, signed, progress=None).pw_mcc < 0.9,
       "a sign counts where both say that codes are nonnegative")
    ok(f"{found.pw_mcc:.4f}" in repr(found), repr(found))


@claim("compare finds SciPy's assignment, for other atoms and other numbers of atoms")
def check_assignment():
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        return peer_missing("SciPy is not installed")
    random = np.random.default_rng(5)
    for k, l in (30, 30), (12, 40), (40, 12):
        a, b = unit(random, k), unit(random, l)
        found = sagitta.compare(a, b, progress=None)
        size = np.abs(a.astype("f8") @ b.T.astype("f8"))
        rows, columns = linear_sum_assignment(-size)
        want = np.full(k, -1)
        want[rows] = columns
        ok(found.match.tolist() == want.tolist() and
           abs(found.pw_mcc - size[rows, columns].mean()) < 1e-6, f"{k}, {l}: {found}")
    return None


@claim("compare: impossible requests are refused in terms of Python, and leave nothing")
def check_refused(at):
    random = np.random.default_rng(6)
    tempfile.tempdir = f"{at}/own"
    os.mkdir(tempfile.tempdir)
    raised(sagitta.InputError, ["'a:", "norm"], lambda: sagitta.compare(
        2 * unit(random, 4), unit(random, 4), progress=None))
    raised(sagitta.InputError, ["columns"], lambda: sagitta.compare(
        unit(random, 4, 8), unit(random, 4, 9), progress=None))
    raised(TypeError, ["no option abov", "above?"], lambda: sagitta.compare(
        unit(random, 4), unit(random, 4), abov=0.8))
    raised(sagitta.Error, ["pairs"], lambda: sagitta.compare(
        unit(random, 4), unit(random, 4), pairs="no", progress=None))
    ok(sagitta.compare(2 * unit(random, 4), unit(random, 4), normalize=True, progress=None).match
       .shape == (4,), "--normalize")
    ok(not os.listdir(tempfile.tempdir), "no folder is left")
    tempfile.tempdir = None


@claim("survey: each trial has the figures of the fits that it names, from arrays and from files")
def check_survey(at, x):
    np.save(f"{at}/x.npy", x)
    with h5py.File(f"{at}/x.h5", "w") as f:
        f["rows"] = x
    found = sagitta.survey(x, atoms=[K, K // 2], top_s=[2, 4], seeds=[3, 5], **HOW)
    ok([(one.atoms, one.top_s) for one in found] ==
       [(K, 2), (K, 4), (K // 2, 2), (K // 2, 4)], f"{found}")
    one = found[0]
    runs = [sagitta.fit(x, atoms=K, top_s=2, encode_s=4, seed=seed, **HOW) for seed in (3, 5)]
    want = {"explained_variance": np.mean([run.page["unseen_encoded"] for run in runs]),
            "pw_mcc": sagitta.compare(*runs, progress=None).pw_mcc,
            "dead": np.mean([run.metrics["dead_atoms"] / K for run in runs]),
            "dense": np.mean([(run.density > N / 2).sum() / K for run in runs]),
            "rows_each": np.mean([run.page["rows"] / K for run in runs])}
    ok(all(abs(getattr(one, name) - value) < 1e-12 for name, value in want.items()) and
       0 < one.seconds < 60, f"{one} {want}")
    for source in f"{at}/x.npy", f"{at}/x.h5", f"{at}/x.h5:/rows", x.reshape(3, N // 3, -1):
        ok(np.array_equal(_sample(source, N), x), f"{type(source)}")
    other = sagitta.survey(f"{at}/x.npy", atoms=[K], top_s=[4, 2], seeds=[3, 5], **HOW)[1]
    ok(dataclasses.replace(other, seconds=0) == dataclasses.replace(one, seconds=0), f"{other}")
    text = repr(found)
    ok(found.why in text and f"{one.pw_mcc:.6g}" in text and "<td>" in found._repr_html_(), text)


@claim("survey: a sample is windows spread over all rows; each kind of warning comes once")
def check_sample(x):
    numbers = np.arange(10 * N, dtype="f8")[:, None]
    sample = _sample(numbers, 1000)[:, 0]
    blocks = sample.reshape(-1, WINDOW)
    ok(len(sample) == 1000 // WINDOW * WINDOW and (np.diff(blocks) == 1).all() and
       (np.diff(blocks[:, 0]) > WINDOW).all() and sample[-1] > 8 * N, f"{blocks[:, 0]}")
    ok(np.array_equal(_sample(numbers[:1000], 1000), numbers[:1000]), "all of them")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sagitta.survey(x, atoms=[K], top_s=[2, 4], **HOW)
    kinds = [one.category for one in caught]
    ok(kinds and len(set(kinds)) == len(kinds) and sagitta.FewHeldOut in kinds and
       all(one.filename == __file__ for one in caught), f"{kinds}")


def trial(explained, agree, atoms=K, dead=0.0):
    return sagitta.Trial(atoms, 4, explained, agree, dead, 0.0, 10.0, 1.0)


@claim("survey: agreement decides among trials that explain nearly as much, and only among those")
def check_choice(x):
    for trials, best in (([trial(0.9, 0.5)], 0), ([trial(0.9, 0.5), trial(0.89, 0.7)], 1),
                         ([trial(0.9, 0.5), trial(0.87, 0.9)], 0),  # leaves 30 % more unexplained
                         ([trial(0.89, 0.52), trial(0.9, 0.5)], 1),  # the difference is too small
                         ([trial(0.6, 0.9), trial(0.9, 0.5), trial(0.885, 0.6)], 2)):
        found = sagitta.Survey(trials)
        ok(found.best is trials[best], f"{trials}: {found.best}")
    ok("50 % of its atoms are in no row" in sagitta.Survey([trial(0.9, 0.5, dead=0.5)]).why, "dead")
    raised(sagitta.InputError, ["two seeds"], lambda: sagitta.survey(x, seeds=[1]))
    raised(sagitta.InputError, ["two seeds"], lambda: sagitta.survey(x, seeds=[1, 1]))
    raised(sagitta.InputError, ["one of each"], lambda: sagitta.survey(x, atoms=[]))
    raised(sagitta.InputError, ["an array"], lambda: sagitta.survey(iter([x])))
    raised(TypeError, ["encode_s"], lambda: sagitta.survey(x, encode_s=8))


@claim("survey: options that put all fits into one folder, or hold no row out, are refused before "
       "any fit")
def check_options(at, x):
    fit, fits, few = sagitta.calls.fit, [], {"atoms": [K], "top_s": [2], **HOW}
    sagitta.calls.fit = lambda *rows, **how: fits.append(how) or fit(*rows, **how)
    try:
        for options in ({"output": f"{at}/one", "force": True}, {"output": f"{at}/one"},
                        {"resume": True}, {"force": True}):
            name = next(iter(options))
            raised(TypeError, [f"leave {name} out", "output to fit()", ".best"],
                   lambda o=options: sagitta.survey(x, **few, **o))
        for options in {"holdout_share": 0}, {"holdout": 0.0}, {"holdout": 0.1, "holdout_share": 0}:
            raised(sagitta.InputError, ["rows held out", "give holdout=0.1"],
                   lambda o=options: sagitta.survey(x, **few, **o))
        ok(not fits and not os.path.exists(f"{at}/one"), f"no fit was made: {fits}")
        found = sagitta.survey(x[:-256], holdout=x[-256:], **few)
        ok(len(fits) == 2 and found.best.explained_variance > 0, f"rows that are given: {found}")
    finally:
        sagitta.calls.fit = fit


@claim("plots have the figures of the files, on given axes or on new ones")
def check_plots(runs):
    try:
        import matplotlib
    except ImportError:
        return peer_missing("matplotlib is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    a, b = runs
    ax = a.plot_history()
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    ok(np.array_equal(lines["fitted rows"], a.history["explained_variance"]) and np.array_equal(
        lines["held-out rows"], a.history["explained_variance_held_out"]), f"{lines}")
    mine = pyplot.subplots()[1]
    ok(a.plot_density(ax=mine) is mine and sum(bar.get_height() for bar in mine.patches) ==
       (a.density > 0).sum(), "densities")
    compared = sagitta.compare(a, b, progress=None)
    bars = compared.plot().patches
    ok(sum(bar.get_height() for bar in bars) == (compared.match >= 0).sum() and
       math.isclose(bars[-1].get_x() + bars[-1].get_width(), 1), "cosines")
    found = sagitta.Survey([trial(0.9, 0.5), trial(0.8, 0.6), trial(0.7, 0.7, 2 * K)])
    lines = [line.get_ydata().tolist() for line in found.plot().get_lines()]
    ok(lines == [[0.9, 0.8], [0.7]], f"{lines}")
    pyplot.close("all")
    return None


@claim("without matplotlib the package works, and a plot says what to install")
def check_no_matplotlib():
    code = ("import sys; sys.path.insert(0, sys.argv[1]); sys.modules['matplotlib'] = None\n"
            "sys.dont_write_bytecode = True\n"
            "import sagitta, sagitta.plots\n"
            "try:\n    sagitta.plots.history({})\n"
            "except sagitta.Error as error:\n    print(error)\n")
    done = subprocess.run([sys.executable, "-c", code, PACKAGE], capture_output=True, text=True)
    ok("no matplotlib" in done.stdout and "install" in done.stdout, f"{done.stdout} {done.stderr}")


def main():
    x = h5py.File(ROWS)["rows"][:N]
    with tempfile.TemporaryDirectory() as at:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = [sagitta.fit(x, atoms=K, top_s=4, seed=seed, output=f"{at}/{seed}", **HOW)
                    for seed in (0, 1)]
            check_compare(at, runs)
            check_assignment()
            check_refused(at)
            check_survey(at, x)
            check_choice(x)
            check_options(at, x)
            check_plots(runs)
        check_sample(x)
        check_no_matplotlib()
    done_testing()


if __name__ == "__main__":
    main()
