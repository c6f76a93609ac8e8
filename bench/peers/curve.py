"""The curve of the setting with equal links: time by the number of aggregators, beside the least possible time."""

from __future__ import annotations

import re
from pathlib import Path

from limits import split_seconds
from report import short_size

OURS = re.compile(r"tributary-equal-(\d+)|tributary-fallback")
PEERS = {"gloo": "#e07b39", "openmpi": "#3a923a", "mpich": "#9a4fb0"}


def aggregators_of(contestant: str) -> int | None:
    """Returns the number of aggregators of one of Tributary's contestants, 0 without; None: not a point of the curve."""
    found = OURS.fullmatch(contestant)
    return int(found.group(1) or 0) if found else None


def points_of(cells: list[dict]) -> list[tuple[int, dict]]:
    """Returns the curve's points: number of aggregators, and times in seconds."""
    found = [(aggregators_of(it["contestant"]), it["seconds"]) for it in cells]
    return sorted((it for it in found if it[0] is not None), key=lambda it: it[0])


def _panel(axes, cells: list[dict], rate: float) -> None:
    points = points_of(cells)
    at = [it[0] for it in points]
    middle = [it[1]["median"] for it in points]
    low = [it[1]["median"] - it[1]["quartile_low"] for it in points]
    high = [it[1]["quartile_high"] - it[1]["median"] for it in points]
    size, ranks = cells[0]["bytes"], cells[0]["ranks"]
    fine = [it / 10 for it in range(10 * max(at) + 1)]
    axes.plot(fine, [split_seconds(size, ranks, it, rate) for it in fine], "--", color="black", linewidth=0.9,
              label="least possible")  # fmt: skip
    axes.errorbar(at, middle, yerr=[low, high], marker="o", markersize=4, capsize=2, color="#0b5fa5", label="tributary")
    for cell in cells:
        if cell["contestant"] in PEERS:
            axes.axhline(cell["seconds"]["median"], color=PEERS[cell["contestant"]], linewidth=1.2,
                         label=cell["contestant"])  # fmt: skip
    axes.set(title=f"{ranks} ranks, {short_size(size)}", xlabel="aggregators", ylim=(0, None), xticks=at)
    axes.grid(alpha=0.3)


def groups_of(cells: list[dict]) -> list[list[dict]]:
    """Returns the cells of each panel: of one number of ranks and one size, with at least two points of the curve."""
    keys = sorted({(it["ranks"], it["bytes"]) for it in cells})
    groups = [[it for it in cells if (it["ranks"], it["bytes"]) == key] for key in keys]
    return [it for it in groups if len(points_of(it)) > 1]


def draw(cells: list[dict], setting: str, words: str, rate: float, folder: Path) -> list[Path]:
    """Draws curve-SETTING.svg and .png. `rate`: of each link, in bit/s. Without a curve it draws nothing."""
    from matplotlib import pyplot

    groups = groups_of([it for it in cells if "seconds" in it and it["setting"] == setting])
    if not groups:
        return []
    figure, panels = pyplot.subplots(1, len(groups), figsize=(1 + 3.5 * len(groups), 3.6), squeeze=False,
                                     layout="constrained")  # fmt: skip
    for axes, group in zip(panels[0], groups, strict=True):
        _panel(axes, group, rate)
    panels[0][0].set_ylabel("seconds")
    panels[0][0].legend(loc="lower left", fontsize=7)
    figure.suptitle(f"float32 sum allreduce, {words}")
    made = [folder / f"curve-{setting}.{kind}" for kind in ("svg", "png")]
    for path in made:
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
    return made
