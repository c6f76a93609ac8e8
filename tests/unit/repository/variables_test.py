#!/usr/bin/env python3
"""service-kit/variables.cc has every TRIBUTARY_* variable that the sources read, and the documents have every variable
of this file.

    variables_test.py REPOSITORY
"""

import re
import sys
import unittest
from pathlib import Path

FOLDERS = ("aggregator", "client", "kernels", "protocol", "service-kit", "transport", "tree-manager")
FOR_TESTS = ("TRIBUTARY_TEST_", "TRIBUTARY_CLUSTER_")
NO_VARIABLES = {"TRIBUTARY_VERSION"}  # text in quotation marks that is not a variable


class Variables(unittest.TestCase):
    root = Path()

    def known(self) -> set[str]:
        return set(re.findall(r'"(TRIBUTARY_[A-Z_]+)",', (self.root / "service-kit/variables.cc").read_text()))

    def test_the_table_has_what_the_sources_read(self) -> None:
        known = self.known()
        self.assertGreater(len(known), 40)
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix not in (".cc", ".h") or path.name.startswith("variables."):
                    continue
                for name in re.findall(r'"(TRIBUTARY_[A-Z_]*[A-Z])"', path.read_text()):
                    if name.startswith(FOR_TESTS) or name in NO_VARIABLES:
                        continue
                    self.assertIn(name, known, f"{path} reads a variable that service-kit/variables.cc does not have")

    def test_the_documents_have_the_table(self) -> None:
        text = "\n".join(page.read_text() for page in sorted((self.root / "docs").rglob("*.md")))
        for name in sorted(self.known()):
            short = name.removeprefix("TRIBUTARY_RDMA_").lower() if name.startswith("TRIBUTARY_RDMA_") else ""
            self.assertTrue(name in text or (short and f"`rdma_{short}`" in text), f"no document has {name}")


if __name__ == "__main__":
    Variables.root = Path(sys.argv[1]).resolve()
    del sys.argv[1:]
    unittest.main(verbosity=1)
