#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: scripts/scale_model.py [--rows N] [--columns P] [--atoms K] [--top-s S] [--gpus COUNT]

Predicts how many seconds a large certified encode takes on grids of GPUs, from the rates below.  It
prints two tables of doc/scale.md: the prediction; and predicted and measured seconds of one GPU and
of two.  Then it prints the ratios of measured and predicted seconds for grids of CPU ranks.  The
model adds the times of all parts, except files: other threads read and write them at the same time.
At the end the written files are read again."""
import argparse

# Rates per second, and times, in a cluster of hosts with eight H200: measured, from the vendor, or
# assumed.
PRODUCT = 280e12  # multiply-adds of a GPU in fp16, at its power limit
EXACT = 1.05e12  # multiply-adds of a GPU in exact scores, each of which gathers 4 bytes of memory
HOST = 50e9  # bytes that a host receives from other hosts, or a GPU from its host
PAIR = 10e9  # bytes between GPUs of a group, measured with two H200
ASKED = 25e9  # bytes of fetched atoms between hosts: half of the rate of a host's network
ROOT = 10e9  # bytes that rank 0 receives
LATENCY = 80e-6  # seconds of a collective operation over hosts
READ = 8e9  # bytes that a rank reads with several threads, while another rank of its host does too
WRITE, CHECK = 1.5e9, 1.25e9  # bytes that a rank writes, and reads again, with hashes
HOST_FILE = 2e9  # bytes of a host, for a file that all ranks write and read: assumed, not measured
START = 2.2  # seconds to start MPI, CUDA and NCCL, measured with four GPUs
BLOCK, GPUS_A_HOST = 16384, 8
QUALITY = 32  # bytes of struct row_quality

# Candidates per row for each number of ranks that share the atoms; K = 65,536, P = 768, s = 32.
# Each further doubling gives 1.8 times as many.
CANDIDATES = {1: 289, 2: 549, 4: 1012, 8: 1836, 16: 3308}

# Seconds on one H100, and on two (2x1) of one host, from the log of rank 0; planted rows in memory.
GPU_SHAPE = {"n": 2097152, "p": 768, "k": 65536, "s": 32}
GPU_CANDIDATES = 33.5
GPU_MEASURED = {"product, exact scores": (0.43, 0.23), "results to rank 0": (0.11, 0.11),
                "rows read": (0.40, 0.38), "results written": (0.56, 0.52),
                "results read again": (0.65, 0.68)}

# Machine G of doc/bench.md, one thread per rank: 32,768 real rows, P = 384, K = 8,192.
# CPU_MEASURED: grid: (candidates per row, seconds).  Three rates are computed from the grids 1x1,
# 8x1 and 1x8; the seconds of the other grids are predicted.
CPU_SHAPE = {"n": 32768, "p": 384, "k": 8192}
CPU_START, CPU_DICTIONARY = 0.10, 0.06  # seconds to start a process, and to lay out the dictionary
CPU_PRODUCT, CPU_EXACT = 1.24e11, 2.06e9  # multiply-adds, with all other work per row
CPU_MEASURED = {"1x1": (63.3, 1.38), "2x1": (63.3, 1.61), "4x1": (63.3, 1.82), "8x1": (63.3, 2.50),
                "1x2": (118.6, 1.93), "1x4": (237.6, 2.85), "1x8": (496, 4.72)}


def candidates(ranks):
    return CANDIDATES[ranks] if ranks in CANDIDATES else 1.8 * candidates(ranks // 2)


def parts(shape, groups, atoms, calls, writers=1):
    """Seconds of each part on groups x atoms GPUs, with `calls` collective operations per block.
    If there is one writer, rank 0 receives all results; otherwise only what the metrics need."""
    n, p, k, s = shape["n"], shape["p"], shape["k"], shape["s"]
    ranks, row, several = groups * atoms, 4 * p, atoms > 1
    far = atoms > GPUS_A_HOST  # a group spans several hosts
    others = (atoms - 1) / atoms
    rows = n / groups * row * others / (HOST if far else PAIR) if several else 0
    fetched = n / ranks * s * row * others / (ASKED if far else PAIR)
    return {
        "product": n * k * p / ranks / PRODUCT,
        "exact scores": n * candidates(atoms) * p / ranks / EXACT,
        "rows to all of a group": rows,
        "collective operations": n / groups / BLOCK * calls * LATENCY,
        "atoms fetched": fetched,
        "results to rank 0": n * (QUALITY + (12 * s if writers == 1 else 0)) / ROOT,
    }


def file_rate(rate, writers):
    """The rate of all writers together.  rate: that of a single writer."""
    hosts = max(writers / GPUS_A_HOST, 1)
    return rate if writers == 1 else min(writers * rate, hosts * HOST_FILE)


def files(shape, ranks, writers=1):
    """Seconds of reading, on each rank, and of writing, on each writer."""
    n, p, s = shape["n"], shape["p"], shape["s"]
    return {"rows read": 4 * n * p / ranks / READ,
            "results written": 12 * n * s / file_rate(WRITE, writers)}


def again(shape, writers=1):
    """Seconds in which the writers read again what they wrote."""
    return 12 * shape["n"] * shape["s"] / file_rate(CHECK, writers)


def start(shape, ranks):
    """Seconds until all ranks have started and have the dictionary, which is read once and sent to
    every rank."""
    held = 4 * shape["k"] * shape["p"]
    return START + held / ranks / READ + held * min(ranks, GPUS_A_HOST) / HOST


def column(shape, groups, atoms, calls):
    writers = groups if atoms == 1 else 1
    work = parts(shape, groups, atoms, calls, writers)
    disk = files(shape, groups * atoms, writers)
    ends = {"start": start(shape, groups * atoms)}
    total = ends["start"] + max(sum(work.values()), *disk.values()) + again(shape, writers)
    return {**ends, **work, "together": ends["start"] + sum(work.values()),
            **{f"beside it: {name}": seconds for name, seconds in disk.items()},
            "behind it: results read again": again(shape, writers), "whole job": total}


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.05 else "0"


def gpu_table(shape, gpus):
    part = {**shape, "n": shape["n"] / (gpus / GPUS_A_HOST)}
    columns = {f"1x{gpus}": column(shape, 1, gpus, 8)}
    for atoms in (8, 1):
        columns[f"{gpus // atoms}x{atoms}"] = column(shape, gpus // atoms, atoms,
                                                     8 if atoms > 1 else 2)
    columns[f"{gpus // GPUS_A_HOST} jobs of {GPUS_A_HOST}x1"] = column(part, GPUS_A_HOST, 1, 2)
    print("| part | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for name in next(iter(columns.values())):
        print(f"| {name} | " + " | ".join(number(c[name]) for c in columns.values()) + " |")


def gpu_predicted(gpus):
    n, p, k = (GPU_SHAPE[name] for name in "npk")
    work = parts(GPU_SHAPE, gpus, 1, 2)
    exact = n * GPU_CANDIDATES * p / gpus / EXACT
    return {"product, exact scores": work["product"] + exact, **work, **files(GPU_SHAPE, gpus),
            "results read again": again(GPU_SHAPE)}


def measured_table():
    print("| part | 1 GPU, predicted | measured | 2 GPUs, predicted | measured |")
    print("|---|---|---|---|---|")
    one, two = gpu_predicted(1), gpu_predicted(2)
    for name, seconds in GPU_MEASURED.items():
        print(f"| {name} | {one[name]:.2f} | {seconds[0]:.2f} | {two[name]:.2f} | "
              f"{seconds[1]:.2f} |")


def cpu_predicted(groups, atoms, count):
    n, p, k = (CPU_SHAPE[name] for name in "npk")
    ranks = groups * atoms
    return (CPU_START * ranks + CPU_DICTIONARY * groups + n * k * p / CPU_PRODUCT +
            n * count * p / CPU_EXACT)


def cpu_ratios():
    """Measured divided by predicted seconds.  The grids 1x1, 8x1 and 1x8 gave three of the
    rates."""
    ratios = [seconds / cpu_predicted(*map(int, grid.split("x")), count)
              for grid, (count, seconds) in CPU_MEASURED.items()]
    print(f"grids of 1x1 to 8x1 and to 1x8 take {min(ratios):.2f} to {max(ratios):.2f} of the "
          "processor time predicted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    for name, value in (("rows", 10**9), ("columns", 4096), ("atoms", 10**6), ("top-s", 64),
                        ("gpus", 512)):
        parser.add_argument(f"--{name}", type=float, default=value)
    o = parser.parse_args()
    gpu_table({"n": o.rows, "p": o.columns, "k": o.atoms, "s": o.top_s}, int(o.gpus))
    print()
    measured_table()
    print()
    cpu_ratios()


if __name__ == "__main__":
    main()
