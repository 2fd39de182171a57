# SPDX-License-Identifier: BSD-3-Clause
"""Codes of rows from a running `sagitta serve`, as a model computes the rows.

    server = sagitta.live.connect()
    codes = server.encode(rows, top=8)          # codes.atoms, codes.codes: (rows, 8)
    future = server.submit(prompt, bulk=True)   # concurrent.futures.Future

Rows are NumPy arrays or PyTorch tensors of float32, float16 or bfloat16.  A connection may be used
by any number of threads."""
import concurrent.futures
import itertools
import json
import os
import queue
import stat
import struct
import threading
import time
import typing

import numpy as np

from .results import Error

HEADER = struct.Struct("<IHHQIIBBHIQQQQ")
MAGIC, VERSION = 0x564c4753, 1
HELLO, ENCODE, STATUS, CANCEL, WATCH, MIXER, REPLY, ERROR = 1, 2, 3, 4, 5, 6, 128, 255
SCORES, WATCHED = 1, 2
ENDED = "the server ended before it answered: ask again"
REASONS = {1: "bad", 2: "busy", 3: "late", 4: "closing", 5: "cancelled"}


class Refused(Error):
    """The server refused or dropped a request; reason: bad, busy, late, closing or cancelled."""

    def __init__(self, reason, text):
        super().__init__(f"{reason}: {text}")
        self.reason = reason


class Codes:
    """The codes of n rows: count (n,), atoms (n, w) and codes (n, w), or (n, w, d) for frames, in
    the order of the support.  w is at least the largest count.  A row has `count` entries; after
    them atoms are -1 and codes 0.  scores: (n, w), or None.  seconds: from arrival to reply,
    measured at the server.  step: the number of the server's step that computed the last row."""

    def __init__(self, count, atoms, codes, scores, seconds, step):
        self.count, self.atoms, self.codes, self.scores = count, atoms, codes, scores
        self.seconds, self.step = seconds, step


def address():
    """The address at which a server without --listen listens."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime[:1] == "/":
        return f"{runtime}/sagitta/live"
    folder = f"/tmp/sagitta-{os.geteuid()}"
    try:  # anybody could create a folder there
        facts = os.lstat(folder)
    except FileNotFoundError:
        os.mkdir(folder, 0o700)
        facts = os.lstat(folder)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o77:
        raise Error(f"'{folder}' is not a folder of this user alone: name the server's --listen")
    return folder + "/live"


def _endpoint(path):
    """ZeroMQ's form of an address: a path, tcp:PORT on this machine, or tcp:HOST:PORT."""
    if not path.startswith("tcp:"):
        return "ipc://" + os.path.abspath(path)
    rest = path[6 if path[4:6] == "//" else 4:]
    return "tcp://" + (rest if ":" in rest else "127.0.0.1:" + rest)


def _key(folder, name):
    """Read a key made by `sagitta serve --make-keys`: one line of 40 characters."""
    path = os.path.join(folder, name)
    with open(path, "rb") as f:
        if name.endswith(".secret") and os.fstat(f.fileno()).st_mode & 0o77:
            raise Error(f"others than its user may read '{path}': run chmod 600 on it, or make "
                        "new keys")
        key = f.read(42).rstrip()
    if len(key) != 40:
        raise Error(f"'{path}' is no key, a line of 40 characters")
    return key


def _values(rows):
    """The rows as an array, and the protocol's number for their type."""
    if hasattr(rows, "detach"):  # a tensor of PyTorch
        rows = rows.detach().cpu().contiguous()
        if str(rows.dtype) == "torch.bfloat16":
            import torch
            return rows.view(torch.int16).numpy(), 3
        rows = rows.numpy()
    rows = np.asarray(rows)
    types = {"float32": 1, "float16": 2, "bfloat16": 3}
    if rows.dtype.name not in types:
        raise TypeError(f"rows are {rows.dtype}: give float32, float16 or bfloat16")
    kind = types[rows.dtype.name]
    rows = rows.astype(rows.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(rows), kind


class Server:
    """A connection to a server.  columns, atoms, top_s, frame and dictionary_hash describe the
    dictionary that it serves."""

    def __init__(self, path, timeout, keys=None):
        try:
            import zmq
        except ImportError:
            raise ImportError("sagitta.live needs pyzmq: apt install python3-zmq, or pip install "
                              "pyzmq") from None
        self._zmq, self._path, self._timeout = zmq, path, timeout
        self._keys = keys and (_key(keys, "server.pub"), _key(keys, "client.secret"))
        if keys and not zmq.has("curve"):
            raise Error("this pyzmq has no CURVE, by which keys are checked: pip install pyzmq")
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._asked, self._outbox, self._closed = {}, queue.SimpleQueue(), False
        self._lost = False  # has the connection ended since the server's greeting?
        self._refusal = ENDED
        self._wake, self._woken = os.pipe()[::-1]
        os.set_blocking(self._woken, False)
        self._context = zmq.Context()
        self._thread = threading.Thread(target=self._run, name="sagitta.live", daemon=True)
        self._thread.start()
        try:
            self.limits = json.loads(self._ask(HELLO).result(timeout))
        except concurrent.futures.TimeoutError:
            self.close()
            raise Error(f"no server answers at '{path}' within {timeout} s: start `sagitta serve`, "
                        "or name its --listen") from None
        except BaseException:
            self.close()
            raise
        self.columns, self.atoms = self.limits["columns"], self.limits["atoms"]
        self.top_s, self.frame = self.limits["top_s"], self.limits["frame"]
        self.dictionary_hash = self.limits["dictionary_hash"]
        self._rooms = [_Room(self.limits[most])
                       for most in ("credit", "queue_bytes", "unread_bytes")]

    # The following methods run in the thread that owns the socket.

    def _run(self):
        zmq = self._zmq
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.RCVHWM, 0)
        if self._keys:
            socket.curve_serverkey, socket.curve_secretkey = self._keys
            socket.curve_publickey = zmq.curve_public(self._keys[1])
        endpoint = _endpoint(self._path)
        if endpoint[:3] == "tcp":
            socket.setsockopt(zmq.IPV6, "[" in endpoint)
            socket.setsockopt(zmq.HEARTBEAT_IVL, 10000)  # notices when the other machine is gone
        ends = socket.get_monitor_socket(
            zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_AUTH |
            zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        socket.connect(endpoint)
        poller = zmq.Poller()
        poller.register(ends, zmq.POLLIN)
        poller.register(socket, zmq.POLLIN)
        poller.register(self._woken, zmq.POLLIN)
        while not self._closed:
            poller.poll()
            try:
                os.read(self._woken, 4096)
            except BlockingIOError:
                pass
            try:
                while not self._outbox.empty():
                    socket.send(self._outbox.get(), zmq.DONTWAIT, copy=False)
            except zmq.Again:  # a refused client has no connection to send to
                if self._refusal == ENDED:  # the reason will arrive soon
                    self._end(ends, 1000)
                self._fail(self._refusal)
            while socket.poll(0):
                self._take(memoryview(socket.recv()))
                self._refusal = ENDED  # there was a handshake, so it was not refused
            self._end(ends)
        socket.disable_monitor()
        ends.close()
        socket.close()

    def _end(self, ends, milliseconds=0):
        """Handle connections that ended, waiting up to this long for the first one."""
        while ends.poll(milliseconds):
            event, = struct.unpack("=H", ends.recv_multipart()[0][:2])
            text = ENDED
            if event != self._zmq.EVENT_DISCONNECTED and self._path.startswith("tcp:"):
                text = self._refusal = self._why(event)
            self._fail(text)
            milliseconds = 0

    def _why(self, event):
        """The reason why a connection was refused, as a message."""
        if event == self._zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            return (f"the server at '{self._path}' does not know the key: its clients/ needs the "
                    "client.pub of this client.secret")
        return f"no handshake with '{self._path}': " + (
            "it has no keys, or server.pub is another's" if self._keys else
            "if it has keys, connect(..., keys=DIR)")

    def _fail(self, text):
        """End all open requests with this error."""
        with self._lock:
            left, self._asked, self._lost = self._asked, {}, True
        for future, _ in left.values():
            future.set_exception(Error(text))

    def _take(self, message):
        if len(message) < HEADER.size:
            return
        h = HEADER.unpack(message[:64])
        if h[2] == CANCEL + REPLY:  # only the request itself gets a result
            return
        with self._lock:
            found = self._asked.pop(h[3], None)
        if found is None:
            return
        future, shape = found
        try:
            future.set_result(self._read(h, message[64:], shape))
        except Exception as error:
            future.set_exception(error)

    def _read(self, h, content, shape):
        kind, flags = h[2], h[8]
        if kind == ERROR:
            raise Refused(REASONS.get(flags, str(flags)), bytes(content).decode())
        if kind not in (ENCODE + REPLY, MIXER + REPLY):
            return bytes(content)
        n, w, d = h[4], h[5], self.frame
        at, parts = 0, []
        for dtype, size in (("<i4", (n,)), ("<i4", (n, w)),
                            ("<f4", (n, w) if d == 1 else (n, w, d)), ("<f4", (n, w))):
            if len(parts) == 3 and not flags & SCORES:
                parts.append(None)
                break
            count = int(np.prod(size))
            parts.append(np.frombuffer(content, dtype, count, at).reshape(size))
            at += 4 * count
        if shape is not None and len(shape) == 1:
            parts = [None if a is None else a[0] for a in parts]
        return Codes(*parts, seconds=h[10] / 1e9, step=h[11])

    # The following methods may be called from any thread.

    def _ask(self, kind, content=b"", shape=None, **fields):
        future = concurrent.futures.Future()
        # makes Future.cancel() fail, since only Server.cancel() can cancel
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._closed:
                raise Error("the connection is closed")
            own = next(self._numbers)
            self._asked[own] = future, shape
        future.number, future.is_cancelled = own, False
        self._send(kind, own, content, **fields)
        return future

    def _send(self, kind, number, content=b"", rows=0, columns=0, type=0, bulk=0, flags=0, top=0,
              deadline=0, stream=0, position=0):
        header = HEADER.pack(MAGIC, VERSION, kind, number, rows, columns, type, bulk, flags, top,
                             deadline, stream, len(content), position)
        with self._lock:  # close() closes the pipe
            if not self._closed:
                self._outbox.put(header + content)
                os.write(self._wake, b"x")

    def _greet(self):
        """Greet the server again after the connection has ended, and check that it serves the same
        dictionary as before, since another server may have taken its place."""
        self._lost = False
        try:
            limits = json.loads(self._ask(HELLO).result(self._timeout))
        except concurrent.futures.TimeoutError:
            self._lost = True
            raise Error(f"no server answers at '{self._path}' any more, within {self._timeout} s"
                        ) from None
        for name in ("dictionary_hash", "columns", "frame"):
            if limits[name] != self.limits[name]:
                self._lost = True
                raise Error(f"another server listens at '{self._path}', with another {name}: "
                            "connect() again")

    def submit(self, rows: typing.Any, top: int = 0, scores: bool = False, watched: bool = False,
               bulk: bool = False, deadline: typing.Optional[float] = None) -> typing.Any:
        """As encode(), but returns a Future of the Codes.  It waits while this client has as many
        open requests, or as many bytes in them, as the server allows."""
        values, kind = _values(rows)
        shape = values.shape
        if len(shape) not in (1, 2) or shape[-1] != self.columns:
            raise ValueError(f"rows have the shape {shape}, the dictionary has {self.columns} "
                             "columns")
        return self._submit(ENCODE, values.tobytes(), shape, values.size // self.columns, 0, top,
                            scores, watched, bulk, deadline, type=kind)

    def _submit(self, message, content, shape, n, made, top, scores, watched, bulk, deadline,
                **fields):
        """Send a request.  made: the number of columns that the server makes itself, in addition to
        the columns that are sent."""
        if self._lost:
            self._greet()
        most = "bulk_rows" if bulk else "live_rows"
        if n > self.limits[most]:
            raise ValueError(f"{n} rows are more than the {self.limits[most]} of a "
                             f"{'bulk' if bulk else 'live'} request: send them "
                             f"{'in pieces' if bulk else 'with bulk=True, or in pieces'}")
        request, entries = object(), n * (min(top, self.top_s) or self.top_s)
        sizes = (1, 4 * n * (fields.get("columns", self.columns) + made),
                 HEADER.size + 4 * (n + entries * (1 + self.frame + bool(scores))))
        try:
            for room, size in zip(self._rooms, sizes):
                room.take(request, size)
            fields.setdefault("columns", self.columns)
            future = self._ask(message, content, shape, rows=n, bulk=int(bulk), top=top,
                               flags=SCORES * bool(scores) + WATCHED * bool(watched),
                               deadline=int(1e9 * deadline) if deadline else 0, **fields)
            future.add_done_callback(lambda _: self._free(request))
        except BaseException:  # for example Ctrl-C while it waits
            self._free(request)
            raise
        return future

    def _free(self, request):
        for room in self._rooms:
            room.free(request)

    def encode(self, rows: typing.Any, top: int = 0, scores: bool = False, watched: bool = False,
               bulk: bool = False, deadline: typing.Optional[float] = None) -> "Codes":
        """The codes of rows (n, columns), or of one row (columns,).

        top: the number of entries of each support to return; 0: all.  scores: return these too.
        watched: only the atoms given to watch().  bulk: the request may be divided among several
        steps of the server, so that live requests do not wait for it.  deadline: if the server has
        not begun the request after this many seconds, it drops it (Refused, reason late)."""
        return self.submit(rows, top, scores, watched, bulk, deadline).result()

    def stream(self) -> "Stream":
        """Begin a sequence of tokens, for `sagitta serve --mixer`."""
        if "mixer_heads" not in self.limits:
            raise Error(f"the server at '{self._path}' has no --mixer")
        return Stream(self, next(self._numbers))

    def watch(self, atoms: typing.Any) -> None:
        """Choose the atoms that requests with watched=True return, if a support has them."""
        atoms = np.unique(np.asarray(atoms, "<i4"))
        self._ask(WATCH, atoms.tobytes(), rows=len(atoms)).result(self._timeout)

    def status(self) -> typing.Dict[str, typing.Any]:
        """The status of the server, as a dict (doc/live.md)."""
        return json.loads(self._ask(STATUS).result(self._timeout))

    def cancel(self, future: typing.Any) -> None:
        """Cancel a request of submit(): it ends with Refused, reason cancelled, unless its results
        are already there."""
        # each CANCEL message gets a reply, so only one is sent for a request
        if not future.done() and not future.is_cancelled:
            future.is_cancelled = True
            self._send(CANCEL, future.number)

    def close(self) -> None:
        with self._lock:
            left, self._asked, closed, self._closed = self._asked, {}, self._closed, True
        for future, _ in left.values():
            future.set_exception(Error("the connection was closed"))
        if not closed:
            os.write(self._wake, b"x")
            self._thread.join()
            self._context.term()
            os.close(self._wake)
            os.close(self._woken)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: typing.Any) -> None:
        self.close()


class Stream:
    """A sequence of tokens whose rows the server computes by a gated delta net.  The codes are
    those of `sagitta harvest` followed by `sagitta encode`.  After Refused the sequence cannot be
    continued: begin another one."""

    def __init__(self, server, number):
        self._server, self._number = server, number
        self._position, self._lock = 0, threading.Lock()

    def submit(self, x: typing.Any, g: typing.Any, beta: typing.Any, top: int = 0,
               scores: bool = False, watched: bool = False, bulk: bool = False,
               deadline: typing.Optional[float] = None) -> typing.Any:
        """Send the next tokens: x (n, channels), logarithms of decays g (n, heads) or (n, heads,
        key columns), and beta (n, heads), as in a capture.  Returns a Future of their Codes."""
        limits, parts = self._server.limits, []
        for name, values, width in (("x", x, limits["mixer_channels"]),
                                    ("g", g, limits["mixer_decays"]),
                                    ("beta", beta, limits["mixer_heads"])):
            values = np.asarray(values.detach().cpu().float() if hasattr(values, "detach")
                                else values, "<f4")
            n = len(values) if values.ndim else 0
            if n == 0 or values.size != n * width or parts and len(parts[0]) != n:
                raise ValueError(f"{name} has the shape {values.shape}: {width} values a token")
            parts.append(np.ascontiguousarray(values).reshape(n, width))
        with self._lock:
            future = self._server._submit(
                MIXER, b"".join(part.tobytes() for part in parts), (n, 0), n,
                self._server.columns, top, scores, watched, bulk, deadline, type=1,
                columns=sum(part.shape[1] for part in parts), stream=self._number,
                position=self._position)
            self._position += n
        return future

    def encode(self, x: typing.Any, g: typing.Any, beta: typing.Any, top: int = 0,
               scores: bool = False, watched: bool = False, bulk: bool = False,
               deadline: typing.Optional[float] = None) -> "Codes":
        """The codes of the next tokens; arguments as for submit() and Server.encode()."""
        return self.submit(x, g, beta, top, scores, watched, bulk, deadline).result()

    def close(self) -> None:
        """End the sequence; the server may then delete its state."""
        server = self._server
        columns = sum(server.limits[f"mixer_{name}"] for name in ("channels", "decays", "heads"))
        server._ask(MIXER, type=1, columns=columns, stream=self._number).result(server._timeout)


class _Room:
    """A limit on the sum of one figure over the open requests: their number, the bytes of their
    rows, or the bytes of their replies.  A single request is always allowed.  free() may be called
    for a request that took nothing, so that an interrupt at any moment can be cleaned up."""

    def __init__(self, most):
        self._most, self._taken, self._change = most, {}, threading.Condition()

    def take(self, request, n):
        with self._change:
            self._change.wait_for(lambda: not self._taken or
                                  sum(self._taken.values()) + n <= self._most)
            self._taken[request] = n

    def free(self, request):
        with self._change:
            self._taken.pop(request, None)
            self._change.notify_all()


def connect(path: typing.Optional[str] = None, timeout: float = 10,
            keys: typing.Optional[str] = None) -> Server:
    """Connect to the server at a path, tcp:PORT or tcp:HOST:PORT; by default where `sagitta serve`
    listens.  Waits up to `timeout` seconds for the server to start.

    keys: a folder with server.pub and client.secret of `sagitta serve --make-keys`."""
    return Server(path or address(), timeout, keys)
