"""Turns collectives into the coupled flows of flow_sim: how often a byte of each collective goes over each link.

Each collective here sends equally much in both directions of every link, so a link stands for both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy
from fabric import Fabric

Counts = numpy.ndarray


def in_flight(tree: dict) -> int:
    """Segments that each child of a planned tree has in flight at first: a half of the window that the aggregators
    reserve, as client/collectives/in_network/lane_window.cc has it."""
    return min(tree["window"], max(math.ceil(tree["window"] / 2), 2))


@dataclass
class Lane:
    """A tree of the manager's plan."""

    counts: Counts
    levels: int
    window: int  # segments that each child has in flight
    round_trip_seconds: float  # time of a segment that finds all links idle
    aggregators: frozenset[int]


class Links:
    """All links of a fabric: first the links of the ranks' hosts, then the aggregators' links, then the racks'
    uplinks."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.rates = numpy.concatenate([
            numpy.full(fabric.ranks, fabric.rate),
            numpy.full(fabric.aggregators, fabric.aggregator_rate),
            numpy.full(fabric.racks, fabric.uplink_rate),
        ])  # fmt: skip
        self.rack_of_rank = numpy.arange(fabric.ranks) // fabric.rack
        self._uplinks = fabric.ranks + fabric.aggregators

    def none(self) -> Counts:
        return numpy.zeros(len(self.rates), dtype=numpy.int32)

    def _cross(self, counts: Counts, racks: numpy.ndarray, others: numpy.ndarray) -> None:
        """Adds edges between these racks to the uplinks that they use."""
        cross = racks != others
        for ends in (racks[cross], others[cross]):
            counts[self._uplinks :] += numpy.bincount(ends, minlength=self.fabric.racks).astype(numpy.int32)

    def edges(self, ranks: numpy.ndarray, others: numpy.ndarray) -> Counts:
        """Adds edges between ranks, each with a byte in each direction."""
        counts = self.none()
        for ends in (ranks, others):
            counts[: self.fabric.ranks] += numpy.bincount(ends, minlength=self.fabric.ranks).astype(numpy.int32)
        self._cross(counts, self.rack_of_rank[ranks], self.rack_of_rank[others])
        return counts

    def ring(self, members: numpy.ndarray) -> Counts:
        """Adds edges of one direction: a host and a rack receive from one neighbour as much as they send to the other
        neighbour."""
        following = numpy.roll(members, -1)
        counts = self.none()
        counts[members] = 1
        racks, others = self.rack_of_rank[members], self.rack_of_rank[following]
        leaving = numpy.bincount(racks[racks != others], minlength=self.fabric.racks)
        counts[self._uplinks :] += leaving.astype(numpy.int32)
        return counts

    def lane(self, tree: dict, members: numpy.ndarray, segment_bytes: int, hop_seconds: float) -> Lane:
        """`tree` is one of the trees that `tributary plan -o json` prints; `members` are the group's ranks among all ranks."""
        counts = self.none()
        used: set[int] = set()
        fabric = self.fabric

        def add(node: dict) -> float:
            """Adds the node with all nodes and ranks below it, and returns the seconds that a segment takes from the
            ranks through this node."""
            aggregator = int(node["aggregator"][2:])
            used.add(aggregator)
            children = node["children"]
            ranks = members[[it["rank"] for it in children if "rank" in it]]
            below = [it for it in children if "rank" not in it]
            counts[ranks] += 1
            at = fabric.ranks + aggregator
            counts[at] += len(children)
            rack = fabric.rack_of_aggregator(aggregator)
            self._cross(counts, self.rack_of_rank[ranks], numpy.full(len(ranks), rack))
            slowest = 0.0
            for child in below:
                slowest = max(slowest, add(child))
                number = int(child["aggregator"][2:])
                counts[fabric.ranks + number] += 1
                self._cross(counts, numpy.array([rack]), numpy.array([fabric.rack_of_aggregator(number)]))
            rate = min(fabric.rate if len(ranks) else fabric.aggregator_rate, fabric.aggregator_rate / len(children))
            return slowest + hop_seconds + 8 * segment_bytes / rate

        up = add(tree["root"])
        return Lane(counts, tree["levels"], in_flight(tree), 2 * up, frozenset(used))

    def double_tree(self, members: numpy.ndarray) -> list[Counts]:
        """NCCL's two binary trees: a rank inside one is a leaf of the other (Sanders, Speck, Träff 2009)."""
        trees = []
        parents = binary_tree_parents(len(members))
        for mirrored in (False, True):
            child = numpy.flatnonzero(parents >= 0)
            parent = parents[child]
            if mirrored:
                child, parent = len(members) - 1 - child, len(members) - 1 - parent
            trees.append(self.edges(members[child], members[parent]))
        return trees

    def exchange(self, members: numpy.ndarray, distance: int) -> Counts:
        """Every rank exchanges with the rank at this distance; the number of members is a power of two."""
        index = numpy.arange(len(members))
        lower = index[index & distance == 0]
        return self.edges(members[lower], members[lower ^ distance])


def binary_tree_parents(ranks: int) -> numpy.ndarray:
    """Returns the parent of each rank in an in-order binary tree over the ranks; the root, rank 0, has one child and no
    parent."""
    parents = numpy.full(ranks, -1)
    for rank in range(1, ranks):
        bit = rank & -rank
        parent = (rank ^ bit) | bit << 1
        parents[rank] = parent if parent < ranks else rank ^ bit
    return parents


def tree_depth(ranks: int) -> int:
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


class Scenario:
    """Collects flows, and writes each kind of link once: links of one rate with the same flows are one constraint."""

    def __init__(self, links: Links) -> None:
        self._rates = links.rates.copy()
        self._flows: list[str] = []
        self._columns: list[Counts] = []
        self._own_rates: dict[int, float] = {}
        self._stops: list[str] = []

    def narrow(self, link: int, part: float) -> None:
        self._rates[link] *= part

    def flow(self, bytes_: float, wait: float, counts: Counts, after: int = -1, rate_max: float = 0) -> int:
        self._flows.append(f"flow {bytes_:.6f} {wait:.9f} {after}")
        self._columns.append(counts)
        if rate_max:
            self._own_rates[len(self._flows) - 1] = rate_max
        return len(self._flows) - 1

    def stop(self, flow: int, second: float, wait: float, heir: int) -> None:
        self._stops.append(f"stop {flow} {second:.9f} {wait:.9f} {heir}")

    def text(self) -> str:
        table = numpy.column_stack([self._rates.astype(numpy.float64), *self._columns])
        table = numpy.unique(table[table[:, 1:].any(axis=1)], axis=0)
        lines = [*self._flows]
        for row in table:
            used = " ".join(f"{it}:{int(row[it + 1])}" for it in numpy.flatnonzero(row[1:]))
            lines.append(f"link {row[0]:.0f} {used}")
        lines += [f"link {rate:.0f} {flow}:1" for flow, rate in self._own_rates.items()]
        return "\n".join([*lines, *self._stops]) + "\n"
