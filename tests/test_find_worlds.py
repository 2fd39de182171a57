# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `sagitta fit --find features` finds the features of data that `synth` generates: codes of
unseen rows fire where the features do, and atoms point in their directions.  No recipe was tuned on
the two data sets without trees; the larger one runs only with CHECK_FULL=1.  With trees, each
feature that has children fires together with one of them, which limits what can be found."""
import json
import tempfile

from tap import FULL, claim, done_testing, need, ok, sagitta
from train_place import Place


def truth_of(p, world, rows, find, encode):
    """What `evaluate --truth` prints for unseen rows of a world."""
    make = ["synth", "--kind", "world", *world, "--force"]
    unseen = ["--rows", p.at("unseen", "rows.h5")]
    need(sagitta(*make, "--n-rows", rows, "--output", p.at("world")), "synth")
    need(sagitta(*make, "--first-row", 1 << 20, "--n-rows", 8192, "--output", p.at("unseen")),
         "synth, unseen")
    need(sagitta("fit", "--find", "features", "--rows", p.at("world", "rows.h5"), *find,
                 "--threads", 2, "--force", "--output", p.at("found"), timeout=900), "fit")
    need(sagitta("encode", *unseen, "--encoder", p.at("found"), *encode, "--force", "--output",
                 p.at("fires")), "encode")
    done = sagitta("evaluate", *unseen, "--dictionary", p.at("found"), "--codes", p.at("fires"),
                   "--truth", p.at("unseen"), "--json")
    need(done, "evaluate")
    return json.loads(done.stdout)["evaluated"][0]["truth"]


@claim("128 of 512 features: F1 above 0.92, MCC above 0.95")
def check_small(p):
    truth = truth_of(p, ["--atoms", 512, "--trees", -1, "--seed", 5], 32768,
                     ["--atoms", 128, "--l0", 4.5], ["--l0", 4.8])
    ok(truth["f1"] > 0.92 and truth["mcc"] > 0.95, f"{truth}")


@claim("512 of 2,048 features: F1 above 0.90, MCC above 0.95")
def check_larger(p):
    truth = truth_of(p, ["--atoms", 2048, "--trees", -1, "--most", 0.175, "--seed", 5], 65536,
                     ["--atoms", 512, "--l0", 6], ["--l0", 6])
    ok(truth["f1"] > 0.90 and truth["mcc"] > 0.95, f"{truth}")


@claim("128 of 512 features with trees, with which the recipe was tuned: F1 and MCC above 0.83")
def check_trees(p):
    truth = truth_of(p, ["--atoms", 512], 24576, ["--atoms", 128, "--l0", 2.1], [])
    ok(truth["f1"] > 0.83 and truth["mcc"] > 0.83, f"{truth}")


with tempfile.TemporaryDirectory() as folder:
    PLACE = Place(folder)
    for check in [check_small, check_trees] + FULL * [check_larger]:
        check(PLACE)
done_testing()
