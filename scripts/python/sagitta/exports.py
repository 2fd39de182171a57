# SPDX-License-Identifier: BSD-3-Clause
"""Export dictionaries to other programs, by `sagitta export`."""
import json
import os
import tempfile
import typing

from . import calls
from .arrays import Inputs
from .dictionary import Dictionary
from .errors import Error
from .hints import Array, Figures, Path, Rows
from .job import Job
from .program import option_of, words_of


def export(d: Array, output: Path, to: str = "safetensors", rows: Rows = None,
           **options: typing.Any) -> Figures:
    """Write a dictionary for use by other programs into the folder output.

    d: a Run, its folder, a dictionary.h5 or a sagitta.Dictionary.  to: "safetensors", "npy",
    "saelens" or "sparsify".  rows: activations (N, P), used to judge the codes that SAELens makes;
    if these explain much less than Sagitta's, the export is refused unless force=True.  Other
    options: `sagitta export --help`.  Returns what `sagitta export --json` prints."""
    run = {name: options.pop(name) for name in ("progress", "verbose") if name in options}
    options["to"] = to
    with Inputs() as inputs:
        place = inputs.dictionary(d, "the dictionary") if isinstance(d, Dictionary) else \
            os.fspath(calls.place_of(d))
        words = [f"--dictionary={place}", f"--output={os.fspath(output)}"]
        words += [f"--rows={name}" for name in (inputs.rows(rows) if rows is not None else ())]
        for name, value in options.items():
            words += words_of(option_of("export", name), value)
        return json.loads(Job("export", words, inputs.shown, **run).run(None))


def to_saelens(d: Array, rows: Rows = None, **options: typing.Any) -> typing.Any:
    """Convert a dictionary to an SAE of SAELens.  It uses the encoder of the run if there is one,
    otherwise matching pursuit.  Arguments as for export(); without rows the quality of SAELens'
    codes is not known, and force=True is needed."""
    try:
        from sae_lens import SAE
    except ImportError as error:
        raise Error(f"there is no SAELens: {error}: install sae-lens, or write its files by "
                    "sagitta.export(d, 'sae', to='saelens')") from error
    with tempfile.TemporaryDirectory(prefix="sagitta-") as folder:
        export(d, os.path.join(folder, "sae"), "saelens", rows, **options)
        return SAE.load_from_disk(os.path.join(folder, "sae"))
