# SPDX-License-Identifier: BSD-3-Clause
"""Test Anything Protocol for Python tests, and how to run the program under test."""
import os
import subprocess
import sys

SAGITTA = os.path.join(os.environ.get("builddir", "."), "sagitta")
SOURCE = os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), ".."))
_count = _failed = 0


def ok(good, text):
    global _count, _failed
    _count += 1
    _failed += not good
    text = " / ".join(str(text).split("\n"))  # else the report would keep its first line alone
    print(f"{'' if good else 'not '}ok {_count} - {text}", flush=True)
    return bool(good)


def skip(reason):
    global _count
    _count += 1
    print(f"ok {_count} # SKIP {reason}", flush=True)


def gpu_present():
    """Is there a GPU?  If not this counts a skip, or a failure with REQUIRE_GPU=1."""
    probe = sagitta("bench", "route", "--device", "cuda", "--n-rows", 1, "--atoms", 2, "--columns",
        1, "--repeats", 1)
    if probe.returncode == 0:
        return True
    if os.environ.get("REQUIRE_GPU", "0") not in ("", "0"):
        ok(False, f"a GPU, which REQUIRE_GPU asks for: {probe.stderr.strip()}")
    else:
        skip("there is no GPU")
    return False


def skip_all(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def done_testing():
    print(f"1..{_count}")
    sys.exit(1 if _failed else 0)


def sagitta(*words, ranks=0, timeout=300):
    """Run the program, under mpirun when ranks > 0; returns the completed process.

    mpirun 4.1 sleeps for two seconds between two signals to a rank that is gone; several ranks may
    need them."""
    command = [SAGITTA, *map(str, words)]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if ranks == 1:
        environment["OMPI_MCA_odls_base_sigkill_timeout"] = "0"
    if ranks:
        launcher = os.environ.get("MPIEXEC", "mpirun").split()
        command = [*launcher, "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
