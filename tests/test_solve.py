# SPDX-License-Identifier: BSD-3-Clause
"""Claim: solve gives the same bits for any ranks, batches, threads, variants and neighbouring
systems.  A system that fails changes no other.  synth --systems makes the same bits on any number
of ranks, with the shares of each kind that its options give."""
import os
import re
import tempfile

import h5py
import numpy as np

from arrow_files import System, random_system, solutions, write
from tap import claim, done_testing, ok, sagitta, skip


def told(done):
    """Print the messages of a run if it failed."""
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
    return done


def solve(folder, name, systems, *words, ranks=0):
    place = os.path.join(folder, name)
    told(sagitta("solve", "--systems", systems, "--output", place, *words, ranks=ranks))
    return os.path.join(place, "solutions.h5")


def same(a, b):
    return sagitta("diff", a, b).returncode == 0


def synth(folder, name, *words, ranks=0):
    done = told(sagitta("synth", "--output", os.path.join(folder, name), *words, ranks=ranks))
    return os.path.join(folder, name, "systems.h5"), done.stderr


@claim("ranks, batches and variants change no bit")
def check_cuts(folder):
    words = ("--systems", 400, "--system-rows", 30, "--lengths", "power", "--frame", 8, "--border",
             24, "--mixed", "--indefinite", 0.2, "--ill", 0.1)
    systems, log = synth(folder, "made", *words)
    for ranks in (2, 3, 5):
        again, other = synth(folder, f"made{ranks}", *words, ranks=ranks)
        ok(same(systems, again) and log.split("fingerprint=")[1][:16] ==
           other.split("fingerprint=")[1][:16], f"synth on {ranks} ranks: the same bits")
    for label, options in (("plain", ()), ("escalated", ("--escalate", "--ridge-t", "1e-9"))):
        first = solve(folder, label, systems, "--threads", 1, *options)
        for ranks, batch in ((1, 500), (2, 0), (3, 5000), (5, 1)):
            other = solve(folder, f"{label}{ranks}", systems, "--batch", batch, *options,
                          ranks=ranks)
            ok(same(first, other), f"{label}: {ranks} ranks, batches of {batch} rows")
    first = os.path.join(folder, "plain", "solutions.h5")
    for variant in ("baseline", "avx2", "avx512"):
        done = sagitta("solve", "--systems", systems, "--output", os.path.join(folder, variant),
                       "--cpu-variant", variant, "--threads", 3)
        if done.returncode == 69:
            skip(f"this processor has no {variant}")
        else:
            ok(same(first, os.path.join(folder, variant, "solutions.h5")), f"the same by {variant}")


@claim("synth makes the requested shares of bad systems, and solve finds these systems")
def check_shares(folder):
    systems, log = synth(folder, "shares", "--systems", 2000, "--system-rows", 8, "--border", 3,
                         "--indefinite", 0.3, "--ill", 0.2, "--lengths", "uniform")
    wanted, ill = map(int, re.search(r"indefinite=(\d+) ill=(\d+)", log).groups())
    ok(500 < wanted < 700 and 320 < ill < 480, f"{wanted} indefinite, {ill} ill of 2000")
    with h5py.File(solve(folder, "found", systems)) as f:
        status = f["solutions/status"][...]
        failed = int((status != 0).sum())
        ok(failed == wanted and {1, 2} <= set(status), f"solve finds {failed} indefinite ones")
        ok(np.isnan(f["solutions/log_det_hessian"][...][status != 0]).all(),
           "their log-determinants are NaN")
    with h5py.File(systems) as f:
        n = np.diff(f["systems/atom_offsets"][...])
        ok(n.min() == 0 and n.max() == 16 and 7 < n.mean() < 9, "lengths are uniform")


@claim("the solution of a system does not depend on other systems in the file, nor on their "
       "failures")
def check_neighbours(folder):
    """Order, neighbours and their failures change nothing in a system."""
    random = np.random.default_rng(1)
    systems = [random_system(random, d, k, n) for d, k, n in
               ((1, 0, 1), (2, 32, 40), (8, 3, 33), (3, 5, 0), (2, 5, 257), (1, 1, 1), (4, 0, 7))]
    bad = [random_system(random, 2, 4, 50) for _ in range(3)]
    bad[0].h[17] = -np.eye(2)
    bad[1].c[3, 3] = -1
    bad[2].g[5, 1] = np.nan
    path = os.path.join(folder, "n.h5")
    alone = []
    for i, s in enumerate(systems):
        write(path, [s])
        alone += solutions(solve(folder, "alone", path, "--force"), [s])
    mixed = [systems[0], bad[0], *systems[1:4], bad[1], *systems[4:], bad[2]][::-1]
    write(path, mixed, atoms=np.arange(len(mixed), dtype="i4")[::-1] * 7)
    found = solutions(solve(folder, "mixed", path, "--force", ranks=3), mixed)
    by = {id(s): one for s, one in zip(mixed, found)}
    equal = all(by[id(s)][name].tobytes() == one[name].tobytes()
                for s, one in zip(systems, alone) for name in one)
    ok(equal, "alone, or among others in another order: the same bits")
    outcome = [(int(by[id(s)]["status"]), int(by[id(s)]["failed_at"])) for s in bad]
    ok(outcome == [(1, 17), (2, 3), (3, 50 * 4 + 50 * 8 + 11)],
       f"bad neighbours are named: {outcome}")
    zero = all((by[id(s)]["t"] == 0).all() and not np.signbit(by[id(s)]["t"]).any() for s in bad)
    ok(zero and by[id(bad[0])]["suggested_bump"] > 1, "their steps are +0, a bump is suggested")


@claim("ridges grow as (N.14) and (N.15) say, computed in plain arithmetic")
def check_escalation(folder):
    """(N.14) and (N.15) in plain arithmetic."""
    h = np.array([[[1.0, 3.0], [3.0, 2.0]]])
    s = System(h, np.zeros((1, 2, 0)), np.ones((1, 2)), np.zeros((0, 0)), np.zeros(0))
    flat = System(np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)), np.zeros((1, 1)),
                  np.ones(1))
    path = os.path.join(folder, "e.h5")
    write(path, [s, flat])
    one, two = solutions(solve(folder, "e", path, "--force"), [s, flat])
    bump = 2 + 1024 * 2.0**-26 * 5
    ok(one["suggested_bump"] == bump and one["retries"] == 0, f"bump {one['suggested_bump']}")
    ok(two["status"] == 2 and two["suggested_bump"] == 1 + 1e-3,
       "C = 0: deficit 1, and its unit is that of B' B / H")
    one, two = solutions(solve(folder, "e", path, "--force", "--escalate", "--ridge-t", 0.25),
                         [s, flat])
    first = 1.75 + 1024 * 2.0**-26 * 5.25
    ok(one["status"] == 0 and one["retries"] == 1 and one["ridge_t"] == 0.25 + first
       and one["ridge_beta"] == first / 2, f"mended by {one['ridge_t']} in {one['retries']} try")
    a = h[0] + one["ridge_t"] * np.eye(2)
    ok(np.allclose(one["t"][0], -np.linalg.solve(a, np.ones(2)), rtol=1e-13),
       "the steps are those of the larger ridge")


def units(s):
    """The units of rows and border, (N.14)."""
    h, c = (abs(np.einsum("...ii->...i", x)).max(initial=0) for x in (s.h, s.c))
    b = abs(s.b).max(initial=0)
    h = h or (b * b / c if c else 0) or 1.0
    return h, c or b * b / h or 1.0


def escalated(s):
    """(retries, ridges, steps) by (N.14) and (N.15), in plain arithmetic."""
    unit, ridges = units(s), None
    for retries in range(23):
        now = s.ridged(*(ridges or (0, 0)))
        bad = [i for i in range(s.n) if np.linalg.eigvalsh(now.h[i])[0] <= 0]
        schur = None if bad else now.c - sum(b.T @ np.linalg.solve(h, b)
                                             for h, b in zip(now.h, now.b))
        if not bad and np.linalg.eigvalsh(schur)[0] > 0:
            return retries, ridges, np.linalg.solve(*now.dense())
        a = now.h[bad[0]] if bad else schur
        off = abs(a).sum(1) - abs(np.diag(a))
        bump = max(0, -(np.diag(a) - off).min())
        bump += 2.0**-16 * max(unit[0], abs(a).sum(1).max()) if bad else 1e-3 * unit[1]
        first = (bump, bump / unit[0] * unit[1]) if bad else (bump / unit[1] * unit[0], bump)
        ridges = tuple(10 * r for r in ridges) if ridges else first
    return None


def failing_systems():
    """Systems whose rows or borders are not positive definite, slightly or strongly; C = 0; H =
    0."""
    random = np.random.default_rng(14)
    systems = []
    for i in range(24):
        d, k, n = 1 + i % 3, 1 + i % 5, (1, 7, 40)[i % 3]
        s = random_system(random, d, k, n)
        if i % 4 == 0:
            s.h[n // 2] -= random.uniform(1, 4) * abs(s.h[n // 2]).sum() * np.eye(d)
        elif i % 4 == 1:
            s.c -= random.uniform(1, 4) * np.diag(s.c).max() * np.eye(k)
        elif i % 4 == 2:
            s.c *= 0 if i % 8 == 2 else 1e-6
        else:
            s.h *= 0 if i % 8 == 3 else -1
        systems.append(s)
    return systems


def in_units(s, t, b):
    """The system whose steps are 2^t and 2^b times as large as those of s."""
    t, b = 2.0**-t, 2.0**-b
    return System(s.h * t * t, s.b * t * b, s.g * t, s.c * b * b, s.g_b * b)


@claim("each ridge has the unit of its own block")
def check_units(folder):
    systems, path, wanted = failing_systems(), os.path.join(folder, "u.h5"), None
    for t, b in ((0, 0), (0, -8), (3, 0), (-40, 25), (11, 130), (-90, -90)):
        scaled = [in_units(s, t, b) for s in systems]
        write(path, scaled)
        found = solutions(solve(folder, "u", path, "--force", "--escalate"), scaled)
        back = [(one["status"], one["retries"], one["ridge_t"] * 4.0**t,
                 one["ridge_beta"] * 4.0**b, (one["t"] * 2.0**-t).tobytes(),
                 (one["b"] * 2.0**-b).tobytes()) for one in found]
        wanted = wanted or back
        ok(back == wanted, f"rows in units of 2^{t}, borders of 2^{b}: the same steps, to the bit")
    ok(all(one[0] == 0 and one[1] > 0 for one in wanted),
       f"all needed ridges: {[int(one[1]) for one in wanted]} retries")
    worst = 0
    for s, one in zip(systems, wanted):
        retries, ridges, x = escalated(s)
        ridges = ridges or (0, 0)
        t, b = (np.frombuffer(step) for step in one[4:])
        worst = max(worst, abs(np.concatenate([t, b]) - x).max() / abs(x).max(),
                    *(abs(r / one[2 + i] - 1) for i, r in enumerate(ridges)))
        ok(retries == one[1], f"{retries} retries, {one[1]} made")
    ok(worst < 1e-9, f"ridges and steps are NumPy's, to {worst:.1e}")


@claim("--strict ends with 1 if a system failed")
def check_strict(folder):
    random = np.random.default_rng(2)
    systems = [random_system(random, 2, 3, 9) for _ in range(3)]
    systems[1].h[4] = 0
    path, place = os.path.join(folder, "s.h5"), os.path.join(folder, "strict")
    write(path, systems)
    done = sagitta("solve", "--systems", path, "--output", place, ranks=2)
    ok(done.returncode == 0 and re.search(r"row not positive definite +1, first system 1 at row 4",
                                          done.stderr), "a failure is counted, and exit 0")
    done = sagitta("solve", "--systems", path, "--output", place, "--strict", "--force", ranks=2)
    ok(done.returncode == 1 and "1 of 3 systems failed" in done.stderr
       and sagitta("verify", place + "/solutions.h5").returncode == 0,
       "--strict: exit 1, with a result")
    systems[2].b[1, 1, 2] = np.inf
    write(path, systems)
    done = sagitta("solve", "--systems", path, "--output", place + "2", "--strict", ranks=2)
    ok(done.returncode == 65 and "system 2 of" in done.stderr
       and not os.path.exists(place + "2/solutions.h5"),
       "--strict: a value that is not finite is refused")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_cuts(folder)
        check_shares(folder)
        check_neighbours(folder)
        check_escalation(folder)
        check_units(folder)
        check_strict(folder)
    done_testing()


main()
