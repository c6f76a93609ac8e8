"""Cleans up after SIGKILL of this process, when none of its own code can run."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import namespaces
import processes


class Guardian:
    """A second process that waits for the end of this process. Start it before any thread."""

    def __init__(self, mark: str, folder: Path) -> None:
        owner = os.getpid()
        waiting, self._held = os.pipe()  # later programs do not inherit it
        self._child = os.fork()
        if self._child == 0:
            os.close(self._held)
            _stand_guard(waiting, owner, mark, folder)
        os.close(waiting)

    def dismiss(self) -> None:
        """Tells the guardian that this process has cleaned up."""
        os.write(self._held, b"x")
        os.close(self._held)
        os.waitpid(self._child, 0)


def _stand_guard(waiting: int, owner: int, mark: str, folder: Path) -> None:
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):  # so a reader that waits for the end of this process's output does not wait for
                                      # the guardian
            os.dup2(nowhere, descriptor)
        if os.read(waiting, 1) == b"":
            processes.end_all(mark)
            namespaces.remove_of(owner)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os._exit(0)
