"""The cells of the study: each simulates, and returns plain values for JSON."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy
from collectives import BETWEEN_RANKS, TREE, Group, Programs, Way, bound_seconds
from fabric import Fabric
from loads import Links, Scenario, in_flight
from manager import Manager

# Median pause of a killed aggregator: bench/results/archive/failover-2026-11-23.md.
PAUSE_SECONDS = 13.7e-3
MIB = 1 << 20


@dataclass(frozen=True)
class Study:
    programs: Programs
    hop: float

    def seconds(self, group: Group, way: Way, size: int, straggler: float = 1.0) -> float:
        scenario = Scenario(group.links)
        if straggler != 1.0:
            scenario.narrow(int(group.members[group.ranks // 3]), straggler)
        group.start(scenario, way, size)
        return max(self.programs.run(scenario))

    def peers(self, group: Group, size: int, straggler: float = 1.0) -> dict[str, float]:
        return {it: self.seconds(group, Way("ranks", it, 0, 0), size, straggler) for it in BETWEEN_RANKS}

    def alone(self, fabric: Fabric, sizes: list[int], dead: int = 0, straggler: float = 1.0) -> list[dict]:
        """One job on all ranks. `dead`: number of aggregators, evenly spread, that never registered."""
        step = fabric.aggregators / dead if dead else 0
        missing = frozenset(int(it * step) for it in range(dead))
        began = time.monotonic()
        with Manager(self.programs.build, fabric, missing) as manager:
            asked = time.monotonic()
            plan = manager.plan([f"node-[0-{fabric.ranks - 1}]"])
            planned = time.monotonic()
        group = Group(Links(fabric), numpy.arange(fabric.ranks), plan, self.hop)
        cells = []
        for size in sizes:
            ways = self.programs.ways(fabric.ranks, size, plan)
            peers = self.peers(group, size, straggler)
            cell = {
                "kind": "alone", **fabric_values(fabric), "dead": dead, "straggler": straggler, "bytes": size,
                "bound": bound_seconds(fabric, fabric.ranks, size), "peers": peers, "plan_seconds": planned - asked,
                **plan_values(plan),
            }  # fmt: skip
            if ways:
                splits = [it for it in ways if it.path == "split"]
                cell["tree"] = self.seconds(group, TREE, size, straggler)
                cell["tree_estimate"] = next(it.seconds for it in ways if it.path == "tree")
                cell["chosen_way"] = str(ways[0])
                cell["chosen"] = self.seconds(group, ways[0], size, straggler)
                cell["chosen_estimate"] = ways[0].seconds
                if splits:
                    cell["split_way"] = str(splits[0])
                    cell["split"] = self.seconds(group, splits[0], size, straggler)
            cell["cell_seconds"] = time.monotonic() - began
            cells.append(cell)
        return cells

    def dies(self, fabric: Fabric, size: int) -> list[dict]:
        """The aggregator in most lanes dies when half of the time is over; after a pause the rest of its lanes goes
        between the ranks."""
        with Manager(self.programs.build, fabric) as manager:
            plan = manager.plan([f"node-[0-{fabric.ranks - 1}]"])
        group = Group(Links(fabric), numpy.arange(fabric.ranks), plan, self.hop)
        way = self.programs.ways(fabric.ranks, size, plan)[0]
        if way.on_trees == 0:
            return []
        whole = self.seconds(group, way, size)
        used = [it for lane in group.lanes for it in lane.aggregators]
        victim = max(sorted(set(used)), key=used.count)
        scenario = Scenario(group.links)
        flows = group.start(scenario, way, size)
        lost = [it for it, lane in zip(flows, group.lanes) if victim in lane.aggregators]
        rounds = 2 * (fabric.ranks.bit_length() - 1)
        for flow in lost:
            scenario.stop(flow, whole / 2, PAUSE_SECONDS + rounds * self.hop, group.heir_of_lanes(scenario))
        return [{
            "kind": "dies", **fabric_values(fabric), "bytes": size, "chosen_way": str(way), "whole": whole,
            "lanes": len(group.lanes), "lanes_lost": len(lost), "with_death": max(self.programs.run(scenario)),
            "ring": self.peers(group, size)["ring"],
        }]  # fmt: skip

    def together(self, fabric: Fabric, jobs: int, spread: bool, size: int) -> list[dict]:
        """Jobs of equal size reduce at once. Like real jobs, they ask the manager in turn, so later plans count the
        load of earlier jobs; then each renews its lease, and learns the load of all jobs."""
        links = Links(fabric)
        each = fabric.ranks // jobs
        groups = []
        with Manager(self.programs.build, fabric) as manager:
            for job in range(jobs):
                members = numpy.arange(job, fabric.ranks, jobs) if spread else numpy.arange(job * each, (job + 1) * each)
                plan = manager.reserve(f"job-{job}", [fabric.rank_host(it) for it in members])
                groups.append(Group(links, members, plan, self.hop))
            first = self._chosen(groups, size)
            for group in groups:
                group.plan = manager.renew(group.plan)
        ways = [self.programs.ways(each, size, it.plan) for it in groups]
        cell = {
            "kind": "together", **fabric_values(fabric), "jobs": jobs, "spread": spread, "bytes": size,
            "without_trees": sum(not it for it in ways), "ways": [str(it[0]) if it else "ring" for it in ways],
            "rates": [it.plan["rates"] for it in groups],
        }  # fmt: skip
        cell["ours"] = self._ends(groups, self._chosen(groups, size), size)
        cell["ours_before_renewals"] = self._ends(groups, first, size)
        for peer in BETWEEN_RANKS:
            cell[peer] = self._ends(groups, [Way("ranks", peer, 0, 0)] * jobs, size)
        cell["best_share"], cell["best"] = self._best_share(groups, size)
        return [cell]

    def _chosen(self, groups: list[Group], size: int) -> list[Way]:
        """The first way of the client's cost model for each group, by the rates that the group knows."""
        ways = [self.programs.ways(it.ranks, size, it.plan) for it in groups]
        return [it[0] if it else Way("ranks", "ring", 0, 0) for it in ways]

    def _best_share(self, groups: list[Group], size: int) -> tuple[float, list[float]]:
        """Returns the share of the trees with which the jobs end earliest, if all jobs have the same share."""
        tried = []
        for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
            way = Way("split", "halving_doubling", share, 0)
            tried.append((share, self._ends(groups, [way if it.lanes else Way("ranks", "ring", 0, 0) for it in groups], size)))
        return min(tried, key=lambda it: sum(it[1]))

    def _ends(self, groups: list[Group], ways: list[Way], size: int) -> list[float]:
        scenario = Scenario(groups[0].links)
        flows = [group.start(scenario, way, size) for group, way in zip(groups, ways, strict=True)]
        ended = self.programs.run(scenario)
        return [max(ended[it] for it in mine) for mine in flows]


def fabric_values(fabric: Fabric) -> dict:
    return {
        "ranks": fabric.ranks, "rack": fabric.rack, "oversubscription": fabric.oversubscription, "rate": fabric.rate,
        "ranks_per_aggregator": fabric.ranks_per_aggregator, "aggregator_rate": fabric.aggregator_rate,
    }  # fmt: skip


def plan_values(plan: dict) -> dict:
    trees = plan["trees"]
    return {
        "lanes": len(trees), "levels": max((it["levels"] for it in trees), default=0), "reason": plan["reason"],
        "rates": plan["rates"], "in_flight": max((in_flight(it) for it in trees), default=0), "segment_bytes": plan["segment_bytes"],
        "used": max((it["aggregators"] for it in trees), default=0),
    }  # fmt: skip


def programs(root: Path, build: Path) -> Programs:
    return Programs(build, root / "build/scale")
