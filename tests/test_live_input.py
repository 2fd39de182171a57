# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a message to `sagitta serve` that is wrong fails by itself, with the reason; one too many,
too late or given up is refused as such; clients that send random bytes, vanish, or never read
neither stop others nor make memory grow."""
import os
import tempfile
import time

import numpy as np

from live_server import Served, need_zmq
from tap import FULL, claim, done_testing, ok, sagitta

live = need_zmq()
import zmq  # noqa: E402, is there

P, K, S = 20, 50, 5
# MiB: a client's replies that wait are limited to some 3 here; sanitizers keep what is freed.
MOST_GROWTH = 400 if os.environ.get("SANITIZED") else 48


class Raw:
    """A client that sends what it likes."""

    def __init__(self, path, waiting=0):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.RCVHWM, waiting)
        self.socket.connect("ipc://" + path)

    def ask(self, *frames, seconds=20):
        """(kind, number, flags, text) of the reply; None: there was none."""
        self.socket.send_multipart(frames)
        if not self.socket.poll(1000 * seconds):
            return None
        data = self.socket.recv()
        h = live.HEADER.unpack(data[:64])
        return h[2], h[3], h[8], data[64:].decode(errors="replace")

    def close(self):
        self.socket.close()
        self.context.term()


def message(kind=2, rows=1, columns=P, magic=live.MAGIC, version=1, number=77, type=1, bulk=0,
            flags=0, top=0, deadline=0, values=None, bytes=None):
    content = np.ones((rows, columns), "f4").tobytes() if values is None else values
    return live.HEADER.pack(magic, version, kind, number, rows, columns, type, bulk, flags, top,
                            deadline, 0, len(content) if bytes is None else bytes, 0) + content


def rows_with(value, row=2, column=3):
    x = np.ones((4, P), "f4")
    x[row, column] = value
    return x.tobytes()


BAD = [
    ([b""], "a message of 0 bytes: the header alone has 64"),
    ([message()[:63]], "a message of 63 bytes"),
    ([message(), b"more"], "a message of 2 frames, not of one"),
    ([message(magic=5)], "the first bytes are not SGLV"),
    ([message(version=2)], "version 2 of the protocol, the server has 1"),
    ([message(kind=0, rows=0)], "kind 0: 1 is hello"),
    ([message(kind=6)], "kind 6: 1 is hello"),
    ([message(kind=130)], "kind 130: 1 is hello"),
    ([message(columns=P + 1)], f"rows have {P + 1} columns, the dictionary has {P}"),
    ([message(type=4)], "the type of rows is 4: 1 is f32"),
    ([message(type=2)], f"1 rows of {P} columns take {2 * P} bytes, and {4 * P} follow"),
    ([message(bulk=2)], "the class is 2: 0 is live, 1 bulk"),
    ([message(flags=4)], "the flags are 4: 1 asks for scores"),
    ([message(bytes=2**63)], f"the header says that {2**63} bytes follow, and {4 * P} do"),
    ([message(rows=2**32 - 1, values=b"")], "4294967295 rows are more than the 32 that a "
     "live request may have: send them as a bulk request"),
    ([message(rows=33)], "33 rows are more than the 32"),
    ([message(rows=2**32 - 1, bulk=1, values=b"")], "rows are more than the 1000 that a bulk"),
    ([message(rows=4, values=rows_with(np.nan))], "row 2, column 3 is not finite"),
    ([message(rows=4, values=rows_with(-np.inf))], "row 2, column 3 is not finite"),
    ([message(rows=4, values=rows_with(2e37))], "row 2 has the norm 2e+37, above 1e+37"),
    ([message(flags=2)], "send kind 5 first"),
    ([message(kind=5, rows=2, values=np.array([3, K], "i4").tobytes())],
     f"atom {K} is watched, there are 0 to {K - 1}"),
    ([message(kind=5, rows=2, values=np.array([3, 3], "i4").tobytes())],
     "watched atoms are ascending, and 3 comes behind 3"),
    ([message(kind=5, rows=5000, values=b"\0" * 20000)], "5000 atoms are watched, at most 4096"),
    ([message(kind=5, rows=2, values=b"\0" * 4)], "2 atoms take 8 bytes, and 4 follow"),
]


def is_good(raw):
    reply = raw.ask(message(values=rows_with(9e36, 0, 0)[:4 * P]))
    return reply is not None and reply[:3] == (130, 77, 0)


@claim("a bad message gets its reason, and the next good one its codes")
def check_bad(served):
    raw = Raw(served.path)
    for frames, text in BAD:
        reply = raw.ask(*frames)
        ok(reply and reply[0] == 255 and reply[2] == 1 and text in reply[3], f"{text}: {reply}")
        ok(len(frames[0]) < 64 or len(frames) > 1 or reply[1] == 77, f"{text}: its number")
        ok(is_good(raw), f"a good request after: {text}")
    raw.close()


@claim("of random headers none stops the server")
def check_fuzz(served):
    rng = np.random.default_rng(5)
    raw, before, n = Raw(served.path), served.memory(), 1000000 if FULL else 20000
    replies = 0
    for _ in range(n // 10):  # no more than wait for a client
        for i in range(10):
            data = bytearray(rng.bytes(64 + int(rng.integers(0, 40))))
            if i % 2:  # most of the header is right
                data[:64] = message(values=b"")[:64]
                for _ in range(int(rng.integers(1, 4))):
                    data[int(rng.integers(0, 64))] = int(rng.integers(0, 256))
            raw.socket.send(bytes(data))
        for _ in range(10):
            if not raw.socket.poll(20000):
                break
            raw.socket.recv()
            replies += 1
    ok(replies == n, f"{replies} replies to {n} messages")
    ok(is_good(raw), "a good request after them")
    ok(served.memory() - before < MOST_GROWTH, f"from {before} to {served.memory()} MiB")
    raw.close()


def settled(server, bulk):
    """Its status when it has answered so many bulk requests."""
    end = time.time() + 60
    while True:
        status = server.status()
        if status["bulk_requests"] >= bulk or time.time() > end:
            return status
        time.sleep(0.002)


@claim("a client that vanishes leaves nothing, one that does not read loses its own replies alone")
def check_gone(served):
    with live.connect(served.path) as server:
        done = server.status()["bulk_requests"]
        for _ in range(5):
            raw = Raw(served.path)
            for _ in range(8):
                raw.socket.send(message(rows=1000, bulk=1))
            raw.socket.poll(20000)
            raw.close()
            done += 1  # more, as far as they came before it was gone
            settled(server, done)
        end = time.time() + 60
        while server.status()["waiting"]["bytes"] and time.time() < end:
            time.sleep(0.002)
        status = server.status()
        ok(status["waiting"]["bytes"] == 0, f"what the dead asked for is done: {status}")
        done = status["bulk_requests"]
        before, deaf = served.memory(), Raw(served.path, waiting=1)
        for i in range(150):  # 75 MiB of replies
            for _ in range(8):
                deaf.socket.send(message(rows=1000, bulk=1, flags=1, values=b"\0" * 4000 * P))
            settled(server, done + 8 * (i + 1))
        grown = served.memory() - before
        ok(server.status()["bulk_requests"] == done + 1200, f"all are computed: {server.status()}")
        ok(grown < MOST_GROWTH, f"it grew by {grown} MiB")
        ok(server.encode(np.ones((2, P), "f4")).atoms.shape == (2, S), "others are served")
        deaf.close()


@claim("more than a client's credit is busy at once; the Python client waits instead")
def check_credit(served):
    raw = Raw(served.path)
    for _ in range(40):
        raw.socket.send(message(rows=1000, bulk=1))
    kinds = []
    while len(kinds) < 40 and raw.socket.poll(20000):
        kinds.append(live.HEADER.unpack(raw.socket.recv()[:64]))
    busy = [h for h in kinds if h[2] == 255]
    ok(len(kinds) == 40 and busy and all(h[8] == 2 for h in busy), f"{len(busy)} of 40 are busy")
    raw.close()
    with live.connect(served.path) as server:
        futures = [server.submit(np.ones((1000, P), "f4"), bulk=True) for _ in range(40)]
        ok(all(len(f.result(60).atoms) == 1000 for f in futures), "all 40 have results")


@claim("late requests are not computed, and cancelled ones are given up")
def check_late(served):
    with live.connect(served.path) as server:
        bulk = [server.submit(np.ones((1000, P), "f4"), bulk=True) for _ in range(6)]
        last = server.submit(np.ones((1000, P), "f4"), bulk=True)
        server.cancel(last)
        late = server.submit(np.ones((1000, P), "f4"), bulk=True, deadline=1e-7)
        for future, reason in (last, "cancelled"), (late, "late"):
            try:
                future.result(60)
                ok(False, f"it is not {reason}")
            except live.Refused as error:
                ok(error.reason == reason, f"{reason}: {error}")
        ok(all(len(f.result(60).atoms) == 1000 for f in bulk), "the others have results")
        refused = server.status()["refused"]
        ok(refused["late"] == 1 and refused["cancelled"] == 1, f"they are counted: {refused}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = sagitta("synth", "--n-rows", 10, "--columns", P, "--atoms", K, "--output",
                       f"{folder}/data")
        ok(done.returncode == 0, "a dictionary")
        words = ["--dictionary", f"{folder}/data/dictionary.h5", "--top-s", S, "--live-rows", 32,
                 "--bulk-rows", 1000, "--credit", 8, "--step-rows", 64, "--policy", "off"]
        with Served(folder, *words) as served:
            check_bad(served)
            check_fuzz(served)
            check_gone(served)
            check_credit(served)
            check_late(served)
            code, _, text = served.end()
            ok(code == 0, f"it ends with {code}: {text[-300:]}")
    done_testing()


main()
