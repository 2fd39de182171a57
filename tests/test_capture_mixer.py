# SPDX-License-Identifier: BSD-3-Clause
"""Claim: from the captures of capture_mixer.py, `sagitta harvest` makes the rows that the layer of
a hybrid model of Hugging Face transformers computes, and `sagitta fit` takes these rows.

The model is run with CHECK_FULL=1 only, because it takes seconds to load.  It needs PyTorch and
transformers, in the Python of the tests or in PEER_PYTHON."""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from mixer_data import make, reference, write
from peer import peer_needed
from tap import FULL, SOURCE, claim, done_testing, need, ok, sagitta

PROGRAM = os.path.join(SOURCE, "scripts", "python", "examples", "capture_mixer.py")
TOLERANCE = 2e-6  # of the largest value; ten times the largest difference seen


def example(*words):
    return subprocess.run([sys.executable, PROGRAM, *map(str, words)], capture_output=True,
                          text=True, timeout=600)


def harvested(at, capture, what):
    """Harvest a capture.  Its rows must be close to those that the capture names."""
    need(sagitta("harvest", "--capture", capture, "--output", f"{at}/rows.h5", "--force"), what)
    done = example("--check", f"{at}/rows.h5", "--output", capture)
    far = re.search(r"at most (\S+) of", done.stdout)
    ok(far and float(far[1]) <= TOLERANCE, f"{what}: {done.stdout}{done.stderr}")


@claim("--check compares harvested rows with those that the capture holds")
def check_check(at):
    objects, facts = make(np.random.default_rng(4), (30,))
    objects["context"] = reference((objects, facts))[0].astype(np.float32)
    harvested(at, write(f"{at}/c.h5", (objects, facts)), "right ones")
    objects["context"][3, 2] += 0.1
    done = example("--check", f"{at}/rows.h5", "--output", write(f"{at}/c.h5", (objects, facts)))
    far = re.search(r"at most (\S+) of", done.stdout)
    ok(far and float(far[1]) > 1000 * TOLERANCE,
       f"a wrong number is found: {done.stdout}{done.stderr}")


@claim("harvest gives the rows of a layer of a tiny random model, and fit takes them")
def model_check(at):
    done = example("--output", f"{at}/model.h5", "--count", 512, "--window", 32)
    if not ok(done.returncode == 0, f"capture: {done.stderr[-400:]}"):
        return
    harvested(at, f"{at}/model.h5", "the model's")
    need(sagitta("fit", "--rows", f"{at}/rows.h5", "--atoms", 16, "--top-s", 2, "--sweeps", 2,
                 "--output", f"{at}/fit"), "fit")
    done = example("--output", f"{at}/other.h5", "--layer", 1)
    ok(done.returncode == 1 and "the model has 1" in done.stderr, f"layer 1: {done.stderr[-200:]}")


def main():
    if FULL:
        peer_needed("torch", "transformers.models.qwen3_next")
    with tempfile.TemporaryDirectory() as at:
        check_check(at)
        if FULL:
            model_check(at)
    done_testing()


if __name__ == "__main__":
    main()
