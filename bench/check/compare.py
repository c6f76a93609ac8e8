"""Compares the ratios of one run with the baseline's ratios. These are pure functions, without clocks, files or
processes.

A cell's ratio is Tributary's rate divided by a yardstick's rate in the same run, so more is better. Each figure is the
median of several alternations. The standard error of that median follows from the distance between the quartiles: a
normal distribution has 1.35 standard deviations between its quartiles, and the median's error is 1.25 / sqrt(n)
standard deviations.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

FALL = 0.05  # the check reports a fall by more than this part of the baseline
ERRORS = 2.0  # the number of standard errors by which a fall must exceed FALL
NOISE_MAX = 0.10  # beyond this uncertainty a cell gets no verdict: the check would not notice a fall of 15 %
ALTERNATIONS_MIN = 5

FELL, ROSE, SAME, NOISY, MISSING, NEW, FAILED = "fell", "rose", "same", "noisy", "missing", "new", "failed"


class BaselineError(Exception):
    """The baseline differs from the form that --update writes; the text says where."""


@dataclass(frozen=True)
class Figure:
    """One cell's ratio: the median, half of the distance between the quartiles (as a part of the median), and the
    number of alternations."""

    ratio: float
    spread: float
    alternations: int

    @property
    def error(self) -> float:
        """Returns the standard error of the median, as a part of the median."""
        return 1.25 * 2 * self.spread / 1.35 / math.sqrt(self.alternations)

    def as_json(self) -> dict:
        return {"ratio": round(self.ratio, 4), "spread": round(self.spread, 4), "alternations": self.alternations}


@dataclass(frozen=True)
class Row:
    """The verdict on one cell."""

    name: str
    verdict: str
    before: Figure | None
    now: Figure | None
    reason: str = ""

    @property
    def change(self) -> float | None:
        """Returns the change as a part of the baseline; it is negative after a fall."""
        return self.now.ratio / self.before.ratio - 1 if self.now and self.before else None


def figure(ratios: list[float]) -> Figure:
    if len(ratios) < 2 or not all(math.isfinite(it) and it > 0 for it in ratios):
        raise ValueError(f"ratios are at least two positive numbers, not {ratios}")
    low, middle, high = statistics.quantiles(sorted(ratios), n=4, method="inclusive")
    return Figure(middle, (high - low) / 2 / middle, len(ratios))


def read_baseline(document: object) -> dict[str, Figure]:
    """Returns the baseline's cells by name."""
    if not isinstance(document, dict) or not isinstance(document.get("cells"), dict):
        raise BaselineError('the baseline is an object with a member "cells"')
    cells = {}
    for name, cell in document["cells"].items():
        try:
            ratio, spread, count = float(cell["ratio"]), float(cell["spread"]), int(cell["alternations"])
        except (KeyError, TypeError, ValueError) as error:
            raise BaselineError(f"cell {name} has no ratio, spread and alternations: {error!r}") from error
        if not (math.isfinite(ratio) and ratio > 0 and math.isfinite(spread) and spread >= 0 and count >= 2):
            raise BaselineError(f"cell {name} has impossible figures: {cell}")
        cells[name] = Figure(ratio, spread, count)
    return cells


def judge(name: str, before: Figure, now: Figure) -> Row:
    """A cell fell when the fall exceeds FALL by more than the noise of both runs explains."""
    change = now.ratio / before.ratio - 1
    noise = ERRORS * math.hypot(before.error, now.error)
    if change < -FALL - noise:
        return Row(name, FELL, before, now)
    if noise > NOISE_MAX:
        return Row(name, NOISY, before, now, f"uncertain by {noise * 100:.0f} %")
    return Row(name, ROSE if change > FALL + noise else SAME, before, now)


def compare(before: dict[str, Figure], now: dict[str, Figure], failures: dict[str, str], chosen: list[str]) -> list[Row]:
    """Returns a row for each chosen cell, and for each cell of the baseline that no longer exists. `chosen` has the
    names of the cells that this run should measure, `failures` a sentence for each cell that gave no figure."""
    rows = []
    for name in [*chosen, *(it for it in before if it not in chosen)]:
        if name in failures:
            rows.append(Row(name, FAILED, before.get(name), None, failures[name]))
        elif name not in now:
            rows.append(Row(name, MISSING, before.get(name), None, "the baseline has it, this run has not"))
        elif name not in before:
            rows.append(Row(name, NEW, None, now[name], "the baseline does not have it: --update adds it"))
        else:
            rows.append(judge(name, before[name], now[name]))
    return rows


def exit_code(rows: list[Row], busy: bool) -> int:
    """Returns 1 if a program failed, or a cell fell on a quiet machine; 2 if a cell got no verdict; else 0."""
    verdicts = {row.verdict for row in rows}
    if FAILED in verdicts or (FELL in verdicts and not busy):
        return 1
    return 2 if busy or verdicts & {NOISY, MISSING} or not rows else 0


def table(rows: list[Row]) -> str:
    def text(one: Figure | None) -> str:
        return f"{one.ratio:8.3f} ± {one.spread * 100:4.1f} %" if one else f"{'-':>17}"

    width = max([len(row.name) for row in rows] + [4])
    lines = [f"{'cell':{width}}  {'baseline':>17}  {'now':>17}   change  verdict"]
    for row in rows:
        change = f"{row.change * 100:+6.1f} %" if row.change is not None else f"{'-':>8}"
        verdict = row.verdict + (f": {row.reason}" if row.reason else "")
        lines.append(f"{row.name:{width}}  {text(row.before)}  {text(row.now)}  {change}  {verdict}")
    return "\n".join(lines)
