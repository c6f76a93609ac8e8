"""Errors become Python exceptions, whose texts say which call failed, where, and what to do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import tributary
import tributary.torch
from ranks import Check, finish, meet_by_files, run, values, without_service

TIMEOUT = timedelta(seconds=4)
PATIENCE = 30.0  # a crowded machine adds to the time-out


def group(rank: int, size: int) -> None:
    dist.init_process_group(
        "tributary", init_method=f"file://{os.environ['RENDEZVOUS']}", rank=rank, world_size=size, timeout=TIMEOUT
    )


def expect_error(kind: type[BaseException], *words: str, call: object) -> str:
    try:
        call()  # type: ignore[operator]
    except kind as error:
        text = str(error)
        assert all(word in text for word in words), f"{text!r} lacks one of {words}"
        return text
    raise AssertionError(f"no {kind.__name__}")


def wrong_arguments_are_refused_and_leave_the_group_well(rank: int, size: int) -> None:
    group(rank, size)
    refused = {
        "float8_e5m2fnuz": lambda: dist.all_reduce(torch.zeros(3, dtype=torch.float8_e5m2fnuz)),
        "bitwise": lambda: dist.all_reduce(torch.zeros(3), dist.ReduceOp.BAND),
        "average": lambda: dist.all_reduce(torch.zeros(3, dtype=torch.bool), dist.ReduceOp.AVG),
        "only be a SUM": lambda: dist.all_reduce(torch.eye(3).to_sparse(), dist.ReduceOp.MAX),
        "negative": lambda: dist.send(torch.zeros(1), 1 - rank, tag=-1),
        "must not be": lambda: dist.recv(torch.zeros(1), tag=-5),
        "has 5 elements": lambda: dist.all_gather_into_tensor(torch.zeros(5), torch.zeros(3)),
        "input has 3 elements": lambda: dist.reduce_scatter_tensor(torch.zeros(5), torch.zeros(3)),
        "splits": lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [1, 1], [2, 2]),
        "one type": lambda: dist.all_gather_into_tensor(torch.zeros(6), torch.zeros(3, dtype=torch.int32)),
    }
    for words, call in refused.items():
        expect_error(RuntimeError, words, call=call)
    tensor = values(rank, 5)
    dist.all_reduce(tensor)
    assert torch.equal(tensor, values(0, 5) + values(1, 5))
    dist.destroy_process_group()


def ranks_that_ask_for_different_things_all_hear_of_it(rank: int, size: int) -> None:
    group(rank, size)
    start = time.monotonic()
    text = expect_error(dist.DistBackendError, "rank", call=lambda: dist.all_reduce(torch.zeros(10 + rank)))
    assert time.monotonic() - start < PATIENCE
    assert "all_reduce" in text


def a_killed_rank_is_an_error_on_the_others(rank: int, size: int) -> None:
    group(rank, size)
    dist.barrier()
    meet_by_files(rank, size)
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    expect_error(dist.DistBackendError, "tributary", call=lambda: dist.all_reduce(torch.zeros(1000)))
    assert time.monotonic() - start < PATIENCE


def a_killed_rank_ends_receives_from_any_rank(rank: int, size: int) -> None:
    group(rank, size)
    works = [dist.irecv(torch.empty(3), tag=tag) for tag in (0, 7)]
    works.append(dist.isend(torch.zeros(3), (rank + 1) % size, tag=8))  # no rank receives this
    meet_by_files(rank, size)
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    for work in works:
        expect_error(dist.DistBackendError, f"rank {size - 1}", call=work.wait)
    assert time.monotonic() - start < PATIENCE


def a_hung_rank_is_an_error_on_the_others_within_the_time_out(rank: int, size: int) -> None:
    group(rank, size)
    dist.barrier()
    if rank == size - 1:
        time.sleep(2 * TIMEOUT.total_seconds())  # this call hangs
        os._exit(0)
    start = time.monotonic()
    text = expect_error(dist.DistBackendError, "tributary", call=lambda: dist.all_reduce(torch.zeros(1000)))
    assert time.monotonic() - start < PATIENCE
    assert f"rank {size - 1}" in text or f"rank(s) {size - 1}" in text, text


def wait_can_have_a_time_out_of_its_own_and_the_call_goes_on(rank: int, size: int) -> None:
    group(rank, size)
    tensor = values(rank, 10)
    if rank == 0:
        work = dist.all_reduce(tensor, async_op=True)
        expect_error(dist.DistBackendError, "100 ms", call=lambda: work.wait(timedelta(milliseconds=100)))
        dist.send(torch.zeros(1), 1)  # only now may the other rank make its call
        work.wait()
    else:
        dist.recv(torch.zeros(1), 0)
        dist.all_reduce(tensor)
    assert torch.equal(tensor, values(0, 10) + values(1, 10))
    dist.destroy_process_group()


def errors_reach_futures(rank: int, size: int) -> None:
    group(rank, size)
    future = dist.all_reduce(torch.zeros(10 + rank), async_op=True).get_future()
    expect_error(RuntimeError, "rank", call=future.wait)


def a_destroyed_group_says_so(rank: int, size: int) -> None:
    group(rank, size)
    dist.barrier()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    world = dist.group.WORLD
    dist.destroy_process_group()
    expect_error(dist.DistBackendError, "shut down", call=lambda: tributary.torch._C.info(backend))
    work = world.allreduce([torch.zeros(3)])
    expect_error(dist.DistBackendError, "shut down", call=work.wait)


def destroying_a_group_lets_its_callbacks_run_first(rank: int, size: int) -> None:
    group(rank, size)
    seen: list[float] = []
    for _ in range(100):
        future = dist.all_reduce(values(rank, 20_000), async_op=True).get_future()
        future.then(lambda done: seen.append(done.value()[0].sum().item()))
    dist.destroy_process_group()
    assert len(seen) == 100


def aborting_a_group_ends_its_calls_on_every_rank(rank: int, size: int) -> None:
    group(rank, size)
    dist.barrier()
    meet_by_files(rank, size)
    if rank == 0:
        work = dist.all_reduce(torch.zeros(10), async_op=True)
        dist.distributed_c10d._abort_process_group()
        expect_error(dist.DistBackendError, call=work.wait)
    else:
        start = time.monotonic()
        expect_error(dist.DistBackendError, call=lambda: [dist.barrier() for _ in range(2)])
        assert time.monotonic() - start < PATIENCE


def info_refuses_groups_of_other_backends(rank: int, size: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{os.environ['RENDEZVOUS']}", rank=rank, world_size=size)
    expect_error(ValueError, "does not use", call=tributary.info)
    dist.barrier()  # gloo fails to connect if the other rank ends meanwhile
    dist.destroy_process_group()


def an_uncaught_exception_is_heard_of_at_once() -> tuple[int, int]:
    """Uses real processes, because this is about the end of the interpreter."""
    script = """
import os, sys, torch, torch.distributed as dist, time, tributary.torch
from datetime import timedelta
rank = int(sys.argv[1])
dist.init_process_group("tributary", init_method="file://" + sys.argv[2], rank=rank, world_size=2,
                        timeout=timedelta(seconds=300))
if rank == 0:
    dist.barrier()
    raise SystemError("a bug in the training script")
try:
    dist.barrier()  # rank 0's barrier may end first
    dist.all_reduce(torch.zeros(10))
except dist.DistBackendError as error:
    print("heard:", error)
    os._exit(0)
"""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(script)
        ranks = [
            subprocess.Popen(
                [sys.executable, str(path), str(rank), f"{folder}/rendezvous"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(2)
        ]
        try:
            heard = "heard:" in ranks[1].communicate(timeout=60)[0]
            failed = ranks[0].wait(timeout=60) == 1
        except subprocess.TimeoutExpired:
            heard = failed = False
        for process in ranks:
            process.kill()
    good = heard and failed
    print("ok     " if good else "FAILED ", "the other rank learns at once of an uncaught exception")
    return int(good), int(not good)


CHECKS: list[tuple[Check, int]] = [
    (wrong_arguments_are_refused_and_leave_the_group_well, 2),
    (ranks_that_ask_for_different_things_all_hear_of_it, 2),
    (a_hung_rank_is_an_error_on_the_others_within_the_time_out, 3),
    (wait_can_have_a_time_out_of_its_own_and_the_call_goes_on, 2),
    (errors_reach_futures, 2),
    (a_destroyed_group_says_so, 2),
    (destroying_a_group_lets_its_callbacks_run_first, 2),
    (aborting_a_group_ends_its_calls_on_every_rank, 2),
    (info_refuses_groups_of_other_backends, 2),
]

if __name__ == "__main__":
    without_service()
    results = [run([function], size, bare=True) for function, size in CHECKS]
    results.append(run([a_killed_rank_is_an_error_on_the_others], 3, bare=True, killed_rank=2))
    results.append(run([a_killed_rank_ends_receives_from_any_rank], 3, bare=True, killed_rank=2))
    results.append(an_uncaught_exception_is_heard_of_at_once())
    finish(results)
