"""Limits that no algorithm can beat on links of a given rate, and the bandwidths that are usually reported."""

from __future__ import annotations


def tree_seconds(size: int, link_bits_per_second: float) -> float:
    """Every rank's bytes go up its link once and come down once, in both directions at the same time."""
    return size * 8 / link_bits_per_second


def ring_factor(ranks: int) -> float:
    """How often a vector crosses each link, in each direction, if the ranks alone reduce. No algorithm needs less."""
    return 2 * (ranks - 1) / ranks


def ring_seconds(size: int, ranks: int, link_bits_per_second: float) -> float:
    return ring_factor(ranks) * tree_seconds(size, link_bits_per_second)


def split_seconds(size: int, ranks: int, aggregators: int, link_bits_per_second: float) -> float:
    """Trees and ranks at once, over aggregators with links like the ranks' (Jiang et al., OSDI 2020). No algorithm
    needs less."""
    width = min(1.0, aggregators / ranks)  # the rate of all aggregators' links, as a part of that of all ranks' links
    return ring_seconds(size, ranks, link_bits_per_second) / (1 + width * (ring_factor(ranks) - 1))


def memory_seconds(size: int, ranks: int, bytes_per_second: float) -> float:
    """On one host every rank's input is read once and its result written once, through the memory that all share."""
    return 2 * ranks * size / bytes_per_second


def algorithm_bandwidth(size: int, seconds: float) -> float:
    """Bytes of the vector per second."""
    return size / seconds


def bus_bandwidth(size: int, ranks: int, seconds: float) -> float:
    """The rate at which each link would carry bytes if a ring took this time: comparable between numbers of ranks."""
    return ring_factor(ranks) * size / seconds
