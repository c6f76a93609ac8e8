#!/usr/bin/env python3
"""The figures of bench/peers/train.

training_test.py BENCH_PEERS
"""

import contextlib
import io
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))

import training  # noqa: E402
import training_figures as figures  # noqa: E402


def answer(seconds: float = 4.0, path: str = "gloo", digest: str = "ab") -> figures.Answer:
    return figures.Answer.parse(f"1.5 {seconds} 1.0 2.0 0.5 5.25 {path} {digest}")


def turn(seconds: float, forward: float = 1.0, backward: float = 2.0, optimizer: float = 0.5) -> figures.Turn:
    return figures.Turn(seconds, forward, backward, optimizer, 3.0, 0.25, 0.0, 5.0)


class Turns(unittest.TestCase):
    def test_a_step_is_the_slowest_ranks(self) -> None:
        it = figures.Turn.of([answer(4.0), answer(6.0)], 2, 1.0, 0.0)
        self.assertEqual((it.seconds, it.forward_seconds, it.backward_seconds, it.optimizer_seconds), (3, 0.5, 1, 0.25))
        self.assertEqual((it.rank_cpu_seconds, it.aggregator_cpu_seconds, it.loss), (1.5, 0.5, 5.25))

    def test_ranks_whose_parameters_differ_are_found(self) -> None:
        self.assertEqual(figures.why_wrong([answer(), answer()], "gloo"), "")
        self.assertIn("2 different sets on 2 ranks", figures.why_wrong([answer(), answer(digest="ac")], "gloo"))

    def test_reductions_that_left_their_path_are_found(self) -> None:
        answers = [answer(path="in-network-1"), answer(path="fallback")]
        self.assertIn("by fallback, not by in-network-1", figures.why_wrong(answers, "in-network-1"))


class Limits(unittest.TestCase):
    def test_a_ring_needs_more_of_the_link_than_a_tree(self) -> None:
        self.assertAlmostEqual(figures.communication_limit(25_000_000, 4, 200e6, tree=True), 1.0)
        self.assertAlmostEqual(figures.communication_limit(25_000_000, 4, 200e6, tree=False), 1.5)
        self.assertIsNone(figures.communication_limit(25_000_000, 4, None, tree=True))

    def test_the_longer_of_link_and_backward_pass_hides_the_other(self) -> None:
        compute = [turn(3.5)] * 3
        self.assertEqual(figures.step_limit(compute, 4.0), 5.5)
        self.assertEqual(figures.step_limit(compute, 1.0), 3.5)
        self.assertEqual(figures.step_limit(compute, None), 3.5)


class Table(unittest.TestCase):
    def test_a_row_says_what_part_of_the_limit_it_is_at_and_how_gloo_compares(self) -> None:
        cells = figures.row("tributary-1", [turn(11.0)] * 3, [turn(3.5)] * 3, 4.0, 22.0, "")
        row = dict(zip(figures.HEADINGS, cells, strict=True))
        self.assertEqual((row["step limit"], row["limit/step"], row["gloo/this"]), ("5.5 s", "50.0 %", "2.00"))

    def test_one_that_failed_has_a_row_with_its_sentence(self) -> None:
        row = figures.row("gloo", [], [], None, None, "rank 3 has ended")
        self.assertEqual((len(row), row[-1]), (len(figures.HEADINGS), "rank 3 has ended"))


class Options(unittest.TestCase):
    def test_the_model_has_25_million_parameters_unless_told_otherwise(self) -> None:
        it = training.parse([])
        self.assertAlmostEqual(figures.parameters(it.layers, it.width, it.characters) / 1e6, 25, delta=1)

    def test_what_cannot_be_is_refused(self) -> None:
        for bad in (["--width", "100"], ["--ranks", "1"], ["--setting", "shm"], ["--contestants", "openmpi"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit, msg=bad):
                training.parse(bad)


if __name__ == "__main__":
    unittest.main(verbosity=1)
