# SPDX-License-Identifier: BSD-3-Clause
"""Claim: for each row and atom of supports, `sagitta attribute` finds the positions and heads that
NumPy finds, for every kind of attention and capture.  The bytes are the same on any number of
ranks.  The sum of all contributions is the routed score plus the share of the mean.  Inputs that do
not belong together are refused, and the message says what to give instead."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from jobs import cuda_run
from seal import reseal, wrong_seals
from tap import (FULL, SOURCE, claim, done_testing, fails, gpu_present, need, ok, sagitta, same)

SEQUENCES = [(5, 5), (130, 130), (1, 1), (0, 7), (64, 200), (40, 1200), (3, 2)]
H, H_KV, D, DV, K, S = 6, 2, 24, 20, 40, 4
RANDOM = np.random.default_rng(11)
# How far a contribution may be from NumPy's, relative to the largest one of the same row and atom;
# weights are float32.
CLOSE = 1e-5


def starts(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


Q_START, KV_START = (starts([s[i] for s in SEQUENCES]) for i in (0, 1))
Q = RANDOM.standard_normal((Q_START[-1], H, D)).astype(np.float32)
KEYS = RANDOM.standard_normal((KV_START[-1], H_KV, D)).astype(np.float32)
V = (0.3 + RANDOM.standard_normal((KV_START[-1], H_KV, DV))).astype(np.float32)
ATOMS = RANDOM.standard_normal((K, H * DV))
ATOMS = (ATOMS / np.linalg.norm(ATOMS, axis=1)[:, None]).astype(np.float32)


def capture(path, q=Q, k=KEYS, v=V, q_start=Q_START, kv_start=KV_START, **facts):
    with h5py.File(path, "w") as f:
        for name, values in dict(q=q, k=k, v=v, q_start=q_start, kv_start=kv_start).items():
            if values is not None:
                f[name] = values
        for name, value in {"causal": 1, **facts}.items():
            f.attrs[name] = value
    return path


def pool(path, size, **facts):
    """Write a capture with KEYS and V in a pool, in blocks in a random order.  Cells without a
    position are NaN."""
    needed = [-(-n // size) for _, n in SEQUENCES]
    order = iter(RANDOM.permutation(sum(needed) + 2))
    k, v = (np.full((sum(needed) + 2, size, H_KV, w), np.nan, np.float32) for w in (D, DV))
    table = np.full((len(SEQUENCES), max(needed)), -1, np.int32)
    for s, (_, n) in enumerate(SEQUENCES):
        for b in range(needed[s]):
            block = table[s, b] = next(order)
            part = slice(KV_START[s] + b * size, KV_START[s] + min((b + 1) * size, n))
            k[block, :part.stop - part.start] = KEYS[part]
            v[block, :part.stop - part.start] = V[part]
    with h5py.File(path, "w") as f:
        f["q"], f["q_start"], f["kv/k"], f["kv/v"], f["kv/table"] = Q, Q_START, k, v, table
        f["kv/length"] = np.array([n for _, n in SEQUENCES], np.int64)
        f.attrs["causal"] = 1
        for name, value in facts.items():
            f.attrs[name] = value
    return path


def weights(q, k, causal=1, window=0, scale=None, softcap=0):
    """The softmax of one sequence in float64: (queries, heads, positions); 0 for positions that are
    not seen."""
    n_q, n_kv = len(q), len(k)
    k = np.repeat(k.astype("f8"), H // H_KV, axis=1)
    s = np.einsum("ihd,jhd->ihj", q.astype("f8"), k) * (scale or D ** -0.5)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    at = np.arange(n_q)[:, None] + n_kv - n_q - np.arange(n_kv)[None]
    seen = np.ones((n_q, n_kv), bool)
    if causal:
        seen &= at >= 0
    if window:
        seen &= np.abs(at) < window
    s[~np.broadcast_to(seen[:, None], s.shape)] = -np.inf
    p = np.exp(s - np.max(s, axis=2, initial=-1e300)[..., None])
    total = p.sum(axis=2, keepdims=True)
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0)


def oracle(atoms, facts):
    """Yields for each row its sequence, and for each of its atoms contributions[position, head]."""
    for s in range(len(SEQUENCES)):
        mine, its = (slice(x[s], x[s + 1]) for x in (Q_START, KV_START))
        v = np.repeat(V[its].astype("f8"), H // H_KV, axis=1)
        for i, p in zip(range(mine.start, mine.stop), weights(Q[mine], KEYS[its], **facts)):
            d = ATOMS[atoms[i]].reshape(-1, H, DV).astype("f8")
            yield s, np.einsum("hj,jhc,ahc->ajh", p, v, d)


class Result:
    def __init__(self, path):
        with h5py.File(path) as f:
            g = f["attribution"]
            self.indptr, self.indices, self.data = (g[n][:] for n in ("indptr", "indices", "data"))
            self.sum, self.mean, self.sequence = (g[n][:] for n in ("sum", "mean", "sequence"))
            self.facts, self.inputs = dict(g.attrs), dict(f["inputs"].attrs)


class Place:
    def __init__(self, folder):
        self.folder = folder
        with h5py.File(self.at("dictionary.h5"), "w") as f:
            f["atoms"] = ATOMS

    def at(self, name):
        return os.path.join(self.folder, name)

    def encode(self, path, out, *words, s=S):
        need(sagitta("encode", "--capture", path, "--dictionary", self.at("dictionary.h5"),
                     "--top-s", s, "--output", self.at(out), "--force", *words), f"encode {words}")
        return self.at(out)

    def run(self, path, supports, out, *words, ranks=0, dictionary="dictionary.h5"):
        return sagitta("attribute", "--supports", supports, "--dictionary", self.at(dictionary),
                       "--capture", path, "--output", self.at(out), "--force", *words, ranks=ranks)

    def attribute(self, path, supports, out, *words, **more):
        need(self.run(path, supports, out, *words, **more), f"{out} {words} {more}")
        return self.at(out)


def codes_of(supports):
    with h5py.File(f"{supports}/supports.h5") as f:
        g = f["supports"]
        return g["indices"][:].reshape(len(Q), -1), g["score"][:].reshape(len(Q), -1)


def lists_check(p, facts, top, atoms, found, what):
    """The contributions of each row and atom must fall by magnitude, and differ from NumPy's for
    the same position and head by rounding only."""
    bad, pair = 0, 0
    for i, (s, all_of) in enumerate(oracle(atoms, facts)):
        bad += found.sequence[i] != s
        for a in range(atoms.shape[1]):
            part = slice(found.indptr[pair], found.indptr[pair + 1])
            column, value = found.indices[part], found.data[part]
            want = all_of[a].ravel()
            order = np.sort(np.abs(want[want != 0]))[::-1][:top]
            bound = CLOSE * max(np.abs(want).max(initial=0), 1e-3)
            bad += len(value) != len(order) or len(set(column)) != len(column) or (
                np.abs(np.abs(value) - order).max(initial=0) > bound) or (
                np.abs(value - want[column]).max(initial=0) > bound)
            bad += abs(found.sum[pair] - want.sum()) > 1e-5
            key = list(zip(-np.abs(value), column))
            bad += key != sorted(key)
            pair += 1
    ok(bad == 0 and pair == len(found.sum), f"{what}: {bad} of {pair} pairs are not NumPy's")


@claim("lists and sums are those of NumPy, for every kind of attention")
def check_values(p):
    for facts in ({}, {"causal": 0}, {"window": 70}, {"causal": 0, "window": 9, "scale": 0.4},
                  {"softcap": 2.0}):
        path = capture(p.at("c.h5"), **facts)
        codes = p.encode(path, "codes")
        atoms, _ = codes_of(codes)
        for top in (7, 1) if not facts else (7,):
            out = p.attribute(path, codes, "a.h5", "--top", top)
            found = Result(out)
            lists_check(p, facts, top, atoms, found, f"{facts}, top {top}")
            ok(list(found.facts["shape"]) == [found.sum.size, 1200 * H] and
               found.facts["heads"] == H and found.facts["top"] == top, f"{found.facts}")
        need(sagitta("verify", out), "verify")
        ok(not wrong_seals(out), "seals")
    found = Result(p.attribute(capture(p.at("c.h5")), p.encode(p.at("c.h5"), "codes"), "all.h5",
                               "--top", 1024))
    sums = np.array([found.data[a:b].astype("f8").sum()
                     for a, b in zip(found.indptr, found.indptr[1:]) if b - a < 1024])
    whole = found.sum[np.diff(found.indptr) < 1024]
    ok(len(whole) > 500 and np.abs(sums - whole).max() < 1e-6,
       "lists that are shorter than --top have all positions")


@claim("sums are the routed scores plus the mean's share; in later rounds they explain the row "
       "itself")
def check_scores(p):
    path = capture(p.at("c.h5"))
    need(sagitta("harvest", "--capture", path, "--output", p.at("rows.h5"), "--force"), "harvest")
    with h5py.File(p.at("rows.h5")) as f:
        rows = f["rows"][:].astype("f8")
    for words, first, centred in (((), S, 0), (("--center",), S, 1), (("--rounds", 2), S // 2, 0),
                                  (("--rounds", S, "--center"), 1, 1),
                                  (("--codes", "nonnegative", "--center"), S, 1)):
        codes = p.encode(path, "codes", *words)
        atoms, score = codes_of(codes)
        done = p.run(path, codes, "a.h5")
        need(done, f"{words}")
        found = Result(p.at("a.h5"))
        sums = found.sum.reshape(atoms.shape)
        exact = np.einsum("ip,iap->ia", rows, ATOMS[atoms].astype("f8"))
        ok(np.abs(sums - exact).max() < 2e-6, f"{words}: the row's own score")
        want = sums - found.mean[atoms]
        if "nonnegative" in words:
            want = np.maximum(want, 0)
        ok(np.abs(want - score)[:, :first].max() < 2e-6, f"{words}: scores of the first round")
        ok(first == S or np.abs(want - score)[:, first:].max() > 0.01, f"{words}: residuals differ")
        ok((found.mean != 0).any() == bool(centred), f"{words}: the mean's share")
        ok(found.facts["compared"] == len(Q) * first and 0 < found.facts["error"] < 1e-6 and
           f"compared={len(Q) * first} beyond={found.facts['beyond']} " in done.stderr,
           f"{words}: {found.facts} {done.stderr[-300:]}")
        with h5py.File(f"{codes}/supports.h5") as f:
            ok(all(found.inputs[n] == f["inputs"].attrs[n] for n in
                   ("rows_hash", "dictionary_hash")), f"{words}: hashes")
    need(sagitta("route", "--rows", p.at("rows.h5"), "--dictionary", p.at("dictionary.h5"),
                 "--top-s", S, "--output", p.at("routed.h5"), "--force"), "route")
    scores = Result(p.attribute(path, p.at("routed.h5"), "r.h5"))
    ok(scores.facts["compared"] == len(Q) * S, "scores of route")
    codes = p.encode(path, "codes", "--codes", "nonnegative", s=30)
    _, score = codes_of(codes)
    facts = Result(p.attribute(path, codes, "a.h5", "--top", 1)).facts
    ok((score == 0).any() and facts["error"] < 1e-6, f"positive parts: {facts}")


@claim("equal contributions are ordered by position, then by head")
def check_ties(p):
    n = 9
    k, v = np.zeros((n, H_KV, D), "f4"), np.ones((n, H_KV, DV), "f4")
    v[4:6] = -1
    atom = np.zeros((2, H * DV), "f4")
    atom[0, ::DV] = np.float32(1 / np.sqrt(H))  # equal for all heads
    atom[1, :DV] = np.float32(1 / np.sqrt(DV))  # of head 0 only
    atom[0, 0] = np.sqrt(1 - (H - 1) * float(atom[0, DV]) ** 2)
    atom[0] = atom[0, DV]
    atom[0, np.arange(H * DV) % DV != 0] = 0
    with h5py.File(p.at("two.h5"), "w") as f:
        f["atoms"] = atom
    path = capture(p.at("t.h5"), Q[:2], k, v, None, None, causal=0)
    need(sagitta("encode", "--capture", path, "--dictionary", p.at("two.h5"), "--top-s", 2,
                 "--output", p.at("ties"), "--force"), "encode")
    for top in 10, 1000:
        found = Result(p.attribute(path, p.at("ties"), "a.h5", "--top", top, dictionary="two.h5"))
        with h5py.File(p.at("ties/supports.h5")) as f:
            atoms = f["supports/indices"][:]
        for e, a in enumerate(atoms):
            part = slice(found.indptr[e], found.indptr[e + 1])
            heads = range(H) if a == 0 else [0]
            want = [j * H + h for j in range(n) for h in heads][:top]
            ok(list(found.indices[part]) == want, f"atom {a}: {found.indices[part]}")
            sign = np.where((np.array(want) // H >= 4) & (np.array(want) // H < 6), -1, 1)
            ok((np.sign(found.data[part]) == sign).all(), f"atom {a}: signs")


@claim("any ranks, blocks and threads give the same bytes, from plain and paged captures")
def check_partition(p):
    for facts in {}, {"window": 300}:
        path = capture(p.at("c.h5"), **facts)
        codes = p.encode(path, "codes", "--rounds", 2, "--center")
        one = p.attribute(path, codes, "one.h5", "--threads", 1)
        for ranks, words in ((2, ()), (3, ("--block", 37)), (0, ("--block", 1)),
                             (0, ("--threads", 3, "--cpu-variant", "baseline")),
                             (5, ("--block", 2)), (1, ()), (5, ()))[:7 if FULL else 5]:
            done = p.run(path, codes, "more.h5", *words, ranks=ranks)
            if "lacks the instructions" in done.stderr:
                continue
            need(done, f"{ranks} ranks {words}")
            same(one, p.at("more.h5"), f"{ranks} ranks {words}")
        for size in (1, 16, 24):
            paged = p.attribute(pool(p.at("p.h5"), size, **facts), codes, "paged.h5",
                                ranks=2 if size == 24 else 0)
            same(one, paged, f"blocks of {size}")


@claim("a GPU gives the same bytes; without a GPU the message says that there is none")
def check_gpu(p):
    path = capture(p.at("c.h5"))
    codes = p.encode(path, "codes")
    if not gpu_present():
        fails(p.run(path, codes, "g.h5", "--device", "cuda"), 69, ["CUDA"], "there is none")
        one = p.attribute(path, codes, "one.h5", "--device", "cpu")
        same(one, p.attribute(path, codes, "more.h5", "--device", "auto"), "auto")
        return
    for facts in ({}, {"causal": 0}, {"window": 70}, {"softcap": 2.0, "scale": 0.4}):
        for paged in 0, 16, 24:
            path = pool(p.at("p.h5"), paged, **facts) if paged else capture(p.at("c.h5"), **facts)
            codes = p.encode(path, "codes", "--center", "--device", "cpu")
            one = p.attribute(path, codes, "one.h5", "--device", "cpu")
            for ranks, words in ((0, ()), (2, ("--block", 50))):
                done = p.run(path, codes, "more.h5", "--device", "cuda", *words, ranks=ranks)
                need(done, f"{facts} {paged}")
                ok("device=cuda" in done.stderr, f"{facts} {paged}: it was a GPU")
                same(one, p.at("more.h5"), f"{facts} {paged} {ranks}")
    ragged = csr_write(p.at("ragged.h5"), RANDOM.integers(0, 30, len(Q)))
    for top in 1, 3, 200:
        one = p.attribute(path, ragged, "one.h5", "--device", "cpu", "--top", top)
        two = p.attribute(path, ragged, "two.h5", "--device", "cuda", "--top", top)
        same(one, two, f"rows of any length, top {top}")
    check_gpu_pieces(p)


LONG = [(2, 3000), (1, 5000), (0, 5), (4, 1024), (3, 2049), (2, 1), (40, 64)]


def check_gpu_pieces(p):
    """If a GPU has less memory than keys and values take, it computes with pieces of them.  Several
    sizes are tried."""
    at = [starts([s[i] for s in LONG]) for i in (0, 1)]
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((n, heads, columns)).astype("f4") for n, heads, columns in (
        (at[0][-1], H, D), (at[1][-1], H_KV, D), (at[1][-1], H_KV, DV))]
    for facts in ({}, {"causal": 0}, {"window": 1500}, {"causal": 0, "window": 7, "softcap": 3.0}):
        path = capture(p.at("long.h5"), *arrays, *at, **facts)
        codes = p.encode(path, "long", "--center", "--device", "cpu")
        one = p.attribute(path, codes, "long-cpu.h5", "--device", "cpu")
        words = ("attribute", "--supports", codes, "--dictionary", p.at("dictionary.h5"),
                 "--capture", path, "--output", p.at("long-cuda.h5"), "--force")
        for size, more in ((4000000, ()), (2500000, ()), (2500000, ("--block", 7))):
            done = cuda_run(p.at("long-cuda.h5"), *words, "--device", "cuda", *more,
                            CUDA_MEMORY=str(size))
            need(done, f"{facts} {size} {more}")
            ok("keys and values come in pieces" in done.stderr and "device=cuda" in done.stderr,
               done.stderr[-300:])
            same(one, p.at("long-cuda.h5"), f"{facts}, {size} bytes {more}")
    done = cuda_run(p.at("no.h5"), *words, "--device", "cuda", CUDA_MEMORY="300000")
    fails(done, 71, ["1024 positions of", "MB are free on the GPU"], "too little for a shard")
    done = cuda_run(p.at("long-cuda.h5"), *words, "--device", "auto", CUDA_MEMORY="300000")
    need(done, "auto")
    same(one, p.at("long-cuda.h5"), "auto, which takes the CPU, or a GPU that has room")


def csr_write(path, lengths, k=K, seed=2):
    """Write supports as another program does: rows of any length, and no scores."""
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w") as f:
        g = f.create_group("supports")
        g.attrs["shape"] = np.array([len(lengths), k], "i8")
        g["indptr"] = starts(lengths)
        g["indices"] = np.concatenate([rng.permutation(k)[:n] for n in lengths]).astype("i4")
        g["data"] = np.ones(sum(lengths), "f4")
    return path


@claim("attribute takes rows of different numbers of atoms, a single row, rows that see no "
       "position, and supports without any entry")
def check_shapes(p):
    path = capture(p.at("c.h5"))
    lengths = RANDOM.integers(0, 6, len(Q))
    codes = csr_write(p.at("ragged.h5"), lengths)
    with h5py.File(codes) as f:
        atoms = np.split(f["supports/indices"][:], np.cumsum(lengths)[:-1])
    done = p.run(path, codes, "a.h5", "--top", 3)
    need(done, "ragged")
    ok("no sum was compared" in done.stderr, done.stderr[-300:])
    found, pair, bad = Result(p.at("a.h5")), 0, 0
    for i, (_, all_of) in enumerate(oracle(atoms, {})):
        for a in range(len(atoms[i])):
            bad += abs(found.sum[pair] - all_of[a].sum()) > 1e-5
            pair += 1
    ok(bad == 0 and pair == lengths.sum() == len(found.sum), f"{bad} of {pair} sums")
    for ranks in 2, 5:
        same(p.at("a.h5"), p.attribute(path, codes, "b.h5", "--top", 3, ranks=ranks), f"{ranks}")
    blind = Q_START[-2]  # the first query of the last sequence has no position
    first = int(starts(lengths)[blind])
    ok((np.diff(found.indptr)[first:first + lengths[blind]] == 0).all() and
       (found.sum[first:first + lengths[blind]] == 0).all(),
       "a query that sees no position is handled")
    none = csr_write(p.at("none.h5"), [0] * len(Q))
    for ranks in 0, 3:
        found = Result(p.attribute(path, none, "a.h5", ranks=ranks))
        ok(len(found.sum) == len(found.data) == 0 and list(found.indptr) == [0],
           "supports without an entry give empty lists")
        need(sagitta("verify", p.at("a.h5")), "verify")
    single = capture(p.at("s.h5"), Q[:1], KEYS[:1], V[:1], None, None)
    codes = p.encode(single, "single")
    one = p.attribute(single, codes, "one.h5", "--top", 100)
    for ranks in 3, 5:
        same(one, p.attribute(single, codes, "b.h5", "--top", 100, ranks=ranks), f"{ranks}: a row")
    found = Result(one)
    ok(len(found.sum) == S and (np.diff(found.indptr) == H).all(), "all heads of one position")
    scaled = 3 * ATOMS
    np.save(p.at("scaled.npy"), scaled)
    need(sagitta("encode", "--capture", path, "--dictionary", p.at("scaled.npy"), "--normalize",
                 "--top-s", S, "--output", p.at("norm"), "--force"), "encode --normalize")
    p.attribute(path, p.at("norm"), "n.h5", "--normalize", dictionary="scaled.npy")
    fails(p.run(path, p.at("norm"), "n.h5", dictionary="scaled.npy"), 65, ["norm 3"], "norms")


def tokened(path):
    """Write a capture with a token for each position.  Returns (path, tokens)."""
    token = np.random.default_rng(4).integers(0, 40, KV_START[-1]).astype("i4")
    with h5py.File(capture(path), "r+") as f:
        f["token"] = token
    return path, token


def told_differ(p, found, token, atom, strongest, count=4):
    """The lines of inspect about an atom's strongest rows that differ from attribution.h5 and the
    capture."""
    with h5py.File(p.at("codes/supports.h5")) as f:
        g = f["supports"]
        atoms, indptr = np.split(g["indices"][:], g["indptr"][1:-1]), g["indptr"][:]
    bad = []
    for entry in strongest:
        row = entry["row"]
        pair = indptr[row] + int(np.flatnonzero(atoms[row] == atom)[0])
        s = int(found.sequence[row])
        part = slice(found.indptr[pair], min(found.indptr[pair + 1], found.indptr[pair] + count))
        want = [(int(i) // H, int(i) % H) for i in found.indices[part]]
        at = row - Q_START[s] + SEQUENCES[s][1] - SEQUENCES[s][0]
        good = (entry["sequence"] == s and np.isclose(entry["sum"], found.sum[pair], rtol=1e-4) and
                [(e["position"], e["head"]) for e in entry["sources"]] == want and
                np.allclose([e["contribution"] for e in entry["sources"]], found.data[part],
                            rtol=1e-4))
        if token is None:
            good &= not any("token" in e for e in entry["sources"])
        else:
            own = token[KV_START[s]:KV_START[s + 1]]
            good &= [e["token"] for e in entry["sources"]] == [str(own[j]) for j, _ in want]
            good &= at < 0 or f"[{own[at]}]" in entry["tokens"]
        if not good:
            bad.append(entry)
    return bad


def sources_told(p, found, token, atom, count, page):
    """As told_differ(), for a page of inspect, which has eight tokens on each side of a row."""
    bad = told_differ(p, found, token, atom, page["strongest"], count)
    for entry in page["strongest"] if token is not None else []:
        s = int(found.sequence[entry["row"]])
        at = entry["row"] - Q_START[s] + SEQUENCES[s][1] - SEQUENCES[s][0]
        near = token[KV_START[s] + max(at - 8, 0):min(KV_START[s] + at + 9, KV_START[s + 1])]
        said = entry.get("tokens", "").replace("[", "").replace("]", "").split()
        if at >= 0 and said != [str(t) for t in near]:
            bad.append(entry)
    ok(page["strongest"] and not bad, f"atom {atom}: {str(bad)[:600]}")


@claim("inspect --atom shows where the scores of an atom's strongest rows come from")
def check_inspect(p):
    path, token = tokened(p.at("told.h5"))
    codes = p.encode(path, "codes", "--center")
    shutil.copy(p.at("dictionary.h5"), codes)

    def page(atom, *words):
        done = sagitta("inspect", codes, "--atom", atom, *words, "--json")
        need(done, f"inspect {atom} {words}")
        return json.loads(done.stdout), done.stderr

    ok("sources" not in page(3)[0]["strongest"][0],
       "without attribution.h5 inspect shows no sources")
    found = Result(p.attribute(path, codes, "codes/attribution.h5", "--top", 7))
    for atom, words, count in ((3, (), 4), (11, ("--sources", 7, "--top", 30), 7), (39, (), 4)):
        sources_told(p, found, token, atom, count, page(atom, *words)[0])
    with open(p.at("words.txt"), "w", encoding="utf-8") as f:
        f.write("".join(f"w{i}\n" for i in range(40)))
    words = ("--atom", 3, "--top", 3, "--vocabulary", p.at("words.txt"))
    text = sagitta("inspect", codes, *words)
    need(text, "a page")
    first = page(3, "--top", 3)[0]["strongest"][0]
    lines = text.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == [str(first["row"])])
    source = first["sources"][0]
    ok(f"sequence {first['sequence']}" in lines[at + 1] and "all contributions" in lines[at + 1] and
       f"position {source['position']}, head {source['head']}: w{source['token']}" in lines[at + 2]
       and f"{source['contribution']:.6g}" in lines[at + 2], f"{lines[at:at + 3]}")
    os.rename(path, p.at("moved.h5"))
    plain, said = page(3)
    ok("no tokens of sources are shown" in said and "--capture" in said, said)
    sources_told(p, found, None, 3, 4, plain)
    sources_told(p, found, token, 3, 4, page(3, "--capture", p.at("moved.h5"))[0])
    shutil.copytree(codes, p.at("other"))
    p.encode(p.at("moved.h5"), "codes", "--center", "--rounds", 2)
    stale, said = page(3)
    ok("no sources are shown" in said and "other supports" in said and
       "sources" not in stale["strongest"][0], said)
    for words, said in ((("--attribution", p.at("other")), "is of other supports"),
                        (("--attribution", f"{codes}/supports.h5"), "has no '/attribution'"),
                        (("--attribution", p.at("none.h5.not")), "cannot open")):
        done = sagitta("inspect", codes, "--atom", 3, *words)
        fails(done, 74 if "cannot" in said else 65, [said], f"{words}")
    os.remove(f"{codes}/attribution.h5")
    fails(sagitta("inspect", codes, "--atom", 3, "--capture", path), 65, ["no attribution.h5"],
          "a capture alone")
    fails(sagitta("inspect", codes, "--attribution", p.at("other")), 2, ["--atom"], "no atom")


def report(*words):
    return subprocess.run([sys.executable, os.path.join(SOURCE, "scripts/report"), *words],
                          capture_output=True, text=True, timeout=300, check=False)


def data_in(folder):
    with open(f"{folder}/report.html", encoding="utf-8") as f:
        return json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.S)[1])


@claim("the page of scripts/report shows the sources that attribution.h5 has")
def check_report(p):
    path, token = tokened(p.at("told.h5"))
    codes = p.encode(path, "codes", "--center")
    shutil.copy(p.at("dictionary.h5"), codes)
    need(report(codes), "without attribution")
    ok(all(len(e) == 5 for rows in data_in(codes)["rows"] for e in rows),
       "without attribution.h5 the page has no sources")
    fails_report(report(codes, "--capture", path), "no '")
    found = Result(p.attribute(path, codes, "codes/attribution.h5", "--top", 7))
    need(sagitta("pack", "--capture", path, "--output", p.at("packed")), "pack")
    for words, has in (((), 1), (("--attribution", codes, "--capture", path), 1),
                       (("--capture", p.at("packed")), 1),
                       (("--capture", capture(p.at("mute.h5"))), 0)):
        need(report(codes, *words), f"report {words}")
        data = data_in(codes)
        for atom in range(K):
            told = [{"row": e[0], "sequence": e[5][1], "sum": e[5][0],
                     "tokens": words_of(data, e) if has else "",
                     "sources": [{"position": j, "head": h, "contribution": v, **(
                         {} if t is None else {"token": str(t)})} for j, h, v, t in e[5][2]]}
                    for e in data["rows"][atom]]
            bad = told and told_differ(p, found, token if has else None, atom, told)
            ok(not bad, f"atom {atom} {words}: {bad}")
    with open(p.at("words.txt"), "w", encoding="utf-8") as f:
        f.write("".join(f"w{i}\n" for i in range(40)))
    need(report(codes, "--vocabulary", p.at("words.txt")), "words")
    data = data_in(codes)
    ok(data["words"] and all(str(s[3]) in data["words"] for rows in data["rows"] for e in rows
                             for s in e[5][2]), "the page has the word of each source")
    p.encode(path, "codes", s=S + 1)
    fails_report(report(codes), "made of these supports")
    fails_report(report(codes, "--attribution", f"{codes}/supports.h5"), "sagitta attribute")


def fails_report(done, said):
    ok(done.returncode and said in done.stderr and "Traceback" not in done.stderr, done.stderr)


def words_of(data, entry):
    """The tokens around a row of the page, eight on each side; the row's own token is in
    brackets."""
    firsts = [first for first, _ in data["runs"]]
    said = []
    for i in range(entry[4]):
        row = entry[0] - entry[2] + i
        run = np.searchsorted(firsts, row, side="right") - 1
        word = str(data["tokens"][data["runs"][run][1] + row - firsts[run]])
        said.append(f"[{word}]" if row == entry[0] else word)
    return " ".join(said)


@claim("attribute explains the supports of a fit too")
def check_fit(p):
    path = capture(p.at("c.h5"))
    need(sagitta("fit", "--capture", path, "--atoms", 12, "--top-s", 3, "--sweeps", 1,
                 "--holdout-share", 0, "--output", p.at("run"), "--force"), "fit")
    found = Result(p.attribute(path, p.at("run"), "a.h5", ranks=2, dictionary="run"))
    ok(found.facts["compared"] == len(Q) and (found.mean != 0).any(), f"{found.facts}")


@claim("inputs that do not belong together are refused, and the message says what to give")
def check_refused(p):
    path = capture(p.at("c.h5"))
    codes = p.encode(path, "codes")
    np.save(p.at("wide.npy"), np.eye(H * DV + 1, dtype="f4")[:K])
    np.save(p.at("less.npy"), ATOMS[:-1])
    np.save(p.at("other.npy"), ATOMS[::-1])
    np.save(p.at("frames.npy"), np.stack([np.eye(H * DV, dtype="f4")[:2]] * K))
    for name, words in (("wide.npy", ["6 heads of 20 columns, 120 in all", "have 121", "capture"]),
                        ("less.npy", ["39 atoms", "is of 40", "give the dictionary"]),
                        ("other.npy", ["dictionary_hash", "give the dictionary"]),
                        ("frames.npy", ["frames of 2", "one vector each"])):
        for ranks in 0, 2:
            fails(p.run(path, codes, "no.h5", dictionary=name, ranks=ranks), 65, words, name)
    few = capture(p.at("few.h5"), Q[:5], KEYS[:5], V[:5], None, None)
    fails(p.run(few, codes, "no.h5"), 65, ["5 queries", "rows", "whose rows were encoded"], "few")
    other = capture(p.at("o.h5"), v=V[::-1].copy())
    for ranks in 0, 3:
        fails(p.run(other, codes, "no.h5", ranks=ranks), 65,
              ["row 0 of", "has the score", "give the capture whose rows"], "other rows")
    last = V.copy()
    last[-1, -1, -1] += 1e-4  # only the hash shows it, no score
    for ranks in 0, 3:
        fails(p.run(capture(p.at(f"last{ranks}.h5"), v=last), codes, "no.h5", ranks=ranks), 65,
              ["of other rows than", "rows_hash", "give the capture"], "the last row")
    shutil.copytree(codes, p.at("named"))
    with h5py.File(p.at("named/supports.h5"), "r+") as f:
        f.attrs["encoder"] = "relu"
    fails(p.run(path, p.at("named"), "no.h5"), 65, ["relu encoder", "--dictionary"], "an encoder")
    for left, said in (("--supports", "make them with"), ("--dictionary", "encoded with"),
                       ("--capture", "whose rows were encoded")):
        words = {"--supports": codes, "--dictionary": p.at("dictionary.h5"), "--capture": path}
        del words[left]
        done = sagitta("attribute", *sum(map(list, words.items()), []), "--output", p.at("no.h5"))
        fails(done, 2, [f"'{left}' is missing", said], left)
    fails(p.run(path, p.at("empty.h5"), "no.h5"), 74, ["cannot open"], "no supports")
    fails(p.run(path, codes, "no.h5", "--top", 0), 2, ["top"], "no list")
    ok(not os.path.exists(p.at("no.h5")), "nothing is published")


@claim("verify checks ranges and order even if the hashes are right")
def check_verify(p):
    path = capture(p.at("c.h5"))
    good = p.attribute(path, p.encode(path, "codes"), "good.h5")
    for name, at, value, said in (("indices", 3, 1200 * H, "is not in"), ("data", 3, 0, "is 0"),
                                  ("data", 9, 5, "weaker"), ("indptr", 2, 9999999, "sources")):
        spoilt = shutil.copy(good, p.at("spoilt.h5"))
        with h5py.File(spoilt, "r+") as f:
            f[f"attribution/{name}"][at] = value
            reseal(f)
        fails(sagitta("verify", spoilt), 65, [said], f"{name} {at}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        p = Place(folder)
        check_values(p)
        check_scores(p)
        check_ties(p)
        check_partition(p)
        check_gpu(p)
        check_shapes(p)
        check_inspect(p)
        check_report(p)
        check_fit(p)
        check_refused(p)
        check_verify(p)
    done_testing()


main()
