"""Runs the cells of the study, several at a time, and keeps each as a line of JSON; a repeated run continues with the
missing cells."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import report
from collectives import HOP_SECONDS
from fabric import Fabric
from study import MIB, Study, programs

ROOT = Path(__file__).resolve().parents[2]
SIZES = (MIB, 25 * MIB, 256 * MIB)
RACKS = (32, 128, 512, 1024)
# Ranks for each aggregator, and the rate of the aggregator's link, if a rank's link has 100 Gbit/s.
FEW_WIDE, MANY_EQUAL, MANY_WIDE, MOST_WIDE = (32, 400e9), (8, 100e9), (8, 400e9), (4, 400e9)
ALL = (FEW_WIDE, MANY_EQUAL, MANY_WIDE, MOST_WIDE)


@dataclass(frozen=True)
class Task:
    kind: str
    fabric: Fabric
    sizes: tuple[int, ...] = SIZES
    dead: int = 0
    straggler: float = 1.0
    jobs: int = 1
    spread: bool = False

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def fabric(ranks: int, rack: int, oversubscription: int, aggregators: tuple[int, float]) -> Fabric:
    return Fabric(ranks, rack, aggregators[0], oversubscription, aggregator_rate=aggregators[1])


def base_tasks() -> list[Task]:
    wanted = []
    for rack in RACKS:
        wanted += [fabric(1024, rack, over, it) for over in (1, 2, 4) for it in ALL]
        wanted += [fabric(4096, rack, over, it) for over in (1, 2, 4) for it in (MANY_EQUAL, MANY_WIDE)]
        wanted += [fabric(ranks, rack, over, MANY_WIDE) for ranks in (16384, 32768) for over in (1, 4)]
    wanted += [fabric(ranks, 128, 1, it) for ranks in (4096, 16384, 32768) for it in ALL]
    # One aggregator per rack, which in racks of more than 64 ranks cannot have all ranks as children.
    wanted += [Fabric(1024, rack, rack, 1, aggregator_rate=400e9) for rack in (128, 512)]
    return [Task("alone", it) for it in dict.fromkeys(wanted)]


def fault_tasks() -> list[Task]:
    tasks = []
    size = (256 * MIB,)
    for ranks in (1024, 4096):
        for over in (1, 4):
            tasks.append(Task("alone", fabric(ranks, 128, over, MANY_WIDE), size, straggler=0.1))
            tasks.append(Task("dies", fabric(ranks, 128, over, MANY_WIDE), size))
        aggregators = ranks // 8
        tasks += [Task("alone", fabric(ranks, 128, 1, MANY_WIDE), size, dead=aggregators * part // 16) for part in (1, 4, 8)]
    return tasks


def job_tasks() -> list[Task]:
    return [
        Task("together", fabric(4096, 128, over, MANY_WIDE), (256 * MIB,), jobs=jobs, spread=spread)
        for jobs in (4, 16) for over in (1, 4) for spread in (False, True)
    ]  # fmt: skip


def tasks(quick: bool) -> list[Task]:
    if quick:
        return [Task("alone", fabric(256, 32, 1, MANY_WIDE)), Task("dies", fabric(256, 32, 1, MANY_WIDE), (256 * MIB,))]
    return base_tasks() + fault_tasks() + job_tasks()


def carry_out(study: Study, task: Task) -> tuple[str, list[dict]]:
    if task.kind == "dies":
        cells = study.dies(task.fabric, task.sizes[0])
    elif task.kind == "together":
        cells = study.together(task.fabric, task.jobs, task.spread, task.sizes[0])
    else:
        cells = study.alone(task.fabric, list(task.sizes), task.dead, task.straggler)
    return task.key, cells


def end_on_signals() -> None:
    """Turns signals into exceptions, so that each process ends the manager that it has started."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda it, _: sys.exit(128 + it))


def run(study: Study, left: list[Task], done: dict[str, list[dict]], cells_file: Path, processes: int) -> None:
    with ProcessPoolExecutor(processes, initializer=end_on_signals) as pool, cells_file.open("a", encoding="utf-8") as out:
        try:
            for number, future in enumerate(as_completed([pool.submit(carry_out, study, it) for it in left]), 1):
                key, cells = future.result()
                done[key] = cells
                out.write(json.dumps({"task": key, "cells": cells}) + "\n")
                out.flush()
                print(f"{number} of {len(left)}", file=sys.stderr, flush=True)
        except BaseException:
            for child in multiprocessing.active_children():
                child.terminate()
            pool.shutdown(cancel_futures=True)
            raise


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, prog="bench/scale/run")
    options.add_argument("--quick", action="store_true", help="only 256 ranks, to see whether it works")
    options.add_argument("--ranks-max", type=int, default=1 << 20, help="leave out larger clusters")
    options.add_argument("--hop", type=float, default=HOP_SECONDS, help="seconds of a hop (%(default)s)")
    options.add_argument("--processes", type=int, default=1, help="cells at a time (1)")
    options.add_argument("--build", type=Path, default=ROOT / "build/release")
    options.add_argument("--cells", type=Path, default=None, help="file of the results (build/scale/cells.jsonl); a quick run has its own")
    given = options.parse_args()
    cells_file = given.cells or ROOT / "build/scale" / ("quick.jsonl" if given.quick else "cells.jsonl")
    if given.quick:
        cells_file.unlink(missing_ok=True)
    done = report.read(cells_file)
    left = [it for it in tasks(given.quick) if it.key not in done and it.fabric.ranks <= given.ranks_max]
    left.sort(key=lambda it: it.fabric.ranks)
    study = Study(programs(ROOT, given.build), given.hop)
    end_on_signals()
    run(study, left, done, cells_file, given.processes)
    print(report.markdown([cell for cells in done.values() for cell in cells]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
