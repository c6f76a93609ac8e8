"""One rank of Gloo, through PyTorch, as `tributary run --hosts` measures it.

    gloo_rank.py RESULT BYTES:OPERATIONS:WARM_UP...

Rank 0 writes into RESULT, as JSON, the microseconds of an all_reduce in place for each size.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist


def filled(count: int, rank: int) -> torch.Tensor:
    return (torch.arange(count, dtype=torch.int64) % 61 + rank).to(torch.float32)


def measure(count: int, operations: int, warm_up: int) -> float:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    values = torch.zeros(count)
    for _ in range(warm_up):
        dist.all_reduce(values)
    dist.barrier()
    begin = time.monotonic_ns()
    for _ in range(operations):
        dist.all_reduce(values)
    mean = torch.tensor((time.monotonic_ns() - begin) / 1e3 / operations / ranks, dtype=torch.float64)
    values.copy_(filled(count, rank))
    dist.all_reduce(values)
    if not torch.equal(values, ranks * filled(count, 0) + ranks * (ranks - 1) // 2):
        raise SystemExit(f"rank {rank}: a wrong sum of {count} elements")
    dist.all_reduce(mean)
    return mean.item()


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    sizes = [list(map(int, word.split(":"))) for word in sys.argv[2:]]
    microseconds = [measure(size // 4, operations, warm_up) for size, operations, warm_up in sizes]
    if dist.get_rank() == 0:
        with open(sys.argv[1], "w", encoding="ascii") as out:
            json.dump(microseconds, out)
    dist.barrier()  # rank 0 holds the store, so all other ranks must be done with it
    dist.destroy_process_group()
    os._exit(0)  # the interpreter's own end takes seconds on a busy machine, and nothing is left to do


main()
