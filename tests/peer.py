# SPDX-License-Identifier: BSD-3-Clause
"""Run a test under a Python that has what it is about: the one of the tests, or PEER_PYTHON."""
import importlib
import os
import sys

from tap import SOURCE, peer_missing_all

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


def peer_needed(*modules):
    """Go on if this Python has the modules; else begin again under PEER_PYTHON; else skip all, or
    fail where peers are wanted.  They are imported here and now: some take ten seconds, once."""
    if _has(modules):
        return
    peer = os.environ.get("PEER_PYTHON")
    if peer and peer != os.environ.get("PEER_BEGUN"):
        os.execve(peer, [peer, *sys.argv], {**os.environ, "PEER_BEGUN": peer})
    peer_missing_all(f"no {' or no '.join(modules)} here: PEER_PYTHON may name a Python that has "
                     "them")
