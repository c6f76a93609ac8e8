#!/usr/bin/env python3
"""Includes have one form, and a folder has one namespace.

    layout_test.py REPOSITORY

The rules:
- A public header is included as "tributary/...", from its include folder; any other header by its path from the
  repository's root; a system's or a library's header in angle brackets.
- A folder's namespace is that of the longest row of NAMESPACES which it lies in. A file may open this namespace, a
  namespace inside it, or the namespace of a folder above. Tests and benchmarks may open any namespace.
"""

import re
import sys
import unittest
from pathlib import Path

import tracked

NAMESPACES: dict[str, str] = {
    "protocol": "tributary",
    "service-kit": "tributary::service",
    "kernels": "tributary::kernels",
    "transport": "tributary::transport",
    "transport/dpdk": "tributary::transport::dpdk",
    "transport/ethernet": "tributary::transport::ethernet",
    "transport/io_threads": "tributary::transport::io_threads",
    "transport/packet": "tributary::transport::packet",
    "transport/turn": "tributary::transport::turn",
    "transport/udp": "tributary::transport::udp",
    "transport/verbs": "tributary::transport::verbs",
    "aggregator": "tributary::aggregator",
    "aggregator/engine": "tributary::engine",
    "tree-manager": "tributary::manager",
    "tree-manager/api-client": "tributary::manager_client",
    "client": "tributary::client",
    "client/schedule": "tributary::schedule",
    "client/tuning": "tributary::tuning",
    "client/cli": "tributary::cli",
    "client/plugins/jax": "tributary::jax",
    "client/plugins/mpi": "tributary::mpi",
    "client/plugins/nccl": "tributary::nccl",
    "client/plugins/tensorflow": "tributary::tensorflow",
    "client/plugins/torch": "tributary::torch",
}
ANYTHING = ("tests/", "bench/")
# Programs that other build systems make; these know only their own folder.
OWN_FOLDER = ("client/plugins/torch/csrc/", "bench/peers/drivers/")
# Headers of libraries that ask for quotes: Highway's are included once for each instruction set; NCCL's own are private.
QUOTED_LIBRARIES = re.compile(r"^hwy/|^(?:debug|env)\.h$")

SOURCES = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
OPENED = re.compile(r"^namespace (tributary[a-z_0-9:]*) \{", re.MULTILINE)


def row(folder: str) -> str | None:
    """Returns the longest row that the folder lies in."""
    rows = [name for name in NAMESPACES if folder == name or folder.startswith(name + "/")]
    return max(rows, key=len, default=None)


def wrong_namespaces(path: str, text: str) -> list[str]:
    if path.startswith(ANYTHING):
        return []
    own = row(path.rsplit("/", 1)[0])
    opened = set(OPENED.findall(text))
    if own is None:
        return [f"{path}: its folder has no row in NAMESPACES"] if opened else []
    above = {NAMESPACES[name] for name in NAMESPACES if own.startswith(name + "/")}
    mine = NAMESPACES[own]
    return [
        f"{path}: opens {name}; its folder's namespace is {mine}"
        for name in sorted(opened)
        if name != mine and not name.startswith(mine + "::") and name not in above
    ]


def wrong_includes(path: str, text: str, files: set[str], public: set[str]) -> list[str]:
    found = []
    for name in INCLUDE.findall(text):
        if name in public or (name in files and "/include/tributary/" not in name) or QUOTED_LIBRARIES.search(name):
            continue
        if path.startswith(OWN_FOLDER) and f"{path.rsplit('/', 1)[0]}/{name}" in files:
            continue
        found.append(f'{path}: #include "{name}" is neither a public header nor a path from the root')
    return found


class Rules(unittest.TestCase):
    """The checks detect the faults that they look for."""

    def test_a_header_is_named_from_the_root_or_its_include_folder(self) -> None:
        files = {"a/b.h", "a/c.h", "p/include/tributary/p/d.h"}
        public = {"tributary/p/d.h"}
        good = '#include "a/b.h"\n#include "tributary/p/d.h"\n#include <vector>\n'
        self.assertEqual(wrong_includes("a/x.cc", good, files, public), [])
        for bad in ("b.h", "../a/b.h", "p/include/tributary/p/d.h", "nowhere.h"):
            self.assertEqual(len(wrong_includes("a/x.cc", f'#include "{bad}"\n', files, public)), 1, bad)

    def test_a_file_opens_its_folders_namespace(self) -> None:
        def wrong(path: str, name: str) -> int:
            return len(wrong_namespaces(path, f"namespace {name} {{\n}}\n"))

        self.assertEqual(wrong("client/api/x.cc", "tributary::client"), 0)
        self.assertEqual(wrong("client/api/x.cc", "tributary::client::inner"), 0)
        self.assertEqual(wrong("transport/verbs/x.cc", "tributary::transport"), 0)
        self.assertEqual(wrong("client/tuning/x.h", "tributary::client::local"), 1)
        self.assertEqual(wrong("client/api/x.cc", "tributary::nccl"), 1)
        self.assertEqual(wrong("client/api/x.cc", "tributary"), 1)
        self.assertEqual(wrong("nowhere/x.cc", "tributary"), 1)
        self.assertEqual(wrong("tests/unit/x/x.cc", "tributary::nccl"), 0)


class Repository(unittest.TestCase):
    root: Path

    def sources(self) -> list[tuple[str, str]]:
        return [
            (str(path), (self.root / path).read_text(encoding="utf-8"))
            for path in tracked.files(self.root)
            if path.suffix in SOURCES
        ]

    def test_includes(self) -> None:
        files = {str(path) for path in tracked.files(self.root)}
        public = {name.split("/include/", 1)[1] for name in files if "/include/tributary/" in name}
        public.add("tributary/tributary.h")
        wrong = [line for path, text in self.sources() for line in wrong_includes(path, text, files, public)]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_namespaces(self) -> None:
        wrong = [line for path, text in self.sources() for line in wrong_namespaces(path, text)]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))


if __name__ == "__main__":
    Repository.root = Path(sys.argv.pop())
    unittest.main()
