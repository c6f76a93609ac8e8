"""A cluster for the planner: ranks' hosts in racks, aggregators in the same racks, and one uplink per rack to a core
that is never a bound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fabric:
    ranks: int
    rack: int  # hosts of ranks in each rack
    ranks_per_aggregator: int
    oversubscription: int = 1
    rate: float = 100e9  # bits per second of a rank's link, in each direction
    aggregator_rate: float = 100e9

    @property
    def racks(self) -> int:
        return self.ranks // self.rack

    @property
    def aggregators(self) -> int:
        return self.ranks // self.ranks_per_aggregator

    @property
    def uplink_rate(self) -> float:
        """Non-blocking means that all hosts of a rack, also the aggregators' hosts, may send out of the rack at full
        rate."""
        inside = self.rack * self.rate + self.aggregators / self.racks * self.aggregator_rate
        return inside / self.oversubscription

    @property
    def part_on_trees(self) -> float:
        """Returns the sum of the aggregators' link rates divided by the sum of the ranks' link rates: c in
        docs/performance.md."""
        return min(1.0, self.aggregators * self.aggregator_rate / (self.ranks * self.rate))

    def rack_of_rank(self, rank: int) -> int:
        return rank // self.rack

    def rack_of_aggregator(self, aggregator: int) -> int:
        """Deals aggregators to the racks in turn, so that a few aggregators are in different racks."""
        return aggregator % self.racks

    def rank_host(self, rank: int) -> str:
        return f"node-{rank}"

    def aggregator_host(self, aggregator: int) -> str:
        return f"agg-{aggregator}"

    def topology(self) -> str:
        """Returns the topology as YAML for the manager."""
        racks = self.racks
        lines = [
            "fabric: fat-tree",
            "switches:",
            '  - {name: "core", level: 2}',
            f'  - {{name: "leaf-[0-{racks - 1}]", level: 1}}',
            "hosts:",
            f'  - "node-[0-{self.ranks - 1}]"',
            f'  - "agg-[0-{self.aggregators - 1}]"',
            "links:",
            f'  - {{from: "leaf-[0-{racks - 1}]", to: core, rate: {self.uplink_rate:.0f}bit/s}}',
        ]
        for rack in range(racks):
            first = rack * self.rack
            lines.append(
                f'  - {{from: "node-[{first}-{first + self.rack - 1}]", to: leaf-{rack}, rate: {self.rate:.0f}bit/s}}'
            )
        lines += [
            f"  - {{from: agg-{it}, to: leaf-{self.rack_of_aggregator(it)}, rate: {self.aggregator_rate:.0f}bit/s}}"
            for it in range(self.aggregators)
        ]
        return "\n".join(lines) + "\n"
