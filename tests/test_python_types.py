# SPDX-License-Identifier: BSD-3-Clause
"""Claim: typical code that uses the Python package passes mypy --strict, and mypy finds the common
mistakes."""
import os
import subprocess
import sys
import tempfile

from peer import PACKAGE, peer_needed
from tap import SOURCE, claim, done_testing, ok

peer_needed("mypy", "numpy")

WRONG = {  # a line: words of mypy's message
    "sagitta.fit(x, atoms='many')": "arg-type",
    "sagitta.fit(x)": "call-arg",
    "sagitta.open(3)": "arg-type",
    "sagitta.compare(x, x).pw_mc": "attr-defined",
    "run.dictionary.save(x, overwrite='yes')": "arg-type",
    "run.dictionary.support(x, top_k=3)": "call-arg",
    "run.top_rows('river')": "arg-type",
    "sagitta.Features(run).search('river').top()": "attr-defined",
    "sagitta.explained_variance(x)": "call-arg",
    "sagitta.selftest() + 1": "func-returns-value",
    "sagitta.nothing": "attr-defined"}


def checked(at, path):
    """Run mypy on a file, as if the package were installed."""
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
                           "--cache-dir", f"{at}/cache", path], capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": os.path.abspath(PACKAGE)})


with tempfile.TemporaryDirectory() as at:
    with claim("type checks of tests/python/typed.py pass"):
        ok(os.path.exists(os.path.join(PACKAGE, "sagitta", "py.typed")), "py.typed")
        done = checked(at, os.path.join(SOURCE, "tests", "python", "typed.py"))
        ok(done.returncode == 0, done.stdout + done.stderr)
    with claim("type checks find mistakes, each at its line"):
        with open(f"{at}/wrong.py", "w", encoding="utf-8") as f:
            f.write("import typing\nimport sagitta\nx: typing.Any = 1\n"
                    "run = sagitta.open('run')\n" + "".join(f"{line}\n" for line in WRONG))
        done = checked(at, f"{at}/wrong.py")
        for i, (line, code) in enumerate(WRONG.items()):
            ok(any(f"wrong.py:{i + 5}: error" in said and f"[{code}]" in said
                   for said in done.stdout.splitlines()), f"{line}: {done.stdout}")
done_testing()
