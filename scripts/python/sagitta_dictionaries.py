# SPDX-License-Identifier: BSD-3-Clause
"""Warn if `import sagitta` finds another distribution: PyPI has one of the same name, and the two
overwrite each other's files.

When Python starts, it reads the wheel's sagitta_dictionaries.pth, which calls watch().  The first
`import sagitta` then warns if another distribution is imported, or is installed beside ours."""
import os
import sys

NAME = "sagitta"
# how names of the other distribution's metadata begin, in lower case
OTHER = ("sagitta-", "sagitta.egg")
# the first lines of our package
MARK = b"SPDX-License-Identifier: BSD-3-Clause\n\"\"\"Fit dictionaries"
MEND = ("give each an environment of its own; in this one `pip uninstall sagitta`, then `pip "
        "install --force-reinstall --no-deps sagitta-dictionaries`")


def _is_ours(path):
    try:
        with open(path, "rb") as f:
            return MARK in f.read(200)
    except (OSError, TypeError):  # a folder without an __init__.py has no such path
        return False


def _folder():
    return os.path.dirname(os.path.abspath(__file__))


def _others(folder):
    """The paths in the folder under which pip keeps the metadata of the other distribution."""
    return [os.path.join(folder, name) for name in os.listdir(folder)
            if name.lower().startswith(OTHER)]


def said_of(path):
    """The warning to give for an `import sagitta` of this file, or None."""
    own = _folder()
    here = os.path.dirname(os.path.abspath(path)) if path else own
    if path and os.path.basename(path) == "__init__.py":
        here = os.path.dirname(here)
    beside = _others(here)
    if _is_ours(path):
        return f"another distribution, '{beside[0]}', has the name sagitta, and its files and " \
            f"those of sagitta-dictionaries replace one another: {MEND}" if beside else None
    if beside or here == own:
        what = f"is imported from '{path}', of another distribution" if path else \
            f"has no '{os.path.join(own, NAME, '__init__.py')}', which went with another " \
            "distribution"
        return f"sagitta {what}, in the place of sagitta-dictionaries: {MEND}"
    return f"sagitta is imported from '{path}', in the place of sagitta-dictionaries in '{own}': " \
        "rename that file, or take its folder out of the path"


class _Watch:
    """An import finder that notices the first import of NAME.  It never finds a module itself."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != NAME:
            return None
        sys.meta_path.remove(cls)
        from importlib.machinery import PathFinder
        try:
            found = PathFinder.find_spec(NAME)
            text = found and said_of(found.origin)
        except OSError:  # a folder cannot be read: give no warning
            text = None
        if text:
            import warnings
            warnings.warn(text, stacklevel=2)
        return None


def watch():
    if not any(one is _Watch for one in sys.meta_path):
        sys.meta_path.insert(0, _Watch)
