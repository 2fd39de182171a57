# SPDX-License-Identifier: BSD-3-Clause
"""Claim: arrays of JAX are taken as rows, atoms and codes like those of NumPy, and results are
arrays of JAX on their device, with the same bits.  A call that JAX traces is refused; in a callback
of JAX it works."""
import os
import tempfile
import warnings

from peer import peer_needed_full
from tap import SAGITTA, SOURCE, claim, done_testing, need, ok, raised, same
from tap import sagitta as program

os.environ.update(SAGITTA_PROGRAM=os.path.abspath(SAGITTA), JAX_PLATFORMS="cpu",
                  XLA_FLAGS="--xla_force_host_platform_device_count=2")
peer_needed_full("jax", "h5py")

import h5py  # noqa: E402, after a Python that has them was found
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import sagitta  # noqa: E402
from sagitta.arrays import numpy_of  # noqa: E402

jax.config.update("jax_enable_x64", True)  # otherwise float64 becomes float32
ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
N, K = 700, 48
HOW = {"atoms": K, "top_s": 4, "sweeps": 2, "progress": None}


def bits(array):
    return np.asarray(array).tobytes()


@claim("a fit of JAX arrays, of slices, three dimensions or batches, has the bytes of the command "
       "in a shell")
def check_fit(at, x):
    np.save(f"{at}/x.npy", x)
    words = [w for k, v in HOW.items() if v for w in (f"--{k.replace('_', '-')}", v)]
    need(program("fit", "--rows", f"{at}/x.npy", *words, "--output", f"{at}/fit"), "fit")
    own = jnp.asarray(x)
    padded = jnp.concatenate([own, own[:50] * jnp.nan])
    for name, rows, more in (
            ("whole", own, {}), ("turned", jnp.asarray(x.T).T, {}),
            ("three dimensions", own.reshape(7, 100, -1), {}),
            ("on another device", jax.device_put(own, jax.devices()[1]), {}),
            ("parts", (own[i:i + 90] for i in range(0, N, 90)), {}),
            ("with a mask", padded, {"mask": jnp.arange(N + 50) < N})):
        made = sagitta.fit(rows, **more, **HOW)
        same(f"{at}/fit", made.path, name)
    wide, half = own.astype("float64") * (1 + 1e-9), own.astype(jnp.bfloat16)
    np.save(f"{at}/half.npy", np.asarray(half.astype("float32")))
    np.save(f"{at}/wide.npy", np.asarray(wide))
    for name, rows in ("half", half), ("wide", wide):
        need(program("encode", "--rows", f"{at}/{name}.npy", "--dictionary", f"{at}/fit",
                     "--output", f"{at}/{name}"), name)
        codes = sagitta.encode(rows, f"{at}/fit", progress=None)
        same(f"{at}/{name}", codes.path, f"encode, {rows.dtype}")
    return sagitta.Dictionary.open(f"{at}/fit")


@claim("supports have the bits of NumPy's, in any batches, as JAX arrays on the device of the rows")
def check_support(d, x):
    plain = d.support(x)
    for device in jax.devices():
        own = jax.device_put(x, device)
        for step in 1, 7, N:
            parts = [d.support(own[i:i + step]) for i in range(0, min(N, 20 * step), step)]
            for i, whole in enumerate(plain):
                found = jnp.concatenate([part[i] for part in parts])
                ok(bits(found) == bits(whole[:len(found)]) and found.dtype == whole.dtype and
                   isinstance(found, jax.Array) and found.device == device,
                   f"{step} rows at a time on {device}: {found.dtype} on {found.device}")
        dense = d.encode(own.reshape(7, 100, -1), format="dense")
        decoded = d.decode(dense)
        ok(dense.shape == (7, 100, K) and dense.device == decoded.device == device and
           bits(decoded) == bits(d.decode(np.asarray(dense))), f"codes and rows on {device}")
        ok(bits(d.encode(own).data) == bits(d.encode(x).data), "sparse codes")
        ok(d.explained_variance(own) == d.explained_variance(x) and
           sagitta.explained_variance(own.reshape(7, 100, -1), decoded) ==
           sagitta.explained_variance(x.reshape(7, 100, -1), np.asarray(decoded)),
           "explained variance")
    ok(bits(jnp.asarray(x)) == bits(numpy_of(jnp.asarray(x))), "rows as NumPy has them")


@claim("rows are read without a copy, by NumPy and by DLPack, and do not change")
def check_pointer(d, x):
    own = jnp.asarray(x)
    where = own.unsafe_buffer_pointer()
    ok(numpy_of(own).ctypes.data == where, "no copy")
    shared = np.from_dlpack(own)
    ok(shared.ctypes.data == where and not shared.flags.writeable, "DLPack, read-only")
    ok(all(bits(a) == bits(b) for a, b in zip(d.support(shared), d.support(own))), "its bits")
    ok(bits(own) == bits(x), "the rows stay")
    mesh = jax.sharding.Mesh(np.array(jax.devices()), "d")
    for spec in ("d", None), (None, "d"):
        own = jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)))
        ok(all(bits(a) == bits(b) for a, b in zip(d.support(own), d.support(x))),
           f"shared out by {spec}")


@claim("JAX arrays are taken as atoms, means and codes")
def check_atoms(at, d, x):
    made = sagitta.Dictionary.from_arrays(jnp.asarray(d.atoms), jnp.asarray(d.mean),
                                          top_s=d.top_s, rounds=d.rounds,
                                          nonnegative=d.nonnegative)
    ok(made == d, "a dictionary")
    run = sagitta.encode(x - d.mean, jnp.asarray(d.atoms), top_s=4, progress=None)
    ok(run.codes.shape == (N, K), "atoms of a job")
    own = jnp.asarray(d.atoms)
    ok(abs(sagitta.compare(own, d).pw_mcc - 1) < 1e-6, "compared")
    words = [str(i) for i in range(N)]
    F = [sagitta.Features(sagitta.open(f"{at}/fit"), xp.arange(N), words)[3].top(n=3)
         for xp in (np, jnp)]
    ok(repr(F[0]) == repr(F[1]), "tokens")


@claim("traced arrays are refused, and the remedy that the message names works")
def check_traced(d, x):
    own = jnp.asarray(x)

    def dense(rows):
        return d.encode(rows, format="dense")
    for transform in jax.jit, jax.vmap, lambda f: jax.grad(lambda rows: f(rows).sum()):
        raised(TypeError, ["traced by JAX", "pure_callback"], transform(dense), own)
        raised(TypeError, ["traced by JAX"], transform(
            lambda rows: sagitta.fit(rows, **HOW).codes), own)
        raised(TypeError, ["traced by JAX"], transform(
            lambda rows: sagitta.explained_variance(rows, x)), own)
    shape = jax.ShapeDtypeStruct((N, K), "float32")
    again = jax.jit(lambda rows: 2 * jax.pure_callback(dense, shape, rows))(own)
    ok(bits(again) == bits(2 * dense(x)), "in a callback")
    raised(TypeError, ["int32"], dense, jnp.ones((3, x.shape[1]), "int32"))
    raised(ValueError, ["give x.T"], dense, own[:7].T)
    raised(sagitta.InputError, ["row 2"], dense, own[:5].at[2, 3].set(jnp.nan))


def main():
    with h5py.File(ROWS) as f:
        x = f["rows"][:N].astype("f4")
    with tempfile.TemporaryDirectory() as at, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are few rows
        d = check_fit(at, x)
        check_support(d, x)
        check_pointer(d, x)
        check_atoms(at, d, x)
        check_traced(d, x)
    done_testing()


main()
