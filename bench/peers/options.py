"""The command line."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from contestants import CONTESTANTS
from places import SETTINGS

UNITS = {"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20}
SIZES = "4,1K,64K,1M,16M,64M"


def size_of(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: a number with K or M, or none for bytes")
    size = int(found[1]) * UNITS[found[2]]
    if size < 4 or size % 4 or size > 1 << 30:
        raise argparse.ArgumentTypeError(f"{text}: whole float32 elements, 4 bytes to 1024M")
    return size


def _sizes(text: str) -> list[int]:
    return [size_of(it) for it in text.split(",")]


def _ranks(text: str) -> list[int]:
    try:
        numbers = [int(it) for it in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers") from None
    if any(not 2 <= it <= 64 for it in numbers):
        raise argparse.ArgumentTypeError("2 to 64 ranks")
    return numbers


def names_of(known: dict):
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [it for it in names if it not in known]:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
        return names

    return parse


def _variable(text: str) -> tuple[str, str]:
    name, equal, value = text.partition("=")
    if not equal or not name.startswith("TRIBUTARY_"):
        raise argparse.ArgumentTypeError(f"'{text}' is no TRIBUTARY_NAME=VALUE")
    return name, value


def _queue(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms)", text.strip())
    if not found or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no depth of a queue: a time, as 4ms or 500us")
    return float(found[1]) / {"us": 1e6, "ms": 1e3}[found[2]]


def count_of(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return int(text)


def parser() -> argparse.ArgumentParser:
    it = argparse.ArgumentParser(
        prog="bench/peers/run",
        description="The same float32 sum allreduces by Tributary, Gloo, Open MPI and MPICH, in alternation.",
    )
    it.add_argument("--settings", type=names_of(SETTINGS), default=list(SETTINGS), metavar="LIST",
                    help=", ".join(SETTINGS))  # fmt: skip
    it.add_argument("--contestants", type=names_of(CONTESTANTS), default=[name for name, it in CONTESTANTS.items() if it.default], metavar="LIST",
                    help=", ".join(CONTESTANTS))  # fmt: skip
    it.add_argument("--ranks", type=_ranks, default=[2, 4, 8], metavar="LIST", help="default 2,4,8")
    it.add_argument("--bytes", type=_sizes, default=_sizes(SIZES), metavar="LIST", help=f"default {SIZES}")
    it.add_argument("--alternations", type=count_of, default=5, metavar="N", help="default 5")
    it.add_argument("--seconds", type=float, default=0.5, help="length of one contestant's turn (default 0.5)")
    it.add_argument("--quick", action="store_true",
                    help="2 ranks, 4 B and 1 MiB, loopback, Tributary and Gloo, 2 short alternations")  # fmt: skip
    it.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    it.add_argument("--plots", type=Path, metavar="FOLDER", help="draw peers-SETTING.svg and .png in this folder")
    it.add_argument("--report", type=Path, nargs="+", metavar="FILE",
                    help="measure nothing: print a table (and draw --plots) of earlier results")  # fmt: skip
    it.add_argument("--keep-logs", type=Path, metavar="FOLDER", help="keep the contestants' logs in this folder")
    it.add_argument("--set", type=_variable, action="append", default=[], metavar="TRIBUTARY_NAME=VALUE",
                    help="a setting of Tributary's ranks")  # fmt: skip
    it.add_argument("--aggregator-setting", action="append", default=[], metavar="'KEY: VALUE'",
                    help="a line for the aggregators' configuration files")  # fmt: skip
    it.add_argument("--manager-setting", action="append", default=[], metavar="'KEY: VALUE'",
                    help="a line for the manager's configuration file, as 'segment_bytes: 16KiB'")  # fmt: skip
    it.add_argument("--no-topology", dest="topology", action="store_false",
                    help="give the manager no topology; it knows links' rates only by --set TRIBUTARY_LINK_RATE=RATE"
                         " and --aggregator-setting 'line_rate: RATE'")  # fmt: skip
    it.add_argument("--congestion-control", "--congestion", type=lambda text: text.split(","), default=[""],
                    metavar="LIST", help="TCP's congestion controls in the settings with hosts, such as cubic,bbr,reno:"
                                         " measure with each in turn (default: the machine's setting)")  # fmt: skip
    it.add_argument("--queue", type=_queue, metavar="TIME",
                    help="depth of the links' queues at their rate (default 4ms, and 256 KiB at least)")  # fmt: skip
    it.add_argument("--beside", type=Path, metavar="FOLDER",
                    help="also measure another build of Tributary, as build/release of another clone, turn by turn, and"
                         " print the ratios")  # fmt: skip
    it.add_argument("--build", type=Path, default=Path("build/release"), help=argparse.SUPPRESS)
    return it


def parse(arguments: list[str]) -> argparse.Namespace:
    options = parser().parse_args(arguments)
    if options.seconds <= 0:
        parser().error("--seconds must be above 0")
    if options.beside:
        options.beside = options.beside.resolve()
        if not (options.beside / "bench/peers/peers_tributary_driver").exists():
            parser().error(f"--beside: {options.beside} has no bench/peers/peers_tributary_driver; build all targets there")
    if options.quick:
        options.settings, options.ranks, options.bytes = ["loopback"], [2], [4, 1 << 20]
        options.contestants = [name for name in options.contestants if name not in ("openmpi", "mpich")]
        options.alternations, options.seconds = 2, 0.1
    return options
