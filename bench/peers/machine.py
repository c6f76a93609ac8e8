"""The machine and the versions of a measurement: part of every result."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import threading
import time
from pathlib import Path


def _first_line(command: list[str], pattern: str = r".+") -> str:
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "not installed"
    found = re.search(pattern, text)
    return (found.group(1) if found.groups() else found.group(0)) if found else "unknown"


def _processor() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found.group(1) if found else platform.machine()


def facts(root: Path, python: Path) -> dict:
    torch = "import torch; print(torch.__version__)"
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "commit": _first_line(
            ["git", "-c", f"safe.directory={root}", "-C", str(root), "describe", "--always", "--dirty"]
        ),
        "tcp_congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
        "openmpi": _first_line(["mpirun.openmpi", "--version"], r"(\d+\.\d+\.\d+)"),
        "mpich": _first_line(["mpichversion"], r"(\d+\.\d+\.\d+)"),
        "torch": _first_line([str(python), "-c", torch]) if python.exists() else "not installed",
    }


def memory_bandwidth(seconds: float = 1.0) -> float:
    """Bytes read and written per second by copies on all cores at once, in arrays too large for any cache; 0 where
    numpy is missing."""
    try:
        import numpy
    except ImportError:
        return 0.0
    size = 256 << 20
    moved: list[float] = []

    def copy() -> None:
        source, target = numpy.ones(size, numpy.uint8), numpy.empty(size, numpy.uint8)
        numpy.copyto(target, source)
        barrier.wait()
        begin, rounds = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            numpy.copyto(target, source)  # lets other threads run
            rounds += 1
        moved.append(2 * size * rounds / (time.monotonic() - begin))

    count = os.cpu_count() or 1
    barrier = threading.Barrier(count)
    threads = [threading.Thread(target=copy) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(moved)
