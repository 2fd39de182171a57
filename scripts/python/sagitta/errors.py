# SPDX-License-Identifier: BSD-3-Clause
"""What is raised, and what is warned of."""


class Error(Exception):
    """A file is missing or not what it should be, or a job failed; the message says what to do.
    code: the exit code of a job, or of a call of libsagitta, else None."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code

    def __reduce__(self):
        return type(self), (*self.args, self.code)


class InputError(Error, ValueError):
    """The program, or libsagitta, refused what it was given."""


class Warning(UserWarning):  # noqa: A001, as in the contract of the package
    """What is computed rightly, and may mislead; doc/mislead.md explains each."""


class MassiveRows(Warning):
    """A few rows have most of the squares."""


class Transposed(Warning):
    """Fewer rows than columns."""


class TopS(Warning):
    """More atoms a row than there are."""


class NoMean(Warning):
    """The dictionary brings no mean, and rows have one."""


class NegativeVariance(Warning):
    """Rows are described worse than by their mean."""


class FewHeldOut(Warning):
    """Too few rows were held out to tell what is explained of unseen ones."""


class Minibatch(Warning):
    """Rows do not fit in memory: atoms depend on the part that is held."""


class FewRows(Warning):
    """Fewer than ten rows for each atom that is learned."""


class Scale(Warning):
    """Rows have other norms than those that the dictionary was fitted to."""


class DeadAtoms(Warning):
    """More than a tenth of the atoms that were learned are in no row."""


class DenseAtoms(Warning):
    """More than a hundredth of the atoms are in more than half of the rows."""


class NotConverged(Warning):
    """The sweeps of a fit ended while it gained more than its tolerance."""


WARNINGS = {"massive-rows": MassiveRows, "transposed": Transposed, "top-s": TopS, "no-mean": NoMean,
         "negative-variance": NegativeVariance, "few-held-out": FewHeldOut, "minibatch": Minibatch,
         "few-rows": FewRows, "scale": Scale, "dead-atoms": DeadAtoms, "dense-atoms": DenseAtoms,
         "not-converged": NotConverged}
