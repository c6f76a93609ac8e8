"""Compares steps of a training over Gloo and Tributary. Start it with bench/peers/train, which makes what it needs."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import contestants
import lifetime
import machine
import measure
import namespaces
import options as command_line
import places
import processes
import report
import samples
import training_figures as figures
from contestants import Contestant, Launch, Launcher, Running, Stage
from control import ContestantError, WrongSum

ROOT = Path(__file__).resolve().parents[2]
DRIVER = contestants.DRIVERS / "training_driver.py"
LIMIT_SECONDS = 300.0  # seconds for one answer


def _ranks_of(backend: str, model: list[str]) -> Launcher:
    environment = contestants.gloo_environment if backend == "gloo" else contestants.tributary_environment

    def launch(stage: Stage, folder: Path) -> Iterator[Launch]:
        command = [str(stage.python), "-B", str(DRIVER), str(folder / "store"), backend, *model]
        for rank in range(stage.ranks):
            yield Launch(places.worker(rank), command, environment(stage, rank) | {"OMP_NUM_THREADS": "1"})

    return launch


def contestants_with(model: list[str]) -> list[Contestant]:
    tributary, gloo = _ranks_of("tributary", model), _ranks_of("gloo", model)
    return [
        Contestant("tributary-1", "Tributary over one aggregator", tributary, "in-network-1", levels=1),
        Contestant("gloo", "Gloo", gloo, "gloo", ours=False),
        Contestant("tributary-fallback", "Tributary's fallback, no aggregator", tributary, "fallback"),
    ]


@dataclass
class Course:
    """The training of one contestant, turn by turn."""

    turns: list[figures.Turn] = field(default_factory=list)
    failure: str = ""
    difference: float | None = None  # difference from the first contestant's parameters at the end, relative to these
                                     # parameters
    difference_of_change: float | None = None  # the same difference, relative to the change by the training


class Training:
    def __init__(self, options: argparse.Namespace, folder: Path, mark: str) -> None:
        self._options, self._folder, self._mark = options, folder, mark
        self._setting = places.SETTINGS[options.setting]
        self._python = ROOT / "build/venv/bin/python"
        self.parameters = figures.parameters(options.layers, options.width, options.characters)
        self.courses: dict[str, Course] = {}
        self.compute: list[figures.Turn] = []

    def why_not(self) -> str:
        """Returns the reason why no measurement is possible here; empty if it is possible."""
        if self._setting.hosts and (why := namespaces.why_not()):
            return why
        if not self._python.exists():
            return "there is no build/venv with PyTorch: run without PEERS_PREPARED=1"
        module = "torch" if self._options.contestants == ["gloo"] else "tributary.torch"
        tried = subprocess.run([self._python, "-c", f"import {module}"], capture_output=True, text=True)
        if tried.returncode:
            return f"{module} cannot be imported: {(tried.stderr.strip().splitlines() or ['?'])[-1]}"
        return ""

    def run(self) -> None:
        model = [f"--{it}={getattr(self._options, it)}" for it in ("layers", "width", "characters", "batch")]
        chosen = [it for it in contestants_with(model) if it.name in self._options.contestants]
        wide = [host for it in chosen for host in it.hosts()]
        count, control = self._options.ranks, self._options.congestion_control
        print(f"\n== {self.parameters / 1e6:.1f} million parameters, {count} ranks, {self._setting.words}", flush=True)
        with (
            places.prepare(self._setting, count, wide, self._folder, control) as place,
            contextlib.ExitStack() as ends,
        ):
            build = (ROOT / self._options.build).resolve()
            stage = Stage(self._setting, count, place, build, ROOT / "build/peers", self._python, self._mark)
            runners = [Running(it, stage, self._folder / it.name) for it in chosen]
            for running in runners:
                ends.callback(running.stop)
                self.courses[running.contestant.name] = Course()
            self._each(runners, lambda running, _: running.start())
            self._train(runners)

    def _each(self, runners: list[Running], work) -> None:
        """Runs one alternation. A contestant that fails is removed from `runners`, and takes no further part."""
        for running in list(runners):
            course = self.courses[running.contestant.name]
            try:
                work(running, course)
            except ContestantError as error:
                course.failure = str(error)
                runners.remove(running)
                print(f"   {running.contestant.name}: {error}", file=sys.stderr, flush=True)

    def _train(self, runners: list[Running]) -> None:
        steps = self._options.steps
        # The first step opens connections, and DistributedDataParallel orders its buckets by this step.
        self._each(runners, lambda running, _: self._turn(running, "train", 1))
        for alternation in range(self._options.alternations):
            if runners:  # all contestants have the same model, so they also take turns in steps without reductions
                computing = [runners[alternation % len(runners)]]
                self._each(computing, lambda running, _: self.compute.append(self._turn(running, "compute", steps)))
            self._each(runners, lambda running, course: course.turns.append(self._turn(running, "train", steps)))
        self._each(runners, lambda running, course: self._compare(running, course))

    def _turn(self, running: Running, word: str, steps: int) -> figures.Turn:
        began, everyone = time.monotonic(), processes.machine_cpu_seconds()
        own, aggregators = time.process_time() + running.all_cpu_seconds(), running.aggregator_cpu_seconds()
        answers = [figures.Answer.parse(it) for it in running.ask(f"{word} {steps}", LIMIT_SECONDS)]
        elapsed, aggregators = time.monotonic() - began, running.aggregator_cpu_seconds() - aggregators
        own = time.process_time() + running.all_cpu_seconds() - own
        if why := figures.why_wrong(answers, running.contestant.path):
            raise WrongSum(why)
        others = max(0.0, (processes.machine_cpu_seconds() - everyone - own) / elapsed)
        turn = figures.Turn.of(answers, steps, aggregators, others)
        print(
            f"   {running.contestant.name:20} {word:8} {report.short_time(turn.seconds):>8} a step, loss {turn.loss:.4f},"
            f" other processes used {others:.2f} cores",
            flush=True,
        )
        return turn

    def _compare(self, running: Running, course: Course) -> None:
        file = self._folder / "parameters"
        if not file.exists():
            running.ask(f"save {file}", LIMIT_SECONDS)
            return
        answers = [tuple(map(float, it.split())) for it in running.ask(f"compare {file}", LIMIT_SECONDS)]
        course.difference, course.difference_of_change = max(answers)
        if not course.difference <= figures.DIFFERENCE_MAX:  # also false for a NaN
            raise WrongSum(f"its parameters differ from the first contestant's by {course.difference:.1e}")

    def _link_seconds(self, tree: bool) -> float | None:
        rate = self._setting.link_bits_per_second
        return figures.communication_limit(4 * self.parameters, self._options.ranks, rate, tree)

    def table(self) -> str:
        gloo = self.courses.get("gloo", Course()).turns
        peer = samples.spread([it.seconds for it in gloo]).median if gloo else None
        rows = [list(figures.HEADINGS)]
        if self.compute:
            rows.append(figures.row("computing alone", self.compute, [], None, None, ""))
        for name, course in self.courses.items():
            link = self._link_seconds(tree=name == "tributary-1")
            rows.append(figures.row(name, course.turns, self.compute, link, peer, self._note(course)))
        return report.columns(rows)

    @staticmethod
    def _note(course: Course) -> str:
        disturbed = sum(it.other_cores > measure.DISTURBED_CORES for it in course.turns)
        parts = [course.failure.splitlines()[0]] if course.failure else []
        parts += [f"{disturbed} of {len(course.turns)} turns disturbed by other load"] if disturbed else []
        return "; ".join(parts)

    def document(self) -> dict:
        return {
            "command": shlex.join(["bench/peers/train", *sys.argv[1:]]),
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine.facts(ROOT, self._python),
            "options": {name: value for name, value in vars(self._options).items() if isinstance(value, int | str)},
            "parameters": self.parameters,
            "link_seconds": {"tree": self._link_seconds(True), "ring": self._link_seconds(False)},
            "compute": [asdict(it) for it in self.compute],
            "courses": {name: asdict(it) for name, it in self.courses.items()},
        }

    def verdict(self) -> int:
        """Returns 1 if a contestant failed or parameters differed; 77 if no measurement was made."""
        if any(it.failure for it in self.courses.values()):
            return 1
        return 0 if any(it.turns for it in self.courses.values()) else 77


NAMES = ("tributary-1", "gloo", "tributary-fallback")


def parser() -> argparse.ArgumentParser:
    settings = [it.name for it in places.SETTINGS.values() if not it.shared_memory]
    it = argparse.ArgumentParser(
        prog="bench/peers/train",
        description="Steps of a training with DistributedDataParallel over Gloo and over Tributary, in alternation.",
    )
    number = command_line.count_of
    it.add_argument("--setting", choices=settings, default="200mbit", help="default 200mbit")
    it.add_argument("--contestants", type=command_line.names_of(dict.fromkeys(NAMES)), default=list(NAMES),
                    metavar="LIST", help=", ".join(NAMES))  # fmt: skip
    it.add_argument("--ranks", type=number, default=4, metavar="N", help="default 4")
    it.add_argument("--alternations", type=number, default=5, metavar="N", help="default 5")
    it.add_argument("--steps", type=number, default=3, metavar="N", help="steps in each contestant's turn (default 3)")
    for name, default, what in (
        ("layers", 8, "number of the transformer's layers"),
        ("width", 512, "width of the transformer, a multiple of 64"),
        ("characters", 32, "length of a text"),
        ("batch", 8, "number of texts in each rank's step"),
    ):
        it.add_argument(f"--{name}", type=number, default=default, metavar="N", help=f"{what} (default {default})")
    it.add_argument("--quick", action="store_true",
                    help="2 ranks, a model of a layer, the loopback, 2 alternations of 1 step")  # fmt: skip
    it.add_argument("--json", type=Path, metavar="FILE", help="write the results to this file")
    it.add_argument("--keep-logs", type=Path, metavar="FOLDER", help="keep the contestants' logs in this folder")
    it.add_argument("--congestion-control", default="", metavar="NAME",
                    help="TCP's congestion control (default: the machine's setting)")  # fmt: skip
    it.add_argument("--build", type=Path, default=Path("build/release"), help=argparse.SUPPRESS)
    return it


def parse(arguments: list[str]) -> argparse.Namespace:
    options = parser().parse_args(arguments)
    if options.quick:
        options.setting, options.ranks, options.alternations, options.steps = "loopback", 2, 2, 1
        options.layers, options.width = 1, 128
    if not 2 <= options.ranks <= 64:
        parser().error("--ranks: 2 to 64")
    if options.width % 64:
        parser().error("--width: a multiple of 64")
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    with lifetime.of_a_run(options.keep_logs) as (mark, folder):
        training = Training(options, folder, mark)
        if why := training.why_not():
            print(f"nothing is measured: {why}", file=sys.stderr)
            return 77
        status = lifetime.attempt(training.run)
    if options.json:
        options.json.write_text(json.dumps(training.document(), indent=1) + "\n")
    print(f"\n{training.table()}\n\n{figures.EXPLANATION}")
    for name, course in training.courses.items():
        if course.difference is not None:
            parts = f"{course.difference:.1e} of them, {course.difference_of_change:.1e} of what training has changed"
            print(f"{name}: parameters differ from the first contestant's by {parts}")
    return status or training.verdict()


if __name__ == "__main__":
    sys.exit(main())
