#!/usr/bin/env python3
"""Comments begin with a noun or an imperative.

    comments_test.py REPOSITORY

No comment or docstring, and no sentence in one, begins with Who, Whoever, Whose, What, Whatever or Of. The check reads
C and C++, Python, shell scripts, CMake, TOML and YAML.

AT_MOST lists the folders that still break the rule, and how often. A number may fall, but must not grow.
"""

import ast
import io
import re
import sys
import tokenize
import unittest
from collections import Counter
from pathlib import Path

import tracked

# folder: sentences in its comments that begin with such a word; the longest folder that a file lies in counts
AT_MOST: dict[str, int] = {}

C_LIKE = {".h", ".hpp", ".c", ".cc", ".cu", ".cuh"}
HASHES = {".sh", ".cmake", ".toml", ".yaml", ".yml"}
BAD = re.compile(r"(?:^|[.!?]\s+)((?:Who|What|Whose|Of)(?:ever)?)\s")
BULLET = re.compile(r"^[-*] ")
# A string, so that the check finds no comment in it; a comment of lines; a comment between /* and */.
C_TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|///?<?(?P<line>[^\n]*)|/\*+(?P<block>.*?)\*/', re.DOTALL)
HASH_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|\\.|(?:^|(?<=\s))#(?P<line>[^\n]*)', re.MULTILINE)


class Blocks:
    """Joins the lines of comments: a bullet, an empty line and a line of code begin a new block."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.next_line = -1

    def add(self, line: int, words: str, alone: bool = True) -> None:
        words = words.strip()
        if not words or words.startswith("!/"):  # the line that names the interpreter
            self.next_line = -1
            return
        if alone and line == self.next_line and not BULLET.match(words):
            self.blocks[-1] += " " + words
        elif alone or words[0].isupper():  # after code, words in small letters are no sentence
            self.blocks.append(BULLET.sub("", words))
        self.next_line = line + 1 if alone else -1


def by_tokens(text: str, token: re.Pattern[str]) -> list[str]:
    blocks = Blocks()
    line = 0
    last = 0
    for match in token.finditer(text):
        if match.lastgroup not in ("line", "block"):
            continue
        line += text.count("\n", last, match.start())
        last = match.start()
        alone = not text[text.rfind("\n", 0, last) + 1:last].strip()
        for offset, words in enumerate(match[match.lastgroup].split("\n")):
            blocks.add(line + offset, re.sub(r"^\s*\*+ ?", "", words) if match.lastgroup == "block" else words, alone)
    return blocks.blocks


def of_python(text: str) -> list[str]:
    blocks = Blocks()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            blocks.add(token.start[0], token.string.lstrip("#"), not token.line[:token.start[1]].strip())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            blocks.next_line = -1
            for number, words in enumerate((ast.get_docstring(node) or "").split("\n")):
                blocks.add(number, words)
    return blocks.blocks


def kind_of(path: Path, text: str) -> str | None:
    """Returns the language of a file's comments; None if the check does not read them."""
    first = text.split("\n", 1)[0]
    if path.suffix in C_LIKE:
        return "c"
    if path.suffix == ".py" or (first.startswith("#!") and "python" in first):
        return "python"
    if path.suffix in HASHES or path.name == "CMakeLists.txt" or (first.startswith("#!") and first.endswith("sh")):
        return "hashes"
    return None


def comments(path: Path, text: str) -> list[str]:
    """Returns each comment as one text; a comment at the end of a line of code only if it begins a sentence."""
    kind = kind_of(path, text)
    if kind == "c":
        return by_tokens(text, C_TOKEN)
    if kind == "python":
        return of_python(text)
    return by_tokens(text, HASH_TOKEN) if kind == "hashes" else []


def bad_beginnings(path: Path, text: str) -> list[str]:
    return [comment[match.start(1):][:60] for comment in comments(path, text) for match in BAD.finditer(comment)]


class Rules(unittest.TestCase):
    """The checks detect the faults that they look for."""

    def found(self, name: str, text: str) -> int:
        return len(bad_beginnings(Path(name), text))

    def test_beginnings_in_c_are_seen(self) -> None:
        for text in ("// What this does.\nint a;\n", "/// Adds. Of two numbers\n/// the sum.\n", "int a;  // Whose it is\n",
                     "// - Adds\n// - Who calls\n", "/// Adds.\n///\n/// What it adds\n", "int a;  ///< Who has it\n",
                     "/* Who calls */\n", "/** Adds.\n *\n * What it adds */\n", "/* Adds.\n   Of two numbers */\n"):
            self.assertEqual(self.found("a.h", text), 1, text)
        for text in ("// Says what this does, and of what.\n// Whatsoever\nint a;  // of all\n", 'f("// What");\n', "// Adds\n// What it gets\n"):
            self.assertEqual(self.found("a.h", text), 0, text)

    def test_beginnings_in_scripts_are_seen(self) -> None:
        for name, text in (("a.py", "# What this does\n"), ("a.py", 'def f():\n    """Adds.\n\n    Of two numbers."""\n'),
                           ("a.py", "f()  # Who calls it\n"), ("a.sh", "# Adds. What it gets\n"), ("run", "#!/bin/bash\n# Whose it is\n"),
                           ("CMakeLists.txt", "f()  # Of all\n"), ("a.yaml", "# Of these\nx: 1\n")):
            self.assertEqual(self.found(name, text), 1, text)
        for name, text in (("a.py", 'f("# What")  # of all\n'), ("a.sh", 'f "# What" "$#" # of\n'), ("a.sh", "#!/bin/sh\n# Adds\n"), ("data", "# What\n")):
            self.assertEqual(self.found(name, text), 0, text)


class Repository(unittest.TestCase):
    root = Path()

    def test_comments_begin_with_their_subject(self) -> None:
        found: Counter[str] = Counter()
        shown: dict[str, list[str]] = {}
        for path in tracked.files(self.root):
            if path.suffix not in C_LIKE | HASHES | {".py", ".txt", ""}:
                continue
            within = [folder for folder in AT_MOST if path.as_posix().startswith(folder + "/")]
            folder = max(within, key=len, default=path.parts[0])
            for beginning in bad_beginnings(path, (self.root / path).read_text(errors="replace")):
                found[folder] += 1
                shown.setdefault(folder, []).append(f"{path}: {beginning}")
        for folder in sorted({*found, *AT_MOST}):
            allowed = AT_MOST.get(folder, 0)
            told = f"{folder}: {found[folder]} such comments, and AT_MOST says {allowed}:\n" + "\n".join(shown.get(folder, []))
            self.assertLessEqual(found[folder], allowed, told)
            self.assertGreaterEqual(found[folder], allowed, told)


if __name__ == "__main__":
    Repository.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
