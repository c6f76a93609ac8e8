#!/usr/bin/env python3
"""Words that have no place in the repository: paths of one machine, marks of unfinished work.

    words_test.py REPOSITORY
"""

import re
import sys
import unittest
from pathlib import Path

import tracked

# Written in pieces, so that this file passes its own check.
FORBIDDEN: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"(?<![\w.-])/(?:" + "|".join(["work", "home/\\w+", "Users/\\w+", "root"]) + r")/"), "an absolute path of one machine"),
    (re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b"), "a mark of unfinished work"),
    (re.compile(r"\b(?:" + "|".join(["pyp" + "i", "pythonhos" + "ted", "deb.deb" + "ian", "npm" + "js"]) + r")\.(?:org|com)\b"), "a package registry's host"),
    (re.compile(r"\b[Ii]ss" + r"ue #?\d+"), "the number of an issue: say what it is about"),
    (re.compile(r"^(?:<<<<<<<|>>>>>>>) ", re.MULTILINE), "a merge conflict"),
]
MADE_ELSEWHERE = {"LICENSE"}


def complaints(path: str, text: str) -> list[str]:
    found = []
    for pattern, why in FORBIDDEN:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: {match[0]!r}: {why}")
    return found


class Words(unittest.TestCase):
    root = Path()

    def test_the_check_sees_what_it_is_for(self) -> None:
        for bad in ("see /" + "work/main/docs", "/ho" + "me/me/x", "// TO" + "DO: later", "fixed in iss" + "ue 7", "<<<<<<< mine\n"):
            self.assertTrue(complaints("x", bad), bad)
        for good in ("a/work/b", "${HOME}/x", "~/.cache", "network/homes", "todo list", "an issue of trust"):
            self.assertEqual(complaints("x", good), [], good)

    def test_repository(self) -> None:
        found: list[str] = []
        for path in tracked.files(self.root):
            data = (self.root / path).read_bytes()
            if path.name in MADE_ELSEWHERE or b"\0" in data:
                continue
            found += complaints(path.as_posix(), data.decode(errors="replace"))
        self.assertEqual(found, [], "\n" + "\n".join(found))


if __name__ == "__main__":
    Words.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
