"""A run's folder, processes and namespaces, which are removed when the run ends, whatever ends it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import processes
from guardian import Guardian
from namespaces import NamespaceError

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupted(number: int, _frame: object) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _no_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_socket()]


@contextlib.contextmanager
def of_a_run(keep_logs: Path | None) -> Iterator[tuple[str, Path]]:
    """Yields the mark of the run's processes, and its folder; copies the folder to `keep_logs` at the end."""
    for number in _ENDINGS:  # also SIGINT, which a shell makes its background processes ignore
        signal.signal(number, _interrupted)
    mark = processes.new_mark()
    folder = Path(tempfile.mkdtemp(prefix="peers-"))
    guardian = Guardian(mark, folder)
    try:
        yield mark, folder
    finally:
        # A second interrupt must not leave processes behind.
        for number in _ENDINGS:
            signal.signal(number, signal.SIG_IGN)
        processes.end_all(mark)
        if keep_logs:
            shutil.copytree(folder, keep_logs, dirs_exist_ok=True, ignore=_no_sockets)
        shutil.rmtree(folder, ignore_errors=True)
        guardian.dismiss()


def attempt(work: Callable[[], None]) -> int:
    """Returns the exit status: 1 without the hosts, 130 after an interrupt."""
    try:
        work()
    except NamespaceError as error:
        print(f"the hosts cannot be made: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"\ninterrupted ({error}): ending what was started", file=sys.stderr)
        return 130
    return 0
