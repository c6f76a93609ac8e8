"""Runs checks on the ranks of a group: one forked process per rank, all checks of a group size over one process group.

A check is a function of (rank, size). The first check that fails ends its group, because the ranks of the group no
longer make the same calls.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

SKIPPED = 77

try:
    import torch
    import torch.distributed as dist
    import tributary.torch  # noqa: F401
except ModuleNotFoundError as missing:
    print(f"skipped: {missing}; scripts/demo installs PyTorch and the plugin in build/venv")
    sys.exit(SKIPPED)

Check = Callable[[int, int], None]
# Tensors of the checks lie on this device: scripts/gpu-check sets cuda:0. No parent of the ranks may touch it, because
# CUDA does not survive a fork.
DEVICE = torch.device(os.environ.get("TRIBUTARY_TEST_DEVICE", "cpu"))
GROUP_TIMEOUT = timedelta(seconds=60)
JOIN_SECONDS = 240


def without_service() -> None:
    """Sets the environment of a host without a Tributary service: all operations run between the ranks.

    TRIBUTARY_TEST_SERVICE keeps the environment as it is: scripts/gpu-check runs the tests with a service, too.
    """
    if "TRIBUTARY_TEST_SERVICE" in os.environ:
        return
    # CTest or the caller sets these for the test.
    kept = {"TRIBUTARY_TRANSPORT", "TRIBUTARY_LOCAL", "TRIBUTARY_TEST_PACKET_FAULTS", "TRIBUTARY_TEST_DEVICE"}
    for name in [name for name in os.environ if name.startswith("TRIBUTARY_") and name not in kept]:
        del os.environ[name]


def meet_by_files(rank: int, size: int) -> None:
    """Returns when every rank of a bare run has called it. The end of a rank cannot break this barrier.

    dist.barrier() may have ended on one rank and still be under way on another.
    """
    place = os.environ["RENDEZVOUS"]
    Path(f"{place}.passed.{rank}").touch()
    deadline = time.monotonic() + GROUP_TIMEOUT.total_seconds()
    while not all(Path(f"{place}.passed.{other}").exists() for other in range(size)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"rank {rank}: not every rank came")
        time.sleep(0.005)


def _report(pipe: Connection, checks: Iterable[Check], rank: int, size: int) -> None:
    name = "the start of the process group"
    try:
        torch.set_num_threads(1)
        torch.set_default_device(DEVICE)
        for check in checks:
            name = check.__name__
            start = time.monotonic()
            check(rank, size)
            pipe.send((name, None, time.monotonic() - start))
    except BaseException:
        pipe.send((name, traceback.format_exc(), 0.0))
        sys.exit(1)


def _rank_main(pipe: Connection, checks: list[Check], rank: int, size: int, rendezvous: str) -> None:
    dist.init_process_group(
        "tributary", init_method=f"file://{rendezvous}", rank=rank, world_size=size, timeout=GROUP_TIMEOUT
    )
    _report(pipe, checks, rank, size)
    dist.destroy_process_group()


def _bare_main(pipe: Connection, checks: list[Check], rank: int, size: int, rendezvous: str) -> None:
    os.environ["RENDEZVOUS"] = rendezvous
    _report(pipe, checks, rank, size)


def _collect(
    process: BaseProcess,
    pipe: Connection,
    rank: int,
    killed_rank: int | None,
    done: dict[str, float],
    failed: dict[str, str],
) -> None:
    process.join(JOIN_SECONDS)
    if process.is_alive():
        process.kill()
        failed["a hang"] = f"rank {rank} did not end within {JOIN_SECONDS} s"
    while pipe.poll():
        try:
            name, error, seconds = pipe.recv()
        except EOFError:
            break
        if error is None:
            done[name] = max(done.get(name, 0.0), seconds)
        else:
            failed.setdefault(name, f"on rank {rank}:\n{error}")
    if process.exitcode and not failed and rank != killed_rank:
        failed["the end of the process"] = f"rank {rank} ended with {process.exitcode}"


def run(checks: list[Check], size: int, *, bare: bool = False, killed_rank: int | None = None) -> tuple[int, int]:
    """Returns (passed, failed). With `bare` the checks make their own process group, over os.environ["RENDEZVOUS"].

    Only `killed_rank` may die.
    """
    context = get_context("fork")
    done: dict[str, float] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = str(Path(folder, "rendezvous"))
        ranks = []
        for rank in range(size):
            receive, send = context.Pipe(duplex=False)
            process = context.Process(
                target=_bare_main if bare else _rank_main, args=(send, checks, rank, size, rendezvous)
            )
            process.start()
            send.close()
            ranks.append((process, receive))
        for rank, (process, pipe) in enumerate(ranks):
            _collect(process, pipe, rank, killed_rank, done, failed)
    for name, seconds in done.items():
        if name not in failed:
            print(f"ok      {name} on {size} ranks ({seconds:.2f} s)")
    for name, text in failed.items():
        print(f"FAILED  {name} on {size} ranks, {text}")
    sys.stdout.flush()
    return len([name for name in done if name not in failed]), len(failed)


def finish(results: Iterable[tuple[int, int]]) -> None:
    """Prints the sum of the results, and exits with their status."""
    outcomes = list(results)
    passed, failed = sum(p for p, _ in outcomes), sum(f for _, f in outcomes)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def values(rank: int, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Returns numbers that differ between elements and between ranks, small enough for exact sums in every dtype."""
    numbers = (torch.arange(count) * 3 + rank * 5) % 13 - (
        0 if dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else 6
    )
    return numbers.to(dtype)


def expect_equal(actual: torch.Tensor, expected: torch.Tensor, what: str = "") -> None:
    """Checks that two tensors have the same bits, shape and type."""
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype} instead of {expected.dtype}"
    assert torch.equal(actual, expected), f"{what}: {actual.flatten()[:8]} instead of {expected.flatten()[:8]}"
