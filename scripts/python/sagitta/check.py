# SPDX-License-Identifier: BSD-3-Clause
"""selftest(): does the installed package work, and compute the same bits as on other machines?"""
import hashlib
import warnings

import numpy as np

from . import calls, library
from .dictionary import Dictionary
from .errors import Error
from .program import program

N, K, P, TOP_S = 500, 96, 24, 6
# SHA-256 of the numbers of the atoms in all rows, followed by the codes; the same on every machine
EXPECTED = "0852a371f0171ada23de8c288bb9e02f7742a44a0448a1fa2e1e2562aa848d38"


def problem():
    """Rows and atoms that are the same on every machine.  They are made of whole numbers, a square
    root and divisions, which every library rounds in the same way."""
    def whole(n, step):
        i, j = np.arange(n)[:, None], np.arange(P)[None, :]
        return ((i * 7919 + j * j * step + i * i * j * 31) % 257 - 128).astype("f8")
    atoms = whole(K, 104729)
    return (whole(N, 65537) / 64).astype("f4"), \
        (atoms / np.sqrt((atoms ** 2).sum(1))[:, None]).astype("f4")


def digest(codes):
    return hashlib.sha256(codes.indices.astype("<i4").tobytes() +
                          codes.data.astype("<f4").tobytes()).hexdigest()


def compared(what, codes):
    found = digest(codes)
    if found != EXPECTED:
        raise Error(f"{what} makes codes of other bits than expected: their SHA-256 is "
                    f"{found}, not {EXPECTED}; report it, with the processor and the version")


def selftest() -> None:
    """Encode known rows by libsagitta, and by the program if there is one, and compare the bits
    with those of other machines.  Prints a line for the library and one for the program.  Raises
    sagitta.Error on a difference.

    >>> import sagitta
    >>> sagitta.selftest()  # doctest: +ELLIPSIS
    libsagitta encodes...
    """
    rows, atoms = problem()
    known = Dictionary.from_arrays(atoms, top_s=TOP_S, rounds=2)
    for threads in (1, 2):
        compared(library.path_of(), known.encode(rows, threads=threads))
    print(f"libsagitta encodes as it does everywhere ({library.path_of()})")
    try:
        found = program()
    except Error as error:
        print(f"jobs such as sagitta.fit() cannot run here: {error}")
        return
    with warnings.catch_warnings():
        # the program warns that these rows have a mean and the dictionary has none
        warnings.simplefilter("ignore")
        run = calls.encode(rows, atoms, top_s=TOP_S, rounds=2, progress=None)
    compared(found, run.codes)
    print(f"the program encodes as it does everywhere ({found})")
