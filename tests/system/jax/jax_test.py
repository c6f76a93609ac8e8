"""JAX's processes over Tributary, beside the same programs over gloo.

    jax_test.py REPOSITORY BUILD

The processes run in build/jax of the repository, which scripts/test frameworks makes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from framework_jobs import LIMIT_SECONDS, Framework, Job, main

STEPS = 200
os.environ["JAX_PLATFORMS"] = "cpu"


class Jax(Framework):
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
        self.expect_lost_rank(job, 2, r"MPI_\w+: .*rank 2")

    def test_an_exception_ends_the_other_processes_at_once(self) -> None:
        self.start_cluster()
        lines = ["import numpy, tributary.jax", "tributary.jax.initialize()", "import jax", "from jax.experimental import multihost_utils"]
        lines += ["for number in range(3):", "    if number == 2 and jax.process_index() == 1: raise KeyError('wrong')"]
        lines += ["    multihost_utils.process_allgather(numpy.arange(2))"]
        job = Job(self, 2, ["-c", "\n".join(lines)], self.over_trees)
        self.expect_lost_rank(job, 1, "rank 1 aborted: the program of this rank ended with KeyError")

    def test_jax_that_was_imported_first_is_an_error(self) -> None:
        program = "import jax\nimport tributary.jax\ntributary.jax.initialize('127.0.0.1:1', 1, 0)"
        ended = subprocess.run([self.python, "-c", program], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Import tributary.jax first, or start the program with MPITRAMPOLINE_LIB=", ended.stderr)


if __name__ == "__main__":
    sys.exit(main("jax", Jax))
