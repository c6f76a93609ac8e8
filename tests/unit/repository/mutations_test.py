#!/usr/bin/env python3
"""The table of mutations fits the code: each text that a mutation changes is once in its file, and each test
exists.

    mutations_test.py REPOSITORY

`scripts/mutation-check` finds out whether the tests notice the mutations, which takes minutes.
"""

import re
import sys
import tomllib
import unittest
from pathlib import Path

import tracked

GTEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
KEYS = {"name", "breaks", "file", "old", "new", "test", "filter"}


class Mutations(unittest.TestCase):
    root = Path()

    @classmethod
    def setUpClass(cls) -> None:
        cls.table = tomllib.loads((cls.root / "tests" / "mutations" / "table.toml").read_text())["mutation"]

    def test_each_says_all_that_it_must_and_nothing_else(self) -> None:
        self.assertTrue(self.table)
        names = [mutation["name"] for mutation in self.table]
        self.assertEqual(len(names), len(set(names)), "two mutations have one name")
        for mutation in self.table:
            self.assertEqual(set(mutation), KEYS, mutation)

    def test_each_text_stands_once_in_its_file(self) -> None:
        for mutation in self.table:
            file = self.root / mutation["file"]
            self.assertTrue(file.is_file(), f"{mutation['name']}: there is no {mutation['file']}")
            self.assertEqual(
                file.read_text().count(mutation["old"]),
                1,
                f"{mutation['name']} in tests/mutations/table.toml: {mutation['file']} must hold this text exactly once. Put the new "
                f"text there, and see `scripts/mutation-check {mutation['name']}` pass:\n{mutation['old']}",
            )

    def test_each_test_is_there(self) -> None:
        sources = [path for path in tracked.files(self.root) if path.parts[0] == "tests" and path.suffix == ".cc"]
        tests = {f"{suite}.{name}" for path in sources for suite, name in GTEST.findall((self.root / path).read_text())}
        lists = "".join((self.root / path).read_text() for path in tracked.files(self.root) if path.name == "CMakeLists.txt")
        for mutation in self.table:
            self.assertTrue(re.search(rf"\({mutation['test']}\s", lists), f"{mutation['name']}: no test of the name {mutation['test']} is built")
            for one in mutation["filter"].split(":"):
                pattern = re.compile(re.escape(one).replace(r"\*", ".*"))
                self.assertTrue(any(pattern.fullmatch(test) for test in tests), f"{mutation['name']}: no test fits {one}")


if __name__ == "__main__":
    Mutations.root = Path(sys.argv.pop(1)).resolve()
    unittest.main()
