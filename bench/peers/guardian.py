"""Cleans up when this process cannot, because after SIGKILL none of its code runs any more."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import namespaces
import processes


class Guardian:
    """A second process that waits for the end of this one. Start it before any thread."""

    def __init__(self, mark: str, folder: Path) -> None:
        owner = os.getpid()
        waiting, self._held = os.pipe()  # programs that are started later do not inherit it
        self._child = os.fork()
        if self._child == 0:
            os.close(self._held)
            _stand_guard(waiting, owner, mark, folder)
        os.close(waiting)

    def dismiss(self) -> None:
        """Tells the guardian that all is cleaned up."""
        os.write(self._held, b"x")
        os.close(self._held)
        os.waitpid(self._child, 0)


def _stand_guard(waiting: int, owner: int, mark: str, folder: Path) -> None:
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):  # a process that waits for the end of our output does not wait for this one
            os.dup2(nowhere, descriptor)
        if os.read(waiting, 1) == b"":
            processes.end_all(mark)
            namespaces.remove_of(owner)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)
