# SPDX-License-Identifier: BSD-3-Clause
"""Claim: fit finds planted atoms from a random start, with signed and nonnegative codes.  Its
figures of held-out rows are those of encode, and these rows change no atom.  Ranks, threads and
instruction sets change no bit.  A fit ends when its help says it does.  Rows and options that
cannot be fitted are refused."""
import os
import re
import resource
import tempfile

import h5py
import numpy as np

from tap import FULL, claim, done_testing, ok, sagitta, skip

SANITIZED = os.environ.get("SANITIZED")
FOUND, SHARE = 0.99, 0.95  # least |cosine| of a found atom; least share of atoms that are found


def planted(folder, name, n, k, p, s, signed):
    """Write rows with s atoms each, codes of size 0.5 to 1.5, and a noise of 0.01.  Returns (path,
    atoms)."""
    random = np.random.default_rng(3)
    atoms = random.standard_normal((k, p))
    atoms /= np.linalg.norm(atoms, axis=1)[:, None]
    rows = np.zeros((n, p))
    for i in range(n):
        codes = random.uniform(0.5, 1.5, s) * (random.choice([-1, 1], s) if signed else 1)
        rows[i] = codes @ atoms[random.choice(k, s, replace=False)]
    rows += 0.01 * random.standard_normal(rows.shape)
    path = os.path.join(folder, name + ".npy")
    np.save(path, rows.astype("f4"))
    return path, atoms


def fit(out, rows, *words, ranks=None):
    return sagitta("fit", "--rows", rows, "--output", out, *words, ranks=ranks)


def atoms_of(out):
    with h5py.File(os.path.join(out, "dictionary.h5")) as f:
        return f["atoms"][...], f["fit/history"][...]


def check_planted(folder, codes):
    with claim(f"{codes} codes: planted atoms are found from a random start"):
        n, k = (2000, 24) if SANITIZED else (12000, 96)
        rows, atoms = planted(folder, codes, n, k, 48, 3, codes == "signed")
        out = os.path.join(folder, "planted-" + codes)
        found = {}
        both = FULL or codes == "nonnegative"
        for cosine in (1, 0.95) if both and not SANITIZED else (0.95,):
            done = fit(out, rows, "--atoms", k, "--top-s", 3, "--codes", codes, "--uncentered",
                "--sweeps", 40, "--twin-cosine", cosine, "--force")
            if not ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}"):
                return
            got, history = atoms_of(out)
            best = np.max(np.abs(atoms @ got.T.astype(np.float64)), 1)
            found[cosine] = np.mean(best > FOUND)
        ok(found[0.95] >= SHARE and found[0.95] > found.get(1, 0),
           f"of {k} atoms are found, by what makes twins: {found}")
        ok(np.all(np.isfinite(history[:, :3])), "both explained variances of every sweep")
        done = sagitta("verify", os.path.join(out, "dictionary.h5"))
        ok(done.returncode == 0, "verify passes the dictionary")
        done = sagitta("verify", os.path.join(out, "supports.h5"))
        ok(done.returncode == 0, "verify passes the supports")


@claim("ranks, threads and instruction sets change no bit, also if atoms are replaced")
def check_partition(folder):
    n, k = (2400, 600) if SANITIZED else (6000, 1500)
    random = np.random.default_rng(5)
    rows = random.standard_normal((n, 12)).astype("f4")
    rows[:, 0] += 8  # all rows have a common part, so that some atoms are never used
    path = os.path.join(folder, "uneven.npy")
    np.save(path, rows)
    words = ["--atoms", k, "--top-s", 3, "--rounds", 1, "--sweeps", 4, "--tolerance", 0,
             "--uncentered"]
    kinds = (("signed", ["--update", "atoms"]), ("nonnegative", ["--update", "joint"]),
             ("nonnegative", ["--minibatch", n // 6 * 5]), ("nonnegative", ["--update", "atoms"]),
             ("signed", ["--update", "joint"]))
    for codes, update in kinds if FULL else kinds[:3]:
        kind = f"{codes}-{update[1]}"
        base = os.path.join(folder, "base-" + kind)
        done = fit(base, path, *words, *update, "--codes", codes, "--threads", 1)
        ok(done.returncode == 0, f"one rank exits {done.returncode} {done.stderr[-300:]}")
        revived = atoms_of(base)[1][:, 4]
        ok(revived.sum() > 0, f"{revived.sum():.0f} atoms were revived")
        for cut, ranks in ((["--threads", 2, "--filter", "on"], 2),
                           (["--cpu-variant", "baseline", "--threads", 1], 3)):
            out = os.path.join(folder, f"cut-{kind}-{ranks}")
            done = fit(out, path, *words, *update, "--codes", codes, *cut, ranks=ranks)
            ok(done.returncode == 0, f"{ranks} ranks exit {done.returncode} {done.stderr[-300:]}")
            # Atoms are rounded to float32, but the sums in state.h5 are not.
            files = ["dictionary.h5", "supports.h5"] + ["state.h5"] * (update[0] == "--minibatch")
            for name in files:
                same = sagitta("diff", os.path.join(base, name), os.path.join(out, name))
                ok(same.returncode == 0, f"{kind}, {ranks} ranks, {name}: {same.stdout[-200:]}")


def joint_step(path, dictionary, out, rho):
    """The atoms of a file after one update by (N.20), with the codes that encode finds on these
    atoms."""
    done = sagitta("encode", "--rows", path, "--dictionary", dictionary, "--top-s", 3, "--rounds",
        8, "--rho", rho, "--codes", "nonnegative", "--output", out, "--force")
    if not ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}"):
        return None
    x = np.load(path).astype(np.float64)
    codes = np.zeros((len(x), 40))
    with h5py.File(os.path.join(out, "supports.h5")) as f:
        which, values = f["supports/indices"][...].reshape(-1, 3), f["supports/data"][...]
        np.put_along_axis(codes, which, values.reshape(-1, 3).astype(np.float64), 1)
    with h5py.File(dictionary) as f:
        atoms = f["atoms"][...].astype(np.float64)
    gram, target = codes.T @ codes, codes.T @ x
    for _ in range(4):
        for a in np.flatnonzero(np.diag(gram)):
            atoms[a] += (target[a] - gram[a] @ atoms) / gram[a, a]
    return atoms / np.linalg.norm(atoms, axis=1)[:, None]


@claim("sweeps are relaxed as the formula says, until one of them loses")
def check_relaxation(folder):
    path = os.path.join(folder, "relaxed.npy")
    np.save(path, np.random.default_rng(7).standard_normal((900, 16)).astype("f4"))

    def run(name, *words):
        out = os.path.join(folder, name)
        done = fit(out, path, "--atoms", 40, "--top-s", 3, "--uncentered", "--holdout-share", 0,
            "--tolerance", 0, "--force", *words)
        ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}")
        state = os.path.join(out, "state.h5")
        last = state if os.path.exists(state) else os.path.join(out, "dictionary.h5")
        with h5py.File(last) as f:
            return last, f["atoms"][...].astype(np.float64), f["fit/history"][:, 1]

    def check(before, after, omega, rho):
        there = joint_step(path, before[0], os.path.join(folder, "codes"), rho)
        if there is not None:
            there += (omega - 1) * (there - before[1])
            there /= np.linalg.norm(there, axis=1)[:, None]
            worst = np.abs(after[1] - there).max()
            ok(worst < 1e-5, f"omega {omega}, rho {rho}: {worst:.2g} from where atoms are to go")

    for omega in 1, 1.5, 1.9:
        words = "--update", "joint", "--relaxation", omega
        start = run("start", *words, "--sweeps", 0)
        check(start, run(f"after-{omega}", *words, "--sweeps", 1), omega, 0.1)
    moved = [run(f"atoms-{omega}", "--update", "atoms", "--relaxation", omega, "--sweeps", 1)[1]
             for omega in (1, 1.5)]
    there = moved[0] + 0.5 * (moved[0] - start[1])
    there /= np.linalg.norm(there, axis=1)[:, None]
    ok(np.abs(moved[1] - there).max() < 1e-6, "atoms that move one by one are relaxed alike")

    words = "--rho", 8, "--relaxation", 1.9
    history = run("lost", *words, "--sweeps", 12)[2]
    falls = np.flatnonzero(np.diff(history) < 0) + 1
    if ok(len(falls) > 0 and falls[0] < 12, f"a sweep that loses: {history}"):
        before = run("fallen", *words, "--sweeps", falls[0])
        check(before, run("next", *words, "--sweeps", falls[0] + 1), 1, 8)
    for omega in 0.5, 2:
        done = fit(os.path.join(folder, "bad"), path, "--atoms", 40, "--relaxation", omega)
        ok(done.returncode == 2 and "relaxation" in done.stderr, f"{omega}: {done.stderr[-200:]}")
    for rho, omega in (0.1, 1.5), (0.11, 1):
        words = "--rho", rho, "--sweeps", 1
        _, atoms, _ = run("itself", *words)
        _, told, _ = run("told", *words, "--relaxation", omega)
        ok(np.array_equal(atoms, told), f"with rho = {rho} it is {omega} by itself")


@claim("held-out windows change no atom; all other rows do")
def check_unseen(folder):
    rows = np.random.default_rng(6).standard_normal((8 * 128 + 40, 6)).astype("f4")
    path = os.path.join(folder, "windows.npy")
    words = ["--atoms", 8, "--top-s", 2, "--sweeps", 1, "--holdout-share", 0.3]
    kept = []
    for window in range(-1, 9):
        changed = rows.copy()
        if window >= 0:
            changed[128 * window:128 * window + 128] *= 1.5
        np.save(path, changed)
        out = os.path.join(folder, f"window{window}")
        done = fit(out, path, *words)
        if not ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}"):
            return
        held = int(re.search(r"held_out=(\d+)", done.stderr)[1])
        ok(f"of which {len(rows) - held} were fitted:" in done.stderr,
           "the log counts the fitted rows")
        with h5py.File(os.path.join(out, "dictionary.h5")) as f:
            result = f["mean"][...].tobytes()
        if window < 0:
            first = result
        elif result == first:
            kept.append(window)
    ok(held % 128 == 0 and 0 < len(kept) == held // 128 < 8,
       f"{held} rows were held out: windows {kept}")
    ok(8 not in kept, "the last window, which is not whole, is not held out")


@claim("the explained variance of unseen rows is encode's; a fit ends when its help says")
def check_judge(folder):
    path, _ = planted(folder, "judge", 2500, 40, 20, 3, True)
    rows = np.load(path)
    fitted, held = (os.path.join(folder, n) for n in ("fitted.npy", "held.npy"))
    np.save(fitted, rows[:2000])
    np.save(held, rows[2000:])
    out = os.path.join(folder, "judged")
    words = ["--atoms", 40, "--top-s", 3, "--rounds", 3, "--codes", "signed"]
    done = fit(out, fitted, *words, "--holdout", held, "--sweeps", 3, "--tolerance", 0)
    ok(done.returncode == 0 and "all rows of --rows, which were fitted:" in done.stderr,
       f"exit {done.returncode} {done.stderr[-300:]}")
    _, history = atoms_of(out)
    code = os.path.join(folder, "held.h5")
    sagitta("encode", "--rows", held, "--dictionary", os.path.join(out, "dictionary.h5"),
        "--top-s", 3, "--rounds", 3, "--output", code)
    with h5py.File(code) as f:
        said = f["metrics"].attrs["explained_variance"]
    ok(said == history[-1, 2] == np.max(history[:, 2]), f"{said} and {history[-1, 2]}")
    for words_, reason, sweeps in ((["--tolerance", 1], "below --tolerance", 5),
                                   (["--sweeps", 2], "that is --sweeps", 2),
                                   (["--max-seconds", 1e-6], "exceed --max-seconds", 0)):
        done = fit(out, fitted, *words, *words_, "--force")
        ok(done.returncode == 0 and reason in done.stderr and f" sweeps={sweeps} " in done.stderr,
           f"{words_}: exit {done.returncode} {done.stderr[-400:]}")


@claim("with parts, a fit ends after whole passes over the rows")
def check_passes(folder):
    path, _ = planted(folder, "passes", 1000, 40, 20, 3, False)
    out = os.path.join(folder, "passes")
    ends = set()
    for rows, parts, gain in (1000, 1, 1), (400, 3, 1), (400, 3, 0.05), (150, 7, 0.05):
        done = fit(out, path, "--atoms", 40, "--top-s", 3, "--holdout-share", 0, "--update",
                   "joint", "--minibatch", rows, "--tolerance", gain, "--sweeps", 20, "--force")
        if not ok(done.returncode == 0, f"exit {done.returncode} {done.stderr[-300:]}"):
            continue
        worth = np.maximum.accumulate(atoms_of(out)[1][:, 1])
        ended = len(worth) - 1
        gains = {n: worth[n] - worth[n - 5 * parts] for n in range(5 * parts, ended + 1, parts)}
        ok(ended % parts == 0 and ended >= 5 * parts and "passes over the rows" in done.stderr and
           [n for n in gains if gains[n] < gain] == [ended],
           f"{parts} parts, tolerance {gain}: {ended} sweeps, {gains}")
        ends.add(ended // parts)
    ok(len(ends) > 1 and 20 not in ends, f"passes {ends}")


@claim("the remaining time in a line counts the sweeps to come and the codes of all rows")
def check_left(folder):
    path, _ = planted(folder, "left", 1500, 40, 20, 3, False)
    held = os.path.join(folder, "left-held.npy")
    np.save(held, np.load(path)[:300])
    rows = os.path.join(folder, "left-rows.npy")
    np.save(rows, np.tile(np.load(path)[300:], (40, 1)) * np.linspace(1, 2, 48000)[:, None])
    for words, passes, parts in (([], 3, 1), (["--minibatch", 17000], 2, 3)):
        done = fit(os.path.join(folder, "left"), rows, "--holdout", held, "--atoms", 40, "--top-s",
                   3, "--sweeps", passes, "--tolerance", 0, "--force", *words)
        lines = re.findall(r"sweep +(\d+): .* (\d+) rows/s, at most (\d+\.\d) s left", done.stderr)
        if not ok(len(lines) == passes * parts, f"exit {done.returncode} {done.stderr[-300:]}"):
            continue
        for sweep, pace, left in lines:
            coded = (passes - int(sweep) / parts) * 48000 + 48000  # rows
            ok(float(left) + 0.05 >= coded / (int(pace) + 1),
               f"{words}, sweep {sweep}: {left} s at {pace} rows/s for {coded:.0f} rows")
        end = re.findall(r"\[ *([0-9.]+)\] (?:sweep|wrote)", done.stderr)
        took = float(end[-1]) - float(end[len(lines)])
        print(f"# {words}: {lines[-1][2]} s were said to be left, it took {took:.2f}")


@claim("refit --holdout gives encode's figures, and is resumed only with the same rows")
def check_refit(folder):
    at = lambda name: os.path.join(folder, "refit", name)
    sagitta("synth", "--n-rows", 500, "--atoms", 16, "--columns", 12, "--top-s", 3,
            "--start-cosine", 0.8, "--noise", 0.1, "--output", at("."))
    with h5py.File(at("rows.h5")) as f:
        held = f["rows"][:90]
    np.save(at("held.npy"), held)
    np.save(at("other.npy"), held[::-1])
    np.save(at("narrow.npy"), held[:, :5])
    np.save(at("equal.npy"), np.ones_like(held))
    sagitta("encode", "--rows", at("rows.h5"), "--dictionary", at("start.h5"), "--top-s", 3,
            "--rounds", 3, "--output", at("codes"))
    words = ["refit", "--rows", at("rows.h5"), "--dictionary", at("start.h5"), "--supports",
             at("codes"), "--reroute"]
    for out, sweeps, more in ("one", 2, []), ("two", 1, []), ("two", 2, ["--resume"]):
        done = sagitta(*words, "--holdout", at("held.npy"), "--sweeps", sweeps, "--output", at(out),
                       *more, ranks=2 if more else 0)
        ok(done.returncode == 0, f"{out}: exit {done.returncode} {done.stderr[-300:]}")
    done = sagitta("diff", at("one"), at("two"))
    ok(done.returncode == 0, f"resumed: {done.stdout[-300:]}")
    sagitta("encode", "--rows", at("held.npy"), "--dictionary", at("one"), "--top-s", 3,
            "--rounds", 3, "--output", at("unseen"))
    with h5py.File(at("unseen/supports.h5")) as f:
        said = f["metrics"].attrs["explained_variance"]
    history = atoms_of(at("one"))[1]
    ok(said == history[-1, 2] and np.isfinite(history[:, 2]).all(), f"{said} {history[:, 2]}")
    for name, text in (("other", "judged by other held-out rows"), ("narrow", "has 5 columns")):
        done = sagitta(*words, "--holdout", at(name + ".npy"), "--sweeps", 3, "--output", at("one"),
                       "--resume")
        ok(done.returncode == 65 and text in done.stderr, f"{name}: {done.stderr[-300:]}")
    done = sagitta(*words, "--holdout", at("rows.h5"), "--output", at("fitted"))
    ok(done.returncode == 2 and "are not unseen" in done.stderr, f"fitted: {done.stderr[-300:]}")
    done = sagitta(*words, "--holdout", at("equal.npy"), "--output", at("equal"))
    ok(done.returncode == 65 and "do not vary" in done.stderr, f"equal: {done.stderr[-300:]}")


@claim("rows and options that cannot be fitted are refused")
def check_refused(folder):
    random = np.random.default_rng(7)
    rows, path = random.standard_normal((300, 5)).astype("f4"), os.path.join(folder, "bad.npy")

    def rows_save(name, values):
        np.save(os.path.join(folder, name + ".npy"), values.astype("f4"))
        return os.path.join(folder, name + ".npy")

    other = rows_save("other", rows[:, :4])
    nan = rows.copy()
    nan[270, 2] = np.nan
    cases = (
        ("fewer rows than atoms", rows[:20], ["--holdout-share", 0], 65, "20 rows"),
        ("fewer distinct rows than atoms", np.tile(rows[:20], (15, 1)), ["--holdout-share", 0], 65,
         "280 repeat a row"),
        ("the same, some of them held out", np.tile(rows[:20], (50, 1)), [], 65,
         "gives 20 of 30 atoms"),
        ("all rows equal", np.tile(rows[:1], (300, 1)), [], 65, "gives 0 of 30 atoms"),
        ("all rows equal, not centred", np.tile(rows[:1], (300, 1)), ["--uncentered"], 65,
         "gives 1 of 30 atoms"),
        ("all rows zero", 0 * rows, ["--uncentered", "--holdout-share", 0], 65, "300 are zero"),
        ("all is to be held out", rows, ["--holdout-share", 1], 2, "not in 0 .. 0.9"),
        ("so much is held out that too little is left", rows[:270], ["--holdout-share", 0.9], 65,
         "too few for 30 atoms; lower --atoms or give more rows"),
        ("everything held out", rows[:128], [], 65, "too few to hold out"),
        ("no rows", rows[:0], [], 65, "has no rows"),
        ("fitted rows held out", rows, ["--holdout", path], 2, "are not unseen"),
        ("held-out rows of other columns", rows, ["--holdout", other], 65, "has 4 columns"),
        ("no held-out rows", rows, ["--holdout", rows_save("none", rows[:0])], 65, "has no rows"),
        ("one held-out row", rows, ["--holdout", rows_save("one", rows[:1])], 65, "do not vary"),
        ("held-out rows all equal", rows, ["--holdout", rows_save("equal", np.ones((40, 5)))], 65,
         "do not vary"),
        ("a value that is not a number", nan, [], 65, "row 270"),
    )
    for name, values, words, code, text in cases:
        np.save(path, values)
        done = sagitta("fit", "--rows", path, "--atoms", 30, "--top-s", 2, "--output",
                       os.path.join(folder, "bad"), *words)
        ok(done.returncode == code and text in done.stderr and
           not os.path.exists(os.path.join(folder, "bad", "dictionary.h5")),
           f"{name}: exit {done.returncode} {done.stderr[-300:]}")
    done = sagitta("fit", "--rows", path, "--atoms", 30, "--output", os.path.join(folder, "x.h5"))
    ok(done.returncode == 2 and "the results are a folder" in done.stderr,
       f"one file: {done.stderr[-300:]}")
    flat = rows.copy()
    flat[:, 3] = 2  # a column that never varies is allowed
    np.save(path, flat)
    for words in ([], ["--uncentered"], ["--update", "atoms"], ["--codes", "signed"]):
        out = os.path.join(folder, "flat" + "".join(map(str, words)))
        done = fit(out, path, "--atoms", 20, "--top-s", 2, "--sweeps", 2, *words)
        if ok(done.returncode == 0, f"a constant column, {words}: {done.stderr[-300:]}"):
            atoms, history = atoms_of(out)
            ok(np.isfinite(history[:, :3]).all() and (len(words) == 1 and "--un" in words[0] or
               (abs(atoms[:, 3]) < 1e-6).all()), f"no atom has it, {words}: {atoms[:, 3]}")


@claim("fitted rows that do not vary cannot judge a fit, and are refused; a part of such rows is "
       "skipped")
def check_constant(folder):
    for last, words in ((0, []), (64, ["--minibatch", 64]), (127, ["--minibatch", 127])):
        path = os.path.join(folder, "constant.npy")
        rows = np.ones((128, 4), "f4")
        rows[:last] = np.random.default_rng(9).standard_normal((last, 4))
        np.save(path, rows)
        out = os.path.join(folder, f"constant{last}")
        done = fit(out, path, "--atoms", 1, "--top-s", 1, "--holdout-share", 0, "--uncentered",
                   "--sweeps", 2, *words)
        if not last:
            ok(done.returncode == 65 and "fitted rows" in done.stderr and
               "do not vary" in done.stderr, f"exit {done.returncode} {done.stderr[-300:]}")
        elif ok(done.returncode == 0, f"{last}: exit {done.returncode} {done.stderr[-300:]}"):
            fitted = atoms_of(out)[1][:, 1]
            best = int(re.search(r"the best is sweep (\d+)", done.stderr)[1])
            ok(np.isnan(fitted).sum() > 1 and best == np.nanargmax(fitted), f"{best} of {fitted}")


@claim("more atoms than rows are refused on every rank before memory for them is allocated")
def check_atoms_first(folder):
    if SANITIZED:
        skip("sanitizers reserve terabytes of addresses, which a limit would not allow")
        return
    path, out = os.path.join(folder, "few.npy"), os.path.join(folder, "few")
    np.save(path, np.random.default_rng(8).standard_normal((300, 16)).astype("f4"))
    limit = 1 << 30  # of address space; 30,000,000 atoms of 16 columns have 1.9 GB
    for atoms, words, ranks in ((30000000, [], 0), (30000000, [], 2), (250, ["--seed", 1], 0)):
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
        try:
            done = fit(out, path, "--atoms", atoms, "--top-s", 3, *words, ranks=ranks)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
        ok(done.returncode == 65 and f"too few for {atoms} atoms" in done.stderr and
           not os.path.exists(out),
           f"{atoms} atoms, {ranks} ranks: exit {done.returncode} {done.stderr[-300:]}")


@claim("options that the update does not use are refused, or named if auto chose the update")
def check_unread(folder):
    path, _ = planted(folder, "unread", 400, 12, 8, 3, True)
    words = ["--atoms", 12, "--top-s", 3, "--sweeps", 1, "--force"]
    for update, option, code in (("joint", "directions", 2), ("conjugate", "directions", 2),
                                 ("atoms", "passes", 2), ("auto", "directions", 0),
                                 ("joint", "passes", 0), ("atoms", "directions", 0)):
        for more in ([], ["--dry-run"]):
            done = fit(os.path.join(folder, "unread"), path, *words, "--update", update,
                       f"--{option}", 2, *more)
            told = f"'--{option}' does" in done.stderr
            ok(done.returncode == code and (told == (code == 2 or update == "auto") or more),
               f"--update {update} --{option} {more}: {done.returncode} {done.stderr[-300:]}")


@claim("without a GPU fit --device cuda is refused, and --device auto takes the CPU")
def check_device(folder):
    path, _ = planted(folder, "device", 1500, 24, 20, 3, True)
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    words = ["--atoms", 24, "--top-s", 3, "--sweeps", 1]
    for device, code in ("cpu", 0), ("auto", 0), ("cuda", 69):
        out = os.path.join(folder, "device-" + device)
        done = fit(out, path, *words, "--device", device)
        made = os.path.exists(os.path.join(out, "dictionary.h5"))
        ok(done.returncode == code and made == (code == 0),
           f"--device {device}: exit {done.returncode}, {made}, {done.stderr[-300:]}")
    same = sagitta("diff", os.path.join(folder, "device-cpu"), os.path.join(folder, "device-auto"))
    ok(same.returncode == 0, f"auto differs: {same.stdout[-200:]}")
    del os.environ["CUDA_VISIBLE_DEVICES"]
    if seen is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = seen


def main():
    with tempfile.TemporaryDirectory() as folder:
        for codes in "signed", "nonnegative":
            check_planted(folder, codes)
        check_partition(folder)
        check_relaxation(folder)
        check_unseen(folder)
        check_judge(folder)
        check_passes(folder)
        check_left(folder)
        check_refit(folder)
        check_refused(folder)
        check_unread(folder)
        check_device(folder)
        check_constant(folder)
        check_atoms_first(folder)
    done_testing()


main()
