#!/usr/bin/env python3
"""Documents are easy to read: short lines, short cells of tables, and sentences that begin with their subject.

    prose_test.py REPOSITORY

The rules:
- A line has at most 120 characters. Rows of tables and code blocks are free, as Markdown cannot wrap them, and so is a
  line of one word that cannot be broken, such as a link.
- A table's cell has at most 25 words.
- No sentence begins with Who, What, Whose or Of.

bench/results/archive keeps records of runs, which obey only the first rule.
"""

import re
import sys
import unittest
from collections.abc import Callable
from pathlib import Path

import tracked

LINE_MAX = 120
CELL_WORDS_MAX = 25
RECORDS = "bench/results/archive/"
FENCE = re.compile(r"^\s*(```|~~~)")
CELLS = re.compile(r"(?<!\\)\|")
ATOM = re.compile(r"(?:\[[^\]]*\]\([^)\s]*\)|`[^`]*`|\S)+")  # a link, or code, is one piece
MARKER = re.compile(r"^\s*(?:[-*+]|\d+[.)]|#{1,6}|>)\s+")
FIRST_WORD = re.compile(r"(?:^|[.!?:][\"')*_]*\s)[\s\"'(*_]*((?:Who|What|Whose|Of)(?:ever)?)\b")


def lines_of_prose(text: str) -> list[tuple[int, str]]:
    """Returns the numbered lines outside of code blocks."""
    found, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            found.append((number, line))
    return found


def is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def long_lines(text: str) -> list[int]:
    return [number for number, line in lines_of_prose(text)
            if len(line) > LINE_MAX and not is_row(line)
            and len(ATOM.findall(MARKER.sub("", line))) > 1]


def long_cells(text: str) -> list[tuple[int, str]]:
    return [(number, cell.strip()) for number, line in lines_of_prose(text) if is_row(line)
            for cell in CELLS.split(line.strip().strip("|")) if len(cell.split()) > CELL_WORDS_MAX]


def bad_beginnings(text: str) -> list[tuple[int, str]]:
    """Reads each paragraph, item, heading and cell as a whole, so that line breaks do not matter."""
    blocks: list[tuple[int, str]] = []
    open_block = False
    for number, line in lines_of_prose(text):
        if is_row(line):
            blocks += [(number, cell.strip()) for cell in CELLS.split(line.strip().strip("|"))]
            open_block = False
        elif not line.strip():
            open_block = False
        elif open_block and not MARKER.match(line):
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + " " + line.strip())
        else:
            blocks.append((number, MARKER.sub("", line).strip()))
            open_block = not line.startswith("#")
    return [(number, block[match.start(1):match.start(1) + 60]) for number, block in blocks
            for match in FIRST_WORD.finditer(block)]


class Rules(unittest.TestCase):
    """The checks detect the faults that they look for."""

    def test_lines(self) -> None:
        self.assertEqual(long_lines("word " * 30), [1])
        self.assertEqual(long_lines("- [a link](" + "x" * 120 + ")"), [])
        self.assertEqual(long_lines("| " + "word " * 30 + "|"), [])
        self.assertEqual(long_lines("```\n" + "word " * 30 + "\n```\n" + "word " * 30), [4])

    def test_cells(self) -> None:
        self.assertEqual(long_cells("| a | " + "word " * 25 + "|"), [])
        self.assertEqual(len(long_cells("| a | " + "word " * 26 + "|")), 1)

    def test_beginnings(self) -> None:
        for bad in ("Who reads it.", "It is.\nOf these", "- What comes", "| a | Whose it is |", "so: *What* is", "(Whoever"):
            self.assertEqual(len(bad_beginnings(bad)), 1, bad)
        for good in ("Somebody who reads it", "Often", "a list of\nOffers", "`Of` is a word"):
            self.assertEqual(bad_beginnings(good), [], good)


class Prose(unittest.TestCase):
    root = Path()

    @classmethod
    def setUpClass(cls) -> None:
        cls.pages = {path.as_posix(): (cls.root / path).read_text() for path in tracked.files(cls.root) if path.suffix == ".md"}
        cls.written = {name: text for name, text in cls.pages.items() if not name.startswith(RECORDS)}

    def test_lines_are_short(self) -> None:
        bad = [f"{name}:{number}: longer than {LINE_MAX} characters" for name, text in self.pages.items() for number in long_lines(text)]
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    def check(self, find: Callable[[str], list[tuple[int, str]]]) -> None:
        bad = [f"{name}:{number}: {words}" for name, text in self.written.items() for number, words in find(text)]
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    def test_cells_are_short(self) -> None:
        self.check(long_cells)

    def test_sentences_begin_with_their_subject(self) -> None:
        self.check(bad_beginnings)


if __name__ == "__main__":
    Prose.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
