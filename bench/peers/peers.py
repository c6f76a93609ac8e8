"""Runs the comparison. Start it with bench/peers/run, which makes what it needs."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import curve
import lifetime
import machine
import measure
import namespaces
import options as command_line
import places
import plots
import report
from contestants import CONTESTANTS, Contestant, Running, Stage, beside, ours
from control import ContestantError

ROOT = Path(__file__).resolve().parents[2]


class Comparison:
    def __init__(self, options: Namespace, folder: Path, mark: str) -> None:
        self._options, self._folder, self._mark = options, folder, mark
        self._build = (ROOT / options.build).resolve()
        self._python = ROOT / "build/venv/bin/python"
        self._memory = machine.memory_bandwidth() if "shm" in options.settings else 0.0
        self.cells: list[dict] = []
        self.absent: list[dict] = []

    def run(self) -> None:
        for name in self._options.settings:
            setting = places.SETTINGS[name]
            for ranks in self._options.ranks:
                if setting.hosts and (why := namespaces.why_not()):
                    self._refuse(setting, ranks, "all", why)
                    continue
                for control in self._options.congestion_control if setting.hosts else [""]:
                    self._run_stage(self._variant(setting, control), ranks, control)

    def _variant(self, setting: places.Setting, control: str) -> places.Setting:
        """Returns the setting with a name that tells the choices for its links."""
        chosen = [control] if control else []
        if setting.hosts and self._options.queue:
            chosen.append(f"queue-{self._options.queue * 1e3:g}ms")
        if not chosen:
            return setting
        return replace(
            setting, name="-".join([setting.name, *chosen]), words=f"{setting.words} ({', '.join(chosen)})"
        )

    def _refuse(self, setting: places.Setting, ranks: int, contestant: str, why: str) -> None:
        self.absent.append({"setting": setting.name, "ranks": ranks, "contestant": contestant, "why": why})
        print(f"   {setting.name}, {ranks} ranks: without {contestant}: {why}", flush=True)

    def _contestants(self) -> list[Contestant]:
        """Returns the chosen contestants; each of ours is followed by its twin from the other build, if there is one."""
        found: list[Contestant] = []
        for name in self._options.contestants:
            contestant = CONTESTANTS[name]
            found.append(contestant)
            if contestant.ours and self._options.beside:
                found.append(beside(contestant, self._options.beside))
        return found

    def _run_stage(self, setting: places.Setting, ranks: int, control: str) -> None:
        contestants = self._contestants()
        for contestant in list(contestants):
            if why := contestant.why_not(setting, ranks):
                self._refuse(setting, ranks, contestant.name, why)
                contestants.remove(contestant)
        folder = self._folder / f"{setting.name}-{ranks}"
        folder.mkdir()
        wide = [host for it in contestants for host in it.hosts()]
        print(f"\n== {setting.words}, {ranks} ranks", flush=True)
        prepared = places.prepare(setting, ranks, wide, folder, control, self._options.queue)
        with prepared as place, contextlib.ExitStack() as ends:
            stage = Stage(
                setting, ranks, place, self._build, ROOT / "build/peers", self._python, self._mark,
                dict(self._options.set), self._options.aggregator_setting, self._options.manager_setting, self._options.topology,
            )  # fmt: skip
            runners = []
            for contestant in contestants:
                running = Running(contestant, stage, folder / contestant.name)
                ends.callback(running.stop)
                try:
                    running.start()
                    runners.append(running)
                except ContestantError as error:
                    self._refuse(setting, ranks, contestant.name, str(error))
            for size in self._options.bytes:
                measure.measure_size(
                    runners, setting, ranks, size, self._options.alternations, self._options.seconds, self._take
                )  # fmt: skip
                group = [it for it in self.cells if (it["setting"], it["ranks"]) == (setting.name, ranks)]
                print("\n" + report.table([it for it in group if it["bytes"] == size], ours), flush=True)

    def _take(self, cell: measure.Cell) -> None:
        self.cells.append(cell.as_json(self._memory))

    def document(self) -> dict:
        return {
            "command": shlex.join(["bench/peers/run", *sys.argv[1:]]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine.facts(ROOT, self._python) | {"memory_bytes_per_second": self._memory},
            "alternations": self._options.alternations,
            "turn_seconds": self._options.seconds,
            "absent": self.absent,
            "cells": self.cells,
        }


def compare(options: Namespace) -> int:
    with lifetime.of_a_run(options.keep_logs) as (mark, folder):
        comparison = Comparison(options, folder, mark)
        status = lifetime.attempt(comparison.run)
    document = comparison.document()
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
        print(f"\nwritten: {options.json}")
    finish(options, document["cells"])
    return status or verdict(document)


def verdict(document: dict) -> int:
    """Returns 1 if a sum was wrong or a contestant failed during its measurement; 77 if no measurement was possible."""
    for cell in document["cells"]:
        if cell["failure"]:
            print(f"{cell['setting']}, {cell['ranks']} ranks: {cell['contestant']}: {cell['failure']}", file=sys.stderr)
    if any(cell["failure"] for cell in document["cells"]):
        return 1
    return 0 if document["cells"] else 77


def finish(options: Namespace, cells: list[dict]) -> None:
    if options.plots and any("seconds" in it for it in cells):
        if why := plots.why_not():
            print(f"no plots: {why}")
            return
        options.plots.mkdir(parents=True, exist_ok=True)
        words = {name: it.words for name, it in places.SETTINGS.items()}
        drawn = plots.draw(cells, words, ours, options.plots)
        for it in places.SETTINGS.values():
            if it.equal:
                drawn += curve.draw(cells, it.name, it.words, it.link_bits_per_second, options.plots)
        for path in drawn:
            print(f"drawn: {path}")
    if twins := report.beside_table(cells):
        print(f"\n{twins}")
    if cells:
        print("\n" + report.EXPLANATION)


def report_only(options: Namespace) -> int:
    cells = [cell for file in options.report for cell in json.loads(file.read_text())["cells"]]
    print(report.table(cells, ours))
    finish(options, cells)
    return 0


def main() -> int:
    options = command_line.parse(sys.argv[1:])
    return report_only(options) if options.report else compare(options)


if __name__ == "__main__":
    sys.exit(main())
