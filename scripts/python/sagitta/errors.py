# SPDX-License-Identifier: BSD-3-Clause
"""What is raised."""


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
