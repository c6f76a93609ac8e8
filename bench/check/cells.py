"""The cells of scripts/bench-check. To add a cell, add an entry to CELLS.

A cell gives one ratio in each alternation: Tributary's rate divided by the yardstick's rate, so more is better.
Programs whose benchmarks take turns themselves (kernels_bench) print the ratio; for other programs the check runs both
sides one after the other.

Programs whose threads sleep until the other side acts run on one core. The price of a wake-up on another core depends
on the scheduler's choice and, in a virtual machine, on the host: the same program took 7 times as long in the next run.
On one core only the work for each frame remains, which is Tributary's own work.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import programs

TRANSPORT = "bench/transport/transport_bench"
KERNELS = "bench/kernels/kernels_bench"
LOCAL = "bench/local/local_bench"
MANAGER = "bench/manager/manager_bench"

MIB = 1 << 20
TREE_RANKS, TREE_SECONDS = 4, 0.7
CORE = 0  # the core of the programs that run on one core


@dataclass(frozen=True)
class Cell:
    name: str
    words: str  # Tributary's side, then the yardstick
    command: str  # repeats the cell by hand
    ratio: Callable[["Bench"], float]  # measures one alternation


class Bench:
    """Holds the build folder, and the ranks that stay alive between alternations."""

    def __init__(self, build: Path, runners: Callable[[Path], contextlib.AbstractContextManager]) -> None:
        self.build = build
        self._runners = runners
        self._ends = contextlib.ExitStack()
        self._ranks: object | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def all_reduce_seconds(self, path: str, size: int) -> float:
        """Makes one turn of four ranks over loopback; `path` is a contestant of bench/peers."""
        if self._ranks is None:
            self._ranks = self._ends.enter_context(self._runners(self.build))
        return self._ranks.seconds(path, size)


def _benchmarks(program: str, names: list[str], seconds: float) -> list[str]:
    pattern = "|".join(f"^{name}(/|$)" for name in names)
    return [program, f"--benchmark_filter={pattern}", "--benchmark_format=json", f"--benchmark_min_time={seconds}"]


def _by_hand(command: list[str], on_core: int | None = None) -> str:
    words = [it for it in command if it != "--benchmark_format=json"]
    prefix = [] if on_core is None else ["taskset", "--cpu-list", str(on_core)]
    return shlex.join([*prefix, f"build/release/{words[0]}", *words[1:]])


def _kernel(name: str, words: str, benchmark: str, counter: str) -> Cell:
    command = _benchmarks(KERNELS, [benchmark], 0.1)[:3]  # this benchmark sets its number of rounds itself
    return Cell(name, words, _by_hand(command),
                lambda bench: programs.counter(programs.run(bench.build, command), benchmark, counter))  # fmt: skip


def _transport(name: str, words: str, ours: str, yardstick: str) -> Cell:
    """Both benchmarks move the same number of bytes in an iteration."""
    command = _benchmarks(TRANSPORT, [ours, yardstick], 0.2)

    def ratio(bench: Bench) -> float:
        output = programs.run(bench.build, command, CORE)
        return programs.seconds(output, yardstick) / programs.seconds(output, ours)

    return Cell(name, words, _by_hand(command, CORE), ratio)


def _local(name: str, words: str, size: int, yardstick: str) -> Cell:
    command = [LOCAL, "--ranks", "2", "--bytes", str(size), "--rounds", "3"]
    other = _benchmarks(TRANSPORT, [yardstick], 0.1)

    def ratio(bench: Bench) -> float:
        ours = programs.column(programs.run(bench.build, command), 2) * 1e-6
        return programs.seconds(programs.run(bench.build, other, CORE), yardstick) / ours

    return Cell(name, words, f"{_by_hand(command)}; {_by_hand(other, CORE)}", ratio)


def _tree_by_hand(contestants: str) -> str:
    return (f"bench/peers/run --settings loopback --ranks {TREE_RANKS} --bytes 1M --contestants {contestants}"
            " --alternations 15")  # fmt: skip


def _tree(bench: Bench) -> float:
    tree = bench.all_reduce_seconds("tributary-1", MIB)
    return bench.all_reduce_seconds("tributary-fallback", MIB) / tree


_RAW_STREAM = "raw_stream/bytes:65536"
_RAW = _benchmarks(TRANSPORT, [_RAW_STREAM], 0.2)


def _fallback(bench: Bench) -> float:
    ours = bench.all_reduce_seconds("tributary-fallback", MIB)
    output = programs.run(bench.build, _RAW, CORE)
    return programs.seconds(output, _RAW_STREAM) / ours


def _planner(bench: Bench) -> float:
    output = programs.run(bench.build, [MANAGER, "--yardstick", "1024"])
    return programs.labelled(output, "yardstick") / programs.labelled(output, "grant")


CELLS = [
    _kernel("kernels/sum-float32-memory", "sum of 4 arrays of 64 MiB; the memory's own read/write mix",
            "reduce/64MiB/float32/sum/K=4", "of_machine"),
    _kernel("kernels/sum-bfloat16-cache", "sum of 4 arrays, 256 KiB in all; the memory's own read/write mix",
            "reduce/256KiB/bfloat16/sum/K=4", "of_machine"),
    _kernel("kernels/sum-float16-cache", "sum of 8 arrays, 32 KiB in all; a direct loop with Highway",
            "reduce/32KiB/float16/sum/K=8", "of_direct"),
    _kernel("kernels/to-bfloat16-cache", "conversion of 128 KiB; the memory's own read/write mix",
            "convert/128KiB/float32_to_bfloat16", "of_machine"),
    _transport("transport/tcp-stream", "frames of 64 KiB over TCP on loopback; write and read on plain sockets",
               "throughput/bytes:65536/shm:0", _RAW_STREAM),
    _transport("transport/tcp-round-trip", "a frame of 64 bytes there and back over TCP; the same on plain sockets",
               "round_trip/bytes:64/busy_poll_us:0/shm:0", "raw_round_trip/bytes:64"),
    _transport("transport/shm-stream", "frames of 1 MiB through shared memory; memcpy",
               "throughput/bytes:1048576/shm:1", "copy/bytes:1048576"),
    _transport("transport/shm-round-trip", "a frame of 64 bytes there and back through shared memory; through pipes",
               "round_trip/bytes:64/busy_poll_us:0/shm:1", "pipe_round_trip/bytes:64"),
    _transport("transport/udp-stream", "frames of 64 KiB over UDP, datagrams of 16 KiB; plain TCP sockets",
               "udp_throughput/bytes:65536/datagram:16384/lost_per_thousand:0", "raw_stream/bytes:65536"),
    _local("local/all-reduce-1M", "allreduce of 2 ranks in shared memory, 1 MiB; memcpy", MIB, "copy/bytes:1048576"),
    _local("local/all-reduce-64", "allreduce of 2 ranks in shared memory, 64 bytes; a round trip through pipes", 64,
           "pipe_round_trip/bytes:64"),
    Cell("tree/all-reduce-1M", f"allreduce of {TREE_RANKS} ranks over an aggregator, loopback; the fallback",
         _tree_by_hand("tributary-1,tributary-fallback"), _tree),
    Cell("fallback/all-reduce-1M", f"allreduce of {TREE_RANKS} ranks by the fallback, loopback; 64 KiB through plain sockets",
         f"{_tree_by_hand('tributary-fallback')}; {_by_hand(_RAW, CORE)}", _fallback),
    Cell("manager/grant-1024", "a group of 1,024 ranks is planned, stored and signed; JSON is read and written",
         "build/release/bench/manager/manager_bench --yardstick 1024", _planner),
]  # fmt: skip
