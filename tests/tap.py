# SPDX-License-Identifier: BSD-3-Clause
"""Test Anything Protocol for Python tests, and how to run the program under test."""
import contextlib
import os
import subprocess
import sys
import tempfile

SAGITTA = os.path.join(os.environ.get("builddir", "."), "sagitta")
BENCH = SAGITTA + "-bench"
SOURCE = os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), ".."))
SHOWN = 20  # the largest number of failed checks that are printed for a claim
FULL = os.environ.get("CHECK_FULL", "0") not in ("", "0")  # all combinations and the large sizes
_count = _failed = 0
_claim = None
OLD = ("earliest", "v110")  # the format that every HDF5 from 1.10 on reads
_sessions = tempfile.TemporaryDirectory(dir=os.environ.get("OMPI_MCA_orte_tmpdir_base"))


def _write_old():
    """h5py may have a newer HDF5 than the program, and its default format may be newer too.  So
    files of tests are written in the old format unless a test asks for another."""
    try:
        import h5py
    except ImportError:
        return

    class File(h5py.File):
        def __init__(self, name, mode="r", driver=None, libver=None, **more):
            super().__init__(name, mode, driver, libver or OLD, **more)
    h5py.File = File
    print(f"# {sys.executable}: h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}, which "
          "writes for HDF5 1.10", flush=True)


_write_old()


def _line(good, text):
    global _count, _failed
    _count += 1
    _failed += not good
    print(f"{'' if good else 'not '}ok {_count} {text}", flush=True)
    return bool(good)


class claim(contextlib.ContextDecorator):
    """A claim gives one line of the stream.  Inside of `with claim("text"):`, or of a function
    after `@claim("text")`, each ok() is one check of the claim, and prints only if it fails.  A
    claim without a check fails, unless skip() gave a reason."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        global _claim
        assert _claim is None, "claims do not nest"
        self.checks, self.failed, self.skipped = 0, 0, []
        _claim = self
        return self

    def __exit__(self, kind, error, trace):
        global _claim
        _claim = None
        if kind is not None:
            _line(False, f"- {self.text}: {kind.__name__} after {self.checks} checks")
        elif self.skipped and not self.checks:
            _line(True, f"- {self.text} # SKIP {self.skipped[-1]}")
        elif not self.checks:
            _line(False, f"- {self.text}: nothing was checked")
        elif self.failed:
            _line(False, f"- {self.text}: {self.failed} of {self.checks} checks failed")
        else:
            left = f", {len(self.skipped)} left out: {self.skipped[-1]}" if self.skipped else ""
            _line(True, f"- {self.text} ({self.checks} checks{left})")


def ok(good, text):
    """Is `good` true?  Outside of a claim this is a claim of its own; inside of one it is a check.
    text: what was checked."""
    text = " / ".join(str(text).split("\n"))  # a report has only the first line
    if _claim is None:
        return _line(good, f"- {text}")
    _claim.checks += 1
    _claim.failed += not good
    if not good and _claim.failed <= SHOWN:
        print(f"# fails: {text}", flush=True)
    return bool(good)


def skip(reason):
    if _claim is None:
        _line(True, f"# SKIP {reason}")
    else:
        _claim.skipped.append(reason)


def gpu_present():
    """Is there a GPU?  If not, the claim counts as skipped, or as failed with REQUIRE_GPU=1."""
    probe = bench("route", "--device", "cuda", "--n-rows", 1, "--atoms", 2, "--columns", 1,
                  "--repeats", 1)
    if probe.returncode == 0:
        return True
    if os.environ.get("REQUIRE_GPU", "0") not in ("", "0"):
        ok(False, f"a GPU, which REQUIRE_GPU asks for: {probe.stderr.strip()}")
    else:
        skip("there is no GPU")
    return False


def skip_all(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


PEERS_WANTED = os.environ.get("REQUIRE_PEERS", "0") not in ("", "0")


def peer_missing(reason):
    """A package that a claim compares with is not installed.  This is a skip, or a failure with
    REQUIRE_PEERS=1, as in scripts/check, which installs the packages."""
    return ok(False, reason) if PEERS_WANTED else skip(reason)


def peer_missing_all(reason):
    """As peer_missing(), for all claims of the test."""
    if not PEERS_WANTED:
        skip_all(reason)
    ok(False, reason)
    done_testing()


def done_testing():
    print(f"1..{_count}")
    sys.exit(1 if _failed else 0)


def later_wins(*words):
    """Words in which only the last of several equal options is kept, because the program refuses an
    option that is given twice."""
    options = {}
    for i, word in enumerate(map(str, words)):
        if word.startswith("--") or not options or len(options[key]) == 2:
            key = word if word.startswith("--") else i
            options[key] = []
        options[key].append(word)
    return [word for option in options.values() for word in option]


def launch(ranks):
    """The words that start a program on `ranks` ranks; none for 0.  Each launch gets its own folder
    for the sessions of Open MPI.  If two launches shared one, a job that ends could remove files of
    a job that begins, which then fails with 1, or never begins."""
    if not ranks:
        return []
    return [*os.environ.get("MPIEXEC", "mpirun").split(), "--mca", "orte_tmpdir_base",
            tempfile.mkdtemp(dir=_sessions.name), "--oversubscribe", "--bind-to", "none", "-n",
            str(ranks)]


def sagitta(*words, ranks=0, timeout=300, program=(SAGITTA,)):
    """Run the program, under mpirun if ranks > 0.  Returns the completed process.

    mpirun 4.1 sleeps for two seconds between two signals to a rank that is gone.  With one rank the
    sleep is turned off.  With several it stays, so that living ranks have time to end."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if ranks == 1:
        environment["OMPI_MCA_odls_base_sigkill_timeout"] = "0"
    return subprocess.run([*launch(ranks), *program, *map(str, words)], capture_output=True,
                          text=True, timeout=timeout, env=environment)


def bench(*words, ranks=0):
    """As sagitta(), for sagitta-bench."""
    return sagitta(*words, ranks=ranks, program=(BENCH,))


def raised(kind, words, call, *rest, **more):
    """A check that call() raises an exception of this kind, whose text has these words."""
    try:
        call(*rest, **more)
    except kind as error:
        return ok(all(word in str(error) for word in words), f"{words}: {error}")
    return ok(False, f"{words}: nothing was said")


def need(done, what, code=0):
    """A check that a run ends with this code."""
    return ok(done.returncode == code, f"{what}: {done.returncode} {done.stderr[-400:]}")


def fails(done, code, words, what):
    """A check that a run ends with this code, and prints all these words."""
    ok(done.returncode == code and all(w in done.stderr for w in words),
       f"{what}: {done.returncode} {done.stderr.strip()[-400:]}")


def same(a, b, what):
    """A check that two results are equal."""
    done = sagitta("diff", a, b)
    ok(done.returncode == 0 and not done.stdout, f"{what}: {done.stdout}{done.stderr}")
