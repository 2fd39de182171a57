# SPDX-License-Identifier: BSD-3-Clause
"""Claim: sagitta.Features finds the rows, words and contexts that a plain search of dense codes
finds, with tokens for rows of any format.  It reads vocabularies of every kind as the package
tokenizers does.  Pages are escaped and small."""
import html.parser
import json
import os
import sys
import tempfile
import tracemalloc

import h5py
import numpy as np

from peer import PACKAGE  # noqa: F401, which puts the package in the path
from tap import SAGITTA, SOURCE, claim, done_testing, ok, peer_missing, raised
from tap import sagitta as program

os.environ["SAGITTA_PROGRAM"] = os.path.abspath(SAGITTA)

try:
    import tokenizers
except ImportError:  # the package that tests compare with is missing
    tokenizers = None
    if os.environ.get("PEER_PYTHON", sys.executable) != sys.executable:
        os.execv(os.environ["PEER_PYTHON"], [os.environ["PEER_PYTHON"], *sys.argv])

import sagitta  # noqa: E402, which is given its program
from sagitta.words import Words  # noqa: E402

ROWS = os.path.join(SOURCE, "input", "minilm-l3-kjv-8k.h5")
WORDS = os.path.join(SOURCE, "input", "minilm-l3-kjv-words.txt")
N, K, CONTEXT = 1024, 32, 5
LARGEST = 200_000


def shown(word):
    return word[2:] if word.startswith("##") else " " + word


@claim("top rows, contexts, quantiles, words and rows are those of dense codes")
def check_search(run, tokens, windows):
    with open(WORDS, encoding="utf-8") as f:
        words = f.read().split("\n")
    F = sagitta.Features(run, tokens, WORDS, windows, labels={3: "three"})
    dense = run.codes.toarray()
    ok(len(F) == K, "atoms")
    for atom in range(0, K, 5):
        best = sorted(np.flatnonzero(dense[:, atom]), key=lambda i, a=atom: (-abs(dense[i, a]), i))
        top = F[atom].top(n=7, context=CONTEXT)
        ok([one.row for one in top] == best[:7] and
           [one.code for one in top] == [float(dense[i, atom]) for i in best[:7]] and
           F[atom].rows == len(best) and F[atom].share == len(best) / N, f"rows of {atom}")
        for one in top:
            near = [i for i in range(one.row - CONTEXT, one.row + CONTEXT + 1)
                    if 0 <= i < N and windows[i] == windows[one.row]]
            text = ["".join(shown(words[tokens[i]]) for i in part) for part in (
                [i for i in near if i < one.row], [one.row], [i for i in near if i > one.row])]
            ok([one.before, one.token, one.after] == text, f"atom {atom}, row {one.row}: {one}")
        middle = F[atom].top(n=1, quantile=0.5)
        ok([one.row for one in middle] == best[(len(best) - 1) // 2:][:1], "the median")
    word = words[np.bincount(tokens).argmax()]
    here = np.array([words[t] == word for t in tokens])
    sizes = np.abs(dense.astype("f8"))
    part = sizes[here].sum(0) / np.maximum(sizes.sum(0), 1e-300)
    found = F.search(" " + word.upper(), n=4)
    ok([one.atom for one in found] == np.argsort(-part, kind="stable")[:4].tolist(), word)
    ok(F.search("no such word") == [], "a word that is not there")
    row = F.for_row(11)
    ok([code for _, code in row] == sorted(dense[11][dense[11] != 0], key=lambda c: -abs(c)) and
       all(dense[11, one.atom] == code for one, code in row), "a row")
    ok("three" in repr(F[3]) and "three" in F[3]._repr_html_(), "labels")


@claim("tokens are found in an HDF5 file of rows, and taken from .npy, datasets and tensors")
def check_tokens(at, run, tokens, windows):
    F = sagitta.Features(sagitta.open(f"{at}/h5"))
    ok((F.tokens == tokens).all() and (F.documents == windows).all(), "those of the rows")
    np.save(f"{at}/t.npy", tokens)
    with h5py.File(f"{at}/t.h5", "w") as f:
        f["a/ids"] = tokens
    for given in (f"{at}/t.npy", f"{at}/t.h5:/a/ids", tokens.reshape(4, -1), tokens.tolist(),
                  tokens.astype("u2")):
        ok((sagitta.Features(run, given).tokens == tokens).all(), f"{type(given)}")
    ok(F[0].top(1)[0].token == f" {tokens[F[0].top(1)[0].row]}", "numbers without a vocabulary")
    raised(ValueError, ["tokens=", "no tokens"], sagitta.Features, run)
    raised(ValueError, ["3", "1024 rows"], sagitta.Features, run, [1, 2, 3])
    raised(ValueError, ["float64"], sagitta.Features, run, np.zeros(N))
    raised(ValueError, ["t.npz", ".npy"], sagitta.Features, run, f"{at}/t.npz")
    raised(ValueError, ["b/ids"], sagitta.Features, run, f"{at}/t.h5:/b/ids")
    raised(ValueError, ["documents"], sagitta.Features, run, tokens, documents=[1])
    raised(ValueError, [str(tokens.max()), "2 words"], sagitta.Features, run,
           np.where(tokens == tokens.max(), tokens, 0), ["a", "b"])
    raised(IndexError, ["0 to 31"], F.__getitem__, K)
    raised(IndexError, ["0 to 1023"], F.for_row, N)
    raised(ValueError, ["quantile"], F[0].top, quantile=2)


class Asked:
    """Like tokenizers of transformers, which return None for a number without a token."""

    def convert_ids_to_tokens(self, numbers):
        return [["river", "##s"][i] if i < 2 else None for i in numbers]


class Pieces(list):
    """Like slow tokenizers of SentencePiece, which raise IndexError for a number without a
    token."""

    def convert_ids_to_tokens(self, numbers):
        return [self[i] for i in numbers]


def written(at, page, name="tokenizer"):
    with open(f"{at}/{name}.json", "w", encoding="utf-8") as f:
        json.dump(page, f)
    return f"{at}/{name}.json"


@claim("byte-level, WordPiece and SentencePiece vocabularies become text, with line feeds")
def check_vocabularies(at):
    vocabulary = {"\u0120river": 0, "s": 1, "\u010a": 2, "\u00c3\u00a9": 3, "\u00c3": 4, "<": 5}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": True}
    page = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None,
            "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "added_tokens": [{"id": 6, "content": "<|end|>", "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True}],
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "merges": [],
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary}}
    path = written(at, page)
    texts = Words(path).of(range(7))
    ok([texts[i] for i in range(7)] == [" river", "s", "\n", "\u00e9", "\ufffd", "<", "<|end|>"],
       f"byte-level: {texts}")
    raised(ValueError, ["token 9", "7 words"], Words(path).of, [1, 9])
    if tokenizers:
        theirs = tokenizers.Tokenizer.from_file(path)
        ok(all(theirs.decode([i], skip_special_tokens=False) == texts[i] for i in range(7)),
           "the words of tokenizers")
        ok(Words(theirs).of(range(7)) == texts, f"its object: {Words(theirs).of(range(7))}")
        raised(ValueError, ["token 9"], Words(theirs).of, [1, 9])
    else:
        peer_missing("the package tokenizers is not installed")
    for what, given, wanted in (
            ("Unigram", written(at, {"model": {"vocab": [["\u2581river", 0], ["s", 0],
                                                         ["<0x0A>", 0]]}}, "unigram"),
             [" river", "s", "\n"]),
            ("vocab.json", written(at, {"river": 0, "##s": 1, "\n": 2, "model": 3}, "vocab"),
             [" river", "s", " \n"]),
            ("a list", ["river", "##s", ""], [" river", "s", " "]),
            ("an object", Asked(), [" river", "s"]), ("none", None, [" 0", " 1"])):
        texts = Words(given).of(range(len(wanted)))
        ok(list(texts.values()) == wanted, f"{what}: {texts}")
    raised(ValueError, ["token 2"], Words(Asked()).of, [2])
    raised(ValueError, ["no vocabulary", "model.vocab"], Words, written(at, {"model": {}}))
    raised(ValueError, ["no vocabulary"], Words, f"{at}/gone.json")


class Balanced(html.parser.HTMLParser):
    """Counts the elements that are open.  Elements of tables need no end."""

    def __init__(self):
        super().__init__()
        self.open, self.count = [], 0

    def handle_starttag(self, tag, _):
        self.count += 1
        if tag not in ("tr", "td", "th"):
            self.open.append(tag)

    def handle_startendtag(self, tag, _):
        self.count += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


@claim("the page of an atom has the figures of dense codes, atoms and the unembedding")
def check_facts(at, run, tokens):
    random = np.random.default_rng(0)
    vocabulary = [f"w{i}" for i in range(int(tokens.max()) + 1)]
    atoms, dense = run.dictionary.atoms.astype("f8"), run.codes.toarray()
    unembedding = random.standard_normal((len(vocabulary), atoms.shape[1]))
    F = sagitta.Features(run, tokens, vocabulary, unembedding=unembedding)
    cosines, logits = atoms @ atoms.T, unembedding @ atoms.T
    for atom in range(0, K, 7):
        feature, codes = F[atom], dense[:, atom].astype("f8")
        counts, edges = feature.histogram(12)
        want = np.histogram(dense[codes != 0, atom], 12)
        ok((counts == want[0]).all() and (edges == want[1]).all(), f"histogram of {atom}")
        near = [i for i in np.argsort(-abs(cosines[atom]), kind="stable") if i != atom][:4]
        ok([one.atom for one, _ in feature.nearest()] == near and
           np.allclose([c for _, c in feature.nearest()], cosines[atom, near]), f"near {atom}")
        best = np.argsort(-logits[:, atom], kind="stable")[:8]
        ok([word for word, _ in feature.raises()] == [f" w{i}" for i in best] and
           np.allclose([v for _, v in feature.raises()], logits[best, atom]), f"{atom} raises")
        parts = np.bincount(tokens, abs(codes), len(vocabulary)) / abs(codes).sum()
        most = [part for _, part in feature.words()]
        ok(np.allclose(most, np.sort(parts)[::-1][:3]) and
           feature.words()[0][0] == f" w{parts.argmax()}", f"words of {atom}: {most}")
    page = F[0]._repr_html_()
    ok(all(word in page for word in ("<svg", "mostly on", "nearest", "raises")), page[:400])
    ok(F[0].stability is None and "stability" not in page, "no other seed")
    encoded = sagitta.encode(f"{at}/x.npy", run, progress=None)
    again = sagitta.Features(encoded, tokens)
    ok([one.atom for one, _ in again[3].nearest()] == [one.atom for one, _ in F[3].nearest()],
       "atoms of what encode() was given")
    for given in run.dictionary, run.dictionary.atoms:
        object_codes = sagitta.encode(f"{at}/x.npy", given, progress=None)
        known = sagitta.Features(object_codes, tokens)
        ok((known.atoms == run.dictionary.atoms).all() and known.stability is None, "an object")
    seeds = sagitta.fit(f"{at}/x.npy", atoms=K, top_s=2, sweeps=1, seeds=2, holdout=0,
                        progress=None)
    stable = sagitta.Features(seeds, tokens)
    with h5py.File(f"{seeds.path}/dictionary.h5") as f:
        want = f["stability"][:]
    ok(stable[5].stability == float(want[5]) and "stability" in stable[5]._repr_html_(), "stable")
    raised(ValueError, ["unembedding.T"], sagitta.Features, run, tokens,
           unembedding=unembedding.T)
    raised(ValueError, [f"have {atoms.shape[1]} columns"], sagitta.Features, run, tokens,
           unembedding=unembedding[:, 1:])
    padded = np.concatenate([unembedding, 9 * atoms[:2]])  # a model has more rows than tokens
    for words in vocabulary, Pieces(vocabulary):
        F = sagitta.Features(run, tokens, words, unembedding=padded)
        ok([word for word, _ in F[0].raises(2)] == [
            f"<{len(vocabulary)}>", f" w{logits[:, 0].argmax()}"], f"padding: {F[0].raises(2)}")
        F.save_html(f"{at}/padded.html", [0])
    check_memory(run, tokens, unembedding)


def check_memory(run, tokens, unembedding):
    """A large matrix must not be converted as a whole."""
    large = np.tile(unembedding.astype("f2"), (8_000_000 // unembedding.size + 1, 1))
    F = sagitta.Features(run, tokens, unembedding=large)
    tracemalloc.start()
    raises = F[0].raises(1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    want = (unembedding.astype("f2").astype("f8") @ run.dictionary.atoms[0].astype("f8")).max()
    ok(most < large.nbytes * 2 and np.isclose(raises[0][1], want), f"{most} of {large.nbytes}")


@claim("pages are escaped, need no network, and are small")
def check_pages(at, run, tokens):
    words = [f"<script>{i}&\n" for i in range(int(tokens.max()) + 1)]
    F = sagitta.Features(run, tokens, words, labels={2: "<b>"})
    page = F[2]._repr_html_()
    ok("<script" not in page and "<b>" not in page and "&lt;script&gt;" in page and
       "&lt;b&gt;" in page and "http" not in page and len(page) < LARGEST, page[:300])
    parsed = Balanced()
    parsed.feed(page)
    ok(not parsed.open and parsed.count > 20, f"elements end in their order: {parsed.open}")
    F.save_html(f"{at}/page.html")
    with open(f"{at}/page.html", encoding="utf-8") as f:
        page = f.read()
    ok(page.count("<table") == K and len(page) < LARGEST, f"{len(page)} bytes")


with tempfile.TemporaryDirectory() as at:
    with h5py.File(ROWS) as f:
        x, tokens = f["rows"][:N], f["token"][:N]
    windows = np.arange(N) // 7  # short windows, so that contexts reach their ends
    with h5py.File(f"{at}/x.h5", "w") as f:
        f["rows"], f["token"], f["window"] = x, tokens, windows
    np.save(f"{at}/x.npy", x)
    for name, rows in (("h5", "x.h5"), ("npy", "x.npy")):
        program("fit", "--rows", f"{at}/{rows}", "--atoms", K, "--top-s", 4, "--sweeps", 2,
                "--holdout-share", 0, "--output", f"{at}/{name}")
    run = sagitta.open(f"{at}/npy")
    check_search(run, tokens, windows)
    check_tokens(at, run, tokens, windows)
    check_vocabularies(at)
    check_facts(at, run, tokens)
    check_pages(at, run, tokens)
done_testing()
