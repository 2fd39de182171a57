# SPDX-License-Identifier: BSD-3-Clause
"""Claim: if clients send tokens of a gated delta net to `sagitta serve --mixer`, they get the codes
of `sagitta harvest` followed by `encode`, bit for bit.  This holds for prompts that take several
steps, for single tokens after them, for every policy and number of ranks, and beside rows and
files.  A stream that lost tokens is refused, and other streams continue."""
import os
import re
import resource
import signal
import tempfile
import threading
import time

import h5py
import numpy as np

from live_server import Raw, Served, clients_run, finished, need_zmq, other_replies
from mixer_data import make, write
from tap import FULL, claim, done_testing, gpu_present, launch, need, later_wins, ok, sagitta

live = need_zmq()
LENGTHS = (150, 40, 1, 9, 300, 64)
STEPS = ["--step-rows", 64, "--live-rows", 8, "--quantum", 16, "--linger-ms", 20]
POLICIES = {"off": ["--policy", "off"], "static": ["--policy", "static", "--budget", 24],
            "dynamic": ["--policy", "dynamic", "--target", 30]}
TOP = 5


class Case:
    """Tokens of some sequences, and the results of encode for the rows that harvest makes from
    them."""

    def __init__(self, folder, name, **form):
        self.capture, self.folder = f"{folder}/{name}.h5", folder
        objects, facts = make(np.random.default_rng(5), LENGTHS, **form)
        write(self.capture, (objects, facts))
        self.n, self.start = sum(LENGTHS), objects["q_start"]
        x = objects["x"] if "x" in objects else np.concatenate(
            [objects[key].reshape(self.n, -1) for key in "qkv"], axis=1)
        self.tokens = x, objects["g"], objects["beta"]
        at = f"{folder}/{name}"
        need(sagitta("harvest", "--capture", self.capture, "--output", f"{at}-rows.h5"), "harvest")
        need(sagitta("seed", "--rows", f"{at}-rows.h5", "--atoms", 60, "--center", "--output",
                     f"{at}-start.h5"), "seed")
        self.words = ["--dictionary", f"{at}-start.h5", "--top-s", TOP]
        self.made, self.want = f"{at}-rows.h5", f"{at}-want.h5"
        need(sagitta("encode", "--rows", self.made, *self.words, "--output", self.want), "encode")
        with h5py.File(self.want) as f, h5py.File(self.made) as g:
            self.atoms = f["supports/indices"][:].reshape(self.n, TOP).astype("i4")
            self.codes = f["supports/data"][:].reshape(self.n, TOP)
            self.score = f["supports/score"][:].reshape(self.n, TOP)
            self.rows = g["rows"][:]
        self.words += ["--mixer", self.capture]

    def part(self, at):
        return [values[at] for values in self.tokens]


def sequence_send(server, case, i, seed, wrong):
    """Send a prompt, then tokens in small pieces, without waiting for replies."""
    draw, at = np.random.default_rng(seed), np.arange(case.start[i], case.start[i + 1])
    stream, asked = server.stream(), []
    piece, at = np.split(at, [int(draw.integers(0, len(at) + 1))])
    if len(piece):
        asked.append((stream.submit(*case.part(piece), scores=True, bulk=True), piece))
    while len(at):
        piece, at = np.split(at, [int(draw.integers(1, 9))])
        asked.append((stream.submit(*case.part(piece), scores=True), piece))
    wrong += [f"sequence {i}, {n} tokens" for n in other_replies(asked, case)]
    stream.close()


def client_run(path, case, seed, wrong):
    """Send all sequences at once, and rows at the same time."""
    draw = np.random.default_rng(seed)
    with live.connect(path, timeout=60) as server:
        threads = [threading.Thread(target=sequence_send, args=(server, case, i, seed, wrong))
                   for i in range(len(LENGTHS))]
        for t in threads:
            t.start()
        for _ in range(5):
            at = draw.integers(0, case.n, int(draw.integers(1, 9)))
            wrong += [f"{n} rows" for n in other_replies(
                [(server.submit(case.rows[at], scores=True), at)], case)]
        for t in threads:
            t.join()


def check_bits(case, name, policy, ranks, device="cpu"):
    with claim(f"{name}, {policy}, {ranks} ranks, {device}: the codes of harvest followed by "
               "encode"):
        at = f"{case.folder}/{name}-{policy}{ranks}{device}"
        with open(f"{at}.txt", "w") as f:
            f.write(f"{case.made} {at}-got.h5\n")
        words = [*case.words, *STEPS, *POLICIES[policy], "--backlog", f"{at}.txt", "--ledger", at,
                 "--device", device]
        with Served(case.folder, *words, before=launch(ranks) if ranks > 1 else ()) as served:
            wrong = clients_run(3, client_run, served.path, case)
            with live.connect(served.path) as server:
                finished(server)
            code, _, text = served.end(signal.SIGUSR1)
        ok(code == 0 and not wrong, f"{wrong[:5]}, exit {code}: {text[-300:]}")
        need(sagitta("diff", f"{at}-got.h5", case.want), "a file beside them")
        need(sagitta("verify", f"{at}/ledger.h5"), "the ledger")
        with h5py.File(f"{at}/ledger.h5") as f:
            parts, requests = f["run/admitted"][:], f["run/requests"][:]
        bulk = np.flatnonzero((requests[:, 2] == 1) & (requests[:, 3] > 64))
        cut = [int((parts[:, 1] == r).sum()) for r in bulk]
        ok(cut and max(cut) > 2, f"prompts are cut: {cut}")


def message_of(case, at, stream=1, position=None, numbers=None, bulk=0, number=7):
    values = [np.array(part, "<f4") for part in case.part(at)]
    for which, value in (numbers or {}).items():
        values[which].flat[0] = value
    content = b"".join(v.tobytes() for v in values)
    columns = sum(v[0].size for v in case.tokens)
    return live.HEADER.pack(
        live.MAGIC, live.VERSION, live.MIXER, number, len(at), columns, 1, bulk, 0, 0, 0, stream,
        len(content), int(at[0] if position is None else position)) + content


def asked(raw, case, at, **fields):
    """(kind, code, text) of the reply to a message."""
    reply = raw.ask(message_of(case, at, **fields))
    return reply and (reply[0], reply[2], reply[3])


@claim("wrong, missing or repeated tokens are refused, and only their stream ends")
def check_order(case):
    with Served(case.folder, *case.words, *STEPS, "--streams", 3) as served:
        raw, at = Raw(served.path), np.arange(10)
        good = live.MIXER + live.REPLY, 0
        ok(asked(raw, case, at[:4])[:2] == good, "the first tokens")
        for numbers, text in (({0: np.nan}, "a channel of token 0 is nan"),
                              ({1: 0.5}, "the logarithm of a decay of token 0 is 0.5"),
                              ({2: 3}, "beta of token 0 is 3")):
            reply = asked(raw, case, at[4:6], numbers=numbers)
            ok(reply[:2] == (255, 1) and text in reply[2], f"{text}: {reply}")
        for which, position, text in ((at[4:6], 6, "tokens are missing"),
                                      (at[2:4], 2, "or came already"), (at[:2], 9, "are missing")):
            reply = asked(raw, case, which, position=position)
            ok(reply[:2] == (255, 1) and text in reply[2], f"{text}: {reply}")
        ok(asked(raw, case, at[4:6])[:2] == good, "what was refused changed nothing")
        reply = asked(raw, case, at[6:8], stream=2)
        ok(reply[:2] == (255, 1) and "no such stream" in reply[2], f"another stream: {reply}")
        ok(asked(raw, case, at[:2], stream=2)[:2] == good, "a second stream begins")
        ok(asked(raw, case, at[:2], stream=3)[:2] == good, "a third stream begins")
        reply = asked(raw, case, at[:2], stream=4)
        ok(reply[:2] == (255, 2) and "all streams are in use" in reply[2], f"a fourth: {reply}")
        ok(asked(raw, case, at[:0], stream=3, position=0)[:2] == good, "the third stream ends")
        ok(asked(raw, case, at[:2], stream=4)[:2] == good, "there is room for another stream then")
        reply = asked(raw, case, at[2:4], stream=3)
        ok(reply[:2] == (255, 1) and "no such stream" in reply[2],
           f"an ended stream is refused: {reply}")
        raw.close()
        with live.connect(served.path) as server:
            try:
                server.stream().submit(case.tokens[0][:2], case.tokens[1][:2, :1],
                                       case.tokens[2][:2])
                ok(False, "a wrong shape was taken")
            except ValueError as error:
                ok("g has the shape" in str(error), f"{error}")
        code, _, text = served.end()
        ok(code == 0, f"the server ends with {code}: {text[-300:]}")


def reason(future):
    try:
        return len(future.result(600).count)
    except live.Refused as error:
        return f"{error}"


@claim("headers with some wrong bytes change neither the server nor a stream")
def check_fuzz(case):
    draw, at = np.random.default_rng(3), np.arange(20)
    with Served(case.folder, *case.words, *STEPS, "--streams", 4) as served:
        raw, n = Raw(served.path), 20000 if FULL else 2000
        for i in range(n):
            data = bytearray(message_of(case, at[:2], stream=int(draw.integers(0, 6)), position=int(
                draw.integers(0, 3))))
            for _ in range(int(draw.integers(0, 3))):
                data[int(draw.integers(0, 64))] = int(draw.integers(0, 256))
            raw.socket.send(bytes(data))
            if not raw.socket.poll(20000):
                break
            raw.socket.recv()
        ok(i == n - 1, f"a reply to each of {n}, {i}")
        for stream in range(7):
            asked(raw, case, at[:0], stream=stream, position=0)
        with live.connect(served.path) as server:
            counts = server.status()["refused"]
            ok(0 < counts["bad"] < n, f"some are refused: {counts}")
            end = time.time() + 60
            while server.status()["waiting"]["bytes"] and time.time() < end:
                time.sleep(0.01)
        code, _, text = served.end()
        ok(code == 0, f"the server ends with {code}: {text[-300:]}")
        raw.close()


@claim("a cancelled prompt ends its own stream only, which may begin anew")
def check_cancel(case):
    first, last = case.start[4], case.start[5]
    long = np.resize(np.arange(first, last), 20000)
    with Served(case.folder, *case.words, "--step-rows", 16, "--live-rows", 8, "--policy",
                "off") as served, live.connect(served.path) as server:
        stream, other = server.stream(), server.stream()
        prompt = stream.submit(*case.part(long), bulk=True)
        behind = [stream.submit(*case.part(long[:1])), stream.submit(*case.part(long[:9]),
                                                                     bulk=True)]
        while not server.status()["bulk_rows"]:
            pass
        server.cancel(prompt)
        told = [reason(f) for f in (prompt, *behind)]
        ok("cancelled" in str(told[0]), f"the prompt: {told[0]}")
        ok(all("given up" in str(t) for t in told[1:]), f"behind it: {told[1:]}")
        told = reason(stream.submit(*case.part(long[:1])))
        ok("given up" in str(told), f"later: {told}")
        at = np.arange(first, first + 8)
        for one in other, server.stream():
            wrong = list(other_replies([(one.submit(*case.part(at), scores=True), at)], case))
            ok(not wrong, "another stream has its codes")


@claim("a later request that is cancelled ends its stream; the stream's earlier requests are "
       "answered")
def check_cancel_later(case):
    at = np.arange(case.start[4], case.start[5])
    with Served(case.folder, *case.words, "--step-rows", 16, "--live-rows", 16, "--policy",
                "off") as served, live.connect(served.path) as server:
        before = server.stream().submit(*case.part(np.resize(at, 20000)), bulk=True)
        stream, pieces = server.stream(), np.split(at[:180], (150, 154, 160, 170))
        futures = [stream.submit(*case.part(piece), scores=True, bulk=len(piece) > 16)
                   for piece in pieces]
        server.cancel(futures[2])
        told = [reason(f) for f in futures[2:]]
        ok(not before.done() and not futures[0].done(), "requests before the cancelled one wait")
        ok("cancelled" in str(told[0]) and
           all("an earlier request of its stream" in str(t) for t in told[1:]), f"{told}")
        wrong = list(other_replies(list(zip(futures[:2], pieces)), case))
        ok(not wrong, "requests before the cancelled one have their codes")
        told = reason(stream.submit(*case.part(at[180:182])))
        ok("was given up" in str(told), f"later: {told}")


@claim("a row that overflows is refused, with the later rows of its stream, and no others")
def check_overflow(case):
    first = case.start[4]
    with Served(case.folder, *case.words, *STEPS) as served, live.connect(served.path) as server:
        at = np.arange(first, first + 4)
        x, g, beta = (np.array(part) for part in case.part(at))
        x[2, -32:] = 3e38  # the v of token 2
        bad, good = server.stream(), server.stream()
        futures = [bad.submit(x, g, beta), bad.submit(*case.part(at)),
                   good.submit(*case.part(at), scores=True)]
        told = [reason(f) for f in futures]
        ok("of the mixer row 2" in str(told[0]), f"{told[0]}")
        ok("given up" in str(told[1]), f"behind it: {told[1]}")
        ok(not list(other_replies([(futures[2], at)], case)), "another stream has its codes")


@claim("a server that is asked to end answers each request of a stream once, with codes or the "
       "reason")
def check_end(case):
    at = np.resize(np.arange(case.start[4], case.start[5]), 12000)
    with Served(case.folder, *case.words, "--step-rows", 16, "--live-rows", 8, "--policy", "off",
                "--drain-seconds", 600) as served, live.connect(served.path) as server:
        streams = [server.stream() for _ in range(3)]
        futures = [s.submit(*case.part(at), bulk=True) for s in streams]
        futures += [s.submit(*case.part(at[:1])) for s in streams]
        while not server.status()["bulk_rows"]:
            pass
        code, _, text = served.end(signal.SIGTERM, seconds=600)
        told = [reason(f) for f in futures]
        ok(code == 0, f"the server ends with {code}: {text[-300:]}")
        ok(told[0] == len(at) and told[3] == 1, f"what has begun: {told}")
        ok(all("closing" in str(t) for t in told[1:3]) and
           all("given up" in str(t) or "closing" in str(t) for t in told[4:]), f"others: {told}")


@claim("if a server is killed, open requests of a stream fail; the next server has no such stream")
def check_killed(case):
    at = np.arange(4)
    with Served(case.folder, *case.words, "--step-rows", 16, "--live-rows", 8) as served:
        server = live.connect(served.path)
        stream = server.stream()
        stream.encode(*case.part(at))
        waits = stream.submit(*case.part(np.resize(at, 20000)), bulk=True)
        while not server.status()["bulk_rows"]:
            pass
        ok(not waits.done(), "the request is being computed")
        served.end(signal.SIGKILL)
    try:
        waits.result(60)
        ok(False, "a server that was killed answered")
    except live.Error as error:
        ok("ended before it answered" in str(error), f"what was in work: {error}")
    server._timeout = 0.3
    for _ in range(2):
        try:
            stream.submit(*case.part(at)).result(20)
            ok(False, "a server that was killed answered")
        except live.Error as error:
            ok("no server answers" in str(error), f"later: {error}")
    server._timeout = 10
    with Served(case.folder, *case.words):
        told = reason(stream.submit(*case.part(at)))
        ok("no such stream" in str(told), f"{told}")
        wrong = list(other_replies([(server.stream().submit(*case.part(at), scores=True), at)],
                                   case))
        ok(not wrong, "another stream has its codes")
        server.close()


def serve_within(limit, *words):
    """Serve for a moment with this limit of address space."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    os.environ["MALLOC_ARENA_MAX"] = "1"
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        return sagitta("serve", *words, "--threads", 1, "--max-seconds", 0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        del os.environ["MALLOC_ARENA_MAX"]


@claim("streams that do not fit in memory are refused with the sizes, before any work")
def check_memory(case):
    limit = 300 << 20
    words = [*case.words, *STEPS, "--listen", f"{case.folder}/m", "--streams", 65536]
    done = serve_within(limit, *words)
    told = re.search(r"(\d+) bytes are needed \(65536 streams of the mixer (\d+), steps (\d+)\), "
                     r"(\d+) are present for each rank: lower --streams", done.stderr)
    if not ok(done.returncode == 71 and told and "serve   atoms" not in done.stderr,
              f"exit {done.returncode}: {done.stderr[-500:]}"):
        return
    needed, streams, steps, present = map(int, told.groups())
    with h5py.File(case.capture) as f:
        channels, width, heads = *f["conv"].shape, f["beta"].shape[1]
    columns = f"{case.rows.shape[1] // heads}, {channels}"
    state = 4 * (case.rows.shape[1] * 8 + channels * (width - 1))  # 8: key columns of a head
    ok(needed == streams + steps and 65536 * state < streams < 65536 * (state + 512),
       f"{streams} bytes of streams, {state} a state of {columns}")
    room = limit + needed - present
    ok(serve_within(room - (16 << 20), *words).returncode == 71,
       "a little less than the needed memory is refused")
    for more in [], ["--streams", 64]:
        # On a machine with more cores or with a GPU, libraries take some hundred MiB more later.
        done = serve_within((limit if more else room) + (1 << 30), *later_wins(*words, *more))
        ok(done.returncode == 0, f"{more}, there is room: {done.returncode} {done.stderr[-500:]}")


@claim("options that do not fit are named, and a server without a mixer says so")
def check_options(case, other):
    words = [*case.words[:-2], "--listen", f"{case.folder}/b", "--max-seconds", 0.1]
    own = case.words[-2:]
    for code, text, more in ((2, "'--record' is of rows that came", [*own, "--ledger", "x",
                                                                     "--record"]),
                             (2, "'--replay' is of rows that came", [*own, "--replay", "x"]),
                             (65, "makes rows of", ["--mixer", other.capture]),
                             (74, "none.h5", ["--mixer", "none.h5"])):
        done = sagitta("serve", *words, *more)
        ok(done.returncode == code and text in done.stderr, f"{text}: {done.stderr[-300:]}")
    with Served(case.folder, *case.words[:-2]) as served:
        raw = Raw(served.path)
        reply = asked(raw, case, np.arange(2))
        ok(reply[:2] == (255, 1) and "the server has no --mixer" in reply[2], f"{reply}")
        raw.close()
        with live.connect(served.path) as server:
            try:
                server.stream()
                ok(False, "a stream without a mixer")
            except live.Error as error:
                ok("has no --mixer" in str(error), f"{error}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with claim("rows of harvest and their codes, for comparison, are made"):
            cases = {"conv": Case(folder, "conv"),
                     "columns": Case(folder, "columns", heads=6, key_heads=3, d=5, dv=7, width=0,
                                     by_column=True, head_map="tiled")}
            ok(cases["conv"].n == sum(LENGTHS), "tokens")
        for i, policy in enumerate(POLICIES):
            for name in cases if FULL else list(cases)[i % 2:][:1]:
                check_bits(cases[name], name, policy, 1)
        check_bits(cases["conv"], "conv", "dynamic", 2)
        if gpu_present():
            check_bits(cases["columns"], "columns", "static", 1, "cuda")
        check_order(cases["conv"])
        check_fuzz(cases["conv"])
        check_cancel(cases["conv"])
        check_cancel_later(cases["conv"])
        check_overflow(cases["conv"])
        check_end(cases["conv"])
        check_killed(cases["conv"])
        check_memory(cases["conv"])
        check_options(cases["conv"], cases["columns"])
    done_testing()


main()
