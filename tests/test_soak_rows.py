# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `tests/soak_faults --only rows` finds a planted fault with each defect of its rows, and
finds none if none is planted."""
import argparse
import itertools
import os
import random
import subprocess
import tempfile

import soak_rows
from jobs import environment
from soak_data import COMMANDS, Command
from soak_try import OUTCOMES, WRONG, Try
from tap import SAGITTA, SOURCE, claim, done_testing, ok

PLANTED = os.path.join(SOURCE, "tests", "soak_planted")
PLANT = {soak_rows.REFUSE: "accepts", soak_rows.SAME: "scales", soak_rows.EITHER: "nan"}
SEED = 1


class Light:
    """The parts of soak_data.Data that a try of rows needs."""

    def __init__(self, folder):
        self.folder, self.environment = folder, environment()
        self.commands = {"encode": Command("encode", *COMMANDS["encode"])}
        subprocess.run([SAGITTA, "synth", "--n-rows", "150", "--atoms", "12", "--columns", "16",
                        "--top-s", "3", "--start-cosine", "0.8", "--quiet", "--output",
                        os.path.join(folder, "a", "in")], env=self.environment, check=True)

    def at(self, version, name):
        return os.path.join(self.folder, version, name)


def number_of(name):
    """The first try that encodes rows with this defect on one rank."""
    for number in itertools.count():
        r = random.Random(f"{SEED} {number}")
        if r.choice(sorted(soak_rows.JOBS)) == "encode" and \
                r.choice(sorted(soak_rows.DEFECTS.items()))[0] == name:
            return number


def wrongs(data, name, planted):
    os.environ.update(PLANTED=planted, SAGITTA=os.path.abspath(SAGITTA))
    data.environment = environment()
    program = os.path.abspath(PLANTED if planted else SAGITTA)
    options = argparse.Namespace(seed=SEED, sagitta=program, fault=None, patience=60,
                                 mpirun=os.environ.get("MPIEXEC", "mpirun").split())
    number = number_of(name)
    t = Try(data, number, options, f"{data.folder}/{name}-{planted}".replace(" ", "-"))
    soak_rows.rows(t)
    return [text for outcome, text in t.verdicts if outcome == OUTCOMES.index(WRONG)]


with tempfile.TemporaryDirectory() as folder:
    DATA = Light(folder)
    for defect, (verdict, _) in sorted(soak_rows.DEFECTS.items()):
        with claim(f"{defect}: a planted fault is found, and without one nothing is"):
            plant = "crashes" if defect == "no rows" else PLANT[verdict]
            found = wrongs(DATA, defect, plant)
            ok(found, f"{plant}: nothing was found")
            ok(not (found := wrongs(DATA, defect, "")), f"none planted: {found}")
    with claim("soak_rows finds a file that is left behind, an input that changes and a wrong "
               "refusal"):
        for plant in "litters", "changes", "refuses":
            ok(wrongs(DATA, "float64", plant), plant)
done_testing()
