# SPDX-License-Identifier: BSD-3-Clause
"""Run a test with a Python that has the packages that it tests: the one of the tests, or
PEER_PYTHON."""
import importlib
import os
import sys

from tap import FULL, SOURCE, peer_missing_all, skip_all

PACKAGE = os.path.join(SOURCE, "scripts", "python")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True  # the source tree stays as it is


def _has(modules):
    try:
        for module in modules:
            importlib.import_module(module)
    except Exception:  # a package and what it needs may be of versions that do not fit
        return False
    return True


def peer_needed(*modules, missing=peer_missing_all):
    """Go on if this Python has the modules; else begin again under PEER_PYTHON; else skip all, or
    fail where peers are wanted.  They are imported here and now: some take ten seconds, once."""
    if _has(modules):
        return
    peer = os.environ.get("PEER_PYTHON")
    if peer and peer != os.environ.get("PEER_BEGUN"):
        os.execve(peer, [peer, *sys.argv], {**os.environ, "PEER_BEGUN": peer})
    missing(f"no {' or no '.join(modules)} here: PEER_PYTHON may name a Python that has them")


def _left_out(reason):
    """What scripts/peers-full.txt names may be missing, unless CHECK_FULL=1 asks for it."""
    if FULL:
        peer_missing_all(reason)
    skip_all(f"{reason}, as one of `CHECK_FULL=1 scripts/setup peers` has")


def peer_needed_full(*modules):
    """The same of modules of scripts/peers-full.txt."""
    peer_needed(*modules, missing=_left_out)
