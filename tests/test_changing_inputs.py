# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if an input is truncated, overwritten or appended to while it is read, every command ends
with 74 and publishes nothing.  A file that is replaced by a rename is read to its end."""
import os
import shutil
import sys
import tempfile

import h5py
import numpy as np

from jobs import faulty
from tap import claim, done_testing, ok, sagitta, skip_all

N, P = 2000, 256
FIT = {"--rows": "rows.h5", "--dictionary": "dictionary.h5", "--supports": "supports.h5"}
# Command: its inputs, and its other options.
COMMANDS = {
    "seed": ({"--rows": "rows.h5"}, ["--atoms", 8]),
    "harvest": ({"--capture": "capture.h5"}, ["--block", 500]),
    "color": ({"--supports": "supports.h5"}, []),
    "encode": ({"--rows": "rows.h5", "--dictionary": "dictionary.h5"}, ["--top-s", 4]),
    "assemble": ({**FIT, "--classes": "classes.h5"}, []),
    "refit": ({**FIT, "--classes": "classes.h5"}, []),
    "refit --reroute": (FIT, ["--sweeps", 2]),
    "solve": ({"--systems": "systems.h5"}, []),
    "terminal": (FIT, []),
    "top": ({"--supports": "supports.h5"}, []),
}
CHANGES = ("cut", "spoil", "forge", "append")


def need(done):
    if done.returncode:
        print("#", done.stderr.replace("\n", "\n# "))
        sys.exit(1)


def same(a, b):
    return sagitta("diff", a, b).returncode == 0


class Place:
    """Files in a folder `kept`, which never change, and copies of them, which may change during a
    run."""

    def __init__(self, folder):
        self.folder, self.kept, self.out = folder, f"{folder}/kept", f"{folder}/out"

    def at(self, name):
        return f"{self.folder}/{name}"

    def words(self, command):
        inputs, more = COMMANDS[command]
        pairs = [word for key, name in inputs.items() for word in (key, self.at(name))]
        return [*command.split(), *pairs, *more, "--output", self.out]

    def renew(self, name):
        shutil.rmtree(self.out, ignore_errors=True)
        if os.path.exists(self.at(name)):
            os.remove(self.at(name))
        shutil.copy(f"{self.kept}/{name}", self.at(name))

    def published(self):
        return [name for name in os.listdir(self.out) if ".h5" in name] \
            if os.path.isdir(self.out) else []


def foreign(place):
    """Write rows as other programs do: contiguous, chunked without checksums, and .npy."""
    with h5py.File(f"{place.kept}/rows.h5") as file:
        rows = file["rows"][:]
    with h5py.File(f"{place.kept}/contiguous.h5", "w") as file:
        file["rows"] = rows
    with h5py.File(f"{place.kept}/plain.h5", "w") as file:
        file.create_dataset("rows", data=rows, chunks=(500, P))
    np.save(f"{place.kept}/rows.npy", rows)
    with h5py.File(f"{place.kept}/capture.h5", "w") as file:
        file["q"] = file["k"] = file["v"] = rows.reshape(N, 4, P // 4)
        file.attrs["causal"] = 1


@claim("rows of every format that change while they are read end the job")
def check_formats(place):
    for name in ("rows.h5", "contiguous.h5", "plain.h5", "rows.npy"):
        words = ["encode", "--rows", place.at(name), "--dictionary", f"{place.kept}/dictionary.h5",
                 "--top-s", 4, "--block", 300, "--output", place.out]
        place.renew(name)
        calls = faulty("read:1000000000", *words, count=True, of=name)
        good = place.at("good.h5")
        shutil.copy(f"{place.out}/supports.h5", good)
        for change in CHANGES:
            n = calls if change == "cut" else calls * 2 // 3
            place.renew(name)
            code, text = faulty(f"{change}:{n}", *words, of=name)
            ok(code == 74 and "changed while it was read" in text and not place.published(),
               f"{change} at read {n} of {calls} of {name}: exit {code} {place.published()} "
               f"{text[-300:]}")
        place.renew(name)
        code, text = faulty(f"replace:{calls // 2}", *words, of=name)
        ok(code == 0 and same(f"{place.out}/supports.h5", good),
           f"replaced at read {calls // 2} of {calls} of {name}: exit {code} {text[-300:]}")


@claim("a change at any moment of reading is found")
def check_moments(place):
    """A run that succeeds must have the bits of a run whose rows did not change."""
    name, wrong = "contiguous.h5", []
    words = ["seed", "--rows", place.at(name), "--atoms", 8, "--output", place.out]
    place.renew(name)
    calls = faulty("read:1000000000", *words, count=True, of=name)
    good = place.at("good.h5")
    shutil.copy(f"{place.out}/dictionary.h5", good)
    for n in range(1, calls + 1):
        place.renew(name)
        code, text = faulty(f"cut:{n}", *words, of=name)
        fits = code in (65, 74) and not place.published() or \
            code == 0 and same(f"{place.out}/dictionary.h5", good)
        wrong += [] if fits else [(n, code, text[-200:])]
    ok(calls > 3 and not wrong, f"rows are cut at each of {calls} reads: {wrong}")


@claim("each command ends if one of its inputs changes")
def check_commands(place):
    for command, (inputs, _) in COMMANDS.items():
        words = place.words(command)
        for name in inputs.values():
            place.renew(name)
            calls = faulty("read:1000000000", *words, count=True, of=name)
            place.renew(name)
            code, text = faulty(f"cut:{calls}", *words, of=name)
            ok(code == 74 and f"{name}' changed while it was read" in text and
               not place.published(),
               f"{command}: {name} cut at read {calls}: exit {code} {place.published()} "
               f"{text[-300:]}")
            place.renew(name)


@claim("a change of the rows ends a refit that has no sweeps left")
def check_complete(place):
    name, words = "rows.h5", place.words("refit")
    place.renew(name)
    need(sagitta(*words))
    shutil.copytree(place.out, place.at("whole"))
    calls = faulty("read:1000000000", *words, "--resume", count=True, of=name)
    for change in CHANGES:
        place.renew(name)
        shutil.copytree(place.at("whole"), place.out)
        code, text = faulty(f"{change}:{calls}", *words, "--resume", of=name)
        ok(code == 74 and f"{name}' changed while it was read" in text,
           f"{change} at read {calls}: exit {code} {text[-300:]}")
    place.renew(name)


@claim("verify, inspect and diff end if their file changes, and do not call it damaged")
def check_files(place):
    """At some moments the data that are read show the change.  It must not be reported as
    damage."""
    name = "rows.h5"
    for words in (["verify", place.at(name)], ["diff", place.at(name), f"{place.kept}/{name}"],
                  ["inspect", place.at(name)]):
        place.renew(name)
        calls = faulty("read:1000000000", *words, count=True, of=place.at(name))
        code, text = faulty(f"append:{calls}", *words, of=place.at(name))
        ok(code == 74 and "changed while it was read" in text,
           f"{words[0]}: exit {code} {text[-200:]}")
        wrong = []
        for n in range(1, calls + 1, 5):
            place.renew(name)
            code, text = faulty(f"spoil:{n}", *words, of=place.at(name))
            if code != 74 or "changed while it was read" not in text:
                wrong.append((n, code, text[-200:]))
        ok(not wrong, f"{words[0]}: spoiled at every fifth of {calls} reads: {wrong[:3]}")
    place.renew(name)


@claim("a deck that changes while it is read ends the job")
def check_deck(place):
    deck = place.at("a.in")
    with open(deck, "w") as file:
        file.write(f"rows = {place.at('rows.h5')}\natoms = 8\n# {'x' * 9999}\n")
    code, text = faulty("cut:1", "seed", deck, "--output", place.out, of="a.in")
    ok(code == 74 and "changed while it was read" in text, f"exit {code} {text[-200:]}")


if os.environ.get("SANITIZED"):
    skip_all("a sanitizer must be preloaded first, so this test cannot preload a library")
with tempfile.TemporaryDirectory() as main:
    made = Place(main)
    need(sagitta("synth", "--n-rows", N, "--atoms", 32, "--columns", P, "--top-s", 4, "--noise",
                 0.1, "--output", made.kept))
    for step in (["encode", "--top-s", 4], ["color"], ["assemble"]):
        keys = {"encode": ("--rows", "--dictionary"), "color": ("--supports",), "assemble": FIT}
        files = {"encode": "supports.h5", "color": "classes.h5", "assemble": "systems.h5"}
        need(sagitta(*step, *[word for key in keys[step[0]]
                              for word in (key, f"{made.kept}/{FIT[key]}")],
                     "--output", f"{made.kept}/{files[step[0]]}"))
    foreign(made)
    for file in os.listdir(made.kept):
        if file.endswith((".h5", ".npy")):
            made.renew(file)
    check_formats(made)
    check_moments(made)
    check_commands(made)
    check_complete(made)
    check_files(made)
    check_deck(made)
done_testing()
