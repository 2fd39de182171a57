# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta.sklearn.SparseDictionary passes scikit-learn's own checks of an estimator, with
sparse codes and dense ones, takes part in a grid search, and gives the program's codes."""
import os
import sys

from peer import peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok

peer_needed("sklearn.utils.validation", "h5py", "scipy")
os.environ.update(SAGITTA_PROGRAM=os.path.abspath(SAGITTA), SCIPY_ARRAY_API="1")

import h5py  # noqa: E402
import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from tap import peer_missing_all  # noqa: E402

OLDEST = (1, 6)
if tuple(map(int, sklearn.__version__.split(".")[:2])) < OLDEST:  # of Debian 12
    if os.environ.get("PEER_PYTHON", sys.executable) != sys.executable:
        os.execv(os.environ["PEER_PYTHON"], [os.environ["PEER_PYTHON"], *sys.argv])
    peer_missing_all(f"scikit-learn {sklearn.__version__}: PEER_PYTHON may name a Python with 1.6")

import sagitta  # noqa: E402
from sagitta.sklearn import SparseDictionary  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402


@claim("check_estimator, with sparse codes and with dense ones")
def check_checks():
    for is_sparse in (True, False):
        for one in check_estimator(SparseDictionary(sparse_output=is_sparse), on_fail=None):
            ok(one["status"] == "passed", f"{one['check_name']}, sparse_output={is_sparse}: "
               f"{one['status']} {one['exception']}")


@claim("codes, atoms and score are those of the program")
def check_values():
    x = h5py.File(os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5"))["rows"][:2048]
    model = SparseDictionary(48, n_nonzero_coefs=4, max_iter=3, random_state=1)
    codes = model.fit_transform(x)
    run = sagitta.fit(x, atoms=48, top_s=4, sweeps=3, seed=1)
    ok(np.array_equal(model.components_, run.dictionary.atoms), "atoms")
    ok(codes.dtype == np.float32 and (codes != run.codes).nnz == 0, "codes")
    far = abs(model.score(x) - run.metrics["explained_variance"])
    ok(far < 1e-5, f"explained variance, {far} away")
    found = GridSearchCV(model, {"n_nonzero_coefs": [1, 8]}, cv=2).fit(x)
    ok(found.best_params_ == {"n_nonzero_coefs": 8}, f"a grid search: {found.best_params_}")


if __name__ == "__main__":
    check_checks()
    check_values()
    done_testing()
