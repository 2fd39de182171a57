# SPDX-License-Identifier: BSD-3-Clause
"""libsagitta by ctypes: codes of rows in this process, with the same bits as `sagitta encode`.

src/library/library.h documents its functions.  The library is loaded at the first call, and the GIL
is released while it computes."""
import contextlib
import ctypes
import functools
import os
import threading

import numpy as np

from .errors import Error, InputError
from .program import HERE, program

ABI = 2
SMALL = 1 << 23  # a call with fewer multiply-adds is done before other threads would have started
WAITING = 4  # the number of idle handles of a dictionary that are kept
NAME = "libsagitta.so"
NEAR = ("", "../../../../lib/sagitta", "../../../../lib64/sagitta", "../../../build")  # from HERE
PROGRAMS = ("", "../lib/sagitta", "../lib64/sagitta")  # relative to the folder of the program
FLOAT, DOUBLE = (ctypes.POINTER(kind) for kind in (ctypes.c_float, ctypes.c_double))
INT, LONG = (ctypes.POINTER(kind) for kind in (ctypes.c_int32, ctypes.c_int64))


class Options(ctypes.Structure):
    """struct sagitta_options."""
    _fields_ = [("abi", ctypes.c_int32), ("k", ctypes.c_int32), ("p", ctypes.c_int32),
                ("atoms", FLOAT), ("mean", DOUBLE), ("top_s", ctypes.c_int32),
                ("rounds", ctypes.c_int32), ("nonnegative", ctypes.c_int32),
                ("rho", ctypes.c_double), ("threads", ctypes.c_int32),
                ("variant", ctypes.c_char_p), ("filter", ctypes.c_char_p),
                ("device", ctypes.c_char_p), ("gpu", ctypes.c_int32),
                ("encoder", ctypes.c_char_p), ("top", ctypes.c_int32),
                ("centered", ctypes.c_int32), ("rescaled", ctypes.c_int32),
                ("solves", ctypes.c_int32), ("weights", FLOAT), ("bias", FLOAT),
                ("threshold", FLOAT), ("norm", FLOAT), ("relative", ctypes.c_int32),
                ("floor", ctypes.c_double), ("n_cuts", ctypes.c_int32), ("cuts", FLOAT)]


class Codes(ctypes.Structure):
    """struct sagitta_codes."""
    _fields_ = [("n", ctypes.c_int64), ("start", LONG), ("atoms", INT), ("score", FLOAT),
                ("codes", FLOAT)]


def path_of():
    """The path of the library: SAGITTA_LIBRARY, else beside this package, else beside the
    program."""
    named = os.environ.get("SAGITTA_LIBRARY")
    if named:
        return named
    folders = [os.path.join(HERE, near) for near in NEAR]
    try:
        own = os.path.dirname(os.path.realpath(program()))
        folders += [os.path.join(own, near) for near in PROGRAMS]
    except Error:  # the library works without the program
        pass
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, NAME))
        if os.path.exists(path):
            return path
    raise Error(f"there is no {NAME} beside this package or the program: install the wheel of "
                "scripts/wheel, have `sagitta` in PATH, or name the library in SAGITTA_LIBRARY")


@functools.lru_cache(maxsize=None)
def loads():
    """Is there a library with the version that this package knows?"""
    try:
        return bool(library())
    except Error:
        return False


@functools.lru_cache(maxsize=None)
def library():
    path = path_of()
    try:
        loaded = ctypes.CDLL(path)
        loaded.sagitta_message.restype = ctypes.c_char_p
        found = loaded.sagitta_abi()
    except (OSError, AttributeError) as error:
        raise Error(f"'{path}' is no {NAME} that can be loaded: {error}: give another by "
                    "SAGITTA_LIBRARY") from error
    if found != ABI:
        raise Error(f"'{path}' has ABI {found}, this package knows {ABI}: install the package "
                    "that belongs to it")
    loaded.sagitta_open.argtypes = [ctypes.POINTER(Options), ctypes.POINTER(ctypes.c_void_p)]
    loaded.sagitta_encode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                      ctypes.POINTER(Codes)]
    loaded.sagitta_support.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                       *[ctypes.c_void_p] * 3]
    loaded.sagitta_copied.argtypes = [ctypes.c_void_p, LONG]
    loaded.sagitta_copied.restype = None
    loaded.sagitta_close.argtypes = [ctypes.c_void_p]
    loaded.sagitta_close.restype = None
    return loaded


def checked(code):
    """Raise the library's message if a call failed."""
    if code:
        text = library().sagitta_message().decode(errors="replace")
        raise (InputError if code in (2, 65) else Error)(text, code)


class Forked:
    """Is this a forked child?  The threads of OpenMP do not exist in it, and OpenMP would wait for
    them for ever; with one thread it needs no others, so a child computes with one."""
    is_child = False


def _forked():
    Forked.is_child = True


os.register_at_fork(after_in_child=_forked)


def threads_of(asked, work):
    """The number of threads for a call: the number asked for, else OMP_NUM_THREADS, else the cores
    of this process.  It is 1 in a forked child, and for little work if no number is asked for."""
    if Forked.is_child or (asked is None and work < SMALL):
        return 1
    if asked is not None:
        return asked
    named = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(named) if named.isdigit() and int(named) > 0 else len(os.sched_getaffinity(0))


class Handle:
    """A struct sagitta; only one thread may use it at a time."""

    def __init__(self, options):
        self.kept = []  # arrays that the library refers to
        self.own = ctypes.c_void_p()
        self.close = library().sagitta_close
        given = Options(abi=ABI, **{name: self._value(name, value)
                                    for name, value in options.items() if value is not None})
        checked(library().sagitta_open(ctypes.byref(given), ctypes.byref(self.own)))

    def _value(self, name, value):
        kind = dict(Options._fields_)[name]
        if kind not in (FLOAT, DOUBLE):
            return value.encode() if isinstance(value, str) else value
        array = np.ascontiguousarray(value, np.float32 if kind is FLOAT else np.float64)
        self.kept.append(array)
        return array.ctypes.data_as(kind)

    def __del__(self):
        if getattr(self, "own", None):
            self.close(self.own)

    def support(self, n, x, stream, atoms, codes):
        """Find supports and codes.  The arguments are addresses: x (n, P), float32; a stream; and
        the outputs atoms and codes (n, s), int32 and float32.  All are contiguous and in the memory
        of the handle's device."""
        checked(library().sagitta_support(self.own, x, n, stream, atoms, codes))

    def copied(self):
        """The bytes copied to the GPU so far, and those copied from it."""
        both = (ctypes.c_int64 * 2)()
        library().sagitta_copied(self.own, both)
        return tuple(both)

    def encode(self, x):
        """(start, atoms, scores, codes) of x (n, P), which is float32 and contiguous."""
        found = Codes()
        checked(library().sagitta_encode(self.own, x.ctypes.data, len(x), ctypes.byref(found)))
        start = np.ctypeslib.as_array(found.start, (len(x) + 1,)).copy()
        entries = int(start[-1])
        if not entries:
            return start, np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32)
        return (start, *(np.ctypeslib.as_array(pointer, (entries,)).copy()
                         for pointer in (found.atoms, found.score, found.codes)))


class Handles:
    """The handles of one dictionary, by their options.  Each thread takes a handle of its own while
    it encodes.  Only the last few idle handles are kept, because each holds a copy of the atoms."""

    def __init__(self):
        # (key, handle), the most recently used one last
        self.lock, self.free = threading.Lock(), []

    def __reduce__(self):  # a copy starts without open handles
        return Handles, ()

    @contextlib.contextmanager
    def taken(self, options, threads, n):
        """A handle for n rows, while the block runs.  If the block fails, the handle is closed.
        options: the members of struct sagitta_options."""
        work = n * options["k"] * options["p"]
        options = dict(options, threads=threads_of(threads, work))
        key = (os.getpid(), *(value for value in options.values()
                              if not isinstance(value, np.ndarray)))
        with self.lock:
            at = next((i for i, one in enumerate(self.free) if one[0] == key), None)
            handle = None if at is None else self.free.pop(at)[1]
        handle = handle or Handle(options)
        yield handle
        with self.lock:
            self.free.append((key, handle))
            dropped = self.free[:-WAITING]
            del self.free[:-WAITING]
        del dropped  # closes them, after the lock is released

    def encode(self, options, threads, x):
        """As Handle.encode()."""
        with self.taken(options, threads, len(x)) as handle:
            return handle.encode(x)
