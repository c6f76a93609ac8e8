"""Ranks of bench/peers over loopback, which wait for commands while the check measures other cells."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from programs import ProgramError

PEERS = Path(__file__).resolve().parents[1] / "peers"
sys.path.insert(0, str(PEERS))

import contestants  # noqa: E402
import lifetime  # noqa: E402
import measure  # noqa: E402
import places  # noqa: E402
import samples  # noqa: E402
from control import ContestantError  # noqa: E402


class PeersRanks:
    """Starts each contestant when a cell first needs it."""

    def __init__(self, stage: contestants.Stage, folder: Path, ends: contextlib.ExitStack, seconds: float) -> None:
        self._stage, self._folder, self._ends, self._seconds = stage, folder, ends, seconds
        self._running: dict[str, contestants.Running] = {}
        self._plans: dict[tuple[str, int], samples.Plan] = {}

    def seconds(self, name: str, size: int) -> float:
        """Returns the median time of one allreduce; the ranks check the sums."""
        try:
            running = self._start(name)
            key = (name, size)
            if key not in self._plans:
                self._plans[key] = measure.calibrate(running, size, self._seconds, self._stage.ranks)
            return measure.turn(running, size, self._plans[key]).seconds
        except ContestantError as error:
            raise ProgramError(f"{name}: {error}") from error

    def _start(self, name: str) -> contestants.Running:
        if name not in self._running:
            running = contestants.Running(contestants.CONTESTANTS[name], self._stage, self._folder / name)
            self._ends.callback(running.stop)
            running.start()
            self._running[name] = running
        return self._running[name]


@contextlib.contextmanager
def open_ranks(build: Path, ranks: int, seconds: float) -> Iterator[PeersRanks]:
    with lifetime.of_a_run(None) as (mark, folder), contextlib.ExitStack() as ends:
        stage = contestants.Stage(places.SETTINGS["loopback"], ranks, places.Place(), build, build, Path(sys.executable),
                                  mark)  # fmt: skip
        yield PeersRanks(stage, folder, ends, seconds)
