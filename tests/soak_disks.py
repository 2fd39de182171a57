# SPDX-License-Identifier: BSD-3-Clause
"""Faults of disks and places, for tests/soak_faults: calls that fail or never return, full disks,
limits, inputs that change while they are read, and places where something else already is."""
import os
import re
import resource
import shutil
import time

from soak_data import contents_of, results_of
from soak_jobs import SERIAL, STEADY, any_command, begin
from soak_try import FORGETS, HARMLESS, HUNG, REFUSED, WRONG, changed

FAULTS = "open", "read", "read", "write", "write", "fsync", "rename", "own-memory"


def disk(t):
    """One call fails, or that call and all later ones."""
    command, fault = any_command(t), t.random.choice(FAULTS)
    words, before = begin(t, command)
    names = [*command.inputs, ".tmp"] if fault in ("open", "read") else ["", ".tmp"]
    of = t.random.choice(names) if fault != "own-memory" else ""
    n = 1 + int(t.random.random() * t.count(command, fault, of, command.words))
    lasting = "+" * (t.random.random() < 0.5)
    t.say(f"{command.name}: {fault} {n}{lasting} of '{of}' fails")
    done = t.run(words, preload=dict(FAULT=f"{fault}:{n}{lasting}", FAULT_OF=of))
    if is_of_mpi(t, done):
        return t.judge_again(command, words)
    t.judge(command, done, t.data.states("a", command.name), before,
            either=fault in ("fsync", "write", "rename", "own-memory"))
    return t.judge_again(command, words)


def is_of_mpi(t, done):
    """Did the program fail inside of MPI_Init(), as when setenv() fails there?"""
    is_so = bool(done.code) and "in MPI_Init" in done.text
    if is_so:
        t.find(REFUSED, "MPI has no memory")
    return is_so


def is_aborted(done):
    """Has a rank printed its message?  If it failed alone, mpirun then killed the other ranks.  The
    killed ranks may print no message: on a busy machine Open MPI 4.1 then prints only 'Data unpack
    would read past end of buffer'."""
    return re.search(r"^rank \d+: sagitta", done.text, re.M) is not None


def memory(t):
    """One allocation of the program fails, on one rank or on one of two."""
    ranks = 2 if t.random.random() < 0.2 else 0
    command = any_command(t, *SERIAL) if ranks else any_command(t)
    words, before = begin(t, command)
    n = 1 + int(t.random.random() * t.count(command, "own-all", "", command.words))
    fault = dict(FAULT=f"own-all:{n}", FAULT_OF="")
    t.say(f"{command.name}: allocation {n} fails, ranks {ranks}")
    if ranks:  # mpirun itself must not have the library
        fault.update(LD_PRELOAD=t.options.fault, FAULT_RANK=str(t.random.randrange(ranks)))
        launch = ["-n", str(ranks), *(w for k, v in fault.items() for w in ("-x", f"{k}={v}")),
                  t.options.sagitta, *words]
        done = t.end(t.start([], launch=launch))
    else:
        done = t.run(words, preload=fault)
    if is_of_mpi(t, done):
        return t.judge_again(command, words)
    t.judge(command, done, t.data.states("a", command.name), before, either=True, one=not ranks,
            litter="MPI_ABORT" in done.text or is_aborted(done))
    if done.code not in (0, 71):
        t.find(WRONG, f"{done.told()} is not the exit code of a lack of memory")
    return t.judge_again(command, words)


def stall(t):
    """A call for a file never returns."""
    command = any_command(t)
    words, before = begin(t, command)
    of = t.random.choice((".tmp", ".log", ".lock", "used.in", "out", command.results[0],
                          *command.inputs))
    n = 1 + int(t.random.random() * t.count(command, "gate", of, command.words))
    t.say(f"{command.name}: call {n} for '{of}' stalls")
    done = t.end(t.start([*words, "--deadline", 1], preload=dict(
        FAULT=f"gate:{n}", FAULT_GATE=t.at("t/gate"), FAULT_OF=of)), 1 + STEADY)
    t.judge(command, done, t.data.states("a", command.name), before, either=True)
    t.check_litter(command.results)
    t.judge_again(command, words)


# Inputs that change.

def change_cut(t, path, other):
    size = os.path.getsize(path)
    os.truncate(path, t.random.choice((0, size - 1, size // 2, t.random.randrange(size))))


def change_bytes(t, path, other):
    size = os.path.getsize(path)
    at = t.random.randrange(size)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(t.random.randbytes(min(size - at, int(2 ** t.random.uniform(0, 14)))))


def change_all(t, path, other):
    """Overwrite the file in place with another file's bytes, or only their second half."""
    with open(other, "rb") as f, open(path, "r+b") as g:
        content = f.read()
        half = t.random.choice((0, len(content) // 2))
        g.seek(half)
        g.write(content[half:])


def change_append(t, path, other):
    with open(path, "ab") as f:
        f.write(t.random.randbytes(t.random.choice((1, 1000, 100000))))


def change_name(t, path, other):
    shutil.copyfile(other, path + ".new")
    os.rename(path + ".new", path)


def change_gone(t, path, other):
    os.remove(path)


def change_time(t, path, other):
    os.utime(path)


CHANGES = (change_cut, change_cut, change_bytes, change_all, change_all, change_append, change_name,
           change_gone, change_time)


def change(t):
    """An input changes between two calls for it, or at some moment."""
    large = [("encode-many", "many.h5"), ("seed-many", "many.h5")]  # several reads for the rows
    name, file = t.random.choice([(c.name, f) for c in t.data.commands.values() for f in c.inputs]
                                 if t.random.random() < 0.5 else large)
    change_file(t, t.data.commands[name], file)


def change_file(t, command, name):
    words, before = begin(t, command)
    way = t.random.choice(CHANGES)
    path, other = t.at(f"in/{name}"), t.data.at("b", f"in/{name}")
    t.placed.pop(f"in/{name}")
    gate, limit = t.at("t/gate"), time.monotonic() + FORGETS
    if t.options.fault and t.random.random() < 0.8:
        n = 1 + int(t.random.random() * t.count(command, "gate", name, command.words))
        job = t.start(words, preload=dict(FAULT=f"gate:{n}", FAULT_GATE=gate, FAULT_OF=name))
        while job.poll() is None and not os.path.exists(gate) and time.monotonic() < limit:
            time.sleep(0.001)
        t.say(f"{command.name}: {way.__name__} {name} before call {n} for this file")
    else:
        job, wait = t.start(words), t.random.random() * t.data.seconds[command.name, 0]
        time.sleep(wait)
        t.say(f"{command.name}: {way.__name__} {name} after {wait:.3f} s")
    way(t, path, other)
    if os.path.exists(gate):
        os.remove(gate)
    done = t.end(job)
    judge_change(t, command, done, before)


def judge_change(t, command, done, before):
    """A result must be that of the input before the change, or of the input after it."""
    if done.code != 0:  # fit publishes after each sweep, also before the change
        is_fit = command.name.startswith("fit")
        return t.judge(command, done, t.data.states("a", command.name) if is_fit else [], before)
    now = results_of(t.at("out"), command.results)
    if now != t.data.expected["a", command.name]:
        shutil.move(t.at("out"), t.at("first"))
        again = t.run(command.words)
        if again.code or results_of(t.at("out"), command.results) != now:
            t.find(WRONG, "the result is neither that of the old input nor that of the new one")
        shutil.rmtree(t.at("out"), ignore_errors=True)
        shutil.move(t.at("first"), t.at("out"))
        return t.judge(command, done, [now])
    return t.judge(command, done, [t.data.expected["a", command.name]])


# Limits.

def full(t):
    """A disk, a limit of file size or a limit of the stack may be too small, or OMP_STACKSIZE is of
    no use."""
    command = any_command(t)
    words, before = begin(t, command)
    way = t.random.choice(("disk", "size", "size", "stack", "omp"))
    way = "size" if way == "disk" and not t.options.may_mount else way
    files = (t.data.at("a", f"done/{command.name}/{n}") for n in command.results)
    most = sum(os.path.getsize(file) for file in files if os.path.exists(file))
    room = int(t.random.uniform(0, 1.4) * most)
    if way == "size":
        room = max(room, 2000)  # the messages go to a file, which the limit must not cut
    t.say(f"{command.name}: {way}" + f" {room}" * (way in ("disk", "size")))
    if way == "disk":
        done = small_disk(t, words, room)
    elif way == "omp":
        done = t.run(words, OMP_STACKSIZE=t.random.choice(("1E", "100000G", "x", "0", "8E9")))
    elif way == "stack":
        done = small_stack(t, words)
    else:
        done = t.run(words, limits=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    t.judge(command, done, t.data.states("a", command.name), before, either=True)


def small_stack(t, words):
    """Run with a limit of the stack, which the program may or may not raise."""
    least, most = t.random.choice(stacks_of(t)) << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]
    if t.random.random() < 0.5:
        most = least
    t.say(f"limit {least >> 10} kB" + ", which the job may raise" * (most != least))
    return t.run(words, limits=lambda: resource.setrlimit(resource.RLIMIT_STACK, (least, most)))


def stacks_of(t):
    """Limits of the stack, in KiB, with which the program can start.  The loader and the libraries
    of GPUs may need more before the program can check anything."""
    if not hasattr(t.data, "stacks"):
        t.data.stacks = [kib for kib in (64, 128, 512, 4096) if not t.run(
            ["--version"], limits=lambda kib=kib: resource.setrlimit(
                resource.RLIMIT_STACK, (kib << 10, kib << 10))).crashed()]
    return t.data.stacks


def small_disk(t, words, room):
    """Run with out/ on a disk with this room in bytes.  Afterwards out/ has what the disk held."""
    script = """mv out old 2> /dev/null; mkdir out
        mount -t tmpfs -o size=$0 none out || exit 200
        if test -d old; then cp -p old/* out || exit 201; fi
        "$@"; code=$?; cp -a out kept; umount out; rmdir out; mv kept out; rm -rf old; exit $code"""
    earlier = sum((os.path.getsize(t.at(f"out/{n}")) + 4095) // 4096 * 4096
                  for n in os.listdir(t.at("out"))) if os.path.isdir(t.at("out")) else 0
    size = (earlier + room + 8192) // 4096 * 4096
    return t.run(["-rm", "sh", "-c", script, size, t.options.sagitta, *words], program="unshare")


# Places.

def place(t):
    """Something else is at a place where a command writes, or --output names an input."""
    way = t.random.choice(sorted(PLACES))
    t.say(way)
    PLACES[way](t)


def finish(t, command, words, before=None):
    done = t.run(words)
    t.judge(command, done, t.data.states("a", command.name), before)


def link_at(t):
    """A temporary file, a log or a deck has the name of a link to someone's file."""
    command = any_command(t)
    t.take(command)
    os.makedirs(t.at("out"))
    name = t.random.choice((command.results[0] + ".tmp", "run.log", "used.in", "run.log.tmp",
                            "used.in.tmp"))
    with open(t.at("victim"), "w") as f:
        f.write("someone's\n" * 9)
    t.guard("victim")
    os.symlink("../victim", t.at(f"out/{name}"))
    t.guard(f"out/{name}")
    t.say(f"{command.name}: {name} is a link")
    done = t.run(command.words)
    if name in ("run.log", "used.in"):  # the command replaces the link
        del t.placed[f"out/{name}"]
    t.judge(command, done, t.data.states("a", command.name))


def named_tmp(t):
    """An input with the name of a temporary file survives a failure."""
    command = t.data.commands[t.random.choice(("encode", "route", "assemble", "refit"))]
    t.take(command)
    result = command.results[-1]
    t.put(t.data.at("a", "in/rows.h5"), f"out/{result}.tmp")
    words = [w.replace("in/rows.h5", f"out/{result}.tmp") for w in command.words]
    if t.random.random() < 0.7:
        words = changed(words, "--dictionary in/start2.h5")
        t.put(t.data.at("a", "in/start2.h5"), "in/start2.h5")
    done = t.run(words)
    t.judge(command, done, t.data.states("a", command.name))


def dump_at(t):
    """--dump-artifact names an input, a result, a log, or a file that exists."""
    command = t.data.commands["terminal-dump"]
    t.take(command)
    where = t.random.choice((*(f"in/{n}" for n in command.inputs), "out/terminal.h5",
                             "out/run.log", "out/used.in", "kept", "link"))
    with open(t.at("kept"), "w") as f:
        f.write("someone's\n")
    t.guard("kept")
    os.symlink("in/rows.h5", t.at("link"))
    words = list(command.words)
    words[words.index("--dump-artifact") + 1] = where
    force = t.random.random() < 0.5 and where != "kept"
    t.say(f"--dump-artifact {where}{' --force' * force}")
    done = t.run(words + ["--force"] * force)
    t.check_placed()
    if done.code == 0:
        t.find(WRONG, f"--dump-artifact {where} was accepted")
    elif done.code is None or done.crashed() or done.code not in (2, 73):
        t.find(HUNG if done.code is None else WRONG, done.told())
    t.find(REFUSED)


def output_input(t):
    """--output names an input, directly or through a link of either kind."""
    command = t.data.commands[t.random.choice(("encode", "seed", "color", "solve", "refit"))]
    t.take(command)
    name = t.random.choice(command.inputs)
    way = t.random.choice(("name", "link", "hard"))
    where = f"in/{name}"
    if way != "name":
        where = "other.h5"
        (os.symlink if way == "link" else os.link)(t.at(f"in/{name}"), t.at(where))
    words = list(command.words)
    words[words.index("--output") + 1] = where
    t.say(f"{command.name}: --output is {name} by {way}")
    done = t.run([*words, "--force"])
    t.check_placed()
    if done.code not in (0, 2, 73):
        t.find(HUNG if done.code is None else WRONG, done.told())
    if done.code == 0 and way != "hard":
        t.find(WRONG, "an input was accepted as output")
    t.find(HARMLESS if done.code == 0 else REFUSED)


def odd_place(t):
    """A file, a folder, a device or nothing is where the results should go."""
    command = t.data.commands[t.random.choice(("encode", "color", "seed", "terminal"))]
    t.take(command)
    way = t.random.choice(("file", "folder", "missing", "device", "fifo", "dangling"))
    words, result = list(command.words), command.results[0]
    at = words.index("--output") + 1
    if way == "file":
        shutil.copyfile(t.data.at("a", f"done/{command.name}/{result}"), t.at("out"))
        t.guard("out")
    elif way == "folder":
        os.makedirs(t.at(f"out/{result}"))
    elif way == "missing":
        words[at] = "no/such/folder/x.h5"
    elif way == "device":
        words[at] = t.random.choice(("/dev/null", "/dev/full", "/proc/x.h5"))
    elif way == "dangling":
        os.symlink("nowhere/at/all", t.at("out"))
    else:
        os.makedirs(t.at("out"))
        os.mkfifo(t.at(f"out/{result}"))
    t.say(f"{command.name}: {way}")
    done = t.run(words + ["--force"] * (t.random.random() < 0.5))
    t.check_placed()
    if done.code is None:
        return t.find(HUNG, f"{command.name} did not end")
    if done.crashed() or done.code not in (0, 2, 73, 74):
        t.find(WRONG, done.told())
    if done.code == 0 and way == "fifo" and contents_of(t.at(f"out/{result}")) != \
            t.data.expected["a", command.name][result]:
        t.find(WRONG, "exit 0, but there is no result")
    return t.find(REFUSED if done.code else HARMLESS)


PLACES = {"link": link_at, "named": named_tmp, "dump": dump_at, "input": output_input,
          "odd": odd_place}
