"""Plots as SVG and PNG: time by size, with the limits; one file for each setting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from report import fastest_peer, grouped, short_size

COLOURS = {
    "tributary-1": "#0b5fa5",
    "tributary-2": "#3f9ade",
    "tributary-fallback": "#8cc4ee",
    "tributary-local": "#083d6e",
    "tributary-registered": "#041f38",
    "gloo": "#e07b39",
    "openmpi": "#3a923a",
    "mpich": "#9a4fb0",
}


def why_not() -> str:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return "matplotlib is not installed (Debian: python3-matplotlib)"
    return ""


LIMITS = (
    ("tree_seconds", "limit of a tree", "--"),
    ("ring_seconds", "limit of a ring", ":"),
    ("memory_seconds", "limit of the memory", "--"),
)


def _by_contestant(cells: list[dict]) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for cell in sorted(cells, key=lambda it: it["bytes"]):
        found.setdefault(cell["contestant"], []).append(cell)
    return {name: found[name] for name in [*COLOURS, *sorted(set(found) - set(COLOURS))] if name in found}


def _times(axes, cells: list[dict]) -> None:
    for contestant, points in _by_contestant(cells).items():
        middle = [it["seconds"]["median"] for it in points]
        low = [it["seconds"]["median"] - it["seconds"]["quartile_low"] for it in points]
        high = [it["seconds"]["quartile_high"] - it["seconds"]["median"] for it in points]
        axes.errorbar(
            [it["bytes"] for it in points], middle, yerr=[low, high], label=contestant, marker="o", markersize=3,
            capsize=2, linewidth=1.2, color=COLOURS.get(contestant),
        )  # fmt: skip
    for name, words, dashes in LIMITS:
        large = [it for it in cells if name in it["limits"] and it["bytes"] >= 4096]
        line = sorted({(it["bytes"], it["limits"][name]) for it in large})
        if line:
            axes.plot(*zip(*line, strict=True), dashes, color="black", linewidth=0.9, label=words)


def _ratios(axes, cells: list[dict], ours: Callable[[str], bool]) -> None:
    peers = {group[0]["bytes"]: fastest_peer(group, ours) for group in grouped(cells)}
    for contestant, points in _by_contestant(cells).items():
        line = [(it["bytes"], peers[it["bytes"]] / it["seconds"]["median"]) for it in points if peers[it["bytes"]]]
        if line:
            axes.plot(*zip(*line, strict=True), marker="o", markersize=3, linewidth=1.2, color=COLOURS.get(contestant))
    axes.axhline(1, color="black", linewidth=0.9)
    axes.set_ylim(0, 2.2)


def _finish(axes, cells: list[dict]) -> None:
    axes.set_xscale("log", base=2)
    ticks = sorted({it["bytes"] for it in cells})
    axes.set_xticks(ticks, [short_size(size) for size in ticks], rotation=45, ha="right", fontsize=7)
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def _legend(panels) -> None:
    """Draws one legend for all panels, because not every contestant is in each panel."""
    entries = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    panels[0].legend(entries.values(), entries, loc="upper left", fontsize=7)


def draw(cells: list[dict], words: dict[str, str], ours: Callable[[str], bool], folder: Path) -> list[Path]:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # the SVG file keeps text as text
    matplotlib.rcParams["svg.hashsalt"] = "peers"  # makes the same file from the same data
    from matplotlib import pyplot

    made = []
    measured = [it for it in cells if "seconds" in it]
    for setting in dict.fromkeys(it["setting"] for it in measured):
        of_setting = [it for it in measured if it["setting"] == setting]
        ranks = sorted({it["ranks"] for it in of_setting})
        figure, panels = pyplot.subplots(
            2, len(ranks), figsize=(1.5 + 3.5 * len(ranks), 6.5), squeeze=False, sharey="row", sharex="col",
            layout="constrained", height_ratios=(3, 2),
        )  # fmt: skip
        for times, ratios, count in zip(*panels, ranks, strict=True):
            of_count = [it for it in of_setting if it["ranks"] == count]
            _times(times, of_count)
            _ratios(ratios, of_count, ours)
            times.set(title=f"{count} ranks", yscale="log")
            _finish(times, of_count)
            _finish(ratios, of_count)
        panels[0][0].set_ylabel("seconds")
        panels[1][0].set_ylabel("time of the fastest peer / time")
        _legend(panels[0])
        figure.suptitle(f"float32 sum allreduce, {words.get(setting, setting)}")
        for kind in ("svg", "png"):
            made.append(folder / f"peers-{setting}.{kind}")
            figure.savefig(made[-1], dpi=110, metadata={"Date": None} if kind == "svg" else None)
        pyplot.close(figure)
    return made
