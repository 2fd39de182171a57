# SPDX-License-Identifier: BSD-3-Clause
"""Claim: tests that pass with the PyTorch of the tests' own Python also pass with that of
PEER_PYTHON, if it is another version.  scripts/check has the oldest and the newest."""
import os
import subprocess
import sys

from tap import claim, done_testing, ok, peer_missing_all

TESTS = (["test_python_torch.py"], ["test_faithfulness.py", "figures"],
         ["test_harvest.py", "torch"],
         ["test_python_interventions.py", "transformers", "transformer_lens"])
VERSION = "import importlib.metadata as m; print(m.version('torch'))"  # without importing it


def version_of(python):
    """The version of PyTorch in a Python; empty if it has none."""
    done = subprocess.run([python, "-c", VERSION], capture_output=True, text=True)
    return done.stdout.strip()


def main():
    peer = os.environ.get("PEER_PYTHON", "")
    newest = version_of(peer) if peer else ""
    if not newest:
        peer_missing_all("PyTorch is not installed: let PEER_PYTHON name a Python that has it")
    own = version_of(sys.executable)
    print(f"# PyTorch {own or 'of no version'} here, {newest} there")
    for name, *words in TESTS if newest != own else ():
        with claim(f"{name} passes with the PyTorch of PEER_PYTHON"):
            done = subprocess.run([peer, os.path.join(os.path.dirname(__file__), name), *words],
                                  capture_output=True, text=True)
            failed = [line for line in done.stdout.split("\n") if line.startswith("not ok")]
            ok(done.returncode == 0, f"PyTorch {newest}: {failed} {done.stderr[-300:]}")
    if newest == own:
        ok(True, f"the tests themselves have run with PyTorch {own}")
    done_testing()


if __name__ == "__main__":
    main()
