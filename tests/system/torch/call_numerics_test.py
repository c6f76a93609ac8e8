"""Numerics of single calls: `with tributary.torch.numerics(...)` counts for the calls that its thread makes inside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
import tributary.torch
from ranks import Check, finish, run, without_service
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tributary.torch import numerics

PER_RANK = 12  # elements: a multiple of 3 and of 4, so that each rank's part has every order of the values
ENGINE_DEPTH = 70  # the autograd engine gives passes inside of more than 60 others to another thread

checks: list[Check] = []


def check(function: Check) -> Check:
    checks.append(function)
    return function


def in_turn(values: list[float], rank: int, size: int) -> torch.Tensor:
    """Returns elements for which the ranks have these values in turn, so that each order of additions goes wrong once."""
    return torch.tensor([values[(rank + i) % size] for i in range(PER_RANK * size)])


def summands(rank: int, size: int) -> torch.Tensor:
    """Their sum is 1, and 0 for some elements if partial sums are rounded."""
    return in_turn([1e30, 1.0, -1e30, 0.0], rank, size)


def factors(rank: int, size: int) -> torch.Tensor:
    """Their product is finite, and infinite for some elements if partial products are float32."""
    return in_turn([1e30, 1e30, 1e-30, 1.0], rank, size)


def is_exact(result: torch.Tensor) -> bool:
    return bool(result.eq(1).all())


def sums(rank: int, size: int) -> Iterator[tuple[str, Callable[[], torch.Tensor]]]:
    """Yields each call that adds, and a function that makes this call and returns its result on this rank."""
    mine, parts = summands(rank, size), list(summands(rank, size).split(PER_RANK))

    def all_reduce() -> torch.Tensor:
        result = mine.clone()
        dist.all_reduce(result)
        return result

    def average() -> torch.Tensor:
        result = mine.clone()
        dist.all_reduce(result, dist.ReduceOp.AVG)
        return result.mul(size).round()  # a third times three is one again

    def all_reduce_coalesced() -> torch.Tensor:
        results = [mine.clone(), mine.clone()]
        with dist._coalescing_manager():
            for result in results:
                dist.all_reduce(result)
        return torch.cat(results)

    def reduce() -> torch.Tensor:
        result = mine.clone()
        dist.reduce(result, 1)
        return result if rank == 1 else torch.ones(0)

    def reduce_scatter_tensor() -> torch.Tensor:
        result = torch.empty(PER_RANK)
        dist.reduce_scatter_tensor(result, mine)
        return result

    def reduce_scatter_coalesced() -> torch.Tensor:
        result = torch.empty(PER_RANK)
        with dist._coalescing_manager():
            dist.reduce_scatter_tensor(result, mine)
        return result

    def reduce_scatter() -> torch.Tensor:
        result = torch.empty(PER_RANK)
        dist.reduce_scatter(result, parts)
        return result

    def reduce_scatter_of_unequal_parts() -> torch.Tensor:
        unequal = [torch.cat([parts[0], parts[1]]), *parts[1:]]
        result = torch.empty_like(unequal[rank])
        dist.reduce_scatter(result, unequal)
        return result

    for call in (
        all_reduce,
        average,
        all_reduce_coalesced,
        reduce,
        reduce_scatter_tensor,
        reduce_scatter_coalesced,
        reduce_scatter,
        reduce_scatter_of_unequal_parts,
    ):
        yield call.__name__, call


def sum_of_summands(rank: int, size: int, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    result = summands(rank, size)
    dist.all_reduce(result, group=group)
    return result


@check
def every_call_inside_adds_exactly(rank: int, size: int) -> None:
    for name, call in sums(rank, size):
        with numerics("exact"):
            assert is_exact(call()), f"{name} is not exact"
        result = call()
        assert result.numel() == 0 or not is_exact(result), f"{name} is exact without its block: the test shows nothing"


@check
def a_product_inside_is_rounded_once(rank: int, size: int) -> None:
    def product() -> torch.Tensor:
        result = factors(rank, size)
        dist.all_reduce(result, dist.ReduceOp.PRODUCT)
        return result

    with numerics("exact"):
        assert product().isfinite().all()
    assert not product().isfinite().all()


@check
def a_call_counts_when_it_is_made(rank: int, size: int) -> None:
    first, second = summands(rank, size), summands(rank, size)
    with numerics("exact"):
        exact = dist.all_reduce(first, async_op=True)
    fast = dist.all_reduce(second, async_op=True)
    with numerics("exact"):
        fast.wait()
    exact.wait()
    assert is_exact(first)
    assert not is_exact(second)


@check
def the_inner_block_counts_and_ends_with_its_exception(rank: int, size: int) -> None:
    with numerics("exact"):
        with numerics("fast"):
            assert not is_exact(sum_of_summands(rank, size))
        assert is_exact(sum_of_summands(rank, size))
        try:
            with numerics("fast"), numerics("wide"):
                assert is_exact(sum_of_summands(rank, size))
                raise LookupError
        except LookupError:
            pass
        assert is_exact(sum_of_summands(rank, size))
    assert not is_exact(sum_of_summands(rank, size))


@check
def a_function_may_have_numerics(rank: int, size: int) -> None:
    decorated = numerics("exact")(sum_of_summands)
    for _ in range(2):
        assert is_exact(decorated(rank, size))
    assert not is_exact(sum_of_summands(rank, size))


@check
def a_block_counts_only_for_its_thread(rank: int, size: int) -> None:
    results: list[torch.Tensor] = []

    def other_thread() -> None:
        results.append(sum_of_summands(rank, size))
        with numerics("exact"):
            results.append(sum_of_summands(rank, size))

    with numerics("exact"):
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
    assert [is_exact(result) for result in results] == [False, True]
    assert not is_exact(sum_of_summands(rank, size))


class _InBackward(torch.autograd.Function):
    """Calls `action` in a backward pass that is inside of `depth` others."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, depth: int, action: Callable[[], None]) -> torch.Tensor:
        ctx.depth, ctx.action = depth, action
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        if ctx.depth == 0:
            ctx.action()
        else:
            with torch.enable_grad():
                inner = torch.ones(1, requires_grad=True)
                _InBackward.apply(inner, ctx.depth - 1, ctx.action).backward()
        return grads[0], None, None


@check
def a_block_counts_for_the_threads_of_a_backward_pass(rank: int, size: int) -> None:
    threads: list[int] = []
    results: list[torch.Tensor] = []

    def add() -> None:
        threads.append(threading.get_ident())
        results.append(sum_of_summands(rank, size))

    for mode in ("exact", "fast"):
        with numerics(mode):
            _InBackward.apply(torch.ones(1, requires_grad=True), ENGINE_DEPTH, add).backward()
    assert threading.get_ident() not in threads, "the pass ran on the thread of the block: the test shows nothing"
    assert [is_exact(result) for result in results] == [True, False]


@check
def gradients_of_ddp_are_exact_inside(rank: int, size: int) -> None:
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(PER_RANK * size))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.weight * x).sum()

    net = DistributedDataParallel(Linear())
    for mode in ("exact", "fast", "exact"):
        net.zero_grad()
        with numerics(mode):
            net(summands(rank, size)).backward()
        assert net.module.weight.grad.eq(torch.tensor(1.0) / size).all() == (mode == "exact"), mode


@check
def the_block_counts_in_place_of_the_group(rank: int, size: int) -> None:
    group = dist.new_group(pg_options=tributary.torch.Options(numerics="exact", check_values="count"))

    def bound() -> float | None:
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        work.wait()
        return work.statistics()["relative_error_bound"]

    assert is_exact(sum_of_summands(rank, size, group))
    assert bound() == 2.0**-24
    with numerics("fast"):
        assert not is_exact(sum_of_summands(rank, size, group))
        assert bound() is None
    dist.destroy_process_group(group)


@check
def unknown_numerics_are_refused(rank: int, size: int) -> None:
    for unknown in ("", "Exact", None):
        try:
            numerics(unknown)  # type: ignore[arg-type]
        except ValueError as error:
            assert '"fast", "wide" and "exact"' in str(error), error
        else:
            raise AssertionError("no error")


if __name__ == "__main__":
    without_service()
    finish(run(checks, size) for size in (3, 4))
