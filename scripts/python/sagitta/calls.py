# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the program as functions of arrays: fit, train, encode, refit, evaluate.

The argument X holds rows of activations.  It is one of: an array (N, P) or (B, T, P) of float16,
bfloat16, float32 or float64, of NumPy, PyTorch, JAX or CuPy; the name of a file or 'file.h5:/path',
a list of these, or a folder of shards; a dataset of h5py; or a generator or loader of such arrays,
whose rows are first written to a file without a name in the folder spool=.  Codes are in the unit
of the rows, since atoms have length 1.

Common keywords.  mask: for an array, (N,) booleans, True for rows to read.  output: a folder for
the result, which is kept; None: a temporary folder, which is deleted together with the Run.
resume: continue the interrupted run whose files are in output; give the same rows and options.
ranks: the number of MPI processes, started by mpirun.  progress: 'auto', a function that is called
with each event, or None.  verbose: 0 shows warnings, 1 also the log (by the logger 'sagitta'), 2
also details.  options: those of the command, with underscores, as `sagitta COMMAND --help` explains
them; options that name input files take arrays too.

Errors: TypeError for an unknown option, or a value that should be a number and is not;
sagitta.InputError, a ValueError, for input that the program refuses; sagitta.Error for everything
else, with the program's exit code as .code; sagitta.Interrupted after Ctrl-C.  None of them leaves
a process behind.  Files are left only in output=, and in the folder of an interrupted job."""
import json
import numbers
import os
import shutil
import tempfile
import typing
import weakref

import numpy as np

from .arrays import Inputs, is_files, numpy_of
from .dictionary import Dictionary
from .hints import Array, Figures, Path, Rows
from .job import Interrupted, Job
from .program import option_of, words_of
from .results import Error, Run


def fit(X: Rows, *, atoms: int, top_s: typing.Optional[int] = None, holdout: Rows = 0.1,
        seed: int = 0, **keywords: typing.Any) -> Run:
    """Learn a dictionary of `atoms` atoms from rows X, each row described by top_s of them (None:
    8, or 32 with find="codes").

    After the fit each row is described by encode_s atoms, by default four times top_s.  Few atoms
    per row in the fit let fits from other seeds find the same atoms.  With find="codes" the default
    of encode_s is top_s, and more is explained.  holdout: the share of the rows that are held out
    of the fit, to judge it; or other rows for this purpose.  seed: the seed of the random start.
    Other keywords: see sagitta.calls and `sagitta fit --help`.  Returns a Run with
    .warnings.

    >>> import numpy as np, sagitta, warnings
    >>> warnings.simplefilter("ignore")
    >>> X = np.random.default_rng(0).standard_normal((2000, 16))
    >>> run = sagitta.fit(X, atoms=32, top_s=4, sweeps=3)
    >>> run.dictionary.atoms.shape, run.codes.shape
    ((32, 16), (2000, 32))
    """
    return _learn("fit", X, holdout, dict(keywords, atoms=atoms, top_s=top_s, seed=seed))


def train(X: Rows, *, atoms: int, top_s: int = 32, holdout: Rows = 0.1, seed: int = 0,
          **keywords: typing.Any) -> Run:
    """Train an autoencoder of `atoms` atoms by gradient descent, each row described by top_s of
    them.  Other arguments as for fit(), and keywords as in `sagitta train --help`.  Returns a
    Run."""
    return _learn("train", X, holdout, dict(keywords, atoms=atoms, top_s=top_s, seed=seed))


def encode(X: Rows, dictionary: Array = None, **keywords: typing.Any) -> Run:
    """Describe rows X by a dictionary, given as a Run, its folder, a file, a sagitta.Dictionary, or
    atoms (K, P) of length 1.

    In place of a dictionary, encoder= names an encoder made by train, detect or import.  Other
    keywords: `sagitta encode --help`.  Returns a Run, whose .codes are N x K."""
    run = _job("encode", X, dict(keywords, dictionary=dictionary))
    if dictionary is not None and not isinstance(dictionary, Run) and not is_files(dictionary):
        run.given = dictionary if isinstance(dictionary, Dictionary) else \
            np.array(numpy_of(dictionary))
    return run


def refit(X: Rows, run: typing.Union[Run, Path], **keywords: typing.Any) -> Run:
    """Improve the dictionary of a run of encode() or fit() on the same rows X: move its atoms so
    that they explain more of the rows.  Keywords: `sagitta refit --help`.  Returns a Run."""
    return _job("refit", X, _with_dictionary(dict({"supports": run}, **keywords), run))


def evaluate(X: Rows, run: typing.Union[Run, Path, None] = None,
             **keywords: typing.Any) -> Figures:
    """The metrics of codes of rows X, by name.  The codes are those of a run of encode() or fit(),
    or codes= with dictionary=.  With labels= or truth= the result also has the metrics against
    them, as in doc/json.md.  Keywords: `sagitta evaluate --help`."""
    keywords = _with_dictionary(dict({"codes": run}, **keywords), run)
    inputs, job = _begin("evaluate", X, keywords)
    with inputs:
        evaluated = json.loads(job.run(None))["evaluated"]
    if len(evaluated) > 1:
        raise TypeError(f"codes= names {len(evaluated)} results: evaluate them one by one")
    return {**evaluated[0].pop("metrics"), **evaluated[0]}


def place_of(run):
    """The folder of a Run; anything else is returned as it is."""
    return run.path if isinstance(run, Run) else run


def dictionary_of(run):
    """The dictionary of a run: the run's folder if it has a dictionary.h5; otherwise the object
    that encode() was given, or the file."""
    run = run if isinstance(run, Run) else Run(run)
    if os.path.exists(os.path.join(run.path, "dictionary.h5")):
        return run.path
    if run.given is not None:
        return run.given
    options = run.page["options"]
    named = options.get("dictionary") or options.get("encoder") or ""
    # the temporary file of an array, which is gone; another file may have its name by now
    if named.startswith("/proc/"):
        raise Error(f"'{run.path}' has no dictionary.h5, and was encoded with an array: give it as "
                    "dictionary=")
    if not os.path.exists(named.split(":/")[0]):
        raise Error(f"'{run.path}' has no dictionary.h5, and what it was encoded with, '{named}', "
                    "is not there any more: give it as dictionary=")
    return named


def _with_dictionary(keywords, run):
    """The keywords, with the dictionary of the run added if they name none."""
    if run is None or keywords.get("dictionary") is not None:
        return keywords
    return dict(keywords, dictionary=dictionary_of(run))


def _learn(command, X, holdout, keywords):
    if isinstance(holdout, numbers.Real) and not isinstance(holdout, bool):
        return _job(command, X, dict({"holdout_share": float(holdout)}, **keywords))
    return _job(command, X, dict(keywords, holdout=holdout))


def _words(command, inputs, options):
    """The command-line words for all options; arrays are added to inputs."""
    words = []
    for keyword, value in options.items():
        option, value = option_of(command, keyword), place_of(value)
        if isinstance(value, Dictionary):
            value = [inputs.dictionary(value, keyword)]
        elif option["input"] and value is not None and not is_files(value):
            value = [inputs.array(numpy_of(value), shown=keyword)]
        words += words_of(option, value)
    return words


def _begin(command, X, keywords, output=None):
    """Prepare a command: (inputs, job).  On an error nothing is left open."""
    run = {name: keywords.pop(name) for name in ("ranks", "progress", "verbose")
           if name in keywords}
    mask, spool = keywords.pop("mask", None), keywords.pop("spool", None)
    for keyword in keywords:
        option_of(command, keyword)
    inputs = Inputs(spool)
    try:
        words = [f"--rows={name}" for name in inputs.rows(X, mask)]
        words += _words(command, inputs, keywords)
        words += [f"--output={output}"] if output else []
        return inputs, Job(command, words, inputs.shown, **run)
    except BaseException:
        inputs.close()
        raise


PREFIX = "sagitta-"  # names of temporary folders begin with it


class Folder:
    """A temporary folder for a result; it is deleted together with this object unless it is
    kept."""

    def __init__(self):
        self._gone = weakref.finalize(self, shutil.rmtree, tempfile.mkdtemp("", PREFIX), True)

    @property
    def path(self):
        return self._gone.peek()[2][0]

    def keep(self):
        self._gone.detach()

    def remove(self):
        self._gone()


# the temporary Folder of each Run, which is deleted together with the Run
OWNED = weakref.WeakKeyDictionary()


def _job(command, X, keywords):
    """Run a command that writes a folder, and open that folder.  An exception at any line leaves no
    process behind, and files only in output= and in the folder of an interrupted job."""
    output, resume = keywords.pop("output", None), keywords.pop("resume", False)
    if resume and output is None:
        raise TypeError("resume=True continues the job in output=: give that folder")
    own = Folder() if output is None else None
    folder = own.path if own else os.fspath(output)
    try:
        inputs, job = _begin(command, X, keywords, folder)
        with inputs:
            job.words += ["--resume"] if resume else []
            job.run(folder)
        run = Run(folder)
        run.warnings = job.warnings
        if own:
            OWNED[run] = own
        return run
    except BaseException as error:
        if own:
            own.keep() if isinstance(error, Interrupted) else own.remove()
        raise
