"""Counts of NaN, infinities and subnormal numbers: work.statistics(), and the error that names the rank of a NaN."""

from __future__ import annotations

import math
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import tributary.torch
from ranks import Check, finish, meet_by_files, run, without_service


def group(rank: int, size: int, **options: str) -> None:
    dist.init_process_group(
        "tributary",
        init_method=f"file://{os.environ['RENDEZVOUS']}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=60),
        pg_options=tributary.torch.Options(**options),
    )


def statistics_of(work: dist.Work) -> tributary.torch.Statistics | None:
    work.wait()
    return work.statistics()  # type: ignore[attr-defined]


def counted(elements: int, nans: int = 0, infinities: int = 0, subnormals: int = 0) -> tributary.torch.Values:
    return {"elements": elements, "nans": nans, "infinities": infinities, "subnormals": subnormals}


def a_work_has_the_counts_of_its_tensors(rank: int, size: int) -> None:
    group(rank, size, check_values="count")
    tensor = torch.ones(1000)
    tensor[rank] = math.nan
    tensor[10] = math.inf
    tensor[20] = 1e-40
    found = statistics_of(dist.all_reduce(tensor, async_op=True))
    assert found == {
        "input": counted(1000, nans=1, infinities=1, subnormals=1),
        "result": counted(1000, nans=size, infinities=1, subnormals=1),
        "relative_error_bound": None,
    }, found
    found = statistics_of(dist.all_reduce(torch.tensor([1, 2]), async_op=True))
    assert found == {"input": counted(2), "result": counted(2), "relative_error_bound": 0.0}, found
    dist.destroy_process_group()


def calls_of_several_tensors_count_them_together(rank: int, size: int) -> None:
    group(rank, size, check_values="count", numerics="exact")
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(torch.full((10,), math.inf))
        dist.all_reduce(torch.ones(5))
    manager.wait()
    (work,) = manager.works
    found = work.statistics()
    assert found == {
        "input": counted(15, infinities=10),
        "result": counted(15, infinities=10),
        "relative_error_bound": 2.0**-24,
    }, found
    dist.destroy_process_group()


def without_the_option_a_work_counts_nothing(rank: int, size: int) -> None:
    group(rank, size)
    assert statistics_of(dist.all_reduce(torch.ones(3), async_op=True)) is None
    dist.destroy_process_group()


def the_counts_of_a_work_that_goes_on_are_an_error(rank: int, size: int) -> None:
    group(rank, size, check_values="count")
    if rank == 0:
        work = dist.all_reduce(torch.ones(3), async_op=True)
        try:
            work.statistics()
        except RuntimeError as error:
            assert "has not ended" in str(error)
        else:
            raise AssertionError("no error")
        dist.send(torch.ones(1), 1)
        work.wait()
    else:
        dist.recv(torch.ones(1), 0)
        dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()


def a_nan_is_an_error_on_every_rank_that_names_its_rank(rank: int, size: int) -> None:
    group(rank, size, check_values="nan-fails")
    dist.all_reduce(torch.ones(100))
    meet_by_files(rank, size)  # the NaN also ends calls that other ranks are still about to end
    tensor = torch.ones(5000, dtype=torch.bfloat16)
    if rank == 1:
        tensor[77] = math.nan
    try:
        dist.all_reduce(tensor)
    except dist.DistBackendError as error:
        text = str(error)
        assert "the input of rank 1 to all_reduce of 5000 bfloat16 (sum) has 1 NaN, the first at element 77" in text, text
    else:
        raise AssertionError("no error")


CHECKS: list[Check] = [
    a_work_has_the_counts_of_its_tensors,
    calls_of_several_tensors_count_them_together,
    without_the_option_a_work_counts_nothing,
    a_nan_is_an_error_on_every_rank_that_names_its_rank,
]

if __name__ == "__main__":
    without_service()
    results = [run([check], 3, bare=True) for check in CHECKS]
    results.append(run([the_counts_of_a_work_that_goes_on_are_an_error], 2, bare=True))
    finish(results)
