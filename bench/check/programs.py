"""Runs one benchmark program once and reads one figure from its output."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

LIMIT_SECONDS = 120


class ProgramError(Exception):
    """A program failed, gave a wrong sum, or did not print the figure; the text says which."""


def run(build: Path, command: list[str], on_core: int | None = None) -> str:
    """Returns the output of the program. `command` begins with the program's path below the build folder; `on_core` keeps
    all its threads on that core."""
    program = build / command[0]
    if not program.exists():
        raise ProgramError(f"{program} is not built")
    prefix = [] if on_core is None else ["taskset", "--cpu-list", str(on_core)]
    try:
        done = subprocess.run([*prefix, str(program), *command[1:]], capture_output=True, text=True, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise ProgramError(f"{command[0]} did not end within {LIMIT_SECONDS} s") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise ProgramError(f"{command[0]} ended with exit code {done.returncode}: {''.join(last)}")
    return done.stdout


def benchmark_entry(output: str, name: str) -> dict:
    """Returns the entry of the benchmark with this name in Google Benchmark's JSON; names may have suffixes after a
    slash."""
    try:
        entries = json.loads(output)["benchmarks"]
    except (ValueError, KeyError) as error:
        raise ProgramError(f"the output is not Google Benchmark's JSON: {error}") from error
    for entry in entries:
        if entry["name"] == name or entry["name"].startswith(f"{name}/"):
            if entry.get("error_occurred"):
                raise ProgramError(f"{name}: {entry.get('error_message', 'it failed')}")
            return entry
    raise ProgramError(f"the program has no benchmark {name}")


def counter(output: str, name: str, key: str) -> float:
    return float(benchmark_entry(output, name)[key])


def seconds(output: str, name: str) -> float:
    entry = benchmark_entry(output, name)
    return float(entry["real_time"]) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[entry["time_unit"]]


def column(output: str, index: int) -> float:
    """Reads a figure from the last line of a table; spaces separate the columns, which count from 0."""
    figures = (output.strip().splitlines() or [""])[-1].split()
    try:
        return float(figures[index])
    except (IndexError, ValueError) as error:
        raise ProgramError(f"the table has no figure in column {index}: {' '.join(figures)}") from error


def labelled(output: str, word: str) -> float:
    """Reads the number that follows a word."""
    found = re.search(rf"\b{re.escape(word)} ([0-9.]+)", output)
    if not found:
        raise ProgramError(f"the program does not print {word}")
    return float(found[1])
