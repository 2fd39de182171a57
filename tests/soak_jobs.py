# SPDX-License-Identifier: BSD-3-Clause
"""Faults of jobs, for tests/soak_faults: signals to one, some or all ranks or to mpirun at any
moment, two jobs at one place, ranks with different options, and resumed runs."""
import os
import re
import shutil
import signal
import time

from soak_data import contents_of, results_of
from soak_try import HARMLESS, HUNG, REFUSED, WRONG, changed, members, send

# Commands that leave a part, or the state of a step, if they are asked to stop.  --resume continues
# from it.
PARTS = "encode", "route", "assemble", "solve", "train"
STOPPING = "fit", "refit", *PARTS  # they end with 75
ENDING = signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1
SERIAL = "pack",  # commands that run in one process only
STEADY = 2.0  # seconds after the deadline within which a job must end


def any_command(t, *but):
    names = [name for name in t.data.commands if name not in but]
    return t.data.commands[t.random.choice(names)]


def begin(t, command):
    """Place the inputs, and half of the time an earlier result, which --force replaces.  Returns
    the words, and the state before."""
    t.take(command)
    if t.random.random() < 0.5:
        return command.words, None
    t.place_result(command.name, "b")
    return [*command.words, "--force"], t.data.expected["b", command.name]


def moment(t, command, ranks):
    """Seconds from the start of a job to a random moment of its life, or shortly after it."""
    return t.random.uniform(0, 1.2) * max(t.data.seconds[command.name, ranks], 0.05)


def kill(t):
    """A signal ends one process, at some moment or at some call for a file."""
    command, number = any_command(t), t.random.choice(ENDING)
    words, before = begin(t, command)
    killed = number == signal.SIGKILL
    if t.options.fault and t.random.random() < 0.7:
        of = t.random.choice(("", ".tmp", ".log", "used.in", command.results[-1]))
        n = 1 + int(t.random.random() * t.count(command, "signal", of, command.words))
        t.say(f"{command.name}: signal {number} at call {n} for '{of}'")
        done = t.run(words, preload=dict(FAULT=f"signal:{n}", FAULT_OF=of,
                                         FAULT_SIGNAL=str(int(number))))
    else:
        wait = moment(t, command, 0)
        t.say(f"{command.name}: signal {number} after {wait:.3f} s")
        job = t.start(words)
        time.sleep(wait)
        if job.poll() is None:
            job.send_signal(number)
        done = t.end(job)
    if done.code == 75 and command.name.startswith(PARTS):
        return t.judge_part(command, done, words)
    t.judge(command, done, t.data.states("a", command.name), before, killed=True)
    if not killed:
        t.check_litter(command.results)
    may_stop = not killed and command.name.startswith(STOPPING)
    if done.code not in (0, None, -number) + ((75,) * may_stop):
        t.find(WRONG, f"signal {number}: {done.told()}")
    return t.judge_again(command, words)


def choose_ranks(t, pids):
    """Some of the ranks."""
    pids = sorted(pids)
    return pids if t.random.random() < 0.3 else t.random.sample(
        pids, t.random.randint(min(1, len(pids)), len(pids)))


def rank_names(t):
    """The names of ranks in the kernel, which cuts them to 15 characters."""
    return {os.path.basename(t.options.sagitta)[:15]}


def rank_pids(t, job):
    return [pid for pid, name in members(job.pid).items()
            if name in rank_names(t) and pid != job.pid]


def ranks(t):
    """In a job of several ranks, some ranks or mpirun are killed or stopped."""
    command, count = any_command(t, *SERIAL), t.random.choice((1, 2, 2, 3))
    words, before = begin(t, command)
    deadline = t.random.choice((1, 2))
    if t.options.fault and t.random.random() < 0.4:
        done = rank_at_call(t, command, count, [*words, "--deadline", deadline], deadline)
    else:
        done = ranks_at_moment(t, command, count, [*words, "--deadline", deadline], deadline)
    if done.code == 75 and command.name.startswith(PARTS):
        return t.judge_part(command, done, words)
    t.judge(command, done, t.data.states("a", command.name), before, killed=True)
    return t.judge_again(command, words)


def rank_at_call(t, command, count, words, deadline):
    """One rank is stopped where MPI begins or ends, or gets a signal at some call for a file."""
    count = max(count, 2)  # a rank that is stopped cannot end itself if it is the only one
    rank, way = t.random.randrange(count), t.random.choice(
        ("stop-init", "stop-dup", "stop-finalize", "signal", "signal", "signal"))
    n = 1 + int(t.random.random() * t.count(command, "signal", "", command.words))
    number = t.random.choice((signal.SIGSTOP, signal.SIGKILL))
    t.say(f"{command.name}: rank {rank} of {count}: {way}"
          f"{f' {number} at call {n}' if way == 'signal' else ''}")
    done = t.end(t.start(words, ranks=count, preload=dict(
        FAULT=f"{way}:{n if way == 'signal' else 1}", FAULT_OF="", FAULT_RANK=str(rank),
        FAULT_SIGNAL=str(int(number)))),
        deadline + STEADY + max(t.data.seconds[command.name, count], 0.05))
    return done if way == "signal" and number != signal.SIGSTOP else after_stop(t, done)


def after_stop(t, done):
    if done.code == 1 and "with PID 0 on" in done.text:
        t.say("mpirun, which had been stopped, lost the exit codes of its ranks")
        done.code = 76  # Open MPI's fault: see doc/reliability.md
    if done.code not in (0, 74, 76, None, -signal.SIGKILL):
        t.find(WRONG, f"after a stop: {done.told()}")
    return done


def ranks_at_moment(t, command, count, words, deadline):
    number = t.random.choice((signal.SIGSTOP, signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM))
    whom = t.random.choice(("ranks", "ranks", "mpirun"))
    wait = moment(t, command, count)
    job = t.start(words, ranks=count)
    time.sleep(wait)
    hit = choose_ranks(t, rank_pids(t, job)) if whom == "ranks" else [job.pid]
    send(hit, number) if job.poll() is None else hit.clear()
    struck = time.monotonic()
    t.say(f"{command.name} on {count} ranks: signal {number} to {whom} {len(hit)} after "
          f"{wait:.3f} s")
    if number == signal.SIGSTOP and hit:
        wait_for_others(t, job, hit, deadline, whom)
        struck = time.monotonic()
    done = t.end(job, deadline + STEADY, struck)
    if done.code is None and whom == "mpirun" and not rank_names(t) & done.left:
        t.say("mpirun, which had been stopped, did not end after the last rank")
        done.code = -signal.SIGKILL  # Open MPI's fault: see doc/reliability.md
    return after_stop(t, done) if number == signal.SIGSTOP and hit else done


def wait_for_others(t, job, stopped, deadline, whom):
    """Stopped processes can do nothing.  The other ranks must end within the deadline.  Then the
    stopped ones continue."""
    begun, limit = time.monotonic(), deadline + STEADY + t.options.patience
    others = set(rank_pids(t, job)) - set(stopped)
    if not others:
        time.sleep(1.5 * deadline)
    while others & set(rank_pids(t, job)):
        if time.monotonic() - begun > limit:
            t.find(HUNG, f"{len(others)} ranks still run {limit:.0f} s after {whom} was stopped")
            send(others, signal.SIGKILL)
        time.sleep(0.02)
    t.longest = max(t.longest, time.monotonic() - begun)
    if whom == "ranks" and others:  # mpirun still runs, and ends those that are stopped
        while members(job.pid).keys() & set(stopped) and time.monotonic() - begun < limit:
            time.sleep(0.02)
    send(stopped, signal.SIGCONT)


# Two jobs at one place.

PAIRS = (  # pairs of commands that write to one place
    ("encode", "encode-mean"), ("encode", "route"), ("encode", "refit"), ("assemble", "solve"),
    ("encode", "encode"), ("refit", "seed"), ("terminal", "terminal-slq"))


def spellings(t, result):
    """Several ways to write one place."""
    os.makedirs(t.at("out"))
    os.symlink("out", t.at("link"))
    return ["out", "out/", "./out", "link", "link/../out", t.at("out"), f"out/{result}",
            f"link/{result}", f"./out//{result}", t.at(f"link/{result}")]


def pair(t):
    """Two jobs write to one place at about the same time.  One may be refused; no result may be
    damaged."""
    one, two = (t.data.commands[name] for name in t.random.choice(PAIRS))
    shared = [name for name in one.results if name in two.results]
    places = spellings(t, shared[0] if shared else "x.h5")
    force = ["--force"] if t.random.random() < 0.5 else []
    jobs, versions = [], ("a", "b" if one is two else "a")
    for i, command in enumerate((one, two)):
        t.take(command, versions[i], to=f"in{i}")
        where = t.random.choice(places if len(command.results) == 1 and shared else places[:6])
        words = [re.sub(r"^in/", f"in{i}/", w) for w in command.words]
        words[words.index("--output") + 1] = where
        jobs.append(t.start([*words, *force]))
        t.say(f"{command.name} --output {where} {' '.join(force)}")
        time.sleep(max(0, t.random.uniform(-0.03, 0.05)) if i == 0 else 0)
    ends = [t.end(job) for job in jobs]
    t.check_placed()
    judge_pair(t, (one, two), versions, ends, bool(force))


def judge_pair(t, commands, versions, ends, forced):
    done = [i for i in (0, 1) if ends[i].code == 0]
    for command, end in zip(commands, ends):
        if end.code is None:
            t.find(HUNG, f"{command.name} did not end")
        elif end.code not in (0, 73):
            t.find(WRONG, f"{command.name}: {end.told()}")
    names = sorted(set(sum((c.results for c in commands), [])))
    now, wanted = results_of(t.at("out"), names), []
    for i in done:
        wanted.append(t.data.expected[versions[i], commands[i].name])
    for name in names:
        good = [w[name] for w in wanted if name in w]
        if good and now[name] not in good or not good and now[name] is not None and not any(
                now[name] == state.get(name) for i in (0, 1)
                for state in t.data.states(versions[i], commands[i].name)):
            t.find(WRONG, f"{name} is the result of none of the {len(done)} jobs that ended well")
        if len(good) > 1 and not forced:
            t.find(WRONG, f"both jobs made {name} without --force")
    t.check_litter(names)
    t.find(HARMLESS if len(done) == 2 else REFUSED, " / ".join(e.told() for e in ends if e.code))


# Ranks with different options or inputs.

OTHER = {  # command: words that only one rank gets
    "encode": ("--top-s 2", "--rounds 2", "--rho 0.5", "--center", "--block 16", "--tile 4",
               "--normalize", "--threads 2", "--filter on", "--force", "--dry-run",
               "--cosine-limit 2", "--deadline 9", "--top-s 0", "--output other"),
    "route": ("--top-s 2", "--rounds 2", "--center", "--block 16", "--tile 4"),
    "seed": ("--atoms 6", "--frame 2", "--seed 7"),
    "color": ("--output other",),
    "assemble": ("--directions 2", "--dry-run"),
    "solve": ("--ridge-t 0.5", "--ridge-b 1", "--escalate", "--batch 20"),
    "refit": ("--sweeps 1", "--directions 2", "--reroute", "--cosine-limit 2", "--resume"),
    "fit": ("--sweeps 1", "--seed 3", "--codes signed", "--rho 0.5", "--uncentered"),
    "train": ("--top-s 2", "--batch 16", "--epochs 1", "--seed 3", "--lr 0.01"),
    "detect": ("--top-s 2", "--strict", "--threads 2"),
    "harvest": ("--block 8", "--cut positions"),
    "terminal": ("--directions 1", "--cross 2", "--evidence slq", "--spectrum none"),
    "synth": ("--n-rows 50", "--atoms 6", "--columns 8", "--seed 3", "--noise 0.5"),
}


def told(t):
    """One rank gets other options, another file with the same name, no file, or no deck."""
    way = t.random.choice(("option", "option", "file", "file", "missing", "deck"))
    names = OTHER if way == "option" else [
        n for n in t.data.commands if not n.startswith("synth") and n not in SERIAL]
    command = t.data.commands[t.random.choice(sorted(names))]
    count, states = t.random.choice((2, 2, 3)), t.data.states("a", command.name)
    odd = t.random.randrange(count) if way != "deck" else 0
    for i in range(count):
        os.makedirs(t.at(f"r{i}/in"))
        t.take(command, to=f"r{i}/in")
    words = [w if w != "out" else t.at("out") for w in command.words] + ["--deadline", "2"]
    other, stdin = list(words), None
    if way == "option":
        more = t.random.choice(OTHER[command.name])
        other = changed(words, more)
        t.say(f"{command.name}: rank {odd} of {count} gets {more}")
    elif way == "deck":
        stdin = deck_of(t, words)
        words = other = [words[0], "/dev/stdin"]
        t.say(f"{command.name}: deck on stdin, {count} ranks")
    else:
        name = t.random.choice(command.inputs)
        t.placed.pop(f"r{odd}/in/{name}")
        os.remove(t.at(f"r{odd}/in/{name}"))
        if way == "file":
            shutil.copyfile(t.data.at("b", f"in/{name}"), t.at(f"r{odd}/in/{name}"))
        t.say(f"{command.name}: rank {odd} of {count}: {way} {name}")
    launch = []
    for i in range(count):
        launch += [":"] * (i > 0) + ["-n", "1", "--wdir", t.at(f"r{i}"), t.options.sagitta,
                                     *(other if i == odd else words)]
    done = t.end(t.start([], launch=launch, stdin=stdin), 2 + STEADY)
    if done.code == 0 and odd == 0 and way != "deck":  # what rank 0 was given counts
        shutil.move(t.at("out"), t.at("many")) if os.path.exists(t.at("out")) else None
        alone = t.end(t.start([], launch=launch[:launch.index(":")]))
        states = [results_of(t.at("out"), command.results)] if alone.code == 0 else states
        shutil.rmtree(t.at("out"), ignore_errors=True)
        shutil.move(t.at("many"), t.at("out")) if os.path.exists(t.at("many")) else None
    t.judge(command, done, states, one=False)


def deck_of(t, words):
    """Write the words as a deck, and return the open file."""
    with open(t.at("t/deck"), "w") as f:
        for word, value in zip(words[1:], [*words[2:], "--"]):
            if word.startswith("--"):
                f.write(f"{word[2:]} = {'yes' if value.startswith('--') else value}\n")
    return open(t.at("t/deck"))


# Refits that go on.

def resume(t):
    """A refit is resumed: after kills; from a dictionary or supports that are older, another run's
    or missing; or with other inputs or options."""
    way = t.random.choice(("kills", "kills", "rows", "start", "supports", "option", "stale",
                           "mixed", "gone", "few"))
    command = t.data.commands["refit-3"]
    words, before = [*command.words, "--resume"], None
    t.take(command)
    t.say(f"resume: {way}")
    if way == "kills":
        return resume_killed(t, command, words)
    t.place_result("refit", "a")
    if way in ("rows", "start", "supports"):
        t.put(t.data.at("b", f"in/{way}.h5"), f"in/{way}.h5")
    elif way == "few":
        few_rows(t)
    elif way == "option":
        more = t.random.choice(("--directions 2", "--reroute", "--threads 2"))
        t.say(more)
        words = changed(words, more)
    elif way == "gone":
        os.remove(t.at("out/" + t.random.choice(command.results)))
    else:
        name, where = t.random.choice((("supports.h5", "done/refit-1"), ("supports.h5", "in"))
                                      if way == "stale" else (("dictionary.h5", "done/refit"),
                                                              ("supports.h5", "done/refit")))
        version = "a" if way == "stale" else "b"
        t.say(f"{name} of {where}, {version}")
        shutil.copyfile(t.data.at(version, f"{where}/{name}"), t.at(f"out/{name}"))
    before = results_of(t.at("out"), command.results)
    done = t.run(words)
    t.judge(command, done, t.data.states("a", command.name), before)
    if done.code and results_of(t.at("out"), command.results) != before:
        t.find(WRONG, f"refused, and the earlier result was changed: {done.told()}")
    return None


def few_rows(t):
    """Change the values of one row in place, as another program may."""
    import h5py
    with h5py.File(t.at("in/rows.h5"), "r+") as f:
        f["rows"][t.random.randrange(150)] *= -1
    t.guard("in/rows.h5")


def resume_killed(t, command, words):
    """A job that is killed up to three times, and then ends on any number of ranks, must give the
    bits of an uninterrupted run."""
    for _ in range(t.random.randint(1, 3)):
        if t.options.fault:
            of = t.random.choice(("", ".tmp"))
            n = 1 + int(t.random.random() * t.count(command, "signal", of, words))
            t.say(f"killed at call {n} for '{of}'")
            done = t.run(words, preload=dict(FAULT=f"signal:{n}", FAULT_OF=of,
                                             FAULT_SIGNAL="9"))
        else:
            job = t.start(words)
            time.sleep(moment(t, command, 0))
            job.kill()
            done = t.end(job)
        t.judge(command, done, t.data.states("a", command.name), killed=True)
    if os.path.exists(t.at("out/supports.h5")) and not contents_of(t.at("out/dictionary.h5")):
        t.find(WRONG, "supports.h5 was published before its dictionary.h5")
    count = t.random.choice((0, 0, 0, 1, 2, 3))
    t.say(f"then on {count} ranks")
    done = t.run(words, ranks=count)
    if done.code != 0:
        t.find(WRONG, f"the resumed run: {done.told()}")
    t.judge(command, done, t.data.states("a", command.name), killed=True)
