#!/usr/bin/env python3
"""A source file uses each name that it takes with `using a::b;` or `namespace a = b;`.

    usings_test.py REPOSITORY

clang-tidy has checks for this rule, but they find no faults in the joined files that scripts/lint gives to it. This
check compares words: a name that stands nowhere else in its file is not used. It reads only sources, because the files
that include a header may use the header's names.
"""

import re
import sys
import unittest
from pathlib import Path

import tracked

SOURCES = {".cc", ".cu"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
USING = re.compile(r"^\s*(?:using\s+(?:\w*::)*(?P<name>\w+)\s*;|namespace\s+(?P<alias>\w+)\s*=[^;]*;)", re.MULTILINE)


def unused(text: str) -> list[str]:
    code = COMMENT.sub("", text)
    rest = USING.sub("", code)
    names = [match["name"] or match["alias"] for match in USING.finditer(code)]
    return [name for name in names if not re.search(rf"\b{name}\b", rest)]


class Usings(unittest.TestCase):
    root = Path()

    def test_the_check_sees_what_it_is_for(self) -> None:
        for bad in ("using a::Bee;\n// Bee", "  using ::a::b::Bee;\nBees x;", "namespace Bee = a::b;\n"):
            self.assertEqual(unused(bad), ["Bee"], bad)
        for good in ("using a::Bee;\nBee x;", "namespace Bee = a;\nBee::x y;", "using namespace a;", "using Bee = int;"):
            self.assertEqual(unused(good), [], good)

    def test_repository(self) -> None:
        found: list[str] = []
        for path in tracked.files(self.root):
            if path.suffix in SOURCES:
                text = (self.root / path).read_text(errors="replace")
                found += [f"{path.as_posix()}: '{name}' is not used" for name in unused(text)]
        self.assertEqual(found, [], "\n" + "\n".join(found))


if __name__ == "__main__":
    Usings.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
