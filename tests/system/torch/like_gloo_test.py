"""Calls to which gloo and tributary give the same results and errors. Each call runs on both, in one process."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
import torch.distributed as dist
from ranks import Check, finish, run, without_service

Group = dist.ProcessGroup
checks: list[Check] = []


def check(function: Check) -> Check:
    checks.append(function)
    return function


def both(rank: int, size: int) -> tuple[Group, Group]:
    """Returns gloo's group and tributary's group."""
    if not dist.is_initialized():
        dist.init_process_group(
            "gloo", init_method=f"file://{os.environ['RENDEZVOUS']}", rank=rank, world_size=size
        )
    return dist.group.WORLD, dist.new_group(list(range(size)), backend="tributary")


def same(what: str, ours: object, theirs: object) -> None:
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        assert ours.is_sparse == theirs.is_sparse, what
        a, b = (t.to_dense() if t.is_sparse else t for t in (ours, theirs))
        assert a.dtype == b.dtype and torch.equal(a, b), f"{what}: {a.flatten()[:8]} instead of {b.flatten()[:8]}"
    elif isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs, strict=True):
            same(what, one, other)
    else:
        assert ours == theirs, f"{what}: {ours!r} instead of {theirs!r}"


def options(kind: type, **values: object) -> object:
    made = kind()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def zeros(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(*sizes, dtype=dtype)


INT = torch.int32
BAD: dict[str, Callable[[Group, int], object]] = {
    "broadcast, root too high": lambda g, n: g.broadcast([zeros(3)], options(dist.BroadcastOptions, rootRank=7)),
    "broadcast, root -1": lambda g, n: g.broadcast([zeros(3)], options(dist.BroadcastOptions, rootRank=-1)),
    "broadcast, root tensor": lambda g, n: g.broadcast([zeros(3)], options(dist.BroadcastOptions, rootTensor=3)),
    "broadcast, two types": lambda g, n: g.broadcast([zeros(3), zeros(3, dtype=INT)]),
    "broadcast, two sizes": lambda g, n: g.broadcast([zeros(3), zeros(4)]),
    "all_reduce, two sizes": lambda g, n: g.allreduce([zeros(3), zeros(4)]),
    "all_reduce, two types": lambda g, n: g.allreduce([zeros(3), zeros(3, dtype=INT)]),
    "all_reduce, bitwise and of floats": lambda g, n: g.allreduce(
        [zeros(3)], options(dist.AllreduceOptions, reduceOp=dist.ReduceOp.BAND)
    ),
    "all_reduce, maximum of sparse": lambda g, n: g.allreduce(
        [torch.eye(3).to_sparse()], options(dist.AllreduceOptions, reduceOp=dist.ReduceOp.MAX)
    ),
    "reduce, root too high": lambda g, n: g.reduce([zeros(3)], options(dist.ReduceOptions, rootRank=9)),
    "reduce, two tensors": lambda g, n: g.reduce([zeros(3), zeros(3)]),
    "gather, root too high": lambda g, n: g.gather([], [zeros(3)], options(dist.GatherOptions, rootRank=n)),
    "gather, two inputs": lambda g, n: g.gather([], [zeros(3), zeros(3)], options(dist.GatherOptions, rootRank=0)),
    "gather, a longer list": lambda g, n: g.gather(
        [[zeros(3)] * (n + 1)], [zeros(3)], options(dist.GatherOptions, rootRank=g.rank())
    ),
    "gather, another type": lambda g, n: g.gather(
        [[zeros(3, dtype=INT)] * n], [zeros(3)], options(dist.GatherOptions, rootRank=g.rank())
    ),
    "gather, another size": lambda g, n: g.gather(
        [[zeros(4)] * n], [zeros(3)], options(dist.GatherOptions, rootRank=g.rank())
    ),
    "scatter, root too high": lambda g, n: g.scatter([zeros(3)], [], options(dist.ScatterOptions, rootRank=n)),
    "scatter, no input": lambda g, n: g.scatter([zeros(3)], [], options(dist.ScatterOptions, rootRank=g.rank())),
    "scatter, another size": lambda g, n: g.scatter(
        [zeros(3)], [[zeros(4)] * n], options(dist.ScatterOptions, rootRank=g.rank())
    ),
    "all_gather, no lists": lambda g, n: g.allgather([], [zeros(3)]),
    "all_gather, a longer list": lambda g, n: g.allgather([[zeros(3)] * (n + 1)], [zeros(3)]),
    "all_gather, another type": lambda g, n: g.allgather([[zeros(3, dtype=INT)] * n], [zeros(3)]),
    "all_gather, another size": lambda g, n: g.allgather([[zeros(4)] * n], [zeros(3)]),
    "all_gather_coalesced, another type": lambda g, n: g.allgather_coalesced([[zeros(3, dtype=INT)]] * n, [zeros(3)]),
    "all_gather_coalesced, a longer list": lambda g, n: g.allgather_coalesced([[zeros(3)]] * (n + 1), [zeros(3)]),
    "all_gather_into_tensor, another size": lambda g, n: g._allgather_base(zeros(3 * n + 1), zeros(3)),
    "reduce_scatter, a longer list": lambda g, n: g.reduce_scatter([zeros(3)], [[zeros(3)] * (n + 1)]),
    "reduce_scatter, another size": lambda g, n: g.reduce_scatter([zeros(3)], [[zeros(4)] * n]),
    "reduce_scatter_tensor, another size": lambda g, n: g._reduce_scatter_base(zeros(3), zeros(3 * n + 1)),
    "all_to_all_single, wrong splits": lambda g, n: g.alltoall_base(zeros(2 * n), zeros(2 * n), [1] * n, [2] * n),
    "all_to_all_single, wrong number of splits": lambda g, n: g.alltoall_base(
        zeros(2 * n), zeros(2 * n), [1] * (2 * n), [2] * n
    ),
    "send, two tensors": lambda g, n: g.send([zeros(3), zeros(3)], (g.rank() + 1) % n, 0),
    "send, tag below 0": lambda g, n: g.send([zeros(3)], (g.rank() + 1) % n, -1),
}


@check
def a_bad_argument_is_an_error_at_the_call_of_the_same_type(rank: int, size: int) -> None:
    theirs, ours = both(rank, size)
    wrong = []
    for name, call in BAD.items():
        kinds = []
        for group in (theirs, ours):
            try:
                work = call(group, size)
                if group is theirs:
                    work.wait()  # type: ignore[attr-defined]
                kinds.append("no error")
            except Exception as error:
                kinds.append(type(error).__name__)
        if kinds[0] != kinds[1]:
            wrong.append(f"{name}: {kinds[1]} instead of {kinds[0]}")
    assert not wrong, "\n".join(wrong)
    tensor = torch.ones(5)
    dist.all_reduce(tensor, group=ours)
    assert tensor[0] == size


def number(rank: int, shape: tuple[int, ...], dtype: torch.dtype, salt: int = 0) -> torch.Tensor:
    made = torch.Generator().manual_seed(1000 * rank + salt)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=made).to(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randint(-8, 8, shape, generator=made).to(dtype)
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, shape, generator=made, dtype=torch.int64).to(dtype)


@check
def bitwise_operations_give_the_same_bits(rank: int, size: int) -> None:
    theirs, ours = both(rank, size)
    for op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64):
            for shape in ((0,), (), (7,), (30, 11)):
                results = []
                for group in (theirs, ours):
                    tensor = number(rank, shape, dtype)
                    dist.all_reduce(tensor, op, group=group)
                    results.append(tensor)
                same(f"{op} of {dtype} {shape}", results[1], results[0])
            column = number(rank, (6, 4), dtype)
            expected, actual = column.clone(), column.clone()
            dist.all_reduce(expected, op, group=theirs)
            dist.all_reduce(actual.t(), op, group=ours)
            same(f"{op} of a strided {dtype}", actual, expected)
            expected, actual = column.clone(), column.clone()
            dist.reduce(expected, size - 1, op, group=theirs)
            dist.reduce(actual, size - 1, op, group=ours)
            if rank == size - 1:
                same(f"reduce with {op}", actual, expected)
            parts = [number(rank, (5,), dtype, part) for part in range(size)]
            part = torch.empty(5, dtype=dtype)
            dist.reduce_scatter(part, parts, op, group=ours)
            whole = torch.stack(parts)
            dist.all_reduce(whole, op, group=theirs)
            same(f"reduce_scatter with {op}", part, whole[rank])
            dist.reduce_scatter_tensor(part, torch.stack(parts), op, group=ours)
            same(f"reduce_scatter_tensor with {op}", part, whole[rank])
        flags, bits = number(rank, (100,), torch.bool), number(rank, (100,), torch.bool).to(torch.uint8)
        dist.all_reduce(flags, op, group=ours)
        dist.all_reduce(bits, op, group=theirs)
        same(f"{op} of booleans", flags, bits.to(torch.bool))
    short = number(rank, (9,), torch.int16)
    every = [torch.empty_like(short) for _ in range(size)]
    dist.all_gather(every, short, group=ours)
    dist.all_reduce(short, dist.ReduceOp.BXOR, group=ours)
    for other in every[1:]:
        every[0] ^= other
    same("BXOR of int16", short, every[0])


@check
def lists_of_several_tensors_in_one_raw_call(rank: int, size: int) -> None:
    theirs, ours = both(rank, size)
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        results = []
        for group in (theirs, ours):
            tensors = [number(rank, (3, 5), torch.float32, salt) for salt in range(3)]
            group.allreduce(tensors, options(dist.AllreduceOptions, reduceOp=op)).wait()
            results.append(tensors)
        same(f"all_reduce with {op}", results[1], results[0])
    results = []
    for group in (theirs, ours):
        tensors = [number(rank, (4,), INT, salt) for salt in range(2)]
        group.allreduce(tensors, options(dist.AllreduceOptions, reduceOp=dist.ReduceOp.BXOR)).wait()
        results.append(tensors)
    same("all_reduce with BXOR", results[1], results[0])
    for root in range(size):
        for chosen in range(2):
            results = []
            for group in (theirs, ours):
                tensors = [number(rank, (3, 5), torch.float32, salt) for salt in range(2)]
                group.broadcast(tensors, options(dist.BroadcastOptions, rootRank=root, rootTensor=chosen)).wait()
                results.append(tensors)
            same(f"broadcast from {root}, tensor {chosen}", results[1], results[0])
    results = []
    for group in (theirs, ours):
        inputs = [number(rank, (3,), torch.float32, salt) for salt in range(2)]
        outputs = [[zeros(3) for _ in range(2 * size)] for _ in range(2)]
        group.allgather(outputs, inputs).wait()
        results.append(outputs)
    same("all_gather", results[1], results[0])


@check
def coalesced_calls_may_hold_a_tensor_twice(rank: int, size: int) -> None:
    theirs, ours = both(rank, size)
    for count in (5, 100_000):
        results = []
        for group in (theirs, ours):
            one, other = number(rank, (count,), torch.float32, 1), number(rank, (count,), torch.float32, 2)
            group.allreduce_coalesced([one, other, one, one[1:3]], dist.AllreduceCoalescedOptions()).wait()
            results.append([one, other])
        same("all_reduce_coalesced", results[1], results[0])


def sparse(rank: int, dtype: torch.dtype, entries: int, dense: tuple[int, ...] = ()) -> torch.Tensor:
    made = torch.Generator().manual_seed(rank)
    indices = torch.randint(0, 50, (2, entries), generator=made)  # some of the tensors twice
    entry = number(rank, (entries, *dense), dtype)
    return torch.sparse_coo_tensor(indices, entry, (50, 50, *dense), check_invariants=False)


@check
def sparse_tensors_are_summed(rank: int, size: int) -> None:
    theirs, ours = both(rank, size)
    for dtype in (torch.float32, torch.float64):
        for entries in (0, 20 * rank, 300):
            for dense in ((), (3,)):
                results = []
                for group in (theirs, ours):
                    tensor = sparse(rank, dtype, entries, dense)
                    dist.all_reduce(tensor, group=group)
                    results.append(tensor)
                same(f"{entries} entries of {dtype}, {dense}", results[1], results[0])
    works = []
    for turn in range(5):  # a later call must not overtake an earlier call
        tensor, after = sparse(rank, torch.float32, 10 + turn * rank), torch.full((1000,), float(rank + turn))
        works += [(tensor, dist.all_reduce(tensor, group=ours, async_op=True))]
        works += [(after, dist.all_reduce(after, group=ours, async_op=True))]
    for _, work in works:
        work.wait()
    for turn in range(5):
        expected = sparse(rank, torch.float32, 10 + turn * rank)
        dist.all_reduce(expected, group=theirs)
        same("asynchronous", works[2 * turn][0], expected)
        assert works[2 * turn + 1][0][0] == sum(range(size)) + size * turn
    if size == 1:
        return
    try:
        dist.all_reduce(torch.eye(3 + rank).to_sparse(), group=ours)
    except RuntimeError as error:
        assert "one shape" in str(error), error
    else:
        raise AssertionError("shapes differ")


@check
def data_parallel_training_with_sparse_embeddings_gives_the_same_weights(rank: int, size: int) -> None:
    weights = []
    for group in both(rank, size):
        torch.manual_seed(3)
        embedding = torch.nn.Embedding(40, 8, sparse=True)
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.Sequential(embedding, torch.nn.Linear(8, 2)), process_group=group
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(4):
            words = number(rank, (6,), torch.int64, step) % 40
            model(words).square().mean().backward()
            assert embedding.weight.grad is not None and embedding.weight.grad.is_sparse
            optimizer.step()
            optimizer.zero_grad()
        weights.append([p.detach().clone() for p in model.parameters()])
    for one, other in zip(*weights, strict=True):
        torch.testing.assert_close(one, other)


@check
def inference_mode_changes_nothing(rank: int, size: int) -> None:
    theirs, ours = both(rank, size)
    results: list[list[torch.Tensor]] = []
    for group in (theirs, ours):
        for inside in (True, False):  # tensors that were made in inference mode, and before it
            results.append(in_inference_mode(rank, size, group, inside, theirs))
    same("in inference mode", results[2:], results[:2])


def in_inference_mode(rank: int, size: int, group: Group, inside: bool, gloo: Group) -> list[torch.Tensor]:
    outside = [number(rank, (4, 6), torch.float32, salt) for salt in range(20)]
    room = [torch.zeros(4, 6) for _ in range(4 * size)]
    seen: list[torch.Tensor] = []
    with torch.inference_mode():
        inputs = [t.clone() for t in outside] if inside else outside
        rooms = iter([t.clone() for t in room] if inside else room)

        def change(tensor: torch.Tensor, call: Callable[..., object], *arguments: int) -> None:
            """Gives gloo dense copies, because it would not write to the memory of a tensor that is not dense."""
            mine = tensor.contiguous().clone() if group is gloo else tensor
            call(mine, *arguments, group=group)
            tensor.copy_(mine)

        def fresh() -> list[torch.Tensor]:
            return [next(rooms) for _ in range(size)]

        gathered = fresh()
        dist.all_gather(gathered, inputs[0], group=group)
        at_root = fresh()
        dist.gather(inputs[1], at_root if rank == 0 else None, 0, group=group)
        strided = fresh()
        dist.all_gather([t.t() for t in strided], inputs[2].t(), group=group)
        scattered = fresh()[0]
        dist.scatter(scattered, [inputs[3]] * size if rank == 0 else None, 0, group=group)
        for tensor in (inputs[4].t(), inputs[5][:, 1:3], inputs[6]):
            change(tensor, dist.all_reduce)
        change(inputs[7].t(), dist.broadcast, size - 1)
        change(inputs[8][:, ::2], dist.reduce, 0)
        exchanged = torch.zeros(2 * size, 3)
        dist.all_to_all_single(exchanged, torch.arange(6.0 * size).view(2 * size, 3) + rank, group=group)
        # rank r sends r + 1 rows to each
        uneven = torch.zeros(size * (size + 1) // 2, 3)
        sizes = [r + 1 for r in range(size)]
        rows = torch.full((size * (rank + 1), 3), float(rank))
        dist.all_to_all_single(uneven, rows, sizes, [rank + 1] * size, group=group)
        listed = [torch.zeros(r + 1, 2).t() for r in range(size)]
        if group is not gloo:  # gloo has no such call
            dist.all_to_all(listed, [torch.full((rank + 1, 2), float(rank)).t() for _ in range(size)], group=group)
        listed = [torch.full((2, r + 1), float(r)) for r in range(size)] if group is gloo else listed
        objects: list[object] = [None] * size
        dist.all_gather_object(objects, {"rank": rank, "tensor": inputs[9]}, group=group)
        assert [one["rank"] for one in objects] == list(range(size))  # type: ignore[index]
        seen = [*gathered, *strided, scattered, *inputs[4:8], exchanged, uneven, *listed]
        seen += [one["tensor"] for one in objects]  # type: ignore[index]
        if rank == 0:
            seen += [inputs[8], *at_root]
        return [t.clone() for t in seen]


@check
def the_groups_end(rank: int, size: int) -> None:
    dist.destroy_process_group()


if __name__ == "__main__":
    without_service()
    finish(run(checks, size, bare=True) for size in (1, 2, 4))
