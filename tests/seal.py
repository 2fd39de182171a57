# SPDX-License-Identifier: BSD-3-Clause
"""The hashes of doc/formats.md, computed with h5py and hashlib.  Tests check those of a file, or
write new ones to a file that they have changed."""
import hashlib

import h5py
import numpy as np

TREE_FROM = 4  # the first format version whose hashes are trees


def _entries(f, in_run):
    """Paths and objects of the file, sorted; in_run: those in /run, otherwise those outside."""
    found = {"/": f}
    f.visititems(lambda name, entry: found.update({"/" + name: entry}))
    return [(path, found[path]) for path in sorted(found, key=str.encode)
            if (path == "/run" or path.startswith("/run/")) == in_run]


def attributes_hash(f, in_run):
    total = hashlib.sha256()
    for path, entry in _entries(f, in_run):
        for name in sorted(entry.attrs, key=str.encode):
            if name == "attributes_sha256":
                continue
            kind = h5py.check_string_dtype(entry.attrs.get_id(name).dtype)
            total.update(path.encode() + b"\0" + name.encode() + b"\0")
            if kind is None or kind.length is not None:
                total.update(np.asarray(entry.attrs[name]).tobytes())
                continue
            for text in np.ravel(entry.attrs[name]):
                total.update(text.encode() + b"\0")
    return total.hexdigest()


def _chunks(data):
    """The bytes of each chunk along the first dimension.  The last chunk ends with the data."""
    rows = data.chunks[0] if data.chunks else max(len(data), 1)
    return [data[i:i + rows].tobytes() for i in range(0, len(data), rows)] if data.size else []


def leaves_of(data):
    """The hash of each chunk of a dataset."""
    return [hashlib.sha256(b"\0" + chunk).digest() for chunk in _chunks(data)]


def root_of(leaves):
    """The root of the tree of RFC 6962, 2.1."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256().digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def seal_of(data, version):
    """{attribute: value} that a dataset should have: its hash, and zero_chunks."""
    zeros = sum(not chunk.strip(b"\0") and len(chunk) > 0 for chunk in _chunks(data))
    if version < TREE_FROM:
        return {"sha256": hashlib.sha256(b"".join(_chunks(data))).hexdigest(), "zero_chunks": zeros}
    return {"sha256_tree": root_of(leaves_of(data)).hex(), "zero_chunks": zeros}


def _is_leaves(name, version):
    return version >= TREE_FROM and name.startswith("/hashes/")


def _sealed(f):
    """Paths and datasets that have their own hashes."""
    return [(name, data) for in_run in (False, True) for name, data in _entries(f, in_run)
            if isinstance(data, h5py.Dataset) and not _is_leaves(name, f.attrs["format_version"])]


def _leaves(data):
    """The entry that /hashes should have for a dataset: the hashes of its chunks.  None if there is
    only one chunk."""
    leaves = leaves_of(data)
    return np.frombuffer(b"".join(leaves), "<i8").reshape(-1, 4) if len(leaves) > 1 else None


def wrong_seals(path):
    """Names of objects of a file of ours that have no hash, or a wrong one."""
    with h5py.File(path) as f:
        wrong = [place for in_run, place in ((False, "/"), (True, "/run"))
                 if f[place].attrs.get("attributes_sha256") != attributes_hash(f, in_run).encode()]
        named = {name for in_run in (False, True) for name, data in _entries(f, in_run)
                 if isinstance(data, h5py.Dataset) and _is_leaves(name, TREE_FROM)}
        for name, data in _sealed(f):
            wanted = seal_of(data, f.attrs["format_version"])
            told = {key: data.attrs.get(key) for key in wanted}
            told = {key: value.decode() if isinstance(value, bytes) else value
                    for key, value in told.items()}
            wrong += [name] if told != wanted else []
            leaves = _leaves(data)
            if leaves is not None:
                kept = f.get("/hashes" + name)
                same = kept is not None and kept.dtype == "<i8" and np.array_equal(kept, leaves)
                wrong += [] if same else ["/hashes" + name]
                named -= {"/hashes" + name}
        return wrong + sorted(named)


def _put(entry, name, digits):
    entry.attrs.create(name, np.bytes_(digits), dtype="S64")


def reseal(f):
    """Write the hashes of the contents of an open file."""
    version = f.attrs["format_version"]
    for name, data in _sealed(f):
        if data.shape and data.size < 1 << 24:
            for key, value in seal_of(data, version).items():
                if isinstance(value, str):
                    _put(data, key, value)
                else:
                    data.attrs[key] = value
            if version >= TREE_FROM:
                f.pop("/hashes" + name, None)
                leaves = _leaves(data)
                if leaves is not None:
                    f.create_dataset("/hashes" + name, data=leaves, chunks=leaves.shape,
                                     fletcher32=True)
    _put(f, "attributes_sha256", attributes_hash(f, False))
    if "run" in f:
        _put(f["run"], "attributes_sha256", attributes_hash(f, True))


def older(f, version):
    """Turn an open file into one of an older format version, as a program of that version wrote
    it."""
    f.attrs["format_version"] = np.int64(version)
    f.pop("hashes", None)
    for in_run in (False, True):
        for _, entry in _entries(f, in_run):
            for name in ("sha256_tree", "zero_chunks", "attributes_sha256"):
                entry.attrs.pop(name, None)
    if version > 1:
        reseal(f)
