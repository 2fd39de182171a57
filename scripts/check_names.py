# SPDX-License-Identifier: BSD-3-Clause
"""Check that what code, tests and documents name exists: formulas, sections, files, commands and
options; and that versions, licence, date and home page agree in all files.

Prints TAP; part of `make check`.
By hand: srcdir=. builddir=build python3 scripts/check_names.py"""
import glob
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), ".."))
BUILD = os.path.abspath(os.environ.get("builddir", "."))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
from tap import BENCH, SAGITTA, claim, done_testing, ok  # noqa: E402, after the path to it

# Options of other programs that documents and scripts call.
OTHERS = {
    "mpirun": "--bind-to --map-by --mca --oversubscribe",
    "Slurm": "--account --array --cpus-per-task --dependency --gpu-bind --gres --job-name --mpi "
             "--nodes --ntasks --ntasks-per-node --open-mode --parsable --partition "
             "--requeue --signal --time --mem --kill-on-invalid-dep",
    "Chromium": "--headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir "
                "--window-size --virtual-time-budget --blink-settings --screenshot",
    "compilers and linkers": "--fmad --disable-new-dtags --wrap --sysroot --exclude-libs "
                             "--as-needed",
    "configure": "--host --without-cuda --without-zmq",
    "compute-sanitizer": "--tool --error-exitcode --target-processes",
    "h5dump and h5diff": "--contents --dataset --group --count",
    "autoreconf and apt": "--install --force --no-install-recommends",
    "EasyBuild, containers": "--sourcepath --robot --inject-checksums --rm",
    "faithfulness.py, capture_attention.py, write_rows.py": "--check --first --count --model --run",
    "pip": "--no-deps --require-hashes --hash",
    "scale_model.py": "--gpus",
    "bench_page": "--machine --measure --question --root",
    "nvidia-smi": "--query-gpu --format",
    "report": "--evaluated",
    "git": "--always --dirty --abbrev --git-path --no-verify --show-toplevel",
    "tests/soak_faults": "--fault --jobs --keep --only --patience --sagitta --seconds --tries "
                         "--try",
    "help2man": "--no-info --section --manual --source --version-string --name --include --output",
}


def text_of(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def files(*patterns):
    """Files of the project that match the patterns, except generated ones."""
    found = sorted(os.path.relpath(p, SOURCE) for pattern in patterns
                   for p in glob.glob(os.path.join(SOURCE, pattern), recursive=True))
    generated = "src/config.h", "src/cli/revision.h", "scripts/autotools/"
    return [p for p in found if os.path.isfile(os.path.join(SOURCE, p))
            and not p.startswith(generated) and not p.endswith(("kernel_texts.c", ".h5", ".pyc"))]


DOCS = files("*.md", "doc/*.md", "input/*.md", "output/*.md", "kernels/README")
CODE = files("src/**/*.[ch]", "kernels/*.h", "kernels/*.cu", "tests/*.[ch]", "tests/*.py",
             "tests/*.sh")
SCRIPTS = [p for p in files("scripts/*", "scripts/slurm/*", "scripts/completion/*", "m4/*.m4",
                            "*/local.mk", "configure.ac", "Makefile.am")
           if "check_names" not in p and not p.endswith(".html")]  # whose colours look like options


def cited(paths, pattern):
    """Yields (file:line, match) of a pattern in files.  The lines of a comment are joined first."""
    for path in paths:
        text = text_of(path)
        joined = re.sub(r"\n(\s*(\*|#|//)(?=\s))?", lambda m: "\n" + " " * (len(m[0]) - 1), text)
        for m in re.finditer(pattern, joined):
            yield f"{path}:{joined.count(chr(10), 0, m.start()) + 1}", m


@claim("each formula is defined once, and each cited formula is defined")
def check_formulas():
    known = {}
    for letter, path in (("N", "doc/numerics.md"), ("C", "doc/certified.md"),
                         ("L", "doc/live.md")):
        names = re.findall(rf"^(?:#+ | *)\(({letter}\.\d+[a-z]?)\)", text_of(path), re.M)
        known.update({name: names.count(name) for name in names})
    for name, count in known.items():
        ok(count == 1, f"({name}) is defined {count} times")
    for place, m in cited(DOCS + CODE + SCRIPTS, r"\b([NCL]\.\d+[a-z]?)\b"):
        ok(m[1] in known, f"{place}: ({m[1]}) is not defined")


@claim("cited sections exist")
def check_sections():
    headings = {os.path.basename(p): set(re.findall(r"^#+ (\d+(?:\.\d+)*)\b", text_of(p), re.M))
                for p in DOCS}
    pattern = r"(?:([\w-]+\.md)`?,?\s+|(?<=\W))[Ss]ections?\s+(\d+(?:\.\d+)*)(?:\s+and\s+(\d+))?"
    for place, m in cited(DOCS + CODE + SCRIPTS, pattern):
        path = place.split(":")[0]
        name = m[1] or os.path.basename(path)
        if not m[1] and path not in DOCS:
            ok(False, f"{place}: section {m[2]} of which document?")
            continue
        for number in filter(None, (m[2], m[3])):
            ok(number in headings.get(name, ()), f"{place}: {name} has no section {number}")


def there(name):
    """Is there a file of this name or pattern, or with .c or .cu added, in the tree or the
    build?"""
    braces = re.search(r"\{([^{}]*)\}", name)
    if braces:
        return all(there(name.replace(braces[0], part, 1)) for part in braces[1].split(","))
    return any(glob.glob(os.path.join(where, name + end))
               for where in (SOURCE, BUILD) for end in ("", ".c", ".cu"))


@claim("scripts read the versions of files that the program writes")
def check_versions():
    written = re.search(r"FORMAT_VERSION = (\d+)", text_of("src/io/h5/h5.h"))[1]
    page = re.search(r"SUMMARY_VERSION = (\d+)", text_of("src/job/summary.c"))[1]
    facts = re.search(r"FACTS_VERSION = (\d+)", text_of("src/job/summary.c"))[1]
    for path, pattern, version in (
            ("scripts/python/sagitta/results.py", r"^VERSIONS = \(.*?(\d+)\)", written),
            ("scripts/report", r"^VERSION = (\d+)", written),
            ("scripts/plot", r"^VERSION = (\d+)", written),
            ("scripts/python/sagitta/results.py", r"^PAGE_VERSION = (\d+)", page),
            ("scripts/plot_time", r"^VERSION = (\d+)", page),
            ("scripts/plot_live", r"^VERSION = (\d+)", facts),
            ("doc/formats.md", r"`format_version` = (\d+),", written)):
        found = re.search(pattern, text_of(path), re.M)
        ok(found and found[1] == version, f"{path}: version {found and found[1]} is not {version}")


@claim("named files exist")
def check_files():
    folders = "doc|src|kernels|scripts|tests|m4|input"
    pattern = rf"(?<![\w./$}}-])((?:{folders})/[\w./{{}},*+-]*[\w/*}}])([<%[$])?"
    for place, m in cited(DOCS + CODE + SCRIPTS, pattern):
        name = m[1] + ("*" if m[2] else "")  # a placeholder follows
        name = re.sub(r"\b(?:NAME|KIND)\b", "*", name)  # src/NAME.c
        if m[2] == "[":  # a regular expression: its folder
            name = os.path.dirname(name)
        if name.startswith(("doc/man/", "src/.deps")):
            continue  # made where there is help2man
        ok(there(name), f"{place}: there is no {name}")
    for place, m in cited(DOCS, r"(?<![\w/.-])([\w-]+\.md)\b"):
        ok(there(m[1]) or there("doc/" + m[1]) or there(os.path.dirname(place) + "/" + m[1]),
           f"{place}: there is no {m[1]}")


def printed(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def listed(program):
    """The options of each command of the program."""
    return {command: set(printed(program, "--list-options", command).split())
            for command in printed(program, "--list-options").split()}


def check_commands():
    programs = {"sagitta": listed(SAGITTA), "sagitta-bench": listed(BENCH)}
    help_text = printed(SAGITTA, "--help") + printed(BENCH, "--help")
    with claim("commands that documents name are commands of the program"):
        for command in [name for options in programs.values() for name in options]:
            ok(re.search(rf"^  {command} ", help_text, re.M), f"--help does not know {command}")
        for place, m in cited(DOCS, r"(?:`|^|/|\d )(sagitta|sagitta-bench) ([a-z][a-z-]*)"):
            ok(m[2] in programs[m[1]], f"{place}: there is no command '{m[0]}'")
    with claim("options that documents and scripts name are known to --help"):
        configure = subprocess.run([os.path.join(SOURCE, "configure"), "--help"],
                                   capture_output=True, text=True).stdout
        known = set(re.findall(r"--[a-z][\w-]*", help_text + configure))
        known |= {option for of in programs.values() for own in of.values() for option in own}
        known |= set(" ".join(OTHERS.values()).split()) | {"--list-options", "--help", "--version"}
        for path in SCRIPTS:  # a script's own options: the branches of its case, or argparse's
            own = re.findall(r"^ *(--[a-z-]+)\)|^ *add\(\"(--[a-z0-9-]+)\"", text_of(path), re.M)
            known |= {name for pair in own for name in pair if name}
        for place, m in cited(DOCS + SCRIPTS, r"(?<![\w<-])(--[a-z][a-z0-9-]*)(?![\w-]*>)"):
            ok(m[1] in known or m[1].startswith("--with-") and "configure" in place,
               f"{place}: there is no option {m[1]}")
        for place, m in cited(DOCS, r"(sagitta|sagitta-bench) ([a-z]+)((?: [^\n`|;&]*)?)"):
            for option in re.findall(r"(?<= )--[a-z][a-z0-9-]*", m[3]):
                ok(option in programs[m[1]].get(m[2], ()) or option == "--help",
                   f"{place}: '{m[1]} {m[2]}' has no {option}")


@claim("each file that has the version has that of configure.ac")
def check_version():
    version = re.search(r"AC_INIT\(\[sagitta\], \[(.*?)\]\)", text_of("configure.ac"))[1]
    for path, pattern in (
            ("CITATION.cff", r"^version: (.*)$"), ("CHANGELOG.md", r"^## ([\d.]+)"),
            ("scripts/python/pyproject.toml", r'^version = "(.*)"$'),
            ("scripts/python/sagitta/__init__.py", r'^__version__ = "(.*)"$'),
            ("scripts/packaging/spack/packages/sagitta/package.py", r'^    version\("(.*?)"'),
            (f"scripts/packaging/Sagitta-{version}-foss-2024a.eb", r"^version = '(.*)'$"),
            ("doc/install.md", r"sagitta@(\S+)"), ("doc/install.md", r"Sagitta-([\d.]+)-foss"),
            ("doc/versions.md", r"tag is `v(.*?)`"), ("CONTRIBUTING.md", r"`release: (.*?)`")):
        found = re.search(pattern, text_of(path), re.M) if there(path) else None
        ok(found and found[1] == version, f"{path} does not have version {version}")


@claim("all files have the same licence, date and home page")
def check_told():
    recipe = "scripts/packaging/" + next(
        p for p in os.listdir(os.path.join(SOURCE, "scripts/packaging")) if p.endswith(".eb"))
    package = "scripts/packaging/spack/packages/sagitta/package.py"
    for path, pattern in (
            ("CITATION.cff", r"^license: (.*)$"), (package, r'license\("(.*?)"'),
            ("scripts/python/pyproject.toml", r'^license = \{text = "(.*)"\}$'),
            ("README.md", r"^(\S+); see `LICENSE`")):
        found = re.search(pattern, text_of(path), re.M)
        ok(found and found[1] == "BSD-3-Clause", f"{path}: licence {found and found[1]}")
    ok(text_of("LICENSE").startswith("BSD 3-Clause License\n"), "LICENSE is not BSD-3-Clause")
    date = re.search(r"^## [\d.]+, (.*)$", text_of("CHANGELOG.md"), re.M)[1]
    cited = re.search(r"^date-released: (.*)$", text_of("CITATION.cff"), re.M)
    ok(cited[1] == date if cited else date == "not yet released",
       f"CHANGELOG.md says '{date}', CITATION.cff says {cited and cited[1]}")
    homes = {}
    for path, pattern in (
            ("configure.ac", r"^AC_INIT\(.*\[(\w+://.*?)\]\)"),
            ("CITATION.cff", r"^(?:url|repository-code): \"?(.*?)\"?$"),
            (package, r'^    homepage = "(.*)"$'), (recipe, r"^homepage = '(.*)'$"),
            ("scripts/python/pyproject.toml", r'^[Hh]omepage = "(.*)"$')):
        for m in re.finditer(pattern, text_of(path), re.M):
            homes.setdefault(m[1], []).append(path)
    ok(len(homes) == 1, f"home pages: {homes}")
    ok(all("://" in home for home in homes) or list(homes.values()) == [[recipe]],
       f"only the recipe of EasyBuild may name a home page if there is none: {homes}")


def main():
    check_formulas()
    check_sections()
    check_files()
    check_commands()
    check_version()
    check_told()
    check_versions()
    done_testing()


main()
