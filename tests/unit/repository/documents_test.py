#!/usr/bin/env python3
"""The documents agree with the repository: links lead somewhere, the files and tests that they name exist, and the
protocol's numbers agree with the code.

    documents_test.py REPOSITORY
"""

import re
import sys
import unittest
from pathlib import Path

import tracked

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')
CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^( *)```(?P<language>\w*)\n(?P<lines>.*?)^\1```", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- (?:recipe(?: from \S+)?|output|output in a cluster of .+|tried by (?P<test>\w+)|not run: (?P<reason>\S+ \S+ .+)) -->$")
COMMAND = re.compile(r"^ *(?:\$ )?(?:[A-Z_]+=\S+ )*(?:tributary(?:-[\w-]+)?|apt-get|cmake|curl|editor|export|helm|install|ip|kubectl|lldpcli|mpirun|openssl|"
                     r"ovs-vsctl|pip|podman|sbatch|scp|scripts/[\w-]+|srun|systemctl|torchrun) ", re.MULTILINE)
TEST_NAME = re.compile(r"^[A-Z]\w+\.[A-Z]\w+$")
TOP = ("aggregator/", "bench/", "client/", "cmake/", "config/", "docs/", "examples/", "kernels/", "packaging/", "protocol/", "scripts/", "tests/", "transport/", "tree-manager/", ".ci/")


def slug(heading: str) -> str:
    """Returns the anchor that GitHub gives a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


class Documents(unittest.TestCase):
    root = Path()

    @classmethod
    def setUpClass(cls) -> None:
        cls.files = {path.as_posix() for path in tracked.files(cls.root)}
        cls.folders = {parent.as_posix() for file in cls.files for parent in Path(file).parents}
        cls.pages = {name: (cls.root / name).read_text() for name in sorted(cls.files) if name.endswith(".md")}

    def anchors(self, page: str) -> set[str]:
        text = FENCED.sub("", self.pages[page])
        return {slug(heading) for heading in HEADING.findall(text)} | set(ANCHOR.findall(text))

    def exists(self, path: str) -> bool:
        path = path.rstrip("/")
        return path in self.files or path in self.folders

    def test_links_lead_somewhere(self) -> None:
        bad = []
        for page, text in self.pages.items():
            for link in LINK.findall(FENCED.sub("", text)):
                if re.match(r"[a-z]+:", link):
                    continue
                target, _, anchor = link.partition("#")
                path = (Path(page).parent / target).as_posix() if target else page
                parts: list[str] = []
                for part in Path(path).parts:
                    if part == "..":
                        parts.pop()
                    else:
                        parts.append(part)
                path = "/".join(parts)
                if not self.exists(path):
                    bad.append(f"{page}: {link}: there is no {path}")
                elif anchor and path.endswith(".md") and anchor not in self.anchors(path):
                    bad.append(f"{page}: {link}: {path} has no heading #{anchor}")
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    def test_files_that_are_named_exist(self) -> None:
        bad = []
        for page, text in self.pages.items():
            for code in CODE.findall(FENCED.sub("", text)):
                word = code.split()[0]
                if not word.startswith(TOP) or re.search(r"[<>$…]", word):
                    continue
                for one in self.alternatives(word):
                    pattern = re.compile(re.escape(one).replace(r"\*", "[^/]*") + "$")
                    if not self.exists(one) and not any(pattern.match(file) for file in self.files):
                        bad.append(f"{page}: `{code}`: there is no {one}")
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    @staticmethod
    def alternatives(word: str) -> list[str]:
        match = re.search(r"\{([^}]*)\}", word)
        return [word[: match.start()] + one + word[match.end():] for one in match[1].split(",")] if match else [word]

    def test_tests_that_are_named_exist(self) -> None:
        sources = "\n".join((self.root / name).read_text(errors="replace") for name in self.files if name.startswith("tests/"))
        known = {".".join(names) for names in re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", sources)}
        bad = [f"{page}: there is no test {code}" for page, text in self.pages.items() for code in CODE.findall(text)
               if TEST_NAME.match(code) and code not in known]
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    def test_blocks_of_commands_say_which_test_runs_them(self) -> None:
        """A reader types these commands. A block without a mark would be one that nobody has tried."""
        lists = "\n".join((self.root / name).read_text() for name in self.files if name.endswith("CMakeLists.txt"))
        names = {re.sub(r"\$\{\w+\}", r"\\w+", name) for name in re.findall(r"(?:\bNAME |tributary_add_test\()\"?([\w${}]+)", lists)} - {r"\w+"}
        bad = []
        for page, text in self.pages.items():
            if page != "README.md" and not page.startswith("docs/"):
                continue
            for found in BLOCK.finditer(text):
                if found["language"] not in ("", "sh") or not COMMAND.search(found["lines"]):
                    continue
                mark = MARK.search(text[: found.start()].rstrip("\n").rpartition("\n")[2])
                where = f"{page}:{text.count(chr(10), 0, found.start()) + 1}"
                if mark is None:
                    bad.append(f"{where}: a block of commands needs a line before it: <!-- recipe -->, <!-- output -->, <!-- tried by TEST --> or <!-- not run: REASON -->")
                elif mark["test"] and not any(re.fullmatch(name, mark["test"]) for name in names):
                    bad.append(f"{where}: there is no test {mark['test']}")
        self.assertEqual(bad, [], "\n" + "\n".join(bad))

    def test_the_protocols_numbers_are_the_codes(self) -> None:
        page = self.pages["docs/protocol.md"]
        header = (self.root / "protocol/include/tributary/protocol/frame.h").read_text()
        types = re.search(r"enum class FrameType[^{]*\{(.*?)\n\};", header, re.DOTALL)
        assert types is not None
        numbers = re.findall(r"^\s*(\w+) = (\d+),", types[1], re.MULTILINE)
        self.assertGreater(len(numbers), 20)
        for name, number in numbers:
            self.assertRegex(page, rf"\| {number} \| `{name}` \|", f"docs/protocol.md does not list frame type {number}, {name}")
        types_header = (self.root / "protocol/include/tributary/protocol/types.h").read_text()
        for enum in ("DType", "ReduceOp", "Collective"):
            body = re.search(rf"enum class {enum} [^{{]*\{{(.*?)\}};", types_header, re.DOTALL)
            assert body is not None
            for name, number in re.findall(r"(\w+) = (\d+)", body[1]):
                self.assertIn(f"{number} {name}", page, f"docs/protocol.md does not list {enum} {number}, {name}")


if __name__ == "__main__":
    Documents.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
