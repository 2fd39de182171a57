# SPDX-License-Identifier: BSD-3-Clause
"""Claim: fit --update conjugate moves atoms as conjugate gradients in NumPy do, also by parts.
Many steps reach the least squares solution.  Ranks, threads, shared memory, instruction sets and
GPUs change no bit.  Of the sums a fit saves only the weights, and it is not resumed without
them."""
import json
import os
import shutil
import tempfile

import h5py
import numpy as np

from seal import reseal
from tap import FULL, claim, done_testing, fails, gpu_present, later_wins, need, ok, sagitta, same

K, S, RHO = 40, 3, 0.1
NEAR = 1e-5  # atoms are float32 of norm 1
BOTH = "dictionary.h5", "supports.h5"


def fit(out, rows, *words, ranks=0):
    return sagitta(*later_wins("fit", "--rows", rows, "--output", out, "--update", "conjugate",
                               "--tolerance", 0, *words), ranks=ranks)


def atoms_of(path):
    with h5py.File(path) as f:
        return f["atoms"][...].astype(np.float64)


def codes_of(folder, dictionary, rows):
    """The codes that encode gives the rows, as an array."""
    np.save(f"{folder}/some.npy", rows)
    done = sagitta("encode", "--rows", f"{folder}/some.npy", "--dictionary", dictionary, "--top-s",
                   S, "--rounds", 8, "--rho", RHO, "--codes", "nonnegative", "--output",
                   f"{folder}/some", "--force")
    need(done, "encode")
    codes = np.zeros((len(rows), K))
    with h5py.File(f"{folder}/some/supports.h5") as f:
        which, values = f["supports/indices"][...].reshape(-1, S), f["supports/data"][...]
        np.put_along_axis(codes, which, values.reshape(-1, S).astype(np.float64), 1)
    return codes


def normed(atoms):
    return atoms / np.linalg.norm(atoms, axis=1)[:, None]


def moved(codes, rows, atoms, held, steps):
    """The given atoms after steps of conjugate gradients on the normal equations, in NumPy.  held:
    the weights that earlier rows give the atoms."""
    matrix, weight = codes.T @ codes + np.diag(held), (codes**2).sum(0) + held
    right = codes.T @ rows + held[:, None] * atoms
    where, gain, along = atoms.copy(), 0, np.zeros_like(atoms)
    inverse = np.where(weight > 0, 1 / np.where(weight > 0, weight, 1), 0)[:, None]
    left = right - matrix @ where
    for _ in range(steps):
        scaled = inverse * left
        before, gain = gain, (left * scaled).sum(0)
        along = scaled + (gain / before if np.any(before) else 0) * along
        far = gain / (along * (matrix @ along)).sum(0)
        where, left = where + far * along, left - far * (matrix @ along)
    return normed(where)


def rows_make(folder, name="rows.npy", n=900, p=16, common=0):
    rows = np.random.default_rng(7).standard_normal((n, p)).astype("f4")
    rows[:, 0] += common  # a common part of all rows; if it is large, some atoms are never used
    np.save(f"{folder}/{name}", rows)
    return rows, f"{folder}/{name}"


PLAIN = ["--atoms", K, "--top-s", S, "--uncentered", "--holdout-share", 0, "--rho", RHO,
         "--relaxation", 1, "--revive-share", 0]


@claim("atoms move as with NumPy's conjugate gradients; many steps reach the least squares "
       "solution")
def check_formula(folder):
    rows, path = rows_make(folder)
    need(fit(f"{folder}/start", path, *PLAIN, "--sweeps", 0), "the start")
    start = f"{folder}/start/dictionary.h5"
    codes, atoms = codes_of(folder, start, rows), atoms_of(start)
    used = (codes**2).sum(0) > 0
    least = atoms.copy()
    least[used] = np.linalg.lstsq(codes[:, used], rows.astype(np.float64), rcond=None)[0]
    for steps in 1, 4, 80:
        out = f"{folder}/steps-{steps}"
        need(fit(out, path, *PLAIN, "--sweeps", 1, "--passes", steps), f"{steps} steps")
        got = atoms_of(f"{out}/dictionary.h5")
        wanted = normed(least) if steps == 80 else moved(codes, rows, atoms, np.zeros(K), steps)
        worst = np.abs(got - wanted).max()
        ok(worst < NEAR, f"{steps} steps: {worst:.2g} from where atoms are to go")
        ok(np.abs(got - atoms).max() > 100 * NEAR, "they moved")


@claim("with parts, the weights in state.h5 make atoms that earlier rows used move less")
def check_parts(folder):
    rows, path = rows_make(folder)
    half = len(rows) // 2
    start = f"{folder}/start/dictionary.h5"
    need(fit(f"{folder}/parts", path, *PLAIN, "--sweeps", 1, "--minibatch", half), "two parts")
    atoms = atoms_of(start)
    codes = codes_of(folder, start, rows[:half])
    held = np.zeros(K)
    after = moved(codes, rows[:half], atoms, held, 4).astype("f4")
    shutil.copy(start, f"{folder}/between.h5")
    with h5py.File(f"{folder}/between.h5", "r+") as f:
        f["atoms"][...] = after
        reseal(f)
    held = (codes**2).sum(0) / 2
    codes = codes_of(folder, f"{folder}/between.h5", rows[half:])
    wanted = moved(codes, rows[half:], after.astype(np.float64), held, 4)
    without = moved(codes, rows[half:], after.astype(np.float64), np.zeros(K), 4)
    got = atoms_of(f"{folder}/parts/state.h5")
    worst = np.abs(got - wanted).max()
    ok(worst < NEAR and np.abs(got - without).max() > 100 * NEAR,
       f"{worst:.2g} from where atoms are to go, {np.abs(got - without).max():.2g} without weights")
    with h5py.File(f"{folder}/parts/state.h5") as f:
        weight, names = f["fit/weight"][...], set(f["fit"])
    ok(np.allclose(weight, held + (codes**2).sum(0), rtol=1e-6) and
       not {"gram", "target"} & names, f"the weights alone: {names}")


@claim("ranks, threads, shared memory and instruction sets change no bit, also if atoms are "
       "replaced")
def check_ranks(folder):
    _, path = rows_make(folder, "uneven.npy", 9000, 12, common=8)
    for name, words in ("whole", []), ("parts", ["--minibatch", 5000]):
        words = ["--atoms", 1500, "--top-s", 3, "--rounds", 1, "--sweeps", 3, "--uncentered",
                 "--twin-cosine", 0.7, *words]
        one = f"{folder}/uneven-{name}"
        done = fit(one, path, *words, "--threads", 1)
        need(done, "one rank")
        last = "state.h5" if os.path.exists(f"{one}/state.h5") else "dictionary.h5"
        with h5py.File(f"{one}/{last}") as f:
            revived = f["fit/history"][:, 4]
            forgotten = np.sum(f["fit/weight"][...] == 0) if name == "parts" else np.inf
        ok(revived.sum() > 0, f"{name}: {revived.sum():.0f} atoms were replaced")
        ok(forgotten >= revived[-1] > 0, f"{forgotten} have no weight of {revived[-1]:.0f} at last")
        for ranks, cut in ((0, ["--threads", 3]), (2, ["--share", "no"]), (3, ["--share", "yes"]),
                           (7, ["--threads", 1]), (0, ["--cpu-variant", "baseline"])):
            out = f"{folder}/uneven-{name}-{ranks}"
            need(fit(out, path, *words, *cut, "--force", ranks=ranks), f"{ranks} ranks {cut}")
            for file in BOTH + ("state.h5",) * (name == "parts"):
                same(f"{one}/{file}", f"{out}/{file}", f"{name}, {ranks} ranks, {cut}, {file}")
    _, path = rows_make(folder, "narrow.npy", 300, 2)
    words = ["--atoms", 9, "--top-s", 1, "--sweeps", 2]
    need(fit(f"{folder}/narrow", path, *words), "two columns")
    need(fit(f"{folder}/narrow-5", path, *words, ranks=5), "two columns on five ranks")
    same(f"{folder}/narrow/dictionary.h5", f"{folder}/narrow-5/dictionary.h5", "two columns")


@claim("a state without weights, or of another update, is not resumed")
def check_refused(folder):
    _, path = rows_make(folder)
    words = [*PLAIN, "--minibatch", 300]
    need(fit(f"{folder}/begun", path, *words, "--sweeps", 1), "one pass")
    for update in "joint", "auto":
        done = fit(f"{folder}/begun", path, *words, "--sweeps", 2, "--resume", "--update", update)
        fails(done, 65, ["--update conjugate", "--update joint"], f"resumed with {update}")
    with h5py.File(f"{folder}/begun/state.h5", "r+") as f:
        del f["fit/weight"]
        reseal(f)
    done = fit(f"{folder}/begun", path, *words, "--sweeps", 2, "--resume")
    fails(done, 65, ["/fit/weight"], "without weights")


def plan(rows, *words, ranks=0):
    done = sagitta("fit", "--rows", rows, "--dry-run", "--json", "--device", "cpu", *words,
                   ranks=ranks)
    need(done, "--dry-run")
    return json.loads(done.stdout)


@claim("the plan has no memory of size K squared, and ranks divide the rest")
def check_plan(folder):
    with open(f"{folder}/hole.npy", "wb") as f:
        head = {"descr": "<f2", "fortran_order": False, "shape": (1 << 18, 256)}
        np.lib.format.write_array_header_1_0(f, head)
        f.truncate(f.tell() + (1 << 27))
    words = [f"{folder}/hole.npy", "--atoms", 1 << 17, "--holdout-share", 0, "--minibatch", 65536,
             "--threads", 1]
    joint = plan(*words, "--update", "joint")["rank_bytes"]["update"]
    more = [*words[:2], (1 << 17) + 1, *words[3:]]
    ok([plan(*w)["update"] for w in (words, more)] == ["joint", "conjugate"],
       "auto by parts is the joint update up to 131,072 atoms")
    one, four = (plan(*words, "--update", "conjugate", ranks=n) for n in (1, 4))
    k, p, m = 1 << 17, 256, 65536
    ok(one["update"] == "conjugate" and joint > 8 * k * k > 50 * one["rank_bytes"]["update"],
       f"{one['rank_bytes']['update']} bytes, {joint} of the joint update")
    # Bytes of a rank of four, with K atoms, P columns and M rows in a part: a fourth of
    # 20 P M + 40 K P, lists of 8 s M with s = 8 atoms per row, and buffers.
    most = (20 * p * m + 40 * k * p) // 4 + 8 * 8 * m + 3 * (16 * k + 4096 * 4 * p)
    ok(four["rank_bytes"]["update"] < most,
       f"{four['rank_bytes']['update']} bytes on four ranks, at most {most}")
    ok(four["file_bytes"]["state.h5"] < 5 * k * p, "state.h5 has no sums of K squared")


@claim("a GPU that routes and codes changes no bit")
def check_gpu(folder):
    if not gpu_present():
        return
    _, path = rows_make(folder, "gpu.npy", 20000, 64, common=4)
    for name, words in ("whole", []), ("parts", ["--minibatch", 9000]):
        words = ["--atoms", 700, "--top-s", 6, "--sweeps", 3, "--twin-cosine", 0.7, *words]
        need(fit(f"{folder}/cpu-{name}", path, *words, "--device", "cpu"), "cpu")
        for ranks in 0, 2:
            out = f"{folder}/cuda-{name}-{ranks}"
            done = fit(out, path, *words, "--device", "cuda", ranks=ranks)
            need(done, f"cuda, {ranks} ranks")
            ok("device='cuda" in done.stderr, f"{name}, {ranks} ranks: {done.stderr[-300:]}")
            for file in BOTH:
                same(f"{folder}/cpu-{name}/{file}", f"{out}/{file}", f"{name}, {ranks} ranks")


with tempfile.TemporaryDirectory() as main:
    check_formula(main)
    check_parts(main)
    check_ranks(main)
    check_refused(main)
    check_plan(main)
    check_gpu(main)
done_testing()
