"""Processes that end when this one ends, however it ends, and the processor time that they took."""

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
MARK = "PEERS_RUN"  # every process of a run inherits this variable, so that all of them can be found


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
            continue  # it has ended, or is not ours
    return found


def end_all(mark: str, seconds: float = 10.0) -> None:
    """Kills what is left of the run, and waits until it is gone."""
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
    """Starts a process in a session of its own, so that an interrupt reaches this process alone; it ends the others."""
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
    """Processor time of all processes since the machine started, without interrupts, as shaped links cause those."""
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")
