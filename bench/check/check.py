"""Measures ratios of Tributary to yardsticks in one run, and reports the ratios that fell by more than 5 % since the
baseline.

A cell is Tributary's rate divided by a yardstick's rate; one run measures both in alternation. Examples of such pairs
are a kernel and the memory's own rate, a transport and plain sockets, a tree and the fallback. Such ratios stay the
same on another machine; times do not. Every program checks its sums or bytes. A cell's figure is the median of the
alternations. A cell fell when the fall exceeds 5 % by more than two standard errors of both medians; a cell whose error
is too large is called noisy.

exit codes:
  0   no cell fell
  1   a cell fell, or a program failed or gave a wrong sum
  2   no verdict is possible: the machine is too busy, a cell is noisy or missing, or no baseline exists
  64  the command line is wrong
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "bench/check"), str(ROOT / "bench/peers")]

import compare  # noqa: E402
import machine  # noqa: E402
import peers_ranks  # noqa: E402
import processes  # noqa: E402
from cells import CELLS, TREE_RANKS, TREE_SECONDS, Bench, Cell  # noqa: E402
from programs import ProgramError  # noqa: E402

BUSY_CORES = 0.3  # the check gives no verdict when other processes use more than this much of a core
BASELINE = ROOT / "bench/baseline.json"
COMMAND_FAILED, UNCLEAR, USAGE = 1, 2, 64


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="scripts/bench-check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the measured cells into the baseline")
    parser.add_argument("--cells", metavar="REGEX", default="", help="measure only cells whose name matches")
    parser.add_argument("--list", action="store_true", help="print the cells and the commands that repeat them; measure nothing")
    parser.add_argument("--alternations", type=int, default=15, help="at least 5 (default: 15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all ratios and verdicts to FILE")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="default: bench/baseline.json")
    parser.add_argument("--build", type=Path, metavar="DIR",
                        help="use the programs of this build folder as they are (default: build build/release first)")
    options = parser.parse_args(arguments)
    if options.alternations < compare.ALTERNATIONS_MIN:
        parser.error(f"--alternations is at least {compare.ALTERNATIONS_MIN}")
    try:
        options.chosen = [cell for cell in CELLS if re.search(options.cells, cell.name)]
    except re.error as error:
        parser.error(f"--cells is not a regular expression: {error}")
    if not options.chosen:
        parser.error(f"no cell's name matches {options.cells}")
    return options


def list_cells(cells: list[Cell]) -> None:
    for cell in cells:
        print(f"{cell.name}\n    {cell.words}\n    {cell.command}")


class Load:
    """Measures the processor time that other processes use during a run, in cores."""

    def __init__(self) -> None:
        self._began, self._machine, self._own = time.monotonic(), processes.machine_cpu_seconds(), self._own_seconds()

    @staticmethod
    def _own_seconds() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(it.ru_utime + it.ru_stime for it in used)

    def other_cores(self) -> float:
        """Call this when all children have ended, because until then their time counts as time of other processes."""
        others = processes.machine_cpu_seconds() - self._machine - (self._own_seconds() - self._own)
        return max(0.0, others / (time.monotonic() - self._began))


def progress(line: str) -> None:
    """Replaces the present line of a terminal; a file of logs gets no such line."""
    if sys.stderr.isatty():
        print(f"\r{line}\r", end="", file=sys.stderr, flush=True)


def measure(cells: list[Cell], build: Path, alternations: int) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Returns the ratios of each cell, and a sentence for each cell that failed. All cells take turns in each
    alternation."""
    ratios: dict[str, list[float]] = {cell.name: [] for cell in cells}
    failures: dict[str, str] = {}
    runners = functools.partial(peers_ranks.open_ranks, ranks=TREE_RANKS, seconds=TREE_SECONDS)
    with Bench(build, runners) as bench:
        for alternation in range(alternations):
            for cell in cells:
                if cell.name in failures:
                    continue
                progress(f"   alternation {alternation + 1} of {alternations}: {cell.name:40}")
                try:
                    ratios[cell.name].append(cell.ratio(bench))
                except ProgramError as error:
                    failures[cell.name] = str(error)
    progress(" " * 72)
    return {name: it for name, it in ratios.items() if name not in failures}, failures


def read_baseline(path: Path) -> dict | None:
    """Reads and checks the document; returns None if the file does not exist."""
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise compare.BaselineError(f"it is not JSON: {error}") from error
    compare.read_baseline(document)
    return document


def facts(other_cores: float, alternations: int) -> dict:
    seen = machine.facts(ROOT, Path("/nowhere"))
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": seen["commit"],
        "machine": {name: seen[name] for name in ("processor", "cores", "memory_bytes", "kernel")},
        "alternations": alternations,
        "other_cores": round(other_cores, 2),
    }


def write_baseline(path: Path, old: dict | None, now: dict[str, compare.Figure], about: dict) -> None:
    """Cells that this run has not measured stay unchanged, with the date and commit of their measurement."""
    commands = {cell.name: cell.command for cell in CELLS}
    kept = {name: it for name, it in ((old or {}).get("cells") or {}).items() if name in commands and name not in now}
    stamp = {"date": about["date"], "commit": about["commit"]}
    fresh = {name: figure.as_json() | stamp | {"command": commands[name]} for name, figure in now.items()}
    cells = {name: (kept | fresh)[name] for name in commands if name in kept or name in fresh}
    path.write_text(json.dumps(about | {"cells": cells}, indent=1) + "\n")


def report(rows: list[compare.Row], other_cores: float) -> None:
    print(compare.table(rows))
    commands = {cell.name: cell.command for cell in CELLS}
    for row in rows:
        if row.verdict not in (compare.SAME, compare.ROSE) and row.name in commands:
            print(f"\n{row.name}: repeat it with\n    {commands[row.name]}")
    if other_cores > BUSY_CORES:
        print(f"\nThe machine is too busy to judge: other processes used {other_cores:.1f} cores during this run.")


def cells_before(old: dict | None, options: argparse.Namespace) -> dict[str, compare.Figure]:
    """Returns the baseline's cells that this run should have measured."""
    known = compare.read_baseline(old) if old else {}
    return {name: it for name, it in known.items() if re.search(options.cells, name)}


def main() -> int:
    options = parse(sys.argv[1:])
    if options.list:
        list_cells(options.chosen)
        return 0
    try:
        old = read_baseline(options.baseline)
    except compare.BaselineError as error:
        print(f"bench-check: {options.baseline}: {error}", file=sys.stderr)
        if not options.update:
            return UNCLEAR
        old = None
    build = (options.build or ROOT / "build/release").resolve()
    load = Load()
    ratios, failures = measure(options.chosen, build, options.alternations)
    other_cores = load.other_cores()
    now = {name: compare.figure(it) for name, it in ratios.items()}
    rows = compare.compare(cells_before(old, options), now, failures, [cell.name for cell in options.chosen])
    report(rows, other_cores)
    about = facts(other_cores, options.alternations)
    if options.json:
        verdicts = {row.name: row.verdict for row in rows}
        options.json.write_text(json.dumps(about | {"verdicts": verdicts, "failures": failures, "ratios": ratios}, indent=1) + "\n")
    if options.update:
        write_baseline(options.baseline, old, now, about)
        print(f"\nwritten: {os.path.relpath(options.baseline)}")
        return COMMAND_FAILED if failures else 0
    if old is None:
        print(f"\nThere is no baseline {options.baseline}: --update writes it.")
        return COMMAND_FAILED if failures else UNCLEAR
    return compare.exit_code(rows, other_cores > BUSY_CORES)


if __name__ == "__main__":
    sys.exit(main())
