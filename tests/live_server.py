# SPDX-License-Identifier: BSD-3-Clause
"""A server for tests: they start it, send it requests, and end it."""
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np

from jobs import environment
from tap import SAGITTA, SOURCE, peer_missing_all, sagitta, skip_all

sys.path.insert(0, os.path.join(SOURCE, "scripts", "python"))


def need_zmq():
    """Import the module with the client.  If pyzmq is missing, or the program has no ZeroMQ, all
    tests are skipped, or fail with REQUIRE_PEERS."""
    try:
        import zmq  # noqa: F401, the client wants it
    except ImportError:
        peer_missing_all("pyzmq is not installed")
    done = sagitta("serve", "--dictionary", "none.h5")
    if done.returncode == 69 and "--with-zmq" in done.stderr:
        skip_all("the program was built without ZeroMQ")
    return importlib.import_module("sagitta.live")


NOBODY = 65534


class Served:
    """A running server.  before: words to put before `sagitta serve`, such as mpirun's.  listen: an
    address instead of a path."""

    def __init__(self, folder, *words, threads=1, before=(), listen=None):
        self.path, self.ready = f"{folder}/live", f"{folder}/ready.json"
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.ready)
        self.job = subprocess.Popen(
            [*before, SAGITTA, "serve", "--listen", listen or self.path, "--ready", self.ready,
             "--threads", str(threads), *map(str, words)], text=True, stderr=subprocess.PIPE,
            stdout=subprocess.PIPE, env=environment())
        end = time.time() + 60
        while not os.path.exists(self.ready):
            if self.job.poll() is not None or time.time() > end:
                self.job.kill()
                raise RuntimeError(self.job.communicate()[1])
            time.sleep(0.01)
        with open(self.ready) as f:
            self.told = json.load(f)
        self.path = self.told["address"]

    def end(self, number=signal.SIGTERM, seconds=60):
        """End the server.  Returns the exit code, its output, and its log."""
        if number:
            self.job.send_signal(number)
        out, text = self.job.communicate(timeout=seconds)
        return self.job.returncode, out, text

    def memory(self, which="VmRSS"):
        """Resident memory in MiB; VmHWM: its peak."""
        with open(f"/proc/{self.job.pid}/status") as f:
            return int(next(line for line in f if line.startswith(which)).split()[1]) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.job.poll() is None:
            self.job.kill()
            self.job.communicate()


def clients_run(count, client, *words):
    """Run clients at the same time: client(*words, seed, told).  Returns what they appended to
    told."""
    told = []
    threads = [threading.Thread(target=client, args=(*words, seed, told)) for seed in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return told


def finished(server, seconds=120):
    """Wait until all files of the backlog are done or have failed, or until the seconds have
    passed.  Returns the status."""
    end = time.time() + seconds
    while True:
        status = server.status()
        files = status["files"]
        if files["done"] + files["failed"] == files["all"] > 0 or time.time() > end:
            return status
        time.sleep(0.01)


def other_replies(asked, case):
    """asked: requests as (future, rows).  Yields the number of rows of each reply that differs from
    encode's."""
    for future, at in asked:
        got = future.result(120)
        if not (np.array_equal(got.atoms, case.atoms[at]) and
                got.codes.tobytes() == case.codes[at].tobytes() and
                got.scores.tobytes() == case.score[at].tobytes()):
            yield len(at)


def raw_connect(path):
    """Connect to the socket at a path.  Raises if this process is not allowed to."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)


CONNECT = "import os, sys, live_server\nos.setuid(int(sys.argv[2]))\n" \
          "live_server.raw_connect(sys.argv[1])"


def connects(path, user):
    """Can a user connect to the socket?  If not, what is the error?"""
    done = subprocess.run([sys.executable, "-c", CONNECT, path, str(user)], text=True,
                          capture_output=True, cwd=os.path.dirname(os.path.abspath(__file__)))
    return done.returncode == 0, done.stderr


class Raw:
    """A client that sends any bytes."""

    def __init__(self, path, waiting=0):
        import zmq
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.RCVHWM, waiting)
        self.socket.connect("ipc://" + path)

    def ask(self, *frames, seconds=20):
        """Send frames.  Returns (kind, number, flags, text) of the reply, or None if there is
        none."""
        self.socket.send_multipart(frames)
        if not self.socket.poll(1000 * seconds):
            return None
        data = self.socket.recv()
        h = importlib.import_module("sagitta.live").HEADER.unpack(data[:64])
        return h[2], h[3], h[8], data[64:].decode(errors="replace")

    def close(self):
        self.socket.close()
        self.context.term()


def message_of(columns, kind=2, rows=1, said=None, magic=0x564c4753, version=1, number=77, type=1,
               bulk=0, flags=0, top=0, deadline=0, values=None, bytes=None):
    """A message with this header.  said: the number of columns in the header, if it differs from
    that of the values."""
    content = np.ones((rows, columns), "f4").tobytes() if values is None else values
    return importlib.import_module("sagitta.live").HEADER.pack(
        magic, version, kind, number, rows, said or columns, type, bulk, flags, top, deadline, 0,
        len(content) if bytes is None else bytes, 0) + content
