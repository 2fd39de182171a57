# SPDX-License-Identifier: BSD-3-Clause
"""Claim: under `python -OO`, which removes assertions and docstrings, the Python package gives the
same values, errors and warnings."""
import ast
import glob
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from peer import PACKAGE
from tap import SAGITTA, SOURCE, claim, done_testing, ok, peer_missing

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
GONE = {"__debug__", "__doc__"}  # they depend on -O and -OO
TOUR = """
import hashlib, os, pickle, sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np, sagitta
x = np.load("x.npy")

def told(name, call, *rest, **more):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call(*rest, **more)
        except BaseException as error:
            value = f"{type(error).__name__}: {error}"
    said = sorted(f"{w.category.__name__}: {w.message}" for w in caught)
    value = value.codes if isinstance(value, sagitta.Run) else value
    if hasattr(value, "indptr"):
        value = [value.data, value.indices, value.indptr]
    data = value.encode() if isinstance(value, str) else pickle.dumps(value)
    shown = value if isinstance(value, (str, float)) else hashlib.sha256(data).hexdigest()
    print(name, shown, *said)
    return value

HOW = {"atoms": 48, "top_s": 4, "sweeps": 2, "progress": None}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    run = sagitta.fit(x, **HOW)
d = run.dictionary
told("codes", lambda: run.codes)
told("evaluate", lambda: sagitta.evaluate(x, run)["explained_variance"])
told("batches", lambda: sagitta.fit((x[i:i + 100] for i in range(0, len(x), 100)), **HOW).codes)
told("support", d.support, x)
told("encode", d.encode, x)
told("decode", d.decode, d.encode(x))
told("variance", d.explained_variance, x)
told("compare", lambda: sagitta.compare(run, sagitta.fit(x, seed=1, **HOW)).pw_mcc)
told("page", lambda: sagitta.Features(run, np.arange(len(x)), [f"w{i}" for i in range(len(x))]
                                      )[3]._repr_html_())
told("selftest", sagitta.selftest)
for name, call, rest, more in (
        ("none", sagitta.fit, [np.ones(9)], {"atoms": 2}),
        ("whole", sagitta.fit, [np.ones((9, 3), int)], {"atoms": 2}),
        ("unknown", sagitta.fit, [x], {"atoms": 2, "top_z": 1}),
        ("mask", sagitta.fit, [x], {"atoms": 2, "mask": [1]}),
        ("refused", sagitta.fit, [x[:0]], {"atoms": 2, "progress": None}),
        ("few", sagitta.fit, [x[:200]], dict(HOW, holdout=0)),
        ("width", d.encode, [x[:, :5]], {}), ("top", d.encode, [x], {"top_s": 0}),
        ("norm", lambda: sagitta.Dictionary.from_arrays(2 * d.atoms).encode(x), [], {}),
        ("atoms", sagitta.Dictionary.from_arrays, [x[0]], {}),
        ("codes", d.decode, [x], {}), ("empty", sagitta.empty, [(3,)], {}),
        ("rows", sagitta.explained_variance, [x, x[:3]], {}),
        ("folder", sagitta.open, ["none"], {}), ("ends", d.save, ["d.npy"], {}),
        ("export", sagitta.export, [d, "out"], {"to": "none"})):
    told(name, call, *rest, **more)
try:
    import torch, sagitta.torch as st
except ImportError:
    print("lacks torch")
else:
    m = st.Dictionary.of(d)
    told("module", lambda: m.encode(torch.from_numpy(x)).numpy())
    model = torch.nn.Sequential(torch.nn.Identity())
    for name, make in (("steer", lambda: st.steer(model, "0", m, {3: 2.0}, "set")),
                       ("ablate", lambda: st.ablate(model, "0", m, [99])),
                       ("mode", lambda: st.steer(model, "0", m, {3: 2.0}, "times"))):
        def changed(make=make):
            with make():
                return model(torch.from_numpy(x)).numpy()
        told(name, changed)
    told("no norm", st.Dictionary, torch.ones(3, 3))
    told("no rows", m.encode, torch.ones(3, 3, dtype=torch.complex64))
try:
    from sagitta.sklearn import SparseDictionary
except ImportError:
    print("lacks scikit-learn")
else:
    told("estimator", lambda: SparseDictionary(48, max_iter=2).fit_transform(x))
    told("find", SparseDictionary(48, find="none").fit, x)
print("optimized", sys.flags.optimize, sagitta.fit.__doc__ is None)
"""


@claim("no line of the package has an assertion or needs a docstring")
def check_lines():
    paths = glob.glob(os.path.join(PACKAGE, "**", "*.py"), recursive=True)
    ok(len(paths) > 25, f"{len(paths)} files")
    for path in paths:
        own = os.path.relpath(path, PACKAGE)
        if own.startswith("examples"):  # programs whose --help is their docstring
            continue
        with open(path, encoding="utf-8") as f:
            for node in ast.walk(ast.parse(f.read())):
                name = getattr(node, "id", None) or getattr(node, "attr", None)
                ok(not isinstance(node, ast.Assert) and name not in GONE,
                   f"{own}, line {getattr(node, 'lineno', 0)}")


def tour(at, *words):
    """Run the tour with the Python that has most of the optional packages.  Returns its output."""
    python = os.environ.get("PEER_PYTHON", sys.executable)
    done = subprocess.run([python, "-B", *words, "-c", TOUR, os.path.abspath(PACKAGE)],
                          cwd=at, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "SAGITTA_PROGRAM": os.path.abspath(SAGITTA)})
    ok(done.returncode == 0 and not done.stderr, f"{words}: {done.stderr[-600:]}")
    return done.stdout.replace(at, "").splitlines()


@claim("with `python -OO` values, errors and warnings are the same")
def check_tour(at):
    with h5py.File(ROWS) as f:
        np.save(f"{at}/x.npy", f["rows"][:1024])
    plain, optimized = tour(at), tour(at, "-OO")
    for line in plain:
        if line.startswith("lacks"):
            peer_missing(f"Python {line}: let PEER_PYTHON name one that has it")
    ok(len(plain) > 24 and plain[-1] == "optimized 0 False" and
       optimized[-1:] == ["optimized 2 True"], f"{plain[-1:]} {optimized[-1:]}")
    for was, now in zip(plain[:-1], optimized):
        ok(was == now, f"{was}; -OO: {now}")


check_lines()
with tempfile.TemporaryDirectory() as at:
    check_tour(at)
done_testing()
