"""Tests every function of torch.distributed that the backend serves, against values that this test computes.

It runs on 1 to 4 ranks, without a service.
"""

from __future__ import annotations

import warnings

import torch
import torch.distributed as dist
from ranks import Check, expect_equal, finish, run, values, without_service
from torch.distributed import ReduceOp

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
COUNTS = [0, 1, 3, 1000, 70_001]

checks: list[Check] = []


def check(function: Check) -> Check:
    checks.append(function)
    return function


def stack(size: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.stack([values(rank, count, dtype) for rank in range(size)])


def total(size: int, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return stack(size, count, dtype).to(torch.float64).sum(0).to(dtype)


@check
def all_reduce_sums_every_dtype(rank: int, size: int) -> None:
    for dtype in FLOATS + INTEGERS:
        for count in COUNTS:
            tensor = values(rank, count, dtype)
            dist.all_reduce(tensor)
            expect_equal(tensor, total(size, count, dtype), f"{dtype} x {count}")


@check
def all_reduce_knows_unsigned_16_to_64_bits(rank: int, size: int) -> None:
    for dtype in (torch.uint16, torch.uint32, torch.uint64):
        tensor = values(rank, 100, dtype)
        dist.all_reduce(tensor)
        expect_equal(
            tensor, torch.stack([values(r, 100, torch.uint8).to(torch.int64) for r in range(size)]).sum(0).to(dtype)
        )


@check
def all_reduce_knows_every_operation(rank: int, size: int) -> None:
    for dtype in (torch.float32, torch.float64, torch.int32):
        everyone = stack(size, 257, dtype)
        expected = {
            ReduceOp.MIN: everyone.amin(0),
            ReduceOp.MAX: everyone.amax(0),
            ReduceOp.PRODUCT: everyone.prod(0).to(dtype),
            ReduceOp.AVG: (everyone.sum(0).to(torch.float64) / size).trunc().to(dtype)
            if dtype == torch.int32
            else everyone.sum(0) / size,
        }
        for op, value in expected.items():
            tensor = values(rank, 257, dtype)
            dist.all_reduce(tensor, op)
            if op == ReduceOp.AVG and dtype != torch.int32:
                torch.testing.assert_close(tensor, value)
            else:
                expect_equal(tensor, value, f"{op} of {dtype}")


@check
def all_reduce_scales_first_with_premul_sum(rank: int, size: int) -> None:
    for factor in (0.5, torch.tensor([0.25])):
        tensor = values(rank, 100)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
        expect_equal(tensor, total(size, 100) * float(factor))


@check
def all_reduce_of_booleans_means_or_and_and(rank: int, size: int) -> None:
    mine = torch.tensor([True, False, rank == 0, rank != 0])
    for op, expected in (
        (ReduceOp.SUM, [True, False, True, size > 1]),
        (ReduceOp.MAX, [True, False, True, size > 1]),
        (ReduceOp.MIN, [True, False, size == 1, False]),
        (ReduceOp.PRODUCT, [True, False, size == 1, False]),
    ):
        tensor = mine.clone()
        dist.all_reduce(tensor, op)
        expect_equal(tensor, torch.tensor(expected), str(op))


@check
def all_reduce_sums_complex_numbers(rank: int, size: int) -> None:
    tensor = torch.complex(values(rank, 50), values(rank + 1, 50))
    dist.all_reduce(tensor)
    imaginary = torch.stack([values(r + 1, 50) for r in range(size)]).sum(0)
    expect_equal(tensor, torch.complex(total(size, 50), imaginary))


@check
def all_reduce_changes_strided_tensors_in_place(rank: int, size: int) -> None:
    for view in (lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[1:, 3:5]):
        base = values(rank, 30 * 40).view(30, 40)
        expected = torch.stack([values(r, 30 * 40).view(30, 40) for r in range(size)]).sum(0)
        untouched = base.clone()
        dist.all_reduce(view(base))
        expect_equal(view(base), view(expected))
        view(untouched).copy_(view(expected))
        expect_equal(base, untouched, "what lies beside the view")


@check
def all_reduce_works_on_leaves_that_need_gradients(rank: int, size: int) -> None:
    parameter = torch.nn.Parameter(values(rank, 12).view(3, 4).t().clone(memory_format=torch.preserve_format))
    dist.all_reduce(parameter.data)
    expect_equal(parameter.data, total(size, 12).view(3, 4).t())


@check
def asynchronous_calls_overlap_and_end_in_any_order_of_waits(rank: int, size: int) -> None:
    tensors = [values(rank + i, 5000 + i) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i in reversed(range(20)):
        works[i].wait()
        expect_equal(tensors[i], torch.stack([values(r + i, 5000 + i) for r in range(size)]).sum(0))
        assert works[i].is_completed()


@check
def futures_hold_the_result_and_run_callbacks(rank: int, size: int) -> None:
    tensor = values(rank, 1000)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    expect_equal(doubled.wait(), total(size, 1000) * 2)


@check
def coalesced_calls_give_each_tensor_its_result(rank: int, size: int) -> None:
    tensors = [values(rank + i, 10 * (i + 1)) for i in range(4)] + [values(rank, 9).view(3, 3).t()]
    expected = [torch.stack([values(r + i, 10 * (i + 1)) for r in range(size)]).sum(0) for i in range(4)] + [
        total(size, 9).view(3, 3).t()
    ]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor, value in zip(tensors, expected, strict=True):
        expect_equal(tensor, value)

    inputs = [values(rank, 7), values(rank, 11)]
    outputs = [torch.empty(7 * size), torch.empty(11 * size)]
    with dist._coalescing_manager():
        for output, tensor in zip(outputs, inputs, strict=True):
            dist.all_gather_into_tensor(output, tensor)
    for output, count in zip(outputs, (7, 11), strict=True):
        expect_equal(output, stack(size, count, torch.float32).flatten())

    inputs = [values(rank, 6 * size), values(rank, 2 * size)]
    outputs = [torch.empty(6), torch.empty(2)]
    with dist._coalescing_manager():
        for output, tensor in zip(outputs, inputs, strict=True):
            dist.reduce_scatter_tensor(output, tensor)
    for output, count in zip(outputs, (6, 2), strict=True):
        expect_equal(output, total(size, count * size)[rank * count : (rank + 1) * count])


@check
def broadcast_moves_every_dtype(rank: int, size: int) -> None:
    for dtype in [*FLOATS, *INTEGERS, torch.bool, torch.complex64]:
        for root in range(size):
            tensor = values(rank, 33, dtype)
            dist.broadcast(tensor, root)
            expect_equal(tensor, values(root, 33, dtype), f"{dtype} from {root}")


@check
def broadcast_leaves_the_root_of_a_strided_tensor_alone(rank: int, size: int) -> None:
    tensor = values(rank, 20).view(4, 5).t()
    dist.broadcast(tensor, size - 1)
    expect_equal(tensor, values(size - 1, 20).view(4, 5).t())


@check
def reduce_gives_the_root_the_sum_and_the_others_their_own(rank: int, size: int) -> None:
    for root in range(size):
        tensor = values(rank, 1001)
        dist.reduce(tensor, root)
        expect_equal(tensor, total(size, 1001) if rank == root else values(rank, 1001))


@check
def all_gather_fills_lists_of_equal_and_of_unequal_tensors(rank: int, size: int) -> None:
    for counts in ([100] * size, [10 * (r + 1) for r in range(size)], [0] * size):
        outputs = [torch.empty(count) for count in counts]
        dist.all_gather(outputs, values(rank, counts[rank]))
        for source, output in enumerate(outputs):
            expect_equal(output, values(source, counts[source]))
    outputs = [torch.empty(5, 4).t() for _ in range(size)]
    dist.all_gather(outputs, values(rank, 20).view(4, 5))
    for source, output in enumerate(outputs):
        expect_equal(output, values(source, 20).view(4, 5), "into strided tensors")


@check
def all_gather_into_tensor_works_in_place_too(rank: int, size: int) -> None:
    output = torch.empty(size, 50)
    dist.all_gather_into_tensor(output, values(rank, 50))
    expect_equal(output, stack(size, 50, torch.float32))
    output = torch.zeros(size * 50)
    output[rank * 50 : (rank + 1) * 50] = values(rank, 50)
    dist.all_gather_into_tensor(output, output[rank * 50 : (rank + 1) * 50])
    expect_equal(output.view(size, 50), stack(size, 50, torch.float32))


@check
def all_gather_coalesced_fills_lists_by_rank(rank: int, size: int) -> None:
    outputs = [[torch.empty(4), torch.empty(6)] for _ in range(size)]
    dist.all_gather_coalesced(outputs, [values(rank, 4), values(rank, 6)])
    for source in range(size):
        expect_equal(outputs[source][0], values(source, 4))
        expect_equal(outputs[source][1], values(source, 6))


@check
def reduce_scatter_takes_lists_of_equal_and_of_unequal_tensors(rank: int, size: int) -> None:
    for counts in ([64] * size, [r + 2 for r in range(size)]):
        output = torch.empty(counts[rank])
        dist.reduce_scatter(output, [values(rank + to, counts[to]) for to in range(size)])
        expect_equal(output, torch.stack([values(r + rank, counts[rank]) for r in range(size)]).sum(0))


@check
def reduce_scatter_tensor_averages(rank: int, size: int) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        output = torch.empty(40, dtype=dtype)
        dist.reduce_scatter_tensor(output, values(rank, 40 * size, dtype), op=ReduceOp.AVG)
        expected = stack(size, 40 * size, torch.float32).sum(0)[rank * 40 : (rank + 1) * 40] / size
        torch.testing.assert_close(output.float(), expected, rtol=1e-2 if dtype == torch.bfloat16 else 1e-6, atol=1e-6)


@check
def all_to_all_exchanges_equal_and_unequal_parts(rank: int, size: int) -> None:
    output = torch.empty(size * 8)
    dist.all_to_all_single(output, torch.cat([values(rank * size + to, 8) for to in range(size)]))
    expect_equal(output, torch.cat([values(source * size + rank, 8) for source in range(size)]), "equal")

    def part(source: int, to: int) -> torch.Tensor:
        return values(source * size + to, ((source + 2 * to) % 3) * 2).view(-1, 2)  # some parts are empty

    sends = [part(rank, to) for to in range(size)]
    expected = [part(source, rank) for source in range(size)]
    output = torch.empty_like(torch.cat(expected))
    dist.all_to_all_single(output, torch.cat(sends), [len(p) for p in expected], [len(p) for p in sends])
    expect_equal(output, torch.cat(expected), "with splits")

    outputs = [torch.empty_like(tensor) for tensor in expected]
    dist.all_to_all(outputs, sends)
    for actual, value in zip(outputs, expected, strict=True):
        expect_equal(actual, value, "lists")


@check
def gather_and_scatter_serve_every_root(rank: int, size: int) -> None:
    for root in range(size):
        outputs = [torch.empty(30) for _ in range(size)] if rank == root else None
        dist.gather(values(rank, 30), outputs, dst=root)
        for source, output in enumerate(outputs or []):
            expect_equal(output, values(source, 30))
        output = torch.empty(30)
        dist.scatter(output, [values(to + root, 30) for to in range(size)] if rank == root else None, src=root)
        expect_equal(output, values(rank + root, 30))


@check
def messages_between_two_ranks_keep_their_order(rank: int, size: int) -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    if size == 1:
        return
    inputs = [torch.empty(100 + i, dtype=torch.int16) for i in range(5)]
    receives = [dist.irecv(tensor, left) for tensor in inputs]
    sends = [dist.isend(values(rank + i, 100 + i, torch.int16), right) for i in range(5)]
    for i, work in enumerate(receives):
        work.wait()
        expect_equal(inputs[i], values(left + i, 100 + i, torch.int16))
    for work in sends:
        work.wait()


@check
def a_message_does_not_hold_up_a_collective(rank: int, size: int) -> None:
    if size == 1:
        return
    tensor, received = values(rank, 10), torch.empty(10)
    pending = dist.irecv(received, 1) if rank == 0 else None
    dist.all_reduce(tensor)
    expect_equal(tensor, total(size, 10))
    if rank == 1:
        dist.send(values(7, 10), 0)
    if pending:
        pending.wait()
        expect_equal(received, values(7, 10))


@check
def batches_of_messages_work(rank: int, size: int) -> None:
    if size == 1:
        return
    received = torch.empty(64)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, values(rank, 64), (rank + 1) % size),
            dist.P2POp(dist.irecv, received, (rank - 1) % size),
        ]
    )
    for work in works:
        work.wait()
    expect_equal(received, values((rank - 1) % size, 64))


@check
def messages_are_received_in_any_order_of_tags(rank: int, size: int) -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    if size == 1:
        return
    tags = [0, 1, 5, 2**31 - 1]
    sends = [dist.isend(values(rank + i, 100 + i), right, tag=tag) for i, tag in enumerate(tags)]
    for i, tag in reversed(list(enumerate(tags))):
        received = torch.empty(100 + i)
        assert dist.recv(received, left, tag=tag) == left
        expect_equal(received, values(left + i, 100 + i), f"tag {tag}")
    for work in sends:
        work.wait()


@check
def a_receive_that_was_called_later_may_end_first(rank: int, size: int) -> None:
    if size == 1 or rank > 1:
        return
    first, second, answer = torch.empty(9), torch.empty(9), torch.zeros(1)
    if rank == 1:
        dist.send(values(2, 9), 0, tag=2)
        dist.recv(answer, 0, tag=3)  # rank 0 has received the second message by now
        dist.send(values(1, 9), 0, tag=1)
        return
    works = [dist.irecv(first, 1, tag=1), dist.irecv(second, 1, tag=2)]
    works[1].wait()
    expect_equal(second, values(2, 9))
    assert not works[0].is_completed()
    dist.send(answer, 1, tag=3)
    assert works[0].get_future().wait() is not None
    expect_equal(first, values(1, 9))
    assert works[0]._source_rank() == 1


@check
def many_messages_with_tags_are_under_way_at_once(rank: int, size: int) -> None:
    if size == 1:
        return
    right, left = (rank + 1) % size, (rank - 1) % size
    inputs = [torch.empty(3) for _ in range(500)]
    works = [dist.irecv(tensor, left, tag=1 + tag) for tag, tensor in enumerate(inputs)]
    works += [dist.isend(values(rank + tag, 3), right, tag=1 + tag) for tag in reversed(range(len(inputs)))]
    for work in works:
        work.wait()
    for tag, tensor in enumerate(inputs):
        expect_equal(tensor, values(left + tag, 3), f"tag {1 + tag}")


@check
def messages_are_received_from_any_rank(rank: int, size: int) -> None:
    if size == 1:
        return
    for tag in (0, 4):
        sends = [dist.isend(values(rank, 30), peer, tag=tag) for peer in range(size) if peer != rank for _ in range(2)]
        sources = []
        for _ in range(size - 1):
            received = torch.empty(30)
            sources.append(dist.recv(received, tag=tag))
            expect_equal(received, values(sources[-1], 30))
            work = dist.irecv(received, tag=tag)
            work.wait()
            sources.append(work._source_rank())
            expect_equal(received, values(sources[-1], 30))
        assert sorted(sources) == sorted(2 * [peer for peer in range(size) if peer != rank]), sources
        for work in sends:
            work.wait()


@check
def the_source_of_a_message_is_a_rank_of_the_whole_job(rank: int, size: int) -> None:
    if size < 3:
        return
    group = dist.new_group([1, 2])
    received = torch.empty(5)
    if rank == 1:
        dist.send(values(1, 5), 2, group)
    elif rank == 2:
        assert dist.recv(received, group=group) == 1
        expect_equal(received, values(1, 5))


@check
def batches_of_messages_have_tags(rank: int, size: int) -> None:
    if size == 1:
        return
    right, left = (rank + 1) % size, (rank - 1) % size
    inputs = [torch.empty(64) for _ in range(4)]
    operations = [dist.P2POp(dist.irecv, inputs[tag], left, tag=tag) for tag in (3, 1, 2, 0)]
    operations += [dist.P2POp(dist.isend, values(rank + tag, 64), right, tag=tag) for tag in range(4)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    for tag, tensor in enumerate(inputs):
        expect_equal(tensor, values(left + tag, 64), f"tag {tag}")


@check
def barriers_return(rank: int, size: int) -> None:
    for _ in range(3):
        dist.barrier()
    assert dist.barrier(async_op=True).wait()


@check
def python_objects_travel(rank: int, size: int) -> None:
    gathered: list[object] = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    assert gathered == [{"rank": r, "text": "x" * r} for r in range(size)]
    box = [f"from {rank}", rank]
    dist.broadcast_object_list(box, src=size - 1)
    assert box == [f"from {size - 1}", size - 1]


@check
def subgroups_are_independent(rank: int, size: int) -> None:
    everyone, evens = dist.new_group(), dist.new_group(list(range(0, size, 2)))
    if rank % 2 == 0:
        tensor = values(rank, 100)
        dist.all_reduce(tensor, group=evens)
        expect_equal(tensor, torch.stack([values(r, 100) for r in range(0, size, 2)]).sum(0))
    tensor = values(rank, 100)
    dist.all_reduce(tensor, group=everyone)
    expect_equal(tensor, total(size, 100))
    dist.destroy_process_group(everyone)
    if rank % 2 == 0:
        dist.destroy_process_group(evens)


if __name__ == "__main__":
    without_service()
    warnings.simplefilter("ignore", FutureWarning)  # all_gather_coalesced is old, but still there
    finish(run(checks, size) for size in (1, 2, 3, 4))
