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
SHOWN = 20  # failed checks that a claim names
FULL = os.environ.get("CHECK_FULL", "0") not in ("", "0")  # all combinations and the large sizes
_count = _failed = 0
_claim = None
OLD = ("earliest", "v110")  # the form of HDF5 files that every HDF5 from 1.10 on reads
_sessions = tempfile.TemporaryDirectory(dir=os.environ.get("OMPI_MCA_orte_tmpdir_base"))


def _write_old():
    """Files that a test writes are for a program whose HDF5 may be older than that of h5py, and the
    newer one's own form is another: they are written in the old one unless a test asks for more."""
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
    """One line of the stream: in `with claim("text"):`, or in a function after `@claim("text")`,
    each ok() is one check of the claim, and speaks only if it fails.  A claim without a check
    fails, unless skip() said why."""

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
    """Is it so?  A claim of its own, or a check of the claim around it; text: what was checked."""
    text = " / ".join(str(text).split("\n"))  # else the report would keep its first line alone
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
    """Is there a GPU?  If not this counts a skip, or a failure with REQUIRE_GPU=1."""
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
    """What a claim compares with is not installed: a skip, and a failure with REQUIRE_PEERS=1, as
    in scripts/check, which installs it."""
    return ok(False, reason) if PEERS_WANTED else skip(reason)


def peer_missing_all(reason):
    """The same of all claims of a test."""
    if not PEERS_WANTED:
        skip_all(reason)
    ok(False, reason)
    done_testing()


def done_testing():
    print(f"1..{_count}")
    sys.exit(1 if _failed else 0)


def later_wins(*words):
    """Words in which an option takes the place of the same one before it: given twice, the program
    refuses it."""
    options = {}
    for i, word in enumerate(map(str, words)):
        if word.startswith("--") or not options or len(options[key]) == 2:
            key = word if word.startswith("--") else i
            options[key] = []
        options[key].append(word)
    return [word for option in options.values() for word in option]


def launch(ranks):
    """The words that start a program on so many ranks; none for 0.  Open MPI keeps the sessions of
    each launch in a folder of its own: a job that ends while another begins may take away what that
    one has there, and it fails with 1, or never begins."""
    if not ranks:
        return []
    return [*os.environ.get("MPIEXEC", "mpirun").split(), "--mca", "orte_tmpdir_base",
            tempfile.mkdtemp(dir=_sessions.name), "--oversubscribe", "--bind-to", "none", "-n",
            str(ranks)]


def sagitta(*words, ranks=0, timeout=300, program=(SAGITTA,)):
    """Run the program, under mpirun when ranks > 0; returns the completed process.

    mpirun 4.1 sleeps for two seconds between two signals to a rank that is gone; several ranks may
    need them."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if ranks == 1:
        environment["OMPI_MCA_odls_base_sigkill_timeout"] = "0"
    return subprocess.run([*launch(ranks), *program, *map(str, words)], capture_output=True,
                          text=True, timeout=timeout, env=environment)


def bench(*words, ranks=0):
    """The same of the program of benchmarks."""
    return sagitta(*words, ranks=ranks, program=(BENCH,))


def raised(kind, words, call, *rest, **more):
    """call() raises an exception of this kind, whose text has these words."""
    try:
        call(*rest, **more)
    except kind as error:
        return ok(all(word in str(error) for word in words), f"{words}: {error}")
    return ok(False, f"{words}: nothing was said")


def need(done, what, code=0):
    """A run that has to end so."""
    return ok(done.returncode == code, f"{what}: {done.returncode} {done.stderr[-400:]}")


def fails(done, code, words, what):
    """A run that fails and says all these words."""
    ok(done.returncode == code and all(w in done.stderr for w in words),
       f"{what}: {done.returncode} {done.stderr.strip()[-400:]}")


def same(a, b, what):
    """Two results that do not differ."""
    done = sagitta("diff", a, b)
    ok(done.returncode == 0 and not done.stdout, f"{what}: {done.stdout}{done.stderr}")
