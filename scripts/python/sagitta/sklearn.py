# SPDX-License-Identifier: BSD-3-Clause
"""SparseDictionary: a dictionary as an estimator of scikit-learn."""
import numbers
import typing
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from . import calls
from .hints import Array
from .results import explained_variance

# atoms per row in the codes, divided by atoms per row in the fit
FITTED = {"stable": 4, "codes": 1}
# With fewer rows than this, the held-out tenth would be less than one window of 128 rows.  Then
# nothing is held out, and the fit is judged by its own rows.
FEW = 1280


class SparseDictionary(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sparse coding of rows, learned by `sagitta fit` and applied as by `sagitta encode`.

    n_components: the number of atoms; None: the smaller of 2 P and N.  n_nonzero_coefs: atoms per
    row; None: a tenth of P.  positive_code: codes are at least 0.  max_iter: the largest number of
    sweeps.  tol: the fit ends when the explained variance of the held-out rows gains less than this
    in five sweeps; with fewer than 1,280 rows none are held out, and the fitted rows decide.
    sparse_output: codes are a csr_array.  random_state: the seed; None: 0.  n_jobs: the number of
    threads; None or -1: as many as the program starts by itself.  find: 'stable' fits with a
    quarter of n_nonzero_coefs, so that other seeds find the same atoms; 'codes' fits with all of
    them, which explains a little more.

    After fit: components_ (K, P), of length 1; mean_ (P,); n_iter_, the number of sweeps;
    dictionary_, which transforms rows in this process; and run_, the Run.  A copy, by pickle or
    otherwise, has all of these except run_, whose files belong to the process that fitted.

    >>> import numpy as np, warnings
    >>> from sagitta.sklearn import SparseDictionary
    >>> warnings.simplefilter("ignore")
    >>> X = np.random.default_rng(0).standard_normal((500, 10))
    >>> SparseDictionary(20, n_nonzero_coefs=3, max_iter=3).fit_transform(X).shape
    (500, 20)
    """

    def __init__(self, n_components: typing.Optional[int] = None, *,
                 n_nonzero_coefs: typing.Optional[int] = None, positive_code: bool = True,
                 max_iter: int = 100, tol: float = 1e-4, sparse_output: bool = True,
                 random_state: typing.Any = None, n_jobs: typing.Optional[int] = None,
                 verbose: int = 0, find: str = "stable") -> None:
        self.n_components, self.n_nonzero_coefs = n_components, n_nonzero_coefs
        self.positive_code, self.max_iter, self.tol = positive_code, max_iter, tol
        self.sparse_output, self.random_state = sparse_output, random_state
        self.n_jobs, self.verbose, self.find = n_jobs, verbose, find

    def _seed(self):
        if self.random_state is None or isinstance(self.random_state, numbers.Integral):
            return self.random_state or 0
        return int(check_random_state(self.random_state).randint(2 ** 31 - 1))

    def _threads(self):
        return None if self.n_jobs in (None, -1) else self.n_jobs

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "run_"}

    def fit(self, X: Array, y: typing.Any = None) -> "SparseDictionary":
        """Learn the atoms from rows X (N, P); y is not used.  Returns self."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        n, p = X.shape
        atoms = min(2 * p, n) if self.n_components is None else self.n_components
        if self.find not in FITTED:
            raise ValueError(f"find is {self.find!r}, not 'stable' or 'codes'")
        top = max(1, p // 10) if self.n_nonzero_coefs is None else self.n_nonzero_coefs
        top = min(top, atoms)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as too few rows; run_.warnings has all of them
            self.run_ = calls.fit(
                X, atoms=atoms, find=self.find, top_s=-(-top // FITTED[self.find]),
                encode_s=top, holdout=0.1 if n >= FEW else 0.0,
                seed=self._seed(), sweeps=self.max_iter, tolerance=self.tol,
                codes="nonnegative" if self.positive_code else "signed",
                threads=self._threads(), verbose=self.verbose, progress=None)
        self.dictionary_ = self.run_.dictionary
        self.components_, self.mean_ = self.dictionary_.atoms, self.dictionary_.mean
        self.n_iter_ = int(self.run_.history["sweep"][-1])
        return self

    @property
    def _n_features_out(self):
        return len(self.components_)

    def transform(self, X: Array) -> typing.Any:
        """The codes (N, K) of rows X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        codes = self.dictionary_.encode(X, threads=self._threads())
        codes.sort_indices()
        return codes if self.sparse_output else codes.toarray()

    def inverse_transform(self, codes: typing.Any) -> np.ndarray:
        """The rows (N, P) that the codes (N, K) describe."""
        check_is_fitted(self)
        return codes @ self.components_ + self.mean_.astype(self.components_.dtype)

    def score(self, X: Array, y: typing.Any = None) -> float:
        """The explained variance of rows X."""
        return explained_variance(X, self.inverse_transform(self.transform(X)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
