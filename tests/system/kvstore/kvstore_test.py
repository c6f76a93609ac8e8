"""Workers with a key-value store over Tributary, with MXNet's arrays and with numpy's.

    kvstore_test.py REPOSITORY BUILD

The workers run in build/mxnet of the repository, which scripts/test frameworks makes.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from framework_jobs import Framework, Job, main


class KeyValueStore(Framework):
    def test_all_workers_get_the_sums(self) -> None:
        self.start_cluster()
        program = str(self.root / "tests/system/kvstore/kvstore_ranks.py")
        for size in (2, 4):
            with self.subTest(size=size):
                workers = Job(self, size, [program], self.over_trees).results(self)
                self.assertEqual(len(workers), size)
                for worker in workers:
                    self.assertEqual(worker["info"]["path"], "in-network")
                    self.assertGreater(worker["info"]["bytes_in_network"], 0)

    def train(self, size: int) -> Job:
        return Job(self, size, [str(self.root / "examples/mxnet_digits.py")], self.over_trees if size > 1 else lambda rank: {})

    def test_mxnet_trains_as_one_process(self) -> None:
        self.start_cluster()
        one = self.train(1).results(self)[0]
        workers = self.train(4).results(self)
        self.assertGreater(one["accuracy"], 0.97)
        self.assertAlmostEqual(sum(worker["loss"] for worker in workers) / 4, one["loss"], delta=1e-3)
        for worker in workers:
            self.assertAlmostEqual(worker["weights"], one["weights"], delta=one["weights"] * 1e-4)
            self.assertEqual(worker["weights"], workers[0]["weights"])  # the same bits
            self.assertGreaterEqual(worker["info"]["bytes_in_network"], 200 * 3610 * 4)


if __name__ == "__main__":
    sys.exit(main("mxnet", KeyValueStore))
