# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions and the warnings of the package."""


class Error(Exception):
    """A file is missing or damaged, or a job failed; the message says what to do.  code: the exit
    code of the job, or the code that a function of libsagitta returned; otherwise None."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code

    def __reduce__(self):
        return type(self), (*self.args, self.code)


class InputError(Error, ValueError):
    """The program, libsagitta or this package refused its input."""


class Warning(UserWarning):  # noqa: A001, users know it as sagitta.Warning
    """A result is computed correctly but may mislead; doc/mislead.md explains each case."""


class MassiveRows(Warning):
    """At most a tenth of the rows are massive (doc/mislead.md), and these have at least a quarter
    of the sum of squares of all rows."""


class Transposed(Warning):
    """There are fewer rows than columns."""


class TopS(Warning):
    """More atoms per row were asked for than the dictionary has."""


class NoMean(Warning):
    """The dictionary has no mean, and over half of the rows' sum of squares is due to their
    mean."""


class NegativeVariance(Warning):
    """The codes describe the rows less well than their mean does."""


class FewHeldOut(Warning):
    """Too few rows, or none, were held out to measure how much is explained of unseen rows."""


class Minibatch(Warning):
    """The rows do not fit into memory.  A fit then uses a part of them at a time, and its atoms
    depend on the size of the parts."""


class FewRows(Warning):
    """There are fewer than ten rows for each atom to learn."""


class Scale(Warning):
    """The median norm of the rows differs by a factor of three or more from that of the rows that
    the dictionary was fitted to."""


class DeadAtoms(Warning):
    """More than a tenth of the learned atoms occur in no row.  After `sagitta train` only its last
    rows count."""


class DenseAtoms(Warning):
    """More than a hundredth of the atoms occur in more than half of the rows, although the average
    atom occurs in at most a tenth of them."""


class NotConverged(Warning):
    """A fit reached its last sweep while it was still gaining more than its tolerance."""


WARNINGS = {"massive-rows": MassiveRows, "transposed": Transposed, "top-s": TopS, "no-mean": NoMean,
         "negative-variance": NegativeVariance, "few-held-out": FewHeldOut, "minibatch": Minibatch,
         "few-rows": FewRows, "scale": Scale, "dead-atoms": DeadAtoms, "dense-atoms": DenseAtoms,
         "not-converged": NotConverged}
