# SPDX-License-Identifier: BSD-3-Clause
"""Claim: doc/tutorial.ipynb runs in a kernel of Jupyter, and says what it said when it was written:
every word of its outputs; Ctrl-C there interrupts a fit, which then goes on to the same bytes."""
import asyncio
import json
import os
import tempfile

from peer import PACKAGE, peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok, sagitta as program

peer_needed("nbclient", "ipykernel", "torch", "matplotlib", "scipy", "h5py")
import nbclient  # noqa: E402, after a Python that has it was found
import nbformat  # noqa: E402

DOC = os.path.join(SOURCE, "doc")
LONG = 300  # seconds for a cell of a busy machine
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


class Pressing(nbclient.NotebookClient):
    """Interrupts the kernel once, at the first word of a sweep."""
    pressed = False

    def process_message(self, message, cell, cell_index):
        if not self.pressed and "sweep" in message["content"].get("text", ""):
            self.pressed = True
            asyncio.ensure_future(self.km.interrupt_kernel())
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
    """What a cell printed and gave: not progress and warnings, which have names of files."""
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
    client_of(cells, at).execute()
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


def main():
    with tempfile.TemporaryDirectory() as at:
        check_tutorial(at)
        check_interrupt(at)
    done_testing()


if __name__ == "__main__":
    main()
