# SPDX-License-Identifier: BSD-3-Clause
"""Late(name): a module that is imported when one of its attributes is first used."""
import importlib


class Late:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        return getattr(importlib.import_module(self._name), attribute)


h5py = Late("h5py")
