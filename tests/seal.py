# SPDX-License-Identifier: BSD-3-Clause
"""The hashes of doc/formats.md by h5py and hashlib: whether a file has them right, and new ones for
a file that a test has changed."""
import hashlib

import h5py
import numpy as np


def _entries(f, in_run):
    """Paths and objects of the file, sorted, in /run or outside."""
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
    """The bytes of each chunk along the first dimension, the last one as far as it is filled."""
    rows = data.chunks[0] if data.chunks else max(len(data), 1)
    return [data[i:i + rows].tobytes() for i in range(0, len(data), rows)]


def seal_of(data):
    """sha256 and zero_chunks of a dataset."""
    chunks = _chunks(data)
    return (hashlib.sha256(b"".join(chunks)).hexdigest(),
            sum(not chunk.strip(b"\0") and len(chunk) > 0 for chunk in chunks))


def wrong_seals(path):
    """Names of what has no hash in a file of ours, or a wrong one."""
    with h5py.File(path) as f:
        wrong = [place for in_run, place in ((False, "/"), (True, "/run"))
                 if f[place].attrs.get("attributes_sha256") != attributes_hash(f, in_run).encode()]
        for in_run in (False, True):
            for name, data in _entries(f, in_run):
                if isinstance(data, h5py.Dataset):
                    told = (data.attrs.get("sha256", b"").decode(), data.attrs.get("zero_chunks"))
                    wrong += [name] if told != seal_of(data) else []
    return wrong


def _put(entry, name, digits):
    entry.attrs.create(name, np.bytes_(digits), dtype="S64")


def reseal(f):
    """Write the hashes of what an open file holds."""
    for in_run in (False, True):
        for _, data in _entries(f, in_run):
            if isinstance(data, h5py.Dataset) and data.shape and data.size < 1 << 24:
                digits, zeros = seal_of(data)
                _put(data, "sha256", digits)
                data.attrs["zero_chunks"] = zeros
    _put(f, "attributes_sha256", attributes_hash(f, False))
    if "run" in f:
        _put(f["run"], "attributes_sha256", attributes_hash(f, True))
