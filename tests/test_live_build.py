# SPDX-License-Identifier: BSD-3-Clause
"""Claim: in a build without ZeroMQ, such as that of clang in scripts/check, `sagitta serve` ends
with 69 and says what to install.  In a build with ZeroMQ it serves."""
import os
import tempfile

from tap import claim, done_testing, ok, sagitta


@claim("sagitta serve accepts clients, or without ZeroMQ names the package to install")
def check(folder):
    with open(os.path.join(os.environ.get("builddir", "."), "src", "config.h")) as f:
        has_zeromq = "#define HAVE_ZMQ 1" in f.read()
    done = sagitta("synth", "--n-rows", 10, "--columns", 4, "--atoms", 50, "--output", folder)
    ok(done.returncode == 0, f"a dictionary: {done.stderr}")
    done = sagitta("serve", "--dictionary", f"{folder}/dictionary.h5", "--listen", f"{folder}/l",
                   "--max-seconds", 0.01)
    code, text = (0, "accepts clients at") if has_zeromq else (69, "install libzmq3-dev")
    ok(done.returncode == code and text in done.stderr, f"{done.returncode} {done.stderr}")
    done = sagitta("serve", "--help")
    ok(done.returncode == 0 and "--backlog" in done.stdout, f"the help of serve: {done.returncode}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check(folder)
    done_testing()


main()
