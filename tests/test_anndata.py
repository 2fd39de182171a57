# SPDX-License-Identifier: BSD-3-Clause
"""Claim: the lines of output/README.md about AnnData work without a warning.  They give the codes
of a supports.h5, also after AnnData has written and read them.  What the page says of read_h5ad is
true.
sagitta.anndata.fit stores in an AnnData what sagitta.fit finds."""
import os
import re
import sys
import tempfile
import warnings

from peer import peer_needed
from tap import SAGITTA, SOURCE, claim, done_testing, ok, raised, same, sagitta as program

peer_needed("anndata.io", "h5py", "scipy")

import anndata  # noqa: E402, after a Python that has it was found
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)
import sagitta  # noqa: E402, which is given its program
import sagitta.anndata  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")


def lines_of(word):
    """The lines of Python in output/README.md that have the word."""
    with open(os.path.join(SOURCE, "output", "README.md"), encoding="utf-8") as f:
        blocks = re.findall(r"```python\n(.*?)```", f.read(), re.S)
    found = [text for text in blocks if word in text]
    ok(len(found) == 1, f"{len(found)} examples have {word}")
    return found[0]


@claim("sagitta.anndata.fit stores codes, atoms and mean, for rows in X, layers, obsm or a file")
def check_fit(at):
    with h5py.File(ROWS) as f:
        x = f["rows"][:1500].astype("f4")
    x = np.where(abs(x) > 0.2, x, np.float32(0))  # a sparse matrix stores no -0
    how = {"atoms": 24, "top_s": 3, "sweeps": 2, "holdout": 0, "progress": None}
    run = sagitta.fit(x, **how)
    made = anndata.AnnData(x, layers={"sparse": scipy.sparse.csr_matrix(x)}, obsm={"y": x})
    made.write_h5ad(f"{at}/x.h5ad")
    backed = anndata.read_h5ad(f"{at}/x.h5ad", backed="r")
    for adata, where in ((made, {}), (made, {"layer": "sparse", "key_added": "s"}),
                         (made, {"obsm": "y", "key_added": "o"}), (backed, {})):
        one = sagitta.anndata.fit(adata, **where, **how)
        same(run.path, one.path, f"{where}")
        key = where.get("key_added", "sagitta")
        said = adata.uns[key]
        atoms = said["atoms"] if "obsm" in where else adata.varm[key]
        ok((adata.obsm["X_" + key] != run.codes).nnz == 0, f"codes {where}")
        ok((atoms.T == run.dictionary.atoms).all() and (said["mean"] == run.dictionary.mean).all()
           and said["top_s"] == run.dictionary.top_s, f"atoms {where}")
    raised(ValueError, ["a view of a file", "to_memory()"], sagitta.anndata.fit, backed[:1400],
           **how)
    backed.file.close()
    bare = anndata.AnnData(obs=made.obs, layers={"sparse": x})
    raised(ValueError, ["X of adata is None", "'sparse'"], sagitta.anndata.fit, bare, **how)
    one = sagitta.anndata.fit(bare, layer="sparse", **how)
    same(run.path, one.path, "of no X a layer")
    made.write_h5ad(f"{at}/y.h5ad")
    again = anndata.read_h5ad(f"{at}/y.h5ad")
    ok((again.obsm["X_sagitta"] != run.codes).nnz == 0 and
       again.uns["sagitta"]["metrics"] == run.metrics, "an AnnData file is written and read again")
    raised(ValueError, ["'layr'", "'sparse'"], sagitta.anndata.fit, made, layer="layr", **how)
    raised(ValueError, ["one of them"], sagitta.anndata.fit, made, layer="s", obsm="y", **how)
    raised(TypeError, ["adata[mask]"], sagitta.anndata.fit, made, mask=x[:, 0] > 0, **how)


def main():
    lines = lines_of("write_h5ad")  # read them before the folder changes
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/output")
        for words in (["seed", "--atoms", 64, "--center", "--output", f"{folder}/d.h5"],
                      ["encode", "--dictionary", f"{folder}/d.h5", "--top-s", 4, "--output",
                       f"{folder}/output/codes"]):
            done = program(*words, "--rows", ROWS)
            if done.returncode:
                print("#", done.stderr)
                sys.exit(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_fit(folder)
        os.chdir(folder)
        with h5py.File("output/codes/supports.h5") as f:
            group = f["supports"]
            parts = tuple(group[name][:] for name in ("data", "indices", "indptr"))
            want = scipy.sparse.csr_matrix(parts, shape=group.attrs["shape"])
            density = f["metrics/density"][:]
        with claim("the lines of Python in output/README.md read the codes without a warning"):
            names = {}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(lines, names)
            ok((names["codes"] != want).nnz == 0 and names["codes"].nnz == 4 * 8192, "codes")
            back = anndata.read_h5ad("output/codes.h5ad")
            ok((back.X != want).nnz == 0, "AnnData's own file keeps the codes")
            ok(np.array_equal(back.var["density"], density), "densities")
        with claim("anndata refuses to read a result, as output/README.md says"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    anndata.read_h5ad("output/codes/supports.h5")
                ok(False, "read_h5ad opens a result: correct output/README.md")
            except Exception as error:  # AnnData may raise any error
                ok(True, f"{error}")
        os.chdir("/")
    done_testing()


main()
