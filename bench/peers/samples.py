"""Turns the ranks' measurements into one figure and its spread, and decides how many samples to take."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

SAMPLES_MAX = 400
# Least length of a sample, where longer batches are possible: ranks may start its first operation unevenly.
BATCH_SECONDS = 0.02


@dataclass(frozen=True)
class Plan:
    samples: int
    batch: int  # allreduces in a sample


def batch_max(ranks: int) -> int:
    """Returns the longest batch. Each allreduce in place multiplies the sum by the number of ranks, and the product
    must stay exact in float32. Powers of two only change the exponent; other factors fill the 24 bits of the fraction
    (the first sums are below 61 x ranks)."""
    if ranks & (ranks - 1) == 0:
        return 1 + 100 // max(1, ranks.bit_length() - 1)
    return max(1, int((24 - math.log2(61 * ranks)) / math.log2(ranks)) + 1)


def plan(seconds_per_operation: float, seconds: float, ranks: int, most: int = 0) -> Plan:
    """Chooses samples and batch so that they fill about `seconds`. `most`: the longest batch; 0: batch_max()."""
    batch = min(most or batch_max(ranks), max(1, math.ceil(BATCH_SECONDS / seconds_per_operation)))
    return Plan(min(SAMPLES_MAX, max(1, round(seconds / (batch * seconds_per_operation)))), batch)


def slowest(by_rank: list[list[float]]) -> list[float]:
    """Returns the greatest time of each sample, because an operation has ended when its last rank has the result."""
    return [max(of_sample) for of_sample in zip(*by_rank, strict=True)]


@dataclass(frozen=True)
class Spread:
    median: float
    quartile_low: float
    quartile_high: float
    least: float
    greatest: float
    count: int

    @property
    def relative(self) -> float:
        """Returns half of the distance between the quartiles, as a part of the median."""
        return (self.quartile_high - self.quartile_low) / 2 / self.median if self.median else 0.0


def spread(values: list[float]) -> Spread:
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    low, middle, high = (
        statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else (ordered[0],) * 3
    )
    return Spread(middle, low, high, ordered[0], ordered[-1], len(ordered))
