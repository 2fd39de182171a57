# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if the disk is full, or a limit of file size is reached, during a sweep, a fit ends with
74 and leaves the state that was published last.  --resume continues from it, with the bytes of one
run."""
import os
import resource
import shutil
import subprocess
import tempfile

import h5py
import numpy as np

from jobs import environment, faulty, temporaries
from tap import SAGITTA, claim, done_testing, later_wins, ok, sagitta, skip_all

SWEEPS = 7
KINDS = {  # options of the fit, the file for which the disk has no room, number of sweeps
    "dictionary": (["--update", "joint", "--rows", "rows.npy"], "dictionary.h5", SWEEPS),
    "state": (["--update", "joint", "--rows", "few.npy", "--atoms", 50, "--top-s", 6], "state.h5",
              SWEEPS),
    "parts": (["--minibatch", 700, "--rows", "rows.npy"], "state.h5", 3 * SWEEPS),
}


class Place:
    def __init__(self, folder):
        random = np.random.default_rng(9)
        self.folder = folder
        rows = random.standard_normal((2000, 12)).astype("f4")
        for name, part in (("rows", rows), ("few", rows[:60]), ("held", rows[-200:])):
            np.save(self.at(name + ".npy"), part)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def words(self, out, kind, *words):
        words = later_wins("fit", "--atoms", 80, "--top-s", 3, "--tolerance", 0, "--threads", 1,
                           "--holdout", self.at("held.npy"), "--sweeps", SWEEPS, "--output",
                           self.at(out), *KINDS[kind][0], *words)
        return [self.at(w) if w in ("rows.npy", "few.npy") else w for w in words]

    def same(self, one, two, text):
        for name in "dictionary.h5", "supports.h5":
            done = sagitta("diff", self.at(one, name), self.at(two, name))
            ok(done.returncode == 0, f"{text}, {name}: {done.stdout[-300:]} {done.stderr[-200:]}")


def sweeps_of(out):
    """The numbers of sweeps of the files that --resume can use.  These files must be whole."""
    found = []
    for name in "dictionary.h5", "state.h5":
        if os.path.exists(os.path.join(out, name)):
            done = sagitta("verify", os.path.join(out, name))
            ok(done.returncode == 0, f"{name} is whole {done.stderr[-200:]}")
            with h5py.File(os.path.join(out, name)) as f:
                found.append(int(f.attrs["sweeps"]))
    return found


def check_end(place, kind, when, code, text, told):
    out = place.at("full")
    found = sweeps_of(out)
    ok(code == 74 and told in text and not temporaries(out) and max(found) < KINDS[kind][2],
       f"{kind}, {when}: exit {code}, files of sweeps {found} {text[-300:]}")
    done = sagitta(*place.words("full", kind, "--resume"))
    ok(done.returncode == 0 and f"resume  after sweep {max(found)} of" in done.stderr,
       f"{kind}, {when}, resumed: exit {done.returncode} {done.stderr[-300:]}")
    place.same(kind, "full", f"{kind}, {when}")


@claim("a disk that becomes full during a sweep ends the fit with 74")
def check_full(place, kind):
    words, of = place.words("full", kind), f"{KINDS[kind][1]}.*.tmp"
    done = sagitta(*place.words(kind, kind))
    ok(done.returncode == 0, f"{kind}: exit {done.returncode} {done.stderr[-300:]}")
    shutil.rmtree(place.at("full"), ignore_errors=True)
    calls = faulty("write:1000000000", *words, count=True, of=of)
    for part in (0.4, 0.6, 0.8, 1):
        shutil.rmtree(place.at("full"))
        code, text = faulty(f"write:{int(calls * part)}+", *words, of=of)
        check_end(place, kind, f"{part} of {calls} writes", code, text, "No space left")


@claim("if the next sweep exceeds the limit of file sizes, the fit ends with 74")
def check_limit(place):
    out = place.at("full")
    shutil.rmtree(out, ignore_errors=True)
    sagitta(*place.words("full", "dictionary", "--sweeps", 2))
    limit = os.path.getsize(os.path.join(out, "dictionary.h5")) - 3000
    os.remove(os.path.join(out, "supports.h5"))
    done = subprocess.run([SAGITTA, *place.words("full", "dictionary", "--resume")],
                          capture_output=True, text=True, env=environment(), preexec_fn=lambda:
                          resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    check_end(place, "dictionary", f"limit {limit}", done.returncode, done.stderr, "too large")


with tempfile.TemporaryDirectory() as main:
    if os.environ.get("SANITIZED"):
        skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
    made = Place(main)
    for name in KINDS:
        check_full(made, name)
    check_limit(made)
done_testing()
