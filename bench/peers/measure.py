"""The measurements themselves: contestants take turns within each alternation, A B C A B C ..."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import limits
import processes
import samples
from contestants import Running
from control import ContestantError, WrongSum
from places import Setting

LIMIT_SECONDS = 300.0  # seconds for one answer
DISTURBED_CORES = 0.3  # a turn counts as disturbed when other processes use more than this much of a core


@dataclass
class Turn:
    """One contestant's part of one alternation."""

    seconds: float  # seconds per operation: the median over samples of the slowest rank
    operations: int
    rank_cpu_seconds: float
    aggregator_cpu_seconds: float
    other_cores: float  # cores that the rest of the machine used during this turn


@dataclass
class Cell:
    setting: Setting
    ranks: int
    size: int
    contestant: str
    aggregators: int = 0  # aggregators with links like the ranks' links
    plan: samples.Plan | None = None
    turns: list[Turn] = field(default_factory=list)
    failure: str = ""
    wrong: bool = False

    def as_json(self, memory_bytes_per_second: float) -> dict:
        facts = {
            "setting": self.setting.name,
            "ranks": self.ranks,
            "bytes": self.size,
            "contestant": self.contestant,
        }
        if not self.turns:
            return facts | {"failure": self.failure, "wrong": self.wrong}
        spread = samples.spread([it.seconds for it in self.turns])
        cpu = sum(it.rank_cpu_seconds for it in self.turns), sum(it.aggregator_cpu_seconds for it in self.turns)
        reduced = sum(it.operations for it in self.turns) * self.size / 1e9
        return facts | {
            "failure": self.failure,
            "wrong": self.wrong,
            "seconds": asdict(spread),
            "algorithm_bandwidth": limits.algorithm_bandwidth(self.size, spread.median),
            "bus_bandwidth": limits.bus_bandwidth(self.size, self.ranks, spread.median),
            "cpu_seconds_per_gb": {"ranks": cpu[0] / reduced, "aggregators": cpu[1] / reduced},
            "limits": self._limits(memory_bytes_per_second),
            "plan": asdict(self.plan) if self.plan else None,
            "turns": [asdict(it) for it in self.turns],
            "disturbed_turns": sum(it.other_cores > DISTURBED_CORES for it in self.turns),
        }

    def _limits(self, memory_bytes_per_second: float) -> dict[str, float]:
        if rate := self.setting.link_bits_per_second:
            found = {
                "tree_seconds": limits.tree_seconds(self.size, rate),
                "ring_seconds": limits.ring_seconds(self.size, self.ranks, rate),
            }
            if self.setting.equal:
                found["bound_seconds"] = limits.split_seconds(self.size, self.ranks, self.aggregators, rate)
            return found
        if self.setting.shared_memory and memory_bytes_per_second:
            return {"memory_seconds": limits.memory_seconds(self.size, self.ranks, memory_bytes_per_second)}
        return {}


def calibrate(running: Running, size: int, seconds: float, ranks: int) -> samples.Plan:
    """The first operation opens connections and makes the system map memory; a few more operations show how long they
    take."""
    running.measure(size, 1, 1, LIMIT_SECONDS)
    most = running.contestant.batch_max
    batch = min(2 if size >= 1 << 20 else 8, most or samples.batch_max(ranks))
    probe = running.measure(size, 2, batch, LIMIT_SECONDS)
    return samples.plan(min(samples.slowest(probe.seconds)) / batch, seconds, ranks, most)


def turn(running: Running, size: int, plan: samples.Plan) -> Turn:
    began, machine = time.monotonic(), processes.machine_cpu_seconds()
    own = time.process_time() + running.all_cpu_seconds()
    aggregators = running.aggregator_cpu_seconds()
    measurement = running.measure(size, plan.samples, plan.batch, LIMIT_SECONDS)
    aggregators = running.aggregator_cpu_seconds() - aggregators
    elapsed = time.monotonic() - began
    own = time.process_time() + running.all_cpu_seconds() - own
    per_sample = samples.slowest(measurement.seconds)
    return Turn(
        samples.spread(per_sample).median / plan.batch,
        plan.samples * plan.batch,
        measurement.rank_cpu_seconds,
        aggregators,
        max(0.0, (processes.machine_cpu_seconds() - machine - own) / elapsed),
    )


def measure_size(
    runners: list[Running], setting: Setting, ranks: int, size: int, alternations: int, seconds: float,
    say: Callable[[Cell], None],
) -> list[Cell]:  # fmt: skip
    """Measures all contestants at one size. A contestant that fails is removed from `runners`, and takes no further
    part."""
    cells = {
        it.contestant.name: Cell(setting, ranks, size, it.contestant.name, it.contestant.aggregators) for it in runners
    }

    def attempt(running: Running, step: Callable[[Cell], None]) -> None:
        cell = cells[running.contestant.name]
        try:
            step(cell)
        except ContestantError as error:
            cell.failure, cell.wrong = str(error), isinstance(error, WrongSum)
            runners.remove(running)

    for running in list(runners):
        attempt(running, lambda cell, it=running: setattr(cell, "plan", calibrate(it, size, seconds, ranks)))
    for _ in range(alternations):
        for running in list(runners):
            attempt(running, lambda cell, it=running: cell.turns.append(turn(it, size, cell.plan)))
    for cell in cells.values():
        say(cell)
    return list(cells.values())
