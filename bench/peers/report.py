"""A table for the terminal, from the cells in the JSON file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from contestants import BESIDE


def short_time(seconds: float) -> str:
    for unit, factor in (("us", 1e6), ("ms", 1e3), ("s", 1.0)):
        value = seconds * factor
        if value < 1000 or unit == "s":
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
    raise AssertionError


def short_size(size: int) -> str:
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def fastest_peer(cells: Iterable[dict], ours: Callable[[str], bool]) -> float | None:
    """Returns the least median of the other contestants in one group of cells."""
    times = [it["seconds"]["median"] for it in cells if not ours(it["contestant"]) and "seconds" in it]
    return min(times, default=None)


def grouped(cells: list[dict]) -> list[list[dict]]:
    """Groups cells that are comparable: with the same setting, number of ranks and size, in the order in which they
    came."""
    groups: dict[tuple, list[dict]] = {}
    for cell in cells:
        groups.setdefault((cell["setting"], cell["ranks"], cell["bytes"]), []).append(cell)
    return list(groups.values())


HEADINGS = (
    "contestant", "time", "+-", "algbw", "busbw", "cpu s/GB ranks", "aggr.", "of tree", "of ring", "of bound", "peer/this",
    "note",
)  # fmt: skip


def _part(limit: float | None, seconds: float) -> str:
    return f"{100 * limit / seconds:.1f} %" if limit else ""


def row(cell: dict, peer: float | None) -> list[str]:
    if "seconds" not in cell:
        return [cell["contestant"], *[""] * (len(HEADINGS) - 2), cell["failure"].splitlines()[0]]
    seconds, of = cell["seconds"]["median"], cell["limits"]
    half = (cell["seconds"]["quartile_high"] - cell["seconds"]["quartile_low"]) / 2
    notes = [cell["failure"].splitlines()[0]] if cell["failure"] else []
    if cell["disturbed_turns"]:
        notes.append(f"{cell['disturbed_turns']} of {len(cell['turns'])} turns disturbed by other load")
    cpu = cell["cpu_seconds_per_gb"]
    large = cell["bytes"] >= 1 << 16  # below this size, neither links nor processors are the bound
    if "memory_seconds" in of and cell["bytes"] >= 1 << 24:  # below this size, caches help
        notes.append(f"{_part(of['memory_seconds'], seconds)} of the memory limit")
    return [
        cell["contestant"],
        short_time(seconds),
        f"{100 * half / seconds:.0f} %",
        f"{cell['algorithm_bandwidth'] / 1e9:.3g}",
        f"{cell['bus_bandwidth'] / 1e9:.3g}",
        f"{cpu['ranks']:.2f}" if large else "",
        f"{cpu['aggregators']:.2f}" if large and cpu["aggregators"] else "",
        _part(of.get("tree_seconds"), seconds) if large else "",
        _part(of.get("ring_seconds"), seconds) if large else "",
        _part(of.get("bound_seconds"), seconds) if large else "",
        f"{peer / seconds:.2f}" if peer else "",
        "; ".join(notes),
    ]


def columns(rows: list[list[str]]) -> str:
    widths = [max(len(it[column]) for it in rows) for column in range(len(rows[0]))]
    lines = []
    for cells in rows:
        first, *rest = cells
        padded = [first.ljust(widths[0]), *(it.rjust(width) for it, width in zip(rest[:-1], widths[1:-1], strict=True))]
        lines.append("  ".join([*padded, rest[-1]]).rstrip())
    return "\n".join(lines)


def table(cells: list[dict], ours: Callable[[str], bool]) -> str:
    parts = []
    for group in grouped(cells):
        peer = fastest_peer(group, ours)
        head = f"{group[0]['setting']}, {group[0]['ranks']} ranks, {short_size(group[0]['bytes'])}"
        parts.append(f"{head}\n{columns([list(HEADINGS), *(row(cell, peer) for cell in group)])}")
    return "\n\n".join(parts)


def beside_ratio(this: dict, other: dict) -> float:
    """Returns the other build's time, divided by this build's time: the median over pairs of turns. The turns of a pair
    follow each other at once, so that a change of the machine's speed touches both."""
    pairs = zip(other["turns"], this["turns"], strict=False)
    return statistics.median(of_other["seconds"] / of_this["seconds"] for of_other, of_this in pairs)


def beside_table(cells: list[dict]) -> str:
    """Returns the ratios of two builds, a line for each contestant, a column for each size; empty without --beside."""
    sizes = sorted({it["bytes"] for it in cells})
    by_key = {(it["setting"], it["ranks"], it["contestant"], it["bytes"]): it for it in cells if it.get("turns")}
    rows = []
    for setting, ranks, contestant in dict.fromkeys(key[:3] for key in by_key):
        pairs = [(by_key.get((setting, ranks, contestant, size)), by_key.get((setting, ranks, contestant + BESIDE, size))) for size in sizes]
        if any(other for _, other in pairs):
            ratios = [f"{beside_ratio(this, other):.3f}" if this and other else "" for this, other in pairs]
            rows.append([f"{setting}, {ranks} ranks, {contestant}", *ratios, ""])
    if not rows:
        return ""
    head = "time of the other build, divided by the time of this build: below 1, this build is slower"
    return f"{head}\n{columns([['contestant', *map(short_size, sizes), ''], *rows])}"


EXPLANATION = """time: of one allreduce, the median over alternations; +-: half of the distance between the quartiles.
algbw, busbw: GB/s. cpu s/GB: processor seconds of all ranks, and of all aggregators, for 10^9 bytes of the vector.
of tree, of ring: the least time of a tree, bytes / rate, and of a ring, 2(N-1)/N of that, divided by the measured time.
of bound: the same for the least time with so many aggregators, whose links are like the ranks' links. peer/this: above
1 is faster than the fastest peer."""
