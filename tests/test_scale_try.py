# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if the rate of each rank's storage is limited, the time of an encode by all ranks is 0.7
to 1.4 times the prediction of scripts/scale_model.py.  If ranks are not held to the rate,
scripts/scale_try reports a ratio outside of this range."""
import os
import subprocess
import sys

from tap import SOURCE, claim, done_testing, ok, skip_all

TRY = os.path.join(SOURCE, "scripts/scale_try")
BUILD = os.environ["builddir"]


def table(*words):
    done = subprocess.run([sys.executable, TRY, "--build", BUILD, "--rows", "16384", *words],
                          capture_output=True, text=True, timeout=300)
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    return done, [tuple(map(float, line)) for line in lines]


@claim("two and four ranks take 0.7 to 1.4 times the predicted time")
def check_ratios():
    tries = []
    for _ in range(3):  # other programs may disturb one try
        done, lines = table("--ranks", "2,4", "--rate", "5e5")
        tries.append(f"{done.stdout} {done.stderr}")
        if done.returncode == 0 and [line[0] for line in lines] == [2, 4]:
            break
    ok(done.returncode == 0 and all(0.7 <= line[3] <= 1.4 for line in lines), " ".join(tries))


@claim("if ranks work faster than the given rate, this is reported")
def check_seen():
    done, lines = table("--ranks", "2", "--rate", "5e5", "--hold", "5e8")
    ok(done.returncode == 1 and lines and lines[0][3] < 0.7, f"{done.stdout} {done.stderr}")


if os.environ.get("SANITIZED"):
    skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
check_ratios()
check_seen()
done_testing()
