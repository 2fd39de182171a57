# SPDX-License-Identifier: BSD-3-Clause
"""Claim: NumPy finds that solutions solve their systems: componentwise backward errors are a few
roundings for every d and k, with n from 0 to 65,537, also for ill-conditioned systems.  Ridges are
added once.  Log-determinants are those of LAPACK.  For ill-conditioned systems the errors against
60 digits are at most about ten times those of LAPACK."""
import os
import tempfile
from fractions import Fraction

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from arrow_files import System, backward_error, log_det, moved, random_system, solutions, write
from tap import claim, done_testing, ok, peer_missing, sagitta

# The bound of the componentwise error, in roundings.  A row has up to d + k = 48 terms, or n terms
# in 32 lanes, and its error grows like the root of their number.  The largest error that was seen
# is 5 roundings.  Steps that are wrong by 1e-12 have thousands.
MAX_BACKWARD = 32 * 2.0**-53
ROWS = (0, 1, 2, 31, 32, 33, 1000)
LONG = ((1, 4, 65535), (2, 8, 65536), (3, 2, 65537), (2, 0, 65537))


def solve(folder, systems, *words):
    path = os.path.join(folder, "systems.h5")
    write(path, systems)
    done = sagitta("solve", "--systems", path, "--output", folder, "--force", *words)
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
    return solutions(os.path.join(folder, "solutions.h5"), systems)


def log_det_error(s, one):
    """The error relative to what numerics.md section 9 allows."""
    want = log_det(s)
    allowed = 1e-13 * max(1, abs(want)) + 2.0**-52 * (s.n * s.d + s.k)
    return abs(one["log_det_hessian"] - want) / allowed


def backward_check(text, pairs):
    """pairs: (system, solution).  The bound must hold, and steps that are changed slightly must
    break it."""
    random = np.random.default_rng(6)
    pairs = [(s, one) for s, one in pairs if s.n + s.k]
    worst = max(backward_error(s, one["t"], one["b"]) for s, one in pairs)
    least = min(backward_error(s, moved(random, one["t"]), moved(random, one["b"]))
                for s, one in pairs)
    ok(worst <= MAX_BACKWARD, f"{text}: componentwise backward errors up to {worst:.1e}")
    ok(least > 10 * MAX_BACKWARD, f"{text}: steps off by 1e-12 have {least:.1e} or more")


def check(folder, text, systems, words=(), ridges=(0, 0)):
    found = solve(folder, systems, *words)
    ridged = [s.ridged(*ridges) for s in systems]
    ok(all(one["status"] == 0 for one in found), f"{text}: all are solved")
    backward_check(text, list(zip(ridged, found)))
    worst = max(log_det_error(s, one) for s, one in zip(ridged, found))
    ok(worst <= 1, f"{text}: log-determinants, {worst:.2f} of what is allowed")


@claim("backward errors are small and log-determinants right, for systems of many shapes")
def check_sizes(folder):
    random = np.random.default_rng(1)
    for d in range(1, 9):
        systems = [random_system(random, d, k, ROWS[(k + 3 * d) % len(ROWS)]) for k in range(41)]
        check(folder, f"d = {d}, k = 0 .. 40", systems)
    check(folder, "long systems", [random_system(random, *shape) for shape in LONG])


@claim("each ridge is added to its matrix once")
def check_ridges(folder):
    random = np.random.default_rng(2)
    systems = [random_system(random, d, k, n) for d, k, n in
               ((2, 5, 40), (1, 32, 7), (5, 2, 33), (3, 0, 9), (2, 8, 0))]
    for t, b in ((0.5, 0), (0, 3), (1e6, 0), (1e-3, 1e4)):
        check(folder, f"ridges {t:g} and {b:g}", systems,
              ("--ridge-t", t, "--ridge-b", b), (t, b))


@claim("upper triangles are not read")
def check_triangles(folder):
    """Only lower triangles are read.  The upper ones may hold anything."""
    random = np.random.default_rng(3)
    whole = [random_system(random, d, k, 20) for d, k in ((2, 3), (4, 7), (8, 5))]
    torn = []
    for s in whole:
        h, c = s.h.copy(), s.c.copy()
        h[:, np.triu_indices(s.d, 1)[0], np.triu_indices(s.d, 1)[1]] = np.nan
        c[np.triu_indices(s.k, 1)] = np.inf
        torn.append(System(h, s.b, s.g, c, s.g_b))
    found = solve(folder, torn)
    backward_check("upper triangles are not read", list(zip(whole, found)))


def ill_system(random, d, k, n):
    """Diagonal blocks with condition number 1e12, couplings in their range, and a border that these
    nearly cancel."""
    r = random.standard_normal((n, d, 1))
    h = r @ r.transpose(0, 2, 1) + 1e-12 * np.eye(d)
    z = random.standard_normal((n, d, k))
    b = h @ z
    c = np.einsum("nik,nij->kj", z, b)
    c = (c + c.T) / 2 + 1e-6 * np.eye(k)
    return System(h, b, (h @ random.standard_normal((n, d, 1)))[..., 0], c,
                  random.standard_normal(k))


@claim("for ill-conditioned systems backward errors are small, too, and answers no worse than "
       "LAPACK's")
def check_ill(folder):
    random = np.random.default_rng(4)
    systems = [ill_system(random, d, k, n) for d, k, n in
               ((2, 3, 4), (3, 2, 5), (4, 4, 3), (8, 10, 200), (2, 32, 1000))]
    found = solve(folder, systems)
    backward_check("ill-conditioned systems", list(zip(systems, found)))
    try:
        import mpmath
    except ImportError:
        peer_missing("mpmath is not installed")
        return
    for s, one in zip(systems[:3], found):
        a, r = s.dense()
        mpmath.mp.dps = 60
        exact = mpmath.lu_solve(mpmath.matrix(a.tolist()), mpmath.matrix(r.tolist()))
        exact = np.array([float(x) for x in exact])
        x = np.concatenate([one["t"].ravel(), one["b"]])
        ours = np.linalg.norm(x - exact) / np.linalg.norm(exact)
        theirs = np.linalg.norm(cho_solve(cho_factor(a), r) - exact) / np.linalg.norm(exact)
        ok(one["status"] == 0 and ours <= 10 * theirs + 1e-15,
           f"condition {np.linalg.cond(a):.0e}: error {ours:.1e}, LAPACK's {theirs:.1e}")


def gap_system(random, d, k, n, gaps, h_least=1.0):
    """A border that becomes V diag(gaps) V' after elimination; without V if all gaps are equal."""
    r = random.standard_normal((n, d, d))
    h = r @ r.transpose(0, 2, 1) * (1 if h_least == 1 else 0) + h_least * np.eye(d)
    if h_least < 1:
        h += np.ones((d, d))
    b = random.standard_normal((n, d, k))
    v = np.linalg.qr(random.standard_normal((k, k)))[0]
    c = np.einsum("nik,nij->kj", b, np.linalg.solve(h, b)) + v * gaps @ v.T
    return System(h, b, random.standard_normal((n, d)), (c + c.T) / 2, random.standard_normal(k))


def exact_step(s):
    """The step by Gauss-Jordan elimination with rational numbers."""
    a, r = s.dense()
    m = [[Fraction(float(x)) for x in row] + [Fraction(float(y))] for row, y in zip(a, r)]
    for j in range(len(m)):
        m[j] = [x / m[j][j] for x in m[j]]
        for i in range(len(m)):
            if i != j and m[i][j]:
                m[i] = [x - m[i][j] * y for x, y in zip(m[i], m[j])]
    return np.array([float(row[-1]) for row in m])


def idle_system(random, gap):
    """The column that cancels has a step of 0, so only the logarithm loses digits."""
    s = gap_system(random, 1, 2, 6, [1, 1])
    s.b[:3, :, 1], s.b[3:, :, 0], s.g[3:], s.g_b[1] = 0, 0, 0, 0
    c = np.einsum("nik,nij->kj", s.b, s.b / s.h)
    return System(s.h, s.b, s.g, c + np.diag([1, gap]), s.g_b)


def turned_system(random, k, gap):
    """The direction that cancels is neither that of a column nor that of the step."""
    s = gap_system(random, 2, k, 7, np.ones(k))
    v = random.standard_normal(k)
    v /= np.linalg.norm(v)
    c = s.c - (1 - gap) * np.outer(v, v)
    return System(s.h, s.b, 0 * s.g, (c + c.T) / 2, s.g_b - v * (v @ s.g_b))


@claim("lost_bits counts cancellation in rows, border and other directions, and bounds the lost "
       "digits")
def check_lost(folder):
    random = np.random.default_rng(7)
    one = [1.0] * 3
    cases = [(gap_system(random, 2, 4, 5, [gap] * 4), -np.log2(gap)) for gap in
             (1, 1e-3, 1e-6, 1e-9, 1e-12)]
    cases += [(gap_system(random, 2, 4, 5, [*one, gap]), -np.log2(gap)) for gap in (1e-5, 1e-10)]
    cases += [(gap_system(random, 1, 10, 12, [*one, *one, *one, 1e-8]), -np.log2(1e-8)),
              (gap_system(random, 3, 2, 4, [1e11] * 2, h_least=1e-10), -np.log2(1e-10))]
    cases.append((idle_system(random, 1e-9), -np.log2(1e-9)))
    cases += [(turned_system(random, k, gap), -np.log2(gap)) for k in (3, 9) for gap in
              (1e-9, 1e-12)]
    found = solve(folder, [s for s, _ in cases])
    for (s, bits), got in zip(cases, found):
        want, have = exact_step(s), np.concatenate([got["t"].ravel(), got["b"]])
        error = np.linalg.norm(have - want) / np.linalg.norm(want)
        lost = int(got["lost_bits"])
        ok(bits - 5 <= lost <= bits + 14, f"{bits:.0f} bits or more cancel: {lost}")
        ok(error <= 2.0 ** (lost - 53 + 8), f"{lost} bits lost: an error of {error:.1e}")
    helped = solve(folder, [cases[4][0]], "--ridge-b", 1)[0]
    ok(helped["lost_bits"] < 12, f"with a ridge {helped['lost_bits']} are lost")


@claim("cancellation gives a warning; good or failed systems give none")
def check_warning(folder):
    random = np.random.default_rng(8)
    path, said = os.path.join(folder, "systems.h5"), "cancellation takes more than 26 of 53 bits"
    good, bad = random_system(random, 2, 3, 9), gap_system(random, 2, 3, 9, [1e-11] * 3)
    failing = random_system(random, 2, 3, 9)
    failing = System(failing.h, failing.b, failing.g, -failing.c, failing.g_b)
    for systems, wanted in (([good, good], None), ([good, failing], None),
                            ([good, bad, good], "of 1 of the systems")):
        write(path, systems)
        for ranks in 0, 2:
            done = sagitta("solve", "--systems", path, "--output", folder, "--force", "--batch", 9,
                           ranks=ranks)
            ok(done.returncode == 0 and (said in done.stderr) == bool(wanted)
               and (wanted or "") in done.stderr and (not wanted or "of system 1" in done.stderr),
               f"{ranks} ranks: {done.returncode} {done.stderr[-300:]}")
    ok(solve(folder, [failing])[0]["lost_bits"] == 0, "a failed system has no lost bits")


@claim("mantissa and exponent give the determinant")
def check_pairs(folder):
    """Mantissa and exponent give the determinant, also far beyond the range of doubles."""
    random = np.random.default_rng(5)
    systems = [random_system(random, 4, 3, 3000), random_system(random, 1, 2, 500)]
    for s, one in zip(systems, solve(folder, systems)):
        value = (np.longdouble(int(one["log_det_exponent"])) * np.log(np.longdouble(2))
                 + np.log(np.longdouble(one["log_det_mantissa"])))
        ok(abs(float(value) - one["log_det_hessian"]) <= 4e-16 * abs(one["log_det_hessian"]) + 1e-15
           and log_det_error(s, one) <= 1, f"log det {float(value):.6g} from its pair")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_sizes(folder)
        check_ridges(folder)
        check_triangles(folder)
        check_ill(folder)
        check_pairs(folder)
        check_lost(folder)
        check_warning(folder)
    done_testing()


main()
