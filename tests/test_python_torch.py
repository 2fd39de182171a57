# SPDX-License-Identifier: BSD-3-Clause
"""Claim: with libsagitta, sagitta.torch.Dictionary has the bits of `sagitta encode`.  With PyTorch
it chooses the same atoms in every real row, except for float ties, which are counted, and the
explained variance of unseen rows agrees to 1e-6.  Gradients are those of fixed supports.  It keeps
shapes, takes dtypes and devices, and refuses what it cannot use."""
import copy
import os
import pickle
import sys
import tempfile

from peer import peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok, sagitta as program, skip

peer_needed("torch", "numpy", "h5py")

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)  # libsagitta.so is beside it
import h5py  # noqa: E402, after a Python that has them was found
import numpy as np  # noqa: E402
import torch  # noqa: E402

import sagitta  # noqa: E402
from sagitta.torch import Dictionary  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
K, S, FITTED, UNSEEN = 512, 16, 6144, 2048
AGREE = 1e-6  # of explained variance; codes are stored in float32
TIES_MOST = 0.01  # share of rows; far more than were ever seen


def has_product(dtype):
    """Older versions of PyTorch cannot multiply float16 on CPUs."""
    try:
        return bool((torch.ones(2, 2, dtype=dtype) @ torch.ones(2, 2, dtype=dtype)).sum() == 8)
    except RuntimeError:
        return False


def tie_bound(residual, a, b):
    """Two programs may order atoms a and b differently if their exact scores differ by at most the
    returned value.  Each program errs by at most P 2^-24 sum |r_c d_c| in each of the two scores,
    for any order of its sums (Higham 2002, chapter 3)."""
    sizes = np.abs(residual) @ np.abs(a) + np.abs(residual) @ np.abs(b)
    return 2 * len(residual) * 2.0 ** -24 * sizes


def is_tie(x, d, want, got):
    """Do two supports of a row first differ at atoms that tie?  x: centred; d: a Dictionary in
    float64; want, got: atoms in order.  The codes of earlier rounds are those of the package, which
    are checked below."""
    place = int(np.argmax(want != got))
    first = max(end for end in (r * S // d.rounds for r in range(d.rounds)) if end <= place)
    chosen = d.W_dec[want[:first]]
    residual = x
    if first:
        codes = d._codes((chosen @ chosen.T)[None], (chosen @ torch.from_numpy(x))[None])[0]
        residual = x - (codes @ chosen).numpy()
    a, b = (d.W_dec[atoms[place]].numpy() for atoms in (want, got))
    score = np.array([residual @ a, residual @ b])
    score = np.maximum(score, 0) if d.codes == "nonnegative" else np.abs(score)
    return abs(score[0] - score[1]) <= tie_bound(residual, a, b)


def encoded(folder, words):
    done = program("encode", "--rows", f"{folder}/unseen.npy", "--dictionary",
                   f"{folder}/run/dictionary.h5", "--output", f"{folder}/codes", "--force", *words)
    if done.returncode:
        print("#", done.stderr)
        sys.exit(1)
    return sagitta.open(f"{folder}/codes")


def check_encoding(folder, x, kind, rounds, rho=0.0):
    run = encoded(folder, ["--codes", kind, "--rounds", rounds, "--rho", rho])
    how = {"codes": kind, "rounds": rounds, "rho": rho}
    d = Dictionary.open(f"{folder}/run", compute="torch", **how)
    with claim(f"{kind} codes, rounds={rounds}, rho={rho}: supports and codes have the bits of "
               "`sagitta encode`"):
        exact = Dictionary.open(f"{folder}/run", **how).support(torch.from_numpy(x))
        ok(exact[0].numpy().tobytes() == run.codes.indices.astype("i8").tobytes() and
           exact[1].numpy().tobytes() == run.codes.data.tobytes(), "supports and codes")
    with claim(f"{kind} codes, rounds={rounds}, rho={rho}: PyTorch finds the supports, except "
               "for ties, the codes and the variance"):
        indices, data = np.array(run.codes.indices), np.array(run.codes.data)
        want, got = indices.reshape(-1, S), d.support(torch.from_numpy(x))
        same = (want == got[0].numpy()).all(1)
        wide = Dictionary.open(f"{folder}/run", codes=kind, rounds=rounds, rho=rho).double()
        rows, ties = (x.astype("f8") - d.mean.numpy()).astype("f4").astype("f8"), 0
        for i in np.flatnonzero(~same):
            tie = is_tie(rows[i], wide, want[i], got[0][i].numpy())
            ok(tie, f"row {i} differs, and not by a tie")
            ties += tie
        print(f"# {kind}, {rounds} rounds: {same.sum()} of {len(x)} supports equal, {ties} ties")
        ok(ties <= TIES_MOST * len(x), f"{ties} ties")
        far = np.abs(got[1].numpy() - data.reshape(-1, S))[same].max()
        ok(far <= AGREE, f"codes are {far:.1e} away")
        found = sagitta.explained_variance(x, d(torch.from_numpy(x)))
        far = abs(found - run.metrics["explained_variance"])
        ok(far <= AGREE, f"explained variance {found} is {far:.1e} away")


@claim("shapes, dtypes and devices are as requested")
def check_types(folder, x):
    x = torch.from_numpy(x[:96].astype("f4"))
    d = Dictionary.open(f"{folder}/run")
    flat = d.encode(x)
    ok(flat.shape == (96, K) and flat.dtype == torch.float32, "a batch of rows")
    ok(torch.equal(d.encode(x.reshape(4, 24, -1)).reshape(96, K), flat), "batch and position")
    ok(torch.equal(d.encode(x[0]), flat[0]) and d(x[0]).shape == x[0].shape, "one row")
    ok(d.encode(x[:0]).shape == (0, K) and d(x[:0]).shape == (0, x.shape[1]), "no rows")
    small = Dictionary.open(f"{folder}/run", block=7)
    ok(torch.allclose(small.encode(x), flat, atol=AGREE), "blocks of 7")
    ok(isinstance(d.W_dec, torch.nn.Parameter) and d.W_dec.shape == (K, x.shape[1])
       and d.b_dec.shape == x.shape[1:] and d.cfg.d_sae == K and d.cfg.d_in == x.shape[1],
       "W_dec, b_dec and cfg are as SAEBench asks")
    ok(not any(p.requires_grad for p in d.parameters()), "nothing is trained")
    mean = d.mean.clone()
    variance = sagitta.explained_variance(x, d(x))
    kinds = ((torch.float64, 1e-6), (torch.bfloat16, 0.01), (torch.float16, 0.002))
    for dtype, least in kinds[:2 + has_product(torch.float16)]:
        d.to(dtype)
        ok(d.dtype == dtype and torch.equal(d.mean, mean), f"{dtype}: the mean keeps its bits")
        y = d(x.to(dtype))
        far = abs(sagitta.explained_variance(x, y.double()) - variance)
        ok(y.dtype == dtype and far <= least, f"{dtype}: explained variance is {far:.1e} away")
        d = Dictionary.open(f"{folder}/run")
    devices = ["cpu"] + ["cuda"] * torch.cuda.is_available()
    for device in devices:
        d = Dictionary.open(f"{folder}/run").to(device)
        y = d(x.to(device))
        far = abs(sagitta.explained_variance(x, y.cpu()) - variance)
        ok(d.device.type == y.device.type == device and far <= AGREE, f"{device}: {far:.1e} away")
    state = Dictionary.open(f"{folder}/run")
    state.load_state_dict(d.cpu().state_dict())
    ok(torch.equal(state.encode(x), flat), "a state_dict comes back")


@claim("explained variance takes tensors of any type and device, with a gradient or without")
def check_variance():
    x = torch.randn(40, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) + 2
    for dtype in torch.bfloat16, torch.float16, torch.float32, torch.float64:
        a, b = x.to(dtype), (x * 0.75).to(dtype)
        rows, described = (t.double().numpy().reshape(-1, 8) for t in (a, b))
        want = 1 - ((rows - described)**2).sum() / ((rows - rows.mean(0))**2).sum()
        for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
            for mixed in b, b.double(), b.clone().requires_grad_(), described.reshape(b.shape):
                mixed = mixed.to(device) if torch.is_tensor(mixed) else mixed
                got = sagitta.explained_variance(a.to(device), mixed)
                ok(abs(got - want) < 1e-12, f"{dtype}, {type(mixed)}: {got}, not {want}")
    refused(["complex"], lambda: sagitta.explained_variance(x.to(torch.complex64), x))


@claim("decode is linear, and codes are linear in the rows while no support changes")
def check_gradient():
    random = np.random.default_rng(6)
    atoms = random.normal(size=(20, 12))
    atoms /= np.linalg.norm(atoms, axis=1)[:, None]
    rows, g = random.normal(size=(7, 12)), random.normal(size=(7, 20))
    for kind in "signed", "nonnegative":
        for rounds, rho in (1, 0), (3, 0.25):
            d = Dictionary(torch.tensor(atoms), random.normal(size=12), top_s=5, rounds=rounds,
                           codes=kind, rho=rho, block=3)
            x = torch.tensor(rows).requires_grad_()
            codes = d.encode(x)
            with torch.no_grad():
                ok(torch.equal(codes, d.encode(x)), f"{kind}: the bits without a gradient")
            (codes * torch.tensor(g)).sum().backward()
            for i in range(len(rows)):
                chosen = np.flatnonzero(codes[i].detach().numpy())
                v = atoms[chosen]  # the codes are (V V' + rho I)^-1 V x
                want = v.T @ np.linalg.solve(v @ v.T + rho * np.eye(len(v)), g[i, chosen])
                far = abs(x.grad[i].numpy() - want).max()
                ok(far < 1e-6, f"{kind}, {rounds} rounds: row {i} is {far:.1e} away")
    c = torch.tensor(g).requires_grad_()
    d.decode(c).backward(torch.tensor(rows))
    ok(np.allclose(c.grad.numpy(), rows @ atoms.T), "of decode")
    x = torch.tensor(rows).requires_grad_()
    d(x).sum().backward()
    ok(x.grad.shape == x.shape and x.grad.abs().sum() > 0, "of both")
    half = Dictionary(torch.tensor(atoms), top_s=5).to(torch.bfloat16)
    c = torch.tensor(g).to(torch.bfloat16).requires_grad_()
    half.decode(c).sum().backward()
    ok(c.grad is not None and c.grad.dtype == torch.bfloat16, "in bfloat16")
    ok(not d.decode(torch.tensor(g)).requires_grad,
       "no gradient is computed where none is asked for")
    ok(not any(p.requires_grad for p in d.parameters()), "atoms have no gradient")
    mean = torch.zeros(12, requires_grad=True)
    ok(not Dictionary(torch.tensor(atoms), mean).mean.requires_grad, "the mean has no gradient")


def unit(random, k, p):
    atoms = random.normal(size=(k, p))
    return torch.tensor(atoms / np.linalg.norm(atoms, axis=1)[:, None])


@claim("gradients pass gradcheck, of codes by rows and atoms, and of decoded rows by codes, atoms "
       "and mean")
def check_gradcheck():
    random = np.random.default_rng(8)
    atoms, x = unit(random, 8, 6), torch.tensor(random.normal(size=(2, 6))).requires_grad_()
    for kind in "signed", "nonnegative":
        for rho in 0, 0.1:
            d = Dictionary(atoms, random.normal(size=6), top_s=3, rounds=2, codes=kind, rho=rho)
            d.W_dec.requires_grad_()
            d.mean.requires_grad_()
            for inputs in (x,), (d.W_dec,):  # rows are float32: smaller steps have no effect
                ok(torch.autograd.gradcheck(lambda *_: d.encode(x), inputs, eps=1e-3, atol=1e-3,
                                            rtol=1e-3, raise_exception=False),
                   f"{kind}, rho={rho}: codes by {tuple(inputs[0].shape)}")
            chosen, codes = d.support(x.detach())
            codes = codes.detach().requires_grad_()
            dense = torch.zeros(2, 8, dtype=torch.float64).scatter_(1, chosen, codes.detach())
            ok(torch.allclose(d.decode_support(chosen, codes), d.decode(dense)), "supports decode")
            for call, by in ((d.decode, dense.requires_grad_()),
                             (lambda c, a=chosen, m=d: m.decode_support(a, c), codes)):
                ok(torch.autograd.gradcheck(lambda c, *_, f=call: f(c), (by, d.W_dec, d.mean),
                                            raise_exception=False), f"{kind}: decoded")


@claim("gradients may be straight-through or none; a changed module, or a copy of one, has the "
       "codes of its atoms")
def check_changes():
    random = np.random.default_rng(9)
    atoms, x = unit(random, 20, 12).float(), torch.tensor(random.normal(size=(30, 12))).float()
    d = Dictionary(atoms, top_s=4, gradient="straight-through")
    y = x.clone().requires_grad_()
    d(y).backward(x)
    far = (d(x) - d.decode(d.encode(x))).abs().max()
    ok(torch.equal(y.grad, x) and far < 1e-6,
       f"the gradient is that of the identity, the values differ by {far}")
    ok(not Dictionary(atoms, gradient="none").encode(y).requires_grad, "none")
    d = Dictionary(atoms, top_s=4)
    before = d.encode(x)
    ok(before.sub(Dictionary(atoms, top_s=4, compute="torch").encode(x)).abs().max() < 1e-5,
       "PyTorch agrees")
    for other in copy.deepcopy(d), pickle.loads(pickle.dumps(d)):
        ok(torch.equal(other.encode(x), before), "a copy")
    d.W_dec.data[:] = atoms.flip(0)  # PyTorch does not notice this change
    ok(torch.equal(d.encode(x), before.flip(1)), "atoms that changed")
    ok(d.support(x.to(torch.float16))[1].dtype == torch.float32, "rows of 16 bits")


@claim("torch.compile keeps every bit, and breaks its graph only where supports are found")
def check_compile():
    if not hasattr(torch, "compile"):
        skip("this PyTorch has no torch.compile")
        return
    random = np.random.default_rng(10)
    x = torch.tensor(random.normal(size=(30, 12))).float()
    for compute in "sagitta", "torch":
        d = Dictionary(unit(random, 20, 12).float(), top_s=4, rounds=2, compute=compute)
        torch._dynamo.reset()
        ok(torch.equal(torch.compile(d, backend="eager")(x), d(x)), compute)
        found = [reason.user_stack[-1].name for reason in torch._dynamo.explain(d)(x).break_reasons]
        ok(found == ["encode"], f"{compute}: breaks in {found}")


@claim("equal atoms, rows of zeros and too few atoms give the codes that (N.2) and (N.3) define")
def check_corners():
    atoms = torch.eye(6)[[0, 1, 1, 2, 3, 4]]
    for kind, compute in [(k, c) for k in ("signed", "nonnegative") for c in ("sagitta", "torch")]:
        d = Dictionary(atoms, top_s=4, rounds=2, codes=kind, compute=compute)
        x = torch.stack([torch.zeros(6), 3 * atoms[1] - 2 * atoms[4], -atoms[0]])
        chosen, codes = d.support(x)
        ok(chosen[0].tolist() == [0, 1, 2, 3] and not codes[0].any(), f"{kind}: zeros take 0 ..")
        best = {"signed": [1, 2, 4, 0], "nonnegative": [1, 2, 0, 3]}[kind]
        ok(chosen[1].tolist() == best, f"{kind}: of equal atoms the first: {chosen[1].tolist()}")
        code = [3, 0, -2, 0] if kind == "signed" else [3, 0, 0, 0]
        ok(torch.allclose(codes[1], torch.tensor(code).float()), f"{kind}: its double gets 0")
        ok(codes[2].tolist() == ([-1, 0, 0, 0] if kind == "signed" else [0] * 4), f"{kind}: -e_0")
    many = Dictionary(torch.eye(3), top_s=32, rounds=32)
    ok(many.top_s == many.rounds == 3 and many.encode(torch.ones(2, 3)).eq(1).all(), "s > K")


def refused(words, call):
    try:
        call()
    except sagitta.Error as error:
        ok(all(word in str(error) for word in words), f"{words}: {error}")
    else:
        ok(False, f"{words}: nothing was said")


@claim("inputs that cannot be used are refused, and the message says what to do")
def check_errors(folder):
    d = Dictionary.open(f"{folder}/run")
    refused(["5 columns", "fitted"], lambda: d.encode(torch.ones(2, 5)))
    refused(["not finite"], lambda: d.encode(torch.full((2, d.W_dec.shape[1]), torch.nan)))
    refused(["norm 2"], lambda: Dictionary(2 * torch.eye(3)))
    refused(["transposed", "atoms.T"], lambda: Dictionary(d.W_dec.detach().T))
    refused(["int64", "floats"], lambda: Dictionary(torch.eye(3, dtype=torch.int64)))
    refused(["atoms are no numbers", "a tensor"], lambda: Dictionary(None))
    for value in 2.5, "3":
        refused(["top_s", "whole number"], lambda v=value: Dictionary(torch.eye(3), top_s=v))
    columns = d.W_dec.shape[1]
    refused(["x.T"], lambda: d.encode(torch.ones(columns, 2)))
    refused(["(..., P)"], lambda: d.encode(torch.tensor(1.)))
    refused(["real"], lambda: d.encode(torch.ones(2, columns, dtype=torch.complex64)))
    refused(["codes have shape (2, 5)", "encode()"], lambda: d.decode(torch.ones(2, 5)))
    x = torch.ones(2, columns)
    ok(torch.equal(d.encode(x.numpy()), d.encode(x)), "an array will do")
    refused(["norm nan"], lambda: Dictionary(torch.full((2, 3), torch.nan)))
    refused(["no atoms"], lambda: Dictionary(torch.ones(0, 3)))
    refused(["frames", "sagitta encode"], lambda: Dictionary(torch.ones(2, 2, 3)))
    refused(["mean", "column"], lambda: Dictionary(torch.eye(3), mean=torch.zeros(4)))
    refused(["positive", "signed"], lambda: Dictionary(torch.eye(3), codes="positive"))
    refused(["positive", "signed"], lambda: Dictionary.open(f"{folder}/run", codes="positive"))
    refused(["compute", "sagitta", "torch"], lambda: Dictionary(torch.eye(3), compute="cpu"))
    refused(["gradient", "straight"], lambda: Dictionary(torch.eye(3), gradient=True))
    refused(["(2, 3)", "support()"],
            lambda: d.decode_support(torch.zeros(2, 3).long(), torch.ones(2, 4)))
    refused(["rounds 0"], lambda: Dictionary(torch.eye(3), rounds=0))


def main():
    torch.set_num_threads(min(4, os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as folder:
        rows = h5py.File(ROWS)["rows"][:]
        np.save(f"{folder}/fit.npy", rows[:FITTED])
        np.save(f"{folder}/unseen.npy", rows[FITTED:FITTED + UNSEEN])
        x = rows[FITTED:FITTED + UNSEEN]
        done = program("fit", "--find", "codes", "--rows", f"{folder}/fit.npy", "--atoms", K,
                       "--top-s", S, "--sweeps", 2, "--output", f"{folder}/run")
        ok(done.returncode == 0, f"a dictionary was fitted {done.stderr[-200:] * done.returncode}")
        for kind in "nonnegative", "signed":
            for rounds in 1, 4, S:
                check_encoding(folder, x, kind, rounds)
            check_encoding(folder, x, kind, 4, 0.5)
        check_types(folder, x)
        check_corners()
        check_variance()
        check_gradient()
        check_gradcheck()
        check_changes()
        check_compile()
        check_errors(folder)
    done_testing()


main()
