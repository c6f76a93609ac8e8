#!/usr/bin/env python3
"""scripts/release keeps one version everywhere, and makes no release from a tree that is not ready.

    release_test.py REPOSITORY
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FILES = ["CMakeLists.txt", "CHANGELOG.md", "client/plugins/torch/setup.py", "client/plugins/torch/python/tributary/__init__.py",
         "packaging/kubernetes/chart/Chart.yaml", "packaging/kubernetes/chart/values.yaml", "packaging/kubernetes/tributary.yaml",
         "docs/operations/install.md", "docs/operations/kubernetes.md"]
CHANGES = "# Changelog\n\n## [Unreleased]\n\n### Added\n- A thing.\n\n## [{}] - 2026-01-02\n\nThe first.\n"


class Release(unittest.TestCase):
    root = Path()

    def setUp(self) -> None:
        self.copy = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.copy)
        for name in FILES:
            (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.root / name, self.copy / name)
        self.now = self.run_release("--check")[1].split()[-1]
        (self.copy / "CHANGELOG.md").write_text(CHANGES.format(self.now))
        self.git("init", "--quiet")
        self.commit()

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return subprocess.run(["git", *who, "-C", str(self.copy), *arguments], capture_output=True, text=True, check=True).stdout

    def commit(self) -> None:
        self.git("config", "user.name", "A")
        self.git("config", "user.email", "a@example.org")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "x")

    def run_release(self, *arguments: str) -> tuple[int, str]:
        ended = subprocess.run([str(self.root / "scripts" / "release"), "--root", str(self.copy), *arguments], capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def test_this_repository_names_one_version(self) -> None:
        ended = subprocess.run([str(self.root / "scripts" / "release"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_a_place_with_another_version_is_named(self) -> None:
        chart = self.copy / "packaging/kubernetes/chart/Chart.yaml"
        chart.write_text(chart.read_text().replace(f"version: {self.now}", "version: 9.9.9", 1))
        code, text = self.run_release("--check")
        self.assertEqual(code, 1)
        self.assertIn(f"packaging/kubernetes/chart/Chart.yaml: {self.now}, 9.9.9", text)

    def test_a_release_is_a_commit_and_a_tag_with_the_notes(self) -> None:
        code, text = self.run_release("7.1.0", "--untested")
        self.assertEqual(code, 0, text)
        self.assertEqual(self.run_release("--check"), (0, "all places name 7.1.0\n"))
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.git("log", "-1", "--format=%s").strip(), "Release 7.1.0")
        told = self.git("tag", "--list", "--format=%(contents)", "v7.1.0")
        self.assertIn("### Added\n- A thing.", told)
        self.assertIn("The tests were not run on this tree.", told)
        self.assertNotIn("The first.", told)
        changes = (self.copy / "CHANGELOG.md").read_text()
        self.assertRegex(changes, r"## \[Unreleased\]\n\n## \[7\.1\.0\] - \d{4}-\d\d-\d\d\n")

    def refused(self, why: str, *arguments: str) -> None:
        before = self.git("rev-parse", "HEAD")
        code, text = self.run_release(*arguments)
        self.assertEqual(code, 1)
        self.assertIn(why, text)
        self.assertEqual(self.git("rev-parse", "HEAD"), before)
        self.assertEqual(self.git("tag"), "")

    def test_a_tree_that_is_not_ready_is_refused(self) -> None:
        self.refused("is not above", self.now, "--untested")
        self.refused("is no version", "7.1", "--untested")
        self.refused("the tests have not run", "7.1.0")
        (self.copy / "new").write_text("x")
        self.refused("not committed", "7.1.0", "--untested")
        (self.copy / "new").unlink()
        (self.copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## [Unreleased]\n\n## [{self.now}] - 2026-01-02\n")
        self.commit()
        self.refused("nothing in [Unreleased]", "7.1.0", "--untested")

    def test_failed_tests_are_refused(self) -> None:
        logs = self.copy / "build/release/Testing/Temporary"
        logs.mkdir(parents=True)
        (self.copy / ".gitignore").write_text("build/\n")
        self.commit()
        (logs / "LastTest.log").write_text("x")
        (logs / "LastTestsFailed.log").write_text("3:some_test\n")
        self.refused("3:some_test", "7.1.0")
        (logs / "LastTestsFailed.log").unlink()
        self.assertEqual(self.run_release("7.1.0")[0], 0)


if __name__ == "__main__":
    Release.root = Path(sys.argv[1]).resolve()
    del sys.argv[1:]
    unittest.main(verbosity=1)
