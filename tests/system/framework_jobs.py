"""Jobs of a framework's processes for tests in Python: beside a manager and three aggregators, with their outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

from free_ports import free_port

LIMIT_SECONDS = 300.0
SKIPPED = 77


class Job:
    """The processes of one program. Rank 0's output is read line by line; standard error goes to files."""

    def __init__(self, test: "Framework", size: int, program: list[str], environment: Callable[[int], dict[str, str]]) -> None:
        self.logs = [test.folder / f"rank-{rank}.log" for rank in range(size)]
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
        self.ranks = []
        for rank, log in enumerate(self.logs):
            variables = {**os.environ, **common, "RANK": str(rank), **environment(rank)}
            with log.open("w") as errors:
                command = [str(test.python), "-B", *program]
                self.ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables))
        test.addCleanup(self.end)

    def end(self) -> None:
        for process in self.ranks:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()

    def errors(self) -> str:
        return "\n".join(f"== rank {rank}\n{log.read_text()[-2000:]}" for rank, log in enumerate(self.logs))

    def results(self, test: "Framework") -> list[dict]:
        """Waits for the end of all ranks, and returns the last line of each, which is JSON, if there is one."""
        lines = []
        for rank, process in enumerate(self.ranks):
            output = process.communicate(timeout=LIMIT_SECONDS)[0].strip().splitlines()
            test.assertEqual(process.returncode, 0, f"rank {rank}\n{self.errors()}")
            lines.append(output[-1] if output else "null")
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for_line(self, test: "Framework", text: str) -> None:
        for line in self.ranks[0].stdout:
            if text in line:
                return
        test.fail(f"rank 0 ended without {text!r}\n{self.errors()}")


class Framework(unittest.TestCase):
    """The tests of one framework; main() sets the places."""

    root = build = python = Path()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start_cluster(self) -> None:
        """Starts a manager and three aggregators: the trees of four ranks on four hosts have two levels."""
        from demo_cluster import Cluster

        (self.folder / "cluster").mkdir()
        self.cluster = Cluster(self.build, self.folder / "cluster")
        self.addCleanup(self.cluster.stop)
        self.cluster.start()

    def over_trees(self, rank: int) -> dict[str, str]:
        # Each rank is a host of its own.
        return {**self.cluster.environment(rank), "TRIBUTARY_LOCAL": "off", "TRIBUTARY_SHM": "off"}

    def expect_lost_rank(self, job: Job, lost: int, pattern: str) -> None:
        """Waits until all other ranks have ended with an error that fits the pattern."""
        for rank, process in enumerate(job.ranks):
            process.communicate(timeout=LIMIT_SECONDS)
            self.assertNotEqual(process.returncode, 0)
            if rank != lost:
                self.assertRegex(job.logs[rank].read_text(), pattern)


def main(name: str, tests: type[Framework]) -> int:
    """Runs the tests in build/NAME of the repository. Arguments: the repository, the build."""
    Framework.root, Framework.build = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
    environment = Framework.root / "build" / name
    Framework.python = environment / "bin/python"
    if not (environment / "package").exists():
        print(f"skipped: {environment} does not have {name} and the package; scripts/test frameworks makes it")
        return SKIPPED
    for variable in [variable for variable in os.environ if variable.startswith("TRIBUTARY_")]:
        del os.environ[variable]
    sys.path.insert(0, str(Framework.root / "scripts"))
    found = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(tests))
    return 0 if found.wasSuccessful() else 1
