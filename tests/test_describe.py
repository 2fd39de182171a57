# SPDX-License-Identifier: BSD-3-Clause
"""Claim: `--describe` of sagitta and of sagitta-bench has every command and option, and says of
each option what it may change.  The program takes the types, defaults and ranges that `--describe`
gives."""
import json
import subprocess

from tap import BENCH, SAGITTA, claim, done_testing, ok

ENTRIES = ("name alias group type value default min max choices effect per_rank input output "
           "help").split()


def sagitta(*words, program=SAGITTA):
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def describe(*words, program=SAGITTA):
    return json.loads(sagitta("--describe", *words, program=program).stdout)


COMMANDS = describe()["commands"]
MEASURED = describe(program=BENCH)["commands"]
OF_JOBS = [(c["name"], o) for c in COMMANDS for o in c["options"]]
OPTIONS = OF_JOBS + [(c["name"], o) for c in MEASURED for o in c["options"]]


def flag_of(option, value):
    return [f"--{option['name']}={value}"]


def check_command(c, program):
    keys = sagitta("--list-options", c["name"], program=program).stdout.split()
    names = ["--" + o["name"] for o in c["options"]]
    ok(names == keys and len(set(names)) == len(names), f"{c['name']}: {names}")
    ok(describe(c["name"], program=program)["commands"] == [c], f"{c['name']} alone")
    ok(c["resumable"] == ("--resume" in names), f"{c['name']} is resumable")


@claim("--describe has every command and every option once")
def check_names():
    for program, commands, least in ((SAGITTA, COMMANDS, 21), (BENCH, MEASURED, 8)):
        listed = sagitta("--list-options", program=program).stdout.split()
        ok([c["name"] for c in commands] == listed and len(listed) >= least, f"{listed}")
        for c in commands:
            check_command(c, program)
    ok(all(list(o) == ENTRIES for _, o in OPTIONS), "entries")


@claim("every option has an effect, which says what it may change")
def check_effects():
    for command, o in OPTIONS:
        ok(o["effect"] in ("bits", "extent", "run"),
           f"{command} --{o['name']} has no .effect in its row: it is {o['effect']}")
        ok(o["type"] in ("text", "texts") or not (o["input"] or o["output"]),
           f"{command} --{o['name']} is a place, of type {o['type']}")
        ok(o["effect"] != "bits" or not (o["output"] or o["per_rank"]),
           f"{command} --{o['name']} differs among ranks or places, and changes no value")
    names = {(o["name"], o["effect"]) for c, o in OPTIONS if o["name"] == "batch"}
    ok(names == {("batch", "bits"), ("batch", "run")},
       f"the effect of --batch depends on the command: {names}")


@claim("each default has the type of its option, and lies in the range")
def check_defaults():
    kinds = {"flag": bool, "integer": int, "real": (int, float)}
    for command, o in OPTIONS:
        value, name = o["default"], f"{command} --{o['name']}"
        if o["type"] == "flag":
            ok(value is False, f"{name} is {value}")
        if value is None:
            continue
        ok(isinstance(value, kinds.get(o["type"], str)), f"{name}: {value}")
        if o["type"] in ("integer", "real"):
            ok(o["min"] <= value <= o["max"], f"{name}: {value}")
        if o["choices"]:
            ok(value in o["choices"], f"{name}: {value}")


@claim("a value outside the range or the choices is refused, and the message names them")
def check_ranges():
    for command, o in OF_JOBS:
        if command not in ("encode", "train", "solve"):
            continue
        wrong = f"{o['max'] * 2 + 1:.0f}" if o["type"] in ("integer", "real") else "neither"
        if not o["choices"] and o["max"] is None:
            continue
        ran = sagitta(command, *flag_of(o, wrong))
        ok(ran.returncode == 2 and o["name"] in ran.stderr and
           ("not in" in ran.stderr or "not one of" in ran.stderr or "whole number" in ran.stderr),
           f"{command} --{o['name']}={wrong}: {ran.stderr}")


check_names()
check_effects()
check_defaults()
check_ranges()
done_testing()
