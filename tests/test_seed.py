# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta seed` draws the rows and computes the mean of its definition, bit for bit, on any
number of ranks.  If more atoms are wanted than rows can give, it is refused with the counts."""
import os
import re
import tempfile

import h5py
import numpy as np

from tap import claim, done_testing, ok, sagitta

DRAW = 1  # the stream of random_bits for draws of rows
U = np.uint64


def mix(x):
    x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
    return x ^ (x >> U(31))


def keys(seed, count):
    with np.errstate(over="ignore"):
        golden = U(0x9E3779B97F4A7C15)
        key = mix(mix(U(seed) + golden) + golden * U(DRAW + 1))
        return mix(key + golden * np.arange(1, count + 1, dtype=U))


def tree(blocks):
    """The sum of (N.0): T(l, j) = T(l-1, 2j) + T(l-1, 2j+1), or the first part alone if there is no
    second one."""
    while len(blocks) > 1:
        pairs = [blocks[i:i + 2] for i in range(0, len(blocks), 2)]
        blocks = [p[0] + p[1] if len(p) == 2 else p[0] for p in pairs]
    return blocks[0]


def chain(x):
    total = np.zeros(x.shape[1])
    for row in x:
        total = total + row
    return total


def mean_of(x):
    wide = x.astype(np.float64)
    shift = chain(wide[:1024]) / min(len(x), 1024)
    sums = [chain(wide[i:i + 4096] - shift) for i in range(0, len(x), 4096)]
    return shift + tree(sums) / len(x)


def unit(x):
    total = np.zeros(len(x))
    for column in x.astype(np.float64).T:
        total = total + column * column
    return (x / np.sqrt(total)[:, None]).astype(np.float32)


def draw(x, need, seed, d=1):
    """The indices of the rows that are drawn."""
    taken, seen = [], set()
    for i in np.lexsort((np.arange(len(x)), keys(seed, len(x)))):
        value = (x[i] + np.float32(0)).tobytes()
        if not x[i].any() or value in seen:
            continue
        frame = taken[len(taken) - len(taken) % d:] + [i]
        if np.linalg.matrix_rank(unit(x[frame]).astype(np.float64), 2.0**-18) < len(frame):
            continue
        seen.add(value)
        taken.append(i)
        if len(taken) == need:
            break
    return np.array(taken)


def contents(path):
    """All datasets and attributes outside /run, as bytes."""
    found = {}

    def visit(name, thing):
        if name.split("/")[0] == "run":
            return
        attributes = {k: str(v) for k, v in thing.attrs.items()}
        data = (thing.dtype, thing.shape, thing[...].tobytes()) \
            if isinstance(thing, h5py.Dataset) else None
        found[name] = (attributes, data)

    with h5py.File(path) as f:
        visit("", f)
        f.visititems(visit)
    return found


class Folder:
    def __init__(self, path):
        self.path, self.count = path, 0

    def save(self, x):
        self.count += 1
        path = os.path.join(self.path, f"rows-{self.count}.npy")
        np.save(path, x)
        return path

    def seed(self, rows, *words, ranks=1):
        self.count += 1
        out = os.path.join(self.path, f"out-{self.count}.h5")
        return out, sagitta("seed", "--rows", rows, "--output", out, *words, ranks=ranks)


def show(done):
    print("#", done.stderr.replace("\n", "\n# "))


def check_ranks(folder, label, rows, words, ranks=(1, 2, 3, 5)):
    """File and fingerprint must be the same on all numbers of ranks.  Returns the datasets of the
    last file."""
    base, mark = None, None
    for n in ranks:
        out, done = folder.seed(rows, *words, ranks=n)
        found = re.search(r"seed .*fingerprint=([0-9a-f]{16})", done.stderr)
        if not ok(done.returncode == 0 and found, f"{label}: {n} ranks"):
            show(done)
            continue
        if base is None:
            base, mark = contents(out), found.group(1)
        else:
            ok(contents(out) == base and found.group(1) == mark,
                f"{label}: {n} ranks as {ranks[0]}")
    kept = os.path.join(folder.path, f"out-{folder.count}.h5")
    with h5py.File(kept) as f:
        return {k: f[k][...] for k in ("atoms", "mean") if k in f}


@claim("centred seeds have the bits of the definition")
def check_centered(folder):
    random = np.random.default_rng(1)
    x = random.standard_normal((13000, 24)) + 30 * random.standard_normal(24)
    x[:1024] = 1e-3 * random.standard_normal((1024, 24))  # a shift near 0 hides no bit
    x = x.astype(np.float32)
    x[50:900] = x[10000]
    got = check_ranks(folder, "centred", folder.save(x), ["--atoms", 700, "--center", "--seed", 5])
    mean = mean_of(x)
    ok(np.array_equal(got["mean"], mean), "the mean has the bits of the defined order")
    centred = (x - mean).astype(np.float32)
    rows = draw(centred, 700, 5)
    ok(np.array_equal(got["atoms"], unit(centred[rows])), "the atoms are the rows drawn, unit norm")


@claim("every distinct row is found, and one more is refused")
def check_sparse(folder):
    """Nearly all rows are zero, so many windows (src/seed/seed.c) are drawn.  +0 and -0 are
    equal."""
    random = np.random.default_rng(2)
    x = np.zeros((20000, 6), np.float32)
    where = random.choice(20000, 90, replace=False)
    x[where] = random.integers(-2, 3, (90, 6))
    x[where[:40]] = x[where[40:80]]
    x[where[:40]] *= np.where(x[where[:40]] == 0, -1, 1)
    most = len(draw(x, 20000, 0))
    path = folder.save(x)
    got = check_ranks(folder, "sparse", path, ["--atoms", most], ranks=(1, 3))
    ok(np.array_equal(got["atoms"], unit(x[draw(x, most, 0)])),
        f"all {most} distinct rows are found")
    for n in (1, 3):
        _, done = folder.seed(path, "--atoms", most + 1, ranks=n)
        zero = int((~x.any(1)).sum())
        text = f"gives {most} of {most + 1} atoms: of its 20000 rows {zero} are zero"
        good = text in done.stderr and "lower --atoms or give more rows" in done.stderr
        if not ok(done.returncode == 65 and good, f"one more is refused, {n} ranks"):
            show(done)
        ok(not os.path.exists(os.path.join(folder.path, f"out-{folder.count}.h5")),
            "nothing is left")


@claim("frames are the drawn rows, made orthonormal")
def check_frames(folder):
    random = np.random.default_rng(3)
    x = random.standard_normal((300, 9)).astype(np.float32)
    x[100:] = x[random.integers(0, 10, 200)] * (2.0 ** random.integers(-9, 9, 200))[:, None]
    path = folder.save(x)
    rows = draw(x, 90, 7, 3)
    got = check_ranks(folder, "frames", path, ["--atoms", 30, "--frame", 3, "--seed", 7])["atoms"]
    ok(got.shape == (30, 3, 9), "frames have three vectors")
    products = np.einsum("kmp,knp->kmn", got.astype(np.float64), got.astype(np.float64))
    ok(np.abs(products - np.eye(3)).max() < 1e-6, "frames are orthonormal")
    good = 0
    for frame, source in zip(got.astype(np.float64), rows.reshape(30, 3)):
        q, r = np.linalg.qr(x[source].T.astype(np.float64))
        good += np.abs(frame - (q * np.sign(np.diag(r))).T).max() < 1e-5
    ok(good == 30, f"{good} of 30 frames are the orthonormalised rows drawn, none dependent")


@claim("rows that give no atom are counted, and other rows are asked for")
def check_none(folder):
    for rows, words, text in (
            (np.full((50, 4), 3, "f4"), ["--center"], "of its 50 rows 50 equal the mean, 0 repeat"),
            (np.full((1, 4), 3, "f4"), ["--center"], "of its 1 rows 1 equal the mean"),
            (np.zeros((50, 4), "f4"), [], "of its 50 rows 50 are zero")):
        _, done = folder.seed(folder.save(rows), "--atoms", 1, *words)
        good = text in done.stderr and ": give other rows" in done.stderr
        if not ok(done.returncode == 65 and good and "lower" not in done.stderr, text):
            show(done)


@claim("three rows suffice for five ranks; too few rows for the atoms are refused")
def check_few(folder):
    x = np.random.default_rng(4).standard_normal((3, 4)).astype(np.float32)
    path = folder.save(x)
    got = check_ranks(folder, "three rows", path, ["--atoms", 3, "--center"], ranks=(1, 5))
    ok(np.array_equal(got["mean"], mean_of(x)), "mean of three rows on five ranks")
    for rows, words, code, text in (
            (path, ["--atoms", 4], 65, "has 3 rows, 4 atoms of 1 vectors need 4"),
            (path, ["--atoms", 1, "--frame", 5], 65, "frames of 5 vectors need 5 columns"),
            (folder.save(x[:0]), ["--atoms", 1], 65, "has 0 rows"),
            (folder.save(x[:0]), ["--atoms", 1, "--center"], 65, "has 0 rows"),
            (path, [], 2, "'--atoms' is missing")):
        _, done = folder.seed(rows, *words, ranks=2)
        if not ok(done.returncode == code and text in done.stderr, f"refused: {text}"):
            show(done)
        ok(done.stderr.count(text) == 1, "said once")
    ok(sagitta("seed", "--atoms", 3, "--output", folder.path).returncode == 2, "no rows: exit 2")


@claim("values that are not finite are refused, and the lowest row is named")
def check_values(folder):
    x = np.random.default_rng(5).standard_normal((9000, 5)).astype(np.float32)
    x[8999, 1], x[4500, 3], x[4501, 0] = np.inf, np.nan, np.nan
    path = folder.save(x)
    for words in (["--atoms", 5, "--center"], ["--atoms", 5], ["--atoms", 9000]):
        said = set()
        for n in (1, 2, 5):
            out, done = folder.seed(path, *words, ranks=n)
            found = re.search(r"row (\d+), column (\d+) of .* is [-+]?(nan|inf)", done.stderr)
            said.add(found and found.groups())
            ok(done.returncode == 65 and not os.path.exists(out),
               f"{n} ranks: exit {done.returncode}, {os.path.exists(out)}: {done.stderr[-400:]}")
        ok(len(said) == 1 and None not in said, "the same row on any number of ranks")
        ok(said == {("4500", "3", "nan")}, "the lowest row is named")
    huge = np.array([[3e38, 1], [-3e38, 1], [-3e38, 2]], np.float32)
    _, done = folder.seed(folder.save(huge), "--atoms", 3, "--center")
    named = re.search("row ., column 0 of .* is -?inf", done.stderr)
    ok(done.returncode == 65 and named, "centring that overflows is refused")


@claim("used.in repeats a run, and --force replaces its result")
def check_again(folder):
    path = folder.save(np.random.default_rng(6).standard_normal((500, 8)).astype(np.float32))
    place = os.path.join(folder.path, "again")
    first = sagitta("seed", "--rows", path, "--atoms", 100, "--seed", 9, "--output", place)
    result = os.path.join(place, "dictionary.h5")
    ok(first.returncode == 0, "a folder as place")
    before = contents(result)
    ok(sagitta("seed", os.path.join(place, "used.in")).returncode == 73,
        "not replaced without --force")
    again = sagitta("seed", os.path.join(place, "used.in"), "--force")
    ok(again.returncode == 0 and contents(result) == before, "used.in repeats the run")
    other = sagitta("seed", os.path.join(place, "used.in"), "--force", "--seed", 10)
    ok(other.returncode == 0 and contents(result) != before, "another seed draws other rows")
    ok(sagitta("verify", result).returncode == 0, "verify agrees")


def main():
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path)
        check_centered(folder)
        check_sparse(folder)
        check_frames(folder)
        check_none(folder)
        check_few(folder)
        check_values(folder)
        check_again(folder)
    done_testing()


main()
