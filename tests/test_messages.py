# SPDX-License-Identifier: BSD-3-Clause
"""Claim: no message of a failure is longer than two lines of 100 columns, without its values.  A
message that lists the bytes that a job needs may have three lines."""
import glob
import os
import re

from tap import SOURCE, claim, done_testing, ok

LINE, LINES, LEDGER = 100, 2, 3
TEXT = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(r"\b(?:CHECK|FAIL|status_fail)\(.*?\bERR_[A-Z]+\s*,\s*(?:__FILE__, __LINE__,\s*)?"
                  rf"((?:{TEXT}\s*|ANEW\s*)+)", re.S)


def messages():
    """Yields (file, text) of every message in a call of CHECK, FAIL or status_fail."""
    with open(f"{SOURCE}/src/base/status.h") as f:
        anew = re.search(rf"#define ANEW ({TEXT})", f.read())[1]
    for path in sorted(glob.glob(f"{SOURCE}/src/**/*.[ch]", recursive=True)):
        with open(path) as f:
            source = re.sub(rf"({TEXT}|'(?:[^'\\]|\\.)')|/\*.*?\*/", lambda m: m[1] or "", f.read(),
                            flags=re.S)
        for found in CALL.finditer(source):
            text = found[1].replace("ANEW", anew)
            yield os.path.basename(path), "".join(t[1:-1] for t in re.findall(TEXT, text))


@claim("each message has at most two lines")
def check_lengths():
    found = list(messages())
    ok(len(found) > 900, f"{len(found)} messages")
    for name, text in found:
        text = re.sub(r"%[-.*\d]*l*[a-z]", "", text).replace('\\"', '"')
        lines = LEDGER if re.search(r"bytes (are needed|on the)|needs +bytes", text) else LINES
        ok(len(text) <= lines * LINE, f"{name}: {len(text)} characters: {text}")
        ok(text.count("\\n") < LINES, f"{name}: line feeds: {text}")


check_lengths()
done_testing()
