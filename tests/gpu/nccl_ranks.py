"""One rank of the NCCL checks of scripts/gpu-check: PyTorch's NCCL with the plugin, against values computed here.

    nccl_ranks.py collectives [groups]   every type and operator, every collective, CUDA graphs, DDP and FSDP2; groups:
                                         communicators of fewer ranks, too, which may have no CollNet
    nccl_ranks.py kill                   allreduces without a pause; rank 0 kills all aggregators in the middle
    nccl_ranks.py speed BYTES...         times allreduces; rank 0 prints one line of JSON

All ranks may share the first GPU, if each has its own NCCL_HOSTID: to NCCL each rank is then a host of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

DEVICE = torch.device("cuda", 0)
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]


def rank() -> int:
    return dist.get_rank()


def ranks() -> int:
    return dist.get_world_size()


def say(text: str) -> None:
    if rank() == 0:
        print(text, flush=True)


def values(of_rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns numbers that differ between elements and between ranks; their sums and products are exact in every type."""
    return ((torch.arange(count, device=DEVICE) * 3 + of_rank * 5) % 3 + 1).to(dtype)


def stack(count: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.stack([values(r, count, dtype).double() for r in range(ranks())])


def expect_equal(actual: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    if not torch.equal(actual, expected):
        wrong = (actual != expected).nonzero().flatten()
        first = int(wrong[0])
        raise SystemExit(
            f"rank {rank()}: {what}: {wrong.numel()} of {actual.numel()} elements are wrong, the first at {first}: "
            f"{actual.flatten()[first]} instead of {expected.flatten()[first]}"
        )


def all_reduces() -> None:
    for dtype in FLOATS + INTEGERS:
        for count in (1, 1000, 262_147):
            everyone = stack(count, dtype)
            wanted = {
                ReduceOp.SUM: everyone.sum(0),
                ReduceOp.PRODUCT: everyone.prod(0),
                ReduceOp.MAX: everyone.amax(0),
                ReduceOp.MIN: everyone.amin(0),
            }
            for operator, expected in wanted.items():
                tensor = values(rank(), count, dtype)
                dist.all_reduce(tensor, operator)
                expect_equal(tensor, expected.to(dtype), f"{operator} of {count} {dtype}")
        if dtype.is_floating_point:
            tensor = values(rank(), 4096, dtype) * ranks()
            dist.all_reduce(tensor, ReduceOp.AVG)
            expect_equal(tensor, stack(4096, dtype).sum(0).to(dtype), f"average of {dtype}")
    large = values(rank(), 16 << 20, torch.float32)
    dist.all_reduce(large)
    expect_equal(large, stack(16 << 20, torch.float32).sum(0).float(), "sum of 64 MiB")


def movements() -> None:
    count = 100_003
    for root in range(ranks()):
        tensor = values(rank(), count, torch.float32)
        dist.broadcast(tensor, root)
        expect_equal(tensor, values(root, count, torch.float32), f"broadcast from {root}")
        tensor = values(rank(), count, torch.float32)
        dist.reduce(tensor, root)
        if rank() == root:
            expect_equal(tensor, stack(count, torch.float32).sum(0).float(), f"reduce to {root}")
    gathered = torch.empty(ranks() * count, device=DEVICE)
    dist.all_gather_into_tensor(gathered, values(rank(), count, torch.float32))
    expect_equal(gathered, stack(count, torch.float32).float().flatten(), "all_gather")
    part = torch.empty(count, device=DEVICE)
    dist.reduce_scatter_tensor(part, values(rank(), ranks() * count, torch.float32))
    whole = stack(ranks() * count, torch.float32).sum(0).float()
    expect_equal(part, whole[rank() * count : (rank() + 1) * count], "reduce_scatter")
    received = torch.empty(ranks() * count, device=DEVICE)
    dist.all_to_all_single(received, torch.cat([values(rank() * 7 + to, count, torch.float32) for to in range(ranks())]))
    sent = torch.cat([values(source * 7 + rank(), count, torch.float32) for source in range(ranks())])
    expect_equal(received, sent, "all_to_all")
    left, right = (rank() - 1) % ranks(), (rank() + 1) % ranks()
    message = torch.empty(count, device=DEVICE)
    operations = [
        dist.P2POp(dist.isend, values(rank(), count, torch.float32), right),
        dist.P2POp(dist.irecv, message, left),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    expect_equal(message, values(left, count, torch.float32), "message")


def groups() -> None:
    """Makes and ends communicators of fewer ranks, and a second one of all."""
    everyone = list(range(ranks()))
    for members in (everyone, everyone[:2], everyone[-2:]):
        group = dist.new_group(members)
        if rank() in members:
            tensor = values(rank(), 50_000, torch.float32)
            dist.all_reduce(tensor, group=group)
            expected = torch.stack([values(r, 50_000, torch.float32) for r in members]).sum(0)
            expect_equal(tensor, expected, f"sum of the group {members}")
            dist.destroy_process_group(group)
        dist.barrier()


def overlapping() -> None:
    """Starts many operations before the first has ended, on tensors that kernels of the same stream write."""
    tensors = [values(rank() + i, 10_000 * (i + 1), torch.float32) for i in range(30)]
    works = [dist.all_reduce(tensor.mul_(2), async_op=True) for tensor in tensors]
    for i, work in reversed(list(enumerate(works))):
        work.wait()
        expected = torch.stack([values(r + i, 10_000 * (i + 1), torch.float32) for r in range(ranks())]).sum(0) * 2
        expect_equal(tensors[i], expected, f"operation {i} of 30 at once")


def graphs() -> None:
    """Captures an allreduce in a CUDA graph, and replays it on other values."""
    tensor = torch.zeros(300_000, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        dist.all_reduce(tensor)  # NCCL connects before the capture
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensor.mul_(2)
        dist.all_reduce(tensor)
    for turn in range(5):
        tensor.copy_(values(rank() + turn, tensor.numel(), torch.float32))
        graph.replay()
        expected = torch.stack([values(r + turn, tensor.numel(), torch.float32) for r in range(ranks())]).sum(0) * 2
        expect_equal(tensor, expected, f"replay {turn} of a graph")
    torch.cuda.synchronize()


def train(net: torch.nn.Module) -> tuple[float, float]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.manual_seed(rank())
    inputs, labels = torch.randn(256, 256, device=DEVICE), torch.randint(0, 10, (256,), device=DEVICE)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def model() -> torch.nn.Sequential:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(256, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).to(DEVICE)


def training() -> None:
    from torch.distributed.fsdp import fully_shard

    wrapped = {"DDP": torch.nn.parallel.DistributedDataParallel(model()), "FSDP2": fully_shard(model())}
    for name, net in wrapped.items():
        first, last = train(net)
        if not last < first:
            raise SystemExit(f"{name}: the loss did not fall: {first} to {last}")
        for parameter in net.parameters():
            local = parameter.detach() if name == "DDP" else parameter.full_tensor().detach()
            copy = local.clone()
            dist.broadcast(copy, 0)
            expect_equal(local, copy, f"{name}: the parameters of rank 0")
        say(f"{name}, 20 steps: loss {first:.4f} to {last:.4f}, the same parameters on all ranks")


def aggregators() -> list[int]:
    """Returns the aggregators of this job: `tributary run` is their parent and this rank's."""
    mine = f"{os.getppid()}"
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        name, _, rest = stat.read_text().partition(")")
        if "(tributary-aggre" in name and rest.split()[1] == mine:
            found.append(int(stat.parent.name))
    return found


def kill() -> None:
    """Reduces for some seconds; a fifth of the way in, rank 0 kills the aggregators while operations are under way."""
    count, turns = 1 << 20, 100
    expected = stack(count, torch.float32).sum(0).float()
    longest, killed = 0.0, 0
    for turn in range(turns):
        tensors = [values(rank(), count, torch.float32) for _ in range(8)]
        torch.cuda.synchronize()
        begin = time.monotonic()
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        if rank() == 0 and turn == turns // 5:
            for process in aggregators():
                os.kill(process, signal.SIGKILL)
                killed += 1
        for work in works:
            work.wait()
        torch.cuda.synchronize()
        longest = max(longest, time.monotonic() - begin if turn > 0 else 0.0)
        for tensor in tensors:
            expect_equal(tensor, expected, f"turn {turn} of {turns}")
    say(f"{killed} aggregators killed; {turns * 8} allreduces of 4 MiB right; longest turn of 8: {longest * 1e3:.0f} ms")


def median_microseconds(size: int) -> float:
    tensor = torch.ones(max(1, size // 4), device=DEVICE)
    times: list[float] = []
    enough = torch.zeros(1, device=DEVICE)
    until = time.perf_counter() + 1.0
    while True:
        for _ in range(5):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            dist.all_reduce(tensor)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e6)
        enough.fill_(float(time.perf_counter() > until))
        dist.broadcast(enough, 0)
        if enough.item() > 0:
            break
    median = torch.tensor(sorted(times[2:])[(len(times) - 2) // 2], device=DEVICE)
    dist.all_reduce(median, ReduceOp.MAX)
    return float(median)


def speed() -> None:
    sizes = [int(word) for word in sys.argv[2:]]
    median_microseconds(sizes[0])  # connects, and warms up
    say("SPEED " + json.dumps({str(size): median_microseconds(size) for size in sizes}))


def collectives() -> None:
    parts = [all_reduces, movements, overlapping, graphs, training]
    for part in [*parts, groups] if "groups" in sys.argv else parts:
        begin = time.monotonic()
        part()
        dist.barrier()
        say(f"ok {part.__name__} on {ranks()} ranks ({time.monotonic() - begin:.1f} s)")


def main() -> None:
    torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl", device_id=DEVICE)
    {"collectives": collectives, "kill": kill, "speed": speed}[sys.argv[1]]()
    dist.barrier()
    dist.destroy_process_group()
    print(f"rank {os.environ['RANK']} has ended well", flush=True)


if __name__ == "__main__":
    main()
