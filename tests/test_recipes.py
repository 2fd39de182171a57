# SPDX-License-Identifier: BSD-3-Clause
"""Claim: job.sbatch resumes commands that can be resumed.  The recipes for Spack, EasyBuild, Docker
and Apptainer pass the linter of each program that is installed, and name files that exist."""
import ast
import glob
import os
import re
import shutil
import subprocess

from tap import SOURCE, claim, done_testing, ok, sagitta, skip

HERE = os.path.join(SOURCE, "scripts", "packaging")
VERSION = re.search(r"AC_INIT\(\[[^]]*\], *\[([^]]*)\]",
                    open(os.path.join(SOURCE, "configure.ac"), encoding="utf-8").read())[1]
SECTIONS = {"files", "post", "test", "runscript", "help", "environment", "labels", "startscript",
            "setup", "arguments", "appenv"}


def text_of(*names):
    with open(os.path.join(HERE, *names), encoding="utf-8") as f:
        return f.read()


def lint(program, *words):
    """Run a linter, if it is installed.  Returns its messages."""
    if not shutil.which(program):
        skip(f"{program} is not installed")
        return
    try:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        ok(False, f"{program} did not end")
        return
    said = done.stdout + done.stderr
    if program == "eb" and "modules tool can not be used" in said:
        skip("EasyBuild finds no modules tool")
        return
    ok(done.returncode == 0, f"{program} {' '.join(words)}: {said[-600:]}")


def shell_check(name, lines):
    """Is the text a valid shell script?"""
    done = subprocess.run(["sh", "-n"], input=lines, capture_output=True, text=True)
    ok(done.returncode == 0, f"{name}: {done.stderr}")


@claim("job.sbatch gives --resume to the commands that take it")
def check_slurm():
    with open(os.path.join(SOURCE, "scripts", "slurm", "job.sbatch"), encoding="utf-8") as f:
        text = f.read()
    known = re.findall(r"^  (\w+) +\S", sagitta("--help").stdout, re.M)
    takes = {name for name in known if  # --resume of serve is for files only
             name != "serve" and re.search(r"^ +--resume ", sagitta(name, "--help").stdout, re.M)}
    given = set(re.search(r"^  ([a-z| ]+)\) options=\(--resume", text, re.M)[1].split(" | "))
    ok(given == takes and "fit" in takes, f"{sorted(given)}, not {sorted(takes)} of {known}")


@claim("Spack's package names options and versions that exist")
def check_spack():
    own = os.path.join(HERE, "spack", "packages", "sagitta", "package.py")
    tree = ast.parse(text_of("spack", "packages", "sagitta", "package.py"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and
             isinstance(node.func, ast.Name)]
    told = {name: [c.args[0].value for c in calls if c.func.id == name]
            for name in ("version", "variant", "license")}
    ok(told["version"] == [VERSION] and told["license"] == ["BSD-3-Clause"], f"{told}")
    known = "".join(open(path, encoding="utf-8").read() for path in [
        os.path.join(SOURCE, "configure.ac"), *glob.glob(os.path.join(SOURCE, "m4", "*.m4"))])
    ok(all(f"AC_ARG_WITH([{name}]" in known for name in told["variant"]),
       f"{told['variant']} are options of configure")
    ok(re.search(r"api: v2\.\d", text_of("spack", "repo.yaml")), "its interface")
    lint("spack", "style", own)


@claim("EasyBuild's recipe has the project's version, in its text and in its name")
def check_easybuild():
    name = next(f for f in os.listdir(HERE) if f.endswith(".eb"))
    values = {"SOURCELOWER_TAR_GZ": "sagitta.tar.gz", "SYSTEM": {}}
    exec(compile(text_of(name), name, "exec"), values)  # EasyBuild runs it in the same way
    chain = values["toolchain"]
    ok(name == f"{values['name']}-{VERSION}-{chain['name']}-{chain['version']}.eb" and
       values["version"] == VERSION, f"{name} is of {values['name']} {values['version']}")
    lint("eb", "--allow-use-as-root-and-accept-consequences", "--check-style",
         os.path.join(HERE, name))


@claim("the Dockerfile runs a script that exists")
def check_docker():
    text = text_of("Dockerfile")
    script = re.search(r"^RUN /build/sagitta/(\S+)", text, re.M)[1]
    ok(os.access(os.path.join(SOURCE, script), os.X_OK), f"{script} is there")
    lint("hadolint", os.path.join(HERE, "Dockerfile"))


@claim("Apptainer's definition has known sections and valid scripts")
def check_apptainer():
    head, *parts = re.split(r"^%(\w+)\n", text_of("sagitta.def"), flags=re.M)
    sections = dict(zip(parts[::2], parts[1::2]))
    ok(set(sections) <= SECTIONS and {"files", "post", "runscript"} <= set(sections),
       f"{list(sections)}")
    base = dict(re.findall(r"^(\w+): (\S+)$", head, re.M))
    ok(base["From"] == re.search(r"^FROM (\S+)", text_of("Dockerfile"), re.M)[1],
       f"the base of the Dockerfile: {base}")
    for name in ("post", "test", "runscript"):
        shell_check(name, sections[name])
    script = re.search(r"/build/sagitta/(scripts/\S+)", sections["post"])[1]
    ok(os.access(os.path.join(SOURCE, script), os.X_OK), f"{script} is there")
    shell_check("container_build", text_of("container_build"))
    lint("shellcheck", os.path.join(HERE, "container_build"))


if __name__ == "__main__":
    check_slurm()
    check_spack()
    check_easybuild()
    check_docker()
    check_apptainer()
    done_testing()
