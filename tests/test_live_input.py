# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if a message to `sagitta serve` is wrong, only this message fails, and the reply has the
reason.  Requests that are too many, late or cancelled get such replies too.  Random headers, and
clients that vanish, neither stop others nor make memory grow."""
import os
import signal
import sys
import tempfile
import time

import numpy as np

from live_server import Raw, Served, message_of, need_zmq
from tap import FULL, claim, done_testing, ok, sagitta

live = need_zmq()
P, K, S, CREDIT = 20, 50, 5, 8
# MiB; sanitizers keep what is freed.
MOST_GROWTH = 400 if os.environ.get("SANITIZED") else 48


def message(**fields):
    return message_of(P, **fields)


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
    ([message(kind=6)], "tokens of a mixer are sent, and the server has no --mixer"),
    ([message(kind=7)], "kind 7: 1 is hello"),
    ([message(kind=130)], "kind 130: 1 is hello"),
    ([message(said=P + 1)], f"rows have {P + 1} columns, the dictionary has {P}"),
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


@claim("a bad message is answered with the reason, and the next good one with codes")
def check_bad(served):
    raw = Raw(served.path)
    for frames, text in BAD:
        reply = raw.ask(*frames)
        ok(reply and reply[0] == 255 and reply[2] == 1 and text in reply[3], f"{text}: {reply}")
        ok(len(frames[0]) < 64 or len(frames) > 1 or reply[1] == 77, f"{text}: its number")
        ok(is_good(raw), f"a good request after: {text}")
    raw.close()


@claim("no random header stops the server")
def check_fuzz(served):
    rng = np.random.default_rng(5)
    raw, before, n = Raw(served.path), served.memory(), 1000000 if FULL else 20000
    replies = 0
    for _ in range(n // 10):  # ten at a time: more requests of one client may not wait
        for i in range(10):
            data = bytearray(rng.bytes(64 + int(rng.integers(0, 40))))
            if i % 2:  # most fields of these headers are right
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
    """The server's status when it has answered this number of bulk requests."""
    end = time.time() + 60
    while True:
        status = server.status()
        if status["bulk_requests"] >= bulk or time.time() > end:
            return status
        time.sleep(0.002)


@claim("a client that vanishes leaves nothing")
def check_gone(served):
    with live.connect(served.path) as server:
        done = server.status()["bulk_requests"]
        for _ in range(5):
            raw = Raw(served.path)
            for _ in range(8):
                raw.socket.send(message(rows=1000, bulk=1))
            raw.socket.poll(20000)
            raw.close()
            done += 1  # one request was answered; others, too, if they came before the client left
            settled(server, done)
        end = time.time() + 60
        while server.status()["waiting"]["bytes"] and time.time() < end:
            time.sleep(0.002)
        status = server.status()
        ok(status["waiting"]["bytes"] == 0, f"what the dead asked for is done: {status}")


def replies_of(raw, server, n):
    """Headers of the replies to n messages.  There is no limit of time, because times depend on the
    machine.  The function gives up when the server has said several times in a row that no request
    waits, and no reply has come meanwhile."""
    headers, idle = [], 0
    while len(headers) < n and idle < 20:
        if raw.socket.poll(500):
            headers.append(live.HEADER.unpack(raw.socket.recv()[:64]))
            idle = 0
        else:
            waiting = server.status()["waiting"]
            idle += waiting["bulk_requests"] + waiting["live_requests"] == 0
    return headers


@claim("requests beyond a client's credit are refused as busy; the Python client waits instead")
def check_credit(served):
    raw, busy, rounds = Raw(served.path), 0, 0
    with live.connect(served.path, timeout=600) as server:
        before = server.status()["unread"]["lost"]
        while not busy and rounds < 20:
            for _ in range(2 * CREDIT):
                raw.socket.send(message(rows=1000, bulk=1))
            headers = replies_of(raw, server, 2 * CREDIT)
            refused = [h for h in headers if h[2] == 255]
            ok(len(headers) == 2 * CREDIT, f"{len(headers)} replies to {2 * CREDIT} messages")
            ok(all(h[8] == 2 for h in refused) and len(refused) <= CREDIT, f"busy: {refused}")
            busy, rounds = len(refused), rounds + 1
        ok(busy, f"{busy} of the last {2 * CREDIT} are busy")
        ok(server.status()["unread"]["lost"] == before, "no reply is lost")
    raw.close()
    with live.connect(served.path) as server:
        futures = [server.submit(np.ones((1000, P), "f4"), bulk=True) for _ in range(40)]
        ok(all(len(f.result(60).atoms) == 1000 for f in futures), "all 40 have results")


def interrupt(*_):
    raise KeyboardInterrupt


def is_interrupted(call, seconds):
    """Does a call take longer than this, and can it then be interrupted?"""
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


@claim("Ctrl-C while a request waits leaves credit and room for the next request")
def check_interrupt(folder, words):
    rows = np.ones((30000, P), "f4")  # their reply is larger than a MiB: it is sent alone
    words = [*words[:4], "--credit", CREDIT, "--unread-mib", 1, "--bulk-rows", len(rows)]
    with Served(folder, *words) as served:
        with live.connect(served.path) as server:
            served.job.send_signal(signal.SIGSTOP)
            first = server.submit(rows, bulk=True)
            cut = [is_interrupted(lambda: server.submit(rows, bulk=True), 0.05)
                   for _ in range(CREDIT + 1)]
            served.job.send_signal(signal.SIGCONT)
            ok(all(cut) and len(first.result(60).atoms) == len(rows), f"requests waited: {cut}")
            served.job.send_signal(signal.SIGSTOP)
            waits = [is_interrupted(lambda: server.submit(rows[:1]), 5) for _ in range(CREDIT)]
            served.job.send_signal(signal.SIGCONT)
            ok(not any(waits), f"all of the credit is there: {waits}")
            steps = interrupted_everywhere(server, rows[:1])
            ok(steps > 15, f"{steps} steps")


def interrupted_at(step):
    """Interrupt the step-th line of submit() in this thread.  A trace is used, because a signal
    cannot interrupt the end of a `with` that submit() calls."""
    left = [step]

    def trace(frame, event, _):
        if frame.f_code not in (live.Server.submit.__code__, live.Server._submit.__code__):
            return None
        left[0] -= event == "line"
        if event == "line" and left[0] == 0:
            raise KeyboardInterrupt
        return trace
    return trace


def interrupted_everywhere(server, rows):
    """Interrupt each line of submit().  Nothing may stay reserved.  Returns the number of lines."""
    for step in range(1, 100):
        sys.settrace(interrupted_at(step))
        try:
            done = bool(server.submit(rows))
        except KeyboardInterrupt:
            done = False
        finally:
            sys.settrace(None)
        end = time.time() + 20
        while any(room._taken for room in server._rooms) and time.time() < end:
            time.sleep(0.0002)
        taken = [room._taken for room in server._rooms]
        ok(not any(taken), f"step {step}: {taken}")
        if done or any(taken):
            break
    return step


@claim("if many requests are cancelled at once, each is answered, also with a small credit")
def check_cancels(folder, words):
    with Served(folder, *words) as served, live.connect(served.path) as server:
        asked, missing = [], 0
        for i in range(300):
            asked.append(server.submit(np.ones((30, P), "f4"), bulk=i % 2 == 1))
            for _ in range(1 + i % 3):  # cancel() sends one such message
                server._send(live.CANCEL, asked[-1].number)
            server.cancel(asked[-1])
        for future in asked:
            try:
                future.result(3)
            except live.Refused as error:
                ok(error.reason == "cancelled", f"{error}")
            except TimeoutError:
                missing += 1
                break
        ok(not missing and server.status()["unread"]["lost"] == 0, "replies are lost")


@claim("late and cancelled requests are not computed")
def check_late(served):
    with live.connect(served.path) as server:
        served.job.send_signal(signal.SIGSTOP)  # otherwise it might be faster than the next lines
        bulk = [server.submit(np.ones((1000, P), "f4"), bulk=True) for _ in range(6)]
        last = server.submit(np.ones((1000, P), "f4"), bulk=True)
        server.cancel(last)
        late = server.submit(np.ones((1000, P), "f4"), bulk=True, deadline=1e-7)
        time.sleep(0.1)
        served.job.send_signal(signal.SIGCONT)
        for future, reason in (last, "cancelled"), (late, "late"):
            try:
                future.result(60)
                ok(False, f"it is not {reason}")
            except live.Refused as error:
                ok(error.reason == reason, f"{reason}: {error}")
        ok(all(len(f.result(60).atoms) == 1000 for f in bulk), "the others have results")
        refused = server.status()["refused"]
        ok(refused["late"] == 1 and refused["cancelled"] == 1,
           f"late and cancelled requests are counted: {refused}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = sagitta("synth", "--n-rows", 10, "--columns", P, "--atoms", K, "--output",
                       f"{folder}/data")
        ok(done.returncode == 0, "a dictionary")
        words = ["--dictionary", f"{folder}/data/dictionary.h5", "--top-s", S, "--live-rows", 32,
                 "--bulk-rows", 1000, "--step-rows", 64, "--policy", "off"]
        check_cancels(folder, [*words, "--credit", 2])
        words += ["--credit", CREDIT]
        with Served(folder, *words) as served:
            check_bad(served)
            check_fuzz(served)
            check_gone(served)
            check_credit(served)
            check_late(served)
            code, _, text = served.end()
            ok(code == 0, f"the server ends with {code}: {text[-300:]}")
        check_interrupt(folder, words)
    done_testing()


main()
