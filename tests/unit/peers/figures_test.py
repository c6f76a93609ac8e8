#!/usr/bin/env python3
"""The figures of bench/peers.

figures_test.py BENCH_PEERS
"""

import argparse
import contextlib
import io
import struct
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))

import contestants  # noqa: E402
import curve  # noqa: E402
import limits  # noqa: E402
import measure  # noqa: E402
import namespaces  # noqa: E402
import options  # noqa: E402
import places  # noqa: E402
import report  # noqa: E402
import samples  # noqa: E402
import service  # noqa: E402


def float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


class Limits(unittest.TestCase):
    def test_a_tree_moves_every_byte_once_each_way_and_a_ring_nearly_twice(self) -> None:
        self.assertAlmostEqual(limits.tree_seconds(125_000_000, 1e9), 1.0)
        self.assertAlmostEqual(limits.ring_seconds(125_000_000, 2, 1e9), 1.0)
        self.assertAlmostEqual(limits.ring_seconds(125_000_000, 8, 1e9), 1.75)

    def test_bandwidths(self) -> None:
        self.assertAlmostEqual(limits.algorithm_bandwidth(1000, 0.5), 2000)
        self.assertAlmostEqual(limits.bus_bandwidth(1000, 4, 0.5), 3000)

    def test_memory_is_read_and_written_once_by_every_rank(self) -> None:
        self.assertAlmostEqual(limits.memory_seconds(1000, 4, 8000), 1.0)


class Curve(unittest.TestCase):
    def test_a_curve_has_a_point_for_each_number_of_aggregators(self) -> None:
        def cell(contestant: str, size: int) -> dict:
            return {"contestant": contestant, "ranks": 4, "bytes": size, "seconds": {"median": size}}

        names = ["gloo", "tributary-equal-4", "tributary-fallback", "tributary-1", "tributary-equal-1"]
        cells = [cell(name, 10) for name in names] + [cell("tributary-fallback", 20)]
        self.assertEqual([aggregators for aggregators, _ in curve.points_of(cells[:5])], [0, 1, 4])
        self.assertEqual(curve.groups_of(cells), [cells[:5]])


class Samples(unittest.TestCase):
    def test_a_whole_batch_in_place_stays_exact_in_float32(self) -> None:
        for ranks in (2, 3, 4, 5, 7, 8, 16, 64):
            value = 61 * ranks - 3  # near the greatest sum of the drivers' inputs
            for _ in range(samples.batch_max(ranks) - 1):
                value *= ranks
            self.assertEqual(float32(value), value, ranks)

    def test_a_turn_is_filled_but_a_long_operation_is_taken_once(self) -> None:
        self.assertEqual(samples.plan(2.0, 0.5, 8), samples.Plan(1, 1))
        small = samples.plan(10e-6, 0.1, 8)
        self.assertEqual(small.batch, samples.batch_max(8))
        self.assertAlmostEqual(small.samples * small.batch * 10e-6, 0.1, delta=0.01)
        self.assertLessEqual(samples.plan(1e-6, 100, 2).samples, samples.SAMPLES_MAX)

    def test_an_operation_has_ended_when_its_slowest_rank_has(self) -> None:
        self.assertEqual(samples.slowest([[1, 5, 3], [2, 4, 3]]), [2, 5, 3])
        with self.assertRaises(ValueError):
            samples.slowest([[1, 2], [1]])

    def test_spread(self) -> None:
        it = samples.spread([5, 1, 3, 2, 4])
        self.assertEqual((it.median, it.quartile_low, it.quartile_high, it.least, it.greatest), (3, 2, 4, 1, 5))
        self.assertAlmostEqual(it.relative, 1 / 3)
        self.assertEqual(samples.spread([7]).relative, 0)
        with self.assertRaises(ValueError):
            samples.spread([])


def cell(contestant: str, seconds: float, ranks: int = 4) -> dict:
    it = measure.Cell(places.SETTINGS["1gbit"], ranks, 125_000_000, contestant)
    it.turns = [measure.Turn(seconds, 2, 0.5, 0.25, 0.0)] * 3
    return it.as_json(0)


class Report(unittest.TestCase):
    def test_units(self) -> None:
        for seconds, text in ((4.2e-6, "4.2 us"), (0.0123, "12.3 ms"), (1.5, "1.5 s"), (2000, "2000 s")):
            self.assertEqual(report.short_time(seconds), text)
        for size, text in ((4, "4 B"), (1 << 10, "1 KiB"), (3 << 20, "3 MiB"), (1000, "1000 B")):
            self.assertEqual(report.short_size(size), text)

    def test_a_row_says_what_part_of_the_limits_it_is_at_and_how_the_fastest_peer_compares(self) -> None:
        cells = [cell("tributary-1", 1.25), cell("gloo", 2.0), cell("openmpi", 2.5)]
        peer = report.fastest_peer(cells, contestants.ours)
        self.assertEqual(peer, 2.0)
        row = dict(zip(report.HEADINGS, report.row(cells[0], peer), strict=True))
        self.assertEqual((row["of tree"], row["of ring"], row["peer/this"]), ("80.0 %", "120.0 %", "1.60"))
        self.assertEqual((row["cpu s/GB ranks"], row["aggr."]), ("2.00", "1.00"))

    def test_equal_links_have_a_bound_by_the_number_of_aggregators(self) -> None:
        of = [measure.Cell(places.SETTINGS["equal"], 8, 125_000_000, "a", count) for count in (0, 2, 8, 20)]
        bounds = [it._limits(0)["bound_seconds"] for it in of]
        for found, expected in zip(bounds, (1.75, 1.75 / (1 + 0.25 * 0.75), 1.0, 1.0), strict=True):
            self.assertAlmostEqual(found, expected)
        self.assertNotIn("bound_seconds", measure.Cell(places.SETTINGS["1gbit"], 8, 4, "a", 8)._limits(0))

    def test_a_failure_has_a_row_with_its_sentence(self) -> None:
        it = measure.Cell(places.SETTINGS["1gbit"], 4, 1024, "gloo", failure="rank 3 has ended\nmore")
        text = report.table([it.as_json(0), cell("tributary-1", 1.0)], contestants.ours)
        self.assertIn("rank 3 has ended", text)
        self.assertNotIn("more", text)

    def test_two_builds_are_compared_turn_by_turn(self) -> None:
        def turns(name: str, seconds: list[float]) -> dict:
            return cell(name, 1.0) | {"turns": [{"seconds": it} for it in seconds]}

        # The machine is three times as slow in the second turn, for both builds.
        this, other = turns("tributary-1", [1.0, 3.0, 1.0]), turns("tributary-1@beside", [0.9, 2.7, 0.5])
        self.assertAlmostEqual(report.beside_ratio(this, other), 0.9)
        table = report.beside_table([this, other, turns("gloo", [1.0])])
        self.assertRegex(table, "tributary-1 +0.900")
        self.assertNotIn("gloo", table)
        self.assertEqual(report.beside_table([this, turns("gloo", [1.0])]), "")
        self.assertTrue(contestants.ours("tributary-1@beside"))
        self.assertFalse(contestants.ours("gloo"))

    def test_cells_of_other_sizes_ranks_or_settings_are_not_compared(self) -> None:
        self.assertEqual(len(report.grouped([cell("a", 1), cell("b", 1), cell("a", 1, ranks=8)])), 2)


class Queues(unittest.TestCase):
    def test_a_named_depth_is_a_time_at_the_rate(self) -> None:
        self.assertEqual(namespaces.queue_bytes(1e9, None), 500_000)
        self.assertEqual(namespaces.queue_bytes(200e6, None), 256 * 1024)
        self.assertEqual(namespaces.queue_bytes(200e6, 4e-3), 100_000)
        self.assertEqual(namespaces.queue_bytes(1e6, 1e-3), 4 * namespaces.FRAME_BYTES)

    def test_options_name_them(self) -> None:
        chosen = options.parse(["--congestion", "cubic,bbr", "--queue", "500us"])
        self.assertEqual((chosen.congestion_control, chosen.queue), (["cubic", "bbr"], 500e-6))
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            options.parse(["--queue", "4"])


class Topology(unittest.TestCase):
    def test_two_levels_have_two_leaves_of_neighbours_and_a_root(self) -> None:
        text = service.topology(4, 2)
        for low, high in (("worker-1", "switch-0"), ("worker-2", "switch-1"), ("switch-1", "switch-root")):
            self.assertIn(f"{{from: {low}, to: {high},", text)
        self.assertEqual(service.hosts_of(2), ["tree2-root", "tree2-leaf-0", "tree2-leaf-1"])

    def test_one_level_has_one_switch(self) -> None:
        self.assertEqual(service.topology(8, 1).count("level:"), 1)


class Options(unittest.TestCase):
    def refused(self, *arguments: str) -> str:
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            options.parse(list(arguments))
        return said.getvalue()

    def test_sizes(self) -> None:
        self.assertEqual([options.size_of(it) for it in ("4", "1K", "16MiB")], [4, 1024, 16 << 20])
        for bad in ("3", "5", "0", "1T", "x", "2048M"):
            with self.assertRaises(argparse.ArgumentTypeError, msg=bad):
                options.size_of(bad)

    def test_what_does_not_exist_is_refused_with_what_does(self) -> None:
        self.assertIn("there are loopback, shm", self.refused("--settings", "10gbit"))
        self.assertIn("there is no nccl", self.refused("--contestants", "gloo,nccl"))
        self.refused("--ranks", "1")
        self.refused("--set", "PATH=x")

    def test_quick_is_small(self) -> None:
        quick = options.parse(["--quick"])
        self.assertEqual((quick.settings, quick.ranks, len(quick.bytes)), (["loopback"], [2], 2))


if __name__ == "__main__":
    unittest.main(verbosity=1)
