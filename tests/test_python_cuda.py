# SPDX-License-Identifier: BSD-3-Clause
"""Claim: tensors of PyTorch on a GPU are encoded on it, with the bits of the CPU, in the order of
their stream, and no row is copied to the host.  Without a GPU, the test uses memory of the host
instead, and checks what needs no GPU."""
import contextlib
import json
import os
import sys
import tempfile
import warnings

from peer import peer_needed
from tap import SAGITTA, claim, done_testing, ok, peer_missing_all, raised, same, skip

peer_needed("torch")
import numpy as np  # noqa: E402
import torch  # noqa: E402

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)
os.environ.setdefault("SAGITTA_LIBRARY",
                      os.path.join(os.path.dirname(os.path.abspath(SAGITTA)), "libsagitta.so"))

import sagitta  # noqa: E402, which is given its program
import sagitta.gpu as gpu  # noqa: E402
import sagitta.torch  # noqa: E402

IS_REAL = torch.cuda.is_available()
DEVICE = "cuda" if IS_REAL else "cpu"
N, K, P, S = 4500, 160, 40, 8  # more rows than libsagitta takes at a time
WAIT = 200_000_000  # clock ticks of a GPU: a tenth of a second
ASKED = os.environ.get("REQUIRE_GPU", "0") not in ("", "0")


def stand_in():
    """Use memory of the host in place of a GPU's."""
    gpu.is_on_gpu = torch.is_tensor
    gpu.place_of = lambda x: ({"device": "cpu", "gpu": 0}, None)
    torch.cuda.device = lambda device: contextlib.nullcontext()


def problem():
    """Rows of whole numbers, so that scores tie.  Some rows are 0, and some atoms are equal."""
    random = np.random.default_rng(5)
    atoms = random.integers(-2, 3, (K, P)).astype("f8")
    atoms[atoms.any(1) == 0] = 1
    atoms[K // 2:K // 2 + 9] = atoms[:9]
    rows = random.integers(-6, 7, (N, P)).astype("f4")
    rows[::97] = 0
    rows[1::2] += random.standard_normal((N // 2, P)).astype("f4") / 8
    return rows, atoms / np.linalg.norm(atoms, axis=1)[:, None], random.standard_normal(P)


def equal(found, wanted):
    """Are tensors on the device, with the bits of the arrays?"""
    return all(a.device.type == DEVICE and a.cpu().numpy().tobytes() == b.tobytes() and
               a.shape == b.shape for a, b in zip(found, wanted))


@claim("supports and codes have the CPU's bits for any signs, rounds, penalty, batches, types and "
       "strides")
def check_bits(rows, atoms, mean):
    x = torch.from_numpy(rows).to(DEVICE)
    for sign in False, True:
        for rounds, rho, s in (1, 0.0, S), (4, 0.5, S), (S, 0.0, S), (1, 0.0, 40):
            d = sagitta.Dictionary.from_arrays(atoms, mean, nonnegative=sign, top_s=s,
                                               rounds=rounds)
            want = d.support(rows, rho=rho)
            ok(equal(d.support(x, rho=rho), want), f"{sign}, {rounds} rounds, rho {rho}, s {s}")
            ok(equal(d.support(x[5:12], rho=rho), [a[5:12] for a in want]), "seven rows")
    for kind in torch.float16, torch.bfloat16, torch.float64:
        y = (torch.from_numpy(rows) * (1 + 1e-3)).to(kind)
        ok(equal(d.support(y.to(DEVICE)), d.support(y.float().numpy())), f"{kind}")
    d = sagitta.Dictionary.from_arrays(atoms, top_s=S)
    wide = torch.from_numpy(np.repeat(rows, 2, 1)).to(DEVICE)[:, ::2]
    want = d.support(rows)
    ok(not wide.is_contiguous() and equal(d.support(wide), want), "strides, and no mean")
    ok(equal(d.support(x.reshape(9, 500, P)), [a.reshape(9, 500, S) for a in want]), "(B, T, P)")
    ok(equal(d.support(x[3].requires_grad_()), [a[3] for a in want]), "one row")
    ok(equal(d.support(x[:0]), [a[:0] for a in want]), "no rows")
    ok((x.detach().cpu().numpy() == rows).all(), "the rows stay")


@claim("supports of more atoms, most of which the filter rules out, have the bits of the CPU")
def check_large():
    random = np.random.default_rng(6)
    atoms = random.standard_normal((8192 if IS_REAL else 512, 128))
    rows = random.standard_normal((2000, 128)).astype("f4")
    d = sagitta.Dictionary.from_arrays(atoms / np.linalg.norm(atoms, axis=1)[:, None], top_s=S)
    ok(equal(d.support(torch.from_numpy(rows).to(DEVICE)), d.support(rows)), f"{len(atoms)} atoms")


@claim("encode() gives a dense tensor on the device of the rows, or a csr_array with the same "
       "bits; a module gives them too")
def check_encode(rows, atoms, mean):
    x = torch.from_numpy(rows).to(DEVICE)
    d = sagitta.Dictionary.from_arrays(atoms, mean, nonnegative=True, top_s=S, rounds=4)
    ok(equal([d.encode(x, format="dense")], [d.encode(rows, format="dense")]), "dense")
    a, b = d.encode(x), d.encode(rows)
    ok(all(getattr(a, name).tobytes() == getattr(b, name).tobytes()
           for name in ("data", "indices", "indptr")), "csr")
    d = sagitta.Dictionary.from_arrays(atoms, nonnegative=True, top_s=S, rounds=4)
    module = sagitta.torch.Dictionary.of(d, compute="sagitta").to(DEVICE)
    ok(equal([module.support(x)[1]], [d.support(rows)[1]]), "a module")
    check_auto(d, rows, x)
    module.W_dec.data[:] = module.W_dec.data.flip(0).clone()
    d = sagitta.Dictionary.from_arrays(atoms[::-1], nonnegative=True, top_s=S, rounds=4)
    ok(equal([module.encode(x)], [d.encode(rows, format="dense")]), "atoms that changed")


def check_auto(d, rows, x):
    """A module without a setting uses libsagitta, or PyTorch if libsagitta cannot use the GPU,
    without a message.  If the atoms are trained, it uses PyTorch."""
    module = sagitta.torch.Dictionary.of(d).to(DEVICE)
    used, calls = gpu.support, []
    gpu.support = lambda *a, **k: calls.append(1) or used(*a, **k)
    ok(equal([module.support(x)[1]], [d.support(rows)[1]]) and calls, "libsagitta computes")
    gpu.support, number = used, x.device.index or 0
    gpu.REFUSED[number] = "none"
    found = module.support(x)[1]
    ok(found.device.type == DEVICE and bool(torch.isclose(
        found.cpu(), torch.from_numpy(d.support(rows)[1]), atol=1e-4).float().mean() > 0.99),
       "by PyTorch, where libsagitta cannot")
    gpu.REFUSED[number] = None
    module.W_dec.requires_grad_()
    ok(not module._is_exact(), "trained atoms")


@claim("errors for rows of a GPU have the same words as for rows of the host")
def check_errors(rows, atoms):
    d = sagitta.Dictionary.from_arrays(atoms, top_s=S)
    bad = torch.from_numpy(rows).to(DEVICE)
    bad[4321, 7] = torch.inf
    raised(sagitta.InputError, ["row 4321, column 7"], d.support, bad)
    huge = torch.full((3, P), 3e38).to(DEVICE)
    ones = sagitta.Dictionary.from_arrays(np.full((4, P), P ** -0.5), top_s=1)
    raised(sagitta.InputError, ["score of row 0"], ones.support, huge)
    raised(sagitta.InputError, [f"{P} columns"], d.support, bad[:, :5])
    raised(TypeError, ["int64"], d.support, bad.nan_to_num().long())
    ok(equal(d.support(bad[:9]), d.support(rows[:9])),
       "libsagitta still works after all of these errors")


@claim("no row is copied to the host or from it, by the library's count and PyTorch's profiler")
def check_copies(rows, atoms, mean):
    d = sagitta.Dictionary.from_arrays(atoms, mean, top_s=S, rounds=4)
    x = torch.from_numpy(rows).to(DEVICE)
    d.support(x)
    handle = d._handles.free[-1][1]
    before = handle.copied()
    ok(not IS_REAL or before[0] >= atoms.nbytes / 2, f"the atoms were copied: {before}")
    d.support(x)
    ok(d._handles.free[-1][1] is handle and handle.copied() == before, f"{handle.copied()}")
    if IS_REAL:
        check_profile(d, x)


def check_profile(d, x):
    """Copies between host and GPU are much smaller than the rows."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        d.support(x)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as at:
        profile.export_chrome_trace(f"{at}/trace.json")
        with open(f"{at}/trace.json", encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
    names = {event.get("name", "") for event in events}
    if "preprocess" not in names:
        skip(f"PyTorch's profiler sees no kernels here: {sorted(names)[:9]}")
        return
    copied = sum(int(event["args"].get("bytes", 0)) for event in events
                 if "DtoH" in event.get("name", "") or "HtoD" in event.get("name", ""))
    ok(copied < x.numel() / 8, f"{copied} bytes, the rows have {4 * x.numel()}")


@claim("libsagitta waits for rows that a stream is still to write, and leaves the caller's GPU "
       "current")
def check_streams(rows, atoms):
    if not IS_REAL:
        skip("there is no GPU")
        return
    d = sagitta.Dictionary.from_arrays(atoms, top_s=S)
    want, source = d.support(rows), torch.from_numpy(rows).cuda()
    for stream in torch.cuda.Stream(), torch.cuda.default_stream():
        x = torch.zeros_like(source)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(WAIT)
            x.copy_(source)
            found = d.support(x)
        ok(equal(found, want), f"{stream}")
    for number in range(torch.cuda.device_count()):
        other = d.support(source.to(f"cuda:{number}"))
        ok(other[0].device.index == number and equal(other, want) and
           torch.cuda.current_device() == 0, f"GPU {number}")


@claim("if a model holds half of a GPU's free memory, a fit on this GPU gives the CPU's bytes")
def check_beside(rows):
    if not IS_REAL:
        skip("there is no GPU")
        return
    model = torch.empty(torch.cuda.mem_get_info()[0] // 2, dtype=torch.uint8, device="cuda")
    x = torch.from_numpy(rows).cuda()
    with tempfile.TemporaryDirectory() as at, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for device, X in ("cuda", x), ("cpu", rows):
            sagitta.fit(X, atoms=64, top_s=4, sweeps=2, device=device, progress=None,
                        output=f"{at}/{device}")
        same(f"{at}/cuda", f"{at}/cpu", f"beside {model.numel()} bytes")


if ASKED and torch.version.cuda is None:
    peer_missing_all("this PyTorch has no CUDA: let PEER_PYTHON name a Python whose PyTorch has it")
if ASKED and not IS_REAL:
    ok(False, "a GPU for PyTorch, which REQUIRE_GPU asks for")
if not IS_REAL:
    stand_in()
print(f"# PyTorch {torch.__version__}, {torch.cuda.get_device_name() if IS_REAL else 'no GPU'}",
      file=sys.stdout)
warnings.simplefilter("error", sagitta.Warning)  # such as: rows are copied through the host
check_bits(*problem())
check_large()
check_encode(*problem())
check_errors(*problem()[:2])
check_copies(*problem())
check_streams(*problem()[:2])
check_beside(problem()[0])
done_testing()
