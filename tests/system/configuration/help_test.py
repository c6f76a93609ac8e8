#!/usr/bin/env python3
"""The helps of all programs, and of all commands, have one layout: units, bounds and defaults stand in one place.

help_test.py MANAGER AGGREGATOR TRIBUTARY NCCL_CHECK
"""

import re
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:5]
TIME_LIMIT_S = 20
WIDTH = 110
NAMES_WIDTH = 30
SECTIONS = ("Arguments:", "Options:", "Commands:", "With --budget:", "With --hosts:")
VALUES = re.compile(r"N|NAME(,\.\.\.)?|FILE(\.\.\.)?|FOLDER|URL|HOST:PORT(,\.\.\.)?|SECONDS|TIME|BYTES(,\.\.\.)?|RATE|FORM|FORMAT|WORD(,\.\.\.)?|TYPE|OPERATOR|RANK|PART|ROLE|TOKEN|PROGRAM|PLUGIN")


def help_of(program: str, *words: str) -> str:
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True)
    return done.stdout


def entries_of(text: str) -> list[tuple[str, str]]:
    """Returns the names and the text of each option, argument and command."""
    entries: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith(" " * NAMES_WIDTH):
            entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}".strip())
        elif line.startswith("  "):
            fits = line[NAMES_WIDTH - 1 : NAMES_WIDTH] in (" ", "")
            entries.append((line[:NAMES_WIDTH].strip(), line[NAMES_WIDTH:].strip()) if fits else (line.strip(), ""))
    return entries


class Help(unittest.TestCase):
    def helps(self) -> list[tuple[str, str]]:
        found = []
        for program in PROGRAMS:
            waiting = [()]
            while waiting:
                words = waiting.pop()
                text = help_of(program, *words)
                found.append((" ".join((program, *words)), text))
                if "\nCommands:\n" in text:
                    listed = entries_of(text.split("\nCommands:\n")[1])
                    waiting += [(*words, name) for name, _ in listed if not name.startswith("-") and name not in ("help", "version")]
        self.assertGreater(len(found), 20)
        return found

    def test_every_help_has_the_same_parts_in_the_same_order(self) -> None:
        for name, text in self.helps():
            with self.subTest(name):
                lines = text.splitlines()
                usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
                self.assertLessEqual(usage, 2, "a sentence on what the program does, then the usage")
                self.assertRegex(lines[0], r"^[A-Z]")
                self.assertIn("  -h,--help", text)
                titles = [line for line in lines if re.fullmatch(r"[A-Z].*:", line)]
                self.assertEqual([title for title in titles if title not in SECTIONS], [])
                self.assertLessEqual(max(len(line) for line in lines if line.startswith("  ")), WIDTH)

    def test_every_entry_is_a_sentence_without_its_full_stop(self) -> None:
        for name, text in self.helps():
            for entry, says in entries_of(text):
                with self.subTest(name, entry=entry):
                    self.assertRegex(says, r"^(\d: |-: |[A-Z]|[a-z-]+: )", "a capital letter, or a value and its meaning")
                    self.assertFalse(says.removesuffix("]").endswith("."))

    def test_every_option_with_a_value_names_its_kind(self) -> None:
        for name, text in self.helps():
            for entry, says in entries_of(text):
                if not entry.startswith("-") or " " not in entry:
                    continue
                with self.subTest(name, entry=entry):
                    value = entry.split(" ", 1)[1].strip("[]")
                    self.assertIsNotNone(VALUES.fullmatch(value), "a kind of value")
                    self.assertNotRegex(says, r"\((\d|[a-z]+\)$)", "a default stands in the brackets at the end")
                    if value in ("N", "SECONDS", "TIME", "RATE", "PART"):
                        self.assertRegex(says, r" \[.+\]$", "the bounds stand in the brackets at the end")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
