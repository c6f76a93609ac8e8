"""JAX's processes over Tributary, beside the same programs over gloo.

    jax_test.py REPOSITORY BUILD

The processes run in build/jax of the repository, which scripts/setup --frameworks makes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

LIMIT_SECONDS = 300.0
STEPS = 200
SKIPPED = 77


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Job:
    """The processes of one program. Rank 0's output is read line by line; standard error goes to files."""

    def __init__(self, test: "Jax", size: int, program: list[str], environment) -> None:
        self.logs = [test.folder / f"rank-{rank}.log" for rank in range(size)]
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size), "JAX_PLATFORMS": "cpu"}
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

    def results(self, test: "Jax") -> list[dict]:
        """Waits for the end of all ranks, and returns the last line of each, which is JSON, if there is one."""
        lines = []
        for rank, process in enumerate(self.ranks):
            output = process.communicate(timeout=LIMIT_SECONDS)[0].strip().splitlines()
            test.assertEqual(process.returncode, 0, f"rank {rank}\n{self.errors()}")
            lines.append(output[-1] if output else "null")
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for_line(self, test: "Jax", text: str) -> None:
        for line in self.ranks[0].stdout:
            if text in line:
                return
        test.fail(f"rank 0 ended without {text!r}\n{self.errors()}")


class Jax(unittest.TestCase):
    root = build = python = Path()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start_cluster(self):
        """Starts a manager and three aggregators: the trees of four ranks on four hosts have two levels."""
        from demo_cluster import Cluster

        (self.folder / "cluster").mkdir()
        self.cluster = Cluster(self.build, self.folder / "cluster")
        self.addCleanup(self.cluster.stop)
        self.cluster.start()

    def over_trees(self, rank: int) -> dict[str, str]:
        # Each rank is a host of its own.
        return {**self.cluster.environment(rank), "TRIBUTARY_LOCAL": "off", "TRIBUTARY_SHM": "off"}

    def train(self, way: str, size: int, collectives: str) -> Job:
        program = [str(self.root / "examples/jax_digits.py"), "--way", way, "--steps", str(STEPS), "--collectives", collectives]
        return Job(self, size, program, self.over_trees if collectives == "tributary" else lambda rank: {})

    def expect_same_training(self, way: str, size: int) -> None:
        self.start_cluster()
        ours = self.train(way, size, "tributary").results(self)[0]
        gloo = self.train(way, size, "gloo").results(self)[0]
        self.assertAlmostEqual(ours["loss"], gloo["loss"], delta=1e-5)
        self.assertAlmostEqual(ours["accuracy"], gloo["accuracy"], delta=0.005)
        self.assertGreater(ours["accuracy"], 0.95)
        info = ours["info"]
        self.assertEqual(info["path"], "in-network", info)
        # Each step sums the gradients of 3610 parameters and the loss.
        self.assertGreaterEqual(info["bytes_in_network"], STEPS * 3611 * 4, info)
        self.assertEqual(info["bytes_fallback"] + info["bytes_local"], 0, info)

    def test_shard_map_trains_on_two_processes_as_with_gloo(self) -> None:
        self.expect_same_training("shard_map", 2)

    def test_pjit_trains_on_four_processes_as_with_gloo(self) -> None:
        self.expect_same_training("pjit", 4)

    def test_results_have_the_bits_of_gloo(self) -> None:
        self.start_cluster()
        program = str(self.root / "tests/system/jax/jax_ranks.py")
        for size in (2, 4):
            with self.subTest(size=size):
                ours = Job(self, size, [program, "tributary"], self.over_trees).results(self)
                gloo = Job(self, size, [program, "gloo"], lambda rank: {}).results(self)
                self.assertEqual(len(ours), size)
                for rank in range(size):
                    self.assertEqual(ours[rank]["digests"], gloo[rank]["digests"], f"rank {rank}")
                # Rows and columns have communicators of their own.
                self.assertEqual(ours[0]["info"]["communicators"], 3 if size == 4 else 1)

    def test_a_killed_aggregator_does_not_change_the_training(self) -> None:
        self.start_cluster()
        undisturbed = self.train("shard_map", 4, "gloo").results(self)[0]
        job = self.train("shard_map", 4, "tributary")
        job.wait_for_line(self, "step 10:")
        self.cluster.services["leaf-agg-1"].kill()
        ours = job.results(self)[0]
        self.assertAlmostEqual(ours["loss"], undisturbed["loss"], delta=1e-5)
        self.assertGreaterEqual(ours["info"]["failovers"], 1, ours)
        self.assertGreater(ours["info"]["bytes_fallback"], 0, ours)

    def test_a_killed_process_is_an_error_that_names_it(self) -> None:
        self.start_cluster()
        job = self.train("shard_map", 4, "tributary")
        job.wait_for_line(self, "step 10:")
        job.ranks[2].send_signal(signal.SIGKILL)
        for rank in (0, 1, 3):
            job.ranks[rank].communicate(timeout=LIMIT_SECONDS)
            self.assertNotEqual(job.ranks[rank].returncode, 0)
            self.assertRegex(job.logs[rank].read_text(), r"MPI_\w+: .*rank 2")

    def test_jax_that_was_imported_first_is_an_error(self) -> None:
        program = "import jax\nimport tributary.jax\ntributary.jax.initialize('127.0.0.1:1', 1, 0)"
        ended = subprocess.run([self.python, "-c", program], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Import tributary.jax first, or start the program with MPITRAMPOLINE_LIB=", ended.stderr)


def main() -> int:
    Jax.root, Jax.build = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
    environment = Jax.root / "build/jax"
    Jax.python = environment / "bin/python"
    if not (environment / "package").exists():
        print(f"skipped: {environment} does not have JAX and the package; scripts/test frameworks makes it")
        return SKIPPED
    for name in [name for name in os.environ if name.startswith("TRIBUTARY_")]:
        del os.environ[name]
    sys.path.insert(0, str(Jax.root / "scripts"))
    unittest.main(verbosity=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
