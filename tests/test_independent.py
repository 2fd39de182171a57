# SPDX-License-Identifier: BSD-3-Clause
"""Claim: on real rows the supports are those of a float32 loop in NumPy, the codes those of SciPy's
solver, and the metrics those of NumPy.  If --rounds equals --top-s, the supports are those of
orthogonal matching pursuit.  Nonnegative codes are those of SciPy's nnls."""
import os
import sys
import tempfile

import h5py
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

from tap import SOURCE, claim, done_testing, ok, peer_missing, sagitta

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
K, S, N = 1024, 16, 2048


def encode(folder, name, *words):
    out = os.path.join(folder, name)
    done = sagitta("encode", "--rows", os.path.join(folder, "rows.npy"), "--dictionary",
                   os.path.join(folder, "dictionary.h5"), "--top-s", S, "--output", out, *words)
    if done.returncode:
        print("#", done.stderr)
        sys.exit(1)
    with h5py.File(os.path.join(out, "supports.h5")) as f:
        group = f["supports"]
        take = {k: group[k][...].reshape(-1, S) for k in ("indices", "data", "score")}
        return take, dict(f["metrics"].attrs), f["metrics/density"][...]


def chain_scores(x, d):
    """(N.1): one float32 multiply and one float32 add per column, in ascending order."""
    z = np.zeros((len(x), len(d)), np.float32)
    for c in range(x.shape[1]):
        z += x[:, c : c + 1] * d[None, :, c]
    return z


@claim("supports and scores are NumPy's, bit for bit")
def check_route(x, d, got):
    z = chain_scores(x, d)
    order = np.argsort(-np.abs(z), axis=1, kind="stable")[:, :S]
    ok(np.array_equal(order, got["indices"]), f"supports of {len(x)} rows equal NumPy's")
    score = np.take_along_axis(z, order, 1)
    ok(np.array_equal(score.view(np.uint32), got["score"].view(np.uint32)),
        "scores have NumPy's bits")


def check_codes(x, d, got):
    worst, compared = 0.0, 0
    for i in range(len(x)):
        a = d[got["indices"][i]].astype(np.float64)
        gram = a @ a.T
        if np.linalg.cond(gram) > 1e6:
            continue
        codes = scipy.linalg.solve(gram, a @ x[i].astype(np.float64), assume_a="pos")
        worst = max(worst, np.max(np.abs(codes - got["data"][i])) / max(1, np.max(np.abs(codes))))
        compared += 1
    ok(compared > 0.9 * len(x) and worst <= 1e-6,
       f"codes of {compared} rows equal scipy's within {worst:.1e}")


@claim("metrics are NumPy's, each with its formula")
def check_metrics(x, d, got, metrics, density):
    codes = scipy.sparse.csr_matrix(
        (got["data"].ravel(), got["indices"].ravel(), np.arange(0, S * len(x) + 1, S)), (len(x), K))
    x, fit = x.astype(np.float64), codes.astype(np.float64) @ d.astype(np.float64)
    rss, tss = np.sum((x - fit) ** 2), np.sum((x - x.mean(0)) ** 2)
    cosine = np.sum(x * fit, 1) / np.linalg.norm(x, axis=1) / np.linalg.norm(fit, axis=1)
    fires = np.bincount(got["indices"].ravel(), minlength=K)
    gram = chain_scores(d, d)
    np.fill_diagonal(gram, 0)
    want = {
        "explained_variance": 1 - rss / tss,
        "fvu": rss / tss,
        "mean_squared_error": rss / x.size,
        "mean_cosine": cosine.mean(),
        "l0": np.mean(np.sum(got["data"] != 0, 1)),
        "negative_codes": np.mean(got["data"] < 0),
        "zero_codes": np.mean(got["data"] == 0),
        "dead_atoms": np.sum(fires == 0),
        "density_above_1pct": np.mean(fires > 0.01 * len(x)),
        "density_above_10pct": np.mean(fires > 0.1 * len(x)),
        "max_decoder_cosine": np.max(np.abs(gram)),
    }
    for name, value in want.items():
        ok(abs(metrics[name] - value) <= 1e-9 * max(1, abs(value)),
           f"{name} = {metrics[name]:.6g} equals NumPy's")
        ok(isinstance(metrics[name + "_formula"], str), f"{name} brings its formula")
    ok(np.array_equal(density, fires), "the density counts the codes of each atom")


@claim("nonnegative codes are scipy's nnls, and meet the conditions of Karush, Kuhn and Tucker")
def check_nonnegative(x, d, got, metrics):
    worst, slope, compared = 0.0, 0.0, 0
    for i in range(len(x)):
        a, b = d[got["indices"][i]].astype(np.float64), x[i].astype(np.float64)
        codes = got["data"][i].astype(np.float64)
        left = a @ (b - codes @ a)  # the slope of the objective; it is 0 if a code is positive
        scale = np.linalg.norm(b)
        slope = max(slope, np.max(np.where(codes > 0, np.abs(left), left)) / scale)
        if np.linalg.cond(a @ a.T) < 1e6:
            worst = max(worst, np.max(np.abs(codes - scipy.optimize.nnls(a.T, b)[0])) / scale)
            compared += 1
    ok(compared > 0.9 * len(x) and worst <= 1e-6,
       f"codes of {compared} rows equal scipy's within {worst:.1e}")
    ok(slope <= 1e-6, f"no code of any row could do better: slopes up to {slope:.1e}")
    zeros = np.mean(got["data"] == 0)
    ok(got["data"].min() == 0 and 0 < zeros == metrics["zero_codes"],
       f"none is negative, {zeros:.4f} are 0")
    z = np.maximum(chain_scores(x, d), 0)
    order = np.argsort(-z, axis=1, kind="stable")[:, : S // 4]
    ok(np.array_equal(order, got["indices"][:, : S // 4]),
       "the first round takes the largest positive scores")


def pursuit(x, d, gap):
    """Orthogonal matching pursuit in float64.  None if the two best scores of a step differ by less
    than a share `gap`."""
    chosen, residual = [], x
    for _ in range(S):
        score = np.abs(d @ residual)
        score[chosen] = -1
        best, second = np.argsort(-score)[:2]
        if score[best] - score[second] < gap * score[best]:
            return None
        chosen.append(best)
        codes = np.linalg.lstsq(d[chosen].T, x, rcond=None)[0]
        residual = x - codes @ d[chosen]
    return chosen


@claim("rounds = top-s is orthogonal matching pursuit")
def check_pursuit(x, d, got):
    wide, compared, equal = d.astype(np.float64), 0, 0
    for i in range(len(x)):
        chosen = pursuit(x[i].astype(np.float64), wide, 1e-5)
        compared += chosen is not None
        equal += chosen is not None and list(got["indices"][i]) == chosen
    ok(compared > 0.9 * len(x) and equal == compared,
       f"{equal} of {compared} rows follow orthogonal matching pursuit step by step")
    try:
        from sklearn.linear_model import orthogonal_mp
    except ImportError:
        peer_missing("scikit-learn is not installed")
        return
    codes = orthogonal_mp(wide.T, x.T.astype(np.float64), n_nonzero_coefs=S).T
    same = [set(np.flatnonzero(c)) == set(g) for c, g in zip(codes, got["indices"])]
    ok(np.mean(same) > 0.97,
        f"scikit-learn chose the same atoms in {np.mean(same):.1%} of the rows")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(ROWS) as f:
            raw = f["rows"][:N]
        np.save(os.path.join(folder, "rows.npy"), raw)
        done = sagitta("seed", "--rows", os.path.join(folder, "rows.npy"), "--atoms", K, "--center",
                       "--output", os.path.join(folder, "dictionary.h5"))
        ok(done.returncode == 0, f"seed exits {done.returncode}")
        with h5py.File(os.path.join(folder, "dictionary.h5")) as f:
            d, mean = f["atoms"][...], f["mean"][...]
        x = (raw.astype(np.float64) - mean).astype(np.float32)
        got, metrics, density = encode(folder, "one")
        check_route(x, d, got)
        check_codes(x, d, got)
        check_metrics(x, d, got, metrics, density)
        four, metrics_four, _ = encode(folder, "four", "--rounds", 4)
        check_codes(x, d, four)
        ok(metrics_four["explained_variance"] > metrics["explained_variance"] + 0.03,
           f"four rounds explain {metrics_four['explained_variance']:.3f}, "
           f"one {metrics['explained_variance']:.3f}")
        all_rounds, _, _ = encode(folder, "all", "--rounds", S)
        check_pursuit(x[:300], d, {k: v[:300] for k, v in all_rounds.items()})
        check_nonnegative(x, d, *encode(folder, "nonnegative", "--rounds", 4, "--codes",
                                        "nonnegative")[:2])
    done_testing()


main()
