# SPDX-License-Identifier: BSD-3-Clause
"""Claim: doc/tutorial.ipynb runs in a kernel of Jupyter, and every word of its outputs is that of
the stored outputs.  Ctrl-C interrupts a fit.  SIGKILL of the kernel ends the fit, and leaves no
process and no file in memory.  Both fits can be resumed, and give the same bytes."""
import asyncio
import contextlib
import json
import os
import resource
import signal
import tempfile
import time

from peer import PACKAGE, peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok, sagitta as program

peer_needed("nbclient", "ipykernel", "torch", "matplotlib", "scipy", "h5py")
import nbclient  # noqa: E402, after a Python that has it was found
import nbformat  # noqa: E402

DOC = os.path.join(SOURCE, "doc")
LONG = 300  # most seconds of a cell on a busy machine
MINUTES = 3  # most minutes of the notebook on an idle machine
FIT = """import sagitta
how = dict(atoms=200, top_s=8, tolerance=0, sweeps=6, threads=1, update="atoms")
rows = {rows!r}
try:
    sagitta.fit(rows, output={cut!r}, progress=lambda event: print(event["what"], flush=True),
                **how)
except sagitta.Interrupted as stop:
    print("interrupted", stop.output)
"""
MORE = """sagitta.fit(rows, output={cut!r}, resume=True, progress=None, **how)
sagitta.fit(rows, output={whole!r}, progress=None, **how);
"""


# As FIT, but with an array, and any number of ranks.
KILLED = """import h5py, sagitta
how = dict(atoms=200, top_s=8, tolerance=0, sweeps=12, threads=1, update="atoms", ranks={ranks})
X = h5py.File({rows!r})["rows"][:]
"""
DIES = """sagitta.fit(X, output={cut!r}, progress=lambda event: print(event["what"], flush=True),
            **how)
"""
PATIENCE = 120.0  # seconds after which nothing may be left, on a busy machine


class Pressing(nbclient.NotebookClient):
    """A client that interrupts the kernel once, when a sweep is first printed."""
    pressed = False

    def process_message(self, message, cell, cell_index):
        if not self.pressed and "sweep" in message["content"].get("text", ""):
            self.pressed = True
            asyncio.ensure_future(self.km.interrupt_kernel())
        return super().process_message(message, cell, cell_index)


def descendants(pid):
    """All descendants of a process, also those in other sessions."""
    found, parents = [], {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8") as f:
            parents[int(name)] = int(f.read().rsplit(") ", 1)[1].split()[1])
    level = [pid]
    while level:
        level = [one for one, parent in parents.items() if parent in level]
        found += level
    return found


def in_memory(pids):
    """The files of /dev/shm that processes have mapped."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            found |= {line.split(maxsplit=5)[5].strip() for line in f if "/dev/shm/" in line}
    return found


def alive(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(") ", 1)[1][0] != "Z"
    return False


class Killing(nbclient.NotebookClient):
    """A client that kills the kernel once, when a sweep is first printed.  It notes the processes
    and files of the kernel's jobs, which must end within PATIENCE."""
    jobs, files = (), set()

    def process_message(self, message, cell, cell_index):
        if not self.jobs and "sweep" in message["content"].get("text", ""):
            kernel = self.km.provisioner.process.pid
            self.jobs = descendants(kernel)
            self.files = in_memory([kernel, *self.jobs])
            os.kill(kernel, signal.SIGKILL)
            begun = time.monotonic()
            while any(map(alive, self.jobs)) and time.monotonic() - begun < PATIENCE:
                time.sleep(0.05)
            print(f"# {len(self.jobs)} processes ended in {time.monotonic() - begun:.2f} s")
        return super().process_message(message, cell, cell_index)


def client_of(cells, at, kind=nbclient.NotebookClient):
    """A client whose kernel finds the package and the program, and keeps its files below `at`."""
    others = os.environ.get("PYTHONPATH")
    os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [os.path.abspath(PACKAGE), others])),
                      SAGITTA_PROGRAM=os.path.abspath(SAGITTA),
                      PYTHONDONTWRITEBYTECODE="1", IPYTHONDIR=f"{at}/ipython",
                      JUPYTER_RUNTIME_DIR=f"{at}/runtime", MPLCONFIGDIR=f"{at}/matplotlib",
                      JUPYTER_CONFIG_DIR=f"{at}/config", PYDEVD_DISABLE_FILE_VALIDATION="1")
    return kind(cells, timeout=LONG, kernel_name="python3", resources={"metadata": {"path": DOC}})


def said(cell):
    """What a cell printed and returned, without progress and warnings, which contain names of
    files."""
    printed = "".join(o["text"] for o in cell["outputs"] if o.get("name") == "stdout")
    given = "".join(o["data"].get("text/plain", "") for o in cell["outputs"]
                    if o["output_type"] == "execute_result")
    return printed, given


def pictures(cell):
    return sum("image/png" in o.get("data", {}) for o in cell.get("outputs", ()))


@claim("every cell runs, and gives the words that are stored")
def check_tutorial(at):
    cells = nbformat.read(os.path.join(DOC, "tutorial.ipynb"), as_version=4)
    nbformat.validate(cells)
    stored = json.loads(json.dumps(cells))["cells"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_of(cells, at).execute()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"# {spent:.1f} s of a processor")
    ok(0 < spent < MINUTES * 60, f"{spent} s of a processor, at most {MINUTES} minutes")
    code = 0
    for was, now in zip(stored, cells["cells"]):
        if now["cell_type"] != "code":
            continue
        code += 1
        ok(said(now) == said(was) and pictures(now) == pictures(was),
           f"{now['source'][:50]!r} gives {said(now)}, not {said(was)}")
    ok(code > 8 and sum(map(pictures, stored)) == 1, f"{code} cells")


@claim("an interrupt of the kernel stops a fit, which can be resumed")
def check_interrupt(at):
    rows = os.path.join(SOURCE, "input", "minilm-l3-kjv-next.h5")
    names = {"rows": os.path.abspath(rows), "cut": f"{at}/cut", "whole": f"{at}/whole"}
    new = nbformat.v4.new_code_cell
    cells = nbformat.v4.new_notebook(cells=[new(FIT.format(**names)), new(MORE.format(**names))])
    client_of(cells, at, Pressing).execute()
    printed = said(cells["cells"][0])[0]
    ok(f"interrupted {at}/cut" in printed and "sweep   6" not in printed, f"too late: {printed}")
    done = program("diff", f"{at}/cut", f"{at}/whole")
    ok(done.returncode == 0, f"{done.stdout}")


def check_killed(at, ranks):
    rows = os.path.abspath(os.path.join(SOURCE, "input", "minilm-l3-kjv-next.h5"))
    names = {"rows": rows, "ranks": ranks, "cut": f"{at}/killed{ranks}"}
    new, begin = nbformat.v4.new_code_cell, KILLED.format(**names)
    client = client_of(nbformat.v4.new_notebook(cells=[new(begin + DIES.format(**names))]), at,
                       Killing)
    try:
        client.execute()
        ok(False, "the kernel has not died")
    except nbclient.exceptions.DeadKernelError:
        pass
    ok(len(client.jobs) >= ranks and not any(map(alive, client.jobs)),
       f"{ranks} ranks, processes {list(filter(alive, client.jobs))} of {client.jobs}")
    ok(not list(filter(os.path.exists, client.files)), f"{ranks} ranks, files of {client.files}")
    with open(f"{at}/killed{ranks}/run.log", encoding="utf-8") as f:
        log = f.read()
    why = "the end of the program that started it" if ranks == 1 else "a signal"
    ok(f"stopped by {why}: --resume" in log, f"{ranks} ranks, why it stopped: {log[-300:]}")
    cells = nbformat.v4.new_notebook(cells=[new(begin + MORE.format(
        **names, whole=f"{at}/whole{ranks}").replace("rows,", "X,"))])
    client_of(cells, at).execute()
    done = program("diff", f"{at}/killed{ranks}", f"{at}/whole{ranks}")
    ok(done.returncode == 0, f"{done.stdout}")


def main():
    with tempfile.TemporaryDirectory() as at:
        check_tutorial(at)
        check_interrupt(at)
        with claim("a kernel that is killed leaves no process and no file in memory; resumed jobs "
                   "have the same bytes"):
            check_killed(at, 1)
            check_killed(at, 2)
    done_testing()


if __name__ == "__main__":
    main()
