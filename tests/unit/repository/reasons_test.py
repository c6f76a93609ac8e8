#!/usr/bin/env python3
"""Each reason of the table tributary/protocol/reason.h arises somewhere in the code: no row is dead.

reasons_test.py ROOT
"""

import pathlib
import re
import sys
import unittest

import tracked

ROOT = pathlib.Path(sys.argv[1])
TABLE = "protocol/include/tributary/protocol/reason.h"
PARTS = ("protocol/src/", "transport/", "aggregator/", "tree-manager/", "client/", "service-kit/")


class Reasons(unittest.TestCase):
    def reasons(self) -> list[str]:
        text = (ROOT / TABLE).read_text()
        enumeration = re.search(r"enum class Reason : [^{]*\{(.*?)\n\};", text, re.DOTALL)
        self.assertIsNotNone(enumeration)
        names = re.findall(r"^  (\w+),", enumeration[1], re.MULTILINE)
        self.assertGreater(len(names), 50)
        self.assertEqual(names[0], "none")
        return names[1:]

    def test_each_reason_arises(self) -> None:
        code = "\n".join(
            (ROOT / path).read_text()
            for path in tracked.files(ROOT)
            if path.suffix in (".cc", ".h") and str(path).startswith(PARTS)
        )
        used = set(re.findall(r"\bReason::(\w+)", code))
        self.assertEqual([name for name in self.reasons() if name not in used], [], f"rows of {TABLE} that nothing uses")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
