# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta.sklearn.SparseDictionary passes scikit-learn's checks of an estimator, with sparse
and with dense codes.  It works in a grid search, gives the program's codes, and outlives the
process that fitted it.  It takes arrays of another library that follows the array API.  All
examples in the package's docstrings run."""
import doctest
import importlib
import os
import subprocess
import sys
import tempfile
import warnings

from peer import PACKAGE, peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok

os.environ.update(SAGITTA_PROGRAM=os.path.abspath(SAGITTA), SCIPY_ARRAY_API="1")
peer_needed("array_api_strict", "sklearn.utils.validation", "h5py", "scipy")

import pickle  # noqa: E402

import array_api_strict  # noqa: E402
import h5py  # noqa: E402
import joblib  # noqa: E402
import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from tap import peer_missing_all  # noqa: E402

OLDEST = (1, 6)
if tuple(map(int, sklearn.__version__.split(".")[:2])) < OLDEST:  # Debian 12 has an older one
    if os.environ.get("PEER_PYTHON", sys.executable) != sys.executable:
        os.execv(os.environ["PEER_PYTHON"], [os.environ["PEER_PYTHON"], *sys.argv])
    peer_missing_all(f"scikit-learn {sklearn.__version__} is too old: let PEER_PYTHON name a "
                     "Python with 1.6")

import sagitta  # noqa: E402
from sagitta.sklearn import SparseDictionary  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402


@claim("scikit-learn's check_estimator passes, with sparse codes and with dense ones")
def check_checks():
    for is_sparse in (True, False):
        for one in check_estimator(SparseDictionary(sparse_output=is_sparse), on_fail=None):
            ok(one["status"] == "passed", f"{one['check_name']}, sparse_output={is_sparse}: "
               f"{one['status']} {one['exception']}")

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")

OTHER = """
import sys
sys.path.insert(0, sys.argv[1])
import joblib, numpy as np, pickle
x = np.load("x.npy")
for model in pickle.load(open("model.pickle", "rb")), joblib.load("model.joblib"):
    codes = model.transform(x)
    assert codes.data.tobytes() == np.load("codes.npy").tobytes(), "codes"
    assert abs(model.score(x) - float(sys.argv[2])) == 0, "score"
    assert model.components_.shape == (48, x.shape[1]) and not hasattr(model, "run_"), "parts"
"""


def check_copies(model, x, codes):
    """Copies by pickle and joblib give the model's codes and score in another process, after the
    folder of the fit was removed.  So does a clone that is fitted."""
    score = model.score(x)
    with tempfile.TemporaryDirectory() as at:
        np.save(f"{at}/x.npy", x)
        np.save(f"{at}/codes.npy", codes.data)
        joblib.dump(model, f"{at}/model.joblib")
        with open(f"{at}/model.pickle", "wb") as f:
            pickle.dump(model, f)
        gone, model.run_ = model.run_.path, None
        ok(not os.path.exists(gone), "the folder is removed with its Run")
        done = subprocess.run([sys.executable, "-B", "-c", OTHER, os.path.abspath(PACKAGE),
                               repr(score)], cwd=at, capture_output=True, text=True)
        ok(done.returncode == 0, f"in another process: {done.stderr}")
    again = sklearn.base.clone(model).fit(x)
    ok((again.transform(x) != codes).nnz == 0 and model.score(x) == score, "a clone that is fitted")


@claim("codes, atoms and score are those of the program")
def check_values():
    x = h5py.File(ROWS)["rows"][:2048]
    model = SparseDictionary(48, n_nonzero_coefs=4, max_iter=3, random_state=1)
    codes = model.fit_transform(x)
    run = sagitta.fit(x, atoms=48, top_s=1, sweeps=3, seed=1)
    ok(np.array_equal(model.components_, run.dictionary.atoms), "atoms")
    ok(codes.dtype == np.float32 and (codes != run.codes).nnz == 0, "codes")
    far = abs(model.score(x) - run.metrics["explained_variance"])
    ok(far < 1e-5, f"explained variance, {far} away")
    check_copies(model, x, codes)
    model = SparseDictionary(48, n_nonzero_coefs=4, max_iter=3, random_state=1, find="codes")
    run = sagitta.fit(x, atoms=48, top_s=4, sweeps=3, seed=1, find="codes")
    ok((model.fit_transform(x) != run.codes).nnz == 0, "codes of a fit with as many atoms a row")
    model = SparseDictionary(48, max_iter=3, find="features")
    try:
        model.fit(x)
        ok(False, "find is taken")
    except ValueError as error:
        ok("not 'stable' or 'codes'" in str(error), f"another find: {error}")
    model = SparseDictionary(48, max_iter=3, random_state=1)
    found = GridSearchCV(model, {"n_nonzero_coefs": [1, 8]}, cv=2).fit(x)
    ok(found.best_params_ == {"n_nonzero_coefs": 8}, f"a grid search: {found.best_params_}")


class Shared:
    """Numbers that only DLPack can read."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    @property
    def shape(self):
        return self.array.shape


@claim("arrays of the array API give such arrays, and those of DLPack are taken, with the same "
       "bits")
def check_api():
    with h5py.File(ROWS) as f:
        x = f["rows"][:256].astype("f4")
    d = sagitta.fit(x, atoms=32, top_s=4, sweeps=1, holdout=0, progress=None).dictionary
    plain = d.support(x)
    strict = array_api_strict.asarray(x)
    for first, end in ((0, 1), (1, 8), (8, 256)):
        parts = d.support(strict[first:end, :])
        ok(all(type(part) is type(strict) for part in parts) and
           all(np.asarray(part).tobytes() == whole[first:end].tobytes()
               for part, whole in zip(parts, plain)), f"rows from {first} on")
    dense = d.encode(strict, format="dense")
    ok(type(dense) is type(strict) and type(d.decode(dense)) is type(strict), "dense, decoded")
    ok(all(a.tobytes() == b.tobytes() for a, b in zip(d.support(Shared(x)), plain)), "DLPack")
    ok(d.explained_variance(strict) == d.explained_variance(x), "explained variance")


@claim("every example of a docstring runs, as in `pytest --pyargs sagitta --doctest-modules`")
def check_examples():
    tried, missing = {}, []
    for name in sorted(os.listdir(os.path.dirname(sagitta.__file__))):
        if not name.endswith(".py"):
            continue
        try:
            module = importlib.import_module(f"sagitta.{name[:-3]}" if name != "__init__.py" else
                                             "sagitta")
        except ImportError as error:  # an optional package is missing, which other tests report
            missing.append(str(error))
            continue
        with warnings.catch_warnings():  # examples change the filters of warnings
            done = doctest.testmod(module)
        ok(not done.failed, f"{name}: {done.failed} of {done.attempted} fail")
        tried[name] = done.attempted
    with_some = {name for name, count in tried.items() if count}
    ok(with_some >= {"calls.py", "check.py", "dictionary.py", "memory.py", "sklearn.py"},
       f"{sorted(with_some)}, {missing}")


if __name__ == "__main__":
    check_examples()
    check_api()
    check_checks()
    check_values()
    done_testing()
