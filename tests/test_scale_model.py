# SPDX-License-Identifier: BSD-3-Clause
"""Claim: doc/scale.md has every line that scripts/scale_model.py prints."""
import os
import subprocess
import sys

from tap import SOURCE, claim, done_testing, ok


@claim("each line that scale_model prints is in doc/scale.md")
def check_tables():
    done = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts/scale_model.py")],
                          capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line]
    with open(os.path.join(SOURCE, "doc/scale.md"), encoding="utf-8") as f:
        there = f.read()
    ok(done.returncode == 0 and len(lines) > 15, f"{len(lines)} lines {done.stderr[-300:]}")
    for line in lines:
        whole = f"\n{line}\n" if line.startswith("|") else line
        ok(whole in there, f"'{line}'")


check_tables()
done_testing()
