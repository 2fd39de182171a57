# SPDX-License-Identifier: BSD-3-Clause
"""Run a test with a Python that has the packages that the test needs: the Python of the tests, or
PEER_PYTHON."""
import importlib
import os
import sys

from tap import FULL, SOURCE, peer_missing_all, skip_all

PACKAGE = os.path.join(SOURCE, "scripts", "python")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True  # write no bytecode into the source tree


def _has(modules):
    try:
        for module in modules:
            importlib.import_module(module)
    except Exception:  # also errors of packages whose versions do not fit together
        return False
    return True


def peer_needed(*modules, missing=peer_missing_all):
    """Continue if this Python has the modules.  Otherwise start again under PEER_PYTHON.  If that
    does not have them either, skip all, or fail with REQUIRE_PEERS=1.  To see whether a module is
    there, it is imported, which may take ten seconds; a later import of it takes no time."""
    if _has(modules):
        return
    peer = os.environ.get("PEER_PYTHON")
    if peer and peer != os.environ.get("PEER_BEGUN"):
        os.execve(peer, [peer, *sys.argv], {**os.environ, "PEER_BEGUN": peer})
    missing(f"no {' or no '.join(modules)} here: PEER_PYTHON may name a Python that has them")


def _left_out(reason):
    """Packages of scripts/peers-full.txt may be missing, unless CHECK_FULL=1 is set."""
    if FULL:
        peer_missing_all(reason)
    skip_all(f"{reason}, as one of `CHECK_FULL=1 scripts/setup peers` has")


def peer_needed_full(*modules):
    """As peer_needed(), for modules of scripts/peers-full.txt."""
    peer_needed(*modules, missing=_left_out)
