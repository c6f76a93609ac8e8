"""Processes that end when this process ends, however it ends, and the processor time that they used."""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import subprocess
import time
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
MARK = "PEERS_RUN"  # every process of a run inherits this variable, by which the run finds all of them


def new_mark() -> str:
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def marked(mark: str) -> list[int]:
    """Yields every living process of the run except this one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or belongs to another user
    return found


def end_all(mark: str, seconds: float = 10.0) -> None:
    """Kills the processes of the run that are left, and waits until they are gone."""
    deadline = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < deadline:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)


def _begin_child() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def spawn(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Starts a process in a separate session, so that an interrupt reaches only this process, which then ends the
    others."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=_begin_child,
        )


def tail(log: Path, lines: int = 8) -> str:
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(f"   | {line}" for line in text.splitlines()[-lines:])


def cpu_seconds(process: int) -> float:
    """Returns the time of all threads of another process, in user and kernel mode, to the nanosecond, by the clock of
    clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def machine_cpu_seconds() -> float:
    """Returns the processor time of all processes since the machine started, without interrupts, because shaped links
    cause interrupts."""
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")
