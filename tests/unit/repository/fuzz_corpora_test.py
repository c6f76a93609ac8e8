#!/usr/bin/env python3
"""The inputs of fuzz targets: each target has a file of inputs, each file has the form that scripts/lib-fuzz-corpus
writes, and no input is lost between a folder and its file.

    fuzz_corpora_test.py REPOSITORY
"""

import hashlib
import importlib.machinery
import importlib.util
import re
import sys
import tempfile
import unittest
from pathlib import Path

import tracked

TARGET = re.compile(r"tributary_add_fuzz\(\s*(\w+)\s")


def tool(root: Path):
    """Returns scripts/lib-fuzz-corpus as a module."""
    loader = importlib.machinery.SourceFileLoader("fuzz_corpus", str(root / "scripts" / "lib-fuzz-corpus"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class FuzzCorpora(unittest.TestCase):
    root = Path()

    @classmethod
    def setUpClass(cls) -> None:
        cls.corpus = tool(cls.root)
        cls.paths = [path for path in tracked.files(cls.root) if path.match("tests/fuzz/*/corpus/*")]

    def test_each_target_keeps_inputs_in_a_file_and_nothing_else_lies_there(self) -> None:
        targets = set()
        for path in tracked.files(self.root):
            if path.match("tests/fuzz/*/CMakeLists.txt"):
                for name in TARGET.findall((self.root / path).read_text()):
                    targets.add(path.parent / "corpus" / f"{name}.txt")
        # In a loop, `tributary_add_fuzz(${target} ...)` takes its names from the line of the foreach.
        for path in tracked.files(self.root):
            if path.match("tests/fuzz/*/CMakeLists.txt"):
                for names in re.findall(r"foreach\(target ([\w ]+)\)", (self.root / path).read_text()):
                    targets |= {path.parent / "corpus" / f"{name}.txt" for name in names.split()}
        self.assertGreater(len(targets), 10)
        self.assertEqual(sorted(self.paths), sorted(targets))

    def test_a_file_is_as_the_tool_writes_it(self) -> None:
        for path in self.paths:
            text = (self.root / path).read_text()
            self.assertEqual(self.corpus.packed(self.corpus.unpacked(text, str(path))), text, f"{path}: unpack and pack it (scripts/lib-fuzz-corpus)")

    def test_an_input_named_by_its_hash_has_this_hash(self) -> None:
        for path in self.paths:
            for name, content in self.corpus.unpacked((self.root / path).read_text(), str(path)).items():
                if re.fullmatch(r"[0-9a-f]{40}", name):
                    self.assertEqual(hashlib.sha1(content).hexdigest(), name, path)

    def test_what_is_packed_comes_out_again(self) -> None:
        inputs = {"b": b"", "a": bytes(range(256)), "0" * 40: b"\n# \r\n", "c.d-e_f": b"x"}
        with tempfile.TemporaryDirectory() as scratch:
            made, file, again = Path(scratch, "made"), Path(scratch, "file.txt"), Path(scratch, "again")
            made.mkdir()
            for name, content in inputs.items():
                (made / name).write_bytes(content)
            self.assertEqual(self.corpus.pack(made, file), len(inputs))
            self.assertEqual(self.corpus.unpack(file, again), len(inputs))
            self.assertEqual({path.name: path.read_bytes() for path in again.iterdir()}, inputs)

    def test_malformed_text_is_refused(self) -> None:
        for bad in ("a 0\n", "a 0G\n", "a\n", "../a 00\n", "b 00\na 00\n", "a 00\na 00\n", "a  00\n"):
            with self.assertRaises(self.corpus.Malformed, msg=bad):
                self.corpus.unpacked(bad, "text")
        with self.assertRaises(self.corpus.Malformed):
            self.corpus.packed({"a b": b"x"})


if __name__ == "__main__":
    FuzzCorpora.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
