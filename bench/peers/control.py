"""The bench's side of the text protocol that drivers/driver.h describes."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class ContestantError(Exception):
    """A contestant cannot take part, or stopped taking part; the text says why."""


class WrongSum(ContestantError):
    """The contestant's result was not the right sum."""


@dataclass
class Rank:
    number: int
    process: int
    path: str
    end: socket.socket
    rest: bytes = b""

    def tell(self, line: str) -> None:
        try:
            self.end.sendall(line.encode() + b"\n")
        except OSError as error:
            raise ContestantError(f"rank {self.number} is gone: {error}") from error

    def hear(self, deadline: float) -> str:
        while b"\n" not in self.rest:
            self.end.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                more = self.end.recv(65536)
            except TimeoutError as error:
                raise ContestantError(f"rank {self.number} did not answer in time") from error
            if not more:
                raise ContestantError(f"rank {self.number} has ended")
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode(errors="replace")


@dataclass
class Measurement:
    seconds: list[list[float]]  # times of one batch, by rank, then by sample
    rank_cpu_seconds: float


class Ranks:
    """All ranks of one contestant."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(count)
        self._ranks: list[Rank] = []

    def meet(self, seconds: float, still_there: Callable[[], None]) -> str:
        """Returns the path that all ranks name. `still_there` raises an exception if the contestant has ended."""
        deadline = time.monotonic() + seconds
        self._listener.settimeout(0.2)
        while len(self._ranks) < self._count:
            try:
                rank = Rank(-1, -1, "", self._listener.accept()[0])
            except TimeoutError:
                still_there()
                if time.monotonic() > deadline:
                    came = sorted(it.number for it in self._ranks)
                    raise ContestantError(f"within {seconds:.0f} s only the ranks {came} came") from None
                continue
            word, number, process, rank.path = rank.hear(deadline).split()
            if word != "hello":
                raise ContestantError(f"a rank says '{word}'")
            rank.number, rank.process = int(number), int(process)
            self._ranks.append(rank)
            if rank.path == "none":
                raise ContestantError(rank.hear(deadline).removeprefix("failed "))
        self._ranks.sort(key=lambda it: it.number)
        if [it.number for it in self._ranks] != list(range(self._count)):
            raise ContestantError(f"these ranks came: {[it.number for it in self._ranks]}")
        return self._ranks[0].path

    def ask(self, line: str, limit_seconds: float) -> list[str]:
        """Sends a line to all ranks. Returns the text behind the word "result" in their answers, by rank."""
        for rank in self._ranks:
            rank.tell(line)
        deadline = time.monotonic() + limit_seconds
        answers = [rank.hear(deadline).partition(" ") for rank in self._ranks]
        for word, _, sentence in answers:
            if word == "wrong":
                raise WrongSum(sentence)
            if word != "result":
                raise ContestantError(f"{word} {sentence}")
        return [rest for _, _, rest in answers]

    def measure(self, size: int, samples: int, batch: int, limit_seconds: float) -> Measurement:
        answers = self.ask(f"measure {size} {samples} {batch}", limit_seconds)
        numbers = [[float(it) for it in answer.split()] for answer in answers]
        return Measurement([[it / 1e9 for it in of_rank[1:]] for of_rank in numbers], sum(it[0] for it in numbers))

    def processes(self) -> list[int]:
        return [it.process for it in self._ranks]

    def close(self) -> None:
        for rank in self._ranks:
            rank.end.close()
        self._listener.close()
        self._path.unlink(missing_ok=True)
