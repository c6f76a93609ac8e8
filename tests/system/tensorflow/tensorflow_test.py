"""TensorFlow's processes over Tributary.

    tensorflow_test.py REPOSITORY BUILD

The processes run in build/tensorflow of the repository, which scripts/test frameworks makes.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from framework_jobs import Framework, Job, main

STEPS = 200
os.environ["TF_NUM_INTRAOP_THREADS"] = "1"


class TensorFlow(Framework):
    def train(self, way: str, size: int) -> Job:
        program = [str(self.root / "examples/tensorflow_digits.py"), "--way", way, "--steps", str(STEPS)]
        return Job(self, size, program, self.over_trees if size > 1 else lambda rank: {})

    def test_training_ends_as_in_one_process(self) -> None:
        self.start_cluster()
        one = self.train("tape", 1).results(self)[0]
        self.assertGreater(one["accuracy"], 0.97)
        for way, size in (("tape", 2), ("keras", 4)):
            with self.subTest(way=way, size=size):
                ours = self.train(way, size).results(self)[0]
                self.assertAlmostEqual(ours["loss"], one["loss"], delta=1e-4)
                self.assertAlmostEqual(ours["accuracy"], one["accuracy"], delta=0.002)
                info = ours["info"]
                self.assertEqual(info["path"], "in-network", info)
                # Each step sums the gradients of 3610 parameters with one call.
                self.assertGreaterEqual(info["bytes_in_network"], STEPS * 3610 * 4, info)
                self.assertLess(info["operations"], STEPS * 2 + 30, info)

    def test_every_call_gives_the_bits_of_numpy(self) -> None:
        self.start_cluster()
        program = str(self.root / "tests/system/tensorflow/tensorflow_ranks.py")
        for size in (2, 4):
            with self.subTest(size=size):
                for ours in Job(self, size, [program], self.over_trees).results(self):
                    self.assertGreater(ours["info"]["bytes_in_network"], 0)

    def test_a_killed_aggregator_does_not_change_the_training(self) -> None:
        self.start_cluster()
        undisturbed = self.train("tape", 1).results(self)[0]
        job = self.train("tape", 4)
        job.wait_for_line(self, "step 10:")
        self.cluster.services["leaf-agg-1"].kill()
        ours = job.results(self)[0]
        self.assertAlmostEqual(ours["loss"], undisturbed["loss"], delta=1e-4)
        self.assertGreaterEqual(ours["info"]["failovers"], 1, ours)
        self.assertGreater(ours["info"]["bytes_fallback"], 0, ours)

    def test_a_killed_rank_is_an_error_that_names_it(self) -> None:
        self.start_cluster()
        job = self.train("tape", 4)
        job.wait_for_line(self, "step 10:")
        job.ranks[2].send_signal(signal.SIGKILL)
        self.expect_lost_rank(job, 2, r"(?s)AbortedError.*tributary: .*rank 2")


if __name__ == "__main__":
    sys.exit(main("tensorflow", TensorFlow))
