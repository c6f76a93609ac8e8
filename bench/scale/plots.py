#!/usr/bin/env python3
"""Plots the study as SVG, and as PNG beside it.

plots.py CELLS SVG
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import report

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

MIB = 1 << 20
SIZE = 256 * MIB
COLOURS = {
    "ring": "#9a4fb0", "double tree": "#e07b39", "halving-doubling": "#3a923a", "tree": "#8cc4ee", "chosen": "#0b5fa5", "bound": "black",
}  # fmt: skip


def of(cells: list[dict], **wanted: float) -> list[dict]:
    found = report.healthy(cells, SIZE)
    return [it for it in found if all(it[name] == value for name, value in wanted.items())]


def by_ranks(axes, cells: list[dict]) -> None:
    points = of(cells, rack=128, oversubscription=1, ranks_per_aggregator=8, aggregator_rate=400e9)
    ranks = [it["ranks"] for it in points]
    for name in report.PEERS:
        axes.plot(ranks, [1e3 * it["peers"][name] for it in points], marker="o", markersize=3, label=name, color=COLOURS[name])
    for name, dashes in (("tree", "-"), ("chosen", "-"), ("bound", "--")):
        axes.plot(ranks, [1e3 * it[name] for it in points], dashes, marker="o", markersize=3, label=name, color=COLOURS[name])
    axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="ms", title="Time by ranks (racks of 128, one\naggregator of 400 Gbit/s for 8 ranks)")
    axes.set_xticks(ranks, [f"{it:,}" for it in ranks], minor=False)
    axes.minorticks_off()
    axes.set_yticks([20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1,000"])
    axes.legend(fontsize=7)


def by_aggregators(axes, cells: list[dict]) -> None:
    kinds = [(32, 400e9), (8, 100e9), (8, 400e9), (4, 400e9)]
    for place, (per, rate) in enumerate(kinds):
        group = of(cells, ranks_per_aggregator=per, aggregator_rate=rate)
        for over, mark in ((1, "o"), (2, "s"), (4, "^")):
            for rack, colour in ((32, "#c02942"), (128, "#0b5fa5"), (512, "#3a923a"), (1024, "#e07b39")):
                gains = [report.gain(it) for it in group if it["oversubscription"] == over and it["rack"] == rack]
                shift = {32: -0.24, 128: -0.08, 512: 0.08, 1024: 0.24}[rack]
                axes.plot([place + shift] * len(gains), gains, mark, markersize=3.5, color=colour, alpha=0.7)
        most = group[0]["peers"]["halving-doubling"] / group[0]["bound"]
        axes.plot([place - 0.4, place + 0.4], [most, most], "--", color="black", linewidth=0.9)
    for rack, colour in ((32, "#c02942"), (128, "#0b5fa5"), (512, "#3a923a"), (1024, "#e07b39")):
        axes.plot([], [], "o", markersize=3.5, color=colour, label=f"racks of {rack:,}")
    for over, mark in ((1, "o"), (2, "s"), (4, "^")):
        axes.plot([], [], mark, markersize=3.5, color="grey", label=f"uplinks {over}:1")
    axes.plot([], [], "--", color="black", linewidth=0.9, label="bound")
    axes.axhline(1, color="grey", linewidth=0.7)
    axes.set_xticks(range(len(kinds)), [f"1 for {per} ranks\n{rate / 1e9:.0f} Gbit/s" for per, rate in kinds], fontsize=7)
    axes.set(ylabel="times as fast", title="The choice beside the best of ring, double\ntree and halving-doubling, all clusters")
    axes.legend(fontsize=6, loc="upper left")


def bars(axes, labels: list[str], groups: dict[str, list[float]]) -> None:
    width = 0.8 / len(groups)
    for number, (name, values) in enumerate(groups.items()):
        places = [it + (number - (len(groups) - 1) / 2) * width for it in range(len(labels))]
        axes.bar(places, [1e3 * it for it in values], width, label=name, color=COLOURS[name])
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    axes.set_ylabel("ms")


def faults(axes, cells: list[dict]) -> None:
    whole = of(cells, ranks=1024, rack=128, oversubscription=1, ranks_per_aggregator=8, aggregator_rate=400e9)
    found = [
        it for it in cells
        if it["kind"] == "alone" and it["ranks"] == 1024 and it["oversubscription"] == 1 and it["bytes"] == SIZE and (it["dead"] or it["straggler"] < 1)
    ]  # fmt: skip
    found = whole + sorted(found, key=lambda it: (it["straggler"] < 1, it["dead"]))
    labels = [f"{it['dead']} of 128\ndead" if it["straggler"] == 1 else "a link at\na tenth" for it in found]
    values = {name: [it["peers"][name] for it in found] for name in report.PEERS}
    bars(axes, labels, {**values, "tree": [it["tree"] for it in found], "chosen": [it["chosen"] for it in found]})
    axes.set(yscale="log", title="1,024 ranks: dead aggregators, a straggler")
    axes.set_yticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    axes.minorticks_off()


def jobs(axes, cells: list[dict]) -> None:
    found = sorted((it for it in cells if it["kind"] == "together"), key=lambda it: (it["jobs"], it["oversubscription"], it["spread"]))
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    labels = [f"{it['jobs']}, {it['oversubscription']}:1\n{'every rack' if it['spread'] else 'own racks'}" for it in found]
    values = {name: [mean(it[name]) for it in found] for name in report.PEERS}
    bars(axes, labels, {**values, "chosen": [mean(it["ours"]) for it in found]})
    axes.tick_params(axis="x", labelsize=6)
    axes.set(title="4 and 16 jobs at once on 4,096 ranks, mean")


def main() -> None:
    cells = [cell for task in report.read(Path(sys.argv[1])).values() for cell in task]
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8))
    by_ranks(axes[0][0], cells)
    by_aggregators(axes[0][1], cells)
    faults(axes[1][0], cells)
    jobs(axes[1][1], cells)
    figure.suptitle("Simulated allreduce of 256 MiB, ranks' links of 100 Gbit/s, trees as planned")
    figure.tight_layout()
    matplotlib.rcParams["svg.hashsalt"] = "scale"
    figure.savefig(sys.argv[2], metadata={"Date": None})
    figure.savefig(Path(sys.argv[2]).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
