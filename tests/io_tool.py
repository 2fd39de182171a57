# SPDX-License-Identifier: BSD-3-Clause
"""Functions by which Python tests of src/io call tests/io_tool."""
import os
import subprocess

TOOL = os.path.join(os.environ.get("builddir", "."), "tests", "io_tool")


def tool(*words, memory=None, threads=1):
    """Run io_tool, with `threads` spare threads.  A signal or a hang gives a negative return
    code."""
    command = [TOOL, *map(str, words)]
    if memory and not os.environ.get("SANITIZED"):  # sanitizers take terabytes of address space
        command = ["sh", "-c", f"ulimit -v {memory >> 10}; exec \"$@\"", "sh", *command]
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60,
                              env=dict(os.environ, SPARE=str(threads)))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -14, "", "hangs")
