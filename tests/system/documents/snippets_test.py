#!/usr/bin/env python3
"""The programs in docs/client.md compile without a warning, and run.

    snippets_test.py REPOSITORY LIBRARY_DIRECTORY C_COMPILER C++_COMPILER

A program is a fenced block after <!-- tested: LANGUAGE -->.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from free_ports import free_port  # noqa: E402: the line above finds it

RANKS = 3
LIMIT_SECONDS = 120
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


class Snippets(unittest.TestCase):
    root = libraries = Path()
    compilers: dict[str, str] = {}

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def snippet(self, language: str) -> str:
        page = (self.root / "docs/client.md").read_text()
        found = re.search(rf"<!-- tested: {re.escape(language)} -->\n```\w+\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        self.assertIsNotNone(found, f"docs/client.md has no tested program in {language}")
        assert found is not None
        return found[1]

    def build(self, language: str, suffix: str, standard: str) -> Path:
        source, program = self.folder / f"program{suffix}", self.folder / "program"
        source.write_text(self.snippet(language))
        subprocess.run([self.compilers[language], f"-std={standard}", *WARNINGS, "-I", str(self.root / "client/include"), str(source), "-o", str(program),
                        "-L", str(self.libraries), "-ltributary", f"-Wl,-rpath,{self.libraries}"], check=True)
        return program

    def run_ranks(self, command: list[str]) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
        environment |= {"WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "LD_LIBRARY_PATH": str(self.libraries)}
        ranks = [subprocess.Popen(command, env=environment | {"RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank in range(RANKS)]
        try:
            said = [rank.communicate(timeout=LIMIT_SECONDS)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        self.assertEqual([rank.returncode for rank in ranks], [0] * RANKS, "\n".join(said))
        for text in said:
            self.assertIn("local", text)

    def test_c(self) -> None:
        self.run_ranks([str(self.build("c", ".c", "c11")), str(self.folder / "id")])

    def test_cpp(self) -> None:
        if not (self.root / "client/include/tributary/tributary.hpp").exists():
            self.skipTest("there is no C++ header")
        self.run_ranks([str(self.build("c++", ".cc", "c++17")), str(self.folder / "id")])

    def test_python(self) -> None:
        python = Path(os.environ.get("TRIBUTARY_PYTHON", self.root / "build/venv/bin/python"))
        if not python.exists():
            self.skipTest(f"{python} does not exist: scripts/demo makes it")
        (self.folder / "train.py").write_text(self.snippet("python"))
        self.run_ranks([str(python), str(self.folder / "train.py")])


if __name__ == "__main__":
    Snippets.root, Snippets.libraries = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    Snippets.compilers = {"c": sys.argv[3], "c++": sys.argv[4]}
    del sys.argv[1:]
    unittest.main(verbosity=1)
