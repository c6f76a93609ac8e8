"""Daemons for a test in Python: they run in a folder of the test's own, and end with the test."""

import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

LIMIT_SECONDS = 60.0


class Daemons(unittest.TestCase):
    root = build = Path()  # the repository and its build

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.processes: dict[str, subprocess.Popen] = {}  # by the name that start() got

    def start(self, name: str, program: str, settings: str, before: tuple[str, ...] = ()) -> dict:
        """Starts a program with these settings, and waits until it serves. Returns its ready file's JSON. `program`: its path, in the build if it is relative. `before`: a
        command that runs the program."""
        ready, log = self.folder / f"{name}.ready", self.folder / f"{name}.log"
        (self.folder / f"{name}.yaml").write_text(settings + f"ready_file: {ready}\n")
        ready.unlink(missing_ok=True)  # of an earlier process with this name
        output = log.open("w")
        self.addCleanup(output.close)
        process = subprocess.Popen([*before, self.build / program, "--config", self.folder / f"{name}.yaml"], stdout=subprocess.DEVNULL, stderr=output)
        self.processes[name] = process

        def stop() -> None:
            process.terminate()
            process.wait(timeout=LIMIT_SECONDS)

        self.addCleanup(stop)
        self.wait_until(lambda: ready.exists() or process.poll() is not None, f"{name} does not serve")
        self.assertIsNone(process.poll(), log.read_text())
        return json.loads(ready.read_text())

    def environment(self, **more: str) -> dict[str, str]:
        """Returns this process's environment without settings of the library, and with `more`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRIBUTARY_", "NCCL_"))}
        return kept | more

    def tributary(self, *arguments: str, **more: str) -> subprocess.CompletedProcess:
        """Runs the command to its end, with these variables."""
        return subprocess.run([self.build / "client/cli/tributary", *arguments], env=self.environment(**more), capture_output=True, text=True, check=False,
                              timeout=2 * LIMIT_SECONDS)

    def wait_until(self, condition, what) -> None:
        """`what`: the awaited event in words, or a function that returns them when the time is over."""
        end = time.monotonic() + LIMIT_SECONDS
        while not condition():
            if time.monotonic() >= end:
                self.fail(what() if callable(what) else what)
            time.sleep(0.02)  # how often to look; no result depends on it
