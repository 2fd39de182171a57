# SPDX-License-Identifier: BSD-3-Clause
"""Hooks on modules of a model: they choose a module, a tensor of its output and rows of that
tensor, and are removed when their block ends."""
import copy
import difflib
import numbers
import typing
import weakref

import torch

from .errors import InputError

Module = typing.Union[torch.nn.Module, str]  # a module of a model, or its name
Own = typing.TypeVar("Own", bound="Hook")
NAMED = 6  # the most modules that a message names


def module_of(model, module):
    if isinstance(module, torch.nn.Module):
        return module
    known = dict(model.named_modules())
    if module not in known:
        near = difflib.get_close_matches(str(module), known, 3, 0.4) or list(known)[1:NAMED]
        raise InputError(f"the model has no module {module!r}: give one of its names, such as "
                         f"{', '.join(near)}")
    return known[module]


def _width(module):
    """The probable number of columns of a module's output, taken from the last submodule that
    declares one; None: none does."""
    width = None
    for part in module.modules():
        shape = getattr(part, "normalized_shape", None)
        own = getattr(part, "out_features", None) or getattr(part, "embedding_dim", None) or \
            getattr(part, "nf", None) or (shape[-1] if isinstance(shape, (tuple, list)) else None)
        width = own or width
    return width


def fitting(model, columns):
    """The end of an error message: modules whose output may have this many columns, outer ones
    first."""
    names = [name for name, part in model.named_modules() if name and _width(part) == columns]
    names.sort(key=lambda name: name.count("."))
    found = ", ".join(names[:NAMED])
    return f"these modules of the model may fit: {found}" if found else \
        "give a module whose output is what the dictionary was fitted to"


def _first(value):
    """(key, tensor): the first tensor of real numbers in a tuple, list or dict; None: there is
    none."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return next(((key, x) for key, x in items
                 if isinstance(x, torch.Tensor) and x.is_floating_point()), None)


def _changed(value, key, x):
    """A copy of a tuple, list or dict, of the same type, with x at this key."""
    if isinstance(value, dict):
        other = copy.copy(value)
        other[key] = x
        return other
    parts = [*value[:key], x, *value[key + 1:]]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def applied(output, change):
    """The output of a module with its tensor x, the first one of real numbers, replaced by
    change(x)."""
    if isinstance(output, torch.Tensor):
        return change(output)
    found = _first(output) if isinstance(output, (tuple, list, dict)) else None
    if found is None:
        raise InputError(f"the module's output is a {type(output).__name__} without a tensor of "
                         "real numbers: give another module")
    key, x = found
    return _changed(output, key, change(x))


def selected(positions, x):
    """Booleans (..., T): True for each row of x (..., T, P) that positions select."""
    shape = x.shape[:-1]
    if not shape:
        raise InputError(f"the module's output is a vector of {len(x)} numbers: give a module "
                         "whose output has rows, (..., T, P)")
    if positions is None:
        return torch.ones(shape, dtype=torch.bool, device=x.device)
    chosen = torch.zeros(shape, dtype=torch.bool, device=x.device)
    if not isinstance(positions, (slice, numbers.Integral)):
        positions = torch.as_tensor(positions, device=x.device)
        # an empty list has no integer type
        positions = positions if positions.numel() else positions.long()
    try:
        if isinstance(positions, torch.Tensor) and (positions.dtype == torch.bool or
                                                    positions.ndim > 1):
            return positions.bool().expand(shape)
        chosen[..., positions] = True
    except (IndexError, RuntimeError) as error:
        raise InputError(f"positions do not fit the output {tuple(x.shape)}: {error}: give numbers "
                         f"below {shape[-1]}, or True and False for each of "
                         f"{tuple(shape)}") from error
    return chosen


class Hook:
    """A hook on a module, from the start of a `with` block to its end.  It is also removed together
    with this object, so that an interrupt within this class cannot leave it behind."""

    def __init__(self, module, hook):
        self._module, self._hook, self._end = module, hook, None

    def __enter__(self: Own) -> Own:
        if self._end is not None and self._end.alive:
            raise RuntimeError("this intervention is at work already: make another one")
        self._end = weakref.finalize(self, self._module.register_forward_hook(self._hook).remove)
        return self

    def __exit__(self, *error: typing.Any) -> None:
        self._end()
