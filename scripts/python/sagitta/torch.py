# SPDX-License-Identifier: BSD-3-Clause
"""A dictionary of Sagitta as a PyTorch module, with the encoding of `sagitta encode`.

Encoding consists of rounds (N.3r) of routing (N.1, N.2) followed by least squares (N.5) or
nonnegative least squares (N.5n); doc/numerics.md has the formulas.  It is computed either by
libsagitta, with the same bits as `sagitta encode`, or by PyTorch.  In PyTorch, scores are matrix
products in the dtype of W_dec, and codes and residuals are float64 until they are stored."""
import numbers
import types
import typing

import torch

from . import dictionary as own
from . import gpu, least_squares, library
from .capture import capture  # noqa: F401, available as sagitta.torch.capture
from .interventions import ablate, replace, steer  # noqa: F401
from .results import Error, Run

KINDS = ("auto", "signed", "nonnegative")
COMPUTE = ("auto", "sagitta", "torch")
GRADIENTS = ("support", "straight-through", "none")
# Excludes functions from torch.compile's graphs: rounds that depend on data, and calls of
# libsagitta.
EAGER = getattr(torch, "_disable_dynamo", lambda function: function)
UNIT = 1e-4  # how far a norm may be from 1, unless its type rounds more coarsely


def scores_key(scores, nonnegative):
    """A key that is largest for the atom that comes first (N.2): the magnitude of the score, or its
    positive part.  Atoms with a key of 0 follow in ascending order."""
    # numbers of atoms above 2,048 are not exact in float16
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    key = scores.clamp(min=0.0) if nonnegative else scores.abs()
    place = torch.arange(scores.shape[-1], device=scores.device)
    return torch.where(key > 0, key, -place.to(key.dtype))


class Config(types.SimpleNamespace):
    """Facts about a module, for programs that expect a cfg."""

    def to_dict(self):
        return dict(vars(self))


class Dictionary(torch.nn.Module):
    """K atoms of P numbers.  W_dec is (K, P); mean (P) is always float64.  The x of encode() is
    (..., P), codes are (..., K)."""

    def __init__(self, atoms: typing.Any, mean: typing.Any = None, top_s: int = 32, rounds: int = 1,
                 codes: str = "signed", rho: float = 0.0, cfg: typing.Any = None, block: int = 1024,
                 compute: str = "auto", gradient: str = "support") -> None:
        """top_s, rounds, codes, rho: as the options of `sagitta encode`.  cfg: an object that is
        given d_in, d_sae, dtype and device if it lacks them.  block: rows computed at a time; it
        may change how products are rounded, and nothing else.

        compute: "sagitta" uses libsagitta, with the same bits as `sagitta encode`, on the module's
        device, or on the CPU if libsagitta cannot use that GPU.  "torch" uses PyTorch, where atoms
        with nearly equal scores may change places.  "auto" chooses "sagitta" if the atoms are
        float32 and not being trained, and libsagitta is there and can use the device; otherwise
        "torch".

        gradient: "support" gives the gradient of the codes with respect to x and W_dec, with the
        supports held fixed.  "straight-through": forward() passes gradients to x as the identity
        would.  "none": codes have no gradient."""
        super().__init__()
        for name, value, known in (("compute", compute, COMPUTE),
                                   ("gradient", gradient, GRADIENTS)):
            if value not in known:
                raise Error(f"{name} is {value!r}: say one of {', '.join(known)}")
        self.compute, self.gradient, self._exact = compute, gradient, None
        atoms = self._numbers("atoms", atoms)
        if not atoms.is_floating_point():
            raise Error(f"atoms are of {atoms.dtype}: give them as floats")
        if atoms.ndim != 2:
            raise Error(f"atoms have shape {tuple(atoms.shape)}: this module takes (K, P); encode "
                        "with frames by `sagitta encode`")
        if codes not in KINDS[1:]:
            raise Error(f"codes are '{codes}': say signed or nonnegative")
        for name, value in (("top_s", top_s), ("rounds", rounds), ("block", block)):
            if not isinstance(value, numbers.Integral):
                raise Error(f"{name} is {value!r}: give a whole number")
        if top_s < 1 or rounds < 1 or rho < 0 or block < 1:
            raise Error(f"top_s is {top_s}, rounds {rounds}, rho {rho}, block {block}: rho has to "
                        "be at least 0, the others at least 1")
        self.W_dec = torch.nn.Parameter(atoms.clone(), requires_grad=False)
        self._check_norms()
        mean = torch.zeros(atoms.shape[1]) if mean is None else torch.as_tensor(mean).detach()
        if mean.shape != (atoms.shape[1],):
            raise Error(f"the mean has shape {tuple(mean.shape)}, atoms have {atoms.shape[1]} "
                        "columns: give one number a column")
        self.register_buffer("mean", mean.to(atoms.device, torch.float64))
        self.top_s = min(top_s, len(atoms))
        self.rounds = min(rounds, self.top_s)
        self.codes, self.rho, self.block = codes, float(rho), block
        self.cfg = Config() if cfg is None else cfg
        for name, value in (("d_in", atoms.shape[1]), ("d_sae", len(atoms))):
            if getattr(self.cfg, name, None) is None:
                setattr(self.cfg, name, value)
        self._told = [name for name in ("dtype", "device") if not getattr(self.cfg, name, None)]
        self._tell()

    @classmethod
    def open(cls, run: typing.Any, top_s: typing.Optional[int] = None,
             rounds: typing.Optional[int] = None, codes: str = "auto",
             **others: typing.Any) -> "Dictionary":
        """Make the module from a run's folder, a dictionary.h5, a result of sagitta.open(), or a
        file of Dictionary.save().  An option that is not given is taken from the file; if the file
        does not have it, it has the default of `sagitta encode`."""
        d = run.dictionary if isinstance(run, Run) else own.Dictionary.open(run)
        return cls.of(d, top_s, rounds, codes, **others)

    @classmethod
    def of(cls, d: own.Dictionary, top_s: typing.Optional[int] = None,
           rounds: typing.Optional[int] = None, codes: str = "auto",
           **others: typing.Any) -> "Dictionary":
        """As open(), from a sagitta.Dictionary."""
        if codes not in KINDS:
            raise Error(f"codes are '{codes}': say one of {', '.join(KINDS)}")
        if codes == "auto":
            codes = "nonnegative" if d.nonnegative else "signed"
        mean = None if d.mean is None else d.mean.copy()  # PyTorch warns about read-only arrays
        return cls(d.atoms.copy(), mean, top_s or d.top_s or 32, rounds or d.rounds or 1, codes,
                   **others)

    @staticmethod
    def _numbers(name, values):
        """The values as a tensor; they may be given as an array or a list."""
        try:
            return torch.as_tensor(values)
        except (RuntimeError, TypeError, ValueError) as error:
            raise Error(f"{name} are no numbers: {error}: give a tensor or an array") from error

    def _check_norms(self):
        if not len(self.W_dec):
            raise Error("there are no atoms: give (K, P), K at least 1")
        norm = self.W_dec.double().norm(dim=1)
        far = (norm - 1).abs().nan_to_num(torch.inf)
        if not far.max() <= max(UNIT, torch.finfo(self.dtype).eps):
            worst = int(far.argmax())
            turned = (self.W_dec.double().norm(dim=0) - 1).abs().nan_to_num(torch.inf)
            if turned.max() <= UNIT:
                raise Error(f"columns of the atoms {tuple(self.W_dec.shape)} have norm 1, and rows "
                            "have not: they are transposed, give atoms.T")
            raise Error(f"atom {worst} of {len(far)} has norm {float(norm[worst]):.6g}: scale "
                        "atoms to norm 1, and codes that you have by their norms")

    def _tell(self):
        """Update the dtype and device of cfg, as texts, unless someone else set them."""
        said = {"dtype": str(self.dtype).split(".")[-1], "device": str(self.device)}
        for name in self._told:
            setattr(self.cfg, name, said[name])

    def _apply(self, fn, *rest):
        mean = self.mean
        super()._apply(fn, *rest)
        self.mean = mean.to(self.W_dec.device)  # stays float64, whatever the dtype of the atoms
        self._tell()
        return self

    @property
    def device(self) -> torch.device:
        return self.W_dec.device

    @property
    def dtype(self) -> torch.dtype:
        return self.W_dec.dtype

    @property
    def b_dec(self) -> torch.Tensor:
        return self.mean.to(self.dtype)

    @property
    def W_enc(self) -> torch.Tensor:
        """(P, K): x @ W_enc + b_enc are the scores of the first round, which choose atoms.  Codes
        are then solved for, so a program that takes these scores as codes gets different codes."""
        return self.W_dec.T

    @property
    def b_enc(self) -> torch.Tensor:
        return -(self.W_dec.double() @ self.mean).to(self.dtype)

    def _centred(self, x):
        """x less the mean in float64, rounded once to float32, as rows are (numerics.md, section
        1)."""
        if not x.ndim or x.is_complex():
            raise Error(f"x is {x.dtype} of shape {tuple(x.shape)}: give rows of activations, real "
                        "numbers (..., P)")
        columns = self.W_dec.shape[1]
        if x.shape[-1] != columns:
            mend = "give x.T" if x.ndim == 2 and len(x) == columns else \
                "give activations of the place that the dictionary was fitted to"
            raise Error(f"x has {x.shape[-1]} columns, atoms have {columns}: {mend}")
        x = (x.to(self.device, torch.float64) - self.mean).to(torch.float32)
        if not torch.isfinite(x).all():
            raise Error("x has values that are not finite: leave out these rows, or mask them")
        return x

    def _codes(self, g, b):
        solver = least_squares.signed if self.codes == "signed" else least_squares.nonnegative
        return solver(g, b, self.rho)

    def _is_exact(self):
        """Should libsagitta do the computing?"""
        if self.compute != "auto":
            return self.compute == "sagitta"
        w = self.W_dec
        return w.dtype == torch.float32 and not w.requires_grad and library.loads() and \
            (w.device.type == "cpu" or gpu.is_on_gpu(w))

    def _library(self):
        """A sagitta.Dictionary of the current atoms.  PyTorch does not report every way in which
        they may have changed, so all of them are compared with the last ones."""
        now = self.W_dec.detach().to(torch.float32)
        kept = None if self._exact is None else self._exact[0]
        if kept is None or kept.device != now.device or not torch.equal(kept, now):
            self._exact = now.clone(), own.Dictionary.from_arrays(now)
        return self._exact[1]

    def _exact_support(self, x):
        """The support by libsagitta.  None: libsagitta cannot use this GPU, and with "auto" PyTorch
        computes instead."""
        d, how = self._library(), (self.top_s, self.rounds, self.codes, self.rho)
        threads = torch.get_num_threads()
        if self.compute == "auto" and gpu.is_on_gpu(x):
            found = gpu.support(d._handles, d._options(*how), threads, x, is_said=False)
        else:
            found = d._support(x, d._options(*how), threads)
        return found and (found[0].to(torch.int64), found[1].double())

    def _support(self, x):
        """The support (n, s) and codes (n, s), float64, of centred rows (n, P)."""
        found = self._exact_support(x) if self._is_exact() else None
        if found is not None:
            return found
        s, wide = self.top_s, x.double()
        atoms = torch.empty(len(x), s, dtype=torch.int64, device=x.device)
        vectors = wide.new_empty(len(x), s, x.shape[1])
        codes, residual, first = None, x, 0
        for turn in range(1, self.rounds + 1):
            end = turn * s // self.rounds
            key = scores_key(residual.to(self.dtype) @ self.W_dec.T, self.codes == "nonnegative")
            if first:
                key.scatter_(1, atoms[:, :first], -torch.inf)
            atoms[:, first:end] = key.topk(end - first, dim=1).indices
            vectors[:, first:end] = self.W_dec[atoms[:, first:end]].double()
            chosen = vectors[:, :end]
            codes = self._codes(chosen @ chosen.mT, (chosen @ wide[:, :, None])[:, :, 0])
            if turn < self.rounds:
                residual = (wide - (codes[:, None, :] @ chosen)[:, 0]).to(torch.float32)
            first = end
        return atoms, codes

    def _follow(self, x, atoms, codes):
        """The same codes, with their gradient with respect to x and the atoms: on the entries of a
        row's support whose codes are not 0, codes are given by (N.5)."""
        vectors, inside = self.W_dec[atoms].double(), codes != 0
        l = least_squares.factor(vectors @ vectors.mT, inside, self.rho)[0]
        again = least_squares.solve(l, inside, (vectors @ x.double()[:, :, None])[:, :, 0])
        return codes + (again - again.detach())

    def _part(self, x):
        with torch.no_grad():
            atoms, codes = self._support(x)
        is_followed = self.gradient != "none" and torch.is_grad_enabled() and \
            (x.requires_grad or self.W_dec.requires_grad)
        return atoms, self._follow(x, atoms, codes) if is_followed else codes

    @EAGER
    def support(self, x: typing.Any) -> typing.Tuple[torch.Tensor, torch.Tensor]:
        """(atoms, codes), each (..., s), in the order in which the atoms were chosen.  The gradient
        of the codes with respect to x is that with the atoms held fixed."""
        x = self._numbers("x", x)
        rows = self._centred(x).reshape(-1, x.shape[-1])
        parts = [self._part(part) for part in rows.split(self.block)] if len(rows) else [
            (rows.new_empty(0, self.top_s, dtype=torch.int64), rows.new_empty(0, self.top_s))]
        shape = (*x.shape[:-1], self.top_s)
        atoms, codes = (torch.cat(arrays).reshape(shape) for arrays in zip(*parts))
        return atoms, codes.to(torch.promote_types(self.dtype, torch.float32))

    def encode(self, x: typing.Any) -> torch.Tensor:
        """The codes of x, (..., K), 0 outside of the support; gradients as in support()."""
        atoms, codes = self.support(x)
        out = torch.zeros(*atoms.shape[:-1], len(self.W_dec), dtype=self.dtype, device=self.device)
        return out.scatter_(-1, atoms, codes.to(self.dtype))

    def decode(self, codes: typing.Any) -> torch.Tensor:
        """The rows (..., P) that the codes describe, mean included."""
        codes = self._numbers("codes", codes)
        if not codes.ndim or codes.shape[-1] != len(self.W_dec):
            raise Error(f"codes have shape {tuple(codes.shape)}, there are {len(self.W_dec)} "
                        "atoms: give what encode() returns, (..., K)")
        return codes.to(self.device, self.dtype) @ self.W_dec + self.b_dec

    def decode_support(self, atoms: typing.Any, codes: typing.Any) -> torch.Tensor:
        """As decode(), but from the result of support(), atoms and codes (..., s).  It makes no
        array (..., K)."""
        atoms, codes = self._numbers("atoms", atoms), self._numbers("codes", codes)
        if atoms.shape != codes.shape or not atoms.ndim:
            raise Error(f"atoms have shape {tuple(atoms.shape)}, codes {tuple(codes.shape)}: give "
                        "what support() returns, (..., s) each")
        s = atoms.shape[-1]
        flat = atoms.to(self.device).clamp(min=0).reshape(-1, s)
        weights = codes.to(self.device, self.dtype).reshape(-1, s)
        rows = torch.nn.functional.embedding_bag(flat, self.W_dec, per_sample_weights=weights,
                                                 mode="sum")
        return rows.reshape(*atoms.shape[:-1], self.W_dec.shape[1]) + self.b_dec

    def forward(self, x: typing.Any) -> torch.Tensor:
        """The description of x by its codes, (..., P)."""
        x = self._numbers("x", x)
        if self.gradient != "straight-through":
            return self.decode(self.encode(x))
        y = self.decode_support(*self.support(x.detach()))
        through = x.to(y.device, y.dtype)
        return y + (through - through.detach())

    def extra_repr(self):
        k, p = self.W_dec.shape
        return (f"atoms={k}, columns={p}, top_s={self.top_s}, rounds={self.rounds}, "
                f"codes={self.codes}, rho={self.rho:g}, compute={self.compute}, "
                f"gradient={self.gradient}")
