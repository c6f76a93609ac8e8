#!/usr/bin/env python3
"""The collectives of bench/scale load the links as calculated by hand, and take the calculated time.

closed_forms_test.py REPOSITORY
"""

import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "bench/scale"))
try:
    import numpy
except ImportError:
    print("skipped: no python3-numpy (scripts/setup --scale)")
    sys.exit(77)

from collectives import TREE, Group, Programs, Way, bound_seconds  # noqa: E402
from fabric import Fabric  # noqa: E402
from loads import Links, Scenario, binary_tree_parents, in_flight  # noqa: E402

SIMULATORS = ROOT / "build/scale"
HOP = 16e-6
MIB = 1 << 20
FABRIC = Fabric(ranks=32, rack=8, ranks_per_aggregator=8, aggregator_rate=400e9)
NO_TREES = {"trees": [], "segment_bytes": 65536}


def lane(aggregator: int, ranks: int, window: int = 64) -> dict:
    children = [{"rank": it, "host": f"node-{it}"} for it in range(ranks)]
    root = {"aggregator": f"a-{aggregator}", "level": 1, "children": children}
    return {"lane": 0, "levels": 1, "aggregators": 1, "window": window, "root": root}


def group(plan: dict, fabric: Fabric = FABRIC) -> Group:
    return Group(Links(fabric), numpy.arange(fabric.ranks), plan, HOP)


def seconds(of: Group, way: Way, size: int) -> float:
    scenario = Scenario(of.links)
    of.start(scenario, way, size)
    return max(Programs(Path(), SIMULATORS).run(scenario))


class Loads(unittest.TestCase):
    def test_children_have_half_of_a_reserved_window_in_flight_but_two_segments_where_there_are_as_many(self) -> None:
        self.assertEqual([in_flight({"window": it}) for it in (64, 7, 3, 2, 1)], [32, 4, 2, 2, 1])

    def test_every_rank_of_a_ring_sends_once_and_every_rack_too(self) -> None:
        counts = Links(FABRIC).ring(numpy.arange(32))
        self.assertEqual(counts[:32].tolist(), [1] * 32)
        self.assertEqual(counts[32:36].tolist(), [0] * 4)
        self.assertEqual(counts[36:].tolist(), [1] * 4)

    def test_a_lane_of_one_level_loads_its_aggregator_by_children_and_the_racks_by_those_from_elsewhere(self) -> None:
        counts = group({**NO_TREES, "trees": [lane(1, 32)]}).lanes[0].counts
        self.assertEqual(counts[:32].tolist(), [1] * 32)
        self.assertEqual(counts[32:36].tolist(), [0, 32, 0, 0])
        self.assertEqual(counts[36:].tolist(), [8, 24, 8, 8])

    def test_an_aggregator_below_another_carries_one_vector_more(self) -> None:
        below = {"aggregator": "a-0", "children": [{"rank": it} for it in range(8)]}
        root = {"aggregator": "a-1", "children": [{"rank": it} for it in range(8, 32)] + [below]}
        counts = group({**NO_TREES, "trees": [{"levels": 2, "window": 64, "root": root}]}).lanes[0].counts
        self.assertEqual(counts[32:36].tolist(), [9, 25, 0, 0])
        self.assertEqual(counts[36:].tolist(), [1, 17, 8, 8])

    def test_binary_trees_have_one_root_and_no_rank_is_inside_both(self) -> None:
        for ranks in (4, 32, 1024):
            parents = binary_tree_parents(ranks)
            self.assertEqual((parents < 0).sum(), 1)
            inside = numpy.isin(numpy.arange(ranks), parents)
            self.assertFalse((inside & inside[::-1])[1:-1].any(), ranks)
            children = numpy.bincount(parents[parents >= 0], minlength=ranks)
            self.assertLessEqual(children.max(), 2)

    def test_both_trees_together_load_a_link_with_two_vectors(self) -> None:
        both = sum(Links(FABRIC).double_tree(numpy.arange(32)))
        self.assertEqual(both[:32].max(), 4)  # two trees, each with half a vector


@unittest.skipUnless((SIMULATORS / "flow_sim").exists(), "SimGrid is missing (bench/scale/setup)")
class Times(unittest.TestCase):
    def close(self, given: float, wanted: float) -> None:
        self.assertLess(abs(given / wanted - 1), 1e-3, f"{given} s instead of {wanted} s")

    def test_a_ring_takes_nearly_two_vectors_and_a_hop_a_round(self) -> None:
        self.close(seconds(group(NO_TREES), Way("ranks", "ring", 0, 0), 64 * MIB), 62 / 32 * 64 * MIB * 8 / 100e9 + 62 * HOP)

    def test_halving_doubling_takes_nearly_two_vectors_and_a_hop_a_step(self) -> None:
        wanted = 62 / 32 * 64 * MIB * 8 / 100e9 + 10 * HOP
        self.close(seconds(group(NO_TREES), Way("ranks", "halving_doubling", 0, 0), 64 * MIB), wanted)

    def test_a_lane_takes_its_aggregators_children_times_the_vector_and_one_segment_more(self) -> None:
        plan = {**NO_TREES, "trees": [lane(1, 32)]}
        self.close(seconds(group(plan), TREE, 64 * MIB), 32 * (64 * MIB + 65536) * 8 / 400e9 + 2 * HOP)

    def test_a_small_window_bounds_a_lane_by_its_round_trip(self) -> None:
        plan = {"segment_bytes": 4096, "trees": [lane(1, 32, window=4)]}
        round_trip = 2 * (HOP + 32 * 4096 * 8 / 400e9)
        self.close(seconds(group(plan), TREE, 4 * MIB), (1024 + 1) * round_trip / 2 + 2 * HOP)

    def test_a_lane_and_a_ring_share_the_links_of_the_ranks(self) -> None:
        plan = {**NO_TREES, "trees": [lane(it, 32) for it in range(4)]}
        share = 1 / 4 * 31 / 16 / (1 + 1 / 4 * 15 / 16)  # c = 4 x 400 / (32 x 100), minus the uplinks' part
        split = seconds(group(plan), Way("split", "ring", share, 0), 1024 * MIB)
        bound = bound_seconds(FABRIC, 32, 1024 * MIB)
        self.assertGreater(split, bound)
        ring = seconds(group(plan), Way("ranks", "ring", 0, 0), 1024 * MIB)
        self.assertLess(split, ring)

    def test_a_lost_lane_goes_on_between_the_ranks_after_the_pause(self) -> None:
        plan = {**NO_TREES, "trees": [lane(1, 32)]}
        of = group(plan)
        whole = seconds(of, TREE, 64 * MIB)
        scenario = Scenario(of.links)
        flow = of.start(scenario, TREE, 64 * MIB)[0]
        pause = 10e-3
        scenario.stop(flow, whole / 2, pause, of.heir_of_lanes(scenario))
        left = (64 * MIB + 65536) / 2 * 62 / 32 * 8 / 100e9
        self.close(max(Programs(Path(), SIMULATORS).run(scenario)), whole / 2 + pause + left)


if __name__ == "__main__":
    unittest.main(verbosity=2)
