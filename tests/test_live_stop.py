# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a server that is asked to end answers the requests that it has begun, within
--drain-seconds, and refuses the others.  After a kill the next server takes its socket.  A socket
belongs to one server and one user.  Wrong options are named."""
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from jobs import environment
from live_server import NOBODY, Raw, Served, connects, message_of, need_zmq
from tap import SAGITTA, claim, done_testing, ok, raised, sagitta, skip

live = need_zmq()
P, LONG = 20, 150000


def begun(server):
    """Wait until rows of bulk requests are computed."""
    end = time.time() + 60
    while server.status()["bulk_rows"] == 0 and time.time() < end:
        time.sleep(0.002)


def arrived(server, n):
    """Wait until n requests have come: they wait, or are done."""
    end, come = time.time() + 60, 0
    while come < n and time.time() < end:
        s = server.status()
        come = sum(s[key] + s["waiting"][key] for key in ("live_requests", "bulk_requests"))
        time.sleep(0.002)


def reason_of(future):
    try:
        return len(future.result(600).atoms)
    except live.Refused as error:
        return error.reason


@claim("SIGTERM: requests that have begun are answered, the others are refused, and no new ones "
       "are accepted")
def check_drain(folder, words):
    with Served(folder, *words, "--json", "--drain-seconds", 600) as served, live.connect(
            served.path) as server:
        rows = np.ones((LONG, P), "f4")
        first, second = server.submit(rows, bulk=True), server.submit(rows, bulk=True)
        begun(server)
        served.job.send_signal(signal.SIGTERM)
        while not server.status()["closing"]:
            time.sleep(0.002)
        new = server.submit(rows[:1])
        ok(reason_of(new) == "closing", f"a new one: {reason_of(new)}")
        ok(reason_of(first) == LONG, f"the first: {reason_of(first)}")
        ok(reason_of(second) == "closing", f"the second: {reason_of(second)}")
        code, out, text = served.end(None)
        ok(code == 0 and "ending  by a signal" in text, f"exit {code} {text[-300:]}")
        ok('"bulk_requests": 1,' in out and '"closing": 2,' in out, out)


@claim("a server that is asked to end or killed gives each request at most one reply; if it may "
       "finish, exactly one")
def check_once(folder, words):
    for number in signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL:
        with Served(folder, *words) as served:
            raw, n = Raw(served.path), 40
            for i in range(n):
                raw.socket.send(message_of(P, number=i, rows=(3000, 5)[i % 2], bulk=1 - i % 2))
            with live.connect(served.path) as server:
                arrived(server, n)
            served.job.send_signal(number)
            given = []
            while raw.socket.poll(120000 if len(given) < n and number != signal.SIGKILL else 500):
                header = live.HEADER.unpack(raw.socket.recv()[:64])
                given.append(header[3])
                ok(header[2] == 130 or header[8] == 4, f"codes, or closing: {header}")
            code, _, text = served.end(None)
            ok(code == (-9 if number == signal.SIGKILL else 0), f"{code} {text[-300:]}")
            ok(len(given) == len(set(given)), f"none has two: {sorted(given)}")
            ok(number == signal.SIGKILL or sorted(given) == list(range(n)), f"all: {sorted(given)}")
            raw.close()


@claim("requests that were on their way when a server closed are refused, not lost")
def check_late(folder, words):
    whole, n, tries = 0, 40, 5
    for _ in range(tries):
        with Served(folder, *words) as served:
            raw = Raw(served.path)
            ok(raw.ask(message_of(P, number=n))[1] == n, "a first request is answered")
            served.job.send_signal(signal.SIGSTOP)
            for i in range(n):
                raw.socket.send(message_of(P, number=i, rows=3000))
            time.sleep(0.3)  # all waits of the stopped server end at once when it goes on
            served.job.send_signal(signal.SIGTERM)
            served.job.send_signal(signal.SIGCONT)
            given = []
            while raw.socket.poll(3000 if len(given) < n else 500):
                given.append(live.HEADER.unpack(raw.socket.recv()[:64])[3])
            code, _, text = served.end(None)
            ok(code == 0 and len(given) == len(set(given)), f"{code} {sorted(given)} {text[-300:]}")
            whole += len(given) == n
            raw.close()
    ok(whole >= tries - 1, f"all {n} are answered in {whole} of {tries} tries")


@claim("after --drain-seconds requests that have begun are refused, too")
def check_drained(folder, words):
    with Served(folder, *words, "--drain-seconds", 0) as served:
        with live.connect(served.path) as server:
            first = server.submit(np.ones((LONG, P), "f4"), bulk=True)
            begun(server)
            code, _, text = served.end(signal.SIGUSR1)
            ok(reason_of(first) == "closing", f"the first: {reason_of(first)}")
            ok(code == 0, f"exit {code} {text[-300:]}")


@claim("a socket has one server; after a kill the next server takes it, and clients find it")
def check_kill(folder, words):
    with Served(folder, *words) as served, live.connect(served.path) as server:
        done = sagitta("serve", *words, "--listen", served.path)
        ok(done.returncode == 73 and f"another server listens at '{served.path}'" in done.stderr,
           f"a second one: {done.returncode} {done.stderr[-300:]}")
        ok(server.encode(np.ones((2, P), "f4")).count.shape == (2,),
           "the first server is not disturbed")
        served.end(signal.SIGKILL)
        with Served(folder, *words) as next_one:
            again = server.encode(np.ones((3, P), "f4"))
            ok(again.count.shape == (3,), "the same client is served by the next")
            left = server.submit(np.ones((LONG, P), "f4"), bulk=True)
            begun(server)
            ok(next_one.end(signal.SIGKILL)[0] == -signal.SIGKILL, "killed beside a request")
            try:
                left.result(60)
                ok(False, "a server that was killed answered")
            except live.Error as error:
                ok("ended before it answered" in str(error), f"what was asked ends: {error}")
        other = [word.replace("/data/", "/other/") if isinstance(word, str) else word
                 for word in words]
        with Served(folder, *other) as third:
            try:
                server.encode(np.ones((3, P), "f4"))
                ok(False, "another dictionary was taken for the first")
            except live.Error as error:
                ok("another dictionary_hash" in str(error), f"another dictionary: {error}")
            ok(third.end(signal.SIGINT)[0] == 0, "SIGINT ends it with 0")
        server._timeout = 0.3
        raised(live.Error, ["no server answers", "any more"], server.encode, np.ones((3, P), "f4"))
    file = f"{folder}/data/dictionary.h5"
    done = sagitta("serve", *words, "--listen", file)
    ok(done.returncode == 73 and "no socket" in done.stderr and os.path.getsize(file) > 1000,
       f"a file is not replaced by a socket: {done.returncode} {done.stderr[-300:]}")
    try:
        live.connect(f"{folder}/none", timeout=0.3)
        ok(False, "a connection succeeds without a server")
    except live.Error as error:
        ok("no server answers" in str(error), f"nobody is there: {error}")


@claim("another user cannot connect, wherever the socket is")
def check_user(folder, words):
    if os.geteuid():
        return skip("this test needs root, to become another user")
    with tempfile.TemporaryDirectory() as open_folder:
        os.chmod(open_folder, 0o777)
        with Served(open_folder, *words) as served:
            ok(connects(served.path, 0)[0], "this user can connect")
            can, text = connects(served.path, NOBODY)
            ok(not can and "PermissionError" in text, f"nobody can not: {text[-200:]}")
            ok(not os.stat(served.path).st_mode & 0o77, "only this user may use the socket")


def defaults(words, runtime):
    done = subprocess.run([SAGITTA, "serve", *map(str, words), "--max-seconds", "0.1"], text=True,
                          capture_output=True, env=environment(XDG_RUNTIME_DIR=runtime), timeout=60)
    return done.returncode, done.stderr


@claim("the default folder belongs to this user; it is refused if it is another's, open to "
       "others, or a link")
def check_folder(folder, words):
    runtime, own = f"{folder}/runtime", f"{folder}/runtime/sagitta"
    os.mkdir(runtime)
    code, text = defaults(words, runtime)
    ok(code == 0 and f"accepts clients at '{own}/live'" in text, f"made: {code} {text[-300:]}")
    ok(os.stat(own).st_mode & 0o777 == 0o700, "mode 0700")
    os.chmod(own, 0o750)
    code, text = defaults(words, runtime)
    ok(code == 73 and "not this user's with 0700" in text, f"open: {code} {text[-300:]}")
    os.chmod(own, 0o700)
    if os.geteuid() == 0:
        os.chown(own, NOBODY, NOBODY)
        code, text = defaults(words, runtime)
        ok(code == 73 and f"of user {NOBODY}" in text, f"another's: {code} {text[-300:]}")
    os.rename(own, f"{folder}/elsewhere")
    os.symlink(f"{folder}/elsewhere", own)
    code, text = defaults(words, runtime)
    ok(code == 73 and "or a link" in text, f"a link: {code} {text[-300:]}")


@claim("options that are wrong are named")
def check_options(folder, words):
    frames = f"{folder}/frames.h5"
    done = sagitta("seed", "--rows", f"{folder}/data/rows.h5", "--atoms", 8, "--frame", 2,
                   "--output", frames)
    ok(done.returncode == 0, "frames")
    cases = (
        (2, "'--dictionary' is missing", []),
        (2, "'--live-rows' is 300, above '--step-rows', 64", [*words[:-6], "--live-rows", 300]),
        (2, "'--quantum' is 65: it has to be 1 to 64", [*words, "--quantum", 65]),
        (2, "'--budget' is 999: it has to be 1 to 64", [*words, "--budget", 999]),
        (2, "'--listen' is a path of 150 bytes", [*words, "--listen", "x" * 150]),
        (2, "have no sign", ["--dictionary", frames, "--codes", "nonnegative"]),
        (2, "'own' of 'codes' is not one of", [*words, "--codes", "own"]),
        (73, "cannot create", [*words, "--listen", f"{folder}/none/live"]),
        (73, "cannot create", [*words, "--listen", f"{folder}/b", "--ready", f"{folder}/none/r"]),
        (74, "none.h5", ["--dictionary", f"{folder}/none.h5"]))
    for code, text, given in cases:
        listen = [] if "--listen" in given else ["--listen", f"{folder}/b"]
        done = sagitta("serve", *given, *listen)
        ok(done.returncode == code and text in done.stderr,
           f"{text}: {done.returncode} {done.stderr}")
    for code, given in (0, ["--max-seconds", 0.1]), (73, ["--listen", f"{folder}/none/live"]), (
            2, ["--quantum", 65]):
        listen = [] if "--listen" in given else ["--listen", f"{folder}/b"]
        done = sagitta("serve", *words, *listen, *given, ranks=2, timeout=60)
        ok(done.returncode == code, f"two ranks, {given}: {done.returncode} {done.stderr[-300:]}")
    done = sagitta("serve", *words, "--listen", f"{folder}/b", "--max-seconds", 0.1, "--device",
                   "cuda", timeout=60)
    ok(done.returncode in (0, 69), f"with or without a GPU: {done.returncode} {done.stderr[-300:]}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = sagitta("synth", "--n-rows", 100, "--columns", P, "--atoms", 50, "--output",
                       f"{folder}/data")
        ok(done.returncode == 0, "a dictionary")
        done = sagitta("synth", "--n-rows", 100, "--columns", P, "--atoms", 50, "--seed", 1,
                       "--output", f"{folder}/other")
        ok(done.returncode == 0, "another one")
        words = ["--dictionary", f"{folder}/data/dictionary.h5", "--top-s", 5, "--step-rows", 64,
                 "--live-rows", 64, "--bulk-rows", LONG, "--policy", "off"]
        check_drain(folder, words)
        check_once(folder, words)
        check_late(folder, words)
        check_drained(folder, words)
        check_kill(folder, words)
        check_user(folder, words)
        check_folder(folder, words)
        check_options(folder, words)
    done_testing()


main()
