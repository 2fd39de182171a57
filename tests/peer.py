# SPDX-License-Identifier: BSD-3-Clause
"""Run a test under a Python that has what it is about: the one of the tests, or PEER_PYTHON."""
import os
import subprocess
import sys

from tap import SOURCE, peer_missing_all

PACKAGE = os.path.join(SOURCE, "scripts", "python")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True  # the source tree stays as it is


def _has(python, modules):
    done = subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True)
    return done.returncode == 0


def peer_needed(*modules):
    """Go on if this Python has the modules; else begin again under PEER_PYTHON; else skip all, or
    fail where peers are wanted."""
    peer = os.environ.get("PEER_PYTHON")
    if _has(sys.executable, modules):
        return
    if peer and peer != sys.executable and _has(peer, modules):
        os.execv(peer, [peer, *sys.argv])
    peer_missing_all(f"no {' or no '.join(modules)} here: PEER_PYTHON may name a Python that has "
                     "them")
