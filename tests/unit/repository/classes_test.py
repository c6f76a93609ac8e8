#!/usr/bin/env python3
"""Classes stay small enough to read.

    classes_test.py REPOSITORY

A class has at most 40 data members, and at most 40 functions. The check reads all headers and sources, and classes
within classes, too. A struct without functions is a list of values, and may be longer.

CLASSES lists the classes that are still larger. A number may fall, but must not grow.
"""

import re
import sys
import unittest
from pathlib import Path

import tracked

MEMBERS_MAX = 40
# class: (data members, functions)
CLASSES: dict[str, tuple[int, int]] = {
    "Backend": (7, 43),
    "Cluster": (23, 61),
    "Communicator": (20, 52),
    "Device": (26, 42),
    "DpdkPort": (32, 46),
    "Flow": (52, 55),
    "LaneLink": (22, 48),
    "PacketConnection": (30, 74),
    "PacketCore": (30, 68),
    "ShmConnection": (38, 78),
    "SimCore": (21, 88),
    "TcpConnection": (23, 53),
    "VerbsConnection": (34, 119),
    "VerbsCore": (31, 48),
}

SOURCES = {".h", ".hpp", ".cc", ".cu", ".cuh"}
# Comments, and the contents of strings: braces in them do not count. An apostrophe between digits begins no string.
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
ATTRIBUTE = r"(?:\[\[[^\]]*\]\]\s*|alignas\([^;{}]*?\)\s*)*"
HEAD = re.compile(r"\b(?:class|struct)\s+" + ATTRIBUTE + r"((?:\w+(?:<[^;{}]*>)?::)*\w+)(?:\s+final)?\s*(?::(?!:)[^;{}]*)?$")
NO_MEMBER = re.compile(r"(?:using|friend|static_assert|typedef|enum|class|struct|union|concept)\b|(?:static\s+|inline\s+)*constexpr\b|static\s+const\b")
ENUM = re.compile(r"\benum\s+(?:class|struct)\b")
NAMESPACE = re.compile(r'\bnamespace\b|\bextern\s*""$')
MARK = re.compile(r"[;{}]")
BRACE = re.compile(r"[{}]")
ANGLES = re.compile(r"<[^<>;{}]*>")
PARENTHESES = re.compile(r"\([^()]*\)")


def bare(text: str) -> str:
    """Returns the code without comments, preprocessor lines and the contents of strings."""
    return DIRECTIVE.sub("", NOISE.sub(lambda match: '""' if match[0][0] in '"R' else " ", text))


def end_of(code: str, begin: int) -> int:
    """Returns the place of the brace that closes the brace at `begin`."""
    depth = 0
    for match in BRACE.finditer(code, begin):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


def statements(body: str) -> list[str]:
    """Returns the declarations of a class, each on its own, with {} for every body and initializer."""
    flat = ""
    at = 0
    while at < len(body):
        begin = body.find("{", at)
        if begin < 0:
            break
        flat += body[at:begin] + "{}"
        at = end_of(body, begin) + 1
    flat += body[at:]
    flat = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", flat)
    flat = re.sub(r"operator\s*(?:\(\)|[<>=!+\-*/%&|^~\[\],]+)", "operator_", flat).replace("->", " ")
    for _ in range(8):
        flat = ANGLES.sub("", flat)
    flat = re.sub(r"\[\[[^\]]*\]\]|\balignas\([^;{}]*?\)|\btemplate\b", "", flat)
    return [one.strip() for one in re.split(r";|(?<=\{\})(?=\s*(?:\n|$))", flat)]


def members(body: str) -> tuple[int, int]:
    data = functions = 0
    for one in statements(body):
        if one in ("", "{}") or NO_MEMBER.match(one):
            continue
        value = min((place for place in (one.find("="), one.find("{}")) if place >= 0), default=len(one))
        if 0 <= one.find("(") < value:
            functions += 1
            continue
        for _ in range(4):
            one = PARENTHESES.sub("", one)
        data += 1 + one.count(",")
    return data, functions


def sizes(text: str) -> dict[str, tuple[int, int]]:
    """Returns each class of a file, with the names of the classes around it, its data members and its functions."""
    code = bare(text)
    found: dict[str, tuple[int, int]] = {}

    def scan(begin: int, end: int, within: str) -> None:
        head = at = begin
        while match := MARK.search(code, at, end):
            at = match.end()
            if match[0] != "{":
                head = at
                continue
            close = end_of(code, match.start())
            words = code[head:match.start()].rstrip()
            named = None if ENUM.search(words) else HEAD.search(words)
            if named:
                found[within + named[1]] = members(code[at:close])
                scan(at, close, within + named[1] + "::")
            elif NAMESPACE.search(words):
                scan(at, close, within)
            head = at = close + 1

    scan(0, len(code), "")
    return found


class Rules(unittest.TestCase):
    """The check detects the faults that it looks for."""

    def test_members_are_counted(self) -> None:
        text = """
            namespace n {
            class A final : public B<int> {
             public:
              void f(int a);
              int g() const { return a_ < 1 ? '}' : "}"[0]; }
              bool operator<(const A& other) const = default;
              template <class T>
              T h(std::function<void(int)> t) requires(sizeof(T) > 1);
              static constexpr int kMost = 3;
              using C = int;

             private:
              int a_ = 0, b_{}; // int c_;
              std::map<int, std::function<void(int)>> d_;
              std::array<int, f(2)> e_ = made(1, 2);
            };
            }
        """
        self.assertEqual(sizes(text), {"A": (4, 4)})

    def test_classes_in_classes_are_counted(self) -> None:
        text = "class [[nodiscard]] A {\n struct B {\n int b;\n void f();\n };\n enum class E { x };\n int a_;\n};\nstruct A::C {\n int c, d;\n};\n"
        self.assertEqual(sizes(text), {"A": (1, 0), "A::B": (1, 1), "A::C": (2, 0)})

    def test_code_in_functions_is_none(self) -> None:
        self.assertEqual(sizes("void f() {\n  struct A {\n    int a;\n  };\n}\nint x = 1'000;\nstruct B;\n"), {})


class Repository(unittest.TestCase):
    root = Path()

    def test_classes_stay_small(self) -> None:
        large: set[str] = set()
        bad = []
        for path in tracked.files(self.root):
            if path.suffix not in SOURCES:
                continue
            for name, (data, functions) in sizes((self.root / path).read_text(errors="replace")).items():
                if max(data, functions) <= MEMBERS_MAX or functions == 0:
                    continue
                large.add(name)
                most = CLASSES.get(name, (0, 0))
                if data > max(most[0], MEMBERS_MAX) or functions > max(most[1], MEMBERS_MAX):
                    bad.append(f"{path}: {name} has {data} data members and {functions} functions; allowed is {most}")
        self.assertEqual(bad, [], "\n" + "\n".join(bad))
        self.assertEqual(set(CLASSES) - large, set(), "these are small now: take them out of CLASSES")


if __name__ == "__main__":
    Repository.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
