# SPDX-License-Identifier: BSD-3-Clause
"""One job: the program as a child process, its messages while it runs, and how it is stopped.

The child runs in a session of its own, so that Ctrl-C reaches only this process, which then asks
the child to stop.  The child writes lines of JSON to a pipe (--progress-fd).  When this process
has ended, in whatever way, nobody reads the pipe: then the child stops, and its job can be
resumed."""
import contextlib
import io
import json
import logging
import os
import re
import selectors
import signal
import subprocess
import sys
import time
import warnings

from .errors import WARNINGS, Error, InputError, Warning
from .program import mpirun, program

log = logging.getLogger("sagitta")
STOPPED = 75  # exit code of a job that stopped because it was asked to
KEY = r"--(?P<%s>[a-z][a-z0-9-]*)"
OPTION = re.compile(r"(['`])" + KEY % "quoted" + r"(?:[ =](?P<its>[^'`]*))?\1|" + KEY % "bare" +
                    r"(?:[ =](?P<number>\d[\w.:,]*))?")
# mpirun does not pass the pipe on, so the ranks cannot notice the end of this process.  This script
# makes the kernel send SIGUSR1 to mpirun when this process ends (prctl(PR_SET_PDEATHSIG)).  mpirun
# forwards the signal to the ranks.
HEEDS = """import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGUSR1)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])"""
GRACE = 2.0  # seconds that a child is given to end by itself
LATE = 10.0  # seconds between two lines of progress, without tqdm


class Interrupted(KeyboardInterrupt):
    """A job was interrupted.  .output is its folder, from which resume=True continues."""

    def __init__(self, command, output):
        self.output = output
        more = f"; {command}(..., output={output!r}, resume=True) with the same rows and options " \
            "continues it"
        super().__init__(f"{command} was interrupted{more if output else ''}")


def in_words_of_python(text, shown):
    """A message of the program in terms of Python: options become keywords, and the names of files
    become the words in `shown`."""
    for name, word in shown.items():
        text = text.replace(f"'{name}'", word).replace(name, word)

    def keyword(found):
        name = (found["quoted"] or found["bare"]).replace("-", "_")
        return f"{name}={found['its'] or found['number'] or ''}"
    return OPTION.sub(keyword, text)


class Bar:
    """A progress bar by tqdm if that is installed, otherwise a line every ten seconds."""

    def __init__(self):
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self.tqdm, self.bar, self.what, self.said = tqdm, None, None, time.monotonic()

    def __call__(self, event):
        if self.tqdm is None:
            return self._line(event)
        if self.what != event["what"]:
            self.close()
            self.what = event["what"]
            self.bar = self.tqdm(total=event["total"], unit=event["unit"], desc=self.what,
                                 leave=False)
        self.bar.update(event["done"] - self.bar.n)
        return None

    def _line(self, event):
        now = time.monotonic()
        if now - self.said >= LATE:
            self.said = now
            print("sagitta: {what} {done} of {total} {unit}".format(**event), file=sys.stderr)

    def close(self):
        if self.bar is not None:
            self.bar.close()
        self.bar = self.what = None


def kill(child):
    """Kill a child and all processes of its session at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def end(child):
    """Ask a running child, and all that it started, to end.  The first SIGTERM lets it stop and
    save its state; a second one ends it sooner.  In both cases it and mpirun remove their temporary
    files."""
    for _ in range(2):
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)


class Job:
    """One run of a command with its words.  run() returns what the command printed."""

    def __init__(self, command, words, shown, ranks=1, progress="auto", verbose=0):
        self.command, self.words, self.shown, self.ranks = command, words, shown, ranks
        self.progress = Bar() if progress == "auto" else progress or None
        if self.progress is not None and not callable(self.progress):
            raise TypeError(f"progress is {progress!r}: give 'auto', a function or None")
        self.verbose, self.warnings, self.errors, self.printed = verbose, [], [], []
        self.rest = {}
        self.asked = False

    def _launch(self):
        """The words that start the program.  For several ranks they start mpirun through HEEDS."""
        if self.ranks == 1:
            return [program()]
        heeds = [sys.executable, "-I", "-S", "-c", HEEDS, str(os.getpid())] * bool(sys.executable)
        return [*heeds, *mpirun(self.ranks), "-n", str(self.ranks), program(self.ranks)]

    @contextlib.contextmanager
    def _child(self):
        """Start the child and give (child, pipe to read).  The child is gone when the block ends,
        also on an exception.  With several ranks the events come through standard error, since
        mpirun does not pass the pipe on."""
        ours, its = map(io.FileIO, os.pipe(), ("rb", "wb"))  # closed together with their objects
        child, fd = None, its.fileno() if self.ranks == 1 else 2
        words = [*self._launch(), self.command, *self.words, f"--progress-fd={fd}", "--quiet",
                 "--json", *(["--verbose"] if self.verbose > 1 else [])]
        try:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, start_new_session=True,
                                     pass_fds=(fd,) if self.ranks == 1 else ())
            its.close()
            yield child, ours.fileno()
        finally:
            try:
                if child is not None:
                    end(child)
            finally:
                if child is not None:
                    kill(child)
                    child.stdout.close()
                    child.stderr.close()
                ours.close()
                its.close()

    def _event(self, event):
        kind = event.get("event")
        if kind == "progress" and self.progress is not None:
            self.progress(event)
        elif kind == "warning":
            self.warnings.append(
                WARNINGS.get(event["id"], Warning)(in_words_of_python(event["text"], self.shown)))
        elif kind == "log" and self.verbose > 0:
            log.info("%s", event["text"])
        elif kind == "debug" and self.verbose > 1:
            log.debug("%s", event["text"])

    def _line(self, line):
        """Handle a line of the pipe or of standard error, which is an event or plain text."""
        text = line.decode(errors="replace")
        if text.startswith('{ "event"'):
            with contextlib.suppress(ValueError):
                return self._event(json.loads(text))
        if text.strip() and not re.match(r"\[ *\d+\.\d+\] ", text):
            self.errors.append(text)
        return None

    def _read(self, file, printed):
        """Read the bytes that have arrived.  Returns False at the end of the file, otherwise
        True."""
        part = os.read(file, 1 << 16)
        if printed:
            self.printed.append(part)
            return bool(part)
        *lines, self.rest[file] = (self.rest.get(file, b"") + part).split(b"\n")
        if not part and self.rest[file]:
            lines.append(self.rest.pop(file))
        for line in lines:
            self._line(line)
        return bool(part)

    def _listen(self, child, ours):
        with selectors.DefaultSelector() as selector:
            for file, printed in ((ours, False), (child.stderr.fileno(), False),
                                  (child.stdout.fileno(), True)):
                selector.register(file, selectors.EVENT_READ, printed)
            while selector.get_map():
                for key, _ in selector.select():
                    if not self._read(key.fd, key.data):
                        selector.unregister(key.fd)

    def _ask(self, child):
        """At the first Ctrl-C, ask the child to stop, and continue to read from it; at the second,
        end it."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGUSR1)

    def _follow(self, child, ours):
        while True:
            try:
                self._listen(child, ours)
                return child.wait()
            except KeyboardInterrupt:
                self._ask(child)

    def run(self, output):
        """Run the command and return what it printed; raises InputError, Error or Interrupted."""
        try:
            with self._child() as (child, ours):
                code = self._follow(child, ours)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(self.command, output) from interrupt
        finally:
            if isinstance(self.progress, Bar):
                self.progress.close()
        if self.asked:
            raise Interrupted(self.command, output)
        if code:
            raise self._error(code)
        self._warn()
        return b"".join(self.printed).decode()

    def _warn(self):
        """Issue the first warning of each kind; the Run holds all of them."""
        first = {type(one): one for one in reversed(self.warnings) if type(one) is not Warning}
        for one in self.warnings:
            if first.get(type(one), one) is one:
                warnings.warn(one, stacklevel=level_of_caller())

    def _error(self, code):
        """An exception with the program's last messages, in terms of Python."""
        own = [line.split(f"sagitta {self.command}: ", 1)[1] for line in self.errors
               if f"sagitta {self.command}: " in line]
        said = own or self.errors[-8:] or [f"the program ended by signal {-code}" if code < 0 else
                                           f"the program ended with exit code {code}"]
        if code == STOPPED:
            said = [f"{self.command} was stopped before its end: resume=True continues it"]
        kind = InputError if code in (2, 65) else Error
        return kind(in_words_of_python("\n".join(said), self.shown), code)


def level_of_caller():
    """The stack level, as for warnings.warn(), of the first frame outside of this package."""
    own, frame, level = os.path.dirname(os.path.abspath(__file__)), sys._getframe(1), 1
    while frame.f_back and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == own:
        frame, level = frame.f_back, level + 1
    return level
