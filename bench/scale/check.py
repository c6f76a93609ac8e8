#!/usr/bin/env python3
"""Compares flow_sim, in which a lane or a ring is one flow, with segment_sim, in which each segment is a flow on each hop. Prints Markdown.

bench/scale/check.py [--quick] [--build FOLDER]

A real manager plans the trees. --quick checks only 64 ranks, and fails if the two simulators differ by more than a
tenth.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy
from collectives import HOP_SECONDS, TREE, Group, Programs, Way
from fabric import Fabric
from loads import Links, in_flight
from manager import Manager
from study import MIB, Study, programs

ROOT = Path(__file__).resolve().parents[2]
RING = Way("ranks", "ring", 0, 0)
DIFFERENCE_MAX = 0.1
SMALL = Fabric(64, 16, 8, 2, aggregator_rate=400e9)
LATE_RANK = 21


def cluster(fabric: Fabric) -> list[str]:
    hosts = [f"host {fabric.rate:.0f} {fabric.rack_of_rank(it)}" for it in range(fabric.ranks)]
    hosts += [f"host {fabric.aggregator_rate:.0f} {fabric.rack_of_aggregator(it)}" for it in range(fabric.aggregators)]
    return [f"rack {fabric.uplink_rate:.0f}"] * fabric.racks + hosts


def lane_lines(fabric: Fabric, tree: dict, segments: int, segment_bytes: int) -> list[str]:
    lines = [f"lane {segments} {segment_bytes} {in_flight(tree)}"]
    nodes = 0

    def add(node: dict, parent: int) -> None:
        nonlocal nodes
        self = nodes
        nodes += 1
        lines.append(f"node {fabric.ranks + int(node['aggregator'][2:])} {parent}")
        for child in node["children"]:
            if "rank" in child:
                lines.append(f"rank {child['rank']} {self}")
            else:
                add(child, self)

    add(tree["root"], -1)
    return lines


def by_segments(tools: Programs, lines: list[str], hop: float) -> float:
    program = [str(tools.simulators / "segment_sim"), str(hop), "--log=root.thres:error"]
    return float(subprocess.run(program, input="\n".join(lines) + "\n", check=True, capture_output=True, text=True).stdout)


def tree_by_segments(tools: Programs, fabric: Fabric, plan: dict, size: int, hop: float, late: float = 0) -> float:
    segment = plan["segment_bytes"]
    segments = math.ceil(size / segment)
    lanes = len(plan["trees"])
    lines = [*cluster(fabric), f"late {LATE_RANK} {late}"]
    for number, tree in enumerate(plan["trees"]):
        own = segments // lanes + (number < segments % lanes)
        if own:
            lines += lane_lines(fabric, tree, own, segment)
    return by_segments(tools, lines, hop)


def ring_by_segments(tools: Programs, fabric: Fabric, size: int, hop: float, late: float = 0) -> float:
    rounds = 2 * (fabric.ranks - 1)
    return by_segments(tools, [*cluster(fabric), f"late {LATE_RANK} {late}", f"ring {rounds} {size / fabric.ranks} {fabric.ranks}"], hop)


def cells(quick: bool) -> list[tuple[Fabric, str, int]]:
    if quick:
        return [(SMALL, "tree", 16 * MIB), (SMALL, "ring", 16 * MIB)]
    found = [(SMALL, "tree", size) for size in (MIB, 16 * MIB, 64 * MIB)]
    for over in (1, 4):
        for aggregators, rate in ((8, 400e9), (8, 100e9), (4, 400e9)):
            found.append((Fabric(256, 32, aggregators, over, aggregator_rate=rate), "tree", 4 * MIB))
    large = Fabric(1024, 128, 8, 2, aggregator_rate=400e9)
    found += [(large, "tree", MIB), (large, "tree", 4 * MIB)]
    return [*found, (SMALL, "ring", 16 * MIB), (large, "ring", 256 * MIB)]


def late_ranks(tools: Programs, hop: float) -> None:
    """Lets one rank begin late, so that the other ranks wait, and shows whether any way saves a part of this time."""
    with Manager(tools.build, SMALL) as manager:
        plan = manager.plan([f"node-[0-{SMALL.ranks - 1}]"])
    print("\n| 64 ranks, 16 MiB, one begins late by | tree ends after its begin by | ring |\n|---:|---:|---:|")
    for late in (0, 1e-3, 10e-3, 100e-3):
        tree = tree_by_segments(tools, SMALL, plan, 16 * MIB, hop, late) - late
        ring = ring_by_segments(tools, SMALL, 16 * MIB, hop, late) - late
        print(f"| {late * 1e3:.0f} ms | {tree * 1e3:.4g} ms | {ring * 1e3:.4g} ms |", flush=True)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--build", type=Path, default=ROOT / "build/release")
    options.add_argument("--hop", type=float, default=HOP_SECONDS)
    given = options.parse_args()
    tools = programs(ROOT, given.build)
    study = Study(tools, given.hop)
    print("| way | ranks | rack | uplinks | aggregators | size | lanes, levels | one flow each | by segments | difference | took |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    largest = 0.0
    for fabric, way, size in cells(given.quick):
        with Manager(tools.build, fabric) as manager:
            plan = manager.plan([f"node-[0-{fabric.ranks - 1}]"])
        group = Group(Links(fabric), numpy.arange(fabric.ranks), plan, given.hop)
        coupled = study.seconds(group, TREE if way == "tree" else RING, size)
        began = time.monotonic()
        if way == "tree":
            full = tree_by_segments(tools, fabric, plan, size, given.hop)
        else:
            full = ring_by_segments(tools, fabric, size, given.hop)
        shape = f"{len(plan['trees'])}, {plan['trees'][0]['levels']}" if way == "tree" else ""
        difference = coupled / full - 1
        largest = max(largest, abs(difference))
        print(
            f"| {way} | {fabric.ranks} | {fabric.rack} | {fabric.oversubscription}:1 "
            f"| {fabric.aggregators} x {fabric.aggregator_rate / 1e9:.0f} Gbit/s | {size // MIB} MiB | {shape} | {coupled * 1e3:.4g} ms "
            f"| {full * 1e3:.4g} ms | {100 * difference:+.1f} % | {time.monotonic() - began:.1f} s |",
            flush=True,
        )
    if not given.quick:
        late_ranks(tools, given.hop)
    if given.quick and largest > DIFFERENCE_MAX:
        print(f"the two differ by {largest:.0%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
