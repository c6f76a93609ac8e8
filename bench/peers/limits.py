"""Limits of every algorithm on links of a given rate, and the usual measures of bandwidth."""

from __future__ import annotations


def tree_seconds(size: int, link_bits_per_second: float) -> float:
    """The bytes of every rank go up its link once and come down once, both at the same time."""
    return size * 8 / link_bits_per_second


def ring_factor(ranks: int) -> float:
    """Returns how often a vector crosses each link, in each direction, if only the ranks reduce. No algorithm needs
    less."""
    return 2 * (ranks - 1) / ranks


def ring_seconds(size: int, ranks: int, link_bits_per_second: float) -> float:
    return ring_factor(ranks) * tree_seconds(size, link_bits_per_second)


def split_seconds(size: int, ranks: int, aggregators: int, link_bits_per_second: float) -> float:
    """The limit for trees and ranks at once, over aggregators with links like the ranks' links (Jiang et al., OSDI
    2020). No algorithm needs less."""
    width = min(1.0, aggregators / ranks)  # rate of all aggregators' links, divided by the rate of all ranks' links
    return ring_seconds(size, ranks, link_bits_per_second) / (1 + width * (ring_factor(ranks) - 1))


def memory_seconds(size: int, ranks: int, bytes_per_second: float) -> float:
    """On one host every rank's input is read once and its result written once, through the memory that all share."""
    return 2 * ranks * size / bytes_per_second


def algorithm_bandwidth(size: int, seconds: float) -> float:
    """Returns the bytes of the vector per second."""
    return size / seconds


def bus_bandwidth(size: int, ranks: int, seconds: float) -> float:
    """Returns the rate at which each link would carry bytes if a ring took this time. It is comparable between numbers
    of ranks."""
    return ring_factor(ranks) * size / seconds
