# SPDX-License-Identifier: BSD-3-Clause
"""Claim: inspect --atom shows what NumPy finds for an atom: density, quantiles of its codes,
nearest atoms, and its strongest rows with the tokens around them.  It refuses files that do not
belong together."""
import json
import os
import re
import shutil
import tempfile

import h5py
import numpy as np

from peer import PACKAGE  # noqa: F401, which is where sagitta.words is
from tap import SAGITTA, claim, done_testing, ok, sagitta

from sagitta.words import MARKS, Words  # noqa: E402

N, K, P, S = 700, 40, 12, 4


def need(done):
    return ok(done.returncode == 0, done.stderr[-300:])


class Place:
    def __init__(self, folder):
        self.folder, self.run = folder, f"{folder}/run"
        need(sagitta("synth", "--n-rows", N, "--atoms", K, "--columns", P, "--top-s", S,
                     "--output", self.run))
        rows, words = f"{self.run}/rows.h5", ["--dictionary", f"{self.run}/dictionary.h5"]
        need(sagitta("encode", "--rows", rows, *words, "--top-s", S, "--output", self.run))
        self.rows = shutil.copy(rows, f"{folder}/acts.h5")
        self.token = np.random.default_rng(1).integers(0, 50, N).astype("i4")
        self.window = (np.arange(N) // 16).astype("i4")
        with h5py.File(self.rows, "r+") as f:
            f["token"], f["window"] = self.token, self.window
        self.words = [f"w{i}" for i in range(30)] + [f"##s{i}" for i in range(10)] + [""]
        with open(f"{folder}/vocab.txt", "w", encoding="utf-8") as f:
            f.write("\n".join(self.words) + "\n")
        with h5py.File(f"{self.run}/supports.h5") as f:
            g = f["supports"]
            self.atom, self.code = g["indices"][:], g["data"][:]
            self.row = np.repeat(np.arange(N), np.diff(g["indptr"][:]))
        with h5py.File(f"{self.run}/dictionary.h5") as f:
            self.atoms = f["atoms"][:]

    def show(self, *words, code=0, said=""):
        done = sagitta("inspect", *words)
        ok(done.returncode == code and said in done.stderr,
           f"{words}: exit {done.returncode} {done.stderr.strip()[-300:]}")
        return done.stdout

    def name(self, token):
        return token < len(self.words) and self.words[token] or str(token)

    def around(self, row, words):
        """The tokens of the row's window, eight on each side of the row."""
        text = ""
        for i in range(max(0, row - 8), min(N, row + 9)):
            if self.window[i] != self.window[row]:
                continue
            word = self.name(self.token[i]) if words else str(self.token[i])
            space, word = ("", word[2:]) if word.startswith("##") else (" ", word)
            text += space + (f"[{word}]" if i == row else word)
        return text


@claim("the figures of an atom are NumPy's")
def check_figures(p):
    for atom in range(0, K, 3):
        text = p.show(p.run, "--atom", atom, "--top", 5)
        mine = p.atom == atom
        codes = np.sort(p.code[mine & (p.code != 0)])
        at = [max(0, int(np.ceil(q * len(codes))) - 1) for q in (0, .1, .25, .5, .75, .9, 1)]
        numbers = re.search(r"^codes +(.*)$", text, re.M)[1]
        found = [float(part.split()[-1]) for part in numbers.split(", ")]
        ok(np.allclose(found, codes[at], rtol=1e-3), f"atom {atom}: codes {numbers} {codes[at]}")
        ok(re.search(rf"^density +{mine.sum()} of {N} rows, ", text, re.M), f"density {text[:200]}")
        cosine = np.zeros(K, "f4")  # (N.1)
        for c in range(P):
            cosine = cosine + p.atoms[:, c] * p.atoms[atom, c]
        cosine[atom] = 0
        near = np.argsort(-abs(cosine), kind="stable")[:5]
        ok("nearest     " + ", ".join(f"{b} ({cosine[b]:.3f})" for b in near) in text,
           f"atom {atom}: nearest {near} {text}")
        order = np.flatnonzero(mine)[np.lexsort((p.row[mine], -abs(p.code[mine])))][:5]
        found = re.findall(r"^ +(\d+) +(-?[\d.e-]+)$", text, re.M)
        ok([int(row) for row, _ in found] == list(p.row[order]) and
           np.allclose([float(c) for _, c in found], p.code[order], rtol=1e-5), f"rows {found}")


@claim("each row is shown with the tokens around it in its window, as numbers and as words")
def check_tokens(p):
    for words, more in (False, []), (True, ["--vocabulary", f"{p.folder}/vocab.txt"]):
        text = p.show(p.run, "--atom", 7, "--rows", p.rows, *more, "--top", 12)
        found = re.findall(r"^ +(\d+) +-?[\d.e-]+ ( ?\S.*)$", text, re.M)
        ok(len(found) == 12, f"{len(found)} rows have tokens")
        for row, tokens in found:
            ok(tokens == p.around(int(row), words), f"{row}: '{tokens}'")
    first = int(p.row[p.atom == p.atom[0]][0])
    ok(first == 0 and f"[{p.token[0]}]" in p.show(p.run, "--atom", p.atom[0], "--rows", p.rows,
                                                  "--top", 500), "the first row of all")


@claim("a vocabulary in JSON gives the words of a text, with any characters")
def check_words(p):
    odd = {3: "a\n", 4: "\n\n", 17: 'q"\\', 21: "\r", 22: "\u00fc\U0001f600", 23: "}", 24: ","}
    words, plain = [odd.get(i, word) for i, word in enumerate(p.words)], p.words
    numbers = {word: i for i, word in enumerate(words) if word}
    p.words = [word.replace("\n", r"\n").replace("\r", r"\r") for word in words]
    for name, text in (("object", json.dumps(numbers)), ("lines", json.dumps(numbers, indent=1)),
                       ("list", "\n" + json.dumps(words, ensure_ascii=False))):
        with open(f"{p.folder}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
        text = p.show(p.run, "--atom", 7, "--top", 40, "--rows", p.rows, "--vocabulary",
                      f"{p.folder}/{name}")
        found = re.findall(r"^ +(\d+) +-?[\d.e-]+ ( ?\S.*)$", text, re.M)[-40:]
        ok(len(found) == 40, f"{len(found)} rows have tokens")
        for row, tokens in found:
            want = p.around(int(row), True)
            ok(tokens == want, f"{name}, {row}: '{tokens}' '{want}'")
    p.words = plain
    for text, said in (('{"a": 1, "b": "c"}', "each word its number"),
                       ('{"model": {"type": "BPE"}}', '"vocab"'), ('{"a": 0, "b": []}', "nor a"),
                       ('{"model": {"vocab": [["a"]]}}', "nor a tokenizer.json"),
                       ('{"model": {"vocab": {"a": 0}, "added_tokens": [{}]', "nor a tokenizer"),
                       ('{"added_tokens": [{"id": 1}], "model": {"vocab": {"a": 0}}}', "byte 27"),
                       ('{"model": {"vocab": {"a": 0}, "vocab": {"a": 1}}}', "from byte"),
                       ('["a", 3]', "neither a list of words"), ("a\0b\n", "is not text")):
        with open(f"{p.folder}/odd", "w", encoding="utf-8") as f:
            f.write(text)
        p.show(p.run, "--atom", 7, "--rows", p.rows, "--vocabulary", f"{p.folder}/odd", code=65,
               said=said)


def shown(text):
    """A word with the marks that around() expects.  Line feeds and tabs are written as letters."""
    text = text.replace("\n", r"\n").replace("\r", r"\r").replace("\t", r"\t")
    return text[1:] if re.match(" [^ ]", text) and text[1:3] != "##" else "##" + text


def tokenizers_of(p):
    """{name: tokenizer.json} for the tokens of the rows, with the marks of each kind."""
    level = {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "use_regex": True}]}
    odd = ["\n", " ", "  ", " ##x", "\u00fc", " \U0001f600", "s", "\t", "<a>", "'s"]
    texts = odd + [f" word{i}" if i % 3 else f"part{i}" for i in range(len(p.words) - len(odd))]
    marks = {byte: mark for mark, byte in MARKS.items()}
    byte = ["".join(marks[b] for b in text.encode()) for text in texts]
    byte[10:13] = marks[0xe2] + marks[0x82], marks[0x82] + marks[0x41], marks[0x00] + "\u4e00"
    piece = ["<0x0A>" if text == "\n" else text.replace(" ", "\u2581") for text in texts]
    added = [{"id": 5, "content": "<|end|>", "special": True}, {"id": 19, "content": " new"}]
    yield "byte", {"version": "1.0", "truncation": None, "added_tokens": added, "normalizer": None,
                   "pre_tokenizer": level, "decoder": None,
                   "model": {"type": "BPE", "unk_token": None, "merges": [["a", "b"]],
                             "vocab": {word: i for i, word in enumerate(byte)}}}
    yield "vocab", {word: i for i, word in enumerate(byte)}
    yield "list", byte
    yield "piece", {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Metaspace"},
                    "model": {"vocab": [[word, -1.5e-3 * i] for i, word in enumerate(piece)]}}


@claim("a tokenizer.json gives the words that the Python package gives")
def check_tokenizers(p):
    plain = p.words
    for name, page in tokenizers_of(p):
        path = f"{p.folder}/{name}.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(page, f, ensure_ascii=name == "byte", indent=1 if name == "piece" else None)
        texts = Words(page if name == "list" else path).of(range(len(plain)))
        p.words = [shown(texts[i]) for i in range(len(plain))]
        ok(texts[0] == "\n" and texts[5] == ("<|end|>" if name == "byte" else " \U0001f600"),
           f"{name}: {texts}")
        words = set()
        for atom in range(0, K, 3):
            text = p.show(p.run, "--atom", atom, "--top", 500, "--rows", p.rows, "--vocabulary",
                          path)
            for row, tokens in re.findall(r"^ +(\d+) +-?[\d.e-]+ (.*)$", text, re.M):
                want = p.around(int(row), True)
                ok(tokens == want, f"{name}, {row}: {tokens!r} {want!r}")
                words.add(int(p.token[int(row)]))
        ok(len(words) > 20, f"{name}: {len(words)} words")
    p.words = plain


@claim("a list of words that is shifted by a line feed in a word gives a warning; other lists give "
       "none")
def check_shifted(p):
    look = ["inspect", p.run, "--atom", 7, "--rows", p.rows, "--vocabulary", f"{p.folder}/lines"]
    whole = [f"word{i}" for i in range(50)]
    for changes, empty in (({}, ""), ({49: "[last]", 0: "[PAD]"}, ""), ({12: "\\n"}, ""),
                           ({12: "\n"}, "2 of the rows' tokens"),
                           ({12: "x\n", 31: ";\n\n"}, "3 of the rows' tokens"),
                           ({12: "\r"}, "1 of the rows' tokens")):
        words = [changes.get(i, word) for i, word in enumerate(whole)]
        with open(f"{p.folder}/lines", "w", encoding="utf-8", newline="") as f:
            f.writelines(word + "\n" for word in words)
        done = sagitta(*look)
        told = [line for line in done.stderr.splitlines() if "warning" in line]
        first = "token 13 first" if "x\n" in words else "token 12 first"
        good = all(word in told[0] for word in (empty, first, "line feed")) if told else not empty
        ok(done.returncode == 0 and good, f"{changes}: {told}")
    with open(f"{p.folder}/lines", "w", encoding="utf-8") as f:
        f.writelines(word + "\n" for word in whole[:-1])
    done = sagitta(*look)
    ok("rows have token 49" in done.stderr and "has 49 words" in done.stderr, done.stderr)


@claim("tokens come from the file of rows of the run, if it exists")
def check_found(p):
    run, words = f"{p.folder}/found", ["--atom", 7, "--top", 5]
    os.makedirs(run)
    shutil.copy(f"{p.run}/dictionary.h5", run)

    def encode(rows, where="."):
        rows = os.path.relpath(rows, where)
        need(sagitta("encode", "--rows", rows, "--dictionary", os.path.abspath(run), "--top-s", S,
                     "--output", os.path.abspath(run), "--force",
                     program=("env", "-C", where, os.path.abspath(SAGITTA))))
    own = p.show(p.run, *words)
    ok("tokens" not in own, f"rows without tokens: {own}")
    encode(p.rows)
    for more in [], ["--vocabulary", f"{p.folder}/vocab.txt"]:
        want = p.show(p.run, *words, "--rows", p.rows, *more).splitlines()[1:]
        ok(p.show(run, *words, *more).splitlines()[1:] == want, f"{more}: as with --rows")
    page = json.loads(p.show(run, *words, "--json"))
    ok(len([row["tokens"] for row in page["strongest"]]) == 5, "--json has them")
    odd = shutil.copy(p.rows, f'{p.folder}/a "#1" b.h5')
    encode(f"{odd}:/rows")
    ok("tokens" in p.show(run, *words), "a name that needs quotes, with its dataset")
    encode(p.rows, p.folder)
    text = p.show(run, *words, said="no tokens are shown: cannot open 'acts.h5'")
    ok(text.splitlines()[4:] == own.splitlines()[4:], "without them the page is as before")
    p.show(run, *words, said="give --rows FILE, the file of rows that the run read")
    encode(odd)
    with h5py.File(odd, "r+") as f:
        del f["token"]
        f["token"] = p.token[:-1]
    p.show(run, *words, said=f"has the tokens of {N - 1} rows")
    p.show(run, *words, "--vocabulary", f"{p.folder}/vocab.txt", code=65, said="by '--rows'")
    np.save(f"{p.folder}/plain.npy", h5py.File(p.rows)["rows"][:])
    encode(f"{p.folder}/plain.npy")
    done = sagitta("inspect", run, *words)
    ok(done.returncode == 0 and not done.stderr, f"no HDF5 file, no word: {done.stderr}")
    with h5py.File(f"{run}/supports.h5", "r+") as f:
        f["run"].attrs["options"] = "rows"
    ok("tokens" not in p.show(run, *words), "options that are no deck")


@claim("a separate file of tokens, .npy or HDF5, is taken if it fits the rows, and otherwise "
       "refused")
def check_alone(p):
    show = p.run, "--atom", 7, "--top", 40
    kept, p.window = p.window, np.zeros(N, "i4")  # one text for all rows
    path = f"{p.folder}/tokens.npy"
    for kind in "<i4", "<i8", "<u2", "|u1", "<u8", "|i1", "h5", "h5 u8":
        if kind[:2] == "h5":
            path = f"{p.folder}/tokens.h5:/all/of"
            with h5py.File(path.split(":")[0], "w") as f:
                f["all/of"] = p.token.astype(kind[3:] or p.token.dtype)
        else:
            np.save(path, p.token.astype(kind))
        text = p.show(*show, "--tokens", path, "--vocabulary", f"{p.folder}/vocab.txt")
        found = re.findall(r"^ +(\d+) +-?[\d.e-]+ ( ?\S.*)$", text, re.M)
        ok(len(found) == 40, f"{kind}: {len(found)} rows have tokens")
        for row, tokens in found:
            ok(tokens == p.around(int(row), True), f"{kind}, {row}: '{tokens}'")
    p.window, path = kept, f"{p.folder}/odd.npy"
    negative, large = p.token.astype("i8"), p.token.astype("u8")
    negative[:], large[:] = -1, 2 ** 63
    for token, said in ((p.token[:-1], f"has the tokens of {N - 1} rows"),
                        (p.token.astype("f4"), "type <f4 in 1 dimensions"),
                        (p.token.astype(">i4"), "type >i4"), (p.token[:, None], "in 2 dimensions"),
                        (p.token.astype("c8"), "type <c8"), (negative, "is negative"),
                        (large, "2^63 or more")):
        np.save(path, token)
        p.show(*show, "--tokens", path, code=65, said=said)
    with h5py.File(f"{p.folder}/large.h5", "w") as f:
        f["token"] = large
    p.show(*show, "--tokens", f"{p.folder}/large.h5", code=65, said="2^63 - 1 or more")
    np.save(path, p.token)
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) - 3)
    p.show(*show, "--tokens", path, code=65, said="is truncated")
    p.show(*show, "--tokens", p.rows + ":/rows", code=65, said="not a vector of integers")
    p.show(*show, "--tokens", f"{p.folder}/none.npy", code=74, said="none.npy")
    p.show(*show, "--tokens", path, "--rows", p.rows, code=2, said="give one of them")
    p.show(p.run, "--tokens", path, code=2, said="'--atom'")
    safe = shutil.copy(path, f"{p.folder}/t.safetensors")
    p.show(*show, "--tokens", safe, code=65, said="is of safetensors")


@claim("--json says what the page says")
def check_json(p):
    words = p.run, "--atom", 7, "--rows", p.rows, "--top", 6
    text, page = p.show(*words), json.loads(p.show(*words, "--json"))
    ok(page["format"] == "sagitta facts" and page["command"] == "inspect" and
       page["format_version"] == 1 and page["atoms"] == K and page["rows"] == N, f"{page}")
    ok(page["atom"] == 7 and page["density"] == (p.atom == 7).sum(), "density")
    codes = np.sort(p.code[(p.atom == 7) & (p.code != 0)])
    ok(page["codes"]["least"] == codes[0] and page["codes"]["largest"] == codes[-1] and
       page["codes"]["median"] == codes[(len(codes) + 1) // 2 - 1], f"codes {page['codes']}")
    ok(", ".join(f"{e['atom']} ({e['cosine']:.3f})" for e in page["nearest"]) in text, "nearest")
    ok([(e["row"], e["tokens"]) for e in page["strongest"]] ==
       [(int(row), tokens.strip()) for row, tokens in
        re.findall(r"^ +(\d+) +-?[\d.e-]+ ( ?\S.*)$", text, re.M)], f"{page['strongest']}")
    ok(p.show(p.run, "--atom", K, "--json", code=65) == "", "an error leaves stdout empty")


@claim("folders, rows and atoms that do not fit are refused")
def check_refused(p):
    p.show(p.run, "--atom", K, code=65, said=f"it has atoms 0 to {K - 1}")
    for atom in -1, "-0", 2**31, 2**64, "3x", "":
        p.show(p.run, f"--atom={atom}", code=2, said="atom")
    p.show(p.run, "--atom", -1, code=2, said="'--atom' is '-1': give the number of an atom")
    p.show(f"{p.run}/supports.h5", "--atom", 1, code=2, said="needs a folder")
    p.show(p.run, "--rows", p.rows, code=2, said="name it by '--atom'")
    p.show(p.run, "--atom", 1, "--vocabulary", p.rows, code=65, said="by '--rows'")
    p.show(p.run, "--atom", 1, "--rows", f"{p.run}/rows.h5", code=65, said="has no tokens")
    np.save(f"{p.folder}/rows.npy", np.zeros((2, 2), "f4"))
    p.show(p.run, "--atom", 1, "--rows", f"{p.folder}/rows.npy", code=65, said="has no tokens")
    short = shutil.copy(p.rows, f"{p.folder}/short.h5")
    with h5py.File(short, "r+") as f:
        del f["token"]
        f["token"] = p.token[:-1]
    p.show(p.run, "--atom", 1, "--rows", short, code=65, said=f"the tokens of {N - 1} rows")
    other = shutil.copytree(p.run, f"{p.folder}/other")
    need(sagitta("synth", "--n-rows", N, "--atoms", K, "--columns", P, "--top-s", S, "--seed", 9,
                 "--output", other, "--force"))
    p.show(other, "--atom", 1, code=65, said="for another dictionary")
    os.remove(f"{other}/supports.h5")
    p.show(other, "--atom", 1, code=74, said="cannot open")


with tempfile.TemporaryDirectory() as folder:
    with claim("a run is made from a rows file that has tokens"):
        place = Place(folder)
    check_figures(place)
    check_tokens(place)
    check_tokenizers(place)
    check_words(place)
    check_shifted(place)
    check_found(place)
    check_alone(place)
    check_json(place)
    check_refused(place)
done_testing()
