# SPDX-License-Identifier: BSD-3-Clause
"""Faults in files, for tests/soak_faults: flipped bits, cut files, zeroed ranges, holes, and blocks
that are swapped or come from an older version.  Every kind of file gets them, for each of its
readers."""
import os

from soak_data import FOREIGN, SHOWN, contents_of, difference
from soak_try import HARMLESS, REFUSED, UNDETECTABLE, VERIFY, WRONG

# Files whose hashes only verify compares (doc/formats.md).  Commands accept chunks of these files
# if the checksums are right.
HASHED_BY_VERIFY = ("in/rows.h5", "in/rows2.h5", "in/many.h5", "in/held.h5", "in/systems.h5",
                    "in/mixed.h5")
RESUMED = "dictionary.h5", "supports.h5"  # files of an earlier refit, which --resume reads


def reads(data, foreign):
    """(command, file) for every input, and (None, file) for files that no command computes from."""
    pairs = [(command, f"in/{name}") for command in data.commands.values()
             for name in command.inputs if (name in FOREIGN) == foreign]
    if not foreign:
        pairs += [(None, f"in/{name}") for name in SHOWN for _ in range(4)]
        pairs += [(data.commands["refit-3"], f"out/{name}") for name in RESUMED for _ in range(3)]
    return sorted(pairs, key=lambda pair: (pair[0].name if pair[0] else "", pair[1]))


def some_range(t, size, chunks):
    """The first byte and the length of a whole chunk, of a block of the disk, or of a few bytes."""
    way = t.random.choice(("chunk", "block", "bytes"))
    if way == "chunk" and chunks:
        return t.random.choice(chunks)
    if way == "block":
        length = t.random.choice((512, 4096))
        return t.random.randrange((size + length - 1) // length) * length, length
    at = t.random.randrange(size)
    return at, min(size - at, int(2 ** t.random.uniform(0, 11)))


def flip(t, content, chunks, older):
    for _ in range(t.random.choice((1, 1, 1, 2, 3))):
        # Half of the flips are in metadata, which have no checksum.
        at = t.random.randrange(len(content) if t.random.random() < 0.5 else
                                min(len(content), 4096))
        bit = t.random.randrange(8)
        content[at] ^= 1 << bit
        t.say(f"flip bit {bit} of byte {at}")


def cut(t, content, chunks, older):
    size = len(content)
    at = t.random.choice((t.random.randrange(size), size - 1 - int(2 ** t.random.uniform(0, 8)),
                          t.random.randrange(size) // 512 * 512))
    del content[max(at, 0):]
    t.say(f"cut after {max(at, 0)} of {size} bytes")


def zero(t, content, chunks, older):
    at, length = some_range(t, len(content), chunks)
    length = min(length, len(content) - at)
    content[at:at + length] = bytes(length)
    t.say(f"zero {length} bytes from {at}")


def swap(t, content, chunks, older):
    """Swap two chunks of one size, or two blocks."""
    pairs = [(one, two) for one in chunks for two in chunks if one < two and one[1] == two[1]]
    if pairs and t.random.random() < 0.5:
        (one, length), (two, _) = t.random.choice(pairs)
    else:
        length = min(t.random.choice((64, 512, 4096)), len(content) // 2)
        one = t.random.randrange(len(content) // length) * length
        two = t.random.randrange(len(content) // length) * length
    length = min(length, len(content) - max(one, two))
    a, b = content[one:one + length], content[two:two + length]
    content[one:one + length], content[two:two + length] = b, a
    t.say(f"swap {length} bytes at {one} and {two}")


def stale(t, content, chunks, older):
    """Undo a write: a range gets the bytes of the older version."""
    at, length = some_range(t, min(len(content), len(older)), chunks)
    piece = older[at:at + length][:len(content) - at]
    content[at:at + len(piece)] = piece
    t.say(f"{len(piece)} bytes from {at} are those of the older version")


DAMAGES = {"flip": flip, "cut": cut, "zero": zero, "swap": swap, "stale": stale}


def write_holes(path, content):
    """Write the same bytes, with holes instead of blocks of zeros."""
    with open(path, "wb") as f:
        for at in range(0, len(content), 4096):
            block = content[at:at + 4096]
            if any(block):
                f.seek(at)
                f.write(block)
        f.truncate(len(content))


def damage(t, kind, name, source):
    """Damage the file.  Returns whether its bytes changed."""
    with open(t.data.at("a", source), "rb") as f:
        sound = f.read()
    with open(t.data.at("b", source), "rb") as f:
        older = f.read()
    content = bytearray(sound)
    t.say(name + ":")
    DAMAGES[kind](t, content, t.data.chunks.get(("a", os.path.basename(source)), ()), older)
    if kind == "zero" and t.random.random() < 0.5:
        write_holes(t.at(name), content)
    else:
        with open(t.at(name), "wb") as f:
            f.write(content)
    t.guard(name)
    return content != sound


def file_fault(t, kind, foreign=False):
    command, name = t.random.choice(reads(t.data, foreign))
    resumed = name.startswith("out/")
    source = f"done/refit/{os.path.basename(name)}" if resumed else name
    if command:
        t.take(command)
    if resumed:
        t.place_result("refit", "a")
        before = {n: contents_of(t.at(f"out/{n}")) for n in command.results}
    os.makedirs(os.path.dirname(t.at(name)), exist_ok=True)
    changed = damage(t, kind, name, source)
    if resumed:
        del t.placed[name]  # a run that succeeds replaces it
        before[os.path.basename(name)] = contents_of(t.at(name))
    sound = contents_of(t.data.at("a", source)) if name.endswith(".h5") else None
    read = contents_of(t.at(name)) if name.endswith(".h5") else None
    passed = show_file(t, name, source, sound, read, changed) if not foreign else None
    if not command:
        return t.find(REFUSED if passed != 0 else HARMLESS)
    words = command.words + (["--resume"] if resumed else [])
    done = t.run(words)
    if done.code == 0 and foreign and kind != "cut":
        return t.find(judge_other(t, command, UNDETECTABLE))
    if done.code == 0 and passed == 65 and name in HASHED_BY_VERIFY:
        return t.find(judge_other(t, command, VERIFY))
    t.judge(command, done, t.data.states("a", command.name), before if resumed else None)
    if passed == 0 and done.code in (65, 74) and not resumed:
        t.find(WRONG, f"verify passes {name}, but {done.told()}")
    return None


def judge_other(t, command, outcome):
    """The command may have used wrong values, if its results are complete.  Returns HARMLESS if the
    results are right, otherwise `outcome`."""
    now = {name: contents_of(t.at(f"out/{name}")) for name in command.results}
    t.check_placed()
    t.check_litter(command.results)
    for name, content in now.items():
        if name == "state.h5" and content is None:  # the last sweep was the best one
            continue
        if content is None or "unreadable" in content:
            t.find(WRONG, f"exit 0, but {name} is missing or not whole")
    return HARMLESS if now == t.data.expected["a", command.name] else outcome


def show_file(t, name, source, sound, read, changed):
    """Run verify on the damaged file, and inspect or diff.  Returns the exit code of verify."""
    verify = t.show(["verify", name])
    if verify.code == 0 and read != sound:
        t.find(WRONG, f"verify passes {name}, which has other contents: {difference(sound, read)}")
    if t.random.random() < 0.5:
        inspect = t.show(["inspect", name])
        if verify.code == 0 and inspect.code != 0:
            t.find(WRONG, f"verify passes {name}, but inspect does not: {inspect.told()}")
    else:
        other = t.show(["diff", name, t.data.at("a", source)])
        if other.code == 0 and read != sound:
            t.find(WRONG, f"diff finds nothing, but {difference(sound, read)}")
    return verify.code
