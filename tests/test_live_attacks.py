# SPDX-License-Identifier: BSD-3-Clause
"""Claim: no client can stop `sagitta serve`, take its memory or keep it from other clients: not by
messages that are too long, by never reading, by a flood of requests, by opening connections without
end, or by bytes of no protocol.  Another user can reach nothing."""
import os
import random
import shutil
import socket
import tempfile
import threading
import time

import numpy as np

from live_server import NOBODY, Raw, Served, connects, message_of, need_zmq
from tap import FULL, claim, done_testing, ok, sagitta, skip

live = need_zmq()
P, K, S, ROWS = 20, 50, 5, 20000
REPLY = 64 + 4 * ROWS * (1 + 3 * S)  # bytes, with scores
FILES = 200  # most open files of a server that has few
# MiB by which a server may grow.  A request with its reply has 1.5.  Sanitizers keep freed memory.
MOST_GROWTH = 400 if os.environ.get("SANITIZED") else 32


def message(**fields):
    return message_of(P, **fields)


def is_served(served, seconds=20):
    """Does another client get codes?"""
    with live.connect(served.path) as server:
        return server.submit(np.ones((2, P), "f4")).result(seconds).atoms.shape == (2, S)


@claim("a message that is too long is refused with the reason; the client's other messages are "
       "answered")
def check_long(served):
    raw = Raw(served.path)
    for rows in ROWS + 1, 2 * ROWS, 700000:  # the last message has 56 MB
        reply = raw.ask(message(rows=rows, bulk=1))
        ok(reply and reply[:3] == (255, 77, 1) and reply[3] == f"{rows} rows are more than the "
           f"{ROWS} that a bulk request may have: send them in pieces", f"{rows} rows: {reply}")
        reply = raw.ask(message())
        ok(reply and reply[:3] == (130, 77, 0), f"a good one after {rows} rows: {reply}")
    raw.socket.send(message(rows=1000000, bulk=1))  # more than the server receives at all
    time.sleep(0.1)
    ok(is_served(served), "others are served")
    raw.close()


def answered(server):
    status = server.status()
    return status["bulk_requests"] + status["refused"]["busy"], status


@claim("a client that does not read its replies is refused as busy, and others are not")
def check_deaf(served):
    deaf, n, most = Raw(served.path, waiting=1), 150, 4 << 20
    with live.connect(served.path) as server:
        before, (done, _) = served.memory(), answered(server)
        for i in range(n):
            deaf.socket.send(message(rows=ROWS, bulk=1, flags=1, number=i))
            end = time.time() + 60
            while answered(server)[0] <= done + i and time.time() < end:
                time.sleep(0.001)
        grown, status = served.memory() - before, server.status()
        ok(most - 2 * REPLY < status["unread"]["bytes"] <= most, f"up to the limit: {status}")
        ok(status["refused"]["busy"] > n / 2, f"the client is refused then: {status}")
        ok(grown < MOST_GROWTH, f"the server grew by {grown} MiB")
        ok(is_served(served), "others are served")
        kinds = {}
        while sum(kinds.values()) < n - status["unread"]["lost"] and deaf.socket.poll(5000):
            kind = live.HEADER.unpack(deaf.socket.recv()[:64])[2]
            kinds[kind] = kinds.get(kind, 0) + 1
        ok(kinds[130] == status["bulk_requests"] - done, f"what was computed is there: {kinds}")
        reply = deaf.ask(message(rows=ROWS, bulk=1, flags=1))
        ok(reply and reply[0] == 130, "the client is served again")
        ok(server.status()["unread"]["bytes"] < REPLY, f"{server.status()['unread']}")
    deaf.close()


@claim("the Python client waits if a reply would exceed the limit")
def check_waits(served):
    rows = np.ones((ROWS, P), "f4")
    with live.connect(served.path) as server:
        futures = [server.submit(rows, bulk=True, scores=True) for _ in range(12)]
        ok(all(f.result(60).atoms.shape == (ROWS, S) for f in futures), "12 of 1.3 MB")


@claim("other clients are served while one floods the server")
def check_flood(served):
    ends, sent = threading.Event(), []

    def flood():
        raw, one = Raw(served.path), message(rows=32)
        while not ends.is_set():
            for _ in range(200):  # more requests than a client's credit: most are refused
                raw.socket.send(one)
            sent.append(200)
            while raw.socket.poll(0):
                raw.socket.recv()
        raw.close()
    before, thread = served.memory(), threading.Thread(target=flood)
    thread.start()
    with live.connect(served.path) as server:
        begun, replies = time.time(), 0
        while time.time() < begun + (20 if FULL else 2):
            replies += server.submit(np.ones((2, P), "f4")).result(20).count.sum() == 2 * S
        status = server.status()
    ends.set()
    thread.join()
    ok(replies > 10, f"{replies} replies beside {sum(sent)} messages")
    ok(status["refused"]["busy"] > 0, f"what is too much is refused: {status}")
    ok(served.memory() - before < MOST_GROWTH, f"from {before} to {served.memory()} MiB")


def raw_socket(path, seconds=20):
    """A connection; None if too many others wait to be accepted during all these seconds."""
    s, end = socket.socket(socket.AF_UNIX), time.time() + seconds
    s.settimeout(5)
    while time.time() < end:
        try:
            s.connect(path)
            return s
        except BlockingIOError:
            time.sleep(0.002)
    return s.close()


@claim("random bytes end at most the connection that sent them")
def check_bytes(served):
    rng, greeting = random.Random(3), b"\xff" + b"\0" * 8 + b"\x7f\x03\0NULL" + b"\0" * 48
    before = served.memory()
    for i in range(2000 if FULL else 150):
        with raw_socket(served.path) as s:
            try:
                s.sendall((greeting if i % 2 else b"") + rng.randbytes(rng.randrange(3000)))
            except OSError:
                pass  # it was ended already
    ok(is_served(served), "a client is served")
    ok(served.memory() - before < MOST_GROWTH, f"from {before} to {served.memory()} MiB")


@claim("if connections are opened without end, the earlier ones are served, and the program keeps "
       "free descriptors")
def check_connections(folder, words):
    if shutil.which("prlimit") is None:
        return skip("prlimit is not installed")
    with Served(folder, *words, before=["prlimit", f"--nofile={FILES}:{FILES}"]) as served:
        with live.connect(served.path) as server:
            own = [raw_socket(served.path)]
            while own[-1] and len(own) < 2 * FILES:
                own.append(raw_socket(served.path, 2))
            ok(len(own) > FILES, f"{len(own)} connections beside a limit of {FILES}")
            ok(served.job.poll() is None, "the server is running")
            ok(server.submit(np.ones((2, P), "f4")).result(20).atoms.shape == (2, S),
               "the server replies to existing clients")
            for s in filter(None, own):
                s.close()
        ok(is_served(served), "when the connections are gone, a new client is served")
        code, _, text = served.end()
        ok(code == 0, f"the server ends with {code}: {text[-300:]}")


@claim("another user cannot connect")
def check_user(served):
    if os.geteuid():
        return skip("this test needs root, to become another user")
    ok(connects(served.path, 0)[0], "this user can connect")
    can, text = connects(served.path, NOBODY)
    ok(not can and "PermissionError" in text, f"nobody can not: {text[-200:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = sagitta("synth", "--n-rows", 10, "--columns", P, "--atoms", K, "--output",
                       f"{folder}/data")
        ok(done.returncode == 0, "a dictionary")
        os.chmod(folder, 0o777)
        words = ["--dictionary", f"{folder}/data/dictionary.h5", "--top-s", S, "--live-rows", 32,
                 "--bulk-rows", ROWS, "--unread-mib", 4, "--policy", "off"]
        with Served(folder, *words) as served:
            check_user(served)
            check_long(served)
            check_deaf(served)
            check_waits(served)
            check_flood(served)
            check_bytes(served)
            code, _, text = served.end()
            ok(code == 0, f"the server ends with {code}: {text[-300:]}")
        check_connections(folder, words)
    done_testing()


main()
