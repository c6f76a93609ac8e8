#!/usr/bin/env python3
"""Comments begin with a noun or an imperative, and classes stay small enough to read.

    comments_test.py REPOSITORY

The rules:
- No comment, and no sentence in one, begins with Who, Whoever, Whose, What, Whatever or Of.
- A class has at most 40 data members, and at most 40 functions that it declares, in a header of ours.

AT_MOST and CLASSES list what breaks the rules still, and how often: a number may fall, and never grows.
"""

import re
import sys
import unittest
from collections import Counter
from pathlib import Path

import tracked

# folder: sentences in its comments that begin with such a word
AT_MOST: dict[str, int] = {
    "aggregator": 19,
    "bench": 11,
    "client": 48,
    "kernels": 20,
    "protocol": 10,
    "service-kit": 2,
    "tests": 41,
    "transport": 30,
    "tree-manager": 18,
}
MEMBERS_MAX = 40
# class: (data members, functions)
CLASSES: dict[str, tuple[int, int]] = {
    "Backend": (7, 42),
    "Cluster": (23, 60),
    "Communicator": (15, 57),
    "Coordinator": (33, 46),
    "Daemon": (21, 42),
    "Device": (26, 41),
    "DpdkPort": (32, 45),
    "Flow": (43, 20),
    "LaneLink": (21, 48),
    "PacketConnection": (27, 76),
    "PacketCore": (29, 69),
    "SimCore": (16, 90),
    "TcpConnection": (22, 44),
    "VerbsConnection": (34, 118),
    "VerbsCore": (27, 46),
}

C_LIKE = {".h", ".hpp", ".c", ".cc", ".cu", ".cuh"}
SLASHES = re.compile(r"^\s*///?<?\s?(.*)$")
TRAILING = re.compile(r"[;,{})\w]\s+//\s?(.*)$")
BAD = re.compile(r"(?:^|[.!?]\s+)(?:- )?((?:Who|What|Whose|Of)(?:ever)?)\s", re.MULTILINE)


def comments(text: str) -> list[str]:
    """Each block of whole-line comments as one text, and each trailing comment that begins a sentence."""
    found: list[str] = []
    block: list[str] = []
    for line in text.split("\n"):
        if match := SLASHES.match(line):
            words = match.group(1).strip()
            # A bullet and a new paragraph begin anew.
            if words.startswith("- ") and block:
                found.append(" ".join(block))
                block = []
            if words:
                block.append(words.removeprefix("- "))
                continue
        if block:
            found.append(" ".join(block))
            block = []
        if (match := TRAILING.search(line)) and match.group(1)[:1].isupper():
            found.append(match.group(1).strip())
    if block:
        found.append(" ".join(block))
    return found


def bad_beginnings(text: str) -> list[str]:
    return [comment[max(0, match.start(1)):][:60] for comment in comments(text) for match in BAD.finditer(comment)]


CLASS = re.compile(r"^(?:class|struct)\s+(?:\[\[\w+\]\]\s+)?(\w+)[^;{()]*\{(.*?)^\};", re.MULTILINE | re.DOTALL)
NESTED = re.compile(r"^  (?:class|struct|union|enum(?: class)?)\s[^;{()]*\{.*?^  \}[^;]*;", re.MULTILINE | re.DOTALL)
DATA = re.compile(r"\b[a-z]\w*_(?=\s*(?:\{[^{}]*\}|=[^;()]*(?:\([^;]*\))?)?\s*[,;])")
BODY = re.compile(r"\{[^{}]*\}")
FUNCTION = re.compile(r"^  (?!using|friend|static_assert|return|if|for|while|switch)[^;{}#/]*?\b~?\w+\s*\([^;{}]*\)[^;{}]*[;]", re.MULTILINE)


def sizes(text: str) -> dict[str, tuple[int, int]]:
    """For each class of a header that stands at the beginning of a line: its data members, and its functions."""
    text = re.sub(r"//[^\n]*", "", text)
    found = {}
    for name, body in CLASS.findall(text):
        body = NESTED.sub("", body)
        flat = body
        for _ in range(4):
            flat = BODY.sub(";", flat)
        data = sum(1 for line in flat.split("\n") if re.match(r"^  [^ ].*\b\w+_\b", line) and "(" not in line.split("_;")[0]
                   for _ in DATA.findall(line))
        found[name] = (data, len(FUNCTION.findall(flat)))
    return found


class Rules(unittest.TestCase):
    """That the checks see what they are for."""

    def test_beginnings_are_seen(self) -> None:
        self.assertEqual(len(bad_beginnings("// What this does.\nint a;\n")), 1)
        self.assertEqual(len(bad_beginnings("/// Adds. Of two numbers\n/// the sum.\n")), 1)
        self.assertEqual(len(bad_beginnings("int a;  // Whose it is\n")), 1)
        self.assertEqual(len(bad_beginnings("// - Adds\n// - Who calls\n")), 1)
        self.assertEqual(bad_beginnings("// Says what this does, and of what.\n// Whatsoever\nint a;  // of all\n"), [])

    def test_members_are_counted(self) -> None:
        text = "class A {\n public:\n  void f(int a);\n  int g() const { return a_; }\n\n private:\n  int a_ = 0, b_{};\n  std::map<int, int> c_;\n};\n"
        self.assertEqual(sizes(text), {"A": (3, 2)})


class Repository(unittest.TestCase):
    root = Path()

    def sources(self) -> list[Path]:
        return [path for path in tracked.files(self.root) if path.suffix in C_LIKE]

    def test_comments_begin_with_their_subject(self) -> None:
        found: Counter[str] = Counter()
        shown: dict[str, list[str]] = {}
        for path in self.sources():
            folder = path.as_posix().split("/")[0]
            for beginning in bad_beginnings((self.root / path).read_text(errors="replace")):
                found[folder] += 1
                shown.setdefault(folder, []).append(f"{path}: {beginning}")
        for folder in sorted({*found, *AT_MOST}):
            allowed = AT_MOST.get(folder, 0)
            self.assertLessEqual(found[folder], allowed, f"{folder} has more such comments than it had:\n" + "\n".join(shown.get(folder, [])))
            self.assertGreaterEqual(found[folder], allowed, f"{folder} has only {found[folder]} such comments now: lower its number in AT_MOST")

    def test_classes_stay_small(self) -> None:
        for path in self.sources():
            if path.suffix not in {".h", ".hpp"} or path.as_posix().startswith(("tests/", "bench/")):
                continue
            for name, (data, functions) in sizes((self.root / path).read_text(errors="replace")).items():
                most = CLASSES.get(name, (MEMBERS_MAX, MEMBERS_MAX))
                self.assertTrue(data <= max(most[0], MEMBERS_MAX) and functions <= max(most[1], MEMBERS_MAX),
                                f"{path}: {name} has {data} data members and {functions} functions; allowed is {most}")


if __name__ == "__main__":
    Repository.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
