# SPDX-License-Identifier: BSD-3-Clause
"""Rows with one of twenty defects, for tests/soak_faults.  Invalid rows must be refused.  Valid
rows in another form must give the same result.  Odd rows must give a result that is whole and
finite.  test_soak_rows.py plants a fault with each defect."""
import os

import h5py
import numpy as np

from soak_data import contents_of
from soak_try import HARMLESS, HUNG, REFUSED, WRONG

JOBS = {  # words; may the rows have any number of columns?
    "encode": ("encode --dictionary in/start.h5 --top-s 3 --threads 1", False),
    "encode-center": ("encode --dictionary in/start.h5 --top-s 3 --rounds 2 --center --threads 1",
                      False),
    "encode-filter": ("encode --dictionary in/start.h5 --top-s 2 --filter on --threads 2", False),
    "route": ("route --dictionary in/start.h5 --top-s 3 --threads 1", False),
    "seed": ("seed --atoms 12 --center", True),
    "fit": ("fit --atoms 8 --top-s 3 --sweeps 1 --threads 1", True),
    "fit-nonnegative": ("fit --atoms 8 --top-s 2 --sweeps 1 --codes nonnegative "
                        "--holdout-share 0.2 --threads 1", True),
    "train": ("train --atoms 12 --top-s 3 --epochs 1 --batch 8 --threads 1", True),
}
RESULTS = {"seed": ["dictionary.h5"], "fit": ["dictionary.h5", "supports.h5"],
           "train": ["dictionary.h5"]}


def at_random(random, x, value):
    x[random.randrange(len(x)), random.randrange(x.shape[1])] = value
    return x


def massive(random, x, scale):
    x[random.randrange(len(x))] *= np.float32(scale)
    return x


def repeated(random, x):
    x[:] = x[random.randrange(len(x))]
    return x


def emptied(random, x, axis):
    if axis:
        x[:, random.randrange(x.shape[1])] = 0.5
    else:
        x[random.randrange(len(x))] = 0
    return x


REFUSE, SAME, EITHER = "refuse", "same", "either"
DEFECTS = {
    # Values that are no finite numbers, or a shape that does not fit the job.
    "nan": (REFUSE, lambda r, x: at_random(r, x, np.nan)),
    "infinity": (REFUSE, lambda r, x: at_random(r, x, np.inf)),
    "minus infinity": (REFUSE, lambda r, x: at_random(r, x, -np.inf)),
    "beyond float32": (REFUSE, lambda r, x: at_random(r, x.astype("f8"), 1e300)),
    "a column less": (REFUSE, lambda r, x: x[:, 1:].copy()),
    "no rows": (EITHER, lambda r, x: x[:0]),
    "four dimensions": (REFUSE, lambda r, x: x.reshape(1, len(x), 4, -1)),
    "texts": (REFUSE, lambda r, x: x.astype("S8")),
    "complex numbers": (REFUSE, lambda r, x: x.astype("c8")),
    "a file that is cut": (REFUSE, lambda r, x: x),
    # The same numbers in another form.
    "float64": (SAME, lambda r, x: x.astype("f8")),
    "column order": (SAME, lambda r, x: np.asfortranarray(x)),
    "big-endian": (SAME, lambda r, x: x.astype(">f4")),
    "negative zeros": (SAME, lambda r, x: np.where(x == 0, np.float32(-0.0), x)),
    # Unusual rows, which are valid.
    "a row of zeros": (EITHER, lambda r, x: emptied(r, x, 0)),
    "a constant column": (EITHER, lambda r, x: emptied(r, x, 1)),
    "equal rows": (EITHER, repeated),
    "a massive row": (EITHER, lambda r, x: massive(r, x, 1e6)),
    "a huge row": (EITHER, lambda r, x: massive(r, x, 1e30)),
    "a tiny row": (EITHER, lambda r, x: massive(r, x, 1e-38)),
}


def rows_write(t, name, x):
    """Write in/odd.npy or in/odd.h5.  If the file is to be cut, its last bytes are missing."""
    path = t.at("in/odd" + t.random.choice((".npy", ".h5")))
    if path.endswith(".npy"):
        np.save(path, x)
    else:
        chunks = t.random.random() < 0.5 and x.size > 0
        with h5py.File(path, "w", libver=("earliest", "v108")) as f:
            f.create_dataset("rows", data=x, chunks=(7, *x.shape[1:]) if chunks and x.ndim == 2
                             and len(x) > 7 else None)
    if name == "a file that is cut":
        os.truncate(path, os.path.getsize(path) - t.random.randrange(1, 2000))
    t.guard(os.path.relpath(path, t.folder))
    return os.path.relpath(path, t.folder)


def not_finite(path):
    """Names of the arrays of a result with a number that is not finite.  Attributes may be NaN if
    they were not computed."""
    found = []

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "f" and \
                not np.isfinite(item[()]).all():
            found.append(name)
    with h5py.File(path) as f:
        for top in f:
            if top in ("supports", "atoms", "encoder", "mean"):
                visit(top, f[top]) if isinstance(f[top], h5py.Dataset) else f[top].visititems(visit)
    return found


def result_check(t, name):
    """verify must accept the result, and its numbers must be finite."""
    told = t.run(["verify", f"out/{name}"])
    if told.code:
        return t.find(WRONG, f"verify {name}: {told.told()}")
    bad = not_finite(t.at(f"out/{name}"))
    return t.find(WRONG, f"{name}: {bad} not finite") if bad else None


def values_of(contents):
    """The contents, without the names and hashes of the input."""
    return {key: value for key, value in contents.items() if "hash" not in key and
            "@sha256" not in key and not key.startswith("inputs")}


def rows(t):
    """One defect in the rows of one job, on one rank or on two."""
    job, (name, (verdict, change)) = t.random.choice(sorted(JOBS)), t.random.choice(
        sorted(DEFECTS.items()))
    words, any_columns = JOBS[job]
    results = RESULTS.get(job.split("-")[0], ["supports.h5"])
    for file in "rows.h5", "start.h5":
        t.put(t.data.at("a", f"in/{file}"), f"in/{file}")
    with h5py.File(t.at("in/rows.h5")) as f:
        x = f["rows"][:]
    if name == "negative zeros":
        x[::9, ::3] = 0
    path = rows_write(t, name, change(t.random, x.copy()))
    ranks = 2 if t.random.random() < 0.15 else 0
    t.say(f"{job}: {name} in {path}, ranks {ranks}")
    words = [*words.split(), "--quiet", "--output", "out"]
    done = t.run([*words, "--rows", path], ranks=ranks)
    t.check_placed()
    if done.code is None:
        return t.find(HUNG, "did not end")
    if done.crashed():
        t.find(WRONG, done.told())
    t.check_litter([*results, "state.h5"])
    if done.code:
        t.check_refusal(t.data.commands["encode"], done, not ranks)
        if not words[0] == "fit" and any(os.path.exists(t.at(f"out/{r}")) for r in results):
            t.find(WRONG, f"{done.told()}, but there is a result")
        if verdict == SAME and not (name == "column order" and path.endswith(".npy")):
            t.find(WRONG, f"the same numbers are refused: {done.told()}")
        return t.find(REFUSED, done.told())
    if verdict == REFUSE and not (any_columns and name == "a column less"):
        t.find(WRONG, "exit 0")
    for result in results:
        result_check(t, result)
    if verdict == SAME:
        return same_check(t, words, x, results)
    return t.find(HARMLESS)


def same_check(t, words, x, results):
    """The result must be that of the plain rows, except for the names and hashes of inputs."""
    np.save(t.at("in/plain.npy"), x)
    words = [*words[:-1], "plain", "--rows", "in/plain.npy"]
    done = t.run(words)
    if done.code:
        return t.find(WRONG, f"the plain rows: {done.told()}")
    for name in results:
        one, two = (values_of(contents_of(t.at(f"{at}/{name}"))) for at in ("out", "plain"))
        if one != two:
            keys = [k for k in sorted(set(one) | set(two)) if one.get(k) != two.get(k)]
            t.find(WRONG, f"{name} differs from that of the plain rows: {keys[:5]}")
    return t.find(HARMLESS)
