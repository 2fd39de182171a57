# SPDX-License-Identifier: BSD-3-Clause
"""Claim: a port of `sagitta serve` is for clients whose keys it has.  A client with another key, or
with none, is refused and told so.  Keys can be added and removed while it serves.  Keys that other
users may read are refused, and no secret is in a log.  A port without keys is refused.  With
--no-keys, a port that is open to this machine only is served, with a warning."""
import os
import shutil
import socket
import stat
import tempfile
import time

import numpy as np

from live_server import Served, need_zmq
from tap import claim, done_testing, ok, sagitta, skip_all

live = need_zmq()
P, S = 20, 5


def read(*path):
    with open(os.path.join(*path), encoding="ascii") as f:
        return f.read()


def refusal(address, keys):
    """The reason why the server refuses; None if it answers."""
    try:
        with live.connect(address, 20, keys) as server:
            ok(server.encode(np.ones((2, P), "f4")).atoms.shape == (2, S), "codes")
    except live.Error as error:
        return str(error)
    return None


@claim("only their user can read keys, and keys are not overwritten")
def check_make(folder, names):
    for name in names:
        done = sagitta("serve", "--make-keys", f"{folder}/{name}")
        ok(done.returncode == 0 and "client.secret" in done.stderr, f"{name}: {done.stderr}")
    found = {os.path.relpath(os.path.join(at, name), folder + "/own"):
             stat.S_IMODE(os.stat(os.path.join(at, name)).st_mode)
             for at, folders, files in os.walk(folder + "/own") for name in folders + files}
    ok(found == {"clients": 0o700, "clients/client.pub": 0o600, "client.secret": 0o600,
                 "server.pub": 0o600, "server.secret": 0o600}, f"{found}")
    ok(stat.S_IMODE(os.stat(folder + "/own").st_mode) == 0o700, "the folder")
    before = read(folder, "own/server.secret")
    done = sagitta("serve", "--make-keys", f"{folder}/own")
    ok(done.returncode == 73 and "keys want a new folder" in done.stderr, f"{done.stderr}")
    ok(before == read(folder, "own/server.secret"), "keys that exist are unchanged")
    ok(len({read(folder, name, kind) for name in names for kind in (
        "server.secret", "client.secret", "server.pub", "clients/client.pub")}) == 4 * len(names),
       "no two are the same")


@claim("addresses that do not fit the keys are refused, and the message says what to do")
def check_options(folder, words):
    for code, text, given in (
            (2, "reached by every user of this machine: make keys", ["--listen", "tcp:0"]),
            (2, "reached from other machines: make keys", ["--listen", "tcp:0.0.0.0:0",
                                                           "--no-keys"]),
            (2, "give tcp:PORT", ["--listen", "tcp:70000"]),
            (2, "'--keys' is for --listen tcp:PORT", ["--listen", f"{folder}/b", "--keys", "own"]),
            (74, "--make-keys", ["--listen", "tcp:0", "--keys", f"{folder}/none"])):
        done = sagitta("serve", *words, *given)
        ok(done.returncode == code and text in done.stderr,
           f"{text}: {done.returncode} {done.stderr}")


@claim("keys that are broken, or that others may read, are refused")
def check_broken(folder, words):
    def tried(text, *change):
        bad = f"{folder}/bad"
        shutil.copytree(f"{folder}/own", bad)
        for function, name, *what in change:
            function(os.path.join(bad, name), *what)
        done = sagitta("serve", *words, "--listen", "tcp:0", "--keys", bad)
        ok(done.returncode == 65 and text in done.stderr, f"{text}: {done.stderr}")
        shutil.rmtree(bad)

    def write(path, text):
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
    tried("server.secret' has the mode 0644", (os.chmod, "server.secret", 0o644))
    tried("bad' has the mode 0711", (os.chmod, "", 0o711))
    tried("no client may connect", (os.remove, "clients/client.pub"))
    tried("eve.pub' is no key", (write, "clients/eve.pub", "x" * 39))
    tried("not of one pair", (write, "server.pub", read(folder, "own/clients/client.pub")))
    os.chmod(f"{folder}/own/client.secret", 0o640)
    told = refusal("tcp:1", f"{folder}/own")
    ok(told and "others than its user may read" in told, f"a client's: {told}")
    os.chmod(f"{folder}/own/client.secret", 0o600)


def soon(server, refused, seconds=60):
    """Wait until a connected client is refused, or served.  Returns the reason of the refusal, or
    None."""
    end, told = time.time() + seconds, None
    while time.time() < end:
        try:
            told = server.encode(np.ones((1, P), "f4")).count[0] == S and None
        except live.Error as error:
            told = str(error)
        if bool(told) == refused:
            break
        time.sleep(0.05)
    return told


def check_removed(folder, keys, address):
    """Remove a key, and bring it back, while its client is connected."""
    name = f"{keys}/clients/other.pub"
    shutil.copy(f"{folder}/other/clients/client.pub", name)
    with live.connect(address, 20, f"{folder}/other") as other:
        ok(soon(other, False) is None, "a client with a known key is served")
        os.remove(name)
        told = soon(other, True)
        ok(told and "does not know the key of this client any more" in told, f"removed: {told}")
        try:
            told = f"{other.status()}"
        except live.Error as error:
            told = str(error)
        ok("does not know the key" in told, f"its status too: {told}")
        shutil.copy(f"{folder}/other/clients/client.pub", name)
        told = soon(other, False)
        ok(told is None, f"brought back: {told}")
        os.remove(name)


@claim("clients with a known key are served, and no others")
def check_keys(folder, words):
    keys = f"{folder}/own"
    with Served(folder, *words, "--keys", keys, "--verbose", "--json", listen="tcp:0") as served:
        address = served.path
        ok(address.startswith("tcp:127.0.0.1:") and address[-2:] != ":0", f"a port: {address}")
        told = [refusal(address, keys)]
        ok(told[0] is None, f"{told[0]}")
        told.append(refusal(address, None))
        ok("connect(..., keys=DIR)" in told[-1], f"without keys: {told[-1]}")
        told.append(refusal(address, f"{folder}/other"))
        ok("server.pub is another's" in told[-1], f"of another server: {told[-1]}")
        shutil.copy(f"{keys}/server.pub", f"{folder}/other/server.pub")
        told.append(refusal(address, f"{folder}/other"))
        ok("does not know the key" in str(told[-1]), f"an unknown one: {told[-1]}")
        with live.connect(address, 20, keys) as server:
            shutil.copy(f"{folder}/other/clients/client.pub", f"{keys}/clients/other.pub")
            ok(refusal("tcp:" + address.split(":")[2], f"{folder}/other") is None, "a new client")
            os.remove(f"{keys}/clients/other.pub")
            told.append(refusal(address, f"{folder}/other"))
            ok("does not know the key" in str(told[-1]), f"when it is gone: {told[-1]}")
            with open(f"{keys}/clients/other.pub", "w", encoding="ascii") as f:
                f.write(read(folder, "other/clients/client.pub").strip() + " # withdrawn")
            told.append(refusal(address, f"{folder}/other"))
            ok("does not know the key" in str(told[-1]), f"withdrawn: {told[-1]}")
            os.remove(f"{keys}/clients/other.pub")
            os.replace(f"{keys}/clients/client.pub", f"{keys}/client.kept")
            os.symlink("nowhere", f"{keys}/clients/client.pub")
            told.append(refusal(address, keys))
            ok("does not know the key" in str(told[-1]), f"a link to nothing: {told[-1]}")
            os.replace(f"{keys}/client.kept", f"{keys}/clients/client.pub")
            check_removed(folder, keys, address)
            host, port = address[4:].split(":")
            for data in b"", b"\xff" * 100, os.urandom(4096), b"GET / HTTP/1.0\r\n\r\n":
                with socket.create_connection((host, int(port))) as s:
                    s.sendall(data)
            ok(server.encode(np.ones((1, P), "f4")).count[0] == S,
               "the first client is still served")
        done = sagitta("serve", *words, "--keys", keys, "--listen", address)
        ok(done.returncode == 73 and "give --listen another port" in done.stderr,
           f"a second server: {done.returncode} {done.stderr[-300:]}")
        code, out, text = served.end()
        ok(code == 0, f"the server ends with {code}: {text[-300:]}")
    ok(text.count("refused a client at '127.0.0.1'") == 1, f"refusals are told once: {text}")
    secrets = [read(folder, name, kind).strip() for name in ("own", "other")
               for kind in ("server.secret", "client.secret")]
    said = f"{text} {out} {told} {done.stderr} {read(served.ready)}"
    ok(not any(secret in said for secret in secrets), "no message has the secret key")


@claim("a port without keys that is open to this machine only gives a warning")
def check_open(folder, words):
    with Served(folder, *words, "--no-keys", listen="tcp:0") as served:
        told = refusal(served.path, None)
        ok(told is None, f"{told}")
        code, _, text = served.end()
        ok(code == 0 and "warning: every user of this machine is served" in text, f"{code} {text}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = sagitta("serve", "--make-keys", f"{folder}/any")
        if done.returncode == 69 and "CURVE" in done.stderr:
            skip_all("this ZeroMQ has no CURVE")
        done = sagitta("synth", "--n-rows", 10, "--columns", P, "--atoms", 50, "--output",
                       f"{folder}/data")
        ok(done.returncode == 0, "a dictionary")
        words = ["--dictionary", f"{folder}/data/dictionary.h5", "--top-s", S, "--policy", "off"]
        check_make(folder, ("own", "other"))
        check_options(folder, words)
        check_broken(folder, words)
        check_keys(folder, words)
        check_open(folder, words)
    done_testing()


main()
