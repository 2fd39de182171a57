# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions and the warnings of the package."""


class Error(Exception):
    """A file is missing or damaged, or a job failed; the message says what to do.  code: the exit
    code of a job, or of a call of libsagitta, else None."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code

    def __reduce__(self):
        return type(self), (*self.args, self.code)


class InputError(Error, ValueError):
    """The program, or libsagitta, refused its input."""


class Warning(UserWarning):  # noqa: A001, as in the contract of the package
    """A result is computed correctly but may mislead; doc/mislead.md explains each case."""


class MassiveRows(Warning):
    """A few rows have most of the sum of squares."""


class Transposed(Warning):
    """There are fewer rows than columns."""


class TopS(Warning):
    """More atoms per row were asked for than there are."""


class NoMean(Warning):
    """The dictionary has no mean, but the rows have one."""


class NegativeVariance(Warning):
    """The codes describe the rows less well than their mean does."""


class FewHeldOut(Warning):
    """Too few rows were held out to measure how much is explained of unseen rows."""


class Minibatch(Warning):
    """The rows do not fit into memory, so that the atoms depend on which part of them is held."""


class FewRows(Warning):
    """There are fewer than ten rows for each atom to learn."""


class Scale(Warning):
    """The rows have other norms than those that the dictionary was fitted to."""


class DeadAtoms(Warning):
    """More than a tenth of the learned atoms occur in no row."""


class DenseAtoms(Warning):
    """More than a hundredth of the atoms occur in more than half of the rows."""


class NotConverged(Warning):
    """A fit reached its last sweep while it was still gaining more than its tolerance."""


WARNINGS = {"massive-rows": MassiveRows, "transposed": Transposed, "top-s": TopS, "no-mean": NoMean,
         "negative-variance": NegativeVariance, "few-held-out": FewHeldOut, "minibatch": Minibatch,
         "few-rows": FewRows, "scale": Scale, "dead-atoms": DeadAtoms, "dense-atoms": DenseAtoms,
         "not-converged": NotConverged}
