"""Simulates one allreduce of a group, or of several groups at once, by every way, over the trees that the manager
planned."""

from __future__ import annotations

import math
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy
from fabric import Fabric
from loads import Lane, Links, Scenario, tree_depth

HOP_SECONDS = 16e-6  # half the time of an allreduce of 4 bytes over one aggregator, as in calibrate
BETWEEN_RANKS = ("ring", "double tree", "halving-doubling")


@dataclass(frozen=True)
class Programs:
    build: Path  # root folder of the project
    simulators: Path

    def run(self, scenario: Scenario) -> list[float]:
        program = [str(self.simulators / "flow_sim"), "--log=root.thres:error"]
        answer = subprocess.run(program, input=scenario.text(), check=True, capture_output=True, text=True)
        return [float(it) for it in answer.stdout.split()]

    def ways(self, ranks: int, size: int, plan: dict) -> list[Way]:
        """Returns the ways of the client's cost model, the quickest first."""
        if not plan["trees"]:
            return []
        rates = plan["rates"]
        numbers = (
            ranks, size, rates["links"], rates["trees"], rates["ranks"], len(plan["trees"]),
            max(it["levels"] for it in plan["trees"]), plan["segment_bytes"],
            *(rates.get(it, 0) for it in ("doubling", "halving", "spread")),
        )  # fmt: skip
        program = [str(self.build / "bench/scale/scale_ways"), *(str(it) for it in numbers)]
        lines = subprocess.run(program, check=True, capture_output=True, text=True).stdout.splitlines()
        return [Way(path, algorithm, float(share), float(seconds)) for path, algorithm, share, seconds in map(str.split, lines)]


@dataclass(frozen=True)
class Way:
    path: str
    algorithm: str
    share: float  # share of the trees, in a split operation
    seconds: float  # estimate of the cost model

    @property
    def on_trees(self) -> float:
        return {"tree": 1.0, "ranks": 0.0}.get(self.path, self.share)

    def __str__(self) -> str:
        if self.path == "tree":
            return "tree"
        algorithm = self.algorithm.replace("_", "-")
        return algorithm if self.path == "ranks" else f"{self.share:.0%} trees, {algorithm}".replace("%", " %")


TREE = Way("tree", "ring", 1.0, 0.0)


@dataclass
class Group:
    """The members are numbers among all ranks of the fabric, in the order of the group's ranks."""

    links: Links
    members: numpy.ndarray
    plan: dict
    hop: float = HOP_SECONDS
    lanes: list[Lane] = field(init=False)

    def __post_init__(self) -> None:
        segment = self.plan["segment_bytes"]
        self.lanes = [self.links.lane(it, self.members, segment, self.hop) for it in self.plan["trees"]]
        self._between: dict[str, list] = {}

    @property
    def ranks(self) -> int:
        return len(self.members)

    def start(self, scenario: Scenario, way: Way, size: float) -> list[int]:
        """Adds the flows of one allreduce, and returns the flows whose end is the end of the allreduce."""
        flows = []
        if way.on_trees > 0:
            flows += self.start_lanes(scenario, size * way.on_trees)
        if way.on_trees < 1:
            flows += self.start_ranks(scenario, way.algorithm, size * (1 - way.on_trees))
        return flows

    def start_lanes(self, scenario: Scenario, size: float) -> list[int]:
        segment = self.plan["segment_bytes"]
        segments = math.ceil(math.ceil(size / segment) / len(self.lanes))
        flows = []
        for lane in self.lanes:
            filling = (2 * lane.levels - 1) * min(segment, size)
            rate_max = 8 * lane.window * segment / lane.round_trip_seconds
            carried = min(segments * segment, size) + filling
            flows.append(scenario.flow(carried, 2 * lane.levels * self.hop, lane.counts, rate_max=rate_max))
        return flows

    def start_ranks(self, scenario: Scenario, algorithm: str, size: float) -> list[int]:
        algorithm = algorithm.replace("_", "-")
        if algorithm in ("halving-doubling", "recursive-doubling"):
            return self._doubling(scenario, algorithm, size)
        if algorithm == "double tree":
            trees = self._counts("double tree", lambda: self.links.double_tree(self.members))
            wait = 2 * tree_depth(self.ranks) * self.hop
            return [scenario.flow(size / 2, wait, it) for it in trees]
        counts = self._counts("ring", lambda: [self.links.ring(self.members)])
        rounds = 2 * (self.ranks - 1)
        return [scenario.flow(size * rounds / self.ranks, rounds * self.hop, counts[0])]

    def _doubling(self, scenario: Scenario, algorithm: str, size: float) -> list[int]:
        """Adds the flows of halving-doubling: first half of the vector with the nearest rank, and so on; then the same
        on the way back."""
        distances = [1 << it for it in range(self.ranks.bit_length() - 1)]
        steps = self._counts("exchange", lambda: [self.links.exchange(self.members, it) for it in distances])
        after = -1
        halving = [size / (2 << it) for it in range(len(steps))]
        parts = [size] * len(steps) if algorithm == "recursive-doubling" else halving + halving[::-1]
        order = steps if algorithm == "recursive-doubling" else steps + steps[::-1]
        for part, counts in zip(parts, order, strict=True):
            after = scenario.flow(part, self.hop, counts, after)
        return [after]

    def _counts(self, name: str, make) -> list:
        if name not in self._between:
            self._between[name] = make()
        return self._between[name]

    def heir_of_lanes(self, scenario: Scenario) -> int:
        """Adds a ring's flow for the rest of a lane: for each byte that is left, as many bytes as a ring carries for
        one byte."""
        counts = self._counts("ring", lambda: [self.links.ring(self.members)])
        return scenario.flow(2 * (self.ranks - 1) / self.ranks, 0, counts[0])


def bound_seconds(fabric: Fabric, ranks: int, size: float) -> float:
    """Returns the least time of all divisions between trees and ring, if only the hosts' links count (Jiang et al.,
    OSDI 2020)."""
    rho = 2 * (ranks - 1) / ranks
    return 8 * size / fabric.rate * rho / (1 + fabric.part_on_trees * (rho - 1))
