#!/usr/bin/env python3
"""`tributary top` draws the cluster on a terminal, and ends with q.

    top_test.py TRIBUTARY MANAGER AGGREGATOR

tmux is the terminal. It runs as a separate server, on a socket in the test's folder.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

LIMIT_SECONDS = 60.0
SKIPPED = 77


class Top(unittest.TestCase):
    tributary = manager = aggregator = Path()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        state = self.folder / "state"
        ready = self.start("manager", [self.manager, "--listen", "127.0.0.1:0", "--state-dir", state])
        self.url = f"http://127.0.0.1:{ready['port']}"
        self.start("aggregator", [self.aggregator, "--name", "summit", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--manager", self.url,
                                  "--token-file", state / "aggregator.token", "--state-file", self.folder / "kept", "--workers", "1"])

    def start(self, name: str, command: list) -> dict:
        ready = self.folder / name
        process = subprocess.Popen([*command, "--ready-file", ready, "--log-level", "error"], stdout=subprocess.DEVNULL)

        def stop() -> None:
            process.terminate()
            process.wait(timeout=LIMIT_SECONDS)

        self.addCleanup(stop)
        self.wait_until(ready.exists, f"{name} does not serve")
        return json.loads(ready.read_text())

    def wait_until(self, condition, what: str) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)  # how often to look; no result depends on it

    def tmux(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "TRIBUTARY_"))}
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.folder / "tmux", *arguments], env=environment | {"LC_ALL": "C.UTF-8"},
                              capture_output=True, text=True, check=True).stdout

    def picture(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "top")

    def test_draws_and_ends(self) -> None:
        ended = self.folder / "ended"
        command = f"'{self.tributary}' top --manager {self.url} --interval 0.2; echo $? > '{ended}'; sleep 600"
        self.tmux("new-session", "-d", "-s", "top", "-x", "150", "-y", "20", command)
        self.addCleanup(self.tmux, "kill-server")
        self.wait_until(lambda: "summit" in self.picture(), "the aggregator is not shown")
        picture = self.picture()
        self.assertRegex(picture, r"tributary top +http://127.0.0.1:[0-9]+ +every 0.2 s +[0-9:]{8}")
        self.assertRegex(picture, r"aggregators: 1, groups: 0, ranks: 0; in-network 0 B/s")
        self.assertRegex(picture, r"summit +active ")
        self.assertIn("GROUP  JOB", picture)
        documented = (Path(__file__).resolve().parents[3] / "docs/operations/watch.md").read_text()
        for heading in ("AGGREGATOR", "GROUP"):
            shown = next(line.split() for line in picture.splitlines() if line.startswith(heading))
            self.assertIn(shown, [line.split() for line in documented.splitlines()], "the document shows another table")
        self.tmux("resize-window", "-t", "top", "-x", "60", "-y", "8")
        self.wait_until(lambda: max(len(line) for line in self.picture().splitlines()) <= 60, "it does not follow the size")
        self.tmux("send-keys", "-t", "top", "Down")
        self.tmux("send-keys", "-t", "top", "q")
        self.wait_until(lambda: ended.exists() and ended.read_text() == "0\n", "q does not end it")

    def test_needs_a_terminal(self) -> None:
        ended = subprocess.run([self.tributary, "top", "--manager", self.url], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("needs a terminal", ended.stderr)


if __name__ == "__main__":
    Top.tributary, Top.manager, Top.aggregator = (Path(argument) for argument in sys.argv[1:4])
    del sys.argv[1:]
    if shutil.which("tmux") is None:
        print("tmux is missing: scripts/setup installs it")
        sys.exit(SKIPPED)
    if "built without ncurses" in subprocess.run([Top.tributary, "top"], capture_output=True, text=True, check=False).stderr:
        print("tributary was built without ncurses")
        sys.exit(SKIPPED)
    unittest.main(verbosity=1)
