# SPDX-License-Identifier: BSD-3-Clause
"""One try of tests/soak_faults: its random numbers and its folder, and functions that run commands
and check what they leave."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

from soak_data import difference, results_of

REFUSED, HARMLESS, VERIFY, UNDETECTABLE, WRONG, HUNG = OUTCOMES = (
    "refused", "harmless", "left to verify", "undetectable", "wrong", "hung")
CODES = 2, 65, 69, 71, 73, 74, 75, 76  # doc/design.md; 1 is a result, and 70 a fault of the program
CRASHES = signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL
TEMPORARY = re.compile(r"\.tmp$")
BESIDE = re.compile(r"(^|\.)(used|run)(\.failed)?\.(in|log|json)$|\.lock$")  # may be left
FORGETS = 20  # the most seconds that a command without a fault may take


class Done:
    """How a job ended.  code: as in subprocess, None if it hung.  left: names of its processes that
    were still alive then."""

    def __init__(self, code, text, seconds, left):
        self.code, self.text, self.seconds, self.left = code, text, seconds, left
        self.messages = len(re.findall(r"^(?:rank \d+: )?sagitta(?: [a-z]+)?: ", text, re.M))

    def crashed(self):
        return self.code is not None and (-self.code in CRASHES or self.code - 128 in CRASHES
                                          or "AddressSanitizer" in self.text
                                          or "runtime error:" in self.text)

    def told(self):
        lines = [line for line in self.text.splitlines() if "sagitta" in line or "anitizer" in line]
        return f"exit {self.code} {' / '.join(lines)[:300]}"


def changed(words, more):
    """Replace the options of the words by those in `more`."""
    more = more.split()
    at = words.index(more[0]) if more[0] in words else len(words)
    return [*words[:at], *words[at + len(more):], *more]


def members(session):
    """{pid: name} of the living processes of a session."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") if name.isdigit() else open(os.devnull) as f:
                head, _, tail = f.read().rpartition(")")
        except OSError:
            continue
        fields = tail.split()
        if fields and int(fields[3]) == session and fields[0] not in "ZX":
            found[int(name)] = head.partition("(")[2]
    return found


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Try:
    def __init__(self, data, number, options, folder):
        self.data, self.number, self.options, self.folder = data, number, options, folder
        self.random = random.Random(f"{options.seed} {number}")
        self.did, self.verdicts, self.longest, self.jobs, self.crashes = [], [], 0.0, [], 0
        self.is_of_mpi = False  # a crash that is not the program's fault: the try is repeated
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(f"{folder}/in")
        os.makedirs(f"{folder}/t")
        self.placed = {}  # files that must not change: inputs and others

    def at(self, name):
        return os.path.join(self.folder, name)

    # What a try uses.

    def take(self, command, version="a", to="in"):
        for name in [*command.inputs, *command.beside]:
            self.put(self.data.at(version, f"in/{name}"), f"{to}/{name}")

    def put(self, source, name):
        """Place a file that nothing may change."""
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        shutil.copyfile(source, self.at(name))
        self.guard(name)

    def guard(self, name):
        with open(self.at(name), "rb") as f:
            self.placed[name] = f.read()

    def place_result(self, name, version):
        """Place an earlier result of a command, with its deck and log."""
        done = self.data.at(version, f"done/{name}")
        os.makedirs(self.at("out"), exist_ok=True)
        for file in os.listdir(done):
            shutil.copyfile(f"{done}/{file}", self.at(f"out/{file}"))

    def say(self, text):
        self.did.append(text)

    def find(self, outcome, text=""):
        """Record an observation.  The worst one is the outcome of the try."""
        self.verdicts.append((OUTCOMES.index(outcome), text))
        return outcome

    # Running.

    def environment(self, preload=None, **more):
        # Open MPI's folders of sessions and shared memory are in the folder of the try, which is
        # removed.
        place = dict(TMPDIR=self.at("t"), OMPI_MCA_btl_vader_backing_directory=self.at("t"))
        library = {"LD_PRELOAD": self.options.fault} if preload else {}
        return dict(self.data.environment, **place, **library, **(preload or {}), **more)

    def start(self, words, ranks=0, preload=None, stdin=None, launch=None, limits=None,
              program=None, **more):
        """Start a job in its own session.  launch: words of mpirun instead of -n RANKS.  more: for
        its environment."""
        program = [program or self.options.sagitta, *map(str, words)]
        mpirun = [*self.options.mpirun, "--oversubscribe", "--bind-to", "none"]
        if launch:
            program = [*mpirun, *launch]
        elif ranks:
            program = [*mpirun, "-n", str(ranks), *program]
        said = open(self.at(f"t/said-{len(self.jobs)}"), "w+", errors="replace")
        self.jobs.append(program)
        job = subprocess.Popen(program, cwd=self.folder, env=self.environment(preload, **more),
                               stdin=stdin or subprocess.DEVNULL, stdout=said, stderr=said,
                               start_new_session=True, preexec_fn=limits)
        job.said, job.begun, job.alone = said, time.monotonic(), not (ranks or launch)
        return job

    def end(self, job, seconds=FORGETS, since=None):
        """Wait until the job ends, at most `seconds` from now or from `since`.  Then kill all its
        processes."""
        since = since or time.monotonic()
        limit = since + seconds + self.options.patience
        try:
            code = job.wait(max(0.01, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            code = None
        while code is not None and not job.alone and members(job.pid):
            if time.monotonic() > limit:
                code = None
            time.sleep(0.01)
        spent = time.monotonic() - since
        self.longest = max(self.longest, spent)
        left = members(job.pid) if code is None or not job.alone else {}
        send(left, signal.SIGKILL)
        if code is None:
            job.kill()
            job.wait()
        job.said.seek(0)
        text = job.said.read()
        job.said.close()
        told = re.search(r"Exit code: +(\d+)", text)
        if code == -signal.SIGSEGV and not job.alone and told and "PMIx_server_finalize" in text:
            self.say("mpirun crashed at its end")  # Open MPI's fault: see doc/reliability.md
            code = int(told[1])
            text = text[:text.index("*** Process received signal")]
        if code == -signal.SIGSEGV and job.alone and "libopen-pal.so" in text and not re.search(
                r"^\[.*/sagitta[^/]*\(", text, re.M):
            self.is_of_mpi = True  # a thread of Open MPI crashed: doc/reliability.md
        done = Done(code, text, spent, set(left.values()))
        self.crashes += done.crashed()
        return done

    def run(self, words, **more):
        return self.end(self.start(words, **more))

    def count(self, command, fault, of, words):
        """How many calls the command makes that this kind of fault counts, if none of them fails.
        of: FAULT_OF, as in tests/fault.c."""
        key = re.sub(r"\W", "_", f"count {command.name} {fault} {of} {' '.join(words)}")
        path = os.path.join(self.data.folder, key[:200])
        if not os.path.exists(path):
            clean = Try(self.data, self.number, self.options, self.folder + "-count")
            clean.take(command)
            done = clean.run(words, preload=dict(FAULT=f"{fault}:1000000000", FAULT_COUNT="1",
                                                 FAULT_OF=of))
            shutil.rmtree(clean.folder, ignore_errors=True)
            counts = re.findall(r"fault calls=(\d+)", done.text)
            with open(f"{path}.{os.getpid()}", "w") as f:
                f.write(str(max(map(int, counts), default=0)))
            os.rename(f"{path}.{os.getpid()}", path)
        with open(path) as f:
            return int(f.read())

    # Checks.

    def check_placed(self):
        """Inputs and other placed files must be unchanged."""
        for name, content in self.placed.items():
            try:
                with open(self.at(name), "rb") as f:
                    same = f.read() == content
            except OSError:
                same = False
            if not same:
                self.find(WRONG, f"{name} was changed")

    def check_litter(self, results, killed=False):
        """No temporary file may be left, unless the job was killed."""
        out = self.at("out")
        for name in os.listdir(out) if os.path.isdir(out) else ():
            if name in results or f"out/{name}" in self.placed or BESIDE.search(name):
                continue
            if not (killed and (TEMPORARY.search(name) or name.startswith("."))):
                self.find(WRONG, f"litter: {name}")

    def check_results(self, command, allowed):
        """Each result must be equal to that in one of these states.  None in a state: there is no
        such file."""
        now = results_of(self.at("out"), command.results)
        for name in command.results:
            if any(now[name] == state[name] for state in allowed):
                continue
            text = "is not there" if now[name] is None else "has other contents: " + difference(
                now[name], allowed[-1][name])
            self.find(WRONG, f"{name} {text}")

    def judge(self, command, done, states, before=None, killed=False, either=False, one=True,
              litter=False):
        """Check a command that ended by itself.  states: the contents that its results have one
        after another; before: their contents before the job; killed: a signal of the try ended it;
        either: it may fail while it publishes its result; one: if it fails, it must print one
        message; litter: mpirun killed some of its ranks."""
        before = before or {name: None for name in command.results}
        self.check_placed()
        if done.code is None:
            return self.find(HUNG, f"{command.name} did not end in {done.seconds:.0f} s")
        if done.crashed():
            self.find(WRONG, f"{command.name} crashed: {done.told()}")
        if done.code and not killed:
            self.check_refusal(command, done, one)
        many = killed or either or len(command.results) > 1
        # when fit publishes a new dictionary, it removes the state and supports of the old one
        if command.name.startswith("fit") and states:
            states = [{**states[0], "state.h5": None, "supports.h5": None}, *states]
        self.check_results(command, states[-1:] if done.code == 0 else
                           [before, *states] if many else [before])
        self.check_litter(command.results, killed or litter)
        return self.find(REFUSED if done.code else HARMLESS, done.told() if done.code else "")

    def check_refusal(self, command, done, one):
        if done.code not in CODES:
            self.find(WRONG, f"{command.name}: {done.told()} is not a code for this fault")
        if one and done.messages != 1:
            self.find(WRONG, f"{command.name}: {done.messages} messages: {done.told()}")

    def judge_again(self, command, words):
        """A later run at the same place must work, with --force if there is a result."""
        there = any(os.path.lexists(self.at(f"out/{name}")) for name in command.results)
        more = ["--force"] if there and not {"--force", "--resume"} & set(words) else []
        done = self.run([*words, *more])
        if done.code is None:
            return self.find(HUNG, "the later run did not end")
        if done.code:
            return self.find(WRONG, f"the later run: {done.told()}")
        return self.check_results(command, [self.data.expected["a", command.name]])

    def judge_part(self, command, done, words):
        """A stopped job has left a part, or nothing if it was still computing the mean of the rows.
        verify must accept the part, and --resume must continue to the whole result."""
        if os.path.exists(self.at(f"out/{command.results[-1]}")):
            told = self.run(["verify", f"out/{command.results[-1]}"])
            if told.code:
                self.find(WRONG, f"verify of a part: {told.told()}")
        self.find(REFUSED, done.told())
        return self.judge_again(command, [*words, "--resume"])

    def show(self, words):
        """Run verify, inspect or diff: it must end with a documented exit code, without a crash or
        a hang."""
        done = self.run(words)
        if done.code is None:
            self.find(HUNG, f"{words[0]} did not end")
        elif done.crashed() or done.code not in (0, 1, 65, 71, 74):
            self.find(WRONG, f"{words[0]}: {done.told()}")
        elif done.code == 1 and words[0] != "diff":
            self.find(WRONG, f"{words[0]} ends with 1")
        return done
