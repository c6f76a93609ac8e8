#!/usr/bin/env python3
"""The programs print what the documents show.

    outputs_test.py REPOSITORY TRIBUTARY

A fenced block after <!-- output --> begins with a command, `$ tributary ...`, which continues on the next line after a
backslash. The other lines are the whole output of the command.

After <!-- output in a cluster of 4 ranks, 3 aggregators, 2 levels --> the command runs in such a private cluster, on
rank 0. There numbers may differ, and so may blanks.
"""

import re
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

LIMIT_SECONDS = 20
COMMAND = r"```\n\$ (tributary (?:[^\n]*\\\n)*[^\n]*)\n(.*?)^```$"
BLOCK = re.compile(r"^<!-- output -->\n" + COMMAND, re.DOTALL | re.MULTILINE)
CLUSTER = re.compile(r"^<!-- output in a cluster of (\d+) ranks, (\d+) aggregators, (\d+) levels -->\n" + COMMAND, re.DOTALL | re.MULTILINE)


def blocks_of(page: str) -> list[tuple[list[str], str]]:
    """Returns the arguments and the output of each block."""
    return [(shlex.split(command.replace("\\\n", " "))[1:], output) for command, output in BLOCK.findall(page)]


def shape_of(output: str) -> str:
    """Returns the text without its numbers, and without the spaces and lines that depend on their lengths."""
    return re.sub(r" {2,}|(?<=\n) +", "  ", re.sub(r"\d+(\.\d+)*", "0", output))


class Outputs(unittest.TestCase):
    root = program = Path()

    def test_blocks_are_found(self) -> None:
        page = "x\n<!-- output -->\n```\n$ tributary a 'b c' \\\n    --d\nfirst\n\nlast\n```\ny\n```\n$ tributary e\nf\n```\n"
        self.assertEqual(blocks_of(page), [(["a", "b c", "--d"], "first\n\nlast\n")])

    def test_programs_print_what_documents_show(self) -> None:
        shown = 0
        for page in sorted((self.root / "docs").rglob("*.md")):
            text = page.read_text()
            blocks = blocks_of(text)
            self.assertEqual(len(blocks) + len(CLUSTER.findall(text)), text.count("<!-- output"), f"{page} has a block that cannot be read")
            for arguments, output in blocks:
                shown += 1
                with self.subTest(page=page.name, arguments=arguments):
                    ended = subprocess.run([str(self.program), *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS, cwd=self.root)
                    self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                    self.assertEqual(ended.stdout, output)
        self.assertGreater(shown, 0)

    def test_programs_print_in_a_cluster_what_documents_show(self) -> None:
        shown = 0
        for page in sorted((self.root / "docs").rglob("*.md")):
            for ranks, aggregators, levels, command, output in CLUSTER.findall(page.read_text()):
                shown += 1
                with self.subTest(page=page.name, command=command):
                    script = f'[ "$RANK" != 0 ] || {command.replace("tributary", shlex.quote(str(self.program)), 1)}'
                    run = [str(self.program), "run", "--ranks", ranks, "--aggregators", aggregators, "--levels", levels, "--", "sh", "-c", script]
                    ended = subprocess.run(run, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS, cwd=self.root)
                    self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                    self.assertEqual(shape_of(ended.stdout), shape_of(output))
        self.assertGreater(shown, 0)


if __name__ == "__main__":
    Outputs.root, Outputs.program = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:]
    unittest.main(verbosity=1)
