# SPDX-License-Identifier: BSD-3-Clause
"""A server that tests start, ask and end."""
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

from jobs import environment
from tap import SAGITTA, SOURCE, peer_missing_all, sagitta, skip_all

sys.path.insert(0, os.path.join(SOURCE, "scripts", "python"))


def need_zmq():
    """The package with its client; without pyzmq, or a program without ZeroMQ, all is skipped."""
    try:
        import zmq  # noqa: F401, the client wants it
    except ImportError:
        peer_missing_all("no pyzmq here")
    done = sagitta("serve", "--dictionary", "none.h5")
    if done.returncode == 69 and "--with-zmq" in done.stderr:
        skip_all("the program has no ZeroMQ")
    return importlib.import_module("sagitta.live")


class Served:
    def __init__(self, folder, *words, threads=1):
        self.path, self.ready = f"{folder}/live", f"{folder}/ready.json"
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.ready)
        self.job = subprocess.Popen(
            [SAGITTA, "serve", "--listen", self.path, "--ready", self.ready, "--threads",
             str(threads), *map(str, words)], text=True, stderr=subprocess.PIPE,
            stdout=subprocess.PIPE, env=environment())
        end = time.time() + 60
        while not os.path.exists(self.ready):
            if self.job.poll() is not None or time.time() > end:
                self.job.kill()
                raise RuntimeError(self.job.communicate()[1])
            time.sleep(0.01)
        with open(self.ready) as f:
            self.told = json.load(f)

    def end(self, number=signal.SIGTERM, seconds=60):
        """Exit code, what it printed, and its log."""
        if number:
            self.job.send_signal(number)
        out, text = self.job.communicate(timeout=seconds)
        return self.job.returncode, out, text

    def memory(self):
        """MiB that are resident."""
        with open(f"/proc/{self.job.pid}/status") as f:
            return int(next(line for line in f if line.startswith("VmRSS")).split()[1]) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.job.poll() is None:
            self.job.kill()
            self.job.communicate()


def raw_connect(path):
    """Can this process open the socket at a path?"""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
