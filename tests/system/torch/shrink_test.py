"""torch.distributed.shrink_group: the ranks that stay go on after a rank was killed, in the default group or another."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import tributary.torch
from ranks import SKIPPED, finish, meet_by_files, run, without_service

TIMEOUT = timedelta(seconds=20)
SIZE = 4


def start(rank: int, size: int, options: tributary.torch.Options | None) -> None:
    dist.init_process_group(
        "tributary",
        init_method=f"file://{os.environ['RENDEZVOUS']}",
        rank=rank,
        world_size=size,
        timeout=TIMEOUT,
        pg_options=options,
    )
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    assert tensor[0] == size


def sum_of(group: dist.ProcessGroup | None, rank: int) -> float:
    tensor = torch.full((100_000,), float(1 << rank))
    dist.all_reduce(tensor, group=group)
    assert torch.all(tensor == tensor[0])
    return float(tensor[0])


def die_and_notice(rank: int, size: int, lost: int) -> None:
    """The lost rank dies; the others' next call is an error, as it is without shrink_group."""
    meet_by_files(rank, size)
    if rank == lost:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(torch.ones(1000))
    except dist.DistBackendError:
        return
    raise AssertionError("no error though a rank is lost")


def without(lost: int) -> object:
    def the_ranks_that_stay_go_on_in_the_default_group(rank: int, size: int) -> None:
        start(rank, size, tributary.torch.Options(shrink=True))
        die_and_notice(rank, size, lost)
        begin = time.monotonic()
        group = dist.shrink_group([lost])
        assert time.monotonic() - begin < TIMEOUT.total_seconds(), "the ranks that stay waited for the lost rank"
        assert dist.get_world_size() == size - 1
        assert dist.get_rank() == rank - (rank > lost)
        assert sum_of(None, rank) == (1 << size) - 1 - (1 << lost)
        assert tributary.torch.info(group)["operations"] >= 1
        parts: list[object] = [None] * (size - 1)
        dist.all_gather_object(parts, rank)
        assert parts == [other for other in range(size) if other != lost], parts
        dist.destroy_process_group()

    return the_ranks_that_stay_go_on_in_the_default_group


def a_group_shrinks_again(rank: int, size: int) -> None:
    start(rank, size, tributary.torch.Options(shrink=True, numerics="exact"))
    die_and_notice(rank, size, size - 1)
    dist.shrink_group([size - 1])
    if rank == 0:  # alive, but the others go on without it
        try:
            dist.barrier()
        except dist.DistBackendError:
            return
        raise AssertionError("no error though the other ranks have excluded this one")
    time.sleep(0.5)
    dist.shrink_group([0])
    assert (dist.get_rank(), dist.get_world_size()) == (rank - 1, size - 2)
    assert sum_of(None, rank) == sum(1 << other for other in range(1, size - 1))
    dist.destroy_process_group()


def groups_that_are_not_prepared_do_not_shrink(rank: int, size: int) -> None:
    start(rank, size, None)
    try:
        dist.shrink_group([1 - rank])
    except TypeError as error:
        assert "does not support shrinking" in str(error), error
    else:
        raise AssertionError("no error")
    assert sum_of(None, rank) == (1 << size) - 1
    dist.destroy_process_group()


if __name__ == "__main__":
    without_service()
    if not hasattr(dist, "shrink_group"):
        print("skipped: this PyTorch has no shrink_group")
        raise SystemExit(SKIPPED)
    results = [
        run([without(SIZE - 1)], SIZE, bare=True, killed_rank=SIZE - 1),
        run([without(0)], SIZE, bare=True, killed_rank=0),
        run([a_group_shrinks_again], SIZE, bare=True, killed_rank=SIZE - 1),
        run([groups_that_are_not_prepared_do_not_shrink], 2, bare=True),
    ]
    finish(results)
