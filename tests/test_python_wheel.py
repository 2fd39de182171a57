# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the wheel of scripts/wheel is the same at each build, installs where no program is to be
found, takes its own libgomp, and there passes its selftest, which a wrong bit fails; with the
program it runs jobs."""
import os
import subprocess
import sys
import tempfile
import zipfile

from tap import SAGITTA, SOURCE, claim, done_testing, need, ok, skip

BUILD = os.path.dirname(os.path.abspath(SAGITTA))
LIMIT = 1 << 20


def ran(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


@claim("two builds give the same bytes, a tag, all modules and licences")
def check_build(at):
    paths = []
    for name in "a", "b":
        os.mkdir(f"{at}/{name}")
        done = ran(sys.executable, f"{SOURCE}/scripts/wheel", BUILD, f"{at}/{name}")
        need(done, name)
        paths.append(done.stdout.strip())
    with open(paths[0], "rb") as a, open(paths[1], "rb") as b:
        ok(a.read() == b.read(), "bytes")
    name = os.path.basename(paths[0])
    ok(name.startswith("sagitta_dictionaries-") and "-py3-none-manylinux_2_" in name, name)
    ok(os.path.getsize(paths[0]) < LIMIT, "size")
    names = set(zipfile.ZipFile(paths[0]).namelist())
    modules = {f"sagitta/{m}" for m in os.listdir(f"{SOURCE}/scripts/python/sagitta")
               if m.endswith(".py")}
    ok(modules | {"sagitta/libsagitta.so"} <= names and
       any(n.endswith("licenses/LICENSE") for n in names), f"{names}")
    done = ran(sys.executable, f"{SOURCE}/scripts/wheel", at)
    ok(done.returncode == 1 and "make was run" in done.stderr, f"no library: {done.stderr}")
    return paths[0]


def environment(at, **more):
    """Nothing of this build, and no folder of programs but that of the C library's own."""
    return {"PATH": f"{at}/none", "HOME": at, "LANG": "C.UTF-8", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **more}


def python(at, code, **more):
    return ran(f"{at}/venv/bin/python", "-c", code, cwd=at, env=environment(at, **more))


@claim("it installs in an environment of its own, and passes its selftest there")
def check_install(at, wheel):
    done = ran(sys.executable, "-m", "venv", "--system-site-packages", f"{at}/venv")
    if done.returncode:
        skip(f"no venv: {done.stdout}{done.stderr}")
        return
    need(ran(f"{at}/venv/bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps",
             wheel, env=environment(at)), "pip")
    done = python(at, "import sagitta; sagitta.selftest(); print(sagitta.__file__)")
    ok(done.returncode == 0 and f"{at}/venv/" in done.stdout.split("\n")[0] and
       f"{at}/venv/" in done.stdout.split("\n")[2] and "cannot run here" in done.stdout,
       done.stdout + done.stderr)
    done = python(at, "import sagitta.library as l; l.library()\n"
                      "print([m for m in open('/proc/self/maps') if 'gomp' in m])")
    ok(f"{at}/venv/" in done.stdout or "libgomp" not in " ".join(
        zipfile.ZipFile(wheel).namelist()), f"its own libgomp: {done.stdout}")
    done = python(at, "import sagitta.check as c; c.EXPECTED = 'x'; c.selftest()")
    ok("sagitta.errors.Error" in done.stderr and "other bits" in done.stderr, done.stderr)
    done = python(at, "import sagitta; sagitta.fit([[1.0]], atoms=1)")
    ok("no program sagitta" in done.stderr and "SAGITTA_PROGRAM" in done.stderr, done.stderr)
    done = python(at, "import sagitta; sagitta.selftest()",
                  SAGITTA_PROGRAM=os.path.abspath(SAGITTA))
    ok(done.returncode == 0 and "the program encodes as" in done.stdout, done.stdout + done.stderr)


with tempfile.TemporaryDirectory() as at:
    at = os.path.realpath(at)
    check_install(at, check_build(at))
done_testing()
