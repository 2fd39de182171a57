# SPDX-License-Identifier: BSD-3-Clause
"""Claim: scripts/report makes one page, which needs no other file, with the figures of a run.  In
a browser it sorts, searches and opens atoms.  Files that do not belong together are refused."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from tap import SOURCE, claim, done_testing, need, ok, peer_missing, peer_missing_all, sagitta

REPORT = os.path.join(SOURCE, "scripts/report")
N, P, K = 1500, 16, 48
BROWSERS = "chromium", "chromium-browser", "google-chrome"

# What a reader does in the browser, and what the page then shows.
READER = """<script>
const lines = () => [...document.querySelectorAll('#rows .line')].map(l => Number(l.dataset.atom));
const heads = [...document.querySelectorAll('#head button')], seen = {};
const head = name => heads.find(h => h.textContent.startsWith(name));
const type = text => { const box = document.getElementById('search'); box.value = text;
                       box.dispatchEvent(new Event('input')); return lines(); };
const click = a => document.querySelector(`#rows .line[data-atom="${a}"]`).click();
seen.first = lines();
head('largest').click(); seen.largest = lines();
head('largest').click(); seen.smallest = lines();
head('% of rows').click(); seen.density = lines();
if (head('% fires')) { head('% fires').click(); seen.fires = lines(); }
if (head('stable')) { head('stable').click(); seen.stable = lines(); }
seen.number = type('17'); seen.word = type('WORD5'); seen.none = type('nothing'); type('');
heads[0].click(); click(3);
seen.title = document.querySelector('#atom b').textContent;
seen.numbers = document.querySelector('#atom .numbers').textContent;
seen.code = [...document.querySelectorAll('#atom .code')].map(e => e.textContent);
seen.here = [...document.querySelectorAll('#atom mark.here')].map(e => e.textContent);
seen.words = [...document.querySelectorAll('#atom .words')].map(e => e.textContent);
seen.chosen = document.querySelectorAll('[aria-selected="true"]').length;
seen.hash = location.hash;
document.querySelector('#atom .near button').click();
seen.near = document.querySelector('#atom b').textContent;
document.getElementById('rows').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}));
seen.next = document.querySelector('#atom b').textContent;
const before = getComputedStyle(document.body).backgroundColor;
document.getElementById('theme').click();
seen.theme = [before, getComputedStyle(document.body).backgroundColor];
seen.lines = document.querySelectorAll('#rows .line').length;
seen.pictures = document.querySelectorAll('figure svg').length;
document.body.replaceChildren();
document.title = 'SEEN' + encodeURIComponent(JSON.stringify(seen)) + 'END';
</script></body>"""


def report(*words):
    return subprocess.run([sys.executable, REPORT, *words], capture_output=True, text=True,
                          timeout=300)


class Place:
    def __init__(self, folder):
        self.folder, self.run, self.rows = folder, f"{folder}/run", f"{folder}/acts.h5"
        done = sagitta("synth", "--n-rows", N, "--atoms", K, "--columns", P, "--top-s", 3,
                       "--noise", 0.1, "--output", folder)
        ok(done.returncode == 0, done.stderr[-300:])
        shutil.move(f"{folder}/rows.h5", self.rows)
        rng = np.random.default_rng(2)
        self.token = rng.integers(0, 60, N).astype("i4")
        with h5py.File(self.rows, "r+") as f:
            f["token"], f["window"] = self.token, (np.arange(N) // 50).astype("i4")
        with open(f"{folder}/vocab.txt", "w", encoding="utf-8") as f:
            f.write("\n".join(f"word{i}</script>" if i % 9 == 0 else f"##word{i}" if i % 7 == 0
                              else f"word{i}" if i != 40 else "" for i in range(60)))
        done = sagitta("fit", "--rows", self.rows, "--atoms", K, "--top-s", 3, "--sweeps", 4,
                       "--seeds", 2, "--detectors", "--output", self.run)
        ok(done.returncode == 0, done.stderr[-300:])
        with h5py.File(f"{self.run}/supports.h5") as f:
            g = f["supports"]
            self.codes = np.zeros((N, K), "f4")
            row = np.repeat(np.arange(N), np.diff(g["indptr"][:]))
            self.codes[row, g["indices"][:]] = g["data"][:]
            self.density = f["metrics/density"][:]
        with h5py.File(f"{self.run}/dictionary.h5") as f:
            self.fires = (self.codes > f["threshold"][:]).sum(0)

    def page(self, name="report.html"):
        with open(f"{self.run}/{name}", encoding="utf-8") as f:
            return f.read()


def data_in(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


@claim("the page is one file, needs no network or other file, and has the figures of the results")
def check_page(p):
    done = report(p.run, "--vocabulary", f"{p.folder}/vocab.txt")
    ok(done.returncode == 0 and "wrote" in done.stdout, done.stderr)
    page = p.page()
    ok(not re.search(r"https?:|<link|<img|<iframe|@import|url\(|\bsrc=|fetch\(|XMLHttp", page),
       "nothing is loaded")
    ok(len(re.findall("</script>", page)) == 2, "no token ends the script")
    data = data_in(page)
    ok(data["density"] == p.density.tolist() and data["n"] == N, "densities")
    ok(data["fires"] == p.fires.tolist() and 0 < p.fires.sum() < (p.codes > 0).sum(), "what fires")
    for atom in range(K):
        codes = p.codes[:, atom]
        alive = np.flatnonzero(codes)
        order = alive[np.lexsort((alive, -abs(codes[alive])))][:10]
        ok([entry[0] for entry in data["rows"][atom]] == order.tolist(), f"atom {atom}: rows")
        ok(np.allclose([entry[1] for entry in data["rows"][atom]], codes[order], rtol=1e-4),
           f"atom {atom}: codes")
        for row, _, before, shades, count in data["rows"][atom]:
            first = row - before
            ok(first // 50 == row // 50 == (first + count - 1) // 50, "contexts stay in windows")
            near = {int(i): c for i, c in shades.items()}
            ok(all(np.isclose(near.get(i, 0), codes[first + i], rtol=1e-4) for i in range(count)),
               f"atom {atom}: shades at row {row}")
    with h5py.File(f"{p.run}/dictionary.h5") as f:
        cosine = f["atoms"][:] @ f["atoms"][:].T - 2 * np.eye(K)  # codes are nonnegative
        held = f["fit/history"][int(f.attrs["best_sweep"]), 2]
    ok([n[0][0] for n in data["near"]] == cosine.argmax(axis=1).tolist(), "nearest atoms")
    ok(f"<b>{held:.3f}</b><span>explained of unseen rows" in page, f"unseen {held}")


def found_on(page):
    """The figures of the section "What is found", by their names."""
    part = page.split("<h2>What is found</h2>")[1].split("</section>")[0]
    return {name: value for value, name in re.findall("<b>(.*?)</b><span>(.*?)</span>", part)}


@claim("the page has the figures of other seeds, compare and evaluate, if they are of this "
       "dictionary")
def check_found(p):
    with h5py.File(f"{p.run}/dictionary.h5") as f:
        stability, cosine = f["stability"][:], f["seeds/cosine"][:].astype("f8")
    page = p.page()
    ok(np.allclose(data_in(page)["stability"], stability, atol=5e-5), "a column of the atoms")
    order = np.argsort(-p.density, kind="stable")
    found = {"PW-MCC, by 1 other seed": f"{cosine.mean():.3f}",
             "of pairs above 0.7": f"{100 * (cosine > 0.7).mean():.1f} %",
             "of pairs above 0.9": f"{100 * (cosine > 0.9).mean():.1f} %",
             "the most frequent quarter": f"{cosine[0, order[:K // 4]].mean():.3f}",
             "the least frequent quarter": f"{cosine[0, order[-(K // 4):]].mean():.3f}"}
    ok(found_on(page) == found and "the largest of 1 other seed;" in page, f"{found_on(page)}")
    other, alone = f"{p.folder}/other-seed", f"{p.folder}/alone"
    need(sagitta("fit", "--rows", p.rows, "--atoms", K, "--top-s", 3, "--sweeps", 4, "--seed", 1,
                 "--output", other), "another seed")
    need(sagitta("compare", p.run, other, "--output", f"{p.folder}/compared"), "compare")
    need(sagitta("compare", other, p.run, "--output", f"{p.folder}/turned"), "turned")
    done = sagitta("evaluate", "--rows", p.rows, "--dictionary", p.run, "--codes", p.run,
                   "--labels", p.rows, "--json")
    need(done, "evaluate")
    label = json.loads(done.stdout)["evaluated"][0]["label"]["f1"]
    with open(f"{p.folder}/evaluated.json", "w", encoding="utf-8") as f:
        f.write(done.stdout)
    shutil.copytree(p.run, alone)
    with h5py.File(f"{alone}/dictionary.h5", "r+") as f:
        del f["stability"], f["seeds"], f["threshold"]
    need(report(alone), "nothing known")
    with open(f"{alone}/report.html", encoding="utf-8") as f:
        page = f.read()
    ok("What is found" not in page and data_in(page)["stability"] is None and
       data_in(page)["fires"] is None, "without these files the page says nothing of them")
    for place in f"{p.folder}/compared/comparison.h5", f"{p.folder}/evaluated.json":
        shutil.copy(place, alone)
    need(report(alone), "both beside it")
    with open(f"{alone}/report.html", encoding="utf-8") as f:
        page = f.read()
    found["PW-MCC, by comparison"] = found.pop("PW-MCC, by 1 other seed")
    found["label F1, by one atom"] = f"{label:.3f}"
    seen = found_on(page)
    ok(all(seen.get(name) == value for name, value in found.items()), f"{seen} {found}")
    ok(data_in(page)["stability"] == data_in(p.page())["stability"], "the same pairs")
    for words, said in ((["--comparison", f"{p.folder}/turned"], "is of another dictionary"),
                        (["--comparison", p.rows], p.rows),
                        (["--evaluated", f"{p.folder}/vocab.txt"], "vocab.txt")):
        done = report(p.run, *words)
        ok(done.returncode and said in done.stderr and "Traceback" not in done.stderr,
           f"{words}: {done.stderr[-300:]}")
    done = report(other, "--evaluated", f"{p.folder}/evaluated.json")
    ok(done.returncode and "is of another dictionary" in done.stderr, done.stderr)
    shutil.copy(f"{p.folder}/evaluated.json", other)
    done = report(other)
    ok(done.returncode == 0 and "is left out: it is of another dictionary" in done.stderr,
       done.stderr)


@claim("a vocabulary in JSON gives the words of the text; a list that a line feed shifts gives a "
       "warning")
def check_vocabulary(p):
    words = [f"w{i}" for i in range(60)]
    words[7], words[8] = "\n", "a\rb"
    for name, text in (("list", json.dumps(words)), ("object", json.dumps(
            {word: i for i, word in enumerate(words)}, indent=2)), ("text", "\n".join(words))):
        with open(f"{p.folder}/{name}", "w", encoding="utf-8", newline="") as f:
            f.write(text)
        done = report(p.run, "--vocabulary", f"{p.folder}/{name}", "--output",
                      f"{p.run}/words.html")
        told = "warning: 2 of the rows' tokens have an empty line" in done.stderr
        ok(done.returncode == 0 and told == (name == "text"), f"{name}: {done.stderr}")
        found = data_in(p.page("words.html"))["words"]
        at = 1 if name == "text" else 0
        ok(all(word == (words[int(t) - at] if at == 0 or int(t) > 8 else word)
               for t, word in found.items() if int(t) != 8 + at), f"{name}: {found}")
    level = {"added_tokens": [{"id": 3, "content": "<|end|>"}], "decoder": {"type": "ByteLevel"},
             "model": {"vocab": {"\u0120river": 0, "s": 1, "\u010a": 2, "\u00c3": 4, "\u0120": 5}}}
    pieces = {"added_tokens": [], "model": {"vocab": [["\u2581river", 0], ["s", 0], ["<0x0A>", 0],
                                                      ["\u2581\u2581", -1.5]]}}
    for name, page, known in (("level", level, ["river", "##s", "##\n", "##<|end|>", "##\ufffd",
                                                "## "]),
                              ("pieces", pieces, ["river", "##s", "##\n", "##  "])):
        with open(f"{p.folder}/{name}.json", "w", encoding="utf-8") as f:
            f.write(json.dumps(page))
        need(report(p.run, "--vocabulary", f"{p.folder}/{name}.json", "--output",
                    f"{p.run}/words.html"), name)
        found = data_in(p.page("words.html"))["words"]
        ok(len(found) >= 2 and all(word == known[int(t)] for t, word in found.items()
                                   if int(t) < len(known)), f"{name}: {found}")
    with h5py.File(f"{p.folder}/alone.h5", "w") as f:
        f["of/rows"] = p.token
    np.save(f"{p.folder}/alone.npy", p.token.astype("u2"))
    beside, pages = shutil.copy(p.rows, f"{p.folder}/beside.h5"), []
    with h5py.File(beside, "r+") as f:
        del f["window"]
    for words in (("--rows", beside), ("--tokens", f"{p.folder}/alone.npy"),
                  ("--tokens", f"{p.folder}/alone.h5:/of/rows")):
        need(report(p.run, *words, "--vocabulary", f"{p.folder}/vocab.txt", "--output",
                    f"{p.run}/words.html"), words)
        pages.append(data_in(p.page("words.html")))
    ok(pages[0] == pages[1] == pages[2] and len(pages[0]["words"]) > 9, "a file of tokens alone")
    for token, said in ((p.token[:-1], "has the tokens of"), (p.token * 1.5, "whole numbers"),
                        (p.token - 100, "negative")):
        np.save(f"{p.folder}/odd.npy", token)
        done = report(p.run, "--tokens", f"{p.folder}/odd.npy")
        ok(done.returncode and said in done.stderr, f"{said}: {done.stderr}")
    done = report(p.run, "--tokens", f"{p.folder}/alone.npy", "--rows", p.rows)
    ok(done.returncode and "give one of them" in done.stderr, done.stderr)
    with open(f"{p.folder}/bad", "w", encoding="utf-8") as f:
        f.write('{"model": {"type": "BPE"}}')
    done = report(p.run, "--vocabulary", f"{p.folder}/bad")
    ok(done.returncode and "model.vocab" in done.stderr, done.stderr)
    with open(f"{p.folder}/bad", "w", encoding="utf-8") as f:
        f.write('["a", "b"] ]')
    done = report(p.run, "--vocabulary", f"{p.folder}/bad")
    ok(done.returncode and "bad'" in done.stderr, done.stderr)


@claim("the result of train has a page, with the codes that its encoder finds")
def check_train(p):
    sae, codes = f"{p.folder}/sae", f"{p.folder}/sae-codes"
    sagitta("train", "--rows", p.rows, "--atoms", K, "--top-s", 3, "--batch", 100, "--epochs", 3,
            "--output", sae)
    sagitta("encode", "--rows", p.rows, "--encoder", sae, "--output", codes)
    done = report(sae)
    ok(done.returncode and "--encoder" in done.stderr and "--codes" in done.stderr, done.stderr)
    done = report(sae, "--codes", codes, "--vocabulary", f"{p.folder}/vocab.txt")
    ok(done.returncode == 0, done.stderr)
    with open(f"{sae}/report.html", encoding="utf-8") as f:
        page = f.read()
    with h5py.File(f"{sae}/dictionary.h5") as f:
        line = f["train/history"][-1]
    with h5py.File(f"{codes}/supports.h5") as f:
        density = f["metrics/density"][:]
    ok(f"<b>{line[2]:.3f}</b><span>explained of unseen rows" in page and
       f"<b>{line[1]:.3f}</b><span>of the last batches" in page and
       "after so many steps" in page and "encoder that was trained" in page and
       data_in(page)["density"] == density.tolist(), f"{line}")
    os.rename(f"{sae}/dictionary.h5", f"{sae}/state.h5")
    done = report(sae, "--codes", codes)
    ok(done.returncode and "finish the run" in done.stderr, done.stderr)


def browse(path, browser, folder):
    """What READER has noted about a page."""
    done = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu",
         f"--user-data-dir={folder}/browser", "--window-size=1300,1000",
         "--virtual-time-budget=5000", "--dump-dom", f"file://{path}"],
        capture_output=True, text=True, timeout=120, errors="replace")
    found = re.search("SEEN(.*?)END", done.stdout)
    if not found:
        return ok(False, f"the page's program ran to its end: {done.stderr[-300:]}") and {}
    return json.loads(subprocess.run(
        [sys.executable, "-c", "import sys, urllib.parse; print(urllib.parse.unquote(sys.argv[1]))",
         found[1]], capture_output=True, text=True, check=True).stdout)


@claim("in a browser the page sorts, searches, opens atoms, and has a dark mode")
def check_browser(p):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        return peer_missing("there is no Chromium (Debian's package chromium)")
    page, path = p.page(), f"{p.run}/read.html"
    with open(path, "w", encoding="utf-8") as f:
        f.write(page.replace("</body>", READER))
    seen, data = browse(path, browser, p.folder), data_in(page)
    if not seen:
        return None
    part = len(seen["first"])
    ok(seen["first"] == list(range(part)) and 20 < part <= K, f"lines {seen['first']}")
    largest = sorted(range(K), key=lambda a: (-data["largest"][a], a))
    ok(seen["largest"] == largest[:part], "by the largest code, falling")
    ok(seen["smallest"] == sorted(range(K), key=lambda a: (data["largest"][a], a))[:part],
       "rows rise after a second click")
    ok(seen["density"] == sorted(range(K), key=lambda a: (-p.density[a], a))[:part],
       "a click sorts by density")
    ok(seen["fires"] == sorted(range(K), key=lambda a: (-p.fires[a], a))[:part],
       "a click sorts by firing")
    ok(f"{100 * p.fires[3] / N:.2f} %fires" in seen["numbers"], f"of the atom: {seen['numbers']}")
    stable = data["stability"]
    ok(seen["stable"] == sorted(range(K), key=lambda a: (-stable[a], a))[:part],
       "a click sorts by stability")
    ok(f"{stable[3]:.3f}stability" in seen["numbers"], f"of the atom: {seen['numbers']}")
    ok(seen["number"] == [17] and seen["none"] == [], f"17 finds {seen['number']}")
    named = [a for a in range(K) if any(p.token[row] == 5 for row, *_ in data["rows"][a])]
    ok(seen["word"] and set(seen["word"]) & set(named), f"word5 finds {seen['word']} of {named}")
    rows = data["rows"][3]
    ok(seen["title"] == "Atom 3" and seen["hash"] == "#3" and seen["chosen"] == 1, "atom 3 is open")
    ok(len(seen["code"]) == len(rows) > 3 and
       all(text.endswith(f"row {row[0]}") for text, row in zip(seen["code"], rows)),
       f"its rows {seen['code']}")
    own = [p.token[row[0]] for row in rows]
    named = [("40" if t == 40 else f"word{t}") for t in own]
    ok(all(word in here for here, word in zip(seen["here"], named)),
       f"their tokens {seen['here']}")
    ok(all(len(re.findall("word|40", text)) == row[4] for text, row in zip(seen["words"], rows)),
       "the page shows all tokens around them")
    near = data["near"][3][0][0]
    ok(seen["near"] == f"Atom {near}" and seen["next"] == f"Atom {min(near + 1, K - 1)}",
       f"the nearest atom {seen['near']}, then the line below {seen['next']}")
    ok(seen["theme"][0] != seen["theme"][1], f"colours {seen['theme']}")
    ok(seen["pictures"] == 5, f"{seen['pictures']} pictures")
    return None


@claim("for ten thousand atoms the page is small, and the browser keeps only the lines on the "
       "screen")
def check_many(p):
    k, n, s = 10_000, 20_000, 8
    rng = np.random.default_rng(3)
    big = f"{p.folder}/big"
    os.mkdir(big)
    atoms = rng.standard_normal((k, P)).astype("f4")
    with h5py.File(f"{big}/dictionary.h5", "w") as f:
        f["atoms"] = atoms / np.linalg.norm(atoms, axis=1)[:, None]
    with h5py.File(f"{big}/supports.h5", "w") as f:
        g = f.create_group("supports")
        g.attrs["shape"] = [n, k]
        g["indptr"] = np.arange(n + 1) * s
        g["indices"] = (rng.integers(0, k - 9, (n, 1)) + np.arange(s)).astype("i4").ravel()
        g["data"] = rng.standard_normal(n * s).astype("f4")
    with h5py.File(f"{p.folder}/big.h5", "w") as f:
        f["token"] = rng.integers(0, 30_000, n).astype("i4")
    done = report(big, "--rows", f"{p.folder}/big.h5")
    size = os.path.getsize(f"{big}/report.html")
    ok(done.returncode == 0 and size < 16e6, f"{size} bytes {done.stderr}")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser:
        with open(f"{big}/report.html", encoding="utf-8") as f:
            page = f.read().replace("</body>", READER)
        with open(f"{big}/read.html", "w", encoding="utf-8") as f:
            f.write(page)
        seen = browse(f"{big}/read.html", browser, p.folder)
        ok(seen and seen["lines"] < 100, f"{seen.get('lines')} lines in the document")


@claim("files that do not belong together are refused, and the message says what to do")
def check_refused(p):
    other = f"{p.folder}/other"
    os.mkdir(other)
    shutil.copy(f"{p.run}/supports.h5", other)
    for words, said in (
            ([other], "copy its dictionary.h5"),
            ([p.folder], "no '"),
            ([p.run, "--rows", f"{p.run}/dictionary.h5"], "has no tokens"),
            ([p.run, "--rows", f"{p.folder}/vocab.txt"], "has no tokens"),
            ([p.run, "--vocabulary", f"{p.folder}/none.txt"], "none.txt"),
            ([], "usage")):
        done = report(*words)
        ok(done.returncode and said in done.stderr and "Traceback" not in done.stderr,
           f"{words}: {done.stderr[-300:]}")
    with h5py.File(f"{other}/dictionary.h5", "w") as f:
        f["atoms"] = np.eye(P, dtype="f4")
    done = report(other)
    ok(done.returncode and "they do not belong together" in done.stderr, done.stderr)
    shutil.copy(f"{p.run}/dictionary.h5", other)
    ok(report(other).returncode == 0, "copies of both")
    with h5py.File(f"{other}/dictionary.h5", "r+") as f:
        f["atoms"][3] *= -1
    done = report(other)
    ok(done.returncode and "are for another dictionary" in done.stderr, done.stderr)
    np.save(f"{other}/odd.npy", np.random.default_rng(4).standard_normal((60, 7)).astype("f4"))
    for words in (["seed", "--atoms", 9, "--output", other],
                  ["encode", "--dictionary", other, "--top-s", 2, "--output", other]):
        need(sagitta(*words, "--rows", f"{other}/odd.npy", "--force"), words[0])
    ok(report(other).returncode == 0, "columns that four do not divide")
    os.rename(p.rows, p.rows + ".gone")
    ok(report(p.run, "--output", f"{p.run}/plain.html").returncode == 0 and
       data_in(p.page("plain.html"))["tokens"] == [], "without its rows a page has no tokens")
    done = report(p.run, "--vocabulary", f"{p.folder}/vocab.txt")
    ok(done.returncode and "give their file by '--rows'" in done.stderr, done.stderr)


if subprocess.run([sys.executable, "-c", "import h5py, numpy"], check=False).returncode:
    peer_missing_all("h5py and NumPy are not installed")
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder_:
    with claim("a fit of rows that have tokens is made"):
        place = Place(folder_)
    check_page(place)
    check_found(place)
    check_vocabulary(place)
    check_train(place)
    check_browser(place)
    check_many(place)
    check_refused(place)
done_testing()
