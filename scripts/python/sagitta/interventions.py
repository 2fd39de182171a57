# SPDX-License-Identifier: BSD-3-Clause
"""Change features of a layer and see what the model does: steer, ablate and replace change the
output x of a PyTorch module while a `with` block runs.

With steer and ablate x becomes x + (c' - c) D, where D are the atoms of a dictionary, c the codes
of x, and c' the wanted codes.  The part of x that the dictionary does not describe stays as it is,
and a row whose codes do not change keeps every bit.  With replace x becomes c D plus the mean.
Codes are in the unit of x, since atoms have length 1.

The output of a module is a tensor (..., T, P), or a tuple, list or dict (such as a ModelOutput), of
which the first tensor of real numbers is used.  `module` is the module itself or its name in
model.named_modules().  positions selects which of the T rows are changed: None for all, a number, a
slice, a list of numbers, or booleans for each row, (..., T), such as an attention mask.

The weights and modes of the model are never changed, and the hook is removed when the block ends,
whatever ends it.  Gradients flow through the changed output."""
import numbers
import typing

import numpy as np
import torch

from .errors import InputError
from .hooks import Hook, Module, applied, fitting, module_of, selected

MODES = ("add", "set", "scale")


def _dictionary(d):
    """The torch module for d: d itself if it is one, otherwise a module made from a
    sagitta.Dictionary, a Run or its folder."""
    if isinstance(d, torch.nn.Module):
        if not hasattr(d, "support"):
            raise InputError(f"d is a {type(d).__name__}: give a sagitta.torch.Dictionary")
        return d
    from .torch import Dictionary
    return Dictionary.of(d) if hasattr(d, "direction") else Dictionary.open(d)


class Intervention(Hook):
    """Applies change() to the chosen rows of a module's output; see Edit for what change()
    returns."""

    def __init__(self, model, module, d, change, positions=None):
        d = _dictionary(d)

        def hook(_, __, output):
            return applied(output, lambda x: _edited(model, d, change, positions, x))
        super().__init__(module_of(model, module), hook)


def _edited(model, d, change, positions, x):
    columns = d.W_dec.shape[1]
    if x.shape[-1] != columns:
        raise InputError(f"the module's output has {x.shape[-1]} columns, atoms have {columns}: "
                         f"{fitting(model, columns)}")
    chosen = selected(positions, x)
    rows = x[chosen]
    if not len(rows):
        return x
    with torch.autocast(x.device.type, enabled=False):
        differs, new = change(d, rows)
    differs = differs.to(x.device)
    if not differs.any():
        return x
    at = torch.nonzero(chosen)[differs].unbind(1)
    return x.index_put(at, new.to(x.device)[differs].to(x.dtype))


def _codes_of(d, rows, atoms):
    """(n, J): the codes of these atoms in each row, 0 where a row does not have the atom."""
    found, codes = d.support(rows)
    slot = torch.full((len(d.W_dec) + 1,), len(atoms), device=found.device)
    slot[atoms] = torch.arange(len(atoms), device=found.device)
    out = codes.new_zeros(len(rows), len(atoms) + 1)
    return out.scatter_add(1, slot[found], codes)[:, :-1]


class Edit:
    """The common part of steer and ablate: new(codes) gives the wanted codes of some atoms.
    Calling the object with a dictionary and rows (n, P) returns which rows change, and all rows
    with the change applied."""

    def __init__(self, atoms, new, needs_codes=True):
        self.atoms, self.new, self.needs_codes = atoms, new, needs_codes

    def __call__(self, d, rows):
        if not self.atoms:
            return torch.zeros(len(rows), dtype=torch.bool), rows
        atoms = torch.tensor(self.atoms, device=d.device)
        codes = _codes_of(d, rows, atoms) if self.needs_codes else \
            torch.zeros(len(rows), len(atoms), device=d.device)
        step = self.new(codes) - codes
        vectors = d.W_dec[atoms].to(step.dtype)
        return (step != 0).any(1), rows + (step @ vectors).to(rows.device)


def _atoms_checked(d, atoms):
    """The numbers of atoms of a dictionary, checked; each may occur once."""
    k = len(d.W_dec)
    found = []
    for atom in atoms:
        if isinstance(atom, bool) or not isinstance(atom, (numbers.Integral, np.integer)):
            raise InputError(f"atom {atom!r} is no whole number: give 0 to {k - 1}")
        if not 0 <= atom < k:
            raise InputError(f"there is no atom {atom}: they are 0 to {k - 1}")
        found.append(int(atom))
    if len(set(found)) < len(found):
        raise InputError(f"atoms {found} name an atom twice: give each once")
    return found


def _values(what, values):
    """Finite numbers as a tensor, one for each atom or one for all."""
    try:
        values = torch.as_tensor(np.asarray(values, dtype="f8"), dtype=torch.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are no numbers: {error}: give one for each atom") from error
    if not torch.isfinite(values).all():
        raise InputError(f"{what} are not finite: {values.tolist()}")
    return values


def steer(model: torch.nn.Module, module: Module, d: typing.Any,
          atoms: typing.Mapping[int, float], mode: str = "add",
          positions: typing.Any = None) -> Intervention:
    """Change codes while a `with` block runs.  atoms: a dict such as {17: 4.0}.  mode: "add" adds
    the number to the atom's code, "set" replaces the code by it, and "scale" multiplies the code by
    it.

    d: a sagitta.torch.Dictionary, a sagitta.Dictionary, a Run or its folder.  "add" needs no codes,
    so it is fast; the other modes encode the rows.

    >>> import torch, sagitta.torch
    >>> model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    >>> d = sagitta.torch.Dictionary(torch.eye(3), top_s=2, compute="torch")
    >>> with sagitta.torch.steer(model, "0", d, {1: 4.0}):
    ...     model(torch.ones(1, 3))
    tensor([[1., 5., 1.]])
    """
    d = _dictionary(d)
    if mode not in MODES:
        raise InputError(f"mode is {mode!r}: give one of {', '.join(MODES)}")
    if not hasattr(atoms, "items"):
        raise InputError(f"atoms are {atoms!r}: give a dict, such as {{17: 4.0}}")
    values = _values("values", list(atoms.values()))

    def new(codes):
        own = values.to(codes.device, codes.dtype)
        return codes + own if mode == "add" else codes * own if mode == "scale" else \
            own.expand(codes.shape)
    return Intervention(model, module, d, Edit(_atoms_checked(d, atoms), new, mode != "add"),
                        positions)


def ablate(model: torch.nn.Module, module: Module, d: typing.Any, atoms: typing.Sequence[int],
           to: typing.Union[float, str, typing.Sequence[float]] = 0.0,
           positions: typing.Any = None) -> Intervention:
    """Remove atoms while a `with` block runs: their codes become `to`, which is one number, or one
    number for each atom, or "mean": each atom's mean code over the rows of the pass that positions
    select."""
    d = _dictionary(d)
    atoms = _atoms_checked(d, atoms)
    is_mean = isinstance(to, str)
    if is_mean and to != "mean":
        raise InputError(f"to is {to!r}: give 'mean', a number, or one for each atom")
    values = None if is_mean else _values("to", to)
    if values is not None and values.ndim and len(values) != len(atoms):
        raise InputError(f"to has {len(values)} numbers, there are {len(atoms)} atoms: give one "
                         "for each, or one for all")

    def new(codes):
        own = codes.mean(0) if is_mean else values.to(codes.device, codes.dtype)
        return own.expand(codes.shape)
    return Intervention(model, module, d, Edit(atoms, new), positions)


def replace(model: torch.nn.Module, module: Module, d: typing.Any,
            positions: typing.Any = None) -> Intervention:
    """Replace rows by their descriptions while a `with` block runs: x becomes d(x), without the
    part that the dictionary does not describe."""
    def change(d, rows):
        return torch.ones(len(rows), dtype=torch.bool), d(rows)
    return Intervention(model, module, d, change, positions)
