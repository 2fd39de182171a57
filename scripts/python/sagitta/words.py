# SPDX-License-Identifier: BSD-3-Clause
"""Tokens as text: the words of a vocabulary, without the marks that its tokenizer puts in them."""
import json
import os
import re

import numpy as np

from .errors import InputError

SPACE = "\u2581"  # the mark of SentencePiece before a word
BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def _byte_marks():
    """The byte that each character of a byte-level vocabulary stands for (the table of GPT-2).  A
    printable character stands for its own byte; characters from 256 on stand for the other
    bytes."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [b for b in range(256) if b not in own]
    return {**{chr(b): b for b in own}, **{chr(256 + i): b for i, b in enumerate(other)}}


MARKS = _byte_marks()


def _bytes(token):
    return bytes(MARKS[c] for c in token).decode("utf-8", "replace") \
        if all(c in MARKS for c in token) else token


def _pieces(token):
    found = BYTE.fullmatch(token)
    if found:
        return bytes([int(found[1], 16)]).decode("utf-8", "replace")
    return token.replace(SPACE, " ")


STYLES = {"byte": _bytes, "piece": _pieces,
          "word": lambda token: token[2:] if token.startswith("##") else " " + token}


def style_of(tokens):
    """The way in which a vocabulary marks the beginnings of words, judged by its tokens."""
    tokens = [token for token in tokens if token]
    if any(token[0] in "\u0120\u010a" for token in tokens):  # a blank and a line feed
        return "byte"
    return "piece" if any(SPACE in token for token in tokens) else "word"


def _types(node):
    """All values of "type" in a part of a tokenizer.json and in the parts within it."""
    if isinstance(node, dict):
        yield node.get("type")
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _types(part)


def _of_json(path):
    """(tokens by number, tokens without marks, style) of a tokenizer.json or a vocab.json."""
    try:
        with open(path, encoding="utf-8") as f:
            page = json.load(f)
    except (OSError, ValueError) as error:
        raise InputError(f"'{path}' is no vocabulary: {error}: give a tokenizer.json or a "
                         "vocab.json") from error
    page = page if isinstance(page, dict) else {}
    is_words = not isinstance(page.get("model"), dict)  # "model" may also be a word of a vocab.json
    model = {"vocab": page} if is_words and page else page.get("model", {})
    vocabulary, plain, style = model.get("vocab"), {}, None
    if isinstance(vocabulary, list):  # of Unigram: [token, score]
        vocabulary = {one[0]: i for i, one in enumerate(vocabulary)}
    if not isinstance(vocabulary, dict) or not all(isinstance(i, int) for i in vocabulary.values()):
        raise InputError(f"'{path}' has no vocabulary: give a tokenizer.json, whose model.vocab "
                         "has the number of each token, or a vocab.json")
    if not is_words:
        plain = {one["id"]: one["content"] for one in page.get("added_tokens", ())}
        types = {*_types(page.get("pre_tokenizer")), *_types(page.get("decoder"))}
        style = "byte" if "ByteLevel" in types else None
    return {i: token for token, i in vocabulary.items()}, plain, style


def _of_file(path):
    if path.endswith(".json"):
        return _of_json(path)
    try:
        with open(path, encoding="utf-8", newline="\n") as f:
            return dict(enumerate(f.read().removesuffix("\n").split("\n"))), {}, None
    except (OSError, ValueError) as error:
        raise InputError(f"'{path}' is no vocabulary: {error}: give a tokenizer.json, a "
                         "vocab.json, or a text with a word a line") from error


class Words:
    """The texts of tokens.  The tokenizer is a tokenizer.json, a vocab.json, a text file with one
    word per line, a list of words, an object with convert_ids_to_tokens(), a tokenizers.Tokenizer,
    or None, for which tokens are shown as numbers.  The text of a token that begins a word begins
    with a blank."""

    def __init__(self, tokenizer=None):
        self.ask, self.plain, self.style, self.name = None, {}, None, "the vocabulary"
        self.tokens = {}
        if hasattr(tokenizer, "convert_ids_to_tokens"):
            self.ask = tokenizer.convert_ids_to_tokens
        elif hasattr(tokenizer, "id_to_token"):
            self.ask = lambda numbers: [tokenizer.id_to_token(i) for i in numbers]
        elif isinstance(tokenizer, (str, os.PathLike)):
            self.name = f"'{os.fspath(tokenizer)}'"
            self.tokens, self.plain, self.style = _of_file(os.fspath(tokenizer))
        elif tokenizer is not None:
            self.tokens = dict(enumerate(tokenizer))
        self.is_empty = tokenizer is None

    def _asked(self, numbers):
        """The tokenizer's tokens for these numbers, None for unknown ones.  SentencePiece raises at
        an unknown number, so each is then asked for by itself."""
        try:
            return self.ask(numbers)
        except (IndexError, KeyError, OverflowError):
            return [self._asked([i])[0] for i in numbers] if len(numbers) > 1 else [None]

    def of(self, numbers, beyond=False):
        """The texts of numbers, as a dict; unknown numbers raise an InputError, a ValueError.
        beyond: show them as <50277> instead."""
        numbers = [int(i) for i in np.unique(numbers)]
        if self.is_empty:
            return {i: f" {i}" for i in numbers}
        if self.ask:
            self.tokens.update((i, token) for i, token in zip(numbers, self._asked(numbers))
                               if token is not None)
        known = self.tokens.keys() | self.plain.keys()
        lost = [i for i in numbers if i not in known]
        if lost and not beyond:
            raise InputError(f"rows have token {lost[0]}, and {self.name} has "
                             f"{len(known)} words, none of which has this number: is it the "
                             "vocabulary of these rows?")
        # the tokens of the first call decide the style for all later calls
        self.style = self.style or style_of(self.tokens.values())
        style = STYLES[self.style]
        return {i: f"<{i}>" if i not in known else self.plain[i] if i in self.plain else
                style(str(self.tokens[i])) for i in numbers}
