"""Plots as SVG and PNG: time by size, with the limits; one file for each setting."""

from __future__ import annotations

from pathlib import Path

from report import short_size

COLOURS = {
    "tributary-1": "#0b5fa5",
    "tributary-2": "#3f9ade",
    "tributary-fallback": "#8cc4ee",
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


def _panel(axes, cells: list[dict]) -> None:
    for contestant in dict.fromkeys(it["contestant"] for it in cells):
        points = [(it["bytes"], it["seconds"]) for it in cells if it["contestant"] == contestant]
        points.sort(key=lambda it: it[0])
        sizes = [size for size, _ in points]
        middle = [seconds["median"] for _, seconds in points]
        low = [seconds["median"] - seconds["quartile_low"] for _, seconds in points]
        high = [seconds["quartile_high"] - seconds["median"] for _, seconds in points]
        axes.errorbar(
            sizes, middle, yerr=[low, high], label=contestant, marker="o", markersize=3, capsize=2, linewidth=1.2,
            color=COLOURS.get(contestant),
        )  # fmt: skip
    for name, words, dashes in (
        ("tree_seconds", "limit of a tree", "--"),
        ("ring_seconds", "limit of a ring", ":"),
        ("memory_seconds", "limit of the memory", "--"),
    ):
        line = sorted({(it["bytes"], it["limits"][name]) for it in cells if name in it["limits"] and it["bytes"] >= 4096})
        if line:
            axes.plot(*zip(*line, strict=True), dashes, color="black", linewidth=0.9, label=words)
    axes.set(yscale="log", xlabel="bytes", ylabel="seconds")
    axes.set_xscale("log", base=2)
    ticks = sorted({it["bytes"] for it in cells})
    axes.set_xticks(ticks, [short_size(size) for size in ticks], rotation=45, ha="right", fontsize=7)
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def draw(cells: list[dict], words: dict[str, str], folder: Path) -> list[Path]:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "peers"  # the same data give the same file
    from matplotlib import pyplot

    made = []
    measured = [it for it in cells if "seconds" in it]
    for setting in dict.fromkeys(it["setting"] for it in measured):
        of_setting = [it for it in measured if it["setting"] == setting]
        ranks = sorted({it["ranks"] for it in of_setting})
        figure, panels = pyplot.subplots(1, len(ranks), figsize=(5 * len(ranks), 4.5), squeeze=False, sharey=True)
        for axes, count in zip(panels[0], ranks, strict=True):
            _panel(axes, [it for it in of_setting if it["ranks"] == count])
            axes.set_title(f"{count} ranks")
        panels[0][0].legend(fontsize=7)
        figure.suptitle(f"float32 sum allreduce, {words.get(setting, setting)}")
        figure.tight_layout()
        for kind in ("svg", "png"):
            made.append(folder / f"peers-{setting}.{kind}")
            figure.savefig(made[-1], dpi=120, metadata={"Date": None} if kind == "svg" else None)
        pyplot.close(figure)
    return made
