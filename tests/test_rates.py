# SPDX-License-Identifier: BSD-3-Clause
"""Claim: with --rates, --dry-run predicts the seconds of each phase of a job, as its work divided
by the rates that `sagitta-bench rates` measured, interpolated between the points of their grids.
It says if machine, ranks or version are others than those of the rates.  It refuses files that have
no rates."""
import copy
import json
import math
import os
import resource
import tempfile

import h5py

from tap import bench, claim, done_testing, fails, gpu_present, need, ok, sagitta

# For each kind of work a rate, and an exponent for each size on which the rate depends, such as
# columns, atoms and atoms per round.  Rates are powers of the sizes.  So interpolation is exact.
POWERS = {"route": (1e7, (0.5, 0.25, -0.5)), "codes": (1e7, (-0.5, -0.75, -0.25)),
          "nonnegative": (1e7, (-0.5, -1, -0.25)), "count": (1e6, (-0.5, -0.25)), "read": (1e6, ()),
          "write": (2e6, ()), "sums": (3e6, (0.25, -0.125, 0.5)),
          "descent": (5e6, (0.5, 0.25)), "conjugate": (7e6, (0.5, -0.25)),
          "moves": (8e6, (0.25, 0.125, -0.25)), "moves_one": (3e6, (0.125, 0.25, -0.5)),
          "color": (2e6, (0.5,)),
          "step": (6e6, (0.5, 0.25, 0.125)), "scores": (9e6, (0.25, 0.5, 0.125)),
          "solve": (2e5, (0.5, 0.25)), "check": (4e6, ()), "exchange": (1e5, ())}
AXES = (8, 64, 1024), (1, 16, 4096), (1, 4, 64)
LEAST, MOST = 0.4, 2.5  # bounds of predicted over measured, on a busy machine


def rate(name, *at):
    factor, powers = POWERS[name]
    return factor * math.prod(size**power for size, power in zip(at, powers))


def points(axes):
    if not axes:
        return [[]]
    return [[size, *rest] for size in axes[0] for rest in points(axes[1:])]


def forged(page, **change):
    """A page of rates with these powers."""
    lines = [{"name": name, "at": at, "rate": rate(name, *at)}
             for name, (_, powers) in POWERS.items() for at in points(AXES[:len(powers)])]
    return {**copy.deepcopy(page), "rates": lines, "start_seconds": 0.25, **change}


def write(path, page):
    with open(path, "w") as f:
        f.write(page if isinstance(page, str) else json.dumps(page))
    return path


class Place:
    @claim("a file of rates, and rows to plan for, are made")
    def __init__(self, folder):
        self.folder = folder
        done = bench("rates", "--output", folder, "--repeats", 1, "--threads", 1, "--json")
        need(done, "rates")
        self.page = json.loads(done.stdout)
        self.rates = write(f"{folder}/measured.json", self.page)
        self.forged = write(f"{folder}/forged.json", forged(self.page))
        for n in 4096, 8192, 65536:
            need(sagitta("synth", "--n-rows", n, "--columns", 128, "--atoms", 1024, "--output",
                         f"{folder}/{n}"), "rows")

    def words(self, command, n, *more):
        return [command, "--rows", f"{self.folder}/{n}/rows.h5", "--dictionary",
                f"{self.folder}/{n}/dictionary.h5", "--top-s", 8, "--threads", 1, "--device", "cpu",
                *more]

    def plan(self, *words, rates=None, ranks=0):
        done = sagitta(*words, "--dry-run", "--rates", rates or self.forged, "--json", ranks=ranks)
        need(done, f"{words[0]} --dry-run")
        page = json.loads(done.stdout)
        return page["seconds"], page["rates_differ"]


def near(a, b):
    return abs(a - b) <= 1e-9 * abs(b)


@claim("the benchmark measures every rate on a whole grid, and leaves no file")
def measured_check(place):
    page = place.page
    absent = {"exchange", "moves_one"}  # for several ranks, and for GPUs
    ok({line["name"] for line in page["rates"]} == set(POWERS) - absent, "one rank")
    for name in POWERS:
        at = [line["at"] for line in page["rates"] if line["name"] == name]
        axes = [sorted({p[a] for p in at}) for a in range(len(POWERS[name][1]))]
        ok(name in absent or at == points(axes), f"{name}: {at}")
    ok(all(line["rate"] > 0 and line["unit"] for line in page["rates"]), f"{page}")
    ok(page["ranks"] == 1 and page["threads"] == 1 and page["cpu"] and page["variant"], f"{page}")
    ok(os.listdir(place.folder).count("bench-rates.h5") == 0, f"{os.listdir(place.folder)}")
    done = bench("rates")
    ok(done.returncode == 2 and "--output" in done.stderr, f"{done}")
    write(f"{place.folder}/bench-rates.h5", "")
    done = bench("rates", "--output", place.folder)
    ok(done.returncode == 73 and "already exists" in done.stderr, f"{done}")
    os.remove(f"{place.folder}/bench-rates.h5")


@claim("on a GPU, too, the benchmark measures every rate, and --dry-run says seconds by them")
def gpu_check(place):
    if not gpu_present():
        return
    done = bench("rates", "--output", place.folder, "--device", "cuda", "--threads", 1, "--json")
    need(done, "rates of a GPU")
    page = json.loads(done.stdout)
    ok({line["name"] for line in page["rates"]} >= set(POWERS) - {"exchange"}, f"{page}")
    ok(all(0 < line["rate"] < math.inf for line in page["rates"]), f"{page}")
    words = place.words("encode", 8192)
    words[words.index("cpu")] = "cuda"
    seconds, differ = place.plan(*words, rates=write(f"{place.folder}/gpu.json", page))
    ok(seconds["all"] > 0 and differ is None, f"{seconds}, differ: {differ}")


@claim("seconds of encode and route are work divided by rates, on one rank and on a grid")
def encode_check(place):
    n, p, k, s = 8192, 128, 1024, 8
    route = n * p * k / rate("route", p, k, s)
    for rounds in 1, 4:
        seconds, differ = place.plan(*place.words("encode", n, "--rounds", rounds))
        wanted = {"start": 0.25, "route": n * p * k * rounds / rate("route", p, k, s / rounds),
                  "codes": n / rate("codes", p, s, rounds), "count": n / rate("count", p, s),
                  "read": n * p * 4 / 1e6, "write": n * s * 12 / 2e6, "check": n * s * 12 / 4e6,
                  "cosine": k * k * p / rate("route", p, k, 1), "load": k * p * 8 / 1e6}
        ok(all(near(seconds.get(name, 0), value) for name, value in wanted.items()),
           f"{rounds} rounds: {seconds}, wanted {wanted}")
        ok(near(seconds["all"], sum(wanted.values())) and set(seconds) == {"all", *wanted},
           f"{seconds}")
        ok(differ is None, f"{differ}")
    seconds, _ = place.plan(*place.words("encode", n, "--codes", "nonnegative"))
    ok(near(seconds["codes"], n / rate("nonnegative", p, s, 1)), f"{seconds}")
    seconds, _ = place.plan(*place.words("route", n))
    ok("codes" not in seconds and near(seconds["route"], route), f"{seconds}")
    seconds, differ = place.plan(*place.words("encode", n, "--grid", "1x2"), ranks=2)
    ok(near(seconds["route"], n * p * k / rate("route", p, k / 2, s)), f"{seconds}")
    moved = 4 * n * p + 8 * n * s + 4 * p * 2 * k / 2
    ok(near(seconds["exchange"], moved / 1e5), f"{seconds}, wanted {moved / 1e5}")
    ok(differ == "ranks 1", f"{differ}")
    twice = place.plan(*place.words("encode", n))[0]
    half = place.plan(*place.words("encode", n // 2))[0]
    ok(all(near(twice[name], 2 * half[name]) for name in ("route", "codes", "read", "write")),
       f"{half} {twice}")
    center = place.plan(*place.words("encode", n, "--center"))[0]
    ok(near(center["mean"], n * p * 4 / 1e6), f"{center}")


@claim("seconds of fit are those of its sweeps and of the encoding at the end, on one rank and two")
def fit_check(place):
    n, p, k, s, wide, sweeps, passes = 8192, 128, 256, 4, 8, 3, 2
    words = ["fit", "--rows", f"{place.folder}/{n}/rows.h5", "--atoms", k, "--top-s", s,
             "--encode-s", wide, "--sweeps", sweeps, "--rounds", 2, "--codes", "signed",
             "--device", "cpu", "--threads", 1]
    for update, ranks, seeds in (("joint", 0, 1), ("joint", 2, 1), ("conjugate", 0, 3)):
        job = [*words, "--update", update, "--passes", passes, "--seeds", seeds,
               "--dry-run", "--json"]
        page = json.loads(sagitta(*job, "--rates", place.forged, ranks=ranks).stdout)
        fitted, held, size = page["rows"], page["held_rows"], max(ranks, 1)
        ok(held > 0 and fitted + held == n, f"{page}")
        coded, each = seeds * (sweeps + 1) * n, p / size
        pair = fitted * s * (s + p) / rate("sums", each, k, s) + k * k * p * passes / rate(
            "descent", each, k)
        step = (2 * passes + 1) * fitted * s * p / rate("conjugate", each, s)
        wanted = {"start": 0.25, "mean": fitted * p * 4 / 1e6,
                  "read": (seeds + 1) * n * p * 4 / 1e6,
                  "route": coded * p * k * 2 / rate("route", p, k, s / 2) +
                  (n + held) * p * k * 2 / rate("route", p, k, wide / 2),
                  "codes": coded / rate("codes", p, s, 2) + (n + held) / rate("codes", p, wide, 2),
                  "update": seeds * sweeps * (pair if update == "joint" else step)}
        if ranks:
            wanted["columns"] = fitted * p * 4 / 2 / 1e5
            wanted["exchange"] = sweeps * (8 * fitted * s + 8 * k * k * passes) / 1e5
        told = page["seconds"]
        ok(all(near(told.get(name, 0), value) for name, value in wanted.items()),
           f"{update}, {ranks} ranks: {told}, wanted {wanted}")
        ok(near(told["all"], sum(v for name, v in told.items() if name != "all")), f"{told}")
        sweep = (told["update"] + told.get("exchange", 0)) / sweeps / seeds + n * (
            p * k * 2 / rate("route", p, k, s / 2) + 1 / rate("codes", p, s, 2))
        ok(near(page["sweep_seconds"], sweep), f"{page['sweep_seconds']}, wanted {sweep}")
        lines = sagitta(*job[:-1], "--rates", place.forged, ranks=ranks).stdout
        ok(f"sweep       {sweep:.2f} s" in lines and "sagitta-bench rates" in sagitta(
            *job[:-1]).stdout, lines)
    features = [*words[:5], "--find", "features", "--l0", 2]
    for job, code, text in ((words + ["--detectors"], 2, "'--detectors'"),
                            (features, 2, "'--rates'")):
        fails(sagitta(*job, "--dry-run", "--rates", place.forged), code, [text], job)


def sweep_seconds(n, p, k, s, q, ranks):
    """(seconds of a sweep's steps, seconds of its residuals alone) by the formula of
    src/refit/times.c, for atoms of one vector."""
    entries, blocks = n * s, math.ceil(n / 4096)
    sums = q * k * blocks * -math.expm1(-entries / k / blocks)
    work = entries * ((7 + 3 * q + 1) * p + 900) + p * (15 * sums + k * (200 + 12 * q * q))
    size = math.log(k) * k * k / (n * s * (s - 1)) + 0.5
    classes, name = max(k / max(size, 1), s), "moves_one" if q == 1 else "moves"
    inside = [min(max(x, axis[0]), axis[-1])
              for x, axis in zip((p, entries / k, entries / classes / ranks), AXES)]
    return work / rate(name, *inside), entries * p / rate(name, *inside)


@claim("seconds of refit and of fit --update atoms are those of their sweeps and of the work after "
       "the last sweep")
def atoms_check(place):
    n, p, k, s, q, sweeps, rounds = 8192, 128, 1024, 8, 3, 2, 2
    need(sagitta(*place.words("encode", n), "--rounds", rounds, "--output",
                 f"{place.folder}/coded"), "codes")
    words = ["refit", "--rows", f"{place.folder}/{n}/rows.h5", "--dictionary",
             f"{place.folder}/{n}", "--supports", f"{place.folder}/coded", "--sweeps", sweeps,
             "--directions", q, "--threads", 1, "--device", "cpu"]
    supports, pairs = n * (8 + s * 12), n * s * s / 2
    for ranks, more in ((0, []), (2, ["--reroute"]), (0, ["--cosine-limit", 0]),
                        (0, ["--holdout", f"{place.folder}/4096/rows.h5"])):
        size, held = max(ranks, 1), 4096 if "--holdout" in more else 0
        routed = sweeps * n if "--reroute" in more else 0
        steps, residual = sweep_seconds(n, p, k, s, q, size)
        written = size * sweeps * (supports + 4 * k * p)
        wanted = {"start": 0.25, "read": ((n + held) * p * 4 + supports + 4 * k * p) / 1e6,
                  "color": (sweeps if routed else 1) * pairs / rate("color", s),
                  "residual": residual, "atoms": sweeps * steps,
                  "codes": 0 if routed else sweeps * n / rate("codes", p, s, 1),
                  "count": sweeps * n / rate("count", p, s),
                  "write": written / 2e6, "check": written / 4e6}
        rows = routed + (sweeps + 1) * held
        wanted["codes"] += rows / rate("codes", p, s, rounds)
        if rows:
            wanted["route"] = rows * p * k * rounds / rate("route", p, k, s / rounds)
        if "--cosine-limit" not in more:
            wanted["cosine"] = sweeps * k * k * p / rate("route", p, k, 1)
        if ranks:
            wanted["exchange"] = sweeps * supports / 2 / 1e5
        told, differ = place.plan(*words, *more, ranks=ranks)
        ok(set(told) == {"all", *wanted} and all(near(told[x], wanted[x]) for x in wanted),
           f"{ranks} ranks {more}: {told}, wanted {wanted}")
        ok(near(told["all"], sum(wanted.values())), f"{told}")
        ok(differ == ("ranks 1" if ranks else None), f"{differ}")
    said = sagitta(*words, "--dry-run", "--rates", place.forged).stdout
    ok("time  " in said and "atoms " in said and place.forged in said, said)
    need(sagitta("color", "--supports", f"{place.folder}/coded", "--output",
                 f"{place.folder}/coded"), "classes")
    known = place.plan(*words, "--classes", f"{place.folder}/coded")[0]
    ok(known.get("color", 0) == 0, f"{known}")
    fit = ["fit", *words[1:3], "--atoms", 256, "--top-s", s, "--sweeps", sweeps, "--codes",
           "signed", "--device", "cpu", "--threads", 1, "--update", "atoms"]
    for ranks, ways in ((0, q), (2, q), (0, 1)):
        page = json.loads(sagitta(*fit, "--directions", ways, "--dry-run", "--json", "--rates",
                                  place.forged, ranks=ranks).stdout)
        told, fitted = page["seconds"], page["rows"]
        steps = sweep_seconds(fitted, p, 256, s, ways, max(ranks, 1))[0]
        ok(near(told["update"], sweeps * steps) and told.get("exchange", 0) == 0 and
           told.get("columns", 0) == 0, f"{ranks} ranks, {ways}: {told}, wanted {sweeps * steps}")
        ok(near(told["color"], sweeps * fitted * s * s / 2 / rate("color", s)), f"{told}")
    fewer = forged(place.page)
    fewer["rates"] = [line for line in fewer["rates"] if line["name"] not in ("moves", "color")]
    gpu = write(f"{place.folder}/gpu.json", fewer)
    none = "no rate for the time of 'color'"
    for job, code, texts in (
            ([*words, "--dry-run", "--rates", gpu], 65, [none, "64 ranks"]),
            ([*fit, "--dry-run", "--rates", gpu], 65, [none]),
            ([*words, "--output", f"{place.folder}/o", "--rates", gpu], 2, ["--dry-run"]),
            ([*words[:9], "--keep-supports", "--dry-run", "--rates", gpu], 2, ["--keep-supports"]),
            ([*words, "--holdout", f"{place.folder}/none", "--dry-run"], 74, ["none"])):
        fails(sagitta(*job), code, texts, job)
    ok("sagitta-bench rates" in sagitta(*words, "--dry-run").stdout, "without rates")


@claim("seconds of solve, train and merge are their bytes and multiply-adds by rates")
def others_check(place):
    systems, n, p, k, batch, steps = f"{place.folder}/systems", 8192, 128, 256, 512, 20
    need(sagitta("synth", "--systems", 50, "--frame", 2, "--output", systems), "systems")
    with h5py.File(f"{systems}/systems.h5") as f:
        written = 8 * sum(f[name].size for name in ("systems/g_t", "systems/g_b"))
    job = ["--dry-run", "--json", "--rates", place.forged]
    page = json.loads(sagitta("solve", "--systems", systems, *job).stdout)
    told, read, size = page["seconds"], 8 * page["numbers"], page["rows"] / 50
    least = AXES[0][0]  # the 2 vectors of a frame are below the least size of this axis
    wanted = {"start": 0.25, "read": read / 1e6, "write": written / 2e6, "check": written / 4e6,
              "solve": (read + written) / rate("solve", least, size)}
    ok(set(told) == {"all", *wanted} and all(near(told[x], wanted[x]) for x in wanted),
       f"solve: {told}, wanted {wanted}")
    train = ["train", "--rows", f"{place.folder}/{n}/rows.h5", "--atoms", k, "--batch", batch,
             "--steps", steps, "--device", "cpu", "--threads", 1]
    page = json.loads(sagitta(*train, *job).stdout)
    told = page["seconds"]
    most = AXES[2][-1]  # the rows of a batch are more than the largest size of this axis
    lines = told["judge"] * rate("scores", p, k, most) / (page["held_rows"] * k * p)
    ok(near(told["step"], steps * batch * k * p / rate("step", p, k, most)) and
       lines > 1 and near(round(lines), lines) and
       near(told["read"], (steps * batch + n) * p * 4 / 1e6) and "copy" not in told and
       near(told["all"], sum(told.values()) - told["all"]), f"train: {told}")
    gpu = write(f"{place.folder}/gpu.json", forged(place.page, device="cuda"))
    copied = json.loads(sagitta(*train, *job[:-1], gpu).stdout)["seconds"]
    ok(near(copied["copy"], lines * 8 * k * p / 1e6) and
       near(copied["all"], told["all"] + copied["copy"]), f"train: {told}, with a GPU {copied}")
    need(sagitta(*place.words("encode", n, "--row-range", "0:", "--output",
                              f"{place.folder}/parts")), "a part")
    part = f"{place.folder}/parts/part-000000000000000.h5"
    for ranks in 0, 2:
        page = json.loads(sagitta("merge", part, *job, ranks=ranks).stdout)
        told, moved = page["seconds"], page["read_bytes"] * max(ranks, 1)
        ok(near(told["read"], moved / 1e6) and near(told["write"], moved / 2e6) and
           near(told["check"], moved / 4e6), f"merge: {told}")
    for words in (["solve", "--systems", systems], train, ["merge", part]):
        fails(sagitta(*words, "--rates", place.forged, "--output", f"{place.folder}/none"), 2,
              ["--dry-run"], words)
        ok("sagitta-bench rates" in sagitta(*words, "--dry-run").stdout, f"{words}")
    fails(sagitta(*train, "--precision", "bf16", *job), 2, ["--precision bf16"], "train")


@claim("printed lines have the seconds of --json; without --rates they say what to do, and --json "
       "has none")
def lines_check(place):
    words = place.words("encode", 4096, "--dry-run")
    said = sagitta(*words, "--rates", place.forged).stdout
    seconds = place.plan(*words[:-1])[0]
    line = next(line for line in said.splitlines() if line.startswith("time"))
    ok(f"{seconds['all']:.2f} s" in line and all(
        f"{name} {value:.2f}" in line for name, value in seconds.items() if name != "all"), line)
    ok("other conditions" not in said and place.forged in said, said)
    ok("sagitta-bench rates" in sagitta(*words).stdout, "without")
    ok("seconds" not in json.loads(sagitta(*words, "--json").stdout), "without")


@claim("the message names what differs from the machine of the rates")
def differ_check(place):
    for change, text in (({"ranks": 3}, "ranks 3"), ({"threads": 7}, "threads 7"),
                         ({"cpu": "Abacus"}, "another CPU, 'Abacus'"),
                         ({"device": "cuda"}, "device cuda"),
                         ({"version": "9.9"}, "version 9.9"), ({"revision": "f00"}, "f00")):
        path = write(f"{place.folder}/other.json", forged(place.page, **change))
        _, differ = place.plan(*place.words("encode", 4096), rates=path)
        ok(text in (differ or ""), f"{change}: {differ}")
        said = sagitta(*place.words("encode", 4096), "--dry-run", "--rates", path).stdout
        ok("other conditions: " + differ in said, said)


@claim("a file without rates is refused with the reason")
def refused_check(place):
    good = forged(place.page)
    lines = good["rates"]

    def with_lines(new):
        return {**good, "rates": new}

    texts = {
        "": "there is no object", "[]": "there is no object", json.dumps(good)[:-40]: "damaged",
        json.dumps(good) + "x": "behind the object", json.dumps(good) + "\0": "zero byte",
        json.dumps({**good, "benchmark": "route"}): "not the rates",
        json.dumps({k: v for k, v in good.items() if k != "ranks"}): "ranks is missing",
        json.dumps({k: v for k, v in good.items() if k != "rates"}): "rates is missing",
        json.dumps({**good, "ranks": 0}): "out of its range",
        json.dumps({**good, "start_seconds": -1}): "below 0",
        json.dumps(with_lines(lines[1:])): "whole grid",
        json.dumps(with_lines([lines[1], lines[0], *lines[2:]])): "whole grid",
        json.dumps(with_lines([{**lines[0], "rate": 0}, *lines[1:]])): "above 0",
        json.dumps(with_lines([{**lines[0], "rate": "1"}, *lines[1:]])): "number is expected",
        json.dumps(with_lines([{**lines[0], "at": [1, 2]}, *lines[1:]])): "another number of sizes",
        json.dumps(with_lines([{**lines[0], "at": [0, 1, 1]}, *lines[1:]])): "size is not above 0",
        json.dumps(with_lines([x for x in lines if x["name"] != "codes"])): "no rate for the time",
        json.dumps(good) + " " * (1 << 20): "more bytes",
    }
    for text, reason in texts.items():
        path = write(f"{place.folder}/bad.json", text)
        done = sagitta(*place.words("encode", 4096), "--dry-run", "--rates", path)
        ok(done.returncode == 65 and reason in done.stderr, f"{reason}: {done.returncode} "
           f"{done.stderr[-300:]}")
    for path in f"{place.folder}/none.json", place.folder:
        done = sagitta(*place.words("encode", 4096), "--dry-run", "--rates", path, ranks=2)
        ok(done.returncode == 74 and path in done.stderr, f"{done.returncode} {done.stderr[-300:]}")
    done = sagitta(*place.words("encode", 4096), "--rates", place.forged, "--output",
                   f"{place.folder}/o")
    ok(done.returncode == 2 and "--dry-run" in done.stderr, f"{done}")
    extra = {**good, "later": {"a": [1, None]}, "rates": [
        {"name": "of a later version", "at": [1, 2, 3, 4][:3], "rate": 1, "more": []}, *lines]}
    seconds, _ = place.plan(*place.words("encode", 4096),
                            rates=write(f"{place.folder}/later.json", extra))
    ok(near(seconds["all"], place.plan(*place.words("encode", 4096))[0]["all"]), f"{seconds}")


def processor_seconds(words, ranks):
    """The processor seconds of all processes of a job, without those that start them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    need(sagitta(*words, ranks=ranks), words[0])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@claim("the prediction from measured rates is near to the processor time of a job")
def truth_check(place):
    fit = ["fit", "--find", "codes", "--rows", f"{place.folder}/8192/rows.h5", "--atoms", 512,
           "--sweeps", 2, "--threads", 1, "--device", "cpu"]
    train = ["train", "--rows", f"{place.folder}/8192/rows.h5", "--atoms", 1024, "--steps", 200,
             "--batch", 256, "--threads", 1, "--device", "cpu"]
    refit = ["refit", *place.words("", 65536)[1:5], "--supports", f"{place.folder}/encode",
             "--threads", 1]
    for words in (place.words("encode", 65536), place.words("route", 65536), fit, train, refit,
                  [*fit, "--update", "atoms"]):
        command = words[0]
        said = place.plan(*words, rates=place.rates)[0]["all"]
        took = processor_seconds([*words, "--output", f"{place.folder}/{command}", "--force"], 0)
        print(f"# {command}: {said:.2f} s said, {took:.2f} taken", flush=True)
        ok(LEAST < said / took < MOST, f"{command}: {said} s said, {took} taken")


with tempfile.TemporaryDirectory() as folder:
    where = Place(folder)
    measured_check(where)
    gpu_check(where)
    encode_check(where)
    fit_check(where)
    atoms_check(where)
    others_check(where)
    lines_check(where)
    differ_check(where)
    refused_check(where)
    truth_check(where)
done_testing()
