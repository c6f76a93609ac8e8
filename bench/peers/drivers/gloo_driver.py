"""One rank of gloo, through PyTorch. It uses the text protocol that driver.h explains."""

import os
import socket
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

PERIOD = 251


def inputs_of(rank: int) -> torch.Tensor:
    elements = torch.arange(PERIOD)
    return torch.ldexp((1 + (elements * 7 + rank * 13) % 61).to(torch.float32), -(elements % 29))  # as in driver.c


def repeated(pattern: torch.Tensor, count: int) -> torch.Tensor:
    return pattern.repeat(count // PERIOD + 1)[:count].clone()


class Rank:
    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.input = inputs_of(rank)
        self.sum = torch.stack([inputs_of(other) for other in range(ranks)]).sum(0)

    def measure(self, size: int, samples: int, batch: int) -> str:
        count = size // 4
        fresh, expected = repeated(self.input, count), repeated(self.sum * float(self.ranks) ** (batch - 1), count)
        values, together = torch.empty_like(fresh), torch.ones(1)
        nanoseconds, cpu_seconds, right = [], 0.0, True
        for _ in range(samples):
            values.copy_(fresh)
            together.fill_(1)
            dist.all_reduce(together)
            cpu, begin = time.process_time(), time.monotonic_ns()
            for _ in range(batch):
                dist.all_reduce(values)
            nanoseconds.append(time.monotonic_ns() - begin)
            cpu_seconds += time.process_time() - cpu
            dist.all_reduce(together)  # as in driver.c
            right = right and torch.equal(values, expected) and together.item() == self.ranks**2
        if not right:
            return f"wrong a sum of {count} elements on rank {self.rank}"
        return f"result {cpu_seconds:.9f} " + " ".join(map(str, nanoseconds))


def main() -> None:
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=ranks, timeout=timedelta(seconds=300)
    )
    me = Rank(rank, ranks)
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(os.environ["PEERS_CONTROL"])
        with end.makefile("r") as commands:
            end.sendall(f"hello {rank} {os.getpid()} gloo\n".encode())
            for line in commands:
                word, *numbers = line.split()
                if word != "measure":
                    break
                end.sendall((me.measure(*map(int, numbers)) + "\n").encode())
    dist.destroy_process_group()


main()
